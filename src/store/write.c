/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profile → file. The rows go to a temporary file beside the target, without a journal and without
 * waiting for the disk. Only the whole file is flushed to the disk. Then it takes the name of the
 * target.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/database.h"
#include "model/metric.h"
#include "store/blob.h"
#include "store/packed.h"
#include "store/schema.h"
#include "store/store.h"
#include "store/writer.h"

#define PROGRESS_ROWS 16384u

/* ---- SQL ---- */

static int
fail_sql(struct plumb_writer *writer, struct plumb_error *error)
{
	int code = sqlite3_errcode(writer->db);
	int number = sqlite3_system_errno(writer->db);
	if (!number) /* not kept by the connection, but by the file */
		sqlite3_file_control(writer->db, "main", SQLITE_FCNTL_LAST_ERRNO, &number);
	if (code == SQLITE_NOMEM)
		return plumb_fail_memory(error, "to write the profile");
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

int
plumb_writer_execute(struct plumb_writer *writer, const char *sql, struct plumb_error *error)
{
	if (sqlite3_exec(writer->db, sql, NULL, NULL, NULL))
		return fail_sql(writer, error);
	return PLUMB_OK;
}

/* FIRST: what the statement has for the first column, "?1" or NULL. */
static int
prepare_insert(struct plumb_writer *writer, const char *table, const char *first, unsigned columns,
               sqlite3_stmt **insert, struct plumb_error *error)
{
	char sql[768];
	int used = snprintf(sql, sizeof sql, "INSERT INTO %s VALUES(%s", table, first);
	for (unsigned i = 1; i < columns; i++)
		used += snprintf(sql + used, sizeof sql - (size_t)used, ",?%u", i + 1);
	snprintf(sql + used, sizeof sql - (size_t)used, ")");
	if (sqlite3_prepare_v2(writer->db, sql, -1, insert, NULL))
		return fail_sql(writer, error);
	return PLUMB_OK;
}

int
plumb_writer_prepare(struct plumb_writer *writer, const char *table, unsigned columns,
                     sqlite3_stmt **insert, struct plumb_error *error)
{
	return prepare_insert(writer, table, "?1", columns, insert, error);
}

int
plumb_writer_step(struct plumb_writer *writer, sqlite3_stmt *insert, struct plumb_error *error)
{
	sqlite3_step(insert);
	if (sqlite3_reset(insert))
		return fail_sql(writer, error);
	return PLUMB_OK;
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

/* The content, plain or packed, and its length. */
static void
bind_blob(sqlite3_stmt *insert, int at, const struct plumb_blob *blob)
{
	size_t length;
	void *packed = blob->data ? plumb_blob_pack(blob, &length) : NULL;
	if (packed)
		sqlite3_bind_blob64(insert, at, packed, length, free);
	else if (blob->data)
		sqlite3_bind_blob64(insert, at, blob->data, blob->bytes, SQLITE_STATIC);
	else
		sqlite3_bind_null(insert, at);
	bind_number(insert, at + 1, blob->data != NULL, (int64_t)blob->bytes);
}

static void
bind_cell(const struct plumb_writer *writer, sqlite3_stmt *insert, int at,
          const struct plumb_row_column *column, const char *row)
{
	const char *field = row + column->offset;
	int64_t number;
	uint64_t count;
	uint32_t id;
	double real;
	struct plumb_blob blob;
	switch (column->cell) {
	case PLUMB_ROW_INT:
	case PLUMB_ROW_NUMBER:
	case PLUMB_ROW_AMOUNT:
	case PLUMB_ROW_TIME:
	case PLUMB_ROW_END:
		memcpy(&number, field, sizeof number);
		bind_number(insert, at, column->cell != PLUMB_ROW_INT || number != PLUMB_UNKNOWN,
		            number);
		break;
	case PLUMB_ROW_LINK:
		memcpy(&number, field, sizeof number);
		bind_number(insert, at, number != 0, number);
		break;
	case PLUMB_ROW_COUNT:
		memcpy(&count, field, sizeof count);
		sqlite3_bind_int64(insert, at, count > INT64_MAX ? INT64_MAX : (int64_t)count);
		break;
	case PLUMB_ROW_REAL:
	case PLUMB_ROW_KNOWN:
		memcpy(&real, field, sizeof real);
		sqlite3_bind_double(insert, at, real); /* NAN becomes NULL */
		break;
	case PLUMB_ROW_BLOB:
		memcpy(&blob, field, sizeof blob);
		bind_blob(insert, at, &blob);
		break;
	case PLUMB_ROW_LINE:
		memcpy(&id, field, sizeof id);
		bind_number(insert, at, id != 0, id);
		break;
	case PLUMB_ROW_BITS:
	case PLUMB_ROW_METRIC:
	case PLUMB_ROW_ID:
	case PLUMB_ROW_ID_OR_NONE:
		memcpy(&id, field, sizeof id);
		bind_number(insert, at, column->cell != PLUMB_ROW_ID_OR_NONE || id != PLUMB_NONE,
		            id);
		break;
	case PLUMB_ROW_ID_OR_0:
		memcpy(&id, field, sizeof id);
		bind_number(insert, at, id != 0, id - INT64_C(1));
		break;
	case PLUMB_ROW_TEXT:
		memcpy(&id, field, sizeof id);
		bind_text(insert, at, plumb_text(writer->profile, id));
		break;
	case PLUMB_ROW_WORD:
		memcpy(&id, field, sizeof id);
		bind_text(insert, at, id < column->limit ? column->words[id] : NULL);
		break;
	}
}

static int
write_row(struct plumb_writer *writer, sqlite3_stmt *insert, const struct plumb_row_column *columns,
          uint32_t count, const void *row, struct plumb_error *error)
{
	for (uint32_t c = 0, at = 2; c < count; c++) {
		bind_cell(writer, insert, (int)at, &columns[c], row);
		at += plumb_row_cells(&columns[c]);
	}
	return plumb_writer_step(writer, insert, error);
}

int
plumb_writer_rows(struct plumb_writer *writer, const struct plumb_row_table *table,
                  struct plumb_error *error)
{
	struct plumb_row_array rows = plumb_row_array_of(writer->profile, table);
	sqlite3_stmt *insert;
	unsigned columns = 1;
	for (uint32_t c = 0; c < table->columns_count; c++)
		columns += plumb_row_cells(&table->columns[c]);
	int code = plumb_writer_prepare(writer, table->name, columns, &insert, error);
	if (!code)
		sqlite3_bind_int64(insert, 1, 0);
	for (uint32_t i = 0; !code && i < rows.count; i++) {
		/* After the first row SQLite counts the ids. It then appends without a search. */
		if (i == 1) {
			sqlite3_finalize(insert);
			code = prepare_insert(writer, table->name, "NULL", columns, &insert, error);
		}
		if (!code)
			code = write_row(writer, insert, table->columns, table->columns_count,
			                 rows.items + (size_t)i * table->row_size, error);
		if (++writer->done % PROGRESS_ROWS == 0 && writer->progress)
			writer->progress(writer->data,
			                 0.9 * (double)writer->done / (double)(writer->rows + 1));
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
write_metrics(struct plumb_writer *writer, struct plumb_error *error)
{
	sqlite3_stmt *insert;
	int code = plumb_writer_prepare(writer, "metrics", 6, &insert, error);
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
		code = plumb_writer_step(writer, insert, error);
	}
	sqlite3_finalize(insert);
	return code;
}

static int
write_ledger_words(struct plumb_writer *writer, struct plumb_error *error)
{
	sqlite3_stmt *insert;
	int code = plumb_writer_prepare(writer, "sources", 2, &insert, error);
	for (uint32_t i = 1; !code && i < PLUMB_SOURCE_COUNT; i++) {
		bind_text(insert, 1, plumb_source_names[i]);
		bind_text(insert, 2, plumb_source_units[i]);
		code = plumb_writer_step(writer, insert, error);
	}
	sqlite3_finalize(insert);
	if (code)
		return code;
	code = plumb_writer_prepare(writer, "fates", 3, &insert, error);
	for (uint32_t i = 0; !code && i < PLUMB_FATE_COUNT; i++) {
		bind_text(insert, 1, plumb_fate_names[i]);
		sqlite3_bind_int64(insert, 2, plumb_fate_is_drop[i]);
		bind_text(insert, 3, plumb_fate_reasons[i]);
		code = plumb_writer_step(writer, insert, error);
	}
	sqlite3_finalize(insert);
	return code;
}

/* ---- totals ---- */

static int
write_totals(struct plumb_writer *writer, struct plumb_error *error)
{
	const struct plumb_profile *profile = writer->profile;
	/* One row for each (metric, track), and one for each metric without a track. */
	uint32_t tracks = profile->tracks_count + 1;
	size_t count = (size_t)tracks * plumb_metric_slots(profile);
	struct plumb_stat *totals = calloc(count, sizeof *totals);
	if (!totals)
		return plumb_fail_memory(error, "to write the profile");
	for (uint32_t i = 0; i < profile->values_count; i++) {
		const struct plumb_value *v = &profile->values[i];
		uint32_t track = v->track == PLUMB_NONE ? tracks - 1 : v->track;
		struct plumb_stat stat = plumb_value_stat(v);
		plumb_stat_merge(&totals[(size_t)plumb_metric_slot(v->metric) * tracks + track],
		                 &stat);
	}
	sqlite3_stmt *insert;
	/* Like values, but without a context. */
	const struct plumb_row_table *values = &plumb_row_tables[PLUMB_TABLE_VALUES];
	uint32_t columns = plumb_store_totals_end();
	int code = plumb_writer_prepare(writer, "totals", columns, &insert, error);
	int64_t id = 0;
	for (size_t i = 0; !code && i < count; i++) {
		const struct plumb_stat *t = &totals[i];
		if (!t->count)
			continue;
		struct plumb_value row = {
			.metric = plumb_metric_at((uint32_t)(i / tracks)),
			.track = i % tracks == tracks - 1 ? PLUMB_NONE : (uint32_t)(i % tracks),
			.sum = t->sum,
			.count = t->count,
			.min = t->min,
			.max = t->max,
			.mean = t->mean,
			.m2 = t->m2,
		};
		sqlite3_bind_int64(insert, 1, id++);
		code = write_row(writer, insert, values->columns + 1, columns - 1, &row, error);
	}
	sqlite3_finalize(insert);
	free(totals);
	return code;
}

/* ---- the file ---- */

static int
write_rows(struct plumb_writer *writer, struct plumb_error *error)
{
	char pragmas[256];
	snprintf(pragmas, sizeof pragmas,
	         "PRAGMA page_size=8192; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
	         "PRAGMA locking_mode=EXCLUSIVE; PRAGMA application_id=%d; PRAGMA user_version=%d;",
	         PLUMB_STORE_APPLICATION_ID, PLUMB_STORE_SCHEMA);
	int code = plumb_writer_execute(writer, pragmas, error);
	if (!code)
		code = plumb_writer_execute(writer, "BEGIN", error);
	char *tables = plumb_store_tables_sql();
	if (!code)
		code = tables ? plumb_writer_execute(writer, tables, error)
		              : plumb_fail_memory(error, "to write the profile");
	free(tables);
	for (int t = 0; !code && t < PLUMB_TABLES; t++)
		if (!plumb_row_tables[t].chunks)
			code = plumb_writer_rows(writer, &plumb_row_tables[t], error);
	if (!code)
		code = write_metrics(writer, error);
	if (!code)
		code = write_ledger_words(writer, error);
	if (!code)
		code = write_totals(writer, error);
	for (int t = 0; !code && t < PLUMB_TABLES; t++)
		if (plumb_row_tables[t].chunks)
			code = plumb_writer_chunks(writer, &plumb_row_tables[t], error);
	if (!code)
		code = plumb_packed_write(writer, error);
	if (!code)
		code = plumb_writer_execute(writer, plumb_store_finish_sql, error);
	if (!code)
		code = plumb_writer_execute(writer, "COMMIT", error);
	return code;
}

static int
write_database(struct plumb_writer *writer, const char *path, struct plumb_error *error)
{
	for (int t = 0; t < PLUMB_TABLES; t++)
		if (!plumb_row_tables[t].chunks)
			writer->rows +=
				plumb_row_array_of(writer->profile, &plumb_row_tables[t]).count;
	/* No mutex: one thread. A path that looks like "file:…" is a path all the same. */
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
	int code = PLUMB_OK;
	if (sqlite3_open_v2(path, &writer->db, flags, NULL))
		code = writer->db ? fail_sql(writer, error)
		                  : plumb_fail_memory(error, "to write the profile");
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

/* SQLite does not treat "file:…" as a path. */
static int
write_temporary(struct plumb_writer *writer, const char *temporary, struct plumb_error *error)
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
	struct plumb_writer writer = { .profile = profile, .progress = progress, .data = data };
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
