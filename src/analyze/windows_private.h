/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of finding windows share: windows.c reads parts and writes windows, _loops.c finds
 * the loops of a process, _ranks.c those of several processes. */
#ifndef PLUMB_ANALYZE_WINDOWS_PRIVATE_H
#define PLUMB_ANALYZE_WINDOWS_PRIVATE_H

#include "analyze/windows_activity.h"
#include "base/vec.h"

/* A row of the kind PLUMB_WINDOW_PART. */
struct plumb_windows_part {
	uint32_t window, process;
	int64_t start, end;
	int64_t extent; /* ns from the first to the last look at which work had ended */
	struct plumb_activity activity;
	struct plumb_activity
		setup;     /* imports, compiling, tuning: never a loop, however it repeats */
	double steps;      /* marked by the program */
	uint32_t gpu_loop; /* of the newest GPU work, which takes most of the part; or PLUMB_NONE */
	uint32_t loop;     /* in the finding's loops, or PLUMB_NONE */
	uint32_t around;   /* the loop of another process, if the own has none; or PLUMB_NONE */
	uint32_t kind;     /* enum plumb_window_kind that it becomes */
};

struct plumb_windows_loop {
	uint32_t process;
	uint32_t gpu_loop;              /* or PLUMB_NONE */
	bool dropped;                   /* it is none after all */
	struct plumb_activity activity; /* of all parts */
	int64_t start, wall;
	uint32_t stretches;
	int64_t iterations;
	uint32_t number;
};

struct plumb_windows_finding {
	struct plumb_windows_part *parts; /* by process, then start */
	uint32_t count;
	PLUMB_VEC(struct plumb_windows_loop) loops;
};

/* Puts parts [FIRST, END), which are a process', into loops. False: no memory. */
bool plumb_windows_loops(struct plumb_windows_finding *finding, uint32_t first, uint32_t end);

/* Numbers the loops, the same for what is the same in several processes, and says what each part
 * is. Parts of processes without a loop go by the time of the others'. False: there is no loop. */
bool plumb_windows_number(struct plumb_windows_finding *finding);

#endif
