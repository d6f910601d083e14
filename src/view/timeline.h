/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans over time, as a value that is made once and then answers for any range quickly.
 *
 *	struct plumb_lanes *lanes = plumb_lanes_make(&profile, &error);
 *	struct plumb_lanes_range range = { .t0 = 0, .t1 = 1000000, .px = 1500 };
 *	struct plumb_answer spans;
 *	if (!lanes || plumb_lanes_answer(lanes, PLUMB_LANES_SPANS, &range, &spans, &error) < 0) …
 *	plumb_lanes_free(lanes);
 *
 * A lane is a thread or a stream that has spans: those of a trace, else the newest GPU work. It has
 * rows, whose spans do not overlap: what is nested in a span is in a row below it, and so is what
 * overlaps it. Times count from the start of the run. Hardware counters over time are tracks, too:
 * below the streams of their device, with bins in place of spans.
 */
#ifndef PLUMB_VIEW_TIMELINE_H
#define PLUMB_VIEW_TIMELINE_H

#include "analyze/answer.h"
#include "model/profile.h"

enum plumb_lanes_table {
	PLUMB_LANES_TRACKS,   /* timeline.tracks: the lanes */
	PLUMB_LANES_SPANS,    /* timeline.spans */
	PLUMB_LANES_BANDS,    /* timeline.bands: iterations, of all tracks */
	PLUMB_LANES_ARROWS,   /* timeline.arrows: from launches to GPU work in the range */
	PLUMB_LANES_SUM,      /* timeline.sum: by name, of the part that is in the range */
	PLUMB_LANES_COUNTERS, /* timeline.counters: hardware counters over time */
	PLUMB_LANES_TABLES
};
extern const char *const plumb_lanes_table_names[PLUMB_LANES_TABLES];

struct plumb_lanes_range {
	const uint32_t *tracks; /* whose spans; an arrow needs both of its tracks */
	uint32_t track_count;   /* 0: all */
	int64_t t0, t1;         /* ns since the start of the run; t1 0: to the end */
	double px;              /* how wide that is on the screen; 0: nothing is merged */
	uint32_t top;           /* of sums: so many, the greatest first; 0: all */
	bool by_track;          /* sums by track, too */
};

struct plumb_timeline_query {
	enum plumb_lanes_table table;
	struct plumb_lanes_range range;
};

struct plumb_lanes;

/* NULL with ERROR filled: PLUMB_EINPUT (the clocks of several hosts cannot be aligned),
 * PLUMB_ESYSTEM. PROFILE must outlive the result. */
struct plumb_lanes *
plumb_lanes_make(const struct plumb_profile *profile, struct plumb_error *error);
void plumb_lanes_free(struct plumb_lanes *lanes);
/* How many spans it has; and how many bytes it takes. */
uint32_t plumb_lanes_count(const struct plumb_lanes *lanes);
/* How many counters over time. */
uint32_t plumb_lanes_counters(const struct plumb_lanes *lanes);
size_t plumb_lanes_bytes(const struct plumb_lanes *lanes);

/* What some answers need, and what takes longer to find than the lanes do. LANES keeps it. */
enum plumb_lanes_part {
	PLUMB_LANES_NAMES,      /* for sums: the spans of each name */
	PLUMB_LANES_ITERATIONS, /* for bands */
	PLUMB_LANES_PARTS
};
struct plumb_lanes_found;
/* Only reads LANES and its profile, so it may run in a thread of its own, while another one asks
 * for answers. NULL: out of memory. */
struct plumb_lanes_found *
plumb_lanes_find(const struct plumb_lanes *lanes, enum plumb_lanes_part part);
void plumb_lanes_found_free(struct plumb_lanes_found *found);
/* Gives LANES what was found of it, unless it has it. */
void plumb_lanes_give(struct plumb_lanes *lanes, struct plumb_lanes_found *found);
/* The part that an answer of TABLE needs and that LANES does not have; PLUMB_LANES_PARTS: none. */
enum plumb_lanes_part
plumb_lanes_lacks(const struct plumb_lanes *lanes, enum plumb_lanes_table table);

/* Without spans the answer has no rows. PLUMB_EUSAGE: a broken range, or no such track. An answer
 * finds the part that LANES lacks. LANES is changed by it, so use it in one thread. */
int plumb_lanes_answer(struct plumb_lanes *lanes, enum plumb_lanes_table table,
                       const struct plumb_lanes_range *range, struct plumb_answer *answer,
                       struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
