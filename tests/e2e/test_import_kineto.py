# SPDX-License-Identifier: Apache-2.0
"""Traces of PyTorch's profiler: exact figures of published traces (where they lie beside the project), and
every dialect in small."""
import bisect
import collections
import gzip
import json
import lzma
import math
import os
import random
import shutil
import sqlite3
import subprocess

import pytest
from conftest import PLUMB, run_command
from importing import TRACES, imported, refused, report, write
from kineto_traces import call, document, event, kernel

import plumb as plumb_package

FILES = sorted(TRACES.glob("kineto/k*.json.gz"))
needs_traces = pytest.mark.skipif(not FILES, reason="the published traces are not beside the project")


def fates(data, source):
    """{reason or None: count} of a source of the ledger."""
    found = collections.Counter()
    for row in data["ledger"]:
        if row["source"] == source:
            found["received"] += row["received"] or 0
            found["attributed"] += row["attributed"] or 0
            for fate in row["fates"]:
                found[fate["reason"]] += fate["count"]
    return found


# ---- published traces ----


def oracle(trace):
    return json.loads((TRACES / "oracle" / trace.name.replace(".json.gz", ".json")).read_text())


@needs_traces
@pytest.mark.parametrize("trace", FILES, ids=lambda path: path.name[:3])
def test_known_figures(tmp_path, trace):
    known = oracle(trace)
    path = imported(tmp_path, trace)
    data = report(path, *["--by", "kernel"] * bool(known["n_kernel"]))
    devices = data["devices"]
    assert len(devices) == (1 if known["n_kernel"] else 0)
    if not devices:
        return
    (device,) = devices
    assert device["kernels"] == {"count": known["n_kernel"], "ns": known["kernel_time_ns"]}
    bytes_known = sum(known["memcpy_bytes"].values()) or None  # k14's copies do not say
    assert device["copies"] == {"count": known["n_memcpy"], "ns": known["memcpy_time_ns"],
                                "bytes": bytes_known if known["n_memcpy"] else 0}
    assert (device["sets"]["count"], device["sets"]["ns"]) == (known["n_memset"], known["memset_time_ns"])
    assert device["busy_ns"] == known["gpu_busy_union_ns"]
    assert device["span_ns"] == known["gpu_span_ns"]
    assert device["idle_ns"] == known["gpu_idle_ns"]
    assert device["name"] == known["gpu_name"]
    assert {device["ordinal"]} == {int(stream.split(":")[0]) for stream in known["gpu_streams"]}
    assert len({row["name"] for row in data["rows"]}) <= known["unique_kernel_names"]
    with sqlite3.connect(path) as database:
        names = database.execute("SELECT count(DISTINCT name) FROM frames WHERE kind = 'kernel'").fetchone()
        assert names == (known["unique_kernel_names"],)
    for row, most in zip(data["rows"], known["top5_kernels"]):
        assert row["name"].startswith(most["name"].split("<")[0].split("(")[0])
        assert (row["exclusive"]["gpu.time"]["sum"], row["exclusive"]["gpu.time"]["count"]) == (
            most["total_ns"], most["count"])
    work = [fates(data, source) for source in ("gpu.kernel", "gpu.copy", "gpu.set")]
    assert sum(w["attributed"] for w in work) == known["gpu_events_matched_to_launch"]
    assert sum(w["received"] for w in work) == known["n_kernel"] + known["n_memcpy"] + known["n_memset"]
    assert data["processes"][0]["rank"] == known.get("rank")
    if known["n_comm_kernels"]:
        (overlap,) = data["overlap"]
        assert overlap["communication_ns"] == known["comm_union_ns"]
        assert overlap["compute_ns"] == known["comp_union_ns"]
        assert overlap["hidden_ns"] == known["comm_comp_overlap_ns"]
        assert round(100 * overlap["ratio"], 2) == known["comm_comp_overlap_pct_of_comm"]
    else:
        assert data["overlap"] == []


@needs_traces
@pytest.mark.parametrize("trace", FILES, ids=lambda path: path.name[:3])
def test_known_steps(tmp_path, trace):
    """The steps' times, and how many kernels were launched in each."""
    known = oracle(trace)
    profile = plumb_package.Profile(imported(tmp_path, trace))
    steps, calls, kernels = [], {}, []
    nodes = {node.id: node for node in profile.walk()}
    for span in profile.spans():
        node = nodes[span.context]
        if node.kind == "range" and node.name == "ProfilerStep":
            steps.append((span.start_ns, span.end_ns))
        elif node.kind == "gpu_api" and span.correlation:
            calls[span.correlation] = span.start_ns
        elif node.kind == "kernel":
            kernels.append(span.correlation)
    steps.sort()
    wanted = sorted((step["start_ns"], step["dur_ns"]) for step in known["profiler_steps"])
    assert [end - start for start, end in steps] == [length for _, length in wanted]
    if wanted:  # known starts are without the base
        assert len({start - first for (start, _), (first, _) in zip(steps, wanted)}) == 1
        numbers = profile.environment["profiler.steps"].split()
        assert sorted(map(int, numbers)) == sorted(step["n"] for step in known["profiler_steps"])
    found = collections.Counter()
    for correlation in kernels:
        at = bisect.bisect_right(steps, (calls.get(correlation, -1), float("inf"))) - 1
        if at >= 0 and calls.get(correlation, -1) < steps[at][1]:
            found[at] += 1
    order = {str(step["n"]): at for at, step in
             enumerate(sorted(known["profiler_steps"], key=lambda step: step["start_ns"]))}
    assert found == {order[number]: count for number, count in known.get("kernels_per_step_by_launch", {}).items()
                     if number in order}


@needs_traces
@pytest.mark.parametrize("name", ["k01", "k03", "k04", "k08"])
def test_figures_of_hta(tmp_path, name):
    (trace,) = [path for path in FILES if path.name.startswith(name)]
    (theirs,) = json.loads((TRACES / "oracle" / "hta" / f"{name}.json").read_text()).values()
    path = imported(tmp_path, trace)
    compat = report(path, "--compat", "hta")["compat"]
    assert compat["tool"] == "hta"
    for mode, key in (("default", "default"), ("incl_last", "include_last_profiler_step")):
        (known,), (overlap,), (own,) = (theirs[mode]["temporal_breakdown"], theirs[mode]["overlap"],
                                        compat[key])
        for what in ("idle", "compute", "non_compute", "kernel"):
            assert own[f"{what}_time_us"] == known[f"{what}_time(us)"]
        if overlap["comp_comm_overlap_pctg"] != overlap["comp_comm_overlap_pctg"]:
            assert own["comp_comm_overlap_pctg"] is None
        else:
            assert round(own["comp_comm_overlap_pctg"], 2) == overlap["comp_comm_overlap_pctg"]
    assert "HTA" in run_command(PLUMB, "report", path, "--compat", "hta").stdout


def test_hta_of_calls_with_one_number(tmp_path):
    """Thousands of calls have one correlation: work counts by the first of them, which was before the last step."""
    events = [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{i}", "pid": 1, "tid": 1, "ts": 100000 * i,
               "dur": 99999} for i in range(2)]
    for i in reversed(range(20000)):
        events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 10 * i,
                       "dur": 4, "args": {"correlation": 7 if i != 19000 else 8}})
    for number, at in ((7, 150000), (8, 190010)):  # the second was launched in the last step
        events.append({"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": at, "dur": 30,
                       "args": {"device": 0, "stream": 7, "correlation": number}})
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    compat = report(path, "--compat", "hta")["compat"]
    assert [one["kernel_time_us"] for one in compat["default"]] == [30]
    assert [one["kernel_time_us"] for one in compat["include_last_profiler_step"]] == [190040 - 150000]


def hta_figures(events, include_last):
    """What HTA computes, with its own arithmetic: doubles of µs, rounded inwards."""
    def rounded(event):
        return math.ceil(event["ts"]), math.floor(event["ts"] + event["dur"])

    steps = [rounded(event) for event in events if event["name"].startswith("ProfilerStep#")]
    limit = (max(end for _, end in steps) + 1 if include_last else max(start for start, _ in steps))
    launched = {event["args"]["correlation"] for event in events
                if event["cat"] == "cuda_runtime" and rounded(event)[0] < limit}
    work = sorted(rounded(event) for event in events
                  if event["cat"] == "kernel" and event["args"]["correlation"] in launched)
    busy, until = 0, work[0][0]
    for start, end in work:
        busy += max(0, end - max(start, until))
        until = max(until, end)
    whole = until - work[0][0]
    return whole, whole - busy


@pytest.mark.parametrize("gpu_steps", [False, True])
@pytest.mark.parametrize("base_us", [0, 4458676962000.123, 1700000000123456.789])
@pytest.mark.parametrize("base", [0, 1700000000000000000])
def test_hta_computes_with_doubles(tmp_path, base_us, gpu_steps, base):
    """Times since 1970 lose a quarter of a µs, and a ProfilerStep on a GPU ends the window later."""
    if base and base_us > 1e15:
        pytest.skip("such times need no base")
    events, at, chance = [], 0.0, random.Random(7)
    for i in range(300):
        at += chance.uniform(3, 12)
        events += [{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
                    "ts": round(base_us + at, 3), "dur": 2.5, "args": {"correlation": 1000 + i}},
                   {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": round(base_us + at + 2.7, 3),
                    "dur": round(chance.uniform(2, 9), 3), "args": {"device": 0, "stream": 7, "correlation": 1000 + i}}]
        if i % 100 == 99:
            for category, tid, late in (("user_annotation", 1, 0), ("gpu_user_annotation", 7, 300.5)):
                if gpu_steps or tid == 1:
                    events.append({"ph": "X", "cat": category, "name": f"ProfilerStep#{i // 100}", "pid": 1 - tid // 7,
                                   "tid": tid, "ts": round(base_us + at - 500 + late, 3), "dur": 490.0})
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [], "baseTimeNanoseconds": base,
                                "traceEvents": events}))
    compat = report(path, "--compat", "hta")["compat"]
    for key, include in (("default", False), ("include_last_profiler_step", True)):
        (own,) = compat[key]
        assert (own["kernel_time_us"], own["idle_time_us"]) == hta_figures(events, include)


@needs_traces
def test_ranks_of_a_job(tmp_path):
    """Two files, two ranks; a rank that a file names stays."""
    traces = [path for path in FILES if path.name[:3] in ("k03", "k08")]
    data = report(imported(tmp_path, *traces))
    assert sorted(process["rank"] for process in data["processes"]) == [0, 1]
    assert [overlap["rank"] for overlap in data["overlap"]] == [0, 1]
    assert len(data["devices"]) == 2


# ---- in small ----


SMALL = document(
    event("user_annotation", "ProfilerStep#3", 0, 100),
    event("cpu_op", "aten::linear", 10, 30),
    event("cpu_op", "aten::addmm", 12, 20),
    call(1, 15), kernel(1, 40, 5.5, grid=[2, 3, 4], block=[32, 1, 1], **{
        "registers per thread": 16, "shared memory": 48}),
    call(2, 50, "cudaMemcpyAsync"),
    event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 60, 4, 0, 7,
          args={"device": 0, "stream": 7, "correlation": 2, "bytes": 4096}),
    event("cuda_runtime", "cudaDeviceSynchronize", 70, 20, args={"correlation": 3}),
    event("gpu_memset", "Memset (Device)", 62, 3, 0, 9, args={"device": 0, "stream": 9, "bytes": 64}),
)


def tree(path):
    """{path of names: {metric: sum}} of what has a value."""
    profile = plumb_package.Profile(path)
    found = {}
    for node in profile.walk():
        values = {name: value.mean if value.sum is None else value.sum
                  for name, value in node.exclusive.items()}
        if values:
            found[" > ".join(part.name for part in list(node.ancestors)[::-1][1:] + [node])] = values
    return found


def test_small(tmp_path):
    path = imported(tmp_path, SMALL)
    found = tree(path)
    step = "ProfilerStep > aten::linear"
    assert found[step] == {"op.calls": 1, "op.time": 10000, "op.duration": 30000}
    assert found[step + " > aten::addmm"] == {"op.calls": 1, "op.time": 20000, "op.duration": 20000}
    launch = step + " > aten::addmm > cudaLaunchKernel"
    assert found[launch] == {"gpu.launches": 1}
    assert found[launch + " > k"] == {"gpu.time": 5500, "gpu.blocks": 24, "gpu.registers": 16,
                                      "gpu.shared_bytes": 48}
    assert found["ProfilerStep > cudaMemcpyAsync > copy pinned→device"] == {
        "gpu.copy_time": 4000, "gpu.copy_bytes": 4096}
    assert found["ProfilerStep > cudaDeviceSynchronize"] == {"host.wait": 20000}
    assert found["set device"] == {"gpu.copy_time": 3000, "gpu.copy_bytes": 64}
    data = report(path)
    assert data["devices"][0]["busy_ns"] == 5500 + 5000
    assert fates(data, "gpu.set")["the file has no launch for it; outside any call"] == 1
    assert data["run"]["wall_ns"] == 100000
    (variant,) = [v for k in plumb_package.Profile(path).kernels for v in k.variants]
    assert (variant.grid, variant.block, variant.registers) == ((2, 3, 4), (32, 1, 1), 16)


def zstd(data):
    if not shutil.which("zstd"):
        pytest.skip("there is no zstd here")
    return subprocess.run(["zstd", "-c"], input=data, check=True, stdout=subprocess.PIPE).stdout


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress, zstd,
                                  lambda data: gzip.compress(data[:99]) + gzip.compress(data[99:])],
                         ids=["plain", "gzip", "xz", "zstd", "gzips"])
def test_packings(tmp_path, pack):
    """Whatever the file is called."""
    assert tree(imported(tmp_path, write(tmp_path, SMALL, "x", pack)))["set device"]


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress], ids=["gzip", "xz"])
def test_packed_and_cut(tmp_path, pack):
    whole = pack(json.dumps(SMALL).encode())
    for at in range(8, len(whole) - 1):
        (tmp_path / "x").write_bytes(whole[:at])
        assert "x: " in refused(tmp_path, tmp_path / "x")


def test_other_verbs_take_it(tmp_path):
    trace = write(tmp_path, SMALL)
    assert report(trace, "--by", "kernel")["rows"][0]["name"] == "k"
    assert "aten::addmm" in run_command(PLUMB, "export", trace, "--format", "folded").stdout


def test_dialect_of_2021(tmp_path):
    """Categories with capitals, streams as texts, whole µs, steps among the operators."""
    path = imported(tmp_path, document(
        event("Operator", "ProfilerStep#7", 0, 100), event("Operator", "aten::mm", 1, 9),
        call(4, 2, category="Runtime"), kernel(4, 20, 3, category="Kernel", tid="stream 7"),
        {"ph": "s", "cat": "async", "id": 4, "pid": 5, "tid": 6, "ts": 2, "name": "launch"},
        event("Memcpy", "Memcpy DtoH (Device -> Pageable)", 30, 1, 0, "stream 8", args={"bytes": 5})))
    found = tree(path)
    assert found["ProfilerStep > aten::mm > cudaLaunchKernel > k"]["gpu.time"] == 3000
    assert found["copy device→pageable"] == {"gpu.copy_time": 1000, "gpu.copy_bytes": 5}
    tracks = plumb_package.Profile(path).tracks
    assert sorted(track.stream for track in tracks if track.kind == "stream") == [7, 8]


def test_copies_between_devices(tmp_path):
    """Copies to two devices are one context and two values; the export of our own says it again."""
    def copy(correlation, start, to):
        return event("gpu_memcpy", "Memcpy PtoP (Device -> Device)", start, 4, 0, 7, args={
            "fromDevice": 0, "inDevice": 0, "toDevice": to, "stream": 7, "correlation": correlation, "bytes": 100 * to})
    path = imported(tmp_path, document(call(1, 1, "cudaMemcpyPeerAsync"), copy(1, 10, 1), call(2, 4, "cudaMemcpyPeerAsync"),
                                       copy(2, 20, 2), call(3, 7, "cudaMemcpyPeerAsync"), copy(3, 30, 0)))
    assert tree(path)["cudaMemcpyPeerAsync > copy device→peer device"] == {"gpu.copy_time": 12000, "gpu.copy_bytes": 300}

    def ends(path):
        with sqlite3.connect(path) as database:
            return database.execute(
                "SELECT f.ordinal, t.ordinal, v.sum FROM context_values v JOIN metrics m ON m.id = v.metric "
                "LEFT JOIN devices f ON f.id = v.from_device LEFT JOIN devices t ON t.id = v.to_device "
                "WHERE m.name = 'gpu.copy_bytes' ORDER BY v.sum").fetchall()
    assert ends(path) == [(None, None, 0), (0, 1, 100), (0, 2, 200)]
    again = tmp_path / "again.trace.json"
    assert run_command(PLUMB, "export", path, "-o", again).returncode == 0
    assert ends(imported(tmp_path, again, name="again")) == ends(path)


def test_times_are_decimal(tmp_path):
    """19 digits and three behind the point: more than a double holds."""
    text = json.dumps(document(kernel(1, 1, 1, "a"), kernel(2, 1, 1, "b"), kernel(3, 1, 1, "c")))
    for start, length in (("1775078550000123.457", "0.001"), ("1775078550000124.4565", "1e-3"),
                          ("177507855000012.5e1", "0.0005")):
        text = text.replace('"ts": 1, "dur": 1', f'"ts": {start}, "dur": {length}', 1)
    profile = plumb_package.Profile(imported(tmp_path, text))
    names = {node.id: node.name for node in profile.walk()}
    assert {names[s.context]: (s.start_ns, s.end_ns - s.start_ns) for s in profile.spans()} == {
        "a": (1775078550000123457, 1), "b": (1775078550000124457, 1), "c": (1775078550000125000, 1)}


@pytest.mark.parametrize("first", [True, False])
def test_base_of_times(tmp_path, first):
    """It may stand before the events or after them."""
    base = {"baseTimeNanoseconds": 1_700_000_000_000_000_000}
    data = document(kernel(1, 2.5, 1))
    data = {**base, **data} if first else {**data, **base}
    (span,) = plumb_package.Profile(imported(tmp_path, data)).spans()
    assert span.start_ns == 1_700_000_000_000_002_500


def test_graph_replay(tmp_path):
    """Hundreds of kernels have the number of one call."""
    path = imported(tmp_path, document(
        call(9, 1, "cudaGraphLaunch"), *[kernel(9, 10 + i, 0.5, f"k{i % 3}") for i in range(300)]))
    found = tree(path)
    assert found["cudaGraphLaunch"] == {"gpu.replays": 1}
    assert [found[f"cudaGraphLaunch > k{i}"]["gpu.time"] for i in range(3)] == [50000] * 3


def test_driver_call_within_runtime_call(tmp_path):
    path = imported(tmp_path, document(
        call(1, 1, duration=9), call(1, 3, "cuLaunchKernel", category="cuda_driver"), kernel(1, 20, 1)))
    assert "cudaLaunchKernel > cuLaunchKernel > k" in tree(path)


def test_backward_hangs_under_forward(tmp_path):
    """On another thread, with what the engine does around it."""
    flow = {"cat": "fwdbwd", "name": "fwdbwd", "id": 3, "pid": 5}
    path = imported(tmp_path, document(
        event("cpu_op", "aten::mm", 1, 9),
        {**flow, "ph": "s", "tid": 6, "ts": 1},
        event("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 50, 30, tid=8),
        event("cpu_op", "MmBackward0", 52, 20, tid=8), call(5, 55, tid=8), kernel(5, 90, 2),
        {**flow, "ph": "f", "tid": 8, "ts": 52, "bp": "e"},
        {**flow, "ph": "f", "id": 77, "tid": 8, "ts": 52, "bp": "e"}))
    profile = plumb_package.Profile(path)
    (node,) = profile.kernels
    assert [part.name for part in list(node.ancestors)[::-1][1:]] == [
        "aten::mm", "autograd::engine::evaluate_function: MmBackward0", "MmBackward0", "cudaLaunchKernel"]
    assert node.parent.is_backward and not profile.match("operator:aten::mm")[0].is_backward


def test_python_and_modules(tmp_path):
    path = imported(tmp_path, document(
        event("python_function", "/home/u/train.py(12): <module>", 0, 100),
        event("python_function", "nn.Module: Linear_3", 1, 90),
        event("python_function", "a (copy)/b.py(7): forward", 2, 80),
        event("python_function", "<built-in function linear>", 3, 70),
        event("cpu_op", "aten::linear", 4, 60)))
    chain = list(plumb_package.Profile(path).operators)[0]
    parts = [(part.kind, part.name, part.file, part.line) for part in list(chain.ancestors)[::-1][1:]]
    assert parts == [("python", "<module>", "/home/u/train.py", 12), ("module", "Linear_3", "Linear", None),
                     ("python", "forward", "a (copy)/b.py", 7),
                     ("python", "<built-in function linear>", None, None)]


def test_collectives(tmp_path):
    """By the kernel's name, or by what Kineto says of it."""
    path = imported(tmp_path, document(
        kernel(1, 0, 100, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
        kernel(2, 200, 50, "deep_ep_dispatch", **{"Collective name": "alltoall"}),
        kernel(3, 60, 30, "gemm", stream=8), distributedInfo={"backend": "nccl", "rank": 3, "world_size": 8}))
    data = report(path, "--by", "collective")
    assert {row["name"] for row in data["rows"]} == {"AllReduce", "AlltoAll"}
    assert data["overlap"] == [{"rank": 3, "communication_ns": 150000, "compute_ns": 30000,
                                "hidden_ns": 30000, "ratio": 0.2, "from": "spans"}]
    assert "20.0 % of it hidden" in run_command(PLUMB, "report", path).stdout


def test_ranks_with_the_same_overlap_have_one_line(tmp_path):
    """(communication, hidden) by rank in µs; the lines that say so."""
    def overlaps(*ranks):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        paths = []
        for rank, (communication, hidden) in ranks:
            paths.append(folder / f"rank{rank}.json")
            paths[-1].write_text(json.dumps(document(
                kernel(1, 0, communication, "ncclDevKernel_AllReduce_Sum_f32_RING_LL()"),
                kernel(2, communication - hidden, 50, "gemm", stream=8),
                distributedInfo={"backend": "nccl", "rank": rank, "world_size": 16})))
        text = run_command(PLUMB, "report", imported(folder, *paths)).stdout
        lines = [line.strip().removeprefix("overlap").strip() for line in text.splitlines()]
        return [line.removesuffix(" behind computation") for line in lines if line.endswith("behind computation")]

    assert overlaps((0, (100, 20))) == ["rank 0: 100 µs of communication, 20.0 % of it hidden"]
    assert overlaps(*enumerate([(100, 20)] * 4)) == ["ranks 0 to 3: 100 µs of communication, 20.0 % of it hidden"]
    assert overlaps((0, (100, 20)), (1, (50, 10)), (2, (100, 40)), (5, (200, 40))) == [
        "ranks 0, 1, 5: 50.0 µs (rank 1) to 200 µs (rank 5) of communication, 20.0 % of it hidden",
        "rank 2: 100 µs of communication, 40.0 % of it hidden"]
    assert overlaps(*((2 * rank, (100, 20)) for rank in range(10))) == [
        "ranks 0, 2, 4, 6, 8, 10, 12, 14 and 2 more: 100 µs of communication, 20.0 % of it hidden"]


def test_merged_ranks(tmp_path):
    """One file of two processes: GPU work is on the device of the one that launched it."""
    path = imported(tmp_path, document(
        call(1, 1, pid=10), call(2, 1, pid=20), kernel(1, 5, 1, "a"), kernel(2, 5, 2, "b")))
    data = report(path)
    assert {(d["processes"][0]["pid"], d["kernels"]["ns"]) for d in data["devices"]} == {(10, 1000), (20, 2000)}


def test_names_of_any_kind(tmp_path):
    name = "</script><b>\t\n\x1b[31m\"é\\\U0001f600"
    path = imported(tmp_path, document(kernel(1, 1, 1, name), kernel(2, 3, 1, "\ud800")))
    assert {k.name for k in plumb_package.Profile(path).kernels} == {name, "\ufffd"}
    assert "\x1b" not in run_command(PLUMB, "report", path, "--by", "kernel").stdout


def test_what_is_not_used_is_counted(tmp_path):
    data = report(imported(tmp_path, document(
        kernel(1, 1, 1), event("overhead", "Lazy", 1, 2), event("gpu_user_annotation", "x", 1, 2, 0, 7),
        {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "ts": 1, "pid": 5, "tid": 6},
        {"ph": "X", "cat": "cpu_op", "name": "no time", "pid": 5, "tid": 6, "ts": 3},
        event("cpu_op", "backwards", 9, -3))))
    assert fates(data, "import") == {"received": 0, "attributed": 0, "plumb does not show this kind": 2,
                                     "a second record of the same thing": 1,
                                     "it ends before it begins, or has no time": 2}


def memory(at, allocated, reserved=None, device=0, kind=1, pid=5, **more):
    return {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "ts": at, "pid": pid, "tid": pid, "args": {
        "Total Allocated": allocated, "Bytes": 8, "Addr": 4096, "Device Id": device, "Device Type": kind, "Ev Idx": 3,
        **({} if reserved is None else {"Total Reserved": reserved}), **more}}


def series_of(path):
    """{name of the memory: its bins, from its start on}"""
    found = {}
    with plumb_package.Profile(path) as made:
        for row in made.memory_series:
            track = made.tracks[row.track]
            found.setdefault((track.name, track.device is None), []).append(
                (row.start_ns, row.width_ns, row.min_bytes, row.max_bytes, row.last_bytes, row.max_reserved_bytes, row.last_reserved_bytes))
    return found


def test_memory_over_time(tmp_path):
    """Bins of 4 ms with the exact least and most; without an event all stays as it was. Events may come in any order."""
    events = [memory(1000, 100, 1000), memory(2000, 300, 1000), memory(3000, 50, 1000), memory(15000, 70, 500), memory(14000, 60, 2000),
              memory(1500, 8, 0, device=-1, kind=0), memory(1600, 0, 0, device=-1, kind=0), memory(1000, 7, device=1)]
    path = imported(tmp_path, {**document(call(1, 1), kernel(1, 20, 1), *events), "baseTimeNanoseconds": 5000})
    found, ms = series_of(path), 1000000
    first = 1000 * 1000 + 5000
    assert found[("cuda:0", False)] == [
        (first, 4 * ms, 50, 300, 50, 1000, 1000), (first + 4 * ms, 4 * ms, 50, 50, 50, 1000, 1000), (first + 8 * ms, 4 * ms, 50, 50, 50, 1000, 1000),
        (first + 12 * ms, 4 * ms, 50, 70, 70, 2000, 500)]
    assert found[("CPU", True)] == [(first + ms // 2, 4 * ms, 0, 8, 0, None, None)]
    assert found[("cuda:1", False)] == [(first, 4 * ms, 7, 7, 7, None, None)]
    assert fates(report(path), "import").get("plumb does not show this kind", 0) == 0


def test_memory_of_a_long_trace_has_wider_bins(tmp_path):
    events = [memory(1000 * number, 1000 + number % 7, 5000) for number in range(10000)]  # 10 s
    (bins,) = series_of(imported(tmp_path, document(call(1, 1), kernel(1, 20, 1), *events))).values()
    assert {width for _, width, *_ in bins} == {16000000} and len(bins) == 625
    assert [start for start, *_ in bins] == [16000000 * number for number in range(625)]
    assert {(least, most) for _, _, least, most, *_ in bins} == {(1000, 1006)}
    assert bins[-1][4] == 1000 + 9999 % 7


def test_memory_that_cannot_be_is_counted(tmp_path):
    events = [memory(1, -1), memory(1, 5, device=-1), {**memory(1, 5), "args": {}}, {**memory(1, 5), "ts": "x"}, memory(2, 5, kind="CUDA")]
    path = imported(tmp_path, document(call(1, 1), kernel(1, 20, 1), *events))
    assert series_of(path) == {}
    assert fates(report(path), "import")["plumb does not show this kind"] == 5
    far = imported(tmp_path, document(call(1, 1), kernel(1, 20, 1), memory(-9e15, 5), memory(9e15, 6)))
    assert len(series_of(far).get(("cuda:0", False), [])) <= 1024


def test_cut_at_every_byte(tmp_path):
    whole = json.dumps(SMALL)
    for at in range(1, len(whole)):
        path = write(tmp_path, whole[:at])
        assert "trace: " in refused(tmp_path, path)


@pytest.mark.parametrize("before, after, why", [
    ('"dur": 30', '"dur": 30 5', "a missing comma or }"), ('"ts": 10', '"ts" 10', "without a colon"),
    ('"ts": 10', '"ts": x', "not a JSON value"), ('"cpu_op"', '"cpu_op\\q"', "an escape"),
    ('{"ph"', "{,", "one comma too many"), ('"traceEvents": [', '"traceEvents": 3, "x": [', "expected a list of events"),
    ('"numSms": 4', '"numSms": ' + "[" * 600 + "]" * 600, "deeper than 512"),
    ('"ts": 10', '"ts": \x00', "a zero byte"),
])
def test_wrong(tmp_path, before, after, why):
    text = json.dumps(SMALL)
    assert before in text
    text = text.replace(before, after, 1)
    said = refused(tmp_path, text)
    assert why in said and " at byte " in said


@pytest.mark.parametrize("value", ["1e999", "99999999999999999999", "-9223372036854775808", "null", "[1]", "NaN",
                                   "9223372036854775807", '"12"', "{}", "true", "-1e-400"])
def test_numbers_at_their_limits(tmp_path, value):
    """An event without a time is counted; the rest stays."""
    text = json.dumps(document(kernel(1, 1, 1, "good"), kernel(2, 77, 1, "odd"))).replace("77", value)
    path = imported(tmp_path, text)
    assert "good" in {k.name for k in plumb_package.Profile(path).kernels}


def test_nothing_in_it(tmp_path):
    done = run_command(PLUMB, "import", write(tmp_path, document()), "-o", tmp_path / "out.plumb")
    assert done.returncode == 3 and "no event in it has a time" in done.stderr


@pytest.mark.parametrize("content", [b"", b"\0" * 5000, b"hello\n", b"%PDF-1.7\n", b"\x7fELF" + b"\1" * 500])
def test_of_no_known_format(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    done = run_command(PLUMB, "report", tmp_path / "x")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1


def test_sparse_file(tmp_path):
    """4 GB of zeros behind a good beginning end it at once, in little memory."""
    path = write(tmp_path, json.dumps(SMALL)[:300])
    with open(path, "r+b") as file:
        file.truncate(4 << 30)
    said = refused(tmp_path, path)
    assert "a zero byte" in said and "at byte 300" in said


def test_no_room(tmp_path):
    out = tmp_path / "missing" / "out.plumb"
    done = run_command(PLUMB, "import", write(tmp_path, SMALL), "-o", out)
    assert done.returncode == 5 and len(done.stderr.splitlines()) == 1


def test_what_ends_after_what_it_is_in(tmp_path):
    """A call that another clock makes end a little late holds nothing of what comes then."""
    path = imported(tmp_path, document(
        event("cpu_op", "first", 0, 10), call(1, 5, duration=5.3), kernel(1, 20, 1, "a"),
        event("cpu_op", "second", 10.1, 10), call(2, 11), kernel(2, 30, 1, "b"),
        event("cpu_op", "third", 40, 10), event("cpu_op", "late", 45, 10), event("cpu_op", "after", 52, 1)))
    found = tree(path)
    assert "first > cudaLaunchKernel > a" in found and "second > cudaLaunchKernel > b" in found
    assert "third > late" in found and "after" in found
    assert fates(report(path), "span")["it ends after the span in which it began"] == 1


def test_from_a_pipe(tmp_path):
    """As a shell's <(command) gives it; one to which nobody writes is empty."""
    trace = write(tmp_path, SMALL)
    done = run_command("bash", "-c", f"{PLUMB} report <(cat {trace}) --by kernel --json")
    assert done.returncode == 0 and json.loads(done.stdout)["rows"][0]["name"] == "k", done.stderr
    os.mkfifo(tmp_path / "fifo")
    done = run_command(PLUMB, "report", tmp_path / "fifo")
    assert done.returncode == 2 and "is empty" in done.stderr


def test_a_profile_is_no_trace(tmp_path):
    path = imported(tmp_path, SMALL)
    done = run_command(PLUMB, "import", path, "-o", tmp_path / "again.plumb")
    assert done.returncode == 1 and "plumb settle joins profiles" in done.stderr


@pytest.mark.parametrize("types, dims, strides, text", [
    (["float", "c10::BFloat16"], [[2, 3], [3]], [[3, 1], [1]], "(float32[2,3], bfloat16[3])"),
    (["float", "long int"], [[32, 96], []], [[1, 32], []], "(float32[32,96] strides (1,32), int64[])"),
    (["Scalar", "", "ScalarList", "TensorList", "Mine<x>"], [[], [], [], [[1], [2]], []], [[]] * 5,
     "(scalar, None, scalars, tensors, Mine<x>)"),
    (["double"], [[1, 5]], [[77, 1]], "(float64[1,5])"),
    (["double"], [], [], "(float64[])"),
    (["int"], [[[1], [2]]], [[]], "(tensor)"),
    (["float"] * 2, [list(range(20)), [4]], [[], [4]], "(tensor, float32[4] strides (4))"),
])
def test_shapes(tmp_path, types, dims, strides, text):
    """Of an operator's inputs, as plumb run --shapes writes them."""
    op = event("cpu_op", "aten::f", 10, 30, args={"Input type": types, "Input Dims": dims, "Input Strides": strides})
    path = imported(tmp_path, document(
        op, {**op, "ts": 50}, event("cpu_op", "aten::f", 52, 5),
        event("cpu_op", "aten::g", 90, 5, args={"Ev Idx": 3})))
    rows = {(row["name"], row["shapes"]): row for row in report(path, "--by", "shape")["rows"]}
    assert ("aten::f", text) in rows, rows
    found = [(v.shapes, v.count, v.time_ns) for node in plumb_package.Profile(path).operators for v in node.variants]
    assert found == [(text, 2, 55000)]


@pytest.mark.parametrize("value, text", [
    ("[2, 2]", "[2, 2]"), ("[]", "[]"), ("[-1, 64]", "[-1, 64]"), ("2", "scalars"), ("", "scalars"), ("[1, x]", "scalars"),
    ("[[1], [2]]", "scalars"), ("[", "scalars"), (str(list(range(17))), "scalars"), (7, "scalars"), (None, "scalars")])
def test_lists_of_numbers_stand_in_full(tmp_path, value, text):
    """Where the trace has them; anything else in their place is no list."""
    op = event("cpu_op", "aten::f", 10, 30, args={"Input type": ["float", "ScalarList", "Scalar"],
                                                  "Input Dims": [[2, 3], [], []], "Concrete Inputs": ["", value, "5"]})
    path = imported(tmp_path, document(op))
    found = [v.shapes for node in plumb_package.Profile(path).operators for v in node.variants]
    assert found == [f"(float32[2,3], {text}, scalar)"]


def test_shapes_that_are_too_long(tmp_path):
    op = event("cpu_op", "aten::cat", 1, 2, args={"Input type": ["float"] * 900, "Input Dims": [[1234]] * 900})
    path = imported(tmp_path, document(op))
    assert not [v for node in plumb_package.Profile(path).operators for v in node.variants]


@pytest.mark.parametrize("inside, by", [(True, "operator"), (False, "kernel")])
def test_rows_are_kernels_where_no_operator_launched_any(tmp_path, inside, by):
    """There are operators in both; nobody said what rows are."""
    path = imported(tmp_path, document(event("cpu_op", "aten::f", 10, 30), call(1, 20 if inside else 60),
                                       kernel(1, 100, 50, name="mine")))
    data = report(path)
    assert (data["by"], data["metric"]) == (by, "gpu.time")
    assert [row["name"] for row in data["rows"] if row["share"]] == ["aten::f" if inside else "mine"]
