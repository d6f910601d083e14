# SPDX-License-Identifier: Apache-2.0
"""Memory that two processes share by the file descriptor of a handle, on the stand-in Compute Sanitizer: the object is that of
the process that exported it, by the file's inode, or by device and size if the file says nothing."""
import sqlite3

import pytest
from conftest import BUILD, PLUMB, run_command

PROGRAM = BUILD / "mock/13.0/traffic"


def record(folder, file, second, when):
    path = folder / "run.plumb"
    words = "".join(f"STANDIN_PES=2 STANDIN_PE={pe} {PROGRAM} handles 2 1000 {second} {when} & " for pe in range(2))
    done = run_command(PLUMB, "run", "--traffic=full", "-o", path, "--", "sh", "-c", words + "wait",
                       env={"PLUMB_MOCK": "devices=2", "SHARED_FILE": str(file)})
    assert done.returncode == 0, done.stderr
    with sqlite3.connect(path) as db:
        return db.execute("SELECT t.bytes, d.ordinal, e.ordinal, o.kind, o.process = t.process, o.bytes FROM transfers t "
                          "JOIN devices d ON initiator = d.id LEFT JOIN devices e ON to_device = e.id "
                          "LEFT JOIN objects o ON to_object = o.id").fetchall()


@pytest.mark.parametrize("when", [0, 1, 2])
@pytest.mark.parametrize("kind", ["file", "device"])
def test_a_handle_of_another_process(kind, when, tmp_path):
    file = tmp_path / "handle"
    file.write_bytes(b"x")
    rows = record(tmp_path, *((file, 0) if kind == "file" else ("/dev/null", 1)), when)
    assert rows == [(4000, 1, 0, "device memory", 0, 65536)]


def test_one_of_several_that_may_be_it(tmp_path):
    """Two objects of that size on that device were exported: nobody knows which one it is. Its device is known."""
    assert record(tmp_path, "/dev/null", 2, 1) == [(4000, 1, 0, "memory of another process", 1, 65536)]


def test_a_closed_file_is_not_known(tmp_path):
    (row,) = record(tmp_path, tmp_path / "nothing", 1, 1)
    assert row[:4] == (4000, 1, 0, "device memory")  # by device and size
