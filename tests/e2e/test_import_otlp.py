# SPDX-License-Identifier: Apache-2.0
"""`plumb import` of OpenTelemetry's spans as JSON, in the forms that its exporters have had. What plumb itself
exports is read back in test_export_otlp.py."""
import json

import pytest
from conftest import PLUMB, run_command
from importing import imported, report
from test_import_jaeger import fates, paths, refused

import plumb as plumb_package

TRACE = "0af7651916cd43dd8448eb211c80319c"


def attribute(key, value):
    kind = {str: "stringValue", int: "intValue", float: "doubleValue", bool: "boolValue"}.get(type(value))
    if isinstance(value, list):
        return {"key": key, "value": {"arrayValue": {"values": [{"intValue": str(v)} for v in value]}}}
    return {"key": key, "value": {kind: str(value) if kind == "intValue" else value}}


def span(number, name, start, end, parent=None, attributes=None, **more):
    made = {"traceId": TRACE, "spanId": f"{number:016x}", "name": name, "kind": 1,
            "startTimeUnixNano": str(start), "endTimeUnixNano": str(end),
            "attributes": [attribute(*item) for item in (attributes or {}).items()], "status": {}, **more}
    if parent:
        made["parentSpanId"] = f"{parent:016x}"
    return made


def request(spans, resource=None):
    resource = resource or {"service.name": "train", "host.name": "node1", "process.pid": 42}
    return {"resourceSpans": [{
        "resource": {"attributes": [attribute(*item) for item in resource.items()]},
        "scopeSpans": [{"scope": {"name": "torch", "version": "2"}, "spans": spans}],
        "schemaUrl": "https://opentelemetry.io/schemas/1.24.0"}]}


BASE = 1700000000000000000


def sample():
    """A step with GPU work: a kernel in its call, a copy that says which call started it, and a lost set."""
    work = {"gpu.device.ordinal": 3, "gpu.device.name": "NVIDIA H200", "gpu.device.uuid": "GPU-1",
            "gpu.stream": 7}
    return [
        span(1, "step", BASE, BASE + 900, None, {"thread.id": 5, "thread.name": "main"}),
        span(2, "forward", BASE + 100, BASE + 700, 1, {"thread.id": 5, "plumb.kind": "operator"}),
        span(3, "cuLaunchKernel", BASE + 200, BASE + 250, 2, {"thread.id": 5, "plumb.kind": "gpu_api"}),
        span(4, "gemm", BASE + 300, BASE + 1300, 3,
             {"plumb.kind": "kernel", "gpu.kernel.grid": [8, 2, 1], "gpu.kernel.block": [64, 1, 1], **work}),
        span(5, "copy pinned→device", BASE + 1200, BASE + 1400, None,
             {"plumb.kind": "copy", "gpu.copy.bytes": 640, **work},
             links=[{"traceId": TRACE, "spanId": f"{3:016x}", "attributes": []}]),
        span(6, "set device", BASE + 2000, BASE + 2001, None, {"plumb.kind": "set", **work}),
        span(7, "upload", BASE + 700, BASE + 800, 1, {"thread.id": 6},
             events=[{"timeUnixNano": "1", "name": "x", "attributes": [attribute("bytes_sent", 12)]}]),
    ]


def test_spans(tmp_path):
    made = imported(tmp_path, request(sample()))
    assert paths(made, "op.calls") == {"step": (1, 1), "step > forward": (1, 1), "step > upload": (1, 1)}
    assert paths(made, "op.time") == {"step": (200, 1), "step > forward": (600, 1),
                                      "step > upload": (100, 1)}
    assert paths(made, "gpu.time") == {"step > forward > cuLaunchKernel > gemm": (1000, 1)}
    assert paths(made, "gpu.copy_time") == {"step > forward > cuLaunchKernel > copy pinned→device": (200, 1),
                                            "set device": (1, 1)}
    assert paths(made, "gpu.replays") == {"step > forward > cuLaunchKernel": (1, 1)}
    assert paths(made, "bytes_sent") == {"step > upload": (12, 1)}
    assert fates(made) == {}
    device, = report(made)["devices"]
    assert (device["ordinal"], device["name"], device["uuid"]) == (3, "NVIDIA H200", "GPU-1")
    assert device["copies"] == {"count": 1, "ns": 200, "bytes": 640}
    assert (device["busy_ns"], device["span_ns"]) == (1101, 1701)
    with plumb_package.Profile(made) as profile:
        process, = profile.processes
        assert (process.command, process.host, process.pid) == ("train", "node1", 42)
        assert {(track.tid, track.name) for track in profile.tracks if track.kind == "thread"} == {
            (5, "main"), (6, None)}
        assert profile.environment["import.format"] == "otlp"
        assert min(one.start_ns for one in profile.spans()) == BASE
        lost = {row.source: row.count for row in profile.ledger if row.fate == "unmatched"}
    assert lost == {"gpu.set": 1}


def snake(value):
    """Keys as protobuf's own names have them."""
    if isinstance(value, list):
        return [snake(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {"".join("_" + c.lower() if c.isupper() else c for c in key): snake(item)
            for key, item in value.items()}


def older(document):
    """Before 2022."""
    return json.loads(json.dumps(document).replace('"scopeSpans"', '"instrumentationLibrarySpans"')
                      .replace('"scope"', '"instrumentationLibrary"'))


def numbers(document):
    """64-bit integers as numbers, and ids in capitals."""
    for item in document["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        item["startTimeUnixNano"] = int(item["startTimeUnixNano"])
        item["endTimeUnixNano"] = int(item["endTimeUnixNano"])
        item["traceId"], item["spanId"] = item["traceId"].upper(), item["spanId"].upper()
        for one in item["attributes"]:
            if "intValue" in one["value"]:
                one["value"]["intValue"] = int(one["value"]["intValue"])
    return document


def spread(document):
    """A span a line, as a collector may write them, with other signals between; resources behind their spans."""
    resource, = document["resourceSpans"]
    lines = ['{"resourceLogs":[{"scopeLogs":[]}]}']
    for item in resource["scopeSpans"][0]["spans"]:
        lines.append(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [item]}],
                                                    "resource": resource["resource"]}]}))
    return "\n".join([*lines, '{"resourceMetrics":[]}', ""]).encode()


@pytest.mark.parametrize("form", [snake, older, numbers, spread, lambda d: json.dumps(d, indent=2).encode()])
def test_dialects(form, tmp_path):
    plain = imported(tmp_path, request(sample()), name="plain")
    other = imported(tmp_path, form(request(sample())), name="other")
    for metric in "op.time", "gpu.time", "gpu.copy_bytes", "gpu.replays":
        assert paths(other, metric) == paths(plain, metric) and paths(plain, metric)
    assert report(other)["devices"] == report(plain)["devices"]
    assert len(report(other)["processes"]) == 1
    assert fates(other) == ({("plumb does not show this kind", "requests with metrics or logs"): 2}
                            if form is spread else {})


def test_levels_too(tmp_path):
    """XSP's tags mean the same here."""
    level = "trace_level"
    spans = [span(1, "model", 1, 100, None, {level: "MODEL_TRACE"}),
             span(2, "conv", 10, 50, None, {level: "FRAMEWORK_TRACE"}),
             span(3, "cuda_launch", 20, 25, None, {level: "SYSTEM_LIBRARY_TRACE", "cupti_domain": "driver",
                                                  "correlation_id": 9, "function_name": "cuLaunchKernel"}),
             span(4, "gpu_kernel", 60, 90, None, {level: "SYSTEM_LIBRARY_TRACE", "kernel_name": "gemm",
                                                 "correlation_id": 9})]
    assert list(paths(imported(tmp_path, request(spans)), "gpu.time")) == [
        "model > conv > cuLaunchKernel > gemm"]
    made = imported(tmp_path, request(spans), options=["--parents=inclusion"])
    assert list(paths(made, "gpu.time")) == ["model > gemm"]


def test_code_and_ranks(tmp_path):
    spans = [span(1, "GET /", 1, 9, None, {"code.function.name": "get", "code.file.path": "web.py",
                                           "code.line.number": 7})]
    document = request(spans)
    document["resourceSpans"] += request(spans, {"process.pid": 43, "plumb.rank": 1})["resourceSpans"]
    document["resourceSpans"][1]["scopeSpans"][0]["spans"][0] = {**spans[0], "traceId": "1" * 32}
    made = imported(tmp_path, document)
    with plumb_package.Profile(made) as profile:
        node, = [node for node in profile.walk() if node.name == "GET /"]
        assert (node.kind, node.file, node.line) == ("range", "web.py", 7)
        assert {(process.pid, process.rank) for process in profile.processes} == {(42, None), (43, 1)}


def test_truncated_anywhere(tmp_path):
    spans = [span(1, "é\n", 1, 95, None, {"device_id": 3}),
             span(2, "k", 1, 2, 1, {"plumb.kind": "kernel", "gpu.kernel.grid": [1, 2, 3]})]
    whole = json.dumps(request(spans), separators=(",", ":")).encode()
    assert {refused(tmp_path, whole[:cut]) is None for cut in range(len(whole))} == {False}
    assert refused(tmp_path, whole) is None
    assert "at byte" in refused(tmp_path, whole + b"\n" + whole[:200])
    assert "at byte" in refused(tmp_path, whole + b"\n[]")


@pytest.mark.parametrize("old, new", [
    (f'"startTimeUnixNano": "{BASE}"', '"startTimeUnixNano": "18446744073709551615"'),
    (f'"startTimeUnixNano": "{BASE}"', '"startTimeUnixNano": -9223372036854775808'),
    (f'"endTimeUnixNano": "{BASE + 900}"', '"endTimeUnixNano": {"a": 1}'),
    ('"attributes": [', '"attributes": [7, {}, {"key": 5}, {"key": "gpu.kernel.grid", "value": 5}, '),
    ('{"arrayValue": {"values": [', '{"arrayValue": {"values": [5, {}, {"intValue": "x"}, '),
    ('"links": [', '"links": [5, {}, {"spanId": 5}, '), ('"events": [', '"events": [5, {}, '),
    ('"resource": {', '"resource": {"x": [[]], '), ('"resourceSpans": [', '"resourceSpans": [5, [], '),
    ('"scopeSpans": [', '"scopeSpans": [null, 5, '), ('"spans": [', '"spans": [null, 5, [], '),
    ('"name": "step"', '"name": ["step"]'), ('"gpu.stream", "value": {"intValue": "7"}',
                                             '"gpu.stream", "value": {"intValue": "-9223372036854775808"}'),
    (TRACE, "CvdlGRbNQ92ESOshHIAxnA=="),  # base64, as some wrote ids
    ('"gpu.copy.bytes", "value": {"intValue": "640"}', '"gpu.copies.bytes", "value": {"intValue": "640"}'),
])
def test_odd_values(old, new, tmp_path):
    text = json.dumps(request(sample()), ensure_ascii=False)
    assert old in text
    assert refused(tmp_path, text.replace(old, new).encode()) is None


@pytest.mark.parametrize("data, why", [
    (b'{"resourceSpans":[]}', "no event in it has a time"), (b'{"resourceSpans":7}', "no event in it has a time"),
    (b'{"resourceSpans":[{"scopeSpans":[{"spans":[' + b"{" * 100000, "at byte"),
    (b'{"resourceSpans":[]} nonsense', "at byte"),
])
def test_bad_files(data, why, tmp_path):
    assert why in refused(tmp_path, data)


def test_names_of_others_formats(tmp_path):
    """Whatever a span is called, the file is what it is."""
    words = ["cpu_op", "cuda_runtime", "traceID", "operationName", "processes", "traceEvents"]
    made = imported(tmp_path, request([span(i + 1, word, 1, 9) for i, word in enumerate(words)]))
    assert set(paths(made, "op.calls")) == set(words)


def test_on_the_fly(tmp_path):
    path = tmp_path / "trace"
    path.write_text(json.dumps(request(sample())))
    done = run_command(PLUMB, "report", path, "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["devices"][0]["kernels"]["ns"] == 1000
