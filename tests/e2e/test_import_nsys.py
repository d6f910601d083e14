# SPDX-License-Identifier: Apache-2.0
"""Nsight Systems' SQLite export: exact figures of published files (where they lie beside the project), and
every table and dialect in small."""
import json
import lzma
import os
import sqlite3
import shutil
import subprocess

import pytest
from conftest import PLUMB, run_command
from importing import TRACES, imported, refused, report
from sqlitetest import HOSTILE_SCHEMA, UNMATCHED, changed, contexts, damages, fates, make, packed, survives, truncations

import plumb as plumb_package

FILES = {path.name[:3]: path for path in TRACES.glob("nsys/n*.sqlite")} if TRACES.is_dir() else {}
needs_traces = pytest.mark.skipif(not FILES, reason="the published traces are not beside the project")

# ---- published files ----


def oracle(path):
    return json.loads((TRACES / "oracle" / path.name.replace(".sqlite", ".json")).read_text())


@needs_traces
@pytest.mark.parametrize("name", sorted(FILES))
def test_known_figures(tmp_path, name):
    known = oracle(FILES[name])
    path = imported(tmp_path, FILES[name])
    data = report(path, "--by", "kernel")
    devices = data["devices"]
    assert {str(d["ordinal"]): d["kernels"]["count"] for d in devices} == known["kernels_per_device"]
    assert sum(d["kernels"]["ns"] for d in devices) == known["kernel_time_ns"]
    assert sum(d["copies"]["count"] for d in devices) == sum(k["n"] for k in known["memcpy"].values())
    assert sum(d["copies"]["bytes"] for d in devices) == sum(k.get("bytes", 0) for k in known["memcpy"].values())
    assert sum(d["copies"]["ns"] for d in devices) == sum(k["ns"] for k in known["memcpy"].values())
    assert [sum(d["sets"]["count"] for d in devices), sum(d["sets"]["bytes"] for d in devices)] == \
        known.get("memset", [0, 0])
    work = fates(data, "gpu.kernel")
    assert work["received"] == known["n_kernel"]
    assert work.get("attributed", 0) == known["kernels_matched_to_runtime"]
    assert work.get(UNMATCHED, 0) == known["n_kernel"] - known["kernels_matched_to_runtime"]
    assert len({row["name"] for row in data["rows"]}) <= known["unique_demangled_names"]
    environment = plumb_package.Profile(path).environment
    assert [environment["nsys.version"], environment["nsys.schema"]] == known["schema_version"]
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT count(DISTINCT name) FROM frames WHERE kind = 'kernel'").fetchone() == (
            known["unique_demangled_names"],)
    calls = {}
    for path_of, count in contexts(path).items():
        kind, _, call = path_of.rpartition(" > ")[2].partition(":")
        if kind == "gpu_api":
            calls[call] = calls.get(call, 0) + count
    assert sum(calls.values()) == known["n_runtime"]
    for top in known["runtime_top"]:
        assert calls[top["name"]] == top["count"]


@needs_traces
@pytest.mark.parametrize("name", sorted(FILES))
def test_busy_of_kernels_alone(tmp_path, name):
    """The known busy times are of kernels; so the copies and sets are taken out of the file."""
    known = oracle(FILES[name])
    with sqlite3.connect(FILES[name]) as database:
        there = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    drop = [f"DROP TABLE CUPTI_ACTIVITY_KIND_{kind}" for kind in ("MEMCPY", "MEMSET")
            if f"CUPTI_ACTIVITY_KIND_{kind}" in there]
    data = report(imported(tmp_path, changed(FILES[name], tmp_path / "kernels", *drop)))
    for device in data["devices"]:
        own = f"dev{device['ordinal']}_kernel_"
        own = own if own + "span" in known else "kernel_"
        assert device["busy_ns"] == known[own + "busy_union"]
        assert device["span_ns"] == known[own + "span"]
        assert device["idle_ns"] == known[own + "idle"]
        assert device["copies"]["count"] == device["sets"]["count"] == 0


@needs_traces
def test_busy_of_everything(tmp_path):
    """As the union that is taken here from the file itself."""
    with sqlite3.connect(FILES["n01"]) as database:
        rows = [row for kind in ("KERNEL", "MEMCPY", "MEMSET") for row in database.execute(
            f'SELECT deviceId, start, "end" FROM CUPTI_ACTIVITY_KIND_{kind}')]
    data = report(imported(tmp_path, FILES["n01"]))
    for device in data["devices"]:
        busy, last = 0, 0
        for _, start, end in sorted(row for row in rows if row[0] == device["ordinal"]):
            busy += max(0, end - max(start, last))
            last = max(last, end)
        assert device["busy_ns"] == busy


@needs_traces
def test_kernel_time_by_operator(tmp_path):
    """By the innermost NVTX range at the launch; emit_nvtx's numbers are cut off."""
    known = oracle(FILES["n01"])
    path = imported(tmp_path, FILES["n01"])
    rows = {row["name"]: row["exclusive"]["gpu.time"] for row in report(path, "--by", "operator")["rows"]
            if row["exclusive"].get("gpu.time")}
    for name, time in known["top10_innermost_nvtx_ns"]:
        assert rows[name]["sum"] == time
    assert sum(row["count"] for row in rows.values()) == known["kernels_inside_nvtx_by_launch"]
    with sqlite3.connect(FILES["n01"]) as database:
        ranges = database.execute("SELECT count(*) FROM NVTX_EVENTS WHERE eventType = 59").fetchone()[0]
    assert ranges == known["n_nvtx_pushpop"]
    spans = contexts(path)
    assert sum(count for key, count in spans.items() if key.rpartition(" > ")[2].partition(":")[0] in ("operator", "range")) == ranges
    assert not [key for key in spans if "op_id" in key]


@needs_traces
def test_device_and_session(tmp_path):
    profile = plumb_package.Profile(imported(tmp_path, FILES["n04"]))
    (device,) = profile.devices
    assert (device.name, device.uuid) == ("NVIDIA GeForce RTX 3080", "GPU-554a6988-03dd-6206-3dd1-f43fb60a3ed0")
    assert (device.capability_major, device.capability_minor, device.multiprocessors) == (8, 6, 68)
    assert (device.warps_per_multiprocessor, device.clock_khz, device.memory_bytes) == (48, 1710000, 10736893952)
    with sqlite3.connect(FILES["n04"]) as database:
        (utc,) = database.execute("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME").fetchone()
    assert profile.environment["session.start_utc_ns"] == str(utc)


# ---- made here ----

PID = (1 << 48) | (77 << 24)
OTHER = (1 << 48) | (78 << 24)
KERNEL = ("start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, "
          "globalPid INTEGER, demangledName INTEGER, mangledName INTEGER, shortName INTEGER, registersPerThread INTEGER, "
          "staticSharedMemory INTEGER, dynamicSharedMemory INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, "
          "blockX INTEGER, blockY INTEGER, blockZ INTEGER")
COPY = ("start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, "
        "globalPid INTEGER, bytes INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER")
SET = ("start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, "
       "globalPid INTEGER, bytes INTEGER, memKind INTEGER")
CALL = ("start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER")
RANGE = ("start INTEGER, end INTEGER, eventType INTEGER, text TEXT, textId INTEGER, globalTid INTEGER, "
         "endGlobalTid INTEGER, domainId INTEGER")
TEXTS = {1: "cudaLaunchKernel_v7000", 2: "void f<int>(int)", 3: "_Z1fIiEvi", 4: "f", 5: "cuMemcpyHtoDAsync_v2",
         6: "aten::add, seq = 4, op_id = 9", 7: "worker", 8: "cudnnConvolutionForward", 9: "registered",
         10: "cudaGraphLaunch_v10000"}


def kernel(start, end, correlation, pid=PID, name=(2, 3, 4), device=0, launch=(32, 16, 64, 5, 1, 1, 128, 1, 1)):
    return (start, end, device, 1, 7, correlation, pid, *name, *launch)


def tables(**changes):
    made = {
        "StringIds": ("id INTEGER PRIMARY KEY, value TEXT", list(TEXTS.items())),
        "CUPTI_ACTIVITY_KIND_RUNTIME": (CALL, [(1100, 1200, PID | 5, 11, 1), (1300, 1400, PID | 5, 12, 5)]),
        "CUPTI_ACTIVITY_KIND_KERNEL": (KERNEL, [kernel(2000, 2500, 11)]),
        "CUPTI_ACTIVITY_KIND_MEMCPY": (COPY, [(3000, 3100, 0, 1, 7, 12, PID, 4096, 1, 0, 2)]),
    }
    made.update({name: table for name, table in changes.items() if table})
    return {name: table for name, table in made.items() if name not in changes or changes[name]}


def spans_of(folder, made, **options):
    return contexts(imported(folder, make(folder / "trace", made, **options)))


def test_a_small_file(tmp_path):
    path = imported(tmp_path, make(tmp_path / "trace", tables()))
    assert contexts(path) == {
        "gpu_api:cudaLaunchKernel": 1, "gpu_api:cuMemcpyHtoDAsync": 1,
        "gpu_api:cudaLaunchKernel > kernel:void f<int>(int)": 1,
        "gpu_api:cuMemcpyHtoDAsync > copy:copy pageable→device": 1}
    data = report(path, "--by", "kernel")
    (device,) = data["devices"]
    assert device["kernels"] == {"count": 1, "ns": 500}
    assert device["copies"] == {"count": 1, "ns": 100, "bytes": 4096}
    assert (device["busy_ns"], device["span_ns"]) == (600, 1100)
    assert [p["pid"] for p in data["processes"]] == [77]
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT grid_x, block_x, registers, static_shared_bytes, dynamic_shared_bytes "
                                "FROM variants").fetchall() == [(5, 128, 32, 16, 64)]


@pytest.mark.parametrize("pack", ["plain", "gzip", "xz", "zstd"])
def test_recognised_without_its_name_and_packed(tmp_path, pack):
    plain = make(tmp_path / "trace.sqlite", tables())
    nameless = tmp_path / "x"
    if pack == "plain":
        nameless.write_bytes(plain.read_bytes())
    elif pack == "gzip":
        packed(plain, nameless)
    elif pack == "xz":
        nameless.write_bytes(lzma.compress(plain.read_bytes()))
    elif not shutil.which("zstd") or subprocess.run(["zstd", "-qf", plain, "-o", nameless]).returncode:
        pytest.skip("no zstd")
    before = set((tmp_path).iterdir())
    path = imported(tmp_path, nameless)
    assert plumb_package.Profile(path).environment["import.format"] == "nsys"
    assert set(tmp_path.iterdir()) == before | {path.path}
    assert contexts(path)["gpu_api:cudaLaunchKernel > kernel:void f<int>(int)"] == 1


def test_the_newest_name_that_there_is(tmp_path):
    rows = [kernel(2000, 2500, 11, name=(None, 3, 4)), kernel(2600, 2700, 11, name=(99, None, 4)),
            kernel(2800, 2900, 11, name=(None, None, None))]
    assert spans_of(tmp_path, tables(CUPTI_ACTIVITY_KIND_KERNEL=(KERNEL, rows))) == {
        "gpu_api:cudaLaunchKernel": 1, "gpu_api:cuMemcpyHtoDAsync": 1,
        "gpu_api:cudaLaunchKernel > kernel:_Z1fIiEvi": 1, "gpu_api:cudaLaunchKernel > kernel:f": 1,
        "gpu_api:cudaLaunchKernel > kernel:?": 1, "gpu_api:cuMemcpyHtoDAsync > copy:copy pageable→device": 1}


def test_correlations_are_a_process_s_own(tmp_path):
    """Number 11 of another process is another launch, although only one process has a call of that number."""
    rows = [kernel(2000, 2500, 11), kernel(2000, 2600, 11, pid=OTHER), kernel(2700, 2800, 999)]
    path = imported(tmp_path, make(tmp_path / "trace", tables(CUPTI_ACTIVITY_KIND_KERNEL=(KERNEL, rows))))
    data = report(path)
    assert fates(data, "gpu.kernel") == {"received": 3, "attributed": 1, UNMATCHED: 2}
    assert contexts(path)["kernel:void f<int>(int)"] == 2


def test_a_graph_s_launch_has_all_of_its_kernels(tmp_path):
    path = imported(tmp_path, make(tmp_path / "trace", tables(
        CUPTI_ACTIVITY_KIND_RUNTIME=(CALL, [(1100, 1200, PID | 5, 11, 10)]),
        CUPTI_ACTIVITY_KIND_KERNEL=(KERNEL, [kernel(2000 + i, 2001 + i, 11) for i in range(50)]))))
    assert contexts(path)["gpu_api:cudaGraphLaunch > kernel:void f<int>(int)"] == 50
    row = report(path, "--by", "context", "--metric", "gpu.replays")["rows"][0]
    assert row["name"] == "cudaGraphLaunch" and row["exclusive"]["gpu.replays"]["sum"] == 1


def test_copies_and_sets(tmp_path):
    kinds = {1: ("pageable", "device", 0, 2), 2: ("device", "pinned", 2, 1), 8: ("device", "device", 2, 2),
             10: ("device", "peer device", 2, 2), 9: ("pageable", "pinned", 0, 1), 11: ("managed", "device", 4, 5),
             3: ("pinned", "array", 1, 3), 0: ("unknown", "unknown", 7, 7), 12: ("device", "host", 7, 7)}
    rows = [(3000 + kind * 10, 3001 + kind * 10, 0, 1, 7, 12, PID, kind, kind, source, target)
            for kind, (_, _, source, target) in kinds.items()]
    found = spans_of(tmp_path, tables(
        CUPTI_ACTIVITY_KIND_MEMCPY=(COPY, rows),
        CUPTI_ACTIVITY_KIND_MEMSET=(SET, [(4000, 4001, 0, 1, 7, 12, PID, 64, 2), (4002, 4003, 0, 1, 7, 12, PID, 64, 4)])))
    for source, target, *_ in kinds.values():
        assert found[f"gpu_api:cuMemcpyHtoDAsync > copy:copy {source}→{target}"] == 1, (source, target)
    assert found["gpu_api:cuMemcpyHtoDAsync > set:set device"] == 1
    assert found["gpu_api:cuMemcpyHtoDAsync > set:set managed"] == 1


def test_copies_between_devices(tmp_path):
    """Two values of one context; columns of old exports are missing."""
    rows = [(3000, 3010, 0, 1, 7, 12, PID, 8, 10, 2, 2, 0, 1), (3020, 3030, 0, 1, 7, 12, PID, 9, 10, 2, 2, 0, 2),
            (3040, 3050, 0, 1, 7, 12, PID, 10, 8, 2, 2, None, None)]
    path = imported(tmp_path, make(tmp_path / "trace", tables(
        CUPTI_ACTIVITY_KIND_MEMCPY=(COPY + ", srcDeviceId INTEGER, dstDeviceId INTEGER", rows))))
    with sqlite3.connect(path) as database:
        assert database.execute(
            "SELECT f.ordinal, t.ordinal, v.sum FROM context_values v JOIN metrics m ON m.id = v.metric "
            "LEFT JOIN devices f ON f.id = v.from_device LEFT JOIN devices t ON t.id = v.to_device "
            "WHERE m.name = 'gpu.copy_bytes' ORDER BY v.sum").fetchall() == [(0, 1, 8), (0, 2, 9), (None, None, 10)]


def test_the_file_s_own_enumerations_count(tmp_path):
    found = spans_of(tmp_path, tables(
        ENUM_CUDA_MEMCPY_OPER=("id INTEGER, name TEXT, label TEXT", [(1, "X", "Device-to-Host")]),
        ENUM_CUDA_MEM_KIND=("id INTEGER, name TEXT, label TEXT",
                            [(0, "X", "Device"), (2, "X", "Pinned"), (999, "X", "x"), (-1, "", None)])))
    assert found["gpu_api:cuMemcpyHtoDAsync > copy:copy device→pinned"] == 1


def test_ranges(tmp_path):
    thread, other = PID | 5, PID | 6
    rows = [
        (1000, 1900, 59, "step", None, thread, None, 0),
        (1050, 1450, 59, None, 6, thread, None, 0),                       # a text of StringIds, an operator
        (1090, 1250, 59, "mine, op_id = 3", None, thread, None, 0),       # emit_nvtx of record_function
        (1500, 1600, 60, "same thread", None, thread, thread, 0),
        (1510, 5000, 60, "crosses", None, thread, other, 0),
        (1700, 1800, 60, "old export", None, thread, 0, 0),               # 0 where it is not known
        (1850, None, 34, "mark", None, thread, None, 0),
        (10, None, 75, "lib", None, thread, None, 3),
        (2000, 2100, 59, "in a domain", None, thread, None, 3),
        (2200, 2300, 59, None, 9, thread, None, 3),
        (2400, 2500, 59, "", 9, thread, None, 3),
        (20, None, 33, "category", None, thread, None, 0),
        (2600, 2500, 59, "backwards", None, thread, None, 0),
        (2700, None, 59, "never popped", None, thread, None, 0),
    ]
    path = imported(tmp_path, make(tmp_path / "trace", tables(NVTX_EVENTS=(RANGE, rows))))
    found = contexts(path)
    launch = "range:step > operator:aten::add > range:mine > gpu_api:cudaLaunchKernel"
    assert found[f"{launch} > kernel:void f<int>(int)"] == 1
    for key in ("range:step", "range:step > operator:aten::add", "range:step > operator:aten::add > range:mine",
                "range:step > range:same thread", "range:crosses", "range:step > range:old export",
                "range:step > range:mark", "range:lib/in a domain"):
        assert found[key] == 1, key
    assert found["range:lib/registered"] == 2
    assert not [key for key in found if "never" in key or "backwards" in key or "category" in key]
    counts = fates(report(path))
    assert counts["NVTX ranges that end on another thread"] == 1
    assert counts["NVTX_EVENTS of other types"] == 1
    assert counts["it ends before it begins, or has no time"] == 2


def test_library_calls_names_and_the_rest(tmp_path):
    thread = PID | 5
    path = imported(tmp_path, make(tmp_path / "trace", tables(
        CUDNN_EVENTS=(CALL, [(1050, 1250, thread, 0, 8)]),
        OSRT_API=("start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER", [(1, 2, thread, 1)] * 3),
        GPU_METRICS=("timestamp INTEGER, value INTEGER", [(1, 2)] * 4),
        ENUM_NSYS_EVENT_TYPE=("id INTEGER, name TEXT", [(1, "x")]),
        PROCESSES=("globalPid INTEGER, pid INTEGER, name TEXT", [(PID, 77, "python3"), (OTHER, 78, "idle")]),
        ThreadNames=("nameId INTEGER, priority INTEGER, globalTid INTEGER", [(7, 20, thread), (7, 20, OTHER | 9)]),
        TARGET_INFO_SYSTEM_ENV=("name TEXT, value TEXT", [("Hostname", "node1"), ("NvDriverVersion", "580.1"),
                                                          ("DeviceEnvironment", "SECRET=1")]),
        TARGET_INFO_SESSION_START_TIME=("utcEpochNs INTEGER", [(1779630014975716426,)]),
        META_DATA_EXPORT=("name TEXT, value TEXT", [("EXPORT_SCHEMA_VERSION", "3.1.7")]),
        TARGET_INFO_GPU=("vmId INTEGER, id INTEGER, name TEXT, uuid TEXT, smCount INTEGER, clockRate INTEGER",
                         [(1 << 48, 4, "H", "GPU-00000000-1111", 132, 1980000000), (9 << 48, 4, "X", "x" * 40, 1, 1)]),
        TARGET_INFO_CUDA_DEVICE=("gpuId INTEGER, cudaId INTEGER, pid INTEGER, uuid TEXT",
                                 [(4, 0, 77, None), (5, 0, 99, None)]))))
    profile = plumb_package.Profile(path)
    assert contexts(path)["native:cudnnConvolutionForward > gpu_api:cudaLaunchKernel"] == 1
    assert fates(report(path)) == {"OSRT_API": 3, "GPU_METRICS": 4}
    (process,) = profile.processes
    assert (process.pid, process.command, process.host) == (77, "python3", "node1")
    assert [track.name for track in profile.tracks if track.kind == "thread"] == ["worker"]
    (device,) = profile.devices
    assert (device.name, device.uuid, device.multiprocessors, device.clock_khz) == ("H", "GPU-00000000-1111", 132, 1980000)
    environment = profile.environment
    assert environment["gpu.driver"] == "580.1" and environment["nsys.schema"] == "3.1.7"
    assert environment["session.start_utc_ns"] == "1779630014975716426"
    assert "SECRET" not in str(environment)


def test_emit_nvtx(tmp_path):
    """Numbers are cut; operators have a name space or a sequence number."""
    names = {"aten::mm, op_id = 3": "operator:aten::mm", "MmBackward0, seq = 3, op_id = 9": "operator:MmBackward0",
             "autograd::engine::evaluate_function: MmBackward0, seq = 3, op_id = 8":
             "operator:autograd::engine::evaluate_function: MmBackward0",
             "aten::t, seq = 4, op_id = 1, sizes = [[2, 2]]": "operator:aten::t",
             "FSDP::forward (a.b), op_id = 12": "range:FSDP::forward (a.b)", "step 3": "range:step 3",
             "Optimizer.step#SGD.step, op_id = 1": "range:Optimizer.step#SGD.step", ", op_id = 4": "range:, op_id = 4"}
    rows = [(100 * i, 100 * i + 50, 59, name, None, PID | 5, None, 0) for i, name in enumerate(names, 1)]
    assert spans_of(tmp_path, {"StringIds": ("id INTEGER", []), "NVTX_EVENTS": (RANGE, rows)}) == dict.fromkeys(
        names.values(), 1)


def test_backward_work_hangs_under_the_forward_operator(tmp_path):
    """By emit_nvtx's sequence numbers: the last forward range that has one made the node."""
    main, engine = PID | 5, PID | 6
    rows = [
        (100, 400, 59, "aten::linear, seq = 3, op_id = 1", None, main, None, 0),
        (110, 200, 59, "aten::t, seq = 3, op_id = 2", None, main, None, 0),      # made node 3
        (210, 300, 59, "aten::addmm, seq = 4, op_id = 3", None, main, None, 0),  # made node 4
        (1000, 1500, 59, "autograd::engine::evaluate_function: AddmmBackward0, seq = 4, op_id = 9", None, engine, None, 0),
        (1010, 1400, 59, "AddmmBackward0, seq = 4, op_id = 10", None, engine, None, 0),
        (1050, 1300, 59, "aten::mm, op_id = 11", None, engine, None, 0),
        (1600, 1700, 59, "TBackward0, seq = 3, op_id = 12", None, engine, None, 0),
        (1800, 1900, 59, "torch::autograd::AccumulateGrad, seq = 18446744073709551615, op_id = 13", None, engine, None, 0),
        (2000, 2100, 59, "LostBackward0, seq = 77, op_id = 14", None, engine, None, 0),
    ]
    path = imported(tmp_path, make(tmp_path / "trace", tables(
        NVTX_EVENTS=(RANGE, rows), CUPTI_ACTIVITY_KIND_MEMCPY=None,
        CUPTI_ACTIVITY_KIND_RUNTIME=(CALL, [(1100, 1200, engine, 11, 1)]))))
    found = contexts(path)
    addmm = "operator:aten::linear > operator:aten::addmm > "
    assert found[addmm + "operator:autograd::engine::evaluate_function: AddmmBackward0 > operator:AddmmBackward0 > "
                 "operator:aten::mm > gpu_api:cudaLaunchKernel > kernel:void f<int>(int)"] == 1
    assert found["operator:aten::linear > operator:aten::t > operator:TBackward0"] == 1
    assert found["operator:torch::autograd::AccumulateGrad"] == found["operator:LostBackward0"] == 1


def test_sequence_numbers_of_several_threads(tmp_path):
    rows = [(100, 200, 59, "aten::mm, seq = 3, op_id = 1", None, PID | 5, None, 0),
            (150, 250, 59, "aten::mm, seq = 3, op_id = 2", None, PID | 7, None, 0),
            (300, 400, 59, "MmBackward0, seq = 3, op_id = 3", None, PID | 6, None, 0)]
    path = imported(tmp_path, make(tmp_path / "trace", {"StringIds": ("id INTEGER", []), "NVTX_EVENTS": (RANGE, rows)}))
    assert contexts(path) == {"operator:aten::mm": 2, "operator:MmBackward0": 1}
    assert fates(report(path)) == {"backward ranges of several forward threads": 1}


def test_files_of_several_ranks(tmp_path):
    """One GPU by its UUID, each file's numbers its own, a rank each."""
    made = tables(TARGET_INFO_GPU=("id INTEGER, name TEXT, uuid TEXT", [(0, "H", "00000000-1111")]))
    first, second = make(tmp_path / "a", made), make(tmp_path / "b", made)
    path = imported(tmp_path, first, second)
    data = report(path)
    assert [process["rank"] for process in data["processes"]] == [0, 1]
    (device,) = data["devices"]
    assert (device["kernels"]["count"], device["busy_ns"]) == (2, 600)


def test_waits(tmp_path):
    """A blocking copy waits as long as its synchronisation; a call that waits by its name, its own duration."""
    sync = "start INTEGER, end INTEGER, syncType INTEGER, correlationId INTEGER, globalPid INTEGER"
    rows = [(1310, 1390, 3, 12, PID), (1110, 1120, 2, 11, PID), (1510, 1590, 3, 13, PID), (1, 2, 3, 99, PID),
            (1310, 1390, 3, 12, None), (9, 2, 3, 12, PID)]
    path = imported(tmp_path, make(tmp_path / "trace", tables(
        CUPTI_ACTIVITY_KIND_RUNTIME=(CALL, [(1100, 1200, PID | 5, 11, 1), (1300, 1400, PID | 5, 12, 5),
                                            (1500, 1600, PID | 5, 13, 11)]),
        StringIds=("id INTEGER PRIMARY KEY, value TEXT", [*TEXTS.items(), (11, "cudaStreamSynchronize_v3020")]),
        CUPTI_ACTIVITY_KIND_SYNCHRONIZATION=(sync, rows))))
    data = report(path, "--by", "context", "--metric", "host.wait")
    waits = {row["name"]: row["exclusive"]["host.wait"]["sum"] for row in data["rows"]
             if row["exclusive"].get("host.wait")}
    assert waits == {"cuMemcpyHtoDAsync": 80, "cudaStreamSynchronize": 100}
    assert fates(data, "gpu.sync") == {"received": 6, "attributed": 4, UNMATCHED: 2}


@needs_traces
def test_known_waits(tmp_path):
    with sqlite3.connect(FILES["n01"]) as database:
        (count,) = database.execute("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION").fetchone()
        (waited,) = database.execute("SELECT sum(r.end - r.start) FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s "
                                     "ON s.id = r.nameId WHERE s.value LIKE '%Synchronize%'").fetchone()
    data = report(imported(tmp_path, FILES["n01"]), "--by", "thread", "--metric", "host.wait")
    assert fates(data, "gpu.sync") == {"received": count, "attributed": count}
    assert sum(row["exclusive"].get("host.wait", {}).get("sum", 0) for row in data["rows"]) == waited


def test_two_processes_on_one_gpu(tmp_path):
    path = imported(tmp_path, make(tmp_path / "trace", tables(
        CUPTI_ACTIVITY_KIND_KERNEL=(KERNEL, [kernel(2000, 2500, 11), kernel(2400, 2600, 12, pid=OTHER, device=1)]),
        CUPTI_ACTIVITY_KIND_MEMCPY=None,
        TARGET_INFO_GPU=("id INTEGER, name TEXT, uuid TEXT", [(0, "H", "00000000-1111")]),
        TARGET_INFO_CUDA_DEVICE=("gpuId INTEGER, cudaId INTEGER, pid INTEGER", [(0, 0, 77), (0, 1, 78)]))))
    (device,) = report(path)["devices"]
    assert (device["kernels"]["count"], device["busy_ns"]) == (2, 600)
    assert [process["busy_ns"] for process in device["processes"]] == [500, 200]


def test_missing_columns_and_tables(tmp_path):
    """As somebody's script makes them: neither process nor context, numbers as text, no runtime table."""
    made = {
        "StringIds": ("id INTEGER, value TEXT", [(1, "k"), (1, "again"), (None, "x"), (2, None)]),
        "CUPTI_ACTIVITY_KIND_KERNEL": ("start TEXT, end REAL, deviceId, streamId, correlationId, shortName",
                                       [("100", 200.0, 0, 7, 1, 1), ("300", 400.0, 0, 7, 1, 1), ("", 5.0, 0, 7, 1, 1),
                                        ("1.5", 5.0, 0, 7, 1, 1), (b"\0\1", 5.0, 0, 7, 1, 1),
                                        ("9", 1e300, 0, 7, 1, 1), ("99999999999999999999", 1.0, 0, 7, 1, 1)]),
    }
    path = imported(tmp_path, make(tmp_path / "trace", made))
    data = report(path)
    (device,) = data["devices"]
    assert device["kernels"] == {"count": 2, "ns": 200}
    assert fates(data)["it ends before it begins, or has no time"] == 5
    assert fates(data, "gpu.kernel") == {"received": 2, UNMATCHED: 2}


def test_numbers_at_their_limits(tmp_path):
    big = 2**63 - 1
    rows = [kernel(2000, 2500, big, pid=big), kernel(-big, big, 11), kernel(big - 1, big, -5, pid=-1, device=-big),
            kernel(2000, 2100, 11, launch=(big,) * 9)]
    made = tables(CUPTI_ACTIVITY_KIND_KERNEL=(KERNEL, rows),
                  CUPTI_ACTIVITY_KIND_RUNTIME=(CALL, [(0, big, -1, 11, 1), (-big - 1, 5, big, big, big)]),
                  CUPTI_ACTIVITY_KIND_MEMCPY=(COPY, [(1, 2, 0, 1, 7, 12, PID, big, big, -big, big)] * 2))
    data = report(imported(tmp_path, make(tmp_path / "trace", made)))
    assert fates(data)["it ends before it begins, or has no time"] == 2
    assert sum(device["kernels"]["count"] for device in data["devices"]) == 3


def test_names_with_anything_in_them(tmp_path):
    odd = "a\tb\n<b>&amp;\u202e\x1b[31m" + "x" * 5000
    made = tables(StringIds=("id INTEGER PRIMARY KEY, value", [(1, odd), (2, b"\xff\xfe k"), (5, "")]))
    found = spans_of(tmp_path, made)
    assert found[f"gpu_api:{odd}"] == 1 and [key for key in found if "\ufffd\ufffd k" in key]


# ---- hostile ----


def test_hostile_schema(tmp_path):
    path = make(tmp_path / "trace", tables(), extra=HOSTILE_SCHEMA)
    data = report(imported(tmp_path, path))
    assert data["devices"][0]["kernels"] == {"count": 1, "ns": 500}
    assert fates(data)["big"] == 1 and fates(data)['quo"te'] == 1
    assert not {"endless", "a", "found", "computed"} & set(fates(data))


def test_a_view_or_a_virtual_table_is_no_table(tmp_path):
    made = tables(CUPTI_ACTIVITY_KIND_KERNEL=None, CUPTI_ACTIVITY_KIND_MEMCPY=None)
    path = make(tmp_path / "trace", made, extra=(
        "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE r(start) AS (SELECT 1 UNION ALL SELECT start + 1 FROM "
        "r) SELECT start, start + 1 AS \"end\", 0 AS deviceId FROM r",
        "CREATE VIRTUAL TABLE CUPTI_ACTIVITY_KIND_MEMCPY USING fts5(start, bytes)"))
    assert set(contexts(imported(tmp_path, path))) == {"gpu_api:cudaLaunchKernel", "gpu_api:cuMemcpyHtoDAsync"}


def test_rows_without_end(tmp_path):
    """A page of the table's tree that is the child of many: few bytes, and rows without end."""
    rows = [kernel(2000 + i, 2001 + i, 11) for i in range(300)]
    path = make(tmp_path / "trace", {**tables(), "CUPTI_ACTIVITY_KIND_KERNEL": (KERNEL, rows)}, page_size=512)
    with sqlite3.connect(path) as database:
        (root,) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'CUPTI_ACTIVITY_KIND_KERNEL'").fetchone()
    database.close()
    data = bytearray(path.read_bytes())

    def page(number):
        return (number - 1) * 512
    assert data[page(root)] == 5, "an inner page"
    cell = page(root) + int.from_bytes(data[page(root) + 12:page(root) + 14], "big")
    leaf = int.from_bytes(data[cell:cell + 4], "big")
    assert data[page(leaf)] == 13, "a leaf"
    # A wide tree over that one: each inner page has the next as all of its children (one cell, 80 times).
    spare = len(data) // 512
    for level in range(8):
        below = (spare + level + 2 if level < 7 else leaf).to_bytes(4, "big")
        head = b"\5\0\0" + (80).to_bytes(2, "big") + (507).to_bytes(2, "big") + b"\0" + below
        pointers = (507).to_bytes(2, "big") * 80
        data += (head + pointers).ljust(507, b"\0") + below + b"\1"
    data[page(root):page(root) + 512] = data[page(spare + 1):page(spare + 1) + 512]
    data[28:32] = (len(data) // 512).to_bytes(4, "big")
    path.write_bytes(data)
    said = refused(tmp_path, path)
    assert "CUPTI_ACTIVITY_KIND_KERNEL" in said and "more rows than fit" in said


def test_damaged_files_give_one_line(tmp_path):
    path = make(tmp_path / "trace", tables(NVTX_EVENTS=(RANGE, [(1, 2, 59, "x", None, PID | 5, None, 0)])),
                page_size=512)
    assert survives(tmp_path, truncations(path)) == 0
    assert survives(tmp_path, damages(path, 300)) > 30
    said = refused(tmp_path, _written(tmp_path / "head", b"SQLite format 3\0" + b"\xff" * 4000))
    assert str(tmp_path / "head") in said and "damaged" in said


def _written(path, data):
    path.write_bytes(data)
    return path


def test_a_huge_file_and_a_pipe(tmp_path):
    path = make(tmp_path / "trace", tables())
    with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as pipe:
        os.set_inheritable(pipe.stdout.fileno(), True)
        done = run_command(PLUMB, "import", f"/dev/fd/{pipe.stdout.fileno()}", "-o", tmp_path / "no",
                           pass_fds=[pipe.stdout.fileno()])
    assert done.returncode == 2 and "cannot come from a pipe; save it to a file first" in done.stderr
    os.truncate(path, 4 << 30)
    assert contexts(imported(tmp_path, path))["gpu_api:cudaLaunchKernel > kernel:void f<int>(int)"] == 1


def test_a_writer_s_log_beside_it(tmp_path):
    path = make(tmp_path / "trace", tables())
    (tmp_path / "trace-wal").write_bytes(b"x")
    assert "trace-wal" in refused(tmp_path, path)


def test_nothing_in_it(tmp_path):
    path = make(tmp_path / "trace", {"StringIds": ("id INTEGER, value TEXT", []),
                                     "META_DATA_EXPORT": ("name TEXT, value TEXT", [])})
    assert "no event in it has a time" in refused(tmp_path, path, code=3)


def test_another_database_is_of_no_known_format(tmp_path):
    path = make(tmp_path / "trace", {"StringTable": ("_id_ INTEGER, value TEXT", [(1, "x")]),
                                     "CUPTI_ACTIVITY_KIND_RUNTIME": (CALL, [(1, 2, 3, 4, 5)])})
    assert "a database of an unknown format" in refused(tmp_path, path)


# ---- samples of CPU time ----

SAMPLES = "id INTEGER PRIMARY KEY, start INTEGER, cpu INTEGER, threadState INTEGER, globalTid INTEGER, cpuCycles INTEGER"
CHAINS = ("id INTEGER, symbol INTEGER, module INTEGER, kernelMode INTEGER, unresolved INTEGER, specialEntry INTEGER, "
          "originalIP INTEGER, stackDepth INTEGER")
NAMES = {20: "main", 21: "parse_json", 22: "/usr/bin/trainer", 23: "[Broken backtraces]", 24: "0x7f0012345678"}
CYCLES = 3_000_000  # a sample each millisecond of 3 GHz


def with_samples(samples, chains):
    made = tables(COMPOSITE_EVENTS=(SAMPLES, [(number, at, 0, 1, who, cycles)
                                              for number, at, who, cycles in samples]),
                  SAMPLING_CALLCHAINS=(CHAINS, chains))
    made["StringIds"][1].extend(NAMES.items())
    return made


def chain(number, *symbols):
    """Innermost first, as the file has them."""
    return [(number, symbol, 22, 0, 0, 0, 0, depth) for depth, symbol in enumerate(symbols)]


def samples_of(path):
    profile = plumb_package.Profile(path)
    return [(profile.node(s.context).path, profile.tracks[s.track].tid, s.at_ns, s.cpu_ns)
            for s in profile.cpu_samples()]


def test_cpu_samples(tmp_path):
    ms, thread = 1_000_000, PID | 5
    samples = [(1, 10 * ms, thread, CYCLES), (2, 11 * ms, thread, CYCLES), (3, 12 * ms, thread, CYCLES),
               (4, 20 * ms, thread, CYCLES // 2),  # it slept, and then computed for half a millisecond
               (5, 21 * ms, thread, CYCLES), (6, 21 * ms + 10, thread, CYCLES),  # more than has passed
               (7, 10 * ms, OTHER | 1, CYCLES)]  # a process that did nothing else
    made = with_samples(samples[::-1], [
        *chain(1, 21, 20), *chain(2, 20), *chain(3, 21, 20), (4, 23, 22, 0, 0, 1, 0, 1), (4, 21, 22, 0, 0, 0, 0, 0),
        (6, 20, 22, 0, 0, 0, 0, 1), (6, 24, 22, 0, 1, 0, 0, 0), *chain(99, 20)])
    path = imported(tmp_path, make(tmp_path / "trace", made))
    assert samples_of(path) == [
        ("main/parse_json", 5, 10 * ms, ms), ("main", 5, 11 * ms, ms), ("main/parse_json", 5, 12 * ms, ms),
        ("parse_json", 5, 20 * ms, ms // 2), ("[unknown code]", 5, 21 * ms, ms),
        ("main/[unknown code]", 5, 21 * ms + 10, 10)]
    data = report(path, "--by", "kernel")
    assert fates(data, "cpu.sample.time") == {"received": 6, "attributed": 6}
    assert [row["detail"] for own in data["ledger"] for row in own["fates"] if row["detail"]
            and "CPU samples" in row["detail"]] == ["CPU samples of other processes"]
    assert contexts(path) == spans_of(tmp_path, tables())


def test_cpu_samples_that_tell_no_time(tmp_path):
    made = with_samples([(1, 1000, PID | 5, 0), (2, 2000, PID | 5, None), (3, None, PID | 5, 7)], chain(1, 20))
    path = imported(tmp_path, make(tmp_path / "trace", made))
    assert samples_of(path) == []
    details = {row["detail"]: row["count"] for own in report(path)["ledger"] for row in own["fates"]}
    assert details["CPU samples without a CPU time"] == 2
    huge = 2 ** 63 - 1
    made = with_samples([(1, -huge, PID | 5, huge), (2, huge, PID | 5, huge), (3, 0, PID | 5, -5), (4, 5, PID | 5, 1)],
                        [*chain(1, *[20] * 50), (2, 20, 22, 0, 0, 0, 0, huge), (2, None, None, 0, 0, 0, 0, -huge)])
    survived = samples_of(imported(tmp_path, make(tmp_path / "hostile", made)))
    assert len(survived) <= 4 and all(ns >= 0 for *_, ns in survived)


STEP = 10_000_000


def parses(path, unmet=None, unmet_ms=0):
    """Between its twenty steps the thread parses for 6 ms and sleeps for 4. In the step UNMET no sample meets it: the
    next one tells that it computed for UNMET_MS there."""
    ms, thread, calls, kernels, samples = 1_000_000, PID | 5, [], [], []
    for step in range(20):
        begin = step * STEP + ms
        for part in range(3):
            number = 3 * step + part + 1
            at = begin + part * 20_000
            calls.append((at, at + 10_000, thread, number, 1))
            kernels.append(kernel(at + 15_000, at + 30_000, number, name=(2 + part % 2, 3, 4)))
        for part in range(1, 7):
            more = unmet_ms if (step - 1, part) == (unmet, 1) else 0
            if step != unmet:
                samples.append((len(samples) + 1, begin + 100_000 + part * ms, thread, CYCLES * (1 + more)))
    made = with_samples(samples, [row for sample in samples for row in chain(sample[0], 21, 20)])
    made["CUPTI_ACTIVITY_KIND_RUNTIME"] = (CALL, calls)
    made["CUPTI_ACTIVITY_KIND_KERNEL"] = (KERNEL, kernels)
    del made["CUPTI_ACTIVITY_KIND_MEMCPY"]
    track, = json.loads(run_command(PLUMB, "iters", make(path, made), "--json").stdout)["tracks"]
    return track


def test_what_cpu_samples_say_of_intervals(tmp_path):
    level = parses(tmp_path / "trace")["levels"][0]
    assert (level["occurrences"], level["verdict"]) == (20, "host-bound")
    rows = {row["kind"]: row for row in level["summary"]["filled"]}
    assert rows["sample"]["name"] == "parse_json" and rows["sample"]["text"] == "parse_json (CPU samples)"
    assert rows["sample"]["samples"] == 19 * 6
    assert rows["sample"]["ns"] == pytest.approx(19 * 6e6, rel=0.02)
    assert rows["gap"]["ns"] == pytest.approx(19 * 4e6, rel=0.05)


@pytest.mark.parametrize("computed, named", [(6, "parse_json"), (0, None)])
def test_the_critical_path_of_an_iteration_without_samples(tmp_path, computed, named):
    """Where it computed it is called what the other iterations are, where it slept nothing."""
    median = parses(tmp_path / "all")["path"]["iteration"]
    # What lies before an iteration's first kernel is its own.
    path = parses(tmp_path / "without", median - 1, computed)["path"]
    assert path["iteration"] == median and path["host_ns"] > 0.9 * STEP
    top = path["top"][0]
    assert (top["path_kind"], top["name"], top["sampled"]) == ("host", None, named)
