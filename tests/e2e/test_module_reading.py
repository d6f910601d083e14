# SPDX-License-Identifier: Apache-2.0
"""Modules as frames on every CPython here: programs/fake_modules.py has a stand-in for torch.nn.Module
and launches kernels of the stand-in driver, each of which bears the name it should stand under."""
import collections
import json
import pathlib
import re

import pytest

from plumbtest import PROGRAMS, run_program
from test_mock_gpu import NEWEST, mock_environment
from test_python_walker import SUPPORTED, matrix

SECTIONS = re.findall(r"^def (\w+)\(\):", (PROGRAMS / "fake_modules.py").read_text(), re.M)
STYLES = ["direct", "cells", "wrapped"]
EXACT = [version for version in SUPPORTED if version != "3.14"]  # see monitor/python_object.h


def run(path, style, sections, folder, **more):
    made = run_program(path, "fake_modules.py", sections, folder=folder,
                       environment={**mock_environment(NEWEST), "FAKE_STYLE": style}, **more)
    assert made.done.returncode == 0, made.done.stderr
    return made


def module_of(node):
    while node and node.kind != "module":
        node = node.parent
    return node


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("path", matrix(SUPPORTED))
def test_modules(path, style, tmp_path):
    made = run(path, style, ",".join(SECTIONS), tmp_path)
    said = json.loads(made.done.stdout)
    assert "module.off" not in made.profile.environment
    found = collections.Counter()
    for kernel in made.profile.kernels:
        module = module_of(kernel)
        assert module and kernel.name == f"{module.name}|{module.file}"
        found[kernel.name] += kernel.exclusive["gpu.time"].count
    assert found == said
    assert not any(row.is_drop for row in made.profile.ledger if row.source == "module")


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("path", matrix(EXACT))
def test_calls(path, style, tmp_path):
    """Every call says once what it is: as many calls as kernels."""
    made = run(path, style, ",".join(s for s in SECTIONS if s != "hooks"), tmp_path)
    counted = collections.Counter()
    for node in made.profile.of_kind("module"):
        counted[f"{node.name}|{node.file}"] += node.exclusive["module.calls"].sum
    assert counted == json.loads(made.done.stdout)


@pytest.mark.parametrize("path", matrix(SUPPORTED))
def test_what_is_no_module_is_left_alone(path, tmp_path):
    """A function of that name in a file of that name, whose first argument is no module."""
    folder = tmp_path / "torch" / "nn" / "modules"
    folder.mkdir(parents=True)
    (folder / "module.py").write_text(
        "import launcher\n"
        "def _call_impl(*arguments):\n    launcher.launch(b'k', 10, 0, 0)\n"
        "for x in (1, 'text', [], None, type, object()):\n    _call_impl(x)\n"
        "_call_impl()\n"
        "def _wrapped_call_impl(x):\n    del x\n    launcher.launch(b'k', 10, 0, 0)\n"
        "_wrapped_call_impl(3)\n")
    made = run_program(path, pathlib.Path(folder / "module.py"), folder=tmp_path,
                       environment={**mock_environment(NEWEST), "PYTHONPATH": str(PROGRAMS)})
    assert made.done.returncode == 0, made.done.stderr
    assert not made.profile.of_kind("module")
    assert sum(k.exclusive["gpu.time"].count for k in made.profile.kernels) == 8
