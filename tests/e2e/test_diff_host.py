# SPDX-License-Identifier: Apache-2.0
"""Idle time that moves: no row of GPU time explains why an iteration got shorter, but the host's rows do."""
import json

import pytest
from conftest import PLUMB, run_command
from steps_traces import Rank, step, trace

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
STEPS = 20


def imported(folder, name, loading, length=50.0, workers=0):
    """20 steps that load for LOADING µs. WORKERS: other processes that call operators meanwhile."""
    rank = Rank()
    for number in range(STEPS):
        step(rank, load=loading + number % 3, length=length)
    for worker in range(workers):
        other = Rank(pid=500 + worker)
        for number in range(STEPS):
            other.host("cpu_op", "aten::stack", 1000.0 + 5000 * number, 4000)
        rank.events += other.events
    done = run_command(PLUMB, "import", trace(folder, [rank], name), "-o", folder / f"{name}.plumb")
    assert done.returncode == 0, done.stderr
    return folder / f"{name}.plumb"


def diff(*arguments):
    done = run_command(PLUMB, "diff", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("loading, sign", [((3000, 200), -1), ((200, 3000), 1)])
def test_the_hosts_rows_explain_idle_time(tmp_path, loading, sign):
    before, after = (imported(tmp_path, name, load) for name, load in zip("ab", loading))
    host = json.loads(diff(before, after, "--json"))["host"]
    assert host["metric"] == "op.time" and host["by"] == "range"
    row, = host["rows"]
    assert row["name"].startswith("enumerate(DataLoader)")
    assert abs(row["change"] - sign * 2.8e6) < 0.01 * 2.8e6
    assert row["low"] is None or row["low"] <= row["ratio"] - 1 <= row["high"]
    assert abs(host["step_change"] - sign * 2.8e6) < 0.05 * 2.8e6
    assert abs(host["gpu_idle_change"] - host["step_change"]) < 0.05 * 2.8e6
    text = diff(before, after)
    assert "explains it:" in text
    head = text[text.index("explains it:"):text.index("gpu.time by operator")]
    assert "enumerate(DataLoader)" in head


def test_workers_do_not_count(tmp_path):
    """What other processes do is not on the way of the step."""
    before = imported(tmp_path, "a", 3000)
    after = imported(tmp_path, "b", 200, workers=4)
    host = json.loads(diff(before, after, "--json"))["host"]
    assert [row["name"].partition("#")[0] for row in host["rows"]] == ["enumerate(DataLoader)"]


def test_gpu_time_that_explains_it_needs_no_host(tmp_path):
    before, after = imported(tmp_path, "a", 200), imported(tmp_path, "b", 200, length=100.0)
    assert json.loads(diff(before, after, "--json"))["host"] is None
    assert "explains it" not in diff(before, after)


def test_the_same_needs_no_host(tmp_path):
    before, after = imported(tmp_path, "a", 3000), imported(tmp_path, "b", 3000)
    assert json.loads(diff(before, after, "--json"))["host"] is None
