/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares two profiles, or several runs of two programs: what differs in their environment, in the
 * time of their iterations, and in the rows of a report.
 *
 *	struct plumb_diff *diff = plumb_diff_new(profiles, before, count, &options, &error);
 *	plumb_diff_environment(diff, &environment, &error);
 *	plumb_diff_measure(diff, "iteration.time", &measure, &error);
 *	plumb_diff_table(diff, metric, &table, &error);
 *	plumb_gate_decide(diff, &gate, &result, &error);
 *
 * If all runs have a known number of iterations, sums are for one iteration, because a longer run
 * is not a slower one. What is unknown on a side is NAN there, never 0.
 */
#ifndef PLUMB_ANALYZE_DIFF_DIFF_H
#define PLUMB_ANALYZE_DIFF_DIFF_H

#include "analyze/diff/spread.h"
#include "model/profile.h"

enum plumb_diff_by {
	PLUMB_DIFF_CONTEXT = 1000, /* call paths */
	PLUMB_DIFF_ITERATION,      /* iteration by iteration; only iteration.time */
				   /* or an enum plumb_group_by */
};

struct plumb_diff_options {
	uint32_t by;          /* enum plumb_diff_by, or plumb_group_by */
	bool total;           /* sums of the whole run, not of an iteration */
	double iterations[2]; /* how many each run of a side had; 0: plumb finds them */
};

struct plumb_diff;

/* The first BEFORE of the COUNT profiles are one side, the rest the other; each has at least one.
 * They must outlive the result. NULL with ERROR filled: PLUMB_ESYSTEM. */
struct plumb_diff *
plumb_diff_new(const struct plumb_profile *const *profiles, uint32_t before, uint32_t count,
               const struct plumb_diff_options *options, struct plumb_error *error);
void plumb_diff_free(struct plumb_diff *diff);

/* ---- iterations ---- */

/* Where the number of iterations is from. */
enum plumb_steps_from {
	PLUMB_STEPS_NONE,   /* unknown, at least for one run: sums are of the whole run */
	PLUMB_STEPS_GIVEN,  /* by the options */
	PLUMB_STEPS_LOOP,   /* the loops that iterations.h finds in the GPU's work */
	PLUMB_STEPS_MARKER, /* calls of a range: ProfilerStep, else Optimizer.step */
	PLUMB_STEPS_WINDOW, /* of the window that each profile is of (model/window.h) */
};
extern const char *const plumb_steps_names[];

struct plumb_diff_run {
	const struct plumb_profile *profile;
	double iterations; /* NAN: not known */
	uint32_t measured; /* iterations with a known time from start to start */
	uint32_t left_out; /* of these: much longer than most, so means leave them out */
	uint32_t level;    /* of loops: 0 the outermost */
	bool newest;       /* measured in the newest work alone */
};
/* The runs, those of the first side first; how many; and how many on the first side. */
const struct plumb_diff_run *
plumb_diff_runs(const struct plumb_diff *diff, uint32_t *count, uint32_t *before);
enum plumb_steps_from plumb_diff_from(const struct plumb_diff *diff);
/* Are sums those of an iteration? */
bool plumb_diff_is_normal(const struct plumb_diff *diff);
/* Do the iterations of all runs have the same kernels, as far as plumb knows? If not, they may not
 * be the same thing. */
bool plumb_diff_is_alike(const struct plumb_diff *diff);

/*
 * Which frames are the same in all runs, as call paths are matched: NUMBERS[R][F] is the number of
 * frame F of run R, below *COUNT. NUMBERS has a place for each run; free what it gets. Errors:
 * PLUMB_ESYSTEM, then all are NULL.
 */
int plumb_diff_frames(const struct plumb_diff *diff, uint32_t **numbers, uint32_t *count,
                      struct plumb_error *error) PLUMB_MUST_CHECK;

/* ---- the environment ---- */

struct plumb_diff_fact {
	const char *key;
	char *before, *after; /* several values separated by ", "; NULL: it has none */
};
struct plumb_diff_environment {
	struct plumb_diff_fact *facts; /* by key; those that differ alone */
	uint32_t count;
};
/* For plumb_diff_environment_free in any case. Errors: PLUMB_ESYSTEM. */
int
plumb_diff_environment(const struct plumb_diff *diff, struct plumb_diff_environment *environment,
                       struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_diff_environment_free(struct plumb_diff_environment *environment);

/* ---- measures: one number for a whole run ---- */

struct plumb_diff_measure {
	const char *name, *unit;
	const char *statistic; /* "median of iterations", "sum of an iteration", "sum", … */
	struct plumb_change amount;
};

/*
 * NAME: iteration.time (from start to start), gpu.busy and gpu.idle (of an iteration, all devices
 * together), run.time (the wall time of the run), or a metric of the profiles. Medians of
 * iterations where each is known. A name that no profile knows: PLUMB_EUSAGE; what is not known of
 * a side is NAN.
 */
int
plumb_diff_measure(const struct plumb_diff *diff, const char *name,
                   struct plumb_diff_measure *measure, struct plumb_error *error) PLUMB_MUST_CHECK;
/* The measures that are no metric, in the order of display, ends with NULL. */
extern const char *const plumb_diff_measures[];

/* ---- rows ---- */

struct plumb_diff_row {
	const char *name; /* of the first side, else of the second */
	const char *kind, *file;
	uint32_t line, after_line; /* 0 unknown; they differ where a line moved */
	struct plumb_change amount;
	struct plumb_change own; /* of a context: without those under it */
	uint32_t parent;         /* of a context: its row; PLUMB_NONE for the root and other rows */
	bool backward;
	const char *family; /* of an operator: what it is (names.h), or NULL */
	/* Operators that have other names on the other side: the names of either, else NULL. */
	char *before_names, *after_names;
	/* Operators that are on one side only: the kernels of the other side that they are fused
	 * into. */
	char *fused_in;
	double fused_amount; /* what these take there */
};

struct plumb_diff_table {
	struct plumb_diff_row *rows; /* the greatest change first; contexts in preorder */
	uint32_t count;
	bool each; /* rows are means of iterations that are known one by one, without those
	              left out; else all there is, of an iteration */
	struct plumb_change outside;     /* under no row */
	struct plumb_diff_row *families; /* operators by what they are; empty for others */
	uint32_t family_count;
	void *storage; /* texts */
};
/* Makes the rows of METRIC, grouped as the options say. It leaves out rows that have none of METRIC
 * on both sides. Call plumb_diff_table_free even after an error. Errors: PLUMB_ESYSTEM. */
int plumb_diff_table(const struct plumb_diff *diff, const char *metric,
                     struct plumb_diff_table *table, struct plumb_error *error) PLUMB_MUST_CHECK;
/* How much a row matters: by its change. If one side is unknown, by the value of the other. */
double plumb_diff_weight(const struct plumb_diff_row *row);
void plumb_diff_table_free(struct plumb_diff_table *table);

/* ---- gates ---- */

struct plumb_gate {
	const char *text; /* the caller's */
	char name[80];    /* of the measure */
	const char *row;  /* in TEXT, not terminated: `row_bytes` of it; NULL: the whole */
	size_t row_bytes;
	bool above;   /* METRIC>LIMIT: the change is to be above it */
	double limit; /* percent, or an amount */
	bool relative;
	const char *unit; /* of an absolute limit: "ns", "byte", "count" */
};

/* TEXT: METRIC[@NAME]<LIMIT or METRIC[@NAME]>LIMIT; LIMIT is +5%, -2.5%, +2ms, +16MiB, +100.
 * PLUMB_EUSAGE. */
int plumb_gate_parse(const char *text, struct plumb_gate *gate,
                     struct plumb_error *error) PLUMB_MUST_CHECK;

struct plumb_gate_result {
	struct plumb_change amount;
	const char *unit;
	const char *statistic;
	bool holds; /* by the change itself */
	/* 1: so does its whole interval say; 0: the limit lies in it; -1: no spread is known */
	int certain;
	const char *why; /* nothing to hold against the limit: it does not hold; else NULL */
};
/* Errors: PLUMB_EUSAGE (no such metric, a limit of another unit), PLUMB_ESYSTEM. */
int plumb_gate_decide(const struct plumb_diff *diff, const struct plumb_gate *gate,
                      struct plumb_gate_result *result, struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
