/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/schedule.h"

#include <limits.h>

#include "base/clock.h"

#define LOOK_MS 20 /* how soon we notice a start by the program itself, if there is a duration */

void
plumb_schedule_begin(struct plumb_schedule *schedule)
{
	if (schedule->start_after > 0)
		schedule->start_at = plumb_clock_ns() + (uint64_t)schedule->start_after;
}

/* Rounded up: a turn must not come before its time and find nothing to do. */
static int
round_to_milliseconds(uint64_t ns)
{
	uint64_t ms = (ns + 999999) / 1000000;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}

int
plumb_schedule_turn(struct plumb_schedule *schedule)
{
	uint64_t now = plumb_clock_ns(), since;
	int wait = -1;
	if (schedule->start_at && now >= schedule->start_at) {
		plumb_control_start(schedule->control, now);
		schedule->start_at = 0;
	}
	if (schedule->start_at)
		wait = round_to_milliseconds(schedule->start_at - now);
	if (!schedule->duration)
		return wait;
	since = plumb_control_since(schedule->control);
	if (since && now >= since + (uint64_t)schedule->duration) {
		plumb_control_stop(schedule->control, now);
		since = 0;
	}
	int look =
		since ? round_to_milliseconds(since + (uint64_t)schedule->duration - now) : LOOK_MS;
	return wait >= 0 && wait < look ? wait : look;
}

void
plumb_schedule_toggle(struct plumb_schedule *schedule)
{
	uint64_t now = plumb_clock_ns();
	if (!plumb_control_stop(schedule->control, now))
		plumb_control_start(schedule->control, now);
}
