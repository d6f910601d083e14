/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No finding saves more than the critical path allows. An analysis adds up times, but time that
 * hides behind other work would save nothing. If the profile has spans, plumb plays the run again
 * as if the contexts of the finding took no time (path/path.h). The time that this saves bounds the
 * finding's saving. The evidence also has what the median iteration would save.
 *
 * Processes that run at the same time need not wait for each other, so the largest saving counts.
 * Savings of processes that ran one after another add up. If there are spans of only a part of the
 * run, or more than a path can have (path/part.h), plumb assumes that the rest is like the part.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/path/rows.h"
#include "analyze/path/steps.h"
#include "analyze/study_private.h"
#include "base/format.h"

struct bound {
	struct plumb_study *study;
	struct plumb_path *path;
	const struct plumb_iterations *steps;
	double scale;   /* of the run to what was seen of it */
	uint32_t count; /* of findings */
	/* By finding; PLUMB_UNKNOWN: not known, or not in any step. */
	int64_t *run, *step;
	char *longest; /* what is on the path most; malloced */
};

/* By context, whether it has spans on streams: of DEVICE, or of any where that is PLUMB_NONE. */
static void
mark_work(const struct plumb_profile *p, uint32_t device, unsigned char *marks)
{
	for (uint32_t i = 0; i < p->spans_count; i++) {
		const struct plumb_track *track = &p->tracks[p->spans[i].track];

		if (track->kind == PLUMB_TRACK_STREAM &&
		    (device == PLUMB_NONE || track->device == device))
			marks[p->spans[i].context] = 1;
	}
}

static void
mark_gone(const struct plumb_profile *p, uint32_t context, struct plumb_study_about *about)
{
	if (about->device) {
		mark_work(p, about->device_gone, about->gone);
	} else if (about->host) {
		mark_work(p, PLUMB_NONE, about->gone);
		for (uint32_t c = 0; c <= p->contexts_count; c++)
			about->gone[c] = !about->gone[c];
	} else {
		memset(about->gone + context, 1, p->contexts[context].last - context + 1u);
	}
}

/* What is not told by contexts: what threads do, what a device does, or the finding's context with
 * all under it. */
static bool
tell_all(struct bound *b)
{
	const struct plumb_profile *p = b->study->profile;

	for (uint32_t i = 0; i < b->count; i++) {
		struct plumb_study_about *about = &b->study->findings->about.items[i];
		uint32_t context = b->study->findings->rows.items[i].context;

		if (about->gone || !(about->host || about->device ||
		                     (about->whole && context < p->contexts_count)))
			continue;
		about->gone = calloc(p->contexts_count + 1u, 1);
		if (!about->gone)
			return false;
		mark_gone(p, context, about);
	}
	return true;
}

/* ---- the run ---- */

/* The nodes that a finding's savings are asked at: where each track ends, then where the first and
 * the last iteration of each main track do. */
static uint32_t
list_nodes(const struct bound *b, uint32_t *nodes)
{
	uint32_t count = 0;

	for (uint32_t t = 0; t < b->study->profile->tracks_count; t++)
		nodes[count++] = plumb_path_end_of(b->path, t);
	for (uint32_t t = 0; t < b->steps->count; t++) {
		nodes[count] = nodes[count + 1] = PLUMB_NONE;
		if (b->steps->tracks[t].role == PLUMB_ROLE_MAIN)
			plumb_path_step_nodes(b->path, &b->steps->tracks[t], &nodes[count]);
		count += 2;
	}
	return count;
}

/* A process that has spans: from the begin of the first to the end of the last. */
struct extent {
	int64_t start_ns, end_ns;
	uint32_t process;
};

static int
by_start(const void *x, const void *y)
{
	const struct extent *a = x, *b = y;

	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

static uint32_t
list_extents(const struct plumb_profile *p, struct extent *extents)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < p->processes_count; i++)
		extents[i] = (struct extent){ INT64_MAX, INT64_MIN, i };
	for (uint32_t i = 0; i < p->spans_count; i++) {
		uint32_t process = p->tracks[p->spans[i].track].process;
		struct extent *e = process < p->processes_count ? &extents[process] : NULL;

		if (e && p->spans[i].start_ns < e->start_ns)
			e->start_ns = p->spans[i].start_ns;
		if (e && p->spans[i].end_ns > e->end_ns)
			e->end_ns = p->spans[i].end_ns;
	}
	for (uint32_t i = 0; i < p->processes_count; i++)
		if (extents[i].end_ns != INT64_MIN)
			extents[count++] = extents[i];
	qsort(extents, count, sizeof *extents, by_start);
	return count;
}

/* Of processes at the same time the greatest; of those one after another the sum. SAVED is by
 * process. */
static int64_t
add_up_extents(const struct extent *extents, uint32_t count, const int64_t *saved)
{
	int64_t sum = 0, most = 0, end = INT64_MIN;

	for (uint32_t i = 0; i < count; i++) {
		if (extents[i].start_ns >= end) {
			sum = plumb_add(sum, most);
			most = 0;
		}
		if (extents[i].end_ns > end)
			end = extents[i].end_ns;
		if (saved[extents[i].process] > most)
			most = saved[extents[i].process];
	}
	return plumb_add(sum, most);
}

/* How many times as much GPU work as the spans of P show the run had: with --trace=50 they are the
 * newest only. */
static double
scale_of(const struct plumb_study *study, const struct plumb_profile *p)
{
	double seen = 0, all = (double)study->gpu_ns + (double)study->copy_ns;

	for (uint32_t i = 0; i < p->spans_count; i++)
		if (p->tracks[p->spans[i].track].kind == PLUMB_TRACK_STREAM)
			seen += (double)p->spans[i].end_ns - (double)p->spans[i].start_ns;
	return seen > 0 && all > 1.01 * seen ? all / seen : 1;
}

struct questions {
	uint32_t *nodes, count;
	int64_t *saved;      /* at those, of one finding */
	int64_t *ends, *run; /* by process: when it ended, and how much sooner it would have */
	int64_t *all;        /* by those and play */
	int64_t *taken; /* by track with iterations and play: what its steps can save at most */
	unsigned char *gone; /* by context: a bit for each play */
	struct extent *extents;
	uint32_t extents_count;
};

/* A process ends when the last of its tracks does, without the finding's contexts perhaps another
 * than with them. */
static void
measure_processes(const struct bound *b, const struct questions *q)
{
	const struct plumb_profile *p = b->study->profile;

	for (uint32_t i = 0; i < p->processes_count; i++)
		q->ends[i] = q->run[i] = INT64_MIN;
	for (uint32_t t = 0; t < p->tracks_count; t++) {
		uint32_t process = p->tracks[t].process;
		int64_t at;

		if (q->nodes[t] == PLUMB_NONE || q->saved[t] == PLUMB_UNKNOWN ||
		    process >= p->processes_count)
			continue;
		at = plumb_path_at(b->path, q->nodes[t]);
		if (at > q->ends[process])
			q->ends[process] = at;
		if (at - q->saved[t] > q->run[process])
			q->run[process] = at - q->saved[t];
	}
	for (uint32_t i = 0; i < p->processes_count; i++)
		q->run[i] = q->ends[i] == INT64_MIN ? PLUMB_UNKNOWN : q->ends[i] - q->run[i];
}

/* What the run saves, and a step: of several main tracks the greatest. */
static void
measure_finding(struct bound *b, const struct plumb_path_window *w, const struct questions *q,
                uint32_t i, uint32_t play)
{
	const unsigned char *gone = b->study->findings->about.items[i].gone;
	const int64_t *steps = &q->saved[b->study->profile->tracks_count];

	measure_processes(b, q);
	b->run[i] = add_up_extents(q->extents, q->extents_count, q->run);
	if (b->scale > 1)
		b->run[i] = (int64_t)fmin((double)b->run[i] * b->scale, 9e18);
	for (uint32_t t = 0; t < b->steps->count && plumb_path_has(w, gone); t++) {
		int64_t step = plumb_path_step_saving(b->path, &b->steps->tracks[t], &steps[2 * t],
		                                      q->taken[t * PLUMB_PATH_PLAYS + play]);

		if (b->steps->tracks[t].role == PLUMB_ROLE_MAIN && step > b->step[i])
			b->step[i] = step;
	}
}

/* The run is played again without each finding from FIRST on, as many as go at once; returns the
 * next, or PLUMB_ESYSTEM. */
static int64_t
measure_findings(struct bound *b, struct plumb_path_window *w, const struct questions *q,
                 uint32_t first)
{
	uint32_t contexts = b->study->profile->contexts_count, i = first, taken = 0;
	uint32_t asked[PLUMB_PATH_PLAYS];

	memset(q->gone, 0, contexts + 1u);
	for (; i < b->count && taken < PLUMB_PATH_PLAYS; i++) {
		const unsigned char *gone = b->study->findings->about.items[i].gone;

		if (!gone)
			continue;
		for (uint32_t c = 0; c <= contexts; c++)
			q->gone[c] |= (unsigned char)((gone[c] != 0) << taken);
		asked[taken++] = i;
	}
	if (taken && !plumb_path_savings(w, q->gone, q->nodes, q->count, q->all))
		return PLUMB_ESYSTEM;
	if (taken)
		plumb_path_steps_taken(b->path, b->steps, q->gone,
		                       &q->nodes[b->study->profile->tracks_count], q->taken);
	for (uint32_t k = 0; k < taken; k++) {
		for (uint32_t n = 0; n < q->count; n++)
			q->saved[n] = q->all[n * PLUMB_PATH_PLAYS + k];
		measure_finding(b, w, q, asked[k], k);
	}
	return i;
}

/* What a finding that saves nothing hides behind, and where that is. */
static bool
name_longest(struct bound *b, const struct plumb_path_window *w)
{
	const struct plumb_profile *p = b->study->profile;
	struct plumb_path_row row;
	int rows = plumb_path_rows(w, b->study->place_of, &row, 1);
	bool between = rows > 0 && row.frame == PLUMB_NONE;
	char at[440];

	if (rows <= 0)
		return rows == 0;
	if (between && !plumb_path_row_between(&row))
		return true;
	plumb_study_under(b->study, " at ", between ? row.sampled_user : row.user, at, sizeof at);
	if (!between) {
		if (asprintf(&b->longest, "%s: %s%s", plumb_path_kinds[row.kind],
		             plumb_frame_label(p, row.frame), at) < 0)
			b->longest = NULL;
	} else if (row.sampled == PLUMB_NONE) {
		b->longest = strdup("the host, between two spans");
	} else if (asprintf(&b->longest, "the host, between two spans, most sampled: %s%s",
	                    plumb_frame_label(p, row.sampled), at) < 0) {
		b->longest = NULL;
	}
	return b->longest;
}

static bool
ask_questions(struct bound *b, struct questions *q)
{
	const struct plumb_profile *p = b->study->profile;
	size_t most = (size_t)p->tracks_count + 2 * (size_t)b->steps->count + 1;
	struct plumb_path_window w;
	struct plumb_error error;
	int code;

	q->nodes = calloc(most, sizeof *q->nodes);
	q->saved = calloc(most, sizeof *q->saved);
	q->all = calloc(most * PLUMB_PATH_PLAYS, sizeof *q->all);
	q->taken = calloc((size_t)b->steps->count * PLUMB_PATH_PLAYS + 1, sizeof *q->taken);
	q->gone = calloc((size_t)p->contexts_count + 1, 1);
	q->extents = calloc((size_t)p->processes_count + 1, sizeof *q->extents);
	q->ends = calloc((size_t)p->processes_count + 1, sizeof *q->ends);
	q->run = calloc((size_t)p->processes_count + 1, sizeof *q->run);
	if (!q->ends || !q->run || !q->nodes || !q->saved || !q->all || !q->taken || !q->gone ||
	    !q->extents)
		return false;
	q->count = list_nodes(b, q->nodes);
	q->extents_count = list_extents(plumb_path_profile(b->path), q->extents);
	b->scale = scale_of(b->study, plumb_path_profile(b->path));
	code = plumb_path_open_whole(b->path, &w, &error);
	if (!code && !name_longest(b, &w))
		code = PLUMB_ESYSTEM;
	for (int64_t i = 0; !code && i < b->count;) {
		i = measure_findings(b, &w, q, (uint32_t)i);
		if (i < 0)
			code = PLUMB_ESYSTEM;
	}
	plumb_path_close(&w);
	return !code || code == PLUMB_EEMPTY;
}

static int
bound_run(struct bound *b)
{
	struct questions q = { 0 };
	bool done = ask_questions(b, &q);

	free(q.nodes);
	free(q.saved);
	free(q.all);
	free(q.taken);
	free(q.gone);
	free(q.extents);
	free(q.ends);
	free(q.run);
	return done ? 0 : PLUMB_ESYSTEM;
}

/* ---- saying so ---- */

/* "critical path", and of which part of the profile, where it is of one. Returns TEXT of SIZE
 * bytes. */
static char *
name_bound(const struct plumb_path_part *part, char *text, size_t size)
{
	char time[PLUMB_FORMAT_SIZE];

	if (part->whole)
		snprintf(text, size, "critical path");
	else if (part->track != PLUMB_NONE)
		snprintf(text, size,
		         "critical path of iterations %" PRIu32 " to %" PRIu32 " of track %" PRIu32,
		         part->first, part->last, part->track);
	else
		snprintf(text, size, "critical path of the last %s",
		         plumb_format_time(time, part->end_ns - part->start_ns));
	return text;
}

/* EVIDENCE, an object, with what bounds the saving; malloced. */
static char *
add_evidence(const struct bound *b, uint32_t i, const char *evidence)
{
	size_t bytes = evidence ? strlen(evidence) : 0, more;
	char *text = NULL, *joined = NULL, bound[200];
	FILE *out = open_memstream(&text, &more);
	struct plumb_json *json = out ? plumb_json_new(out) : NULL;
	bool empty = bytes < 4;

	plumb_json_object(json);
	plumb_json_key_quantity(json, "step_saving_ns", b->step[i]);
	plumb_json_key_text(json, "saving_bound",
	                    name_bound(plumb_path_part(b->path), bound, sizeof bound));
	if (!b->run[i] || !b->step[i])
		plumb_json_key_text(json, "hides_behind", b->longest);
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

/* Advice that saves nothing by itself says so first. */
static bool
say_hidden(const struct bound *b, struct plumb_finding_text *row)
{
	char *text = NULL;

	if (asprintf(&text, "This alone saves nothing: it is hidden behind other work%s%s. %s",
	             b->longest ? ", mostly " : "", b->longest ? b->longest : "",
	             row->advice ? row->advice : "") < 0)
		return false;
	row->advice = plumb_study_keep(b->study, text);
	free(text);
	return row->advice;
}

static bool
apply_bound(struct bound *b, uint32_t i)
{
	struct plumb_study *s = b->study;
	struct plumb_finding_text *row = &s->findings->rows.items[i];
	char *evidence;

	if (b->run[i] == PLUMB_UNKNOWN)
		return true;
	evidence = add_evidence(b, i, row->evidence);
	row->evidence = evidence ? plumb_study_keep(s, evidence) : NULL;
	free(evidence);
	/* What saves nothing on the path saves nothing, even where nobody knows how much faster it
	 * can be. */
	if (row->saving_ns == PLUMB_UNKNOWN ? !b->run[i] && b->step[i] <= 0
	                                    : b->run[i] < row->saving_ns) {
		row->saving_ns = b->run[i];
		if (s->findings->about.items[i].judged)
			row->severity = plumb_study_severity(s, row->saving_ns, row->confidence);
		else if (!row->saving_ns)
			row->severity = PLUMB_NOTE;
		if (!row->saving_ns && !say_hidden(b, row))
			return false;
	}
	return row->evidence != NULL;
}

/* Of all spans, or of as many as there is room for. */
static int
make_path(struct bound *b)
{
	const struct plumb_profile *p = b->study->profile;
	struct plumb_path_part part;
	int code;

	b->steps = plumb_study_iterations(b->study);
	code = b->steps ? 0 : PLUMB_ESYSTEM;

	if (!code)
		code = plumb_path_part_find(p, b->steps, PLUMB_NONE, b->study->path_spans, &part,
		                            NULL);
	if (!code)
		b->path = plumb_path_new(p, &part, NULL);
	return code || b->path ? code : PLUMB_ESYSTEM;
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
	for (uint32_t i = 0; b.run && b.step && i < b.count; i++)
		b.run[i] = b.step[i] = PLUMB_UNKNOWN;
	if (b.run && b.step && tell_all(&b)) {
		for (uint32_t i = 0; i < b.count; i++)
			any |= study->findings->about.items[i].gone != NULL;
		code = any ? make_path(&b) : 0;
	}
	if (!code && any)
		code = bound_run(&b);
	for (uint32_t i = 0; !code && any && i < b.count; i++)
		code = apply_bound(&b, i) ? 0 : PLUMB_ESYSTEM;
	plumb_path_free(b.path);
	free(b.longest);
	free(b.run);
	free(b.step);
	return code == PLUMB_EEMPTY ? 0 : code;
}
