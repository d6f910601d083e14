/* SPDX-License-Identifier: Apache-2.0 */
/* Readings of the clocks, with which settle maps a GPU's times to the host's. */
#include "collect/gpu/activity.h"

/* One reading: the shortest of a few, as an interruption between the clocks spoils it. */
static bool
read_clocks(struct plumb_record_clock *best, bool (*read)(uint64_t *gpu))
{
	best->uncertainty = UINT64_MAX;
	for (int i = 0; i < 5; i++) {
		struct timespec real;
		uint64_t gpu = 0, before = plumb_clock_ns();
		if (!read(&gpu))
			return false;
		clock_gettime(CLOCK_REALTIME, &real);
		uint64_t after = plumb_clock_ns();
		if (after - before >= best->uncertainty)
			continue;
		best->monotonic = before + (after - before) / 2;
		best->realtime = (uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec;
		best->gpu = gpu;
		best->uncertainty = after - before;
	}
	return true;
}

/* Eight readings, then eight at twice the distance, and so on: a day makes some hundred. */
void
plumb_gpu_clocks(struct plumb_gpu_activity *activity, struct plumb_thread *thread, bool force,
                 bool (*read)(uint64_t *gpu))
{
	struct plumb_arena *arena = plumb_thread_arena(thread);
	struct plumb_record_clock reading = { .device = 0 };
	uint64_t now = plumb_clock_ns();
	if ((!force && now < activity->readings.next) || !read_clocks(&reading, read))
		return;
	if (!activity->readings.distance)
		activity->readings.distance =
			(uint64_t)plumb_collector_options()->flush_ms * 1000000u;
	if (++activity->readings.since == 8) {
		activity->readings.since = 0;
		activity->readings.distance *= 2;
	}
	activity->readings.next = now + activity->readings.distance;
	struct plumb_record_clock *record =
		plumb_arena_append(arena, PLUMB_RECORD_CLOCK, sizeof *record);
	if (!record) {
		plumb_count(thread, PLUMB_SOURCE_REGION, arena->fate, 1);
		return;
	}
	reading.head = record->head;
	*record = reading;
	plumb_arena_commit(arena, record);
}
