/* SPDX-License-Identifier: Apache-2.0 */
/* Modules of GPU code beside a region: names, files, and what they take of the region's limit. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "region/code.h"
#include "region/writer.h"

static char folder[64];

static int
make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/plumb-code-XXXXXX");
	return !mkdtemp(folder);
}

static int
files_in_folder(bool remove_them)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int count = 0;

	while ((entry = readdir(dir))) {
		count += entry->d_name[0] != '.';
		if (remove_them)
			unlinkat(dirfd(dir), entry->d_name, 0);
	}
	closedir(dir);
	return count;
}

static int
remove_folder(void **state)
{
	(void)state;
	files_in_folder(true);
	return rmdir(folder);
}

static void
every_byte_counts(void **state)
{
	unsigned char bytes[100] = { 0 };
	uint64_t hashes[101];

	(void)state;
	for (int size = 0; size <= 100; size++) {
		hashes[size] = plumb_code_hash(bytes, (size_t)size);
		for (int i = 0; i < size; i++)
			assert_true(hashes[i] != hashes[size]);
	}
	for (int i = 0; i < 100; i++) {
		bytes[i] = 1;
		assert_true(plumb_code_hash(bytes, 100) != hashes[100]);
		bytes[i] = 0;
	}
}

static void
a_file_is_written_once(void **state)
{
	char name[PLUMB_CODE_NAME], path[128], read[8] = "";
	uint64_t hash = 0x0123456789abcdef;
	bool made;

	(void)state;
	assert_string_equal(plumb_code_name(hash, name), "0123456789abcdef.cubin");
	assert_false(plumb_code_has(folder, hash));
	assert_int_equal(plumb_code_write(folder, hash, "image", 5, &made), PLUMB_FATE_ATTRIBUTED);
	assert_true(made);
	assert_true(plumb_code_has(folder, hash));
	assert_int_equal(plumb_code_write(folder, hash, "other", 5, &made), PLUMB_FATE_ATTRIBUTED);
	assert_false(made);
	assert_int_equal(files_in_folder(false), 1);
	snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *file = fopen(path, "r");
	assert_int_equal(fread(read, 1, sizeof read - 1, file), 5);
	fclose(file);
	assert_string_equal(read, "image");
	struct stat status;
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
}

static int signals;

static void
count_signal(int number)
{
	(void)number;
	signals++;
}

static void
a_limit_raises_no_signal(void **state)
{
	static char image[8192];
	struct rlimit before, limit;
	bool made;

	(void)state;
	signal(SIGXFSZ, count_signal);
	getrlimit(RLIMIT_FSIZE, &before);
	limit = before;
	limit.rlim_cur = 4096;
	setrlimit(RLIMIT_FSIZE, &limit);
	int fate = plumb_code_write(folder, 1, image, sizeof image, &made);
	setrlimit(RLIMIT_FSIZE, &before);
	assert_int_equal(fate, PLUMB_FATE_NO_SPACE);
	assert_false(made);
	assert_int_equal(signals, 0);
	assert_int_equal(files_in_folder(false), 0);
	signal(SIGXFSZ, SIG_DFL);
}

static void
a_folder_that_is_gone(void **state)
{
	bool made;

	(void)state;
	assert_int_equal(plumb_code_write("/nowhere/at/all", 1, "x", 1, &made),
	                 PLUMB_FATE_CODE_NOT_WRITTEN);
	assert_false(made);
}

static void
files_count_against_the_limit(void **state)
{
	struct plumb_region region;
	struct plumb_arena arena;
	struct plumb_error error;
	uint64_t size = PLUMB_REGION_HEADER_SIZE + 16 * PLUMB_CHUNK_SIZE;
	unsigned chunks = 0;

	(void)state;
	assert_int_equal(plumb_region_create_private(&region, size, &error), 0);
	plumb_arena_init(&arena, &region);
	assert_false(plumb_region_take_beside(&region, 13 * PLUMB_CHUNK_SIZE));
	assert_true(plumb_region_take_beside(&region, 8 * PLUMB_CHUNK_SIZE));
	assert_false(plumb_region_take_beside(&region, 5 * PLUMB_CHUNK_SIZE));
	assert_false(plumb_region_take_beside(&region, UINT64_MAX));
	while (plumb_arena_append(&arena, PLUMB_RECORD_STRING, PLUMB_CHUNK_SIZE - 64)) {
		plumb_arena_commit(&arena, arena.chunk + 1);
		chunks++;
	}
	assert_int_equal(arena.fate, PLUMB_FATE_REGION_FULL);
	assert_int_equal(chunks, 8);
	plumb_region_give_beside(&region, 8 * PLUMB_CHUNK_SIZE);
	assert_non_null(plumb_arena_append(&arena, PLUMB_RECORD_STRING, PLUMB_CHUNK_SIZE - 64));
	plumb_region_close(&region);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte_counts),
		cmocka_unit_test_setup_teardown(a_file_is_written_once, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(a_limit_raises_no_signal, make_folder,
		                                remove_folder),
		cmocka_unit_test(a_folder_that_is_gone),
		cmocka_unit_test(files_count_against_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
