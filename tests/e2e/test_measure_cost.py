# SPDX-License-Identifier: Apache-2.0
"""plumb run --measure-cost: a program on the stand-in driver that becomes slower by a known amount when it is recorded. It measures
its own steps, and that is what plumb's figures are compared with. test_measure_cost_runs.py has what does not depend on times."""
import json
import os
import re
import sys

import pytest
from conftest import BUILD, PLUMB, run_command
from plumbtest import PROGRAMS, query, run_program
from test_mock_gpu import NEWEST, mock_environment

PROGRAM = BUILD / "mock" / NEWEST / "mock-program"
COUNTER = BUILD / "plumb-counter.so"
SLOW = 400000  # ns that a recorded launch takes longer; a step has four


def measure(folder, *arguments, pairs=1, scenario=f"clock=1,slow={SLOW}", options=(), **more):
    made = run_program(sys.executable, "measured.py", *arguments, folder=folder, options=(f"--measure-cost={pairs}", *options),
                       environment=mock_environment(NEWEST, scenario), **more)
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".plumb")]
    return made


def cost(made):
    """The key `cost` of report --json."""
    done = run_command(PLUMB, "report", made.path, "--json", timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["run"]["cost"]


def own(folder, name="steps.txt", rank="-"):
    """{"recorded": [ns, …], "plain": […]} as the program measured its runs, in their order; the first is left out."""
    found = {"recorded": [], "plain": []}
    for line in (folder / name).read_text().splitlines():
        kind, of, step = line.split()
        if of == rank:
            found[kind].append(int(step))
    return {"recorded": found["recorded"][1:], "plain": found["plain"]}


@pytest.mark.parametrize("way", [0, 1, 2], ids=["linked", "dlsym", "cuGetProcAddress"])
def test_a_known_cost_is_measured(tmp_path, way):
    made = measure(tmp_path, "350", "steps.txt", scenario=f"clock=1,slow={SLOW},way={way}")
    assert made.done.returncode == 0, made.done.stderr
    known, found = own(tmp_path), cost(made)
    assert len(known["recorded"]) == len(known["plain"]) == 1
    assert found["kind"] == "measured" and found["scope"] == "step" and found["pairs"] == 1 and found["why"] is None
    assert known["recorded"][0] - known["plain"][0] > 3 * SLOW
    assert found["recorded_ns"] == pytest.approx(known["recorded"][0], rel=0.15)
    assert found["plain_ns"] == pytest.approx(known["plain"][0], rel=0.15)
    assert found["ratio"] == pytest.approx(known["recorded"][0] / known["plain"][0], rel=0.15)
    assert found["low"] is None and found["high"] is None  # of one pair
    assert 100 < found["steps"] <= 350
    assert re.search(r"recording costs [\d.]+ ms a step of [\d.]+ ms: 1\.\d+× \(measured; 1 pair of runs\)", made.done.stderr)


def test_the_lowest_rank_is_compared(tmp_path):
    """Two ranks that one program starts, of which the second has longer steps."""
    (tmp_path / "job.py").write_text(
        "import os, subprocess, sys\n"
        "ranks = [subprocess.Popen([sys.executable, sys.argv[1], steps, 'steps.txt'], env={**os.environ, 'RANK': rank})\n"
        "         for rank, steps in (('1', '330'), ('0', '300'))]\n"
        "sys.exit(max(rank.wait() for rank in ranks))\n")
    made = run_program(sys.executable, tmp_path / "job.py", PROGRAMS / "measured.py", folder=tmp_path,
                       options=("--measure-cost=1",), environment=mock_environment(NEWEST, f"clock=1,slow={SLOW}"))
    assert made.done.returncode == 0, made.done.stderr
    known, found = own(tmp_path, rank="0"), cost(made)
    assert found["kind"] == "measured" and found["ratio"] == pytest.approx(known["recorded"][0] / known["plain"][0], rel=0.15)
    assert query(made.path, "SELECT rank FROM processes p JOIN costs c ON c.process = p.id") == [(0,)]
    assert " on rank 0" in made.done.stderr
