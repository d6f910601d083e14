# SPDX-License-Identifier: Apache-2.0
"""`--mode lean` finds PyTorch's operators in the native path of each GPU call. It says what the light mode says, but for the
operators' own time and calls. PyTorch's operators on the CPU launch work of the stand-in driver (tests/mock/launcher.c)."""
import collections
import re

import pytest
from conftest import BUILD, PLUMB, ROOT, run_command
from plumbtest import run_program
from test_mock_gpu import NEWEST, RELEASES, mock_environment

import plumb

# Records of PyTorch that are no operators of its dispatcher: Python's autograd functions.
FUNCTION = re.compile(r"^[A-Z]\w*$")
# Native frames begin at the innermost Python. So an operator that calls Python is not found, and PyTorch 1.13 of a
# distribution has no symbol for one that Python called by its name.
DISPATCH = re.compile(r"aten::neg > (?=__torch_dispatch__)|(?<=__torch_dispatch__:265 > )aten::neg > ")


def allocating():
    """The environment in which each tensor on the CPU launches a kernel."""
    made = mock_environment(NEWEST)
    folder = BUILD / "mock" / NEWEST
    return {**made, "LD_PRELOAD": f"{BUILD}/mock/launcher.so:{folder}/{RELEASES[NEWEST]}", "MOCK_ALLOCATIONS": "1"}


def kernels(made):
    """{path of the program's own lines and of operators: kernels}, without the records that lean cannot have."""
    found = collections.Counter()
    for number, stat in made.profile._stats("gpu.time")[0].items():
        steps = [step for step in made.steps(made.node(number)) if not FUNCTION.match(step)]
        found[DISPATCH.sub("", " > ".join(steps))] += stat[1]
    return found


@pytest.fixture(scope="module", params=["backward.py", "known_tree.py"])
def both(request, torch_python, tmp_path_factory):
    made = [run_program(torch_python, request.param, folder=tmp_path_factory.mktemp(mode), options=("--mode", mode),
                        environment=allocating()) for mode in ("light", "lean")]
    assert [one.done.returncode for one in made] == [0, 0], [one.done.stderr for one in made]
    return made


def test_each_kernel_is_where_the_light_mode_puts_it(both):
    light, lean = map(kernels, both)
    assert sum(lean.values()) == sum(light.values()) > 50
    assert any("aten::" in path and "Backward0 (backward)" in path for path in lean) or "backward" not in both[0].program.name
    assert lean == light


def test_time_and_calls_of_operators_are_unknown(both):
    lean = both[1].profile
    for metric in ("op.time", "op.calls", "op.duration"):
        if metric in lean.metrics:
            kinds = {both[1].node(number).kind for number in lean._stats(metric)[0]}
            assert kinds <= {"range", "root"}, (metric, kinds)
    said = [value for key, value in lean.environment.items() if key == "framework.torch.operators"]
    assert said and "unknown" in said[0]
    done = run_command(PLUMB, "report", both[1].path, "--by", "operator", "--metric", "op.calls", "--window", "all")
    assert "unknown with --mode lean; record with --mode light" in done.stderr


def test_no_native_frame_is_shown(both):
    kinds = {node.kind for node in both[1].profile.root.walk()}
    assert {"operator", "python", "gpu_api", "kernel"} <= kinds
    assert not kinds & {"native", "inline"}


def test_nothing_is_said_about_time_outside_operators(any_torch_python, tmp_path):
    """Without a GPU, the light mode says which function sleeps, and how long operators run in it. Lean cannot know."""
    program = tmp_path / "sleeps.py"
    program.write_text(
        "import time, torch\n"
        "def sleeps():\n"
        "    time.sleep(0.01)\n"
        "x = torch.ones(4, requires_grad=True)\n"
        "for _ in range(150):\n"
        "    x.sum().backward()\n"
        "    sleeps()\n")
    rules = {}
    for mode in ("light", "lean"):
        made = run_program(any_torch_python, program, folder=tmp_path, options=("--mode", mode), name=f"{mode}.plumb")
        assert made.done.returncode == 0, made.done.stderr
        rules[mode] = {finding.rule for finding in made.profile.findings}
    assert "outside" in rules["light"] and "outside" not in rules["lean"]


@pytest.mark.parametrize("options, why", [
    (["--shapes"], "--shapes needs callbacks for operators"),
    (["--layers", "python"], "--mode lean has its own layers"),
])
def test_options_that_do_not_go_with_it(options, why):
    done = run_command(PLUMB, "run", "--mode", "lean", *options, "--", "true")
    assert done.returncode == 125 and why in done.stderr


def test_a_library_that_came_too_late_takes_callbacks(any_torch_python, tmp_path):
    """plumb.profile() loads the collector into a program that has PyTorch already."""
    program = tmp_path / "late.py"
    program.write_text(
        "import torch, plumb\n"
        "with plumb.profile('late.plumb', mode='lean'):\n"
        "    torch.ones(3).add(1)\n")
    done = run_command(any_torch_python, program, cwd=tmp_path,
                       env={"PYTHONPATH": str(ROOT / "python"), "PLUMB_BINARY": str(PLUMB)})
    assert done.returncode == 0, done.stderr
    profile = plumb.Profile(tmp_path / "late.plumb")
    assert "aten::add" in {node.name for node in profile.root.walk()}
    assert any("does not work with this PyTorch, or plumb was loaded after it" in value
               for value in profile.environment.values())
