# SPDX-License-Identifier: Apache-2.0
"""Faults that tests/accuracy/planted.py planted into trainings on an NVIDIA H200: plumb names each in what was
recorded."""
import gzip
import json
import shutil
import sys

import pytest
from conftest import PLUMB, ROOT

sys.path.insert(0, str(ROOT / "tests" / "accuracy"))

import planted  # noqa: E402

DATA = ROOT / "tests" / "data" / "planted"


@pytest.mark.parametrize("scenario", sorted(planted.CHECKS))
def test_planted(tmp_path, scenario):
    recorded = DATA / f"{scenario}.plumb.gz"
    if not recorded.exists():
        pytest.skip(f"{recorded} was not recorded: tests/accuracy/planted.py --out makes it on a machine with a GPU")
    truth = json.loads((DATA / "truth.json").read_text())[scenario]
    for mark, line in truth["lines"].items():
        assert planted.line_of(mark) == line, "the program changed since it was recorded"
    profile = tmp_path / f"{scenario}.plumb"
    with gzip.open(recorded) as source, open(profile, "wb") as target:
        shutil.copyfileobj(source, target)
    planted.CHECKS[scenario](planted.Told([str(PLUMB)], profile))


def test_the_marks_are_in_the_program():
    for mark in ("grows", "copies", "sleep", "slowcopy", "laterank", "load"):
        assert f"# @{mark}" in planted.PROGRAM.splitlines()[planted.line_of(mark) - 1]
    assert set(planted.TRUTH) == set(planted.CHECKS)
