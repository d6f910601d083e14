/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SQL of a profile file. docs/profile-format.md describes each column. A change here needs a
 * new PLUMB_STORE_SCHEMA. It uses only what SQLite 3.25 understands, so that old Pythons can read
 * profiles.
 */
#include "store/schema.h"

#include <stdlib.h>
#include <string.h>

/* Type and constraints of a cell, without what it refers to. */
static const char *
type_of(const struct plumb_row_column *column)
{
	switch (column->cell) {
	case PLUMB_ROW_INT:
	case PLUMB_ROW_LINK:
	case PLUMB_ROW_LINE:
	case PLUMB_ROW_ID_OR_NONE:
	case PLUMB_ROW_ID_OR_0:
		return "INTEGER";
	case PLUMB_ROW_REAL:
		return "REAL";
	case PLUMB_ROW_KNOWN:
		return "REAL NOT NULL";
	case PLUMB_ROW_BLOB:
		return "BLOB";
	case PLUMB_ROW_TEXT:
		return "TEXT";
	case PLUMB_ROW_WORD:
		return "TEXT NOT NULL";
	default:
		return "INTEGER NOT NULL";
	}
}

/* ", NAME TYPE …" for the columns from FIRST up to END. */
static void
put_columns(FILE *out, const struct plumb_row_table *table, uint32_t first, uint32_t end)
{
	for (uint32_t c = first; c < end; c++) {
		const struct plumb_row_column *column = &table->columns[c];
		const char *to = column->references;
		if (plumb_row_has_id(column))
			to = plumb_row_tables[column->limit].name;
		if (column->cell == PLUMB_ROW_METRIC)
			to = "metrics";
		fprintf(out, ", %s %s%s%s", column->name, type_of(column), to ? " REFERENCES " : "",
		        to ? to : "");
		if (column->cell == PLUMB_ROW_BLOB)
			fprintf(out, ", %s_bytes INTEGER", column->name);
	}
}

unsigned
plumb_store_chunk_columns(const struct plumb_row_table *table, char *names, size_t size)
{
	FILE *out = fmemopen(names, size, "w");
	bool ends = plumb_row_column_of(table, PLUMB_ROW_END) != NULL;
	if (!out)
		return 0;
	fprintf(out, "%s(id, %s, source, start_ns, end_ns, count%s, codec", table->chunks,
	        table->columns[0].name, ends ? ", total_ns, busy_ns" : "");
	for (uint32_t c = 1; c < table->columns_count; c++)
		fprintf(out, ", %s", plumb_row_blob_name(&table->columns[c]));
	fputc(')', out);
	fclose(out);
	return 6 + 2 * ends + table->columns_count;
}

/* A column that came later than the table may be missing: the chunks of another source lack it. */
static void
put_chunks(FILE *out, const struct plumb_row_table *table)
{
	const struct plumb_row_column *group = &table->columns[0];
	fprintf(out,
	        "CREATE TABLE %s(id INTEGER PRIMARY KEY, %s INTEGER NOT NULL REFERENCES %s,"
	        " source TEXT NOT NULL, start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL,"
	        " count INTEGER NOT NULL",
	        table->chunks, group->name, plumb_row_tables[group->limit].name);
	if (plumb_row_column_of(table, PLUMB_ROW_END))
		fputs(", total_ns INTEGER NOT NULL, busy_ns INTEGER NOT NULL", out);
	fputs(", codec TEXT NOT NULL", out);
	for (uint32_t c = 1; c < table->columns_count; c++)
		fprintf(out, ", %s BLOB%s", plumb_row_blob_name(&table->columns[c]),
		        table->columns[c].since > table->since || table->columns[c].sparse
		                ? ""
		                : " NOT NULL");
	fputs(");", out);
}

uint32_t
plumb_store_totals_end(void)
{
	const struct plumb_row_table *values = &plumb_row_tables[PLUMB_TABLE_VALUES];
	return (uint32_t)(plumb_row_column_of(values, PLUMB_ROW_ID_OR_0) - values->columns);
}

void
plumb_store_put_table(FILE *out, const struct plumb_row_table *table)
{
	if (table->chunks) {
		put_chunks(out, table);
		return;
	}
	fprintf(out, "CREATE TABLE %s(id INTEGER PRIMARY KEY", table->name);
	put_columns(out, table, 0, table->columns_count);
	fputs(");", out);
}

/* The tables that are not tables of rows. */
static const char other_tables[] =
	"CREATE TABLE packed_rows(id INTEGER PRIMARY KEY, source TEXT NOT NULL,"
	" columns TEXT NOT NULL, count INTEGER NOT NULL, codec TEXT NOT NULL,"
	" rows BLOB NOT NULL);"

	"CREATE TABLE metrics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, unit TEXT NOT NULL,"
	" aggregation TEXT NOT NULL, source TEXT NOT NULL, meaning TEXT NOT NULL);"

	"CREATE TABLE sources(name TEXT PRIMARY KEY, unit TEXT NOT NULL);"

	"CREATE TABLE fates(name TEXT PRIMARY KEY, is_drop INTEGER NOT NULL, reason TEXT);";

/* If several tables share a table of the file, the last of them has all of its columns. */
static bool
shares_next(int t)
{
	const char *chunks = plumb_row_tables[t].chunks;
	const char *next = t + 1 < PLUMB_TABLES ? plumb_row_tables[t + 1].chunks : NULL;
	return chunks && next && !strcmp(chunks, next);
}

char *
plumb_store_tables_sql(void)
{
	char *sql = NULL;
	size_t bytes;
	FILE *out = open_memstream(&sql, &bytes);
	if (!out)
		return NULL;
	for (int t = 0; t < PLUMB_TABLES; t++)
		if (!shares_next(t))
			plumb_store_put_table(out, &plumb_row_tables[t]);
	/* The columns of values, without the context and the ends of copies. */
	fputs("CREATE TABLE totals(id INTEGER PRIMARY KEY", out);
	put_columns(out, &plumb_row_tables[PLUMB_TABLE_VALUES], 1, plumb_store_totals_end());
	fputs(");", out);
	fputs(other_tables, out);
	if (!fclose(out))
		return sql;
	free(sql);
	return NULL;
}

/* Several values of a metric as one number. They are only added up if the sum has a meaning. */
#define VALUE_OF                                                                                   \
	"CASE m.aggregation WHEN 'sum' THEN SUM(v.sum) WHEN 'max' THEN MAX(v.max) END AS value,"   \
	" SUM(v.count) AS count, MIN(v.min) AS min, MAX(v.max) AS max,"                            \
	" SUM(v.mean * v.count) / SUM(v.count) AS mean"

const char plumb_store_finish_sql[] =
	"CREATE INDEX context_values_by_context ON context_values(context, metric);"

	"CREATE VIEW context_frames AS"
	" SELECT c.id AS context, c.parent AS parent, c.last AS last, c.depth AS depth,"
	" c.flags & 1 AS backward, c.flags >> 1 & 1 AS accumulation,"
	" c.flags >> 2 & 1 AS truncated, f.id AS frame, f.kind AS kind,"
	" COALESCE(f.display, f.name) AS label, f.name AS name, f.file AS file, f.line AS line"
	" FROM contexts c JOIN frames f ON f.id = c.frame;"

	"CREATE VIEW paths AS"
	" SELECT c.id AS context, a.depth AS position, a.id AS ancestor, f.kind AS kind,"
	" COALESCE(f.display, f.name) AS label, f.file AS file, f.line AS line"
	" FROM contexts c JOIN contexts a ON a.id <= c.id AND a.last >= c.id"
	" JOIN frames f ON f.id = a.frame;"

	"CREATE VIEW exclusive AS"
	" SELECT v.context AS context, m.name AS metric, m.unit AS unit," VALUE_OF
	" FROM context_values v JOIN metrics m ON m.id = v.metric"
	" GROUP BY v.context, m.id, m.name;"

	/* CROSS JOIN keeps the order of the tables: from a subtree to its values, by the index. In
	 * the order that SQLite chooses, it goes through all values for each subtree. */
	"CREATE VIEW inclusive AS"
	" SELECT c.id AS context, m.name AS metric, m.unit AS unit," VALUE_OF
	" FROM contexts c CROSS JOIN context_values v"
	" ON v.context BETWEEN c.id AND c.last"
	" CROSS JOIN metrics m ON m.id = v.metric GROUP BY c.id, m.id, m.name;"

	/* Two subtrees are nested or apart. Go through a frame's contexts in preorder: a context is
	 * outermost if it begins after every earlier one has ended. The others are recursion. */
	"CREATE VIEW outermost AS"
	" SELECT frame, context, last FROM (SELECT frame, id AS context, last,"
	" MAX(last) OVER (PARTITION BY frame ORDER BY id"
	" ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reach FROM contexts)"
	" WHERE reach IS NULL OR reach < context;"

	/* It also groups by the words that a query filters by: SQLite then filters before it adds
	 * up. */
	"CREATE VIEW frame_exclusive AS"
	" SELECT f.id AS frame, f.kind AS kind, COALESCE(f.display, f.name) AS label,"
	" f.file AS file, f.line AS line, m.name AS metric, m.unit AS unit," VALUE_OF
	" FROM context_values v JOIN contexts c ON c.id = v.context"
	" JOIN frames f ON f.id = c.frame JOIN metrics m ON m.id = v.metric"
	" GROUP BY f.id, f.kind, m.id, m.name;"

	"CREATE VIEW frame_inclusive AS"
	" SELECT f.id AS frame, f.kind AS kind, COALESCE(f.display, f.name) AS label,"
	" f.file AS file, f.line AS line, m.name AS metric, m.unit AS unit," VALUE_OF
	" FROM outermost o CROSS JOIN frames f ON f.id = o.frame"
	" CROSS JOIN context_values v ON v.context BETWEEN o.context AND o.last"
	" CROSS JOIN metrics m ON m.id = v.metric"
	" GROUP BY f.id, f.kind, m.id, m.name;"

	"CREATE VIEW kernels AS"
	" SELECT f.id AS frame, f.name AS name, COALESCE(f.display, f.name) AS label,"
	" MAX(CASE e.metric WHEN 'gpu.time' THEN e.count END) AS count,"
	" MAX(CASE e.metric WHEN 'gpu.time' THEN e.value END) AS time_ns,"
	" MAX(CASE e.metric WHEN 'gpu.time' THEN e.min END) AS min_ns,"
	" MAX(CASE e.metric WHEN 'gpu.time' THEN e.max END) AS max_ns,"
	" MAX(CASE e.metric WHEN 'gpu.time' THEN e.mean END) AS mean_ns,"
	" MAX(CASE e.metric WHEN 'gpu.blocks' THEN e.value END) AS blocks,"
	" MAX(CASE e.metric WHEN 'gpu.warps' THEN e.value END) AS warps,"
	" MAX(CASE e.metric WHEN 'gpu.registers' THEN e.max END) AS max_registers,"
	" MAX(CASE e.metric WHEN 'gpu.shared_bytes' THEN e.max END) AS max_shared_bytes,"
	" MAX(CASE e.metric WHEN 'gpu.occupancy' THEN e.mean END) AS mean_occupancy_ppm"
	" FROM frames f LEFT JOIN (SELECT * FROM frame_exclusive WHERE kind = 'kernel') e"
	" ON e.frame = f.id WHERE f.kind = 'kernel' GROUP BY f.id;"

	"CREATE VIEW operators AS"
	" SELECT f.id AS frame, f.name AS name,"
	" MAX(CASE e.metric WHEN 'op.calls' THEN e.value END) AS calls,"
	" MAX(CASE e.metric WHEN 'op.time' THEN e.value END) AS self_ns,"
	" MAX(CASE e.metric WHEN 'op.duration' THEN e.min END) AS min_duration_ns,"
	" MAX(CASE e.metric WHEN 'op.duration' THEN e.max END) AS max_duration_ns,"
	" MAX(CASE e.metric WHEN 'op.duration' THEN e.mean END) AS mean_duration_ns,"
	" i.launches AS launches, i.gpu_ns AS gpu_ns, i.copy_ns AS copy_ns,"
	" i.copy_bytes AS copy_bytes, i.wait_ns AS wait_ns"
	" FROM frames f LEFT JOIN (SELECT * FROM frame_exclusive WHERE kind = 'operator') e"
	" ON e.frame = f.id LEFT JOIN"
	" (SELECT frame, MAX(CASE metric WHEN 'gpu.launches' THEN value END) AS launches,"
	" MAX(CASE metric WHEN 'gpu.time' THEN value END) AS gpu_ns,"
	" MAX(CASE metric WHEN 'gpu.copy_time' THEN value END) AS copy_ns,"
	" MAX(CASE metric WHEN 'gpu.copy_bytes' THEN value END) AS copy_bytes,"
	" MAX(CASE metric WHEN 'host.wait' THEN value END) AS wait_ns"
	" FROM frame_inclusive WHERE kind = 'operator' AND metric IN"
	" ('gpu.launches', 'gpu.time', 'gpu.copy_time', 'gpu.copy_bytes', 'host.wait')"
	" GROUP BY frame) i ON i.frame = f.id"
	" WHERE f.kind = 'operator' GROUP BY f.id;"

	"CREATE VIEW ledger_totals AS"
	" SELECT l.source AS source, s.unit AS unit,"
	" SUM(CASE l.fate WHEN 'received' THEN l.count END) AS received,"
	" SUM(CASE l.fate WHEN 'attributed' THEN l.count END) AS attributed,"
	" SUM(CASE WHEN f.is_drop THEN l.count ELSE 0 END) AS dropped"
	" FROM ledger l JOIN fates f ON f.name = l.fate JOIN sources s ON s.name = l.source"
	" GROUP BY l.source;";
