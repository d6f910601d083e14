# SPDX-License-Identifier: Apache-2.0
"""`plumb export`: each format read by somebody else's reader (scripts/install-readers.sh), and by a decoder
of a few lines here; and files that cannot be written. What formats of text look like is in tests/golden."""
import collections
import gzip
import json
import os
import pathlib
import resource
import sqlite3
import struct
import subprocess
import sys
import time

import pytest
from conftest import PLUMB, ROOT, clean_environment, run_command
from importing import imported
from kineto_traces import call, event, kernel
from plumbtest import PROGRAMS, export, run_program
from test_golden import write_samples
from test_mock_gpu import NEWEST, mock_environment, run_driver

import plumb as plumb_package

CACHE = pathlib.Path(os.environ.get("BUILD_CACHE") or
                     pathlib.Path(os.environ.get("XDG_CACHE_HOME") or
                                  pathlib.Path.home() / ".cache") / "plumb")
READERS = CACHE / "readers"
RECORDED = ROOT / "tests/data/h200_training.plumb"


def reader(name):
    path = READERS / name
    if not path.exists():
        pytest.skip(f"{path} is not there: scripts/install-readers.sh fetches it")
    return path


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples")
    write_samples(folder)
    return folder


def totals(profile, unit=None):
    """{metric: sum} of what adds up."""
    with plumb_package.Profile(profile) as opened:
        found = {name: opened.root.inclusive[name].sum for name, metric in opened.metrics.items()
                 if metric.aggregation == "sum" and unit in (None, metric.unit)}
    return {name: total for name, total in found.items() if total}


# ---- folded ----

@pytest.mark.parametrize("name", ["gpu", "cpu", "deep", "rude", RECORDED])
def test_folded_lines_add_up(name, samples, tmp_path):
    profile = name if isinstance(name, pathlib.Path) else samples / f"{name}.plumb"
    lines = export(profile, tmp_path / "out.folded").read_text().splitlines()
    metric = "gpu.time" if "gpu.time" in totals(profile) else "op.time"
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == totals(profile)[metric]
    assert all(line.rpartition(" ")[0] for line in lines)


def test_folded_depth(samples, tmp_path):
    line, = export(samples / "deep.plumb", tmp_path / "out.folded").read_text().splitlines()
    frames = line.rpartition(" ")[0].split(";")
    assert len(frames) == 10001 and frames[-1] == "aten::mul"
    assert frames[:2] == ["recurse (deep.py:5)", "recurse (deep.py:4)"]


# ---- speedscope ----

def stacks_of_speedscope(document, profile):
    """{stack of names: weight}."""
    frames = document["shared"]["frames"]
    found = collections.Counter()
    for stack, weight in zip(profile["samples"], profile["weights"]):
        found[tuple(frames[i]["name"] for i in stack)] += weight
    return found


@pytest.mark.parametrize("name", ["gpu", "cpu", "deep", RECORDED])
def test_speedscope(name, samples, tmp_path):
    profile = name if isinstance(name, pathlib.Path) else samples / f"{name}.plumb"
    document = json.loads(export(profile, tmp_path / "out.speedscope.json").read_text())
    expected = totals(profile, "ns")
    assert {entry["name"]: entry["endValue"] for entry in document["profiles"]} == expected
    for entry in document["profiles"]:
        assert sum(entry["weights"]) == entry["endValue"]
        assert len(entry["samples"]) == len(entry["weights"])
    main = document["profiles"][0]
    assert main["name"] == ("gpu.time" if "gpu.time" in expected else "op.time")
    folded = collections.Counter()
    for line in export(profile, tmp_path / "out.folded").read_text().splitlines():
        stack, _, weight = line.rpartition(" ")
        folded[len(stack.split(";"))] += int(weight)
    depths = collections.Counter()
    for stack, weight in stacks_of_speedscope(document, main).items():
        depths[len(stack)] += weight
    assert depths == folded


def test_speedscope_has_each_track_of_a_metric(samples, tmp_path):
    out = export(samples / "gpu.plumb", tmp_path / "out.speedscope.json", "--metric", "op.time")
    document = json.loads(out.read_text())
    assert [(entry["name"], entry["endValue"]) for entry in document["profiles"]] == [
        ("op.time", 160000), ("op.time, thread 4242 (python3)", 66000),
        ("op.time, thread 4250 (pt_autograd_0)", 94000)]


@pytest.mark.parametrize("name", ["gpu", "cpu", "deep", "rude", RECORDED])
def test_speedscope_fits_its_schema(name, samples, tmp_path):
    profile = name if isinstance(name, pathlib.Path) else samples / f"{name}.plumb"
    out = export(profile, tmp_path / "out.speedscope.json")
    done = run_command(reader("venv/bin/python"), "-c",
                       "import json, jsonschema, sys\n"
                       "jsonschema.validate(*(json.load(open(path)) for path in sys.argv[1:]))",
                       out, reader("speedscope.json"))
    assert done.returncode == 0, done.stderr


# ---- protobuf, in a few lines ----

def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """{field: [int or bytes, …]} of a message."""
    found, at = collections.defaultdict(list), 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 1:
            value, at = struct.unpack_from("<Q", data, at)[0], at + 8
        else:
            assert key & 7 == 2
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            assert len(value) == size
        found[key >> 3].append(value)
    return found


def packed(data):
    at, values = 0, []
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


# ---- pprof ----

class Pprof:
    """proto/profile.proto of google/pprof."""

    def __init__(self, path):
        profile = fields(gzip.decompress(path.read_bytes()))
        self.strings = [text.decode() for text in profile[6]]
        assert self.strings[0] == ""
        self.types = [self.strings[fields(kind)[1][0]] for kind in profile[1]]
        self.default = self.strings[profile[14][0]]
        functions = {fields(f)[1][0]: self.strings[fields(f)[2][0]] for f in profile[5]}
        self.locations = {}
        for location in map(fields, profile[4]):
            line = fields(location[4][0])
            self.locations[location[1][0]] = functions[line[1][0]], line[2][0]
        self.samples = []
        for sample in map(fields, profile[2]):
            labels = {self.strings[label[1][0]]: self.strings[label[2][0]]
                      for label in map(fields, sample[3])}
            stack = [self.locations[number] for number in packed(sample[1][0])]
            self.samples.append((stack, packed(sample[2][0]), labels))
        self.time_ns, self.duration_ns = profile[9][:1], profile[10][:1]

    def sums(self):
        return {kind: sum(values[i] for _, values, _ in self.samples)
                for i, kind in enumerate(self.types)}


@pytest.mark.parametrize("name", ["gpu", "cpu", "deep", "rude", RECORDED])
def test_pprof(name, samples, tmp_path):
    profile = name if isinstance(name, pathlib.Path) else samples / f"{name}.plumb"
    pprof = Pprof(export(profile, tmp_path / "out.pb.gz"))
    assert pprof.sums() == totals(profile)
    assert pprof.default == pprof.types[0]
    assert len(pprof.locations) == len(set(pprof.locations)) > 0


def test_pprof_of_the_sample(samples, tmp_path):
    pprof = Pprof(export(samples / "gpu.plumb", tmp_path / "out.pb.gz"))
    stack, values, labels = max(pprof.samples, key=lambda sample: sample[1][0])
    assert stack[0] == ("void gemm_bwd_h200<float, 128, 64>(float*)", 0)
    assert stack[3] == ("AddmmBackward0 [backward]", 0)
    assert stack[-1] == ("<module>", 61)
    assert values[0] == 3200000
    assert labels == {"pid": "4242", "host": "node7", "device": "0", "gpu": "NVIDIA H200",
                      "stream": "7"}
    threads = collections.Counter()
    for _, values, labels in pprof.samples:
        threads[labels.get("thread")] += values[pprof.types.index("op.time")]
    assert threads == {"python3": 66000, "pt_autograd_0": 94000, None: 0}
    assert pprof.duration_ns == [12345678901]
    only = Pprof(export(samples / "gpu.plumb", tmp_path / "one.pb.gz", "-m", "gpu.launches"))
    assert only.types == ["gpu.launches"]


@pytest.mark.parametrize("name", ["gpu", "cpu", "deep", "rude", RECORDED])
def test_pprof_itself_reads_it(name, samples, tmp_path):
    profile = name if isinstance(name, pathlib.Path) else samples / f"{name}.plumb"
    out = export(profile, tmp_path / "out.pb.gz")
    for metric, total in totals(profile).items():
        done = run_command(reader("pprof"), "-top", "-unit=ns", "-nodecount=1000000", "-nodefraction=0",
                           f"-sample_index={metric}", out, env={"PPROF_TMPDIR": str(tmp_path)})
        assert done.returncode == 0, done.stderr
        rows = done.stdout.split("flat%", 1)[1].splitlines()[1:]
        flat = sum(float(row.split()[0].removesuffix("ns")) for row in rows) \
            if metric.endswith("time") else None
        assert rows and flat in (None, total)


# ---- metrics of the program's own ----

@pytest.fixture(scope="module")
def own_metrics(tmp_path_factory):
    return run_program(sys.executable, "annotated.py", "spans", "decorators", "threads",
                       folder=tmp_path_factory.mktemp("own"),
                       environment={"PYTHONPATH": str(ROOT / "python")}).path


def test_a_metric_of_the_programs_own(own_metrics, tmp_path):
    folded = export(own_metrics, tmp_path / "out.folded", "-m", "tokens").read_text().splitlines()
    assert len(folded) == 1 and ";outer" in folded[0] and ";inner" in folded[0]
    assert folded[0].endswith(" 300")
    document = json.loads(export(own_metrics, tmp_path / "out.speedscope.json", "-m", "tokens").read_text())
    assert [(p["name"], p["unit"], p["endValue"]) for p in document["profiles"]] == [("tokens", "none", 300)]
    pprof = Pprof(export(own_metrics, tmp_path / "one.pb.gz", "-m", "tokens"))
    assert (pprof.types, pprof.default) == (["tokens"], "tokens")
    assert pprof.sums() == {"tokens": 300}
    # Without --metric pprof has them all, the other formats plumb's own.
    every = Pprof(export(own_metrics, tmp_path / "all.pb.gz"))
    assert every.sums() == totals(own_metrics) and {"tokens", "work", "calls"} <= set(every.types)
    document = json.loads(export(own_metrics, tmp_path / "all.speedscope.json").read_text())
    assert "tokens" not in {profile["name"] for profile in document["profiles"]}


def test_pprof_itself_reads_them(own_metrics, tmp_path):
    out = export(own_metrics, tmp_path / "out.pb.gz")
    done = run_command(reader("pprof"), "-top", "-nodecount=100", "-sample_index=tokens", out,
                       env={"PPROF_TMPDIR": str(tmp_path)})
    assert done.returncode == 0 and "Type: tokens" in done.stdout, done.stderr
    assert any(row.split()[0] == "300" for row in done.stdout.split("flat%", 1)[1].splitlines()[1:])


@pytest.mark.parametrize("format", ["folded", "speedscope", "pprof"])
def test_an_unknown_metric_is_named(own_metrics, format, tmp_path):
    done = run_command(PLUMB, "export", own_metrics, "-F", format, "-m", "token", "-o", tmp_path / "out")
    assert done.returncode == 1 and 'no metric "token"' in done.stderr
    assert not (tmp_path / "out").exists()


# ---- perfetto ----

def perfetto(path):
    done = run_command(reader("venv/bin/python"), PROGRAMS / "read_perfetto.py", path)
    assert done.returncode == 0, done.stderr
    trace = json.loads(done.stdout)
    trace["named"] = {int(uuid): track for uuid, track in trace["tracks"].items()}
    # Python frames, modules and CPU samples are drawn around and beside what was recorded.
    samples = {uuid for uuid, track in trace["named"].items() if (track["name"] or "").endswith(": CPU samples")}
    kinds = {"python", "module"}
    trace["drawn"] = [s for s in trace["slices"] if kinds & set(s["categories"]) or s["track"] in samples]
    around = collections.defaultdict(list)
    for one in trace["drawn"]:
        around[one["track"]].append(one)
    trace["slices"] = [s for s in trace["slices"] if not kinds & set(s["categories"]) and s["track"] not in samples]
    for one in trace["slices"]:
        one["depth"] -= sum(d["ts"] <= one["ts"] and d["end"] >= one["end"] for d in around[one["track"]])
    return trace


def test_perfetto_has_python_around_operators(samples, tmp_path):
    trace = perfetto(export(samples / "trace.plumb", tmp_path / "out.pftrace"))
    assert trace["drawn"]
    for one in trace["drawn"]:
        inside = [s for s in trace["slices"] if s["track"] == one["track"] and s["ts"] >= one["ts"]
                  and s["end"] <= one["end"]]
        assert min(s["ts"] for s in inside) == one["ts"] and max(s["end"] for s in inside) == one["end"]


def test_perfetto_of_the_sample(samples, tmp_path):
    trace = perfetto(export(samples / "trace.plumb", tmp_path / "out.pftrace"))
    named = trace["named"]
    slices = [(named[s["track"]]["name"], s["depth"], s["name"], s["ts"], s["end"])
              for s in trace["slices"]]
    assert slices == [
        ("python3", 0, "aten::linear", 2000, 2900), ("python3", 1, "aten::addmm", 2100, 2800),
        ("python3", 2, "cuLaunchKernel", 2200, 2400), ("stream 7", 0, "gemm", 2300, 3400),
        ("python3", 2, "cuLaunchKernel", 2500, 2600),
        ("python3", 0, "aten::linear", 3000, 3900), ("python3", 1, "aten::addmm", 3100, 3800),
        ("python3", 2, "cuLaunchKernel", 3200, 3400), ("stream 7", 0, "gemm", 3300, 4400),
        ("pt_autograd_0", 0, "AddmmBackward0", 4000, 4800),
        ("stream 7", 0, "copy pinned", 5000, 5500)]
    # What overlaps lies on a second track of the name.
    streams = {s["track"] for s in trace["slices"] if s["name"] == "gemm"}
    assert len(streams) == 2
    kernel = next(s for s in trace["slices"] if s["name"] == "gemm")
    assert kernel["categories"] == ["kernel"]
    assert kernel["args"] == {
        "line": "/home/ada/train.py:22 (step)", "operator": "aten::addmm",
        "path": "step (train.py:22) > forward (linear.py:114) > aten::linear > aten::addmm > "
                "cuLaunchKernel > gemm"}
    facts = kernel["facts"]
    assert [(f["kind"], f["name"]) for f in facts["frames"]] == [("kernel", "gemm")]
    assert facts["contexts"][-1]["context"] == facts["context"]
    assert (facts["track"]["kind"], facts["track"]["stream"], facts["track"]["ordinal"]) == ("stream", 7, 0)
    back = next(s for s in trace["slices"] if s["name"] == "AddmmBackward0")
    assert back["args"]["pass"] == "backward"
    # Only what has both ends gets an arrow.
    assert sorted([named[track]["name"], ts] for flow in trace["flows"] for track, ts in flow) == [
        ["python3", 2200], ["python3", 3200], ["stream 7", 2300], ["stream 7", 3300]]
    assert all(len(flow) == 2 for flow in trace["flows"])
    assert trace["clocks"] == [[3, {"1": 1700000000000001000, "3": 1000}]]
    counters = {named[int(uuid)]["name"]: values for uuid, values in trace["counters"].items()}
    assert counters == {"busy": [[2000, 0], [4000, 50], [6000, 100], [8000, 0]],
                        "kernels and copies begun": [[2000, 1], [4000, 2], [6000, 3], [8000, 0]]}
    for uuid in trace["counters"]:
        assert named[named[int(uuid)]["parent"]]["name"] == "GPU 0 NVIDIA H200"


def with_memory(source, path, with_spans=True):
    """A copy of a profile with the memory of a GPU, of the CPU and of the driver over time."""
    path.write_bytes(source.read_bytes())
    with sqlite3.connect(path) as file:
        first = file.execute("SELECT max(id) + 1 FROM tracks").fetchone()[0]
        for number, (name, device) in enumerate((("cuda:0", 0), ("CPU", None), ("driver", 0))):
            file.execute("INSERT INTO tracks (id, kind, process, device, name) VALUES (?, 'memory', 0, ?, ?)", (first + number, device, name))
        bins = [(first, 1500, 1000, 10, 70, 30, 100, 100), (first, 2500, 1000, 20, 90, 40, 100, 80), (first + 1, 2000, 1000, 5, 6, 5, None, None),
                (first + 2, 2000, 1000, 7, 8, 7, None, None)]
        for number, row in enumerate(bins):
            file.execute("INSERT INTO memory_series (id, track, start_ns, width_ns, min_bytes, max_bytes, last_bytes, max_reserved_bytes, "
                         "last_reserved_bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (number, *row))
        if not with_spans:
            file.execute("DELETE FROM span_chunks")
    return path


MEMORY = {"memory of cuda:0: allocated": [[1500, 70], [2500, 90], [3500, 40]], "memory of cuda:0: reserved": [[1500, 100], [2500, 100], [3500, 80]],
          "memory of CPU: allocated": [[2000, 6], [3000, 5]], "memory of the driver: allocated": [[2000, 8], [3000, 7]]}


@pytest.mark.parametrize("with_spans", [True, False])
def test_perfetto_has_memory(samples, tmp_path, with_spans):
    trace = perfetto(export(with_memory(samples / "trace.plumb", tmp_path / "memory.plumb", with_spans), tmp_path / "out.pftrace"))
    named = trace["named"]
    found = {named[int(uuid)]["name"]: (values, named[int(uuid)]["parent"]) for uuid, values in trace["counters"].items()}
    assert {name: values for name, (values, _) in found.items() if name.startswith("memory")} == MEMORY
    assert {name: named[parent]["name"] for name, (_, parent) in found.items() if name.startswith("memory")} == {
        name: "python3" if "CPU" in name else "GPU 0 NVIDIA H200" for name in MEMORY}


def with_counters(source, path):
    """SOURCE with hardware counters over time, at PATH."""
    path.write_bytes(source.read_bytes())
    bins = [(0, 0, "sm_active", "ppm", 1500, 1000, 1, 1000, 0, 250000, 500000), (0, 0, "sm_active", "ppm", 3500, 1000, 1, 1000, 0, 5e5, 5e5),
            (0, 0, "dram_read_bytes", "byte/s", 1500, 1000, 1, 1000, 1e12, 2e12, 3e12), (0, 0, "x__y.avg", None, 500, 1000, 1, 10, 1, 1, 1)]
    with sqlite3.connect(path) as file:
        for number, row in enumerate(bins):
            file.execute("INSERT INTO counter_series (id, device, process, metric, unit, start_ns, width_ns, samples, sampled_ns, min, mean, max) "
                         "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (number, *row))
    return path


COUNTERS = {"sm_active": [[1500, 25], [3500, 50]], "dram_read_bytes": [[1500, 2e12]], "x__y.avg": [[500, 1]]}


def test_perfetto_has_hardware_counters_over_time(samples, tmp_path):
    trace = perfetto(export(with_counters(samples / "trace.plumb", tmp_path / "counters.plumb"), tmp_path / "out.pftrace"))
    named = trace["named"]
    found = {named[int(uuid)]["name"]: (values, named[named[int(uuid)]["parent"]]["name"]) for uuid, values in trace["counters"].items()}
    assert {name: found[name] for name in COUNTERS} == {name: (values, "GPU 0 NVIDIA H200") for name, values in COUNTERS.items()}


def test_chrome_has_hardware_counters_over_time(samples, tmp_path):
    out = export(with_counters(samples / "trace.plumb", tmp_path / "counters.plumb"), tmp_path / "out.trace.json")
    made = json.loads(out.read_text())
    assert made["baseTimeNanoseconds"] == 500  # the first value is before the first span
    names = {one["pid"]: one["args"]["name"] for one in made["traceEvents"] if one["name"] == "process_name"}
    counters = collections.defaultdict(list)
    for one in made["traceEvents"]:
        if one["ph"] == "C":
            (unit, value), = one["args"].items()
            assert unit == {"sm_active": "%", "dram_read_bytes": "byte/s"}.get(one["name"], "value")
            assert names[one["pid"]] == "GPU 0 NVIDIA H200"
            counters[one["name"]].append([500 + round(1000 * one["ts"]), value])
    assert counters == COUNTERS


def test_chrome_has_memory(samples, tmp_path):
    out = export(with_memory(samples / "trace.plumb", tmp_path / "memory.plumb"), tmp_path / "out.trace.json")
    made = json.loads(out.read_text())
    assert made["baseTimeNanoseconds"] == 1500
    counters = collections.defaultdict(list)
    for one in made["traceEvents"]:
        if one["ph"] == "C":
            counters[one["name"]].append([made["baseTimeNanoseconds"] + round(1000 * one["ts"]), one["args"]["bytes"]])
    assert counters == MEMORY
    assert len({one["pid"] for one in made["traceEvents"] if one["ph"] == "C"}) == 1
    plain = export(samples / "trace.plumb", tmp_path / "plain.trace.json")
    assert facts(imported(tmp_path, out, name="back")) == facts(imported(tmp_path, plain, name="plain"))


def test_perfetto_of_the_newest_work(tmp_path):
    """Without a trace a profile still has its newest GPU work."""
    trace = perfetto(export(RECORDED, tmp_path / "out.pftrace"))
    with plumb_package.Profile(RECORDED) as profile:
        expected = collections.Counter((profile.node(span.context).name, span.start_ns, span.end_ns)
                                       for span in profile.spans(newest=True))
    assert collections.Counter((s["name"], s["ts"], s["end"]) for s in trace["slices"]) == expected
    assert all(s["args"]["line"] and s["args"]["path"].endswith(s["name"])
               for s in trace["slices"])


def test_perfetto_of_a_traced_run(tmp_path):
    made = run_program(sys.executable, "mock_gpu.py", folder=tmp_path, options=["--trace"],
                       environment=mock_environment(NEWEST))
    assert made.done.returncode == 0, made.done.stderr
    trace = perfetto(export(made.path, tmp_path / "out.pftrace"))
    expected = collections.Counter((made.profile.node(span.context).name, span.start_ns, span.end_ns)
                                   for span in made.profile.spans())
    assert collections.Counter((s["name"], s["ts"], s["end"]) for s in trace["slices"]) == expected
    kernels = sum(node.exclusive["gpu.time"].count for node in made.profile.kernels)
    copies = sum(node.exclusive["gpu.copy_time"].count
                 for kind in ("copy", "set") for node in made.profile.of_kind(kind))
    assert len(trace["flows"]) == kernels + copies
    kinds = {(trace["named"][track]["kind"], trace["named"][other]["kind"])
             for (track, _), (other, _) in map(sorted, trace["flows"])}
    assert kinds == {("thread", "track")}


def changed(profile, *statements):
    database = sqlite3.connect(profile)
    for statement in statements:
        database.execute(statement)
    database.commit()
    database.close()


@pytest.fixture
def joined(tmp_path):
    """Two runs as one profile."""
    runs = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        runs.append(run_driver(tmp_path / name, "loop", 10, options=["--trace"]).path)
    path = tmp_path / "joined.plumb"
    assert run_command(PLUMB, "settle", *runs, "-o", path).returncode == 0
    return path


def test_perfetto_keeps_processes_apart(joined, tmp_path):
    trace = perfetto(export(joined, tmp_path / "out.pftrace"))
    processes = [track for track in trace["named"].values() if track["kind"] == "process"]
    assert len({track["pid"] for track in processes}) == len(processes) == 2
    assert len([s for s in trace["slices"] if s["name"] == "loop"]) == 20
    assert len(trace["flows"]) == 20


def test_perfetto_keeps_processes_of_one_number_apart(joined, tmp_path):
    changed(joined, "UPDATE processes SET pid = 4242")
    trace = perfetto(export(joined, tmp_path / "out.pftrace"))
    assert [track["pid"] for track in trace["named"].values() if track["kind"] == "process"] == [
        4242, 20004242]


def test_perfetto_of_several_hosts_has_the_times_of_day(joined, tmp_path):
    before = perfetto(export(joined, tmp_path / "one.pftrace"))
    changed(joined, "UPDATE processes SET host = 'elsewhere' WHERE id = 1")
    after = perfetto(export(joined, tmp_path / "two.pftrace"))
    assert len(before["clocks"]) == 1 and after["clocks"] == []
    distance = time.time_ns() - time.monotonic_ns()
    for old, new in zip(before["slices"], after["slices"]):
        assert old["name"] == new["name"]
        assert abs(new["ts"] - old["ts"] - distance) < 1e9
    # … and without a reading of the time of day there is no common line.
    changed(joined, "DELETE FROM clocks WHERE process = 1 AND device IS NULL",
            "UPDATE clocks SET id = (SELECT count(*) FROM clocks c WHERE c.id < clocks.id)")
    done = run_command(PLUMB, "export", joined, "-o", tmp_path / "three.pftrace")
    assert done.returncode == 2 and "clocks of the hosts cannot be aligned" in done.stderr
    assert not (tmp_path / "three.pftrace").exists()


def test_perfetto_needs_a_time_line(samples, tmp_path):
    done = run_command(PLUMB, "export", samples / "gpu.plumb", "-o", tmp_path / "out.pftrace")
    assert done.returncode == 3
    assert "record with plumb run --trace" in done.stderr
    assert list(tmp_path.iterdir()) == []


# ---- where it goes ----

@pytest.mark.parametrize("name, start", [
    ("a.folded", b"<module> (train"), ("a.speedscope.json", b'{"$schema"'), ("a.pb.gz", b"\x1f\x8b"),
    ("a.pprof", b"\x1f\x8b")])
def test_the_name_tells_the_format(name, start, samples, tmp_path):
    assert export(samples / "gpu.plumb", tmp_path / name).read_bytes().startswith(start)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_standard_output(samples, tmp_path):
    file = export(samples / "trace.plumb", tmp_path / "out.pftrace").read_bytes()
    done = subprocess.run([PLUMB, "export", samples / "trace.plumb", "-F", "perfetto"],
                          stdout=subprocess.PIPE, timeout=60)
    assert (done.returncode, done.stdout) == (0, file)


def test_an_output_that_is_there_is_replaced_at_the_end(samples, tmp_path):
    out, link = tmp_path / "out.folded", tmp_path / "link.folded"
    out.write_text("before 1\n")
    link.symlink_to(out)
    done = run_command(PLUMB, "export", samples / "empty.plumb", "-o", link)
    assert done.returncode == 3
    assert out.read_text() == "before 1\n"
    export(samples / "gpu.plumb", link)
    assert link.is_symlink() and out.read_text().startswith("<module>")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.folded", "out.folded"]


@pytest.mark.parametrize("form", ["folded", "speedscope", "pprof", "perfetto"])
def test_a_file_that_cannot_grow_is_no_file(form, tmp_path):
    """As on a full disk: one line, and nothing left behind."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
    done = subprocess.run([PLUMB, "export", RECORDED, "-F", form, "-o", tmp_path / "out"],
                          preexec_fn=limit, capture_output=True, text=True, timeout=60)
    assert done.returncode == 5
    assert "larger than allowed" in done.stderr and done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", ["folded", "speedscope", "pprof", "perfetto"])
def test_a_full_disk(form, tmp_path):
    done = run_command(PLUMB, "export", RECORDED, "-F", form, "-o", "/dev/full")
    assert done.returncode == 5
    assert "no space left" in done.stderr and done.stderr.count("\n") == 1
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([PLUMB, "export", RECORDED, "-F", form], stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 5 and "space left" in done.stderr


def test_a_reader_that_leaves(tmp_path):
    done = run_command("sh", "-c", f"{PLUMB} export {RECORDED} -F folded | head -n 1")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1


@pytest.mark.parametrize("output, problem", [
    ("/nonexistent/out.folded", "No such file or directory"), (".", "is a folder"),
    ("x/", "does not name a file")])
def test_bad_outputs(output, problem, samples, tmp_path):
    done = run_command(PLUMB, "export", samples / "gpu.plumb", "-F", "folded", "-o", output,
                       cwd=tmp_path)
    assert done.returncode in (1, 5)
    assert problem in done.stderr


def test_not_for_a_terminal(samples):
    import pty
    parent, child = pty.openpty()
    done = subprocess.run([PLUMB, "export", samples / "gpu.plumb", "-F", "pprof"], stdout=child,
                          stderr=subprocess.PIPE, text=True, timeout=60, env=clean_environment())
    os.close(child)
    os.close(parent)
    assert done.returncode == 1
    assert "is binary; write it to a file" in done.stderr


# ---- there and back ----

TOTALS = ("gpu.time", "gpu.copy_time", "gpu.copy_bytes", "gpu.launches", "op.time", "op.calls", "host.wait")


def two_ranks(folder, **properties):
    """Two files of one import with the same correlations: each holds work whose launch only the other one has, work that
    no call has, and ranges around modules and functions of Python around operators."""
    def made(pid, launched):
        ops = [event("user_annotation", "step", 0, 1000, pid=pid),
               event("python_function", "nn.Module: Linear_0", 5, 900, pid=pid),
               event("python_function", "train.py(3): forward", 10, 800, pid=pid),
               event("cpu_op", "aten::mm", 20, 700, pid=pid)]
        calls = [call(number, 30 + 10 * number, pid=pid) for number in launched]
        work = [kernel(number, 2000 + 100 * number, 10 + number, pid=0, grid=[2, 1, 1], block=[64, 1, 1])
                for number in (1, 2, 3, 4)]
        copy = event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 3000, 7, pid=0, tid=7, args={
            "device": 0, "stream": 7, "context": 1, "correlation": 5, "bytes": 640})
        return {"schemaVersion": 1, "traceEvents": ops + calls + work + [copy], "distributedInfo": {"rank": pid - 5},
                "deviceProperties": [{"id": 0, "numSms": 4, "maxThreadsPerMultiprocessor": 2048, **properties}]}
    paths = []
    for pid, launched in (5, (1, 2, 5)), (6, (3,)):
        paths.append(folder / f"rank{pid - 5}.json")
        paths[-1].write_text(json.dumps(made(pid, launched)))
    return imported(folder, *paths, name="ranks")


def facts(made):
    devices = [(device["kernels"], device["copies"], device["busy_ns"], device["span_ns"])
               for device in made.report()["devices"]]
    return {"devices": devices, "processes": len(made.profile.processes),
            "unmatched": sorted((row.source, row.count) for row in made.profile.ledger if row.fate == "unmatched"),
            **{name: made.total(name) for name in TOTALS if name in made.profile.metrics}}


@pytest.mark.parametrize("form", ["chrome", "perfetto", "otlp"])
def test_work_without_a_launch_comes_back(form, tmp_path):
    """It stays with its process, whatever call of another process has its number."""
    before = two_ranks(tmp_path, name="NVIDIA X", warpSize=32)
    export(before, tmp_path / f"out.{form}", "--format", form)
    after = imported(tmp_path, tmp_path / f"out.{form}", name="again")
    assert facts(before) == facts(after)


@pytest.mark.parametrize("name, warp, written", [("NVIDIA H100", 32, (2048, 32)), ("AMD Instinct MI300X", 64, (None, None)),
                                                 ("Intel Max 1550", 16, (None, None)), ("", 64, (None, None))])
def test_chrome_writes_what_is_known_of_a_gpu(name, warp, written, tmp_path):
    """How large a warp is, is no part of a profile; that of NVIDIA's GPUs is known."""
    before = two_ranks(tmp_path, name=name, warpSize=warp)
    document = json.loads(export(before, tmp_path / "out.json", "--format", "chrome").read_text())
    for device in document["deviceProperties"]:
        assert (device.get("maxThreadsPerMultiprocessor"), device.get("warpSize")) == written
    after = imported(tmp_path, tmp_path / "out.json", name="again")
    for profile in before.profile, after.profile:
        assert {device.warps_per_multiprocessor for device in profile.devices} == {2048 // warp}
