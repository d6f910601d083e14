/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `plumb report` shows: rows of a kind, a tree, or who holds memory, as a value.
 *
 *	struct plumb_report_query query = { .by = PLUMB_BY_KERNEL, .top = 20 };
 *	struct plumb_report report;
 *	if (plumb_report_make(&profile, &query, &report, &error) < 0) …
 *	for (i = 0; i < report.order_count; i++)
 *		… report.exclusive[report.order[i]] …
 *	plumb_report_free(&report);
 */
#ifndef PLUMB_VIEW_REPORT_H
#define PLUMB_VIEW_REPORT_H

#include <stdio.h>

#include "analyze/answer.h"
#include "analyze/calls.h"
#include "analyze/divide.h"
#include "analyze/fold.h"
#include "analyze/group.h"
#include "analyze/memory.h"
#include "base/json.h"
#include "model/metric.h"
#include "model/user_code.h"
#include "view/report_choice.h"
#include "view/tree.h"

struct plumb_report_query {
	enum plumb_group_by by; /* PLUMB_BY_DEFAULT: what explains most of the metric */
	const char *metric;     /* by name; NULL: the default of the profile and of BY */
	uint32_t top;           /* rows with the most of the metric; 0: all */
	bool inverted;          /* bottom-up: under each row the callers of it */
	bool compact;           /* a tree: chains of single children in one node */
	bool compat;            /* also HTA's figures */
	bool folded;            /* rows of modules that differ in an index only are one */
	const char *filter;     /* extended regular expression on names and FILE:LINE, or NULL */
	const char *user_code;  /* the rule that tells your code, or NULL */
	bool per_iteration;     /* of a window whose iterations are known */
};

/* By how much a row's value varies from iteration to iteration. */
struct plumb_spread {
	double deviation; /* NAN: unknown */
	bool exact;       /* of iterations with known times; else from how much single calls vary */
};

struct plumb_report {
	const struct plumb_profile *profile;
	enum plumb_group_by by; /* never PLUMB_BY_DEFAULT */
	char why[200];          /* why these rows, if nobody chose them; "" if that is plain */
	uint32_t metric;
	uint32_t top; /* 0: all */
	bool inverted, filtered;
	bool compat;
	unsigned char *user; /* by frame: your own code */
	uint32_t *user_of;   /* by context: the innermost frame of your own code */
	struct plumb_stat total;

	/* A tree, of contexts or bottom-up … */
	bool is_tree;
	struct plumb_tree tree;

	/* … or who holds memory: rows in the order of display (`order`), by device … */
	bool is_memory;
	struct plumb_memory_rows memory;

	/* … or rows of a grouping, in the order of display. */
	struct plumb_grouping *grouping;
	struct plumb_stat *exclusive, *inclusive; /* by row of the grouping, of the metric */
	uint32_t *row_user;                       /* by row: frame of your own code */
	struct plumb_division *division;          /* what divides a line that holds most */
	uint32_t *row_place;                      /* by row: frame of the division */
	bool folding;             /* rows are folded; `order` has those that stand */
	struct plumb_folds folds; /* by row, if so */
	uint32_t *order;
	uint32_t order_count;
	uint64_t available;        /* rows without the limit */
	struct plumb_stat outside; /* of the metric, under no row */

	int64_t iterations; /* by which the values that are shown are divided; 0: they are not */
	struct plumb_spread *spreads; /* by row, with iterations; or NULL */

	struct plumb_calls *calls;     /* by context */
	struct plumb_calls *row_calls; /* by row */
};

/* PLUMB_EUSAGE: no profile can answer QUERY. */
int plumb_report_check(const struct plumb_report_query *query,
                       struct plumb_error *error) PLUMB_MUST_CHECK;
/* Errors: PLUMB_EUSAGE (also: the profile has no such metric), PLUMB_EEMPTY (the number of
 * iterations is not known), PLUMB_ESYSTEM. Always call
 * plumb_report_free. */
int plumb_report_make(const struct plumb_profile *profile, const struct plumb_report_query *query,
                      struct plumb_report *report, struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_report_free(struct plumb_report *report);

/* How many rows or nodes it shows, and these as one table. */
uint32_t plumb_report_count(const struct plumb_report *report);
int plumb_report_answer(const struct plumb_report *report, struct plumb_answer *answer,
                        struct plumb_error *error) PLUMB_MUST_CHECK;
/* Why there are none, and what to do about it. The result is TEXT or a constant. */
#define PLUMB_REPORT_WHY_SIZE 200
const char *
plumb_report_why_empty(const struct plumb_report *report, char text[PLUMB_REPORT_WHY_SIZE]);

/* ---- rows and nodes ---- */

/* The name and the place of a row or a tree's node. A text may be NULL, and a line 0. */
struct plumb_report_place {
	const char *name, *kind;
	const char *file;
	uint32_t line;
	uint32_t folded; /* modules that the row stands for; the name has a star for their index */
	int64_t usual;   /* of a module that takes much more than its like: their median; else 0 */
	const char *shapes;
	const char *user_file;
	uint32_t user_line;
	const char *user_function; /* of native code that has no line: user_file is its library */
	/* What rows of text name. It may be another line of your code, if that one is divided. */
	struct plumb_user_place shown;
	uint32_t part; /* frame of the division that is no line of your code, or PLUMB_NONE */
	const char *source_file; /* of a native frame, whose file is its build id */
	uint32_t source_line;
	const char *library; /* path of the code object of a native frame */
	int64_t pid, rank;   /* of a row by thread, stream, process or rank; else unknown */
	char buffer[256];    /* of the name of a track or a process */
};
/* "train.py:12", "step in solver", or "–" where none is known, into TEXT, which is returned. */
char *plumb_report_user_text(const struct plumb_report_place *place, char *text, size_t size);
void plumb_report_row_place(const struct plumb_report *report, uint32_t row,
                            struct plumb_report_place *place);
void plumb_report_context_place(const struct plumb_report *report, uint32_t context,
                                struct plumb_report_place *place);
/* The same for a node. In a bottom-up tree, a top node stands for a row of the grouping. */
void plumb_report_node_place(const struct plumb_report *report, const struct plumb_tree_node *node,
                             struct plumb_report_place *place);

/* Do rows say where something happened (a thread, a process, a rank) rather than what? */
bool plumb_report_is_where(enum plumb_group_by by);

/* Do the rows say which part of a divided line of your code they come from? */
bool plumb_report_is_divided(const struct plumb_report *report);

/* PART of the report's total; NAN if the total is 0 or a sum means nothing. */
double plumb_report_share(const struct plumb_report *report, const struct plumb_stat *part);

const struct plumb_calls *
plumb_report_node_calls(const struct plumb_report *report, const struct plumb_tree_node *node);
/* PLUMB_UNKNOWN: not recorded. The mean is of the time from entry to exit. */
int64_t plumb_report_calls_count(const struct plumb_calls *calls);
int64_t plumb_report_calls_mean(const struct plumb_calls *calls);
/* Does the report count how often rows were entered (not, say, the kernels in them)? */
bool plumb_report_counts_entries(const struct plumb_report *report);

/* AMOUNT for one iteration, if the report is of one; rounded. PLUMB_UNKNOWN stays. */
int64_t plumb_report_each(const struct plumb_report *report, int64_t amount);

/* ---- rows of PLUMB_BY_MEMORY ---- */

/* A device's memory: its name, its GPU and its process. */
struct plumb_report_device {
	const char *name;                    /* or NULL */
	const struct plumb_device *device;   /* NULL: its runtime did not describe it */
	const struct plumb_process *process; /* or NULL */
	int64_t peak_since_ns; /* when the peak was, counted from the start of its process */
};
struct plumb_report_device
plumb_report_device(const struct plumb_profile *profile, const struct plumb_memory *memory);
/* The name of its operator, and the line of your code. */
struct plumb_report_place
plumb_report_memory_place(const struct plumb_report *report, const struct plumb_memory_row *row);
/* The sum of METRIC over all rows of a device. */
int64_t
plumb_report_memory_whole(const struct plumb_report *report, uint32_t memory, uint32_t metric);
/* The share of ROW in the device's peak or in the whole metric; NAN if a sum means nothing. */
double
plumb_report_memory_share(const struct plumb_report *report, const struct plumb_memory_row *row);

#endif
