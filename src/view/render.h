/* SPDX-License-Identifier: Apache-2.0 */
/* Renderers of struct plumb_answer: JSON, CSV and binary columns. None of them knows a terminal:
 * cli lays out text for people. */
#ifndef PLUMB_VIEW_RENDER_H
#define PLUMB_VIEW_RENDER_H

#include <stdio.h>

#include "analyze/answer.h"
#include "base/json.h"

enum plumb_view_format {
	PLUMB_VIEW_JSON,
	PLUMB_VIEW_CSV,
	PLUMB_VIEW_COLUMNS,
};

/* A writer to OUT in the object that VERB prints as JSON. NULL: no memory. End the object, then
 * call plumb_json_finish. */
struct plumb_json *plumb_view_json_new(FILE *out, const char *verb);

/* ANSWER as the object {id, title, columns[], rows[]}, where JSON expects a value. */
void plumb_view_answer_json(const struct plumb_answer *answer, struct plumb_json *json);

/* ANSWER as CSV (RFC 4180, but lines end with a line feed): a line of names, then the rows. What is
 * unknown is empty. A failed write shows in ferror(OUT). */
void plumb_view_answer_csv(const struct plumb_answer *answer, FILE *out);
/* The two parts of this, for answers that are written piece by piece. */
void plumb_view_names_csv(const struct plumb_answer *answer, FILE *out);
void plumb_view_rows_csv(const struct plumb_answer *answer, FILE *out);

/* ANSWER as binary columns (docs/folders/view.md). PLUMB_ESYSTEM: a failed write. PLUMB_EUSAGE: the
 * texts of a column have more than 4 GiB. */
int plumb_view_answer_columns(const struct plumb_answer *answer, FILE *out,
                              struct plumb_error *error) PLUMB_MUST_CHECK;

/* ANSWER in FORMAT. JSON is only the object. */
int plumb_view_answer(const struct plumb_answer *answer, enum plumb_view_format format, FILE *out,
                      struct plumb_error *error) PLUMB_MUST_CHECK;

/* COUNT answers, one after another. JSON is the object {schema, verb, tables[]}. If there are
 * several, a line with id and title comes before each in CSV. */
int plumb_view_answers(const struct plumb_answer *answers, uint32_t count, const char *verb,
                       enum plumb_view_format format, FILE *out,
                       struct plumb_error *error) PLUMB_MUST_CHECK;
/* The CSV of this. */
void plumb_view_answers_csv(const struct plumb_answer *answers, uint32_t count, FILE *out);

/* The text of CELL in CSV. It is the cell's own text, or is written into BUFFER; "": unknown.
 * DIGITS are those of the column. */
#define PLUMB_VIEW_CELL_SIZE 40
const char *plumb_view_cell_text(const struct plumb_answer_cell *cell, int digits,
                                 char buffer[PLUMB_VIEW_CELL_SIZE]);

#endif
