/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XPlane, the profiler of JAX, TensorFlow and PyTorch/XLA: planes (a host, a device) of lines (a
 * thread, a stream) of events, whose names and statistics are numbers that the plane explains
 * behind its lines. So a file is read twice, first for the names: what is kept is those, and never
 * the events, however many.
 *
 * Times are ps from their line's beginning in ns: each end of an event is rounded to the nearest
 * ns, so that what touched touches still, what lay within lies within, and no length is wrong by
 * more than 1 ns.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/chrome/event.h"
#include "import/copies.h"
#include "import/xla/xplane.h"

#define REGISTERS_MOST 1023 /* of a thread, on any GPU */

struct event {
	int64_t metadata, offset_ps, duration_ps, occurrences, start_ns, end_ns;
	int64_t correlation;
	struct plumb_slice name, display;
	struct plumb_slice kernel, copy, set; /* details; at NULL: none */
	struct plumb_slice module, op, tf_op, scope;
};

struct reader {
	struct plumb_trace *trace;
	struct xplane_names names;
	struct plumb_protobuf_stream stream;
	uint32_t process, plane;
	const struct xplane_line *line;
	uint32_t track;
	/* Of a nested line: the last one is work once the next is known not to lie within it. */
	struct plumb_trace_work held;
	bool holding;
	int64_t containers;
};

/* ---- events ---- */

static bool
read_stat(struct reader *reader, struct plumb_slice bytes, struct event *event)
{
	struct xplane_value value;
	if (!plumb_xplane_stat(&reader->names, reader->plane, bytes, &value))
		return false;
	if (!value.known)
		return true;
	struct plumb_slice *texts[XPLANE_STATS] = {
		[XPLANE_KERNEL_DETAILS] = &event->kernel,
		[XPLANE_COPY_DETAILS] = &event->copy,
		[XPLANE_SET_DETAILS] = &event->set,
		[XPLANE_HLO_OP] = &event->op,
		[XPLANE_HLO_MODULE] = &event->module,
		[XPLANE_TF_OP] = &event->tf_op,
		[XPLANE_NAME] = &event->scope,
	};
	if (value.stat == XPLANE_CORRELATION && value.number > 0)
		event->correlation = value.number;
	else if (texts[value.stat] && value.text.at)
		*texts[value.stat] = value.text;
	return true;
}

/* What the statistics of the event's name say, which hold for all events of the name. */
static void
name_event(struct reader *reader, struct event *event)
{
	const struct xplane_name *name =
		plumb_xplane_name(&reader->names, reader->plane, true, event->metadata);
	struct plumb_protobuf_field f;
	if (!name)
		return;
	event->name = plumb_xplane_text(&reader->names, name->name);
	event->display = plumb_xplane_text(&reader->names, name->display);
	struct plumb_protobuf_view view = plumb_protobuf_view((struct plumb_slice){
		name->stat_bytes ? reader->names.kept.items + name->stats : NULL,
		name->stat_bytes });
	while (plumb_protobuf_next(&view, &f))
		if (plumb_protobuf_is(&f, METADATA_STAT, PLUMB_PROTOBUF_BYTES))
			read_stat(reader, f.bytes, event);
}

static int64_t
to_ns(int64_t ps)
{
	int64_t ns = ps / 1000, rest = ps % 1000;
	return ns + (rest >= 500) - (rest < -500);
}

/* False: the event's bytes are damaged. */
static bool
read_event(struct reader *reader, struct plumb_slice bytes, struct event *event)
{
	struct plumb_protobuf_view view = plumb_protobuf_view(bytes);
	struct plumb_protobuf_field f;
	int64_t end_ps;
	*event = (struct event){ .occurrences = PLUMB_UNKNOWN };
	while (plumb_protobuf_next(&view, &f)) {
		if (plumb_protobuf_is(&f, EVENT_METADATA, PLUMB_PROTOBUF_VARINT))
			event->metadata = (int64_t)f.value;
		else if (plumb_protobuf_is(&f, EVENT_OFFSET, PLUMB_PROTOBUF_VARINT))
			event->offset_ps = (int64_t)f.value;
		else if (plumb_protobuf_is(&f, EVENT_DURATION, PLUMB_PROTOBUF_VARINT))
			event->duration_ps = (int64_t)f.value;
		else if (plumb_protobuf_is(&f, EVENT_OCCURRENCES, PLUMB_PROTOBUF_VARINT))
			event->occurrences = (int64_t)f.value;
	}
	if (view.why)
		return false;
	name_event(reader, event);
	view = plumb_protobuf_view(bytes);
	while (plumb_protobuf_next(&view, &f))
		if (plumb_protobuf_is(&f, EVENT_STAT, PLUMB_PROTOBUF_BYTES) &&
		    !read_stat(reader, f.bytes, event))
			return false;
	int64_t base = reader->line->timestamp_ns;
	if (event->duration_ps < 0 ||
	    __builtin_add_overflow(event->offset_ps, event->duration_ps, &end_ps) ||
	    __builtin_add_overflow(base, to_ns(event->offset_ps), &event->start_ns) ||
	    __builtin_add_overflow(base, to_ns(end_ps), &event->end_ns))
		event->start_ns = PLUMB_UNKNOWN; /* counted as one without a time */
	return true;
}

/* ---- details: "regs:32 static_shared:0 grid:1280,1,1 block:256,1,1 occ_pct:50" ---- */

/* The text after KEY and ":". */
static struct plumb_slice
find_detail(struct plumb_slice details, const char *key)
{
	const char *at = details.at, *end = at ? at + details.bytes : NULL;
	size_t length = strlen(key);
	while (at < end) {
		const char *stop = at;
		while (stop < end && *stop != ' ' && *stop != '\n')
			stop++;
		if ((size_t)(stop - at) > length && !memcmp(at, key, length) && at[length] == ':')
			return (struct plumb_slice){ at + length + 1,
				                     (size_t)(stop - at) - length - 1 };
		at = stop + (stop < end);
	}
	return (struct plumb_slice){ NULL, 0 };
}

static int64_t
detail_number(struct plumb_slice details, const char *key, int scale)
{
	struct plumb_slice text = find_detail(details, key);
	int64_t number;
	return text.bytes && plumb_slice_decimal(text, scale, &number) && number >= 0
	               ? number
	               : PLUMB_UNKNOWN;
}

static void
detail_three(struct plumb_slice details, const char *key, int64_t three[3])
{
	struct plumb_slice text = find_detail(details, key), part = { text.at, 0 };
	int64_t found[3];
	unsigned count = 0;
	for (size_t i = 0; text.at && i <= text.bytes && count < 3; i++) {
		if (i < text.bytes && text.at[i] != ',')
			continue;
		part.bytes = (size_t)(text.at + i - part.at);
		if (!plumb_slice_decimal(part, 0, &found[count++]))
			return;
		part.at = text.at + i + 1;
	}
	if (count == 3)
		memcpy(three, found, sizeof found);
}

static struct plumb_trace_launch
launch_of(struct plumb_slice details)
{
	struct plumb_trace_launch launch = plumb_trace_no_launch;
	int64_t occupancy = detail_number(details, "occ_pct", 4);
	detail_three(details, "grid", launch.grid);
	detail_three(details, "block", launch.block);
	launch.dynamic_shared = detail_number(details, "dynamic_shared", 0);
	launch.registers = detail_number(details, "regs", 0);
	launch.static_shared = detail_number(details, "static_shared", 0);
	launch.shared = detail_number(details, "shm", 0); /* to 2021 */
	/* ROCm's tracer writes memory that it never set. */
	if (launch.registers > REGISTERS_MOST)
		launch.registers = launch.static_shared = launch.shared = PLUMB_UNKNOWN;
	if (occupancy > 0 && occupancy <= 1000000)
		launch.occupancy = occupancy;
	return launch;
}

/* For "%.*s". */
static int
cut_length(struct plumb_slice text, size_t most)
{
	return (int)(text.bytes < most ? text.bytes : most);
}

/* "MemcpyH2D" with "kind_src:pinned kind_dst:device size:4 async:1" */
static uint32_t
copy_frame(struct reader *reader, const struct event *event)
{
	struct plumb_slice from = find_detail(event->copy, "kind_src");
	struct plumb_slice to = find_detail(event->copy, "kind_dst");
	struct plumb_slice kind = find_detail(event->set, "kind");
	char text[256], *two;
	if (event->set.at)
		snprintf(text, sizeof text, "Memset (%.*s)", cut_length(kind, 63),
		         kind.at ? kind.at : "");
	else if (from.at && to.at)
		snprintf(text, sizeof text, "%.*s (%.*s -> %.*s)", cut_length(event->name, 63),
		         event->name.at ? event->name.at : "", cut_length(from, 63), from.at,
		         cut_length(to, 63), to.at);
	else
		snprintf(text, sizeof text, "%.*s", cut_length(event->name, 127),
		         event->name.at ? event->name.at : "");
	two = strstr(text, "2D");
	if (!event->set.at && (two || (two = strstr(text, "2H")) || (two = strstr(text, "2P")))) {
		memmove(two + 2, two + 1, strlen(two));
		two[0] = 't';
		two[1] = 'o';
	}
	return plumb_import_copy(reader->trace, (struct plumb_slice){ text, strlen(text) });
}

/* ---- work of a device ---- */

/* "jit(f)/jit(main)/dot_general:" names an operation of the program; "XlaModule:" none. */
static uint32_t
operation_frame(struct reader *reader, const struct event *event)
{
	struct plumb_slice name = event->tf_op;
	if (!name.bytes || plumb_slice_begins(name, "XlaModule"))
		name = event->scope;
	if (!name.bytes || !memchr(name.at, '/', name.bytes))
		return 0;
	const char *slash = memrchr(name.at, '/', name.bytes);
	const char *colon = memchr(slash, ':', (size_t)(name.at + name.bytes - slash));
	if (colon)
		name.bytes = (size_t)(colon - name.at);
	return plumb_trace_frame(reader->trace, PLUMB_FRAME_OPERATOR, name);
}

static void
set_inner(struct reader *reader, const struct event *event, struct plumb_trace_work *work)
{
	unsigned count = 0;
	if (event->module.bytes)
		work->inner[count++] =
			plumb_trace_frame(reader->trace, PLUMB_FRAME_RANGE, event->module);
	if ((work->inner[count] = operation_frame(reader, event)))
		count++;
	if (event->op.bytes)
		work->inner[count] =
			plumb_trace_frame(reader->trace, PLUMB_FRAME_OPERATOR, event->op);
}

static void
take_held(struct reader *reader)
{
	if (reader->holding)
		plumb_trace_work(reader->trace, &reader->held);
	reader->holding = false;
}

static void
take_work(struct reader *reader, const struct event *event, bool nested)
{
	struct plumb_trace_launch launch;
	struct plumb_trace_work work = {
		.track = reader->track,
		.start_ns = event->start_ns,
		.end_ns = event->end_ns,
		.correlation = (uint64_t)event->correlation,
		.bytes = PLUMB_UNKNOWN,
		.collective = PLUMB_NONE,
		.placed = PLUMB_NONE,
	};
	struct plumb_slice name = nested && event->display.at ? event->display : event->name;
	if (event->copy.at || event->set.at) {
		work.frame = copy_frame(reader, event);
		work.ends = plumb_import_ends(reader->trace, work.frame, work.track,
		                              detail_number(event->copy, "dest", 0));
		work.bytes = detail_number(event->copy.at ? event->copy : event->set, "size", 0);
	} else {
		work.frame = plumb_trace_frame(reader->trace, PLUMB_FRAME_KERNEL, name);
		launch = launch_of(event->kernel);
		work.launch = event->kernel.at ? &launch : NULL;
	}
	set_inner(reader, event, &work);
	if (!nested) {
		plumb_trace_work(reader->trace, &work);
		return;
	}
	/* A loop's time is that of what it does. */
	if (reader->holding && work.start_ns >= reader->held.start_ns &&
	    work.start_ns < reader->held.end_ns && work.end_ns <= reader->held.end_ns) {
		reader->containers++;
		reader->holding = false;
	}
	take_held(reader);
	work.launch = NULL; /* it would not live as long */
	reader->held = work;
	reader->holding = true;
}

/* ---- what happened on a thread ---- */

/* "$profiler.py:91 start_trace", "$builtins isinstance" */
static uint32_t
python_frame(struct reader *reader, struct plumb_slice name)
{
	name.at++;
	name.bytes--;
	const char *space = memchr(name.at, ' ', name.bytes);
	const char *colon = space ? memrchr(name.at, ':', (size_t)(space - name.at)) : NULL;
	int64_t line;
	if (colon && colon > name.at &&
	    plumb_slice_decimal((struct plumb_slice){ colon + 1, (size_t)(space - colon - 1) }, 0,
	                        &line)) {
		struct plumb_slice file = { name.at, (size_t)(colon - name.at) };
		struct plumb_slice function = { space + 1,
			                        (size_t)(name.at + name.bytes - space - 1) };
		return plumb_trace_frame_at(reader->trace, PLUMB_FRAME_PYTHON, function, file,
		                            line);
	}
	return plumb_trace_frame(reader->trace, PLUMB_FRAME_PYTHON, name);
}

/* TensorFlow's "encoder/layer_5/dropout/Mul:Mul", and not "Executor::Process", "jit_f:XLA GPU
 * module". */
static bool
is_operator(struct plumb_slice name)
{
	const char *colon = name.bytes ? memrchr(name.at, ':', name.bytes) : NULL;
	const char *end = name.at ? name.at + name.bytes : NULL;
	if (!colon || colon == name.at || colon[-1] == ':' || colon + 1 == end ||
	    memchr(name.at, ' ', name.bytes))
		return false;
	for (const char *at = colon + 1; at < end; at++)
		if (*at != '_' && (*at < '0' || *at > '9') && (*at < 'A' || *at > 'Z') &&
		    (*at < 'a' || *at > 'z'))
			return false;
	return true;
}

static void
take_host(struct reader *reader, const struct event *event)
{
	struct plumb_slice name = event->name;
	uint32_t frame;
	/* "Name#key=value,…#" */
	if (name.bytes && name.at[name.bytes - 1] == '#') {
		const char *hash = memchr(name.at, '#', name.bytes);
		if (hash > name.at)
			name.bytes = (size_t)(hash - name.at);
	}
	if (event->correlation)
		frame = plumb_trace_frame(reader->trace, PLUMB_FRAME_GPU_API, name);
	else if (name.bytes > 1 && name.at[0] == '$')
		frame = python_frame(reader, name);
	else
		frame = plumb_trace_frame(reader->trace,
		                          event->op.at || is_operator(name) ? PLUMB_FRAME_OPERATOR
		                                                            : PLUMB_FRAME_RANGE,
		                          name);
	plumb_trace_host(reader->trace, reader->track, frame, event->start_ns, event->end_ns,
	                 (uint64_t)event->correlation);
}

/* ---- lines and planes ---- */

/* Is LINE, of a device, the account of what ran on it? */
static bool
is_work(const struct xplane_plane *plane, const struct xplane_line *line)
{
	bool nested = plane->nested && (!plane->gpu || !plane->events);
	return line->kind == (nested ? XPLANE_LINE_NESTED : XPLANE_LINE_EVENTS);
}

static void
count_line(struct reader *reader, const struct xplane_plane *plane, int64_t events)
{
	const struct xplane_line *line = reader->line;
	bool device = plane->kind == XPLANE_DEVICE;
	plumb_trace_count_slice(
		reader->trace, device ? PLUMB_FATE_REPEATED : PLUMB_FATE_UNUSED,
		plumb_xplane_text(&reader->names, device ? line->name : plane->name), events);
}

static void
open_line(struct reader *reader, const struct xplane_plane *plane)
{
	struct plumb_builder *builder = plumb_trace_builder(reader->trace);
	struct plumb_slice name = plumb_xplane_text(&reader->names, reader->line->name);
	if (plane->kind == XPLANE_DEVICE) {
		uint32_t device =
			plumb_trace_device(reader->trace, reader->process, plane->ordinal, NULL);
		reader->track = plumb_trace_stream(reader->trace, reader->process, device,
		                                   PLUMB_UNKNOWN, reader->line->id);
		return;
	}
	reader->track = plumb_trace_thread(reader->trace, reader->process, reader->line->id);
	if (reader->track != PLUMB_NONE && name.at)
		plumb_builder_get_track(builder, reader->track)->name =
			plumb_builder_string(builder, name.at, name.bytes);
}

static void
take_event(struct reader *reader, const struct xplane_plane *plane, const struct event *event)
{
	if (event->occurrences != PLUMB_UNKNOWN)
		plumb_trace_count(reader->trace, PLUMB_FATE_UNUSED, "sums of events without times",
		                  1);
	else if (event->start_ns == PLUMB_UNKNOWN || !event->name.at)
		plumb_trace_count(reader->trace, PLUMB_FATE_BACKWARDS, NULL, 1);
	else if (plane->kind == XPLANE_HOST)
		take_host(reader, event);
	else
		take_work(reader, event, reader->line->kind == XPLANE_LINE_NESTED);
}

static void
read_line(struct reader *reader, const struct xplane_plane *plane)
{
	struct plumb_protobuf_stream *stream = &reader->stream;
	struct plumb_protobuf_field f;
	struct plumb_slice bytes;
	struct event event;
	int64_t passed = 0;
	bool taken = plane->kind == XPLANE_HOST ||
	             (plane->kind == XPLANE_DEVICE && is_work(plane, reader->line));
	bool opened = false;
	if (!plumb_protobuf_enter(stream))
		return;
	while (plumb_protobuf_stream_next(stream, &f)) {
		if (!plumb_protobuf_is(&f, LINE_EVENT, PLUMB_PROTOBUF_BYTES))
			continue;
		passed += !taken;
		if (!taken || !plumb_protobuf_take(stream, &bytes))
			continue;
		if (!opened)
			open_line(reader, plane);
		opened = true;
		if (!read_event(reader, bytes, &event))
			plumb_protobuf_stream_fail(stream, "an event is damaged");
		else
			take_event(reader, plane, &event);
	}
	take_held(reader);
	count_line(reader, plane, passed);
}

static void
read_plane(struct reader *reader, const struct xplane_plane *plane)
{
	struct plumb_protobuf_field f;
	uint32_t line = 0;
	if (!plumb_protobuf_enter(&reader->stream))
		return;
	while (plumb_protobuf_stream_next(&reader->stream, &f))
		if (plumb_protobuf_is(&f, PLANE_LINE, PLUMB_PROTOBUF_BYTES) &&
		    line < plane->lines) {
			reader->line = &reader->names.lines.items[plane->line + line++];
			read_line(reader, plane);
		}
}

static int
read_events(struct reader *reader, struct plumb_input *again, const char *path,
            struct plumb_error *error)
{
	struct plumb_protobuf_field f;
	int code = plumb_protobuf_stream_open(&reader->stream, again, error);
	while (!code && plumb_protobuf_stream_next(&reader->stream, &f))
		if (plumb_protobuf_is(&f, SPACE_PLANE, PLUMB_PROTOBUF_BYTES) &&
		    reader->plane < reader->names.planes.count) {
			read_plane(reader, &reader->names.planes.items[reader->plane]);
			reader->plane++;
		}
	if (!code && plumb_protobuf_stream_failed(&reader->stream))
		code = plumb_protobuf_stream_error(&reader->stream, path, error);
	plumb_protobuf_stream_close(&reader->stream);
	return code;
}

/* ---- the rest of the file ---- */

/* Since when times are counted: in newer files from when profiling began, which stands apart. */
static void
take_start(struct reader *reader, int64_t start_ns)
{
	if (start_ns <= 0)
		return;
	for (uint32_t i = 0; i < reader->names.lines.count; i++)
		if (reader->names.lines.items[i].timestamp_ns >= start_ns)
			return;
	plumb_trace_base(reader->trace, start_ns);
}

static void
describe_device(struct reader *reader, const struct xplane_plane *plane,
                const struct xplane_value *value)
{
	struct plumb_builder *builder = plumb_trace_builder(reader->trace);
	uint32_t id = plumb_trace_has_device(reader->trace, reader->process, plane->ordinal);
	if (id == PLUMB_NONE)
		return;
	struct plumb_device *device = plumb_builder_get_device(builder, id);
	int64_t *const fields[XPLANE_STATS] = {
		[XPLANE_CLOCK] = &device->clock_khz,
		[XPLANE_CORES] = &device->multiprocessors,
		[XPLANE_MEMORY] = &device->memory_bytes,
		[XPLANE_CAPABILITY_MAJOR] = &device->capability_major,
		[XPLANE_CAPABILITY_MINOR] = &device->capability_minor,
	};
	if (value->stat == XPLANE_DEVICE_TYPE && value->text.at)
		device->name = plumb_builder_string(builder, value->text.at, value->text.bytes);
	else if (fields[value->stat] && value->number >= 0)
		*fields[value->stat] = value->number;
}

static void
describe_run(struct reader *reader)
{
	struct plumb_builder *builder = plumb_trace_builder(reader->trace);
	struct xplane_names *names = &reader->names;
	struct plumb_slice host = plumb_xplane_text(names, names->host);
	struct xplane_value value;
	if (host.at && reader->process != PLUMB_NONE)
		plumb_builder_get_process(builder, reader->process)->host =
			plumb_builder_string(builder, host.at, host.bytes);
	for (uint32_t i = 0; i < names->plane_stats.count; i++) {
		const struct xplane_kept *kept = &names->plane_stats.items[i];
		const struct xplane_plane *plane = &names->planes.items[kept->plane];
		struct plumb_slice bytes = { names->kept.items + kept->at, kept->bytes };
		if (!plumb_xplane_stat(names, kept->plane, bytes, &value) || !value.known)
			continue;
		if (plane->kind == XPLANE_DEVICE)
			describe_device(reader, plane, &value);
		else if (plane->kind == XPLANE_TASK && value.stat == XPLANE_START)
			take_start(reader, value.number);
	}
}

/* A binary file that went through a text's decoder and back cannot be mended. */
static int
explain_damage(const struct plumb_import_file *file, int code, struct plumb_error *error)
{
	struct plumb_error own = *error;
	if (code != PLUMB_EINPUT || !memmem(file->head, file->head_bytes, "\xef\xbf\xbd", 3))
		return code;
	return plumb_fail(error, code,
	                  "%.800s; some bytes were replaced by U+FFFD because the file was read "
	                  "as text; copy it again as a binary file",
	                  own.message);
}

static int
read_xplane(struct plumb_import_file *file, struct plumb_trace *trace, struct plumb_error *error)
{
	struct plumb_error own = { 0 };
	struct reader *reader = calloc(1, sizeof *reader);
	if (!reader)
		return plumb_fail_memory(error, "to read %s", file->path);
	reader->trace = trace;
	reader->process = plumb_trace_process(trace, PLUMB_UNKNOWN);
	struct plumb_input *again = NULL;
	int code = plumb_import_again(file, &again, &own);
	if (!code)
		code = plumb_xplane_names(&reader->names, file->path, file->input, &own);
	if (!code)
		code = read_events(reader, again, file->path, &own);
	if (!code) {
		describe_run(reader);
		plumb_trace_count(trace, PLUMB_FATE_REPEATED, "XLA Ops that contain others",
		                  reader->containers);
	}
	plumb_input_close(again);
	plumb_xplane_names_free(&reader->names);
	free(reader);
	if (!code)
		return 0;
	explain_damage(file, code, &own);
	return plumb_fail(error, own.code, "%s", own.message);
}

/* The file begins with a plane, and the plane with its number or name, which is a path. */
static int
probe_xplane(const struct plumb_import_file *file)
{
	struct plumb_slice head = { file->head, file->head_bytes };
	struct plumb_protobuf_view view = plumb_protobuf_view(head);
	struct plumb_protobuf_field f;
	uint64_t key, bytes;
	if (plumb_chrome_is_json_text(file))
		return 0; /* white space, and then JSON */
	if (!plumb_protobuf_next_packed(&view, &key) || key != (SPACE_PLANE << 3 | 2))
		return 0;
	/* Damaged, and what it was still shows. */
	static const char *const words[] = { "\x12\x09/host:CPU", "/host:metadata", "/device:GPU:0",
		                             "/device:TPU:0" };
	int maybe = 0;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (memmem(head.at, head.bytes, words[i], strlen(words[i])))
			maybe = 30;
	if (!plumb_protobuf_next_packed(&view, &bytes))
		return maybe;
	if (bytes < (uint64_t)(view.end - view.at))
		view.end = view.at + bytes;
	for (unsigned i = 0; i < 3 && plumb_protobuf_next(&view, &f); i++) {
		if (plumb_protobuf_is(&f, PLANE_NAME, PLUMB_PROTOBUF_BYTES))
			return f.bytes.bytes && (f.bytes.at[0] == '/' ||
			                         plumb_slice_is(f.bytes, "Task Environment"))
			               ? 90
			               : maybe;
		if (!plumb_protobuf_is(&f, 1, PLUMB_PROTOBUF_VARINT))
			break;
	}
	return maybe;
}

const struct plumb_format plumb_format_xplane = {
	.name = "xplane",
	.title = "XPlane (JAX, TensorFlow)",
	.probe = probe_xplane,
	.read = read_xplane,
};
