# SPDX-License-Identifier: Apache-2.0
"""bench/zoo: the page of what was measured, from a small record whose numbers are known. It needs no PyTorch."""
import argparse
import copy
import importlib.util
import json
import sys

import pytest
from conftest import PLUMB, ROOT, run_command
from plumbtest import PROGRAMS, environment_for_programs
from test_mock_gpu import NEWEST, mock_environment

ZOO = ROOT / "bench/zoo"
sys.path.insert(0, str(ZOO))
import zoo_page as page  # noqa: E402


def kernel(name, count, us):
    return {"kernel_name": name, "kernel_count": count, "kernel_duration (us)": us}


def counts(flops, read, written, occupancy):
    return {"flop_count_sp": flops, "dram_read_bytes": read, "dram_write_bytes": written, "achieved_occupancy": occupancy}


def look(gpu_us, kernels):
    return {"latency_us": 0, "layers": 3, "kernels": kernels,
            "types": [{"type": "Linear", "duration (us)": 900, "device_duration (us)": 60},
                      {"type": "Conv1D", "duration (us)": 1, "device_duration (us)": 40},
                      {"type": "Conv2d", "duration (us)": 10, "device_duration (us)": 300}],
            "model": {"model_gpu_duration (us)": gpu_us, "model_flops": 4e9},
            "stages": [{"stage": "beginning", "gpu_duration (us)": 1, "flops": 9, "allocated memory (bytes)": None},
                       {"stage": "middle", "gpu_duration (us)": 5, "flops": 2, "allocated memory (bytes)": None},
                       {"stage": "end", "gpu_duration (us)": 2, "flops": 3, "allocated memory (bytes)": None}]}


# Throughputs 1000, 1900, 1980 a second: doubling 2 gains 4.2 %, so that 2 is optimal.
SIZES = [{"batch": 1, "calls": 9, "latency_ns": 1000000}, {"batch": 2, "calls": 9, "latency_ns": 1052632},
         {"batch": 4, "calls": 9, "latency_ns": 2020202}]
GEMM, RELU, OTHER = kernel("gemm", 2, 600), kernel("relu", 4, 200), kernel("other", 1, 200)
FOUND = {"about": {"gpu": "NVIDIA H100 80GB HBM3", "cpu": "x", "torch": "2.11.0", "plumb": "0.1.0", "tiny": False}, "models": {
    "net": {"task": "classification", "sweep": {"sizes": SIZES},
            "look": {"optimal": 2, "sizes": {"1": look(250, [GEMM]), "2": look(1000, [GEMM, RELU, OTHER])}},
            # 2·8e9 + 4·0 flop over 2·2e8 + 4·1e8 bytes are 20 flop/byte; an H100's 67 Tflop/s over 3.35 TB/s are 20, too.
            "count": {"kernels": {"gemm": counts(8e9, 15e7, 5e7, 250000), "relu": counts(0, 5e7, 5e7, 650000)}}}}}


def row_of(found, peaks=(67e12, 3.35e12)):
    return page.numbers_of(found["models"]["net"], peaks)


def test_numbers():
    row = row_of(FOUND)
    assert (row["optimal"], row["largest"], row["layers"], row["kernels"], row["names"]) == (2, 4, 3, 7, 3)
    assert row["online_ms"] == 1 and row["latency_ms"] == pytest.approx(1.052632)
    assert row["throughput"] == pytest.approx(1980, rel=1e-3)
    assert row["online_gpu"] == pytest.approx(25) and row["gpu"] == pytest.approx(95, rel=1e-3)
    assert row["convolution"] == pytest.approx(75) and (row["bottleneck"], row["bottleneck_share"]) == ("Conv2d", pytest.approx(75))
    assert row["counted"] == pytest.approx(80) and row["intensity"] == pytest.approx(20)
    assert (row["read"], row["written"]) == (pytest.approx(0.5), pytest.approx(0.3))
    assert row["occupancy"] == pytest.approx((600 * 25 + 200 * 65) / 800) and row["tflops"] == pytest.approx(16e9 / 800e-6 / 1e12)
    assert row["stages"] == ["middle", None, "beginning"]


@pytest.mark.parametrize("flops, bound", [(8.1e9, False), (7.9e9, True)])
def test_the_roof_decides(flops, bound):
    found = copy.deepcopy(FOUND)
    found["models"]["net"]["count"]["kernels"]["gemm"]["flop_count_sp"] = flops
    assert row_of(found)["memory_bound"] is bound
    assert "memory_bound" not in row_of(found, None)
    assert f"| {'0 of 1' if not bound else '1 of 1'} |" in page.page(found)


def test_what_is_not_known_is_no_number():
    found = copy.deepcopy(FOUND)
    net = found["models"]["net"]
    del net["count"]["kernels"]["gemm"]["dram_read_bytes"]
    row = row_of(found)
    assert row["counted"] == pytest.approx(20) and row["intensity"] == 0 and "memory_bound" not in row  # too little of it
    net["count"] = {"failed": "no permission"}
    text = page.page(found)
    assert "intensity" not in row_of(found) and "- net: no permission" in text and "| – | – | – | – | – | – | – | middle |" in text
    net["look"] = {"failed": "x"}
    assert "| net | classification | 1.00 | 1,980 | 2 | – | – | – | – | – | – |" in page.page(found)
    net["sweep"] = {"failed": "out of memory"}
    assert page.numbers_of(net, None) is None and "Inference of 0 models" in page.page(found)


def test_a_size_that_still_grows_is_marked():
    found = copy.deepcopy(FOUND)
    found["models"]["net"]["sweep"]["sizes"] = SIZES[:2]
    assert "| 2 ¹ |" in page.page(found) and "| 2 |" in page.page(FOUND)


@pytest.mark.parametrize("gpu, peaks", [
    ("NVIDIA H100 80GB HBM3", (67e12, 3.35e12)), ("NVIDIA H100 PCIe", (51e12, 2e12)), ("NVIDIA H200", (67e12, 4.8e12)),
    ("Tesla V100-SXM2-16GB", (15.7e12, 0.9e12)), ("NVIDIA H20", None), ("NVIDIA Mock GPU", None), (None, None)])
def test_peaks_are_those_of_the_docs(gpu, peaks):
    assert page.peaks_of(gpu) == (peaks and pytest.approx(peaks))


def test_the_script_makes_the_page(tmp_path):
    (tmp_path / "zoo.json").write_text(json.dumps(FOUND))
    done = run_command(sys.executable, ZOO / "run.py", "--from", tmp_path / "zoo.json", "-o", tmp_path / "zoo.md", cwd=tmp_path)
    assert done.returncode == 0 and done.stdout == ""
    assert (tmp_path / "zoo.md").read_text() == page.page(FOUND)
    assert "| GPU share of the latency | 53.7 to 95.6 % | 95.0 to 95.0 % (1 models) |" in page.page(FOUND)
    done = run_command(sys.executable, ZOO / "run.py", "--models", "none", cwd=tmp_path)
    assert done.returncode == 2 and "no model none; there are alexnet" in done.stderr


def driver():
    spec = importlib.util.spec_from_file_location("zoo_run", ZOO / "run.py")
    run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run)
    return run


def test_what_plumb_says_of_a_program_on_the_stand_in(tmp_path, any_torch_python):
    """All parts of a model, with a program whose kernels and counts are known in the place of work.py."""
    run = driver()

    class Standin(run.Zoo):
        def record(self, profile, record, *work):
            env = environment_for_programs(PYTHONPATH=f"{ROOT / 'python'}:{PROGRAMS}", **mock_environment(NEWEST))
            done = run_command(PLUMB, "run", "-q", "-o", profile, *record, "--", any_torch_python, PROGRAMS / "counted.py", "zoo",
                               cwd=self.folder, env=env)
            assert done.returncode == 0, done.stderr

    options = argparse.Namespace(seconds=300, jobs=1, json=str(tmp_path / "zoo.json"), plumb=str(PLUMB), launches=80, cpu=False)
    zoo = Standin(options, str(tmp_path))
    zoo.all(["resnet50"])
    model = json.loads((tmp_path / "zoo.json").read_text())["models"]["resnet50"]
    assert not [part for part in ("sweep", "look", "count") if "failed" in model[part]], model
    assert [(size["batch"], size["calls"]) for size in model["sweep"]["sizes"]] == [(1, 8), (4, 8)]
    looked = model["look"]["sizes"][str(model["look"]["optimal"])]
    # Each part has a kernel, and an addition of PyTorch. A gemm takes 100 µs and a small one 1 µs.
    assert {row["kernel_name"]: (row["kernel_count"], row["kernel_duration (us)"]) for row in looked["kernels"]} == {
        "gemm": (1, 100), "small": (1, 1)}
    assert looked["model"]["model_gpu_duration (us)"] == pytest.approx(101)
    assert model["count"]["kernels"]["gemm"] == counts(2000, 700, 300, 500000)
    row = page.numbers_of(model, (100e9, 10e9))
    assert row["intensity"] == pytest.approx(2) and row["memory_bound"] is True and row["counted"] == pytest.approx(100)
    assert row["gpu"] == pytest.approx(101000 / [size["latency_ns"] for size in model["sweep"]["sizes"]
                                                 if size["batch"] == row["optimal"]][0] * 100)
    before = (tmp_path / "zoo.json").read_text()
    Standin(options, str(tmp_path)).all(["resnet50"])  # nothing is left to do
    assert (tmp_path / "zoo.json").read_text() == before


def test_how_many_kernels_are_counted():
    run = driver()
    kernels = [kernel("a", 50, 10), kernel("b", 5, 90), kernel("c", 40, 50)]
    assert [run.hot_kernels(kernels, launches) for launches in (4, 45, 94, 95)] == [1, 2, 2, 3]
    assert len(run.NAMES) >= 30 and len(set(run.NAMES)) == len(run.NAMES)
