/* SPDX-License-Identifier: Apache-2.0 */
/* Iterations as text, in pieces. Private to this folder. */
#ifndef PLUMB_CLI_ITERS_ITERS_H
#define PLUMB_CLI_ITERS_ITERS_H

#include <stdio.h>

#include "view/iters.h"
#include "view/states.h"

void plumb_iters_stat_print(FILE *out, const char *name, const struct plumb_iteration_stat *stat,
                            const char *unit);
/* The steps that the program marks, for profiles without GPU work. Negative: no memory. */
int plumb_iters_host_print(const struct plumb_iters *iters, FILE *out);
/* A line about loop number LOOP of TRACK, if it has several; how they take turns, before the first
 * one. */
void plumb_iters_loop_print(const struct plumb_iteration_track *track, uint32_t loop, FILE *out);
/* A line about a stretch of TRACK that is outside of loops, if it is one, and not a small part of
 * the time; a track without a loop has none. */
void
plumb_iters_outside_print(const struct plumb_iters *iters,
                          const struct plumb_iteration_track *track, uint32_t stretch, FILE *out);
/* Of found.tracks[T]: what filled the intervals, what marks say, and other processes on the
 * device. */
void plumb_iters_filled_print(const struct plumb_iters *iters, uint32_t t, FILE *out);
void plumb_iters_marked_print(const struct plumb_iters *iters, uint32_t t, FILE *out);
void plumb_iters_contended_print(const struct plumb_iters *iters, uint32_t t, FILE *out);
/* Its hardware counters over time, by iteration. */
void plumb_iters_counters_print(const struct plumb_iters *iters, uint32_t t, FILE *out);
/* Ranks side by side, if there are several. */
void plumb_iters_ranks_print(const struct plumb_iters *iters, FILE *out);
/* The critical path of a main track: that of its median iteration, or of the whole profile if the
 * track has no loop. Prints nothing for other tracks, or if PATHS is NULL. Negative: no memory. */
int plumb_iters_path_print(const struct plumb_iters_path *paths,
                           const struct plumb_iteration_track *track, FILE *out);
/* The state graph of a loop. Negative: no memory. */
int plumb_iters_states_print(const struct plumb_answer tables[PLUMB_STATES_TABLES], FILE *out);
void plumb_iters_explain_print(const struct plumb_iters *iters,
                               const struct plumb_iters_explained *explained, FILE *out);

#endif
