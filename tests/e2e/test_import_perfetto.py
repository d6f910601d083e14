# SPDX-License-Identifier: Apache-2.0
"""Perfetto's traces: what plumb exported comes back as it was, and packets of others, written here by hand."""
import collections
import gzip
import json
import struct
import zlib

import kineto_traces
import pytest
import steps_traces
from conftest import ROOT
from importing import Imported, cut_everywhere, imported, message, refused, samples_of, varint

DATA = ROOT / "tests" / "data" / "foreign"
CLEARED, NEEDED = 1, 2
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
REALTIME, MONOTONIC, BOOTTIME, OWN = 1, 3, 6, 64


def packet(*fields, sequence=1, flags=None, time=None, clock=None):
    out = [*fields, (10, sequence)]
    out += [(number, value) for number, value in ((8, time), (58, clock), (13, flags)) if value is not None]
    return message((1, message(*out)))


def event(kind, track, time, *fields, **options):
    return packet((11, message((9, kind), (11, track), *fields)), time=time, **options)


def begin(track, time, name, *fields, **options):
    """NAME: a text, or an interned number."""
    return event(BEGIN, track, time, (10 if isinstance(name, int) else 23, name), *fields, **options)


def end(track, time, **options):
    return event(END, track, time, **options)


def track(uuid, *fields, **options):
    return packet((60, message((1, uuid), *fields)), **options)


def process(uuid, pid, name, **options):
    return track(uuid, (3, message((1, pid), (6, name))), **options)


def thread(uuid, pid, tid, name, parent=None, **options):
    more = [(5, parent)] if parent else []
    return track(uuid, *more, (4, message((1, pid), (2, tid), (5, name))), **options)


def interned(names, **options):
    """{number: name of events}"""
    return packet((12, message(*((2, message((1, number), (2, name))) for number, name in names.items()))), **options)


def clocks(readings, primary=None, **options):
    """{number: time, or (time, unit, incremental)}"""
    fields = []
    for number, reading in readings.items():
        time, unit, incremental = reading if isinstance(reading, tuple) else (reading, None, None)
        more = [(3, incremental), (4, unit)] if unit else []
        fields.append((1, message((1, number), (2, time), *more)))
    return packet((6, message(*fields, *([(2, primary)] if primary else []))), **options)


def spans(made):
    """[(process, thread, path, start, end)]"""
    profile = made.profile
    out = []
    for span in profile.spans():
        where = next(one for one in profile.tracks if one.id == span.track)
        node = profile.node(span.context)
        path = tuple(step.name for step in [*reversed(node.ancestors), node][1:])
        out.append((profile.processes[where.process].pid, where.tid, path, span.start_ns, span.end_ns))
    return sorted(out, key=repr)


# ---- plumb's own ----

def devices(made):
    known = made.report()["devices"]
    return [{key: one[key] for key in ("ordinal", "name", "kernels", "copies", "sets", "busy_ns", "span_ns")}
            for one in known]


def values(made, metric):
    """{path of (kind, name, file, line): (count, sum)}, per kind of track"""
    out = collections.defaultdict(lambda: (0, 0))
    for node in made.profile.walk():
        value = node.exclusive[metric]
        if value.count:
            path = tuple((step.kind, step.name, step.file, step.line)
                         for step in [*reversed(node.ancestors), node][1:])
            number = value.sum if value.sum is not None else round(value.mean * value.count)
            out[path] = (out[path][0] + value.count, out[path][1] + number)
    return dict(out)


def variants(made):
    return {(node.name, one.grid, one.block, one.registers, one.static_shared_bytes, one.dynamic_shared_bytes)
            for node in made.profile.of_kind("kernel") for one in node.variants}


def round_trip(plumb, folder, before):
    trace = folder / "there.pftrace"
    done = plumb("export", before.path, "-F", "perfetto", "-o", trace)
    assert done.returncode == 0, done.stderr
    after = imported(folder, trace.read_bytes(), name="back")
    assert devices(after) == devices(before) and len(devices(after)) > 0
    for metric in ("gpu.time", "gpu.copy_time", "gpu.copy_bytes", "gpu.launches", "gpu.replays", "op.calls"):
        assert values(after, metric) == values(before, metric), metric
    before_spans, after_spans = (collections.Counter((s.start_ns, s.end_ns, s.correlation)
                                                     for s in made.profile.spans()) for made in (before, after))
    assert after_spans == before_spans
    keys = [[(p.pid, p.rank, p.host, p.command) for p in made.profile.processes] for made in (before, after)]
    assert keys[0] == keys[1]
    tracks = [{(t.kind, t.tid, t.stream, t.name) for t in made.profile.tracks if t.kind != "memory" and
               any(True for _ in made.profile.spans(t.id))} for made in (before, after)]
    assert tracks[0] == tracks[1]
    return after


def test_what_plumb_recorded(plumb, tmp_path):
    """Recorded on an H200 with --trace: Python, modules, operators, calls, kernels, copies of several sizes."""
    path = tmp_path / "own.plumb"
    path.write_bytes(gzip.decompress((DATA / "own.plumb.gz").read_bytes()))
    before = Imported(path)
    after = round_trip(plumb, tmp_path, before)
    # A call's time as recorded, and the sum of its context, were rounded apart.
    own, again = values(before, "op.time"), values(after, "op.time")
    assert own.keys() == again.keys()
    assert all(abs(own[path][1] - again[path][1]) <= 20 * own[path][0] for path in own)
    assert after.ledger()[("unused", "counters")] > 0
    # Of a context whose kernels were launched in several ways nobody can say which one was which.
    assert variants(after) and variants(after) <= variants(before)


@pytest.mark.parametrize("name", ["torch", "graph", "compiled", "rank0"])
def test_what_plumb_imported(plumb, tmp_path, name):
    before = imported(tmp_path, DATA / f"{name}.json.gz", name="before")
    after = round_trip(plumb, tmp_path, before)
    for metric in ("op.time", "op.duration", "module.calls"):
        assert values(after, metric) == values(before, metric), metric


def test_copies_and_sets(plumb, tmp_path):
    """Copies of one size and of several, two streams and devices, work without a launch, what overlaps."""
    def gpu(category, name, at, device, stream, correlation, **more):
        return kineto_traces.kernel(correlation, at, 7.5, name, stream, device, category, **more)
    trace = [kineto_traces.call(n + 1, 10 * n, "cudaMemcpyAsync", 5, pid=9, tid=8) for n in range(6)]
    copy, fill = "Memcpy HtoD (Pinned -> Device)", "Memset (Device)"
    trace += [gpu("gpu_memcpy", copy, 100, 0, 7, 1, bytes=1000), gpu("gpu_memcpy", copy, 110, 0, 7, 2, bytes=24),
              gpu("gpu_memcpy", copy, 112, 0, 7, 3, bytes=24), gpu("gpu_memset", fill, 120, 0, 7, 4, bytes=8),
              gpu("gpu_memcpy", copy, 130, 1, 9, 5, bytes=512), gpu("gpu_memset", fill, 140, 1, 9, 99, bytes=3),
              gpu("kernel", "k", 150, 1, 9, 6, grid=[4, 2, 1], block=[128, 1, 1],
                  **{"registers per thread": 40, "shared memory": 16})]
    before = imported(tmp_path, kineto_traces.document(*trace), name="before")
    assert [one["copies"]["bytes"] for one in before.report()["devices"]] == [1048, 512]
    after = round_trip(plumb, tmp_path, before)
    assert variants(after) == variants(before) == {("k", (4, 2, 1), (128, 1, 1), 40, None, None)}
    assert after.ledger("gpu.set") == before.ledger("gpu.set")
    assert after.ledger("gpu.set")[("unmatched", None)] == 1


# ---- packets of others ----

SMALL = (process(1, 40, "server", flags=CLEARED) + thread(2, 40, 41, "worker", 1) +
         begin(2, 1000, "request") + begin(2, 1100, "parse") + end(2, 1200) + end(2, 1500))


def test_slices_on_their_threads(tmp_path):
    made = imported(tmp_path, SMALL)
    assert spans(made) == [(40, 41, ("request", "parse"), 1100, 1200), (40, 41, ("request",), 1000, 1500)]
    assert made.total("op.time") == 500 and made.total("op.calls") == 2
    assert made.profile.processes[0].command == "server"
    assert [t.name for t in made.profile.tracks] == ["worker"]
    assert made.ledger() == {}
    assert made.profile.environment["import.format"] == "perfetto"


def test_packed_files_and_packets(tmp_path):
    expected = spans(imported(tmp_path, SMALL))
    for data in (gzip.compress(SMALL), packet((50, zlib.compress(SMALL)))):
        assert spans(imported(tmp_path, data)) == expected
    # New sequences within a packed packet, and what comes behind it.
    many = b"".join(begin(2, 2000 + n, "n", sequence=1000 + n) + end(2, 2000 + n, sequence=1000 + n)
                    for n in range(300))
    made = imported(tmp_path, message((1, message(
        (10, 1), (50, zlib.compress(SMALL + many)), (11, message((9, BEGIN), (11, 2), (23, "late"))), (8, 9000)))))
    assert made.total("op.calls") == 303
    assert ("unbalanced", "slices without an end, drawn to the end of the file") in made.ledger()


@pytest.mark.parametrize("data", [
    packet((50, zlib.compress(SMALL)[:-6])), packet((50, b"nonsense")), packet((50, zlib.compress(b"\x0a\x7f"))),
    packet((133, b"nonsense")), packet((50, zlib.compress(bytes(80 << 20))))])
def test_packed_packets_that_are_damaged(tmp_path, data):
    assert "damaged" in refused(tmp_path, SMALL + data)


def test_packed_packets_hold_no_others(tmp_path):
    inner = packet((50, zlib.compress(SMALL)))
    made = imported(tmp_path, SMALL + packet((50, zlib.compress(inner))))
    assert made.total("op.calls") == 2
    assert made.ledger() == {("unused", "packets of field 50"): 1}


def test_interned_names(tmp_path):
    """A number means what its own sequence said last; a cleared state means nothing."""
    data = (process(1, 40, "p", flags=CLEARED) + thread(2, 40, 41, "t", 1) +
            interned({7: "one"}, flags=CLEARED) + interned({7: "two"}, sequence=2, flags=CLEARED) +
            begin(2, 10, 7, flags=NEEDED) + end(2, 20) + begin(2, 30, 7, sequence=2, flags=NEEDED) + end(2, 40) +
            interned({7: "three"}, flags=CLEARED | NEEDED) + begin(2, 50, 7, flags=NEEDED) + end(2, 60) +
            begin(2, 70, 8, flags=NEEDED) + end(2, 80) +
            # Of this one the beginning was overwritten, of the next a packet was lost.
            begin(2, 85, 7, sequence=3, flags=NEEDED) +
            packet((42, 1), (11, message((9, BEGIN), (11, 2), (10, 7))), time=86, flags=NEEDED) +
            begin(2, 90, "by itself", sequence=3) + end(2, 95))
    made = imported(tmp_path, data)
    names = [(path[-1], start) for _, _, path, start, _ in sorted(spans(made), key=lambda span: span[3])]
    assert [name for name, _ in names if name != "?"][:3] == ["one", "two", "three"]
    assert dict(names)["by itself"] == 90 and len(names) == 5
    assert made.ledger() == {("overwritten", "names of slices"): 1,
                             ("overwritten", "packets whose names are not in the file"): 2}


def test_a_name_without_letters(tmp_path):
    data = SMALL + interned({7: ""}, flags=CLEARED) + begin(2, 2000, 7) + end(2, 2001)
    assert imported(tmp_path, data).total("op.calls") == 3


def test_defaults_of_a_sequence(tmp_path):
    """Events and packets without a track or clock have the sequence's."""
    data = (clocks({BOOTTIME: 5000, MONOTONIC: 1000}, sequence=1, flags=CLEARED) +
            packet((59, message((58, MONOTONIC), (11, message((11, 2))))), flags=CLEARED) +
            process(1, 40, "p") + thread(2, 40, 41, "t", 1) +
            packet((11, message((9, BEGIN), (23, "a"))), time=1100) + packet((11, message((9, END))), time=1200))
    assert spans(imported(tmp_path, data)) == [(40, 41, ("a",), 5100, 5200)]


def test_clocks(tmp_path):
    """Two clocks, one that counts steps of 1000 ns from its last time, one that drifts, and one that nobody knows."""
    data = (process(1, 40, "p", flags=CLEARED) + thread(2, 40, 41, "t", 1) +
            clocks({BOOTTIME: 10_000, MONOTONIC: 7_000, OWN: (9, 1000, 1)}) +
            begin(2, 7_100, "monotonic", clock=MONOTONIC) + end(2, 10_200) +
            begin(2, 2, "steps", clock=OWN) + end(2, 3, clock=OWN) +
            begin(2, 5, "another's", clock=OWN, sequence=2) +
            begin(2, 5, "unknown", clock=100) +
            clocks({BOOTTIME: 30_000, MONOTONIC: 26_990}) +
            begin(2, 27_000, "later", clock=MONOTONIC) + end(2, 20_000, clock=MONOTONIC) +
            # A clock that is known by another one.
            clocks({MONOTONIC: 27_990, REALTIME: 900_000}) +
            begin(2, 900_100, "of day", clock=REALTIME) + end(2, 900_200, clock=REALTIME))
    made = imported(tmp_path, data)
    found = {path[-1]: start for _, _, path, start, _ in spans(made)}
    assert found == {"monotonic": 10_100, "steps": 12_000, "later": 30_010, "of day": 31_100}
    assert made.ledger()[("backwards", None)] == 2


def test_a_clock_that_counts_on_runs_through_all_packets(tmp_path):
    data = (clocks({BOOTTIME: 1000, OWN: (0, 1, 1)}, flags=CLEARED) + process(1, 40, "p") + thread(2, 40, 41, "t", 1) +
            begin(2, 5, "a", clock=OWN) + event(COUNTER, 2, 5, (30, 1), clock=OWN) +
            packet((1, b""), time=5, clock=OWN) + end(2, 5, clock=OWN))
    assert spans(imported(tmp_path, data)) == [(40, 41, ("a",), 1005, 1020)]


def test_the_first_snapshot_names_the_clock(tmp_path):
    data = clocks({BOOTTIME: 10_000, MONOTONIC: 7_000}, primary=MONOTONIC, flags=CLEARED) + SMALL
    made = imported(tmp_path, data + begin(2, 20_000, "b", clock=BOOTTIME) + end(2, 17_500))
    assert (40, 41, ("b",), 17_000, 17_500) in spans(made)


def test_halves(tmp_path):
    """Ends without a beginning, slices without an end, and beginnings behind their ends in the file."""
    data = (process(1, 40, "p", flags=CLEARED) + thread(2, 40, 41, "t", 1) + end(2, 5) + begin(2, 100, "open") +
            end(2, 300) + begin(2, 200, "turned") + begin(2, 400, "last") + event(INSTANT, 2, 450, (23, "i")))
    made = imported(tmp_path, data)
    assert {path[-1]: (start, stop) for _, _, path, start, stop in spans(made)} == {
        "open": (100, 450), "turned": (200, 300), "last": (400, 450)}
    assert made.ledger() == {("unbalanced", "ends without a start"): 1, ("unused", "instants"): 1,
                             ("unbalanced", "slices without an end, drawn to the end of the file"): 2}


def test_tracks(tmp_path):
    """Tracks under threads and processes, described after their events; on a process; on none; parents in a circle."""
    data = (begin(5, 10, "under a thread", flags=CLEARED) + end(5, 20) + begin(6, 10, "of the process") + end(6, 20) +
            begin(1, 10, "on the process") + end(1, 20) + begin(77, 10, "nowhere") + end(77, 20) +
            begin(8, 10, "round") + end(8, 20) + begin(0, 30, "default") + end(0, 40) +
            process(1, 40, "p") + thread(2, 40, 41, "t", 1) + track(5, (2, "below"), (5, 2)) +
            track(6, (2, "beside"), (5, 1)) + track(8, (5, 9)) + track(9, (5, 8)))
    made = imported(tmp_path, data)
    where = {path[0]: (pid, tid) for pid, tid, path, _, _ in spans(made)}
    assert where == {"under a thread": (40, None), "of the process": (40, None), "on the process": (40, None),
                     "nowhere": (None, None), "round": (None, None), "default": (None, None)}
    assert {t.name for t in made.profile.tracks} == {"below", "beside", None}
    assert len(made.profile.tracks) == 6


def test_old_events(tmp_path):
    """Chrome's phases before there were types."""
    def legacy(phase, time, *fields):
        return packet((11, message((11, 2), (23, phase), (6, message((2, ord(phase)), *fields)))), time=time)
    data = (process(1, 40, "p", flags=CLEARED) + thread(2, 40, 41, "t", 1) + legacy("X", 1000, (3, 7)) +
            legacy("B", 9000) + legacy("E", 9500) + legacy("I", 1) + legacy("b", 1) + legacy("X", 1, (3, -1)))
    made = imported(tmp_path, data)
    assert spans(made) == [(40, 41, ("B",), 9000, 9500), (40, 41, ("X",), 1000, 8000)]
    assert made.ledger() == {("unused", "instants"): 1, ("unused", "events of other phases"): 1,
                             ("backwards", None): 1}


def test_other_data(tmp_path):
    data = SMALL + packet((1, b"")) * 3 + packet((37, b"")) + packet((33, b"")) + packet((900, b"")) + \
        event(COUNTER, 2, 1, (30, 5)) + event(9, 2, 1)
    assert imported(tmp_path, data).ledger() == {
        ("unused", "ftrace"): 3, ("unused", "heap profiles"): 1, ("unused", "packets of field 900"): 1,
        ("unused", "counters"): 1, ("unused", "track events of an unknown type"): 1}


# ---- what plumb wrote, damaged ----

def fact(name, value):
    field = {int: 3, str: 6}.get(type(value))
    if isinstance(value, dict):
        return message((10, name), *((11, fact(key, one)) for key, one in value.items()))
    if isinstance(value, list):
        return message((10, name), *((12, message(*((11, fact(key, v)) for key, v in one.items()))) for one in value))
    return message((10, name), (field, value))


FRAMES = [{"frame": 1, "kind": "python", "name": "step", "file": "a.py", "line": 3},
          {"frame": 2, "kind": "gpu_api", "name": "cuLaunchKernel"}, {"frame": 3, "kind": "kernel", "name": "gemm"},
          {"frame": 4, "kind": "range", "name": "started"}]
CONTEXTS = [{"context": 1, "parent": 0, "frame": 1}, {"context": 2, "parent": 1, "frame": 2},
            {"context": 3, "parent": 2, "frame": 3, "registers": 9}, {"context": 4, "parent": 1, "frame": 4, "apart": 1}]
STREAM = {"kind": "stream", "index": 3, "pid": 40, "stream": 7, "ordinal": 1, "model": "H200"}


def own(track, start, stop, name, facts):
    return begin(track, start, name, (4, fact("plumb", facts))) + end(track, stop)


def own_trace(frames=FRAMES, contexts=CONTEXTS, stream=STREAM, kernel=3, bytes_of=None):
    more = {"all_bytes": bytes_of} if bytes_of else {}
    return (process(1, 40, "p", flags=CLEARED) + thread(2, 40, 41, "t", 1) + track(3, (2, "stream 7"), (5, 1)) +
            own(2, 100, 200, "cuLaunchKernel", {"frames": frames, "contexts": contexts, "context": 2,
                                                "correlation": 5}) +
            own(2, 150, 250, "started", {"context": 4}) +
            own(3, 180, 400, "gemm", {"track": stream, "context": kernel, "correlation": 5, **more}))


def test_own(tmp_path):
    made = imported(tmp_path, own_trace())
    assert made.paths("gpu.time") == {("step", "cuLaunchKernel", "gemm"): 220}
    assert made.paths("gpu.launches") == {("step", "cuLaunchKernel"): 1}
    # What was started is nobody's own time, and nothing is in it.
    assert made.paths("op.calls") == {("step", "started"): 1} and made.paths("op.time") == {}
    step, = made.profile.match("step")
    assert (step.kind, step.file, step.line) == ("python", "a.py", 3)
    device, = made.profile.devices
    assert (device.ordinal, device.name) == (1, "H200")
    variant, = made.profile.match("**/gemm")[0].variants
    assert variant.registers == 9
    assert made.ledger("gpu.kernel") == {("received", None): 1, ("attributed", None): 1}


def test_own_without_descriptions(tmp_path):
    """What is not described is a range by its name, and on a stream nothing."""
    made = imported(tmp_path, own_trace(contexts=[]))
    assert {path for _, _, path, _, _ in spans(made)} == {("cuLaunchKernel",), ("cuLaunchKernel", "started")}
    assert made.ledger() == {("unused", "slices of a stream that are not GPU work"): 1}
    # A frame of no known kind, a parent that comes later, a context that is its own parent.
    for contexts, frames in ((CONTEXTS, [{**FRAMES[2], "kind": "?"}]), (CONTEXTS[::-1], FRAMES),
                             ([{"context": 3, "parent": 3, "frame": 3}], FRAMES)):
        made = imported(tmp_path, own_trace(frames=frames, contexts=contexts))
        assert made.ledger()[("unused", "slices of a stream that are not GPU work")] == 1
    # A call on a stream, a kernel on a thread.
    made = imported(tmp_path, own_trace(kernel=2))
    assert made.ledger()[("unused", "slices of a stream that are not GPU work")] == 1
    made = imported(tmp_path, own_trace(stream={"kind": "thread", "index": 3, "thread": 41}))
    assert not list(made.profile.devices)


@pytest.mark.parametrize("sums, taken", [
    ({"bytes": 30, "count": 2, "least": 10, "most": 20}, 30), ({"bytes": 30, "count": 0, "least": 10, "most": 20}, None),
    ({"bytes": 30, "count": 2, "least": 20, "most": 10}, None), ({"bytes": 30, "count": 9, "least": 10, "most": 20}, None),
    ({"bytes": 1 << 62, "count": 1 << 62, "least": 1 << 62, "most": 1 << 62}, None), ({"bytes": 3}, None)])
def test_sums_of_bytes(tmp_path, sums, taken):
    frames = [*FRAMES[:2], {"frame": 3, "kind": "copy", "name": "copy host→device"}, FRAMES[3]]
    made = imported(tmp_path, own_trace(frames=frames, bytes_of=sums))
    device, = made.profile.devices
    assert (device.copies, device.copy_ns, device.copy_bytes) == (1, 220, taken)


# ---- samples of CPU time ----

FREQUENCY, PERIOD, POLLED = 2, 1, 6
CPU_CLOCK, TASK_CLOCK, CYCLES = 1, 3, 10
OUT_OF_SCOPE, UNWINDING = 4, 2


def sampled(*timebase, **options):
    """What samples of the sequence stand for."""
    return packet((59, message((12, message((1, message(*timebase)))))), **{"flags": CLEARED, **options})


def stacks(calls, functions=None, **options):
    """{number: names from the outermost one on}; every name is a function of /usr/lib/libx.so, or at its place in
    FUNCTIONS (source file, line)."""
    names = sorted({name for call in calls.values() for name in call})
    numbers = {name: 100 + index for index, name in enumerate(names)}
    fields = [(7, message((1, number), *((2, numbers[name]) for name in call))) for number, call in calls.items()]
    for name, number in numbers.items():
        file, line = (functions or {}).get(name, (None, 0))
        source = [(5, number), (6, line)] if file else []
        fields += [(6, message((1, number), (2, number), (3, 1), (4, 0x40), *source)), (5, message((1, number), (2, name)))]
        fields += [(18, message((1, number), (2, file)))] if file else []
    fields += [(19, message((1, 1), (7, 1), (7, 2))), (17, message((1, 1), (2, "usr/lib"))),
               (17, message((1, 2), (2, "libx.so")))]
    return packet((12, message(*fields)), **options)


def sample(time, stack=None, pid=40, tid=41, *fields, **options):
    own = [(4, stack)] if stack is not None else []
    return packet((66, message((1, 3), (2, pid), (3, tid), *own, *fields)), time=time, **options)


def test_cpu_samples(tmp_path):
    data = (SMALL + sampled((PERIOD, 1_000_000), (4, TASK_CLOCK)) +
            stacks({7: ["main", "parse"], 8: ["main"], 9: ["main", "read"]}, {"read": ("io.c", 12)}) +
            sample(1300, 7, flags=NEEDED) + sample(1100, 8) + sample(1400, 9) + sample(1200) +
            sample(2000, 7, 50, 51))
    made = imported(tmp_path, data)
    assert samples_of(made) == [
        (40, 41, "main", 1100, 1_000_000), (40, 41, "[unknown code]", 1200, 1_000_000),
        (40, 41, "main/parse", 1300, 1_000_000), (40, 41, "main/read", 1400, 1_000_000),
        (50, 51, "main/parse", 2000, 1_000_000)]
    files = {(node.kind, node.name, node.file, node.line) for node in made.profile.walk() if node.kind == "native"}
    assert files == {("native", "main", "/usr/lib/libx.so", None), ("native", "parse", "/usr/lib/libx.so", None),
                     ("native", "read", "io.c", 12), ("native", "[unknown code]", None, None)}
    assert made.ledger("cpu.sample.time") == {("received", None): 5, ("attributed", None): 5}
    assert made.ledger() == {}
    assert made.total("op.time") == 500
    assert cut_everywhere(tmp_path, data, 7)


@pytest.mark.parametrize("timebase, ns", [
    ([(FREQUENCY, 100), (4, CPU_CLOCK)], 10_000_000), ([(FREQUENCY, 100)], 10_000_000), ([(PERIOD, 5)], 5),
    ([(PERIOD, 5), (FREQUENCY, 1000)], 1_000_000), ([(FREQUENCY, 100), (4, CYCLES)], None), ([(PERIOD, 0)], None),
    ([(FREQUENCY, 0)], None), ([(FREQUENCY, 1 << 63)], None), ([(PERIOD, (1 << 63) + 1)], None), ([(POLLED, 10)], None),
    ([(PERIOD, 5), (3, message((1, "sched/sched_switch")))], None), ([(PERIOD, 5), (5, message((1, 4)))], None), ([], None)])
def test_what_a_cpu_sample_stands_for(tmp_path, timebase, ns):
    """Only a clock of the CPU tells time; whatever else was counted, nobody knows how long it took."""
    made = imported(tmp_path, SMALL + sampled(*timebase) + stacks({7: ["main"]}) + sample(1300, 7))
    assert [sample[-1] for sample in samples_of(made)] == ([ns] if ns else [])
    assert made.ledger() == ({} if ns else {("unused", "CPU samples without a CPU time"): 1})


def test_defaults_of_samples_are_their_sequences(tmp_path):
    """Another sequence, one that was cleared, and none at all."""
    data = (SMALL + sampled((PERIOD, 7)) + stacks({1: ["a"]}) + sample(1100, 1) +
            sampled((PERIOD, 9), sequence=2) + stacks({1: ["b"]}, sequence=2) + sample(1200, 1, sequence=2) +
            sample(1300, 1, sequence=3) + sample(1400, 1) + packet((13, CLEARED)) + sample(1500, 1))
    made = imported(tmp_path, data)
    assert [entry[2:] for entry in samples_of(made)] == [("a", 1100, 7), ("b", 1200, 9), ("a", 1400, 7)]
    assert made.ledger() == {("unused", "CPU samples without a CPU time"): 2}


def test_samples_that_were_lost(tmp_path):
    data = (SMALL + sampled((PERIOD, 10)) + stacks({7: ["main"]}) +
            packet((66, message((1, 3), (17, 1000))), time=1300) +
            sample(1100, None, 40, 41, (18, UNWINDING)) + sample(1100, None, 60, 61, (18, OUT_OF_SCOPE)) +
            packet((66, message((19, message((1, 1))))), time=1) + sample(1, 7, 0, 0) +
            packet((66, message((2, 40), (3, 41), (4, 7)))) + sample(1200, 99) +
            packet((54, message((1, 7), (1, 8), (2, 100), (2, 200)))) + packet((54, message((1, [1, 2, 3])))))
    made = imported(tmp_path, data)
    assert [entry[2:4] for entry in samples_of(made)] == [("[unknown code]", 1200)]
    assert made.ledger() == {
        ("overwritten", "records of the kernel's perf buffers"): 1000,
        ("overwritten", "CPU samples that the profiler skipped"): 1, ("unused", "CPU samples of other processes"): 1,
        ("unused", "CPU samples without a thread"): 1, ("backwards", None): 1,
        ("overwritten", "frames of call chains of CPU samples"): 1,
        ("unused", "CPU samples without a CPU time"): 5}


def test_call_stacks_that_are_not_whole(tmp_path):
    """Frames, functions and files that were never said, a name without end, and a stack without frames."""
    long = "x" * 3000
    fields = ((7, message((1, 1), (2, 50), (2, 51))), (7, message((1, 2))), (6, message((1, 51), (2, 9), (3, 9))),
              (7, message((1, 3), (2, [52, 52]))), (6, message((1, 52), (2, 1), (3, 3), (5, 77))),
              (5, message((1, 1), (2, "f"))), (19, message((1, 3), (7, [1, 1, 1, 1]))), (17, message((1, 1), (2, long))))
    data = SMALL + sampled((PERIOD, 10)) + packet((12, message(*fields))) + b"".join(sample(1000 + n, n) for n in range(5))
    made = imported(tmp_path, data)
    assert [entry[2] for entry in samples_of(made)] == ["[unknown code]", "[unknown code]/[unknown code]",
                                                        "[unknown code]", "f/f", "[unknown code]"]
    assert made.profile.match("**/f")[0].file == "/" + long
    assert made.ledger() == {("overwritten", "frames of call chains of CPU samples"): 2}


def test_a_stack_without_end(tmp_path):
    """What one packet can say with few bytes: a chain of a million functions, met by ten thousand samples."""
    calls = packet((12, message((7, message((1, 1), (2, [2] * 1_000_000))), (6, message((1, 2), (2, 3))),
                                (5, message((1, 3), (2, "f"))))))
    made = imported(tmp_path, SMALL + sampled((PERIOD, 10)) + calls + b"".join(sample(n, 1) for n in range(10_000)))
    assert made.query("SELECT count(*) FROM cpu_samples") == [(10_000,)]
    assert made.query("SELECT count(*) FROM contexts")[0][0] < 4200
    (_, detail), = made.ledger()
    assert detail == "call chains of CPU samples that were cut after the outermost 4096 frames"


def test_what_cpu_samples_say_of_intervals(plumb, tmp_path):
    """Beside the slices that plumb wrote, samples of traced_perf."""
    document, moments = steps_traces.parsing_loop()
    before, trace = imported(tmp_path, document, name="before"), tmp_path / "trace.pftrace"
    assert plumb("export", before, "-F", "perfetto", "-o", trace).returncode == 0
    pid, tid = steps_traces.PARSED
    perf = sampled((FREQUENCY, 1000), (4, CPU_CLOCK), sequence=77) + stacks({1: ["main", "parse_json"]}, sequence=77)
    trace.write_bytes(trace.read_bytes() + perf + b"".join(sample(at, 1, pid, tid, sequence=77) for at in moments))
    done = plumb("iters", trace, "--json")
    assert done.returncode == 0, done.stderr
    steps_traces.check_parsing(json.loads(done.stdout)["tracks"][0])


# ---- damage ----

@pytest.mark.parametrize("data, why", [
    (SMALL[:-3], "ends in the middle"),
    (SMALL + message((1, b"\x08")), "damaged"),
    (SMALL + packet((11, b"\x5a\x7f")), "damaged"),
    (SMALL + packet((60, message((1, 5), (4, b"\x0a\x7f")))), "damaged"),
    (SMALL + packet((12, message((2, b"\x0a\x7f")))), "damaged"),
    (SMALL + packet((6, message((1, b"\x08")))), "damaged"),
    (SMALL + packet((59, message((11, b"\x08")))), "damaged"),
    (SMALL + packet((59, message((12, b"\x0a\x7f")))), "damaged"),
    (SMALL + packet((59, message((12, message((1, b"\x08")))))), "damaged"),
    (SMALL + packet((66, b"\x08")), "damaged"),
    (SMALL + packet((54, b"\x0a\x7f")), "damaged"),
    (SMALL + packet((12, message((7, b"\x0a\x7f")))), "damaged"),
    (SMALL + begin(2, 1, "x", (4, message((10, "plumb"), (11, b"\x0a\x7f")))), "damaged"),
    (SMALL + begin(2, 1, "x", (4, message((10, "plumb"), (11, message((10, "frames"), (12, b"\x0a\x7f")))))), "damaged"),
    (SMALL + b"\x0a" + varint(1 << 40), "impossible length"),
])
def test_damaged(tmp_path, data, why):
    line = refused(tmp_path, data)
    assert why in line and "byte " in line


@pytest.mark.parametrize("time", [1 << 63, (1 << 64) - 1])
def test_times_out_of_range(tmp_path, time):
    made = imported(tmp_path, SMALL + begin(2, time, "x") + begin(2, 1 << 62, "y", clock=OWN))
    assert made.total("op.calls") == 3 and made.ledger()[("backwards", None)] == 1


def test_wrong_types(tmp_path):
    """Fields of another type than they should have are not looked at."""
    wrong = packet((11, struct.pack("<B", 0x4d) + b"1234" + message((11, "text"), (10, "text"), (23, 5))), time=3)
    made = imported(tmp_path, SMALL + wrong)
    assert made.total("op.calls") == 2
    assert made.ledger() == {("unused", "track events of an unknown type"): 1}


def test_sequences_without_end(tmp_path):
    """A few bytes each must not take memory for ever."""
    data = b"".join(b"\x0a\x04\x50" + bytes((n & 127 | 128, n >> 7 & 127 | 128, n >> 14))
                    for n in range(1 << 14, (1 << 14) + (1 << 20) + 1))
    assert "too many sequences" in refused(tmp_path, SMALL + data)


def test_nothing(tmp_path):
    assert "nothing" in refused(tmp_path, process(1, 40, "p", flags=CLEARED), code=3)


def test_cut(tmp_path):
    data = own_trace(frames=FRAMES[:1], contexts=CONTEXTS[:1]) + packet((50, zlib.compress(SMALL)))
    assert len(cut_everywhere(tmp_path, data)) < len(data) * 0.1
