/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a lane: each span goes to the first row that is free when it begins. */
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "base/vec.h"
#include "view/timeline_private.h"

/* ---- free rows: a tree of when rows end, the least of two above them ---- */

struct free_rows {
	int64_t *ends; /* [1] is the top; row r is [leaves + r] */
	uint32_t leaves, used;
};

static bool
grow_rows(struct free_rows *f)
{
	uint32_t leaves = f->leaves ? f->leaves * 2 : 4;
	int64_t *ends = leaves ? malloc(2 * (size_t)leaves * sizeof *ends) : NULL;

	if (!ends)
		return false;
	for (uint32_t i = 0; i < leaves; i++)
		ends[leaves + i] = i < f->leaves ? f->ends[f->leaves + i] : INT64_MIN;
	for (uint32_t i = leaves; i-- > 1;)
		ends[i] = ends[2 * i] < ends[2 * i + 1] ? ends[2 * i] : ends[2 * i + 1];
	free(f->ends);
	f->ends = ends;
	f->leaves = leaves;
	return true;
}

/* The first row that is free at START; it is taken until END. PLUMB_NONE: no memory. */
static uint32_t
take_row(struct free_rows *f, int64_t start, int64_t end)
{
	uint32_t at = 1, row;

	if ((!f->leaves || f->ends[1] > start) && !grow_rows(f))
		return PLUMB_NONE;
	while (at < f->leaves)
		at = f->ends[2 * at] <= start ? 2 * at : 2 * at + 1;
	row = at - f->leaves;
	f->ends[at] = end;
	for (at /= 2; at; at /= 2)
		f->ends[at] = f->ends[2 * at] < f->ends[2 * at + 1] ? f->ends[2 * at]
		                                                    : f->ends[2 * at + 1];
	if (row >= f->used)
		f->used = row + 1;
	return row;
}

/* ---- a lane ---- */

static bool
choose_rows(const struct plumb_lanes *l, const uint32_t *sources, uint32_t count, uint32_t *rows,
            uint32_t *used)
{
	struct free_rows f = { 0 };
	bool ok = true;

	for (uint32_t i = 0; ok && i < count; i++) {
		struct plumb_interval_ns times = plumb_lane_times(l, sources[i]);

		rows[i] = take_row(&f, times.start, times.end);
		ok = rows[i] != PLUMB_NONE;
	}
	free(f.ends);
	*used = f.used;
	return ok;
}

static bool
add_rows(struct plumb_lanes *l, struct plumb_lane *lane, uint32_t rows)
{
	if (l->row_count + (uint64_t)rows > l->row_room) {
		void *grown = plumb_vec_grow(l->rows, &l->row_room, l->row_count + (uint64_t)rows,
		                             sizeof *l->rows);
		if (!grown)
			return false;
		l->rows = grown;
	}
	lane->row = l->row_count;
	lane->row_count = rows;
	memset(&l->rows[l->row_count], 0, rows * sizeof *l->rows);
	l->row_count += rows;
	return true;
}

/* Places the spans row by row. PLACES gets for each where it is; it has their rows before. */
static void
place_spans(struct plumb_lanes *l, struct plumb_lane *lane, const uint32_t *sources,
            uint32_t *places, uint32_t count)
{
	struct plumb_lane_row *rows = &l->rows[lane->row];
	uint32_t next = l->count;

	for (uint32_t i = 0; i < count; i++)
		rows[places[i]].end++;
	for (uint32_t r = 0; r < lane->row_count; r++) {
		uint32_t here = rows[r].end;

		rows[r].first = rows[r].end = next;
		next += here;
	}
	for (uint32_t i = 0; i < count; i++) {
		struct plumb_interval_ns times = plumb_lane_times(l, sources[i]);
		uint32_t place = rows[places[i]].end++;

		places[i] = place;
		l->start[place] = times.start;
		l->end[place] = times.end;
		l->source[place] = sources[i];
		if (times.end > lane->end_ns || !i)
			lane->end_ns = times.end;
	}
	lane->start_ns = l->start[lane->first];
}

int
plumb_lane_fill(struct plumb_lanes *l, struct plumb_lane *lane, const uint32_t *sources,
                uint32_t count)
{
	uint32_t *places = malloc(count * sizeof *places), rows = 0;
	bool ok =
		places && choose_rows(l, sources, count, places, &rows) && add_rows(l, lane, rows);

	lane->first = l->count;
	lane->end = l->count + count;
	if (ok) {
		place_spans(l, lane, sources, places, count);
		l->count += count;
	}
	free(places);
	return ok ? 0 : PLUMB_ESYSTEM;
}
