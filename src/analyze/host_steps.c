/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/host_steps.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/iterations.h"
#include "model/framework/framework.h"

/* Which ranges are markers. */
struct marker {
	int rank;          /* as plumb_host_steps_marker has it */
	uint32_t frame;    /* PLUMB_NONE for steps, whose names may have numbers */
	const char *steps; /* their name without a number */
};

int
plumb_host_steps_marker(const struct plumb_profile *p, uint32_t context)
{
	const struct plumb_frame *frame = plumb_context_frame(p, context);
	const char *name = plumb_text(p, frame->name);

	if (frame->kind != PLUMB_FRAME_RANGE || !name)
		return 0;
	if (plumb_framework_step(name))
		return 2;
	return plumb_framework_range(name, strlen(name)) == PLUMB_PURPOSE_OPTIMIZER_STEP;
}

/* Calls of the marker on the thread that has most of them. */
static bool
count_calls(const struct plumb_profile *p, struct marker *marker, double *count)
{
	double best = 0, *steps = calloc(p->tracks_count + (size_t)1, sizeof *steps);

	*marker = (struct marker){ .frame = PLUMB_NONE };
	for (uint32_t i = 0; steps && i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];
		int own = v->metric == PLUMB_METRIC_OP_CALLS
		                  ? plumb_host_steps_marker(p, v->context)
		                  : 0;

		if (own < marker->rank || !own || v->track >= p->tracks_count)
			continue;
		if (own == 2)
			steps[v->track] += (double)v->sum;
		double calls = own == 2 ? steps[v->track] : (double)v->sum;
		if (own > marker->rank || calls > best) {
			best = calls;
			marker->frame = own == 2 ? PLUMB_NONE : p->contexts[v->context].frame;
			if (own == 2)
				marker->steps = plumb_framework_step(
					plumb_text(p, plumb_context_frame(p, v->context)->name));
		}
		marker->rank = own;
	}
	*count = marker->rank ? best : NAN;
	free(steps);
	return steps;
}

static bool
is_marker(const struct plumb_profile *p, const struct plumb_span *span, const struct marker *marker)
{
	if (p->tracks[span->track].kind != PLUMB_TRACK_THREAD)
		return false;
	if (marker->rank == 2)
		return plumb_host_steps_marker(p, span->context) == 2;
	return p->contexts[span->context].frame == marker->frame;
}

/* The thread with most of the marker's spans; *COUNT: how many. */
static bool
choose_track(const struct plumb_profile *p, const struct marker *marker, uint32_t *track,
             uint32_t *count)
{
	uint32_t *counts = calloc(p->tracks_count + (size_t)1, sizeof *counts);

	*track = 0;
	for (uint32_t i = 0; counts && i < p->spans_count; i++)
		if (is_marker(p, &p->spans[i], marker) &&
		    ++counts[p->spans[i].track] > counts[*track])
			*track = p->spans[i].track;
	*count = counts ? counts[*track] : 0;
	free(counts);
	return counts;
}

/* Spans of a marker with anything in them. */
static bool
find_starts(const struct plumb_profile *p, const struct marker *marker,
            struct plumb_host_steps *steps)
{
	uint32_t track, count, n = 0;
	double empty = 0;

	if (!choose_track(p, marker, &track, &count))
		return false;
	if (!count)
		return true;
	steps->start = malloc(count * sizeof *steps->start);
	for (uint32_t i = 0; steps->start && i < p->spans_count; i++) {
		const struct plumb_span *s = &p->spans[i];
		bool holds =
			i + 1 < p->spans_count && s[1].track == track && s[1].start_ns < s->end_ns;

		if (s->track != track || !is_marker(p, s, marker))
			continue;
		empty += !holds;
		if (holds && (!n || s->start_ns > steps->start[n - 1]))
			steps->start[n++] = s->start_ns;
	}
	steps->track = track;
	steps->starts = n;
	if (n && steps->count > empty)
		steps->count -= empty;
	return steps->start;
}

bool
plumb_host_steps_marked(const struct plumb_profile *p, struct plumb_host_steps *steps)
{
	struct marker marker;

	*steps = (struct plumb_host_steps){ .count = NAN, .track = PLUMB_NONE };
	if (!count_calls(p, &marker, &steps->count))
		return false;
	if (marker.rank)
		snprintf(steps->name, sizeof steps->name, "%s",
		         marker.rank == 2 ? marker.steps : plumb_frame_label(p, marker.frame));
	return !marker.rank || !p->spans_count || find_starts(p, &marker, steps);
}

/* ---- without marks ---- */

static bool
has_gpu_work(const struct plumb_profile *p)
{
	for (uint32_t t = 0; t < p->tracks_count; t++)
		if (p->tracks[t].kind == PLUMB_TRACK_STREAM &&
		    plumb_profile_first_span(p, t) < plumb_profile_first_span(p, t + 1))
			return true;
	return p->work_count > 0;
}

/* Each thread has a main loop. This is the longest of them; NULL if no thread has a loop. */
static const struct plumb_iteration_loop *
find_main(const struct plumb_iterations *found, uint32_t *track)
{
	const struct plumb_iteration_loop *best = NULL;

	for (uint32_t t = 0; t < found->count; t++) {
		const struct plumb_iteration_track *own = &found->tracks[t];
		const struct plumb_iteration_loop *loop =
			own->loop_count ? &own->loops[own->main_loop] : NULL;
		if (!loop || (best && loop->time_ns <= best->time_ns))
			continue;
		best = loop;
		*track = own->track;
	}
	return best;
}

static bool
take_loop(const struct plumb_iteration_loop *loop, uint32_t track, struct plumb_host_steps *steps)
{
	const struct plumb_iteration_level *level = &loop->levels[0];

	plumb_host_steps_free(steps);
	steps->start = malloc(((size_t)level->count + 1) * sizeof *steps->start);
	if (!steps->start)
		return false;
	for (uint32_t i = 0; i < level->count; i++)
		steps->start[i] = level->items[i].start_ns;
	steps->starts = level->count;
	steps->count = level->count;
	steps->track = track;
	memcpy(steps->name, loop->marker, sizeof steps->name);
	return true;
}

/* Do the marks of STEPS say the same as LOOP, which has none? */
static bool
is_named(const struct plumb_iteration_loop *loop, const struct plumb_host_steps *steps)
{
	return !*loop->marker && *steps->name && fabs(steps->count - loop->levels[0].count) <= 1;
}

bool
plumb_host_steps_find(const struct plumb_profile *p, struct plumb_host_steps *steps)
{
	const struct plumb_iteration_loop *loop;
	struct plumb_iterations found;
	uint32_t track = PLUMB_NONE;
	bool ok;

	if (!plumb_host_steps_marked(p, steps))
		return false;
	if (!p->spans_count || has_gpu_work(p) || plumb_framework_step(steps->name))
		return true;
	ok = plumb_iterations_find_host(p, &found, NULL) == 0;
	loop = ok ? find_main(&found, &track) : NULL;
	if (loop && !is_named(loop, steps))
		ok = take_loop(loop, track, steps);
	plumb_iterations_free(&found);
	return ok;
}

void
plumb_host_steps_free(struct plumb_host_steps *steps)
{
	free(steps->start);
	steps->start = NULL;
}
