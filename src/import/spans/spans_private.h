/* SPDX-License-Identifier: Apache-2.0 */
/* What spans.c (taking in) and spans_place.c (handing over) share. */
#ifndef PLUMB_IMPORT_SPANS_SPANS_PRIVATE_H
#define PLUMB_IMPORT_SPANS_SPANS_PRIVATE_H

#include "base/map.h"
#include "base/vec.h"
#include "import/spans/levels.h"
#include "import/spans/spans.h"

struct plumb_spans_origin {
	uint64_t scope, name;
	uint32_t service, host, command; /* strings */
	int64_t pid, rank;
	uint32_t process; /* the trace's */
};

struct plumb_spans_work {
	uint32_t span;
	uint32_t uuid, model; /* strings */
	int64_t device, context, stream, bytes;
	int64_t all_bytes, all_count, all_least, all_most, all_deviation;
	struct plumb_trace_launch launch;
	bool launched; /* something of it is known */
};

struct plumb_spans_number {
	uint32_t span, metric;
	int64_t number;
};

struct plumb_spans_row {
	struct plumb_spans_id id, parent, cause;
	uint32_t origin, frame, kind;
	uint32_t thread_name; /* string */
	uint32_t index;       /* string: a layer's number in its run */
	int64_t thread;
	uint64_t correlation;
	bool untimed; /* a module of plumb's: calls alone, unlike a layer of XSP */
	/* found */
	uint32_t context, track, depth;
	bool placed;
};

struct plumb_spans {
	struct plumb_trace *trace;
	bool no_memory;
	PLUMB_VEC(struct plumb_spans_origin) origins;
	struct plumb_map origin_map;
	PLUMB_VEC(struct plumb_spans_row) rows;
	PLUMB_VEC(struct plumb_level_span) times; /* as many */
	PLUMB_VEC(struct plumb_spans_work) works;
	PLUMB_VEC(struct plumb_spans_number) numbers;
	struct plumb_map ids;
	PLUMB_VEC(struct plumb_spans_id)
	roots; /* of processes, as plumb exports them: no work of their own */
	uint32_t backwards, repeated;
};

/* The span of that number; PLUMB_NONE. */
uint32_t plumb_spans_find(const struct plumb_spans *spans, const struct plumb_spans_id *id);

/* spans_layers.c: gives layers of one name in a run frames of their own. Parents are known. */
int plumb_spans_layers(struct plumb_spans *spans);

#endif
