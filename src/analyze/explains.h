/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Causes come before symptoms. A finding explains another one if it says why there is the idle
 * time that the other one tells of, and covers at least half of it. Then it names the other one
 * (`explains` in its evidence), is at least as severe, and comes first. What is of one loop
 * explains nothing of another.
 */
#ifndef PLUMB_ANALYZE_EXPLAINS_H
#define PLUMB_ANALYZE_EXPLAINS_H

#include "analyze/study.h"

/* Finds what explains what among the findings of COUNT studies of one profile. PLUMB_ESYSTEM: no
 * memory. */
int plumb_explains_find(struct plumb_study *const *studies, uint32_t count);

/* Does FINDING name the other one? */
bool
plumb_explains(const struct plumb_finding_text *finding, const struct plumb_finding_text *other);

/* Is it a symptom that nothing explains: idle time for no known reason? */
bool plumb_explains_nothing(const struct plumb_finding_text *finding);

#endif
