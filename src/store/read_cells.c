/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "store/blob.h"
#include "store/reader.h"

/* ---- failing ---- */

int
plumb_reader_damaged(struct plumb_reader *reader, const char *what)
{
	return plumb_fail(reader->error, PLUMB_EINPUT,
	                  "the profile is damaged: %s in row %" PRId64 " of %s; copy the file "
	                  "again, or run plumb again",
	                  what, reader->row, reader->table);
}

int
plumb_reader_no_memory(struct plumb_reader *reader)
{
	return plumb_fail_memory(reader->error, "to read the profile");
}

int
plumb_reader_fail_sql(struct plumb_reader *reader)
{
	int code = sqlite3_errcode(reader->db) & 0xff;
	if (code == SQLITE_NOMEM)
		return plumb_reader_no_memory(reader);
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

int
plumb_reader_number(struct plumb_reader *reader, sqlite3_stmt *select, int at, int64_t *number)
{
	if (sqlite3_column_type(select, at) != SQLITE_INTEGER)
		return plumb_reader_damaged(reader, "not a number");
	*number = sqlite3_column_int64(select, at);
	return PLUMB_OK;
}

int
plumb_reader_text(struct plumb_reader *reader, sqlite3_stmt *select, int at, const char **text,
                  size_t *bytes)
{
	*text = NULL;
	*bytes = 0;
	if (sqlite3_column_type(select, at) == SQLITE_NULL)
		return PLUMB_OK;
	if (sqlite3_column_type(select, at) != SQLITE_TEXT)
		return plumb_reader_damaged(reader, "not text");
	*text = (const char *)sqlite3_column_text(select, at);
	if (!*text)
		return plumb_reader_no_memory(reader);
	*bytes = (size_t)sqlite3_column_bytes(select, at);
	if (*bytes > reader->text_left)
		return plumb_reader_damaged(reader, "more text than the file can hold");
	reader->text_left -= *bytes;
	if (memchr(*text, 0, *bytes) || !plumb_utf8_valid(*text, *bytes))
		return plumb_reader_damaged(reader, "text that is not UTF-8");
	return PLUMB_OK;
}

int
plumb_reader_string(struct plumb_reader *reader, sqlite3_stmt *select, int at, uint32_t *id)
{
	const char *text;
	size_t bytes;
	int code = plumb_reader_text(reader, select, at, &text, &bytes);
	*id = PLUMB_NONE;
	if (code || !text)
		return code;
	*id = plumb_strtab_add(reader->strings, text, bytes);
	return *id == PLUMB_STRTAB_NONE ? plumb_reader_no_memory(reader) : PLUMB_OK;
}

static int
read_word(struct plumb_reader *reader, sqlite3_stmt *select, int at,
          const struct plumb_row_column *column, uint32_t *id)
{
	const char *text;
	size_t bytes;
	int code = plumb_reader_text(reader, select, at, &text, &bytes);
	if (code)
		return code;
	for (*id = 0; text && *id < column->limit; ++*id)
		if (column->words[*id] && !strcmp(column->words[*id], text))
			return PLUMB_OK;
	return plumb_reader_damaged(reader, "an unknown word");
}

static int
read_id(struct plumb_reader *reader, sqlite3_stmt *select, int at,
        const struct plumb_row_column *column, uint32_t *id)
{
	int64_t number = 0;
	*id = PLUMB_NONE;
	if (column->cell != PLUMB_ROW_ID && sqlite3_column_type(select, at) == SQLITE_NULL)
		return PLUMB_OK;
	int code = plumb_reader_number(reader, select, at, &number);
	if (code)
		return code;
	if (number < 0 ||
	    number >= plumb_row_array_of(reader->profile, &plumb_row_tables[column->limit]).count)
		return plumb_reader_damaged(reader, "an id out of range");
	*id = (uint32_t)number;
	return PLUMB_OK;
}

static int
read_real(struct plumb_reader *reader, sqlite3_stmt *select, int at, double *real)
{
	*real = NAN;
	int type = sqlite3_column_type(select, at);
	if (type == SQLITE_NULL)
		return PLUMB_OK;
	if (type != SQLITE_FLOAT && type != SQLITE_INTEGER)
		return plumb_reader_damaged(reader, "not a number");
	*real = sqlite3_column_double(select, at);
	return isfinite(*real) ? PLUMB_OK : plumb_reader_damaged(reader, "an infinite number");
}

/* A blob, and in the column after it its length without compression. */
static int
read_blob(struct plumb_reader *reader, sqlite3_stmt *select, int at, struct plumb_blob *blob)
{
	int64_t bytes = 0;
	*blob = (struct plumb_blob){ 0 };
	if (sqlite3_column_type(select, at) == SQLITE_NULL)
		return PLUMB_OK;
	if (sqlite3_column_type(select, at) != SQLITE_BLOB)
		return plumb_reader_damaged(reader, "not a blob");
	int code = plumb_reader_number(reader, select, at + 1, &bytes);
	if (code)
		return code;
	if (bytes < 0 || bytes > PLUMB_BLOB_MOST ||
	    (uint64_t)bytes > PLUMB_BLOBS_MOST - reader->profile->blob_bytes)
		return plumb_reader_damaged(reader, "a blob that is longer than a profile holds");
	const void *stored = sqlite3_column_blob(select, at);
	size_t length = (size_t)sqlite3_column_bytes(select, at);
	if (length > (uint64_t)bytes)
		return plumb_reader_damaged(reader, "a blob that is longer than it says");
	char *data = plumb_strtab_room(reader->strings, (size_t)bytes + 1);
	if (!data || (length && !stored))
		return plumb_reader_no_memory(reader);
	if (!plumb_blob_unpack(data, (size_t)bytes, stored, length))
		return plumb_reader_damaged(reader, "a blob that cannot be decompressed");
	reader->profile->blob_bytes += (uint64_t)bytes;
	*blob = (struct plumb_blob){ data, (uint64_t)bytes };
	return PLUMB_OK;
}

int
plumb_reader_cell(struct plumb_reader *reader, sqlite3_stmt *select, int at,
                  const struct plumb_row_column *column, void *row)
{
	char *field = (char *)row + column->offset;
	int64_t number = 0;
	uint32_t id = 0;
	double real;
	struct plumb_blob blob;
	int code;
	switch (column->cell) {
	case PLUMB_ROW_INT:
		number = PLUMB_UNKNOWN;
		code = sqlite3_column_type(select, at) == SQLITE_NULL
		               ? PLUMB_OK
		               : plumb_reader_number(reader, select, at, &number);
		memcpy(field, &number, sizeof number);
		return code;
	case PLUMB_ROW_NUMBER:
	case PLUMB_ROW_AMOUNT:
	case PLUMB_ROW_TIME:
	case PLUMB_ROW_END:
	case PLUMB_ROW_COUNT:
		code = plumb_reader_number(reader, select, at, &number);
		if (!code && column->cell == PLUMB_ROW_COUNT && number < 1)
			code = plumb_reader_damaged(reader, "a count below 1");
		if (!code && column->cell == PLUMB_ROW_AMOUNT && number < 0)
			code = plumb_reader_damaged(reader, "an amount below 0");
		memcpy(field, &number, sizeof number);
		return code;
	case PLUMB_ROW_LINK:
		code = sqlite3_column_type(select, at) == SQLITE_NULL
		               ? PLUMB_OK
		               : plumb_reader_number(reader, select, at, &number);
		memcpy(field, &number, sizeof number);
		return code;
	case PLUMB_ROW_REAL:
	case PLUMB_ROW_KNOWN:
		code = read_real(reader, select, at, &real);
		if (!code && column->cell == PLUMB_ROW_KNOWN && isnan(real))
			code = plumb_reader_damaged(reader, "not a number");
		memcpy(field, &real, sizeof real);
		return code;
	case PLUMB_ROW_BLOB:
		code = read_blob(reader, select, at, &blob);
		memcpy(field, &blob, sizeof blob);
		return code;
	case PLUMB_ROW_LINE:
		if (sqlite3_column_type(select, at) != SQLITE_NULL &&
		    (code = plumb_reader_number(reader, select, at, &number)))
			return code;
		if (number < 0 || number > UINT32_MAX)
			return plumb_reader_damaged(reader, "a line out of range");
		id = (uint32_t)number;
		break;
	case PLUMB_ROW_BITS:
	case PLUMB_ROW_METRIC: /* the profile is asked for it once its metrics are read */
		if ((code = plumb_reader_number(reader, select, at, &number)))
			return code;
		if (number < 0 || number >= UINT32_MAX)
			return plumb_reader_damaged(reader, "a number out of range");
		id = (uint32_t)number;
		break;
	case PLUMB_ROW_TEXT:
		if ((code = plumb_reader_string(reader, select, at, &id)))
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
	case PLUMB_ROW_ID_OR_0:
		if ((code = read_id(reader, select, at, column, &id)))
			return code;
		id++;
		break;
	}
	memcpy(field, &id, sizeof id);
	return PLUMB_OK;
}
