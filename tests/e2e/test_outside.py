# SPDX-License-Identifier: Apache-2.0
"""Programs without a GPU whose main thread is elsewhere than in operators: the first finding names the function."""
import pytest

from plumbtest import PROGRAMS, findings, lines_of, recorded, run_program

LINES = lines_of(PROGRAMS / "outside.py")


@pytest.fixture
def found(any_torch_python, tmp_path_factory):
    """The findings of the main loop of a variant, and what the summary says."""
    def call(variant):
        made = recorded(any_torch_python, "outside.py", tmp_path_factory, variant)
        return of_loop(made.path), made.done.stderr
    return call


def of_loop(path):
    return [row for row in findings(path) if row["window"] != "startup"]


def test_a_function_that_sleeps(found):
    rows, summary = found("callback")
    assert rows[0]["rule"] == "outside" and rows[0]["severity"] == "serious"
    assert rows[0]["title"].startswith(f"after_step (outside.py:{LINES['sleeps']}) takes ")
    evidence = rows[0]["evidence"]
    assert evidence["user_line"] == LINES["sleeps"] and evidence["looks"] >= 5
    # It sleeps 80 times for 20 ms.
    assert 0.9e9 < evidence["line_ns"] and evidence["operators_ns"] == 0
    assert "finding   serious: after_step (outside.py:" in summary


def test_samples_say_the_same(any_torch_python, tmp_path):
    made = run_program(any_torch_python, "outside.py", "callback", folder=tmp_path, options=["--cpu"])
    row, = [row for row in of_loop(made.path) if row["rule"] == "outside"]
    assert row["title"].startswith(f"after_step (outside.py:{LINES['sleeps']}) takes ")
    assert row["evidence"]["metric"] == "cpu.time + wait.time" and "looks" not in row["evidence"]


def test_a_line_in_no_function(found):
    rows, _ = found("script")
    assert rows[0]["rule"] == "outside" and rows[0]["title"].startswith(f"outside.py:{LINES['script']} takes ")
    assert 0 < rows[0]["evidence"]["operators_ns"] < rows[0]["evidence"]["line_ns"] / 2


def test_loading_is_said_once(found):
    rows, _ = found("loader")
    assert rows[0]["id"].startswith("latency-loading-") and f"outside.py:{LINES['loads']}" in rows[0]["title"]
    assert not [row for row in rows if row["rule"] == "outside"]


def test_what_computes_has_no_such_finding(found):
    rows, _ = found("healthy")
    assert not [row for row in rows if row["rule"] in ("outside", "latency")]
