# SPDX-License-Identifier: Apache-2.0
"""What NVSHMEM allocates, on the stand-ins of NVSHMEM and of the Compute Sanitizer: one process for each PE."""
import json
import sqlite3
import sys

from conftest import BUILD, PLUMB, ROOT, run_command

sys.path.insert(0, str(ROOT / "bench/traffic"))
import run as bench  # noqa: E402

PROGRAM = BUILD / "mock/13.0/traffic"


def record(path, pes, elements=1000):
    words = "".join(f"STANDIN_PES={pes} STANDIN_PE={pe} {PROGRAM} symmetric {pes} {elements} & " for pe in range(pes))
    done = run_command(PLUMB, "run", "--traffic=full", "-o", path, "--", "sh", "-c", words + "wait",
                       env={"PLUMB_MOCK": f"devices={pes}"})
    assert done.returncode == 0, done.stderr
    return path


def test_windows_are_objects_of_their_pe(tmp_path):
    path = record(tmp_path / "t.plumb", 3)
    with sqlite3.connect(path) as db:
        rows = db.execute("SELECT t.bytes, t.route, f.ordinal, d.ordinal, o.bytes, o.kind, o.process = t.process, o.context "
                          "FROM transfers t JOIN devices f ON from_device = f.id JOIN devices d ON to_device = d.id "
                          "JOIN objects o ON to_object = o.id ORDER BY f.ordinal").fetchall()
    # The second allocation of the next PE, which that process knows: the flag beside it is not among them.
    assert [row[:7] for row in rows] == [(4000, "peer access by IPC", i, (i + 1) % 3, 8192, "device memory", 0) for i in range(3)]
    assert all(row[7] is not None for row in rows)
    assert bench.moved_of_objects(path, 8192) == {("to", i, (i + 1) % 3): 4000 for i in range(3)}
    assert bench.moved_of_objects(path, 4096) == {}


def test_what_is_beside_them_is_not_known(tmp_path):
    path = record(tmp_path / "t.plumb", 2)
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT SUM(count) FROM ledger WHERE source = 'access' AND fate = 'no_allocation'").fetchone() == (4,)
    done = run_command(PLUMB, "traffic", path, "--json")
    answer = json.loads(done.stdout)
    assert answer["matrices"]["initiated"] == [[0, 4000], [4000, 0]]
    assert all("symmetric" in str(o["context"]) or o["allocated_at"] for o in answer["objects"] if o["bytes"] == 8192)
