/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans of distributed tracing (Jaeger, OpenTelemetry), which name their parents, and of XSP, which
 * has them published by several tools and names the level of each. A reader adds spans and where
 * they come from, in any order; plumb_spans_finish finds parents (levels.h) and hands all to the
 * trace.
 *
 * Tags say more: XSP's (go-cupti's) make kernels, copies, sets and driver calls of spans, plumb's
 * own export says everything by "plumb.kind" and "gpu.…", and OpenTelemetry's conventions name
 * threads and lines of code.
 */
#ifndef PLUMB_IMPORT_SPANS_SPANS_H
#define PLUMB_IMPORT_SPANS_SPANS_H

#include "base/json_fields.h"
#include "import/import.h"

struct plumb_spans;

struct plumb_spans *plumb_spans_new(struct plumb_trace *trace);
void plumb_spans_free(struct plumb_spans *spans);

/* ---- where they come from ---- */

/* The number of what the file calls NAME in its part SCOPE (a trace, a resource), made when it is
 * new. */
uint32_t plumb_spans_origin(struct plumb_spans *spans, uint64_t scope, struct plumb_slice name);

/* A value of JSON: a text, a number or a truth as it is written, or up to three numbers of a
 * list. */
struct plumb_spans_value {
	struct plumb_slice text;
	int64_t three[3];
	int count;
};
/* Reads the next value, into a struct plumb_spans_value. */
plumb_pull_read plumb_spans_value;
/* {"key": …, "value": …}. Each format has a table for one, as values differ. */
struct plumb_spans_pair {
	struct plumb_slice key;
	struct plumb_spans_value value;
};
/* By FIELDS. False: it has no key. */
bool plumb_spans_pair(struct plumb_pull *pull, const struct plumb_pull_field *fields,
                      struct plumb_spans_pair *pair);

/* A tag of the process: service, host, number. Others are not used. */
void plumb_spans_origin_tag(struct plumb_spans *spans, uint32_t origin,
                            const struct plumb_spans_pair *pair);

/* ---- spans ---- */

struct plumb_spans_id {
	uint64_t trace[2], span; /* span 0: none */
};
/* Read a part of a struct plumb_spans_id: hexadecimal digits, with or without leading zeros. Any
 * other text is a number of its own. */
plumb_pull_read plumb_spans_trace_id, plumb_spans_span_id;

#define PLUMB_SPANS_METRICS 24

/* Texts hold as long as the reader's window does. */
struct plumb_spans_item {
	const struct plumb_pull_field *pair;
	struct plumb_slice name;
	struct plumb_spans_id id, parent,
		cause;            /* cause: it was started by, without being within */
	int64_t start_ns, end_ns; /* PLUMB_UNKNOWN */
	uint32_t origin;
	/* By tags. */
	uint32_t level; /* enum plumb_level */
	bool cupti;
	int64_t correlation, device, context, stream, thread, bytes, line;
	int64_t timed; /* a module of plumb's has a time of its own */
	struct plumb_slice kind, kernel, copy, from, to, function, file, type, index, thread_name,
		uuid, model;
	struct plumb_slice framework, framework_version, batch; /* what XSP ran */
	struct plumb_trace_launch launch;
	int64_t all_bytes, all_count, all_least, all_most,
		all_deviation; /* of it and others of its path and stream */
	struct {
		struct plumb_slice name, text;
	} metrics[PLUMB_SPANS_METRICS];
	int metric_count;
};
/* PAIR is the format's table. */
void plumb_spans_item_start(struct plumb_spans_item *item, const struct plumb_pull_field *pair);
/* Read one pair into a struct plumb_spans_item. A pair is a tag, or a measured number such as a
 * hardware counter in a log. */
plumb_pull_read plumb_spans_tag, plumb_spans_metric;

/* Takes a span. Memory that is out is told by plumb_spans_finish. */
void plumb_spans_add(struct plumb_spans *spans, const struct plumb_spans_item *item);

/* All spans of the file are there. */
int plumb_spans_finish(struct plumb_spans *spans, struct plumb_import_file *file,
                       struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
