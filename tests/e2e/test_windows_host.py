# SPDX-License-Identifier: Apache-2.0
"""Windows of traces without GPU work: from steps that a program marks, and from the order of operators and ranges."""
import json
import random

import pytest
from kineto_traces import event, save
from plumbtest import query
from test_windows_spans import check_sums, names, profile_of, total, windows  # noqa: F401

TRAIN = ("linear", "relu", "linear", "loss", "backward", "weights", "bias")
EVALUATE = ("linear", "norm", "softmax", "argmax", "gather")


class Thread:
    """A thread that runs operators, one after another, in whole and in parts of µs."""

    def __init__(self, seed=1, pid=5):
        self.events, self.now, self.pid = [], 1000.0, pid
        self.random = random.Random(seed)

    def operator(self, name, duration=20.0):
        self.events.append(event("cpu_op", name, self.now, duration, pid=self.pid))
        if duration > 8:
            self.events.append(event("cpu_op", f"{name}_inner", self.now + 2, duration - 4, pid=self.pid))
        self.now += duration + 1.5

    def many(self, ops):
        for name in ops:
            self.operator(f"aten::{name}", 10 + self.random.randrange(20))

    def start_up(self, count=80):
        for i in range(count):
            self.operator(f"aten::make_{self.random.randrange(40)}_{i % 7}", 100 + self.random.randrange(50))

    def range(self, name, body):
        start = self.now
        self.now += 0.5
        body()
        self.now += 0.5
        self.events.append(event("user_annotation", name, start, self.now - start, pid=self.pid))
        self.now += 1

    def train(self, optimizer=True):
        self.many(TRAIN)
        if optimizer:
            self.range("Optimizer.step#SGD.step", lambda: self.many(["add_"]))

    def vary(self):
        """What differs each time."""
        for _ in range(self.random.randint(3, 9)):
            self.operator(self.random.choice(["aten::mm", "aten::tanh", "aten::sort", "aten::cat", "aten::exp"]))


def loops(path):
    return [(name, iterations, count) for _, name, iterations, count, _ in windows(path) if name.startswith("loop")]


def agree(plumb, path, iterations):
    """How many iterations the main loop has, as every verb says it."""
    for more in (), ("--window", "loop"):
        assert json.loads(plumb("iters", path, "--json", *more).stdout)["host"]["count"] == iterations
    report = json.loads(plumb("report", path, "--json", "--window", "loop").stdout)
    assert report["window"]["iterations"] == iterations


@pytest.mark.parametrize("optimizer", [False, True])
def test_order_of_operators(profile_of, plumb, optimizer):  # noqa: F811
    thread = Thread()
    thread.start_up()
    for _ in range(30):
        thread.train(optimizer)
    path = profile_of(thread)
    assert loops(path) == [("loop:1", 30, 1)] and names(path)[0] == "startup"
    check_sums(path)
    assert total(path, "loop:1", "op.calls", "aten::linear")[0] == 60
    assert total(path, "startup", "op.calls", "aten::linear")[0] == 0
    assert total(path, "startup", "op.calls")[0] == 160
    assert total(path, "loop:1", "op.calls")[0] == 30 * (2 * len(TRAIN) + 3 * optimizer)
    agree(plumb, path, 30)
    text = plumb("report", path, "--per-iteration", "--by", "operator").stdout
    assert "30 iterations" in text and "aten::make" not in text


def test_training_and_evaluation_take_turns(profile_of, plumb):  # noqa: F811
    thread = Thread()
    thread.start_up()
    for _ in range(3):
        for _ in range(20):
            thread.train()
        for _ in range(12):
            thread.many(EVALUATE)
    path = profile_of(thread)
    assert loops(path) == [("loop:1", 60, 3), ("loop:2", 36, 3)]
    check_sums(path)
    assert total(path, "loop:1", "op.calls", "aten::loss")[0] == 60
    assert total(path, "loop:2", "op.calls", "aten::softmax")[0] == 36
    assert total(path, "loop:1", "op.calls", "aten::softmax")[0] == 0
    agree(plumb, path, 60)


def test_steps_of_a_profiler(profile_of, plumb):  # noqa: F811
    """Each step has other operators; the first one is start-up."""
    thread = Thread()
    thread.range("ProfilerStep#0", thread.start_up)
    for i in range(12):
        thread.range(f"ProfilerStep#{i + 1}", thread.vary)
    thread.range("ProfilerStep#13", lambda: None)
    path = profile_of(thread)
    assert loops(path) == [("loop:1", 12, 1)]
    check_sums(path)
    assert total(path, "loop:1", "op.calls", "ProfilerStep")[0] == 12
    assert total(path, "startup", "op.calls", "ProfilerStep")[0] == 1
    found = json.loads(plumb("iters", path, "--json", "--window", "loop").stdout)["host"]
    assert (found["count"], found["marker"]) == (12, "ProfilerStep")


@pytest.mark.parametrize("name", ["request", "step {}"])
def test_ranges_that_come_evenly(profile_of, plumb, name):  # noqa: F811
    thread = Thread()
    thread.start_up()
    for i in range(12):
        thread.range(name.format(i), thread.vary)
    path = profile_of(thread)
    assert loops(path) == [("loop:1", 12, 1)]
    check_sums(path)
    agree(plumb, path, 12)
    assert json.loads(plumb("iters", path, "--json").stdout)["host"]["marker"] == name.split()[0]


def test_ranges_of_epochs_are_not_iterations(profile_of, plumb):  # noqa: F811
    thread = Thread()
    thread.start_up()

    def epoch():
        for _ in range(15):
            thread.range("train_step", thread.train)

    for i in range(10):
        thread.range(f"epoch {i}", epoch)
    path = profile_of(thread)
    assert [(name, iterations) for name, iterations, _ in loops(path)] == [("loop:1", 150)]
    agree(plumb, path, 150)


def test_ranges_of_layers_are_not_iterations(profile_of, plumb):  # noqa: F811
    thread = Thread()
    thread.start_up()
    for _ in range(20):
        for _ in range(12):
            thread.range("layer", lambda: thread.many(["norm", "mm"]))
        thread.train()
    path = profile_of(thread)
    assert loops(path) == [("loop:1", 20, 1)]
    agree(plumb, path, 20)


@pytest.mark.parametrize("what", ["short", "burst", "nothing outside", "nothing repeats"])
def test_no_windows(profile_of, plumb, what):  # noqa: F811
    thread = Thread()
    if what != "nothing outside":
        thread.start_up()
    if what == "short":
        for _ in range(3):
            thread.train()
    elif what == "burst":
        for _ in range(10):
            thread.range("load", lambda: thread.operator("aten::read", 12))
        for _ in range(20):
            thread.start_up(20)
    elif what == "nothing outside":
        for _ in range(30):
            thread.train()
    path = profile_of(thread)
    assert names(path) == []
    missing = plumb("report", path, "--window", "loop", check=False)
    assert missing.returncode == 3 and "no windows" in missing.stderr


def test_another_thread_is_not_the_main_one(profile_of, plumb):  # noqa: F811
    """A worker that loads all the time has more ranges, but less in them."""
    thread = Thread()
    thread.start_up()
    for _ in range(30):
        thread.train()
    start = 1000
    while start < thread.now:
        thread.events.append(event("cpu_op", "aten::load", start, 3, pid=5, tid=99))
        start += 10
    path = profile_of(thread)
    assert loops(path) == [("loop:1", 30, 1)]
    check_sums(path)
    assert total(path, "startup", "op.calls", "aten::load")[0] > 0 < total(path, "loop:1", "op.calls", "aten::load")[0]
    agree(plumb, path, 30)


def test_a_chrome_trace(plumb, tmp_path):
    """Events of any tool: ranges with nothing in them, whose names have numbers."""
    events, now = [], 100
    for i in range(60):
        events.append({"ph": "X", "name": f"load part {i * 7 % 60} of the model", "ts": now, "dur": 900, "pid": 1, "tid": 1})
        now += 1000
    for i in range(20):
        events.append({"ph": "X", "name": f"step {i}", "ts": now, "dur": 800, "pid": 1, "tid": 1})
        now += 1000
    trace = tmp_path / "t.json"
    trace.write_text(json.dumps({"traceEvents": events}))
    plumb("import", trace, "-o", tmp_path / "p.plumb")
    assert loops(tmp_path / "p.plumb") == [("loop:1", 20, 1)]
    agree(plumb, tmp_path / "p.plumb", 20)
