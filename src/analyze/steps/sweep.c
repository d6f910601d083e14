/* SPDX-License-Identifier: Apache-2.0 */
/* A heap of what is open; what has ended leaves it when it comes to the top. */
#include "analyze/steps/sweep.h"

#include "base/search.h"

struct open {
	const struct plumb_sweep_item *items;
	uint32_t *heap; /* indexes */
	uint32_t count;
};

static bool
comes_before(const struct open *open, uint32_t a, uint32_t b)
{
	const struct plumb_sweep_item *x = &open->items[a], *y = &open->items[b];

	return x->order != y->order ? x->order < y->order : a < b;
}

static void
push(struct open *open, uint32_t item)
{
	uint32_t at = open->count++;

	for (; at && comes_before(open, item, open->heap[(at - 1) / 2]); at = (at - 1) / 2)
		open->heap[at] = open->heap[(at - 1) / 2];
	open->heap[at] = item;
}

static void
pop(struct open *open)
{
	uint32_t moved = open->heap[--open->count], at = 0, child;

	while ((child = 2 * at + 1) < open->count) {
		if (child + 1 < open->count &&
		    comes_before(open, open->heap[child + 1], open->heap[child]))
			child++;
		if (!comes_before(open, open->heap[child], moved))
			break;
		open->heap[at] = open->heap[child];
		at = child;
	}
	open->heap[at] = moved;
}

static bool
add_piece(struct plumb_pieces *pieces, int64_t start, int64_t end, uint32_t id)
{
	struct plumb_piece *last = pieces->count ? &pieces->items[pieces->count - 1] : NULL;

	if (start >= end)
		return true;
	if (last && last->id == id && last->end_ns == start) {
		last->end_ns = end;
		return true;
	}
	last = plumb_vec_add(pieces);
	if (last)
		*last = (struct plumb_piece){ start, end, id };
	return last != NULL;
}

int
plumb_sweep(const struct plumb_sweep_item *items, uint32_t count, struct plumb_pieces *pieces)
{
	struct open open = { items, malloc(((size_t)count + 1) * sizeof *open.heap), 0 };
	int64_t now = count ? items[0].start_ns : 0;
	bool done = open.heap != NULL;
	uint32_t next = 0;

	while (done && (next < count || open.count)) {
		while (next < count && items[next].start_ns <= now)
			push(&open, next++);
		while (open.count && items[open.heap[0]].end_ns <= now)
			pop(&open);
		if (!open.count && next == count)
			break;
		int64_t until = next < count ? items[next].start_ns : INT64_MAX;
		uint32_t id = PLUMB_NONE;
		if (open.count) {
			const struct plumb_sweep_item *top = &items[open.heap[0]];

			id = top->id;
			until = top->end_ns < until ? top->end_ns : until;
		}
		done = add_piece(pieces, now, until, id);
		now = until;
	}
	free(open.heap);
	return done ? 0 : PLUMB_ESYSTEM;
}

uint32_t
plumb_pieces_from(const struct plumb_pieces *pieces, int64_t ns)
{
	return plumb_search(i, pieces->count, pieces->items[i].end_ns <= ns);
}
