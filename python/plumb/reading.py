# SPDX-License-Identifier: Apache-2.0
"""Reads a profile as a tree of nodes. docs/profile-format.md describes the tables."""
from __future__ import annotations

import collections
import json
import os
import pathlib
import sqlite3
from typing import TYPE_CHECKING, Any, Iterable, Iterator

from . import _spans
from ._rows import (CodeObject, CpuSample, Device, Memory, Metric, Process, Row, Run, Track, Value, Variant,
                    merge)
from ._text import printable
from ._tree import ACCUMULATION, BACKWARD, KINDS, TRUNCATED, Node, Values

if TYPE_CHECKING:
    import pandas

__all__ = ["ACCUMULATION", "BACKWARD", "KINDS", "TRUNCATED", "CodeObject", "CpuSample", "Device", "Memory", "Metric",
           "Node", "Process", "Profile", "ProfileError", "Row", "Run", "Track", "Value", "Values", "Variant"]

APPLICATION_ID = 0x504C4D42  # "PLMB"
NEWEST_SCHEMA = 6

# What is read of a file, which may come from anybody: tables of these names, and no view instead of one.
TABLES = frozenset((
    "clocks", "code_objects", "collectives", "context_values", "contexts", "costs", "counter_series", "cpu_samples", "device_links", "device_processes", "devices",
    "environment", "findings", "frames", "ledger", "level_values", "levels", "memory", "memory_series", "metrics", "object_bins",
    "object_ranges", "objects", "origins", "processes", "run", "series", "span_chunks", "tracks", "transfers", "variants", "waits",
    "windows", "window_stretches", "window_values", "window_variants", "window_devices"))
STEPS_AT_ONCE, STEPS_LEAST, STEPS_OF_BYTE = 10000, 50000000, 64  # of SQLite's machine, for one query
TEXT_LEAST, TEXT_OF_BYTE = 1 << 20, 8  # characters in all

KINDS_OF_WINDOWS = ("startup", "loop", "rest")


class ProfileError(ValueError):
    """The file is not a profile, is damaged, or was written by a newer plumb."""

    def __init__(self, text):
        super().__init__(printable(text))


class Profile:
    """A profile, opened for reading.

    PATH: a file that plumb wrote. Raises FileNotFoundError, or ProfileError if the file is not a profile or
    comes from a newer plumb. Values are read when you first ask for them. close() or a with block closes the
    file.

    WINDOW: only the values and variants of a part of the run: "startup", "loop" (the main loop), "loop:N" or
    "rest". Then ProfileError also means that the profile has no such window. Everything else is of the whole.
    """

    def __init__(self, path: str | os.PathLike[str], window: str | None = None) -> None:
        self.path = os.fspath(path)
        if not os.path.exists(self.path):
            raise FileNotFoundError(f"{self.path}: no such file")
        if not os.path.isfile(self.path):  # a pipe would make us wait
            raise ProfileError(f"{self.path}: not a profile of plumb")
        uri = pathlib.Path(self.path).resolve().as_uri() + "?immutable=1"  # what lies beside it is not opened
        self._database = sqlite3.connect(uri, uri=True)
        self._cache: dict[Any, Any] = {}
        self._bytes = os.path.getsize(self.path)
        self._steps = self._text = 0
        self._database.set_progress_handler(self._count_steps, STEPS_AT_ONCE)
        try:
            self._distrust()
            self._read()
            self._window = self._find_window(window)
        except sqlite3.DatabaseError as error:
            self.close()
            raise ProfileError(f"{self.path}: not a profile, or damaged ({error}); record it again, "
                               "or settle its regions again") from None
        except ProfileError:
            self.close()
            raise

    def _count_steps(self):
        """Ends a query that takes more steps than a file of this size needs."""
        self._steps += STEPS_AT_ONCE
        return self._steps > STEPS_LEAST + STEPS_OF_BYTE * self._bytes

    def _distrust(self):
        """The file may come from anybody: a view or a computed column in it could run without end, so only
        real tables with plain columns are read."""
        for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "query_only = ON"):
            self._database.execute("PRAGMA " + pragma)
        kinds = self._select("SELECT name, type, rootpage FROM sqlite_master").fetchall()
        for name, kind, page in kinds:
            if name.lower() not in TABLES or kind == "index":
                continue
            if kind != "table" or not page:
                raise ProfileError(f"{self.path}: {name} is not a table but a {kind}, which plumb does not write")
            if any(row[6] for row in self._select(f'PRAGMA table_xinfo("{name.lower()}")')):
                raise ProfileError(f"{self.path}: table {name} has computed columns, which plumb does not write")

    def _select(self, sql, values=()):
        """A cursor; each query may take its own number of steps."""
        self._steps = 0
        return self._database.execute(sql, values)

    def _take(self, cursor):
        """The rows of CURSOR. In a hostile file many rows may share one long text: they must not have more of it
        than the file could hold."""
        rows = []
        try:
            for row in cursor:
                for cell in row:
                    if type(cell) in (str, bytes):
                        self._text += len(cell)
                if self._text > TEXT_LEAST + TEXT_OF_BYTE * self._bytes:
                    raise ProfileError(f"{self.path}: damaged (more text than the file can hold); record it again")
                rows.append(row)
        except sqlite3.DatabaseError as error:
            raise ProfileError(f"{self.path}: damaged ({error}); record it again") from None
        return rows

    def _read(self):
        if self._select("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise ProfileError(f"{self.path}: a database, but not a profile of plumb")
        self._schema = schema = self._select("PRAGMA user_version").fetchone()[0]
        if schema > NEWEST_SCHEMA:
            raise ProfileError(f"{self.path}: written by a newer plumb (schema {schema}); install "
                               "the newest plumb-profiler")
        self.metrics = collections.OrderedDict(
            (row[0], Metric(*row)) for row in self._take(self._select(
                "SELECT name, unit, aggregation, source, meaning FROM metrics ORDER BY id")))
        source = "source_file, source_line" if schema >= 2 else "NULL, NULL"
        self._frames = self._take(self._select(
            f"SELECT kind, name, file, line, display, {source} FROM frames ORDER BY id"))
        self._contexts = self._select(
            "SELECT parent, frame, flags, last, depth FROM contexts ORDER BY id").fetchall()
        if not self._contexts:
            raise ProfileError(f"{self.path}: damaged (it has no root); record it again")
        self._check()

    def _check(self):
        """Raises unless contexts are in preorder and refer to what is there."""
        count = len(self._contexts)
        for number, (parent, frame, flags, last, depth) in enumerate(self._contexts):
            whole = all(isinstance(x, int) for x in (frame, flags, last, depth))
            above = (parent is None) if number == 0 else (isinstance(parent, int)
                                                          and 0 <= parent < number)
            if not (whole and above and 0 <= frame < len(self._frames) and number <= last < count
                    and (number == 0 or last <= self._contexts[parent][3] and
                         number <= self._contexts[parent][3])):
                raise ProfileError(f"{self.path}: damaged (context {number}); record it again")

    def close(self) -> None:
        """Closes the file. What was not read before cannot be read afterwards."""
        self._database.close()

    def __enter__(self) -> Profile:
        return self

    def __exit__(self, *_):
        self.close()

    def __len__(self) -> int:
        """The number of contexts."""
        return len(self._contexts)

    def __repr__(self):
        return f"<plumb.Profile {self.path!r}: {len(self)} contexts>"

    def _repr_html_(self):
        from . import _display
        return _display.frame(self.path)

    def _repr_mimebundle_(self, include=None, exclude=None):
        """What a notebook shows: the page of plumb view in a frame, or text where there is no page."""
        from . import _display
        bundle = {"text/plain": _display.summary(self)}
        shown = _display.frame(self.path)
        if shown is not None:
            bundle["text/html"] = shown
        return bundle

    # ---- parts of the run ----

    @property
    def windows(self) -> list[Row]:
        """The parts of the run that the profile knows, in order of time for loops: rows with name ("startup",
        "loop", "loop:2", "rest"), start_ns, end_ns, wall_ns (without what lay between), iterations (of a loop;
        None: unknown), is_main (the loop with the most time). Empty if there is no loop, or for an older file."""
        return [row for row, _ in self._windows()]

    def window(self, name: str) -> Profile:
        """The same profile with the values of a part of the run (see `windows`). Close it on its own."""
        return Profile(self.path, window=name)

    def _windows(self):
        """(row, ids of the windows that it is of) of each part."""
        if self._schema < 5:
            return []
        if "windows in order" not in self._cache:
            parts = collections.defaultdict(list)  # (kind, number): [(wall, start, end, iterations, id)]
            for number, kind, which, iterations, start, end, wall in self._select(
                    "SELECT w.id, w.kind, w.number, w.iterations, min(s.start_ns), max(s.end_ns), "
                    "sum(s.end_ns - s.start_ns) FROM windows w LEFT JOIN window_stretches s ON s.window = w.id "
                    "WHERE w.kind IN ('startup', 'loop', 'rest') GROUP BY w.id ORDER BY w.id"):
                parts[KINDS_OF_WINDOWS.index(kind), which or 0].append((wall or 0, start, end, iterations, number))
            loops = [key for key in parts if key[0] == 1]
            main = max(sorted(loops), key=lambda key: max(part[0] for part in parts[key]), default=None)
            found = []
            for key, rows in sorted(parts.items()):
                name = KINDS_OF_WINDOWS[key[0]]
                longest = max(rows, key=lambda part: part[0])
                found.append((Row({
                    "name": f"{name}:{key[1]}" if key[0] == 1 and len(loops) > 1 else name,
                    "start_ns": min((part[1] for part in rows if part[1] is not None), default=None),
                    "end_ns": max((part[2] for part in rows if part[2] is not None), default=None),
                    "wall_ns": longest[0], "iterations": longest[3], "is_main": key == main}),
                    [part[4] for part in rows]))
            self._cache["windows in order"] = found
        return self._cache["windows in order"]

    def _find_window(self, name):
        """The ids of the windows with NAME; None: the whole."""
        if name is None or name == "all":
            return None
        found = self._windows()
        for row, ids in found:
            if name in (row.name, "loop:1" if row.name == "loop" else None) or (name == "loop" and row.is_main):
                return ids
        there = ", ".join(row.name for row, _ in found) or "none"
        raise ProfileError(f"{self.path}: no window {printable(name)}; it has: {there}")

    # ---- the tree ----

    @property
    def root(self) -> Node:
        """The root node. Everything is below it."""
        return Node(self, 0)

    @property
    def children(self) -> list[Node]:
        """The nodes directly below the root."""
        return self.root.children

    def walk(self) -> Iterator[Node]:
        """Every node. Each comes before its children."""
        return self.root.walk()

    def bfs(self) -> Iterator[Node]:
        """Every node, level by level."""
        return self.root.bfs()

    def match(self, pattern: str) -> list[Node]:
        """The nodes whose path matches PATTERN (see Node.match)."""
        return self.root.match(pattern)

    @property
    def kernels(self) -> list[Node]:
        """Every kernel node, in preorder. A kernel has one node for each context."""
        return self.of_kind("kernel")

    @property
    def operators(self) -> list[Node]:
        """Every operator node, in preorder. An operator has one node for each context."""
        return self.of_kind("operator")

    def of_kind(self, kind: str) -> list[Node]:
        """Every node of KIND, such as "python" or "copy"."""
        if kind not in KINDS:
            raise ValueError(f"no kind of frame {kind!r}; use one of: {', '.join(KINDS)}")
        return [node for node in self.walk() if node.kind == kind]

    # ---- what stands beside the tree ----

    @property
    def run(self) -> Run:
        """The run as a whole (Run)."""
        return self._rows("run", Run)[0]

    @property
    def processes(self) -> list[Process]:
        """The processes (a list of Process, indexed by their id)."""
        return self._rows("processes", Process)

    @property
    def devices(self) -> list[Device]:
        """The GPUs (a list of Device, indexed by their id)."""
        return self._rows("devices", Device)

    @property
    def device_processes(self) -> list[Row]:
        """What each process did on a device: rows with device, process (ids), busy_ns, first_ns,
        last_ns. Empty for a file older than schema 2."""
        return self._rows("device_processes", Row) if self._has_table("device_processes") else []

    @property
    def waits(self) -> list[Row]:
        """Who waited for GPU work, if that was recorded: rows with track, awaited, device (ids or None),
        call, after (correlations; 0: none). Empty for a file without them."""
        return self._rows("waits", Row) if self._schema >= 3 else []

    @property
    def collectives(self) -> list[Row]:
        """What was recorded about collectives: rows with track, start_ns (of their span), group_name,
        ranks, size, sequence (None: unknown). Empty for a file without them."""
        there = self._query("has_collectives", "SELECT name FROM sqlite_master WHERE type = 'table' AND name = "
                            "'collectives'", Row)
        return self._rows("collectives", Row) if there else []

    @property
    def objects(self) -> list[Row]:
        """Data that the program allocated (`plumb run --traffic`), by call path: rows with context, process, device (ids or
        None), kind, name, within (index here, or None), allocations, bytes, most_bytes, touched_bytes,
        touchable_bytes (None: unknown). Empty for a file without them."""
        return self._rows("objects", Row) if self._has_table("objects") and self._schema >= 6 else []

    @property
    def object_ranges(self) -> list[Row]:
        """Single allocations of the objects: rows with object (index), address, bytes, start_ns, end_ns (None: to the
        end). An address above 2^63 is negative."""
        return self._rows("object_ranges", Row) if self._has_table("object_ranges") else []

    @property
    def object_bins(self) -> list[Row]:
        """Parts of objects that kernels accessed: rows with object (index), device (id), kind, offset, width, accesses."""
        return self._rows("object_bins", Row) if self._has_table("object_bins") else []

    @property
    def transfers(self) -> list[Row]:
        """Data that went from one device to another (`plumb run --traffic`): rows with context, process, kind, route,
        initiator, from_device, to_device (ids; None: the host, or unknown), from_object, to_object (indexes in
        objects, or None), code_function, offset, width, accesses, warps, bytes, error_bytes. Empty for a file
        without them."""
        return self._rows("transfers", Row) if self._has_table("transfers") else []

    @property
    def device_links(self) -> list[Row]:
        """What links GPUs with each other and with the host (`plumb run --traffic`): rows with uuid, peer_uuid (None: the
        host), kind, path, links, generation, bytes_per_second, peer_access (None: unknown). Empty for a file without them."""
        return self._rows("device_links", Row) if self._has_table("device_links") else []

    @property
    def tracks(self) -> list[Track]:
        """Threads, streams and memories of devices (a list of Track, indexed by their id)."""
        return self._rows("tracks", Track)

    @property
    def memory(self) -> list[Memory]:
        """The memory of devices (a list of Memory), recorded with --memory. The share of each context is in
        the metrics mem.held, mem.peak, mem.alloc and mem.free."""
        return self._rows("memory", Memory) if self._schema >= 2 else []

    @property
    def memory_series(self) -> list[Row]:
        """What was live over time: rows with track, start_ns, width_ns, min_bytes, max_bytes, last_bytes,
        max_reserved_bytes, last_reserved_bytes (None: the allocator does not say it). Empty for a file without
        them."""
        there = self._query("has_memory_series", "SELECT name FROM sqlite_master WHERE type = 'table' AND name = "
                            "'memory_series'", Row)
        return self._rows("memory_series", Row) if there else []

    @property
    def counter_series(self) -> list[Row]:
        """Hardware counters of whole devices over time (plumb run --counters-series): rows with device, process,
        metric, unit (None: not known), start_ns, width_ns, samples, sampled_ns, min, mean, max. Empty for a file
        without them."""
        there = self._query("has_counter_series", "SELECT name FROM sqlite_master WHERE type = 'table' AND name = "
                            "'counter_series'", Row)
        return self._rows("counter_series", Row) if there else []

    @property
    def code_objects(self) -> list[CodeObject]:
        """The programs and libraries of native frames (a list of CodeObject)."""
        return self._rows("code_objects", CodeObject)

    @property
    def ledger(self) -> list[Row]:
        """What was received, attributed and dropped: rows with process (id or None), source, fate, is_drop,
        reason, detail, count."""
        return self._query(
            "ledger", "SELECT l.process, l.source, l.fate, f.is_drop, f.reason, l.detail, l.count "
            "FROM ledger l LEFT JOIN fates f ON f.name = l.fate ORDER BY l.id", Row)

    @property
    def findings(self) -> list[Row]:
        """What the analyses concluded, the most important first: rows with finding (a stable id), rule,
        severity, title, advice, evidence (a dict), context (a Node or None), saving_ns (the most that can be
        saved; None: unknown), confidence (0 to 1), window (of the run that it is of; None: the whole). They are
        the stored ones: `plumb report --findings` makes those of an older plumb again."""
        window = "window" if self._schema >= 5 else "NULL AS window"
        found = self._query(
            "findings", "SELECT finding, rule, severity, title, advice, evidence, context, saving_ns, "
            f"confidence, {window} FROM findings ORDER BY id", dict)
        return [Row({**row, "evidence": json.loads(row["evidence"] or "{}"),
                     "context": None if row["context"] is None else Node(self, row["context"])})
                for row in found]

    @property
    def environment(self) -> dict[str, str]:
        """{key: value} of the run. If only processes have a key, it has the value of the first process."""
        found: dict[str, str] = {}
        for row in self._query("environment", "SELECT process, key, value FROM environment "
                               "ORDER BY process IS NOT NULL, id", Row):
            found.setdefault(row.key, row.value)
        return found

    # ---- as data frames ----

    def to_dataframe(self, table: str = "contexts", metrics: Iterable[str] | None = None) -> pandas.DataFrame:
        """A table of the profile as a pandas data frame. TABLE is one of:

        - "contexts": a row for each context, with columns such as "gpu.time.exclusive.sum" and
          "op.time.inclusive.mean". METRICS: names of metrics. Default: all metrics of the profile.
        - "spans": what `plumb run --trace` kept. "newest": the newest GPU work of each device.
        - "processes", "devices", "tracks", "findings", "ledger": the properties with these names.

        Times are nanoseconds, sizes bytes. An unknown value is <NA>. Raises ImportError without pandas.
        """
        from . import dataframe
        if table == "contexts":
            return dataframe.contexts(self, metrics)
        if table in ("spans", "newest"):
            return dataframe.spans(self, table == "newest")
        if table not in ("processes", "devices", "tracks", "findings", "ledger"):
            raise ValueError(f"no table {table!r}; use one of: contexts, spans, newest, processes, devices, tracks, "
                             "findings, ledger")
        return dataframe.rows(getattr(self, table))

    # ---- what happened when ----

    def spans(self, track: int | None = None, newest: bool = False) -> Iterator[_spans.Span]:
        """Yields the spans that `plumb run --trace` kept (plumb.Span: track, context, start_ns, end_ns,
        correlation, bytes), track by track, ordered by start. A span comes before the spans inside it.

        TRACK: the id of one track. NEWEST: instead yield the last GPU work of each device, which every profile
        has. `profile.node(span.context)` is the span's place in the tree.
        """
        return _spans.rows(self.span_columns(track, newest))

    def span_columns(self, track: int | None = None, newest: bool = False) -> Iterator[_spans.Columns]:
        """Like spans(), but yields arrays (plumb.SpanColumns) of up to 65536 spans of one track."""
        try:
            self._steps = 0
            yield from _spans.chunks(self._database, "newest" if newest else "trace", track,
                                     self._schema)
        except (ValueError, OverflowError, TypeError) as error:
            raise ProfileError(f"{self.path}: damaged spans ({error}); record it again") from None

    def cpu_samples(self, track: int | None = None) -> Iterator[CpuSample]:
        """Yields the samples of CPU time whose time is known (CpuSample), thread by thread, in order. They come
        from `plumb run --trace --cpu` or from another tool's trace. TRACK: the id of one thread."""
        if not self._has_table("cpu_samples"):
            return
        only = "" if track is None else "WHERE track = ?"
        yield from map(CpuSample._make, self._select(
            f"SELECT track, context, at_ns, cpu_ns FROM cpu_samples {only} ORDER BY id",
            () if track is None else (track,)))

    def node(self, context: int) -> Node:
        """The node of the context with this id."""
        if not 0 <= context < len(self._contexts):
            raise IndexError(f"no context {context}; this profile has 0 to {len(self._contexts) - 1}")
        return Node(self, context)

    # ---- reading ----

    def _has_table(self, name):
        return self._select("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?",
                            (name,)).fetchone() is not None

    def _rows(self, table, kind):
        return self._query(table, f"SELECT * FROM {table} ORDER BY id", kind)

    def _query(self, key, sql, kind):
        if key not in self._cache:
            cursor = self._select(sql)
            names = [column[0] for column in cursor.description]
            self._cache[key] = [kind(dict(zip(names, row))) for row in self._take(cursor)]
        return list(self._cache[key])

    def _stats(self, metric):
        """{context: (sum, count, min, max, mean, m2)} of METRIC, exclusive and inclusive."""
        key = ("stats", metric)
        if key not in self._cache:
            exclusive = {}
            for context, *stat in self._value_rows(metric):
                before = exclusive.get(context)
                exclusive[context] = merge(before, stat) if before else tuple(stat)
            inclusive = dict(exclusive)
            for number in range(len(self._contexts) - 1, 0, -1):
                stat = inclusive.get(number)
                if stat:
                    parent = self._contexts[number][0]
                    before = inclusive.get(parent)
                    inclusive[parent] = merge(before, stat) if before else stat
            self._cache[key] = exclusive, inclusive
        return self._cache[key]

    def _value_rows(self, metric):
        """(context, sum, count, min, max, mean, m2) of METRIC, of the window if there is one."""
        if self._window is None:
            return self._select(
                "SELECT v.context, v.sum, v.count, v.min, v.max, v.mean, v.m2 "
                "FROM context_values v JOIN metrics m ON m.id = v.metric WHERE m.name = ?", (metric,))
        # Minimum and maximum are known of what lies in the window as a whole, or is all the same.
        marks = ", ".join("?" * len(self._window))
        return self._select(
            "SELECT w.context, w.sum, w.count, "
            "CASE WHEN v.count = w.count OR v.min = v.max THEN v.min ELSE w.min END, "
            "CASE WHEN v.count = w.count OR v.min = v.max THEN v.max ELSE w.max END, w.sum * 1.0 / w.count, w.m2 "
            "FROM metrics m JOIN window_values w ON w.metric = m.id "
            "LEFT JOIN context_values v ON v.context = w.context AND v.metric = w.metric AND v.track IS w.track "
            "AND v.from_device IS w.from_device AND v.to_device IS w.to_device "
            f"WHERE m.name = ? AND w.count > 0 AND w.window IN ({marks}) ORDER BY w.id", (metric, *self._window))

    def _variants(self):
        if "variants" not in self._cache:
            found = collections.defaultdict(list)
            table, spread, marks = "variants", "min_ns, max_ns", ""
            if self._window is not None:
                table, spread = "window_variants", "NULL, NULL"
                marks = f"WHERE window IN ({', '.join('?' * len(self._window))})"
            for row in self._take(self._select(
                    "SELECT context, track, shapes, grid_x, grid_y, grid_z, block_x, block_y, "
                    "block_z, registers, static_shared_bytes, dynamic_shared_bytes, occupancy_ppm, "
                    f"count, time_ns, {spread} FROM {table} {marks} ORDER BY id", self._window or ())):
                found[row[0]].append(Variant(row[1], row[2], row[3:6], row[6:9], *row[9:]))
            self._cache["variants"] = found
        return self._cache["variants"]

    def _origins(self):
        if "origins" not in self._cache:
            found = collections.defaultdict(list)
            for context, origin, reason in self._select(
                    "SELECT context, origin, reason FROM origins ORDER BY id"):
                found[context].append((reason, origin))
            self._cache["origins"] = found
        return self._cache["origins"]
