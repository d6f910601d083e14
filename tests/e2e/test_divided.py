# SPDX-License-Identifier: Apache-2.0
"""A program whose only line of its own is a call of a package: trainer.train(). Reports, the summary and findings
name what divides that line: modules, then lines of the package. The package is a stand-in that the tests write."""
import json
import re
import subprocess

import pytest

from conftest import ROOT
from plumbtest import PLUMB, run_program

INIT = '''\
"""The first call of an operator can take a second on a busy machine, so it is not recorded."""
import plumb
import torch

plumb.stop()
x = torch.randn(96, 96, requires_grad=True)
torch.tanh(x @ x).square().mean().backward()
torch.optim.SGD([x], lr=0.01).step()
plumb.start()
'''

PACKAGE = '''\
import time

import torch


class Block(torch.nn.Module):
    """A matrix product, WORK times, forwards and backwards."""

    def __init__(self, work):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(96, 96) / 10)
        self.work = work

    def forward(self, x):
        for _ in range(self.work):
            x = torch.tanh(x @ self.weight)
        return x


class Layer(torch.nn.Module):
    def __init__(self, slow):
        super().__init__()
        self.attention = Block(2)
        self.gate = Block(2)
        self.mlp = Block(60 if slow else 2)

    def forward(self, x):
        return self.mlp(self.gate(self.attention(x)))


class Model(torch.nn.Module):
    def __init__(self, slow=None):
        super().__init__()
        self.layers = torch.nn.ModuleList(Layer(i == slow) for i in range(6))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Trainer:
    def __init__(self, model, seconds=0):
        self.model = model
        self.seconds = seconds
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def train(self):
        return self.loop()

    def loop(self):
        end = time.monotonic() + self.seconds
        rounds = 0
        while rounds < 12 or time.monotonic() < end:
            rounds += 1
            x = self.batch()
            self.step(x)
            self.optimizer.step()  # the optimizer

    def step(self, x):
        self.model(x).square().mean().backward()
        self.optimizer.zero_grad(set_to_none=False)

    def batch(self):
        return torch.randn(96, 96)

    def evaluate(self):
        with torch.no_grad():
            for _ in range(36):
                self.model(self.batch())


class Engine:
    """Generates, without a module."""

    def __init__(self):
        self.weight = torch.randn(96, 96)

    def generate(self):
        return self.run()

    def run(self):
        for _ in range(60):
            self.prefill()
            self.decode()
            self.sample()

    def prefill(self):
        torch.mm(self.weight, self.weight)  # prefill

    def decode(self):
        torch.mm(self.weight, self.weight)  # decode

    def sample(self):
        torch.mm(self.weight, self.weight)  # sample
'''

TRAIN = """\
import torch
from standin.trainer import Model, Trainer

torch.manual_seed(0)
trainer = Trainer(Model(%s))
trainer.train()
"""


def line_of(text, mark):
    return next(i for i, line in enumerate(text.splitlines(), 1) if mark in line)


def record(any_torch_python, folder, program, options=()):
    package = folder / "lib" / "site-packages" / "standin"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(INIT)
    (package / "trainer.py").write_text(PACKAGE)
    script = folder / "program.py"
    script.write_text(program)
    made = run_program(any_torch_python, script, folder=folder, options=options,
                       environment={"PYTHONPATH": f"{package.parent}:{ROOT / 'python'}"})
    assert made.done.returncode == 0, made.done.stderr
    return made


@pytest.fixture(scope="module")
def trained(any_torch_python, tmp_path_factory):
    return record(any_torch_python, tmp_path_factory.mktemp("trained"), TRAIN % "")


def report(made, *options):
    done = subprocess.run([str(PLUMB), "report", str(made.path), "--window", "all", "--width", "0", *options],
                          capture_output=True, text=True, check=True)
    return done.stdout


def rows(made, *options):
    return json.loads(report(made, "--json", "--top", "0", *options))["rows"]


PARTS = {"layers.*.attention", "layers.*.gate", "layers.*.mlp"}
CALLS = ("--metric", "op.calls")  # by time, a layer may stand out on a busy machine


def test_rows_name_the_parts(trained):
    """An operator of the layers names its part; the line of the person's code stays in JSON."""
    row = {row["name"]: row for row in rows(trained, *CALLS)}["aten::mm"]
    assert row["user_file"].endswith("program.py") and row["user_line"] == 6
    part = row["divided_by"]
    assert part["kind"] == "module" and part["name"] in PARTS and part["count"] >= 2 and part["line"] is None
    text = report(trained, *CALLS)
    assert re.search(r"^program\.py:6 holds 9\d\.\d % of it: ", text, re.M), text
    assert re.search(r"aten::tanh +layers\.\*\.\w+, \d layers$", text, re.M), text


def test_outside_modules_lines_of_the_package_divide(trained):
    """The optimizer is in no module: the package's line that calls it is its part."""
    line = line_of(PACKAGE, "# the optimizer")
    found = [row["divided_by"] for row in rows(trained, "--by", "line")
             if row["divided_by"] and "/torch/optim/" in (row["file"] or "")]  # only looks met the others
    assert ("python", line) in {(part["kind"], part["line"]) for part in found}
    assert f"standin/trainer.py:{line} (package)" in report(trained, "--by", "line", "--top", "0")


def test_lines_name_the_parts(trained):
    """--by line has the packages' lines as rows, and what divides as their place."""
    text = report(trained, "--by", "line", *CALLS)
    line = line_of(PACKAGE, "torch.tanh(x @")
    assert re.search(rf"trainer\.py:{line} +layers\.\*\.\w+, \d layers$", text, re.M), text


def test_summary_names_the_parts(trained):
    table = trained.done.stderr[trained.done.stderr.index("your code;"):]
    assert re.match(r"your code; parts of program\.py:6 \((9\d|100)\.\d %\)", table), table
    shown = re.findall(r"layers\.(?:\*(\.\w+)  \d × [\d.]+ [mµ]?s|\d(\.\w+)  .* its like)", table)
    assert {f"layers.*{folded or apart}" for folded, apart in shown} == PARTS, table


def test_findings_name_the_parts(any_torch_python, tmp_path):
    """Training takes many looks at the values, so it is a loop, and the findings are of it."""
    made = record(any_torch_python, tmp_path, TRAIN.replace("Model(%s)", "Model(), seconds=1.5"))
    done = subprocess.run([str(PLUMB), "report", str(made.path), "--json"], capture_output=True, text=True, check=True)
    findings = [f for f in json.loads(done.stdout)["findings"] if f["window"] != "startup"]
    titles = {finding["title"] for finding in findings}
    assert any(re.match(r"operator aten::mm .* mostly under layers\.(\*\.\w+, \d layers|\d[.\w]*)$", title)
               for title in titles), titles
    assert not any("program.py" in title for title in titles), titles
    for finding in findings:
        if finding["rule"] == "hotspot":
            assert finding["evidence"]["user_line"] == 6
            assert finding["evidence"]["user_file"].endswith("program.py")
            assert finding["evidence"]["divided_by"]


def test_module_rows_fold(trained):
    text = report(trained, "--by", "module")
    for part in PARTS:
        assert re.search(rf"{re.escape(part)}  \d × [\d.]+ [mµ]?s", text), text
    # On a busy machine one that should be like the others may take longer.
    for name, rest in re.findall(r"(layers\.\d\.\w+)(.*)", text):
        assert "its like" in rest, (name, text)
    unfolded = report(trained, "--by", "module", "--unfold")
    names = {row["name"] for row in rows(trained, "--by", "module")}
    for i in range(6):
        assert f"layers.{i}.mlp" in unfolded and f"layers.{i}.mlp" in names
    assert "layers.*" not in unfolded


def test_folded_rows_have_the_sums(trained):
    """A folded row has what its modules have together."""
    calls = {row["calls"] for row in rows(trained, "--by", "module") if re.match(r"layers\.\d\.mlp$", row["name"])}
    assert calls == {12}
    found = re.search(r" (\d+)  layers\.\*\.mlp  (\d) × ", report(trained, "--by", "module"))
    assert int(found[1]) == 12 * int(found[2])


def test_a_slow_layer_stands_out(any_torch_python, tmp_path):
    made = record(any_torch_python, tmp_path, TRAIN % "slow=3")
    text = report(made, "--by", "module", *CALLS)
    assert re.search(r" layers\.3\.mlp  \d+\.\d × its like", text), text
    assert re.search(r" layers\.\*\.mlp  5 × ", text), text
    part = {row["name"]: row["divided_by"] for row in rows(made, *CALLS)}["aten::tanh"]
    assert part["name"] in ("layers.3", "layers.3.mlp") and part["count"] == 1


def test_two_lines_of_one_model(any_torch_python, tmp_path):
    """Training and evaluation hold less than half each, and the model more: its modules divide both."""
    made = record(any_torch_python, tmp_path, TRAIN % "" + "trainer.evaluate()\n")
    assert {row["name"]: row for row in rows(made, *CALLS)}["aten::tanh"]["divided_by"]["name"] in PARTS


def test_lines_divide_where_there_are_no_modules(any_torch_python, tmp_path):
    made = record(any_torch_python, tmp_path, "from standin.trainer import Engine\n"
                  "engine = Engine()\nengine.generate()\n")
    part = {row["name"]: row for row in rows(made)}["aten::mm"]["divided_by"]
    run = line_of(PACKAGE, "def run(")
    assert part["kind"] == "python" and part["file"].endswith("standin/trainer.py")
    assert part["line"] in range(run + 2, run + 5), "the outermost lines that divide"


def test_own_lines_that_divide_stay(any_torch_python, tmp_path):
    """Two lines with half each need no dividing, and neither does a line with one operator."""
    made = record(any_torch_python, tmp_path, "import torch\nx = torch.randn(96, 96)\nfor _ in range(50):\n"
                  "    torch.mm(x, x)\n")
    row = {row["name"]: row for row in rows(made)}["aten::mm"]
    assert row["divided_by"] is None and row["user_line"] == 4
    assert "holds" not in report(made) and "its part" not in report(made)


GENERATED = '''\
import dataclasses, functools, importlib.util, tempfile, torch

TEXT = "import torch\\ndef propagate(x):\\n    return torch.mm(x, x)\\n"
with tempfile.NamedTemporaryFile("w", prefix="standin.conv_Propagate_", suffix=".py", delete=False) as file:
    file.write(TEXT)
spec = importlib.util.spec_from_file_location("made", file.name)
made = importlib.util.module_from_spec(spec)
spec.loader.exec_module(made)


@dataclasses.dataclass
class Config:
    x: object = dataclasses.field(default_factory=functools.partial(torch.eye, 64))


for _ in range(5):
    made.propagate(torch.randn(64, 64))
    exec("torch.sigmoid(torch.randn(64, 64))")
    Config()
'''


def test_generated_modules_are_not_your_code(any_torch_python, tmp_path):
    """As torch_geometric does it: a module that is written to the temporary folder and imported from there. Functions
    of dataclasses come from a text."""
    made = record(any_torch_python, tmp_path, GENERATED)
    by_name = {row["name"]: row for row in rows(made)}
    for operator, mark in (("aten::mm", "    made.propagate"), ("aten::sigmoid", "    exec("), ("aten::eye", "    Config()")):
        row = by_name[operator]
        assert (row["user_file"], row["user_line"]) == (str(made.program), line_of(GENERATED, mark)), row


def test_command_text_is_your_code(any_torch_python, tmp_path):
    path = tmp_path / "run.plumb"
    text = "import torch\ntorch.mm(torch.ones(9, 9), torch.ones(9, 9))"
    subprocess.run([str(PLUMB), "run", "-q", "-o", str(path), "--", any_torch_python, "-c", text], check=True,
                   cwd=tmp_path)
    done = subprocess.run([str(PLUMB), "report", str(path), "--json"], capture_output=True, text=True, check=True)
    row = next(row for row in json.loads(done.stdout)["rows"] if row["name"] == "aten::mm")
    assert (row["user_file"], row["user_line"]) == ("<string>", 2)
