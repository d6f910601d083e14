/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why kernels wait, as tables for a page that shows code: kernels, instructions, and lines of
 * source, of which it asks for the part that is visible.
 *
 * Instructions have numbers, counted through all functions of the kernel.
 */
#ifndef PLUMB_VIEW_WHY_CODE_H
#define PLUMB_VIEW_WHY_CODE_H

#include "view/render.h"
#include "view/why.h"

/* Reads source files; view itself reads none. */
struct plumb_why_reader {
	const char *(*line)(void *data, const char *file, uint32_t line); /* NULL: unknown */
	uint32_t (*count)(void *data, const char *file); /* of lines; 0: it cannot be read */
	void *data;
};

struct plumb_why_range {
	uint32_t first; /* the number of an instruction; of lines: the line */
	uint32_t count; /* at most so many; 0: all */
	bool hot;       /* of instructions: only those with samples */
	bool around;    /* instead of FIRST: around the one with most waiting */
	bool near;      /* of lines: text only near lines that code comes from */
};

/* Columns of samples, and their cells: all, waiting, hidden, and both by class. */
void plumb_why_heat_columns(struct plumb_answer *answer);
void plumb_why_heat_cells(struct plumb_answer *answer, const struct plumb_why_heat *heat);

/* The table `why.kernels`: a row for each kernel with code or samples, the greatest first. */
int plumb_view_why_kernels(const struct plumb_profile *profile, const struct plumb_why_query *query,
                           enum plumb_view_format format, FILE *out,
                           struct plumb_error *error) PLUMB_MUST_CHECK;

/* The tables `why.code`, a row for each instruction of the range, and `why.functions`. CSV has only
 * the first. */
int plumb_why_code_write(const struct plumb_why_kernel *kernel, const struct plumb_why_range *range,
                         enum plumb_view_format format, FILE *out,
                         struct plumb_error *error) PLUMB_MUST_CHECK;

/* The table `why.files`: source files that the kernel's code comes from, the one with most waiting
 * first. */
int plumb_why_files_write(const struct plumb_why_kernel *kernel,
                          const struct plumb_why_reader *reader, enum plumb_view_format format,
                          FILE *out, struct plumb_error *error) PLUMB_MUST_CHECK;

/* The table `why.source`: lines of FILE, a row of the table before. If the file cannot be read,
 * only those that code comes from. PLUMB_EUSAGE: there is no such file. */
int plumb_why_source_write(const struct plumb_why_kernel *kernel, uint32_t file,
                           const struct plumb_why_range *range,
                           const struct plumb_why_reader *reader, enum plumb_view_format format,
                           FILE *out, struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
