/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which kernel ran an operation. The library launches the kernel first and reports its operations
 * after that, on the same thread. The kernel's record comes later, on another thread; in theory it
 * may come before the library has told. So both sides leave what they know under the launch's
 * correlation id, and then look for what the other one left.
 *
 * Operations of one kernel are a chain of records. A record that was written over since has another
 * correlation id, and ends the chain.
 */
#include <string.h>

#include "collect/comm/private.h"

#define WAYS 4u
#define BUCKETS 16384u /* of so many kernels that wait for their record; a power of two */
#define BUSY UINT64_MAX
#define CHAIN_MOST 65536u

bool plumb_comm_wanted;

static struct kernel {
	_Atomic uint64_t correlation; /* 0: free; BUSY: it is being written */
	_Atomic uint32_t first;       /* COLLECTIVE record, or 0 */
	_Atomic uint32_t stream;
	_Atomic uint64_t start, end; /* end 0: it has not run yet, as far as is known */
} kernels[BUCKETS * WAYS];

static _Thread_local struct {
	uint64_t launched, current; /* correlations; 0: none */
	bool launched_captured, current_captured;
	bool divided; /* the library says where the operations of a kernel begin */
} own;

/* ---- the program's threads ---- */

bool
plumb_comm_is_kernel(const char *name)
{
	if (!name)
		return false;
	if (name[0] == '_' && name[1] == 'Z')
		for (name += 2; *name >= '0' && *name <= '9'; name++)
			;
	return !strncmp(name, "nccl", 4) && strstr(name, "Kernel");
}

static struct kernel *
bucket_of(uint64_t correlation)
{
	return &kernels[(correlation * 0x9e3779b97f4a7c15u >> 32 & (BUCKETS - 1)) * WAYS];
}

/* NULL: it is not known, or not any more. */
static struct kernel *
find_kernel(uint64_t correlation)
{
	struct kernel *bucket = bucket_of(correlation);
	for (uint32_t i = 0; correlation && i < WAYS; i++)
		if (atomic_load(&bucket[i].correlation) == correlation)
			return &bucket[i];
	return NULL;
}

/* The place to use next: a free one, else one whose kernel has run, else that of the oldest launch.
 * NULL: all are being written. */
static struct kernel *
choose_kernel(struct kernel *bucket, uint64_t *held)
{
	struct kernel *chosen = NULL;
	uint64_t least = UINT64_MAX;
	for (uint32_t i = 0; i < WAYS; i++) {
		uint64_t correlation = atomic_load(&bucket[i].correlation);
		uint64_t order =
			correlation && atomic_load_explicit(&bucket[i].end, memory_order_relaxed)
				? 0
				: correlation;
		if (correlation == BUSY || order >= least)
			continue;
		least = order;
		*held = correlation;
		chosen = &bucket[i];
	}
	return chosen;
}

void
plumb_comm_launching(uint64_t correlation)
{
	own.launched = 0;
	/* A turn fails only if another thread took the chosen place meanwhile. */
	for (uint32_t turn = 0; turn < WAYS; turn++) {
		uint64_t held;
		struct kernel *kernel = choose_kernel(bucket_of(correlation), &held);
		if (!kernel)
			return;
		if (!atomic_compare_exchange_strong(&kernel->correlation, &held, BUSY))
			continue;
		atomic_store_explicit(&kernel->first, 0, memory_order_relaxed);
		atomic_store_explicit(&kernel->end, 0, memory_order_relaxed);
		atomic_store(&kernel->correlation, correlation);
		return;
	}
}

void
plumb_comm_launched(uint64_t correlation, bool captured)
{
	own.launched = correlation;
	own.launched_captured = captured;
}

void
plumb_comm_launched_all(void)
{
	own.divided = true;
	own.current = own.launched;
	own.current_captured = own.launched && own.launched_captured;
	own.launched = 0;
}

struct plumb_comm_launch
plumb_comm_newest(void)
{
	return own.divided ? (struct plumb_comm_launch){ own.current, own.current_captured }
	                   : (struct plumb_comm_launch){ own.launched, own.launched_captured };
}

static void
fill(struct plumb_record_collective *record, uint64_t correlation, plumb_id stream, uint64_t start,
     uint64_t end)
{
	atomic_store_explicit(&record->stream, stream, memory_order_relaxed);
	atomic_store_explicit(&record->start, start, memory_order_relaxed);
	atomic_store_explicit(&record->end, end, memory_order_release);
	/* It became another operation's meanwhile, whose times these are not. */
	if (plumb_unlikely(atomic_load(&record->correlation) != correlation))
		atomic_store(&record->end, 0);
}

void
plumb_comm_expect(struct plumb_record_collective *record, uint64_t correlation)
{
	struct plumb_region *region = plumb_region_of_process();
	struct kernel *kernel = find_kernel(correlation);
	uint32_t first, id = plumb_region_id(region, record);
	if (!kernel)
		return;
	atomic_store(&record->correlation, correlation);
	first = atomic_load(&kernel->first);
	do
		record->next = first == id ? 0 : first;
	while (!atomic_compare_exchange_weak(&kernel->first, &first, id));
	uint64_t end = atomic_load(&kernel->end);
	if (end)
		fill(record, correlation, atomic_load(&kernel->stream), atomic_load(&kernel->start),
		     end);
}

/* ---- the reading thread ---- */

static void
tell_communicator(struct plumb_region *region, const struct plumb_record_collective *record,
                  plumb_id stream)
{
	struct plumb_record_communicator *communicator =
		plumb_region_at(region, record->communicator);
	if (atomic_load_explicit(&communicator->stream, memory_order_relaxed) != stream)
		atomic_store_explicit(&communicator->stream, stream, memory_order_relaxed);
}

void
plumb_comm_ran(uint64_t correlation, plumb_id stream, uint64_t start, uint64_t end)
{
	struct plumb_region *region = plumb_region_of_process();
	struct kernel *kernel = stream && end ? find_kernel(correlation) : NULL;
	if (!kernel)
		return;
	atomic_store(&kernel->stream, stream);
	atomic_store(&kernel->start, start);
	atomic_store(&kernel->end, end);
	uint32_t id = atomic_load(&kernel->first);
	for (uint32_t i = 0; id && i < CHAIN_MOST; i++) {
		struct plumb_record_collective *record = plumb_region_at(region, id);
		if (atomic_load(&record->correlation) != correlation)
			return;
		tell_communicator(region, record, stream);
		fill(record, correlation, stream, start, end);
		id = record->next;
	}
}

void
plumb_comm_kernels_forget(void)
{
	for (uint32_t i = 0; plumb_comm_wanted && i < BUCKETS * WAYS; i++)
		atomic_store_explicit(&kernels[i].correlation, 0, memory_order_relaxed);
	own.launched = own.current = 0;
}
