/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of this program, whose parts are laid by hand as compilers do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/stack/stack.h"

#if defined(__x86_64__)
#define RETURN "ret\n"
#define JUMP "jmp.d32 "
#define BRANCH "jz.d32 "
#elif defined(__aarch64__)
#define RETURN "ret\n"
#define JUMP "b "
#define BRANCH "b "
#endif

#ifdef RETURN
#define FUNCTION(name, code)                                                                       \
	".globl " #name "_start, " #name "_end\n" #name "_start: .cfi_startproc\n" code            \
	".cfi_endproc\n" #name "_end:\n"
#define NOPS "nop\nnop\nnop\nnop\n"

__asm__(".pushsection .text.cold_test,\"ax\",@progbits\n.balign 16\n"
        /* Split in two, and each part jumps into the other one's middle. */
        FUNCTION(hot, NOPS BRANCH "1f\nhot_back: " NOPS RETURN) FUNCTION(between, NOPS RETURN)
                FUNCTION(cold, NOPS "1: " NOPS JUMP "hot_back\n")
        /* Calls to other functions at their end, one of which calls back: no parts of it. */
        FUNCTION(calls, NOPS BRANCH "between_start\n" JUMP "callee_start\n")
                FUNCTION(callee, NOPS JUMP "calls_start\n")
        /* Leads into another one's middle, from where nothing leads back. */
        FUNCTION(lost, NOPS BRANCH "2f\n" RETURN)
                FUNCTION(sink, NOPS "2: " NOPS JUMP "lost_start\n")
        /* Jumps that lie within it, and one that leads nowhere. */
        FUNCTION(whole, "3: " NOPS BRANCH "3b\n" JUMP "4f\n" NOPS "4: " NOPS JUMP
                        "0f\n") "0: " NOPS ".popsection\n");

#define DECLARE(name) extern char name##_start[], name##_end[];
DECLARE(hot)
DECLARE(cold)
DECLARE(calls)
DECLARE(lost)
DECLARE(whole)

static uintptr_t start, end;
#define FIND(name)                                                                                 \
	(start = end = 0,                                                                          \
	 plumb_stack_cold_part((uintptr_t)name##_start, (uintptr_t)name##_end, &start, &end))

static void
test_parts(void **state)
{
	(void)state;
	assert_true(FIND(hot));
	assert_int_equal(start, (uintptr_t)cold_start);
	assert_int_equal(end, (uintptr_t)cold_end);
	assert_true(FIND(cold)); /* either is the other one's */
	assert_int_equal(start, (uintptr_t)hot_start);
}

static void
test_others_are_no_parts(void **state)
{
	(void)state;
	assert_false(FIND(calls));
	assert_false(FIND(lost));
	assert_false(FIND(whole));
	assert_int_equal(start, 0);
	/* Cut off in the middle of a jump, or nothing at all. */
	for (uintptr_t to = (uintptr_t)hot_start; to < (uintptr_t)hot_start + 8; to++)
		assert_false(plumb_stack_cold_part((uintptr_t)hot_start, to, &start, &end));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_others_are_no_parts),
	};

	uintptr_t unknown_start, unknown_end;
	if (plumb_stack_cold_part((uintptr_t)hot_start, (uintptr_t)hot_end, &unknown_start,
	                          &unknown_end) ||
	    !plumb_stack_prepare())
		return 1; /* nothing is known before */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int
main(void)
{
	return 0;
}
#endif
