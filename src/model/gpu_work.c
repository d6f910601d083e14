/* SPDX-License-Identifier: Apache-2.0 */
#include "model/gpu_work.h"

#include <stdlib.h>

/* By track, where its rows begin, and one more; from SPANS or, if that is NULL, from the newest
 * work. Malloced; NULL: no memory. */
static uint32_t *
find_first(const struct plumb_profile *p, const struct plumb_span *spans)
{
	uint32_t *first = calloc((size_t)p->tracks_count + 1, sizeof *first);
	uint32_t count = spans ? p->spans_count : p->work_count;

	for (uint32_t i = 0; first && i < count; i++)
		first[(spans ? spans[i].track : p->work[i].track) + 1]++;
	for (uint32_t t = 0; first && t < p->tracks_count; t++)
		first[t + 1] += first[t];
	return first;
}

/* The newest work as spans, by track. Malloced; NULL: no memory. */
static struct plumb_span *
make_newest_spans(const struct plumb_profile *p)
{
	uint32_t *next = find_first(p, NULL);
	struct plumb_span *spans =
		next ? malloc(((size_t)p->work_count + 1) * sizeof *spans) : NULL;

	/* Within a track the work is in the order of its starts already. */
	for (uint32_t i = 0; spans && i < p->work_count; i++) {
		const struct plumb_work_item *w = &p->work[i];

		spans[next[w->track]++] =
			(struct plumb_span){ w->context, w->track, w->start_ns, w->end_ns, 0, 0 };
	}
	free(next);
	return spans;
}

int
plumb_gpu_work_find(const struct plumb_profile *p, struct plumb_gpu_work *work)
{
	*work = (struct plumb_gpu_work){ .profile = p, .newest = true };
	for (uint32_t i = 0; work->newest && i < p->spans_count; i++)
		work->newest = p->tracks[p->spans[i].track].kind != PLUMB_TRACK_STREAM;
	work->spans = work->newest ? make_newest_spans(p) : p->spans;
	work->first = find_first(p, work->newest ? NULL : p->spans);
	return work->spans && work->first ? 0 : PLUMB_ESYSTEM;
}

void
plumb_gpu_work_free(struct plumb_gpu_work *work)
{
	if (work->newest)
		free((void *)work->spans);
	free(work->first);
	*work = (struct plumb_gpu_work){ 0 };
}

struct plumb_gpu_range
plumb_gpu_work_of(const struct plumb_gpu_work *work, uint32_t track)
{
	if (work->profile->tracks[track].kind != PLUMB_TRACK_STREAM)
		return (struct plumb_gpu_range){ 0, 0 };
	return (struct plumb_gpu_range){ work->first[track], work->first[track + 1] };
}
