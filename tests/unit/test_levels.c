/* SPDX-License-Identifier: Apache-2.0 */
/* Parents by level and time: what is known to be right, trees whose parents were taken away, and
 * any intervals against the definition, written down a second time without any cleverness. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "import/spans/levels.h"

#define NONE UINT32_MAX
enum { APPLICATION = 1, MODEL, LAYER, OPERATOR, LIBRARY, CALL, KERNEL };

static struct plumb_level_span
span(uint32_t level, int64_t start, int64_t end, uint64_t thread)
{
	return (struct plumb_level_span){ .start_ns = start,
		                          .end_ns = end,
		                          .level = level,
		                          .thread = thread,
		                          .given = NONE,
		                          .launch = NONE };
}

static struct plumb_level_counts
find(struct plumb_level_span *spans, uint32_t count, enum plumb_parents rule)
{
	struct plumb_level_counts counts = { 99, 99 };
	assert_int_equal(plumb_levels_find(spans, count, rule, &counts), 0);
	return counts;
}

/* ---- what is known ---- */

static void
nearest_level(void **state)
{
	(void)state;
	struct plumb_level_span s[] = {
		span(MODEL, 0, 100, 0),  span(LAYER, 10, 40, 0),
		span(LAYER, 40, 90, 0),  span(LIBRARY, 10, 40, 0), /* as long as its layer */
		span(CALL, 38, 40, 0),   span(CALL, 40, 40, 0),    /* begins the second */
		span(CALL, 92, 95, 0),                             /* in no layer */
		span(LAYER, 95, 101, 0),                           /* ends too late */
		span(0, 20, 30, 0),                                /* of no level */
	};
	static const uint32_t parents[] = { NONE, 0, 0, 1, 3, 2, 0, NONE, NONE };
	assert_int_equal(find(s, 9, PLUMB_PARENTS_LAUNCH).ambiguous, 0);
	for (int i = 0; i < 9; i++)
		assert_int_equal(s[i].parent, parents[i]);
}

static void
several_are_ambiguous(void **state)
{
	(void)state;
	struct plumb_level_span s[] = {
		span(MODEL, 0, 100, 0), span(LAYER, 10, 50, 1),
		span(LAYER, 20, 60, 2), span(CALL, 25, 30, 0), /* of whom? */
		span(CALL, 25, 30, 2),                         /* of its own thread's */
		span(CALL, 52, 55, 0),                         /* one is over */
		span(CALL, 25, 30, 3),                         /* a third thread */
	};
	assert_int_equal(find(s, 7, PLUMB_PARENTS_LAUNCH).ambiguous, 2);
	assert_true(s[3].ambiguous && s[6].ambiguous && !s[4].ambiguous);
	assert_int_equal(s[3].parent, 0);
	assert_int_equal(s[4].parent, 2);
	assert_int_equal(s[5].parent, 2);
	assert_int_equal(s[6].parent, 0);
}

static void
ties_are_ambiguous(void **state)
{
	(void)state;
	struct plumb_level_span s[] = { span(LAYER, 0, 10, 1), span(LAYER, 0, 10, 1),
		                        span(CALL, 2, 3, 1), span(CALL, 0, 10, 0) };
	assert_int_equal(find(s, 4, PLUMB_PARENTS_LAUNCH).ambiguous, 2);
	assert_int_equal(s[0].parent, NONE);
	assert_int_equal(s[1].parent, NONE);
	assert_int_equal(s[2].parent, NONE);
}

static void
one_in_the_other(void **state)
{
	(void)state;
	struct plumb_level_span s[] = {
		span(LAYER, 0, 100, 1),   span(LAYER, 10, 50, 1), /* on one thread: nested */
		span(CALL, 20, 30, 0),    span(CALL, 60, 70, 0),
		span(LAYER, 200, 300, 0), span(LAYER, 210, 250, 0), /* nobody knows */
		span(CALL, 220, 230, 0),  span(LAYER, 400, 500, 0),
		span(LAYER, 410, 450, 0), /* the file says so */
		span(CALL, 420, 430, 0),
	};
	s[8].given = 7;
	assert_int_equal(find(s, 10, PLUMB_PARENTS_LAUNCH).ambiguous, 1);
	assert_int_equal(s[1].parent, 0);
	assert_int_equal(s[2].parent, 1);
	assert_int_equal(s[3].parent, 0);
	assert_int_equal(s[5].parent, NONE);
	assert_true(s[6].ambiguous);
	assert_int_equal(s[9].parent, 8);
}

/* The engine is asynchronous: the first layer's kernel runs while the second layer does. */
static void
launches(void **state)
{
	(void)state;
	struct plumb_level_span s[] = {
		span(LAYER, 0, 10, 0),   span(LAYER, 10, 40, 0),
		span(CALL, 8, 11, 0), /* ends after its layer */
		span(KERNEL, 20, 30, 0), span(KERNEL, 31, 35, 0),
		span(CALL, 12, 39, 0), /* it waits */
	};
	s[3].asynchronous = s[4].asynchronous = true;
	s[3].launch = 2;
	find(s, 6, PLUMB_PARENTS_LAUNCH);
	assert_int_equal(s[2].parent, 0);
	assert_int_equal(s[3].parent, 2);
	assert_int_equal(s[4].parent, NONE); /* its launch is not known */
	find(s, 6, PLUMB_PARENTS_INCLUSION);
	assert_int_equal(s[2].parent, NONE);
	assert_int_equal(s[3].parent, 1);
	assert_int_equal(s[4].parent, 1);
}

static void
named_parents(void **state)
{
	(void)state;
	struct plumb_level_span s[] = {
		span(APPLICATION, 0, 100, 0), span(APPLICATION, 0, 100, 0), span(LAYER, 10, 50, 0),
		span(LAYER, 60, 90, 0),       span(CALL, 20, 30, 0),        span(CALL, 70, 80, 0),
		span(LAYER, 10, 50, 0),  /* of another group */
		span(CALL, 300, 310, 0), /* outlives its parent */
	};
	s[2].given = s[4].given = s[5].given = 0;
	s[3].given = 1;
	s[6].group = 7;
	s[7].given = 2;
	assert_int_equal(find(s, 8, PLUMB_PARENTS_LAUNCH).ambiguous, 0);
	assert_int_equal(s[4].parent,
	                 2); /* all that ran under the application says so; the layer is between */
	assert_int_equal(s[5].parent, 0); /* that layer is the other application's */
	assert_int_equal(s[6].parent, NONE);
	assert_int_equal(s[7].parent, 2);
}

static void
circles(void **state)
{
	(void)state;
	struct plumb_level_span s[] = { span(LAYER, 0, 10, 0), span(LAYER, 0, 10, 0),
		                        span(CALL, 0, 10, 0), span(CALL, 5, 6, 0),
		                        span(MODEL, 5, 6, 0) };
	s[0].given = 1;
	s[1].given = 0;
	s[2].given = 2;
	s[4].given = 3; /* a model in a call, which is in the model */
	assert_int_equal(find(s, 5, PLUMB_PARENTS_LAUNCH).circles, 2);
	for (uint32_t i = 0; i < 5; i++) {
		uint32_t at = i, steps = 0;
		while (at != NONE && steps <= 5) {
			at = s[at].parent;
			steps++;
		}
		assert_true(steps <= 5);
	}
	assert_int_equal(s[4].parent, 3);
	struct plumb_level_span none[1];
	assert_int_equal(find(none, 0, PLUMB_PARENTS_LAUNCH).circles, 0);
}

/* ---- trees ---- */

static uint64_t seed;

static uint32_t
chance(uint32_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % below;
}

struct tree {
	struct plumb_level_span *spans;
	uint32_t *parents;
	uint32_t count, room;
};

static uint32_t
tree_add(struct tree *t, struct plumb_level_span s, uint32_t parent)
{
	if (t->count == t->room) {
		t->room = t->room * 2 + 64;
		t->spans = realloc(t->spans, t->room * sizeof *t->spans);
		t->parents = realloc(t->parents, t->room * sizeof *t->parents);
		assert_true(t->spans && t->parents);
	}
	t->spans[t->count] = s;
	t->parents[t->count] = parent;
	return t->count++;
}

/* Children side by side within [START, END), each of a deeper level; calls start kernels that end
 * whenever. */
static void
grow(struct tree *t, uint32_t parent, uint32_t level, int64_t start, int64_t end, uint64_t thread)
{
	int64_t at = start;
	while (level < KERNEL && end - at > 8) {
		int64_t from = at + chance((uint32_t)((end - at) / 3));
		int64_t to = from + 1 + chance((uint32_t)(end - from));
		uint32_t own = tree_add(t, span(level, from, to, thread), parent);
		at = to;
		if (level < CALL) {
			grow(t, own, level + 1 + chance(CALL - level), from, to, thread);
		} else if (chance(2)) {
			int64_t began = from + chance(1000);
			struct plumb_level_span k =
				span(KERNEL, began, began + 1 + chance(100000), 0);
			k.asynchronous = true;
			k.launch = own;
			tree_add(t, k, own);
		}
	}
}

static void
tree_free(struct tree *t)
{
	free(t->spans);
	free(t->parents);
}

static void
erased_parents_are_found_again(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < 300; round++) {
		struct tree t = { 0 };
		seed = round + 1;
		/* One thread that nobody knows of, or several that are known. */
		uint32_t threads = round % 3 ? 1 : 1 + chance(4);
		for (uint32_t i = 0; i < threads; i++) {
			int64_t start = chance(50), end = start + 20 + chance(20000);
			uint64_t thread = threads > 1 || round % 2 ? i + 1 : 0;
			uint32_t root = tree_add(&t, span(APPLICATION, start, end, thread), NONE);
			grow(&t, root, MODEL, start, end, thread);
		}
		for (uint32_t i = 0; i < t.count; i++) /* some are given */
			if (round % 5 == 0 && chance(4) == 0)
				t.spans[i].given = t.parents[i];
		struct plumb_level_counts counts = find(t.spans, t.count, PLUMB_PARENTS_LAUNCH);
		assert_int_equal(counts.ambiguous, 0);
		for (uint32_t i = 0; i < t.count; i++)
			if (t.spans[i].parent != t.parents[i])
				fail_msg("round %u: span %u has parent %d, not %d", round, i,
				         (int)t.spans[i].parent, (int)t.parents[i]);
		tree_free(&t);
	}
}

/* ---- the definition ---- */

static uint32_t
by_definition(const struct plumb_level_span *s, uint32_t count, uint32_t own, bool *ambiguous)
{
	*ambiguous = false;
	for (uint32_t level = s[own].level; level-- > 1;) {
		uint32_t found = NONE, several = 0;
		for (uint32_t i = 0; i < count; i++)
			if (s[i].level == level && s[i].group == s[own].group &&
			    s[i].start_ns <= s[own].start_ns && s[i].end_ns >= s[own].end_ns &&
			    s[i].end_ns > s[own].start_ns) {
				found = i;
				several++;
			}
		if (several == 1)
			return found;
		*ambiguous |= several > 1;
	}
	return NONE;
}

static void
any_intervals(void **state)
{
	(void)state;
	struct plumb_level_span s[200];
	uint32_t ambiguous = 0, found = 0;
	for (uint32_t round = 0; round < 400; round++) {
		uint32_t count = 1 + chance(200), span_of_time = 1 + chance(400);
		seed = 1000 + round;
		for (uint32_t i = 0; i < count; i++) {
			int64_t start = chance(span_of_time);
			s[i] = span(1 + chance(KERNEL), start, start + chance(span_of_time), 0);
			s[i].group = chance(2);
		}
		find(s, count, PLUMB_PARENTS_INCLUSION);
		for (uint32_t i = 0; i < count; i++) {
			bool several;
			uint32_t parent = by_definition(s, count, i, &several);
			assert_int_equal(s[i].parent, parent);
			assert_int_equal(s[i].ambiguous, several);
			ambiguous += several;
			found += parent != NONE;
		}
	}
	assert_true(ambiguous > 1000 && found > 1000);
}

/* What would take hours if it were quadratic. */
static void
deep_and_wide(void **state)
{
	(void)state;
	enum { MANY = 400000 };
	struct plumb_level_span *s = malloc(2 * MANY * sizeof *s);
	assert_non_null(s);
	for (int i = 0; i < MANY; i++) { /* one in the other, and a call at the bottom of each */
		s[i] = span(LAYER, i, 4 * MANY - i, 1);
		s[MANY + i] = span(CALL, 2 * MANY, 4 * MANY - i, 0);
	}
	assert_int_equal(find(s, 2 * MANY, PLUMB_PARENTS_LAUNCH).ambiguous, 0);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(s[MANY + i].parent, i);
	for (int i = 0; i < MANY; i++) { /* all at once, each on a thread of its own */
		s[i] = span(LAYER, i, 2 * MANY + i, (uint64_t)i + 1);
		s[MANY + i] = span(CALL, i, i + 1, (uint64_t)i + 1);
	}
	assert_int_equal(find(s, 2 * MANY, PLUMB_PARENTS_LAUNCH).ambiguous, 0);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(s[MANY + i].parent, i);
	free(s);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(nearest_level),
		cmocka_unit_test(several_are_ambiguous),
		cmocka_unit_test(ties_are_ambiguous),
		cmocka_unit_test(one_in_the_other),
		cmocka_unit_test(launches),
		cmocka_unit_test(named_parents),
		cmocka_unit_test(circles),
		cmocka_unit_test(erased_parents_are_found_again),
		cmocka_unit_test(any_intervals),
		cmocka_unit_test(deep_and_wide),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
