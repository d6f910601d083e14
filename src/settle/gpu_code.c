/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules of GPU code that samples met: rows of their functions, with machine code, references and
 * lines. A module's file lies in the run's folder (region/code.h). Nothing in it is trusted.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/regular.h"
#include "code/rows.h"
#include "region/code.h"
#include "settle/settle_private.h"

#define LARGEST ((size_t)1 << 30) /* file of a module */

/* A module's file, mapped. */
struct image {
	const void *bytes; /* NULL: none */
	size_t size;
	struct plumb_module *module; /* NULL: it cannot be read */
	uint32_t object;             /* row of its code object */
	unsigned char *done;         /* by number of a function: it was taken in, or will be */
};

/* ---- files ---- */

static void
map_image(struct image *image, const char *path)
{
	struct stat status;
	int fd = plumb_regular_open(AT_FDCWD, path, O_NOFOLLOW);
	void *bytes = MAP_FAILED;

	if (fd < 0)
		return;
	if (!fstat(fd, &status) && status.st_size > 0 && (uint64_t)status.st_size <= LARGEST)
		bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes != MAP_FAILED) {
		image->bytes = bytes;
		image->size = (size_t)status.st_size;
	}
	close(fd);
}

/* The image of the module that FUNCTION is in. */
static void
open_image(struct plumb_settler *settler, const struct plumb_settle_function *function,
           struct image *image)
{
	char path[4400], name[PLUMB_CODE_NAME];
	const char *folder =
		function->folder == PLUMB_NONE ? NULL : settler->runs.items[function->folder].path;
	struct plumb_error error = { 0 };

	*image = (struct image){ .object = UINT32_MAX };
	if (function->fate == PLUMB_FATE_ATTRIBUTED && folder &&
	    snprintf(path, sizeof path, "%s/%s", folder, plumb_code_name(function->module, name)) <
	            (int)sizeof path)
		map_image(image, path);
	if (!image->bytes)
		return;
	if (plumb_module_open(image->bytes, image->size, &image->module, &error)) {
		image->module = NULL;
		settler->no_memory |= error.code == PLUMB_ESYSTEM;
		return;
	}
	image->done = calloc(plumb_module_count(image->module) + 1ul, 1);
	settler->no_memory |= !image->done;
}

static void
add_object(struct plumb_settler *settler, struct image *image)
{
	struct plumb_code_file file = { image->bytes, image->size, PLUMB_NONE, PLUMB_NONE };

	image->object = plumb_code_object_row(settler->builder, &file);
}

static void
close_image(struct image *image)
{
	plumb_module_free(image->module);
	free(image->done);
	if (image->bytes)
		munmap((void *)(uintptr_t)image->bytes, image->size);
	*image = (struct image){ 0 };
}

/* ---- rows ---- */

/* The row of a function of which only the name is known. */
static void
add_unknown(struct plumb_settler *settler, const struct image *image,
            struct plumb_settle_function *function)
{
	struct plumb_code_function row = {
		.object = image->object,
		.name = function->name,
		.architecture = PLUMB_NONE,
		.is_kernel = 1,
		.bytes = PLUMB_UNKNOWN,
		.registers = PLUMB_UNKNOWN,
		.stack_bytes = PLUMB_UNKNOWN,
		.shared_bytes = PLUMB_UNKNOWN,
	};

	function->row = PLUMB_NONE;
	plumb_builder_row_near(settler->builder, PLUMB_TABLE_CODE_FUNCTIONS, &row, &function->row);
}

static void
count_function(struct plumb_settler *settler, uint32_t process, enum plumb_fate fate)
{
	struct plumb_builder *builder = settler->builder;

	plumb_builder_ledger(builder, process, PLUMB_SOURCE_CODE_FUNCTION, PLUMB_FATE_RECEIVED,
	                     PLUMB_NONE, 1);
	plumb_builder_ledger(builder, process, PLUMB_SOURCE_CODE_FUNCTION, PLUMB_FATE_ATTRIBUTED,
	                     PLUMB_NONE, 1);
	if (fate != PLUMB_FATE_ATTRIBUTED)
		plumb_builder_ledger(builder, process, PLUMB_SOURCE_CODE_FUNCTION, fate, PLUMB_NONE,
		                     1);
}

/* Takes the function NUMBER of the module in, with its code if that is to be KEPT, as long as LEFT
 * has room for it. */
static void
take_function(struct plumb_settler *settler, const struct image *image, uint32_t number,
              struct plumb_settle_function *function, bool kept, uint64_t *left)
{
	const struct plumb_module_function *seen = plumb_module_function(image->module, number);

	function->bytes = (int64_t)seen->bytes;
	if (kept && seen->bytes <= *left)
		settler->no_memory |= plumb_code_lines_read(settler->builder, image->module, number,
		                                            &function->lines) < 0;
	uint64_t need = plumb_code_needs(seen, &function->lines);
	bool fits = kept && need <= *left;
	plumb_code_function_row(settler->builder, image->object, image->module, number,
	                        fits ? &function->lines : NULL, &function->row);
	count_function(settler, function->process,
	               fits ? PLUMB_FATE_ATTRIBUTED : PLUMB_FATE_CODE_BOUND);
	if (!fits) {
		plumb_vec_free(&function->lines);
		return;
	}
	*left -= need;
}

/* Functions that CALLER calls, directly or not: their code is needed to follow its values. */
static void
take_called(struct plumb_settler *settler, const struct image *image, uint32_t number,
            const struct plumb_settle_function *caller, uint64_t *left)
{
	const struct plumb_module_function *seen = plumb_module_function(image->module, number);
	PLUMB_VEC(uint32_t) stack = { 0 };

	for (;;) {
		for (uint32_t i = 0; i < seen->reference_count; i++) {
			uint32_t next = plumb_module_find(image->module, seen->references[i].name);
			struct plumb_settle_function called = {
				.module = caller->module,
				.process = caller->process,
			};
			uint32_t *top;
			if (next >= plumb_module_count(image->module) || image->done[next])
				continue;
			image->done[next] = 1;
			called.name = plumb_builder_text(
				settler->builder, plumb_module_function(image->module, next)->name);
			take_function(settler, image, next, &called, true, left);
			plumb_vec_free(&called.lines);
			top = plumb_vec_add(&stack);
			if (top)
				*top = next;
			else
				settler->no_memory = true;
		}
		if (!stack.count)
			break;
		seen = plumb_module_function(image->module, stack.items[--stack.count]);
	}
	plumb_vec_free(&stack);
}

static uint32_t
number_of(const struct plumb_settler *settler, const struct image *image,
          const struct plumb_settle_function *function)
{
	const char *name = plumb_builder_get_text(settler->builder, function->name);

	return image->done ? plumb_module_find(image->module, name) : UINT32_MAX;
}

/* One function that was sampled, of an image that is open. */
static void
take_sampled(struct plumb_settler *settler, const struct image *image,
             struct plumb_settle_function *function, uint64_t *left)
{
	uint32_t number = number_of(settler, image, function);

	if (number != UINT32_MAX) {
		take_function(settler, image, number, function, function->kept, left);
		if (function->kept)
			take_called(settler, image, number, function, left);
		return;
	}
	function->bytes = PLUMB_UNKNOWN;
	if (function->fate == PLUMB_FATE_ATTRIBUTED)
		function->fate =
			image->module ? PLUMB_FATE_UNKNOWN_FUNCTION : PLUMB_FATE_UNREADABLE_CODE;
	add_unknown(settler, image, function);
	count_function(settler, function->process, function->fate);
}

/* ---- all of them ---- */

/* The functions from FROM on that are in one module: where the next module's begin. */
static uint32_t
end_of_module(const struct plumb_settle_function *functions, uint32_t from, uint32_t count)
{
	uint32_t to = from + 1;

	while (to < count && functions[to].module == functions[from].module &&
	       functions[to].fate == functions[from].fate)
		to++;
	return to;
}

/* The one with the most samples first. */
static int
by_count(const void *x, const void *y)
{
	const struct plumb_settle_function *const *a = x, *const *b = y;

	if ((*a)->count != (*b)->count)
		return (*a)->count > (*b)->count ? -1 : 1;
	return *a < *b ? -1 : *a > *b;
}

/* Which functions keep their code: those with the most samples, as long as there is room. */
static void
choose_kept(struct plumb_settler *settler, struct plumb_settle_function *functions, uint32_t count)
{
	struct plumb_settle_function **order = calloc(count + 1ul, sizeof *order);
	uint64_t left = PLUMB_CODE_KEPT;
	struct image image;

	settler->no_memory |= !order;
	for (uint32_t from = 0, to; order && from < count; from = to) {
		to = end_of_module(functions, from, count);
		open_image(settler, &functions[from], &image);
		for (uint32_t i = from; i < to; i++) {
			uint32_t number = number_of(settler, &image, &functions[i]);
			functions[i].bytes =
				number == UINT32_MAX
					? PLUMB_UNKNOWN
					: (int64_t)plumb_module_function(image.module, number)
						  ->bytes;
			order[i] = &functions[i];
		}
		close_image(&image);
	}
	if (order)
		qsort(order, count, sizeof *order, by_count);
	for (uint32_t i = 0; order && i < count; i++) {
		uint64_t need = order[i]->bytes == PLUMB_UNKNOWN ? 0 : (uint64_t)order[i]->bytes;
		order[i]->kept = need <= left;
		left -= order[i]->kept ? need : 0;
	}
	free(order);
}

void
plumb_settle_gpu_functions(struct plumb_settler *settler, struct plumb_settle_function *functions,
                           uint32_t count)
{
	uint64_t left = PLUMB_CODE_KEPT;
	struct image image;

	choose_kept(settler, functions, count);
	for (uint32_t from = 0, to; from < count && !settler->no_memory; from = to) {
		to = end_of_module(functions, from, count);
		open_image(settler, &functions[from], &image);
		add_object(settler, &image);
		for (uint32_t i = from; i < to && image.done; i++) {
			uint32_t number = number_of(settler, &image, &functions[i]);
			if (number != UINT32_MAX)
				image.done[number] = 1;
		}
		for (uint32_t i = from; i < to; i++)
			take_sampled(settler, &image, &functions[i], &left);
		close_image(&image);
	}
}
