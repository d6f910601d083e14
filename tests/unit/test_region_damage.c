/* SPDX-License-Identifier: Apache-2.0 */
/* Regions that are damaged, and files that are none. */
#include <sys/stat.h>

#include "region_file.h"

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
		T(test_damage),           T(test_headers),      T(test_bit_flips),
		T(test_unaligned_memory), T(test_not_a_region),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
