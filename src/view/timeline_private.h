/* SPDX-License-Identifier: Apache-2.0 */
/* What the files timeline*.c of this folder share. Private to them. */
#ifndef PLUMB_VIEW_TIMELINE_PRIVATE_H
#define PLUMB_VIEW_TIMELINE_PRIVATE_H

#include "analyze/iterations.h"
#include "model/counter_series.h"
#include "model/intervals.h"
#include "model/launches.h"
#include "view/timeline.h"

/* Spans [first, end) do not overlap, and are in order of time. */
struct plumb_lane_row {
	uint32_t first, end;
};

/* The spans of a lane that have one frame: places [first, end) in `by_name`, by their starts. */
struct plumb_lane_name {
	uint32_t frame, first, end;
};

struct plumb_lane {
	uint32_t
		id; /* its number in answers: that of the track; after all tracks, of its samples */
	uint32_t track;
	uint32_t row, row_count;
	uint32_t first, end; /* its spans */
	int64_t start_ns, end_ns;
	bool newest;  /* of the newest GPU work */
	bool sampled; /* of CPU samples */
};

/* A counter of a device over time. */
struct plumb_lane_counter {
	struct plumb_counter_series series;
	uint32_t after; /* the lane that it is below; PLUMB_NONE: below all */
	int64_t start_ns, end_ns;
};

struct plumb_lanes {
	const struct plumb_profile *profile;
	bool of_day;              /* times are those of day, since hosts differ */
	int64_t base_ns;          /* the start of the run, from which times count */
	uint32_t left_out;        /* spans whose times cannot be */
	struct plumb_lane *lanes; /* in order of display */
	uint32_t lane_count;
	uint32_t *lane_of; /* by id: its lane, or PLUMB_NONE */
	/* Spans of CPU samples, by track; those of a track begin at sampled_first. */
	PLUMB_VEC(struct plumb_span) sampled;
	uint32_t *sampled_first;
	PLUMB_VEC(struct plumb_lane_counter) counters; /* in order of display */
	struct plumb_lane_row *rows;
	uint32_t row_count, row_room;
	/* By span, row by row. */
	uint32_t count;
	int64_t *start, *end;
	uint32_t *source; /* of the profile's spans; then of its newest work; then of `sampled` */
	/* Found when they are asked for. */
	bool has_launches;
	struct plumb_launches launches;
	struct plumb_lanes_found *parts[PLUMB_LANES_PARTS];
};

struct plumb_lanes_found {
	enum plumb_lanes_part part;
	/* Names: each lane has its spans by frame, then start, and their times added up until
	 * there. */
	uint32_t *by_name;
	uint64_t *sum; /* one more */
	struct plumb_lane_name *names;
	uint32_t name_count, name_room;
	uint32_t *first_name; /* by lane, and one more */
	/* Iterations. */
	struct plumb_iterations gpu, host;
};

/* TIME_NS of TRACK's host on the clock of all lanes; PLUMB_UNKNOWN. */
int64_t plumb_lane_time(const struct plumb_lanes *lanes, uint32_t track, int64_t time_ns);
/* The span with that number in `source`, with times of that clock. */
struct plumb_span plumb_lane_span(const struct plumb_lanes *lanes, uint32_t source);
/* When span SOURCE begins and ends. Most are the profile's own, on one clock. */
static inline struct plumb_interval_ns
plumb_lane_times(const struct plumb_lanes *l, uint32_t source)
{
	struct plumb_span span;

	if (source < l->profile->spans_count && !l->of_day)
		return (struct plumb_interval_ns){ l->profile->spans[source].start_ns,
			                           l->profile->spans[source].end_ns };
	span = plumb_lane_span(l, source);
	return (struct plumb_interval_ns){ span.start_ns, span.end_ns };
}
static inline uint32_t
plumb_lane_frame(const struct plumb_lanes *lanes, uint32_t source)
{
	const struct plumb_profile *p = lanes->profile;
	uint32_t context;

	if (source < p->spans_count)
		context = p->spans[source].context;
	else if (source - p->spans_count < p->work_count)
		context = p->work[source - p->spans_count].context;
	else
		context = lanes->sampled.items[source - p->spans_count - p->work_count].context;
	return p->contexts[context].frame;
}

/* Puts spans SOURCES, which are COUNT and in order of time, into rows of LANE. Negative: no
 * memory. */
int plumb_lane_fill(struct plumb_lanes *lanes, struct plumb_lane *lane, const uint32_t *sources,
                    uint32_t count);

/* The number of counter C in answers: after those of tracks, and of their samples. */
static inline uint32_t
plumb_lane_counter_id(const struct plumb_lanes *lanes, uint32_t c)
{
	return 2 * lanes->profile->tracks_count + c;
}
/* Fills `counters`; lanes are there. PLUMB_EINPUT: a clock cannot be aligned; PLUMB_ESYSTEM. */
int plumb_lanes_add_counters(struct plumb_lanes *lanes);

/* Fills `sampled`. Negative: no memory. */
int plumb_lanes_add_samples(struct plumb_lanes *lanes);

/* FOUND is empty. False: no memory. */
bool plumb_lanes_find_names(const struct plumb_lanes *lanes, struct plumb_lanes_found *found);
bool plumb_lanes_find_iterations(const struct plumb_lanes *lanes, struct plumb_lanes_found *found);

/* What is asked for, with times of the host's clock. */
struct plumb_lanes_asked {
	struct plumb_lanes *lanes;
	const struct plumb_lanes_range *range;
	unsigned char *wanted; /* by lane; then by counter */
	int64_t from, to;
	int64_t pixel; /* ns; 0: nothing is merged */
};

/* Rows of an answer whose columns are there. Negative: no memory. */
void plumb_lanes_add_spans(const struct plumb_lanes_asked *asked, struct plumb_answer *answer);
int plumb_lanes_add_arrows(const struct plumb_lanes_asked *asked, struct plumb_answer *answer);
int plumb_lanes_add_sums(const struct plumb_lanes_asked *asked, struct plumb_answer *answer);
void plumb_lanes_add_bands(const struct plumb_lanes_asked *asked, struct plumb_answer *answer);
void
plumb_lanes_add_counter_bins(const struct plumb_lanes_asked *asked, struct plumb_answer *answer);

#endif
