# SPDX-License-Identifier: Apache-2.0
"""`plumb run --shapes` on programs/shapes.py."""
import collections
import json
import re

import pytest

from plumbtest import recorded, run_program


@pytest.fixture(scope="module")
def made(torch_python, tmp_path_factory):
    return recorded(torch_python, "shapes.py", tmp_path_factory, options=("--shapes",))


def shapes(made, line, name):
    """{shapes: calls} of the operators NAME called directly by a marked line."""
    found = collections.Counter()
    for node in made.profile.operators:
        above = node.parent
        if node.name == name and above.kind == "python" and above.line == made.lines[line]:
            for variant in node.variants:
                found[variant.shapes] += variant.count
    return dict(found)


def test_inputs_and_outputs(made):
    assert shapes(made, "mm", "aten::mm") == {
        "(float32[2,3], float32[3,4] strides (1,3)) -> float32[2,4]": 3}
    assert shapes(made, "mm_larger", "aten::mm") == {
        "(float32[5,3], float32[3,4] strides (1,3)) -> float32[5,4]": 1}
    assert shapes(made, "scalar", "aten::neg") == {"(float32[]) -> float32[]": 1}
    assert shapes(made, "empty", "aten::neg") == {"(float32[0,4]) -> float32[0,4]": 1}


def test_lists_and_several_outputs(made):
    assert shapes(made, "cat", "aten::cat") == {
        "([float32[2,3], float32[4,3], float32[2,3]], int) -> float32[8,3]": 1}
    assert shapes(made, "topk", "aten::topk") == {
        "(float32[6], int, int, bool, bool) -> (float32[2], int64[2])": 1}


def test_strides_stand_where_they_are_not_the_usual(made):
    text = "float32[2,3,4,5] strides (60,1,15,3)"
    assert shapes(made, "channels_last", "aten::neg") == {f"({text}) -> {text}": 1}


def test_data_types(made):
    kinds = ("float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64").split()
    assert shapes(made, "clone", "aten::clone") == {f"({kind}[7], None) -> {kind}[7]": 1 for kind in kinds}


def test_what_is_too_much_is_counted_together(made):
    found = shapes(made, "many", "aten::neg")
    assert len(found) == 33 and found.pop("(others)") == 8
    assert found == {f"(float32[{i}]) -> float32[{i}]": 1 for i in range(1, 33)}
    ledger = made.ledger("shape")
    assert ledger["overflowed"] >= 8
    assert ledger["received"] == ledger["attributed"]


def test_long_lists_and_many_dimensions(made):
    text, = shapes(made, "long_list", "aten::cat")
    assert text == "([" + "float32[1,2], " * 16 + "...], int) -> float32[40,2]"
    text, = shapes(made, "dimensions", "aten::neg")
    ones = "float32[" + ",".join(["1"] * 20) + "]"
    assert text == f"({ones}) -> {ones}"


def test_what_is_no_plain_tensor_stays_unknown(made):
    assert made.done.stdout == "" and not re.search("error|Exception", made.done.stderr)
    for text in shapes(made, "sparse", "aten::mul"):
        assert text.startswith("(tensor, ")
    for text in shapes(made, "fake", "aten::sin"):
        assert text.startswith("(tensor)")
    negated = {variant.shapes for node in made.profile.operators if node.name == "aten::neg"
               for variant in node.variants}
    assert any(text.startswith("(tensor)") for text in negated)


def test_outputs_of_modules(made):
    found = collections.defaultdict(collections.Counter)
    for node in made.profile.of_kind("module"):
        for variant in node.variants:
            found[node.name][variant.shapes] += variant.count
    assert found == {
        "Sequential": {"-> float32[4,2]": 2, "-> float32[6,2]": 1},
        "0": {"-> float32[4,5]": 2, "-> float32[6,5]": 1},
        "1": {"-> float32[4,5]": 2, "-> float32[6,5]": 1},
        "2": {"-> float32[4,2]": 2, "-> float32[6,2]": 1}}


def test_time_and_calls_are_the_operators(made):
    """Nothing is lost: of a context all shapes together are its calls and its own time."""
    checked = 0
    for node in made.profile.operators:
        if not node.variants:
            continue
        time = node.exclusive["op.time"]
        assert sum(v.count for v in node.variants) == time.count
        assert sum(v.time_ns for v in node.variants) == time.sum
        assert min(v.min_ns for v in node.variants) == time.min
        assert max(v.max_ns for v in node.variants) == time.max
        checked += 1
    assert checked > 50


def test_report_by_shape(made, plumb):
    data = json.loads(plumb("report", made.path, "--by", "shape", "--json", "--top", "0").stdout)
    assert data["metric"] == "op.time"
    rows = {(row["name"], row["shapes"]): row for row in data["rows"]}
    row = rows["aten::mm", "(float32[2,3], float32[3,4] strides (1,3)) -> float32[2,4]"]
    assert row["kind"] == "operator" and row["exclusive"]["op.calls"]["sum"] == 3
    assert row["exclusive"]["op.time"]["count"] == 3 and row["exclusive"]["op.time"]["std"] is None
    assert row["user_line"] == made.lines["mm"]
    everything = {name for name, _ in rows}
    assert {"aten::mm", "aten::addmm", "AddmmBackward0"} <= everything
    text = plumb("report", made.path, "--by", "shape", "--width", "0", "--filter", "aten::topk").stdout
    assert "(float32[6], int, int, bool, bool) -> (float32[2], int64[2])" in text
    csv = plumb("report", made.path, "--by", "shape", "--csv", "--filter", "aten::topk").stdout.splitlines()
    assert csv[0].startswith("name,kind,file,line,user_file,user_line,shapes,metric,unit,")
    assert '"(float32[6], int, int, bool, bool) -> (float32[2], int64[2])"' in csv[1]


def test_report_by_module_shows_outputs(made, plumb):
    rows = json.loads(plumb("report", made.path, "--by", "module", "--json").stdout)["rows"]
    assert {row["name"]: row["shapes"] for row in rows} == {
        "Sequential": "-> float32[4,2]", "0": "-> float32[4,5]", "1": "-> float32[4,5]",
        "2": "-> float32[4,2]"}


def test_without_the_option_there_are_none(torch_python, tmp_path):
    made = run_program(torch_python, "shapes.py", folder=tmp_path)
    assert made.done.returncode == 0
    assert not any(node.variants for node in made.profile.root.walk())
    assert not made.ledger("shape")
