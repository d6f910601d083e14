/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line table of a module of GPU code: from an offset in a function to its line of source, and
 * to the calls that were inlined there.
 *
 *	struct plumb_gpu_lines *lines = plumb_gpu_lines_new(&sections);
 *	for (uint32_t f = 0; (name = plumb_gpu_lines_function(lines, f, &first)); f++)
 *		count = plumb_gpu_lines_at(lines, f, offset, chain, MAX);
 *	plumb_gpu_lines_free(lines);
 *
 * The sections may hold anything. What cannot be read is left out.
 */
#ifndef PLUMB_ISA_LINES_H
#define PLUMB_ISA_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The order is that of plumb_record_gpu_lines. The last section may be empty; it has the names of
 * inlined functions. */
enum plumb_gpu_section {
	PLUMB_GPU_LINES,       /* .debug_line */
	PLUMB_GPU_RELOCATIONS, /* .rela.debug_line, or .rel.debug_line */
	PLUMB_GPU_SYMBOLS,     /* .symtab */
	PLUMB_GPU_NAMES,       /* .strtab */
	PLUMB_GPU_STRINGS,     /* .debug_str */
	PLUMB_GPU_SECTIONS,
};

/* Sections of the module's ELF image, as they are there. */
struct plumb_gpu_sections {
	const char *bytes[PLUMB_GPU_SECTIONS];
	uint32_t size[PLUMB_GPU_SECTIONS];
	bool short_relocations; /* .rel.debug_line, which compilers write for GPUs before Hopper */
};

struct plumb_gpu_line {
	const char *file;     /* NULL: unknown */
	const char *function; /* inlined, with its mangled name; NULL: not inlined, or unknown */
	uint32_t line;        /* 0: unknown */
};

struct plumb_gpu_lines;

/* SECTIONS' bytes must outlive the result, and so must the result its texts. NULL: no memory. */
struct plumb_gpu_lines *plumb_gpu_lines_new(const struct plumb_gpu_sections *sections);
void plumb_gpu_lines_free(struct plumb_gpu_lines *lines);

/* The mangled name of function INDEX, and the line of its first instruction. NULL: there are no
 * more. */
const char *plumb_gpu_lines_function(const struct plumb_gpu_lines *lines, uint32_t index,
                                     struct plumb_gpu_line *first);

/* The line of the instruction at OFFSET (bytes) in function INDEX, then the line of the call that
 * inlined it, and so on: innermost first. Returns how many, at most MAX; 0: unknown. */
uint32_t plumb_gpu_lines_at(const struct plumb_gpu_lines *lines, uint32_t index, uint64_t offset,
                            struct plumb_gpu_line *chain, uint32_t max);

#endif
