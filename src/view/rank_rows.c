/* SPDX-License-Identifier: Apache-2.0 */
#include "view/rank_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/ranks.h"
#include "model/collective.h"

struct maker {
	const struct plumb_profile *profile;
	struct plumb_rank_rows *rows;
	struct plumb_iterations iterations;
	struct plumb_ranks ranks;
	uint32_t *row_of; /* by rank of `found`: its row */
	int64_t notable_ns;
};

/* ---- rows ---- */

static int
by_rank(const void *x, const void *y)
{
	const struct plumb_rank_row *a = x, *b = y;

	if ((a->rank == PLUMB_UNKNOWN) != (b->rank == PLUMB_UNKNOWN))
		return a->rank == PLUMB_UNKNOWN ? 1 : -1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return (a->device > b->device) - (a->device < b->device);
}

static int64_t
op_time_of(const struct maker *m, int64_t rank)
{
	for (uint32_t i = 0; i < m->ranks.count; i++)
		if (m->ranks.items[i].rank == rank)
			return m->ranks.items[i].op_time_ns;
	return PLUMB_UNKNOWN;
}

/* `caused_ns` is the rank's number in `found` until the rows are in order. */
static bool
list_rows(struct maker *m)
{
	const struct plumb_profile *p = m->profile;
	const struct plumb_rank_waits *w = &m->rows->found;
	struct plumb_rank_row *items = calloc((size_t)w->count + m->ranks.count + 1, sizeof *items);
	uint32_t n = 0;

	m->rows->items = items;
	if (!items)
		return false;
	for (uint32_t r = 0; r < w->count; r++) {
		const struct plumb_waiting_rank *rank = &w->ranks[r];

		items[n++] = (struct plumb_rank_row){
			.rank = rank->rank,
			.pid = rank->process < p->processes_count ? p->processes[rank->process].pid
			                                          : PLUMB_UNKNOWN,
			.device = rank->device < p->devices_count ? p->devices[rank->device].ordinal
			                                          : PLUMB_UNKNOWN,
			.has_gpu = true,
			.op_time_ns = op_time_of(m, rank->rank),
			.caused_ns = r,
			.collectives = rank->matched,
		};
	}
	for (uint32_t i = 0; i < m->ranks.count; i++) {
		bool seen = false;

		for (uint32_t r = 0; r < w->count; r++)
			seen |= w->ranks[r].rank == m->ranks.items[i].rank;
		if (!seen)
			items[n++] =
				(struct plumb_rank_row){ .rank = m->ranks.items[i].rank,
				                         .pid = PLUMB_UNKNOWN,
				                         .device = PLUMB_UNKNOWN,
				                         .op_time_ns =
				                                 m->ranks.items[i].op_time_ns };
	}
	qsort(items, n, sizeof *items, by_rank);
	m->rows->count = n;
	for (uint32_t i = 0; i < n; i++)
		if (items[i].has_gpu)
			m->row_of[items[i].caused_ns] = i;
	for (uint32_t i = 0; i < n; i++)
		items[i].caused_ns = items[i].times = items[i].collectives ? 0 : PLUMB_UNKNOWN;
	return true;
}

/* ---- what is compared ---- */

static void
choose_range(struct maker *m)
{
	struct plumb_rank_rows *rows = m->rows;
	const struct plumb_rank_waits *w = &rows->found;
	struct plumb_rank_range range = plumb_rank_waits_range(w, &m->iterations);

	rows->steps = range.loop ? range.loop->count : PLUMB_UNKNOWN;
	rows->of = range.loop ? PLUMB_RANK_ROWS_LOOP : PLUMB_RANK_ROWS_COLLECTIVES;
	if (range.from_ns >= range.to_ns) {
		rows->of = w->count ? PLUMB_RANK_ROWS_WORK : PLUMB_RANK_ROWS_NONE;
		for (uint32_t r = 0; r < w->count; r++) {
			if (!r || w->ranks[r].first_ns < range.from_ns)
				range.from_ns = w->ranks[r].first_ns;
			if (!r || w->ranks[r].last_ns > range.to_ns)
				range.to_ns = w->ranks[r].last_ns;
		}
	}
	rows->from_ns = range.from_ns;
	rows->to_ns = range.to_ns;
	m->notable_ns = plumb_rank_notable(range.to_ns - range.from_ns,
	                                   range.loop ? range.loop->count : NAN);
}

/* The time of the iterations that lie in the range. */
static bool
measure_steps(const struct maker *m, const struct plumb_iteration_level *level,
              struct plumb_rank_row *row)
{
	double *times = malloc(((size_t)level->count + 1) * sizeof *times);
	uint32_t n = 0;

	for (uint32_t i = 0; times && i < level->count; i++) {
		const struct plumb_iteration *item = &level->items[i];

		if (item->interval_ns != PLUMB_UNKNOWN && item->end_ns > m->rows->from_ns &&
		    item->start_ns < m->rows->to_ns)
			times[n++] = (double)plumb_iteration_time(item);
	}
	row->steps = n;
	row->step = times && n ? plumb_estimate_mean(times, n) : plumb_estimate_unknown();
	free(times);
	return times;
}

static bool
fill_rows(struct maker *m)
{
	struct plumb_rank_rows *rows = m->rows;
	bool done = true;

	for (uint32_t i = 0; i < rows->count; i++)
		rows->items[i].step = plumb_estimate_unknown();
	for (uint32_t r = 0; done && r < rows->found.count; r++) {
		const struct plumb_waiting_rank *rank = &rows->found.ranks[r];
		struct plumb_rank_row *row = &rows->items[m->row_of[r]];

		row->sums = plumb_rank_waits_sum(&rows->found, r, rows->from_ns, rows->to_ns);
		for (uint32_t t = 0; done && t < m->iterations.count; t++) {
			const struct plumb_iteration_track *track = &m->iterations.tracks[t];

			if (track->role == PLUMB_ROLE_MAIN && track->level_count &&
			    track->process == rank->process && track->device == rank->device)
				done = measure_steps(m, &track->levels[0], row);
		}
	}
	return done;
}

/* ---- who waits for whom ---- */

static int
by_pair(const void *x, const void *y)
{
	const struct plumb_rank_wait_row *a = x, *b = y;
	int order;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->last != b->last)
		return a->last < b->last ? -1 : 1;
	order = strcmp(a->operation, b->operation);
	return order ? order : (int)a->pair - (int)b->pair;
}

static int
by_time(const void *x, const void *y)
{
	const struct plumb_rank_wait_row *a = x, *b = y;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return by_pair(x, y);
}

static const char *
operation_of(const struct plumb_profile *p, uint32_t name)
{
	const char *text = plumb_text(p, name);
	const char *operation = text ? plumb_collective_name(text) : NULL;

	return operation ? operation : text ? text : "collectives";
}

/* Adds up the waits that are of the same ranks and operation. */
static void
merge_waits(struct plumb_rank_rows *rows)
{
	uint32_t n = 0;

	if (rows->wait_count)
		qsort(rows->waits, rows->wait_count, sizeof *rows->waits, by_pair);
	for (uint32_t i = 0; i < rows->wait_count; i++) {
		struct plumb_rank_wait_row *last = n ? &rows->waits[n - 1] : NULL;

		if (last && !by_pair(last, &rows->waits[i])) {
			last->times += rows->waits[i].times;
			last->ns = plumb_add_known(last->ns, rows->waits[i].ns);
			if (rows->waits[i].most_ns > last->most_ns)
				last->most_ns = rows->waits[i].most_ns;
		} else {
			rows->waits[n++] = rows->waits[i];
		}
	}
	rows->wait_count = n;
	if (n)
		qsort(rows->waits, n, sizeof *rows->waits, by_time);
}

static bool
list_waits(struct maker *m)
{
	struct plumb_rank_rows *rows = m->rows;
	const struct plumb_rank_waits *w = &rows->found;

	rows->waits = malloc(((size_t)w->waits.count + 1) * sizeof *rows->waits);
	for (uint32_t i = 0; rows->waits && i < w->sets.count; i++) {
		const struct plumb_rank_set *set = &w->sets.items[i];
		struct plumb_rank_row *last = &rows->items[m->row_of[set->last]];

		if (set->end_ns <= rows->from_ns || set->end_ns > rows->to_ns)
			continue;
		if (!set->pair)
			last->times += set->most_ns >= m->notable_ns;
		for (uint32_t k = 0; k < set->wait_count; k++) {
			const struct plumb_rank_wait *wait = &w->waits.items[set->first_wait + k];

			if (!set->pair)
				last->caused_ns = plumb_add_known(last->caused_ns, wait->ns);
			if (wait->ns > 0)
				rows->waits[rows->wait_count++] = (struct plumb_rank_wait_row){
					.rank = m->row_of[wait->rank],
					.last = m->row_of[set->last],
					.operation = operation_of(m->profile, set->name),
					.pair = set->pair,
					.times = wait->ns >= m->notable_ns,
					.ns = wait->ns,
					.most_ns = wait->ns,
				};
		}
	}
	if (rows->waits)
		merge_waits(rows);
	return rows->waits;
}

/* ---- the whole ---- */

static bool
make(struct maker *m)
{
	struct plumb_rank_rows *rows = m->rows;

	if (plumb_rank_waits_find(m->profile, &rows->found) < 0 ||
	    plumb_iterations_find(m->profile, NULL, &m->iterations, NULL) < 0)
		return false;
	rows->newest = rows->found.work.newest;
	m->row_of = calloc((size_t)rows->found.count + 1, sizeof *m->row_of);
	if (!m->row_of || !list_rows(m))
		return false;
	choose_range(m);
	return fill_rows(m) && list_waits(m);
}

int
plumb_rank_rows_make(const struct plumb_profile *profile, struct plumb_rank_rows *rows,
                     struct plumb_error *error)
{
	struct maker m = { .profile = profile, .rows = rows };
	bool done;

	*rows = (struct plumb_rank_rows){ 0 };
	done = plumb_ranks_find(profile, &m.ranks);
	if (done && m.ranks.count < 2) {
		const char *few = m.ranks.count ? "one rank" : "no ranks";

		plumb_ranks_free(&m.ranks);
		return plumb_fail(error, PLUMB_EEMPTY,
		                  "the profile has %s; record all ranks of a job together, or "
		                  "import a trace of each",
		                  few);
	}
	done = done && make(&m);
	plumb_ranks_free(&m.ranks);
	plumb_iterations_free(&m.iterations);
	free(m.row_of);
	return done ? 0 : plumb_fail_memory(error, "for the ranks");
}

void
plumb_rank_rows_free(struct plumb_rank_rows *rows)
{
	free(rows->items);
	free(rows->waits);
	plumb_rank_waits_free(&rows->found);
	*rows = (struct plumb_rank_rows){ 0 };
}

bool
plumb_rank_rows_has(const struct plumb_profile *profile)
{
	struct plumb_ranks ranks;
	bool several = plumb_ranks_find(profile, &ranks) && ranks.count > 1;

	plumb_ranks_free(&ranks);
	return several;
}
