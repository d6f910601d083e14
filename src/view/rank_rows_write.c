/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks side by side as two tables: the ranks, and which waits for which. */
#include <math.h>

#include "analyze/statistic.h"
#include "view/rank_rows.h"
#include "view/view.h"

static const char *const of_names[] = { "loop", "collectives", "work", NULL };

static void
add_columns(struct plumb_answer *a, const char *const columns[][2], size_t count)
{
	for (size_t i = 0; i < count; i++)
		plumb_answer_column(a, columns[i][0], columns[i][1], PLUMB_SOURCE_IS_MEASURED);
}

static void
add_row(const struct plumb_rank_row *row, struct plumb_answer *a)
{
	const struct plumb_rank_sums *s = &row->sums;
	bool waits = row->has_gpu && s->waiting_ns != PLUMB_UNKNOWN;
	double half = plumb_student(row->step.freedom) * row->step.error;
	const int64_t parts[] = {
		s->whole_ns,   s->compute_ns - s->hidden_ns,
		s->hidden_ns,  waits ? s->collectives_ns - s->waiting_ns : s->collectives_ns,
		s->waiting_ns, s->copies_ns,
		s->idle_ns,
	};

	plumb_answer_integer(a, row->rank);
	plumb_answer_integer(a, row->pid);
	plumb_answer_integer(a, row->device);
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		plumb_answer_integer(a, row->has_gpu ? parts[i] : PLUMB_UNKNOWN);
	plumb_answer_integer(a, row->caused_ns);
	plumb_answer_integer(a, row->times);
	plumb_answer_integer(a, row->collectives);
	plumb_answer_integer(a, row->steps ? (int64_t)row->steps : PLUMB_UNKNOWN);
	plumb_answer_number(a, row->step.value);
	plumb_answer_number(a, row->step.value - half);
	plumb_answer_number(a, row->step.value + half);
	plumb_answer_integer(a, row->op_time_ns);
}

static int
make_ranks(const struct plumb_rank_rows *rows, struct plumb_answer *a, struct plumb_error *error)
{
	static const char *const columns[][2] = {
		{ "rank", NULL },       { "process", NULL },   { "device", NULL },
		{ "whole", "ns" },      { "computing", "ns" }, { "hidden", "ns" },
		{ "exposed", "ns" },    { "waiting", "ns" },   { "copies", "ns" },
		{ "idle", "ns" },       { "caused", "ns" },    { "late", "count" },
		{ "matched", "count" }, { "steps", "count" },  { "step", "ns" },
		{ "step_low", "ns" },   { "step_high", "ns" }, { "operators", "ns" },
	};

	*a = (struct plumb_answer){ .id = "ranks", .title = "ranks side by side" };
	add_columns(a, columns, sizeof columns / sizeof *columns);
	for (uint32_t r = 0; r < rows->count; r++)
		add_row(&rows->items[r], a);
	return plumb_answer_end(a, error);
}

static int
make_waits(const struct plumb_rank_rows *rows, uint32_t top, struct plumb_answer *a,
           struct plumb_error *error)
{
	static const char *const columns[][2] = {
		{ "rank", NULL },      { "process", NULL },     { "device", NULL },
		{ "for_rank", NULL },  { "for_process", NULL }, { "for_device", NULL },
		{ "operation", NULL }, { "pair", NULL },        { "late", "count" },
		{ "waiting", "ns" },   { "most", "ns" },
	};

	*a = (struct plumb_answer){ .id = "ranks.waits", .title = "who waits for whom" };
	add_columns(a, columns, sizeof columns / sizeof *columns);
	for (uint32_t i = 0; i < rows->wait_count && (!top || i < top); i++) {
		const struct plumb_rank_wait_row *wait = &rows->waits[i];
		const struct plumb_rank_row *sides[] = { &rows->items[wait->rank],
			                                 &rows->items[wait->last] };

		for (int side = 0; side < 2; side++) {
			plumb_answer_integer(a, sides[side]->rank);
			plumb_answer_integer(a, sides[side]->pid);
			plumb_answer_integer(a, sides[side]->device);
		}
		plumb_answer_text(a, wait->operation);
		plumb_answer_truth(a, wait->pair);
		plumb_answer_integer(a, wait->times);
		plumb_answer_integer(a, wait->ns);
		plumb_answer_integer(a, wait->most_ns);
	}
	return plumb_answer_end(a, error);
}

static int
write_json(const struct plumb_rank_rows *rows, const struct plumb_answer *tables, FILE *out)
{
	struct plumb_json *json = plumb_view_json_new(out, "ranks");
	bool timed = rows->of != PLUMB_RANK_ROWS_NONE;

	plumb_json_key_text(json, "of", of_names[rows->of]);
	plumb_json_key_quantity(json, "start_ns", timed ? rows->from_ns : PLUMB_UNKNOWN);
	plumb_json_key_quantity(json, "end_ns", timed ? rows->to_ns : PLUMB_UNKNOWN);
	plumb_json_key_quantity(json, "steps", rows->steps);
	plumb_json_key_bool(json, "newest", rows->newest);
	plumb_json_key_quantity(json, "waits_available", rows->wait_count);
	plumb_json_key(json, "ranks");
	plumb_view_answer_json(&tables[0], json);
	plumb_json_key(json, "waits");
	plumb_view_answer_json(&tables[1], json);
	plumb_json_end(json);
	return plumb_json_finish(json);
}

int
plumb_view_ranks(const struct plumb_profile *profile, uint32_t top, enum plumb_view_format format,
                 FILE *out, struct plumb_error *error)
{
	struct plumb_answer tables[2] = { 0 };
	struct plumb_rank_rows rows;
	int code = plumb_rank_rows_make(profile, &rows, error);

	if (!code)
		code = make_ranks(&rows, &tables[0], error);
	if (!code)
		code = make_waits(&rows, top, &tables[1], error);
	if (!code && format == PLUMB_VIEW_JSON && write_json(&rows, tables, out) < 0)
		code = plumb_fail(error, PLUMB_ESYSTEM, "the answer cannot be written");
	for (int i = 0; !code && i < 2; i++)
		if (format == PLUMB_VIEW_COLUMNS || (format == PLUMB_VIEW_CSV && !i))
			code = plumb_view_answer(&tables[i], format, out, error);
	plumb_answer_free(&tables[0]);
	plumb_answer_free(&tables[1]);
	plumb_rank_rows_free(&rows);
	return code;
}
