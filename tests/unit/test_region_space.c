/* SPDX-License-Identifier: Apache-2.0 */
/* Regions on a file system that is full: an error or a drop, and never SIGBUS. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "region_file.h"

/* A file system of 512 KiB at the test's folder, in a mount namespace of the calling process. */
static bool
mount_small(void)
{
	if (unshare(CLONE_NEWNS) && unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return false;
	return !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount("tmpfs", folder, "tmpfs", 0, "size=512k");
}

/* From now on madvise(…, MADV_POPULATE_WRITE) fails with WHY, as on an old kernel. */
static bool
refuse_populate(int why)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 23, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)why),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof filter / sizeof *filter, filter };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int
fill_file_system(void)
{
	struct plumb_region region, none;
	struct plumb_region_reader reader;
	struct plumb_arena arena;
	struct plumb_error error = { 0 };
	char other[160], filler[160];
	static char zeros[4096];
	uint64_t written = 0, seen = 0, cursor = 0;

	CHECK(!plumb_region_create(&region, path, 8 << 20, &error));
	plumb_arena_init(&arena, &region);
	errno = EDOM;
	while (plumb_arena_string(&arena, "0123456789", 10))
		written++;
	CHECK(errno == EDOM);
	CHECK(arena.fate == PLUMB_FATE_NO_SPACE);
	/* 512 KiB hold the header's page and seven chunks. */
	CHECK(written == 7 * (CHUNK_ROOM / 32));
	/* The chunk that found no space was given back, to the region and to the file system. */
	CHECK(region.header->next == PLUMB_REGION_HEADER_SIZE + 7 * PLUMB_CHUNK_SIZE);
	snprintf(other, sizeof other, "%s/b.region", folder);
	CHECK(plumb_region_create(&none, other, 8 << 20, &error) == PLUMB_ESYSTEM);
	CHECK(access(other, F_OK));
	snprintf(filler, sizeof filler, "%s/filler", folder);
	int fd = open(filler, O_CREAT | O_WRONLY, 0600);
	unsigned pages = 0;
	while (write(fd, zeros, sizeof zeros) == sizeof zeros)
		pages++;
	CHECK(pages > 8);
	plumb_arena_count(&arena, PLUMB_SOURCE_OPERATOR, PLUMB_FATE_NO_SPACE, 9);
	CHECK(region.header->lost[PLUMB_SOURCE_OPERATOR].no_space == 9);
	close(fd);
	plumb_region_close(&region);
	CHECK(!plumb_region_open(&reader, path, &error));
	while (plumb_region_next(&reader, &cursor))
		seen++;
	CHECK(seen == written);
	CHECK(reader.damaged == 0);
	plumb_region_reader_close(&reader);
	return 0;
}

static int
full_body(void)
{
	return mount_small() ? fill_file_system() : SKIPPED;
}

static int
full_old_kernel_body(void)
{
	if (!mount_small() || !refuse_populate(EINVAL))
		return SKIPPED;
	return fill_file_system();
}

static int
full_filtered_body(void)
{
	if (!mount_small() || !refuse_populate(EPERM))
		return SKIPPED;
	return fill_file_system();
}

static void
test_no_space(void **state)
{
	(void)state;
	check_child(full_body);
}

static void
test_no_space_old_kernel(void **state)
{
	(void)state;
	check_child(full_old_kernel_body);
}

static void
test_no_space_filtered(void **state)
{
	(void)state;
	check_child(full_filtered_body);
}

/* After "no space" the file system is asked again, and what there is then is used. */
static int
recover_body(void)
{
	struct plumb_region region;
	struct plumb_arena arena;
	char filler[160];
	static char zeros[300 << 10];

	if (!mount_small())
		return SKIPPED;
	snprintf(filler, sizeof filler, "%s/filler", folder);
	int fd = open(filler, O_CREAT | O_WRONLY, 0600);
	CHECK(write(fd, zeros, sizeof zeros) == sizeof zeros);
	CHECK(!plumb_region_create(&region, path, 8 << 20, NULL));
	plumb_arena_init(&arena, &region);
	while (plumb_arena_string(&arena, "0123456789", 10))
		;
	CHECK(arena.fate == PLUMB_FATE_NO_SPACE);
	CHECK(!ftruncate(fd, 0));
	bool again = false;
	for (int i = 0; i < 2000 && !again; i++)
		again = plumb_arena_string(&arena, "0123456789", 10);
	CHECK(again);
	return 0;
}

/* A large record that finds no space does not make the next small ones fail. */
static int
large_body(void)
{
	struct plumb_region region;
	struct plumb_arena arena;

	if (!mount_small())
		return SKIPPED;
	CHECK(!plumb_region_create(&region, path, 8 << 20, NULL));
	plumb_arena_init(&arena, &region);
	CHECK(!plumb_arena_append(&arena, PLUMB_RECORD_WORK_RING, 2 << 20));
	CHECK(arena.fate == PLUMB_FATE_NO_SPACE);
	CHECK(!plumb_arena_append(&arena, PLUMB_RECORD_WORK_RING, 1 << 20));
	CHECK(plumb_arena_append(&arena, PLUMB_RECORD_WORK_RING, 200 << 10));
	CHECK(plumb_arena_string(&arena, "0123456789", 10));
	return 0;
}

static void
test_a_large_record_without_space(void **state)
{
	(void)state;
	check_child(large_body);
}

static void
test_space_comes_back(void **state)
{
	(void)state;
	check_child(recover_body);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_no_space),          T(test_no_space_old_kernel),
		T(test_no_space_filtered), T(test_a_large_record_without_space),
		T(test_space_comes_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
