/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenTelemetry's traces as JSON (OTLP/JSON):
 * {"resourceSpans":[{"resource","scopeSpans":[{"spans"}]}]}, one such object or one a line, as the
 * Collector's file exporter writes it. Keys may be written with underscores, and before 2022 scopes
 * were instrumentation libraries. Metrics and logs in the same file are counted.
 */
#include <string.h>

#include "import/spans.h"
#include "import/walk.h"

struct reader {
	struct plumb_spans *spans;
	struct plumb_trace *trace;
	struct plumb_pull pull;
	uint64_t resource; /* which of the file's */
	int64_t others;
};

/* Is KEY the field NAME, or name_with_underscores? */
static bool
is(const char *key, size_t bytes, const char *name)
{
	size_t i = 0;
	for (; i < bytes && *name; i++) {
		if (key[i] == '_')
			continue;
		bool capital = *name >= 'A' && *name <= 'Z';
		if (key[i] != *name && !(capital && i && key[i - 1] == '_' && key[i] == *name + 32))
			return false;
		name++;
	}
	return i == bytes && !*name;
}

static bool
key_is(struct plumb_slice key, const char *name)
{
	return is(key.at, key.bytes, name);
}

static bool
walk_is(const struct plumb_walk_key *key, const char *name)
{
	return is(key->text, strlen(key->text), name);
}

/* ---- attributes ---- */

/* {"arrayValue":{"values":[{"intValue":…}]}}: up to three numbers */
static void
read_list(struct plumb_pull *pull, struct plumb_spans_value *value)
{
	struct plumb_slice key;
	if (!plumb_pull_enter(pull, '{')) {
		plumb_pull_skip(pull);
		return;
	}
	while (plumb_pull_member(pull, &key)) {
		if (!key_is(key, "values") || !plumb_pull_enter(pull, '[')) {
			plumb_pull_skip(pull);
			continue;
		}
		while (plumb_pull_item(pull)) {
			int64_t number = PLUMB_UNKNOWN;
			if (!plumb_pull_enter(pull, '{')) {
				plumb_pull_skip(pull);
				continue;
			}
			while (plumb_pull_member(pull, &key)) {
				if (key_is(key, "intValue"))
					plumb_pull_integer(pull, &number);
				else
					plumb_pull_skip(pull);
			}
			if (value->count < 3)
				value->three[value->count] = number;
			value->count++;
		}
	}
}

/* {"stringValue":…}, {"intValue":…}, … */
static void
read_any(struct plumb_pull *pull, struct plumb_spans_value *value)
{
	struct plumb_slice key;
	*value = (struct plumb_spans_value){ 0 };
	if (!plumb_pull_enter(pull, '{')) {
		plumb_pull_skip(pull);
		return;
	}
	while (plumb_pull_member(pull, &key)) {
		if (key_is(key, "arrayValue"))
			read_list(pull, value);
		else if (key_is(key, "kvlistValue") || key_is(key, "bytesValue"))
			plumb_pull_skip(pull);
		else
			plumb_spans_value(pull, value);
	}
}

/* ---- spans ---- */

/* The first link is what started it. */
static void
read_links(struct plumb_pull *pull, struct plumb_spans_item *item)
{
	struct plumb_slice key, text;
	if (!plumb_pull_enter(pull, '[')) {
		plumb_pull_skip(pull);
		return;
	}
	while (plumb_pull_item(pull)) {
		struct plumb_spans_id id = { 0 };
		if (!plumb_pull_enter(pull, '{')) {
			plumb_pull_skip(pull);
			continue;
		}
		while (plumb_pull_member(pull, &key)) {
			if (key_is(key, "traceId")) {
				if (plumb_pull_text(pull, &text))
					plumb_spans_trace_id(&id, text);
			} else if (key_is(key, "spanId")) {
				if (plumb_pull_text(pull, &text))
					plumb_spans_span_id(&id, text);
			} else {
				plumb_pull_skip(pull);
			}
		}
		if (!item->cause.span)
			item->cause = id;
	}
}

static void
read_events(struct plumb_pull *pull, struct plumb_spans_item *item)
{
	struct plumb_slice key;
	if (!plumb_pull_enter(pull, '[')) {
		plumb_pull_skip(pull);
		return;
	}
	while (plumb_pull_item(pull)) {
		if (!plumb_pull_enter(pull, '{')) {
			plumb_pull_skip(pull);
			continue;
		}
		while (plumb_pull_member(pull, &key)) {
			if (key_is(key, "attributes"))
				plumb_spans_pairs(pull, item, true, read_any);
			else
				plumb_pull_skip(pull);
		}
	}
}

static void
read_span(struct plumb_pull *pull, struct plumb_spans_item *item)
{
	struct plumb_slice key, text;
	plumb_spans_item_start(item);
	while (plumb_pull_member(pull, &key)) {
		if (key_is(key, "traceId")) {
			if (plumb_pull_text(pull, &text))
				plumb_spans_trace_id(&item->id, text);
		} else if (key_is(key, "spanId")) {
			if (plumb_pull_text(pull, &text))
				plumb_spans_span_id(&item->id, text);
		} else if (key_is(key, "parentSpanId")) {
			if (plumb_pull_text(pull, &text))
				plumb_spans_span_id(&item->parent, text);
		} else if (key_is(key, "name")) {
			plumb_pull_text(pull, &item->name);
		} else if (key_is(key, "startTimeUnixNano")) {
			plumb_pull_integer(pull, &item->start_ns);
		} else if (key_is(key, "endTimeUnixNano")) {
			plumb_pull_integer(pull, &item->end_ns);
		} else if (key_is(key, "attributes")) {
			plumb_spans_pairs(pull, item, false, read_any);
		} else if (key_is(key, "links")) {
			read_links(pull, item);
		} else if (key_is(key, "events")) {
			read_events(pull, item);
		} else {
			plumb_pull_skip(pull);
		}
	}
	memcpy(item->parent.trace, item->id.trace, sizeof item->id.trace);
}

static void
read_spans(struct reader *reader, uint32_t origin)
{
	struct plumb_pull *pull = &reader->pull;
	struct plumb_spans_item item;
	bool more = plumb_walk_enter(pull, '['), taken;
	while (more) {
		PLUMB_PULL_WHOLE(pull)
		{
			taken = false;
			more = plumb_pull_item(pull);
			if (more && plumb_pull_enter(pull, '{')) {
				read_span(pull, &item);
				taken = true;
			} else if (more) {
				plumb_pull_skip(pull);
			}
		}
		if (plumb_pull_failed(pull))
			return;
		if (more && taken) {
			item.origin = origin;
			plumb_spans_add(reader->spans, &item);
		}
	}
}

/* ---- what holds them ---- */

static void
read_resource(struct reader *reader, uint32_t origin)
{
	struct plumb_pull *pull = &reader->pull;
	struct plumb_walk_key name;
	if (!plumb_walk_enter(pull, '{'))
		return;
	while (plumb_walk_member(pull, &name)) {
		struct plumb_slice key;
		struct plumb_spans_value value;
		bool attributes = walk_is(&name, "attributes");
		bool more = attributes && plumb_walk_enter(pull, '['), found;
		if (!attributes)
			plumb_pull_skip_long(pull);
		while (more) {
			PLUMB_PULL_WHOLE(pull)
			{
				more = plumb_pull_item(pull);
				found = more && plumb_spans_pair(pull, &key, &value, read_any);
			}
			if (plumb_pull_failed(pull))
				return;
			if (more && found)
				plumb_spans_origin_tag(reader->spans, origin, key, &value);
		}
	}
}

static void
read_scopes(struct reader *reader, uint32_t origin)
{
	struct plumb_pull *pull = &reader->pull;
	struct plumb_walk_key key;
	if (!plumb_walk_enter(pull, '['))
		return;
	while (plumb_walk_item(pull, '{'))
		while (plumb_walk_member(pull, &key)) {
			if (walk_is(&key, "spans"))
				read_spans(reader, origin);
			else
				plumb_pull_skip_long(pull);
		}
}

static void
read_resources(struct reader *reader)
{
	struct plumb_pull *pull = &reader->pull;
	struct plumb_walk_key key;
	if (!plumb_walk_enter(pull, '['))
		return;
	while (plumb_walk_item(pull, '{')) {
		uint32_t origin = plumb_spans_origin(reader->spans, reader->resource++,
		                                     (struct plumb_slice){ NULL, 0 });
		while (plumb_walk_member(pull, &key)) {
			if (walk_is(&key, "resource"))
				read_resource(reader, origin);
			else if (walk_is(&key, "scopeSpans") ||
			         walk_is(&key, "instrumentationLibrarySpans"))
				read_scopes(reader, origin);
			else
				plumb_pull_skip_long(pull);
		}
	}
}

static void
read_request(struct reader *reader)
{
	struct plumb_pull *pull = &reader->pull;
	struct plumb_walk_key key;
	while (plumb_walk_member(pull, &key)) {
		if (walk_is(&key, "resourceSpans")) {
			read_resources(reader);
			continue;
		}
		reader->others += walk_is(&key, "resourceMetrics") || walk_is(&key, "resourceLogs");
		plumb_pull_skip_long(pull);
	}
}

static int
read_file(struct reader *reader, struct plumb_import_file *file, struct plumb_error *error)
{
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
		else if (plumb_walk_enter(pull, '{'))
			read_request(reader);
	}
	return plumb_pull_failed(pull) ? plumb_pull_error(pull, file->path, error) : 0;
}

static int
read(struct plumb_import_file *file, struct plumb_trace *trace, struct plumb_error *error)
{
	struct reader reader = { .spans = plumb_spans_new(trace), .trace = trace };
	if (!reader.spans)
		return plumb_fail(error, PLUMB_ESYSTEM, "%s: not enough memory", file->path);
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
probe(const struct plumb_import_file *file)
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
	.probe = probe,
	.read = read,
};
