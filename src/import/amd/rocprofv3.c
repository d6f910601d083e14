/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rocprofv3's JSON (ROCm 6.2 and later): one object for each process,
 *
 *	{"rocprofiler-sdk-tool": [{"metadata": …, "agents": […], "strings": …,
 *	                           "kernel_symbols": […],
 *	                           "buffer_records": {"kernel_dispatch": […], "hip_api": […], …}}]}
 *
 * Records name kernels, agents and functions by numbers whose meaning may stand before or behind
 * them, so that they are kept until their process's object has ended. Times are ns.
 */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "import/amd/rocprofv3.h"
#include "import/import.h"

static const struct {
	const char *name;
	enum rocprofv3_what what;
} sections[] = {
	{ "kernel_dispatch", ROCPROFV3_DISPATCH },
	{ "memory_copy", ROCPROFV3_COPY },
	{ "hip_api", ROCPROFV3_CALL },
	{ "hsa_api", ROCPROFV3_CALL },
	{ "marker_api", ROCPROFV3_MARKER },
	{ "rccl_api", ROCPROFV3_LIBRARY },
	{ "rocdecode_api", ROCPROFV3_LIBRARY },
	{ "rocjpeg_api", ROCPROFV3_LIBRARY },
	{ "hipfile_api", ROCPROFV3_LIBRARY },
	{ "rocshmem_api", ROCPROFV3_LIBRARY },
};

/* ---- values ---- */

static void
read_string(struct plumb_pull *pull, void *string, void *own)
{
	struct rocprofv3_reader *reader = own;
	struct plumb_slice text;
	uint32_t *into = string;
	*into = plumb_pull_text(pull, &text)
	                ? plumb_builder_string(plumb_trace_builder(reader->trace), text.at,
	                                       text.bytes)
	                : PLUMB_NONE;
}

/* {"handle": 7}, where newer versions do not write 7. */
static const struct plumb_pull_field handle_fields[] = {
	PLUMB_PULL_FIELD("handle", INTEGER, .offset = 0),
	{ 0 },
};

/* {"internal": 7, "external": 0}, likewise. */
static const struct plumb_pull_field correlation_fields[] = {
	PLUMB_PULL_FIELD("internal", INTEGER, .offset = 0),
	{ 0 },
};

static const struct plumb_pull_field three_fields[] = {
	PLUMB_PULL_FIELD("x", INTEGER, .offset = 0),
	PLUMB_PULL_FIELD("y", INTEGER, .offset = sizeof(int64_t)),
	PLUMB_PULL_FIELD("z", INTEGER, .offset = 2 * sizeof(int64_t)),
	{ 0 },
};

/* ---- records ---- */

/* A number, or its name. */
static void
read_operation(struct plumb_pull *pull, void *into, void *own)
{
	struct rocprofv3_record *record = into;
	if (plumb_pull_next(pull) == '"')
		read_string(pull, &record->name, own);
	else
		plumb_pull_integer(pull, &record->operation);
}

/* The members of "dispatch_info" are those of the record, but for itself. */
#define AT(member) PLUMB_PULL_AT(struct rocprofv3_record, member)
static const struct plumb_pull_field record_fields[] = {
	PLUMB_PULL_FIELD("dispatch_info", OBJECT, .inner = record_fields + 1),
	PLUMB_PULL_FIELD("kind", INTEGER, AT(kind)),
	PLUMB_PULL_FIELD("operation", CALL, .read = read_operation),
	PLUMB_PULL_FIELD("thread_id", INTEGER, AT(thread)),
	PLUMB_PULL_FIELD("correlation_id", INTEGER, AT(correlation), .inner = correlation_fields),
	PLUMB_PULL_FIELD("start_timestamp", INTEGER, AT(start)),
	PLUMB_PULL_FIELD("end_timestamp", INTEGER, AT(end)),
	PLUMB_PULL_FIELD("agent_id", INTEGER, AT(agent), .inner = handle_fields),
	PLUMB_PULL_FIELD("src_agent_id", INTEGER, AT(from), .inner = handle_fields),
	PLUMB_PULL_FIELD("dst_agent_id", INTEGER, AT(to), .inner = handle_fields),
	PLUMB_PULL_FIELD("queue_id", INTEGER, AT(queue), .inner = handle_fields),
	PLUMB_PULL_FIELD("stream_id", INTEGER, AT(stream), .inner = handle_fields),
	PLUMB_PULL_FIELD("kernel_id", INTEGER, AT(kernel)),
	PLUMB_PULL_FIELD("bytes", INTEGER, AT(bytes)),
	PLUMB_PULL_FIELD("group_segment_size", INTEGER, AT(shared)),
	PLUMB_PULL_FIELD("workgroup_size", OBJECT, AT(group), .inner = three_fields),
	PLUMB_PULL_FIELD("grid_size", OBJECT, AT(grid), .inner = three_fields),
	{ 0 },
};
#undef AT

static const struct rocprofv3_record no_record = {
	.start = PLUMB_UNKNOWN,
	.end = PLUMB_UNKNOWN,
	.thread = PLUMB_UNKNOWN,
	.kind = -1,
	.operation = -1,
	.name = PLUMB_NONE,
	.agent = PLUMB_UNKNOWN,
	.from = PLUMB_UNKNOWN,
	.to = PLUMB_UNKNOWN,
	.queue = PLUMB_UNKNOWN,
	.stream = PLUMB_UNKNOWN,
	.kernel = PLUMB_UNKNOWN,
	.bytes = PLUMB_UNKNOWN,
	.shared = PLUMB_UNKNOWN,
	.grid = { PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_UNKNOWN },
	.group = { PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_UNKNOWN },
};

/* Sections of records that are not used are counted under their names. */
static void
read_section(void *own)
{
	static const struct plumb_pull_field nothing[] = { { 0 } };
	struct rocprofv3_reader *reader = own;
	struct plumb_pull *pull = &reader->pull;
	struct rocprofv3_record record, initial = no_record, *added;
	const struct plumb_pull_field *fields = nothing;
	char name[sizeof pull->part];
	int64_t others = 0;
	memcpy(name, pull->part, sizeof name);
	for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
		if (!strcmp(name, sections[i].name)) {
			initial.what = sections[i].what;
			fields = record_fields;
		}
	bool list = plumb_pull_enter_long(pull, '[');
	while (list && plumb_pull_row(pull, fields, &record, &initial, sizeof record, reader)) {
		others += fields == nothing;
		added = fields == nothing ? NULL : plumb_vec_add(&reader->records);
		if (added)
			*added = record;
		reader->no_memory |= !added && fields != nothing;
	}
	plumb_trace_count(reader->trace, PLUMB_FATE_UNUSED, name, others);
}

/* ---- what the numbers mean ---- */

struct read_agent {
	struct rocprofv3_agent agent;
	int64_t simds, waves;
	uint32_t product;
};

#define AT(member) PLUMB_PULL_AT(struct read_agent, member)
static const struct plumb_pull_field agent_fields[] = {
	PLUMB_PULL_FIELD("id", INTEGER, AT(agent.handle), .inner = handle_fields),
	PLUMB_PULL_FIELD("type", INTEGER, AT(agent.type)),
	PLUMB_PULL_FIELD("logical_node_type_id", INTEGER, AT(agent.ordinal)),
	PLUMB_PULL_FIELD("name", CALL, AT(agent.name), .read = read_string),
	PLUMB_PULL_FIELD("product_name", CALL, AT(product), .read = read_string),
	PLUMB_PULL_FIELD("cu_count", INTEGER, AT(agent.units)),
	PLUMB_PULL_FIELD("simd_per_cu", INTEGER, AT(simds)),
	PLUMB_PULL_FIELD("max_waves_per_simd", INTEGER, AT(waves)),
	{ 0 },
};
#undef AT

static void
read_agents(void *own)
{
	static const struct read_agent initial = {
		{ PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_UNKNOWN,
		  PLUMB_NONE },
		PLUMB_UNKNOWN,
		PLUMB_UNKNOWN,
		PLUMB_NONE,
	};
	struct rocprofv3_reader *reader = own;
	struct plumb_pull *pull = &reader->pull;
	struct read_agent row;
	bool list = plumb_pull_enter_long(pull, '[');
	while (list && plumb_pull_row(pull, agent_fields, &row, &initial, sizeof row, reader)) {
		struct rocprofv3_agent *agent = &row.agent, *added;
		if (row.product != PLUMB_NONE)
			agent->name = row.product;
		if (row.simds == PLUMB_UNKNOWN || row.waves == PLUMB_UNKNOWN ||
		    __builtin_mul_overflow(row.simds, row.waves, &agent->waves))
			agent->waves = PLUMB_UNKNOWN;
		if (agent->type == ROCPROFV3_GPU && agent->ordinal == PLUMB_UNKNOWN)
			agent->ordinal = reader->gpus;
		reader->gpus += agent->type == ROCPROFV3_GPU;
		added = reader->agents.count < ROCPROFV3_AGENTS_MAX ? plumb_vec_add(&reader->agents)
		                                                    : NULL;
		if (added)
			*added = *agent;
	}
}

struct read_symbol {
	struct rocprofv3_symbol symbol;
	uint32_t plain, demangled;
};

#define AT(member) PLUMB_PULL_AT(struct read_symbol, member)
static const struct plumb_pull_field symbol_fields[] = {
	PLUMB_PULL_FIELD("kernel_id", INTEGER, AT(symbol.id)),
	PLUMB_PULL_FIELD("kernel_name", CALL, AT(plain), .read = read_string),
	PLUMB_PULL_FIELD("arch_vgpr_count", INTEGER, AT(symbol.registers)),
	PLUMB_PULL_FIELD("formatted_kernel_name", CALL, AT(symbol.name), .read = read_string),
	PLUMB_PULL_FIELD("demangled_kernel_name", CALL, AT(demangled), .read = read_string),
	{ 0 },
};
#undef AT

static void
read_symbols(void *own)
{
	static const struct read_symbol initial = { { PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_NONE },
		                                    PLUMB_NONE,
		                                    PLUMB_NONE };
	struct rocprofv3_reader *reader = own;
	struct plumb_pull *pull = &reader->pull;
	struct read_symbol row;
	bool list = plumb_pull_enter_long(pull, '[');
	while (list && plumb_pull_row(pull, symbol_fields, &row, &initial, sizeof row, reader)) {
		struct rocprofv3_symbol *symbol = &row.symbol, *added;
		if (symbol->name == PLUMB_NONE)
			symbol->name = row.demangled != PLUMB_NONE ? row.demangled : row.plain;
		if (plumb_rocprofv3_symbol(reader, symbol->id))
			continue; /* the first stands */
		added = plumb_vec_add(&reader->symbols);
		if (!added ||
		    plumb_map_add(&reader->symbol_map, plumb_hash_mix((uint64_t)symbol->id, 0),
		                  reader->symbols.count - 1) < 0)
			reader->no_memory = true;
		if (added)
			*added = *symbol;
	}
}

/* The item may be read twice, so KIND, which was set anew, says how many names there are. */
static void
read_operation_name(struct plumb_pull *pull, void *into, void *own)
{
	struct rocprofv3_reader *reader = own;
	struct rocprofv3_kind *kind = into;
	uint32_t *name;
	reader->operations.count = kind->first + kind->count;
	name = plumb_vec_add(&reader->operations);
	reader->no_memory |= !name;
	if (!name) {
		plumb_pull_skip(pull);
		return;
	}
	read_string(pull, name, own);
	kind->count++;
}

/* {"kind": "HIP_RUNTIME_API", "operations": ["hipApiName", …]} */
static const struct plumb_pull_field kind_fields[] = {
	PLUMB_PULL_FIELD("kind", CALL, PLUMB_PULL_AT(struct rocprofv3_kind, name),
	                 .read = read_string),
	PLUMB_PULL_FIELD("operations", LIST, .read = read_operation_name),
	{ 0 },
};

static void
read_kinds(void *own)
{
	struct rocprofv3_reader *reader = own;
	struct plumb_pull *pull = &reader->pull;
	struct rocprofv3_kind kind, initial = { PLUMB_NONE, reader->operations.count, 0 }, *added;
	bool list = plumb_pull_enter_long(pull, '[');
	while (list && plumb_pull_row(pull, kind_fields, &kind, &initial, sizeof kind, reader)) {
		added = plumb_vec_add(&reader->kinds);
		if (added)
			*added = kind;
		reader->no_memory |= !added;
		initial.first = kind.first + kind.count;
	}
}

/* {"key": 12, "value": "text"}: the correlation of a marker. */
static const struct plumb_pull_field message_fields[] = {
	PLUMB_PULL_FIELD("key", INTEGER, PLUMB_PULL_AT(struct rocprofv3_message, correlation)),
	PLUMB_PULL_FIELD("value", CALL, PLUMB_PULL_AT(struct rocprofv3_message, text),
	                 .read = read_string),
	{ 0 },
};

static void
read_messages(void *own)
{
	static const struct rocprofv3_message initial = { PLUMB_UNKNOWN, PLUMB_NONE };
	struct rocprofv3_reader *reader = own;
	struct plumb_pull *pull = &reader->pull;
	struct rocprofv3_message message, *added;
	bool list = plumb_pull_enter_long(pull, '[');
	while (list &&
	       plumb_pull_row(pull, message_fields, &message, &initial, sizeof message, reader)) {
		if (message.text == PLUMB_NONE ||
		    plumb_rocprofv3_message(reader, message.correlation) != PLUMB_NONE)
			continue; /* the first stands */
		added = plumb_vec_add(&reader->messages);
		if (!added || plumb_map_add(&reader->message_map,
		                            plumb_hash_mix((uint64_t)message.correlation, 0),
		                            reader->messages.count - 1) < 0)
			reader->no_memory = true;
		if (added)
			*added = message;
	}
}

/* ["program", "argument"], as one text. What does not fit is cut off. */
static void
read_command(struct plumb_pull *pull, void *into, void *own)
{
	struct rocprofv3_reader *reader = own;
	struct plumb_slice word;
	uint32_t *command = into;
	char text[1024] = "";
	bool list = plumb_pull_enter(pull, '[');
	if (!list)
		plumb_pull_skip(pull);
	while (list && plumb_pull_item(pull)) {
		size_t used = strlen(text);
		if (plumb_pull_text(pull, &word))
			snprintf(text + used, sizeof text - used, "%s%.*s", used ? " " : "",
			         word.bytes < sizeof text ? (int)word.bytes : 0, word.at);
	}
	*command =
		*text ? plumb_builder_command(plumb_trace_builder(reader->trace), text, sizeof text)
		      : PLUMB_NONE;
}

#define AT(member) PLUMB_PULL_AT(struct rocprofv3_reader, member)
static const struct plumb_pull_field node_fields[] = {
	PLUMB_PULL_FIELD("hostname", CALL, AT(host), .read = read_string),
	{ 0 },
};
static const struct plumb_pull_field metadata_fields[] = {
	PLUMB_PULL_FIELD("node", OBJECT, .inner = node_fields),
	PLUMB_PULL_FIELD("pid", INTEGER, AT(pid)),
	PLUMB_PULL_FIELD("command", CALL, AT(command), .read = read_command),
	{ 0 },
};
#undef AT

static void
read_metadata(void *own)
{
	struct rocprofv3_reader *reader = own;
	PLUMB_PULL_WHOLE(&reader->pull)
	plumb_pull_object(&reader->pull, metadata_fields, reader, reader);
}

static void
forget_process(struct rocprofv3_reader *reader)
{
	plumb_vec_free(&reader->records);
	plumb_vec_free(&reader->agents);
	plumb_vec_free(&reader->symbols);
	plumb_map_free(&reader->symbol_map);
	plumb_vec_free(&reader->kinds);
	plumb_vec_free(&reader->operations);
	plumb_vec_free(&reader->messages);
	plumb_map_free(&reader->message_map);
	reader->pid = PLUMB_UNKNOWN;
	reader->host = reader->command = PLUMB_NONE;
	reader->gpus = 0;
}

/* ---- the file ---- */

static void
read_strings(void *own)
{
	static const struct plumb_pull_part parts[] = {
		{ "buffer_records", read_kinds },
		{ "marker_api", read_messages },
		{ 0 },
	};
	struct plumb_pull *pull = &((struct rocprofv3_reader *)own)->pull;
	if (plumb_pull_enter_long(pull, '{'))
		plumb_pull_parts(pull, parts, own);
}

static void
read_records(void *own)
{
	static const struct plumb_pull_part parts[] = { { NULL, read_section } };
	struct plumb_pull *pull = &((struct rocprofv3_reader *)own)->pull;
	if (plumb_pull_enter_long(pull, '{'))
		plumb_pull_parts(pull, parts, own);
}

static void
read_process(struct rocprofv3_reader *reader)
{
	static const struct plumb_pull_part parts[] = {
		{ "metadata", read_metadata },      { "agents", read_agents },
		{ "strings", read_strings },        { "kernel_symbols", read_symbols },
		{ "buffer_records", read_records }, { 0 },
	};
	forget_process(reader);
	if (plumb_pull_enter_long(&reader->pull, '{'))
		plumb_pull_parts(&reader->pull, parts, reader);
	if (!plumb_pull_failed(&reader->pull))
		plumb_rocprofv3_take_process(reader);
}

/* A list of processes, or one. */
static void
read_tool(void *own)
{
	struct rocprofv3_reader *reader = own;
	struct plumb_pull *pull = &reader->pull;
	bool list = false, more = false;
	PLUMB_PULL_WHOLE(pull)
	list = plumb_pull_enter(pull, '[');
	if (!list)
		read_process(reader);
	while (list) {
		PLUMB_PULL_WHOLE(pull)
		more = plumb_pull_item(pull);
		if (!more || plumb_pull_failed(pull))
			return;
		read_process(reader);
	}
}

static int
read_rocprofv3(struct plumb_import_file *file, struct plumb_trace *trace, struct plumb_error *error)
{
	static const struct plumb_pull_part parts[] = { { "rocprofiler-sdk-tool", read_tool },
		                                        { 0 } };
	struct rocprofv3_reader reader = { .trace = trace };
	int code = plumb_pull_open(&reader.pull, file->input, error);
	if (!code) {
		if (plumb_pull_enter_long(&reader.pull, '{'))
			plumb_pull_parts(&reader.pull, parts, &reader);
		if (plumb_pull_failed(&reader.pull))
			code = plumb_pull_error(&reader.pull, file->path, error);
		else if (reader.no_memory)
			code = plumb_fail_memory(error, "to read %s", file->path);
	}
	forget_process(&reader);
	plumb_pull_close(&reader.pull);
	return code;
}

static int
probe_rocprofv3(const struct plumb_import_file *file)
{
	const char *at = plumb_import_text(file);
	return *at == '{' && strstr(at, "\"rocprofiler-sdk-tool\"") ? 95 : 0;
}

const struct plumb_format plumb_format_rocprofv3 = {
	.name = "rocprofv3",
	.title = "rocprofv3 JSON",
	.probe = probe_rocprofv3,
	.read = read_rocprofv3,
};
