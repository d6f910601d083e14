# SPDX-License-Identifier: Apache-2.0
"""`plumb tables P1 P2 …`: batch sizes, profiles side by side, and the kernels that changed between them."""
import gzip

import pytest
from conftest import PLUMB, ROOT, run_command
from kineto_traces import event, save
from test_tables import TORCH, rows, tables
from xsp_model import Kernel, Layer, write


def model(kernel, us, *, batch=1):
    """A convolution by KERNEL of so many µs, and a matrix product that is always the same."""
    return [Layer("conv1", "Conv2D", [Kernel(kernel, us, 1e6 * batch, 1e4 * batch, 1e4, 0.5)]),
            Layer("relu", "Relu", [Kernel("relu_kernel", 5, 0, 100, 100, 0.5)]),
            Layer("fc", "MatMul", [Kernel("gemm_64x64", 20, 2e5, 1000, 1000, 0.25)])]


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """Batch sizes 1, 2, 4 and 8; from 4 on another kernel computes the convolution."""
    folder = tmp_path_factory.mktemp("sweep")
    known = {1: ("volta_scudnn_128x32_relu_interior_nn_v1", 100), 2: ("volta_scudnn_128x32_relu_interior_nn_v1", 150),
             4: ("implicit_convolve_sgemm", 280), 8: ("implicit_convolve_sgemm", 900)}
    return {batch: write(folder / f"b{batch}.json", model(kernel, us, batch=batch), runs=2)
            for batch, (kernel, us) in known.items()}


def compare(paths, key, *options):
    return rows(tables(*paths, "--key", key, *options)["compare"])


def test_batches_side_by_side(sweep):
    found = compare(sweep.values(), "batch", "--batch", "1,2,4,8")
    assert [row["batch"] for row in found] == [row["batch_size"] for row in found] == [1, 2, 4, 8]
    assert [row["profile"] for row in found] == [str(path) for path in sweep.values()]
    for row, path in zip(found, sweep.values()):
        single = tables(path, "A1", "A15")
        latency, totals = rows(single["A1"])[0], rows(single["A15"])[0]
        assert (row["latency (ms)"], row["duration_kind"]) == (latency["latency (ms)"], "complete")
        assert row["throughput (input/s)"] == pytest.approx(row["batch"] / row["latency (ms)"] * 1e3)
        assert row["gpu_latency (ms)"] == pytest.approx(totals["model_gpu_duration (us)"] / 1e3)
        assert row["gpu_latency_percentage"] == pytest.approx(row["gpu_latency (ms)"] / row["latency (ms)"] * 100)
        assert row["flops"] == totals["model_flops"] == 1e6 * row["batch"] + 2e5
        assert (row["dram_read_bytes"], row["dram_write_bytes"]) == (1e4 * row["batch"] + 1100, 11100)
        assert row["arithmetic_intensity (flops/byte)"] == totals["model_arithmetic_intensity (flops/byte)"]
        assert (row["latency_stage"], row["gpu_latency_stage"], row["flops_stage"], row["dram_accesses_stage"]) == (
            "end", "beginning", "beginning", "beginning")
        assert row["layers"] == 3 and row["allocated_memory_stage"] is None


def test_normalised_to_the_first_or_the_best(sweep):
    names = {"normalised_latency": "latency (ms)", "normalised_throughput": "throughput (input/s)",
             "normalised_gpu_latency": "gpu_latency (ms)", "normalised_flops": "flops"}
    for options, base in ((), 0), (("--base", "best"), 2):
        found = compare(sweep.values(), "batch", "--batch", "1,2,4,8", *options)
        for name, of in names.items():
            assert [row[name] for row in found] == pytest.approx([row[of] / found[base][of] for row in found])
        accesses = [row["dram_read_bytes"] + row["dram_write_bytes"] for row in found]
        assert [row["normalised_dram_accesses"] for row in found] == pytest.approx(
            [number / accesses[base] for number in accesses])
    # without batch sizes the best has the least latency
    found = compare(reversed(sweep.values()), "file", "--base", "best")
    assert [row["normalised_latency"] == 1 for row in found] == [False, False, False, True]
    assert {row["normalised_throughput"] for row in found} == {None}


def test_swapped_kernels(sweep):
    found = rows(tables(*sweep.values(), "--key", "batch", "--batch", "1,2,4,8")["swapped"])
    assert found == [{"from": 2, "to": 4, "layer_index": 0, "layer_name": "conv1", "layer_type": "Conv2D",
                      "kernel_name": "volta_scudnn_128x32_relu_interior_nn_v1", "kernel_duration (us)": 150,
                      "new_kernel_name": "implicit_convolve_sgemm", "new_kernel_duration (us)": 280}]


def test_swaps_of_layers_with_other_names(tmp_path):
    """Of another framework: matched by type in their order. A kernel more has nothing beside it; the longest come
    first."""
    one = [Layer("conv_a", "Conv2D", [Kernel("sgemm", 30), Kernel("bias", 5)]),
           Layer("conv_b", "Conv2D", [Kernel("sgemm", 50)]), Layer("only_here", "Softmax", [Kernel("softmax", 9)])]
    other = [Layer("Conv_0", "Conv2D", [Kernel("winograd", 20)]), Layer("Conv_1", "Conv2D", [Kernel("winograd", 40)]),
             Layer("Pool", "MaxPool", [Kernel("pool", 3)])]
    found = rows(tables(write(tmp_path / "a.json", one), write(tmp_path / "b.json", other), "swapped")["swapped"])
    assert [(row["layer_name"], row["kernel_name"], row["kernel_duration (us)"], row["new_kernel_name"],
             row["new_kernel_duration (us)"]) for row in found] == [
        ("conv_b", "sgemm", 50, "winograd", 40), ("conv_a", "sgemm", 30, "winograd", 20), ("conv_a", "bias", 5, None, None)]


@pytest.mark.parametrize("key, known", [("gpu", "NVIDIA H200"), ("framework", "PyTorch"), ("version", "2.11.0+cu130"),
                                        ("file", str(ROOT / "tests/data/h200_training.plumb"))])
def test_keys_from_what_was_recorded(key, known):
    found = compare([ROOT / "tests/data/h200_training.plumb", TORCH], key)
    assert found[0][key] == known
    # PyTorch's profiler does not write its version
    assert found[1][key] == {"version": None, "file": str(TORCH)}.get(key, known)
    assert [row["framework_version"] for row in found] == ["2.11.0+cu130", None]


def test_what_xsp_says_of_its_runs(tmp_path):
    paths = [write(tmp_path / f"{name}.json", model("gemm", 10), framework=name, version=version, batch=batch)
             for name, version, batch in (("MXNet", "1.5.1", 8), ("TensorFlow", "1.13.1", 16))]
    assert [row["framework"] for row in compare(paths, "framework")] == ["MXNet", "TensorFlow"]
    assert [row["version"] for row in compare(paths, "version")] == ["1.5.1", "1.13.1"]
    found = rows(tables(*paths, "A1")["A1"])
    assert [(row["batch_size"], row["batch_size_source"]) for row in found] == [(8, "trace"), (16, "trace")]


def test_latencies_of_two_kinds_have_no_ratio(tmp_path):
    """One with spans, one without."""
    own = tmp_path / "own.plumb"
    own.write_bytes(gzip.decompress((ROOT / "tests/data/foreign/own.plumb.gz").read_bytes()))
    found = compare([own, ROOT / "tests/data/h200_training.plumb"], "file", "--batch", "8,8")
    assert found[0]["duration_kind"] != found[1]["duration_kind"]
    assert [row["normalised_latency"] for row in found] == [1, None]
    assert found[1]["throughput (input/s)"] and [row["normalised_throughput"] for row in found] == [1, None]
    assert found[1]["normalised_gpu_latency"] is not None


def choice(paths, expression, *options):
    found = rows(tables(*paths, "A1", "--optimal", expression, *options)["A1"])
    return [row["batch_size"] for row in found if row["optimal_by_constraint"]], [row["keeps_constraint"] for row in found]


def test_the_optimal_batch_under_a_constraint(sweep):
    """Latencies grow, and so does throughput but for the last."""
    paths, sizes = list(sweep.values()), ("--batch", "1,2,4,8")
    found = rows(tables(*paths, "A1", *sizes)["A1"])
    assert "optimal_by_constraint" not in found[0]
    assert [row["optimal_by_throughput"] for row in found] == [False, False, True, False]
    latency = [row["latency (ms)"] for row in found]
    assert choice(paths, f"latency<{latency[2] + .001:.6f}ms", *sizes) == ([4], [True, True, True, False])
    assert choice(paths, f"latency<{latency[1] * 1000 + 1:.3f}us", *sizes) == ([2], [True, True, False, False])
    assert choice(paths, "latency<1us", *sizes) == ([], [False] * 4)
    # the least latency of those that are fast enough
    throughput = found[1]["throughput (input/s)"]
    assert choice(paths, f"throughput>={throughput - 1:.3f}", *sizes)[0] == [2]
    assert choice(paths, f"throughput>={throughput - 1:.3f},latency>{latency[1] + .001:.6f}ms", *sizes)[0] == [4]
    # nobody recorded memory
    assert choice(paths, "memory<8GB", *sizes) == ([], [None] * 4)


def test_several_profiles_of_one_batch_size(tmp_path):
    """The greatest throughput is that of the fastest, whichever comes first."""
    paths = [write(tmp_path / f"{us}.json", [Layer("l", "C", [Kernel("k", us)])], runs=2) for us in (1000, 300, 1500)]
    sizes = "--batch", "64,64,128"
    found = rows(tables(*paths, "A1", *sizes)["A1"])
    throughput = [row["throughput (input/s)"] for row in found]
    assert throughput[1] == max(throughput)
    for rule in "optimal_by_doubling", "optimal_by_throughput":
        assert [row[rule] for row in found] == [False, True, False]
    assert choice(paths, "latency<500us", *sizes) == ([64], [False, True, False])


def torch_trace(path, shapes):
    """A linear layer called with these first sizes."""
    return save(path, *(
        event("cpu_op", "aten::linear", 100 * i, 20,
              args={"Input Dims": [[size, 7], [4, 7], [4]], "Input type": ["float"] * 3})
        for i, size in enumerate(shapes)))


def test_batch_sizes_from_shapes(tmp_path):
    paths = [torch_trace(tmp_path / f"{size}.json", [size, size]) for size in (16, 32)]
    found = rows(tables(*paths, "A1")["A1"])
    assert [(row["batch_size"], row["batch_size_source"]) for row in found] == [(16, "shapes"), (32, "shapes")]
    assert [row["batch"] for row in compare(paths, "batch")] == [16, 32]
    # what is given counts; sizes that differ from call to call are none
    assert rows(tables(paths[0], "A1", "--batch", "3")["A1"])[0]["batch_size_source"] == "given"
    mixed, = rows(tables(torch_trace(tmp_path / "mixed.json", [16, 16, 9]), "A1")["A1"])
    assert (mixed["batch_size"], mixed["throughput (input/s)"]) == (None, None)


@pytest.mark.parametrize("words, size", [(["--batch-size", "24"], 24), (["--batch_size=12"], 12), (["--batch", "6"], 6),
                                         (["--batches", "6"], None), (["--batch-size", "x"], None)])
def test_batch_sizes_from_the_command(tmp_path, any_torch_python, words, size):
    script = tmp_path / "net.py"
    script.write_text("import torch\nwith torch.no_grad():\n    torch.ones(3, 4) @ torch.ones(4, 5)\n")
    done = run_command(PLUMB, "run", "-o", tmp_path / "p.plumb", any_torch_python, script, *words)
    assert done.returncode == 0, done.stderr
    found, = rows(tables(tmp_path / "p.plumb", "A1")["A1"])
    assert found["batch_size"] == size
    assert found["batch_size_source"] == ("command" if size else None)


@pytest.mark.parametrize("arguments, text", [
    ([TORCH, "A1", "--optimal", "latency"], "--optimal takes"), ([TORCH, "A1", "--optimal", "latency<5"], "--optimal takes"),
    ([TORCH, "A1", "--optimal", "speed>3"], '"speed>3"'), ([TORCH, "A3", "--optimal", "latency<5ms"], "--optimal works with A1"),
    ([TORCH, "--stat", "mode"], 'no statistic "mode"'), ([TORCH, "--stat", "trimmed:50"], "no statistic"),
    ([TORCH, TORCH, "stages"], "only A1, compare and swapped"), ([TORCH, "--key", "colour"], "--key"),
    ([TORCH, TORCH, "--base", "worst"], "--base")])
def test_wrong_use(arguments, text):
    done = run_command(PLUMB, "tables", *arguments)
    assert done.returncode == 1 and text in done.stderr
