# SPDX-License-Identifier: Apache-2.0
"""What a row counts is its own, a table says what part of the time it covers, and what is not there is said."""
import csv
import io
import json
import re

import pytest
from conftest import PLUMB, run_command
from kineto_traces import event, save
from plumbtest import PROGRAMS

ENTRIES = PROGRAMS / "entries.py"
_made = {}


def finished_runs(python, folder):
    """Runs of the program, for each way of ending and the options."""
    def made(*arguments, options=()):
        key = (python, arguments, options)
        if key not in _made:
            path = folder.mktemp("entries") / "run.plumb"
            done = run_command(PLUMB, "run", *options, "-o", path, "--", python, ENTRIES, *arguments)
            assert done.returncode == 0, done.stderr
            _made[key] = path, done.stderr
        return _made[key]
    return made


@pytest.fixture
def entries(torch_python, tmp_path_factory):
    return finished_runs(torch_python, tmp_path_factory)


@pytest.fixture
def entries_any(any_torch_python, tmp_path_factory):
    return finished_runs(any_torch_python, tmp_path_factory)


WHOLE = ("--window", "all")  # on a busy machine, 20 rounds may be long enough to be a main loop


def report(path, *options):
    return run_command(PLUMB, "report", path, *options).stdout


def table(text, name):
    """The cells of the first row that begins with NAME in its name's column, by title."""
    lines = text.splitlines()
    head = next(i for i, line in enumerate(lines) if line.split()[:1] == ["share"])
    titles = re.split(r"\s{2,}", lines[head].strip())
    for line in lines[head + 1:]:
        cells = re.split(r"\s{2,}", line.strip())
        if len(cells) == len(titles) and name in cells:
            return dict(zip(titles, cells))
    raise AssertionError(f"no row {name} in\n{text}")


def rows(path, *options):
    return {row["name"]: row for row in json.loads(report(path, *options, "--json", "--top", "0"))["rows"]}


# ---- 1.4: calls and means ----

def test_a_range_counts_its_own_entries(entries):
    path, _ = entries()
    found = rows(path, "--by", "range")
    for name in ("outer", "inner"):
        row, cells = found[name], table(report(path, "--by", "range", *WHOLE), name)
        assert row["calls"] == 20 and cells["calls"] == "20"
        duration = row["exclusive"]["op.duration"]
        assert duration["count"] == 20
        assert row["mean_ns"] == pytest.approx(duration["mean"], abs=1)
        assert row["exclusive"]["op.time"]["count"] == row["inclusive"]["op.time"]["count"] == 20
        # An entry's time is what the operators in it and the range itself took.
        assert row["mean_ns"] == pytest.approx(row["inclusive"]["op.time"]["sum"] / 20, abs=2)
        assert row["exclusive"]["op.calls"]["sum"] > 20


def test_python_package_agrees(entries):
    plumb = pytest.importorskip("plumb")
    path, _ = entries()
    found = rows(path, "--by", "range")
    with plumb.Profile(path) as profile:
        for name in ("outer", "inner"):
            nodes = [node for node in profile.of_kind("range") if node.name == name]
            assert sum(node.exclusive["op.calls"].sum for node in nodes) == found[name]["calls"]
            assert len(nodes) > 1 or nodes[0].exclusive["op.duration"].mean == pytest.approx(found[name]["mean_ns"], abs=1)


def test_modules_count_their_calls(entries):
    path, _ = entries()
    found = rows(path, "--by", "module")
    block = next(row for row in found.values() if row["file"].endswith("Block"))
    assert block["calls"] == 20 and block["mean_ns"] is None
    assert block["exclusive"]["op.calls"]["sum"] >= 100
    assert block["exclusive"]["op.time"]["count"] == 20
    text = report(path, "--by", "module", *WHOLE)
    assert table(text, block["name"])["calls"] == "20"
    assert "mean" not in text


@pytest.mark.parametrize("by", ["phase", "line", "python", "thread", "process"])
def test_what_nobody_enters_has_no_calls(entries, by):
    path, _ = entries()
    assert all(row["calls"] is None and row["mean_ns"] is None for row in rows(path, "--by", by).values())
    titles = next(line for line in report(path, "--by", by).splitlines() if line.split()[:1] == ["share"]).split()
    assert "calls" not in titles and "mean" not in titles and "op.calls" in titles
    lines = list(csv.DictReader(io.StringIO(report(path, "--by", by, "--csv"))))
    assert lines and all(line["calls"] == line["mean_ns"] == "" for line in lines)


def test_csv_has_the_same(entries):
    path, _ = entries()
    lines = {line["name"]: line for line in csv.DictReader(io.StringIO(report(path, "--by", "range", "--csv")))}
    found = rows(path, "--by", "range")
    for name in ("outer", "inner"):
        assert lines[name]["calls"] == lines[name]["exclusive_count"] == "20"
        assert int(lines[name]["mean_ns"]) == found[name]["mean_ns"]


def test_operators_count_calls_and_their_whole_time(entries):
    path, _ = entries()
    row = rows(path, "--by", "operator")["aten::linear"]
    assert row["calls"] == 8
    assert row["mean_ns"] == pytest.approx(row["exclusive"]["op.duration"]["mean"], abs=1)
    assert row["mean_ns"] > row["exclusive"]["op.time"]["mean"]


def test_nodes_of_the_tree(entries):
    path, _ = entries()
    contexts = json.loads(report(path, "--by", "context", "--json", "--top", "0"))["contexts"]
    assert sum(node["calls"] for node in contexts if node["name"] == "outer") == 20
    assert {node["calls"] for node in contexts if node["kind"] == "python"} == {None}
    assert re.search(r" 20  .*\binner", report(path, "--by", "context", "--top", "0", "--metric", "op.time", *WHOLE))


def test_imported_ranges(tmp_path):
    events = [event("user_annotation", "step", 1000 * i, 500 + i) for i in range(4)]
    for i in range(4):
        events += [event("cpu_op", "aten::add", 1000 * i + 10 * k, 5) for k in range(1, 11)]
    found = rows(save(tmp_path / "trace.json", *events), "--by", "range", "--metric", "op.time")["step"]
    assert (found["calls"], found["mean_ns"]) == (4, 501500)
    assert found["exclusive"]["op.time"]["count"] == 4


# ---- 1.5: what part of the time ----

def test_samples_are_taken_where_they_cover_more(entries_any):
    path, said = entries_any("spin", "1.5", options=("--cpu",))
    covered, = [line for line in said.splitlines() if line.startswith("  coverage ")]
    assert re.search(r"operators and ranges cover [\d.]+ % of the run's [\d.]+ m?s; the samples cover \d", covered)
    assert "--cpu" not in covered
    own = said[said.index("your code ("):]
    assert re.search(r"\bspin .*entries\.py:\d+", own.splitlines()[1])
    assert "the samples cover" in report(path)


def test_waiting_counts_where_nothing_computes(entries_any):
    _, said = entries_any("sleep", "3", options=("--cpu",))
    own = said[said.index("your code (main thread: CPU and waiting)"):].splitlines()
    assert "entries.py" in own[1]


def test_nothing_recorded_for_most_of_the_time(entries_any):
    path, said = entries_any("sleep", "1")
    for text in (said, report(path)):
        assert re.search(r"operators and ranges cover [\d.]+ % of the run's .*; for most of the time nothing was "
                         r"recorded \(plumb run --cpu samples it\)", text)


def test_another_tools_trace_has_no_advice_on_recording(tmp_path):
    path = save(tmp_path / "trace.json", event("cpu_op", "aten::add", 0, 10), event("cpu_op", "aten::mul", 9990, 10))
    text = report(path)
    assert "operators and ranges cover 0.2 % of the trace's 10.0 ms" in text and "--cpu" not in text
    assert "  GPU       no work in the trace\n" in text


def test_a_gpu_that_was_not_looked_at_is_not_called_unused(entries_any):
    assert "  GPU       not used\n" in entries_any()[1]
    assert "  GPU       not recorded (--no-gpu)\n" in entries_any(options=("--no-gpu",))[1]


# ---- what recording costs ----

def test_the_cost_is_an_estimate_or_unknown(entries):
    """The program is short: on a slow machine its loop may not be found."""
    path, said = entries()
    for text in (said, report(path)):
        line, = [line for line in text.splitlines() if "wall time" in line]
        assert re.search(r"; recording costs about [\d.]+ .s a step of [\d.]+ .s \(estimate\)$", line) or re.search(
            r"; plumb's own time [\d.]+ .s; cost of recording unknown: .* \(try plumb run --measure-cost\)$", line)


# ---- 2.4, and words ----

def test_nothing_captured_says_what_was_looked_for(tmp_path):
    done = run_command(PLUMB, "run", "-o", tmp_path / "a.plumb", "--", "true")
    line, = [line for line in done.stderr.splitlines() if "nothing was captured" in line]
    for word in ("PyTorch", "CUDA", "JAX", "NVTX", "plumb.span", "plumb run --cpu"):
        assert word in line
    assert "used neither" not in line
    done = run_command(PLUMB, "run", "--no-gpu", "-o", tmp_path / "b.plumb", "--", "true")
    assert "nothing was captured" in done.stderr and "CUDA" not in done.stderr
    done = run_command(PLUMB, "run", "--cpu", "-o", tmp_path / "c.plumb", "--", "true")
    assert "plumb run --cpu" not in done.stderr


@pytest.mark.parametrize("by, why", [("native", "no native frames were recorded; record with --mode full"),
                                     ("kernel", "no GPU kernels were recorded"),
                                     ("shape", "no shapes were recorded; record them with plumb run --shapes"),
                                     ("rank", "no ranks were recorded")])
def test_an_empty_report_says_why(entries, by, why):
    done = run_command(PLUMB, "report", entries()[0], "--by", by)
    assert done.returncode == 3 and f"nothing to show: {why}" in done.stderr


# ---- 2.3: one summary for a job ----

def test_a_job_has_one_summary(any_torch_python, tmp_path):
    said = []
    for rank in range(3):
        done = run_command(PLUMB, "run", "-o", tmp_path / "job.plumb", "--", any_torch_python, "-c",
                           "import torch; torch.ones(2) + 1",
                           env={"RANK": str(rank), "WORLD_SIZE": "3", "PATH": "/usr/bin:/bin"})
        assert done.returncode == 0, done.stderr
        said.append(done.stderr)
    assert "summary of the run" in said[0]
    assert f"plumb settle {tmp_path}/job.plumb.* -o {tmp_path}/job.plumb" in said[0]
    for rank in (1, 2):
        assert said[rank] == f"plumb: rank {rank}: {tmp_path}/job.plumb.{rank}\n"


# ---- 2.6: iterations without a GPU ----

def test_iters_finds_what_diff_finds(entries):
    path, _ = entries(options=("--trace",))
    runs = json.loads(run_command(PLUMB, "diff", path, path, "--json").stdout)
    host = json.loads(run_command(PLUMB, "iters", path, "--json").stdout)["host"]
    assert host["count"] == 8 and host["marker"].startswith("Optimizer.step")
    assert runs["iterations"]["from"] == "marker" and runs["iterations"]["before"][0]["count"] == 8
    assert [item["duration_ns"] is None for item in host["iterations"]] == [False] * 7 + [True]
    text = run_command(PLUMB, "iters", path).stdout
    assert text.startswith("8 iterations, one for each Optimizer.step") and "mean " in text and "max " in text
    lines = list(csv.DictReader(io.StringIO(run_command(PLUMB, "iters", path, "--csv").stdout)))
    assert len(lines) == 8 and None not in lines[0]


def test_iters_without_spans_knows_how_many(entries):
    done = run_command(PLUMB, "iters", entries()[0])
    assert done.returncode == 0 and done.stdout.startswith("8 iterations") and "--trace" in done.stdout


def test_iters_without_markers_says_what_it_looked_for(tmp_path):
    path = save(tmp_path / "trace.json", event("cpu_op", "aten::add", 0, 10))
    done = run_command(PLUMB, "iters", path)
    assert done.returncode == 3 and "ProfilerStep" in done.stderr
