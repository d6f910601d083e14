# SPDX-License-Identifier: Apache-2.0
"""host.time: the Python path of the main thread, seen from outside by a default recording."""
import ast
import collections
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import textwrap
import time

import pytest
from conftest import PLUMB, ROOT, clean_environment, run_command
from plumbtest import PROGRAMS
from test_python_walker import compile_c, matrix
from test_waiting import SUPPORTED

METRIC = ("--metric", "host.time", "--window", "all")


def times(recording):
    """{function: s of host.time under it, inclusive}."""
    found = collections.Counter()
    for row in recording.report("--by", "python", "--top", "0", *METRIC)["rows"]:
        found[row["name"].rpartition(".")[2]] += row["inclusive"].get("host.time", {}).get("sum", 0) / 1e9
    return found


def total(recording):
    return sum(row["exclusive"].get("host.time", {}).get("sum", 0)
               for row in recording.report("--by", "context", "--top", "0", *METRIC)["contexts"]) / 1e9


# ---- start-up ----

START_UP = """
    import time
    begin = time.time()
    import torch
    import slow_module
    from torch_standin._dynamo import compile_frame
    imported = time.time()
    compiling = max(2.5, 0.6 * (imported - begin))
    compile_frame(compiling)
    a = torch.randn(64, 64)
    def train():
        for _ in range(250):
            torch.relu(a @ a)
            time.sleep(0.01)
    train()
    print(imported - begin, compiling)
"""


@pytest.fixture(name="started", scope="module")
def started_fixture(tmp_path_factory, plumb, any_torch_python):
    """A module that computes and sleeps where it is imported, and a compiler in a folder named as PyTorch's."""
    folder = tmp_path_factory.mktemp("host")
    (folder / "start_up.py").write_text(textwrap.dedent(START_UP))
    (folder / "slow_module.py").write_text(
        "import time\nend = time.time() + 1\nwhile time.time() < end: pass\ntime.sleep(1)\n")
    (folder / "torch_standin").mkdir()
    (folder / "torch_standin/__init__.py").write_text("")
    (folder / "torch_standin/_dynamo.py").write_text(textwrap.dedent(f"""
        source = '''
        import time
        def compile_frame(seconds):
            end = time.time() + seconds
            while time.time() < end: sum(range(1000))
        '''
        import textwrap
        exec(compile(textwrap.dedent(source), {str(folder / "torch/_dynamo/convert_frame.py")!r}, "exec"))
        """))
    done = plumb("run", "-o", folder / "p.plumb", "--", any_torch_python, folder / "start_up.py", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "p.plumb", done


def test_start_up_is_explained(started, plumb):
    path, done = started
    imports, took = map(float, done.stdout.split())
    found = json.loads(plumb("report", path, "--findings", "--json").stdout)["findings"]
    by_cause = {f["id"].rpartition("-")[0]: f for f in found if f["window"] == "startup"}
    assert {"startup-imports", "startup-compiling"} <= set(by_cause), found
    compiling = by_cause["startup-compiling"]
    assert compiling["evidence"]["metric"] == "host.time"
    assert abs(compiling["evidence"]["compiling_ns"] / 1e9 - took) < 0.1 * took + 0.3
    assert compiling["evidence"]["looks"] > 5
    assert abs(by_cause["startup-imports"]["evidence"]["imports_ns"] / 1e9 - imports) < 0.15 * imports + 0.3
    line, = [line for line in done.stderr.splitlines() if line.startswith("  start-up")]
    assert "imports" in line and "compiling" in line and "not recorded" not in line


def test_the_sum_is_the_wall_time(started, plumb):
    path, _ = started
    report = json.loads(plumb("report", path, "--json", "--by", "context", "--top", "0", *METRIC).stdout)
    root, wall = report["contexts"][0], report["run"]["wall_ns"] / 1e9
    whole = sum(row["exclusive"].get("host.time", {}).get("sum", 0) for row in report["contexts"]) / 1e9
    # The interpreter's own start is not seen.
    assert 0.9 * wall - 0.5 < whole < 1.01 * wall
    assert root["id"] == 0 and root["exclusive"].get("host.time", {"sum": 0})["sum"] / 1e9 < 0.1 * wall
    ledger = [row for row in report["ledger"] if row["source"] == "host.sample"]
    assert sum(row["received"] or 0 for row in ledger) > 5 * wall
    assert not sum(row["dropped"] or 0 for row in ledger)


def test_tables_are_of_what_the_program_recorded(started):
    _, done = started
    assert "aten::mm" in done.stderr and "host.time" not in done.stderr


# ---- right, or not at all ----

SOURCES = ["watch/place.c", "watch/foreign.c", "watch/foreign_python.c", "watch/python_lines.c", "watch/tree.c",
           "region/writer.c", "base/map.c", "base/words.c", "base/utf8.c", "base/error.c", "base/procstat.c"]


@pytest.fixture(name="glimpses", scope="module")
def glimpses_fixture(tmp_path_factory):
    return compile_c(tmp_path_factory.mktemp("glimpses") / "glimpses", str(ROOT / "tests/e2e/glimpses.c"),
                     *(str(ROOT / "src" / name) for name in SOURCES))


class Graph:
    """Who calls whom in call_graph.py."""

    def __init__(self, path):
        self.named, self.lines = collections.defaultdict(set), {}
        self.visit(ast.parse(path.read_text()), "<module>")

    def visit(self, node, function):
        for child in ast.iter_child_nodes(node):
            inside = function
            if isinstance(child, ast.FunctionDef):
                inside = child.name
                self.lines[inside] = range(child.lineno, child.end_lineno + 1)
            elif isinstance(child, ast.Name):
                self.named[function, child.lineno].add("__init__" if child.id == "Thing" else child.id)
            self.visit(child, inside)

    def may_call(self, caller, line, callee):
        if caller == "made":  # the text that makes() compiles
            return {2: "other", 3: "leaf"}.get(line) == callee
        if caller == "<string>":
            return (line, callee) == (4, "made")
        return (callee == "<string>" and "exec" in self.named[caller, line]) or callee in self.named[caller, line]

    def wrong(self, path):
        (last, line), pairs = path[-1], zip(path, path[1:])
        wrong = [(a, at, b) for (a, at), (b, _) in pairs if not self.may_call(a, at, b)]
        return wrong + ([path[-1]] if last in self.lines and line not in self.lines[last] else [])


@pytest.mark.parametrize("python", matrix(SUPPORTED))
def test_no_impossible_paths(python, glimpses, tmp_path):
    """Thousands of looks at a program whose stack never rests: each path that is kept is one of its calls."""
    program = PROGRAMS / "call_graph.py"
    run = subprocess.Popen(list(map(str, (PLUMB, "run", "-q", "-o", tmp_path / "p.plumb", "--", python, program, "6"))),
                           env=clean_environment(), cwd=tmp_path)
    try:
        regions, end = [], time.monotonic() + 30
        while not regions and time.monotonic() < end:
            time.sleep(0.3)
            regions = [path for path in tmp_path.glob(".plumb-*/*.region") if "-" in path.stem]
        time.sleep(0.3)
        looked = run_command(glimpses, regions[0], "3")
        assert looked.returncode == 0, looked.stderr
    finally:
        run.wait()
    graph, looks, deep = Graph(program), 0, 0
    for line in looked.stdout.splitlines():
        count, *steps = line.split("\t")
        path = [(name.rpartition(".")[2], int(at)) for name, at in (step.rsplit(" ", 1) for step in steps)]
        path = [("<string>" if i and name == "<module>" else name, at) for i, (name, at) in enumerate(path)]
        assert not graph.wrong(path), path
        looks += int(count)
        deep += int(count) * (len(path) > 3)
    assert looks > 200 and deep, looked.stderr


# ---- which processes ----

def spanned(*lines):
    """A program with a range, so that it has a profile."""
    return textwrap.dedent(f"""
        import ctypes, os, subprocess, sys, time
        sys.path.insert(0, {str(ROOT / "python")!r})
        import plumb
        def computes(seconds):
            end = time.monotonic() + seconds
            while time.monotonic() < end: pass
        with plumb.span("some work"): pass
        """) + "\n".join(lines) + "\n"


def test_each_process_has_its_own(record, tmp_path):
    (tmp_path / "forks.py").write_text(spanned(
        "def parent(): os.waitpid(child, 0)",
        "def forked(seconds):",
        "    with plumb.span('forked work'): pass",
        "    computes(seconds)",
        "child = os.fork()",
        "if not child: forked(1.0); os._exit(0)",
        "parent()"))
    made = record(sys.executable, tmp_path / "forks.py")
    assert made.returncode == 0, made.stderr
    found = times(made)
    assert abs(found["forked"] - 1.0) < 0.35 and abs(found["parent"] - 1.0) < 0.35


def test_processes_that_do_nothing_else_are_left_out(record, tmp_path):
    (tmp_path / "starts.py").write_text(spanned(
        "subprocess.run([sys.executable, '-c', 'import ctypes, time; time.sleep(0.8)'], check=True)"))
    made = record(sys.executable, tmp_path / "starts.py")
    assert len(made.report("--by", "process")["rows"]) <= 1
    assert times(made)["run"] > 0.2


def test_a_program_that_does_nothing_else_has_no_profile(record, tmp_path):
    (tmp_path / "plain.py").write_text("import ctypes, time\ntime.sleep(0.5)\n")
    made = record(sys.executable, tmp_path / "plain.py")
    assert "nothing was captured" in made.stderr


def test_cpu_samples_need_no_looks(record, tmp_path):
    (tmp_path / "work.py").write_text(spanned("computes(0.5)"))
    made = record(sys.executable, tmp_path / "work.py", options=("--cpu",))
    assert made.returncode == 0 and not total(made)


def test_pauses_are_left_out(record, tmp_path):
    (tmp_path / "pauses.py").write_text(spanned(
        "def seen(): computes(0.6)", "def unseen(): computes(0.8)",
        "seen()", "plumb.stop()", "unseen()", "plumb.start()", "seen()"))
    found = times(record(sys.executable, tmp_path / "pauses.py"))
    assert abs(found["seen"] - 1.2) < 0.35 and found["unseen"] < 0.15


def test_a_recursion_deeper_than_is_looked_at(record, tmp_path):
    """It is unknown, and keeps nothing from being recorded; a deep one is known by its outermost calls."""
    (tmp_path / "deep.py").write_text(spanned(
        "sys.setrecursionlimit(100000)",
        "def deep(n): deep(n - 1) if n else computes(1.5)",
        "def begins(n): deep(n)",
        "begins(900)"))
    made = record(sys.executable, tmp_path / "deep.py")
    assert made.returncode == 0, made.stderr
    assert times(made)["begins"] > 0.4


@pytest.mark.skipif(not shutil.which("setpriv"), reason="no setpriv here")
def test_memory_that_may_not_be_read(tmp_path):
    (tmp_path / "private.py").write_text(spanned(
        "ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)", "computes(0.7)"))
    path = tmp_path / "run.plumb"
    command = [PLUMB, "run", "-o", path, "--", sys.executable, tmp_path / "private.py"]
    if os.geteuid() == 0:
        command = ["setpriv", "--inh-caps=-sys_ptrace", "--bounding-set=-sys_ptrace", *command]
    done = subprocess.run(list(map(str, command)), cwd=tmp_path, env=clean_environment(),
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "may not read" not in done.stderr, done.stderr
    with sqlite3.connect(path) as profile:
        keys = {key for key, in profile.execute("SELECT key FROM environment")}
        times_at = dict(profile.execute("SELECT v.context, SUM(v.sum) FROM context_values v JOIN metrics m ON "
                                        "m.id = v.metric WHERE m.name = 'host.time' GROUP BY v.context"))
    assert "host.unread" in keys
    assert list(times_at) == [0] and times_at[0] > 0.3e9
