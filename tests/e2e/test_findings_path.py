# SPDX-License-Identifier: Apache-2.0
"""Findings that are about no context of their own, but about what the host does, a device, or copies, are bounded by
the critical path too. Traces made here whose schedule is known; times are µs."""
import gzip
import sqlite3

import steps_traces
from conftest import ROOT
from importing import imported
from plumbtest import findings
from test_iters_path import MAIN, Trace


def finding(path, cause, *options):
    (found,) = [one for one in findings(path, *options) if one["evidence"].get("cause") == cause]
    assert found["evidence"]["saving_bound"] == "critical path"
    return found["saving_ns"], found["evidence"]


def test_waits_for_the_host(tmp_path):
    """A step takes 1000: 100 of the host, a launch of 10, a kernel of 190, 400 that nothing explains, a kernel of 250, 10
    until the host goes on, and 40 in which nothing is recorded. Without all that the host does 840 are left."""
    trace = Trace()
    for step in range(12):
        at = 1000 * step
        trace.host("prepare", at, 100)
        trace.host("aten::mm", at + 100, 20)
        first = trace.call("cudaLaunchKernel", at + 100, 5)
        trace.work(first, "first", at + 110, 190)
        second = trace.call("cudaLaunchKernel", at + 110, 5)
        trace.work(second, "second", at + 700, 250)
        trace.sync("Context Sync", trace.call("cudaDeviceSynchronize", at + 130, 830), -1)
    path = trace.write(tmp_path)
    # The longest wait, which an iteration begins after, is the one of 400.
    saving, evidence = finding(path, "intervals")
    assert evidence["waited_ns"] == 10 * 400_000
    assert evidence["step_saving_ns"] == 160_000
    assert saving <= 11 * 160_000 + 110_000  # before the first kernel
    # Where the waits are less than half of the time, nothing but the idle time is named.
    for one in findings(path, "--threshold", "latency.share=99%,latency.idle=10%"):
        if one["evidence"].get("cause") == "idle":
            assert one["evidence"]["step_saving_ns"] == 160_000
            assert one["saving_ns"] <= 11 * 160_000 + 110_000
            break
    else:
        raise AssertionError("no finding of idle time")


def test_copies_beside_the_host(tmp_path):
    """A copy of 300 fills the interval, but the host launches the kernel behind it only at 210. Without the copy, and its
    call of 5, that is 205; 10 for the launch and 5 that nothing explains, and the kernel begins 105 earlier."""
    trace = Trace()
    for step in range(12):
        at = 1000 * step
        trace.host("aten::copy_", at + 8, 10)
        copy = trace.call("cudaMemcpyAsync", at + 10, 5)
        trace.add("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", MAIN, at + 20, 300, device=0, context=1, stream=MAIN,
                  correlation=copy, bytes=1 << 20)
        trace.host("aten::mm", at + 20, 200)
        kernel = trace.call("cudaLaunchKernel", at + 210, 5)
        trace.work(kernel, "gemm", at + 325, 500)
        trace.sync("Context Sync", trace.call("cudaDeviceSynchronize", at + 230, 605), -1)
        trace.host("aten::add", at + 838, 10)
        trace.work(trace.call("cudaLaunchKernel", at + 840, 5), "add", at + 850, 20)
    saving, evidence = finding(trace.write(tmp_path), "copies")
    assert evidence["step_saving_ns"] == 105_000
    assert 11 * 105_000 <= saving <= 12 * 105_000  # 3 300 000 lie in intervals


def test_contention_behind_the_host(tmp_path):
    """Two processes have kernels on one device at once all the time, and nobody waits for them but the end."""
    ranks = [steps_traces.Rank(rank, device=0, pid=100 + rank, base=1000 + 3 * rank) for rank in range(2)]
    for rank in ranks:
        for step in range(20):
            for i in range(8):
                rank.operator(f"aten::op{i}", f"kernel{i}", 9)
            rank.now += 5
    profile = imported(tmp_path, steps_traces.trace(tmp_path, ranks, one_device=True))
    with sqlite3.connect(profile) as database:  # a trace does not tell this of itself; a recording does
        database.execute("UPDATE devices SET contended_ns = 1000000")
    saving, evidence = finding(profile, "contention", "--threshold", "iterations.contended=5%")
    assert evidence["contended_ns"] == 1_000_000
    assert evidence["step_saving_ns"] == 0
    assert saving <= 20_000
    assert evidence["hides_behind"].startswith("host")


def test_python_code_between_two_spans(tmp_path):
    """augment computes 20 ms of CPU time in each step of a loop that the GPU waits for, and has no spans: samples tell
    where it was, and that it hides behind nothing."""
    path = tmp_path / "augment.plumb"
    path.write_bytes(gzip.decompress((ROOT / "tests/data/planted/augment.plumb.gz").read_bytes()))
    (found,) = [one for one in findings(path, "--threshold", "latency.idle=29%")
                if one["evidence"].get("cause") == "host" and one["title"].startswith("augment ")]
    evidence = found["evidence"]
    assert evidence["saving_bound"] == "critical path" and "hides_behind" not in evidence
    assert found["saving_ns"] == evidence["host_ns"] > 700_000_000
    assert found["severity"] == "warning" and evidence["step_saving_ns"] > 15_000_000
