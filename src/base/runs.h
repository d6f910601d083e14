/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stable sort for rows that are almost in order, in little more room than they take: ascending
 * runs are merged, and only what two runs mix is moved. What is in order costs one look.
 */
#ifndef PLUMB_BASE_RUNS_H
#define PLUMB_BASE_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* COUNT rows of SIZE bytes at ROWS. SWAPPED: must B, which stands behind A, stand before it? It is
 * false for equal ones. 0, or PLUMB_ESYSTEM when memory is out; the rows are then all there, in
 * some order. */
int
plumb_runs_sort(void *rows, uint32_t count, size_t size,
                bool (*swapped)(const void *a, const void *b, const void *data), const void *data);

#endif
