/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that are alike: what is compared and what is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../fuzz/json_memo_check.h"

#define ADD "{\"name\": \"add\", \"pid\": 7, "

/* Reads TEXT in both ways, which must be equal. Returns how many events were read by memos. */
static uint32_t
known_of(const char *text)
{
	uint32_t known;
	const char *fault = memo_check(text, strlen(text), &known);
	if (fault)
		fail_msg("%s: not equal: %s", text, fault);
	return known;
}

static void
test_numbers_differ(void **state)
{
	(void)state;
	assert_int_equal(known_of("[" ADD "\"ts\": 1.5, \"dur\": 12, \"args\": {\"Ev Idx\": 3}}"
	                          "," ADD "\"ts\": -2, \"dur\": 0.125, \"args\": {\"Ev Idx\": 44}}"
	                          ",\n" ADD "\"ts\": 123456789.5, \"dur\": 9, \"args\": "
	                          "{\"Ev Idx\": 1e5}}]"),
	                 1); /* 1e5 is not as programs usually write a number */
	/* What is skipped may have any number of digits. */
	assert_int_equal(known_of("[" ADD "\"ts\": 1, \"x\": 0.12345678901234567890},\n" ADD
	                          "\"ts\": 2, \"x\": 1234567890123456789012345}]"),
	                 1);
}

static void
test_texts_differ(void **state)
{
	(void)state;
	assert_int_equal(
		known_of("[" ADD "\"ts\": 1}, {\"name\": \"mul\", \"pid\": 7, \"ts\": 2}]"), 0);
	/* A number of an argument that is kept as it is written, or that all share. */
	assert_int_equal(known_of("[" ADD "\"ts\": 1, \"args\": {\"Input Dims\": [[2, 3]]}}," ADD
	                          "\"ts\": 2, \"args\": {\"Input Dims\": [[2, 4]]}}," ADD
	                          "\"ts\": 3, \"args\": {\"Input Dims\": [[2, 3]]}}]"),
	                 1);
	assert_int_equal(known_of("[" ADD "\"ts\": 1, \"args\": {\"Input Dims\": 2}}," ADD
	                          "\"ts\": 2, \"args\": {\"Input Dims\": 3}}]"),
	                 0);
	assert_int_equal(known_of("[{\"name\": \"add\", \"pid\": 7, \"ts\": 1},"
	                          "{\"name\": \"add\", \"pid\": 8, \"ts\": 1}]"),
	                 0);
}

/* A number that is written as a text, or twice, is not read as a number of a memo. */
static void
test_unusual_numbers(void **state)
{
	static const char *const unusual[] = {
		"\"ts\": \"15\"",
		"\"ts\": 1, \"ts\": \"2\"",
		"\"ts\": null",
		"\"ts\": 1, \"ts\": {}",
		"\"ts\": 1e3",
		"\"ts\": 1.23456",
		"\"ts\": NaN",
		"\"ts\": [1]",
		"\"id\": \"0x1f\", \"ts\": 1",
	};
	(void)state;
	for (size_t i = 0; i < sizeof unusual / sizeof *unusual; i++) {
		char text[300];
		snprintf(text, sizeof text, "[" ADD "%s}," ADD "%s}," ADD "\"ts\": 3}]", unusual[i],
		         unusual[i]);
		assert_int_equal(known_of(text), 0);
	}
	assert_int_equal(known_of("[" ADD "\"ts\": 1, \"ts\": 2}," ADD "\"ts\": 3, \"ts\": 4}]"),
	                 1);
}

/* As flows of PyTorch's profiler: the first one shows where the number is. */
static void
test_number_before_key(void **state)
{
	(void)state;
	assert_int_equal(known_of("[{\"ph\": \"s\", \"id\": 1, \"pid\": 7, \"ts\": 1},"
	                          "{\"ph\": \"s\", \"id\": 22, \"pid\": 7, \"ts\": 2},"
	                          "{\"ph\": \"s\", \"id\": 333, \"pid\": 7, \"ts\": 3},"
	                          "{\"ph\": \"s\", \"id\": 4, \"pid\": 8, \"ts\": 4},"
	                          "{\"ph\": \"s\", \"id\": 5, \"pid\": 7, \"ts\": 5}]"),
	                 2);
}

/* Names of one length, so that all are in the same slot or not, in an order that repeats itself. */
static void
test_many(void **state)
{
	char *text;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	(void)state;
	assert_non_null(out);
	fputs("[", out);
	for (int i = 0; i < 40000; i++)
		fprintf(out,
		        "%s{\"name\": \"op%05d\", \"pid\": 1, \"ts\": %d.%03d, \"args\": {\"Input "
		        "Dims\": [%d]}}",
		        i ? "," : "", i % 2000 * 7919 % 100000, i, i % 1000, i % 2000 % 3);
	fputs("]", out);
	fclose(out);
	assert_int_equal(known_of(text), 38000);
	free(text);
}

/* One name with many arguments, in no order: all are found after they were read once. */
static void
test_many_tails(void **state)
{
	char *text;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	uint32_t random = 1;
	bool seen[500] = { false };
	uint32_t different = 0;
	(void)state;
	assert_non_null(out);
	fputs("[", out);
	for (int i = 0; i < 20000; i++) {
		random = random * 1664525u + 1013904223u;
		uint32_t which = (random >> 8) % 500;
		different += !seen[which];
		seen[which] = true;
		fprintf(out,
		        "%s" ADD "\"ts\": %d, \"args\": {\"External id\": %d, \"Input Dims\": "
		        "[%u, [1]], \"Ev Idx\": %d}}",
		        i ? "," : "", i, i + 7, which, i * 3);
	}
	fputs("]", out);
	fclose(out);
	uint32_t known = known_of(text);

	assert_true(known <= 20000 - different && known > 19000);
	free(text);
}

/* Objects that are all different: after some time they are not looked for. */
static void
test_all_different(void **state)
{
	char *text;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	(void)state;
	assert_non_null(out);
	fputs("[", out);
	for (int i = 0; i < 30000; i++)
		fprintf(out, "%s{\"name\": \"op%d\", \"ts\": %d}", i ? "," : "", i, i);
	for (int i = 0; i < 10; i++)
		fprintf(out, ",{\"name\": \"last\", \"ts\": %d}", i);
	fputs("]", out);
	fclose(out);
	assert_int_equal(known_of(text), 0);
	free(text);
}

static void
test_cut_off(void **state)
{
	static const char text[] =
		"[" ADD "\"ts\": 1.5, \"dur\": 2, \"args\": {\"Ev Idx\": 3, \"a\": [1]}},\n" ADD
		"\"ts\": 22.5, \"dur\": 3, \"args\": {\"Ev Idx\": 45, \"a\": [1]}}]";
	uint32_t known;
	(void)state;
	for (size_t bytes = 0; bytes < sizeof text; bytes++) {
		const char *fault = memo_check(text, bytes, &known);
		if (fault)
			fail_msg("%zu bytes: not equal: %s", bytes, fault);
		assert_int_equal(known, bytes >= sizeof text - 2);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_differ),
		cmocka_unit_test(test_texts_differ),
		cmocka_unit_test(test_unusual_numbers),
		cmocka_unit_test(test_number_before_key),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_many_tails),
		cmocka_unit_test(test_all_different),
		cmocka_unit_test(test_cut_off),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
