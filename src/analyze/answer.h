/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An answer: a table with typed cells, whatever it is about. Renderers (view/render.h) write it as
 * JSON, CSV or binary columns, and cli prints it. You make one column by column, then row by row:
 *
 *	struct plumb_answer answer = { .id = "kernels", .title = "GPU kernels" };
 *	plumb_answer_column(&answer, "name", NULL, PLUMB_SOURCE_IS_MEASURED);
 *	plumb_answer_column(&answer, "time", "ns", PLUMB_SOURCE_IS_MEASURED);
 *	for (…) {
 *		plumb_answer_text(&answer, name);
 *		plumb_answer_integer(&answer, ns);
 *	}
 *	if (plumb_answer_end(&answer, &error) < 0) …
 *	… plumb_answer_at(&answer, row, column)->integer …
 *	plumb_answer_free(&answer);
 *
 * Cells that are not known are PLUMB_ANSWER_UNKNOWN, and a column without a known cell has neither
 * type nor source. Adding never fails at once: plumb_answer_end says if memory ran out.
 */
#ifndef PLUMB_ANALYZE_ANSWER_H
#define PLUMB_ANALYZE_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"

enum plumb_answer_source {
	PLUMB_SOURCE_IS_UNKNOWN,
	PLUMB_SOURCE_IS_MEASURED,
	/* calculated from what was not measured itself: shapes, or a table of peaks */
	PLUMB_SOURCE_IS_DERIVED,
};
/* "measured", "derived" or NULL. */
const char *plumb_answer_source_name(enum plumb_answer_source source);

/* What a cell holds. The numbers stand in binary columns (docs/folders/view.md): add some, never
 * change one. */
enum plumb_answer_type {
	PLUMB_ANSWER_UNKNOWN,
	PLUMB_ANSWER_TEXT,
	PLUMB_ANSWER_INTEGER,
	PLUMB_ANSWER_NUMBER,
	PLUMB_ANSWER_TRUTH,
};

struct plumb_answer_column {
	const char *name;
	/* "ns", "us", "ms", "byte", "%", "flop/byte", "count", …; NULL: a text, a truth, or a
	 * number without unit */
	const char *unit;
	enum plumb_answer_source source;
	/* significant digits that CSV has; 0: as many as it takes to read the same number back */
	uint8_t digits;
	/* set by plumb_answer_end: the one type of all known cells (integers among numbers make it
	 * PLUMB_ANSWER_NUMBER, anything among texts makes it PLUMB_ANSWER_TEXT) */
	enum plumb_answer_type type;
};

struct plumb_answer_cell {
	enum plumb_answer_type type;
	union {
		const char *text;
		int64_t integer;
		double number;
		bool truth;
	};
};

struct plumb_answer {
	const char *id;    /* "A1" */
	const char *title; /* "model information" */
	/* What it means that there are no rows, and what to do if no value is known; or NULL. */
	const char *without, *remedy;
	struct plumb_answer_column *columns;
	uint32_t column_count;
	struct plumb_answer_cell *cells; /* row by row */
	uint32_t row_count;
	/* private */
	uint64_t cell_count;
	uint32_t columns_room, cells_room;
	PLUMB_VEC(char *) copies;
	bool failed;
};

/* NAME and UNIT must live as long as the answer; so must texts of cells that are not copied. */
void plumb_answer_column(struct plumb_answer *answer, const char *name, const char *unit,
                         enum plumb_answer_source source);
/* Of which CSV has so many significant DIGITS. */
void plumb_answer_column_short(struct plumb_answer *answer, const char *name, const char *unit,
                               enum plumb_answer_source source, uint8_t digits);
void plumb_answer_text(struct plumb_answer *answer, const char *text); /* NULL unknown */
void plumb_answer_copy(struct plumb_answer *answer, const char *text); /* the answer keeps a copy */
void plumb_answer_integer(struct plumb_answer *answer, int64_t integer); /* INT64_MIN unknown */
void plumb_answer_number(struct plumb_answer *answer, double number);    /* NAN unknown */
void plumb_answer_truth(struct plumb_answer *answer, int truth);         /* -1 unknown */

/* Counts the rows and finds the columns' types. PLUMB_ESYSTEM: memory ran out, and the answer is
 * freed. */
int plumb_answer_end(struct plumb_answer *answer, struct plumb_error *error) PLUMB_MUST_CHECK;
/* Drops the rows and keeps the columns: long answers are written piece by piece. */
void plumb_answer_clear(struct plumb_answer *answer);
void plumb_answer_free(struct plumb_answer *answer);

static inline const struct plumb_answer_cell *
plumb_answer_at(const struct plumb_answer *answer, uint32_t row, uint32_t column)
{
	return &answer->cells[(size_t)row * answer->column_count + column];
}

#endif
