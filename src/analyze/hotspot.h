/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the hotspot analysis: the causes it knows. Private to hotspot*.c. */
#ifndef PLUMB_ANALYZE_HOTSPOT_H
#define PLUMB_ANALYZE_HOTSPOT_H

#include "analyze/study.h"

/* Each drafts what it finds and sets EXPLAINED, by context, for the kernels that its findings
 * cover. Negative: no memory. */
int plumb_hotspot_layout(struct plumb_study *study, unsigned char *explained);
int plumb_hotspot_conversions(struct plumb_study *study, unsigned char *explained);
int plumb_hotspot_pageable(struct plumb_study *study);

#endif
