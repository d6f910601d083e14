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

/* Sorts COUNT rows of SIZE bytes at ROWS. SWAPPED says whether B, which comes after A, must come
 * before it; it is false for equal rows. Returns 0, or PLUMB_ESYSTEM if memory runs out: then all
 * rows are still there, in some order. */
int
plumb_runs_sort(void *rows, uint32_t count, size_t size,
                bool (*swapped)(const void *a, const void *b, const void *data), const void *data);

#endif
