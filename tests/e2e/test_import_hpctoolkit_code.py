# SPDX-License-Identifier: Apache-2.0
"""HPCToolkit databases with samples of GPU instructions, and the binaries that these are of (plumb import --binaries).

The database is laid out as hpcprof does without the structure of GPU code: beside a kernel's first instruction, an
unknown function has all instructions that samples met. Two databases of HPCToolkit's own tests were compared with this
while it was written: there, samples by line of ours are the samples by line that hpcstruct found."""
import hashlib
import json
import os
import pathlib
import struct

import pytest
from conftest import ROOT
from importing import Imported
from test_import_hpctoolkit import FUNCTION, INSTRUCTION, LINE, Database, refused

PROGRAMS = ROOT / "tests" / "e2e" / "programs"
CALLED = (PROGRAMS / "called.cubin").read_bytes()
OTHER = (PROGRAMS / "scaled_add.cubin").read_bytes()
PERIOD = 4096
SMOOTHED, DOUBLED, SMOOTH = "_Z8smoothedPKfPfi", "_Z7doubledPfi", "_Z6smoothPKfi$1"
LOADING, WAITING = 0xb0, 0xc0  # in doubled(): LDG R0; FADD R5, R0, R0
GINS = ("GKER (sec)", "GINS", "GINS:STL_ANY", "GINS:STL_GMEM", "GINS:STL_IDEP", "GINS:STL_NONE", "GSAMP:PER (cyc)")


def sections(cubin):
    """{name: (offset in the file, bytes)}"""
    start, = struct.unpack_from("<Q", cubin, 40)
    count, names = struct.unpack_from("<HH", cubin, 60)
    rows = [struct.unpack_from("<II4Q", cubin, start + 64 * i) for i in range(count)]
    text = rows[names][4]
    return {cubin[text + row[0]:cubin.index(b"\0", text + row[0])].decode(): (row[4], row[5]) for row in rows}


PLACES = {name[6:]: place for name, place in sections(CALLED).items() if name.startswith(".text.")}


def gpubin(cubin):
    return f"/somewhere/hpctoolkit-app-measurements/gpubins/{hashlib.md5(cubin).hexdigest()}.gpubin"


def start(name):
    return PLACES[name][0]


class Sampled:
    """main → launch → kernels. at(KERNEL, OFFSET of the file, {metric: samples}) adds an instruction."""

    def __init__(self, *kernels, metrics=GINS, module=gpubin(CALLED), period=PERIOD):
        self.db = Database(*metrics)
        self.module, self.period, self.values = module, period, {}
        main = self.db.at(0, FUNCTION, ("main", "/bin/app", 64, "/src/app.c", 5), relation=1)
        self.line = self.db.at(main, LINE, None, ("/src/app.c", 8))
        self.waiting = self.db.at(self.line, FUNCTION, ("<gpu kernel>",), relation=1)
        self.unknown = self.db.at(self.waiting, FUNCTION, relation=1)
        for kernel in kernels:
            self.kernel(kernel)

    def kernel(self, offset):
        context = self.db.at(self.waiting, INSTRUCTION, None, None, (self.module, offset), relation=1)
        self.values[context, "GKER (sec)"] = 0.001
        if "GSAMP:PER (cyc)" in self.db.metrics and self.period:
            self.values[context, "GSAMP:PER (cyc)"] = float(self.period)
        return context

    def at(self, offset, samples, parent=None, module=None, scale=PERIOD):
        context = self.db.at(parent or self.unknown, INSTRUCTION, None, None, (module or self.module, offset),
                             relation=1)
        for metric, count in samples.items():
            self.values[context, metric] = float(count * scale)
        return context

    def write(self, folder, thread=0):
        self.db.profile({"NODE": (0, 0xabc), "RANK": (0, 0), "THREAD": (thread, thread)}, self.values)
        return self.db.write(folder)


def two_kernels(**options):
    """An instruction of each kernel, and one of the function that the first one calls."""
    made = Sampled(start(SMOOTHED), start(DOUBLED), **options)
    made.at(start(SMOOTHED) + 0x110, {"GINS": 10, "GINS:STL_ANY": 7, "GINS:STL_GMEM": 4, "GINS:STL_IDEP": 3})
    made.at(start(DOUBLED) + 0x80, {"GINS": 5})
    made.at(start(SMOOTH) + 0x20, {"GINS": 100, "GINS:STL_ANY": 90, "GINS:STL_GMEM": 90})
    return made


def binaries(folder, **files):
    """A folder gpubins with the binaries; more FILES by name."""
    inner = folder / "measurements" / "gpubins"
    inner.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (inner / (f"{hashlib.md5(content).hexdigest()}.gpubin" if name == "named" else name)).write_bytes(content)
    return folder / "measurements"


def imported(plumb, tmp_path, sampled, folder=None, notes=0):
    """What was imported, and the notes (so many lines)."""
    database, out = sampled.write(tmp_path / "database"), tmp_path / "out.plumb"
    done = plumb("import", database, "-o", out, *(["--binaries", folder] if folder else []))
    assert done.returncode == 0 and done.stderr.count("\n") == notes, done.stderr
    return Imported(out), done.stderr


def code_samples(made):
    """{(function, offset, reason, issued): count}"""
    rows = made.query("SELECT f.name, s.offset, s.reason, s.issued, s.count FROM code_samples s"
                      " JOIN code_functions f ON f.id = s.code_function")
    assert len({row[:4] for row in rows}) == len(rows)
    return {row[:4]: row[4] for row in rows}


TWO_KERNELS = {
    (SMOOTHED, 0x110, "GMEM", 0): 4, (SMOOTHED, 0x110, "IDEP", 0): 3, (SMOOTHED, 0x110, None, 1): 3,
    (DOUBLED, 0x80, None, 1): 5,
    (SMOOTH, 0x20, "GMEM", 0): 90, (SMOOTH, 0x20, None, 1): 10,
}


def test_samples_and_code(plumb, tmp_path):
    made, _ = imported(plumb, tmp_path, two_kernels(), binaries(tmp_path, named=CALLED))
    assert code_samples(made) == TWO_KERNELS
    assert made.query("SELECT process, kind, path, build_id, hash, bytes FROM code_objects") == \
        [(None, "cubin", gpubin(CALLED), None, hashlib.sha256(CALLED).hexdigest(), len(CALLED))]
    functions = made.query("SELECT name, architecture, is_kernel, bytes FROM code_functions ORDER BY name")
    assert functions == [(SMOOTH, "sm_90", 0, PLACES[SMOOTH][1]), (DOUBLED, "sm_90", 1, PLACES[DOUBLED][1]),
                         (SMOOTHED, "sm_90", 1, PLACES[SMOOTHED][1])]
    assert made.query("SELECT f.name, r.offset, r.name FROM code_references r JOIN code_functions f"
                      " ON f.id = r.code_function WHERE r.name <> f.name") == [(SMOOTHED, 0x110, SMOOTH)]
    assert made.query("SELECT DISTINCT device, launch_ns FROM code_samples") == [(None, None)]
    assert made.ledger("gpu.stall") == {("received", None): 115, ("attributed", None): 115}


def test_lines(plumb, tmp_path):
    """A row holds until the next one; lines are those of called.cu."""
    made, _ = imported(plumb, tmp_path, two_kernels(), binaries(tmp_path, named=CALLED))
    source = (PROGRAMS / "called.cu").read_text().splitlines()
    rows = made.query("SELECT f.name, l.offset, l.depth, l.file, l.line FROM code_lines l"
                      " JOIN code_functions f ON f.id = l.code_function ORDER BY l.id")
    assert {row[2] for row in rows} == {0} and {row[3] for row in rows} <= {"/home/u/called.cu", None}
    for name, function in ((SMOOTH, "smooth"), (SMOOTHED, "smoothed"), (DOUBLED, "doubled")):
        first = next(i for i, line in enumerate(source, 1) if f" {function}(" in line)
        mine = [row for row in rows if row[0] == name]
        end = source.index("}", first) + 1
        assert {row[4] for row in mine} <= set(range(first, end + 1)) and mine[0][1] == 0
        assert len(mine) > 2 or name == SMOOTH and [row[4] for row in mine] == [first + 1]
        assert all(one[4] != two[4] for one, two in zip(mine, mine[1:]))  # nothing is said twice
    # The call of smooth() is written where it is called.
    at = [row for row in rows if row[0] == SMOOTHED and row[1] <= 0x110][-1]
    assert "smooth(x, i)" in source[at[4] - 1]


def test_kernels(plumb, tmp_path):
    """Kernels have their names from the code, and the instructions of a kernel are under it. What is in a function
    that kernels call is not under one of several kernels."""
    made, _ = imported(plumb, tmp_path, two_kernels(), binaries(tmp_path, named=CALLED))
    before = ("main", "app.c:8")
    assert made.paths("gpu.time") == {(*before, "smoothed(float const*, float*, int)"): 1_000_000,
                                      (*before, "doubled(float*, int)"): 1_000_000}
    here = pathlib.Path(gpubin(CALLED)).name
    assert made.paths("GINS") == {
        (*before, "smoothed(float const*, float*, int)", f"{here}+0x{start(SMOOTHED) + 0x110:x}"): 10 * PERIOD,
        (*before, "doubled(float*, int)", f"{here}+0x{start(DOUBLED) + 0x80:x}"): 5 * PERIOD,
        (*before, "?", f"{here}+0x{start(SMOOTH) + 0x20:x}"): 100 * PERIOD}
    contexts = dict(made.query("SELECT f.name, s.context FROM code_samples s"
                               " JOIN code_functions f ON f.id = s.code_function"))
    assert contexts.pop(SMOOTH) is None
    assert {name: made.profile.node(context).symbol for name, context in contexts.items()} == \
        {SMOOTHED: SMOOTHED, DOUBLED: DOUBLED}
    kernel = made.profile.node(contexts[SMOOTHED])
    assert (kernel.source_file, kernel.source_line) == ("/home/u/called.cu", 8)


def test_one_kernel(plumb, tmp_path):
    """Where only one kernel was launched, all instructions are its own; also without the binary."""
    def sampled():
        made = Sampled(start(SMOOTHED))
        made.at(start(SMOOTH) + 0x20, {"GINS": 2})
        return made
    made, _ = imported(plumb, tmp_path, sampled(), binaries(tmp_path, named=CALLED))
    (path, value), = made.paths("GINS").items()
    assert path[2] == "smoothed(float const*, float*, int)" and value == 2 * PERIOD
    made, _ = imported(plumb, tmp_path, sampled(), notes=1)
    (path, value), = made.paths("GINS").items()
    assert path[2] == f"{pathlib.Path(gpubin(CALLED)).name}+0x{start(SMOOTHED):x}" and value == 2 * PERIOD


def test_content_decides(plumb, tmp_path):
    """Files have other names than hpcrun gave them, functions have other names than in the code, and a file has the
    right name but another content. The binary with the right content counts, and its names."""
    md5 = hashlib.md5(CALLED).hexdigest()
    folder = binaries(tmp_path, **{"aaa": OTHER, "some.cubin": CALLED, f"{md5}.gpubin": OTHER})
    made = Sampled()
    kernel = made.db.at(made.waiting, FUNCTION, ("doubled", made.module, start(SMOOTHED)), relation=1)
    made.at(start(SMOOTHED) + 0x10, {"GINS": 3}, parent=kernel)
    made.values[kernel, "GSAMP:PER (cyc)"] = float(PERIOD)
    made, _ = imported(plumb, tmp_path, made, folder)
    assert code_samples(made) == {(SMOOTHED, 0x10, None, 1): 3}
    assert [path[2] for path in made.paths("GINS")] == ["smoothed(float const*, float*, int)"]


def test_another_content(plumb, tmp_path):
    """A file that is named like the binary, but is another one, is refused in one line; the rest is kept."""
    md5 = hashlib.md5(CALLED).hexdigest()
    folder = binaries(tmp_path, **{f"{md5}.gpubin": OTHER})
    made, notes = imported(plumb, tmp_path, two_kernels(), folder, notes=1)
    assert f"{md5}.gpubin: its content is not the one that its name says (its MD5 is " \
           f"{hashlib.md5(OTHER).hexdigest()})" in notes and "again" in notes
    assert code_samples(made) == {} and made.total("GINS") == 115 * PERIOD
    assert made.ledger("gpu.stall")["unknown_module", None] == 115


def test_missing_binaries(plumb, tmp_path):
    made = two_kernels()
    made.at(start(SMOOTHED) + 0x110, {"GINS": 7}, module=gpubin(OTHER))
    made, notes = imported(plumb, tmp_path, made, binaries(tmp_path, named=CALLED), notes=1)
    assert f"1 of 2 GPU binaries that {tmp_path / 'database'} names, such as {pathlib.Path(gpubin(OTHER)).name};" in notes
    assert code_samples(made) == TWO_KERNELS
    assert made.ledger("gpu.stall")["unknown_module", None] == 7


def test_without_binaries(plumb, tmp_path):
    """Samples are metrics of contexts, and one line says how to give the code."""
    made, notes = imported(plumb, tmp_path, two_kernels(), notes=1)
    assert "115 samples of GPU instructions" in notes and "--binaries" in notes and "gpubins" in notes
    assert code_samples(made) == {} and not made.query("SELECT * FROM code_objects")
    assert made.total("GINS:STL_GMEM") == 94 * PERIOD
    assert made.ledger("gpu.stall")["unknown_module", None] == 115


def test_instructions_left_out(plumb, tmp_path):
    """With the structure of GPU code, hpcprof leaves instructions out of the tree: samples have lines only."""
    made = Sampled()
    kernel = made.db.at(made.waiting, FUNCTION, ("smoothed", made.module, start(SMOOTHED)), relation=1)
    line = made.db.at(kernel, LINE, None, ("/home/u/called.cu", 9))
    made.db.left_out = {made.at(start(SMOOTHED) + 0x10, {"GINS": 3}, parent=line)}
    made.values[kernel, "GSAMP:PER (cyc)"] = float(PERIOD)
    made, notes = imported(plumb, tmp_path, made, binaries(tmp_path, named=CALLED), notes=1)
    assert "3 samples of GPU code have a line, but no instruction" in notes and "--ignore-structs" in notes
    assert made.ledger("gpu.stall")["unused", "have a line, but no instruction"] == 3
    assert code_samples(made) == {} and made.paths("GINS") == \
        {("main", "app.c:8", "smoothed(float const*, float*, int)", "called.cu:9"): 3 * PERIOD}


@pytest.mark.parametrize("offset", [0, 64, len(CALLED), 1 << 40, (1 << 64) - 16])
def test_outside(plumb, tmp_path, offset):
    made = two_kernels()
    made.at(offset, {"GINS": 6, "GINS:STL_GMEM": 6})
    made, notes = imported(plumb, tmp_path, made, binaries(tmp_path, named=CALLED), notes=1)
    assert "6 samples are outside the functions of their GPU binaries" in notes
    assert code_samples(made) == TWO_KERNELS
    assert made.ledger("gpu.stall")["outside_code", None] == 6


def test_last_and_first_instruction(plumb, tmp_path):
    made = Sampled(start(DOUBLED))
    made.at(start(DOUBLED), {"GINS": 1})
    made.at(start(DOUBLED) + PLACES[DOUBLED][1] - 16, {"GINS": 2})
    made, _ = imported(plumb, tmp_path, made, binaries(tmp_path, named=CALLED))
    assert code_samples(made) == {(DOUBLED, 0, None, 1): 1, (DOUBLED, PLACES[DOUBLED][1] - 16, None, 1): 2}


@pytest.mark.parametrize("period, counts", [
    (PERIOD, (6, 9)), (2 * PERIOD, (3, 4.5)),  # the file says it; the nearest whole number counts
    (0, (6, 9)),  # no file says it: the largest power of two that all values are multiples of
])
def test_period(plumb, tmp_path, period, counts):
    made = Sampled(start(SMOOTHED), period=period)
    for i, count in enumerate((6, 9)):
        made.at(start(SMOOTHED) + 16 * i, {"GINS": count})
    made, _ = imported(plumb, tmp_path, made, binaries(tmp_path, named=CALLED))
    found = code_samples(made)
    assert all(abs(found[SMOOTHED, 16 * i, None, 1] - count) <= 0.5 for i, count in enumerate(counts))


def test_current_names(plumb, tmp_path):
    """GCYCLES: samples in which the warp issued, and hidden stalls, have metrics of their own. GINS is not theirs."""
    metrics = ("GKER (s)", "GCYCLES", "GCYCLES:ISU", "GCYCLES:STL", "GCYCLES:STL:GMEM", "GCYCLES:STL:HID", "GINS",
               "GINS:STL_ANY", "GSAMP:PER (cyc)")
    made = Sampled(metrics=metrics)
    made.db.metrics = metrics
    kernel = made.db.at(made.waiting, INSTRUCTION, None, None, (made.module, start(SMOOTHED)), relation=1)
    made.values[kernel, "GSAMP:PER (cyc)"] = float(PERIOD)
    made.at(start(SMOOTHED) + 16, {"GCYCLES": 20, "GCYCLES:ISU": 3, "GCYCLES:STL": 11, "GCYCLES:STL:GMEM": 11,
                                   "GCYCLES:STL:HID": 5, "GINS": 1000})
    made, _ = imported(plumb, tmp_path, made, binaries(tmp_path, named=CALLED))
    assert code_samples(made) == {(SMOOTHED, 16, "GMEM", 0): 11, (SMOOTHED, 16, "HID", 1): 5,
                                  (SMOOTHED, 16, "ISU", 1): 3, (SMOOTHED, 16, None, 1): 1}


def test_threads_add_up(plumb, tmp_path):
    """Samples of several threads of a process at one place are one row."""
    made = two_kernels()
    made.db.profile({"NODE": (0, 0xabc), "RANK": (0, 0), "THREAD": (7, 7)}, made.values)
    made, _ = imported(plumb, tmp_path, made, binaries(tmp_path, named=CALLED))
    assert code_samples(made) == {key: 2 * count for key, count in TWO_KERNELS.items()}


def test_several_databases(plumb, tmp_path):
    """Ranks share the code, and have samples of their own."""
    folders = [two_kernels().write(tmp_path / name) for name in ("a", "b")]
    done = plumb("import", *folders, "--binaries", binaries(tmp_path, named=CALLED), "-o", tmp_path / "out.plumb")
    assert done.returncode == 0 and not done.stderr
    made = Imported(tmp_path / "out.plumb")
    assert len(made.query("SELECT * FROM code_objects")) == 1 and len(made.query("SELECT * FROM code_functions")) == 3
    assert len(made.query("SELECT * FROM code_lines")) == len(set(made.query(
        "SELECT code_function, offset, depth FROM code_lines")))
    assert made.query("SELECT process, SUM(count) FROM code_samples GROUP BY process") == [(0, 115), (1, 115)]


def test_other_code(plumb, tmp_path):
    """A binary that is no code of NVIDIA: one line, and its samples have no code."""
    content = b"\x7fELF\2\1\1" + bytes(100)
    made = Sampled(module=gpubin(content))
    made.at(16, {"GINS": 3})
    made, notes = imported(plumb, tmp_path, made, binaries(tmp_path, named=content), notes=1)
    assert "it is no code for GPUs of NVIDIA" in notes
    assert made.ledger("gpu.stall")["unreadable_code", None] == 3


@pytest.mark.parametrize("change", ["cut", "flip"])
def test_hostile_binaries(plumb, tmp_path, change):
    """Whatever is in a binary that has the right MD5: no crash, and all samples are somewhere."""
    for at in range(0, len(CALLED), 397):
        content = CALLED[:at] if change == "cut" else bytearray(CALLED)
        if change == "flip":
            content[at] ^= 0xff
            content = bytes(content)
        made = two_kernels(module=gpubin(content))
        folder = binaries(tmp_path / str(at), named=content)
        database, out = made.write(tmp_path / "database"), tmp_path / "out.plumb"
        done = plumb("import", database, "-o", out, "--binaries", folder)
        assert done.returncode == 0 and done.stderr.count("\n") <= 2, (at, done.stderr)
        ledger = Imported(out).ledger("gpu.stall")
        assert ledger["received", None] == 115
        lost = sum(count for (fate, _), count in ledger.items() if fate not in ("received", "attributed"))
        assert sum(code_samples(Imported(out)).values()) + lost == 115, at


def test_folder(plumb, tmp_path):
    """Links, pipes, empty files and deep folders are no obstacle; a file or nothing is no folder."""
    folder = binaries(tmp_path, named=CALLED, empty=b"", text=b"no binary")
    inner = folder / "gpubins"
    os.mkfifo(inner / ("0" * 32 + ".gpubin"))
    (inner / "loop").symlink_to(folder)
    used = folder / "gpubins-used"
    used.mkdir()
    (used / "link").symlink_to(next(inner.glob("*.gpubin")))
    made, _ = imported(plumb, tmp_path, two_kernels(), folder)
    assert code_samples(made) == TWO_KERNELS
    database = tmp_path / "database"
    done = plumb("import", database, "-o", tmp_path / "no.plumb", "--binaries", database / "meta.db")
    assert done.returncode == 2 and "meta.db: is not a folder" in done.stderr and not (tmp_path / "no.plumb").exists()
    done = plumb("import", database, "-o", tmp_path / "no.plumb", "--binaries", tmp_path / "nothing")
    assert done.returncode == 5 and "nothing: cannot be read" in done.stderr


def test_useless_option(plumb, tmp_path):
    """A trace without GPU code of this kind."""
    path = tmp_path / "trace.folded"
    path.write_text("a;b 3\n")
    done = plumb("import", path, "-o", tmp_path / "out.plumb", "--binaries", binaries(tmp_path, named=CALLED))
    assert done.returncode == 0 and done.stderr.count("\n") == 1 and "HPCToolkit" in done.stderr


def test_refused(plumb, tmp_path):
    """A module's path that is not in the file."""
    made = two_kernels()
    folder = made.write(tmp_path / "database")
    data = bytearray((folder / "meta.db").read_bytes())
    struct.pack_into("<Q", data, made.db.modules[made.module] + 8, 1 << 50)
    (folder / "meta.db").write_bytes(data)
    assert "meta.db: byte" in refused(plumb, folder, tmp_path / "out.plumb")


def test_why(plumb, tmp_path):
    """plumb why answers with HPCToolkit's words: a load's user waits for the load. What issued waited for nothing."""
    made = Sampled(start(DOUBLED))
    made.at(start(DOUBLED) + WAITING, {"GINS": 50, "GINS:STL_ANY": 40, "GINS:STL_GMEM": 40})
    made.at(start(DOUBLED) + LOADING, {"GINS": 10})
    imported(plumb, tmp_path, made, binaries(tmp_path, named=CALLED))
    done = plumb("why", tmp_path / "out.plumb", "--json")
    assert done.returncode == 0, done.stderr
    kernel, = json.loads(done.stdout)["kernels"]
    assert kernel["samples"] == 60
    stall, = kernel["stalls"]
    assert (stall["offset"], stall["reason"], stall["samples"], stall["hidden"]) == (WAITING, "GMEM", 40, 0)
    cause, = stall["causes"]
    assert (cause["offset"], cause["share"], cause["file"], cause["line"]) == (LOADING, 1.0, "/home/u/called.cu", 17)
