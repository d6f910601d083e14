/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes: which spans they have, what they are called, and which table is asked for. */
#include "view/timeline.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "model/times.h"
#include "view/timeline_private.h"
#include "view/view.h"

const char *const plumb_lanes_table_names[PLUMB_LANES_TABLES] = {
	"timeline.tracks", "timeline.spans", "timeline.bands",
	"timeline.arrows", "timeline.sum",   "timeline.counters",
};

int64_t
plumb_lane_time(const struct plumb_lanes *l, uint32_t track, int64_t time_ns)
{
	if (!l->of_day)
		return time_ns;
	return plumb_realtime(l->profile, l->profile->tracks[track].process, time_ns);
}

struct plumb_span
plumb_lane_span(const struct plumb_lanes *l, uint32_t source)
{
	const struct plumb_profile *p = l->profile;
	struct plumb_span span = { 0 };

	if (source < p->spans_count) {
		span = p->spans[source];
	} else if (source - p->spans_count >= p->work_count) {
		span = l->sampled.items[source - p->spans_count - p->work_count];
	} else {
		const struct plumb_work_item *w = &p->work[source - p->spans_count];

		span.context = w->context;
		span.track = w->track;
		span.start_ns = w->start_ns;
		span.end_ns = w->end_ns;
	}
	span.start_ns = plumb_lane_time(l, span.track, span.start_ns);
	span.end_ns = plumb_lane_time(l, span.track, span.end_ns);
	return span;
}

/* ---- making ---- */

/* The newest work of tracks without spans, by track: SOURCES gets it, and FIRST where that of each
 * track begins, and one more. */
static void
list_newest(const struct plumb_profile *p, uint32_t *first, uint32_t *sources)
{
	memset(first, 0, ((size_t)p->tracks_count + 2) * sizeof *first);
	for (uint32_t i = 0; i < p->work_count; i++)
		first[p->work[i].track + 2]++;
	for (uint32_t t = 0; t < p->tracks_count; t++)
		first[t + 2] += first[t + 1];
	for (uint32_t i = 0; i < p->work_count; i++)
		sources[first[p->work[i].track + 1]++] = p->spans_count + i;
}

/* Threads before streams, by rank, then process. */
static uint64_t
order_of(const struct plumb_profile *p, uint32_t track)
{
	const struct plumb_track *t = &p->tracks[track];
	const struct plumb_process *process =
		t->process < p->processes_count ? &p->processes[t->process] : NULL;
	uint64_t rank = process && process->rank >= 0 && process->rank < 0xfffff
	                        ? (uint64_t)process->rank
	                        : 0xfffff;

	return rank << 40 | (uint64_t)(t->process & 0xffffff) << 8 | (t->kind & 0xff);
}

static int
make_arrays(struct plumb_lanes *l, uint64_t room)
{
	const struct plumb_profile *p = l->profile;

	if (room >= PLUMB_NONE)
		return PLUMB_ESYSTEM;
	l->lanes = calloc(2 * (size_t)p->tracks_count + 1, sizeof *l->lanes);
	l->lane_of = malloc((2 * (size_t)p->tracks_count + 1) * sizeof *l->lane_of);
	l->start = malloc((size_t)room * sizeof *l->start + 1);
	l->end = malloc((size_t)room * sizeof *l->end + 1);
	l->source = malloc((size_t)room * sizeof *l->source + 1);
	if (!l->lanes || !l->lane_of || !l->start || !l->end || !l->source)
		return PLUMB_ESYSTEM;
	memset(l->lane_of, 0xff, (2 * (size_t)p->tracks_count + 1) * sizeof *l->lane_of);
	return 0;
}

static int
add_sampled_lane(struct plumb_lanes *l, uint32_t track, uint32_t *sources)
{
	const struct plumb_profile *p = l->profile;
	struct plumb_lane *lane = &l->lanes[l->lane_count];
	uint32_t first = l->sampled_first[track], count = l->sampled_first[track + 1] - first;

	if (!count)
		return 0;
	if (plumb_lane_time(l, track, 0) == PLUMB_UNKNOWN)
		return PLUMB_EINPUT;
	for (uint32_t i = 0; i < count; i++)
		sources[i] = p->spans_count + p->work_count + first + i;
	lane->id = p->tracks_count + track;
	lane->track = track;
	lane->sampled = true;
	l->lane_of[lane->id] = l->lane_count++;
	return plumb_lane_fill(l, lane, sources, count);
}

/* Makes the lane of TRACK from its own spans, else from COUNT of its newest work. SOURCES is
 * scratch room for its spans. */
static int
add_lane(struct plumb_lanes *l, uint32_t track, const uint32_t *newest, uint32_t count,
         uint32_t *sources)
{
	const struct plumb_profile *p = l->profile;
	uint32_t first = plumb_profile_first_span(p, track), kept = 0;
	uint32_t end = plumb_profile_first_span(p, track + 1);
	struct plumb_lane *lane = &l->lanes[l->lane_count];
	bool traced = first < end;

	if ((traced || count) && plumb_lane_time(l, track, 0) == PLUMB_UNKNOWN)
		return PLUMB_EINPUT;
	for (uint32_t i = 0; i < (traced ? end - first : count); i++) {
		uint32_t source = traced ? first + i : newest[i];
		struct plumb_interval_ns times = plumb_lane_times(l, source);

		if (plumb_is_time(times.start, times.end))
			sources[kept++] = source;
		else
			l->left_out++;
	}
	if (!kept)
		return 0;
	lane->id = lane->track = track;
	lane->newest = !traced;
	l->lane_of[track] = l->lane_count++;
	return plumb_lane_fill(l, lane, sources, kept);
}

static int
fill_lanes(struct plumb_lanes *l)
{
	const struct plumb_profile *p = l->profile;
	size_t one = p->spans_count > p->work_count ? p->spans_count : p->work_count;
	size_t most = one > l->sampled.count ? one : l->sampled.count;
	struct plumb_sort_item *order = calloc(2 * ((size_t)p->tracks_count + 1), sizeof *order);
	uint32_t *first = malloc(((size_t)p->tracks_count + 2) * sizeof *first);
	uint32_t *newest = malloc(p->work_count * sizeof *newest + 1);
	uint32_t *sources = malloc(most * sizeof *sources + 1);
	int code = order && first && newest && sources ? 0 : PLUMB_ESYSTEM;

	if (!code)
		list_newest(p, first, newest);
	for (uint32_t t = 0; !code && t < p->tracks_count; t++)
		order[t] = (struct plumb_sort_item){ order_of(p, t), t };
	if (!code)
		plumb_sort(order, order + p->tracks_count, p->tracks_count);
	for (uint32_t i = 0; !code && i < p->tracks_count; i++) {
		uint32_t t = order[i].index;

		code = add_lane(l, t, &newest[first[t]], first[t + 1] - first[t], sources);
		if (!code)
			code = add_sampled_lane(l, t, sources);
	}
	free(order);
	free(first);
	free(newest);
	free(sources);
	return code;
}

static void
find_base(struct plumb_lanes *l)
{
	l->base_ns = l->profile->run.start_ns;
	if (!l->of_day && plumb_is_time(l->base_ns, l->base_ns) && l->base_ns > 0)
		return;
	l->base_ns = l->lane_count || l->counters.count ? INT64_MAX : 0;
	for (uint32_t i = 0; i < l->lane_count; i++)
		if (l->lanes[i].start_ns < l->base_ns)
			l->base_ns = l->lanes[i].start_ns;
	for (uint32_t i = 0; i < l->counters.count; i++)
		if (l->counters.items[i].start_ns < l->base_ns)
			l->base_ns = l->counters.items[i].start_ns;
}

struct plumb_lanes *
plumb_lanes_make(const struct plumb_profile *profile, struct plumb_error *error)
{
	struct plumb_lanes *l = calloc(1, sizeof *l);

	int code = PLUMB_ESYSTEM;

	if (l) {
		l->profile = profile;
		l->of_day = plumb_is_of_several_hosts(profile);
		code = plumb_lanes_add_samples(l);
	}
	if (!code) {
		code = make_arrays(l, (uint64_t)profile->spans_count + profile->work_count +
		                              l->sampled.count);
	}
	if (!code)
		code = fill_lanes(l);
	if (!code)
		code = plumb_lanes_add_counters(l);
	if (code) {
		plumb_lanes_free(l);
		if (code == PLUMB_EINPUT)
			plumb_fail(error, code,
			           "the clocks of the hosts cannot be aligned, because a process "
			           "did not record the time of day; view the profile of each rank "
			           "on its own");
		else
			plumb_fail_memory(error, "for the timeline");
		return NULL;
	}
	find_base(l);
	return l;
}

void
plumb_lanes_free(struct plumb_lanes *l)
{
	if (!l)
		return;
	free(l->lanes);
	free(l->lane_of);
	free(l->sampled_first);
	plumb_vec_free(&l->sampled);
	plumb_vec_free(&l->counters);
	free(l->rows);
	free(l->start);
	free(l->end);
	free(l->source);
	plumb_vec_free(&l->launches);
	for (int part = 0; part < PLUMB_LANES_PARTS; part++)
		plumb_lanes_found_free(l->parts[part]);
	free(l);
}

uint32_t
plumb_lanes_count(const struct plumb_lanes *l)
{
	return l->count;
}

uint32_t
plumb_lanes_counters(const struct plumb_lanes *l)
{
	return l->counters.count;
}

size_t
plumb_lanes_bytes(const struct plumb_lanes *l)
{
	const struct plumb_lanes_found *names = l->parts[PLUMB_LANES_NAMES];
	size_t each = 2 * sizeof *l->start + sizeof *l->source;
	size_t room = (size_t)l->profile->spans_count + l->profile->work_count + l->sampled.count;
	size_t bytes = sizeof *l + room * each + l->row_room * sizeof *l->rows +
	               l->lane_count * sizeof *l->lanes +
	               l->sampled.capacity * sizeof *l->sampled.items +
	               l->counters.capacity * sizeof *l->counters.items +
	               l->launches.capacity * sizeof *l->launches.items;

	if (names)
		bytes += l->count * (sizeof *names->by_name + sizeof *names->sum) +
		         names->name_room * sizeof *names->names;
	return bytes;
}

/* ---- parts ---- */

struct plumb_lanes_found *
plumb_lanes_find(const struct plumb_lanes *l, enum plumb_lanes_part part)
{
	struct plumb_lanes_found *found = calloc(1, sizeof *found);

	if (!found)
		return NULL;
	found->part = part;
	if (part == PLUMB_LANES_NAMES ? plumb_lanes_find_names(l, found)
	                              : plumb_lanes_find_iterations(l, found))
		return found;
	plumb_lanes_found_free(found);
	return NULL;
}

void
plumb_lanes_found_free(struct plumb_lanes_found *found)
{
	if (!found)
		return;
	free(found->by_name);
	free(found->sum);
	free(found->names);
	free(found->first_name);
	plumb_iterations_free(&found->gpu);
	plumb_iterations_free(&found->host);
	free(found);
}

void
plumb_lanes_give(struct plumb_lanes *l, struct plumb_lanes_found *found)
{
	if (l->parts[found->part])
		plumb_lanes_found_free(found);
	else
		l->parts[found->part] = found;
}

enum plumb_lanes_part
plumb_lanes_lacks(const struct plumb_lanes *l, enum plumb_lanes_table table)
{
	enum plumb_lanes_part part = table == PLUMB_LANES_SUM     ? PLUMB_LANES_NAMES
	                             : table == PLUMB_LANES_BANDS ? PLUMB_LANES_ITERATIONS
	                                                          : PLUMB_LANES_PARTS;

	return part < PLUMB_LANES_PARTS && !l->parts[part] ? part : PLUMB_LANES_PARTS;
}

static int
find_missing(struct plumb_lanes *l, enum plumb_lanes_table table)
{
	enum plumb_lanes_part part = plumb_lanes_lacks(l, table);
	struct plumb_lanes_found *found;

	if (part == PLUMB_LANES_PARTS)
		return 0;
	found = plumb_lanes_find(l, part);
	if (found)
		plumb_lanes_give(l, found);
	return found ? 0 : PLUMB_ESYSTEM;
}

/* ---- tracks ---- */

static void
name_track(const struct plumb_profile *p, const struct plumb_track *t, char *text, size_t size)
{
	const char *own = plumb_text(p, t->name);
	int64_t ordinal =
		t->device < p->devices_count ? p->devices[t->device].ordinal : PLUMB_UNKNOWN;
	char device[40] = "";

	if (ordinal != PLUMB_UNKNOWN)
		snprintf(device, sizeof device, " on device %" PRId64, ordinal);
	if (t->kind == PLUMB_TRACK_STREAM && t->stream != PLUMB_UNKNOWN)
		snprintf(text, size, "stream %" PRId64 "%s", t->stream, device);
	else if (t->kind == PLUMB_TRACK_STREAM)
		snprintf(text, size, "stream%s", device);
	else if (t->tid != PLUMB_UNKNOWN)
		snprintf(text, size, "thread %" PRId64 "%s%.80s%s", t->tid, own ? " (" : "",
		         own ? own : "", own ? ")" : "");
	else
		snprintf(text, size, "thread %.80s", own ? own : "?");
}

static void
add_counter_track(const struct plumb_lanes *l, uint32_t c, struct plumb_answer *a)
{
	const struct plumb_profile *p = l->profile;
	const struct plumb_lane_counter *counter = &l->counters.items[c];
	const struct plumb_counter_series *series = &counter->series;
	const struct plumb_process *process =
		series->process < p->processes_count ? &p->processes[series->process] : NULL;
	int64_t ordinal = series->device < p->devices_count ? p->devices[series->device].ordinal
	                                                    : PLUMB_UNKNOWN;
	char name[200];

	if (ordinal != PLUMB_UNKNOWN)
		snprintf(name, sizeof name, "%.120s on device %" PRId64, series->name, ordinal);
	else
		snprintf(name, sizeof name, "%.120s", series->name);
	plumb_answer_integer(a, plumb_lane_counter_id(l, c));
	plumb_answer_integer(a, process ? process->rank : PLUMB_UNKNOWN);
	plumb_answer_integer(a, process ? process->pid : PLUMB_UNKNOWN);
	plumb_answer_text(a, "counter");
	plumb_answer_copy(a, name);
	plumb_answer_integer(a, 1);
	plumb_answer_integer(a, counter->start_ns - l->base_ns);
	plumb_answer_integer(a, counter->end_ns - l->base_ns);
	plumb_answer_integer(a, PLUMB_UNKNOWN);
	plumb_answer_text(a, "counters");
	plumb_answer_text(a, series->name);
	plumb_answer_text(a, series->unit);
	plumb_answer_integer(a, ordinal);
}

static void
add_tracks(const struct plumb_lanes *l, struct plumb_answer *a)
{
	const struct plumb_profile *p = l->profile;
	uint32_t counter = 0;

	for (uint32_t i = 0; i < l->lane_count; i++) {
		const struct plumb_lane *lane = &l->lanes[i];
		const struct plumb_track *t = &p->tracks[lane->track];
		const struct plumb_process *process =
			t->process < p->processes_count ? &p->processes[t->process] : NULL;
		char own[160], name[180];

		name_track(p, t, own, sizeof own);
		snprintf(name, sizeof name, "%s%s", lane->sampled ? "samples of " : "", own);
		plumb_answer_integer(a, lane->id);
		plumb_answer_integer(a, process ? process->rank : PLUMB_UNKNOWN);
		plumb_answer_integer(a, process ? process->pid : PLUMB_UNKNOWN);
		plumb_answer_text(a, lane->sampled                   ? "samples"
		                     : t->kind == PLUMB_TRACK_STREAM ? "stream"
		                                                     : "thread");
		plumb_answer_copy(a, name);
		plumb_answer_integer(a, lane->row_count);
		plumb_answer_integer(a, lane->start_ns - l->base_ns);
		plumb_answer_integer(a, lane->end_ns - l->base_ns);
		plumb_answer_integer(a, lane->end - lane->first);
		plumb_answer_text(a, lane->sampled ? "samples" : lane->newest ? "newest" : "spans");
		plumb_answer_text(a, NULL);
		plumb_answer_text(a, NULL);
		plumb_answer_integer(a, PLUMB_UNKNOWN);
		while (counter < l->counters.count && l->counters.items[counter].after <= i)
			add_counter_track(l, counter++, a);
	}
	while (counter < l->counters.count)
		add_counter_track(l, counter++, a);
}

/* ---- answers ---- */

struct column {
	const char *name, *unit;
};
static const struct column columns[PLUMB_LANES_TABLES][14] = {
	[PLUMB_LANES_TRACKS] = { { "track", NULL },
	                         { "rank", NULL },
	                         { "process", NULL },
	                         { "kind", NULL },
	                         { "name", NULL },
	                         { "depth", NULL },
	                         { "start", "ns" },
	                         { "end", "ns" },
	                         { "spans", "count" },
	                         { "source", NULL },
	                         { "metric", NULL },
	                         { "unit", NULL },
	                         { "device", NULL } },
	[PLUMB_LANES_SPANS] = { { "track", NULL },
	                        { "depth", NULL },
	                        { "start", "ns" },
	                        { "end", "ns" },
	                        { "name", NULL },
	                        { "layer", NULL },
	                        { "many", "count" },
	                        { "context", NULL },
	                        { "span", NULL } },
	[PLUMB_LANES_BANDS] = { { "track", NULL },
	                        { "loop", NULL },
	                        { "level", NULL },
	                        { "number", NULL },
	                        { "start", "ns" },
	                        { "end", "ns" },
	                        { "many", "count" } },
	[PLUMB_LANES_ARROWS] = { { "from_track", NULL },
	                         { "from", "ns" },
	                         { "to_track", NULL },
	                         { "to", "ns" },
	                         { "span", NULL } },
	[PLUMB_LANES_SUM] = { { "name", NULL },
	                      { "layer", NULL },
	                      { "count", "count" },
	                      { "sum", "ns" },
	                      { "track", NULL } },
	[PLUMB_LANES_COUNTERS] = { { "track", NULL },
	                           { "start", "ns" },
	                           { "end", "ns" },
	                           { "mean", NULL },
	                           { "min", NULL },
	                           { "max", NULL },
	                           { "sampled", "ns" },
	                           { "many", "count" } },
};

/* Fills ASKED from the range. Free `wanted` in any case. */
static int
read_range(struct plumb_lanes *l, const struct plumb_lanes_range *range,
           struct plumb_lanes_asked *asked, struct plumb_error *error)
{
	const struct plumb_profile *p = l->profile;
	double width;

	*asked = (struct plumb_lanes_asked){ l, range, NULL, 0, INT64_MAX, 0 };
	if (isnan(range->px) || range->px < 0 || range->t1 < 0 ||
	    (range->t1 && range->t1 < range->t0))
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "a range of the timeline begins before it ends, and px is a "
		                  "number from 0");
	asked->wanted = calloc(l->lane_count + (size_t)l->counters.count + 1, 1);
	if (!asked->wanted)
		return plumb_fail_memory(error, "for the timeline");
	if (!range->track_count)
		memset(asked->wanted, 1, l->lane_count + (size_t)l->counters.count);
	for (uint32_t i = 0; i < range->track_count; i++) {
		uint32_t track = range->tracks[i], counter = track - 2 * p->tracks_count;

		if (track / 2 >= p->tracks_count && counter >= l->counters.count)
			return plumb_fail(error, PLUMB_EUSAGE, "the profile has no track %u",
			                  track);
		if (track / 2 >= p->tracks_count)
			asked->wanted[l->lane_count + counter] = 1;
		else if (l->lane_of[track] != PLUMB_NONE)
			asked->wanted[l->lane_of[track]] = 1;
	}
	if (__builtin_add_overflow(l->base_ns, range->t0, &asked->from))
		asked->from = range->t0 < 0 ? INT64_MIN : INT64_MAX;
	if (!range->t1) {
		asked->to = INT64_MIN;
		for (uint32_t i = 0; i < l->lane_count; i++)
			if (asked->wanted[i] && l->lanes[i].end_ns >= asked->to)
				asked->to = l->lanes[i].end_ns + 1;
		for (uint32_t i = 0; i < l->counters.count; i++)
			if (asked->wanted[l->lane_count + i] &&
			    l->counters.items[i].end_ns >= asked->to)
				asked->to = l->counters.items[i].end_ns + 1;
	} else if (__builtin_add_overflow(l->base_ns, range->t1, &asked->to)) {
		asked->to = INT64_MAX;
	}
	width = (double)asked->to - (double)asked->from;
	if (range->px > 0 && width > 0)
		asked->pixel = (int64_t)fmin(width / range->px, 4e18);
	return 0;
}

int
plumb_lanes_answer(struct plumb_lanes *l, enum plumb_lanes_table table,
                   const struct plumb_lanes_range *range, struct plumb_answer *answer,
                   struct plumb_error *error)
{
	struct plumb_lanes_asked asked;
	int code;

	*answer = (struct plumb_answer){ 0 };
	if ((unsigned)table >= PLUMB_LANES_TABLES)
		return plumb_fail(error, PLUMB_EUSAGE, "there is no such table of the timeline");
	code = read_range(l, range, &asked, error);
	answer->id = answer->title = plumb_lanes_table_names[table];
	if (!code)
		code = find_missing(l, table);
	for (const struct column *c = columns[table]; !code && c->name; c++)
		plumb_answer_column(answer, c->name, c->unit, PLUMB_SOURCE_IS_MEASURED);
	if (!code && table == PLUMB_LANES_TRACKS)
		add_tracks(l, answer);
	else if (!code && table == PLUMB_LANES_SPANS)
		plumb_lanes_add_spans(&asked, answer);
	else if (!code && table == PLUMB_LANES_SUM)
		code = plumb_lanes_add_sums(&asked, answer);
	else if (!code && table == PLUMB_LANES_ARROWS)
		code = plumb_lanes_add_arrows(&asked, answer);
	else if (!code && table == PLUMB_LANES_COUNTERS)
		plumb_lanes_add_counter_bins(&asked, answer);
	else if (!code)
		plumb_lanes_add_bands(&asked, answer);
	free(asked.wanted);
	if (code == PLUMB_ESYSTEM)
		plumb_fail_memory(error, "for the timeline");
	if (code) {
		plumb_answer_free(answer);
		return code;
	}
	return plumb_answer_end(answer, error);
}

int
plumb_view_timeline(const struct plumb_profile *profile, const struct plumb_timeline_query *query,
                    enum plumb_view_format format, FILE *out, struct plumb_error *error)
{
	struct plumb_error unread;
	struct plumb_lanes *lanes;
	struct plumb_answer answer;
	int code;

	error = error ? error : &unread;
	lanes = plumb_lanes_make(profile, error);
	if (!lanes)
		return error->code;
	code = plumb_lanes_answer(lanes, query->table, &query->range, &answer, error);
	if (!code) {
		code = plumb_view_answer(&answer, format, out, error);
		plumb_answer_free(&answer);
	}
	plumb_lanes_free(lanes);
	return code;
}
