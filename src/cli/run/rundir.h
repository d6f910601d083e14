/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder where a run's regions lie while it runs: made before the program starts, asked to
 * flush when a signal comes, looked through at the end, and removed once the profile is safely
 * written.
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
 * Makes ".plumb-PID.run" (with a number where that is taken) in the folder PARENT. Errors:
 * PLUMB_ESYSTEM.
 */
int plumb_rundir_create(struct plumb_rundir *run, const char *parent,
                        struct plumb_error *error) PLUMB_MUST_CHECK;

/*
 * Fills run->library: the file that PLUMB_LIBRARY names, else libplumb.so beside this program.
 * Where its path holds a space, colon or dollar sign, which LD_PRELOAD cannot, it is
 * reached by a symbolic link in the run folder, in $XDG_RUNTIME_DIR or in /tmp.
 */
int plumb_rundir_library(struct plumb_rundir *run, struct plumb_error *error) PLUMB_MUST_CHECK;

/* Can LD_PRELOAD hold PATH? */
bool plumb_preloadable(const char *path);

/* Bytes that may be written in the folder, UINT64_MAX where it cannot tell. */
uint64_t plumb_rundir_space(const char *path);

/* A process that still writes into the folder. */
struct plumb_rundir_alive {
	pid_t pid;
	char name[64];
};
/* How many there are but the process SELF; fills *first with one of them. */
unsigned
plumb_rundir_living(const struct plumb_rundir *run, pid_t self, struct plumb_rundir_alive *first);

/*
 * Asks every living process that uses a GPU to deliver its records, and waits until all have or
 * MILLISECONDS are over. PAUSE waits a moment and returns false to give up earlier.
 */
void plumb_rundir_flush(const struct plumb_rundir *run, unsigned milliseconds,
                        bool (*pause)(void *data, unsigned milliseconds), void *data);

/* Removes the link to the library that lies outside the run folder. */
void plumb_rundir_remove_alias(struct plumb_rundir *run);
/* Removes the folder PATH with its regions and our link, and nothing else: false where it still
 * stands (it held something that is not ours, or may not be removed). */
bool plumb_rundir_remove(const char *path);

#endif
