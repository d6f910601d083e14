/* SPDX-License-Identifier: Apache-2.0 */
/* Taking in what a file holds, in whatever order it does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/secret.h"
#include "import/trace_private.h"

enum plumb_trace_what { PROCESS, THREAD, DEVICE, STREAM, NOWHERE };

const struct plumb_trace_launch plumb_trace_no_launch = {
	.grid = { PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_UNKNOWN },
	.block = { PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_UNKNOWN },
	.registers = PLUMB_UNKNOWN,
	.static_shared = PLUMB_UNKNOWN,
	.dynamic_shared = PLUMB_UNKNOWN,
	.shared = PLUMB_UNKNOWN,
	.occupancy = PLUMB_UNKNOWN,
};

int
plumb_trace_no_memory(struct plumb_trace *trace)
{
	trace->no_memory = true;
	return PLUMB_ESYSTEM;
}

struct plumb_trace *
plumb_trace_new(struct plumb_builder *builder)
{
	struct plumb_trace *trace = calloc(1, sizeof *trace);
	if (!trace)
		return NULL;
	trace->builder = builder;
	trace->first_ns = INT64_MAX;
	trace->last_ns = INT64_MIN;
	return trace;
}

/* What only one file's numbers mean. */
static void
forget_file(struct plumb_trace *trace)
{
	plumb_vec_free(&trace->places);
	plumb_map_free(&trace->place_map);
	for (uint32_t i = 0; i < trace->spans.count; i++)
		plumb_pages_free(&trace->spans.items[i].pages);
	trace->spans.count = 0;
	plumb_vec_free(&trace->works);
	plumb_vec_free(&trace->launches);
	plumb_map_free(&trace->launch_map);
	plumb_vec_free(&trace->shapes);
	plumb_vec_free(&trace->edges);
	plumb_vec_free(&trace->calls);
	plumb_map_free(&trace->call_map);
	plumb_vec_free(&trace->pauses);
	plumb_vec_free(&trace->syncs);
	plumb_vec_free(&trace->groups);
	plumb_trace_forget_readings(trace);
}

void
plumb_trace_free(struct plumb_trace *trace)
{
	if (!trace)
		return;
	forget_file(trace);
	plumb_vec_free(&trace->spans);
	plumb_vec_free(&trace->busy);
	plumb_vec_free(&trace->bytes);
	plumb_vec_free(&trace->near);
	free(trace);
}

int
plumb_trace_next_file(struct plumb_trace *trace, const char *path, int64_t rank)
{
	forget_file(trace);
	trace->path = path;
	trace->rank = rank;
	trace->base_ns = 0;
	trace->file++;
	return trace->no_memory ? PLUMB_ESYSTEM : 0;
}

void
plumb_trace_set_parents(struct plumb_trace *trace, enum plumb_parents rule)
{
	trace->parents = rule;
}

enum plumb_parents
plumb_trace_parents(const struct plumb_trace *trace)
{
	return trace->parents;
}

void
plumb_trace_set_binaries(struct plumb_trace *trace, struct plumb_binaries *binaries)
{
	trace->binaries = binaries;
}

struct plumb_binaries *
plumb_trace_binaries(const struct plumb_trace *trace)
{
	return trace->binaries;
}

struct plumb_builder *
plumb_trace_builder(struct plumb_trace *trace)
{
	return trace->builder;
}

/* ---- places ---- */

static uint64_t
place_hash(const struct plumb_trace_place *key)
{
	uint64_t hash = plumb_hash_mix((uint64_t)key->what << 32 | key->owner, key->second);
	return plumb_hash_mix(plumb_hash_mix(hash, (uint64_t)key->x), (uint64_t)key->y);
}

/* The id under KEY, or PLUMB_NONE. */
static uint32_t
place_find(const struct plumb_trace *trace, const struct plumb_trace_place *key)
{
	struct plumb_map_cursor at;
	for (uint32_t i = plumb_map_first(&trace->place_map, place_hash(key), &at);
	     i != PLUMB_MAP_NONE; i = plumb_map_next(&trace->place_map, &at)) {
		const struct plumb_trace_place *p = &trace->places.items[i];
		if (p->what == key->what && p->owner == key->owner && p->second == key->second &&
		    p->x == key->x && p->y == key->y)
			return p->id;
	}
	return PLUMB_NONE;
}

/* ID is from now on under KEY; returns it. */
static uint32_t
place_add(struct plumb_trace *trace, const struct plumb_trace_place *key, uint32_t id)
{
	struct plumb_trace_place *added = id == PLUMB_NONE ? NULL : plumb_vec_add(&trace->places);
	if (!added ||
	    plumb_map_add(&trace->place_map, place_hash(key), trace->places.count - 1) < 0) {
		plumb_trace_no_memory(trace);
		return PLUMB_NONE;
	}
	*added = *key;
	added->id = id;
	return id;
}

uint32_t
plumb_trace_process(struct plumb_trace *trace, int64_t pid)
{
	struct plumb_trace_place key = { .what = PROCESS, .x = pid };
	struct plumb_process row = {
		.pid = pid,
		.ppid = PLUMB_UNKNOWN,
		.rank = trace->rank,
		.local_rank = PLUMB_UNKNOWN,
		.host = PLUMB_NONE,
		.command = PLUMB_NONE,
		.start_ns = PLUMB_UNKNOWN,
		.end_ns = PLUMB_UNKNOWN,
		.exit_code = PLUMB_UNKNOWN,
		.overhead_ns = PLUMB_UNKNOWN,
	};
	uint32_t id = place_find(trace, &key);
	return id != PLUMB_NONE
	               ? id
	               : place_add(trace, &key, plumb_builder_process(trace->builder, &row));
}

uint32_t
plumb_trace_process_is(struct plumb_trace *trace, uint32_t process, int64_t pid)
{
	struct plumb_trace_place key = { .what = PROCESS, .x = pid };
	if (process == PLUMB_NONE)
		return PLUMB_NONE;
	plumb_builder_get_process(trace->builder, process)->pid = pid;
	return place_add(trace, &key, process);
}

uint32_t
plumb_trace_has_process(const struct plumb_trace *trace, int64_t pid)
{
	return place_find(trace, &(struct plumb_trace_place){ .what = PROCESS, .x = pid });
}

uint32_t
plumb_trace_has_thread(const struct plumb_trace *trace, uint32_t process, int64_t tid)
{
	return place_find(
		trace, &(struct plumb_trace_place){ .what = THREAD, .owner = process, .x = tid });
}

void
plumb_trace_each_thread(const struct plumb_trace *trace,
                        void (*visit)(void *data, int64_t tid, uint32_t track), void *data)
{
	for (uint32_t i = 0; i < trace->places.count; i++)
		if (trace->places.items[i].what == THREAD)
			visit(data, trace->places.items[i].x, trace->places.items[i].id);
}

uint32_t
plumb_trace_has_device(const struct plumb_trace *trace, uint32_t process, int64_t ordinal)
{
	return place_find(trace, &(struct plumb_trace_place){
					 .what = DEVICE, .owner = process, .x = ordinal });
}

uint32_t
plumb_trace_has_stream(const struct plumb_trace *trace, uint32_t process, int64_t ordinal,
                       int64_t gpu_context, int64_t stream)
{
	return place_find(trace, &(struct plumb_trace_place){
					 .what = STREAM,
					 .owner = process,
					 .second = plumb_trace_has_device(trace, process, ordinal),
					 .x = gpu_context,
					 .y = stream,
				 });
}

/* A track under KEY, with room for its spans. */
static uint32_t
add_track(struct plumb_trace *trace, const struct plumb_trace_place *key, struct plumb_track row)
{
	row.name = PLUMB_NONE;
	row.start_ns = row.end_ns = row.overhead_ns = PLUMB_UNKNOWN;
	uint32_t id = plumb_builder_track(trace->builder, &row);
	while (id != PLUMB_NONE && trace->spans.count <= id)
		if (!plumb_vec_add(&trace->spans))
			id = PLUMB_NONE;
	return place_add(trace, key, id);
}

uint32_t
plumb_trace_thread(struct plumb_trace *trace, uint32_t process, int64_t tid)
{
	struct plumb_trace_place key = { .what = THREAD, .owner = process, .x = tid };
	uint32_t id = place_find(trace, &key);
	if (id != PLUMB_NONE || process == PLUMB_NONE)
		return id;
	return add_track(trace, &key,
	                 (struct plumb_track){
				 .kind = PLUMB_TRACK_THREAD,
				 .process = process,
				 .device = PLUMB_NONE,
				 .tid = tid,
				 .stream = PLUMB_UNKNOWN,
				 .gpu_context = PLUMB_UNKNOWN,
			 });
}

uint32_t
plumb_trace_stream(struct plumb_trace *trace, uint32_t process, uint32_t device,
                   int64_t gpu_context, int64_t stream)
{
	struct plumb_trace_place key = {
		.what = STREAM, .owner = process, .second = device, .x = gpu_context, .y = stream
	};
	uint32_t id = place_find(trace, &key);
	if (id != PLUMB_NONE || process == PLUMB_NONE || device == PLUMB_NONE)
		return id;
	return add_track(trace, &key,
	                 (struct plumb_track){
				 .kind = PLUMB_TRACK_STREAM,
				 .process = process,
				 .device = device,
				 .tid = PLUMB_UNKNOWN,
				 .stream = stream,
				 .gpu_context = gpu_context,
			 });
}

uint32_t
plumb_trace_device(struct plumb_trace *trace, uint32_t process, int64_t ordinal, const char *uuid)
{
	struct plumb_trace_place key = { .what = DEVICE, .owner = process, .x = ordinal };
	uint32_t id = place_find(trace, &key);
	if (id != PLUMB_NONE || process == PLUMB_NONE)
		return id;
	uint32_t text = uuid ? plumb_builder_text(trace->builder, uuid) : PLUMB_NONE;
	for (uint32_t i = 0; text != PLUMB_NONE && i < plumb_builder_device_count(trace->builder);
	     i++)
		if (plumb_builder_get_device(trace->builder, i)->uuid == text)
			return place_add(trace, &key, i);
	struct plumb_device row;
	for (size_t i = 0; i < sizeof row / sizeof(int64_t); i++)
		memcpy((char *)&row + i * sizeof(int64_t), &(int64_t){ PLUMB_UNKNOWN },
		       sizeof(int64_t));
	row.name = PLUMB_NONE;
	row.uuid = text;
	row.ordinal = ordinal;
	return place_add(trace, &key, plumb_builder_device(trace->builder, &row));
}

void
plumb_trace_adopt(struct plumb_trace *trace, const uint32_t *adopters)
{
	uint32_t count = trace->places.count;
	for (uint32_t i = 0; i < count; i++) {
		struct plumb_trace_place moved = trace->places.items[i];
		bool stream = moved.what == STREAM;
		uint32_t device = stream ? moved.second : moved.id;
		if ((!stream && moved.what != DEVICE) || adopters[device] == PLUMB_NONE ||
		    adopters[device] == moved.owner)
			continue;
		trace->places.items[i].what = NOWHERE;
		moved.owner = adopters[device];
		if (stream)
			plumb_builder_get_track(trace->builder, moved.id)->process = moved.owner;
		if (place_find(trace, &moved) == PLUMB_NONE)
			place_add(trace, &moved, moved.id);
	}
}

void
plumb_trace_rank(struct plumb_trace *trace, int64_t rank)
{
	trace->rank = rank;
	for (uint32_t i = 0; i < trace->places.count; i++)
		if (trace->places.items[i].what == PROCESS)
			plumb_builder_get_process(trace->builder, trace->places.items[i].id)->rank =
				rank;
}

/* ---- frames ---- */

static uint32_t
string_of(struct plumb_trace *trace, struct plumb_slice text)
{
	return text.at ? plumb_builder_string(trace->builder, text.at, text.bytes) : PLUMB_NONE;
}

uint32_t
plumb_trace_frame_at(struct plumb_trace *trace, uint32_t kind, struct plumb_slice name,
                     struct plumb_slice file, int64_t line)
{
	uint32_t at = line > 0 && line < UINT32_MAX ? (uint32_t)line : 0;
	return plumb_builder_frame(trace->builder, kind, string_of(trace, name),
	                           string_of(trace, file), at);
}

uint32_t
plumb_trace_frame(struct plumb_trace *trace, uint32_t kind, struct plumb_slice name)
{
	return plumb_builder_frame(trace->builder, kind, string_of(trace, name), PLUMB_NONE, 0);
}

uint32_t
plumb_trace_copy_frame(struct plumb_trace *trace, enum plumb_memory_kind from,
                       enum plumb_memory_kind to)
{
	char text[PLUMB_TRANSFER_NAME];
	plumb_transfer_name(text, (struct plumb_transfer){ (uint16_t)from, (uint16_t)to });
	return plumb_builder_frame(trace->builder, from ? PLUMB_FRAME_COPY : PLUMB_FRAME_SET,
	                           plumb_builder_text(trace->builder, text), PLUMB_NONE, 0);
}

uint32_t
plumb_trace_set_frame(struct plumb_trace *trace, enum plumb_memory_kind to)
{
	return plumb_trace_copy_frame(trace, PLUMB_MEMORY_NONE, to);
}

/* ---- what happened ---- */

/* False: it is counted as one without a time. */
static bool
has_time(struct plumb_trace *trace, int64_t start_ns, int64_t end_ns)
{
	int64_t length;
	if (start_ns == PLUMB_UNKNOWN || end_ns < start_ns ||
	    __builtin_sub_overflow(end_ns, start_ns, &length)) {
		plumb_trace_count(trace, PLUMB_FATE_BACKWARDS, NULL, 1);
		return false;
	}
	trace->taken++;
	return true;
}

/* False: the sum is no time. */
static bool
shift_range(int64_t *start_ns, int64_t *end_ns, int64_t ns)
{
	return !__builtin_add_overflow(*start_ns, ns, start_ns) &&
	       !__builtin_add_overflow(*end_ns, ns, end_ns);
}

static void
widen_range(int64_t *start, int64_t *end, int64_t start_ns, int64_t end_ns)
{
	if (*start == PLUMB_UNKNOWN || start_ns < *start)
		*start = start_ns;
	if (*end == PLUMB_UNKNOWN || end_ns > *end)
		*end = end_ns;
}

void
plumb_trace_extent(struct plumb_trace *trace, uint32_t track, int64_t start_ns, int64_t end_ns)
{
	struct plumb_track *row = plumb_builder_get_track(trace->builder, track);
	struct plumb_process *process = plumb_builder_get_process(trace->builder, row->process);
	widen_range(&row->start_ns, &row->end_ns, start_ns, end_ns);
	widen_range(&process->start_ns, &process->end_ns, start_ns, end_ns);
	if (start_ns < trace->first_ns)
		trace->first_ns = start_ns;
	if (end_ns > trace->last_ns)
		trace->last_ns = end_ns;
}

int
plumb_trace_add_span(struct plumb_trace *trace, const struct plumb_trace_span *span)
{
	struct plumb_trace_spans *spans = &trace->spans.items[span->track];
	struct plumb_trace_span *added = NULL;
	if (plumb_trace_spans_count(spans) < PLUMB_VEC_MAX)
		added = plumb_pages_add(&spans->pages, sizeof *added);
	if (!added)
		return plumb_trace_no_memory(trace);
	*added = *span;
	return 0;
}

/* ID: as STATE says. */
static int
add_host(struct plumb_trace *trace, uint32_t track, uint32_t id, enum plumb_trace_state state,
         int64_t start_ns, int64_t end_ns, uint64_t correlation)
{
	if (track >= trace->spans.count || id == PLUMB_NONE)
		return plumb_trace_no_memory(trace);
	if (!has_time(trace, start_ns, end_ns))
		return 0;
	struct plumb_trace_span span = { .start_ns = start_ns,
		                         .end_ns = end_ns,
		                         .correlation = correlation,
		                         .context = id,
		                         .track = track,
		                         .state = state };
	return plumb_trace_add_span(trace, &span);
}

int
plumb_trace_host(struct plumb_trace *trace, uint32_t track, uint32_t frame, int64_t start_ns,
                 int64_t end_ns, uint64_t correlation)
{
	return add_host(trace, track, frame, PLUMB_TRACE_FRAMED, start_ns, end_ns, correlation);
}

int
plumb_trace_placed(struct plumb_trace *trace, uint32_t track, uint32_t context, int64_t start_ns,
                   int64_t end_ns, uint64_t correlation)
{
	return add_host(trace, track, context, PLUMB_TRACE_GIVEN, start_ns, end_ns, correlation);
}

int
plumb_trace_shaped(struct plumb_trace *trace, uint32_t track, uint32_t frame, int64_t start_ns,
                   int64_t end_ns, uint32_t shapes)
{
	struct plumb_trace_shape *added;
	int code = plumb_trace_host(trace, track, frame, start_ns, end_ns, 0);
	if (code || shapes == PLUMB_NONE)
		return code;
	added = plumb_vec_add(&trace->shapes);
	if (!added)
		return plumb_trace_no_memory(trace);
	*added = (struct plumb_trace_shape){ start_ns, track, frame, shapes };
	return 0;
}

/* The number of an equal launch. */
static uint32_t
launch_of(struct plumb_trace *trace, const struct plumb_trace_launch *launch)
{
	uint64_t hash = plumb_hash_bytes(launch, sizeof *launch);
	struct plumb_map_cursor at;
	for (uint32_t i = plumb_map_first(&trace->launch_map, hash, &at); i != PLUMB_MAP_NONE;
	     i = plumb_map_next(&trace->launch_map, &at))
		if (!memcmp(&trace->launches.items[i], launch, sizeof *launch))
			return i;
	struct plumb_trace_launch *added = plumb_vec_add(&trace->launches);
	if (!added || plumb_map_add(&trace->launch_map, hash, trace->launches.count - 1) < 0) {
		plumb_trace_no_memory(trace);
		return PLUMB_NONE;
	}
	*added = *launch;
	return trace->launches.count - 1;
}

int
plumb_trace_work(struct plumb_trace *trace, const struct plumb_trace_work *work)
{
	if (work->track >= trace->spans.count || work->frame == PLUMB_NONE)
		return plumb_trace_no_memory(trace);
	if (!has_time(trace, work->start_ns, work->end_ns))
		return 0;
	struct plumb_trace_item *item = plumb_vec_add(&trace->works);
	if (!item)
		return plumb_trace_no_memory(trace);
	*item = (struct plumb_trace_item){
		.span = { .start_ns = work->start_ns,
		          .end_ns = work->end_ns,
		          .correlation = work->correlation,
		          .ends = work->ends,
		          .frame = work->frame,
		          .track = work->track },
		.bytes = work->bytes,
		.launch = work->launch ? launch_of(trace, work->launch) : PLUMB_NONE,
		.collective = work->collective,
		.group = work->group,
		.placed = work->placed,
		.whole = work->whole && work->placed != PLUMB_NONE,
		.here = work->here,
	};
	memcpy(item->inner, work->inner, sizeof item->inner);
	return 0;
}

uint32_t
plumb_trace_group(struct plumb_trace *trace, const struct plumb_trace_group *group)
{
	struct plumb_trace_group *added = plumb_vec_add(&trace->groups);
	if (!added) {
		plumb_trace_no_memory(trace);
		return 0;
	}
	*added = *group;
	return trace->groups.count;
}

struct plumb_trace_group *
plumb_trace_get_group(struct plumb_trace *trace, uint32_t number)
{
	return number && number <= trace->groups.count ? &trace->groups.items[number - 1] : NULL;
}

int
plumb_trace_wait(struct plumb_trace *trace, uint32_t process, uint64_t correlation, int64_t ns)
{
	struct plumb_trace_pause *pause = plumb_vec_add(&trace->pauses);
	if (!pause)
		return plumb_trace_no_memory(trace);
	*pause = (struct plumb_trace_pause){ correlation, process, ns };
	return 0;
}

int
plumb_trace_sync(struct plumb_trace *trace, const struct plumb_trace_sync *sync)
{
	struct plumb_trace_sync *added = plumb_vec_add(&trace->syncs);
	if (!added)
		return plumb_trace_no_memory(trace);
	*added = *sync;
	return 0;
}

int
plumb_trace_link(struct plumb_trace *trace, uint32_t from, int64_t from_ns, uint32_t to,
                 int64_t to_ns)
{
	struct plumb_trace_edge *edge = plumb_vec_add(&trace->edges);
	if (!edge)
		return plumb_trace_no_memory(trace);
	*edge = (struct plumb_trace_edge){ from, to, from_ns, to_ns, PLUMB_NONE, 0 };
	return 0;
}

int
plumb_trace_span(struct plumb_trace *trace, uint32_t track, uint32_t context, int64_t start_ns,
                 int64_t end_ns, uint64_t correlation)
{
	if (!has_time(trace, start_ns, end_ns))
		return 0;
	struct plumb_span span = { context, track, start_ns, end_ns, correlation };
	if (!shift_range(&span.start_ns, &span.end_ns, trace->base_ns))
		return 0;
	plumb_trace_extent(trace, track, span.start_ns, span.end_ns);
	int code = plumb_builder_span(trace->builder, &span);
	trace->spans_left_out += code == 1;
	return code < 0 ? plumb_trace_no_memory(trace) : 0;
}

int
plumb_trace_cpu_sample(struct plumb_trace *trace, uint32_t track, uint32_t context, int64_t at_ns,
                       int64_t ns)
{
	if (!has_time(trace, at_ns, at_ns) || __builtin_add_overflow(at_ns, trace->base_ns, &at_ns))
		return 0;
	struct plumb_cpu_sample sample = { track, context, at_ns, ns };
	int code = plumb_builder_cpu_sample(trace->builder, &sample);
	trace->samples++;
	trace->samples_left_out += code == 1;
	return code < 0 ? plumb_trace_no_memory(trace) : 0;
}

static int
add_value(struct plumb_trace *trace, uint32_t track, uint32_t context, struct plumb_ends ends,
          uint32_t metric, int64_t number, uint32_t *near)
{
	if (track == PLUMB_NONE || context == PLUMB_NONE)
		return plumb_trace_no_memory(trace);
	struct plumb_value value = {
		.context = context,
		.metric = metric,
		.track = track,
		.ends = ends,
		.sum = number,
		.count = 1,
		.min = number,
		.max = number,
		.mean = (double)number,
	};
	trace->taken++;
	return plumb_builder_row_near(trace->builder, PLUMB_TABLE_VALUES, &value, near) < 0
	               ? plumb_trace_no_memory(trace)
	               : 0;
}

struct plumb_trace_near *
plumb_trace_near(struct plumb_trace *trace, uint32_t context)
{
	while (context != PLUMB_NONE && trace->near.count <= context)
		if (!plumb_vec_add(&trace->near))
			return &trace->no_near;
	return context == PLUMB_NONE ? &trace->no_near : &trace->near.items[context];
}

int
plumb_trace_observe(struct plumb_trace *trace, uint32_t track, uint32_t context, uint32_t metric,
                    int64_t number, uint32_t *near)
{
	return add_value(trace, track, context, (struct plumb_ends){ 0, 0 }, metric, number, near);
}

int
plumb_trace_value(struct plumb_trace *trace, uint32_t track, uint32_t context, uint32_t metric,
                  int64_t number)
{
	uint32_t near = 0;
	return plumb_trace_observe(trace, track, context, metric, number, &near);
}

int
plumb_trace_span_value(struct plumb_trace *trace, const struct plumb_trace_span *span,
                       uint32_t metric, int64_t number)
{
	uint32_t near = 0;
	return add_value(trace, span->track, span->context, span->ends, metric, number, &near);
}

/* ---- the ledger ---- */

void
plumb_trace_ledger(struct plumb_trace *trace, uint32_t process, uint32_t source, uint32_t fate,
                   int64_t count)
{
	if (count)
		plumb_builder_ledger(trace->builder, process, source, fate, PLUMB_NONE, count);
}

void
plumb_trace_count_slice(struct plumb_trace *trace, uint32_t fate, struct plumb_slice detail,
                        int64_t count)
{
	if (count)
		plumb_builder_ledger(trace->builder, PLUMB_NONE, PLUMB_SOURCE_IMPORT, fate,
		                     string_of(trace, detail), count);
}

void
plumb_trace_count(struct plumb_trace *trace, uint32_t fate, const char *detail, int64_t count)
{
	struct plumb_slice text = { detail, detail ? strlen(detail) : 0 };
	plumb_trace_count_slice(trace, fate, text, count);
}

void
plumb_trace_environment(struct plumb_trace *trace, const char *key, struct plumb_slice value)
{
	char text[512];
	if (!value.at || value.bytes >= sizeof text)
		return;
	memcpy(text, value.at, value.bytes);
	text[value.bytes] = '\0';
	plumb_secret_mask_line(text);
	plumb_builder_environment(trace->builder, PLUMB_NONE, key, text);
}

/* ---- the end ---- */

void
plumb_trace_base(struct plumb_trace *trace, int64_t ns)
{
	trace->base_ns = ns;
}

/* Adds the file's base to all of its times, and finds the first and the last. */
static bool
shift_all(struct plumb_trace *trace)
{
	bool sound = true;
	int64_t ns = trace->base_ns;
	for (uint32_t t = 0; t < trace->spans.count; t++) {
		struct plumb_trace_span *spans = plumb_trace_spans_of(&trace->spans.items[t]);
		for (uint32_t i = 0; i < plumb_trace_spans_count(&trace->spans.items[t]); i++)
			sound &= shift_range(&spans[i].start_ns, &spans[i].end_ns, ns);
	}
	for (uint32_t i = 0; i < trace->works.count; i++) {
		struct plumb_trace_span *span = &trace->works.items[i].span;
		sound &= shift_range(&span->start_ns, &span->end_ns, ns);
	}
	for (uint32_t i = 0; i < trace->shapes.count; i++)
		sound &= !__builtin_add_overflow(trace->shapes.items[i].start_ns, ns,
		                                 &trace->shapes.items[i].start_ns);
	for (uint32_t i = 0; i < trace->edges.count; i++)
		sound &= !__builtin_add_overflow(trace->edges.items[i].from_ns, ns,
		                                 &trace->edges.items[i].from_ns) &&
		         !__builtin_add_overflow(trace->edges.items[i].to_ns, ns,
		                                 &trace->edges.items[i].to_ns);
	return sound;
}

int
plumb_trace_end_file(struct plumb_trace *trace, struct plumb_error *error)
{
	if (trace->base_ns && !shift_all(trace))
		return plumb_fail(error, PLUMB_EINPUT, "%s: some times are after the year 2262",
		                  trace->path);
	if (trace->no_memory || plumb_trace_place_all(trace) < 0 || trace->no_memory)
		return plumb_fail_memory(error, "for the events of %s", trace->path);
	return 0;
}

/* Files that have nothing but CPU samples have their sums and their extent from them. */
static void
sum_samples(struct plumb_trace *trace)
{
	uint32_t count = 0;
	const struct plumb_cpu_sample *samples =
		plumb_builder_get_cpu_samples(trace->builder, &count);

	for (uint32_t i = 0; i < count; i++) {
		const struct plumb_cpu_sample *s = &samples[i];
		plumb_trace_value(trace, s->track, s->context, PLUMB_METRIC_CPU_TIME, s->ns);
		plumb_trace_extent(trace, s->track, s->at_ns, s->at_ns);
	}
}

int
plumb_trace_finish(struct plumb_trace *trace, struct plumb_error *error)
{
	if (!trace->taken)
		return plumb_fail(error, PLUMB_EEMPTY, "%s: no event in it has a time",
		                  trace->path);
	if (trace->taken == trace->samples)
		sum_samples(trace);
	if (trace->no_memory || plumb_trace_totals(trace) < 0)
		return plumb_fail_memory(error, NULL);
	struct plumb_run *run = plumb_builder_run(trace->builder);
	if (trace->last_ns > INT64_MIN && trace->first_ns <= trace->last_ns) {
		run->start_ns = trace->first_ns;
		run->wall_ns = (int64_t)((uint64_t)trace->last_ns - (uint64_t)trace->first_ns);
	}
	plumb_trace_ledger(trace, PLUMB_NONE, PLUMB_SOURCE_SPAN, PLUMB_FATE_OVERWRITTEN,
	                   (int64_t)trace->spans_left_out);
	plumb_trace_ledger(trace, PLUMB_NONE, PLUMB_SOURCE_SAMPLE_TIME, PLUMB_FATE_RECEIVED,
	                   (int64_t)trace->samples);
	plumb_trace_ledger(trace, PLUMB_NONE, PLUMB_SOURCE_SAMPLE_TIME, PLUMB_FATE_ATTRIBUTED,
	                   (int64_t)(trace->samples - trace->samples_left_out));
	plumb_trace_ledger(trace, PLUMB_NONE, PLUMB_SOURCE_SAMPLE_TIME, PLUMB_FATE_OVERWRITTEN,
	                   (int64_t)trace->samples_left_out);
	return 0;
}
