# SPDX-License-Identifier: Apache-2.0
"""`plumb import` of Intel unitrace's JSON, as its source writes it: old and new versions."""
import json

import pytest
from importing import imported
from json_traces import check_damaged, check_hostile

GPU = 4294967295


def host(name, ts, dur, tid=11, pid=10, cat="cpu_op", **more):
    return {"ph": "X", "tid": tid, "pid": pid, "name": name, "cat": cat, "ts": ts, "dur": dur, "id": 0, **more}


def flow(ts, kid, tid=11, pid=10, rank=0, phase="s", way="H2D", api=""):
    return {"ph": phase, "tid": tid, "pid": pid, "name": "dep", "cat": f"{api}Flow_{way}_{kid}_{rank}", "ts": ts, "id": kid}


def command(name, ts, dur, kid, tid=GPU, pid=GPU, rank=0):
    return [{"ph": "X", "tid": tid, "pid": pid, "name": name, "cat": "gpu_op", "ts": ts, "dur": dur,
             "args": {"id": str(kid)}},
            flow(ts, kid, tid, pid, rank, "t"), flow(ts, kid, tid, pid, rank, "s", "D2H")]


def named(name, pid, tid=None):
    return {"ph": "M", "name": "process_name" if tid is None else "thread_name", "pid": pid, "ts": 1,
            "args": {"name": name}, **({} if tid is None else {"tid": tid})}


NAMES = [named("HOST<box>", 10), named("DEVICE<box>[Intel Max 1550] 0:3d:0.0 #1", GPU),
         named("Thread 11 L0 Engine<0,1>", GPU, GPU)]
EVENTS = [
    *command("gemm(float*)[SIMD32 {4; 2; 1} {256; 1; 1}]", "100.250000", "20.500000", 17),
    *command("zeCommandListAppendMemoryCopy(M2D)[4096]", 90, 5, 16, tid=GPU - 1),
    *command("zeCommandListAppendMemoryFill(S)[64]", 125, 1, 18),
    *command("zeCommandListAppendBarrier", 130, 1, 19),
    *command("gemm(float*)[SIMD32 {4; 2; 1} {256; 1; 1}]", 140, 2, 99),
    host("MPI_Send", 5, 60), host("step", 4, 100),
    host("zeCommandListAppendMemoryCopy", 10, 2), flow(10, 16),
    host("urEnqueueKernelLaunch", 20, 9),
    host("zeCommandListAppendLaunchKernel", 20, 3), flow(20, 17), flow(20, 18),
    host("zeCommandQueueSynchronize", 40, 9), flow(40, 17, way="D2H", phase="t"),
    {"ph": "B", "tid": 12, "pid": 10, "name": "xpti", "cat": "cpu_op", "ts": 1, "id": 0},
    {"ph": "E", "tid": 12, "pid": 10, "cat": "cpu_op", "ts": 3, "id": 0},
    {"ph": "R", "tid": 12, "pid": 10, "name": "mark", "cat": "cpu_op", "ts": 2, "id": 0},
]


def check(made):
    assert made.format == "unitrace"
    device = made.devices()[1]
    assert device["name"] == "Intel Max 1550"
    assert device["kernels"] == {"count": 2, "ns": 22500}
    assert device["copies"] == {"count": 1, "ns": 5000, "bytes": 4096}
    assert device["sets"] == {"count": 1, "ns": 1000, "bytes": 64}
    assert device["busy_ns"] == 28500
    fates = made.fates()
    assert fates["gpu.kernel", "the file has no laun", None] == 1
    assert fates["import", "plumb does not show ", "barriers and events of a device"] == 1
    assert fates["import", "plumb does not show ", "marks"] == 1
    assert fates["import", "plumb does not show ", "flows of synchronisation"] == 6
    around = "range step > library MPI_Send > gpu_api "
    assert made.stacks() >= {
        around + "zeCommandListAppendMemoryCopy > copy copy pageable→device",
        around + "urEnqueueKernelLaunch > gpu_api zeCommandListAppendLaunchKernel > kernel gemm(float*)",
        around + "urEnqueueKernelLaunch > gpu_api zeCommandListAppendLaunchKernel > set set managed",
        around + "zeCommandQueueSynchronize", "range xpti", "kernel gemm(float*)"}
    assert made.query("SELECT grid_x, grid_y, block_x, registers FROM variants") == [(4, 2, 256, None)] * 2


@pytest.mark.parametrize("events", [EVENTS + NAMES, NAMES + EVENTS, (NAMES + EVENTS)[::-1]],
                         ids=["names last", "names first", "reversed"])
def test_commands_and_calls(tmp_path, events):
    check(imported(tmp_path, {"traceEvents": events}))


def test_the_text_that_it_writes(tmp_path):
    lines = ",\n".join(json.dumps(event) for event in NAMES + EVENTS)
    check(imported(tmp_path, '{ "traceEvents":[\n' + lines + "\n]\n}\n"))


def test_calls_of_the_same_microsecond(tmp_path):
    made = imported(tmp_path, {"traceEvents": [
        *NAMES, host("zeCommandListAppendLaunchKernel", 20, 0), flow(20, 1),
        host("zeCommandListAppendMemoryCopy", 20, 0), flow(20, 2),
        *command("k[SIMD8 {1; 1; 1} {8; 1; 1}]", 30, 1, 1), *command("zeCommandListAppendMemoryCopy(D2H)[1]", 40, 1, 2),
    ]})
    paths = made.stacks()
    assert any(path.endswith("zeCommandListAppendLaunchKernel > kernel k") for path in paths)
    assert any(path.endswith("zeCommandListAppendMemoryCopy > copy copy device→pinned") for path in paths)


def test_ranks_of_a_merged_file(tmp_path):
    events = []
    for rank in (0, 1):
        pid, gpu = 10 + rank, GPU - 8192 * rank
        events += [named(f"RANK {rank} HOST<box>", pid), named(f"RANK {rank} DEVICE<box>0:3d:0.0 #0.{rank}", gpu),
                   host("zeCommandListAppendLaunchKernel", 1, 1, pid=pid), flow(1, 5, pid=pid, rank=rank),
                   *command(f"k{rank}[SIMD8 {{1; 1; 1}} {{8; 1; 1}}]", 3, 1 + rank, 5, tid=gpu, pid=gpu, rank=rank)]
    made = imported(tmp_path, {"traceEvents": events})
    assert {"gpu_api zeCommandListAppendLaunchKernel > kernel k0",
            "gpu_api zeCommandListAppendLaunchKernel > kernel k1"} <= made.stacks()
    assert made.query("SELECT pid, rank FROM processes ORDER BY pid") == [(10, 0), (11, 1)]
    assert {(device["name"], device["kernels"]["ns"]) for device in made.report()["devices"]} == \
        {("0:3d:0.0 tile 0", 1000), ("0:3d:0.0 tile 1", 2000)}
    assert made.fates().get(("gpu.kernel", "the file has no laun", None)) is None


def test_tiles_run_parts_of_one_kernel(tmp_path):
    name = "gemm[SIMD32 {4; 1; 1} {256; 1; 1}]"
    made = imported(tmp_path, {"traceEvents": [
        *NAMES, host("zeCommandListAppendLaunchKernel", 1, 1), flow(1, 5),
        command("Tile #0: " + name, 3, 4, 5)[0], command("Tile #1: " + name, 4, 4, 5)[0]]})
    device = made.devices()[1]
    assert device["kernels"] == {"count": 2, "ns": 8000} and device["busy_ns"] == 5000
    assert made.rows("kernel").keys() == {"gemm"}


@pytest.mark.parametrize("name, path", [
    ("zeCommandListAppendImageCopyFromMemory(H2D)[7]", "copy copy pinned→device"),
    ("zeCommandListAppendMemoryCopyRegion(S2S)", "copy copy managed→managed"),
    ("clEnqueueReadBuffer[7]", "copy copy device→host"), ("clEnqueueWriteBuffer[7]", "copy copy host→device"),
    ("clEnqueueFillBuffer[7]", "set set device"), ("zeCommandListAppendMemoryFill(H)[7]", "set set pinned"),
    ("k<x>::operator[]", "kernel k<x>::operator[]"), ("k[SIMD_ANY {1; 1; 1} {1; 1; 1}]", "kernel k"),
])
def test_names_of_commands(tmp_path, name, path):
    made = imported(tmp_path, {"traceEvents": command(name, 1, 1, 1)})
    assert made.stacks() == {path}


def test_functions_of_the_driver_in_the_kernel(tmp_path):
    made = imported(tmp_path, {"traceEvents": [named("HOST-OS-KMD<box>", 0),
                                                     host("i915_gem_do_execbuffer", 1, 2, pid=0, cat="os_op")]})
    assert made.format == "unitrace" and made.stacks() == {"native i915_gem_do_execbuffer"}


def test_calls_alone_are_recognised(tmp_path):
    made = imported(tmp_path, {"traceEvents": [host("zeInit", 1, 2)]})
    assert made.format == "unitrace" and made.stacks() == {"gpu_api zeInit"}


SMALL = {"traceEvents": [*NAMES[:2], host("zeInit", 1, 2), flow(1, 7), *command("k[SIMD8 {1; 1; 1} {8; 1; 1}]", 3, 1, 7)]}


def test_cut_off_at_every_byte(tmp_path):
    check_damaged(json.dumps(SMALL), tmp_path)


def test_strange_values(tmp_path):
    check_hostile(SMALL, tmp_path)
