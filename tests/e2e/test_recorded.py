# SPDX-License-Identifier: Apache-2.0
"""Reports on profiles that were recorded on an NVIDIA H200 (PyTorch 2.11, CUDA 13.0).

h200_training.plumb is a run of tests/accuracy/training.py under plumb, and h200_training.json what
torch.profiler said of the same program in another run of the same session: the comparison that
tests/accuracy/compare.py makes on a GPU holds here for what plumb reads and reports. The folder of the
program was renamed to /repo in the profile. h200_example.plumb is a run of examples/train.py.
"""
import json
import pathlib
import subprocess
import sys

import pytest

from conftest import PLUMB

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
sys.path.insert(0, str(ROOT / "tests" / "accuracy"))

import compare  # noqa: E402

import plumb  # noqa: E402


def report(name, *options):
    done = subprocess.run([PLUMB, "report", str(DATA / name), "--json", "--top", "0", *options],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def training():
    return report("h200_training.plumb", "--by", "context")


def test_kernels_of_each_operator_are_those_of_torch_profiler(training):
    ours, kernels, under_python = compare.plumb_operators(training)
    theirs = json.loads((DATA / "h200_training.json").read_text())
    assert {name: row["count"] for name, row in ours.items()} == \
        {name: row["count"] for name, row in theirs.items()}
    assert under_python == kernels


def test_time_of_each_operator_is_that_of_torch_profiler(training):
    ours, _, _ = compare.plumb_operators(training)
    theirs = json.loads((DATA / "h200_training.json").read_text())
    total = sum(row["ns"] for row in theirs.values())
    large = {name for name, row in theirs.items() if row["ns"] >= 0.01 * total}
    assert len(large) > 10
    for name in large:
        # 3 % is the goal; two equal runs of one tool differ by up to 7 % where kernels last a
        # microsecond, and compare.py, which has two runs of each, judges by that.
        assert ours[name]["ns"] == pytest.approx(theirs[name]["ns"], rel=0.08), name


def test_by_operator_says_the_same_as_the_contexts(training):
    """The operator report's exclusive part is what the innermost operator launched."""
    rows = {row["name"]: row for row in report("h200_training.plumb", "--by", "operator")["rows"]}
    ours, _, _ = compare.plumb_operators(training)
    for name, row in ours.items():
        if name in rows and name != "accuracy":
            assert rows[name]["exclusive"]["gpu.time"]["count"] >= row["count"], name
    assert rows["aten::convolution_backward"]["exclusive"]["gpu.time"]["count"] == \
        ours["aten::convolution_backward"]["count"]


def test_backward_kernels_lie_under_their_forward_operators(training):
    rows = {row["source"]: row for row in training["ledger"]}
    fates = {fate["reason"]: fate["count"] for fate in rows["backward"]["fates"]}
    assert sum(fates.values()) == rows["backward"]["received"]
    assert not any("not seen" in reason for reason in fates)
    assert any("under its forward operator" in reason for reason in fates)
    assert any("accumulation" in reason for reason in fates)


def test_nothing_was_lost(training):
    assert all(row["dropped"] == 0 for row in training["ledger"])
    device, = training["devices"]
    assert device["name"] == "NVIDIA H200" and device["uuid"].startswith("GPU-")
    total = sum(context["exclusive"]["gpu.time"]["count"] for context in training["contexts"]
                if context["kind"] == "kernel")
    assert device["kernels"]["count"] == total
    assert 0 < device["busy_ns"] <= device["span_ns"]
    assert device["busy_ns"] + device["idle_ns"] == device["span_ns"]
    assert device["busy_ns"] <= sum(device[kind]["ns"] for kind in ("kernels", "copies", "sets"))


def phases(name, *options):
    return {row["name"]: row["exclusive"]["gpu.time"]
            for row in report(name, "--by", "phase", *options)["rows"]
            if "gpu.time" in row["exclusive"]}


def test_phases_of_the_training(training):
    """Recorded before modules were frames: PyTorch's own functions tell. Every kernel has one phase."""
    found = phases("h200_training.plumb")
    assert sum(stat["count"] for stat in found.values()) == training["devices"][0]["kernels"]["count"]
    backward = sum(context["exclusive"]["gpu.time"]["count"] for context in training["contexts"]
                   if context["kind"] == "kernel" and in_backward(training, context))
    assert found["backward"]["count"] >= backward > 0
    assert found["backward"]["sum"] > found["forward"]["sum"] > found["loss"]["sum"] > 0
    assert found["optimizer"]["count"] == 682 and found["other"]["count"] > 0


def in_backward(training, context):
    by_id = {c["id"]: c for c in training["contexts"]}
    while context:
        if context["backward"]:
            return True
        context = by_id.get(context["parent"])
    return False


def test_phases_of_the_example():
    found = phases("h200_example.plumb")
    assert list(found) == ["backward", "forward", "optimizer", "other", "loss"]
    copies = report("h200_example.plumb", "--by", "phase", "--metric", "gpu.copy_time")["rows"]
    assert all(row["kind"] == "phase" and row["file"] is None for row in copies)


def test_lines_of_the_example():
    lines = (ROOT / "examples" / "train.py").read_text().splitlines()
    rows = report("h200_example.plumb", "--by", "kernel")["rows"]
    own = {row["user_line"] for row in rows}
    assert rows and own and all(row["user_file"].endswith("train.py") for row in rows)
    assert all(1 <= line <= len(lines) and lines[line - 1].strip() for line in own)


def test_python_package_reads_it():
    profile = plumb.Profile(DATA / "h200_training.plumb")
    kernels = sum(kernel.exclusive["gpu.time"].count for kernel in profile.kernels)
    assert kernels == profile.root.inclusive["gpu.time"].count
    backward = [op for op in profile.operators if op.name == "ConvolutionBackward0"]
    assert backward and all(op.forward.name == "aten::convolution" or "conv" in op.forward.name
                            for op in backward)
    for kernel in profile.kernels:
        assert 0 < kernel.exclusive["gpu.occupancy"].max <= 1_000_000
        assert kernel.exclusive["gpu.registers"].min > 0


def test_an_older_schema_has_unknowns_and_not_zeros(training):
    """The profiles are of schema 1, which knows nothing of several processes on a device."""
    assert [(device["processes"], device["contended_ns"]) for device in training["devices"]] == \
        [([], None)]
    assert training["ranks"] == []
    assert training["run"]["recorded_ns"] == training["run"]["wall_ns"]
    with plumb.Profile(DATA / "h200_training.plumb") as profile:
        assert profile.device_processes == []
