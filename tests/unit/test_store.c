/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profile files: what is written is read, what cannot be written leaves nothing behind, and what is
 * damaged is refused. `test_store PATH` writes the sample profile to PATH instead (for
 * tests/e2e/test_profile_format.py).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "failing_malloc.h"
#include "sample.h"
#include "store/schema.h"
#include "store/store.h"

#define SKIPPED 77

static char folder[64], path[128], other[128];

static int
setup(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/plumb-store-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof path, "%s/a b%%?#.plumb", folder); /* as nasty as a name may be */
	snprintf(other, sizeof other, "%s/other", folder);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	unlink(path);
	unlink(other);
	return rmdir(folder);
}

static unsigned
files_in_folder(const char *name)
{
	unsigned count = 0;
	DIR *dir = opendir(name);
	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2;
}

static void
write_profile(const struct plumb_profile *profile, const char *to)
{
	struct plumb_error error = { 0 };
	if (plumb_store_write(profile, to, NULL, NULL, &error))
		fail_msg("%s", error.message);
}

static void
read_profile(struct plumb_profile *profile, const char *from)
{
	struct plumb_error error = { 0 };
	if (plumb_store_read(profile, from, &error))
		fail_msg("%s", error.message);
}

static void
write_sample(void)
{
	struct plumb_profile profile;
	struct sample_ids ids;
	assert_int_equal(sample_build(&profile, &ids, NULL), 0);
	write_profile(&profile, path);
	plumb_profile_free(&profile);
}

/* ---- two profiles are the same, but for the numbers of their strings ---- */

static void
same_text(const struct plumb_profile *a, uint32_t x, const struct plumb_profile *b, uint32_t y)
{
	const char *p = plumb_text(a, x), *q = plumb_text(b, y);
	assert_int_equal(!p, !q);
	if (p)
		assert_string_equal(p, q);
}

#define SAME_TEXT(column, field)                                                                   \
	do {                                                                                       \
		assert_int_equal(a->column##_count, b->column##_count);                            \
		for (uint32_t i_ = 0; i_ < a->column##_count; i_++) {                              \
			same_text(a, a->column[i_].field, b, b->column[i_].field);                 \
			b->column[i_].field = a->column[i_].field;                                 \
		}                                                                                  \
	} while (0)
#define SAME_ROWS(column)                                                                          \
	do {                                                                                       \
		assert_int_equal(a->column##_count, b->column##_count);                            \
		if (a->column##_count)                                                             \
			assert_memory_equal(a->column, b->column,                                  \
			                    a->column##_count * sizeof *a->column);                \
	} while (0)

static void
assert_same(const struct plumb_profile *a, struct plumb_profile *b)
{
	SAME_TEXT(frames, name);
	SAME_TEXT(frames, file);
	SAME_TEXT(frames, display);
	SAME_TEXT(variants, shapes);
	SAME_TEXT(processes, host);
	SAME_TEXT(processes, command);
	SAME_TEXT(tracks, name);
	SAME_TEXT(devices, name);
	SAME_TEXT(devices, uuid);
	SAME_TEXT(ledger, detail);
	SAME_TEXT(environment, key);
	SAME_TEXT(environment, value);
	SAME_TEXT(findings, id);
	SAME_TEXT(findings, rule);
	SAME_TEXT(findings, title);
	SAME_TEXT(findings, advice);
	SAME_TEXT(findings, evidence);
	SAME_TEXT(code_objects, kind);
	SAME_TEXT(code_objects, path);
	SAME_TEXT(code_objects, build_id);
	SAME_TEXT(code_objects, hash);
	SAME_ROWS(frames);
	SAME_ROWS(contexts);
	SAME_ROWS(origins);
	SAME_ROWS(processes);
	SAME_ROWS(tracks);
	SAME_ROWS(devices);
	SAME_ROWS(environment);
	SAME_ROWS(work);
	SAME_ROWS(series);
	SAME_ROWS(device_processes);
	SAME_ROWS(spans);
	/* These have padding, or a NAN. */
	assert_int_equal(a->values_count, b->values_count);
	for (uint32_t i = 0; i < a->values_count; i++) {
		const struct plumb_value *v = &a->values[i], *w = &b->values[i];
		assert_true(v->context == w->context && v->metric == w->metric &&
		            v->track == w->track && v->sum == w->sum && v->count == w->count &&
		            v->min == w->min && v->max == w->max && v->mean == w->mean &&
		            v->m2 == w->m2);
	}
	for (uint32_t i = 0; i < a->variants_count; i++) {
		const struct plumb_variant *v = &a->variants[i], *w = &b->variants[i];
		assert_true(v->context == w->context && v->track == w->track);
		assert_memory_equal(v->grid, w->grid, sizeof v->grid);
		assert_memory_equal(v->block, w->block, sizeof v->block);
		assert_true(v->registers == w->registers && v->static_shared == w->static_shared &&
		            v->dynamic_shared == w->dynamic_shared &&
		            v->occupancy == w->occupancy && v->count == w->count &&
		            v->time == w->time && v->min == w->min && v->max == w->max);
	}
	assert_int_equal(a->clocks_count, b->clocks_count);
	for (uint32_t i = 0; i < a->clocks_count; i++) {
		const struct plumb_clock *c = &a->clocks[i], *d = &b->clocks[i];
		assert_true(c->process == d->process && c->device == d->device &&
		            c->reference_ns == d->reference_ns && c->offset_ns == d->offset_ns &&
		            c->slope == d->slope && c->residual_ns == d->residual_ns &&
		            c->readings == d->readings);
	}
	assert_int_equal(a->memory_count, b->memory_count);
	for (uint32_t i = 0; i < a->memory_count; i++) {
		const struct plumb_memory *m = &a->memory[i], *n = &b->memory[i];
		assert_true(m->track == n->track && m->peak_bytes == n->peak_bytes &&
		            m->peak_ns == n->peak_ns && m->allocations == n->allocations &&
		            m->allocated_bytes == n->allocated_bytes && m->frees == n->frees &&
		            m->freed_bytes == n->freed_bytes && m->live_bytes == n->live_bytes &&
		            m->peak_allocated_bytes == n->peak_allocated_bytes &&
		            m->peak_reserved_bytes == n->peak_reserved_bytes &&
		            m->most_reserved_bytes == n->most_reserved_bytes);
	}
	for (uint32_t i = 0; i < a->ledger_count; i++)
		assert_true(a->ledger[i].process == b->ledger[i].process &&
		            a->ledger[i].source == b->ledger[i].source &&
		            a->ledger[i].fate == b->ledger[i].fate &&
		            a->ledger[i].count == b->ledger[i].count);
	for (uint32_t i = 0; i < a->code_objects_count; i++)
		assert_true(a->code_objects[i].process == b->code_objects[i].process &&
		            a->code_objects[i].bytes == b->code_objects[i].bytes);
	for (uint32_t i = 0; i < a->findings_count; i++)
		assert_true(a->findings[i].severity == b->findings[i].severity &&
		            a->findings[i].context == b->findings[i].context &&
		            a->findings[i].saving_ns == b->findings[i].saving_ns &&
		            isnan(a->findings[i].confidence) == isnan(b->findings[i].confidence));
	same_text(a, a->run.command, b, b->run.command);
	same_text(a, a->run.tool_version, b, b->run.tool_version);
	assert_true(a->run.start_ns == b->run.start_ns && a->run.wall_ns == b->run.wall_ns &&
	            a->run.exit_code == b->run.exit_code &&
	            a->run.overhead_ns == b->run.overhead_ns);
}

static void
round_trip(struct plumb_profile *profile)
{
	struct plumb_profile again;
	write_profile(profile, path);
	read_profile(&again, path);
	assert_same(profile, &again);
	plumb_profile_free(&again);
	plumb_profile_free(profile);
	assert_int_equal(files_in_folder(folder), 1);
}

static void
test_round_trip(void **state)
{
	(void)state;
	struct plumb_profile profile;
	struct sample_ids ids;
	assert_int_equal(sample_build(&profile, &ids, NULL), 0);
	round_trip(&profile);
}

static void
test_empty(void **state)
{
	(void)state;
	struct plumb_profile profile;
	struct plumb_builder *b = plumb_builder_new();
	assert_int_equal(plumb_builder_finish(b, &profile, NULL), 0);
	plumb_builder_free(b);
	round_trip(&profile);
}

static void
test_deep_chain(void **state)
{
	(void)state;
	struct plumb_profile profile;
	struct plumb_builder *b = plumb_builder_new();
	uint32_t frame = plumb_builder_frame(b, PLUMB_FRAME_PYTHON, plumb_builder_text(b, "f"),
	                                     plumb_builder_text(b, "a.py"), 7);
	for (uint32_t i = 0, at = 0; i < 100000; i++)
		at = plumb_builder_context(b, at, frame, 0);
	assert_int_equal(plumb_builder_finish(b, &profile, NULL), 0);
	plumb_builder_free(b);
	round_trip(&profile);
}

/* More than a chunk of work on each of two streams, overlapping. */
static void
test_chunks(void **state)
{
	(void)state;
	struct plumb_profile profile;
	struct plumb_builder *b = plumb_builder_new();
	struct sample_ids ids;
	sample_places(b, &ids);
	uint32_t track = plumb_builder_track(b, plumb_builder_get_track(b, ids.stream));
	uint32_t random = 5;
	int64_t now = INT64_C(1) << 50;
	for (int i = 0; i < 150000; i++) {
		random = random * 1664525u + 1013904223u;
		now += random >> 20;
		plumb_builder_work(
			b, &(struct plumb_work_item){ 0, random >> 9 & 1 ? track : ids.stream, now,
		                                      now + (random >> 16) });
		plumb_builder_span(b, &(struct plumb_span){ 0, random >> 9 & 1 ? track : ids.thread,
		                                            now, now + (random >> 16),
		                                            (uint64_t)random << 32 | random });
	}
	assert_int_equal(plumb_builder_finish(b, &profile, NULL), 0);
	plumb_builder_free(b);
	assert_int_equal(profile.work_count, 150000);
	assert_int_equal(profile.spans_count, 150000);
	round_trip(&profile);
}

/* ---- SQL on a file ---- */

static void
sql(const char *file, const char *text)
{
	sqlite3 *db;
	char *message = NULL;
	assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
	if (sqlite3_exec(db, text, NULL, NULL, &message))
		fail_msg("%s: %s", text, message);
	sqlite3_close(db);
}

static int64_t
sql_number(const char *text)
{
	sqlite3 *db;
	sqlite3_stmt *select;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_prepare_v2(db, text, -1, &select, NULL))
		fail_msg("%s: %s", text, sqlite3_errmsg(db));
	assert_int_equal(sqlite3_step(select), SQLITE_ROW);
	int64_t number = sqlite3_column_type(select, 0) == SQLITE_NULL
	                         ? PLUMB_UNKNOWN
	                         : sqlite3_column_int64(select, 0);
	sqlite3_finalize(select);
	sqlite3_close(db);
	return number;
}

static void
test_contents(void **state)
{
	(void)state;
	static const struct {
		const char *query;
		int64_t answer;
	} checks[] = {
		{ "PRAGMA application_id", 0x504c4d42 },
		{ "PRAGMA user_version", PLUMB_STORE_SCHEMA },
		/* Unknown is NULL, and none is NULL. */
		{ "SELECT rank FROM processes WHERE id=1", PLUMB_UNKNOWN },
		{ "SELECT count(*) FROM devices WHERE kernels IS NULL", 1 },
		{ "SELECT count(*) FROM tracks WHERE device IS NULL", 2 },
		{ "SELECT count(*) FROM context_values WHERE track IS NULL", 1 },
		{ "SELECT confidence FROM findings", PLUMB_UNKNOWN },
		{ "SELECT most_reserved_bytes FROM memory", PLUMB_UNKNOWN },
		{ "SELECT peak_reserved_bytes FROM memory JOIN tracks t ON t.id=track "
		  "WHERE t.kind='memory'",
		  8192 },
		{ "SELECT parent FROM contexts WHERE id=0", PLUMB_UNKNOWN },
		{ "SELECT line FROM frames WHERE kind='operator'", PLUMB_UNKNOWN },
		/* Recursion counts once in the inclusive number. */
		{ "SELECT value FROM frame_inclusive WHERE label='fib' AND metric='gpu.time'",
		  3000 },
		{ "SELECT value FROM frame_inclusive WHERE label='main' AND metric='gpu.time'",
		  3700 },
		{ "SELECT count FROM frame_inclusive WHERE label='fib' AND metric='gpu.time'", 3 },
		{ "SELECT count(*) FROM outermost o JOIN frames f ON f.id=o.frame WHERE "
		  "f.name='fib'",
		  1 },
		{ "SELECT value FROM inclusive WHERE context=0 AND metric='gpu.time'", 3700 },
		/* A property of a call is never added up. */
		{ "SELECT value FROM inclusive WHERE context=0 AND metric='gpu.registers'",
		  PLUMB_UNKNOWN },
		{ "SELECT mean FROM inclusive WHERE context=0 AND metric='gpu.registers'", 40 },
		{ "SELECT value FROM inclusive WHERE context=0 AND metric='mem.peak'", 5000 },
		{ "SELECT count FROM kernels", 4 },
		{ "SELECT time_ns FROM kernels", 3700 },
		{ "SELECT min_ns FROM kernels", 700 },
		{ "SELECT max_registers FROM kernels", 40 },
		{ "SELECT blocks FROM kernels", PLUMB_UNKNOWN },
		{ "SELECT calls FROM operators", 4 },
		{ "SELECT self_ns FROM operators", 375 },
		{ "SELECT gpu_ns FROM operators", 3700 },
		{ "SELECT copy_ns FROM operators", PLUMB_UNKNOWN },
		{ "SELECT count(*) FROM paths WHERE context=(SELECT max(id) FROM contexts WHERE "
		  "depth=6)",
		  7 },
		{ "SELECT backward FROM context_frames WHERE kind='kernel' AND depth=4 AND "
		  "backward",
		  1 },
		{ "SELECT dropped FROM ledger_totals WHERE source='gpu.kernel'", 1 },
		{ "SELECT received FROM ledger_totals WHERE source='gpu.kernel'", 5 },
		{ "SELECT attributed FROM ledger_totals WHERE source='process'", PLUMB_UNKNOWN },
		{ "SELECT sum(sum) FROM totals t JOIN metrics m ON m.id=t.metric WHERE "
		  "name='gpu.time'",
		  3700 },
		/* 2000–3000, with a copy inside; 3500–4500; 5000–6000; 8300–9000 */
		{ "SELECT busy_ns FROM span_chunks", 3700 },
		{ "SELECT total_ns FROM span_chunks", 4000 },
		{ "SELECT end_ns FROM span_chunks", 9000 },
		{ "SELECT count FROM span_chunks WHERE source='trace' AND track=0", 6 },
		{ "SELECT busy_ns FROM span_chunks WHERE source='trace' AND track=0", 450 },
		{ "SELECT count(*) FROM span_chunks WHERE correlation IS NULL", 1 },
		{ "SELECT count(*) FROM pragma_foreign_key_check", 0 },
	};
	write_sample();
	for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
		if (sql_number(checks[i].query) != checks[i].answer)
			fail_msg("%s gives %" PRId64 " and not %" PRId64, checks[i].query,
			         sql_number(checks[i].query), checks[i].answer);
}

/* The views and plumb_inclusive give the same numbers. */
static void
test_views_agree(void **state)
{
	(void)state;
	write_sample();
	struct plumb_profile p;
	read_profile(&p, path);
	struct plumb_stat *exclusive = calloc(2 * (size_t)p.contexts_count, sizeof *exclusive);
	struct plumb_stat *inclusive = exclusive + p.contexts_count;
	for (uint32_t metric = 1; metric < PLUMB_METRIC_COUNT; metric++) {
		plumb_inclusive(&p, metric, PLUMB_NONE, exclusive, inclusive);
		for (uint32_t c = 0; c < p.contexts_count; c++) {
			char query[256];
			bool sum = plumb_metrics[metric].aggregation == PLUMB_SUM;
			const struct plumb_stat *wanted[] = { &exclusive[c], &inclusive[c] };
			for (int i = 0; i < 2; i++) {
				snprintf(query, sizeof query,
				         "SELECT %s(%s) FROM %s WHERE context=%u AND metric='%s'",
				         "sum", sum ? "value" : "count",
				         i ? "inclusive" : "exclusive", c,
				         plumb_metrics[metric].name);
				int64_t number = sql_number(query);
				if (wanted[i]->count)
					assert_int_equal(number, sum ? wanted[i]->sum
					                             : (int64_t)wanted[i]->count);
				else
					assert_true(number == PLUMB_UNKNOWN);
			}
		}
	}
	free(exclusive);
	plumb_profile_free(&p);
}

/* ---- writing that fails ---- */

static void
assert_refused(int code, int wanted, const struct plumb_error *error, const char *name)
{
	if (code != wanted)
		fail_msg("%s: code %d: %s", name, code, code ? error->message : "accepted");
	assert_int_equal(error->code, wanted);
	assert_non_null(strstr(error->message, name));
	assert_null(strchr(error->message, '\n'));
}

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
	assert_refused(plumb_store_write(&profile, folder, NULL, NULL, &error), PLUMB_ESYSTEM,
	               &error, folder);
	assert_refused(plumb_store_write(&profile, "/dev/null", NULL, NULL, &error), PLUMB_ESYSTEM,
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
test_progress_call(void *data, double part)
{
	double *before = data;
	assert_true(part >= *before && part <= 1);
	*before = part;
}

static void
test_progress(void **state)
{
	(void)state;
	struct plumb_profile profile;
	struct sample_ids ids;
	double part = 0;
	assert_int_equal(sample_build(&profile, &ids, NULL), 0);
	assert_int_equal(plumb_store_write(&profile, path, test_progress_call, &part, NULL), 0);
	assert_true(part == 1);
	plumb_profile_free(&profile);
}

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
		"DROP TABLE run; CREATE VIEW run AS SELECT 0 AS id, NULL AS command, 0 AS start_ns,"
		" 0 AS wall_ns, 0 AS exit_code, 0 AS overhead_ns, NULL AS tool_version",
		"ALTER TABLE frames RENAME COLUMN file TO place",
		"DELETE FROM run",
		"INSERT INTO run VALUES(1, NULL, 1, 1, 1, 1, NULL)",
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
	          " total_ns, busy_ns, codec, context, start, duration, NULL FROM span_chunks"
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
	          "ALTER TABLE span_chunks DROP COLUMN correlation; PRAGMA user_version = 1");
	read_profile(&profile, path);
	assert_int_equal(profile.work_count, 5);
	assert_int_equal(profile.spans_count, 0);
	plumb_profile_free(&profile);
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
	for (uint32_t seed = 1; seed <= 3000; seed++) {
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
	assert_true(refused > 1000);
	free(bytes);
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
			} else if (reads) {
				plumb_profile_free(&again);
			}
			assert_int_equal(files_in_folder(folder), 1);
		}
	}
	plumb_profile_free(&profile);
}

/* A fate without a name would make every profile that has it impossible to write. */
static void
test_every_fate_has_a_name(void **state)
{
	(void)state;
	for (int i = 0; i < PLUMB_FATE_COUNT; i++) {
		assert_non_null(plumb_store_fates[i]);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(plumb_store_fates[i], plumb_store_fates[k]);
	}
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_round_trip, setup, teardown),
		cmocka_unit_test_setup_teardown(test_empty, setup, teardown),
		cmocka_unit_test_setup_teardown(test_deep_chain, setup, teardown),
		cmocka_unit_test_setup_teardown(test_chunks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_contents, setup, teardown),
		cmocka_unit_test_setup_teardown(test_views_agree, setup, teardown),
		cmocka_unit_test_setup_teardown(test_write_elsewhere, setup, teardown),
		cmocka_unit_test_setup_teardown(test_file_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_space, setup, teardown),
		cmocka_unit_test_setup_teardown(test_progress, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_a_profile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused_contents, setup, teardown),
		cmocka_unit_test_setup_teardown(test_accepted_contents, setup, teardown),
		cmocka_unit_test_setup_teardown(test_totals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_first_schema, setup, teardown),
		cmocka_unit_test_setup_teardown(test_truncation, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bit_flips, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_memory, setup, teardown),
		cmocka_unit_test(test_every_fate_has_a_name),
	};
	if (argc == 2) {
		snprintf(path, sizeof path, "%s", argv[1]);
		write_sample();
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
