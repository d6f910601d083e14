/* SPDX-License-Identifier: Apache-2.0 */
#include "store/schema.h"

#include <stddef.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char *const track_kinds[] = { NULL, "thread", "stream", "memory" };
static const char *const origin_reasons[] = {
	NULL, "backward_call", "graph_capture", "fused", "inlined",
};
static const char *const severities[] = { NULL, "note", "warning", "serious" };

const char *const plumb_store_fates[PLUMB_FATE_COUNT] = {
	[PLUMB_FATE_RECEIVED] = "received",
	[PLUMB_FATE_ATTRIBUTED] = "attributed",
	[PLUMB_FATE_REGION_FULL] = "region_full",
	[PLUMB_FATE_NO_SPACE] = "no_space",
	[PLUMB_FATE_RING_MISS] = "ring_miss",
	[PLUMB_FATE_NO_LAUNCH] = "no_launch",
	[PLUMB_FATE_BUFFERS_CAPPED] = "buffers_capped",
	[PLUMB_FATE_CUPTI_DROPPED] = "cupti_dropped",
	[PLUMB_FATE_FORKED] = "forked",
	[PLUMB_FATE_TORN] = "torn",
	[PLUMB_FATE_DAMAGED] = "damaged",
	[PLUMB_FATE_NO_PYTHON] = "no_python",
	[PLUMB_FATE_ACCUMULATION] = "accumulation",
	[PLUMB_FATE_HOOK] = "hook",
	[PLUMB_FATE_FORWARD] = "forward",
	[PLUMB_FATE_FORWARD_MISS] = "forward_miss",
	[PLUMB_FATE_TOO_DEEP] = "too_deep",
	[PLUMB_FATE_SLOT_GIVEN] = "slot_given",
	[PLUMB_FATE_UNKNOWN_LAYOUT] = "unknown_layout",
	[PLUMB_FATE_LATE] = "late",
	[PLUMB_FATE_NOT_DELIVERED] = "not_delivered",
	[PLUMB_FATE_UNMAPPED_THREAD] = "unmapped_thread",
	[PLUMB_FATE_ENDED_ELSEWHERE] = "ended_elsewhere",
	[PLUMB_FATE_DUPLICATE] = "duplicate",
	[PLUMB_FATE_NO_UNWIND] = "no_unwind",
	[PLUMB_FATE_OWN_TIME] = "own_time",
	[PLUMB_FATE_NO_SYMBOL] = "no_symbol",
	[PLUMB_FATE_NO_STACK] = "no_stack",
	[PLUMB_FATE_OVERFLOWED] = "overflowed",
	[PLUMB_FATE_UNKNOWN_OBJECT] = "unknown_object",
	[PLUMB_FATE_OVERWRITTEN] = "overwritten",
	[PLUMB_FATE_NO_CAPTURE] = "no_capture",
	[PLUMB_FATE_UNBALANCED] = "unbalanced",
	[PLUMB_FATE_PAUSED] = "paused",
	[PLUMB_FATE_NOT_FOLLOWED] = "not_followed",
	[PLUMB_FATE_UNLOADABLE] = "unloadable",
	[PLUMB_FATE_UNREACHABLE] = "unreachable",
	[PLUMB_FATE_INTERLEAVED] = "interleaved",
	[PLUMB_FATE_NO_PROVENANCE] = "no_provenance",
	[PLUMB_FATE_UNKNOWN_NODES] = "unknown_nodes",
	[PLUMB_FATE_UNMATCHED] = "unmatched",
	[PLUMB_FATE_AMBIGUOUS] = "ambiguous",
	[PLUMB_FATE_STRADDLES] = "straddles",
	[PLUMB_FATE_UNUSED] = "unused",
	[PLUMB_FATE_REPEATED] = "repeated",
	[PLUMB_FATE_BACKWARDS] = "backwards",
	[PLUMB_FATE_SIGNAL_BLOCKED] = "signal_blocked",
	[PLUMB_FATE_TRACED] = "traced",
	[PLUMB_FATE_SIGNAL_TAKEN] = "signal_taken",
	[PLUMB_FATE_SMALL_STACK] = "small_stack",
	[PLUMB_FATE_SHORT_OF_STACK] = "short_of_stack",
	[PLUMB_FATE_UNKNOWN_THREAD] = "unknown_thread",
};

#define CELL(name, kind, field) { name, PLUMB_CELL_##kind, offsetof(ROW, field), 0, NULL, 1 }
#define CELL_SINCE(name, kind, field, schema)                                                      \
	{ name, PLUMB_CELL_##kind, offsetof(ROW, field), 0, NULL, schema }
#define BITS(name, field, limit) { name, PLUMB_CELL_BITS, offsetof(ROW, field), limit, NULL, 1 }
#define WORD(name, field, words)                                                                   \
	{ name, PLUMB_CELL_WORD, offsetof(ROW, field), COUNT(words), words, 1 }
#define ID(name, field, table)                                                                     \
	{ name, PLUMB_CELL_ID, offsetof(ROW, field), PLUMB_TABLE_##table, NULL, 1 }
#define ID_OR_NONE(name, field, table)                                                             \
	{ name, PLUMB_CELL_ID_OR_NONE, offsetof(ROW, field), PLUMB_TABLE_##table, NULL, 1 }

#define ROW struct plumb_run
static const struct plumb_column run_columns[] = {
	CELL("command", TEXT, command),        CELL("start_ns", INT, start_ns),
	CELL("wall_ns", INT, wall_ns),         CELL("exit_code", INT, exit_code),
	CELL("overhead_ns", INT, overhead_ns), CELL("tool_version", TEXT, tool_version),
};
#undef ROW

#define ROW struct plumb_process
static const struct plumb_column process_columns[] = {
	CELL("pid", INT, pid),
	CELL("ppid", INT, ppid),
	CELL("rank", INT, rank),
	CELL("local_rank", INT, local_rank),
	CELL("host", TEXT, host),
	CELL("command", TEXT, command),
	CELL("start_ns", INT, start_ns),
	CELL("end_ns", INT, end_ns),
	CELL("exit_code", INT, exit_code),
	CELL("overhead_ns", INT, overhead_ns),
};
#undef ROW

#define ROW struct plumb_device
static const struct plumb_column device_columns[] = {
	CELL("name", TEXT, name),
	CELL("uuid", TEXT, uuid),
	CELL("ordinal", INT, ordinal),
	CELL("rank", INT, rank),
	CELL("capability_major", INT, capability_major),
	CELL("capability_minor", INT, capability_minor),
	CELL("multiprocessors", INT, multiprocessors),
	CELL("warps_per_multiprocessor", INT, warps_per_multiprocessor),
	CELL("clock_khz", INT, clock_khz),
	CELL("memory_clock_khz", INT, memory_clock_khz),
	CELL("memory_bytes", INT, memory_bytes),
	CELL("kernels", INT, kernels),
	CELL("kernel_ns", INT, kernel_ns),
	CELL("copies", INT, copies),
	CELL("copy_ns", INT, copy_ns),
	CELL("copy_bytes", INT, copy_bytes),
	CELL("sets", INT, sets),
	CELL("set_ns", INT, set_ns),
	CELL("set_bytes", INT, set_bytes),
	CELL("busy_ns", INT, busy_ns),
	CELL("first_ns", INT, first_ns),
	CELL("last_ns", INT, last_ns),
	CELL("late", INT, late),
	CELL_SINCE("contended_ns", INT, contended_ns, 2),
};
#undef ROW

#define ROW struct plumb_track
static const struct plumb_column track_columns[] = {
	WORD("kind", kind, track_kinds),
	ID_OR_NONE("process", process, PROCESSES),
	ID_OR_NONE("device", device, DEVICES),
	CELL("name", TEXT, name),
	CELL("tid", INT, tid),
	CELL("stream", INT, stream),
	CELL("gpu_context", INT, gpu_context),
	CELL("start_ns", INT, start_ns),
	CELL("end_ns", INT, end_ns),
	CELL("overhead_ns", INT, overhead_ns),
};
#undef ROW

#define ROW struct plumb_frame
static const struct plumb_column frame_columns[] = {
	WORD("kind", kind, plumb_frame_kind_names),
	CELL("name", TEXT, name),
	CELL("file", TEXT, file),
	CELL("line", LINE, line),
	CELL("display", TEXT, display),
	CELL_SINCE("source_file", TEXT, source_file, 2),
	CELL_SINCE("source_line", LINE, source_line, 2),
};
#undef ROW

#define ROW struct plumb_context
static const struct plumb_column context_columns[] = {
	ID_OR_NONE("parent", parent, CONTEXTS),
	ID("frame", frame, FRAMES),
	CELL("flags", BITS, flags),
	/* Ids that may be greater than the row's own; the reader checks the tree as a whole. */
	CELL("last", BITS, last),
	CELL("depth", BITS, depth),
};
#undef ROW

#define ROW struct plumb_value
static const struct plumb_column value_columns[] = {
	ID("context", context, CONTEXTS),
	CELL("metric", BITS, metric), /* the reader asks the profile whether it has it */
	ID_OR_NONE("track", track, TRACKS),
	CELL("sum", NUMBER, sum),
	CELL("count", COUNT, count),
	CELL("min", NUMBER, min),
	CELL("max", NUMBER, max),
	CELL("mean", REAL, mean),
	CELL("m2", REAL, m2),
};
#undef ROW

#define ROW struct plumb_variant
static const struct plumb_column variant_columns[] = {
	ID("context", context, CONTEXTS),
	ID_OR_NONE("track", track, TRACKS),
	CELL("shapes", TEXT, shapes),
	CELL("grid_x", INT, grid[0]),
	CELL("grid_y", INT, grid[1]),
	CELL("grid_z", INT, grid[2]),
	CELL("block_x", INT, block[0]),
	CELL("block_y", INT, block[1]),
	CELL("block_z", INT, block[2]),
	CELL("registers", INT, registers),
	CELL("static_shared_bytes", INT, static_shared),
	CELL("dynamic_shared_bytes", INT, dynamic_shared),
	CELL("occupancy_ppm", INT, occupancy),
	CELL("count", COUNT, count),
	CELL("time_ns", NUMBER, time),
	CELL("min_ns", NUMBER, min),
	CELL("max_ns", NUMBER, max),
};
#undef ROW

#define ROW struct plumb_origin
static const struct plumb_column origin_columns[] = {
	ID("context", context, CONTEXTS),
	ID("origin", origin, CONTEXTS),
	WORD("reason", reason, origin_reasons),
};
#undef ROW

#define ROW struct plumb_clock
static const struct plumb_column clock_columns[] = {
	ID_OR_NONE("process", process, PROCESSES),
	ID_OR_NONE("device", device, DEVICES),
	CELL("reference_ns", INT, reference_ns),
	CELL("offset_ns", INT, offset_ns),
	CELL("slope", REAL, slope),
	CELL("residual_ns", INT, residual_ns),
	CELL("readings", INT, readings),
};
#undef ROW

#define ROW struct plumb_ledger_row
static const struct plumb_column ledger_columns[] = {
	ID_OR_NONE("process", process, PROCESSES),
	WORD("source", source, plumb_source_names),
	WORD("fate", fate, plumb_store_fates),
	CELL("detail", TEXT, detail),
	CELL("count", NUMBER, count),
};
#undef ROW

#define ROW struct plumb_environment_row
static const struct plumb_column environment_columns[] = {
	ID_OR_NONE("process", process, PROCESSES),
	CELL("key", TEXT, key),
	CELL("value", TEXT, value),
};
#undef ROW

#define ROW struct plumb_finding
static const struct plumb_column finding_columns[] = {
	CELL("finding", TEXT, id),
	CELL("rule", TEXT, rule),
	WORD("severity", severity, severities),
	CELL("title", TEXT, title),
	CELL("advice", TEXT, advice),
	CELL("evidence", TEXT, evidence),
	ID_OR_NONE("context", context, CONTEXTS),
	CELL("saving_ns", INT, saving_ns),
	CELL("confidence", REAL, confidence),
};
#undef ROW

#define ROW struct plumb_code_object
static const struct plumb_column code_object_columns[] = {
	ID_OR_NONE("process", process, PROCESSES),
	CELL("kind", TEXT, kind),
	CELL("path", TEXT, path),
	CELL("build_id", TEXT, build_id),
	CELL("hash", TEXT, hash),
	CELL("bytes", INT, bytes),
};
#undef ROW

#define ROW struct plumb_series_bin
static const struct plumb_column series_columns[] = {
	ID_OR_NONE("device", device, DEVICES), ID_OR_NONE("process", process, PROCESSES),
	CELL("start_ns", NUMBER, start_ns),    CELL("width_ns", NUMBER, width_ns),
	CELL("busy_ns", INT, busy_ns),         CELL("kernels", INT, kernels),
	CELL("copies", INT, copies),
};
#undef ROW

#define ROW struct plumb_memory
static const struct plumb_column memory_columns[] = {
	ID("track", track, TRACKS),
	CELL("peak_bytes", INT, peak_bytes),
	CELL("peak_ns", INT, peak_ns),
	CELL("allocations", INT, allocations),
	CELL("allocated_bytes", INT, allocated_bytes),
	CELL("frees", INT, frees),
	CELL("freed_bytes", INT, freed_bytes),
	CELL("live_bytes", INT, live_bytes),
	CELL("peak_allocated_bytes", INT, peak_allocated_bytes),
	CELL("peak_reserved_bytes", INT, peak_reserved_bytes),
	CELL("most_reserved_bytes", INT, most_reserved_bytes),
};
#undef ROW

#define ROW struct plumb_device_process
static const struct plumb_column device_process_columns[] = {
	ID("device", device, DEVICES), ID("process", process, PROCESSES),
	CELL("busy_ns", INT, busy_ns), CELL("first_ns", INT, first_ns),
	CELL("last_ns", INT, last_ns),
};
#undef ROW

#define ROW struct plumb_wait
static const struct plumb_column wait_columns[] = {
	ID("track", track, TRACKS),
	ID_OR_NONE("awaited", awaited, TRACKS),
	ID_OR_NONE("device", device, DEVICES),
	CELL("call", NUMBER, call),
	CELL("after", NUMBER, after),
};
#undef ROW

#define ROW struct plumb_collective
static const struct plumb_column collective_columns[] = {
	ID("track", track, TRACKS),      CELL("start_ns", NUMBER, start_ns),
	CELL("group_name", TEXT, group), CELL("ranks", TEXT, ranks),
	CELL("size", INT, size),         CELL("sequence", INT, sequence),
};
#undef ROW

#define ROW struct plumb_cpu_sample
static const struct plumb_column cpu_sample_columns[] = {
	ID("track", track, TRACKS),
	ID("context", context, CONTEXTS),
	CELL("at_ns", NUMBER, at_ns),
	CELL("cpu_ns", NUMBER, ns),
};
#undef ROW

#define TABLE(number, name, columns, type, field) TABLE_SINCE(number, name, columns, type, field, 1)
#define TABLE_SINCE(number, name, columns, type, field, schema)                                    \
	[PLUMB_TABLE_##number] = { name,                                                           \
		                   columns,                                                        \
		                   COUNT(columns),                                                 \
		                   sizeof(type),                                                   \
		                   offsetof(struct plumb_profile, field),                          \
		                   offsetof(struct plumb_profile, field##_count),                  \
		                   schema }

const struct plumb_table plumb_store_schema[PLUMB_TABLES] = {
	[PLUMB_TABLE_RUN] = { "run", run_columns, COUNT(run_columns), sizeof(struct plumb_run),
	                      offsetof(struct plumb_profile, run), 0 },
	TABLE(PROCESSES, "processes", process_columns, struct plumb_process, processes),
	TABLE(DEVICES, "devices", device_columns, struct plumb_device, devices),
	TABLE(TRACKS, "tracks", track_columns, struct plumb_track, tracks),
	TABLE(FRAMES, "frames", frame_columns, struct plumb_frame, frames),
	TABLE(CONTEXTS, "contexts", context_columns, struct plumb_context, contexts),
	TABLE(VALUES, "context_values", value_columns, struct plumb_value, values),
	TABLE(VARIANTS, "variants", variant_columns, struct plumb_variant, variants),
	TABLE(ORIGINS, "origins", origin_columns, struct plumb_origin, origins),
	TABLE(CLOCKS, "clocks", clock_columns, struct plumb_clock, clocks),
	TABLE(LEDGER, "ledger", ledger_columns, struct plumb_ledger_row, ledger),
	TABLE(ENVIRONMENT, "environment", environment_columns, struct plumb_environment_row,
	      environment),
	TABLE(FINDINGS, "findings", finding_columns, struct plumb_finding, findings),
	TABLE(CODE_OBJECTS, "code_objects", code_object_columns, struct plumb_code_object,
	      code_objects),
	TABLE(SERIES, "series", series_columns, struct plumb_series_bin, series),
	TABLE_SINCE(MEMORY, "memory", memory_columns, struct plumb_memory, memory, 2),
	TABLE_SINCE(DEVICE_PROCESSES, "device_processes", device_process_columns,
	            struct plumb_device_process, device_processes, 2),
	TABLE_SINCE(WAITS, "waits", wait_columns, struct plumb_wait, waits, 3),
	TABLE_SINCE(COLLECTIVES, "collectives", collective_columns, struct plumb_collective,
	            collectives, 3),
	TABLE_SINCE(CPU_SAMPLES, "cpu_samples", cpu_sample_columns, struct plumb_cpu_sample,
	            cpu_samples, 3),
};
