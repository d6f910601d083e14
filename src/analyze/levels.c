/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/levels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/levels_private.h"
#include "analyze/statistic.h"
#include "base/hash.h"
#include "model/columns.h"

const uint32_t plumb_levels_metrics[PLUMB_CORRECTED_METRICS] = {
	[PLUMB_CORRECTED_HOST] = PLUMB_METRIC_OP_TIME,
	[PLUMB_CORRECTED_KERNELS] = PLUMB_METRIC_GPU_TIME,
	[PLUMB_CORRECTED_COPIES] = PLUMB_METRIC_GPU_COPY_TIME,
};

struct plumb_level_estimate
plumb_level_estimate(double *values, uint32_t count)
{
	struct plumb_level_estimate e = { NAN, NAN, NAN };
	double mean = 0, m2 = 0, half;

	if (!count)
		return e;
	e.value = plumb_trimmed_mean(values, count);
	for (uint32_t i = 0; i < count; i++)
		mean += values[i] / count;
	for (uint32_t i = 0; i < count; i++)
		m2 += (values[i] - mean) * (values[i] - mean);
	if (count < 2)
		return e;
	half = plumb_student(count - 1) * sqrt(m2 / (count - 1) / count);
	/* The trimmed mean may lie outside the interval of the mean. */
	e.low = fmin(mean - half, e.value);
	e.high = fmax(mean + half, e.value);
	return e;
}

/* ---- paths ---- */

/* Frames that all runs of a level have. What they do not have goes to the frame above. */
static bool
is_in_path(const struct plumb_frame *frame)
{
	switch (frame->kind) {
	case PLUMB_FRAME_MODULE:
	case PLUMB_FRAME_OPERATOR:
	case PLUMB_FRAME_RANGE:
	case PLUMB_FRAME_GRAPH:
	case PLUMB_FRAME_COLLECTIVE:
	case PLUMB_FRAME_KERNEL:
	case PLUMB_FRAME_COPY:
	case PLUMB_FRAME_SET:
		return true;
	default:
		return false;
	}
}

/* The node under PARENT for CONTEXT of profile P; PLUMB_NONE: the first run has none. */
static uint32_t
find_node(const struct plumb_levels *levels, uint32_t parent, const struct plumb_profile *p,
          uint32_t context, uint64_t *hash)
{
	const struct plumb_frame *frame = plumb_context_frame(p, context);
	const char *name = plumb_levels_name(p, frame->name),
		   *file = plumb_levels_name(p, frame->file);
	uint32_t flags = p->contexts[context].flags;
	struct plumb_map_cursor at;

	*hash = plumb_hash_mix(plumb_hash_mix(parent, frame->kind), flags);
	*hash = plumb_hash_mix(*hash, plumb_hash_bytes(name, strlen(name)));
	*hash = plumb_hash_mix(*hash, plumb_hash_bytes(file, strlen(file)));
	for (uint32_t id = plumb_map_first(&levels->map, *hash, &at); id != PLUMB_MAP_NONE;
	     id = plumb_map_next(&levels->map, &at)) {
		const struct plumb_levels_node *node = &levels->nodes.items[id];
		const struct plumb_profile *own = levels->profile;
		const struct plumb_frame *other = plumb_context_frame(own, node->context);

		if (node->parent == parent && other->kind == frame->kind &&
		    own->contexts[node->context].flags == flags &&
		    !strcmp(plumb_levels_name(own, other->name), name) &&
		    !strcmp(plumb_levels_name(own, other->file), file))
			return id;
	}
	return PLUMB_NONE;
}

static bool
make_nodes(struct plumb_levels *levels)
{
	const struct plumb_profile *p = levels->profile;
	struct plumb_levels_node *node = plumb_vec_add(&levels->nodes);
	uint64_t hash;

	if (!node)
		return false;
	node->parent = PLUMB_NONE;
	for (uint32_t i = 1; i < p->contexts_count; i++) {
		uint32_t parent = levels->node_of[p->contexts[i].parent];

		levels->node_of[i] = parent;
		if (!is_in_path(plumb_context_frame(p, i)))
			continue;
		levels->node_of[i] = find_node(levels, parent, p, i, &hash);
		if (levels->node_of[i] != PLUMB_NONE)
			continue;
		node = plumb_vec_add(&levels->nodes);
		if (!node || plumb_map_add(&levels->map, hash, levels->nodes.count - 1))
			return false;
		*node = (struct plumb_levels_node){ parent, i };
		levels->node_of[i] = levels->nodes.count - 1;
	}
	return true;
}

/* ---- sums ---- */

static int
metric_of(uint32_t metric)
{
	for (int m = 0; m < PLUMB_CORRECTED_METRICS; m++)
		if (plumb_levels_metrics[m] == metric)
			return m;
	return -1;
}

static void
sums_free(struct plumb_levels_run *run)
{
	for (int m = 0; m < PLUMB_CORRECTED_METRICS; m++) {
		free(run->sums[m].ns);
		free(run->sums[m].count);
		free(run->sums[m].calls);
		run->sums[m] = (struct plumb_levels_sums){ 0 };
	}
}

/* What a path of another run lies under: nodes of the first run, or PLUMB_NONE. NULL: no memory. */
static uint32_t *
place(struct plumb_levels *levels, const struct plumb_profile *p)
{
	uint32_t *node_of = malloc(((size_t)p->contexts_count + 1) * sizeof *node_of);
	uint64_t hash;

	if (!node_of)
		return NULL;
	node_of[0] = 0;
	for (uint32_t i = 1; i < p->contexts_count; i++) {
		uint32_t parent = node_of[p->contexts[i].parent];

		node_of[i] = parent;
		if (parent != PLUMB_NONE && is_in_path(plumb_context_frame(p, i)))
			node_of[i] = find_node(levels, parent, p, i, &hash);
	}
	return node_of;
}

/* The path of CONTEXT that the first run does not have. */
static void
note_extra(struct plumb_levels_run *run, const struct plumb_profile *p,
           const struct plumb_value *value)
{
	if ((double)value->count <= run->extra_calls)
		return;
	run->extra_calls = (double)value->count;
	snprintf(run->extra, sizeof run->extra, "%s",
	         plumb_frame_label(p, p->contexts[value->context].frame));
}

static void
take_whole(struct plumb_levels_run *run, const struct plumb_profile *p, const uint32_t *node_of)
{
	for (uint32_t i = 0; i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];
		int m = metric_of(v->metric);

		if (m < 0)
			continue;
		if (node_of[v->context] == PLUMB_NONE)
			note_extra(run, p, v);
		else
			run->sums[m].calls[node_of[v->context]] += (double)v->count;
	}
}

static void
add_value(struct plumb_levels_run *run, int m, uint32_t node, int64_t sum, uint64_t count)
{
	if (m < 0 || node == PLUMB_NONE)
		return;
	run->sums[m].ns[node] += (double)sum;
	run->sums[m].count[node] += (double)count;
}

/* The loop's values, or all. */
static void
take_window(struct plumb_levels_run *run, const struct plumb_profile *p, const uint32_t *node_of,
            uint32_t window)
{
	for (uint32_t i = 0; window == PLUMB_NONE && i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];
		add_value(run, metric_of(v->metric), node_of[v->context], v->sum, v->count);
	}
	for (uint32_t i = 0; window != PLUMB_NONE && i < p->window_values_count; i++) {
		const struct plumb_window_value *v = &p->window_values[i];
		if (v->window == window)
			add_value(run, metric_of(v->metric), node_of[v->context], v->sum, v->count);
	}
}

/* PROFILE has no loop, though the first run has one. */
#define NO_LOOP 1

static int
take_profile(struct plumb_levels *levels, struct plumb_levels_run *run,
             const struct plumb_profile *p, const uint32_t *node_of, struct plumb_error *error)
{
	struct plumb_cost_loop loop = { .process = PLUMB_NONE };
	bool wants_loop = levels->loop.process != PLUMB_NONE;
	size_t nodes = levels->nodes.count;

	for (int m = 0; m < PLUMB_CORRECTED_METRICS; m++) {
		run->sums[m].ns = calloc(nodes, sizeof(double));
		run->sums[m].count = calloc(nodes, sizeof(double));
		run->sums[m].calls = calloc(nodes, sizeof(double));
		if (!run->sums[m].ns || !run->sums[m].count || !run->sums[m].calls)
			return plumb_fail_memory(error, "for the levels");
	}
	if (wants_loop && plumb_cost_loop_find(p, &loop, error) < 0)
		return PLUMB_ESYSTEM;
	if (wants_loop && loop.process == PLUMB_NONE)
		return NO_LOOP;
	take_whole(run, p, node_of);
	take_window(run, p, node_of, wants_loop ? loop.window : PLUMB_NONE);
	/* Where launches do not bound the loop, its profile does. */
	if (levels->bounds == PLUMB_LEVEL_BY_LOOP)
		run->run.time_ns = loop.step_ns;
	return 0;
}

/* ---- steps ---- */

#define CALLS_MOST 20  /* of a path in a step; with more, one cannot tell how many there are */
#define CALLS_NEAR 0.2 /* to a whole number */
#define ONE_NEAR 0.45  /* to 1: looks may miss much of a short loop */

struct vote {
	double steps, ns;
};

static int
by_steps(const void *a, const void *b)
{
	const struct vote *x = a, *y = b;

	return (x->steps > y->steps) - (x->steps < y->steps);
}

static void
vote(const struct plumb_levels *levels, int metric, uint32_t node, struct vote *votes,
     uint32_t *count, double *all)
{
	const struct plumb_levels_sums *sums = &levels->first.sums[metric];
	double calls = sums->count[node] / levels->steps, round_calls = round(calls);

	if (round_calls < 1 || round_calls > CALLS_MOST ||
	    fabs(calls - round_calls) > (round_calls > 1 ? CALLS_NEAR : ONE_NEAR))
		return;
	votes[(*count)++] = (struct vote){ sums->count[node] / round_calls, sums->ns[node] };
	*all += sums->ns[node];
}

/* A window begins and ends at a look, not between steps, so that its steps are known about only.
 * But a path is called a whole number of times in a step. Most paths, by their time, decide. */
static int
count_steps(struct plumb_levels *levels)
{
	uint32_t nodes = levels->nodes.count, count = 0;
	struct vote *votes = calloc((size_t)PLUMB_CORRECTED_METRICS * nodes + 1, sizeof *votes);
	double all = 0, sum = 0;

	if (!votes)
		return PLUMB_ESYSTEM;
	for (int m = 0; m < PLUMB_CORRECTED_METRICS; m++)
		for (uint32_t n = 0; n < nodes; n++)
			vote(levels, m, n, votes, &count, &all);
	qsort(votes, count, sizeof *votes, by_steps);
	for (uint32_t i = 0; i < count; i++) {
		sum += votes[i].ns;
		if (sum < all / 2)
			continue;
		levels->steps = votes[i].steps;
		break;
	}
	free(votes);
	return 0;
}

/* ---- making ---- */

struct plumb_levels *
plumb_levels_new(const struct plumb_profile *p, const struct plumb_cost_loop *loop,
                 enum plumb_level_bounds bounds, struct plumb_error *error)
{
	struct plumb_levels *levels = calloc(1, sizeof *levels);
	int code = PLUMB_ESYSTEM;

	if (levels) {
		levels->profile = p;
		levels->loop = *loop;
		levels->bounds = bounds;
		levels->steps = loop->process == PLUMB_NONE
		                        ? 1
		                        : (double)p->windows[loop->window].iterations;
		levels->first.run = (struct plumb_level_run){ .level = PLUMB_LEVEL_MLG,
			                                      .number = 1,
			                                      .time_ns = NAN };
		levels->node_of = calloc((size_t)p->contexts_count + 1, sizeof *levels->node_of);
		if (levels->node_of && make_nodes(levels))
			code = take_profile(levels, &levels->first, p, levels->node_of, error);
		if (!code && loop->process != PLUMB_NONE)
			code = count_steps(levels);
	}
	if (!code)
		return levels;
	plumb_levels_free(levels);
	plumb_fail_memory(error, "for the levels");
	return NULL;
}

void
plumb_levels_free(struct plumb_levels *levels)
{
	if (!levels)
		return;
	for (uint32_t i = 0; i < levels->runs.count; i++)
		sums_free(&levels->runs.items[i]);
	sums_free(&levels->first);
	for (int m = 0; m < PLUMB_CORRECTED_METRICS; m++)
		free(levels->unlike[m]);
	plumb_vec_free(&levels->runs);
	plumb_vec_free(&levels->counts);
	plumb_pool_free(levels->texts);
	plumb_vec_free(&levels->nodes);
	plumb_map_free(&levels->map);
	free(levels->node_of);
	free(levels);
}

static void
leave_out(struct plumb_levels_run *run, const char *why)
{
	run->kept = false;
	snprintf(run->why, sizeof run->why, "%s", why);
}

int
plumb_levels_add(struct plumb_levels *levels, const struct plumb_level_run *run,
                 struct plumb_error *error)
{
	struct plumb_levels_run *added = plumb_vec_add(&levels->runs);
	uint32_t *node_of = NULL;
	int code = 0;

	if (!added)
		return plumb_fail_memory(error, "for the levels");
	added->run = *run;
	added->run.profile = NULL;
	added->run.why = NULL;
	added->kept = true;
	if (run->why)
		leave_out(added, run->why);
	if (run->profile && !run->why) {
		node_of = place(levels, run->profile);
		code = node_of ? take_profile(levels, added, run->profile, node_of, error)
		               : plumb_fail_memory(error, "for the levels");
	}
	free(node_of);
	if (code == NO_LOOP) {
		/* Launches may still bound its iterations. */
		sums_free(added);
		added->has_no_loop = levels->bounds == PLUMB_LEVEL_BY_LAUNCHES;
		if (!added->has_no_loop)
			leave_out(added, "it has no main loop, and the first run has one");
	}
	return code < 0 ? code : (int)levels->runs.count - 1;
}

void
plumb_levels_time(struct plumb_levels *levels, uint32_t index, double time_ns, const char *why)
{
	struct plumb_levels_run *run = &levels->runs.items[index];

	run->run.time_ns = time_ns;
	/* Counters are aligned place by place. */
	if (why && run->kept && run->run.level != PLUMB_LEVEL_COUNTED)
		leave_out(run, why);
}

/* ---- reading ---- */

const char *
plumb_level_name(uint32_t level)
{
	const struct plumb_row_column *column =
		plumb_row_column_of(&plumb_row_tables[PLUMB_TABLE_LEVELS], PLUMB_ROW_WORD);

	return level < column->limit ? column->words[level] : NULL;
}

const struct plumb_level_row *
plumb_levels_row(const struct plumb_profile *p, enum plumb_level_kind level)
{
	for (uint32_t i = 0; i < p->levels_count; i++)
		if (p->levels[i].level == level)
			return &p->levels[i];
	return NULL;
}
