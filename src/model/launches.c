/* SPDX-License-Identifier: Apache-2.0 */
#include "model/launches.h"

#include "base/runs.h"
#include "base/search.h"

static uint32_t
process_of(const struct plumb_launches *launches, uint32_t span)
{
	return launches->tracks[launches->spans[span].track].process;
}

static bool
is_swapped(const void *x, const void *y, const void *data)
{
	const struct plumb_launches *launches = data;
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
	const struct plumb_span *call = &launches->spans[a], *other = &launches->spans[b];

	if (call->track != other->track) {
		uint32_t process = process_of(launches, a), others = process_of(launches, b);

		if (process != others)
			return others < process;
	}
	if (call->correlation != other->correlation)
		return other->correlation < call->correlation;
	if (call->start_ns != other->start_ns)
		return other->start_ns < call->start_ns;
	return b < a;
}

/* The last call goes before those that come after it, if these are few. Returns whether it found
 * its place among the calls from FIRST on. */
static bool
move_back(struct plumb_launches *launches, uint32_t first)
{
	enum { FEW = 16 };
	uint32_t at = launches->count - 1, moved = launches->items[at], tries = FEW;
	uint64_t number = launches->spans[moved].correlation;

	for (; tries && at > first; tries--, at--) {
		uint32_t before = launches->items[at - 1];

		if (launches->spans[before].correlation <= number)
			break;
		launches->items[at] = before;
	}
	launches->items[at] = moved;
	return tries;
}

/* Adds the calls of TRACK. Returns whether they are in order, and after those before. */
static bool
add_track(const struct plumb_profile *p, uint32_t track, struct plumb_launches *launches)
{
	uint32_t end = plumb_profile_first_span(p, track + 1), first = launches->count;
	uint64_t last = 0;
	bool ordered = true;

	for (uint32_t i = plumb_profile_first_span(p, track); i < end; i++) {
		uint64_t number = p->spans[i].correlation;

		if (!number)
			continue;
		launches->items[launches->count++] = i;
		if (number >= last)
			last = number;
		else if (ordered)
			ordered = move_back(launches, first);
	}
	return ordered &&
	       (!first || first == launches->count ||
	        !is_swapped(&launches->items[first - 1], &launches->items[first], launches));
}

/* Is TRACK a thread of PROCESS (PLUMB_NONE: of any)? */
static bool
is_of(const struct plumb_profile *p, uint32_t track, uint32_t process)
{
	return p->tracks[track].kind == PLUMB_TRACK_THREAD &&
	       (process == PLUMB_NONE || p->tracks[track].process == process);
}

int
plumb_launches_find(const struct plumb_profile *p, uint32_t process,
                    struct plumb_launches *launches)
{
	uint32_t count = 0;
	bool ordered = true;

	for (uint32_t t = 0; t < p->tracks_count; t++)
		if (is_of(p, t, process))
			count +=
				plumb_profile_first_span(p, t + 1) - plumb_profile_first_span(p, t);
	plumb_vec_free(launches); /* of a search that ran out of memory */
	launches->spans = p->spans;
	launches->tracks = p->tracks;
	launches->last = 0;
	/* Room for all spans of threads: what stays unused costs nothing. */
	launches->items = plumb_vec_grow(NULL, &launches->capacity, count, sizeof *launches->items);
	if (!launches->items)
		return PLUMB_ESYSTEM;
	for (uint32_t t = 0; t < p->tracks_count; t++)
		if (is_of(p, t, process))
			ordered &= add_track(p, t, launches);
	/* Those of several threads of a process are runs. */
	return ordered ? 0
	               : plumb_runs_sort(launches->items, launches->count, sizeof *launches->items,
	                                 is_swapped, launches);
}

static bool
is_until(const struct plumb_launches *launches, uint32_t place, uint64_t process,
         uint64_t correlation, int64_t began)
{
	uint32_t span = launches->items[place];
	const struct plumb_span *call = &launches->spans[span];
	uint32_t of = process_of(launches, span);

	if (of != process)
		return of < process;
	return call->correlation != correlation ? call->correlation < correlation
	                                        : call->start_ns <= began;
}

/* How many calls come before those of this number that began after BEGAN. It looks around the last
 * answer, further away each time, until the answer lies between two looks. */
static uint32_t
count_until(struct plumb_launches *launches, uint64_t process, uint64_t correlation, int64_t began)
{
	uint32_t low = 0, high = launches->count, at = launches->last, step = 1;

	if (at < high && is_until(launches, at, process, correlation, began)) {
		low = at + 1;
		while (high - low > step &&
		       is_until(launches, low + step, process, correlation, began)) {
			low += step + 1;
			step *= 2;
		}
		if (high - low > step)
			high = low + step;
	} else {
		high = at < high ? at : high;
		while (high > step &&
		       !is_until(launches, high - 1 - step, process, correlation, began)) {
			high -= step + 1;
			step *= 2;
		}
		if (high > step)
			low = high - step;
	}
	low += plumb_search(i, high - low,
	                    is_until(launches, low + i, process, correlation, began));
	launches->last = low;
	return low;
}

static bool
has_number(const struct plumb_launches *launches, uint32_t place, uint64_t process,
           uint64_t correlation)
{
	return place < launches->count && process_of(launches, launches->items[place]) == process &&
	       launches->spans[launches->items[place]].correlation == correlation;
}

uint32_t
plumb_launch_place_before(struct plumb_launches *launches, uint64_t process, uint64_t correlation,
                          int64_t began)
{
	uint32_t after;

	if (!correlation)
		return PLUMB_NONE;
	after = count_until(launches, process, correlation, began);
	if (after && has_number(launches, after - 1, process, correlation))
		after--;
	return has_number(launches, after, process, correlation) ? after : PLUMB_NONE;
}

uint32_t
plumb_launch_before(struct plumb_launches *launches, uint64_t process, uint64_t correlation,
                    int64_t began)
{
	uint32_t place = plumb_launch_place_before(launches, process, correlation, began);

	return place == PLUMB_NONE ? PLUMB_NONE : launches->items[place];
}

uint32_t
plumb_launch_of(struct plumb_launches *launches, uint64_t process, uint64_t correlation)
{
	return plumb_launch_before(launches, process, correlation, INT64_MAX);
}

uint32_t
plumb_launch_place(struct plumb_launches *launches, uint64_t process, uint64_t correlation)
{
	uint32_t place = correlation ? count_until(launches, process, correlation, INT64_MIN)
	                             : launches->count;

	return has_number(launches, place, process, correlation) ? place : PLUMB_NONE;
}
