/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/procstat.h"

static void
test_a_name_may_hold_anything(void **state)
{
	struct plumb_procstat plain, odd;
	(void)state;
	assert_true(plumb_procstat_read("/proc/self/stat", &plain));
	assert_int_equal(prctl(PR_SET_NAME, ") Z 1 (2) S"), 0);
	assert_true(plumb_procstat_read("/proc/self/stat", &odd));
	assert_string_equal(odd.name, ") Z 1 (2) S");
	assert_int_equal(odd.state, 'R');
	assert_true(odd.start > 0);
	assert_int_equal(odd.start, plain.start);
}

static void
test_the_dead_and_the_gone(void **state)
{
	struct plumb_procstat stat;
	char path[64];
	siginfo_t info;
	(void)state;
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	snprintf(path, sizeof path, "/proc/%d/stat", (int)child);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_true(plumb_procstat_read(path, &stat));
	assert_int_equal(stat.state, 'Z');
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_false(plumb_procstat_read(path, &stat));
}

static void
test_other_files(void **state)
{
	static const char *const texts[] = { "", "1 (name", "1 )name( S", "1 (name)", "1 (name) " };
	struct plumb_procstat stat;
	char path[] = "/tmp/plumb-procstat-XXXXXX";
	int fd = mkstemp(path);
	(void)state;
	assert_true(fd >= 0);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, texts[i], strlen(texts[i]), 0), strlen(texts[i]));
		assert_false(plumb_procstat_read(path, &stat));
	}
	static const char shortened[] = "1 (name) S 1 2 3";
	assert_int_equal(pwrite(fd, shortened, strlen(shortened), 0), strlen(shortened));
	assert_true(plumb_procstat_read(path, &stat));
	assert_int_equal(stat.state, 'S');
	assert_int_equal(stat.start, 0);
	close(fd);
	unlink(path);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_name_may_hold_anything),
		cmocka_unit_test(test_the_dead_and_the_gone),
		cmocka_unit_test(test_other_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
