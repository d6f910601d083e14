/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "view/render.h"

static void
write_cell(struct plumb_json *json, const struct plumb_answer_cell *cell)
{
	switch (cell->type) {
	case PLUMB_ANSWER_UNKNOWN:
		plumb_json_null(json);
		break;
	case PLUMB_ANSWER_TEXT:
		plumb_json_text(json, cell->text);
		break;
	case PLUMB_ANSWER_INTEGER:
		plumb_json_integer(json, cell->integer);
		break;
	case PLUMB_ANSWER_NUMBER:
		if (fabs(cell->number) < 1e15 && cell->number == round(cell->number))
			plumb_json_integer(json, (int64_t)cell->number);
		else
			plumb_json_number(json, cell->number);
		break;
	case PLUMB_ANSWER_TRUTH:
		plumb_json_bool(json, cell->truth);
		break;
	}
}

void
plumb_view_answer_json(const struct plumb_answer *answer, struct plumb_json *json)
{
	plumb_json_object(json);
	plumb_json_key_text(json, "id", answer->id);
	plumb_json_key_text(json, "title", answer->title);
	plumb_json_key_array(json, "columns");
	for (uint32_t c = 0; c < answer->column_count; c++) {
		const struct plumb_answer_column *column = &answer->columns[c];

		plumb_json_object(json);
		plumb_json_key_text(json, "name", column->name);
		plumb_json_key_text(json, "unit", column->unit);
		plumb_json_key_text(json, "source", plumb_answer_source_name(column->source));
		plumb_json_end(json);
	}
	plumb_json_end(json);
	plumb_json_key_array(json, "rows");
	for (uint32_t r = 0; r < answer->row_count; r++) {
		plumb_json_array(json);
		for (uint32_t c = 0; c < answer->column_count; c++)
			write_cell(json, plumb_answer_at(answer, r, c));
		plumb_json_end(json);
	}
	plumb_json_end(json);
	plumb_json_end(json);
}
