/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turning recording on and off from inside the program: plumb.start() and plumb.stop() call these.
 * They hold for every process of the run on this host. Processes that `--follow` leaves out, and
 * forked children, may call them too.
 */
#include "collect/recording.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "collect/follow.h"
#include "collect/gpu/gpu.h"

static struct plumb_control own = { .word = PLUMB_CONTROL_ON };
struct plumb_control *plumb_control = &own;

PLUMB_EXPORT int plumb_start(void);
PLUMB_EXPORT int plumb_stop(void);
PLUMB_EXPORT int plumb_is_recording(void);

void
plumb_control_attach(const char *folder, bool paused)
{
	char path[PATH_MAX + 16];
	snprintf(path, sizeof path, "%s/" PLUMB_CONTROL_NAME, folder);
	struct plumb_control *shared = plumb_control_map(path, true);
	if (shared)
		plumb_control = shared;
	else
		plumb_control_init(&own, paused, plumb_clock_ns());
}

/* 1: recording is on now, 0: plumb is not attached. */
int
plumb_start(void)
{
	int saved = errno;
	if (!plumb_collector_options()->folder[0])
		return 0;
	plumb_control_start(plumb_control, plumb_clock_ns());
	plumb_gpu_pause(false);
	errno = saved;
	return 1;
}

/* 1: recording is off now, 0: plumb is not attached. */
int
plumb_stop(void)
{
	int saved = errno;
	if (!plumb_collector_options()->folder[0])
		return 0;
	plumb_control_stop(plumb_control, plumb_clock_ns());
	plumb_gpu_pause(true);
	errno = saved;
	return 1;
}

/* Is the calling process recorded now, or would it be at its next operator? */
int
plumb_is_recording(void)
{
	return plumb_collector_options()->folder[0] && plumb_control_is_on(plumb_control) &&
	       plumb_follow_process();
}
