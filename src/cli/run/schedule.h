/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a run records: --start-after, --duration and --toggle. They change the word of the run's
 * control file. The program may change it, too (plumb.start()); a duration then counts from there.
 */
#ifndef PLUMB_CLI_RUN_SCHEDULE_H
#define PLUMB_CLI_RUN_SCHEDULE_H

#include <stdio.h>

#include "region/control.h"

struct plumb_schedule {
	struct plumb_control *control;
	int64_t start_after; /* ns after the program's start; 0: at once, or when it is told to */
	int64_t duration;    /* ns, 0: to the end */
	uint64_t start_at;   /* private: CLOCK_MONOTONIC ns, 0: done */
};

/* The program was started. */
void plumb_schedule_begin(struct plumb_schedule *schedule);
/* Does what is due. Returns the milliseconds until something can be due; -1: never. */
int plumb_schedule_turn(struct plumb_schedule *schedule);
/* The signal of --toggle came. */
void plumb_schedule_toggle(struct plumb_schedule *schedule);

#endif
