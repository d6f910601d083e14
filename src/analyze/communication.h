/* SPDX-License-Identifier: Apache-2.0 */
/* What to do about communication that takes much of the GPU time, by what the profile knows of it:
 * how much of it is waiting, how much computation hides, how long one operation takes. */
#ifndef PLUMB_ANALYZE_COMMUNICATION_H
#define PLUMB_ANALYZE_COMMUNICATION_H

#include "analyze/study.h"

/* Writes the advice and evidence of DRAFT, which is about the collective KERNEL (NULL: unknown).
 * False: out of memory. */
bool plumb_communication_advice(const struct plumb_study *study, const char *kernel,
                                struct plumb_draft *draft);

#endif
