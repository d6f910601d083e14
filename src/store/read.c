/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File → profile. The file may be anybody's and hold anything: SQLite is told to trust nothing of
 * it, and every cell is checked before it becomes part of the profile. All tables count their ids
 * from 0 without a gap, so that a damaged tree of pages that leads to the same rows again and
 * again ends at the first of them; and no more text is taken in than the file is long.
 */
#include <inttypes.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/database.h"
#include "base/strtab.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "model/builder.h"
#include "model/metric.h"
#include "model/order.h"
#include "model/rows.h"
#include "store/chunk.h"
#include "store/open.h"
#include "store/schema.h"
#include "store/store.h"

/* A sound file needs fewer steps of SQLite's machine: a row takes four bytes or more, and a column
 * a step. */
#define STEPS_AT_ONCE 4096
#define STEPS_LEAST ((int64_t)20000000)
#define STEPS_OF_BYTE 16

enum part { ALL, STREAMS, TOTALS };

struct reader {
	sqlite3 *db;
	struct plumb_profile *profile;
	struct plumb_strtab *strings;
	uint64_t text_left; /* bytes of text that may still come */
	int64_t steps;      /* of SQLite's machine, likewise */
	uint32_t schema;    /* the file's */
	enum part part;     /* which spans of a trace */
	const char *table;  /* for messages */
	int64_t row;
	struct plumb_error *error;
};

/* ---- failing ---- */

static int
damaged(struct reader *reader, const char *what)
{
	return plumb_fail(reader->error, PLUMB_EINPUT,
	                  "the profile is damaged: %s in row %" PRId64 " of %s; copy the file "
	                  "again, or run plumb again",
	                  what, reader->row, reader->table);
}

static int
no_memory(struct reader *reader)
{
	return plumb_fail(reader->error, PLUMB_ESYSTEM,
	                  "not enough memory to read the profile; close other programs");
}

static int
fail_sql(struct reader *reader)
{
	int code = sqlite3_errcode(reader->db) & 0xff;
	if (code == SQLITE_NOMEM)
		return no_memory(reader);
	if (code == SQLITE_IOERR && sqlite3_system_errno(reader->db))
		return plumb_fail(reader->error, PLUMB_ESYSTEM, "cannot read: %s",
		                  strerror(sqlite3_system_errno(reader->db)));
	if (code == SQLITE_INTERRUPT)
		return plumb_fail(reader->error, PLUMB_EINPUT,
		                  "the profile is damaged: reading %s takes too long for a file "
		                  "of this size; copy the file again, or run plumb again",
		                  reader->table);
	return plumb_fail(reader->error, PLUMB_EINPUT,
	                  "the profile is damaged: %s (%s); copy the file again, or run plumb "
	                  "again",
	                  sqlite3_errmsg(reader->db), reader->table);
}

/* ---- cells ---- */

static int
read_number(struct reader *reader, sqlite3_stmt *select, int at, int64_t *number)
{
	if (sqlite3_column_type(select, at) != SQLITE_INTEGER)
		return damaged(reader, "not a number");
	*number = sqlite3_column_int64(select, at);
	return PLUMB_OK;
}

/* A text cell as it lies in the statement; *TEXT is NULL for NULL. */
static int
read_text(struct reader *reader, sqlite3_stmt *select, int at, const char **text, size_t *bytes)
{
	*text = NULL;
	*bytes = 0;
	if (sqlite3_column_type(select, at) == SQLITE_NULL)
		return PLUMB_OK;
	if (sqlite3_column_type(select, at) != SQLITE_TEXT)
		return damaged(reader, "not text");
	*text = (const char *)sqlite3_column_text(select, at);
	if (!*text)
		return no_memory(reader);
	*bytes = (size_t)sqlite3_column_bytes(select, at);
	if (*bytes > reader->text_left)
		return damaged(reader, "more text than the file can hold");
	reader->text_left -= *bytes;
	if (memchr(*text, 0, *bytes) || !plumb_utf8_valid(*text, *bytes))
		return damaged(reader, "text that is not UTF-8");
	return PLUMB_OK;
}

static int
read_string(struct reader *reader, sqlite3_stmt *select, int at, uint32_t *id)
{
	const char *text;
	size_t bytes;
	int code = read_text(reader, select, at, &text, &bytes);
	*id = PLUMB_NONE;
	if (code || !text)
		return code;
	*id = plumb_strtab_add(reader->strings, text, bytes);
	return *id == PLUMB_STRTAB_NONE ? no_memory(reader) : PLUMB_OK;
}

static int
read_word(struct reader *reader, sqlite3_stmt *select, int at,
          const struct plumb_row_column *column, uint32_t *id)
{
	const char *text;
	size_t bytes;
	int code = read_text(reader, select, at, &text, &bytes);
	if (code)
		return code;
	for (*id = 0; text && *id < column->limit; ++*id)
		if (column->words[*id] && !strcmp(column->words[*id], text))
			return PLUMB_OK;
	return damaged(reader, "an unknown word");
}

static int
read_id(struct reader *reader, sqlite3_stmt *select, int at, const struct plumb_row_column *column,
        uint32_t *id)
{
	int64_t number = 0;
	*id = PLUMB_NONE;
	if (column->cell == PLUMB_ROW_ID_OR_NONE && sqlite3_column_type(select, at) == SQLITE_NULL)
		return PLUMB_OK;
	int code = read_number(reader, select, at, &number);
	if (code)
		return code;
	if (number < 0 ||
	    number >= plumb_rows_of(reader->profile, &plumb_row_tables[column->limit]).count)
		return damaged(reader, "an id out of range");
	*id = (uint32_t)number;
	return PLUMB_OK;
}

static int
read_real(struct reader *reader, sqlite3_stmt *select, int at, double *real)
{
	*real = NAN;
	int type = sqlite3_column_type(select, at);
	if (type == SQLITE_NULL)
		return PLUMB_OK;
	if (type != SQLITE_FLOAT && type != SQLITE_INTEGER)
		return damaged(reader, "not a number");
	*real = sqlite3_column_double(select, at);
	return isfinite(*real) ? PLUMB_OK : damaged(reader, "an infinite number");
}

static int
read_cell(struct reader *reader, sqlite3_stmt *select, int at,
          const struct plumb_row_column *column, char *row)
{
	char *field = row + column->offset;
	int64_t number = 0;
	uint32_t id = 0;
	double real;
	int code;
	switch (column->cell) {
	case PLUMB_ROW_INT:
		number = PLUMB_UNKNOWN;
		code = sqlite3_column_type(select, at) == SQLITE_NULL
		               ? PLUMB_OK
		               : read_number(reader, select, at, &number);
		memcpy(field, &number, sizeof number);
		return code;
	case PLUMB_ROW_NUMBER:
	case PLUMB_ROW_AMOUNT:
	case PLUMB_ROW_TIME:
	case PLUMB_ROW_END:
	case PLUMB_ROW_COUNT:
		code = read_number(reader, select, at, &number);
		if (!code && column->cell == PLUMB_ROW_COUNT && number < 1)
			code = damaged(reader, "a count below 1");
		if (!code && column->cell == PLUMB_ROW_AMOUNT && number < 0)
			code = damaged(reader, "an amount below 0");
		memcpy(field, &number, sizeof number);
		return code;
	case PLUMB_ROW_LINK:
		code = sqlite3_column_type(select, at) == SQLITE_NULL
		               ? PLUMB_OK
		               : read_number(reader, select, at, &number);
		memcpy(field, &number, sizeof number);
		return code;
	case PLUMB_ROW_REAL:
	case PLUMB_ROW_KNOWN:
		code = read_real(reader, select, at, &real);
		if (!code && column->cell == PLUMB_ROW_KNOWN && isnan(real))
			code = damaged(reader, "not a number");
		memcpy(field, &real, sizeof real);
		return code;
	case PLUMB_ROW_LINE:
		if (sqlite3_column_type(select, at) != SQLITE_NULL &&
		    (code = read_number(reader, select, at, &number)))
			return code;
		if (number < 0 || number > UINT32_MAX)
			return damaged(reader, "a line out of range");
		id = (uint32_t)number;
		break;
	case PLUMB_ROW_BITS:
	case PLUMB_ROW_METRIC: /* the profile is asked for it when it has its metrics */
		if ((code = read_number(reader, select, at, &number)))
			return code;
		if (number < 0 || number >= UINT32_MAX)
			return damaged(reader, "a number out of range");
		id = (uint32_t)number;
		break;
	case PLUMB_ROW_TEXT:
		if ((code = read_string(reader, select, at, &id)))
			return code;
		break;
	case PLUMB_ROW_WORD:
		if ((code = read_word(reader, select, at, column, &id)))
			return code;
		break;
	case PLUMB_ROW_ID:
	case PLUMB_ROW_ID_OR_NONE:
		if ((code = read_id(reader, select, at, column, &id)))
			return code;
		break;
	}
	memcpy(field, &id, sizeof id);
	return PLUMB_OK;
}

/* ---- tables ---- */

/* Only real tables: a view or a virtual table of that name could run anything. */
static int
has_table(struct reader *reader, bool *there)
{
	int found = plumb_database_has(reader->db, reader->table);
	int computes = found > 0 ? plumb_database_computes(reader->db, reader->table) : 0;
	*there = found > 0;
	if (found < 0 || computes < 0)
		return fail_sql(reader);
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
	struct reader *reader = data;
	reader->steps -= STEPS_AT_ONCE;
	return reader->steps < 0;
}

/* SELECT id, COLUMNS FROM TABLE, in the order of ids: where they are not the order of the rows, the
 * next one shows it. An index may have been made to hold other rows. */
static int
prepare_select(struct reader *reader, const char *columns, sqlite3_stmt **select)
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
		return fail_sql(reader);
	return PLUMB_OK;
}

static int
next_row(struct reader *reader, sqlite3_stmt *select, bool *found)
{
	int stepped = sqlite3_step(select);
	*found = stepped == SQLITE_ROW;
	if (stepped == SQLITE_DONE)
		return PLUMB_OK;
	if (stepped != SQLITE_ROW)
		return fail_sql(reader);
	if (sqlite3_column_int64(select, 0) != reader->row || reader->row >= PLUMB_VEC_MAX)
		return damaged(reader, "an id out of order");
	return PLUMB_OK;
}

static void
join_columns(const struct plumb_row_table *table, uint32_t schema, char *out, size_t size)
{
	size_t used = 0;
	*out = 0;
	for (uint32_t c = 0; c < table->columns_count && used < size; c++)
		used += (size_t)snprintf(out + used, size - used, "%s%s", c ? ", " : "",
		                         table->columns[c].since > schema ? "NULL"
		                                                          : table->columns[c].name);
}

/* The rows are stored in the profile at once, so that they are freed with it whatever happens. */
static int
read_rows(struct reader *reader, const struct plumb_row_table *table, sqlite3_stmt *select)
{
	bool found;
	for (;; reader->row++) {
		int code = next_row(reader, select, &found);
		if (code || !found)
			return code;
		if (table->single && reader->row > 0)
			return damaged(reader, "a second row");
		if (table->most && reader->row >= table->most)
			return damaged(reader, "more rows than a profile holds");
		/* Counted first: a context may name itself or an earlier one, never a later one. */
		char *row = table->single ? plumb_rows_of(reader->profile, table).items
		                          : plumb_rows_add(reader->profile, table);
		if (!row)
			return no_memory(reader);
		for (uint32_t c = 0; !code && c < table->columns_count; c++)
			code = read_cell(reader, select, (int)c + 1, &table->columns[c], row);
		if (code)
			return code;
	}
}

static int
read_table(struct reader *reader, const struct plumb_row_table *table)
{
	char columns[512];
	reader->table = table->name;
	reader->row = 0;
	if (table->since > reader->schema)
		return PLUMB_OK;
	if (table->moments && reader->part == TOTALS)
		return PLUMB_OK;
	if (table->may_lack) {
		bool there = false;
		int asked = has_table(reader, &there);
		if (asked || !there)
			return asked;
	}
	join_columns(table, reader->schema, columns, sizeof columns);
	sqlite3_stmt *select;
	int code = prepare_select(reader, columns, &select);
	if (!code)
		code = read_rows(reader, table, select);
	sqlite3_finalize(select);
	return code;
}

/* ---- metrics of the program's own ---- */

/* No other metric may have its name. The strings are still in the table. */
static bool
is_new_metric(const struct reader *reader, uint32_t name)
{
	const char *text = plumb_strtab_text(reader->strings, name);
	if (!text || !*text || plumb_metric_find(text))
		return false;
	for (uint32_t i = 0; i < reader->profile->user_metrics_count; i++)
		if (reader->profile->user_metrics[i].name == name)
			return false;
	return true;
}

/* One row of the table; what plumb itself names stands in base/words.h and is passed over. */
static int
read_metric(struct reader *reader, sqlite3_stmt *select, int64_t before)
{
	struct plumb_profile *profile = reader->profile;
	struct plumb_user_metric metric = { PLUMB_NONE, PLUMB_NONE };
	int code;
	if (reader->row <= before)
		return damaged(reader, "an id out of order");
	if (reader->row < PLUMB_METRIC_USER)
		return PLUMB_OK;
	if (reader->row != (int64_t)PLUMB_METRIC_USER + profile->user_metrics_count ||
	    profile->user_metrics_count >= PLUMB_USER_METRICS_MOST)
		return damaged(reader, "an id out of order");
	if ((code = read_string(reader, select, 1, &metric.name)) ||
	    (code = read_string(reader, select, 2, &metric.unit)))
		return code;
	if (!is_new_metric(reader, metric.name))
		return damaged(reader, "a metric's name that is missing or used twice");
	struct plumb_user_metric *added = plumb_profile_add_metric(profile);
	if (!added)
		return no_memory(reader);
	*added = metric;
	return PLUMB_OK;
}

static int
read_metrics(struct reader *reader)
{
	sqlite3_stmt *select;
	reader->table = "metrics";
	reader->row = 0;
	int code = prepare_select(reader, "name, unit", &select), stepped = SQLITE_DONE;
	while (!code && (stepped = sqlite3_step(select)) == SQLITE_ROW) {
		int64_t before = reader->row;
		reader->row = sqlite3_column_int64(select, 0);
		code = read_metric(reader, select, before);
	}
	if (!code && stepped != SQLITE_DONE)
		code = fail_sql(reader);
	sqlite3_finalize(select);
	return code;
}

/* ---- what holds between rows ---- */

/* Contexts are a tree in preorder: each hangs under the one before it or under one of that one's
 * ancestors, and `last` is where its subtree ends. */
static int
check_tree(struct reader *reader)
{
	const struct plumb_context *contexts = reader->profile->contexts;
	uint32_t count = reader->profile->contexts_count;
	reader->table = "contexts";
	reader->row = 0;
	if (!count || contexts[0].parent != PLUMB_NONE || contexts[0].depth ||
	    reader->profile->frames[contexts[0].frame].kind != PLUMB_FRAME_ROOT)
		return damaged(reader, "no root context");
	for (uint32_t i = 1; i <= count; i++) {
		uint32_t parent = i < count ? contexts[i].parent : PLUMB_NONE;
		reader->row = i;
		uint32_t open = i - 1;
		for (; open != parent; open = contexts[open].parent) {
			if (open == PLUMB_NONE || contexts[open].last != i - 1)
				return damaged(reader, "a context that is not in preorder");
		}
		if (i < count &&
		    (parent == PLUMB_NONE || contexts[i].depth != contexts[parent].depth + 1))
			return damaged(reader, "a context with a wrong depth");
	}
	return PLUMB_OK;
}

static bool
reader_has_metric(const struct reader *reader, uint32_t number)
{
	if (number < PLUMB_METRIC_COUNT)
		return plumb_metrics[number].name != NULL;
	return number >= PLUMB_METRIC_USER &&
	       number - PLUMB_METRIC_USER < reader->profile->user_metrics_count;
}

static int
check_values(struct reader *reader)
{
	const struct plumb_profile *profile = reader->profile;
	reader->table = "context_values";
	for (uint32_t i = 0; i < profile->values_count; i++) {
		const struct plumb_value *v = &profile->values[i], *before = v - 1;
		reader->row = i;
		if (!v->metric || !reader_has_metric(reader, v->metric) || v->min > v->max ||
		    v->m2 < 0)
			return damaged(reader, "an impossible value");
		if (!i || v->context > before->context)
			continue;
		if (v->context < before->context || v->metric < before->metric ||
		    (v->metric == before->metric && v->track <= before->track))
			return damaged(reader, "a value out of order");
	}
	return PLUMB_OK;
}

static int
check_rows(struct reader *reader)
{
	const struct plumb_profile *profile = reader->profile;
	reader->table = "environment";
	for (uint32_t i = 0; i < profile->environment_count; i++) {
		reader->row = i;
		if (profile->environment[i].key == PLUMB_NONE ||
		    profile->environment[i].value == PLUMB_NONE)
			return damaged(reader, "no key or value");
	}
	reader->table = "clocks";
	for (uint32_t i = 0; i < profile->clocks_count; i++) {
		reader->row = i;
		if (isnan(profile->clocks[i].slope))
			return damaged(reader, "no slope");
	}
	reader->table = "cpu_samples";
	for (uint32_t i = 0; i < profile->cpu_samples_count; i++) {
		const struct plumb_cpu_sample *s = &profile->cpu_samples[i];
		reader->row = i;
		if (i &&
		    (s->track < s[-1].track || (s->track == s[-1].track && s->at_ns < s[-1].at_ns)))
			return damaged(reader, "a sample out of order");
	}
	return PLUMB_OK;
}

/* ---- spans ---- */

static int
read_blob(struct reader *reader, sqlite3_stmt *select, int at, struct plumb_blob *blob)
{
	if (sqlite3_column_type(select, at) != SQLITE_BLOB)
		return damaged(reader, "not a blob");
	blob->data = (void *)(uintptr_t)sqlite3_column_blob(select, at);
	blob->bytes = (size_t)sqlite3_column_bytes(select, at);
	return blob->data ? PLUMB_OK : damaged(reader, "an empty blob");
}

enum chunk_source { OTHER, NEWEST, TRACE };

/* What is not taken in is not read either: its blobs stay where they are. */
static int
read_chunk(struct reader *reader, sqlite3_stmt *select, struct plumb_chunk *chunk,
           enum chunk_source *source_of)
{
	static const struct plumb_row_column track = { .cell = PLUMB_ROW_ID,
		                                       .limit = PLUMB_TABLE_TRACKS };
	int64_t count = 0;
	const char *source, *codec;
	size_t bytes;
	int code = read_id(reader, select, 1, &track, &chunk->track);
	if (!code)
		code = read_text(reader, select, 2, &source, &bytes);
	if (!code)
		code = read_number(reader, select, 3, &chunk->start_ns);
	if (!code)
		code = read_number(reader, select, 4, &count);
	if (!code)
		code = read_text(reader, select, 5, &codec, &bytes);
	if (code)
		return code;
	*source_of = !source                                              ? OTHER
	             : !strcmp(source, "newest")                          ? NEWEST
	             : !strcmp(source, "trace") && reader->part != TOTALS ? TRACE
	                                                                  : OTHER;
	if (*source_of == TRACE && reader->part == STREAMS &&
	    reader->profile->tracks[chunk->track].kind != PLUMB_TRACK_STREAM)
		*source_of = OTHER;
	if (*source_of == OTHER)
		return PLUMB_OK;
	int columns = *source_of == NEWEST ? PLUMB_CHUNK_CORRELATION : PLUMB_CHUNK_COLUMNS;
	if (columns == PLUMB_CHUNK_COLUMNS &&
	    sqlite3_column_type(select, 6 + PLUMB_CHUNK_BYTES) == SQLITE_NULL)
		columns = PLUMB_CHUNK_BYTES;
	for (int c = 0; !code && c < columns; c++)
		code = read_blob(reader, select, 6 + c, &chunk->columns[c]);
	if (code)
		return code;
	if (!codec || strcmp(codec, PLUMB_CHUNK_CODEC))
		return damaged(reader, "an unknown codec");
	if (count < 1 || count > PLUMB_CHUNK_ROWS)
		return damaged(reader, "an impossible count");
	chunk->count = (uint32_t)count;
	return PLUMB_OK;
}

/* ROWS with room for COUNT of SIZE bytes, or NULL. */
static void *
room_for(void *rows, uint32_t *capacity, uint32_t count, size_t size)
{
	return count > *capacity ? plumb_vec_grow(rows, capacity, count, size) : rows;
}

static int
add_spans(struct reader *reader, struct plumb_chunk_coder *coder, const struct plumb_chunk *chunk,
          uint32_t *capacity)
{
	struct plumb_profile *profile = reader->profile;
	struct plumb_error why = { 0 };
	uint32_t count = profile->spans_count + chunk->count;
	if (count > PLUMB_SPANS_MAX)
		return damaged(reader, "more spans than a profile keeps");
	struct plumb_span *spans = room_for(profile->spans, capacity, count, sizeof *spans);
	if (!spans)
		return no_memory(reader);
	profile->spans = spans;
	if (plumb_chunk_decode(coder, chunk, profile->contexts_count, spans + profile->spans_count,
	                       &why))
		return damaged(reader, why.message);
	profile->spans_count = count;
	return PLUMB_OK;
}

/* SPARE: room for a chunk's spans. */
static int
add_work(struct reader *reader, struct plumb_chunk_coder *coder, const struct plumb_chunk *chunk,
         uint32_t *capacity, struct plumb_span *spare)
{
	struct plumb_profile *profile = reader->profile;
	struct plumb_error why = { 0 };
	uint32_t count = profile->work_count + chunk->count;
	if (count > PLUMB_WORK_MAX)
		return damaged(reader, "more GPU work than a profile keeps");
	struct plumb_work_item *work = room_for(profile->work, capacity, count, sizeof *work);
	if (!work)
		return no_memory(reader);
	profile->work = work;
	if (plumb_chunk_decode(coder, chunk, profile->contexts_count, spare, &why))
		return damaged(reader, why.message);
	for (uint32_t i = 0; i < chunk->count; i++)
		work[profile->work_count + i] =
			(struct plumb_work_item){ spare[i].context, spare[i].track,
			                          spare[i].start_ns, spare[i].end_ns };
	profile->work_count = count;
	return PLUMB_OK;
}

static int
read_chunks(struct reader *reader, struct plumb_chunk_coder *coder, sqlite3_stmt *select,
            struct plumb_span *spare)
{
	uint32_t work_capacity = 0, spans_capacity = 0;
	for (bool found;; reader->row++) {
		struct plumb_chunk chunk = { 0 };
		enum chunk_source source = OTHER;
		int code = next_row(reader, select, &found);
		if (!code && found)
			code = read_chunk(reader, select, &chunk, &source);
		if (!code && source == NEWEST)
			code = add_work(reader, coder, &chunk, &work_capacity, spare);
		if (!code && source == TRACE)
			code = add_spans(reader, coder, &chunk, &spans_capacity);
		if (code || !found)
			return code;
	}
}

#define CHUNK "track, source, start_ns, count, codec, context, start, duration, "
static const char *const chunk_columns[] = {
	/* by schema */
	CHUNK "NULL, NULL",
	CHUNK "NULL, NULL",
	CHUNK "correlation, NULL",
	CHUNK "correlation, bytes",
};

static int
read_spans(struct reader *reader)
{
	struct plumb_profile *profile = reader->profile;
	reader->table = "span_chunks";
	reader->row = 0;
	struct plumb_chunk_coder *coder = plumb_chunk_coder_new();
	struct plumb_span *spare = malloc(PLUMB_CHUNK_ROWS * sizeof *spare);
	sqlite3_stmt *select = NULL;
	int code = coder && spare ? PLUMB_OK : no_memory(reader);
	if (!code)
		code = prepare_select(
			reader, chunk_columns[reader->schema < 3 ? reader->schema : 3], &select);
	if (!code)
		code = read_chunks(reader, coder, select, spare);
	sqlite3_finalize(select);
	plumb_chunk_coder_free(coder);
	free(spare);
	if (!code && (plumb_order_work(profile->work, profile->work_count, profile->tracks) ||
	              plumb_order_spans(profile->spans, profile->spans_count)))
		code = no_memory(reader);
	return code;
}

/* ---- the whole ---- */

static int
read_all(struct reader *reader)
{
	int code = PLUMB_OK;
	for (int t = 0; !code && t < PLUMB_TABLES; t++) {
		if (!plumb_row_tables[t].chunks)
			code = read_table(reader, &plumb_row_tables[t]);
		if (!code && t == PLUMB_TABLE_RUN && !reader->row)
			code = damaged(reader, "nothing");
		if (!code && t == PLUMB_TABLE_CONTEXTS)
			code = check_tree(reader);
	}
	if (!code)
		code = read_metrics(reader);
	if (!code)
		code = check_values(reader);
	if (!code)
		code = check_rows(reader);
	if (!code)
		code = read_spans(reader);
	return code;
}

static int
read_file(struct plumb_profile *profile, const char *path, enum part part,
          struct plumb_error *error)
{
	*profile = (struct plumb_profile){ 0 };
	struct reader reader = { .profile = profile, .table = "", .part = part, .error = error };
	int code = plumb_store_open(&reader.db, path, &reader.text_left, &reader.schema, error);
	if (!code) {
		uint64_t bytes =
			reader.text_left < INT64_MAX / 64 ? reader.text_left : INT64_MAX / 64;
		reader.steps = (int64_t)bytes * STEPS_OF_BYTE + STEPS_LEAST;
		sqlite3_progress_handler(reader.db, STEPS_AT_ONCE, count_steps, &reader);
		reader.strings = plumb_strtab_new();
		code = reader.strings ? read_all(&reader) : no_memory(&reader);
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
	return read_file(profile, path, ALL, error);
}

int
plumb_store_read_totals(struct plumb_profile *profile, const char *path, struct plumb_error *error)
{
	return read_file(profile, path, TOTALS, error);
}

int
plumb_store_read_streams(struct plumb_profile *profile, const char *path, struct plumb_error *error)
{
	return read_file(profile, path, STREAMS, error);
}
