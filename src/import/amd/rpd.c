/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rocmProfileData (RPD), the older rocpd: rocpd_api has the calls, rocpd_op what GPUs ran,
 * rocpd_api_ops which call started which. An operation says neither its process nor its size nor
 * its grid: its call does (rocpd_copyapi, rocpd_kernelapi; in schema 1 rocpd_copyop and
 * rocpd_kernelop by the operation itself).
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "import/copies.h"
#include "import/import.h"
#include "import/sequence.h"
#include "import/sqlite.h"

#define COLUMNS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* What a text of rocpd_string was made into. */
enum use { AS_CALL, AS_KERNEL, AS_COPY };

struct owner {
	int64_t op, call;
};

struct reader {
	struct plumb_sqlite sqlite;
	struct plumb_trace *trace;
	struct plumb_sqlite_texts texts, arguments;
	PLUMB_VEC(struct owner) owners;
	struct plumb_map by_op, sized; /* → owners; sized: by call, whose size a copy has */
	struct plumb_rows calls, copies, kernels, old_copies, old_kernels;
	struct plumb_sequences sequences;
	int64_t pid; /* the only one, or PLUMB_UNKNOWN */
	bool several;
};

static void
out_of_memory(struct reader *reader)
{
	if (!reader->sqlite.code)
		reader->sqlite.code =
			plumb_fail_memory(reader->sqlite.error, "to read %s", reader->sqlite.path);
}

static uint64_t
hash_of(int64_t number)
{
	return plumb_hash_mix((uint64_t)number, 0);
}

/* ---- frames ---- */

static uint32_t
call_frame(struct reader *reader, struct plumb_slice name)
{
	static const char *const runtimes[] = { "hip", "hsa", "cuda", "cu", "rccl", "nccl", "roc" };
	for (size_t i = 0; i < sizeof runtimes / sizeof *runtimes; i++)
		if (plumb_slice_begins(name, runtimes[i]))
			return plumb_trace_frame(reader->trace, PLUMB_FRAME_GPU_API, name);
	return plumb_trace_frame(reader->trace, PLUMB_FRAME_NATIVE, name);
}

static uint32_t
frame_of(void *own, struct plumb_slice name, unsigned use)
{
	struct reader *reader = own;
	if (use == AS_CALL)
		return call_frame(reader, name);
	if (use == AS_COPY)
		return plumb_import_copy(reader->trace, name);
	return plumb_trace_frame(reader->trace, PLUMB_FRAME_KERNEL, name);
}

/* ---- calls ---- */

static void
take_call(struct reader *reader, const struct plumb_rows *rows)
{
	enum { ID, PID, TID, START, END, NAME, ARGUMENTS };
	struct plumb_trace *trace = reader->trace;
	int64_t id = plumb_rows_integer(rows, ID), pid = plumb_rows_integer(rows, PID);
	int64_t name = plumb_rows_integer(rows, NAME);
	uint32_t process = plumb_trace_process(trace, pid);
	uint32_t track = plumb_trace_thread(trace, process, plumb_rows_integer(rows, TID));
	struct plumb_slice text = plumb_sqlite_texts_slice(&reader->texts, name);
	uint32_t frame;
	if (reader->pid != PLUMB_UNKNOWN && reader->pid != pid)
		reader->several = true;
	reader->pid = pid;
	if (text.at &&
	    plumb_slice_is(text, "UserMarker")) { /* roctx: its message is the argument */
		int64_t argument = plumb_rows_integer(rows, ARGUMENTS);
		struct plumb_slice message = plumb_sqlite_texts_slice(&reader->arguments, argument);
		if (!message.at)
			message = plumb_sqlite_texts_slice(&reader->texts, argument);
		frame = plumb_import_range(trace, message.at ? message : text);
		id = 0;
		if (plumb_sequences_note(&reader->sequences, process, track,
		                         plumb_rows_integer(rows, START), message) < 0)
			out_of_memory(reader);
	} else {
		frame = plumb_sqlite_texts_frame(&reader->texts, frame_of, reader, name, AS_CALL);
	}
	plumb_trace_host(trace, track, frame, plumb_rows_integer(rows, START),
	                 plumb_rows_integer(rows, END), id > 0 ? (uint64_t)id : 0);
}

static void
read_calls(struct reader *reader)
{
	struct plumb_rows rows;
	plumb_rows_open(&rows, &reader->sqlite, "rocpd_api",
	                COLUMNS("id", "pid", "tid", "start", "end", "apiName_id", "args_id"));
	while (plumb_rows_next(&rows))
		take_call(reader, &rows);
	plumb_rows_close(&rows);
	plumb_sequences_link(&reader->sequences, reader->trace);
}

/* ---- who started what ---- */

static struct owner *
owner_of(struct reader *reader, int64_t op)
{
	struct plumb_map_cursor at;
	for (uint32_t i = plumb_map_first(&reader->by_op, hash_of(op), &at); i != PLUMB_MAP_NONE;
	     i = plumb_map_next(&reader->by_op, &at))
		if (reader->owners.items[i].op == op)
			return &reader->owners.items[i];
	return NULL;
}

static void
load_owners(struct reader *reader)
{
	struct plumb_rows rows;
	plumb_rows_open(&rows, &reader->sqlite, "rocpd_api_ops", COLUMNS("op_id", "api_id"));
	while (plumb_rows_next(&rows)) {
		int64_t op = plumb_rows_integer(&rows, 0), call = plumb_rows_integer(&rows, 1);
		const struct owner *known = owner_of(reader, op);
		if (known || op == PLUMB_UNKNOWN || call <= 0) {
			plumb_trace_count(reader->trace, PLUMB_FATE_AMBIGUOUS,
			                  "operations of several calls",
			                  known && known->call != call);
			continue;
		}
		struct owner *added = plumb_vec_add(&reader->owners);
		if (!added ||
		    plumb_map_add(&reader->by_op, hash_of(op), reader->owners.count - 1) < 0) {
			out_of_memory(reader);
			break;
		}
		added->op = op;
		added->call = call;
	}
	plumb_rows_close(&rows);
}

/* The first copy of a call has its size; what the runtime splits it into has none of its own. */
static bool
takes_size(struct reader *reader, struct owner *owner)
{
	struct plumb_map_cursor at;
	for (uint32_t i = plumb_map_first(&reader->sized, hash_of(owner->call), &at);
	     i != PLUMB_MAP_NONE; i = plumb_map_next(&reader->sized, &at))
		if (reader->owners.items[i].call == owner->call)
			return false;
	if (plumb_map_add(&reader->sized, hash_of(owner->call),
	                  (uint32_t)(owner - reader->owners.items)) < 0)
		out_of_memory(reader);
	return true;
}

/* ---- GPU work ---- */

enum { GRID, BLOCK = GRID + 3, SHARED = BLOCK + 3, KERNEL_NAME };
#define KERNEL_COLUMNS                                                                             \
	COLUMNS("gridX", "gridY", "gridZ", "workgroupX", "workgroupY", "workgroupZ",               \
	        "groupSegmentSize", "kernelName_id")

/* Some calls count the grid in work-items, the others in work-groups. */
static bool
counts_items(struct plumb_slice call)
{
	return plumb_slice_is(call, "hipExtModuleLaunchKernel") ||
	       plumb_slice_is(call, "hipHccModuleLaunchKernel");
}

/* Returns the kernel's name (a text), or PLUMB_UNKNOWN. */
static int64_t
read_launch(const struct plumb_rows *rows, bool items, struct plumb_trace_launch *launch)
{
	for (int i = 0; i < 3; i++) {
		int64_t grid = plumb_rows_integer(rows, GRID + i);
		int64_t block = plumb_rows_integer(rows, BLOCK + i);
		if (items && grid > 0 && block > 0)
			grid = grid / block + (grid % block != 0);
		launch->grid[i] = grid;
		launch->block[i] = block;
	}
	launch->dynamic_shared = plumb_rows_integer(rows, SHARED);
	return plumb_rows_integer(rows, KERNEL_NAME);
}

static void
fill_kernel(struct reader *reader, int64_t op, const struct owner *owner, int64_t description,
            int64_t type, struct plumb_trace_work *work, struct plumb_trace_launch *launch)
{
	int64_t name = PLUMB_UNKNOWN;
	bool items = false;
	*launch = plumb_trace_no_launch;
	if (owner && plumb_rows_find(&reader->kernels, owner->call)) {
		if (plumb_rows_find(&reader->calls, owner->call))
			items = counts_items(plumb_sqlite_texts_slice(
				&reader->texts, plumb_rows_integer(&reader->calls, 1)));
		name = read_launch(&reader->kernels, items, launch);
		work->launch = launch;
	} else if (plumb_rows_find(&reader->old_kernels, op)) {
		name = read_launch(&reader->old_kernels, false, launch);
		work->launch = launch;
	}
	if (plumb_sqlite_texts_slice(&reader->texts, description).bytes)
		name = description;
	else if (!plumb_sqlite_texts_slice(&reader->texts, name).bytes)
		name = type;
	work->frame = plumb_sqlite_texts_frame(&reader->texts, frame_of, reader, name, AS_KERNEL);
}

static uint32_t
process_of(struct reader *reader, const struct owner *owner)
{
	int64_t pid = reader->several ? PLUMB_UNKNOWN : reader->pid;
	if (owner && plumb_rows_find(&reader->calls, owner->call))
		pid = plumb_rows_integer(&reader->calls, 0);
	return plumb_trace_process(reader->trace, pid);
}

static bool
is_copy(struct plumb_slice type)
{
	static const char *const kinds[] = { "Copy",   "copy",   "Fill",   "fill",
		                             "Memcpy", "memcpy", "Memset", "memset" };
	for (size_t i = 0; type.at && i < sizeof kinds / sizeof *kinds; i++)
		if (plumb_slice_begins(type, kinds[i]))
			return true;
	return false;
}

static void
take_work(struct reader *reader, const struct plumb_rows *rows)
{
	enum { ID, DEVICE, QUEUE, START, END, DESCRIPTION, TYPE };
	int64_t id = plumb_rows_integer(rows, ID), type = plumb_rows_integer(rows, TYPE);
	int64_t description = plumb_rows_integer(rows, DESCRIPTION);
	struct plumb_slice kind = plumb_sqlite_texts_slice(&reader->texts, type);
	struct owner *owner = owner_of(reader, id);
	uint32_t process = process_of(reader, owner);
	uint32_t device =
		plumb_trace_device(reader->trace, process, plumb_rows_integer(rows, DEVICE), NULL);
	struct plumb_trace_launch launch;
	struct plumb_trace_work work = {
		.track = plumb_trace_stream(reader->trace, process, device, PLUMB_UNKNOWN,
		                            plumb_rows_integer(rows, QUEUE)),
		.start_ns = plumb_rows_integer(rows, START),
		.end_ns = plumb_rows_integer(rows, END),
		.correlation = owner ? (uint64_t)owner->call : 0,
		.bytes = PLUMB_UNKNOWN,
		.collective = PLUMB_NONE,
		.placed = PLUMB_NONE,
		.here = true,
	};
	if (is_copy(kind)) {
		work.frame =
			plumb_sqlite_texts_frame(&reader->texts, frame_of, reader, type, AS_COPY);
		if (owner && plumb_rows_find(&reader->copies, owner->call) &&
		    takes_size(reader, owner))
			work.bytes = plumb_rows_integer(&reader->copies, 0);
		else if (plumb_rows_find(&reader->old_copies, id))
			work.bytes = plumb_rows_integer(&reader->old_copies, 0);
	} else if (kind.at && (plumb_slice_is(kind, "KernelExecution") ||
	                       plumb_slice_is(kind, "Task"))) { /* Task: of a graph's replay */
		fill_kernel(reader, id, owner, description, type, &work, &launch);
	} else {
		struct plumb_slice other = kind.at ? kind : (struct plumb_slice){ "rocpd_op", 8 };
		plumb_trace_count_slice(reader->trace, PLUMB_FATE_UNUSED, other, 1);
		return;
	}
	plumb_trace_work(reader->trace, &work);
}

static void
read_work(struct reader *reader)
{
	struct plumb_sqlite *sqlite = &reader->sqlite;
	struct plumb_rows rows;
	plumb_rows_open_by(&reader->calls, sqlite, "rocpd_api", "id", COLUMNS("pid", "apiName_id"));
	plumb_rows_open_by(&reader->copies, sqlite, "rocpd_copyapi", "api_ptr_id", COLUMNS("size"));
	plumb_rows_open_by(&reader->kernels, sqlite, "rocpd_kernelapi", "api_ptr_id",
	                   KERNEL_COLUMNS);
	plumb_rows_open_by(&reader->old_copies, sqlite, "rocpd_copyop", "op_ptr_id",
	                   COLUMNS("size"));
	plumb_rows_open_by(&reader->old_kernels, sqlite, "rocpd_kernelop", "op_ptr_id",
	                   KERNEL_COLUMNS);
	plumb_rows_open(
		&rows, sqlite, "rocpd_op",
		COLUMNS("id", "gpuId", "queueId", "start", "end", "description_id", "opType_id"));
	while (plumb_rows_next(&rows))
		take_work(reader, &rows);
	plumb_rows_close(&rows);
	plumb_rows_close(&reader->calls);
	plumb_rows_close(&reader->copies);
	plumb_rows_close(&reader->kernels);
	plumb_rows_close(&reader->old_copies);
	plumb_rows_close(&reader->old_kernels);
}

/* ---- the file ---- */

static void
read_facts(struct reader *reader)
{
	struct plumb_rows rows;
	plumb_rows_open(&rows, &reader->sqlite, "rocpd_metadata", COLUMNS("tag", "value"));
	while (plumb_rows_next(&rows)) {
		struct plumb_slice tag = plumb_rows_text(&rows, 0);
		if (tag.at && plumb_slice_is(tag, "schema_version"))
			plumb_trace_environment(reader->trace, "rpd.schema",
			                        plumb_rows_text(&rows, 1));
	}
	plumb_rows_close(&rows);
}

static void
read_all(struct reader *reader)
{
	plumb_sqlite_texts_load(&reader->texts, &reader->sqlite, "rocpd_string", "id", "string");
	plumb_sqlite_texts_load(&reader->arguments, &reader->sqlite, "rocpd_ustring", "id",
	                        "string");
	read_facts(reader);
	read_calls(reader);
	load_owners(reader);
	read_work(reader);
	plumb_sqlite_count_unused(&reader->sqlite, reader->trace, "", COLUMNS("start", "timestamp"),
	                          COLUMNS("rocpd_api", "rocpd_op"));
}

static int
read_rpd(struct plumb_import_file *file, struct plumb_trace *trace, struct plumb_error *error)
{
	struct reader *reader = calloc(1, sizeof *reader);
	if (!reader)
		return plumb_fail_memory(error, "to read %s", file->path);
	reader->trace = trace;
	reader->pid = PLUMB_UNKNOWN;
	if (plumb_sqlite_open(&reader->sqlite, file, error) == 0)
		read_all(reader);
	int code = plumb_sqlite_close(&reader->sqlite);
	plumb_sqlite_texts_free(&reader->texts);
	plumb_sqlite_texts_free(&reader->arguments);
	plumb_vec_free(&reader->owners);
	plumb_map_free(&reader->by_op);
	plumb_map_free(&reader->sized);
	free(reader);
	return code;
}

static int
probe_rpd(const struct plumb_import_file *file)
{
	return plumb_sqlite_probe(file, COLUMNS("rocpd_op", "rocpd_api", "rocpd_string")) > 0 ? 90
	                                                                                      : 0;
}

const struct plumb_format plumb_format_rpd = {
	.name = "rpd",
	.title = "rocmProfileData (RPD)",
	.probe = probe_rpd,
	.read = read_rpd,
};
