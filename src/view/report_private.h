/* SPDX-License-Identifier: Apache-2.0 */
/* What the files report*.c of this folder share. Private to them. */
#ifndef PLUMB_VIEW_REPORT_PRIVATE_H
#define PLUMB_VIEW_REPORT_PRIVATE_H

#include <regex.h>

#include "analyze/answer.h"
#include "base/sort.h"
#include "view/report.h"

/* Sets the name, kind, file, source and library of FRAME in PLACE, and nothing else. */
void plumb_report_frame_place(const struct plumb_report *report, uint32_t frame,
                              struct plumb_report_place *place);
bool plumb_report_matches(const regex_t *filter, const struct plumb_report_place *place);

/* Fills in which part of a divided line each row comes from. Negative: no memory. */
int plumb_report_places_make(struct plumb_report *report);
/* Folds the COUNT rows of modules in ROWS that differ in an index only: keeps the first of each,
 * which gets the values of all. Negative: no memory. */
int plumb_report_fold(struct plumb_report *report, struct plumb_sort_item *rows, uint32_t *count);

/* Counts the entries of rows and contexts. Negative: no memory. */
int plumb_report_calls_make(struct plumb_report *report);
/* Makes the rows of memory and orders them by device. Of each device, the `top` rows with the most
 * of the metric come first. FILTER may be NULL. Negative: no memory. */
int plumb_report_memory_make(struct plumb_report *report, const regex_t *filter);

/* Sets `iterations` and `spreads`. PLUMB_EEMPTY, PLUMB_ESYSTEM. */
int plumb_report_iterations_make(struct plumb_report *report, struct plumb_error *error);

/* ---- JSON: each function writes a value ---- */

/* The key "per_iteration" of a row or node: what one iteration has of these; ROW may be
 * PLUMB_NONE. Nothing if the report is of a whole window. */
void
plumb_report_json_each(struct plumb_json *json, const struct plumb_report *report, uint32_t row,
                       const struct plumb_stat *exclusive, const struct plumb_stat *inclusive);

/* {sum, count, min, …} of METRIC. */
void
plumb_report_json_stat(struct plumb_json *json, uint32_t metric, const struct plumb_stat *stat);
/* The array `rows` of a report by memory. */
void plumb_report_memory_json_rows(const struct plumb_report *report, struct plumb_json *json);
/* The values of the keys "overlap" and "compat". */
void plumb_report_json_overlap(const struct plumb_profile *profile, struct plumb_json *json);
void plumb_report_json_compat(const struct plumb_profile *profile, struct plumb_json *json);
int plumb_report_json(const struct plumb_report *report, FILE *out);

/* ---- rows as a table ---- */

/* The columns, and row or node INDEX in the order of display. */
void plumb_report_columns(const struct plumb_report *report, struct plumb_answer *answer);
void
plumb_report_cells(const struct plumb_report *report, uint32_t index, struct plumb_answer *answer);
void plumb_report_memory_columns(struct plumb_answer *answer);
void plumb_report_memory_cells(const struct plumb_report *report,
                               const struct plumb_memory_row *row, struct plumb_answer *answer);

#endif
