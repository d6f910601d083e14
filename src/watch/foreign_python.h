/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Python frames of a thread of another process. The process itself says how frames lie in
 * memory (plumb_region_python). A walk of a thread that does not run has all frames, and proves
 * that they are the thread's. A glimpse of one that runs has those that stayed.
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

#define PLUMB_FOREIGN_SEEN 4096u /* a deeper stack is not seen */

/* A frame of a thread that may run meanwhile. */
struct plumb_foreign_seen {
	uint64_t address, code;
	int64_t at; /* its instruction, as the frame has it */
	unsigned owner;
};
struct plumb_foreign_glimpse {
	uint32_t count, again_count;
	struct plumb_foreign_seen frames[PLUMB_FOREIGN_SEEN]; /* outermost first */
	struct plumb_foreign_seen again[PLUMB_FOREIGN_SEEN];  /* in the newest look */
	uint64_t random;
};

/* As plumb_foreign_python_walk, but the thread may run. Only the outermost frames that did not
 * change in several looks are kept: so they are a stack that the thread had. The innermost of them
 * stands for whatever it calls, and may have moved on. False: nothing stayed, or no frames. */
bool
plumb_foreign_python_glimpse(struct plumb_foreign *memory, const struct plumb_region_python *python,
                             uint64_t state, uint64_t self, struct plumb_foreign_glimpse *glimpse);
/* Looks once more, and keeps what is still there. */
bool
plumb_foreign_python_confirm(struct plumb_foreign *memory, const struct plumb_region_python *python,
                             uint64_t state, uint64_t self, struct plumb_foreign_glimpse *glimpse);

enum plumb_foreign_place {
	PLUMB_FOREIGN_PLACE,    /* it is in its code: FRAME is filled */
	PLUMB_FOREIGN_INTERNAL, /* the program itself would not see it */
	PLUMB_FOREIGN_NONE,     /* it runs no code object */
};
/* CODE: memory to read code objects from. */
enum plumb_foreign_place
plumb_foreign_python_place(struct plumb_foreign *code, const struct plumb_region_python *python,
                           const struct plumb_foreign_seen *seen,
                           struct plumb_foreign_frame *frame);

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
