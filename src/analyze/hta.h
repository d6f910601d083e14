/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures that HolisticTraceAnalysis (HTA 0.5) gives for the same trace: its temporal breakdown
 * and its overlap of communication and computation. They are for people who compare plumb with it,
 * so they follow HTA's conventions:
 *
 * - Every event begins at the next whole µs and ends at the last one, so short events get negative
 *   times. Times are doubles of µs, so those that count from 1970 lose up to a quarter of a µs
 *   before that.
 * - If there are several ProfilerStep annotations, GPU work counts only if its launch began before
 *   the last of them (INCLUDE_LAST: before its end). Work without a launch does not count then.
 *   Annotations on a GPU count too, and they begin and end later.
 * - If several events begin in the same µs and one is shorter than 1 µs, HTA's result depends on
 *   the order that an unstable sort leaves. It may differ by 1 µs for each such event.
 * - Communication is what has the name of an NCCL kernel, memory is a copy or set, and the rest is
 *   computation.
 */
#ifndef PLUMB_ANALYZE_HTA_H
#define PLUMB_ANALYZE_HTA_H

#include "model/profile.h"

struct plumb_hta {
	int64_t rank; /* PLUMB_UNKNOWN: the process has none */
	int64_t idle_us, compute_us, non_compute_us, kernel_us;
	double overlap_percent; /* NAN: no communication */
};

/* *ITEMS gets *COUNT of them, one for each process with GPU work; the caller frees it with free().
 * PLUMB_EEMPTY: PROFILE has no spans. PLUMB_ESYSTEM: out of memory. */
int plumb_hta_find(const struct plumb_profile *profile, bool include_last, struct plumb_hta **items,
                   uint32_t *count, struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
