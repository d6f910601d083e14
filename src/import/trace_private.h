/* SPDX-License-Identifier: Apache-2.0 */
/* What trace.c (taking in), place.c (finding contexts) and totals.c (sums) share. Private to
 * import/. */
#ifndef PLUMB_IMPORT_TRACE_PRIVATE_H
#define PLUMB_IMPORT_TRACE_PRIVATE_H

#include "base/map.h"
#include "base/pages.h"
#include "base/vec.h"
#include "import/trace.h"

/* What the file names by numbers of its own → the builder's row. */
struct plumb_trace_place {
	uint32_t what;          /* enum plumb_trace_what */
	uint32_t owner, second; /* rows that it belongs to */
	int64_t x, y;           /* the file's numbers */
	uint32_t id;
};

/* What a span of the file has. */
enum plumb_trace_state {
	PLUMB_TRACE_FRAMED, /* `frame`: its place follows from what it lies in */
	PLUMB_TRACE_GIVEN,  /* `context`, which the importer knows, whatever it lies in */
	PLUMB_TRACE_PLACED, /* `context`, which was found or taken */
};
struct plumb_trace_span {
	int64_t start_ns, end_ns;
	uint64_t correlation, bytes;
	struct plumb_ends ends;
	union {
		uint32_t frame, context;
	};
	uint32_t track : 30, state : 2; /* enum plumb_trace_state */
};
_Static_assert(sizeof(struct plumb_trace_span) == sizeof(struct plumb_span), "no larger");

static inline void
plumb_trace_put(struct plumb_trace_span *span, uint32_t context)
{
	span->context = context;
	span->state = PLUMB_TRACE_PLACED;
}

/* The spans of one track. Those of streams come when their work is placed. */
struct plumb_trace_spans {
	struct plumb_pages pages;
};

static inline struct plumb_trace_span *
plumb_trace_spans_of(const struct plumb_trace_spans *spans)
{
	return (struct plumb_trace_span *)(void *)spans->pages.data;
}

static inline uint32_t
plumb_trace_spans_count(const struct plumb_trace_spans *spans)
{
	return (uint32_t)(spans->pages.bytes / sizeof(struct plumb_trace_span));
}

struct plumb_trace_item {             /* GPU work */
	struct plumb_trace_span span; /* framed, then placed */
	int64_t bytes;
	uint32_t launch; /* in `launches`, or PLUMB_NONE */
	uint32_t collective, placed, group;
	uint32_t inner[PLUMB_TRACE_INNER];
	bool whole; /* `placed` is its own context */
	bool here;  /* the launch is of the same process */
};

/* The shapes of the operator FRAME that begins at START_NS on TRACK. */
struct plumb_trace_shape {
	int64_t start_ns;
	uint32_t track, frame, shapes;
};

struct plumb_trace_edge {
	uint32_t from, to; /* tracks */
	int64_t from_ns, to_ns;
	uint32_t context, flags; /* of what is at its beginning; PLUMB_NONE: not known yet */
};

/* A call that may have started work: where its span is, and how much it started. */
struct plumb_trace_call {
	uint32_t track, span, works : 31;
	uint32_t waits : 1; /* by its name */
};

struct plumb_trace_pause { /* a synchronisation */
	uint64_t correlation;
	uint32_t process;
	int64_t ns;
};

/* A work's number in the file, and a counter's value during a work. */
struct plumb_trace_numbered {
	uint64_t id;
	uint32_t process, work;
};

struct plumb_trace_reading {
	uint64_t id;
	uint32_t process, frame, counter, unit;
	int32_t millionths;
	int64_t whole;
};

struct plumb_trace_readings {
	PLUMB_VEC(struct plumb_trace_numbered) works;
	struct plumb_map work_map;
	PLUMB_VEC(struct plumb_trace_reading) all;
};

struct plumb_trace_busy {
	uint32_t device, process;
	int64_t start_ns, end_ns;
};

struct plumb_trace_bytes {
	uint32_t device;
	int64_t copied, set;
};

/* Where the rows of a context are in the builder, as plumb_builder_row_near has it. */
#define PLUMB_TRACE_NEAR 5
struct plumb_trace_near {
	uint32_t values[PLUMB_TRACE_NEAR], variant;
};

struct plumb_trace {
	struct plumb_builder *builder;
	uint32_t file, first_process, first_track; /* of this file */
	const char *path;
	int64_t base_ns;
	int64_t rank; /* of this file's processes, when the file has none itself */
	bool no_memory;
	enum plumb_parents parents;
	struct plumb_binaries *binaries;
	void (*note)(void *own, const char *text);
	void *note_own;
	PLUMB_VEC(struct plumb_trace_place) places;
	struct plumb_map place_map;
	PLUMB_VEC(struct plumb_trace_spans) spans; /* by track */
	PLUMB_VEC(struct plumb_trace_item) works;
	PLUMB_VEC(struct plumb_trace_launch) launches;
	struct plumb_map launch_map;
	PLUMB_VEC(struct plumb_trace_shape) shapes;
	PLUMB_VEC(struct plumb_trace_edge) edges;
	PLUMB_VEC(struct plumb_trace_call) calls;
	struct plumb_map call_map;
	PLUMB_VEC(struct plumb_trace_pause) pauses;
	PLUMB_VEC(struct plumb_trace_sync) syncs;
	PLUMB_VEC(struct plumb_trace_group) groups; /* number 1 is the first */
	struct plumb_trace_readings readings;
	/* Of all files. */
	PLUMB_VEC(struct plumb_trace_busy) busy;
	PLUMB_VEC(struct plumb_trace_bytes) bytes;
	PLUMB_VEC(struct plumb_trace_near) near; /* by context */
	struct plumb_trace_near no_near;
	uint32_t ledger_near[2];
	uint64_t taken, spans_left_out;
	uint64_t samples, samples_left_out;
	int64_t first_ns, last_ns;
};

/* place.c: gives everything of the file its context; values, variants and spans go into the
 * builder. */
int plumb_trace_place_all(struct plumb_trace *trace);
/* readings.c: when works have their contexts. */
int plumb_trace_place_readings(struct plumb_trace *trace);
void plumb_trace_forget_readings(struct plumb_trace *trace);
/* edges.c: the edges ordered by their starts and by their ends, and the order in which tracks are
 * swept. Tracks from which most edges go come first. */
struct plumb_trace_turn {
	uint32_t track, edges;
};
struct plumb_trace_edges {
	const struct plumb_trace_edge *items;
	uint32_t *from, *to, count;
	struct plumb_trace_turn *turns; /* one for each track */
};
int plumb_trace_edges_order(struct plumb_trace *trace, struct plumb_trace_edges *edges);
/* How many begin (end) on TRACK; *FIRST: their numbers, in time. */
uint32_t plumb_trace_edges_from(const struct plumb_trace_edges *edges, uint32_t track,
                                const uint32_t **first);
uint32_t
plumb_trace_edges_to(const struct plumb_trace_edges *edges, uint32_t track, const uint32_t **first);
void plumb_trace_edges_free(struct plumb_trace_edges *edges);

/* work.c: a call, the span AT of TRACK, may have started work; WAITS: it waits, by its name. */
int plumb_trace_call_add(struct plumb_trace *trace, uint32_t process, uint32_t track, uint32_t at,
                         bool waits);
/* All work, and what calls waited. */
int plumb_trace_place_work(struct plumb_trace *trace);
/* totals.c */
void
plumb_trace_add_work(struct plumb_trace *trace, const struct plumb_trace_item *item, uint32_t kind);
int plumb_trace_totals(struct plumb_trace *trace);
/* SPAN is one of its track. */
int plumb_trace_add_span(struct plumb_trace *trace, const struct plumb_trace_span *span);
/* For the rows of CONTEXT; valid until the next one is asked for. */
struct plumb_trace_near *plumb_trace_near(struct plumb_trace *trace, uint32_t context);
/* As plumb_trace_value. NEAR: of the same metric of the context. */
int plumb_trace_observe(struct plumb_trace *trace, uint32_t track, uint32_t context,
                        uint32_t metric, int64_t number, uint32_t *near);
/* One observation at the context and track of SPAN, which is placed, between its ends. */
int plumb_trace_span_value(struct plumb_trace *trace, const struct plumb_trace_span *span,
                           uint32_t metric, int64_t number);

/* A stream that the file had work on; PLUMB_NONE: not. */
uint32_t plumb_trace_has_stream(const struct plumb_trace *trace, uint32_t process, int64_t ordinal,
                                int64_t gpu_context, int64_t stream);

/* ADOPTERS, by device: the process that it and its streams belong to from now on, or PLUMB_NONE. */
void plumb_trace_adopt(struct plumb_trace *trace, const uint32_t *adopters);

/* What happened then on TRACK lies within the run, its process and its track. */
void
plumb_trace_extent(struct plumb_trace *trace, uint32_t track, int64_t start_ns, int64_t end_ns);
/* Remembers that memory is out; a negative code. */
int plumb_trace_no_memory(struct plumb_trace *trace);
void plumb_trace_ledger(struct plumb_trace *trace, uint32_t process, uint32_t source, uint32_t fate,
                        int64_t count);

#endif
