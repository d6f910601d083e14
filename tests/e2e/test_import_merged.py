# SPDX-License-Identifier: Apache-2.0
"""Traces of PyTorch's profiler of several ranks that another tool merged into one file: events say their rank, or the
names of processes do; numbers of processes and correlations are made unique, or are not."""
import gzip
import itertools
import json
import random

import pytest
from conftest import PLUMB, run_command
from importing import TRACES, imported
from kineto_traces import call, event, kernel

RANKS = (0, 1, 2, 3)
OFFSET = 10 ** 7  # what is added to numbers for each rank to make them unique


def one_rank(rank, device):
    """A rank's own trace: steps RANK+2 and RANK+3, with 2+RANK kernels each, of 1+RANK µs."""
    events, correlation = [], 0
    for step in range(2):
        begin = 1000 * step
        events.append(event("user_annotation", f"ProfilerStep#{rank + 2 + step}", begin, 900, 77, 77))
        events.append(event("cpu_op", "aten::mm", begin + 5, 600, 77, 77, args={"External id": step + 1}))
        for number in range(2 + rank):
            correlation += 1
            events.append(call(correlation, begin + 10 + 5 * number, pid=77, tid=77))
            events.append(kernel(correlation, begin + 300 + 20 * number, 1 + rank, f"kernel{rank}", device=device))
    events.append({"ph": "M", "name": "process_name", "pid": 77, "tid": 0, "args": {"name": "python"}})
    return events


def merged(unique_pids=True, unique_correlations=True, say="args", devices=(0, 0, 0, 0), order="ranks"):
    """What a tool makes of the ranks' files. SAY: where the rank is said."""
    by_rank = []
    for rank, device in zip(RANKS, devices):
        own = []
        for made in one_rank(rank, device):
            args = made.setdefault("args", {})
            if say == "args":
                args["rank"] = rank
            if unique_correlations and "correlation" in args:
                args["correlation_raw"] = args["correlation"]
                args["correlation"] += rank * OFFSET
            if unique_pids:
                args["pid_raw"] = made["pid"]
                made["pid"] += rank * OFFSET
            if made["ph"] == "M":
                made["args"]["name"] = f"RANK {rank} - CPU"
            own.append(made)
        if say == "names":
            own.append({"ph": "M", "name": "process_name", "pid": device + rank * OFFSET, "tid": 0,
                        "args": {"name": f"RANK {rank} - GPU {device}"}})
        by_rank.append(own)
    if order == "ranks":
        events = list(itertools.chain(*by_rank))
    else:
        events = list(itertools.chain(*by_rank))
        random.Random(7).shuffle(events)
    names = [made for made in events if made["ph"] == "M"]
    if say == "names":
        events = names + [made for made in events if made["ph"] != "M"]
    return {"traceEvents": events}


def check(tmp_path, document):
    made = imported(tmp_path, document)
    data = made.report("--by", "kernel")
    assert sorted((d["rank"], d["kernels"]["count"], d["kernels"]["ns"]) for d in data["devices"]) == [
        (rank, 2 * (2 + rank), 2 * (2 + rank) * (1 + rank) * 1000) for rank in RANKS]
    assert all(d["busy_ns"] for d in data["devices"])
    assert sorted(process["rank"] for process in data["processes"]) == list(RANKS)
    assert sorted(made.query("SELECT p.rank, e.value FROM environment e JOIN processes p ON e.process = p.id "
                             "WHERE e.key = 'profiler.steps'")) == [(rank, f"{rank + 2} {rank + 3}") for rank in RANKS]
    # Each kernel under the operator and the step of its own rank.
    assert {path[:2] for path in made.paths("gpu.time")} == {("ProfilerStep", "aten::mm")}
    spans = {rank: [] for rank in RANKS}
    kinds = {node.id: node for node in made.profile.walk()}
    tracks = {track.id: track for track in made.profile.tracks}
    processes = {process.id: process for process in made.profile.processes}
    for span in made.profile.spans():
        if kinds[span.context].kind == "kernel":
            spans[processes[tracks[span.track].process].rank].append(kinds[span.context].name)
    assert spans == {rank: [f"kernel{rank}"] * (2 * (2 + rank)) for rank in RANKS}
    return made


@pytest.mark.parametrize("order", ["ranks", "mixed"])
@pytest.mark.parametrize("devices", [(0, 0, 0, 0), (0, 1, 2, 3), (3, 2, 1, 0)])
@pytest.mark.parametrize("unique_pids, unique_correlations", [(True, True), (True, False), (False, True), (False, False)])
def test_events_say_their_rank(tmp_path, unique_pids, unique_correlations, devices, order):
    made = check(tmp_path, merged(unique_pids, unique_correlations, devices=devices, order=order))
    assert {process.pid for process in made.profile.processes} == {77}


@pytest.mark.parametrize("devices", [(0, 0, 0, 0), (0, 1, 2, 3)])
def test_names_of_processes_say_their_rank(tmp_path, devices):
    check(tmp_path, merged(say="names", devices=devices, unique_correlations=False))


def test_no_devices_without_work(tmp_path):
    """Nothing says a rank: GPU work is of the process that launched it, and no device is left over."""
    made = imported(tmp_path, {"traceEvents": [made for rank in RANKS for made in (
        call(rank + 1, 1, pid=10 + rank), kernel(rank + 1, 5, 1 + rank, device=rank))]})
    data = made.report()
    assert sorted((d["processes"][0]["pid"], d["ordinal"], d["kernels"]["ns"]) for d in data["devices"]) == [
        (10 + rank, rank, 1000 * (1 + rank)) for rank in RANKS]


def test_the_words_of_a_report(tmp_path):
    text = run_command(PLUMB, "report", imported(tmp_path, merged())).stdout
    assert text.count(": busy ") == 4 and "busy –" not in text
    assert all(f"(rank {rank})" in text for rank in RANKS)


def numbers_of(made):
    """The numbers that a merging tool makes unique: (where it stands, key)."""
    return [(made, key) for key in ("id", "pid") if isinstance(made.get(key), int)] + [
        (made["args"], "correlation")] * isinstance(made.get("args", {}).get("correlation"), int)


@pytest.mark.skipif(not TRACES.is_dir(), reason="the published traces are not beside the project")
def test_published_traces_merged(tmp_path):
    """Three published traces as one file: each device is what it is in its own file."""
    fused, known = [], []
    for rank, name in enumerate(["k08", "k18", "k14"]):
        (path,) = TRACES.glob(f"kineto/{name}*")
        known.append(json.loads((TRACES / "oracle" / path.name.replace(".json.gz", ".json")).read_text()))
        for made in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]:
            if made.get("cat") == "Trace":
                continue
            made.setdefault("args", {})["rank"] = rank
            for holder, key in numbers_of(made):
                made["args"][f"{key}_raw"] = holder[key]
                holder[key] += rank * OFFSET
            fused.append(made)
    made = imported(tmp_path, {"traceEvents": fused})
    devices = {device["rank"]: device for device in made.report()["devices"]}
    assert sorted(devices) == [0, 1, 2] == sorted({p.rank for p in made.profile.processes})
    for rank, truth in enumerate(known):
        assert devices[rank]["kernels"] == {"count": truth["n_kernel"], "ns": truth["kernel_time_ns"]}
        assert devices[rank]["busy_ns"] == truth["gpu_busy_union_ns"]
    steps = dict(made.query("SELECT p.rank, e.value FROM environment e JOIN processes p ON e.process = p.id "
                            "WHERE e.key = 'profiler.steps'"))
    assert steps == {0: "4 5 6", 2: "1 2"}
