/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What plumb has on a device: one piece of memory for each context, made with the context. Nothing
 * is allocated later, because that may wait for kernels, which may wait for each other; and only
 * then is it certain that the memory is zero before any stream uses it.
 */
#include <string.h>

#include "collect/gpu/sanitizer/runtime.h"
#include "collect/table.h"

struct plumb_sanitizer_context plumb_sanitizer_contexts[PLUMB_CONTEXTS];
pthread_mutex_t plumb_sanitizer_lock = PTHREAD_MUTEX_INITIALIZER;

/* Pieces of the driver's own staging memory: a copy of at most so many bytes does not wait. */
#define PIECE 32768u

uint64_t
plumb_ring_take(struct plumb_ring *ring, uint64_t bytes)
{
	uint64_t at = ring->head;
	bytes = (bytes + 15) & ~15ull;
	if (bytes > ring->capacity)
		return UINT64_MAX;
	if (at % ring->capacity + bytes > ring->capacity) /* not around the end */
		at += ring->capacity - at % ring->capacity;
	if (at + bytes - ring->tail > ring->capacity)
		return UINT64_MAX;
	ring->head = at + bytes;
	return at;
}

struct plumb_sanitizer_context *
plumb_sanitizer_live_context(sanitizer_context handle)
{
	for (uint32_t i = 0; handle && i < PLUMB_CONTEXTS; i++)
		if (plumb_sanitizer_contexts[i].live &&
		    plumb_sanitizer_contexts[i].handle == handle)
			return &plumb_sanitizer_contexts[i];
	return NULL;
}

struct plumb_sanitizer_context *
plumb_sanitizer_context_of(sanitizer_context handle, uint32_t ordinal)
{
	struct plumb_sanitizer_context *free = NULL,
				       *context = plumb_sanitizer_live_context(handle);
	if (context && ordinal != UINT32_MAX)
		context->ordinal = ordinal;
	if (context || !handle)
		return context;
	for (uint32_t i = 0; i < PLUMB_CONTEXTS && !free; i++)
		if (!plumb_sanitizer_contexts[i].live && !plumb_sanitizer_contexts[i].memory)
			free = &plumb_sanitizer_contexts[i];
	if (!free)
		plumb_sanitizer_unseen(PLUMB_UNSEEN_CONTEXTS, 1);
	if (!free)
		return NULL;
	*free = (struct plumb_sanitizer_context){
		.handle = handle,
		.ordinal = ordinal,
		.live = true,
		.table = UINT64_MAX,
	};
	return free;
}

enum { DROPS, SLOTS, BINS, BITS, FIXED, TABLES, LAUNCHES, PARTS };
static const size_t sizes[PARTS] = {
	[DROPS] = 256,
	[SLOTS] = PLUMB_SLOTS * sizeof(struct plumb_counting_slot),
	[BINS] = PLUMB_BINS * sizeof(plumb_u64),
	[BITS] = PLUMB_BIT_WORDS * sizeof(plumb_u32),
	[FIXED] = PLUMB_FIXED * sizeof(struct plumb_counting),
	[TABLES] = PLUMB_TABLE_BYTES,
	[LAUNCHES] = PLUMB_LAUNCH_BYTES,
};

/* The host's side. The places of the program's memory are kept for the process's life. */
static bool
make_host(struct plumb_sanitizer_context *context)
{
	size_t mirrors = sizes[TABLES] + sizes[LAUNCHES];
	char *host = plumb_map(sizes[SLOTS] + sizes[BINS] + sizes[BITS] + mirrors +
	                               PLUMB_PLACES * sizeof(struct plumb_place),
	                       true);
	if (!host)
		return false;
	context->seen = (void *)host;
	context->seen_bins = (void *)(host += sizes[SLOTS]);
	context->seen_bits = (void *)(host += sizes[BINS]);
	context->tables.mirror = host += sizes[BITS];
	context->launches.mirror = host += sizes[TABLES];
	context->places = (void *)(host + sizes[LAUNCHES]);
	return true;
}

static void
lay_out(struct plumb_sanitizer_context *context, char *memory)
{
	char *at[PARTS];
	context->memory = memory;
	for (int i = 0; i < PARTS; i++) {
		at[i] = memory;
		memory += sizes[i];
	}
	context->drops = (void *)at[DROPS];
	context->slots = (void *)at[SLOTS];
	context->bins = (void *)at[BINS];
	context->bits = (void *)at[BITS];
	context->fixed = (void *)at[FIXED];
	context->tables.device = at[TABLES];
	context->tables.capacity = sizes[TABLES];
	context->launches.device = at[LAUNCHES];
	context->launches.capacity = sizes[LAUNCHES];
}

bool
plumb_sanitizer_prepare(struct plumb_sanitizer_context *context, bool last)
{
	void *memory = NULL;
	size_t bytes = 0;
	uint64_t zero = 1;
	if (context->ready || context->refused)
		return context->ready;
	for (int i = 0; i < PARTS; i++)
		bytes += sizes[i];
	if (plumb_sanitizer.GetStreamHandle)
		SANITIZER(GetStreamHandle(context->handle, NULL, &context->null_stream));
	bool made =
		make_host(context) && !SANITIZER(Alloc(context->handle, &memory, bytes)) &&
		memory && !SANITIZER(Memset(memory, 0, bytes, context->null_stream)) &&
		!SANITIZER(MemcpyDeviceToHost(&zero, memory, sizeof zero, context->null_stream)) &&
		!zero;
	pthread_mutex_lock(&plumb_sanitizer_lock);
	if (made)
		lay_out(context, memory);
	context->refused = !made && last;
	context->ready = made;
	pthread_mutex_unlock(&plumb_sanitizer_lock);
	return made;
}

void
plumb_sanitizer_push(const struct plumb_push *pushes, unsigned count, sanitizer_stream stream)
{
	for (unsigned i = 0; i < count; i++) {
		char *to = pushes[i].to, *from = pushes[i].from;
		for (size_t left = pushes[i].bytes; left;) {
			size_t piece = left < PIECE ? left : PIECE;
			SANITIZER(MemcpyHostToDeviceAsync(to, from, piece, stream));
			to += piece;
			from += piece;
			left -= piece;
		}
	}
}
