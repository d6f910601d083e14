# SPDX-License-Identifier: Apache-2.0
"""Native paths that are known from before: the profile is the one that walks alone would give. That every
known path equals a walk is in test_native_walk.py."""
import collections
import os
import re
import subprocess
import sys

import pytest
from conftest import ROOT
from plumbtest import run_program
from test_mock_gpu import NEWEST, mock_environment
from test_native_context import HERE, path_to

WALKS = {"PLUMB_NATIVE_MEMO": "0"}


def run(python, program, *arguments, folder, environment=None):
    folder.mkdir(exist_ok=True)
    made = run_program(python, program, *arguments, folder=folder, options=("--mode", "full"),
                       environment={**mock_environment(NEWEST), "PYTHONPATH": str(ROOT / "python"),
                                    **(environment or {})})
    assert made.done.returncode == 0, made.done.stderr
    return made


def everything(made, metric):
    """{path with native frames: count} of METRIC."""
    found = collections.Counter()
    for number, stat in made.profile._stats(metric)[0].items():
        path = tuple((step.kind, step.symbol, step.file, step.line) for step in path_to(made.node(number)))
        found[path] += stat[1]
    return +found


def same(made, walked):
    for metric in ("gpu.launches", "gpu.time"):
        assert everything(made, metric) == everything(walked, metric)
    for source in ("native", "gpu.launch", "gpu.kernel"):  # others go by how many threads live at once
        assert made.ledger(source) == walked.ledger(source), source
    assert made.ledger("native")["received"] > 0


def test_pytorch(torch_python, tmp_path):
    same(run(torch_python, "mock_gpu.py", folder=tmp_path / "memo"),
         run(torch_python, "mock_gpu.py", folder=tmp_path / "walks", environment=WALKS))


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    folder = tmp_path_factory.mktemp("libraries")
    source = os.path.join(HERE, "native/sites.c")
    for name, number in (("first.so", "11" * 20), ("second.so", "22" * 20), ("deep.so", "33" * 20)):
        subprocess.run(["gcc", "-O1", "-fno-optimize-sibling-calls", "-shared", "-fPIC",
                        "-Wl,--build-id=0x" + number, "-o", folder / name,
                        os.path.join(HERE, "native/deep.c") if name == "deep.so" else source], check=True)
    return folder


def loaded_at(made):
    """(library, address) in the order of loading."""
    return re.findall(r"^(first|second)\.so (\d+)$", made.done.stdout, re.M)


@pytest.fixture(scope="module")
def again(libraries, tmp_path_factory):
    # Another mapping may take the place of a library that has gone, so the program gets several tries.
    for _ in range(5):
        made = run(sys.executable, "native_memo.py", libraries / "first.so", libraries / "second.so",
                   folder=tmp_path_factory.mktemp("again"))
        if len({address for _, address in loaded_at(made)[:3]}) == 1:
            break
    return made


def test_walks_that_end_early_count_as_before(libraries, tmp_path):
    same(run(sys.executable, "native_calls.py", libraries / "deep.so", folder=tmp_path / "memo"),
         run(sys.executable, "native_calls.py", libraries / "deep.so", folder=tmp_path / "walks", environment=WALKS))


def test_walks_alone_say_the_same(again, libraries, tmp_path):
    walked = run(sys.executable, "native_memo.py", libraries / "first.so", libraries / "second.so",
                 folder=tmp_path / "walks", environment=WALKS)
    same(again, walked)
    assert everything(again, "looks") == everything(walked, "looks")


@pytest.mark.parametrize("kernel, places, times", [("two", 2, 20), ("twelve", 12, 10)])
def test_places_at_the_same_depth(again, kernel, places, times):
    found = collections.Counter()
    for node in again.profile.kernels:
        if node.symbol == kernel:
            path = path_to(node)
            assert any(step.kind == "python" and step.line == again.lines[kernel] for step in path)
            site = [step for step in path if step.kind == "native" and step.symbol == "sites"]
            assert len(site) == 1
            found[site[0].line] += node.exclusive["gpu.time"].count
    assert list(found.values()) == [times] * places


def test_a_library_at_the_address_of_another(again):
    loaded = loaded_at(again)
    assert [name for name, _ in loaded] == ["first", "second", "first", "first"]
    assert len({address for _, address in loaded[:3]}) == 1, "the loader put them elsewhere"
    found = collections.Counter()
    for node in again.profile.kernels:
        if node.symbol == "reloaded":
            inner = [step for step in path_to(node) if step.kind == "native"][-2]
            found[inner.file] += node.exclusive["gpu.time"].count
    assert found == {"11" * 20: 20, "22" * 20: 10}


def test_a_forked_child_and_threads_that_take_over(again):
    looks = collections.Counter()
    for path, count in everything(again, "looks").items():
        line = [step for step in path if step[0] == "python"][-1][3]
        assert line == again.lines["look"]
        assert path[-1][0] == "native"
        functions = tuple(step[1] for step in path if step[0] == "python")
        looks["fork" if "fork" in functions else "threads"] += count
    assert looks == {"fork": 10 + 7 + 5, "threads": 4 * 3}
    walks = collections.Counter()
    for row in again.profile.ledger:
        if row.source == "native" and row.fate == "attributed":
            walks[row.process] += row.count
    assert sorted(walks.values())[0] == 7  # the child's own, and nothing else
