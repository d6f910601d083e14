/* SPDX-License-Identifier: Apache-2.0 */
#include "export/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "export/times.h"
#include "model/order.h"

/* ---- spans ---- */

/* Does a track have spans of the trace? They are ordered by track. */
static bool
is_traced(const struct plumb_profile *profile, uint32_t track)
{
	uint32_t first = plumb_profile_first_span(profile, track);

	return first < profile->spans_count && profile->spans[first].track == track;
}

static bool
gather(struct plumb_timeline *p)
{
	const struct plumb_profile *profile = p->profile;
	uint64_t most = (uint64_t)profile->spans_count + profile->work_count;
	bool *traced = calloc((size_t)profile->tracks_count + 1, sizeof *traced);

	p->spans = most < UINT32_MAX ? malloc((size_t)most * sizeof *p->spans + 1) : NULL;
	if (!p->spans || !traced) {
		free(traced);
		return false;
	}
	for (uint32_t t = 0; t < profile->tracks_count; t++)
		traced[t] = is_traced(profile, t);
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
	return plumb_order_spans(p->spans, p->spans_count) == 0;
}

/* ---- times ---- */

static bool
of_several_hosts(const struct plumb_profile *profile)
{
	for (uint32_t i = 1; i < profile->processes_count; i++)
		if (profile->processes[i].host != profile->processes[0].host)
			return true;
	return false;
}

int64_t
plumb_timeline_time(struct plumb_timeline *p, uint32_t process, int64_t time)
{
	int64_t real;

	if (!p->of_day || time == PLUMB_UNKNOWN)
		return time;
	real = plumb_export_realtime(p->profile, process, time);
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

static int
by_launch(const void *x, const void *y)
{
	const struct plumb_launch *a = x, *b = y;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return (a->correlation > b->correlation) - (a->correlation < b->correlation);
}

static struct plumb_launch *
find_launch(const struct plumb_timeline *p, const struct plumb_span *span)
{
	struct plumb_launch key = { .correlation = span->correlation,
		                    .process = p->profile->tracks[span->track].process };

	if (!span->correlation || !p->launches.count)
		return NULL;
	return bsearch(&key, p->launches.items, p->launches.count, sizeof key, by_launch);
}

static bool
gather_launches(struct plumb_timeline *p)
{
	for (uint32_t i = 0; i < p->spans_count; i++) {
		const struct plumb_span *s = &p->spans[i];
		const struct plumb_track *t = &p->profile->tracks[s->track];
		if (!s->correlation || t->kind != PLUMB_TRACK_THREAD)
			continue;
		struct plumb_launch *launch = plumb_vec_add(&p->launches);
		if (!launch)
			return false;
		launch->correlation = s->correlation;
		launch->process = t->process;
	}
	if (p->launches.count)
		qsort(p->launches.items, p->launches.count, sizeof *p->launches.items, by_launch);
	for (uint32_t i = 0; i < p->spans_count; i++) {
		const struct plumb_span *s = &p->spans[i];
		struct plumb_launch *launch = find_launch(p, s);
		if (launch && p->profile->tracks[s->track].kind == PLUMB_TRACK_STREAM)
			launch->work = true;
	}
	return true;
}

uint32_t
plumb_timeline_arrow(struct plumb_timeline *p, const struct plumb_span *span)
{
	bool stream = p->profile->tracks[span->track].kind == PLUMB_TRACK_STREAM;
	struct plumb_launch *launch = find_launch(p, span);

	if (!launch || !launch->work || (stream && launch->drawn))
		return 0;
	if (stream)
		launch->drawn = true;
	return (uint32_t)(launch - p->launches.items) + 1;
}

/* ---- the whole ---- */

bool
plumb_timeline_open(struct plumb_timeline *timeline, const struct plumb_profile *profile)
{
	*timeline =
		(struct plumb_timeline){ .profile = profile, .of_day = of_several_hosts(profile) };
	return gather(timeline) && gather_launches(timeline);
}

void
plumb_timeline_free(struct plumb_timeline *timeline)
{
	plumb_vec_free(&timeline->launches);
	free(timeline->spans);
	timeline->spans = NULL;
}

int
plumb_timeline_no_time(struct plumb_error *error)
{
	return plumb_fail(error, PLUMB_EINPUT,
	                  "the clocks of several hosts cannot be put on one line: a process "
	                  "has no reading of the time of day; export each rank's own profile");
}

int
plumb_timeline_check(const struct plumb_profile *profile, struct plumb_error *error)
{
	if (profile->spans_count || profile->work_count)
		return 0;
	return plumb_fail(error, PLUMB_EEMPTY,
	                  "this profile has totals only and no time line; record with plumb "
	                  "run --trace");
}
