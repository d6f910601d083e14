/* SPDX-License-Identifier: Apache-2.0 */
#include "model/columns.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char *const track_kinds[] = { NULL, "thread", "stream", "memory" };
static const char *const origin_reasons[] = {
	NULL, "backward_call", "graph_capture", "fused", "inlined",
};
static const char *const window_kinds[] = { NULL, "startup", "loop", "rest", "part" };
static const char *const cost_scopes[] = { NULL, "run", "step" };
static const char *const levels[] = { NULL, "M", "M/L", "M/L/G", "serialised", "M/L/G/C" };
static const char *const level_bounds[] = { NULL, "launches", "loop", "run" };
static const char *const severities[] = { NULL, "note", "warning", "serious" };

const char *const plumb_fate_names[PLUMB_FATE_COUNT] = {
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
	[PLUMB_FATE_MEMORY_BOUND] = "memory_bound",
	[PLUMB_FATE_NO_MEMORY] = "no_memory",
	[PLUMB_FATE_NOT_WRITTEN] = "not_written",
	[PLUMB_FATE_ALLOWED] = "allowed",
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
	[PLUMB_FATE_SYSTEM_KERNEL] = "system_kernel",
	[PLUMB_FATE_HARDWARE_FULL] = "hardware_full",
	[PLUMB_FATE_UNKNOWN_MODULE] = "unknown_module",
	[PLUMB_FATE_UNKNOWN_FUNCTION] = "unknown_function",
	[PLUMB_FATE_OUTSIDE_CODE] = "outside_code",
	[PLUMB_FATE_UNREADABLE_CODE] = "unreadable_code",
	[PLUMB_FATE_CODE_BOUND] = "code_bound",
	[PLUMB_FATE_CODE_NOT_WRITTEN] = "code_not_written",
	[PLUMB_FATE_NOT_DRAWN] = "not_drawn",
	[PLUMB_FATE_REACHED_NOTHING] = "reached_nothing",
	[PLUMB_FATE_NOT_CHOSEN] = "not_chosen",
	[PLUMB_FATE_NOT_PATCHED] = "not_patched",
	[PLUMB_FATE_TABLE_FULL] = "table_full",
	[PLUMB_FATE_NO_ALLOCATION] = "no_allocation",
	[PLUMB_FATE_NOT_HOT] = "not_hot",
	[PLUMB_FATE_ENOUGH] = "enough",
	[PLUMB_FATE_NO_REPLAY] = "no_replay",
	[PLUMB_FATE_BUSY] = "busy",
	[PLUMB_FATE_NOT_COUNTED] = "not_counted",
	[PLUMB_FATE_TOO_SLOW] = "too_slow",
	[PLUMB_FATE_COUNTED] = "counted",
};

#define CELL(title, kind, field)                                                                   \
	.name = title, .cell = PLUMB_ROW_##kind, .offset = offsetof(ROW, field)
#define WORD(title, field, list) CELL(title, WORD, field), .words = list, .limit = COUNT(list)
#define ID(title, field, table) CELL(title, ID, field), .limit = PLUMB_TABLE_##table
#define ID_OR_NONE(title, field, table) CELL(title, ID_OR_NONE, field), .limit = PLUMB_TABLE_##table
/* The devices that a copy read and wrote. */
#define END_DEVICE(title, field)                                                                   \
	CELL(title, ID_OR_0, field), .limit = PLUMB_TABLE_DEVICES, .since = 4
#define FROM_DEVICE END_DEVICE("from_device", ends.from)
#define TO_DEVICE END_DEVICE("to_device", ends.to)
/* When what began at FROM ended. */
#define END(title, field, from) CELL(title, END, field), .limit = offsetof(ROW, from)

#define ROW struct plumb_run
static const struct plumb_row_column run_columns[] = {
	{ CELL("command", TEXT, command) },
	{ CELL("start_ns", INT, start_ns) },
	{ CELL("wall_ns", INT, wall_ns) },
	{ CELL("exit_code", INT, exit_code) },
	{ CELL("overhead_ns", INT, overhead_ns) },
	{ CELL("tool_version", TEXT, tool_version) },
	{ CELL("analyses", INT, analyses), .since = 4 },
};
#undef ROW

#define ROW struct plumb_process
static const struct plumb_row_column processes_columns[] = {
	{ CELL("pid", INT, pid) },
	{ CELL("ppid", INT, ppid) },
	{ CELL("rank", INT, rank) },
	{ CELL("local_rank", INT, local_rank) },
	{ CELL("host", TEXT, host) },
	{ CELL("command", TEXT, command) },
	{ CELL("start_ns", INT, start_ns) },
	{ CELL("end_ns", INT, end_ns) },
	{ CELL("exit_code", INT, exit_code) },
	{ CELL("overhead_ns", INT, overhead_ns) },
};
#undef ROW

#define ROW struct plumb_device
static const struct plumb_row_column devices_columns[] = {
	{ CELL("name", TEXT, name) },
	{ CELL("uuid", TEXT, uuid) },
	{ CELL("ordinal", INT, ordinal) },
	{ CELL("rank", INT, rank) },
	{ CELL("capability_major", INT, capability_major) },
	{ CELL("capability_minor", INT, capability_minor) },
	{ CELL("multiprocessors", INT, multiprocessors) },
	{ CELL("warps_per_multiprocessor", INT, warps_per_multiprocessor) },
	{ CELL("clock_khz", INT, clock_khz) },
	{ CELL("memory_clock_khz", INT, memory_clock_khz) },
	{ CELL("memory_bytes", INT, memory_bytes) },
	{ CELL("kernels", INT, kernels) },
	{ CELL("kernel_ns", INT, kernel_ns) },
	{ CELL("copies", INT, copies) },
	{ CELL("copy_ns", INT, copy_ns) },
	{ CELL("copy_bytes", INT, copy_bytes) },
	{ CELL("sets", INT, sets) },
	{ CELL("set_ns", INT, set_ns) },
	{ CELL("set_bytes", INT, set_bytes) },
	{ CELL("busy_ns", INT, busy_ns) },
	{ CELL("first_ns", INT, first_ns) },
	{ CELL("last_ns", INT, last_ns) },
	{ CELL("late", INT, late) },
	{ CELL("contended_ns", INT, contended_ns), .since = 2 },
};
#undef ROW

#define ROW struct plumb_track
static const struct plumb_row_column tracks_columns[] = {
	{ WORD("kind", kind, track_kinds) },
	{ ID_OR_NONE("process", process, PROCESSES) },
	{ ID_OR_NONE("device", device, DEVICES) },
	{ CELL("name", TEXT, name) },
	{ CELL("tid", INT, tid) },
	{ CELL("stream", INT, stream) },
	{ CELL("gpu_context", INT, gpu_context) },
	{ CELL("start_ns", INT, start_ns) },
	{ CELL("end_ns", INT, end_ns) },
	{ CELL("overhead_ns", INT, overhead_ns) },
};
#undef ROW

#define ROW struct plumb_frame
static const struct plumb_row_column frames_columns[] = {
	{ WORD("kind", kind, plumb_frame_kind_names) },
	{ CELL("name", TEXT, name) },
	{ CELL("file", TEXT, file) },
	{ CELL("line", LINE, line) },
	{ CELL("display", TEXT, display) },
	{ CELL("source_file", TEXT, source_file), .since = 2 },
	{ CELL("source_line", LINE, source_line), .since = 2 },
};
#undef ROW

#define ROW struct plumb_context
static const struct plumb_row_column contexts_columns[] = {
	{ ID_OR_NONE("parent", parent, CONTEXTS) },
	{ ID("frame", frame, FRAMES) },
	{ CELL("flags", BITS, flags) },
	/* Ids that may be greater than the row's own; the reader checks the tree as a whole. */
	{ CELL("last", BITS, last) },
	{ CELL("depth", BITS, depth) },
};
#undef ROW

#define ROW struct plumb_value
static const struct plumb_row_column values_columns[] = {
	{ ID("context", context, CONTEXTS), .key = true, .order = 1 },
	{ CELL("metric", METRIC, metric), .key = true, .order = 2 },
	{ ID_OR_NONE("track", track, TRACKS), .key = true, .order = 3 },
	{ CELL("sum", NUMBER, sum) },
	{ CELL("count", COUNT, count) },
	{ CELL("min", INT, min) },
	{ CELL("max", INT, max) },
	{ CELL("mean", KNOWN, mean) },
	{ CELL("m2", REAL, m2) },
	{ FROM_DEVICE, .key = true, .order = 4 },
	{ TO_DEVICE, .key = true, .order = 5 },
};
#undef ROW

/* What tells variants at a context and track apart. */
#define SHAPE(field)                                                                               \
	{ CELL("shapes", TEXT, field shapes), .key = true },                                       \
		{ CELL("grid_x", INT, field grid[0]), .key = true },                               \
		{ CELL("grid_y", INT, field grid[1]), .key = true },                               \
		{ CELL("grid_z", INT, field grid[2]), .key = true },                               \
		{ CELL("block_x", INT, field block[0]), .key = true },                             \
		{ CELL("block_y", INT, field block[1]), .key = true },                             \
		{ CELL("block_z", INT, field block[2]), .key = true },                             \
		{ CELL("registers", INT, field registers), .key = true },                          \
		{ CELL("static_shared_bytes", INT, field static_shared), .key = true },            \
		{ CELL("dynamic_shared_bytes", INT, field dynamic_shared), .key = true },          \
	{                                                                                          \
		CELL("occupancy_ppm", INT, field occupancy), .key = true                           \
	}

#define ROW struct plumb_variant
static const struct plumb_row_column variants_columns[] = {
	{ ID("context", context, CONTEXTS), .key = true, .order = 1 },
	{ ID_OR_NONE("track", track, TRACKS), .key = true, .order = 2 },
	SHAPE(),
	{ CELL("count", COUNT, count), .order = 4, .descending = true },
	{ CELL("time_ns", NUMBER, time), .order = 3, .descending = true },
	{ CELL("min_ns", INT, min) },
	{ CELL("max_ns", INT, max) },
};
#undef ROW

#define ROW struct plumb_origin
static const struct plumb_row_column origins_columns[] = {
	{ ID("context", context, CONTEXTS), .key = true, .order = 1 },
	{ ID("origin", origin, CONTEXTS), .key = true, .order = 3 },
	{ WORD("reason", reason, origin_reasons), .key = true, .order = 2 },
};
#undef ROW

#define ROW struct plumb_clock
static const struct plumb_row_column clocks_columns[] = {
	{ ID_OR_NONE("process", process, PROCESSES) },
	{ ID_OR_NONE("device", device, DEVICES) },
	{ CELL("reference_ns", INT, reference_ns) },
	{ CELL("offset_ns", INT, offset_ns) },
	{ CELL("slope", REAL, slope) },
	{ CELL("residual_ns", INT, residual_ns) },
	{ CELL("readings", INT, readings) },
};
#undef ROW

#define ROW struct plumb_ledger_row
static const struct plumb_row_column ledger_columns[] = {
	{ ID_OR_NONE("process", process, PROCESSES), .key = true, .order = 1, .none_first = true },
	{ WORD("source", source, plumb_source_names), .references = "sources", .key = true,
	  .order = 2 },
	{ WORD("fate", fate, plumb_fate_names), .references = "fates", .key = true, .order = 3 },
	{ CELL("detail", TEXT, detail), .key = true },
	{ CELL("count", NUMBER, count) },
};
#undef ROW

#define ROW struct plumb_environment_row
static const struct plumb_row_column environment_columns[] = {
	{ ID_OR_NONE("process", process, PROCESSES), .key = true },
	{ CELL("key", TEXT, key), .key = true },
	{ CELL("value", TEXT, value) },
};
#undef ROW

#define ROW struct plumb_finding
static const struct plumb_row_column findings_columns[] = {
	{ CELL("finding", TEXT, id) },
	{ CELL("rule", TEXT, rule) },
	{ WORD("severity", severity, severities) },
	{ CELL("title", TEXT, title) },
	{ CELL("advice", TEXT, advice) },
	{ CELL("evidence", TEXT, evidence) },
	{ ID_OR_NONE("context", context, CONTEXTS) },
	{ CELL("saving_ns", INT, saving_ns) },
	{ CELL("confidence", REAL, confidence) },
	{ CELL("window", TEXT, window), .since = 5 },
};
#undef ROW

#define ROW struct plumb_code_object
static const struct plumb_row_column code_objects_columns[] = {
	{ ID_OR_NONE("process", process, PROCESSES), .key = true },
	{ CELL("kind", TEXT, kind) },
	{ CELL("path", TEXT, path), .key = true },
	{ CELL("build_id", TEXT, build_id), .key = true },
	{ CELL("hash", TEXT, hash), .key = true },
	{ CELL("bytes", INT, bytes) },
};
#undef ROW

#define ROW struct plumb_code_function
static const struct plumb_row_column code_functions_columns[] = {
	{ ID("code_object", object, CODE_OBJECTS), .key = true },
	{ CELL("name", TEXT, name), .key = true },
	{ CELL("architecture", TEXT, architecture) },
	{ CELL("is_kernel", BITS, is_kernel) },
	{ CELL("bytes", INT, bytes) },
	{ CELL("registers", INT, registers) },
	{ CELL("stack_bytes", INT, stack_bytes) },
	{ CELL("shared_bytes", INT, shared_bytes) },
	{ CELL("text", BLOB, text) },
};
#undef ROW

#define ROW struct plumb_code_reference
static const struct plumb_row_column code_references_columns[] = {
	{ ID("code_function", function, CODE_FUNCTIONS), .order = 1 },
	{ CELL("offset", AMOUNT, offset), .order = 2 },
	{ CELL("name", TEXT, name) },
};
#undef ROW

#define ROW struct plumb_code_line
static const struct plumb_row_column code_lines_columns[] = {
	{ ID("code_function", function, CODE_FUNCTIONS), .order = 1 },
	{ CELL("offset", AMOUNT, offset), .order = 2 },
	{ CELL("depth", BITS, depth), .order = 3 },
	{ CELL("file", TEXT, file) },
	{ CELL("line", LINE, line) },
	{ CELL("inlined", TEXT, inlined) },
};
#undef ROW

#define ROW struct plumb_code_sample
static const struct plumb_row_column code_samples_columns[] = {
	{ ID("code_function", function, CODE_FUNCTIONS), .order = 1 },
	{ CELL("offset", AMOUNT, offset), .order = 2 },
	{ ID_OR_NONE("process", process, PROCESSES), .order = 3 },
	{ ID_OR_NONE("device", device, DEVICES), .order = 4 },
	{ CELL("reason", TEXT, reason) },
	{ CELL("issued", BITS, issued) },
	{ ID_OR_NONE("context", context, CONTEXTS), .order = 5 },
	{ CELL("launch_ns", INT, launch_ns), .order = 6 },
	{ CELL("count", COUNT, count) },
};
#undef ROW

#define ROW struct plumb_series_bin
static const struct plumb_row_column series_columns[] = {
	{ ID_OR_NONE("device", device, DEVICES), .order = 1 },
	{ ID_OR_NONE("process", process, PROCESSES), .order = 2 },
	{ CELL("start_ns", NUMBER, start_ns), .order = 3 },
	{ CELL("width_ns", NUMBER, width_ns) },
	{ CELL("busy_ns", INT, busy_ns) },
	{ CELL("kernels", INT, kernels) },
	{ CELL("copies", INT, copies) },
};
#undef ROW

#define ROW struct plumb_memory
static const struct plumb_row_column memory_columns[] = {
	{ ID("track", track, TRACKS) },
	{ CELL("peak_bytes", INT, peak_bytes) },
	{ CELL("peak_ns", INT, peak_ns) },
	{ CELL("allocations", INT, allocations) },
	{ CELL("allocated_bytes", INT, allocated_bytes) },
	{ CELL("frees", INT, frees) },
	{ CELL("freed_bytes", INT, freed_bytes) },
	{ CELL("live_bytes", INT, live_bytes) },
	{ CELL("peak_allocated_bytes", INT, peak_allocated_bytes) },
	{ CELL("peak_reserved_bytes", INT, peak_reserved_bytes) },
	{ CELL("most_reserved_bytes", INT, most_reserved_bytes) },
};
#undef ROW

#define ROW struct plumb_memory_series_bin
static const struct plumb_row_column memory_series_columns[] = {
	{ ID("track", track, TRACKS), .order = 1 },
	{ CELL("start_ns", NUMBER, start_ns), .order = 2 },
	{ CELL("width_ns", NUMBER, width_ns) },
	{ CELL("min_bytes", NUMBER, min_bytes) },
	{ CELL("max_bytes", NUMBER, max_bytes) },
	{ CELL("last_bytes", NUMBER, last_bytes) },
	{ CELL("max_reserved_bytes", INT, max_reserved_bytes) },
	{ CELL("last_reserved_bytes", INT, last_reserved_bytes) },
};
#undef ROW

#define ROW struct plumb_counter_series_bin
static const struct plumb_row_column counter_series_columns[] = {
	{ ID_OR_NONE("device", device, DEVICES), .order = 1 },
	{ ID_OR_NONE("process", process, PROCESSES), .order = 2 },
	{ CELL("metric", TEXT, metric), .order = 3 },
	{ CELL("unit", TEXT, unit) },
	{ CELL("start_ns", NUMBER, start_ns), .order = 4 },
	{ CELL("width_ns", NUMBER, width_ns) },
	{ CELL("samples", AMOUNT, samples) },
	{ CELL("sampled_ns", AMOUNT, sampled_ns) },
	{ CELL("min", KNOWN, min) },
	{ CELL("mean", KNOWN, mean) },
	{ CELL("max", KNOWN, max) },
};
#undef ROW

#define ROW struct plumb_device_process
static const struct plumb_row_column device_processes_columns[] = {
	{ ID("device", device, DEVICES), .order = 1 },
	{ ID("process", process, PROCESSES), .order = 2 },
	{ CELL("busy_ns", INT, busy_ns) },
	{ CELL("first_ns", INT, first_ns) },
	{ CELL("last_ns", INT, last_ns) },
};
#undef ROW

#define ROW struct plumb_wait
static const struct plumb_row_column waits_columns[] = {
	{ ID("track", track, TRACKS) },
	{ ID_OR_NONE("awaited", awaited, TRACKS) },
	{ ID_OR_NONE("device", device, DEVICES) },
	{ CELL("call", NUMBER, call) },
	{ CELL("after", NUMBER, after) },
};
#undef ROW

#define ROW struct plumb_collective
static const struct plumb_row_column collectives_columns[] = {
	{ ID_OR_NONE("track", track, TRACKS) },
	{ CELL("start_ns", NUMBER, start_ns) },
	{ CELL("group_name", TEXT, group) },
	{ CELL("ranks", TEXT, ranks) },
	{ CELL("size", INT, size) },
	{ CELL("sequence", INT, sequence) },
	{ ID_OR_NONE("context", context, CONTEXTS), .since = 6 },
	{ CELL("operation", TEXT, operation), .since = 6 },
	{ CELL("datatype", TEXT, datatype), .since = 6 },
	{ CELL("algorithm", TEXT, algorithm), .since = 6 },
	{ CELL("protocol", TEXT, protocol), .since = 6 },
	{ CELL("called_ns", INT, called_ns), .since = 6 },
	{ CELL("end_ns", INT, end_ns), .since = 6 },
	{ CELL("bytes", INT, bytes), .since = 6 },
	{ CELL("rank", INT, rank), .since = 6 },
	{ CELL("peer", INT, peer), .since = 6 },
	{ CELL("root", INT, root), .since = 6 },
	{ CELL("channels", INT, channels), .since = 6 },
};
#undef ROW

#define ROW struct plumb_object
static const struct plumb_row_column objects_columns[] = {
	{ ID_OR_NONE("context", context, CONTEXTS) },
	{ ID_OR_NONE("process", process, PROCESSES) },
	{ ID_OR_NONE("device", device, DEVICES) },
	{ WORD("kind", kind, plumb_object_kind_names) },
	{ CELL("name", TEXT, name) },
	{ ID_OR_NONE("within", within, OBJECTS) },
	{ CELL("allocations", COUNT, allocations) },
	{ CELL("bytes", NUMBER, bytes) },
	{ CELL("most_bytes", INT, most) },
	{ CELL("touched_bytes", INT, touched_bytes) },
	{ CELL("touchable_bytes", INT, touchable_bytes) },
};
#undef ROW

#define ROW struct plumb_object_range
static const struct plumb_row_column object_ranges_columns[] = {
	{ ID("object", object, OBJECTS), .order = 1 },
	{ CELL("address", NUMBER, address), .order = 3 },
	{ CELL("bytes", AMOUNT, bytes) },
	{ CELL("start_ns", NUMBER, start_ns), .order = 2 },
	{ CELL("end_ns", INT, end_ns) },
};
#undef ROW

#define ROW struct plumb_object_bin
static const struct plumb_row_column object_bins_columns[] = {
	{ ID("object", object, OBJECTS), .key = true, .order = 1 },
	{ ID_OR_NONE("device", device, DEVICES), .key = true, .order = 2 },
	{ WORD("kind", kind, plumb_access_kind_names), .key = true, .order = 3 },
	{ CELL("offset", AMOUNT, offset), .key = true, .order = 4 },
	{ CELL("width", AMOUNT, width) },
	{ CELL("accesses", COUNT, accesses) },
};
#undef ROW

#define ROW struct plumb_transfer_row
static const struct plumb_row_column transfers_columns[] = {
	{ ID_OR_NONE("context", context, CONTEXTS), .order = 1 },
	{ ID_OR_NONE("process", process, PROCESSES), .order = 2 },
	{ WORD("kind", kind, plumb_access_kind_names), .order = 3 },
	{ WORD("route", route, plumb_route_names), .order = 4 },
	{ ID_OR_NONE("initiator", initiator, DEVICES), .order = 5 },
	{ CELL("from_device", ID_OR_0, ends.from), .limit = PLUMB_TABLE_DEVICES },
	{ CELL("to_device", ID_OR_0, ends.to), .limit = PLUMB_TABLE_DEVICES },
	{ ID_OR_NONE("from_object", from_object, OBJECTS) },
	{ ID_OR_NONE("to_object", to_object, OBJECTS) },
	{ ID_OR_NONE("code_function", function, CODE_FUNCTIONS), .order = 6 },
	{ CELL("offset", INT, offset), .order = 7 },
	{ CELL("width", INT, width), .order = 8 },
	{ CELL("accesses", COUNT, accesses) },
	{ CELL("warps", INT, warps) },
	{ CELL("bytes", AMOUNT, bytes) },
	{ CELL("error_bytes", REAL, error_bytes) },
};
#undef ROW

#define ROW struct plumb_device_link
static const struct plumb_row_column device_links_columns[] = {
	{ CELL("uuid", TEXT, uuid), .key = true, .order = 1 },
	{ CELL("peer_uuid", TEXT, peer), .key = true, .order = 2 },
	{ WORD("kind", kind, plumb_link_kind_names) },
	{ CELL("path", TEXT, path) },
	{ CELL("links", INT, links) },
	{ CELL("generation", INT, generation) },
	{ CELL("bytes_per_second", INT, bytes_per_second) },
	{ CELL("peer_access", INT, peer_access) },
};
#undef ROW

#define ROW struct plumb_window
static const struct plumb_row_column windows_columns[] = {
	{ ID("process", process, PROCESSES) },
	{ WORD("kind", kind, window_kinds) },
	{ CELL("number", LINE, number) },
	{ CELL("iterations", INT, iterations) },
};
#undef ROW

#define ROW struct plumb_window_stretch
static const struct plumb_row_column window_stretches_columns[] = {
	{ ID("window", window, WINDOWS), .order = 1 },
	{ CELL("start_ns", NUMBER, start_ns), .order = 2 },
	{ CELL("end_ns", NUMBER, end_ns) },
};
#undef ROW

#define ROW struct plumb_window_value
static const struct plumb_row_column window_values_columns[] = {
	{ ID("window", window, WINDOWS), .key = true, .order = 6 },
	{ ID("context", context, CONTEXTS), .key = true, .order = 1 },
	{ CELL("metric", METRIC, metric), .key = true, .order = 2 },
	{ ID_OR_NONE("track", track, TRACKS), .key = true, .order = 3 },
	{ CELL("sum", NUMBER, sum) },
	{ CELL("count", COUNT, count) },
	{ CELL("min", INT, min) },
	{ CELL("max", INT, max) },
	{ CELL("m2", REAL, m2) },
	{ FROM_DEVICE, .key = true, .order = 4 },
	{ TO_DEVICE, .key = true, .order = 5 },
};
#undef ROW

#define ROW struct plumb_window_variant
static const struct plumb_row_column window_variants_columns[] = {
	{ ID("window", window, WINDOWS), .key = true, .order = 3 },
	{ ID("context", variant.context, CONTEXTS), .key = true, .order = 1 },
	{ ID_OR_NONE("track", variant.track, TRACKS), .key = true, .order = 2 },
	SHAPE(variant.),
	{ CELL("count", COUNT, variant.count) },
	{ CELL("time_ns", NUMBER, variant.time) },
};
#undef ROW

#define ROW struct plumb_window_device
static const struct plumb_row_column window_devices_columns[] = {
	{ ID("window", window, WINDOWS), .key = true, .order = 1 },
	{ ID("device", device, DEVICES), .key = true, .order = 2 },
	{ CELL("kernels", INT, kernels) },
	{ CELL("kernel_ns", INT, kernel_ns) },
	{ CELL("copies", INT, copies) },
	{ CELL("copy_ns", INT, copy_ns) },
	{ CELL("copy_bytes", INT, copy_bytes) },
	{ CELL("sets", INT, sets) },
	{ CELL("set_ns", INT, set_ns) },
	{ CELL("set_bytes", INT, set_bytes) },
	{ CELL("busy_ns", INT, busy_ns) },
};
#undef ROW

#define ROW struct plumb_cost
static const struct plumb_row_column costs_columns[] = {
	{ ID_OR_NONE("process", process, PROCESSES) },
	{ WORD("scope", scope, cost_scopes) },
	{ CELL("pairs", INT, pairs) },
	{ CELL("steps", INT, steps) },
	{ CELL("recorded_ns", INT, recorded_ns) },
	{ CELL("plain_ns", INT, plain_ns) },
	{ CELL("ratio", REAL, ratio) },
	{ CELL("low", REAL, low) },
	{ CELL("high", REAL, high) },
	{ CELL("why", TEXT, why) },
};
#undef ROW

#define ROW struct plumb_level_row
static const struct plumb_row_column levels_columns[] = {
	{ WORD("level", level, levels) },
	{ WORD("scope", scope, cost_scopes) },
	{ WORD("bounds", bounds, level_bounds) },
	{ CELL("runs", INT, runs) },
	{ CELL("kept", INT, kept) },
	{ CELL("steps", INT, steps) },
	{ CELL("time_ns", INT, time_ns) },
	{ CELL("low_ns", INT, low_ns) },
	{ CELL("high_ns", INT, high_ns) },
	{ CELL("added_ns", INT, added_ns) },
	{ CELL("added_low_ns", INT, added_low_ns) },
	{ CELL("added_high_ns", INT, added_high_ns) },
	{ CELL("why", TEXT, why) },
};
#undef ROW

#define ROW struct plumb_level_value
static const struct plumb_row_column level_values_columns[] = {
	{ ID("context", context, CONTEXTS), .order = 1 },
	{ CELL("metric", METRIC, metric), .order = 2 },
	{ WORD("level", level, levels), .order = 3 },
	{ CELL("own_recorded_ns", INT, own_recorded_ns) },
	{ CELL("own_ns", INT, own_ns) },
	{ CELL("measured_ns", INT, measured_ns) },
	{ CELL("corrected_ns", INT, corrected_ns) },
	{ CELL("low_ns", INT, low_ns) },
	{ CELL("high_ns", INT, high_ns) },
	{ ID_OR_NONE("passed", passed, CONTEXTS) },
};
#undef ROW

#define ROW struct plumb_cpu_sample
static const struct plumb_row_column cpu_samples_columns[] = {
	{ ID("track", track, TRACKS), .order = 1 },
	{ ID("context", context, CONTEXTS), .order = 3 },
	{ CELL("at_ns", NUMBER, at_ns), .order = 2 },
	{ CELL("cpu_ns", AMOUNT, ns) },
};
#undef ROW

#define ROW struct plumb_work_item
static const struct plumb_row_column work_columns[] = {
	{ ID("track", track, TRACKS) },
	{ ID("context", context, CONTEXTS) },
	{ CELL("start_ns", TIME, start_ns), .blob = "start" },
	{ END("end_ns", end_ns, start_ns), .blob = "duration" },
};
#undef ROW

#define ROW struct plumb_span
static const struct plumb_row_column spans_columns[] = {
	{ ID("track", track, TRACKS) },
	{ ID("context", context, CONTEXTS) },
	{ CELL("start_ns", TIME, start_ns), .blob = "start" },
	{ END("end_ns", end_ns, start_ns), .blob = "duration" },
	{ CELL("correlation", LINK, correlation), .since = 2 },
	{ CELL("bytes", LINK, bytes), .since = 3, .sparse = true },
	{ FROM_DEVICE, .sparse = true },
	{ TO_DEVICE, .sparse = true },
};
#undef ROW

const struct plumb_row_table plumb_row_tables[PLUMB_TABLES] = {
	[PLUMB_TABLE_RUN] = { .name = "run",
	                      .columns = run_columns,
	                      .columns_count = COUNT(run_columns),
	                      .row_size = sizeof(struct plumb_run),
	                      .offset = offsetof(struct plumb_profile, run),
	                      .single = true },
#define T(number, title, type, column, ...)                                                        \
	[PLUMB_TABLE_##number] = { .name = title,                                                  \
		                   .columns = column##_columns,                                    \
		                   .columns_count = COUNT(column##_columns),                       \
		                   .row_size = sizeof(type),                                       \
		                   .offset = offsetof(struct plumb_profile, column),               \
		                   ##__VA_ARGS__ },
	PLUMB_ROW_TABLES(T)
#undef T
};

const struct plumb_row_column *
plumb_row_column_of(const struct plumb_row_table *table, enum plumb_row_cell cell)
{
	for (uint32_t c = 0; c < table->columns_count; c++)
		if (table->columns[c].cell == cell)
			return &table->columns[c];
	return NULL;
}
