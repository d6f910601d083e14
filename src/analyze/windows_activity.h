/* SPDX-License-Identifier: Apache-2.0 */
/* What a part of a run did: time and calls by context. For windows.c. */
#ifndef PLUMB_ANALYZE_WINDOWS_ACTIVITY_H
#define PLUMB_ANALYZE_WINDOWS_ACTIVITY_H

#include "base/vec.h"
#include "model/profile.h"

struct plumb_activity_entry {
	uint32_t context;
	bool gpu; /* its kernels, otherwise its time on the host */
	double ns, calls;
};

/* Zero it. Entries ascend by context, the host before the GPU. */
struct plumb_activity {
	PLUMB_VEC(struct plumb_activity_entry) entries;
	double ns, calls;
};

/* Adds what VALUE tells, if it is a time or a number of calls. Values come in their table's order.
 * False: no memory. */
bool plumb_activity_take(struct plumb_activity *activity, const struct plumb_window_value *value);
/* Adds FROM. False: no memory, nothing changed. */
bool plumb_activity_add(struct plumb_activity *into, const struct plumb_activity *from);
void plumb_activity_free(struct plumb_activity *activity);

/* Do both do the same? Four fifths of the shares of their time overlap, or nearly all of the shares
 * of their calls. GPU work ends after the host's calls: if one of them has next to no work of the
 * host, the GPU's alone counts. */
bool plumb_activity_same(const struct plumb_activity *a, const struct plumb_activity *b);

/* Are the calls of WHAT a mixture of A's and B's, as in the moment between them? The part that is
 * A's, or NAN. */
double plumb_activity_mixture(const struct plumb_activity *what, const struct plumb_activity *a,
                              const struct plumb_activity *b);

/*
 * Does ACTIVITY repeat? In N iterations, contexts that take four fifths of its time were called K
 * times N, give or take K + 1 for each time that it began (STRETCHES). K is at most a quarter of N,
 * for otherwise anything would fit. *ITERATIONS is N: the least for which a twentieth of the time
 * was called once; PLUMB_UNKNOWN: none.
 */
bool plumb_activity_repeats(const struct plumb_activity *activity, uint32_t stretches,
                            int64_t *iterations);

/* Do the host's calls agree with N iterations in this way? */
bool plumb_activity_fits(const struct plumb_activity *activity, double n, uint32_t stretches);

/* Has B a call in a context where OTHERS has none? */
bool plumb_activity_differs(const struct plumb_activity *b, const struct plumb_activity *others);

#endif
