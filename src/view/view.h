/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What plumb answers, apart from how it is printed. Each answer has a query, a typed value, and a
 * function that writes it for programs:
 *
 *	plumb_view_<answer>(profile, &query, format, out, &error)
 *
 * JSON and CSV are what the verb prints with --json and --csv; binary columns are the same rows for
 * readers that map arrays (docs/folders/view.md). To show an answer in your own way, make the value
 * (plumb_<answer>_make), read it, and free it (plumb_<answer>_free); this is how cli prints text.
 *
 * - A query that is all zeros is the default. Its texts, and the profile, stay the caller's. A
 *   value refers to both, so they must outlive it. plumb_view_… keeps nothing.
 * - The result is 0, or a negative code with its message in ERROR: PLUMB_EUSAGE (the query cannot
 *   be answered, for any profile or for this one), PLUMB_EINPUT, PLUMB_EEMPTY (the profile has
 *   nothing of the kind), PLUMB_ESYSTEM (no memory, or a write that failed). An answer without rows
 *   is an answer: 0.
 * - OUT may hold a part of the answer when a call fails. Write into memory (open_memstream) where
 *   nothing or all must be sent.
 * - Nothing here reads files, looks at the environment, or knows terminals.
 */
#ifndef PLUMB_VIEW_VIEW_H
#define PLUMB_VIEW_VIEW_H

#include "view/diff.h"
#include "view/findings.h"
#include "view/flame.h"
#include "view/iters.h"
#include "view/levels.h"
#include "view/memory.h"
#include "view/path.h"
#include "view/render.h"
#include "view/report.h"
#include "view/shares.h"
#include "view/states.h"
#include "view/tables.h"
#include "view/timeline.h"
#include "view/traffic.h"
#include "view/why.h"

/* The standard tables of COUNT profiles. The binary columns of several tables come one after the
 * other. */
int plumb_view_tables(const struct plumb_tables_profile *profiles, uint32_t count,
                      const struct plumb_tables_query *query, enum plumb_view_format format,
                      FILE *out, struct plumb_error *error) PLUMB_MUST_CHECK;

/* Rows, a tree, or who holds memory. JSON also has the run, its processes and devices, the findings
 * and the ledger. */
int plumb_view_report(const struct plumb_profile *profile, const struct plumb_report_query *query,
                      enum plumb_view_format format, FILE *out,
                      struct plumb_error *error) PLUMB_MUST_CHECK;

/* The run, processes, devices, memory, ranks, notes and the ledger, without rows: as JSON, with the
 * keys that the report has. */
int plumb_view_overview(const struct plumb_profile *profile, FILE *out,
                        struct plumb_error *error) PLUMB_MUST_CHECK;

/* JSON is the object {schema, verb, findings[]}. */
int plumb_view_findings(const struct plumb_profile *profile,
                        const struct plumb_findings_query *query, enum plumb_view_format format,
                        FILE *out, struct plumb_error *error) PLUMB_MUST_CHECK;

/* What changed between the first BEFORE of COUNT profiles and the others; NAMES are theirs. */
int plumb_view_diff(const struct plumb_profile *const *profiles, const char *const *names,
                    uint32_t before, uint32_t count, const struct plumb_diff_query *query,
                    enum plumb_view_format format, FILE *out,
                    struct plumb_error *error) PLUMB_MUST_CHECK;

/* Iterations. Critical paths are in JSON only. */
int plumb_view_iters(const struct plumb_profile *profile, const struct plumb_iters_query *query,
                     enum plumb_view_format format, FILE *out,
                     struct plumb_error *error) PLUMB_MUST_CHECK;

/* Ranks side by side (rank_rows.h): the tables `ranks` and `ranks.waits`, of which the TOP longest
 * waits; 0: all. CSV has only the first. PLUMB_EEMPTY: the profile has not several ranks. */
int
plumb_view_ranks(const struct plumb_profile *profile, uint32_t top, enum plumb_view_format format,
                 FILE *out, struct plumb_error *error) PLUMB_MUST_CHECK;
/* Where the time went, lane by lane. */
int plumb_view_shares(const struct plumb_profile *profile, enum plumb_view_format format, FILE *out,
                      struct plumb_error *error) PLUMB_MUST_CHECK;

/* The state graph of a loop: four tables. */
int plumb_view_states(const struct plumb_profile *profile, const struct plumb_states_query *query,
                      enum plumb_view_format format, FILE *out,
                      struct plumb_error *error) PLUMB_MUST_CHECK;

/* The critical path of one iteration: three tables. */
int plumb_view_path(const struct plumb_profile *profile, const struct plumb_path_query *query,
                    enum plumb_view_format format, FILE *out,
                    struct plumb_error *error) PLUMB_MUST_CHECK;

/* What hides frames of a flame graph: the table `flame.frames`. */
int plumb_view_frame_files(const struct plumb_profile *profile, enum plumb_view_format format,
                           FILE *out, struct plumb_error *error) PLUMB_MUST_CHECK;

/* A flame graph: the tables `flame` and `flame.total`. CSV has only the first. */
int plumb_view_flame(const struct plumb_profile *profile, const struct plumb_flame_query *query,
                     enum plumb_view_format format, FILE *out,
                     struct plumb_error *error) PLUMB_MUST_CHECK;

/* Spans over time: one table, which the query names. */
int plumb_view_timeline(const struct plumb_profile *profile,
                        const struct plumb_timeline_query *query, enum plumb_view_format format,
                        FILE *out, struct plumb_error *error) PLUMB_MUST_CHECK;

/* Memory over time, and who holds it: one table, which the query names. */
int plumb_view_memory(const struct plumb_profile *profile, const struct plumb_memory_query *query,
                      enum plumb_view_format format, FILE *out,
                      struct plumb_error *error) PLUMB_MUST_CHECK;

/* Why kernels wait. CSV and binary columns have a row for each cause of each stall; JSON also has
 * the causes by line, accesses, groups and listings. */
int plumb_view_why(const struct plumb_profile *profile, const struct plumb_why_query *query,
                   enum plumb_view_format format, FILE *out,
                   struct plumb_error *error) PLUMB_MUST_CHECK;

/* Traffic between devices. JSON has all lists; CSV and binary columns have the one that the query
 * names, or the stalls that wait for traffic, if the query has a recording with stalls. */
int plumb_view_traffic(const struct plumb_profile *profile, const struct plumb_traffic_query *query,
                       enum plumb_view_format format, FILE *out,
                       struct plumb_error *error) PLUMB_MUST_CHECK;

/* ---- the same for callers that have made the value ---- */

int plumb_traffic_write(const struct plumb_traffic_answer *answer, enum plumb_view_format format,
                        FILE *out, struct plumb_error *error) PLUMB_MUST_CHECK;

int plumb_why_write(const struct plumb_why *why, enum plumb_view_format format, FILE *out,
                    struct plumb_error *error) PLUMB_MUST_CHECK;

int plumb_flame_write(struct plumb_flame *flame, const struct plumb_flame_range *range,
                      enum plumb_view_format format, FILE *out,
                      struct plumb_error *error) PLUMB_MUST_CHECK;

int plumb_tables_write(const struct plumb_tables *tables, enum plumb_view_format format, FILE *out,
                       struct plumb_error *error) PLUMB_MUST_CHECK;
int plumb_report_write(const struct plumb_report *report, enum plumb_view_format format, FILE *out,
                       struct plumb_error *error) PLUMB_MUST_CHECK;
int plumb_iters_write(const struct plumb_iters *iters, enum plumb_view_format format, FILE *out,
                      struct plumb_error *error) PLUMB_MUST_CHECK;
int plumb_compared_write(const struct plumb_compared *compared, const char *const *names,
                         enum plumb_view_format format, FILE *out,
                         struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
