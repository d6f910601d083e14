/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of a profile's GPU work (by device, start, track, end) and spans (by track, start, the
 * longer first, context: an outer span comes before those inside it). For whoever makes a profile
 * without a builder.
 */
#ifndef PLUMB_MODEL_ORDER_H
#define PLUMB_MODEL_ORDER_H

#include "model/profile.h"

/* 0, or PLUMB_ESYSTEM when memory is out. */
int
plumb_order_work(struct plumb_work_item *work, uint32_t count, const struct plumb_track *tracks);
/* In place, and with little room beside where they are almost in order, as a trace's are. */
int plumb_order_spans(struct plumb_span *spans, uint32_t count);

#endif
