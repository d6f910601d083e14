/* SPDX-License-Identifier: Apache-2.0 */
/* Answers and their renderers. Binary columns are decoded from their page, docs/folders/view.md. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../golden/profiles.h"
#include "analyze/analyze.h"
#include "failing_malloc.h"
#include "model/builder.h"
#include "view/render.h"
#include "view/view.h"

/* Two rows of each type, a column of which nothing is known, and one that is all known. */
static void
fill(struct plumb_answer *a)
{
	*a = (struct plumb_answer){ .id = "T1", .title = "a, \"table\"" };
	plumb_answer_column(a, "name", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "count", "count", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "time", "us", PLUMB_SOURCE_IS_DERIVED);
	plumb_answer_column(a, "bound", NULL, PLUMB_SOURCE_IS_DERIVED);
	plumb_answer_column(a, "never", "byte", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "mixed", "ns", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "any", NULL, PLUMB_SOURCE_IS_MEASURED);
	a->columns[2].digits = 3;
	plumb_answer_copy(a, "a \"b\", c");
	plumb_answer_integer(a, INT64_MAX);
	plumb_answer_number(a, 1.0 / 3);
	plumb_answer_truth(a, 1);
	plumb_answer_number(a, (double)NAN);
	plumb_answer_integer(a, 7);
	plumb_answer_text(a, "é");
	plumb_answer_text(a, NULL);
	plumb_answer_integer(a, INT64_MIN);
	plumb_answer_number(a, -2);
	plumb_answer_truth(a, -1);
	plumb_answer_text(a, NULL);
	plumb_answer_number(a, 0.5);
	plumb_answer_integer(a, 12);
}

static void
test_types(void **state)
{
	static const enum plumb_answer_type types[] = { PLUMB_ANSWER_TEXT,    PLUMB_ANSWER_INTEGER,
		                                        PLUMB_ANSWER_NUMBER,  PLUMB_ANSWER_TRUTH,
		                                        PLUMB_ANSWER_UNKNOWN, PLUMB_ANSWER_NUMBER,
		                                        PLUMB_ANSWER_TEXT };
	struct plumb_answer a;

	(void)state;
	fill(&a);
	assert_int_equal(plumb_answer_end(&a, NULL), 0);
	assert_int_equal(a.row_count, 2);
	for (uint32_t c = 0; c < a.column_count; c++)
		assert_int_equal(a.columns[c].type, types[c]);
	assert_int_equal(a.columns[4].source, PLUMB_SOURCE_IS_UNKNOWN);
	assert_int_equal(a.columns[2].source, PLUMB_SOURCE_IS_DERIVED);
	plumb_answer_clear(&a);
	assert_int_equal(a.column_count, 7);
	assert_int_equal(plumb_answer_end(&a, NULL), 0);
	assert_int_equal(a.row_count, 0);
	plumb_answer_free(&a);
}

static void
test_csv_and_json(void **state)
{
	struct plumb_answer a;
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	(void)state;
	fill(&a);
	assert_int_equal(plumb_answer_end(&a, NULL), 0);
	plumb_view_answer_csv(&a, out);
	struct plumb_json *json = plumb_json_new(out);
	plumb_view_answer_json(&a, json);
	assert_int_equal(plumb_json_finish(json), 0);
	assert_int_equal(fclose(out), 0);
	assert_non_null(strstr(text, "name,count,time,bound,never,mixed,any\n"
	                             "\"a \"\"b\"\", c\",9223372036854775807,0.333,true,,7,é\n"
	                             ",,-2,,,0.5,12\n"));
	assert_non_null(strstr(text, "9223372036854775807"));
	assert_non_null(strstr(text, "\"unit\":\"us\",\"source\":\"derived\""));
	assert_non_null(strstr(text, "[null,null,-2,null,null,0.5,12]"));
	free(text);
	plumb_answer_free(&a);
}

/* ---- binary columns ---- */

static uint64_t
read64(const unsigned char *at)
{
	uint64_t value = 0;

	for (int i = 7; i >= 0; i--)
		value = value << 8 | at[i];
	return value;
}

static uint32_t
read32(const unsigned char *at)
{
	return (uint32_t)(at[0] | at[1] << 8 | at[2] << 16) | (uint32_t)at[3] << 24;
}

static void
check_text(const unsigned char *table, const unsigned char *place, const char *expected)
{
	uint64_t from = read64(place), bytes = read64(place + 8);

	assert_int_equal(bytes, expected ? strlen(expected) : 0);
	if (expected)
		assert_memory_equal(table + from, expected, bytes);
	else
		assert_int_equal(from, 0);
}

/* The descriptor of COLUMN of ANSWER, checked; its arrays lie in the table, at multiples of 8. */
static const unsigned char *
check_column(const unsigned char *table, const struct plumb_answer *answer, uint32_t column)
{
	const unsigned char *d = table + 64 + (size_t)column * 64;

	assert_int_equal(d[0], answer->columns[column].type);
	assert_int_equal(d[1], answer->columns[column].source);
	check_text(table, d + 8, answer->columns[column].name);
	check_text(table, d + 24, answer->columns[column].unit);
	for (int i = 40; i < 64; i += 8) {
		assert_int_equal(read64(d + i) % 8, 0);
		assert_true(read64(d + i) < read64(table + 16));
	}
	return d;
}

static void
check_cell(const unsigned char *table, const unsigned char *d, const struct plumb_answer_cell *cell,
           uint32_t row)
{
	const unsigned char *values = table + read64(d + 40);
	bool known = d[0] && (!read64(d + 48) || table[read64(d + 48) + row]);
	char buffer[PLUMB_VIEW_CELL_SIZE];
	uint64_t bits = d[0] == PLUMB_ANSWER_INTEGER || d[0] == PLUMB_ANSWER_NUMBER
	                        ? read64(values + (size_t)row * 8)
	                        : 0;
	double number;

	assert_int_equal(known, cell->type != PLUMB_ANSWER_UNKNOWN);
	memcpy(&number, &bits, sizeof number);
	if (!known) {
		assert_int_equal(bits, 0);
	} else if (d[0] == PLUMB_ANSWER_INTEGER) {
		assert_true(bits == (uint64_t)cell->integer);
	} else if (d[0] == PLUMB_ANSWER_NUMBER) {
		assert_true(number == (cell->type == PLUMB_ANSWER_INTEGER ? (double)cell->integer
		                                                          : cell->number));
	} else if (d[0] == PLUMB_ANSWER_TRUTH) {
		assert_int_equal(values[row], cell->truth);
	} else {
		const char *text = plumb_view_cell_text(cell, 0, buffer);
		uint32_t from = read32(values + (size_t)row * 4);
		uint32_t end = read32(values + (size_t)row * 4 + 4);
		assert_true(end <= read32(d + 4));
		assert_int_equal(end - from, strlen(text));
		assert_memory_equal(table + read64(d + 56) + from, text, end - from);
	}
}

static void
test_columns(void **state)
{
	struct plumb_answer a, empty = { .id = "none" };
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	(void)state;
	fill(&a);
	assert_int_equal(plumb_answer_end(&a, NULL), 0);
	assert_int_equal(plumb_answer_end(&empty, NULL), 0);
	assert_int_equal(plumb_view_answer_columns(&a, out, NULL), 0);
	assert_int_equal(plumb_view_answer_columns(&empty, out, NULL), 0);
	assert_int_equal(fclose(out), 0);
	const unsigned char *table = (const unsigned char *)text;
	assert_memory_equal(table, "plumbcol", 8);
	assert_int_equal(read32(table + 8), 1);
	assert_int_equal(read32(table + 12), a.column_count);
	assert_int_equal(read64(table + 24), a.row_count);
	check_text(table, table + 32, "T1");
	check_text(table, table + 48, "a, \"table\"");
	for (uint32_t c = 0; c < a.column_count; c++) {
		const unsigned char *d = check_column(table, &a, c);
		for (uint32_t r = 0; r < a.row_count; r++)
			check_cell(table, d, plumb_answer_at(&a, r, c), r);
	}
	/* The next table stands where this one ends. */
	table += read64(table + 16);
	assert_memory_equal(table, "plumbcol", 8);
	check_text(table, table + 32, "none");
	assert_int_equal(read64(table + 16) % 8, 0);
	assert_ptr_equal(table + read64(table + 16), text + bytes);
	free(text);
	plumb_answer_free(&a);
	plumb_answer_free(&empty);
}

/* ---- the contract ---- */

/* What plumb_view_report writes; malloced. */
static char *
report_of(const struct plumb_profile *profile, const struct plumb_report_query *query,
          enum plumb_view_format format, size_t *bytes)
{
	char *text = NULL;
	struct plumb_error error = { 0 };
	FILE *out = open_memstream(&text, bytes);

	if (plumb_view_report(profile, query, format, out, &error) < 0)
		fail_msg("%s", error.message);
	assert_int_equal(fclose(out), 0);
	return text;
}

/* JSON is one value, and binary columns have the rows of CSV, whatever rows are. */
static void
test_report(void **state)
{
	struct plumb_profile profile = { 0 };
	size_t bytes;

	(void)state;
	assert_true(sample_make("gpu", &profile));
	for (int by = 0; by < 2 * PLUMB_BY_COUNT; by++) {
		struct plumb_report_query query = { .by = by / 2, .inverted = by % 2 };
		uint64_t lines = 0;
		if (plumb_report_check(&query, NULL) || query.by == PLUMB_BY_USER_LINE)
			continue;
		char *text = report_of(&profile, &query, PLUMB_VIEW_JSON, &bytes);
		assert_true(plumb_json_valid(text));
		free(text);
		text = report_of(&profile, &query, PLUMB_VIEW_CSV, &bytes);
		for (const char *at = text; *at; at++)
			lines += *at == '\n';
		free(text);
		text = report_of(&profile, &query, PLUMB_VIEW_COLUMNS, &bytes);
		assert_int_equal(read64((unsigned char *)text + 24), lines - 1);
		assert_int_equal(read64((unsigned char *)text + 16), bytes);
		free(text);
	}
	plumb_profile_free(&profile);
}

/* Findings in every format; the overview without rows. */
static void
test_findings_and_overview(void **state)
{
	static const enum plumb_view_format formats[] = { PLUMB_VIEW_JSON, PLUMB_VIEW_CSV,
		                                          PLUMB_VIEW_COLUMNS };
	struct plumb_findings_query query = { .top = 1 };
	struct plumb_profile profile = { 0 };
	struct plumb_error error;
	char *text[4] = { 0 };
	size_t bytes;

	(void)state;
	assert_true(sample_make("loss", &profile));
	assert_int_equal(plumb_analyze(&profile, &(struct plumb_analyze_options){ 0 }, &error), 0);
	assert_true(profile.findings_count > 0);
	for (int i = 0; i < 4; i++) {
		FILE *out = open_memstream(&text[i], &bytes);
		assert_int_equal(
			i < 3 ? plumb_view_findings(&profile, &query, formats[i], out, &error)
			      : plumb_view_overview(&profile, out, &error),
			0);
		assert_int_equal(fclose(out), 0);
	}
	const char *id = plumb_text(&profile, profile.findings[0].id);
	assert_true(plumb_json_valid(text[0]));
	assert_non_null(strstr(text[0], id));
	assert_non_null(strstr(text[1], id));
	assert_int_equal(read64((unsigned char *)text[2] + 24), 1);
	assert_true(plumb_json_valid(text[3]));
	assert_non_null(strstr(text[3], "\"devices\""));
	for (int i = 0; i < 4; i++)
		free(text[i]);
	plumb_profile_free(&profile);
}

/* A profile against itself, in every format. */
static void
test_diff(void **state)
{
	struct plumb_profile profile = { 0 };
	const struct plumb_profile *sides[] = { &profile, &profile };
	const char *const names[] = { "a.plumb", "b.plumb" };
	struct plumb_diff_query query = { .by = PLUMB_DIFF_CONTEXT };
	struct plumb_error error;
	char *text[3] = { 0 };
	uint64_t lines = 0;
	size_t bytes;

	(void)state;
	assert_true(sample_make("gpu", &profile));
	for (int i = 0; i < 3; i++) {
		FILE *out = open_memstream(&text[i], &bytes);
		assert_int_equal(plumb_view_diff(sides, names, 1, 2, &query,
		                                 (enum plumb_view_format)i, out, &error),
		                 0);
		assert_int_equal(fclose(out), 0);
	}
	assert_true(plumb_json_valid(text[PLUMB_VIEW_JSON]));
	assert_non_null(strstr(text[PLUMB_VIEW_JSON], "\"by\":\"context\""));
	for (const char *at = text[PLUMB_VIEW_CSV]; *at; at++)
		lines += *at == '\n';
	assert_true(lines > 1);
	assert_int_equal(read64((unsigned char *)text[PLUMB_VIEW_COLUMNS] + 24), lines - 1);
	for (int i = 0; i < 3; i++)
		free(text[i]);
	query.metric = "iteration.time"; /* which only --by iteration has */
	assert_int_equal(
		plumb_view_diff(sides, names, 1, 2, &query, PLUMB_VIEW_CSV, stderr, &error),
		PLUMB_EUSAGE);
	plumb_profile_free(&profile);
}

/* A stream on which three kernels follow each other, twenty times. */
static void
make_loop(struct plumb_profile *profile)
{
	static const char *const names[] = { "copy", "multiply", "add" };
	struct plumb_builder *b = plumb_builder_new();
	struct plumb_error error;
	uint32_t device = plumb_builder_device(
		b, &(struct plumb_device){ .name = PLUMB_NONE, .uuid = PLUMB_NONE, .rank = -1 });
	uint32_t track = plumb_builder_track(b, &(struct plumb_track){ .kind = PLUMB_TRACK_STREAM,
	                                                               .process = PLUMB_NONE,
	                                                               .device = device,
	                                                               .name = PLUMB_NONE });

	for (int i = 0; i < 60; i++) {
		uint32_t frame = plumb_builder_frame(
			b, PLUMB_FRAME_KERNEL, plumb_builder_text(b, names[i % 3]), PLUMB_NONE, 0);
		assert_int_equal(
			plumb_builder_span(b,
		                           &(struct plumb_span){
						   .context = plumb_builder_context(b, 0, frame, 0),
						   .track = track,
						   .start_ns = 1000 * i + 500 * (i / 3),
						   .end_ns = 1000 * i + 500 * (i / 3) + 900 }),
			0);
	}
	assert_int_equal(plumb_builder_finish(b, profile, &error), 0);
	plumb_builder_free(b);
}

/* The table has a row for each iteration. */
static void
test_iters(void **state)
{
	struct plumb_iters_query query = { 0 };
	struct plumb_profile profile = { 0 };
	struct plumb_error error;
	char *text[3] = { 0 };
	uint64_t lines = 0;
	size_t bytes;

	(void)state;
	make_loop(&profile);
	for (int i = 0; i < 3; i++) {
		FILE *out = open_memstream(&text[i], &bytes);
		assert_int_equal(
			plumb_view_iters(&profile, &query, (enum plumb_view_format)i, out, &error),
			0);
		assert_int_equal(fclose(out), 0);
	}
	assert_true(plumb_json_valid(text[PLUMB_VIEW_JSON]));
	assert_non_null(strstr(text[PLUMB_VIEW_JSON], "\"period_ops\":3"));
	for (const char *at = text[PLUMB_VIEW_CSV]; *at; at++)
		lines += *at == '\n';
	assert_int_equal(lines, 21);
	assert_int_equal(read64((unsigned char *)text[PLUMB_VIEW_COLUMNS] + 24), lines - 1);
	for (int i = 0; i < 3; i++)
		free(text[i]);
	plumb_profile_free(&profile);
}

/* What cannot be answered says so, and leaves nothing to free. */
static void
test_bad_queries(void **state)
{
	static const struct plumb_report_query bad[] = {
		{ .by = PLUMB_BY_PHASE, .inverted = true },
		{ .by = PLUMB_BY_MEMORY, .inverted = true },
		{ .by = PLUMB_BY_MEMORY, .metric = "gpu.time" },
		{ .metric = "no.such" },
		{ .filter = "(" },
		{ .user_code = "neither" },
	};
	struct plumb_profile profile = { 0 };
	struct plumb_error error;

	(void)state;
	assert_true(sample_make("gpu", &profile));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(
			plumb_view_report(&profile, &bad[i], PLUMB_VIEW_CSV, stderr, &error),
			PLUMB_EUSAGE);
		assert_true(error.message[0]);
	}
	assert_int_equal(plumb_view_tables(NULL, 0, &(struct plumb_tables_query){ 0 },
	                                   PLUMB_VIEW_JSON, stderr, &error),
	                 PLUMB_EUSAGE);
	plumb_profile_free(&profile);
}

/* Whichever allocation fails, the end says so and nothing leaks. */
static void
test_no_memory(void **state)
{
	struct plumb_answer a;
	struct plumb_error error;
	bool reached = true;

	(void)state;
	if (!FAILING_MALLOC)
		skip();
	for (long n = 0; reached; n++) {
		failing_malloc_at = n;
		fill(&a);
		reached = failing_malloc_stop();
		assert_int_equal(plumb_answer_end(&a, &error), reached ? PLUMB_ESYSTEM : 0);
	}
	plumb_answer_free(&a);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_csv_and_json),
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_report),
		cmocka_unit_test(test_findings_and_overview),
		cmocka_unit_test(test_diff),
		cmocka_unit_test(test_iters),
		cmocka_unit_test(test_bad_queries),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
