/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reasons of stalls: the words of all vendors, and plumb's classes. CUPTI's words have a prefix and
 * some a suffix, rocprofiler's are in capitals, Intel's end in "Stall".
 */
#include <ctype.h>

#include "analyze/slice/slice_private.h"

#define R(word, reason, class, meaning)                                                            \
	{ word, PLUMB_REASON_##reason, PLUMB_STALL_##class, meaning }

/* Letters and digits alone are compared, without case. The first row of a reason has its class. */
static const struct plumb_stall_reason_info reasons[] = {
	R("selected", SELECTED, NONE, "for nothing: it issued"),
	R("not_selected", NOT_SELECTED, NONE, "while the scheduler chose another warp"),
	R("long_scoreboard", LONG, MEMORY, "for data from global, local or texture memory"),
	R("short_scoreboard", SHORT, SHARED,
	  "for data from shared memory, or for a unit with a variable time"),
	R("wait", FIXED, EXECUTION, "a fixed number of cycles, for the result of arithmetic"),
	R("barrier", BARRIER, BARRIER, "at a barrier, for other warps of its block"),
	R("membar", MEMBAR, FLUSH, "at a memory barrier, for its stores"),
	R("drain", DRAIN, FLUSH, "at its end, for its stores"),
	R("lg_throttle", LOCAL_GLOBAL_THROTTLE, THROTTLE,
	  "because the queue for global and local memory was full"),
	R("mio_throttle", SHARED_THROTTLE, THROTTLE,
	  "because the queue for shared memory and special functions was full"),
	R("tex_throttle", TEXTURE_THROTTLE, THROTTLE, "because the queue for textures was full"),
	R("math_pipe_throttle", MATH_THROTTLE, THROTTLE, "because its arithmetic unit was busy"),
	R("dispatch_stall", DISPATCH, OTHER, "because the dispatcher held it back"),
	R("no_instructions", NO_INSTRUCTIONS, FETCH, "for its next instruction"),
	R("branch_resolving", BRANCH, FETCH, "for the target of a branch"),
	R("imc_miss", CONSTANT, FETCH, "for a constant that was not in its cache"),
	R("warpgroup_arrive", TENSOR_GROUP, SHARED, "for the matrix units"),
	R("gmma", TENSOR_GROUP, SHARED, "for the matrix units"),
	R("sleeping", SLEEP, OTHER, "because it slept"),
	R("misc", OTHER, OTHER, "for something else"),
	R("other", OTHER, OTHER, "for something else"),
	/* CUPTI's activity records */
	R("inst_fetch", NO_INSTRUCTIONS, FETCH, "for its next instruction"),
	R("exec_dependency", FIXED, EXECUTION, "for the result of arithmetic"),
	R("memory_dependency", LONG, MEMORY, "for data from memory"),
	R("texture", TEXTURE_THROTTLE, THROTTLE, "because the queue for textures was full"),
	R("sync", BARRIER, BARRIER, "at a barrier, for other warps of its block"),
	R("constant_memory_dependency", CONSTANT, FETCH,
	  "for a constant that was not in its cache"),
	R("pipe_busy", MATH_THROTTLE, THROTTLE, "because its arithmetic unit was busy"),
	R("memory_throttle", LOCAL_GLOBAL_THROTTLE, THROTTLE,
	  "because the queue for memory was full"),
	/* HPCToolkit, of all vendors. Without a word a warp issued: nobody knows which. */
	R("gmem", LONG, MEMORY, "for data from global memory"),
	R("mem", COUNTER, MEMORY, "for data from memory"),
	R("idep", FIXED, EXECUTION, "for the result of arithmetic"),
	R("cmem", CONSTANT, FETCH, "for a constant that was not in its cache"),
	R("ifet", NO_INSTRUCTIONS, FETCH, "for its next instruction"),
	R("tmem", TEXTURE_THROTTLE, THROTTLE, "because the queue for textures was full"),
	R("mthr", LOCAL_GLOBAL_THROTTLE, THROTTLE, "because the queue for memory was full"),
	R("slp", SLEEP, OTHER, "because it slept"),
	R("othr", OTHER, OTHER, "for something else"),
	R("isu", SELECTED, NONE, "for nothing: it issued"),
	R("nsel", NOT_SELECTED, NONE, "while the scheduler chose another warp"),
	R("", NOT_SELECTED, NONE, "while a warp issued"),
	/* AMD */
	R("none", SELECTED, NONE, "for nothing: it issued"),
	R("no_instruction_available", NO_INSTRUCTIONS, FETCH, "for its next instruction"),
	R("alu_dependency", FIXED, EXECUTION, "for the result of arithmetic"),
	R("waitcnt", COUNTER, MEMORY, "for a counter of outstanding accesses"),
	R("internal_instruction", DISPATCH, OTHER, "for an instruction of the hardware's own"),
	R("barrier_wait", BARRIER, BARRIER, "at a barrier, for other warps of its block"),
	R("arbiter_not_win", NOT_SELECTED, NONE, "while the scheduler chose another wave"),
	R("arbiter_win_ex_stall", MATH_THROTTLE, THROTTLE, "because its unit was busy"),
	R("other_wait", OTHER, OTHER, "for something else"),
	R("sleep_wait", SLEEP, OTHER, "because it slept"),
	/* Intel */
	R("active", SELECTED, NONE, "for nothing: it issued"),
	R("control", BRANCH, FETCH, "for the target of a branch"),
	R("pipe", MATH_THROTTLE, THROTTLE, "because its arithmetic unit was busy"),
	R("send", SHARED_THROTTLE, THROTTLE, "because the unit that sends messages was busy"),
	R("dist", FIXED, EXECUTION, "for the result of an earlier instruction of a pipe"),
	R("sbid", COUNTER, MEMORY, "for a token: mostly memory, else a matrix unit"),
	R("instrfetch", NO_INSTRUCTIONS, FETCH, "for its next instruction"),
	R("insfetch", NO_INSTRUCTIONS, FETCH, "for its next instruction"),
};

#define COUNT (sizeof reasons / sizeof *reasons)

/* The letters and digits of WORD in small letters, without what vendors put around it. */
static void
plain(const char *word, char *to, size_t size)
{
	static const char *const prefixes[] = { "smsppcsampwarpsissuestalled",
		                                "smsppcsamp",
		                                "warpsissuestalled",
		                                "issuestalled",
		                                "cuptiactivitypcsamplingstall",
		                                "rocprofilerpcsamplinginstructionnotissuedreason",
		                                "stalled",
		                                "stall" };
	static const char *const suffixes[] = { "notissued", "stall" };
	size_t n = 0;

	for (; *word && n + 1 < size; word++)
		if (isalnum((unsigned char)*word))
			to[n++] = (char)tolower((unsigned char)*word);
	to[n] = '\0';
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
		size_t length = strlen(prefixes[i]);

		if (n > length && !strncmp(to, prefixes[i], length)) {
			memmove(to, to + length, n - length + 1);
			n -= length;
			break;
		}
	}
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		size_t length = strlen(suffixes[i]);

		if (n > length && !strcmp(to + n - length, suffixes[i])) {
			n -= length;
			to[n] = '\0';
		}
	}
}

const struct plumb_stall_reason_info *
plumb_stall_reason_find(const char *word)
{
	static const struct plumb_stall_reason_info unknown =
		R("other", OTHER, OTHER, "for something else");
	char wanted[128], other[128];

	plain(word, wanted, sizeof wanted);
	for (size_t i = 0; i < COUNT; i++) {
		plain(reasons[i].word, other, sizeof other);
		if (!strcmp(wanted, other))
			return &reasons[i];
	}
	return &unknown;
}

enum plumb_stall_class
plumb_slice_reason_class(unsigned reason)
{
	for (size_t i = 0; i < COUNT; i++)
		if (reasons[i].reason == reason)
			return reasons[i].class;
	return PLUMB_STALL_OTHER;
}
