/* SPDX-License-Identifier: Apache-2.0 */
/* Hardware counters over time, as tracks of the timeline: each below the streams of its device. */
#include <math.h>
#include <stdlib.h>

#include "base/sort.h"
#include "model/times.h"
#include "view/timeline_private.h"

/* TIME_NS of the process that sampled SERIES, on the clock of all lanes; PLUMB_UNKNOWN. */
static int64_t
time_of(const struct plumb_lanes *l, const struct plumb_counter_series *series, int64_t time_ns)
{
	return l->of_day ? plumb_realtime(l->profile, series->process, time_ns) : time_ns;
}

/* When BIN begins and ends. False: its times are broken. */
static bool
times_of(const struct plumb_lanes *l, const struct plumb_counter_series *series,
         const struct plumb_counter_series_bin *bin, struct plumb_interval_ns *times)
{
	int64_t end;

	if (bin->width_ns <= 0 || __builtin_add_overflow(bin->start_ns, bin->width_ns, &end))
		return false;
	times->start = time_of(l, series, bin->start_ns);
	times->end = time_of(l, series, end);
	return plumb_is_time(times->start, times->end) && times->start < times->end;
}

/* The last lane of streams of each device, by device; malloced. NULL: no memory. */
static uint32_t *
find_last_lanes(const struct plumb_lanes *l)
{
	const struct plumb_profile *p = l->profile;
	uint32_t *last = malloc(p->devices_count * sizeof *last + 1);

	for (uint32_t d = 0; last && d < p->devices_count; d++)
		last[d] = PLUMB_NONE;
	for (uint32_t i = 0; last && i < l->lane_count; i++) {
		const struct plumb_track *track = &p->tracks[l->lanes[i].track];

		if (track->kind == PLUMB_TRACK_STREAM && track->device < p->devices_count)
			last[track->device] = i;
	}
	return last;
}

/* Puts COUNTERS in order of display: by the lane that they are below, then as in the profile. */
static int
order_counters(struct plumb_lanes *l)
{
	uint32_t count = l->counters.count;
	struct plumb_sort_item *order = calloc(2 * (size_t)count + 1, sizeof *order);
	struct plumb_lane_counter *sorted = malloc(count * sizeof *sorted + 1);
	int code = order && sorted ? 0 : PLUMB_ESYSTEM;

	for (uint32_t i = 0; !code && i < count; i++)
		order[i] = (struct plumb_sort_item){ (uint64_t)l->counters.items[i].after << 32 | i,
			                             i };
	if (!code)
		plumb_sort(order, order + count, count);
	for (uint32_t i = 0; !code && i < count; i++)
		sorted[i] = l->counters.items[order[i].index];
	for (uint32_t i = 0; !code && i < count; i++)
		l->counters.items[i] = sorted[i];
	free(order);
	free(sorted);
	return code;
}

int
plumb_lanes_add_counters(struct plumb_lanes *l)
{
	const struct plumb_profile *p = l->profile;
	uint32_t *last = find_last_lanes(l);
	struct plumb_counter_series series;
	int code = last ? 0 : PLUMB_ESYSTEM;

	for (uint32_t at = 0; !code && plumb_counter_series_next(p, &at, &series);) {
		struct plumb_lane_counter counter = { .series = series, .after = PLUMB_NONE };
		struct plumb_lane_counter *place;
		struct plumb_interval_ns first, end;

		if (!series.name)
			continue;
		if (time_of(l, &series, series.bins[0].start_ns) == PLUMB_UNKNOWN)
			code = PLUMB_EINPUT;
		if (code || !times_of(l, &series, &series.bins[0], &first) ||
		    !times_of(l, &series, &series.bins[series.count - 1], &end))
			continue;
		counter.start_ns = first.start;
		counter.end_ns = end.end;
		if (series.device < p->devices_count)
			counter.after = last[series.device];
		place = plumb_vec_add(&l->counters);
		if (place)
			*place = counter;
		else
			code = PLUMB_ESYSTEM;
	}
	free(last);
	return code ? code : order_counters(l);
}

/* Neighbours that fit into a pixel together. */
struct merged {
	int64_t start, end, sampled, many;
	double sum, min, max;
};

static void
add_row(const struct plumb_lanes *l, uint32_t id, const struct merged *m, struct plumb_answer *a)
{
	plumb_answer_integer(a, id);
	plumb_answer_integer(a, m->start - l->base_ns);
	plumb_answer_integer(a, m->end - l->base_ns);
	plumb_answer_number(a, m->sampled > 0 ? m->sum / (double)m->sampled : (double)NAN);
	plumb_answer_number(a, m->min);
	plumb_answer_number(a, m->max);
	plumb_answer_integer(a, m->sampled);
	plumb_answer_integer(a, m->many);
}

static void
merge(struct merged *m, const struct plumb_counter_series_bin *bin, struct plumb_interval_ns times)
{
	if (!m->many)
		*m = (struct merged){ .start = times.start, .min = bin->min, .max = bin->max };
	m->end = times.end;
	m->many++;
	m->sum += bin->mean * (double)bin->sampled_ns;
	m->min = fmin(m->min, bin->min);
	m->max = fmax(m->max, bin->max);
	if (__builtin_add_overflow(m->sampled, bin->sampled_ns, &m->sampled))
		m->sampled = INT64_MAX;
}

static void
add_bins(const struct plumb_lanes_asked *asked, uint32_t c, struct plumb_answer *a)
{
	const struct plumb_lanes *l = asked->lanes;
	const struct plumb_counter_series *series = &l->counters.items[c].series;
	struct merged m = { 0 };

	for (uint32_t i = 0; i < series->count; i++) {
		struct plumb_interval_ns times;

		if (!times_of(l, series, &series->bins[i], &times) || times.end <= asked->from)
			continue;
		if (times.start >= asked->to)
			break;
		if (m.many && (double)times.end - (double)m.start > (double)asked->pixel) {
			add_row(l, plumb_lane_counter_id(l, c), &m, a);
			m.many = 0;
		}
		merge(&m, &series->bins[i], times);
	}
	if (m.many)
		add_row(l, plumb_lane_counter_id(l, c), &m, a);
}

void
plumb_lanes_add_counter_bins(const struct plumb_lanes_asked *asked, struct plumb_answer *answer)
{
	for (uint32_t c = 0; c < asked->lanes->counters.count; c++)
		if (asked->wanted[asked->lanes->lane_count + c])
			add_bins(asked, c, answer);
}
