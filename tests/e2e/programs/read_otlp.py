# SPDX-License-Identifier: Apache-2.0
"""Reads OTLP/JSON with OpenTelemetry's own definitions and prints its spans as JSON: read_otlp.py FILE. Fails on a
field that is not OpenTelemetry's, a wrong type, or an id of a wrong length."""
import base64
import json
import sys

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def from_hexadecimal(value):
    """Ids are hexadecimal in OTLP/JSON, where protobuf's own JSON has base64 of bytes."""
    if isinstance(value, list):
        return [from_hexadecimal(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: base64.b64encode(bytes.fromhex(item)).decode()
            if key in ("traceId", "spanId", "parentSpanId") else from_hexadecimal(item)
            for key, item in value.items()}


def plain(value):
    kind = value.WhichOneof("value")
    found = getattr(value, kind)
    return [plain(item) for item in found.values] if kind == "array_value" else found


def attributes(found):
    made = {item.key: plain(item.value) for item in found}
    assert len(made) == len(found), "a key is there twice"
    return made


with open(sys.argv[1], encoding="utf-8") as file:
    requests = [json_format.ParseDict(from_hexadecimal(json.loads(line)), ExportTraceServiceRequest())
                for line in file]
spans = []
for request in requests:
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            assert scope.scope.name == "plumb"
            for span in scope.spans:
                assert len(span.trace_id) == 16 and any(span.trace_id)
                assert len(span.span_id) == 8 and any(span.span_id)
                assert len(span.parent_span_id) in (0, 8)
                assert all(link.trace_id == span.trace_id for link in span.links)
                spans.append({
                    "trace": span.trace_id.hex(), "id": span.span_id.hex(),
                    "parent": span.parent_span_id.hex() or None, "name": span.name, "kind": span.kind,
                    "start": span.start_time_unix_nano, "end": span.end_time_unix_nano,
                    "attributes": attributes(span.attributes),
                    "links": [link.span_id.hex() for link in span.links],
                    "resource": attributes(resource.resource.attributes)})
json.dump(spans, sys.stdout)
