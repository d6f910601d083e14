# SPDX-License-Identifier: Apache-2.0
"""rocmProfileData (RPD): exact figures of a published file (where it lies beside the project), and every
table in small."""
import collections
import json
import sqlite3

import pytest
from importing import TRACES, imported, refused, report
from sqlitetest import HOSTILE_SCHEMA, UNMATCHED, contexts, damages, fates, make, packed, survives, truncations

import plumb as plumb_package

FILE = TRACES / "rocm" / "r02_matmul.rpd"
needs_traces = pytest.mark.skipif(not FILE.exists(), reason="the published traces are not beside the project")


# ---- the published file ----


@needs_traces
def test_known_figures(tmp_path):
    known = json.loads((TRACES / "oracle" / "r02_matmul.json").read_text())
    types = known["ops_by_type"]
    path = imported(tmp_path, FILE)
    data = report(path, "--by", "kernel")
    (device,) = data["devices"]
    kernels, fills = types["KernelExecution"], types["FillBuffer"]
    copies = [types["CopyDeviceToHost"], types["CopyHostToDevice"]]
    assert device["ordinal"] == 2
    assert device["kernels"] == {"count": kernels["n"], "ns": kernels["ns"]}
    assert device["copies"] == {"count": known["copy_bytes"][0], "ns": sum(c["ns"] for c in copies),
                                "bytes": known["copy_bytes"][1]}
    assert (device["sets"]["count"], device["sets"]["ns"]) == (fills["n"], fills["ns"])
    assert device["busy_ns"] == known["op_busy_union"]
    assert device["span_ns"] == known["op_span"] and device["idle_ns"] == known["op_idle"]
    for source, count in (("gpu.kernel", kernels["n"]), ("gpu.copy", 55), ("gpu.set", 1)):
        assert fates(data, source) == {"received": count, "attributed": count}
    assert fates(data) == {"rocpd_monitor": 15}
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT count(DISTINCT name) FROM frames WHERE kind = 'kernel'").fetchone() == (
            known["unique_kernel_names"],)
    for row, most in zip(data["rows"], known["top5_KernelExecution"]):
        assert row["name"].startswith(most["name"])
        assert row["exclusive"]["gpu.time"]["sum"] == most["total"]
        assert row["exclusive"]["gpu.time"]["count"] == most["count"]


@needs_traces
def test_kinds_and_calls(tmp_path):
    """Each type of operation by itself, and every call on its thread."""
    path = imported(tmp_path, FILE)
    counts, times = collections.Counter(), collections.Counter()
    profile = plumb_package.Profile(path)
    calls = 0
    for span in profile.spans():
        node = profile.node(span.context)
        if node.kind in ("copy", "set", "kernel"):
            key = node.name if node.kind != "kernel" else "kernel"
            counts[key] += 1
            times[key] += span.end_ns - span.start_ns
        else:
            calls += 1
    assert counts == {"copy device→host": 53, "copy host→device": 2, "set device": 1, "kernel": 29}
    assert times == {"copy device→host": 334758, "copy host→device": 157178063, "set device": 5440, "kernel": 26399795}
    assert calls == 125
    assert len([track for track in profile.tracks if track.kind == "thread"]) == 2


@needs_traces
def test_grid_in_work_items(tmp_path):
    """hipExtModuleLaunchKernel counts work-items: 1792 of them in groups of 256 are 7 blocks."""
    with sqlite3.connect(imported(tmp_path, FILE)) as database:
        grids = set(database.execute("SELECT grid_x, grid_y, grid_z, block_x, block_y, block_z FROM variants"))
    assert (7, 782, 1, 256, 1, 1) in grids and (1, 2, 1, 128, 1, 1) in grids


# ---- made here ----

API = "id INTEGER PRIMARY KEY, pid INTEGER, tid INTEGER, start INTEGER, end INTEGER, apiName_id INTEGER, args_id INTEGER"
OP = ("id INTEGER PRIMARY KEY, gpuId INTEGER, queueId INTEGER, start INTEGER, end INTEGER, description_id INTEGER, "
      "opType_id INTEGER")
TEXTS = {1: "", 2: "hipLaunchKernel", 3: "hipMemcpyAsync", 4: "KernelExecution", 5: "Task", 6: "CopyHostToDevice",
         7: "FillBuffer", 8: "k<1>", 9: "hipGraphLaunch", 10: "UserMarker", 11: "aten::mm, seq = 2, op_id = 4",
         12: "Barrier", 13: "k<2>", 14: "OpTable::writeRows", 15: "step", 16: "hipExtModuleLaunchKernel"}
KERNEL_API = ("api_ptr_id INTEGER PRIMARY KEY, gridX INTEGER, gridY INTEGER, gridZ INTEGER, workgroupX INTEGER, "
              "workgroupY INTEGER, workgroupZ INTEGER, groupSegmentSize INTEGER, kernelName_id INTEGER")


def tables(**changes):
    made = {
        "rocpd_metadata": ("id INTEGER PRIMARY KEY, tag TEXT, value TEXT", [(1, "schema_version", "2")]),
        "rocpd_string": ("id INTEGER PRIMARY KEY, string TEXT", list(TEXTS.items())),
        "rocpd_api": (API, [(1, 70, 71, 1000, 1900, 10, 11), (2, 70, 71, 1100, 1200, 2, 1), (3, 70, 71, 1300, 1400, 3, 1),
                            (4, 70, 72, 1500, 1600, 14, 1)]),
        "rocpd_op": (OP, [(1, 3, 0, 2000, 2500, 8, 4), (2, 3, 1, 2400, 2700, 1, 6), (3, 3, 1, 2700, 2750, 1, 6)]),
        "rocpd_api_ops": ("id INTEGER PRIMARY KEY, api_id INTEGER, op_id INTEGER", [(1, 2, 1), (2, 3, 2), (3, 3, 3)]),
        "rocpd_copyapi": ("api_ptr_id INTEGER PRIMARY KEY, size INTEGER", [(3, 4096)]),
        "rocpd_kernelapi": (KERNEL_API, [(2, 4, 2, 1, 64, 1, 1, 512, 13)]),
    }
    made.update({name: table for name, table in changes.items() if table})
    return {name: table for name, table in made.items() if name not in changes or changes[name]}


def test_a_small_file(tmp_path):
    path = imported(tmp_path, make(tmp_path / "trace", tables()))
    assert contexts(path) == {
        "operator:aten::mm": 1, "operator:aten::mm > gpu_api:hipLaunchKernel": 1,
        "operator:aten::mm > gpu_api:hipMemcpyAsync": 1, "native:OpTable::writeRows": 1,
        "operator:aten::mm > gpu_api:hipLaunchKernel > kernel:k<1>": 1,
        "operator:aten::mm > gpu_api:hipMemcpyAsync > copy:copy host→device": 2}
    data = report(path)
    (device,) = data["devices"]
    assert (device["ordinal"], device["busy_ns"], device["span_ns"]) == (3, 750, 750)
    # The runtime split the copy in two: its size counts once.
    assert device["copies"] == {"count": 2, "ns": 350, "bytes": 4096}
    assert plumb_package.Profile(path).environment["rpd.schema"] == "2"
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT grid_x, block_x, dynamic_shared_bytes FROM variants").fetchall() == [(4, 64, 512)]


@pytest.mark.parametrize("pack", [False, True])
def test_recognised_without_its_name_and_packed(tmp_path, pack):
    plain = make(tmp_path / "trace.rpd", tables())
    nameless = packed(plain, tmp_path / "x") if pack else plain.rename(tmp_path / "x")
    path = imported(tmp_path, nameless)
    assert plumb_package.Profile(path).environment["import.format"] == "rpd"


def test_a_graph_s_kernels_are_tasks(tmp_path):
    ops = [(i, 3, 0, 2000 + i, 2001 + i, 8 if i % 2 else 13, 5) for i in range(1, 101)]
    path = imported(tmp_path, make(tmp_path / "trace", tables(
        rocpd_api=(API, [(9, 70, 71, 1000, 1100, 9, 1)]), rocpd_op=(OP, ops), rocpd_kernelapi=None, rocpd_copyapi=None,
        rocpd_api_ops=("id INTEGER PRIMARY KEY, api_id INTEGER, op_id INTEGER", [(i, 9, i) for i in range(1, 101)]))))
    assert contexts(path) == {"gpu_api:hipGraphLaunch": 1, "gpu_api:hipGraphLaunch > kernel:k<1>": 50,
                              "gpu_api:hipGraphLaunch > kernel:k<2>": 50}
    row = report(path, "--by", "context", "--metric", "gpu.replays")["rows"][0]
    assert row["exclusive"]["gpu.replays"]["sum"] == 1


def test_names_of_kernels(tmp_path):
    """Of the operation, else of the call, else of its type."""
    ops = [(1, 3, 0, 2000, 2001, 8, 4), (2, 3, 0, 2002, 2003, 1, 4), (3, 3, 0, 2004, 2005, 1, 5), (4, 3, 0, 2006, 2007, 99, 12),
           (5, 3, 0, 2008, 2009, 99, 99), (6, 3, 0, 2010, 2011, 1, 7)]
    path = imported(tmp_path, make(tmp_path / "trace", tables(
        rocpd_op=(OP, ops), rocpd_api_ops=("id INTEGER PRIMARY KEY, api_id INTEGER, op_id INTEGER", [(1, 2, 1), (2, 2, 2)]))))
    found = contexts(path)
    assert found["operator:aten::mm > gpu_api:hipLaunchKernel > kernel:k<1>"] == 1
    assert found["operator:aten::mm > gpu_api:hipLaunchKernel > kernel:k<2>"] == 1
    assert found["kernel:Task"] == 1 and found["set:set device"] == 1
    data = report(path)
    assert fates(data) == {"Barrier": 1, "rocpd_op": 1}
    assert fates(data, "gpu.kernel") == {"received": 3, "attributed": 2, UNMATCHED: 1}
    assert len(data["processes"]) == 1


def test_an_operation_of_two_calls(tmp_path):
    links = [(1, 2, 1), (2, 3, 1), (3, 2, 1), (4, None, 2), (5, 3, None)]
    data = report(imported(tmp_path, make(tmp_path / "trace", tables(
        rocpd_api_ops=("id INTEGER PRIMARY KEY, api_id INTEGER, op_id INTEGER", links)))))
    assert fates(data) == {"operations of several calls": 1}
    assert fates(data, "gpu.kernel") == {"received": 1, "attributed": 1}


def test_processes(tmp_path):
    """An operation is of its call's process; one without a call, of none that is known."""
    path = imported(tmp_path, make(tmp_path / "trace", tables(
        rocpd_api=(API, [(2, 70, 71, 1100, 1200, 2, 1), (3, 80, 81, 1300, 1400, 3, 1)]))))
    processes = {process.pid: process for process in plumb_package.Profile(path).processes}
    assert set(processes) == {70, 80}
    devices = report(path)["devices"]
    assert sorted(process["pid"] for device in devices for process in device["processes"]) == [70, 80]


def test_newer_columns(tmp_path):
    """Messages of markers in a table of their own."""
    path = imported(tmp_path, make(tmp_path / "trace", tables(
        rocpd_ustring=("id INTEGER PRIMARY KEY, string TEXT", [(11, "epoch")]))))
    assert contexts(path)["range:epoch > gpu_api:hipLaunchKernel > kernel:k<1>"] == 1


def test_schema_1(tmp_path):
    """Sizes and grids by the operation."""
    path = imported(tmp_path, make(tmp_path / "trace", tables(
        rocpd_copyapi=None, rocpd_kernelapi=None,
        rocpd_copyop=("op_ptr_id INTEGER PRIMARY KEY, size INTEGER", [(2, 100), (3, 200)]),
        rocpd_kernelop=(KERNEL_API.replace("api_ptr_id", "op_ptr_id"), [(1, 9, 1, 1, 32, 1, 1, 0, 13)]))))
    assert report(path)["devices"][0]["copies"]["bytes"] == 300
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT grid_x, block_x FROM variants").fetchall() == [(9, 32)]


def test_grids_of_work_items(tmp_path):
    path = imported(tmp_path, make(tmp_path / "trace", tables(
        rocpd_api=(API, [(2, 70, 71, 1100, 1200, 16, 1), (3, 70, 71, 1300, 1400, 3, 1)]),
        rocpd_kernelapi=(KERNEL_API, [(2, 129, 64, 0, 64, 0, 1, 0, 13)]))))
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT grid_x, grid_y, grid_z FROM variants").fetchall() == [(3, 64, 0)]


# ---- hostile ----


def test_hostile_schema(tmp_path):
    data = report(imported(tmp_path, make(tmp_path / "trace", tables(), extra=HOSTILE_SCHEMA)))
    assert data["devices"][0]["kernels"] == {"count": 1, "ns": 500}
    assert not {"endless", "a", "found", "computed"} & set(fates(data))


def test_damaged_files_give_one_line(tmp_path):
    path = make(tmp_path / "trace", tables(), page_size=512)
    assert survives(tmp_path, truncations(path, step=7)) == 0
    assert survives(tmp_path, damages(path, 300)) > 30


def test_lookups_without_an_index_are_bounded(tmp_path):
    """Calls that no key leads to: each lookup would read the whole table."""
    count = 30000
    plain = {name: (columns.replace(" PRIMARY KEY", ""), rows) for name, (columns, rows) in tables(
        rocpd_api=(API, [(i, 70, 71, i, i + 1, 2, 1) for i in range(1, count)]),
        rocpd_op=(OP, [(i, 3, 0, i, i + 1, 8, 4) for i in range(1, count)]),
        rocpd_api_ops=("id INTEGER PRIMARY KEY, api_id INTEGER, op_id INTEGER",
                       [(i, i, i) for i in range(1, count)])).items()}
    assert "reading takes too long" in refused(tmp_path, make(tmp_path / "trace", plain))
