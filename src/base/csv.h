/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads lines, and CSV records, of any number and unknown origin from a plumb_input. Only the line
 * or record that was read last is kept. What looks like text before a table is read as lines; a
 * line that is a record is then split:
 *
 *	while ((code = plumb_csv_line(&csv, &line, &error)) > 0) {
 *		if (!is_row(line)) continue;
 *		if ((code = plumb_csv_split(&csv, &error)) < 0) break;
 *		csv.cells[0], csv.count, csv.line
 *	}
 *
 * Cells are separated by commas. One that begins with a quotation mark ends with one, may hold
 * commas, ends of lines and doubled quotation marks; within others a quotation mark is a character
 * as any. Errors: PLUMB_EINPUT, with path and line, and those of the input.
 */
#ifndef PLUMB_BASE_CSV_H
#define PLUMB_BASE_CSV_H

#include <stdio.h>

#include "base/json_pull.h"

/* A line or record may be so long, and have so many cells. */
#define PLUMB_CSV_BYTES_MAX ((size_t)16 << 20)
#define PLUMB_CSV_CELLS_MAX 4096u

struct plumb_csv {
	struct plumb_slice *cells; /* of the record split last; hold until the next line is read */
	uint32_t count;
	uint64_t line; /* number, from 1, of the line read last; of a record, its first one */
	/* private */
	struct plumb_input *input;
	char *window;
	size_t room, used; /* bytes of the window, and of the file in it */
	size_t start, end; /* the line, without what ends it */
	size_t next;       /* what is behind it */
	uint64_t lines;
	bool ended, cut; /* cut: the end may be in the middle of a cell */
};

/* Reads INPUT, from which nothing may have been read. INPUT must outlive the reader. */
int plumb_csv_open(struct plumb_csv *csv, struct plumb_input *input,
                   struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_csv_close(struct plumb_csv *csv);
/* Before the first line: reads these BYTES, up to 64 KiB, instead of the input. They may end in the
 * middle of a quoted cell. */
void plumb_csv_use(struct plumb_csv *csv, const char *text, size_t bytes);

/* 1: LINE is the next line without "\n" or "\r\n", and is valid until the next call. 0: the file
 * has no more lines. */
int plumb_csv_line(struct plumb_csv *csv, struct plumb_slice *line,
                   struct plumb_error *error) PLUMB_MUST_CHECK;
/* Splits the line that was read last, and takes in the lines after it that belong to a quoted cell.
 * Call it once for a line: it changes the text of the line. */
int plumb_csv_split(struct plumb_csv *csv, struct plumb_error *error) PLUMB_MUST_CHECK;

/* Writes TEXT as a cell, quoted where it must be; NULL is an empty one. Nothing parts it from the
 * next. */
void plumb_csv_put(FILE *out, const char *text);

/* Fills ERROR with "PATH: line N: WHAT"; returns PLUMB_EINPUT. */
int plumb_csv_fail(const struct plumb_csv *csv, struct plumb_error *error, const char *format, ...)
	PLUMB_PRINTF(3, 4);

#endif
