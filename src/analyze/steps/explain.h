/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What makes one iteration differ from the others.
 *
 *	struct plumb_explained told;
 *	if (plumb_explain(&moments, level, n, peers, peer_count, &told) < 0) …
 *	told.rows.items[0].cause, .ns, .text
 *	plumb_explained_free(&told);
 *
 * An iteration lasts from the end of the previous one to its own end. Each moment of it belongs to
 * one thing: a kernel, a collective, a copy, another process's work, or, if the device has no work,
 * to what the launching thread did. So the differences of all these things add up to the difference
 * of the iteration. Each difference is from the median over the other iterations. The host may also
 * do more while the device works. That is hidden behind the device's work, and comes last.
 */
#ifndef PLUMB_ANALYZE_STEPS_EXPLAIN_H
#define PLUMB_ANALYZE_STEPS_EXPLAIN_H

#include "analyze/collectives.h"
#include "analyze/iterations.h"
#include "analyze/steps/moments.h"

enum plumb_cause {
	PLUMB_CAUSE_HOST,
	PLUMB_CAUSE_COPY,
	PLUMB_CAUSE_KERNELS,
	PLUMB_CAUSE_RANK,
	PLUMB_CAUSE_CONTENTION,
	PLUMB_CAUSE_IDLE, /* and what the host did is unknown */
	PLUMB_CAUSES,
};
extern const char *const plumb_cause_names[PLUMB_CAUSES];

struct plumb_difference {
	uint32_t cause; /* enum plumb_cause */
	bool hidden;
	bool whole;   /* of all kernels, each of which takes longer */
	uint32_t key; /* of the moments; PLUMB_NONE: of several */
	int64_t ns,
		usual_ns; /* in this iteration, and on the median; the difference is what counts */
	int64_t count, usual_count;
	int64_t bytes, usual_bytes; /* of copies; PLUMB_UNKNOWN */
	int64_t rank;               /* that the others waited for, or PLUMB_UNKNOWN */
	char *text;                 /* "host: 12.3 ms more in …" */
};

struct plumb_explained {
	uint32_t iteration, median; /* the number of the one that lasts as long as the median */
	int64_t ns, usual_ns;       /* how long they last, with the interval before */
	struct {
		struct plumb_difference *items;
		uint32_t count, capacity;
	} rows; /* what differs most first, hidden ones last */
};

/* The same iteration on the main track of another rank. */
struct plumb_explain_peer {
	struct plumb_moments *moments;
	const struct plumb_iteration_level *level;
	uint32_t iteration;
	int64_t rank;
	bool common_clock;
	const struct plumb_collectives *together; /* of the profile */
};

/* Of iteration NUMBER of LEVEL; RANK is that of the track, or PLUMB_UNKNOWN. For
 * plumb_explained_free in any case. PLUMB_ESYSTEM: memory is out. */
int plumb_explain(struct plumb_moments *moments, const struct plumb_iteration_level *level,
                  uint32_t number, int64_t rank, const struct plumb_explain_peer *peers,
                  uint32_t peer_count, struct plumb_explained *told) PLUMB_MUST_CHECK;
void plumb_explained_free(struct plumb_explained *told);

#endif
