/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes of who waited for whom → waits. The collector writes what the GPU runtime says: an event
 * was recorded, or a call waited for an event or a stream. An event stands for what was recorded
 * last before the call that waited. Correlations ascend in the order of the calls, so this can be
 * found.
 */
#include <stdlib.h>

#include "base/search.h"
#include "base/vec.h"
#include "settle/settle_private.h"

struct event {
	uint64_t context, number; /* of the GPU runtime */
	uint64_t correlation, where;
};

struct place {
	uint64_t where;
	uint32_t track, device; /* the profile's */
};

/* The thread of a call. */
struct call {
	uint64_t correlation;
	uint32_t track;
};

struct notes {
	struct plumb_settle_region *region;
	PLUMB_VEC(struct event) events;
	PLUMB_VEC(struct place) places;
	PLUMB_VEC(struct call) calls;
	PLUMB_VEC(struct plumb_note_entry) waits;
};

/* ---- gathering ---- */

static bool
take_stream(struct notes *notes, const struct plumb_record_stream *stream, plumb_id id)
{
	uint32_t track = plumb_settle_track(notes->region, id);
	struct place *place = track == PLUMB_NONE ? NULL : plumb_vec_add(&notes->places);

	if (place)
		*place = (struct place){
			(uint64_t)stream->context << 32 | (uint32_t)stream->stream, track,
			plumb_builder_get_track(notes->region->settler->builder, track)->device
		};
	return place || track == PLUMB_NONE;
}

static bool
take_note(void *data, const struct plumb_note_entry *note)
{
	struct notes *notes = data;

	if (note->kind == PLUMB_ENTRY_EVENT) {
		struct event *event = plumb_vec_add(&notes->events);

		if (event)
			*event = (struct event){ note->where >> 32, note->event, note->correlation,
				                 note->where };
		return event;
	}
	struct plumb_note_entry *wait = plumb_vec_add(&notes->waits);

	if (wait)
		*wait = *note;
	return wait;
}

static bool
take_call(void *data, const struct plumb_settle_span *span)
{
	struct notes *notes = data;
	const struct plumb_track *track =
		plumb_builder_get_track(notes->region->settler->builder, span->track);

	if (!span->correlation || track->kind != PLUMB_TRACK_THREAD)
		return true;
	struct call *call = plumb_vec_add(&notes->calls);

	if (call)
		*call = (struct call){ span->correlation, span->track };
	return call;
}

static int
by_event(const void *x, const void *y)
{
	const struct event *a = x, *b = y;

	if (a->context != b->context)
		return a->context < b->context ? -1 : 1;
	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return (a->correlation > b->correlation) - (a->correlation < b->correlation);
}

static int
by_where(const void *x, const void *y)
{
	const struct place *a = x, *b = y;

	return (a->where > b->where) - (a->where < b->where);
}

static int
by_correlation(const void *x, const void *y)
{
	const struct call *a = x, *b = y;

	return (a->correlation > b->correlation) - (a->correlation < b->correlation);
}

/* ---- finding ---- */

/* The last row at ROWS (COUNT of SIZE, in the order of COMPARE) that is not after KEY; NULL:
 * none. */
static const void *
last_of(const void *rows, uint32_t count, size_t size, const void *key,
        int (*compare)(const void *x, const void *y))
{
	uint32_t low = plumb_search(i, count, compare((const char *)rows + i * size, key) <= 0);
	return low ? (const char *)rows + (low - 1) * size : NULL;
}

static const struct place *
place_at(const struct notes *notes, uint64_t where)
{
	const struct place key = { .where = where };
	const struct place *found =
		last_of(notes->places.items, notes->places.count, sizeof key, &key, by_where);

	return found && found->where == where ? found : NULL;
}

static uint32_t
thread_of(const struct notes *notes, uint64_t correlation)
{
	const struct call key = { .correlation = correlation };
	const struct call *found =
		last_of(notes->calls.items, notes->calls.count, sizeof key, &key, by_correlation);

	return found && found->correlation == correlation ? found->track : PLUMB_NONE;
}

/* Each stream of a context says which device it is on. */
static uint32_t
device_of(const struct notes *notes, uint64_t where)
{
	const struct place key = { .where = where | UINT32_MAX };
	const struct place *found =
		last_of(notes->places.items, notes->places.count, sizeof key, &key, by_where);

	return found && found->where >> 32 == where >> 32 ? found->device : PLUMB_NONE;
}

/* False: it is not known who waits or for what, or nothing ran there that a call could wait for. */
static bool
resolve_note(const struct notes *notes, const struct plumb_note_entry *note,
             struct plumb_wait *wait)
{
	bool all = (uint32_t)note->where == PLUMB_SPAN_NO_STREAM;
	const struct place *awaited = all ? NULL : place_at(notes, note->where);
	const struct place *waits = awaited;
	const struct event key = { note->where >> 32, note->event, note->correlation, 0 };

	*wait = (struct plumb_wait){ .awaited = PLUMB_NONE, .call = note->correlation };
	if (note->kind == PLUMB_ENTRY_SYNC) {
		wait->track = thread_of(notes, note->correlation);
		wait->device = all       ? device_of(notes, note->where)
		               : awaited ? awaited->device
		                         : PLUMB_NONE;
		if (awaited)
			wait->awaited = awaited->track;
		return wait->track != PLUMB_NONE && wait->device != PLUMB_NONE;
	}
	const struct event *event =
		last_of(notes->events.items, notes->events.count, sizeof key, &key, by_event);
	if (!event || event->context != key.context || event->number != key.number)
		return false;
	awaited = place_at(notes, event->where);
	wait->track = all ? thread_of(notes, note->correlation) : waits ? waits->track : PLUMB_NONE;
	wait->after = event->correlation;
	if (!awaited || wait->track == PLUMB_NONE)
		return false;
	wait->awaited = awaited->track;
	wait->device = awaited->device;
	return true;
}

/* ---- the whole ---- */

static bool
gather_notes(struct notes *notes, const struct plumb_settle_trace *trace)
{
	const struct plumb_record *record;
	uint64_t cursor = 0;
	bool memory = true;

	while (memory && (record = plumb_region_next(notes->region->reader, &cursor)))
		if (record->type == PLUMB_RECORD_STREAM &&
		    record->length >= sizeof(struct plumb_record_stream))
			memory = take_stream(notes, (const struct plumb_record_stream *)record,
			                     plumb_region_reader_id(notes->region->reader, record));
	memory = memory && plumb_settle_each_note(notes->region, take_note, notes) &&
	         plumb_settle_each_span(notes->region, trace, take_call, notes);
	if (notes->events.count)
		qsort(notes->events.items, notes->events.count, sizeof *notes->events.items,
		      by_event);
	if (notes->places.count)
		qsort(notes->places.items, notes->places.count, sizeof *notes->places.items,
		      by_where);
	if (notes->calls.count)
		qsort(notes->calls.items, notes->calls.count, sizeof *notes->calls.items,
		      by_correlation);
	return memory;
}

void
plumb_settle_waits(struct plumb_settle_region *region, const struct plumb_settle_trace *trace)
{
	struct notes notes = { .region = region };
	int64_t unmatched = 0;
	bool memory = gather_notes(&notes, trace);

	for (uint32_t i = 0; memory && i < notes.waits.count; i++) {
		struct plumb_wait wait;

		if (!resolve_note(&notes, &notes.waits.items[i], &wait))
			unmatched++;
		else
			memory = plumb_builder_wait(region->settler->builder, &wait) >= 0;
	}
	if (!memory)
		region->settler->no_memory = true;
	plumb_settle_count(region, PLUMB_SOURCE_SPAN, PLUMB_FATE_UNMATCHED,
	                   "waits for work that is not in the trace", (uint64_t)unmatched);
	plumb_vec_free(&notes.events);
	plumb_vec_free(&notes.places);
	plumb_vec_free(&notes.calls);
	plumb_vec_free(&notes.waits);
}
