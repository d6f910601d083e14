/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges that a program opens and closes by calls: NVTX (monitor/nvtx.c) and plumb's own
 * annotations (annotate.c). A call closes the newest range of its domain, so two libraries with
 * annotations do not close each other's ranges.
 *
 * A pushed range is a frame of kind range on the thread's stack, between operators and Python
 * frames. A started range may end on another thread, so what runs meanwhile is not inside it. It is
 * a frame under the context that started it, with its count and duration.
 */
#ifndef PLUMB_COLLECT_RANGE_H
#define PLUMB_COLLECT_RANGE_H

#include "collect/collector.h"

/* Max bytes of a range's name with its domain; a longer name is cut. */
#define PLUMB_RANGE_NAME_MAX 2048u
/* Max different names on one thread; further names share one context. */
#define PLUMB_RANGE_NAMES_MAX 4096u

/* Stays where it is for ever. NULL: the default one, which has no name. */
struct plumb_range_domain {
	uint32_t magic; /* the owner's */
	uint32_t bytes;
	char text[]; /* what stands before the name of a range: "domain/" */
};

/* NAME need not outlive the call. PAYLOAD is a number that the range carries, or NULL. Returns the
 * range's level in its domain on this thread, from 0; negative: none is open. */
int plumb_ranges_push(const struct plumb_range_domain *domain, const char *name,
                      const int64_t *payload);
/* The same, for a name that stays where it is for ever. */
int plumb_ranges_push_kept(const struct plumb_range_domain *domain,
                           const struct plumb_range_domain *name, const int64_t *payload);
int plumb_ranges_pop(const struct plumb_range_domain *domain);
/* Closes the newest range of DOMAIN that was opened with this very NAME pointer. */
int plumb_ranges_pop_named(const struct plumb_range_domain *domain, const char *name);

/* ID: the id that the program will use for the range; 0: plumb makes one. Returns the id. */
uint64_t plumb_ranges_start(const struct plumb_range_domain *domain, const char *name,
                            const int64_t *payload, uint64_t id);
void plumb_ranges_end(uint64_t id);
/* Did plumb_ranges_start make this id? */
bool plumb_ranges_is_own(uint64_t id);

void plumb_ranges_mark(const struct plumb_range_domain *domain, const char *name,
                       const int64_t *payload);

/* The calling thread ends: its ranges end with it. */
void plumb_ranges_drop(struct plumb_thread *thread);
/* The process ends: counts what is still open. Between plumb_enter and plumb_leave. */
void plumb_ranges_finish(struct plumb_thread *thread);
/* For a forked child: ranges that its parent started do not belong to it. */
void plumb_ranges_forked(void);

#endif
