# SPDX-License-Identifier: Apache-2.0
"""host.time: the Python path of the main thread, seen from outside by a default recording."""
import collections
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import textwrap

import pytest
from conftest import PLUMB, ROOT, clean_environment

METRIC = ("--metric", "host.time", "--window", "all")


def times(recording):
    """{function: s of host.time under it, inclusive}."""
    found = collections.Counter()
    for row in recording.report("--by", "python", "--top", "0", *METRIC)["rows"]:
        found[row["name"].rpartition(".")[2]] += row["inclusive"].get("host.time", {}).get("sum", 0) / 1e9
    return found


def total_of(report):
    """s of host.time of all contexts."""
    return sum(row["exclusive"].get("host.time", {}).get("sum", 0) for row in report["contexts"]) / 1e9


def total(recording):
    return total_of(recording.report("--by", "context", "--top", "0", *METRIC))


# ---- start-up ----

START_UP = """
    import time
    begin = time.time()
    import torch
    import slow_module
    from torch_standin._dynamo import compile_frame
    imported = time.time()
    compile_frame(max(2.5, 0.6 * (imported - begin)))
    compiling = time.time() - imported
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
    whole = total_of(report)
    # The interpreter's own start is not seen.
    assert 0.9 * wall - 0.5 < whole < 1.01 * wall
    assert root["id"] == 0 and root["exclusive"].get("host.time", {"sum": 0})["sum"] / 1e9 < 0.1 * wall
    ledger = [row for row in report["ledger"] if row["source"] == "host.sample"]
    assert sum(row["received"] or 0 for row in ledger) > 5 * wall
    assert not sum(row["dropped"] or 0 for row in ledger)


def test_tables_are_of_what_the_program_recorded(started):
    _, done = started
    assert "aten::mm" in done.stderr and "host.time" not in done.stderr


# ---- which processes ----

def spanned(*lines):
    """A program with a range, so that it has a profile."""
    return textwrap.dedent(f"""
        import ctypes, os, subprocess, sys, time
        sys.path.insert(0, {str(ROOT / "python")!r})
        import plumb
        took = {{}}
        def computes(seconds):
            end = time.monotonic() + seconds
            while time.monotonic() < end: pass
        def timed(function, *arguments):
            begin, name = time.monotonic(), function.__name__
            function(*arguments)
            took[name] = took.get(name, 0) + time.monotonic() - begin
        with plumb.span("some work"): pass
        """) + "\n".join(lines) + "\n"


@pytest.fixture(name="spanned_run")
def spanned_run_fixture(record, tmp_path):
    """Records such a program."""
    def call(*lines, **options):
        (tmp_path / "program.py").write_text(spanned(*lines))
        made = record(sys.executable, tmp_path / "program.py", **options)
        assert made.returncode == 0, made.stderr
        return made
    return call


def test_each_process_has_its_own(spanned_run):
    made = spanned_run(
        "def parent(): os.waitpid(child, 0)",
        "def forked(seconds):",
        "    with plumb.span('forked work'): pass",
        "    computes(seconds)",
        "child = os.fork()",
        "timed(*(parent,) if child else (forked, 1.0))",
        "print(*took, *took.values(), flush=True)",
        "if not child: os._exit(0)")
    found, truth = times(made), dict(line.split() for line in made.stdout.splitlines())
    for name in ("forked", "parent"):
        assert 0.65 < found[name] < float(truth[name]) + 0.35, (found, truth)


def test_processes_that_do_nothing_else_are_left_out(spanned_run):
    made = spanned_run("subprocess.run([sys.executable, '-c', 'import ctypes, time; time.sleep(0.8)'], check=True)")
    assert len(made.report("--by", "process")["rows"]) <= 1
    assert times(made)["run"] > 0.2


def test_a_program_that_does_nothing_else_has_no_profile(record, tmp_path):
    (tmp_path / "plain.py").write_text("import ctypes, time\ntime.sleep(0.5)\n")
    made = record(sys.executable, tmp_path / "plain.py")
    assert "nothing was captured" in made.stderr


def test_cpu_samples_need_no_looks(spanned_run):
    assert not total(spanned_run("computes(0.5)", options=("--cpu",)))


def test_pauses_are_left_out(spanned_run):
    made = spanned_run(
        "def seen(): computes(0.6)", "def unseen(): computes(0.8)",
        "timed(seen)", "plumb.stop()", "unseen()", "plumb.start()", "timed(seen)", "print(took['seen'])")
    found = times(made)
    assert 0.85 < found["seen"] < float(made.stdout) + 0.35 and found["unseen"] < 0.15


def test_a_recursion_deeper_than_is_looked_at(spanned_run):
    """It is unknown, and keeps nothing from being recorded; a deep one is known by its outermost calls."""
    found = times(spanned_run(
        "sys.setrecursionlimit(100000)",
        "def deep(n): deep(n - 1) if n else computes(1.5)",
        "def begins(n): deep(n)",
        "begins(900)"))
    assert found["begins"] > 0.4


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
        times_at = dict(profile.execute("SELECT f.name, SUM(v.sum) FROM context_values v JOIN metrics m ON "
                                        "m.id = v.metric JOIN contexts c ON c.id = v.context JOIN frames f ON "
                                        "f.id = c.frame WHERE m.name = 'host.time' GROUP BY f.name"))
    assert "host.unread" in keys
    assert times_at[None] > 0.3e9 and "computes" not in times_at
