# SPDX-License-Identifier: Apache-2.0
"""`plumb tables FILE stages`: which third of the layers what lies in."""
import pytest
from test_tables import TORCH, rows, tables
from xsp_model import Kernel, Layer, write


def stages(path, *options):
    found = tables(path, "stages", *options)["stages"]
    return {row["stage"]: row for row in rows(found)}, {column["name"]: column for column in found["columns"]}


def test_thirds_by_number(tmp_path):
    """Seven layers: 0 to 2, 3 and 4, 5 and 6. Layer i has a kernel of 10·(i+1) µs."""
    layers = [Layer(f"l{i}", "Conv2D", [Kernel("k", 10 * (i + 1), 100 * (7 - i), 1000 * i, 24, 0.5)]) for i in range(7)]
    found, columns = stages(write(tmp_path / "t.json", layers))
    assert list(found) == ["beginning", "middle", "end"]
    assert [(row["first_layer_index"], row["layers"]) for row in found.values()] == [(0, 3), (3, 2), (5, 2)]
    assert [row["gpu_duration (us)"] for row in found.values()] == [60, 90, 130]
    assert [row["gpu_duration percentage (%)"] for row in found.values()] == pytest.approx(
        [60 / 2.8, 90 / 2.8, 130 / 2.8])
    assert [row["flops"] for row in found.values()] == [1800, 700, 300]
    assert [row["dram accesses (bytes)"] for row in found.values()] == [3072, 7048, 11048]
    assert sum(row["flops percentage (%)"] for row in found.values()) == pytest.approx(100)
    assert columns["flops"]["source"] == "measured"
    # nothing told what was allocated
    assert columns["allocated memory (bytes)"]["source"] is None
    assert {row["allocated memory percentage (%)"] for row in found.values()} == {None}
    assert {row["duration_kind"] for row in found.values()} == {"complete"}


def test_layers_without_kernels_have_no_work(tmp_path):
    layers = [Layer("a", "Input", []), Layer("b", "Conv2D", [Kernel("k", 10, 1000, 80, 20, 0.5)]), Layer("c", "Out", [])]
    found, _ = stages(write(tmp_path / "t.json", layers))
    assert [row["flops"] for row in found.values()] == [0, 1000, 0]
    assert [row["dram accesses percentage (%)"] for row in found.values()] == [0, 100, 0]


def test_an_unknown_counter_leaves_its_column_unknown(tmp_path):
    layers = [Layer("a", "Conv2D", [Kernel("k", 10, 1000)]), Layer("b", "Conv2D", [Kernel("k", 10, 1000, 80, 20, 0.5)])]
    found, columns = stages(write(tmp_path / "t.json", layers))
    assert [row["layers"] for row in found.values()] == [1, 1, 0]
    assert found["end"]["first_layer_index"] is None
    assert [row["flops"] for row in found.values()] == [1000, 1000, 0]
    assert columns["dram accesses (bytes)"]["source"] is None


def test_of_a_trace():
    """The sums are those of A3, A11 and A15."""
    found, columns = stages(TORCH)
    others = tables(TORCH, "A3", "A11", "A15")
    layers = rows(others["A3"])
    third = [index * 3 // len(layers) for index in range(len(layers))]
    for number, row in enumerate(found.values()):
        assert row["duration (us)"] == pytest.approx(
            sum(layer["layer_duration (us)"] for layer, stage in zip(layers, third) if stage == number))
        assert row["flops"] == sum(layer["layer_flops"] or 0 for layer, stage in zip(rows(others["A11"]), third)
                                   if stage == number)
    assert sum(row["flops"] for row in found.values()) == rows(others["A15"])[0]["model_flops"]
    assert sum(row["gpu_duration (us)"] for row in found.values()) == pytest.approx(
        rows(others["A15"])[0]["model_gpu_duration (us)"])
    assert columns["flops percentage (%)"]["source"] == "derived"
