/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The context at which a sleeping thread waits: its Python frames, read from the process's memory,
 * alone or inside the operator or range that it is in.
 */
#ifndef PLUMB_CLI_WAITING_PYTHON_H
#define PLUMB_CLI_WAITING_PYTHON_H

#include "base/vec.h"
#include "cli/foreign_python.h"
#include "cli/waiting_tree.h"

#define PLUMB_WAITING_DEPTH 1024u /* of the contexts around an operator that are looked at */

/* The text of a frame, in the tree's own strings. */
struct plumb_waiting_location {
	struct plumb_foreign_frame frame;
	plumb_id name, file;
	uint32_t line;
};

/* What is kept for a process. Zero it to start. */
struct plumb_waiting_python {
	bool refused; /* its memory may not be read */
	/* They hold while no code object is freed. */
	uint32_t codes_freed;
	PLUMB_VEC(struct plumb_waiting_location) locations;
	struct plumb_map map;
};

/* Room for one walk. Zero it to start. */
struct plumb_waiting_reader {
	struct plumb_foreign memory;
	struct plumb_foreign_walk walk;
	struct plumb_foreign_symbol symbol;
	struct plumb_region_python shape; /* as the program told it, at one moment */
	const struct plumb_record_node *around[PLUMB_WAITING_DEPTH];
};

struct plumb_waiting_at {
	const struct plumb_record_thread *thread;
	plumb_id under; /* the operator's or range's context that it is in, 0 none */
	/* Found: */
	plumb_id node; /* 0: nothing is known */
	bool truncated;
};

/* The thread must be asleep; who cannot prove that it stayed so must not believe what is found. */
void plumb_waiting_find(struct plumb_waiting_reader *reader, struct plumb_waiting_python *python,
                        struct plumb_waiting_tree *tree, struct plumb_waiting_at *at);
void plumb_waiting_python_free(struct plumb_waiting_python *python);

#endif
