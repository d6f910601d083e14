# SPDX-License-Identifier: Apache-2.0
"""Profiles with traffic between devices, made row by row, and the numbers that they must give.

    made = Traffic(devices=4)
    line = made.line("ring", 0x40, [("ring.cu", 12)])
    field = made.object(1, 4096, at=("ring.cu", 5), name="field")
    made.access("store", 0, 1, line, lanes=1024, width=4, object=field)
    made.write(tmp_path / "ring.plumb")

The programs of ORACLES are those of which formulas say what moves: (name, function that makes them with N devices, the
matrix of bytes that each device initiates, by owner).
"""
import hashlib
import sqlite3

from conftest import PLUMB, run_command

READS = ("load", "async copy", "bulk load", "receive")
HASH = hashlib.sha256(b"a module").hexdigest()


class Traffic:
    def __init__(self, devices=2, mode="full", hash=HASH, ranks=False):
        self.devices, self.mode, self.hash, self.ranks = devices, mode, hash, ranks
        self.frames, self.contexts = [], [(None, None)]  # (kind, name, file, line), (parent, frame)
        self.functions, self.lines, self.objects, self.bins, self.transfers = [], [], [], [], []
        self.ranges, self.ledger, self.environment, self.values, self.collectives = [], [], [], [], []
        self.links = []

    # ---- names ----

    def context(self, *frames):
        """The context under the root with these frames: (kind, name[, file, line])."""
        at = 0
        for frame in frames:
            frame = (*frame, None, None)[:4]
            if frame not in self.frames:
                self.frames.append(frame)
            number = self.frames.index(frame)
            child = next((i for i, c in enumerate(self.contexts) if c == (at, number)), None)
            if child is None:
                child = len(self.contexts)
                self.contexts.append((at, number))
            at = child
        return at

    def python(self, file, line, name="main"):
        return ("python", name, f"/home/ada/{file}", line)

    def kernel(self, name, at=("train.py", 30)):
        """The context of a kernel that the line AT launches."""
        return self.context(self.python(*at), ("kernel", name))

    def line(self, kernel, offset, chain, at=("train.py", 30)):
        """An instruction of KERNEL: CHAIN is its line and those of the calls that were inlined there, innermost first."""
        if kernel not in self.functions:
            self.functions.append(kernel)
        number = self.functions.index(kernel)
        for depth, (file, line) in enumerate(chain):
            row = (number, offset, depth, f"/home/ada/{file}", line, None if depth == len(chain) - 1 else f"inner{depth}")
            if row not in self.lines:
                self.lines.append(row)
        return (self.kernel(kernel, at), number, offset)

    # ---- things ----

    def object(self, device, size, at=None, name=None, kind="device memory", touched=None, touchable=None, within=None,
               allocations=1):
        context = self.context(self.python(*at)) if at else None
        self.objects.append([context, 0, device, kind, name, within, allocations, size, size, touched,
                             touchable if touchable is not None else (None if touched is None else size)])
        return len(self.objects) - 1

    def bin(self, object, device, kind, offset, width, accesses):
        self.bins.append((object, device, kind, offset, width, accesses))

    def access(self, kind, initiator, owner, line, lanes, width, object=None, warps=None, error=0, route="peer access",
               bytes=None):
        """What INITIATOR's kernel does with OWNER's memory (a device, or None with an object of the host)."""
        context, function, offset = line if line else (None, None, None)
        reads = kind in READS
        ends = (owner, initiator) if reads else (initiator, owner)
        objects = (object, None) if reads else (None, object)
        self.transfers.append((context, 0, kind, route, initiator, *ends, *objects, function, offset, width, lanes,
                               -(-lanes // 32) if warps is None else warps, lanes * width if bytes is None else bytes, error))

    def copy(self, source, target, count, each, at=("train.py", 40), from_object=None, to_object=None, ns=None, name=None,
             initiator=None, route="copy engine"):
        """COUNT copies of EACH bytes that the host called at AT; they took NS each."""
        name = name or ("copy device→peer device" if None not in (source, target) else
                        "copy device→pinned" if target is None else "copy pinned→device")
        context = self.context(self.python(*at), ("copy", name))
        engine = initiator if initiator is not None else source if source is not None else target
        self.transfers.append((context, 0, "copy", route, engine, source, target, from_object, to_object,
                               None, None, None, count, None, count * each, 0))
        if ns:
            self.values.append((context, "gpu.copy_time", engine, count * ns, count, source, target))
            self.values.append((context, "gpu.copy_bytes", engine, count * each, count, source, target))

    def call(self, kind, device, source, target, count, each, at=("train.py", 50), route="peer access"):
        """A send, receive or collective with logical bytes."""
        context = self.context(self.python(*at), ("native", "ncclSend"))
        self.transfers.append((context, 0, kind, route, device, source, target, None, None, None, None, None, count, None,
                               count * each, 0))

    def collective(self, rank, sequence, start, end, each, operation="AllReduce", algorithm="RING", protocol="SIMPLE", at=None,
                   group="group0"):
        """An operation that the library told RANK's process of, of EACH bytes, called at the context AT; its kernel ran
        from START to END."""
        self.collectives.append((rank, group, None, start, self.devices, sequence, operation, "ncclFloat32", algorithm, protocol,
                                 start - 1000, end, each, rank, None, None, 2, at))

    def link(self, one, other, kind="NVSwitch", path=None, links=18, generation=None, speed=450 * 10**9, peer=1):
        """What links the device ONE with OTHER (None: the host)."""
        self.links.append((f"GPU-{one}", None if other is None else f"GPU-{other}", kind, path, links, generation, speed, peer))

    def time(self, kernel, device, ns, count=1):
        self.values.append((self.kernel(kernel), "gpu.time", device, ns, count, None, None))

    # ---- the file ----

    def write(self, path):
        path.unlink(missing_ok=True)
        done = run_command(PLUMB, "run", "-o", path, "--", "true")
        assert path.exists(), done.stderr
        with sqlite3.connect(path) as database:
            self._write(database.execute)
        database.close()
        return path

    def _write(self, put):
        def rows(table, columns, values):
            first = put(f"SELECT coalesce(max(id), -1) + 1 FROM {table}").fetchone()[0]
            for i, row in enumerate(values):
                marks = ", ".join("?" * (len(row) + 1))
                put(f"INSERT INTO {table}(id, {columns}) VALUES ({marks})", (first + i, *row))
            return first
        for table in ("context_values", "environment", "ledger", "processes", "tracks", "devices", "findings"):
            put(f"DELETE FROM {table}")
        put("UPDATE run SET analyses = NULL")  # so that findings are made of what is here
        start = put("SELECT start_ns FROM run").fetchone()[0] or 0
        rows("processes", "pid, rank, host, command, start_ns, end_ns",
             [(100 + i, i if self.ranks else None, "node", "ring", start, start + 10**9)
              for i in range(self.devices if self.ranks else 1)])
        rows("devices", "name, uuid, ordinal, rank, capability_major, capability_minor, busy_ns, first_ns, last_ns",
             [("NVIDIA H200", f"GPU-{i}", i, i if self.ranks else None, 9, 0, 10**8, start, start + 10**9)
              for i in range(self.devices)])
        rows("tracks", "kind, process, device, stream, gpu_context",
             [("stream", i if self.ranks else 0, i, 7, 1) for i in range(self.devices)])
        frame = rows("frames", "kind, name, file, line", self.frames)
        put("DELETE FROM contexts WHERE id > 0")
        order = self._preorder()
        last, depth = self._shape(order)
        for number, old in enumerate(order):
            if old == 0:
                put("UPDATE contexts SET last = ? WHERE id = 0", (last[0],))
                continue
            parent, its = self.contexts[old]
            put("INSERT INTO contexts(id, parent, frame, flags, last, depth) VALUES (?, ?, ?, 0, ?, ?)",
                (number, order.index(parent), frame + its, last[number], depth[number]))
        new = {old: number for number, old in enumerate(order)}
        new[None] = None
        metrics = dict(put("SELECT name, id FROM metrics").fetchall())
        values = [(new[c], metrics[m], track, total, count, total // count, total // count, total / count, 0.0, a, b)
                  for c, m, track, total, count, a, b in self.values]
        rows("context_values", "context, metric, track, sum, count, min, max, mean, m2, from_device, to_device",
             sorted(values, key=lambda v: (v[0], v[1], v[2], -1 if v[9] is None else v[9], -1 if v[10] is None else v[10])))
        if self.functions:
            code = rows("code_objects", "kind, path, hash, bytes", [("cubin", "a.cubin", self.hash, 4096)])
            rows("code_functions", "code_object, name, architecture, is_kernel, bytes",
                 [(code, name, "sm_90", 1, 4096) for name in self.functions])
            rows("code_lines", "code_function, offset, depth, file, line, inlined", sorted(self.lines, key=lambda r: r[:3]))
        rows("objects", "context, process, device, kind, name, within, allocations, bytes, most_bytes, touched_bytes, "
             "touchable_bytes", [(new[o[0]], *o[1:]) for o in self.objects])
        rows("object_ranges", "object, address, bytes, start_ns, end_ns", self.ranges)
        rows("object_bins", "object, device, kind, offset, width, accesses", sorted(self.bins, key=lambda b: (b[0], b[1], b[3])))
        rows("transfers", "context, process, kind, route, initiator, from_device, to_device, from_object, to_object, "
             "code_function, offset, width, accesses, warps, bytes, error_bytes",
             sorted(((new[t[0]], *t[1:]) for t in self.transfers), key=lambda t: -1 if t[0] is None else t[0]))
        rows("collectives", "track, group_name, ranks, start_ns, size, sequence, operation, datatype, algorithm, protocol, "
             "called_ns, end_ns, bytes, rank, peer, root, channels, context",
             sorted(((*c[:-1], new[c[-1]]) for c in self.collectives), key=lambda c: (c[0], c[3])))
        rows("device_links", "uuid, peer_uuid, kind, path, links, generation, bytes_per_second, peer_access", self.links)
        mode = [(None, "traffic.mode", self.mode)] if self.mode else []
        rows("environment", "process, key, value", [*mode, *self.environment])
        rows("ledger", "process, source, fate, detail, count", self.ledger)

    def _preorder(self):
        children = {}
        for number, (parent, _) in enumerate(self.contexts):
            if number:
                children.setdefault(parent, []).append(number)
        order, stack = [], [0]
        while stack:
            at = stack.pop()
            order.append(at)
            stack.extend(reversed(children.get(at, [])))
        return order

    def _shape(self, order):
        place = {old: number for number, old in enumerate(order)}
        last, depth = list(range(len(order))), [0] * len(order)
        for number, old in enumerate(order):
            if old:
                depth[number] = depth[place[self.contexts[old][0]]] + 1
        for number in range(len(order) - 1, 0, -1):
            parent = place[self.contexts[order[number]][0]]
            last[parent] = max(last[parent], last[number])
        return last, depth


# ---- programs whose traffic formulas give ----

def empty(n):
    return [[0] * n for _ in range(n)]


def ring_store(n, count=1 << 20, size=4):
    """#1: each device stores COUNT elements into its neighbour's buffer, from one line."""
    made, expected = Traffic(n), empty(n)
    line = made.line("ring_store", 0x40, [("ring.cu", 12)])
    buffers = [made.object(i, count * size, at=("ring.cu.py", 5), name=f"buffer{i}", touched=count * size) for i in range(n)]
    for i in range(n):
        made.access("store", i, (i + 1) % n, line, count, size, object=buffers[(i + 1) % n])
        made.bin(buffers[(i + 1) % n], i, "store", 0, count * size, count)
        expected[i][(i + 1) % n] += count * size
    return made, expected


def ring_load(n, count=1 << 20, size=8):
    """#2: the same with loads: the data flows the other way."""
    made, expected = Traffic(n), empty(n)
    line = made.line("ring_load", 0x50, [("ring.cu", 20)])
    buffers = [made.object(i, count * size, at=("ring.cu.py", 5), name=f"buffer{i}", touched=count * size) for i in range(n)]
    for i in range(n):
        made.access("load", i, (i + 1) % n, line, count, size, object=buffers[(i + 1) % n])
        expected[i][(i + 1) % n] += count * size
    return made, expected


def mixed_warps(n, count=1 << 15, size=4):
    """#3: lane l of each warp writes to device l mod n; local lanes are no transfers."""
    made, expected = Traffic(n), empty(n)
    line = made.line("mixed", 0x60, [("mixed.cu", 9)])
    buffers = [made.object(i, count * size, at=("mixed.py", 5), name=f"part{i}", touched=count * size) for i in range(n)]
    for i in range(n):
        for other in range(n):
            if other != i:
                made.access("store", i, other, line, count // n, size, object=buffers[other], warps=count // 32)
                expected[i][other] += count // n * size
    return made, expected


def halo(n, nx=4096, iterations=1000):
    """#4: a stencil in a periodic ring writes a row to each neighbour; two devices have both on one pair."""
    made, expected = Traffic(n), empty(n)
    up = made.line("stencil", 0x70, [("stencil.cu", 44)])
    down = made.line("stencil", 0x90, [("stencil.cu", 47)])
    parts = [made.object(i, nx * 1024 * 4, at=("stencil.py", 8), name=f"rows{i}", touched=nx * 1024 * 4) for i in range(n)]
    for i in range(n):
        for line, other in ((up, (i - 1) % n), (down, (i + 1) % n)):
            made.access("store", i, other, line, iterations * (nx - 2), 4, object=parts[other])
            expected[i][other] += iterations * (nx - 2) * 4
    return made, expected


def all_to_all(n, side=4096, size=8):
    """#5: a transpose: every device writes a part to every other one."""
    made, expected = Traffic(n), empty(n)
    line = made.line("transpose", 0x80, [("transpose.cu", 31)])
    parts = [made.object(i, side * side * size // n, at=("transpose.py", 3), name=f"part{i}", touched=side * side * size // n)
             for i in range(n)]
    for i in range(n):
        for other in range(n):
            if other != i:
                made.access("store", i, other, line, side * side // n**2, size, object=parts[other])
                expected[i][other] += side * side // n**2 * size
    return made, expected


def pointer_array(n, updates=100_000, owner=None, frontier=1 << 18):
    """#6: a ring whose flag pointers lie on one device: each update of a flag loads 8 bytes from there, by one lane."""
    owner = n - 1 if owner is None else owner
    made, expected = Traffic(n), empty(n)
    data = made.line("bfs", 0x40, [("bfs.cu", 61)])
    load = made.line("bfs", 0xa0, [("bfs.cu", 72)])
    flag = made.line("bfs", 0xb0, [("bfs.cu", 73)])
    pointers = made.object(owner, 8 * n, at=("bfs.py", 17), name="flag_ptrs", touched=8 * n)
    queues = [made.object(i, frontier * 4, at=("bfs.py", 12), name=f"queue{i}", touched=frontier * 4) for i in range(n)]
    flags = [made.object(i, 4, at=("bfs.py", 15), name=f"flag{i}", touched=4) for i in range(n)]
    for i in range(n):
        after = (i + 1) % n
        made.access("store", i, after, data, frontier * 100, 4, object=queues[after])
        made.access("store", i, after, flag, updates, 4, object=flags[after], warps=updates)
        expected[i][after] += frontier * 400 + updates * 4
        if i != owner:
            made.access("load", i, owner, load, updates, 8, object=pointers, warps=updates)
            expected[i][owner] += updates * 8
    return made, expected


def atomics(n, count=1 << 16, size=4):
    """#7: an atomic counts once, as going to the owner."""
    made, expected = Traffic(n), empty(n)
    line = made.line("count", 0x30, [("count.cu", 7)])
    counters = [made.object(i, count * size, at=("count.py", 2), name=f"counters{i}", touched=count * size) for i in range(n)]
    for i in range(n):
        made.access("atomic", i, (i + 1) % n, line, count, size, object=counters[(i + 1) % n])
        expected[i][(i + 1) % n] += count * size
    return made, expected


def reuse(n, count=4096, size=4):
    """#8: one address, freed and given to another device's memory: two objects with ranges one after the other."""
    made, expected = Traffic(n), empty(n)
    line = made.line("write", 0x20, [("reuse.cu", 14)])
    for turn, owner in enumerate((0, 1)):
        made.object(owner, count * size, at=("reuse.py", 6 + turn), name=f"turn{turn}", touched=count * size)
        made.ranges.append((turn, 0x700000000000, count * size, 1000 + 1000 * turn, 1900 + 1000 * turn))
        made.access("store", 1 - owner, owner, line, count * (turn + 1), size, object=turn)
        expected[1 - owner][owner] += count * (turn + 1) * size
    return made, expected


def copies(n, count=100, each=1 << 22):
    """#10: peer copies with exact payload, and the host's copies beside them."""
    made, expected = Traffic(n, mode="calls"), empty(n)
    for i in range(n):
        made.copy(i, (i + 1) % n, count, each, ns=100_000)
        expected[i][(i + 1) % n] += count * each
    made.copy(None, 0, 10, 1 << 20)
    return made, expected


def bulk(n, blocks=1000):
    """#11: bulk copies count once for each warp: 16 bytes a block."""
    made, expected = Traffic(n), empty(n)
    line = made.line("bulk", 0x10, [("bulk.cu", 5)])
    for i in range(n):
        made.access("bulk store", i, (i + 1) % n, line, blocks, 16, warps=blocks)
        made.access("async copy", i, (i + 1) % n, line, blocks, 16)
        expected[i][(i + 1) % n] += 2 * blocks * 16
    made.ledger.append((0, "access", "not_delivered", "tensor copies", 12))
    return made, expected


ORACLES = [("ring_store", ring_store), ("ring_load", ring_load), ("mixed_warps", mixed_warps), ("halo", halo),
           ("all_to_all", all_to_all), ("pointer_array", pointer_array), ("atomics", atomics), ("reuse", reuse),
           ("copies", copies), ("bulk", bulk)]


# ---- links ----

def through_switches(devices=2, ranks=False, mode="calls"):
    traffic = Traffic(devices, mode=mode, ranks=ranks)
    for i in range(devices):
        traffic.link(i, None, "PCIe", links=16, generation=5, speed=63 * 10**9, peer=None)
        for k in range(i + 1, devices):
            traffic.link(i, k)
    return traffic


def all_reduces(devices=4, each=1 << 20, times=5, protocol="SIMPLE", measured=True, others=()):
    """TIMES all-reduces by a ring, whose kernels store what the formula says to the next GPU."""
    traffic = through_switches(devices, ranks=True, mode="full")
    call = traffic.context(traffic.python("train.py", 50), ("native", "ncclAllReduce"))
    kernel = traffic.context(traffic.python("train.py", 50), ("native", "ncclAllReduce"), ("kernel", "ncclDevKernel"))
    _, function, offset = traffic.line("ncclDevKernel", 0x40, [("nccl.cu", 1)])
    for rank in range(devices):
        for i in range(times):
            start = 10**9 + i * 10**7
            traffic.collective(rank, i, start, start + 10**6, each, protocol=protocol, at=call)
        traffic.transfers.append((call, rank, "collective", "unknown", rank, rank, None, None, None, None, None, None, times, None,
                                  times * each, 0))
        if measured:
            factor = {"SIMPLE": 1, "LL": 2}[protocol]
            traffic.access("store", rank, (rank + 1) % devices, (kernel, function, offset),
                           times * 2 * (devices - 1) * each * factor // devices // 8, 8)
    for operation, at in others:
        traffic.collective(0, 100, 2 * 10**9, 2 * 10**9 + 1000, 64, operation=operation, at=call if at else None)
        traffic.transfers.append((call if at else traffic.context(traffic.python("train.py", 9)), 0, "collective", "unknown", 0, 0,
                                  None, None, None, None, None, None, 1, None, 64, 0))
    return traffic
