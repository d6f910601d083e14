# SPDX-License-Identifier: Apache-2.0
"""Profiles with samples of GPU code, made of a real cubin and of samples that a test plants.

    made = profile(tmp_path / "x.plumb", [Function("row_sums", samples={(0x290, "long_scoreboard"): (900, 100)})])
"""
import collections
import dataclasses
import hashlib
import json
import pathlib
import sqlite3
import struct

from conftest import PLUMB, run_command

CUBIN = pathlib.Path(__file__).resolve().parent.parent / "data" / "why" / "stalls.cubin"


class Cubin:
    """The functions of an ELF image of GPU code: {name: machine code}, and what its code refers to."""

    def __init__(self, path):
        self.bytes = pathlib.Path(path).read_bytes()
        start, = struct.unpack_from("<Q", self.bytes, 0x28)
        size, count, names = struct.unpack_from("<HHH", self.bytes, 0x3a)
        heads = [struct.unpack_from("<IIQQQQIIQQ", self.bytes, start + i * size) for i in range(count)]
        self.sections = {}
        for head in heads:
            name = self._text(heads[names][4] + head[0])
            self.sections[name] = (head, self.bytes[head[4]:head[4] + head[5]] if head[1] != 8 else b"")
        self.heads = heads
        self.functions = {name[6:]: data for name, (_, data) in self.sections.items() if name.startswith(".text.")}

    def _text(self, at):
        return self.bytes[at:self.bytes.index(b"\0", at)].decode()

    def references(self, name):
        """[(offset, name)] of the addresses of functions in a function's code."""
        head, table = self.sections[".symtab"]
        strings = self.heads[head[6]][4]
        found = []
        _, data = self.sections.get(f".rela.text.{name}", (None, b""))
        for offset, info, _ in struct.iter_unpack("<QQq", data):
            at = (info >> 32) * 24
            symbol, = struct.unpack_from("<I", table, at)
            target = self._text(strings + symbol)
            if target in self.functions:
                found.append((offset, target))
        return found


@dataclasses.dataclass
class Function:
    name: str
    samples: dict = dataclasses.field(default_factory=dict)  # {(offset, reason): (exposed, hidden)}
    kernel: bool = True
    gpu_ns: int = None  # of its launches
    text: bytes = None  # its machine code; None: that of the cubin, b"": it is not kept
    architecture: str = "sm_90"
    lines: list = dataclasses.field(default_factory=list)  # (offset, depth, file, line, inlined)
    references: list = None
    launches: dict = dataclasses.field(default_factory=dict)  # {ns: {(offset, reason): (exposed, hidden)}}
    rank: int = 0


def _base(path):
    """A profile with one process, a device, a stream and a loop of nothing."""
    done = run_command(PLUMB, "run", "-o", path, "--", "true")
    assert path.exists(), done.stderr


def profile(path, functions, cubin=CUBIN, processes=1, twice=False):
    """Writes a profile at PATH with FUNCTIONS of CUBIN. With TWICE, each process has loaded the module."""
    path.unlink(missing_ok=True)
    _base(path)
    code = Cubin(cubin)
    with sqlite3.connect(path) as database:
        put, counts = database.execute, collections.Counter()

        def following(table):
            counts[table] += 1
            return counts[table] - 1
        clock = put("SELECT start_ns FROM run").fetchone()[0] or 0
        put("DELETE FROM processes")
        put("DELETE FROM devices")
        put("DELETE FROM tracks")
        for table in ("context_values", "environment", "ledger"):
            put(f"DELETE FROM {table}")
        for rank in range(processes):
            put("INSERT INTO processes(id, pid, rank, host, command, start_ns, end_ns) VALUES (?, ?, ?, 'h', 'c', ?, ?)",
                (rank, 100 + rank, rank if processes > 1 else None, clock, clock + 10**9))
            put("INSERT INTO devices(id, name, uuid, ordinal, capability_major, capability_minor, multiprocessors, "
                "warps_per_multiprocessor) VALUES (?, 'NVIDIA H200', ?, 0, 9, 0, 132, 64)", (rank, f"GPU-{rank}"))
            put("INSERT INTO tracks(id, kind, process, device, stream, gpu_context) VALUES (?, 'stream', ?, ?, 7, 1)",
                (rank, rank, rank))
        metric = put("SELECT id FROM metrics WHERE name = 'gpu.time'").fetchone()[0]
        contexts = sum(f.gpu_ns is not None for f in functions)
        frame = put("SELECT coalesce(max(id), 0) + 1 FROM frames").fetchone()[0]
        put("DELETE FROM contexts WHERE id > 0")
        put("UPDATE contexts SET last = ? WHERE id = 0", (contexts,))
        digest = hashlib.sha256(code.bytes).hexdigest()
        objects = processes if twice else 1
        for number in range(objects):
            put("INSERT INTO code_objects(id, process, kind, path, hash, bytes) VALUES "
                "((SELECT coalesce(max(id), -1) + 1 FROM code_objects), ?, 'cubin', 'stalls.cubin', ?, ?)",
                (number if twice else None, digest, len(code.bytes)))
        first = put("SELECT max(id) FROM code_objects").fetchone()[0] - objects + 1
        context, rows = 0, []
        for number in range(objects):
            for function in functions:
                rows.append((number, function))
        for row, (number, function) in enumerate(rows):
            text = code.functions.get(function.name, b"") if function.text is None else function.text
            put("INSERT INTO code_functions VALUES (?, ?, ?, ?, ?, ?, 24, 0, 0, ?, ?)",
                (row, first + number, function.name, function.architecture, int(function.kernel), len(text),
                 text or None, len(text) if text else None))
            known = code.references(function.name) if function.references is None else function.references
            for offset, name in sorted(known):
                put("INSERT INTO code_references(id, code_function, offset, name) VALUES (?, ?, ?, ?)",
                    (following("code_references"), row, offset, name))
            for offset, depth, file, line, inlined in function.lines:
                put("INSERT INTO code_lines(id, code_function, offset, depth, file, line, inlined) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?)", (following("code_lines"), row, offset, depth, file, line, inlined))
            mine = None
            if number == 0 and function.gpu_ns is not None:
                context += 1
                mine = context
                put("INSERT INTO frames(id, kind, name) VALUES (?, 'kernel', ?)", (frame, function.name))
                put("INSERT INTO contexts VALUES (?, 0, ?, 0, ?, 1)", (context, frame, context))
                put("INSERT INTO context_values(id, context, metric, track, sum, count, min, max, mean, m2) "
                    "VALUES (?, ?, ?, 0, ?, 1, ?, ?, ?, 0)",
                    (context - 1, context, metric, function.gpu_ns, function.gpu_ns, function.gpu_ns, function.gpu_ns))
                put("INSERT INTO variants(id, context, track, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers, "
                    "static_shared_bytes, dynamic_shared_bytes, occupancy_ppm, count, time_ns) "
                    "VALUES (?, ?, 0, 132, 1, 1, 256, 1, 1, 24, 0, 0, 1000000, 1, ?)",
                    (context - 1, context, function.gpu_ns))
                frame += 1
            process = number if twice else function.rank
            groups = function.launches.items() if function.launches else [(None, function.samples)]
            samples = []
            for launch, planted in groups:
                for (offset, reason), planted_counts in planted.items():
                    for issued, count in enumerate(planted_counts):
                        if count:
                            samples.append((offset, process, mine if launch is not None else None, launch, reason, issued,
                                            count))
            for offset, process, at, launch, reason, issued, count in \
                    sorted(samples, key=lambda s: (s[0], s[1], s[2] or 0, s[3] or 0)):
                put("INSERT INTO code_samples(id, code_function, offset, process, device, reason, issued, context, launch_ns, "
                    "count) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (following("code_samples"), row, offset, process, process, reason, issued, at, launch, count))
    database.close()
    return path


def lines(kernel, cubin=CUBIN):
    """The lines of a kernel of the cubin as rows for Function.lines, as plumb reads them."""
    done = run_command(PLUMB, "why", "--static", cubin, kernel, "--annotate", "--json")
    found = []
    for row in json.loads(done.stdout)["kernels"][0]["listing"]:
        if row["function"] != kernel or not row["file"]:
            continue
        chain = [(row["file"], row["line"], None)]
        for outer in row["inlined"]:
            file, line, _ = chain[-1]
            chain[-1] = (file, line, outer["function"])
            chain.append((outer["file"], outer["line"], None))
        if not found or [f[2:] for f in found[-1]] != chain:
            found.append([(row["offset"], depth, *step) for depth, step in enumerate(chain)])
    return [row for chain in found for row in chain]


def add_launches(path, name, planted, cubin=CUBIN):
    """Adds serialised samples to a profile that has launches of the kernel NAME: PLANTED[i] is {(offset, reason): count}
    of the launch that began at i."""
    text = Cubin(cubin).functions[name]
    with sqlite3.connect(path) as database:
        put = database.execute
        context, = put("SELECT c.id FROM contexts c JOIN frames f ON f.id = c.frame "
                       "WHERE f.kind = 'kernel' AND f.name = ?", (name,)).fetchone()
        put("INSERT INTO code_objects(id, kind, path, hash, bytes) VALUES "
            "((SELECT coalesce(max(id), -1) + 1 FROM code_objects), 'cubin', 'x', 'h', 1)")
        number, = put("SELECT max(id) FROM code_objects").fetchone()
        put("INSERT INTO code_functions VALUES (0, ?, ?, 'sm_90', 1, ?, 24, 0, 0, ?, ?)",
            (number, name, len(text), text, len(text)))
        rows = sorted((offset, launch, reason, count) for launch, samples in planted.items()
                      for (offset, reason), count in samples.items())
        for row, (offset, launch, reason, count) in enumerate(rows):
            put("INSERT INTO code_samples VALUES (?, 0, ?, 0, 0, ?, 0, ?, ?, ?)",
                (row, offset, reason, context, launch, count))
    database.close()
