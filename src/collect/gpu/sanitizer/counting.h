/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the accesses of a warp to memory of other devices. This is the code of the patches that
 * run on the GPU (patch.cu), and at the same time plain C for the processor, where tests play a
 * warp of 32 lanes. So it calls nothing and has no state of its own.
 *
 * A launch's user data is a struct plumb_counting, or NULL: do not count. What it points to is
 * written before the launch and never changed while it may be read: the sorted table of ranges of
 * its epoch. Counts go into slots, of which each stands for what agrees in instruction, range,
 * kind, width and place of the launch. A slot belongs to whoever exchanges its tag first; nobody
 * waits for anybody. What finds no slot is counted as dropped.
 */
#ifndef PLUMB_COLLECT_GPU_SANITIZER_COUNTING_H
#define PLUMB_COLLECT_GPU_SANITIZER_COUNTING_H

#ifdef __CUDACC__
typedef unsigned long long plumb_u64;
typedef unsigned int plumb_u32;
#define PLUMB_COUNTING static __device__ __forceinline__
#define PLUMB_ROLLED _Pragma("unroll 1")
#else
#include <stdint.h>
typedef uint64_t plumb_u64;
typedef uint32_t plumb_u32;
#define PLUMB_COUNTING static inline
#define PLUMB_ROLLED
#endif

#define PLUMB_COUNTING_PROBES 16u       /* slots that are looked at before a count is dropped */
#define PLUMB_COUNTING_NONE 0xffffffffu /* no bins; no number */

/* Numbers of enum plumb_access_kind (base/words.h), which nvcc does not read. */
enum {
	PLUMB_COUNTING_LOAD = 1,
	PLUMB_COUNTING_STORE = 2,
	PLUMB_COUNTING_ATOMIC = 3,
	PLUMB_COUNTING_ASYNC_COPY = 4,
	PLUMB_COUNTING_BULK_LOAD = 5,
	PLUMB_COUNTING_BULK_STORE = 6,
	PLUMB_COUNTING_BULK_REDUCTION = 7,
};
/* Bins tell three kinds apart: loads, stores and atomics, of all sorts. */
#define PLUMB_COUNTING_GROUPS 3u
PLUMB_COUNTING plumb_u32
plumb_counting_group(plumb_u32 kind)
{
	return kind == PLUMB_COUNTING_STORE || kind == PLUMB_COUNTING_BULK_STORE        ? 1
	       : kind == PLUMB_COUNTING_ATOMIC || kind == PLUMB_COUNTING_BULK_REDUCTION ? 2
	                                                                                : 0;
}

/* What the sanitizer's flags of an access say (Sanitizer_DeviceMemoryFlags). */
enum {
	PLUMB_COUNTING_FLAG_READ = 1,
	PLUMB_COUNTING_FLAG_WRITE = 2,
	PLUMB_COUNTING_FLAG_SYSTEM = 4,
	PLUMB_COUNTING_FLAG_PREFETCH = 8,
	PLUMB_COUNTING_FLAG_WRITE_ONLY = 256, /* an atomic that returns nothing */
};

/*
 * A stretch of addresses from its place in STARTS to END. What lies between END and the next start
 * belongs to nothing that is known. ID: the allocation; PLUMB_COUNTING_NONE: the device's own.
 */
struct plumb_counting_range {
	plumb_u64 end;
	plumb_u32 id;
	plumb_u32 bins; /* first of its bins, GROUPS times BIN_COUNT; or PLUMB_COUNTING_NONE */
	plumb_u32 bin_count;
	plumb_u32 bits; /* first word of its bitmap of touched granules, if it has bins */
	plumb_u32 bin_shift, bit_shift; /* bytes of a bin and of a granule, as powers of two */
};

struct plumb_counting_slot {
	plumb_u64 tag; /* 0: free */
	plumb_u64 pc;
	plumb_u32 id, site;
	plumb_u32 kind, width;            /* width 0: of bulk copies, which differ */
	plumb_u64 accesses, warps, bytes; /* bytes: of bulk copies; see plumb_counting_bytes */
};

/* Of a context; never reset. */
struct plumb_counting_drops {
	plumb_u64 accesses, bytes;
};

/* Memory of the device's own, of which nothing is counted. BYTES 0: none. */
struct plumb_counting_window {
	plumb_u64 start, bytes;
};
#define PLUMB_COUNTING_WINDOWS 4 /* the largest first */

struct plumb_counting {
	struct plumb_counting_window windows[PLUMB_COUNTING_WINDOWS];
	const plumb_u64 *starts; /* ascending; the first is 0 */
	const struct plumb_counting_range *ranges;
	struct plumb_counting_slot *slots;
	plumb_u64 *bins;
	plumb_u32 *bits;
	struct plumb_counting_drops *drops;
	plumb_u32 count;     /* of ranges, at least 1 */
	plumb_u32 slot_mask; /* slots, a power of two, less one */
	plumb_u32 site;
	plumb_u32 pad;
};

/*
 * What a warp can do. LANES is what the caller has of its lanes: on the GPU the calling lane's own
 * address. PLUMB_LANES_BALLOT(active, lanes, name, condition): the lanes of ACTIVE whose address,
 * called NAME, meets the condition. PLUMB_LANES_EACH(mask, lanes, name): each lane of MASK runs
 * what follows.
 */
#ifdef __CUDACC__
typedef plumb_u64 plumb_warp_addresses;
PLUMB_COUNTING plumb_u32
plumb_lane(void)
{
	plumb_u32 lane;
	asm("mov.u32 %0, %%laneid;" : "=r"(lane));
	return lane;
}
#define PLUMB_FIRST(mask) (__ffs(mask) - 1)
#define PLUMB_POPULATION(mask) ((plumb_u32)__popc(mask))
#define PLUMB_LANES_ADDRESS(active, lanes, lane) __shfl_sync(active, lanes, lane)
#define PLUMB_LANES_BALLOT(active, lanes, name, condition)                                         \
	([&](plumb_u64 name) { return __ballot_sync(active, condition); }(lanes))
#define PLUMB_LANES_EACH(mask, lanes, name)                                                        \
	if (plumb_u64 name = (mask) >> plumb_lane() & 1 ? (lanes) : 0)
#define PLUMB_LANES_ONE(mask) if (plumb_lane() == (plumb_u32)PLUMB_FIRST(mask))
#define PLUMB_ADD(place, number) atomicAdd(place, (plumb_u64)(number))
#define PLUMB_OR(place, word) atomicOr(place, word)
#define PLUMB_TAKE(place, tag) atomicCAS(place, 0ull, tag)
#define PLUMB_PEEK(place) (*(const volatile __typeof__(*(place)) *)(place))
#else
typedef const plumb_u64 *plumb_warp_addresses; /* of 32 lanes */
#define PLUMB_FIRST(mask) __builtin_ctz(mask)
#define PLUMB_POPULATION(mask) ((plumb_u32)__builtin_popcount(mask))
#define PLUMB_LANES_ADDRESS(active, lanes, lane) ((lanes)[lane])
#define PLUMB_LANES_BALLOT(active, lanes, name, condition)                                         \
	({                                                                                         \
		plumb_u32 voted = 0;                                                               \
		for (unsigned lane_ = 0; lane_ < 32; lane_++) {                                    \
			plumb_u64 name = (lanes)[lane_];                                           \
			if ((active) >> lane_ & 1 && (condition))                                  \
				voted |= 1u << lane_;                                              \
		}                                                                                  \
		voted;                                                                             \
	})
#define PLUMB_LANES_EACH(mask, lanes, name)                                                        \
	for (unsigned lane_ = 0; lane_ < 32; lane_++)                                              \
		for (plumb_u64 name = (mask) >> lane_ & 1 ? (lanes)[lane_] : 0; name; name = 0)
#define PLUMB_LANES_ONE(mask) if (mask)
#define PLUMB_ADD(place, number) __atomic_fetch_add(place, (plumb_u64)(number), __ATOMIC_RELAXED)
#define PLUMB_OR(place, word) __atomic_fetch_or(place, word, __ATOMIC_RELAXED)
PLUMB_COUNTING plumb_u64
plumb_counting_take(plumb_u64 *place, plumb_u64 tag)
{
	plumb_u64 found = 0;
	__atomic_compare_exchange_n(place, &found, tag, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return found;
}
#define PLUMB_TAKE(place, tag) plumb_counting_take(place, tag)
#define PLUMB_PEEK(place) __atomic_load_n(place, __ATOMIC_RELAXED)
#endif

/* Is it in a window of the device's own? */
PLUMB_COUNTING int
plumb_counting_is_own(const struct plumb_counting *counting, plumb_u64 address)
{
	PLUMB_ROLLED
	for (int i = 0; i < PLUMB_COUNTING_WINDOWS; i++) {
		const struct plumb_counting_window *window = &counting->windows[i];
#ifdef __CUDACC__ /* in one load */
		plumb_u64 start, bytes;
		asm("ld.global.v2.u64 {%0, %1}, [%2];" : "=l"(start), "=l"(bytes) : "l"(window));
#else
		plumb_u64 start = window->start, bytes = window->bytes;
#endif
		if (address - start < bytes)
			return 1;
	}
	return 0;
}

/* The last range that begins at or before ADDRESS. */
PLUMB_COUNTING plumb_u32
plumb_counting_find(const plumb_u64 *starts, plumb_u32 count, plumb_u64 address)
{
	plumb_u32 at = 0;
	PLUMB_ROLLED
	while (count > 1) {
		plumb_u32 half = count >> 1;
		if (starts[at + half] <= address)
			at += half;
		count -= half;
	}
	return at;
}

PLUMB_COUNTING plumb_u64
plumb_counting_mix(plumb_u64 x)
{
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
	return x ^ x >> 32;
}

/* What tells slots apart, in one word that is not 0. Two that differ agree with a probability of
 * 2^-64, so tags are taken for the things themselves. */
PLUMB_COUNTING plumb_u64
plumb_counting_tag(plumb_u64 pc, plumb_u32 id, plumb_u32 site, plumb_u32 kind, plumb_u32 width)
{
	plumb_u64 tag = plumb_counting_mix(pc ^ (plumb_u64)kind << 56);
	tag = plumb_counting_mix(tag + ((plumb_u64)id << 32 | site));
	tag = plumb_counting_mix(tag + width);
	return tag ? tag : 1;
}

PLUMB_COUNTING plumb_u64
plumb_counting_bytes(const struct plumb_counting_slot *slot)
{
	return slot->width ? slot->accesses * slot->width : slot->bytes;
}

/* LANES lanes accessed WIDTH bytes each; or together BYTES, by one instruction. */
PLUMB_COUNTING void
plumb_counting_add(const struct plumb_counting *counting, plumb_u64 pc, plumb_u32 id,
                   plumb_u32 kind, plumb_u32 width, plumb_u32 lanes, plumb_u64 bytes)
{
	plumb_u64 tag = plumb_counting_tag(pc, id, counting->site, kind, width);
	PLUMB_ROLLED
	for (plumb_u32 probe = 0; probe < PLUMB_COUNTING_PROBES; probe++) {
		plumb_u32 at = ((plumb_u32)tag + probe) & counting->slot_mask;
		struct plumb_counting_slot *slot = &counting->slots[at];
		plumb_u64 found = PLUMB_PEEK(&slot->tag);
		if (!found && !(found = PLUMB_TAKE(&slot->tag, tag))) {
			slot->pc = pc;
			slot->id = id;
			slot->site = counting->site;
			slot->kind = kind;
			slot->width = width;
			found = tag;
		}
		if (found == tag) {
			PLUMB_ADD(&slot->accesses, lanes);
			PLUMB_ADD(&slot->warps, 1);
			if (!width) /* an atomic operation less for all others */
				PLUMB_ADD(&slot->bytes, bytes);
			return;
		}
	}
	PLUMB_ADD(&counting->drops->accesses, lanes);
	PLUMB_ADD(&counting->drops->bytes, bytes);
}

/* Marks the granules of BYTES bytes at OFFSET of the range as touched. */
PLUMB_COUNTING void
plumb_counting_touch(const struct plumb_counting *counting,
                     const struct plumb_counting_range *range, plumb_u64 offset, plumb_u64 bytes)
{
	plumb_u32 at = (plumb_u32)(offset >> range->bit_shift),
		  last = (plumb_u32)((offset + bytes - 1) >> range->bit_shift);
	PLUMB_ROLLED
	while (at <= last) {
		plumb_u32 end = at | 31;
		if (end > last)
			end = last;
		plumb_u32 word = (0xffffffffu >> (31 - (end - at))) << (at & 31);
		plumb_u32 *place = &counting->bits[range->bits + (at >> 5)];
		if ((PLUMB_PEEK(place) & word) != word)
			PLUMB_OR(place, word);
		at = end + 1;
	}
}

/* Bins and granules of those of the ACTIVE lanes that are INSIDE the range from START on. */
PLUMB_COUNTING void
plumb_counting_where(const struct plumb_counting *counting,
                     const struct plumb_counting_range *range, plumb_u64 start,
                     plumb_warp_addresses lanes, plumb_u32 active, plumb_u32 inside, plumb_u32 kind,
                     plumb_u32 width)
{
	plumb_u64 *bins =
		&counting->bins[range->bins + plumb_counting_group(kind) * range->bin_count];
	/* Mostly all lanes are in one bin: then one of them adds for all. */
	plumb_u64 first = PLUMB_LANES_ADDRESS(active, lanes, PLUMB_FIRST(inside)) - start;
	plumb_u32 bin = (plumb_u32)(first >> range->bin_shift);
	plumb_u32 together =
		inside &
		PLUMB_LANES_BALLOT(active, lanes, address,
	                           (plumb_u32)((address - start) >> range->bin_shift) == bin);
	PLUMB_LANES_ONE(together)
	{
		PLUMB_ADD(&bins[bin], PLUMB_POPULATION(together));
	}
	PLUMB_LANES_EACH(inside & ~together, lanes, address)
	{
		PLUMB_ADD(&bins[(address - start) >> range->bin_shift], 1);
	}
	PLUMB_LANES_EACH(inside, lanes, address)
	{
		plumb_u64 offset = address - start, left = range->end - address;
		plumb_counting_touch(counting, range, offset, width < left ? width : left);
	}
}

/*
 * The ACTIVE lanes of a warp execute one instruction that accesses WIDTH bytes each. One round for
 * each range that is met: its lanes are counted together.
 */
PLUMB_COUNTING void
plumb_counting_warp(const struct plumb_counting *counting, plumb_u64 pc, plumb_warp_addresses lanes,
                    plumb_u32 active, plumb_u32 kind, plumb_u32 width)
{
	plumb_u32 left = active;
	PLUMB_ROLLED
	while (left) {
		plumb_u64 first = PLUMB_LANES_ADDRESS(active, lanes, PLUMB_FIRST(left));
		plumb_u32 at = plumb_counting_find(counting->starts, counting->count, first);
		const struct plumb_counting_range *range = &counting->ranges[at];
		plumb_u32 id = range->id;
		plumb_u64 start = counting->starts[at], end = range->end;
		int known = first < end;
		if (!known) { /* the gap behind the range */
			start = end;
			end = at + 1 < counting->count ? counting->starts[at + 1] : ~0ull;
			id = PLUMB_COUNTING_NONE - 1;
		}
		plumb_u32 inside = left & PLUMB_LANES_BALLOT(active, lanes, address,
		                                             address - start < end - start);
		if (!inside) /* the last address of all */
			inside = left & -left;
		left &= ~inside;
		if (id == PLUMB_COUNTING_NONE)
			continue;
		PLUMB_LANES_ONE(inside)
		{
			plumb_u32 number = PLUMB_POPULATION(inside);
			plumb_counting_add(counting, pc, id, kind, width, number,
			                   (plumb_u64)number * width);
		}
		if (known && range->bins != PLUMB_COUNTING_NONE)
			plumb_counting_where(counting, range, start, lanes, active, inside, kind,
			                     width);
	}
}

/* One instruction of the warp moves BYTES bytes from or to ADDRESS, for all its lanes together. */
PLUMB_COUNTING void
plumb_counting_bulk(const struct plumb_counting *counting, plumb_u64 pc, plumb_u64 address,
                    plumb_u32 kind, plumb_u64 bytes)
{
	if (!bytes || plumb_counting_is_own(counting, address))
		return;
	plumb_u32 at = plumb_counting_find(counting->starts, counting->count, address);
	const struct plumb_counting_range *range = &counting->ranges[at];
	if (address >= range->end) {
		plumb_counting_add(counting, pc, PLUMB_COUNTING_NONE - 1, kind, 0, 1, bytes);
		return;
	}
	if (range->id == PLUMB_COUNTING_NONE)
		return;
	plumb_counting_add(counting, pc, range->id, kind, 0, 1, bytes);
	if (range->bins == PLUMB_COUNTING_NONE)
		return;
	plumb_u64 offset = address - counting->starts[at], left = range->end - address;
	PLUMB_ADD(&counting->bins[range->bins + plumb_counting_group(kind) * range->bin_count +
	                          (offset >> range->bin_shift)],
	          1);
	plumb_counting_touch(counting, range, offset, bytes < left ? bytes : left);
}

/* The kind of an access, from the sanitizer's flags; 0: it moves nothing. */
PLUMB_COUNTING plumb_u32
plumb_counting_kind(plumb_u32 flags)
{
	if (flags & PLUMB_COUNTING_FLAG_PREFETCH)
		return 0;
	if ((flags & 3) == 3 ||
	    flags & (PLUMB_COUNTING_FLAG_SYSTEM | PLUMB_COUNTING_FLAG_WRITE_ONLY))
		return PLUMB_COUNTING_ATOMIC;
	return flags & PLUMB_COUNTING_FLAG_WRITE  ? PLUMB_COUNTING_STORE
	       : flags & PLUMB_COUNTING_FLAG_READ ? PLUMB_COUNTING_LOAD
	                                          : 0;
}

#endif
