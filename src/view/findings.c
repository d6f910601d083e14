/* SPDX-License-Identifier: Apache-2.0 */
#include "view/findings.h"

#include <math.h>
#include <stdlib.h>

#include "analyze/analyze.h"
#include "analyze/group.h"
#include "model/user_code.h"
#include "model/window.h"
#include "view/render.h"
#include "view/view.h"

/* The path to CONTEXT, root first, as labels. */
static void
write_path(struct plumb_json *json, const struct plumb_profile *p, uint32_t context)
{
	uint32_t length = context < p->contexts_count ? p->contexts[context].depth : 0;
	uint32_t *path = calloc(length + 1u, sizeof *path);

	plumb_json_key(json, "context");
	if (context >= p->contexts_count || !path) {
		plumb_json_null(json);
		free(path);
		return;
	}
	for (uint32_t i = length; i-- > 0; context = p->contexts[context].parent)
		path[i] = context;
	plumb_json_array(json);
	for (uint32_t i = 0; i < length; i++)
		plumb_json_text(json, plumb_frame_label(p, p->contexts[path[i]].frame));
	plumb_json_end(json);
	free(path);
}

/* What CONTEXT ends in, which pages find in their rows: the labels of a path have no kinds. */
static void
write_frame(struct plumb_json *json, const struct plumb_profile *p, uint32_t context)
{
	const struct plumb_frame *frame;

	plumb_json_key(json, "frame");
	if (!context || context >= p->contexts_count) { /* the root is no frame */
		plumb_json_null(json);
		return;
	}
	frame = plumb_context_frame(p, context);
	plumb_json_object(json);
	plumb_json_key_quantity(json, "id", p->contexts[context].frame);
	plumb_json_key_text(json, "kind", plumb_frame_kind_names[frame->kind]);
	plumb_json_key_text(json, "name", plumb_frame_label(p, p->contexts[context].frame));
	plumb_json_key_text(json, "file", plumb_text(p, frame->file));
	plumb_json_key_line(json, "line", frame->line);
	plumb_json_key_quantity(json, "context", context);
	plumb_json_end(json);
}

/* The window with NAME, which plumb_window_name made. */
static const struct plumb_window_sum *
find_window(const struct plumb_window_sums *sums, const char *name)
{
	struct plumb_window_choice choice;

	if (plumb_window_parse(name, &choice, NULL) < 0)
		return NULL;
	for (uint32_t i = 0; i < sums->count; i++)
		if (sums->items[i].kind == choice.kind &&
		    (choice.kind != PLUMB_WINDOW_LOOP ||
		     (choice.number ? sums->items[i].number == choice.number : i == sums->main)))
			return &sums->items[i];
	return NULL;
}

struct plumb_finding_part
plumb_finding_part(const struct plumb_profile *p, const struct plumb_finding *f)
{
	const char *name = plumb_text(p, f->window);
	struct plumb_finding_part part = { .name = name,
		                           .whole_ns = p->run.wall_ns,
		                           .iterations = p->window.iterations,
		                           .each_ns = PLUMB_UNKNOWN };
	struct plumb_window_sums sums;

	if (!p->window.kind)
		part.iterations = PLUMB_UNKNOWN;
	if (name && !p->window.kind) {
		const struct plumb_window_sum *sum =
			plumb_window_sums(p, &sums) < 0 ? NULL : find_window(&sums, name);
		part.whole_ns = sum ? sum->wall_ns : PLUMB_UNKNOWN;
		part.iterations = sum ? sum->iterations : PLUMB_UNKNOWN;
		if (sum && sum->kind == PLUMB_WINDOW_LOOP && sum != &sums.items[sums.main])
			part.loop = sum->number;
		plumb_window_sums_free(&sums);
	}
	if (part.iterations > 0 && f->saving_ns != PLUMB_UNKNOWN)
		part.each_ns = llround((double)f->saving_ns / (double)part.iterations);
	return part;
}

static uint32_t
count_shown(const struct plumb_profile *p, uint32_t top)
{
	return top && top < p->findings_count ? top : p->findings_count;
}

void
plumb_finding_json(const struct plumb_profile *p, uint32_t finding, struct plumb_json *json)
{
	const struct plumb_finding *f = &p->findings[finding];

	plumb_json_object(json);
	plumb_json_key_text(json, "id", plumb_text(p, f->id));
	plumb_json_key_text(json, "rule", plumb_text(p, f->rule));
	plumb_json_key_text(json, "severity", plumb_severity_name(f->severity));
	plumb_json_key_text(json, "title", plumb_text(p, f->title));
	plumb_json_key_text(json, "advice", plumb_text(p, f->advice));
	plumb_json_key_quantity(json, "saving_ns", f->saving_ns);
	plumb_json_key_text(json, "window", plumb_text(p, f->window));
	plumb_json_key_quantity(json, "saving_per_iteration_ns", plumb_finding_part(p, f).each_ns);
	plumb_json_key_number(json, "confidence", f->confidence);
	plumb_json_key(json, "evidence");
	plumb_json_raw(json, plumb_text(p, f->evidence));
	write_path(json, p, f->context);
	write_frame(json, p, f->context);
	plumb_json_end(json);
}

void
plumb_findings_json(const struct plumb_profile *p, uint32_t top, struct plumb_json *json)
{
	plumb_json_array(json);
	for (uint32_t i = 0; i < count_shown(p, top); i++)
		plumb_finding_json(p, i, json);
	plumb_json_end(json);
}

int
plumb_findings_answer(const struct plumb_profile *p, const uint32_t *user_of, uint32_t top,
                      struct plumb_answer *answer, struct plumb_error *error)
{
	static const char *const names[] = { "title", "user_file", "user_line", "advice",
		                             "evidence" };
	const enum plumb_answer_source derived = PLUMB_SOURCE_IS_DERIVED;

	*answer = (struct plumb_answer){ .id = "findings", .title = "findings" };
	plumb_answer_column(answer, "id", NULL, derived);
	plumb_answer_column(answer, "rule", NULL, derived);
	plumb_answer_column(answer, "severity", NULL, derived);
	plumb_answer_column_short(answer, "confidence", NULL, derived, 6);
	plumb_answer_column(answer, "saving_ns", "ns", derived);
	for (int i = 0; i < 5; i++)
		plumb_answer_column(answer, names[i], NULL, derived);
	plumb_answer_column(answer, "window", NULL, derived);
	plumb_answer_column(answer, "saving_per_iteration_ns", "ns", derived);
	for (uint32_t i = 0; i < count_shown(p, top); i++) {
		const struct plumb_finding *f = &p->findings[i];
		uint32_t user = f->context < p->contexts_count ? user_of[f->context] : PLUMB_NONE;
		struct plumb_user_place place = plumb_user_place(p, user);

		plumb_answer_text(answer, plumb_text(p, f->id));
		plumb_answer_text(answer, plumb_text(p, f->rule));
		plumb_answer_text(answer, plumb_severity_name(f->severity));
		plumb_answer_number(answer, f->confidence);
		plumb_answer_integer(answer, f->saving_ns);
		plumb_answer_text(answer, plumb_text(p, f->title));
		plumb_answer_text(answer, place.file);
		plumb_answer_integer(answer, place.line ? place.line : PLUMB_UNKNOWN);
		plumb_answer_text(answer, plumb_text(p, f->advice));
		plumb_answer_text(answer, plumb_text(p, f->evidence));
		plumb_answer_text(answer, plumb_text(p, f->window));
		plumb_answer_integer(answer, plumb_finding_part(p, f).each_ns);
	}
	return plumb_answer_end(answer, error);
}

static int
write_json(const struct plumb_profile *profile, uint32_t top, FILE *out)
{
	struct plumb_json *json = plumb_view_json_new(out, "report");

	plumb_json_key(json, "findings");
	plumb_findings_json(profile, top, json);
	plumb_json_end(json);
	return plumb_json_finish(json);
}

int
plumb_view_findings(const struct plumb_profile *profile, const struct plumb_findings_query *query,
                    enum plumb_view_format format, FILE *out, struct plumb_error *error)
{
	struct plumb_answer answer;
	unsigned char *user;
	uint32_t *user_of;
	int code;

	if (format == PLUMB_VIEW_JSON)
		return write_json(profile, query->top, out) < 0
		               ? plumb_fail(error, PLUMB_ESYSTEM, "the findings cannot be written")
		               : 0;
	user = plumb_user_code_frames(profile, query->user_code, error);
	if (!user)
		return error ? error->code : PLUMB_EUSAGE;
	user_of = plumb_user_contexts(profile, user);
	code = user_of ? plumb_findings_answer(profile, user_of, query->top, &answer, error)
	               : plumb_fail_memory(error, "for the findings");
	free(user);
	free(user_of);
	if (code)
		return code;
	code = plumb_view_answer(&answer, format, out, error);
	plumb_answer_free(&answer);
	return code;
}
