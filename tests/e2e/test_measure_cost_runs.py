# SPDX-License-Identifier: Apache-2.0
"""plumb run --measure-cost: which runs it makes and compares, what it says of them, and the counter of launches. No test here compares
a time, so others may run beside them."""
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from conftest import PLUMB, run_command
from plumbtest import PROGRAMS, environment_for_programs, query, run_program
from test_measure_cost import COUNTER, PROGRAM, cost, measure
from test_mock_gpu import NEWEST, mock_environment


def test_two_pairs_have_an_interval(tmp_path):
    made = measure(tmp_path, "300", "steps.txt", pairs=2)
    found = cost(made)
    assert [line.split()[0] for line in (tmp_path / "steps.txt").read_text().splitlines()] == [
        "recorded", "recorded", "plain", "plain", "recorded"]
    assert found["pairs"] == 2 and found["low"] <= found["ratio"] <= found["high"]
    assert "95 %: " in made.done.stderr and "2 pairs of runs" in made.done.stderr
    assert query(made.path, "SELECT scope, pairs, why FROM costs") == [("step", 2, None)]
    # Only the first run is heard.
    assert made.done.stdout == "made 300 steps\n"
    said = [line for line in made.done.stderr.splitlines() if "measuring what recording costs" in line]
    assert [line.rpartition(": ")[2] for line in said] == ["run 2 of 5, with plumb", "run 3 of 5, without plumb",
                                                           "run 4 of 5, without plumb", "run 5 of 5, with plumb"]
    # A report and a join keep it.
    assert "recording costs" in run_command(PLUMB, "report", made.path).stdout
    joined = tmp_path / "joined.plumb"
    assert run_command(PLUMB, "settle", made.path, "-o", joined).returncode == 0
    assert query(joined, "SELECT scope, pairs FROM costs") == [("step", 2)]


def test_a_program_without_launches_is_compared_as_a_whole(tmp_path, any_torch_python):
    made = run_program(any_torch_python, "known_tree.py", folder=tmp_path, options=("--measure-cost=2", "--quiet"))
    found = cost(made)
    assert made.done.returncode == 0 and made.done.stderr == ""
    assert found["kind"] == "measured" and found["scope"] == "run" and found["steps"] is None and found["process"] is None
    assert found["ratio"] > 0 and found["plain_ns"] > 0
    assert "the whole run, measured" in run_command(PLUMB, "report", made.path).stdout


# ---- unlike work ----

def test_another_number_of_steps(tmp_path):
    made = measure(tmp_path, "300,300,301", "steps.txt")
    found = cost(made)
    assert made.done.returncode == 0
    assert found["kind"] is None and found["ratio"] is None and found["recorded_ns"] is None
    assert found["why"] == ("the runs did different work: 1264 launches in run 3 (without plumb), 1260 in the first; a step has 4")
    assert "cost of recording unknown: the runs did different work" in made.done.stderr


def test_another_exit_code(tmp_path):
    made = measure(tmp_path, "250,exit,250", "steps.txt")
    assert made.done.returncode == 0
    assert cost(made)["why"] == "the program ended with exit code 3 in run 2 (with plumb), and with 0 in the first"
    assert len((tmp_path / "steps.txt").read_text().splitlines()) == 2  # the third run would tell nothing


def test_a_program_that_always_fails_is_measured(tmp_path):
    made = measure(tmp_path, "exit", "steps.txt")
    assert made.done.returncode == 3 and cost(made)["kind"] == "measured"


def test_a_killed_program_does_not_run_again(tmp_path):
    path = tmp_path / "run.plumb"
    done = run_command(PLUMB, "run", "--measure-cost=1", "-o", path, "--", PROGRAM, "repeat:40", "launch:a:1000", "kill:15",
                       cwd=tmp_path)
    assert done.returncode == -15
    assert "measuring what" not in done.stderr
    assert query(path, "SELECT ratio, why FROM costs") == [(None, "signal 15 (Terminated) ended the program in run 1")]


def test_an_interrupted_measurement_keeps_the_profile(tmp_path):
    path = tmp_path / "run.plumb"
    process = subprocess.Popen(
        [PLUMB, "run", "--measure-cost=3", "-o", path, "--", sys.executable, PROGRAMS / "measured.py", "300", "steps.txt"],
        cwd=tmp_path, env=environment_for_programs(**mock_environment(NEWEST, "clock=1")), stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if "run 2 of 7" in line:
            break
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    said = process.stderr.read()
    assert process.wait(timeout=60) == 0
    assert "cost of recording unknown: it was interrupted in run 2 of 7" in said and "run 3 of 7" not in said
    assert query(path, "SELECT SUM(kernels) FROM devices") == [(1260,)]
    assert query(path, "SELECT why FROM costs") == [("it was interrupted in run 2 of 7",)]
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".plumb")] == []


# ---- what the runs read ----

def test_a_file_is_read_again(tmp_path):
    (tmp_path / "input").write_text("skipped\n260\n")
    with open(tmp_path / "input", encoding="utf-8") as file:
        os.lseek(file.fileno(), len("skipped\n"), os.SEEK_SET)
        made = measure(tmp_path, "-", "steps.txt", stdin=file)
    assert made.done.returncode == 0 and cost(made)["kind"] == "measured"
    assert len((tmp_path / "steps.txt").read_text().splitlines()) == 3


def test_a_pipe_is_refused(tmp_path):
    made = measure(tmp_path, "-", "steps.txt", stdin=None, input="260\n")
    assert made.done.returncode == 125 and not made.path.exists() and not (tmp_path / "steps.txt").exists()
    assert "standard input is a pipe" in made.done.stderr and "</dev/null" in made.done.stderr


# ---- options ----

@pytest.mark.parametrize("options, words", [
    (("--measure-cost=0",), "1 to 100 pairs"), (("--measure-cost=101",), "1 to 100 pairs"),
    (("--measure-cost", "--toggle", "USR1"), "leave out --toggle"),
    (("--measure-cost", "--start-after", "1"), "leave out --start-after"),
    (("--measure-cost", "--duration", "1"), "leave out --duration")])
def test_wrong_options(tmp_path, options, words):
    done = run_command(PLUMB, "run", *options, "--", "touch", "started", cwd=tmp_path)
    assert done.returncode == 125 and words in done.stderr and not (tmp_path / "started").exists()


def test_a_rank_of_a_launcher_is_refused(tmp_path):
    done = run_command(PLUMB, "run", "--measure-cost", "--", "touch", "started", cwd=tmp_path, env={"RANK": "0"})
    assert done.returncode == 125 and "plumb run --measure-cost -- torchrun" in done.stderr
    assert not (tmp_path / "started").exists()


def test_nothing_captured_is_not_measured(tmp_path):
    done = run_command(PLUMB, "run", "--measure-cost", "-o", tmp_path / "a.plumb", "--", "sh", "-c", "echo run >>runs",
                       cwd=tmp_path, stdin=subprocess.DEVNULL)
    assert done.returncode == 0 and "what recording costs was not measured" in done.stderr
    assert (tmp_path / "runs").read_text() == "run\n"


def test_a_program_that_is_not_there(tmp_path):
    done = run_command(PLUMB, "run", "--measure-cost", "--", "./nothing", cwd=tmp_path)
    assert done.returncode == 127


# ---- the counter ----

def test_the_counter_is_off_without_its_variable(tmp_path):
    """A library that stays loaded by accident does nothing."""
    done = run_command(PROGRAM, "repeat:5", "launch:a:1000", cwd=tmp_path, env={"LD_PRELOAD": str(COUNTER)})
    assert done.returncode == 0 and not list(tmp_path.iterdir())


def test_a_forked_child_has_a_file_of_its_own(tmp_path):
    done = run_command(PROGRAM, "repeat:5", "launch:a:1000", "fork:b:1000", cwd=tmp_path,
                       env={"LD_PRELOAD": str(COUNTER), "PLUMB_LAUNCHES": f"{tmp_path}/x-"})
    assert done.returncode == 0, done.stderr
    counts = sorted(int.from_bytes(path.read_bytes()[32:40], sys.byteorder) for path in tmp_path.glob("x-*.launches"))
    assert counts == [1, 5]


def test_a_small_limit_of_files_ends_the_counting_and_nothing_else(tmp_path):
    done = run_command("sh", "-c", f"ulimit -f 1100; exec {PROGRAM} threads:1:70000:a:1 repeat:5 launch:b:1", cwd=tmp_path,
                       env={"LD_PRELOAD": str(COUNTER), "PLUMB_LAUNCHES": f"{tmp_path}/x-"})
    assert done.returncode == 0, done.stderr
    path, = tmp_path.glob("x-*.launches")
    data = path.read_bytes()
    assert int.from_bytes(data[32:40], sys.byteorder) == 70005  # launches; the room is below
    assert int.from_bytes(data[40:48], sys.byteorder) == 65536
