/* SPDX-License-Identifier: Apache-2.0 */
#include "model/launches.h"

#include <stdlib.h>

#include "base/search.h"
#include "base/sort.h"

static uint64_t
launch_key(const void *row, int which, const void *data)
{
	const struct plumb_launch *launch = row;

	(void)data;
	return which ? launch->correlation : launch->process;
}

static bool
add_track(const struct plumb_profile *p, uint32_t track, struct plumb_launches *launches)
{
	uint32_t end = plumb_profile_first_span(p, track + 1);

	for (uint32_t i = plumb_profile_first_span(p, track); i < end; i++) {
		struct plumb_launch *launch;

		if (!p->spans[i].correlation)
			continue;
		launch = plumb_vec_add(launches);
		if (!launch)
			return false;
		*launch = (struct plumb_launch){ p->spans[i].correlation, p->spans[i].start_ns,
			                         p->tracks[track].process, i };
	}
	return true;
}

static int
by_start(const void *x, const void *y)
{
	const struct plumb_launch *a = x, *b = y;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return (a->span > b->span) - (a->span < b->span);
}

static bool
have_one_number(const struct plumb_launch *a, const struct plumb_launch *b)
{
	return a->process == b->process && a->correlation == b->correlation;
}

/* Calls with the same number keep the order of spans, for each track on its own. */
static void
order_equal(struct plumb_launches *launches)
{
	for (uint32_t i = 0, end; i < launches->count; i = end) {
		struct plumb_launch *first = &launches->items[i];

		for (end = i + 1; end < launches->count && have_one_number(first, first + end - i);)
			end++;
		if (end - i > 1)
			qsort(first, end - i, sizeof *first, by_start);
	}
}

int
plumb_launches_find(const struct plumb_profile *p, uint32_t process,
                    struct plumb_launches *launches)
{
	int code;

	for (uint32_t t = 0; t < p->tracks_count; t++)
		if (p->tracks[t].kind == PLUMB_TRACK_THREAD &&
		    (process == PLUMB_NONE || p->tracks[t].process == process) &&
		    !add_track(p, t, launches))
			return PLUMB_ESYSTEM;
	code = plumb_sort_rows(launches->items, launches->count, sizeof *launches->items,
	                       launch_key, 2, NULL);
	if (!code)
		order_equal(launches);
	return code;
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
