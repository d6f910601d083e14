# SPDX-License-Identifier: Apache-2.0
"""`plumb import` of XProf's trace.json, from JAX on GPUs and TPUs."""
import json

import pytest
from importing import imported
from json_traces import check_damaged, check_hostile


def plane(pid, name, **lines):
    yield {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}}
    yield {"ph": "M", "pid": pid, "name": "process_sort_index", "args": {"sort_index": pid}}
    for line, (tid, thread) in lines.items():
        yield {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": thread}}


def event(pid, tid, ts, dur, name, **args):
    return {"ph": "X", "pid": pid, "tid": tid, "ts": ts, "dur": dur, "name": name, **({"args": args} if args else {})}


def document(*events):
    return {"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": [*events, {}]}


HEAD = [
    *plane(701, "/host:CPU", a=(55, "python3")),
    *plane(1, "/device:GPU:0", s=(13, "Stream #13(Compute)"), c=(14, "Stream #14(MemcpyH2D,Memset)"),
           m=(30, "XLA Modules"), o=(31, "XLA Ops"), t=(32, "Steps")),
    *plane(2, "/device:GPU:3", s=(13, "Stream #13(Compute)")),
]
HOST = [
    event(701, 55, 10, 100, "$train.py:12 main"),
    event(701, 55, 11, 90, "PjitFunction(step)"),
    event(701, 55, 12, 5, "cuLaunchKernel", correlation_id="7", device_id="0", context_id="$$1"),
    event(701, 55, 20, 5, "cuGraphLaunch (CudaGraph:101)", correlation_id="8"),
    event(701, 55, 30, 5, "cuMemcpyHtoDAsync_v2", correlation_id=9),
    event(701, 55, 40, 1, "$builtins.len"),
]
KERNEL = {"regs": "32", "static_shared": "1024", "dynamic_shared": "0", "grid": "8,2,1", "block": "128,1,1",
          "occ_pct": "87.5"}


def kernel_details(separator=" "):
    return separator.join(f"{key}:{value}" for key, value in KERNEL.items())


GPU = [
    event(1, 13, 50, 4.001, "loop_add_fusion", correlation_id="7", hlo_op="fusion.1", hlo_module="jit_step",
          source="/home/me/model.py:33", kernel_details=kernel_details()),
    event(1, 13, 55, 2, "gemm", correlation_id="8", hlo_op="dot.3", kernel_details=kernel_details("\n")),
    event(1, 13, 58, 2, "gemm", correlation_id="8", hlo_op="dot.3"),
    event(1, 13, 61, 1, "unlaunched"),
    event(1, 14, 52, 3, "MemcpyH2D", correlation_id="9",
          memcpy_details="kind_src:pinned kind_dst:device size:4096 dest:0 async:1"),
    event(1, 14, 70, 1, "Memset", memset_details="kind:device size:64 async:1"),
    event(1, 30, 50, 12, "jit_step(1)", run_id="1"), event(1, 31, 50, 4, "fusion.1"), event(1, 32, 50, 12, "0"),
    event(2, 13, 50, 0.5, "loop_add_fusion"),
]


def test_streams_and_what_is_derived(tmp_path):
    made = imported(tmp_path, document(*HEAD, *HOST, *GPU))
    assert made.format == "jax"
    devices = made.devices()
    assert devices[0]["kernels"] == {"count": 4, "ns": 4001 + 2000 + 2000 + 1000}
    assert devices[0]["copies"] == {"count": 1, "ns": 3000, "bytes": 4096}
    assert devices[0]["sets"] == {"count": 1, "ns": 1000, "bytes": 64}
    assert devices[0]["busy_ns"] == 5000 + 2000 + 2000 + 1000 + 1000
    assert devices[3]["kernels"] == {"count": 1, "ns": 500}
    fates = made.fates()
    assert fates["import", "a second record of t", "lines that XProf computes from other lines"] == 3
    assert fates["gpu.kernel", "the file has no laun", None] == 2
    assert fates["gpu.set", "the file has no laun", None] == 1
    streams = made.query("SELECT stream FROM tracks WHERE kind = 'stream' ORDER BY device, stream")
    assert streams == [(13,), (14,), (13,)]


def test_work_hangs_under_its_call_and_operation(tmp_path):
    made = imported(tmp_path, document(*HEAD, *HOST, *GPU))
    above = "python main > range PjitFunction(step) > gpu_api "
    assert {
        above + "cuLaunchKernel > operator fusion.1 > kernel loop_add_fusion",
        above + "cuGraphLaunch > operator dot.3 > kernel gemm",
        above + "cuMemcpyHtoDAsync_v2 > copy copy pinned→device",
        "kernel unlaunched", "set set device", "python main > range PjitFunction(step) > python builtins.len",
    } <= made.stacks()
    assert made.query("SELECT file, line FROM frames WHERE name = 'main'") == [("train.py", 12)]
    assert made.query("SELECT source_file, source_line FROM frames WHERE name = 'fusion.1'") == \
        [("/home/me/model.py", 33)]


def test_launch_details(tmp_path):
    made = imported(tmp_path, document(*HEAD, *HOST, *GPU))
    rows = made.query("SELECT grid_x, grid_y, grid_z, block_x, block_y, block_z, registers, static_shared_bytes, "
                      "dynamic_shared_bytes, occupancy_ppm FROM variants")
    assert rows == [(8, 2, 1, 128, 1, 1, 32, 1024, 0, 875000)] * 2


def test_tpu_operations(tmp_path):
    made = imported(tmp_path, document(
        *plane(3, "/device:TPU:0", m=(1, "XLA Modules"), o=(2, "XLA Ops"), a=(3, "Async XLA Ops")),
        *plane(701, "/host:CPU"),
        event(3, 1, 0, 20, "jit_f(123)"), event(3, 2, 0, 20, "while.5", long_name="%while.5 = …"),
        event(3, 2, 1, 4, "fusion.2", hlo_module="jit_f"), event(3, 2, 6, 4, "all-reduce.1"),
        event(3, 3, 6, 9, "all-gather-start")))
    assert made.devices()[0]["kernels"] == {"count": 2, "ns": 8000}
    assert made.stacks() == {"range jit_f", "range jit_f > kernel fusion.2", "collective AllReduce",
                            "collective AllReduce > kernel all-reduce.1"}
    fates = made.fates()
    assert fates["import", "a second record of t", "loops and branches around operations"] == 1
    assert fates["import", "a second record of t", "lines that XProf computes from other lines"] == 2


def test_operations_of_the_cpu(tmp_path):
    made = imported(tmp_path, document(
        *plane(701, "/host:CPU", a=(5, "tf_XLAEigen/5")), event(701, 5, 1, 2, "dot.3", hlo_op="dot.3", hlo_module="m"),
        event(701, 5, 4, 2, "ThunkExecutor::Execute")))
    assert made.stacks() == {"operator dot.3", "range ThunkExecutor::Execute"}
    assert made.report()["devices"] == []


@pytest.mark.parametrize("name, details, frame", [
    ("MemcpyD2H", "kind_src:device_static kind_dst:pageable size:1 dest:0 async:0", "copy device→pageable"),
    ("MemcpyP2P", "kind_src:device kind_dst:device size:1 dest:1 async:1", "copy device→peer device"),
    ("MemcpyD2D", "size:1", "copy device→device"), ("MemcpyH2D", "", "copy host→device"),
    ("MemcpyOther", "kind_src:unknown", "copy unknown→unknown"),
])
def test_copies(tmp_path, name, details, frame):
    made = imported(tmp_path, document(*HEAD, event(1, 14, 1, 1, name, memcpy_details=details)))
    assert made.stacks() == {f"copy {frame}"}
    assert made.query("SELECT DISTINCT f.ordinal, t.ordinal FROM context_values v JOIN devices f ON f.id = v.from_device "
                      "JOIN devices t ON t.id = v.to_device") == ([(0, 1)] if "peer" in frame else [])


SMALL = document(*HEAD[:6], HOST[2], GPU[0], GPU[4])


def test_cut_off_at_every_byte(tmp_path):
    check_damaged(json.dumps(SMALL), tmp_path)


def test_strange_values(tmp_path):
    check_hostile(SMALL, tmp_path)
