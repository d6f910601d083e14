/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run folder, which holds a run's regions while it runs. It is made before the program starts,
 * and removed when the profile is safely written.
 */
#ifndef PLUMB_CLI_RUN_RUNDIR_H
#define PLUMB_CLI_RUN_RUNDIR_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "region/layout.h"

#define PLUMB_LIBRARY_NAME "libplumb.so"
#define PLUMB_RUN_REGION "run" PLUMB_REGION_SUFFIX /* what `plumb run` itself writes */

struct plumb_rundir {
	char path[PATH_MAX];    /* absolute */
	char library[PATH_MAX]; /* the collector, by a path that LD_PRELOAD can hold */
	char alias[PATH_MAX];   /* the folder made for such a path outside `path`, or empty */
};

/*
 * Makes ".plumb-PID.run" (with a number if that exists) in the folder PARENT. Errors:
 * PLUMB_ESYSTEM.
 */
int plumb_rundir_create(struct plumb_rundir *run, const char *parent,
                        struct plumb_error *error) PLUMB_MUST_CHECK;

/*
 * Fills run->library: the file that PLUMB_LIBRARY names, else libplumb.so beside this program.
 * LD_PRELOAD cannot hold a path with a space, colon or dollar sign. For such a path this makes a
 * symbolic link in the run folder, in $XDG_RUNTIME_DIR or in /tmp.
 */
int plumb_rundir_library(struct plumb_rundir *run, struct plumb_error *error) PLUMB_MUST_CHECK;

/* Can LD_PRELOAD hold PATH? */
bool plumb_preloadable(const char *path);

/* How many bytes may be written in the folder; UINT64_MAX: unknown. */
uint64_t plumb_rundir_space(const char *path);

/* A process that still writes into the folder. */
struct plumb_rundir_alive {
	pid_t pid;
	char name[64];
};
/* How many there are, without the process SELF. Fills *first with one of them. */
unsigned
plumb_rundir_living(const struct plumb_rundir *run, pid_t self, struct plumb_rundir_alive *first);

/*
 * Asks every living process that uses a GPU to deliver its records. Waits until all have done so,
 * but at most MILLISECONDS. PAUSE waits a moment; it returns false to give up earlier.
 */
void plumb_rundir_flush(const struct plumb_rundir *run, unsigned milliseconds,
                        bool (*pause)(void *data, unsigned milliseconds), void *data);

/* Removes the link to the library that lies outside the run folder. */
void plumb_rundir_remove_alias(struct plumb_rundir *run);
/* Removes the folder PATH with its regions and our link, and nothing else. False: the folder is
 * still there, because it holds something that is not ours or may not be removed. */
bool plumb_rundir_remove(const char *path);

#endif
