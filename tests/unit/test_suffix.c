/* SPDX-License-Identifier: Apache-2.0 */
/* Suffix arrays against a plain sort of the suffixes, and against libdivsufsort where it is
 * installed. */
#include "analyze/pattern/suffix.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const int32_t *compared;
static int32_t compared_count;

static int
by_text(const void *x, const void *y)
{
	int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;

	for (; a < compared_count && b < compared_count; a++, b++)
		if (compared[a] != compared[b])
			return compared[a] < compared[b] ? -1 : 1;
	return a > b ? -1 : 1; /* the shorter one first */
}

static void
check(const int32_t *text, int32_t count, int32_t alphabet)
{
	size_t bytes = (size_t)count * sizeof(int32_t) + 1;
	int32_t *found = malloc(bytes), *common = malloc(bytes), *expected = malloc(bytes);

	assert_int_equal(plumb_suffix_array(text, count, alphabet, found), 0);
	plumb_suffix_common(text, found, count, common, expected);
	for (int32_t i = 0; i < count; i++)
		expected[i] = i;
	compared = text;
	compared_count = count;
	qsort(expected, (size_t)count, sizeof *expected, by_text);
	for (int32_t i = 0; i < count; i++) {
		int32_t length = 0;

		assert_int_equal(found[i], expected[i]);
		while (i && found[i] + length < count && found[i - 1] + length < count &&
		       text[found[i] + length] == text[found[i - 1] + length])
			length++;
		assert_int_equal(common[i], length);
	}
	free(found);
	free(common);
	free(expected);
}

static void
test_random(void **state)
{
	static const int32_t alphabets[] = { 1, 2, 3, 7, 50, 300 };
	int32_t text[300];

	(void)state;
	srand(1);
	for (int round = 0; round < 600; round++) {
		int32_t alphabet = alphabets[round % 6], count = rand() % 301;

		for (int32_t i = 0; i < count; i++)
			text[i] = rand() % alphabet;
		check(text, count, alphabet);
	}
}

static void
test_periodic(void **state)
{
	int32_t text[400];

	(void)state;
	srand(2);
	for (int32_t period = 1; period < 60; period++) {
		for (int32_t i = 0; i < 400; i++)
			text[i] = i < period ? rand() % 5 : text[i - period];
		check(text, 400, 5);
		for (int change = 0; change < 3; change++)
			text[rand() % 400] = rand() % 5;
		check(text, 397, 5);
	}
	for (int32_t i = 0; i < 400; i++)
		text[i] = i;
	check(text, 400, 400);
	for (int32_t i = 0; i < 400; i++)
		text[i] = 399 - i;
	check(text, 400, 400);
}

static void
test_out_of_range(void **state)
{
	int32_t text[] = { 0, 1, 2 }, found[3];

	(void)state;
	assert_int_equal(plumb_suffix_array(text, 3, 2, found), PLUMB_EUSAGE);
	text[1] = -1;
	assert_int_equal(plumb_suffix_array(text, 3, 3, found), PLUMB_EUSAGE);
	assert_int_equal(plumb_suffix_array(text, 0, 0, found), 0);
}

/* Taken from the library itself and not at link time, so that the test builds without it. */
static void
test_divsufsort(void **state)
{
	enum { COUNT = 200000 };
	void *library = dlopen("libdivsufsort.so.3", RTLD_NOW);
	int32_t (*divsufsort)(const uint8_t *, int32_t *, int32_t);

	(void)state;
	if (!library) {
		puts("libdivsufsort is not installed (libdivsufsort-dev): not compared");
		skip();
	}
	*(void **)&divsufsort = dlsym(library, "divsufsort");
	assert_non_null(divsufsort);
	int32_t *text = malloc(COUNT * sizeof *text), *found = malloc(COUNT * sizeof *found);
	int32_t *expected = malloc(COUNT * sizeof *expected);
	uint8_t *bytes = malloc(COUNT);
	static const int32_t periods[] = { 1, 42, 1462, 65536, COUNT };
	for (size_t p = 0; p < sizeof periods / sizeof *periods; p++) {
		for (int32_t i = 0; i < COUNT; i++)
			text[i] = i < periods[p] ? rand() % 256 : text[i - periods[p]];
		for (int change = 0; p % 2 && change < COUNT / 200; change++)
			text[rand() % COUNT] = rand() % 256;
		for (int32_t i = 0; i < COUNT; i++)
			bytes[i] = (uint8_t)text[i];
		assert_int_equal(divsufsort(bytes, expected, COUNT), 0);
		assert_int_equal(plumb_suffix_array(text, COUNT, 256, found), 0);
		assert_memory_equal(found, expected, COUNT * sizeof *found);
	}
	free(text);
	free(found);
	free(expected);
	free(bytes);
	dlclose(library);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_periodic),
		cmocka_unit_test(test_out_of_range),
		cmocka_unit_test(test_divsufsort),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
