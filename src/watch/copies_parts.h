/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a run as arithmetic: by how much each value grew in each part, and which neighbours
 * become one. No clock, no file and no region is looked at here.
 *
 *	struct plumb_parts parts = { .bytes_bound = … };
 *	plumb_parts_begin(&parts, start);
 *	plumb_parts_add(&parts, &(struct plumb_part_entry){ … }); // by region, then item
 *	plumb_parts_end(&parts, end, has_work);                    // may join parts
 *	…
 *	plumb_parts_drop_small_borders(&parts);
 *	plumb_parts_free(&parts);
 *
 * Once `fate` is set, values are missing, and the parts mean nothing.
 */
#ifndef PLUMB_WATCH_COPIES_PARTS_H
#define PLUMB_WATCH_COPIES_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/words.h"
#include "region/copies.h"

/* More entries than fit here make parts one, even if they are few. */
#define PLUMB_PARTS_MEMORY (UINT64_C(64) << 20)

/* How much an item grew in a part. */
struct plumb_part_entry {
	uint32_t region;
	uint32_t item : 31, is_time : 1; /* is_time: ns that tell what the program does */
	int64_t sum;
	int64_t before; /* of it, what must lie before the part: it ended in it */
	uint64_t count; /* above 0 */
	double m2;
};

struct plumb_part {
	uint64_t start, end;
	uint64_t first_work, last_work;   /* from and to a look at which work had ended */
	struct plumb_part_entry *entries; /* by region, then item */
	uint32_t count, capacity;
	double cost; /* of joining it with the one before */
};

struct plumb_parts {
	struct plumb_part items[PLUMB_COPIES_PARTS + 1];
	uint32_t count;       /* without the newest, until it ends */
	enum plumb_fate fate; /* what became of values: 0, MEMORY_BOUND or NO_MEMORY */
	uint64_t bytes, bytes_most, bytes_bound; /* held now; at most until now; allowed */
};

void plumb_parts_begin(struct plumb_parts *parts, uint64_t start);
/* Adds to the newest part. False: no memory (`fate`). */
bool plumb_parts_add(struct plumb_parts *parts, const struct plumb_part_entry *entry);
/* HAS_WORK: an operator or GPU work ended in it. At most PLUMB_COPIES_PARTS parts are left. */
void plumb_parts_end(struct plumb_parts *parts, uint64_t end, bool has_work);
/* Leaves those borders that are clear beside the others. */
void plumb_parts_drop_small_borders(struct plumb_parts *parts);
/* At the end: moves what must lie before a part to the part before it, if the item grew there too.
 * Otherwise no part has it. */
void plumb_parts_move_back(struct plumb_parts *parts);
/* Of all parts that ended. */
uint64_t plumb_parts_entries(const struct plumb_parts *parts);
void plumb_parts_free(struct plumb_parts *parts);

/* The m2 of A and B together. */
double plumb_parts_joined_m2(const struct plumb_part_entry *a, const struct plumb_part_entry *b);

/* ITEMS of SIZE bytes with room for more than CAPACITY, which is updated; the bytes are counted.
 * NULL, with ITEMS as they were: no memory (`fate`). */
void *plumb_parts_grow(struct plumb_parts *parts, void *items, uint32_t *capacity, size_t size);

#endif
