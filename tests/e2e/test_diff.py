# SPDX-License-Identifier: Apache-2.0
"""plumb diff: exact figures of small traces, what is aligned with what, gates and their exit codes."""
import csv
import decimal
import gzip
import io
import json
import math
import random
import re
import statistics

import pytest
from conftest import PLUMB, ROOT, run_command, torch_pythons
from difftrace import STREAM, Trace, Work
from importing import shared
from kineto_traces import save
from plumbtest import run_program

NAMES = ["a", "b", "c", "d", "e", "f"]


def diff(*arguments, code=0):
    done = run_command(PLUMB, "diff", "--json", *arguments)
    assert done.returncode == code, (done.returncode, done.stderr)
    data = json.loads(done.stdout)
    assert (data["schema"], data["verb"]) == (1, "diff")
    return data


def rows(data):
    return {row["name"]: row for row in data["rows"]}


def measures(data):
    return {one["name"]: one for one in data["measures"]}


def works(scale=1.0, **lengths):
    """A step of six kernels of different names; LENGTHS by operator."""
    return [Work(f"aten::{name}", f"kernel_{name}", lengths.get(name, 10.0) * scale, line=10 + i)
            for i, name in enumerate(NAMES)]


def made(folder, name, steps=20, wait=5.0, jitter=None, **lengths):
    """A trace of STEPS steps; JITTER(step) scales all of one."""
    trace = Trace()
    for number in range(steps):
        trace.step(works(jitter(number) if jitter else 1.0, **lengths), wait)
    return trace.write(folder / name)


# ---- figures ----


def test_identical_files_do_not_differ(tmp_path):
    path = made(tmp_path, "a.json", jitter=lambda k: 1 + (k % 3) / 100)
    for by in "operator", "kernel", "context", "line", "python", "phase", "iteration":
        data = diff(path, path, "--by", by)
        assert data["rows"], by
        assert data["environment"] == []
        for row in data["rows"] + data["measures"]:
            assert (row["change"], row["ratio"]) in ((0, 1), (0, None)), (by, row)
            assert row["low"] is None or row["low"] <= 0 <= row["high"]
    recorded = ROOT / "tests" / "data" / "h200_training.plumb"
    data = diff(recorded, recorded, "--gate", "gpu.time<+0.1%")
    assert all(row["change"] == 0 for row in data["rows"])
    assert data["gate"] == {"expression": "gpu.time<+0.1%", "holds": True}
    assert data["iterations"]["before"][0]["count"] == 10
    assert data["iterations"]["before"][0]["newest"] is True


def test_built_in_functions_meet_themselves(tmp_path):
    """They have neither file nor line; what they launch is of the line that calls them, whichever of them it was."""
    trace = Trace()
    for _ in range(10):
        trace.step(works())
    for made in [made for made in trace.events if made["cat"] == "cpu_op"]:
        trace.events.append({**made, "cat": "python_function", "ts": made["ts"] - .25, "dur": made["dur"] + .5,
                             "name": "<built-in function " + made["name"][len("aten::"):] + ">"})
    trace.add("python_function", "<built-in function perf_counter_ns>", 1, 1, 1, 1)
    path = trace.write(tmp_path / "a.json")
    for by, names in ("python", {f"<built-in function {name}>" for name in NAMES}), ("line", {"forward"}), ("context", None):
        found = diff(path, path, "--by", by, "--top", "0")["rows"]
        assert {row["change"] for row in found} == {0}, by
        assert names is None or {row["name"] for row in found} == names
        if by == "line":
            assert sorted(row["line"] for row in found) == [10, 11, 12, 13, 14, 15]
            assert {row["before"] for row in found} == {10_000}


def test_where_an_object_lay_is_no_part_of_a_name(tmp_path):
    def trace(name, place):
        made = Trace()
        for _ in range(10):
            made.step(works())
        for i, one in enumerate([one for one in made.events if one["cat"] == "cpu_op"]):
            made.events.append({**one, "cat": "python_function", "ts": one["ts"] - .25, "dur": one["dur"] + .5,
                                "name": f"<built-in method add_ of Tensor object at {place + i % 3:#x}>"})
        return made.write(tmp_path / name)

    before, after = trace("a.json", 0x7f4192fdd770), trace("b.json", 0x55d0c0ffee00)
    (row,) = diff(before, after, "--by", "python")["rows"]
    assert (row["name"], row["before"], row["after"]) == ("<built-in method add_ of Tensor object>", 60_000, 60_000)
    assert {row["change"] for row in diff(before, after, "--by", "context", "--top", "0")["rows"]} == {0}


def test_exact_change(tmp_path):
    before = made(tmp_path, "a.json")
    after = made(tmp_path, "b.json", c=14.0, e=7.0)
    data = diff(before, after)
    assert (data["metric"], data["by"], data["unit"], data["per"]) == (
        "gpu.time", "operator", "ns", "iteration")
    found = rows(data)
    assert (found["aten::c"]["before"], found["aten::c"]["after"]) == (10_000, 14_000)
    assert (found["aten::c"]["change"], found["aten::c"]["ratio"]) == (4_000, 1.4)
    assert (found["aten::e"]["change"], found["aten::e"]["ratio"]) == (-3_000, 0.7)
    assert found["aten::a"]["change"] == 0
    assert [row["name"] for row in data["rows"]][:2] == ["aten::c", "aten::e"], "the greatest first"
    assert data["outside"]["before"] == data["outside"]["after"] == 0
    of = measures(data)
    assert (of["iteration.time"]["before"], of["iteration.time"]["after"]) == (65_000, 66_000)
    assert (of["gpu.time"]["before"], of["gpu.time"]["after"]) == (60_000, 61_000)
    assert (of["gpu.busy"]["before"], of["gpu.idle"]["before"]) == (60_000, 5_000)
    assert of["iteration.time"]["statistic"] == "median of iterations"
    # Every iteration takes the same: nothing is uncertain.
    assert of["iteration.time"]["low"] == pytest.approx(66 / 65 - 1, abs=1e-12)
    assert of["iteration.time"]["high"] == pytest.approx(66 / 65 - 1, abs=1e-12)


def test_a_longer_run_is_no_slower_one(tmp_path):
    before, after = made(tmp_path, "a.json", steps=100), made(tmp_path, "b.json", steps=120)
    data = diff(before, after)
    assert [side[0]["count"] for side in (data["iterations"]["before"], data["iterations"]["after"])
            ] == [100, 120]
    assert data["iterations"]["from"] == "loop"
    assert [side[0]["measured"] for side in (data["iterations"]["before"],
                                             data["iterations"]["after"])] == [99, 119]
    assert {row["change"] for row in data["rows"]} == {0}
    assert rows(data)["aten::b"]["before"] == 10_000
    whole = diff(before, after, "--total")
    assert whole["per"] is None
    assert rows(whole)["aten::b"]["ratio"] == 1.2
    assert measures(whole)["gpu.time"]["after"] == 120 * 60_000
    said = diff(before, after, "--iterations", "50,60")
    assert said["iterations"]["from"] == "given"
    assert rows(said)["aten::b"]["before"] == rows(said)["aten::b"]["after"] == 20_000


def test_rounds_of_a_loop_are_no_iterations_of_other_number(tmp_path):
    """Five iterations, as the person says, of four rounds each: how long one took is not known."""
    before, after = made(tmp_path, "a.json"), made(tmp_path, "b.json", c=13.0)
    data = diff(before, after, "--iterations", "5,5")
    assert measures(data)["gpu.busy"]["before"] == 4 * 60_000
    assert not {"iteration.time", "gpu.idle"} & set(measures(data))
    assert [data["iterations"][side][0]["measured"] for side in ("before", "after")] == [0, 0]
    assert rows(data)["aten::c"]["spread"] == "calls"
    diff(before, after, "--by", "iteration", "--iterations", "5,5", code=3)
    # about as many rounds are what the person means
    data = diff(before, after, "--iterations", "20,21")
    assert measures(data)["iteration.time"]["before"] == 65_000


def test_a_step_of_layers_is_not_taken_for_a_layer(tmp_path):
    """A trace of a single step has its layers as the outermost loop."""
    layer = works()
    many, single = Trace(markers=True), Trace(markers=True)
    for trace, steps in (many, 10), (single, 1):
        for _ in range(steps):
            trace.step([Work("aten::embed", "embed"), *(layer * 8), Work("aten::loss", "loss")], 200)
    many, single = many.write(tmp_path / "many.json"), single.write(tmp_path / "single.json")
    data = diff(many, single)
    assert data["iterations"]["before"][0]["level"] == 1
    assert data["iterations"]["after"][0]["level"] == 0
    assert [data["iterations"][side][0]["count"] for side in ("before", "after")] == [80, 8]
    assert rows(data)["aten::a"]["ratio"] == 1
    assert rows(data)["aten::a"]["before"] == 10_000
    assert measures(data)["gpu.time"]["ratio"] == pytest.approx(1, abs=.01)


def test_warm_up_and_outliers_do_not_move_the_median(tmp_path):
    def steps(number):
        return 30.0 if number == 0 else 4.0 if number == 11 else 1.0
    data = diff(made(tmp_path, "a.json"), made(tmp_path, "b.json", jitter=steps))
    assert measures(data)["iteration.time"]["change"] == 0
    assert measures(data)["gpu.time"]["change"] == 0
    assert data["statistic"] == "mean of iterations"
    assert rows(data)["aten::a"]["change"] == 0, "what takes much longer is left out of means"
    assert [data["iterations"][side][0]["left_out"] for side in ("before", "after")] == [0, 2]
    assert "2 outliers left out" in run_command(PLUMB, "diff", tmp_path / "a.json", tmp_path / "b.json").stdout
    whole = diff(tmp_path / "a.json", tmp_path / "b.json", "--total")
    assert rows(whole)["aten::a"]["change"] == (30 + 4 - 2) * 10_000


def test_iterations_of_two_kinds_are_no_outliers(tmp_path):
    """A third of the iterations takes twice as long: that is how the program is."""
    data = diff(made(tmp_path, "a.json"), made(tmp_path, "b.json", jitter=lambda k: 2.0 if k % 3 == 0 else 1.0))
    assert data["iterations"]["after"][0]["left_out"] == 0
    assert rows(data)["aten::a"]["after"] == pytest.approx(10_000 * (19 + 7) / 19)


def test_busy_and_idle_are_of_one_iteration(tmp_path):
    """Each waits 5 µs, however long it and its neighbours take."""
    before = made(tmp_path, "a.json", 21, jitter=lambda k: 1 + k * 7 % 5 / 10)
    after = made(tmp_path, "b.json", 21, wait=6.0, jitter=lambda k: 1 + k % 2 / 2)
    found = measures(diff(before, after))
    assert (found["gpu.idle"]["before"], found["gpu.idle"]["after"]) == (5000, 6000)
    assert found["gpu.idle"]["low"] == pytest.approx(.2) == found["gpu.idle"]["high"]
    for side in "before", "after":
        assert found["gpu.busy"][side] + found["gpu.idle"][side] == found["iteration.time"][side]


def test_interval_from_iterations(tmp_path):
    """Known noise: the interval has the size that theory gives, and marks what is clear."""
    noise = random.Random(5)
    before = made(tmp_path, "a.json", steps=101, jitter=lambda k: 1 + noise.gauss(0, .02))
    after = made(tmp_path, "b.json", steps=101, jitter=lambda k: 1.05 + noise.gauss(0, .02))
    data = diff(before, after)
    row = rows(data)["aten::a"]
    assert row["spread"] == "iterations"
    assert row["low"] < row["ratio"] - 1 < row["high"]
    half = 1.96 * math.sqrt(.02 ** 2 / 100 + (.02 / 1.05) ** 2 / 100) * 1.05
    assert (row["high"] - row["low"]) / 2 == pytest.approx(half, rel=.35)
    assert row["low"] > 0
    text = run_command(PLUMB, "diff", before, after, "--width", "0").stdout
    (line,) = [line for line in text.splitlines() if line.endswith(" aten::a model.py:10")
               or line.endswith(" aten::a")]
    assert " * " in line


def test_neighbours_that_are_alike_count_less(tmp_path):
    def drift(number):
        return 1 + .05 * math.sin(number / 16)
    noise = random.Random(1)
    values = [drift(number) for number in range(101)]
    mixed = values[:]
    noise.shuffle(mixed)
    slow = diff(made(tmp_path, "a.json", 101, jitter=values.__getitem__),
                made(tmp_path, "b.json", 101, jitter=values.__getitem__))
    fast = diff(made(tmp_path, "c.json", 101, jitter=mixed.__getitem__),
                made(tmp_path, "d.json", 101, jitter=mixed.__getitem__))

    def width(data):
        return rows(data)["aten::a"]["high"] - rows(data)["aten::a"]["low"]
    assert width(slow) > 3 * width(fast)


def test_several_runs_of_a_side(tmp_path):
    def run(name, length):
        return made(tmp_path, name, a=length)
    before = [run(f"a{i}.json", length) for i, length in enumerate((9.0, 10.0, 11.0))]
    after = [run(f"b{i}.json", length) for i, length in enumerate((19.0, 20.0, 21.0))]
    data = diff(*before, "--", *after)
    row = rows(data)["aten::a"]
    assert (row["before"], row["after"], row["spread"]) == (10_000, 20_000, "runs")
    # Both sides: standard deviation 1 µs, three runs; Welch's freedom of the relative errors 0.0577, 0.0289.
    a, b = 1 / 10 / math.sqrt(3), 1 / 20 / math.sqrt(3)
    error = math.hypot(a, b)
    freedom = error ** 4 / (a ** 4 / 2 + b ** 4 / 2)
    assert freedom == pytest.approx(2.941176)
    quantile = 3.218759  # of Student's distribution for that, by its integral
    assert row["high"] == pytest.approx(2 * math.exp(quantile * error) - 1, rel=1e-5)
    assert row["low"] == pytest.approx(2 * math.exp(-quantile * error) - 1, rel=1e-5)
    # One run against three: what differs between those is taken for what differs here.
    one = rows(diff(before[1], "--", *after))["aten::a"]
    assert (one["before"], one["after"], one["spread"]) == (10_000, 20_000, "runs")
    assert one["low"] < 1 < one["high"]
    done = run_command(PLUMB, "diff", *before)
    assert done.returncode == 1 and "--" in done.stderr


def test_two_devices(tmp_path):
    """Sums of both; the time of an iteration is their average."""
    def two(name, other):
        trace = Trace()
        for _ in range(10):
            trace.step(works())
        second = Trace()
        for _ in range(10):
            second.step(works(b=other))
        for event in second.events:
            if event["cat"] == "kernel":
                event["pid"] = event["args"]["device"] = 1
            if "correlation" in event["args"]:
                event["args"]["correlation"] += trace.number
            if event["pid"] != 1 or event["cat"] != "kernel":
                event["tid"] = 2
        trace.events += second.events
        return trace.write(tmp_path / name)
    data = diff(two("a.json", 10.0), two("b.json", 20.0), "--by", "kernel")
    assert [data["iterations"][side][0]["count"] for side in ("before", "after")] == [10, 10]
    of = measures(data)
    assert (of["gpu.time"]["before"], of["gpu.time"]["after"]) == (120_000, 130_000)
    assert (of["gpu.busy"]["before"], of["gpu.busy"]["after"]) == (120_000, 130_000)
    assert (of["iteration.time"]["before"], of["iteration.time"]["after"]) == (65_000, 70_000)
    assert rows(data)["kernel_b"]["after"] == 30_000


def test_iterations_of_a_cpu_by_a_marker(tmp_path):
    """Without GPU work iterations are told by ProfilerStep; operators' own time by what nests."""
    def cpu(name, steps, outer):
        trace = Trace(markers=True)
        for number in range(steps):
            trace.gpu = 1000 + 200 * number
            trace.step([Work("aten::inner", outer="aten::outer")] * outer, wait=0)
        return trace.write(tmp_path / name)
    data = diff(cpu("a.json", 11, 4), cpu("b.json", 21, 5))
    assert (data["metric"], data["iterations"]["from"]) == ("op.time", "marker")
    assert [(side["count"], side["measured"]) for key in ("before", "after")
            for side in data["iterations"][key]] == [(11, 10), (21, 20)]
    of = measures(data)
    assert (of["iteration.time"]["before"], of["iteration.time"]["change"]) == (200_000, 0)
    assert of["op.time"]["statistic"] == "median of iterations"
    assert of["op.time"]["change"] == 5_000, "the marker around it takes its part"
    found = rows(data)
    assert (found["aten::inner"]["before"], found["aten::inner"]["after"]) == (12_000, 15_000)
    assert (found["aten::outer"]["before"], found["aten::outer"]["after"]) == (2_000, 2_500)
    assert found["aten::inner"]["spread"] == "iterations"


# ---- alignment ----


def test_what_one_side_lacks_is_unknown_there(tmp_path):
    before, after = Trace(), Trace()
    for _ in range(10):
        before.step(works() + [Work("aten::old", "old_kernel", 3.0)])
        after.step(works() + [Work("aten::new", "new_kernel", 4.0)])
    before, after = before.write(tmp_path / "a.json"), after.write(tmp_path / "b.json")
    for by, old, new in ("operator", "aten::old", "aten::new"), ("kernel", "old_kernel", "new_kernel"):
        found = rows(diff(before, after, "--by", by))
        for name, has, lacks, value in (old, "before", "after", 3000), (new, "after", "before", 4000):
            assert (found[name][has], found[name][lacks]) == (value, None)
            assert [found[name][key] for key in ("change", "ratio", "low", "high")] == [None] * 4
    contexts = diff(before, after, "--by", "context", "--top", "0")["rows"]
    leaf = {row["name"]: row for row in contexts}
    assert leaf["old_kernel"]["after"] is None and leaf["new_kernel"]["before"] is None
    assert leaf["all"]["before"] == 63_000 and leaf["all"]["after"] == 64_000
    ids = {row["id"]: row for row in contexts}
    for row in contexts:
        if row["parent"] is not None:
            assert row["parent"] in ids
    assert ids[leaf["new_kernel"]["parent"]]["kind"] == "gpu_api"
    text = run_command(PLUMB, "diff", before, after).stdout
    assert "aten::old; only before" in text and "aten::new; only after" in text
    old, new = (next(line for line in text.splitlines() if f"aten::{name}; only" in line) for name in ("old", "new"))
    assert old.split()[0].startswith("-") and "-100.0 %" in old and new.split()[0].startswith("+"), text


def test_options_after_the_profiles_of_the_second_side(tmp_path):
    done = run_command(PLUMB, "diff", tmp_path / "a.plumb", "--", tmp_path / "b.plumb", "-n", "1")
    assert done.returncode != 0 and "No such file" in done.stderr  # the profile is what is missing first
    path = ROOT / "tests" / "data" / "h200_training.plumb"
    done = run_command(PLUMB, "diff", path, "--", path, "-n", "1")
    assert done.returncode != 0 and "after -- are only profiles; put -n before it" in done.stderr


def test_a_narrow_terminal_keeps_names(tmp_path):
    """What other columns say is left to them, and an interval without an end is told in few columns."""
    name = "void at::native::" + "elementwise_kernel<128, 2, " * 8
    before, after = Trace(), Trace()
    for number in range(10):
        before.step(works() + [Work("aten::old", name, 3.0), Work("aten::both", "both", 0.01)])
        after.step(works() + [Work("aten::new", name, 3.0),
                              Work("aten::both", "both", 0.1 * 4 ** number)])
    before, after = before.write(tmp_path / "a.json"), after.write(tmp_path / "b.json")
    for by in "operator", "kernel", "context":
        text = run_command(PLUMB, "diff", before, after, "--by", by, "--width", "80", "--top", "0").stdout
        tables = text[text.index("  change"):]
        assert max(map(len, tables.splitlines())) <= 80, by
        assert "only after" not in text and not re.search(r"\de\+\d", text)
        assert re.search(r"iteration\.time$", tables, re.MULTILINE)
        assert ">×100,000" in text
    assert "(median of iterations)" in run_command(PLUMB, "diff", before, after, "--width", "100").stdout


def test_lines_that_moved(tmp_path):
    """Three lines were put in front, and one in between; another file of the name lies elsewhere."""
    before, after = Trace(), Trace()
    for _ in range(10):
        before.step([Work("aten::linear", "gemm", 20.0, line=10), Work("aten::relu", "relu", 5.0, line=11),
                     Work("aten::linear", "gemm", 30.0, line=12)])
        after.step([Work("aten::linear", "gemm", 20.0, line=13, file="/srv/model.py"),
                    Work("aten::relu", "relu", 5.0, line=14, file="/srv/model.py"),
                    Work("aten::dropout", "drop", 4.0, line=15, file="/srv/model.py"),
                    Work("aten::linear", "gemm", 36.0, line=16, file="/srv/model.py")])
    before, after = before.write(tmp_path / "a.json"), after.write(tmp_path / "b.json")
    found = {(row["line"], row["after_line"]): (row["before"], row["after"])
             for row in diff(before, after, "--by", "line")["rows"]}
    assert found == {(10, 13): (20_000, 20_000), (11, 14): (5_000, 5_000), (15, 15): (None, 4_000),
                     (12, 16): (30_000, 36_000)}
    (function,) = diff(before, after, "--by", "python")["rows"]
    assert (function["name"], function["before"], function["after"]) == ("forward", 55_000, 65_000)
    contexts = diff(before, after, "--by", "context", "--top", "0")["rows"]
    moved = [row for row in contexts if row["kind"] == "python"]
    assert {(row["line"], row["after_line"]) for row in moved} == set(found)
    assert "model.py:12 → :16" in run_command(PLUMB, "diff", before, after, "--by", "line").stdout


def test_vendors_meet_by_the_map(tmp_path):
    nvidia, amd = Trace("NVIDIA H100"), Trace("AMD Instinct MI300X")
    for _ in range(10):
        nvidia.step([Work("aten::cudnn_convolution", "cudnn::fprop", 30.0, outer="aten::convolution"),
                     Work("aten::cudnn_batch_norm", "bn_fw", 6.0),
                     Work("aten::_flash_attention_forward", "flash_fwd", 12.0),
                     Work("aten::addmm", "sm90_gemm", 40.0),
                     Work("nccl:all_reduce", "ncclDevKernel_AllReduce", 9.0)])
        amd.step([Work("aten::miopen_convolution", "igemm_fwd", 45.0, outer="aten::convolution"),
                  Work("aten::miopen_batch_norm", "MIOpenBatchNorm", 7.0),
                  Work("aten::_efficient_attention_forward", "attn_fwd", 15.0),
                  Work("aten::addmm", "Cijk_gemm", 50.0),
                  Work("rccl:all_reduce", "rcclDevKernel_AllReduce", 11.0)])
    data = diff(nvidia.write(tmp_path / "a.json"), amd.write(tmp_path / "b.json"))
    found = rows(data)
    assert {name: (row["before"], row["after"]) for name, row in found.items()} == {
        "convolution": (30_000, 45_000), "batch norm": (6_000, 7_000), "attention": (12_000, 15_000),
        "aten::addmm": (40_000, 50_000), "all-reduce": (9_000, 11_000)}
    assert found["convolution"]["before_names"] == ["aten::cudnn_convolution"]
    assert found["convolution"]["after_names"] == ["aten::miopen_convolution"]
    assert found["aten::addmm"]["before_names"] is None, "the same name needs no map"
    assert found["aten::addmm"]["family"] == "matmul"
    assert {"key": "gpu.devices", "before": "1 × NVIDIA H100", "after": "1 × AMD Instinct MI300X"
            } in data["environment"]
    by_family = {row["name"]: (row["before"], row["after"]) for row in data["families"]}
    assert by_family["matmul"] == (40_000, 50_000) and by_family["convolution"] == (30_000, 45_000)
    done = run_command(PLUMB, "diff", tmp_path / "a.json", tmp_path / "b.json", "--gate",
                       "gpu.time@aten::miopen_convolution<+60%", "--gate", "gpu.time@convolution<+40%")
    assert done.returncode == 4
    assert done.stdout.count(": holds") == 1 and done.stdout.count("does not hold") == 1


@pytest.mark.parametrize("name, within", [("embedding", .01), ("unet", .02), ("copies", .02)])
def test_cases_before_and_after(tmp_path, name, within):
    """Recordings of an H200: the change is what the programs themselves measured without plumb."""
    folder = ROOT / "tests" / "data" / "cases"
    measured = json.loads((folder / "measured.json").read_text())[name]
    paths = []
    for form in name, f"{name}--fixed":
        paths.append(tmp_path / f"{form}.plumb")
        paths[-1].write_bytes(gzip.decompress((folder / f"{form}.plumb.gz").read_bytes()))
    data = diff(*paths)
    assert [data["iterations"][side][0]["count"] for side in ("before", "after")] == [
        measured["recorded_steps"]] * 2
    time = measures(data)["iteration.time"]
    truth = statistics.median(measured["fixed_ms"]) / statistics.median(measured["before_ms"])
    assert time["ratio"] == pytest.approx(truth, abs=within)
    assert time["before"] / 1e6 == pytest.approx(statistics.median(measured["before_ms"]), rel=.03)
    assert time["high"] < 0
    assert [fact["key"] for fact in data["environment"]] == ["run.command"]


def test_the_same_program_under_two_profilers(tmp_path):
    """The same program, under plumb for eight steps and under PyTorch's profiler for four of eight."""
    folder = ROOT / "tests" / "data" / "foreign"
    own = tmp_path / "own.plumb"
    own.write_bytes(gzip.decompress((folder / "own.plumb.gz").read_bytes()))
    data = diff(own, folder / "torch.json.gz", "--metric", "gpu.time")
    assert [data["iterations"][side][0]["count"] for side in ("before", "after")] == [8, 4]
    found = rows(data)
    for name in "aten::mm", "aten::addmm", "aten::sum":
        assert found[name]["ratio"] == pytest.approx(1, abs=.02), name


def test_what_torch_compile_fused():
    folder = ROOT / "tests" / "data" / "foreign"
    found = rows(diff(folder / "torch.json.gz", folder / "compiled.json.gz", "--top", "0"))
    for operator in "aten::native_layer_norm", "aten::gelu", "aten::gelu_backward":
        assert found[operator]["after"] is None and found[operator]["fused_in"], operator
    assert found["aten::mm"]["fused_in"] is None and found["aten::mm"]["after"]


def test_pytorch_against_jax():
    """No operator has a name in common; the products of matrices meet by the map."""
    folder = ROOT / "tests" / "data" / "foreign"
    data = diff(folder / "torch.json.gz", folder / "jax.xplane.pb.gz", "--top", "0")
    matmul = rows(data)["matmul"]
    assert {"aten::mm", "aten::addmm"} <= set(matmul["before_names"])
    assert all("gemm" in name or "dot" in name for name in matmul["after_names"])
    assert matmul["before"] and matmul["after"]


def test_what_the_other_side_fuses(tmp_path):
    eager, compiled = Trace(), Trace()
    name = "triton_poi_fused_add_native_layer_norm_relu_0"
    for _ in range(10):
        eager.step([Work("aten::mm", "gemm", 40.0), Work("aten::add", "add_kernel", 5.0),
                    Work("aten::relu", "relu_kernel", 6.0),
                    Work("aten::native_layer_norm", "norm_kernel", 7.0),
                    Work("aten::gelu", "gelu_kernel", 3.0)])
        compiled.step([Work("aten::mm", "gemm", 40.0, outer="Torch-Compiled Region: 0/0"),
                       Work(name, name, 8.0, outer="Torch-Compiled Region: 0/0")])
    eager, compiled = eager.write(tmp_path / "a.json"), compiled.write(tmp_path / "b.json")
    found = rows(diff(eager, compiled))
    for operator in "aten::add", "aten::relu", "aten::native_layer_norm":
        assert (found[operator]["after"], found[operator]["fused_in"]) == (None, [name])
        assert found[operator]["fused_amount"] == 8_000
    assert found["aten::gelu"]["fused_in"] is None
    assert found["aten::mm"]["fused_in"] is None
    back = rows(diff(compiled, eager))
    assert (back["aten::relu"]["before"], back["aten::relu"]["fused_in"]) == (None, [name])
    assert f"aten::relu; only before; fused into {name} (8.00 µs)" in run_command(
        PLUMB, "diff", eager, compiled, "--width", "0").stdout


def test_kernels_where_a_side_has_no_operators(tmp_path):
    before = made(tmp_path, "a.json")
    bare = Trace()
    for _ in range(20):
        bare.step(works(c=12.0))
    bare.events = [event for event in bare.events if event["cat"] == "kernel"]
    data = diff(before, bare.write(tmp_path / "b.json"))
    assert (data["by"], data["metric"]) == ("kernel", "gpu.time")
    assert rows(data)["kernel_c"]["change"] == 2_000


def test_kernels_that_were_numbered_anew(tmp_path):
    before, after = Trace(), Trace()
    for _ in range(10):
        before.step([Work("r", "triton_poi_fused_add_0", 5.0), Work("r", "gemm", 5.0)])
        after.step([Work("r", "triton_poi_fused_add_3", 6.0), Work("r", "gemm", 5.0)])
    found = rows(diff(before.write(tmp_path / "a.json"), after.write(tmp_path / "b.json"), "--by", "kernel"))
    assert (found["triton_poi_fused_add"]["before"], found["triton_poi_fused_add"]["after"]) == (
        5_000, 6_000)


def kernel_time(name):
    """{operator: ns of the kernels that it launched itself}, from the file alone: the innermost operator around
    each launch."""
    events = json.loads(gzip.decompress(shared(name).read_bytes()), parse_float=decimal.Decimal)["traceEvents"]
    operators = [event for event in events if event.get("cat") == "cpu_op"]
    launches = {event["args"]["correlation"]: event for event in events
                if event.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in event["args"]}
    found = {}
    for kernel in events:
        if kernel.get("cat") != "kernel":
            continue
        launch = launches[kernel["args"]["correlation"]]
        around = [one for one in operators if one["tid"] == launch["tid"] and one["ts"] <= launch["ts"]
                  and launch["ts"] + launch["dur"] <= one["ts"] + one["dur"]]
        if around:
            operator = min(around, key=lambda one: one["dur"])["name"]
            found[operator] = found.get(operator, 0) + int(kernel["dur"] * 1000)
    return found


def test_published_traces_of_two_vendors():
    """A BERT on an H100 and a toy on an MI250: no model in common, but kinds of operators."""
    known = [kernel_time("kineto/k22_h100_bert_small.json.gz"), kernel_time("kineto/k14_mi250_minitoy.json.gz")]
    data = diff(shared("kineto/k22_h100_bert_small.json.gz"), shared("kineto/k14_mi250_minitoy.json.gz"))
    found, families = rows(data), {row["name"]: row for row in data["families"]}
    assert data["environment"] == [{"key": "gpu.devices", "before": "1 × NVIDIA H100 80GB HBM3",
                                    "after": "1 × AMD Radeon Graphics"}]
    assert data["iterations"]["from"] == "marker"
    assert [data["iterations"][side][0]["count"] for side in ("before", "after")] == [1, 1], (
        "a step without anything in it is none")
    assert measures(data)["gpu.time"]["before"] == 307_197
    assert measures(data)["gpu.time"]["after"] == 110_881
    assert measures(data)["gpu.busy"]["before"] == 309_437
    assert measures(data)["gpu.busy"]["after"] == 149_042
    assert (found["aten::addmm"]["before"], found["aten::addmm"]["after"]) == (197_598, 24_480)
    for name, row in found.items():
        assert (row["before"] or None, row["after"] or None) == (known[0].get(name), known[1].get(name)), name
    matmul = families["matmul"]
    assert matmul["before"] == found["aten::addmm"]["before"]
    assert matmul["after"] == found["aten::addmm"]["after"] + found["aten::mm"]["after"]
    assert families["attention"]["after"] is None
    assert data["rows"][0]["name"] == "aten::addmm" and data["rows"][0]["low"] is None


def test_compiled_against_eager_published():
    data = diff(shared("kineto/k22_h100_bert_small.json.gz"),
                shared("kineto/k34_torch_compile_triton.json.gz"))
    found = rows(data)
    assert found["aten::add"]["fused_in"], "names of Triton's kernels tell"
    assert all(name.startswith("triton_") and "_add_" in name for name in found["aten::add"]["fused_in"])
    assert found["aten::_flash_attention_forward"]["fused_in"] is None


@pytest.fixture(scope="module")
def two_versions(tmp_path_factory):
    pythons = torch_pythons()
    if len(pythons) < 2:
        pytest.skip("one PyTorch alone: name another in PLUMB_TORCH_PYTHONS")
    folder = tmp_path_factory.mktemp("versions")
    program = folder / "train.py"
    program.write_text("""\
import torch
model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=.1)
x = torch.randn(64, 32)
import sys
for _ in range(int(sys.argv[1])):
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
""")
    made = []
    for python, steps in zip(pythons, ("20", "30")):
        run = run_program(python, program, steps, folder=folder, name=f"{steps}.plumb")
        assert run.done.returncode == 0, run.done.stderr
        made.append(run.path)
    return made


def test_two_versions_of_pytorch(two_versions):
    data = diff(*two_versions, "--metric", "op.calls", "--top", "0")
    assert [data["iterations"][side][0]["count"] for side in ("before", "after")] == [20, 30]
    assert data["iterations"]["from"] == "marker"
    assert {"torch.version", "run.command"} <= {fact["key"] for fact in data["environment"]}
    found = rows(data)
    for name, calls in ("aten::addmm", 2), ("aten::linear", 2), ("aten::relu", 1), ("aten::mm", 3):
        assert (found[name]["before"], found[name]["after"]) == (calls, calls), name
    lines = diff(*two_versions, "--metric", "op.calls", "--by", "context", "--top", "0")["rows"]
    ids = {row["id"]: row for row in lines}
    linear = [row for row in lines if row["name"] == "aten::linear"]
    assert len(linear) == 2, "the lines of the library moved, and met all the same"
    for row in linear:
        assert (row["exclusive"]["before"], row["exclusive"]["after"]) == (1, 1)
        above = ids[row["parent"]]
        assert above["name"] == "Linear.forward" and above["line"] and above["after_line"]


# ---- the environment ----


def test_environment(tmp_path):
    before, after = Trace("NVIDIA H100"), Trace("NVIDIA H200")
    for trace in before, after:
        for _ in range(5):
            trace.step(works())
    data = diff(before.write(tmp_path / "a.json"), after.write(tmp_path / "b.json"))
    assert data["environment"] == [{"key": "gpu.devices", "before": "1 × NVIDIA H100",
                                    "after": "1 × NVIDIA H200"}]
    recorded = ROOT / "tests" / "data" / "h200_training.plumb"
    facts = {fact["key"]: fact for fact in diff(recorded, tmp_path / "b.json")["environment"]}
    assert facts["torch.version"] == {"key": "torch.version", "before": "2.11.0+cu130", "after": None}
    assert facts["gpu.driver"]["before"] == "580.159.04"
    assert not {"run.started", "run.output", "import.files"} & set(facts)


# ---- gates ----


@pytest.mark.parametrize("expression, code", [
    ("gpu.time<+10%", 0), ("gpu.time<+4%", 4), ("gpu.time<4%", 4), ("gpu.time < +10 %", 0),
    ("gpu.time<+4us", 0), ("gpu.time<+3us", 4), ("gpu.time<+2µs", 4), ("gpu.time<+0.003ms", 4),
    ("gpu.time>-1%", 0), ("gpu.time>+6%", 4), ("iteration.time<+5%", 0), ("iteration.time<+3us", 4),
    ("gpu.busy<+1ms", 0), ("gpu.idle<+1ns", 0), ("gpu.idle<+0ns", 4), ("gpu.time@aten::c<+40%", 0),
    ("gpu.time@aten::c<+20%", 4), ("gpu.time@aten::a<+1ns", 0), ("gpu.time@aten::none<+5%", 4),
    ("op.calls<+1", 0), ("op.calls<+0", 4), ("run.time<+100%", 0), ("mem.peak<+5%", 4),
])
def test_gates(tmp_path, expression, code):
    before = made(tmp_path, "a.json")
    after = made(tmp_path, "b.json", c=13.0)
    data = diff(before, after, "--gate", expression, code=code)
    assert data["gate"] == {"expression": expression, "holds": code == 0}
    assert data["gates"][0]["holds"] is (code == 0)
    assert (data["gates"][0]["why"] is None) == (expression[:3] != "mem" and "none" not in expression)


@pytest.mark.parametrize("before, after, percent", [(50, 52.5, 5), (100, 95, -5), (100, 90, -10), (20, 23, 15), (40, 40, 0)])
def test_exactly_the_limit_is_neither_less_nor_more(tmp_path, before, after, percent):
    before, after = made(tmp_path, "a.json", c=before), made(tmp_path, "b.json", c=after)
    for sign in "<>":
        expression = f"gpu.time@aten::c{sign}{percent:+}%"
        assert diff(before, after, "--gate", expression, code=4)["gates"][0]["why"] is None
    diff(before, after, "--gate", f"gpu.time@aten::c>{percent - .001:+}%", "--gate", f"gpu.time@aten::c<{percent + .001:+}%")


def without_gpu(trace, path):
    """The same program, of whose GPU nothing was recorded."""
    events = [made for made in trace.events if made["cat"] not in ("kernel", "cuda_runtime")]
    return save(path, *events, deviceProperties=[])


def test_what_a_side_did_not_record_is_unknown_in_all_rows(tmp_path):
    before, after = Trace(), Trace()
    for _ in range(10):
        before.step(works())
        after.step(works())
    before, blind = before.write(tmp_path / "a.json"), without_gpu(after, tmp_path / "b.json")
    for by in "operator", "context":
        data = diff(before, blind, "-m", "gpu.time", "--by", by, "--top", "0")
        assert data["rows"] and all(row["before"] is not None and row["after"] is None for row in data["rows"]), by
        assert {row["after"] for row in data["families"]} <= {None}
        assert measures(data)["gpu.time"]["after"] is None
    data = diff(before, blind, "-m", "gpu.time", "--gate", "gpu.time@aten::a<+5%", code=4)
    assert data["gates"][0]["why"] == "it is unknown on the second side"
    # nor is a mean of runs that did not all record it
    data = diff("-m", "gpu.time", before, before, "--", before, blind)
    assert {row["after"] for row in data["rows"]} == {None}


def test_copies_that_are_gone_are_none(tmp_path):
    """The device is recorded, so that without a copy there was none of it: a change, and a gate that holds."""
    def trace(path, copies):
        made = Trace()
        for _ in range(10):
            made.step(works())
            if copies:
                made.add("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 0, STREAM, made.gpu, 2, device=0, stream=STREAM,
                         correlation=0, bytes=4096)
                made.gpu += 2
        return made.write(path)

    with_copies, without = trace(tmp_path / "a.json", True), trace(tmp_path / "b.json", False)
    data = diff(with_copies, without, "-m", "gpu.copy_time", "--gate", "gpu.copy_time<+1%")
    assert (measures(data)["gpu.copy_time"]["before"], measures(data)["gpu.copy_time"]["after"]) == (2000, 0)
    data = diff(without, with_copies, "-m", "gpu.copy_time", "--gate", "gpu.copy_time<+1%", code=4)
    assert data["gates"][0]["why"].startswith("it was 0 before")


@pytest.mark.parametrize("expression", [
    "", "gpu.time", "gpu.time<", "<+5%", "gpu.time<five", "gpu.time<+5 parsec", "gpu.time@<+5%", "gpu.time<+5MiB",
    "nothing.known<+5%", "iteration.time@aten::a<+5%", "gpu.time<0x10%", "gpu.time<nan%", "gpu.time<+%",
    "gpu.time<+5%%", "gpu.time<1e999%", "x" * 200 + "<+5%", "op.calls<+2ms",
])
def test_wrong_gates(tmp_path, expression):
    path = made(tmp_path, "a.json", steps=5)
    done = run_command(PLUMB, "diff", path, path, "--gate", expression)
    assert done.returncode == 1, done.stdout
    assert done.stdout == "" and "gate" in done.stderr or "metric" in done.stderr


def test_several_gates(tmp_path):
    before, after = made(tmp_path, "a.json"), made(tmp_path, "b.json", c=13.0)
    data = diff(before, after, "--gate", "gpu.time<+10%", "--gate", "gpu.time<+1%", code=4)
    assert [gate["holds"] for gate in data["gates"]] == [True, False]
    assert data["gate"] == {"expression": "gpu.time<+10% and gpu.time<+1%", "holds": False}
    assert [gate["certain"] for gate in data["gates"]] == [True, True]
    done = run_command(PLUMB, "diff", before, after, "--gate", "gpu.time<+1%", "--csv")
    assert done.returncode == 4 and "does not hold" in done.stderr


def test_a_gate_says_that_no_spread_is_known(tmp_path):
    before, after = made(tmp_path, "a.json", steps=1), made(tmp_path, "b.json", steps=1, c=12.0)
    data = diff(before, after, "--gate", "gpu.time@aten::c<+50%")
    assert data["iterations"]["from"] is None
    (gate,) = data["gates"]
    assert (gate["holds"], gate["certain"], gate["low"], gate["high"], gate["spread"]) == (
        True, None, None, None, None)
    done = run_command(PLUMB, "diff", before, after, "--gate", "gpu.time@aten::c<+50%")
    assert "interval unknown" in done.stdout
    assert "not known of every run" in done.stdout


def test_a_limit_within_the_interval_is_said(tmp_path):
    noise = random.Random(3)
    before = made(tmp_path, "a.json", 30, jitter=lambda k: 1 + noise.gauss(0, .1))
    after = made(tmp_path, "b.json", 30, jitter=lambda k: 1 + noise.gauss(0, .1))
    (gate,) = diff(before, after, "--gate", "gpu.time<+100%")["gates"]
    assert gate["certain"] is True
    middle = 100 * (gate["ratio"] - 1) + .5
    (gate,) = diff(before, after, "--gate", f"gpu.time<{middle:+.3f}%")["gates"]
    assert (gate["holds"], gate["certain"]) == (True, False)


# ---- forms ----


def test_csv_has_what_json_has(tmp_path):
    before, after = made(tmp_path, "a.json"), made(tmp_path, "b.json", c=13.0)
    found = rows(diff(before, after))
    done = run_command(PLUMB, "diff", before, after, "--csv")
    table = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["name"] for row in table] == list(found)
    for row in table:
        for key in "before", "after", "change", "ratio":
            assert float(row[key]) == found[row["name"]][key]


def test_top(tmp_path):
    before, after = made(tmp_path, "a.json"), made(tmp_path, "b.json", c=13.0, d=12.0)
    assert [row["name"] for row in diff(before, after, "--top", "2")["rows"]] == ["aten::c", "aten::d"]
    assert len(diff(before, after, "--top", "0")["rows"]) == 6
    names = [row["name"] for row in diff(before, after, "--by", "context", "--top", "3")["rows"]]
    assert "all" in names and len(names) < 10
    assert "4 more" in run_command(PLUMB, "diff", before, after, "--top", "2").stdout


def test_wrong_use_and_nothing(tmp_path):
    path = made(tmp_path, "a.json", steps=3)
    for arguments, code in [
            ([path], 1), ([path, path, "--json", "--csv"], 1), ([path, path, path], 1),
            ([path, path, "--metric", "none.such"], 1), ([path, path, "--iterations", "5"], 1),
            ([path, path, "--iterations", "0,5"], 1), ([path, tmp_path / "none"], 2),
            ([path, path, "--by", "module"], 3), ([path, path, "--by", "iteration", "-m", "gpu.time"], 1)]:
        done = run_command(PLUMB, "diff", *arguments)
        assert done.returncode == code or (code == 2 and done.returncode in (2, 5)), done.stderr
        assert done.stderr


def test_iteration_by_iteration(tmp_path):
    before = made(tmp_path, "a.json", steps=8)
    after = made(tmp_path, "b.json", steps=9, jitter=lambda k: 2.0 if k == 4 else 1.0)
    data = diff(before, after, "--by", "iteration", "--top", "0")
    found = {row["name"]: (row["before"], row["after"]) for row in data["rows"]}
    assert len(found) == 8 and found["iteration 7"] == (None, 65_000)
    assert found["iteration 4"] == (65_000, 125_000) and found["iteration 0"] == (65_000, 65_000)
    assert data["rows"][0]["name"] in ("iteration 4", "iteration 7")
