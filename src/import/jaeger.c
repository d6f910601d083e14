/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jaeger's JSON, as its query service gives it and its page saves it:
 * {"data":[{"traceID","spans","processes"}]}, or one such trace, or a list of them. Times are µs.
 * XSP's traces have this form.
 */
#include <string.h>

#include "import/spans.h"
#include "import/walk.h"

struct reader {
	struct plumb_spans *spans;
	struct plumb_pull pull;
	uint64_t trace; /* which of the file's */
};

/* ---- tags ---- */

static void
read_logs(struct plumb_pull *pull, struct plumb_spans_item *item)
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
			if (plumb_slice_is(key, "fields"))
				plumb_spans_pairs(pull, item, true, plumb_spans_value);
			else
				plumb_pull_skip(pull);
		}
	}
}

/* ---- spans ---- */

/* The first CHILD_OF is the parent; FOLLOWS_FROM is what started it. */
static void
read_references(struct plumb_pull *pull, struct plumb_spans_item *item)
{
	struct plumb_slice key, text;
	if (!plumb_pull_enter(pull, '[')) {
		plumb_pull_skip(pull);
		return;
	}
	while (plumb_pull_item(pull)) {
		struct plumb_spans_id id = { 0 };
		bool follows = false;
		if (!plumb_pull_enter(pull, '{')) {
			plumb_pull_skip(pull);
			continue;
		}
		while (plumb_pull_member(pull, &key)) {
			if (plumb_slice_is(key, "refType") && plumb_pull_text(pull, &text))
				follows = plumb_slice_is(text, "FOLLOWS_FROM");
			else if (plumb_slice_is(key, "traceID") && plumb_pull_text(pull, &text))
				plumb_spans_trace_id(&id, text);
			else if (plumb_slice_is(key, "spanID") && plumb_pull_text(pull, &text))
				plumb_spans_span_id(&id, text);
			else if (!plumb_slice_is(key, "refType") &&
			         !plumb_slice_is(key, "traceID") && !plumb_slice_is(key, "spanID"))
				plumb_pull_skip(pull);
		}
		if (follows && !item->cause.span)
			item->cause = id;
		else if (!follows && !item->parent.span)
			item->parent = id;
	}
}

static void
read_span(struct reader *reader, struct plumb_spans_item *item, struct plumb_slice *process)
{
	struct plumb_pull *pull = &reader->pull;
	struct plumb_slice key, text;
	int64_t duration = PLUMB_UNKNOWN;
	plumb_spans_item_start(item);
	*process = (struct plumb_slice){ NULL, 0 };
	while (plumb_pull_member(pull, &key)) {
		if (plumb_slice_is(key, "traceID")) {
			if (plumb_pull_text(pull, &text))
				plumb_spans_trace_id(&item->id, text);
		} else if (plumb_slice_is(key, "spanID")) {
			if (plumb_pull_text(pull, &text))
				plumb_spans_span_id(&item->id, text);
		} else if (plumb_slice_is(key, "parentSpanID")) { /* before there were references */
			if (plumb_pull_text(pull, &text))
				plumb_spans_span_id(&item->parent, text);
		} else if (plumb_slice_is(key, "operationName")) {
			plumb_pull_text(pull, &item->name);
		} else if (plumb_slice_is(key, "references")) {
			read_references(pull, item);
		} else if (plumb_slice_is(key, "startTime")) {
			plumb_pull_decimal(pull, 3, &item->start_ns);
		} else if (plumb_slice_is(key, "duration")) {
			plumb_pull_decimal(pull, 3, &duration);
		} else if (plumb_slice_is(key, "processID")) {
			plumb_pull_text(pull, process);
		} else if (plumb_slice_is(key, "tags")) {
			plumb_spans_pairs(pull, item, false, plumb_spans_value);
		} else if (plumb_slice_is(key, "logs")) {
			read_logs(pull, item);
		} else {
			plumb_pull_skip(pull);
		}
	}
	if (item->start_ns == PLUMB_UNKNOWN || duration == PLUMB_UNKNOWN ||
	    __builtin_add_overflow(item->start_ns, duration, &item->end_ns))
		item->end_ns = PLUMB_UNKNOWN;
	if (item->parent.span && !item->parent.trace[0] && !item->parent.trace[1])
		memcpy(item->parent.trace, item->id.trace, sizeof item->id.trace);
	if (item->cause.span && !item->cause.trace[0] && !item->cause.trace[1])
		memcpy(item->cause.trace, item->id.trace, sizeof item->id.trace);
}

static void
read_spans(struct reader *reader)
{
	struct plumb_pull *pull = &reader->pull;
	struct plumb_spans_item item;
	struct plumb_slice process = { NULL, 0 };
	bool more = plumb_walk_enter(pull, '['), taken;
	while (more) {
		PLUMB_PULL_WHOLE(pull)
		{
			taken = false;
			more = plumb_pull_item(pull);
			if (more && plumb_pull_enter(pull, '{')) {
				read_span(reader, &item, &process);
				taken = true;
			} else if (more) {
				plumb_pull_skip(pull);
			}
		}
		if (plumb_pull_failed(pull))
			return;
		if (more && taken) {
			if (process.at)
				item.origin =
					plumb_spans_origin(reader->spans, reader->trace, process);
			plumb_spans_add(reader->spans, &item);
		}
	}
}

/* ---- processes ---- */

struct process {
	struct plumb_slice service;
	struct plumb_slice keys[64];
	struct plumb_spans_value values[64];
	int count;
};

static void
read_process(struct plumb_pull *pull, struct process *process)
{
	struct plumb_slice key;
	process->service = (struct plumb_slice){ NULL, 0 };
	process->count = 0;
	if (!plumb_pull_enter(pull, '{')) {
		plumb_pull_skip(pull);
		return;
	}
	while (plumb_pull_member(pull, &key)) {
		if (plumb_slice_is(key, "serviceName")) {
			plumb_pull_text(pull, &process->service);
		} else if (plumb_slice_is(key, "tags") && plumb_pull_enter(pull, '[')) {
			while (plumb_pull_item(pull)) {
				int at = process->count < 63 ? process->count : 63;
				process->count +=
					plumb_spans_pair(pull, &process->keys[at],
				                         &process->values[at], plumb_spans_value) &&
					at < 63;
			}
		} else {
			plumb_pull_skip(pull);
		}
	}
}

static void
read_processes(struct reader *reader)
{
	struct plumb_pull *pull = &reader->pull;
	struct process process;
	struct plumb_slice name;
	bool more = plumb_walk_enter(pull, '{');
	while (more) {
		PLUMB_PULL_WHOLE(pull)
		{
			more = plumb_pull_member(pull, &name);
			if (more)
				read_process(pull, &process);
		}
		if (!more || plumb_pull_failed(pull))
			return;
		uint32_t origin = plumb_spans_origin(reader->spans, reader->trace, name);
		struct plumb_spans_value service = { .text = process.service };
		plumb_spans_origin_tag(reader->spans, origin,
		                       (struct plumb_slice){ "service.name", 12 }, &service);
		for (int i = 0; i < process.count; i++)
			plumb_spans_origin_tag(reader->spans, origin, process.keys[i],
			                       &process.values[i]);
	}
}

/* ---- traces ---- */

/* The members of a trace, or of what holds them; the object is entered. */
static void
read_trace(struct reader *reader, int depth)
{
	struct plumb_pull *pull = &reader->pull;
	struct plumb_walk_key key;
	while (plumb_walk_member(pull, &key)) {
		if (!strcmp(key.text, "spans"))
			read_spans(reader);
		else if (!strcmp(key.text, "processes"))
			read_processes(reader);
		else if (!strcmp(key.text, "data") && !depth && plumb_walk_enter(pull, '['))
			for (; plumb_walk_item(pull, '{'); reader->trace++)
				read_trace(reader, 1);
		else if (strcmp(key.text, "data") != 0 || depth)
			plumb_pull_skip_long(pull);
	}
	reader->trace++;
}

static int
read_file(struct reader *reader, struct plumb_import_file *file, struct plumb_error *error)
{
	struct plumb_pull *pull = &reader->pull;
	int code = plumb_pull_open(pull, file->input, error);
	char first = 0;
	if (code)
		return code;
	PLUMB_PULL_WHOLE(pull)
	first = plumb_pull_next(pull);
	if (first == '{' && plumb_walk_enter(pull, '{'))
		read_trace(reader, 0);
	else if (first == '[' && plumb_walk_enter(pull, '['))
		while (plumb_walk_item(pull, '{'))
			read_trace(reader, 1);
	else if (!plumb_pull_failed(pull))
		plumb_pull_reject(pull, "expected an object");
	return plumb_pull_failed(pull) ? plumb_pull_error(pull, file->path, error) : 0;
}

static int
read(struct plumb_import_file *file, struct plumb_trace *trace, struct plumb_error *error)
{
	struct reader reader = { .spans = plumb_spans_new(trace) };
	if (!reader.spans)
		return plumb_fail(error, PLUMB_ESYSTEM, "%s: not enough memory", file->path);
	int code = read_file(&reader, file, error);
	plumb_pull_close(&reader.pull);
	if (!code)
		code = plumb_spans_finish(reader.spans, file, error);
	plumb_spans_free(reader.spans);
	return code;
}

static int
probe(const struct plumb_import_file *file)
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
	.probe = probe,
	.read = read,
};
