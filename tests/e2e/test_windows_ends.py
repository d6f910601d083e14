# SPDX-License-Identifier: Apache-2.0
"""Windows of programs that fork, are killed or are ranks; loops shorter than a look; and what remains if plumb run is
killed, or has no room for what it noted."""
import json
import os
import signal
import subprocess
import sys
import time

from conftest import PLUMB, ROOT, run_command
from plumbtest import LIMIT_S, PROGRAMS, environment_for_programs, query, run_program
from test_bad_times import small_disk  # noqa: F401 (fixture)

ENVIRONMENT = {"PYTHONPATH": str(ROOT / "python")}
CALLS = "metric = (SELECT id FROM metrics WHERE name = 'op.calls')"


def run_loops(folder, *arguments, **more):
    return run_program(sys.executable, "loops.py", *arguments, folder=folder, environment=ENVIRONMENT, **more)


def done_by(folder, label):
    return json.loads((folder / f"done.{label}.json").read_text())


def windows(path):
    """[(process, kind, number)] in order of time."""
    return [row[:3] for row in query(path, """
        SELECT w.process, w.kind, w.number, MIN(s.start_ns) AS start FROM windows w
        JOIN window_stretches s ON s.window = w.id GROUP BY w.id ORDER BY w.process, start""")]


def begin(path):
    """[(kind, number)] of the only process, without what is left at the end or at a border."""
    return [window[1:] for window in windows(path) if window[1] != "rest"]


def calls(path):
    """{loop of the program: {(process, kind, number): calls of its first range}}"""
    found = {}
    for name, *window, count in query(path, f"""
            SELECT f.name, w.process, w.kind, w.number, SUM(v.sum) FROM window_values v
            JOIN windows w ON w.id = v.window JOIN contexts c ON c.id = v.context JOIN frames f ON f.id = c.frame
            WHERE {CALLS} AND f.name LIKE '% load' GROUP BY f.name, w.id"""):
        found.setdefault(name.removesuffix(" load"), {})[tuple(window)] = count
    return found


def loop_of(path, name, done, process=None):
    """(process, number) of the loop that has most of NAME, which went round DONE times. PROCESS: only what it did."""
    by_window = {window: count for window, count in calls(path)[name].items() if process in (None, window[0])}
    window, count = max(by_window.items(), key=lambda item: item[1])
    # The rest is at the borders: on a busy machine looks come late.
    assert sum(by_window.values()) == done and count > 0.6 * done, by_window
    assert window[1] == "loop", by_window
    return window[0], window[2]


def check_sums(path):
    """The windows of each process are its whole."""
    assert query(path, """
        SELECT t.process, v.metric, SUM(v.sum), SUM(v.count) FROM window_values v JOIN tracks t ON t.id = v.track
        GROUP BY t.process, v.metric""") == query(path, """
        SELECT t.process, v.metric, SUM(v.sum), SUM(v.count) FROM context_values v JOIN tracks t ON t.id = v.track
        GROUP BY t.process, v.metric""")


def ledger(path, source):
    return dict(query(path, f"SELECT fate, SUM(count) FROM ledger WHERE source = '{source}' GROUP BY fate"))


def check_unknown(path):
    """No windows; the whole run is there."""
    assert query(path, "SELECT COUNT(*) FROM windows") == [(0,)]
    assert query(path, "SELECT COUNT(*) FROM window_values") == [(0,)]
    report = run_command(PLUMB, "report", path)
    assert report.returncode == 0 and "train forward" in run_command(PLUMB, "report", path, "--by", "range").stdout
    assert run_command(PLUMB, "report", path, "--window", "loop").returncode == 3


# ---- processes ----

def test_a_forked_child_has_its_own_loop(tmp_path):
    made = run_loops(tmp_path, "fork")
    assert made.done.returncode == 0, made.done.stderr
    child = loop_of(made.path, "child", done_by(tmp_path, "child")["child"])
    parent = loop_of(made.path, "parent", done_by(tmp_path, "parent")["parent"])
    assert child[0] != parent[0] and child[1] == 1 and parent[1] == 2
    check_sums(made.path)
    assert ("startup", None) in {window[1:] for window in windows(made.path) if window[0] == parent[0]}


def test_a_program_that_is_killed_in_its_loop(tmp_path):
    made = run_loops(tmp_path, "killed")
    assert made.done.returncode == -signal.SIGKILL
    done = done_by(tmp_path, "killed")["train"]
    assert begin(made.path) == [("startup", None), ("loop", 1)]
    loop_of(made.path, "train", done)
    check_sums(made.path)
    assert ledger(made.path, "look").keys() == {"received", "attributed"}


def test_ranks_with_the_same_loop_have_the_same_number(tmp_path):
    made = run_loops(tmp_path, "ranks")
    assert made.done.returncode == 0, made.done.stderr
    ranks = dict(query(made.path, "SELECT rank, id FROM processes WHERE rank IN (0, 1)"))
    one, two = (done_by(tmp_path, f"rank{rank}") for rank in (0, 1))
    assert loop_of(made.path, "check", two["check"]) == (ranks[1], 1)
    assert loop_of(made.path, "train", one["train"], ranks[0]) == (ranks[0], 2)
    assert loop_of(made.path, "train", two["train"], ranks[1]) == (ranks[1], 2)
    assert loop_of(made.path, "evaluate", one["evaluate"]) == (ranks[0], 3)
    check_sums(made.path)


# ---- short loops ----

def test_a_program_whose_loop_is_shorter_than_a_look(tmp_path):
    made = run_loops(tmp_path, "short")
    assert made.done.returncode == 0, made.done.stderr
    assert windows(made.path) == []
    assert query(made.path, f"SELECT SUM(sum) FROM context_values v JOIN contexts c ON c.id = v.context "
                 f"JOIN frames f ON f.id = c.frame WHERE {CALLS} AND f.name = 'brief load'") \
        == [(done_by(tmp_path, "short")["brief"],)]


def test_a_loop_that_is_shorter_than_a_look_is_no_loop_of_its_own(tmp_path):
    made = run_loops(tmp_path, "short_before")
    assert made.done.returncode == 0, made.done.stderr
    done = done_by(tmp_path, "short_before")
    assert begin(made.path) == [("startup", None), ("loop", 1)]
    loop_of(made.path, "train", done["train"])
    assert sum(calls(made.path)["brief"].values()) == done["brief"]
    check_sums(made.path)


# ---- the ledger ----

def test_looks_and_their_memory_are_in_the_ledger(tmp_path):
    made = run_loops(tmp_path, "killed")
    looks, memory = ledger(made.path, "look"), ledger(made.path, "look.memory")
    assert looks["received"] == looks["attributed"] > 5
    values, = query(made.path, "SELECT COUNT(*) FROM context_values")
    assert 32 * values[0] < memory["received"] == memory["attributed"] < memory["allowed"] == 256 << 20
    text = run_command(PLUMB, "report", made.path, "--ledger").stdout
    assert "look.memory" in text and "268,435,456 are allowed at most" in text


# ---- plumb run ----

def test_without_plumb_run_settle_says_that_windows_are_unknown(tmp_path):
    alive = tmp_path / "alive"
    process = subprocess.Popen(
        [PLUMB, "run", "-o", tmp_path / "run.plumb", "--", sys.executable, PROGRAMS / "loops.py", "until_gone", alive],
        cwd=tmp_path, env=environment_for_programs(**ENVIRONMENT), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL)
    deadline = time.monotonic() + LIMIT_S
    while not (alive.exists() and alive.read_text()):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    pid = int(alive.read_text())
    process.kill()
    process.wait()
    alive.unlink()
    while not (tmp_path / "done.until_gone.json").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    while os.path.exists(f"/proc/{pid}/exe"):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    folder, = tmp_path.glob(".plumb-*.run")
    done = run_command(PLUMB, "settle", folder, "-o", tmp_path / "late.plumb")
    assert done.returncode == 0, done.stderr
    assert "the windows of the run are unknown" in done.stderr
    check_unknown(tmp_path / "late.plumb")
    assert query(tmp_path / "late.plumb", "SELECT value FROM environment WHERE key = 'plumb.windows'")[0][0] \
        .startswith("unknown")


def test_what_plumb_run_noted_was_cut_short(tmp_path):
    """As if it had been killed while it wrote."""
    (tmp_path / "gone").mkdir()
    program = [sys.executable, PROGRAMS / "loops.py", "killed"]
    done = run_command(PLUMB, "run", "-o", "gone/run.plumb", "--folder", ".", "--", "sh", "-c",
                       'rmdir gone; "$@"; exit 0', "sh", *program, cwd=tmp_path, env=ENVIRONMENT)
    assert "finish with" in done.stderr
    folder, = tmp_path.glob(".plumb-*.run")
    noted = (folder / "copies").read_bytes()
    for name, size in (("whole", len(noted)), ("half", len(noted) // 2), ("empty", 0), ("one", len(noted) - 1)):
        (folder / "copies").write_bytes(noted[:size])
        path = tmp_path / f"{name}.plumb"
        settled = run_command(PLUMB, "settle", folder, "-o", path)
        assert settled.returncode == 0, settled.stderr
        if name == "whole":
            assert settled.stderr == "" and ("loop", 1) in {window[1:] for window in windows(path)}
        else:
            assert len(settled.stderr.splitlines()) == 1 and "the windows of the run are unknown" in settled.stderr
            check_unknown(path)


def test_no_room_for_what_plumb_run_noted(small_disk, tmp_path):  # noqa: F811
    made = run_loops(tmp_path, "fill", small_disk / "filled", options=["--folder", small_disk])
    assert made.done.returncode == 0, made.done.stderr
    looks = ledger(made.path, "look")
    assert looks["not_written"] == looks["received"] > 5 and "attributed" not in looks
    assert "no room in the run folder; the windows are unknown" in made.done.stderr
    assert os.listdir(small_disk) == ["filled"]
    check_unknown(made.path)
