# SPDX-License-Identifier: Apache-2.0
"""A forked child that uses CUDA where its parent did not yet: CUPTI is left alone."""
import pytest
from plumbtest import run_program
from test_mock_gpu import NEWEST, loop_kernels, mock_environment


@pytest.mark.parametrize("parent", ["operator", "import"])
def test_a_child_of_a_recording_process_leaves_cupti_alone(torch_python, parent, tmp_path):
    made = run_program(torch_python, "mock_fork.py", parent, folder=tmp_path,
                       environment=mock_environment(NEWEST))
    assert made.done.returncode == 0, made.done.stderr
    assert "subscribed 0 threads 1" in made.done.stdout
    assert loop_kernels(made, "child") == (0, 0)
    assert loop_kernels(made, "parent") == (1, 10)
    assert made.ledger("process")["forked"] == 1
