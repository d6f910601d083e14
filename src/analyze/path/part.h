/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of which part of a profile a graph is made, where there are more spans than it can have: whole
 * iterations of a loop around the median one, as many as there is room for; without a loop, or
 * where one iteration has more, the last stretch of time that there is room for. All spans of that
 * time are in it, of every track; what reaches beyond it is cut off there.
 */
#ifndef PLUMB_ANALYZE_PATH_PART_H
#define PLUMB_ANALYZE_PATH_PART_H

#include "analyze/iterations.h"

/* A graph is made of as many spans, at about 100 bytes each, and 40 more where they are a part. */
#define PLUMB_PATH_SPANS_MOST 8388608

struct plumb_path_part {
	bool whole; /* all spans; else those from START_NS until END_NS: */
	int64_t start_ns, end_ns;
	uint32_t most;        /* spans that there was room for */
	uint32_t track;       /* whose iterations these are; PLUMB_NONE: of no loop */
	uint32_t first, last; /* of its outermost level */
};

/* With room for MOST spans. TRACK: around the iterations of that one, if it has a loop; PLUMB_NONE,
 * or none: of the main track with most kernels that has one. Linear in the spans. PLUMB_EEMPTY: not
 * one span fits; PLUMB_ESYSTEM. */
int plumb_path_part_find(const struct plumb_profile *profile, const struct plumb_iterations *found,
                         uint32_t track, uint32_t most, struct plumb_path_part *part,
                         struct plumb_error *error) PLUMB_MUST_CHECK;

/* The spans of the part, cut, in the order of PROFILE; malloced, NULL: memory is out. */
struct plumb_span *plumb_path_part_spans(const struct plumb_profile *profile,
                                         const struct plumb_path_part *part, uint32_t *count);

/* Of the COUNT iterations from FIRST on, the one with the median length, of those with a known
 * beginning where there are any; PLUMB_NONE: there is none, or memory is out. */
uint32_t
plumb_path_median(const struct plumb_iteration_level *level, uint32_t first, uint32_t count);

#endif
