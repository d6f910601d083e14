/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/answer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *
plumb_answer_source_name(enum plumb_answer_source source)
{
	return source == PLUMB_SOURCE_IS_MEASURED  ? "measured"
	       : source == PLUMB_SOURCE_IS_DERIVED ? "derived"
	                                           : NULL;
}

void
plumb_answer_column_short(struct plumb_answer *answer, const char *name, const char *unit,
                          enum plumb_answer_source source, uint8_t digits)
{
	if (answer->column_count == answer->columns_room) {
		void *grown = plumb_vec_grow(answer->columns, &answer->columns_room,
		                             answer->column_count + 1ul, sizeof *answer->columns);
		if (!grown) {
			answer->failed = true;
			return;
		}
		answer->columns = grown;
	}
	answer->columns[answer->column_count++] = (struct plumb_answer_column){
		.name = name, .unit = unit, .source = source, .digits = digits
	};
}

void
plumb_answer_column(struct plumb_answer *answer, const char *name, const char *unit,
                    enum plumb_answer_source source)
{
	plumb_answer_column_short(answer, name, unit, source, 0);
}

/* ---- cells ---- */

static void
add_cell(struct plumb_answer *answer, struct plumb_answer_cell cell)
{
	if (answer->cell_count == answer->cells_room) {
		void *grown = plumb_vec_grow(answer->cells, &answer->cells_room,
		                             answer->cell_count + 1, sizeof *answer->cells);
		if (!grown) {
			answer->failed = true;
			return;
		}
		answer->cells = grown;
	}
	answer->cells[answer->cell_count++] = cell;
}

void
plumb_answer_text(struct plumb_answer *answer, const char *text)
{
	add_cell(answer,
	         (struct plumb_answer_cell){ text ? PLUMB_ANSWER_TEXT : PLUMB_ANSWER_UNKNOWN,
	                                     { .text = text } });
}

void
plumb_answer_copy(struct plumb_answer *answer, const char *text)
{
	char **kept = text ? plumb_vec_add(&answer->copies) : NULL;

	if (kept)
		*kept = strdup(text);
	answer->failed |= text && (!kept || !*kept);
	plumb_answer_text(answer, kept ? *kept : NULL);
}

void
plumb_answer_integer(struct plumb_answer *answer, int64_t integer)
{
	add_cell(answer, (struct plumb_answer_cell){ integer != INT64_MIN ? PLUMB_ANSWER_INTEGER
	                                                                  : PLUMB_ANSWER_UNKNOWN,
	                                             { .integer = integer } });
}

void
plumb_answer_number(struct plumb_answer *answer, double number)
{
	add_cell(answer, (struct plumb_answer_cell){ isfinite(number) ? PLUMB_ANSWER_NUMBER
	                                                              : PLUMB_ANSWER_UNKNOWN,
	                                             { .number = number } });
}

void
plumb_answer_truth(struct plumb_answer *answer, int truth)
{
	add_cell(answer,
	         (struct plumb_answer_cell){ truth < 0 ? PLUMB_ANSWER_UNKNOWN : PLUMB_ANSWER_TRUTH,
	                                     { .truth = truth > 0 } });
}

/* ---- the whole ---- */

/* The type that a column of TYPE has once it holds a cell of type CELL, too. */
static enum plumb_answer_type
type_of_both(enum plumb_answer_type type, enum plumb_answer_type cell)
{
	if (type == cell || cell == PLUMB_ANSWER_UNKNOWN)
		return type;
	if (type == PLUMB_ANSWER_UNKNOWN)
		return cell;
	return (type == PLUMB_ANSWER_INTEGER || type == PLUMB_ANSWER_NUMBER) &&
	                       (cell == PLUMB_ANSWER_INTEGER || cell == PLUMB_ANSWER_NUMBER)
	               ? PLUMB_ANSWER_NUMBER
	               : PLUMB_ANSWER_TEXT;
}

int
plumb_answer_end(struct plumb_answer *answer, struct plumb_error *error)
{
	if (answer->failed) {
		plumb_fail_memory(error, "for table %s", answer->id);
		plumb_answer_free(answer);
		return PLUMB_ESYSTEM;
	}
	answer->row_count =
		answer->column_count ? (uint32_t)(answer->cell_count / answer->column_count) : 0;
	for (uint32_t c = 0; c < answer->column_count; c++) {
		struct plumb_answer_column *column = &answer->columns[c];

		for (uint32_t r = 0; r < answer->row_count; r++)
			column->type =
				type_of_both(column->type, plumb_answer_at(answer, r, c)->type);
		if (column->type == PLUMB_ANSWER_UNKNOWN)
			column->source = PLUMB_SOURCE_IS_UNKNOWN;
	}
	return 0;
}

void
plumb_answer_clear(struct plumb_answer *answer)
{
	for (uint32_t i = 0; i < answer->copies.count; i++)
		free(answer->copies.items[i]);
	answer->copies.count = 0;
	answer->cell_count = 0;
	answer->row_count = 0;
}

void
plumb_answer_free(struct plumb_answer *answer)
{
	plumb_answer_clear(answer);
	plumb_vec_free(&answer->copies);
	free(answer->columns);
	free(answer->cells);
	*answer = (struct plumb_answer){ 0 };
}
