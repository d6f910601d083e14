/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes the environment that a program would get, so that the program loads the collector, or
 * does not. For exec.c only.
 *
 *	size_t bytes = plumb_exec_environment_room(envp, PLUMB_EXEC_PUT);
 *	if (bytes)                        // 0: it is right as it is
 *		envp = plumb_exec_environment_fill(envp, PLUMB_EXEC_PUT, memory of so many bytes);
 */
#ifndef PLUMB_COLLECT_EXEC_ENVIRONMENT_H
#define PLUMB_COLLECT_EXEC_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

enum plumb_exec_change {
	PLUMB_EXEC_LEAVE,
	PLUMB_EXEC_PUT,  /* put the collector first in LD_PRELOAD, and add its variables */
	PLUMB_EXEC_TAKE, /* take the collector out of LD_PRELOAD, because it could do harm */
};

enum plumb_exec_reach {
	PLUMB_EXEC_REACHED,
	PLUMB_EXEC_GONE,       /* the run is over */
	PLUMB_EXEC_NO_FOLDER,  /* this user may not write into the run folder */
	PLUMB_EXEC_NO_LIBRARY, /* this user may not read the collector */
};

/* Notes the collector's variables in ENVP, which brought the collector into this process. */
void plumb_exec_environment_load(char *const *envp, const char *folder);
/* Did ENVP have all that a program needs? */
bool plumb_exec_environment_known(void);

/* What this process may use. The next three are async-signal-safe; they do not keep errno. */
enum plumb_exec_reach plumb_exec_environment_reach(void);
/* How many bytes the CHANGE of ENVP (may be NULL) needs; 0: it changes nothing. */
size_t plumb_exec_environment_room(char *const *envp, enum plumb_exec_change change);
/* The changed environment, in ROOM (aligned for pointers). It also points into ENVP. */
char *const *
plumb_exec_environment_fill(char *const *envp, enum plumb_exec_change change, char *room);

/* Puts the collector into the process's own environment until plumb_exec_environment_return. Not
 * async-signal-safe. */
#define PLUMB_EXEC_VARIABLES 48u
struct plumb_exec_own {
	unsigned count;
	char *memory; /* of the entries */
	struct {
		const char *entry; /* "NAME=VALUE" */
		char *before;      /* the value that was there; NULL: none */
	} variables[PLUMB_EXEC_VARIABLES];
};
void plumb_exec_environment_lend(struct plumb_exec_own *own);
void plumb_exec_environment_return(struct plumb_exec_own *own);

#endif
