/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of sorted starts, in order. A full block is split in two; two that are half full together
 * become one, so that blocks are at least a quarter full on average.
 */
#include "collect/intervals.h"

#include <string.h>

#define BLOCK PLUMB_INTERVALS_BLOCK

static struct plumb_interval_block *
block_at(const struct plumb_intervals *set, uint32_t position)
{
	return (struct plumb_interval_block *)&set->pool[set->order[position]];
}

/* How many of the COUNT ascending STARTS are at or before ADDRESS. */
static uint32_t
count_until(const uint64_t *starts, uint32_t count, uint64_t address)
{
	uint32_t low = 0;
	while (count) {
		uint32_t half = count / 2;
		if (starts[low + half] <= address) {
			low += half + 1;
			count -= half + 1;
		} else {
			count = half;
		}
	}
	return low;
}

/* Makes room for a block at POSITION; NULL: there is none. */
static struct plumb_interval_block *
insert_block(struct plumb_intervals *set, uint32_t position)
{
	uint32_t index = set->free ? set->free - 1 : set->made, after = set->blocks - position;
	if (index >= PLUMB_INTERVALS_BLOCKS)
		return NULL;
	if (set->free)
		set->free = set->pool[index].next_free;
	else
		set->made++;
	memmove(&set->order[position + 1], &set->order[position], after * sizeof *set->order);
	memmove(&set->first[position + 1], &set->first[position], after * sizeof *set->first);
	set->blocks++;
	set->order[position] = index;
	set->pool[index].count = 0;
	return &set->pool[index];
}

static void
remove_block(struct plumb_intervals *set, uint32_t position)
{
	uint32_t index = set->order[position], after = --set->blocks - position;
	memmove(&set->order[position], &set->order[position + 1], after * sizeof *set->order);
	memmove(&set->first[position], &set->first[position + 1], after * sizeof *set->first);
	set->pool[index].next_free = set->free;
	set->free = index + 1;
}

/* Moves what FROM has beginning with INDEX to the end of TO. */
static void
move_tail(struct plumb_interval_block *from, uint32_t index, struct plumb_interval_block *to)
{
	uint32_t count = from->count - index;
	memcpy(&to->starts[to->count], &from->starts[index], count * sizeof *to->starts);
	memcpy(&to->entries[to->count], &from->entries[index], count * sizeof *to->entries);
	to->count += count;
	from->count = index;
}

bool
plumb_intervals_put(struct plumb_intervals *set, uint64_t start, uint32_t entry)
{
	uint32_t position = count_until(set->first, set->blocks, start);
	position -= position > 0;
	struct plumb_interval_block *block =
		set->blocks ? block_at(set, position) : insert_block(set, 0);
	if (block->count == BLOCK) {
		struct plumb_interval_block *right = insert_block(set, position + 1);
		if (!right)
			return false;
		move_tail(block, BLOCK / 2, right);
		set->first[position + 1] = right->starts[0];
		if (start >= right->starts[0]) {
			block = right;
			position++;
		}
	}
	uint32_t index = count_until(block->starts, block->count, start);
	uint32_t after = block->count - index;
	memmove(&block->starts[index + 1], &block->starts[index], after * sizeof *block->starts);
	memmove(&block->entries[index + 1], &block->entries[index], after * sizeof *block->entries);
	block->starts[index] = start;
	block->entries[index] = entry;
	block->count++;
	set->first[position] = block->starts[0];
	return true;
}

bool
plumb_intervals_floor(const struct plumb_intervals *set, uint64_t address,
                      struct plumb_interval_at *at)
{
	uint32_t position = count_until(set->first, set->blocks, address);
	if (!position)
		return false;
	const struct plumb_interval_block *block = block_at(set, position - 1);
	at->block = position - 1;
	at->index = count_until(block->starts, block->count, address) - 1;
	return true;
}

bool
plumb_intervals_ceiling(const struct plumb_intervals *set, uint64_t address,
                        struct plumb_interval_at *at)
{
	if (!plumb_intervals_floor(set, address, at)) {
		*at = (struct plumb_interval_at){ 0, 0 };
		return set->blocks > 0;
	}
	return block_at(set, at->block)->starts[at->index] == address ||
	       plumb_intervals_next(set, at);
}

bool
plumb_intervals_next(const struct plumb_intervals *set, struct plumb_interval_at *at)
{
	if (++at->index < block_at(set, at->block)->count)
		return true;
	at->index = 0;
	return ++at->block < set->blocks;
}

uint32_t
plumb_intervals_entry(const struct plumb_intervals *set, struct plumb_interval_at at)
{
	return block_at(set, at.block)->entries[at.index];
}

void
plumb_intervals_remove(struct plumb_intervals *set, struct plumb_interval_at at)
{
	struct plumb_interval_block *block = block_at(set, at.block), *right;
	uint32_t after = --block->count - at.index;
	memmove(&block->starts[at.index], &block->starts[at.index + 1],
	        after * sizeof *block->starts);
	memmove(&block->entries[at.index], &block->entries[at.index + 1],
	        after * sizeof *block->entries);
	if (!block->count) {
		remove_block(set, at.block);
		return;
	}
	set->first[at.block] = block->starts[0];
	for (uint32_t left = at.block ? at.block - 1 : 0; left <= at.block; left++) {
		if (left + 1 >= set->blocks)
			return;
		block = block_at(set, left);
		right = block_at(set, left + 1);
		if (block->count + right->count > BLOCK / 2)
			continue;
		move_tail(right, 0, block);
		remove_block(set, left + 1);
		return;
	}
}
