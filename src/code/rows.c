/* SPDX-License-Identifier: Apache-2.0 */
#include "code/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "base/vec.h"

#define LINE_BYTES 32u /* what a row of lines counts as */
#define STEP 8u        /* bytes of an instruction, at least: 16 since Volta */
#define CHAIN 16u      /* of calls that were inlined at one place */

uint32_t
plumb_code_object_row(struct plumb_builder *builder, const struct plumb_code_file *file)
{
	unsigned char digest[PLUMB_SHA256_BYTES];
	char hash[2 * PLUMB_SHA256_BYTES + 1];
	uint32_t row = PLUMB_NONE;
	struct plumb_code_object object = {
		.process = file->process,
		.kind = plumb_builder_text(builder, "cubin"),
		.path = file->path,
		.build_id = PLUMB_NONE,
		.hash = PLUMB_NONE,
		.bytes = PLUMB_UNKNOWN,
	};

	if (file->bytes) {
		plumb_sha256(file->bytes, file->size, digest);
		for (int i = 0; i < PLUMB_SHA256_BYTES; i++)
			snprintf(hash + 2 * (size_t)i, 3, "%02x", digest[i]);
		object.hash = plumb_builder_text(builder, hash);
		object.bytes = (int64_t)file->size;
	}
	if (plumb_builder_row_near(builder, PLUMB_TABLE_CODE_OBJECTS, &object, &row))
		return PLUMB_NONE;
	return row;
}

/* ---- lines ---- */

/* Texts of a module have one address each. */
static bool
is_same_chain(const struct plumb_gpu_line *a, uint32_t a_count, const struct plumb_gpu_line *b,
              uint32_t b_count)
{
	for (uint32_t i = 0; i < a_count && a_count == b_count; i++)
		if (a[i].line != b[i].line || a[i].file != b[i].file ||
		    a[i].function != b[i].function)
			return false;
	return a_count == b_count;
}

static bool
add_line(struct plumb_builder *builder, struct plumb_code_lines *lines, uint64_t offset,
         uint32_t depth, const struct plumb_gpu_line *line)
{
	struct plumb_code_line *row = plumb_vec_add(lines);

	if (!row)
		return false;
	*row = (struct plumb_code_line){
		.depth = depth,
		.offset = (int64_t)offset,
		.file = plumb_builder_text(builder, line->file),
		.line = line->line,
		.inlined = plumb_builder_text(builder, line->function),
	};
	return true;
}

int
plumb_code_lines_read(struct plumb_builder *builder, const struct plumb_module *module,
                      uint32_t number, struct plumb_code_lines *lines)
{
	static const struct plumb_gpu_line unknown;
	struct plumb_gpu_line before[CHAIN], chain[CHAIN];
	uint64_t bytes = plumb_module_function(module, number)->bytes;
	uint32_t had = 0;

	for (uint64_t offset = 0; offset < bytes; offset += STEP) {
		uint32_t count = plumb_module_lines(module, number, offset, chain, CHAIN);

		if (is_same_chain(chain, count, before, had))
			continue;
		for (uint32_t i = 0; i < count; i++)
			if (!add_line(builder, lines, offset, i, &chain[i]))
				return PLUMB_ESYSTEM;
		/* What has no line ends what had one. */
		if (!count && !add_line(builder, lines, offset, 0, &unknown))
			return PLUMB_ESYSTEM;
		memcpy(before, chain, sizeof chain);
		had = count;
	}
	return 0;
}

/* ---- functions ---- */

uint64_t
plumb_code_needs(const struct plumb_module_function *function, const struct plumb_code_lines *lines)
{
	return function->bytes + (uint64_t)lines->count * LINE_BYTES;
}

static int64_t
known(int64_t number)
{
	return number < 0 ? PLUMB_UNKNOWN : number;
}

static int
add_references(struct plumb_builder *builder, const struct plumb_module_function *seen,
               uint32_t row)
{
	int code = 0;

	for (uint32_t i = 0; !code && i < seen->reference_count; i++) {
		struct plumb_code_reference reference = {
			.function = row,
			.name = plumb_builder_text(builder, seen->references[i].name),
			.offset = seen->references[i].offset,
		};

		if (reference.name != PLUMB_NONE)
			code = plumb_builder_code_reference(builder, &reference);
	}
	return code;
}

int
plumb_code_function_row(struct plumb_builder *builder, uint32_t object,
                        const struct plumb_module *module, uint32_t number,
                        const struct plumb_code_lines *lines, uint32_t *row)
{
	const struct plumb_module_function *seen = plumb_module_function(module, number);
	uint32_t before = plumb_builder_code_functions(builder);
	struct plumb_code_function function = {
		.object = object,
		.name = plumb_builder_text(builder, seen->name),
		.architecture = plumb_builder_text(builder, plumb_module_architecture(module)),
		.is_kernel = seen->is_kernel,
		.bytes = (int64_t)seen->bytes,
		.registers = known(seen->registers),
		.stack_bytes = known(seen->stack_bytes),
		.shared_bytes = known(seen->shared_bytes),
	};
	int code;

	if (lines && seen->bytes <= (uint64_t)PLUMB_BLOB_MOST)
		function.text = (struct plumb_blob){ seen->text, seen->bytes };
	*row = PLUMB_NONE;
	code = plumb_builder_row_near(builder, PLUMB_TABLE_CODE_FUNCTIONS, &function, row);
	if (code || !lines || *row < before) /* there are rows of it, of the same content */
		return code;
	code = add_references(builder, seen, *row);
	for (uint32_t i = 0; !code && i < lines->count; i++) {
		struct plumb_code_line line = lines->items[i];

		line.function = *row;
		code = plumb_builder_code_line(builder, &line);
	}
	return code;
}

/* ---- functions that are asked for ---- */

struct plumb_code_rows {
	struct plumb_builder *builder;
	const struct plumb_module *module;
	uint32_t process, object;
	uint64_t *left;
	uint32_t *functions;      /* code function by the module's number */
	unsigned char *begun;     /* by the module's number */
	PLUMB_VEC(uint32_t) todo; /* begun, and without a row */
};

struct plumb_code_rows *
plumb_code_rows_new(struct plumb_builder *builder, const struct plumb_module *module,
                    const struct plumb_code_file *file, uint64_t *left)
{
	struct plumb_code_rows *rows = calloc(1, sizeof *rows);
	uint32_t count = plumb_module_count(module);

	if (!rows)
		return NULL;
	rows->builder = builder;
	rows->module = module;
	rows->process = file->process;
	rows->left = left;
	rows->functions = calloc(count + 1ul, sizeof *rows->functions);
	rows->begun = calloc(count + 1ul, 1);
	rows->object = plumb_code_object_row(builder, file);
	if (rows->functions && rows->begun && rows->object != PLUMB_NONE)
		return rows;
	plumb_code_rows_free(rows);
	return NULL;
}

void
plumb_code_rows_free(struct plumb_code_rows *rows)
{
	if (!rows)
		return;
	plumb_vec_free(&rows->todo);
	free(rows->functions);
	free(rows->begun);
	free(rows);
}

/* Function NUMBER gets a row, if there is such a function. */
static bool
begin_function(struct plumb_code_rows *rows, uint32_t number)
{
	if (number >= plumb_module_count(rows->module) || rows->begun[number])
		return true;
	uint32_t *todo = plumb_vec_add(&rows->todo);
	if (!todo)
		return false;
	*todo = number;
	rows->begun[number] = 1;
	return true;
}

static bool
add_function(struct plumb_code_rows *rows, uint32_t number)
{
	const struct plumb_module_function *seen = plumb_module_function(rows->module, number);
	struct plumb_code_lines lines = { 0 };
	int code = 0;

	if (seen->bytes <= *rows->left)
		code = plumb_code_lines_read(rows->builder, rows->module, number, &lines);
	uint64_t needs = plumb_code_needs(seen, &lines);
	uint32_t before = plumb_builder_code_functions(rows->builder);
	bool fits = needs <= *rows->left;
	if (!code)
		code = plumb_code_function_row(rows->builder, rows->object, rows->module, number,
		                               fits ? &lines : NULL, &rows->functions[number]);
	plumb_vec_free(&lines);
	if (code || rows->functions[number] < before)
		return !code;
	*rows->left -= fits ? needs : 0;
	plumb_builder_ledger(rows->builder, rows->process, PLUMB_SOURCE_CODE_FUNCTION,
	                     PLUMB_FATE_RECEIVED, PLUMB_NONE, 1);
	plumb_builder_ledger(rows->builder, rows->process, PLUMB_SOURCE_CODE_FUNCTION,
	                     PLUMB_FATE_ATTRIBUTED, PLUMB_NONE, 1);
	if (!fits)
		plumb_builder_ledger(rows->builder, rows->process, PLUMB_SOURCE_CODE_FUNCTION,
		                     PLUMB_FATE_CODE_BOUND, PLUMB_NONE, 1);
	return true;
}

uint32_t
plumb_code_rows_function(struct plumb_code_rows *rows, uint32_t number)
{
	bool fine = begin_function(rows, number);

	while (fine && rows->todo.count) {
		uint32_t next = rows->todo.items[--rows->todo.count];
		const struct plumb_module_function *seen =
			plumb_module_function(rows->module, next);

		fine = add_function(rows, next);
		for (uint32_t i = 0; fine && i < seen->reference_count; i++)
			fine = begin_function(
				rows, plumb_module_find(rows->module, seen->references[i].name));
	}
	return fine ? rows->functions[number] : PLUMB_NONE;
}
