/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chrome trace events of whoever wrote them: slices are ranges on their threads, asynchronous ones
 * on tracks of their own. What a process or thread is called says nothing here: what looks like a
 * GPU stays a thread. A slice without an end ends with the file's last event, which is also what
 * viewers show.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "import/chrome/event.h"
#include "import/chrome/kind.h"
#include "import/chrome/pairs.h"
#include "import/chrome/samples.h"

/* Asynchronous slices of a process and category lie on tracks of their own. */
struct group {
	uint32_t process;
	uint32_t category; /* string or PLUMB_NONE */
};

struct slice {
	uint32_t frame;
	int64_t start, end;
};

/* An asynchronous slice with all that lies within it. */
struct tree {
	uint32_t group, first, count; /* in `slices` */
	int64_t start, end;
};

/* A track, and until when it is taken. */
struct lane {
	int64_t end;
	uint32_t number;
};

struct reader {
	struct plumb_chrome chrome;
	struct plumb_chrome_pairs slices_of_threads, asynchronous;
	struct plumb_chrome_samples samples;
	PLUMB_VEC(struct group) groups;
	struct plumb_map group_map;
	PLUMB_VEC(struct slice) slices;
	PLUMB_VEC(struct tree) trees;
	PLUMB_VEC(struct lane) lanes; /* a heap: the one that is free first is first */
	int64_t last;
	bool no_memory;
};

/* ---- events ---- */

static uint32_t
group_of(struct reader *reader, uint32_t process, struct plumb_slice category)
{
	struct plumb_builder *builder = plumb_trace_builder(reader->chrome.trace);
	struct group group = { process,
		               plumb_builder_string(builder, category.at, category.bytes) };
	uint64_t hash = plumb_hash_mix(group.process, group.category);
	struct plumb_map_cursor at;
	for (uint32_t i = plumb_map_first(&reader->group_map, hash, &at); i != PLUMB_MAP_NONE;
	     i = plumb_map_next(&reader->group_map, &at))
		if (reader->groups.items[i].process == group.process &&
		    reader->groups.items[i].category == group.category)
			return i;
	struct group *added = plumb_vec_add(&reader->groups);
	if (!added || plumb_map_add(&reader->group_map, hash, reader->groups.count - 1) < 0) {
		reader->no_memory = true;
		return 0;
	}
	*added = group;
	return reader->groups.count - 1;
}

static void
take_async(struct reader *reader, const struct plumb_chrome_event *event)
{
	bool old = event->phase == 'S' || event->phase == 'F';
	bool begins = event->phase == 'b' || event->phase == 'S';
	uint32_t process = plumb_chrome_process(&reader->chrome, event);
	uint64_t key = plumb_hash_mix(process, (uint64_t)old);
	key = plumb_hash_mix(key, plumb_hash_bytes(event->category.at ? event->category.at : "",
	                                           event->category.bytes));
	key = plumb_hash_mix(key, (uint64_t)plumb_chrome_number(event->id, event->id_text));
	if (old && event->name.at)
		key = plumb_hash_mix(key, plumb_hash_bytes(event->name.at, event->name.bytes));
	plumb_chrome_edge(
		&reader->asynchronous,
		(struct plumb_chrome_edge){
			.key = key,
			.ns = event->start,
			.frame = begins ? plumb_trace_frame(reader->chrome.trace, PLUMB_FRAME_RANGE,
	                                                    event->name)
	                                : PLUMB_NONE,
			.place = group_of(reader, process, event->category),
			.begins = begins,
		});
}

static void
take_edge(struct reader *reader, const struct plumb_chrome_event *event)
{
	bool begins = event->phase == 'B';
	uint32_t track = plumb_chrome_thread(&reader->chrome, event);
	plumb_chrome_edge(
		&reader->slices_of_threads,
		(struct plumb_chrome_edge){
			.key = track,
			.ns = event->start,
			.frame = begins ? plumb_trace_frame(reader->chrome.trace, PLUMB_FRAME_RANGE,
	                                                    event->name)
	                                : PLUMB_NONE,
			.place = track,
			.begins = begins,
		});
}

/* What an event is that is not shown. */
static const char *
kind_of(char phase)
{
	static const struct {
		const char *phases, *kind;
	} kinds[] = {
		{ "iIRnTp", "instants" },         { "C", "counters" },
		{ "stf", "flow events" },         { "OND", "objects" },
		{ "vV", "memory dumps" },         { "P", "samples" },
		{ "c", "clock marks" },           { "()", "contexts" },
		{ "=", "links between objects" },
	};
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (phase && strchr(kinds[i].phases, phase))
			return kinds[i].kind;
	return "events of an unknown kind";
}

static void
take_event(struct plumb_chrome *chrome, const struct plumb_chrome_event *event)
{
	struct reader *reader = chrome->own;
	char phase = event->phase;
	int64_t end = plumb_chrome_end(event);
	bool slice = phase && strchr("XBEbeSF", phase);
	if (!phase && !event->name.at)
		return; /* {}, so that no comma is the last */
	if (event->start != PLUMB_UNKNOWN && event->start > reader->last)
		reader->last = event->start;
	if (end != PLUMB_UNKNOWN && end > reader->last)
		reader->last = end;
	if (plumb_chrome_samples_take(&reader->samples, chrome, event))
		return;
	if (!slice)
		plumb_trace_count(chrome->trace, PLUMB_FATE_UNUSED, kind_of(phase), 1);
	else if (event->start == PLUMB_UNKNOWN)
		plumb_trace_count(chrome->trace, PLUMB_FATE_BACKWARDS, NULL, 1);
	else if (phase == 'X')
		plumb_trace_host(chrome->trace, plumb_chrome_thread(chrome, event),
		                 plumb_trace_frame(chrome->trace, PLUMB_FRAME_RANGE, event->name),
		                 event->start, end, 0);
	else if (phase == 'B' || phase == 'E')
		take_edge(reader, event);
	else
		take_async(reader, event);
}

static void
begin_event(struct plumb_chrome *chrome)
{
	plumb_chrome_samples_begin(&((struct reader *)chrome->own)->samples);
}

/* ---- pairs ---- */

static void
close_slice(void *own, const struct plumb_chrome_edge *begin, int64_t end, uint32_t depth)
{
	struct reader *reader = own;
	(void)depth;
	plumb_trace_host(reader->chrome.trace, begin->place, begin->frame, begin->ns, end, 0);
}

/* The outermost makes a tree of those within it, which came before. */
static void
close_asynchronous(void *own, const struct plumb_chrome_edge *begin, int64_t end, uint32_t depth)
{
	struct reader *reader = own;
	uint32_t count = reader->trees.count;
	const struct tree *before = count ? &reader->trees.items[count - 1] : NULL;
	uint32_t first = before ? before->first + before->count : 0;
	struct slice *slice = plumb_vec_add(&reader->slices);
	if (slice)
		*slice = (struct slice){ begin->frame, begin->ns, end };
	reader->no_memory |= !slice;
	if (depth)
		return;
	struct tree *tree = plumb_vec_add(&reader->trees);
	if (tree)
		*tree = (struct tree){ begin->place, first, reader->slices.count - first, begin->ns,
			               end };
	reader->no_memory |= !tree;
}

/* ---- tracks of asynchronous slices ---- */

static int
by_group(const void *x, const void *y)
{
	const struct tree *a = x, *b = y;
	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return (a->first > b->first) - (a->first < b->first);
}

/* The first lane's end has become END: it sinks. */
static void
sink_lane(struct reader *reader, int64_t end)
{
	struct lane *lanes = reader->lanes.items, moved = lanes[0];
	uint32_t at = 0, count = reader->lanes.count;
	moved.end = end;
	for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
		if (child + 1 < count && lanes[child + 1].end < lanes[child].end)
			child++;
		if (lanes[child].end >= moved.end)
			break;
		lanes[at] = lanes[child];
	}
	lanes[at] = moved;
}

/* A lane that is free at START, and is taken until END. */
static uint32_t
lane_of(struct reader *reader, int64_t start, int64_t end)
{
	if (!reader->lanes.count || reader->lanes.items[0].end > start) {
		struct lane *added = plumb_vec_add(&reader->lanes);
		if (!added) {
			reader->no_memory = true;
			return 0;
		}
		/* It is free since ever, and so the first of the heap. */
		uint32_t number = reader->lanes.count - 1;
		for (uint32_t at = number; at; at = (at - 1) / 2)
			reader->lanes.items[at] = reader->lanes.items[(at - 1) / 2];
		reader->lanes.items[0] = (struct lane){ INT64_MIN, number };
	}
	uint32_t number = reader->lanes.items[0].number;
	sink_lane(reader, end);
	return number;
}

static uint32_t
track_of(struct reader *reader, const struct group *group, uint32_t lane)
{
	struct plumb_trace *trace = reader->chrome.trace;
	struct plumb_builder *builder = plumb_trace_builder(trace);
	const char *category = plumb_builder_get_text(builder, group->category);
	char text[160];
	uint64_t hash = plumb_hash_mix(plumb_hash_mix(group->category, lane), 0x6173796e63);
	uint32_t track = plumb_trace_thread(trace, group->process, (int64_t)(hash >> 1));
	if (track == PLUMB_NONE)
		return track;
	snprintf(text, sizeof text, "async%s%s", category ? " " : "", category ? category : "");
	uint32_t name = plumb_builder_text(builder, text);
	plumb_builder_get_track(builder, track)->tid = PLUMB_UNKNOWN;
	plumb_builder_get_track(builder, track)->name = name;
	return track;
}

static void
place_trees(struct reader *reader)
{
	if (reader->trees.count)
		qsort(reader->trees.items, reader->trees.count, sizeof *reader->trees.items,
		      by_group);
	for (uint32_t i = 0; i < reader->trees.count && !reader->no_memory; i++) {
		const struct tree *tree = &reader->trees.items[i];
		if (!i || tree[-1].group != tree->group)
			reader->lanes.count = 0;
		uint32_t lane = lane_of(reader, tree->start, tree->end);
		uint32_t track = track_of(reader, &reader->groups.items[tree->group], lane);
		for (uint32_t k = 0; k < tree->count; k++) {
			const struct slice *slice = &reader->slices.items[tree->first + k];
			plumb_trace_host(reader->chrome.trace, track, slice->frame, slice->start,
			                 slice->end, 0);
		}
	}
}

/* ---- the whole ---- */

static int
read_all(struct reader *reader, struct plumb_import_file *file, struct plumb_error *error)
{
	int code = plumb_chrome_read(&reader->chrome, file, error);
	if (code)
		return code;
	plumb_chrome_pair(&reader->slices_of_threads, reader->chrome.trace, reader->last,
	                  close_slice, reader);
	plumb_chrome_pair(&reader->asynchronous, reader->chrome.trace, reader->last,
	                  close_asynchronous, reader);
	place_trees(reader);
	plumb_chrome_samples_end(&reader->samples);
	plumb_chrome_give_names(&reader->chrome);
	if (reader->no_memory || reader->slices_of_threads.no_memory ||
	    reader->asynchronous.no_memory || reader->samples.no_memory)
		return plumb_fail_memory(error, "to read %s", file->path);
	return 0;
}

static int
read_chrome(struct plumb_import_file *file, struct plumb_trace *trace, struct plumb_error *error)
{
	static const struct plumb_pull_field argument_fields[] = {
		PLUMB_PULL_FIELD("data", CALL, .read = plumb_chrome_samples_data),
		{ 0 },
	};
	static const struct plumb_pull_part parts[] = {
		{ "stackFrames", plumb_chrome_samples_frames },
		{ "samples", plumb_chrome_samples_list },
		{ 0 },
	};
	static const struct plumb_chrome_dialect dialect = {
		.begin = begin_event,
		.arguments = argument_fields,
		.take = take_event,
		.parts = parts,
		.unclosed = true,
	};
	struct reader reader = { .chrome = { .trace = trace, .dialect = &dialect },
		                 .samples = { .shared = { .trace = trace } },
		                 .last = INT64_MIN };
	reader.chrome.own = &reader;
	reader.chrome.samples = &reader.samples;
	int code = read_all(&reader, file, error);
	plumb_chrome_free(&reader.chrome);
	plumb_chrome_samples_free(&reader.samples);
	plumb_vec_free(&reader.slices_of_threads.edges);
	plumb_vec_free(&reader.asynchronous.edges);
	plumb_vec_free(&reader.groups);
	plumb_map_free(&reader.group_map);
	plumb_vec_free(&reader.slices);
	plumb_vec_free(&reader.trees);
	plumb_vec_free(&reader.lanes);
	return code;
}

static int
probe_chrome(const struct plumb_import_file *file)
{
	if (!plumb_chrome_is_json(file))
		return 0;
	/* Samples and their frames may stand before the events. */
	return strstr(file->head, "\"traceEvents\"") || strstr(file->head, "\"stackFrames\"") ||
	                       (strstr(file->head, "\"ph\"") && strstr(file->head, "\"pid\"")) ||
	                       (strstr(file->head, "\"sf\"") && strstr(file->head, "\"tid\""))
	               ? 20
	               : 0;
}

const struct plumb_format plumb_format_chrome = {
	.name = "chrome",
	.title = "Chrome trace events",
	.events = PLUMB_CHROME_OTHER,
	.probe = probe_chrome,
	.read = read_chrome,
};
