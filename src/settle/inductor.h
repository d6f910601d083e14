/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What PyTorch's compiler (Inductor) leaves about the code that it makes:
 *
 *   inductor_code.c  a generated Python file: which of its lines calls which kernel, and the
 *                    comments that name the operators the kernel was made from. It is always
 *                    there.
 *   inductor_log.c   the structured log of TORCH_TRACE: graphs as they were before and after, whose
 *                    comments name the lines of your code; with INDUCTOR_PROVENANCE also which
 *                    nodes a kernel was made from.
 *
 * Both are untrusted text, of any version of PyTorch: what is not understood is left out.
 */
#ifndef PLUMB_SETTLE_INDUCTOR_H
#define PLUMB_SETTLE_INDUCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"
#include "base/vec.h"

/* A range of texts. */
struct plumb_inductor_list {
	uint32_t from, count;
};

/* ---- a generated file ---- */

struct plumb_inductor_call {
	uint32_t first, line; /* the lines from its comment to the call */
	const char *kernel;   /* "triton_poi_fused_add_0", "extern_kernels.mm" */
	uint32_t handle;      /* tells two calls of a kernel apart in the log; 0: none */
	bool library;         /* not a kernel of Inductor: it may launch kernels of any name */
	bool commented;       /* `sources` and `operators` are known */
	struct plumb_inductor_list sources;   /* names of nodes */
	struct plumb_inductor_list operators; /* "aten::mul", … as they were before decomposition */
};

struct plumb_inductor_definition {
	const char *kernel;
	struct plumb_inductor_list nodes; /* names of the nodes that it was first made from */
	const char *file;                 /* where it was written by hand; else NULL */
	uint32_t line;
};

struct plumb_inductor_code {
	bool generated; /* false: it is some other file */
	bool backward;
	PLUMB_VEC(struct plumb_inductor_call) calls; /* by line */
	PLUMB_VEC(struct plumb_inductor_definition) definitions;
	PLUMB_VEC(const char *) texts;
	char *text;
};

/* Parses TEXT (of BYTES, and a byte more to write to), which it takes over. False: no memory. */
bool plumb_inductor_code_parse(struct plumb_inductor_code *code, char *text, size_t bytes);
/* False: the file cannot be read, or is no regular file of sensible size (or no memory). */
bool plumb_inductor_code_read(struct plumb_inductor_code *code, const char *path);
void plumb_inductor_code_free(struct plumb_inductor_code *code);
/* The call that LINE is part of; NULL: none. */
const struct plumb_inductor_call *
plumb_inductor_call_at(const struct plumb_inductor_code *code, uint32_t line);
/* The definition of a kernel; NULL: none. */
const struct plumb_inductor_definition *
plumb_inductor_definition_of(const struct plumb_inductor_code *code, const char *kernel);

/* ---- a log ---- */

/* A node of a graph, and the line of your code that it stands for. */
struct plumb_inductor_node {
	const char *name;
	const char *op;   /* "aten::mul", or NULL */
	const char *file; /* or NULL */
	const char *function;
	uint32_t line;
};

/* Names or stacks of a kernel's call ("triton_poi_fused_add_0:1"). */
struct plumb_inductor_entry {
	const char *call;
	struct plumb_inductor_list texts;
};

/* A generated file as one compilation made it, or took it from a cache. */
struct plumb_inductor_graph {
	const char *path;
	struct plumb_inductor_list before, after; /* nodes before and after Inductor's passes */
	struct plumb_inductor_list kernels;       /* entries: nodes of each call */
	struct plumb_inductor_list stacks;        /* entries: your own stacks of each call */
	bool cached;                              /* it was not compiled but found */
	bool same_names; /* `before` has the names that the file's comments use */
};

/* Bounds on what is read of all logs together. */
#define PLUMB_INDUCTOR_LOG_BYTES ((uint64_t)4 << 30)
#define PLUMB_INDUCTOR_PAYLOAD_BYTES ((size_t)32 << 20)

struct plumb_inductor_log {
	PLUMB_VEC(struct plumb_inductor_graph) graphs;
	PLUMB_VEC(struct plumb_inductor_node) nodes;
	PLUMB_VEC(struct plumb_inductor_entry) entries;
	PLUMB_VEC(const char *) texts;
	struct plumb_pool *pool;
	uint64_t bytes;   /* read so far */
	uint64_t damaged; /* records that were cut off, too long, or not JSON */
	bool full;        /* there was more than is read */
	bool no_memory;
};

/* Takes in the file PATH if one of the COUNT processes PIDS wrote it. False: it did not, or it is
 * no regular file that can be read. */
bool plumb_inductor_log_read(struct plumb_inductor_log *log, const char *path, const int64_t *pids,
                             uint32_t count);
void plumb_inductor_log_free(struct plumb_inductor_log *log);
/* A node of the range LIST by its name; NULL: none. */
const struct plumb_inductor_node *
plumb_inductor_node_named(const struct plumb_inductor_log *log, struct plumb_inductor_list list,
                          const char *name);
/* The texts that the entries of the range LIST have of a call; count 0: none. */
struct plumb_inductor_list
plumb_inductor_texts_of(const struct plumb_inductor_log *log, struct plumb_inductor_list list,
                        const struct plumb_inductor_call *call);
/* Do the nodes stand for the same line? */
bool
plumb_inductor_same_place(const struct plumb_inductor_node *a, const struct plumb_inductor_node *b);
/* The graph of the generated file PATH. NULL: none, or AMBIGUOUS: several that contradict each
 * other. */
const struct plumb_inductor_graph *
plumb_inductor_graph_of(const struct plumb_inductor_log *log, const char *path, bool *ambiguous);

#endif
