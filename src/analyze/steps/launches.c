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

int
plumb_launches_find(const struct plumb_profile *p, struct plumb_launches *launches)
{
	void *rows;
	int code;

	for (uint32_t i = 0; i < p->spans_count; i++) {
		const struct plumb_span *s = &p->spans[i];

		if (p->tracks[s->track].kind != PLUMB_TRACK_THREAD || !s->correlation)
			continue;
		struct plumb_launch *launch = plumb_vec_add(launches);
		if (!launch)
			return PLUMB_ESYSTEM;
		*launch = (struct plumb_launch){ p->tracks[s->track].process, s->correlation, i };
	}
	rows = launches->items;
	code = plumb_sort_rows(&rows, launches->count, sizeof *launches->items, launch_key, 2,
	                       NULL);
	launches->items = rows;
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
