/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The context at which a thread is: its Python frames, read from the process's memory. If a
 * sleeping thread is in an operator or range, the frames stand inside that. Of a thread that may
 * run, only the outer frames are known, those that stay.
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

#define PLUMB_WATCH_SEEN 256u /* contexts of one place, the outermost */

/* Room to look at a thread that may run. Zero it to start. */
struct plumb_watch_glimpser {
	struct plumb_watch_reader reader;
	struct plumb_foreign stack;
	struct plumb_foreign_glimpse glimpse;
	struct {
		struct plumb_watch_location location;
		uint32_t frame; /* of the glimpse */
	} seen[PLUMB_WATCH_SEEN];
};

/* The context of what THREAD has done for a moment, and may still do: a part of its stack, from the
 * outermost frame on. 0: unknown. */
plumb_id
plumb_watch_place_glimpse(struct plumb_watch_glimpser *glimpser, struct plumb_watch_python *python,
                          struct plumb_watch_tree *tree, const struct plumb_record_thread *thread);

void plumb_watch_python_free(struct plumb_watch_python *python);

#endif
