/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rocpd, what rocprofv3 and rocprof-sys of ROCm 7 write (schemas 3 and 4). The tables of a process
 * have the UUID of its run behind their names, and a database may hold several; the plain names are
 * views, which are not used. What ran names its process, thread, agent and queue itself (schema 3)
 * or by a track (4). An event has what all kinds share: its category, and as stack_id the number
 * that a call has in common with the work that it started.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "import/copies.h"
#include "import/import.h"
#include "import/sequence.h"
#include "import/sqlite.h"

#define RUNS_MAX 256
#define OWNERS_MAX 4096 /* processes and agents are searched one by one */
#define NAME_BYTES 150
#define COLUMNS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* What a text of rocpd_string was made into. */
enum use { AS_CALL, AS_NATIVE, AS_RANGE, AS_COPY };

enum category { CALL, RANGE, PYTHON, NATIVE, DRIVER };

struct agent {
	int64_t id, ordinal;
	int64_t multiprocessors, warps, clock_mhz;
	uint32_t name;
	bool gpu;
};

struct symbol { /* a kernel */
	int64_t id, registers;
	uint32_t frame;
};

struct owner { /* a process */
	int64_t id;
	uint32_t process;
};

/* Where something ran. */
struct place {
	int64_t process, thread, agent, queue, stream;
};

struct event {
	int64_t number; /* shared by a call and its work; 0: none */
	enum category category;
	struct plumb_slice category_name;
	char message[1000]; /* of a marker; empty: none */
};

struct reader {
	struct plumb_sqlite sqlite;
	struct plumb_trace *trace;
	struct plumb_builder *builder;
	/* Of one run. */
	char suffix[100];
	int64_t run;
	struct plumb_sqlite_texts texts, categories;
	bool has_categories;
	PLUMB_VEC(struct owner) owners;
	PLUMB_VEC(struct agent) agents;
	PLUMB_VEC(struct symbol) symbols;
	struct plumb_map symbol_map;
	struct plumb_sequences sequences;
	struct plumb_rows events, tracks, threads, kernels;
};

static void
out_of_memory(struct reader *reader)
{
	if (!reader->sqlite.code)
		reader->sqlite.code =
			plumb_fail_memory(reader->sqlite.error, "to read %s", reader->sqlite.path);
}

/* BASE with the run's suffix. */
static const char *
table_name(const struct reader *reader, const char *base, char name[NAME_BYTES])
{
	snprintf(name, NAME_BYTES, "%s%s", base, reader->suffix);
	return name;
}

static void
open_rows(struct reader *reader, struct plumb_rows *rows, const char *base,
          const char *const *columns)
{
	char name[NAME_BYTES];
	plumb_rows_open(rows, &reader->sqlite, table_name(reader, base, name), columns);
}

static void
open_rows_by(struct reader *reader, struct plumb_rows *rows, const char *base,
             const char *const *columns)
{
	char name[NAME_BYTES];
	plumb_rows_open_by(rows, &reader->sqlite, table_name(reader, base, name), "id", columns);
}

/* ---- processes ---- */

/* A launcher's number in the process's environment, as plumb's own recordings take it. */
static int64_t
number_in(struct plumb_slice json, const char *const *names)
{
	struct plumb_pull pull;
	struct plumb_slice key;
	int64_t number = PLUMB_UNKNOWN, best = INT64_MAX;
	if (!json.bytes || plumb_pull_open_text(&pull, json.at, json.bytes, NULL))
		return number;
	PLUMB_PULL_WHOLE(&pull)
	{
		number = PLUMB_UNKNOWN;
		best = INT64_MAX;
		bool more = plumb_pull_enter(&pull, '{');
		while (more && plumb_pull_member(&pull, &key)) {
			int64_t at = 0, found = PLUMB_UNKNOWN;
			while (names[at] && !plumb_slice_is(key, names[at]))
				at++;
			if (!names[at] || at >= best) {
				plumb_pull_skip(&pull);
			} else if (plumb_pull_integer(&pull, &found)) {
				number = found;
				best = at;
			}
		}
	}
	plumb_pull_close(&pull);
	return number;
}

static uint32_t
host_of(struct reader *reader, int64_t node)
{
	struct plumb_rows rows;
	uint32_t host = PLUMB_NONE;
	open_rows_by(reader, &rows, "rocpd_info_node", COLUMNS("hostname"));
	if (plumb_rows_find(&rows, node)) {
		struct plumb_slice name = plumb_rows_text(&rows, 0);
		if (name.bytes)
			host = plumb_builder_string(reader->builder, name.at, name.bytes);
	}
	plumb_rows_close(&rows);
	return host;
}

/* The process under number ID of this run; PID where the file has no more about it. */
static uint32_t
add_owner(struct reader *reader, int64_t id, int64_t pid)
{
	/* Runs of several nodes may have the same pid. */
	int64_t key = pid == PLUMB_UNKNOWN ? pid : (pid & UINT32_MAX) | reader->run << 33;
	uint32_t process = plumb_trace_process(reader->trace, key);
	if (process == PLUMB_NONE)
		return process;
	plumb_builder_get_process(reader->builder, process)->pid = pid;
	struct owner *owner =
		reader->owners.count < OWNERS_MAX ? plumb_vec_add(&reader->owners) : NULL;
	if (owner)
		*owner = (struct owner){ id, process };
	return process;
}

static uint32_t
process_of(struct reader *reader, int64_t id)
{
	for (uint32_t i = 0; i < reader->owners.count; i++)
		if (reader->owners.items[i].id == id)
			return reader->owners.items[i].process;
	return add_owner(reader, id, id);
}

static void
load_processes(struct reader *reader)
{
	enum { ID, PID, PARENT, NODE, COMMAND, ENVIRONMENT };
	static const char *const ranks[] = { "RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID",
		                             "PMI_RANK", NULL };
	static const char *const local_ranks[] = { "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
		                                   "SLURM_LOCALID", "MPI_LOCALRANKID", NULL };
	struct plumb_rows rows;
	open_rows(reader, &rows, "rocpd_info_process",
	          COLUMNS("id", "pid", "ppid", "nid", "command", "environment"));
	while (plumb_rows_next(&rows) && reader->owners.count < OWNERS_MAX) {
		uint32_t id = add_owner(reader, plumb_rows_integer(&rows, ID),
		                        plumb_rows_integer(&rows, PID));
		uint32_t host = host_of(reader, plumb_rows_integer(&rows, NODE));
		struct plumb_slice command = plumb_rows_text(&rows, COMMAND);
		struct plumb_slice environment;
		if (id == PLUMB_NONE)
			break;
		uint32_t text = command.bytes ? plumb_builder_command(reader->builder, command.at,
		                                                      command.bytes)
		                              : PLUMB_NONE;
		environment = plumb_rows_text(&rows, ENVIRONMENT);
		struct plumb_process *process = plumb_builder_get_process(reader->builder, id);
		int64_t rank = number_in(environment, ranks);
		process->ppid = plumb_rows_integer(&rows, PARENT);
		process->host = host;
		process->command = text;
		if (rank != PLUMB_UNKNOWN)
			process->rank = rank;
		process->local_rank = number_in(environment, local_ranks);
	}
	plumb_rows_close(&rows);
}

/* ---- where ---- */

static uint32_t
thread_of(struct reader *reader, const struct place *place)
{
	uint32_t process = process_of(reader, place->process);
	uint32_t id = plumb_trace_has_thread(reader->trace, process, place->thread);
	if (id != PLUMB_NONE)
		return id;
	id = plumb_trace_thread(reader->trace, process, place->thread);
	if (id == PLUMB_NONE || !plumb_rows_find(&reader->threads, place->thread))
		return id;
	struct plumb_slice name = plumb_rows_text(&reader->threads, 1);
	uint32_t text = name.bytes ? plumb_builder_string(reader->builder, name.at, name.bytes)
	                           : PLUMB_NONE;
	struct plumb_track *track = plumb_builder_get_track(reader->builder, id);
	track->tid = plumb_rows_integer(&reader->threads, 0);
	track->name = text;
	return id;
}

static void
load_agents(struct reader *reader)
{
	enum { ID, TYPE, TYPE_INDEX, LOGICAL_INDEX, ABSOLUTE_INDEX, PRODUCT, MODEL, NAME, MORE };
	struct plumb_rows rows;
	open_rows(reader, &rows, "rocpd_info_agent",
	          COLUMNS("id", "type", "type_index", "logical_index", "absolute_index",
	                  "product_name", "model_name", "name", "extdata"));
	while (plumb_rows_next(&rows)) {
		struct agent *agent =
			reader->agents.count < OWNERS_MAX ? plumb_vec_add(&reader->agents) : NULL;
		if (!agent)
			break;
		struct plumb_slice type = plumb_rows_text(&rows, TYPE), name = { NULL, 0 };
		agent->gpu = type.at && plumb_slice_is(type, "GPU");
		agent->id = agent->ordinal = plumb_rows_integer(&rows, ID);
		for (int i = ABSOLUTE_INDEX; i >= TYPE_INDEX; i--)
			if (plumb_rows_integer(&rows, i) != PLUMB_UNKNOWN)
				agent->ordinal = plumb_rows_integer(&rows, i);
		for (int i = PRODUCT; i <= NAME && !name.bytes; i++)
			name = plumb_rows_text(&rows, i);
		agent->name = name.bytes
		                      ? plumb_builder_string(reader->builder, name.at, name.bytes)
		                      : PLUMB_NONE;
		/* rocprofv3 writes what it knows about a GPU as JSON text. */
		struct plumb_slice json = plumb_rows_text(&rows, MORE);
		agent->multiprocessors = number_in(json, COLUMNS("cu_count"));
		agent->warps = number_in(json, COLUMNS("max_waves_per_cu"));
		agent->clock_mhz = number_in(json, COLUMNS("max_engine_clk_fcompute"));
	}
	plumb_rows_close(&rows);
}

static const struct agent *
agent_of(const struct reader *reader, int64_t id)
{
	for (uint32_t i = 0; i < reader->agents.count; i++)
		if (reader->agents.items[i].id == id)
			return &reader->agents.items[i];
	return NULL;
}

static uint32_t
device_of(struct reader *reader, uint32_t process, int64_t agent_id)
{
	const struct agent *agent = agent_of(reader, agent_id);
	int64_t ordinal = agent ? agent->ordinal : agent_id;
	uint32_t id = plumb_trace_has_device(reader->trace, process, ordinal);
	if (id == PLUMB_NONE) {
		id = plumb_trace_device(reader->trace, process, ordinal, NULL);
		if (id != PLUMB_NONE && agent) {
			struct plumb_device *device = plumb_builder_get_device(reader->builder, id);
			int64_t mhz = agent->clock_mhz;
			device->name = agent->name;
			device->multiprocessors = agent->multiprocessors;
			device->warps_per_multiprocessor = agent->warps;
			device->clock_khz = mhz > 0 && mhz < 1000000 ? mhz * 1000 : PLUMB_UNKNOWN;
		}
	}
	return id;
}

static uint32_t
stream_of(struct reader *reader, const struct place *place)
{
	uint32_t process = process_of(reader, place->process);
	uint32_t id = device_of(reader, process, place->agent);
	return plumb_trace_stream(reader->trace, process, id, PLUMB_UNKNOWN,
	                          place->stream != PLUMB_UNKNOWN ? place->stream : place->queue);
}

/* The first columns of all tables of things that ran. */
enum { START, END, EVENT, TRACK, PROCESS, THREAD, AGENT, QUEUE, STREAM, MORE };
#define RUN_COLUMNS                                                                                \
	"start", "end", "event_id", "track_id", "pid", "tid", "agent_id", "queue_id", "stream_id"

static struct place
place_of_track(struct reader *reader, int64_t track)
{
	struct plumb_rows *rows = &reader->tracks;
	bool found = plumb_rows_find(rows, track);
	return (struct place){
		found ? plumb_rows_integer(rows, 0) : PLUMB_UNKNOWN,
		found ? plumb_rows_integer(rows, 1) : PLUMB_UNKNOWN,
		found ? plumb_rows_integer(rows, 2) : PLUMB_UNKNOWN,
		found ? plumb_rows_integer(rows, 3) : PLUMB_UNKNOWN,
		found ? plumb_rows_integer(rows, 4) : PLUMB_UNKNOWN,
	};
}

static struct place
place_of(struct reader *reader, const struct plumb_rows *rows)
{
	if (plumb_rows_has(rows, TRACK))
		return place_of_track(reader, plumb_rows_integer(rows, TRACK));
	return (struct place){
		plumb_rows_integer(rows, PROCESS), plumb_rows_integer(rows, THREAD),
		plumb_rows_integer(rows, AGENT),   plumb_rows_integer(rows, QUEUE),
		plumb_rows_integer(rows, STREAM),
	};
}

/* ---- events ---- */

static bool
contains_word(struct plumb_slice text, const char *word)
{
	return text.at && memmem(text.at, text.bytes, word, strlen(word));
}

/* By the category, else by the name of the call. */
static enum category
category_of(struct plumb_slice category, struct plumb_slice name)
{
	static const char *const runtimes[] = { "hip", "hsa_", "rccl", "nccl", "roc" };
	if (contains_word(category, "MARKER") || contains_word(category, "marker") ||
	    contains_word(category, "roctx") || contains_word(category, "user"))
		return RANGE;
	if (contains_word(category, "KFD"))
		return DRIVER;
	if (contains_word(category, "python"))
		return PYTHON;
	if (contains_word(category, "_API") || contains_word(category, "_api"))
		return CALL;
	for (size_t i = 0; i < sizeof runtimes / sizeof *runtimes; i++)
		if (name.at && plumb_slice_begins(name, runtimes[i]))
			return CALL;
	return category.bytes ? NATIVE : RANGE;
}

/* {"message": "…"} */
static void
read_message(struct plumb_slice json, char *message, size_t size)
{
	struct plumb_pull pull;
	struct plumb_slice key, text;
	*message = '\0';
	if (json.bytes < 4 || plumb_pull_open_text(&pull, json.at, json.bytes, NULL))
		return;
	PLUMB_PULL_WHOLE(&pull)
	{
		bool more = plumb_pull_enter(&pull, '{');
		while (more && plumb_pull_member(&pull, &key)) {
			if (!plumb_slice_is(key, "message"))
				plumb_pull_skip(&pull);
			else if (plumb_pull_text(&pull, &text))
				snprintf(message, size, "%.*s",
				         (int)(text.bytes < size ? text.bytes : size - 1), text.at);
		}
	}
	plumb_pull_close(&pull);
}

static void
read_event(struct reader *reader, int64_t id, struct plumb_slice name, struct event *event)
{
	struct plumb_rows *rows = &reader->events;
	struct plumb_slice category = { NULL, 0 };
	event->number = 0;
	*event->message = '\0';
	bool found = plumb_rows_find(rows, id);
	if (found) {
		int64_t number = plumb_rows_integer(rows, 0);
		event->number = number > 0 ? number : 0;
		category = plumb_sqlite_texts_slice(reader->has_categories ? &reader->categories
		                                                           : &reader->texts,
		                                    plumb_rows_integer(rows, 1));
	}
	event->category_name = category;
	event->category = category_of(category, name);
	if (found && event->category == RANGE)
		read_message(plumb_rows_text(rows, 2), event->message, sizeof event->message);
}

/* ---- regions and markers ---- */

static uint32_t
frame_of(void *own, struct plumb_slice name, unsigned use)
{
	struct reader *reader = own;
	switch (use) {
	case AS_CALL:
		return plumb_trace_frame(reader->trace, PLUMB_FRAME_GPU_API, name);
	case AS_COPY:
		return plumb_import_copy(reader->trace, name);
	case AS_NATIVE:
		return plumb_trace_frame(reader->trace, PLUMB_FRAME_NATIVE, name);
	case AS_RANGE:
	default:
		return plumb_import_range(reader->trace, name);
	}
}

static uint32_t
frame_of_event(struct reader *reader, const struct event *event, int64_t name)
{
	switch (event->category) {
	case CALL:
		return plumb_sqlite_texts_frame(&reader->texts, frame_of, reader, name, AS_CALL);
	case PYTHON:
		return plumb_trace_frame(reader->trace, PLUMB_FRAME_PYTHON,
		                         plumb_sqlite_texts_slice(&reader->texts, name));
	case NATIVE:
		return plumb_sqlite_texts_frame(&reader->texts, frame_of, reader, name, AS_NATIVE);
	default:
		break;
	}
	if (*event->message)
		return plumb_import_range(
			reader->trace,
			(struct plumb_slice){ event->message, strlen(event->message) });
	return plumb_sqlite_texts_frame(&reader->texts, frame_of, reader, name, AS_RANGE);
}

static void
read_regions(struct reader *reader)
{
	enum { NAME = MORE };
	struct plumb_rows rows;
	struct event event;
	open_rows(reader, &rows, "rocpd_region", COLUMNS(RUN_COLUMNS, "name_id"));
	while (plumb_rows_next(&rows)) {
		struct place place = place_of(reader, &rows);
		int64_t name = plumb_rows_integer(&rows, NAME);
		read_event(reader, plumb_rows_integer(&rows, EVENT),
		           plumb_sqlite_texts_slice(&reader->texts, name), &event);
		if (event.category == DRIVER) { /* on no thread of the program */
			plumb_trace_count_slice(reader->trace, PLUMB_FATE_UNUSED,
			                        event.category_name, 1);
			continue;
		}
		uint32_t track = thread_of(reader, &place);
		int64_t start = plumb_rows_integer(&rows, START);
		struct plumb_slice message = { event.message, strlen(event.message) };
		plumb_trace_host(reader->trace, track, frame_of_event(reader, &event, name), start,
		                 plumb_rows_integer(&rows, END),
		                 event.category == CALL ? (uint64_t)event.number : 0);
		if (plumb_sequences_note(&reader->sequences, process_of(reader, place.process),
		                         track, start, message) < 0)
			out_of_memory(reader);
	}
	plumb_rows_close(&rows);
	plumb_sequences_link(&reader->sequences, reader->trace);
}

/* Marks; and calls that took no time, and samples of other tools, which are not used. */
static void
read_samples(struct reader *reader)
{
	enum { TIME, EVENT_ID, TRACK_ID, NAME };
	struct plumb_rows rows;
	struct event event;
	open_rows(reader, &rows, "rocpd_sample",
	          COLUMNS("timestamp", "event_id", "track_id", "name_id"));
	while (plumb_rows_next(&rows)) {
		int64_t time = plumb_rows_integer(&rows, TIME);
		read_event(reader, plumb_rows_integer(&rows, EVENT_ID),
		           (struct plumb_slice){ NULL, 0 }, &event);
		if (event.category != RANGE || !event.category_name.bytes) {
			plumb_trace_count(reader->trace, PLUMB_FATE_UNUSED, "rocpd_sample", 1);
			continue;
		}
		struct place place = place_of_track(reader, plumb_rows_integer(&rows, TRACK_ID));
		plumb_trace_host(reader->trace, thread_of(reader, &place),
		                 frame_of_event(reader, &event, plumb_rows_integer(&rows, NAME)),
		                 time, time, 0);
	}
	plumb_rows_close(&rows);
}

/* ---- GPU work ---- */

/* "f(int) [clone .kd]", "_Z1fi.kd": without what says that it is a kernel's descriptor. */
static struct plumb_slice
without_descriptor(struct plumb_slice name)
{
	static const char *const ends[] = { " [clone .kd]", ".kd" };
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		size_t bytes = strlen(ends[i]);
		if (name.bytes > bytes && !memcmp(name.at + name.bytes - bytes, ends[i], bytes))
			name.bytes -= bytes;
	}
	return name;
}

/* NULL: memory is out. */
static const struct symbol *
symbol_of(struct reader *reader, int64_t id)
{
	enum { DISPLAY, PLAIN, REGISTERS };
	uint64_t hash = plumb_hash_mix((uint64_t)id, 0);
	struct plumb_map_cursor at;
	struct plumb_slice name = { NULL, 0 };
	for (uint32_t i = plumb_map_first(&reader->symbol_map, hash, &at); i != PLUMB_MAP_NONE;
	     i = plumb_map_next(&reader->symbol_map, &at))
		if (reader->symbols.items[i].id == id)
			return &reader->symbols.items[i];
	struct symbol *symbol = plumb_vec_add(&reader->symbols);
	if (!symbol || plumb_map_add(&reader->symbol_map, hash, reader->symbols.count - 1) < 0) {
		out_of_memory(reader);
		return NULL;
	}
	*symbol = (struct symbol){ id, PLUMB_UNKNOWN, PLUMB_NONE };
	if (plumb_rows_find(&reader->kernels, id)) {
		name = plumb_rows_text(&reader->kernels, DISPLAY);
		if (!name.bytes)
			name = plumb_rows_text(&reader->kernels, PLAIN);
		symbol->registers = plumb_rows_integer(&reader->kernels, REGISTERS);
	}
	if (!name.bytes)
		name = (struct plumb_slice){ "?", 1 };
	symbol->frame =
		plumb_trace_frame(reader->trace, PLUMB_FRAME_KERNEL, without_descriptor(name));
	return symbol;
}

static struct plumb_trace_work
work_of(struct reader *reader, const struct plumb_rows *rows, const struct place *place)
{
	int64_t number = plumb_rows_find(&reader->events, plumb_rows_integer(rows, EVENT))
	                         ? plumb_rows_integer(&reader->events, 0)
	                         : 0;
	return (struct plumb_trace_work){
		.track = stream_of(reader, place),
		.start_ns = plumb_rows_integer(rows, START),
		.end_ns = plumb_rows_integer(rows, END),
		.correlation = number > 0 ? (uint64_t)number : 0,
		.bytes = PLUMB_UNKNOWN,
		.collective = PLUMB_NONE,
		.placed = PLUMB_NONE,
		.here = true,
	};
}

static void
read_dispatches(struct reader *reader)
{
	enum { KERNEL = MORE, SHARED, GRID, BLOCK = GRID + 3 };
	struct plumb_rows rows;
	open_rows(reader, &rows, "rocpd_kernel_dispatch",
	          COLUMNS(RUN_COLUMNS, "kernel_id", "group_segment_size", "grid_size_x",
	                  "grid_size_y", "grid_size_z", "workgroup_size_x", "workgroup_size_y",
	                  "workgroup_size_z"));
	while (plumb_rows_next(&rows)) {
		struct place place = place_of(reader, &rows);
		struct plumb_trace_work work = work_of(reader, &rows, &place);
		struct plumb_trace_launch launch = plumb_trace_no_launch;
		const struct symbol *symbol = symbol_of(reader, plumb_rows_integer(&rows, KERNEL));
		if (!symbol)
			break;
		for (int i = 0; i < 3; i++) { /* a grid is counted in work-items */
			int64_t grid = plumb_rows_integer(&rows, GRID + i);
			int64_t block = plumb_rows_integer(&rows, BLOCK + i);
			launch.block[i] = block;
			launch.grid[i] = grid > 0 && block > 0 ? grid / block + (grid % block != 0)
			                                       : PLUMB_UNKNOWN;
		}
		launch.shared = plumb_rows_integer(&rows, SHARED);
		launch.registers = symbol->registers;
		work.frame = symbol->frame;
		work.launch = launch.block[0] == PLUMB_UNKNOWN ? NULL : &launch;
		plumb_trace_work(reader->trace, &work);
	}
	plumb_rows_close(&rows);
}

static void
read_copies(struct reader *reader)
{
	enum { NAME = MORE, SIZE, FROM, TO };
	struct plumb_rows rows;
	open_rows(reader, &rows, "rocpd_memory_copy",
	          COLUMNS(RUN_COLUMNS, "name_id", "size", "src_agent_id", "dst_agent_id"));
	while (plumb_rows_next(&rows)) {
		struct place place = place_of(reader, &rows);
		int64_t from_id = plumb_rows_integer(&rows, FROM);
		int64_t to_id = plumb_rows_integer(&rows, TO);
		const struct agent *from = agent_of(reader, from_id), *to = agent_of(reader, to_id);
		bool peers = from && to && from->gpu && to->gpu && from != to;
		if (from && from->gpu)
			place.agent = from_id;
		else if ((to && to->gpu) || place.agent == PLUMB_UNKNOWN)
			place.agent = to_id;
		struct plumb_trace_work work = work_of(reader, &rows, &place);
		work.frame =
			peers ? plumb_trace_copy_frame(reader->trace, PLUMB_MEMORY_DEVICE,
		                                       PLUMB_MEMORY_PEER_DEVICE)
			      : plumb_sqlite_texts_frame(&reader->texts, frame_of, reader,
		                                         plumb_rows_integer(&rows, NAME), AS_COPY);
		work.bytes = plumb_rows_integer(&rows, SIZE);
		if (peers) {
			uint32_t process = process_of(reader, place.process);
			work.ends = plumb_trace_ends(device_of(reader, process, from_id),
			                             device_of(reader, process, to_id));
		}
		plumb_trace_work(reader->trace, &work);
	}
	plumb_rows_close(&rows);
}

/* ---- the file ---- */

static void
read_facts(struct reader *reader)
{
	struct plumb_rows rows;
	open_rows(reader, &rows, "rocpd_metadata", COLUMNS("tag", "value"));
	while (plumb_rows_next(&rows)) {
		struct plumb_slice tag = plumb_rows_text(&rows, 0);
		if (tag.at && plumb_slice_is(tag, "schema_version"))
			plumb_trace_environment(reader->trace, "rocpd.schema",
			                        plumb_rows_text(&rows, 1));
	}
	plumb_rows_close(&rows);
}

static void
read_run(struct reader *reader)
{
	struct plumb_sqlite *sqlite = &reader->sqlite;
	char name[NAME_BYTES];
	plumb_sqlite_texts_load(&reader->texts, sqlite, table_name(reader, "rocpd_string", name),
	                        "id", "string");
	reader->has_categories =
		plumb_sqlite_has(sqlite, table_name(reader, "rocpd_info_category", name));
	plumb_sqlite_texts_load(&reader->categories, sqlite, name, "id", "name");
	open_rows_by(reader, &reader->events, "rocpd_event",
	             COLUMNS("stack_id", "category_id", "extdata"));
	open_rows_by(reader, &reader->tracks, "rocpd_track",
	             COLUMNS("pid", "tid", "agent_id", "queue_id", "stream_id"));
	open_rows_by(reader, &reader->threads, "rocpd_info_thread", COLUMNS("tid", "name"));
	open_rows_by(reader, &reader->kernels, "rocpd_info_kernel_symbol",
	             COLUMNS("display_name", "kernel_name", "arch_vgpr_count"));
	read_facts(reader);
	load_processes(reader);
	load_agents(reader);
	read_regions(reader);
	read_samples(reader);
	read_dispatches(reader);
	read_copies(reader);
	plumb_sqlite_count_unused(
		sqlite, reader->trace, reader->suffix, COLUMNS("start", "timestamp", "pmc_id"),
		COLUMNS("rocpd_region", "rocpd_sample", "rocpd_kernel_dispatch",
	                "rocpd_memory_copy", "rocpd_info_process", "rocpd_info_thread"));
}

static void
end_run(struct reader *reader)
{
	plumb_rows_close(&reader->events);
	plumb_rows_close(&reader->tracks);
	plumb_rows_close(&reader->threads);
	plumb_rows_close(&reader->kernels);
	plumb_sqlite_texts_free(&reader->texts);
	plumb_sqlite_texts_free(&reader->categories);
	plumb_vec_free(&reader->owners);
	plumb_vec_free(&reader->agents);
	plumb_vec_free(&reader->symbols);
	plumb_map_free(&reader->symbol_map);
}

/* Every run has strings, and with them its suffix. */
static void
read_all(struct reader *reader)
{
	for (uint32_t i = 0;
	     i < RUNS_MAX && plumb_sqlite_suffix(&reader->sqlite, "rocpd_string", i, reader->suffix,
	                                         sizeof reader->suffix);
	     i++) {
		reader->run = i;
		read_run(reader);
		end_run(reader);
	}
}

static int
read_rocpd(struct plumb_import_file *file, struct plumb_trace *trace, struct plumb_error *error)
{
	struct reader *reader = calloc(1, sizeof *reader);
	if (!reader)
		return plumb_fail_memory(error, "to read %s", file->path);
	reader->trace = trace;
	reader->builder = plumb_trace_builder(trace);
	if (plumb_sqlite_open(&reader->sqlite, file, error) == 0)
		read_all(reader);
	int code = plumb_sqlite_close(&reader->sqlite);
	free(reader);
	return code;
}

static int
probe_rocpd(const struct plumb_import_file *file)
{
	static const char *const kinds[] = { "rocpd_kernel_dispatch*", "rocpd_region*",
		                             "rocpd_memory_copy*" };
	if (plumb_sqlite_probe(file, COLUMNS("rocpd_string*")) <= 0)
		return 0;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (plumb_sqlite_probe(file, COLUMNS(kinds[i])) > 0)
			return 90;
	return 0;
}

const struct plumb_format plumb_format_rocpd = {
	.name = "rocpd",
	.title = "rocpd of ROCm 7",
	.probe = probe_rocpd,
	.read = read_rocpd,
};
