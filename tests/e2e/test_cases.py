# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/cases: each runs on the CPU, and its two variants compute the same."""
import os
import re

import pytest
from conftest import ROOT, run_command

FOLDER = ROOT / "examples" / "cases"
CASES = ("embedding", "unet", "loss", "loader", "copies")
LIGHT = {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def result(python, case, *words):
    done = run_command(python, FOLDER / f"{case}.py", "--device", "cpu", "--steps", "1", *words,
                       env=LIGHT)
    assert done.returncode == 0, done.stderr
    found = re.fullmatch(r"loss (\S+), (\S+) ms a step, 1 steps after 0\n", done.stdout)
    assert found and float(found[2]) > 0, done.stdout
    return float(found[1])


def test_every_program_is_a_case():
    assert {path.stem for path in FOLDER.glob("*.py")} - {"common"} == set(CASES)
    readme = (FOLDER / "README.md").read_text()
    page = (ROOT / "docs" / "cases.md").read_text()
    assert all(f"{case}.py" in readme and f"{case}.py" in page for case in CASES)


@pytest.mark.parametrize("case", CASES)
def test_both_variants_compute_the_same(torch_python, case):
    before, after = result(torch_python, case), result(torch_python, case, "--fixed")
    assert after == pytest.approx(before, rel=1e-3)


@pytest.mark.parametrize("start", ["spawn", "fork"])
@pytest.mark.parametrize("many", [True, False], ids=["fault", "fixed"])
def test_too_many_workers_are_found_on_a_cpu(torch_python, record, many, start):
    cores = os.sysconf("SC_NPROCESSORS_ONLN")
    recording = record(torch_python, FOLDER / "loader.py", "--device", "cpu", "--steps", "3",
                       "--start", start, "--workers", cores + 1 if many else 1, env=LIGHT)
    assert recording.returncode == 0, recording.stderr
    if "a forked child records nothing" in recording.stderr:
        pytest.skip("this plumb does not record forked children")
    report = recording.report()
    found = [row for row in report["findings"] if row["id"].startswith("latency-workers")]
    assert bool(found) == many, report["findings"]
    if many:
        assert found[0]["severity"] == "warning" and found[0]["saving_ns"] is None  # no GPU
        assert found[0]["evidence"]["cores"] == cores
        assert found[0]["evidence"]["workers"] == cores + 1
        assert found[0]["evidence"]["user_file"].endswith("loader.py")
        assert f"{cores + 1} DataLoader workers share {cores} processors" in recording.stderr
