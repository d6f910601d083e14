/* SPDX-License-Identifier: Apache-2.0 */
/* What lies where (collect/intervals.h), against a plain array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collect/intervals.h"

#define SPACE 200000u /* starts are below */

static struct plumb_intervals *set;
static uint32_t there[SPACE]; /* entry + 1 */
static uint32_t count;

static int
begin(void **state)
{
	(void)state;
	set = calloc(1, sizeof *set);
	memset(there, 0, sizeof there);
	count = 0;
	return set ? 0 : -1;
}

static int
end(void **state)
{
	(void)state;
	free(set);
	return 0;
}

static void
put(uint32_t start)
{
	if (there[start])
		return;
	assert_true(plumb_intervals_put(set, start, start * 7));
	there[start] = start * 7 + 1;
	count++;
}

static void
take(uint32_t start)
{
	struct plumb_interval_at at;
	if (!there[start])
		return;
	assert_true(plumb_intervals_ceiling(set, start, &at));
	assert_int_equal(plumb_intervals_entry(set, at), there[start] - 1);
	plumb_intervals_remove(set, at);
	there[start] = 0;
	count--;
}

static void
check_at(uint32_t address)
{
	struct plumb_interval_at at;
	uint32_t low = address + 1, high = address;
	while (low && !there[low - 1])
		low--;
	while (high < SPACE && !there[high])
		high++;
	assert_int_equal(plumb_intervals_floor(set, address, &at), low > 0);
	if (low)
		assert_int_equal(plumb_intervals_entry(set, at), there[low - 1] - 1);
	assert_int_equal(plumb_intervals_ceiling(set, address, &at), high < SPACE);
	if (high < SPACE)
		assert_int_equal(plumb_intervals_entry(set, at), there[high] - 1);
}

static void
check_order(void)
{
	struct plumb_interval_at at;
	uint32_t seen = 0, address = 0;
	for (bool more = plumb_intervals_ceiling(set, 0, &at); more; seen++) {
		while (!there[address])
			address++;
		assert_int_equal(plumb_intervals_entry(set, at), there[address++] - 1);
		more = plumb_intervals_next(set, &at);
	}
	assert_int_equal(seen, count);
}

static void
test_empty(void **state)
{
	struct plumb_interval_at at;
	(void)state;
	assert_false(plumb_intervals_floor(set, UINT64_MAX, &at));
	assert_false(plumb_intervals_ceiling(set, 0, &at));
	put(5);
	take(5);
	check_at(5);
}

static void
test_as_an_array(void **state)
{
	(void)state;
	srand(7);
	for (int round = 0; round < 6; round++) {
		uint32_t within = round % 2 ? 3000 : SPACE;
		for (int i = 0; i < 20000; i++) {
			uint32_t start = (uint32_t)rand() % within;
			if (rand() % 8 < (round < 3 ? 6 : 2))
				put(start);
			else
				take(start);
		}
		check_order();
		for (int i = 0; i < 500; i++)
			check_at((uint32_t)rand() % SPACE);
	}
}

/* However they came and went, so many find room. */
static void
test_room(void **state)
{
	(void)state;
	for (uint32_t start = 0; start < 2 * PLUMB_INTERVALS_LEAST && start < SPACE; start++)
		put(start);
	for (uint32_t start = 0; start < SPACE; start++)
		if (start % 8)
			take(start);
	check_order();
	for (uint32_t start = 0; count < PLUMB_INTERVALS_LEAST; start++)
		put(start);
	check_order();
	while (plumb_intervals_put(set, SPACE + count, 0))
		count++;
	assert_true(count >= PLUMB_INTERVALS_LEAST);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_empty, begin, end),
		cmocka_unit_test_setup_teardown(test_as_an_array, begin, end),
		cmocka_unit_test_setup_teardown(test_room, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
