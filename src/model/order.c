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
