# SPDX-License-Identifier: Apache-2.0
"""A profile file as a tree of nodes. The tables it reads stand in docs/profile-format.md."""
import collections
import collections.abc
import json
import os
import pathlib
import sqlite3
from typing import NamedTuple, Optional

from . import _spans
from .match import Pattern

APPLICATION_ID = 0x504C4D42  # "PLMB"
NEWEST_SCHEMA = 3

KINDS = ("root", "python", "module", "operator", "range", "native", "library", "gpu_api", "graph",
         "collective", "kernel", "copy", "set", "device_function", "inline", "loop", "line",
         "instruction")
BACKWARD, ACCUMULATION, TRUNCATED = 1, 2, 4


class ProfileError(ValueError):
    """The file is no profile, is damaged, or was written by a newer plumb."""


class Metric(NamedTuple):
    """What a metric is. `aggregation` is "sum", "max" or "call" (a property of one call)."""
    name: str
    unit: str
    aggregation: str
    source: str
    meaning: str


class Value(NamedTuple):
    """Observations of one metric put together, in the metric's unit (ns, byte, count, ppm).

    `sum` is None for a metric that does not add up (a kernel's registers, say). Without any
    observation `count` is 0, `sum` is 0 or None, and the rest is None.
    """
    sum: Optional[int]
    count: int
    min: Optional[int]
    max: Optional[int]
    mean: Optional[float]
    std: Optional[float]  # of a sample: with n - 1; 0 for a single observation; None: not known


class Variant(NamedTuple):
    """The shape of repeated work at a node: a kernel's launch configuration, or the input shapes of an
    operator, with how often and how long. Sizes are bytes, times ns, occupancy parts per million."""
    track: Optional[int]
    shapes: Optional[str]
    grid: tuple
    block: tuple
    registers: Optional[int]
    static_shared_bytes: Optional[int]
    dynamic_shared_bytes: Optional[int]
    occupancy_ppm: Optional[int]
    count: int
    time_ns: int
    min_ns: int
    max_ns: int


class CpuSample(NamedTuple):
    """A sample of CPU time: at `at_ns` the thread `track` computed at `context` (ids), and since its sample
    before it had computed for `cpu_ns`."""
    track: int
    context: int
    at_ns: int
    cpu_ns: int


class Row:
    """A row of a table; its columns are attributes, with the units that their names end in."""

    def __init__(self, columns):
        self.__dict__.update(columns)

    def __repr__(self):
        return "{}({})".format(type(self).__name__,
                               ", ".join(f"{key}={value!r}" for key, value in vars(self).items()))


class Process(Row):
    """id, pid, ppid, rank, local_rank, host, command, start_ns, end_ns, exit_code, overhead_ns."""


class Device(Row):
    """A GPU: id, name, uuid, ordinal, rank, its properties and its exact totals (kernels, kernel_ns,
    copies, copy_ns, copy_bytes, sets, set_ns, set_bytes, busy_ns, contended_ns, …)."""


class Track(Row):
    """Where work happens: id, kind ("thread", "stream", or "memory" of a device), process, device, name,
    tid, stream, …"""


class Memory(Row):
    """A device's memory in one process: id, track, peak_bytes, peak_ns, allocations, allocated_bytes,
    frees, freed_bytes, live_bytes (at the end), and the allocator's own account: peak_allocated_bytes,
    peak_reserved_bytes, most_reserved_bytes (None where it keeps none)."""


class CodeObject(Row):
    """A program or library: id, process, kind ("elf"), path, build_id, hash, bytes. The `file` of a
    native node is the build id, or the path where there is none."""


class Run(Row):
    """command, start_ns, wall_ns, exit_code, overhead_ns, tool_version."""


class Values(collections.abc.Mapping):
    """Metric name → Value of one node. Iterating gives the metrics that were observed there; asking
    for another known metric gives an empty Value, for an unknown one KeyError."""

    __slots__ = ("_node", "_inclusive")

    def __init__(self, node, inclusive):
        self._node = node
        self._inclusive = inclusive

    def __getitem__(self, name):
        profile = self._node.profile
        if name not in profile.metrics:
            known = ", ".join(profile.metrics)
            raise KeyError(f"no metric {name!r}; there are: {known}")
        found = profile._stats(name)[self._inclusive].get(self._node.id)
        return _value(found, profile.metrics[name].aggregation)

    def __contains__(self, name):
        profile = self._node.profile
        return name in profile.metrics and \
            self._node.id in profile._stats(name)[self._inclusive]

    def __iter__(self):
        return (name for name in self._node.profile.metrics if name in self)

    def __len__(self):
        return sum(1 for _ in self)

    def __repr__(self):
        return repr(dict(self))


class Node:
    """A context: a path of frames from the root. Nodes of one profile compare by identity of context."""

    __slots__ = ("profile", "id")

    def __init__(self, profile, number):
        self.profile = profile
        self.id = number

    def __eq__(self, other):
        return isinstance(other, Node) and (self.profile, self.id) == (other.profile, other.id)

    def __hash__(self):
        return hash(self.id)

    def __repr__(self):
        return f"<{self.kind} {self.name!r}>"

    def _frame(self):
        return self.profile._frames[self.profile._contexts[self.id][1]]

    @property
    def kind(self):
        """"python", "operator", "kernel", …: see the table of frames in the documentation."""
        return self._frame()[0]

    @property
    def name(self):
        """The frame's name; for a kernel and a native function the demangled one. "?" when it is
        unknown."""
        frame = self._frame()
        return frame[4] or frame[1] or "?"

    @property
    def symbol(self):
        """The name as recorded (a kernel's or a native function's mangled name), or None."""
        return self._frame()[1]

    @property
    def file(self):
        """The source file; of a module its class, of a native frame its build id; or None."""
        return self._frame()[2]

    @property
    def line(self):
        """The line in the file; of a native frame the offset of its call in the function; or None."""
        return self._frame()[3]

    @property
    def source_file(self):
        """The file with the frame's code where `file` says something else (a native frame), or None."""
        return self._frame()[5]

    @property
    def source_line(self):
        """The line in source_file, or None."""
        return self._frame()[6]

    @property
    def depth(self):
        """0 for the root."""
        return self.profile._contexts[self.id][4]

    @property
    def parent(self):
        """The node above, or None for the root."""
        number = self.profile._contexts[self.id][0]
        return None if number is None else Node(self.profile, number)

    @property
    def ancestors(self):
        """The nodes above, nearest first."""
        above, node = [], self.parent
        while node is not None:
            above.append(node)
            node = node.parent
        return above

    @property
    def children(self):
        """The nodes directly below."""
        found, number, last = [], self.id + 1, self.profile._contexts[self.id][3]
        while number <= last:
            found.append(Node(self.profile, number))
            number = self.profile._contexts[number][3] + 1
        return found

    @property
    def path(self):
        """The names from below the root to this node, separated by "/"; a "/" in a name is "\\/"."""
        names = [node.name for node in reversed([self] + self.ancestors[:-1])] if self.id else []
        return "/".join(name.replace("\\", "\\\\").replace("/", "\\/") for name in names)

    def walk(self):
        """This node and all below it, each before its children (preorder)."""
        for number in range(self.id, self.profile._contexts[self.id][3] + 1):
            yield Node(self.profile, number)

    def bfs(self):
        """This node and all below it, level by level."""
        waiting = collections.deque([self])
        while waiting:
            node = waiting.popleft()
            yield node
            waiting.extend(node.children)

    def match(self, pattern):
        """The nodes below this one whose path from here matches PATTERN, in preorder.

        See plumb.match for the language: "**/aten::linear/**/kernel:*gemm*".
        """
        compiled = Pattern(pattern, KINDS)
        contexts = self.profile._contexts
        states = {self.id: compiled.start()}
        found = []
        number, last = self.id + 1, contexts[self.id][3]
        while number <= last:
            node = Node(self.profile, number)
            after = compiled.step(states[contexts[number][0]], node)
            if compiled.matches(after):
                found.append(node)
            if after:
                states[number] = after
                number += 1
            else:  # nothing below can match
                number = contexts[number][3] + 1
        return found

    @property
    def exclusive(self):
        """Metric name → Value of what happened in this very context."""
        return Values(self, False)

    @property
    def inclusive(self):
        """Metric name → Value of this context and all below it, backward work included."""
        return Values(self, True)

    @property
    def variants(self):
        """The launch configurations or input shapes seen here (a list of Variant)."""
        return self.profile._variants().get(self.id, [])

    @property
    def is_backward(self):
        """Whether this is work of a backward pass."""
        return self._flag(BACKWARD | ACCUMULATION)

    @property
    def is_accumulation(self):
        """Whether this is backward work that no single forward operator caused: gradient
        accumulation, root gradients, hooks. It lies under the line that called backward."""
        return self._flag(ACCUMULATION)

    @property
    def is_truncated(self):
        """Whether deeper frames existed and were not kept."""
        return bool(self.profile._contexts[self.id][2] & TRUNCATED)

    def _flag(self, flag):
        node = self
        while node is not None:
            if self.profile._contexts[node.id][2] & flag:
                return True
            node = node.parent
        return False

    @property
    def forward(self):
        """For backward work: the forward operator's node that caused it (for a double backward pass the
        operator at the bottom of it all). None for forward work and for gradient accumulation."""
        contexts, found = self.profile._contexts, None
        for node in [self] + self.ancestors:
            flags = contexts[node.id][2]
            if flags & BACKWARD:
                found = None if flags & ACCUMULATION else node.parent
        return found

    @property
    def backward(self):
        """The backward work that this node, or an operator below it, caused: the topmost nodes of it."""
        found, contexts = [], self.profile._contexts
        number, last = self.id + 1, contexts[self.id][3]
        while number <= last:
            flags = contexts[number][2]
            if flags & BACKWARD and not flags & ACCUMULATION:
                found.append(Node(self.profile, number))
            number = contexts[number][3] + 1 if flags & BACKWARD else number + 1
        return found

    @property
    def origins(self):
        """Contexts that explain this one, as (reason, Node): who called backward, the capture of a
        graph's node, …"""
        return [(reason, Node(self.profile, origin))
                for reason, origin in self.profile._origins().get(self.id, [])]


def _merge(a, b):
    """Two (sum, count, min, max, mean, m2) put together."""
    count = a[1] + b[1]
    delta = b[4] - a[4]
    return (a[0] + b[0], count, min(a[2], b[2]), max(a[3], b[3]), a[4] + delta * b[1] / count,
            None if a[5] is None or b[5] is None else
            a[5] + b[5] + delta * delta * a[1] * b[1] / count)


def _value(stat, aggregation):
    adds = aggregation == "sum"
    if stat is None:
        return Value(0 if adds else None, 0, None, None, None, None)
    total, count, least, most, mean, m2 = stat
    deviation = 0.0 if count < 2 else None if m2 is None else (m2 / (count - 1)) ** 0.5
    return Value(total if adds else None, count, least, most, mean, deviation)


class Profile:
    """A profile file. Nothing is written to it.

    PATH: the file that `plumb run` or `plumb settle` wrote. Raises FileNotFoundError, or ProfileError
    when the file is no profile or one of a newer plumb. Values are read when first asked for; close()
    (or a with block) lets go of the file.
    """

    def __init__(self, path):
        self.path = os.fspath(path)
        if not os.path.exists(self.path):
            raise FileNotFoundError(f"{self.path}: no such file")
        uri = pathlib.Path(self.path).resolve().as_uri() + "?mode=ro"
        self._database = sqlite3.connect(uri, uri=True)
        self._cache = {}
        try:
            self._read()
        except sqlite3.DatabaseError as error:
            self.close()
            raise ProfileError(f"{self.path}: not a profile, or damaged ({error}); record it again, "
                               "or settle its regions again") from None
        except ProfileError:
            self.close()
            raise

    def _read(self):
        if self._database.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise ProfileError(f"{self.path}: a database, but no profile of plumb")
        self._schema = schema = self._database.execute("PRAGMA user_version").fetchone()[0]
        if schema > NEWEST_SCHEMA:
            raise ProfileError(f"{self.path}: written by a newer plumb (schema {schema}); install "
                               "the newest plumb-profiler")
        self.metrics = collections.OrderedDict(
            (row[0], Metric(*row)) for row in self._database.execute(
                "SELECT name, unit, aggregation, source, meaning FROM metrics ORDER BY id"))
        source = "source_file, source_line" if schema >= 2 else "NULL, NULL"
        self._frames = self._database.execute(
            f"SELECT kind, name, file, line, display, {source} FROM frames ORDER BY id").fetchall()
        self._contexts = self._database.execute(
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

    def close(self):
        """Lets go of the file. What was not read before cannot be read afterwards."""
        self._database.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __len__(self):
        """How many contexts there are."""
        return len(self._contexts)

    def __repr__(self):
        return f"<plumb.Profile {self.path!r}: {len(self)} contexts>"

    # ---- the tree ----

    @property
    def root(self):
        """The root node; everything is below it."""
        return Node(self, 0)

    @property
    def children(self):
        """The nodes directly below the root."""
        return self.root.children

    def walk(self):
        """Every node, each before its children."""
        return self.root.walk()

    def bfs(self):
        """Every node, level by level."""
        return self.root.bfs()

    def match(self, pattern):
        """The nodes whose path matches PATTERN; see Node.match."""
        return self.root.match(pattern)

    @property
    def kernels(self):
        """Every kernel node, in preorder: one for each kernel and context."""
        return self.of_kind("kernel")

    @property
    def operators(self):
        """Every operator node, in preorder: one for each operator and context."""
        return self.of_kind("operator")

    def of_kind(self, kind):
        """Every node of a kind of frame: "python", "copy", …"""
        if kind not in KINDS:
            raise ValueError(f"no kind of frame {kind!r}; there are: {', '.join(KINDS)}")
        return [node for node in self.walk() if node.kind == kind]

    # ---- what stands beside the tree ----

    @property
    def run(self):
        """The run as a whole (Run)."""
        return self._rows("run", Run)[0]

    @property
    def processes(self):
        """The processes (a list of Process, indexed by their id)."""
        return self._rows("processes", Process)

    @property
    def devices(self):
        """The GPUs (a list of Device, indexed by their id)."""
        return self._rows("devices", Device)

    @property
    def device_processes(self):
        """What each process did on a device: rows with device, process (ids), busy_ns, first_ns,
        last_ns. Empty for a file from before schema 2."""
        return self._rows("device_processes", Row) if self._has_table("device_processes") else []

    @property
    def waits(self):
        """Who waited for GPU work, where that was recorded: rows with track, awaited, device (ids or
        None), call, after (correlations; 0: none). Empty for a file without them."""
        return self._rows("waits", Row) if self._schema >= 3 else []

    @property
    def collectives(self):
        """What the recording says of collective operations: rows with track, start_ns (of their span), group_name,
        ranks, size, sequence (None: unknown). Empty for a file without them."""
        there = self._query("has_collectives", "SELECT name FROM sqlite_master WHERE type = 'table' AND name = "
                            "'collectives'", Row)
        return self._rows("collectives", Row) if there else []

    @property
    def tracks(self):
        """Threads, streams and devices' memory (a list of Track, indexed by their id)."""
        return self._rows("tracks", Track)

    @property
    def memory(self):
        """Devices' memory (a list of Memory), recorded with --memory; the contexts' part is in the
        metrics mem.held, mem.peak, mem.alloc and mem.free."""
        return self._rows("memory", Memory) if self._schema >= 2 else []

    @property
    def code_objects(self):
        """The files that native frames lie in (a list of CodeObject)."""
        return self._rows("code_objects", CodeObject)

    @property
    def ledger(self):
        """What became of what was received: rows with process (id or None), source, fate, is_drop,
        reason, detail, count."""
        return self._query(
            "ledger", "SELECT l.process, l.source, l.fate, f.is_drop, f.reason, l.detail, l.count "
            "FROM ledger l LEFT JOIN fates f ON f.name = l.fate ORDER BY l.id", Row)

    @property
    def findings(self):
        """What the analyses concluded, the most important first: rows with finding (a stable id), rule,
        severity, title, advice, evidence (a dict), context (a Node or None), saving_ns (at most so much
        is saved; None: unknown), confidence (0…1)."""
        found = self._query(
            "findings", "SELECT finding, rule, severity, title, advice, evidence, context, saving_ns, "
            "confidence FROM findings ORDER BY id", dict)
        return [Row({**row, "evidence": json.loads(row["evidence"] or "{}"),
                     "context": None if row["context"] is None else Node(self, row["context"])})
                for row in found]

    @property
    def environment(self):
        """{key: value} of the run; a key that only processes have takes the first process's."""
        found = {}
        for row in self._query("environment", "SELECT process, key, value FROM environment "
                               "ORDER BY process IS NOT NULL, id", Row):
            found.setdefault(row.key, row.value)
        return found

    # ---- what happened when ----

    def spans(self, track=None, newest=False):
        """Yields what `plumb run --trace` kept (plumb.Span: track, context, start_ns, end_ns,
        correlation, bytes), track by track in the order of starts; a span comes before those inside it.

        TRACK: the id of one track. NEWEST: the last GPU work of each device instead, which every
        profile has. `profile.node(span.context)` is its place in the tree.
        """
        return _spans.rows(self.span_columns(track, newest))

    def span_columns(self, track=None, newest=False):
        """As spans(), but yields up to 65536 of one track at a time as arrays (plumb.SpanColumns)."""
        try:
            yield from _spans.chunks(self._database, "newest" if newest else "trace", track,
                                     self._schema)
        except (ValueError, OverflowError, TypeError) as error:
            raise ProfileError(f"{self.path}: damaged spans ({error}); record it again") from None

    def cpu_samples(self, track=None):
        """Yields the samples of CPU time that have a moment (CpuSample), thread by thread in order: of
        `plumb run --trace --cpu`, or of another tool's trace. TRACK: the id of one thread."""
        if not self._has_table("cpu_samples"):
            return
        only = "" if track is None else "WHERE track = ?"
        yield from map(CpuSample._make, self._database.execute(
            f"SELECT track, context, at_ns, cpu_ns FROM cpu_samples {only} ORDER BY id",
            () if track is None else (track,)))

    def node(self, context):
        """The node of a context's id."""
        if not 0 <= context < len(self._contexts):
            raise IndexError(f"no context {context}; there are {len(self._contexts)}")
        return Node(self, context)

    # ---- reading ----

    def _has_table(self, name):
        return self._database.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?",
                                      (name,)).fetchone() is not None

    def _rows(self, table, kind):
        return self._query(table, f"SELECT * FROM {table} ORDER BY id", kind)

    def _query(self, key, sql, kind):
        if key not in self._cache:
            cursor = self._database.execute(sql)
            names = [column[0] for column in cursor.description]
            self._cache[key] = [kind(dict(zip(names, row))) for row in cursor]
        return list(self._cache[key])

    def _stats(self, metric):
        """{context: (sum, count, min, max, mean, m2)} of METRIC, exclusive and inclusive."""
        key = ("stats", metric)
        if key not in self._cache:
            exclusive = {}
            for context, *stat in self._database.execute(
                    "SELECT v.context, v.sum, v.count, v.min, v.max, v.mean, v.m2 "
                    "FROM context_values v JOIN metrics m ON m.id = v.metric WHERE m.name = ?",
                    (metric,)):
                before = exclusive.get(context)
                exclusive[context] = _merge(before, stat) if before else tuple(stat)
            inclusive = dict(exclusive)
            for number in range(len(self._contexts) - 1, 0, -1):
                stat = inclusive.get(number)
                if stat:
                    parent = self._contexts[number][0]
                    before = inclusive.get(parent)
                    inclusive[parent] = _merge(before, stat) if before else stat
            self._cache[key] = exclusive, inclusive
        return self._cache[key]

    def _variants(self):
        if "variants" not in self._cache:
            found = collections.defaultdict(list)
            for row in self._database.execute(
                    "SELECT context, track, shapes, grid_x, grid_y, grid_z, block_x, block_y, "
                    "block_z, registers, static_shared_bytes, dynamic_shared_bytes, occupancy_ppm, "
                    "count, time_ns, min_ns, max_ns FROM variants ORDER BY id"):
                found[row[0]].append(Variant(row[1], row[2], row[3:6], row[6:9], *row[9:]))
            self._cache["variants"] = found
        return self._cache["variants"]

    def _origins(self):
        if "origins" not in self._cache:
            found = collections.defaultdict(list)
            for context, origin, reason in self._database.execute(
                    "SELECT context, origin, reason FROM origins ORDER BY id"):
                found[context].append((reason, origin))
            self._cache["origins"] = found
        return self._cache["origins"]
