/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at a program before it is started: finds it as execvp would, follows its script chain
 * ("#!", and through env(1)), and tells whether the collector can be loaded into it.
 */
#ifndef PLUMB_CLI_RUN_TARGET_H
#define PLUMB_CLI_RUN_TARGET_H

#include <limits.h>
#include <stdbool.h>

struct plumb_target {
	int error; /* errno: no program was found, and the other members mean nothing; else 0 */
	char path[PATH_MAX]; /* the program itself */
	bool refused;        /* the program must not meet the collector; `reason` says why */
	bool musl;           /* it is refused because it is linked with musl */
	bool outside;        /* it cannot be profiled, but programs that it starts can */
	char reason[PATH_MAX + 256];  /* a clause: "/bin/x is statically linked, and …" */
	char preload[256];            /* what must come first in LD_PRELOAD, or empty */
	char adapted[PATH_MAX + 256]; /* what was done about it, a clause, or empty */
};

/*
 * Looks at the program that ARGV (ends with NULL) starts, with SEARCH as PATH (NULL: the system's
 * default). A file that cannot be read is not refused: plumb cannot tell, so it tries.
 */
void plumb_target_look(char *const *argv, const char *search, struct plumb_target *target);
/* The same for PROGRAM without arguments, with PATH of the environment. */
void plumb_target_find(const char *program, struct plumb_target *target);

#endif
