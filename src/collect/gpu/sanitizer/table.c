/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table that the patches of a context search: what is allocated, ascending by address. The
 * device's own memory is put together over gaps, and its largest stretches become the windows
 * that a patch leaves at once. So a change of the device's own memory mostly leaves the table as it
 * was. With --traffic-own it is in the table like that of other devices, and there is no window.
 */
#include <string.h>

#include "collect/gpu/sanitizer/runtime.h"
#include "collect/table.h"

#define RANGES 32768u /* of a table */
#define LISTED 256u

/* What is being made; with the lock. */
static plumb_u64 *starts;
static struct plumb_counting_range *ranges;
static uint32_t count;

static uint32_t
shift_of(uint64_t bytes, uint32_t parts, uint32_t least)
{
	uint32_t shift = least;
	while ((bytes + (1ull << shift) - 1) >> shift > parts)
		shift++;
	return shift;
}

struct plumb_place *
plumb_sanitizer_place(struct plumb_sanitizer_context *context, uint32_t range)
{
	uint32_t at = (uint32_t)plumb_mix(range, 0) & (PLUMB_PLACES - 1);
	for (uint32_t i = 0; i < PLUMB_PLACES; i++) {
		struct plumb_place *place = &context->places[(at + i) & (PLUMB_PLACES - 1)];
		if (!place->range || place->range == range)
			return place;
	}
	return NULL;
}

/* The bins and granules of a range: as fine as there is room for. */
static void
give_place(struct plumb_sanitizer_context *context, struct plumb_counting_range *range,
           uint64_t bytes)
{
	struct plumb_place *place = plumb_sanitizer_place(context, range->id);
	range->bins = PLUMB_COUNTING_NONE;
	if (!place)
		return;
	if (!place->range) {
		uint32_t left = PLUMB_BINS - context->bins_used, parts = PLUMB_OBJECT_BINS;
		while (parts > 16 && parts * PLUMB_COUNTING_GROUPS > left / 4)
			parts /= 2;
		place->range = range->id;
		place->bins = PLUMB_COUNTING_NONE;
		place->bin_shift = shift_of(bytes, parts, 2);
		place->bin_count =
			(uint32_t)((bytes + (1ull << place->bin_shift) - 1) >> place->bin_shift);
		place->bit_shift = shift_of(bytes, PLUMB_OBJECT_GRANULES, 2);
		place->bit_count =
			(uint32_t)((bytes + (1ull << place->bit_shift) - 1) >> place->bit_shift);
		uint32_t words = (place->bit_count + 31) / 32;
		if (place->bin_count * PLUMB_COUNTING_GROUPS <= left &&
		    words <= PLUMB_BIT_WORDS - context->bits_used) {
			place->bins = context->bins_used;
			place->bits = context->bits_used;
			context->bins_used += place->bin_count * PLUMB_COUNTING_GROUPS;
			context->bits_used += words;
		}
	}
	range->bins = place->bins;
	range->bin_count = place->bin_count;
	range->bin_shift = place->bin_shift;
	range->bits = place->bits;
	range->bit_shift = place->bit_shift;
}

static bool
is_own(const struct plumb_sanitizer_context *context, const struct plumb_object_place *place)
{
	return place->ordinal == context->ordinal && place->kind != PLUMB_OBJECT_MANAGED &&
	       place->kind != PLUMB_OBJECT_PINNED;
}

static void
add_range(struct plumb_sanitizer_context *context, const struct plumb_object_place *place)
{
	struct plumb_counting_range *last = &ranges[count - 1];
	bool own = is_own(context, place) && !plumb_sanitizer_settings.own;
	if (own && last->id == PLUMB_COUNTING_NONE && count > 1) {
		last->end = place->address + place->bytes;
		return;
	}
	if (count == RANGES)
		return; /* accesses to the rest are to memory that is not known */
	starts[count] = place->address;
	ranges[count] = (struct plumb_counting_range){
		.end = place->address + place->bytes,
		.id = own            ? PLUMB_COUNTING_NONE
		      : place->range ? place->range
		                     : PLUMB_COUNTING_NONE - 1,
		.bins = PLUMB_COUNTING_NONE,
	};
	if (!own && place->range)
		give_place(context, &ranges[count], place->bytes);
	count++;
}

static bool
list_all(struct plumb_sanitizer_context *context, uint64_t *epoch)
{
	static struct plumb_object_place listed[LISTED];
	uint64_t from = 0, first = 0;
	if (!starts) {
		starts = plumb_map(RANGES * sizeof *starts, true);
		ranges = plumb_map(RANGES * sizeof *ranges, true);
	}
	if (!starts || !ranges)
		return false;
	starts[0] = 0;
	ranges[0] = (struct plumb_counting_range){ .id = PLUMB_COUNTING_NONE - 1,
		                                   .bins = PLUMB_COUNTING_NONE };
	count = 1;
	for (;;) {
		uint32_t got = plumb_objects_list(false, from, listed, LISTED, epoch);
		if (from && *epoch != first) { /* it changed meanwhile: from the beginning */
			from = 0;
			count = 1;
			continue;
		}
		first = *epoch;
		for (uint32_t i = 0; i < got; i++)
			add_range(context, &listed[i]);
		if (got < LISTED)
			return true;
		from = listed[got - 1].address + listed[got - 1].bytes;
	}
}

/* The largest stretches of the device's own. */
static void
choose_windows(struct plumb_counting *head)
{
	memset(head->windows, 0, sizeof head->windows);
	for (uint32_t i = 1; i < count; i++) {
		struct plumb_counting_window window = { starts[i], ranges[i].end - starts[i] };
		if (ranges[i].id != PLUMB_COUNTING_NONE)
			continue;
		for (int w = 0; w < PLUMB_COUNTING_WINDOWS; w++)
			if (window.bytes > head->windows[w].bytes) {
				struct plumb_counting_window smaller = head->windows[w];
				head->windows[w] = window;
				window = smaller;
			}
	}
}

bool
plumb_sanitizer_table(struct plumb_sanitizer_context *context)
{
	struct plumb_ring *ring = &context->tables;
	uint64_t epoch = 0;
	bool held = plumb_ring_holds(ring, context->table);
	if (held && context->epoch == atomic_load(&plumb_objects_epoch))
		return true;
	if (!list_all(context, &epoch))
		return false;
	size_t first = count * sizeof *starts, bytes = first + count * sizeof *ranges;
	char *mirror = held ? PLUMB_RING_AT(ring, mirror, context->table) : NULL;
	context->epoch = epoch;
	if (held && bytes == context->table_bytes && !memcmp(mirror, starts, first) &&
	    !memcmp(mirror + first, ranges, bytes - first))
		return true;
	context->table = plumb_ring_take(ring, bytes);
	context->table_bytes = bytes;
	context->pushed_count = 0;
	if (context->table == UINT64_MAX)
		return false;
	mirror = PLUMB_RING_AT(ring, mirror, context->table);
	memcpy(mirror, starts, first);
	memcpy(mirror + first, ranges, bytes - first);
	char *device = PLUMB_RING_AT(ring, device, context->table);
	context->head = (struct plumb_counting){
		.starts = (void *)device,
		.ranges = (void *)(device + first),
		.bins = context->bins,
		.bits = context->bits,
		.drops = context->drops,
		.count = count,
	};
	choose_windows(&context->head);
	return true;
}
