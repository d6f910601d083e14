/* SPDX-License-Identifier: Apache-2.0 */
#include "model/order.h"

#include "base/runs.h"
#include "base/sort.h"

static uint64_t
work_key(const void *row, int which, const void *data)
{
	const struct plumb_track *tracks = data;
	const struct plumb_work_item *w = row;
	switch (which) {
	case 0:
		return tracks[w->track].device;
	case 1:
		return plumb_sort_signed(w->start_ns);
	case 2:
		return w->track;
	default:
		return plumb_sort_signed(w->end_ns);
	}
}

int
plumb_order_work(struct plumb_work_item *work, uint32_t count, const struct plumb_track *tracks)
{
	return plumb_sort_rows(work, count, sizeof *work, work_key, 4, tracks);
}

static bool
is_swapped(const void *x, const void *y, const void *data)
{
	(void)data;
	const struct plumb_span *a = x, *b = y;
	if (a->track != b->track)
		return b->track < a->track;
	if (a->start_ns != b->start_ns)
		return b->start_ns < a->start_ns;
	if (a->end_ns != b->end_ns)
		return b->end_ns > a->end_ns;
	return b->context < a->context;
}

int
plumb_order_spans(struct plumb_span *spans, uint32_t count)
{
	return plumb_runs_sort(spans, count, sizeof *spans, is_swapped, NULL);
}
