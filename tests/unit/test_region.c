/* SPDX-License-Identifier: Apache-2.0 */
/* Regions: what is written is read, by whatever threads, also when the writer is killed. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "region_file.h"

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
	assert_int_equal(region.header->lost[PLUMB_SOURCE_OPERATOR].full, 5);
	assert_int_equal(region.header->lost_full, 0);
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

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_create),        T(test_create_fails), T(test_file_size_limit),
		T(test_round_trip),    T(test_long_strings), T(test_large_record),
		T(test_region_full),   T(test_hole),         T(test_threads),
		T(test_killed_writer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
