/* SPDX-License-Identifier: Apache-2.0 */
#include "model/gpu_work.h"

#include <stdlib.h>

/* By track, where its spans begin, and one more. Malloced; NULL: no memory. */
static uint32_t *
find_first_spans(const struct plumb_profile *p)
{
	uint32_t *first = malloc(((size_t)p->tracks_count + 1) * sizeof *first);

	for (uint32_t t = 0; first && t <= p->tracks_count; t++)
		first[t] = plumb_profile_first_span(p, t);
	return first;
}

/* The same for the newest work. */
static uint32_t *
find_first_works(const struct plumb_profile *p)
{
	uint32_t *first = calloc((size_t)p->tracks_count + 1, sizeof *first);

	for (uint32_t i = 0; first && i < p->work_count; i++)
		first[p->work[i].track + 1]++;
	for (uint32_t t = 0; first && t < p->tracks_count; t++)
		first[t + 1] += first[t];
	return first;
}

/* The newest work as spans, by track. Malloced; NULL: no memory. */
static struct plumb_span *
make_newest_spans(const struct plumb_profile *p)
{
	uint32_t *next = find_first_works(p);
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
	uint32_t *first = find_first_spans(p);

	*work = (struct plumb_gpu_work){ .profile = p, .newest = true };
	if (!first)
		return PLUMB_ESYSTEM;
	for (uint32_t t = 0; work->newest && t < p->tracks_count; t++)
		work->newest = p->tracks[t].kind != PLUMB_TRACK_STREAM || first[t] == first[t + 1];
	work->spans = p->spans;
	work->first = first;
	if (work->newest) {
		free(first);
		work->first = find_first_works(p);
		work->spans = make_newest_spans(p);
	}
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

/* ---- several streams ---- */

struct plumb_gpu_cursor {
	int64_t start_ns;    /* of the span at PLACE */
	uint32_t place, end; /* in the spans */
	uint32_t order;      /* among the streams */
};

/* Without branches, because which stream comes next is hard to predict. */
static inline bool
comes_before(const struct plumb_gpu_cursor *a, const struct plumb_gpu_cursor *b)
{
	return (a->start_ns < b->start_ns) | ((a->start_ns == b->start_ns) & (a->order < b->order));
}

/* Only the stream at AT may be out of its place. */
static void
sift_down(struct plumb_gpu_merge *merge, uint32_t at)
{
	struct plumb_gpu_cursor *heap = merge->heap, moved = heap[at];
	uint32_t child;

	while ((child = 2 * at + 1) < merge->count) {
		if (child + 1 < merge->count)
			child += comes_before(&heap[child + 1], &heap[child]);
		if (!comes_before(&heap[child], &moved))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = moved;
}

int
plumb_gpu_merge_new(const struct plumb_gpu_work *work, const uint32_t *streams, uint32_t count,
                    struct plumb_gpu_merge *merge)
{
	*merge = (struct plumb_gpu_merge){ .spans = work->spans };
	merge->heap = malloc(((size_t)count + 1) * sizeof *merge->heap);
	if (!merge->heap)
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < count; i++) {
		struct plumb_gpu_range range = plumb_gpu_work_of(work, streams[i]);

		merge->works += range.end - range.first;
		if (range.first < range.end)
			merge->heap[merge->count++] =
				(struct plumb_gpu_cursor){ work->spans[range.first].start_ns,
				                           range.first, range.end, i };
	}
	for (uint32_t i = merge->count / 2; i-- > 0;)
		sift_down(merge, i);
	return 0;
}

bool
plumb_gpu_merge_next(struct plumb_gpu_merge *merge, uint32_t *place)
{
	struct plumb_gpu_cursor *next = merge->heap;

	if (!merge->count)
		return false;
	*place = next->place++;
	if (next->place == next->end)
		*next = merge->heap[--merge->count];
	else
		next->start_ns = merge->spans[next->place].start_ns;
	if (merge->count > 1)
		sift_down(merge, 0);
	return true;
}

void
plumb_gpu_merge_free(struct plumb_gpu_merge *merge)
{
	free(merge->heap);
	*merge = (struct plumb_gpu_merge){ 0 };
}
