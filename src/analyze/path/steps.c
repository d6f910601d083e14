/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/path/steps.h"

#include <stdlib.h>

static int64_t
starts(const struct plumb_iteration *item)
{
	return item->interval_ns == PLUMB_UNKNOWN ? item->start_ns
	                                          : item->start_ns - item->interval_ns;
}

int
plumb_path_open_step(struct plumb_path *path, const struct plumb_iteration_track *track,
                     uint32_t number, struct plumb_path_window *window, struct plumb_error *error)
{
	const struct plumb_iteration *item = &track->levels[0].items[number];

	return plumb_path_open(path, track->track, starts(item), item->end_ns, window, error);
}

struct ranked {
	int64_t ns;
	uint32_t item;
};

static int
by_length(const void *x, const void *y)
{
	const struct ranked *a = x, *b = y;

	return a->ns != b->ns ? (a->ns > b->ns ? 1 : -1)
	                      : (a->item > b->item) - (a->item < b->item);
}

uint32_t
plumb_path_median_step(const struct plumb_iteration_track *track)
{
	const struct plumb_iteration_level *level = &track->levels[0];
	uint32_t n = track->level_count ? level->count : 0, count = 0, median;
	struct ranked *ranked = n ? malloc(n * sizeof *ranked) : NULL;

	if (!ranked)
		return PLUMB_NONE;
	for (int with = 1; with >= 0 && !count; with--)
		for (uint32_t i = 0; i < n; i++)
			if (!with || level->items[i].interval_ns != PLUMB_UNKNOWN)
				ranked[count++] = (struct ranked){
					level->items[i].end_ns - starts(&level->items[i]), i
				};
	qsort(ranked, count, sizeof *ranked, by_length);
	median = ranked[(count - 1) / 2].item;
	free(ranked);
	return median;
}

static uint32_t
end_of(const struct plumb_path *path, const struct plumb_iteration_track *track, uint32_t number)
{
	const struct plumb_iteration *item = &track->levels[0].items[number];

	return plumb_path_last(path, track->track, item->start_ns, item->end_ns);
}

void
plumb_path_step_nodes(const struct plumb_path *path, const struct plumb_iteration_track *track,
                      uint32_t nodes[2])
{
	uint32_t count = track->level_count ? track->levels[0].count : 0;

	nodes[0] = count > 1 ? end_of(path, track, 0) : PLUMB_NONE;
	nodes[1] = count ? end_of(path, track, count - 1) : PLUMB_NONE;
}

int64_t
plumb_path_step_saving(const struct plumb_iteration_track *track, const int64_t saved[2])
{
	uint32_t count = track->level_count ? track->levels[0].count : 0;

	if (!count || saved[1] == PLUMB_UNKNOWN || (count > 1 && saved[0] == PLUMB_UNKNOWN))
		return PLUMB_UNKNOWN;
	if (count == 1)
		return saved[1];
	return saved[1] > saved[0] ? (saved[1] - saved[0]) / (count - 1) : 0;
}
