/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of plumb why: reading code, printing answers. */
#ifndef PLUMB_CLI_WHY_WHY_H
#define PLUMB_CLI_WHY_WHY_H

#include "cli/cli.h"
#include "view/why.h"

/* What of a file of code is wanted. */
struct plumb_why_choice {
	const char *kernel;       /* part of a name; NULL: all */
	const char *architecture; /* "sm_90"; NULL: all */
	uint32_t kernels;         /* at most so many; 0: as many as there is room for */
};

/* Makes the profile of the code in the file PATH, without samples: the kernels that are wanted with
 * the functions that they call. *LEFT: so many more kernels match. The
 * errors are those of plumb_modules_in. */
int plumb_why_read_code(const char *path, const struct plumb_why_choice *choice,
                        struct plumb_profile *profile, uint32_t *left,
                        struct plumb_error *error) PLUMB_MUST_CHECK;

/* For people: of each kernel the TOP kinds of stalls; 0: all. Negative: no memory. */
int plumb_why_print(const struct plumb_why *why, const char *path, uint32_t top, FILE *out);

/* The listing of each kernel. Negative: no memory. */
int plumb_why_print_listing(const struct plumb_invocation *invocation, const struct plumb_why *why,
                            FILE *out);

/* What a report for a language model has. */
enum plumb_why_prompt {
	PLUMB_PROMPT_CODE,
	PLUMB_PROMPT_STALLS, /* code and stalls */
	PLUMB_PROMPT_CAUSES, /* code, stalls and causes */
};
void plumb_why_print_prompt(const struct plumb_why *why, enum plumb_why_prompt what, FILE *out);

/* How often which cause made warps wait, by iteration or rank. */
int plumb_why_print_groups(const struct plumb_why *why, const struct plumb_why_kernel *kernel,
                           FILE *out);

/* The instructions of a function by nvdisasm: TEXTS[i] is that at offset 16 * i, malloced as the
 * array is. *COUNT of them. NULL: it cannot be had; WHY is one line that says why. */
char **plumb_why_disassemble(const char *architecture, const void *text, uint64_t bytes,
                             uint32_t *count, struct plumb_error *why);
void plumb_why_free_texts(char **texts, uint32_t count);

#endif
