/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The causes of a kernel's stalls put together, by source line, and in words.
 *
 *	struct plumb_kernel_causes causes;
 *	if (plumb_kernel_causes_make(&code, &slice, &causes, &error) < 0) …
 *	plumb_kernel_causes_free(&causes);
 */
#ifndef PLUMB_ANALYZE_KERNEL_CAUSES_H
#define PLUMB_ANALYZE_KERNEL_CAUSES_H

#include "analyze/kernel_code.h"

/* What has one named cause (else one kind), one line and one sort of instruction; without a line,
 * one instruction. */
struct plumb_kernel_cause {
	uint32_t stall, cause; /* its greatest part: slice.stalls[STALL].causes[CAUSE] */
	uint64_t samples;      /* of all stalls: exposed ones */
	/* The same with what the hardware cannot tell apart from it. */
	uint64_t together;
	uint32_t stalls; /* in so many */
	/* Part of the kernel's time that goes at most if the cause goes, but no more than memory
	 * allows; NAN: unknown. What the hardware cannot tell apart from it counts as its own. */
	double saving;
	double saving_line;        /* of all causes at its line */
	double saving_fewer_bytes; /* the same without what memory allows; NAN: as much */
	double confidence;         /* mean by samples */
	uint32_t number;           /* private */
};

/* What memory allows. The bytes are known only of kernels that stream: warp_bytes of slice.h. */
struct plumb_kernel_memory {
	double rate, peak; /* bytes a second: of the kernel, of the GPU; NAN: unknown */
	double part;       /* of the peak */
	/* Part of the kernel's time that can be saved while it moves the same bytes: kernels do not
	 * get more than nine tenths of the peak. NAN: unknown. */
	double headroom;
};
/* From this part of the peak on, memory is saturated. */
#define PLUMB_MEMORY_SATURATED 0.75

struct plumb_kernel_causes {
	struct plumb_kernel_memory memory;
	struct plumb_kernel_cause *items; /* most samples together first */
	uint32_t count;
	uint64_t waiting; /* exposed samples of all stalls */
	/* Cause C of stall S of the slice is part of items[of[first[S] + C]]; of a stall without
	 * waiting, of[…] is PLUMB_NONE. */
	uint32_t *first, *of;
};

/* SAVING of the kernel's time, or as much as memory allows. */
double plumb_kernel_saving(const struct plumb_kernel_causes *causes, double saving);

int plumb_kernel_causes_make(const struct plumb_kernel_code *code, const struct plumb_sliced *slice,
                             struct plumb_kernel_causes *causes,
                             struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_kernel_causes_free(struct plumb_kernel_causes *causes);

/* The cause to name first: the one with most samples together. What plumb cannot explain comes
 * first only if nothing else has a fifth of the waiting. NULL: there is no cause. */
const struct plumb_kernel_cause *plumb_kernel_causes_lead(const struct plumb_kernel_causes *causes,
                                                          const struct plumb_sliced *slice);

extern const char *const plumb_stall_class_names[PLUMB_STALL_CLASS_COUNT];

/* ---- words; all write to TEXT of SIZE bytes and return it ---- */

#define PLUMB_PLACE_SIZE 256

/* "softmax.cu:41"; without a line "+0x1d0", of a called function "+0x1d0 of helper". */
char *plumb_kernel_place(const struct plumb_kernel_code *code, struct plumb_slice_place place,
                         char *text, size_t size);
/* "the load at softmax.cu:41" */
char *plumb_kernel_cause_noun(const struct plumb_kernel_code *code,
                              const struct plumb_stall_cause *cause, char *text, size_t size);
/* What warps wait for: "for the load at softmax.cu:41", "for one of the load at … and the load at …
 * (the hardware does not show which)", "at the barrier for the warps that come last: …". */
char *
plumb_kernel_cause_sentence(const struct plumb_kernel_code *code, const struct plumb_stall *stall,
                            uint32_t cause, char *text, size_t size);

/* The innermost line of an instruction, with file and number; NULL: it is not known. */
const struct plumb_code_line *
plumb_kernel_line(const struct plumb_kernel_code *code, struct plumb_slice_place place);
static inline const struct plumb_insn *
plumb_kernel_insn(const struct plumb_kernel_code *code, struct plumb_slice_place place)
{
	return &code->insns[place.function].items[place.insn];
}
/* "load", "load of a spilled register", "barrier", … */
const char *plumb_insn_noun(const struct plumb_insn *insn);

#endif
