/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "base/csv.h"
#include "view/render.h"

#define EXACT 17 /* digits from which a double is read back as it was */

const char *
plumb_view_cell_text(const struct plumb_answer_cell *cell, int digits,
                     char buffer[PLUMB_VIEW_CELL_SIZE])
{
	switch (cell->type) {
	case PLUMB_ANSWER_TEXT:
		return cell->text;
	case PLUMB_ANSWER_INTEGER:
		snprintf(buffer, PLUMB_VIEW_CELL_SIZE, "%" PRId64, cell->integer);
		return buffer;
	case PLUMB_ANSWER_NUMBER:
		snprintf(buffer, PLUMB_VIEW_CELL_SIZE, "%.*g", digits ? digits : EXACT,
		         cell->number);
		return buffer;
	case PLUMB_ANSWER_TRUTH:
		return cell->truth ? "true" : "false";
	case PLUMB_ANSWER_UNKNOWN:
		break;
	}
	return "";
}

void
plumb_view_names_csv(const struct plumb_answer *answer, FILE *out)
{
	for (uint32_t c = 0; c < answer->column_count; c++) {
		plumb_csv_put(out, answer->columns[c].name);
		fputc(c + 1 < answer->column_count ? ',' : '\n', out);
	}
}

void
plumb_view_rows_csv(const struct plumb_answer *answer, FILE *out)
{
	char buffer[PLUMB_VIEW_CELL_SIZE];

	for (uint32_t r = 0; r < answer->row_count; r++)
		for (uint32_t c = 0; c < answer->column_count; c++) {
			plumb_csv_put(out, plumb_view_cell_text(plumb_answer_at(answer, r, c),
			                                        answer->columns[c].digits, buffer));
			fputc(c + 1 < answer->column_count ? ',' : '\n', out);
		}
}

void
plumb_view_answer_csv(const struct plumb_answer *answer, FILE *out)
{
	plumb_view_names_csv(answer, out);
	plumb_view_rows_csv(answer, out);
}
