/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine code of a profile's kernels with their samples, as the slicer (slice/slice.h) takes
 * it.
 *
 *	struct plumb_kernels kernels;
 *	if (plumb_kernels_find(profile, &kernels, &error) < 0) …
 *	for (uint32_t k = 0; k < kernels.count; k++) {
 *		struct plumb_kernel_code code;
 *		if (plumb_kernel_code_load(&kernels, k, &code, &error) < 0) …
 *		if (!code.problem) … plumb_slice_make(&code.input, &slice, &error) …
 *		plumb_kernel_code_free(&code);
 *	}
 *	plumb_kernels_free(&kernels);
 *
 * Functions with the same code in several processes are one function here. A function that several
 * kernels call gives each of them a part of its samples, by the samples of the kernels themselves:
 * an estimate. Samples of a known launch go to its kernel.
 */
#ifndef PLUMB_ANALYZE_KERNEL_CODE_H
#define PLUMB_ANALYZE_KERNEL_CODE_H

#include "analyze/slice/slice.h"
#include "base/map.h"
#include "model/profile.h"

enum plumb_sampling {
	PLUMB_SAMPLING_NONE, /* there are no samples: only the code is known */
	PLUMB_SAMPLING_CONTINUOUS,
	PLUMB_SAMPLING_SERIALISED, /* each sample belongs to a launch */
};
extern const char *const plumb_sampling_names[3]; /* "static", "continuous", "serialised" */

/* A function that a kernel may execute, and which part of its samples is the kernel's: of each
 * count c it is c * (before + own) / all - c * before / all. */
struct plumb_kernel_part {
	uint32_t function; /* code function, the first with this code */
	uint64_t before, own, all;
};

struct plumb_kernel {
	uint32_t function;               /* code function, the first with this code */
	struct plumb_kernel_part *parts; /* itself, then what it calls */
	uint32_t part_count;
	bool is_estimate; /* one of its functions has other callers too */
	/* Samples that the collector could not place, and that are taken for those of the functions
	 * that it calls, because these have none. They count in SAMPLES and WAITING. */
	uint64_t unplaced;
	uint8_t sampling; /* enum plumb_sampling */
	uint64_t samples; /* all, also where a warp issued */
	uint64_t waiting; /* of these, where it waited and no other warp issued */
	uint64_t hidden;  /* likewise, but another warp issued */
	uint64_t own;     /* samples of its own function, without what it calls */
	uint32_t device;  /* with samples of it; PLUMB_NONE: none, unknown, or several */
	uint32_t devices; /* how many have */
	int64_t gpu_ns;   /* of its launches; PLUMB_UNKNOWN */
	uint32_t context; /* where most of that is; PLUMB_NONE */
};

struct plumb_kernels {
	const struct plumb_profile *profile;
	struct plumb_kernel *items; /* those with the most GPU time first, then with most samples */
	uint32_t count;
	/* private */
	uint32_t *first, *next; /* by code function: the first and the next one with its code */
	struct plumb_map by_name;
};

/* The kernels that have code or samples in the profile. None is no error. PLUMB_ESYSTEM: no
 * memory. */
int plumb_kernels_find(const struct plumb_profile *profile, struct plumb_kernels *kernels,
                       struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_kernels_free(struct plumb_kernels *kernels);

/* Samples of one instruction, for one reason. */
struct plumb_kernel_sample {
	uint32_t function; /* index in the input */
	uint32_t insn;     /* PLUMB_NONE: it lies in no instruction */
	int64_t offset;
	uint16_t reason; /* enum plumb_stall_reason */
	bool issued;
	uint64_t count;
};

struct plumb_kernel_code {
	const struct plumb_profile *profile;
	const struct plumb_kernel *kernel;
	struct plumb_slice_input input; /* without functions if there is a PROBLEM */
	struct plumb_slice_function *functions;
	struct plumb_insns *insns; /* by the input's function */
	uint32_t **lines;
	uint32_t *rows;                      /* by the input's function: its code function */
	uint32_t function_count;             /* at least 1 */
	struct plumb_kernel_sample *samples; /* by function, offset, reason */
	uint32_t sample_count;
	double launch_ns;      /* mean of the launches that INPUT has; NAN: unknown */
	uint64_t outside;      /* samples that lie in no instruction */
	uint32_t without_text; /* functions that it calls, but whose code is not known */
	uint32_t unknown;      /* instructions that the decoder does not know */
	const char *words[PLUMB_REASON_COUNT]; /* the vendor's, of the samples; NULL: none has it */
	/* Why there are no instructions: one line, with the remedy. NULL: there are. */
	char *problem;
};

/* PLUMB_ESYSTEM: no memory. Whatever is wrong with the code is the problem of CODE. */
int
plumb_kernel_code_load(const struct plumb_kernels *kernels, uint32_t kernel,
                       struct plumb_kernel_code *code, struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_kernel_code_free(struct plumb_kernel_code *code);

/* The vendor's word for REASON, as the samples have it, else NVIDIA's. */
const char *
plumb_kernel_reason_word(const struct plumb_kernel_code *code, enum plumb_stall_reason reason);

/* The samples of one instruction: *COUNT of them. */
const struct plumb_kernel_sample *
plumb_kernel_samples_at(const struct plumb_kernel_code *code, uint32_t function, uint32_t insn,
                        uint32_t *count);

/* The lines of the instruction at OFFSET of the code function ROW: innermost first, then those of
 * the calls that were inlined. They are rows of code_lines, without holes; *COUNT of them. NULL:
 * none is known. */
const struct plumb_code_line *plumb_code_lines_at(const struct plumb_profile *profile, uint32_t row,
                                                  int64_t offset, uint32_t *count);

/* Of COUNT LINES of an instruction, the number of the innermost that is in no header of a library,
 * as those of CUDA are. Your code is there. 0: all are in libraries. */
uint32_t plumb_code_own_line(const struct plumb_profile *profile,
                             const struct plumb_code_line *lines, uint32_t count);

/* The part of COUNT samples of a function that PART has. */
uint64_t plumb_kernel_part_of(const struct plumb_kernel_part *part, uint64_t count);
/* The kernel's part of SAMPLE, which is of the function PART. 0: it is another kernel's. */
uint64_t
plumb_kernel_has(const struct plumb_kernels *kernels, const struct plumb_kernel *kernel,
                 const struct plumb_kernel_part *part, const struct plumb_code_sample *sample);
/* The first row of code_samples of the code function ROW or of one behind it. */
uint32_t plumb_code_first_sample(const struct plumb_profile *profile, uint32_t row);
/* More samples than this in one row are taken for this many. */
#define PLUMB_KERNEL_COUNT_MOST (UINT64_C(1) << 36)

#endif
