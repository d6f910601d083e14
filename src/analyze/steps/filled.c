/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/steps/filled.h"

/* Adds what the thread behind each wait of the device did. */
static int
fill_idle(struct plumb_moments *line, int64_t from, int64_t to, struct plumb_step_rows *rows)
{
	const struct plumb_pieces *pieces = plumb_moments_busy(line);
	int code = pieces ? 0 : PLUMB_ESYSTEM;

	for (uint32_t i = code ? 0 : plumb_pieces_from(pieces, from);
	     !code && i < pieces->count && pieces->items[i].start_ns < to; i++) {
		const struct plumb_piece *piece = &pieces->items[i];
		int64_t start = piece->start_ns > from ? piece->start_ns : from;
		int64_t end = piece->end_ns < to ? piece->end_ns : to;

		if (piece->id == PLUMB_NONE)
			code = plumb_moments_waited(line, plumb_moments_op(line, piece->end_ns),
			                            start, end, rows);
	}
	return code;
}

static int
fill_one(struct plumb_moments *line, const struct plumb_iteration *item, uint32_t what,
         struct plumb_filled_one *one)
{
	uint32_t first;
	int code = 0;

	one->thread = PLUMB_NONE;
	if (item->interval_ns == PLUMB_UNKNOWN)
		return 0;
	/* The iteration's first kernel, and not what another stream begins then. */
	first = plumb_moments_kernel(line, plumb_moments_op(line, item->start_ns));
	one->thread = plumb_moments_thread(line, first);
	if (what == PLUMB_FILLED_INTERVALS)
		code = plumb_moments_host(line, one->thread, item->start_ns - item->interval_ns,
		                          item->start_ns, &one->rows);
	else
		code = fill_idle(line, item->start_ns - item->interval_ns, item->end_ns,
		                 &one->rows);
	plumb_step_rows_sum(&one->rows);
	for (uint32_t r = 0; r < one->rows.count; r++)
		one->ns += one->rows.items[r].ns;
	return code;
}

int
plumb_filled_find(struct plumb_moments *line, const struct plumb_iteration_level *level,
                  const struct plumb_iteration_limits *limits, struct plumb_filled *filled)
{
	int code = 0;

	*filled = (struct plumb_filled){ .all.thread = PLUMB_NONE };
	if (level->verdict != PLUMB_HOST_BOUND && level->verdict != PLUMB_COPY_BOUND)
		return 0;
	filled->what = plumb_iterations_wait_between(level, limits) ? PLUMB_FILLED_INTERVALS
	                                                            : PLUMB_FILLED_IDLE;
	if (line->usual_thread == PLUMB_NONE) {
		filled->what = PLUMB_FILLED_UNKNOWN;
		return 0;
	}
	filled->items = calloc((size_t)level->count + 1, sizeof *filled->items);
	if (!filled->items)
		return PLUMB_ESYSTEM;
	filled->count = level->count;
	for (uint32_t i = 0; !code && i < level->count; i++) {
		struct plumb_filled_one *one = &filled->items[i];

		code = fill_one(line, &level->items[i], filled->what, one);
		filled->all.ns += one->ns;
		if (filled->all.thread == PLUMB_NONE)
			filled->all.thread = one->thread;
		for (uint32_t r = 0; !code && r < one->rows.count; r++) {
			struct plumb_step_row *row = plumb_vec_add(&filled->all.rows);

			if (row)
				*row = one->rows.items[r];
			else
				code = PLUMB_ESYSTEM;
		}
	}
	plumb_step_rows_sum(&filled->all.rows);
	return code;
}

void
plumb_filled_free(struct plumb_filled *filled)
{
	for (uint32_t i = 0; i < filled->count; i++)
		plumb_vec_free(&filled->items[i].rows);
	free(filled->items);
	plumb_vec_free(&filled->all.rows);
	*filled = (struct plumb_filled){ 0 };
}
