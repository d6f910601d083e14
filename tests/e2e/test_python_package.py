# SPDX-License-Identifier: Apache-2.0
"""plumb.Profile: a small profile with known numbers, made with the store's own schema, and a real one."""
import math
import sqlite3
import subprocess
import textwrap

import pytest
from conftest import ROOT

import plumb

# (kind, name, file, line, display), flags, depth: contexts in preorder.
TREE = [
    (("root", None, None, None, None), 0, 0),
    (("python", "main", "/src/app/train.py", 30, None), 0, 1),
    (("python", "step", "/src/app/train.py", 12, None), 0, 2),
    (("operator", "aten::linear", None, None, None), 0, 3),
    (("kernel", "_Z4gemmv", None, None, "gemm(a/b)"), 0, 4),
    (("operator", "LinearBackward", None, None, None), 1, 4),
    (("operator", "aten::mm", None, None, None), 0, 5),
    (("kernel", "_Z4gemmv", None, None, "gemm(a/b)"), 0, 6),
    (("python", "step", "/src/app/train.py", 13, None), 0, 2),
    (("operator", "AccumulateGrad", None, None, None), 3, 3),
    (("kernel", "add[vec]", None, None, None), 0, 4),
]
# (context, metric, track, sum, count, min, max, mean, m2)
VALUES = [
    (4, "gpu.time", 0, 30, 2, 10, 20, 15.0, 50.0),
    (4, "gpu.time", 1, 40, 1, 40, 40, 40.0, 0.0),
    (7, "gpu.time", 0, 5, 1, 5, 5, 5.0, 0.0),
    (10, "gpu.time", 0, 7, 1, 7, 7, 7.0, 0.0),
    (4, "gpu.registers", 0, 64, 2, 32, 32, 32.0, 0.0),
    (3, "op.calls", 0, 2, 2, 1, 1, 1.0, 0.0),
]
METRICS = [(1, "op.calls", "count", "sum", "framework", "calls"),
           (9, "gpu.time", "ns", "sum", "gpu", "time"),
           (14, "gpu.registers", "count", "call", "gpu", "registers")]


@pytest.fixture(scope="session")
def tables_sql(tmp_path_factory):
    """The statements with which the store makes a profile's tables."""
    folder = tmp_path_factory.mktemp("schema")
    (folder / "print.c").write_text(
        '#include <stdio.h>\n#include "store/schema.h"\n'
        "int main(void) { puts(plumb_store_tables_sql()); return 0; }\n")
    sources = [ROOT / "src" / name for name in ("store/schema_sql.c", "model/columns.c", "base/words.c")]
    subprocess.run(["gcc", "-D_GNU_SOURCE", "-I", ROOT / "src", "-o", "print", "print.c", *sources],
                   cwd=folder, check=True)
    return subprocess.run([folder / "print"], check=True, capture_output=True, text=True).stdout


def last_of(depths, number):
    last = number
    while last + 1 < len(depths) and depths[last + 1] > depths[number]:
        last += 1
    return last


def parent_of(depths, number):
    return next((above for above in range(number - 1, -1, -1) if depths[above] < depths[number]),
                None)


@pytest.fixture
def path(tmp_path, tables_sql):
    """A profile file with TREE and VALUES in it."""
    file = tmp_path / "known name?.plumb"
    database = sqlite3.connect(file)
    database.executescript(tables_sql)
    database.execute("PRAGMA application_id = 0x504c4d42")
    database.execute("PRAGMA user_version = 4")
    depths = [depth for _, _, depth in TREE]
    frames = list(dict.fromkeys(frame for frame, _, _ in TREE))
    insert(database, "frames", [(number, *frame, None, None) for number, frame in enumerate(frames)])
    insert(database, "contexts",
           [(number, parent_of(depths, number), frames.index(frame), flags,
             last_of(depths, number), depth)
            for number, (frame, flags, depth) in enumerate(TREE)])
    insert(database, "metrics", METRICS)
    ids = {name: number for number, name, *_ in METRICS}
    insert(database, "context_values",
           [(number, context, ids[metric], *rest, None, None)
            for number, (context, metric, *rest) in enumerate(VALUES)])
    insert(database, "variants", [(0, 4, 0, None, 8, 4, 1, 128, 1, 1, 32, 0, 1024, 500000, 3, 70,
                                   10, 40)])
    insert(database, "origins", [(0, 5, 8, "backward_call")])
    insert(database, "processes", [(0, 100, 1, None, None, "host", "python", 5, 95, 3, None)])
    insert(database, "run", [(0, "python train.py", 5, 90, 3, None, "0.1.0", 1)])
    insert(database, "environment", [(0, 0, "torch", "2.0"), (1, None, "host", "h"),
                                     (2, 0, "host", "other")])
    insert(database, "fates", [("received", 0, None), ("ring_miss", 1, "gone")])
    insert(database, "ledger", [(0, 0, "gpu.kernel", "received", None, 5),
                                (1, 0, "gpu.kernel", "ring_miss", None, 1)])
    database.commit()
    database.close()
    return file


def insert(database, table, rows):
    marks = ",".join("?" * len(rows[0]))
    database.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)


@pytest.fixture
def profile(path):
    with plumb.Profile(path) as opened:
        yield opened


def ids(nodes):
    return [node.id for node in nodes]


def test_walks(profile):
    assert len(profile) == len(TREE)
    assert ids(profile.walk()) == list(range(len(TREE)))
    assert ids(profile.bfs()) == [0, 1, 2, 8, 3, 9, 4, 5, 10, 6, 7]
    assert ids(profile.root.children) == [1]
    assert ids(profile.match("main")[0].children) == [2, 8]
    step = profile.match("main/step")[0]
    assert ids(step.walk()) == [2, 3, 4, 5, 6, 7]
    assert ids(step.bfs()) == [2, 3, 4, 5, 6, 7]
    assert step.parent == profile.match("main")[0]
    assert profile.root.parent is None
    assert ids(profile.kernels) == [4, 7, 10]
    assert ids(profile.operators) == [3, 5, 6, 9]


def test_nodes_say_what_they_are(profile):
    step, kernel = profile.match("main/step")[0], profile.kernels[0]
    assert (step.kind, step.name, step.file, step.line) == ("python", "step", "/src/app/train.py", 12)
    assert (kernel.name, kernel.symbol, kernel.file, kernel.line) == ("gemm(a/b)", "_Z4gemmv", None,
                                                                      None)
    assert kernel.path == r"main/step/aten::linear/gemm(a\/b)"
    assert profile.root.path == ""
    assert kernel.depth == 4
    assert [node.name for node in kernel.ancestors] == ["aten::linear", "step", "main", "?"]


@pytest.mark.parametrize("pattern, expected", [
    ("main", [1]),
    ("/main/", [1]),
    ("*", [1]),
    ("**", list(range(1, 11))),
    ("main/step", [2, 8]),
    ("main/step@train.py:12", [2]),
    ("**/@app\\/train.py", [1, 2, 8]),
    ("**/python:step@*train.py:13", [8]),
    ("**/step@rain.p", []),
    ("**/kernel:*", [4, 7, 10]),
    ("kernel:*", []),
    ("**/kernel:gemm(a\\/b)", [4, 7]),
    ("**/gemm(a?b)", [4, 7]),
    ("**/add[vec]", [10]),
    ("**/aten::linear/**", [3, 4, 5, 6, 7]),
    ("**/aten::linear/**/kernel:*", [4, 7]),
    ("**/operator:aten::*", [3, 6]),
    ("**/aten:*", [3, 6]),
    ("main/*/*/kernel:*", [4, 10]),
    ("**/MM", []),
    ("**/step/**/aten::mm", [6]),
    ("**/**", list(range(1, 11))),
])
def test_patterns(profile, pattern, expected):
    assert ids(profile.match(pattern)) == expected


def test_a_pattern_starts_at_the_node(profile):
    step = profile.match("main/step")[0]
    assert ids(step.match("aten::linear")) == [3]
    assert ids(step.match("main")) == []
    with pytest.raises(ValueError):
        step.match("")


def test_exclusive_values_are_merged_over_tracks(profile):
    value = profile.kernels[0].exclusive["gpu.time"]
    assert value[:4] == (70, 3, 10, 40)
    assert value.mean == pytest.approx(70 / 3)
    observed = [10, 20, 40]
    mean = sum(observed) / 3
    assert value.std == pytest.approx(math.sqrt(sum((x - mean) ** 2 for x in observed) / 2))


def test_inclusive_values(profile):
    assert profile.root.inclusive["gpu.time"][:4] == (82, 5, 5, 40)
    assert profile.match("main/step")[0].inclusive["gpu.time"].sum == 75
    linear = profile.match("**/aten::linear")[0]
    assert linear.inclusive["op.calls"].sum == 2
    assert list(linear.exclusive) == ["op.calls"]
    assert list(linear.inclusive) == ["op.calls", "gpu.time", "gpu.registers"]


def test_what_does_not_add_up_has_no_sum(profile):
    registers = profile.root.inclusive["gpu.registers"]
    assert (registers.sum, registers.count, registers.max) == (None, 2, 32)


def test_unknown_is_none_and_never_zero(profile):
    value = profile.root.exclusive["gpu.time"]
    assert value == (0, 0, None, None, None, None)
    assert "gpu.time" not in profile.root.exclusive
    assert profile.kernels[2].inclusive["gpu.registers"] == (None, 0, None, None, None, None)
    assert profile.run.overhead_ns is None
    assert profile.processes[0].rank is None
    with pytest.raises(KeyError, match="gpu.registers"):
        profile.root.exclusive["gpu.tiem"]


def test_forward_and_backward(profile):
    linear = profile.match("**/aten::linear")[0]
    backward = profile.match("**/LinearBackward")[0]
    assert linear.backward == [backward]
    assert linear.forward is None
    assert backward.forward == linear
    assert profile.kernels[1].forward == linear
    assert profile.kernels[1].is_backward
    assert not profile.kernels[0].is_backward
    accumulation = profile.kernels[2]
    assert accumulation.is_backward and accumulation.is_accumulation
    assert accumulation.forward is None
    assert profile.root.backward == [backward]
    assert [(reason, node.id) for reason, node in backward.origins] == [("backward_call", 8)]


def test_variants(profile):
    (variant,) = profile.kernels[0].variants
    assert (variant.grid, variant.block, variant.count) == ((8, 4, 1), (128, 1, 1), 3)
    assert (variant.shapes, variant.time_ns, variant.occupancy_ppm) == (None, 70, 500000)
    assert profile.kernels[1].variants == []


def test_beside_the_tree(profile):
    assert profile.environment == {"host": "h", "torch": "2.0"}
    assert profile.run.command == "python train.py"
    assert profile.run.exit_code == 3
    assert [(row.source, row.fate, row.is_drop, row.count) for row in profile.ledger] == [
        ("gpu.kernel", "received", 0, 5), ("gpu.kernel", "ring_miss", 1, 1)]
    assert profile.devices == []
    assert profile.metrics["gpu.time"].unit == "ns"


def test_bad_files_are_refused_in_one_line(tmp_path, path):
    with pytest.raises(FileNotFoundError):
        plumb.Profile(tmp_path / "none.plumb")
    for name, content in (("text", b"hello" * 1000), ("empty", b""),
                          ("short", path.read_bytes()[:5000])):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(plumb.ProfileError) as caught:
            plumb.Profile(tmp_path / name)
        assert "\n" not in str(caught.value)
    for change, word in (("PRAGMA user_version = 99", "newer"),
                         ("PRAGMA application_id = 1", "not a profile"),
                         ("UPDATE contexts SET parent = 9 WHERE id = 4", "damaged"),
                         ("UPDATE contexts SET frame = 99 WHERE id = 4", "damaged"),
                         ("UPDATE contexts SET last = 99 WHERE id = 4", "damaged"),
                         ("DELETE FROM contexts", "damaged")):
        bad = tmp_path / "bad.plumb"
        bad.write_bytes(path.read_bytes())
        database = sqlite3.connect(bad)
        database.execute("PRAGMA foreign_keys = OFF")
        database.execute(change)
        database.commit()
        database.close()
        with pytest.raises(plumb.ProfileError, match=word):
            plumb.Profile(bad)


def test_nothing_is_written(path):
    before = path.read_bytes()
    path.chmod(0o444)
    with plumb.Profile(str(path)) as profile:
        assert profile.root.inclusive["gpu.time"].count == 5
    assert path.read_bytes() == before
    assert sorted(path.parent.iterdir()) == [path]


TRAIN = textwrap.dedent("""\
    import torch

    def forward(layer, x):
        return torch.relu(layer(x)).sum()

    layer = torch.nn.Linear(8, 8)
    for _ in range(5):
        forward(layer, torch.ones(4, 8)).backward()
    """)


def test_a_real_profile(record, tmp_path, torch_python):
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    recording = record(torch_python, script)
    assert recording.returncode == 0, recording.stderr
    with plumb.Profile(recording.path) as profile:
        linear = profile.match("**/forward@train.py:4/**/operator:aten::linear")
        assert sum(node.exclusive["op.calls"].sum for node in linear) == 5
        backward = [below for node in linear for below in node.backward]
        assert backward
        assert all(below.is_backward and below.forward.kind == "operator" for below in backward)
        accumulation = [node for node in profile.operators if node.is_accumulation]
        assert accumulation and all(node.forward is None for node in accumulation)
        called = profile.match("**/@train.py:8/**/*AccumulateGrad*")
        assert called and all(node.is_accumulation for node in called)
        received = [row for row in profile.ledger if (row.source, row.fate) == ("operator",
                                                                                "received")]
        calls = sum(node.exclusive["op.calls"].sum for node in profile.operators)
        assert sum(row.count for row in received) >= calls > 0
        assert len(profile.processes) == 1
        assert profile.run.exit_code == 0
