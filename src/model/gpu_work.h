/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPU work of a profile, from where there is any: the spans of its streams or, if no stream has
 * a span, the newest work that every profile keeps. Who reads GPU work one by one asks here and
 * need not know which of them it is.
 *
 *	struct plumb_gpu_work work;
 *	if (plumb_gpu_work_find(profile, &work) < 0) …
 *	struct plumb_gpu_range range = plumb_gpu_work_of(&work, track);
 *	for (uint32_t i = range.first; i < range.end; i++)
 *		… work.spans[i] …
 *	plumb_gpu_work_free(&work);
 */
#ifndef PLUMB_MODEL_GPU_WORK_H
#define PLUMB_MODEL_GPU_WORK_H

#include "model/profile.h"

struct plumb_gpu_work {
	const struct plumb_profile *profile;
	/* By track, then start. The profile's own, in which threads have some too; or the newest
	 * work, which has no correlations and bytes. */
	const struct plumb_span *spans;
	uint32_t *first; /* by track, and one more */
	bool newest;     /* it is the newest work */
};

/* For plumb_gpu_work_free in any case; PROFILE must stay until then. PLUMB_ESYSTEM: no memory. */
int plumb_gpu_work_find(const struct plumb_profile *profile,
                        struct plumb_gpu_work *work) PLUMB_MUST_CHECK;
void plumb_gpu_work_free(struct plumb_gpu_work *work);

/* Where TRACK's work is among the spans; no range if it is no stream. */
struct plumb_gpu_range {
	uint32_t first, end;
};
struct plumb_gpu_range plumb_gpu_work_of(const struct plumb_gpu_work *work, uint32_t track);

/*
 * All that several streams did, in the order of the starts. Ties go to the first stream.
 *
 *	struct plumb_gpu_merge merge;
 *	int code = plumb_gpu_merge_new(&work, streams, count, &merge);
 *	while (!code && plumb_gpu_merge_next(&merge, &place))
 *		work.spans[place] …
 *	plumb_gpu_merge_free(&merge);
 */
struct plumb_gpu_merge {
	const struct plumb_span *spans;
	struct plumb_gpu_cursor *heap; /* the one that comes next first */
	uint32_t count, works;         /* streams that are left; all there is to come at first */
};

/* PLUMB_ESYSTEM: no memory. */
int plumb_gpu_merge_new(const struct plumb_gpu_work *work, const uint32_t *streams, uint32_t count,
                        struct plumb_gpu_merge *merge) PLUMB_MUST_CHECK;
/* False: that was all. */
bool plumb_gpu_merge_next(struct plumb_gpu_merge *merge, uint32_t *place);
void plumb_gpu_merge_free(struct plumb_gpu_merge *merge);

#endif
