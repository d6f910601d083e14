# SPDX-License-Identifier: Apache-2.0
"""The critical path: beside HolisticTraceAnalysis' on traces that have its events, and on small traces whose
path is known."""
import json
import sqlite3

import pytest
from conftest import PLUMB, run_command
from importing import imported, shared, write
from kineto_traces import event
from plumbtest import answer, findings

KINDS = ("host", "launch", "kernel", "copy", "communication", "gap", "unknown")
MAIN, SIDE = 7, 20


def check_sums(path):
    assert sum(path[f"{kind}_ns"] for kind in KINDS) == path["end_ns"] - path["start_ns"]


# ---- published traces ----

# µs by tests/accuracy/critical_path.py with HolisticTraceAnalysis 0.5.0, "by launch": on the host, GPU work,
# from launch to begin, from work to work. What differs by definition stands there.
HTA = {
    "k12_alexnet_cuda_sync": ((43294144, 59319, 2036, 66), (0.002, 0.003, 0.015, 0.3)),
    "k13_event_sync_multistream": ((1025, 124, 14, 15), (0.05, 0.01, 0.1, 1)),
}


@pytest.mark.parametrize("name", sorted(HTA))
def test_beside_hta(name):
    path = answer("iters", shared(f"kineto/{name}.json.gz"))["path"]
    check_sums(path)
    between = sum(row["path_ns"] for row in path["top"] if row["name"] is None)
    ours = (path["host_ns"] - between, path["kernel_ns"] + path["copy_ns"], path["launch_ns"], path["gap_ns"])
    for mine, theirs, apart in zip(ours, *HTA[name]):
        assert mine / 1000 == pytest.approx(theirs, rel=apart)
    assert path["unknown_ns"] == 0
    edges = path["edges"]
    assert (edges["inferred_syncs"], edges["inferred_events"], edges["impossible"]) == (0, 0, 0)


def test_recorded_waits(tmp_path):
    trace = imported(tmp_path, shared("kineto/k13_event_sync_multistream.json.gz"))
    rows = trace.query("SELECT t.kind, t.stream, a.stream, w.call, w.after FROM waits w JOIN tracks t ON "
                       "t.id = w.track LEFT JOIN tracks a ON a.id = w.awaited ORDER BY w.call")
    assert rows == [("thread", None, 20, 54, 32), ("stream", 24, 20, 1389, 1385),
                    ("thread", None, 28, 1410, 62), ("thread", None, None, 1424, 0)]
    # One says neither event nor stream: it is counted, and the call's name tells that it waited.
    assert [count for (_, _, detail), count in trace.fates().items() if detail == "cuda_sync"] == [1]


def test_recorded_waits_of_nsight(tmp_path):
    """Those of the four calls that the file has."""
    trace = imported(tmp_path, shared("nsys/n01_h100_2gpu_fastvideo_1s.sqlite"))
    rows = trace.query("SELECT t.kind, a.stream, w.call FROM waits w JOIN tracks t ON t.id = w.track JOIN "
                       "tracks a ON a.id = w.awaited ORDER BY w.call")
    assert rows == [("thread", 7, call) for call in (1462029, 1462037, 1462093, 1462106)]


@pytest.mark.parametrize("name", ["k01_v100_resnet50_w0_6steps", "k12_alexnet_cuda_sync",
                                  "k18_2080ti_linear_40iters_nosteps", "k20_h100_qwen1.5"])
def test_nothing_saves_more_than_it_takes(tmp_path, name):
    """A kernel of 0.47 ms saved 28.9 ms: its launch and the delay before it went with it."""
    path = tmp_path / "trace.plumb"
    assert run_command(PLUMB, "import", shared(f"kineto/{name}.json.gz"), "-o", path).returncode == 0
    done = run_command(PLUMB, "report", path, "--by", "kernel", "--json", "--top", "100000")
    takes = {row["name"]: row["exclusive"]["gpu.time"]["sum"] for row in json.loads(done.stdout)["rows"]}
    (track,) = [one for one in answer("iters", path)["tracks"] if one["role"] == "main"]
    steps = track["levels"][0]["occurrences"]
    rows = [row for row in track["path"]["top"] if row["path_kind"] == "kernel"]
    assert rows
    for row in rows:
        assert row["saving_ns"] <= takes[row["name"]] / (steps - 1), row["name"]


@pytest.mark.parametrize("name", ["k01_v100_resnet50_w0_6steps", "k03_v100_ddp2_rank1_5steps",
                                  "k04_a100_ddp8_rank3_6steps", "k08_a100_ddp2_rank0_nccl_meta_3steps"])
def test_steps_of_published_traces(name):
    """A step's path is as long as the step, and finds what the forward pass and the engine's thread did."""
    data = answer("iters", shared(f"kineto/{name}.json.gz"))
    (track,) = [one for one in data["tracks"] if one["role"] == "main"]
    items = track["levels"][0]["iterations"]
    assert len(track["path"]["iterations"]) == len(items)
    for path, item in zip(track["path"]["iterations"], items):
        check_sums(path)
        length = item["duration_ns"] + (item["interval_ns"] or 0)
        assert path["end_ns"] - path["start_ns"] == pytest.approx(length, abs=1000)  # rounded times
    assert data["path"]["edges"]["inferred_threads"] >= len(items)
    between = sum(row["path_ns"] for row in data["path"]["top"] if row["name"] is None)
    assert between < 0.1 * (data["path"]["end_ns"] - data["path"]["start_ns"])


def test_input_stall():
    """k01 waits for its input: loading it saves most, and no kernel anything, for the host is the slower."""
    data = answer("iters", shared("kineto/k01_v100_resnet50_w0_6steps.json.gz"))
    (track,) = [one for one in data["tracks"] if one["role"] == "main"]
    top = track["path"]["top"]
    best = max(top, key=lambda row: row["saving_ns"] or 0)
    assert best["name"].startswith("enumerate(DataLoader)")
    assert best["saving_ns"] > 20_000_000
    kernels = [row for row in top if row["path_kind"] == "kernel"]
    assert kernels and max(row["saving_ns"] for row in kernels) < 1_000_000


# ---- traces made here: times in µs ----


class Trace:
    def __init__(self):
        self.events, self.number = [], 0

    def add(self, category, name, tid, at, length, **arguments):
        pid = 0 if category in ("kernel", "gpu_memcpy", "cuda_sync") else 77
        self.events.append(event(category, name, at, length, pid, tid, args=arguments))

    def host(self, name, at, length, category="cpu_op"):
        self.add(category, name, 1, at, length)

    def call(self, name, at, length):
        self.number += 1
        self.add("cuda_runtime", name, 1, at, length, correlation=self.number)
        return self.number

    def work(self, call, name, at, length, stream=MAIN):
        self.add("kernel", name, stream, at, length, device=0, context=1, stream=stream, correlation=call)

    def sync(self, kind, call, stream, **more):
        self.add("cuda_sync", kind, stream, 0, 1, device=0, context=1, stream=stream, correlation=call,
                 cuda_sync_kind=kind, **more)

    def write(self, folder):
        return write(folder, {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "Test GPU"}],
                              "baseTimeNanoseconds": 0, "traceEvents": self.events})


def host_bound(kernel=20):
    """Steps of 1000 µs: loading takes 700, and each of ten kernels begins 10 after its launch."""
    trace = Trace()
    for step in range(8):
        at = 1000 * step
        trace.host("load", at, 700)
        for k in range(10):
            trace.host(f"aten::op{k}", at + 700 + 30 * k, 28)
            call = trace.call("cudaLaunchKernel", at + 705 + 30 * k, 5)
            trace.work(call, f"kernel{k}", at + 715 + 30 * k, kernel)
    return trace


def test_host_bound(tmp_path):
    data = answer("iters", host_bound().write(tmp_path))
    (track,) = data["tracks"]
    path = track["path"]
    assert (path["kernel_ns"], path["launch_ns"]) == (20_000, 10_000)
    for one in path["iterations"][1:]:
        assert (one["end_ns"] - one["start_ns"], one["kernel_ns"], one["launch_ns"]) == (1_000_000, 20_000, 10_000)
    top = {(row["path_kind"], row["name"]): row for row in path["top"]}
    # The step before ends 5 µs into it.
    assert (top["host", "load"]["path_ns"], top["host", "load"]["saving_ns"]) == (695_000, 700_000)
    assert top["kernel", "kernel9"]["path_ns"] == 20_000
    assert top["kernel", "kernel9"]["saving_ns"] == 0  # the next step does not wait for it
    done = run_command(PLUMB, "iters", tmp_path / "trace")
    assert "critical path of iteration" in done.stdout and "host 97.0 %" in done.stdout, done.stdout


def test_events_and_syncs(tmp_path):
    """A side stream that the main one waits for, which the host waits for: the path runs through all three."""
    trace = Trace()
    first = trace.call("cudaLaunchKernel", 0, 5)
    trace.work(first, "main1", 10, 100)
    side = trace.call("cudaLaunchKernel", 10, 5)
    trace.work(side, "side", 20, 480, SIDE)
    record = trace.call("cudaEventRecord", 20, 2)
    wait = trace.call("cudaStreamWaitEvent", 25, 2)
    trace.sync("Stream Wait Event", wait, MAIN, wait_on_stream=SIDE, wait_on_cuda_event_record_corr_id=record)
    last = trace.call("cudaLaunchKernel", 30, 5)
    trace.work(last, "main2", 502, 98)
    synchronise = trace.call("cudaStreamSynchronize", 40, 570)
    trace.sync("Stream Sync", synchronise, MAIN)
    trace.host("after", 610, 90)
    path = answer("iters", trace.write(tmp_path))["path"]
    assert path["edges"] == {"launches": 3, "syncs": 1, "events": 1, "collectives": 0,
                             "collectives_by_sequence": 0, "collectives_by_group": 0, "collectives_by_stream": 0,
                             "collectives_by_name": 0, "inferred_syncs": 0, "inferred_events": 0,
                             "inferred_threads": 0, "unmatched": 0, "impossible": 0}
    assert [path[f"{kind}_ns"] // 1000 for kind in KINDS] == [10 + 10 + 90, 10, 480 + 98, 0, 0, 2, 0]
    savings = {row["name"]: row["saving_ns"] for row in path["top"]}
    # Without it main1 is over at 110, and main2 begins its delay of 2 after.
    assert savings["side"] == (502 - 112) * 1000
    assert savings["after"] == 90_000
    assert savings["main2"] == 98_000, "as long as it is: its delay stays"
    assert "main1" not in savings


def two_ranks(late):
    """Steps of two ranks that end in a collective; rank 1 loads its data LATE µs longer."""
    trace = Trace()
    number = 0
    for step in range(6):
        at = 2000 * step
        for rank in range(2):
            def add(category, name, tid, start, length, **more):
                pid = rank if category == "kernel" else 77 + rank
                trace.events.append(event(category, name, start, length, pid, tid, args=more))
            slow = late if rank else 0
            add("cpu_op", f"load{rank}", rank + 1, at, 100 + slow)
            for name, begin, end in (("gemm", at + 130 + slow, at + 330 + slow),
                                     ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + 340 + slow, at + 540 + late),
                                     ("adam", at + 545 + late, at + 645 + late)):
                number += 1
                call = at + 105 + slow + 5 * (number % 3)
                add("cuda_runtime", "cudaLaunchKernel", rank + 1, call, 4, correlation=number)
                add("kernel", name, MAIN, begin, end - begin, device=rank, context=1, stream=MAIN,
                    correlation=number)
            number += 1
            add("cuda_runtime", "cudaDeviceSynchronize", rank + 1, at + 130 + slow, 530 + late - slow, correlation=number)
    return trace


def test_ranks(tmp_path):
    data = answer("iters", two_ranks(400).write(tmp_path))
    assert data["path"]["edges"]["collectives"] == 6
    assert data["path"]["edges"]["inferred_syncs"] == 12
    tracks = {track["process"]: track["path"] for track in data["tracks"]}
    for path in tracks.values():
        check_sums(path)
        saved = {row["name"]: row["saving_ns"] for row in path["top"]}
        # Of its 500 µs rank 1 is 400 later than rank 0; what lies between steps is not the program's.
        assert saved["load1"] == 400_000
        assert saved.get("load0", 0) == 0
        assert path["communication_ns"] == 200_000
    assert tracks[77]["peer_ns"] > 700_000  # from rank 1's loading to its arrival
    assert tracks[78]["peer_ns"] == 0


# ---- findings ----


def slow_optimizer(hidden):
    """An optimizer's range of 300 µs on the host, while the GPU works; or while it has nothing to do."""
    trace = Trace()
    for step in range(10):
        at = 1000 * step
        trace.host("aten::mm", at + 5, 20)
        call = trace.call("cudaLaunchKernel", at + 10, 5)
        trace.work(call, "long", at + 20, 930 if hidden else 300)
        trace.host("optimizer", at + 400, 500, "user_annotation")
        trace.host("aten::add_", at + 410, 480)
        # every step ends by waiting for its kernel
        synchronise = trace.call("cudaStreamSynchronize", at + 905, 55 if hidden else 5)
        trace.sync("Stream Sync", synchronise, MAIN)
    return trace


def test_findings_are_bounded(tmp_path):
    for hidden in (True, False):
        path = slow_optimizer(hidden).write(tmp_path)
        found = [one for one in findings(path, "--threshold", "latency.share=1%,latency.idle=1%")
                 if one["rule"] == "latency" and "optimizer" in one["title"]]
        assert len(found) == 1, found
        evidence = found[0]["evidence"]
        assert evidence["saving_bound"] == "critical path"
        if hidden:
            assert found[0]["saving_ns"] == evidence["step_saving_ns"] == 0
            assert found[0]["severity"] == "note"
            assert evidence["hides_behind"] == "kernel: long"
            shown = run_command(PLUMB, "report", path, "--findings", "--threshold",
                                "latency.share=1%,latency.idle=1%").stdout
            words = " ".join(shown.split())
            assert "saving none (confidence" in words and "hidden behind kernel: long" in words, shown
        else:
            assert evidence["step_saving_ns"] == 500_000
            assert found[0]["saving_ns"] > 0 and "hides_behind" not in evidence


def test_importedprofiles_are_bounded_too(tmp_path):
    """What a report reads of a profile's spans depends on what it shows."""
    path = slow_optimizer(True).write(tmp_path)
    profile = imported(tmp_path, path).path
    assert findings(profile) == findings(path)
    assert any("step_saving_ns" in one["evidence"] for one in findings(profile))


def test_a_part_of_the_run_stands_for_all(tmp_path):
    """Of 300 µs of layout conversions in a step 200 hide behind another stream. Spans of a tenth of the run (here: its
    sums made ten times as great) say what all of it would save."""
    trace = Trace()
    for step in range(10):
        at = 2000 * step
        trace.host("aten::conv2d", at, 60)
        for name, start, length, stream in (("gemm", 100, 500, MAIN), ("nchwToNhwcKernel", 600, 300, MAIN),
                                            ("other", 100, 700, SIDE)):
            trace.work(trace.call("cudaLaunchKernel", at + 5 + start // 20, 1), name, at + start, length, stream)
        trace.sync("Context Sync", trace.call("cudaDeviceSynchronize", at + 70, 840), -1)
    profile = imported(tmp_path, trace.write(tmp_path))

    def layout():
        (found,) = [one for one in findings(profile.path) if one["evidence"].get("cause") == "layout"]
        return found["saving_ns"], found["evidence"]["gpu_time_ns"], found["evidence"]["step_saving_ns"]
    assert layout() == (1_000_000, 3_000_000, 100_000)
    with sqlite3.connect(profile.path) as database:
        database.execute("UPDATE context_values SET sum = sum * 10, count = count * 10")
    assert layout() == (10_000_000, 30_000_000, 100_000)


def test_without_spans_nothing_changes(tmp_path):
    trace = host_bound()
    only_gpu = Trace()
    only_gpu.events = [event for event in trace.events if event["cat"] == "kernel"]
    path = only_gpu.write(tmp_path)
    assert all("saving_bound" not in one["evidence"] for one in findings(path))
    # Of the GPU alone the path is known, but not what the first work waited for.
    whole = answer("iters", path)["path"]
    check_sums(whole)
    assert whole["host_ns"] == 0 and whole["edges"]["launches"] == 0
