# SPDX-License-Identifier: Apache-2.0
"""plumb iters on a program with one line of its own, which calls a package: its rows name what divides that line."""
import json
from contextlib import contextmanager

import pytest

from conftest import PLUMB, run_command
from plumbtest import findings
from steps_traces import Rank, trace

PACKAGE = "/usr/lib/python3/dist-packages/standin/trainer.py"
OWN = "/home/me/train.py"
STEPS, ODD = 12, 7


@contextmanager
def frame(rank, name):
    begin = rank.now
    rank.now += 1
    yield
    rank.now += 1
    rank.host("python_function", name, begin, rank.now - begin)
    rank.now += 1


def training(loading=600.0):
    """trainer.train() in train.py:10. Loading takes 3 times as long in step ODD."""
    rank = Rank()
    with frame(rank, f"{OWN}(10): <module>"):
        for step in range(STEPS):
            with frame(rank, f"{PACKAGE}(20): loop"):
                with frame(rank, f"{PACKAGE}(31): batch"):
                    rank.operator("aten::read", "unpack", 5.0)
                    rank.now += loading * (3 if step == ODD else 1)
                    rank.operator("aten::cat", "cat", 5.0)
                for layer in range(3):
                    with frame(rank, f"nn.Module: Layer_{layer}"):
                        for k in range(5):
                            rank.operator("aten::mm", f"gemm{k}", 30.0)
                with frame(rank, f"{PACKAGE}(47): update"):
                    rank.operator("aten::add_", "adam", 60.0)
                    rank.wait()
    return rank


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return trace(tmp_path_factory.mktemp("divided"), [training()])


def iters(path, *options):
    return run_command(PLUMB, "iters", path, *options).stdout


def check_your_line(row, file="file", line="line"):
    assert row[file] == OWN and row[line] == 10


def test_rows_name_the_part(trained):
    level = json.loads(iters(trained, "--json"))["tracks"][0]["levels"][0]
    for filled in (level["summary"]["filled"], level["iterations"][ODD]["filled"]):
        row = filled[0]
        check_your_line(row)
        assert row["divided_by"] == {"kind": "python", "name": "batch", "file": PACKAGE, "line": 31, "count": 1}
        assert "standin/trainer.py:31 (package)" in row["text"]
    text = iters(trained)
    filled = text[text.index("what filled"):].splitlines()[1]
    assert "standin/trainer.py:31 (package)" in filled and "train.py:10" not in filled


def test_path_rows_name_the_part(trained):
    top = json.loads(iters(trained, "--json"))["tracks"][0]["path"]["top"]
    parts = {row["divided_by"]["name"] for row in top}
    assert {"batch", "update"} <= parts and any(name.startswith("Layer_") for name in parts), parts
    for row in top:
        check_your_line(row, "user_file", "user_line")
    text = iters(trained)
    rows = text[text.index("on the path"):]
    assert "standin/trainer.py:31 (package)" in rows and "train.py:10" not in rows


def test_explained_rows_name_the_part(trained):
    explained = json.loads(iters(trained, "--explain", str(ODD), "--json"))["explain"]["rows"]
    check_your_line(explained[0])
    assert explained[0]["divided_by"]["line"] == 31
    assert "standin/trainer.py:31 (package)" in explained[0]["text"]
    assert "standin/trainer.py:31 (package)" in iters(trained, "--explain", str(ODD))


def test_own_lines_stay(tmp_path):
    """No line holds most of it: rows are as ever, and nothing divides them."""
    rank = Rank()
    for step in range(STEPS):
        for line in range(10, 14):
            with frame(rank, f"{OWN}({line}): step"):
                with frame(rank, f"{PACKAGE}(31): batch"):
                    for k in range(4):
                        rank.operator("aten::mm", f"gemm{line}{k}", 30.0)
                    rank.now += 300 if line == 12 else 0
        with frame(rank, f"{OWN}(20): <module>"):
            rank.wait()
    made = json.loads(iters(trace(tmp_path, [rank]), "--json"))["tracks"][0]
    filled = made["levels"][0]["summary"]["filled"]
    assert filled[0]["line"] == 12
    assert all(row["divided_by"] is None for row in filled + made["path"]["top"])


def test_what_a_finding_hides_behind_names_the_part(tmp_path):
    """What saves nothing says behind what it hides, and where that is."""
    rank = Rank()
    with frame(rank, f"{OWN}(10): <module>"):
        for step in range(STEPS):
            for line, length in ((20, 500), (25, 450)):
                with frame(rank, f"{PACKAGE}({line}): compute"):
                    rank.operator("aten::mm", f"long{line}", length)
            with frame(rank, f"{PACKAGE}(30): bookkeeping"):
                begin = rank.now
                for _ in range(40):
                    rank.host("cpu_op", "aten::add_", rank.now + 1, 10)
                    rank.now += 11
                rank.host("user_annotation", "optimizer", begin, rank.now - begin)
            with frame(rank, f"{PACKAGE}(40): finish"):
                rank.wait()
    path = trace(tmp_path, [rank])
    found = findings(path, "--threshold", "latency.share=1%,latency.idle=0.1%,latency.ratio=1,hotspot.share=0.1%")
    behind = [one["evidence"]["hides_behind"] for one in found if "hides_behind" in one["evidence"]]
    assert behind and all(text == "kernel: long20 at standin/trainer.py:20 (package)" for text in behind), found
