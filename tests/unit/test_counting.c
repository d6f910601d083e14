/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses of warps, counted by range, kind and width as on the GPU: compared with counting each
 * lane by itself. */
#include "collect/gpu/sanitizer/counting.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/words.h"

#define RANGES 40
#define SLOTS 4096
#define BINS 65536

/* A device's memory, and what was counted there. */
struct device {
	struct plumb_counting counting;
	plumb_u64 starts[2 * RANGES];
	struct plumb_counting_range ranges[2 * RANGES];
	struct plumb_counting_slot slots[SLOTS];
	plumb_u64 bins[BINS];
	plumb_u32 bits[BINS];
	struct plumb_counting_drops drops;
};

static uint64_t seed;

static uint64_t
any(uint64_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 24) % below;
}

static struct device *
make(uint32_t slots)
{
	struct device *device = calloc(1, sizeof *device);
	assert_non_null(device);
	device->counting = (struct plumb_counting){
		.starts = device->starts,
		.ranges = device->ranges,
		.slots = device->slots,
		.bins = device->bins,
		.bits = device->bits,
		.drops = &device->drops,
		.count = 1,
		.slot_mask = slots - 1,
		.site = 7,
	};
	return device;
}

/* Adds a range behind all others. Of one with an id, bins of 2^SHIFT bytes. */
static void
add(struct device *device, uint64_t start, uint64_t bytes, uint32_t id, uint32_t shift)
{
	static uint32_t bins, bits;
	uint32_t at = device->counting.count++;
	if (at == 1)
		bins = bits = 0;
	uint32_t count = (uint32_t)((bytes + (1u << shift) - 1) >> shift);
	device->starts[at] = start;
	device->ranges[at] = (struct plumb_counting_range){
		.end = start + bytes,
		.id = id,
		.bins = id == PLUMB_COUNTING_NONE ? PLUMB_COUNTING_NONE : bins,
		.bin_count = count,
		.bits = bits,
		.bin_shift = shift,
		.bit_shift = 2,
	};
	if (id == PLUMB_COUNTING_NONE)
		return;
	bins += count * PLUMB_COUNTING_GROUPS;
	bits += (uint32_t)(bytes / 4 + 31) / 32 + 1;
	assert_true(bins <= BINS && bits <= BINS);
}

/* Accesses, warps or bytes in slots of this id, kind and width. */
enum what { ACCESSES, WARPS, BYTES };
static uint64_t
counted(const struct device *device, uint32_t id, uint32_t kind, uint32_t width, enum what what)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < SLOTS; i++) {
		const struct plumb_counting_slot *slot = &device->slots[i];
		if (slot->tag && slot->id == id && slot->kind == kind && slot->width == width)
			sum += what == ACCESSES ? slot->accesses
			       : what == WARPS  ? slot->warps
			                        : plumb_counting_bytes(slot);
	}
	return sum;
}

static void
test_kinds(void **state)
{
	(void)state;
	assert_int_equal(plumb_counting_kind(1), PLUMB_ACCESS_LOAD);
	assert_int_equal(plumb_counting_kind(2), PLUMB_ACCESS_STORE);
	assert_int_equal(plumb_counting_kind(3), PLUMB_ACCESS_ATOMIC);
	assert_int_equal(plumb_counting_kind(7), PLUMB_ACCESS_ATOMIC);
	assert_int_equal(plumb_counting_kind(2 | 256), PLUMB_ACCESS_ATOMIC);
	assert_int_equal(plumb_counting_kind(2 | 128), PLUMB_ACCESS_STORE); /* strong */
	assert_int_equal(plumb_counting_kind(8 | 1), 0);                    /* a prefetch */
	assert_int_equal(PLUMB_COUNTING_ASYNC_COPY, PLUMB_ACCESS_ASYNC_COPY);
	assert_int_equal(PLUMB_COUNTING_BULK_LOAD, PLUMB_ACCESS_BULK_LOAD);
	assert_int_equal(PLUMB_COUNTING_BULK_STORE, PLUMB_ACCESS_BULK_STORE);
	assert_int_equal(PLUMB_COUNTING_BULK_REDUCTION, PLUMB_ACCESS_BULK_REDUCTION);
}

static void
test_find(void **state)
{
	plumb_u64 starts[100];
	(void)state;
	for (uint32_t count = 1; count <= 100; count++) {
		for (uint32_t i = 0; i < count; i++)
			starts[i] = i * 10;
		for (uint64_t address = 0; address < count * 10 + 20; address++) {
			uint64_t expected = address / 10 < count ? address / 10 : count - 1;
			assert_int_equal(plumb_counting_find(starts, count, address), expected);
		}
	}
}

/* N lanes store to one range: N accesses, a warp for each 32, and the last one is not full. */
static void
test_ring(void **state)
{
	(void)state;
	for (uint32_t width = 1; width <= 16; width *= 2) {
		struct device *device = make(SLOTS);
		uint32_t number = 1000;
		add(device, 0x1000000, number * width, 3, 4);
		for (uint32_t i = 0; i < number; i += 32) {
			plumb_u64 lanes[32];
			uint32_t active = number - i < 32 ? (1u << (number - i)) - 1 : UINT32_MAX;
			for (uint32_t lane = 0; lane < 32; lane++)
				lanes[lane] = 0x1000000 + (i + lane) * width;
			plumb_counting_warp(&device->counting, 0x40, lanes, active,
			                    PLUMB_ACCESS_STORE, width);
		}
		assert_int_equal(counted(device, 3, PLUMB_ACCESS_STORE, width, ACCESSES), number);
		assert_int_equal(counted(device, 3, PLUMB_ACCESS_STORE, width, WARPS), 32);
		assert_int_equal(counted(device, 3, PLUMB_ACCESS_STORE, width, BYTES),
		                 number * width);
		/* All granules were touched, and none behind. */
		uint32_t bits = 0;
		for (uint32_t i = 0; i < BINS; i++)
			bits += (uint32_t)__builtin_popcount(device->bits[i]);
		assert_int_equal(bits, number * width / 4);
		free(device);
	}
}

/* Random ranges and gaps, own memory between, and warps that reach all of it. */
static void
play(struct device *device, uint64_t counts[RANGES + 2][4][5], uint64_t bins[BINS])
{
	static const uint32_t kinds[] = { PLUMB_ACCESS_LOAD, PLUMB_ACCESS_STORE,
		                          PLUMB_ACCESS_ATOMIC, PLUMB_ACCESS_ASYNC_COPY };
	const struct plumb_counting *counting = &device->counting;
	uint32_t which = (uint32_t)any(4), power = (uint32_t)any(5), width = 1u << power;
	uint32_t active = (uint32_t)any(1ull << 32);
	plumb_u64 lanes[32], home = any(counting->count);
	for (uint32_t lane = 0; lane < 32; lane++) {
		uint64_t at = any(3) ? home : any(counting->count);
		uint64_t bytes = device->ranges[at].end - counting->starts[at];
		lanes[lane] =
			(counting->starts[at] + any(bytes + bytes / 8 + 64)) & -(uint64_t)width;
		bool own = plumb_counting_is_own(counting, lanes[lane]);
		if (own)
			active &= ~(1u << lane);
		if (!(active >> lane & 1))
			continue;
		uint32_t id = RANGES + 1; /* nothing that is known */
		for (uint32_t i = 1; i < counting->count; i++) {
			const struct plumb_counting_range *range = &device->ranges[i];
			if (lanes[lane] < counting->starts[i] || lanes[lane] >= range->end)
				continue;
			id = range->id;
			if (id != PLUMB_COUNTING_NONE)
				bins[range->bins +
				     plumb_counting_group(kinds[which]) * range->bin_count +
				     ((lanes[lane] - counting->starts[i]) >> range->bin_shift)]++;
		}
		if (id != PLUMB_COUNTING_NONE)
			counts[id][which][power]++;
	}
	if (active)
		plumb_counting_warp(counting, 0x100 + any(3) * 16, lanes, active, kinds[which],
		                    width);
}

static void
test_any(void **state)
{
	static uint64_t counts[RANGES + 2][4][5], bins[BINS];
	static const uint32_t kinds[] = { PLUMB_ACCESS_LOAD, PLUMB_ACCESS_STORE,
		                          PLUMB_ACCESS_ATOMIC, PLUMB_ACCESS_ASYNC_COPY };
	(void)state;
	for (seed = 1; seed <= 40; seed = seed % 1000 + 1) {
		uint64_t round = seed;
		struct device *device = make(SLOTS);
		uint64_t at = 0x10000;
		memset(counts, 0, sizeof counts);
		memset(bins, 0, sizeof bins);
		uint32_t ranges = 1 + (uint32_t)any(RANGES - 1);
		for (uint32_t i = 0; i < ranges; i++) {
			uint64_t bytes = 16 * (1 + any(64));
			bool own = any(3) == 0;
			at += any(2) ? 0 : 256 * any(4);
			if (own && !device->counting.windows[0].bytes) {
				device->counting.windows[0].start = at;
				device->counting.windows[0].bytes = bytes;
			}
			add(device, at, bytes, own ? PLUMB_COUNTING_NONE : i, (uint32_t)any(6));
			at += bytes;
		}
		for (int i = 0; i < 500; i++)
			play(device, counts, bins);
		for (uint32_t kind = 0; kind < 4; kind++)
			for (uint32_t power = 0; power < 5; power++)
				for (uint32_t id = 0; id < RANGES + 2; id++) {
					uint32_t known =
						id == RANGES + 1 ? PLUMB_COUNTING_NONE - 1 : id;
					uint64_t expected = counts[id][kind][power];
					assert_int_equal(counted(device, known, kinds[kind],
					                         1u << power, ACCESSES),
					                 expected);
					assert_int_equal(counted(device, known, kinds[kind],
					                         1u << power, BYTES),
					                 expected << power);
				}
		assert_memory_equal(device->bins, bins, sizeof bins);
		assert_int_equal(device->drops.accesses, 0);
		free(device);
		seed = round;
	}
}

/* Too few slots: what is dropped and what is kept are all accesses. */
static void
test_full(void **state)
{
	struct device *device = make(32);
	uint64_t bytes = 0;
	(void)state;
	add(device, 0x10000, 4096, 0, 4);
	for (uint32_t i = 0; i < 1000; i++) {
		plumb_u64 lanes[32];
		for (uint32_t lane = 0; lane < 32; lane++)
			lanes[lane] = 0x10000 + lane * 8;
		plumb_counting_warp(&device->counting, 16 * (i % 100), lanes, UINT32_MAX,
		                    PLUMB_ACCESS_LOAD, 8);
		bytes += 32 * 8;
	}
	assert_true(device->drops.accesses > 0);
	assert_int_equal(
		counted(device, 0, PLUMB_ACCESS_LOAD, 8, ACCESSES) + device->drops.accesses, 32000);
	assert_int_equal(counted(device, 0, PLUMB_ACCESS_LOAD, 8, BYTES) + device->drops.bytes,
	                 bytes);
	free(device);
}

static void
test_bulk(void **state)
{
	struct device *device = make(SLOTS);
	(void)state;
	add(device, 0x10000, 65536, 5, 6);
	for (uint32_t i = 0; i < 16; i++)
		plumb_counting_bulk(&device->counting, 0x50, 0x10000 + i * 2048,
		                    PLUMB_ACCESS_BULK_LOAD, 2048);
	plumb_counting_bulk(&device->counting, 0x60, 0x900000, PLUMB_ACCESS_BULK_STORE, 64);
	assert_int_equal(counted(device, 5, PLUMB_ACCESS_BULK_LOAD, 0, ACCESSES), 16);
	assert_int_equal(counted(device, 5, PLUMB_ACCESS_BULK_LOAD, 0, BYTES), 32768);
	assert_int_equal(
		counted(device, PLUMB_COUNTING_NONE - 1, PLUMB_ACCESS_BULK_STORE, 0, BYTES), 64);
	uint32_t bits = 0;
	for (uint32_t i = 0; i < BINS; i++)
		bits += (uint32_t)__builtin_popcount(device->bits[i]);
	assert_int_equal(bits, 32768 / 4);
	free(device);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds), cmocka_unit_test(test_find),
		cmocka_unit_test(test_ring),  cmocka_unit_test(test_any),
		cmocka_unit_test(test_full),  cmocka_unit_test(test_bulk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
