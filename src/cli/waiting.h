/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that wait, seen from outside (`plumb run --cpu`): now and then every thread that the
 * collector knows is looked at through /proc, and the time for which it waited is added, as
 * wait.time, to the context that its THREAD record names, or else to the Python line it is at,
 * which is read from its memory. The program notices nothing of it: it gets no signal and no
 * thread.
 *
 *	struct plumb_waiting *w = plumb_waiting_new(folder);
 *	while (…)                             // at least as often as it asks for
 *		milliseconds = plumb_waiting_look(w, control);
 *	plumb_waiting_free(w);
 */
#ifndef PLUMB_CLI_WAITING_H
#define PLUMB_CLI_WAITING_H

#include "region/control.h"

struct plumb_waiting;

/* FOLDER is the run's and must stay. NULL: no memory. */
struct plumb_waiting *plumb_waiting_new(const char *folder);
/* Looks when it is time, and never while recording is paused. Returns the milliseconds until it is
 * time again. CONTROL may be NULL: recording is on. */
int plumb_waiting_look(struct plumb_waiting *waiting, const struct plumb_control *control);
/* After it the regions are not touched any more. */
void plumb_waiting_free(struct plumb_waiting *waiting);

#endif
