/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share. */
#ifndef PLUMB_ANALYZE_DIFF_PRIVATE_H
#define PLUMB_ANALYZE_DIFF_PRIVATE_H

#include "analyze/diff/diff.h"
#include "analyze/iterations.h"
#include "base/vec.h"
#include "model/gpu_work.h"

/* Times from start to start, ascending; between two there may be a gap. */
struct diff_windows {
	uint32_t device; /* of a GPU; PLUMB_NONE: of threads */
	int64_t *start, *end;
	int64_t *busy; /* of a GPU, else NULL */
	uint32_t count;
};

/* The iterations of a run. */
struct diff_steps {
	double loops;   /* as often as the kernels of the loop came; NAN: there is none */
	double markers; /* calls of the marker; NAN */
	uint32_t level;
	bool newest;
	struct diff_windows *gpus;
	uint32_t gpu_count;
	struct diff_windows host;
};

struct diff_run {
	const struct plumb_profile *profile;
	struct plumb_iterations found;
	struct plumb_gpu_work gpu;
	struct diff_steps steps;
	uint32_t *line; /* by frame: the line of the first run that it is, PLUMB_NONE: of none */
	/* by string: a file's number among those of all runs, PLUMB_NONE: no file */
	uint32_t *file;
	double per; /* what a sum is divided by */
};

struct plumb_diff {
	struct plumb_diff_options options;
	struct diff_run *runs;
	struct plumb_diff_run *facts;
	uint32_t count, before;
	enum plumb_steps_from from;
	bool alike; /* the loops of all runs are of the same kernels */
	struct diff_files *files;
};

/* ---- steps.c ---- */

/* Finds the loops of each run and the level that is the same in all. */
int diff_steps_find(struct plumb_diff *diff, struct plumb_error *error);
/* How many iterations of run R are known from start to start. */
uint32_t diff_windows_count(const struct plumb_diff *diff, uint32_t r);
/* The loops of a run are not to be used. */
void diff_steps_forget(struct diff_steps *steps);
void diff_steps_free(struct diff_steps *steps);

/* ---- sums.c ---- */

/* Sums of a metric by iteration: of id I in iteration K, sums[I * windows + K]. No windows: not
 * known. */
struct diff_sums {
	double *sums;
	uint32_t windows;
	/* the first so many of them take longer than others: the program warms up */
	uint32_t warm_up;
};
/* Iterations that take much longer than most are left out. IDS gives for each context its id, below
 * COUNT, or PLUMB_NONE. Errors: PLUMB_ESYSTEM. */
int diff_sums_make(const struct diff_run *run, uint32_t metric, const uint32_t *ids, uint32_t count,
                   struct diff_sums *sums);

/* Which of the last WINDOWS take much longer than most: LEFT_OUT (an entry for each, may be NULL)
 * is 1. Returns how many; none where they are more than a quarter. PLUMB_ESYSTEM. */
int diff_windows_outliers(const struct diff_windows *w, uint32_t windows, unsigned char *left_out);
/* Is METRIC known iteration by iteration in all runs, of three or more each? 1, 0 or
 * PLUMB_ESYSTEM. */
int diff_sums_known(const struct plumb_diff *diff, const char *metric);

/* ---- lines.c ---- */

/* Fills `file` and `line` of each run. */
int diff_lines_align(struct plumb_diff *diff);
void diff_lines_free(struct plumb_diff *diff);
/* NAME of a Python function into TEXT of SIZE bytes, without where an object lay: "<built-in method
 * add_ of Tensor object at 0x7f41…>". */
void diff_plain_name(const char *name, char *text, size_t size);
/* The name of file NUMBER as the first run that has it says it. */
const char *diff_file_name(const struct plumb_diff *diff, uint32_t number);

/* ---- fused.c ---- */

/* Looks for the operators of TABLE that one side lacks among the fused kernels of the other. */
int
diff_fused_find(const struct plumb_diff *diff, const char *metric, struct plumb_diff_table *table);

/* ---- measures.c ---- */

/* The time of iteration K of the WINDOWS last ones of a run, in ns. */
double diff_iteration_time(const struct diff_steps *steps, uint32_t k, uint32_t windows);

int diff_no_memory(struct plumb_error *error);

#endif
