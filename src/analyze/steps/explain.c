/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/steps/explain_private.h"

#include "analyze/statistic.h"

#define OTHERS_MOST 128 /* iterations that the median is of */

const char *const plumb_cause_names[PLUMB_CAUSES] = { "host", "copy",       "kernels",
	                                              "rank", "contention", "idle" };

/* ---- what an iteration did ---- */

/* When the last of what belongs to an iteration was launched. */
static int64_t
launched_by(const struct plumb_moments *m, const struct plumb_iteration *item)
{
	const struct plumb_profile *p = m->profile;
	uint32_t end = plumb_moments_op(m, item->end_ns);

	for (uint32_t i = end; i > 0; i--) {
		const struct plumb_span *span = plumb_moments_span(m, i - 1);
		uint32_t call;

		if (span->start_ns < item->start_ns)
			break;
		if (span->track != m->main_track || m->ops[i - 1].sort == PLUMB_STEP_COPY)
			continue;
		call = plumb_moments_call(m, i - 1);
		if (call != PLUMB_NONE)
			return p->spans[call].start_ns;
	}
	return PLUMB_UNKNOWN;
}

/* What the thread did from the last launch of the iteration before to its own last one. 1: it is
 * not known when these were. */
static int
gather_host(struct plumb_moments *m, const struct plumb_iteration_level *level, uint32_t i,
            struct plumb_step_rows *rows)
{
	int64_t from = i ? launched_by(m, &level->items[i - 1]) : PLUMB_UNKNOWN;
	int64_t to = launched_by(m, &level->items[i]);
	int code = 0;

	if (m->usual_thread == PLUMB_NONE || from == PLUMB_UNKNOWN || to == PLUMB_UNKNOWN ||
	    to <= from)
		return 1;
	code = plumb_moments_host(m, m->usual_thread, from, to, rows);
	plumb_step_rows_sum(rows);
	return code;
}

static int
gather_critical(struct plumb_moments *m, const struct plumb_iteration_level *level, uint32_t i,
                struct plumb_step_rows *rows)
{
	int code = plumb_moments_both(m, plumb_iteration_from(&level->items[i]),
	                              level->items[i].end_ns, rows);

	plumb_step_rows_sum(rows);
	return code;
}

/* ---- medians ---- */

struct cell {
	uint32_t key;
	int64_t ns, count, bytes;
};
struct cells {
	struct cell *items;
	uint32_t count, capacity;
};

typedef int (*gather_fn)(struct plumb_moments *m, const struct plumb_iteration_level *level,
                         uint32_t i, struct plumb_step_rows *rows);

static int
by_key(const void *x, const void *y)
{
	const struct cell *a = x, *b = y;

	return (a->key > b->key) - (a->key < b->key);
}

/* Of N numbers, of which COUNT are given and the others are 0. */
static int64_t
take_median(double *numbers, uint32_t count, uint32_t n)
{
	for (uint32_t i = count; i < n; i++)
		numbers[i] = 0;
	return n ? plumb_whole(plumb_median(numbers, n)) : 0;
}

/* CELLS by key, of N iterations; ROOM for N. */
static void
find_medians(const struct cells *cells, uint32_t n, double *room, struct plumb_usual *usual)
{
	for (uint32_t i = 0, end; i < cells->count; i = end) {
		struct plumb_usual *one = &usual[cells->items[i].key];
		bool sizes = true;

		for (end = i; end < cells->count && cells->items[end].key == cells->items[i].key;)
			sizes = cells->items[end++].bytes != PLUMB_UNKNOWN && sizes;
#define FIELD(field)                                                                               \
	for (uint32_t k = i; k < end; k++)                                                         \
		room[k - i] = (double)cells->items[k].field;                                       \
	one->usual_##field = take_median(room, end - i, n)
		FIELD(ns);
		FIELD(count);
		one->usual_bytes = PLUMB_UNKNOWN;
		if (sizes) {
			FIELD(bytes);
		}
#undef FIELD
	}
}

/* Has the level others than NUMBER of which the time before them is known? The first one has none,
 * so it is no measure then; of few any is. */
static bool
have_whole_ones(const struct plumb_iteration_level *level, uint32_t number)
{
	bool whole = false;

	for (uint32_t i = 0; level->count > 3 && !whole && i < level->count; i++)
		whole = i != number && level->items[i].interval_ns != PLUMB_UNKNOWN;
	return whole;
}

/* By key: iteration NUMBER, and the median of others; all 0 where either is not known. NULL: no
 * memory. */
static struct plumb_usual *
compare_keys(const struct plumb_comparison *c, gather_fn gather)
{
	struct plumb_step_rows rows = { 0 };
	struct cells cells = { 0 };
	struct plumb_usual *usual = NULL;
	uint32_t count = c->level->count, step = count / OTHERS_MOST + 1, n = 0;
	double *room = malloc(((size_t)count + 1) * sizeof *room);
	bool whole = have_whole_ones(c->level, c->number);
	int code = room ? 0 : PLUMB_ESYSTEM;

	for (uint32_t i = 0; code >= 0 && i < count; i += step) {
		if (i == c->number || (whole && c->level->items[i].interval_ns == PLUMB_UNKNOWN))
			continue;
		rows.count = 0;
		code = gather(c->moments, c->level, i, &rows);
		n += !code;
		for (uint32_t r = 0; !code && r < rows.count; r++) {
			struct cell *cell = plumb_vec_add(&cells);

			if (cell)
				*cell = (struct cell){ rows.items[r].key, rows.items[r].ns,
					               rows.items[r].count, rows.items[r].bytes };
			else
				code = PLUMB_ESYSTEM;
		}
	}
	rows.count = 0;
	if (code >= 0)
		code = gather(c->moments, c->level, c->number, &rows);
	if (code >= 0)
		usual = calloc((size_t)c->moments->keys.count + 1, sizeof *usual);
	if (usual && !code && n) {
		if (cells.count)
			qsort(cells.items, cells.count, sizeof *cells.items, by_key);
		find_medians(&cells, n, room, usual);
		for (uint32_t r = 0; r < rows.count; r++) {
			usual[rows.items[r].key].ns = rows.items[r].ns;
			usual[rows.items[r].key].count = rows.items[r].count;
			usual[rows.items[r].key].bytes = rows.items[r].bytes;
		}
	}
	plumb_vec_free(&rows);
	plumb_vec_free(&cells);
	free(room);
	return usual;
}

/* ---- all of it ---- */

/* The iteration that lasts as long as most others, and how long that is. */
static int
find_median_iteration(const struct plumb_iteration_level *level, uint32_t number,
                      struct plumb_explained *told)
{
	double *room = malloc(((size_t)level->count + 1) * sizeof *room);
	bool whole = have_whole_ones(level, number);
	uint32_t n = 0;

	if (!room)
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < level->count; i++)
		if (i != number && (!whole || level->items[i].interval_ns != PLUMB_UNKNOWN))
			room[n++] = (double)plumb_iteration_time(&level->items[i]);
	told->usual_ns = take_median(room, n, n);
	told->median = number ? 0 : 1;
	for (uint32_t i = 0; i < level->count; i++)
		if (i != number && (!whole || level->items[i].interval_ns != PLUMB_UNKNOWN) &&
		    llabs(plumb_iteration_time(&level->items[i]) - told->usual_ns) <
		            llabs(plumb_iteration_time(&level->items[told->median]) -
		                  told->usual_ns))
			told->median = i;
	free(room);
	return 0;
}

struct plumb_difference *
plumb_explain_row(struct plumb_comparison *c, uint32_t cause, uint32_t key,
                  const struct plumb_usual *usual)
{
	struct plumb_difference *row = plumb_vec_add(&c->told->rows);

	if (row)
		*row = (struct plumb_difference){ cause,         false,
			                          false,         key,
			                          usual->ns,     usual->usual_ns,
			                          usual->count,  usual->usual_count,
			                          usual->bytes,  usual->usual_bytes,
			                          PLUMB_UNKNOWN, NULL };
	return row;
}

int
plumb_explain(struct plumb_moments *moments, const struct plumb_iteration_level *level,
              uint32_t number, int64_t rank, const struct plumb_explain_peer *peers,
              uint32_t peer_count, struct plumb_explained *told)
{
	struct plumb_comparison c = { moments,    level, number, rank, peers,
		                      peer_count, NULL,  NULL,   0,    told };
	int code = 0;

	*told = (struct plumb_explained){ .iteration = number };
	if (number >= level->count || level->count < 2)
		return 0;
	told->ns = plumb_iteration_time(&level->items[number]);
	c.host = compare_keys(&c, gather_host);
	c.keys = moments->keys.count;
	c.critical = compare_keys(&c, gather_critical);
	if (!c.host || !c.critical || find_median_iteration(level, number, told) < 0)
		code = PLUMB_ESYSTEM;
	if (!code) {
		struct plumb_usual *grown =
			realloc(c.host, ((size_t)moments->keys.count + 1) * sizeof *grown);

		if (!grown) {
			code = PLUMB_ESYSTEM;
		} else {
			c.host = grown;
			memset(&grown[c.keys], 0,
			       ((size_t)moments->keys.count - c.keys) * sizeof *grown);
			c.keys = moments->keys.count;
			code = plumb_explain_rows(&c);
		}
	}
	free(c.host);
	free(c.critical);
	return code;
}

void
plumb_explained_free(struct plumb_explained *told)
{
	for (uint32_t i = 0; i < told->rows.count; i++)
		free(told->rows.items[i].text);
	plumb_vec_free(&told->rows);
}
