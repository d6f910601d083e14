/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/steps/launches.h"

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
		*launch = (struct plumb_launch){ p->tracks[track].process, p->spans[i].correlation,
			                         i };
	}
	return true;
}

/* A file may give one number to any number of calls. */
static void
keep_inner(const struct plumb_profile *p, struct plumb_launches *launches)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < launches->count; i++) {
		const struct plumb_launch *one = &launches->items[i];
		struct plumb_launch *last = count ? &launches->items[count - 1] : NULL;

		if (!last || last->process != one->process || last->correlation != one->correlation)
			launches->items[count++] = *one;
		else if (p->spans[one->span].start_ns >= p->spans[last->span].start_ns)
			*last = *one;
	}
	launches->count = count;
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
		keep_inner(p, launches);
	return code;
}

uint32_t
plumb_launch_of(const struct plumb_launches *launches, uint64_t process, uint64_t correlation)
{
	uint32_t low = 0, high = launches->count;

	if (!correlation)
		return PLUMB_NONE;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct plumb_launch *at = &launches->items[middle];

		if (at->process < process ||
		    (at->process == process && at->correlation < correlation))
			low = middle + 1;
		else
			high = middle;
	}
	if (low == launches->count || launches->items[low].process != process ||
	    launches->items[low].correlation != correlation)
		return PLUMB_NONE;
	return launches->items[low].span;
}
