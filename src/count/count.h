/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counter: a library of its own, which notes when a program launches work on a GPU and does
 * nothing else. `plumb run --measure-cost` loads it into all runs, with the collector and without,
 * so that both kinds are bounded by the same clock at the same launches. The rules of the collector
 * hold here, too.
 */
#ifndef PLUMB_COUNT_COUNT_H
#define PLUMB_COUNT_COUNT_H

#include <stdbool.h>

/* The calling process is to be counted. */
extern bool plumb_count_wanted;

/* FUNCTION (or an executable graph) is about to be launched. */
void plumb_count_launch(const void *function);

#endif
