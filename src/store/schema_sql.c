/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SQL of a profile file. Each column stands in docs/profile-format.md; a change here is a new
 * PLUMB_STORE_SCHEMA. Only what SQLite 3.25 understands, so that old Pythons read profiles.
 */
#include "store/schema.h"

const char plumb_store_tables_sql[] =
	"CREATE TABLE run(id INTEGER PRIMARY KEY, command TEXT, start_ns INTEGER,"
	" wall_ns INTEGER, exit_code INTEGER, overhead_ns INTEGER, tool_version TEXT);"

	"CREATE TABLE processes(id INTEGER PRIMARY KEY, pid INTEGER, ppid INTEGER, rank INTEGER,"
	" local_rank INTEGER, host TEXT, command TEXT, start_ns INTEGER, end_ns INTEGER,"
	" exit_code INTEGER, overhead_ns INTEGER);"

	"CREATE TABLE devices(id INTEGER PRIMARY KEY, name TEXT, uuid TEXT, ordinal INTEGER,"
	" rank INTEGER, capability_major INTEGER, capability_minor INTEGER,"
	" multiprocessors INTEGER, warps_per_multiprocessor INTEGER, clock_khz INTEGER,"
	" memory_clock_khz INTEGER, memory_bytes INTEGER, kernels INTEGER, kernel_ns INTEGER,"
	" copies INTEGER, copy_ns INTEGER, copy_bytes INTEGER, sets INTEGER, set_ns INTEGER,"
	" set_bytes INTEGER, busy_ns INTEGER, first_ns INTEGER, last_ns INTEGER, late INTEGER,"
	" contended_ns INTEGER);"

	"CREATE TABLE tracks(id INTEGER PRIMARY KEY, kind TEXT NOT NULL,"
	" process INTEGER REFERENCES processes, device INTEGER REFERENCES devices, name TEXT,"
	" tid INTEGER, stream INTEGER, gpu_context INTEGER, start_ns INTEGER, end_ns INTEGER,"
	" overhead_ns INTEGER);"

	"CREATE TABLE frames(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT, file TEXT,"
	" line INTEGER, display TEXT, source_file TEXT, source_line INTEGER);"

	"CREATE TABLE contexts(id INTEGER PRIMARY KEY, parent INTEGER REFERENCES contexts,"
	" frame INTEGER NOT NULL REFERENCES frames, flags INTEGER NOT NULL,"
	" last INTEGER NOT NULL, depth INTEGER NOT NULL);"

	"CREATE TABLE context_values(id INTEGER PRIMARY KEY,"
	" context INTEGER NOT NULL REFERENCES contexts,"
	" metric INTEGER NOT NULL REFERENCES metrics, track INTEGER REFERENCES tracks,"
	" sum INTEGER NOT NULL, count INTEGER NOT NULL, min INTEGER NOT NULL,"
	" max INTEGER NOT NULL, mean REAL NOT NULL, m2 REAL);"

	"CREATE TABLE variants(id INTEGER PRIMARY KEY,"
	" context INTEGER NOT NULL REFERENCES contexts, track INTEGER REFERENCES tracks,"
	" shapes TEXT, grid_x INTEGER, grid_y INTEGER, grid_z INTEGER, block_x INTEGER,"
	" block_y INTEGER, block_z INTEGER, registers INTEGER, static_shared_bytes INTEGER,"
	" dynamic_shared_bytes INTEGER, occupancy_ppm INTEGER, count INTEGER NOT NULL,"
	" time_ns INTEGER NOT NULL, min_ns INTEGER NOT NULL, max_ns INTEGER NOT NULL);"

	"CREATE TABLE origins(id INTEGER PRIMARY KEY,"
	" context INTEGER NOT NULL REFERENCES contexts,"
	" origin INTEGER NOT NULL REFERENCES contexts, reason TEXT NOT NULL);"

	"CREATE TABLE clocks(id INTEGER PRIMARY KEY, process INTEGER REFERENCES processes,"
	" device INTEGER REFERENCES devices, reference_ns INTEGER, offset_ns INTEGER,"
	" slope REAL, residual_ns INTEGER, readings INTEGER);"

	"CREATE TABLE ledger(id INTEGER PRIMARY KEY, process INTEGER REFERENCES processes,"
	" source TEXT NOT NULL REFERENCES sources, fate TEXT NOT NULL REFERENCES fates,"
	" detail TEXT, count INTEGER NOT NULL);"

	"CREATE TABLE environment(id INTEGER PRIMARY KEY,"
	" process INTEGER REFERENCES processes, key TEXT, value TEXT);"

	"CREATE TABLE findings(id INTEGER PRIMARY KEY, finding TEXT, rule TEXT,"
	" severity TEXT NOT NULL, title TEXT, advice TEXT, evidence TEXT,"
	" context INTEGER REFERENCES contexts, saving_ns INTEGER, confidence REAL);"

	"CREATE TABLE series(id INTEGER PRIMARY KEY, device INTEGER REFERENCES devices,"
	" process INTEGER REFERENCES processes, start_ns INTEGER NOT NULL,"
	" width_ns INTEGER NOT NULL, busy_ns INTEGER, kernels INTEGER, copies INTEGER);"

	"CREATE TABLE memory(id INTEGER PRIMARY KEY, track INTEGER NOT NULL REFERENCES tracks,"
	" peak_bytes INTEGER, peak_ns INTEGER, allocations INTEGER, allocated_bytes INTEGER,"
	" frees INTEGER, freed_bytes INTEGER, live_bytes INTEGER,"
	" peak_allocated_bytes INTEGER, peak_reserved_bytes INTEGER,"
	" most_reserved_bytes INTEGER);"
	"CREATE TABLE device_processes(id INTEGER PRIMARY KEY,"
	" device INTEGER NOT NULL REFERENCES devices,"
	" process INTEGER NOT NULL REFERENCES processes, busy_ns INTEGER, first_ns INTEGER, "
	"last_ns INTEGER);"
	"CREATE TABLE waits(id INTEGER PRIMARY KEY, track INTEGER NOT NULL REFERENCES tracks,"
	" awaited INTEGER REFERENCES tracks, device INTEGER REFERENCES devices,"
	" call INTEGER NOT NULL, after INTEGER NOT NULL);"
	"CREATE TABLE collectives(id INTEGER PRIMARY KEY,"
	" track INTEGER NOT NULL REFERENCES tracks, start_ns INTEGER NOT NULL, group_name TEXT,"
	" ranks TEXT, size INTEGER, sequence INTEGER);"
	"CREATE TABLE cpu_samples(id INTEGER PRIMARY KEY,"
	" track INTEGER NOT NULL REFERENCES tracks,"
	" context INTEGER NOT NULL REFERENCES contexts,"
	" at_ns INTEGER NOT NULL, cpu_ns INTEGER NOT NULL);"

	"CREATE TABLE totals(id INTEGER PRIMARY KEY,"
	" metric INTEGER NOT NULL REFERENCES metrics, track INTEGER REFERENCES tracks,"
	" sum INTEGER NOT NULL, count INTEGER NOT NULL, min INTEGER NOT NULL,"
	" max INTEGER NOT NULL, mean REAL NOT NULL, m2 REAL);"

	"CREATE TABLE span_chunks(id INTEGER PRIMARY KEY,"
	" track INTEGER NOT NULL REFERENCES tracks, source TEXT NOT NULL,"
	" start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, count INTEGER NOT NULL,"
	" total_ns INTEGER NOT NULL, busy_ns INTEGER NOT NULL, codec TEXT NOT NULL,"
	" context BLOB NOT NULL, start BLOB NOT NULL, duration BLOB NOT NULL,"
	" correlation BLOB, bytes BLOB);"

	"CREATE TABLE code_objects(id INTEGER PRIMARY KEY,"
	" process INTEGER REFERENCES processes, kind TEXT, path TEXT, build_id TEXT,"
	" hash TEXT, bytes INTEGER);"

	"CREATE TABLE objects(id INTEGER PRIMARY KEY, context INTEGER REFERENCES contexts,"
	" process INTEGER REFERENCES processes, device INTEGER REFERENCES devices, kind TEXT,"
	" name TEXT, bytes INTEGER, start_ns INTEGER, end_ns INTEGER);"

	"CREATE TABLE metrics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, unit TEXT NOT NULL,"
	" aggregation TEXT NOT NULL, source TEXT NOT NULL, meaning TEXT NOT NULL);"

	"CREATE TABLE sources(name TEXT PRIMARY KEY, unit TEXT NOT NULL);"

	"CREATE TABLE fates(name TEXT PRIMARY KEY, is_drop INTEGER NOT NULL, reason TEXT);";

/* What a metric's values are worth together: nothing is ever added up that should not be. */
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

	/* CROSS JOIN keeps the order of the tables: from a subtree to its values by the index.
	 * Left to itself SQLite goes through all values for each subtree. */
	"CREATE VIEW inclusive AS"
	" SELECT c.id AS context, m.name AS metric, m.unit AS unit," VALUE_OF
	" FROM contexts c CROSS JOIN context_values v"
	" ON v.context BETWEEN c.id AND c.last"
	" CROSS JOIN metrics m ON m.id = v.metric GROUP BY c.id, m.id, m.name;"

	/* Subtrees are nested or apart. Going through a frame's contexts in preorder, one that
         * begins after every earlier one has ended is outermost; the rest is recursion. */
	"CREATE VIEW outermost AS"
	" SELECT frame, context, last FROM (SELECT frame, id AS context, last,"
	" MAX(last) OVER (PARTITION BY frame ORDER BY id"
	" ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reach FROM contexts)"
	" WHERE reach IS NULL OR reach < context;"

	/* Grouped also by the words that a query filters by: SQLite then filters before it adds
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
