# SPDX-License-Identifier: Apache-2.0
"""The rows of a report that nobody chose, and names that are made short: whole commands on made traces, and on
published ones where they lie beside the project."""
import json
import re

import pytest
from conftest import PLUMB, run_command
from importing import TRACES
from kineto_traces import call, event, kernel, save
from test_mock_gpu import run_profiled

FILL = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorI{}EESt5arrayIPcLm1EEEEviT0_T1_"


def report(path, *options):
    done = run_command(PLUMB, "report", path, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def chosen(path, *options):
    """(rows, the reason or None)"""
    answer = json.loads(report(path, "--json", *options))
    return answer["by"], answer.get("by_reason")


def decode(operators, steps=20):
    """Steps of decoding: a graph's kernels, and an operator that takes OPERATORS of the time."""
    events, now, number = [], 0, 0
    for step in range(steps):
        events += [event("user_annotation", "decode", now, 100), call(2 * step + 1, now + 1, "cudaGraphLaunch"),
                   event("cpu_op", "aten::argmax", now + 50, 20), call(2 * step + 2, now + 55)]
        for name, part in ("gemm", 0.6), ("attention", 0.4):
            events.append(kernel(2 * step + 1, now + 5 + number, 100 * (1 - operators) * part, name))
        events.append(kernel(2 * step + 2, now + 80, 100 * operators, "reduce"))
        now += 300
    return events


@pytest.mark.parametrize("operators, rows", [(0.01, "kernel"), (0.5, "kernel"), (0.7, "operator")])
def test_rows_of_decoding_with_graphs(tmp_path, operators, rows):
    path = save(tmp_path / "decode.json", *decode(operators))
    by, reason = chosen(path)
    assert by == rows
    if rows == "kernel":
        assert reason == f"rows are kernels, because operators explain only {100 * operators:.1f} % of gpu.time"
        assert reason in report(path)
        assert "outside any" not in report(path)
    else:
        assert reason is None
        assert "because" not in report(path)
    # What you choose is what you get.
    assert chosen(path, "--by", "operator") == ("operator", None)
    assert ("outside any operator" in report(path, "--by", "operator")) == (operators < 1)


def test_the_summary_leaves_out_a_table_that_says_little(tmp_path):
    made = run_profiled(tmp_path, "launch:gemm:5000", "launch:attention:3000")
    assert made.done.returncode == 0
    assert "gemm" in made.done.stderr and "because operators" not in made.done.stderr


@pytest.mark.parametrize("name, rows", [("kineto/k28", "kernel"), ("kineto/k32", "kernel"), ("kineto/k34", "operator"),
                                        ("kineto/k20", "operator"), ("nsys/n01", "kernel")])
def test_published_traces(name, rows):
    files = sorted(TRACES.glob(name + "*"))
    if not files:
        pytest.skip("the published traces are not beside the project")
    by, _ = chosen(files[0])
    assert by == rows
    answer = json.loads(report(files[0], "--json"))
    assert (answer["outside"] or {"sum": 0})["sum"] <= answer["total"]["sum"] / 3


def test_kernels_with_nearly_one_name(tmp_path):
    letters = {"f": "float", "d": "double", "l": "long", "i": "int"}
    made = run_profiled(tmp_path, *(f"launch:{FILL.format(letter)}:{1000 * n}" for n, letter in enumerate(letters, 2)))
    assert made.done.returncode == 0, made.done.stderr
    for width in 60, 80, 100, 120:
        text = report(made.path, "--by", "kernel", "--width", str(width))
        for kind in letters.values():
            assert len(re.findall(rf"\bFillF\S*\b{kind}[>…]", text)) == 1, (width, text)
    assert all(f"FillFunctor<{kind}>" in made.done.stderr for kind in letters.values())
    whole = report(made.path, "--by", "kernel", "--width", "0")
    names = {row["name"] for row in json.loads(report(made.path, "--by", "kernel", "--json"))["rows"]}
    assert len(names) == 4
    assert all(name in whole and name.startswith("void at::native::vectorized_elementwise_kernel<4,")
               for name in names)
