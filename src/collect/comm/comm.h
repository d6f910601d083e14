/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a communication library reports of its operations → records of the region. It knows no
 * vendor: the library's own interface (nccl.c) calls it like this.
 *
 *	comm = plumb_comm_new(&facts);          a rank joins a communicator
 *	call = plumb_comm_called(false, type);  the program calls; on its thread. May be left out
 *	                                        the library launches its kernel, which the GPU
 *	                                        runtime tells (below), on some thread; there:
 *	plumb_comm_launched_all();              next come the operations of that kernel
 *	plumb_comm_operation(comm, &one);       once for each of them
 *	plumb_comm_end(comm);
 *
 * An operation belongs to the newest kernel of the library that was launched on the same thread
 * before plumb_comm_launched_all. Several operations may share a kernel. Without such a launch (the
 * library copies instead, or runs on a thread of its own) its kernel is not known.
 *
 * No function takes a lock or heap memory. All may be called at any time, by any thread.
 */
#ifndef PLUMB_COLLECT_COMM_COMM_H
#define PLUMB_COLLECT_COMM_COMM_H

#include "collect/collector.h"

#define PLUMB_COMM_UNKNOWN INT64_MIN

struct plumb_comm; /* opaque */
struct plumb_comm_facts {
	uint64_t id;      /* the same on all its ranks; 0: not known */
	const char *name; /* that the program gave it, or NULL */
	int64_t nodes, size, rank;
};
/* NULL: there is no room. */
struct plumb_comm *plumb_comm_new(const struct plumb_comm_facts *facts);
/* Its first operation tells what was not known when it was made. */
void plumb_comm_describe(struct plumb_comm *comm, const struct plumb_comm_facts *facts);
void plumb_comm_end(struct plumb_comm *comm);

/* The program calls the library, now, on this thread. CAPTURED: into a graph, which runs it later.
 * DATATYPE stays valid, or is NULL. Returns the call's number; 0: nothing is known of it. Only the
 * newest calls are known. */
uint64_t plumb_comm_called(bool captured, const char *datatype);

/* The next operations on this thread are those of the newest launch. */
void plumb_comm_launched_all(void);

struct plumb_comm_operation {
	const char *name, *datatype, *algorithm, *protocol; /* NULL: not known */
	uint64_t count;                                     /* of elements */
	uint32_t element;                                   /* bytes of one; 0: not known */
	enum plumb_access_kind kind;                        /* COLLECTIVE, SEND or RECEIVE */
	int64_t sequence; /* of a collective: its number, the same on all ranks */
	int64_t peer, root, channels;
	uint64_t from, to; /* addresses of this rank's data; 0: not known, or none */
	uint64_t call;     /* plumb_comm_called's, or 0 */
};
void plumb_comm_operation(struct plumb_comm *comm, const struct plumb_comm_operation *operation);

/* ---- for GPU runtimes ---- */

/* A communicator was made: the functions below are wanted. */
extern bool plumb_comm_wanted;
/* Is the kernel NAME, mangled or not (NULL: no), one of a communication library? */
bool plumb_comm_is_kernel(const char *name);
/* Such a kernel is being launched on this thread; it was launched, or captured into a graph. */
void plumb_comm_launching(uint64_t correlation);
void plumb_comm_launched(uint64_t correlation, bool captured);
/* It ran on STREAM, on the GPU's clock. Reading thread. */
void plumb_comm_ran(uint64_t correlation, plumb_id stream, uint64_t start, uint64_t end);

/* ---- for process.c ---- */

/* Says so in the environment if the libraries do not tell plumb of their operations. */
void plumb_comm_describe_plugin(struct plumb_arena *arena);
/* Another recording begins: ids of the old one are forgotten. */
void plumb_comm_forget(void);
/* A forked child: the parent's communicators are none of its own. */
void plumb_comm_forked(void);

#endif
