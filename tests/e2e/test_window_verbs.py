# SPDX-License-Identifier: Apache-2.0
"""--window and --per-iteration of each verb, on a profile with known windows (tests/golden/windows.h): start-up of
21.4 s, training of 24 s (400 iterations, 48 ms of GPU time each), evaluation of 2 s (100 iterations), the rest."""
import contextlib
import csv
import io
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import textwrap

import pytest
from plumbtest import run_program
from test_mock_gpu import NEWEST, mock_environment

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("BUILD") or ROOT / "build").resolve()
sys.path.insert(0, str(ROOT / "python"))
import plumb  # noqa: E402

MS = 10**6


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("windows") / "windows.plumb"
    subprocess.run([BUILD / "unit" / "test_report", "windows", file], check=True, timeout=60)
    return file


def plumb_command(*words):
    return subprocess.run([BUILD / "plumb", *map(str, words)], timeout=60, capture_output=True, text=True,
                          env={"PATH": os.environ["PATH"], "COLUMNS": "150"})


def answer(*words):
    done = plumb_command(*words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def gpu_time(report):
    return sum(row["exclusive"].get("gpu.time", {"sum": 0})["sum"] for row in report["rows"])


def test_windows_add_up_to_the_whole(path):
    whole = answer("report", path, "--by", "kernel", "--top", 0)
    parts = {name: answer("report", path, "--by", "kernel", "--top", 0, "--window", name)
             for name in ("startup", "loop:1", "loop:2")}
    assert whole["window"]["name"] == "all"
    assert gpu_time(whole) == sum(map(gpu_time, parts.values()))
    assert gpu_time(parts["loop:1"]) == 400 * 48 * MS
    loop = parts["loop:1"]["window"]
    assert loop == {"name": "loop:1", "start_ns": 1000 + 21400 * MS, "end_ns": 1000 + 46400 * MS, "iterations": 400}
    assert parts["loop:1"]["run"]["wall_ns"] == 24000 * MS
    assert [w["name"] for w in whole["windows"]] == ["startup", "loop:1", "loop:2", "rest"]
    assert [w["main"] for w in whole["windows"]] == [False, True, False, False]


def test_the_main_loop_is_the_default_of_text_alone(path):
    text = plumb_command("report", path, "--by", "kernel").stdout
    assert "of the main loop only" in text and "fill" not in text and "implicit_gemm" in text
    text = plumb_command("report", path, "--by", "kernel", "--window", "all").stdout
    assert "only" not in text and "fill" in text
    rows = csv.DictReader(io.StringIO(plumb_command("report", path, "--by", "kernel", "--csv").stdout))
    assert "fill" in {row["name"] for row in rows}


def test_what_it_is_of_is_said(path):
    """No share without what it is a share of."""
    text = plumb_command("report", path).stdout
    assert "busy 80.0 % of the main loop's 24.0 s" in text.replace("was busy for", "busy")
    text = plumb_command("report", path, "--window", "startup").stdout
    assert "of start-up's 21.4 s" in text
    text = plumb_command("report", path, "--window", "loop:2").stdout
    assert "of loop 2's 2.00 s" in text


@pytest.mark.parametrize("words", (["report"], ["iters"], ["tables", "A10"], ["diff"], ["export", "-F", "folded"]))
def test_every_verb_says_what_is_missing(path, words):
    files = [path] * (2 if words[0] == "diff" else 1)
    done = plumb_command(words[0], *files, *words[1:], "--window", "loop:3")
    assert done.returncode == 3
    assert "no window loop:3; it has: startup, loop:1, loop:2, rest" in done.stderr and str(path) in done.stderr
    done = plumb_command(words[0], *files, *words[1:], "--window", "loops")
    assert done.returncode == 1 and "loops is no window" in done.stderr


def test_without_windows(path, tmp_path):
    file = tmp_path / "gpu.plumb"
    subprocess.run([BUILD / "unit" / "test_report", "gpu", file], check=True, timeout=60)
    done = plumb_command("report", file, "--per-iteration")
    assert done.returncode == 3 and "no windows" in done.stderr
    text = plumb_command("report", file).stdout
    assert "main loop" not in text and "start-up" not in text


def test_one_iteration(path):
    report = answer("report", path, "--by", "operator", "--per-iteration", "--top", 0)
    rows = {row["name"]: row["per_iteration"] for row in report["rows"] if "per_iteration" in row}
    assert report["window"]["iterations"] == 400
    assert rows["aten::convolution"]["exclusive"] == {"sum": 32 * MS, "count": 1}
    assert rows["aten::convolution"]["std_from"] == "iterations"
    other = answer("report", path, "--by", "operator", "--per-iteration", "--window", "loop:2")
    row, = (row for row in other["rows"] if row["name"] == "aten::convolution")
    assert row["per_iteration"]["exclusive"]["sum"] == 10 * MS
    assert row["per_iteration"]["std_from"] == "calls" and round(row["per_iteration"]["std"]) == 100000
    # Start-up has no iterations.
    done = plumb_command("report", path, "--per-iteration", "--window", "startup")
    assert done.returncode == 3 and "how many iterations" in done.stderr


def test_findings_say_which_window(path):
    found = answer("report", path)["findings"]
    assert {f["window"] for f in found} == {"startup", "loop:1"}
    text = plumb_command("report", path, "--findings").stdout
    assert "11.9 s of its 21.4 s go to trying variants of kernels at train.py:40" in text
    whole = answer("report", path, "--window", "all")["findings"]
    assert {f["window"] for f in whole} == {None}
    assert any("fill" in f["title"] for f in whole) and not any("fill" in f["title"] for f in found)
    alone = answer("report", path, "--window", "loop")["findings"]
    assert {f["id"] for f in alone} == {f["id"] for f in found if f["window"] == "loop:1"}


def test_other_verbs(path):
    assert answer("iters", path, "--window", "loop")["window"]["name"] == "loop:1"
    tables = answer("tables", path, "A10", "--window", "startup")
    assert tables["window"]["name"] == "startup"
    assert "fill" in json.dumps(tables) and "implicit_gemm" not in json.dumps(tables)
    diff = answer("diff", path, path, "--window", "loop:2")
    assert diff["window"]["iterations"] == 100 and diff["iterations"]["from"] == "window"
    assert diff["iterations"]["after"][0]["window"]["name"] == "loop:2"
    stacks = plumb_command("export", path, "-F", "folded", "--window", "startup").stdout
    assert "fill" in stacks and "implicit_gemm" not in stacks


def test_python_reads_windows(path):
    with plumb.Profile(path) as profile:
        assert [(row.name, row.iterations) for row in profile.windows] == [
            ("startup", None), ("loop:1", 400), ("loop:2", 100), ("rest", None)]
        assert [row.is_main for row in profile.windows] == [False, True, False, False]
        assert profile.windows[1].wall_ns == 24000 * MS
        whole = sum(node.exclusive["gpu.time"].sum for node in profile.kernels)
        parts = {}
        for name in ("startup", "loop", "loop:2", "rest"):
            with profile.window(name) as window:
                parts[name] = sum(node.exclusive["gpu.time"].sum for node in window.kernels)
        assert parts["loop"] == 400 * 48 * MS and parts["rest"] == 0 and sum(parts.values()) == whole
        with pytest.raises(plumb.ProfileError, match="no window loop:3"):
            profile.window("loop:3")
    with plumb.Profile(path, window="loop:2") as window:
        node, = (node for node in window.kernels if node.exclusive["gpu.time"].count)
        assert node.exclusive["gpu.time"].std == 100000


COMPILES = textwrap.dedent("""\
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU())
    compiled = torch.compile(model, backend="eager") if hasattr(torch, "compile") else model
    for size in range(2, 30):
        torch._dynamo.reset() if hasattr(torch, "compile") else None
        compiled(torch.ones(size, 32))
    """)


def add_startup(path):
    """Makes all of a profile but its last tenth start-up, whatever windows plumb found."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        start, wall = database.execute("SELECT start_ns, wall_ns FROM run").fetchone()
        for table in ("window_values", "window_variants", "window_devices", "window_stretches", "windows"):
            database.execute(f"DELETE FROM {table}")
        end = start + wall * 9 // 10
        database.execute("INSERT INTO windows VALUES (0, 0, 'startup', 0, NULL), (1, 0, 'loop', 1, 28)")
        database.execute("INSERT INTO window_stretches VALUES (0, 0, ?, ?), (1, 1, ?, ?)",
                         (start, end, end, start + wall))
        database.execute("INSERT INTO window_values SELECT id, 0, context, metric, track, sum, count, min, max, m2, "
                         "from_device, to_device FROM context_values")
        database.commit()


def test_imports_and_compiling_are_told_apart(record, tmp_path, torch_python):
    """With samples of a real PyTorch: what is under Dynamo is compiling, also when it imports."""
    (tmp_path / "compiles.py").write_text(COMPILES)
    recording = record(torch_python, "compiles.py", options=("--cpu=500", "-q"))
    assert recording.returncode == 0, recording.stderr
    add_startup(recording.path)
    report = answer("report", recording.path)
    startup = next(w for w in report["windows"] if w["name"] == "startup")
    parts = {part["name"]: part["ns"] for part in startup["parts"]}
    assert parts["imports"] > 100 * MS
    newest = subprocess.run([torch_python, "-c", "import torch; print(hasattr(torch, 'compile'))"],
                            capture_output=True, text=True).stdout.strip() == "True"
    assert (parts.get("compiling", 0) > 100 * MS) == newest
    text = plumb_command("report", recording.path).stdout
    assert ", imports" in text or ": imports" in text


def test_a_gpu_loop_without_marks(tmp_path):
    """The order of the newest GPU work says how many iterations the loop of a real recording had."""
    made = run_program(sys.executable, "started.py", 300, folder=tmp_path, options=[],
                       environment=mock_environment(NEWEST, "clock=1"))
    assert made.done.returncode == 0, made.done.stderr
    windows = {w["name"]: w for w in answer("report", made.path)["windows"]}
    assert {"startup", "loop"} <= set(windows), windows
    loop = windows["loop"]
    assert 240 <= loop["iterations"] <= 301  # the borders are known to about 0.1 s
    # On a busy machine a step takes longer than it wants.
    assert loop["iteration"]["mean_ns"] > 9 * MS and loop["iteration"]["devices"][0]["busy_ns"] > 3 * MS
    text = plumb_command("report", made.path, "--by", "kernel").stdout
    assert "of the main loop only" in text and "forward" in text and "fill_3" not in text
    each = answer("report", made.path, "--by", "kernel", "--per-iteration")
    rows = {row["name"]: row["per_iteration"]["exclusive"] for row in each["rows"]}
    assert rows["forward"]["count"] == pytest.approx(1, abs=0.05)
