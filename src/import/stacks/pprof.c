/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof profiles: sums by stacks, without times. Samples come before what explains them (locations,
 * functions, texts), so a file is read twice, first for those; samples are never kept.
 *
 * gperftools' older formats hold addresses alone, which only pprof with the program at hand can
 * name: they are known, to say so.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/protobuf_read.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "import/chrome/event.h"
#include "import/import.h"

#define DEPTH_MAX 4096
#define TYPES_MAX 256
#define LINES_MAX 256 /* of a location: functions that are one in another */
/* Of a text; every sample may have it again, at the cost of a few bytes. */
#define TEXT_MAX ((size_t)16 << 10)

enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE,
	PROFILE_MAPPING,
	PROFILE_LOCATION,
	PROFILE_FUNCTION,
	PROFILE_STRING,
	PROFILE_TIME = 9,
	PROFILE_DURATION = 10,
	PROFILE_FIELDS = 16,
};
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_TEXT, LABEL_NUMBER };
enum { MAPPING_START = 2, MAPPING_OFFSET = 4, MAPPING_FILE = 5 };
enum { LOCATION_MAPPING = 2, LOCATION_ADDRESS = 3, LOCATION_LINE = 4 };
enum { FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3, FUNCTION_FILE = 4 };

/* Functions, mappings and locations: what has a number. */
enum thing { MAPPING, LOCATION, FUNCTION };
struct numbered {
	enum thing thing;
	uint64_t id;
	uint64_t numbers[8];  /* by field, of those that are numbers */
	uint32_t line, lines; /* of a location, in `lines` */
	uint32_t frame;       /* of a line's or a location's, once made; PLUMB_NONE */
};

struct line {
	uint64_t function, line;
	uint32_t frame; /* once made; PLUMB_NONE */
};

struct type {
	uint64_t name, unit;
	uint32_t metric;
	int64_t scale;
};

struct reader {
	struct plumb_trace *trace;
	const char *path;
	struct plumb_strtab *texts;
	PLUMB_VEC(uint32_t) strings; /* by number: in `texts` */
	PLUMB_VEC(struct numbered) things;
	struct plumb_map map;
	PLUMB_VEC(struct line) lines;
	struct type types[TYPES_MAX];
	uint32_t type_count;
	int64_t values[TYPES_MAX]; /* of one sample */
	PLUMB_VEC(uint64_t) stack; /* of one sample, the leaf first */
	int64_t start_ns, duration_ns;
	int64_t too_deep, out_of_range;
	bool no_memory;
};

static struct plumb_slice
text_of(const struct reader *reader, uint64_t number)
{
	const char *at = number && number < reader->strings.count
	                         ? plumb_strtab_text(reader->texts, reader->strings.items[number])
	                         : NULL;
	return (struct plumb_slice){ at, at ? strlen(at) : 0 };
}

/* ---- what explains samples ---- */

static uint64_t
thing_hash(enum thing thing, uint64_t id)
{
	return plumb_hash_mix(thing, id);
}

static struct numbered *
find_thing(const struct reader *reader, enum thing thing, uint64_t id)
{
	struct plumb_map_cursor at;
	for (uint32_t i = plumb_map_first(&reader->map, thing_hash(thing, id), &at);
	     i != PLUMB_MAP_NONE; i = plumb_map_next(&reader->map, &at)) {
		struct numbered *one = &reader->things.items[i];
		if (one->thing == thing && one->id == id)
			return one;
	}
	return NULL;
}

static const char *
read_line(struct reader *reader, struct plumb_slice bytes)
{
	struct plumb_protobuf_view view = plumb_protobuf_view(bytes);
	struct plumb_protobuf_field f;
	struct line *line = plumb_vec_add(&reader->lines);
	if (!line) {
		reader->no_memory = true;
		return NULL;
	}
	line->frame = PLUMB_NONE;
	while (plumb_protobuf_next(&view, &f))
		if (plumb_protobuf_is(&f, 1, PLUMB_PROTOBUF_VARINT))
			line->function = f.value;
		else if (plumb_protobuf_is(&f, 2, PLUMB_PROTOBUF_VARINT))
			line->line = f.value;
	return view.why;
}

static const char *
read_thing(struct reader *reader, enum thing thing, struct plumb_slice bytes)
{
	struct plumb_protobuf_view view = plumb_protobuf_view(bytes);
	struct plumb_protobuf_field f;
	struct numbered one = { .thing = thing, .frame = PLUMB_NONE, .line = reader->lines.count };
	const char *why = NULL;
	while (plumb_protobuf_next(&view, &f) && !why) {
		if (f.wire == PLUMB_PROTOBUF_VARINT && f.number < 8)
			one.numbers[f.number] = f.value;
		else if (thing == LOCATION &&
		         plumb_protobuf_is(&f, LOCATION_LINE, PLUMB_PROTOBUF_BYTES))
			why = read_line(reader, f.bytes);
	}
	one.id = one.numbers[1];
	one.lines = reader->lines.count - one.line;
	if (one.lines > LINES_MAX)
		why = "a location has more than 256 lines";
	if (why || view.why || find_thing(reader, thing, one.id))
		return why ? why : view.why;
	struct numbered *added = plumb_vec_add(&reader->things);
	if (!added ||
	    plumb_map_add(&reader->map, thing_hash(thing, one.id), reader->things.count - 1) < 0)
		reader->no_memory = true;
	else
		*added = one;
	return NULL;
}

static const char *
read_type(struct reader *reader, struct plumb_slice bytes)
{
	struct plumb_protobuf_view view = plumb_protobuf_view(bytes);
	struct plumb_protobuf_field f;
	if (reader->type_count == TYPES_MAX)
		return "there are more than 256 types of samples";
	struct type *type = &reader->types[reader->type_count++];
	while (plumb_protobuf_next(&view, &f))
		if (plumb_protobuf_is(&f, 1, PLUMB_PROTOBUF_VARINT))
			type->name = f.value;
		else if (plumb_protobuf_is(&f, 2, PLUMB_PROTOBUF_VARINT))
			type->unit = f.value;
	return view.why;
}

static void
keep_string(struct reader *reader, struct plumb_slice bytes)
{
	if (bytes.bytes > TEXT_MAX)
		bytes.bytes = TEXT_MAX;
	uint32_t *string = plumb_vec_add(&reader->strings);
	uint32_t id = plumb_strtab_add(reader->texts, bytes.at, bytes.bytes);
	if (!string || id == PLUMB_STRTAB_NONE)
		reader->no_memory = true;
	else
		*string = id;
}

static const char *
read_field(struct reader *reader, struct plumb_protobuf_stream *stream,
           const struct plumb_protobuf_field *f)
{
	struct plumb_slice bytes;
	if (plumb_protobuf_is(f, PROFILE_TIME, PLUMB_PROTOBUF_VARINT))
		reader->start_ns = (int64_t)f->value;
	else if (plumb_protobuf_is(f, PROFILE_DURATION, PLUMB_PROTOBUF_VARINT))
		reader->duration_ns = (int64_t)f->value;
	if (f->wire != PLUMB_PROTOBUF_BYTES || f->number == PROFILE_SAMPLE ||
	    f->number > PROFILE_STRING || !plumb_protobuf_take(stream, &bytes))
		return NULL;
	switch (f->number) {
	case PROFILE_SAMPLE_TYPE:
		return read_type(reader, bytes);
	case PROFILE_STRING:
		keep_string(reader, bytes);
		return NULL;
	default:
		return read_thing(reader,
		                  f->number == PROFILE_MAPPING    ? MAPPING
		                  : f->number == PROFILE_LOCATION ? LOCATION
		                                                  : FUNCTION,
		                  bytes);
	}
}

/* ---- metrics ---- */

static void
choose_metric(struct reader *reader, struct type *type)
{
	static const struct {
		const char *theirs, *ours;
		int64_t scale;
	} units[] = {
		{ "nanoseconds", "ns", 1 },
		{ "microseconds", "ns", 1000 },
		{ "milliseconds", "ns", 1000000 },
		{ "seconds", "ns", 1000000000 },
		{ "bytes", "byte", 1 },
	};
	struct plumb_builder *builder = plumb_trace_builder(reader->trace);
	struct plumb_slice name = text_of(reader, type->name), unit = text_of(reader, type->unit);
	type->scale = 1;
	for (size_t i = 0; unit.at && i < sizeof units / sizeof *units; i++)
		if (plumb_slice_is(unit, units[i].theirs)) {
			type->scale = units[i].scale;
			unit = (struct plumb_slice){ units[i].ours, strlen(units[i].ours) };
		}
	const char *text = name.at ? name.at : "";
	uint32_t metric = !strcmp(text, "cpu") ? PLUMB_METRIC_CPU_TIME : plumb_metric_find(text);
	if (metric && unit.at && plumb_slice_is(unit, plumb_metrics[metric].unit) &&
	    plumb_metrics[metric].aggregation == PLUMB_SUM) {
		type->metric = metric;
		return;
	}
	type->metric = plumb_builder_metric(
		builder, plumb_builder_string(builder, name.at, name.bytes),
		unit.bytes ? plumb_builder_string(builder, unit.at, unit.bytes) : PLUMB_NONE);
}

/* ---- frames ---- */

static bool
ends_with(struct plumb_slice text, const char *end)
{
	size_t bytes = strlen(end);
	return text.bytes >= bytes && !memcmp(text.at + text.bytes - bytes, end, bytes);
}

static uint32_t
line_frame(struct reader *reader, const struct line *line)
{
	struct plumb_builder *builder = plumb_trace_builder(reader->trace);
	const struct numbered *function = find_thing(reader, FUNCTION, line->function);
	struct plumb_slice name = { NULL, 0 }, file = { NULL, 0 };
	int64_t at = line->line <= INT32_MAX ? (int64_t)line->line : 0;
	if (function) {
		name = text_of(reader, function->numbers[FUNCTION_NAME]);
		if (!name.at)
			name = text_of(reader, function->numbers[FUNCTION_SYSTEM_NAME]);
		file = text_of(reader, function->numbers[FUNCTION_FILE]);
	}
	if (ends_with(file, ".py"))
		return plumb_trace_frame_at(reader->trace, PLUMB_FRAME_PYTHON, name, file, at);
	uint32_t frame = plumb_trace_frame(reader->trace, PLUMB_FRAME_NATIVE, name);
	if (frame != PLUMB_NONE && file.bytes)
		plumb_builder_frame_source(builder, frame,
		                           plumb_builder_string(builder, file.at, file.bytes),
		                           (uint32_t)at);
	return frame;
}

/* A location without lines: where in its file it is. */
static uint32_t
address_frame(struct reader *reader, const struct numbered *location)
{
	const struct numbered *mapping =
		find_thing(reader, MAPPING, location->numbers[LOCATION_MAPPING]);
	struct plumb_slice file = { NULL, 0 };
	uint64_t address = location->numbers[LOCATION_ADDRESS];
	char text[512];
	if (mapping)
		file = text_of(reader, mapping->numbers[MAPPING_FILE]);
	if (file.at) {
		const char *slash = memrchr(file.at, '/', file.bytes);
		address += mapping->numbers[MAPPING_OFFSET] - mapping->numbers[MAPPING_START];
		snprintf(text, sizeof text, "%.400s+0x%" PRIx64, slash ? slash + 1 : file.at,
		         address);
	} else {
		snprintf(text, sizeof text, "0x%" PRIx64, address);
	}
	return plumb_trace_frame(reader->trace, PLUMB_FRAME_NATIVE,
	                         (struct plumb_slice){ text, strlen(text) });
}

/* The context of a location under PARENT; a location's last line called the ones before it. */
static uint32_t
place_location(struct reader *reader, struct numbered *location, uint32_t parent, uint32_t *depth)
{
	struct plumb_builder *builder = plumb_trace_builder(reader->trace);
	for (uint32_t i = location->lines; i-- > 0 && *depth < DEPTH_MAX; ++*depth) {
		struct line *line = &reader->lines.items[location->line + i];
		if (line->frame == PLUMB_NONE)
			line->frame = line_frame(reader, line);
		parent = plumb_builder_context(builder, parent, line->frame, 0);
	}
	if (location->lines)
		return parent;
	if (location->frame == PLUMB_NONE)
		location->frame = address_frame(reader, location);
	++*depth;
	return plumb_builder_context(builder, parent, location->frame, 0);
}

/* ---- samples ---- */

struct label {
	struct plumb_slice text;
	int64_t number;
};

enum known_label { PID, TID, RANK, DEVICE, STREAM, HOST, GPU, THREAD, LABELS };
static const char *const label_names[LABELS] = {
	[PID] = "pid",       [TID] = "tid",   [RANK] = "rank", [DEVICE] = "device",
	[STREAM] = "stream", [HOST] = "host", [GPU] = "gpu",   [THREAD] = "thread",
};

static const char *
read_label(struct reader *reader, struct plumb_slice bytes, struct label labels[LABELS])
{
	struct plumb_protobuf_view view = plumb_protobuf_view(bytes);
	struct plumb_protobuf_field f;
	struct plumb_slice key = { NULL, 0 };
	struct label label = { { NULL, 0 }, PLUMB_UNKNOWN };
	while (plumb_protobuf_next(&view, &f)) {
		if (f.wire != PLUMB_PROTOBUF_VARINT)
			continue;
		if (f.number == LABEL_KEY)
			key = text_of(reader, f.value);
		else if (f.number == LABEL_TEXT)
			label.text = text_of(reader, f.value);
		else if (f.number == LABEL_NUMBER)
			label.number = (int64_t)f.value;
	}
	if (view.why)
		return view.why;
	for (unsigned i = 0; key.at && i < LABELS; i++)
		if (plumb_slice_is(key, label_names[i])) {
			if (label.text.at)
				plumb_slice_decimal(label.text, 0, &label.number);
			labels[i] = label;
			return NULL;
		}
	char detail[128];
	snprintf(detail, sizeof detail, "label %.100s", key.at ? key.at : "?");
	plumb_trace_count(reader->trace, PLUMB_FATE_UNUSED, detail, 1);
	return NULL;
}

static uint32_t
string_of(struct plumb_builder *builder, struct plumb_slice text)
{
	return text.at ? plumb_builder_string(builder, text.at, text.bytes) : PLUMB_NONE;
}

static uint32_t
stream_of(struct reader *reader, uint32_t process, const struct label labels[LABELS])
{
	uint32_t device = plumb_trace_device(reader->trace, process, labels[DEVICE].number, NULL);
	struct plumb_builder *builder = plumb_trace_builder(reader->trace);
	if (device != PLUMB_NONE && labels[GPU].text.at)
		plumb_builder_get_device(builder, device)->name =
			string_of(builder, labels[GPU].text);
	return plumb_trace_stream(reader->trace, process, device, PLUMB_UNKNOWN,
	                          labels[STREAM].number);
}

static uint32_t
track_of(struct reader *reader, const struct label labels[LABELS])
{
	struct plumb_builder *builder = plumb_trace_builder(reader->trace);
	uint32_t process = plumb_trace_process(reader->trace, labels[PID].number), track;
	struct plumb_slice thread = labels[THREAD].text;
	int64_t tid = labels[TID].number;
	if (process == PLUMB_NONE)
		return PLUMB_NONE;
	struct plumb_process *row = plumb_builder_get_process(builder, process);
	if (labels[RANK].number != PLUMB_UNKNOWN)
		row->rank = labels[RANK].number;
	if (labels[HOST].text.at)
		row->host = string_of(builder, labels[HOST].text);
	if (labels[STREAM].number != PLUMB_UNKNOWN && labels[DEVICE].number != PLUMB_UNKNOWN)
		return stream_of(reader, process, labels);
	/* A name alone: any number that others do not have. */
	if (tid == PLUMB_UNKNOWN && thread.at)
		tid = (int64_t)(plumb_hash_bytes(thread.at, thread.bytes) >> 1);
	track = plumb_trace_thread(reader->trace, process, tid);
	if (track != PLUMB_NONE && thread.at) {
		struct plumb_track *of = plumb_builder_get_track(builder, track);
		of->name = string_of(builder, thread);
		of->tid = labels[TID].number;
	}
	return track;
}

/* Values, each a field or all packed in one. */
static const char *
read_values(struct reader *reader, const struct plumb_protobuf_field *f, uint32_t *count)
{
	struct plumb_protobuf_view view = plumb_protobuf_view(f->bytes);
	uint64_t value = f->value;
	if (f->wire != PLUMB_PROTOBUF_VARINT && f->wire != PLUMB_PROTOBUF_BYTES)
		return "a value is not a whole number";
	while (f->wire == PLUMB_PROTOBUF_VARINT || plumb_protobuf_next_packed(&view, &value)) {
		if (*count == reader->type_count)
			return "a sample has more values than there are types";
		reader->values[(*count)++] = (int64_t)value;
		if (f->wire == PLUMB_PROTOBUF_VARINT)
			return NULL;
	}
	return view.why;
}

static const char *
read_stack(struct reader *reader, const struct plumb_protobuf_field *f)
{
	struct plumb_protobuf_view view = plumb_protobuf_view(f->bytes);
	uint64_t value = f->value;
	while (f->wire == PLUMB_PROTOBUF_VARINT || plumb_protobuf_next_packed(&view, &value)) {
		uint64_t *location = plumb_vec_add(&reader->stack);
		if (location)
			*location = value;
		reader->no_memory |= !location;
		if (f->wire == PLUMB_PROTOBUF_VARINT || !location)
			return NULL;
	}
	return view.why;
}

static const char *
take_sample(struct reader *reader, uint32_t track)
{
	uint32_t context = 0, depth = 0;
	for (uint32_t i = reader->stack.count; i-- > 0;) {
		struct numbered *location = find_thing(reader, LOCATION, reader->stack.items[i]);
		if (!location)
			return "a sample names a location that is not in the file";
		if (depth >= DEPTH_MAX) {
			reader->too_deep++;
			break;
		}
		context = place_location(reader, location, context, &depth);
	}
	for (uint32_t i = 0; i < reader->type_count; i++) {
		int64_t number;
		bool fits = !__builtin_mul_overflow(reader->values[i], reader->types[i].scale,
		                                    &number) &&
		            number != PLUMB_UNKNOWN;
		reader->out_of_range += !fits;
		if (fits && number)
			plumb_trace_value(reader->trace, track, context, reader->types[i].metric,
			                  number);
	}
	return NULL;
}

static const char *
read_sample(struct reader *reader, struct plumb_slice bytes)
{
	struct plumb_protobuf_view view = plumb_protobuf_view(bytes);
	struct plumb_protobuf_field f;
	struct label labels[LABELS];
	const char *why = NULL;
	uint32_t count = 0;
	for (unsigned i = 0; i < LABELS; i++)
		labels[i] = (struct label){ { NULL, 0 }, PLUMB_UNKNOWN };
	reader->stack.count = 0;
	while (!why && plumb_protobuf_next(&view, &f)) {
		if (f.number == SAMPLE_LOCATION)
			why = read_stack(reader, &f);
		else if (f.number == SAMPLE_VALUE)
			why = read_values(reader, &f, &count);
		else if (plumb_protobuf_is(&f, SAMPLE_LABEL, PLUMB_PROTOBUF_BYTES))
			why = read_label(reader, f.bytes, labels);
	}
	if (why || view.why)
		return why ? why : view.why;
	if (count != reader->type_count)
		return "a sample has fewer values than there are types";
	return take_sample(reader, track_of(reader, labels));
}

/* ---- the file ---- */

/* SAMPLES: the second time. */
static int
read_all(struct reader *reader, struct plumb_input *input, bool samples, struct plumb_error *error)
{
	struct plumb_protobuf_stream stream;
	struct plumb_protobuf_field f;
	struct plumb_slice bytes;
	const char *why;
	int code = plumb_protobuf_stream_open(&stream, input, error);
	if (code)
		return code;
	while (!reader->no_memory && plumb_protobuf_stream_next(&stream, &f)) {
		why = NULL;
		if (!samples)
			why = read_field(reader, &stream, &f);
		else if (plumb_protobuf_is(&f, PROFILE_SAMPLE, PLUMB_PROTOBUF_BYTES) &&
		         plumb_protobuf_take(&stream, &bytes))
			why = read_sample(reader, bytes);
		if (why)
			plumb_protobuf_stream_fail(&stream, why);
	}
	if (reader->no_memory)
		code = plumb_fail_memory(error, "to read %s", reader->path);
	else if (plumb_protobuf_stream_failed(&stream))
		code = plumb_protobuf_stream_error(&stream, reader->path, error);
	plumb_protobuf_stream_close(&stream);
	return code;
}

static void
describe_run(struct reader *reader)
{
	struct plumb_builder *builder = plumb_trace_builder(reader->trace);
	struct plumb_run *run = plumb_builder_run(builder);
	const struct numbered *main = find_thing(reader, MAPPING, 1);
	struct plumb_slice file = { NULL, 0 };
	if (main)
		file = text_of(reader, main->numbers[MAPPING_FILE]);
	if (file.at)
		run->command = plumb_builder_command(builder, file.at, file.bytes);
	if (reader->start_ns > 0)
		run->start_ns = reader->start_ns;
	if (reader->duration_ns > 0)
		run->wall_ns = reader->duration_ns;
	plumb_trace_count(reader->trace, PLUMB_FATE_TOO_DEEP, NULL, reader->too_deep);
	plumb_trace_count(reader->trace, PLUMB_FATE_UNUSED, "values out of range",
	                  reader->out_of_range);
}

static int
read_profile(struct reader *reader, struct plumb_import_file *file, struct plumb_error *error)
{
	struct plumb_input *again = NULL;
	int code = plumb_import_again(file, &again, error);
	if (!code)
		code = read_all(reader, file->input, false, error);
	for (uint32_t i = 0; i < reader->type_count && !code; i++)
		choose_metric(reader, &reader->types[i]);
	if (!code)
		code = read_all(reader, again, true, error);
	plumb_input_close(again);
	if (!code)
		describe_run(reader);
	return code;
}

/* ---- formats that are not read ---- */

/* Which of gperftools' own formats FILE has, or NULL. */
static const char *
legacy_format(const struct plumb_import_file *file)
{
	static const char *const begins[] = { "--- heapz ",           "--- heap ",
		                              "heap profile:",        "--- contention",
		                              "--- contentionz ",     "--- threadz ",
		                              "--- mutex:",           "goroutine profile:",
		                              "threadcreate profile:" };
	uint64_t words[5] = { 0 };
	uint32_t halves[5] = { 0 };
	struct plumb_slice head = { file->head, file->head_bytes };
	for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
		if (plumb_slice_begins(head, begins[i]))
			return "text profile";
	if (head.bytes < sizeof words)
		return NULL;
	memcpy(words, head.at, sizeof words);
	memcpy(halves, head.at, sizeof halves);
	return (words[0] == 0 && words[1] == 3 && words[2] == 0 && words[3] && !words[4]) ||
	                       (halves[0] == 0 && halves[1] == 3 && halves[2] == 0 && halves[3] &&
	                        !halves[4])
	               ? "binary CPU profile"
	               : NULL;
}

static int
read_pprof(struct plumb_import_file *file, struct plumb_trace *trace, struct plumb_error *error)
{
	const char *old = legacy_format(file);
	if (old)
		return plumb_fail(error, PLUMB_EINPUT,
		                  "%s: this %s of gperftools has addresses only; run pprof -proto "
		                  "PROGRAM FILE > FILE.pb.gz and import FILE.pb.gz",
		                  file->path, old);
	struct reader *reader = calloc(1, sizeof *reader);
	if (!reader || !(reader->texts = plumb_strtab_new())) {
		free(reader);
		return plumb_fail_memory(error, "to read %s", file->path);
	}
	reader->trace = trace;
	reader->path = file->path;
	int code = read_profile(reader, file, error);
	plumb_strtab_free(reader->texts);
	plumb_vec_free(&reader->strings);
	plumb_vec_free(&reader->things);
	plumb_vec_free(&reader->lines);
	plumb_vec_free(&reader->stack);
	plumb_map_free(&reader->map);
	free(reader);
	return code;
}

/* Two numbers and nothing else. */
static bool
is_type(struct plumb_slice bytes)
{
	struct plumb_protobuf_view view = plumb_protobuf_view(bytes);
	struct plumb_protobuf_field f;
	while (plumb_protobuf_next(&view, &f))
		if (f.wire != PLUMB_PROTOBUF_VARINT || f.number > 2)
			return false;
	return !view.why && bytes.bytes;
}

/* The fields of a Profile and no others, and its types of samples. */
static int
probe_pprof(const struct plumb_import_file *file)
{
	struct plumb_protobuf_view view =
		plumb_protobuf_view((struct plumb_slice){ file->head, file->head_bytes });
	struct plumb_protobuf_field f;
	unsigned types = 0, fields = 0;
	if (legacy_format(file))
		return 80;
	if (plumb_chrome_is_json_text(file))
		return 0; /* white space, and then JSON */
	for (; plumb_protobuf_next(&view, &f); fields++) {
		bool number = f.wire == PLUMB_PROTOBUF_VARINT;
		bool wants_number = f.number > PROFILE_STRING && f.number != 11 && f.number != 13;
		if (f.number >= PROFILE_FIELDS || (f.number != 13 && number != wants_number) ||
		    (f.wire != PLUMB_PROTOBUF_BYTES && !number))
			return 0;
		if (f.number == PROFILE_SAMPLE_TYPE && !is_type(f.bytes))
			return 0;
		types += f.number == PROFILE_SAMPLE_TYPE;
	}
	return types && fields > 1 ? 80 : 0;
}

const struct plumb_format plumb_format_pprof = {
	.name = "pprof",
	.title = "pprof",
	.probe = probe_pprof,
	.read = read_pprof,
};
