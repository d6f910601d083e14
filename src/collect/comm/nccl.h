/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's interface for profilers, versions 3 to 5, as far as plumb needs it: own declarations of
 * the layouts, checked by tests/unit/test_nccl_plugin.c. RCCL has the same. Private to comm/.
 *
 * The library looks a struct up by its name (ncclProfiler_v5), and calls the functions in it.
 * startEvent gives an event a handle, by which the library speaks of it later, and which its
 * children have as their parent.
 */
#ifndef PLUMB_COLLECT_COMM_NCCL_H
#define PLUMB_COLLECT_COMM_NCCL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Kinds of event: bits of what a plugin asks for. */
enum plumb_nccl_event {
	PLUMB_NCCL_GROUP = 1 << 0,
	PLUMB_NCCL_COLLECTIVE = 1 << 1,
	PLUMB_NCCL_P2P = 1 << 2,
	PLUMB_NCCL_PROXY_OP = 1 << 3,
	PLUMB_NCCL_PROXY_STEP = 1 << 4,
	PLUMB_NCCL_PROXY_CONTROL = 1 << 5,
	PLUMB_NCCL_KERNEL_CHANNEL = 1 << 6,
	PLUMB_NCCL_NET_PLUGIN = 1 << 7,
	PLUMB_NCCL_GROUP_CALL = 1 << 8, /* from version 5 on, like the rest */
	PLUMB_NCCL_COLLECTIVE_CALL = 1 << 9,
	PLUMB_NCCL_P2P_CALL = 1 << 10,
	PLUMB_NCCL_KERNEL_LAUNCH = 1 << 11,
};

typedef int plumb_nccl_result; /* 0: success */
typedef void (*plumb_nccl_logger)(int level, unsigned long flags, const char *file, int line,
                                  const char *format, ...);

/* ---- events ---- */

struct plumb_nccl_proxy_op {
	pid_t pid;
	uint8_t channel;
	int peer, steps, chunk, is_send;
};
struct plumb_nccl_net {
	int64_t id;
	void *data;
};
struct plumb_nccl_channel {
	uint8_t channel;
	uint64_t timer; /* not in version 3 */
};

struct plumb_nccl_collective {
	uint64_t sequence;
	const char *function;
	const void *from;
	void *to;
	size_t count;
	int root;
	const char *datatype;
	uint8_t channels, warps;
	const char *algorithm, *protocol;
	void *group; /* version 5: the GROUP that was its parent before */
};
struct plumb_nccl_p2p {
	const char *function;
	void *buffer;
	const char *datatype;
	size_t count;
	int peer;
	uint8_t channels;
	void *group; /* likewise */
};

struct plumb_nccl_event_3 {
	uint8_t kind;
	void *parent;
	int rank;
	union {
		struct {
			const char *name;
			uint64_t communicator, sequence;
			const char *function;
			const void *from;
			void *to;
			size_t count;
			int root;
			const char *datatype;
			uint8_t channels, warps;
			const char *algorithm, *protocol;
		} collective;
		struct {
			const char *name;
			uint64_t communicator;
			const char *function;
			void *buffer;
			const char *datatype;
			size_t count;
			int peer;
		} p2p;
		struct plumb_nccl_proxy_op proxy_op;
		int step;
		uint8_t channel;
		struct plumb_nccl_net net;
	};
};

/* Those of COLLECTIVE and P2P end before `group` here. */
struct plumb_nccl_event_4 {
	uint8_t kind;
	void *parent;
	int rank;
	union {
		struct {
			uint64_t sequence;
			const char *function;
			const void *from;
			void *to;
			size_t count;
			int root;
			const char *datatype;
			uint8_t channels, warps;
			const char *algorithm, *protocol;
		} collective;
		struct {
			const char *function;
			void *buffer;
			const char *datatype;
			size_t count;
			int peer;
			uint8_t channels;
		} p2p;
		struct plumb_nccl_proxy_op proxy_op;
		int step;
		struct plumb_nccl_channel channel;
		struct plumb_nccl_net net;
	};
};

struct plumb_nccl_event_5 {
	uint64_t kind;
	void *parent;
	int rank;
	union {
		struct {
			bool captured;
			int depth;
		} group_call;
		struct {
			const char *function;
			size_t count;
			const char *datatype;
			int root;
			void *stream;
			bool captured;
		} collective_call;
		struct {
			const char *function;
			size_t count;
			const char *datatype;
			void *stream;
			bool captured;
		} p2p_call;
		void *launch_stream;
		struct plumb_nccl_collective collective;
		struct plumb_nccl_p2p p2p;
		struct plumb_nccl_proxy_op proxy_op;
		int step;
		struct plumb_nccl_channel channel;
		struct plumb_nccl_net net;
	};
};

/* What recordEventState tells; versions 4 and 5 have the same. */
union plumb_nccl_state_3 {
	struct {
		size_t bytes;
		int steps;
	} proxy_op;
	int appended;
};
union plumb_nccl_state_4 {
	size_t bytes;
	int appended;
	void *data;
	uint64_t timer;
};
/* States that are told in all versions. */
enum {
	PLUMB_NCCL_STEP_FIRST = 8, /* of a PROXY_STEP: up to … */
	PLUMB_NCCL_STEP_LAST = 12,
	PLUMB_NCCL_CONTROL_FIRST = 13, /* of a PROXY_CONTROL: up to … */
	PLUMB_NCCL_CONTROL_LAST = 18,
	PLUMB_NCCL_GROUP_STATE = 23, /* from here on, version 5 */
};

/* ---- the structs that the library looks up ---- */

struct plumb_nccl_profiler_3 {
	const char *name;
	plumb_nccl_result (*init)(void **context, int *mask);
	plumb_nccl_result (*start)(void *context, void **handle, struct plumb_nccl_event_3 *event);
	plumb_nccl_result (*stop)(void *handle);
	plumb_nccl_result (*state)(void *handle, int state, union plumb_nccl_state_3 *arguments);
	plumb_nccl_result (*finalize)(void *context);
};
struct plumb_nccl_profiler_4 {
	const char *name;
	plumb_nccl_result (*init)(void **context, int *mask, const char *name, uint64_t id,
	                          int nodes, int ranks, int rank, plumb_nccl_logger log);
	plumb_nccl_result (*start)(void *context, void **handle, struct plumb_nccl_event_4 *event);
	plumb_nccl_result (*stop)(void *handle);
	plumb_nccl_result (*state)(void *handle, int state, union plumb_nccl_state_4 *arguments);
	plumb_nccl_result (*finalize)(void *context);
};
struct plumb_nccl_profiler_5 {
	const char *name;
	plumb_nccl_result (*init)(void **context, uint64_t id, int *mask, const char *name,
	                          int nodes, int ranks, int rank, plumb_nccl_logger log);
	plumb_nccl_result (*start)(void *context, void **handle, struct plumb_nccl_event_5 *event);
	plumb_nccl_result (*stop)(void *handle);
	plumb_nccl_result (*state)(void *handle, int state, union plumb_nccl_state_4 *arguments);
	plumb_nccl_result (*finalize)(void *context);
};

/* ---- nccl_chain.c: the plugin that the user has set ---- */

/* What the library says when a communicator is made. */
struct plumb_nccl_init {
	unsigned version; /* of the interface that it speaks */
	uint64_t id;
	const char *name;
	int nodes, ranks, rank;
	plumb_nccl_logger log;
};
/* Loads the plugin, the first time, and calls its init. Adds to *MASK what it asks for. *THEIRS:
 * its context. False: there is none that can be called, and *THEIRS is NULL. */
bool plumb_nccl_chain_init(const struct plumb_nccl_init *init, void **theirs, int *mask);
/* Hands an event on, of the library's version, and gives *HANDLE what the plugin gave it. Handles
 * that are not the plugin's are NULL for it. */
void plumb_nccl_chain_start(unsigned version, void *theirs, void **handle, void *event);
void plumb_nccl_chain_stop(void *handle);
void plumb_nccl_chain_state(unsigned version, void *handle, int state, void *arguments);
void plumb_nccl_chain_finalize(void *theirs);
/* The bits that it asks for now. */
int plumb_nccl_chain_mask(void);

/* plumb's own handles carry a mark that no address has. */
bool plumb_nccl_is_own(const void *handle);

#endif
