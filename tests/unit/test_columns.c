/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descriptors of tables. Those that there are must make sense, and what is done by them works
 * for tables that there are not yet: one of plain rows with a blob, and one that is stored as
 * chunks.
 */
#include "store_files.h"

#include "model/builder_private.h"
#include "store/chunk.h"
#include "store/reader.h"
#include "store/schema.h"
#include "store/writer.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define LARGE 300000u

/* ---- two imaginary tables ---- */

struct module {
	uint32_t context, name;
	int64_t loaded_ns;
	struct plumb_blob code;
};

struct power {
	uint32_t track, context;
	int64_t at_ns;
	double watts;
	uint64_t errors;
};

/* A profile that has them, too. */
struct extended {
	struct plumb_profile profile;
	PLUMB_COLUMN(struct module, modules);
	PLUMB_COLUMN(struct power, powers);
};

#define CELL(title, kind, row, field)                                                              \
	.name = title, .cell = PLUMB_ROW_##kind, .offset = offsetof(row, field)

static const struct plumb_row_column modules_columns[] = {
	{ CELL("context", ID, struct module, context), .limit = PLUMB_TABLE_CONTEXTS },
	{ CELL("name", TEXT, struct module, name) },
	{ CELL("loaded_ns", INT, struct module, loaded_ns) },
	{ CELL("code", BLOB, struct module, code) },
};
static const struct plumb_row_column powers_columns[] = {
	{ CELL("track", ID, struct power, track), .limit = PLUMB_TABLE_TRACKS, .order = 1 },
	{ CELL("context", ID, struct power, context), .limit = PLUMB_TABLE_CONTEXTS },
	{ CELL("at_ns", TIME, struct power, at_ns), .blob = "at", .order = 2 },
	{ CELL("watts", KNOWN, struct power, watts) },
	{ CELL("errors", LINK, struct power, errors), .sparse = true },
};
static const struct plumb_row_table modules_table = {
	.name = "modules",
	.columns = modules_columns,
	.columns_count = COUNT(modules_columns),
	.row_size = sizeof(struct module),
	.offset = offsetof(struct extended, modules),
};
static const struct plumb_row_table powers_table = {
	.name = "powers",
	.columns = powers_columns,
	.columns_count = COUNT(powers_columns),
	.row_size = sizeof(struct power),
	.offset = offsetof(struct extended, powers),
	.chunks = "power_chunks",
	.source = "meter",
	.most = 200000,
};

static void
extended_new(struct extended *extended)
{
	struct sample_ids ids;
	memset(extended, 0, sizeof *extended);
	assert_int_equal(sample_build(&extended->profile, &ids, NULL), 0);
}

static void
extended_free(struct extended *extended)
{
	free(extended->modules);
	free(extended->powers);
	plumb_profile_free(&extended->profile);
}

static void
execute(sqlite3 *db, const char *text)
{
	char *message = NULL;
	if (sqlite3_exec(db, text, NULL, NULL, &message))
		fail_msg("%s: %s", text, message);
}

/* A database that has TABLE with the rows of FROM. */
static sqlite3 *
write_one(const struct extended *from, const struct plumb_row_table *table)
{
	struct plumb_writer writer = { .profile = &from->profile };
	struct plumb_error error = { 0 };
	char *statement;
	size_t bytes;
	FILE *out = open_memstream(&statement, &bytes);
	plumb_store_put_table(out, table);
	fclose(out);
	assert_int_equal(sqlite3_open(":memory:", &writer.db), SQLITE_OK);
	execute(writer.db, statement);
	free(statement);
	if (table->chunks ? plumb_writer_chunks(&writer, table, &error)
	                  : plumb_writer_rows(&writer, table, &error))
		fail_msg("%s", error.message);
	return writer.db;
}

/* Reads TABLE into TO, whose strings, and what else lives as long, become STRINGS. */
static int
read_one(sqlite3 *db, struct extended *to, struct plumb_strtab *strings,
         const struct plumb_row_table *table, struct plumb_error *error)
{
	struct plumb_reader reader = {
		.db = db,
		.profile = &to->profile,
		.strings = strings,
		.text_left = 1000000,
		.schema = 99,
		.table = table->chunks ? table->chunks : table->name,
		.error = error,
	};
	return table->chunks ? plumb_reader_chunks(&reader, table)
	                     : plumb_reader_rows(&reader, table);
}

static void
assert_damaged(sqlite3 *db, const struct plumb_row_table *table, const char *change)
{
	struct extended to;
	struct plumb_strtab *strings = plumb_strtab_new();
	struct plumb_error error = { 0 };
	extended_new(&to);
	execute(db, "SAVEPOINT before");
	execute(db, change);
	if (read_one(db, &to, strings, table, &error) != PLUMB_EINPUT)
		fail_msg("accepted: %s", change);
	assert_non_null(strstr(error.message, "damaged"));
	execute(db, "ROLLBACK TO before");
	plumb_strtab_free(strings);
	extended_free(&to);
}

/* ---- descriptors ---- */

static bool
may_be_unknown(const struct plumb_row_column *column)
{
	return column->cell == PLUMB_ROW_INT || column->cell == PLUMB_ROW_LINK ||
	       column->cell == PLUMB_ROW_REAL || column->cell == PLUMB_ROW_BLOB ||
	       column->cell == PLUMB_ROW_LINE || column->cell == PLUMB_ROW_TEXT ||
	       column->cell == PLUMB_ROW_ID_OR_NONE || column->cell == PLUMB_ROW_ID_OR_0;
}

static void
check_column(const struct plumb_row_table *table, uint32_t number, uint32_t c)
{
	const struct plumb_row_column *column = &table->columns[c];
	bool is_id = plumb_row_has_id(column);
	assert_non_null(column->name);
	assert_true(column->offset + plumb_row_width(column) <= table->row_size);
	if (is_id)
		assert_true(column->limit <= number && !plumb_row_tables[column->limit].chunks);
	/* An older file has NULL there. */
	assert_true(column->since <= 1 || column->since <= table->since || may_be_unknown(column));
	if (column->cell == PLUMB_ROW_BLOB)
		assert_true(!column->key && !column->order && !table->chunks);
	if (table->chunks)
		assert_true(column->cell != PLUMB_ROW_TEXT);
	assert_int_equal(c == 0 && table->chunks, table->chunks && column->cell == PLUMB_ROW_ID &&
	                                                  column->limit == PLUMB_TABLE_TRACKS);
}

static void
check_table(const struct plumb_row_table *table, uint32_t number)
{
	uint32_t orders = 0, order = 0, times = 0, keys = 0;
	assert_non_null(table->name);
	for (uint32_t c = 0; c < table->columns_count; c++) {
		check_column(table, number, c);
		if (table->columns[c].order) {
			orders |= 1u << table->columns[c].order;
			order++;
		}
		keys += table->columns[c].key;
		times += table->columns[c].cell == PLUMB_ROW_TIME;
		/* What ends must have begun. */
		if (table->columns[c].cell == PLUMB_ROW_END)
			assert_int_equal(times, 1);
	}
	assert_true(order <= PLUMB_ORDERS_MOST && keys <= PLUMB_KEYS_MOST);
	assert_int_equal(orders, (2u << order) - 2);
	assert_int_equal(times, table->chunks != NULL);
	assert_true(!table->chunks || table->columns_count <= PLUMB_CHUNK_COLUMNS);
	/* A small file can hold as many equal rows as fill the memory. */
	assert_true(!table->chunks || table->most);
	assert_true(!table->most || table->lost_as || number == PLUMB_TABLES);
}

static void
test_tables(void **state)
{
	(void)state;
	for (uint32_t t = 0; t < PLUMB_TABLES; t++)
		check_table(&plumb_row_tables[t], t);
	check_table(&modules_table, PLUMB_TABLES);
	check_table(&powers_table, PLUMB_TABLES);
}

static void
test_sql(void **state)
{
	(void)state;
	static const char wanted[] =
		"CREATE TABLE modules(id INTEGER PRIMARY KEY,"
		" context INTEGER NOT NULL REFERENCES contexts, name TEXT, loaded_ns INTEGER,"
		" code BLOB, code_bytes INTEGER);"
		"CREATE TABLE power_chunks(id INTEGER PRIMARY KEY,"
		" track INTEGER NOT NULL REFERENCES tracks, source TEXT NOT NULL,"
		" start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, count INTEGER NOT NULL,"
		" codec TEXT NOT NULL, context BLOB NOT NULL, at BLOB NOT NULL,"
		" watts BLOB NOT NULL, errors BLOB);";
	char *text;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	plumb_store_put_table(out, &modules_table);
	plumb_store_put_table(out, &powers_table);
	fclose(out);
	assert_string_equal(text, wanted);
	free(text);
}

/* ---- plain rows with a blob ---- */

/* Nothing, no bytes, a few, many that repeat, many that do not. */
static struct plumb_blob
blob_of(uint32_t which, char *large)
{
	uint32_t random = 7;
	for (uint32_t i = 0; i < LARGE; i++) {
		random = random * 1664525u + 1013904223u;
		large[i] = (char)(which == 3 ? i % 50 : random >> 24);
	}
	switch (which) {
	case 0:
		return (struct plumb_blob){ 0 };
	case 1:
		return (struct plumb_blob){ "", 0 };
	case 2:
		return (struct plumb_blob){ "a\0b", 3 };
	default:
		return (struct plumb_blob){ large, LARGE };
	}
}

static struct plumb_strtab *
add_modules(struct extended *extended)
{
	struct plumb_strtab *strings = plumb_strtab_new();
	char *large = malloc(LARGE);
	for (uint32_t i = 0; i < 5; i++) {
		struct module module = { i, i ? i : PLUMB_NONE, i ? (int64_t)i : PLUMB_UNKNOWN,
			                 blob_of(i, large) };
		assert_null(plumb_row_fault(&extended->profile, extended->profile.strings_count,
		                            &modules_table, &module));
		struct module *added = plumb_row_add(&extended->profile, &modules_table);
		*added = module;
		assert_int_equal(
			plumb_row_keep_blobs(&extended->profile, strings, &modules_table, added),
			0);
		assert_true(!module.code.data == !added->code.data);
	}
	free(large);
	assert_int_equal(extended->profile.blob_bytes, 3 + 2 * LARGE);
	return strings;
}

static void
test_blobs(void **state)
{
	(void)state;
	struct extended from, to;
	struct plumb_error error = { 0 };
	extended_new(&from);
	extended_new(&to);
	struct plumb_strtab *kept = add_modules(&from), *strings = plumb_strtab_new();
	sqlite3 *db = write_one(&from, &modules_table);
	if (read_one(db, &to, strings, &modules_table, &error))
		fail_msg("%s", error.message);
	assert_int_equal(to.modules_count, 5);
	for (uint32_t i = 0; i < 5; i++) {
		const struct module *a = &from.modules[i], *b = &to.modules[i];
		assert_true(a->context == b->context && a->loaded_ns == b->loaded_ns);
		assert_int_equal(!a->code.data, !b->code.data);
		assert_int_equal(a->code.bytes, b->code.bytes);
		if (a->code.bytes)
			assert_memory_equal(a->code.data, b->code.data, a->code.bytes);
		if (i)
			assert_string_equal(plumb_text(&from.profile, a->name),
			                    plumb_strtab_text(strings, b->name));
	}
	assert_int_equal(to.profile.blob_bytes, from.profile.blob_bytes);
	/* Only what repeats is compressed, and all tell how long they are. */
	execute(db, "CREATE TABLE wrong(x CHECK(x)); INSERT INTO wrong SELECT"
	            " (id = 0) = (code IS NULL) AND (id = 0) = (code_bytes IS NULL) AND"
	            " (id = 3) = (coalesce(length(code), 0) < coalesce(code_bytes, 0))"
	            " FROM modules");
	sqlite3_close(db);
	plumb_strtab_free(strings);
	plumb_strtab_free(kept);
	extended_free(&from);
	extended_free(&to);
}

static void
test_damaged_blobs(void **state)
{
	(void)state;
	static const char *const changes[] = {
		"UPDATE modules SET code_bytes = NULL WHERE id = 2",
		"UPDATE modules SET code_bytes = 'three' WHERE id = 2",
		"UPDATE modules SET code_bytes = -1 WHERE id = 2",
		"UPDATE modules SET code_bytes = 2 WHERE id = 2",
		"UPDATE modules SET code_bytes = 4 WHERE id = 2",
		"UPDATE modules SET code_bytes = 299999 WHERE id = 3",
		"UPDATE modules SET code_bytes = 300001 WHERE id = 3",
		"UPDATE modules SET code_bytes = 1000000000000 WHERE id = 3",
		"UPDATE modules SET code_bytes = 33554433 WHERE id = 3",
		"UPDATE modules SET code = 'abc' WHERE id = 2",
		"UPDATE modules SET code = zeroblob(100) WHERE id = 3",
		"UPDATE modules SET context = 1000",
	};
	struct extended from, to;
	struct plumb_error error = { 0 };
	extended_new(&from);
	struct plumb_strtab *kept = add_modules(&from), *strings = plumb_strtab_new();
	sqlite3 *db = write_one(&from, &modules_table);
	for (size_t i = 0; i < COUNT(changes); i++)
		assert_damaged(db, &modules_table, changes[i]);
	/* Nor may all together be longer than a profile holds. */
	extended_new(&to);
	to.profile.blob_bytes = PLUMB_BLOBS_MOST - LARGE;
	assert_int_equal(read_one(db, &to, strings, &modules_table, &error), PLUMB_EINPUT);
	struct module module = { .code = { "abc", 3 } };
	to.profile.blob_bytes = PLUMB_BLOBS_MOST - 2;
	assert_int_equal(plumb_row_keep_blobs(&to.profile, strings, &modules_table, &module), 1);
	module.code.bytes = (uint64_t)PLUMB_BLOB_MOST + 1;
	assert_ptr_equal(plumb_row_fault(&to.profile, 1, &modules_table, &module),
	                 &modules_columns[3]);
	sqlite3_close(db);
	plumb_strtab_free(strings);
	plumb_strtab_free(kept);
	extended_free(&from);
	extended_free(&to);
}

/* ---- chunks ---- */

static void
add_powers(struct extended *extended)
{
	uint32_t random = 3;
	for (uint32_t i = 0; i < 150000; i++) {
		random = random * 1664525u + 1013904223u;
		struct power *row = plumb_row_add(&extended->profile, &powers_table);
		*row = (struct power){ random >> 30 ? 1 : 0, random >> 20 & 7, -5 + (int64_t)i * 10,
			               i / 8.0, 0 };
		if (row->track)
			row->errors = random;
	}
}

static void
test_chunked(void **state)
{
	(void)state;
	struct extended from, to;
	struct plumb_error error = { 0 };
	struct plumb_strtab *strings = plumb_strtab_new();
	extended_new(&from);
	extended_new(&to);
	add_powers(&from);
	sqlite3 *db = write_one(&from, &powers_table);
	if (read_one(db, &to, strings, &powers_table, &error))
		fail_msg("%s", error.message);
	assert_int_equal(plumb_row_order(&from.profile, &powers_table), 0);
	assert_int_equal(to.powers_count, from.powers_count);
	assert_memory_equal(to.powers, from.powers, from.powers_count * sizeof *from.powers);
	/* Blobs of nothing but 0 are left out; others are all there. */
	execute(db, "CREATE TABLE wrong(x CHECK(x)); INSERT INTO wrong SELECT"
	            " (track = 0) = (errors IS NULL) AND count <= 65536 AND source = 'meter'"
	            " FROM power_chunks; INSERT INTO wrong SELECT count(*) = 3 AND"
	            " sum(count) = 150000 AND min(start_ns) = -5 AND max(end_ns) = 1499985"
	            " FROM power_chunks");
	sqlite3_close(db);
	plumb_strtab_free(strings);
	extended_free(&from);
	extended_free(&to);
}

#define MORE_CHUNKS                                                                                \
	"INSERT INTO power_chunks SELECT id + 3, track, source, start_ns, end_ns, count, codec,"   \
	" context, at, watts, errors FROM power_chunks"

static void
test_damaged_chunks(void **state)
{
	(void)state;
	static const char *const changes[] = {
		"UPDATE power_chunks SET count = count + 1",
		"UPDATE power_chunks SET count = 0",
		"UPDATE power_chunks SET codec = 'none'",
		"UPDATE power_chunks SET track = 9",
		"UPDATE power_chunks SET watts = zeroblob(10)",
		"UPDATE power_chunks SET watts = at, at = watts",
		"UPDATE power_chunks SET errors = context WHERE errors NOT NULL",
		"UPDATE power_chunks SET start_ns = 9223372036854775807",
		"UPDATE power_chunks SET id = id + 7",
		/* More than a profile holds. */
		MORE_CHUNKS,
	};
	struct extended from;
	extended_new(&from);
	add_powers(&from);
	sqlite3 *db = write_one(&from, &powers_table);
	for (size_t i = 0; i < COUNT(changes); i++)
		assert_damaged(db, &powers_table, changes[i]);
	sqlite3_close(db);
	extended_free(&from);
}

/* ---- ids of another profile ---- */

static void
test_map(void **state)
{
	(void)state;
	uint32_t contexts[] = { 0, 30, 40 }, texts[] = { 7, 8 };
	struct plumb_row_maps maps = { .strings = { texts, 2 } };
	maps.tables[PLUMB_TABLE_CONTEXTS] = (struct plumb_row_map){ contexts, 3 };
	struct module module = { 2, 1, 5, { "x", 1 } };
	assert_true(plumb_row_map(&modules_table, &module, &maps));
	assert_true(module.context == 40 && module.name == 8 && module.loaded_ns == 5);
	module.name = PLUMB_NONE;
	assert_true(plumb_row_map(&modules_table, &module, &maps));
	assert_true(module.context == PLUMB_NONE && module.name == PLUMB_NONE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),  cmocka_unit_test(test_sql),
		cmocka_unit_test(test_blobs),   cmocka_unit_test(test_damaged_blobs),
		cmocka_unit_test(test_chunked), cmocka_unit_test(test_damaged_chunks),
		cmocka_unit_test(test_map),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
