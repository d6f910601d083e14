/* SPDX-License-Identifier: Apache-2.0 */
/* What `plumb run` notes of a region that grows: the file `copies`. */
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "region/copies.h"
#include "region_file.h"
#include "watch/copies.h"

#define LOOKS 6

static struct plumb_region region;
static struct plumb_arena arena;
static struct plumb_watch_regions regions;

static int
set_up(void **state)
{
	if (setup(state))
		return -1;
	create(&region, &arena, 4 << 20);
	regions.folder = folder;
	return 0;
}

static const char *
copies_path(void)
{
	static char text[160];

	snprintf(text, sizeof text, "%s/" PLUMB_COPIES_NAME, folder);
	return text;
}

static int
tear_down(void **state)
{
	plumb_watch_regions_free(&regions);
	plumb_region_close(&region);
	unlink(copies_path());
	return teardown(state);
}

static struct plumb_record_value *
new_value(uint16_t metric)
{
	struct plumb_record_value *value =
		plumb_arena_append(&arena, PLUMB_RECORD_VALUE, sizeof *value);

	assert_non_null(value);
	value->metric = metric;
	plumb_arena_commit(&arena, value);
	return value;
}

static struct plumb_record_device_total *
new_total(void)
{
	struct plumb_record_device_total *total =
		plumb_arena_append(&arena, PLUMB_RECORD_DEVICE_TOTAL, sizeof *total);

	assert_non_null(total);
	plumb_arena_commit(&arena, total);
	return total;
}

/* Until plumb has looked once more. */
static void
wait_for_look(struct plumb_copies *copies)
{
	int ms = plumb_copies_look(copies);

	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000L }, NULL);
	assert_true(plumb_copies_look(copies) >= 1);
}

/* ---- the file ---- */

struct noted {
	char *bytes;
	struct plumb_copies_header *header;
	struct plumb_copies_part *parts;
	struct plumb_copies_region *regions;
	struct plumb_copies_entry *entries;
};

static struct noted
read_noted(void)
{
	struct noted n = { 0 };
	struct stat status;
	FILE *file = fopen(copies_path(), "r");

	assert_non_null(file);
	assert_int_equal(fstat(fileno(file), &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	n.bytes = malloc((size_t)status.st_size);
	assert_int_equal(fread(n.bytes, 1, (size_t)status.st_size, file), status.st_size);
	fclose(file);
	n.header = (void *)n.bytes;
	assert_memory_equal(n.header->magic, PLUMB_COPIES_MAGIC, sizeof n.header->magic);
	assert_int_equal(n.header->regions, 1);
	n.parts = (void *)(n.header + 1);
	n.regions = (void *)(n.parts + n.header->parts);
	n.entries = (void *)(n.regions + 1);
	assert_int_equal((char *)&n.entries[n.header->entries] - n.bytes, status.st_size);
	assert_int_equal(n.regions->pid, getpid());
	assert_int_equal(n.regions->start_monotonic, region.header->start_monotonic);
	assert_int_equal(n.regions->entries, n.header->entries);
	for (uint32_t i = 1; i < n.header->parts; i++)
		assert_int_equal(n.parts[i].start, n.parts[i - 1].end);
	for (uint32_t i = 1; i < n.header->entries; i++)
		assert_true(n.entries[i].part >= n.entries[i - 1].part);
	return n;
}

/* What all parts have of a record. */
static struct plumb_copies_entry
all_of(const struct noted *n, const void *record, uint16_t which)
{
	plumb_id id = plumb_region_id(&region, record);
	struct plumb_copies_entry all = { 0 };

	for (uint32_t i = 0; i < n->header->entries; i++) {
		const struct plumb_copies_entry *e = &n->entries[i];
		double delta;
		if (e->id != id || e->which != which)
			continue;
		delta = all.count ? (double)e->sum / (double)e->count -
		                            (double)all.sum / (double)all.count
		                  : 0;
		all.m2 += e->m2 + delta * delta * (double)all.count * (double)e->count /
		                          (double)(all.count + e->count);
		all.sum += e->sum;
		all.count += e->count;
	}
	return all;
}

static void
check_value(const struct noted *n, const struct plumb_record_value *value)
{
	struct plumb_copies_entry all = all_of(n, value, PLUMB_COPIES_ALL);

	assert_int_equal(all.sum, value->sum);
	assert_int_equal(all.count, value->count);
	assert_true(fabs(all.m2 - value->m2) <= 1e-9 * value->m2 + 1e-3);
}

/* ---- tests ---- */

/* Records that are there from the start, and one that comes later. */
static void
parts_add_up_to_what_the_region_has(void **state)
{
	struct plumb_record_value *early = new_value(PLUMB_METRIC_OP_TIME), *late = NULL;
	struct plumb_record_device_total *total = new_total();
	struct plumb_copies *copies = plumb_copies_new(&regions, NULL);
	struct plumb_copies_told told;
	struct noted n;

	(void)state;
	for (int i = 0; i < LOOKS; i++) {
		for (int k = 0; k < 10 + i; k++)
			plumb_value_add(early, 1000000 + 77777 * k);
		if (i == LOOKS / 2)
			late = new_value(PLUMB_METRIC_OP_DURATION);
		if (late)
			plumb_value_add(late, 5 + i);
		total->kernels += 3;
		total->kernel_ns += 600;
		total->copy_bytes += 4096;
		/* Work that is still open counts as busy; then it is folded. */
		total->busy_ns += i ? 100 : 0;
		total->open_count = 1;
		total->open[0] =
			(struct plumb_interval){ 1000 * (uint64_t)i, 1000 * (uint64_t)i + 100 };
		wait_for_look(copies);
	}
	told = plumb_copies_end(copies);
	assert_int_equal(told.fate, PLUMB_FATE_ATTRIBUTED);
	assert_true(told.looks > LOOKS);
	assert_true(told.bytes && told.bytes <= told.bytes_most);
	assert_true(told.bytes_most < told.bytes_bound);
	n = read_noted();
	assert_int_equal(n.header->looks, told.looks);
	check_value(&n, early);
	check_value(&n, late);
	assert_int_equal(all_of(&n, total, PLUMB_COPIES_KERNELS).count, 3 * LOOKS);
	assert_int_equal(all_of(&n, total, PLUMB_COPIES_KERNELS).sum, 600 * LOOKS);
	assert_int_equal(all_of(&n, total, PLUMB_COPIES_COPY_BYTES).sum, 4096 * LOOKS);
	assert_int_equal(all_of(&n, total, PLUMB_COPIES_BUSY).sum, 100 * LOOKS);
	assert_int_equal(all_of(&n, total, PLUMB_COPIES_SETS).count, 0);
	free(n.bytes);
}

/* It is read at the next look; if it stays torn, what it had before is there. */
static void
torn_values_are_read_later(void **state)
{
	struct plumb_record_value *healed = new_value(PLUMB_METRIC_OP_TIME);
	struct plumb_record_value *torn = new_value(PLUMB_METRIC_OP_TIME);
	struct plumb_copies *copies = plumb_copies_new(&regions, NULL);
	struct noted n;

	(void)state;
	plumb_value_add(healed, 10);
	plumb_value_add(torn, 20);
	wait_for_look(copies);
	plumb_sequence_begin(&healed->sequence);
	plumb_sequence_begin(&torn->sequence);
	plumb_observations_add(&healed->moments, 30);
	plumb_observations_add(&torn->moments, 40);
	wait_for_look(copies);
	plumb_sequence_end(&healed->sequence);
	assert_int_equal(plumb_copies_end(copies).fate, PLUMB_FATE_ATTRIBUTED);
	n = read_noted();
	check_value(&n, healed);
	assert_int_equal(all_of(&n, torn, PLUMB_COPIES_ALL).sum, 20);
	assert_int_equal(all_of(&n, torn, PLUMB_COPIES_ALL).count, 1);
	free(n.bytes);
}

/* A range of an hour that ends after the first look was open before: the parts have no more than
 * the time of the run. Its calls, and how long they were, count where it ends. */
static void
time_before_the_run_is_not_in_its_parts(void **state)
{
	const int64_t hour = INT64_C(3600) * 1000000000;
	struct plumb_record_value *own = new_value(PLUMB_METRIC_OP_TIME);
	struct plumb_record_value *length = new_value(PLUMB_METRIC_OP_DURATION);
	struct plumb_copies *copies = plumb_copies_new(&regions, NULL);
	struct noted n;

	(void)state;
	wait_for_look(copies);
	plumb_value_add(own, hour);
	plumb_value_add(length, hour);
	wait_for_look(copies);
	assert_int_equal(plumb_copies_end(copies).fate, PLUMB_FATE_ATTRIBUTED);
	n = read_noted();
	assert_true(all_of(&n, own, PLUMB_COPIES_ALL).sum > 0);
	assert_true(all_of(&n, own, PLUMB_COPIES_ALL).sum <=
	            (int64_t)(n.parts[n.header->parts - 1].end - n.parts[0].start));
	assert_int_equal(all_of(&n, own, PLUMB_COPIES_ALL).count, 1);
	check_value(&n, length);
	free(n.bytes);
}

/* A file of that name is not replaced. */
static void
a_file_in_its_place_stays(void **state)
{
	struct plumb_copies *copies = plumb_copies_new(&regions, NULL);
	FILE *file = fopen(copies_path(), "w");
	struct stat status;

	(void)state;
	fputs("mine", file);
	fclose(file);
	plumb_value_add(new_value(PLUMB_METRIC_OP_TIME), 1);
	assert_int_equal(plumb_copies_end(copies).fate, PLUMB_FATE_NOT_WRITTEN);
	assert_int_equal(stat(copies_path(), &status), 0);
	assert_int_equal(status.st_size, 4);
}

static int
small_limit_body(void)
{
	struct rlimit limit = { 16384, 16384 };
	struct plumb_copies *copies = plumb_copies_new(&regions, NULL);

	signal(SIGXFSZ, SIG_IGN); /* as plumb run does */
	for (int i = 0; i < 2000; i++)
		plumb_value_add(new_value(PLUMB_METRIC_OP_TIME), 1);
	CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
	CHECK(plumb_copies_end(copies).fate == PLUMB_FATE_NOT_WRITTEN);
	CHECK(access(copies_path(), F_OK)); /* no half of it */
	return 0;
}

static void
no_room_leaves_no_file(void **state)
{
	(void)state;
	check_child(small_limit_body);
}

static void
no_memory_is_told(void **state)
{
	struct plumb_copies_told told = plumb_copies_end(NULL);

	(void)state;
	assert_int_equal(told.fate, PLUMB_FATE_NO_MEMORY);
	assert_int_equal(told.looks, 0);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(parts_add_up_to_what_the_region_has),
		T(torn_values_are_read_later),
		T(time_before_the_run_is_not_in_its_parts),
		T(a_file_in_its_place_stays),
		T(no_room_leaves_no_file),
		T(no_memory_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
