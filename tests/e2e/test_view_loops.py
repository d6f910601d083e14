# SPDX-License-Identifier: Apache-2.0
"""What plumb view answers about a loop: the graph of its states, and the critical path of an iteration."""
import functools
import json

import pytest
import viewing
from viewing import BUILD, ROOT, Viewer, read_tables, verb

PLUMB = BUILD / "plumb"
KINDS = ["host", "launch", "kernel", "copy", "communication", "gap", "unknown"]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    return functools.partial(viewing.recorded, folder=tmp_path_factory.mktemp("recorded"))


def states(viewer, question):
    tables = read_tables(viewer.get(question))
    return tables["states"], tables["states.kernels"], tables["states.transitions"], {name: one[0] for name, one in tables["states.total"].items()}


@pytest.mark.parametrize("name", ["programs/hf-train-fault", "resnet/b32", "cases/unet", "planted/grows"])
@pytest.mark.parametrize("history", ["", "&history=0", "&history=2", "&most=6"])
def test_states_hold_every_kernel_of_the_loop(recorded, name, history):
    """Each kernel of each iteration is in one state, and who leaves a state has entered it."""
    file = recorded(name)
    level = next(t for t in json.loads(verb(PLUMB, "iters", "--json", file))["tracks"] if t["role"] == "main")["levels"][0]
    with Viewer(PLUMB, file) as viewer:
        state, kernel, way, total = states(viewer, f"states?{history}")
    assert total["iterations"] == level["occurrences"]
    assert total["kernels"] == sum(one["ops"] for one in level["iterations"])
    assert total["kernel_ns"] == sum(state["kernel_ns"]) == sum(one["op_time_ns"] for one in level["iterations"])
    if not total["joined"]:
        assert sum(count * length for count, length in zip(state["count"], state["kernels"])) == total["kernels"]
    for number, count in zip(state["state"], state["count"]):
        into = sum(n for to, n in zip(way["to"], way["count"]) if to == number)
        out = sum(n for start, n in zip(way["from"], way["count"]) if start == number)
        if state["kind"][number] == "segment":
            assert into == out == count
            assert sum(ns for one, ns in zip(kernel["state"], kernel["kernel_ns"]) if one == number) == state["kernel_ns"][number]
    again = [n for start, n in zip(way["from"], way["count"]) if start == 1]
    assert again == [sum(one["interval_ns"] is not None for one in level["iterations"])]
    if "most" in history:
        assert len(state["state"]) <= 6
    if "history" in history:
        assert total["history"] == int(history[-1])


def test_states_of_other_loops(recorded):
    with Viewer(PLUMB, recorded("programs/hf-train-fault"), recorded("programs/decode-healthy")) as viewer:
        inner = states(viewer, "states?level=1")[3]
        assert inner["level"] == 1 and inner["iterations"] == 500
        second = states(viewer, "states?file=1&loop=2")[3]
        assert second["loop"] == 2
        status, _, body = viewer.ask("api/1/states?loop=9")
        assert status == 404 and b"no such loop" in body
        assert viewer.ask("api/1/states?history=9")[0] == 400
        assert viewer.ask("api/1/states?most=2")[0] == 400


def host_trace(path):
    """A trace of PyTorch's profiler without a GPU: 40 times the same operators, the last two of which are repeated in odd iterations."""
    events, at = [], 1000.0
    for i in range(40):
        for name, us in [("aten::load", 30), ("aten::mm", 50), ("aten::relu", 10)] + [("aten::mul", 40), ("aten::sum", 20)] * (1 + i % 2):
            events.append({"ph": "X", "name": name, "cat": "cpu_op", "pid": 1, "tid": 1, "ts": at, "dur": us})
            at += us + 2
        at += 40
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def test_states_of_a_thread(tmp_path):
    """Without GPU work the states are of operators; the loop that plumb finds has both kinds of iterations."""
    with Viewer(PLUMB, host_trace(tmp_path / "host.json")) as viewer:
        state, kernel, way, total = states(viewer, "states?history=0")
        assert total["of"] == "operators and ranges"
        segments = {tuple(name for one, name in zip(kernel["state"], kernel["name"]) if one == number): state["count"][number]
                    for number in state["state"] if state["kind"][number] == "segment"}
        assert segments[("aten::mul", "aten::sum")] == sum(segments.values()) - segments[("aten::load", "aten::mm", "aten::relu")] > 40
        assert sum(count * length for count, length in zip(state["count"], state["kernels"])) == total["kernels"] == 7 * 20 + 5 * 20
        status, _, body = viewer.ask("api/1/path")
        assert status == 404 and "ends with GPU work" in json.loads(body)["why"]


def path(viewer, question):
    tables = read_tables(viewer.get(question))
    return tables["path"], tables["path.rows"], {name: one[0] for name, one in tables["path.total"].items()}


@pytest.mark.parametrize("name", ["resnet/b32", "planted/sleep", "planted/laterank", "waits"])
def test_the_path_is_that_of_the_verb(recorded, name):
    file = recorded(name)
    track = next(t for t in json.loads(verb(PLUMB, "iters", "--json", file))["tracks"] if t["role"] == "main")
    with Viewer(PLUMB, file) as viewer:
        segments, rows, total = path(viewer, "path")
        assert total["median"] is True and total["iteration"] == track["path"]["iteration"]
        assert rows["ns"] == [row["path_ns"] for row in track["path"]["top"]]
        assert rows["saving_ns"] == [row["saving_ns"] for row in track["path"]["top"]]
        for number, sums in list(enumerate(track["path"]["iterations"]))[:7]:
            if sums is None:
                continue
            segments, rows, total = path(viewer, f"path?iteration={number}")
            assert total["iteration"] == number
            assert [total["start_ns"], total["end_ns"]] == [sums["start_ns"], sums["end_ns"]]
            for kind in KINDS:
                assert total[f"{kind}_ns"] == sums[f"{kind}_ns"] == sum(
                    end - start for one, start, end in zip(segments["kind"], segments["start"], segments["end"]) if one == kind)
            check_whole(segments, total)
            wide = path(viewer, f"path?iteration={number}&px=20")[0]
            check_whole(wide, total)
            assert len(wide["start"]) <= 41 and sum(wide["many"]) == len(segments["start"])


def check_whole(segments, total):
    """From the beginning to the end, without a hole."""
    assert segments["start"][0] == 0 and segments["end"][-1] == total["end_ns"] - total["start_ns"]
    assert segments["start"][1:] == segments["end"][:-1]


def test_why_there_is_no_path(recorded):
    with Viewer(PLUMB, ROOT / "tests/data/h200_training.plumb", recorded("resnet/b32")) as viewer:
        status, _, body = viewer.ask("api/1/path")
        assert status == 404 and json.loads(body)["remedy"] == "plumb run --trace -- PROGRAM"
        status, _, body = viewer.ask("api/1/path?file=1&iteration=99")
        assert status == 404 and json.loads(body) == {"why": "there is no iteration 99", "remedy": None}
