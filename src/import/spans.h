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
#ifndef PLUMB_IMPORT_SPANS_H
#define PLUMB_IMPORT_SPANS_H

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
/* Reads the next value; within PLUMB_PULL_WHOLE. */
void plumb_spans_value(struct plumb_pull *pull, struct plumb_spans_value *value);

/* A tag of the process: service, host, number. Others are not used. */
void plumb_spans_origin_tag(struct plumb_spans *spans, uint32_t origin, struct plumb_slice key,
                            const struct plumb_spans_value *value);

/* ---- spans ---- */

struct plumb_spans_id {
	uint64_t trace[2], span; /* span 0: none */
};
/* Hexadecimal digits, with or without leading zeros; anything else is a number of its own. */
void plumb_spans_trace_id(struct plumb_spans_id *id, struct plumb_slice text);
void plumb_spans_span_id(struct plumb_spans_id *id, struct plumb_slice text);

#define PLUMB_SPANS_METRICS 24

/* Texts hold as long as the reader's window does. */
struct plumb_spans_item {
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
void plumb_spans_item_start(struct plumb_spans_item *item);
void plumb_spans_item_tag(struct plumb_spans_item *item, struct plumb_slice key,
                          const struct plumb_spans_value *value);
/* A number that was measured: a hardware counter in a log. */
void plumb_spans_item_metric(struct plumb_spans_item *item, struct plumb_slice name,
                             const struct plumb_spans_value *value);

/* {"key": …, "value": …}, whose value READ_VALUE reads; false: it has no key. */
typedef void plumb_spans_read(struct plumb_pull *pull, struct plumb_spans_value *value);
bool plumb_spans_pair(struct plumb_pull *pull, struct plumb_slice *key,
                      struct plumb_spans_value *value, plumb_spans_read *read_value);
/* A list of them as tags of ITEM; MEASURED: numbers that were measured, not facts about it. */
void plumb_spans_pairs(struct plumb_pull *pull, struct plumb_spans_item *item, bool measured,
                       plumb_spans_read *read_value);

/* Takes a span. Memory that is out is told by plumb_spans_finish. */
void plumb_spans_add(struct plumb_spans *spans, const struct plumb_spans_item *item);

/* All spans of the file are there. */
int plumb_spans_finish(struct plumb_spans *spans, struct plumb_import_file *file,
                       struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
