/* SPDX-License-Identifier: Apache-2.0 */
/* JSON of iterations, in pieces. Private to the files iters*.c of this folder. */
#ifndef PLUMB_VIEW_ITERS_PRIVATE_H
#define PLUMB_VIEW_ITERS_PRIVATE_H

#include "analyze/answer.h"
#include "view/iters.h"

/* {avg, max, p50, p95} under KEY. */
void plumb_iters_stat_json(struct plumb_json *json, const char *key,
                           const struct plumb_iteration_stat *stat);
/* What filled the intervals of found.tracks[T]: "filled" for all iterations, and for iteration
 * I. */
void plumb_iters_filled_json(const struct plumb_iters *iters, uint32_t t, struct plumb_json *json);
void plumb_iters_filled_item(const struct plumb_iters *iters, uint32_t t, uint32_t i,
                             struct plumb_json *json);
/* Hardware counters over time, if there are any: "counters" of iteration ITEM of found.tracks[T],
 * and of all iterations; columns of a table, and their cells (ITEM NULL: not known). */
void plumb_iters_counters_item(const struct plumb_iters *iters, uint32_t t,
                               const struct plumb_iteration *item, struct plumb_json *json);
void plumb_iters_counters_json(const struct plumb_iters *iters, uint32_t t,
                               const struct plumb_iteration_level *level, struct plumb_json *json);
void plumb_iters_counters_columns(const struct plumb_iters *iters, struct plumb_answer *answer);
void plumb_iters_counters_cells(const struct plumb_iters *iters, uint32_t t,
                                const struct plumb_iteration *item, struct plumb_answer *answer);
/* What marks say of the iterations. */
void plumb_iters_marked_json(const struct plumb_iters *iters, uint32_t t, struct plumb_json *json);
/* The key "host"; null if there is GPU work. Negative: no memory. */
int plumb_iters_host_json(const struct plumb_iters *iters, struct plumb_json *json);
/* The key "ranks"; null if there is one rank or none. */
void plumb_iters_ranks_json(const struct plumb_iters *iters, struct plumb_json *json);
/* The key "path". For a main track with a loop: the path of its median iteration, and the sums of
 * all iterations. For TRACK NULL: the path of the whole profile. Else null. Negative: no memory. */
int plumb_iters_path_json(struct plumb_iters_path *paths, const struct plumb_iteration_track *track,
                          struct plumb_json *json);
/* The keys "file" and "line" of your code, and "divided_by". KEY may be NULL. */
void plumb_iters_line_json(const struct plumb_iters *iters, const struct plumb_step_key *key,
                           struct plumb_json *json);

#endif
