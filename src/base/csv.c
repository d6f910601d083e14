/* SPDX-License-Identifier: Apache-2.0 */
#include "base/csv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define WINDOW_BYTES ((size_t)64 << 10)

int
plumb_csv_fail(const struct plumb_csv *csv, struct plumb_error *error, const char *format, ...)
{
	char text[500];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	return plumb_fail(error, PLUMB_EINPUT, "%s: line %llu: %s", plumb_input_path(csv->input),
	                  (unsigned long long)csv->line, text);
}

int
plumb_csv_open(struct plumb_csv *csv, struct plumb_input *input, struct plumb_error *error)
{
	*csv = (struct plumb_csv){ .input = input, .room = WINDOW_BYTES };
	csv->window = malloc(csv->room);
	csv->cells = malloc(PLUMB_CSV_CELLS_MAX * sizeof *csv->cells);
	if (!csv->window || !csv->cells)
		return plumb_fail_memory(error, "to read %s", plumb_input_path(input));
	return 0;
}

void
plumb_csv_close(struct plumb_csv *csv)
{
	free(csv->window);
	free(csv->cells);
	*csv = (struct plumb_csv){ 0 };
}

void
plumb_csv_use(struct plumb_csv *csv, const char *text, size_t bytes)
{
	csv->used = bytes < csv->room ? bytes : csv->room;
	memcpy(csv->window, text, csv->used);
	csv->ended = csv->cut = true;
}

/* Reads more of the file into the window. All bytes from `start` on are kept. */
static int
fill_window(struct plumb_csv *csv, struct plumb_error *error)
{
	if (csv->start) {
		csv->used -= csv->start;
		csv->end -= csv->start;
		csv->next -= csv->start;
		memmove(csv->window, csv->window + csv->start, csv->used);
		csv->start = 0;
	}
	if (csv->used == csv->room) {
		if (csv->room >= PLUMB_CSV_BYTES_MAX)
			return plumb_csv_fail(csv, error, "is longer than %zu MiB",
			                      PLUMB_CSV_BYTES_MAX >> 20);
		char *grown = realloc(csv->window, csv->room * 2);
		if (!grown)
			return plumb_fail_memory(error, "to read %s", plumb_input_path(csv->input));
		csv->window = grown;
		csv->room *= 2;
	}
	ssize_t got =
		plumb_input_read(csv->input, csv->window + csv->used, csv->room - csv->used, error);
	if (got < 0)
		return (int)got;
	csv->used += (size_t)got;
	csv->ended = !got;
	return 0;
}

/* Finds the line at `next`, after `start`: its `end`, and the new `next`. 0: the file has ended. */
static int
find_line(struct plumb_csv *csv, struct plumb_error *error)
{
	size_t from = csv->next - csv->start, seen = from; /* from the start, which moves */
	const char *found = NULL;
	while (!found) {
		size_t behind = csv->used - csv->start;
		if (behind > seen)
			found = memchr(csv->window + csv->start + seen, '\n', behind - seen);
		seen = behind;
		if (found || csv->ended)
			break;
		int code = fill_window(csv, error);
		if (code < 0)
			return code;
	}
	if (!found && csv->start + from == csv->used)
		return 0;
	csv->end = found ? (size_t)(found - csv->window) : csv->used;
	csv->next = found ? csv->end + 1 : csv->used;
	if (csv->end > csv->start + from && csv->window[csv->end - 1] == '\r')
		csv->end--;
	csv->lines++;
	return 1;
}

int
plumb_csv_line(struct plumb_csv *csv, struct plumb_slice *line, struct plumb_error *error)
{
	csv->start = csv->end = csv->next;
	csv->line = csv->lines + 1;
	csv->count = 0;
	int code = find_line(csv, error);
	if (code <= 0)
		return code;
	if (csv->line == 1 && csv->end - csv->start >= 3 &&
	    !memcmp(csv->window + csv->start, "\xef\xbb\xbf", 3))
		csv->start += 3;
	*line = (struct plumb_slice){ csv->window + csv->start, csv->end - csv->start };
	return 1;
}

/* Finds the quotation mark that ends the cell whose text begins AT bytes after the start. It reads
 * more lines to find it. */
static int
find_quote(struct plumb_csv *csv, size_t at, size_t *quote, struct plumb_error *error)
{
	for (;;) {
		const char *text = csv->window + csv->start;
		size_t end = csv->end - csv->start;
		const char *found = at < end ? memchr(text + at, '"', end - at) : NULL;
		if (found && found + 1 < text + end && found[1] == '"') {
			at = (size_t)(found + 2 - text);
			continue;
		}
		if (found) {
			*quote = (size_t)(found - text);
			return 0;
		}
		at = csv->next - csv->start;
		int code = find_line(csv, error);
		if (code < 0)
			return code;
		if (!code && csv->cut) {
			*quote = csv->end - csv->start;
			return 0;
		}
		if (!code)
			return plumb_csv_fail(csv, error,
			                      "a quoted cell has no closing quotation mark");
	}
}

/* Makes one quotation mark of each doubled one in the BYTES at TEXT. Returns how many bytes are
 * left. */
static size_t
undouble_quotes(char *text, size_t bytes)
{
	char *to = memchr(text, '"', bytes);
	const char *end = text + bytes;
	if (!to)
		return bytes;
	for (const char *from = to; from < end; from++) {
		*to++ = *from;
		if (*from == '"' && from + 1 < end && from[1] == '"')
			from++;
	}
	return (size_t)(to - text);
}

/* Finds the next comma, or the end, after AT. */
static size_t
cell_end(const struct plumb_csv *csv, size_t at)
{
	const char *text = csv->window + csv->start;
	size_t end = csv->end - csv->start;
	const char *comma = at < end ? memchr(text + at, ',', end - at) : NULL;
	return comma ? (size_t)(comma - text) : end;
}

static bool
is_quoted(const struct plumb_csv *csv, size_t at)
{
	return csv->start + at < csv->end && csv->window[csv->start + at] == '"';
}

/* Reads the lines that belong to the record: the window may move until they are there. */
static int
complete_record(struct plumb_csv *csv, struct plumb_error *error)
{
	if (!memchr(csv->window + csv->start, '"', csv->end - csv->start))
		return 0;
	for (size_t at = 0; at < csv->end - csv->start; at = cell_end(csv, at) + 1) {
		if (!is_quoted(csv, at))
			continue;
		int code = find_quote(csv, at + 1, &at, error);
		if (code < 0)
			return code;
	}
	return 0;
}

int
plumb_csv_split(struct plumb_csv *csv, struct plumb_error *error)
{
	int code = complete_record(csv, error);
	if (code < 0)
		return code;
	char *text = csv->window + csv->start;
	size_t all = csv->end - csv->start;
	for (size_t at = 0; at <= all; at = cell_end(csv, at) + 1) {
		if (csv->count == PLUMB_CSV_CELLS_MAX)
			return plumb_csv_fail(csv, error, "has more than %u cells",
			                      PLUMB_CSV_CELLS_MAX);
		struct plumb_slice *cell = &csv->cells[csv->count++];
		if (!is_quoted(csv, at)) {
			*cell = (struct plumb_slice){ text + at, cell_end(csv, at) - at };
			continue;
		}
		size_t first = at + 1;
		code = find_quote(csv, first, &at, error);
		if (code < 0)
			return code;
		*cell = (struct plumb_slice){ text + first, at - first };
	}
	/* Last, because what is cut out of a cell is still in the way of the next one's search. */
	for (uint32_t i = 0; i < csv->count; i++)
		if (csv->cells[i].at > text && csv->cells[i].at[-1] == '"')
			csv->cells[i].bytes =
				undouble_quotes((char *)csv->cells[i].at, csv->cells[i].bytes);
	return 0;
}

void
plumb_csv_put(FILE *out, const char *text)
{
	if (text && strpbrk(text, ",\"\r\n")) {
		fputc('"', out);
		for (; *text; text++) {
			if (*text == '"')
				fputc('"', out);
			fputc(*text, out);
		}
		fputc('"', out);
	} else if (text) {
		fputs(text, out);
	}
}
