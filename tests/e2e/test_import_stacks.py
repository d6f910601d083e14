# SPDX-License-Identifier: Apache-2.0
"""pprof and folded stacks: sums by stacks, without times."""
import gzip
import os
import re
import threading

import pytest

from importing import TRACES, cut_everywhere, imported, message, refused
from test_import_xplane import GPU, HOST, space

MISC = TRACES / "misc"


class Pprof:
    """A pprof profile, written sample by sample."""

    def __init__(self, *types):
        self.texts, self.samples, self.functions, self.locations = [""], [], {}, {}
        self.types = [message((1, self.text(name)), (2, self.text(unit))) for name, unit in types]

    def text(self, text):
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text)

    def location(self, *lines):
        """LINES: (function, file, line), the innermost first; or an address."""
        if lines not in self.locations:
            for function, file, _ in (lines if isinstance(lines[0], tuple) else ()):
                self.functions.setdefault((function, file), len(self.functions) + 1)
            self.locations[lines] = len(self.locations) + 1
        return self.locations[lines]

    def sample(self, stack, values, labels=(), packed=True):
        numbers = [*((1, one) for one in stack), *((2, one) for one in values)]
        if packed:
            numbers = [(1, list(stack)), (2, list(values))]
        self.samples.append(message(*numbers, *((3, message((1, self.text(key)), (
            (2, self.text(value)) if isinstance(value, str) else (3, value)))) for key, value in labels)))

    def bytes(self, *more):
        locations = []
        for lines, number in self.locations.items():
            fields = [(1, number), (2, 1)]
            if isinstance(lines[0], tuple):
                fields += [(4, message((1, self.functions[function, file]), (2, line)))
                           for function, file, line in lines]
            else:
                fields.append((3, lines[0]))
            locations.append((4, message(*fields)))
        mapping = message((1, 1), (2, 0x400000), (3, 0x500000), (4, 0x1000), (5, self.text("/usr/bin/server")))
        functions = [(5, message((1, number), (2, self.text(name)), (4, self.text(file))))
                     for (name, file), number in self.functions.items()]
        return message(*((1, one) for one in self.types), *((2, one) for one in self.samples), (3, mapping),
                       *locations, *functions, *((6, one) for one in self.texts), *more)


def sample_profile():
    p = Pprof(("samples", "count"), ("cpu", "nanoseconds"), ("wall", "microseconds"), ("space", "bytes"))
    main = p.location(("main.main", "main.go", 5))
    inlined = p.location(("inner", "work.go", 3), ("outer", "work.go", 9))
    python = p.location(("step", "/src/train.py", 12))
    address = p.location(0x401234)
    p.sample([inlined, main], [2, 20_000_000, 7, 0], [("tid", "41"), ("thread", "worker"), ("tenant", "a")])
    p.sample([python, main], [1, 10_000_000, 0, 4096], [("tid", 42), ("tenant", "b")], packed=False)
    p.sample([address, main], [1, 10_000_001, 0, 0])
    p.sample([], [1, 3, 0, 0])
    return p


def test_pprof(tmp_path):
    data = sample_profile().bytes((9, 1_700_000_000_000_000_000), (10, 5_000_000_000), (11, message((1, 1))),
                                  (12, 10_000_000))
    for source in (data, gzip.compress(data)):
        made = imported(tmp_path, source)
        assert made.paths("cpu.time") == {
            ("main.main", "outer", "inner"): 20_000_000, ("main.main", "step"): 10_000_000,
            ("main.main", "server+0x2234"): 10_000_001, (): 3}
        assert made.total("samples") == 5
        assert made.total("wall") == 7000
        assert made.paths("space") == {("main.main", "step"): 4096}
        units = {name: metric.unit for name, metric in made.profile.metrics.items()}
        assert (units["samples"], units["wall"], units["space"]) == ("count", "ns", "byte")
        step, = made.profile.match("**/step")
        assert (step.kind, step.file, step.line) == ("python", "/src/train.py", 12)
        main, = made.profile.match("main.main")
        assert (main.kind, main.source_file, main.source_line) == ("native", "main.go", 5)
        assert {(track.tid, track.name) for track in made.profile.tracks} == \
            {(41, "worker"), (42, None), (None, None)}
        assert made.ledger() == {("unused", "label tenant"): 2}
        assert made.profile.run.command == "/usr/bin/server"
        assert made.profile.run.wall_ns == 5_000_000_000
        report = made.report()
        assert report["metric"] == "cpu.time"


def totals(made):
    return {name: made.total(name) for name, metric in made.profile.metrics.items()
            if metric.aggregation == "sum" and made.profile.root.inclusive[name].count and made.total(name)}


def test_pprof_own(plumb, tmp_path):
    """What plumb exports as pprof has the same totals, by metric and by path, and the same places."""
    made = imported(tmp_path, space(GPU, HOST), name="first")
    done = plumb("export", made.path, "--format", "pprof", "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    again = imported(tmp_path, tmp_path / "out", name="again")
    assert totals(again) == totals(made) and totals(made)["gpu.time"] == 3001
    for metric in totals(made):
        assert again.paths(metric) == made.paths(metric)
    streams = {track.stream for track in again.profile.tracks if track.kind == "stream"}
    assert streams == {13, 14}
    assert [(device.ordinal, device.name) for device in again.profile.devices] == [(3, "H200")]


@pytest.mark.parametrize("change, why", [
    (lambda p: p.sample([1], [1, 2, 3]), "fewer values"),
    (lambda p: p.sample([1], [1, 2, 3, 4, 5]), "more values"),
    (lambda p: p.sample([99], [1, 2, 3, 4]), "a location that is not in the file"),
    (lambda p: p.samples.append(b"\x0a\x7f"), "ends in the middle"),
    (lambda p: p.samples.append(message((2, 0.5))), "not a whole number"),
])
def test_pprof_damaged(tmp_path, change, why):
    profile = sample_profile()
    change(profile)
    line = refused(tmp_path, profile.bytes())
    assert why in line and "byte " in line


def test_pprof_limits(tmp_path):
    """Greatest numbers, a unit whose ns do not fit, and a stack deeper than is kept."""
    p = Pprof(("cpu", "seconds"), ("events", "count"))
    here = p.location(("f", "f.c", (1 << 64) - 1))
    p.sample([here], [1 << 62, (1 << 63) - 1])
    p.sample([here] * 5000, [1, 1])
    p.sample([here], [1, -(1 << 63)])
    made = imported(tmp_path, p.bytes())
    assert made.total("cpu.time") == 2_000_000_000
    assert made.paths("events") == {("f",): (1 << 63) - 1, ("f",) * 4096: 1}
    assert max(node.depth for node in made.profile.walk()) == 4096
    assert made.ledger() == {("too_deep", None): 1, ("unused", "values out of range"): 2}


def test_pprof_cut(tmp_path):
    p = Pprof(("cpu", "nanoseconds"))
    p.sample([p.location(("f", "f.c", 1)), p.location(7)], [5], [("pid", 3)])
    data = p.bytes()
    assert len(cut_everywhere(tmp_path, data)) < len(data) / 2


@pytest.mark.parametrize("name", ["pprof_cppbench.cpu", "pprof_gobench.cpu", "pprof_java.heap"])
def test_legacy_files(tmp_path, name):
    if not MISC.exists():
        pytest.skip("needs shared/traces")
    assert "pprof -proto PROGRAM" in refused(tmp_path, (MISC / name).read_bytes())


@pytest.mark.parametrize("data", [
    b"".join(word.to_bytes(8, "little") for word in (0, 3, 0, 10000, 0, 1, 1, 0x401000, 0, 1, 0)),
    b"".join(word.to_bytes(4, "little") for word in (0, 3, 0, 10000, 0, 1, 1, 0x401000, 0, 1, 0)),
    b"heap profile:  1: 8 [  1: 8] @ heapprofile\n", b"--- heapz 1 ---\nformat = java\n"])
def test_legacy(tmp_path, data):
    assert "pprof -proto PROGRAM" in refused(tmp_path, data)


def test_folded_real(tmp_path):
    if not MISC.exists():
        pytest.skip("needs shared/traces")
    data = (MISC / "speedscope_folded_vertx.txt").read_bytes()
    made = imported(tmp_path, data)
    assert made.total("samples") == 285
    assert len(made.paths("samples")) == 199
    assert made.report()["total"]["sum"] == 285


def test_folded(tmp_path):
    made = imported(tmp_path, b"a;b;c 3\na;b 2\r\n\na;b;c 4\nmain (train.py:7);std::f<int, 2> 1 \n"
                                     b";x;;y; 5\nlast line without end 6")
    assert made.paths("samples") == {("a", "b", "c"): 7, ("a", "b"): 2, ("main", "std::f<int, 2>"): 1,
                                     ("x", "y"): 5, ("last line without end",): 6}
    main, = made.profile.match("main")
    assert (main.kind, main.file, main.line) == ("python", "train.py", 7)
    assert made.profile.metrics["samples"].unit == "count"


@pytest.mark.parametrize("bad, why", [
    (b"a;b 1.5\n", "line 21 does not end with a whole number"),
    (b"a;b\n", "line 21 is not a stack and a number"),
    (b"a;b -3\n", "line 21 does not end with a whole number"),
    (b"a;b 9223372036854775808\n", "line 21 ends with a number that is missing or too large"),
])
def test_folded_damaged(tmp_path, bad, why):
    assert why in refused(tmp_path, b"a;b 1\n" * 20 + bad)


def test_folded_limits(tmp_path):
    """The greatest sum, deep stacks, bytes that are no UTF-8, and a line of many MB."""
    made = imported(tmp_path, b"a;b 9223372036854775807\na;b 1\n" + b"f;" * 5000 + b"g 1\n"
                    + b"\xff\xfe;x\x01\x1b[31m 1\n")
    assert made.paths("samples")["a", "b"] == (1 << 63) - 1
    assert made.ledger() == {("too_deep", None): 1}
    assert "line 21 is too long" in refused(tmp_path, b"a;b 1\n" * 20 + b"x" * (17 << 20) + b" 1\n")


def test_folded_own(plumb, tmp_path):
    """What plumb exports as folded has the same total, and paths that differ by what names leave out."""
    made = imported(tmp_path, space(GPU, HOST), name="first")
    done = plumb("export", made.path, "--format", "folded", "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    again = imported(tmp_path, tmp_path / "out", name="again")
    assert again.total("samples") == made.total("gpu.time") == 3001
    assert again.paths("samples") == made.paths("gpu.time")


def test_not_folded(tmp_path):
    """Text that is something else has a format that is not known."""
    for data in (b"hello\n", b"a,b,c\n1,2,3\n", b"# 12\nfree text here\n", b"\0\0 1\n"):
        assert re.search("the format is not known", refused(tmp_path, data))


def test_folded_cut(tmp_path):
    cut_everywhere(tmp_path, b"main;work;inner 12\nmain;work 3\n")


def test_pipe(tmp_path):
    """What is read twice has to be a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(sample_profile().bytes(),))
    writer.start()
    assert "this format must be read twice, so it cannot come from a pipe; save it to a file first" in refused(tmp_path, pipe)
    writer.join()


@pytest.mark.parametrize("begin", [space(GPU), sample_profile().bytes(), b"a;b 1\n" * 20])
def test_sparse(tmp_path, begin):
    """A file of 4 GB that is nothing but zeros behind its beginning: refused, and soon."""
    path = tmp_path / "sparse"
    path.write_bytes(begin)
    os.truncate(path, 4 << 30)
    line = refused(tmp_path, path)
    assert "out of range" in line or "line 21 is too long" in line or "the format is not known" in line
