/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the main thread of each Python process does, seen from outside (host.time). At each look
 * plumb reads the thread's Python stack from the process's memory, and adds the time since the look
 * before to it. The process notices nothing: it gets no signal and is not stopped.
 *
 *	struct plumb_host *h = plumb_host_new(&regions, control);
 *	while (…)                   // about ten times a second
 *		plumb_host_look(h);
 *	plumb_host_free(h);
 */
#ifndef PLUMB_WATCH_HOST_H
#define PLUMB_WATCH_HOST_H

#include "region/control.h"
#include "watch/regions.h"

struct plumb_host;

/* REGIONS are the run's, and must outlive the result. CONTROL may be NULL: recording is on. NULL:
 * no memory. */
struct plumb_host *
plumb_host_new(struct plumb_watch_regions *regions, const struct plumb_control *control);
/* Looks at each process of REGIONS. */
void plumb_host_look(struct plumb_host *host);
void plumb_host_free(struct plumb_host *host);

#endif
