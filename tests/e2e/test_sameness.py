# SPDX-License-Identifier: Apache-2.0
"""A program does the same with and without plumb: results, output, warnings, exit code."""
import collections
import os
import re
import subprocess

import pytest
from conftest import PLUMB
from plumbtest import PROGRAMS, environment_for_programs, recorded, run_program

from plumb import Profile


def run_split(python, program, folder, plumb, errors="errors"):
    """Runs a program whose standard error goes to a file, so that plumb's own is apart."""
    command = ["sh", "-c", f'exec "$0" "$@" 2>{errors}', python, str(PROGRAMS / program),
               "one", "t w o"]
    if plumb:
        command = [str(PLUMB), "run", "-o", "run.plumb", "--", *command]
    done = subprocess.run(command, cwd=folder, input="given\n", capture_output=True, text=True,
                          timeout=120, env=environment_for_programs())
    return done, (folder / errors).read_text()


_pairs = {}


@pytest.fixture
def pair(torch_python, tmp_path_factory):
    """The program without and with plumb, and their folder; run once for each interpreter."""
    if torch_python not in _pairs:
        folder = tmp_path_factory.mktemp("sameness")
        _pairs[torch_python] = (run_split(torch_python, "sameness.py", folder, False),
                                run_split(torch_python, "sameness.py", folder, True), folder)
    return _pairs[torch_python]


def test_output_and_exit_code(pair):
    (plain, _), (under, _), _ = pair
    assert plain.returncode == under.returncode == 3
    assert under.stdout.splitlines() == plain.stdout.splitlines()
    assert under.stdout == plain.stdout
    assert "parameters" in plain.stdout and "errno 200" in plain.stdout.splitlines()


def test_warnings_and_errors(pair):
    (_, plain), (_, under), _ = pair
    # PyTorch's own profiler logs the time, its process and its thread.
    logged = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \d+:\d+")
    assert logged.sub("TIME", under) == logged.sub("TIME", plain)
    assert "a warning of the program's own" in plain and "meshgrid" in plain


def test_it_was_recorded(pair):
    """Else the sameness would prove nothing."""
    *_, folder = pair
    with Profile(folder / "run.plumb") as profile:
        names = {node.name for node in profile.operators}
        assert {"aten::conv2d", "aten::exp", "aten::sin"} <= names
        assert profile.run.exit_code == 3
        # What ran while the program's own profiler did is there, too.
        sin, = {node.parent for node in profile.operators
                if node.name == "aten::sin" and not node.parent.is_backward
                and node.parent.name.endswith("work")}
        assert sum(node.exclusive["op.duration"].count for node in sin.children
                   if node.name == "aten::sin") == 3


def test_counts_agree_with_the_programs_own_profiler(pair):
    """Operator by operator, forward and backward, PyTorch's profiler saw as many calls as plumb."""
    (plain, _), _, folder = pair
    theirs = {name: int(count) for name, count in
              re.findall(r"^profiled (.*) (\d+)$", plain.stdout, re.M)}
    ours = collections.Counter()
    with Profile(folder / "run.plumb") as profile:
        work, = {node.parent for node in profile.of_kind("python")
                 if node.name.endswith("work") and node.file.endswith("sameness.py")}
        for node in work.walk():
            same = [child for child in node.parent.children if not child.is_backward]
            if node.name == node.parent.name and same == [node]:
                continue  # an operator that only calls itself again: PyTorch's table leaves it out
            if node.kind == "operator":
                ours[node.name] += node.exclusive["op.duration"].count
    assert theirs["aten::sin"] == 3 and theirs["SinBackward0"] == 3
    assert {name: ours[name] for name in theirs if not name.startswith("[")} == \
        {name: count for name, count in theirs.items() if not name.startswith("[")}


@pytest.fixture(scope="module")
def forks(torch_python, tmp_path_factory):
    return recorded(torch_python, "forks.py", tmp_path_factory)


def test_forks_have_the_same_output(torch_python, forks, tmp_path):
    plain = run_program(torch_python, "forks.py", folder=tmp_path, plumb=False)
    assert plain.done.returncode == 0, plain.done.stderr
    assert forks.done.stdout == plain.done.stdout
    assert "forked ended 7" in plain.done.stdout


def test_forked_children_record_into_regions_of_their_own(forks):
    """Two loaders with two workers, a process, a fork; the last fork ran no operator."""
    assert forks.processes() == {"received": 8, "attributed": 8}
    tree = forks.tree("main")
    assert tree[forks.expand("main:@before > aten::neg")] == 1
    assert tree[forks.expand("main:@after > aten::abs")] == 1
    assert tree[forks.expand("main:@forked > aten::neg")] == 1
    # 32 items in each of the two loaders, each by one of its two workers.
    items = forks.expand("__getitem__:@dataset > aten::exp")
    assert forks.tree("__getitem__")[items] == 64
    assert forks.by_track("__getitem__")[items] == [16, 16, 16, 16]
    child = forks.tree("child")
    assert child[forks.expand("child:@sin > aten::sin")] == 1
    # What the child's backward pass does hangs under the child's own forward operator.
    assert [path for path in child if path.startswith(forks.expand("child:@sin > aten::sin > "))
            and path.endswith("SinBackward0 (backward)")]


def test_forked_children_are_processes_of_their_parent(forks):
    first = min(forks.profile.processes, key=lambda process: process.start_ns)
    assert {process.ppid for process in forks.profile.processes} - {first.ppid} == {first.pid}
    assert len({process.pid for process in forks.profile.processes}) == 8
    # What all processes say alike stays the run's.
    assert "torch.version" in forks.profile.environment


def test_a_program_that_was_started_anew_is_a_process_of_its_own(forks):
    first, *_, last = sorted(forks.profile.processes, key=lambda process: process.start_ns)
    assert last.ppid == first.pid
    assert "torch.cos" in last.command
    cos = [node for node in forks.profile.operators if node.name == "aten::cos"
           and node.parent.file == "<string>"]
    assert sum(node.exclusive["op.duration"].count for node in cos) == 1


def test_path_with_a_space(torch_python, tmp_path):
    folder = tmp_path / "a folder, with: more"
    folder.mkdir()
    made = run_program(torch_python, "endings.py", "exit", folder=folder)
    assert made.done.returncode == 4
    assert made.tree("work") == {made.expand("work:@work > aten::neg"): 10}
    assert os.listdir(folder) == ["run.plumb"]
