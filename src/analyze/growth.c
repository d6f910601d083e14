/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Iterations: what is wrong with a loop as a whole. Causes, each a finding of its own:
 *
 *   growth      each iteration takes longer than the one before: a graph or a list that grows
 *   copies      copies from the host fill the time between iterations
 *   contention  another process works on the device at the same time
 *
 * The latency analysis handles a device that waits for the host between iterations. This one fits a
 * line to each context's time over the iterations to find what grows. It does not see what grows
 * behind other work. The saving is the time of all iterations above the first one's.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "analyze/copies.h"
#include "analyze/iterations.h"
#include "analyze/slope.h"
#include "analyze/steps/words.h"
#include "analyze/study.h"
#include "base/format.h"

#define ITERATIONS_LEAST 8
#define SAMPLE_MOST 128 /* iterations that are looked at for what grows */
#define HALVES 0.2      /* of the slope, in either half */
#define NAMED_MOST 5

static const struct plumb_threshold thresholds[] = {
	{ "iterations.growth", 0.10, "share",
	  "minimum share of an iteration's time by which the last iterations are longer than the "
	  "first" },
	{ "iterations.contended", 0.05, "share",
	  "minimum share of a device's busy time in which several processes have work on it" },
	{ 0 },
};

/* ---- what grows ---- */

struct growth {
	const struct plumb_iteration_level *level;
	struct plumb_moments moments;
	bool kernels;           /* what grows is how many kernels there are */
	uint32_t step, samples; /* every step-th iteration is looked at */
	double *numbers;        /* by key, then sample: time, or kernels */
	double *slopes;         /* by key, an iteration; 0 where it does not grow for sure */
};

struct sampled {
	struct plumb_step_rows *items; /* by sample */
	uint32_t count;
};

static int
sample_iterations(struct growth *g, struct sampled *sampled)
{
	int code = 0;

	sampled->items = calloc((size_t)g->samples + 1, sizeof *sampled->items);
	if (!sampled->items)
		return PLUMB_ESYSTEM;
	sampled->count = g->samples;
	for (uint32_t i = 0; !code && i < g->samples; i++) {
		const struct plumb_iteration *item = &g->level->items[i * g->step];

		code = plumb_moments_both(&g->moments, plumb_iteration_from(item), item->end_ns,
		                          &sampled->items[i]);
		plumb_step_rows_sum(&sampled->items[i]);
	}
	return code;
}

/* How many there are is exact, so where kernels are added that tells which. */
static bool
decides_by_count(const struct growth *g, uint32_t key)
{
	return g->kernels && g->moments.keys.items[key].sort == PLUMB_STEP_KERNEL;
}

static int
find_slopes(struct growth *g)
{
	struct sampled sampled = { 0 };
	int code = sample_iterations(g, &sampled);
	uint32_t keys = g->moments.keys.count;

	g->numbers = calloc(((size_t)keys + 1) * (g->samples + 1), sizeof *g->numbers);
	g->slopes = calloc((size_t)keys + 1, sizeof *g->slopes);
	double *ns = calloc((size_t)keys + 1, sizeof *ns);
	int64_t *count = calloc((size_t)keys + 1, sizeof *count);
	if (!g->numbers || !g->slopes || !ns || !count)
		code = PLUMB_ESYSTEM;
	for (uint32_t i = 0; !code && i < g->samples; i++)
		for (uint32_t r = 0; r < sampled.items[i].count; r++) {
			const struct plumb_step_row *row = &sampled.items[i].items[r];

			g->numbers[(size_t)row->key * g->samples + i] =
				(double)(decides_by_count(g, row->key) ? row->count : row->ns);
			ns[row->key] += (double)row->ns;
			count[row->key] += row->count;
		}
	for (uint32_t k = 0; !code && k < keys; k++) {
		struct plumb_slope line =
			plumb_slope_fit(&g->numbers[(size_t)k * g->samples], g->samples);

		if (line.slope > 2 * line.error)
			g->slopes[k] =
				line.slope / g->step *
				(decides_by_count(g, k) && count[k] ? ns[k] / (double)count[k] : 1);
	}
	free(ns);
	free(count);
	for (uint32_t i = 0; i < sampled.count; i++)
		plumb_vec_free(&sampled.items[i]);
	free(sampled.items);
	return code;
}

/* The key that grows most, of kernels alone if KERNELS is set; PLUMB_NONE: none. */
static uint32_t
find_steepest(const struct growth *g, bool kernels)
{
	uint32_t best = PLUMB_NONE;

	for (uint32_t k = 0; k < g->moments.keys.count; k++)
		if (g->slopes[k] > 0 &&
		    (!kernels || g->moments.keys.items[k].sort == PLUMB_STEP_KERNEL) &&
		    (best == PLUMB_NONE || g->slopes[k] > g->slopes[best]))
			best = k;
	return best;
}

static void
write_growing(struct growth *g, struct plumb_json *json)
{
	char text[700];

	plumb_json_key(json, "growing");
	plumb_json_array(json);
	for (int i = 0; i < NAMED_MOST; i++) {
		uint32_t k = find_steepest(g, false);

		if (k == PLUMB_NONE)
			break;
		plumb_json_object(json);
		plumb_json_key_text(
			json, "name",
			plumb_step_name(&g->moments, &g->moments.keys.items[k], text, sizeof text));
		plumb_json_key_quantity(json, "ns", llround(g->slopes[k]));
		plumb_json_end(json);
		g->slopes[k] = 0;
	}
	plumb_json_end(json);
}

static void
write_loop(const struct plumb_iteration_level *level, struct plumb_json *json)
{
	plumb_json_key_quantity(json, "iterations", level->count);
	plumb_json_key_quantity(json, "duration_ns", level->duration.average);
	plumb_json_key_quantity(json, "interval_ns", level->interval.average);
}

static int
draft_growth(struct plumb_study *s, struct growth *g)
{
	const struct plumb_iteration_level *level = g->level;
	uint32_t first = level->items[0].ops, last = level->items[level->count - 1].ops;
	bool slower = plumb_iterations_slow_down(level);
	uint32_t key = find_steepest(g, g->kernels);
	char name[700] = "", about[700] = "", slope[PLUMB_FORMAT_SIZE], where[420];
	struct plumb_draft draft;
	uint32_t context = key == PLUMB_NONE ? PLUMB_NONE : g->moments.keys.items[key].context;
	uint32_t line = context == PLUMB_NONE ? PLUMB_NONE : s->place_of[context];

	if (key != PLUMB_NONE)
		plumb_step_name(&g->moments, &g->moments.keys.items[key], name, sizeof name);
	if (key != PLUMB_NONE)
		plumb_step_about(&g->moments, &g->moments.keys.items[key], about, sizeof about);
	plumb_format_time(slope, llround(level->slope_ns));
	plumb_draft_begin(&draft, "growth", context == PLUMB_NONE ? 0 : context);
	plumb_draft_key(&draft, "%s %s", g->kernels ? "kernels" : "time",
	                line == PLUMB_NONE ? about : plumb_study_key(s, line, where, sizeof where));
	if (g->kernels)
		plumb_draft_title(
			&draft,
			"each iteration runs %.3g more kernels than the one before (%" PRIu32
			" to %" PRIu32 ")%s%s%s%s%s",
			level->ops_slope, first, last, slower ? " and takes " : "",
			slower ? slope : "", slower ? " longer" : "", *name ? ": " : "", name);
	else
		plumb_draft_title(&draft, "each iteration takes %s longer than the one before%s%s",
		                  slope, *name ? ": " : "", name);
	plumb_draft_advice(
		&draft, "%s",
		g->kernels
			? "Something keeps the graph of each step, so every step does the work of "
			  "those before it too. Accumulate losses and metrics with .item() or "
			  ".detach(), build constants before the loop, and do not let lists of "
			  "tensors grow."
			: "Something grows with the number of steps, such as a list, a cache or a "
			  "log that each step goes through. Find it, and limit it or move it out "
			  "of the loop.");
	write_loop(level, draft.evidence);
	plumb_json_key(draft.evidence, "slope_ns");
	plumb_json_number(draft.evidence, level->slope_ns);
	plumb_json_key(draft.evidence, "slope_error_ns");
	plumb_json_number(draft.evidence, level->slope_error_ns);
	plumb_json_key_quantity(draft.evidence, "first_kernels", first);
	plumb_json_key_quantity(draft.evidence, "last_kernels", last);
	plumb_json_key(draft.evidence, "kernels_more");
	plumb_json_number(draft.evidence, level->ops_slope);
	write_growing(g, draft.evidence);
	plumb_study_line_json(s, draft.evidence, line);
	if (slower)
		draft.saving_ns = llround(level->slope_ns * level->count * (level->count - 1) / 2);
	else
		draft.severity = PLUMB_WARNING;
	draft.confidence = g->kernels ? 0.9 : 0.7;
	return plumb_draft_end(s, &draft);
}

/* Do both halves rise? From one level to another, as when another process starts, is no growth. */
static bool
rises_in_halves(const struct plumb_iteration_level *level)
{
	uint32_t half = level->count / 2;
	double *times = malloc(((size_t)level->count + 1) * sizeof *times);
	struct plumb_slope first, second;

	if (!times)
		return false;
	for (uint32_t i = 0; i < level->count; i++)
		times[i] = level->items[i].interval_ns == PLUMB_UNKNOWN
		                   ? NAN
		                   : (double)plumb_iteration_time(&level->items[i]);
	first = plumb_slope_fit(times, half);
	second = plumb_slope_fit(times + half, level->count - half);
	free(times);
	return !(first.slope <= HALVES * level->slope_ns) &&
	       !(second.slope <= HALVES * level->slope_ns);
}

static bool
is_growing(const struct plumb_study *s, const struct plumb_iteration_level *level)
{
	double mean = 0;

	if (level->growing)
		return true;
	if (level->count < ITERATIONS_LEAST || !plumb_iterations_slow_down(level) ||
	    !rises_in_halves(level))
		return false;
	for (uint32_t i = 0; i < level->count; i++)
		mean += (double)plumb_iteration_time(&level->items[i]) / level->count;
	return level->slope_ns * (level->count - 1) >=
	       plumb_study_threshold(s, "iterations.growth") * mean;
}

static int
find_growth(struct plumb_study *s, struct growth *g)
{
	int code;

	if (!is_growing(s, g->level))
		return 0;
	g->kernels = g->level->growing ||
	             (g->level->ops_slope >= 0.5 &&
	              g->level->items[g->level->count - 1].ops > g->level->items[0].ops);
	g->step = g->level->count / SAMPLE_MOST + 1;
	g->samples = (g->level->count + g->step - 1) / g->step;
	code = find_slopes(g);
	if (!code)
		code = draft_growth(s, g);
	free(g->numbers);
	free(g->slopes);
	return code;
}

/* ---- copies ---- */

/* The copies from the host to this device, and the calls that make them and may wait for them. */
static void
tell_copies(const struct plumb_study *s, const struct growth *g, struct plumb_draft *draft)
{
	const struct plumb_profile *p = s->profile;
	unsigned char *about = plumb_draft_about(s, draft);

	for (uint32_t i = 0; about && i < g->moments.ops_count; i++) {
		uint32_t context = plumb_moments_span(&g->moments, i)->context, parent;

		if (g->moments.ops[i].sort != PLUMB_STEP_COPY || about[context] ||
		    !plumb_copies_from_host(p, context))
			continue;
		about[context] = 1;
		parent = p->contexts[context].parent;
		if (parent != PLUMB_NONE &&
		    plumb_context_frame(p, parent)->kind == PLUMB_FRAME_GPU_API)
			about[parent] = 1;
	}
}

static int
find_copies(struct plumb_study *s, struct growth *g)
{
	const struct plumb_iteration_level *level = g->level;
	struct plumb_step_rows rows = { 0 };
	uint32_t best = PLUMB_NONE, context, line;
	int64_t overlap = 0;
	char share[PLUMB_FORMAT_SIZE], bytes[PLUMB_FORMAT_SIZE], where[420];
	char at[440] = "", each[80] = "";
	struct plumb_draft draft;
	int code = 0;

	if (level->verdict != PLUMB_COPY_BOUND)
		return 0;
	for (uint32_t i = 0; !code && i < level->count; i++) {
		const struct plumb_iteration *item = &level->items[i];

		if (item->interval_ns == PLUMB_UNKNOWN)
			continue;
		overlap = plumb_add(overlap, item->overlap_ns);
		code = plumb_moments_device(&g->moments, plumb_iteration_from(item), item->start_ns,
		                            &rows);
	}
	plumb_step_rows_sum(&rows);
	for (uint32_t r = 0; r < rows.count && best == PLUMB_NONE; r++)
		if (g->moments.keys.items[rows.items[r].key].sort == PLUMB_STEP_COPY)
			best = rows.items[r].key;
	plumb_vec_free(&rows);
	if (code)
		return code;
	context = best == PLUMB_NONE ? 0 : g->moments.keys.items[best].context;
	line = s->place_of[context];
	plumb_draft_begin(&draft, "copies", context);
	plumb_draft_key(&draft, "%s", plumb_study_key(s, line, where, sizeof where));
	plumb_study_line(s, line, where, sizeof where);
	if (line != PLUMB_NONE)
		snprintf(at, sizeof at, ", at %s", where);
	if (level->copy_bytes.average != PLUMB_UNKNOWN)
		snprintf(each, sizeof each, ": %s in each",
		         plumb_format_bytes(bytes, level->copy_bytes.average));
	plumb_draft_title(&draft, "copies from the host take %s of the time between iterations%s%s",
	                  plumb_format_share(share, level->overlap_share, 1), at, each);
	plumb_draft_advice(
		&draft, "Copy only what the step needs, and copy it earlier. Keep on the GPU what "
			"is used again, pin the memory (pin_memory=True), and copy the next batch "
			"with non_blocking=True on another stream while this one computes.");
	write_loop(level, draft.evidence);
	plumb_json_key(draft.evidence, "overlap_share");
	plumb_json_number(draft.evidence, level->overlap_share);
	plumb_json_key_quantity(draft.evidence, "copy_bytes", level->copy_bytes.average);
	plumb_json_key(draft.evidence, "interval_share");
	plumb_json_number(draft.evidence, level->interval_share);
	plumb_study_line_json(s, draft.evidence, line);
	tell_copies(s, g, &draft);
	draft.tells = PLUMB_TELLS_WHY;
	draft.saving_ns = overlap;
	draft.confidence = 0.7;
	return plumb_draft_end(s, &draft);
}

/* ---- other processes ---- */

static int
find_contention(struct plumb_study *s)
{
	const struct plumb_profile *p = s->profile;
	char name[160], time[PLUMB_FORMAT_SIZE], share[PLUMB_FORMAT_SIZE];
	int code = 0;

	for (uint32_t d = 0; !code && d < p->devices_count; d++) {
		const struct plumb_device *device = &p->devices[d];
		const char *text = plumb_text(p, device->name);
		struct plumb_draft draft;
		int64_t processes = 0;

		if (device->contended_ns == PLUMB_UNKNOWN || device->contended_ns <= 0 ||
		    device->busy_ns == PLUMB_UNKNOWN ||
		    (double)device->contended_ns <
		            plumb_study_threshold(s, "iterations.contended") *
		                    (double)device->busy_ns)
			continue;
		for (uint32_t i = 0; i < p->device_processes_count; i++)
			processes += p->device_processes[i].device == d;
		snprintf(name, sizeof name, "%s", text ? text : "a GPU");
		plumb_draft_begin(&draft, "contention", 0);
		plumb_draft_key(&draft, "%s %" PRId64, name, device->ordinal);
		plumb_draft_title(&draft,
		                  "%" PRId64
		                  " processes share %s; for %s, %s of its busy time, more than one "
		                  "had work on it",
		                  processes, name, plumb_format_time(time, device->contended_ns),
		                  plumb_format_share(share, (double)device->contended_ns,
		                                     (double)device->busy_ns));
		plumb_draft_advice(
			&draft,
			"Kernels of different processes take turns or slow each other down, so "
			"each process has longer kernels and gaps. Give each process its own "
			"device (CUDA_VISIBLE_DEVICES), or run them in turn. If they must share, "
			"MPS lets their kernels run at once.");
		plumb_json_key_quantity(draft.evidence, "processes", processes);
		plumb_json_key_quantity(draft.evidence, "contended_ns", device->contended_ns);
		plumb_json_key_quantity(draft.evidence, "device_busy_ns", device->busy_ns);
		plumb_study_line_json(s, draft.evidence, PLUMB_NONE);
		draft.saving_ns = device->contended_ns;
		draft.device = true;
		draft.device_gone = d;
		draft.confidence = 0.6;
		code = plumb_draft_end(s, &draft);
	}
	return code;
}

/* ---- all of it ---- */

static int
look_at(struct plumb_study *s, const struct plumb_iteration_track *track,
        struct plumb_moments_shared *shared)
{
	struct growth g = { .level = track->levels };
	int code = 0;

	if (!track->level_count ||
	    (!is_growing(s, g.level) && g.level->verdict != PLUMB_COPY_BOUND))
		return 0;
	if (!shared->profile)
		code = plumb_moments_share(s->profile, s->place_of, s->division, shared);
	if (!code)
		code = plumb_moments_new(shared, track->device, track->process, track->track,
		                         &g.moments);
	if (!code)
		code = find_growth(s, &g);
	if (!code)
		code = find_copies(s, &g);
	plumb_moments_free(&g.moments);
	return code;
}

static int
study_growth(struct plumb_study *study)
{
	const struct plumb_iterations *found = plumb_study_iterations(study);
	struct plumb_moments_shared shared = { 0 };
	int code = found ? 0 : PLUMB_ESYSTEM;

	for (uint32_t t = 0; !code && t < found->count; t++)
		code = look_at(study, &found->tracks[t], &shared);
	plumb_moments_unshare(&shared);
	return code ? code : find_contention(study);
}

const struct plumb_analysis plumb_analysis_iterations = {
	.name = "iterations",
	.summary = "problems of a loop as a whole: iterations that take longer and longer, copies "
		   "between them, another process on the device",
	.thresholds = thresholds,
	.run = study_growth,
	.waits = true,
};
