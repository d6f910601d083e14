/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/iterations_count.h"

#include <math.h>
#include <stdlib.h>

#include "analyze/statistic.h"
#include "model/window.h"

/* How often each kernel (by frame) came in the LEVEL's iterations, SEEN, and in ALL on the
 * track. */
static void
count_kernels(const struct plumb_profile *p, const struct plumb_gpu_work *work,
              const struct plumb_iteration_track *track, const struct plumb_iteration_level *level,
              uint64_t *seen, uint64_t *all)
{
	struct plumb_gpu_range range = plumb_gpu_work_of(work, track->track);
	uint32_t at = 0;

	for (uint32_t i = range.first; i < range.end; i++) {
		const struct plumb_span *w = &work->spans[i];

		while (at < level->count && level->items[at].end_ns <= w->start_ns)
			at++;
		if (at < level->count && level->items[at].start_ns <= w->start_ns)
			seen[p->contexts[w->context].frame]++;
	}
	for (uint32_t i = 0; i < p->values_count; i++)
		if (p->values[i].metric == PLUMB_METRIC_GPU_TIME &&
		    p->values[i].track == track->track)
			all[p->contexts[p->values[i].context].frame] += p->values[i].count;
}

double
plumb_iterations_count(const struct plumb_profile *p, const struct plumb_gpu_work *work,
                       const struct plumb_iteration_track *track,
                       const struct plumb_iteration_level *level)
{
	uint32_t frames = p->frames_count, n = 0;
	uint64_t *seen = calloc(frames + (size_t)1, sizeof *seen);
	uint64_t *all = calloc(frames + (size_t)1, sizeof *all);
	double *counts = calloc(frames + (size_t)1, sizeof *counts);
	double iterations = NAN;

	if (seen && all && counts) {
		count_kernels(p, work, track, level, seen, all);
		for (uint32_t f = 0; f < frames; f++)
			if (seen[f] && all[f] >= seen[f])
				counts[n++] = (double)all[f] * level->count / (double)seen[f];
		/* Where values tell nothing, those that were seen. */
		iterations = n ? plumb_percentile(counts, n, 50) : level->count;
		/* Nearly whole where an iteration lacks a kernel or two. */
		if (fabs(iterations - round(iterations)) < 0.02 * iterations)
			iterations = round(iterations);
	}
	free(seen);
	free(all);
	free(counts);
	return iterations;
}

/* ---- windows ---- */

#define SEEN_LEAST 4 /* iterations that make a loop sure */

static bool
is_wanted(const struct plumb_window *w, uint32_t number)
{
	return w->kind == PLUMB_WINDOW_LOOP && w->number == number && w->iterations <= 0;
}

/* For the window's rows of the processes whose GPU work has the loop. False: no memory. */
static bool
take_counts(struct plumb_profile *profile, uint32_t number, const struct plumb_profile *window,
            const struct plumb_gpu_work *work, const struct plumb_iterations *found)
{
	for (uint32_t t = 0; t < found->count; t++) {
		const struct plumb_iteration_track *track = &found->tracks[t];
		double count;

		if (!track->level_count || track->levels[0].count < SEEN_LEAST)
			continue;
		count = plumb_iterations_count(window, work, track, &track->levels[0]);
		if (isnan(count))
			return false;
		for (uint32_t i = 0; i < profile->windows_count; i++)
			if (is_wanted(&profile->windows[i], number) &&
			    profile->windows[i].process == track->process && count < 9e18)
				profile->windows[i].iterations = llround(count);
	}
	return true;
}

static int
count_loop(struct plumb_profile *profile, uint32_t number, struct plumb_error *error)
{
	const struct plumb_window_choice choice = { PLUMB_WINDOW_LOOP, number };
	struct plumb_iterations found = { 0 };
	struct plumb_gpu_work work = { 0 };
	struct plumb_profile window;
	int code = plumb_window_profile(profile, &choice, &window, error);

	if (!code)
		code = plumb_iterations_find(&window, NULL, &found, error);
	if (!code && (plumb_gpu_work_find(&window, &work) < 0 ||
	              !take_counts(profile, number, &window, &work, &found)))
		code = plumb_fail_memory(error, "for the windows");
	plumb_gpu_work_free(&work);
	plumb_iterations_free(&found);
	plumb_profile_free(&window);
	return code;
}

int
plumb_windows_count(struct plumb_profile *profile, struct plumb_error *error)
{
	uint32_t done = 0; /* numbers so far; a run has few loops */
	int code = 0;

	if (!profile->work_count && !profile->spans_count)
		return 0;
	for (uint32_t i = 0; !code && i < profile->windows_count; i++) {
		uint32_t number = profile->windows[i].number;
		if (number > done && is_wanted(&profile->windows[i], number)) {
			code = count_loop(profile, number, error);
			done = number;
		}
	}
	return code;
}
