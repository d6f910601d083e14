/* SPDX-License-Identifier: Apache-2.0 */
/* All packets are read: slices go to the threads, streams and processes that their tracks are. */
#include <math.h>

#include "base/hash.h"
#include "import/perfetto/perfetto.h"

#define PARENTS_MOST 64

uint32_t
perfetto_find_track(const struct perfetto *reader, uint64_t uuid)
{
	struct plumb_map_cursor at;
	for (uint32_t i = plumb_map_first(&reader->track_map, plumb_hash_mix(uuid, 2), &at);
	     i != PLUMB_MAP_NONE; i = plumb_map_next(&reader->track_map, &at))
		if (reader->tracks.items[i].uuid == uuid)
			return i;
	return PLUMB_NONE;
}

/* ---- where slices are ---- */

/* The process of a track is the process of its nearest ancestor that has one. */
static uint32_t
process_of(struct perfetto *reader, uint32_t index)
{
	for (int i = 0; i < PARENTS_MOST && index != PLUMB_NONE; i++) {
		const struct perfetto_track *track = &reader->tracks.items[index];
		if (track->pid != PLUMB_UNKNOWN)
			return plumb_trace_process(reader->trace, track->pid);
		index = track->parent ? perfetto_find_track(reader, track->parent) : PLUMB_NONE;
	}
	return plumb_trace_process(reader->trace, PLUMB_UNKNOWN);
}

/* A track that is no thread: one of its own, of the process. */
static uint32_t
other_track(struct perfetto *reader, uint32_t process, uint64_t number, uint32_t name)
{
	struct plumb_builder *builder = plumb_trace_builder(reader->trace);
	uint64_t hash = plumb_hash_mix(number, 0x747261636b);
	uint32_t row = plumb_trace_thread(reader->trace, process, (int64_t)(hash >> 1));
	if (row != PLUMB_NONE) {
		plumb_builder_get_track(builder, row)->tid = PLUMB_UNKNOWN;
		plumb_builder_get_track(builder, row)->name = name;
	}
	return row;
}

static uint32_t
own_track(struct perfetto *reader, uint32_t process, const struct perfetto_own_track *own)
{
	struct plumb_builder *builder = plumb_trace_builder(reader->trace);
	if (process == PLUMB_NONE)
		return PLUMB_NONE;
	/* Its number for Perfetto may be another than its own. */
	struct plumb_process *row = plumb_builder_get_process(builder, process);
	row->pid = own->pid;
	row->rank = own->rank == PLUMB_UNKNOWN ? row->rank : own->rank;
	row->host = own->host;
	if (!own->stream) {
		if (own->tid == PLUMB_UNKNOWN)
			return other_track(reader, process, (uint64_t)own->index, own->name);
		uint32_t thread = plumb_trace_thread(reader->trace, process, own->tid);
		if (thread != PLUMB_NONE)
			plumb_builder_get_track(builder, thread)->name = own->name;
		return thread;
	}
	uint32_t device = plumb_trace_device(
		reader->trace, process, own->ordinal,
		own->uuid == PLUMB_NONE ? NULL : plumb_builder_get_text(builder, own->uuid));
	if (device != PLUMB_NONE)
		plumb_builder_get_device(builder, device)->name = own->model;
	return plumb_trace_stream(reader->trace, process, device, own->gpu_context, own->number);
}

static uint32_t
row_of(struct perfetto *reader, uint32_t index)
{
	struct perfetto_track *track = &reader->tracks.items[index];
	struct plumb_builder *builder = plumb_trace_builder(reader->trace);
	if (track->row != PLUMB_NONE)
		return track->row;
	uint32_t process = process_of(reader, index);
	if (track->own != PLUMB_NONE) {
		track->row = own_track(reader, process, &reader->facts.tracks.items[track->own]);
	} else if (track->is_thread && track->tid != PLUMB_UNKNOWN) {
		track->row = plumb_trace_thread(reader->trace, process, track->tid);
		if (track->row != PLUMB_NONE && track->name != PLUMB_NONE)
			plumb_builder_get_track(builder, track->row)->name = track->name;
	} else {
		track->row = other_track(reader, process, track->uuid,
		                         track->is_process ? PLUMB_NONE : track->name);
	}
	return track->row;
}

/* ---- slices ---- */

/* What plumb said of several copies at once; see give_bytes in spans_place.c. */
static void
give_bytes(struct perfetto *reader, uint32_t row, uint32_t context, const struct perfetto_own *own,
           bool set)
{
	int64_t least, most;
	if (own->all_bytes < 0 || own->all_count <= 0 || own->all_least < 0 ||
	    own->all_most < own->all_least || !(own->all_squares >= 0) || isinf(own->all_squares) ||
	    __builtin_mul_overflow(own->all_least, own->all_count, &least) ||
	    least > own->all_bytes ||
	    (!__builtin_mul_overflow(own->all_most, own->all_count, &most) &&
	     most < own->all_bytes))
		return;
	struct plumb_value bytes = { .context = context,
		                     .metric = PLUMB_METRIC_GPU_COPY_BYTES,
		                     .track = row,
		                     .sum = own->all_bytes,
		                     .count = (uint64_t)own->all_count,
		                     .min = own->all_least,
		                     .max = own->all_most,
		                     .mean = (double)own->all_bytes / (double)own->all_count,
		                     .m2 = own->all_squares };
	plumb_trace_bytes(reader->trace, &bytes, set);
}

static void
take_work(struct perfetto *reader, uint32_t row, const struct perfetto_own *own, int64_t start,
          int64_t end)
{
	struct plumb_builder *builder = plumb_trace_builder(reader->trace);
	struct plumb_context context = plumb_builder_get_context(builder, own->context);
	uint32_t kind = plumb_builder_get_frame(builder, context.frame)->kind;
	struct plumb_trace_work work = {
		.track = row,
		.frame = context.frame,
		.start_ns = start,
		.end_ns = end,
		.correlation = own->correlation,
		.bytes = own->bytes,
		.launch = own->launch == PLUMB_NONE ? NULL
		                                    : &reader->facts.launches.items[own->launch],
		.collective = PLUMB_NONE,
		.placed = context.parent ? own->context : PLUMB_NONE,
		.whole = context.parent != 0,
		.here = true,
	};
	if (kind != PLUMB_FRAME_KERNEL && kind != PLUMB_FRAME_COPY && kind != PLUMB_FRAME_SET) {
		plumb_trace_count(reader->trace, PLUMB_FATE_UNUSED,
		                  "slices of a stream that are not GPU work", 1);
		return;
	}
	plumb_trace_work(reader->trace, &work);
	if (kind != PLUMB_FRAME_KERNEL && own->all_bytes != PLUMB_UNKNOWN) {
		uint32_t whole = own->context;
		if (!context.parent)
			whole = plumb_builder_context(builder, 0, context.frame, 0);
		give_bytes(reader, row, whole, own, kind == PLUMB_FRAME_SET);
	}
}

/* A range that was started: nothing is in it, and its time is nobody's own. */
static void
take_apart(struct perfetto *reader, uint32_t row, const struct perfetto_own *own, int64_t start,
           int64_t end)
{
	int64_t length;
	plumb_trace_span(reader->trace, row, own->context, start, end, own->correlation);
	if (__builtin_sub_overflow(end, start, &length))
		return;
	plumb_trace_value(reader->trace, row, own->context, PLUMB_METRIC_OP_CALLS, 1);
	plumb_trace_value(reader->trace, row, own->context, PLUMB_METRIC_OP_DURATION, length);
}

static void
take_slice(void *data, const struct plumb_chrome_edge *begin, int64_t end, uint32_t around)
{
	struct perfetto *reader = data;
	const struct perfetto_own *own = begin->frame & PERFETTO_OWN
	                                         ? &reader->owns.items[begin->frame & ~PERFETTO_OWN]
	                                         : NULL;
	(void)around;
	if (own && own->drawn)
		return;
	uint32_t row = row_of(reader, begin->place);
	if (row == PLUMB_NONE) {
		reader->no_memory = true;
		return;
	}
	bool stream = plumb_builder_get_track(plumb_trace_builder(reader->trace), row)->kind ==
	              PLUMB_TRACK_STREAM;
	if (stream && own)
		take_work(reader, row, own, begin->ns, end);
	else if (stream)
		plumb_trace_count(reader->trace, PLUMB_FATE_UNUSED,
		                  "slices of a stream that are not GPU work", 1);
	else if (!own)
		plumb_trace_host(reader->trace, row, begin->frame, begin->ns, end, 0);
	else if (own->apart)
		take_apart(reader, row, own, begin->ns, end);
	else
		plumb_trace_placed(reader->trace, row, own->context, begin->ns, end,
		                   own->correlation);
}

/* What plumb exports has "?" for a process without a command. */
static void
name_processes(struct perfetto *reader)
{
	bool own = reader->facts.tracks.count > 0;
	for (uint32_t i = 0; i < reader->tracks.count; i++) {
		const struct perfetto_track *track = &reader->tracks.items[i];
		uint32_t name = track->command != PLUMB_NONE || own ? track->command : track->name;
		uint32_t process = track->is_process && track->pid != PLUMB_UNKNOWN
		                           ? plumb_trace_has_process(reader->trace, track->pid)
		                           : PLUMB_NONE;
		if (process != PLUMB_NONE && name != PLUMB_NONE)
			plumb_builder_get_process(plumb_trace_builder(reader->trace), process)
				->command = name;
	}
}

void
perfetto_place(struct perfetto *reader)
{
	plumb_chrome_pair(&reader->pairs, reader->trace, reader->last, take_slice, reader);
	name_processes(reader);
}
