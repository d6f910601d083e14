# SPDX-License-Identifier: Apache-2.0
"""plumb diff --gate on a hundred pairs of simulated runs: those that are the same hold, those that are 5 % slower
do not; and the interval holds what it says. Figures of real runs: tests/accuracy/gate.py."""
import json
import random

from conftest import PLUMB, run_command
from difftrace import Trace, Work

PAIRS = 100
STEPS = 40


class Machine:
    """What disturbs a run: its clock is not the last one's, neighbouring steps are alike, the first ones warm up, now
    and then one is interrupted, and the host is late by what it likes."""

    def __init__(self, seed, clock=.004, noise=.015, outliers=.04):
        self.random = random.Random(seed)
        self.clock, self.noise, self.outliers = clock, noise, outliers

    def run(self, path, slowdown=1.0):
        trace = Trace()
        speed = slowdown * (1 + self.random.gauss(0, self.clock))
        drift = 0.0
        for number in range(STEPS):
            drift = .6 * drift + .8 * self.random.gauss(0, self.noise)
            scale = speed * (1 + drift) * (3 if number < 2 and self.outliers else 1)
            wait = 20 * slowdown * self.random.lognormvariate(0, .2 if self.outliers else 0)
            if self.random.random() < self.outliers:
                wait += self.random.uniform(20, 500)
            trace.step([Work(f"aten::{name}", f"kernel_{name}", 30 * scale) for name in "abcdef"], wait)
        return trace.write(path)


def gate(before, after, *expressions):
    done = run_command(PLUMB, "diff", before, after, "--json",
                       *(word for one in expressions for word in ("--gate", one)))
    assert done.returncode in (0, 4), done.stderr
    return json.loads(done.stdout)


def test_pairs_of_runs(tmp_path):
    machine = Machine(7)
    expressions = "iteration.time<+2.5%", "gpu.time<+2.5%"
    holds, caught = [0, 0], [0, 0]
    for _ in range(PAIRS):
        before = machine.run(tmp_path / "a.json")
        same = gate(before, machine.run(tmp_path / "b.json"), *expressions)
        slow = gate(before, machine.run(tmp_path / "c.json", 1.05), *expressions)
        for i in range(2):
            holds[i] += same["gates"][i]["holds"]
            caught[i] += not slow["gates"][i]["holds"]
    assert min(holds) >= 95, holds
    assert min(caught) >= 95, caught


def test_totals_would_not_do(tmp_path):
    """The disturbances are such that sums are no good: a test that cannot fail would say nothing."""
    machine = Machine(7)
    wrong = 0
    for _ in range(PAIRS):
        before, same = (machine.run(tmp_path / f"{name}.json") for name in "ab")
        totals = []
        for path in before, same:
            events = [event for event in json.loads(path.read_text())["traceEvents"]
                      if event["cat"] == "kernel"]
            totals.append(events[-1]["ts"] + events[-1]["dur"] - events[0]["ts"])
        wrong += totals[1] > 1.025 * totals[0]
    assert wrong > 10


def test_the_interval_holds_the_truth(tmp_path):
    """Runs that differ by the noise of their iterations alone: 95 % of the intervals hold zero, give or take."""
    machine = Machine(11, clock=0, outliers=0)
    holds = 0
    for _ in range(PAIRS):
        data = gate(machine.run(tmp_path / "a.json"), machine.run(tmp_path / "b.json"))
        (time,) = [one for one in data["measures"] if one["name"] == "gpu.time"]
        holds += time["low"] <= 0 <= time["high"]
    assert holds >= 92, holds
