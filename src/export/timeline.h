/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What exports of single spans share: the spans, on one clock, and which calls started which work.
 * Private to export/.
 *
 * Spans come from the trace, where one was kept; a stream without any has the newest work. Times
 * are the host's CLOCK_MONOTONIC, and of a profile of several hosts, whose clocks do not compare,
 * the times of day.
 */
#ifndef PLUMB_EXPORT_TIMELINE_H
#define PLUMB_EXPORT_TIMELINE_H

#include "export/stacks.h"
#include "model/launches.h"

struct plumb_timeline {
	const struct plumb_profile *profile;
	/* by track, start, the longer first; with slices that are drawn only */
	struct plumb_span *spans;
	uint32_t spans_count;
	/* slices of CPU samples, for a track of their own beside each thread's */
	struct plumb_stacks samples;
	struct plumb_launches launches;
	unsigned char *arrows; /* by launch, the first of its number: what of it there is */
	bool of_day;           /* times are realtime */
	bool no_time;          /* … of a process whose clocks were not read */
};

/* False: memory is out. plumb_timeline_free follows in either case. */
bool plumb_timeline_open(struct plumb_timeline *timeline, const struct plumb_profile *profile);
void plumb_timeline_free(struct plumb_timeline *timeline);
/* Was SPAN not recorded, but drawn around what was (stacks.h)? */
static inline bool
plumb_timeline_drawn(const struct plumb_span *span)
{
	return span->bytes == PLUMB_STACKS_DRAWN;
}

/* The error for `no_time`. */
int plumb_timeline_no_time(struct plumb_error *error);
/* Is there anything to draw? Otherwise the error. */
int plumb_timeline_check(const struct plumb_profile *profile, struct plumb_error *error);

int64_t plumb_timeline_time(struct plumb_timeline *timeline, uint32_t process, int64_t time);

/* A process's number for viewers, which have one process for each number: of another host, or of an
 * earlier program, the number gets digits before it. */
int64_t plumb_timeline_pid(const struct plumb_profile *profile, uint32_t process);

/* The number (from 1) of the arrow that begins or ends at SPAN, asked in the order of spans; 0:
 * none. An arrow needs both ends; of a graph's many pieces of work the first has it. */
uint32_t plumb_timeline_arrow(struct plumb_timeline *timeline, const struct plumb_span *span);

#endif
