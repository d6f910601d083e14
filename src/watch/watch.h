/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running processes, seen from outside. The program notices nothing: it gets no signal and no
 * thread.
 *
 * - PLUMB_WATCH_WAITS: what threads wait for (`plumb run --cpu`). Now and then plumb looks through
 *   /proc at every thread that the collector knows. It adds the time for which the thread waited,
 *   as wait.time, to the context that its THREAD record names. If the record names none, plumb
 *   reads the thread's Python line from the program's memory.
 * - PLUMB_WATCH_PARTS: which parts the run has, such as start-up and training (parts.h). They are
 *   left in a file beside each region (region/parts.h).
 *
 *	struct plumb_watch *w = plumb_watch_new(folder, PLUMB_WATCH_PARTS);
 *	while (…)                             // at least as often as it asks for
 *		milliseconds = plumb_watch_look(w, control);
 *	plumb_watch_free(w);
 */
#ifndef PLUMB_WATCH_WATCH_H
#define PLUMB_WATCH_WATCH_H

#include "region/control.h"

struct plumb_watch;

enum plumb_watch_what {
	PLUMB_WATCH_WAITS = 1 << 0,
	PLUMB_WATCH_PARTS = 1 << 1,
};
/* FOLDER is the run's, and must outlive the result. WHAT: bits. NULL: no memory. */
struct plumb_watch *plumb_watch_new(const char *folder, unsigned what);
/* Looks if it is time, and never while recording is paused. Returns the milliseconds until the next
 * look. CONTROL may be NULL: recording is on. */
int plumb_watch_look(struct plumb_watch *watch, const struct plumb_control *control);
/* Adds what is left, writes the parts, and unmaps the regions. */
void plumb_watch_free(struct plumb_watch *watch);

#endif
