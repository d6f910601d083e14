# SPDX-License-Identifier: Apache-2.0
"""Databases of HPCToolkit, which a small writer here makes after doc/FORMATS.md of its version 4."""
import struct
import sys

import pytest

from importing import Imported

FUNCTION, LOOP, LINE, INSTRUCTION = range(4)
PLACES = ["SUMMARY", "NODE", "RANK", "THREAD", "GPUDEVICE", "GPUCONTEXT", "GPUSTREAM", "CORE"]
SCOPES = {"point": 1, "function": 3, "lex_aware": 0, "execution": 2}


class File:
    """Bytes with things at offsets that are multiples of 8."""

    def __init__(self, name, sections, footer):
        self.data = bytearray(b"HPCTOOLKIT" + name + bytes([4, 0]) + bytes(16 * sections))
        self.footer = footer

    def put(self, data, align=8):
        self.data += bytes(-len(self.data) % align)
        self.data += data
        return len(self.data) - len(data)

    def text(self, text):
        return self.put(text.encode() + b"\0", 1)

    def section(self, number, data):
        struct.pack_into("<QQ", self.data, 16 + 16 * number, len(data), self.put(data))

    def bytes(self):
        return bytes(self.data) + self.footer


class Database:
    """Contexts are made by `at(parent, …)`, values are set by `profile`."""

    def __init__(self, *metrics, scopes=("point", "function", "lex_aware", "execution")):
        self.meta = File(b"meta", 8, b"_meta.db")
        self.profile_file = File(b"prof", 2, b"_prof.db")
        self.trace_file = File(b"trce", 1, b"trace.db")
        self.metrics, self.scopes = metrics, scopes
        self.functions, self.files, self.modules = {}, {}, {}
        self.contexts, self.children = {}, {0: []}
        self.profiles = [(struct.pack("<QQIIQQI4x", 0, 0, 0, 0, 0, 0, 1))]
        self.traces = []
        self.left_out = set()

    def number(self, metric, scope):
        return self.metrics.index(metric) * len(self.scopes) + self.scopes.index(scope)

    def path(self, table, path):
        if path not in table:
            table[path] = self.meta.put(struct.pack("<IIQ", 0, 0, self.meta.text(path)))
        return table[path]

    def function(self, name, module=None, offset=0, file=None, line=0):
        key = (name, module, offset, file, line)
        if key not in self.functions:
            self.functions[key] = self.meta.put(struct.pack(
                "<QQQQII", self.meta.text(name) if name else 0,
                self.path(self.modules, module) if module else 0, offset,
                self.path(self.files, file) if file else 0, line, 0))
        return self.functions[key]

    def at(self, parent, lexical, function=None, source=None, point=None, relation=0):
        """A context under PARENT (0: an entry point, whose children are outermost)."""
        flags, flex = 0, b""
        if function:
            flags, flex = 1, struct.pack("<Q", self.function(*function))
        if source:
            flags, flex = flags | 2, flex + struct.pack("<QII", self.path(self.files, source[0]), source[1], 0)
        if point:
            flags, flex = flags | 4, flex + struct.pack("<QQ", self.path(self.modules, point[0]), point[1])
        number = len(self.contexts) + 2  # 1 is the entry point
        self.contexts[number] = (parent, flags, relation, lexical, flex)
        self.children[number] = []
        self.children[parent].append(number)
        return number

    def above(self, context):
        while context:
            yield context
            context = self.contexts[context][0] if context > 1 else 0

    def profile(self, ids, values):
        """IDS: {place: (logical, physical)}; VALUES: {(context, metric): own value}; returns the profile's number."""
        sums = {}
        for (context, metric), value in values.items():
            for scope in self.scopes:
                over = [*self.above(context), 1, 0] if scope == "execution" else [context]
                for one in dict.fromkeys(over):
                    of = sums.setdefault(one, {})
                    of[self.number(metric, scope)] = of.get(self.number(metric, scope), 0.0) + value
        packed, index = b"", b""
        for context in sorted(sums):
            index += struct.pack("<IQ", context, len(packed) // 10)
            packed += b"".join(struct.pack("<Hd", *pair) for pair in sorted(sums[context].items()))
        tuple_at = self.profile_file.put(struct.pack("<H6x", len(ids)) + b"".join(
            struct.pack("<BxHIQ", PLACES.index(place), 1, *both) for place, both in ids.items()))
        self.profiles.append(struct.pack("<QQIIQQI4x", len(packed) // 10, self.profile_file.put(packed), len(sums), 0,
                                         self.profile_file.put(index, 4), tuple_at, 0))
        return len(self.profiles) - 1

    def trace(self, profile, *moments):
        at = self.trace_file.put(b"".join(struct.pack("<QI", *one) for one in moments))
        self.traces.append(struct.pack("<IIQQ", profile, 0, at, at + 12 * len(moments)))

    def write_contexts(self, parent):
        """The contexts under PARENT side by side; (bytes, offset) of them."""
        out = b""
        for number in self.children[parent]:
            if number in self.left_out:
                continue
            _, flags, relation, lexical, flex = self.contexts[number]
            size, at = self.write_contexts(number)
            out += struct.pack("<QQIBBBBH6x", size, at, number, flags, relation, lexical, len(flex) // 8, 0) + flex
        return len(out), self.meta.put(out) if out else 0

    def write(self, folder):
        folder.mkdir(exist_ok=True)
        meta = self.meta
        meta.section(0, struct.pack("<QQ", meta.text("our run"), 0))
        meta.section(1, struct.pack("<QB7x", meta.put(b"".join(
            struct.pack("<Q", at) for at in [meta.text(name) for name in PLACES])), len(PLACES)))
        scopes = {name: meta.put(struct.pack("<QBB6x", meta.text(name), SCOPES[name], 0)) for name in self.scopes}
        metrics = []
        for metric in self.metrics:
            instances = b"".join(struct.pack("<QH6x", scopes[scope], self.number(metric, scope))
                                 for scope in self.scopes)
            metrics.append(struct.pack("<QQQHH4x", meta.text(metric), meta.put(instances), 0, len(self.scopes), 0))
        meta.section(2, struct.pack("<QIBBBxQHB5x", meta.put(b"".join(metrics)), len(metrics), 32, 16, 24, 0, 0, 16))
        size, at = self.write_contexts(0)
        entry = meta.put(struct.pack("<QQIH2xQ", size, at, 1, 1, meta.text("main thread")))
        meta.section(3, struct.pack("<QHB5x", entry, 1, 32))
        self.profile_file.section(0, struct.pack("<QIB3x", self.profile_file.put(b"".join(self.profiles)),
                                                 len(self.profiles), 48))
        self.trace_file.section(0, struct.pack("<QIB3xQQ", self.trace_file.put(b"".join(self.traces)),
                                               len(self.traces), 24, 0, 0))
        for name, file in (("meta", meta), ("profile", self.profile_file), ("trace", self.trace_file)):
            (folder / f"{name}.db").write_bytes(file.bytes())
        return folder


def gpu_database(**options):
    """main → loop → line → launch → kernel (a line with PC samples at two instructions), and a copy."""
    db = Database("GKER (sec)", "GXCOPY (sec)", "GXCOPY:H2D (B)", "GKER:COUNT", "GINS", "GSAMP:PER (cyc)",
                  "CPUTIME (sec)", "GKER:THR_REG_ACUMU", "REALTIME (sec)", **options)
    main = db.at(0, FUNCTION, ("main", "/bin/app", 64, "/src/app.c", 5), relation=1)
    loop = db.at(main, LOOP, None, ("/src/app.c", 7), ("/bin/app", 0x40))
    line = db.at(loop, LINE, None, ("/src/app.c", 8))
    launch = db.at(line, FUNCTION, (None, "/lib/libcudart.so", 0x100), relation=1)
    waiting = db.at(launch, FUNCTION, ("<gpu kernel>",), relation=1)
    kernel = db.at(waiting, FUNCTION, ("gemm", "/cubin/1.gpubin", 0, "/src/k.cu", 2), relation=1)
    inside = db.at(kernel, LINE, None, ("/src/k.cu", 3))
    device = db.at(inside, FUNCTION, ("helper", "/cubin/1.gpubin"), relation=1)
    inlined = db.at(inside, FUNCTION, ("tiny", "/cubin/1.gpubin"), relation=2)
    first = db.at(inside, INSTRUCTION, None, None, ("/cubin/1.gpubin", 0x10))
    second = db.at(inside, INSTRUCTION, None, None, ("/cubin/1.gpubin", 0x20))
    copy = db.at(line, FUNCTION, ("<gpu copyin>",), relation=1)
    nameless = db.at(db.at(launch, FUNCTION, ("<gpu kernel>",), relation=1), INSTRUCTION, None, None,
                     ("/cubin/2.gpubin", 0x2e00), relation=1)
    thread = db.profile({"NODE": (0, 0xabc), "RANK": (3, 3), "THREAD": (0, 0)}, {
        (kernel, "GKER (sec)"): 0.000_029_795, (kernel, "GKER:COUNT"): 2.0, (kernel, "GKER:THR_REG_ACUMU"): 64.0,
        (nameless, "GKER (sec)"): 0.000_001, (copy, "GXCOPY (sec)"): 0.000_000_3, (copy, "GXCOPY:H2D (B)"): 4096.0,
        (first, "GINS"): 100.0, (second, "GINS"): 23.0, (device, "GINS"): 7.0, (inlined, "GINS"): 1.0,
        (kernel, "GSAMP:PER (cyc)"): 4096.0, (line, "CPUTIME (sec)"): 0.005, (main, "CPUTIME (sec)"): 0.25,
        (main, "REALTIME (sec)"): 1.5})
    stream = db.profile({"NODE": (0, 0xabc), "RANK": (3, 3), "GPUDEVICE": (1, 1), "GPUCONTEXT": (0, 1),
                         "GPUSTREAM": (7, 7)}, {})
    db.trace(stream, (1000, kernel), (15_000, 0), (20_000, kernel), (35_795, copy), (36_095, nameless), (37_095, 0))
    db.trace(thread, (0, main), (500, line))
    db.left_out = {first, second}
    return db


def imported(plumb, tmp_path, db):
    out = tmp_path / "out.plumb"
    done = plumb("import", db.write(tmp_path / "database"), "-o", out)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return Imported(out)


def refused(plumb, folder, out):
    done = plumb("import", folder, "-o", out)
    assert done.returncode == 2, (done.returncode, done.stderr)
    assert done.stderr.count("\n") == 1 and not out.exists()
    return done.stderr


BEFORE = ("main", "loop", "app.c:8")
LAUNCH = (*BEFORE, "libcudart.so+0x100")


def check_values(made):
    assert made.paths("gpu.time") == {(*LAUNCH, "gemm"): 29_795, (*LAUNCH, "2.gpubin+0x2e00"): 1000}
    assert made.paths("gpu.copy_time") == {(*BEFORE, "copy host→device"): 300}
    assert made.paths("gpu.copy_bytes") == {(*BEFORE, "copy host→device"): 4096}
    assert made.paths("cpu.time") == {("main",): 250_000_000, BEFORE: 5_000_000}
    assert made.total("gpu.launches") == 2
    assert made.total("REALTIME") == 1_500_000_000
    assert {name: made.profile.metrics[name].unit for name in ("GINS", "GSAMP:PER", "REALTIME")} == \
        {"GINS": "count", "GSAMP:PER": "cycles", "REALTIME": "ns"}


def test_database(plumb, tmp_path):
    made = imported(plumb, tmp_path, gpu_database())
    check_values(made)
    inside = (*LAUNCH, "gemm", "k.cu:3")
    # The instructions are not in the tree: what was measured at them is the line's.
    assert made.paths("GINS") == {inside: 123, (*inside, "helper"): 7, (*inside, "tiny"): 1}
    kinds = {node.name: node.kind for node in made.profile.walk()}
    assert kinds == {**kinds, "main": "native", "loop": "loop", "app.c:8": "line", "gemm": "kernel",
                     "2.gpubin+0x2e00": "kernel", "helper": "device_function", "tiny": "inline",
                     "copy host→device": "copy"}
    main, = made.profile.match("main")
    assert (main.file, main.source_file, main.source_line) == ("/bin/app", "/src/app.c", 5)
    device, = made.report()["devices"]
    assert device["ordinal"] == 1
    assert device["kernels"] == {"count": 3, "ns": 14_000 + 15_795 + 1000}
    assert device["copies"] == {"count": 1, "ns": 300, "bytes": None}
    assert (device["busy_ns"], device["span_ns"]) == (31_095, 36_095)
    process, = made.profile.processes
    assert (process.rank, process.host, process.pid) == (3, "abc", None)
    assert len(list(made.profile.spans())) == 4
    assert made.profile.run.command == "our run"


@pytest.mark.parametrize("second, byte", [("s", "b"), ("sec", "B"), ("s", "B")])
def test_units_of_all_versions(plumb, tmp_path, second, byte):
    """Since 2023 units are "s" and "b"; the manual writes "B"."""
    names = [f"GKER ({second})", f"GXCOPY ({second})", f"GXCOPY:D2H ({byte})", f"GMSET ({second})",
             f"GMSET:DEV ({byte})", f"GICOPY ({second})", f"GICOPY:H2D ({byte})", f"GSYNC ({second})",
             f"GSYNC:STR ({second})", f"GMEM ({second})", f"GMEM:DEV ({byte})", "CPUTIME (usec)"]
    db = Database(*names)
    main = db.at(0, FUNCTION, ("main",), relation=1)
    kernel = db.at(db.at(main, FUNCTION, ("<gpu kernel>",), relation=1), FUNCTION, ("gemm",), relation=1)
    values = [0.873, 0.5, 4096.0, 0.25, 64.0, 0.125, 8.0, 1.5, 1.25, 0.75, 1024.0, 250.0]
    db.profile({"THREAD": (0, 0)}, {(kernel if name.startswith("GKER") else main, name): value
                                    for name, value in zip(names, values)})
    made = imported(plumb, tmp_path, db)
    assert made.paths("gpu.time") == {("main", "gemm"): 873_000_000}
    assert [made.total(name) for name in ("gpu.copy_time", "gpu.copy_bytes", "host.wait", "GSYNC:STR", "GMEM",
                                          "GMEM:DEV", "cpu.time")] == \
        [875_000_000, 4168, 1_500_000_000, 1_250_000_000, 750_000_000, 1024, 250_000]
    assert {name: made.profile.metrics[name].unit for name in ("GSYNC:STR", "GMEM", "GMEM:DEV")} == \
        {"GSYNC:STR": "ns", "GMEM": "ns", "GMEM:DEV": "byte"}
    assert "gemm" in plumb("report", tmp_path / "out.plumb").stdout


def test_metrics_without_a_counterpart(plumb, tmp_path):
    """They keep their names and values: fractions are no whole numbers, and a unit that is not known stays in the
    name. What says nothing by itself is counted."""
    db = Database("GKER (fortnight)", "GKER:OCC_THR", "GCYCLES:STL:MEM", "GSAMP:PER (cyc)", "GGMEM:ST (b)",
                  "GGMEM:ST (L2T)", "huge", "GKER:STMEM_ACUMU (b)")
    main = db.at(0, FUNCTION, ("main",), relation=1)
    inner = db.at(main, FUNCTION, ("inner",), relation=1)
    db.profile({"THREAD": (0, 0)}, {
        (main, "GKER (fortnight)"): 0.873, (inner, "GKER (fortnight)"): 1.25, (inner, "GKER:OCC_THR"): 0.25,
        (inner, "GCYCLES:STL:MEM"): 77.0, (inner, "GSAMP:PER (cyc)"): 0.5, (inner, "GGMEM:ST (b)"): 32.0,
        (inner, "GGMEM:ST (L2T)"): 4.0, (inner, "huge"): 5e12 + 0.25, (inner, "GKER:STMEM_ACUMU (b)"): 9.0})
    made = imported(plumb, tmp_path, db)
    assert made.paths("GKER (fortnight) [1e-6]") == {("main",): 873_000, ("main", "inner"): 1_250_000}
    assert made.paths("gpu.time") == {}
    wanted = {"GKER:OCC_THR [1e-6]": (250_000, "1e-6 count"), "GCYCLES:STL:MEM": (77, "count"),
              "GSAMP:PER [1e-6]": (500_000, "1e-6 cycles"), "GGMEM:ST": (32, "byte"),
              "GGMEM:ST (L2T)": (4, "L2T"), "huge": (5_000_000_000_000, "count")}
    assert {name: (made.total(name), made.profile.metrics[name].unit) for name in wanted} == wanted
    assert made.ledger()["unused", "sums for ratios (metrics *_ACUMU)"] >= 1


def test_instructions(plumb, tmp_path):
    """A tree with its instructions, and a database without traces."""
    db = gpu_database()
    db.left_out = set()
    folder = db.write(tmp_path / "database")
    (folder / "trace.db").unlink()
    assert plumb("import", folder, "-o", tmp_path / "out.plumb").returncode == 0
    made = Imported(tmp_path / "out.plumb")
    check_values(made)
    assert made.paths("GINS")[(*LAUNCH, "gemm", "k.cu:3", "1.gpubin+0x10")] == 100
    assert not list(made.profile.spans())


def test_as_measured(plumb, tmp_path):
    """Without inclusive values those as measured are taken."""
    made = imported(plumb, tmp_path, gpu_database(scopes=("point", "function")))
    check_values(made)
    assert ("repeated", "values of instructions, counted at their lines") in made.ledger()


def test_other_folders(plumb, tmp_path):
    """A folder that is none of HPCToolkit's, and one without its values."""
    folder = gpu_database().write(tmp_path / "database")
    (tmp_path / "empty").mkdir()
    assert "a folder, but not an HPCToolkit database" in refused(plumb, tmp_path / "empty", tmp_path / "out.plumb")
    (folder / "profile.db").unlink()
    done = plumb("import", folder, "-o", tmp_path / "out.plumb")
    assert done.returncode == 5 and "profile.db: cannot be read: No such file" in done.stderr


@pytest.mark.parametrize("name", ["meta", "profile", "trace"])
def test_cut(plumb, tmp_path, name):
    """Each file cut at every eighth byte and around its end: taken, or one line that names it."""
    folder = gpu_database().write(tmp_path / "database")
    path, out = folder / f"{name}.db", tmp_path / "out.plumb"
    data = path.read_bytes()
    seen = 0
    for size in [*range(0, len(data) - 16, 8), *range(len(data) - 16, len(data))]:
        path.write_bytes(data[:size])
        done = plumb("import", folder, "-o", out)
        assert done.returncode in (0, 2), (size, done.stderr)
        if done.returncode:
            assert done.stderr.count("\n") == 1 and not out.exists()
            assert f"{name}.db" in done.stderr or size < 14
            seen += 1
        else:
            out.unlink()
    assert seen > 20


@pytest.mark.parametrize("name", ["meta", "profile", "trace"])
def test_every_byte_wrong(plumb, tmp_path, name):
    """Whatever stands in a file: no crash, and no profile with an error."""
    folder = gpu_database().write(tmp_path / "database")
    path, out = folder / f"{name}.db", tmp_path / "out.plumb"
    data = path.read_bytes()
    for at in range(0, len(data), 11):
        changed = bytearray(data)
        changed[at] ^= 0xff
        path.write_bytes(changed)
        done = plumb("import", folder, "-o", out)
        assert done.returncode in (0, 2, 3), (at, done.returncode, done.stderr)
        assert (done.returncode == 0) == out.exists()
        out.unlink(missing_ok=True)


def test_loops(plumb, tmp_path):
    """A context whose children are itself."""
    db = Database("CPUTIME (sec)")
    main = db.at(0, FUNCTION, ("main",), relation=1)
    db.profile({"THREAD": (0, 0)}, {(main, "CPUTIME (sec)"): 1.0})
    folder = db.write(tmp_path / "database")
    data = bytearray((folder / "meta.db").read_bytes())
    at = data.index(struct.pack("<QQIBB", 0, 0, main, 1, 1))
    struct.pack_into("<QQ", data, at, 40, at)
    (folder / "meta.db").write_bytes(data)
    assert "two contexts have the same number" in refused(plumb, folder, tmp_path / "out.plumb")


def test_other_versions(plumb, tmp_path):
    folder = gpu_database().write(tmp_path / "database")
    data = bytearray((folder / "meta.db").read_bytes())
    data[14] = 3
    (folder / "meta.db").write_bytes(data)
    assert "version 3" in refused(plumb, folder, tmp_path / "out.plumb")


def test_limits(plumb, tmp_path):
    """Numbers that are none, and a tree deeper than is kept."""
    db = Database("CPUTIME (sec)", "cycles")
    context = 0
    for depth in range(5000):
        context = db.at(context, FUNCTION, (f"f{depth % 3}",), relation=1)
    db.profile({"THREAD": (0, 0)}, {(context, "CPUTIME (sec)"): 1.0})
    db.profile({"THREAD": (1, 1)}, {(2, "CPUTIME (sec)"): float("nan"), (2, "cycles"): 1e300})
    db.profile({"THREAD": (2, 2)}, {(2, "CPUTIME (sec)"): float("-inf")})
    sys.setrecursionlimit(20_000)
    made = imported(plumb, tmp_path, db)
    assert made.total("cpu.time") == 1_000_000_000
    assert max(node.depth for node in made.profile.walk()) == 4096
    assert made.ledger()["too_deep", None] == 904
    assert made.ledger()["unused", "values that are not numbers"] == 6
