/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Perfetto's traces: packets of several writers (sequences), each of which interns its texts.
 * Events of tracks are beginnings and ends, which are paired once all are read; tracks may be
 * described after their events, so that they are looked for then. What plumb exported says of
 * itself which context, thread, stream and device a slice has.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/hash.h"
#include "base/perfetto.h"
#include "import/chrome/event.h"
#include "import/import.h"
#include "import/perfetto/perfetto.h"

#define SEQUENCES_MOST (UINT32_C(1) << 20)
#define UNPACKED_MAX PLUMB_PROTOBUF_TAKE_MAX
/* A packet, and an event of it. */
struct packet {
	struct plumb_slice bytes;
	struct perfetto_sequence *sequence;
	uint64_t time, clock, flags;
	int64_t ns; /* of the trace's clock, or PLUMB_UNKNOWN */
	bool timed, cleared, lost;
};

struct event {
	uint64_t type, track, name_number;
	struct plumb_slice name, legacy, facts; /* at NULL: none */
};

static void
count_one(struct perfetto *reader, uint32_t fate, const char *detail)
{
	plumb_trace_count(reader->trace, fate, detail, 1);
}

/* ---- sequences and tracks by their numbers ---- */

static struct perfetto_sequence *
sequence_of(struct perfetto *reader, uint32_t number)
{
	uint64_t hash = plumb_hash_mix(number, 1);
	struct plumb_map_cursor at;
	for (uint32_t i = plumb_map_first(&reader->sequence_map, hash, &at); i != PLUMB_MAP_NONE;
	     i = plumb_map_next(&reader->sequence_map, &at))
		if (reader->sequences.items[i]->number == number)
			return reader->sequences.items[i];
	if (reader->sequences.count == SEQUENCES_MOST) {
		reader->why = "there are too many sequences of packets";
		return NULL;
	}
	struct perfetto_sequence **added = plumb_vec_add(&reader->sequences);
	if (!added || !(*added = calloc(1, sizeof **added)) ||
	    plumb_map_add(&reader->sequence_map, hash, reader->sequences.count - 1) < 0) {
		reader->no_memory = true;
		return NULL;
	}
	(*added)->number = number;
	return *added;
}

static uint32_t
track_of(struct perfetto *reader, uint64_t uuid)
{
	uint32_t index = perfetto_find_track(reader, uuid);
	if (index != PLUMB_NONE)
		return index;
	struct perfetto_track *added = plumb_vec_add(&reader->tracks);
	if (!added || plumb_map_add(&reader->track_map, plumb_hash_mix(uuid, 2),
	                            reader->tracks.count - 1) < 0) {
		reader->no_memory = true;
		return PLUMB_NONE;
	}
	*added = (struct perfetto_track){ .uuid = uuid,
		                          .pid = PLUMB_UNKNOWN,
		                          .tid = PLUMB_UNKNOWN,
		                          .name = PLUMB_NONE,
		                          .command = PLUMB_NONE,
		                          .own = PLUMB_NONE,
		                          .process = PLUMB_NONE,
		                          .row = PLUMB_NONE };
	return reader->tracks.count - 1;
}

static uint32_t
string_of(struct perfetto *reader, struct plumb_slice text)
{
	return plumb_builder_string(plumb_trace_builder(reader->trace), text.at, text.bytes);
}

/* ---- what describes tracks ---- */

static bool
read_process(struct perfetto *reader, struct plumb_slice bytes, struct perfetto_track *track)
{
	struct plumb_protobuf_view view = plumb_protobuf_view(bytes);
	struct plumb_protobuf_field f;
	track->is_process = true;
	while (plumb_protobuf_next(&view, &f)) {
		if (plumb_protobuf_is(&f, PROCESS_PID, PLUMB_PROTOBUF_VARINT))
			track->pid = (int64_t)f.value;
		else if (plumb_protobuf_is(&f, PROCESS_COMMAND, PLUMB_PROTOBUF_BYTES) &&
		         track->command == PLUMB_NONE)
			track->command = plumb_builder_command(plumb_trace_builder(reader->trace),
			                                       f.bytes.at, f.bytes.bytes);
		else if (plumb_protobuf_is(&f, PROCESS_NAME, PLUMB_PROTOBUF_BYTES))
			track->name = plumb_builder_command(plumb_trace_builder(reader->trace),
			                                    f.bytes.at, f.bytes.bytes);
	}
	return !view.why;
}

static bool
read_thread(struct perfetto *reader, struct plumb_slice bytes, struct perfetto_track *track)
{
	struct plumb_protobuf_view view = plumb_protobuf_view(bytes);
	struct plumb_protobuf_field f;
	track->is_thread = true;
	while (plumb_protobuf_next(&view, &f)) {
		if (plumb_protobuf_is(&f, THREAD_PID, PLUMB_PROTOBUF_VARINT))
			track->pid = (int64_t)f.value;
		else if (plumb_protobuf_is(&f, THREAD_TID, PLUMB_PROTOBUF_VARINT))
			track->tid = (int64_t)f.value;
		else if (plumb_protobuf_is(&f, THREAD_NAME, PLUMB_PROTOBUF_BYTES))
			track->name = string_of(reader, f.bytes);
	}
	return !view.why;
}

static bool
read_track(struct perfetto *reader, struct plumb_slice bytes)
{
	struct plumb_protobuf_view view = plumb_protobuf_view(bytes);
	struct plumb_protobuf_field f;
	uint64_t uuid = 0;
	bool sound = true;
	while (plumb_protobuf_next(&view, &f))
		if (plumb_protobuf_is(&f, TRACK_UUID, PLUMB_PROTOBUF_VARINT))
			uuid = f.value;
	uint32_t index = view.why ? PLUMB_NONE : track_of(reader, uuid);
	if (index == PLUMB_NONE)
		return !view.why;
	struct perfetto_track *track = &reader->tracks.items[index];
	view = plumb_protobuf_view(bytes);
	while (sound && plumb_protobuf_next(&view, &f)) {
		if (plumb_protobuf_is(&f, TRACK_PARENT, PLUMB_PROTOBUF_VARINT))
			track->parent = f.value;
		else if (plumb_protobuf_is(&f, TRACK_NAME, PLUMB_PROTOBUF_BYTES) ||
		         plumb_protobuf_is(&f, TRACK_STATIC_NAME, PLUMB_PROTOBUF_BYTES))
			track->name = string_of(reader, f.bytes);
		else if (plumb_protobuf_is(&f, TRACK_PROCESS, PLUMB_PROTOBUF_BYTES))
			sound = read_process(reader, f.bytes, track);
		else if (plumb_protobuf_is(&f, TRACK_THREAD, PLUMB_PROTOBUF_BYTES))
			sound = read_thread(reader, f.bytes, track);
	}
	return sound;
}

/* What events and packets of the sequence have that do not say otherwise. */
static bool
read_defaults(struct perfetto_sequence *sequence, struct plumb_slice bytes)
{
	struct plumb_protobuf_view view = plumb_protobuf_view(bytes), event;
	struct plumb_protobuf_field f, inner;
	while (plumb_protobuf_next(&view, &f)) {
		if (plumb_protobuf_is(&f, DEFAULTS_CLOCK, PLUMB_PROTOBUF_VARINT))
			sequence->clock = f.value;
		if (plumb_protobuf_is(&f, DEFAULTS_SAMPLE, PLUMB_PROTOBUF_BYTES) &&
		    !perfetto_sample_defaults(sequence, f.bytes))
			return false;
		if (!plumb_protobuf_is(&f, DEFAULTS_EVENT, PLUMB_PROTOBUF_BYTES))
			continue;
		event = plumb_protobuf_view(f.bytes);
		while (plumb_protobuf_next(&event, &inner))
			if (plumb_protobuf_is(&inner, EVENT_TRACK, PLUMB_PROTOBUF_VARINT))
				sequence->track = inner.value;
		if (event.why)
			return false;
	}
	return !view.why;
}

/* ---- events ---- */

/* The number of its interned name stands for it; the frame is made once. */
static uint32_t
frame_of(struct perfetto *reader, struct perfetto_sequence *sequence, const struct event *event)
{
	if (event->name.at)
		return plumb_trace_frame(reader->trace, PLUMB_FRAME_RANGE, event->name);
	struct perfetto_entry *entry =
		event->name_number ? perfetto_find(sequence, PERFETTO_NAME, event->name_number)
				   : NULL;
	if (!entry) {
		if (event->name_number)
			count_one(reader, PLUMB_FATE_OVERWRITTEN, "names of slices");
		return plumb_trace_frame(reader->trace, PLUMB_FRAME_RANGE,
		                         (struct plumb_slice){ NULL, 0 });
	}
	if (entry->second == PLUMB_NONE)
		entry->second = plumb_trace_frame(reader->trace, PLUMB_FRAME_RANGE,
		                                  perfetto_text(sequence, entry));
	return entry->second;
}

/* What a beginning is: its frame, or what plumb wrote about it. False: it is damaged. */
static bool
what_of(struct perfetto *reader, struct perfetto_sequence *sequence, const struct event *event,
        uint32_t track, uint32_t *what)
{
	struct perfetto_own own;
	uint32_t place;
	if (!event->facts.at) {
		*what = frame_of(reader, sequence, event);
		return true;
	}
	if (!perfetto_own_read(&reader->facts, sequence, event->facts, &own, &place))
		return false;
	if (place != PLUMB_NONE && reader->tracks.items[track].own == PLUMB_NONE)
		reader->tracks.items[track].own = place;
	if (own.context == PLUMB_NONE && !own.drawn) {
		*what = frame_of(reader, sequence, event);
		return true;
	}
	struct perfetto_own *added = plumb_vec_add(&reader->owns);
	reader->no_memory |= !added || reader->owns.count >= PERFETTO_OWN;
	if (added)
		*added = own;
	*what = reader->no_memory ? 0 : (reader->owns.count - 1) | PERFETTO_OWN;
	return true;
}

static bool
take_edge(struct perfetto *reader, struct perfetto_sequence *sequence, const struct event *event,
          int64_t time, bool begins)
{
	uint32_t track = track_of(reader, event->track);
	struct plumb_chrome_edge edge = {
		.key = track, .ns = time, .place = track, .begins = begins
	};
	if (track == PLUMB_NONE)
		return true;
	if (begins && !what_of(reader, sequence, event, track, &edge.frame))
		return false;
	plumb_chrome_edge(&reader->pairs, edge);
	return true;
}

/* Events as Chrome wrote them before there were types: a phase of its JSON, and a duration. */
static bool
take_legacy(struct perfetto *reader, struct perfetto_sequence *sequence, struct event *event,
            int64_t time)
{
	struct plumb_protobuf_view view = plumb_protobuf_view(event->legacy);
	struct plumb_protobuf_field f;
	int64_t length = 0, end = time;
	uint64_t phase = 0;
	while (plumb_protobuf_next(&view, &f)) {
		if (f.wire != PLUMB_PROTOBUF_VARINT)
			continue;
		if (f.number == LEGACY_PHASE)
			phase = f.value;
		else if (f.number == LEGACY_DURATION)
			length = (int64_t)f.value;
		else if (f.number == LEGACY_NAME_NUMBER && !event->name_number)
			event->name_number = f.value;
	}
	if (view.why)
		return false;
	if (phase == 'B' || phase == 'E')
		return take_edge(reader, sequence, event, time, phase == 'B');
	if (phase != 'X') {
		count_one(reader, PLUMB_FATE_UNUSED,
		          phase == 'I' || phase == 'i' || phase == 'R' ? "instants"
		                                                       : "events of other phases");
		return true;
	}
	if (length < 0 || __builtin_mul_overflow(length, 1000, &length) ||
	    __builtin_add_overflow(time, length, &end)) {
		count_one(reader, PLUMB_FATE_BACKWARDS, NULL);
		return true;
	}
	if (end > reader->last)
		reader->last = end;
	return take_edge(reader, sequence, event, time, true) &&
	       take_edge(reader, sequence, event, end, false);
}

static bool
read_event(struct perfetto *reader, const struct packet *packet, struct plumb_slice bytes)
{
	struct perfetto_sequence *sequence = packet->sequence;
	struct plumb_protobuf_view view = plumb_protobuf_view(bytes);
	struct plumb_protobuf_field f;
	struct event event = { .track = sequence->track };
	while (plumb_protobuf_next(&view, &f)) {
		if (plumb_protobuf_is(&f, EVENT_TYPE, PLUMB_PROTOBUF_VARINT))
			event.type = f.value;
		else if (plumb_protobuf_is(&f, EVENT_TRACK, PLUMB_PROTOBUF_VARINT))
			event.track = f.value;
		else if (plumb_protobuf_is(&f, EVENT_NAME_NUMBER, PLUMB_PROTOBUF_VARINT))
			event.name_number = f.value;
		else if (plumb_protobuf_is(&f, EVENT_NAME, PLUMB_PROTOBUF_BYTES))
			event.name = f.bytes;
		else if (plumb_protobuf_is(&f, EVENT_LEGACY, PLUMB_PROTOBUF_BYTES))
			event.legacy = f.bytes;
		else if (plumb_protobuf_is(&f, EVENT_ANNOTATION, PLUMB_PROTOBUF_BYTES) &&
		         perfetto_own_is(sequence, f.bytes))
			event.facts = f.bytes;
	}
	if (view.why)
		return false;
	int64_t time = packet->ns;
	if (time != PLUMB_UNKNOWN && time > reader->last)
		reader->last = time;
	bool slice = event.type == TYPE_BEGIN || event.type == TYPE_END;
	if (!slice && (event.type || !event.legacy.at)) {
		count_one(reader, PLUMB_FATE_UNUSED,
		          event.type == TYPE_COUNTER   ? "counters"
		          : event.type == TYPE_INSTANT ? "instants"
		                                       : "track events of an unknown type");
		return true;
	}
	if (time == PLUMB_UNKNOWN) {
		count_one(reader, PLUMB_FATE_BACKWARDS, NULL);
		return true;
	}
	return slice ? take_edge(reader, sequence, &event, time, event.type == TYPE_BEGIN)
	             : take_legacy(reader, sequence, &event, time);
}

/* ---- packets ---- */

/* Packets of data that is no track event. */
static void
count_data(struct perfetto *reader, uint32_t number)
{
	static const struct {
		uint32_t number;
		const char *name; /* NULL: about the recording itself */
	} names[] = {
		{ 1, "ftrace" },
		{ 2, "process trees" },
		{ 5, "Chrome's own events" },
		{ 7, "system statistics" },
		{ 9, "process statistics" },
		{ 33, NULL }, /* configuration */
		{ 34, NULL },
		{ 35, NULL }, /* statistics of the tracing itself */
		{ 36, NULL },
		{ 37, "heap profiles" },
		{ 39, "Android's log" },
		{ 43, "old process descriptors" },
		{ 44, "old thread descriptors" },
		{ 45, NULL },
		{ 46, NULL },
		{ 52, "GPU counters" },
		{ 53, "GPU render stages" },
		{ 56, "heap graphs" },
		{ 67, NULL },
		{ 69, NULL },
		{ 79, NULL },
		{ 89, NULL },
	};
	char text[40];
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].number == number) {
			if (names[i].name)
				count_one(reader, PLUMB_FATE_UNUSED, names[i].name);
			return;
		}
	snprintf(text, sizeof text, "packets of field %u", number);
	count_one(reader, PLUMB_FATE_UNUSED, text);
}

/* What holds for the whole packet. False: it is damaged, or memory is out. */
static bool
open_packet(struct perfetto *reader, struct plumb_slice bytes, struct packet *packet)
{
	struct plumb_protobuf_view view = plumb_protobuf_view(bytes);
	struct plumb_protobuf_field f;
	uint64_t sequence = 0;
	*packet = (struct packet){ .bytes = bytes, .ns = PLUMB_UNKNOWN };
	while (plumb_protobuf_next(&view, &f)) {
		if (f.wire != PLUMB_PROTOBUF_VARINT)
			continue;
		if (f.number == PACKET_TIME) {
			packet->time = f.value;
			packet->timed = true;
		} else if (f.number == PACKET_SEQUENCE) {
			sequence = f.value;
		} else if (f.number == PACKET_FLAGS) {
			packet->flags = f.value;
		} else if (f.number == PACKET_CLEARED) {
			packet->cleared = f.value;
		} else if (f.number == PACKET_LOST) {
			packet->lost = f.value;
		} else if (f.number == PACKET_CLOCK) {
			packet->clock = f.value;
		}
	}
	if (view.why)
		return false;
	packet->cleared |= packet->flags & FLAG_STATE_CLEARED;
	packet->sequence = sequence_of(reader, (uint32_t)sequence);
	return packet->sequence != NULL;
}

static bool read_packets(struct perfetto *reader, struct plumb_slice bytes);

/* Unpacks the packets in BYTES and reads them. They may become as long as UNPACKED_MAX. False: they
 * are damaged. */
static bool
unpack_packets(struct perfetto *reader, struct plumb_slice bytes, bool zstd)
{
	size_t room = bytes.bytes < UNPACKED_MAX / 8 ? bytes.bytes * 8 + 4096 : UNPACKED_MAX;
	bool sound = false;
	for (;; room = room < UNPACKED_MAX / 4 ? room * 4 : UNPACKED_MAX) {
		char *to = malloc(room);
		if (!to) {
			reader->no_memory = true;
			return true;
		}
		size_t got = 0;
		bool full = false;
		if (zstd) {
			got = ZSTD_decompress(to, room, bytes.at, bytes.bytes);
			full = ZSTD_isError(got) &&
			       ZSTD_getErrorCode(got) == ZSTD_error_dstSize_tooSmall;
			sound = !ZSTD_isError(got);
		} else {
			uLongf filled = room;
			int result = uncompress((Bytef *)to, &filled, (const Bytef *)bytes.at,
			                        bytes.bytes);
			full = result == Z_BUF_ERROR && filled == room;
			sound = result == Z_OK;
			got = filled;
		}
		if (sound)
			sound = read_packets(reader, (struct plumb_slice){ to, got });
		free(to);
		if (!full || room == UNPACKED_MAX)
			return sound;
	}
}

/* What later fields of the same packet may rely on. */
static bool
read_state(struct perfetto *reader, const struct packet *packet)
{
	struct plumb_protobuf_view view = plumb_protobuf_view(packet->bytes);
	struct plumb_protobuf_field f;
	bool sound = true;
	while (sound && plumb_protobuf_next(&view, &f)) {
		if (f.wire != PLUMB_PROTOBUF_BYTES)
			continue;
		if (f.number == PACKET_INTERNED)
			sound = perfetto_intern(packet->sequence, f.bytes, &reader->no_memory);
		else if (f.number == PACKET_DEFAULTS)
			sound = read_defaults(packet->sequence, f.bytes);
		else if (f.number == PACKET_CLOCKS)
			sound = perfetto_clocks_snapshot(&reader->clocks, packet->sequence->number,
			                                 f.bytes);
	}
	return sound;
}

/* DEPTH: of packed packets, of which none hold others. */
static bool
read_packet(struct perfetto *reader, struct plumb_slice bytes, unsigned depth)
{
	struct packet packet;
	struct plumb_protobuf_view view = plumb_protobuf_view(bytes);
	struct plumb_protobuf_field f;
	bool sound = true;
	if (!open_packet(reader, bytes, &packet))
		return reader->no_memory;
	if (packet.lost)
		packet.sequence->sound = false;
	if (packet.cleared) {
		perfetto_forget(packet.sequence);
		packet.sequence->sound = true;
	}
	if (packet.flags & FLAG_NEEDS_STATE && !packet.sequence->sound) {
		count_one(reader, PLUMB_FATE_OVERWRITTEN,
		          "packets whose names are not in the file");
		return true;
	}
	if (!read_state(reader, &packet))
		return false;
	/* Of all packets: a clock may count from one to the next. */
	if (packet.timed)
		packet.ns = perfetto_clocks_time(
			&reader->clocks, packet.sequence->number,
			packet.clock ? packet.clock : packet.sequence->clock, packet.time);
	while (sound && plumb_protobuf_next(&view, &f)) {
		if (f.wire != PLUMB_PROTOBUF_BYTES || f.number == PACKET_INTERNED ||
		    f.number == PACKET_DEFAULTS || f.number == PACKET_CLOCKS)
			continue;
		if (f.number == PACKET_EVENT)
			sound = read_event(reader, &packet, f.bytes);
		else if (f.number == PACKET_TRACK)
			sound = read_track(reader, f.bytes);
		else if (f.number == PACKET_SAMPLE)
			sound = perfetto_sample(reader, packet.sequence, packet.ns, f.bytes);
		else if (f.number == PACKET_STREAMED_SAMPLES)
			sound = perfetto_streamed_samples(reader, f.bytes);
		else if ((f.number == PACKET_ZLIB || f.number == PACKET_ZSTD) && !depth)
			sound = unpack_packets(reader, f.bytes, f.number == PACKET_ZSTD);
		else
			count_data(reader, f.number);
	}
	return sound;
}

static bool
read_packets(struct perfetto *reader, struct plumb_slice bytes)
{
	struct plumb_protobuf_view view = plumb_protobuf_view(bytes);
	struct plumb_protobuf_field f;
	while (plumb_protobuf_next(&view, &f))
		if (plumb_protobuf_is(&f, TRACE_PACKET, PLUMB_PROTOBUF_BYTES) &&
		    !read_packet(reader, f.bytes, 1))
			return false;
	return !view.why;
}

/* ---- the whole ---- */

static int
read_all(struct perfetto *reader, struct plumb_import_file *file, struct plumb_error *error)
{
	struct plumb_protobuf_stream stream;
	struct plumb_protobuf_field f;
	struct plumb_slice bytes;
	int code = plumb_protobuf_stream_open(&stream, file->input, error);
	if (code)
		return code;
	while (plumb_protobuf_stream_next(&stream, &f))
		if (plumb_protobuf_is(&f, TRACE_PACKET, PLUMB_PROTOBUF_BYTES) &&
		    plumb_protobuf_take(&stream, &bytes) && !read_packet(reader, bytes, 0))
			plumb_protobuf_stream_fail(&stream,
			                           reader->why ? reader->why
			                                       : "the packet before it is damaged");
	if (plumb_protobuf_stream_failed(&stream))
		code = plumb_protobuf_stream_error(&stream, file->path, error);
	plumb_protobuf_stream_close(&stream);
	return code;
}

static void
free_reader(struct perfetto *reader)
{
	for (uint32_t i = 0; i < reader->sequences.count; i++)
		if (reader->sequences.items[i]) {
			perfetto_forget(reader->sequences.items[i]);
			free(reader->sequences.items[i]);
		}
	plumb_vec_free(&reader->sequences);
	plumb_map_free(&reader->sequence_map);
	plumb_vec_free(&reader->tracks);
	plumb_map_free(&reader->track_map);
	plumb_vec_free(&reader->pairs.edges);
	plumb_vec_free(&reader->owns);
	perfetto_facts_free(&reader->facts);
	perfetto_clocks_free(&reader->clocks);
	free(reader);
}

static int
read_trace(struct plumb_import_file *file, struct plumb_trace *trace, struct plumb_error *error)
{
	struct perfetto *reader = calloc(1, sizeof *reader);
	if (!reader)
		return plumb_fail_memory(error, "to read %s", file->path);
	reader->trace = reader->facts.trace = reader->samples.trace = trace;
	reader->last = INT64_MIN;
	int code = read_all(reader, file, error);
	if (!code) {
		perfetto_place(reader);
		plumb_samples_end(&reader->samples);
	}
	if (!code && (reader->no_memory || reader->facts.no_memory || reader->clocks.no_memory ||
	              reader->pairs.no_memory))
		code = plumb_fail_memory(error, "to read %s", file->path);
	free_reader(reader);
	return code;
}

/* The file begins with a packet: its fields have the types that a packet's have, and one is its
 * own. */
static int
probe_perfetto(const struct plumb_import_file *file)
{
	struct plumb_protobuf_view view =
		plumb_protobuf_view((struct plumb_slice){ file->head, file->head_bytes });
	struct plumb_protobuf_field f;
	uint64_t key, bytes;
	int sure = 0;
	if (plumb_chrome_is_json_text(file))
		return 0; /* white space, and then JSON */
	if (!plumb_protobuf_next_packed(&view, &key) || key != (TRACE_PACKET << 3 | 2) ||
	    !plumb_protobuf_next_packed(&view, &bytes))
		return 0;
	if (bytes < (uint64_t)(view.end - view.at))
		view.end = view.at + bytes;
	while (plumb_protobuf_next(&view, &f)) {
		bool number = f.number == 3 || f.number == PACKET_TIME ||
		              f.number == PACKET_SEQUENCE || f.number == PACKET_FLAGS ||
		              f.number == PACKET_CLEARED || f.number == PACKET_LOST ||
		              f.number == PACKET_CLOCK || f.number == 79 || f.number == 87 ||
		              f.number == 98;
		if (f.wire != (number ? PLUMB_PROTOBUF_VARINT : PLUMB_PROTOBUF_BYTES) ||
		    f.number > 1000)
			return 0;
		if (number || f.number == PACKET_CLOCKS || f.number == PACKET_ZLIB ||
		    f.number == PACKET_ZSTD || f.number == PACKET_TRACK)
			sure = 80;
	}
	return sure;
}

const struct plumb_format plumb_format_perfetto = {
	.name = "perfetto",
	.title = "Perfetto",
	.probe = probe_perfetto,
	.read = read_trace,
};
