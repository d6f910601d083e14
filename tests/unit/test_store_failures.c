/* SPDX-License-Identifier: Apache-2.0 */
/* Profile files that cannot be written, or for which there is no memory: nothing is left behind. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "failing_malloc.h"
#include "store_files.h"

#define SKIPPED 77

static void
test_write_elsewhere(void **state)
{
	(void)state;
	struct plumb_profile profile;
	struct sample_ids ids;
	struct plumb_error error = { 0 };
	assert_int_equal(sample_build(&profile, &ids, NULL), 0);
	char missing[128];
	snprintf(missing, sizeof missing, "%s/no/such/place", folder);
	assert_refused(plumb_store_write(&profile, missing, NULL, NULL, &error), PLUMB_ESYSTEM,
	               &error, missing);
	assert_refused(plumb_store_write(&profile, folder, NULL, NULL, &error), PLUMB_EUSAGE,
	               &error, folder);
	assert_refused(plumb_store_write(&profile, "/dev/null", NULL, NULL, &error), PLUMB_EUSAGE,
	               &error, "/dev/null");
	char *deep = malloc(3000);
	memset(deep, 'x', 2999);
	deep[2999] = 0;
	assert_int_equal(plumb_store_write(&profile, deep, NULL, NULL, &error), PLUMB_ESYSTEM);
	assert_int_equal(plumb_store_write(&profile, deep, NULL, NULL, NULL), PLUMB_ESYSTEM);
	free(deep);
	assert_int_equal(files_in_folder(folder), 0);
	/* Through a link, onto what it names. */
	assert_int_equal(symlink(path, other), 0);
	write_profile(&profile, path);
	write_profile(&profile, other);
	struct stat status;
	assert_int_equal(lstat(other, &status), 0);
	assert_true(S_ISLNK(status.st_mode));
	assert_int_equal(files_in_folder(folder), 2);
	plumb_profile_free(&profile);
}

/* Runs TEST in a child; SKIPPED when the system does not allow what it needs. */
static void
in_child(int (*test)(void))
{
	pid_t child = fork();
	assert_true(child >= 0);
	if (!child)
		_exit(test());
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == SKIPPED)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* More than fits anywhere small; the file that was there must stay, and nothing else. */
static int
write_too_much(const char *to)
{
	struct plumb_profile profile;
	struct sample_ids ids;
	struct plumb_builder *b = plumb_builder_new();
	sample_places(b, &ids);
	for (uint32_t i = 0, at = 0; i < 50000; i++)
		at = plumb_builder_context(b, at, 0, 0);
	struct plumb_error error = { 0 };
	if (plumb_builder_finish(b, &profile, &error))
		return 1;
	plumb_builder_free(b);
	int code = plumb_store_write(&profile, to, NULL, NULL, &error);
	plumb_profile_free(&profile);
	if (code != PLUMB_ESYSTEM || !strstr(error.message, to) || !strstr(error.message, "-o")) {
		fprintf(stderr, "%d: %s\n", code, error.message);
		return 2;
	}
	return 0;
}

static int
child_file_limit(void)
{
	signal(SIGXFSZ, SIG_IGN);
	struct rlimit limit = { 200000, 200000 };
	if (setrlimit(RLIMIT_FSIZE, &limit))
		return SKIPPED;
	return write_too_much(path);
}

static void
test_file_limit(void **state)
{
	(void)state;
	write_sample();
	in_child(child_file_limit);
	assert_int_equal(files_in_folder(folder), 1);
	struct plumb_profile profile;
	read_profile(&profile, path);
	plumb_profile_free(&profile);
}

/* A file system of one's own, for root or by way of a user namespace. */
static bool
own_mounts(void)
{
	if (!unshare(CLONE_NEWNS))
		return true;
	char map[64];
	int length = snprintf(map, sizeof map, "0 %u 1", (unsigned)getuid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return false;
	int fd = open("/proc/self/uid_map", O_WRONLY);
	bool written = fd >= 0 && write(fd, map, (size_t)length) == length;
	if (fd >= 0)
		close(fd);
	return written;
}

static int
child_no_space(void)
{
	if (!own_mounts())
		return SKIPPED;
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", folder, "tmpfs", 0, "size=512k"))
		return SKIPPED;
	struct plumb_profile profile;
	struct sample_ids ids;
	struct plumb_error error = { 0 };
	int code = sample_build(&profile, &ids, &error);
	if (!code)
		code = plumb_store_write(&profile, path, NULL, NULL, &error);
	plumb_profile_free(&profile);
	if (!code)
		code = write_too_much(path);
	if (!code && files_in_folder(folder) != 1)
		code = 3;
	if (!code && plumb_store_read(&profile, path, &error))
		code = 4;
	/* Read-only media. */
	if (!code && mount("none", folder, NULL, MS_REMOUNT | MS_RDONLY, NULL))
		return SKIPPED;
	plumb_profile_free(&profile);
	if (!code && plumb_store_read(&profile, path, &error))
		code = 5;
	return code;
}

static void
test_no_space(void **state)
{
	(void)state;
	in_child(child_no_space);
}

static void
test_no_memory(void **state)
{
	(void)state;
	if (!FAILING_MALLOC)
		skip();
	struct plumb_profile profile, again;
	struct sample_ids ids;
	assert_int_equal(sample_build(&profile, &ids, NULL), 0);
	write_profile(&profile, path);
	for (int reads = 0; reads < 2; reads++) {
		bool reached = true;
		/* Every one of the first, then ever fewer. */
		for (long n = 0; reached; n += 1 + n / 100) {
			struct plumb_error error = { 0 };
			failing_malloc_at = n;
			int code = reads ? plumb_store_read(&again, path, &error)
			                 : plumb_store_write(&profile, path, NULL, NULL, &error);
			reached = failing_malloc_stop();
			/* SQLite does without some allocations. */
			if (code) {
				assert_true(reached);
				assert_refused(code, PLUMB_ESYSTEM, &error, path);
				assert_non_null(strstr(error.message, "not enough memory to "));
			} else if (reads) {
				plumb_profile_free(&again);
			}
			assert_int_equal(files_in_folder(folder), 1);
		}
	}
	plumb_profile_free(&profile);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_write_elsewhere),
		T(test_file_limit),
		T(test_no_space),
		T(test_no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
