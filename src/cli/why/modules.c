/* SPDX-License-Identifier: Apache-2.0 */
/* Machine code without samples as a profile: modules in a cubin, a fatbin, an executable or a
 * library. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sha256.h"
#include "cli/demangle.h"
#include "cli/why/why.h"
#include "isa/module.h"
#include "model/builder.h"

#define KERNELS_MOST 1024
#define TEXT_MOST ((uint64_t)256 << 20)
#define STEP 16 /* bytes of an instruction */
#define CHAIN_MOST 64

struct reader {
	struct plumb_builder *builder;
	const char *path;
	const struct plumb_why_choice *choice;
	uint32_t modules, other; /* other: of an architecture that is not wanted */
	uint32_t kernels, left, most;
	uint64_t bytes;
	struct plumb_error *error;
};

static bool
is_wanted(const struct reader *r, const char *name)
{
	char *shown;
	bool wanted;

	if (!r->choice->kernel || strstr(name, r->choice->kernel))
		return true;
	shown = plumb_demangle(name);
	wanted = shown && strstr(shown, r->choice->kernel);
	free(shown);
	return wanted;
}

/* Marks the functions of MODULE that FUNCTION refers to, and what these refer to. */
static void
mark_reached(const struct plumb_module *module, uint32_t function, unsigned char *marks,
             uint32_t *queue)
{
	uint32_t count = 0;

	if (!marks[function])
		queue[count++] = function;
	marks[function] = 1;
	for (uint32_t i = 0; i < count; i++) {
		const struct plumb_module_function *f = plumb_module_function(module, queue[i]);

		for (uint32_t n = 0; n < f->reference_count; n++) {
			uint32_t to = plumb_module_find(module, f->references[n].name);

			if (to == PLUMB_NONE || marks[to])
				continue;
			marks[to] = 1;
			queue[count++] = to;
		}
	}
}

/* ---- rows ---- */

static uint32_t
add_object(const struct reader *r, const void *bytes, size_t size, uint32_t number)
{
	unsigned char digest[PLUMB_SHA256_BYTES];
	char hash[2 * PLUMB_SHA256_BYTES + 1], path[1024];
	struct plumb_code_object object = { .process = PLUMB_NONE,
		                            .build_id = PLUMB_NONE,
		                            .bytes = (int64_t)size };

	plumb_sha256(bytes, size, digest);
	for (size_t i = 0; i < sizeof digest; i++)
		snprintf(hash + 2 * i, 3, "%02x", digest[i]);
	snprintf(path, sizeof path, "%s#%" PRIu32, r->path, number);
	object.kind = plumb_builder_text(r->builder, "cubin");
	object.path = plumb_builder_text(r->builder, path);
	object.hash = plumb_builder_text(r->builder, hash);
	return plumb_builder_row(r->builder, PLUMB_TABLE_CODE_OBJECTS, &object) ? PLUMB_NONE
	                                                                        : number;
}

static bool
is_same_chain(const struct plumb_gpu_line *a, uint32_t a_count, const struct plumb_gpu_line *b,
              uint32_t b_count)
{
	for (uint32_t i = 0; i < a_count && i < b_count; i++)
		if (a[i].line != b[i].line || a[i].file != b[i].file ||
		    a[i].function != b[i].function)
			return false;
	return a_count == b_count;
}

static void
add_lines(const struct reader *r, const struct plumb_module *module, uint32_t function,
          uint32_t row)
{
	const struct plumb_module_function *f = plumb_module_function(module, function);
	struct plumb_gpu_line chains[2][CHAIN_MOST];
	uint32_t counts[2] = { 0 }, now = 0;

	for (size_t offset = 0; offset < f->bytes; offset += STEP) {
		const struct plumb_gpu_line *chain = chains[now];

		counts[now] = plumb_module_lines(module, function, offset, chains[now], CHAIN_MOST);
		if (is_same_chain(chain, counts[now], chains[!now], counts[!now]))
			continue;
		for (uint32_t i = 0; i < counts[now]; i++) {
			struct plumb_code_line line = {
				.function = row,
				.depth = i,
				.offset = (int64_t)offset,
				.file = plumb_builder_text(r->builder, chain[i].file),
				.line = chain[i].line,
				.inlined = plumb_builder_text(r->builder, chain[i].function),
			};
			plumb_builder_code_line(r->builder, &line);
		}
		now = !now;
	}
}

static void
add_function(struct reader *r, const struct plumb_module *module, uint32_t function,
             uint32_t object, uint32_t *row)
{
	const struct plumb_module_function *f = plumb_module_function(module, function);
	struct plumb_code_function added = {
		.object = object,
		.name = plumb_builder_text(r->builder, f->name),
		.architecture = plumb_builder_text(r->builder, plumb_module_architecture(module)),
		.is_kernel = f->is_kernel,
		.bytes = (int64_t)f->bytes,
		.registers = f->registers < 0 ? PLUMB_UNKNOWN : f->registers,
		.stack_bytes = f->stack_bytes < 0 ? PLUMB_UNKNOWN : f->stack_bytes,
		.shared_bytes = f->shared_bytes < 0 ? PLUMB_UNKNOWN : f->shared_bytes,
		.text = { f->text, f->bytes },
	};

	if (f->bytes > (size_t)PLUMB_BLOB_MOST)
		added.text = (struct plumb_blob){ NULL, 0 };
	if (plumb_builder_code_function(r->builder, &added))
		return; /* there is one of this name already */
	for (uint32_t i = 0; i < f->reference_count; i++) {
		struct plumb_code_reference reference = {
			.function = *row,
			.name = plumb_builder_text(r->builder, f->references[i].name),
			.offset = f->references[i].offset,
		};
		plumb_builder_code_reference(r->builder, &reference);
	}
	add_lines(r, module, function, *row);
	r->bytes += f->bytes;
	++*row;
}

/* ---- modules ---- */

static int
add_module(struct reader *r, const struct plumb_module *module, const void *bytes, size_t size,
           uint32_t *row, uint32_t *objects)
{
	uint32_t count = plumb_module_count(module), object = PLUMB_NONE;
	unsigned char *marks = calloc(count + 1u, 1);
	uint32_t *queue = calloc(count + 1u, sizeof *queue);

	if (!marks || !queue) {
		free(marks);
		free(queue);
		return plumb_fail_memory(r->error, "to read %s", r->path);
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct plumb_module_function *f = plumb_module_function(module, i);

		if (!f->is_kernel || !is_wanted(r, f->name))
			continue;
		if (r->kernels == r->most || r->bytes > TEXT_MOST) {
			r->left++;
			continue;
		}
		r->kernels++;
		r->bytes += f->bytes;
		mark_reached(module, i, marks, queue);
	}
	for (uint32_t i = 0; i < count; i++) {
		if (!marks[i])
			continue;
		if (object == PLUMB_NONE)
			object = add_object(r, bytes, size, (*objects)++);
		if (object != PLUMB_NONE)
			add_function(r, module, i, object, row);
	}
	free(marks);
	free(queue);
	return 0;
}

struct reading {
	struct reader reader;
	uint32_t row, objects;
};

static int
read_module(void *own, const void *bytes, size_t size)
{
	struct reading *reading = own;
	struct reader *r = &reading->reader;
	struct plumb_module *module;
	const char *architecture;
	int code = plumb_module_open(bytes, size, &module, r->error);

	if (code == PLUMB_EINPUT) /* the others may be good */
		return 0;
	if (code)
		return code;
	architecture = plumb_module_architecture(module);
	r->modules++;
	if (r->choice->architecture && architecture &&
	    strcmp(r->choice->architecture, architecture))
		r->other++;
	else
		code = add_module(r, module, bytes, size, &reading->row, &reading->objects);
	plumb_module_free(module);
	return code;
}

static int
say_nothing_found(const struct reader *r, struct plumb_error *error)
{
	if (!r->modules)
		return plumb_fail(
			error, PLUMB_EINPUT,
			"%s has GPU code, but none that plumb can read: it may be damaged",
			r->path);
	if (r->other == r->modules)
		return plumb_fail(error, PLUMB_EEMPTY,
		                  "%s has no code for %s; leave out --arch to see what it has",
		                  r->path, r->choice->architecture);
	if (r->choice->kernel)
		return plumb_fail(error, PLUMB_EEMPTY, "%s has no kernel with \"%s\" in its name",
		                  r->path, r->choice->kernel);
	return plumb_fail(error, PLUMB_EEMPTY, "%s has GPU code, but no kernel", r->path);
}

static int
read_all(struct reading *reading, const void *bytes, size_t size, struct plumb_profile *profile,
         struct plumb_error *error)
{
	struct reader *r = &reading->reader;
	int code = plumb_modules_in(bytes, size, read_module, reading, error);

	if (code)
		return plumb_fail_in(error, "%s", r->path);
	if (!r->kernels)
		return say_nothing_found(r, error);
	return plumb_builder_finish(r->builder, profile, error);
}

/* The file PATH in memory, until munmap. */
static int
map_file(const char *path, void **bytes, size_t *size, struct plumb_error *error)
{
	struct stat about;
	int file = open(path, O_RDONLY | O_CLOEXEC);

	if (file < 0)
		return errno == ENOENT ? plumb_fail(error, PLUMB_EINPUT, "%s does not exist", path)
		                       : plumb_fail_errno(error, "%s cannot be read", path);
	if (fstat(file, &about) < 0 || !S_ISREG(about.st_mode) || !about.st_size) {
		close(file);
		return plumb_fail(error, PLUMB_EINPUT,
		                  "%s is %s; --static takes a cubin, a fatbin, "
		                  "an executable or a library",
		                  path, S_ISREG(about.st_mode) ? "empty" : "not a file");
	}
	*size = (size_t)about.st_size;
	*bytes = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, file, 0);
	close(file);
	return *bytes == MAP_FAILED ? plumb_fail_errno(error, "%s cannot be read", path) : 0;
}

int
plumb_why_read_code(const char *path, const struct plumb_why_choice *choice,
                    struct plumb_profile *profile, uint32_t *left, struct plumb_error *error)
{
	struct reading reading = { .reader = { .path = path, .choice = choice, .error = error } };
	void *bytes;
	size_t size = 0;
	int code = map_file(path, &bytes, &size, error);

	*left = 0;
	if (code)
		return code;
	reading.reader.most = KERNELS_MOST;
	if (choice->kernels && choice->kernels < KERNELS_MOST)
		reading.reader.most = choice->kernels;
	reading.reader.builder = plumb_builder_new();
	if (reading.reader.builder)
		code = read_all(&reading, bytes, size, profile, error);
	else
		code = plumb_fail_memory(error, "to read %s", path);
	*left = reading.reader.left;
	plumb_builder_free(reading.reader.builder);
	munmap(bytes, size);
	return code;
}
