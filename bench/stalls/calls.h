/* SPDX-License-Identifier: Apache-2.0 */
/* The pair of device calls across files: kernels in calls.cu, what they call in calls_table.cu. */
#ifndef PLUMB_BENCH_STALLS_CALLS_H
#define PLUMB_BENCH_STALLS_CALLS_H

enum { KEYS = 1 << 20, QUERIES = 1 << 20, BUCKETS = 1 << 20 };

/* How many of KEYS, ascending from 0 to 1, are less than X. */
__device__ int table_rank(const float *keys, float x);
/* The same, beginning at the first key of X's bucket. */
__device__ int table_rank_near(const float *keys, const int *firsts, float x);

#endif
