/* SPDX-License-Identifier: Apache-2.0 */
/* Lines and CSV records: what is in a cell, which line an error names, and how long things may
 * be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/csv.h"

struct opened {
	struct plumb_csv csv;
	struct plumb_input *input;
	int fd;
	struct plumb_error error;
};

static void
open_bytes(struct opened *o, const char *text, size_t bytes)
{
	char path[64];
	memset(o, 0, sizeof *o);
	o->fd = memfd_create("csv", MFD_CLOEXEC);
	assert_true(o->fd >= 0);
	for (size_t done = 0; done < bytes;) {
		ssize_t part = write(o->fd, text + done, bytes - done);
		assert_true(part > 0);
		done += (size_t)part;
	}
	snprintf(path, sizeof path, "/proc/self/fd/%d", o->fd);
	assert_int_equal(plumb_input_open(&o->input, path, &o->error), 0);
	assert_int_equal(plumb_csv_open(&o->csv, o->input, &o->error), 0);
}

static void
open_text(struct opened *o, const char *text)
{
	open_bytes(o, text, strlen(text));
}

static void
close_all(struct opened *o)
{
	plumb_csv_close(&o->csv);
	plumb_input_close(o->input);
	close(o->fd);
}

/* "cell|cell" of the next record, with its line in front: "2:cell|cell"; "end", "error". */
static const char *
next(struct opened *o)
{
	static char text[1000];
	struct plumb_slice line;
	int code = plumb_csv_line(&o->csv, &line, &o->error);
	if (!code)
		return "end";
	if (code > 0)
		code = plumb_csv_split(&o->csv, &o->error);
	if (code < 0)
		return "error";
	size_t at = (size_t)snprintf(text, sizeof text, "%llu:", (unsigned long long)o->csv.line);
	for (uint32_t i = 0; i < o->csv.count && at < sizeof text; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, "%s%.*s", i ? "|" : "",
		                       (int)o->csv.cells[i].bytes, o->csv.cells[i].at);
	return text;
}

static void
cells_are_told_apart(void **state)
{
	(void)state;
	struct opened o;
	open_text(&o, "\xef\xbb\xbf"
	              "a,b,\r\n"
	              "\"x, y\",\"he said \"\"no\"\"\",\"\"\n"
	              "\n"
	              ",\n"
	              "k<\"a\">,2\n"
	              "\"a\"tail,b\n"
	              "\"\"\"\",\"\"\"\"\"\"\n"
	              "\"two\r\nlines\",\"and\n\"\"three\"\"\n\",z\n"
	              "last");
	assert_string_equal(next(&o), "1:a|b|");
	assert_string_equal(next(&o), "2:x, y|he said \"no\"|");
	assert_string_equal(next(&o), "3:");
	assert_string_equal(next(&o), "4:|");
	assert_string_equal(next(&o), "5:k<\"a\">|2");
	assert_string_equal(next(&o), "6:a|b");
	assert_string_equal(next(&o), "7:\"|\"\"");
	assert_string_equal(next(&o), "8:two\r\nlines|and\n\"three\"\n|z");
	assert_string_equal(next(&o), "12:last");
	assert_string_equal(next(&o), "end");
	assert_string_equal(next(&o), "end");
	close_all(&o);
}

static void
text_before_a_table_is_read_as_lines(void **state)
{
	(void)state;
	struct opened o;
	struct plumb_slice line;
	open_text(&o, "it's 3\" long, \"quoted\na,\"b\"\n");
	assert_int_equal(plumb_csv_line(&o.csv, &line, &o.error), 1);
	assert_true(plumb_slice_is(line, "it's 3\" long, \"quoted"));
	assert_string_equal(next(&o), "2:a|b");
	assert_string_equal(next(&o), "end");
	close_all(&o);
}

static void
an_open_quotation_is_an_error_with_its_line(void **state)
{
	(void)state;
	struct opened o;
	open_text(&o, "a\nb,\"c\nd\n");
	assert_string_equal(next(&o), "1:a");
	assert_string_equal(next(&o), "error");
	assert_int_equal(o.error.code, PLUMB_EINPUT);
	assert_non_null(strstr(o.error.message, ": line 2: a quoted cell"));
	close_all(&o);
}

/* Records across the window's edges come out as they are, wherever the edge falls. */
static void
long_files_keep_their_cells(void **state)
{
	(void)state;
	struct opened o;
	size_t room = 4u << 20, used = 0;
	char *text = malloc(room), expected[1000];
	assert_non_null(text);
	for (unsigned i = 0; i < 20000; i++)
		used += (size_t)snprintf(
			text + used, room - used, "%u,\"%.*s\n\"\"%u\",end\n", i, (int)(i % 97),
			"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
			"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
			i);
	open_bytes(&o, text, used);
	for (unsigned i = 0; i < 20000; i++) {
		snprintf(expected, sizeof expected, "%u:%u|%.*s\n\"%u|end", 2 * i + 1, i,
		         (int)(i % 97),
		         "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
		         "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
		         i);
		assert_string_equal(next(&o), expected);
	}
	assert_string_equal(next(&o), "end");
	close_all(&o);
	free(text);
}

static void
what_is_too_long_is_an_error(void **state)
{
	(void)state;
	struct opened o;
	size_t bytes = PLUMB_CSV_BYTES_MAX + (1u << 20);
	char *text = malloc(bytes);
	assert_non_null(text);
	memset(text, 'x', bytes);
	text[0] = '\n';
	open_bytes(&o, text, bytes);
	assert_string_equal(next(&o), "1:");
	assert_string_equal(next(&o), "error");
	assert_non_null(strstr(o.error.message, "line 2: is longer than 16 MiB"));
	close_all(&o);
	for (size_t i = 1; i < bytes; i += 64) /* lines within one open quotation */
		text[i] = '\n';
	text[1] = '"';
	open_bytes(&o, text, bytes);
	assert_string_equal(next(&o), "1:");
	assert_string_equal(next(&o), "error");
	assert_non_null(strstr(o.error.message, "line 2: is longer than 16 MiB"));
	close_all(&o);
	memset(text, ',', PLUMB_CSV_CELLS_MAX);
	text[PLUMB_CSV_CELLS_MAX - 1] = '\n';
	open_bytes(&o, text, PLUMB_CSV_CELLS_MAX);
	assert_int_equal(*next(&o), '1');
	assert_int_equal(o.csv.count, PLUMB_CSV_CELLS_MAX);
	close_all(&o);
	text[PLUMB_CSV_CELLS_MAX - 1] = ',';
	open_bytes(&o, text, PLUMB_CSV_CELLS_MAX);
	assert_string_equal(next(&o), "error");
	assert_non_null(strstr(o.error.message, "line 1: has more than 4096 cells"));
	close_all(&o);
	free(text);
}

static void
every_cut_is_read_or_refused(void **state)
{
	(void)state;
	static const char text[] = "a,\"b\r\n\"\"c\"\"\",d\r\n\"e\",f\n";
	for (size_t bytes = 0; bytes < sizeof text; bytes++) {
		struct opened o;
		open_bytes(&o, text, bytes);
		const char *got = next(&o);
		while (strcmp(got, "end") && strcmp(got, "error"))
			got = next(&o);
		assert_int_equal(!strcmp(got, "error"), o.error.code != 0);
		close_all(&o);
	}
}

static void
a_head_may_end_within_a_quoted_cell(void **state)
{
	(void)state;
	struct opened o;
	open_text(&o, "of the input");
	plumb_csv_use(&o.csv, "a,b\nc,\"d,e\nf", 12);
	assert_string_equal(next(&o), "1:a|b");
	assert_string_equal(next(&o), "2:c|d,e\nf");
	assert_string_equal(next(&o), "end");
	close_all(&o);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cells_are_told_apart),
		cmocka_unit_test(text_before_a_table_is_read_as_lines),
		cmocka_unit_test(an_open_quotation_is_an_error_with_its_line),
		cmocka_unit_test(long_files_keep_their_cells),
		cmocka_unit_test(what_is_too_long_is_an_error),
		cmocka_unit_test(every_cut_is_read_or_refused),
		cmocka_unit_test(a_head_may_end_within_a_quoted_cell),
	};
	return cmocka_run_group_tests_name("csv", tests, NULL, NULL);
}
