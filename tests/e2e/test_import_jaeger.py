# SPDX-License-Identifier: Apache-2.0
"""`plumb import` of Jaeger's JSON, and with it of XSP's traces: spans of several levels, of which some say whose
they are. What finds parents has its own tests, tests/unit/test_levels.c."""
import gzip
import json
import random

import pytest
from conftest import PLUMB, run_command
from importing import imported, report

import plumb as plumb_package


def tag(key, value, kind="string"):
    return {"key": key, "type": kind, "value": value}


def span(number, name, start, duration, level=None, parent=None, tags=(), **more):
    """Times in µs. PARENT: a number of a span."""
    tags = [tag(key, value) for key, value in tags]
    if level:
        tags.append(tag("trace_level", level + "_TRACE"))
    made = {"traceID": "a1", "spanID": f"{number:x}", "operationName": name, "references": [],
            "startTime": start, "duration": duration, "tags": tags, "logs": [], "processID": "p1",
            "warnings": None, **more}
    if parent is not None:
        made["references"] = [{"refType": "CHILD_OF", "traceID": "a1", "spanID": f"{parent:x}"}]
    return made


def document(spans, processes=None):
    processes = processes or {"p1": {"serviceName": "carml", "tags": [tag("ip", "10.0.0.1"),
                                                                      tag("hostname", "node1")]}}
    return {"data": [{"traceID": "a1", "spans": spans, "processes": processes, "warnings": None}]}


def frames(node):
    """Names from the outermost frame on."""
    return [step.name for step in [*reversed(node.ancestors), node] if step.kind != "root"]


def paths(path, metric):
    """{"outer > inner": (sum, count)} of what has a value of METRIC of its own; the greatest for a sum where
    the metric has none."""
    found = {}
    with plumb_package.Profile(path) as profile:
        for node in profile.walk():
            if metric in node.exclusive:
                value = node.exclusive[metric]
                found[" > ".join(frames(node))] = (value.max if value.sum is None else value.sum,
                                                   value.count)
    return found


def fates(path):
    """{(reason, detail): count} of what the import did not use as it was."""
    with plumb_package.Profile(path) as profile:
        return {(row.reason, row.detail): row.count for row in profile.ledger
                if row.source == "import" and row.reason}


def cupti(correlation, **more):
    return [("cupti_domain", "CUPTI_CB_DOMAIN_RUNTIME_API"), ("correlation_id", str(correlation)),
            *more.items()]


def xsp(serial=False):
    """One prediction of two layers. All but the prediction name the application as their parent, as go-cupti and
    the frameworks do, which know of nothing between. The kernels of an asynchronous engine run later."""
    late = 0 if serial else 28
    work = {"device_id": "0", "context_id": "1", "stream_id": "7"}
    return [
        span(1, "PredictImage", 1000, 200, "APPLICATION", tags=[("framework_name", "MXNet")]),
        span(2, "c_predict", 1010, 100, "MODEL", 1),
        span(3, "conv1", 1020, 30, "FRAMEWORK", 1, [("layer_sequence_index", "1"),
                                                    ("static_type", "Convolution")]),
        span(4, "fc1", 1050, 30, "FRAMEWORK", 1, [("static_type", "FullyConnected")]),
        span(5, "cudnnConvolutionForward", 1022, 20, "ML_LIBRARY", 1),
        span(6, "cuda_launch", 1024, 4, "SYSTEM_LIBRARY", 1,
             cupti(11, function_name="cudaLaunchKernel", kernel="gemm"),
             logs=[{"timestamp": 1, "fields": [tag("flop_count_sp", 1024, "int64"),
                                               tag("dram_read_bytes", "4096"),
                                               tag("achieved_occupancy", 0.25, "float64")]}]),
        span(7, "cuda_launch", 1060, 4, "SYSTEM_LIBRARY", 1,
             cupti(12, function_name="cudaLaunchKernel")),
        span(8, "gpu_kernel", 1024 + late, 10.5, "SYSTEM_LIBRARY", 1,
             [("name", "gemm"), ("correlation_id", "11"), ("grid_dim", "[8 2 1]"),
              ("block_dim", "[128 1 1]"), ("registers_per_thread", "40"), *work.items()]),
        span(9, "gpu_kernel", 1060 + late, 5, "SYSTEM_LIBRARY", 1,
             [("name", "gemv"), ("correlation_id", "12"), *work.items()]),
        span(10, "gpu_memcpy", 1100, 2, "SYSTEM_LIBRARY", 1,
             [("copy_kind", "HtoD"), ("src_kind", "pinned"), ("dst_kind", "device"), ("bytes", 640),
              ("correlation_id", "99"), *work.items()]),
        span(11, "stream_synchronize", 1085, 20, "HARDWARE", 1,
             cupti(13, function_name="cudaStreamSynchronize")),
    ]


TOP = "PredictImage > "


def test_launches_decide(tmp_path):
    made = imported(tmp_path, document(xsp()))
    assert paths(made, "gpu.time") == {
        TOP + "c_predict > conv1 > cudnnConvolutionForward > cudaLaunchKernel > gemm": (10500, 1),
        TOP + "c_predict > fc1 > cudaLaunchKernel > gemv": (5000, 1)}
    assert paths(made, "gpu.launches") == {
        TOP + "c_predict > conv1 > cudnnConvolutionForward > cudaLaunchKernel": (1, 1),
        TOP + "c_predict > fc1 > cudaLaunchKernel": (1, 1)}
    assert paths(made, "op.duration") == {
        "PredictImage": (200000, 1), TOP + "c_predict": (100000, 1),
        TOP + "c_predict > conv1": (30000, 1), TOP + "c_predict > fc1": (30000, 1),
        TOP + "c_predict > conv1 > cudnnConvolutionForward": (20000, 1)}
    assert paths(made, "op.time") == {
        "PredictImage": (100000, 1), TOP + "c_predict": (40000, 1),
        TOP + "c_predict > conv1": (10000, 1), TOP + "c_predict > fc1": (30000, 1),
        TOP + "c_predict > conv1 > cudnnConvolutionForward": (20000, 1)}
    assert paths(made, "host.wait") == {TOP + "c_predict > cudaStreamSynchronize": (20000, 1)}
    for metric, value in ("flop_count_sp", 1024), ("dram_read_bytes", 4096), ("achieved_occupancy",
                                                                              250000):
        assert list(paths(made, metric).values()) == [(value, 1)]
    assert fates(made) == {}
    device, = report(made)["devices"]
    assert device["kernels"] == {"count": 2, "ns": 15500}
    assert device["copies"] == {"count": 1, "ns": 2000, "bytes": 640}
    assert (device["busy_ns"], device["span_ns"]) == (17500, 50000)
    with plumb_package.Profile(made) as profile:
        process, = profile.processes
        assert (process.command, process.host, process.pid) == ("carml", "node1", None)
        layers = {node.name: node.file for node in profile.of_kind("module")}
        assert layers == {"conv1": "Convolution", "fc1": "FullyConnected"}
        kernel, = [node for node in profile.kernels if node.name == "gemm"]
        variant, = kernel.variants
        assert (tuple(variant.grid), tuple(variant.block)) == ((8, 2, 1), (128, 1, 1))
        copy, = profile.of_kind("copy")
        assert copy.name == "copy pinned→device"
        assert frames(copy)[-2:] == ["PredictImage", "copy pinned→device"]


def test_inclusion_decides(tmp_path):
    """As on a machine whose kernels were made to run one after the other; else it puts them where they are not."""
    serial = imported(tmp_path, document(xsp(serial=True)), options=["--parents", "inclusion"])
    assert paths(serial, "gpu.time") == {
        TOP + "c_predict > conv1 > cudnnConvolutionForward > gemm": (10500, 1),
        TOP + "c_predict > fc1 > gemv": (5000, 1)}
    late = imported(tmp_path, document(xsp()), options=["--parents=inclusion"])
    assert paths(late, "gpu.time") == {TOP + "c_predict > fc1 > gemm": (10500, 1),
                                       TOP + "c_predict > gemv": (5000, 1)}
    done = run_command(PLUMB, "import", "--parents", "guess", "x", "-o", "y")
    assert done.returncode == 1 and "launch" in done.stderr


def network(runs=2, names=("Conv2D", "Relu"), numbers=lambda run, place: str(place), late=True, count=26):
    """XSP of a framework that names layers by what they do: number, type and time tell them apart. The last kernel of
    each run lies in no layer."""
    spans, identity, now = [], iter(range(1, 10**6)), 0
    for run in range(runs):
        top, last = next(identity), now + 200 * count
        spans.append(span(top, "c_predict", now, last - now + 400, "MODEL"))
        layers = []
        for place in range(count):
            name = names[place % len(names)]
            layers.append(span(next(identity), name, now + 200 * place, 100 + place, "FRAMEWORK", top,
                               [("layer_sequence_index", numbers(run, place)), ("op_name", name + "Op")]))
            call = next(identity)
            spans.append(span(call, "cuda_launch", now + 200 * place + 10, 2, "SYSTEM_LIBRARY", top,
                              cupti(call, function_name="cudaLaunchKernel")))
            spans.append(span(next(identity), "gpu_kernel", now + 200 * place + 20, 50 + place, "SYSTEM_LIBRARY", top,
                              [("name", f"k{place}"), ("correlation_id", str(call)), ("device_id", "0")]))
        call = next(identity)
        spans.append(span(call, "cuda_launch", last + 10, 2, "SYSTEM_LIBRARY", top,
                          cupti(call, function_name="cudaLaunchKernel")))
        spans.append(span(next(identity), "gpu_kernel", last + 20, 70, "SYSTEM_LIBRARY", top,
                          [("name", "outside"), ("correlation_id", str(call)), ("device_id", "0")]))
        spans += reversed(layers)
        now += 200 * count + 1000
    return document(spans)


def tables(path, *names):
    done = run_command(PLUMB, "tables", *names, path, "--json")
    assert done.returncode == 0, done.stderr
    return [[dict(zip([column["name"] for column in table["columns"]], row)) for row in table["rows"]]
            for table in json.loads(done.stdout)["tables"]]


@pytest.mark.parametrize("numbers", [lambda run, place: str(place), lambda run, place: f"0-{place}"])
def test_layers_of_one_name(tmp_path, numbers):
    layers, kernels, by_name, total = tables(imported(tmp_path, network(numbers=numbers)), "A2", "A8", "A10", "A15")
    assert [row["layer_name"] for row in layers] == ["Conv2D", "Relu"] * 13
    assert [row["layer_type"] for row in layers] == ["Conv2DOp", "ReluOp"] * 13
    assert [row["layer_host_duration (us)"] for row in layers] == [100 + place for place in range(26)]
    assert {row["layer_calls"] for row in layers} == {1}
    assert [(row["layer_index"], row["kernel_name"]) for row in kernels] == \
        [*((place, f"k{place}") for place in range(26)), (None, "outside")]
    sum_of_kernels = sum(50 + place for place in range(26)) + 70
    assert sum(row["kernel_duration (us)"] for row in by_name) == sum_of_kernels
    assert total[0]["model_gpu_duration (us)"] == sum_of_kernels
    assert total[0]["model_backward_gpu_duration (us)"] is None


def test_one_name_with_another_number_in_each_run(tmp_path):
    """Where a name is alone in its run, it is one layer: TensorFlow numbers layers as they end."""
    names = [f"layer{place}" for place in range(5)]
    made = imported(tmp_path, network(names=names, count=5, numbers=lambda run, place: str((place + run) % 5)))
    assert [row["layer_name"] for row in tables(made, "A2")[0]] == names


@pytest.mark.parametrize("key", ["static_type", "op_name", "static_op_name", "module", "class", "layer_type"])
def test_types_of_layers(tmp_path, key):
    spans = [span(1, "predict", 0, 100, "MODEL"),
             span(2, "0-0__conv1", 10, 20, "FRAMEWORK", 1, [(key, "torch.nn.modules.conv.Conv2d")])]
    assert [row["layer_type"] for row in tables(imported(tmp_path, document(spans)), "A2")[0]] == ["Conv2d"]


def test_what_is_ambiguous_is_said(tmp_path):
    spans = [span(1, "model", 0, 100, "MODEL"), span(2, "left", 10, 40, "FRAMEWORK"),
             span(3, "right", 20, 40, "FRAMEWORK"), span(4, "call", 25, 5, "ML_LIBRARY"),
             span(5, "sure", 52, 5, "ML_LIBRARY")]
    made = imported(tmp_path, document(spans))
    assert paths(made, "op.calls") == {"model": (1, 1), "model > left": (1, 1), "model > right": (1, 1),
                                       "model > call": (1, 1), "model > right > sure": (1, 1)}
    assert fates(made) == {("it could belong to several places", "spans that are inside several others"): 1}
    spans[3]["tags"].append(tag("thread_id", "2"))
    spans[1]["tags"].append(tag("thread_id", "2"))
    made = imported(tmp_path, document(spans))
    assert "model > left > call" in paths(made, "op.calls") and fates(made) == {}


def test_calls_of_one_number(tmp_path):
    """A runtime call and the driver call within it share theirs: the inner one started it. Two that lie side by
    side leave it open."""
    spans = [span(1, "a", 0, 10, "HARDWARE", None, cupti(5, function_name="cudaLaunchKernel")),
             span(2, "b", 2, 5, "HARDWARE", None, cupti(5, function_name="cuLaunchKernel")),
             span(3, "gpu_kernel", 20, 5, "HARDWARE", None, [("name", "k"), ("correlation_id", 5)])]
    made = imported(tmp_path, document(spans))
    assert paths(made, "gpu.time") == {"cuLaunchKernel > k": (5000, 1)}
    spans.append(span(4, "c", 12, 5, "HARDWARE", None, cupti(5, function_name="cuLaunchKernel")))
    made = imported(tmp_path, document(spans))
    assert paths(made, "gpu.time") == {"k": (5000, 1)}
    assert fates(made) == {("it could belong to several places", "GPU work whose correlation several calls have"): 1}


def test_erased_parents(tmp_path):
    """A generated trace with all parents named, and without any: the same profile."""
    random.seed(7)
    levels = ["APPLICATION", "MODEL", "FRAMEWORK", "ML_LIBRARY", "SYSTEM_LIBRARY"]
    spans, late = [], []

    def grow(depth, start, end, parent):
        at = start
        while depth < len(levels) and end - at > 4:
            begin = at + random.randrange((end - at) // 3 + 1)
            length = random.randrange(1, end - begin + 1)
            number = len(spans) + 1
            call = depth == len(levels) - 1
            tags = cupti(number, function_name="launch") if call else []
            spans.append(span(number, f"{levels[depth]} {random.randrange(5)}", begin, length,
                              levels[depth], parent, tags))
            if call and random.randrange(2):
                late.append((number, begin + random.randrange(500), random.randrange(1, 300)))
            grow(depth + random.randrange(1, 3), begin, begin + length, number)
            at = begin + length

    grow(0, 0, 6000, None)
    for launch, start, length in late:
        spans.append(span(len(spans) + 1, "gpu_kernel", start, length, "HARDWARE", launch,
                          [("name", f"k{launch % 3}"), ("correlation_id", launch), ("device_id", 0),
                           ("stream_id", 7)]))
    assert len(late) > 20
    named = imported(tmp_path, document(spans), name="named")
    for one in spans:
        one["references"] = []
    random.shuffle(spans)
    erased = imported(tmp_path, document(spans), name="erased")
    for metric in "gpu.time", "op.time", "op.duration", "gpu.launches":
        assert paths(erased, metric) == paths(named, metric) and paths(named, metric)
    assert fates(erased) == fates(named) == {}


def test_references(tmp_path):
    spans = [span(1, "server", 0, 100), span(2, "later", 200, 10), span(3, "lost", 10, 5, parent=77),
             span(4, "round", 1, 1, parent=5), span(5, "robin", 1, 1, parent=4),
             span(1, "server", 0, 100), span(6, "no time", None, 5), span(7, "back", 9, -5),
             span(8, "old", 30, 5)]
    spans[1]["references"] = [{"refType": "FOLLOWS_FROM", "traceID": "a1", "spanID": "1"}]
    del spans[8]["references"]
    spans[8]["parentSpanID"] = "0001"
    made = imported(tmp_path, document(spans))
    calls = paths(made, "op.calls")
    assert {"server": (1, 1), "server > later": (1, 1), "lost": (1, 1), "server > old": (1, 1)}.items() \
        <= calls.items()
    assert len(calls) == 6
    assert {detail: count for (_, detail), count in fates(made).items()} == {
        "parents that are their own descendants": 1, "parents that are not in the file": 1,
        "spans that are in the file twice": 1, None: 2}


def test_traces_and_processes(tmp_path):
    """Two requests at once on one machine: time alone joins nothing across them, and equal processes are one."""
    one = document([span(1, "model", 0, 100, "MODEL")])["data"][0]
    two = json.loads(json.dumps(one).replace('"a1"', '"b2"'))
    two["spans"] = [{**span(1, "layer", 10, 10, "FRAMEWORK"), "traceID": "b2"}]
    for form in {"data": [one, two]}, [one, two]:
        made = imported(tmp_path, form)
        assert paths(made, "op.calls") == {"model": (1, 1), "layer": (1, 1)}
        assert len(report(made)["processes"]) == 1
    assert paths(imported(tmp_path, one), "op.calls") == {"model": (1, 1)}


def test_recognised_and_packed(tmp_path):
    whole = json.dumps(document(xsp())).encode()
    plain, packed = imported(tmp_path, whole, name="x"), imported(tmp_path, gzip.compress(whole), name="y")
    assert report(plain)["devices"] == report(packed)["devices"]
    with plumb_package.Profile(plain) as profile:
        assert profile.environment["import.format"] == "jaeger"
    done = run_command(PLUMB, "report", tmp_path / "x-0", "--json", "--top", "0")
    assert json.loads(done.stdout)["devices"] == report(plain)["devices"]


def refused(tmp_path, data, out="out.plumb"):
    """One line about it and no file, or the whole answer."""
    path = tmp_path / "bad"
    path.write_bytes(data)
    done = run_command(PLUMB, "import", path, "-o", tmp_path / out)
    if done.returncode == 0:
        assert (tmp_path / out).exists() and done.stderr == ""
        (tmp_path / out).unlink()
        return None
    assert done.returncode in (2, 3), done.stderr
    assert done.stderr.startswith("plumb: ") and done.stderr.count("\n") == 1
    assert not (tmp_path / out).exists()
    return done.stderr


def test_truncated_anywhere(tmp_path):
    spans = [span(1, "é\\n", 0, 9.5, "MODEL", tags=[("device_id", 3)]),
             span(2, "gpu_kernel", 1, 2, "HARDWARE", 1, [("name", "k")])]
    whole = json.dumps(document(spans), separators=(",", ":")).encode()
    said = {refused(tmp_path, whole[:cut]) is None for cut in range(len(whole))}
    assert said == {False}
    assert refused(tmp_path, whole) is None
    assert "at byte" in refused(tmp_path, whole[:-30])


@pytest.mark.parametrize("old, new", [
    ('"startTime": 1000', '"startTime": 99999999999999999999'),
    ('"startTime": 1000', '"startTime": 9223372036854775'),
    ('"duration": 200', '"duration": 9e18'), ('"duration": 200', '"duration": "x"'),
    ('"references": []', '"references": [[], {}, 5, {"refType": 7, "spanID": [1]}]'),
    ('"tags": [', '"tags": [7, {}, {"key": 5}, {"key": "grid_dim", "value": {"a": [1]}}, '),
    ('"processID": "p1"', '"processID": {"p": 1}'), ('"PredictImage"', '[["PredictImage"]]'),
    ('"spanID": "1"', '"spanID": "not hexadecimal, and long"'), ('"a1"', '"' + "f" * 40 + '"'),
    ('"processes": {', '"processes": {"p1": 5, "p2": [], "p3": {"tags": {}}, '),
    ('"device_id", "type": "string", "value": "0"', '"device_id", "value": "-9223372036854775808"'),
    ('"data": [', '"data": [5, [], null, '), ('"spans": [', '"spans": [5, [], null, '),
    ('"bytes", "type": "string", "value": 640', '"bytes", "value": 9223372036854775807'),
])
def test_odd_values(old, new, tmp_path):
    text = json.dumps(document(xsp()))
    assert old in text
    assert refused(tmp_path, text.replace(old, new, 1).encode()) is None


@pytest.mark.parametrize("data, why", [
    (b'{"data":[{"traceID":"1","spans":[]}]}', "no event in it has a time"),
    (b'{"traceID":"1","spans":5,"processes":7}', "no event in it has a time"),
    (b'{"traceID":"1","spans":[' + b"[" * 100000, "at byte"),
    (b'{"traceID":"1","operationName":tru', "at byte"),
    (b'{"traceID":"1","spans":[{"operationName":"a\xff\xfe","startTime":1,"duration":1}', "at byte"),
])
def test_bad_files(data, why, tmp_path):
    assert why in refused(tmp_path, data)


def test_invalid_text_is_replaced(tmp_path):
    made = imported(tmp_path, b'{"traceID":"1","spans":[{"operationName":"a\xff","startTime":1,"duration":1}]}')
    assert paths(made, "op.calls") == {"a\ufffd": (1, 1)}


def test_deep_and_many(tmp_path):
    """A chain of 20 000 is cut at a depth that reports can show, and counted."""
    spans = [span(i + 1, "f", i, 50000 - 2 * i, parent=i or None) for i in range(20000)]
    made = imported(tmp_path, document(spans))
    with plumb_package.Profile(made) as profile:
        assert max(node.depth for node in profile.walk()) == 4096
        deep, = [row.count for row in profile.ledger if row.source == "span" and row.reason]
    assert deep == 20000 - 4096
