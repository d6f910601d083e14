# SPDX-License-Identifier: Apache-2.0
"""Nsight Systems' records of synchronisation and of events, in databases made here after the documented schema:
who waits for whom, and what the critical path makes of it."""
import json
import random

import pytest
from conftest import PLUMB, run_command
from importing import imported, report
from sqlitetest import damages, fates, make, survives, truncations

import plumb

PROCESS, OTHER_PROCESS = 77 << 24, 78 << 24
THREAD = PROCESS | 5
MAIN, SIDE = 7, 13
NONE = 0xFFFFFFFF
TEXTS = ["cudaLaunchKernel_v7000", "cudaEventRecord_v3020", "cudaStreamWaitEvent_v3020", "cudaEventSynchronize_v3020",
         "cudaStreamSynchronize_v3020", "cudaDeviceSynchronize_v3020", "side", "main", "last"]
CALL = "start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER"
KERNEL = ("start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, "
          "globalPid INTEGER, demangledName INTEGER")
SYNC = ("start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, "
        "greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, "
        "deprecatedSyncType INTEGER, syncType INTEGER NOT NULL, eventId INTEGER NOT NULL, eventSyncId INTEGER")
EVENT = ("timestamp INTEGER, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER, "
         "streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, eventId INTEGER NOT NULL, "
         "eventSyncId INTEGER")
EVENT_WAIT, STREAM_WAIT, STREAM, CONTEXT = 1, 2, 3, 4


def event(stream, correlation, event_id, number, device=0, context=1, process=PROCESS):
    return (0, device, context, None, stream, correlation, process, event_id, number)


def sync(kind, stream, correlation, event_id=NONE, number=NONE, start=0, end=0, device=0, context=1, process=PROCESS):
    return (start, end, device, context, None, stream, correlation, process, None, kind, event_id, number)


def call(name, correlation, start, length):
    texts = [text.partition("_")[0] for text in TEXTS]
    return (start, start + length, THREAD, correlation, texts.index(name) + 1)


# A side stream; its event 5 is recorded before the main stream waits for it, and again later for other work.
CALLS = [call("cudaLaunchKernel", 1, 0, 5000), call("cudaEventRecord", 2, 6000, 1000),
         call("cudaLaunchKernel", 3, 8000, 5000), call("cudaStreamWaitEvent", 4, 14000, 1000),
         call("cudaLaunchKernel", 5, 16000, 5000), call("cudaLaunchKernel", 6, 22000, 5000),
         call("cudaEventRecord", 7, 28000, 1000), call("cudaEventSynchronize", 8, 30000, 900_000),
         call("cudaStreamSynchronize", 9, 940_000, 10_000), call("cudaDeviceSynchronize", 10, 960_000, 10_000)]
KERNELS = [(10_000, 500_000, 0, 1, SIDE, 1, PROCESS, 7), (20_000, 60_000, 0, 1, MAIN, 3, PROCESS, 8),
           (502_000, 600_000, 0, 1, MAIN, 5, PROCESS, 9), (501_000, 929_000, 0, 1, SIDE, 6, PROCESS, 7)]
EVENTS = [event(SIDE, 2, 5, 900), event(SIDE, 7, 5, 901)]
SYNCS = [sync(STREAM_WAIT, MAIN, 4, 5, 900, 14100, 14200), sync(EVENT_WAIT, NONE, 8, 5, 901, 30000, 930_000),
         sync(STREAM, MAIN, 9, start=940_000, end=950_000), sync(CONTEXT, NONE, 10, start=960_000, end=970_000)]


def tables(syncs=SYNCS, events=EVENTS, sync_columns=SYNC, event_columns=EVENT, kernels=KERNELS):
    made = {"StringIds": ("id INTEGER PRIMARY KEY, value TEXT", list(enumerate(TEXTS, 1))),
            "CUPTI_ACTIVITY_KIND_RUNTIME": (CALL, CALLS), "CUPTI_ACTIVITY_KIND_KERNEL": (KERNEL, kernels),
            "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": (sync_columns, syncs)}
    if events is not None:
        made["CUPTI_ACTIVITY_KIND_CUDA_EVENT"] = (event_columns, events)
    return made


def without(columns, rows, *names):
    """COLUMNS and ROWS without some of them."""
    kept = [i for i, column in enumerate(columns.split(", ")) if column.split()[0] not in names]
    return ", ".join(columns.split(", ")[i] for i in kept), [tuple(row[i] for i in kept) for row in rows]


def waits(path):
    """(who waits, for what, in which call, after which): streams by their number, a thread as "thread"."""
    profile = plumb.Profile(path)
    names = {track.id: track.stream if track.kind == "stream" else track.kind for track in profile.tracks}
    return sorted(((names[row.track], names.get(row.awaited, "all"), row.call, row.after) for row in profile.waits),
                  key=lambda row: row[2])


ALL = [(MAIN, SIDE, 4, 2), ("thread", SIDE, 8, 7), ("thread", MAIN, 9, 0), ("thread", "all", 10, 0)]


def test_who_waits_for_whom(tmp_path):
    path = imported(tmp_path, make(tmp_path / "trace", tables()))
    assert waits(path) == ALL
    data = report(path)
    assert fates(data, "gpu.sync") == {"received": 4, "attributed": 4}
    assert not fates(data), "events count as used"


def test_the_critical_path_knows(tmp_path):
    done = run_command(PLUMB, "iters", make(tmp_path / "trace", tables()), "--json")
    path = json.loads(done.stdout)["path"]
    edges = path["edges"]
    assert (edges["events"], edges["syncs"], edges["unmatched"], edges["impossible"]) == (1, 3, 0, 0)
    assert edges["inferred_events"] == edges["inferred_syncs"] == 0
    # The last kernel could begin at 102 µs instead of 502, but the side stream's second one holds the host up.
    saved = {row["name"]: row["saving_ns"] for row in path["top"]}
    assert saved["side"] > 300_000 and saved.get("main", 0) == 0


@pytest.mark.parametrize("gone", [(), ("eventSyncId",), ("eventSyncId", "greenContextId", "timestamp"),
                                  ("deprecatedSyncType",)])
def test_columns_of_other_versions(tmp_path, gone):
    """Without numbers of records it is the latest one before the wait: not the one by call 7."""
    sync_columns, syncs = without(SYNC, SYNCS, *gone)
    event_columns, events = without(EVENT, EVENTS, *gone)
    assert waits(imported(tmp_path, make(tmp_path / "trace", tables(syncs, events, sync_columns, event_columns)))) == ALL


def test_numbers_of_waits_alone(tmp_path):
    events = [row[:-1] + (None,) for row in EVENTS]
    assert waits(imported(tmp_path, make(tmp_path / "trace", tables(events=events)))) == ALL


@pytest.mark.parametrize("events, columns", [(None, EVENT), ([], EVENT), (EVENTS, None)])
def test_events_that_nothing_is_known_of(tmp_path, events, columns):
    """The two waits for an event are left out, and said to be."""
    made = tables(events=events)
    if columns is None:
        made["CUPTI_ACTIVITY_KIND_CUDA_EVENT"] = without(EVENT, EVENTS, "streamId", "eventId")
    path = imported(tmp_path, make(tmp_path / "trace", made))
    assert waits(path) == ALL[2:]
    assert fates(report(path))["waits for events that are not in the file"] == 2


@pytest.mark.parametrize("record, known", [
    (event(SIDE, 2, 5, 0, context=9), False),  # another context's event of this number has no work there
    (event(SIDE, 5, 5, 0), False),             # only recorded after the wait
    (event(SIDE, 2, 5, 0, process=OTHER_PROCESS), False),
    (event(SIDE, 2, 6, 0), False),
    (event(99, 2, 5, 0), False),               # on a stream without work
    (event(NONE, 2, 5, 0), False),
    (event(SIDE, None, 5, 0), False),
    (event(SIDE, 2, 5, 0), True)])
def test_which_record(tmp_path, record, known):
    syncs = [sync(STREAM_WAIT, MAIN, 4, 5, 0)]
    path = imported(tmp_path, make(tmp_path / "trace", tables(syncs, [record])))
    assert waits(path) == (ALL[:1] if known else [])


def test_another_device(tmp_path):
    """The event was recorded on GPU 1, in its context."""
    kernels = [row[:2] + (1, 2) + row[4:] if row[4] == SIDE else row for row in KERNELS]
    events = [event(SIDE, 2, 5, 900, device=1, context=2)]
    for numbers in (900, 0):
        syncs = [sync(STREAM_WAIT, MAIN, 4, 5, numbers)]
        path = imported(tmp_path, make(tmp_path / "trace", tables(syncs, events, kernels=kernels)))
        assert waits(path) == ALL[:1]
        profile = plumb.Profile(path)
        (row,) = profile.waits
        assert profile.devices[row.device].ordinal == 1


def test_hostile_values(tmp_path):
    """Whatever stands there: a profile."""
    chance = random.Random(7)
    odd = [0, -1, 1, NONE, 2**31, 2**63 - 1, -2**63, "x", b"\0\xff", 1e300, 5, 900, SIDE]
    loose = [", ".join(column.split()[0] for column in columns.split(", ")) for columns in (SYNC, EVENT)]
    made = []
    for i in range(60):
        rows = [[[chance.choice(odd) if chance.random() < 0.4 else value for value in row]
                 for row in table for _ in range(chance.randint(1, 4))] for table in (SYNCS, EVENTS)]
        path = make(tmp_path / f"trace{i}", tables(rows[0], rows[1], *loose))
        made.append(path.read_bytes())
    assert survives(tmp_path, made) == len(made)


def test_damaged_files(tmp_path):
    path = make(tmp_path / "trace", tables(), page_size=512)
    survives(tmp_path, damages(path, 60))
    survives(tmp_path, truncations(path, 257))
