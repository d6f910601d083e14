/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers of records. CUPTI asks for one on the program's thread that fills it and gives it back on
 * a thread of its own; the service thread reads it and makes it ready again, so that the program
 * waits neither for reading nor for zeroing. All steps are lock-free; memory is mapped, never from
 * the heap, and made present by the service thread ahead of need. At the cap CUPTI gets none and
 * drops records, which it counts.
 */
#include <string.h>
#include <sys/mman.h>

#include "collect/gpu/cuda/runtime.h"
#include "collect/table.h"

#define MOST 4096u
static struct plumb_buffer buffers[MOST];
static size_t buffer_size;
static unsigned most;
static bool must_zero;
static _Atomic uint32_t made; /* buffers that have memory */

/* Free ones: a stack of indexes + 1, with a count in the upper half against ABA. */
static _Atomic uint64_t free_top;
static _Atomic uint32_t free_next[MOST];
static _Atomic(struct plumb_buffer *) completed; /* newest first */
static _Atomic uint64_t requested, refused, dropped;
static _Atomic bool closed;

static void
push_free(uint32_t index)
{
	uint64_t top = atomic_load_explicit(&free_top, memory_order_relaxed), next;
	do {
		atomic_store_explicit(&free_next[index], (uint32_t)top, memory_order_relaxed);
		next = (top & 0xffffffff00000000u) + (1ull << 32) + index + 1;
	} while (!atomic_compare_exchange_weak_explicit(&free_top, &top, next, memory_order_release,
	                                                memory_order_relaxed));
}

static struct plumb_buffer *
pop_free(void)
{
	uint64_t top = atomic_load_explicit(&free_top, memory_order_acquire), next;
	do {
		if (!(uint32_t)top)
			return NULL;
		uint32_t below =
			atomic_load_explicit(&free_next[(uint32_t)top - 1], memory_order_relaxed);
		next = (top & 0xffffffff00000000u) + (1ull << 32) + below;
	} while (!atomic_compare_exchange_weak_explicit(&free_top, &top, next, memory_order_acquire,
	                                                memory_order_acquire));
	return &buffers[(uint32_t)top - 1];
}

/* A buffer with fresh memory, or NULL at the cap. */
static struct plumb_buffer *
make_buffer(void)
{
	uint32_t index = atomic_load_explicit(&made, memory_order_relaxed);
	do {
		if (index >= most)
			return NULL;
	} while (!atomic_compare_exchange_weak_explicit(
		&made, &index, index + 1, memory_order_relaxed, memory_order_relaxed));
	buffers[index].index = index;
	buffers[index].data = plumb_map(buffer_size, false);
	return buffers[index].data ? &buffers[index] : NULL; /* no memory: one fewer for good */
}

bool
plumb_buffers_init(size_t size, unsigned count, bool zeroed)
{
	buffer_size = size;
	most = count < MOST ? count : MOST;
	must_zero = zeroed;
	atomic_store(&closed, false);
	for (unsigned i = atomic_load(&made); i < 2 && i < most; i++) {
		struct plumb_buffer *buffer = make_buffer();
		if (!buffer)
			return false;
		push_free(buffer->index);
	}
	return true;
}

void CUPTIAPI
plumb_buffer_requested(uint8_t **buffer, size_t *size, size_t *records)
{
	struct plumb_buffer *found = NULL;
	atomic_fetch_add_explicit(&requested, 1, memory_order_relaxed);
	if (plumb_cuda_own_process() && !atomic_load_explicit(&closed, memory_order_relaxed)) {
		found = pop_free();
		if (!found)
			found = make_buffer();
	}
	if (!found)
		atomic_fetch_add_explicit(&refused, 1, memory_order_relaxed);
	*buffer = found ? found->data : NULL;
	*size = found ? buffer_size : 0;
	*records = 0;
}

/* The buffer whose memory DATA is. */
static struct plumb_buffer *
buffer_of(const uint8_t *data)
{
	uint32_t count = atomic_load_explicit(&made, memory_order_relaxed);
	for (uint32_t i = 0; i < count && i < most; i++)
		if (buffers[i].data == data)
			return &buffers[i];
	return NULL;
}

/* After the end nobody reads any more. */
static void
count_late(void)
{
	struct plumb_thread *thread =
		plumb_recording() ? plumb_enter_paused(PLUMB_CALLBACK_GPU_RECORDS) : NULL;
	if (!thread)
		return;
	plumb_count(thread, PLUMB_SOURCE_BUFFER, PLUMB_FATE_LATE, 1);
	plumb_leave(thread);
}

void CUPTIAPI
plumb_buffer_completed(CUcontext context, uint32_t stream, uint8_t *data, size_t size, size_t valid)
{
	size_t lost = 0;
	(void)size;
	if (!plumb_cuda_own_process())
		return;
	if (atomic_load_explicit(&closed, memory_order_relaxed)) {
		count_late();
		return;
	}
	if (plumb_cupti.ActivityGetNumDroppedRecords(context, stream, &lost) == CUPTI_SUCCESS &&
	    lost)
		atomic_fetch_add_explicit(&dropped, lost, memory_order_relaxed);
	struct plumb_buffer *buffer = data ? buffer_of(data) : NULL;
	if (!buffer)
		return;
	buffer->valid = valid < buffer_size ? valid : buffer_size;
	struct plumb_buffer *newest = atomic_load_explicit(&completed, memory_order_relaxed);
	do
		buffer->next = newest;
	while (!atomic_compare_exchange_weak_explicit(&completed, &newest, buffer,
	                                              memory_order_release, memory_order_relaxed));
	plumb_cuda_wake();
}

struct plumb_buffer *
plumb_buffers_take(void)
{
	struct plumb_buffer *newest =
		atomic_exchange_explicit(&completed, NULL, memory_order_acquire);
	struct plumb_buffer *oldest = NULL;
	while (newest) {
		struct plumb_buffer *next = newest->next;
		newest->next = oldest;
		oldest = newest;
		newest = next;
	}
	return oldest;
}

void
plumb_buffer_recycle(struct plumb_buffer *buffer)
{
	if (must_zero)
		memset(buffer->data, 0, buffer_size);
	push_free(buffer->index);
}

void
plumb_buffers_prepare(void)
{
	struct plumb_buffer *buffer;
	if (!(uint32_t)atomic_load_explicit(&free_top, memory_order_relaxed) &&
	    (buffer = make_buffer()))
		push_free(buffer->index);
}

void
plumb_buffers_news(struct plumb_buffer_news *news)
{
	news->requested = atomic_exchange(&requested, 0);
	news->refused = atomic_exchange(&refused, 0);
	news->dropped_records = atomic_exchange(&dropped, 0);
}

void
plumb_buffers_close(void)
{
	atomic_store(&closed, true);
}
