/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Python frames of a thread of another process that does not run meanwhile. How they lie in
 * memory the process told itself (plumb_region_python); that they are that thread's is proved on
 * each walk.
 */
#ifndef PLUMB_CLI_FOREIGN_PYTHON_H
#define PLUMB_CLI_FOREIGN_PYTHON_H

#include "cli/foreign.h"
#include "region/layout.h"

#define PLUMB_FOREIGN_FRAMES 1024u /* the innermost so many are kept */

struct plumb_foreign_frame {
	uint64_t code;
	int32_t lasti; /* bytes from the first instruction; -1: none */
};

struct plumb_foreign_walk {
	uint32_t count;
	bool truncated;
	struct plumb_foreign_frame frames[PLUMB_FOREIGN_FRAMES]; /* innermost first */
};

/* STATE is the thread state of the thread whose pthread_self() is SELF, as last seen there: it may
 * have gone. False: there are no frames, or they cannot be proved to be the thread's. */
bool
plumb_foreign_python_walk(struct plumb_foreign *memory, const struct plumb_region_python *python,
                          uint64_t state, uint64_t self, struct plumb_foreign_walk *walk);

/* Texts as the collector has them (plumb_python_symbol). */
struct plumb_foreign_symbol {
	char file[4096];
	char function[1024];
	uint32_t line; /* 0 unknown */
};

/* Makes text of a frame that a walk has just met. False: its code object cannot be read. */
bool
plumb_foreign_python_symbol(struct plumb_foreign *memory, const struct plumb_region_python *python,
                            const struct plumb_foreign_frame *frame,
                            struct plumb_foreign_symbol *symbol);

#endif
