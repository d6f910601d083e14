# SPDX-License-Identifier: Apache-2.0
"""Reads a trace with Perfetto's own definitions, as its trace processor does, and prints JSON: read_perfetto.py
FILE. Fails where that would drop or misread something: fields that are not Perfetto's, a number that names no
text, an event before its track, an end without a beginning, slices of a track that do not nest."""
import collections
import json
import sys

from google.protobuf import unknown_fields
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto

trace = proto.Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())


def check(message):
    assert not list(unknown_fields.UnknownFieldSet(message)), f"unknown fields in {message}"
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            repeated = getattr(field, "is_repeated", None)
            if repeated is None:
                repeated = field.label == field.LABEL_REPEATED
            for part in value if repeated else [value]:
                check(part)


def plain(annotation):
    """What an annotation says: a number, a text, a dictionary or a list."""
    if annotation.dict_entries:
        return {names["annotations"][entry.name_iid]: plain(entry) for entry in annotation.dict_entries}
    if annotation.array_values:
        return [plain(value) for value in annotation.array_values]
    value = getattr(annotation, annotation.WhichOneof("value"))
    return names["texts"][value] if annotation.HasField("string_value_iid") else value


tracks, slices, counters, clocks = {}, [], collections.defaultdict(list), []
flows = collections.defaultdict(list)
names = {"categories": {}, "names": {}, "annotations": {}, "texts": {}}
events = []
for number, packet in enumerate(trace.packet):
    check(packet)
    assert packet.trusted_packet_sequence_id == 1
    assert packet.sequence_flags == (3 if number == 0 else 2)
    data = packet.interned_data
    for table, entries, text in (
            ("categories", data.event_categories, "name"), ("names", data.event_names, "name"),
            ("annotations", data.debug_annotation_names, "name"),
            ("texts", data.debug_annotation_string_values, "str")):
        for entry in entries:
            value = getattr(entry, text)
            value = value.decode() if isinstance(value, bytes) else value
            assert entry.iid and names[table].setdefault(entry.iid, value) == value
    if packet.HasField("clock_snapshot"):
        clocks.append([packet.clock_snapshot.primary_trace_clock,
                       {clock.clock_id: clock.timestamp for clock in packet.clock_snapshot.clocks}])
    if packet.HasField("track_descriptor"):
        track = packet.track_descriptor
        assert track.uuid and track.uuid not in tracks
        assert not track.parent_uuid or track.parent_uuid in tracks
        tracks[track.uuid] = {
            "name": track.thread.thread_name if track.HasField("thread") else
            track.process.process_name if track.HasField("process") else track.name,
            "parent": track.parent_uuid or None,
            "kind": "thread" if track.HasField("thread") else
            "process" if track.HasField("process") else
            "counter" if track.HasField("counter") else "track",
            "pid": track.process.pid or track.thread.pid, "tid": track.thread.tid,
            "labels": list(track.process.process_labels)}
    if packet.HasField("track_event"):
        event = packet.track_event
        assert packet.HasField("timestamp") and event.track_uuid in tracks
        # What the interned numbers mean now is what they mean here.
        found = {"ts": packet.timestamp, "type": event.type, "track": event.track_uuid}
        if event.type == proto.TrackEvent.TYPE_SLICE_BEGIN:
            found.update(
                name=names["names"][event.name_iid],
                categories=[names["categories"][iid] for iid in event.category_iids],
                args={names["annotations"][a.name_iid]: plain(a) for a in event.debug_annotations},
                flows=list(event.flow_ids), ends=list(event.terminating_flow_ids))
        elif event.type == proto.TrackEvent.TYPE_COUNTER:
            counters[event.track_uuid].append([packet.timestamp, event.double_counter_value])
        events.append(found)

# In the order of time; of the same time in the order of the file, as the trace processor sorts.
stacks = collections.defaultdict(list)
for event in sorted(events, key=lambda event: event["ts"]):
    stack = stacks[event["track"]]
    if event["type"] == proto.TrackEvent.TYPE_SLICE_BEGIN:
        event["depth"] = len(stack)
        stack.append(event)
        slices.append(event)
    elif event["type"] == proto.TrackEvent.TYPE_SLICE_END:
        stack.pop()["end"] = event["ts"]
assert not any(stacks.values()), "slices without an end"
for event in slices:
    event["facts"] = event["args"].pop("plumb")
    for flow in event["flows"] + event["ends"]:
        flows[flow].append([event["track"], event["ts"]])
    event.pop("type")
json.dump({"tracks": {str(uuid): track for uuid, track in tracks.items()}, "slices": slices,
           "flows": list(flows.values()), "clocks": clocks,
           "counters": {str(uuid): values for uuid, values in counters.items()}}, sys.stdout)
