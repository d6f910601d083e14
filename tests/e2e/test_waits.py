# SPDX-License-Identifier: Apache-2.0
"""Who waited for whom on a GPU: a recording of tests/accuracy/waits.py."""
import gzip
import importlib.util
import json
import shutil
import sqlite3

import pytest
from conftest import PLUMB, ROOT, run_command

import plumb

RECORDED = ROOT / "tests/data/waits.plumb.gz"


@pytest.fixture
def path(tmp_path):
    if not RECORDED.exists():
        pytest.skip("tests/data/waits.plumb.gz is not there: python3 tests/accuracy/waits.py --keep")
    file = tmp_path / "waits.plumb"
    with gzip.open(RECORDED, "rb") as source, open(file, "wb") as target:
        shutil.copyfileobj(source, target)
    return file


def edges(path):
    done = run_command(PLUMB, "iters", path, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["path"]["edges"]


def test_every_wait_is_recorded(path):
    spec = importlib.util.spec_from_file_location("waits", ROOT / "tests/accuracy/waits.py")
    waits = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(waits)
    assert waits.who_waited(plumb.Profile(path)) == waits.EXPECTED


def test_the_path_uses_them(path):
    """Streams wait 60 times, the host 92 times; nothing else is inferred."""
    found = edges(path)
    assert (found["events"], found["syncs"]) == (60, 92)
    assert found["inferred_events"] == found["unmatched"] == 0
    assert found["inferred_syncs"] <= 2  # a copy that returned when it was done is no wait that CUPTI tells of


def test_what_is_inferred_without(path):
    """Times alone tell most of the waits of streams, and of the host those that took time."""
    database = sqlite3.connect(path)
    database.execute("DELETE FROM waits")
    database.commit()
    database.close()
    found = edges(path)
    assert found["events"] == found["syncs"] == 0
    assert 54 <= found["inferred_events"] <= 60
    assert 50 <= found["inferred_syncs"] <= 92
