/* SPDX-License-Identifier: Apache-2.0 */
/* Regions: what is written is read, whatever became of the writer, the file or the file system. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "region/reader.h"
#include "region/writer.h"

#define SKIPPED 77
#define CHUNK_ROOM (PLUMB_CHUNK_SIZE - sizeof(struct plumb_chunk_header))

static char folder[64];
static char path[128];

static int
setup(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/plumb-region-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof path, "%s/a.region", folder);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

static void
create(struct plumb_region *region, struct plumb_arena *arena, uint64_t size)
{
	struct plumb_error error = { 0 };

	if (plumb_region_create(region, path, size, &error))
		fail_msg("%s", error.message);
	plumb_arena_init(arena, region);
}

static void
open_region(struct plumb_region_reader *reader)
{
	struct plumb_error error = { 0 };

	if (plumb_region_open(reader, path, &error))
		fail_msg("%s", error.message);
}

/* Runs BODY in a child and returns its exit code; a signal fails the test. */
static int
in_child(int (*body)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(body());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		fail_msg("the child died of signal %d", WTERMSIG(status));
	return WEXITSTATUS(status);
}

/* In a child: says what is wrong and gives the line as the exit code. */
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__,           \
			        #condition);                                                       \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

static void
check_child(int (*body)(void))
{
	int code = in_child(body);

	if (code == SKIPPED)
		skip();
	assert_int_equal(code, 0);
}

static unsigned
open_descriptors(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* ---- creating ---- */

static void
test_create(void **state)
{
	struct plumb_region region;
	struct plumb_region_reader reader;
	struct plumb_arena arena;
	struct stat st;
	unsigned before = open_descriptors();

	(void)state;
	errno = EDOM;
	create(&region, &arena, 1 << 20);
	assert_int_equal(errno, EDOM);
	assert_int_equal(open_descriptors(), before);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 1 << 20);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(arena.number, 1);
	open_region(&reader);
	assert_int_equal(reader.header.pid, getpid());
	assert_int_equal(reader.header.state, PLUMB_REGION_RECORDING);
	assert_int_equal(reader.header.size, 1 << 20);
	assert_true(reader.header.start_monotonic > 0);
	assert_true(reader.header.start_boottime_ticks > 0);
	assert_int_equal(reader.damaged, 0);
	uint64_t cursor = 0;
	assert_null(plumb_region_next(&reader, &cursor));
	assert_null(plumb_region_next(&reader, &cursor));
	plumb_region_reader_close(&reader);
	plumb_region_close(&region);
}

static void
test_create_fails(void **state)
{
	struct plumb_region region, other;
	struct plumb_arena arena;
	struct plumb_error error = { 0 };

	(void)state;
	assert_int_equal(plumb_region_create(&region, path, 4096, &error), PLUMB_EUSAGE);
	assert_int_equal(plumb_region_create(&region, path, UINT64_MAX, &error), PLUMB_EUSAGE);
	assert_int_equal(access(path, F_OK), -1);
	create(&region, &arena, 1 << 20);
	errno = EDOM;
	assert_int_equal(plumb_region_create(&other, path, 1 << 20, &error), PLUMB_ESYSTEM);
	assert_int_equal(errno, EDOM);
	assert_non_null(strstr(error.message, path));
	assert_null(other.header);
	plumb_region_close(&other);
	assert_int_equal(plumb_region_create(&other, "/nonexistent/x.region", 1 << 20, NULL),
	                 PLUMB_ESYSTEM);
	plumb_region_close(&region);
}

static int
size_limit_body(void)
{
	struct rlimit limit = { 1 << 20, 1 << 20 };
	struct plumb_region region;
	struct plumb_error error = { 0 };
	sigset_t pending, blocked;

	CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
	CHECK(plumb_region_create(&region, path, 8 << 20, &error) == PLUMB_ESYSTEM);
	CHECK(access(path, F_OK));
	CHECK(!sigpending(&pending) && !sigismember(&pending, SIGXFSZ));
	CHECK(!sigprocmask(SIG_BLOCK, NULL, &blocked) && !sigismember(&blocked, SIGXFSZ));
	return 0;
}

static void
test_file_size_limit(void **state)
{
	(void)state;
	check_child(size_limit_body);
}

/* ---- writing and reading ---- */

static void
test_round_trip(void **state)
{
	struct plumb_region region;
	struct plumb_region_reader reader;
	struct plumb_arena arena, second;
	const struct plumb_record *record;
	const struct plumb_record_value *value;
	const struct plumb_record_ledger *tally;
	const struct plumb_record_environment *fact;
	uint64_t cursor = 0;
	size_t bytes;

	(void)state;
	create(&region, &arena, 1 << 20);
	plumb_arena_init(&second, &region);
	assert_int_equal(second.number, 2);
	plumb_id name = plumb_arena_string(&arena, "aten::add", 9);
	plumb_id empty = plumb_arena_string(&second, "", 0);
	struct plumb_record_value *written =
		plumb_arena_append(&arena, PLUMB_RECORD_VALUE, sizeof *written);
	plumb_arena_commit(&arena, written);
	plumb_value_add(written, 10);
	plumb_value_add(written, 30);
	plumb_arena_count(&arena, PLUMB_SOURCE_KERNEL, PLUMB_FATE_RECEIVED, 3);
	plumb_arena_count(&arena, PLUMB_SOURCE_KERNEL, PLUMB_FATE_RECEIVED, 4);
	plumb_arena_count(&arena, (enum plumb_source)1000, PLUMB_FATE_RECEIVED, 1);
	assert_true(plumb_arena_environment(&second, "python.version", "3.11.2"));
	assert_false(plumb_arena_environment(&second, "python.version", NULL));
	/* Appended, not committed: nobody sees it, and the next one takes its place. */
	memset((char *)plumb_arena_append(&arena, PLUMB_RECORD_NODE, 40) + 8, 0xff, 32);
	struct plumb_record_node *node =
		plumb_arena_append(&arena, PLUMB_RECORD_NODE, sizeof *node);
	assert_int_equal(node->parent, 0);
	assert_int_equal(node->line, 0);
	plumb_region_close(&region);

	open_region(&reader);
	assert_memory_equal(plumb_region_string(&reader, name, &bytes), "aten::add", 9);
	assert_int_equal(bytes, 9);
	assert_non_null(plumb_region_string(&reader, empty, &bytes));
	assert_int_equal(bytes, 0);
	record = plumb_region_next(&reader, &cursor);
	assert_int_equal(plumb_region_reader_id(&reader, record), name);
	value = (const struct plumb_record_value *)plumb_region_next(&reader, &cursor);
	assert_int_equal(value->head.type, PLUMB_RECORD_VALUE);
	assert_int_equal(value->sum, 40);
	assert_int_equal(value->count, 2);
	assert_int_equal(value->min, 10);
	assert_int_equal(value->max, 30);
	assert_true(value->mean == 20 && value->m2 == 200);
	assert_int_equal(value->sequence, 4);
	tally = (const struct plumb_record_ledger *)plumb_region_next(&reader, &cursor);
	assert_int_equal(tally->head.type, PLUMB_RECORD_LEDGER);
	assert_int_equal(tally->count, 7);
	record = plumb_region_next(&reader, &cursor);
	assert_int_equal(plumb_region_reader_id(&reader, record), empty);
	plumb_region_next(&reader, &cursor);
	plumb_region_next(&reader, &cursor);
	fact = (const struct plumb_record_environment *)plumb_region_next(&reader, &cursor);
	assert_int_equal(fact->head.type, PLUMB_RECORD_ENVIRONMENT);
	assert_memory_equal(plumb_region_string(&reader, fact->value, &bytes), "3.11.2", 6);
	assert_null(plumb_region_next(&reader, &cursor));

	/* Ids that lead nowhere, or to something else. */
	assert_null(plumb_region_string(&reader, 0, &bytes));
	assert_null(plumb_region_string(&reader, name + 1, &bytes));
	assert_null(plumb_region_string(&reader, UINT32_MAX, &bytes));
	assert_null(plumb_region_get(&reader, name, PLUMB_RECORD_NODE, 8));
	assert_non_null(plumb_region_get(&reader, name, PLUMB_RECORD_STRING, 8));
	assert_null(plumb_region_get(&reader, name, PLUMB_RECORD_STRING, 4096));
	plumb_region_reader_close(&reader);
	assert_null(plumb_region_get(&reader, name, PLUMB_RECORD_STRING, 8));
}

static void
test_long_strings(void **state)
{
	static char text[2 * PLUMB_STRING_MAX];
	struct plumb_region region;
	struct plumb_region_reader reader;
	struct plumb_arena arena;
	size_t bytes;

	(void)state;
	create(&region, &arena, 1 << 20);
	memset(text, 'x', sizeof text);
	plumb_id ascii = plumb_arena_string(&arena, text, sizeof text);
	/* A euro sign over the cut. */
	memcpy(text + PLUMB_STRING_MAX - 2, "\xe2\x82\xac", 3);
	plumb_id euro = plumb_arena_string(&arena, text, sizeof text);
	plumb_region_close(&region);
	open_region(&reader);
	assert_non_null(plumb_region_string(&reader, ascii, &bytes));
	assert_int_equal(bytes, PLUMB_STRING_MAX);
	assert_non_null(plumb_region_string(&reader, euro, &bytes));
	assert_int_equal(bytes, PLUMB_STRING_MAX - 2);
	plumb_region_reader_close(&reader);
}

static void
test_large_record(void **state)
{
	struct plumb_region region;
	struct plumb_region_reader reader;
	struct plumb_arena arena;
	struct plumb_record_work_ring *ring;
	const size_t length = sizeof *ring + 10000 * sizeof(struct plumb_work);
	const struct plumb_record *got;

	(void)state;
	create(&region, &arena, 1 << 20);
	plumb_id before = plumb_arena_string(&arena, "before", 6);
	ring = plumb_arena_append(&arena, PLUMB_RECORD_WORK_RING, length);
	assert_non_null(ring);
	ring->capacity = 10000;
	((struct plumb_work *)(ring + 1))[9999].end = 42;
	plumb_arena_commit(&arena, ring);
	plumb_id id = plumb_region_id(&region, ring);
	plumb_id after = plumb_arena_string(&arena, "after", 5);
	/* Larger than the region can ever hold, and than a record can be. */
	assert_null(plumb_arena_append(&arena, PLUMB_RECORD_WORK_RING, 4 << 20));
	assert_int_equal(arena.fate, PLUMB_FATE_REGION_FULL);
	assert_null(plumb_arena_append(&arena, PLUMB_RECORD_WORK_RING, SIZE_MAX));
	assert_null(plumb_arena_append(&arena, PLUMB_RECORD_WORK_RING, 4));
	assert_int_not_equal(plumb_arena_string(&arena, "fits still", 10), 0);
	plumb_region_close(&region);
	open_region(&reader);
	size_t bytes;
	assert_non_null(plumb_region_string(&reader, before, &bytes));
	assert_non_null(plumb_region_string(&reader, after, &bytes));
	got = plumb_region_get(&reader, id, PLUMB_RECORD_WORK_RING, length);
	assert_non_null(got);
	assert_int_equal(
		((const struct plumb_work *)((const struct plumb_record_work_ring *)got + 1))[9999]
			.end,
		42);
	assert_int_equal(reader.damaged, 0);
	plumb_region_reader_close(&reader);
}

static void
test_region_full(void **state)
{
	struct plumb_region region;
	struct plumb_region_reader reader;
	struct plumb_arena arena, late;
	uint64_t cursor = 0, written = 0, seen = 0;

	(void)state;
	/* Three chunks, and a rest that holds none. */
	create(&region, &arena, PLUMB_REGION_HEADER_SIZE + 3 * PLUMB_CHUNK_SIZE + 5000);
	errno = EDOM;
	while (plumb_arena_string(&arena, "0123456789", 10))
		written++;
	assert_int_equal(errno, EDOM);
	assert_int_equal(arena.fate, PLUMB_FATE_REGION_FULL);
	assert_int_equal(written, 3 * (CHUNK_ROOM / 32));
	plumb_arena_init(&late, &region);
	plumb_arena_count(&late, PLUMB_SOURCE_OPERATOR, PLUMB_FATE_REGION_FULL, 5);
	assert_int_equal(region.header->lost_full, 5);
	assert_int_equal(region.header->lost_no_space, 0);
	plumb_region_close(&region);
	open_region(&reader);
	while (plumb_region_next(&reader, &cursor))
		seen++;
	assert_int_equal(seen, written);
	assert_int_equal(reader.damaged, 0);
	plumb_region_reader_close(&reader);
}

/* A chunk that a writer took and never used is stepped over and is no damage. */
static void
test_hole(void **state)
{
	struct plumb_region region;
	struct plumb_region_reader reader;
	struct plumb_arena a, b;
	uint64_t cursor = 0;

	(void)state;
	create(&region, &a, 1 << 20);
	plumb_arena_string(&a, "a", 1);
	region.header->next += 2 * PLUMB_CHUNK_SIZE;
	plumb_arena_init(&b, &region);
	plumb_id id = plumb_arena_string(&b, "b", 1);
	plumb_region_close(&region);
	open_region(&reader);
	plumb_region_next(&reader, &cursor);
	assert_int_equal(plumb_region_reader_id(&reader, plumb_region_next(&reader, &cursor)), id);
	assert_null(plumb_region_next(&reader, &cursor));
	assert_int_equal(reader.damaged, 0);
	plumb_region_reader_close(&reader);
}

/* ---- no space ---- */

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
	CHECK(region.header->lost_no_space == 9);
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

/* ---- many threads ---- */

#define THREADS 16
#define STRINGS 20000

static void *
write_strings(void *data)
{
	struct plumb_arena *arena = data;
	char text[64];

	for (unsigned i = 0; i < STRINGS; i++) {
		int n = snprintf(text, sizeof text, "%u:%u", arena->number, i);
		if (!plumb_arena_string(arena, text, (size_t)n))
			return arena;
		plumb_arena_count(arena, PLUMB_SOURCE_OPERATOR, PLUMB_FATE_RECEIVED, 1);
	}
	return NULL;
}

static void
test_threads(void **state)
{
	static struct plumb_arena arenas[THREADS];
	pthread_t threads[THREADS];
	unsigned next[THREADS + 1] = { 0 };
	uint64_t cursor = 0, counted = 0;
	struct plumb_region region;
	struct plumb_region_reader reader;
	struct plumb_arena unused;
	const struct plumb_record *record;

	(void)state;
	create(&region, &unused, 64 << 20);
	for (int i = 0; i < THREADS; i++) {
		plumb_arena_init(&arenas[i], &region);
		arenas[i].number = (uint32_t)i + 1;
		assert_int_equal(pthread_create(&threads[i], NULL, write_strings, &arenas[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		void *failed;
		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
	plumb_region_close(&region);
	open_region(&reader);
	assert_int_equal(reader.damaged, 0);
	while ((record = plumb_region_next(&reader, &cursor))) {
		unsigned thread, number;
		char text[64];
		size_t bytes;
		if (record->type == PLUMB_RECORD_LEDGER) {
			counted += ((const struct plumb_record_ledger *)record)->count;
			continue;
		}
		const char *p = plumb_region_string(
			&reader, plumb_region_reader_id(&reader, record), &bytes);
		assert_non_null(p);
		snprintf(text, sizeof text, "%.*s", (int)bytes, p);
		assert_int_equal(sscanf(text, "%u:%u", &thread, &number), 2);
		assert_true(thread >= 1 && thread <= THREADS);
		/* A thread's chunks come in its order. */
		assert_int_equal(number, next[thread]++);
	}
	for (int i = 1; i <= THREADS; i++)
		assert_int_equal(next[i], STRINGS);
	assert_int_equal(counted, THREADS * STRINGS);
	plumb_region_reader_close(&reader);
}

/* ---- a writer that is killed ---- */

static void
write_forever(void)
{
	struct plumb_region region;
	struct plumb_arena arena;
	char text[3000];

	if (plumb_region_create(&region, path, 1 << 30, NULL))
		_exit(1);
	plumb_arena_init(&arena, &region);
	for (unsigned i = 0;; i++) {
		unsigned bytes = i * 7919 % sizeof text;
		memset(text, 'a' + i % 26, bytes);
		if (!plumb_arena_string(&arena, text, bytes))
			_exit(2);
	}
}

static void
kill_one(void)
{
	struct plumb_region_reader reader;
	const struct plumb_record *record;
	uint64_t cursor = 0, next = 0;
	unsigned i = 0;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		write_forever();
	while (next < 20 * PLUMB_CHUNK_SIZE) {
		if (!plumb_region_open(&reader, path, NULL)) {
			next = reader.header.next;
			plumb_region_reader_close(&reader);
		}
		assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	open_region(&reader);
	assert_int_equal(reader.damaged, 0);
	while ((record = plumb_region_next(&reader, &cursor))) {
		size_t bytes;
		const char *text = plumb_region_string(
			&reader, plumb_region_reader_id(&reader, record), &bytes);
		assert_non_null(text);
		assert_int_equal(bytes, i * 7919 % 3000);
		for (size_t at = 0; at < bytes; at++)
			if (text[at] != (char)('a' + i % 26))
				fail_msg("record %u is not whole", i);
		i++;
	}
	assert_true(i > 100);
	plumb_region_reader_close(&reader);
	unlink(path);
}

static void
test_killed_writer(void **state)
{
	(void)state;
	for (int round = 0; round < 10; round++)
		kill_one();
}

/* ---- damaged input ---- */

/* Two chunks of strings; the caller frees it. */
static unsigned char *
sample(size_t *size)
{
	struct plumb_region region;
	struct plumb_arena arena;
	unsigned char *copy;

	unlink(path);
	create(&region, &arena, 1 << 20);
	for (size_t i = 0; i < 2 * (CHUNK_ROOM / 32); i++)
		plumb_arena_string(&arena, "0123456789", 10);
	*size = region.header->next;
	copy = malloc(*size);
	memcpy(copy, region.header, *size);
	plumb_region_close(&region);
	return copy;
}

static uint64_t
count_records(const unsigned char *data, size_t size, uint64_t *damaged)
{
	struct plumb_region_reader reader;
	struct plumb_error error = { 0 };
	uint64_t cursor = 0, count = 0;

	if (plumb_region_open_memory(&reader, data, size, "test", &error)) {
		assert_true(error.message[0]);
		return UINT64_MAX;
	}
	while (plumb_region_next(&reader, &cursor))
		count++;
	*damaged = reader.damaged;
	plumb_region_reader_close(&reader);
	return count;
}

static void
test_damage(void **state)
{
	const uint64_t per_chunk = CHUNK_ROOM / 32;
	const size_t first = PLUMB_REGION_HEADER_SIZE;
	size_t size;
	uint64_t damaged;
	unsigned char *data = sample(&size);
	struct plumb_chunk_header *chunk = (struct plumb_chunk_header *)(data + first);
	struct plumb_record *records = (struct plumb_record *)(chunk + 1);

	(void)state;
	assert_int_equal(count_records(data, size, &damaged), 2 * per_chunk);
	assert_int_equal(damaged, 0);
	/* A record of length 0 ends its chunk, and the next one is read. */
	records[4 * 10].length = 0;
	assert_int_equal(count_records(data, size, &damaged), per_chunk + 10);
	assert_int_equal(damaged, 1);
	records[4 * 10].length = 36;
	assert_int_equal(count_records(data, size, &damaged), per_chunk + 10);
	records[4 * 10].length = 1 << 20;
	assert_int_equal(count_records(data, size, &damaged), per_chunk + 10);
	records[4 * 10].length = 32;
	/* A chunk header that is none. */
	chunk->magic++;
	assert_int_equal(count_records(data, size, &damaged), per_chunk);
	assert_int_equal(damaged, 1);
	chunk->magic--;
	/* A chunk that would reach over the end still gives its records, and so does the next. */
	chunk->size = 1 << 30;
	assert_int_equal(count_records(data, size, &damaged), 2 * per_chunk);
	assert_int_equal(damaged, 1);
	chunk->size = 100;
	assert_int_equal(count_records(data, size, &damaged), per_chunk);
	chunk->size = PLUMB_CHUNK_SIZE;
	chunk->used = UINT32_MAX;
	assert_int_equal(count_records(data, size, &damaged), 2 * per_chunk);
	assert_true(damaged >= 1);
	free(data);
}

static void
test_headers(void **state)
{
	size_t size;
	uint64_t damaged;
	unsigned char *data = sample(&size);
	struct plumb_region_header *header = (struct plumb_region_header *)data;

	(void)state;
	header->magic[3] ^= 1;
	assert_true(count_records(data, size, &damaged) == UINT64_MAX);
	header->magic[3] ^= 1;
	header->min_version = 99;
	assert_true(count_records(data, size, &damaged) == UINT64_MAX);
	header->min_version = 1;
	/* A newer region that this reader may still read. */
	header->version = 99;
	assert_true(count_records(data, size, &damaged) != UINT64_MAX);
	assert_int_equal(damaged, 0);
	header->endian = 0x04030201;
	assert_true(count_records(data, size, &damaged) == UINT64_MAX);
	header->endian = PLUMB_REGION_ENDIAN;
	header->chunk_size = 0;
	assert_true(count_records(data, size, &damaged) == UINT64_MAX);
	header->chunk_size = PLUMB_CHUNK_SIZE;
	/* A `next` that cannot be: the file's size counts, and it is damage. */
	uint64_t next = header->next;
	header->next = UINT64_MAX;
	assert_true(count_records(data, size, &damaged) != UINT64_MAX);
	assert_int_equal(damaged, 1);
	header->next = next;
	assert_true(count_records(data, 0, &damaged) == UINT64_MAX);
	assert_true(count_records(data, PLUMB_REGION_HEADER_SIZE, &damaged) == UINT64_MAX);
	/* Every length that a truncated file may have. */
	uint64_t last = 0;
	for (size_t cut = PLUMB_REGION_HEADER_SIZE + 24; cut < size; cut += 1001) {
		unsigned char *part = malloc(cut);
		memcpy(part, data, cut);
		uint64_t count = count_records(part, cut, &damaged);
		assert_true(count != UINT64_MAX && count >= last && damaged);
		last = count;
		free(part);
	}
	free(data);
}

/* Any flip: an error, or records; all pointers stay inside. */
static void
test_bit_flips(void **state)
{
	size_t size;
	unsigned char *data = sample(&size);
	unsigned seed = 1;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		uint64_t damaged;
		size_t at = (size_t)rand_r(&seed) % (i % 2 ? size : 8192);
		unsigned char bit = (unsigned char)(1u << (rand_r(&seed) & 7));
		data[at] ^= bit;
		count_records(data, size, &damaged);
		if (i % 5)
			data[at] ^= bit;
	}
	free(data);
}

static void
test_unaligned_memory(void **state)
{
	size_t size;
	uint64_t damaged;
	unsigned char *data = sample(&size);
	unsigned char *moved = malloc(size + 1);

	(void)state;
	memcpy(moved + 1, data, size);
	assert_int_equal(count_records(moved + 1, size, &damaged), 2 * (CHUNK_ROOM / 32));
	free(moved);
	free(data);
}

static void
test_not_a_region(void **state)
{
	struct plumb_region_reader reader;
	struct plumb_error error = { 0 };

	(void)state;
	assert_int_equal(plumb_region_open(&reader, path, &error), PLUMB_ESYSTEM);
	assert_non_null(strstr(error.message, path));
	assert_int_equal(plumb_region_open(&reader, folder, &error), PLUMB_EINPUT);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(plumb_region_open(&reader, path, &error), PLUMB_EINPUT);
	unlink(path);
	int fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_int_equal(plumb_region_open(&reader, path, &error), PLUMB_EINPUT);
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	assert_int_equal(plumb_region_open(&reader, path, &error), PLUMB_EINPUT);
	assert_non_null(strstr(error.message, path));
	close(fd);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_create),
		T(test_create_fails),
		T(test_file_size_limit),
		T(test_round_trip),
		T(test_long_strings),
		T(test_large_record),
		T(test_region_full),
		T(test_hole),
		T(test_no_space),
		T(test_no_space_old_kernel),
		T(test_no_space_filtered),
		T(test_a_large_record_without_space),
		T(test_space_comes_back),
		T(test_threads),
		T(test_killed_writer),
		T(test_damage),
		T(test_headers),
		T(test_bit_flips),
		T(test_unaligned_memory),
		T(test_not_a_region),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
