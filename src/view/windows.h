/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run did when: start-up, each loop with one of its iterations, and the rest.
 *
 *	struct plumb_windows windows;
 *	if (plumb_windows_find(&profile, &windows, &error) < 0) …
 *	for (i = 0; i < windows.loop_count; i++)
 *		… windows.loops[i].mean_ns …
 *	plumb_windows_free(&windows);
 */
#ifndef PLUMB_VIEW_WINDOWS_H
#define PLUMB_VIEW_WINDOWS_H

#include "analyze/startup.h"
#include "base/json.h"
#include "model/window.h"

/* A device in one iteration; PLUMB_UNKNOWN where it is not known. */
struct plumb_window_loop_device {
	uint32_t device;
	int64_t busy_ns; /* it has work: kernels, copies, sets */
	int64_t idle_ns; /* it has none: it waits for the host */
	/* Of busy_ns, in the iterations with known times: */
	int64_t wait_ns; /* in collectives for other ranks */
	int64_t copy_ns; /* copies and sets, while no kernel runs */
};

struct plumb_window_loop {
	struct plumb_window_sum sum;
	char name[PLUMB_WINDOW_NAME];
	int64_t mean_ns;   /* an iteration, or PLUMB_UNKNOWN */
	int64_t spread_ns; /* standard deviation, of the iterations with known times; or
	                      PLUMB_UNKNOWN */
	struct plumb_window_loop_device *devices;
	uint32_t device_count;
};

/* So many loops have devices and a spread, the main one among them: each costs a pass over the
 * profile. */
#define PLUMB_WINDOWS_DETAILED 8

struct plumb_windows {
	struct plumb_window_sums sums;
	int64_t whole_ns;            /* the run */
	int64_t startup_ns, rest_ns; /* PLUMB_UNKNOWN: there is no such window */
	int64_t startup_busy_ns;     /* of start-up: the device that worked most; PLUMB_UNKNOWN */
	struct plumb_startup startup;
	struct plumb_window_loop *loops; /* in order of time */
	uint32_t loop_count;
	uint32_t main; /* of the loops */
};

/* All zeros but for `main`, PLUMB_NONE, if PROFILE has no loop. Call plumb_windows_free in any
 * case. PLUMB_ESYSTEM: no memory. */
int plumb_windows_find(const struct plumb_profile *profile, struct plumb_windows *windows,
                       struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_windows_free(struct plumb_windows *windows);

/* "the main loop", "loop 2", "start-up", "the rest of the run"; "the run". Returns TEXT. */
#define PLUMB_WINDOW_WORDS 40
char *plumb_window_words(const struct plumb_profile *profile, char text[PLUMB_WINDOW_WORDS]);

/* The key "window": {name, start_ns, end_ns, iterations} of what PROFILE is of. */
void plumb_window_json(const struct plumb_profile *profile, struct plumb_json *json);
/* The key "windows", of a whole profile: what it has. */
void plumb_windows_json(const struct plumb_profile *profile, struct plumb_json *json);

#endif
