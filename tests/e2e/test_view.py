# SPDX-License-Identifier: Apache-2.0
"""plumb view: its answers are those of the verbs, and nobody but its own page gets them."""
import base64
import csv
import hashlib
import html.parser
import io
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import time
import urllib.parse

import pytest
from viewing import BUILD, ENVIRONMENT, ROOT, SCRIPT, STYLE, Viewer, link_plumb, read_tables, recorded, verb

TRAINING = ROOT / "tests/data/h200_training.plumb"
EXAMPLE = ROOT / "tests/data/h200_example.plumb"


@pytest.fixture(scope="module")
def plumb(tmp_path_factory):
    return link_plumb(tmp_path_factory.mktemp("viewer"))


@pytest.fixture(scope="module")
def windows(tmp_path_factory):
    file = tmp_path_factory.mktemp("windows") / "windows.plumb"
    subprocess.run([BUILD / "unit" / "test_report", "windows", file], check=True, timeout=60)
    return file


@pytest.fixture(scope="module")
def viewer(plumb, windows):
    with Viewer(plumb, TRAINING, EXAMPLE, windows, "--", windows) as running:
        yield running


# ---- answers ----

@pytest.mark.parametrize("question, words", [
    ("report", ("report", TRAINING, "--json")),
    ("report?by=kernel&top=3", ("report", TRAINING, "--by", "kernel", "--top", 3, "--json")),
    ("report?by=context&inverted=0&top=0", ("report", TRAINING, "--by", "context", "--top", 0, "--json")),
    ("report?by=kernel&inverted=1", ("report", TRAINING, "--by", "kernel", "--inverted", "--json")),
    ("report?by=line&metric=op.time&format=csv", ("report", TRAINING, "--by", "line", "--metric", "op.time", "--csv")),
    ("report?by=operator&filter=conv%7Crelu", ("report", TRAINING, "--by", "operator", "--filter", "conv|relu", "--json")),
    ("tables?kind=A10&kind=A1", ("tables", TRAINING, "A10", "A1", "--json")),
    ("tables?kind=A8&layer=operator&format=csv", ("tables", TRAINING, "A8", "--layer", "operator", "--csv")),
    ("iters", ("iters", TRAINING, "--json")),
    ("iters?format=csv", ("iters", TRAINING, "--csv")),
    ("explain?iteration=3", ("iters", TRAINING, "--explain", 3, "--json")),
    ("report?by=kernel&file=1&format=csv", ("report", EXAMPLE, "--by", "kernel", "--csv")),
])
def test_answers_are_those_of_the_verbs(viewer, plumb, question, words):
    assert viewer.get(question) == verb(plumb, *words)


@pytest.mark.parametrize("window", ["all", "startup", "loop", "loop:2"])
def test_windows_are_those_of_the_verbs(viewer, plumb, windows, window):
    choice = ("--window", window) if window != "all" else ()  # else findings that nobody stored are made
    want = verb(plumb, "report", windows, "--by", "kernel", "--json", *choice)
    assert viewer.get(f"report?by=kernel&file=2&window={window}") == want
    each = verb(plumb, "tables", windows, "A10", "--window", window, "--csv")
    assert viewer.get(f"tables?kind=A10&file=2&window={window}&format=csv") == each


def test_without_a_window_rows_are_of_the_main_loop(viewer):
    assert viewer.json("report?by=kernel&file=2")["window"]["name"] == "loop:1"
    assert viewer.json("overview?file=2")["window"]["name"] == "all"
    assert viewer.json("report?by=kernel&file=2&per_iteration=1")["window"]["iterations"] == 400
    assert viewer.json("report?by=kernel")["window"]["name"] == "all"  # it has no loop


@pytest.mark.parametrize("question", ["flame?px=500", "frame?node=1", "flame?view=up", "flame?view=callees&of=3", "flame?metric=op.time"])
def test_flame_graphs_are_the_same_if_the_usual_one_was_prepared(plumb, windows, question):
    with Viewer(plumb, windows) as fresh, Viewer(plumb, windows) as opened:
        assert opened.ask("")[0] == 200  # the page: plumb begins to make the usual flame graph
        assert opened.get(question) == opened.get(question) == fresh.get(question)


def test_a_comparison_is_that_of_the_verb(plumb, windows):
    with Viewer(plumb, TRAINING, EXAMPLE) as two:
        want = verb(plumb, "diff", TRAINING, EXAMPLE, "--json")
        assert two.get("diff") == want
        assert two.get("diff?by=kernel&format=csv&top=0") == verb(
            plumb, "diff", TRAINING, EXAMPLE, "--by", "kernel", "--csv", "--top", 0)


def test_files_before_and_after_the_dashes(viewer, plumb, windows):
    want = json.loads(verb(plumb, "diff", "--json", TRAINING, EXAMPLE, windows, "--", windows))
    assert viewer.json("diff") == want


def test_columns_have_the_rows_of_csv(viewer):
    for question in ("report?by=kernel&top=0", "tables?kind=A10", "iters", "findings"):
        more = "&" if "?" in question else "?"
        rows = list(csv.DictReader(io.StringIO(viewer.get(question + more + "format=csv").decode())))
        table = next(iter(read_tables(viewer.get(question + more + "format=columns")).values()))
        assert list(table) == list(rows[0])
        assert {len(column) for column in table.values()} == {len(rows)}
        for name, column in table.items():
            for got, want in zip(column, (row[name] for row in rows)):
                assert (got is None) == (want == "") or got == "", name
                if isinstance(got, int) and not isinstance(got, bool):
                    assert str(got) == want


@pytest.fixture(scope="module")
def ranks(plumb, tmp_path_factory):
    """A recorded run on two GPUs, in which rank 1 is late."""
    with Viewer(plumb, recorded("programs/ddp", tmp_path_factory.mktemp("ranks")), TRAINING) as running:
        yield running


def table_rows(table):
    names = [column["name"] for column in table["columns"]]
    return [dict(zip(names, row)) for row in table["rows"]]


def test_ranks_are_those_of_the_finding(ranks):
    answer = ranks.json("ranks")
    finding = next(one for one in ranks.json("findings")["findings"] if one["rule"] == "ranks")["evidence"]
    assert answer["of"] == "loop" and answer["newest"] == finding["newest"]
    assert answer["end_ns"] - answer["start_ns"] == finding["looked_at_ns"] and answer["steps"] == finding["steps"]
    rows = table_rows(answer["ranks"])
    assert [row["rank"] for row in rows] == [0, 1]
    for row, known in zip(rows, finding["ranks"]):
        parts = ("computing", "hidden", "exposed", "waiting", "copies", "idle")
        assert sum(row[name] for name in parts) == row["whole"] == finding["looked_at_ns"]
        assert row["waiting"] == known["waiting_ns"] and row["idle"] == known["idle_ns"] and row["late"] == known["late_times"]
        assert row["computing"] + row["hidden"] == known["compute_ns"]
        assert row["exposed"] + row["waiting"] == known["collectives_ns"]
        assert row["step_low"] < row["step"] < row["step_high"]
    waits = table_rows(answer["waits"])
    assert waits == sorted(waits, key=lambda row: -row["waiting"])
    assert (waits[0]["rank"], waits[0]["for_rank"], waits[0]["operation"]) == (0, 1, finding["operation"])
    assert sum(row["waiting"] for row in waits if row["for_rank"] == 1) == rows[1]["caused"]
    assert len(table_rows(ranks.json("ranks?top=1")["waits"])) == 1


def test_ranks_as_csv_and_columns(ranks):
    rows = list(csv.DictReader(io.StringIO(ranks.get("ranks?format=csv").decode())))
    tables = read_tables(ranks.get("ranks?format=columns"))
    assert list(tables) == ["ranks", "ranks.waits"]
    assert [str(value) for value in tables["ranks"]["idle"]] == [row["idle"] for row in rows]
    assert tables["ranks.waits"]["operation"] == [row["operation"] for row in table_rows(ranks.json("ranks")["waits"])]


def test_one_rank_has_a_remedy(ranks):
    assert ranks.json("about")["has"]["ranks"] and not ranks.json("about?file=1")["has"]["ranks"]
    status, _, body = ranks.ask("api/1/ranks?file=1")
    assert status == 404 and "torchrun" in json.loads(body)["remedy"]


def test_a_flame_graph_of_one_rank(ranks):
    total = {rank: read_tables(ranks.get(f"flame?window=all{rank}"))["flame.total"]["value"][0] for rank in ("", "&rank=0", "&rank=1")}
    assert total[""] == total["&rank=0"] + total["&rank=1"] and min(total.values()) > 0
    busy = {row["name"]: row["inclusive"]["gpu.time"]["sum"] for row in ranks.json("report?by=rank&window=all")["rows"]}
    assert sorted(busy.values()) == sorted((total["&rank=0"], total["&rank=1"]))
    frame = ranks.json("frame?window=all&rank=1&node=1")
    gpu = next(value for value in frame["values"] if value["metric"] == "gpu.time")
    table = read_tables(ranks.get("flame?window=all&rank=1"))["flame"]
    assert gpu["total"] == table["value"][table["node"].index(1)]
    assert ranks.ask("api/1/flame?rank=7")[0] == 400


def send(viewer, path):
    """A connection that has asked and has not read yet."""
    knock = socket.create_connection(("127.0.0.1", viewer.port), timeout=20)
    knock.sendall(f"GET {viewer.base}{path} HTTP/1.1\r\nHost: {viewer.host}\r\n\r\n".encode())
    return knock


def read_all(knock):
    with knock:
        return b"".join(iter(lambda: knock.recv(65536), b""))


def test_iterations_are_found_beside_other_questions(plumb):
    with Viewer(plumb, TRAINING, EXAMPLE) as two:
        questions = ["timeline/bands?format=csv", "timeline/bands?px=200&format=csv", "timeline/bands?file=1&format=csv"]
        send(two, "api/1/timeline/bands?px=100").close()  # who does not wait for the answer harms nobody
        asked = [send(two, f"api/1/{question}") for question in questions]
        assert two.get("timeline/spans?px=100&format=csv").startswith(b"track,depth,start,end,name")
        bands = [read_all(knock) for knock in asked]
        for question, reply in zip(questions, bands):
            assert reply.startswith(b"HTTP/1.1 200") and reply.endswith(two.get(question)), question
        rows = [len(body.split(b"\r\n\r\n", 1)[1].splitlines()) for body in bands]
        assert rows[0] > rows[1] > 1
        every = list(csv.DictReader(io.StringIO(two.get("timeline/bands?format=csv").decode())))
        t0, t1 = (int(every[len(every) * part // 4]["start"]) for part in (1, 2))
        ranged = list(csv.DictReader(io.StringIO(two.get(f"timeline/bands?t0={t0}&t1={t1}&format=csv").decode())))
        assert 0 < len(ranged) < len(every)
        assert ranged == [row for row in every if int(row["end"]) >= t0 and int(row["start"]) < t1]


def test_it_ends_while_iterations_are_found(plumb):
    with Viewer(plumb, TRAINING) as one:
        send(one, "api/1/timeline/bands").close()
        knock = send(one, "api/1/timeline/bands?px=7")
        assert one.end()[0] == 0
        knock.close()


def test_about_says_what_is_open(viewer, windows):
    about = viewer.json("about")
    assert [file["name"] for file in about["files"]] == [str(p) for p in (TRAINING, EXAMPLE, windows, windows)]
    assert [m["name"] for m in about["metrics"] if m["is_default"]] == ["gpu.time"]
    report = viewer.json("report?by=kernel&top=0")
    assert next(m for m in about["metrics"] if m["name"] == "gpu.time")["total"] == report["total"]["sum"]
    assert about["has"]["gpu"] and about["has"]["gpu_work"] and not about["has"]["spans"]
    assert [w["name"] for w in viewer.json("about?file=2")["windows"]] == ["startup", "loop:1", "loop:2", "rest"]


def test_the_overview_has_findings_and_no_rows(viewer, plumb):
    overview, report = viewer.json("overview"), json.loads(verb(plumb, "report", TRAINING, "--json", "--top", 0))
    for key in ("run", "processes", "devices", "memory", "findings", "ledger", "windows", "gpu_work"):
        assert overview[key] == report[key], key
    assert "rows" not in overview


def test_a_flame_graph_holds_the_whole(viewer):
    tables = read_tables(viewer.get("flame"))
    boxes, total = tables["flame"], tables["flame.total"]
    report = viewer.json("report?by=context")
    assert total["metric"] == ["gpu.time"] and total["value"] == [report["total"]["sum"]]
    top = [value for value, depth in zip(boxes["value"], boxes["depth"]) if not depth]
    assert sum(top) == report["total"]["sum"]
    merged = read_tables(viewer.get("flame?px=10"))["flame"]
    assert len(merged["node"]) < len(boxes["node"])
    half = read_tables(viewer.get("flame?x0=0.5&x1=1&px=1000"))["flame"]
    assert all(x1 > 0.5 for x1 in half["x1"])


def test_a_box_in_detail(viewer):
    boxes = read_tables(viewer.get("flame?view=heavy"))["flame"]
    node, name = boxes["node"][-1], boxes["name"][-1]
    frame = viewer.json(f"frame?view=heavy&root=1&node={node}")
    assert frame["node"] == node and frame["frame"] == boxes["frame"][-1] and frame["path"][-1] == frame["name"] == name
    assert next(v["total"] for v in frame["values"] if v["metric"] == "gpu.time") == boxes["value"][-1]


@pytest.fixture(scope="module")
def compared(plumb, tmp_path_factory):
    """plumb view of two recorded runs of one program."""
    folder = tmp_path_factory.mktemp("compared")
    files = [recorded(f"programs/hf-train-{name}", folder) for name in ("fault", "healthy")]
    with Viewer(plumb, *files) as running:
        running.files = files
        yield running


def columns(boxes):
    """The rows of a table of columns."""
    return [dict(zip(boxes, row)) for row in zip(*boxes.values())]


@pytest.mark.parametrize("metric", ["gpu.time", "op.time"])
def test_a_flame_graph_of_two_profiles_holds_both(compared, plumb, metric):
    """With the call paths and the sums per iteration of plumb diff."""
    tables = read_tables(compared.get(f"flame?file=1&against=0&width=either&metric={metric}"))
    total = {name: column[0] for name, column in tables["flame.total"].items()}
    assert (total["iterations"], total["before_iterations"], total["unseen"], total["width"]) == (100, 100, 0, "either")
    for side, file in (("value", 1), ("before", 0)):
        whole = compared.json(f"report?by=kernel&metric={metric}&file={file}&window=all")["total"]["sum"]
        assert total[side] == pytest.approx(whole / 100)
    boxes = columns(tables["flame"])
    assert sum(box["value"] for box in boxes if not box["depth"]) == pytest.approx(total["value"] - total["self"])
    assert all(box["change"] == pytest.approx(box["value"] - box["before"], abs=1e-6) for box in boxes)
    for box in boxes:
        assert box["flags"] & 48 and (box["flags"] & 16 or not box["value"]) and (box["flags"] & 32 or not box["before"])
    # The wider each box, the more it holds on one of the sides.
    assert all(box["x1"] - box["x0"] >= max(box["value"], box["before"]) / sum(
        max(one["value"], one["before"]) for one in boxes) for box in boxes)


def test_boxes_of_two_profiles_are_the_call_paths_of_diff(compared, plumb):
    """Of profiles without iterations known one by one, the sums are those of diff's rows."""
    files = [str(TRAINING), str(EXAMPLE)]
    with Viewer(plumb, *files) as two:
        rows = json.loads(verb(plumb, "diff", "--json", "--by", "context", "--top", "0", *files))
        boxes = columns(read_tables(two.get("flame?file=1&against=0&width=either&view=down"))["flame"])
        assert rows["metric"] == "gpu.time" and rows["statistic"] != "mean of iterations"
        want = {}
        for row in rows["rows"]:
            if row["parent"] is not None and (row["before"] or row["after"]):
                want.setdefault((round(row["before"] or 0), round(row["after"] or 0)), []).append(row["name"])
        have = {}
        for box in boxes:
            have.setdefault((round(box["before"]), round(box["value"])), []).append(box["name"])
        assert {key: len(names) for key, names in have.items()} == {key: len(names) for key, names in want.items()}


def test_what_only_one_profile_has_is_said(plumb, tmp_path):
    with Viewer(plumb, recorded("programs/compiled-fault", tmp_path), recorded("programs/compiled-healthy", tmp_path)) as two:
        question = "flame?file=1&against=0&window=loop&width="
        sides = {width: read_tables(two.get(question + width)) for width in ("after", "before", "either")}
        only = {width: {box["name"] for box in columns(tables["flame"]) if box["flags"] & 48 == flag}
                for (width, tables), flag in zip(sides.items(), (32, 16, 32))}
        assert not only["after"] and not only["before"] and only["either"]
        unseen = {width: tables["flame.total"]["unseen"][0] for width, tables in sides.items()}
        assert unseen["after"] > 0 and unseen["before"] > 0 and unseen["either"] == 0


def test_names_are_looked_for_exactly(viewer):
    boxes = columns(read_tables(viewer.get("flame?view=up"))["flame"])
    name = max(boxes, key=lambda box: (box["layer"] == 4, box["value"]))["name"]
    query = f"flame?view=up&named={urllib.parse.quote(name, safe='')}"
    found = columns(read_tables(viewer.get(query))["flame"])
    assert {box["name"] for box in found if box["flags"] & 2} == {name}
    total = read_tables(viewer.get(query))["flame.total"]
    assert total["matched"] == [sum(box["value"] for box in boxes if box["name"] == name and not box["depth"])]
    assert read_tables(viewer.get("flame?named=" + urllib.parse.quote(name[:-1], safe="")))["flame.total"]["matched"] == [0]


def test_a_finding_leads_to_its_box(compared):
    """In the part of the run that it is of."""
    findings = [one for one in compared.json("findings")["findings"] if one["context"]]
    assert len(findings) > 5
    for finding in findings:
        for view in ("down", "heavy", "up"):
            question = f"view={view}&window={finding['window'] or 'all'}&metric=gpu.time"
            frame = compared.json(f"frame?finding={finding['id']}&{question}")
            boxes = columns(read_tables(compared.get(f"flame?{question}"))["flame"])
            if not frame["node"]:  # the root: this part of the run has no GPU time there, nor in its callers
                assert frame["path"] == []
                if view == "down":
                    assert finding["rule"] in ("startup", "latency") and not any(box["name"].startswith(finding["context"][0] + " ") for box in boxes if not box["depth"])
                continue
            box = next(box for box in boxes if box["node"] == frame["node"])
            assert (frame["x0"], frame["x1"], frame["depth"]) == (pytest.approx(box["x0"]), pytest.approx(box["x1"]), box["depth"])
            if finding["rule"].startswith("hotspot") and finding["context"][-1].startswith(("void", "sm80", "aten::mm")):
                assert finding["context"][-1] in frame["name"] if view == "down" else finding["context"][-1] in frame["path"][0] + frame["name"]
                assert finding["id"] in [one["id"] for one in frame["findings"]]


def fused_stacks(file):
    """The stacks of all that was fused and took GPU time: names from the outermost frame on."""
    with sqlite3.connect(file) as base:
        parents = {row[0]: row[1:] for row in base.execute(
            "select contexts.id, parent, coalesce(display, name) from contexts join frames on frames.id = frame")}
        origins = [row[0] for row in base.execute("""
            select distinct origin from origins join contexts on contexts.id = context where reason = 'fused' and exists (
                select 1 from context_values join metrics on metrics.id = metric
                where context_values.context between contexts.id and last and name = 'gpu.time' and sum > 0)""")]
    stacks = set()
    for at in origins:
        stack = []
        while parents[at][0] is not None:
            stack.append(parents[at][1])
            at = parents[at][0]
        stacks.add(tuple(reversed(stack)))
    return stacks


def test_a_fused_kernel_opens_all_its_stacks(plumb, tmp_path):
    """Those that the profile has, of each operator that was fused, and no others."""
    file = recorded("programs/compiled-healthy", tmp_path)
    want, have, several = fused_stacks(file), set(), 0
    with Viewer(plumb, file) as one:
        boxes = [box for box in columns(read_tables(one.get("flame?window=all"))["flame"]) if box["flags"] & 4]
        for box in boxes:
            frame = one.json(f"frame?window=all&node={box['node']}")
            stacks = [tuple(step["name"] for step in part["stack"]) for part in frame["from"]]
            assert frame["from"] and all(part["reason"] == "fused" for part in frame["from"])
            assert all(part["operator"] in [None, *stack] for part, stack in zip(frame["from"], stacks))
            have.update(stacks)
            several += len(stacks) > 1
    assert several > 10 and have == want
    assert any("compiled.py" in (step["file"] or "") for part in frame["from"] for step in part["stack"])


def test_a_timeline_holds_the_newest_work(viewer):
    tracks = read_tables(viewer.get("timeline/tracks"))["timeline.tracks"]
    assert set(tracks["kind"]) == {"stream"} and set(tracks["source"]) == {"newest"}
    spans = read_tables(viewer.get("timeline/spans"))["timeline.spans"]
    assert len(spans["start"]) == sum(tracks["spans"])
    assert min(spans["start"]) == min(tracks["start"]) and max(spans["end"]) == max(tracks["end"])
    first, last = min(spans["start"]), max(spans["end"])
    half = (first + last) // 2
    part = read_tables(viewer.get(f"timeline/spans?t0={first}&t1={half}"))["timeline.spans"]
    assert 0 < len(part["start"]) < len(spans["start"]) and max(part["start"]) <= half
    assert sum(read_tables(viewer.get("timeline/spans?px=10"))["timeline.spans"]["many"]) == len(spans["start"])
    sums = read_tables(viewer.get("timeline/sum"))["timeline.sum"]
    assert sum(sums["count"]) == len(spans["start"])
    assert sum(sums["sum"]) == sum(end - start for start, end in zip(spans["start"], spans["end"]))
    one = read_tables(viewer.get(f"timeline/sum?tracks={tracks['track'][0]}&top=1&by=track"))["timeline.sum"]
    assert one["track"] == [tracks["track"][0]]


@pytest.mark.parametrize("question, says", [
    ("report?by=foo", 'by takes one of context|'),
    ("report?color=red", 'no key "color"; its keys are file, format'),
    ("report?top=-1", "top takes an integer from 0"),
    ("report?top=1&top=2", "given twice"),
    ("report?by", 'no "="'),
    ("report?filter=%zz", "not percent-encoded"),
    ("report?filter=%00", "not percent-encoded"),
    ("report?filter=%ff", "not percent-encoded"),
    ("report?filter=", "filter is empty"),
    ("report?filter=%28", "Unmatched"),
    ("report?metric=nope", "nope"),
    ("report?file=9", "there is no file 9; files are 0 to 3"),
    ("report?window=week", "window"),
    ("report?format=xml", "format takes one of json|csv|columns"),
    ("explain", "needs iteration=NUMBER"),
    ("tables?kind=A99", 'no table "A99"'),
    ("flame?layers=red", "layers takes"),
    ("flame?x0=0.5&x1=0.25", "x0 < x1"),
    ("flame?view=callers", "needs of=FRAME"),
    ("flame?search=%28", "search"),
    ("frame", "needs node=NUMBER or finding=ID"),
    ("frame?node=1&finding=x", "needs node=NUMBER or finding=ID"),
    ("flame?against=9", "there is no file 9; files are 0 to 3"),
    ("flame?against=1&metric=op.count", "no metric"),
    ("flame?against=1&width=both", "width takes one of after|before|either"),
    ("frame?node=99999999", "no node 99999999"),
    ("flame?x0=nan", "x0 takes a number"),
    ("timeline/spans?tracks=1,x", "tracks takes"),
    ("timeline/spans?tracks=99", "99"),
    ("timeline/spans?t0=1e300", "since the start of the run"),
    ("timeline/spans?px=-1", "px is at least 0"),
])
def test_a_wrong_query_is_told_what_is_right(viewer, question, says):
    status, headers, body = viewer.ask("api/1/" + question)
    assert status == 400 and says in body.decode()
    assert body.count(b"\n") == 1 and headers["Content-Type"].startswith("text/plain")


def test_what_a_profile_lacks_comes_with_a_remedy(plumb, tmp_path):
    cpu = tmp_path / "cpu.plumb"
    subprocess.run([BUILD / "unit" / "test_report", "cpu", cpu], check=True, timeout=60)
    with Viewer(plumb, cpu) as viewer:
        status, _, body = viewer.ask("api/1/iters")
        assert status == 404
        assert json.loads(body) == {"why": "the profile has no times of GPU work; record with --trace",
                                    "remedy": "plumb run --trace -- PROGRAM"}
        status, _, body = viewer.ask("api/1/timeline/tracks")
        assert status == 404 and json.loads(body)["remedy"] == "plumb run --trace -- PROGRAM"
        status, _, body = viewer.ask("api/1/diff")
        assert status == 404 and json.loads(body)["remedy"] == "plumb view BEFORE AFTER"
        status, _, body = viewer.ask("api/1/report?window=loop")
        assert status == 404 and "loop" in json.loads(body)["why"]


# ---- who may ask ----

def test_only_its_own_page_may_ask(viewer):
    local = {"Host": f"localhost:{viewer.port}"}
    for headers in ({}, local, {"Origin": "http://" + viewer.host}, {"Sec-Fetch-Site": "same-origin"},
                    {"Sec-Fetch-Site": "none"}, {**local, "Origin": f"http://localhost:{viewer.port}"}):
        assert viewer.ask("api/1/about", headers=headers)[0] == 200, headers
    for headers in ({"Host": None}, {"Host": "evil.example"}, {"Host": f"evil.example:{viewer.port}"},
                    {"Host": "127.0.0.1"}, {"Host": f"127.0.0.1:{viewer.port + 1}"}, {"Host": f"[::1]:{viewer.port}"},
                    {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "https://" + viewer.host},
                    {"Origin": f"http://localhost:{viewer.port}"}, {"Sec-Fetch-Site": "cross-site"},
                    {"Sec-Fetch-Site": "same-site"}):
        for path in ("api/1/about", ""):
            status, sent, body = viewer.ask(path, headers=headers)
            if headers == {"Sec-Fetch-Site": "same-site"} and not path:
                assert status == 200  # a link on another page of this machine
            else:
                assert status == 403 and b"files" not in body, headers
            assert not any(name.lower().startswith("access-control") for name in sent)


def test_a_header_that_is_there_twice_is_refused(viewer):
    with socket.create_connection(("127.0.0.1", viewer.port), timeout=20) as raw:
        raw.sendall(f"GET {viewer.base}api/1/about HTTP/1.1\r\nHost: {viewer.host}\r\nHost: evil.example\r\n\r\n".encode())
        assert raw.makefile("rb").readline().startswith(b"HTTP/1.1 40")


def test_other_paths_are_not_found(viewer):
    secret = viewer.base.strip("/")
    wrong = secret[:-1] + ("A" if secret[-1] != "A" else "B")
    for base in ("/", "/x/", f"/{wrong}/", f"/{secret}", f"/{secret}x/", f"//{secret}/", "/api/1/about", "/index.html",
                 f"/{secret}/../../etc/passwd", f"/{secret}/api/1/../../../etc/passwd", f"/{secret}/%2e%2e/x",
                 f"/{secret}/api/1/", f"/{secret}/api/2/about", f"/{secret}/" + "a" * 3000, "/%00", f"/{secret}%2F"):
        status, _, body = viewer.ask("", base=base)
        assert status == 404 and b"root:" not in body, base
    assert re.fullmatch(r"[-_A-Za-z0-9]{32}", secret)


def test_a_whole_address_in_the_request_line_is_no_way_round(viewer):
    for host in ("evil.example", viewer.host):
        with socket.create_connection(("127.0.0.1", viewer.port), timeout=20) as raw:
            raw.sendall(f"GET http://evil.example{viewer.base} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert b" 200 " not in raw.makefile("rb").readline()


def test_methods(viewer):
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "BREW"):
        assert viewer.ask("api/1/about", method)[0] in (400, 405, 501), method
    assert viewer.ask("api/1/about", "POST", body=b"")[0] == 405
    got, head = viewer.ask("api/1/about"), viewer.ask("api/1/about", "HEAD")
    assert head[0] == 200 and head[2] == b"" and head[1]["Content-Length"] == str(len(got[2]))


def test_oversized_requests_are_refused(viewer):
    assert viewer.ask("api/1/about", headers={"X": "a" * 20000})[0] in (400, 413)
    assert viewer.ask("api/1/about?" + "a" * 20000)[0] in (400, 404, 413)
    assert viewer.ask("api/1/report?" + "file=0&" * 1300)[0] == 400
    assert viewer.ask("api/1/quit", "POST", body=b"a" * 5000)[0] in (400, 413)
    assert viewer.ask("api/1/about")[0] == 200


def test_headers_of_every_reply(viewer):
    for path in ("", "api/1/about", "nope", "api/1/report?by=foo"):
        headers = viewer.ask(path)[1]
        assert headers["Cache-Control"] == "no-store"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"


def test_it_listens_on_this_machine_only(viewer):
    port = f"{viewer.port:04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if os.path.exists(table):
            with open(table) as lines:
                listening = [line.split()[1] for line in lines if line.split()[3] == "0A"]
            assert [address for address in listening if address.endswith(":" + port)] == (
                ["0100007F:" + port] if table.endswith("tcp") else [])


def test_slow_requests_end_and_hold_nobody_up(plumb):
    """More connections than the server takes, which say nothing or little: it ends them, and answers."""
    with Viewer(plumb, EXAMPLE) as viewer:
        idle = [socket.create_connection(("127.0.0.1", viewer.port), timeout=30) for _ in range(70)]
        for raw in idle[::2]:
            raw.sendall(b"GET / HT")
        started = time.monotonic()
        while time.monotonic() - started < 8:  # a byte now and then does not keep a connection
            for raw in idle[:4:2]:
                raw.sendall(b"T")
            time.sleep(1)
        assert viewer.ask("api/1/about")[0] == 200
        assert b"200" not in idle[0].recv(1000)
        for raw in idle:
            raw.close()


# ---- how it lives and ends ----

def test_two_clients_at_once(viewer):
    first = socket.create_connection(("127.0.0.1", viewer.port), timeout=20)
    first.sendall(f"GET {viewer.base}api/1/about HTTP/1.1\r\nHost: {viewer.host}\r\n".encode())
    assert viewer.ask("api/1/report?by=kernel")[0] == 200
    first.sendall(b"\r\n")
    assert first.makefile("rb").readline() == b"HTTP/1.1 200 OK\r\n"
    first.close()


def test_a_client_that_leaves_ends_nothing(viewer):
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", viewer.port), timeout=20) as raw:
            raw.sendall(f"GET {viewer.base}api/1/report?by=context&top=0 HTTP/1.1\r\nHost: {viewer.host}\r\n\r\n".encode())
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    assert viewer.ask("api/1/about")[0] == 200


def test_the_profile_may_go_away(plumb, tmp_path):
    path = tmp_path / "gone.plumb"
    path.write_bytes(TRAINING.read_bytes())
    with Viewer(plumb, path) as viewer:
        path.unlink()
        for question in ("report?by=kernel", "iters", "flame", "tables"):
            assert viewer.get(question)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it(plumb, number):
    viewer = Viewer(plumb, EXAMPLE)
    waiting = socket.create_connection(("127.0.0.1", viewer.port), timeout=20)
    assert viewer.end(number)[0] == 0
    waiting.close()


def test_only_the_page_can_end_it(plumb):
    viewer = Viewer(plumb, EXAMPLE)
    assert viewer.ask("api/1/quit")[0] == 405
    assert viewer.ask("api/1/quit", "POST", body=b"")[0] == 403
    assert viewer.ask("api/1/quit", "POST", {"Origin": "http://evil.example"}, body=b"")[0] == 403
    assert viewer.ask("api/1/quit", "POST", {"Origin": "http://" + viewer.host}, body=b"")[0] == 200
    viewer.process.communicate(timeout=20)
    assert viewer.process.returncode == 0


def test_a_port_in_use_is_an_error_of_one_line(viewer, plumb):
    done = subprocess.run([plumb, "view", EXAMPLE, "--no-browser", "--port", str(viewer.port)], timeout=60,
                          capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 5
    assert done.stderr == f"plumb: port {viewer.port} is in use; leave out --port, or choose another one\n"


def test_over_ssh_it_prints_how_to_forward_the_port(plumb):
    viewer = Viewer(plumb, EXAMPLE, environment={"SSH_CONNECTION": "10.0.0.1 5000 10.0.0.2 2222"})
    code, said = viewer.end()
    assert code == 0
    assert re.search(rf"^  ssh -p 2222 -N -L {viewer.port}:127.0.0.1:{viewer.port} \S+@10\.0\.0\.2$", said, re.M)


def test_the_browser_gets_an_address_that_works_once(plumb, tmp_path):
    """Other users see the words of a command. So the browser's does not have the secret."""
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" >{tmp_path}/new && mv {tmp_path}/new {tmp_path}/address\n')
    browser.chmod(0o755)
    process = subprocess.Popen([plumb, "view", EXAMPLE], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                               env={**ENVIRONMENT, "BROWSER": str(browser)})
    try:
        address = process.stdout.readline().strip()
        end = time.monotonic() + 20
        while not (tmp_path / "address").exists() and time.monotonic() < end:
            time.sleep(0.05)
        ticket = (tmp_path / "address").read_text()
        secret = address.rstrip("/").rpartition("/")[2]
        assert secret not in ticket
        viewer = Viewer.__new__(Viewer)
        viewer.host, _, path = ticket.removeprefix("http://").partition("/")
        viewer.port, viewer.base = int(viewer.host.rpartition(":")[2]), "/" + path
        assert viewer.ask("", headers={"Sec-Fetch-Site": "cross-site"})[0] == 403
        status, headers, _ = viewer.ask("")
        assert status == 303 and headers["Location"] == f"/{secret}/"
        assert viewer.ask("")[0] == 404
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)


def test_libevent_is_linked_in():
    done = subprocess.run(["ldd", BUILD / "plumb"], capture_output=True, text=True, timeout=60, check=True)
    assert "libevent" not in done.stdout


# ---- the page ----

class Page(html.parser.HTMLParser):
    """The elements of a page: [(tag, attributes, text)]."""

    def __init__(self, text):
        super().__init__()
        self.elements = []
        self.open = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append([tag, dict(attrs), ""])
        self.open = True

    def handle_endtag(self, tag):
        self.open = False

    def handle_data(self, data):
        if self.open:
            self.elements[-1][2] += data

    def all(self, tag):
        return [(attributes, text) for name, attributes, text in self.elements if name == tag]


def policy_of(text):
    return {part.split()[0]: part.split()[1:] for part in text.split(";") if part.strip()}


def csp_hash(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def check_policy(policy, served):
    assert policy["default-src"] == ["'none'"]
    assert policy["script-src"] == [csp_hash(SCRIPT)] and policy["style-src"] == [csp_hash(STYLE)]
    assert policy.get("connect-src") == (["'self'"] if served else None)


def test_the_page_may_run_its_own_script_and_nothing_else(viewer):
    status, headers, body = viewer.ask("")
    page = Page(body.decode())
    assert status == 200 and headers["Content-Type"] == "text/html; charset=utf-8"
    (meta,) = [a["content"] for a, _ in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    check_policy(policy_of(headers["Content-Security-Policy"]), True)
    check_policy(policy_of(meta), True)
    assert policy_of(headers["Content-Security-Policy"])["frame-ancestors"] == ["'none'"]
    assert [text for _, text in page.all("script")] == [SCRIPT] and [text for _, text in page.all("style")] == [STYLE]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A profile whose names, and whose own name, would end the elements that they stand in."""
    path = tmp_path_factory.mktemp("hostile") / '<img src=x onerror=alert(1)>"&.folded'
    path.write_text("main;</script><script>alert(1)</script> 5\nmain;<!--<script> 2\nmain;\u202egnp.exe 1\n")
    return path


def test_names_stay_text(plumb, hostile, tmp_path):
    out = tmp_path / "out.html"
    subprocess.run([plumb, "view", hostile, "--html", out], check=True, timeout=60, env=ENVIRONMENT)
    with Viewer(plumb, hostile) as viewer:
        served = viewer.ask("")[2].decode()
        assert b"</script><script>alert(1)</script>" in viewer.get("report?by=context&top=0")
    for text in (served, out.read_text()):
        page = Page(text)
        assert page.all("title") == [({}, hostile.name)]
        assert not page.all("img") and "alert(1)</script>" not in text
        assert [t for a, t in page.all("script") if a.get("type") == "module"] == [SCRIPT]


def one_file(plumb, path, folder):
    out = folder / "page.html"
    done = subprocess.run([plumb, "view", path, "--html", out], timeout=60, capture_output=True, text=True,
                          env=ENVIRONMENT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return out


def unpack(text):
    return subprocess.run(["zstd", "-dc"], input=base64.b64decode(text), stdout=subprocess.PIPE, check=True,
                          timeout=60).stdout


def test_one_file_holds_every_answer_that_it_lists(plumb, windows, tmp_path):
    text = one_file(plumb, windows, tmp_path).read_text()
    page = Page(text)
    check_policy(policy_of(next(a["content"] for a, _ in page.all("meta") if "http-equiv" in a)), False)
    held = {a["id"]: t for a, t in page.all("script") if a.get("type") == "application/octet-stream;base64"}
    index = json.loads(next(t for a, t in page.all("script") if a.get("id") == "plumb-answers"))["answers"]
    for key in ("about", "overview", "overview?window=all", "findings", "report", "report?by=kernel",
                "report?by=kernel&window=all", "report?by=memory", "flame", "flame?view=up", "flame?window=all",
                "flame?metric=gpu.time&view=heavy&window=loop", "iters", "tables", "ranks", "diff", "tables?kind=A10",
                "timeline/tracks", "timeline/spans", "timeline/bands", "timeline/arrows", "timeline/sum"):
        assert key in index, key
    with Viewer(plumb, windows) as viewer:
        for key, entry in index.items():
            if "why" in entry:
                status, _, body = viewer.ask("api/1/" + key)
                assert status == 404 and json.loads(body) == {"why": entry["why"], "remedy": entry["remedy"]}
                continue
            data = unpack(held[entry["id"]])
            assert (data[:8] == b"plumbcol") == (entry["type"] == "columns")
            more = "&" if "?" in key else "?"
            if key.startswith("report"):
                key += more + "top=1000"
            elif "1/" in entry.get("note", ""):
                key += more + "px=" + re.search(r"1/(\d+)", entry["note"])[1]
            assert data == viewer.get(key), key
    assert set(held) == {entry["id"] for entry in index.values() if "why" not in entry}


def test_one_file_asks_the_network_for_nothing(plumb, windows, tmp_path):
    text = one_file(plumb, windows, tmp_path).read_text()
    text = re.sub(r'(<script type="application/octet-stream;base64"[^>]*>)[^<]*', r"\1", text)
    assert not re.search(r"https?://|//[a-z]+\.[a-z]|url\(|@import", text)
    assert all("src" not in a for tag, a, _ in Page(text).elements)
    assert [a["href"] for a, _ in Page(text).all("link")] == ["data:,"]


def test_one_file_replaces_only_its_like(plumb, tmp_path):
    out = one_file(plumb, EXAMPLE, tmp_path)
    assert out.stat().st_mode & 0o777 == 0o600
    one_file(plumb, EXAMPLE, tmp_path)
    mine = tmp_path / "mine.html"
    mine.write_text("<!doctype html>my own\n")
    done = subprocess.run([plumb, "view", EXAMPLE, "--html", mine], timeout=60, capture_output=True, text=True,
                          env=ENVIRONMENT)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "mine.html" in done.stderr
    assert "give --html another name, or --force to replace it" in done.stderr
    assert mine.read_text() == "<!doctype html>my own\n"
    subprocess.run([plumb, "view", EXAMPLE, "--html", mine, "--force"], timeout=60, check=True, env=ENVIRONMENT)
    assert "plumb-answers" in mine.read_text()


def test_one_file_on_a_full_disk(plumb):
    done = subprocess.run([plumb, "view", EXAMPLE, "--html", "/dev/full"], timeout=60, capture_output=True, text=True,
                          env=ENVIRONMENT)
    assert done.returncode == 5 and done.stderr.count("\n") == 1 and "no space left" in done.stderr
    assert "choose another place with --html" in done.stderr


@pytest.mark.parametrize("words, says", [
    (("--html", "x.html", "--port", "80"), "--html serves nothing"),
    (("--force",), "--force is for --html"),
    (("--port", "70000"), "a port is at most 65535"),
    (("nothing.plumb",), "nothing.plumb"),
])
def test_wrong_use(plumb, words, says):
    done = subprocess.run([plumb, "view", EXAMPLE, *words], timeout=60, capture_output=True, text=True,
                          env=ENVIRONMENT)
    assert done.returncode in (1, 2, 5) and says in done.stderr and done.stderr.count("\n") == 1


def test_a_bundle_that_would_end_its_element_is_refused(tmp_path):
    (tmp_path / "app.js").write_text('x = "</script>"')
    (tmp_path / "app.css").write_text("")
    done = subprocess.run([ROOT / "scripts/bundle.py", tmp_path / "app.js", tmp_path / "app.css"], timeout=60,
                          capture_output=True, text=True)
    assert done.returncode and "has a tag that ends it" in done.stderr
