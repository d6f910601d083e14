# SPDX-License-Identifier: Apache-2.0
"""Traces that other tools recorded on an H200 of one program, tests/accuracy/foreign.py, beside plumb's own."""
import collections
import decimal
import gzip
import json

import pytest
from conftest import ROOT
from importing import imported, report
from test_import_kineto import fates

import plumb as plumb_package

DATA = ROOT / "tests" / "data" / "foreign"
STEPS = 4


def events(name):
    """The GPU events of a trace, as Python's own reader has them."""
    with gzip.open(DATA / name) as file:
        return [event for event in json.load(file, parse_float=decimal.Decimal)["traceEvents"]
                if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]


def ns(us):
    return int(us * 1000)  # a decimal, or whole


@pytest.mark.parametrize("name", ["torch", "graph", "compiled", "rank0", "rank1"])
def test_as_another_reader_has_it(tmp_path, name):
    """Counts, times and bytes by Python's json and integer arithmetic."""
    trace = DATA / f"{name}.json.gz"
    known = events(trace.name)
    data = report(imported(tmp_path, trace), "--by", "kernel")
    (device,) = data["devices"]
    for key, category in (("kernels", "kernel"), ("copies", "gpu_memcpy"), ("sets", "gpu_memset")):
        of_it = [event for event in known if event["cat"] == category]
        assert (device[key]["count"], device[key]["ns"]) == (len(of_it), sum(ns(e["dur"]) for e in of_it))
    assert device["copies"]["bytes"] == sum(e["args"]["bytes"] for e in known if e["cat"] == "gpu_memcpy")
    busy, end = 0, 0
    for start, stop in sorted((ns(e["ts"]), ns(e["ts"]) + ns(e["dur"])) for e in known):
        busy += max(0, stop - max(start, end))
        end = max(end, stop)
    assert device["busy_ns"] == busy
    kernels = collections.Counter(e["name"] for e in known if e["cat"] == "kernel")
    assert {row["name"]: row["exclusive"]["gpu.time"]["count"] for row in data["rows"]} == kernels
    assert fates(data, "gpu.kernel")["attributed"] == sum(kernels.values())
    assert device["name"] == "NVIDIA H200"


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    path = tmp_path_factory.mktemp("own") / "own.plumb"
    path.write_bytes(gzip.decompress((DATA / "own.plumb.gz").read_bytes()))
    return path


def last_steps(path, count):
    """{kernel: [times]} of the last COUNT kernels."""
    profile = plumb_package.Profile(path)
    kernels = {node.id: node.name for node in profile.kernels}
    spans = sorted(((s.start_ns, s.end_ns - s.start_ns, kernels[s.context]) for s in profile.spans()
                    if s.context in kernels), key=lambda row: row[0])[-count:]
    found = collections.defaultdict(list)
    for _, time, name in spans:
        found[name].append(time)
    return found


def test_own_and_torch_agree(tmp_path, own):
    """The same steps of the same program under either: the same kernels, as often, for as long."""
    path = imported(tmp_path, DATA / "torch.json.gz")
    theirs = last_steps(path, 10**9)
    count = sum(map(len, theirs.values()))
    ours = last_steps(own, count)

    def short(found):  # one has mangled names, the other not
        return sorted(len(times) for times in found.values())

    assert short(ours) == short(theirs) and count % STEPS == 0
    assert sum(map(sum, ours.values())) == pytest.approx(sum(map(sum, theirs.values())), rel=0.05)


def operators(path):
    found = collections.Counter()
    for node in plumb_package.Profile(path).kernels:
        above = next((part for part in node.ancestors if part.kind == "operator"), None)
        found[above.name if above else None] += node.exclusive["gpu.time"].count
    return found


def test_operators_agree(tmp_path, own):
    """Eight steps under plumb, four under torch.profiler; backward and optimizer work included."""
    path = imported(tmp_path, DATA / "torch.json.gz")
    theirs, ours = operators(path), operators(own)
    for name in ("aten::mm", "aten::addmm", "aten::sum", "aten::gelu", "aten::gelu_backward",
                 "aten::native_layer_norm", "aten::native_layer_norm_backward", "aten::_log_softmax"):
        assert theirs[name] and ours[name] == 2 * theirs[name], name


def test_backward_of_recorded_trace(tmp_path):
    """Backward kernels stand under the line of their forward operator."""
    profile = plumb_package.Profile(imported(tmp_path, DATA / "torch.json.gz"))
    gelus = [node for node in profile.kernels
             if any(part.name == "aten::gelu_backward" for part in node.ancestors)]
    assert gelus
    for node in gelus:
        names = [part.name for part in node.ancestors]
        assert "aten::gelu" in names and names.index("aten::gelu_backward") < names.index("aten::gelu")
        assert any(part.kind == "module" and part.file == "Block" for part in node.ancestors)
        assert any(part.file == "foreign.py" for part in node.ancestors)


def test_graph_of_recorded_trace(tmp_path):
    profile = plumb_package.Profile(imported(tmp_path, DATA / "graph.json.gz"))
    launches = profile.match("gpu_api:cudaGraphLaunch")
    assert sum(node.exclusive["gpu.replays"].sum for node in launches) == STEPS
    assert sum(node.inclusive["gpu.time"].count for node in launches) == sum(
        event["cat"] == "kernel" for event in events("graph.json.gz"))


def test_ranks_of_recorded_traces(tmp_path):
    traces = [DATA / f"rank{rank}.json.gz" for rank in (0, 1)]
    data = report(imported(tmp_path, *traces), "--by", "collective")
    assert sorted(process["rank"] for process in data["processes"]) == [0, 1]
    assert {row["name"] for row in data["rows"]} >= {"AllReduce"}
    for overlap, trace in zip(data["overlap"], traces):
        known = [e for e in events(trace.name) if e["cat"] == "kernel"]
        nccl = sum(ns(e["dur"]) for e in known if e["name"].startswith("nccl"))
        assert overlap["communication_ns"] == nccl  # on one stream: nothing of it overlaps
        assert 0 < overlap["hidden_ns"] < nccl


def test_persons_own_lines(tmp_path):
    """Kineto cuts what Python searches off files: torch/nn/… is still not the person's own."""
    data = report(imported(tmp_path, DATA / "torch.json.gz"), "--by", "operator")
    files = {row["user_file"] for row in data["rows"] if row["user_file"]}
    assert files == {"foreign.py"}


def test_two_accounts_of_one_jax_run(tmp_path):
    """The same recording as XPlane and as trace.json: the same kernels at the same times under the same calls."""
    found = []
    for name in ("jax.xplane.pb.gz", "jax.trace.json.gz"):
        path = imported(tmp_path, DATA / name)
        profile = plumb_package.Profile(path)
        kernels = {node.id: node for node in profile.kernels}
        rows = sorted((s.start_ns, s.end_ns, kernels[s.context].name) for s in profile.spans()
                      if s.context in kernels)
        first = rows[0][0]
        under = {(node.name, next(part.name for part in node.ancestors if part.kind == "gpu_api"))
                 for node in kernels.values()}
        data = report(path)
        assert fates(data, "gpu.kernel") == {"received": 16, "attributed": 16}
        found.append(([(start - first, end - start, kernel) for start, end, kernel in rows], under,
                      {key: data["devices"][0][key] for key in ("kernels", "busy_ns", "span_ns")}))
    assert found[0] == found[1]
    assert len(found[0][0]) == STEPS * 4
