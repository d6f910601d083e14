/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile's tracks by device and by process, and what analyses look up for each of them. It is
 * made once, so that work for one device does not have to look through all others.
 */
#ifndef PLUMB_ANALYZE_STEPS_TRACKS_H
#define PLUMB_ANALYZE_STEPS_TRACKS_H

#include "analyze/steps/marks.h"
#include "model/launches.h"

/* Tracks of a group, ascending: items[at[GROUP]] and on, until at[GROUP + 1]. */
struct plumb_track_groups {
	uint32_t *at, *items, count;
};

struct plumb_track_index {
	const struct plumb_profile *profile;
	uint32_t *first_span;                 /* by track, and one more */
	struct plumb_track_groups streams;    /* by device; those of none behind */
	struct plumb_track_groups of_process; /* by process, of any kind; likewise */
	struct plumb_launches launches;       /* of all processes, once they are asked for */
	bool have_launches, have_marks;
	struct plumb_marks marks; /* of the process that was asked for last: */
	uint32_t marks_of;
};

/* For plumb_track_index_free in any case. PLUMB_ESYSTEM: memory is out. */
int plumb_track_index_new(const struct plumb_profile *profile,
                          struct plumb_track_index *index) PLUMB_MUST_CHECK;
void plumb_track_index_free(struct plumb_track_index *index);

/* The tracks of GROUP, those without one if it is PLUMB_NONE; *COUNT: how many. */
const uint32_t *
plumb_track_group(const struct plumb_track_groups *groups, uint32_t group, uint32_t *count);

/* Of all processes; NULL: memory is out. */
struct plumb_launches *plumb_track_index_launches(struct plumb_track_index *index);
/* Of PROCESS, until another's are asked for; NULL: memory is out. */
const struct plumb_marks *
plumb_track_index_marks(struct plumb_track_index *index, uint32_t process);

#endif
