# SPDX-License-Identifier: Apache-2.0
"""`plumb export` as Chrome trace events, CSV and JSON: read back, all of it is there."""
import collections
import csv
import gzip
import io
import json
import pathlib
import sqlite3

import pytest
from conftest import PLUMB, ROOT, run_command
from importing import imported, shared, write
from kineto_traces import call, document, event, kernel
from plumbtest import export, query

RECORDED = [ROOT / "tests/data/h200_training.plumb", ROOT / "tests/data/h200_example.plumb"]
TOTALS = ("name", "uuid", "ordinal", "multiprocessors", "memory_bytes", "kernels", "kernel_ns", "copies", "copy_ns",
          "copy_bytes", "sets", "set_ns", "set_bytes", "busy_ns")


def devices(profile):
    return query(profile, f"SELECT {', '.join(TOTALS)}, last_ns - first_ns FROM devices ORDER BY ordinal, kernel_ns")


KINETO = document(
    event("cpu_op", "aten::mm", 1.001, 9), event("python_function", "train.py(7): step", 0.5, 20),
    event("python_function", "nn.Module: Linear_0", 0.75, 12),
    call(3, 2, duration=1), *(call(4 + i, 4 + 2 * i, "cudaMemcpyAsync", 1) for i in range(2)),
    kernel(3, 11, 2.003, "gemm \"<é>\" \\ \u0001", grid=[1, 2, 3], block=[4, 5, 6],
           **{"registers per thread": 32, "shared memory": 1024}),
    *(kernel(4 + i, 12 + 3 * i, 2, "Memcpy HtoD (Pinned -> Device)", category="gpu_memcpy", bytes=100 + i) for i in range(2)),
    event("gpu_memset", "Memset (Device)", 30, 1, 0, 8, args={"device": 0, "context": 1, "stream": 8, "bytes": 64}),
    deviceProperties=[{"id": 0, "name": "GPU"}])


def chrome(profile, folder):
    path = export(profile, folder / "out.trace.json")
    return path, json.loads(path.read_text())


def events(document, category):
    return [event for event in document["traceEvents"] if event["ph"] == "X" and event["cat"] == category]


# ---- chrome ----

def test_chrome_events_are_pytorchs(tmp_path):
    made = imported(tmp_path, KINETO)
    _, document = chrome(made.path, tmp_path)
    kernel, = events(document, "kernel")
    assert kernel["name"] == "gemm \"<é>\" \\ \u0001" and (kernel["ts"], kernel["dur"]) == (10.5, 2.003)
    args = kernel["args"]
    assert args.pop("call path") > 0
    assert args == {"correlation": 3, "process": 5, "device": 0, "context": 1, "stream": 7, "grid": [1, 2, 3],
                    "block": [4, 5, 6], "registers per thread": 32, "shared memory": 1024}
    copies = events(document, "gpu_memcpy")
    assert [copy["name"] for copy in copies] == ["Memcpy HtoD (Pinned -> Device)"] * 2
    assert sorted(copy["args"]["bytes"] for copy in copies) == [100, 101]
    assert not document["plumb"].get("bytes")  # nothing that no event tells
    assert events(document, "gpu_memset")[0]["args"]["bytes"] == 64
    assert {event["name"] for event in events(document, "python_function")} == {"train.py(7): step",
                                                                               "nn.Module: Linear_0"}
    assert {event["name"] for event in events(document, "cuda_runtime")} == {"cudaLaunchKernel", "cudaMemcpyAsync"}
    names = {(event["name"], event["args"].get("name")) for event in document["traceEvents"] if event["ph"] == "M"}
    assert ("process_name", "GPU 0 GPU") in names and ("thread_name", "stream 7") in names


def test_chrome_arrows_lead_from_calls_to_work(tmp_path):
    _, document = chrome(imported(tmp_path, KINETO).path, tmp_path)
    ends = collections.defaultdict(dict)
    for event in document["traceEvents"]:
        if event["ph"] in "sf":
            ends[event["id"]][event["ph"]] = event
    assert len(ends) == 3 and all(set(pair) == {"s", "f"} for pair in ends.values())
    at = {(event["pid"], event["tid"], event["ts"]): event for event in document["traceEvents"] if event["ph"] == "X"}
    for pair in ends.values():
        call, work = (at[pair[end]["pid"], pair[end]["tid"], pair[end]["ts"]] for end in "sf")
        assert call["cat"] == "cuda_runtime" and call["args"]["correlation"] == work["args"]["correlation"]


def test_chrome_read_back_has_the_same_totals(tmp_path):
    made = imported(tmp_path, KINETO)
    path, _ = chrome(made.path, tmp_path)
    again = imported(tmp_path, path, name="again")
    assert again.format == "kineto"
    assert devices(made.path) == devices(again.path)
    assert made.stacks() == again.stacks()
    assert query(made.path, "SELECT SUM(count), SUM(total_ns) FROM span_chunks") == \
        query(again.path, "SELECT SUM(count), SUM(total_ns) FROM span_chunks")
    values = ("SELECT m.name, SUM(v.sum), SUM(v.count), MIN(v.min), MAX(v.max) FROM context_values v JOIN metrics m "
              "ON m.id = v.metric WHERE m.name != 'gpu.copy_bytes' GROUP BY m.name")
    assert query(made.path, values) == query(again.path, values)


def test_every_kind_of_copy_is_read_back(tmp_path):
    kinds = ["pageable", "pinned", "device", "managed", "array", "host", "unknown"]
    names = [f"Memcpy ({source} -> {target})" for source in kinds for target in kinds] + \
        ["Memcpy PtoP (Device -> Device)"] + [f"Memset ({kind})" for kind in kinds]
    made = imported(tmp_path, {"deviceProperties": [], "traceEvents": [
        {"ph": "X", "cat": "gpu_memset" if "set" in name else "gpu_memcpy", "name": name, "pid": 0, "tid": 7, "ts": i,
         "dur": 1, "args": {"device": 0, "stream": 7}} for i, name in enumerate(names)]})
    assert len(made.stacks()) == len(names)
    again = imported(tmp_path, chrome(made.path, tmp_path)[0], name="again")
    assert made.stacks() == again.stacks() and devices(made.path) == devices(again.path)


def test_chrome_of_several_processes_and_devices(tmp_path):
    """Two ranks with the same pid, device and stream numbers: what is whose stays so."""
    ranks = []
    for rank in range(2):
        document = json.loads(json.dumps(KINETO)) | {"distributedInfo": {"rank": rank}}
        document["traceEvents"][6]["dur"] = 5 + rank
        ranks.append(write(tmp_path, document, f"rank{rank}"))
    done = run_command(PLUMB, "import", *ranks, "-o", tmp_path / "both.plumb")
    assert done.returncode == 0, done.stderr
    again = imported(tmp_path, chrome(tmp_path / "both.plumb", tmp_path)[0], name="again")
    assert devices(tmp_path / "both.plumb") == devices(again.path)
    assert len(devices(again.path)) == 2


@pytest.mark.parametrize("profile", RECORDED, ids=lambda path: path.stem)
def test_chrome_of_recorded_runs_has_the_same_totals(tmp_path, profile):
    again = imported(tmp_path, chrome(profile, tmp_path)[0])
    assert devices(profile) == devices(again.path)
    names = "SELECT f.name FROM contexts c JOIN frames f ON f.id = c.frame WHERE f.kind = 'gpu_api' GROUP BY f.name"
    assert set(query(again.path, names)) <= set(query(profile, names))


@pytest.mark.parametrize("name", ["k01_v100_resnet50_w0_6steps", "k08_a100_ddp2_rank0_nccl_meta_3steps",
                                  "k20_h100_qwen1.5", "k28_mi_sglang_qwen3_decode_hipgraph"])
def test_chrome_of_published_traces_has_the_same_totals(tmp_path, name):
    made = imported(tmp_path, shared(f"kineto/{name}.json.gz"))
    again = imported(tmp_path, chrome(made.path, tmp_path)[0], name="again")
    assert devices(made.path) == devices(again.path)
    calls = "SELECT COUNT(*) FROM contexts"
    assert query(made.path, calls) == query(again.path, calls)


def test_the_rank_is_read_back(tmp_path):
    made = imported(tmp_path, KINETO | {"distributedInfo": {"rank": 3}})
    path, document = chrome(made.path, tmp_path)
    assert document["distributedInfo"] == {"rank": 3}
    again = imported(tmp_path, path, name="again")
    assert {rank for rank, in query(again.path, "SELECT rank FROM processes")} == {3}


@pytest.mark.parametrize("numbers", [[16, 17, 19], [0, 1]])
def test_steps_of_the_profiler_keep_their_numbers(tmp_path, numbers):
    names = [f"ProfilerStep#{number}" for number in numbers]
    made = imported(tmp_path, {"deviceProperties": [], "traceEvents": [
        {"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": 2, "ts": 10 * i, "dur": 5}
        for i, name in enumerate(names)]})
    path, document = chrome(made.path, tmp_path)
    assert [event["name"] for event in events(document, "user_annotation")] == names
    again = imported(tmp_path, path, name="again")
    assert again.environment()["profiler.steps"] == " ".join(map(str, numbers))
    assert again.stacks() == {"range ProfilerStep"}


def test_times_are_exact(tmp_path):
    base = 1785000000000000123
    document = {"baseTimeNanoseconds": base, "traceEvents": [
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 0.001, "dur": 0.999, "args": {"device": 0}},
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 9007199254740.993, "dur": 1.001,
         "args": {"device": 0}}]}
    text = json.dumps(document).replace("9007199254740.992", "9007199254740.993")
    made = imported(tmp_path, text)
    path, _ = chrome(made.path, tmp_path)
    assert f'"baseTimeNanoseconds":{base + 1}' in path.read_text()
    assert '"ts":9007199254740.992,"dur":1.001' in path.read_text()
    spans = "SELECT MIN(start_ns), MAX(end_ns), SUM(total_ns) FROM span_chunks"
    assert query(made.path, spans) == query(imported(tmp_path, path, name="again").path, spans)


def test_totals_only_have_no_time_line(tmp_path):
    path = tmp_path / "totals.plumb"
    path.write_bytes(RECORDED[0].read_bytes())
    with sqlite3.connect(path) as database:
        database.execute("DELETE FROM span_chunks")
    done = run_command(PLUMB, "export", path, "-o", tmp_path / "x.trace.json")
    assert done.returncode == 3 and "no timeline" in done.stderr
    assert not (tmp_path / "x.trace.json").exists()


# ---- csv ----

def rows(path):
    return list(csv.DictReader(io.StringIO(path.read_bytes().decode())))


@pytest.mark.parametrize("profile", RECORDED, ids=lambda path: path.stem)
def test_csv_has_every_value(tmp_path, profile):
    found = rows(export(profile, tmp_path / "out.csv"))
    stored = query(profile, "SELECT v.context, m.name, v.count, CASE m.aggregation WHEN 'sum' THEN v.sum END, v.min, "
                            "v.max, v.mean, t.tid, t.stream FROM context_values v JOIN metrics m ON m.id = v.metric "
                            "LEFT JOIN tracks t ON t.id = v.track ORDER BY v.id")
    assert len(found) == len(stored) > 0

    def number(text):
        return int(text) if text else None
    for row, (context, metric, count, total, least, most, mean, tid, stream) in zip(found, stored, strict=True):
        assert (int(row["context"]), row["metric"], int(row["count"]), number(row["sum"]), int(row["min"]),
                int(row["max"]), float(row["mean"]), number(row["tid"]), number(row["stream"])) == \
            (context, metric, count, total, least, most, mean, tid, stream)
    paths = {int(row["context"]): row["path"] for row in found}
    for row in found:
        parent = int(row["parent"]) if row["parent"] else None
        if parent in paths and paths[parent]:
            assert row["path"].startswith(paths[parent] + " > ")


def test_csv_of_names_with_markup(tmp_path):
    found = rows(export(imported(tmp_path, KINETO).path, tmp_path / "out.csv"))
    kernel = next(row for row in found if row["kind"] == "kernel" and row["metric"] == "gpu.time")
    assert kernel["name"] == "gemm \"<é>\" \\ \u0001"
    assert kernel["path"].endswith("aten::mm > cudaLaunchKernel > gemm \"<é>\" \\ \u0001")
    assert (kernel["pid"], kernel["device"], kernel["gpu"], kernel["stream"], kernel["tid"], kernel["rank"]) == \
        ("5", "0", "GPU", "7", "", "")


# ---- json ----

@pytest.mark.parametrize("profile", RECORDED, ids=lambda path: path.stem)
def test_json_has_every_table(tmp_path, profile):
    document = json.loads(export(profile, tmp_path / "out.json").read_text())
    tables = {name for name, in query(profile, "SELECT name FROM sqlite_master WHERE type = 'table'")}
    same = tables - {"span_chunks", "metrics", "totals", "objects", "sources", "fates"}
    assert same <= document.keys()
    metrics = dict(query(profile, "SELECT id, name FROM metrics"))
    for table in same:
        with sqlite3.connect(profile) as database:
            cursor = database.execute(f"SELECT * FROM {table} ORDER BY id")
            names = [column[0] for column in cursor.description]
            stored = [dict(zip(names, row, strict=True)) for row in cursor]
        if table == "context_values":
            stored = [row | {"metric": metrics[row["metric"]]} for row in stored]
        assert len(stored) == len(document[table]), table
        for before, after in zip(stored, document[table], strict=True):
            assert before == {name: after[name] for name in before}, table
    assert {metric["name"] for metric in document["metrics"]} >= set(metrics.values())
    count, total = query(profile, "SELECT SUM(count), SUM(total_ns) FROM span_chunks WHERE source = 'trace'")[0]
    assert len(document["spans"]) == (count or 0)
    assert sum(span["end_ns"] - span["start_ns"] for span in document["spans"]) == (total or 0)


def test_json_ids_lead_to_rows(tmp_path):
    document = json.loads(export(imported(tmp_path, KINETO).path, tmp_path / "out.json").read_text())
    for span in document["spans"]:
        frame = document["frames"][document["contexts"][span["context"]]["frame"]]
        assert (frame["kind"] in ("kernel", "copy", "set")) == (document["tracks"][span["track"]]["kind"] == "stream")
    assert len(document["spans"]) == 10


# ---- the command ----

@pytest.mark.parametrize("name, begin", [("x.trace.json", '{"schemaVersion"'), ("x.csv", "context,parent"),
                                         ("x.json", '{"schema":'), ("x.speedscope.json", '{"$schema"')])
def test_the_name_tells_the_format(tmp_path, name, begin):
    assert export(RECORDED[1], tmp_path / name).read_text().startswith(begin)


@pytest.mark.parametrize("form", ["chrome", "csv", "json"])
def test_exports_take_no_metric(tmp_path, form):
    done = run_command(PLUMB, "export", RECORDED[1], "-F", form, "-m", "op.time")
    assert done.returncode == 1 and f"{form} has no --metric" in done.stderr


@pytest.mark.parametrize("form", ["chrome", "csv", "json"])
def test_a_full_disk_is_reported(form):
    if not pathlib.Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    done = run_command(PLUMB, "export", RECORDED[0], "-F", form, "-o", "/dev/full")
    assert done.returncode == 5 and "no space left" in done.stderr


def test_a_trace_is_exported_without_a_profile(tmp_path):
    packed = tmp_path / "trace"
    packed.write_bytes(gzip.compress(json.dumps(KINETO).encode()))
    assert rows(export(packed, tmp_path / "out.csv"))
