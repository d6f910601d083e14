/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why kernels wait: the stalls of each kernel, with the instructions that caused them.
 *
 *	struct plumb_why why;
 *	if (plumb_why_make(profile, &query, &why, &error) < 0) …
 *	… why.kernels[k].stalls[s].from->causes[c] …
 *	plumb_why_free(&why);
 *
 * The same answers for code without samples (plumb why --static): a profile that has only code.
 */
#ifndef PLUMB_VIEW_WHY_H
#define PLUMB_VIEW_WHY_H

#include "analyze/kernel_causes.h"
#include "base/json.h"

enum plumb_why_by {
	PLUMB_WHY_BY_NOTHING,
	PLUMB_WHY_BY_ITERATION, /* samples with launches only */
	PLUMB_WHY_BY_RANK,
};

struct plumb_why_query {
	const char *kernel; /* part of a name, mangled or not; NULL: all kernels */
	/* Only stalls at this line of source, and those that it causes; NULL: all. FILE is a path
	 * or its end. */
	const char *file;
	uint32_t line;
	uint32_t kernels; /* at most so many; 0: all */
	uint32_t top;     /* stalls of each; 0: all */
	enum plumb_why_by by;
	bool listing; /* with all instructions */
	bool one;     /* only number NUMBER of plumb_kernels_find */
	uint32_t number;
	char *(*demangle)(const char *name); /* malloced, or NULL; may be NULL */
};

#define PLUMB_WHY_AT_LINE 1
#define PLUMB_WHY_BY_LINE 2

struct plumb_why_stall {
	const struct plumb_stall *from; /* with its causes; NULL: none are known */
	uint32_t number;                /* of FROM in the slice */
	uint32_t function;              /* index in the kernel's code */
	uint32_t insn;                  /* PLUMB_NONE: it lies in no instruction */
	int64_t offset;
	uint16_t reason; /* enum plumb_stall_reason */
	uint8_t class;   /* enum plumb_stall_class */
	uint8_t matches; /* of the query's line: PLUMB_WHY_… */
	uint64_t samples, hidden;
};

/* What a group of samples (an iteration, a rank) has of each of the kernel's causes. */
struct plumb_why_group {
	int64_t number; /* of the iteration, or the rank */
	int64_t pid;    /* of the process, if it has no rank; else PLUMB_UNKNOWN */
	uint64_t waiting;
	double *samples; /* by the kernel's cause */
};

struct plumb_why_kernel {
	const struct plumb_kernel *kernel;
	char *name; /* demangled, if that is possible */
	struct plumb_kernel_code code;
	struct plumb_sliced slice;         /* empty if the code has a problem */
	struct plumb_kernel_causes causes; /* likewise */
	uint64_t waiting;                  /* exposed samples of stalls; cycles without samples */
	struct plumb_why_stall *stalls;    /* most samples first */
	uint32_t stall_count, stalls_left; /* …_left: the query does not want them */
	struct plumb_why_group *groups;
	uint32_t group_count;
};

struct plumb_why {
	const struct plumb_profile *profile;
	struct plumb_why_query query;
	struct plumb_kernels found;
	struct plumb_why_kernel *kernels;
	uint32_t count, left; /* left: other kernels that match */
	uint64_t samples;     /* of the profile */
	double gpu_ns;        /* of all kernels; 0: unknown */
};

/* PLUMB_EEMPTY: the profile has neither samples nor code, or nothing that the query asks for; the
 * message says what to do. PLUMB_EUSAGE: --by cannot be answered. PLUMB_ESYSTEM: no memory. */
int plumb_why_make(const struct plumb_profile *profile, const struct plumb_why_query *query,
                   struct plumb_why *why, struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_why_free(struct plumb_why *why);

/* The kernel's cause in one sentence: "62 % of the waiting is for the load at softmax.cu:41". It
 * writes to TEXT of SIZE bytes and returns it. */
#define PLUMB_WHY_SENTENCE 1200
char *plumb_why_sentence(const struct plumb_why_kernel *kernel, char *text, size_t size);
/* PART of the kernel's GPU time; PLUMB_UNKNOWN. */
int64_t plumb_why_saving(const struct plumb_why_kernel *kernel, double part);
/* The part of all GPU time of kernels, or of all samples, that the kernel has. NAN: unknown. */
double plumb_why_share(const struct plumb_why *why, const struct plumb_why_kernel *kernel);

/* ---- pieces ---- */

/* Stalls of one line with one reason and one first cause, which text puts together. */
struct plumb_why_kind {
	uint32_t stall;           /* the one with most samples: its number in the kernel's stalls */
	uint32_t more;            /* others */
	uint64_t samples, hidden; /* of all */
};
/* Most samples first. Malloced, and *COUNT of them; NULL: no memory. */
struct plumb_why_kind *plumb_why_kinds(const struct plumb_why_kernel *kernel, uint32_t *count);

/* What the instructions of a line access, or are. */
struct plumb_why_access {
	struct plumb_slice_place place; /* the first of them */
	uint8_t class, space, width;
	uint32_t count; /* of instructions */
};
/* Accesses to memory, exchanges and barriers of the kernel's code, by line. Malloced, and *COUNT
 * of them; NULL: no memory. */
struct plumb_why_access *plumb_why_accesses(const struct plumb_why_kernel *kernel, uint32_t *count);

/* Samples of one instruction. */
struct plumb_why_heat {
	uint64_t all, waiting, hidden;
	uint64_t by_class[PLUMB_STALL_CLASS_COUNT]; /* all of them, exposed or hidden */
	uint64_t exposed[PLUMB_STALL_CLASS_COUNT];  /* of these */
};
struct plumb_why_heat
plumb_why_heat(const struct plumb_why_kernel *kernel, uint32_t function, uint32_t insn);

/* The number of an instruction, counted through all functions of the kernel. */
uint32_t plumb_why_number(const struct plumb_kernel_code *code, uint32_t function, uint32_t insn);
/* The name of the code function ROW as QUERY wants it. Malloced; NULL: no memory. */
char *plumb_why_name(const struct plumb_profile *profile, const struct plumb_why_query *query,
                     uint32_t row);
/* The instruction as assembly by plumb's own decoder. Returns TEXT. */
#define PLUMB_WHY_ASSEMBLY 256
const char *plumb_why_assembly(const struct plumb_kernel_code *code, struct plumb_slice_place place,
                               char text[PLUMB_WHY_ASSEMBLY]);

/* "register", "counter", …; "global", "shared", …. NULL: there is no such number. */
const char *plumb_why_via_name(unsigned via);
const char *plumb_why_space_name(unsigned space);

int plumb_why_find_groups(struct plumb_why *why, struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_why_json(const struct plumb_why *why, struct plumb_json *json);
void plumb_why_listing_json(const struct plumb_why_kernel *kernel, struct plumb_json *json);
void plumb_why_place_json(const struct plumb_kernel_code *code, uint32_t function, int64_t offset,
                          struct plumb_json *json);

#endif
