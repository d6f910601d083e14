/* SPDX-License-Identifier: Apache-2.0 */
/* Iterations for people, in pieces. Private to the files iters*.c of this folder. */
#ifndef PLUMB_CLI_ITERS_ITERS_H
#define PLUMB_CLI_ITERS_ITERS_H

#include <stdio.h>

#include "view/iters.h"

void plumb_iters_stat_print(FILE *out, const char *name, const struct plumb_iteration_stat *stat,
                            const char *unit);
/* The steps that the program marks, without GPU work. Negative: memory is out. */
int plumb_iters_host_print(const struct plumb_iters *iters, FILE *out);
/* What filled the intervals of found.tracks[T], what marks say, and other processes. */
void plumb_iters_filled_print(const struct plumb_iters *iters, uint32_t t, FILE *out);
void plumb_iters_marked_print(const struct plumb_iters *iters, uint32_t t, FILE *out);
void plumb_iters_contended_print(const struct plumb_iters *iters, uint32_t t, FILE *out);
/* Ranks side by side, if there are several. */
void plumb_iters_ranks_print(const struct plumb_iters *iters, FILE *out);
/* Of a main track: its median iteration's, or the whole profile's where it has no loop. Nothing for
 * others and where PATHS is NULL. Negative: memory is out. */
int plumb_iters_path_print(const struct plumb_iters_path *paths,
                           const struct plumb_iteration_track *track, FILE *out);
void plumb_iters_explain_print(const struct plumb_iters *iters,
                               const struct plumb_iters_explained *explained, FILE *out);

#endif
