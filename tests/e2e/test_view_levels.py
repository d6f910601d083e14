# SPDX-License-Identifier: Apache-2.0
"""The answer of plumb view about levels: the facts of plumb levels, as the rows that a page shows. The profile is of a program
whose times are known, on the stand-in driver (test_levels.py)."""
import csv
import io
import json
import sqlite3

import pytest
from conftest import PLUMB, ROOT, run_command
from test_levels import M, ML, MLG, MS, SLOW, leveled
from test_python_walker import compile_c
from viewing import Viewer, link_plumb, read_tables, verb

EXAMPLE = ROOT / "tests/data/h200_example.plumb"


@pytest.fixture(scope="module")
def plumb(tmp_path_factory):
    return link_plumb(tmp_path_factory.mktemp("viewer"))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("levels")
    clock = compile_c(folder / "clock.so", "-shared", "-fPIC", "-D_GNU_SOURCE", str(ROOT / "tests/e2e/virtual_clock.c"), "-ldl")
    done = leveled(folder, clock, "300", runs=2)
    assert done.returncode == 0, done.stderr
    return folder / "levels.plumb", json.loads(done.stdout)


@pytest.fixture(scope="module")
def viewer(plumb, made):
    with Viewer(plumb, made[0], EXAMPLE) as running:
        yield running


def test_facts_are_those_of_the_verb(viewer, made):
    answer, said = viewer.json("levels"), made[1]
    assert (answer["schema"], answer["verb"]) == (1, "levels")
    for key in ("command", "said", "measured", "order", "left_out"):
        assert answer[key] == said[key], key
    rows = {(row["context"], row["metric"], row["level"]): row for row in said["rows"]}
    assert len(rows) == len(said["rows"]) == said["rows_available"] > len(answer["rows"]) == answer["rows_available"]
    for row in answer["rows"]:
        assert row == rows[row["context"], row["metric"], row["level"]]


def test_rows_are_layers_and_gpu_work(viewer):
    rows = viewer.json("levels")["rows"]
    layers = [row for row in rows if row["metric"] == "op.time"]
    work = [row for row in rows if row["metric"] != "op.time"]
    assert rows == layers + work
    # Corrected, backward costs more than forward; measured, it seems to cost less.
    assert [row["label"] for row in layers] == ["backward", "forward"] and [row["within"] for row in layers] == [None, None]
    assert layers[1]["measured_ns"] > layers[0]["measured_ns"] and layers[1]["corrected_ns"] < layers[0]["corrected_ns"]
    assert layers[1]["passed_name"] == "backward" and layers[0]["passed_name"] is None
    assert [row["share"] for row in layers] == pytest.approx([5 / 8, 3 / 8], rel=0.02)
    # A step has 8 kernels of 0.1 ms and one of 0.5 ms. Those before the steps are short, and in nothing.
    assert [(row["label"], row["within"]) for row in work[:2]] == [("forward_kernel", "forward"), ("backward_kernel", "backward")]
    assert [row["share"] for row in work[:2]] == pytest.approx([0.8 / 1.3, 0.5 / 1.3], rel=0.02)
    assert {(row["label"][:-1], row["within"]) for row in work[2:]} <= {("set_up_", None)}
    assert all(row["measured_ns"] == row["own_ns"] for row in work)


def test_sentences_are_those_of_the_text(viewer, made):
    answer = viewer.json("levels")
    said = {one["of"]: one["text"] for one in answer["said"]}
    text = verb(PLUMB, "report", made[0], "--corrected").decode()
    assert list(said) == ["program", "layers", "kernels"]
    assert f"  the program   {said['program']}\n" in text and said["program"].startswith("6.00 ms an iteration, without plumb (95 %: ")
    assert len(answer["order"]) >= 1 and all(f"  {row['passes']}\n" in text for row in answer["order"])
    added = {level["level"]: level["overhead_ns"] for level in answer["measured"]}
    assert added["M/L"] == pytest.approx(ML - M, rel=0.02) and added["M/L/G"] == pytest.approx(MLG - ML, rel=0.02)
    for of, level in (("layers", "M/L"), ("kernels", "M/L/G")):
        words = f"looking at them adds {added[level] / MS:.2f} ms, {added[level] / answer['measured'][0]['wall_ns']['mean']:.1%}"
        assert said[of].replace(" %", "%").startswith(words), (said[of], words)
    assert SLOW * 9 == MLG - ML
    assert [level["sees"] for level in answer["measured"]] == ["the program alone", "modules and operators", "GPU work and call paths"]


def test_lists_as_csv_and_columns(viewer, made):
    everything = verb(PLUMB, "report", made[0], "--corrected", "--csv")
    assert viewer.get("levels?by=all&format=csv&top=0") == everything
    rows = list(csv.DictReader(io.StringIO(everything.decode())))
    answer = viewer.json("levels")
    for by, metric in (("layer", ["op.time"]), ("gpu", ["gpu.time", "gpu.copy_time"])):
        table = list(csv.DictReader(io.StringIO(viewer.get(f"levels?by={by}&format=csv").decode())))
        assert [int(row["context"]) for row in table] == [row["context"] for row in answer["rows"] if row["metric"] in metric]
        assert all(row in rows for row in table)
        columns = read_tables(viewer.get(f"levels?by={by}&format=columns"))["levels"]
        assert columns["corrected"] == [int(row["corrected"]) for row in table] and columns["label"] == [row["label"] for row in table]
    levels = list(csv.DictReader(io.StringIO(viewer.get("levels?by=level&format=csv").decode())))
    assert [row["level"] for row in levels] == ["M", "M/L", "M/L/G"]
    for row, level in zip(levels, made[1]["measured"]):
        assert [int(row[key]) for key in ("runs", "kept", "steps", "time", "low", "high")] == [
            level["runs"], level["kept"], level["steps"], *level["wall_ns"].values()]
        assert row["added"] == ("" if level["overhead_ns"] is None else str(level["overhead_ns"])) and row["sees"] == level["sees"]


def test_it_is_bounded(viewer):
    few, every = viewer.json("levels?top=1"), viewer.json("levels")
    assert [row["label"] for row in few["rows"]] == ["backward", "forward_kernel"]
    assert few["rows_available"] == every["rows_available"] == len(every["rows"])
    status, _, body = viewer.ask("api/1/levels?by=colour")
    assert status == 400 and "layer" in body.decode()


def test_a_level_that_was_not_measured_is_unknown(viewer, made, plumb, tmp_path):
    """As if all runs at M/L had been left out: nothing is 0, and the sentences say so."""
    path = tmp_path / "lost.plumb"
    path.write_bytes(made[0].read_bytes())
    with sqlite3.connect(path) as database:
        database.execute("UPDATE levels SET kept = 0, time_ns = NULL, low_ns = NULL, high_ns = NULL, added_ns = NULL, "
                         "added_low_ns = NULL, added_high_ns = NULL WHERE level = 'M/L'")
    with Viewer(plumb, path) as running:
        answer = running.json("levels")
    assert answer["measured"][1]["wall_ns"] == {"mean": None, "low": None, "high": None}
    assert {one["of"]: one["text"] for one in answer["said"]}["layers"] == "what looking at them adds is unknown"


def test_a_profile_without_levels_has_a_remedy(viewer):
    assert viewer.json("about?file=0")["has"]["levels"] and not viewer.json("about?file=1")["has"]["levels"]
    status, _, body = viewer.ask("api/1/levels?file=1")
    assert status == 404
    assert json.loads(body) == {"why": "the profile has no levels; measure them with plumb levels", "remedy": "plumb levels -- PROGRAM"}


def test_one_page_has_the_answer(plumb, made, tmp_path):
    done = run_command(plumb, "view", made[0], "--html", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "page.html").read_text()
    assert 'data-query="levels"' in text and 'data-query="traffic"' not in text
