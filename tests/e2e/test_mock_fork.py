# SPDX-License-Identifier: Apache-2.0
"""Forked children and CUDA: one that uses it before its parent does records what it does there."""
import re

import pytest
from plumbtest import run_program
from test_mock_gpu import NEWEST, loop_kernels, mock_environment


@pytest.mark.parametrize("parent", ["operator", "import"])
def test_a_child_that_uses_cuda_first_records_its_work(torch_python, parent, tmp_path):
    made = run_program(torch_python, "mock_fork.py", parent, folder=tmp_path,
                       environment=mock_environment(NEWEST))
    assert made.done.returncode == 0, made.done.stderr
    assert "subscribed 1 threads 2" in made.done.stdout
    assert loop_kernels(made, "child") == (1, 20)
    assert loop_kernels(made, "parent") == (1, 10)
    assert made.processes() == {"received": 2, "attributed": 2}


def test_a_child_forked_after_cuda_records_its_operators(torch_python, tmp_path):
    made = run_program(torch_python, "mock_fork.py", "after", folder=tmp_path,
                       environment=mock_environment(NEWEST))
    assert made.done.returncode == 0, made.done.stderr
    assert loop_kernels(made, "parent") == (2, 20)
    assert loop_kernels(made, "child") == (0, 0)
    child, = [process for process in made.profile.processes if process.ppid in
              {other.pid for other in made.profile.processes}]
    assert "forked after its parent" in made.environment_of(child)["gpu.forked"]
    assert made.tree("<module>")[made.expand("<module>:@child > aten::neg")] == 1
    assert not re.search(r"^  note ", made.done.stderr, re.M)
