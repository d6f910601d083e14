# SPDX-License-Identifier: Apache-2.0
"""`plumb import` of TensorFlow 1's timelines: what stands there twice counts once."""
import json

import pytest
from importing import imported, shared
from json_traces import check_damaged, check_hostile

JOB = "/job:localhost/replica:0/task:0"


def timeline(rows, gpu="/gpu:0", job=JOB + "/gpu:0"):
    """Events of {row: [(tid, ts, dur, type, name)]}; a row is "host", "all", "memcpy" or a stream."""
    names = {"host": f"{job} Compute", "all": f"{gpu}/stream:all Compute", "memcpy": f"{gpu}/memcpy Compute"}
    events = [{"ph": "M", "pid": 0, "name": "process_name", "args": {"name": "Allocators"}}]
    for pid, row in enumerate(rows, 1):
        name = names.get(row, f"{gpu}/stream:{row} Compute")
        events += [{"args": {"name": name}, "pid": pid, "name": "process_name", "ph": "M"},
                   {"args": {"name": name.replace("Compute", "Tensors")}, "pid": pid + 100,
                    "name": "process_name", "ph": "M"}]
    for pid, items in enumerate(rows.values(), 1):
        events += [{"ph": "X", "cat": "Op", "pid": pid, "tid": tid, "ts": ts, "dur": dur, "name": kind,
                    "args": {"name": name, "op": kind}} for tid, ts, dur, kind, name in items]
    return {"traceEvents": events}


ROWS = {
    "host": [(0, 100, 50, "MatMul", "dense/MatMul"), (1, 110, 5, "Relu", "dense/Relu"),
             (0, 160, 2, "Shape", "grad/Shape")],
    12: [(0, 130, 20, "MatMul", "dense/MatMul"), (0, 152, 3, "Relu", "dense/Relu"),
         (0, 156, 3, "Relu", "elsewhere/Relu")],
    "all": [(0, 130, 20, "MatMul", "dense/MatMul"), (0, 152, 3, "Relu", "dense/Relu"),
            (0, 156, 3, "Relu", "elsewhere/Relu")],
    13: [(0, 120, 7, "MEMCPYHtoD", "edge_7_grad/Shape"), (0, 120, 7, "MEMCPYHtoD", "edge_8_other")],
    7: [(0, 119, 1, "MatMul", "dense/MatMul")],
    "memcpy": [(0, 120, 7, "MEMCPYHtoD", "edge_7_grad/Shape"), (0, 120, 7, "MEMCPYHtoD", "edge_8_other"),
               (0, 119, 1, "MatMul", "dense/MatMul")],
}


@pytest.mark.parametrize("gpu, job", [("/gpu:0", JOB + "/gpu:0"), ("/device:GPU:0", JOB + "/device:GPU:0"),
                                      (JOB + "/device:GPU:0", JOB + "/device:GPU:0")])
def test_streams_count_once(tmp_path, gpu, job):
    made = imported(tmp_path, timeline(ROWS, gpu, job))
    assert made.format == "tf1"
    device = made.devices()[0]
    assert device["kernels"] == {"count": 3, "ns": 26000}
    assert device["copies"] == {"count": 3, "ns": 15000, "bytes": None}
    assert device["busy_ns"] == 1000 + 7000 + 26000
    fates = made.fates()
    assert fates["import", "a second record of t", "stream:all"] == 3
    assert fates["import", "a second record of t", "memcpy"] == 3
    assert made.query("SELECT command FROM processes") == [(JOB,)]
    assert {stream for stream, in made.query("SELECT stream FROM tracks WHERE stream IS NOT NULL")} == {12, 13, 7}


def test_work_hangs_under_its_operation(tmp_path):
    made = imported(tmp_path, timeline(ROWS))
    assert made.stacks() == {
        "module dense/MatMul", "module dense/MatMul > operator MatMul",
        "module dense/MatMul > operator MatMul > kernel MatMul",
        "module dense/MatMul > operator MatMul > copy copy unknown→unknown",
        "module dense/Relu", "module dense/Relu > operator Relu", "module dense/Relu > operator Relu > kernel Relu",
        "module grad/Shape", "module grad/Shape > operator Shape",
        "module grad/Shape > operator Shape > copy copy host→device", "kernel Relu", "copy copy host→device"}
    fates = made.fates()
    assert fates["gpu.kernel", "the file has no laun", None] == 1
    assert fates["gpu.copy", "the file has no laun", None] == 1
    operators = {name: row["exclusive"]["op.calls"]["sum"] for name, row in made.rows("operator").items()}
    assert operators == {"MatMul": 1, "Relu": 1, "Shape": 1}


def test_rows_that_stand_alone_count(tmp_path):
    rows = {"all": ROWS["all"], "memcpy": ROWS["memcpy"][:2]}
    device = imported(tmp_path, timeline(rows)).devices()[0]
    assert device["kernels"] == {"count": 3, "ns": 26000}
    assert device["copies"] == {"count": 2, "ns": 14000, "bytes": None}


def test_equal_events_stand_for_one_each(tmp_path):
    same = (0, 1, 2, "Relu", "r")
    device = imported(tmp_path, timeline({1: [same, same], 2: [same], "all": [same] * 4})).devices()[0]
    assert device["kernels"] == {"count": 4, "ns": 8000}


def test_names_may_come_last(tmp_path):
    events = timeline(ROWS)["traceEvents"]
    made = imported(tmp_path, {"traceEvents": events[::-1]})
    assert made.devices()[0]["kernels"] == {"count": 3, "ns": 26000}


def test_other_events_are_counted(tmp_path):
    document = timeline(ROWS)
    document["traceEvents"] += [{"ph": "s", "pid": 1, "tid": 0, "ts": 1, "id": 1},
                                {"ph": "O", "pid": 101, "tid": 0, "ts": 1, "id": 1},
                                {"ph": "X", "pid": 77, "tid": 0, "ts": 1, "dur": 1, "name": "?"}]
    fates = imported(tmp_path, document).fates()
    assert [fates["import", "plumb does not show ", what] for what in (
        "edges between operations", "tensors and allocators", "events of other processes")] == [1, 1, 1]


SMALL = {"host": ROWS["host"][:1], 12: ROWS[12][:1], "all": ROWS["all"][:1]}


def test_cut_off_at_every_byte(tmp_path):
    check_damaged(json.dumps(timeline(SMALL)), tmp_path)


def test_strange_values(tmp_path):
    check_hostile(timeline(SMALL), tmp_path)


@pytest.mark.parametrize("name, kernels, copies, operations, edges, repeated", [
    ("timeline_01", (7, 5604), (2, 1216), 13, 4, (7, 2)),
    ("timeline_02_step_0", (38, 719), (7, 59), 81, 28, (38, 7)),
    ("timeline_02_step_1", (38, 698), (6, 59), 81, 42, (38, 6)),
    ("timeline_02_step_2", (38, 697), (6, 58), 81, 24, (38, 6)),
])
def test_published_timelines(tmp_path, name, kernels, copies, operations, edges, repeated):
    made = imported(tmp_path, shared(f"tf/{name}.json").read_bytes())
    device = made.devices()[0]
    assert device["kernels"] == {"count": kernels[0], "ns": kernels[1] * 1000}
    assert device["copies"] == {"count": copies[0], "ns": copies[1] * 1000, "bytes": None}
    assert device["busy_ns"] == (kernels[1] + copies[1]) * 1000  # one after the other, as it happens
    assert sum(row["exclusive"]["op.calls"]["sum"] for row in made.rows("operator").values()) == operations
    fates = made.fates()
    assert fates["import", "plumb does not show ", "edges between operations"] == edges
    assert (fates["import", "a second record of t", "stream:all"],
            fates["import", "a second record of t", "memcpy"]) == repeated
    host = json.loads(shared("oracle/tf.json").read_text())[f"{name}.json"]
    total = sum(row["dur_us"] for key, row in host.items() if key.startswith("/job:"))
    spent = sum(row["exclusive"]["op.duration"]["mean"] * row["exclusive"]["op.duration"]["count"]
                for row in made.rows("operator").values())
    assert round(spent) == total * 1000
