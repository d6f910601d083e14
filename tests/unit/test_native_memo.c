/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memo of native paths on stacks made by hand: what has to be the same for a path to be known,
 * and what happens when there are more than fit. On real stacks: tests/e2e/test_native_walk.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collect/native_memo.h"

enum { WORDS = 512, STOP = 64 };

/* Three calls, and two frames that were found by pointers: the frame pointer at the beginning, and
 * one that is kept in the stack's word 20. */
struct made {
	uintptr_t stack[WORDS];
	struct plumb_stack_registers from;
	struct plumb_stack_bounds bounds;
	struct plumb_stack_trail trail;
	struct plumb_memo_place at;
	struct plumb_native_memo *memo;
};

static struct made *
make(void)
{
	struct made *m = test_calloc(1, sizeof *m);
	m->memo = aligned_alloc(64, sizeof *m->memo);
	assert_non_null(m->memo);
	memset(m->memo, 0, sizeof *m->memo);
	for (size_t i = 0; i < WORDS; i++)
		m->stack[i] = 0x1000 + i;
	m->from = (struct plumb_stack_registers){
		.pc = 0x400,
		.sp = (uintptr_t)m->stack,
		.fp = (uintptr_t)&m->stack[30],
	};
	m->stack[20] = (uintptr_t)&m->stack[40];
	m->bounds = (struct plumb_stack_bounds){ m->from.sp, (uintptr_t)&m->stack[WORDS] };
	m->at = (struct plumb_memo_place){
		.parent = 5,
		.from = &m->from,
		.bounds = &m->bounds,
		.stop = (uintptr_t)&m->stack[STOP],
	};
	m->trail = (struct plumb_stack_trail){
		.pc = 0x400,
		.reach = 50 * sizeof(uintptr_t),
		.calls = 3,
		.pointers = 2,
		.at = { 1, 31, 41, PLUMB_STACK_REGISTER, 20 },
		.word = { m->stack[1], m->stack[31], m->stack[41], 30 * sizeof(uintptr_t),
		          40 * sizeof(uintptr_t) },
	};
	return m;
}

static void
unmake(struct made *m)
{
	free(m->memo);
	test_free(m);
}

/* The node that is known; 0: none. */
static plumb_id
known(const struct made *m)
{
	plumb_id node = 0;
	return plumb_native_memo_find(m->memo, &m->at, &node) ? node : 0;
}

static void
put(struct made *m, plumb_id node)
{
	plumb_native_memo_put(m->memo, &m->at, &m->trail, node);
}

static void
test_the_same_stack_is_known(void **state)
{
	(void)state;
	struct made *m = make();
	assert_int_equal(known(m), 0);
	put(m, 77);
	assert_int_equal(known(m), 77);
	m->stack[2]++; /* nothing that the walk went by */
	assert_int_equal(known(m), 77);
	unmake(m);
}

/* The same words elsewhere, as when the operator is called from a deeper stack. */
static void
test_a_stack_that_lies_elsewhere_is_known(void **state)
{
	(void)state;
	struct made *m = make();
	uintptr_t by = 100 * sizeof(uintptr_t);
	put(m, 77);
	memmove(m->stack + 100, m->stack, 100 * sizeof(uintptr_t));
	m->stack[120] += by;
	m->from.sp += by;
	m->from.fp += by;
	m->at.stop += by;
	assert_int_equal(known(m), 77);
	m->stack[120] -= by; /* a pointer that leads to where it led before leads elsewhere now */
	assert_int_equal(known(m), 0);
	unmake(m);
}

static void
test_whatever_a_walk_goes_by_has_to_be_the_same(void **state)
{
	(void)state;
	struct made *m = make();
	put(m, 77);
	uintptr_t *parts[] = { &m->stack[1], &m->stack[31], &m->stack[41], &m->stack[20],
		               &m->from.fp,  &m->from.pc,   &m->at.stop };
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		*parts[i] += sizeof(uintptr_t);
		assert_int_equal(known(m), 0);
		*parts[i] -= sizeof(uintptr_t);
		assert_int_equal(known(m), 77);
	}
	m->at.parent = 6;
	assert_int_equal(known(m), 0);
	unmake(m);
}

static void
test_without_a_stop_the_end_of_the_stack_counts(void **state)
{
	(void)state;
	struct made *m = make();
	m->at.stop = 0;
	put(m, 77);
	assert_int_equal(known(m), 77);
	m->bounds.high -= sizeof(uintptr_t);
	assert_int_equal(known(m), 0);
	m->at.stop = m->bounds.high + sizeof(uintptr_t); /* as far away, and no stop: refused */
	assert_int_equal(known(m), 0);
	unmake(m);
}

/* Nothing beyond the end of the stack is looked at. */
static void
test_the_stack_has_to_reach_as_far(void **state)
{
	(void)state;
	struct made *m = make();
	m->at.stop = (uintptr_t)&m->stack[44];
	put(m, 77);
	m->bounds.high = (uintptr_t)&m->stack[50];
	assert_int_equal(known(m), 77);
	m->bounds.high = (uintptr_t)&m->stack[49];
	assert_int_equal(known(m), 0);
	unmake(m);
}

static void
test_walks_without_a_trail_are_not_kept(void **state)
{
	(void)state;
	struct made *m = make();
	m->trail.calls = 0;
	put(m, 77);
	assert_int_equal(known(m), 0);
	m->trail.calls = 3;
	m->at.stop = m->from.sp + ((uintptr_t)3 << 30);
	m->bounds.high = UINTPTR_MAX - 7;
	put(m, 77);
	assert_int_equal(known(m), 0);
	unmake(m);
}

static void
test_parents_share_a_trail(void **state)
{
	(void)state;
	struct made *m = make();
	for (plumb_id parent = 1; parent <= 1000; parent++) {
		m->at.parent = parent;
		put(m, 10000 + parent);
	}
	assert_int_equal(m->memo->trails, 1);
	unsigned found = 0;
	for (plumb_id parent = 1; parent <= 1000; parent++) {
		m->at.parent = parent;
		plumb_id node = known(m);
		assert_true(!node || node == 10000 + parent);
		found += node != 0;
	}
	assert_int_equal(found, 1000);
	unmake(m);
}

/* One parent, one distance, COUNT return sites that take turns: as many as fit stay, nothing is
 * mixed up. */
static void
test_many_sites_under_one_parent(void **state)
{
	(void)state;
	struct made *m = make();
	enum { COUNT = 12, TURNS = 100, FIT = 2 * PLUMB_MEMO_WAYS };
	unsigned found = 0;
	for (uintptr_t i = 0; i < TURNS * COUNT; i++) {
		uintptr_t place = i % COUNT;
		m->stack[31] = m->trail.word[1] = 0x9000 + place;
		plumb_id node = known(m);
		assert_true(!node || node == 100 + place);
		found += node != 0;
		if (!node)
			put(m, (plumb_id)(100 + place));
	}
	assert_in_range(found, TURNS * COUNT / 2, (TURNS - 1) * COUNT);
	/* Others come, and find a place in time. */
	for (uintptr_t i = 0; i < 400; i++) {
		m->stack[31] = m->trail.word[1] = 0xa000 + i % FIT;
		if (!known(m))
			put(m, (plumb_id)(200 + i % FIT));
	}
	for (uintptr_t i = 0; i < FIT; i++) {
		m->stack[31] = 0xa000 + i;
		assert_int_equal(known(m), 200 + i);
	}
	unmake(m);
}

/* More trails than there is room for: it begins anew, and what it knows is right. */
static void
test_room_is_bounded(void **state)
{
	(void)state;
	struct made *m = make();
	unsigned begun = 0;
	for (uintptr_t i = 0; i < 5000; i++) {
		uint32_t before = m->memo->trails;
		m->at.parent = (plumb_id)i;
		m->stack[31] = m->trail.word[1] = 0x9000 + i;
		put(m, (plumb_id)(100 + i));
		plumb_id node = known(m);
		assert_true(!node || node == 100 + i);
		begun += m->memo->trails < before;
		assert_true(!begun || node);
		assert_true(m->memo->trails <= PLUMB_MEMO_INDEX / 2);
		assert_true(m->memo->used <= PLUMB_MEMO_WORDS);
	}
	assert_int_equal(begun, 4);
	/* Long ones fill the words first. */
	plumb_native_memo_clear(m->memo);
	m->trail.calls = PLUMB_STACK_TRAIL - 2;
	for (uint16_t i = 0; i < PLUMB_STACK_TRAIL; i++) {
		m->trail.at[i] = i;
		m->trail.word[i] = m->stack[i] - (i < m->trail.calls ? 0 : m->from.sp);
	}
	m->trail.reach = PLUMB_STACK_TRAIL * sizeof(uintptr_t);
	begun = 0;
	for (uintptr_t i = 0; i < 1000; i++) {
		uint32_t before = m->memo->trails;
		m->at.parent = (plumb_id)i;
		m->stack[3] = m->trail.word[3] = i;
		put(m, (plumb_id)(100 + i));
		assert_int_equal(known(m), 100 + i);
		begun += m->memo->trails < before;
		assert_true(m->memo->used <= PLUMB_MEMO_WORDS);
	}
	assert_true(begun >= 8);
	plumb_native_memo_clear(m->memo);
	assert_int_equal(known(m), 0);
	unmake(m);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_same_stack_is_known),
		cmocka_unit_test(test_a_stack_that_lies_elsewhere_is_known),
		cmocka_unit_test(test_whatever_a_walk_goes_by_has_to_be_the_same),
		cmocka_unit_test(test_without_a_stop_the_end_of_the_stack_counts),
		cmocka_unit_test(test_the_stack_has_to_reach_as_far),
		cmocka_unit_test(test_walks_without_a_trail_are_not_kept),
		cmocka_unit_test(test_parents_share_a_trail),
		cmocka_unit_test(test_many_sites_under_one_parent),
		cmocka_unit_test(test_room_is_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
