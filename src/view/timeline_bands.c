/* SPDX-License-Identifier: Apache-2.0 */
/* Iterations as bands over the tracks that they are of. */
#include "view/timeline_private.h"

static void
add_band(const struct plumb_lanes *l, uint32_t track, uint32_t loop, uint32_t level,
         uint32_t number, uint32_t many, int64_t start, int64_t end, struct plumb_answer *a)
{
	plumb_answer_integer(a, track);
	plumb_answer_integer(a, loop + 1);
	plumb_answer_integer(a, level);
	plumb_answer_integer(a, number);
	plumb_answer_integer(a, start - l->base_ns);
	plumb_answer_integer(a, end - l->base_ns);
	plumb_answer_integer(a, many);
}

/* Those that fit into a pixel together are one band. */
static void
add_level(const struct plumb_lanes_asked *asked, uint32_t track, uint32_t loop, uint32_t level,
          const struct plumb_iteration_level *found, struct plumb_answer *a)
{
	const struct plumb_iteration *items = found->items;

	for (uint32_t i = 0, next; i < found->count; i = next) {
		int64_t start = plumb_lane_time(asked->lanes, track, items[i].start_ns);
		int64_t end = plumb_lane_time(asked->lanes, track, items[i].end_ns);

		next = i + 1;
		if (!plumb_is_time(start, end) || end < asked->from || start >= asked->to)
			continue;
		for (; end - start < asked->pixel && next < found->count; next++) {
			int64_t more = plumb_lane_time(asked->lanes, track, items[next].end_ns);

			if (!plumb_is_time(end, more) || more - start > asked->pixel)
				break;
			end = more;
		}
		add_band(asked->lanes, track, loop, level, i, next - i, start, end, a);
	}
}

static void
add_found(const struct plumb_lanes_asked *asked, const struct plumb_iterations *found,
          struct plumb_answer *a)
{
	for (uint32_t t = 0; t < found->count; t++) {
		const struct plumb_iteration_track *track = &found->tracks[t];

		for (uint32_t i = 0; i < track->loop_count; i++)
			for (uint32_t k = 0; k < track->loops[i].level_count; k++)
				add_level(asked, track->track, i, k, &track->loops[i].levels[k], a);
	}
}

bool
plumb_lanes_find_iterations(const struct plumb_lanes *l, struct plumb_lanes_found *found)
{
	return !plumb_iterations_find(l->profile, NULL, &found->gpu, NULL) &&
	       !plumb_iterations_find_host(l->profile, &found->host, NULL);
}

void
plumb_lanes_add_bands(const struct plumb_lanes_asked *asked, struct plumb_answer *a)
{
	const struct plumb_lanes_found *found = asked->lanes->parts[PLUMB_LANES_ITERATIONS];

	add_found(asked, &found->gpu, a);
	add_found(asked, &found->host, a);
}
