/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profile → file. The rows go to a temporary file beside the target, without a journal and without
 * waiting for the disk; only the whole file is made durable and then takes the target's name.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/database.h"
#include "model/gpu_work.h"
#include "model/metric.h"
#include "store/chunk.h"
#include "store/schema.h"
#include "store/store.h"

#define PROGRESS_ROWS 16384u

struct writer {
	const struct plumb_profile *profile;
	sqlite3 *db;
	void (*progress)(void *data, double part);
	void *data;
	uint64_t done, rows;
};

/* ---- SQL ---- */

static int
fail_sql(struct writer *writer, struct plumb_error *error)
{
	int code = sqlite3_errcode(writer->db);
	int number = sqlite3_system_errno(writer->db);
	if (!number) /* not kept by the connection, but by the file */
		sqlite3_file_control(writer->db, "main", SQLITE_FCNTL_LAST_ERRNO, &number);
	if (code == SQLITE_NOMEM)
		return plumb_fail(error, PLUMB_ESYSTEM,
		                  "not enough memory to write the profile; close other programs");
	if (code == SQLITE_FULL || number == ENOSPC || number == EDQUOT)
		return plumb_fail(error, PLUMB_ESYSTEM,
		                  "no space left; free some, or choose another place with -o");
	if (number == EFBIG)
		return plumb_fail(error, PLUMB_ESYSTEM,
		                  "the file would be larger than allowed; raise ulimit -f, or "
		                  "choose another place with -o");
	errno = number;
	if (number)
		return plumb_fail_errno(error, "cannot write: %s", sqlite3_errmsg(writer->db));
	return plumb_fail(error, PLUMB_ESYSTEM, "cannot write: %s", sqlite3_errmsg(writer->db));
}

static int
execute(struct writer *writer, const char *sql, struct plumb_error *error)
{
	if (sqlite3_exec(writer->db, sql, NULL, NULL, NULL))
		return fail_sql(writer, error);
	return PLUMB_OK;
}

/* The columns are numbered ?1, ?2, …: "INSERT INTO t VALUES(?,?,?)". */
static int
prepare_insert(struct writer *writer, const char *table, unsigned columns, sqlite3_stmt **insert,
               struct plumb_error *error)
{
	char sql[256];
	int used = snprintf(sql, sizeof sql, "INSERT INTO %s VALUES(?", table);
	for (unsigned i = 1; i < columns; i++)
		used += snprintf(sql + used, sizeof sql - (size_t)used, ",?");
	snprintf(sql + used, sizeof sql - (size_t)used, ")");
	if (sqlite3_prepare_v2(writer->db, sql, -1, insert, NULL))
		return fail_sql(writer, error);
	return PLUMB_OK;
}

static int
step(struct writer *writer, sqlite3_stmt *insert, struct plumb_error *error)
{
	sqlite3_step(insert);
	if (sqlite3_reset(insert))
		return fail_sql(writer, error);
	return PLUMB_OK;
}

static void
count_row(struct writer *writer)
{
	if (++writer->done % PROGRESS_ROWS == 0 && writer->progress)
		writer->progress(writer->data,
		                 0.9 * (double)writer->done / (double)(writer->rows + 1));
}

/* ---- rows ---- */

static void
bind_number(sqlite3_stmt *insert, int at, bool known, int64_t number)
{
	if (known)
		sqlite3_bind_int64(insert, at, number);
	else
		sqlite3_bind_null(insert, at);
}

static void
bind_text(sqlite3_stmt *insert, int at, const char *text)
{
	if (text)
		sqlite3_bind_text(insert, at, text, -1, SQLITE_STATIC);
	else
		sqlite3_bind_null(insert, at);
}

static void
bind_cell(const struct writer *writer, sqlite3_stmt *insert, int at,
          const struct plumb_column *column, const char *row)
{
	const char *field = row + column->offset;
	int64_t number;
	uint64_t count;
	uint32_t id;
	double real;
	switch (column->cell) {
	case PLUMB_CELL_INT:
	case PLUMB_CELL_NUMBER:
		memcpy(&number, field, sizeof number);
		bind_number(insert, at,
		            column->cell == PLUMB_CELL_NUMBER || number != PLUMB_UNKNOWN, number);
		break;
	case PLUMB_CELL_COUNT:
		memcpy(&count, field, sizeof count);
		sqlite3_bind_int64(insert, at, count > INT64_MAX ? INT64_MAX : (int64_t)count);
		break;
	case PLUMB_CELL_REAL:
		memcpy(&real, field, sizeof real);
		sqlite3_bind_double(insert, at, real); /* NAN becomes NULL */
		break;
	case PLUMB_CELL_LINE:
		memcpy(&id, field, sizeof id);
		bind_number(insert, at, id != 0, id);
		break;
	case PLUMB_CELL_BITS:
	case PLUMB_CELL_ID:
	case PLUMB_CELL_ID_OR_NONE:
		memcpy(&id, field, sizeof id);
		bind_number(insert, at, id != PLUMB_NONE || column->cell == PLUMB_CELL_BITS, id);
		break;
	case PLUMB_CELL_TEXT:
		memcpy(&id, field, sizeof id);
		bind_text(insert, at, plumb_text(writer->profile, id));
		break;
	case PLUMB_CELL_WORD:
		memcpy(&id, field, sizeof id);
		bind_text(insert, at, id < column->limit ? column->words[id] : NULL);
		break;
	}
}

static const char *
table_rows(const struct plumb_profile *profile, const struct plumb_table *table, uint32_t *count)
{
	const char *base = (const char *)profile;
	if (!table->count_offset) {
		*count = 1;
		return base + table->rows_offset;
	}
	const char *rows;
	memcpy(count, base + table->count_offset, sizeof *count);
	memcpy(&rows, base + table->rows_offset, sizeof rows);
	return rows;
}

static int
write_table(struct writer *writer, const struct plumb_table *table, struct plumb_error *error)
{
	uint32_t count;
	const char *rows = table_rows(writer->profile, table, &count);
	sqlite3_stmt *insert;
	int code = prepare_insert(writer, table->name, table->columns_count + 1, &insert, error);
	for (uint32_t i = 0; !code && i < count; i++) {
		const char *row = rows + (size_t)i * table->row_size;
		sqlite3_bind_int64(insert, 1, i);
		for (uint32_t c = 0; c < table->columns_count; c++)
			bind_cell(writer, insert, (int)c + 2, &table->columns[c], row);
		code = step(writer, insert, error);
		count_row(writer);
	}
	sqlite3_finalize(insert);
	return code;
}

/* ---- tables that explain numbers and words ---- */

static const char *
aggregation_name(enum plumb_aggregation aggregation)
{
	switch (aggregation) {
	case PLUMB_SUM:
		return "sum";
	case PLUMB_MAX:
		return "max";
	case PLUMB_CALL:
		return "call";
	}
	return NULL;
}

static int
write_metrics(struct writer *writer, struct plumb_error *error)
{
	sqlite3_stmt *insert;
	int code = prepare_insert(writer, "metrics", 6, &insert, error);
	for (uint32_t i = 1; !code && i < plumb_metric_slots(writer->profile); i++) {
		uint32_t number = plumb_metric_at(i);
		struct plumb_metric_info metric = plumb_profile_metric(writer->profile, number);
		if (!metric.name)
			continue;
		sqlite3_bind_int64(insert, 1, number);
		bind_text(insert, 2, metric.name);
		bind_text(insert, 3, metric.unit);
		bind_text(insert, 4, aggregation_name(metric.aggregation));
		bind_text(insert, 5, metric.source);
		bind_text(insert, 6, metric.meaning);
		code = step(writer, insert, error);
	}
	sqlite3_finalize(insert);
	return code;
}

static int
write_ledger_words(struct writer *writer, struct plumb_error *error)
{
	sqlite3_stmt *insert;
	int code = prepare_insert(writer, "sources", 2, &insert, error);
	for (uint32_t i = 1; !code && i < PLUMB_SOURCE_COUNT; i++) {
		bind_text(insert, 1, plumb_source_names[i]);
		bind_text(insert, 2, plumb_source_units[i]);
		code = step(writer, insert, error);
	}
	sqlite3_finalize(insert);
	if (code)
		return code;
	code = prepare_insert(writer, "fates", 3, &insert, error);
	for (uint32_t i = 0; !code && i < PLUMB_FATE_COUNT; i++) {
		bind_text(insert, 1, plumb_store_fates[i]);
		sqlite3_bind_int64(insert, 2, plumb_fate_is_drop[i]);
		bind_text(insert, 3, plumb_fate_reasons[i]);
		code = step(writer, insert, error);
	}
	sqlite3_finalize(insert);
	return code;
}

/* ---- totals ---- */

static int
write_totals(struct writer *writer, struct plumb_error *error)
{
	const struct plumb_profile *profile = writer->profile;
	/* One row for each (metric, track), and one for each metric without a track. */
	uint32_t tracks = profile->tracks_count + 1;
	size_t count = (size_t)tracks * plumb_metric_slots(profile);
	struct plumb_stat *totals = calloc(count, sizeof *totals);
	if (!totals)
		return plumb_fail(error, PLUMB_ESYSTEM, "not enough memory; close other programs");
	for (uint32_t i = 0; i < profile->values_count; i++) {
		const struct plumb_value *v = &profile->values[i];
		uint32_t track = v->track == PLUMB_NONE ? tracks - 1 : v->track;
		struct plumb_stat stat = { v->sum, v->count, v->min, v->max, v->mean, v->m2 };
		plumb_stat_merge(&totals[(size_t)plumb_metric_slot(v->metric) * tracks + track],
		                 &stat);
	}
	sqlite3_stmt *insert;
	int code = prepare_insert(writer, "totals", 9, &insert, error);
	int64_t id = 0;
	for (size_t i = 0; !code && i < count; i++) {
		const struct plumb_stat *t = &totals[i];
		if (!t->count)
			continue;
		sqlite3_bind_int64(insert, 1, id++);
		sqlite3_bind_int64(insert, 2, plumb_metric_at((uint32_t)(i / tracks)));
		bind_number(insert, 3, i % tracks != tracks - 1, (int64_t)(i % tracks));
		sqlite3_bind_int64(insert, 4, t->sum);
		sqlite3_bind_int64(insert, 5, t->count > INT64_MAX ? INT64_MAX : (int64_t)t->count);
		sqlite3_bind_int64(insert, 6, t->min);
		sqlite3_bind_int64(insert, 7, t->max);
		sqlite3_bind_double(insert, 8, t->mean);
		sqlite3_bind_double(insert, 9, t->m2);
		code = step(writer, insert, error);
	}
	sqlite3_finalize(insert);
	free(totals);
	return code;
}

/* ---- spans as chunks ---- */

static int
write_chunk(struct writer *writer, sqlite3_stmt *insert, int64_t id,
            const struct plumb_chunk *chunk, const char *source, struct plumb_error *error)
{
	int at = 1;
	sqlite3_bind_int64(insert, at++, id);
	sqlite3_bind_int64(insert, at++, chunk->track);
	bind_text(insert, at++, source);
	sqlite3_bind_int64(insert, at++, chunk->start_ns);
	sqlite3_bind_int64(insert, at++, chunk->end_ns);
	sqlite3_bind_int64(insert, at++, chunk->count);
	sqlite3_bind_int64(insert, at++, chunk->total_ns);
	sqlite3_bind_int64(insert, at++, chunk->busy_ns);
	bind_text(insert, at++, PLUMB_CHUNK_CODEC);
	for (int c = 0; c < PLUMB_CHUNK_COLUMNS; c++)
		sqlite3_bind_blob64(insert, at++, chunk->columns[c].data, chunk->columns[c].bytes,
		                    SQLITE_STATIC);
	return step(writer, insert, error);
}

/* COUNT spans, which are ordered by track. */
static int
write_chunks(struct writer *writer, struct plumb_chunk_coder *coder, sqlite3_stmt *insert,
             const char *source, const struct plumb_span *spans, uint32_t count, int64_t *id,
             struct plumb_error *error)
{
	int code = PLUMB_OK;
	for (uint32_t at = 0; !code && at < count;) {
		struct plumb_chunk chunk = { .track = spans[at].track };
		while (at + chunk.count < count && chunk.count < PLUMB_CHUNK_ROWS &&
		       spans[at + chunk.count].track == chunk.track)
			chunk.count++;
		code = plumb_chunk_encode(coder, spans + at, spans == writer->profile->spans,
		                          &chunk, error);
		if (!code)
			code = write_chunk(writer, insert, (*id)++, &chunk, source, error);
		at += chunk.count;
	}
	return code;
}

static int
write_spans(struct writer *writer, struct plumb_error *error)
{
	const struct plumb_profile *profile = writer->profile;
	if (!profile->work_count && !profile->spans_count)
		return PLUMB_OK;
	struct plumb_span *work = profile->work_count ? plumb_newest_spans(profile) : NULL;
	struct plumb_chunk_coder *coder = plumb_chunk_coder_new();
	sqlite3_stmt *insert = NULL;
	int64_t id = 0;
	int code = PLUMB_OK;
	if ((!work && profile->work_count) || !coder)
		code = plumb_fail(error, PLUMB_ESYSTEM, "not enough memory; close other programs");
	if (!code)
		code = prepare_insert(writer, "span_chunks", 14, &insert, error);
	if (!code)
		code = write_chunks(writer, coder, insert, "newest", work, profile->work_count, &id,
		                    error);
	if (!code)
		code = write_chunks(writer, coder, insert, "trace", profile->spans,
		                    profile->spans_count, &id, error);
	sqlite3_finalize(insert);
	plumb_chunk_coder_free(coder);
	free(work);
	return code;
}

/* ---- the file ---- */

static int
write_rows(struct writer *writer, struct plumb_error *error)
{
	char pragmas[256];
	snprintf(pragmas, sizeof pragmas,
	         "PRAGMA page_size=8192; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
	         "PRAGMA locking_mode=EXCLUSIVE; PRAGMA application_id=%d; PRAGMA user_version=%d;",
	         PLUMB_STORE_APPLICATION_ID, PLUMB_STORE_SCHEMA);
	int code = execute(writer, pragmas, error);
	if (!code)
		code = execute(writer, "BEGIN", error);
	if (!code)
		code = execute(writer, plumb_store_tables_sql, error);
	for (int t = 0; !code && t < PLUMB_TABLES; t++)
		code = write_table(writer, &plumb_store_schema[t], error);
	if (!code)
		code = write_metrics(writer, error);
	if (!code)
		code = write_ledger_words(writer, error);
	if (!code)
		code = write_totals(writer, error);
	if (!code)
		code = write_spans(writer, error);
	if (!code)
		code = execute(writer, plumb_store_finish_sql, error);
	if (!code)
		code = execute(writer, "COMMIT", error);
	return code;
}

static int
write_database(struct writer *writer, const char *path, struct plumb_error *error)
{
	for (int t = 0; t < PLUMB_TABLES; t++) {
		uint32_t count;
		table_rows(writer->profile, &plumb_store_schema[t], &count);
		writer->rows += count;
	}
	/* No mutex: one thread. A path that looks like "file:…" is a path all the same. */
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
	int code = PLUMB_OK;
	if (sqlite3_open_v2(path, &writer->db, flags, NULL))
		code = writer->db ? fail_sql(writer, error)
		                  : plumb_fail(error, PLUMB_ESYSTEM, "not enough memory");
	if (!code)
		code = write_rows(writer, error);
	if (sqlite3_close(writer->db) && !code)
		code = plumb_fail(error, PLUMB_ESYSTEM, "cannot close the file");
	return code;
}

struct plumb_output_rule
plumb_store_rule(bool force, bool shared)
{
	return (struct plumb_output_rule){ .ours = plumb_store_is_profile,
		                           .kind = "a plumb profile",
		                           .force = force,
		                           .private = !shared,
		                           .widen = shared,
		                           .plain = true,
		                           .durable = true };
}

/* SQLite takes "file:…" for something else than a path. */
static int
write_temporary(struct writer *writer, const char *temporary, struct plumb_error *error)
{
	char path[PATH_MAX + 4];

	snprintf(path, sizeof path, "%s%s", *temporary == '/' ? "" : "./", temporary);
	int code = plumb_database_path_fits(path, error);
	return code ? code : write_database(writer, path, error);
}

int
plumb_store_write_by(const struct plumb_profile *profile, const char *path,
                     const struct plumb_output_rule *rule,
                     void (*progress)(void *data, double part), void *data,
                     struct plumb_error *error)
{
	struct writer writer = { .profile = profile, .progress = progress, .data = data };
	struct plumb_output output;
	int code = plumb_output_open(&output, path, rule, error);

	if (code)
		return code;
	code = write_temporary(&writer, output.temporary, error);
	if (code) {
		plumb_output_drop(&output);
		plumb_fail_in(error, "%s", path);
		return code;
	}
	code = plumb_output_close(&output, error);
	if (!code && progress)
		progress(data, 1);
	return code;
}

int
plumb_store_write(const struct plumb_profile *profile, const char *path,
                  void (*progress)(void *data, double part), void *data, struct plumb_error *error)
{
	struct plumb_output_rule rule = plumb_store_rule(false, false);

	return plumb_store_write_by(profile, path, &rule, progress, data, error);
}
