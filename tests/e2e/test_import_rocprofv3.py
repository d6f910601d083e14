# SPDX-License-Identifier: Apache-2.0
"""`plumb import` of rocprofv3's JSON."""
import json

import pytest
from importing import imported
from json_traces import check_damaged, check_hostile

KINDS = ["NONE", "HSA_CORE_API", "HIP_RUNTIME_API", "MARKER_CORE_API", "MARKER_CORE_RANGE_API", "MARKER_CONTROL_API",
         "MEMORY_COPY", "KERNEL_DISPATCH", "RCCL_API"]
OPERATIONS = {"HSA_CORE_API": ["hsa_queue_create"], "HIP_RUNTIME_API": ["hipLaunchKernel", "hipMemcpyAsync"],
              "MARKER_CORE_API": ["roctxMarkA"], "MARKER_CORE_RANGE_API": ["roctxThreadRangeA"],
              "MARKER_CONTROL_API": ["roctxProfilerPause"], "RCCL_API": ["ncclAllReduce"],
              "MEMORY_COPY": ["MEMORY_COPY_NONE", "MEMORY_COPY_HOST_TO_HOST", "MEMORY_COPY_HOST_TO_DEVICE",
                              "MEMORY_COPY_DEVICE_TO_HOST", "MEMORY_COPY_DEVICE_TO_DEVICE"],
              "KERNEL_DISPATCH": ["KERNEL_DISPATCH_NONE", "KERNEL_DISPATCH_ENQUEUE", "KERNEL_DISPATCH_COMPLETE"]}


def host(kind, operation, thread, start, end, correlation):
    return {"size": 80, "kind": KINDS.index(kind), "operation": OPERATIONS[kind].index(operation),
            "correlation_id": {"internal": correlation, "external": 0}, "start_timestamp": start,
            "end_timestamp": end, "thread_id": thread}


def dispatch(kernel, start, end, correlation, agent=2000, queue=1, stream=None, grid=(1000, 1, 1), group=(256, 1, 1),
             flat=False):
    info = {"size": 72, "agent_id": {"handle": agent}, "queue_id": {"handle": queue}, "kernel_id": kernel,
            "dispatch_id": 1, "private_segment_size": 0, "group_segment_size": 512,
            "workgroup_size": dict(zip("xyz", group)), "grid_size": dict(zip("xyz", grid))}
    record = {"size": 100, "kind": KINDS.index("KERNEL_DISPATCH"), "operation": 2, "thread_id": 10,
              "correlation_id": {"internal": correlation, "external": 0}, "start_timestamp": start, "end_timestamp": end}
    record |= info if flat else {"dispatch_info": info}
    return record | ({} if stream is None else {"stream_id": {"handle": stream}})


def copy(operation, start, end, correlation, source, target, **more):
    return {"size": 80, "kind": KINDS.index("MEMORY_COPY"), "operation": OPERATIONS["MEMORY_COPY"].index(operation),
            "correlation_id": {"internal": correlation, "external": 0}, "start_timestamp": start, "end_timestamp": end,
            "src_agent_id": {"handle": source}, "dst_agent_id": {"handle": target}, **more}


def process(pid=100, **records):
    return {
        "metadata": {"node": {"id": 1, "hostname": "box"}, "pid": pid, "init_time": 1, "fini_time": 99999,
                     "command": ["./app", "-x"], "config": {}},
        "agents": [{"id": {"handle": 1000}, "type": 1, "name": "CPU"},
                   {"id": {"handle": 2000}, "type": 2, "name": "gfx942", "product_name": "AMD Instinct MI300X",
                    "logical_node_type_id": 0, "cu_count": 304, "simd_per_cu": 4, "max_waves_per_simd": 8},
                   {"id": {"handle": 3000}, "type": 2, "name": "gfx942", "logical_node_type_id": 1}],
        "counters": [],
        "strings": {"callback_records": [], "buffer_records": [{"kind": kind, "operations": OPERATIONS.get(kind, [])}
                                                               for kind in KINDS],
                    "marker_api": [{"key": 50, "value": "step"}, {"key": 51, "value": "pause"}],
                    "correlation_id": {"external": []}},
        "code_objects": [], "host_functions": [],
        "kernel_symbols": [{"kernel_id": 1, "kernel_name": "_Z3addPf.kd", "formatted_kernel_name": "add(float*)",
                            "arch_vgpr_count": 24},
                           {"kernel_id": 2, "kernel_name": "_Z3mulPf.kd"}],
        "summary": [], "callback_records": {"counter_collection": []},
        "buffer_records": records}


def document(*processes):
    return {"rocprofiler-sdk-tool": list(processes)}


FULL = process(
    kernel_dispatch=[dispatch(1, 1000, 3000, 5), dispatch(2, 2000, 4000, 6, queue=2),
                     dispatch(1, 9000, 9500, 77, agent=3000), dispatch(9, 9600, 9700, 78, flat=True)],
    hip_api=[host("HIP_RUNTIME_API", "hipLaunchKernel", 10, 900, 950, 5),
             host("HIP_RUNTIME_API", "hipLaunchKernel", 10, 960, 990, 6),
             host("HIP_RUNTIME_API", "hipMemcpyAsync", 10, 4000, 4100, 7)],
    hsa_api=[host("HSA_CORE_API", "hsa_queue_create", 11, 100, 200, 1)],
    marker_api=[host("MARKER_CORE_RANGE_API", "roctxThreadRangeA", 10, 800, 5000, 50),
                host("MARKER_CORE_API", "roctxMarkA", 10, 810, 810, 52),
                host("MARKER_CONTROL_API", "roctxProfilerPause", 10, 820, 821, 51)],
    rccl_api=[host("RCCL_API", "ncclAllReduce", 10, 955, 995, 8)],
    memory_copy=[copy("MEMORY_COPY_HOST_TO_DEVICE", 4200, 4300, 7, 1000, 2000, bytes=4096),
                 copy("MEMORY_COPY_DEVICE_TO_DEVICE", 4300, 4350, 7, 2000, 3000, bytes=10),
                 copy("MEMORY_COPY_HOST_TO_HOST", 4300, 4350, 7, 1000, 1000)],
    memory_allocation=[{"size": 1}, {"size": 2}], scratch_memory=[], pc_sample_host_trap=[{"record": {}}])


def check_full(made):
    assert made.format == "rocprofv3"
    devices = made.devices()
    assert devices[0]["name"] == "AMD Instinct MI300X"
    assert devices[0]["kernels"] == {"count": 3, "ns": 4100}
    assert devices[0]["copies"] == {"count": 1, "ns": 100, "bytes": 4096}
    assert devices[0]["busy_ns"] == 3000 + 100 + 100
    assert devices[1]["kernels"] == {"count": 1, "ns": 500}
    assert devices[1]["copies"] == {"count": 1, "ns": 50, "bytes": 10}
    fates = made.fates()
    assert fates["gpu.kernel", "the file has no laun", None] == 2
    assert {detail: fates["import", "plumb does not show ", detail] for detail in (
        "memory_allocation", "pc_sample_host_trap", "marks", "calls that control the profiler",
        "copies from host to host")} == {"memory_allocation": 2, "pc_sample_host_trap": 1, "marks": 1,
                                         "calls that control the profiler": 1, "copies from host to host": 1}
    assert made.stacks() >= {
        "range step > gpu_api hipLaunchKernel > kernel add(float*)",
        "range step > library ncclAllReduce > gpu_api hipLaunchKernel > kernel mul(float*)",
        "range step > gpu_api hipMemcpyAsync > copy copy host→device",
        "range step > gpu_api hipMemcpyAsync > copy copy device→peer device",
        "gpu_api hsa_queue_create", "kernel add(float*)", "kernel ?"}


def test_a_process(tmp_path):
    made = imported(tmp_path, document(FULL))
    check_full(made)
    assert made.query("SELECT pid, host, command FROM processes") == [(100, "box", "./app -x")]
    assert made.query("SELECT DISTINCT f.ordinal, t.ordinal FROM context_values v JOIN devices f ON f.id = v.from_device "
                      "JOIN devices t ON t.id = v.to_device") == [(0, 1)]
    assert made.query("SELECT multiprocessors, warps_per_multiprocessor FROM devices WHERE ordinal = 0") == [(304, 32)]


def test_grids_are_in_work_items(tmp_path):
    made = imported(tmp_path, document(FULL))
    assert made.query("SELECT DISTINCT grid_x, grid_y, grid_z, block_x FROM variants") == [(4, 1, 1, 256)]
    assert set(made.query("SELECT registers FROM variants")) == {(24,), (None,)}
    shared = made.rows("kernel")["add(float*)"]["exclusive"]["gpu.shared_bytes"]
    assert (shared["min"], shared["max"]) == (512, 512)


def test_order_of_the_members_does_not_matter(tmp_path):
    check_full(imported(tmp_path, document(dict(reversed(FULL.items())))))


def test_an_object_instead_of_a_list(tmp_path):
    check_full(imported(tmp_path, {"rocprofiler-sdk-tool": FULL}))


def test_processes_have_numbers_of_their_own(tmp_path):
    one = process(1, kernel_dispatch=[dispatch(1, 10, 20, 5)],
                  hip_api=[host("HIP_RUNTIME_API", "hipLaunchKernel", 1, 1, 5, 5)])
    two = process(2, kernel_dispatch=[dispatch(2, 30, 50, 5)],
                  hip_api=[host("HIP_RUNTIME_API", "hipMemcpyAsync", 2, 21, 25, 5)])
    made = imported(tmp_path, document(one, two, process(3)))
    assert {"gpu_api hipLaunchKernel > kernel add(float*)", "gpu_api hipMemcpyAsync > kernel mul(float*)"} <= made.stacks()
    assert made.query("SELECT pid FROM processes ORDER BY pid") == [(1,), (2,)]


@pytest.mark.parametrize("streams, expected", [((None, None), [(1,), (2,)]), ((4, 4), [(4,)]), ((4, 5), [(4,), (5,)])])
def test_streams_rather_than_queues(tmp_path, streams, expected):
    made = imported(tmp_path, document(process(kernel_dispatch=[
        dispatch(1, 1, 2, 1, queue=1, stream=streams[0]), dispatch(1, 3, 4, 2, queue=2, stream=streams[1])])))
    assert made.query("SELECT stream FROM tracks WHERE kind = 'stream' ORDER BY stream") == expected


def test_operations_as_words(tmp_path):
    call = host("HIP_RUNTIME_API", "hipLaunchKernel", 1, 1, 5, 5) | {"operation": "hipWord", "kind": 99}
    made = imported(tmp_path, document(process(hip_api=[call])))
    assert made.stacks() == {"gpu_api hipWord"}


SMALL = document(process(kernel_dispatch=[dispatch(1, 10, 20, 5)], marker_api=[
    host("MARKER_CORE_RANGE_API", "roctxThreadRangeA", 1, 1, 9, 50)], hip_api=[
    host("HIP_RUNTIME_API", "hipLaunchKernel", 1, 1, 5, 5)], memory_copy=[
    copy("MEMORY_COPY_HOST_TO_DEVICE", 4, 5, 7, 1000, 2000, bytes=1)]))


def test_cut_off_at_every_byte(tmp_path):
    small = document({key: SMALL["rocprofiler-sdk-tool"][0][key] for key in ("metadata", "buffer_records")})
    check_damaged(json.dumps(small), tmp_path)


def test_strange_values(tmp_path):
    check_hostile(SMALL, tmp_path)
