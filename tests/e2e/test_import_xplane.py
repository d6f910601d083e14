# SPDX-License-Identifier: Apache-2.0
"""XPlane: a real trace of JAX with figures known from elsewhere, and small files of our own for what it lacks."""
import gzip
import shutil

import pytest

from importing import TRACES, cut_everywhere, imported, message, refused

REAL = TRACES / "xplane" / "x02_mi300_jax_conv3d_legacy.xplane.pb"
STATS = {1: "correlation_id", 2: "kernel_details", 3: "memcpy_details", 4: "hlo_op", 5: "hlo_module",
         6: "tf_op", 7: "clock_rate", 8: "core_count", 9: "memory_size", 10: "jit_step",
         11: "profile_start_time", 12: "memset_details", 13: "device_type_string"}


def stat(name, value):
    """An int, a text, or ("ref", a number of STATS)."""
    number = next(key for key, text in STATS.items() if text == name)
    if isinstance(value, tuple):
        return message((1, number), (7, value[1]))
    return message((1, number), (5, value) if isinstance(value, str) else (3, value))


def event(name, offset_ps, duration_ps, *stats):
    return message((1, name), (2, offset_ps), (3, duration_ps), *((4, one) for one in stats))


def line(number, name, start_ns, *events):
    return message((1, number), (2, name), (3, start_ns), *((4, one) for one in events), (9, 0))


def plane(name, lines, names=(), stats=(), first=()):
    """NAMES: {number: name, or (name, display name, statistics)}. Lines come before names, as in real files."""
    fields = [*first, (2, name), *((3, one) for one in lines)]
    for number, text in dict(names).items():
        parts = text if isinstance(text, tuple) else (text, "", ())
        fields.append((4, message((1, number), (2, message(
            (1, number), (2, parts[0]), (4, parts[1]), *((5, one) for one in parts[2]))))))
    for number, text in STATS.items():
        fields.append((5, message((1, number), (2, message((1, number), (2, text))))))
    return message(*fields, *((6, one) for one in stats))


def space(*planes, host="node7"):
    return message(*((1, one) for one in planes), (4, host))


GPU = plane("/device:GPU:3", [
    line(13, "Stream #13(Compute)", 1000,
         event(1, 1_000_499, 2_000_000, stat("correlation_id", 7), stat("hlo_op", "fusion.1"),
               stat("hlo_module", ("ref", 10)), stat("tf_op", "jit(f)/jit(main)/dot_general:"),
               stat("kernel_details", "regs:32 static_shared:16 dynamic_shared:8 grid:4,2,1 "
                                      "block:256,1,1 occ_pct:62.5")),
         event(1, 3_000_500, 1_000_500, stat("correlation_id", 8),
               stat("kernel_details", "regs:2191500840 static_shared:32462 grid:1,1,1 block:64,1,1")),
         event(1, 5_000_000, 1_000, stat("kernel_details", "regs:38 shm:48 grid:160,1,1 block:1024,1,1"))),
    line(14, "Stream #14(MemcpyH2D)", 1000,
         event(2, 0, 500_000, stat("correlation_id", 9),
               stat("memcpy_details", "kind_src:pinned kind_dst:device size:4096 dest:0 async:1")),
         event(3, 600_000, 100_000, stat("memset_details", "kind:device size:512 async:1"))),
    line(100, "Steps", 1000, event(4, 0, 9_000_000)),
    line(101, "XLA Modules", 1000, event(4, 0, 9_000_000)),
    line(102, "XLA Ops", 1000, event(4, 0, 4_000_000), event(4, 4_000_000, 4_000_000)),
], {1: "gemm_kernel", 2: "MemcpyH2D", 3: "Memset", 4: "fusion.1"},
    [stat("clock_rate", 1_980_000), stat("core_count", 132), stat("memory_size", 150_000_000_000),
     stat("device_type_string", "H200")])
HOST = plane("/host:CPU", [
    line(-5, "python", 1000,
         event(1, 0, 9_000_000), event(2, 100_000, 8_000_000), event(3, 200_000, 300_000,
                                                                  stat("correlation_id", 7)),
         event(4, 600_000, 1_000), event(5, 700_000, 1_000), event(6, 800_000, 1_000, stat("hlo_op", "add.1"))),
    line(6, "sums", 1000, message((1, 2), (5, 40), (3, 1000))),
], {1: "$train.py:12 main", 2: "PjitFunction(f)#step=3,id=4#", 3: "cuLaunchKernel",
    4: "dense/MatMul:MatMul", 5: "jit_f:XLA GPU module", 6: "add"})
OTHER = plane("/host:metadata", [line(1, "?", 0, event(1, 0, 1))], {1: "jit_f(1)"})


def test_real(tmp_path):
    if not REAL.exists():
        pytest.skip("needs shared/traces")
    shutil.copy(REAL, tmp_path / "trace")
    made = imported(tmp_path, tmp_path / "trace")
    copies, kernels = made.report()["devices"]
    assert (copies["ordinal"], kernels["ordinal"]) == (0, 7)
    assert copies["copies"] == {"count": 53, "ns": 889_028, "bytes": 53 * 655_360}
    assert copies["kernels"]["count"] == 0
    assert kernels["kernels"] == {"count": 25, "ns": 3_586_493}
    assert len({node.name for node in made.profile.of_kind("kernel")}) == 5
    threads = [track for track in made.profile.tracks if track.kind == "thread"]
    assert len(threads) == 17
    assert sum(track.tid < 0 for track in threads) >= 8
    assert sum(track.kind == "stream" for track in made.profile.tracks) == 5
    assert sum(1 for track in threads for _ in made.profile.spans(track.id)) == 5946
    assert made.ledger("gpu.kernel") == {("received", None): 25, ("attributed", None): 25}
    assert made.profile.processes[0].host == "chi-mi300x-013.ord.vultr.cpe.ice.amd.com"
    assert made.profile.devices[1].multiprocessors == 304
    # ROCm's tracer writes registers that it never set.
    assert {variant.registers for node in made.profile.of_kind("kernel")
            for variant in node.variants} == {None}


def test_own(tmp_path):
    made = imported(tmp_path, space(OTHER, GPU, HOST))
    device, = made.report()["devices"]
    # 2 000 999 … 4 000 499 … to the nearest ns: 2000 to 4000, and 4001 (3 000 500 up) to 5001.
    assert device["kernels"] == {"count": 3, "ns": 2000 + 1000 + 1}
    assert device["copies"] == {"count": 1, "ns": 500, "bytes": 4096}
    assert device["sets"] == {"count": 1, "ns": 100, "bytes": 512}
    assert (device["busy_ns"], device["span_ns"]) == (3001 + 600, 5001)
    row = made.profile.devices[0]
    assert (row.ordinal, row.name, row.clock_khz, row.multiprocessors, row.memory_bytes) == \
        (3, "H200", 1_980_000, 132, 150_000_000_000)
    assert made.paths("gpu.time") == {
        ("main", "PjitFunction(f)", "cuLaunchKernel", "jit_step", "jit(f)/jit(main)/dot_general",
         "fusion.1", "gemm_kernel"): 2000,
        ("gemm_kernel",): 1001,
    }
    assert made.paths("gpu.copy_time") == {("copy pinned→device",): 500, ("set device",): 100}
    assert made.ledger("gpu.kernel") == {("received", None): 3, ("attributed", None): 1,
                                         ("unmatched", None): 2}
    assert made.ledger() == {("repeated", "Steps"): 1, ("repeated", "XLA Modules"): 1,
                             ("repeated", "XLA Ops"): 2, ("unused", "/host:metadata"): 1,
                             ("unused", "sums of events without times"): 1}
    kernel, = made.profile.match("**/cuLaunchKernel/**/gemm_kernel")
    variant, = kernel.variants
    assert (variant.grid, variant.block, variant.registers, variant.static_shared_bytes,
            variant.dynamic_shared_bytes, variant.occupancy_ppm) == \
        ((4, 2, 1), (256, 1, 1), 32, 16, 8, 625_000)
    main, = made.profile.match("main")
    assert (main.kind, main.file, main.line) == ("python", "train.py", 12)
    old, = (variant for node in made.profile.match("gemm_kernel") for variant in node.variants if variant.registers)
    assert (old.registers, old.grid, old.static_shared_bytes) == (38, (160, 1, 1), None)
    assert made.profile.match("gemm_kernel")[0].exclusive["gpu.shared_bytes"].max == 48
    assert {node.name: node.kind for node in made.profile.match("**/PjitFunction(f)/*")} == {
        "cuLaunchKernel": "gpu_api", "dense/MatMul:MatMul": "operator", "jit_f:XLA GPU module": "range",
        "add": "operator"}
    thread, = (track for track in made.profile.tracks if track.name == "python")
    assert thread.tid == -5


def test_tpu(tmp_path):
    """Without streams the operations are the work, but those within a loop are the loop's time."""
    tpu = plane("/device:TPU:1", [
        line(1, "Steps", 0, event(9, 0, 100_000)),
        line(2, "XLA Ops", 0, event(1, 0, 10_000), event(2, 10_000, 80_000), event(1, 10_000, 30_000),
             event(1, 50_000, 40_000), event(1, 95_000, 5_000)),
        line(3, "Async XLA Ops", 0, event(9, 0, 50_000)),
        line(4, "Something new", 0, event(9, 0, 50_000)),
    ], {1: ("%fusion.1 = f32[8] fusion(…)", "fusion.1", [stat("tf_op", "jit(f)/add:")]), 2: "while.2", 9: "3"})
    made = imported(tmp_path, space(tpu))
    device, = made.report()["devices"]
    assert device["kernels"] == {"count": 4, "ns": 10 + 30 + 40 + 5}
    assert (device["busy_ns"], device["span_ns"]) == (85, 100)
    assert made.paths("gpu.time") == {("jit(f)/add", "fusion.1"): 85}
    assert made.ledger() == {("repeated", "Steps"): 1, ("repeated", "Async XLA Ops"): 1,
                             ("repeated", "Something new"): 1, ("repeated", "XLA Ops that contain others"): 1}


def test_base(tmp_path):
    """Times from the beginning of profiling, which stands in a plane of its own; absolute ones stay."""
    begin = 1_757_516_928_109_201_518
    task = plane("Task Environment", [], (), [stat("profile_start_time", begin)])
    relative = plane("/host:CPU", [line(1, "t", 5, event(1, 1000, 1000))], {1: "f"})
    absolute = plane("/host:CPU", [line(1, "t", begin + 5, event(1, 1000, 1000))], {1: "f"})
    for one in (relative, absolute):
        made = imported(tmp_path, space(one, task))
        span, = made.profile.spans()
        assert (span.start_ns, span.end_ns) == (begin + 6, begin + 7)


def test_packed_and_order(tmp_path):
    """gzip; fields of a plane in any order; a file far larger than the window."""
    events = [event(1, 10_000 * n, 5_000) for n in range(200_000)]
    made = imported(tmp_path, gzip.compress(space(
        plane("/device:GPU:0", [line(1, "Stream #1", 0, *events)], {1: "k"}))))
    assert made.report()["devices"][0]["kernels"] == {"count": 200_000, "ns": 1_000_000}


@pytest.mark.parametrize("one", [
    event(1, (1 << 63) - 1, 1), event(1, 0, -1), event(1, 0, -(1 << 63)), event(77, 0, 1)])
def test_no_time(tmp_path, one):
    """No time, or no name: counted, and the rest is taken."""
    made = imported(tmp_path, space(plane("/device:GPU:0", [
        line(1, "Stream #1", 0, one, event(1, 0, 2000))], {1: "k"})))
    assert made.report()["devices"][0]["kernels"] == {"count": 1, "ns": 2}
    assert made.ledger() == {("backwards", None): 1}


def test_read_as_text(tmp_path):
    """A binary file that was decoded as UTF-8 and written again."""
    line = refused(tmp_path, space(OTHER, GPU, HOST).decode(errors="replace").encode())
    assert "U+FFFD" in line


@pytest.mark.parametrize("data, why", [
    (space(GPU)[:-40], "ends in the middle"),
    (message((1, message((2, "/host:CPU"), (3, message((4, b"\x08")))))), "event is damaged"),
    (message((1, message((2, "/host:CPU"), (4, b"\x12\x05\x08")))), "ends in the middle"),
    (message((1, message((2, "/host:CPU"), (3, b"\x0b")))), "unknown type"),
])
def test_damaged(tmp_path, data, why):
    line = refused(tmp_path, data)
    assert why in line and "byte " in line


def test_nothing(tmp_path):
    assert "nothing" in refused(tmp_path, space(plane("/host:CPU", [])), code=3)


def test_cut(tmp_path):
    data = space(plane("/device:GPU:3", [line(13, "Stream #13", 1000, event(
        1, 1_000, 2_000, stat("correlation_id", 7)))], {1: "k"}))
    assert len(cut_everywhere(tmp_path, data)) < 5
