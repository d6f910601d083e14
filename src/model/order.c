/* SPDX-License-Identifier: Apache-2.0 */
#include "model/order.h"

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
plumb_order_work(struct plumb_work_item **work, uint32_t count, const struct plumb_track *tracks)
{
	void *rows = *work;
	int code = plumb_sort_rows(&rows, count, sizeof **work, work_key, 4, tracks);
	*work = rows;
	return code;
}

static uint64_t
span_key(const void *row, int which, const void *data)
{
	(void)data;
	const struct plumb_span *s = row;
	switch (which) {
	case 0:
		return s->track;
	case 1:
		return plumb_sort_signed(s->start_ns);
	case 2:
		return ~plumb_sort_signed(s->end_ns);
	default:
		return s->context;
	}
}

static bool
in_order(const struct plumb_span *a, const struct plumb_span *b)
{
	for (int which = 0; which < 4; which++) {
		uint64_t x = span_key(a, which, NULL), y = span_key(b, which, NULL);
		if (x != y)
			return x < y;
	}
	return true;
}

int
plumb_order_spans(struct plumb_span **spans, uint32_t count)
{
	bool sorted = true;
	/* A stored profile's are in order already. */
	for (uint32_t i = 1; sorted && i < count; i++)
		sorted = in_order(&(*spans)[i - 1], &(*spans)[i]);
	if (sorted)
		return 0;
	void *rows = *spans;
	int code = plumb_sort_rows(&rows, count, sizeof **spans, span_key, 4, NULL);
	*spans = rows;
	return code;
}
