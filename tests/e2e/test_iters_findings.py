# SPDX-License-Identifier: Apache-2.0
"""What findings say of loops (growth, copies, intervals, contention), and how plumb iters tells of marks and of a
second process on the device."""
import json

import pytest
from conftest import PLUMB, run_command
from importing import shared
from plumbtest import answer, findings
from steps_traces import Rank, step, trace
from test_iters_explain import growing, main_level


def of(path, prefix, *options):
    return [found for found in findings(path, *options) if found["id"].startswith(prefix)]


def test_a_graph_that_grows(tmp_path):
    path = trace(tmp_path, [growing()])
    (found,) = of(path, "iterations-growth-")
    assert found["title"].startswith("each iteration runs 5 more kernels than the one before (200 to 445)")
    assert "added0" in found["title"]
    evidence = found["evidence"]
    assert evidence["kernels_more"] == pytest.approx(5)
    assert (evidence["first_kernels"], evidence["last_kernels"], evidence["iterations"]) == (200, 445, 50)
    assert evidence["growing"][0]["ns"] > 0
    whole = [one["duration_ns"] + (one["interval_ns"] or 0) for one in main_level(path)["iterations"]]
    assert found["saving_ns"] == pytest.approx(sum(whole) - 50 * whole[1], rel=0.1)


def test_time_that_grows(tmp_path):
    rank = Rank()
    for number in range(30):
        at = rank.now
        rank.now += 100 * number
        rank.host("cpu_op", "aten::cat", at, rank.now - at)
        step(rank)
    path = trace(tmp_path, [rank])
    (found,) = of(path, "iterations-growth-")
    assert "takes 100 µs longer than the one before: aten::cat" in found["title"]
    assert found["evidence"]["slope_ns"] == pytest.approx(100_000, rel=0.02)
    assert of(path, "iterations-growth-", "--threshold", "iterations.growth=500%") == []


def test_nothing_grows(tmp_path):
    rank = Rank()
    for number in range(30):
        step(rank, length=50.0 + (number * 7919 >> 3) % 3, copy=4096)
    assert of(trace(tmp_path, [rank]), "iterations-") == []


def test_a_batch_copied_too_large(tmp_path):
    rank = Rank()
    for _ in range(12):
        step(rank, copy=32 << 20)
    path = trace(tmp_path, [rank])
    assert main_level(path)["verdict"] == "copy-bound"
    (found,) = of(path, "iterations-copies-")
    assert "copies from the host take" in found["title"] and "32.0 MiB in each" in found["title"]
    assert found["evidence"]["copy_bytes"] == 32 << 20
    assert found["evidence"]["overlap_share"] > 0.5
    assert found["saving_ns"] == pytest.approx(11 * (32 << 20) / 10_000 * 1000, rel=0.01)


def test_intervals_that_the_host_fills(tmp_path):
    rank = Rank()
    for _ in range(12):
        rank.now += 5000
        step(rank, python=True)
    path = trace(tmp_path, [rank])
    (found,) = of(path, "latency-intervals-")
    assert "nothing recorded, at train.py:30" in found["title"]
    assert found["evidence"]["filled"][0]["ns"] > 0
    assert of(path, "latency-idle-") == [], "the same thing is not said twice"


def two_processes(alone=5, together=6):
    """A second process with work of its own between two times; kernels take twice as long then."""
    one, other = Rank(), Rank(rank=0, pid=900)
    other.number = 100_000
    for number in range(alone + together):
        if number == alone:
            other.now = other.free = one.now
        step(one, length=100.0 if number >= alone else 50.0)
    while other.now < one.now - 1000:
        step(other, length=100.0)
    for event in other.events:
        if event["cat"] in ("kernel", "gpu_memcpy"):
            event["tid"] = event["args"]["stream"] = 17
    return one, other


def test_two_processes_on_one_device(tmp_path):
    one, other = two_processes()
    path = trace(tmp_path, [one, other], one_device=True)
    mains = [track for track in answer("iters", path)["tracks"] if track["role"] == "main"]
    assert len({track["process"] for track in mains}) == 2, "each has a loop of its own"
    level = mains[0]["levels"][0]
    contended = [item["contended_ns"] for item in level["iterations"]]
    assert contended[:4] == [0] * 4 and all(ns > 0 for ns in contended[-4:])
    text = run_command(PLUMB, "iters", path).stdout
    assert "contention: another process had work on the device" in text and "2x as long" in text
    assert of(path, "iterations-growth-") == [], "a step is no growth"
    assert answer("iters", path)["ranks"] is None, "two programs on one device are no ranks"


def test_longer_kernels_beside_another_process(tmp_path):
    one, other = two_processes(alone=10, together=1)
    told = answer("iters", trace(tmp_path, [one, other], one_device=True), "--explain", "10")["explain"]
    assert told["rows"][0]["cause"] == "kernels"
    assert "2.0x as long: another process works on the device" in told["rows"][0]["text"]


@pytest.mark.parametrize("name, steps", [("k01", 6), ("k03", 5), ("k04", 6), ("k08", 3)])
def test_marks_of_published_traces(name, steps):
    known = json.loads(shared(f"oracle/iter_{name}.json").read_text())
    path = shared(f"kineto/{known['file']}")
    assert main_level(path)["marked"] == {"name": "ProfilerStep", "steps": steps, "agree": steps}
    assert f"{steps} of {steps} steps marked by ProfilerStep agree" in run_command(PLUMB, "iters", path).stdout


def test_marks_that_do_not_agree(tmp_path):
    """Two rounds in each marked step."""
    rank = Rank()
    for number in range(8):
        begin = rank.now
        step(rank)
        step(rank)
        rank.host("user_annotation", f"ProfilerStep#{number}", begin, rank.now - begin)
    level = main_level(trace(tmp_path, [rank]))
    assert level["occurrences"] == 16
    assert level["marked"] == {"name": "ProfilerStep", "steps": 8, "agree": 0}


def test_no_marks(tmp_path):
    rank = Rank()
    for _ in range(8):
        step(rank)
    assert main_level(trace(tmp_path, [rank]))["marked"] is None
