# SPDX-License-Identifier: Apache-2.0
"""GPU work on the stand-in driver, from the Python line to the kernel in the finished profile: known
kernels with known durations, launched inside real operators and backward passes, for every release of
CUPTI."""
import collections
import json
import pathlib
import re
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
from conftest import BUILD, PLUMB, ROOT, Recording, run_command, torch_pythons
from plumbtest import PROGRAMS, Made, environment_for_programs, run_program

RELEASES = {"11.8": "libcupti.so.11.8", "12.1": "libcupti.so.12", "12.8": "libcupti.so.12",
            "13.0": "libcupti.so.13"}
VERSIONS = {"11.8": "18 ", "12.1": "18 ", "12.8": "26 ", "13.0": "130001 "}
NEWEST = "13.0"
LAUNCH = " > cuLaunchKernel > "


def mock_environment(release, scenario=""):
    folder = BUILD / "mock" / release
    if not (BUILD / "mock/launcher.so").exists():
        pytest.exit("the stand-in driver is not built: run make mock first", returncode=2)
    return {"LD_LIBRARY_PATH": str(folder), "PLUMB_MOCK": scenario,
            "MOCK_LAUNCHER": str(BUILD / "mock/launcher.so"),
            "MOCK_CUPTI": str(folder / RELEASES[release])}


def run_driver(folder, *arguments, release=NEWEST, scenario="", environment=None, **more):
    """mock_driver.py, which needs no PyTorch; it has to succeed."""
    made = run_program(sys.executable, "mock_driver.py", *arguments, folder=folder,
                       environment={**mock_environment(release, scenario), **(environment or {})},
                       **more)
    assert made.done.returncode == 0, made.done.stderr
    return made


def run_profiled(folder, *actions, release=NEWEST, options=(), env=None):
    """mock-profiled, a C program that is its own profiler; it needs no environment."""
    path = folder / "run.plumb"
    done = run_command(PLUMB, "run", "-o", path, *options, "--",
                       BUILD / "mock" / release / "mock-profiled", *actions, cwd=folder,
                       env=env)
    return Made(done, PROGRAMS / "mock_driver.py", folder, path)


def found(made, metric, inside=None):
    """{path: (sum, count)} of METRIC, exclusive, from the frame of the function INSIDE on."""
    paths = collections.defaultdict(lambda: (0, 0))
    for context, stat in made.profile._stats(metric)[0].items():
        steps = made.steps(made.node(context), inside)
        if steps:
            path = " > ".join(step for step in steps if not step.startswith("<module>"))
            paths[path] = paths[path][0] + stat[0], paths[path][1] + stat[1]
    return dict(paths)


def check(made, inside, expected, metric="gpu.time"):
    assert found(made, metric, inside) == made.expand(expected)


def check_ledger(made, source, **expected):
    assert made.ledger(source) == expected, source


def only_device(made):
    device, = made.profile.devices
    return device


def loop_kernels(made, name="loop"):
    """(count, time) of a kernel, wherever it is."""
    stats = [node.exclusive["gpu.time"] for node in made.profile.kernels if node.symbol == name]
    return sum(stat.count for stat in stats), sum(stat.sum for stat in stats)


# ---- inside real operators and backward passes ----

def torch_runs():
    """Every release with this Python's PyTorch; with the others' the newest release."""
    return [(python, release) for python in torch_pythons() for release in RELEASES
            if python == sys.executable or release == NEWEST]


@pytest.fixture(scope="module", params=torch_runs(),
                ids=lambda run: f"{run[0].strip('/').replace('/', '.')}-{run[1]}")
def made(request, tmp_path_factory):
    python, release = request.param
    made = run_program(python, "mock_gpu.py", folder=tmp_path_factory.mktemp("mock"),
                       environment=mock_environment(release))
    assert made.done.returncode == 0, made.done.stderr
    made.release = release
    return made


def test_outside_any_operator(made):
    check(made, "outside", {
        f"outside:@outside_first > launch_outside:@outside_loop{LAUNCH}_Z7outsidePf": (300, 3),
        f"outside:@outside_first > launch_outside:@outside_last{LAUNCH}_Z7outsidePf": (7, 1),
        f"outside:@outside_second > launch_outside:@outside_loop{LAUNCH}_Z7outsidePf": (200, 2),
        f"outside:@outside_second > launch_outside:@outside_last{LAUNCH}_Z7outsidePf": (7, 1),
    })
    node = next(node for node in made.profile.kernels if node.symbol == "_Z7outsidePf")
    assert node.name == "outside(float*)"


def test_on_other_threads(made):
    check(made, "on_thread", {f"on_thread:@on_thread{LAUNCH}thread": (44, 4)})
    # Each launch on its own thread, all kernels on one stream.
    assert tracks(made, "gpu.launches", "on_thread") == {"thread": [1, 1, 1, 1]}
    assert tracks(made, "gpu.time", "on_thread") == {"stream": [4]}


def test_on_a_thread_that_no_python_knows(made):
    assert found(made, "gpu.time")["cuLaunchKernel > native"] == (65, 5)
    assert made.ledger("gpu.kernel")["no_python"] == 5


def tracks(made, metric, inside):
    """{kind of track: sorted counts} of METRIC in the function INSIDE."""
    database = sqlite3.connect(made.path)
    counts = collections.Counter()
    for context, track, kind, count in database.execute(
            "SELECT v.context, t.id, t.kind, v.count FROM context_values v JOIN metrics m "
            "ON m.id = v.metric JOIN tracks t ON t.id = v.track WHERE m.name = ?", (metric,)):
        if made.steps(made.node(context), inside):
            counts[kind, track] += count
    database.close()
    kinds = {kind for kind, _ in counts}
    return {kind: sorted(count for (of, _), count in counts.items() if of == kind)
            for kind in kinds}


def test_inside_operators(made):
    scale = "operators:@operators_scale > mock::scale > scale_cpu:"
    check(made, "operators", {
        f"{scale}@scale_first{LAUNCH}scale_first": (3000, 3),
        f"{scale}@scale_last{LAUNCH}scale_last": (900, 3),
        f"operators:@operators_erf > aten::erf > erf_cpu:@erf_kernel{LAUNCH}erf": (1000, 2),
    })
    check(made, "operators", {f"{scale}@scale_first > cuLaunchKernel": (3, 3),
                              f"{scale}@scale_last > cuLaunchKernel": (3, 3),
                              "operators:@operators_erf > aten::erf > erf_cpu:@erf_kernel > "
                              "cuLaunchKernel": (2, 2)}, metric="gpu.launches")
    scale, = made.profile.match("**/operator:mock::scale")
    assert scale.exclusive["op.calls"].sum == 3
    assert scale.inclusive["gpu.time"].sum == 3900
    assert (scale.inclusive["gpu.time"].min, scale.inclusive["gpu.time"].max) == (300, 1000)


def test_inside_operators_without_python_between(made):
    """aten::set_ lets go of a tensor's memory; what gives it back launches."""
    path, (time_ns, count) = only(found(made, "gpu.time", "from_c"))
    steps = path.split(" > ")
    assert (time_ns, count) == (120, 3)
    assert steps[0] == made.expand("from_c:@from_c_set")
    assert set(steps[1:-2]) == {"aten::set_"} and steps[-2:] == ["cuLaunchKernel", "in_set"]


def only(things):
    (thing,) = things.items()
    return thing


def strip(paths):
    """Without the engine's own frame around a node and without PyTorch's namespace."""
    engine = re.compile(r"autograd::engine::evaluate_function: \S+ \((backward|accumulation)\) > "
                        r"(?=\S+ \(\1\))")
    return {engine.sub("", path).replace("torch::autograd::", ""): value
            for path, value in paths.items()}


def test_backward_lies_under_its_forward_operator(made):
    mine = "function:@function_apply > Mine > "
    assert strip(found(made, "gpu.time", "function")) == made.expand({
        f"{mine}forward:@mine_forward{LAUNCH}mine_forward": (1800, 3),
        f"{mine}MineBackward (backward) > backward:@mine_backward{LAUNCH}mine_backward": (2700, 3),
    })
    node = next(node for node in made.profile.kernels if node.symbol == "mine_backward"
                and made.steps(node, "function"))
    assert node.is_backward and not node.is_accumulation
    assert node.forward.name == "Mine"
    assert node.forward.inclusive["gpu.time"].sum == 4500


def test_backward_on_another_thread(made):
    mine = "elsewhere:@elsewhere_apply > Mine > "
    assert strip(found(made, "gpu.time", "elsewhere")) == made.expand({
        f"{mine}forward:@mine_forward{LAUNCH}mine_forward": (1200, 2),
        f"{mine}MineBackward (backward) > backward:@mine_backward{LAUNCH}mine_backward": (1800, 2),
    })
    # Two forward launches on the main thread, one backward launch on each of two others.
    assert tracks(made, "gpu.launches", "elsewhere") == {"thread": [1, 1, 2]}


def test_the_engines_own_work_belongs_to_its_node(made):
    """The engine lets go of a saved tensor after the node's backward has returned."""
    check(made, "engine", {
        "engine:@engine_saved > saved:@saved_mul > aten::mul > "
        f"autograd::engine::evaluate_function: MulBackward0 (backward){LAUNCH}released": (140, 2),
    })


def test_gradient_accumulation_is_apart(made):
    assert strip(found(made, "gpu.time", "accumulation")) == made.expand({
        f"accumulation:@accumulation_backward > AccumulateGrad (accumulation){LAUNCH}old_grad":
        (80, 4),
    })
    node = next(node for node in made.profile.kernels if node.symbol == "old_grad")
    assert node.is_accumulation and node.forward is None


def test_hooks_belong_to_the_line_that_called_backward(made):
    assert sum(count for _, count in found(made, "gpu.time", "hooks").values()) == 2
    for path, (time_ns, _) in found(made, "gpu.time", "hooks").items():
        steps = path.split(" > ")
        assert steps[0] == made.expand("hooks:@hooks_backward")
        assert all(step.endswith("(accumulation)") for step in steps[1:-3])
        assert steps[-3:] == [made.expand("hook:@hook"), "cuLaunchKernel", "hook"]
        assert time_ns == 30


def test_the_engines_thread_pool(made):
    """A backward pass within a backward pass, 70 deep: the engine goes on with the deepest in a thread
    of its own; each lies under the forward operator that was run within the one before."""
    kernels = found(made, "gpu.time", "pool")
    assert len(kernels) == 70 and set(kernels.values()) == {(10, 1)}
    deepest = max(kernels, key=len).split(" > ")
    assert deepest.count("NestedBackward (backward)") == 70
    assert deepest.count("Nested") == 70
    assert deepest.count(made.expand("backward:@nested_again")) == 69
    assert deepest[0] == made.expand("pool:@pool_backward")
    assert tracks(made, "gpu.launches", "pool") == {"thread": [9, 61]}


def test_copies_sets_memory_and_waiting_inside_an_operator(made):
    busy = "busy:@busy > mock::busy > busy_cpu:"
    pageable = f"{busy}@busy_copy > cuMemcpyHtoDAsync > copy pageable→device"
    check(made, "busy", {pageable: (1600, 2),
                         f"{busy}@busy_set > cuMemsetD8Async > set device": (100, 2)},
          "gpu.copy_time")
    check(made, "busy", {pageable: (8192, 2),
                         f"{busy}@busy_set > cuMemsetD8Async > set device": (1024, 2)},
          "gpu.copy_bytes")
    check(made, "busy", {f"{busy}@busy_memory > cuMemAlloc": (2000, 2)}, "gpu.alloc_bytes")
    check(made, "busy", {f"{busy}@busy_memory > cuMemFree": (2000, 2)}, "gpu.free_bytes")
    waits = found(made, "host.wait", "busy")
    assert set(waits) == set(made.expand({pageable: 0,
                                          f"{busy}@busy_wait > cuStreamSynchronize": 0}))
    waited, count = waits[made.expand(f"{busy}@busy_wait > cuStreamSynchronize")]
    assert count == 2 and waited >= 2 * 2000000


def test_totals_and_ledger(made):
    device = only_device(made)
    assert (device.name, device.uuid) == ("NVIDIA Mock GPU",
                                          "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae00")
    kernels = found(made, "gpu.time")
    assert device.kernels == sum(count for _, count in kernels.values()) == 115
    assert device.kernel_ns == sum(time_ns for time_ns, _ in kernels.values()) == 14123
    # One stream, never idle.
    # The ends are converted to the host's clock by a fitted line, which may round either by 1 ns.
    assert abs(device.busy_ns - (14123 + 1600 + 100)) <= 1
    assert abs(device.last_ns - device.first_ns - device.busy_ns) <= 1
    assert (device.copies, device.copy_ns, device.copy_bytes) == (2, 1600, 8192)
    assert (device.sets, device.set_ns, device.set_bytes) == (2, 100, 1024)
    assert device.late == 0
    backward = 3 + 2 + 2 + 70  # function, elsewhere, engine, pool
    ledger = made.ledger("gpu.kernel")
    assert ledger == {"received": 115, "attributed": 115, "no_python": 5, "forward": backward,
                      "accumulation": 4 + 2}  # and two in hooks
    assert made.ledger("backward")["hook"] >= 1  # PyTorch 1.13 runs a leaf's within AccumulateGrad
    check_ledger(made, "gpu.launch", received=119, attributed=119)
    check_ledger(made, "gpu.copy", received=2, attributed=2)
    check_ledger(made, "gpu.set", received=2, attributed=2)
    check_ledger(made, "gpu.sync", received=2, attributed=2)
    check_ledger(made, "gpu.allocation", received=2, attributed=2)
    assert not [row for row in made.profile.ledger if row.is_drop]
    assert "nothing was dropped" in made.done.stderr
    environment = made.profile.environment
    assert environment["cuda.driver"] == made.release
    assert environment["cuda.cupti"].startswith(VERSIONS[made.release])


def test_report_says_the_same(made):
    """Every grouping of the report has the profile's numbers."""
    recording = Recording(made.done, made.path)

    def rows(by, part, key=lambda row: row["name"]):
        return {key(row): (row[part]["gpu.time"]["sum"], row[part]["gpu.time"]["count"])
                for row in recording.rows(by) if "gpu.time" in row[part]}
    kernels = rows("kernel", "exclusive")
    assert kernels == {
        "outside(float*)": (514, 7), "thread": (44, 4), "native": (65, 5),
        "scale_first": (3000, 3), "scale_last": (900, 3), "erf": (1000, 2), "in_set": (120, 3),
        "mine_forward": (3000, 5), "mine_backward": (4500, 5), "released": (140, 2),
        "old_grad": (80, 4), "hook": (60, 2), "nested": (700, 70)}
    operators = rows("operator", "inclusive")
    for name, expected in {"mock::scale": (3900, 6), "aten::erf": (1000, 2), "Mine": (7500, 10),
                           "MineBackward": (4500, 5), "aten::mul": (140, 2), "Nested": (700, 70),
                           "aten::set_": (120, 3)}.items():
        assert operators[name] == expected, name
    own = rows("operator", "exclusive")
    assert own["Mine"] == (3000, 5) and "aten::mul" not in own and "Nested" not in own
    lines = rows("line", "exclusive", lambda row: (row["file"], row["line"]))
    for mark, expected in {"outside_loop": (500, 5), "outside_last": (14, 2),
                           "erf_kernel": (1000, 2), "mine_forward": (3000, 5),
                           "mine_backward": (4500, 5), "hook": (60, 2),
                           "nested": (700, 70), "saved_mul": (140, 2)}.items():
        assert lines[str(made.program), made.lines[mark]] == expected, mark
    assert rows("thread", "exclusive") == {"stream 7 on device 0": (14123, 115)}
    by_kernel = {row["name"]: row for row in recording.rows("kernel")}
    assert by_kernel["erf"]["user_line"] == made.lines["erf_kernel"]
    assert by_kernel["native"]["user_line"] is None
    launches = {row["name"]: row["exclusive"]["gpu.launches"]["sum"]
                for row in recording.rows("thread") if "gpu.launches" in row["exclusive"]}
    assert sum(launches.values()) == 115 + 2 + 2  # kernels, copies, sets
    device, = recording.report()["devices"]
    assert device["kernels"] == {"count": 115, "ns": 14123}
    assert device["copies"] == {"count": 2, "ns": 1600, "bytes": 8192}
    assert device["sets"] == {"count": 2, "ns": 100, "bytes": 1024}
    assert abs(device["busy_ns"] - 15823) <= 1 and device["idle_ns"] in (0, 1)
    assert device["busy_ns"] + device["idle_ns"] == device["span_ns"]


def test_cpu_side_goes_on_when_the_slot_is_taken(torch_python, tmp_path):
    made = run_program(torch_python, "mock_gpu.py", folder=tmp_path,
                       environment=mock_environment(NEWEST, "subscribe=39"))
    assert made.done.returncode == 0
    why = "GPU work is not recorded: CUPTI serves one tool at a time, and CUPTI for MockTool has it"
    assert why in made.done.stderr
    assert why in run_command(PLUMB, "report", made.path).stdout
    assert made.profile.kernels == [] and made.profile.devices == []
    scale, = made.profile.match("**/operator:mock::scale")
    assert scale.exclusive["op.calls"].sum == 3
    backward = made.expand("function:@function_apply > Mine > MineBackward (backward)")
    assert strip(made.tree("function"))[backward] == 3


# ---- the driver alone ----

@pytest.fixture(params=RELEASES)
def release(request):
    return request.param


def test_copies_and_sets(release, tmp_path):
    made = run_driver(tmp_path, "copies", release=release)
    expected = {  # line: call, what, bytes, time, times
        "pageable": ("cuMemcpyHtoDAsync", "copy pageable→device", 4096, 900, 1),
        "pinned": ("cuMemcpyHtoDAsync", "copy pinned→device", 100, 10, 1),
        "blocking": ("cuMemcpyDtoH", "copy device→pageable", 4, 20, 1),
        "device": ("cuMemcpyDtoDAsync", "copy device→device", 8, 30, 3),
        "peer": ("cuMemcpyPeerAsync", "copy device→peer device", 16, 40, 1),
        "managed": ("cuMemcpyDtoDAsync", "copy managed→device", 32, 50, 1),
        "array": ("cuMemcpyDtoDAsync", "copy device→array", 64, 60, 1),
        "first_set": ("cuMemsetD8Async", "set device", 512, 70, 1),
        "second_set": ("cuMemsetD8Async", "set device", 1024, 80, 1),
    }
    paths = {line: f"copies:@{line} > {call} > {what}"
             for line, (call, what, *_) in expected.items()}
    check(made, "copies", {paths[line]: (times * size, times)
                           for line, (_, _, size, _, times) in expected.items()}, "gpu.copy_bytes")
    check(made, "copies", {paths[line]: (times * time_ns, times)
                           for line, (_, _, _, time_ns, times) in expected.items()},
          "gpu.copy_time")
    # Only a copy that the call itself waited for: pageable memory, and the blocking call.
    waits = found(made, "host.wait", "copies")
    assert {path: count for path, (_, count) in waits.items()} == made.expand(
        {paths["pageable"]: 1, "copies:@blocking > cuMemcpyDtoH": 1})
    assert waits[made.expand(paths["pageable"])][0] >= 2000000
    assert waits[made.expand("copies:@blocking > cuMemcpyDtoH")][0] >= 3000000
    device, peer = made.profile.devices  # what the peer copy wrote to did nothing itself
    assert (peer.ordinal, peer.kernels, peer.copies, peer.sets) == (1, 0, 0, 0)
    assert (device.copies, device.copy_ns, device.copy_bytes) == (9, 1170, 4336)
    assert (device.sets, device.set_ns, device.set_bytes) == (2, 150, 1536)
    assert abs(device.busy_ns - (1170 + 150)) <= 1
    check_ledger(made, "gpu.copy", received=9, attributed=9)
    check_ledger(made, "gpu.set", received=2, attributed=2)


def test_copies_between_devices(release, tmp_path):
    """One context, whose copies to different devices stay apart, in values and in spans."""
    made = run_driver(tmp_path, "peers", release=release, options=("--trace",))
    path = "peers:@peers > cuMemcpyPeerAsync > copy device→peer device"
    check(made, "peers", {path: (500, 3)}, "gpu.copy_bytes")
    check(made, "peers", {path: (50, 3)}, "gpu.copy_time")
    exported = json.loads(run_command(PLUMB, "export", made.path, "--format", "json", "-o", "-").stdout)
    ordinals = [device["ordinal"] for device in exported["devices"]]

    def ends(row):
        return tuple(ordinals[row[key]] if key in row else None for key in ("from_device", "to_device"))
    values = {ends(row): (row["sum"], row["count"], row["context"]) for row in exported["context_values"]
              if row["metric"] == "gpu.copy_bytes"}
    context, = {context for _, _, context in values.values()}
    assert values == {(0, 1): (100, 1, context), (0, 2): (400, 2, context)}
    spans = sorted((ends(row), row["bytes"]) for row in exported["spans"] if row["context"] == context)
    assert spans == [((0, 1), 100), ((0, 2), 200), ((0, 2), 200)]
    assert {ends(row) for row in exported["spans"] if row["context"] != context} == {(None, None)}


def test_waiting(release, tmp_path):
    made = run_driver(tmp_path, "waits", release=release)
    waits = found(made, "host.wait", "waits")
    least = made.expand({"waits:@stream > cuStreamSynchronize": 2000000,
                         "waits:@context > cuCtxSynchronize": 3000000,
                         "waits:@event > cuEventSynchronize": 1000000})
    assert {path: count for path, (_, count) in waits.items()} == dict.fromkeys(least, 1)
    for path, ns in least.items():
        assert waits[path][0] >= ns
    check_ledger(made, "gpu.sync", received=3, attributed=3)


def test_device_memory(release, tmp_path):
    made = run_driver(tmp_path, "memory", release=release)
    check(made, "memory", {
        "memory:@alloc > cuMemAlloc": (1000, 1), "memory:@kept > cuMemAlloc": (8192, 2),
        "memory:@stream_ordered > cuMemAllocAsync": (300, 1)}, "gpu.alloc_bytes")
    # What was freed and never seen to be allocated has no size.
    check(made, "memory", {
        "memory:@free > cuMemFree": (1000, 1),
        "memory:@stream_ordered > cuMemFreeAsync": (300, 1)}, "gpu.free_bytes")
    assert made.ledger("gpu.allocation")["received"] == 4


def test_device_memory_over_time(release, tmp_path):
    """What the driver handed out, on the GPU whose streams the context has. It is no tensor's memory."""
    made = run_driver(tmp_path, "memory", release=release, options=["--memory"])
    track, = (track for track in made.profile.tracks if track.kind == "memory")
    assert (track.name, track.device) == ("driver", 0)
    bins = [(bin.min_bytes, bin.max_bytes, bin.last_bytes) for bin in made.profile.memory_series]
    assert max(most for _, most, _ in bins) == 8192 + 300 and bins[-1][2] == 8192
    assert {bin.max_reserved_bytes for bin in made.profile.memory_series} == {None}
    assert not made.profile.memory
    done = run_command(PLUMB, "report", made.path, "--by", "memory")
    assert done.returncode == 3


def test_device_memory_over_time_needs_the_option(release, tmp_path):
    made = run_driver(tmp_path, "memory", release=release)
    assert not made.profile.memory_series and "memory" not in {track.kind for track in made.profile.tracks}


def test_devices_and_streams(release, tmp_path):
    made = run_driver(tmp_path, "streams", release=release, scenario="devices=2")
    check(made, "streams", {
        f"streams:@first{LAUNCH}a": (1000, 1), f"streams:@second{LAUNCH}a": (1000, 1),
        f"streams:@other{LAUNCH}b": (1200, 2), f"streams:@second_device{LAUNCH}c": (300, 1),
        f"streams:@second_device_again{LAUNCH}c": (500, 1)})
    devices = Recording(made.done, made.path).report("--by", "kernel")["devices"]
    keys = ("kernels", "sets", "busy_ns", "idle_ns", "span_ns")
    assert [tuple(device[key] for key in keys) for device in devices] == [
        ({"count": 4, "ns": 3200}, {"count": 1, "ns": 400, "bytes": 512}, 2200, 300, 2500),
        ({"count": 2, "ns": 800}, {"count": 0, "ns": 0, "bytes": 0}, 500, 0, 500)]
    assert [d["uuid"][-2:] for d in devices] == ["00", "01"]
    streams = [(track.device, track.stream) for track in made.profile.tracks
               if track.kind == "stream"]
    assert sorted(streams) == [(0, 7), (0, 8), (0, 10), (1, 7), (1, 9)]


def test_configurations(release, tmp_path):
    made = run_driver(tmp_path, "shapes", release=release)
    database = sqlite3.connect(made.path)
    variants = database.execute(
        "SELECT f.name, f.display, v.grid_x, v.block_x, v.registers, v.static_shared_bytes, "
        "v.dynamic_shared_bytes, v.occupancy_ppm, v.count, v.time_ns, v.min_ns, v.max_ns "
        "FROM variants v JOIN contexts c ON c.id = v.context JOIN frames f ON f.id = c.frame "
        "ORDER BY f.name, v.time_ns DESC").fetchall()
    # 64 registers × 256 threads: 4 blocks, 32 of 64 warps. 128 threads of 32: 16 blocks, all warps.
    # One or two warps a block: 32 blocks a multiprocessor, 32 or 64 warps.
    assert variants == [
        ("_Z5shapePf", "shape(float*)", 80, 256, 64, 16384, 4096, 500000, 3, 3000, 1000, 1000),
        ("_Z5shapePf", "shape(float*)", 20, 128, 32, 0, 0, 1000000, 2, 1000, 500, 500),
        ("two", None, 1, 32, 16, 0, 0, 500000, 2, 20, 10, 10),
        ("two", None, 1, 64, 16, 0, 0, 1000000, 1, 10, 10, 10)]
    kernels = database.execute(
        "SELECT name, count, time_ns, min_ns, max_ns, blocks, warps, max_registers, "
        "max_shared_bytes, mean_occupancy_ppm FROM kernels ORDER BY name").fetchall()
    database.close()
    assert kernels == [
        ("_Z5shapePf", 5, 4000, 500, 1000, 3 * 80 + 2 * 20, 3 * 80 * 8 + 2 * 20 * 4, 64, 20480,
         pytest.approx(700000)),
        ("two", 3, 30, 10, 10, 3, 4, 16, 0, pytest.approx(2000000 / 3))]
    shape = next(node for node in made.profile.kernels if node.symbol == "_Z5shapePf")
    assert shape.exclusive["gpu.registers"][:4] == (None, 3, 64, 64)
    assert shape.exclusive["gpu.shared_bytes"].max == 20480
    variant, = shape.variants
    assert (variant.grid, variant.block) == ((80, 1, 1), (256, 1, 1))


def origins(made):
    database = sqlite3.connect(made.path)
    rows = database.execute("SELECT context, origin, reason FROM origins").fetchall()
    database.close()
    return rows


def test_replays_of_graphs(tmp_path):
    made = run_driver(tmp_path, "graph")
    check(made, "graph", {"graph:@replay > cuGraphLaunch > CUDA graph of 5 nodes": (1500, 3)})
    # At the launch, under what was captured: no operator there, so the driver's function and its line.
    check(made, "graph", {"graph:@replay > cuGraphLaunch > cuLaunchKernel > node": (15, 15)},
          "gpu.nodes")
    check_ledger(made, "gpu.graph", received=15, attributed=15)
    check_ledger(made, "gpu.replay", received=3, attributed=3)
    device = only_device(made)
    assert (device.kernels, device.kernel_ns) == (15, 1500)


def test_replays_of_an_older_release(tmp_path):
    made = run_driver(tmp_path, "graph", release="12.8")
    check(made, "graph", {"graph:@replay > cuGraphLaunch > cuLaunchKernel > node": (1500, 15)})


def test_nodes_of_graphs(tmp_path):
    made = run_driver(tmp_path, "graph", options=["--graphs=nodes"])
    # At the launch, under what was captured: no operator there, so the driver's function and its line.
    check(made, "graph", {"graph:@replay > cuGraphLaunch > cuLaunchKernel > node": (1500, 15)})
    place, = [node for node in made.profile.walk() if node.kind == "graph"]
    assert place.line == made.lines["capture"]
    assert place.file.endswith("mock_driver.py")
    origin, = [row for row in origins(made) if row[2] == "graph_capture"]
    assert origin[0] == place.id
    assert made.steps(made.node(origin[1]), "graph")[0] == f"graph:{made.lines['capture']}"
    check_ledger(made, "gpu.graph", received=15, attributed=15)
    check(made, "graph", {"graph:@replay > cuGraphLaunch": (3, 3)}, "gpu.replays")
    check_ledger(made, "gpu.launch", received=3, attributed=3)


def test_threads(release, tmp_path):
    made = run_driver(tmp_path, "threads", 500, release=release)
    check(made, "loop", {f"loop:@loop{LAUNCH}loop": (40000, 4000)})
    assert tracks(made, "gpu.launches", "loop") == {"thread": [500] * 8}
    assert abs(only_device(made).busy_ns - 40000) <= 1


# ---- faults ----

FAULTS = {  # scenario: launches of 60 with time, sources with what is not simply attributed
    "reverse=1": (60, {}),
    "flush_on_caller=1": (60, {}),
    "correlation=4294967290": (60, {}),
    "late=1": (60, {}),
    "lose=4": (45, {"gpu.launch": {"not_delivered": 15}}),
    "drop=4": (45, {"gpu.launch": {"cupti_dropped": 15}}),
    "foreign=5": (48, {"gpu.kernel": {"no_launch": 12}, "gpu.launch": {"not_delivered": 12}}),
    "duplicate=2": (60, {"gpu.kernel": {"duplicate": 30}}),
    "zero=5": (48, {"gpu.kernel": {"cupti_dropped": 12}}),
    "unknown=2": (60, {"gpu.buffer": {"unknown_layout": 30}}),
}


@pytest.mark.parametrize("scenario", FAULTS)
def test_faulty_records(scenario, tmp_path):
    """Records that come in another order, twice, never, or without a launch: what is there is right,
    and what is not is in the ledger, the report and the summary."""
    count, drops = FAULTS[scenario]
    made = run_driver(tmp_path, "loop", 60, scenario=scenario, options=("--flush-ms", "1000"))
    check(made, "loop", {f"loop:@loop{LAUNCH}loop": (10 * count, count)})
    reported = collections.defaultdict(dict)
    for row in made.profile.ledger:
        if row.is_drop and row.count:
            reported[row.source][row.fate] = row.count
    assert reported == drops
    said = {(row["source"], row["dropped"]) for row in
            Recording(made.done, made.path).report("--by", "kernel")["ledger"] if row["dropped"]}
    assert said == {(source, sum(fates.values())) for source, fates in drops.items()}
    assert ("nothing was dropped" in made.done.stderr) == (not drops)


def test_launches_that_fail_are_no_launches(tmp_path):
    made = run_driver(tmp_path, "loop", 60, scenario="fail=3")
    assert loop_kernels(made) == (40, 400)
    check_ledger(made, "gpu.launch", received=40, attributed=40)


def test_full_buffers_drop_and_count(tmp_path):
    made = run_driver(tmp_path, "threads", 5, scenario="buffer_records=1",
                      environment={"PLUMB_CUPTI_BUFFERS": "2"}, options=("--flush-ms", "60000"))
    launches, buffers = made.ledger("gpu.launch"), made.ledger("gpu.buffer")
    assert launches["received"] == 40
    assert launches["attributed"] + launches.get("cupti_dropped", 0) == 40
    assert buffers.get("buffers_capped", 0) == launches.get("cupti_dropped", 0)
    assert loop_kernels(made)[0] == launches["attributed"]
    # No buffer at all: everything is dropped, and everything is counted.
    made = run_driver(tmp_path, "loop", 6, environment={"PLUMB_CUPTI_BUFFERS": "0"},
                      name="none.plumb")
    assert loop_kernels(made) == (0, 0)
    assert made.ledger("gpu.launch") == {"received": 6, "cupti_dropped": 6}
    assert made.ledger("gpu.buffer")["buffers_capped"] == 6
    assert "buffers for GPU records were in use" in made.done.stderr


# ---- the slot ----

@pytest.mark.parametrize("release, who", [
    ("13.0", "CUPTI for MockTool"),  # from then on CUPTI tells the name
    ("12.1", "another tool in this process that does not give its name")])
def test_a_taken_slot_is_said(release, who, tmp_path):
    made = run_driver(tmp_path, "loop", 5, release=release, scenario="subscribe=39")
    assert f"GPU work is not recorded: CUPTI serves one tool at a time, and {who} has it" in made.done.stderr
    assert "run the program without that tool" in made.done.stderr


def test_a_program_that_profiles_itself(release, tmp_path):
    actions = ("repeat:3", "launch:a:10", "profile:begin", "repeat:4", "launch:b:10", "profile:end",
               "sleep:300", "repeat:5", "launch:c:10", "profile:leave")
    made = run_profiled(tmp_path, *actions, release=release)
    assert (made.done.returncode, made.done.stdout) == (
        0, "subscribe 0\nprofiled 4 kernels\nunsubscribe 0\n")
    assert [loop_kernels(made, name) for name in "abc"] == [(3, 30), (0, 0), (5, 50)]
    assert made.ledger("gpu.slot")["slot_given"] == 1
    assert "the program's own profiler held the CUPTI slot" in made.done.stderr


def test_keeping_the_slot(tmp_path):
    made = run_profiled(tmp_path, "launch:a:10", "profile:begin", "launch:b:10", "profile:end",
                        options=["--keep-cupti"])
    assert made.done.stdout == "subscribe 39\nprofiled 0 kernels\n"
    assert [loop_kernels(made, name) for name in "ab"] == [(1, 10), (1, 10)]
    assert "plumb kept CUPTI" in made.done.stderr


@pytest.mark.parametrize("option", ["--no-gpu", "--gpu=off"])
def test_leaving_the_gpu_alone(tmp_path, option):
    made = run_program(sys.executable, "mock_driver.py", "loop", folder=tmp_path,
                       environment=mock_environment(NEWEST), options=[option])
    assert made.done.returncode == 0
    assert "no GPU work (--no-gpu)" in made.done.stderr
    assert "nothing was captured" in made.done.stderr
    assert made.profile.kernels == []


# ---- ends ----

def test_a_child_forked_after_cuda_leaves_the_gpu_alone(release, tmp_path):
    made = run_driver(tmp_path, "fork", release=release)
    check(made, "fork", {f"fork:@before{LAUNCH}parent": (10, 1),
                         f"fork:@after{LAUNCH}parent": (10, 1)})
    assert loop_kernels(made, "child") == (0, 0)
    assert made.processes() == {"received": 1, "attributed": 1}


# ---- several processes, and parts of a run ----

@pytest.mark.parametrize("release", RELEASES)
def test_pauses_of_the_programs_own(release, tmp_path):
    made = run_driver(tmp_path, "pieces", release=release,
                      environment={"PYTHONPATH": str(ROOT / "python")})
    replays = release == "13.0"  # these records stay on: a graph may be made meanwhile
    assert made.done.stdout.splitlines() == [f"kinds {replays:d}", f"kinds {4 + replays}"]
    assert found(made, "gpu.time", "pieces") == made.expand({
        f"pieces:@recorded{LAUNCH}first": (1000, 10), f"pieces:@again{LAUNCH}second": (9000, 30)})
    assert loop_kernels(made, "paused") == (0, 0)
    check_ledger(made, "gpu.launch", received=40, attributed=40)
    kernels = made.ledger("gpu.kernel")
    assert kernels["received"] == 40 + kernels.get("paused", 0) and kernels["attributed"] == 40
    assert kernels.get("paused", 0) <= 11
    assert set(kernels) <= {"received", "attributed", "paused", "no_python"}
    assert not made.ledger("gpu.sync")


def test_recording_from_outside(tmp_path):
    made = run_driver(tmp_path, "paced", "3", options=["--start-after", "1", "--duration", "1"])
    launched = int(made.done.stdout.split()[1])
    count, _ = loop_kernels(made, "paced")
    assert 0 < count < launched * 2 / 3
    check_ledger(made, "gpu.launch", received=count, attributed=count)
    kernels = made.ledger("gpu.kernel")
    assert kernels["received"] == kernels["attributed"] + kernels.get("paused", 0)
    assert kernels["attributed"] == count
    assert 0.9e9 < int(made.profile.environment["plumb.recorded_ns"]) < 2e9


def test_processes_that_share_a_device(tmp_path):
    made = run_driver(tmp_path, "share")
    device = only_device(made)
    assert device.kernels == 8
    report = json.loads(run_command(PLUMB, "report", made.path, "--json").stdout)
    shown, = report["devices"]
    assert sorted((row["rank"], row["busy_ns"]) for row in shown["processes"]) == \
        [(0, 1000000000), (1, 1000000000)]
    # They were forked within far less than a second of each other.
    assert 0 < shown["contended_ns"] < 1000000000
    assert shown["busy_ns"] == 2000000000 - shown["contended_ns"] == shown["span_ns"]
    assert "shared by 2 processes (busy for 1.00 s by rank 0, 1.00 s by rank 1)" in made.done.stderr or \
        "shared by 2 processes (busy for 1.00 s by rank 1, 1.00 s by rank 0)" in made.done.stderr
    assert "several of them had work at once for" in made.done.stderr
    assert [(row.device, row.busy_ns) for row in made.profile.device_processes] == \
        [(0, 1000000000), (0, 1000000000)]
    assert device.contended_ns == shown["contended_ns"]
    assert [(rank["rank"], rank["gpu_busy_ns"]) for rank in report["ranks"]] == \
        [(0, 1000000000), (1, 1000000000)]


def test_kernels_of_collectives_are_named_by_them(tmp_path):
    made = run_driver(tmp_path, "nccl")
    by_name = {node.symbol: node.parent for node in made.profile.kernels}
    assert by_name.pop("_Z9ncclThingv").kind == "gpu_api"
    assert {(node.kind, node.name) for node in by_name.values()} == \
        {("collective", "AllReduce"), ("collective", "AllGather")}
    assert {node.parent.kind for node in by_name.values()} == {"gpu_api"}
    report = json.loads(run_command(PLUMB, "report", made.path, "--by", "collective",
                                    "--json").stdout)
    assert [(row["name"], row["exclusive"]["gpu.time"]["sum"]) for row in report["rows"]] == \
        [("AllReduce", 14), ("AllGather", 11)]
    assert report["outside"]["sum"] == 13


def start(folder, section, number, *options):
    """`plumb run` on a section that says "ready"; returns it then, and its profile's path."""
    path = folder / "run.plumb"
    command = [PLUMB, "run", "-o", path, *options, "--", sys.executable,
               PROGRAMS / "mock_driver.py", section, number]
    process = subprocess.Popen([str(word) for word in command], cwd=folder, text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE,
                               env=environment_for_programs(**mock_environment(NEWEST)))
    assert process.stdout.readline() == "ready\n"
    return process, path


def program_of(process):
    """The pid of the program that `plumb run` started."""
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return int(children[0])


def finished(process, path):
    stdout, stderr = process.communicate(timeout=60)
    done = subprocess.CompletedProcess([], process.returncode, stdout, stderr)
    return Made(done, PROGRAMS / "mock_driver.py", path.parent, path)


def test_sigterm_fetches_what_is_left(tmp_path):
    """Nothing has been delivered when the signal comes; all is in the profile."""
    process, path = start(tmp_path, "stay", 200, "--flush-ms", "60000")
    process.send_signal(signal.SIGTERM)
    made = finished(process, path)
    assert made.done.returncode == -signal.SIGTERM
    check(made, "loop", {f"loop:@loop{LAUNCH}loop": (2000, 200)})
    check_ledger(made, "gpu.launch", received=200, attributed=200)


def test_sigkill_loses_nothing_that_was_delivered(tmp_path):
    process, path = start(tmp_path, "stay_delivered", 200)
    program = program_of(process)
    run_command("kill", "-9", program)
    made = finished(process, path)
    assert made.done.returncode == -signal.SIGKILL
    check(made, "loop", {f"loop:@loop{LAUNCH}loop": (2000, 200)})


def test_sigkill_before_any_delivery_is_counted(tmp_path):
    process, path = start(tmp_path, "stay", 200, "--flush-ms", "60000")
    run_command("kill", "-9", program_of(process))
    made = finished(process, path)
    assert made.done.returncode == -signal.SIGKILL
    assert loop_kernels(made) == (0, 0)
    assert found(made, "gpu.launches", "loop") == made.expand(
        {"loop:@loop > cuLaunchKernel": (200, 200)})


def test_sigkill_of_plumb_leaves_all_to_settle(tmp_path):
    process, path = start(tmp_path, "stay_delivered", 200)
    program = program_of(process)
    process.kill()
    process.wait(60)
    run_command("kill", "-9", program)
    end = time.monotonic() + 30
    while pathlib.Path(f"/proc/{program}").exists() and time.monotonic() < end:
        time.sleep(0.01)
    folder, = tmp_path.glob(".plumb-*.run")
    done = run_command(PLUMB, "settle", folder, "-o", path)
    assert done.returncode == 0, done.stderr
    made = Made(done, PROGRAMS / "mock_driver.py", tmp_path, path)
    check(made, "loop", {f"loop:@loop{LAUNCH}loop": (2000, 200)})


# ---- doctor ----

def test_doctor_sees_the_driver(tmp_path):
    done = run_command(PLUMB, "doctor", env=mock_environment("12.8"))
    assert done.returncode == 0
    assert "for CUDA 12.8" in done.stdout
    assert "1 GPU (NVIDIA Mock GPU)" in done.stdout


def test_frames_that_come_back_at_the_same_addresses(tmp_path):
    """The walk of Python compares all frames: the innermost ones alone would look the same from each line."""
    made = run_program(sys.executable, "same_place.py", folder=tmp_path, environment=mock_environment(NEWEST))
    assert made.done.returncode == 0, made.done.stderr
    calls = collections.Counter()
    for path, (_, count) in found(made, "gpu.time").items():
        calls[path.split(LAUNCH)[0]] += count
    assert calls == {made.expand(path): count for path, count in {
        "outer:@outer > inner:@inner": 100,
        "other:@other_first > outer:@outer > inner:@inner": 50,
        "other:@other_inner > inner:@inner": 50,
        "other:@other_second > outer:@outer > inner:@inner": 50,
    }.items()}
