/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts intervals that overlap into pieces that do not. Each moment gets the interval that counts
 * most.
 *
 *	struct plumb_pieces pieces = { 0 };
 *	if (plumb_sweep(items, count, &pieces) < 0) …      // items by start
 *	for (uint32_t i = plumb_pieces_from(&pieces, from); i < pieces.count; i++)
 *		pieces.items[i].start_ns, .end_ns, .id
 *	plumb_vec_free(&pieces);
 *
 * The pieces cover all the time from the first start to the last end. Some pieces have no interval.
 */
#ifndef PLUMB_ANALYZE_STEPS_SWEEP_H
#define PLUMB_ANALYZE_STEPS_SWEEP_H

#include "base/vec.h"
#include "model/profile.h"

struct plumb_sweep_item {
	int64_t start_ns, end_ns;
	uint32_t order; /* the lower counts more; of equals the first */
	uint32_t id;
};

struct plumb_piece {
	int64_t start_ns, end_ns;
	uint32_t id; /* PLUMB_NONE: of nothing */
};

struct plumb_pieces {
	struct plumb_piece *items;
	uint32_t count, capacity;
};

/* COUNT ITEMS by start, none of which ends before it begins. PLUMB_ESYSTEM: memory is out. */
int plumb_sweep(const struct plumb_sweep_item *items, uint32_t count,
                struct plumb_pieces *pieces) PLUMB_MUST_CHECK;

/* The first piece that ends after NS. */
uint32_t plumb_pieces_from(const struct plumb_pieces *pieces, int64_t ns);

#endif
