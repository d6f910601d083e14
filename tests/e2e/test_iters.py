# SPDX-License-Identifier: Apache-2.0
"""plumb iters: exact figures of published traces (where they lie beside the project), and small traces whose
loops, intervals and copies are known."""
import csv
import io
import json
import re

import pytest
from conftest import PLUMB, ROOT, run_command
from importing import TRACES, shared, write
from kineto_traces import call, event, kernel

MAIN_STREAM, COPY_STREAM = 7, 20


def iters(path, *options):
    done = run_command(PLUMB, "iters", path, "--json", *options)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    data = json.loads(done.stdout)
    assert (data["schema"], data["verb"]) == (1, "iters")
    return data["tracks"]


def main_track(path, *options):
    (track,) = [track for track in iters(path, *options) if track["role"] == "main"]
    return track


def published(name):
    """(a published trace, what is known of its iterations)"""
    known = json.loads(shared(f"oracle/iter_{name}.json").read_text())
    return TRACES / "kineto" / known["file"], known


# ---- published traces ----


@pytest.mark.parametrize("name, phase", [("k01", "gap"), ("k03", "marker"), ("k04", "marker"),
                                         ("k08", "marker")])
def test_steps(name, phase):
    trace, known = published(name)
    track = main_track(trace)
    level = track["levels"][0]
    assert (track["stream"], track["ops"]) == (int(known["main_stream"][1]), known["n_main"])
    assert level["period_ops"] == known["best_shifts"][0][0]
    assert (level["occurrences"], level["match"], level["coverage"]) == (
        len(known["steps"]), 1, 1)
    assert level["phase"] == phase
    assert [(one["ops"], one["edits"]) for one in level["iterations"]] == [
        (step["n_kernels_main"], 0) for step in known["steps"]]
    starts = [one["start_ns"] for one in level["iterations"]]
    ends = [one["end_ns"] for one in level["iterations"]]
    first = known["steps"][0]["first_kernel_ns"]
    assert [start - starts[0] for start in starts] == [
        step["first_kernel_ns"] - first for step in known["steps"]]
    assert [end - starts[0] for end in ends] == [
        step["last_kernel_end_ns"] - first for step in known["steps"]]
    deepprof = known["deepprof"]
    intervals = [one["interval_ns"] for one in level["iterations"]]
    assert intervals == [None] + deepprof["iteration_intervals_ns"]
    summary = level["summary"]
    assert summary["interval_ns"]["avg"] == round(deepprof["avg_interval_ns"])
    assert summary["interval_ns"]["max"] == deepprof["max_interval_ns"]
    assert summary["overlap_ratio"] == pytest.approx(deepprof["avg_overlap_HtoD_in_interval"],
                                                     rel=1e-12)
    assert track["op_gap_ns"] == pytest.approx(deepprof["avg_operation_gap_main_ns"], rel=1e-12)
    assert track["copy_bytes"] == deepprof["HtoD_bytes_total"]
    assert level["odd"] == []


@pytest.mark.parametrize("name, period", [("k18", 220), ("k20", 42), ("k28", 15)])
def test_approximate_and_layers(name, period):
    trace, known = published(name)
    track = main_track(trace)
    level = track["levels"][0]
    assert track["ops"] == known["n_main"]
    assert level["period_ops"] == period == known["best_shifts"][0][0]
    assert round(level["match"], 5) >= known["best_shifts"][0][1], "of the loop, not of the whole track"
    assert level["coverage"] > 0.97
    assert level["odd"], "what lies before the layers and after them"
    deepprof = known["deepprof"]
    assert track["stream"] == int(known["main_stream"][1])
    assert track["op_gap_ns"] == pytest.approx(deepprof["avg_operation_gap_main_ns"], rel=1e-12)
    assert (track["copy_bytes"] or 0) == deepprof["HtoD_bytes_total"]


def test_optimizer_steps():
    """Forty steps, and 39 rounds from the first step's own kernels on."""
    trace, known = published("k18")
    level = main_track(trace)["levels"][0]
    assert level["occurrences"] in (known["optimizer_step_annotations"] - 1,
                                    known["optimizer_step_annotations"])
    assert level["verdict"] == "host-bound"


def test_input_stall():
    trace, _ = published("k01")
    level = main_track(trace)["levels"][0]
    assert level["verdict"] == "host-bound"
    assert level["interval_share"] > 0.2 and level["summary"]["overlap_ratio"] < 0.05


# ---- traces made here: times in µs ----


class Trace:
    def __init__(self):
        self.events, self.now, self.number = [], 1000.0, 0

    def add(self, category, name, stream, at, length, **more):
        self.number += 1
        self.events.append(kernel(self.number, at, length, name, stream, category=category, **more))

    def kernel(self, name, length=10.0, gap=1.0):
        self.now += gap
        self.add("kernel", name, MAIN_STREAM, self.now, length)
        self.now += length

    def step(self, interval=0.0, layers=4, length=10.0):
        """6 + 5 kernels for each layer; the interval lies before the first."""
        for i in range(3):
            self.kernel(f"embed{i}", length, interval if i == 0 and interval else 1.0)
        for _ in range(layers):
            for i in range(5):
                self.kernel(f"layer{i}", length)
        for i in range(3):
            self.kernel(f"loss{i}", length)

    def copy(self, at, length, size=1 << 20):
        self.add("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", COPY_STREAM, at, length,
                 bytes=size)

    def write(self, folder):
        return write(folder, {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "Test GPU"}],
                              "baseTimeNanoseconds": 0, "traceEvents": self.events})


def test_hierarchy(tmp_path):
    trace = Trace()
    for _ in range(12):
        trace.step(interval=200)
    track = main_track(trace.write(tmp_path))
    step, layer = track["levels"]
    assert (step["period_ops"], step["occurrences"], step["first_op"]) == (26, 12, "embed0")
    assert step["phase"] == "gap"
    assert (layer["period_ops"], layer["occurrences"]) == (5, 48)
    assert {one["interval_ns"] for one in step["iterations"][1:]} == {200_000}
    assert {one["op_gap_ns"] for one in step["iterations"]} == {1000}
    assert {one["op_time_ns"] for one in step["iterations"]} == {260_000}
    assert {one["duration_ns"] for one in step["iterations"]} == {285_000}
    # The first layer of a step follows other kernels: it has no interval.
    assert sum(one["interval_ns"] is None for one in layer["iterations"]) == 12


@pytest.mark.parametrize("overlap, verdict", [(0.1396, "copy-bound"), (0.00047, "host-bound")])
def test_verdicts_of_the_paper(tmp_path, overlap, verdict):
    """DeepProf's figure 9: a batch copied too large, and a graph that grows."""
    trace = Trace()
    for _ in range(8):
        trace.copy(trace.now + 500, 10_000 * overlap)
        trace.step(interval=10_000)
    path = trace.write(tmp_path)
    level = main_track(path)["levels"][0]
    assert level["verdict"] == verdict
    assert level["summary"]["overlap_ratio"] == pytest.approx(overlap)
    assert level["overlap_share"] == pytest.approx(overlap)
    assert [one["copy_bytes"] for one in level["iterations"]] == [1 << 20] * 8
    other = {"copy-bound": ("host-bound", "14"), "host-bound": ("copy-bound", "0")}[verdict]
    assert main_track(path, "--overlap", other[1])["levels"][0]["verdict"] == other[0]
    assert main_track(path, "--interval", "99")["levels"][0]["verdict"] == "host-bound"
    assert main_track(path, "--interval", "99", "--idle", "100")["levels"][0]["verdict"] == "GPU-bound"


def test_a_few_long_waits_are_not_the_copies(tmp_path):
    """Each short interval is all copy, but three that the program waits in hold the time: the mean of
    the ratios is DeepProf's, the verdict is by the time."""
    trace = Trace()
    for number in range(30):
        trace.copy(trace.now, 90)
        trace.step(interval=100_000 if number in (9, 17, 25) else 100)
    path = trace.write(tmp_path)
    level = main_track(path)["levels"][0]
    first = level["iterations"][1:]
    assert level["summary"]["overlap_ratio"] == pytest.approx((26 * .9 + 3 * .0009) / 29)
    assert level["overlap_share"] == pytest.approx(29 * 90 / (26 * 100 + 3 * 100_000))
    assert level["overlap_share"] == pytest.approx(
        sum(one["overlap_ns"] for one in first) / sum(one["interval_ns"] for one in first))
    assert level["verdict"] == "host-bound"
    text = run_command(PLUMB, "iters", path).stdout
    assert "host-bound: intervals take " in text and "copies from the host take 0.9 % of the intervals;\n" in text
    # The table has the first ones, and the outliers of the others.
    assert re.findall(r"^ +(\d+) .*outlier$", text, re.MULTILINE) == ["9", "17", "25"]
    assert "… and 9 more: " in text


def test_sizes_of_copies_and_unknown_ones(tmp_path):
    trace = Trace()
    for number in range(8):
        trace.copy(trace.now + 5, 10, size=1000 + number)  # each of its own size, in one place
        trace.step(interval=100)
    track = main_track(trace.write(tmp_path))
    assert track["copy_bytes"] == sum(range(1000, 1008))
    assert [one["copy_bytes"] for one in track["levels"][0]["iterations"]] == list(range(1000, 1008))
    for one in trace.events:
        one["args"].pop("bytes", None)
    track = main_track(trace.write(tmp_path))
    assert track["copy_bytes"] is None
    assert track["levels"][0]["summary"]["copy_bytes"]["avg"] is None


def test_gpu_bound_and_roles(tmp_path):
    trace = Trace()
    for _ in range(8):
        trace.copy(trace.now, 5)
        trace.add("kernel", "reduce", 9, trace.now, 30)
        trace.step(interval=3)
    tracks = iters(trace.write(tmp_path))
    assert {track["stream"]: track["role"] for track in tracks} == {
        MAIN_STREAM: "main", COPY_STREAM: "copy", 9: "assist"}
    assert [track["role"] for track in tracks][0] == "main"
    assert tracks[0]["levels"][0]["verdict"] == "GPU-bound"
    (only,) = iters(tmp_path / "trace", "--track", str(tracks[1]["track"]))
    assert only["stream"] == tracks[1]["stream"] and only["levels"] == []


def test_other_streams_are_no_wait(tmp_path):
    """The main stream waits for half of the time while another one has a kernel: the GPU is busy."""
    for other, verdict in (True, "GPU-bound"), (False, "host-bound"):
        trace = Trace()
        for _ in range(8):
            if other:
                trace.add("kernel", "elsewhere", 9, trace.now + 5, 95.0)
            trace.step(interval=100)
        path = trace.write(tmp_path)
        level = main_track(path)["levels"][0]
        assert level["verdict"] == verdict
        assert level["interval_share"] > 0.2
        assert {one["elsewhere_ns"] for one in level["iterations"][1:]} == {95000 if other else 0}
        assert level["elsewhere_share"] == pytest.approx(level["interval_share"] * 0.95 if other else 0, rel=0.02)
        share = f"({100 * level['elsewhere_share']:.1f} % with kernels on other streams)"
        assert (share in run_command(PLUMB, "iters", path).stdout) == other


def test_begins_at_a_copy(tmp_path):
    trace = Trace()
    for _ in range(10):
        trace.copy(trace.now - 3, 2)
        trace.step(interval=1)
    level = main_track(trace.write(tmp_path))["levels"][0]
    assert (level["phase"], level["first_op"], level["occurrences"]) == ("copy", "embed0", 10)


def test_begins_at_a_marker(tmp_path):
    """The device lags behind the host: when a kernel was launched tells, not when it ran."""
    trace = Trace()
    for number in range(10):
        host = 2000 + 300 * number
        trace.events.append(event("user_annotation", f"ProfilerStep#{number}", host, 290, 1, 1))
        before = trace.number
        trace.step()
        for i in range(before + 1, trace.number + 1):
            trace.events.append(call(i, host + 5 + 10 * (i - before), duration=4, pid=1, tid=1))
    for one in trace.events:
        if one["cat"] == "kernel":
            one["ts"] += 2000
    level = main_track(trace.write(tmp_path))["levels"][0]
    assert (level["phase"], level["first_op"], level["occurrences"]) == ("marker", "embed0", 10)
    # Another process' marks are of its own steps.
    marks = [one for one in trace.events if one["cat"] == "user_annotation"]
    trace.events += [{**one, "pid": 2, "ts": one["ts"] + 120} for one in marks]
    level = main_track(trace.write(tmp_path))["levels"][0]
    assert (level["phase"], level["first_op"], level["occurrences"]) == ("marker", "embed0", 10)
    assert (level["marked"]["steps"], level["marked"]["agree"]) == (10, 10)


def marked_trace(name, begin, length, gap=("loss0", 40)):
    """Ten steps of 300 µs whose longest wait lies in the middle, with the range NAME in each from BEGIN on."""
    trace = Trace()
    for number in range(10):
        host = 2000 + 300 * number
        trace.events.append(event("user_annotation", f"{name}{number}" if name.endswith("#") else name, host + begin,
                                  length, 1, 1))
        before, trace.now = trace.number, host + 10
        for kernel_name in ("embed0", "embed1", *("layer%d" % i for i in range(8)), "loss0", "loss1", "adam0", "adam1"):
            trace.kernel(kernel_name, 10, gap[1] if kernel_name == gap[0] else 1)
        for i in range(before + 1, trace.number + 1):
            trace.events.append(call(i, host + 5 + 10 * (i - before), duration=4, pid=1, tid=1))
    return trace


@pytest.mark.parametrize("name, begin, length", [("ProfilerStep#", 2, 290), ("train_step", 2, 250), ("forward", 3, 60),
                                                 ("Optimizer.step#SGD.step", 131, 30)])
def test_a_marker_decides(tmp_path, name, begin, length):
    """The longest wait lies in the middle of each step: where the program marks its steps, that is where they begin."""
    level = main_track(marked_trace(name, begin, length, ("loss0", 100)).write(tmp_path))["levels"][0]
    assert (level["phase"], level["first_op"], level["occurrences"]) == ("marker", "embed0", 10)
    marked = level["marked"]
    assert marked["agree"] == marked["steps"] == 10 and marked["name"] == name.rstrip("#")


def test_a_marker_where_the_gap_is(tmp_path):
    """Gap and marker agree: both say the same, and the phase is the gap's."""
    level = main_track(marked_trace("ProfilerStep#", 2, 290, ("embed0", 130)).write(tmp_path))["levels"][0]
    assert (level["phase"], level["first_op"]) == ("gap", "embed0")
    assert (level["marked"]["agree"], level["marked"]["steps"]) == (10, 10)


@pytest.mark.parametrize("name", ["k01", "k03", "k04", "k08", "k18"])
def test_marked_steps_agree(name):
    trace, known = published(name)
    marked = main_track(trace)["levels"][0]["marked"]
    assert marked["agree"] == marked["steps"] >= (len(known["steps"]) or known["optimizer_step_annotations"] - 1)


def test_two_devices(tmp_path):
    trace, other = Trace(), Trace()
    for _ in range(6):
        trace.step(interval=100)
        other.step(interval=900, layers=2)
    for one in other.events:
        one["pid"] = one["args"]["device"] = 1
        one["args"]["correlation"] += trace.number
    trace.events += other.events
    tracks = [track for track in iters(trace.write(tmp_path)) if track["role"] == "main"]
    assert [(track["device"], track["levels"][0]["period_ops"]) for track in tracks] == [
        (0, 26), (1, 16)]
    assert [track["levels"][0]["summary"]["interval_ns"]["p50"] for track in tracks] == [
        100_000, 900_000]


def test_recording_without_spans():
    """A training on an H200, recorded in the default mode: the newest work of the device."""
    path = ROOT / "tests" / "data" / "h200_training.plumb"
    level = main_track(path)["levels"][0]
    assert (level["period_ops"], level["occurrences"]) == (555, 10)
    assert [one["outlier"] for one in level["iterations"]] == [True] + [False] * 9
    assert {one["copy_bytes"] for one in level["iterations"][1:]} == {(6 << 20) + 1024}, "images, labels"
    assert level["verdict"] == "host-bound"
    assert "newest GPU work" in run_command(PLUMB, "iters", path).stdout


def test_out_of_place(tmp_path):
    trace = Trace()
    for i in range(20):
        trace.kernel(("warm", "up")[i % 2])
    for number in range(10):
        trace.step(interval=100)
        if number == 4:
            for i in range(8):
                trace.kernel("evaluate")
        if number == 6:
            del trace.events[-2]
    level = main_track(trace.write(tmp_path))["levels"][0]
    assert (level["period_ops"], level["occurrences"]) == (26, 10)
    assert {(odd["where"], odd["name"], odd["count"]) for odd in level["odd"]} == {
        ("before", "warm", 10), ("before", "up", 10), ("between", "evaluate", 8),
        ("missing", "loss1", 1)}
    assert level["before_period_ops"] == 2
    assert [one["edits"] for one in level["iterations"]] == [0] * 6 + [1] + [0] * 3
    assert level["iterations"][5]["interval_ns"] is None, "kernels lie between"


def test_slow_iteration_and_growth(tmp_path):
    trace = Trace()
    for number in range(12):
        trace.step(interval=100, length=20.0 if number == 7 else 10.0)
    level = main_track(trace.write(tmp_path))["levels"][0]
    assert [one["outlier"] for one in level["iterations"]] == [i == 7 for i in range(12)]
    assert level["summary"]["outliers"] == 1
    assert abs(level["summary"]["slope_ns"]) <= level["summary"]["slope_error_ns"]
    trace = Trace()
    for number in range(12):
        trace.step(interval=100 + 40 * number)
    path = trace.write(tmp_path)
    summary = main_track(path)["levels"][0]["summary"]
    assert summary["slope_ns"] == pytest.approx(40_000)
    assert summary["slope_error_ns"] == pytest.approx(0, abs=1)
    assert "longer than the one before" in run_command(PLUMB, "iters", path).stdout


def outliers(folder, intervals):
    trace = Trace()
    for interval in intervals:
        trace.step(interval=interval)
    level = main_track(trace.write(folder))["levels"][0]
    assert level["occurrences"] == len(intervals)
    return [i for i, one in enumerate(level["iterations"]) if one["outlier"]]


def test_an_outlier_lies_apart_from_the_others(tmp_path):
    """Each of a chain of iterations is 1.5 % longer than the one before: no place in it parts regular from odd. One that is
    10 % longer than all others is odd."""
    regular = [4000] * 14
    assert outliers(tmp_path, regular + [4060, 4120, 4180, 4240, 4300, 4360]) == []
    assert outliers(tmp_path, regular + [4400] + regular) == [14]
    assert outliers(tmp_path, regular + [4060, 4120, 4180, 4240, 4700]) == [18]


def test_a_trend_that_is_hardly_known_is_none(tmp_path):
    """Growth within its own error is not said; the same growth without noise is."""
    noise = [0, 700, -650, 300, -400, 600, -700, 500, -300, 100, -600, 650, -200, 400, -500, 200]
    for noisy in (True, False):
        trace = Trace()
        for number, more in enumerate(noise):
            trace.step(interval=5000 + 60 * number + (0.65 * more if noisy else 0))
        path = trace.write(tmp_path)
        summary = main_track(path)["levels"][0]["summary"]
        text = run_command(PLUMB, "iters", path).stdout
        assert (summary["slope_error_ns"] > 0.5 * abs(summary["slope_ns"])) == noisy
        assert ("longer than the one before" in text) == (not noisy)


def test_no_loop(tmp_path):
    trace = Trace()
    for i in range(60):
        trace.kernel(f"once{i}")
    path = trace.write(tmp_path)
    assert main_track(path)["levels"] == []
    assert "no loop" in run_command(PLUMB, "iters", path).stdout


def test_csv_and_text_say_the_same(tmp_path):
    trace = Trace()
    for _ in range(25):
        trace.step(interval=100)
    path = trace.write(tmp_path)
    levels = main_track(path)["levels"]
    done = run_command(PLUMB, "iters", path, "--csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert done.returncode == 0 and len(rows) == sum(level["occurrences"] for level in levels)
    for row in rows:
        one = levels[int(row["level"])]["iterations"][int(row["iteration"])]
        for key in ("start_ns", "end_ns", "interval_ns", "op_gap_ns", "op_time_ns", "copy_bytes"):
            assert row[key] == ("" if one[key] is None else str(one[key]))
    text = run_command(PLUMB, "iters", path).stdout
    assert "25 iterations of 26 kernels" in text and "… and 5 more" in text


def test_wrong_use_and_nothing(tmp_path):
    trace = Trace()
    trace.events.append(event("cpu_op", "aten::mm", 1, 5))
    path = trace.write(tmp_path)
    for options, code in ([], 3), (["--json", "--csv"], 1), (["--overlap", "101"], 1):
        done = run_command(PLUMB, "iters", path, *options)
        assert done.returncode == code, done.stderr
        assert done.stdout == "" and done.stderr
    assert "--trace" not in run_command(PLUMB, "iters", path).stderr  # it has been traced
    assert run_command(PLUMB, "iters", tmp_path / "none").returncode != 0
    for _ in range(4):
        trace.step(interval=10)
    path = trace.write(tmp_path)
    assert run_command(PLUMB, "iters", path, "--track", "99").returncode == 3
