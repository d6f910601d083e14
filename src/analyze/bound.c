/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No finding saves more than the critical path allows. An analysis adds up times; what of them hides behind
 * other work would save nothing. So, where a profile has the spans for it, a finding's saving is what the
 * run would have taken less had the contexts that the finding is about taken no time (path/path.h), if that
 * is less than what the analysis says; and what the median iteration would have taken less is in its
 * evidence. A run has a path for each set of processes that waited for each other; those of processes that
 * ran one after another add up.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/path/rows.h"
#include "analyze/path/steps.h"
#include "analyze/study_private.h"

#define WINDOWS_MOST 16 /* sets of processes; with more, nothing is bounded */

struct bound {
	struct plumb_study *study;
	struct plumb_path *path;
	struct plumb_iterations steps;
	uint32_t count; /* of findings */
	/* By finding; PLUMB_UNKNOWN: not known, or not in any step. */
	int64_t *run, *step;
	char **behind; /* what is on the path most, of a finding that saves nothing; malloced */
};

static bool
is_told(const struct bound *b, uint32_t finding)
{
	return b->study->findings->about.items[finding].gone;
}

/* What is not told otherwise is the finding's context with all under it. */
static bool
tell_all(struct bound *b)
{
	const struct plumb_profile *p = b->study->profile;

	for (uint32_t i = 0; i < b->count; i++) {
		struct plumb_study_about *about = &b->study->findings->about.items[i];
		uint32_t context = b->study->findings->rows.items[i].context;

		if (about->gone || !about->whole || context >= p->contexts_count)
			continue;
		about->gone = calloc(p->contexts_count + 1u, 1);
		if (!about->gone)
			return false;
		memset(about->gone + context, 1, p->contexts[context].last - context + 1u);
	}
	return true;
}

/* ---- the run ---- */

struct part {
	int64_t start_ns, end_ns;
	int64_t *saved; /* by finding */
};

/* Nodes at which the first and the last iteration of each main track are over; the window's end first. */
static void
list_nodes(const struct bound *b, const struct plumb_path_window *w, uint32_t *nodes)
{
	nodes[0] = w->order[w->nodes - 1];
	for (uint32_t t = 0; t < b->steps.count; t++) {
		nodes[1 + 2 * t] = nodes[2 + 2 * t] = PLUMB_NONE;
		if (b->steps.tracks[t].role == PLUMB_ROLE_MAIN)
			plumb_path_step_nodes(b->path, &b->steps.tracks[t], &nodes[1 + 2 * t]);
	}
}

/* The run's saving into PART, and the step's: of several main tracks the greatest. */
static bool
measure_finding(struct bound *b, const struct plumb_path_window *w, uint32_t i,
                const uint32_t *nodes, int64_t *saved, struct part *part)
{
	const unsigned char *gone = b->study->findings->about.items[i].gone;

	if (!gone || !plumb_path_has(w, gone))
		return true;
	if (!plumb_path_savings(w, gone, nodes, 1 + 2 * b->steps.count, saved))
		return false;
	part->saved[i] = saved[0];
	for (uint32_t t = 0; t < b->steps.count; t++) {
		int64_t step = plumb_path_step_saving(&b->steps.tracks[t], &saved[1 + 2 * t]);

		if (b->steps.tracks[t].role == PLUMB_ROLE_MAIN && step > b->step[i])
			b->step[i] = step;
	}
	return true;
}

static bool
measure_part(struct bound *b, const struct plumb_path_window *w, struct part *part)
{
	uint32_t *nodes = calloc(1 + 2 * (size_t)b->steps.count, sizeof *nodes);
	int64_t *saved = calloc(1 + 2 * (size_t)b->steps.count, sizeof *saved);
	bool done = nodes && saved;

	part->start_ns = w->start_ns;
	part->end_ns = w->end_ns;
	part->saved = calloc(b->count + 1u, sizeof *part->saved);
	if (done)
		list_nodes(b, w, nodes);
	for (uint32_t i = 0; done && part->saved && i < b->count; i++)
		done = measure_finding(b, w, i, nodes, saved, part);
	free(nodes);
	free(saved);
	return done && part->saved;
}

/* What a finding that saves nothing hides behind. */
static bool
name_longest(struct bound *b, const struct plumb_path_window *w, const struct part *part)
{
	const struct plumb_profile *p = b->study->profile;
	struct plumb_path_row row;
	int rows = plumb_path_rows(w, b->study->user_of, &row, 1);

	for (uint32_t i = 0; rows > 0 && i < b->count; i++) {
		const unsigned char *gone = b->study->findings->about.items[i].gone;

		if (!gone || (part->saved[i] > 0 && b->step[i]) || b->behind[i])
			continue;
		if (row.frame == PLUMB_NONE)
			b->behind[i] = strdup("the host, between two spans");
		else if (asprintf(&b->behind[i], "%s: %s", plumb_path_kinds[row.kind],
		                  plumb_frame_label(p, row.frame)) < 0)
			b->behind[i] = NULL;
		if (!b->behind[i])
			return false;
	}
	return rows >= 0;
}

static int
by_start(const void *x, const void *y)
{
	const struct part *a = x, *b = y;

	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* Parts at the same time: the greatest; one after another: the sum. */
static void
join_parts(struct bound *b, struct part *parts, uint32_t count)
{
	qsort(parts, count, sizeof *parts, by_start);
	for (uint32_t i = 0; i < b->count; i++) {
		int64_t sum = 0, most = 0, end = INT64_MIN;

		for (uint32_t k = 0; k < count; k++) {
			if (parts[k].start_ns >= end) {
				sum = plumb_add(sum, most);
				most = 0;
			}
			if (parts[k].end_ns > end)
				end = parts[k].end_ns;
			if (parts[k].saved[i] > most)
				most = parts[k].saved[i];
		}
		if (is_told(b, i))
			b->run[i] = plumb_add(sum, most);
	}
}

static int
bound_run(struct bound *b)
{
	const struct plumb_profile *p = b->study->profile;
	unsigned char *covered = calloc(p->processes_count + 1u, 1);
	struct part parts[WINDOWS_MOST] = { 0 };
	uint32_t count = 0, process = PLUMB_NONE;
	struct plumb_error error;
	int code = covered ? 0 : PLUMB_ESYSTEM;

	/* From the end of all, then of each process that nothing so far has waited for. */
	while (!code && count < WINDOWS_MOST) {
		struct plumb_path_window w;

		code = plumb_path_open_whole(b->path, process, &w, &error);
		if (!code) {
			plumb_path_covers(&w, covered);
			if (!measure_part(b, &w, &parts[count]) ||
			    !name_longest(b, &w, &parts[count]))
				code = PLUMB_ESYSTEM;
			count++;
		} else if (code == PLUMB_EEMPTY) {
			if (process != PLUMB_NONE)
				covered[process] = 1;
			code = 0;
		}
		plumb_path_close(&w);
		for (process = 0; process < p->processes_count && covered[process]; process++)
			;
		if (process == p->processes_count)
			break;
	}
	if (!code && count < WINDOWS_MOST)
		join_parts(b, parts, count);
	for (uint32_t i = 0; i < count; i++)
		free(parts[i].saved);
	free(covered);
	return code;
}

/* ---- saying so ---- */

/* EVIDENCE, an object, with what bounds the saving; malloced. */
static char *
add_evidence(const struct bound *b, uint32_t i, const char *evidence)
{
	size_t bytes = evidence ? strlen(evidence) : 0, more;
	char *text = NULL, *joined = NULL;
	FILE *out = open_memstream(&text, &more);
	struct plumb_json *json = out ? plumb_json_new(out) : NULL;
	bool empty = bytes < 4;

	plumb_json_object(json);
	plumb_json_key_quantity(json, "step_saving_ns", b->step[i]);
	plumb_json_key_text(json, "saving_bound", "critical path");
	if ((!b->run[i] || !b->step[i]) && b->behind[i])
		plumb_json_key_text(json, "hides_behind", b->behind[i]);
	plumb_json_end(json);
	if (plumb_json_finish(json) == 0 && fclose(out) == 0) {
		out = NULL;
		if (bytes < 2 || evidence[bytes - 1] != '}')
			joined = strdup(text);
		else if (asprintf(&joined, "%.*s%s%s", (int)bytes - 1, evidence, empty ? "" : ", ",
		                  text + 1) < 0)
			joined = NULL;
	}
	if (out)
		fclose(out);
	free(text);
	if (joined && *joined && joined[strlen(joined) - 1] == '\n')
		joined[strlen(joined) - 1] = '\0';
	return joined;
}

static bool
apply(struct bound *b, uint32_t i)
{
	struct plumb_study *s = b->study;
	struct plumb_finding_text *row = &s->findings->rows.items[i];
	char *evidence;

	if (b->run[i] == PLUMB_UNKNOWN)
		return true;
	evidence = add_evidence(b, i, row->evidence);
	row->evidence = evidence ? plumb_study_keep(s, evidence) : NULL;
	free(evidence);
	if (row->saving_ns != PLUMB_UNKNOWN && b->run[i] < row->saving_ns) {
		row->saving_ns = b->run[i];
		if (s->findings->about.items[i].judged)
			row->severity = plumb_study_severity(s, row->saving_ns, row->confidence);
		else if (!row->saving_ns)
			row->severity = PLUMB_NOTE;
	}
	return row->evidence != NULL;
}

int
plumb_study_bound(struct plumb_study *study)
{
	struct bound b = { .study = study, .count = study->findings->rows.count };
	bool any = false;
	int code = PLUMB_ESYSTEM;

	if (!study->traced || !b.count)
		return 0;
	b.run = malloc(b.count * sizeof *b.run);
	b.step = malloc(b.count * sizeof *b.step);
	b.behind = calloc(b.count, sizeof *b.behind);
	for (uint32_t i = 0; b.run && b.step && i < b.count; i++)
		b.run[i] = b.step[i] = PLUMB_UNKNOWN;
	if (b.run && b.step && b.behind && tell_all(&b)) {
		for (uint32_t i = 0; i < b.count; i++)
			any |= is_told(&b, i);
		b.path = any ? plumb_path_new(study->profile, NULL) : NULL;
		code = b.path || !any ? 0 : PLUMB_ESYSTEM;
	}
	if (!code && any)
		code = plumb_iterations_find(study->profile, NULL, &b.steps, NULL);
	if (!code && any)
		code = bound_run(&b);
	for (uint32_t i = 0; !code && any && i < b.count; i++)
		code = apply(&b, i) ? 0 : PLUMB_ESYSTEM;
	plumb_iterations_free(&b.steps);
	plumb_path_free(b.path);
	for (uint32_t i = 0; b.behind && i < b.count; i++)
		free(b.behind[i]);
	free(b.behind);
	free(b.run);
	free(b.step);
	return code;
}
