/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many iterations a run had, and when each was.
 *
 * From the loops in the GPU's work: every kernel of the loop says how often it came in the
 * iterations that were seen and how often in all; the middle one of these counts is the number of
 * iterations. So the newest work of a recording is enough, and what came before and after the loop
 * changes nothing.
 *
 * A trace of a single step has its layers as the outermost loop: runs are compared at the outermost
 * levels that are of the same kernels, as far as there are such.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/diff/diff_private.h"
#include "analyze/host_steps.h"
#include "analyze/iterations_count.h"
#include "analyze/statistic.h"
#include "base/hash.h"

#define NAMES_MOST 4096u /* of a round, that are compared */
#define ALIKE 0.6        /* share of kernels that two rounds of one loop have in common */

static const struct plumb_iteration_level *
level_of(const struct plumb_iteration_track *track, uint32_t level)
{
	return track->role == PLUMB_ROLE_MAIN && level < track->level_count ? &track->levels[level]
	                                                                    : NULL;
}

/* The main track with the most kernel time that has a loop. */
static const struct plumb_iteration_track *
first_track(const struct diff_run *run)
{
	const struct plumb_iteration_track *best = NULL;

	for (uint32_t t = 0; t < run->found.count; t++)
		if (level_of(&run->found.tracks[t], 0) &&
		    (!best || run->found.tracks[t].kernel_ns > best->kernel_ns))
			best = &run->found.tracks[t];
	return best;
}

/* ---- which level ---- */

/* The names of the kernels of a round, as sorted hashes. */
struct names {
	uint64_t *hashes;
	uint32_t count;
};

static int
by_hash(const void *x, const void *y)
{
	const uint64_t *a = x, *b = y;

	return (*a > *b) - (*a < *b);
}

static bool
take_names(const struct diff_run *run, const struct plumb_iteration_track *track, uint32_t level,
           struct names *names)
{
	const struct plumb_iteration *round = &track->levels[level].items[0];
	struct plumb_gpu_range range = plumb_gpu_work_of(&run->gpu, track->track);

	names->count = 0;
	names->hashes = malloc(NAMES_MOST * sizeof *names->hashes);
	for (uint32_t i = range.first; names->hashes && i < range.end; i++) {
		const struct plumb_span *w = &run->gpu.spans[i];
		const struct plumb_frame *frame = plumb_context_frame(run->profile, w->context);

		if (w->start_ns < round->start_ns || w->start_ns > round->end_ns)
			continue;
		if (frame->kind != PLUMB_FRAME_KERNEL || names->count == NAMES_MOST)
			continue;
		const char *text =
			plumb_frame_label(run->profile, run->profile->contexts[w->context].frame);
		names->hashes[names->count++] = plumb_hash_bytes(text, strlen(text));
	}
	if (names->hashes)
		qsort(names->hashes, names->count, sizeof *names->hashes, by_hash);
	return names->hashes;
}

static double
compare_names(const struct names *a, const struct names *b)
{
	uint32_t i = 0, j = 0, common = 0, most = a->count > b->count ? a->count : b->count;

	while (i < a->count && j < b->count) {
		common += a->hashes[i] == b->hashes[j];
		if (a->hashes[i] < b->hashes[j])
			i++;
		else if (a->hashes[i] > b->hashes[j])
			j++;
		else
			i++, j++;
	}
	return most ? (double)common / most : 0;
}

/* The level of RUN whose rounds are like the ones of NAMES; PLUMB_NONE: none, -1: no memory. */
static int64_t
like_level(const struct diff_run *run, const struct names *names)
{
	const struct plumb_iteration_track *track = first_track(run);

	for (uint32_t l = 0; track && l < track->level_count; l++) {
		struct names own;
		bool is;

		if (!take_names(run, track, l, &own))
			return -1;
		is = compare_names(names, &own) >= ALIKE;
		free(own.hashes);
		if (is)
			return l;
	}
	return PLUMB_NONE;
}

/* Sets `level` of all runs to the outermost levels that are alike, else to the outermost. */
static bool
choose_levels(struct plumb_diff *diff)
{
	const struct plumb_iteration_track *track = first_track(&diff->runs[0]);
	bool found = false;

	for (uint32_t l = 0; track && !found && l < track->level_count; l++) {
		struct names names;
		int64_t level = 0;

		if (!take_names(&diff->runs[0], track, l, &names))
			return false;
		diff->runs[0].steps.level = l;
		for (uint32_t r = 1; r < diff->count && level >= 0 && level != PLUMB_NONE; r++) {
			level = like_level(&diff->runs[r], &names);
			diff->runs[r].steps.level = (uint32_t)level;
		}
		free(names.hashes);
		if (level < 0)
			return false;
		found = level != PLUMB_NONE;
	}
	diff->alike = found;
	for (uint32_t r = 0; !found && r < diff->count; r++)
		diff->runs[r].steps.level = 0;
	return true;
}

/* ---- windows ---- */

static bool
windows_room(struct diff_windows *w, uint32_t count, bool busy)
{
	w->start = malloc((count + (size_t)1) * sizeof *w->start);
	w->end = malloc((count + (size_t)1) * sizeof *w->end);
	w->busy = busy ? malloc((count + (size_t)1) * sizeof *w->busy) : NULL;
	return w->start && w->end && (!busy || w->busy);
}

/* From the start of each iteration to that of the next one, where nothing else lies between. */
static bool
make_gpu_windows(struct diff_run *run)
{
	struct diff_steps *s = &run->steps;

	s->gpus = calloc(run->found.count + (size_t)1, sizeof *s->gpus);
	for (uint32_t t = 0; s->gpus && t < run->found.count; t++) {
		const struct plumb_iteration_track *track = &run->found.tracks[t];
		const struct plumb_iteration_level *level = level_of(track, s->level);
		struct diff_windows *w = &s->gpus[s->gpu_count];

		if (!level)
			continue;
		s->gpu_count++;
		w->device = track->device;
		if (!windows_room(w, level->count, true))
			return false;
		for (uint32_t i = 0; i + 1 < level->count; i++) {
			const struct plumb_iteration *at = &level->items[i], *next = at + 1;

			if (next->interval_ns == PLUMB_UNKNOWN || next->start_ns <= at->start_ns)
				continue;
			w->start[w->count] = at->start_ns;
			w->end[w->count] = next->start_ns;
			w->busy[w->count++] = at->busy_ns;
		}
	}
	return s->gpus;
}

/* ---- how many ---- */

/* Of several devices the one with the most. */
static bool
count_loops(struct diff_run *run)
{
	run->steps.loops = NAN;
	for (uint32_t t = 0; t < run->found.count; t++) {
		const struct plumb_iteration_level *level =
			level_of(&run->found.tracks[t], run->steps.level);
		double count;

		if (!level || level->count < 2)
			continue;
		count = plumb_iterations_count(run->profile, &run->gpu, &run->found.tracks[t],
		                               level);
		if (isnan(count))
			return false;
		if (!(run->steps.loops >= count))
			run->steps.loops = count;
	}
	return true;
}

/* ---- markers ---- */

/* From the start of each marked step to that of the next one. */
static bool
make_host_windows(struct diff_run *run, const struct plumb_host_steps *steps)
{
	struct diff_windows *w = &run->steps.host;

	w->device = PLUMB_NONE;
	if (!windows_room(w, steps->starts, false))
		return false;
	for (uint32_t i = 0; i + 1 < steps->starts; i++) {
		w->start[i] = steps->start[i];
		w->end[i] = steps->start[i + 1];
	}
	w->count = steps->starts ? steps->starts - 1 : 0;
	return true;
}

/* ---- all runs ---- */

static int
find_run(struct diff_run *run)
{
	struct plumb_host_steps steps;
	bool ok = plumb_host_steps_find(run->profile, &steps) && count_loops(run) &&
	          make_gpu_windows(run) && make_host_windows(run, &steps);

	run->steps.markers = steps.count;
	plumb_host_steps_free(&steps);
	run->steps.newest = run->found.newest;
	return ok ? 0 : PLUMB_ESYSTEM;
}

int
diff_steps_find(struct plumb_diff *diff, struct plumb_error *error)
{
	int code = 0;

	for (uint32_t r = 0; !code && r < diff->count; r++) {
		struct diff_run *run = &diff->runs[r];

		code = plumb_iterations_find(run->profile, NULL, &run->found, error);
		if (!code && plumb_gpu_work_find(run->profile, &run->gpu) < 0)
			code = diff_no_memory(error);
	}
	if (!code && !choose_levels(diff))
		code = diff_no_memory(error);
	for (uint32_t r = 0; !code && r < diff->count; r++)
		if (find_run(&diff->runs[r]) < 0)
			code = diff_no_memory(error);
	return code;
}

static void
windows_free(struct diff_windows *w)
{
	free(w->start);
	free(w->end);
	free(w->busy);
}

void
diff_steps_forget(struct diff_steps *steps)
{
	for (uint32_t i = 0; steps->gpus && i < steps->gpu_count; i++)
		windows_free(&steps->gpus[i]);
	steps->gpu_count = 0;
}

void
diff_steps_free(struct diff_steps *steps)
{
	diff_steps_forget(steps);
	free(steps->gpus);
	windows_free(&steps->host);
}
