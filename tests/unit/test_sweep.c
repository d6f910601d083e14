/* SPDX-License-Identifier: Apache-2.0 */
/* Overlapping intervals as pieces: at each moment what counts most, whatever overlaps. */
#include "analyze/steps/sweep.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void
check(const struct plumb_sweep_item *items, uint32_t count, const struct plumb_piece *expected,
      uint32_t pieces_count)
{
	struct plumb_pieces pieces = { 0 };

	assert_int_equal(plumb_sweep(items, count, &pieces), 0);
	assert_int_equal(pieces.count, pieces_count);
	for (uint32_t i = 0; i < pieces_count; i++) {
		assert_int_equal(pieces.items[i].start_ns, expected[i].start_ns);
		assert_int_equal(pieces.items[i].end_ns, expected[i].end_ns);
		assert_int_equal(pieces.items[i].id, expected[i].id);
	}
	plumb_vec_free(&pieces);
}

static void
test_known(void **state)
{
	/* Two kernels with a copy before, between and after them; then nothing, then one more. */
	static const struct plumb_sweep_item items[] = { { 0, 100, 2, 7 },
		                                         { 10, 30, 0, 8 },
		                                         { 20, 40, 0, 9 },
		                                         { 60, 60, 0, 1 },
		                                         { 150, 160, 1, 3 } };
	static const struct plumb_piece expected[] = { { 0, 10, 7 },
		                                       { 10, 30, 8 },
		                                       { 30, 40, 9 },
		                                       { 40, 100, 7 },
		                                       { 100, 150, PLUMB_NONE },
		                                       { 150, 160, 3 } };

	(void)state;
	check(items, 5, expected, 6);
	check(items, 0, expected, 0);
}

/* Against the plain way: for each moment the one that counts most. */
static void
test_any(void **state)
{
	enum { ITEMS = 40, TIME = 120 };

	(void)state;
	srand(11);
	for (int turn = 0; turn < 300; turn++) {
		struct plumb_sweep_item items[ITEMS];
		struct plumb_pieces pieces = { 0 };
		int64_t start = 0;

		for (uint32_t i = 0; i < ITEMS; i++) {
			start += rand() % 5;
			items[i] = (struct plumb_sweep_item){ start, start + rand() % 30,
				                              (uint32_t)rand() % 4, i };
		}
		assert_int_equal(plumb_sweep(items, ITEMS, &pieces), 0);
		for (int64_t t = 0; t < start + TIME; t++) {
			uint32_t best = PLUMB_NONE, at = plumb_pieces_from(&pieces, t);

			for (uint32_t i = 0; i < ITEMS; i++)
				if (items[i].start_ns <= t && t < items[i].end_ns &&
				    (best == PLUMB_NONE || items[i].order < items[best].order))
					best = i;
			uint32_t told = at < pieces.count && pieces.items[at].start_ns <= t
			                        ? pieces.items[at].id
			                        : PLUMB_NONE;
			assert_int_equal(told, best);
		}
		for (uint32_t i = 1; i < pieces.count; i++)
			assert_int_equal(pieces.items[i].start_ns, pieces.items[i - 1].end_ns);
		plumb_vec_free(&pieces);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_any),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
