/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/path/steps.h"
#include "base/search.h"

int
plumb_path_step(const struct plumb_path_window *whole, const struct plumb_iteration_track *track,
                uint32_t number, struct plumb_path_window *window, struct plumb_error *error)
{
	return plumb_path_loop(whole, track, number, 1, window, error);
}

int
plumb_path_loop(const struct plumb_path_window *whole, const struct plumb_iteration_track *track,
                uint32_t first, uint32_t count, struct plumb_path_window *window,
                struct plumb_error *error)
{
	const struct plumb_iteration *items = track->levels[0].items;

	return plumb_path_within(whole, track->track, plumb_iteration_from(&items[first]),
	                         items[first + count - 1].end_ns, window, error);
}

/* How many iterations begin before AT; or END ones: are over by AT. */
static uint32_t
count_by(const struct plumb_iteration_level *level, int64_t at, bool end)
{
	const struct plumb_iteration *items = level->items;

	return plumb_search(i, level->count,
	                    end ? items[i].end_ns <= at : plumb_iteration_from(&items[i]) < at);
}

struct plumb_path_steps
plumb_path_steps(const struct plumb_path *path, const struct plumb_iteration_track *track)
{
	const struct plumb_path_part *part = plumb_path_part(path);
	struct plumb_path_steps steps = { 0, 0 };

	if (track->level_count) {
		uint32_t end = count_by(&track->levels[0], part->end_ns, true);

		steps.first = count_by(&track->levels[0], part->start_ns, false);
		steps.count = end > steps.first ? end - steps.first : 0;
	}
	return steps;
}

uint32_t
plumb_path_median_step(const struct plumb_path *path, const struct plumb_iteration_track *track)
{
	struct plumb_path_steps steps = plumb_path_steps(path, track);
	uint32_t median;

	if (!steps.count)
		return PLUMB_NONE;
	median = plumb_path_median(&track->levels[0], 0, track->levels[0].count);
	if (median == PLUMB_NONE || median - steps.first < steps.count)
		return median;
	return plumb_path_median(&track->levels[0], steps.first, steps.count);
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
	struct plumb_path_steps steps = plumb_path_steps(path, track);
	uint32_t last = steps.first + steps.count - 1;

	nodes[0] = steps.count > 1 ? end_of(path, track, steps.first) : PLUMB_NONE;
	nodes[1] = steps.count ? end_of(path, track, last) : PLUMB_NONE;
}

int64_t
plumb_path_step_saving(const struct plumb_path *path, const struct plumb_iteration_track *track,
                       const int64_t saved[2])
{
	uint32_t count = plumb_path_steps(path, track).count;

	if (!count || saved[1] == PLUMB_UNKNOWN || (count > 1 && saved[0] == PLUMB_UNKNOWN))
		return PLUMB_UNKNOWN;
	if (count == 1)
		return saved[1];
	return saved[1] > saved[0] ? (saved[1] - saved[0]) / (count - 1) : 0;
}
