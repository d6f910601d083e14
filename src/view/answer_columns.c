/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An answer as binary columns, for readers that map typed arrays onto what they get. The layout is
 * in docs/folders/view.md. It is worked out first, so that nothing but small pieces is kept.
 */
#include <endian.h>
#include <string.h>

#include "view/render.h"

#define MAGIC "plumbcol"
#define VERSION 1
#define HEADER 64u     /* bytes of the header */
#define DESCRIPTOR 64u /* bytes of the descriptor of a column */

/* The bytes of an array, up to the next multiple of 8: all arrays begin at one. */
static uint64_t
pad_bytes(uint64_t bytes)
{
	return (bytes + 7) & ~(uint64_t)7;
}

struct layout {
	const struct plumb_answer *answer;
	FILE *out;
	uint64_t at; /* bytes laid out or written so far */
};

/* ---- writing ---- */

static void
put_bytes(struct layout *l, const void *bytes, size_t count)
{
	if (count)
		fwrite(bytes, 1, count, l->out);
	l->at += count;
}

static void
put32(struct layout *l, uint32_t value)
{
	value = htole32(value);
	put_bytes(l, &value, sizeof value);
}

static void
put64(struct layout *l, uint64_t value)
{
	value = htole64(value);
	put_bytes(l, &value, sizeof value);
}

static void
put_padding(struct layout *l)
{
	static const char zeros[8];

	put_bytes(l, zeros, (size_t)(pad_bytes(l->at) - l->at));
}

/* Where TEXT is, which is laid out at *AT: offset and bytes, both 0 for NULL. */
static void
put_place(struct layout *l, const char *text, uint64_t *at)
{
	uint64_t bytes = text ? strlen(text) : 0;

	put64(l, text ? *at : 0);
	put64(l, bytes);
	*at += bytes;
}

/* ---- what columns hold ---- */

/* The text of a cell in a column of texts. */
static const char *
text_of(const struct plumb_answer *answer, uint32_t row, uint32_t column,
        char buffer[PLUMB_VIEW_CELL_SIZE])
{
	return plumb_view_cell_text(plumb_answer_at(answer, row, column),
	                            answer->columns[column].digits, buffer);
}

static uint64_t
text_bytes(const struct plumb_answer *answer, uint32_t column)
{
	char buffer[PLUMB_VIEW_CELL_SIZE];
	uint64_t bytes = 0;

	for (uint32_t r = 0; r < answer->row_count; r++)
		bytes += strlen(text_of(answer, r, column, buffer));
	return bytes;
}

/* Does the column have unknown cells beside known ones? */
static bool
has_unknown(const struct plumb_answer *answer, uint32_t column)
{
	for (uint32_t r = 0; r < answer->row_count; r++)
		if (plumb_answer_at(answer, r, column)->type == PLUMB_ANSWER_UNKNOWN)
			return answer->columns[column].type != PLUMB_ANSWER_UNKNOWN;
	return false;
}

/* The bytes of the column's values: numbers, truths, or where texts begin. */
static uint64_t
value_bytes(const struct plumb_answer *answer, uint32_t column)
{
	uint64_t rows = answer->row_count;

	switch (answer->columns[column].type) {
	case PLUMB_ANSWER_TEXT:
		return (rows + 1) * 4;
	case PLUMB_ANSWER_TRUTH:
		return rows;
	case PLUMB_ANSWER_INTEGER:
	case PLUMB_ANSWER_NUMBER:
		return rows * 8;
	case PLUMB_ANSWER_UNKNOWN:
		break;
	}
	return 0;
}

/* Where the arrays of a column are; 0: the column has no such array. */
struct arrays {
	uint64_t values, known, text, text_bytes;
};

static uint64_t
place_array(uint64_t *at, uint64_t bytes)
{
	uint64_t place = *at;

	*at += pad_bytes(bytes);
	return bytes ? place : 0;
}

static struct arrays
place_column(const struct plumb_answer *answer, uint32_t column, uint64_t *at)
{
	bool text = answer->columns[column].type == PLUMB_ANSWER_TEXT;
	struct arrays a = { .text_bytes = text ? text_bytes(answer, column) : 0 };

	a.values = place_array(at, value_bytes(answer, column));
	a.known = place_array(at, has_unknown(answer, column) ? answer->row_count : 0);
	a.text = place_array(at, a.text_bytes);
	return a;
}

static void
put_value(struct layout *l, const struct plumb_answer_cell *cell, enum plumb_answer_type type)
{
	double number = cell->type == PLUMB_ANSWER_NUMBER    ? cell->number
	                : cell->type == PLUMB_ANSWER_INTEGER ? (double)cell->integer
	                                                     : 0;
	uint8_t truth = cell->type == PLUMB_ANSWER_TRUTH && cell->truth;
	uint64_t bits;

	if (type == PLUMB_ANSWER_TRUTH) {
		put_bytes(l, &truth, 1);
		return;
	}
	memcpy(&bits, &number, sizeof bits);
	if (type == PLUMB_ANSWER_INTEGER)
		bits = cell->type == PLUMB_ANSWER_INTEGER ? (uint64_t)cell->integer : 0;
	put64(l, bits);
}

static void
put_texts(struct layout *l, uint32_t column)
{
	char buffer[PLUMB_VIEW_CELL_SIZE];
	uint32_t end = 0;

	put32(l, 0);
	for (uint32_t r = 0; r < l->answer->row_count; r++) {
		end += (uint32_t)strlen(text_of(l->answer, r, column, buffer));
		put32(l, end);
	}
}

static void
put_column(struct layout *l, uint32_t column)
{
	const struct plumb_answer *a = l->answer;
	enum plumb_answer_type type = a->columns[column].type;
	char buffer[PLUMB_VIEW_CELL_SIZE];

	if (type == PLUMB_ANSWER_TEXT)
		put_texts(l, column);
	else if (type != PLUMB_ANSWER_UNKNOWN)
		for (uint32_t r = 0; r < a->row_count; r++)
			put_value(l, plumb_answer_at(a, r, column), type);
	put_padding(l);
	if (has_unknown(a, column))
		for (uint32_t r = 0; r < a->row_count; r++) {
			uint8_t known = plumb_answer_at(a, r, column)->type != PLUMB_ANSWER_UNKNOWN;
			put_bytes(l, &known, 1);
		}
	put_padding(l);
	if (type == PLUMB_ANSWER_TEXT)
		for (uint32_t r = 0; r < a->row_count; r++) {
			const char *text = text_of(a, r, column, buffer);
			put_bytes(l, text, strlen(text));
		}
	put_padding(l);
}

/* ---- the whole ---- */

/* The bytes of id, title, and the columns' names and units. */
static uint64_t
name_bytes(const struct plumb_answer *answer)
{
	uint64_t bytes =
		(answer->id ? strlen(answer->id) : 0) + (answer->title ? strlen(answer->title) : 0);

	for (uint32_t c = 0; c < answer->column_count; c++) {
		const char *unit = answer->columns[c].unit;
		bytes += strlen(answer->columns[c].name) + (unit ? strlen(unit) : 0);
	}
	return bytes;
}

static void
put_names(struct layout *l)
{
	const struct plumb_answer *a = l->answer;

	put_bytes(l, a->id, a->id ? strlen(a->id) : 0);
	put_bytes(l, a->title, a->title ? strlen(a->title) : 0);
	for (uint32_t c = 0; c < a->column_count; c++) {
		put_bytes(l, a->columns[c].name, strlen(a->columns[c].name));
		put_bytes(l, a->columns[c].unit,
		          a->columns[c].unit ? strlen(a->columns[c].unit) : 0);
	}
	put_padding(l);
}

static void
put_head(struct layout *l, uint64_t all)
{
	const struct plumb_answer *a = l->answer;
	uint64_t names = HEADER + (uint64_t)a->column_count * DESCRIPTOR;
	uint64_t arrays = names + pad_bytes(name_bytes(a));

	put_bytes(l, MAGIC, 8);
	put32(l, VERSION);
	put32(l, a->column_count);
	put64(l, all);
	put64(l, a->row_count);
	put_place(l, a->id, &names);
	put_place(l, a->title, &names);
	for (uint32_t c = 0; c < a->column_count; c++) {
		const struct plumb_answer_column *column = &a->columns[c];
		struct arrays at = place_column(a, c, &arrays);

		put32(l, column->type | (uint32_t)column->source << 8);
		put32(l, (uint32_t)at.text_bytes);
		put_place(l, column->name, &names);
		put_place(l, column->unit, &names);
		put64(l, at.values);
		put64(l, at.known);
		put64(l, at.text);
	}
}

int
plumb_view_answer_columns(const struct plumb_answer *answer, FILE *out, struct plumb_error *error)
{
	struct layout l = { .answer = answer, .out = out };
	uint64_t all = HEADER + (uint64_t)answer->column_count * DESCRIPTOR +
	               pad_bytes(name_bytes(answer));

	for (uint32_t c = 0; c < answer->column_count; c++)
		if (place_column(answer, c, &all).text_bytes > UINT32_MAX)
			return plumb_fail(error, PLUMB_EUSAGE,
			                  "the column %s has more than 4 GiB of text; ask for "
			                  "fewer rows",
			                  answer->columns[c].name);
	put_head(&l, all);
	put_names(&l);
	for (uint32_t c = 0; c < answer->column_count; c++)
		put_column(&l, c);
	return ferror(out) ? plumb_fail(error, PLUMB_ESYSTEM, "the answer cannot be written") : 0;
}
