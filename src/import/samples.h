/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of CPU time as other tools' traces have them: a thread, a moment, a call chain, and what
 * one stands for. What a format does not tell stays unknown, and is counted.
 *
 *	struct plumb_samples samples = { .trace = trace };
 *	struct plumb_samples_chain chain = { 0 };
 *	// Outermost first.
 *	plumb_samples_under(&samples, &chain, plumb_samples_frame(trace, name, file, line));
 *	plumb_samples_take(&samples, track, &chain, at_ns, ns);
 *	plumb_samples_end(&samples);
 *
 * A file whose frames have numbers and parents gives them to a tree, in any order, and asks for
 * chains once it has been read: parents may be missing or go round.
 */
#ifndef PLUMB_IMPORT_SAMPLES_H
#define PLUMB_IMPORT_SAMPLES_H

#include "base/map.h"
#include "base/vec.h"
#include "import/trace.h"

#define PLUMB_SAMPLES_DEPTH_MAX 4096

/* Zero it to start, but for `trace`. */
struct plumb_samples {
	struct plumb_trace *trace;
	int64_t timeless, too_deep, lost; /* to be counted in the ledger */
	int64_t idle;
};

struct plumb_samples_chain {
	uint32_t context; /* 0: no function is known */
	uint32_t depth;
	bool cut;  /* it has more frames than are kept; the outermost ones are */
	bool lost; /* the file does not have all of it */
};

/* A function; one without a name is "[unknown code]", and so is a chain without functions. */
uint32_t plumb_samples_frame(struct plumb_trace *trace, struct plumb_slice name,
                             struct plumb_slice file, int64_t line);
/* FRAME is the next function of CHAIN. */
void plumb_samples_under(struct plumb_samples *samples, struct plumb_samples_chain *chain,
                         uint32_t frame);
/* NS is the CPU time that the sample stands for. If it is PLUMB_UNKNOWN, the sample is counted and
 * not taken. */
void plumb_samples_take(struct plumb_samples *samples, uint32_t track,
                        const struct plumb_samples_chain *chain, int64_t at_ns, int64_t ns);
/* All are taken: what was lost goes to the ledger. */
void plumb_samples_end(struct plumb_samples *samples);

/* ---- frames with numbers and parents ---- */

/* A function, as plumb_samples_frame has it. */
struct plumb_samples_function {
	struct plumb_slice name, file;
	int64_t line;
};

struct plumb_samples_node {
	uint64_t owner;
	int64_t number, parent, line;
	uint32_t name, file; /* strings */
	bool shown, idle, found, walked;
	struct plumb_samples_chain chain;
};

/* Zero it to start. */
struct plumb_samples_tree {
	PLUMB_VEC(struct plumb_samples_node) nodes;
	struct plumb_map map;
	PLUMB_VEC(uint32_t) walk;
};

/* The frame NUMBER of OWNER is under that with the number PARENT, PLUMB_UNKNOWN: none. FUNCTION may
 * be NULL: only what is under it shows. IDLE: a thread that is there computes nothing. A number
 * that was given before is not taken again. What no sample meets leaves no frame. False: no
 * memory. */
bool plumb_samples_node(struct plumb_samples *samples, struct plumb_samples_tree *tree,
                        uint64_t owner, int64_t number, int64_t parent,
                        const struct plumb_samples_function *function, bool idle);
/* A sample of it, as plumb_samples_take. False: no memory. */
bool
plumb_samples_take_at(struct plumb_samples *samples, struct plumb_samples_tree *tree,
                      uint64_t owner, int64_t number, uint32_t track, int64_t at_ns, int64_t ns);
void plumb_samples_tree_free(struct plumb_samples_tree *tree);

#endif
