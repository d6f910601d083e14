/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compilers lay what they take for rarely executed apart from its function: the symbol's size
 * leaves that part out, its own symbol is local and stripped, and in the unwind tables it is a
 * function like any other. What tells it is that no function jumps into the middle of another one:
 * the part is where direct jumps out of the function lead, and where jumps lead back into the
 * function's middle.
 *
 * On x86-64, where instructions have any length, bytes that only look like a jump are met too. Such
 * a one leads into a given function once in many millions, and there would have to be one each way.
 */
#include <string.h>

#include "collect/stack/stack.h"

#if defined(__aarch64__)
enum { STEP = 4 };
#else
enum { STEP = 1 };
#endif

/* Where the direct jump at AT, before END, leads; 0: there is none. */
static uintptr_t
jump_at(uintptr_t at, uintptr_t end)
{
#if defined(__x86_64__)
	const uint8_t *code = (const uint8_t *)at;
	size_t opcode = code[0] == 0x0f ? 2 : 1;
	int32_t distance;

	if (end - at < opcode + sizeof distance ||
	    (opcode == 2 ? (code[1] & 0xf0) != 0x80 : code[0] != 0xe9))
		return 0;
	memcpy(&distance, code + opcode, sizeof distance);
	return at + opcode + sizeof distance + (uintptr_t)(intptr_t)distance;
#elif defined(__aarch64__)
	uint32_t word;

	if (end - at < sizeof word)
		return 0;
	memcpy(&word, (const void *)at, sizeof word);
	if (word >> 26 != 5) /* b; conditional ones do not reach so far */
		return 0;
	return at + (uintptr_t)(intptr_t)((int32_t)(word << 6) >> 4);
#else
	(void)at, (void)end;
	return 0;
#endif
}

/* Whether code from START to END jumps between LOW and HIGH, but not to LOW itself, where it may
 * call. */
static bool
jumps_into(uintptr_t start, uintptr_t end, uintptr_t low, uintptr_t high)
{
	for (uintptr_t at = start; at < end; at += STEP) {
		uintptr_t to = jump_at(at, end);
		if (to > low && to < high)
			return true;
	}
	return false;
}

bool
plumb_stack_cold_part(uintptr_t start, uintptr_t end, uintptr_t *cold_start, uintptr_t *cold_end)
{
	for (uintptr_t at = start; at < end; at += STEP) {
		uintptr_t to = jump_at(at, end), low, high;
		if (!to || (to >= start && to < end) || !plumb_stack_function(to, &low, &high) ||
		    to == low || (low < end && high > start) || !jumps_into(low, high, start, end))
			continue;
		*cold_start = low;
		*cold_end = high;
		return true;
	}
	return false;
}
