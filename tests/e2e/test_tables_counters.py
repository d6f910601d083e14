# SPDX-License-Identifier: Apache-2.0
"""`plumb tables` on traces with counters: the figures that the XSP paper prints, occupancies, and rooflines."""
import json
import re
import xml.etree.ElementTree

import pytest
from conftest import PLUMB, ROOT, run_command
from kineto_traces import call, event, kernel, save
from test_import_jaeger import tag
from test_tables import rows, tables
from xsp_model import Kernel, Layer, write

V100 = "--peak", "15700", "--bandwidth", "900"
MIB = 2**20


def test_the_papers_intensity(tmp_path):
    """Table III, cgemm: 77.42 Gflop over 40.33 and 43.86 "MB", which are MiB; it prints 876.97."""
    trace = write(tmp_path / "t.json", [Layer("conv", "Conv2D", [
        Kernel("volta_cgemm_32x32_tn", 6.03e3, 77.42e9, 40.33 * MIB, 43.86 * MIB, 0.1215)])])
    found = tables(trace, "A9", "A14", "A15", *V100)
    kernel, = rows(found["A9"])
    assert kernel["kernel_arithmetic_intensity (flops/byte)"] == pytest.approx(876.99, abs=0.005)
    assert kernel["kernel_arithmetic_throughput (GFlops)"] == pytest.approx(77.42e9 / 6.03e-3 / 1e9)
    assert (kernel["kernel_memory_bound"], kernel["kernel_name"]) == (False, "volta_cgemm_32x32_tn")
    assert rows(found["A15"])[0]["model_arithmetic_intensity (flops/byte)"] == pytest.approx(876.99, abs=0.005)


@pytest.mark.parametrize("intensity, bound", [(30.61, False), (17.45, False), (17.43, True), (8, True)])
def test_the_papers_flags(tmp_path, intensity, bound):
    """Table VI's flags follow 17.44 flop/B, a V100's 15.7 Tflop/s over 900 GB/s; 30.61 is its batch 256."""
    trace = write(tmp_path / "t.json", [Layer("conv", "Conv2D", [Kernel("k", 100, intensity * 1e9, 6e8, 4e8, 0.5)])])
    found = tables(trace, "A15", *V100)
    model, = rows(found["A15"])
    assert model["model_arithmetic_intensity (flops/byte)"] == pytest.approx(intensity)
    assert model["model_memory_bound"] is bound
    # the same of compare, and without peaks nobody knows
    assert rows(tables(trace, "compare", *V100)["compare"])[0]["memory_bound"] is bound
    assert rows(tables(trace, "compare")["compare"])[0]["memory_bound"] is None


MODEL = [Layer("conv1", "Convolution", [Kernel("gemm", 30, 3000, 300, 100, 0.5), Kernel("bias", 10, 100, 50, 50, 0.1)]),
         Layer("relu", "Activation", []),
         Layer("conv2", "Convolution", [Kernel("gemm", 60, 6000, 600, 200, 0.8)])]


def test_occupancies_are_weighted_by_time(tmp_path):
    found = tables(write(tmp_path / "t.json", MODEL, runs=3), "A8", "A10", "A11", "A12", "A15")
    assert {(row["layer_name"], row["kernel_name"]): row["kernel_achieved_occupancy (%)"]
            for row in rows(found["A8"])} == pytest.approx({("conv1", "gemm"): 50, ("conv1", "bias"): 10,
                                                            ("conv2", "gemm"): 80})
    by_name = {row["kernel_name"]: row for row in rows(found["A10"])}
    assert by_name["gemm"]["kernel_achieved_occupancy (%)"] == pytest.approx((30 * 50 + 60 * 80) / 90)
    assert by_name["bias"]["kernel_achieved_occupancy (%)"] == pytest.approx(10)
    assert (by_name["gemm"]["kernel_count"], by_name["gemm"]["kernel_duration (us)"]) == (2, 90)
    for table in "A11", "A12":
        occupancy = {row["layer_name"]: row["layer_achieved_occupancy (%)"] for row in rows(found[table])}
        assert occupancy.pop("relu") is None
        assert occupancy == pytest.approx({"conv1": (30 * 50 + 10 * 10) / 40, "conv2": 80})
    total, = rows(found["A15"])
    assert total["model_achieved_occupancy (%)"] == pytest.approx((30 * 50 + 10 * 10 + 60 * 80) / 100)
    assert (total["model_flops"], total["model_dram_read_bytes"], total["model_dram_write_bytes"]) == (9100, 950, 350)
    assert total["model_gpu_duration (us)"] == 100


def test_one_unknown_counter_makes_the_sum_unknown(tmp_path):
    layers = [Layer("conv1", "Convolution", [Kernel("gemm", 30, 3000, 300, 100, 0.5), Kernel("bias", 10, 100)])]
    layer, = rows(tables(write(tmp_path / "t.json", layers), "A11")["A11"])
    assert (layer["layer_flops"], layer["layer_dram_read_bytes"], layer["layer_achieved_occupancy (%)"]) == (
        3100, None, None)
    assert layer["layer_memory_bound"] is None


def test_precisions_add_up(tmp_path):
    """Single and half precision are two kinds of work; additions of one precision are a part of it."""
    class Mixed(Kernel):
        def counters(self):
            return super().counters() + [tag(f"flop_count_{name}", number, "int64") for name, number in (
                ("hp", 500), ("sp_add", 100), ("sp_fma", 450), ("sp_special", 7))]

    found = tables(write(tmp_path / "t.json", [Layer("conv", "Convolution", [Mixed("gemm", 10, 1000, 10, 10, 0.5)])], runs=2),
                   "A8", "A10", "A12", "A15")
    assert [row["kernel_flops"] for row in rows(found["A8"]) + rows(found["A10"])] == [1500, 1500]
    assert rows(found["A12"])[0]["layer_flops"] == rows(found["A15"])[0]["model_flops"] == 1500
    # a part alone does not tell the whole
    parts = write(tmp_path / "parts.json", [Layer("conv", "Convolution", [Kernel("gemm", 10)])])
    text = parts.read_text().replace('"fields": []', json.dumps({"fields": [tag("flop_count_sp_add", 100, "int64")]})[1:-1])
    parts.write_text(text)
    assert "flop_count_sp_add" in text and rows(tables(parts, "A8")["A8"])[0]["kernel_flops"] is None


def test_work_of_a_kernel_that_an_operator_runs_twice(tmp_path):
    """Each of 4 products of 4x8 by 8x16 launches its kernel twice: a launch does half of its work."""
    trace = save(tmp_path / "t.json", *(made for i in range(4) for made in (
        event("cpu_op", "aten::mm", 1000 * i, 100, args={"Input Dims": [[4, 8], [8, 16]], "Input type": ["float"] * 2}),
        call(2 * i + 1, 1000 * i + 10), call(2 * i + 2, 1000 * i + 20),
        kernel(2 * i + 1, 1000 * i + 200, 10, "gemm"), kernel(2 * i + 2, 1000 * i + 220, 10, "gemm"))))
    found = tables(trace, "A8", "A10", "A12", "A15")
    one, = rows(found["A8"])
    assert (one["kernel_count"], one["kernel_flops"]) == (8, 2 * 4 * 8 * 16 / 2)
    assert one["kernel_arithmetic_throughput (GFlops)"] == pytest.approx(512 / 10 / 1e3)
    assert rows(found["A10"])[0]["kernel_flops"] == rows(found["A12"])[0]["layer_flops"] == 4 * 2 * 4 * 8 * 16
    assert rows(found["A15"])[0]["model_flops"] == 4 * 2 * 4 * 8 * 16


def test_work_that_one_layer_does_not_know_is_unknown_of_the_model(tmp_path):
    layers = [Layer("conv1", "Convolution", [Kernel("gemm", 30, 3000, 300, 100, 0.5)]), Layer("relu", "Activation", []),
              Layer("conv2", "Convolution", [Kernel("bias", 10, None, 50, 50, 0.1)])]
    found = tables(write(tmp_path / "t.json", layers), "A11", "A15", "compare", "stages", *V100)
    assert [row["layer_flops"] for row in rows(found["A11"])] == [3000, None, None]
    model, = rows(found["A15"])
    assert model["model_dram_read_bytes"] == 350
    assert [model[name] for name in ("model_flops", "model_arithmetic_intensity (flops/byte)", "model_memory_bound")] == [None] * 3
    assert rows(found["compare"])[0]["flops"] is None
    assert {row["flops"] for row in rows(found["stages"])} == {None}


def test_a_host_that_does_not_wait(tmp_path):
    """Each layer takes 10 µs of the host and up to 60 of the GPU: 10 - 60 is nobody's time. What is not the GPU's is
    the wait for it: conv2's kernels queue behind conv1's."""
    found = tables(write(tmp_path / "t.json", MODEL), "A3", "A13")
    latency = {row["layer_name"]: row for row in rows(found["A3"])}
    parts = {row["layer_name"]: row for row in rows(found["A13"])}
    for row in rows(tables(tmp_path / "t.json", "A6")["A6"]):
        assert row["device_duration (us)"] == pytest.approx({"Convolution": 100, "Activation": 0}[row["type"]])
        assert row["device_duration percentage (%)"] == row["device_duration (us)"]
    for name, whole, gpu in ("conv1", 43.5, 40), ("relu", 10, 0), ("conv2", 83.5, 60):
        row = latency[name]
        assert (row["layer_host_duration (us)"], row["layer_host_duration_kind"]) == (10, "host span")
        assert (row["layer_duration (us)"], row["layer_duration_kind"]) == (pytest.approx(whole), "complete")
        row = parts[name]
        assert row["layer_duration_kind"] == "complete" and row["layer_duration (us)"] == pytest.approx(whole)
        assert row["layer_gpu_duration (us)"] == pytest.approx(gpu)
        assert row["layer_cpu_duration (us)"] == pytest.approx(whole - gpu)
        assert row["layer_gpu_percentage"] == pytest.approx(gpu / whole * 100)


def test_a_serialised_run_beside(tmp_path):
    """The same model with every launch waiting: its host spans stand beside the asynchronous run's."""
    serial = [Layer(layer.name, layer.type, layer.kernels, us=100 + 10 * i) for i, layer in enumerate(MODEL)]
    one, other = write(tmp_path / "a.json", MODEL), write(tmp_path / "s.json", serial)
    for row, us in zip(rows(tables(one, "A3", f"--serialised={other}")["A3"]), (100, 110, 120)):
        assert (row["layer_host_duration (us)"], row["layer_serialised_duration (us)"]) == (10, us)
        assert row["layer_duration_kind"] == "complete"
    for row, us in zip(rows(tables(other, "A3", "--serialised")["A3"]), (100, 110, 120)):
        assert (row["layer_host_duration (us)"], row["layer_serialised_duration (us)"]) == (None, us)
        assert row["layer_duration_kind"] == "serialised"
    done = run_command(PLUMB, "tables", one, one, "A1", f"--serialised={other}")
    assert done.returncode == 1 and "works with one FILE" in done.stderr
    done = run_command(PLUMB, "tables", one, f"--serialised={tmp_path / 'none'}")
    assert done.returncode == 5 and "none" in done.stderr


def test_a_cpu_has_no_gpu_time(torch_python, tmp_path):
    """Whatever is said of launches."""
    script = tmp_path / "net.py"
    script.write_text("import torch\nwith torch.no_grad():\n    torch.nn.Linear(4, 5)(torch.ones(3, 4))\n")
    run_command(PLUMB, "run", "-o", tmp_path / "p.plumb", torch_python, script)
    row, = rows(tables(tmp_path / "p.plumb", "A13", "--serialised", "--layer", "module")["A13"])
    assert row["layer_duration (us)"] > 0
    assert row["layer_gpu_duration (us)"] is None and row["layer_cpu_duration (us)"] is None


def test_other_statistics(tmp_path):
    """Ten calls of one layer whose kernels take 10, 20, … 100 µs."""
    from test_import_jaeger import document
    from xsp_model import spans
    made, start = [], 0
    for call in range(1, 11):
        for span in spans([Layer("conv", "Convolution", [Kernel("gemm", 10 * call)], us=5)], 1):
            span = dict(span, spanID=f"{call:x}{int(span['spanID'], 16):04x}", startTime=span["startTime"] + start)
            span["references"] = [dict(ref, spanID=f"{call:x}{int(ref['spanID'], 16):04x}")
                                  for ref in span["references"]]
            span["tags"] = [dict(tag, value=str(int(tag["value"]) + 100 * call)) if tag["key"] == "correlation_id" else tag
                            for tag in span["tags"]]
            made.append(span)
        start += 10000
    trace = tmp_path / "t.json"
    trace.write_text(json.dumps(document(made)))
    expected = {"trimmed": 55, "trimmed:10": 55, "mean": 55, "median": 55, "min": 10, "max": 100, "p90": 90, "p91": 100,
                "p5": 10}
    for stat, value in expected.items():
        kernel, = rows(tables(trace, "A8", "--stat", stat)["A8"])
        assert (kernel["kernel_duration (us)"], kernel["kernel_count"]) == (pytest.approx(value), 1), stat
    assert rows(tables(trace, "A13", "--stat", "max")["A13"])[0]["layer_gpu_duration (us)"] == 100


def test_statistics_without_spans_say_so():
    done = run_command(PLUMB, "tables", ROOT / "tests/data/h200_training.plumb", "A8", "--stat", "median", "--json")
    assert done.returncode == 0 and "no spans" in done.stderr


def convolutions(path, *, lists):
    """A convolution and a matrix product by PyTorch's profiler, which has lists in "Concrete Inputs" since 2.0."""
    def op(ts, name, dims, types, concrete):
        args = {"Input Dims": dims, "Input type": types, **({"Concrete Inputs": concrete} if lists else {})}
        return event("cpu_op", name, ts, 20, args=args)
    return save(
        path,
        op(10, "aten::conv2d", [[2, 3, 9, 9], [8, 3, 3, 3], [], [], [], [], []],
           ["float", "float", "", "ScalarList", "ScalarList", "ScalarList", "Scalar"],
           ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "1"]),
        op(50, "aten::mm", [[2, 3], [3, 4]], ["float", "float"], ["", ""]),
        op(90, "aten::relu", [[2, 4]], ["float"], [""]))


def test_work_that_is_not_known_is_none_of_nothing(tmp_path):
    """Without lists nobody knows what comes out of a convolution: its layer's work, and the model's, are unknown."""
    found = tables(convolutions(tmp_path / "new.json", lists=True), "A12", "A15", "stages")
    assert {row["layer_name"]: row["layer_flops"] for row in rows(found["A12"])} == {
        "aten::conv2d": 2 * 2 * 8 * 5 * 5 * 27, "aten::mm": 48, "aten::relu": None}
    assert rows(found["A15"])[0]["model_flops"] == 2 * 2 * 8 * 5 * 5 * 27 + 48
    assert [row["flops"] for row in rows(found["stages"])] == [2 * 2 * 8 * 5 * 5 * 27, 48, 0]
    found = tables(convolutions(tmp_path / "old.json", lists=False), "A12", "A15", "stages")
    assert {row["layer_name"]: row["layer_flops"] for row in rows(found["A12"])} == {
        "aten::conv2d": None, "aten::mm": 48, "aten::relu": None}
    assert rows(found["A15"])[0]["model_flops"] is None
    assert [row["flops"] for row in rows(found["stages"])] == [None, None, None]


SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("table", ["A9", "A14"])
def test_rooflines(tmp_path, table):
    """Inside the frame, with a legend; numbers of the five that take most time do not lie upon each other."""
    layers = [Layer(f"conv<{i}>&\"x\"", "Conv2D", [Kernel("k" * (10 + 20 * i), 10 + i,
                                                          1e6 * (150 if i == 11 else 1 + i % 3), 6e3, 4e4, 0.5)])
              for i in range(12)]
    picture = tmp_path / "roof.svg"
    done = run_command(PLUMB, "tables", write(tmp_path / "t.json", layers), table, *V100, "--svg", picture)
    assert done.returncode == 0, done.stderr
    drawn = xml.etree.ElementTree.parse(picture).getroot()
    _, _, width, height = map(float, drawn.get("viewBox").split())
    titles = [title.text for title in drawn.iter(f"{SVG}title")]
    assert len(titles) == 12
    texts = ["".join(text.itertext()) for text in drawn.iter(f"{SVG}text")]
    for text in "arithmetic intensity (flop/byte)", "throughput (Gflop/s)", "900 GB/s", "15700 Gflop/s", "17.44 flop/byte", \
            "memory-bound", "compute-bound":
        assert text in texts
    assert any(title.endswith(": 3261 flop/byte, 7143 Gflop/s, 21.00 us in a run") for title in titles)
    assert not any(re.search(r"\de\+\d", text) for text in texts + titles)
    numbers = {}
    for text in drawn.iter(f"{SVG}text"):
        if text.get("class") == "number":
            numbers.setdefault(text.text, []).append((float(text.get("x")), float(text.get("y"))))
    assert sorted(numbers) == list("12345") and all(len(places) == 2 for places in numbers.values())
    at = [places[0] for places in numbers.values()]
    for i, (x, y) in enumerate(at):
        assert 0 < x < width and 0 < y < height
        assert all(abs(x - a) >= 10 or abs(y - b) >= 11 for a, b in at[:i])
    # the longest first: conv<11>; what bounds it decides on shape and colour
    assert any(re.match(r'conv<11>&"x": |k+…k+: ', text) for text in texts)
    # of intensities 21.7, 43 and 65 none is below 17.44
    shapes = {shape.get("class") for kind in ("circle", "rect") for shape in drawn.iter(SVG + kind)
              if shape.find(f"{SVG}title") is not None}
    assert shapes == {"arithmetic"}


def test_the_docs_have_the_peaks():
    """docs/tables.md lists what the program knows."""
    text = (ROOT / "src/analyze/peaks.c").read_text()
    known = {name: [float(number) for number in f"{peaks}, {bandwidth}".split(",")]
             for name, peaks, bandwidth, source in re.findall(
                 r'\{ "([^"]+)",\s*\{ ([^}]*) \},\s*([\d.]+),\s*(\w+)\s*\}', text) if source != "NULL"}
    listed = {name.strip(): [0.0 if cell.strip() == "–" else float(cell) for cell in cells.split("|")[:6]]
              for name, cells in re.findall(r"^\| ([A-Z][\w ]+) \| (.*¹.*|.*².*) \|$",
                                            (ROOT / "docs/tables.md").read_text(), re.M)}
    assert len(known) == 17 and listed == known
