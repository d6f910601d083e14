/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of an open file. To cut one out takes a pass over the profile, so some are kept. */
#include "analyze/analyze.h"
#include "serve/answers.h"

static bool
is_of(const struct plumb_served_window *window, const struct plumb_window_choice *choice)
{
	return window->used && window->choice.kind == choice->kind &&
	       window->choice.number == choice->number;
}

static void
forget(struct plumb_served_window *window)
{
	if (window->used)
		plumb_profile_free(&window->profile);
	*window = (struct plumb_served_window){ 0 };
}

/* The place of CHOICE, or a free one, or the one that was used the longest time ago. */
static struct plumb_served_window *
find_place(struct plumb_served_file *file, const struct plumb_window_choice *choice)
{
	struct plumb_served_window *oldest = file->windows;

	for (int i = 0; i < PLUMB_SERVED_WINDOWS; i++) {
		if (is_of(&file->windows[i], choice))
			return &file->windows[i];
		if (file->windows[i].used < oldest->used)
			oldest = &file->windows[i];
	}
	return oldest;
}

int
plumb_served_window(struct plumb_answers *answers, struct plumb_served_file *file,
                    const struct plumb_window_choice *choice, bool findings,
                    const struct plumb_profile **profile, struct plumb_error *error)
{
	const struct plumb_analyze_options wanted = { .whole = true };
	struct plumb_served_window *window = find_place(file, choice);
	int code = 0;

	*profile = file->whole;
	if (!choice->kind)
		return 0;
	if (!is_of(window, choice)) {
		forget(window);
		code = plumb_window_profile(file->whole, choice, &window->profile, error);
		if (code)
			return code;
		window->choice = *choice;
	}
	window->used = answers->questions;
	if (findings && !window->analysed)
		code = plumb_analyze(&window->profile, &wanted, error);
	window->analysed |= findings && !code;
	*profile = &window->profile;
	return code;
}

void
plumb_served_free(struct plumb_served_file *file)
{
	for (int i = 0; i < PLUMB_SERVED_WINDOWS; i++)
		forget(&file->windows[i]);
}
