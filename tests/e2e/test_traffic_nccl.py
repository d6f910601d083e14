# SPDX-License-Identifier: Apache-2.0
"""What NCCL reports of its operations, under plumb run --traffic: the stand-in NCCL (tests/mock/nccl.c) plays events of known
bytes around launches of known times, in each version of the interface."""
import os
import re
import sqlite3
import subprocess
import sys

import pytest
from conftest import BUILD, ROOT
from plumbtest import findings, run_program
from test_mock_gpu import mock_environment

VERSIONS = (3, 4, 5)
EACH = pytest.mark.parametrize("version", VERSIONS)


def play(folder, kind, version=5, *options, environment=None, expect=0):
    made = run_program(sys.executable, "nccl_player.py", kind, version, folder=folder, options=("--traffic", *options),
                       environment={**mock_environment("13.0"), **(environment or {})})
    assert made.done.returncode == expect, made.done.stderr
    return made


def rows(made, query):
    database = sqlite3.connect(made.path)
    found = database.execute(query).fetchall()
    database.close()
    return found


# Times of the GPU become those of the host, which can move an end by 1 ns.
MICROSECONDS = "CAST(round((end_ns - start_ns) / 1000.0) AS INT)"


def told(made, columns="operation, bytes", where="1"):
    return rows(made, f"SELECT {columns} FROM collectives WHERE {where} ORDER BY called_ns, id")


def line(made, context):
    """The line of the program that the context is at."""
    return made.steps(made.node(context))[-1]


def kernels_of(made, newest):
    """(track, start, end) of all kernels of NCCL."""
    return {(span.track, span.start_ns, span.end_ns) for span in made.profile.spans(newest=newest)
            if "nccl" in (made.node(span.context).symbol or "")}


def environment(made):
    return dict(rows(made, "SELECT key, value FROM environment"))


# ---- counts, bytes and kernels ----

@pytest.fixture(scope="module", params=VERSIONS)
def kinds(request, tmp_path_factory):
    made = play(tmp_path_factory.mktemp("kinds"), "kinds", request.param)
    made.version = request.param
    return made


def test_operations_and_bytes(kinds):
    assert f"version {kinds.version}" in kinds.done.stdout
    assert told(kinds) == [("AllReduce", 4000), ("AllGather", 1000), ("Broadcast", 200), ("AllReduce", 4000),
                           ("AllReduce", 80), ("Send", 256), ("Recv", 128), ("Send", 256)]
    assert kinds.ledger("collective") == {"received": 8, "attributed": 8}


def test_words_of_the_library(kinds):
    # From version 5 on the call tells its type; before that, NCCL has made bytes of it.
    gathered, broadcast = ("ncclBfloat16", "ncclInt64") if kinds.version == 5 else ("ncclInt8", "ncclInt8")
    float32, float64, ring, no = "ncclFloat32", "ncclFloat64", ("RING", "SIMPLE"), (None, None)
    assert told(kinds, "datatype, algorithm, protocol") == [
        (float32, *ring), (gathered, *ring), (broadcast, *ring), (float32, *ring), (float64, "TREE", "LL128"),
        (float32, *no), (float32, *no), (float32, *no)]


def test_ranks_of_the_operations(kinds):
    size = None if kinds.version == 3 else 2
    assert set(told(kinds, "group_name, size, rank, ranks")) == {("pg (0x1234abcd)", size, 0, None)}
    assert told(kinds, "peer, root") == [(None, None), (None, None), (None, 1), (None, None), (None, None), (1, None),
                                         (1, None), (1, None)]
    # Each function of a group has its own numbers; sends and receives are numbered for each peer.
    pairs = [None] * 3 if kinds.version == 3 else [0, 0, 1]
    assert [number for number, in told(kinds, "sequence")] == [0, 0, 0, 1, 2, *pairs]


def test_times_are_those_of_the_kernels(kinds):
    times = told(kinds, MICROSECONDS)
    assert [ns for ns, in times] == [1, 2, 3, 4, 4, 5, 5, 5]
    starts = [start for start, in told(kinds, "start_ns")]
    assert starts[3] == starts[4] and len(set(starts[5:])) == 1
    streams = rows(kinds, "SELECT t.stream FROM collectives c JOIN tracks t ON t.id = c.track ORDER BY c.called_ns, c.id")
    assert [stream for stream, in streams] == [8, 8, 8, 9, 9, 8, 8, 8]
    # The same kernels, among the newest work of the device.
    assert set(told(kinds, "track, start_ns, end_ns")) == kernels_of(kinds, newest=True)


def test_the_lines_that_call(kinds):
    lines = [line(kinds, context) for context, in told(kinds, "context")]
    at = kinds.lines["reduce"]
    # Version 5 reports the call itself, the others the launch, one line further down.
    assert lines[0] == f"kinds:{at - 1 if kinds.version == 5 else at}"
    assert lines[1] == f"kinds:{kinds.lines['gather'] - (kinds.version == 5)}"


def test_transfers_add_up(kinds):
    found = rows(kinds, "SELECT kind, sum(accesses), sum(bytes), count(from_device), count(to_device), count(initiator),"
                        " count(*) FROM transfers GROUP BY kind")
    by_kind = {kind: rest for kind, *rest in found}
    assert by_kind["collective"][:2] == [5, 9280] and by_kind["send"][:2] == [2, 512] and by_kind["receive"][:2] == [1, 128]
    for kind, (_, _, sources, targets, initiators, count) in by_kind.items():
        # The peer is not a process of this run.
        assert initiators == count
        assert (sources, targets) == {"collective": (count, 0), "send": (count, 0), "receive": (0, count)}[kind]


@EACH
def test_objects_of_the_data(tmp_path, version):
    made = play(tmp_path, "objects", version)
    found = rows(made, "SELECT t.kind, t.accesses, t.bytes, f.context, o.context FROM transfers t"
                       " LEFT JOIN objects f ON f.id = t.from_object LEFT JOIN objects o ON o.id = t.to_object")
    places = {context: made.steps(made.node(context))[-2].partition(":")[2] for *_, one, other in found
              for context in (one, other) if context}
    named = {(kind, calls, size, places.get(one), places.get(other)) for kind, calls, size, one, other in found}
    weights, gradients = str(made.lines["weights"]), str(made.lines["gradients"])
    assert named == {("collective", 2, 128, gradients, weights), ("send", 1, 64, weights, None),
                     ("receive", 1, 64, None, gradients), ("send", 1, 64, None, None)}


def test_without_kernels_the_data_says_which_device_it_is(tmp_path):
    """As under --traffic=full, where kernels have no records."""
    made = play(tmp_path, "objects", environment={"PLUMB_MOCK": "lose=1"})
    assert rows(made, "SELECT DISTINCT d.ordinal FROM transfers t JOIN devices d ON d.id = t.initiator "
                      "WHERE t.kind = 'collective' AND t.from_object IS NOT NULL") == [(0,)]


@EACH
def test_other_kernels_come_between(tmp_path, version):
    made = play(tmp_path, "between", version)
    found = told(made, f"operation, bytes, {MICROSECONDS}, track IS NULL, start_ns = called_ns")
    assert found == [("AllReduce", 400 + 4 * step, 1 + step, 0, 0) for step in range(3)] + [("AllGather", 28, None, 1, 1)]


def test_operations_are_where_they_were_called(tmp_path):
    made = play(tmp_path, "calls")
    assert [line(made, context) for context, in told(made, "context")] == [made.expand("first:@first"),
                                                                         made.expand("second:@second")]
    assert [ns for ns, in told(made, MICROSECONDS)] == [1, 1]


def test_a_thread_of_the_library_launches(tmp_path):
    made = play(tmp_path, "elsewhere")
    assert [line(made, context) for context, in told(made, "context")] == [made.expand("elsewhere:@called")]
    assert told(made, MICROSECONDS) == [(1,)]


@EACH
def test_a_library_that_tells_no_groups(tmp_path, version):
    made = play(tmp_path, "no_groups", version)
    assert [ns for ns, in told(made, MICROSECONDS)] == [1, 2, 3, 4, 4, 5, 5, 5]


def test_with_spans(tmp_path):
    made = play(tmp_path, "kinds", 5, "--trace")
    assert set(told(made, "track, start_ns, end_ns")) == kernels_of(made, newest=False)


@EACH
def test_graphs(tmp_path, version):
    made = play(tmp_path, "graph", version)
    assert told(made) == [("AllReduce", 32)]
    assert told(made, MICROSECONDS) == [(1,)]
    assert made.ledger("collective") == {"received": 2, "attributed": 1, "unknown_nodes": 1}
    assert rows(made, "SELECT sum(bytes), sum(accesses) FROM transfers") == [(32, 1)]


# ---- bounds ----

def test_the_newest_are_kept_and_all_are_counted(tmp_path):
    made = play(tmp_path, "many", 5, "--limit", "4M")
    kept, = told(made, "count(*), min(sequence), max(sequence)")
    most = (4 << 20) // 16 // 120 + 1
    assert kept == (most, 5000 - most, 4999)
    assert made.ledger("collective") == {"received": 5000, "attributed": 5000, "overwritten": 5000 - most}
    assert rows(made, "SELECT sum(accesses), sum(bytes) FROM transfers") == [(5000, 160000)]
    assert told(made, f"DISTINCT {MICROSECONDS}") == [(1,)]


def test_a_large_group_shares_one_kernel(tmp_path):
    made = play(tmp_path, "one_group")
    assert told(made, f"count(*), count(DISTINCT start_ns), min({MICROSECONDS}), count(end_ns)") == [(2000, 1, 1, 2000)]
    # Numbers of ranks that a group of two cannot have are numbered nowhere.
    assert told(made, "count(sequence)") == [(2,)]


def test_hostile_events(tmp_path):
    made = play(tmp_path, "hostile")
    assert f"version 5" in made.done.stdout
    found = told(made, "operation, bytes, peer, root, datatype")
    assert ("AllReduce", None, None, None, "ncclFloat32") in found
    assert ("Recv", None, 2 ** 31 - 1, None, "ncclFloat32") in found
    assert ("Send", 32, None, None, "ncclFloat32") in found
    ledger = made.ledger("collective")
    # One operation of a strange parent for each of four handles; after the end, nothing.
    assert ledger == {"received": 9, "attributed": 5, "unknown_layout": 4}
    assert not re.search(r"crash|Traceback", made.done.stderr)


# ---- beginnings and ends ----

@EACH
def test_a_forked_child_tells_nothing(tmp_path, version):
    made = play(tmp_path, "fork", version)
    assert told(made) == [("AllReduce", 4000)] * 2
    assert made.ledger("collective") == {"received": 2, "attributed": 2}


def test_pauses(tmp_path):
    made = play(tmp_path, "paused", environment={"PYTHONPATH": str(ROOT / "python")})
    assert told(made, "operation, bytes, sequence") == [("AllReduce", 40, 0), ("AllReduce", 120, 2), ("Send", 4, 1)]


def test_an_event_after_the_end(tmp_path):
    made = play(tmp_path, "after_stop")
    assert "one more" in made.done.stdout
    assert told(made) == [("AllReduce", 40)]


def test_without_traffic_nothing_is_told(tmp_path):
    made = run_program(sys.executable, "nccl_player.py", "kinds", 5, folder=tmp_path, environment=mock_environment("13.0"))
    assert made.done.returncode == 0
    assert "version 0" in made.done.stdout and told(made) == [] and made.ledger("collective") == {}


def test_a_library_that_is_too_old(tmp_path):
    made = play(tmp_path, "kinds", 2)
    assert "version 0" in made.done.stdout and told(made) == []


# ---- the plugin that was there before ----

def other(version, log, mask=2):
    return {"NCCL_PROFILER_PLUGIN": str(BUILD / f"mock/libnccl-profiler-other{version}.so"), "OTHER_LOG": str(log),
            "OTHER_MASK": str(mask)}


def alone(folder, kind, library, environment_):
    """What the other plugin sees without plumb's."""
    log = folder / "alone.log"
    program = os.path.join(os.path.dirname(__file__), "programs/nccl_player.py")
    done = subprocess.run([sys.executable, program, kind, str(library)], capture_output=True, text=True,
                          env={**os.environ, **mock_environment("13.0"), **environment_, "OTHER_LOG": str(log)})
    assert done.returncode == 0, done.stderr
    return log.read_text()


@pytest.mark.parametrize("library, theirs, mask", [
    (library, theirs, mask) for library, theirs in [(3, 3), (4, 4), (4, 3), (5, 5), (5, 4), (5, 3)]
    for mask in (2, 6, 2 | 4 | 8, 512 | 2, 0)
    if theirs > 3 or not mask & 8])  # the stand-in tells version 3 of no network
def test_a_plugin_of_the_user_sees_the_same(tmp_path, library, theirs, mask):
    log = tmp_path / "log"
    variables = other(theirs, log, mask)
    made = play(tmp_path, "kinds", library, environment=variables)
    assert f"version {library}" in made.done.stdout
    assert log.read_text() == alone(tmp_path, "kinds", library, variables)
    assert "?" not in log.read_text() and "init c0" in log.read_text()
    assert ("func AllReduce" in log.read_text()) == bool(mask)
    # And plumb sees all, too.
    assert len(told(made)) == 8 and [ns for ns, in told(made, MICROSECONDS)][0] == 1
    assert "hands the events of NCCL on" in environment(made)["nccl.plugin"]


def test_a_plugin_by_its_short_name(tmp_path):
    variables = {**other(5, tmp_path / "log"), "NCCL_PROFILER_PLUGIN": "other5"}
    mock = mock_environment("13.0")
    variables["LD_LIBRARY_PATH"] = f"{mock['LD_LIBRARY_PATH']}:{BUILD / 'mock'}"
    made = play(tmp_path, "kinds", 5, environment=variables)
    assert (tmp_path / "log").read_text().count("func AllReduce") == 6 and len(told(made)) == 8


def test_a_plugin_of_another_version_is_kept(tmp_path):
    made = play(tmp_path, "kinds", 5, environment=other(6, tmp_path / "log"))
    assert "version 0" in made.done.stdout and told(made) == []  # the stand-in does not speak version 6
    assert re.search(r"operations of NCCL are not recorded: NCCL_PROFILER_PLUGIN names \S+other6.so, which plumb cannot "
                     r"hand events on to; unset it", made.done.stderr)
    assert "other6.so" in environment(made)["nccl.plugin.off"]


def test_a_plugin_that_is_not_there(tmp_path):
    made = play(tmp_path, "kinds", 5, environment={"NCCL_PROFILER_PLUGIN": "/nowhere/plugin.so"})
    assert len(told(made)) == 8 and "cannot be loaded" in environment(made)["nccl.plugin"]


def test_plugins_that_were_switched_off(tmp_path):
    made = play(tmp_path, "kinds", 5, environment={"NCCL_PROFILER_PLUGIN": "none"})
    assert len(told(made)) == 8 and "nccl.plugin" not in environment(made)


# ---- several ranks ----

def job(folder, kind, ranks, *options, version=5, steps=20):
    made = run_program(sys.executable, "nccl_ranks.py", kind, ranks, steps, version, folder=folder,
                       options=("--traffic", *options), environment=mock_environment("13.0", f"devices={ranks}"))
    assert made.done.returncode == 0, made.done.stderr
    return made


@pytest.mark.parametrize("ranks", [2, 4])
def test_the_same_operation_has_the_same_number_on_all_ranks(tmp_path, ranks):
    made = job(tmp_path, "late", ranks)
    assert told(made, "DISTINCT group_name, ranks, size") == [
        (f"group (0x{0xabc000 + (1 << ranks) - 1:x})", str(list(range(ranks))), ranks)]
    assert told(made, "count(DISTINCT sequence), min(sequence), max(sequence), count(*)") == [(20, 0, 19, 20 * ranks)]
    assert rows(made, "SELECT count(*) FROM (SELECT sequence FROM collectives GROUP BY sequence"
                      f" HAVING count(DISTINCT rank) = {ranks})") == [(20,)]
    assert rows(made, "SELECT DISTINCT c.rank - p.rank FROM collectives c JOIN tracks t ON t.id = c.track"
                      " JOIN processes p ON p.id = t.process") == [(0,)]


@EACH
def test_a_late_rank_and_what_it_is_late_to(tmp_path, version):
    made = job(tmp_path, "late", 2, version=version)
    first = findings(made.path)[0]
    evidence = first["evidence"]
    assert (first["rule"], evidence["cause"]) == ("ranks", "late")
    assert (evidence["group"], evidence["group_operation"], evidence["bytes"]) == ("group (0xabc003)", "AllReduce", 1000000)
    assert (evidence["datatype"], evidence["algorithm"], evidence["protocol"]) == ("ncclFloat32", "RING", "SIMPLE")
    assert "Most of the waiting is in AllReduce of 977 KiB in the group group (0xabc003)." in first["advice"]
    assert first["confidence"] == pytest.approx(0.9)  # matched by number


def test_the_collective_that_it_is_late_to(tmp_path):
    made = job(tmp_path, "sizes", 2)
    late = [one for one in findings(made.path) if one["evidence"].get("cause") == "late"][0]
    assert late["evidence"]["bytes"] == 10000000


def test_groups_of_a_job(tmp_path):
    made = job(tmp_path, "groups", 4)
    assert set(told(made, "ranks, size")) == {("[0, 1]", 2), ("[2, 3]", 2), ("[0, 2]", 2), ("[1, 3]", 2)}


def test_sends_name_both_devices(tmp_path):
    made = job(tmp_path, "shift", 3, steps=5)
    found = rows(made, "SELECT t.kind, i.ordinal, f.ordinal, o.ordinal, t.accesses, t.bytes FROM transfers t"
                       " JOIN devices i ON i.id = t.initiator JOIN devices f ON f.id = t.from_device"
                       " JOIN devices o ON o.id = t.to_device ORDER BY 1, 2")
    sends = [("send", rank, rank, (rank + 1) % 3, 5, 5 * 4000 * (rank + 1)) for rank in range(3)]
    receives = [("receive", rank, (rank - 1) % 3, rank, 5, 5 * 4000 * ((rank - 1) % 3 + 1)) for rank in range(3)]
    assert found == receives + sends
    # The k-th send to a rank is the k-th receive there.
    assert rows(made, "SELECT count(*) FROM collectives s JOIN collectives r ON r.operation = 'Recv' AND r.peer = s.rank"
                      " AND r.rank = s.peer AND r.sequence = s.sequence AND r.bytes = s.bytes"
                      " WHERE s.operation = 'Send'") == [(15,)]


def test_sends_of_pipelines(tmp_path):
    made = job(tmp_path, "pipeline", 2)
    assert "pipeline" in {one["evidence"].get("cause") for one in findings(made.path)}
