/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hardware counters of kernels, by running a launch again: the contract between what is the same
 * for all vendors (counters.c here) and a vendor's source (cuda/counters.c).
 *
 * Why not collect/metric.h: those counters belong to a thread, always grow, and are read in a
 * signal handler. These belong to one launch. They exist only after the launch ran once for each
 * pass, are read in pieces on another thread, and have names that depend on the chip.
 *
 * A source keeps a session for each context of the GPU. It makes a plan for the chip, which says
 * what to count and how values come of it:
 *
 *	plumb_gpu_counters_plan(&plan, chip);
 *	plumb_gpu_counters_drop(&plan, i);          for each of plan.names that the chip lacks
 *	plumb_gpu_counters_pack(&plan);
 *	plumb_gpu_counters_passes(passes);          that a launch needs
 *
 * On the program's threads, for each launch that begins:
 *
 *	fate = plumb_gpu_counters_choose(thread, &launch, node, kernel);
 *	if (fate == PLUMB_FATE_ATTRIBUTED)        … runs it once for each pass
 *	else                                      plumb_gpu_counters_left(thread, fate);
 *
 * plumb_gpu_counters_spent says how long a counted launch took, with all its passes.
 *
 * And on the reading thread, outside callbacks, for each launch that was counted:
 *
 *	plumb_gpu_counters_add(thread, &plan, &launch, values);
 *
 * where values[i] is what the vendor evaluated for plan.metrics[i], NAN where it is unknown. Values
 * become metrics at the kernel's context, as imports of other tools' counters have them, so that
 * tables, findings and exports need not know where they come from.
 *
 * The filter: a launch is chosen if its kernel is in the list that `plumb run` made of an earlier
 * profile (all kernels if there is none), and if it is the first, second, fourth or eighth of its
 * kernel at its context. So the number of launches that run several times is bounded by the
 * program's structure, and they are spread over its first iterations. At contexts, not for a
 * kernel: one matrix product is launched from many layers with other sizes. If counting has taken
 * too much of the run (--counters-cost), a launch is passed over, and a later one is chosen.
 *
 * Left out: what was not looked at is in the ledger as gpu.counter, with its reason. Launches that
 * cannot run again are the source's to know: graphs (one range would span all nodes; with nodes
 * that decide, it cannot be repeated at all), launches on several GPUs at once, kernels of NCCL
 * that wait for other ranks.
 *
 * Samples of the whole run without replay are another thing (gpu/series.h), which makes its plans
 * with plumb_gpu_counters_plan_add. Both need the same hardware: `plumb run` takes one of them.
 */
#ifndef PLUMB_COLLECT_GPU_COUNTERS_H
#define PLUMB_COLLECT_GPU_COUNTERS_H

#include "base/counters.h"
#include "collect/collector.h"

/* What to count on a chip. */
struct plumb_gpu_counters_plan {
	unsigned counters, metrics, terms;
	struct {
		char name[64]; /* of the metric in the profile */
		const char *unit;
		bool dropped; /* the chip lacks a metric of it */
	} each[PLUMB_COUNTERS_MOST];
	char *names[PLUMB_COUNTERS_TERMS_MOST]; /* the vendor's, each once */
	struct {
		unsigned counter, metric;
		double factor;
	} term[PLUMB_COUNTERS_TERMS_MOST];
};

/* A launch that is counted. */
struct plumb_gpu_counted {
	plumb_id node;   /* the call's */
	plumb_id kernel; /* STRING: its name, mangled */
	plumb_id track;  /* of the thread that launched it */
};

/* Are counters asked for? Reads the options once. */
bool plumb_gpu_counters_begin(void);

/* Makes PLAN for CHIP, of what --counters asks. False: nothing is left, or no memory; the
 * environment tells (gpu.counters.off, gpu.counters.without). */
bool plumb_gpu_counters_plan(struct plumb_gpu_counters_plan *plan, const char *chip);
/* Adds one counter of LENGTH bytes of NAME to PLAN, which was zeroed or made. False: no room. */
bool plumb_gpu_counters_plan_add(struct plumb_gpu_counters_plan *plan, const char *name,
                                 size_t length, const char *unit, const char *expression);
/* The chip has no metric NUMBER: counters that need it are left out. */
void plumb_gpu_counters_drop(struct plumb_gpu_counters_plan *plan, unsigned number);
/* Takes metrics out that no counter needs any more, before values are asked for. False: none are
 * left. */
bool plumb_gpu_counters_pack(struct plumb_gpu_counters_plan *plan);
/* What VALUES of plan->names make of each counter: PLUMB_COUNTERS_MOST numbers into SUMS. */
void plumb_gpu_counters_sum(const struct plumb_gpu_counters_plan *plan, const double *values,
                            double *sums);
void plumb_gpu_counters_plan_free(struct plumb_gpu_counters_plan *plan);
void plumb_gpu_counters_passes(unsigned passes);
/* Nothing is counted, because of WHY, a complete sentence. The first one is told. */
void plumb_gpu_counters_refuse(const char *why);

enum plumb_fate
plumb_gpu_counters_choose(struct plumb_thread *thread, struct plumb_gpu_counted *launch,
                          plumb_id node, const char *kernel);
/* A launch that was counted took NS. */
void plumb_gpu_counters_spent(uint64_t ns);
/* A record came without times: is it that of a counted launch? */
bool plumb_gpu_counters_untimed(void);
/* A launch that is not counted, or was to be. */
void plumb_gpu_counters_left(struct plumb_thread *thread, enum plumb_fate fate);

/* On the reading thread. */
void plumb_gpu_counters_add(struct plumb_thread *thread, const struct plumb_gpu_counters_plan *plan,
                            const struct plumb_gpu_counted *launch, const double *values);
void plumb_gpu_counters_tell(struct plumb_thread *thread);

/* Another recording, or a forked child: nothing was counted yet. */
void plumb_gpu_counters_renew(void);

#endif
