/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of finding windows share: windows.c reads parts and writes windows, _loops.c finds
 * the loops of a process, _ranks.c those of several processes. Where single spans are known,
 * _cuts.c makes the parts and _take.c says what lies in each. */
#ifndef PLUMB_ANALYZE_WINDOWS_PRIVATE_H
#define PLUMB_ANALYZE_WINDOWS_PRIVATE_H

#include "analyze/windows_activity.h"
#include "base/vec.h"
#include "model/launches.h"

/* A row of the kind PLUMB_WINDOW_PART. */
struct plumb_windows_part {
	uint32_t window, process;
	int64_t start, end;
	int64_t extent; /* ns from the first to the last look at which work had ended */
	struct plumb_activity activity;
	struct plumb_activity
		setup; /* imports, compiling, tuning: never a loop, however it repeats */
	double steps;  /* marked by the program */
	/* The range that takes most of it, or PLUMB_NONE. Then its calls, how long they take
	 * together, and the sum of the squares of that. */
	uint32_t range;
	double range_calls, range_ns, range_squares;
	bool is_even;      /* with the parts around it, it has a range that comes evenly */
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

/* ---- of single spans ---- */

/* A process is in WINDOW until its next piece begins: GPU work that begins at START or later, and
 * what begins on the host at HOST or later. For work comes after the call that asks for it. */
struct plumb_windows_piece {
	int64_t start, host;
	uint32_t window;
};

/* The pieces [first, end) of a process, and the stream in whose kernels its loops were found, or
 * PLUMB_NONE. */
struct plumb_windows_process {
	uint32_t first, end, lead;
};

struct plumb_windows_cuts {
	struct plumb_launches launches;
	PLUMB_VEC(struct plumb_windows_piece) pieces; /* of a process in order of time */
	struct plumb_windows_process *processes;
};

/* Finds the loops of PROFILE in its spans. FOUND gets a part for each window of a process, of one
 * or more pieces; PROFILE gets rows for these parts and for the pieces, if there is a loop. For
 * plumb_windows_cuts_free in any case. */
int plumb_windows_cut(struct plumb_profile *profile, struct plumb_windows_finding *found,
                      struct plumb_windows_cuts *cuts, struct plumb_error *error);
void plumb_windows_cuts_free(struct plumb_windows_cuts *cuts);

/* The window of PROCESS at AT, on the host or on its GPUs; PLUMB_NONE: the process has none. *NEAR,
 * at first 0, is where the search begins. */
uint32_t plumb_windows_at(const struct plumb_windows_cuts *cuts, uint32_t process, bool host,
                          int64_t at, uint32_t *near);

/* Adds up what spans say in each window. 1: they do not tell of all time that the values have, and
 * PROFILE got no rows. PLUMB_ESYSTEM: no memory. */
int plumb_windows_take(struct plumb_profile *profile, struct plumb_windows_cuts *cuts);

/* Numbers the loops, the same for what is the same in several processes. *START is when the first
 * one begins. Returns how many numbers there are. */
uint32_t plumb_windows_number_loops(struct plumb_windows_finding *finding, int64_t *start);

/* ---- of parts ---- */

/* Puts parts [FIRST, END), which are a process', into loops. False: no memory. */
bool plumb_windows_loops(struct plumb_windows_finding *finding, uint32_t first, uint32_t end);

/* Numbers the loops, the same for what is the same in several processes, and says what each part
 * is. Parts of processes without a loop go by the time of the others'. False: there is no loop. */
bool plumb_windows_number(struct plumb_windows_finding *finding);

#endif
