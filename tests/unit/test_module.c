/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules of GPU code: tests/data/sass has what nvcc made of kernels.cu.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "isa/lz4.h"
#include "isa/module.h"

/* The compiler runs in the repository's root. */
#define INCLUDE_FILE(name, path)                                                                   \
	__asm__(".pushsection .rodata\n.balign 8\n" #name ":\n.incbin \"" path "\"\n" #name        \
	        "_end:\n.byte 0\n.popsection");                                                    \
	extern const char name[], name##_end[]
INCLUDE_FILE(sm_90, "tests/data/sass/sm_90.cubin");
INCLUDE_FILE(sm_100, "tests/data/sass/sm_100.cubin");
INCLUDE_FILE(sm_75, "tests/data/sass/sm_75.cubin");
INCLUDE_FILE(device, "tests/data/sass/device.cubin");
INCLUDE_FILE(zstd_fatbin, "tests/data/sass/zstd.fatbin");
INCLUDE_FILE(ptx_fatbin, "tests/data/sass/ptx.fatbin");

static struct plumb_module *
open_module(const char *bytes, const char *end)
{
	struct plumb_module *module;
	struct plumb_error error;

	assert_int_equal(plumb_module_open(bytes, (size_t)(end - bytes), &module, &error), 0);
	assert_false(plumb_module_damaged(module));
	return module;
}

static const struct plumb_module_function *
function_named(const struct plumb_module *module, const char *name)
{
	uint32_t id = plumb_module_find(module, name);

	assert_true(id < plumb_module_count(module));
	return plumb_module_function(module, id);
}

static void
test_functions(void **state)
{
	struct plumb_module *module = open_module(sm_90, sm_90_end);
	const struct plumb_module_function *tile;

	(void)state;
	assert_string_equal(plumb_module_architecture(module), "sm_90");
	assert_int_equal(plumb_module_count(module), 7);
	tile = function_named(module, "_Z9transposePfPKfi");
	assert_true(tile->is_kernel);
	assert_true(tile->bytes % 16 == 0 && tile->bytes > 0);
	assert_in_range(tile->registers, 8, 64);
	assert_int_equal(tile->stack_bytes, 0);
	/* 32 rows of 33 numbers, and 1 KB that the system has. */
	assert_int_equal(tile->shared_bytes, 32 * 33 * 4 + 1024);
	assert_int_equal(plumb_module_find(module, "slow"), UINT32_MAX);
	plumb_module_free(module);
}

static void
test_copies_of_code_are_no_functions(void **state)
{
	struct plumb_module *module = open_module(sm_100, sm_100_end);

	(void)state;
	assert_string_equal(plumb_module_architecture(module), "sm_100");
	assert_int_equal(plumb_module_count(module), 7);
	plumb_module_free(module);
}

static void
test_device_functions(void **state)
{
	struct plumb_module *module = open_module(device, device_end);
	const struct plumb_module_function *mix = function_named(module, "_Z3mixPdPjPfPs");
	const struct plumb_module_function *slow = function_named(module, "_Z4slowdd");
	bool is_called = false;

	(void)state;
	assert_true(mix->is_kernel && !slow->is_kernel);
	/* 64 numbers in local memory. */
	assert_int_equal(function_named(module, "_Z5localPiPKii")->stack_bytes, 256);
	assert_int_equal(function_named(module, "_Z9transposePfPKfi")->shared_bytes, 32 * 33 * 4);
	for (uint32_t i = 0; i < mix->reference_count; i++) {
		assert_true(mix->references[i].offset < mix->bytes);
		assert_true(!i || mix->references[i].offset >= mix->references[i - 1].offset);
		is_called |= !strcmp(mix->references[i].name, "_Z4slowdd");
	}
	assert_true(is_called);
	plumb_module_free(module);
}

static void
test_lines(void **state)
{
	struct plumb_module *module = open_module(sm_90, sm_90_end);
	uint32_t chase = plumb_module_find(module, "_Z5chasePKPiS_i");
	struct plumb_gpu_line chain[4];
	bool has_load = false;

	(void)state;
	for (uint64_t at = 0; at < plumb_module_function(module, chase)->bytes; at += 16)
		if (plumb_module_lines(module, chase, at, chain, 4)) {
			assert_non_null(strstr(chain[0].file, "kernels.cu"));
			has_load |= chain[0].line == 16; /* at = … *at */
		}
	assert_true(has_load);
	assert_int_equal(plumb_module_lines(module, 1000, 0, chain, 4), 0);
	plumb_module_free(module);
	module = open_module(sm_75, sm_75_end); /* has none */
	assert_int_equal(plumb_module_lines(module, 0, 0, chain, 4), 0);
	plumb_module_free(module);
}

static void
test_what_is_no_module(void **state)
{
	struct plumb_module *module = (void *)1;
	struct plumb_error error;

	(void)state;
	assert_int_equal(plumb_module_open("ELF", 3, &module, &error), PLUMB_EINPUT);
	assert_null(module);
	assert_non_null(strstr(error.message, "give a cubin"));
}

/* Cut off anywhere, it is read as far as it goes. */
static void
test_cut_modules(void **state)
{
	(void)state;
	for (size_t size = 64; size < (size_t)(sm_75_end - sm_75); size += 997) {
		struct plumb_module *module;
		char *bytes = malloc(size);
		memcpy(bytes, sm_75, size);
		assert_int_equal(plumb_module_open(bytes, size, &module, NULL), 0);
		assert_true(plumb_module_damaged(module));
		plumb_module_free(module);
		free(bytes);
	}
}

static int
count_module(void *own, const void *bytes, size_t size)
{
	struct plumb_module *module;

	assert_int_equal(plumb_module_open(bytes, size, &module, NULL), 0);
	assert_false(plumb_module_damaged(module));
	plumb_module_free(module);
	++*(int *)own;
	return 0;
}

static int
stop(void *own, const void *bytes, size_t size)
{
	(void)own;
	(void)bytes;
	(void)size;
	return 7;
}

static void
test_fatbins(void **state)
{
	size_t size = (size_t)(zstd_fatbin_end - zstd_fatbin);
	char *around = calloc(1, size + 301);
	struct plumb_error error;
	int count = 0;

	(void)state;
	assert_int_equal(plumb_modules_in(zstd_fatbin, size, count_module, &count, &error), 0);
	assert_int_equal(count, 1);
	assert_int_equal(plumb_modules_in(zstd_fatbin, size, stop, NULL, &error), 7);
	/* Within something else, as in a program. */
	memcpy(around + 104, zstd_fatbin, size);
	assert_int_equal(plumb_modules_in(around, size + 301, count_module, &count, &error), 0);
	assert_int_equal(count, 2);
	/* Damaged where it is packed. */
	memset(around + 104 + 80, 0x55, 4);
	assert_int_equal(plumb_modules_in(around, size + 301, count_module, &count, &error),
	                 PLUMB_EINPUT);
	assert_int_equal(count, 2);
	free(around);
	count = 0;
	assert_int_equal(
		plumb_modules_in(sm_90, (size_t)(sm_90_end - sm_90), count_module, &count, &error),
		0);
	assert_int_equal(count, 1);
}

static void
test_files_without_modules(void **state)
{
	struct plumb_error error;

	(void)state;
	assert_int_equal(plumb_modules_in(ptx_fatbin, (size_t)(ptx_fatbin_end - ptx_fatbin), stop,
	                                  NULL, &error),
	                 PLUMB_EEMPTY);
	assert_non_null(strstr(error.message, "PTX only"));
	assert_int_equal(plumb_modules_in("nothing", 7, stop, NULL, &error), PLUMB_EEMPTY);
	assert_non_null(strstr(error.message, "no GPU code"));
}

static void
test_lz4(void **state)
{
	/* "abcd", 12 bytes of them again (overlapping), then "!". */
	static const uint8_t block[] = { 0x48, 'a', 'b', 'c', 'd', 4, 0, 0x10, '!' };
	/* 15 + 5 literals. */
	static const uint8_t literals[] = "\xf0\x05"
					  "12345678901234567890";
	char out[64];

	(void)state;
	assert_int_equal(plumb_lz4_unpack(block, sizeof block, out, sizeof out), 17);
	assert_memory_equal(out, "abcdabcdabcdabcd!", 17);
	assert_int_equal(plumb_lz4_unpack(literals, 22, out, sizeof out), 20);
	assert_memory_equal(out, "12345678901234567890", 20);
	assert_int_equal(plumb_lz4_unpack(block, sizeof block, out, 16), 0); /* no room */
	for (size_t size = 0; size < sizeof block; size++)                   /* cut off */
		if (size != 5)
			assert_int_equal(plumb_lz4_unpack(block, size, out, sizeof out), 0);
	static const uint8_t before[] = { 0x10, 'a', 2, 0, 0x10, '!' }; /* starts before it */
	assert_int_equal(plumb_lz4_unpack(before, sizeof before, out, sizeof out), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_copies_of_code_are_no_functions),
		cmocka_unit_test(test_device_functions),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_what_is_no_module),
		cmocka_unit_test(test_cut_modules),
		cmocka_unit_test(test_fatbins),
		cmocka_unit_test(test_files_without_modules),
		cmocka_unit_test(test_lz4),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
