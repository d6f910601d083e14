# SPDX-License-Identifier: Apache-2.0
"""`plumb import` of generic Chrome trace events: every phase, in every order, and files that are damaged."""
import collections
import gzip
import json

import pytest
import steps_traces
from conftest import PLUMB, run_command
from importing import imported, samples_of, shared, write
from json_traces import check_damaged, check_hostile

X = {"ph": "X", "pid": 1, "tid": 2}


def calls(made):
    return {name: row["exclusive"]["op.calls"]["sum"] for name, row in made.rows("range").items()}


def durations(made):
    return {name: (row["exclusive"]["op.duration"]["min"], row["exclusive"]["op.duration"]["max"])
            for name, row in made.rows("range").items()}


def test_slices_nest_on_their_thread(tmp_path):
    made = imported(tmp_path, {"traceEvents": [
        {**X, "name": "inner", "ts": 12.5, "dur": 1.25},
        {**X, "name": "outer", "ts": 10, "dur": 10},
        {**X, "name": "inner", "ts": "14.125", "dur": "0.001"},
        {**X, "name": "alone", "ts": 10, "dur": 10, "tid": 3},
    ], "displayTimeUnit": "ns", "stackFrames": {"1": {"name": "f"}}})
    assert made.format == "chrome"
    assert made.stacks() == {"range outer", "range outer > range inner", "range alone"}
    assert durations(made) == {"inner": (1, 1250), "outer": (10000, 10000), "alone": (10000, 10000)}
    own = {name: row["exclusive"]["op.time"]["sum"] for name, row in made.rows("range").items()}
    assert own == {"inner": 1251, "outer": 8749, "alone": 10000}


@pytest.mark.parametrize("unit", ["ms", "ns", "nonsense", 7])
def test_the_unit_of_display_changes_nothing(tmp_path, unit):
    made = imported(tmp_path, {"traceEvents": [{**X, "name": "a", "ts": 1.0005, "dur": 2.0004}],
                                     "displayTimeUnit": unit})
    assert durations(made) == {"a": (2000, 2000)}


def test_times_are_exact_beyond_a_double(tmp_path):
    text = '[{"ph":"X","pid":1,"tid":1,"name":"a","ts":1785000000000000.123,"dur":9007199254740.993}]'
    made = imported(tmp_path, text)
    assert durations(made) == {"a": (9007199254740993, 9007199254740993)}
    assert made.query("SELECT start_ns FROM run") == [(1785000000000000123,)]


def test_begins_and_ends_in_any_order(tmp_path):
    def edge(phase, ts, name=None, **more):
        return {"ph": phase, "pid": 1, "tid": 1, "ts": ts, **({"name": name} if name else {}), **more}
    made = imported(tmp_path, [
        edge("E", 30), edge("B", 25, "c"), edge("B", 10, "a"), edge("B", 11, "b"), edge("E", 20),
        edge("E", 5),                       # nothing had begun
        edge("B", 40, "open"), edge("B", 41, "d"), edge("E", 42, "d"), edge("E", 24),
        {**X, "tid": 9, "name": "last", "ts": 45, "dur": 5},
    ])
    assert durations(made) == {"a": (14000, 14000), "b": (9000, 9000), "c": (5000, 5000),
                               "open": (10000, 10000), "d": (1000, 1000), "last": (5000, 5000)}
    assert {"range a > range b", "range open > range d", "range c"} <= made.stacks()
    fates = made.fates()
    assert fates["import", "an end without its b", "ends without a start"] == 1
    assert fates["import", "an end without its b", "slices without an end, drawn to the end of the file"] == 1


def test_asynchronous_slices_have_tracks_of_their_own(tmp_path):
    def edge(phase, ts, number, name="r", **more):
        return {"ph": phase, "pid": 1, "tid": 1, "ts": ts, "id": number, "cat": "net", "name": name, **more}
    made = imported(tmp_path, [
        edge("b", 0, "0x1"), edge("b", 2, "0x1", "part"), edge("n", 3, "0x1"), edge("e", 4, "0x1", "part"),
        edge("b", 5, 7), edge("e", 9, 7),           # while the first is open
        edge("e", 10, "0x1"),
        edge("b", 20, 8), edge("e", 25, 8),         # afterwards
        edge("S", 0, 1, "old"), edge("T", 1, 1, "old"), edge("F", 2, 1, "old"), edge("F", 8, 1, "other"),
        {**X, "name": "thread", "ts": 0, "dur": 1},
    ])
    assert calls(made) == {"r": 3, "part": 1, "old": 1, "thread": 1}
    assert "range r > range part" in made.stacks()
    names = collections.Counter(name for name, in made.query("SELECT name FROM tracks WHERE tid IS NULL"))
    assert names == {"async net": 2}
    assert made.fates()["import", "an end without its b", "ends without a start"] == 1
    assert made.fates()["import", "plumb does not show ", "instants"] == 2


def test_second_ids_tell_asynchronous_slices_apart(tmp_path):
    def edge(phase, ts, number):
        return {"ph": phase, "pid": 1, "tid": 1, "ts": ts, "id2": {"local": number}, "cat": "c", "name": number}
    made = imported(tmp_path, [edge("b", 0, "0xa"), edge("b", 1, "0xb"), edge("e", 2, "0xa"),
                                     edge("e", 4, "0xb")])
    assert durations(made) == {"0xa": (2000, 2000), "0xb": (3000, 3000)}


def test_processes_and_threads_by_number_and_name(tmp_path):
    def named(what, name, **more):
        return {"ph": "M", "name": what, "args": {"name": name}, **more}
    made = imported(tmp_path, [
        named("process_name", "server", pid=1), named("thread_name", "main", pid=1, tid=2),
        named("thread_name", "nobody", pid=1, tid=77), named("process_labels", "x", pid=1),
        {**X, "name": "a", "ts": 1, "dur": 1},
        {**X, "name": "b", "ts": 1, "dur": 1, "pid": "12", "tid": "13"},
        {**X, "name": "c", "ts": 1, "dur": 1, "pid": "GPU 0", "tid": "stream 7"},
    ])
    assert set(made.query("SELECT pid, command FROM processes")) == {(1, "server"), (12, None), (None, "GPU 0")}
    assert set(made.query("SELECT tid, name FROM tracks")) == {(2, "main"), (13, None), (None, "stream 7")}
    assert made.report()["devices"] == []  # whatever it is called


def test_what_is_not_shown_is_counted(tmp_path):
    other = [{"ph": phase, "pid": 1, "tid": 1, "ts": 1, "name": "n", "id": 1} for phase in "iIRCsOPvc=?"]
    made = imported(tmp_path, [{}, *other, {**X, "name": "a", "ts": 1, "dur": 1},
                                     {**X, "name": "never ended", "ts": 1}])
    assert made.fates() == {
        ("import", "plumb does not show ", detail): count for detail, count in (
            ("instants", 3), ("counters", 1), ("flow events", 1), ("objects", 1), ("samples", 1),
            ("memory dumps", 1), ("clock marks", 1), ("links between objects", 1),
            ("events of an unknown kind", 1))} | {("import", "it ends before it be", None): 1}


@pytest.mark.parametrize("end", ["", ",", ",\n", "\n"])
def test_a_list_may_lack_its_end(tmp_path, end):
    event = json.dumps({**X, "name": "a", "ts": 1, "dur": 1})
    assert calls(imported(tmp_path, f"[{event},\n{event}{end}")) == {"a": 2}


@pytest.mark.parametrize("text, reason", [
    ('{"traceEvents": [{"ph": "X"}', "at byte 28"),
    ('{"traceEvents": 7}', "expected a list of events at byte 16"),
    ('[{"ph": "X", "pid" 1}]', "at byte"),
    ('[{"ph": "X", "pid": 1, "args": ' + "[" * 600 + "]" * 600 + "}]", "deeper than 512"),
    ('[{"ph": "X", "pid": 1} {"ph": "X"}]', "a missing comma or ]"),
    ('[{"ph": "X", "pid": 1}]', "no event in it has a time"),
])
def test_damaged_files_say_where(tmp_path, text, reason):
    path = write(tmp_path, text)
    done = run_command(PLUMB, "import", path, "-o", tmp_path / "out.plumb")
    assert done.returncode in (2, 3)
    assert done.stderr.startswith(f"plumb: {path}: ") and reason in done.stderr
    assert not (tmp_path / "out.plumb").exists()


SMALL = [
    {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "é\n\"<b>"}},
    {"ph": "B", "pid": 1, "tid": 1, "ts": 1.5, "name": "a"}, {"ph": "E", "pid": 1, "tid": 1, "ts": 4},
    {"ph": "b", "pid": 1, "tid": 1, "ts": 2, "id": "0x1", "cat": "c", "name": "b", "args": {"x": [1, {}]}},
    {"ph": "e", "pid": 1, "tid": 1, "ts": 3, "id": "0x1", "cat": "c"},
    {"ph": "X", "pid": "p", "tid": "t", "ts": 1, "dur": 2, "name": "x"},
    {"ph": "S", "pid": 1, "ts": 1, "id2": {"local": 1}, "name": "s"},
]


def test_cut_off_at_every_byte(tmp_path):
    check_damaged(json.dumps({"traceEvents": SMALL}), tmp_path)


def test_cut_off_lists(tmp_path):
    text = json.dumps(SMALL)
    ends = {at for at in range(len(text)) if _is_list(text[:at])}
    check_damaged(text, tmp_path, ends)


def _is_list(text):
    try:
        json.loads(text.rstrip().rstrip(",") + "]")
        return True
    except ValueError:
        return False


def test_strange_values(tmp_path):
    check_hostile({"traceEvents": SMALL}, tmp_path)


def test_invalid_utf8_in_names(tmp_path):
    made = imported(tmp_path, b'[{"ph":"X","pid":1,"tid":1,"ts":1,"dur":1,"name":"a\xff\xfeb"}]')
    assert list(made.rows("range")) == ["a\ufffd\ufffdb"]


# ---- published files ----

def events_of(name):
    path = shared(name)
    text = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
    document = json.loads(text)
    return document["traceEvents"] if isinstance(document, dict) else document


@pytest.mark.parametrize("name, balance", [
    ("misc/catapult_flow.json.gz", (0, 3)),
    ("misc/catapult_flow_simple.json", (0, 0)),
    ("misc/catapult_main_thread_has_unclosed_slices.json.gz", (0, 4)),
    ("misc/catapult_nanoseconds.json", (0, 0)),
    ("misc/catapult_instance_counters.json", (0, 0)),
    ("misc/catapult_x_event_trace.json.gz", (0, 0)),
    ("misc/catapult_async_begin_end.json", None),
    ("misc/catapult_nestable_async.json", (1, 1)),
    ("rocm/r02_matmul_rpd2tracing.json", (0, 0)),
])
def test_published_files(tmp_path, name, balance):
    phases = collections.Counter(event.get("ph") for event in events_of(name))
    made = imported(tmp_path, shared(name))
    fates = made.fates()
    found = tuple(fates.get(("import", "an end without its b", detail), 0) for detail in (
        "ends without a start", "slices without an end, drawn to the end of the file"))
    assert balance in (None, found)
    slices = sum(row["exclusive"]["op.calls"]["sum"] for row in made.rows("range").values()
                 if "op.calls" in row["exclusive"])
    assert slices == sum(phases[phase] for phase in "XBbS")
    assert slices == sum(phases[phase] for phase in "XEeF") - found[0] + found[1]
    unused = sum(count for (_, reason, _), count in fates.items() if reason.startswith("plumb does not show"))
    assert unused == sum(count for phase, count in phases.items() if phase and phase not in "XBEbeSFM")


def test_published_nanoseconds(tmp_path):
    made = imported(tmp_path, shared("misc/catapult_nanoseconds.json"))
    assert durations(made)["us1"] == (1100, 1100)
    assert durations(made)["ns1"] == (11, 11) and durations(made)["ns2"] == (2, 2)


@pytest.mark.parametrize("name", ["misc/catapult_bad_world_bounds.json.gz", "misc/catapult_instant_events.json"])
def test_published_files_without_slices(tmp_path, name):
    done = run_command(PLUMB, "import", shared(name), "-o", tmp_path / "out.plumb")
    assert done.returncode == 3 and "no event in it has a time" in done.stderr


# ---- samples of CPU time ----

FRAMES = {"1": {"name": "main", "category": "libx.so"}, "2": {"name": "parse", "category": "libx.so", "parent": 1},
          "a": {"name": "read", "parent": "2"}, "4": {}}


def sample(ts, frame=None, tid=2, name="cpu-clock:u", weight=1_000_000, **more):
    return {"cpu": 0, "tid": tid, "ts": ts, "name": name, "weight": weight, **({"sf": frame} if frame else {}), **more}


def with_samples(*samples, frames=FRAMES, events=({**X, "name": "slice", "ts": 1, "dur": 2},)):
    return {"samples": list(samples), "traceEvents": list(events), "stackFrames": frames}


def test_samples_of_the_operating_system(tmp_path):
    """They and their frames may stand before the events that tell whose thread it is."""
    made = imported(tmp_path, with_samples(
        sample(3.5, "a"), sample(2, 2), sample("1.25", 1, name="task-clock"), sample(4, 4), sample(5),
        sample(6, 1, tid=3), sample(7, 1, tid=3, pid=1), sample(8, 1, tid=9),
        events=[{**X, "name": "slice", "ts": 1, "dur": 2}, {**X, "name": "slice", "ts": 1, "dur": 2, "tid": 3},
                {**X, "name": "slice", "ts": 1, "dur": 2, "tid": 3, "pid": 5}]))
    ms = 1_000_000
    assert sorted(samples_of(made), key=lambda one: one[3]) == [
        (1, 2, "main", 1250, ms), (1, 2, "main/parse", 2000, ms), (1, 2, "main/parse/read", 3500, ms),
        (1, 2, "[unknown code]", 4000, ms), (1, 2, "[unknown code]", 5000, ms),
        # Two processes have a thread 3, none has a thread 9.
        (None, 3, "main", 6000, ms), (1, 3, "main", 7000, ms), (None, 9, "main", 8000, ms)]
    assert {(node.name, node.file) for node in made.profile.of_kind("native")} == {
        ("main", "libx.so"), ("parse", "libx.so"), ("read", None), ("[unknown code]", None)}
    assert made.ledger("cpu.sample.time") == {("received", None): 8, ("attributed", None): 8}
    assert made.ledger() == {} and made.total("op.calls") == 3


def test_samples_alone(tmp_path):
    """Where nothing else happened their sums are the profile; beside slices, which they are not under, they have none."""
    samples = [sample(1, 1), sample(3, 2), sample(2, 2, tid=5)]
    made = imported(tmp_path, with_samples(*samples, events=[]))
    assert made.paths("cpu.time") == {("main",): 1_000_000, ("main", "parse"): 2_000_000}
    assert made.query("SELECT start_ns, wall_ns FROM run") == [(1000, 2000)]
    shown = {row["name"]: row["inclusive"]["cpu.time"] for row in made.report("--by", "native")["rows"]}
    assert {name: (row["sum"], row["count"]) for name, row in shown.items()} == {"main": (3_000_000, 3),
                                                                                 "parse": (2_000_000, 2)}
    assert imported(tmp_path, with_samples(*samples)).paths("cpu.time") == {}


@pytest.mark.parametrize("one", [
    sample(1, 1, name="cycles:HG"), sample(1, 1, weight=1), sample(1, 1, weight=None), sample(1, 1, name=None),
    sample(1, 1, name="cpu-clocks"), sample(1, 1, weight=-5), sample(1, 1, weight="x"), sample(1, 1, weight=2 ** 63),
    {}, 7, None, [], {"name": "cpu-clock"}])
def test_samples_that_tell_no_time(tmp_path, one):
    """Weights compare samples with each other; only of a clock of the CPU they are ns."""
    made = imported(tmp_path, with_samples(one))
    assert samples_of(made) == []
    assert made.ledger() == {("unused", "CPU samples without a CPU time"): 1}
    assert len(made.profile.tracks) == 1


def test_frames_that_go_round(tmp_path):
    """A frame that is its own parent, two that are each other's, and one whose parent is nowhere."""
    frames = {"1": {"name": "own", "parent": 1}, "2": {"name": "b", "parent": 3}, "3": {"name": "c", "parent": "2"},
              "4": {"name": "d", "parent": 2}, "5": {"name": "e", "parent": 99}, "6": 7, "7": None}
    made = imported(tmp_path, with_samples(*[sample(n, n) for n in range(1, 9)], frames=frames))
    assert [one[2] for one in samples_of(made)] == ["own", "c/b", "c", "c/b/d", "e", "[unknown code]", "[unknown code]",
                                                    "[unknown code]"]
    assert made.ledger() == {("overwritten", "frames of call chains of CPU samples"): 6}


def test_a_chain_without_end(tmp_path):
    """A hundred thousand frames, each under the next, and a sample of each."""
    frames = {str(n): {"name": f"f{n % 7}", "parent": n + 1} for n in range(100_000)}
    made = imported(tmp_path, with_samples(*[sample(n, n) for n in range(100_000)], frames=frames))  # 0: of no frame
    assert made.query("SELECT count(*) FROM cpu_samples") == [(100_000,)]
    assert made.query("SELECT count(*) FROM contexts")[0][0] < 4200
    assert made.ledger() == {
        ("unused", "call chains of CPU samples that were cut after the outermost 4096 frames"): 99_999 - 4096,
        ("overwritten", "frames of call chains of CPU samples"): 99_999}


@pytest.mark.parametrize("key", ["samples", "stackFrames"])
@pytest.mark.parametrize("value", [7, None, "text", [1, [2]], {"a": {"b": []}}, [], {}])
def test_lists_of_another_type(tmp_path, key, value):
    made = imported(tmp_path, {key: value, "traceEvents": [{**X, "name": "a", "ts": 1, "dur": 2}]})
    assert made.total("op.calls") == 1 and samples_of(made) == []


def node(number, name, parent=None, url="", line=None):
    frame = {"functionName": name, "url": url, "scriptId": 3, **({"lineNumber": line} if line is not None else {})}
    return {"id": number, "callFrame": frame, **({"parent": parent} if parent is not None else {})}


NODES = [node(1, "(root)"), node(2, "(idle)", 1), node(3, "main", 1, "file:///a.js", 0), node(4, "parse", 3, "file:///a.js", 41),
         node(5, "(program)", 1), node(6, "", 3)]


def v8(name, ts=None, tid=2, id="0x1", pid=1, **data):
    """With its arguments before its name, as Chrome writes them."""
    return {"args": {"data": data}, "cat": "v8", "id": id, "name": name, "ph": "P", "pid": pid, "tid": tid,
            **({"ts": ts} if ts is not None else {})}


def chunk(ts, samples, deltas, nodes=(), tid=77, **more):
    return v8("ProfileChunk", ts, tid, cpuProfile={"nodes": list(nodes), "samples": samples}, timeDeltas=deltas, **more)


def test_profiles_of_v8(tmp_path):
    """Chunks are written by another thread, may stand in any order, and may stand before their profile."""
    made = imported(tmp_path, [
        chunk(900, [5, 6, 3], [100, 100, 50.5]), chunk(500, [1, 3, 4], [10, 1000, 1000], NODES),
        chunk(700, [2, 2, 4], [1000, 1000, 250]), v8("Profile", 100, startTime=7), chunk(950, [], []),
        {**X, "name": "slice", "ts": 100, "dur": 9}])
    assert samples_of(made) == [
        (1, 2, "[unknown code]", 110_000, 10_000), (1, 2, "main", 1_110_000, 1_000_000),
        (1, 2, "main/parse", 2_110_000, 1_000_000), (1, 2, "main/parse", 4_360_000, 250_000),
        (1, 2, "(program)", 4_460_000, 100_000), (1, 2, "main/(anonymous)", 4_560_000, 100_000),
        (1, 2, "main", 4_610_500, 50_500)]
    assert {(one.name, one.file, one.line) for one in made.profile.of_kind("native")} == {
        ("main", "file:///a.js", 1), ("parse", "file:///a.js", 42), ("(program)", None, None),
        ("(anonymous)", None, None), ("[unknown code]", None, None)}
    assert made.ledger() == {("unused", "samples of idle threads"): 2}
    assert len(made.profile.tracks) == 1


def test_profiles_of_v8_are_told_apart(tmp_path):
    """By process and id; numbers of nodes are a profile's own. One without its beginning has no thread."""
    made = imported(tmp_path, [
        v8("Profile", 100), v8("Profile", tid=3, id="0x2", startTime=200), v8("Profile", 300, tid=4, pid=9),
        chunk(500, [1], [10], [node(1, "a")]), chunk(500, [1], [10], [node(1, "b")], id="0x2"),
        chunk(500, [1], [10], [node(1, "c")], pid=9), chunk(500, [1, 1], [10, 10], [node(1, "d")], pid=10),
        {"ph": "P", "name": "other", "pid": 1, "tid": 2, "ts": 5, "args": {"data": {"cpuProfile": {"samples": [1]}}}}])
    assert samples_of(made) == [(1, 2, "a", 110_000, 10_000), (1, 3, "b", 210_000, 10_000), (9, 4, "c", 310_000, 10_000)]
    assert made.ledger() == {("overwritten", "samples of V8 profiles whose Profile event is missing"): 2,
                             ("unused", "samples"): 1}


def test_profiles_of_v8_that_are_not_whole(tmp_path):
    """Nodes that go round or are missing, fewer times than samples, times that go back, that are none, that overflow."""
    nodes = [node(1, "a", 2), node(2, "b", 1), node(3, "c", 9), {"id": "x"}, 7, None, {"callFrame": 3, "id": 4}]
    made = imported(tmp_path, [
        v8("Profile", 100), chunk(200, [1, 2, 3, 4, 5], [1, 1, 1, 1, 1], nodes), chunk(300, [3, 3], [-1, 1]),
        chunk(400, [3, 3], [1]), chunk(500, [3], [1]),
        v8("Profile", 100, id="0x2"), chunk(200, [1, 1, 1], [1, None, 1], [node(1, "x")], id="0x2"),
        v8("Profile", 100, id="0x3"), chunk(200, [1, 1], [9e15, 9e15], [node(1, "y")], id="0x3"),
        v8("Profile", 100, id="0x4"), {"ph": "P", "name": "ProfileChunk", "pid": 1, "tid": 2, "id": "0x4", "args": 5},
        v8("ProfileChunk", 5, id="0x4", cpuProfile=[1], timeDeltas={"a": 1}, nodes=5)])
    assert [one[2:] for one in samples_of(made)] == [
        ("b/a", 101_000, 1000), ("x", 101_000, 1000), ("b", 102_000, 1000), ("c", 103_000, 1000),
        ("(anonymous)", 104_000, 1000), ("[unknown code]", 105_000, 1000), ("c", 105_000, 1000), ("c", 106_000, 1000),
        ("y", 9_000_000_000_000_100_000, 9_000_000_000_000_000_000)]
    ledger = made.ledger()
    assert ledger[("backwards", None)] == 5
    assert ledger[("unused", "CPU samples without a CPU time")] == 1


def test_what_samples_say_of_intervals(plumb, tmp_path):
    """Beside what PyTorch's profiler wrote: its kernels, and samples of the operating system."""
    document, moments = steps_traces.parsing_loop()
    pid, tid = steps_traces.PARSED
    document["stackFrames"] = {"1": {"name": "main"}, "2": {"name": "parse_json", "parent": "1"}}
    document["samples"] = [sample(at / 1000, "2", tid) for at in moments]
    done = plumb("iters", write(tmp_path, document), "--json")
    assert done.returncode == 0, done.stderr
    steps_traces.check_parsing(json.loads(done.stdout)["tracks"][0])


def test_names_that_are_repeated(tmp_path):
    """Some writers name processes and threads with every flush, a million times: the last name stands, and each costs the
    same."""
    names = [{"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": f"name {n % 9}"}}
             for n in range(250000)]
    made = imported(tmp_path, [*names, {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "first"}},
                               {**X, "pid": 1, "tid": 2, "name": "a", "ts": 1, "dur": 2},
                               {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "last"}}] + names[:5])
    (process,) = made.profile.processes
    assert process.command == "last"
    assert [track.name for track in made.profile.tracks] == ["name 4"]


def test_details_of_the_ledger_stand_apart(tmp_path):
    """A reason and its detail never run together in the middle of a line."""
    made = imported(tmp_path, [{"ph": "B", "name": "open", "pid": 1, "tid": 1, "ts": 1},
                               {"ph": "C", "name": "counter", "pid": 1, "tid": 1, "ts": 2, "args": {"a": 1}},
                               {**X, "name": "a", "ts": 3, "dur": 2}])
    text = run_command(PLUMB, "report", made, "--ledger").stdout
    lines = [line.strip() for line in text.splitlines()]
    (detail,) = [row[1] for row in made.ledger() if row[0] == "unbalanced"]
    (row,) = [row for row in made.report()["ledger"] if row["source"] == "import"]
    (reason,) = {fate["reason"] for fate in row["fates"] if fate["detail"] == detail}
    assert detail in lines and f"1 {reason}" in lines
    assert "1 plumb does not show this kind: counters" in lines
