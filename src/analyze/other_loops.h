/* SPDX-License-Identifier: Apache-2.0 */
/* Findings of loops next to the main one: which loops are large enough, and what is found in
 * several of them. */
#ifndef PLUMB_ANALYZE_OTHER_LOOPS_H
#define PLUMB_ANALYZE_OTHER_LOOPS_H

#include "analyze/study.h"

/* At most so many, so that the time that analyses take stays bounded. */
#define PLUMB_OTHER_LOOPS 3

/* Writes to NUMBERS which loops of PROFILE get findings next to the main one, the longest first.
 * PLUMB_ESYSTEM: no memory. */
int plumb_other_loops_find(const struct plumb_profile *profile,
                           const struct plumb_thresholds *thresholds,
                           uint32_t numbers[PLUMB_OTHER_LOOPS], uint32_t *count);

/* What several windows have with one id becomes one row of ROWS: that with the most by WEIGH. Its
 * evidence says where else it is (`also_in`); STUDY keeps that. PLUMB_ESYSTEM: no memory. */
int
plumb_other_loops_join(struct plumb_study *study, struct plumb_finding_text *rows, uint32_t *count,
                       double (*weigh)(const struct plumb_finding_text *finding));

#endif
