/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Line tables of GPU code: inlined.cubin is nvcc's of inlined.cu, scaled_add.cubin is Triton's.
 * What is expected of offsets is what readelf --debug-dump=decodedline shows of them.
 */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "isa/lines.h"

/* The compiler runs in the repository's root. */
#define INCLUDE_FILE(name, path)                                                                   \
	__asm__(".pushsection .rodata\n.balign 8\n" #name ":\n.incbin \"" path "\"\n.popsection"); \
	extern const char name[]
INCLUDE_FILE(inlined_cubin, "tests/e2e/programs/inlined.cubin");
INCLUDE_FILE(scaled_add_cubin, "tests/e2e/programs/scaled_add.cubin");

static const char *const names[PLUMB_GPU_SECTIONS] = { ".debug_line", ".rela.debug_line", ".symtab",
	                                               ".strtab", ".debug_str" };

static struct plumb_gpu_sections
find_sections(const char *image)
{
	const Elf64_Ehdr *head = (const void *)image;
	const Elf64_Shdr *headers = (const void *)(image + head->e_shoff);
	struct plumb_gpu_sections found = { 0 };

	for (int i = 0; i < head->e_shnum; i++) {
		const char *own = image + headers[head->e_shstrndx].sh_offset + headers[i].sh_name;
		for (int k = 0; k < PLUMB_GPU_SECTIONS; k++)
			if (!strcmp(own, names[k]) || (k == 1 && !strcmp(own, ".rel.debug_line"))) {
				found.bytes[k] = image + headers[i].sh_offset;
				found.size[k] = (uint32_t)headers[i].sh_size;
				if (k == 1)
					found.short_relocations = headers[i].sh_type == SHT_REL;
			}
	}
	return found;
}

static struct plumb_gpu_lines *
open_lines(const char *image)
{
	struct plumb_gpu_sections sections = find_sections(image);
	struct plumb_gpu_lines *lines = plumb_gpu_lines_new(&sections);

	assert_non_null(lines);
	return lines;
}

static uint32_t
function_named(const struct plumb_gpu_lines *lines, const char *name, uint32_t first_line)
{
	struct plumb_gpu_line first;
	const char *own;

	for (uint32_t f = 0; (own = plumb_gpu_lines_function(lines, f, &first)); f++)
		if (!strcmp(own, name)) {
			assert_int_equal(first.line, first_line);
			assert_null(first.function);
			return f;
		}
	fail_msg("no function %s", name);
	return 0;
}

static void
check_chain(const struct plumb_gpu_lines *lines, uint32_t function, uint64_t offset,
            const char *file, uint32_t count, const struct plumb_gpu_line *expected)
{
	struct plumb_gpu_line chain[8];

	assert_int_equal(plumb_gpu_lines_at(lines, function, offset, chain, 8), count);
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(chain[i].line, expected[i].line);
		assert_string_equal(chain[i].file, file);
		if (expected[i].function)
			assert_string_equal(chain[i].function, expected[i].function);
		else
			assert_null(chain[i].function);
	}
	/* As much as there is room for. */
	assert_int_equal(plumb_gpu_lines_at(lines, function, offset, chain, 1), count ? 1 : 0);
}

#define CHECK(lines, function, offset, file, ...)                                                  \
	check_chain(lines, function, offset, file,                                                 \
	            sizeof((struct plumb_gpu_line[]){ __VA_ARGS__ }) /                             \
	                    sizeof(struct plumb_gpu_line),                                         \
	            (struct plumb_gpu_line[]){ __VA_ARGS__ })
#define CALL(number) { .line = (number) }
#define INLINED(name, number) { .line = (number), .function = (name) }

static void
test_inlined_calls(void **state)
{
	static const char file[] = "/home/u/inlined.cu";
	static const char norm[] = "_Z4normff", square[] = "_Z6squaref";
	struct plumb_gpu_lines *lines = open_lines(inlined_cubin);
	uint32_t nested = function_named(lines, "nested", 17),
		 twice = function_named(lines, "twice", 22),
		 plain = function_named(lines, "plain", 13);
	(void)state;

	CHECK(lines, nested, 0, file, CALL(17));
	CHECK(lines, nested, 0x1f, file, CALL(18));
	CHECK(lines, nested, 0x70, file, INLINED(norm, 10), CALL(19));
	CHECK(lines, nested, 0x80, file, INLINED(square, 4), INLINED(norm, 9), CALL(19));
	CHECK(lines, nested, 0x90, file, INLINED(norm, 10), CALL(19));
	CHECK(lines, nested, 0x3ff, file, CALL(20));
	CHECK(lines, twice, 0x50, file, CALL(23));
	CHECK(lines, twice, 0x60, file, INLINED(square, 4), INLINED(norm, 9), CALL(23));
	CHECK(lines, twice, 0x130, file, CALL(23));
	CHECK(lines, plain, 0x20, file, CALL(14));
	struct plumb_gpu_line line;
	assert_int_equal(plumb_gpu_lines_at(lines, plain, 0x180, &line, 1), 0);
	assert_int_equal(plumb_gpu_lines_at(lines, plain, UINT64_MAX, &line, 1), 0);
	assert_int_equal(plumb_gpu_lines_at(lines, 3, 0, &line, 1), 0);
	plumb_gpu_lines_free(lines);
}

static void
test_triton(void **state)
{
	static const char file[] = "/home/u/kernels.py";
	struct plumb_gpu_lines *lines = open_lines(scaled_add_cubin);
	uint32_t kernel = function_named(lines, "scaled_add", 11);
	(void)state;

	CHECK(lines, kernel, 0x30, file, CALL(13));
	CHECK(lines, kernel, 0x180, file, INLINED("scaled_add", 7), CALL(16));
	CHECK(lines, kernel, 0x190, file, CALL(16));
	plumb_gpu_lines_free(lines);
}

/* Regions do not keep the names of inlined functions. */
static void
test_without_strings(void **state)
{
	struct plumb_gpu_sections sections = find_sections(inlined_cubin);
	struct plumb_gpu_line chain[8];
	(void)state;

	sections.size[PLUMB_GPU_STRINGS] = 0;
	struct plumb_gpu_lines *lines = plumb_gpu_lines_new(&sections);
	uint32_t nested = function_named(lines, "nested", 17);
	assert_int_equal(plumb_gpu_lines_at(lines, nested, 0x80, chain, 8), 3);
	for (int i = 0; i < 3; i++)
		assert_null(chain[i].function);
	assert_int_equal(chain[0].line, 4);
	plumb_gpu_lines_free(lines);
}

/* A function's name comes from a relocation alone. */
static void
test_without_relocations(void **state)
{
	struct plumb_gpu_sections sections = find_sections(inlined_cubin);
	struct plumb_gpu_line line;
	(void)state;

	sections.size[PLUMB_GPU_RELOCATIONS] = 0;
	struct plumb_gpu_lines *lines = plumb_gpu_lines_new(&sections);
	assert_null(plumb_gpu_lines_function(lines, 0, &line));
	plumb_gpu_lines_free(lines);
	sections = (struct plumb_gpu_sections){ 0 };
	lines = plumb_gpu_lines_new(&sections);
	assert_null(plumb_gpu_lines_function(lines, 0, &line));
	plumb_gpu_lines_free(lines);
	plumb_gpu_lines_free(NULL);
}

/* A unit of a version that is not read costs the functions in it, and not those of the next. */
static void
test_two_units(void **state)
{
	struct plumb_gpu_sections sections = find_sections(inlined_cubin);
	uint32_t one = sections.size[PLUMB_GPU_LINES];
	char *both = malloc(2 * (size_t)one);
	Elf64_Rel moved[3];
	(void)state;

	for (int version = 2; version <= 5; version += 3) {
		memcpy(both, sections.bytes[PLUMB_GPU_LINES], one);
		memcpy(both + one, sections.bytes[PLUMB_GPU_LINES], one);
		both[4] = (char)version;
		struct plumb_gpu_sections two = sections;
		assert_int_equal(two.size[PLUMB_GPU_RELOCATIONS], sizeof moved);
		memcpy(moved, sections.bytes[PLUMB_GPU_RELOCATIONS], sizeof moved);
		for (int i = 0; i < 3; i++)
			moved[i].r_offset += one;
		two.bytes[PLUMB_GPU_RELOCATIONS] = (const char *)moved;
		two.bytes[PLUMB_GPU_LINES] = both;
		two.size[PLUMB_GPU_LINES] = 2 * one;
		struct plumb_gpu_lines *lines = plumb_gpu_lines_new(&two);
		struct plumb_gpu_line chain[8];
		uint32_t nested = function_named(lines, "nested", 17);
		assert_int_equal(plumb_gpu_lines_at(lines, nested, 0x80, chain, 8), 3);
		assert_int_equal(chain[2].line, 19);
		plumb_gpu_lines_free(lines);
	}
	free(both);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inlined_calls),       cmocka_unit_test(test_triton),
		cmocka_unit_test(test_without_strings),     cmocka_unit_test(test_two_units),
		cmocka_unit_test(test_without_relocations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
