# SPDX-License-Identifier: Apache-2.0
"""nn.Module instances as frames: programs/modules.py says of each call what it is, and here that is
compared with the frame that the call stands under. What needs no PyTorch is in test_module_reading.py."""
import collections
import contextlib
import json
import sqlite3
import subprocess

import pytest

from plumbtest import recorded, run_program


@pytest.fixture(scope="module")
def made(torch_python, tmp_path_factory):
    return recorded(torch_python, "modules.py", tmp_path_factory)


def counts_exactly(python):
    """Up to 3.13; then calls in a row with one argument may count as one (monitor/python_object.h)."""
    ask = "import sys; sys.exit(sys.version_info >= (3, 14))"
    return subprocess.run([python, "-c", ask]).returncode == 0


def innermost(node, kind="module"):
    while node and node.kind != kind:
        node = node.parent
    return node


def ranges(made):
    """Each range of the program with its number of calls."""
    for node in made.profile.root.walk():
        if node.kind == "range" and "|" in node.name:
            yield node, node.exclusive["op.duration"].count


def test_every_call_stands_under_its_module(made):
    """Name and class of the frame are what named_modules() and type() say at the time of the call."""
    wrong = [(node.name, module and (module.name, module.file))
             for node, _ in ranges(made)
             for module in [innermost(node)]
             if not module or node.name != f"{module.name}|{module.file}"]
    assert not wrong, wrong[:5]


def test_every_call_is_there(made):
    seen = collections.Counter()
    for node, count in ranges(made):
        seen[node.name] += count
    assert seen == json.loads(made.done.stdout)


def test_ledger_adds_up(made):
    ledger = made.ledger("module")
    counted = sum(node.exclusive["module.calls"].sum for node in made.profile.root.walk()
                  if node.kind == "module")
    assert ledger == {"received": counted, "attributed": counted}
    assert "module.off" not in made.profile.environment


SECTIONS = ["containers", "two_names", "shapes_of_code", "changing", "sweep", "threads", "recursion", "made_on_the_fly",
            "parameters_only"]


@pytest.fixture(scope="module")
def apart(torch_python, tmp_path_factory):
    """Each section runs in a child, which starts with no module that PyTorch or plumb has seen called."""
    return recorded(torch_python, "modules.py", tmp_path_factory, "apart", *SECTIONS)


def counts_of_process(made, pid, column, metric):
    """{context: the COLUMN of METRIC} of one process."""
    with contextlib.closing(sqlite3.connect(made.path)) as database:
        return dict(database.execute(
            f"SELECT v.context, SUM(v.{column}) FROM context_values v JOIN metrics m ON m.id = v.metric "
            "JOIN tracks t ON t.id = v.track JOIN processes p ON p.id = t.process "
            "WHERE m.name = ? AND p.pid = ? GROUP BY v.context", (metric, pid)))


@pytest.mark.parametrize("section", SECTIONS)
def test_calls_are_counted_once_each(section, torch_python, apart):
    """A Probe says once at each call what it is, so that its calls are the ranges under it."""
    if section == "made_on_the_fly" and not counts_exactly(torch_python):
        pytest.skip("this Python does not tell calls in a row with one argument apart")
    pid = json.loads(apart.done.stdout)[section]
    said, counted = collections.Counter(), collections.Counter()
    for context, count in counts_of_process(apart, pid, "count", "op.duration").items():
        node = apart.node(context)
        if node.kind == "range" and node.name.endswith((".Probe", ".Alone")):
            said[node.name] += count
    for context, calls in counts_of_process(apart, pid, "sum", "module.calls").items():
        node = apart.node(context)
        if node.kind == "module" and node.file.endswith((".Probe", ".Alone")):
            counted[f"{node.name}|{node.file}"] += calls
    assert said and counted == said


def test_hooks_do_not_count_as_calls(torch_python, tmp_path):
    made = run_program(torch_python, "modules.py", "hooks", folder=tmp_path)
    calls = collections.Counter()
    for node in made.profile.root.walk():
        if node.kind == "module":
            calls[node.name] += node.exclusive["module.calls"].sum
    if not counts_exactly(torch_python) and calls["Group"] == 1:  # root(X), and root(X) again
        calls["Group"] = 2
    assert calls == {"Group": 2, "plain": 2, "hooked": 2, "hooked.deep": 2, "Probe": 2}


SHARED = """
import torch
class Cell(torch.nn.Module):
    def forward(self, x):
        return torch.neg(x)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = Cell()
    def forward(self, x):
        x = self.cell(self.cell(x))
        for _ in range(30):
            x = self.cell(x)
        return x
net = Net()
for _ in range(5):
    net(torch.ones(3))
"""


def test_calls_of_a_shared_module_are_told_apart(torch_python, tmp_path):
    """The number of the call under the parent's call is the frame's line, up to 16."""
    program = tmp_path / "shared.py"
    program.write_text(SHARED)
    made = run_program(torch_python, program, folder=tmp_path)
    calls = collections.Counter()
    for node in made.profile.root.walk():
        if node.kind == "module" and node.name == "cell":
            calls[node.line or 1] += node.exclusive["module.calls"].sum
    assert calls == {**{number: 5 for number in range(1, 16)}, 16: 5 * 17}


def test_scripted_modules_stand_as_far_as_python_calls_them(torch_python, tmp_path):
    program = tmp_path / "scripted.py"
    program.write_text("""
import torch
class Inner(torch.nn.Module):
    def forward(self, x):
        return torch.neg(x)
class Outer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
    def forward(self, x):
        return self.inner(x)
class Root(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scripted = torch.jit.script(Outer())
    def forward(self, x):
        return self.scripted(x)
Root()(torch.ones(3))
""")
    made = run_program(torch_python, program, folder=tmp_path)
    if made.done.returncode:
        pytest.skip("this PyTorch does not script here: " + made.done.stderr[-200:])
    neg, = {node.parent and innermost(node).name for node in made.profile.operators
            if node.name == "aten::neg"}
    assert neg == "scripted"


@pytest.mark.parametrize("layers, there", [("python,operator", False), ("module,python,operator", True)])
def test_layers_choose(torch_python, tmp_path, layers, there):
    made = run_program(torch_python, "modules.py", "containers", folder=tmp_path,
                       options=("--layers", layers))
    assert bool(made.profile.of_kind("module")) == there
    assert bool(made.ledger("module")) == there
    # What operators were called from. A look at the Python stack may meet PyTorch's own frame before the module has begun.
    functions = {above.name.rpartition(".")[2] for number, calls in made.calls().items() if calls
                 for above in made.node(number).ancestors if above.kind == "python"}
    assert functions and ("_call_impl" in functions) != there


def test_modules_without_python(torch_python, tmp_path):
    made = run_program(torch_python, "modules.py", "containers", "sweep", folder=tmp_path,
                       options=("--layers", "module,operator"))
    assert not made.profile.of_kind("python") and made.profile.of_kind("module")
    test_every_call_stands_under_its_module(made)
    test_every_call_is_there(made)


def test_operators_alone(torch_python, tmp_path):
    made = run_program(torch_python, "modules.py", "containers", folder=tmp_path,
                       options=("--layers", "operator"))
    kinds = {node.kind for node in made.profile.root.walk()}
    assert kinds == {"root", "operator", "range"}


def test_without_operators_modules_stand_alone(torch_python, tmp_path):
    made = run_program(torch_python, "modules.py", "containers", folder=tmp_path,
                       options=("--layers", "python,module"))
    assert made.done.returncode == 0, made.done.stderr
    kinds = {node.kind for node in made.profile.walk()}
    assert "module" in kinds and "operator" not in kinds


def test_report_by_module(made, plumb):
    done = plumb("report", made.path, "--by", "module", "--json", "--top", "0", "--metric", "module.calls")
    assert done.returncode == 0
    rows = {(row["name"], row["file"]): row for row in json.loads(done.stdout)["rows"]}
    for (name, file), row in rows.items():
        assert row["kind"] == "module" and row["line"] is None and row["shapes"] is None
    assert rows["sequence.1.inner", "__main__.Probe"]["exclusive"]["module.calls"]["sum"] == 3
    recursive = rows["Recursive", "__main__.Recursive"]
    assert recursive["inclusive"]["module.calls"]["sum"] == 5  # four calls, and one of its leaf
