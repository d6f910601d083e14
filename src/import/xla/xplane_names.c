/* SPDX-License-Identifier: Apache-2.0 */
#include "import/xla/xplane.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/protobuf.h"

/* More statistics of one event's name are none that say what it is. */
#define STATS_MAX ((size_t)16 << 10)
/* Of a name; every event has it again, at the cost of a few bytes. */
#define TEXT_MAX ((size_t)16 << 10)

static const char *const stat_names[XPLANE_STATS] = {
	[XPLANE_CORRELATION] = "correlation_id",
	[XPLANE_KERNEL_DETAILS] = "kernel_details",
	[XPLANE_COPY_DETAILS] = "memcpy_details",
	[XPLANE_SET_DETAILS] = "memset_details",
	[XPLANE_HLO_OP] = "hlo_op",
	[XPLANE_HLO_MODULE] = "hlo_module",
	[XPLANE_TF_OP] = "tf_op",
	[XPLANE_NAME] = "name",
	[XPLANE_CLOCK] = "clock_rate",
	[XPLANE_CORES] = "core_count",
	[XPLANE_MEMORY] = "memory_size",
	[XPLANE_CAPABILITY_MAJOR] = "compute_cap_major",
	[XPLANE_CAPABILITY_MINOR] = "compute_cap_minor",
	[XPLANE_DEVICE_TYPE] = "device_type_string",
	[XPLANE_START] = "profile_start_time",
};

struct plumb_slice
plumb_xplane_text(const struct xplane_names *names, uint32_t text)
{
	const char *at = text == PLUMB_NONE ? NULL : plumb_strtab_text(names->texts, text);
	return (struct plumb_slice){ at, at ? strlen(at) : 0 };
}

static uint32_t
keep_text(struct xplane_names *names, struct plumb_slice text)
{
	if (text.bytes > TEXT_MAX)
		text.bytes = TEXT_MAX;
	uint32_t id = plumb_strtab_add(names->texts, text.at, text.bytes);
	names->no_memory |= id == PLUMB_STRTAB_NONE;
	return id;
}

/* Where BYTES now are in `kept`. */
static uint32_t
keep_bytes(struct xplane_names *names, struct plumb_slice bytes)
{
	uint64_t wanted = (uint64_t)names->kept.count + bytes.bytes;
	uint32_t at = names->kept.count;
	if (wanted > names->kept.capacity) {
		char *grown = plumb_vec_grow(names->kept.items, &names->kept.capacity, wanted, 1);
		if (!grown) {
			names->no_memory = true;
			return PLUMB_NONE;
		}
		names->kept.items = grown;
	}
	if (bytes.bytes)
		memcpy(names->kept.items + at, bytes.at, bytes.bytes);
	names->kept.count = (uint32_t)wanted;
	return at;
}

/* ---- names by number ---- */

static uint64_t
name_hash(uint32_t plane, bool event, int64_t id)
{
	return plumb_hash_mix((uint64_t)plane << 1 | event, (uint64_t)id);
}

const struct xplane_name *
plumb_xplane_name(const struct xplane_names *names, uint32_t plane, bool event, int64_t id)
{
	struct plumb_map_cursor at;
	for (uint32_t i = plumb_map_first(&names->map, name_hash(plane, event, id), &at);
	     i != PLUMB_MAP_NONE; i = plumb_map_next(&names->map, &at)) {
		const struct xplane_name *name = &names->names.items[i];
		if (name->plane == plane && name->event == event && name->id == id)
			return name;
	}
	return NULL;
}

bool
plumb_xplane_stat(const struct xplane_names *names, uint32_t plane, struct plumb_slice bytes,
                  struct xplane_value *value)
{
	struct plumb_protobuf_view view = plumb_protobuf_view(bytes);
	struct plumb_protobuf_field f;
	const struct xplane_name *name = NULL, *of;
	*value = (struct xplane_value){ .number = PLUMB_UNKNOWN };
	while (plumb_protobuf_next(&view, &f)) {
		if (plumb_protobuf_is(&f, STAT_METADATA, PLUMB_PROTOBUF_VARINT)) {
			name = plumb_xplane_name(names, plane, false, (int64_t)f.value);
		} else if (plumb_protobuf_is(&f, STAT_UNSIGNED, PLUMB_PROTOBUF_VARINT) ||
		           plumb_protobuf_is(&f, STAT_SIGNED, PLUMB_PROTOBUF_VARINT)) {
			value->number = (int64_t)f.value;
			value->known = true;
		} else if (plumb_protobuf_is(&f, STAT_TEXT, PLUMB_PROTOBUF_BYTES)) {
			value->text = f.bytes;
			value->known = true;
		} else if (plumb_protobuf_is(&f, STAT_REFERENCE, PLUMB_PROTOBUF_VARINT)) {
			of = plumb_xplane_name(names, plane, false, (int64_t)f.value);
			value->text = of ? plumb_xplane_text(names, of->name)
			                 : (struct plumb_slice){ NULL, 0 };
			value->known = of != NULL;
		}
	}
	value->known &= name && name->name < XPLANE_STATS;
	if (value->known)
		value->stat = (enum xplane_stat)name->name;
	return !view.why;
}

/* XEventMetadata and XStatMetadata: what of them is kept is alike. */
static const char *
read_metadata(struct xplane_names *names, struct plumb_slice bytes, struct xplane_name *name)
{
	struct plumb_protobuf_view view = plumb_protobuf_view(bytes);
	struct plumb_protobuf_field f;
	struct plumb_protobuf one = { 0 };
	while (plumb_protobuf_next(&view, &f)) {
		if (plumb_protobuf_is(&f, METADATA_ID, PLUMB_PROTOBUF_VARINT))
			name->id = (int64_t)f.value;
		else if (plumb_protobuf_is(&f, METADATA_NAME, PLUMB_PROTOBUF_BYTES))
			name->name = keep_text(names, f.bytes);
		else if (name->event &&
		         plumb_protobuf_is(&f, METADATA_DISPLAY_NAME, PLUMB_PROTOBUF_BYTES) &&
		         f.bytes.bytes)
			name->display = keep_text(names, f.bytes);
		else if (name->event &&
		         plumb_protobuf_is(&f, METADATA_STAT, PLUMB_PROTOBUF_BYTES) &&
		         one.size + f.bytes.bytes < STATS_MAX)
			plumb_protobuf_bytes(&one, METADATA_STAT, f.bytes.at, f.bytes.bytes);
	}
	names->no_memory |= plumb_protobuf_failed(&one);
	if (one.size && !plumb_protobuf_failed(&one)) {
		name->stats = keep_bytes(names, (struct plumb_slice){ (char *)one.data, one.size });
		name->stat_bytes = (uint32_t)one.size;
	}
	plumb_protobuf_free(&one);
	return view.why;
}

/* An entry of event_metadata or stat_metadata. */
static const char *
read_name(struct xplane_names *names, struct plumb_slice bytes, bool event)
{
	struct plumb_protobuf_view view = plumb_protobuf_view(bytes);
	struct plumb_protobuf_field f;
	uint32_t plane = names->planes.count - 1;
	struct xplane_name name = {
		.plane = plane, .event = event, .name = PLUMB_NONE, .display = PLUMB_NONE
	};
	const char *why = NULL;
	while (plumb_protobuf_next(&view, &f) && !why) {
		if (plumb_protobuf_is(&f, 1, PLUMB_PROTOBUF_VARINT))
			name.id = (int64_t)f.value;
		else if (plumb_protobuf_is(&f, 2, PLUMB_PROTOBUF_BYTES))
			why = read_metadata(names, f.bytes, &name);
	}
	if (why || view.why || plumb_xplane_name(names, plane, event, name.id))
		return why ? why : view.why;
	struct xplane_name *added = plumb_vec_add(&names->names);
	if (!added || plumb_map_add(&names->map, name_hash(plane, event, name.id),
	                            names->names.count - 1) < 0)
		names->no_memory = true;
	else
		*added = name;
	return NULL;
}

/* ---- lines and planes ---- */

/* What the profiler works out from the other lines of a device, or of the whole of a step. */
static enum xplane_line_kind
line_kind(struct plumb_slice name)
{
	static const char *const derived[] = {
		"Steps",         "XLA Modules",  "TensorFlow Name Scope", "TensorFlow Ops",
		"Framework Ops", "Launch Stats", "Framework Name Scope",  "Source code",
		"Source Code",   "XLA TraceMe",  "Async XLA Ops",         "Host Offload Ops",
		"Derived",       "SparseCore",   "XLA Async Ops",         "Kernel Launch Stats",
	};
	if (!name.at)
		return XPLANE_LINE_EVENTS;
	if (plumb_slice_begins(name, "XLA Ops"))
		return XPLANE_LINE_NESTED;
	for (size_t i = 0; i < sizeof derived / sizeof *derived; i++)
		if (plumb_slice_begins(name, derived[i]))
			return XPLANE_LINE_REPEATED;
	return XPLANE_LINE_EVENTS;
}

static void
read_line(struct xplane_names *names, struct plumb_protobuf_stream *stream)
{
	struct plumb_protobuf_field f;
	struct plumb_slice text;
	struct xplane_line line = { .name = PLUMB_NONE };
	if (!plumb_protobuf_enter(stream))
		return;
	while (plumb_protobuf_stream_next(stream, &f)) {
		if (plumb_protobuf_is(&f, LINE_ID, PLUMB_PROTOBUF_VARINT))
			line.id = (int64_t)f.value;
		else if (plumb_protobuf_is(&f, LINE_TIMESTAMP, PLUMB_PROTOBUF_VARINT))
			line.timestamp_ns = (int64_t)f.value;
		else if ((plumb_protobuf_is(&f, LINE_NAME, PLUMB_PROTOBUF_BYTES) ||
		          plumb_protobuf_is(&f, LINE_DISPLAY_NAME, PLUMB_PROTOBUF_BYTES)) &&
		         f.value && plumb_protobuf_take(stream, &text))
			line.name = keep_text(names, text);
	}
	struct plumb_slice name = plumb_xplane_text(names, line.name);
	line.kind = line_kind(name);
	struct xplane_line *added = plumb_vec_add(&names->lines);
	if (!added) {
		names->no_memory = true;
		return;
	}
	*added = line;
	struct xplane_plane *plane = &names->planes.items[names->planes.count - 1];
	plane->lines++;
	plane->events |= line.kind == XPLANE_LINE_EVENTS;
	plane->nested |= line.kind == XPLANE_LINE_NESTED;
}

/* "/device:GPU:3" */
static void
name_plane(struct xplane_plane *plane, struct plumb_slice name)
{
	static const char *const hosts[] = { "/host:CPU", "/host:CUPTI", "/host:ROCTRACER",
		                             "/host:python-tracer" };
	static const char device[] = "/device:";
	const char *colon;
	for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
		if (plumb_slice_is(name, hosts[i]))
			plane->kind = XPLANE_HOST;
	if (plumb_slice_is(name, "Task Environment"))
		plane->kind = XPLANE_TASK;
	colon = plumb_slice_begins(name, device) ? memrchr(name.at, ':', name.bytes) : NULL;
	if (!colon || colon < name.at + sizeof device)
		return;
	struct plumb_slice number = { colon + 1, (size_t)(name.at + name.bytes - colon - 1) };
	if (plumb_slice_decimal(number, 0, &plane->ordinal) && plane->ordinal >= 0)
		plane->kind = XPLANE_DEVICE;
	plane->gpu = plumb_slice_begins(name, "/device:GPU:");
}

static void
keep_plane_stat(struct xplane_names *names, struct plumb_slice bytes)
{
	struct xplane_kept *kept =
		bytes.bytes < STATS_MAX ? plumb_vec_add(&names->plane_stats) : NULL;
	if (!kept) {
		names->no_memory |= bytes.bytes < STATS_MAX;
		return;
	}
	kept->plane = names->planes.count - 1;
	kept->at = keep_bytes(names, bytes);
	kept->bytes = (uint32_t)bytes.bytes;
}

static void
read_plane(struct xplane_names *names, struct plumb_protobuf_stream *stream)
{
	struct plumb_protobuf_field f;
	struct plumb_slice bytes;
	struct xplane_plane *plane = plumb_vec_add(&names->planes);
	bool other = false; /* none of its events are looked at */
	if (!plane || !plumb_protobuf_enter(stream)) {
		names->no_memory |= !plane;
		return;
	}
	plane->name = PLUMB_NONE;
	plane->line = names->lines.count;
	while (plumb_protobuf_stream_next(stream, &f) && !names->no_memory) {
		if (f.wire != PLUMB_PROTOBUF_BYTES)
			continue;
		if (f.number == PLANE_LINE) {
			read_line(names, stream);
		} else if (f.number == PLANE_NAME && plumb_protobuf_take(stream, &bytes)) {
			name_plane(plane, bytes);
			plane->name = keep_text(names, bytes);
			other = plane->kind == XPLANE_OTHER;
		} else if ((f.number == PLANE_STAT_NAMES ||
		            (f.number == PLANE_EVENT_NAMES && !other)) &&
		           plumb_protobuf_take(stream, &bytes)) {
			const char *why = read_name(names, bytes, f.number == PLANE_EVENT_NAMES);
			if (why)
				plumb_protobuf_stream_fail(stream, why);
		} else if (f.number == PLANE_STAT && plumb_protobuf_take(stream, &bytes)) {
			keep_plane_stat(names, bytes);
		}
	}
}

/* ---- the file ---- */

int
plumb_xplane_names(struct xplane_names *names, const char *path, struct plumb_input *input,
                   struct plumb_error *error)
{
	struct plumb_protobuf_stream stream;
	struct plumb_protobuf_field f;
	struct plumb_slice text;
	*names = (struct xplane_names){ .texts = plumb_strtab_new(), .host = PLUMB_NONE };
	if (!names->texts)
		return plumb_fail_memory(error, "to read %s", path);
	for (unsigned i = 0; i < XPLANE_STATS; i++)
		keep_text(names, (struct plumb_slice){ stat_names[i], strlen(stat_names[i]) });
	int code = plumb_protobuf_stream_open(&stream, input, error);
	if (code)
		return code;
	while (plumb_protobuf_stream_next(&stream, &f) && !names->no_memory) {
		if (plumb_protobuf_is(&f, SPACE_PLANE, PLUMB_PROTOBUF_BYTES))
			read_plane(names, &stream);
		else if (plumb_protobuf_is(&f, SPACE_HOST, PLUMB_PROTOBUF_BYTES) &&
		         names->host == PLUMB_NONE && plumb_protobuf_take(&stream, &text))
			names->host = keep_text(names, text);
	}
	if (names->no_memory)
		code = plumb_fail_memory(error, "for the names of %s", path);
	else if (plumb_protobuf_stream_failed(&stream))
		code = plumb_protobuf_stream_error(&stream, path, error);
	plumb_protobuf_stream_close(&stream);
	return code;
}

void
plumb_xplane_names_free(struct xplane_names *names)
{
	plumb_strtab_free(names->texts);
	plumb_vec_free(&names->planes);
	plumb_vec_free(&names->lines);
	plumb_vec_free(&names->names);
	plumb_vec_free(&names->kept);
	plumb_vec_free(&names->plane_stats);
	plumb_map_free(&names->map);
}
