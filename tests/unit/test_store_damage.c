/* SPDX-License-Identifier: Apache-2.0 */
/* Profile files that are none, of another schema, changed by hand or damaged. */
#include <sys/stat.h>

#include "store_files.h"

/* ---- reading what is not a profile ---- */

static void
assert_not_read(const char *name, int wanted, const char *says)
{
	struct plumb_profile profile;
	struct plumb_error error = { 0 };
	assert_refused(plumb_store_read(&profile, name, &error), wanted, &error, name);
	if (!strstr(error.message, says))
		fail_msg("\"%s\" is not in: %s", says, error.message);
	assert_null(profile.strings);
	assert_int_equal(plumb_store_read(&profile, name, NULL), wanted);
}

static void
put_file(const char *bytes, size_t count)
{
	FILE *file = fopen(other, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, count, file), count);
	assert_int_equal(fclose(file), 0);
}

static void
test_not_a_profile(void **state)
{
	(void)state;
	assert_not_read(other, PLUMB_ESYSTEM, "No such file");
	assert_not_read(folder, PLUMB_EINPUT, "folder");
	assert_not_read("/dev/null", PLUMB_EINPUT, "regular");
	put_file("", 0);
	assert_not_read(other, PLUMB_EINPUT, "empty");
	put_file("PLUMBRG\n and more", 17);
	assert_not_read(other, PLUMB_EINPUT, "settle");
	put_file("{\"traceEvents\": []}", 19);
	assert_not_read(other, PLUMB_EINPUT, "not a plumb profile");
	unlink(other);
	assert_int_equal(mkfifo(other, 0600), 0);
	assert_not_read(other, PLUMB_EINPUT, "regular");
	unlink(other);
	sql(other, "CREATE TABLE t(x)");
	assert_not_read(other, PLUMB_EINPUT, "not a plumb profile");
	unlink(other);
	sql(other, "PRAGMA application_id=1347177794; PRAGMA user_version=1; CREATE TABLE t(x)");
	assert_not_read(other, PLUMB_EINPUT, "missing");
}

static void
test_refused_contents(void **state)
{
	(void)state;
	static const char *const changes[] = {
		"PRAGMA user_version=99",
		"PRAGMA user_version=0",
		"PRAGMA application_id=7",
		"DROP TABLE tracks",
		"DROP TABLE run; CREATE VIEW run AS SELECT 0 id, NULL command, 0 start_ns,"
		" 0 wall_ns, 0 exit_code, 0 overhead_ns, NULL tool_version, 1 analyses",
		"ALTER TABLE frames RENAME COLUMN file TO place",
		"DELETE FROM run",
		"INSERT INTO run VALUES(1, NULL, 1, 1, 1, 1, NULL, 1)",
		"DELETE FROM contexts",
		"DELETE FROM contexts WHERE id=3",
		"UPDATE contexts SET id=-1 WHERE id=0",
		"UPDATE contexts SET parent=NULL WHERE id=2",
		"UPDATE contexts SET parent=0 WHERE id=0",
		"UPDATE contexts SET parent=id WHERE id=2",
		"UPDATE contexts SET parent=id+1 WHERE id=2",
		"UPDATE contexts SET parent=0 WHERE id=4",
		"UPDATE contexts SET frame=1000 WHERE id=2",
		"UPDATE contexts SET frame=-1 WHERE id=2",
		"UPDATE contexts SET frame=NULL WHERE id=2",
		"UPDATE contexts SET frame=1 WHERE id=0",
		"UPDATE contexts SET last=last-1 WHERE id=1",
		"UPDATE contexts SET last=4294967296 WHERE id=1",
		"UPDATE contexts SET depth=depth+1 WHERE id=3",
		"UPDATE contexts SET flags=-1 WHERE id=3",
		"UPDATE contexts SET flags='x' WHERE id=3",
		"UPDATE frames SET kind='alien' WHERE id=1",
		"UPDATE frames SET kind=CAST(x'ff' AS TEXT) WHERE id=1",
		"UPDATE frames SET name=x'41' WHERE id=1",
		"UPDATE frames SET name=CAST(x'ff41' AS TEXT) WHERE id=1",
		"UPDATE frames SET name=CAST(x'410041' AS TEXT) WHERE id=1",
		"UPDATE frames SET line=-1 WHERE id=1",
		"UPDATE frames SET line=4294967296 WHERE id=1",
		"UPDATE frames SET line='ten' WHERE id=1",
		"UPDATE context_values SET metric=0 WHERE id=0",
		"UPDATE context_values SET metric=999 WHERE id=0",
		"UPDATE context_values SET track=99 WHERE id=0",
		"UPDATE context_values SET context=99 WHERE id=0",
		"UPDATE context_values SET context=0 WHERE id=5",
		"UPDATE context_values SET metric=19"
		" WHERE id=(SELECT min(id) FROM context_values WHERE metric=4)",
		"UPDATE context_values SET metric=4, track=0 WHERE metric=9",
		"UPDATE context_values SET count=0 WHERE id=0",
		"UPDATE context_values SET count=-5 WHERE id=0",
		"UPDATE context_values SET sum='x' WHERE id=0",
		"UPDATE context_values SET mean=9e999 WHERE id=0",
		"UPDATE context_values SET m2=-1 WHERE id=0",
		"UPDATE context_values SET min=max+1 WHERE id=0",
		"UPDATE context_values SET id=1000 WHERE id=0",
		"UPDATE variants SET count=0",
		"UPDATE variants SET track=5",
		"UPDATE origins SET origin=1000",
		"UPDATE origins SET reason='because'",
		"UPDATE tracks SET kind='lane'",
		"UPDATE tracks SET process=2",
		"UPDATE tracks SET device=2",
		"UPDATE clocks SET slope=NULL",
		"UPDATE clocks SET device=7",
		"UPDATE ledger SET source='nowhere'",
		"UPDATE ledger SET fate='eaten'",
		"UPDATE ledger SET process=3",
		"UPDATE environment SET key=NULL",
		"UPDATE findings SET severity='deadly'",
		"UPDATE findings SET context=99",
		"UPDATE code_objects SET process=9",
		"UPDATE code_objects SET bytes='many'",
		"UPDATE series SET device=9",
		"UPDATE series SET width_ns=1.5",
		"UPDATE memory_series SET track=99",
		"UPDATE memory_series SET max_bytes=NULL",
		"UPDATE counter_series SET device=99",
		"UPDATE counter_series SET process=99",
		"UPDATE counter_series SET width_ns=NULL",
		"UPDATE counter_series SET samples=-1",
		"UPDATE counter_series SET mean=NULL",
		"UPDATE counter_series SET max='much'",
		"UPDATE cpu_samples SET track=77",
		"UPDATE cpu_samples SET track=NULL",
		"UPDATE cpu_samples SET context=99",
		"UPDATE cpu_samples SET cpu_ns=-1",
		"UPDATE cpu_samples SET cpu_ns=NULL",
		"UPDATE cpu_samples SET at_ns='noon'",
		"UPDATE cpu_samples SET at_ns=-id",
		"UPDATE cpu_samples SET track=2-track",
		"UPDATE span_chunks SET track=77",
		"UPDATE span_chunks SET track=NULL",
		"UPDATE span_chunks SET count=count+1",
		"UPDATE span_chunks SET count=0",
		"UPDATE span_chunks SET count=1000000000000",
		"UPDATE span_chunks SET codec='gzip'",
		"UPDATE span_chunks SET context=x''",
		"UPDATE span_chunks SET context=start",
		"UPDATE span_chunks SET start=zeroblob(100)",
		"UPDATE span_chunks SET duration='text'",
		"UPDATE span_chunks SET start_ns=9223372036854775807",
		"UPDATE span_chunks SET correlation=NULL",
		"UPDATE span_chunks SET correlation=zeroblob(3)",
		"UPDATE span_chunks SET correlation=context WHERE source='trace'",
	};
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		struct plumb_profile profile;
		struct plumb_error error = { 0 };
		write_sample();
		/* The schema's own NOT NULL must not save the reader. */
		sqlite3 *db;
		assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
		sqlite3_exec(db,
		             "PRAGMA writable_schema=ON; UPDATE sqlite_master SET"
		             " sql=replace(sql, ' NOT NULL', '') WHERE type='table';"
		             "PRAGMA writable_schema=RESET",
		             NULL, NULL, NULL);
		char *message = NULL;
		if (sqlite3_exec(db, changes[i], NULL, NULL, &message))
			fail_msg("%s: %s", changes[i], message);
		sqlite3_close(db);
		if (!plumb_store_read(&profile, path, &error))
			fail_msg("accepted: %s", changes[i]);
		assert_refused(error.code, PLUMB_EINPUT, &error, path);
	}
}

/* What a person may do to a profile without making it unreadable. */
static void
test_accepted_contents(void **state)
{
	(void)state;
	write_sample();
	sql(path, "CREATE TABLE mine(x); CREATE INDEX i ON frames(name); CREATE VIEW v AS SELECT 1;"
	          "INSERT INTO mine VALUES(1); PRAGMA journal_mode=WAL; VACUUM;"
	          "INSERT INTO span_chunks SELECT 3, track, 'mine', start_ns, end_ns, count,"
	          " total_ns, busy_ns, codec, context, start, duration, NULL, NULL, NULL, NULL"
	          " FROM span_chunks"
	          " WHERE id = 0");
	struct plumb_profile profile;
	read_profile(&profile, path);
	assert_int_equal(profile.work_count, 5); /* other sources are not the newest work */
	assert_int_equal(profile.spans_count, 9);
	plumb_profile_free(&profile);
}

/* Whoever needs totals does not touch the trace, which may be damaged then. */
static void
test_totals(void **state)
{
	(void)state;
	struct plumb_profile profile;
	struct plumb_error error = { 0 };
	write_sample();
	sql(path, "UPDATE span_chunks SET context = x'00' WHERE source = 'trace'");
	assert_int_equal(plumb_store_read_totals(&profile, path, &error), 0);
	assert_int_equal(profile.work_count, 5);
	assert_int_equal(profile.spans_count, 0);
	assert_int_equal(profile.contexts_count, 15);
	plumb_profile_free(&profile);
	assert_int_equal(plumb_store_read(&profile, path, &error), PLUMB_EINPUT);
}

/* A file of the first schema has neither the column nor spans. */
static void
test_first_schema(void **state)
{
	(void)state;
	struct plumb_profile profile;
	write_sample();
	sql(path, "DELETE FROM span_chunks WHERE source = 'trace';"
	          "ALTER TABLE span_chunks DROP COLUMN correlation;"
	          "ALTER TABLE span_chunks DROP COLUMN bytes; PRAGMA user_version = 1");
	read_profile(&profile, path);
	assert_int_equal(profile.work_count, 5);
	assert_int_equal(profile.spans_count, 0);
	plumb_profile_free(&profile);
}

/* Nor does one of the second say how much a copy moved. */
static void
test_second_schema(void **state)
{
	(void)state;
	struct plumb_profile profile;
	write_sample();
	read_profile(&profile, path);
	uint32_t spans = profile.spans_count;
	plumb_profile_free(&profile);
	sql(path, "ALTER TABLE span_chunks DROP COLUMN bytes; PRAGMA user_version = 2");
	read_profile(&profile, path);
	assert_int_equal(profile.spans_count, spans);
	for (uint32_t i = 0; i < spans; i++)
		assert_int_equal(profile.spans[i].bytes, 0);
	plumb_profile_free(&profile);
}

/* Nor one of the third between which devices. */
static void
test_third_schema(void **state)
{
	(void)state;
	struct plumb_profile profile;
	write_sample();
	sql(path, "ALTER TABLE span_chunks DROP COLUMN from_device;"
	          "ALTER TABLE span_chunks DROP COLUMN to_device;"
	          "ALTER TABLE context_values DROP COLUMN from_device;"
	          "ALTER TABLE context_values DROP COLUMN to_device;"
	          "ALTER TABLE run DROP COLUMN analyses; PRAGMA user_version = 3");
	read_profile(&profile, path);
	assert_true(profile.spans_count && profile.values_count);
	for (uint32_t i = 0; i < profile.spans_count; i++)
		assert_true(!profile.spans[i].ends.from && !profile.spans[i].ends.to);
	for (uint32_t i = 0; i < profile.values_count; i++)
		assert_true(!profile.values[i].ends.from && !profile.values[i].ends.to);
	plumb_profile_free(&profile);
}

/* A device that is not there. */
static void
test_unknown_end(void **state)
{
	(void)state;
	struct plumb_profile profile;
	struct plumb_error error;
	write_sample();
	sql(path, "UPDATE context_values SET from_device = 99 WHERE id = 0");
	assert_int_equal(plumb_store_read(&profile, path, &error), PLUMB_EINPUT);
}

/* ---- damage ---- */

static char *
load(size_t *size)
{
	FILE *file = fopen(path, "rb");
	assert_non_null(file);
	fseek(file, 0, SEEK_END);
	*size = (size_t)ftell(file);
	rewind(file);
	char *bytes = malloc(*size);
	assert_int_equal(fread(bytes, 1, *size, file), *size);
	fclose(file);
	return bytes;
}

/* Reads OTHER; whatever it holds, it is a usable profile or one clear error. */
static bool
read_damaged(void)
{
	struct plumb_profile p;
	struct plumb_error error = { 0 };
	int code = plumb_store_read(&p, other, &error);
	if (code) {
		assert_refused(code, PLUMB_EINPUT, &error, other);
		return false;
	}
	struct plumb_stat *stats = calloc(p.contexts_count, sizeof *stats);
	for (uint32_t metric = 1; metric < PLUMB_METRIC_COUNT; metric++)
		plumb_inclusive(&p, metric, PLUMB_NONE, NULL, stats);
	free(stats);
	plumb_profile_free(&p);
	return true;
}

static void
test_truncation(void **state)
{
	(void)state;
	write_sample();
	size_t size;
	char *bytes = load(&size);
	for (size_t i = 0; i < 400; i++) {
		put_file(bytes, size * i / 400);
		assert_false(read_damaged());
	}
	put_file(bytes, size);
	assert_true(read_damaged());
	free(bytes);
}

static void
test_bit_flips(void **state)
{
	(void)state;
	write_sample();
	size_t size;
	char *bytes = load(&size);
	unsigned refused = 0;
	for (uint32_t seed = 1; seed <= 500; seed++) {
		char *copy = malloc(size);
		memcpy(copy, bytes, size);
		uint32_t random = seed * 2654435761u;
		for (uint32_t flips = 1 + seed % 40; flips; flips--) {
			random = random * 1664525u + 1013904223u;
			/* Half of them in the heads of pages, where it hurts. */
			size_t at = ((uint64_t)random * size) >> 32;
			if (flips & 1)
				at = at / 4096 * 4096 + at % 64;
			copy[at] ^= (char)(1 << (random >> 5 & 7));
		}
		put_file(copy, size);
		refused += !read_damaged();
		free(copy);
	}
	assert_true(refused > 170);
	free(bytes);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_not_a_profile), T(test_refused_contents), T(test_accepted_contents),
		T(test_totals),        T(test_first_schema),     T(test_second_schema),
		T(test_third_schema),  T(test_unknown_end),      T(test_truncation),
		T(test_bit_flips),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
