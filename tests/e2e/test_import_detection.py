# SPDX-License-Identifier: Apache-2.0
"""Whose events a JSON has is told by the events, wherever in the file they stand; and what comes from a pipe is read as
a file is, packed or not."""
import functools
import gzip
import json
import lzma
import random

import pytest
from conftest import PLUMB, run_command
from importing import imported, run_import, write
from kineto_traces import call, document, event, kernel

METADATA = {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "x" * 60}}


def old_dialect():
    """As PyTorch 1.8 wrote it."""
    return [
        event("Operator", "aten::mm", 0, 50, tid="6", args={"Device": 5, "External id": 2, "Trace name": "PyTorch Profiler",
                                                            "Trace iteration": 0}),
        event("Runtime", "cudaLaunchKernel", 10, 5, tid="6", args={"cbid": 211, "correlation": 1, "external id": 2}),
        event("Kernel", "gemm", 30, 7, 0, "stream 7", args={"device": 0, "context": 1, "stream": 7, "correlation": 1}),
        event("Runtime", "cudaMemcpyAsync", 20, 5, tid="6", args={"cbid": 41, "correlation": 2}),
        event("Memcpy", "Memcpy HtoD (Pinned -> Device)", 40, 3, 0, "stream 7",
              args={"device": 0, "context": 1, "stream": 7, "correlation": 2, "bytes": 64}),
    ]


def new_dialect():
    return [event("cpu_op", "aten::mm", 0, 50), call(1, 10), kernel(1, 30, 7, "gemm")]


def gpu_alone(category="kernel"):
    return [kernel(n, 10 * n, 7, "gemm", category=category) for n in range(1, 4)]


def bare(events):
    """Without any argument."""
    return [{key: value for key, value in made.items() if key != "args"} for made in events]


SHAPES = {
    "list": lambda events: events,
    "object": lambda events: {"traceEvents": events},
    "events first": lambda events: {"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"a": 1}},
    "long metadata": lambda events: {"otherData": {"text": "y" * 300000}, "traceEvents": events},
    "many names": lambda events: {"traceEvents": [METADATA] * 3000 + events},
    "other tool first": lambda events: {"traceEvents": [
        {"ph": "X", "cat": "mine", "name": "slice", "pid": 9, "tid": 9, "ts": n, "dur": 1} for n in range(3000)] + events},
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("events", [old_dialect(), new_dialect(), gpu_alone(), gpu_alone("Kernel")],
                         ids=["1.8", "new", "kernel", "Kernel"])
def test_events_of_pytorch(tmp_path, shape, events):
    made = imported(tmp_path, SHAPES[shape](events))
    assert made.format == "kineto"
    kernels = sum(one["cat"] in ("kernel", "Kernel") for one in events)
    assert made.total("gpu.time") == 7000 * kernels
    assert sum(device["kernels"]["count"] for device in made.devices().values()) == kernels


@pytest.mark.parametrize("events", [gpu_alone(), gpu_alone("Kernel"), old_dialect()])
def test_categories_alone(tmp_path, events):
    """Nothing but kernels, and not one argument: it is no other tool's trace."""
    assert imported(tmp_path, bare(events)).format == "kineto"


@pytest.mark.parametrize("category", ["Operator", "Kernel", "Runtime"])
def test_words_that_others_use(tmp_path, category):
    """A trace of another tool stays what it is, whatever its categories are called."""
    made = imported(tmp_path, [{"ph": "X", "cat": category, "name": "boot", "pid": 1, "tid": 1, "ts": 1, "dur": 2},
                               {"ph": "X", "cat": "irq", "name": "timer", "pid": 1, "tid": 1, "ts": 4, "dur": 2}])
    assert made.format == "chrome" and made.total("op.calls") == 2


@pytest.mark.parametrize("before", ["\n", "\n\n  \t\r\n", "\ufeff", "\ufeff\n", " " * 100, "\n" * 500])
@pytest.mark.parametrize("events", [new_dialect(), [{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]],
                         ids=["kineto", "chrome"])
@pytest.mark.parametrize("indent", [None, 1])
def test_white_space_before_the_text(tmp_path, before, events, indent):
    for value in (events, document(*events) if len(events) > 1 else {"traceEvents": events}):
        made = imported(tmp_path, before + json.dumps(value, indent=indent))
        assert made.format == ("kineto" if len(events) > 1 else "chrome")


def test_autograd_profiler(tmp_path):
    """What torch.autograd.profiler writes has no categories."""
    def old(name, ts, dur, pid="CPU functions", tid=1):
        return {"name": name, "ph": "X", "ts": ts, "dur": dur, "tid": tid, "pid": pid, "args": {}}
    made = imported(tmp_path, [old("forward", 0, 100), old("aten::mm", 10, 50), old("MmBackward0", 200, 5),
                               old("gemm", 30, 9, "CUDA functions", 3)])
    assert made.format == "kineto"
    assert made.stacks() >= {"range forward > operator aten::mm", "operator MmBackward0", "kernel gemm"}
    assert made.devices()[3]["kernels"] == {"count": 1, "ns": 9000}


# ---- pipes ----


PACKINGS = {"plain": bytes, "gzip": gzip.compress, "xz": functools.partial(lzma.compress, preset=0)}


def pipe_in(folder, data, how):
    path = write(folder, data, "packed")
    out = folder / "piped.plumb"
    command = {"stdin": f"cat {path} | {PLUMB} import - -o {out}", "substitution": f"{PLUMB} import <(cat {path}) -o {out}",
               "slowly": f"(head -c 1 {path}; sleep 0.2; tail -c +2 {path}) | {PLUMB} import - -o {out}"}[how]
    return run_command("bash", "-c", command), out


@pytest.mark.parametrize("how", ["stdin", "substitution", "slowly"])
@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("shape", ["object", "many names"])
def test_packed_through_a_pipe(tmp_path, packing, how, shape):
    data = PACKINGS[packing](json.dumps(SHAPES[shape](old_dialect())).encode())
    done, out = pipe_in(tmp_path, data, how)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    report = json.loads(run_command(PLUMB, "report", out, "--json").stdout)
    assert report["devices"][0]["kernels"] == {"count": 1, "ns": 7000}


@pytest.mark.parametrize("packing", PACKINGS)
def test_large_through_a_pipe(tmp_path, packing):
    """Far more than a pipe or a block holds, and not of PyTorch: it is looked through, and then read."""
    random.seed(5)
    events = [{"ph": "X", "name": f"n{random.random()}", "pid": 1, "tid": n % 7, "ts": n, "dur": 1} for n in range(120000)]
    done, out = pipe_in(tmp_path, PACKINGS[packing](json.dumps(events).encode()), "stdin")
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert f"op.calls by range, {len(events):,} in total" in run_command(
        PLUMB, "report", out, "--by", "range", "--metric", "op.calls").stdout


def test_empty_pipes_and_short_ones(tmp_path):
    for data in (b"", b"{", b"\x1f", b"\x1f\x8b", b"\xfd7zX"):
        done, out = pipe_in(tmp_path, data, "stdin")
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and not out.exists()
