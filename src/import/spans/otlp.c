/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenTelemetry's traces as JSON (OTLP/JSON):
 * {"resourceSpans":[{"resource","scopeSpans":[{"spans"}]}]}, one such object or one a line, as the
 * Collector's file exporter writes it. Keys may be written with underscores, and before 2022 scopes
 * were instrumentation libraries. Metrics and logs in the same file are counted.
 */
#include <string.h>

#include "import/spans/spans.h"

struct reader {
	struct plumb_spans *spans;
	struct plumb_trace *trace;
	struct plumb_pull pull;
	uint64_t resource; /* which of the file's */
	uint32_t origin;   /* that resource's */
	int64_t others;
};

/* ---- attributes ---- */

static const struct plumb_pull_field number_fields[] = {
	PLUMB_PULL_FIELD("intValue", INTEGER, .offset = 0),
	PLUMB_PULL_FIELD("int_value", INTEGER, .offset = 0),
	{ 0 },
};

/* Of a list, up to three numbers are kept. */
static void
read_number(struct plumb_pull *pull, void *into, void *own)
{
	struct plumb_spans_value *value = into;
	int64_t number = PLUMB_UNKNOWN;
	if (plumb_pull_object(pull, number_fields, &number, own) && value->count++ < 3)
		value->three[value->count - 1] = number;
}

static const struct plumb_pull_field list_fields[] = {
	PLUMB_PULL_FIELD("values", LIST, .read = read_number),
	{ 0 },
};

/* {"stringValue":…}, {"intValue":…}, {"arrayValue":{"values":[{"intValue":…}]}}, … */
static const struct plumb_pull_field any_fields[] = {
	PLUMB_PULL_FIELD("arrayValue", OBJECT, .inner = list_fields),
	PLUMB_PULL_FIELD("array_value", OBJECT, .inner = list_fields),
	PLUMB_PULL_FIELD("kvlistValue", SKIP, .offset = 0),
	PLUMB_PULL_FIELD("kvlist_value", SKIP, .offset = 0),
	PLUMB_PULL_FIELD("bytesValue", SKIP, .offset = 0),
	PLUMB_PULL_FIELD("bytes_value", SKIP, .offset = 0),
	{ .kind = PLUMB_PULL_CALL, .read = plumb_spans_value },
};

static void
read_any(struct plumb_pull *pull, void *value, void *own)
{
	memset(value, 0, sizeof(struct plumb_spans_value));
	plumb_pull_object(pull, any_fields, value, own);
}

static const struct plumb_pull_field pair_fields[] = {
	PLUMB_PULL_FIELD("key", TEXT, PLUMB_PULL_AT(struct plumb_spans_pair, key)),
	PLUMB_PULL_FIELD("value", CALL, PLUMB_PULL_AT(struct plumb_spans_pair, value),
	                 .read = read_any),
	{ 0 },
};

/* ---- spans ---- */

static const struct plumb_pull_field id_fields[] = {
	PLUMB_PULL_FIELD("traceId", CALL, .read = plumb_spans_trace_id),
	PLUMB_PULL_FIELD("trace_id", CALL, .read = plumb_spans_trace_id),
	PLUMB_PULL_FIELD("spanId", CALL, .read = plumb_spans_span_id),
	PLUMB_PULL_FIELD("span_id", CALL, .read = plumb_spans_span_id),
	{ 0 },
};

/* The first link is what started it. */
static void
read_link(struct plumb_pull *pull, void *into, void *own)
{
	struct plumb_spans_item *item = into;
	struct plumb_spans_id id = { 0 };
	if (plumb_pull_object(pull, id_fields, &id, own) && !item->cause.span)
		item->cause = id;
}

static const struct plumb_pull_field event_fields[] = {
	PLUMB_PULL_FIELD("attributes", LIST, .read = plumb_spans_metric),
	{ 0 },
};

#define AT(member) PLUMB_PULL_AT(struct plumb_spans_item, member)
static const struct plumb_pull_field span_fields[] = {
	PLUMB_PULL_FIELD("traceId", CALL, AT(id), .read = plumb_spans_trace_id),
	PLUMB_PULL_FIELD("spanId", CALL, AT(id), .read = plumb_spans_span_id),
	PLUMB_PULL_FIELD("parentSpanId", CALL, AT(parent), .read = plumb_spans_span_id),
	PLUMB_PULL_FIELD("name", TEXT, AT(name)),
	PLUMB_PULL_FIELD("startTimeUnixNano", INTEGER, AT(start_ns)),
	PLUMB_PULL_FIELD("endTimeUnixNano", INTEGER, AT(end_ns)),
	PLUMB_PULL_FIELD("attributes", LIST, .read = plumb_spans_tag),
	PLUMB_PULL_FIELD("links", LIST, .read = read_link),
	PLUMB_PULL_FIELD("events", LIST, .inner = event_fields),
	PLUMB_PULL_FIELD("trace_id", CALL, AT(id), .read = plumb_spans_trace_id),
	PLUMB_PULL_FIELD("span_id", CALL, AT(id), .read = plumb_spans_span_id),
	PLUMB_PULL_FIELD("parent_span_id", CALL, AT(parent), .read = plumb_spans_span_id),
	PLUMB_PULL_FIELD("start_time_unix_nano", INTEGER, AT(start_ns)),
	PLUMB_PULL_FIELD("end_time_unix_nano", INTEGER, AT(end_ns)),
	{ 0 },
};
#undef AT

static void
read_spans(void *own)
{
	struct reader *reader = own;
	struct plumb_pull *pull = &reader->pull;
	struct plumb_spans_item item, initial;
	bool list = plumb_pull_enter_long(pull, '[');
	int got;
	plumb_spans_item_start(&initial, pair_fields);
	initial.origin = reader->origin;
	while (list &&
	       (got = plumb_pull_row(pull, span_fields, &item, &initial, sizeof item, reader))) {
		memcpy(item.parent.trace, item.id.trace, sizeof item.id.trace);
		if (got > 0)
			plumb_spans_add(reader->spans, &item);
	}
}

/* ---- what holds them ---- */

static void
read_attributes(void *own)
{
	static const struct plumb_spans_pair initial;
	struct reader *reader = own;
	struct plumb_spans_pair pair;
	bool list = plumb_pull_enter_long(&reader->pull, '[');
	while (list &&
	       plumb_pull_row(&reader->pull, pair_fields, &pair, &initial, sizeof pair, reader))
		if (pair.key.at)
			plumb_spans_origin_tag(reader->spans, reader->origin, &pair);
}

static void
read_resource(void *own)
{
	static const struct plumb_pull_part parts[] = { { "attributes", read_attributes }, { 0 } };
	struct reader *reader = own;
	if (plumb_pull_enter_long(&reader->pull, '{'))
		plumb_pull_parts(&reader->pull, parts, reader);
}

static void
read_scopes(void *own)
{
	static const struct plumb_pull_part parts[] = { { "spans", read_spans }, { 0 } };
	struct reader *reader = own;
	bool list = plumb_pull_enter_long(&reader->pull, '[');
	while (list && plumb_pull_item_long(&reader->pull))
		plumb_pull_parts(&reader->pull, parts, reader);
}

static void
read_resources(void *own)
{
	static const struct plumb_pull_part parts[] = {
		{ "resource", read_resource },
		{ "scopeSpans", read_scopes },
		{ "scope_spans", read_scopes },
		{ "instrumentationLibrarySpans", read_scopes },
		{ "instrumentation_library_spans", read_scopes },
		{ 0 },
	};
	struct reader *reader = own;
	bool list = plumb_pull_enter_long(&reader->pull, '[');
	while (list && plumb_pull_item_long(&reader->pull)) {
		reader->origin = plumb_spans_origin(reader->spans, reader->resource++,
		                                    (struct plumb_slice){ NULL, 0 });
		plumb_pull_parts(&reader->pull, parts, reader);
	}
}

static void
count_request(void *own)
{
	((struct reader *)own)->others++;
	plumb_pull_skip_long(&((struct reader *)own)->pull);
}

static int
read_file(struct reader *reader, struct plumb_import_file *file, struct plumb_error *error)
{
	static const struct plumb_pull_part parts[] = {
		{ "resourceSpans", read_resources },
		{ "resource_spans", read_resources },
		{ "resourceMetrics", count_request },
		{ "resource_metrics", count_request },
		{ "resourceLogs", count_request },
		{ "resource_logs", count_request },
		{ 0 },
	};
	struct plumb_pull *pull = &reader->pull;
	int code = plumb_pull_open(pull, file->input, error);
	if (code)
		return code;
	for (;;) {
		char first = 0;
		PLUMB_PULL_WHOLE(pull)
		first = plumb_pull_next(pull);
		if (!first || plumb_pull_failed(pull))
			break;
		if (first != '{')
			plumb_pull_reject(pull, "expected an object");
		else if (plumb_pull_enter_long(pull, '{'))
			plumb_pull_parts(pull, parts, reader);
	}
	return plumb_pull_failed(pull) ? plumb_pull_error(pull, file->path, error) : 0;
}

static int
read_otlp(struct plumb_import_file *file, struct plumb_trace *trace, struct plumb_error *error)
{
	struct reader reader = { .spans = plumb_spans_new(trace), .trace = trace };
	if (!reader.spans)
		return plumb_fail_memory(error, "to read %s", file->path);
	int code = read_file(&reader, file, error);
	plumb_pull_close(&reader.pull);
	plumb_trace_count(trace, PLUMB_FATE_UNUSED, "requests with metrics or logs", reader.others);
	if (!code)
		code = plumb_spans_finish(reader.spans, file, error);
	plumb_spans_free(reader.spans);
	return code;
}

/* What comes first in the file is one of the signals; behind it there may be any word as a name. */
static int
probe_otlp(const struct plumb_import_file *file)
{
	static const char *const first[] = { "\"resourceSpans\"", "\"resource_spans\"",
		                             "\"resourceLogs\"", "\"resourceMetrics\"" };
	const char *at = plumb_import_text(file);
	if (*at != '{')
		return 0;
	const char *key = at + 1 + strspn(at + 1, " \t\r\n");
	bool spans = strstr(at, first[0]) || strstr(at, first[1]);
	for (size_t i = 0; i < sizeof first / sizeof *first; i++)
		if (!strncmp(key, first[i], strlen(first[i])))
			return spans ? 98 : 0;
	return spans ? 60 : 0;
}

const struct plumb_format plumb_format_otlp = {
	.name = "otlp",
	.title = "OpenTelemetry (OTLP) JSON",
	.probe = probe_otlp,
	.read = read_otlp,
};
