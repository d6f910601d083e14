/* SPDX-License-Identifier: Apache-2.0 */
#include "export/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "model/order.h"
#include "model/times.h"

/* ---- spans ---- */

static bool
gather_spans(struct plumb_timeline *p)
{
	const struct plumb_profile *profile = p->profile;
	uint64_t most = (uint64_t)profile->spans_count + profile->work_count;
	bool *traced = calloc((size_t)profile->tracks_count + 1, sizeof *traced);

	p->spans = most < UINT32_MAX ? malloc((size_t)most * sizeof *p->spans + 1) : NULL;
	if (!p->spans || !traced) {
		free(traced);
		return false;
	}
	/* A track is traced if it has spans. */
	for (uint32_t i = 0; i < profile->spans_count; i++)
		traced[profile->spans[i].track] = true;
	if (profile->spans_count)
		memcpy(p->spans, profile->spans, profile->spans_count * sizeof *p->spans);
	p->spans_count = profile->spans_count;
	for (uint32_t i = 0; i < profile->work_count; i++) {
		const struct plumb_work_item *w = &profile->work[i];
		if (!traced[w->track])
			p->spans[p->spans_count++] =
				(struct plumb_span){ w->context, w->track, w->start_ns, w->end_ns,
				                     0 };
	}
	free(traced);
	for (uint32_t i = 0; i < p->spans_count; i++)
		if (plumb_timeline_drawn(&p->spans[i]))
			p->spans[i].bytes = 0; /* no size that can be */
	return plumb_order_spans(p->spans, p->spans_count) == 0;
}

/* Python frames and modules are among the spans: they enclose them. */
static bool
add_stacks(struct plumb_timeline *p)
{
	struct plumb_stacks stacks = { 0 };
	bool done = plumb_stacks_of_spans(&stacks, p->profile, p->spans, p->spans_count);
	uint64_t count = (uint64_t)p->spans_count + stacks.slices.count;
	struct plumb_span *grown = done && count < UINT32_MAX
	                                   ? realloc(p->spans, (size_t)count * sizeof *p->spans + 1)
	                                   : NULL;

	if (grown) {
		p->spans = grown;
		if (stacks.slices.count)
			memcpy(grown + p->spans_count, stacks.slices.items,
			       stacks.slices.count * sizeof *grown);
		p->spans_count = (uint32_t)count;
	}
	plumb_stacks_free(&stacks);
	return grown && plumb_order_spans(p->spans, p->spans_count) == 0 &&
	       plumb_stacks_of_samples(&p->samples, p->profile);
}

/* ---- times ---- */

int64_t
plumb_timeline_time(struct plumb_timeline *p, uint32_t process, int64_t time)
{
	int64_t real;

	if (!p->of_day || time == PLUMB_UNKNOWN)
		return time;
	real = plumb_realtime(p->profile, process, time);
	p->no_time |= real == PLUMB_UNKNOWN;
	return real == PLUMB_UNKNOWN ? time : real;
}

int64_t
plumb_timeline_pid(const struct plumb_profile *profile, uint32_t process)
{
	int64_t pid = profile->processes[process].pid;

	if (pid == PLUMB_UNKNOWN || pid <= 0 || pid > 9999999)
		return INT64_C(1000000000) + process;
	for (uint32_t i = 0; i < process; i++)
		if (profile->processes[i].pid == pid)
			return (int64_t)(process % 200 + 1) * 10000000 + pid;
	return pid;
}

/* ---- arrows ---- */

enum { ARROW_ENDS = 1, ARROW_DRAWN = 2 };

static uint32_t
find_launch(const struct plumb_timeline *p, const struct plumb_span *span)
{
	return plumb_launch_place(&p->launches, p->profile->tracks[span->track].process,
	                          span->correlation);
}

static bool
gather_launches(struct plumb_timeline *p)
{
	if (plumb_launches_find(p->profile, PLUMB_NONE, &p->launches) < 0)
		return false;
	p->arrows = calloc((size_t)p->launches.count + 1, 1);
	for (uint32_t i = 0; p->arrows && i < p->spans_count; i++) {
		const struct plumb_span *s = &p->spans[i];
		uint32_t launch = find_launch(p, s);
		if (launch != PLUMB_NONE && p->profile->tracks[s->track].kind == PLUMB_TRACK_STREAM)
			p->arrows[launch] = ARROW_ENDS;
	}
	return p->arrows;
}

uint32_t
plumb_timeline_arrow(struct plumb_timeline *p, const struct plumb_span *span)
{
	bool stream = p->profile->tracks[span->track].kind == PLUMB_TRACK_STREAM;
	uint32_t launch = find_launch(p, span);

	if (launch == PLUMB_NONE || !p->arrows[launch] ||
	    (stream && p->arrows[launch] & ARROW_DRAWN))
		return 0;
	if (stream)
		p->arrows[launch] |= ARROW_DRAWN;
	return launch + 1;
}

/* ---- the whole ---- */

bool
plumb_timeline_open(struct plumb_timeline *timeline, const struct plumb_profile *profile)
{
	*timeline = (struct plumb_timeline){ .profile = profile,
		                             .of_day = plumb_is_of_several_hosts(profile) };
	return gather_spans(timeline) && add_stacks(timeline) && gather_launches(timeline);
}

void
plumb_timeline_free(struct plumb_timeline *timeline)
{
	plumb_vec_free(&timeline->launches);
	plumb_stacks_free(&timeline->samples);
	free(timeline->arrows);
	timeline->arrows = NULL;
	free(timeline->spans);
	timeline->spans = NULL;
}

int
plumb_timeline_no_time(struct plumb_error *error)
{
	return plumb_fail(error, PLUMB_EINPUT,
	                  "the clocks of the hosts cannot be aligned, because a process did not "
	                  "record the time of day; export the profile of each rank on its own");
}

int
plumb_timeline_check(const struct plumb_profile *profile, struct plumb_error *error)
{
	if (profile->spans_count || profile->work_count || profile->cpu_samples_count)
		return 0;
	return plumb_fail(error, PLUMB_EEMPTY,
	                  "this profile has only totals, no timeline; record with plumb run "
	                  "--trace");
}
