/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A module of GPU code as rows of a profile: code_objects, code_functions, code_references and
 * code_lines. Settle and import fill them in the same way.
 *
 *	uint32_t object = plumb_code_object_row(builder, &file);
 *	plumb_code_lines_read(builder, module, number, &lines);
 *	plumb_code_function_row(builder, object, module, number, &lines, &row);
 *
 * Or, if it is enough that the functions which are asked for get rows, and those that they call:
 *
 *	struct plumb_code_rows *rows = plumb_code_rows_new(builder, module, &file, &left);
 *	sample.function = plumb_code_rows_function(rows, number);
 *	plumb_code_rows_free(rows);
 */
#ifndef PLUMB_CODE_ROWS_H
#define PLUMB_CODE_ROWS_H

#include "isa/module.h"
#include "model/builder.h"

/* So much machine code and lines does a profile keep. */
#define PLUMB_CODE_KEPT ((uint64_t)20 << 20)

/* A module's file, and what the profile says of it. */
struct plumb_code_file {
	const void *bytes; /* NULL: it is not there, or cannot be read */
	size_t size;
	uint32_t process; /* PLUMB_NONE: of several, or unknown */
	uint32_t path;    /* string, or PLUMB_NONE */
};

/* The code object. PLUMB_NONE: no memory. */
uint32_t plumb_code_object_row(struct plumb_builder *builder, const struct plumb_code_file *file);

/* As base/vec.h has them. */
struct plumb_code_lines {
	struct plumb_code_line *items;
	uint32_t count, capacity;
};

/* The lines of all instructions of a function: a row where they change, without its function.
 * PLUMB_ESYSTEM: no memory. */
int plumb_code_lines_read(struct plumb_builder *builder, const struct plumb_module *module,
                          uint32_t number, struct plumb_code_lines *lines);

/* How much of PLUMB_CODE_KEPT a function takes. */
uint64_t plumb_code_needs(const struct plumb_module_function *function,
                          const struct plumb_code_lines *lines);

/* The code function, with its references and LINES if they are not there yet. LINES NULL: without
 * these and without its machine code. ROW becomes its number. */
int plumb_code_function_row(struct plumb_builder *builder, uint32_t object,
                            const struct plumb_module *module, uint32_t number,
                            const struct plumb_code_lines *lines, uint32_t *row);

/* ---- functions that are asked for ---- */

struct plumb_code_rows;

/* LEFT: of PLUMB_CODE_KEPT, for all modules. MODULE, FILE's bytes and LEFT must outlive the rows.
 * NULL: no memory. */
struct plumb_code_rows *
plumb_code_rows_new(struct plumb_builder *builder, const struct plumb_module *module,
                    const struct plumb_code_file *file, uint64_t *left);
void plumb_code_rows_free(struct plumb_code_rows *rows);

/* The code function of the module's function NUMBER. PLUMB_NONE: no memory. */
uint32_t plumb_code_rows_function(struct plumb_code_rows *rows, uint32_t number);

#endif
