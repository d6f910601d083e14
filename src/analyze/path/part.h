/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the part of a profile for a graph, if the profile has more spans than a graph can have.
 * The part is as many whole iterations of a loop as fit, around the median iteration. Without a
 * loop, or if one iteration is too large, it is the last stretch of time that fits. The part has
 * all spans of that time, of every track. Spans that reach beyond it are cut there.
 */
#ifndef PLUMB_ANALYZE_PATH_PART_H
#define PLUMB_ANALYZE_PATH_PART_H

#include "analyze/iterations.h"

/* A graph is made of as many spans, at about 100 bytes each. If they are a part of a profile that
 * keeps its own, they take 48 more. */
#define PLUMB_PATH_SPANS_MOST 8388608

struct plumb_path_part {
	bool whole; /* all spans; else those from START_NS until END_NS: */
	int64_t start_ns, end_ns;
	uint32_t most;        /* spans that there was room for */
	uint32_t track;       /* whose iterations these are; PLUMB_NONE: of no loop */
	uint32_t first, last; /* of its outermost level */
};

/* The part has at most MOST spans. It uses the loop of TRACK. If TRACK is PLUMB_NONE or has no
 * loop, it uses the main track with the most kernels that has one. Linear in the spans.
 * PLUMB_EEMPTY: not one span fits; PLUMB_ESYSTEM. */
int plumb_path_part_find(const struct plumb_profile *profile, const struct plumb_iterations *found,
                         uint32_t track, uint32_t most, struct plumb_path_part *part,
                         struct plumb_error *error) PLUMB_MUST_CHECK;

/* The spans of the part, cut, in the order of PROFILE; malloced, NULL: memory is out. */
struct plumb_span *plumb_path_part_spans(const struct plumb_profile *profile,
                                         const struct plumb_path_part *part, uint32_t *count);

/* The same in place: PROFILE gives its spans up. */
struct plumb_span *plumb_path_part_take(struct plumb_profile *profile,
                                        const struct plumb_path_part *part, uint32_t *count);

/* The iteration with the median length, of COUNT iterations from FIRST on. If some have a known
 * beginning, only these count. PLUMB_NONE: there is none, or no memory. */
uint32_t
plumb_path_median(const struct plumb_iteration_level *level, uint32_t first, uint32_t count);

#endif
