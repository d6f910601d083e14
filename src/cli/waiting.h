/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that wait, seen from outside (`plumb run --cpu`): now and then the state of every thread
 * that the collector knows is read from /proc, and the time since the last look is added, as
 * wait.time, to the context that its THREAD record names. The program notices nothing of it.
 *
 *	struct plumb_waiting *w = plumb_waiting_new(folder);
 *	while (…)                             // every PLUMB_WAITING_MS
 *		plumb_waiting_look(w);
 *	plumb_waiting_free(w);
 */
#ifndef PLUMB_CLI_WAITING_H
#define PLUMB_CLI_WAITING_H

#define PLUMB_WAITING_MS 10u /* when looking takes too long for that, looks are left out */

struct plumb_waiting;

/* FOLDER is the run's and must stay. NULL: no memory. */
struct plumb_waiting *plumb_waiting_new(const char *folder);
void plumb_waiting_look(struct plumb_waiting *waiting);
/* Writes what is left. After it the regions are not touched any more. */
void plumb_waiting_free(struct plumb_waiting *waiting);

#endif
