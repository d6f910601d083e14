# SPDX-License-Identifier: Apache-2.0
"""Traces of torch.profiler with Python stacks. A range begins within the Python call of __enter__ and ends within that
of __exit__, so ranges and calls overlap without one lying in the other. What a range holds is compared with what begins
within its interval, by Python's own arithmetic."""
import collections
import decimal
import gzip
import json

import pytest
from conftest import PLUMB, ROOT, run_command
from importing import TRACES, imported
from kineto_traces import call, document, event, kernel

import plumb as plumb_package

PROGRAM = ROOT / "tests" / "e2e" / "programs" / "with_stack.py"
HOSTS = ("cpu_op", "user_annotation", "python_function")


def python(name, start, duration, **more):
    return event("python_function", f"a.py(1): {name}", start, duration, **more)


def holds(made, kind="range"):
    """{name: kernels under it}"""
    return {row["name"]: row["inclusive"]["gpu.time"]["count"] for row in made.report("--by", kind)["rows"]
            if "gpu.time" in row["inclusive"]}


def union(intervals):
    covered, end = 0, None
    for start, stop in sorted(intervals):
        covered += max(0, stop - (start if end is None else max(start, end)))
        end = stop if end is None else max(end, stop)
    return covered


def entered(name, start, end, number, entry=4, more=()):
    """A range from within __enter__ until within __exit__, with a kernel launched in each and one between."""
    return [python("__enter__", start - 2, entry), event("user_annotation", name, start, end - start),
            python("__exit__", end - 2, entry),
            call(number, start + 0.5, duration=0.2), kernel(number, 1000 + number, 1, "in enter"),
            call(number + 1, start + 10, duration=1), kernel(number + 1, 2000 + number, 1, "between"),
            call(number + 2, end - 0.5, duration=0.2), kernel(number + 2, 3000 + number, 1, "in exit"), *more]


def test_a_range_holds_what_begins_in_it(tmp_path):
    made = imported(tmp_path, document(python("main", 0, 500), *entered("ProfilerStep#1", 10, 100, 1),
                                       *entered("ProfilerStep#2", 110, 200, 11)))
    assert holds(made) == {"ProfilerStep": 6}
    spans = {path[-1]: path for path in made.paths("gpu.time")}
    assert spans["between"] == ("main", "ProfilerStep", "cudaLaunchKernel", "between")
    # The calls of __enter__ and __exit__ go on: what they hold is in them and in the range.
    assert spans["in enter"] == ("main", "ProfilerStep", "__enter__", "cudaLaunchKernel", "in enter")
    assert spans["in exit"] == ("main", "__exit__", "ProfilerStep", "cudaLaunchKernel", "in exit")
    assert made.total("op.time") == 180000  # each moment once
    (row,) = made.report("--by", "range")["rows"]
    assert row["exclusive"]["op.duration"]["count"] == 2 and row["exclusive"]["op.calls"]["sum"] == 2
    assert made.ledger("span") == {}


def test_operators_that_open_and_close_a_range(tmp_path):
    """Until PyTorch 2 entering and leaving were operators, recorded as such."""
    made = imported(tmp_path, document(
        event("cpu_op", "profiler::_record_function_enter", 0, 20), event("user_annotation", "mine", 10, 100),
        event("cpu_op", "aten::mm", 30, 20), call(1, 35), kernel(1, 200, 1),
        event("cpu_op", "profiler::_record_function_exit", 100, 20)))
    assert holds(made) == {"mine": 1}
    assert holds(made, "operator") == {"aten::mm": 1}
    assert made.total("op.time") == 120000


def test_nested_ranges_and_calls(tmp_path):
    inner = entered("inner", 40, 60, 21, entry=3)
    made = imported(tmp_path, document(python("main", 0, 500), *entered("outer", 10, 100, 1, more=inner)))
    assert holds(made) == {"outer": 6, "inner": 3}
    assert made.total("op.time") == 90000
    assert ("main", "outer", "inner", "cudaLaunchKernel", "between") in made.paths("gpu.time")


def test_ranges_that_overlap(tmp_path):
    """Both hold what begins in both; what begins after the first one's end is in the second alone."""
    made = imported(tmp_path, document(
        event("user_annotation", "a", 0, 50), event("user_annotation", "b", 30, 60),
        call(1, 10), kernel(1, 100, 1), call(2, 40), kernel(2, 110, 1), call(3, 70), kernel(3, 120, 1)))
    assert holds(made) == {"a": 2, "b": 2}
    assert made.total("op.time") == 90000


def test_other_threads_keep_their_own(tmp_path):
    """A range holds what its own thread does."""
    made = imported(tmp_path, document(
        *entered("step", 10, 100, 1), event("cpu_op", "aten::mm", 20, 50, tid=8), call(31, 30, tid=8),
        kernel(31, 4000, 1, "of another thread")))
    assert holds(made) == {"step": 3}
    assert holds(made, "operator") == {"aten::mm": 1}


def test_many_overlaps_stay_bounded(tmp_path):
    """A thousand slices, each of which goes on after the one before it."""
    made = imported(tmp_path, document(*[event("user_annotation", f"r{n}", n * 10, 5005) for n in range(1000)]))
    assert made.total("op.calls") == 1000
    assert made.total("op.time") <= (999 * 10 + 5005) * 1000


def test_rounded_times_do_not_cut(tmp_path):
    """In µs an operator may begin before the one ahead of it has ended."""
    made = imported(tmp_path, document(
        event("cpu_op", "aten::to", 0, 100), event("cpu_op", "aten::empty", 10, 5), event("cpu_op", "aten::copy_", 14, 60),
        call(1, 30), kernel(1, 100, 1)))
    assert ("aten::to", "aten::copy_", "cudaLaunchKernel", "k") in made.paths("gpu.time")


def module(name, start, duration, **more):
    return event("python_function", f"nn.Module: {name}", start, duration, **more)


def tables(made, *options):
    return run_command(PLUMB, "tables", made, "--json", *options)


@pytest.mark.parametrize("tid", [6, 9])
def test_layers_of_modules_beside_a_step(tmp_path, tid):
    """Two models at the top, in a step that holds them, or in a thread that has no steps."""
    made = imported(tmp_path, document(*entered("ProfilerStep#1", 10, 400, 1), *[
        part for n in range(3) for part in (
            module(f"Net_{n}", 50 + 50 * n, 40, tid=tid), module(f"Linear_{n}", 55 + 50 * n, 20, tid=tid),
            event("cpu_op", "aten::addmm", 57 + 50 * n, 10, tid=tid))]))
    done = tables(made)
    assert done.returncode == 0, done.stderr
    assert all(f"Linear_{n}" in done.stdout for n in range(3))


def test_a_model_that_holds_nothing(tmp_path):
    made = imported(tmp_path, document(event("user_annotation", "empty", 0, 5), event("cpu_op", "aten::mm", 10, 5)))
    done = tables(made, "--model", "empty")
    assert done.returncode == 3 and '"empty" holds neither modules nor operators' in done.stderr


# ---- recorded ----


def record(python, folder, *arguments):
    path = folder / "trace.json"
    done = run_command(python, PROGRAM, path, *arguments, timeout=300)
    assert done.returncode == 0, done.stderr
    return path


def read(path):
    opened = gzip.open(path) if path.suffix == ".gz" else open(path, "rb")
    with opened as file:
        document = json.load(file, parse_float=decimal.Decimal)
    events = document["traceEvents"] if isinstance(document, dict) else document
    return [(e.get("cat"), e["name"], e["pid"], e["tid"], round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000), e)
            for e in events if e.get("ph") == "X"]


def check_recorded(made, events):
    """Ranges and operators by what begins within their intervals on their thread."""
    hosts = [e for e in events if e[0] in HOSTS]
    operators = [e for e in hosts if e[0] == "cpu_op"]
    ranges = [e for e in hosts if e[0] == "user_annotation"]
    threads = {e[2:4] for e in hosts}
    timed = operators + ranges
    covered = sum(union([e[4:6] for e in timed if e[2:4] == thread]) for thread in threads)
    assert made.total("op.time") == covered
    assert made.total("op.calls") == len(timed)
    expected = collections.Counter()
    for _, name, pid, tid, start, end, _ in ranges:
        name = "ProfilerStep" if name.startswith("ProfilerStep#") else name
        expected[name] += sum(1 for o in timed if o[2:4] == (pid, tid) and start <= o[4] and o[5] <= end + 1000
                              and not (o[4], o[5]) == (start, end)) + 1
    found = {row["name"]: row["inclusive"]["op.calls"]["sum"]
             for row in made.report("--by", "range", "--metric", "op.calls")["rows"]}
    assert set(found) == set(expected)
    return found, expected


@pytest.mark.parametrize("steps", [(), ("steps",)], ids=["plain", "steps"])
def test_recorded_ranges(tmp_path, torch_python, steps):
    path = record(torch_python, tmp_path, *steps)
    events = read(path)
    made = imported(tmp_path, path)
    assert made.format == "kineto"
    if not any(e[0] == "python_function" for e in events):
        # Built without Kineto: the trace has neither stacks nor categories.
        found = {row["name"] for row in made.report("--by", "range", "--metric", "op.calls")["rows"]}
        assert {"forward", "within the block", "generator", "first", "second", "fails"} <= found
        assert tables(made).returncode == 0
        return
    found, expected = check_recorded(made, events)
    # Backward operators run in another thread, or hang under their forward ones: those ranges hold others as well.
    for name in set(expected) - {"by hand", "forward", "within the block", "ProfilerStep"}:
        assert found[name] == expected[name], name
    if steps:
        assert made.query("SELECT value FROM environment WHERE key = 'profiler.steps'") == [("2 3 4",)]
        assert found["ProfilerStep"] >= sum(expected[name] for name in ("first", "second"))
    assert tables(made).returncode == 0


@pytest.mark.skipif(not TRACES.is_dir(), reason="the published traces are not beside the project")
@pytest.mark.parametrize("name", ["k20", "k22", "k24", "k28"])
def test_published_ranges(tmp_path, name):
    """Kernels under ranges are those that were launched within them."""
    (path,) = TRACES.glob(f"kineto/{name}*")
    events = read(path)
    made = imported(tmp_path, path)
    hosts = [e for e in events if e[0] in HOSTS]
    timed = [e for e in hosts if e[0] != "python_function"]
    assert made.total("op.time") == sum(union([e[4:6] for e in timed if e[3] == tid]) for tid in {e[3] for e in timed})
    launches = collections.defaultdict(list)
    for e in events:
        if e[0] in ("cuda_runtime", "cuda_driver", "hip_runtime") and "correlation" in e[6]["args"]:
            launches[e[6]["args"]["correlation"]].append(e)
    launched = [launches[e[6]["args"]["correlation"]][0] for e in events
                if e[0] == "kernel" and launches[e[6]["args"]["correlation"]]]
    ranges = [e for e in hosts if e[0] == "user_annotation"]
    expected = collections.defaultdict(set)
    for r in ranges:
        title = "ProfilerStep" if r[1].startswith("ProfilerStep#") else r[1]
        expected[title] |= {n for n, k in enumerate(launched) if k[3] == r[3] and r[4] <= k[4] < r[5]}
    assert {**dict.fromkeys(expected, 0), **holds(made)} == {name: len(found) for name, found in expected.items()}
    assert tables(made).returncode == 0
    assert plumb_package.Profile(made).run is not None
