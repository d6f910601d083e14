/* SPDX-License-Identifier: Apache-2.0 */
#include "view/path.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "model/user_code.h"
#include "view/iters_path.h"
#include "view/render.h"
#include "view/view.h"

/* What is asked for, as it was found. */
struct chosen {
	struct plumb_iters iters;
	const struct plumb_iteration_track *track; /* NULL: the path is of the whole */
	const struct plumb_path_summary *summary;
	struct plumb_path_window window; /* of the iteration */
	const struct plumb_path_window *listed;
	double px;
};

/* ---- segments ---- */

/* The row of SEGMENT among those of the summary; PLUMB_UNKNOWN. */
static int64_t
row_of(const struct chosen *c, const struct plumb_path_segment *segment)
{
	const struct plumb_profile *p = c->iters.profile;
	const uint32_t *place_of = c->iters.steps.division->place_of;
	uint32_t context = segment->context;
	uint32_t frame = context == PLUMB_NONE ? PLUMB_NONE : p->contexts[context].frame;
	uint32_t user = context == PLUMB_NONE ? PLUMB_NONE : place_of[context];

	for (int i = 0; i < c->summary->count; i++) {
		const struct plumb_path_row *row = &c->summary->rows[i];

		if (row->kind == segment->kind && row->frame == frame && row->user == user)
			return i;
	}
	return PLUMB_UNKNOWN;
}

static void
add_segment(const struct chosen *c, const struct plumb_path_segment *shown, int64_t start,
            int64_t end, uint32_t many, struct plumb_answer *a)
{
	const struct plumb_profile *p = c->iters.profile;
	bool named = shown->context != PLUMB_NONE;

	plumb_answer_integer(a, start - c->listed->start_ns);
	plumb_answer_integer(a, end - c->listed->start_ns);
	plumb_answer_text(a, plumb_path_kinds[shown->kind]);
	plumb_answer_text(a,
	                  named ? plumb_frame_label(p, p->contexts[shown->context].frame) : NULL);
	plumb_answer_integer(a, shown->track == PLUMB_NONE ? PLUMB_UNKNOWN : shown->track);
	plumb_answer_integer(a, named ? shown->context : PLUMB_UNKNOWN);
	plumb_answer_integer(a, row_of(c, shown));
	plumb_answer_integer(a, many);
}

static bool
is_alike(const struct plumb_path_segment *a, const struct plumb_path_segment *b)
{
	return a->kind == b->kind && a->context == b->context && a->track == b->track;
}

/* Those that are alike are one, and so are those that fit into a pixel together: the longest stands
 * for them. */
static void
add_segments(const struct chosen *c, struct plumb_answer *a)
{
	const struct plumb_path_window *w = c->listed;
	double pixel = c->px > 0 ? (double)(w->end_ns - w->start_ns) / c->px : 0;

	for (uint32_t i = 0, next; i < w->count; i = next) {
		const struct plumb_path_segment *first = &w->segments[i], *longest = first;
		int64_t end = first->end_ns;
		uint32_t many = 1;

		for (next = i + 1; next < w->count; next++) {
			const struct plumb_path_segment *more = &w->segments[next];
			bool alike = many == 1 && is_alike(first, more);

			if (!alike && (double)(more->end_ns - first->start_ns) > pixel)
				break;
			many += !alike;
			end = more->end_ns;
			if (more->end_ns - more->start_ns > longest->end_ns - longest->start_ns)
				longest = more;
		}
		add_segment(c, longest, first->start_ns, end, many, a);
	}
}

static void
fill_segments(const struct chosen *c, struct plumb_answer *a)
{
	static const char *const columns[][2] = {
		{ "start", "ns" }, { "end", "ns" },     { "kind", NULL }, { "name", NULL },
		{ "track", NULL }, { "context", NULL }, { "row", NULL },  { "many", "count" },
	};

	*a = (struct plumb_answer){ .id = "path", .title = "critical path" };
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
		plumb_answer_column(a, columns[i][0], columns[i][1], PLUMB_SOURCE_IS_MEASURED);
	add_segments(c, a);
}

/* ---- rows ---- */

static void
add_row(const struct chosen *c, int i, struct plumb_answer *a)
{
	const struct plumb_profile *p = c->iters.profile;
	const struct plumb_division *division = c->iters.steps.division;
	const struct plumb_path_row *row = &c->summary->rows[i];
	const struct plumb_path_summary *s = c->summary;
	bool between = plumb_path_row_between(row);
	uint32_t frame = between ? row->sampled : row->frame;
	uint32_t place = between ? row->sampled_user : row->user;
	struct plumb_user_place user = plumb_user_place(p, plumb_division_line(division, place));
	char text[300];
	int64_t whole = s->end_ns - s->start_ns;

	plumb_answer_integer(a, i);
	plumb_answer_text(a, plumb_path_kinds[row->kind]);
	plumb_answer_text(a, frame == PLUMB_NONE ? NULL : plumb_frame_label(p, frame));
	plumb_answer_truth(a, between);
	plumb_answer_text(a, user.file);
	plumb_answer_integer(a, user.line ? user.line : PLUMB_UNKNOWN);
	plumb_answer_copy(
		a, plumb_division_is_part(division, place)
			   ? plumb_division_text(p, division, place, false, text, sizeof text)
			   : NULL);
	plumb_answer_integer(a, row->ns);
	plumb_answer_number(a, whole > 0 ? (double)row->ns / (double)whole : NAN);
	plumb_answer_integer(a, s->savings[i]);
}

static void
fill_rows(const struct chosen *c, struct plumb_answer *a)
{
	static const char *const columns[][2] = {
		{ "row", NULL },   { "kind", NULL },      { "name", NULL }, { "between", NULL },
		{ "file", NULL },  { "line", NULL },      { "part", NULL }, { "ns", "ns" },
		{ "share", NULL }, { "saving_ns", "ns" },
	};

	*a = (struct plumb_answer){ .id = "path.rows", .title = "what is on the critical path" };
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
		plumb_answer_column(a, columns[i][0], columns[i][1], PLUMB_SOURCE_IS_MEASURED);
	for (int i = 0; i < c->summary->count; i++)
		add_row(c, i, a);
}

static void
fill_total(const struct chosen *c, struct plumb_answer *a)
{
	static const char *const sums[PLUMB_PATH_KINDS] = { "host_ns",          "launch_ns",
		                                            "kernel_ns",        "copy_ns",
		                                            "communication_ns", "gap_ns",
		                                            "unknown_ns" };
	static const char *const columns[][2] = {
		{ "track", NULL },          { "loop", NULL },        { "iteration", NULL },
		{ "step", NULL },           { "median", NULL },      { "first_iteration", NULL },
		{ "last_iteration", NULL }, { "start_ns", "ns" },    { "end_ns", "ns" },
		{ "peer_ns", "ns" },        { "inferred", "count" },
	};
	const struct plumb_path_facts *facts = plumb_path_facts(c->iters.paths->path);
	const struct plumb_path_steps *steps = &c->summary->steps;
	const struct plumb_iteration_track *t = c->track;
	uint32_t i = c->summary->iteration;

	*a = (struct plumb_answer){ .id = "path.total", .title = "what the path is of" };
	for (size_t k = 0; k < sizeof columns / sizeof *columns; k++)
		plumb_answer_column(a, columns[k][0], columns[k][1], PLUMB_SOURCE_IS_MEASURED);
	for (int k = 0; k < PLUMB_PATH_KINDS; k++)
		plumb_answer_column(a, sums[k], "ns", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_integer(a, t ? t->track : PLUMB_UNKNOWN);
	plumb_answer_integer(a, t ? t->main_loop + 1 : PLUMB_UNKNOWN);
	plumb_answer_integer(a, t ? i : PLUMB_UNKNOWN);
	plumb_answer_integer(
		a, t ? plumb_iters_step(&c->iters, (uint32_t)(t - c->iters.found.tracks), i)
		     : PLUMB_UNKNOWN);
	plumb_answer_truth(a, t ? plumb_path_median_step(c->iters.paths->path, t) == i : -1);
	plumb_answer_integer(a, t ? steps->first : PLUMB_UNKNOWN);
	plumb_answer_integer(a, t ? steps->first + steps->count - 1 : PLUMB_UNKNOWN);
	plumb_answer_integer(a, c->summary->start_ns);
	plumb_answer_integer(a, c->summary->end_ns);
	plumb_answer_integer(a, c->summary->peer_ns);
	plumb_answer_integer(a, (int64_t)(facts->inferred_syncs + facts->inferred_events +
	                                  facts->inferred_threads));
	for (int k = 0; k < PLUMB_PATH_KINDS; k++)
		plumb_answer_integer(a, c->summary->sums[k]);
}

/* ---- which path ---- */

/* The first track that the query is of; NULL: none has a loop. */
static const struct plumb_iteration_track *
choose_track(const struct plumb_iters *iters)
{
	for (uint32_t t = 0; t < iters->found.count; t++)
		if (plumb_iters_shown(iters, &iters->found.tracks[t]) &&
		    iters->found.tracks[t].level_count)
			return &iters->found.tracks[t];
	return NULL;
}

static int
check_query(const struct chosen *c, const struct plumb_path_query *query, struct plumb_error *error)
{
	uint32_t count = c->track ? c->track->levels[0].count : 0;

	if (!c->iters.found.count)
		return plumb_fail(error, PLUMB_EEMPTY,
		                  "a critical path ends with GPU work, and the profile has none");
	if (c->iters.found.newest || !c->iters.has_spans)
		return plumb_fail(error, PLUMB_EEMPTY,
		                  "a critical path needs single spans, and the profile has none; "
		                  "record with --trace");
	if (query->one && !c->track)
		return plumb_fail(error, PLUMB_EEMPTY, "this track has no loop");
	if (query->with_iteration && query->iteration >= count)
		return plumb_fail(error, PLUMB_EEMPTY, "there is no iteration %" PRId64,
		                  query->iteration);
	return 0;
}

/* Opens the path of the iteration, or of the whole. */
static int
open_path(struct chosen *c, const struct plumb_path_query *query, struct plumb_error *error)
{
	const struct plumb_iters_query wanted = {
		.paths = PLUMB_ITERS_ONE_PATH,
		.path_one = query->with_iteration,
		.path_iteration = query->with_iteration ? (uint32_t)query->iteration : 0,
	};
	int code = 0;

	c->iters.track = c->track ? (int64_t)c->track->track : -1;
	c->iters.paths = plumb_iters_path_new(&c->iters, &wanted, &code, error);
	if (code)
		return code;
	if (c->iters.paths)
		c->summary = plumb_iters_path_summary(c->iters.paths, c->track);
	if (!c->summary || !c->summary->known)
		return plumb_fail(error, PLUMB_EEMPTY,
		                  "this iteration has no critical path: it is outside of the part "
		                  "that is searched, or has no work");
	if (!c->track) {
		c->listed = &c->iters.paths->whole;
		return plumb_path_list(&c->iters.paths->whole) ? 0 : PLUMB_ESYSTEM;
	}
	c->listed = &c->window;
	code = plumb_path_step(&c->iters.paths->whole, c->track, c->summary->iteration, &c->window,
	                       error);
	return code || plumb_path_list(&c->window) ? code : PLUMB_ESYSTEM;
}

static int
make_tables(const struct chosen *c, struct plumb_answer *answers, struct plumb_error *error)
{
	static void (*const fill[])(const struct chosen *, struct plumb_answer *) = { fill_segments,
		                                                                      fill_rows,
		                                                                      fill_total };
	int code = 0;

	for (int i = 0; !code && i < PLUMB_PATH_TABLES; i++) {
		fill[i](c, &answers[i]);
		code = plumb_answer_end(&answers[i], error);
		for (int done = 0; code && done < i; done++)
			plumb_answer_free(&answers[done]);
	}
	return code;
}

int
plumb_path_answer(const struct plumb_profile *profile, const struct plumb_path_query *query,
                  struct plumb_answer answers[PLUMB_PATH_TABLES], struct plumb_error *error)
{
	const struct plumb_iters_query found = { .one = query->one,
		                                 .track = query->track,
		                                 .loop = query->loop,
		                                 .paths = PLUMB_ITERS_NO_PATHS };
	struct chosen c = { .px = query->px };
	int code;

	if (query->px < 0)
		return plumb_fail(error, PLUMB_EUSAGE, "px is at least 0");
	code = plumb_iters_make(profile, &found, &c.iters, error);
	if (!code) {
		c.track = choose_track(&c.iters);
		code = check_query(&c, query, error);
	}
	if (!code) {
		code = open_path(&c, query, error);
		if (code == PLUMB_ESYSTEM)
			plumb_fail_memory(error, "for the critical path");
		if (!code)
			code = make_tables(&c, answers, error);
		if (c.listed == &c.window)
			plumb_path_close(&c.window);
	}
	plumb_iters_free(&c.iters);
	return code;
}

int
plumb_view_path(const struct plumb_profile *profile, const struct plumb_path_query *query,
                enum plumb_view_format format, FILE *out, struct plumb_error *error)
{
	struct plumb_answer answers[PLUMB_PATH_TABLES];
	struct plumb_error unread;
	int code;

	error = error ? error : &unread;
	code = plumb_path_answer(profile, query, answers, error);
	if (code)
		return code;
	code = plumb_view_answers(answers, PLUMB_PATH_TABLES, "path", format, out, error);
	for (int i = 0; i < PLUMB_PATH_TABLES; i++)
		plumb_answer_free(&answers[i]);
	return code;
}
