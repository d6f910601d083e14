/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running processes, seen from outside: what their threads wait for (`plumb run --cpu`). Now and
 * then plumb looks through /proc at every thread that the collector knows. It adds the time for
 * which the thread waited, as wait.time, to the context that its THREAD record names. If the record
 * names none, plumb reads the thread's Python line from the program's memory. The program notices
 * nothing: it gets no signal and no thread.
 *
 *	struct plumb_watch *w = plumb_watch_new(&regions);
 *	while (…)                             // at least as often as it asks for
 *		milliseconds = plumb_watch_look(w, control);
 *	plumb_watch_free(w);
 */
#ifndef PLUMB_WATCH_WATCH_H
#define PLUMB_WATCH_WATCH_H

#include "region/control.h"
#include "watch/regions.h"

struct plumb_watch;

/* REGIONS are the run's, and must outlive the result. NULL: no memory. */
struct plumb_watch *plumb_watch_new(struct plumb_watch_regions *regions);
/* Looks if it is time, and never while recording is paused. Returns the milliseconds until the next
 * look. CONTROL may be NULL: recording is on. */
int plumb_watch_look(struct plumb_watch *watch, const struct plumb_control *control);
/* Adds what is left. */
void plumb_watch_free(struct plumb_watch *watch);

#endif
