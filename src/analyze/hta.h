/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures that HolisticTraceAnalysis (0.5) gives for the same trace, by its own conventions,
 * for whoever compares with it: its temporal breakdown and its overlap of communication and
 * computation. Its conventions:
 *
 * - every event begins at the next whole µs and ends at the last one, so that short ones get
 *   negative times; times are doubles of µs, so those that count from 1970 lose up to a quarter of
 *   a µs before that;
 * - where there are several ProfilerStep annotations, GPU work counts only if its launch began
 *   before the last of them (INCLUDE_LAST: before its end), and not at all without a launch;
 *   annotations on a GPU count too, which begin and end later;
 * - of events that begin in the same µs, of which one is shorter than 1 µs, HTA's result depends on
 *   the order that an unstable sort leaves: it may differ by 1 µs for each;
 * - communication is what is named like NCCL's kernels, memory what is a copy or set, and the rest
 *   computes.
 */
#ifndef PLUMB_ANALYZE_HTA_H
#define PLUMB_ANALYZE_HTA_H

#include "model/profile.h"

struct plumb_hta {
	int64_t rank; /* PLUMB_UNKNOWN: the process has none */
	int64_t idle_us, compute_us, non_compute_us, kernel_us;
	double overlap_percent; /* NAN: no communication */
};

/* One for each process with GPU work, *COUNT of them, for free(). PROFILE has its spans, else
 * PLUMB_EEMPTY. PLUMB_ESYSTEM: memory is out. */
int plumb_hta_find(const struct plumb_profile *profile, bool include_last, struct plumb_hta **items,
                   uint32_t *count, struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
