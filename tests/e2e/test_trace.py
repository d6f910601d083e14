# SPDX-License-Identifier: Apache-2.0
"""`plumb run --trace`: single spans of operators, driver calls and GPU work, in a ring that is bounded."""
import collections
import os
import signal
import sqlite3
import subprocess
import sys

import pytest
from conftest import PLUMB, run_command
from plumbtest import (PROGRAMS, Made, environment_for_programs, lines_of, recorded, run_program)
from test_mock_gpu import NEWEST, RELEASES, mock_environment, run_driver

import plumb

LINES = lines_of(PROGRAMS / "traced.py")


def run(python, folder, *arguments, trace="all", options=()):
    made = run_program(python, "traced.py", *arguments, folder=folder,
                       options=[f"--trace={trace}", *options])
    assert made.done.returncode == 0, made.done.stderr
    return made


def counts(made):
    """{context: spans}."""
    return collections.Counter(span.context for span in made.profile.spans())


def at_lines(made):
    """{line of traced.py: spans of operators called right there}."""
    found = collections.Counter()
    for context, count in counts(made).items():
        parent = made.profile.node(context).parent
        if parent.kind == "python" and os.path.basename(parent.file) == "traced.py":
            found[parent.line] += count
    return found


def misplaced(spans):
    """Spans of one track that begin inside another and end after it."""
    wrong, open_spans = [], []
    for span in spans:
        while open_spans and open_spans[-1].end_ns <= span.start_ns:
            open_spans.pop()
        if open_spans and open_spans[-1].end_ns < span.end_ns:
            wrong.append((open_spans[-1], span))
        open_spans.append(span)
    return wrong


def by_track(made):
    found = collections.defaultdict(list)
    for span in made.profile.spans():
        found[span.track].append(span)
    return found


def balanced(made):
    rows = made.ledger("span")
    received = rows.pop("received")
    assert received == sum(rows.values())
    assert rows.get("attributed", 0) == sum(1 for _ in made.profile.spans())
    return received


# ---- what is kept ----

TRAINED = {}


@pytest.fixture
def trained(torch_python, tmp_path_factory):
    """20 steps of an optimizer, all of their spans; once for each Python."""
    if torch_python not in TRAINED:
        TRAINED[torch_python] = run(torch_python, tmp_path_factory.mktemp("trained"), "train", 20)
    return TRAINED[torch_python]


def test_there_is_a_span_for_every_call(trained):
    made = trained
    assert dict(counts(made)) == made.calls()
    assert balanced(made) == sum(made.calls().values())
    assert "overwritten" not in made.ledger("span")


def test_spans_nest_as_the_operators_do(trained):
    made = trained
    inside = 0
    for track, spans in by_track(made).items():
        assert made.profile.tracks[track].kind == "thread"
        assert spans == sorted(spans, key=lambda span: (span.start_ns, -span.end_ns, span.context))
        assert not misplaced(spans)
        for outer, inner in zip(spans, spans[1:]):
            if inner.start_ns < outer.end_ns:  # its context is below, or backward work of its caller
                inside += 1
                assert made.profile.node(inner.context).depth > 1
    assert inside > 100


def test_durations_add_up(trained):
    """To what the calling context tree has, which rounds each call down to whole nanoseconds."""
    made = trained
    sums = collections.Counter()
    for span in made.profile.spans():
        sums[span.context] += span.end_ns - span.start_ns
    for context, (total, calls, *_) in made.profile._stats("op.duration")[0].items():
        assert abs(sums[context] - total) <= calls + 1e-3 * total


def test_times_are_the_runs_own(trained):
    made = trained
    process, = made.profile.processes
    for span in made.profile.spans():
        assert process.start_ns <= span.start_ns <= span.end_ns <= process.end_ns


def test_each_thread_has_its_track(torch_python, tmp_path):
    """Thread by thread in one ring, and many at once."""
    made = run(torch_python, tmp_path, "threads", 300)
    tracks = {track: len(spans) for track, spans in by_track(made).items()}
    assert sorted(tracks.values()) == [300] * 13 or sorted(tracks.values())[-13:] == [300] * 13
    assert at_lines(made)[LINES["single"]] == 13 * 300
    assert dict(counts(made)) == made.calls()


def test_without_the_option_there_are_none(torch_python, tmp_path_factory):
    made = recorded(torch_python, "traced.py", tmp_path_factory, "train")
    assert list(made.profile.spans()) == []
    assert made.ledger("span") == {}


# ---- how much ----

def test_the_last_iterations_of_an_optimizer(torch_python, tmp_path):
    made = run(torch_python, tmp_path, "train", 20, trace="5")
    steps = sum(count for context, count in counts(made).items()
                if made.profile.node(context).name.startswith("Optimizer.step#"))
    assert steps == 5
    found = at_lines(made)
    assert LINES["setup"] not in found
    assert found[LINES["linear"]] == 2 * 5  # linear and sum
    assert made.ledger("span")["overwritten"] > 0
    balanced(made)


def test_the_last_iterations_of_a_loop(any_torch_python, tmp_path):
    """Without an optimizer it is the outermost loop that the main thread runs."""
    made = run(any_torch_python, tmp_path, "infer", 30, trace="4")
    found = at_lines(made)
    assert {line: found[LINES[line]] for line in ("head", "layer", "tail")} == {
        "head": 4, "layer": 12, "tail": 4}
    assert LINES["warm"] not in found


def test_a_loop_of_one_call(any_torch_python, tmp_path):
    made = run(any_torch_python, tmp_path, "single", 30, trace="7")
    assert at_lines(made)[LINES["single"]] == 7


def test_fewer_iterations_than_asked_for(any_torch_python, tmp_path):
    made = run(any_torch_python, tmp_path, "train", 3, trace="1000")
    assert dict(counts(made)) == made.calls()


def test_no_iterations_are_said(any_torch_python, tmp_path):
    made = run(any_torch_python, tmp_path, "many", 0, trace="2")
    assert dict(counts(made)) == made.calls()
    assert made.profile.environment["trace.iterations"].startswith("no iterations were found")


def test_the_last_seconds(any_torch_python, tmp_path):
    made = run(any_torch_python, tmp_path, "pause", trace="1s")
    found = at_lines(made)
    assert found[LINES["late"]] == 4
    assert found[LINES["early"]] == 0
    assert made.ledger("span")["overwritten"] >= 3


def test_a_full_ring_keeps_the_newest(any_torch_python, tmp_path):
    made = run(any_torch_python, tmp_path, "many", 60000, options=["--limit", "1M"])
    ledger = made.ledger("span")
    assert ledger["received"] == ledger["attributed"] + ledger["overwritten"]
    assert ledger["received"] == sum(made.calls().values())
    assert 1000 < ledger["attributed"] < 60000
    balanced(made)
    newest = max(made.profile.spans(), key=lambda span: span.end_ns)
    assert made.profile.node(newest.context).parent.line == LINES["newest"]
    # One unbroken run of the newest: no hole between two of them is a lost one.
    assert at_lines(made)[LINES["many"]] >= ledger["attributed"] - 100
    # Everything else is complete, and the disk takes no more than was asked for.
    assert made.ledger("operator")["received"] == made.ledger("operator")["attributed"]


def test_sigkill_keeps_spans(any_torch_python, tmp_path):
    path = tmp_path / "run.plumb"
    command = [PLUMB, "run", "-o", path, "--trace", "--", any_torch_python, PROGRAMS / "traced.py",
               "stay", 5000]
    process = subprocess.Popen([str(word) for word in command], cwd=tmp_path, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=environment_for_programs())
    assert process.stdout.readline() == "ready\n"
    children = f"/proc/{process.pid}/task/{process.pid}/children"
    with open(children, encoding="ascii") as file:
        os.kill(int(file.read().split()[0]), signal.SIGKILL)
    _, stderr = process.communicate(timeout=60)
    made = Made(subprocess.CompletedProcess([], process.returncode, "", stderr),
                PROGRAMS / "traced.py", tmp_path, path)
    assert process.returncode == -signal.SIGKILL
    assert at_lines(made)[LINES["stay"]] == 5000
    for spans in by_track(made).values():
        assert not misplaced(spans)
    balanced(made)


# ---- the GPU ----

def mock(tmp_path, *arguments, **more):
    return run_driver(tmp_path, *arguments, options=["--trace", *more.pop("options", [])], **more)


def test_launches_and_kernels_belong_together(tmp_path):
    """Each kernel has the correlation of the one call that started it, whose context is its parent."""
    made = mock(tmp_path, "loop", 200)
    tracks = made.profile.tracks
    calls, work = {}, []
    for span in made.profile.spans():
        if tracks[span.track].kind == "stream":
            work.append(span)
        elif span.correlation:
            assert span.correlation not in calls
            calls[span.correlation] = span
    assert len(work) == len(calls) == 200
    for span in work:
        call = calls.pop(span.correlation)
        assert made.profile.node(span.context).parent.id == call.context
        assert span.end_ns - span.start_ns in (9, 10, 11)  # 10 ns, and the clocks' line
    assert not calls


def test_work_of_the_trace_is_that_of_the_ring(tmp_path):
    made = mock(tmp_path, "streams")
    newest = sorted((span.track, span.start_ns, span.end_ns, span.context)
                    for span in made.profile.spans(newest=True))
    traced = sorted((span.track, span.start_ns, span.end_ns, span.context)
                    for span in made.profile.spans()
                    if made.profile.tracks[span.track].kind == "stream")
    assert newest == traced and len(traced) == 7


def test_copies_have_their_sizes(tmp_path):
    made = mock(tmp_path, "copies")
    sizes = {}
    for span in made.profile.spans():
        if made.profile.tracks[span.track].kind == "stream":
            node = made.profile.node(span.context)
            sizes.setdefault((node.kind, node.name), []).append(span.bytes)
        else:
            assert span.bytes is None
    assert sizes["copy", "copy device→device"] == [8] * 3
    assert sizes["copy", "copy pageable→device"] == [4096] and sizes["copy", "copy pinned→device"] == [100]
    assert sizes["set", "set device"] == [512, 1024]


@pytest.mark.parametrize("release", RELEASES)
def test_who_waits_for_whom(release, tmp_path):
    """An event stands for what was recorded last before it was waited for."""
    made = mock(tmp_path, "dependencies", release=release)
    tracks = made.profile.tracks
    calls = {span.correlation: made.profile.node(span.context).name for span in made.profile.spans()
             if tracks[span.track].kind == "thread" and span.correlation}
    found = []
    for wait in made.profile.waits:
        track = tracks[wait.track]
        found.append((track.kind, track.stream if track.kind == "stream" else calls[wait.call],
                      None if wait.awaited is None else tracks[wait.awaited].stream, wait.after != 0))
        assert wait.after < wait.call
    assert sorted(found, key=str) == [
        ("stream", 8, 7, True),
        ("thread", "cuCtxSynchronize", None, False),
        ("thread", "cuEventSynchronize", 8, True),
        ("thread", "cuStreamSynchronize", 7, False)]
    rows = made.ledger("span")
    assert rows.pop("unmatched") == 1  # an event that nobody recorded
    assert rows["attributed"] == sum(1 for _ in made.profile.spans())
    assert rows["received"] == rows["attributed"] + 1


def test_a_replay_has_its_launch(tmp_path):
    made = mock(tmp_path, "graph")
    spans = {made.profile.node(span.context).name: [] for span in made.profile.spans()}
    for span in made.profile.spans():
        spans[made.profile.node(span.context).name].append(span.correlation)
    assert len(spans["cuGraphLaunch"]) == 3
    assert sorted(spans["CUDA graph of 5 nodes"]) == sorted(spans["cuGraphLaunch"])
    assert "node" not in spans


def test_a_graphs_kernels_share_the_launch(tmp_path):
    made = mock(tmp_path, "graph", options=["--graphs=nodes"])
    launches = {span.correlation for span in made.profile.spans()
                if made.profile.node(span.context).name == "cuGraphLaunch"}
    nodes = collections.Counter(span.correlation for span in made.profile.spans()
                                if made.profile.node(span.context).name == "node")
    assert len(launches) == 3
    assert nodes == {correlation: 5 for correlation in launches}


def test_calls_that_start_nothing(tmp_path):
    """Those that wait have a correlation of their own, which waits name; others have none."""
    made = mock(tmp_path, "waits")
    spans = list(made.profile.spans())
    assert len(spans) == len({span.correlation for span in spans} - {None}) == 3
    assert all(span.end_ns - span.start_ns >= 1000000 for span in spans)
    memory = mock(tmp_path, "memory").profile
    started = {span.correlation for span in memory.spans() if memory.node(span.context).kind == "kernel"}
    assert len(started) == 1  # its one launch
    assert {span.correlation for span in memory.spans()} == started | {None}


def test_driver_calls_lie_in_operators(tmp_path):
    made = run_program(sys.executable, "mock_gpu.py", folder=tmp_path, options=["--trace"],
                       environment=mock_environment(NEWEST))
    assert made.done.returncode == 0, made.done.stderr
    for track, spans in by_track(made).items():
        if made.profile.tracks[track].kind == "thread":
            assert not misplaced(spans)
    kinds = collections.Counter(made.profile.node(span.context).kind
                                for span in made.profile.spans())
    assert kinds["gpu_api"] > 50 and kinds["kernel"] > 50 and kinds["operator"] > 100
    assert kinds["kernel"] == sum(node.exclusive["gpu.time"].count for node in made.profile.kernels)
    balanced(made)


# ---- the file ----

def test_spans_as_arrays(trained):
    made = trained
    rows = [tuple(span) for span in made.profile.spans()]
    from_arrays = []
    for chunk in made.profile.span_columns():
        from_arrays += zip([chunk.track] * len(chunk.context), chunk.context, chunk.start_ns,
                           chunk.end_ns, (link or None for link in chunk.correlation),
                           chunk.bytes or [None] * len(chunk.context))
    assert rows == from_arrays
    track = rows[0][0]
    assert [tuple(span) for span in made.profile.spans(track)] == [
        row for row in rows if row[0] == track]


def test_joining_keeps_spans(tmp_path):
    made = mock(tmp_path, "loop", 20)
    second = tmp_path / "second"
    second.mkdir()
    other = mock(second, "loop", 30)
    joined = tmp_path / "joined.plumb"
    done = run_command(PLUMB, "settle", made.path, other.path, "-o", joined)
    assert done.returncode == 0, done.stderr
    with plumb.Profile(joined) as profile:
        spans = collections.Counter((profile.node(span.context).name, profile.tracks[span.track].kind)
                                    for span in profile.spans())
    assert spans["cuLaunchKernel", "thread"] == spans["loop", "stream"] == 50


def test_joining_keeps_waits(tmp_path):
    made = mock(tmp_path, "dependencies")
    (tmp_path / "second").mkdir()
    other = mock(tmp_path / "second", "dependencies")
    joined = tmp_path / "joined.plumb"
    done = run_command(PLUMB, "settle", made.path, other.path, "-o", joined)
    assert done.returncode == 0, done.stderr
    with plumb.Profile(joined) as profile:
        waits = [(wait.call, wait.after, profile.tracks[wait.track].kind) for wait in profile.waits]
        assert len({wait.track for wait in profile.waits}) == 4  # a thread and a stream of each
    once = [(wait.call, wait.after, made.profile.tracks[wait.track].kind) for wait in made.profile.waits]
    assert len(once) == 4 and sorted(waits) == sorted(once * 2)


def test_reports_leave_the_trace_alone(any_torch_python, tmp_path):
    """A report reads totals: it says the same of a profile whose trace cannot be read."""
    made = run(any_torch_python, tmp_path, "train")
    before = run_command(PLUMB, "report", made.path, "--json", "--top", "0")
    database = sqlite3.connect(made.path)
    database.execute("UPDATE span_chunks SET context = x'00' WHERE source = 'trace'")
    database.commit()
    database.close()
    after = run_command(PLUMB, "report", made.path, "--json", "--top", "0")
    assert (after.returncode, after.stdout) == (0, before.stdout)
    refused = run_command(PLUMB, "export", made.path, "-o", tmp_path / "x.pftrace")
    assert refused.returncode == 2 and "a column that cannot be decompressed" in refused.stderr
    with pytest.raises(plumb.ProfileError, match="damaged spans"):
        list(plumb.Profile(made.path).spans())
