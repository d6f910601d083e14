/* SPDX-License-Identifier: Apache-2.0 */
/* Tables, columns of text, and numbers for people. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "base/format.h"
#include "cli/columns.h"
#include "cli/table.h"
#include "cli/terminal.h"

static void
test_time(void **state)
{
	static const struct {
		int64_t ns;
		const char *text;
	} cases[] = {
		{ 0, "0 ns" },
		{ 999, "999 ns" },
		{ 1000, "1.00 \xc2\xb5s" },
		{ 9994, "9.99 \xc2\xb5s" },
		{ 9996, "10.0 \xc2\xb5s" },
		{ 99960, "100 \xc2\xb5s" },
		{ 999499, "999 \xc2\xb5s" },
		{ 999500, "1.00 ms" },
		{ 12345678, "12.3 ms" },
		{ 999500000, "1.00 s" },
		{ 1234567890123, "1,235 s" },
		{ -1500, "-1.50 \xc2\xb5s" },
		{ INT64_MIN, "\xe2\x80\x93" },
	};
	char text[PLUMB_FORMAT_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(plumb_format_time(text, cases[i].ns), cases[i].text);
	plumb_format_time(text, INT64_MAX);
	plumb_format_time(text, INT64_MIN + 1);
}

static void
test_other_units(void **state)
{
	char text[PLUMB_FORMAT_SIZE];

	(void)state;
	assert_string_equal(plumb_format_count(text, 0), "0");
	assert_string_equal(plumb_format_count(text, 999), "999");
	assert_string_equal(plumb_format_count(text, 1234567), "1,234,567");
	assert_string_equal(plumb_format_count(text, -123456), "-123,456");
	assert_string_equal(plumb_format_count(text, INT64_MAX), "9,223,372,036,854,775,807");
	assert_string_equal(plumb_format_count(text, INT64_MIN), "\xe2\x80\x93");
	assert_string_equal(plumb_format_bytes(text, 1023), "1023 B");
	assert_string_equal(plumb_format_bytes(text, 1024), "1.00 KiB");
	assert_string_equal(plumb_format_bytes(text, 1000 * 1024), "1,000 KiB");
	assert_string_equal(plumb_format_bytes(text, 96 * 1024 * 1024), "96.0 MiB");
	assert_string_equal(plumb_format_quantity(text, "ppm", 312500), "31.2 %");
	assert_string_equal(plumb_format_quantity(text, "count", 1000), "1,000");
	assert_string_equal(plumb_format_share(text, 1, 3), "33.3 %");
	assert_string_equal(plumb_format_share(text, 1, 0), "\xe2\x80\x93");
	assert_string_equal(plumb_format_share(text, 0, 0), "\xe2\x80\x93");
	assert_string_equal(plumb_format_share(text, (double)NAN, 1), "\xe2\x80\x93");
}

static void
test_columns(void **state)
{
	(void)state;
	assert_int_equal(plumb_columns(""), 0);
	assert_int_equal(plumb_columns("aten::mm"), 8);
	assert_int_equal(plumb_columns("\xc2\xb5s"), 2);
	assert_int_equal(plumb_columns("e\xcc\x81"), 1);
	assert_int_equal(plumb_columns("\xe8\xae\xad\xe7\xbb\x83"), 4);
	assert_int_equal(plumb_columns("\xf0\x9f\x9a\x80"), 2);
	assert_int_equal(plumb_columns("\xff\xfe"), 2);
}

static const struct plumb_column columns[] = {
	{ "time", PLUMB_RIGHT },
	{ "name", PLUMB_SHORTEN_MIDDLE },
	{ "place", PLUMB_SHORTEN_START },
};

static void
expect(struct plumb_table *table, int width, const char *wanted)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_int_equal(plumb_table_print(table, out, width, false), 0);
	fclose(out);
	assert_string_equal(text, wanted);
	free(text);
}

static void
test_layout(void **state)
{
	struct plumb_table *table = plumb_table_new(columns, 3);

	(void)state;
	plumb_table_cell(table, "1.00 \xc2\xb5s");
	plumb_table_cell(table, "\xe8\xae\xad");
	plumb_table_cell(table, "a.py:1");
	plumb_table_cell(table, "12 ns");
	plumb_table_cell(table, NULL);
	plumb_table_cell(table, "b.py:22");
	expect(table, 80,
	       "   time  name  place\n"
	       "1.00 \xc2\xb5s  \xe8\xae\xad    a.py:1\n"
	       "  12 ns  \xe2\x80\x93     b.py:22\n");
	plumb_table_free(table);
}

static void
test_shortening(void **state)
{
	struct plumb_table *table = plumb_table_new(columns, 3);

	(void)state;
	plumb_table_cell(table, "1 ns");
	plumb_table_cell(table, "void kernel_with_a_long_name<float>(int*)");
	plumb_table_cell(table, "/home/ada/deep/folder/train.py:22");
	expect(table, 42,
	       "time  name               place\n"
	       "1 ns  void kerne\xe2\x80\xa6(int*)  \xe2\x80\xa6lder/train.py:22\n");
	/* It cannot be narrower than its numbers and the least of its names. */
	expect(table, 10,
	       "time  name              place\n"
	       "1 ns  void kerne\xe2\x80\xa6int*)  \xe2\x80\xa6"
	       "der/train.py:22\n");
	expect(table, 0,
	       "time  name                                       place\n"
	       "1 ns  void kernel_with_a_long_name<float>(int*)  "
	       "/home/ada/deep/folder/train.py:22\n");
	plumb_table_free(table);
}

static void
test_controls_do_not_reach_the_terminal(void **state)
{
	struct plumb_table *table = plumb_table_new(columns, 3);

	(void)state;
	plumb_table_cell(table, "1");
	plumb_table_cell(table, "a\033[2J\nb");
	plumb_table_cell(table, "\xc2\x9b"
	                        "31m\xff");
	expect(table, 80,
	       "time  name     place\n"
	       "   1  a\xef\xbf\xbd[2J\xef\xbf\xbd"
	       "b  \xef\xbf\xbd"
	       "31m\xef\xbf\xbd\n");
	plumb_table_free(table);
}

static void
test_no_terminal(void **state)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	(void)state;
	setenv("TERM", "xterm", 1);
	unsetenv("COLUMNS");
	assert_false(plumb_terminal_colour(out));
	assert_int_equal(plumb_terminal_width(out), PLUMB_WIDTH_DEFAULT);
	setenv("COLUMNS", "77", 1);
	assert_int_equal(plumb_terminal_width(out), 77);
	setenv("COLUMNS", "wide", 1);
	assert_int_equal(plumb_terminal_width(out), PLUMB_WIDTH_DEFAULT);
	fclose(out);
	free(text);
	assert_true(plumb_table_print(NULL, stdout, 80, false) < 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_other_units),
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_shortening),
		cmocka_unit_test(test_controls_do_not_reach_the_terminal),
		cmocka_unit_test(test_no_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
