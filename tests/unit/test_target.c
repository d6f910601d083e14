/* SPDX-License-Identifier: Apache-2.0 */
/* Executables: what they are told to be, also when they are crafted, cut short or damaged. */
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/run/executable.h"
#include "cli/run/target.h"

#define ADDRESS 0x400000u
#define INTERPRETER_AT 0x300u
#define DYNAMIC_AT 0x400u
#define STRINGS_AT 0x600u
#define SIZE 0x1000u

#define GLIBC "/lib64/ld-linux-x86-64.so.2"

struct image {
	unsigned char bytes[SIZE];
};

static void
put(struct image *image, size_t at, const void *data, size_t size)
{
	memcpy(image->bytes + at, data, size);
}

/* A program that needs NEEDED and imports SYMBOL, loaded by INTERPRETER; each may be NULL. */
static void
make(struct image *image, const char *interpreter, const char *needed, const char *symbol)
{
	Elf64_Ehdr head = { .e_type = ET_DYN,
		            .e_machine = (Elf64_Half)plumb_machine_own(),
		            .e_version = EV_CURRENT,
		            .e_phoff = sizeof(head),
		            .e_ehsize = sizeof(head),
		            .e_phentsize = sizeof(Elf64_Phdr),
		            .e_phnum = 3 };
	Elf64_Phdr segments[3] = {
		{ .p_type = PT_LOAD,
		  .p_offset = 0,
		  .p_vaddr = ADDRESS,
		  .p_filesz = SIZE,
		  .p_memsz = SIZE },
		{ .p_type = PT_DYNAMIC, .p_offset = DYNAMIC_AT, .p_vaddr = ADDRESS + DYNAMIC_AT },
		{ .p_type = interpreter ? PT_INTERP : PT_NULL, .p_offset = INTERPRETER_AT },
	};
	Elf64_Dyn rows[4] = { { .d_tag = DT_STRTAB, .d_un.d_ptr = ADDRESS + STRINGS_AT } };
	size_t count = 1, end = 1;
	memset(image, 0, sizeof(*image));
	memcpy(head.e_ident, ELFMAG, SELFMAG);
	head.e_ident[EI_CLASS] = ELFCLASS64;
	head.e_ident[EI_DATA] = ELFDATA2LSB;
	if (interpreter)
		put(image, INTERPRETER_AT, interpreter, strlen(interpreter) + 1);
	if (needed) {
		rows[count].d_tag = DT_NEEDED;
		rows[count++].d_un.d_val = end;
		put(image, STRINGS_AT + end, needed, strlen(needed) + 1);
		end += strlen(needed) + 1;
	}
	if (symbol) {
		put(image, STRINGS_AT + end, symbol, strlen(symbol) + 1);
		end += strlen(symbol) + 1;
	}
	rows[count].d_tag = DT_STRSZ;
	rows[count++].d_un.d_val = end;
	rows[count++].d_tag = DT_NULL;
	segments[1].p_filesz = count * sizeof(rows[0]);
	put(image, DYNAMIC_AT, rows, count * sizeof(rows[0]));
	put(image, 0, &head, sizeof(head));
	put(image, sizeof(head), segments, sizeof(segments));
}

static struct plumb_executable
look(const struct image *image, size_t size)
{
	struct plumb_executable found;
	/* An exact copy, so that a sanitizer sees a read past the end. */
	void *copy = malloc(size ? size : 1);
	assert_non_null(copy);
	memcpy(copy, image->bytes, size);
	plumb_executable_look_memory(copy, size, &found);
	free(copy);
	return found;
}

static void
elf_is_told_apart(void **state)
{
	(void)state;
	struct image image;
	make(&image, GLIBC, "libc.so.6", "puts");
	struct plumb_executable found = look(&image, SIZE);
	assert_int_equal(found.kind, PLUMB_EXECUTABLE_ELF);
	assert_int_equal(found.bits, 64);
	assert_int_equal(found.machine, plumb_machine_own());
	assert_string_equal(found.interpreter, GLIBC);
	assert_false(found.asan);

	make(&image, NULL, NULL, NULL);
	found = look(&image, SIZE);
	assert_int_equal(found.kind, PLUMB_EXECUTABLE_ELF);
	assert_string_equal(found.interpreter, "");
}

static void
sanitizer_is_found(void **state)
{
	(void)state;
	struct image image;
	make(&image, GLIBC, "libasan.so.8", "__asan_init");
	struct plumb_executable found = look(&image, SIZE);
	assert_true(found.asan);
	assert_string_equal(found.asan_library, "libasan.so.8");

	make(&image, GLIBC, "libclang_rt.asan-x86_64.so", NULL);
	assert_string_equal(look(&image, SIZE).asan_library, "libclang_rt.asan-x86_64.so");

	make(&image, GLIBC, "libc.so.6", "__asan_init");
	found = look(&image, SIZE);
	assert_true(found.asan);
	assert_string_equal(found.asan_library, "");

	static const char *const others[] = { "x__asan_init", "__asan_init2", "__asan_ini" };
	for (size_t i = 0; i < 3; i++) {
		make(&image, GLIBC, "libasan_helper.so", others[i]);
		assert_false(look(&image, SIZE).asan);
	}
}

/* The name lies across the blocks in which the strings are read. */
static void
sanitizer_is_found_in_long_strings(void **state)
{
	(void)state;
	struct image image;
	size_t size = 300000;
	unsigned char *bytes = calloc(1, size);
	assert_non_null(bytes);
	for (size_t at = 65536 - 40; at < 65536 + 40; at++) {
		struct plumb_executable found;
		make(&image, GLIBC, "libc.so.6", NULL);
		memset(bytes + SIZE, 'x', size - SIZE);
		memcpy(bytes, image.bytes, SIZE);
		memset(bytes + STRINGS_AT + 11, 'y', SIZE - STRINGS_AT - 11);
		bytes[STRINGS_AT + at - 1] = '\0';
		memcpy(bytes + STRINGS_AT + at, "__asan_init", 12);
		Elf64_Dyn *rows = (Elf64_Dyn *)(bytes + DYNAMIC_AT);
		rows[2].d_un.d_val = 200000;
		plumb_executable_look_memory(bytes, size, &found);
		assert_int_equal(found.kind, PLUMB_EXECUTABLE_ELF);
		assert_true(found.asan);
		bytes[STRINGS_AT + at - 1] = 'x';
		plumb_executable_look_memory(bytes, size, &found);
		assert_false(found.asan);
	}
	free(bytes);
}

static void
other_machines_are_named(void **state)
{
	(void)state;
	struct image image;
	struct plumb_executable found;
	make(&image, GLIBC, NULL, NULL);
	image.bytes[EI_CLASS] = ELFCLASS32;
	found = look(&image, SIZE);
	assert_int_equal(found.kind, PLUMB_EXECUTABLE_ELF);
	assert_int_equal(found.bits, 32);

	make(&image, GLIBC, NULL, NULL);
	Elf64_Half machine = EM_S390;
	put(&image, offsetof(Elf64_Ehdr, e_machine), &machine, sizeof(machine));
	found = look(&image, SIZE);
	assert_int_equal(found.machine, EM_S390);
	assert_string_equal(plumb_machine_name(found.machine), "S/390");

	make(&image, GLIBC, NULL, NULL);
	image.bytes[EI_DATA] = ELFDATA2MSB;
	assert_int_equal(look(&image, SIZE).machine, 0);
	assert_null(plumb_machine_name(0));
}

static void
damage_is_no_crash(void **state)
{
	(void)state;
	struct image image, broken;
	make(&image, GLIBC, "libasan.so.8", "__asan_init");
	for (size_t size = 0; size <= SIZE; size++)
		look(&image, size);
	assert_int_equal(look(&image, 40).kind, PLUMB_EXECUTABLE_DAMAGED);
	assert_int_equal(look(&image, INTERPRETER_AT + 5).kind, PLUMB_EXECUTABLE_DAMAGED);
	assert_int_equal(look(&image, 3).kind, PLUMB_EXECUTABLE_OTHER);
	/* Every byte of the headers takes values that lead far away. */
	for (size_t at = 4; at < STRINGS_AT; at++) {
		static const unsigned char values[] = { 0x00, 0x01, 0x7f, 0x80, 0xff };
		for (size_t i = 0; i < sizeof(values); i++) {
			broken = image;
			broken.bytes[at] = values[i];
			look(&broken, SIZE);
		}
	}
	/* Numbers near the greatest. */
	for (size_t at = 0x18; at + 8 <= STRINGS_AT; at += 8) {
		uint64_t far = UINT64_MAX - 3;
		broken = image;
		put(&broken, at, &far, sizeof(far));
		look(&broken, SIZE);
	}
	/* An interpreter without an end. */
	broken = image;
	memset(broken.bytes + INTERPRETER_AT, 'a', SIZE - INTERPRETER_AT);
	assert_int_equal(look(&broken, SIZE).kind, PLUMB_EXECUTABLE_DAMAGED);
}

static void
scripts_are_read_as_the_kernel_does(void **state)
{
	(void)state;
	static const struct {
		const char *text, *interpreter, *argument;
	} cases[] = {
		{ "#!/bin/sh\n", "/bin/sh", "" },
		{ "#! \t/usr/bin/env  -S python3 -u \t\nrest", "/usr/bin/env", "-S python3 -u" },
		{ "#!/bin/sh", "/bin/sh", "" },
		{ "#!sh -e\n", "sh", "-e" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct plumb_executable found;
		plumb_executable_look_memory(cases[i].text, strlen(cases[i].text), &found);
		assert_int_equal(found.kind, PLUMB_EXECUTABLE_SCRIPT);
		assert_string_equal(found.interpreter, cases[i].interpreter);
		assert_string_equal(found.argument, cases[i].argument);
	}
	static const char *const others[] = {
		"", "#", "#!", "#!\n", "#!   \n", "echo\n", "\177EL"
	};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct plumb_executable found;
		plumb_executable_look_memory(others[i], strlen(others[i]), &found);
		assert_int_equal(found.kind, PLUMB_EXECUTABLE_OTHER);
	}
	char line[600];
	struct plumb_executable found;
	memset(line, 'a', sizeof(line));
	memcpy(line, "#!", 2);
	plumb_executable_look_memory(line, sizeof(line), &found);
	assert_true(strlen(found.interpreter) < sizeof(found.interpreter));
}

/* ---- files ---- */

static char folder[64];

static int
setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/plumb-target-XXXXXX");
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int
teardown(void **state)
{
	(void)state;
	char command[100];
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return chdir("/") || system(command);
}

static void
write_file(const char *name, const void *data, size_t size, mode_t mode)
{
	FILE *file = fopen(name, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, size, file), size);
	fclose(file);
	assert_int_equal(chmod(name, mode), 0);
}

static struct plumb_target
look_at(const char *first, const char *second, const char *search)
{
	struct plumb_target target;
	char *argv[] = { (char *)first, (char *)second, NULL };
	plumb_target_look(argv, search, &target);
	return target;
}

static void
programs_are_found_as_execvp_does(void **state)
{
	(void)state;
	assert_int_equal(mkdir("a", 0755) | mkdir("b", 0755) | mkdir("b/folder", 0755), 0);
	write_file("a/tool", "x", 1, 0644);
	write_file("b/tool", "#!/bin/sh\n", 10, 0755);
	write_file("tool", "#!/bin/sh\n", 10, 0755);
	assert_int_equal(look_at("", NULL, "a").error, ENOENT);
	assert_int_equal(look_at("none", NULL, "a:b").error, ENOENT);
	assert_int_equal(look_at("tool", NULL, "a").error, EACCES);
	assert_int_equal(look_at("folder", NULL, "b").error, EACCES);
	assert_int_equal(look_at("./none", NULL, "b").error, ENOENT);
	assert_string_equal(look_at("tool", NULL, "a:b").path, "b/tool");
	assert_string_equal(look_at("tool", NULL, "").path, "./tool");
	assert_string_equal(look_at("tool", NULL, "a:").path, "./tool");
	assert_string_equal(look_at("b/tool", NULL, NULL).path, "b/tool");
	assert_int_equal(look_at("sh", NULL, NULL).error, 0);
}

static void
targets_are_refused_by_name(void **state)
{
	(void)state;
	struct image image;
	struct plumb_target target;
	make(&image, "/lib/ld-musl-x86_64.so.1", NULL, NULL);
	write_file("musl", &image, SIZE, 0755);
	target = look_at("./musl", NULL, "");
	assert_true(target.refused);
	assert_non_null(strstr(target.reason, "./musl is linked with musl"));

	make(&image, "/system/bin/linker64", NULL, NULL);
	write_file("bionic", &image, SIZE, 0755);
	assert_non_null(strstr(look_at("./bionic", NULL, "").reason, "/system/bin/linker64"));

	make(&image, NULL, NULL, NULL);
	write_file("static", &image, SIZE, 0755);
	target = look_at("./static", NULL, "");
	assert_false(target.refused);
	assert_true(target.outside);

	make(&image, GLIBC, "libasan.so.8", "__asan_init");
	write_file("asan", &image, SIZE, 0755);
	target = look_at("./asan", NULL, "");
	assert_false(target.refused);
	assert_string_equal(target.preload, "libasan.so.8");

	make(&image, GLIBC, "libasan.so:evil.so", "__asan_init");
	write_file("asan", &image, SIZE, 0755);
	assert_string_equal(look_at("./asan", NULL, "").preload, "");

	/* Damaged: nothing is known, so nothing is refused. */
	write_file("damaged", &image, 70, 0755);
	target = look_at("./damaged", NULL, "");
	assert_false(target.refused || target.outside || target.error);
}

static void
chains_are_followed(void **state)
{
	(void)state;
	static const struct {
		const char *name, *text;
	} scripts[] = {
		{ "direct", "#!./musl\n" },
		{ "second", "#!./direct x\n" },
		{ "by-env", "#!/usr/bin/env musl\n" },
		{ "split", "#!/usr/bin/env -S A=1 musl -v\n" },
	};
	struct image image;
	make(&image, "/lib/ld-musl-x86_64.so.1", NULL, NULL);
	write_file("musl", &image, SIZE, 0755);
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		write_file(scripts[i].name, scripts[i].text, strlen(scripts[i].text), 0755);
		char path[64];
		snprintf(path, sizeof(path), "./%s", scripts[i].name);
		assert_true(look_at(path, NULL, ".:/usr/bin").refused);
	}
	assert_true(look_at("env", "./musl", "/usr/bin:/bin").refused);
	assert_true(look_at("/usr/bin/env", "-S./musl", "/usr/bin:/bin").refused);
	assert_false(look_at("env", NULL, "/usr/bin:/bin").refused);
	/* A ring of scripts ends. */
	write_file("ring", "#!./gnir\n", 9, 0755);
	write_file("gnir", "#!./ring\n", 9, 0755);
	assert_false(look_at("./ring", NULL, "").refused);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(elf_is_told_apart),
		cmocka_unit_test(sanitizer_is_found),
		cmocka_unit_test(sanitizer_is_found_in_long_strings),
		cmocka_unit_test(other_machines_are_named),
		cmocka_unit_test(damage_is_no_crash),
		cmocka_unit_test(scripts_are_read_as_the_kernel_does),
		cmocka_unit_test_setup_teardown(programs_are_found_as_execvp_does, setup, teardown),
		cmocka_unit_test_setup_teardown(targets_are_refused_by_name, setup, teardown),
		cmocka_unit_test_setup_teardown(chains_are_followed, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
