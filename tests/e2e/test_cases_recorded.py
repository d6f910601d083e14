# SPDX-License-Identifier: Apache-2.0
"""The cases of examples/cases as they ran on an NVIDIA H200 (PyTorch 2.11, CUDA 13.0).

tests/data/cases/ is what tests/accuracy/cases.py left there: a profile of each variant, and measured.json,
the times without plumb. What is asserted here is made anew by this plumb's analyses, from the profiles.
"""
import gzip
import json
import re
import sqlite3
import subprocess
import sys

import pytest

from conftest import PLUMB, ROOT

DATA = ROOT / "tests" / "data" / "cases"
PROGRAMS = ROOT / "examples" / "cases"
sys.path.insert(0, str(ROOT / "tests" / "accuracy"))

import cases  # noqa: E402

MEASURED = json.loads((DATA / "measured.json").read_text())
AGAIN = ("--threshold", "hotspot.share=10%")  # its default: the analyses run again

# The person's line that a case's finding names.
LINES = {
    "embedding": "return self.table[ids]",
    "unet": "x = up(torch.cat([levels.pop(), x], dim=1))",
    "loss": "highest = scores.max(dim=1, keepdim=True).values.detach()",
    "loader": "for images, kinds in loader:",
    "copies": "return batch.to(chosen.device, non_blocking=chosen.fixed)",
}
WARM_UP = 5
CONVOLUTIONS = {"aten::cudnn_convolution", "aten::convolution_backward"}


class Recorded:
    def __init__(self, folder):
        self.folder = folder
        self.reports = {}

    def path(self, name):
        path = self.folder / f"{name}.plumb"
        if not path.exists():
            path.write_bytes(gzip.decompress((DATA / f"{name}.plumb.gz").read_bytes()))
        return path

    def report(self, name):
        if name not in self.reports:
            done = subprocess.run([PLUMB, "report", self.path(name), "--findings", "--json", *AGAIN],
                                  capture_output=True, text=True, check=True)
            self.reports[name] = json.loads(done.stdout)
        return self.reports[name]

    def finding(self, case):
        found, = cases.findings_of(self.report(case), case)
        return found

    def query(self, name, text, *values):
        db = sqlite3.connect(f"file:{self.path(name)}?immutable=1", uri=True)
        try:
            return db.execute(text, values).fetchall()
        finally:
            db.close()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    return Recorded(tmp_path_factory.mktemp("cases"))


def test_each_case_was_recorded_and_measured():
    assert set(MEASURED) == set(cases.CASES) == set(LINES)
    assert {path.name for path in DATA.glob("*.gz")} == \
        {f"{case}{variant}.plumb.gz" for case in cases.CASES for variant in cases.VARIANTS}
    for case in MEASURED.values():
        assert min(len(case["before_ms"]), len(case["fixed_ms"])) >= 2


@pytest.mark.parametrize("case", cases.CASES)
def test_found_before_the_fix_at_the_line_and_not_after(recorded, case):
    evidence = recorded.finding(case)["evidence"]
    lines = (PROGRAMS / f"{case}.py").read_text().splitlines()
    assert evidence["user_file"] == f"/repo/examples/cases/{case}.py"
    assert lines[evidence["user_line"] - 1].strip() == LINES[case]
    assert cases.findings_of(recorded.report(f"{case}--fixed"), case) == []


@pytest.mark.parametrize("case", cases.CASES)
def test_the_cause_comes_before_idle_time_without_a_reason(recorded, case):
    """The runs are short, so start-up alone makes their GPU idle most of the time."""
    found = recorded.report(case)["findings"]
    idle = next((at for at, one in enumerate(found) if one["id"].startswith("latency-idle-")), len(found))
    own = next(at for at, one in enumerate(found) if one["id"] == recorded.finding(case)["id"])
    assert own < idle or found[own]["severity"] == "note"


@pytest.mark.parametrize("case", cases.CASES)
def test_the_bound_is_at_least_what_the_fix_gains(recorded, case):
    measured = MEASURED[case]
    gain = cases.gain_ms(measured)
    bound = cases.bound_ms(recorded.finding(case), measured["recorded_steps"])
    assert 0 < gain <= bound
    # And it is a gain: no round of the fixed program is as slow as any of the other.
    assert max(measured["fixed_ms"]) < min(measured["before_ms"])


def test_the_page_says_what_was_measured(recorded):
    """The rows of docs/cases.md are those of tests/accuracy/cases.py."""
    page = (ROOT / "docs" / "cases.md").read_text()
    for case in cases.CASES:
        reports = {variant: recorded.report(case + variant) for variant in cases.VARIANTS}
        row, holds = cases.judge(case, MEASURED[case], reports)
        assert holds and row in page


@pytest.mark.parametrize("case", cases.CASES)
def test_nothing_was_lost_and_nothing_names_the_machine(recorded, case):
    for variant in cases.VARIANTS:
        name = case + variant
        assert recorded.query(name, "SELECT source FROM ledger_totals WHERE dropped > 0") == []
        environment = recorded.report(name)["run"]["environment"]
        assert environment["torch.library"].startswith("/venv/lib/python")
        assert (environment["host.name"], environment["host.kernel"]) == ("host", "Linux")
        assert recorded.report(name)["devices"][0]["name"] == "NVIDIA H200"


# ---- the numbers, from the tables ----

# Kernels: context, label, time, count, and whether they ran in a backward pass.
KERNELS = """SELECT k.context, k.label, e.value, e.count, EXISTS (
                 SELECT 1 FROM paths p JOIN context_frames a ON a.context = p.ancestor
                 WHERE p.context = k.context AND a.backward)
             FROM context_frames k
             JOIN exclusive e ON e.context = k.context AND e.metric = 'gpu.time'
             WHERE k.kind = 'kernel'"""
BELOW = KERNELS + """ AND EXISTS (SELECT 1 FROM paths p WHERE p.context = k.context
                                  AND p.kind = ? AND p.label = ?)"""


def test_embedding_backward_is_the_kernels_below_index(recorded):
    evidence = recorded.finding("embedding")["evidence"]
    below = recorded.query("embedding", BELOW, "operator", "aten::index")
    times = [sum(row[2] for row in below if row[4] == backward) for backward in (0, 1)]
    assert [evidence["forward_ns"], evidence["backward_ns"]] == times
    assert recorded.finding("embedding")["saving_ns"] == times[1]
    assert evidence["ratio"] == pytest.approx(times[1] / times[0]) and evidence["ratio"] > 5
    assert "indexing_backward_kernel" in evidence["backward_kernels"][0]["name"]
    assert evidence["backward_kernels"][0]["count"] == MEASURED["embedding"]["recorded_steps"]


def conversions(recorded, name):
    """Layout kernels: context to time, count."""
    return {row[0]: row[2:4] for row in recorded.query(name, KERNELS)
            if re.search("nchwToNhwc|nhwcToNchw", row[1])}


def test_unet_conversions_lie_under_each_operator_that_causes_them(recorded):
    finding, found = recorded.finding("unet"), conversions(recorded, "unet")
    evidence = finding["evidence"]
    assert finding["saving_ns"] == evidence["gpu_time_ns"] == sum(time for time, _ in found.values())
    assert evidence["kernels"] == sum(count for _, count in found.values())
    assert evidence["kernels"] % MEASURED["unet"]["recorded_steps"] == 0
    operators, modules = {}, set()
    for context, (time, count) in found.items():
        path = recorded.query("unet", "SELECT kind, label, file FROM paths WHERE context = ?"
                                      " ORDER BY position", context)
        operator = [label for kind, label, _ in path if kind == "operator"][-1]
        before = operators.get(operator, (0, 0))
        operators[operator] = (before[0] + time, before[1] + count)
        modules |= {label for kind, label, file in path if kind == "module" and "Conv2d" in file}
        natives = [label for kind, label, _ in path if kind == "native"]
        assert evidence["native"] in natives
        assert any("cudnn_convolution" in label for label in natives)
        assert "cudnnBackendExecute" in natives
    assert set(operators) == CONVOLUTIONS
    assert {row["name"]: (row["ns"], row["count"]) for row in evidence["operators"]} == operators
    assert len(modules) > 10
    assert "+0x" not in evidence["native"] and "cudnn" in evidence["native"]


def test_unet_converts_nothing_in_channels_last(recorded):
    assert conversions(recorded, "unet--fixed") == {}


def test_loss_is_named_with_its_kernels_in_both_directions(recorded):
    # The steps before those that are timed are called at another line: a part of the program of their own.
    finding, steps = recorded.finding("loss"), MEASURED["loss"]["recorded_steps"] - WARM_UP
    evidence = finding["evidence"]
    assert finding["title"].startswith("loss_fn (loss.py:")
    kernels = [row for row in recorded.query("loss", BELOW, "python", "loss_fn")
               if row[3] >= 4 * steps]
    assert evidence["kernels"] == sum(row[3] for row in kernels)
    assert evidence["gpu_time_ns"] == sum(row[2] for row in kernels)
    assert evidence["different_kernels"] == len(kernels)
    assert evidence["repetitions"] == 4 * steps and evidence["equal_share"] > 0.75
    assert evidence["mean_ns"] < 10_000 and finding["confidence"] == pytest.approx(0.9)
    # One kernel of mean length is left of each repetition and direction, and none of the gaps.
    saved = evidence["gaps_ns"]
    for way in (0, 1):
        time, count = (sum(row[column] for row in kernels if row[4] == way) for column in (2, 3))
        saved += time * (1 - 4 * steps / count)
    assert finding["saving_ns"] == pytest.approx(saved, abs=2)
    fused = recorded.query("loss--fixed", BELOW, "python", "fused_loss_fn")
    assert 0 < 3 * sum(row[3] for row in fused) < evidence["kernels"]


@pytest.mark.parametrize("name, verdict", [("loader", "host-bound"), ("copies", "copy-bound")])
def test_what_bounds_the_iterations(recorded, name, verdict):
    """The loader's batches are copied in the short intervals, too, but its workers are the long ones'."""
    done = subprocess.run([PLUMB, "iters", recorded.path(name), "--json"], capture_output=True,
                          text=True, check=True)
    main, = [track for track in json.loads(done.stdout)["tracks"] if track["role"] == "main"]
    assert main["levels"][0]["verdict"] == verdict


def test_loader_names_workers_and_processors(recorded):
    evidence = recorded.finding("loader")["evidence"]
    assert (evidence["workers"], evidence["cores"]) == (64, 16)
    assert evidence["processes"] == 65 and evidence["metric"] == "cpu.time"
    assert evidence["device_busy_ns"] + recorded.finding("loader")["saving_ns"] == \
        evidence["device_span_ns"]
    processes, = recorded.query("loader--fixed", "SELECT count(*) FROM processes")
    assert processes == (16,)  # 15 workers


def test_copies_are_all_batches(recorded):
    evidence, steps = recorded.finding("copies")["evidence"], MEASURED["copies"]["recorded_steps"]
    assert evidence["direction"] == "pageable\u2192device"
    assert (evidence["count"], evidence["bytes"]) == (steps, steps * 4096 * 4096 * 4)
    assert recorded.finding("copies")["saving_ns"] == evidence["host_wait_ns"]
    pinned, = recorded.query("copies--fixed", """
        SELECT sum(e.count), sum(e.value) FROM context_frames c JOIN exclusive e ON e.context = c.context
        WHERE c.label = 'copy pinned\u2192device' AND e.metric = 'gpu.copy_bytes'""")
    assert pinned[0] == steps and pinned[1] == evidence["bytes"]
