/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A piece of a ring fills a chunk of the region. All pieces beyond a thread's first two come from
 * one budget, so that busy threads get more; when it is used up, each thread goes over its own
 * oldest, and all then reach about as far back. A piece that is begun again loses its old entries
 * at once: what a killed process leaves is whole.
 *
 * Host times are kept as ticks and converted by settle, which has readings of both clocks around
 * them: that costs nothing here, keeps spans nested, and does not drift.
 */
#include "collect/span.h"

#include <stdlib.h>
#include <string.h>

#include "collect/clock.h"
#include "collect/table.h"
#include "collect/thread.h"

#define PIECE_BYTES (PLUMB_CHUNK_SIZE - sizeof(struct plumb_chunk_header))
#define PIECE_ENTRIES                                                                              \
	((PIECE_BYTES - sizeof(struct plumb_record_span)) / sizeof(struct plumb_span_entry))
#define PIECES_LEAST 2u
#define MOST_BYTES (1ull << 30)   /* a profile holds so many spans */
#define FIRST_READING 1000000000u /* ns of age at the second reading of the clocks */

/* A thread's ring. */
struct plumb_span_ring {
	struct plumb_span_entry *next,
		*end; /* where the next entry goes; equal: the piece is full */
	struct plumb_record_span *piece;
	uint32_t pieces;
	uint32_t generation; /* of the region that the pieces lie in */
	struct plumb_arena arena;
};

PLUMB_HOT bool plumb_trace_on;
static struct {
	uint64_t keep_ns;
	uint32_t keep_iterations;
	uint32_t generation;
	_Atomic int64_t pieces_left;
	uint64_t began;                /* ticks */
	_Atomic uint64_t next_reading; /* ticks */
} trace;

/* ---- clocks ---- */

static uint64_t
ticks_of(uint64_t ns)
{
	if (!plumb_tick_scale)
		return ns;
	__uint128_t ticks = ((__uint128_t)ns << 32) / plumb_tick_scale;
	return ticks > INT64_MAX ? INT64_MAX : (uint64_t)ticks;
}

/* Both clocks at one moment: the tightest of a few. */
static void
read_clocks(struct plumb_record_ticks *record)
{
	struct timespec real = { 0 };
	uint64_t best = UINT64_MAX;
	for (int i = 0; i < 4; i++) {
		uint64_t before = plumb_ticks(), now = plumb_clock_ns();
		uint64_t width = plumb_ticks() - before;
		if (width >= best)
			continue;
		best = width;
		record->ticks = plumb_tick_scale ? before + width / 2 : now;
		record->clock.monotonic = now;
	}
	uint64_t before = plumb_clock_ns();
	clock_gettime(CLOCK_REALTIME, &real);
	uint64_t after = plumb_clock_ns();
	/* Moved back to the moment of the reading above. */
	record->clock.realtime = (uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec -
	                         (before + (after - before) / 2 - record->clock.monotonic);
	record->clock.uncertainty = after - before;
	record->scale = plumb_tick_scale;
}

static void
write_reading(struct plumb_arena *arena)
{
	struct plumb_record_ticks *record =
		plumb_arena_append(arena, PLUMB_RECORD_CLOCK, sizeof *record);
	if (!record)
		return;
	read_clocks(record);
	plumb_arena_commit(arena, record);
}

/* A program that is killed leaves readings as well: at an age of 1, 2, 4, 8 … seconds, so that they
 * stay few, and the last is never long ago as the program's age goes. */
static void
read_again(struct plumb_arena *arena, uint64_t now)
{
	uint64_t due = atomic_load_explicit(&trace.next_reading, memory_order_relaxed);
	if (plumb_likely(now < due))
		return;
	/* Whoever is first writes it. */
	if (atomic_compare_exchange_strong_explicit(&trace.next_reading, &due,
	                                            now + (now - trace.began), memory_order_relaxed,
	                                            memory_order_relaxed))
		write_reading(arena);
}

/* ---- options ---- */

/* "all", "50" or "20s". */
static void
read_option(const char *text)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);
	trace.keep_ns = 0;
	trace.keep_iterations = 0;
	if (!number || number > 1000000000)
		return;
	if (!strcmp(end, "s"))
		trace.keep_ns = number * UINT64_C(1000000000);
	else if (!*end)
		trace.keep_iterations = (uint32_t)number;
}

void
plumb_trace_begin(struct plumb_arena *arena)
{
	const struct plumb_collector_options *options = plumb_collector_options();
	uint64_t share = options->limit / 2;
	plumb_trace_on = options->trace[0];
	if (!plumb_trace_on)
		return;
	read_option(options->trace);
	if (share > MOST_BYTES)
		share = MOST_BYTES;
	trace.generation++;
	atomic_store(&trace.pieces_left, (int64_t)(share / PLUMB_CHUNK_SIZE));
	trace.began = plumb_ticks();
	atomic_store(&trace.next_reading, trace.began + ticks_of(FIRST_READING));
	write_reading(arena);
}

void
plumb_trace_end(struct plumb_arena *arena)
{
	if (plumb_trace_on)
		write_reading(arena);
}

/* ---- rings ---- */

/* The thread's ring, empty when it is new, or when the region is a new one (of a forked child). */
static struct plumb_span_ring *
ring_of(struct plumb_thread *thread)
{
	struct plumb_span_ring *ring = thread->spans;
	if (plumb_unlikely(!ring))
		ring = thread->spans = plumb_map(sizeof *ring, false);
	if (plumb_unlikely(ring && ring->generation != trace.generation)) {
		ring->next = ring->end = NULL;
		ring->piece = NULL;
		ring->pieces = 0;
		ring->generation = trace.generation;
		plumb_arena_init(&ring->arena, plumb_region_of_process());
	}
	return ring;
}

static void
begin_piece(struct plumb_span_ring *ring, struct plumb_record_span *piece)
{
	ring->piece = piece;
	ring->next = (struct plumb_span_entry *)(piece + 1);
	ring->end = ring->next + piece->capacity;
}

/* A new piece after the newest. */
static bool
new_piece(struct plumb_span_ring *ring)
{
	struct plumb_record_span *piece =
		plumb_arena_append(&ring->arena, PLUMB_RECORD_SPAN, PIECE_BYTES);
	if (!piece)
		return false;
	plumb_id id = plumb_region_id(ring->arena.region, piece);
	piece->capacity = PIECE_ENTRIES;
	piece->keep_ns = trace.keep_ns;
	piece->keep_iterations = trace.keep_iterations;
	piece->next = ring->piece ? ring->piece->next : id;
	plumb_arena_commit(&ring->arena, piece);
	if (ring->piece)
		ring->piece->next = id;
	ring->pieces++;
	begin_piece(ring, piece);
	return true;
}

static struct plumb_record_span *
oldest_piece(const struct plumb_span_ring *ring)
{
	return plumb_region_at(ring->arena.region, ring->piece->next);
}

static void
reuse_piece(struct plumb_span_ring *ring)
{
	struct plumb_record_span *piece = oldest_piece(ring);
	uint64_t rounds = atomic_load_explicit(&piece->state, memory_order_relaxed) >> 32;
	/* Before an entry is written over, none of the old ones counts. */
	atomic_store_explicit(&piece->state, (rounds + 1) << 32, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	begin_piece(ring, piece);
}

/* Is all that the oldest piece holds older than what was asked for, when it is NOW on a track's
 * clock? */
static bool
oldest_is_stale(const struct plumb_span_ring *ring, plumb_id track, bool host, uint64_t now)
{
	const struct plumb_record_span *piece = oldest_piece(ring);
	const struct plumb_span_entry *last =
		(const struct plumb_span_entry *)(piece + 1) + (piece->capacity - 1);
	uint64_t keep = host ? ticks_of(trace.keep_ns) : trace.keep_ns;
	return trace.keep_ns && last->host.track == track && last->host.end < now &&
	       now - last->host.end > keep;
}

/* Makes room for an entry; false: there is none. */
static bool
take_next_piece(struct plumb_span_ring *ring, plumb_id track, bool host, uint64_t now)
{
	if (ring->pieces < PIECES_LEAST) {
		if (new_piece(ring))
			return true;
	} else if (!oldest_is_stale(ring, track, host, now)) {
		if (atomic_fetch_sub_explicit(&trace.pieces_left, 1, memory_order_relaxed) > 0 &&
		    new_piece(ring))
			return true;
	}
	if (!ring->pieces)
		return false;
	reuse_piece(ring);
	return true;
}

static void
put_entry(struct plumb_span_ring *ring, const struct plumb_span_entry *entry)
{
	*ring->next++ = *entry;
	/* One writer: no locked instruction is needed. */
	uint64_t state = atomic_load_explicit(&ring->piece->state, memory_order_relaxed);
	atomic_store_explicit(&ring->piece->state, state + 1, memory_order_release);
}

/* Keeps ENTRY, a span of a thread (HOST) or a stream. */
static inline __attribute__((always_inline)) void
add_span(struct plumb_thread *thread, bool host, const struct plumb_span_entry *entry)
{
	struct plumb_span_ring *ring = ring_of(thread);
	plumb_id track = entry->host.track;
	uint64_t end = entry->host.end;
	if (plumb_unlikely(!ring || entry->host.node == PLUMB_LOST || !track)) {
		plumb_arena_tally(&thread->arena, PLUMB_SOURCE_SPAN,
		                  ring ? thread->arena.fate : PLUMB_FATE_UNMAPPED_THREAD, 1);
		return;
	}
	if (plumb_unlikely(ring->next == ring->end) && !take_next_piece(ring, track, host, end)) {
		plumb_arena_tally(&thread->arena, PLUMB_SOURCE_SPAN, ring->arena.fate, 1);
		return;
	}
	if (host)
		read_again(&thread->arena, end);
	put_entry(ring, entry);
}

void
plumb_span_add(struct plumb_thread *thread, plumb_id node, plumb_id track, uint64_t start,
               uint64_t end, uint64_t correlation)
{
	add_span(thread, true,
	         &(struct plumb_span_entry){ .host = { start, end, node, track, correlation } });
}

void
plumb_span_started(struct plumb_thread *thread, plumb_id node, plumb_id track, uint64_t start,
                   uint64_t end)
{
	plumb_span_add(thread, node, track, start, end, PLUMB_ENTRY_IS_STARTED);
}

void
plumb_span_work(struct plumb_thread *thread, plumb_id node, plumb_id stream, uint64_t start,
                uint64_t end, uint32_t correlation, uint64_t bytes)
{
	add_span(thread, false,
	         &(struct plumb_span_entry){ .work = { start, end, node, stream, correlation,
	                                               plumb_entry_size(bytes) } });
}

void
plumb_span_note(struct plumb_thread *thread, enum plumb_entry_kind kind, uint64_t where,
                uint64_t event, uint64_t correlation)
{
	struct plumb_span_ring *ring = ring_of(thread);
	if (!ring || (ring->next == ring->end && !take_next_piece(ring, 0, false, 0))) {
		plumb_arena_tally(&thread->arena, PLUMB_SOURCE_SPAN,
		                  ring ? ring->arena.fate : PLUMB_FATE_UNMAPPED_THREAD, 1);
		return;
	}
	put_entry(ring,
	          &(struct plumb_span_entry){ .note = { where, event, kind, 0, correlation } });
}

void
plumb_span_sample(struct plumb_thread *thread, plumb_id node, uint64_t at, uint64_t ns)
{
	struct plumb_span_ring *ring = ring_of(thread);
	plumb_arena_tally(&thread->arena, PLUMB_SOURCE_SAMPLE_TIME, PLUMB_FATE_RECEIVED, 1);
	/* The sample that began the region was taken a little before, perhaps before the clock was
	 * known. */
	if (at < trace.began)
		at = trace.began;
	if (!ring || node == PLUMB_LOST) {
		plumb_arena_tally(&thread->arena, PLUMB_SOURCE_SAMPLE_TIME,
		                  ring ? thread->arena.fate : PLUMB_FATE_UNMAPPED_THREAD, 1);
		return;
	}
	if (ring->next == ring->end && !take_next_piece(ring, thread->track, true, at)) {
		plumb_arena_tally(&thread->arena, PLUMB_SOURCE_SAMPLE_TIME, ring->arena.fate, 1);
		return;
	}
	read_again(&thread->arena, at);
	put_entry(ring, &(struct plumb_span_entry){
				.sample = { ns, at, node, thread->track, PLUMB_ENTRY_IS_SAMPLE } });
}
