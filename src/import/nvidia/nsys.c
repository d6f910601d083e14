/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nsight Systems' export to SQLite. A table is there if something of its kind was recorded, and its
 * columns differ by version, so the schema is asked. A process is the upper bits of globalPid and
 * globalTid (hardware, virtual machine, pid), a thread the lower 24 of globalTid; correlation
 * numbers are unique within a process.
 */
#include <stdio.h>
#include <stdlib.h>

#include "import/copies.h"
#include "import/import.h"
#include "import/nvidia/nsys.h"
#include "import/sequence.h"

#define ENUM_MAX 16
#define LABEL_BYTES 40
/* These are searched one by one; devices and ranges beyond go without what they would tell. */
#define GPUS_MAX 4096
#define DOMAINS_MAX 1024

/* What a text of StringIds was made into. */
enum use { AS_KERNEL, AS_CALL, AS_LIBRARY, AS_RANGE };

/* NVTX_EVENTS.eventType */
enum {
	MARK = 34,
	PUSH_POP = 59,
	START_END = 60,
	MARK_IMPORTED = 65,
	PUSH_POP_IMPORTED = 70,
	START_END_IMPORTED = 71,
	DOMAIN_CREATE = 75
};

struct gpu {
	int64_t machine, id;
	int64_t memory, clock, multiprocessors, warps, major, minor;
	uint32_t name;
	char uuid[64]; /* as the model has it; empty: not known */
};

struct cuda_device {
	int64_t pid, ordinal, gpu;
	char uuid[64];
};

struct domain {
	int64_t process, id;
	uint32_t name; /* string */
};

typedef char labels[ENUM_MAX][LABEL_BYTES];

struct reader {
	struct plumb_sqlite sqlite;
	struct plumb_trace *trace;
	struct plumb_builder *builder;
	struct plumb_sqlite_texts texts;
	labels copies, memories;
	PLUMB_VEC(struct gpu) gpus;
	PLUMB_VEC(struct cuda_device) cuda_devices;
	PLUMB_VEC(struct domain) domains;
	struct plumb_sequences sequences;
	uint32_t host;
	int64_t elsewhere; /* ranges that ended on another thread */
};

#define COLUMNS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void
out_of_memory(struct reader *reader)
{
	if (!reader->sqlite.code)
		reader->sqlite.code =
			plumb_fail_memory(reader->sqlite.error, "to read %s", reader->sqlite.path);
}

/* ---- where ---- */

/* GLOBAL: a globalPid or globalTid. */
static uint32_t
process_of(struct reader *reader, int64_t global)
{
	int64_t key = global == PLUMB_UNKNOWN || !(global >> 24) ? PLUMB_UNKNOWN : global >> 24;
	uint32_t process = plumb_trace_has_process(reader->trace, key);
	if (process != PLUMB_NONE)
		return process;
	process = plumb_trace_process(reader->trace, key);
	if (process == PLUMB_NONE)
		return process;
	struct plumb_process *row = plumb_builder_get_process(reader->builder, process);
	row->pid = key == PLUMB_UNKNOWN ? key : key & 0xffffff;
	row->host = reader->host;
	return process;
}

static uint32_t
thread_of(struct reader *reader, int64_t global)
{
	return plumb_trace_thread(reader->trace, process_of(reader, global),
	                          global == PLUMB_UNKNOWN ? global : global & 0xffffff);
}

/* "554a6988-…" → "GPU-554a6988-…" */
static void
take_uuid(struct plumb_slice text, char uuid[64])
{
	*uuid = '\0';
	if (text.at && text.bytes >= 8 && text.bytes < 50)
		snprintf(uuid, 64, "%s%.*s", plumb_slice_begins(text, "GPU-") ? "" : "GPU-",
		         (int)text.bytes, text.at);
}

static void
load_gpus(struct reader *reader)
{
	enum { ID, NAME, UUID, MACHINE, MEMORY, CLOCK, UNITS, WARPS, MAJOR, MINOR };
	struct plumb_rows rows;
	plumb_rows_open(&rows, &reader->sqlite, "TARGET_INFO_GPU",
	                COLUMNS("id", "name", "uuid", "vmId", "totalMemory", "clockRate", "smCount",
	                        "maxWarpsPerSm", "computeMajor", "computeMinor"));
	while (plumb_rows_next(&rows)) {
		struct gpu *gpu =
			reader->gpus.count < GPUS_MAX ? plumb_vec_add(&reader->gpus) : NULL;
		if (!gpu)
			break;
		struct plumb_slice name = plumb_rows_text(&rows, NAME);
		gpu->name = plumb_builder_string(reader->builder, name.at, name.bytes);
		take_uuid(plumb_rows_text(&rows, UUID), gpu->uuid);
		gpu->id = plumb_rows_integer(&rows, ID);
		gpu->machine = plumb_rows_integer(&rows, MACHINE);
		gpu->memory = plumb_rows_integer(&rows, MEMORY);
		gpu->clock = plumb_rows_integer(&rows, CLOCK);
		gpu->multiprocessors = plumb_rows_integer(&rows, UNITS);
		gpu->warps = plumb_rows_integer(&rows, WARPS);
		gpu->major = plumb_rows_integer(&rows, MAJOR);
		gpu->minor = plumb_rows_integer(&rows, MINOR);
	}
	plumb_rows_close(&rows);
	plumb_rows_open(&rows, &reader->sqlite, "TARGET_INFO_CUDA_DEVICE",
	                COLUMNS("pid", "cudaId", "gpuId", "uuid"));
	while (plumb_rows_next(&rows)) {
		struct cuda_device *device = reader->cuda_devices.count < GPUS_MAX
		                                     ? plumb_vec_add(&reader->cuda_devices)
		                                     : NULL;
		if (!device)
			break;
		device->pid = plumb_rows_integer(&rows, 0);
		device->ordinal = plumb_rows_integer(&rows, 1);
		device->gpu = plumb_rows_integer(&rows, 2);
		take_uuid(plumb_rows_text(&rows, 3), device->uuid);
	}
	plumb_rows_close(&rows);
}

/* What a process calls device ORDINAL; NULL: it is not told. UUID: where that is known. */
static const struct gpu *
gpu_of(struct reader *reader, int64_t global, int64_t ordinal, char uuid[64])
{
	int64_t pid = global == PLUMB_UNKNOWN ? global : global >> 24 & 0xffffff, id = ordinal;
	*uuid = '\0';
	for (uint32_t i = 0; i < reader->cuda_devices.count; i++) {
		const struct cuda_device *device = &reader->cuda_devices.items[i];
		if (device->ordinal == ordinal && device->pid == pid) {
			id = device->gpu;
			snprintf(uuid, 64, "%s", device->uuid);
			break;
		}
	}
	for (uint32_t i = 0; i < reader->gpus.count; i++) {
		const struct gpu *gpu = &reader->gpus.items[i];
		if (gpu->id != id || (gpu->machine != PLUMB_UNKNOWN && global != PLUMB_UNKNOWN &&
		                      gpu->machine >> 48 != global >> 48))
			continue;
		if (!*uuid)
			snprintf(uuid, 64, "%s", gpu->uuid);
		return gpu;
	}
	return NULL;
}

static uint32_t
device_of(struct reader *reader, int64_t global, int64_t ordinal)
{
	uint32_t process = process_of(reader, global);
	uint32_t id = plumb_trace_has_device(reader->trace, process, ordinal);
	char uuid[64];
	if (id != PLUMB_NONE)
		return id;
	const struct gpu *gpu = gpu_of(reader, global, ordinal, uuid);
	id = plumb_trace_device(reader->trace, process, ordinal, *uuid ? uuid : NULL);
	if (id == PLUMB_NONE || !gpu)
		return id;
	struct plumb_device *device = plumb_builder_get_device(reader->builder, id);
	device->name = gpu->name;
	device->memory_bytes = gpu->memory;
	device->clock_khz = gpu->clock == PLUMB_UNKNOWN ? gpu->clock : gpu->clock / 1000;
	device->multiprocessors = gpu->multiprocessors;
	device->warps_per_multiprocessor = gpu->warps;
	device->capability_major = gpu->major;
	device->capability_minor = gpu->minor;
	return id;
}

/* ---- names ---- */

/* Cuts " _v7000" off "cudaLaunchKernel_v7000". */
static struct plumb_slice
without_version(struct plumb_slice name)
{
	size_t at = name.bytes;
	while (at && name.at[at - 1] >= '0' && name.at[at - 1] <= '9')
		at--;
	if (at > 2 && at < name.bytes && name.at[at - 1] == 'v' && name.at[at - 2] == '_')
		name.bytes = at - 2;
	return name;
}

static uint32_t
frame_of(void *own, struct plumb_slice name, unsigned use)
{
	struct reader *reader = own;
	switch (use) {
	case AS_KERNEL:
		return plumb_trace_frame(reader->trace, PLUMB_FRAME_KERNEL, name);
	case AS_CALL:
		return plumb_trace_frame(reader->trace, PLUMB_FRAME_GPU_API, without_version(name));
	case AS_LIBRARY:
		return plumb_trace_frame(reader->trace, PLUMB_FRAME_NATIVE, without_version(name));
	case AS_RANGE:
	default:
		return plumb_import_range(reader->trace, name);
	}
}

/* ---- calls ---- */

static void
read_calls(struct reader *reader, const char *table, enum use use)
{
	enum { START, END, THREAD, CORRELATION, NAME };
	struct plumb_rows rows;
	plumb_rows_open(&rows, &reader->sqlite, table,
	                COLUMNS("start", "end", "globalTid", "correlationId", "nameId"));
	while (plumb_rows_next(&rows)) {
		int64_t correlation = plumb_rows_integer(&rows, CORRELATION);
		plumb_trace_host(reader->trace,
		                 thread_of(reader, plumb_rows_integer(&rows, THREAD)),
		                 plumb_sqlite_texts_frame(&reader->texts, frame_of, reader,
		                                          plumb_rows_integer(&rows, NAME), use),
		                 plumb_rows_integer(&rows, START), plumb_rows_integer(&rows, END),
		                 use == AS_CALL && correlation > 0 ? (uint64_t)correlation : 0);
	}
	plumb_rows_close(&rows);
}

/* ---- NVTX ---- */

enum { R_START, R_END, R_TYPE, R_TEXT, R_TEXT_ID, R_THREAD, R_END_THREAD, R_DOMAIN };
#define RANGE_COLUMNS                                                                              \
	COLUMNS("start", "end", "eventType", "text", "textId", "globalTid", "endGlobalTid",        \
	        "domainId")

/* Its own text, or one of StringIds; empty where it has none. */
static struct plumb_slice
range_text(struct reader *reader, struct plumb_rows *rows)
{
	struct plumb_slice text = plumb_rows_text(rows, R_TEXT);
	if (!text.bytes)
		text = plumb_sqlite_texts_slice(&reader->texts,
		                                plumb_rows_integer(rows, R_TEXT_ID));
	return text;
}

static void
load_domains(struct reader *reader)
{
	struct plumb_rows rows;
	plumb_rows_open(&rows, &reader->sqlite, "NVTX_EVENTS", RANGE_COLUMNS);
	while (plumb_rows_next(&rows)) {
		int64_t global = plumb_rows_integer(&rows, R_THREAD);
		if (plumb_rows_integer(&rows, R_TYPE) != DOMAIN_CREATE)
			continue;
		struct plumb_slice text = range_text(reader, &rows);
		struct domain *domain = text.bytes && reader->domains.count < DOMAINS_MAX
		                                ? plumb_vec_add(&reader->domains)
		                                : NULL;
		if (!domain)
			continue;
		domain->process = global == PLUMB_UNKNOWN ? global : global >> 24;
		domain->id = plumb_rows_integer(&rows, R_DOMAIN);
		domain->name = plumb_builder_string(reader->builder, text.at, text.bytes);
	}
	plumb_rows_close(&rows);
}

static const char *
domain_of(struct reader *reader, int64_t global, int64_t id)
{
	for (uint32_t i = 0; id > 0 && i < reader->domains.count; i++)
		if (reader->domains.items[i].id == id &&
		    (global == PLUMB_UNKNOWN || reader->domains.items[i].process == global >> 24))
			return plumb_builder_get_text(reader->builder,
			                              reader->domains.items[i].name);
	return NULL;
}

/* "domain/name" for what is in a domain, as plumb's own recordings have it. */
static uint32_t
frame_of_range(struct reader *reader, struct plumb_rows *rows)
{
	const char *domain = domain_of(reader, plumb_rows_integer(rows, R_THREAD),
	                               plumb_rows_integer(rows, R_DOMAIN));
	struct plumb_slice text = plumb_rows_text(rows, R_TEXT);
	char whole[1024];
	if (!domain && !text.bytes)
		return plumb_sqlite_texts_frame(&reader->texts, frame_of, reader,
		                                plumb_rows_integer(rows, R_TEXT_ID), AS_RANGE);
	if (!text.bytes)
		text = plumb_sqlite_texts_slice(&reader->texts,
		                                plumb_rows_integer(rows, R_TEXT_ID));
	if (!domain || strlen(domain) + text.bytes + 2 > sizeof whole)
		return frame_of(reader, text, AS_RANGE);
	snprintf(whole, sizeof whole, "%s/%.*s", domain, (int)text.bytes, text.at ? text.at : "");
	return frame_of(reader, (struct plumb_slice){ whole, strlen(whole) }, AS_RANGE);
}

static void
take_range(struct reader *reader, struct plumb_rows *rows)
{
	struct plumb_trace *trace = reader->trace;
	int64_t start = plumb_rows_integer(rows, R_START), end = plumb_rows_integer(rows, R_END);
	int64_t type = plumb_rows_integer(rows, R_TYPE);
	int64_t global = plumb_rows_integer(rows, R_THREAD);
	int64_t end_global = plumb_rows_integer(rows, R_END_THREAD);
	uint32_t track = thread_of(reader, global), frame = frame_of_range(reader, rows);
	bool crosses = end_global != PLUMB_UNKNOWN && end_global && end_global != global;
	if (type == MARK || type == MARK_IMPORTED)
		end = start;
	if ((type == START_END || type == START_END_IMPORTED) && crosses) {
		/* It tells nothing of what either thread does meanwhile: nothing hangs under it. */
		uint32_t context = frame == PLUMB_NONE
		                           ? PLUMB_NONE
		                           : plumb_builder_context(reader->builder, 0, frame, 0);
		if (context == PLUMB_NONE || track == PLUMB_NONE)
			out_of_memory(reader);
		else
			plumb_trace_span(trace, track, context, start, end, 0);
		reader->elsewhere++;
		return;
	}
	plumb_trace_host(trace, track, frame, start, end, 0);
	if (plumb_sequences_note(&reader->sequences, process_of(reader, global), track, start,
	                         range_text(reader, rows)) < 0)
		out_of_memory(reader);
}

static void
read_ranges(struct reader *reader)
{
	struct plumb_rows rows;
	plumb_rows_open(&rows, &reader->sqlite, "NVTX_EVENTS", RANGE_COLUMNS);
	while (plumb_rows_next(&rows)) {
		int64_t type = plumb_rows_integer(&rows, R_TYPE);
		switch (type) {
		case PLUMB_UNKNOWN:
		case MARK:
		case PUSH_POP:
		case START_END:
		case MARK_IMPORTED:
		case PUSH_POP_IMPORTED:
		case START_END_IMPORTED:
			take_range(reader, &rows);
			break;
		case DOMAIN_CREATE:
			break;
		default:
			plumb_trace_count(reader->trace, PLUMB_FATE_UNUSED,
			                  "NVTX_EVENTS of other types", 1);
		}
	}
	plumb_rows_close(&rows);
	plumb_sequences_link(&reader->sequences, reader->trace);
	plumb_trace_count(reader->trace, PLUMB_FATE_AMBIGUOUS,
	                  "NVTX ranges that end on another thread", reader->elsewhere);
}

/* ---- GPU work ---- */

/* The first columns of all tables of GPU work. */
enum { START, END, DEVICE, CONTEXT, STREAM, CORRELATION, PROCESS, MORE };
#define WORK_COLUMNS                                                                               \
	"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid"

static struct plumb_trace_work
work_of(struct reader *reader, const struct plumb_rows *rows)
{
	int64_t global = plumb_rows_integer(rows, PROCESS);
	int64_t correlation = plumb_rows_integer(rows, CORRELATION);
	uint32_t device = device_of(reader, global, plumb_rows_integer(rows, DEVICE));
	struct plumb_trace_work work = {
		.track = plumb_trace_stream(reader->trace, process_of(reader, global), device,
		                            plumb_rows_integer(rows, CONTEXT),
		                            plumb_rows_integer(rows, STREAM)),
		.start_ns = plumb_rows_integer(rows, START),
		.end_ns = plumb_rows_integer(rows, END),
		/* Without its process a correlation number says nothing. */
		.correlation =
			global != PLUMB_UNKNOWN && correlation > 0 ? (uint64_t)correlation : 0,
		.bytes = PLUMB_UNKNOWN,
		.collective = PLUMB_NONE,
		.placed = PLUMB_NONE,
		.here = true,
	};
	return work;
}

static void
read_kernels(struct reader *reader)
{
	enum {
		DEMANGLED = MORE,
		MANGLED,
		SHORT,
		REGISTERS,
		STATIC,
		DYNAMIC,
		GRID,
		BLOCK = GRID + 3
	};
	static const int names[] = { DEMANGLED, MANGLED, SHORT };
	struct plumb_rows rows;
	plumb_rows_open(&rows, &reader->sqlite, "CUPTI_ACTIVITY_KIND_KERNEL",
	                COLUMNS(WORK_COLUMNS, "demangledName", "mangledName", "shortName",
	                        "registersPerThread", "staticSharedMemory", "dynamicSharedMemory",
	                        "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"));
	while (plumb_rows_next(&rows)) {
		struct plumb_trace_work work = work_of(reader, &rows);
		struct plumb_trace_launch launch = plumb_trace_no_launch;
		int64_t name = PLUMB_UNKNOWN;
		for (int i = 0; i < 3 && !plumb_sqlite_texts_slice(&reader->texts, name).bytes; i++)
			name = plumb_rows_integer(&rows, names[i]);
		for (int i = 0; i < 3; i++) {
			launch.grid[i] = plumb_rows_integer(&rows, GRID + i);
			launch.block[i] = plumb_rows_integer(&rows, BLOCK + i);
		}
		launch.registers = plumb_rows_integer(&rows, REGISTERS);
		launch.static_shared = plumb_rows_integer(&rows, STATIC);
		launch.dynamic_shared = plumb_rows_integer(&rows, DYNAMIC);
		work.frame =
			plumb_sqlite_texts_frame(&reader->texts, frame_of, reader, name, AS_KERNEL);
		work.launch = launch.grid[0] == PLUMB_UNKNOWN ? NULL : &launch;
		plumb_trace_work(reader->trace, &work);
	}
	plumb_rows_close(&rows);
}

/* The labels of an enumeration, by the file's own table if it has one. */
static void
load_labels(struct reader *reader, const char *table, labels into, const char *const *defaults)
{
	struct plumb_rows rows;
	for (int i = 0; i < ENUM_MAX && defaults[i]; i++)
		snprintf(into[i], LABEL_BYTES, "%s", defaults[i]);
	plumb_rows_open(&rows, &reader->sqlite, table, COLUMNS("id", "label"));
	while (plumb_rows_next(&rows)) {
		int64_t id = plumb_rows_integer(&rows, 0);
		struct plumb_slice label = plumb_rows_text(&rows, 1);
		if (id >= 0 && id < ENUM_MAX && label.at)
			snprintf(into[id], LABEL_BYTES, "%.*s",
			         (int)(label.bytes < LABEL_BYTES ? label.bytes : LABEL_BYTES),
			         label.at);
	}
	plumb_rows_close(&rows);
}

static const char *
label_of(labels of, int64_t id)
{
	return id >= 0 && id < ENUM_MAX && *of[id] ? of[id] : "Unknown";
}

static void
read_copies(struct reader *reader)
{
	enum { BYTES = MORE, KIND, FROM, TO, FROM_DEVICE, TO_DEVICE };
	static const char *const directions[] = { "Unknown",
		                                  "Host-to-Device",
		                                  "Device-to-Host",
		                                  "Host-to-Array",
		                                  "Array-to-Host",
		                                  "Array-to-Array",
		                                  "Array-to-Device",
		                                  "Device-to-Array",
		                                  "Device-to-Device",
		                                  "Host-to-Host",
		                                  "Peer-to-Peer",
		                                  "Unified Host-to-Device",
		                                  "Unified Device-to-Host",
		                                  "Unified Device-to-Device",
		                                  NULL };
	struct plumb_rows rows;
	load_labels(reader, "ENUM_CUDA_MEMCPY_OPER", reader->copies, directions);
	plumb_rows_open(&rows, &reader->sqlite, "CUPTI_ACTIVITY_KIND_MEMCPY",
	                COLUMNS(WORK_COLUMNS, "bytes", "copyKind", "srcKind", "dstKind",
	                        "srcDeviceId", "dstDeviceId"));
	while (plumb_rows_next(&rows)) {
		struct plumb_trace_work work = work_of(reader, &rows);
		char name[4 * LABEL_BYTES];
		snprintf(name, sizeof name, "Memcpy %s (%s -> %s)",
		         label_of(reader->copies, plumb_rows_integer(&rows, KIND)),
		         label_of(reader->memories, plumb_rows_integer(&rows, FROM)),
		         label_of(reader->memories, plumb_rows_integer(&rows, TO)));
		work.frame = plumb_import_copy(reader->trace,
		                               (struct plumb_slice){ name, strlen(name) });
		work.bytes = plumb_rows_integer(&rows, BYTES);
		int64_t from = plumb_rows_integer(&rows, FROM_DEVICE);
		int64_t to = plumb_rows_integer(&rows, TO_DEVICE);
		int64_t global = plumb_rows_integer(&rows, PROCESS);
		if (from != PLUMB_UNKNOWN && to != PLUMB_UNKNOWN && from != to)
			work.ends = plumb_trace_ends(device_of(reader, global, from),
			                             device_of(reader, global, to));
		plumb_trace_work(reader->trace, &work);
	}
	plumb_rows_close(&rows);
}

static void
read_sets(struct reader *reader)
{
	enum { BYTES = MORE, KIND };
	struct plumb_rows rows;
	plumb_rows_open(&rows, &reader->sqlite, "CUPTI_ACTIVITY_KIND_MEMSET",
	                COLUMNS(WORK_COLUMNS, "bytes", "memKind"));
	while (plumb_rows_next(&rows)) {
		struct plumb_trace_work work = work_of(reader, &rows);
		char name[2 * LABEL_BYTES];
		snprintf(name, sizeof name, "Memset (%s)",
		         label_of(reader->memories, plumb_rows_integer(&rows, KIND)));
		work.frame = plumb_import_copy(reader->trace,
		                               (struct plumb_slice){ name, strlen(name) });
		work.bytes = plumb_rows_integer(&rows, BYTES);
		plumb_trace_work(reader->trace, &work);
	}
	plumb_rows_close(&rows);
}

/* ---- facts ---- */

static void
take_fact(struct reader *reader, struct plumb_slice name, struct plumb_slice value)
{
	static const struct {
		const char *name, *key;
	} facts[] = {
		{ "EXPORT_PRODUCT_VERSION", "nsys.version" },
		{ "EXPORT_SCHEMA_VERSION", "nsys.schema" },
		{ "NvDriverVersion", "gpu.driver" },
		{ "OsDescription", "os" },
		{ "CpuArchitecture", "cpu.architecture" },
	};
	if (!name.at || !value.bytes)
		return;
	for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
		if (plumb_slice_is(name, facts[i].name))
			plumb_trace_environment(reader->trace, facts[i].key, value);
	if (plumb_slice_is(name, "Hostname"))
		reader->host = plumb_builder_string(reader->builder, value.at, value.bytes);
}

static void
read_facts(struct reader *reader)
{
	static const char *const tables[] = { "META_DATA_EXPORT", "TARGET_INFO_SYSTEM_ENV" };
	struct plumb_rows rows;
	char name[64], number[24];
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
		plumb_rows_open(&rows, &reader->sqlite, tables[i], COLUMNS("name", "value"));
		while (plumb_rows_next(&rows)) {
			struct plumb_slice key = plumb_rows_text(&rows, 0);
			snprintf(name, sizeof name, "%.*s", key.bytes < 63 ? (int)key.bytes : 0,
			         key.at ? key.at : "");
			take_fact(reader, (struct plumb_slice){ name, strlen(name) },
			          plumb_rows_text(&rows, 1));
		}
		plumb_rows_close(&rows);
	}
	plumb_rows_open(&rows, &reader->sqlite, "TARGET_INFO_SESSION_START_TIME",
	                COLUMNS("utcEpochNs"));
	if (plumb_rows_next(&rows) && plumb_rows_integer(&rows, 0) != PLUMB_UNKNOWN) {
		snprintf(number, sizeof number, "%lld", (long long)plumb_rows_integer(&rows, 0));
		plumb_trace_environment(reader->trace, "session.start_utc_ns",
		                        (struct plumb_slice){ number, strlen(number) });
	}
	plumb_rows_close(&rows);
}

/* Of the processes and threads that did something. */
static void
read_owners(struct reader *reader)
{
	struct plumb_rows rows;
	plumb_rows_open(&rows, &reader->sqlite, "PROCESSES", COLUMNS("globalPid", "name"));
	while (plumb_rows_next(&rows)) {
		uint32_t id =
			plumb_trace_has_process(reader->trace, plumb_rows_integer(&rows, 0) >> 24);
		struct plumb_slice name = plumb_rows_text(&rows, 1);
		if (id != PLUMB_NONE && name.bytes)
			plumb_builder_get_process(reader->builder, id)->command =
				plumb_builder_command(reader->builder, name.at, name.bytes);
	}
	plumb_rows_close(&rows);
	plumb_rows_open(&rows, &reader->sqlite, "ThreadNames", COLUMNS("globalTid", "nameId"));
	while (plumb_rows_next(&rows)) {
		int64_t global = plumb_rows_integer(&rows, 0);
		uint32_t process = plumb_trace_has_process(reader->trace, global >> 24);
		uint32_t id = process == PLUMB_NONE ? PLUMB_NONE
		                                    : plumb_trace_has_thread(reader->trace, process,
		                                                             global & 0xffffff);
		struct plumb_slice name =
			plumb_sqlite_texts_slice(&reader->texts, plumb_rows_integer(&rows, 1));
		if (id != PLUMB_NONE && name.bytes)
			plumb_builder_get_track(reader->builder, id)->name =
				plumb_builder_string(reader->builder, name.at, name.bytes);
	}
	plumb_rows_close(&rows);
}

static uint32_t
process_for_wait(void *own, int64_t global)
{
	return process_of(own, global);
}

static uint32_t
known_thread(void *own, int64_t global)
{
	struct reader *reader = own;

	if (global == PLUMB_UNKNOWN ||
	    plumb_trace_has_process(reader->trace, global >> 24) == PLUMB_NONE)
		return PLUMB_NONE;
	return thread_of(reader, global);
}

static void
read_all(struct reader *reader)
{
	static const char *const memories[] = { "Pageable",       "Pinned",  "Device",
		                                "Array",          "Managed", "Device Static",
		                                "Managed Static", "Unknown", NULL };
	plumb_sqlite_texts_load(&reader->texts, &reader->sqlite, "StringIds", "id", "value");
	load_labels(reader, "ENUM_CUDA_MEM_KIND", reader->memories, memories);
	read_facts(reader);
	load_gpus(reader);
	load_domains(reader);
	read_calls(reader, "CUPTI_ACTIVITY_KIND_RUNTIME", AS_CALL);
	read_calls(reader, "CUPTI_ACTIVITY_KIND_DRIVER", AS_CALL);
	read_calls(reader, "CUDNN_EVENTS", AS_LIBRARY);
	read_calls(reader, "CUBLAS_EVENTS", AS_LIBRARY);
	read_ranges(reader);
	read_kernels(reader);
	read_copies(reader);
	read_sets(reader);
	plumb_nsys_waits(&reader->sqlite, reader->trace, process_for_wait, reader);
	plumb_nsys_samples(&reader->sqlite, reader->trace, &reader->texts, known_thread, reader);
	read_owners(reader);
	plumb_sqlite_count_unused(
		&reader->sqlite, reader->trace, "", COLUMNS("start", "timestamp", "rawTimestamp"),
		COLUMNS("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER", "CUDNN_EVENTS",
	                "CUBLAS_EVENTS", "NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_KERNEL",
	                "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET",
	                "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
	                "COMPOSITE_EVENTS"));
}

static int
read_nsys(struct plumb_import_file *file, struct plumb_trace *trace, struct plumb_error *error)
{
	struct reader *reader = calloc(1, sizeof *reader);
	if (!reader)
		return plumb_fail_memory(error, "to read %s", file->path);
	reader->trace = trace;
	reader->builder = plumb_trace_builder(trace);
	reader->host = PLUMB_NONE;
	if (plumb_sqlite_open(&reader->sqlite, file, error) == 0)
		read_all(reader);
	int code = plumb_sqlite_close(&reader->sqlite);
	plumb_sqlite_texts_free(&reader->texts);
	plumb_vec_free(&reader->gpus);
	plumb_vec_free(&reader->cuda_devices);
	plumb_vec_free(&reader->domains);
	free(reader);
	return code;
}

static int
probe_nsys(const struct plumb_import_file *file)
{
	static const char *const kinds[] = { "CUPTI_ACTIVITY_KIND_*", "NVTX_EVENTS",
		                             "META_DATA_EXPORT", "TARGET_INFO_*" };
	int named = plumb_sqlite_probe(file, COLUMNS("StringIds"));
	if (named < 0)
		return 1; /* a database that cannot be opened: reading tells why */
	for (size_t i = 0; named && i < sizeof kinds / sizeof *kinds; i++)
		if (plumb_sqlite_probe(file, COLUMNS(kinds[i])) > 0)
			return 90;
	return 0;
}

const struct plumb_format plumb_format_nsys = {
	.name = "nsys",
	.title = "Nsight Systems SQLite",
	.probe = probe_nsys,
	.read = read_nsys,
};
