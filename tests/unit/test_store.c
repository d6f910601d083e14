/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profile files: what is written is read, by plumb and by SQL. `test_store PATH` writes the sample
 * profile to PATH instead (for tests/e2e/test_profile_format.py).
 */
#include <inttypes.h>
#include <math.h>

#include "store_files.h"

#include "model/columns.h"

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

static bool
is_same_value(const struct plumb_value *v, const struct plumb_value *w)
{
	bool same_m2 = v->m2 == w->m2 || (isnan(v->m2) && isnan(w->m2));
	return same_m2 && v->context == w->context && v->metric == w->metric &&
	       v->track == w->track && v->sum == w->sum && v->count == w->count &&
	       v->min == w->min && v->max == w->max && v->mean == w->mean &&
	       v->ends.from == w->ends.from && v->ends.to == w->ends.to;
}

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
	assert_int_equal(a->waits_count, b->waits_count);
	for (uint32_t i = 0; i < a->waits_count; i++) {
		const struct plumb_wait *w = &a->waits[i], *v = &b->waits[i];
		assert_true(w->track == v->track && w->awaited == v->awaited &&
		            w->device == v->device && w->call == v->call && w->after == v->after);
	}
	SAME_ROWS(cpu_samples);
	SAME_ROWS(spans);
	/* These have padding, or a NAN. */
	assert_int_equal(a->values_count, b->values_count);
	for (uint32_t i = 0; i < a->values_count; i++) {
		assert_true(is_same_value(&a->values[i], &b->values[i]));
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
	assert_int_equal(a->memory_series_count, b->memory_series_count);
	for (uint32_t i = 0; i < a->memory_series_count; i++) {
		const struct plumb_memory_series_bin *m = &a->memory_series[i];
		assert_int_equal(m->track, b->memory_series[i].track);
		assert_memory_equal(&m->start_ns, &b->memory_series[i].start_ns,
		                    7 * sizeof m->start_ns);
	}
	assert_int_equal(a->counter_series_count, b->counter_series_count);
	for (uint32_t i = 0; i < a->counter_series_count; i++) {
		const struct plumb_counter_series_bin *m = &a->counter_series[i];
		const struct plumb_counter_series_bin *n = &b->counter_series[i];
		assert_true(m->device == n->device && m->process == n->process);
		same_text(a, m->metric, b, n->metric);
		same_text(a, m->unit, b, n->unit);
		assert_memory_equal(&m->start_ns, &n->start_ns, 4 * sizeof m->start_ns);
		assert_true(m->min == n->min && m->mean == n->mean && m->max == n->max);
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
	            a->run.overhead_ns == b->run.overhead_ns && a->run.analyses == b->run.analyses);
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

/* ---- long tables have a copy of their rows ---- */

#define MANY 70000u

static void
write_many(void)
{
	struct plumb_profile profile;
	struct plumb_builder *b = plumb_builder_new();
	struct plumb_track track = { .kind = PLUMB_TRACK_THREAD,
		                     .name = PLUMB_NONE,
		                     .process = PLUMB_NONE,
		                     .device = PLUMB_NONE,
		                     .tid = PLUMB_UNKNOWN,
		                     .stream = PLUMB_UNKNOWN };
	uint32_t thread = plumb_builder_track(b, &track);
	for (uint32_t i = 0; i < MANY; i++) {
		uint32_t frame = plumb_builder_frame(b, PLUMB_FRAME_RANGE,
		                                     plumb_builder_text(b, "r"), PLUMB_NONE, i);
		struct plumb_value value = {
			.context = plumb_builder_context(b, i % 3 ? i : 0, frame, i % 2),
			.metric = i % 2 ? PLUMB_METRIC_OP_TIME : PLUMB_METRIC_GPU_TIME,
			.track = i % 5 ? thread : PLUMB_NONE,
			.sum = (int64_t)i * 1000003 - 5000000000,
			.count = i % 7 + 1,
			.min = -(int64_t)i,
			.max = i % 11 ? (int64_t)i : INT64_MAX,
			.mean = i / 3.0,
			.m2 = i % 13 ? i * 1.5 : NAN,
		};
		assert_int_equal(plumb_builder_value(b, &value), 0);
	}
	assert_int_equal(plumb_builder_finish(b, &profile, NULL), 0);
	plumb_builder_free(b);
	round_trip(&profile);
}

/* How many pieces there are. */
static int
count_copies(void)
{
	sqlite3 *db;
	sqlite3_stmt *count;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(
		sqlite3_prepare_v2(db, "SELECT COUNT(*) FROM packed_rows", -1, &count, NULL),
		SQLITE_OK);
	assert_int_equal(sqlite3_step(count), SQLITE_ROW);
	int pieces = sqlite3_column_int(count, 0);
	sqlite3_finalize(count);
	sqlite3_close(db);
	return pieces;
}

static void
test_copies(void **state)
{
	(void)state;
	struct plumb_profile profile;
	struct plumb_error error = { 0 };
	int64_t sum;
	write_sample();
	assert_int_equal(count_copies(), 0);
	unlink(path);
	write_many();
	assert_int_equal(count_copies(), 4);
	read_profile(&profile, path);
	sum = profile.values[5].sum;
	plumb_profile_free(&profile);
	/* If somebody changes the rows, the copy goes. */
	sql(path, "UPDATE context_values SET sum = sum + 1 WHERE id = 5");
	assert_int_equal(count_copies(), 2);
	read_profile(&profile, path);
	assert_true(profile.values[5].sum == sum + 1);
	assert_int_equal(profile.values_count, MANY);
	plumb_profile_free(&profile);
	/* With other columns, or another number of rows, it is not used. */
	sql(path, "UPDATE packed_rows SET columns = 'parent', rows = x'00'");
	read_profile(&profile, path);
	assert_int_equal(profile.contexts_count, MANY + 1);
	plumb_profile_free(&profile);
	unlink(path);
	write_many();
	sql(path, "UPDATE packed_rows SET count = count - 1, rows = x'00'");
	read_profile(&profile, path);
	plumb_profile_free(&profile);
	/* Without a trigger the table may be another one. */
	unlink(path);
	write_many();
	sql(path, "DROP TRIGGER contexts_UPDATE; DROP TRIGGER context_values_INSERT;"
	          "UPDATE packed_rows SET rows = x'00'");
	read_profile(&profile, path);
	plumb_profile_free(&profile);
	/* It is checked like everything else. */
	unlink(path);
	write_many();
	sql(path, "UPDATE packed_rows SET rows = x'00'");
	assert_refused(plumb_store_read(&profile, path, &error), PLUMB_EINPUT, &error, path);
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
		plumb_builder_span(b, &(struct plumb_span){ 0,
		                                            random >> 9 & 1 ? track : ids.thread,
		                                            now,
		                                            now + (random >> 16),
		                                            (uint64_t)random << 32 | random,
		                                            0,
		                                            { random >> 10 & 1, 0 } });
	}
	assert_int_equal(plumb_builder_finish(b, &profile, NULL), 0);
	plumb_builder_free(b);
	assert_int_equal(profile.work_count, 150000);
	assert_int_equal(profile.spans_count, 150000);
	round_trip(&profile);
}

/* ---- SQL on a file ---- */

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

/* A fate without a name would make every profile that has it impossible to write. */
static void
test_every_fate_has_a_name(void **state)
{
	(void)state;
	for (int i = 0; i < PLUMB_FATE_COUNT; i++) {
		assert_non_null(plumb_fate_names[i]);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(plumb_fate_names[i], plumb_fate_names[k]);
	}
}

int
main(int argc, char **argv)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_round_trip), T(test_empty),
		T(test_deep_chain), T(test_chunks),
		T(test_contents),   T(test_views_agree),
		T(test_progress),   T(test_every_fate_has_a_name),
		T(test_copies),
	};
	if (argc == 2) {
		snprintf(path, sizeof path, "%s", argv[1]);
		write_sample();
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
