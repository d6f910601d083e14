/* SPDX-License-Identifier: Apache-2.0 */
#include "import/spans/spans_private.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/hash.h"
#include "import/copies.h"

struct plumb_spans *
plumb_spans_new(struct plumb_trace *trace)
{
	struct plumb_spans *spans = calloc(1, sizeof *spans);
	if (spans)
		spans->trace = trace;
	return spans;
}

void
plumb_spans_free(struct plumb_spans *spans)
{
	if (!spans)
		return;
	plumb_vec_free(&spans->origins);
	plumb_map_free(&spans->origin_map);
	plumb_vec_free(&spans->rows);
	plumb_vec_free(&spans->times);
	plumb_vec_free(&spans->works);
	plumb_vec_free(&spans->numbers);
	plumb_vec_free(&spans->roots);
	plumb_map_free(&spans->ids);
	free(spans);
}

static uint32_t
string_of(struct plumb_spans *spans, struct plumb_slice text)
{
	return text.at ? plumb_builder_string(plumb_trace_builder(spans->trace), text.at,
	                                      text.bytes)
	               : PLUMB_NONE;
}

/* ---- values ---- */

static void
add_number(struct plumb_spans_value *value, int64_t number)
{
	if (value->count < 3)
		value->three[value->count] = number;
	value->count++;
}

/* "[8 1 1]", "(8, 1, 1)" */
static void
split_numbers(struct plumb_spans_value *value)
{
	const char *at = value->text.at, *end = at + value->text.bytes;
	while (at < end) {
		const char *from = at;
		while (at < end && *at >= '0' && *at <= '9')
			at++;
		int64_t number;
		if (at > from &&
		    plumb_slice_decimal((struct plumb_slice){ from, (size_t)(at - from) }, 0,
		                        &number))
			add_number(value, number);
		if (at < end)
			at++;
	}
}

void
plumb_spans_value(struct plumb_pull *pull, void *into, void *own)
{
	struct plumb_spans_value *value = into;
	*value = (struct plumb_spans_value){ 0 };
	(void)own;
	char next = plumb_pull_next(pull);
	if (next == '"') {
		plumb_pull_text(pull, &value->text);
		return;
	}
	if (next == '[') {
		plumb_pull_enter(pull, '[');
		while (plumb_pull_item(pull)) {
			int64_t number = PLUMB_UNKNOWN;
			plumb_pull_integer(pull, &number);
			add_number(value, number);
		}
		return;
	}
	const char *from = pull->at;
	plumb_pull_skip(pull);
	if (next && next != '{' && next != 'n' && pull->state == PLUMB_PULL_OK)
		value->text = (struct plumb_slice){ from, (size_t)(pull->at - from) };
}

static void
take_number(const struct plumb_spans_value *value, int64_t *number)
{
	int64_t read;
	if (value->text.at && plumb_slice_decimal(value->text, 0, &read))
		*number = read;
}

static void
take_three(const struct plumb_spans_value *value, int64_t three[3])
{
	struct plumb_spans_value own = *value;
	if (own.text.at)
		split_numbers(&own);
	if (own.count == 3)
		memcpy(three, own.three, sizeof own.three);
}

/* ---- origins ---- */

uint32_t
plumb_spans_origin(struct plumb_spans *spans, uint64_t scope, struct plumb_slice name)
{
	uint64_t own = plumb_hash_bytes(name.at ? name.at : "", name.bytes);
	uint64_t hash = plumb_hash_mix(own, scope);
	struct plumb_map_cursor at;
	for (uint32_t i = plumb_map_first(&spans->origin_map, hash, &at); i != PLUMB_MAP_NONE;
	     i = plumb_map_next(&spans->origin_map, &at))
		if (spans->origins.items[i].scope == scope && spans->origins.items[i].name == own)
			return i;
	struct plumb_spans_origin *made = plumb_vec_add(&spans->origins);
	if (!made || plumb_map_add(&spans->origin_map, hash, spans->origins.count - 1) < 0) {
		spans->no_memory = true;
		return PLUMB_NONE;
	}
	*made = (struct plumb_spans_origin){ .scope = scope,
		                             .name = own,
		                             .service = PLUMB_NONE,
		                             .host = PLUMB_NONE,
		                             .command = PLUMB_NONE,
		                             .pid = PLUMB_UNKNOWN,
		                             .rank = PLUMB_UNKNOWN,
		                             .process = PLUMB_NONE };
	return spans->origins.count - 1;
}

void
plumb_spans_origin_tag(struct plumb_spans *spans, uint32_t origin,
                       const struct plumb_spans_pair *pair)
{
	struct plumb_slice key = pair->key;
	const struct plumb_spans_value *value = &pair->value;
	if (origin >= spans->origins.count)
		return;
	struct plumb_spans_origin *own = &spans->origins.items[origin];
	if (plumb_slice_is(key, "service.name") || plumb_slice_is(key, "serviceName"))
		own->service = string_of(spans, value->text);
	else if (plumb_slice_is(key, "process.command_line"))
		own->command = value->text.at
		                       ? plumb_builder_command(plumb_trace_builder(spans->trace),
		                                               value->text.at, value->text.bytes)
		                       : PLUMB_NONE;
	else if (plumb_slice_is(key, "host.name") || plumb_slice_is(key, "hostname"))
		own->host = string_of(spans, value->text);
	else if (plumb_slice_is(key, "ip") && own->host == PLUMB_NONE)
		own->host = string_of(spans, value->text);
	else if (plumb_slice_is(key, "process.pid") || plumb_slice_is(key, "pid"))
		take_number(value, &own->pid);
	else if (plumb_slice_is(key, "plumb.rank"))
		take_number(value, &own->rank);
}

/* ---- ids ---- */

static bool
read_hexadecimal(struct plumb_slice text, uint64_t number[2])
{
	number[0] = number[1] = 0;
	for (size_t i = 0; i < text.bytes; i++) {
		unsigned char c = (unsigned char)(text.at[i] | 0x20);
		unsigned digit = 16;
		if (c >= '0' && c <= '9')
			digit = c - (unsigned)'0';
		else if (c >= 'a' && c <= 'f')
			digit = c - (unsigned)'a' + 10;
		if (digit == 16 || number[0] >> 60)
			return false;
		number[0] = number[0] << 4 | number[1] >> 60;
		number[1] = number[1] << 4 | digit;
	}
	return text.bytes > 0;
}

void
plumb_spans_trace_id(struct plumb_pull *pull, void *into, void *own)
{
	struct plumb_spans_id *id = into;
	struct plumb_slice text;
	(void)own;
	if (plumb_pull_text(pull, &text) && !read_hexadecimal(text, id->trace)) {
		id->trace[0] = plumb_hash_bytes(text.at, text.bytes);
		id->trace[1] = plumb_hash_mix(id->trace[0], text.bytes);
	}
}

void
plumb_spans_span_id(struct plumb_pull *pull, void *into, void *own)
{
	struct plumb_spans_id *id = into;
	struct plumb_slice text;
	uint64_t number[2];
	(void)own;
	if (!plumb_pull_text(pull, &text))
		return;
	if (!text.bytes)
		id->span = 0;
	else if (read_hexadecimal(text, number) && !number[0])
		id->span = number[1];
	else
		id->span = plumb_hash_bytes(text.at, text.bytes) | 1;
}

static uint64_t
id_hash(const struct plumb_spans_id *id)
{
	return plumb_hash_mix(plumb_hash_mix(id->trace[0], id->trace[1]), id->span);
}

uint32_t
plumb_spans_find(const struct plumb_spans *spans, const struct plumb_spans_id *id)
{
	struct plumb_map_cursor at;
	for (uint32_t i = id->span ? plumb_map_first(&spans->ids, id_hash(id), &at) : PLUMB_NONE;
	     i != PLUMB_MAP_NONE; i = plumb_map_next(&spans->ids, &at))
		if (!memcmp(&spans->rows.items[i].id, id, sizeof *id))
			return i;
	return PLUMB_NONE;
}

/* ---- tags ---- */

void
plumb_spans_item_start(struct plumb_spans_item *item, const struct plumb_pull_field *pair)
{
	*item = (struct plumb_spans_item){
		.pair = pair,
		.start_ns = PLUMB_UNKNOWN,
		.end_ns = PLUMB_UNKNOWN,
		.origin = PLUMB_NONE,
		.device = PLUMB_UNKNOWN,
		.context = PLUMB_UNKNOWN,
		.stream = PLUMB_UNKNOWN,
		.thread = PLUMB_UNKNOWN,
		.bytes = PLUMB_UNKNOWN,
		.launch = plumb_trace_no_launch,
		.all_bytes = PLUMB_UNKNOWN,
		.all_count = PLUMB_UNKNOWN,
		.all_least = PLUMB_UNKNOWN,
		.all_most = PLUMB_UNKNOWN,
		.all_deviation = PLUMB_UNKNOWN,
	};
}

/* XSP's names, and those of the layers that they stand for. */
static uint32_t
level_of(struct plumb_slice name)
{
	static const struct {
		const char *name;
		enum plumb_level level;
	} levels[] = {
		{ "APPLICATION", PLUMB_LEVEL_APPLICATION }, { "MODEL", PLUMB_LEVEL_MODEL },
		{ "FRAMEWORK", PLUMB_LEVEL_LAYER },         { "LAYER", PLUMB_LEVEL_LAYER },
		{ "OPERATOR", PLUMB_LEVEL_OPERATOR },       { "ML_LIBRARY", PLUMB_LEVEL_LIBRARY },
		{ "LIBRARY", PLUMB_LEVEL_LIBRARY },         { "SYSTEM_LIBRARY", PLUMB_LEVEL_CALL },
		{ "HARDWARE", PLUMB_LEVEL_CALL },
	};
	if (name.bytes > 6 && !strncasecmp(name.at + name.bytes - 6, "_TRACE", 6))
		name.bytes -= 6;
	for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
		if (name.bytes == strlen(levels[i].name) &&
		    !strncasecmp(name.at, levels[i].name, name.bytes))
			return levels[i].level;
	return PLUMB_LEVEL_UNKNOWN;
}

/* Where in an item the tags go that are a number, and those that are a text. */
#define FIELD(member) offsetof(struct plumb_spans_item, member)
static const struct {
	const char *key;
	size_t at;
} numbers[] = {
	{ "correlation_id", FIELD(correlation) },
	{ "gpu.correlation", FIELD(correlation) },
	{ "device_id", FIELD(device) },
	{ "gpu.device.ordinal", FIELD(device) },
	{ "context_id", FIELD(context) },
	{ "gpu.context", FIELD(context) },
	{ "stream_id", FIELD(stream) },
	{ "gpu.stream", FIELD(stream) },
	{ "thread_id", FIELD(thread) },
	{ "thread.id", FIELD(thread) },
	{ "bytes", FIELD(bytes) },
	{ "gpu.copy.bytes", FIELD(bytes) },
	{ "gpu.copies.bytes", FIELD(all_bytes) },
	{ "gpu.copies.count", FIELD(all_count) },
	{ "gpu.copies.bytes.least", FIELD(all_least) },
	{ "gpu.copies.bytes.most", FIELD(all_most) },
	{ "gpu.copies.bytes.deviation", FIELD(all_deviation) },
	{ "registers_per_thread", FIELD(launch.registers) },
	{ "gpu.kernel.registers", FIELD(launch.registers) },
	{ "static_sharedMemory", FIELD(launch.static_shared) },
	{ "gpu.kernel.shared.static", FIELD(launch.static_shared) },
	{ "dynamic_sharedMemory", FIELD(launch.dynamic_shared) },
	{ "gpu.kernel.shared.dynamic", FIELD(launch.dynamic_shared) },
	{ "gpu.kernel.occupancy", FIELD(launch.occupancy) },
	{ "code.line.number", FIELD(line) },
	{ "plumb.module.number", FIELD(line) },
	{ "plumb.module.timed", FIELD(timed) },
	{ "code.lineno", FIELD(line) },
}, texts[] = {
	{ "plumb.kind", FIELD(kind) },
	{ "name", FIELD(kernel) },
	{ "kernel_name", FIELD(kernel) },
	{ "copy_kind", FIELD(copy) },
	{ "src_kind", FIELD(from) },
	{ "dst_kind", FIELD(to) },
	{ "memory_kind", FIELD(to) },
	{ "function_name", FIELD(function) },
	{ "code.file.path", FIELD(file) },
	{ "code.filepath", FIELD(file) },
	{ "layer_sequence_index", FIELD(index) },
	{ "static_type", FIELD(type) },
	{ "static_op_name", FIELD(type) },
	{ "op_name", FIELD(type) },
	{ "layer_type", FIELD(type) },
	{ "layer_class", FIELD(type) },
	{ "op_type", FIELD(type) },
	{ "module", FIELD(type) },
	{ "class", FIELD(type) },
	{ "type", FIELD(type) },
	{ "plumb.module.class", FIELD(type) },
	{ "thread.name", FIELD(thread_name) },
	{ "gpu.device.uuid", FIELD(uuid) },
	{ "gpu.device.name", FIELD(model) },
	{ "framework_name", FIELD(framework) },
	{ "framework_version", FIELD(framework_version) },
	{ "batch_size", FIELD(batch) },
};

static void
take_metric(struct plumb_spans_item *item, struct plumb_slice name,
            const struct plumb_spans_value *value)
{
	int64_t number;
	if (!value->text.at || !name.bytes || item->metric_count == PLUMB_SPANS_METRICS ||
	    !plumb_slice_decimal(value->text, 0, &number))
		return;
	item->metrics[item->metric_count].name = name;
	item->metrics[item->metric_count++].text = value->text;
}

static void
take_tag(struct plumb_spans_item *item, struct plumb_slice key,
         const struct plumb_spans_value *value)
{
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		if (plumb_slice_is(key, numbers[i].key)) {
			take_number(value, (int64_t *)((char *)item + numbers[i].at));
			return;
		}
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (plumb_slice_is(key, texts[i].key)) {
			struct plumb_slice *to = (void *)((char *)item + texts[i].at);
			if (!to->bytes)
				*to = value->text;
			return;
		}
	if (plumb_slice_is(key, "trace_level") && value->text.at)
		item->level = level_of(value->text);
	else if (plumb_slice_is(key, "grid_dim") || plumb_slice_is(key, "gpu.kernel.grid"))
		take_three(value, item->launch.grid);
	else if (plumb_slice_is(key, "block_dim") || plumb_slice_is(key, "gpu.kernel.block"))
		take_three(value, item->launch.block);
	else if (plumb_slice_is(key, "cupti_domain") || plumb_slice_is(key, "cupti_callback_id") ||
	         plumb_slice_is(key, "cbid"))
		item->cupti = true;
	else if (plumb_slice_begins(key, "flop_count_") || plumb_slice_begins(key, "dram_") ||
	         plumb_slice_is(key, "achieved_occupancy"))
		take_metric(item, key, value);
}

bool
plumb_spans_pair(struct plumb_pull *pull, const struct plumb_pull_field *fields,
                 struct plumb_spans_pair *pair)
{
	*pair = (struct plumb_spans_pair){ 0 };
	plumb_pull_object(pull, fields, pair, NULL);
	return pair->key.at != NULL;
}

void
plumb_spans_tag(struct plumb_pull *pull, void *item, void *own)
{
	struct plumb_spans_pair pair;
	(void)own;
	if (plumb_spans_pair(pull, ((struct plumb_spans_item *)item)->pair, &pair))
		take_tag(item, pair.key, &pair.value);
}

void
plumb_spans_metric(struct plumb_pull *pull, void *item, void *own)
{
	struct plumb_spans_pair pair;
	(void)own;
	if (plumb_spans_pair(pull, ((struct plumb_spans_item *)item)->pair, &pair))
		take_metric(item, pair.key, &pair.value);
}

/* ---- spans ---- */

static uint32_t
copy_frame(struct plumb_spans *spans, const struct plumb_spans_item *item)
{
	enum plumb_memory_kind from = plumb_import_exact_memory(item->from);
	enum plumb_memory_kind to = plumb_import_exact_memory(item->to);
	if (from && to)
		return plumb_trace_copy_frame(spans->trace, from, to);
	return plumb_import_copy(spans->trace, item->copy.at ? item->copy : item->name);
}

/* The kind of the span's frame, and its level, from what is known of it. */
static uint32_t
classify_span(const struct plumb_spans_item *item, uint32_t *level)
{
	static const uint32_t kinds[PLUMB_LEVEL_COUNT] = {
		PLUMB_FRAME_RANGE,    PLUMB_FRAME_RANGE,   PLUMB_FRAME_RANGE,   PLUMB_FRAME_MODULE,
		PLUMB_FRAME_OPERATOR, PLUMB_FRAME_LIBRARY, PLUMB_FRAME_LIBRARY, PLUMB_FRAME_KERNEL,
	};
	char kind[32];
	*level = item->level;
	if (item->kind.at && item->kind.bytes < sizeof kind) {
		memcpy(kind, item->kind.at, item->kind.bytes);
		kind[item->kind.bytes] = '\0';
		int found = plumb_frame_kind_find(kind);
		*level = PLUMB_LEVEL_UNKNOWN; /* it says whose it is */
		if (found == PLUMB_FRAME_KERNEL || found == PLUMB_FRAME_COPY ||
		    found == PLUMB_FRAME_SET)
			*level = PLUMB_LEVEL_KERNEL;
		if (found > PLUMB_FRAME_ROOT)
			return (uint32_t)found;
	}
	*level =
		plumb_slice_begins(item->name, "gpu_") && item->level ? PLUMB_LEVEL_KERNEL : *level;
	if (*level == PLUMB_LEVEL_KERNEL && plumb_slice_is(item->name, "gpu_kernel"))
		return PLUMB_FRAME_KERNEL;
	if (*level == PLUMB_LEVEL_KERNEL && plumb_slice_is(item->name, "gpu_memcpy"))
		return PLUMB_FRAME_COPY;
	if (*level == PLUMB_LEVEL_KERNEL && plumb_slice_is(item->name, "gpu_memset"))
		return PLUMB_FRAME_SET;
	*level = item->cupti ? PLUMB_LEVEL_CALL : item->level;
	return item->cupti ? PLUMB_FRAME_GPU_API : kinds[*level];
}

static uint32_t
frame_of(struct plumb_spans *spans, const struct plumb_spans_item *item, uint32_t kind)
{
	struct plumb_slice name = item->name;
	bool own = item->kind.at; /* plumb's: the span's name is the frame's */
	if (kind == PLUMB_FRAME_KERNEL && !own && item->kernel.bytes)
		name = item->kernel;
	if (kind == PLUMB_FRAME_COPY && !own)
		return copy_frame(spans, item);
	if (kind == PLUMB_FRAME_SET && !own) {
		enum plumb_memory_kind to = plumb_import_exact_memory(item->to);
		return plumb_trace_set_frame(spans->trace, to ? to : PLUMB_MEMORY_UNKNOWN);
	}
	if (kind == PLUMB_FRAME_GPU_API && item->function.bytes)
		name = item->function;
	if (kind == PLUMB_FRAME_MODULE)
		return plumb_trace_frame_at(spans->trace, kind, name, item->type,
		                            own ? item->line : 0);
	if (item->file.bytes && (!own || kind == PLUMB_FRAME_PYTHON))
		return plumb_trace_frame_at(spans->trace, kind, name, item->file, item->line);
	return plumb_trace_frame(spans->trace, kind, name);
}

static void
add_work(struct plumb_spans *spans, const struct plumb_spans_item *item)
{
	struct plumb_spans_work *work = plumb_vec_add(&spans->works);
	if (!work) {
		spans->no_memory = true;
		return;
	}
	*work = (struct plumb_spans_work){
		.span = spans->rows.count - 1,
		.uuid = string_of(spans, item->uuid),
		.model = string_of(spans, item->model),
		.device = item->device,
		.context = item->context,
		.stream = item->stream,
		.bytes = item->bytes,
		.all_bytes = item->all_bytes,
		.all_count = item->all_count,
		.all_least = item->all_least,
		.all_most = item->all_most,
		.all_deviation = item->all_deviation,
		.launch = item->launch,
		.launched = memcmp(&item->launch, &plumb_trace_no_launch, sizeof item->launch) != 0,
	};
}

/* Fractions (occupancy, efficiency) are kept in millionths. */
static void
add_metrics(struct plumb_spans *spans, const struct plumb_spans_item *item)
{
	struct plumb_builder *builder = plumb_trace_builder(spans->trace);
	for (int i = 0; i < item->metric_count; i++) {
		struct plumb_slice name = item->metrics[i].name, text = item->metrics[i].text;
		bool part = memchr(text.at, '.', text.bytes) &&
		            memmem(name.at, name.bytes, "occupancy", 9);
		bool bytes = name.bytes > 6 && !memcmp(name.at + name.bytes - 6, "_bytes", 6);
		int64_t number;
		if (!plumb_slice_decimal(text, part ? 6 : 0, &number))
			continue;
		uint32_t metric =
			plumb_builder_metric(builder, string_of(spans, name),
		                             plumb_builder_text(builder, part    ? "ppm"
		                                                         : bytes ? "byte"
		                                                                 : "count"));
		struct plumb_spans_number *added = metric ? plumb_vec_add(&spans->numbers) : NULL;
		if (added)
			*added = (struct plumb_spans_number){ spans->rows.count - 1, metric,
				                              number };
		else
			plumb_trace_count_slice(spans->trace, PLUMB_FATE_UNUSED, name, 1);
	}
}

/* What XSP says of the run in its first spans. */
static void
add_facts(struct plumb_spans *spans, const struct plumb_spans_item *item)
{
	plumb_trace_environment(spans->trace, "framework.name", item->framework);
	plumb_trace_environment(spans->trace, "framework.version", item->framework_version);
	plumb_trace_environment(spans->trace, "batch.size", item->batch);
}

/* Is it there already, word for word? */
static bool
is_repeated(const struct plumb_spans *spans, const struct plumb_spans_item *item, uint32_t frame)
{
	uint32_t first = plumb_spans_find(spans, &item->id);
	return first != PLUMB_NONE && spans->rows.items[first].frame == frame &&
	       spans->times.items[first].start_ns == item->start_ns &&
	       spans->times.items[first].end_ns == item->end_ns;
}

void
plumb_spans_add(struct plumb_spans *spans, const struct plumb_spans_item *item)
{
	if (item->kind.at && plumb_slice_is(item->kind, "process")) {
		struct plumb_spans_id *root = plumb_vec_add(&spans->roots);
		spans->no_memory |= !root;
		if (root)
			*root = item->id;
		return;
	}
	uint32_t level, kind = classify_span(item, &level);
	uint32_t frame = frame_of(spans, item, kind);
	if (item->start_ns == PLUMB_UNKNOWN || item->end_ns == PLUMB_UNKNOWN ||
	    item->end_ns < item->start_ns) {
		spans->backwards++;
		return;
	}
	if (is_repeated(spans, item, frame)) {
		spans->repeated++;
		return;
	}
	struct plumb_spans_row *row = plumb_vec_add(&spans->rows);
	struct plumb_level_span *time = row ? plumb_vec_add(&spans->times) : NULL;
	if (!time || (item->id.span &&
	              plumb_map_add(&spans->ids, id_hash(&item->id), spans->rows.count - 1) < 0)) {
		spans->no_memory = true;
		return;
	}
	*row = (struct plumb_spans_row){
		.id = item->id,
		.parent = item->parent,
		.cause = item->cause,
		.origin = item->origin,
		.frame = frame,
		.kind = kind,
		.thread_name = string_of(spans, item->thread_name),
		.index = string_of(spans, item->index),
		.thread = item->thread,
		.correlation = item->correlation > 0 ? (uint64_t)item->correlation : 0,
		.untimed = kind == PLUMB_FRAME_MODULE && item->kind.at && !item->timed,
		.context = PLUMB_NONE,
		.track = PLUMB_NONE,
	};
	*time = (struct plumb_level_span){ .start_ns = item->start_ns,
		                           .end_ns = item->end_ns,
		                           .level = level,
		                           .given = PLUMB_NONE,
		                           .launch = PLUMB_NONE };
	if (kind == PLUMB_FRAME_KERNEL || kind == PLUMB_FRAME_COPY || kind == PLUMB_FRAME_SET) {
		time->asynchronous = true;
		add_work(spans, item);
	}
	add_metrics(spans, item);
	add_facts(spans, item);
}
