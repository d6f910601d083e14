/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows: start-up, each loop, and the rest of a run. A profile that knows its windows has rows of
 * `windows`, `window_stretches`, `window_values`, `window_variants` and `window_devices`
 * (profile.h), for each process. Together the windows of a process are all of its time.
 *
 * Every report, analysis and export works on a window without knowing of windows: it gets a profile
 * that is the window's.
 *
 *	struct plumb_window_choice choice;
 *	struct plumb_profile loop;
 *	if (plumb_window_parse("loop:2", &choice, &error) < 0 ||
 *	    plumb_window_profile(profile, &choice, &loop, &error) < 0) …
 *	plumb_findings(&loop) …
 *	plumb_profile_free(&loop);                 // before PROFILE
 *
 * What a profile of a window has:
 * - the same ids of strings, frames, contexts, processes, tracks and devices as the whole;
 * - values and variants of the window alone. The minimum and maximum are PLUMB_UNKNOWN, but where
 *   single observations are known, all were in the window, or all were equal;
 * - devices' totals, GPU work, spans and samples of the window alone; run.wall_ns is how long it
 *   lasted. What cannot be known by window is PLUMB_UNKNOWN, or is not there (peaks of memory at
 *   another time);
 * - no findings: plumb_findings_are_old() holds;
 * - `window`, which says what it is of.
 */
#ifndef PLUMB_MODEL_WINDOW_H
#define PLUMB_MODEL_WINDOW_H

#include "model/profile.h"

/* Which window is wanted. */
struct plumb_window_choice {
	uint32_t kind;   /* enum plumb_window_kind; PLUMB_WINDOW_ALL: the whole */
	uint32_t number; /* of a loop, from 1 in order of time; 0: the main loop */
};

/* TEXT is "all", "startup", "loop", "loop:N" or "rest". "loop" is the main loop: the one that takes
 * most time. PLUMB_EUSAGE: it is something else. */
int plumb_window_parse(const char *text, struct plumb_window_choice *choice,
                       struct plumb_error *error) PLUMB_MUST_CHECK;

/* "startup", "loop:2", "rest"; "loop" where the profile has just one. Returns TEXT. */
char *plumb_window_name(const struct plumb_profile *profile, uint32_t kind, uint32_t number,
                        char text[PLUMB_WINDOW_NAME]);

/* A window as one for all processes that have it. */
struct plumb_window_sum {
	uint32_t kind, number;    /* as in a choice; a loop's number is at least 1 */
	int64_t start_ns, end_ns; /* from the first begin to the last end */
	int64_t wall_ns;          /* how long it lasted in the process where it lasted longest */
	uint32_t stretches;       /* how often it came, in that process */
	int64_t iterations; /* in the process of which they are known and that lasted longest */
	int64_t counted_ns; /* how long it lasted there; 0: iterations are PLUMB_UNKNOWN */
};
/* Those that the profile has: start-up, loop 1, loop 2, …, the rest. */
struct plumb_window_sums {
	struct plumb_window_sum *items;
	uint32_t count;
	uint32_t main; /* which of them is the main loop; PLUMB_NONE: there is no loop */
};
/* For plumb_window_sums_free in any case. None: the profile does not know its windows, or the
 * program had no loop. PLUMB_ESYSTEM: no memory. */
int plumb_window_sums(const struct plumb_profile *profile,
                      struct plumb_window_sums *sums) PLUMB_MUST_CHECK;
void plumb_window_sums_free(struct plumb_window_sums *sums);

/* Do windows have values of METRIC? Samples of stalls have no time, so they are of the whole. */
static inline bool
plumb_window_has_metric(uint32_t metric)
{
	return metric < PLUMB_METRIC_STALL_MEMORY || metric > PLUMB_METRIC_STALL_OTHER;
}

/* Do windows have nearly all calls of variants? Where single spans were added up, they may not. */
bool plumb_window_has_variants(const struct plumb_profile *profile);

/*
 * Makes WINDOW the profile of CHOICE. It borrows texts from PROFILE, which must stay as it is until
 * plumb_profile_free(WINDOW). PLUMB_EEMPTY: the profile has no such window; ERROR says which it
 * has. PLUMB_ESYSTEM: no memory. WINDOW is empty after an error.
 */
int
plumb_window_profile(const struct plumb_profile *profile, const struct plumb_window_choice *choice,
                     struct plumb_profile *window, struct plumb_error *error) PLUMB_MUST_CHECK;

/* Makes PROFILE itself that of CHOICE, and frees the rest of it. PLUMB_WINDOW_ALL changes nothing.
 * The errors are those of plumb_window_profile; PROFILE is then as it was. */
int plumb_window_narrow(struct plumb_profile *profile, const struct plumb_window_choice *choice,
                        struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
