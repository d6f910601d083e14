/* SPDX-License-Identifier: Apache-2.0 */
/* Private to late*.c: which collective others wait in for the late ranks, if the communication
 * library told (plumb run --traffic). */
#ifndef PLUMB_ANALYZE_LATE_TOLD_H
#define PLUMB_ANALYZE_LATE_TOLD_H

#include "analyze/late.h"

/* *FOUND: one row of those in which the most is waited; NULL: none was told. False: out of
 * memory. */
bool plumb_late_find_told(const struct plumb_late *late, const struct plumb_collective **found);
/* Its facts, for the evidence. */
void plumb_late_write_told(const struct plumb_profile *profile, const struct plumb_collective *row,
                           struct plumb_json *json);
/* A sentence about it, with a space before; empty for NULL. Returns TEXT. */
const char *plumb_late_name_told(const struct plumb_profile *profile,
                                 const struct plumb_collective *row, char *text, size_t size);

#endif
