/* SPDX-License-Identifier: Apache-2.0 */
/* What `plumb run` reads of a waiting thread: counts of /proc, line tables, memory of a process. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "watch/asleep.h"
#include "watch/foreign.h"
#include "watch/foreign_python.h"
#include "watch/python_lines.h"

/* ---- counts ---- */

static void
test_states(void **unused)
{
	(void)unused;
	assert_true(plumb_asleep_in_stat("12 (python3) S 1 12 12 0"));
	assert_true(plumb_asleep_in_stat("12 (a) R (b) D 1 12"));
	assert_false(plumb_asleep_in_stat("12 (a) S (b) R 1 12"));
	assert_false(plumb_asleep_in_stat("12 (python3) T 1"));
	assert_false(plumb_asleep_in_stat("12 (pyth"));
	assert_false(plumb_asleep_in_stat("12 (python3)"));
	assert_false(plumb_asleep_in_stat(""));
}

static void
test_counts(void **unused)
{
	struct plumb_asleep_counts counts;
	(void)unused;
	assert_true(plumb_asleep_in_schedstat("99017477 112193029 76\n", &counts));
	assert_int_equal(counts.runs, 76);
	assert_int_equal(counts.awake, 99017477 + 112193029);
	assert_true(counts.timed);
	/* A kernel that keeps none. */
	assert_false(plumb_asleep_in_schedstat("0 0 0\n", &counts));
	assert_false(plumb_asleep_in_schedstat("", &counts));
	assert_true(plumb_asleep_in_status("Name:\tx\nvoluntary_ctxt_switches:\t41\n"
	                                   "nonvoluntary_ctxt_switches:\t7\n",
	                                   &counts));
	assert_int_equal(counts.runs, 49);
	assert_false(counts.timed);
	assert_false(plumb_asleep_in_status("Name:\tvoluntary_ctxt_switches:\t41\n", &counts));
}

static void
test_own_counts_grow(void **unused)
{
	struct plumb_asleep_counts before, after;
	uint32_t pid = (uint32_t)getpid();
	(void)unused;
	assert_true(plumb_asleep_count(pid, pid, &before));
	usleep(1000);
	assert_true(plumb_asleep_count(pid, pid, &after));
	assert_true(after.runs > before.runs);
	assert_false(plumb_asleep(pid, pid)); /* it runs, to ask */
	assert_false(plumb_asleep_count(pid, UINT32_MAX / 2, &after));
}

/* ---- line tables ---- */

static void
test_steps(void **unused)
{
	/* 6 bytes of the first line, 50 of 3 more, then 2 back; 300 lines at once in steps of
	 * 127. */
	static const unsigned char table[] = { 6, 3, 50, 0xfe, 4, 127, 0, 127, 0, 46 };
	(void)unused;
	assert_int_equal(plumb_python_line(9, table, sizeof table, 10, 0), 10);
	assert_int_equal(plumb_python_line(9, table, sizeof table, 10, 5), 10);
	assert_int_equal(plumb_python_line(9, table, sizeof table, 10, 6), 13);
	assert_int_equal(plumb_python_line(9, table, sizeof table, 10, 56), 11);
	assert_int_equal(plumb_python_line(9, table, sizeof table, 10, 60), 311);
	assert_int_equal(plumb_python_line(9, table, 0, 10, 60), 10);
}

static void
test_ranges(void **unused)
{
	static const unsigned char table[] = { 6, 1, 4, 0x80, 8, 2 };
	(void)unused;
	assert_int_equal(plumb_python_line(10, table, sizeof table, 20, -1), 20);
	assert_int_equal(plumb_python_line(10, table, sizeof table, 20, 0), 21);
	assert_int_equal(plumb_python_line(10, table, sizeof table, 20, 6), 0);
	assert_int_equal(plumb_python_line(10, table, sizeof table, 20, 10), 23);
	assert_int_equal(plumb_python_line(10, table, sizeof table, 20, 18), 0); /* beyond */
	assert_int_equal(plumb_python_line(10, table, 5, 20, 10), 0);            /* cut off */
}

static void
test_locations(void **unused)
{
	static const unsigned char table[] = {
		0x80 | 10 << 3 | 0, 5,      9,          /* one unit, same line */
		0x80 | 14 << 3 | 1, 64 | 8, 4, 0, 1, 1, /* two units, 132 lines on */
		0x80 | 13 << 3 | 0, 7,                  /* one unit, 3 lines back */
		0x80 | 15 << 3 | 7,                     /* eight units without a line */
		0x80 | 3 << 3 | 0,  0x21,               /* one unit, short */
	};
	(void)unused;
	assert_int_equal(plumb_python_line(11, table, sizeof table, 5, 0), 5);
	assert_int_equal(plumb_python_line(11, table, sizeof table, 5, 2), 137);
	assert_int_equal(plumb_python_line(11, table, sizeof table, 5, 5), 137);
	assert_int_equal(plumb_python_line(11, table, sizeof table, 5, 6), 134);
	assert_int_equal(plumb_python_line(13, table, sizeof table, 5, 8), 0);
	assert_int_equal(plumb_python_line(13, table, sizeof table, 5, 24), 134);
	assert_int_equal(plumb_python_line(13, table, sizeof table, 5, 26), 0);
}

/* Whatever a table holds, it is read no further than it goes, and gives a line or none. */
static void
test_any_table(void **unused)
{
	(void)unused;
	srand(1);
	for (int round = 0; round < 20000; round++) {
		size_t bytes = (size_t)rand() % 40;
		unsigned char *table = malloc(bytes + 1); /* exact, for sanitizers */
		assert_non_null(table);
		for (size_t i = 0; i < bytes; i++)
			table[i] = (unsigned char)(rand() >> 7);
		for (int minor = 9; minor <= 14; minor++)
			assert_true(plumb_python_line(minor, table, bytes, rand(),
			                              rand() % 400 - 2) <= INT32_MAX);
		free(table);
	}
}

/* ---- memory ---- */

static struct plumb_foreign memory;

static void
test_reads_over_pages_and_not_over_holes(void **unused)
{
	enum { SIZE = 4 * PLUMB_FOREIGN_PAGE };
	static char out[SIZE];
	(void)unused;
	char *area = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(area != MAP_FAILED);
	for (int i = 0; i < SIZE; i++)
		area[i] = (char)(i * 7 / 3);
	munmap(area + 2 * PLUMB_FOREIGN_PAGE, PLUMB_FOREIGN_PAGE);
	plumb_foreign_open(&memory, (uint32_t)getpid());
	uint64_t at = (uintptr_t)area;
	assert_true(plumb_foreign_read(&memory, at + 4000, out, 4000));
	assert_memory_equal(out, area + 4000, 4000);
	assert_true(plumb_foreign_read(&memory, at, out, 2 * PLUMB_FOREIGN_PAGE));
	assert_memory_equal(out, area, 2 * PLUMB_FOREIGN_PAGE);
	assert_false(plumb_foreign_read(&memory, at + 2 * PLUMB_FOREIGN_PAGE - 4, out, 8));
	assert_int_equal(memory.error, EFAULT);
	assert_false(plumb_foreign_read(&memory, at + 4, out, 2 * PLUMB_FOREIGN_PAGE));
	assert_false(plumb_foreign_read(&memory, 0, out, 1));
	assert_false(plumb_foreign_read(&memory, UINT64_MAX - 3, out, 8));
	/* What was read is kept until the next open. */
	area[0] = 'a';
	assert_true(plumb_foreign_read(&memory, at, out, 1) && out[0] != 'a');
	plumb_foreign_open(&memory, (uint32_t)getpid());
	assert_true(plumb_foreign_read(&memory, at, out, 1) && out[0] == 'a');
	munmap(area, SIZE);
}

/* ---- walks ---- */

/* An interpreter of 3.12's shape in our own memory: two thread states, an evaluation, two
 * frames. */
static struct {
	uint64_t state[40], other[40];
	uint64_t cframe[2], root[2]; /* frame, outer */
	uint64_t frame[2][10];
	uint64_t code[40];
	uint64_t type;
} fake;

static const struct plumb_region_python shape = {
	.minor = 12,
	.thread_id = 136,
	.entry = 56,
	.indirect = 0,
	.previous = 8,
	.code = 0,
	.instruction = 56,
	.owner = 70,
	.owner_internal = 3,
	.owner_generator = 1,
	.first_instruction = 192,
	.traceable = 176,
	.type = 8,
};

static uint64_t
address(const void *at)
{
	return (uintptr_t)at;
}

static bool
walks(struct plumb_foreign_walk *walk, uint64_t self)
{
	struct plumb_region_python python = shape;
	python.code_type = address(&fake.type);
	plumb_foreign_open(&memory, (uint32_t)getpid());
	return plumb_foreign_python_walk(&memory, &python, address(fake.state), self, walk);
}

static int
build(void **unused)
{
	(void)unused;
	memset(&fake, 0, sizeof fake);
	fake.state[136 / 8] = 4711;
	fake.state[1] = address(fake.other);
	fake.other[0] = address(fake.state);
	fake.state[56 / 8] = address(fake.cframe);
	fake.cframe[0] = address(fake.frame[0]);
	fake.cframe[1] = address(fake.root);
	fake.code[1] = address(&fake.type);
	for (int i = 0; i < 2; i++) {
		fake.frame[i][0] = address(fake.code);
		fake.frame[i][1] = i ? 0 : address(fake.frame[1]);
		fake.frame[i][7] = address(fake.code) + 192 + 6 + 10 * (unsigned)i;
	}
	return 0;
}

static void
test_a_walk_is_proved(void **unused)
{
	static struct plumb_foreign_walk walk;
	(void)unused;
	assert_true(walks(&walk, 4711));
	assert_int_equal(walk.count, 2);
	assert_int_equal(walk.frames[0].code, address(fake.code));
	assert_int_equal(walk.frames[0].lasti, 6);
	assert_int_equal(walk.frames[1].lasti, 16);
	assert_false(walk.truncated);

	assert_false(walks(&walk, 4712)); /* made again for another thread */
	fake.other[0] = 0;                /* taken out of the list */
	assert_false(walks(&walk, 4711));
	build(NULL);
	fake.root[0] = address(fake.code); /* an evaluation that the frames do not come by */
	assert_false(walks(&walk, 4711));
	build(NULL);
	fake.root[0] = address(fake.frame[1]);
	assert_true(walks(&walk, 4711));
	fake.frame[1][1] = address(fake.frame[0]); /* a ring */
	assert_false(walks(&walk, 4711) && !walk.truncated);
	build(NULL);
	fake.frame[0][0] = 8; /* no code there */
	assert_false(walks(&walk, 4711));
	build(NULL);
	fake.frame[1][1] = 12345;
	assert_false(walks(&walk, 4711));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_own_counts_grow),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_locations),
		cmocka_unit_test(test_any_table),
		cmocka_unit_test(test_reads_over_pages_and_not_over_holes),
		cmocka_unit_test_setup(test_a_walk_is_proved, build),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
