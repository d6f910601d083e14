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
#include "import/import.h"
#include "import/rocprofv3.h"

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

static uint32_t
read_string(struct rocprofv3_reader *reader)
{
	struct plumb_slice text;
	if (!plumb_pull_text(&reader->pull, &text))
		return PLUMB_NONE;
	return plumb_builder_string(plumb_trace_builder(reader->trace), text.at, text.bytes);
}

/* {"handle": 7}, or 7. */
static void
read_handle(struct plumb_pull *pull, int64_t *handle)
{
	struct plumb_slice key;
	if (!plumb_pull_enter(pull, '{')) {
		plumb_pull_integer(pull, handle);
		return;
	}
	while (plumb_pull_member(pull, &key))
		if (plumb_slice_is(key, "handle"))
			plumb_pull_integer(pull, handle);
		else
			plumb_pull_skip(pull);
}

/* {"internal": 7, "external": 0}, or 7. */
static void
read_correlation(struct plumb_pull *pull, int64_t *correlation)
{
	struct plumb_slice key;
	if (!plumb_pull_enter(pull, '{')) {
		plumb_pull_integer(pull, correlation);
		return;
	}
	while (plumb_pull_member(pull, &key))
		if (plumb_slice_is(key, "internal"))
			plumb_pull_integer(pull, correlation);
		else
			plumb_pull_skip(pull);
}

/* {"x": 1, "y": 1, "z": 1} */
static void
read_three(struct plumb_pull *pull, int64_t three[3])
{
	struct plumb_slice key;
	if (!plumb_pull_enter(pull, '{')) {
		plumb_pull_skip(pull);
		return;
	}
	while (plumb_pull_member(pull, &key))
		if (key.bytes == 1 && *key.at >= 'x' && *key.at <= 'z')
			plumb_pull_integer(pull, &three[*key.at - 'x']);
		else
			plumb_pull_skip(pull);
}

/* ---- records ---- */

static void
read_field(struct rocprofv3_reader *reader, struct plumb_slice key, struct rocprofv3_record *record)
{
	struct plumb_pull *pull = &reader->pull;
	if (plumb_slice_is(key, "start_timestamp"))
		plumb_pull_integer(pull, &record->start);
	else if (plumb_slice_is(key, "end_timestamp"))
		plumb_pull_integer(pull, &record->end);
	else if (plumb_slice_is(key, "correlation_id"))
		read_correlation(pull, &record->correlation);
	else if (plumb_slice_is(key, "thread_id"))
		plumb_pull_integer(pull, &record->thread);
	else if (plumb_slice_is(key, "kind"))
		plumb_pull_integer(pull, &record->kind);
	else if (plumb_slice_is(key, "operation")) {
		if (plumb_pull_next(pull) == '"')
			record->name = read_string(reader);
		else
			plumb_pull_integer(pull, &record->operation);
	} else if (plumb_slice_is(key, "agent_id"))
		read_handle(pull, &record->agent);
	else if (plumb_slice_is(key, "src_agent_id"))
		read_handle(pull, &record->from);
	else if (plumb_slice_is(key, "dst_agent_id"))
		read_handle(pull, &record->to);
	else if (plumb_slice_is(key, "queue_id"))
		read_handle(pull, &record->queue);
	else if (plumb_slice_is(key, "stream_id"))
		read_handle(pull, &record->stream);
	else if (plumb_slice_is(key, "kernel_id"))
		plumb_pull_integer(pull, &record->kernel);
	else if (plumb_slice_is(key, "bytes"))
		plumb_pull_integer(pull, &record->bytes);
	else if (plumb_slice_is(key, "group_segment_size"))
		plumb_pull_integer(pull, &record->shared);
	else if (plumb_slice_is(key, "workgroup_size"))
		read_three(pull, record->group);
	else if (plumb_slice_is(key, "grid_size"))
		read_three(pull, record->grid);
	else
		plumb_pull_skip(pull);
}

static void
read_record(struct rocprofv3_reader *reader, enum rocprofv3_what what,
            struct rocprofv3_record *record)
{
	struct plumb_pull *pull = &reader->pull;
	struct plumb_slice key;
	*record = (struct rocprofv3_record){
		.what = what,
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
	if (!plumb_pull_enter(pull, '{')) {
		plumb_pull_skip(pull);
		return;
	}
	while (plumb_pull_member(pull, &key)) {
		if (!plumb_slice_is(key, "dispatch_info")) {
			read_field(reader, key, record);
		} else if (plumb_pull_enter(pull, '{')) {
			while (plumb_pull_member(pull, &key))
				read_field(reader, key, record);
		} else {
			plumb_pull_skip(pull);
		}
	}
}

/* Goes into a list; anything else is skipped. */
static bool
enter_list(struct plumb_pull *pull)
{
	bool list = false;
	PLUMB_PULL_WHOLE(pull)
	list = plumb_pull_enter(pull, '[');
	if (!list)
		plumb_pull_skip_long(pull);
	return list && !plumb_pull_failed(pull);
}

static void
read_section(struct rocprofv3_reader *reader, const char *name)
{
	struct plumb_pull *pull = &reader->pull;
	enum rocprofv3_what what = ROCPROFV3_OTHER;
	int64_t others = 0;
	for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
		if (!strcmp(name, sections[i].name))
			what = sections[i].what;
	for (bool more = enter_list(pull); more;) {
		struct rocprofv3_record record, *added;
		PLUMB_PULL_WHOLE(pull)
		{
			more = plumb_pull_item(pull);
			if (more && what == ROCPROFV3_OTHER)
				plumb_pull_skip(pull);
			else if (more)
				read_record(reader, what, &record);
		}
		if (!more || plumb_pull_failed(pull))
			break;
		others += what == ROCPROFV3_OTHER;
		if (what == ROCPROFV3_OTHER)
			continue;
		added = plumb_vec_add(&reader->records);
		if (added)
			*added = record;
		reader->no_memory |= !added;
	}
	plumb_trace_count(reader->trace, PLUMB_FATE_UNUSED, name, others);
}

/* ---- what the numbers mean ---- */

static void
read_agent(struct rocprofv3_reader *reader, struct rocprofv3_agent *agent)
{
	struct plumb_pull *pull = &reader->pull;
	struct plumb_slice key;
	uint32_t product = PLUMB_NONE;
	int64_t simds = PLUMB_UNKNOWN, waves = PLUMB_UNKNOWN;
	*agent = (struct rocprofv3_agent){ PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_UNKNOWN,
		                           PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_NONE };
	if (!plumb_pull_enter(pull, '{')) {
		plumb_pull_skip(pull);
		return;
	}
	while (plumb_pull_member(pull, &key))
		if (plumb_slice_is(key, "id"))
			read_handle(pull, &agent->handle);
		else if (plumb_slice_is(key, "type"))
			plumb_pull_integer(pull, &agent->type);
		else if (plumb_slice_is(key, "logical_node_type_id"))
			plumb_pull_integer(pull, &agent->ordinal);
		else if (plumb_slice_is(key, "name"))
			agent->name = read_string(reader);
		else if (plumb_slice_is(key, "product_name"))
			product = read_string(reader);
		else if (plumb_slice_is(key, "cu_count"))
			plumb_pull_integer(pull, &agent->units);
		else if (plumb_slice_is(key, "simd_per_cu"))
			plumb_pull_integer(pull, &simds);
		else if (plumb_slice_is(key, "max_waves_per_simd"))
			plumb_pull_integer(pull, &waves);
		else
			plumb_pull_skip(pull);
	if (product != PLUMB_NONE)
		agent->name = product;
	if (simds == PLUMB_UNKNOWN || waves == PLUMB_UNKNOWN ||
	    __builtin_mul_overflow(simds, waves, &agent->waves))
		agent->waves = PLUMB_UNKNOWN;
}

static void
read_agents(struct rocprofv3_reader *reader)
{
	struct plumb_pull *pull = &reader->pull;
	for (bool more = enter_list(pull); more;) {
		struct rocprofv3_agent agent, *added;
		PLUMB_PULL_WHOLE(pull)
		{
			more = plumb_pull_item(pull);
			if (more)
				read_agent(reader, &agent);
		}
		if (!more || plumb_pull_failed(pull))
			return;
		if (agent.type == ROCPROFV3_GPU && agent.ordinal == PLUMB_UNKNOWN)
			agent.ordinal = reader->gpus;
		reader->gpus += agent.type == ROCPROFV3_GPU;
		added = reader->agents.count < ROCPROFV3_AGENTS_MAX ? plumb_vec_add(&reader->agents)
		                                                    : NULL;
		if (added)
			*added = agent;
	}
}

static void
read_symbol(struct rocprofv3_reader *reader, struct rocprofv3_symbol *symbol)
{
	struct plumb_pull *pull = &reader->pull;
	struct plumb_slice key;
	uint32_t plain = PLUMB_NONE, demangled = PLUMB_NONE;
	*symbol = (struct rocprofv3_symbol){ PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_NONE };
	if (!plumb_pull_enter(pull, '{')) {
		plumb_pull_skip(pull);
		return;
	}
	while (plumb_pull_member(pull, &key))
		if (plumb_slice_is(key, "kernel_id"))
			plumb_pull_integer(pull, &symbol->id);
		else if (plumb_slice_is(key, "formatted_kernel_name"))
			symbol->name = read_string(reader);
		else if (plumb_slice_is(key, "demangled_kernel_name"))
			demangled = read_string(reader);
		else if (plumb_slice_is(key, "kernel_name"))
			plain = read_string(reader);
		else if (plumb_slice_is(key, "arch_vgpr_count"))
			plumb_pull_integer(pull, &symbol->registers);
		else
			plumb_pull_skip(pull);
	if (symbol->name == PLUMB_NONE)
		symbol->name = demangled != PLUMB_NONE ? demangled : plain;
}

static void
read_symbols(struct rocprofv3_reader *reader)
{
	struct plumb_pull *pull = &reader->pull;
	for (bool more = enter_list(pull); more;) {
		struct rocprofv3_symbol symbol, *added;
		PLUMB_PULL_WHOLE(pull)
		{
			more = plumb_pull_item(pull);
			if (more)
				read_symbol(reader, &symbol);
		}
		if (!more || plumb_pull_failed(pull))
			return;
		if (plumb_rocprofv3_symbol(reader, symbol.id))
			continue; /* the first stands */
		added = plumb_vec_add(&reader->symbols);
		if (!added ||
		    plumb_map_add(&reader->symbol_map, plumb_hash_mix((uint64_t)symbol.id, 0),
		                  reader->symbols.count - 1) < 0)
			reader->no_memory = true;
		if (added)
			*added = symbol;
	}
}

/* {"kind": "HIP_RUNTIME_API", "operations": ["hipApiName", …]} */
static void
read_kind(struct rocprofv3_reader *reader, struct rocprofv3_kind *kind)
{
	struct plumb_pull *pull = &reader->pull;
	struct plumb_slice key;
	*kind = (struct rocprofv3_kind){ PLUMB_NONE, reader->operations.count, 0 };
	if (!plumb_pull_enter(pull, '{')) {
		plumb_pull_skip(pull);
		return;
	}
	while (plumb_pull_member(pull, &key))
		if (plumb_slice_is(key, "kind")) {
			kind->name = read_string(reader);
		} else if (plumb_slice_is(key, "operations") && plumb_pull_enter(pull, '[')) {
			while (plumb_pull_item(pull)) {
				uint32_t *name = plumb_vec_add(&reader->operations);
				uint32_t text = read_string(reader);
				if (name)
					*name = text;
				reader->no_memory |= !name;
			}
			kind->count = reader->operations.count - kind->first;
		} else {
			plumb_pull_skip(pull);
		}
}

static void
read_kinds(struct rocprofv3_reader *reader)
{
	struct plumb_pull *pull = &reader->pull;
	for (bool more = enter_list(pull); more;) {
		uint32_t operations = reader->operations.count;
		struct rocprofv3_kind kind, *added;
		PLUMB_PULL_WHOLE(pull)
		{
			reader->operations.count = operations;
			more = plumb_pull_item(pull);
			if (more)
				read_kind(reader, &kind);
		}
		if (!more || plumb_pull_failed(pull))
			return;
		added = plumb_vec_add(&reader->kinds);
		if (added)
			*added = kind;
		reader->no_memory |= !added;
	}
}

/* {"key": 12, "value": "text"}: the correlation of a marker. */
static void
read_messages(struct rocprofv3_reader *reader)
{
	struct plumb_pull *pull = &reader->pull;
	for (bool more = enter_list(pull); more;) {
		struct rocprofv3_message message = { PLUMB_UNKNOWN, PLUMB_NONE }, *added;
		struct plumb_slice key;
		PLUMB_PULL_WHOLE(pull)
		{
			more = plumb_pull_item(pull);
			bool object = more && plumb_pull_enter(pull, '{');
			if (more && !object)
				plumb_pull_skip(pull);
			while (object && plumb_pull_member(pull, &key))
				if (plumb_slice_is(key, "key"))
					plumb_pull_integer(pull, &message.correlation);
				else if (plumb_slice_is(key, "value"))
					message.text = read_string(reader);
				else
					plumb_pull_skip(pull);
		}
		if (!more || plumb_pull_failed(pull))
			return;
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

/* ["program", "argument"], as one text; what is longer than there is room is cut off. */
static uint32_t
read_command(struct rocprofv3_reader *reader)
{
	struct plumb_pull *pull = &reader->pull;
	struct plumb_slice word;
	char text[1024] = "";
	if (!plumb_pull_enter(pull, '[')) {
		plumb_pull_skip(pull);
		return PLUMB_NONE;
	}
	while (plumb_pull_item(pull)) {
		size_t used = strlen(text);
		if (plumb_pull_text(pull, &word))
			snprintf(text + used, sizeof text - used, "%s%.*s", used ? " " : "",
			         word.bytes < sizeof text ? (int)word.bytes : 0, word.at);
	}
	return *text ? plumb_builder_command(plumb_trace_builder(reader->trace), text, sizeof text)
	             : PLUMB_NONE;
}

static void
read_metadata(struct rocprofv3_reader *reader)
{
	struct plumb_pull *pull = &reader->pull;
	struct plumb_slice key;
	PLUMB_PULL_WHOLE(pull)
	{
		bool object = plumb_pull_enter(pull, '{');
		if (!object)
			plumb_pull_skip(pull);
		while (object && plumb_pull_member(pull, &key)) {
			if (plumb_slice_is(key, "pid"))
				plumb_pull_integer(pull, &reader->pid);
			else if (plumb_slice_is(key, "command"))
				reader->command = read_command(reader);
			else if (plumb_slice_is(key, "node") && plumb_pull_enter(pull, '{'))
				while (plumb_pull_member(pull, &key))
					if (plumb_slice_is(key, "hostname"))
						reader->host = read_string(reader);
					else
						plumb_pull_skip(pull);
			else
				plumb_pull_skip(pull);
		}
	}
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

/* The members of the object that comes, one by one; anything else is skipped. */
static void
each_member(struct rocprofv3_reader *reader,
            void (*read_value)(struct rocprofv3_reader *reader, const char *key))
{
	struct plumb_pull *pull = &reader->pull;
	struct plumb_slice key;
	char copy[64]; /* what reads the value moves the window, and the key with it */
	bool more = false;
	PLUMB_PULL_WHOLE(pull)
	more = plumb_pull_enter(pull, '{');
	if (!more)
		plumb_pull_skip_long(pull);
	while (more) {
		PLUMB_PULL_WHOLE(pull)
		more = plumb_pull_member(pull, &key);
		if (!more || plumb_pull_failed(pull))
			return;
		snprintf(copy, sizeof copy, "%.*s", key.bytes < sizeof copy ? (int)key.bytes : 0,
		         key.at);
		read_value(reader, copy);
		if (plumb_pull_failed(pull))
			return;
	}
}

static void
read_string_member(struct rocprofv3_reader *reader, const char *key)
{
	if (!strcmp(key, "buffer_records"))
		read_kinds(reader);
	else if (!strcmp(key, "marker_api"))
		read_messages(reader);
	else
		plumb_pull_skip_long(&reader->pull);
}

static void
read_process_member(struct rocprofv3_reader *reader, const char *key)
{
	if (!strcmp(key, "metadata"))
		read_metadata(reader);
	else if (!strcmp(key, "agents"))
		read_agents(reader);
	else if (!strcmp(key, "strings"))
		each_member(reader, read_string_member);
	else if (!strcmp(key, "kernel_symbols"))
		read_symbols(reader);
	else if (!strcmp(key, "buffer_records"))
		each_member(reader, read_section);
	else
		plumb_pull_skip_long(&reader->pull);
}

static void
read_process(struct rocprofv3_reader *reader)
{
	forget_process(reader);
	each_member(reader, read_process_member);
	if (!plumb_pull_failed(&reader->pull))
		plumb_rocprofv3_take_process(reader);
}

static void
read_top(struct rocprofv3_reader *reader, const char *key)
{
	struct plumb_pull *pull = &reader->pull;
	bool list = false, more = false;
	if (strcmp(key, "rocprofiler-sdk-tool") != 0) {
		plumb_pull_skip_long(pull);
		return;
	}
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
		if (plumb_pull_failed(pull))
			return;
	}
}

static int
read(struct plumb_import_file *file, struct plumb_trace *trace, struct plumb_error *error)
{
	struct rocprofv3_reader reader = { .trace = trace };
	int code = plumb_pull_open(&reader.pull, file->input, error);
	if (!code) {
		each_member(&reader, read_top);
		if (plumb_pull_failed(&reader.pull))
			code = plumb_pull_error(&reader.pull, file->path, error);
		else if (reader.no_memory)
			code = plumb_fail(error, PLUMB_ESYSTEM, "%s: not enough memory",
			                  file->path);
	}
	forget_process(&reader);
	plumb_pull_close(&reader.pull);
	return code;
}

static int
probe(const struct plumb_import_file *file)
{
	const char *at = plumb_import_text(file);
	return *at == '{' && strstr(at, "\"rocprofiler-sdk-tool\"") ? 95 : 0;
}

const struct plumb_format plumb_format_rocprofv3 = {
	.name = "rocprofv3",
	.title = "rocprofv3 JSON",
	.probe = probe,
	.read = read,
};
