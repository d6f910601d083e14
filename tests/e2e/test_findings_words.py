# SPDX-License-Identifier: Apache-2.0
"""Findings do not contradict themselves, and what they advise fits the work."""
import json

import pytest
from conftest import PLUMB, run_command
from importing import write
from kineto_traces import call, document, event, kernel


def found(tmp_path, *events):
    path, output = write(tmp_path, document(*events)), tmp_path / "out.plumb"
    assert run_command(PLUMB, "import", path, "-o", output).returncode == 0
    text = run_command(PLUMB, "report", output, "--findings", "--width", "200").stdout
    return json.loads(run_command(PLUMB, "report", output, "--findings", "--json").stdout)["findings"], text


def launched(number, op, name, at, length):
    """An operator and the kernel that it launches; None: a launch outside of any operator."""
    events = [call(number, at + 1, duration=2), kernel(number, at + 5, length, name)]
    return events + ([event("cpu_op", op, at, 4)] if op else [])


ADVICE = [
    ("aten::convolution", "implicit_convolve_sgemm", "channels_last"),
    ("aten::mm", "sm80_xmma_gemm_f32f32", "lower precision"),
    ("aten::native_layer_norm", "vectorized_layer_norm_kernel", "torch.compile"),
    ("aten::add", "vectorized_elementwise_kernel<4, CUDAFunctor_add>", "torch.compile"),
    ("c10d::allreduce_", "ncclDevKernel_AllReduce_Sum_f32", "slowest rank"),
    ("aten::cat", "CatArrayBatchedCopy<float>", "moves bytes"),
    ("aten::sort", "DeviceRadixSortOnesweepKernel", "topk"),
]


@pytest.mark.parametrize("op, name, words", ADVICE)
def test_advice_fits_the_work(tmp_path, op, name, words):
    events = [one for i in range(4) for one in launched(i + 1, op, name, 100 * i, 90)]
    findings, _ = found(tmp_path, *events, event("cpu_op", "aten::relu", 900, 1))
    (hot,) = [one for one in findings if one["id"].startswith("hotspot-kernel")]
    assert words in hot["advice"]
    assert "torch.compile" in hot["advice"] or words != "torch.compile"


def test_convolutions_on_the_cpu_are_not_for_fusing(tmp_path):
    findings, text = found(tmp_path, *(event("cpu_op", "aten::mkldnn_convolution", 100 * i, 90) for i in range(5)))
    (hot,) = [one for one in findings if one["rule"] == "hotspot"]
    assert "fuse" not in hot["advice"] and "channels_last" in hot["advice"]
    assert "of the operators' time on the CPU" in hot["title"] and "saving   unknown\n" in text


def test_work_outside_of_operators_is_called_so(tmp_path):
    events = launched(1, None, "gemm", 0, 90) + launched(2, "aten::cat", "gemm", 200, 80)
    _, text = found(tmp_path, *events)
    assert "outside any operator; aten::cat" in text and "none" not in text.split("kernel gemm")[1].split("where")[0]


def test_a_line_names_the_operator_that_stands_out(tmp_path):
    """One operator has 47 % of a line: no words of none that stands out."""
    lengths = {"aten::a": 47, "aten::b": 9, "aten::c": 9, "aten::d": 9, "aten::e": 9, "aten::f": 9, "aten::g": 8}
    events = [one for i, (op, length) in enumerate(lengths.items())
              for one in launched(i + 1, op, f"kernel_{op[-1]}", 100 * i, length)]
    findings, _ = found(tmp_path, event("python_function", "train.py(7): step", 0, 1000), *events)
    (line,) = [one for one in findings if one["id"].startswith("hotspot-line")]
    assert "47.0 % of this line's time is aten::a" in line["advice"]


def test_what_is_hidden_says_so(tmp_path):
    """The host is the slower: no kernel saves anything, and the advice does not say to begin there."""
    events = [one for i in range(4) for one in launched(i + 1, "aten::mm", "gemm", 1000 * i, 20)]
    findings, text = found(tmp_path, *events, *(event("cpu_op", "aten::to", 1000 * i + 40, 800) for i in range(4)))
    (hot,) = [one for one in findings if one["id"].startswith("hotspot-kernel")]
    assert hot["saving_ns"] == 0 and hot["advice"].startswith("This alone saves nothing: it is hidden behind")
    assert "saving   none (confidence 1)" in text


def test_names_of_ranges_are_whole(tmp_path):
    """\"enumerate(DataLoader)#next\" is no function with parameters."""
    name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    events = [one for i in range(4) for one in launched(i + 1, "aten::mm", "gemm", 1000 * i, 20)]
    events += [event("user_annotation", name, 1000 * i + 30, 900) for i in range(4)]
    events += [event("cpu_op", f"aten::op{k}", 1000 * i + 40 + 42 * k, 40) for i in range(4) for k in range(20)]
    findings, _ = found(tmp_path, *events)
    assert any(name in one["title"] for one in findings)
