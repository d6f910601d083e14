/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hostile database may have pages that point at one another, so that a small file has rows
 * without end, or share one long text among many rows. Hence three budgets in proportion to the
 * file: steps of SQLite's machine, rows of scans, and bytes of texts. A sound file cannot reach
 * them: a row takes four bytes or more, and a table is read at most twice.
 */
#include "import/sqlite.h"

#include <stdio.h>
#include <sys/stat.h>

#include "base/database.h"
#include "base/hash.h"

#define MAGIC "SQLite format 3"
#define HEADER_BYTES 100
#define STEPS_AT_ONCE 4096
#define STEPS_LEAST ((int64_t)20000000)
#define STEPS_OF_BYTE 16
#define ROWS_LEAST 1000
#define BYTES_LEAST ((int64_t)1 << 20)
#define BYTES_OF_BYTE 8

/* ---- failures ---- */

/* TABLE NULL: the database as a whole. */
static void
fail_at(struct plumb_sqlite *sqlite, const char *table, int64_t row, const char *why)
{
	if (sqlite->code)
		return;
	if (table)
		sqlite->code =
			plumb_fail(sqlite->error, PLUMB_EINPUT, "%s: table %.150s, row %lld: %s",
		                   sqlite->path, table, (long long)row, why);
	else
		sqlite->code = plumb_fail(sqlite->error, PLUMB_EINPUT, "%s: %s", sqlite->path, why);
}

static void
fail_as_sqlite(struct plumb_sqlite *sqlite, const char *table, int64_t row)
{
	int code = sqlite3_errcode(sqlite->db) & 0xff;
	char why[300];
	if (sqlite->code)
		return;
	if (code == SQLITE_NOMEM) {
		sqlite->code = plumb_fail_memory(sqlite->error, "to read %s", sqlite->path);
		return;
	}
	if (code == SQLITE_INTERRUPT)
		snprintf(why, sizeof why,
		         "reading takes too long for a file of this size; the file is damaged, "
		         "or a column of ids is not a primary key");
	else
		snprintf(why, sizeof why, "%.200s; the file is damaged, copy it again",
		         sqlite3_errmsg(sqlite->db));
	fail_at(sqlite, table, row, why);
}

/* ---- opening ---- */

static int
count_steps(void *data)
{
	struct plumb_sqlite *sqlite = data;
	sqlite->steps -= STEPS_AT_ONCE;
	return sqlite->steps < 0;
}

static bool
is_database(const struct plumb_import_file *file)
{
	return file->head_bytes >= sizeof MAGIC && !memcmp(file->head, MAGIC, sizeof MAGIC);
}

/* What a writer has not yet put into the file lies beside it, and is not read. */
static int
check_beside(const char *path, const char *as_given, struct plumb_error *error)
{
	static const char *const ends[] = { "-wal", "-journal" };
	char beside[4096];
	struct stat status;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		snprintf(beside, sizeof beside, "%s%s", path, ends[i]);
		if (!stat(beside, &status) && status.st_size > 0)
			return plumb_fail(error, PLUMB_EINPUT,
			                  "%s: some changes are still in %s%s; put them into the "
			                  "file with `sqlite3 FILE .tables`",
			                  as_given, as_given, ends[i]);
	}
	return 0;
}

static uint32_t
big_endian(const char *head, size_t at, int bytes)
{
	uint32_t number = 0;
	for (int i = 0; i < bytes; i++)
		number = number << 8 | (unsigned char)head[at + (size_t)i];
	return number;
}

/* SQLite takes what a cut last page lacks for zeros, which are other rows. */
static int
check_whole(const struct plumb_import_file *file, int64_t bytes, struct plumb_error *error)
{
	if (!is_database(file) || file->head_bytes < HEADER_BYTES)
		return plumb_fail(error, PLUMB_EINPUT,
		                  "%s: ends at byte %lld, inside its header; copy it again",
		                  file->path, (long long)bytes);
	const char *head = file->head;
	int64_t page = big_endian(head, 16, 2), pages = big_endian(head, 28, 4);
	bool told = pages && big_endian(head, 24, 4) == big_endian(head, 92, 4);
	page = page == 1 ? 65536 : page;
	if (page >= 512 && ((told && bytes / page < pages) || bytes % page))
		return plumb_fail(error, PLUMB_EINPUT,
		                  "%s: is incomplete, it ends at byte %lld, in page %lld of %lld; "
		                  "copy it again",
		                  file->path, (long long)bytes, (long long)(bytes / page + 1),
		                  (long long)(told ? pages : bytes / page + 1));
	return 0;
}

int
plumb_sqlite_open(struct plumb_sqlite *sqlite, const struct plumb_import_file *file,
                  struct plumb_error *error)
{
	struct stat status;
	*sqlite = (struct plumb_sqlite){ .path = file->path, .error = error };
	const char *path = plumb_input_file(file->input, error);
	if (!path || stat(path, &status))
		return sqlite->code = path ? plumb_fail_errno(error, "%s: cannot be read", path)
		                           : (error ? error->code : PLUMB_ESYSTEM);
	if (!S_ISREG(status.st_mode))
		return sqlite->code = plumb_fail(error, PLUMB_EINPUT,
		                                 "%s: this format must be read twice, so it cannot "
		                                 "come from a pipe; save it to a file first",
		                                 file->path);
	int64_t bytes = status.st_size < INT64_MAX / 64 ? status.st_size : INT64_MAX / 64;
	sqlite->code = check_whole(file, status.st_size, error);
	if (!sqlite->code)
		sqlite->code = check_beside(path, file->path, error);
	if (sqlite->code)
		return sqlite->code;
	int code = plumb_database_open(&sqlite->db, path, error);
	if (code < 0)
		return sqlite->code = plumb_fail_in(error, "%s", file->path);
	if (code == SQLITE_NOMEM)
		return sqlite->code = plumb_fail_memory(error, "to read %s", file->path);
	if (code) {
		bool ours = code == SQLITE_CANTOPEN || code == SQLITE_IOERR;
		return sqlite->code =
		               plumb_fail(error, ours ? PLUMB_ESYSTEM : PLUMB_EINPUT,
		                          ours ? "%s: cannot be opened as a database: %s"
		                               : "%s: %s; the file is damaged, copy it again",
		                          file->path, sqlite3_errmsg(sqlite->db));
	}
	sqlite->steps = bytes * STEPS_OF_BYTE + STEPS_LEAST;
	sqlite->rows = bytes + ROWS_LEAST;
	sqlite->bytes = bytes * BYTES_OF_BYTE + BYTES_LEAST;
	sqlite3_progress_handler(sqlite->db, STEPS_AT_ONCE, count_steps, sqlite);
	return 0;
}

int
plumb_sqlite_close(struct plumb_sqlite *sqlite)
{
	sqlite3_close(sqlite->db);
	sqlite->db = NULL;
	return sqlite->code;
}

/* ---- tables ---- */

/* Is NAME the same as PATTERN? If PATTERN ends with "*", NAME only has to begin like it. */
static bool
fits_pattern(const char *name, const char *pattern)
{
	size_t bytes = strlen(pattern);
	return bytes && pattern[bytes - 1] == '*' ? !strncmp(name, pattern, bytes - 1)
	                                          : !strcmp(name, pattern);
}

/* A virtual table has no root page. */
#define REAL_TABLES "FROM sqlite_master WHERE type = 'table' AND rootpage > 0"

static bool
holds_table(struct plumb_sqlite *sqlite, const char *pattern)
{
	sqlite3_stmt *statement = NULL;
	bool found = false;
	if (sqlite3_prepare_v2(sqlite->db, "SELECT name " REAL_TABLES, -1, &statement, NULL))
		return false;
	while (!found && sqlite3_step(statement) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(statement, 0);
		found = name && fits_pattern(name, pattern);
	}
	sqlite3_finalize(statement);
	return found;
}

int
plumb_sqlite_probe(const struct plumb_import_file *file, const char *const *tables)
{
	struct plumb_sqlite sqlite;
	struct plumb_error error;
	bool found = true;
	if (!is_database(file))
		return 0;
	int code = plumb_sqlite_open(&sqlite, file, &error);
	for (; !code && found && *tables; tables++)
		found = holds_table(&sqlite, *tables);
	plumb_sqlite_close(&sqlite);
	return code ? -1 : found;
}

bool
plumb_sqlite_has(struct plumb_sqlite *sqlite, const char *table)
{
	if (sqlite->code)
		return false;
	int found = plumb_database_has(sqlite->db, table);
	if (found < 0)
		fail_as_sqlite(sqlite, NULL, 0);
	return found > 0;
}

bool
plumb_sqlite_suffix(struct plumb_sqlite *sqlite, const char *prefix, uint32_t number, char *suffix,
                    size_t size)
{
	sqlite3_stmt *statement = NULL;
	size_t bytes = strlen(prefix);
	bool found = false;
	if (sqlite->code)
		return false;
	if (sqlite3_prepare_v2(sqlite->db, "SELECT name " REAL_TABLES " ORDER BY name", -1,
	                       &statement, NULL)) {
		fail_as_sqlite(sqlite, NULL, 0);
		return false;
	}
	while (!found && sqlite3_step(statement) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(statement, 0);
		if (!name || strncmp(name, prefix, bytes) || strlen(name) - bytes >= size)
			continue;
		found = !number--;
		if (found)
			strcpy(suffix, name + bytes);
	}
	sqlite3_finalize(statement);
	return found;
}

/* ---- rows ---- */

/* Bits of those of COLUMNS that TABLE has; computed ones are not among what this pragma tells. */
static uint32_t
columns_of(struct plumb_sqlite *sqlite, const char *table, const char *const *columns)
{
	sqlite3_stmt *statement = NULL;
	uint32_t present = 0;
	int code = sqlite3_prepare_v2(sqlite->db, "SELECT name FROM pragma_table_info(?)", -1,
	                              &statement, NULL);
	if (code) {
		fail_as_sqlite(sqlite, NULL, 0);
		return 0;
	}
	sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC);
	while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(statement, 0);
		for (int i = 0; name && columns[i]; i++)
			if (!sqlite3_stricmp(name, columns[i]))
				present |= UINT32_C(1) << i;
	}
	if (code != SQLITE_DONE)
		fail_as_sqlite(sqlite, NULL, 0);
	sqlite3_finalize(statement);
	return present;
}

static void
prepare_query(struct plumb_rows *rows, const char *key, const char *const *columns)
{
	struct plumb_sqlite *sqlite = rows->sqlite;
	sqlite3_str *text = sqlite3_str_new(sqlite->db);
	sqlite3_str_appendall(text, "SELECT ");
	for (int i = 0; columns[i]; i++)
		if (plumb_rows_has(rows, i))
			sqlite3_str_appendf(text, "%s\"%w\"", i ? ", " : "", columns[i]);
		else
			sqlite3_str_appendf(text, "%sNULL", i ? ", " : "");
	/* A scan is of the table itself: an index may have been made to hold other rows. */
	sqlite3_str_appendf(text, " FROM \"%w\"%s", rows->table, key ? "" : " NOT INDEXED");
	if (key)
		sqlite3_str_appendf(text, " WHERE \"%w\" = ?", key);
	char *query = sqlite3_str_finish(text);
	if (!query || sqlite3_prepare_v3(sqlite->db, query, -1, key ? SQLITE_PREPARE_PERSISTENT : 0,
	                                 &rows->statement, NULL)) {
		fail_as_sqlite(sqlite, rows->table, 0);
		rows->statement = NULL;
	}
	sqlite3_free(query);
}

static void
open_rows(struct plumb_rows *rows, struct plumb_sqlite *sqlite, const char *table, const char *key,
          const char *const *columns)
{
	*rows = (struct plumb_rows){ .sqlite = sqlite };
	if (strlen(table) >= sizeof rows->table || !plumb_sqlite_has(sqlite, table))
		return;
	memcpy(rows->table, table, strlen(table));
	if (key && !columns_of(sqlite, table, (const char *const[]){ key, NULL }))
		return;
	rows->present = columns_of(sqlite, table, columns);
	if (!sqlite->code)
		prepare_query(rows, key, columns);
}

void
plumb_rows_open(struct plumb_rows *rows, struct plumb_sqlite *sqlite, const char *table,
                const char *const *columns)
{
	open_rows(rows, sqlite, table, NULL, columns);
}

void
plumb_rows_open_by(struct plumb_rows *rows, struct plumb_sqlite *sqlite, const char *table,
                   const char *key, const char *const *columns)
{
	open_rows(rows, sqlite, table, key, columns);
}

void
plumb_rows_close(struct plumb_rows *rows)
{
	sqlite3_finalize(rows->statement);
	rows->statement = NULL;
}

static bool
step_row(struct plumb_rows *rows)
{
	int code = sqlite3_step(rows->statement);
	if (code == SQLITE_ROW)
		return true;
	if (code != SQLITE_DONE)
		fail_as_sqlite(rows->sqlite, rows->table, rows->row);
	return false;
}

bool
plumb_rows_next(struct plumb_rows *rows)
{
	if (!rows->statement || rows->sqlite->code)
		return false;
	rows->row++;
	if (!step_row(rows))
		return false;
	if (--rows->sqlite->rows < 0) {
		fail_at(rows->sqlite, rows->table, rows->row,
		        "there are more rows than fit into the file; the file is damaged, copy it "
		        "again");
		return false;
	}
	return true;
}

bool
plumb_rows_find(struct plumb_rows *rows, int64_t key)
{
	if (!rows->statement || rows->sqlite->code || key == PLUMB_UNKNOWN)
		return false;
	rows->row = key;
	sqlite3_reset(rows->statement);
	sqlite3_bind_int64(rows->statement, 1, key);
	return step_row(rows);
}

/* A whole number that a script left in a column of text. */
static int64_t
number_of(struct plumb_slice text)
{
	int64_t number = PLUMB_UNKNOWN;
	size_t at = text.bytes && *text.at == '-', digits = at;
	while (digits < text.bytes && text.at[digits] >= '0' && text.at[digits] <= '9')
		digits++;
	if (digits == at || digits < text.bytes || !plumb_slice_decimal(text, 0, &number))
		return PLUMB_UNKNOWN;
	return number;
}

int64_t
plumb_rows_integer(const struct plumb_rows *rows, int column)
{
	sqlite3_stmt *statement = rows->statement;
	struct plumb_slice text;
	double real;
	if (rows->sqlite->code)
		return PLUMB_UNKNOWN;
	switch (sqlite3_column_type(statement, column)) {
	case SQLITE_INTEGER:
		return sqlite3_column_int64(statement, column);
	case SQLITE_FLOAT:
		real = sqlite3_column_double(statement, column);
		return real >= -0x1p53 && real <= 0x1p53 && real == (double)(int64_t)real
		               ? (int64_t)real
		               : PLUMB_UNKNOWN;
	case SQLITE_TEXT:
		text.at = (const char *)sqlite3_column_text(statement, column);
		text.bytes = text.at ? (size_t)sqlite3_column_bytes(statement, column) : 0;
		return text.bytes < 24 ? number_of(text) : PLUMB_UNKNOWN;
	default:
		return PLUMB_UNKNOWN;
	}
}

struct plumb_slice
plumb_rows_text(struct plumb_rows *rows, int column)
{
	struct plumb_sqlite *sqlite = rows->sqlite;
	struct plumb_slice text = { NULL, 0 };
	if (sqlite->code || sqlite3_column_type(rows->statement, column) == SQLITE_NULL)
		return text;
	text.at = (const char *)sqlite3_column_text(rows->statement, column);
	text.bytes = text.at ? (size_t)sqlite3_column_bytes(rows->statement, column) : 0;
	if (!text.at) {
		fail_as_sqlite(sqlite, rows->table, rows->row);
	} else if ((sqlite->bytes -= (int64_t)text.bytes) < 0) {
		fail_at(sqlite, rows->table, rows->row,
		        "there is more text than fits into the file; the file is damaged, copy it "
		        "again");
		text = (struct plumb_slice){ NULL, 0 };
	}
	return text;
}

/* ---- texts by number ---- */

static uint64_t
text_hash(int64_t id)
{
	return plumb_hash_mix((uint64_t)id, 0);
}

void
plumb_sqlite_texts_load(struct plumb_sqlite_texts *texts, struct plumb_sqlite *sqlite,
                        const char *table, const char *id, const char *text)
{
	struct plumb_rows rows;
	if (!texts->pool)
		texts->pool = plumb_pool_new();
	plumb_rows_open(&rows, sqlite, table, (const char *const[]){ id, text, NULL });
	while (plumb_rows_next(&rows)) {
		struct plumb_slice slice = plumb_rows_text(&rows, 1);
		int64_t number = plumb_rows_integer(&rows, 0);
		if (!slice.at || number == PLUMB_UNKNOWN || plumb_sqlite_texts_find(texts, number))
			continue;
		char *copy = texts->pool ? plumb_pool_take(texts->pool, slice.bytes + 1) : NULL;
		struct plumb_sqlite_text *added = copy ? plumb_vec_add(&texts->texts) : NULL;
		if (!added ||
		    plumb_map_add(&texts->map, text_hash(number), texts->texts.count - 1) < 0) {
			sqlite->code = plumb_fail_memory(sqlite->error, "to read %s", sqlite->path);
			break;
		}
		memcpy(copy, slice.at, slice.bytes);
		copy[slice.bytes] = '\0';
		added->id = number;
		added->text = (struct plumb_slice){ copy, slice.bytes };
	}
	plumb_rows_close(&rows);
}

struct plumb_sqlite_text *
plumb_sqlite_texts_find(struct plumb_sqlite_texts *texts, int64_t id)
{
	struct plumb_map_cursor at;
	for (uint32_t i = plumb_map_first(&texts->map, text_hash(id), &at); i != PLUMB_MAP_NONE;
	     i = plumb_map_next(&texts->map, &at))
		if (texts->texts.items[i].id == id)
			return &texts->texts.items[i];
	return NULL;
}

struct plumb_slice
plumb_sqlite_texts_slice(struct plumb_sqlite_texts *texts, int64_t id)
{
	struct plumb_sqlite_text *found = plumb_sqlite_texts_find(texts, id);
	return found ? found->text : (struct plumb_slice){ NULL, 0 };
}

uint32_t
plumb_sqlite_texts_frame(struct plumb_sqlite_texts *texts,
                         uint32_t (*frame_of)(void *reader, struct plumb_slice name, unsigned use),
                         void *reader, int64_t id, unsigned use)
{
	struct plumb_sqlite_text *text = plumb_sqlite_texts_find(texts, id);
	if (!text)
		return frame_of(reader, (struct plumb_slice){ "?", 1 }, use);
	if (!text->made[use])
		text->made[use] = frame_of(reader, text->text, use) + 1;
	return text->made[use] - 1;
}

void
plumb_sqlite_texts_free(struct plumb_sqlite_texts *texts)
{
	plumb_vec_free(&texts->texts);
	plumb_map_free(&texts->map);
	plumb_pool_free(texts->pool);
	texts->pool = NULL;
}

/* ---- what is not read ---- */

static int64_t
count_rows(struct plumb_sqlite *sqlite, const char *table)
{
	struct plumb_rows rows;
	int64_t count = 0;
	plumb_rows_open(&rows, sqlite, table, (const char *const[]){ "", NULL });
	while (plumb_rows_next(&rows))
		count++;
	plumb_rows_close(&rows);
	return count;
}

/* Is the table NAME, which ends with SUFFIX, one of READ? */
static bool
is_read(const char *name, const char *suffix, const char *const *read)
{
	size_t bytes = strlen(name) - strlen(suffix);
	for (; *read; read++)
		if (strlen(*read) == bytes && !strncmp(name, *read, bytes))
			return true;
	return false;
}

static bool
ends_with(const char *name, const char *suffix)
{
	size_t bytes = strlen(name), of_suffix = strlen(suffix);
	return bytes >= of_suffix && !strcmp(name + bytes - of_suffix, suffix);
}

void
plumb_sqlite_count_unused(struct plumb_sqlite *sqlite, struct plumb_trace *trace,
                          const char *suffix, const char *const *times, const char *const *read)
{
	sqlite3_stmt *statement = NULL;
	int code = SQLITE_DONE;
	if (sqlite->code)
		return;
	if (sqlite3_prepare_v2(sqlite->db, "SELECT name " REAL_TABLES, -1, &statement, NULL)) {
		fail_as_sqlite(sqlite, NULL, 0);
		return;
	}
	while (!sqlite->code && (code = sqlite3_step(statement)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(statement, 0);
		if (!name || strlen(name) >= 150 || !ends_with(name, suffix) ||
		    is_read(name, suffix, read) || !columns_of(sqlite, name, times))
			continue;
		struct plumb_slice base = { name, strlen(name) - strlen(suffix) };
		plumb_trace_count_slice(trace, PLUMB_FATE_UNUSED, base, count_rows(sqlite, name));
	}
	if (!sqlite->code && code != SQLITE_DONE)
		fail_as_sqlite(sqlite, NULL, 0);
	sqlite3_finalize(statement);
}
