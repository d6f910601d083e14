/* SPDX-License-Identifier: Apache-2.0 */
/* What `plumb report` shows, worked out once and then written as text, JSON or CSV. */
#ifndef PLUMB_CLI_REPORT_H
#define PLUMB_CLI_REPORT_H

#include <stdio.h>

#include "analyze/calls.h"
#include "analyze/group.h"
#include "analyze/memory.h"
#include "base/json.h"
#include "cli/tree.h"
#include "model/metric.h"

struct plumb_report {
	const struct plumb_profile *profile;
	const char *path;
	const char *by; /* as given: "context", "kernel", … */
	uint32_t metric;
	uint32_t top; /* 0: all */
	bool ledger;  /* show all of it */
	bool inverted;
	bool compat;         /* also HTA's figures */
	unsigned char *user; /* by frame: the person's own code */
	uint32_t *user_of;   /* by context: the innermost such frame */
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
	uint32_t *row_user;                       /* by row: frame of the person's own code */
	uint32_t *order;
	uint32_t order_count;
	uint64_t available;        /* rows without --top */
	struct plumb_stat outside; /* of the metric, under no row */

	struct plumb_calls *calls;     /* by context */
	struct plumb_calls *row_calls; /* by row */
};

/* report_overlap.c: what stands under the keys "overlap" and "compat", and the latter as text. */
struct plumb_json;
void plumb_report_json_overlap(const struct plumb_report *report, struct plumb_json *json);
void plumb_report_json_compat(const struct plumb_report *report, struct plumb_json *json);
void plumb_report_print_compat(const struct plumb_report *report, FILE *out);

int plumb_report_text(const struct plumb_report *report, FILE *out, int width);
int plumb_report_csv(const struct plumb_report *report, FILE *out);
int plumb_report_json(const struct plumb_report *report, FILE *out);

/* ---- shared by the three ---- */

/* What a row or a tree's node is called and where it is; texts may be NULL, a line 0. */
struct plumb_report_place {
	const char *name, *kind;
	const char *file;
	uint32_t line;
	const char *shapes;
	const char *user_file;
	uint32_t user_line;
	const char *source_file; /* of a native frame, whose file is its build id */
	uint32_t source_line;
	const char *library; /* path of the code object of a native frame */
	int64_t pid, rank; /* of a thread's, stream's or process's row, of a rank's; else unknown */
	char buffer[256];  /* of a track's or process's name */
};
void plumb_report_row_place(const struct plumb_report *report, uint32_t row,
                            struct plumb_report_place *place);
void plumb_report_context_place(const struct plumb_report *report, uint32_t context,
                                struct plumb_report_place *place);
/* Of a node; a bottom-up top node stands for its grouping's row. */
void plumb_report_node_place(const struct plumb_report *report, const struct plumb_tree_node *node,
                             struct plumb_report_place *place);

/* {sum, count, min, …} of METRIC. */
void
plumb_report_json_stat(struct plumb_json *json, uint32_t metric, const struct plumb_stat *stat);

/* ---- report_empty.c ---- */

/* Why there are no rows, and what would make some. */
const char *plumb_report_why_empty(const struct plumb_report *report, bool filtered);

/* ---- report_calls.c: entries of rows and nodes ---- */

int plumb_report_calls_make(struct plumb_report *report);
const struct plumb_calls *
plumb_report_node_calls(const struct plumb_report *report, const struct plumb_tree_node *node);
/* PLUMB_UNKNOWN: not recorded. The mean is of the time from entry to exit. */
int64_t plumb_report_calls_count(const struct plumb_calls *calls);
int64_t plumb_report_calls_mean(const struct plumb_calls *calls);
/* Does the report count how often rows were entered (not, say, the kernels in them)? */
bool plumb_report_counts_entries(const struct plumb_report *report);

/* ---- report_memory.c: --by memory ---- */

/* Orders the rows: of each device those with the most of the metric first, --top of them. FILTER
 * may be NULL. Negative: no memory. */
int plumb_report_memory_order(struct plumb_report *report,
                              bool (*filter)(const void *data, const char *name, const char *file,
                                             uint32_t line),
                              const void *data);
/* The devices' memory, their rows below each. */
int plumb_report_memory_text(const struct plumb_report *report, FILE *out, int width);
int plumb_report_memory_csv(const struct plumb_report *report, FILE *out);
/* One field of a line of CSV, with the comma behind it. */
void plumb_report_csv_text(FILE *out, const char *value);
void plumb_report_csv_line(FILE *out, uint32_t value);
/* The arrays `memory` (in every report) and `rows`. */
void plumb_report_memory_json(const struct plumb_report *report, struct plumb_json *json);
void plumb_report_memory_json_rows(const struct plumb_report *report, struct plumb_json *json);
/* Are rows BY this where something happened, rather than what? */
bool plumb_report_is_where(const char *by);

/* A part of the whole, NAN where the whole is 0 or a sum means nothing. */
double plumb_report_share(const struct plumb_report *report, const struct plumb_stat *part);

#endif
