/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/path/steps.h"

#include <string.h>

#include "analyze/path/path_private.h"
#include "analyze/study.h"
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
                       const int64_t saved[2], int64_t taken)
{
	uint32_t count = plumb_path_steps(path, track).count;
	int64_t saving = saved[1];

	if (!count || saved[1] == PLUMB_UNKNOWN || (count > 1 && saved[0] == PLUMB_UNKNOWN))
		return PLUMB_UNKNOWN;
	if (count > 1)
		saving = saving > saved[0] ? (saving - saved[0]) / (count - 1) : 0;
	return saving < taken ? saving : taken;
}

/* Adds SPAN to what each track's steps take, in the plays of GONE. */
static void
add_taken(const struct plumb_path *path, uint32_t span, unsigned gone, uint32_t tracks,
          const uint32_t *nodes, int64_t *taken)
{
	int64_t begin = path->nodes[plumb_path_begin(span)].at;
	int64_t end = path->nodes[plumb_path_end(span)].at, from, until;

	for (uint32_t t = 0; t < tracks; t++) {
		uint32_t first = nodes[2 * t], last = nodes[2 * t + 1];

		if (last == PLUMB_NONE)
			continue;
		from = first == PLUMB_NONE ? INT64_MIN : path->nodes[first].at;
		until = path->nodes[last].at;
		if (end <= from || begin >= until)
			continue;
		/* One that is over in time counts whole, one that goes on as far as it lies
		 * between. */
		from = end > until && begin < from ? from : begin;
		until = end > until ? until : end;
		for (unsigned k = 0; k < PLUMB_PATH_PLAYS; k++)
			if (gone >> k & 1)
				taken[t * PLUMB_PATH_PLAYS + k] =
					plumb_add(taken[t * PLUMB_PATH_PLAYS + k], until - from);
	}
}

void
plumb_path_steps_taken(const struct plumb_path *path, const struct plumb_iterations *found,
                       const unsigned char *gone, const uint32_t *nodes, int64_t *taken)
{
	const struct plumb_profile *p = path->profile;
	unsigned between = gone[p->contexts_count];

	memset(taken, 0, (size_t)found->count * PLUMB_PATH_PLAYS * sizeof *taken);
	for (uint32_t i = 0; i < p->spans_count; i++)
		if (gone[p->spans[i].context] &&
		    !(path->nodes[plumb_path_end(i)].flags & PLUMB_PATH_LEFT_OUT))
			add_taken(path, i, gone[p->spans[i].context], found->count, nodes, taken);
	for (uint32_t t = 0; t < found->count; t++) {
		uint32_t count = plumb_path_steps(path, &found->tracks[t]).count;

		for (unsigned k = 0; k < PLUMB_PATH_PLAYS; k++) {
			int64_t *sum = &taken[t * PLUMB_PATH_PLAYS + k];

			*sum = between >> k & 1 ? INT64_MAX : *sum / (count > 1 ? count - 1 : 1);
		}
	}
}
