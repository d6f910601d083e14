/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Python frames of a thread of another process, while the thread does not run. The process
 * itself says how frames lie in memory (plumb_region_python). Each walk proves that the frames are
 * the thread's.
 */
#ifndef PLUMB_WATCH_FOREIGN_PYTHON_H
#define PLUMB_WATCH_FOREIGN_PYTHON_H

#include "region/layout.h"
#include "watch/foreign.h"

#define PLUMB_FOREIGN_FRAMES 1024u /* a walk keeps so many, the innermost */

struct plumb_foreign_frame {
	uint64_t code;
	int32_t lasti; /* bytes from the first instruction; -1: none */
};

struct plumb_foreign_walk {
	uint32_t count;
	bool truncated;
	struct plumb_foreign_frame frames[PLUMB_FOREIGN_FRAMES]; /* innermost first */
};

/* STATE is where the thread state of the thread with pthread_self() SELF was last seen; it may be
 * gone. False: there are no frames, or nothing proves that they are the thread's. */
bool
plumb_foreign_python_walk(struct plumb_foreign *memory, const struct plumb_region_python *python,
                          uint64_t state, uint64_t self, struct plumb_foreign_walk *walk);

/* The same texts as the collector's (plumb_python_symbol). */
struct plumb_foreign_symbol {
	char file[4096];
	char function[1024];
	uint32_t line; /* 0 unknown */
};

/* Reads the texts of a frame that a walk just found. False: its code object cannot be read. */
bool
plumb_foreign_python_symbol(struct plumb_foreign *memory, const struct plumb_region_python *python,
                            const struct plumb_foreign_frame *frame,
                            struct plumb_foreign_symbol *symbol);

#endif
