# SPDX-License-Identifier: Apache-2.0
"""rocpd of ROCm 7. No such database is published, so they are made here after the schemas (3.0 and 4.1) and what
rocprofv3 writes into them."""
import sqlite3

import pytest
from importing import imported, report
from sqlitetest import HOSTILE_SCHEMA, UNMATCHED, contexts, damages, fates, make, packed, survives, truncations

import plumb as plumb_package

RUN = "_0197a2b4_1111_7222_8333_944455566677"
TEXTS = {1: "", 2: "HIP_RUNTIME_API_EXT", 3: "hipLaunchKernel", 4: "hipMemcpyAsync", 5: "KERNEL_DISPATCH", 6: "MEMORY_COPY",
         7: "MEMORY_COPY_HOST_TO_DEVICE", 8: "MARKER_CORE_RANGE_API", 9: "roctxThreadRangeA", 10: "KFD_PAGE_FAULT",
         11: "page fault", 12: "MARKER_CORE_API", 13: "HSA_CORE_API", 14: "hsa_signal_wait", 15: "host", 16: "main",
         17: "python", 18: "train.py", 19: "MEMORY_COPY_DEVICE_TO_DEVICE", 20: "hipGraphLaunch", 21: "RCCL_API",
         22: "ncclAllReduce", 23: "MEMORY_COPY_DEVICE_TO_HOST"}
EVENT = "id INTEGER PRIMARY KEY, category_id INTEGER, stack_id INTEGER, parent_stack_id INTEGER, correlation_id INTEGER, extdata TEXT"
REGION = ("id INTEGER PRIMARY KEY, nid INTEGER, pid INTEGER, tid INTEGER, start BIGINT, end BIGINT, name_id INTEGER, "
          "event_id INTEGER")
DISPATCH = ("id INTEGER PRIMARY KEY, nid INTEGER, pid INTEGER, tid INTEGER, agent_id INTEGER, kernel_id INTEGER, "
            "queue_id INTEGER, stream_id INTEGER, start BIGINT, end BIGINT, group_segment_size INTEGER, "
            "workgroup_size_x INTEGER, workgroup_size_y INTEGER, workgroup_size_z INTEGER, grid_size_x INTEGER, "
            "grid_size_y INTEGER, grid_size_z INTEGER, event_id INTEGER")
COPY = ("id INTEGER PRIMARY KEY, nid INTEGER, pid INTEGER, tid INTEGER, start BIGINT, end BIGINT, name_id INTEGER, "
        "dst_agent_id INTEGER, src_agent_id INTEGER, size INTEGER, queue_id INTEGER, stream_id INTEGER, event_id INTEGER")
AGENT = ("id INTEGER PRIMARY KEY, nid INTEGER, pid INTEGER, type TEXT, absolute_index INTEGER, logical_index INTEGER, "
         "type_index INTEGER, uuid INTEGER, name TEXT, model_name TEXT, product_name TEXT, extdata TEXT")
GPU = '{"cu_count": 304, "max_waves_per_cu": 32, "max_engine_clk_fcompute": 2100, "caches": [{"cu_count": 9}]}'


def tables(run=RUN, pid=4242, **changes):
    """What rocprofv3 writes (schema 3): number 51 is a HIP call and the kernel it launched."""
    made = {
        "rocpd_metadata": ("id INTEGER PRIMARY KEY, tag TEXT, value TEXT", [(1, "schema_version", "3"), (2, "uuid", run)]),
        "rocpd_string": ("id INTEGER PRIMARY KEY, string TEXT", list(TEXTS.items())),
        "rocpd_info_node": ("id INTEGER PRIMARY KEY, machine_id TEXT, hostname TEXT", [(9, "m", "node7")]),
        "rocpd_info_process": ("id INTEGER PRIMARY KEY, nid INTEGER, ppid INTEGER, pid INTEGER, start BIGINT, command TEXT, "
                               "environment TEXT",
                               [(pid, 9, 17, pid, 5, "python3 train.py", '{"SLURM_PROCID": "7", "RANK": "3", "LOCAL_RANK": "1"}')]),
        "rocpd_info_thread": ("id INTEGER PRIMARY KEY, nid INTEGER, pid INTEGER, tid INTEGER, name TEXT, start BIGINT",
                              [(4243, 9, pid, 4243, "trainer", 1)]),
        "rocpd_info_agent": (AGENT, [(0, 9, pid, "CPU", 0, 0, 0, 1, "EPYC", None, None, "{}"),
                                     (4, 9, pid, "GPU", 4, 4, 2, 29857, "gfx942", "", "AMD Instinct MI300X", GPU),
                                     (5, 9, pid, "GPU", 5, 5, 3, 29857, "gfx942", None, None, "not JSON")]),
        "rocpd_info_queue": ("id INTEGER PRIMARY KEY, name TEXT", [(1, "Queue 0")]),
        "rocpd_info_stream": ("id INTEGER PRIMARY KEY, name TEXT", [(0, "Default Stream")]),
        "rocpd_info_kernel_symbol": ("id INTEGER PRIMARY KEY, kernel_name TEXT, display_name TEXT, arch_vgpr_count INTEGER",
                                     [(80, "_Z1fi.kd", "f(int) [clone .kd]", 48), (81, "_Z1gi.kd", None, 16)]),
        "rocpd_track": ("id INTEGER PRIMARY KEY, nid INTEGER, pid INTEGER, tid INTEGER, name_id INTEGER",
                        [(1, 9, pid, 4243, 8)]),
        "rocpd_event": (EVENT, [(1, 8, 50, 0, 0, '{"message": "step"}'), (2, 2, 51, 50, 0, "{}"), (3, 5, 51, 51, 0, "{}"),
                                (4, 2, 52, 50, 0, "{}"), (5, 6, 52, 52, 0, "{}"), (6, 12, 53, 0, 0, '{"message": "here"}'),
                                (7, 2, 54, 0, 0, "{}"), (8, 10, 0, 0, 0, "{}")]),
        "rocpd_region": (REGION, [(50, 9, pid, 4243, 1000, 2000, 9, 1), (51, 9, pid, 4243, 1100, 1200, 3, 2),
                                  (52, 9, pid, 4243, 1300, 1400, 4, 4), (99, 9, pid, 4243, 1, 9999, 11, 8)]),
        "rocpd_sample": ("id INTEGER PRIMARY KEY, track_id INTEGER, timestamp BIGINT, event_id INTEGER",
                         [(53, 1, 1500, 6), (54, 1, 1600, 7)]),
        "rocpd_kernel_dispatch": (DISPATCH, [(1, 9, pid, 4243, 4, 80, 1, 0, 2000, 2500, 1024, 64, 1, 1, 1000, 1, 1, 3)]),
        "rocpd_memory_copy": (COPY, [(1, 9, pid, 4243, 2400, 2700, 7, 4, 0, 4096, None, 0, 5)]),
        "rocpd_memory_allocate": ("id INTEGER PRIMARY KEY, start BIGINT, end BIGINT, size INTEGER", [(1, 5, 6, 7)]),
        "rocpd_pmc_event": ("id INTEGER PRIMARY KEY, event_id INTEGER, pmc_id INTEGER, value REAL", [(1, 3, 1, 2.0), (2, 3, 2, 2.0)]),
    }
    made.update({name: table for name, table in changes.items() if table})
    return {name + run: table for name, table in made.items() if name not in changes or changes[name]}


def views(made):
    """The plain names, as rocprofv3 makes them."""
    return [f"CREATE VIEW {name[:-len(RUN)]} AS SELECT * FROM {name}" for name in made]


def spans_of(folder, made):
    return contexts(imported(folder, make(folder / "trace", made)))


TREE = {"range:step": 1, "range:step > gpu_api:hipLaunchKernel": 1, "range:step > gpu_api:hipMemcpyAsync": 1,
        "range:step > range:here": 1, "range:step > gpu_api:hipLaunchKernel > kernel:f(int)": 1,
        "range:step > gpu_api:hipMemcpyAsync > copy:copy host→device": 1}


def check_figures(path):
    data = report(path)
    (device,) = data["devices"]
    assert (device["name"], device["ordinal"]) == ("AMD Instinct MI300X", 2)
    assert device["kernels"] == {"count": 1, "ns": 500}
    assert device["copies"] == {"count": 1, "ns": 300, "bytes": 4096}
    assert (device["busy_ns"], device["span_ns"]) == (700, 700)
    for source in ("gpu.kernel", "gpu.copy"):
        assert fates(data, source) == {"received": 1, "attributed": 1}
    return data


def test_schema_3(tmp_path):
    made = tables()
    path = imported(tmp_path, make(tmp_path / "trace", made, extra=views(made)))
    assert contexts(path) == TREE
    data = check_figures(path)
    assert fates(data) == {"rocpd_memory_allocate": 1, "rocpd_pmc_event": 2, "rocpd_sample": 1, "KFD_PAGE_FAULT": 1}
    profile = plumb_package.Profile(path)
    (process,) = profile.processes
    assert (process.pid, process.ppid, process.rank, process.local_rank) == (4242, 17, 3, 1)
    assert (process.command, process.host) == ("python3 train.py", "node7")
    (device,) = profile.devices
    assert (device.multiprocessors, device.warps_per_multiprocessor, device.clock_khz) == (304, 32, 2100000)
    (thread,) = [track for track in profile.tracks if track.kind == "thread"]
    assert (thread.tid, thread.name) == (4243, "trainer")
    assert profile.environment["rocpd.schema"] == "3"
    with sqlite3.connect(path) as database: # 1000 work-items in groups of 64
        assert database.execute("SELECT grid_x, grid_y, block_x, registers FROM variants").fetchall() == [(16, 1, 64, 48)]


def test_schema_4(tmp_path):
    """What ran names a track, which names process, thread, agent, queue and stream; categories have a table."""
    made = tables(
        rocpd_info_category=("id INTEGER PRIMARY KEY, name TEXT", [(1, "MARKER_CORE_RANGE_API"), (2, "HIP_RUNTIME_API_EXT"),
                                                                   (3, "KERNEL_DISPATCH"), (4, "MEMORY_COPY")]),
        rocpd_track=("id INTEGER PRIMARY KEY, nid INTEGER, pid INTEGER, tid INTEGER, agent_id INTEGER, queue_id INTEGER, "
                     "stream_id INTEGER, name_id INTEGER", [(1, 9, 4242, 4243, None, None, None, 1), (2, 9, 4242, 4243, 4, 1, 6, 1)]),
        rocpd_event=(EVENT, [(1, 1, 50, 0, 0, '{"message": "step"}'), (2, 2, 51, 50, 0, "{}"), (3, 3, 51, 51, 0, "{}"),
                             (4, 2, 52, 50, 0, "{}"), (5, 4, 52, 52, 0, "{}"), (6, 1, 53, 0, 0, '{"x": [1], "message": "here"}')]),
        rocpd_region=("id INTEGER PRIMARY KEY, track_id INTEGER, name_id INTEGER, start BIGINT, end BIGINT, event_id INTEGER",
                      [(50, 1, 9, 1000, 2000, 1), (51, 1, 3, 1100, 1200, 2), (52, 1, 4, 1300, 1400, 4)]),
        rocpd_sample=("id INTEGER PRIMARY KEY, track_id INTEGER, name_id INTEGER, timestamp BIGINT, event_id INTEGER",
                      [(53, 1, 9, 1500, 6)]),
        rocpd_kernel_dispatch=("id INTEGER PRIMARY KEY, track_id INTEGER, kernel_id INTEGER, start BIGINT, end BIGINT, "
                               "workgroup_size_x INTEGER, workgroup_size_y INTEGER, workgroup_size_z INTEGER, grid_size_x INTEGER, "
                               "grid_size_y INTEGER, grid_size_z INTEGER, event_id INTEGER",
                               [(1, 2, 80, 2000, 2500, 64, 1, 1, 128, 1, 1, 3)]),
        rocpd_memory_copy=("id INTEGER PRIMARY KEY, track_id INTEGER, start BIGINT, end BIGINT, name_id INTEGER, "
                           "dst_agent_id INTEGER, src_agent_id INTEGER, size INTEGER, event_id INTEGER",
                           [(1, 2, 2400, 2700, 7, 4, 0, 4096, 5)]))
    path = imported(tmp_path, make(tmp_path / "trace", made, extra=views(made)))
    assert contexts(path) == TREE
    check_figures(path)
    assert [track.stream for track in plumb_package.Profile(path).tracks if track.kind == "stream"] == [6]


@pytest.mark.parametrize("suffix", ["", RUN, "abc"])
@pytest.mark.parametrize("pack", [False, True])
def test_recognised_without_its_name_and_packed(tmp_path, suffix, pack):
    plain = make(tmp_path / "results.db", tables(suffix))
    path = imported(tmp_path, packed(plain, tmp_path / "x") if pack else plain.rename(tmp_path / "x"))
    assert plumb_package.Profile(path).environment["import.format"] == "rocpd"
    assert contexts(path) == TREE


def test_several_runs_in_one_database(tmp_path):
    """Each has numbers of its own, even processes of one number on two nodes."""
    path = imported(tmp_path, make(tmp_path / "trace", {
        **tables("_a"), **tables("_b", pid=5000),
        **tables("_c", rocpd_info_node=("id INTEGER PRIMARY KEY, hostname TEXT", [(9, "other")]))}))
    assert contexts(path) == {key: 3 * count for key, count in TREE.items()}
    profile = plumb_package.Profile(path)
    assert sorted((p.pid, p.host) for p in profile.processes) == [(4242, "node7"), (4242, "other"), (5000, "node7")]
    data = report(path)
    assert fates(data)["rocpd_memory_allocate"] == 3
    assert fates(data, "gpu.kernel") == {"received": 3, "attributed": 3}


def test_categories(tmp_path):
    events = [(1, 13, 61, 0, 0, "{}"), (2, 15, 62, 0, 0, "{}"), (3, 17, 63, 0, 0, "{}"), (4, 21, 64, 0, 0, "{}"),
              (5, 12, 65, 0, 0, '{"message": "aten::mm, op_id = 5"}'), (6, 8, 66, 0, 0, "[broken"), (7, 8, 67, 0, 0, None),
              (8, None, 68, 0, 0, "{}")]
    names = [14, 16, 18, 22, 9, 9, 9, 3]
    regions = [(i, 9, 4242, 4243, 100 * i, 100 * i + 50, name, i) for i, name in enumerate(names, 1)]
    regions += [(50, 9, 4242, 4243, 5000, 5001, 4, 999), (51, 9, 4242, 4243, 5002, 5003, 999, None)]
    assert spans_of(tmp_path, tables(rocpd_event=(EVENT, events), rocpd_region=(REGION, regions), rocpd_sample=None,
                                     rocpd_kernel_dispatch=None, rocpd_memory_copy=None)) == {
        "gpu_api:hsa_signal_wait": 1, "native:main": 1, "python:train.py": 1, "gpu_api:ncclAllReduce": 1,
        "operator:aten::mm": 1, "range:roctxThreadRangeA": 2, "gpu_api:hipLaunchKernel": 1, "gpu_api:hipMemcpyAsync": 1,
        "range:?": 1}


def test_copies_between_agents(tmp_path):
    """A copy is of the GPU it reads from, else of the one it writes to; between two GPUs they are peers."""
    rows = [(1, 9, 4242, 4243, 2400, 2700, 23, 0, 5, 10, None, 0, 5), (2, 9, 4242, 4243, 2800, 2900, 19, 5, 4, 20, None, 0, 5),
            (3, 9, 4242, 4243, 3000, 3100, 19, 4, 4, 30, None, 0, 5), (4, 9, 4242, 4243, 3200, 3300, 19, None, None, 40, 1, None, 5)]
    path = imported(tmp_path, make(tmp_path / "trace", tables(rocpd_memory_copy=(COPY, rows), rocpd_kernel_dispatch=None)))
    found = contexts(path)
    call = "range:step > gpu_api:hipMemcpyAsync > copy:copy "
    assert (found[call + "device→host"], found[call + "device→peer device"], found[call + "device→device"]) == (1, 1, 2)
    devices = {device["ordinal"]: device for device in report(path, "--by", "context", "--metric", "gpu.copy_bytes")["devices"]}
    assert {ordinal: device["copies"]["bytes"] for ordinal, device in devices.items()} == {3: 10, 2: 50, None: 40}
    assert devices[3]["name"] == "gfx942"
    with sqlite3.connect(path) as database:
        assert database.execute(
            "SELECT DISTINCT f.ordinal, t.ordinal FROM context_values v JOIN devices f ON f.id = v.from_device "
            "JOIN devices t ON t.id = v.to_device").fetchall() == [(2, 3)]


def test_work_without_a_call(tmp_path):
    rows = [(1, 9, 4242, 4243, 4, 81, 1, 0, 2000, 2500, 0, 64, 1, 1, 64, 1, 1, 999),
            (2, 9, 4242, 4243, 4, 77, 1, 0, 2600, 2700, 0, 64, 1, 1, 64, 1, 1, 8)]
    path = imported(tmp_path, make(tmp_path / "trace", tables(rocpd_kernel_dispatch=(DISPATCH, rows))))
    assert fates(report(path), "gpu.kernel") == {"received": 2, UNMATCHED: 2}
    assert contexts(path)["kernel:_Z1gi"] == 1 and contexts(path)["kernel:?"] == 1


def test_missing_tables(tmp_path):
    """Strings and dispatches alone."""
    made = {"rocpd_string_x": ("id INTEGER, string TEXT", [(1, "")]),
            "rocpd_kernel_dispatch_x": ("start INTEGER, end INTEGER", [(5, 10), (20, 30)])}
    data = report(imported(tmp_path, make(tmp_path / "trace", made)))
    assert data["devices"][0]["kernels"] == {"count": 2, "ns": 15}


# ---- hostile ----


def test_views_are_not_used(tmp_path):
    made = tables()
    endless = ("CREATE VIEW rocpd_kernel_dispatch AS WITH RECURSIVE r(start) AS (SELECT 1 UNION ALL SELECT start + 1 FROM r) "
               "SELECT * FROM r", "CREATE VIEW rocpd_string AS SELECT * FROM rocpd_kernel_dispatch")
    path = imported(tmp_path, make(tmp_path / "trace", made, extra=(*endless, *HOSTILE_SCHEMA)))
    assert contexts(path) == TREE


def test_numbers_at_their_limits(tmp_path):
    big = 2**63 - 1
    made = tables(rocpd_region=(REGION, [(1, big, big, -big, 0, big, big, big), (2, -1, -1, -1, -big - 1, 1, 3, 2)]),
                  rocpd_kernel_dispatch=(DISPATCH, [(1, 9, -big, big, big, -big, big, big, 5, 6, big, big, 0, -1, big, big, big, -5)]),
                  rocpd_info_agent=(AGENT, [(big, 9, 1, "GPU", big, -big, big, 1, "x" * 1000, None, None, '{"cu_count": 1e400}')]))
    data = report(imported(tmp_path, make(tmp_path / "trace", made)))
    assert fates(data, "gpu.kernel")["received"] == 1


def test_damaged_files_give_one_line(tmp_path):
    path = make(tmp_path / "trace", tables("_r"), page_size=512)
    assert survives(tmp_path, truncations(path, step=13)) == 0
    assert survives(tmp_path, damages(path, 300)) > 30
