/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the collector in the programs that a followed process executes, even if somebody set
 * LD_PRELOAD or made a new environment before. Private to src/collect.
 */
#ifndef PLUMB_COLLECT_EXEC_H
#define PLUMB_COLLECT_EXEC_H

#include <stdbool.h>
#include <stddef.h>

/* Notes the environment variables that brought the collector into this process. Runs once, when the
 * library is loaded. FOLDER: the run folder. */
void plumb_exec_load(const char *folder);

/* The user id of the process is about to become USER: lets that user write into the run folder. */
void plumb_exec_allow(unsigned user);

/* What an executable file means for the collector. */
enum plumb_exec_kind {
	PLUMB_EXEC_FITS,    /* or nobody can tell */
	PLUMB_EXEC_STATIC,  /* no loader, so no collector; what it starts may have one */
	PLUMB_EXEC_SECURE,  /* set-user-ID and the like: the loader preloads nothing */
	PLUMB_EXEC_FOREIGN, /* another machine or word size */
	PLUMB_EXEC_MUSL,    /* its loader fails when the collector is preloaded */
};

/* The kind of the file PATH, relative to the folder FOLDER as in openat. It follows "#!" lines.
 * Async-signal-safe; it does not keep errno. */
enum plumb_exec_kind plumb_exec_look(int folder, const char *path);
/* The same for an open file, which stays as it is. */
enum plumb_exec_kind plumb_exec_look_open(int file);
/* The same for the file that execvp finds for NAME. */
enum plumb_exec_kind plumb_exec_look_named(const char *name);

#endif
