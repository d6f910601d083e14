/* SPDX-License-Identifier: Apache-2.0 */
/* What late.c (who comes late), late_few.c (in how many steps) and late_why.c (why) share. Private
 * to analyze/. */
#ifndef PLUMB_ANALYZE_LATE_H
#define PLUMB_ANALYZE_LATE_H

#include "analyze/rank_waits.h"
#include "analyze/study.h"

struct plumb_late {
	struct plumb_study *study;
	struct plumb_rank_waits waits;
	int64_t from_ns, to_ns;  /* what is looked at: the loop, if there is one */
	double steps;            /* iterations in it; NAN: unknown */
	PLUMB_VEC(int64_t) ends; /* of each of these iterations; none: unknown */
	int64_t notable_ns;      /* others wait as long for a rank that comes late */
	double scale;            /* of the run to what is looked at */
	/* By rank. */
	int64_t *waited;     /* in collectives, exposed; not in pairs */
	int64_t *caused;     /* what all others waited for it */
	uint64_t *times;     /* how often that was notable */
	unsigned char *late; /* it is one of those that come late */
	struct plumb_rank_sums *sums;
	uint32_t taking_part; /* ranks with collectives of several ranks in it */
};

/* Is SET in what is looked at? */
static inline bool
plumb_late_has(const struct plumb_late *late, const struct plumb_rank_set *set)
{
	return set->end_ns > late->from_ns && set->end_ns <= late->to_ns;
}

enum plumb_late_cause {
	PLUMB_LATE_UNKNOWN,
	PLUMB_LATE_DEVICE, /* its GPU computes longer */
	PLUMB_LATE_HOST,   /* its GPU idles longer: the host gives it work late */
};

/* Why the late rank RANK is late by LATE_NS. */
struct plumb_late_why {
	uint32_t rank;
	int64_t late_ns; /* how much less than the others it waits */
	enum plumb_late_cause cause;
	int64_t compute_more_ns, idle_more_ns; /* than the mean of the others */
	/* Of the device: */
	double slower;       /* how many times as long the same kernels take; NAN */
	bool all_slower;     /* about equally */
	double kernels_more; /* times as many; NAN */
	uint32_t kernel;     /* frame that takes more time, or PLUMB_NONE */
	/* Of the host: the frame of the line where it spends more time; what says so, or NULL. */
	uint32_t line;
	const char *metric; /* "wait.time", "cpu.time", "op.time"; NULL: only the GPU's gaps */
	int64_t line_ns;    /* more than the mean of the others */
	/* The line that launches the work before which the GPU idles longer. */
	uint32_t gap_line;
	int64_t gap_ns;
	uint32_t context; /* of that work, or of the kernel; 0: unknown */
};

/* PLUMB_ESYSTEM: out of memory. */
int plumb_late_explain(const struct plumb_late *late, uint32_t rank, struct plumb_late_why *why);

#endif
