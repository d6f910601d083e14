# SPDX-License-Identifier: Apache-2.0
"""`plumb tables`: XSP's analyses of recorded profiles, traces and XSP's own form."""
import csv
import gzip
import io
import json
import math
import xml.etree.ElementTree

import pytest
from conftest import PLUMB, ROOT, run_command
from kineto_traces import event, kernel, save
from plumbtest import recorded as recorded_run
from test_import_jaeger import document, tag, xsp

TORCH = ROOT / "tests/data/foreign/torch.json.gz"
RECORDED = [ROOT / "tests/data/h200_training.plumb", ROOT / "tests/data/h200_example.plumb", TORCH,
            ROOT / "tests/data/foreign/own.plumb.gz"]
IDS = [f"A{number}" for number in range(1, 16)] + ["stages"]


@pytest.fixture(params=RECORDED, ids=lambda path: path.name)
def recorded(request, tmp_path):
    if request.param.name != "own.plumb.gz":
        return request.param
    (tmp_path / "own.plumb").write_bytes(gzip.decompress(request.param.read_bytes()))
    return tmp_path / "own.plumb"


def tables(*arguments):
    done = run_command(PLUMB, "tables", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return {table["id"]: table for table in json.loads(done.stdout)["tables"]}


def rows(table):
    names = [column["name"] for column in table["columns"]]
    return [dict(zip(names, row)) for row in table["rows"]]


def trimmed(values):
    """The mean that XSP takes, written again."""
    values = sorted(values)
    if len(values) < 3:
        return sum(values) / len(values)
    if len(values) == 3:
        return values[1]
    cut = math.floor(len(values) * 0.2)
    values = values[cut:min(len(values) - 1, len(values) - cut)]
    return sum(values) / len(values)


def test_all_tables_of_everything(recorded):
    found = tables(recorded, "all")
    assert list(found) == IDS
    for table in found.values():
        assert set(table) == {"id", "title", "columns", "rows"}
        for number, column in enumerate(table["columns"]):
            assert set(column) == {"name", "unit", "source"}
            cells = [row[number] for row in table["rows"]]
            known = any(cell is not None for cell in cells)
            assert column["source"] in (("measured", "derived") if known else (None,)), column
        assert all(len(row) == len(table["columns"]) for row in table["rows"])
    for row in rows(found["A13"]):
        parts = row["layer_gpu_duration (us)"], row["layer_cpu_duration (us)"]
        if row["layer_duration (us)"] is not None:
            assert min(parts) >= 0 and sum(parts) == pytest.approx(row["layer_duration (us)"])
    for name, column in ("A5", "occurrence percentage (%)"), ("A10", "gpu_duration_percentage"):
        assert sum(row[column] for row in rows(found[name])) == pytest.approx(100)
    assert sum(row["occurrences"] for row in rows(found["A5"])) == len(found["A2"]["rows"])
    kernels = {}
    for row in rows(found["A8"]):
        kernels[row["kernel_name"]] = kernels.get(row["kernel_name"], 0) + row["kernel_count"]
    assert {row["kernel_name"]: pytest.approx(row["kernel_count"]) for row in rows(found["A10"])} == kernels
    # what no counter told is nowhere a number
    for name, part in ("A8", "kernel"), ("A11", "layer"), ("A15", "model"):
        for row in rows(found[name]):
            assert row[f"{part}_dram_read_bytes"] is row[f"{part}_arithmetic_intensity (flops/byte)"] is None
            assert row[f"{part}_memory_bound"] is None


def modules_of_trace():
    """{module: ([host span in µs], [latency with its kernels])} by Python's own reading of the trace."""
    with gzip.open(TORCH) as file:
        events = json.load(file)["traceEvents"]
    launches, kernels = {}, {}
    for event in events:
        if event.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in event.get("args", {}):
            launches[event["args"]["correlation"]] = event
        if event.get("cat") == "kernel":
            kernels.setdefault(event["args"]["correlation"], []).append(event)
    found = {}
    for event in events:
        if event.get("cat") != "python_function" or not event["name"].startswith("nn.Module: "):
            continue
        start, end = event["ts"], event["ts"] + event["dur"]
        last = max([end] + [kernel["ts"] + kernel["dur"] for number, launch in launches.items()
                            if start <= launch["ts"] <= end and launch["tid"] == event["tid"]
                            for kernel in kernels.get(number, ())])
        host, whole = found.setdefault(event["name"][len("nn.Module: "):], ([], []))
        host.append(end - start)
        whole.append(last - start)
    return found


def test_latencies_as_another_reader_has_them():
    known = modules_of_trace()
    found = tables(TORCH, "A3", "A1", "--layer", "module")
    layers = rows(found["A3"])
    assert {row["layer_name"] for row in layers} == {name for name in known if name.startswith(("Linear", "LayerN"))}
    for row in layers:
        host, whole = known[row["layer_name"]]
        assert row["layer_host_duration (us)"] == pytest.approx(trimmed(host), abs=0.003), row
        assert row["layer_duration (us)"] == pytest.approx(trimmed(whole), abs=0.003), row
        assert (row["layer_host_duration_kind"], row["layer_duration_kind"]) == ("host span", "complete")
    # numbered as they ran: what Sequential calls, block by block
    assert [row["layer_name"] for row in layers][:5] == ["LayerNorm_0", "Linear_0", "Linear_1", "LayerNorm_1",
                                                         "Linear_2"]
    assert [row["layer_index"] for row in layers] == list(range(len(layers)))
    model, = rows(found["A1"])
    assert (model["model_name"], model["runs"], model["GPU_name"]) == ("Sequential_0", 4, "NVIDIA H200")
    assert model["duration (us)"] == pytest.approx(trimmed(known["Sequential_0"][1]), abs=0.003)
    # the trace has shapes: 512 rows go in
    assert (model["batch_size"], model["batch_size_source"]) == (512, "shapes")
    assert model["throughput (input/s)"] == pytest.approx(512 / model["duration (us)"] * 1e6)


def test_a_recording_without_spans_of_modules(tmp_path):
    """plumb's own trace: the model is called in two places, its modules' calls are told by their operators."""
    own = tmp_path / "own.plumb"
    own.write_bytes(gzip.decompress((ROOT / "tests/data/foreign/own.plumb.gz").read_bytes()))
    found = tables(own, "A1", "A3", "A13")
    model, = rows(found["A1"])
    assert (model["model_name"], model["runs"], model["duration_kind"]) == ("Sequential", 8, "complete")
    layers = rows(found["A3"])
    assert [row["layer_name"] for row in layers] == [
        name for block in "012" for name in (f"{block}.norm", f"{block}.up", "aten::gelu", f"{block}.down",
                                             "aten::add")] + ["3"]
    assert {row["layer_calls"] for row in layers} == {1}
    for row in layers:
        assert row["layer_duration_kind"] == "complete"
        assert row["layer_duration (us)"] >= row["layer_host_duration (us)"]
        assert row["layer_host_duration_kind"] == ("host span" if "::" in row["layer_name"] else "operators")
    assert all(row["layer_cpu_duration (us)"] >= 0 for row in rows(found["A13"]))


def test_another_model():
    found = tables(TORCH, "A1", "A2", "--model", "Block_1")
    model, = rows(found["A1"])
    host, whole = modules_of_trace()["Block_1"]
    assert (model["model_name"], model["runs"]) == ("Block_1", 4)
    assert model["duration (us)"] == pytest.approx(trimmed(whole), abs=0.003)
    assert [row["layer_name"] for row in rows(found["A2"])] == ["LayerNorm_1", "Linear_2", "aten::gelu", "Linear_3",
                                                                "aten::add"]
    done = run_command(PLUMB, "tables", TORCH, "--model", "Block_9")
    assert done.returncode == 3 and "Block_9" in done.stderr


@pytest.mark.parametrize("file", ["torch.json.gz", "own.plumb.gz"])
def test_a_run_of_several_calls(tmp_path, file):
    """When a run is two calls of the model all of its figures are of two: latencies and kernels of the same."""
    path = ROOT / "tests/data/foreign" / file
    if file == "own.plumb.gz":
        path = tmp_path / "own.plumb"
        path.write_bytes(gzip.decompress((ROOT / "tests/data/foreign" / file).read_bytes()))
    names = "A1", "A3", "A10", "A15"
    once = tables(path, *names)
    calls = rows(once["A1"])[0]["runs"]
    twice = tables(path, *names, "--runs", str(calls // 2))
    (a,), (b,) = rows(once["A1"]), rows(twice["A1"])
    assert (a["duration_kind"], b["runs"]) == (b["duration_kind"], calls // 2)
    assert b["duration (us)"] == pytest.approx(2 * a["duration (us)"])
    (a,), (b,) = rows(once["A15"]), rows(twice["A15"])
    for column in "model_duration (us)", "model_gpu_duration (us)":
        assert b[column] == pytest.approx(2 * a[column])
    for a, b in zip(rows(once["A3"]), rows(twice["A3"])):
        assert b["layer_duration (us)"] == pytest.approx(2 * a["layer_duration (us)"])
    for a, b in zip(rows(once["A10"]), rows(twice["A10"])):
        assert b["model_duration_percentage"] == pytest.approx(a["model_duration_percentage"])


def test_steps_where_there_are_no_modules(tmp_path):
    """Two steps that PyTorch's profiler marked: the second is the shorter one."""
    trace = save(
        tmp_path / "t.json", event("user_annotation", "ProfilerStep#1", 10, 40),
        event("cpu_op", "aten::mm", 12, 20),
        event("user_annotation", "ProfilerStep#2", 100, 20), event("cpu_op", "aten::mm", 102, 10),
        event("cpu_op", "aten::neg", 200, 10))
    found = tables(trace, "A1", "A3")
    model, = rows(found["A1"])
    assert (model["model_name"], model["runs"], model["duration (us)"]) == ("ProfilerStep", 2, 30)
    layer, = rows(found["A3"])
    assert (layer["layer_name"], layer["layer_host_duration (us)"]) == ("aten::mm", 15)


def test_layers_of_either_kind():
    count = {kind: len(tables(TORCH, "A2", "--layer", kind)["A2"]["rows"]) for kind in ("either", "module", "operator")}
    names = {row["layer_type"] for row in rows(tables(TORCH, "A2", "--layer", "operator")["A2"])}
    assert count["module"] == 10 and count["either"] > count["module"]
    assert {"aten::linear", "aten::layer_norm", "aten::gelu"} <= names and "Linear" not in names
    whole = tables(TORCH, "A2", "--whole")["A2"]["rows"]
    assert len(whole) > count["either"]


def test_work_from_shapes(torch_python, tmp_path_factory):
    made = recorded_run(torch_python, "layers.py", tmp_path_factory, options=("--shapes",))
    found = tables(made.path, "A2", "A12", "A14", "A15")
    flops = {row["layer_name"]: row["layer_flops"] for row in rows(found["A12"])}
    # 2 images of 8 channels of 4x4 places, filters of 3x3 over 3 channels; a matrix of 2x128 by one of 128x5
    assert flops == {"0": 2 * (2 * 8 * 16) * 27, "1": None, "2": 2 * 2 * 128 * 5}
    assert {row["layer_name"]: row["layer_shape"] for row in rows(found["A2"])} == {
        "0": "float32[2,8,4,4]", "1": "float32[2,128]", "2": "float32[2,5]"}
    assert rows(found["A15"])[0]["model_flops"] == flops["0"] + flops["2"]
    sources = {column["name"]: column["source"] for column in found["A12"]["columns"]}
    assert (sources["layer_flops"], sources["layer_dram_read_bytes"]) == ("derived", None)
    whole = tables(made.path, "A12", "--whole")["A12"]
    by_type = {row["layer_type"]: row["layer_flops"] for row in rows(whole)}
    assert by_type["aten::bmm"] * 3 == pytest.approx(2 * 4 * 2 * 3 * 5)  # once, in 3 runs of the model


def test_csv():
    done = run_command(PLUMB, "tables", TORCH, "a5", "--csv")
    assert done.returncode == 0
    table = list(csv.reader(io.StringIO(done.stdout)))
    assert table[0] == ["type", "occurrences", "occurrence percentage (%)"]
    assert {row[0]: int(row[1]) for row in table[1:]} == {"Linear": 7, "LayerNorm": 3, "aten::gelu": 3, "aten::add": 3}
    blocks = run_command(PLUMB, "tables", TORCH, "A1", "A15", "--csv").stdout.split("\n\n")
    assert [block.splitlines()[0] for block in blocks] == ["A1,model information", "A15,GPU kernels of the model"]


def batches(*arguments):
    return rows(tables(TORCH, TORCH, TORCH, "A1", *arguments)["A1"])


def test_batches():
    """One latency at each size: throughput doubles, so that both rules take the greatest."""
    found = batches("--batch", "2,8,4")
    assert [row["batch_size"] for row in found] == [2, 4, 8]
    for row in found:
        assert row["throughput (input/s)"] == pytest.approx(row["batch_size"] / row["duration (us)"] * 1e6)
    for rule in "optimal_by_doubling", "optimal_by_throughput":
        assert [row[rule] for row in found] == [False, False, True]
        assert {row[rule] for row in batches()} == {None}
    assert [row["batch_size"] for row in batches("--batch", "2,8,4", "--key", "file")] == [2, 8, 4]


def counted():
    """XSP's trace, with counters on both launches: 1024 flop over 4096 + 1024 bytes in 10.5 µs, and the second."""
    spans = xsp()
    fields = spans[5]["logs"][0]["fields"]
    fields.append(tag("dram_write_bytes", "1024"))
    spans[6]["logs"] = [{"timestamp": 1, "fields": [
        tag("flop_count_sp", 5000000, "int64"), tag("dram_read_bytes", "100"), tag("dram_write_bytes", "100"),
        tag("achieved_occupancy", 0.5, "float64")]}]
    return document(spans)


def test_xsp_with_counters(tmp_path):
    trace = tmp_path / "xsp.json"
    trace.write_text(json.dumps(counted()))
    found = tables(trace, "all", "--peak", "15700", "--bandwidth", "900")
    first, second = rows(found["A11"])
    assert (first["layer_name"], first["layer_type"], second["layer_name"]) == ("conv1", "Convolution", "fc1")
    assert first["layer_flops"] == 1024 and first["layer_achieved_occupancy (%)"] == 25
    assert first["layer_arithmetic_intensity (flops/byte)"] == 0.2
    assert first["layer_arithmetic_throughput (GFlops)"] == pytest.approx(1024 / 10.5 / 1e3)
    assert (first["layer_memory_bound"], second["layer_memory_bound"]) == (True, False)
    total, = rows(found["A15"])
    assert total["model_flops"] == 5001024
    assert total["model_achieved_occupancy (%)"] == pytest.approx((10.5 * 25 + 5 * 50) / 15.5)
    ideal, = {row["GPU_ideal_arithmetic_intensity (flops/byte)"] for row in rows(found["A14"])}
    assert ideal == pytest.approx(17.44, abs=0.005)
    sources = {column["name"]: column["source"] for column in found["A9"]["columns"]}
    assert sources["kernel_arithmetic_intensity (flops/byte)"] == "measured"
    # the kernels of an asynchronous engine run after their layers returned
    for row in rows(found["A13"]):
        assert row["layer_duration_kind"] == "complete" and row["layer_cpu_duration (us)"] >= 0
    assert rows(found["A13"])[0]["layer_gpu_duration (us)"] == 10.5

    picture = tmp_path / "roof.svg"
    done = run_command(PLUMB, "tables", trace, "A14", "--peak", "15700", "--bandwidth", "900", "--svg", picture)
    assert done.returncode == 0, done.stderr
    drawn = xml.etree.ElementTree.parse(picture).getroot()
    titles = [title.text for title in drawn.iter("{http://www.w3.org/2000/svg}title")]
    assert [title.split(":")[0] for title in titles] == ["conv1", "fc1"]


def test_no_roofline_without_counters(tmp_path):
    done = run_command(PLUMB, "tables", TORCH, "A9", "--svg", tmp_path / "x.svg")
    assert done.returncode == 3 and "no counters" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("arguments, text", [
    ([TORCH, "A1", "--batch", "0"], "--batch"), ([TORCH, "A1", "--batch", "1,2"], "2 sizes"),
    ([TORCH, "A16"], "no table A16"), ([TORCH, TORCH, "A2"], "only A1, compare and swapped"), (["A1"], "no profile in this folder"),
    ([TORCH, "--json", "--csv"], "--json or --csv"), ([TORCH, "--svg", "x"], "A9 or A14")])
def test_wrong_use(arguments, text):
    done = run_command(PLUMB, "tables", *arguments)
    assert done.returncode == 1 and text in done.stderr


def test_work_of_an_imported_trace():
    """PyTorch's profiler wrote shapes: three blocks of 256 → 1024 → 256 and a last layer of 10, for 512 rows."""
    done = run_command(PLUMB, "tables", TORCH, "A15", "--json")
    (row,) = rows(json.loads(done.stdout)["tables"][0])
    assert row["model_flops"] == 2 * 512 * (3 * 2 * 256 * 1024 + 256 * 10)


def test_for_people():
    done = run_command(PLUMB, "tables", TORCH, "A8", "--top", "2")
    assert done.returncode == 0
    assert done.stdout.startswith("A8 GPU kernel information\n") and "more (--top 0" in done.stdout
    assert "derived: kernel_flops" in done.stdout and "unknown: kernel_dram_read_bytes" in done.stdout


def test_nothing_to_show(tmp_path):
    done = run_command(PLUMB, "tables", save(tmp_path / "t.json", kernel(1, 11, 2)))
    assert done.returncode == 3 and "neither modules nor operators" in done.stderr
