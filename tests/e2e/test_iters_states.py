# SPDX-License-Identifier: Apache-2.0
"""plumb iters --states: the state graph as text, JSON and CSV. All say what the viewer's answer says."""
import json
import re

import pytest
from conftest import PLUMB, ROOT, run_command
from kineto_traces import kernel
from importing import write
from viewing import Viewer, link_plumb

TRAINING = ROOT / "tests/data/h200_training.plumb"


def states(path, *options):
    done = run_command(PLUMB, "iters", path, "--states", *options)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def tables(path, *options):
    data = json.loads(states(path, "--json", *options))
    assert (data["schema"], data["verb"]) == (1, "iters")
    return {table["id"]: [dict(zip([column["name"] for column in table["columns"]], row)) for row in table["rows"]] for table in data["tables"]}


def branching(folder):
    """Twenty iterations: a1 to a8, twice b1 b2, in five of them c, and x at the end. They begin after a gap."""
    events, at = [], 0
    for number in range(20):
        at += 500
        for name in [f"a{i}" for i in range(1, 9)] + ["b1", "b2", "b1", "b2"] + (["c"] if number in (1, 2, 6, 9, 15) else []) + ["x"]:
            events.append(kernel(len(events), at, 10, name))
            at += 12
    return write(folder, events)


def test_text_says_what_json_says(tmp_path):
    path = branching(tmp_path)
    found, text = tables(path), states(path)
    (total,) = found["states.total"]
    assert total["iterations"] == 20 and total["kernels"] == 265
    assert re.search(r"track \d+, loop 1, level 0: 20 iterations with 265 kernels in \d states", text)
    rows, follows = text.split("\nwhat follows what:\n")
    shown = [re.split(r"  +", line.strip()) for line in rows.splitlines() if re.match(r" +\d", line)]
    segments = [row for row in found["states"] if row["kind"] == "segment"]
    assert [int(row[0]) for row in shown] == [row["state"] for row in segments]
    for row, state in zip(shown, segments):
        assert float(row[1]) == pytest.approx(state["per_iteration"], rel=0.01)
        assert int(row[2]) == state["kernels"]
        assert row[6] == state["name"]
    names = {0: "begin", 1: "end"}
    lines = [line.split() for line in follows.splitlines()[1:]]
    assert [(line[0], line[1], int(line[2])) for line in lines] == [
        (names.get(one["from"], str(one["from"])), names.get(one["to"], str(one["to"])), one["count"]) for one in found["states.transitions"]]
    of = {name: next(row["state"] for row in found["states.kernels"] if row["name"] == name) for name in ("c", "x")}
    halves = [one for one in found["states.transitions"] if one["to"] == of["c"]]
    assert sum(one["count"] for one in halves) == 5
    assert {one["count"] for one in found["states.transitions"] if one["from"] == of["c"]} == {5}


@pytest.mark.parametrize("options, question", [([], ""), (["--level", "1"], "&level=1")])
def test_it_is_the_graph_of_the_viewer(tmp_path, options, question):
    with Viewer(link_plumb(tmp_path), TRAINING) as viewer:
        want = viewer.json(f"states?format=json{question}")
    assert json.loads(states(TRAINING, "--json", *options))["tables"] == want["tables"]


def test_many_states_become_one():
    text = states(TRAINING)
    assert "others are" in text and "from the newest GPU work" in text
    assert len([line for line in text.split("\nwhat")[0].splitlines() if re.match(r" *(\d+|others)  ", line)]) == 38
    csv = states(TRAINING, "--csv")
    assert "states.transitions" in csv and "from,to,count,per_iteration,share" in csv


@pytest.mark.parametrize("options, code, words", [
    (["--explain", "1"], 1, "choose --explain or --states"), (["--loop", "0"], 1, "counted from 1"), (["--json", "--csv"], 1, "choose --json or --csv"),
    (["--level", "7"], 3, "plumb iters lists tracks, loops and levels"), (["--track", "99"], 3, "no such loop"), (["--loop", "9"], 3, "no such loop"),
])
def test_wrong_use(options, code, words):
    done = run_command(PLUMB, "iters", TRAINING, "--states", *options)
    assert done.returncode == code and words in done.stderr and done.stdout == ""
