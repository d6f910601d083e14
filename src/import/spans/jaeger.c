/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jaeger's JSON, as its query service gives it and its page saves it:
 * {"data":[{"traceID","spans","processes"}]}, or one such trace, or a list of them. Times are µs.
 * XSP's traces have this form.
 */
#include <string.h>

#include "import/spans/spans.h"

struct reader {
	struct plumb_spans *spans;
	struct plumb_pull pull;
	uint64_t trace; /* which of the file's */
};

static const struct plumb_pull_field pair_fields[] = {
	PLUMB_PULL_FIELD("key", TEXT, PLUMB_PULL_AT(struct plumb_spans_pair, key)),
	PLUMB_PULL_FIELD("value", CALL, PLUMB_PULL_AT(struct plumb_spans_pair, value),
	                 .read = plumb_spans_value),
	{ 0 },
};

/* ---- spans ---- */

static const struct plumb_pull_field log_fields[] = {
	PLUMB_PULL_FIELD("fields", LIST, .read = plumb_spans_metric),
	{ 0 },
};

struct reference {
	struct plumb_spans_id id;
	struct plumb_slice type;
};

static const struct plumb_pull_field reference_fields[] = {
	PLUMB_PULL_FIELD("refType", TEXT, PLUMB_PULL_AT(struct reference, type)),
	PLUMB_PULL_FIELD("traceID", CALL, .read = plumb_spans_trace_id),
	PLUMB_PULL_FIELD("spanID", CALL, .read = plumb_spans_span_id),
	{ 0 },
};

/* The first CHILD_OF is the parent; FOLLOWS_FROM is what started it. */
static void
read_reference(struct plumb_pull *pull, void *into, void *own)
{
	struct plumb_spans_item *item = into;
	struct reference reference = { 0 };
	struct plumb_spans_id *id = &item->parent;
	if (!plumb_pull_object(pull, reference_fields, &reference, own))
		return;
	if (reference.type.at && plumb_slice_is(reference.type, "FOLLOWS_FROM"))
		id = &item->cause;
	if (!id->span)
		*id = reference.id;
}

struct span {
	struct plumb_spans_item item;
	struct plumb_slice process;
	int64_t duration;
};

#define AT(member) PLUMB_PULL_AT(struct span, member)
static const struct plumb_pull_field span_fields[] = {
	PLUMB_PULL_FIELD("traceID", CALL, AT(item.id), .read = plumb_spans_trace_id),
	PLUMB_PULL_FIELD("spanID", CALL, AT(item.id), .read = plumb_spans_span_id),
	/* Before there were references. */
	PLUMB_PULL_FIELD("parentSpanID", CALL, AT(item.parent), .read = plumb_spans_span_id),
	PLUMB_PULL_FIELD("operationName", TEXT, AT(item.name)),
	PLUMB_PULL_FIELD("references", LIST, AT(item), .read = read_reference),
	PLUMB_PULL_FIELD("startTime", MICROS, AT(item.start_ns)),
	PLUMB_PULL_FIELD("duration", MICROS, AT(duration)),
	PLUMB_PULL_FIELD("tags", LIST, AT(item), .read = plumb_spans_tag),
	PLUMB_PULL_FIELD("logs", LIST, AT(item), .inner = log_fields),
	PLUMB_PULL_FIELD("processID", TEXT, AT(process)),
	{ 0 },
};
#undef AT

static void
take_span(struct reader *reader, struct span *span)
{
	struct plumb_spans_item *item = &span->item;
	if (item->start_ns == PLUMB_UNKNOWN || span->duration == PLUMB_UNKNOWN ||
	    __builtin_add_overflow(item->start_ns, span->duration, &item->end_ns))
		item->end_ns = PLUMB_UNKNOWN;
	if (item->parent.span && !item->parent.trace[0] && !item->parent.trace[1])
		memcpy(item->parent.trace, item->id.trace, sizeof item->id.trace);
	if (item->cause.span && !item->cause.trace[0] && !item->cause.trace[1])
		memcpy(item->cause.trace, item->id.trace, sizeof item->id.trace);
	if (span->process.at)
		item->origin = plumb_spans_origin(reader->spans, reader->trace, span->process);
	plumb_spans_add(reader->spans, item);
}

static void
read_spans(void *own)
{
	struct reader *reader = own;
	struct plumb_pull *pull = &reader->pull;
	struct span span, initial = { .duration = PLUMB_UNKNOWN };
	bool list = plumb_pull_enter_long(pull, '[');
	int got;
	plumb_spans_item_start(&initial.item, pair_fields);
	while (list &&
	       (got = plumb_pull_row(pull, span_fields, &span, &initial, sizeof span, reader)))
		if (got > 0)
			take_span(reader, &span);
}

/* ---- processes ---- */

struct process {
	struct plumb_slice service;
	struct plumb_spans_pair tags[64];
	int count;
};

static void
read_process_tag(struct plumb_pull *pull, void *into, void *own)
{
	struct process *process = into;
	bool found = plumb_spans_pair(pull, pair_fields, &process->tags[process->count]);
	(void)own;
	process->count += found && process->count < 63;
}

static const struct plumb_pull_field process_fields[] = {
	PLUMB_PULL_FIELD("serviceName", TEXT, PLUMB_PULL_AT(struct process, service)),
	PLUMB_PULL_FIELD("tags", LIST, .read = read_process_tag),
	{ 0 },
};

static void
read_processes(void *own)
{
	struct reader *reader = own;
	struct plumb_pull *pull = &reader->pull;
	struct process process;
	struct plumb_slice name;
	bool more = plumb_pull_enter_long(pull, '{');
	while (more) {
		PLUMB_PULL_WHOLE(pull)
		{
			process.service = (struct plumb_slice){ NULL, 0 };
			process.count = 0;
			more = plumb_pull_member(pull, &name);
			if (more)
				plumb_pull_object(pull, process_fields, &process, reader);
		}
		if (!more || plumb_pull_failed(pull))
			return;
		uint32_t origin = plumb_spans_origin(reader->spans, reader->trace, name);
		struct plumb_spans_pair service = { { "service.name", 12 },
			                            { .text = process.service } };
		plumb_spans_origin_tag(reader->spans, origin, &service);
		for (int i = 0; i < process.count; i++)
			plumb_spans_origin_tag(reader->spans, origin, &process.tags[i]);
	}
}

/* ---- traces ---- */

static const struct plumb_pull_part trace_parts[] = {
	{ "spans", read_spans },
	{ "processes", read_processes },
	{ 0 },
};

/* Traces of a list that was entered. */
static void
read_traces(struct reader *reader)
{
	while (plumb_pull_item_long(&reader->pull)) {
		plumb_pull_parts(&reader->pull, trace_parts, reader);
		reader->trace++;
	}
}

static void
read_data(void *own)
{
	struct reader *reader = own;
	if (plumb_pull_enter_long(&reader->pull, '['))
		read_traces(reader);
}

static int
read_file(struct reader *reader, struct plumb_import_file *file, struct plumb_error *error)
{
	static const struct plumb_pull_part parts[] = {
		{ "data", read_data },
		{ "spans", read_spans },
		{ "processes", read_processes },
		{ 0 },
	};
	struct plumb_pull *pull = &reader->pull;
	int code = plumb_pull_open(pull, file->input, error);
	char first = 0;
	if (code)
		return code;
	PLUMB_PULL_WHOLE(pull)
	first = plumb_pull_next(pull);
	if (first == '{' && plumb_pull_enter_long(pull, '{'))
		plumb_pull_parts(pull, parts, reader);
	else if (first == '[' && plumb_pull_enter_long(pull, '['))
		read_traces(reader);
	else if (!plumb_pull_failed(pull))
		plumb_pull_reject(pull, "expected an object");
	return plumb_pull_failed(pull) ? plumb_pull_error(pull, file->path, error) : 0;
}

static int
read_jaeger(struct plumb_import_file *file, struct plumb_trace *trace, struct plumb_error *error)
{
	struct reader reader = { .spans = plumb_spans_new(trace) };
	if (!reader.spans)
		return plumb_fail_memory(error, "to read %s", file->path);
	int code = read_file(&reader, file, error);
	plumb_pull_close(&reader.pull);
	if (!code)
		code = plumb_spans_finish(reader.spans, file, error);
	plumb_spans_free(reader.spans);
	return code;
}

static int
probe_jaeger(const struct plumb_import_file *file)
{
	const char *at = plumb_import_text(file);
	if (*at != '{' && *at != '[')
		return 0;
	bool trace = strstr(at, "\"traceID\"") != NULL, spans = strstr(at, "\"spans\"") != NULL;
	bool named = strstr(at, "\"operationName\"") || strstr(at, "\"processes\"");
	return trace && named ? 90 : trace && spans ? 80 : spans && named ? 60 : 0;
}

const struct plumb_format plumb_format_jaeger = {
	.name = "jaeger",
	.title = "Jaeger JSON",
	.probe = probe_jaeger,
	.read = read_jaeger,
};
