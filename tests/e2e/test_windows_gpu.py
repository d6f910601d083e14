# SPDX-License-Identifier: Apache-2.0
"""Windows of GPU work, on the stand-in driver: all kinds of values, shapes and devices, and their sums."""
import json
import sys

import pytest
from plumbtest import query, run_program
from test_mock_gpu import NEWEST, mock_environment
from test_windows_ends import begin

DEVICE = ("kernels", "kernel_ns", "copies", "copy_ns", "copy_bytes", "sets", "set_ns", "set_bytes", "busy_ns")
SHAPE = ("shapes", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers", "static_shared_bytes",
         "dynamic_shared_bytes", "occupancy_ppm")


@pytest.fixture(name="made", scope="module")
def made_fixture(tmp_path_factory):
    made = run_program(sys.executable, "mock_windows.py", "done.json", folder=tmp_path_factory.mktemp("gpu"),
                       environment=mock_environment(NEWEST, "clock=1"))
    assert made.done.returncode == 0, made.done.stderr
    made.rounds = json.loads((made.folder / "done.json").read_text())
    return made


def of_windows(made, text):
    """{(kind, number): what TEXT selects of its rows}; TEXT has no column of windows."""
    return {row[:2]: row[2:] for row in query(made.path, text)}


def sums(made, metric, frame):
    """{(kind, number): (sum, count)}"""
    return of_windows(made, f"""
        SELECT w.kind, w.number, SUM(v.sum), SUM(v.count) FROM window_values v JOIN windows w ON w.id = v.window
        JOIN contexts c ON c.id = v.context JOIN frames f ON f.id = c.frame JOIN metrics m ON m.id = v.metric
        WHERE m.name = '{metric}' AND f.name = '{frame}' GROUP BY w.id""")


def test_two_loops(made):
    assert begin(made.path) == [("startup", None), ("loop", 1), ("loop", 2)]


def test_values_of_all_kinds_are_the_whole(made):
    columns = "v.metric, v.context, v.track, v.from_device, v.to_device"
    # Properties of a kernel are constants of a shape; memory that is held at a moment is no sum.
    text = f"""SELECT m.name, {columns}, SUM(v.sum), SUM(v.count) FROM {{}} v JOIN metrics m ON m.id = v.metric
        WHERE m.name NOT IN ('mem.held', 'mem.peak') GROUP BY {columns} ORDER BY {columns}"""
    whole = query(made.path, text.format("context_values"))
    assert query(made.path, text.format("window_values")) == whole
    kinds = {row[0] for row in whole}
    assert kinds >= {"gpu.time", "gpu.launches", "gpu.copy_time", "gpu.copy_bytes", "gpu.alloc_bytes", "gpu.free_bytes",
                     "host.wait"}


def test_variants_are_the_whole(made):
    columns = ", ".join(("context", "track", *SHAPE))
    text = f"SELECT {columns}, SUM(count), SUM(time_ns) FROM {{}} GROUP BY {columns} ORDER BY {columns}"
    whole = query(made.path, text.format("variants"))
    assert len(whole) > 10 and query(made.path, text.format("window_variants")) == whole


def test_devices_are_the_whole(made):
    columns = ", ".join(f"SUM({column})" for column in DEVICE)
    whole = query(made.path, f"SELECT {columns} FROM devices")
    assert query(made.path, f"SELECT {columns} FROM window_devices") == whole
    assert all(whole[0])
    by_window = query(made.path, "SELECT kernel_ns + copy_ns + set_ns, busy_ns FROM window_devices")
    # One stream: nothing overlaps.
    assert all(work == busy for work, busy in by_window)


@pytest.mark.parametrize("metric, frame, value, rounds", [
    ("gpu.time", "update", 2000000, "train"), ("gpu.time", "score", 3000000, "evaluate"),
    ("gpu.copy_bytes", "copy device→pageable", 128, "evaluate"), ("gpu.copy_time", "set device", 100000, "train"),
    ("gpu.copy_bytes", "set device", 512, "train"), ("gpu.launches", "cuMemsetD8Async", 1, "train")])
def test_each_loop_has_its_own(made, metric, frame, value, rounds):
    """But for what looks at its borders see, of thirty."""
    found, times = sums(made, metric, frame), made.rounds[rounds]
    loop = ("loop", 1 if rounds == "train" else 2)
    assert sum(total for total, _ in found.values()) == value * times
    assert all(total == value * count for total, count in found.values())
    assert found[loop][1] > 0.6 * times


def test_devices_by_loop(made):
    found = of_windows(made, f"""SELECT w.kind, w.number, {', '.join('d.' + column for column in DEVICE)}
        FROM window_devices d JOIN windows w ON w.id = d.window""")
    train, evaluate = (dict(zip(DEVICE, found["loop", number])) for number in (1, 2))
    for name, loop in (("train", train), ("evaluate", evaluate)):
        assert 0.6 * made.rounds[name] < loop["kernels"] / 3 < made.rounds[name] + 0.4 * max(made.rounds.values())
    assert train["set_bytes"] == 512 * train["sets"] and train["sets"] > 0.6 * made.rounds["train"]
    assert evaluate["sets"] < 0.4 * made.rounds["train"]
