/* SPDX-License-Identifier: Apache-2.0 */
#include "model/launches.h"

#include "base/runs.h"
#include "base/search.h"

static bool
is_swapped(const void *x, const void *y, const void *data)
{
	const struct plumb_launch *a = x, *b = y;

	(void)data;
	if (a->process != b->process)
		return b->process < a->process;
	if (a->correlation != b->correlation)
		return b->correlation < a->correlation;
	if (a->start_ns != b->start_ns)
		return b->start_ns < a->start_ns;
	return b->span < a->span;
}

static uint32_t
count_calls(const struct plumb_profile *p, uint32_t track)
{
	uint32_t end = plumb_profile_first_span(p, track + 1), count = 0;

	for (uint32_t i = plumb_profile_first_span(p, track); i < end; i++)
		count += p->spans[i].correlation != 0;
	return count;
}

static void
add_track(const struct plumb_profile *p, uint32_t track, struct plumb_launches *launches)
{
	uint32_t end = plumb_profile_first_span(p, track + 1);

	for (uint32_t i = plumb_profile_first_span(p, track); i < end; i++) {
		struct plumb_launch *launch;

		if (!p->spans[i].correlation)
			continue;
		launch = &launches->items[launches->count++];
		*launch = (struct plumb_launch){ p->spans[i].correlation, p->spans[i].start_ns,
			                         p->tracks[track].process, i };
	}
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

	for (uint32_t t = 0; t < p->tracks_count; t++)
		if (is_of(p, t, process))
			count += count_calls(p, t);
	plumb_vec_free(launches); /* of a search that ran out of memory */
	launches->items = plumb_vec_grow(NULL, &launches->capacity, count, sizeof *launches->items);
	if (!launches->items)
		return PLUMB_ESYSTEM;
	for (uint32_t t = 0; t < p->tracks_count; t++)
		if (is_of(p, t, process))
			add_track(p, t, launches);
	/* The calls of a thread are almost in order. */
	return plumb_runs_sort(launches->items, launches->count, sizeof *launches->items,
	                       is_swapped, NULL);
}

static bool
is_until(const struct plumb_launch *call, uint64_t process, uint64_t correlation, int64_t began)
{
	if (call->process != process)
		return call->process < process;
	return call->correlation != correlation ? call->correlation < correlation
	                                        : call->start_ns <= began;
}

/* How many calls come before those of this number that began after BEGAN. */
static uint32_t
count_until(const struct plumb_launches *launches, uint64_t process, uint64_t correlation,
            int64_t began)
{
	return plumb_search(i, launches->count,
	                    is_until(&launches->items[i], process, correlation, began));
}

static bool
has_number(const struct plumb_launches *launches, uint32_t place, uint64_t process,
           uint64_t correlation)
{
	return place < launches->count && launches->items[place].process == process &&
	       launches->items[place].correlation == correlation;
}

uint32_t
plumb_launch_before(const struct plumb_launches *launches, uint64_t process, uint64_t correlation,
                    int64_t began)
{
	uint32_t after;

	if (!correlation)
		return PLUMB_NONE;
	after = count_until(launches, process, correlation, began);
	if (after && has_number(launches, after - 1, process, correlation))
		after--;
	return has_number(launches, after, process, correlation) ? launches->items[after].span
	                                                         : PLUMB_NONE;
}

uint32_t
plumb_launch_of(const struct plumb_launches *launches, uint64_t process, uint64_t correlation)
{
	return plumb_launch_before(launches, process, correlation, INT64_MAX);
}

uint32_t
plumb_launch_place(const struct plumb_launches *launches, uint64_t process, uint64_t correlation)
{
	uint32_t place = correlation ? count_until(launches, process, correlation, INT64_MIN)
	                             : launches->count;

	return has_number(launches, place, process, correlation) ? place : PLUMB_NONE;
}
