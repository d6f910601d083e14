/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hardware counters of whole GPUs over time, from samples at a steady pace while the program runs:
 * the contract between what is the same for all vendors (series.c here) and a vendor's source
 * (cuda/series.c). Nothing runs again, so all counters have to fit into one pass.
 *
 * A source asks for the wishes, keeps as many of them as fit, in their order, and says which do
 * not:
 *
 *	count = plumb_gpu_series_wishes(wishes, chip);
 *	plumb_gpu_series_leave_out(&wishes[i]);
 *	plumb_gpu_series_chosen(&plan);
 *
 * On the reading thread it makes the series of a device and adds samples, with times of the GPU
 * runtime's clock (the CLOCK records' `gpu`), as records of work have them:
 *
 *	series = plumb_gpu_series_new(thread, device, &plan);
 *	plumb_gpu_series_add(thread, series, &plan, start, end, values);
 *	plumb_gpu_series_lost(thread, fate, samples);
 *
 * where values[i] is what the vendor evaluated for plan.metrics[i], NAN where it is unknown. Bytes
 * and operations of a sample become bytes and operations per second, since means of bins and of
 * iterations make sense for rates and shares alone.
 *
 * Bins, not samples, are kept: 8192 of a device and counter, which double their width when they are
 * full (struct plumb_record_counter_series). So an hour's memory is that of a second. An iteration
 * of the program has a mean of its own while it is longer than a bin.
 */
#ifndef PLUMB_COLLECT_GPU_SERIES_H
#define PLUMB_COLLECT_GPU_SERIES_H

#include "base/counters.h"
#include "collect/gpu/counters.h"

/* A counter that is asked for, and up to two ways to come by it, the better one first. */
struct plumb_gpu_series_wish {
	char name[64];
	const char *unit;
	char own[64]; /* the expression of a metric of the vendor's */
	const char *expressions[2];
};

/* Are samples asked for? */
bool plumb_gpu_series_begin(void);
/* What is asked for of CHIP, at most PLUMB_SERIES_MOST; what the chip cannot have is left out. */
unsigned plumb_gpu_series_wishes(struct plumb_gpu_series_wish *wishes, const char *chip);
void plumb_gpu_series_leave_out(const struct plumb_gpu_series_wish *wish);
/* PLAN is what is sampled. The first one is told. */
void plumb_gpu_series_chosen(const struct plumb_gpu_counters_plan *plan);
/* How far the clock of samples was from the runtime's: DISTANCE was used, and it is at least LEAST
 * (ns). The first one is told. */
void plumb_gpu_series_clocks(int64_t distance, int64_t least);
/* Nothing is sampled, because of WHY, a complete sentence. The first one is told. */
void plumb_gpu_series_refuse(const char *why);

struct plumb_gpu_series; /* opaque */
/* DEVICE: its DEVICE record. NULL: no memory. */
struct plumb_gpu_series *plumb_gpu_series_new(struct plumb_thread *thread, plumb_id device,
                                              const struct plumb_gpu_counters_plan *plan);
void plumb_gpu_series_free(struct plumb_gpu_series *series);
void plumb_gpu_series_add(struct plumb_thread *thread, struct plumb_gpu_series *series,
                          const struct plumb_gpu_counters_plan *plan, uint64_t start, uint64_t end,
                          const double *values);
/* SAMPLES that were taken, or should have been, and are not in the series. */
void plumb_gpu_series_lost(struct plumb_thread *thread, enum plumb_fate fate, uint64_t samples);

void plumb_gpu_series_tell(struct plumb_thread *thread);
/* Another recording, or a forked child: nothing was sampled yet. */
void plumb_gpu_series_renew(void);

#endif
