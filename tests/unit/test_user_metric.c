/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the program's own, from the region through settle, join, store and the lookups. */
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "model/builder.h"
#include "model/metric.h"
#include "region/writer.h"
#include "settle/join.h"
#include "settle/settle.h"
#include "store/store.h"

static char folder[64], path[128];
static char regions[4][128];
static unsigned region_count;

static int
setup(void **state)
{
	(void)state;
	region_count = 0;
	snprintf(folder, sizeof folder, "/tmp/plumb-metric-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof path, "%s/x.plumb", folder);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	unlink(path);
	for (unsigned i = 0; i < region_count; i++)
		unlink(regions[i]);
	return rmdir(folder);
}

/* ---- building ---- */

static uint32_t
metric(struct plumb_builder *b, const char *name)
{
	return plumb_builder_metric(b, plumb_builder_text(b, name), PLUMB_NONE);
}

static void
observe(struct plumb_builder *b, uint32_t number, int64_t x)
{
	struct plumb_value value = { 0, number, PLUMB_NONE, x, 1, x, x, (double)x, 0 };
	assert_int_equal(plumb_builder_value(b, &value), 0);
}

static struct plumb_profile
finish(struct plumb_builder *b)
{
	struct plumb_profile profile;
	struct plumb_error error = { 0 };
	if (plumb_builder_finish(b, &profile, &error))
		fail_msg("%s", error.message);
	plumb_builder_free(b);
	return profile;
}

/* The sum of the metric NAME over the profile. */
static int64_t
sum(const struct plumb_profile *profile, const char *name)
{
	uint32_t number = plumb_profile_metric_find(profile, name);
	int64_t all = 0;
	assert_int_not_equal(number, 0);
	assert_string_equal(plumb_profile_metric(profile, number).name, name);
	for (uint32_t i = 0; i < profile->values_count; i++)
		if (profile->values[i].metric == number)
			all += profile->values[i].sum;
	return all;
}

static void
test_numbers_by_name(void **state)
{
	(void)state;
	struct plumb_builder *b = plumb_builder_new();
	uint32_t tokens = metric(b, "tokens");
	assert_int_equal(tokens, PLUMB_METRIC_USER);
	assert_int_equal(metric(b, "loss"), PLUMB_METRIC_USER + 1);
	assert_int_equal(metric(b, "tokens"), tokens);
	assert_int_equal(plumb_builder_metric(b, PLUMB_NONE, PLUMB_NONE), metric(b, "?"));
	assert_int_equal(metric(b, ""), metric(b, "?"));
	/* One that would pass for plumb's own. */
	uint32_t taken = metric(b, "gpu.time");
	assert_true(taken > PLUMB_METRIC_USER);
	assert_int_equal(metric(b, "user.gpu.time"), taken);
	observe(b, taken, 5);
	observe(b, tokens, 6);
	struct plumb_profile profile = finish(b);
	assert_int_equal(profile.user_metrics_count, 4);
	assert_int_equal(sum(&profile, "user.gpu.time"), 5);
	assert_int_equal(sum(&profile, "tokens"), 6);
	assert_int_equal(plumb_profile_metric_find(&profile, "gpu.time"), PLUMB_METRIC_GPU_TIME);
	assert_int_equal(plumb_profile_metric_find(&profile, "token"), 0);
	assert_null(plumb_profile_metric(&profile, PLUMB_METRIC_USER + 4).name);
	assert_null(plumb_profile_metric(&profile, PLUMB_METRIC_COUNT).name);
	assert_null(plumb_profile_metric(&profile, UINT32_MAX).name);
	for (uint32_t slot = 0; slot < plumb_metric_slots(&profile); slot++)
		assert_int_equal(plumb_metric_slot(plumb_metric_at(slot)), slot);
	plumb_profile_free(&profile);
}

static void
test_unknown_numbers_are_refused(void **state)
{
	(void)state;
	static const uint32_t numbers[] = { 0, PLUMB_METRIC_COUNT, PLUMB_METRIC_USER - 1,
		                            PLUMB_METRIC_USER + 1, UINT32_MAX };
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		struct plumb_builder *b = plumb_builder_new();
		struct plumb_value value = { 0, numbers[i], PLUMB_NONE, 1, 1, 1, 1, 1, 0 };
		metric(b, "tokens");
		assert_int_not_equal(plumb_builder_value(b, &value), 0);
		plumb_builder_free(b);
	}
}

static void
test_most(void **state)
{
	(void)state;
	struct plumb_builder *b = plumb_builder_new();
	char name[32];
	for (uint32_t i = 0; i < PLUMB_USER_METRICS_MOST; i++) {
		snprintf(name, sizeof name, "m%u", i);
		assert_int_equal(metric(b, name), PLUMB_METRIC_USER + i);
	}
	assert_int_equal(metric(b, "one more"), 0);
	assert_int_equal(metric(b, "m7"), PLUMB_METRIC_USER + 7);
	plumb_builder_free(b);
}

static void
test_joined_by_name(void **state)
{
	(void)state;
	struct plumb_builder *b = plumb_builder_new();
	observe(b, metric(b, "tokens"), 1);
	observe(b, metric(b, "loss"), 20);
	struct plumb_profile first = finish(b), joined;
	b = plumb_builder_new();
	observe(b, metric(b, "images"), 300);
	observe(b, metric(b, "loss"), 40);
	observe(b, metric(b, "tokens"), 5);
	observe(b, PLUMB_METRIC_OP_TIME, 7);
	struct plumb_profile second = finish(b);
	const struct plumb_profile *both[] = { &first, &second };
	struct plumb_error error = { 0 };
	assert_int_equal(plumb_join(both, 2, &joined, &error), 0);
	assert_int_equal(joined.user_metrics_count, 3);
	assert_int_equal(sum(&joined, "tokens"), 6);
	assert_int_equal(sum(&joined, "loss"), 60);
	assert_int_equal(sum(&joined, "images"), 300);
	assert_int_equal(sum(&joined, "op.time"), 7);
	plumb_profile_free(&joined);
	plumb_profile_free(&first);
	plumb_profile_free(&second);
}

/* ---- settling ---- */

static struct plumb_region region;
static struct plumb_arena arena, other;

static void *
record(struct plumb_arena *in, enum plumb_record_type type, size_t length)
{
	void *made = plumb_arena_append(in, type, length);
	assert_non_null(made);
	plumb_arena_commit(in, made);
	return made;
}

static plumb_id
begin(uint32_t pid)
{
	struct plumb_error error = { 0 };
	snprintf(regions[region_count], sizeof regions[0], "%s/%u.region", folder, pid);
	if (plumb_region_create(&region, regions[region_count++], 1 << 20, &error))
		fail_msg("%s", error.message);
	atomic_store(&region.header->state, PLUMB_REGION_ENDED);
	plumb_arena_init(&arena, &region);
	plumb_arena_init(&other, &region);
	struct plumb_record_process *process =
		record(&arena, PLUMB_RECORD_PROCESS, sizeof *process);
	process->pid = pid;
	process->rank = process->local_rank = -1;
	struct plumb_record_thread *thread = record(&arena, PLUMB_RECORD_THREAD, sizeof *thread);
	thread->tid = pid;
	return plumb_region_id(&region, thread);
}

static void
name_metric(uint32_t number, const char *name, size_t length)
{
	plumb_id text = name ? plumb_arena_string(&other, name, strlen(name)) : 0;
	struct plumb_record_metric *m = record(&other, PLUMB_RECORD_METRIC, length);
	m->number = number;
	m->name = text;
}

static void
value(plumb_id track, uint32_t number, int64_t x)
{
	struct plumb_record_value *v = record(&arena, PLUMB_RECORD_VALUE, sizeof *v);
	v->track = track;
	v->metric = (uint16_t)number;
	plumb_value_add(v, x);
}

static int64_t
ledger(const struct plumb_profile *profile, enum plumb_source source, enum plumb_fate fate)
{
	int64_t count = 0;
	for (uint32_t i = 0; i < profile->ledger_count; i++)
		if (profile->ledger[i].source == source && profile->ledger[i].fate == fate)
			count += profile->ledger[i].count;
	return count;
}

/* Values may stand before the record that names their metric; processes number for themselves. */
static void
test_settled(void **state)
{
	(void)state;
	const char *list[] = { folder };
	const struct plumb_settle_options options = { 0 };
	struct plumb_profile profile;
	struct plumb_error error = { 0 };
	char *warnings = NULL;
	plumb_id track = begin(1);
	value(track, PLUMB_METRIC_USER, 10);
	value(track, PLUMB_METRIC_USER + 1, 200);
	value(track, PLUMB_METRIC_USER + 2, 3000); /* nobody says what it is */
	value(track, UINT16_MAX, 1);
	name_metric(PLUMB_METRIC_USER, "tokens", sizeof(struct plumb_record_metric));
	name_metric(PLUMB_METRIC_USER + 1, "loss", sizeof(struct plumb_record_metric));
	name_metric(PLUMB_METRIC_USER + 5, "op.time", sizeof(struct plumb_record_metric));
	value(track, PLUMB_METRIC_USER + 5, 4);
	/* Damaged ones: of plumb's numbers, far too high, too short, without a name. */
	name_metric(PLUMB_METRIC_OP_TIME, "bad", sizeof(struct plumb_record_metric));
	name_metric(PLUMB_METRIC_USER + 60000, "bad", sizeof(struct plumb_record_metric));
	name_metric(UINT32_MAX, "bad", sizeof(struct plumb_record_metric));
	name_metric(PLUMB_METRIC_USER + 2, "bad", sizeof(struct plumb_record_metric) - 8);
	name_metric(PLUMB_METRIC_USER + 3, NULL, sizeof(struct plumb_record_metric));
	plumb_region_close(&region);
	track = begin(2);
	name_metric(PLUMB_METRIC_USER, "loss", sizeof(struct plumb_record_metric));
	name_metric(PLUMB_METRIC_USER + 1, "loss", sizeof(struct plumb_record_metric));
	value(track, PLUMB_METRIC_USER, 50);
	value(track, PLUMB_METRIC_USER + 1, 7);
	plumb_region_close(&region);

	int code = plumb_settle(list, 1, &options, &profile, &warnings, &error);
	if (code)
		fail_msg("%s", error.message);
	assert_int_equal(sum(&profile, "tokens"), 10);
	assert_int_equal(sum(&profile, "loss"), 257);
	assert_int_equal(sum(&profile, "user.op.time"), 4);
	assert_int_equal(plumb_profile_metric_find(&profile, "bad"), 0);
	assert_int_equal(ledger(&profile, PLUMB_SOURCE_VALUE, PLUMB_FATE_UNKNOWN_LAYOUT), 2);
	assert_int_equal(ledger(&profile, PLUMB_SOURCE_REGION, PLUMB_FATE_UNKNOWN_LAYOUT), 3);
	free(warnings);
	plumb_profile_free(&profile);
}

/* ---- storing ---- */

static void
write_sample(void)
{
	struct plumb_builder *b = plumb_builder_new();
	struct plumb_error error = { 0 };
	observe(b, metric(b, "tokens"), 5);
	observe(b, metric(b, "größe, \"quoted\"\n"), 6);
	observe(b, PLUMB_METRIC_OP_TIME, 7);
	struct plumb_profile profile = finish(b);
	if (plumb_store_write(&profile, path, NULL, NULL, &error))
		fail_msg("%s", error.message);
	plumb_profile_free(&profile);
}

static void
test_stored(void **state)
{
	(void)state;
	struct plumb_profile profile;
	struct plumb_error error = { 0 };
	write_sample();
	if (plumb_store_read(&profile, path, &error))
		fail_msg("%s", error.message);
	assert_int_equal(profile.user_metrics_count, 2);
	assert_int_equal(sum(&profile, "tokens"), 5);
	assert_int_equal(sum(&profile, "größe, \"quoted\"\n"), 6);
	assert_int_equal(sum(&profile, "op.time"), 7);
	plumb_profile_free(&profile);
}

static void
change(const char *sql)
{
	sqlite3 *db;
	char *message = NULL;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	/* The schema's own NOT NULL must not save the reader. */
	sqlite3_exec(db,
	             "PRAGMA writable_schema=ON; UPDATE sqlite_master SET"
	             " sql=replace(sql, ' NOT NULL', '') WHERE type='table';"
	             "PRAGMA writable_schema=RESET",
	             NULL, NULL, NULL);
	if (sqlite3_exec(db, sql, NULL, NULL, &message))
		fail_msg("%s: %s", sql, message);
	sqlite3_close(db);
}

static void
test_hostile_rows_are_refused(void **state)
{
	(void)state;
	static const char *const changes[] = {
		"UPDATE metrics SET name=NULL WHERE id=1024",
		"UPDATE metrics SET name='' WHERE id=1024",
		"UPDATE metrics SET name=x'41' WHERE id=1024",
		"UPDATE metrics SET name=CAST(x'ff41' AS TEXT) WHERE id=1024",
		"UPDATE metrics SET name='gpu.time' WHERE id=1024",
		"UPDATE metrics SET name='tokens' WHERE id=1025",
		"UPDATE metrics SET unit=x'41' WHERE id=1024",
		"UPDATE metrics SET id=1030 WHERE id=1025",
		"UPDATE metrics SET id=1030 WHERE id=1024",
		"UPDATE metrics SET id=-1 WHERE id=1",
		"DELETE FROM metrics WHERE id=1024",
		"DELETE FROM metrics WHERE id=1025",
		"DROP TABLE metrics",
		"DROP TABLE metrics; CREATE VIEW metrics AS SELECT 1024 AS id, 'x' AS name, '' AS "
		"unit",
		"UPDATE context_values SET metric=1026 WHERE metric=1025",
		"UPDATE context_values SET metric=1023 WHERE metric=1024",
		"UPDATE context_values SET metric=4294967295 WHERE metric=1025",
		"WITH RECURSIVE n(i) AS (SELECT 1026 UNION ALL SELECT i + 1 FROM n WHERE i < 6000)"
		" INSERT INTO metrics SELECT i, 'm' || i, '', 'sum', 'user', '' FROM n",
	};
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		struct plumb_profile profile;
		struct plumb_error error = { 0 };
		write_sample();
		change(changes[i]);
		if (!plumb_store_read(&profile, path, &error))
			fail_msg("accepted: %s", changes[i]);
		assert_int_equal(error.code, PLUMB_EINPUT);
		assert_non_null(strstr(error.message, path));
	}
}

/* Whatever a person's own tools add to plumb's own rows does no harm. */
static void
test_accepted_rows(void **state)
{
	(void)state;
	struct plumb_profile profile;
	struct plumb_error error = { 0 };
	write_sample();
	change("UPDATE metrics SET unit=NULL WHERE id=1024;"
	       "INSERT INTO metrics VALUES(900, 'future', 'ns', 'sum', 'x', 'of a newer plumb')");
	if (plumb_store_read(&profile, path, &error))
		fail_msg("%s", error.message);
	assert_string_equal(plumb_profile_metric(&profile, PLUMB_METRIC_USER).unit, "");
	assert_int_equal(plumb_profile_metric_find(&profile, "future"), 0);
	plumb_profile_free(&profile);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_numbers_by_name, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unknown_numbers_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_most, setup, teardown),
		cmocka_unit_test_setup_teardown(test_joined_by_name, setup, teardown),
		cmocka_unit_test_setup_teardown(test_settled, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stored, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile_rows_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_accepted_rows, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
