/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File → profile. The file may come from anybody and hold anything. SQLite is told to trust nothing
 * in it, and every cell is checked before it becomes part of the profile. The ids of all tables
 * count from 0 without a gap. So if a damaged tree of pages leads to the same rows again and again,
 * reading ends at the first of them. Texts must not be longer in all than the file.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/database.h"
#include "base/vec.h"
#include "model/builder.h"
#include "model/metric.h"
#include "store/open.h"
#include "store/packed.h"
#include "store/reader.h"
#include "store/store.h"

/* An undamaged file needs fewer steps of SQLite's machine: a row takes at least four bytes, and a
 * column takes one step. */
#define STEPS_AT_ONCE 4096
#define STEPS_LEAST ((int64_t)20000000)
#define STEPS_OF_BYTE 16

/* ---- tables ---- */

/* Only real tables are read: a view or a virtual table with such a name could run anything. */
static int
has_table(struct plumb_reader *reader, bool *there)
{
	int found = plumb_database_has(reader->db, reader->table);
	int computes = found > 0 ? plumb_database_computes(reader->db, reader->table) : 0;
	*there = found > 0;
	if (found < 0 || computes < 0)
		return plumb_reader_fail_sql(reader);
	if (computes)
		return plumb_fail(reader->error, PLUMB_EINPUT,
		                  "this is not a profile that plumb wrote: table %s has computed "
		                  "columns",
		                  reader->table);
	return PLUMB_OK;
}

/* The time that a file may take is in proportion to its size: a query that loops ends. */
static int
count_steps(void *data)
{
	struct plumb_reader *reader = data;
	reader->steps -= STEPS_AT_ONCE;
	return reader->steps < 0;
}

/* SELECT id, COLUMNS FROM TABLE, in the order of ids: where they are not the order of the rows, the
 * next one shows it. An index may have been made to hold other rows. */
int
plumb_reader_select(struct plumb_reader *reader, const char *columns, sqlite3_stmt **select)
{
	char sql[1024];
	bool there;
	*select = NULL;
	int code = has_table(reader, &there);
	if (code)
		return code;
	if (!there)
		return plumb_fail(
			reader->error, PLUMB_EINPUT,
			"the profile is damaged: table %s is missing; copy the file again, or run "
			"plumb again",
			reader->table);
	snprintf(sql, sizeof sql, "SELECT id, %s FROM %s NOT INDEXED", columns, reader->table);
	if (sqlite3_prepare_v2(reader->db, sql, -1, select, NULL))
		return plumb_reader_fail_sql(reader);
	return PLUMB_OK;
}

int
plumb_reader_next(struct plumb_reader *reader, sqlite3_stmt *select, bool *found)
{
	int stepped = sqlite3_step(select);
	*found = stepped == SQLITE_ROW;
	if (stepped == SQLITE_DONE)
		return PLUMB_OK;
	if (stepped != SQLITE_ROW)
		return plumb_reader_fail_sql(reader);
	if (sqlite3_column_int64(select, 0) != reader->row || reader->row >= PLUMB_VEC_MAX)
		return plumb_reader_damaged(reader, "an id out of order");
	return PLUMB_OK;
}

/* The names of the columns; NULL for those that a file of SCHEMA does not have. */
static void
join_columns(const struct plumb_row_table *table, uint32_t schema, char *out, size_t size)
{
	FILE *list = fmemopen(out, size, "w");
	for (uint32_t c = 0; list && c < table->columns_count; c++) {
		const struct plumb_row_column *column = &table->columns[c];
		const char *name = column->since > schema ? "NULL" : column->name;
		fprintf(list, "%s%s", c ? ", " : "", name);
		if (column->cell == PLUMB_ROW_BLOB)
			fprintf(list, ", %s%s", name, column->since > schema ? "" : "_bytes");
	}
	if (list)
		fclose(list);
}

/* The rows belong to the profile from the start, so they are freed with it whatever happens. */
static int
read_rows(struct plumb_reader *reader, const struct plumb_row_table *table, sqlite3_stmt *select)
{
	bool found;
	for (;; reader->row++) {
		int code = plumb_reader_next(reader, select, &found);
		if (code || !found)
			return code;
		if (table->single && reader->row > 0)
			return plumb_reader_damaged(reader, "a second row");
		if (table->most && reader->row >= table->most)
			return plumb_reader_damaged(reader, "more rows than a profile holds");
		/* The row is counted first: a context may name itself or an earlier one, but never
		 * a later one. */
		char *row = table->single ? plumb_row_array_of(reader->profile, table).items
		                          : plumb_row_add(reader->profile, table);
		if (!row)
			return plumb_reader_no_memory(reader);
		for (uint32_t c = 0, at = 1; !code && c < table->columns_count; c++) {
			code = plumb_reader_cell(reader, select, (int)at, &table->columns[c], row);
			at += plumb_row_cells(&table->columns[c]);
		}
		if (code)
			return code;
	}
}

int
plumb_reader_rows(struct plumb_reader *reader, const struct plumb_row_table *table)
{
	char columns[768] = "";
	sqlite3_stmt *select = NULL;
	join_columns(table, reader->schema, columns, sizeof columns);
	int code = *columns ? plumb_reader_select(reader, columns, &select)
	                    : plumb_reader_no_memory(reader);
	if (!code)
		code = read_rows(reader, table, select);
	sqlite3_finalize(select);
	return code;
}

static int
read_table(struct plumb_reader *reader, const struct plumb_row_table *table)
{
	reader->table = table->chunks ? table->chunks : table->name;
	reader->row = 0;
	if (table->since > reader->schema ||
	    (table->moments && reader->part == PLUMB_READER_TOTALS))
		return PLUMB_OK;
	if (table->may_lack) {
		bool there = false;
		int asked = has_table(reader, &there);
		if (asked || !there)
			return asked;
	}
	if (table->chunks)
		return plumb_reader_chunks(reader, table);
	bool done;
	int code = plumb_packed_read(reader, table, &done);
	return code || done ? code : plumb_reader_rows(reader, table);
}

/* ---- metrics of the program's own ---- */

/* No other metric may have its name. The strings are still in the table. */
static bool
is_new_metric(const struct plumb_reader *reader, uint32_t name)
{
	const char *text = plumb_strtab_text(reader->strings, name);
	if (!text || !*text || plumb_metric_find(text))
		return false;
	for (uint32_t i = 0; i < reader->profile->user_metrics_count; i++)
		if (reader->profile->user_metrics[i].name == name)
			return false;
	return true;
}

/* One row of the table. The metrics of plumb itself are skipped: base/words.h has them. */
static int
read_metric(struct plumb_reader *reader, sqlite3_stmt *select, int64_t before)
{
	struct plumb_profile *profile = reader->profile;
	struct plumb_user_metric metric = { PLUMB_NONE, PLUMB_NONE };
	int code;
	if (reader->row <= before)
		return plumb_reader_damaged(reader, "an id out of order");
	if (reader->row < PLUMB_METRIC_USER)
		return PLUMB_OK;
	if (reader->row != (int64_t)PLUMB_METRIC_USER + profile->user_metrics_count ||
	    profile->user_metrics_count >= PLUMB_USER_METRICS_MOST)
		return plumb_reader_damaged(reader, "an id out of order");
	if ((code = plumb_reader_string(reader, select, 1, &metric.name)) ||
	    (code = plumb_reader_string(reader, select, 2, &metric.unit)))
		return code;
	if (!is_new_metric(reader, metric.name))
		return plumb_reader_damaged(reader,
		                            "a metric's name that is missing or used twice");
	struct plumb_user_metric *added = plumb_profile_add_metric(profile);
	if (!added)
		return plumb_reader_no_memory(reader);
	*added = metric;
	return PLUMB_OK;
}

static int
read_metrics(struct plumb_reader *reader)
{
	sqlite3_stmt *select;
	reader->table = "metrics";
	reader->row = 0;
	int code = plumb_reader_select(reader, "name, unit", &select), stepped = SQLITE_DONE;
	while (!code && (stepped = sqlite3_step(select)) == SQLITE_ROW) {
		int64_t before = reader->row;
		reader->row = sqlite3_column_int64(select, 0);
		code = read_metric(reader, select, before);
	}
	if (!code && stepped != SQLITE_DONE)
		code = plumb_reader_fail_sql(reader);
	sqlite3_finalize(select);
	return code;
}

/* ---- what holds between rows ---- */

static void
set_transfers(struct plumb_reader *reader)
{
	for (uint32_t i = 0; i < reader->profile->frames_count; i++) {
		struct plumb_frame *frame = &reader->profile->frames[i];
		plumb_frame_set_transfer(frame, plumb_strtab_text(reader->strings, frame->name));
	}
}

/* Contexts are a tree in preorder. The parent of each is the context before it or an ancestor of
 * that context, and `last` is where its subtree ends. */
static int
check_tree(struct plumb_reader *reader)
{
	const struct plumb_context *contexts = reader->profile->contexts;
	uint32_t count = reader->profile->contexts_count;
	reader->table = "contexts";
	reader->row = 0;
	if (!count || contexts[0].parent != PLUMB_NONE || contexts[0].depth ||
	    reader->profile->frames[contexts[0].frame].kind != PLUMB_FRAME_ROOT)
		return plumb_reader_damaged(reader, "no root context");
	for (uint32_t i = 1; i <= count; i++) {
		uint32_t parent = i < count ? contexts[i].parent : PLUMB_NONE;
		reader->row = i;
		uint32_t open = i - 1;
		for (; open != parent; open = contexts[open].parent) {
			if (open == PLUMB_NONE || contexts[open].last != i - 1)
				return plumb_reader_damaged(reader,
				                            "a context that is not in preorder");
		}
		if (i < count &&
		    (parent == PLUMB_NONE || contexts[i].depth != contexts[parent].depth + 1))
			return plumb_reader_damaged(reader, "a context with a wrong depth");
	}
	return PLUMB_OK;
}

static bool
reader_has_metric(const struct plumb_reader *reader, uint32_t number)
{
	if (number < PLUMB_METRIC_COUNT)
		return plumb_metrics[number].name != NULL;
	return number >= PLUMB_METRIC_USER &&
	       number - PLUMB_METRIC_USER < reader->profile->user_metrics_count;
}

/* Does V come after BEFORE? Both are values of the same context. */
static bool
follows_value(const struct plumb_value *v, const struct plumb_value *before)
{
	if (v->metric != before->metric)
		return v->metric > before->metric;
	if (v->track != before->track)
		return v->track > before->track;
	if (v->ends.from != before->ends.from)
		return v->ends.from > before->ends.from;
	return v->ends.to > before->ends.to;
}

static int
check_values(struct plumb_reader *reader)
{
	const struct plumb_profile *profile = reader->profile;
	reader->table = "context_values";
	for (uint32_t i = 0; i < profile->values_count; i++) {
		const struct plumb_value *v = &profile->values[i], *before = v - 1;
		reader->row = i;
		if (!v->metric || !reader_has_metric(reader, v->metric) || v->min > v->max ||
		    v->m2 < 0)
			return plumb_reader_damaged(reader, "an impossible value");
		if (!i || v->context > before->context)
			continue;
		if (v->context < before->context || !follows_value(v, before))
			return plumb_reader_damaged(reader, "a value out of order");
	}
	return PLUMB_OK;
}

static int
check_rows(struct plumb_reader *reader)
{
	const struct plumb_profile *profile = reader->profile;
	reader->table = "environment";
	for (uint32_t i = 0; i < profile->environment_count; i++) {
		reader->row = i;
		if (profile->environment[i].key == PLUMB_NONE ||
		    profile->environment[i].value == PLUMB_NONE)
			return plumb_reader_damaged(reader, "no key or value");
	}
	reader->table = "clocks";
	for (uint32_t i = 0; i < profile->clocks_count; i++) {
		reader->row = i;
		if (isnan(profile->clocks[i].slope))
			return plumb_reader_damaged(reader, "no slope");
	}
	reader->table = "cpu_samples";
	for (uint32_t i = 0; i < profile->cpu_samples_count; i++) {
		const struct plumb_cpu_sample *s = &profile->cpu_samples[i];
		reader->row = i;
		if (i &&
		    (s->track < s[-1].track || (s->track == s[-1].track && s->at_ns < s[-1].at_ns)))
			return plumb_reader_damaged(reader, "a sample out of order");
	}
	return PLUMB_OK;
}

/* ---- the whole ---- */

static int
read_tables(struct plumb_reader *reader, bool chunks)
{
	int code = PLUMB_OK;
	for (int t = 0; !code && t < PLUMB_TABLES; t++) {
		const struct plumb_row_table *table = &plumb_row_tables[t];
		if (chunks != (table->chunks != NULL))
			continue;
		code = read_table(reader, table);
		if (!code && table->single && !reader->row)
			code = plumb_reader_damaged(reader, "nothing");
		if (!code && t == PLUMB_TABLE_FRAMES)
			set_transfers(reader);
		if (!code && t == PLUMB_TABLE_CONTEXTS)
			code = check_tree(reader);
	}
	return code;
}

static int
read_all(struct plumb_reader *reader)
{
	int code = read_tables(reader, false);
	if (!code)
		code = read_metrics(reader);
	if (!code)
		code = check_values(reader);
	if (!code)
		code = check_rows(reader);
	if (!code)
		code = read_tables(reader, true);
	return code;
}

static int
read_file(struct plumb_profile *profile, const char *path, enum plumb_reader_part part,
          struct plumb_error *error)
{
	*profile = (struct plumb_profile){ 0 };
	struct plumb_reader reader = {
		.profile = profile, .table = "", .part = part, .error = error
	};
	int code = plumb_store_open(&reader.db, path, &reader.text_left, &reader.schema, error);
	if (!code) {
		uint64_t bytes =
			reader.text_left < INT64_MAX / 64 ? reader.text_left : INT64_MAX / 64;
		reader.steps = (int64_t)bytes * STEPS_OF_BYTE + STEPS_LEAST;
		sqlite3_progress_handler(reader.db, STEPS_AT_ONCE, count_steps, &reader);
		reader.strings = plumb_strtab_new();
		code = reader.strings ? read_all(&reader) : plumb_reader_no_memory(&reader);
	}
	sqlite3_close(reader.db);
	if (!code) {
		struct plumb_pool *pool;
		plumb_strtab_release(reader.strings, &profile->strings, &profile->strings_count,
		                     &pool);
		profile->storage = pool;
	}
	plumb_strtab_free(reader.strings);
	if (code) {
		plumb_profile_free(profile);
		plumb_fail_in(error, "%s", path);
	}
	return code;
}

int
plumb_store_read(struct plumb_profile *profile, const char *path, struct plumb_error *error)
{
	return read_file(profile, path, PLUMB_READER_ALL, error);
}

int
plumb_store_read_totals(struct plumb_profile *profile, const char *path, struct plumb_error *error)
{
	return read_file(profile, path, PLUMB_READER_TOTALS, error);
}

int
plumb_store_read_streams(struct plumb_profile *profile, const char *path, struct plumb_error *error)
{
	return read_file(profile, path, PLUMB_READER_STREAMS, error);
}
