/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of an open file. To cut one out takes a pass over the profile, so some are kept. */
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze.h"
#include "serve/answers.h"
#include "view/timeline.h"

static bool
is_of(const struct plumb_served_window *window, const struct plumb_window_choice *choice,
      bool findings)
{
	return window->used && window->choice.kind == choice->kind &&
	       window->choice.number == choice->number && window->analysed == findings;
}

static void
forget(struct plumb_answers *answers, struct plumb_served_window *window)
{
	plumb_flames_forget(answers, &window->profile);
	if (window->used)
		plumb_profile_free(&window->profile);
	*window = (struct plumb_served_window){ 0 };
}

/* The place of CHOICE, or a free one, or the one that was used the longest time ago. */
static struct plumb_served_window *
find_place(struct plumb_served_file *file, const struct plumb_window_choice *choice, bool findings)
{
	struct plumb_served_window *oldest = file->windows;

	for (int i = 0; i < PLUMB_SERVED_WINDOWS; i++) {
		if (is_of(&file->windows[i], choice, findings))
			return &file->windows[i];
		if (file->windows[i].used < oldest->used)
			oldest = &file->windows[i];
	}
	return oldest;
}

/* What was found in the run says which contexts of the window carry a mark. Findings of the window
 * itself take seconds in a large profile, so they are made only for those who ask for them. */
static int
take_findings(const struct plumb_profile *whole, struct plumb_profile *window,
              struct plumb_error *error)
{
	struct plumb_finding_text *texts = calloc(whole->findings_count + 1u, sizeof *texts);
	uint32_t count = 0;
	int code;

	if (!texts)
		return plumb_fail_memory(error, "for the findings");
	for (uint32_t i = 0; i < whole->findings_count; i++) {
		const struct plumb_finding *f = &whole->findings[i];
		const char *of = plumb_text(whole, f->window);

		if (of && strcmp(of, window->window.name) != 0)
			continue;
		texts[count++] = (struct plumb_finding_text){
			.id = plumb_text(whole, f->id),
			.rule = plumb_text(whole, f->rule),
			.title = plumb_text(whole, f->title),
			.advice = plumb_text(whole, f->advice),
			.evidence = plumb_text(whole, f->evidence),
			.window = of,
			.severity = f->severity,
			.context = f->context,
			.saving_ns = f->saving_ns,
			.confidence = f->confidence,
		};
	}
	code = plumb_profile_set_findings(window, texts, count, error);
	free(texts);
	return code;
}

struct plumb_window_choice
plumb_served_main(const struct plumb_served_file *file)
{
	return (struct plumb_window_choice){ file->has_loop ? PLUMB_WINDOW_LOOP : PLUMB_WINDOW_ALL,
		                             0 };
}

int
plumb_served_window(struct plumb_answers *answers, struct plumb_served_file *file,
                    const struct plumb_window_choice *choice, bool findings,
                    const struct plumb_profile **profile, struct plumb_error *error)
{
	const struct plumb_analyze_options wanted = { .whole = true };
	struct plumb_served_window *window = find_place(file, choice, findings);
	int code;

	*profile = file->whole;
	if (!choice->kind)
		return 0;
	if (!is_of(window, choice, findings)) {
		forget(answers, window);
		code = plumb_window_profile(file->whole, choice, &window->profile, error);
		if (code)
			return code;
		window->choice = *choice;
		window->analysed = findings;
		window->used = answers->questions;
		code = findings ? plumb_analyze(&window->profile, &wanted, error)
		                : take_findings(file->whole, &window->profile, error);
		if (code) {
			forget(answers, window);
			return code;
		}
	}
	window->used = answers->questions;
	*profile = &window->profile;
	return 0;
}

void
plumb_served_free(struct plumb_answers *answers, struct plumb_served_file *file)
{
	for (int i = 0; i < PLUMB_SERVED_WINDOWS; i++)
		forget(answers, &file->windows[i]);
	if (file->finding)
		plumb_lanes_found_free(plumb_job_end(file->finding));
	file->finding = NULL;
	plumb_lanes_free(file->lanes);
	file->lanes = NULL;
}
