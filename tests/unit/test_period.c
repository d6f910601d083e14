/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of known structure: periods, rounds, what is inserted, missing or outside; and no loop at
 * all. */
#include "analyze/pattern/growing.h"
#include "analyze/pattern/period.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/pattern/align.h"

#define MOST 60000

static int32_t text[MOST];
static int32_t count;

static void
put(int32_t symbol)
{
	assert_true(count < MOST);
	text[count++] = symbol;
}

static uint64_t state_of_random;

/* A number from 0 to BELOW - 1. */
static int
pick(int below)
{
	state_of_random =
		state_of_random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (int)((state_of_random >> 33) % (uint64_t)below);
}

/* A step of 5 names, an inner loop of LAYERS rounds of 7 names, and 11 more names. */
static void
put_step(int layers)
{
	for (int32_t i = 0; i < 5; i++)
		put(i);
	for (int l = 0; l < layers; l++)
		for (int32_t i = 0; i < 7; i++)
			put(10 + i);
	for (int32_t i = 0; i < 11; i++)
		put(20 + i);
}

static void
check_rounds(const struct plumb_loop *loop)
{
	for (uint32_t r = 0; r < loop->rounds.count; r++) {
		assert_true(loop->rounds.items[r].start < loop->rounds.items[r].end);
		assert_true(loop->rounds.items[r].end <= count);
		assert_true(!r || loop->rounds.items[r - 1].end <= loop->rounds.items[r].start);
	}
}

static void
test_nested(void **state)
{
	struct plumb_loop loop, inner;

	(void)state;
	count = 0;
	for (int32_t i = 0; i < 33; i++)
		put(40 + i); /* before the loop */
	for (int step = 0; step < 20; step++)
		put_step(12);
	assert_int_equal(plumb_loop_find(text, count, 80, 0.5, &loop), 1);
	assert_int_equal(loop.period, 5 + 12 * 7 + 11);
	assert_int_equal(loop.rounds.count, 20);
	assert_int_equal(loop.rounds.items[0].start, 33);
	assert_int_equal(loop.rounds.items[19].end, count);
	assert_int_equal(plumb_loop_find(loop.pattern, loop.period, 80, 0.25, &inner), 1);
	assert_int_equal(inner.period, 7);
	assert_int_equal(inner.rounds.count, 12);
	plumb_loop_free(&inner);
	assert_int_equal(plumb_loop_turn(&loop, text, count, 5), 0);
	assert_int_equal(loop.pattern[0], 10);
	assert_int_equal(loop.rounds.items[0].start, 38);
	assert_int_equal(loop.rounds.count, 20);
	assert_int_equal(loop.rounds.items[19].edits, 5); /* the last one lacks its end */
	assert_true(loop.coverage > 1 - 34.0 / count);
	plumb_loop_free(&loop);
}

/* Rounds that begin in the middle of an inner loop: one of its own rounds before the first is no
 * part of that. */
static void
test_begin_within_inner(void **state)
{
	struct plumb_loop loop;

	(void)state;
	for (int layer = 0; layer < 12; layer++) {
		count = 0;
		for (int step = 0; step < 20; step++)
			put_step(12);
		assert_int_equal(plumb_loop_find(text, count, 80, 0.5, &loop), 1);
		assert_int_equal(loop.rounds.items[0].start, 0);
		assert_int_equal(plumb_loop_turn(&loop, text, count, 5 + 7 * layer), 0);
		for (uint32_t r = 0; r < 19; r++) {
			assert_int_equal(loop.rounds.items[r].start,
			                 5 + 7 * layer + (int)r * loop.period);
			assert_int_equal(loop.rounds.items[r].edits, 0);
		}
		assert_float_equal(loop.coverage, 1, 1e-9);
		plumb_loop_free(&loop);
	}
}

/* Rounds of 20 names after one more of another each time, which begin with the second name: the
 * text ends before the last one has what it grows by, and is about as long as the shortest then. */
static void
test_last_growing_round_is_cut(void **state)
{
	enum { ROUNDS = 14 };
	static int64_t gaps[MOST];
	struct plumb_loop loop;

	(void)state;
	count = 0;
	memset(gaps, 0, sizeof gaps);
	for (int32_t r = 0; r < ROUNDS; r++) {
		for (int32_t i = 0; i < r; i++)
			put(30);
		for (int32_t i = 0; i < 20; i++) {
			gaps[count] = i == 1 ? 1000 : 0;
			put(i);
		}
	}
	assert_int_equal(plumb_loop_find_growing(text, count, 40, 0.5, gaps, &loop), 1);
	assert_int_equal(loop.pattern[0], 1);
	assert_int_equal(loop.rounds.count, ROUNDS - 1);
	for (int32_t r = 0; r < ROUNDS - 1; r++)
		assert_int_equal(loop.rounds.items[r].end - loop.rounds.items[r].start, 21 + r);
	plumb_loop_free(&loop);
}

/* Each position is replaced, doubled or left out with the given chances, in parts of 1000. */
static void
disturb(int32_t alphabet, int replaced, int inserted, int missing)
{
	static int32_t before[MOST];
	int32_t old = count;

	memcpy(before, text, sizeof text);
	count = 0;
	for (int32_t i = 0; i < old; i++) {
		if (rand() % 1000 < inserted)
			put(rand() % alphabet);
		if (rand() % 1000 < missing)
			continue;
		put(rand() % 1000 < replaced ? rand() % alphabet : before[i]);
	}
}

static void
test_noise(void **state)
{
	static const int kinds[][3] = {
		{ 5, 0, 0 }, { 20, 0, 0 }, { 0, 5, 5 }, { 0, 10, 0 }, { 4, 8, 8 }
	};

	(void)state;
	srand(4);
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
		for (int32_t period = 100; period <= 1600; period *= 4) {
			struct plumb_loop loop;

			count = 0;
			while (count < period)
				put(rand() % 60);
			while (count < period * 30)
				put(text[count - period]);
			disturb(60, kinds[k][0], kinds[k][1], kinds[k][2]);
			if (plumb_loop_find(text, count, 60, 0.5, &loop) != 1)
				fail_msg("kind %zu, period %d: none", k, period);
			assert_int_equal(loop.period, period);
			assert_in_range(loop.rounds.count, 29, 31);
			assert_true(loop.coverage > 0.95);
			check_rounds(&loop);
			plumb_loop_free(&loop);
		}
}

/* One name inserted, one missing, one changed: each is told by its place. */
static void
test_places(void **state)
{
	struct plumb_loop loop;
	int32_t places[1000];
	int outside = 0;

	(void)state;
	count = 0;
	for (int round = 0; round < 10; round++)
		for (int32_t i = 0; i < 40; i++) {
			if (round == 3 && i == 8)
				put(70); /* inserted at 128 */
			if (round == 5 && i == 20)
				continue; /* missing at 221 */
			put(round == 7 && i == 30 ? 71 : i);
		}
	assert_int_equal(plumb_loop_find(text, count, 72, 0.5, &loop), 1);
	assert_int_equal(loop.period, 40);
	assert_int_equal(loop.rounds.count, 10);
	assert_int_equal(plumb_loop_places(&loop, text, count, places), 0);
	for (int32_t i = 0; i < count; i++)
		outside += places[i] < 0;
	assert_int_equal(outside, 1);
	assert_int_equal(places[128], -1);
	assert_int_equal(places[220], 19);
	assert_int_equal(places[221], 21);
	assert_int_equal(places[310], 30); /* changed, but at its place */
	for (uint32_t r = 0; r < 10; r++)
		assert_int_equal(loop.rounds.items[r].edits, r == 3 || r == 5 || r == 7);
	plumb_loop_free(&loop);
}

/* Many stretches that have nothing to do with each other, each repeated, and then a few rounds.
 * These are a loop, although they are a small part of the text. */
static void
test_after_a_start_up(void **state)
{
	struct plumb_loops loops;
	bool found = false;

	(void)state;
	count = 0;
	for (int32_t i = 0; i < 150; i++)
		for (int again = 0; again < 100; again++) {
			put(100);
			put(101 + i);
		}
	int32_t start = count;
	for (int step = 0; step < 8; step++)
		put_step(12);
	assert_int_equal(plumb_loops_find(text, count, 300, &loops), 0);
	for (uint32_t l = 0; l < loops.count; l++) {
		const struct plumb_loop *loop = &loops.items[l];

		check_rounds(loop);
		if (loop->period != 100)
			continue;
		found = true;
		assert_in_range(loop->rounds.count, 7, 8);
		assert_in_range(loop->rounds.items[0].start, start, start + 100);
		assert_true(loop->coverage == 1);
	}
	assert_true(found);
	for (int32_t i = 0; i < count; i++)
		assert_true(text[i] >= 0); /* nothing stays hidden */
	plumb_loops_free(&loops);
}

/* Two loops that take turns, and a part of a round at the end: each symbol has one owner. */
static void
test_two_loops(void **state)
{
	struct plumb_loops loops;
	int32_t owners = 0;

	(void)state;
	for (int turns = 1; turns <= 3; turns++) {
		count = 0;
		for (int turn = 0; turn < turns; turn++) {
			for (int step = 0; step < 20 + turn; step++)
				put_step(6);
			for (int step = 0; step < 15 - turn; step++)
				for (int32_t i = 0; i < 40; i++)
					put(40 + i);
		}
		assert_int_equal(plumb_loops_find(text, count, 80, &loops), 0);
		assert_true(loops.count >= 2);
		assert_in_range(loops.items[0].period + loops.items[1].period, 58 + 40, 58 + 40);
		owners = 0;
		for (uint32_t l = 0; l < loops.count; l++)
			for (uint32_t r = 0; r < loops.items[l].rounds.count; r++)
				owners += loops.items[l].rounds.items[r].end -
				          loops.items[l].rounds.items[r].start;
		assert_in_range(owners, count - 2 * turns * (58 + 40), count);
		plumb_loops_free(&loops);
	}
}

/* ROUNDS of PERIOD names from BASE on. */
static void
put_loop(int32_t base, int32_t period, int rounds)
{
	for (int r = 0; r < rounds; r++)
		for (int32_t i = 0; i < period; i++)
			put(base + i);
}

/* The loop of PERIOD that begins at FROM, or NULL. */
static const struct plumb_loop *
loop_at(const struct plumb_loops *loops, int32_t period, int32_t from)
{
	for (uint32_t l = 0; l < loops->count; l++)
		if (loops->items[l].period == period &&
		    loops->items[l].rounds.items[0].start == from)
			return &loops->items[l];
	return NULL;
}

static void
check_loop(const struct plumb_loops *loops, int32_t period, int32_t from, int rounds)
{
	const struct plumb_loop *loop = loop_at(loops, period, from);

	if (!loop)
		fail_msg("no loop of %d at %d", period, from);
	assert_int_equal(loop->rounds.count, rounds);
	check_rounds(loop);
}

/* Loops with rounds as long as each other's, one right after the other. */
static void
test_adjacent_loops(void **state)
{
	struct plumb_loops loops;

	(void)state;
	for (int32_t period = 1; period <= 40; period += 3) {
		count = 0;
		put_loop(0, period, 215);
		put_loop(100, period, 238);
		assert_int_equal(plumb_loops_find(text, count, 200, &loops), 0);
		assert_int_equal(loops.count, 2);
		check_loop(&loops, period, 0, 215);
		check_loop(&loops, period, 215 * period, 238);
		plumb_loops_free(&loops);
	}
}

/* One of them comes again after the other: it is one loop in two stretches. */
static void
test_loop_between_stretches(void **state)
{
	struct plumb_loops loops;

	(void)state;
	count = 0;
	put_loop(0, 3, 80);
	put_loop(100, 3, 60);
	put_loop(0, 3, 70);
	assert_int_equal(plumb_loops_find(text, count, 200, &loops), 0);
	assert_int_equal(loops.count, 2);
	check_loop(&loops, 3, 0, 150);
	check_loop(&loops, 3, 240, 60);
	plumb_loops_free(&loops);
}

/* A few rounds between two long loops of nearly the same period. */
static void
test_short_loop_between(void **state)
{
	struct plumb_loops loops;

	(void)state;
	count = 0;
	put_loop(0, 12, 153);
	put_loop(20, 11, 14);
	put_loop(40, 12, 34);
	assert_int_equal(plumb_loops_find(text, count, 60, &loops), 0);
	assert_int_equal(loops.count, 3);
	check_loop(&loops, 12, 0, 153);
	check_loop(&loops, 11, 153 * 12, 14);
	check_loop(&loops, 12, 153 * 12 + 14 * 11, 34);
	plumb_loops_free(&loops);
}

/* Two or three loops of names of their own, with other names between them or without. What is
 * found next to them is no more than names that came twice by chance. */
static void
test_random_adjacent_loops(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 1500; seed++) {
		int loops = 2, period[3], rounds[3], from[3];
		bool noise;
		struct plumb_loops found;

		state_of_random = seed;
		loops += pick(2);
		noise = pick(2);
		count = 0;
		for (int l = 0; l < loops; l++) {
			for (int i = noise && l ? 1 + pick(30) : 0; i > 0; i--)
				put(40 + pick(30));
			from[l] = count;
			period[l] = 1 + pick(12);
			rounds[l] = 10 + pick(pick(4) ? 50 : 300);
			put_loop(12 * l, period[l], rounds[l]);
		}
		assert_int_equal(plumb_loops_find(text, count, 70, &found), 0);
		for (int l = 0; l < loops; l++)
			check_loop(&found, period[l], from[l], rounds[l]);
		for (uint32_t l = (uint32_t)loops; l < found.count; l++)
			assert_true(noise && found.items[l].rounds.count < 4);
		plumb_loops_free(&found);
	}
}

/* Loops whose rounds have some of the names of the other's. */
static void
test_loops_with_common_names(void **state)
{
	(void)state;
	for (int32_t shift = 1; shift < 6; shift++) {
		struct plumb_loops found;

		count = 0;
		put_loop(0, 6, 40);
		put_loop(shift, 6, 50);
		put_loop(3, 1, 30);
		assert_int_equal(plumb_loops_find(text, count, 20, &found), 0);
		assert_int_equal(found.count, 3);
		check_loop(&found, 6, 0, 40);
		check_loop(&found, 6, 240, 50);
		plumb_loops_free(&found);
	}
}

/* Something else between two rounds: it belongs to none. */
static void
test_interrupted(void **state)
{
	struct plumb_loop loop;

	(void)state;
	count = 0;
	for (int step = 0; step < 16; step++) {
		put_step(3);
		if (step == 7)
			for (int32_t i = 0; i < 30; i++)
				put(50 + i);
	}
	assert_int_equal(plumb_loop_find(text, count, 80, 0.5, &loop), 1);
	assert_int_equal(loop.period, 37);
	assert_int_equal(loop.rounds.count, 16);
	for (uint32_t r = 0; r < 16; r++)
		assert_int_equal(loop.rounds.items[r].edits, 0);
	plumb_loop_free(&loop);
}

static void
check_none(int32_t alphabet)
{
	struct plumb_loop loop;

	assert_int_equal(plumb_loop_find(text, count, alphabet, 0.5, &loop), 0);
	assert_int_equal(loop.period, 0);
	plumb_loop_free(&loop);
}

static void
test_none(void **state)
{
	(void)state;
	srand(5);
	for (int32_t alphabet = 2; alphabet <= 512; alphabet *= 4) {
		for (count = 0; count < 5000;)
			put(rand() % alphabet);
		check_none(alphabet);
	}
	for (count = 0; count < 5000;) /* one name is most of all, in no order */
		put(rand() % 10 ? 0 : 1 + rand() % 50);
	check_none(51);
	for (count = 0; count < 400;) /* one round alone */
		put(count);
	check_none(400);
	count = 6; /* fewer symbols than the alphabet has */
	check_none(50000);
	count = 1;
	check_none(400);
	count = 0;
	check_none(1);
}

static void
test_all_equal(void **state)
{
	struct plumb_loop loop;

	(void)state;
	memset(text, 0, sizeof text);
	count = 1000;
	assert_int_equal(plumb_loop_find(text, count, 1, 0.5, &loop), 1);
	assert_int_equal(loop.period, 1);
	assert_int_equal(loop.rounds.count, 1000);
	plumb_loop_free(&loop);
	count = 3;
	assert_int_equal(plumb_loop_find(text, count, 1, 0.5, &loop), 1);
	assert_int_equal(loop.rounds.count, 3);
	plumb_loop_free(&loop);
}

/* A whole number of rounds, which DeepProf's third criterion refuses, and a part at each end. */
static void
test_ends(void **state)
{
	(void)state;
	for (int32_t head = 0; head < 50; head += 7)
		for (int32_t tail = 0; tail < 50; tail += 9) {
			struct plumb_loop loop;

			count = 0;
			for (int32_t i = 50 - head; i < 50 * 3 + 50 + tail; i++)
				put(i % 50);
			assert_int_equal(plumb_loop_find(text, count, 50, 0.5, &loop), 1);
			assert_int_equal(loop.period, 50);
			assert_true(loop.coverage == 1);
			plumb_loop_free(&loop);
		}
}

/* Against the plain table of edit distances, with the end free. */
static void
test_align(void **state)
{
	struct plumb_align align;
	int32_t pattern[40], other[60], places[60], table[41][61];

	(void)state;
	srand(6);
	assert_int_equal(plumb_align_new(&align), 0);
	for (int round = 0; round < 3000; round++) {
		int32_t size = 1 + rand() % 40, length = rand() % 61, best = size, end = 0,
			edits = 0;

		for (int32_t i = 0; i < size; i++)
			pattern[i] = rand() % 4;
		for (int32_t i = 0; i < length; i++)
			other[i] = i < size && rand() % 8 ? pattern[i] : rand() % 4;
		for (int32_t x = 0; x <= size; x++)
			for (int32_t y = 0; y <= length; y++) {
				int32_t least = x && y ? table[x - 1][y - 1] +
				                                 (pattern[x - 1] != other[y - 1])
				                       : x + y;
				if (x && table[x - 1][y] + 1 < least)
					least = table[x - 1][y] + 1;
				if (y && table[x][y - 1] + 1 < least)
					least = table[x][y - 1] + 1;
				table[x][y] = least;
			}
		for (int32_t y = 0; y <= length; y++)
			best = table[size][y] < best ? table[size][y] : best;
		edits = plumb_align_round(&align, pattern, size, other, length, 60, &end, places);
		assert_int_equal(edits, best);
		assert_int_equal(table[size][end], best);
		int32_t last = -1, same = 0, placed = 0;
		for (int32_t i = 0; i < end; i++) {
			if (places[i] < 0)
				continue;
			assert_true(places[i] > last && places[i] < size);
			last = places[i];
			placed++;
			same += pattern[places[i]] == other[i];
		}
		assert_int_equal((placed - same) + (end - placed) + (size - placed), best);
		if (best > 0)
			assert_int_equal(plumb_align_round(&align, pattern, size, other, length,
			                                   best - 1, &end, NULL),
			                 -1);
	}
	plumb_align_free(&align);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_begin_within_inner),
		cmocka_unit_test(test_last_growing_round_is_cut),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_after_a_start_up),
		cmocka_unit_test(test_two_loops),
		cmocka_unit_test(test_adjacent_loops),
		cmocka_unit_test(test_loop_between_stretches),
		cmocka_unit_test(test_short_loop_between),
		cmocka_unit_test(test_random_adjacent_loops),
		cmocka_unit_test(test_loops_with_common_names),
		cmocka_unit_test(test_interrupted),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_all_equal),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_align),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
