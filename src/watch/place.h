/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The context at which a sleeping thread waits: its Python frames, read from the process's memory.
 * If the thread is in an operator or range, the frames stand inside that.
 */
#ifndef PLUMB_WATCH_PLACE_H
#define PLUMB_WATCH_PLACE_H

#include "base/vec.h"
#include "watch/foreign_python.h"
#include "watch/tree.h"

#define PLUMB_WATCH_DEPTH 1024u /* contexts around an operator, at most */

/* The text of a frame, in the tree's own strings. */
struct plumb_watch_location {
	struct plumb_foreign_frame frame;
	plumb_id name, file;
	uint32_t line;
};

/* What plumb remembers of a process. Zero it to start. */
struct plumb_watch_python {
	bool refused; /* its memory may not be read */
	/* Texts of frames. They are valid while no code object is freed. */
	uint32_t codes_freed;
	PLUMB_VEC(struct plumb_watch_location) locations;
	struct plumb_map map;
};

/* Room for one walk. Zero it to start. */
struct plumb_watch_reader {
	struct plumb_foreign memory;
	struct plumb_foreign_walk walk;
	struct plumb_foreign_symbol symbol;
	struct plumb_region_python shape; /* a copy: the program may change its own */
	const struct plumb_record_node *around[PLUMB_WATCH_DEPTH];
};

struct plumb_watch_at {
	const struct plumb_record_thread *thread;
	plumb_id under; /* the context of the operator or range that it is in; 0: none */
	/* Found: */
	plumb_id node; /* 0: unknown */
	bool truncated;
};

/* The thread must be asleep. Unless you can prove that it stayed asleep, do not use the result. */
void plumb_watch_place_find(struct plumb_watch_reader *reader, struct plumb_watch_python *python,
                            struct plumb_watch_tree *tree, struct plumb_watch_at *at);
void plumb_watch_python_free(struct plumb_watch_python *python);

#endif
