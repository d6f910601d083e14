# SPDX-License-Identifier: Apache-2.0
"""plumb levels: each level at its own cost. On the stand-in driver the times of a program are known: tests/e2e/virtual_clock.c
makes sleeps exact, so what plumb finds is compared with what the program injects, however busy the machine is."""
import csv
import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
from conftest import PLUMB, ROOT, run_command
from plumbtest import PROGRAMS, environment_for_programs, query
from test_mock_gpu import NEWEST, mock_environment
from test_python_walker import compile_c

MS = 1000000
SLOW = 400000  # ns that a launch takes longer while kernels are recorded
# programs/leveled.py: a step has 6 ms, 2 ms more if plumb looks at all, and 9 launches.
M, ML, MLG = 6 * MS, 8 * MS, 8 * MS + 9 * SLOW


@pytest.fixture(scope="module", name="clock")
def clock_fixture(tmp_path_factory):
    return compile_c(tmp_path_factory.mktemp("clock") / "clock.so", "-shared", "-fPIC", "-D_GNU_SOURCE",
                     str(ROOT / "tests/e2e/virtual_clock.c"), "-ldl")


def measure(folder, *command, clock=None, options=(), runs=1, environment=None, scenario="", **more):
    """plumb levels on COMMAND, with the answer as JSON."""
    env = environment_for_programs(**(environment or {}))
    if clock:
        env |= mock_environment(NEWEST, f"clock=1,slow={SLOW}{scenario}")
        env |= {"LD_PRELOAD": clock, "VIRTUAL_CLOCK": str(folder / "clock"),
                "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), str(PROGRAMS)])}
    done = run_command(PLUMB, "levels", f"--runs={runs}", "-o", folder / "levels.plumb", "--json", *options, "--", *command, cwd=folder,
                       env=env, **{"timeout": 300, **more})
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".plumb")], "a run folder was left"
    return done


def leveled(folder, clock, *arguments, **more):
    return measure(folder, sys.executable, PROGRAMS / "leveled.py", *arguments, clock=clock, **more)


def rows_of(answer, metric, kind=None):
    return [row for row in answer["rows"] if row["metric"] == metric and kind in (None, row["kind"])]


def check_sums(answer):
    """Each context has what it has itself and what its children have: nothing is lost, and nothing is more than the whole."""
    for metric in {row["metric"] for row in answer["rows"]}:
        rows = {row["context"]: row for row in rows_of(answer, metric) if row["level"] != "serialised"}
        for row in rows.values():
            if row["corrected_ns"] is None:
                continue
            children = sum(other["corrected_ns"] or 0 for other in rows.values() if other["parent"] == row["context"])
            assert row["corrected_ns"] == (row["own_ns"] or 0) + children


# ---- known costs ----

@pytest.fixture(scope="module", name="known")
def known_fixture(tmp_path_factory, clock):
    folder = tmp_path_factory.mktemp("known")
    done = leveled(folder, clock, "300", runs=2)
    assert done.returncode == 0, done.stderr
    return folder / "levels.plumb", done


def test_each_level_is_recovered_within_2_percent(known):
    answer = json.loads(known[1].stdout)
    assert (answer["schema"], answer["verb"]) == (1, "levels")
    measured = {level["level"]: level for level in answer["measured"]}
    assert list(measured) == ["M", "M/L", "M/L/G"]
    for level in measured.values():
        assert level["runs"] == level["kept"] == 2 and level["scope"] == "step" and level["bounds"] == "launches"
        assert level["why"] is None
    assert measured["M"]["wall_ns"]["mean"] == pytest.approx(M, rel=0.02)
    assert measured["M/L"]["wall_ns"]["mean"] == pytest.approx(ML, rel=0.02)
    assert measured["M/L/G"]["wall_ns"]["mean"] == pytest.approx(MLG, rel=0.02)
    assert measured["M"]["overhead_ns"] is None
    assert measured["M/L"]["overhead_ns"] == pytest.approx(ML - M, rel=0.02)
    assert measured["M/L/G"]["overhead_ns"] == pytest.approx(MLG - ML, rel=0.02)
    assert measured["M/L"]["overhead_low_ns"] <= measured["M/L"]["overhead_ns"] <= measured["M/L"]["overhead_high_ns"]


def test_contexts_are_corrected(known):
    answer = json.loads(known[1].stdout)
    check_sums(answer)
    steps = answer["measured"][0]["steps"]
    assert steps == pytest.approx(300, abs=12)
    ranges = {row["name"]: row for row in rows_of(answer, "op.time", "range")}
    # At M/L/G: its own time, 1 ms for being looked at, and its launches. At M/L without the launches. Both fit into M.
    forward, backward = ranges["forward"], ranges["backward"]
    assert forward["measured_ns"] / steps == pytest.approx(3 * MS + 8 * SLOW, rel=0.02)
    assert backward["measured_ns"] / steps == pytest.approx(5 * MS + SLOW, rel=0.02)
    assert forward["corrected_ns"] / steps == pytest.approx(3 * MS * M / ML, rel=0.02)
    assert backward["corrected_ns"] / steps == pytest.approx(5 * MS * M / ML, rel=0.02)
    assert forward["level"] == "M/L"
    whole = next(row for row in rows_of(answer, "op.time") if row["parent"] is None)
    assert whole["corrected_ns"] <= M * 1.001 * steps
    # Launches make "forward" seem to cost more.
    assert forward["passed"] == backward["context"] and forward["passed_name"] == "backward" and backward["passed"] is None
    assert "forward" in {row["name"] for row in answer["order"]} and answer["left_out"] == []
    kernels = {row["name"]: row for row in rows_of(answer, "gpu.time", "kernel")}
    assert kernels["forward_kernel"]["corrected_ns"] / steps == pytest.approx(800000, rel=0.02)
    assert kernels["forward_kernel"]["level"] == "M/L/G"


def test_reports_of_the_profile(known):
    path = known[0]
    report = run_command(PLUMB, "report", path, "--corrected")
    assert report.returncode == 0 and "6.00 ms an iteration, without plumb" in report.stdout
    assert re.search(r"forward \(6\.\d+ ms, corrected 2\.\d+ ms\) seems to cost more than backward, and costs less", report.stdout)
    answer = json.loads(run_command(PLUMB, "report", path, "--corrected", "--json").stdout)
    assert answer["verb"] == "report" and answer["rows"] == json.loads(known[1].stdout)["rows"]
    table = list(csv.DictReader(io.StringIO(run_command(PLUMB, "report", path, "--corrected", "--csv").stdout)))
    assert len(table) == len(answer["rows"]) and table[0]["metric"] == answer["rows"][0]["metric"]
    assert query(path, "SELECT level, kept FROM levels") == [("M", 2), ("M/L", 2), ("M/L/G", 2)]
    assert query(path, "SELECT COUNT(*) FROM level_values")[0][0] == len(answer["rows"])


def test_a_join_keeps_the_levels(known, tmp_path):
    joined = tmp_path / "joined.plumb"
    assert run_command(PLUMB, "settle", known[0], "-o", joined).returncode == 0
    assert query(joined, "SELECT level, time_ns FROM levels") == query(known[0], "SELECT level, time_ns FROM levels")


def test_the_output_of_the_program_is_not_in_the_answer(known):
    assert known[1].stderr.count("made 300 steps") == 1 and "made" not in known[1].stdout
    said = [line.rpartition(", ")[2] for line in known[1].stderr.splitlines() if line.startswith("plumb: run ")]
    assert said == ["M", "M/L", "M/L/G", "M/L", "M/L/G", "M"]  # each round begins with another level


# ---- unlike work and failures ----

def test_another_number_of_steps(tmp_path, clock):
    """Runs 2 (at M) and 3 (at M/L) make a step more. At M only launches tell."""
    done = leveled(tmp_path, clock, "300,301,301,300,300,300,300", "runs.txt", runs=2)
    assert done.returncode == 0, done.stderr
    measured = {level["level"]: level for level in json.loads(done.stdout)["measured"]}
    assert measured["M"]["kept"] == measured["M/L"]["kept"] == 1 and measured["M/L/G"]["kept"] == 2
    assert measured["M"]["why"] == "run 2 is left out: it had 2769 launches, and the first run 2760"
    assert measured["M/L"]["why"] == "run 3 is left out: it had 2769 launches, and the first run 2760"
    assert measured["M"]["wall_ns"]["mean"] == pytest.approx(M, rel=0.02)
    assert measured["M/L"]["wall_ns"]["mean"] == pytest.approx(ML, rel=0.02) and measured["M/L"]["wall_ns"]["low"] is None


def test_a_run_that_fails_is_left_out(tmp_path, clock):
    done = leveled(tmp_path, clock, "300,300,exit,300", "runs.txt")
    assert done.returncode == 0
    assert done.stderr.count("run 3 (M/L) is left out: the program failed with exit code 3") == 1
    measured = {level["level"]: level for level in json.loads(done.stdout)["measured"]}
    assert measured["M/L"]["kept"] == 0 and measured["M/L"]["wall_ns"]["mean"] is None
    assert measured["M"]["wall_ns"]["mean"] == pytest.approx(M, rel=0.02)
    assert measured["M/L/G"]["wall_ns"]["mean"] == pytest.approx(MLG, rel=0.02) and measured["M/L/G"]["overhead_ns"] is None


def test_a_program_that_fails_at_once(tmp_path, clock):
    done = leveled(tmp_path, clock, "exit")
    assert done.returncode == 2 and done.stdout == "" and not (tmp_path / "levels.plumb").exists()
    assert "the program failed with exit code 3 in the first run, so nothing was measured" in done.stderr


def test_a_serialised_run(tmp_path, clock):
    done = leveled(tmp_path, clock, "300", options=("--serialised=always",))
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert [level["level"] for level in answer["measured"]] == ["M", "M/L", "M/L/G", "serialised"]
    assert {row["level"] for row in rows_of(answer, "op.time")} == {"M/L", "serialised"}


def test_an_interrupted_measurement_compares_what_there_is(tmp_path, clock):
    env = environment_for_programs(**mock_environment(NEWEST, f"clock=1,slow={SLOW}"), LD_PRELOAD=clock,
                                   VIRTUAL_CLOCK=str(tmp_path / "clock"),
                                   PYTHONPATH=os.pathsep.join([str(ROOT / "python"), str(PROGRAMS)]))
    process = subprocess.Popen(
        [PLUMB, "levels", "--runs=3", "-o", tmp_path / "a.plumb", "--json", "--", sys.executable, PROGRAMS / "leveled.py", "300"],
        cwd=tmp_path, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if "run 5 of 10" in line:
            break
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "interrupted in run 5 of 10" in err
    assert [level["kept"] for level in json.loads(out)["measured"]] == [1, 1, 1]
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".plumb")] == []


# ---- counters ----

def test_rooflines_have_counters_and_the_times_of_other_runs(tmp_path, clock, any_torch_python):
    """The times of a roofline are those of M/L/G: the run that counts is in no mean of theirs."""
    done = measure(tmp_path, any_torch_python, PROGRAMS / "batched.py", "--batch", "16", clock=clock, options=("--counters",))
    assert done.returncode == 0, done.stderr
    measured = {level["level"]: level for level in json.loads(done.stdout)["measured"]}
    assert measured["M"]["wall_ns"]["mean"] == pytest.approx(4 * MS, rel=0.02) and measured["M"]["bounds"] == "launches"
    assert measured["M/L/G/C"]["kept"] == 1
    made = run_command(PLUMB, "tables", tmp_path / "levels.plumb", "A9", "A14", "--peak", "4000", "--bandwidth", "1250", "--json")
    kernels, layers = json.loads(made.stdout)["tables"]
    rows = [dict(zip((column["name"] for column in table["columns"]), row)) for table in (kernels, layers) for row in table["rows"]]
    found = {row.get("kernel_name", "layer"): [value for name, value in row.items() if "arithmetic_" in name or "bound" in name] for row in rows}
    assert found == {"one": pytest.approx([2, 2000, True, 3.2], rel=0.02), "two": pytest.approx([50, 2000, False, 3.2], rel=0.02),
                     "layer": pytest.approx([6 / 1.08, 2000, False, 3.2], rel=0.02)}


# ---- PyTorch, and programs without a framework ----

def test_inference_without_iterations_is_compared_as_a_whole(tmp_path, any_torch_python):
    done = measure(tmp_path, any_torch_python, PROGRAMS / "layered.py", "infer", "60")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    check_sums(answer)
    assert {(level["scope"], level["bounds"], level["kept"]) for level in answer["measured"]} == {("run", "run", 1)}
    names = {row["name"] for row in rows_of(answer, "op.time", "operator")}
    assert {"aten::linear", "aten::addmm", "aten::relu"} <= names and answer["left_out"] == []
    whole = next(row for row in rows_of(answer, "op.time") if row["parent"] is None)
    assert 0 < whole["corrected_ns"] <= answer["measured"][0]["wall_ns"]["mean"]
    shown = run_command(PLUMB, "report", tmp_path / "levels.plumb", "--corrected")
    assert "the runs are compared as a whole, with their start" in " ".join(shown.stdout.split())


def test_training_is_bounded_by_its_ranges(tmp_path, any_torch_python):
    done = measure(tmp_path, any_torch_python, PROGRAMS / "layered.py", "train", "300")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    check_sums(answer)
    assert {(level["scope"], level["bounds"], level["kept"]) for level in answer["measured"]} == {("step", "loop", 1)}
    tables = json.loads(run_command(PLUMB, "tables", tmp_path / "levels.plumb", "A1", "A3", "--json").stdout)["tables"]
    one = dict(zip((column["name"] for column in tables[0]["columns"]), tables[0]["rows"][0]))
    assert one["duration_kind"] == "M" and one["duration (us)"] == pytest.approx(answer["measured"][0]["wall_ns"]["mean"] / 1000, rel=0.02)
    names = [column["name"] for column in tables[1]["columns"]]
    layers = {row[names.index("layer_name")]: row for row in tables[1]["rows"]}
    assert {row[names.index("layer_host_duration_kind")] for row in layers.values()} == {"M/L"}
    linear = [row for row in rows_of(answer, "op.time", "module") if row["name"] == "0"]
    backward = query(tmp_path / "levels.plumb", "SELECT SUM(own_ns) FROM level_values v JOIN context_frames c ON c.context = v.context"
                     " WHERE c.backward = 0 AND v.level = 'M/L' AND v.metric = 2"
                     f" AND v.context BETWEEN {linear[0]['context']} AND (SELECT last FROM contexts WHERE id = {linear[0]['context']})"
                     " AND NOT EXISTS (SELECT 1 FROM contexts a JOIN context_frames f ON f.context = a.id"
                     " WHERE a.id <= v.context AND a.last >= v.context AND (f.backward OR f.accumulation))")
    steps = answer["measured"][0]["steps"]
    assert layers["0"][names.index("layer_host_duration (us)")] == pytest.approx(backward[0][0] / steps / 1000, rel=0.25)


def test_a_program_without_a_framework(tmp_path, clock):
    """It launches kernels and has neither operators nor ranges: M/L adds nothing to see."""
    (tmp_path / "plain.py").write_text("import time\nfrom launcher import kernel\nfor _ in range(300):\n    time.sleep(0.004)\n"
                                       "    kernel(b'one', 1000, 8, 64, 32, 0, 0)\n    kernel(b'two', 2000, 8, 64, 32, 0, 0)\n")
    done = measure(tmp_path, sys.executable, tmp_path / "plain.py", clock=clock)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert [level["kept"] for level in answer["measured"]] == [1, 1, 1] and not rows_of(answer, "op.time")
    assert answer["measured"][0]["wall_ns"]["mean"] == pytest.approx(4 * MS, rel=0.02)
    assert answer["measured"][2]["overhead_ns"] == pytest.approx(2 * SLOW, rel=0.02)


def test_nothing_to_record(tmp_path):
    done = measure(tmp_path, "sh", "-c", "echo run >>runs")
    assert done.returncode == 3 and "nothing was recorded of sh" in done.stderr
    assert (tmp_path / "runs").read_text() == "run\n"


# ---- wrong use ----

@pytest.mark.parametrize("options, words", [
    (("--runs=0",), "--runs takes 1 to 50"), (("--json", "--csv"), "choose --json or --csv"), (("--limit=1",), "at least 1M"), (("--counters=reed",), "does not know"),
    (("--sweep", "batch"), "--sweep takes NAME=VALUES"), (("--sweep", "batch=1,2"), "the command has no {batch}"),
    (("--sweep", "batch=1,x"), "not \"x\"")])
def test_wrong_options(tmp_path, options, words):
    done = run_command(PLUMB, "levels", *options, "--", "touch", "started", cwd=tmp_path)
    assert done.returncode == 1 and words in done.stderr and not (tmp_path / "started").exists()


def test_a_pipe_is_refused(tmp_path):
    done = run_command(PLUMB, "levels", "--", "touch", "started", cwd=tmp_path, stdin=None, input="x")
    assert done.returncode == 1 and "levels runs the program several times, but standard input is a pipe" in done.stderr
    assert not (tmp_path / "started").exists()


def test_a_program_that_is_not_there(tmp_path):
    done = run_command(PLUMB, "levels", "--", "nothing-of-the-kind", cwd=tmp_path)
    assert done.returncode == 2 and "cannot execute nothing-of-the-kind: PATH has no program of that name" in done.stderr


def test_a_rank_of_a_launcher_is_refused(tmp_path):
    done = run_command(PLUMB, "levels", "--", "touch", "started", cwd=tmp_path, env={"RANK": "0"})
    assert done.returncode == 1 and "plumb levels -- torchrun" in done.stderr and not (tmp_path / "started").exists()


def test_a_profile_without_levels(tmp_path, known):
    plain = tmp_path / "plain.plumb"
    assert run_command(PLUMB, "settle", known[0], "-o", plain).returncode == 0
    with sqlite3.connect(plain) as file:
        file.execute("DROP TABLE levels")
        file.execute("DROP TABLE level_values")
    done = run_command(PLUMB, "report", plain, "--corrected")
    assert done.returncode == 3 and "has no levels; measure them with plumb levels" in done.stderr
    done = run_command(PLUMB, "report", plain, "--corrected", "--by", "kernel")
    assert done.returncode == 1 and "leave out --by" in done.stderr


# ---- sweeps ----

def test_a_sweep_finds_the_optimal_batch_size(tmp_path, clock, any_torch_python):
    """A step of N inputs takes 2 ms + N/8 ms: from 16 to 32 the throughput grows by a third, from 64 to 128 by less than it."""
    done = measure(tmp_path, any_torch_python, PROGRAMS / "batched.py", "--batch", "{batch}", clock=clock,
                   options=("--sweep", "batch=16,3,32"))
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["sweep"] == "batch" and [value["value"] for value in answer["values"]] == ["16", "3", "32"]
    assert "batch 3 is left out: the program failed with exit code 4 in the first run" in done.stderr
    assert answer["values"][1]["file"] is None and (tmp_path / "levels.batch-16.plumb").exists()
    table = answer["tables"][0]
    names = [column["name"] for column in table["columns"]]
    assert table["id"] == "A1" and len(table["rows"]) == 2
    for value, row in zip((answer["values"][0], answer["values"][2]), table["rows"]):
        size = int(value["value"])
        assert value["measured"][0]["wall_ns"]["mean"] == pytest.approx((2 + size / 8) * MS, rel=0.02)
        row = dict(zip(names, row))
        assert row["batch_size"] == size and row["duration_kind"] == "M"
        assert row["throughput (input/s)"] == pytest.approx(size / (2 + size / 8) * 1000, rel=0.02)
        assert row["optimal_by_doubling"] == row["optimal_by_throughput"] == (size == 32)


def test_a_sweep_where_nothing_can_be_measured(tmp_path):
    done = measure(tmp_path, "sh", "-c", "exit {code}", options=("--sweep", "code=1,2"))
    assert done.returncode == 3 and "no value of --sweep could be measured" in done.stderr
    assert "code 1 is left out" in done.stderr and "code 2 is left out" in done.stderr
