# SPDX-License-Identifier: Apache-2.0
"""A default recording of a program without a GPU knows start-up, its loops and the rest."""
import collections
import json

import pytest
from plumbtest import query, recorded, run_program

PROGRAM = "windows.py"
CALLS = ("SELECT {} FROM {} v JOIN metrics m ON m.id = v.metric JOIN contexts c ON c.id = v.context "
         "JOIN frames f ON f.id = c.frame {} WHERE m.name = 'op.calls' GROUP BY {}")


@pytest.fixture(name="made")
def made_fixture(torch_python, tmp_path_factory):
    return recorded(torch_python, PROGRAM, tmp_path_factory, "done.json")


def windows(made):
    """{(kind, number): (iterations, [its stretches])}"""
    found = {}
    for kind, number, iterations, start, end in query(
            made.path, "SELECT w.kind, w.number, w.iterations, s.start_ns, s.end_ns FROM windows w "
            "JOIN window_stretches s ON s.window = w.id ORDER BY s.start_ns"):
        found.setdefault((kind, number), (iterations, []))[1].append((start, end))
    return found


def calls(made):
    """{(kind, number): {operator: calls}}"""
    found = collections.defaultdict(dict)
    for kind, number, name, count in query(
            made.path, CALLS.format("w.kind, w.number, f.name, SUM(v.sum)", "window_values",
                               "JOIN windows w ON w.id = v.window", "w.id, f.name")):
        found[kind, number][name] = count
    return found


def test_loops_in_order_of_time(made):
    found = windows(made)
    assert list(found) == [("startup", None), ("loop", 1), ("loop", 2), ("rest", None)]
    assert [len(stretches) for _, stretches in found.values()] == [1, 2, 2, 1]
    stretches = sorted(stretch for _, some in found.values() for stretch in some)
    assert all(before[1] == after[0] for before, after in zip(stretches, stretches[1:]))


def test_windows_are_the_whole(made):
    whole = dict(query(made.path, CALLS.format("v.context, SUM(v.sum)", "context_values", "", "v.context")))
    parts = dict(query(made.path, CALLS.format("v.context, SUM(v.sum)", "window_values", "", "v.context")))
    assert whole == parts


def test_set_up_is_not_in_a_loop(made):
    found = calls(made)
    for name in ("aten::sin", "aten::erf", "aten::atan"):
        assert found["startup", None][name] > 0
        assert name not in found["loop", 1] and name not in found["loop", 2]


def test_each_loop_has_its_own(made):
    """But for the look in which one ended and the other began, of twenty or so."""
    done = json.loads((made.folder / "done.json").read_text())
    found = calls(made)
    assert found["loop", 1]["aten::cross_entropy_loss"] > 0.75 * done["train"]
    assert found["loop", 2]["aten::argmax"] > 0.75 * done["evaluate"]
    assert found["loop", 2].get("aten::cross_entropy_loss", 0) < 0.25 * done["train"]
    for number, name in ((1, "aten::cross_entropy_loss"), (2, "aten::argmax")):
        iterations = windows(made)["loop", number][0]
        if iterations is not None:
            assert abs(iterations - found["loop", number][name]) <= 4


def test_iterations_are_known(made):
    assert windows(made)["loop", 1][0] is not None


def test_no_loop(any_torch_python, tmp_path):
    made = run_program(any_torch_python, PROGRAM, "done.json", "once", folder=tmp_path)
    assert made.done.returncode == 0, made.done.stderr
    assert not windows(made)
    assert query(made.path, "SELECT COUNT(*) FROM window_values") == [(0,)]


def test_windows_can_be_left_out(any_torch_python, tmp_path):
    made = run_program(any_torch_python, PROGRAM, "done.json", folder=tmp_path, options=["--no-windows"])
    assert made.done.returncode == 0, made.done.stderr
    assert not windows(made) and query(made.path, "SELECT COUNT(*) FROM context_values")[0][0]
