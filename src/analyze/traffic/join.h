/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stalls and the traffic that they wait for. Two recordings of one program, one with --traffic and
 * one with --stalls, have the same code: an instruction is (hash of the module, function, offset)
 * in both. The slicer says which earlier instruction a stalled one waits for. If that one reached
 * the memory of another device, the stall waits for that traffic.
 */
#ifndef PLUMB_ANALYZE_TRAFFIC_JOIN_H
#define PLUMB_ANALYZE_TRAFFIC_JOIN_H

#include "analyze/kernel_code.h"
#include "analyze/traffic/traffic.h"

struct plumb_traffic_wait {
	uint32_t kernel;   /* in the join's kernels */
	uint32_t function; /* code function of the stalls: of the access */
	int64_t offset;    /* of the access */
	uint64_t most;     /* private */
	/* The same functions in the profile of the traffic, or PLUMB_NONE. It may have lines where
	 * the other one has none. */
	uint32_t traffic_function, stall_traffic_function;
	uint32_t stall_function;           /* code function of the stalls: of the stall with most */
	int64_t stall_offset;              /* of that stall */
	const char *reason;                /* its reason, in the vendor's word */
	char instruction[96], stalled[96]; /* as assembly */
	uint32_t stalls;                   /* how many instructions wait for it */
	uint64_t samples;                  /* exposed */
	double share;                      /* of the waiting of its kernel */
	int64_t part_ns;                   /* of the kernel's GPU time, at most; PLUMB_UNKNOWN */
	uint32_t object;                   /* of the traffic: with the most bytes, or PLUMB_NONE */
	uint32_t initiator, owner;         /* parties, likewise */
	uint32_t kind;                     /* enum plumb_access_kind */
	uint32_t pairs;                    /* how many pairs of initiator and owner it has */
	struct plumb_traffic_sum sum;      /* of the access, all pairs and objects */
	double confidence;                 /* mean of the slicer's, by samples */
};

struct plumb_traffic_joined_kernel {
	uint32_t function; /* code function of the stalls */
	uint64_t waiting;  /* exposed samples */
	uint64_t remote;   /* of these, for traffic */
	int64_t gpu_ns;
	char *problem; /* why its stalls have no causes; NULL: they have */
};

struct plumb_traffic_join {
	const struct plumb_profile *stalls;                    /* NULL: there is no join */
	PLUMB_VEC(struct plumb_traffic_joined_kernel) kernels; /* with remote accesses */
	PLUMB_VEC(struct plumb_traffic_wait) waits;            /* most samples first */
	uint32_t functions, functions_missing; /* with traffic; of these, not in the stalls */
	uint32_t builds, builds_missing;       /* modules, likewise */
};

/* PLUMB_EEMPTY: one side has no code, or they have no code in common; the message says what to do.
 * Call plumb_traffic_join_free even after an error. */
int plumb_traffic_join_make(const struct plumb_traffic *traffic, const struct plumb_profile *stalls,
                            struct plumb_traffic_join *join,
                            struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_traffic_join_free(struct plumb_traffic_join *join);

#endif
