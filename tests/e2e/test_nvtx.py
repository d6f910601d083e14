# SPDX-License-Identifier: Apache-2.0
"""NVTX ranges and marks, from C and from Python, as frames of the profile. C programs are compiled with
NVTX's real headers, where they can be had, and with a small client of its interface."""
import collections
import platform
import subprocess
import sys

import pytest
from conftest import PLUMB, ROOT, Recording, clean_environment, run_command
from plumbtest import PROGRAMS, Made, export, run_program
from test_export import perfetto

SOURCES = ROOT / "tests/e2e/nvtx"


def fetched(what):
    """The folder of scripts/fetch-nvtx WHAT; skips where it cannot be had."""
    done = run_command(ROOT / "scripts/fetch-nvtx", what)
    if done.returncode:
        pytest.skip(done.stderr.strip())
    return done.stdout.strip()


def compile_c(output, source, *flags):
    subprocess.run(["gcc", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-o", str(output),
                    str(source), *map(str, flags)], check=True)
    return output


@pytest.fixture(scope="module", params=["mini", "nvtx3"])
def program(request, tmp_path_factory):
    """The C program, and the library that it uses, which has an NVTX of its own."""
    folder = tmp_path_factory.mktemp(request.param)
    flags = ["-DMINI"] if request.param == "mini" else ["-isystem", fetched("include")]
    compile_c(folder / "liblibrary.so", SOURCES / "library.c", "-fPIC", "-shared", *flags, "-ldl")
    return compile_c(folder / "program", SOURCES / "program.c", *flags, f"-L{folder}", "-llibrary",
                     f"-Wl,-rpath,{folder}", "-ldl", "-lpthread")


def run(program, scenario, folder, options=(), **environment):
    path = folder / f"{scenario}.plumb"
    layers = "python,module,operator"  # a program of C has native frames, too, if nobody says
    done = run_command(PLUMB, "run", "--layers", layers, *options, "-o", path, "--", program, scenario, cwd=folder,
                       env=environment)
    assert done.returncode == 0, done.stderr
    return Made(done, PROGRAMS / "mock_driver.py", folder, path)


def counts(made, metric="op.duration"):
    """{path: observations} of METRIC, exclusive."""
    return {" > ".join(made.steps(made.node(context))): stat[1]
            for context, stat in made.profile._stats(metric)[0].items()}


def values(made, metric):
    """{path: (sum, count, min, max)} of METRIC, exclusive."""
    return {" > ".join(made.steps(made.node(context))): stat[:4]
            for context, stat in made.profile._stats(metric)[0].items()}


def test_names_in_every_form(program, tmp_path):
    made = run(program, "names", tmp_path)
    assert counts(made) == {'"plain 0"': 2, '"plain 1"': 1, '"wide ü € 😀"': 1, '"attributes"': 1,
                            '"wide attributes"': 1, '"?"': 2}
    assert made.ledger("range") == {"received": 8, "attributed": 8}


def test_nesting_and_levels(program, tmp_path):
    made = run(program, "nesting", tmp_path)
    assert made.done.stdout.splitlines() == [
        "push 0", "push 1", "pop 1", "push 1", "pop 1", "pop 0", "pop -1", "push 0", "pop 0"]
    assert counts(made) == {'"outer"': 1, '"outer" > "inner"': 2, '"after"': 1}
    assert made.ledger("range") == {"received": 5, "attributed": 4, "unbalanced": 1}


def test_self_time_is_without_what_is_inside(program, tmp_path):
    made = run(program, "nesting", tmp_path)
    duration, own = values(made, "op.duration"), values(made, "op.time")
    assert set(duration) == set(own)
    inside = duration['"outer"'][0] - own['"outer"'][0]
    assert inside == duration['"outer" > "inner"'][0] == own['"outer" > "inner"'][0]
    assert counts(made, "op.calls") == counts(made)


def test_domains_that_overlap(program, tmp_path):
    """Each domain closes its own ranges; what is inside one that closes stays open."""
    made = run(program, "domains", tmp_path)
    assert made.done.stdout.splitlines() == [
        "push A 0", "push B 0", "push - 0", "pop A 0", "push A 0", "pop - 0", "pop A 0", "pop B 0",
        "push A 0", "pop A 0"]
    inner = '"A/first" > "B/second" > "third"'
    assert counts(made) == {'"A/first"': 2, '"A/first" > "B/second"': 1, inner: 1,
                            inner + ' > "A/first"': 1}
    assert made.ledger("range") == {"received": 5, "attributed": 5}
    # Overlapping or not, no moment of the thread counts twice.
    own = sum(stat[0] for stat in values(made, "op.time").values())
    thread, = made.profile.tracks
    assert 0 < own <= thread.end_ns - thread.start_ns


def test_payloads(program, tmp_path):
    made = run(program, "payloads", tmp_path)
    assert values(made, "range.payload") == {
        '"batch"': (6, 3, 1, 3), '"double"': (-3, 1, -3, -3),
        '"mark"': (4000000000, 1, 4000000000, 4000000000)}
    assert counts(made) == {'"batch"': 3, '"double"': 1, '"huge"': 1}


def test_started_ranges(program, tmp_path):
    """They may end on other threads, and are no frame of what runs meanwhile."""
    made = run(program, "starts", tmp_path)
    assert made.done.stdout == "ids 1\n"
    assert counts(made) == {'"around"': 1, '"around" > "started"': 2, '"around" > "moved"': 1,
                            '"meanwhile"': 1, '"elsewhere"': 1, '"D/in a domain"': 1}
    # Their time is nobody's time on a thread.
    assert set(counts(made, "op.time")) == {'"around"', '"meanwhile"', '"elsewhere"'}
    # Two have no other end: the one that was ended twice, and the one that never was.
    assert made.ledger("range") == {"received": 9, "attributed": 7, "unbalanced": 2}
    # A range belongs to the thread that started it.
    tracks = {track.id: track.tid for track in made.profile.tracks}
    database_tracks = made.profile._database.execute(
        "SELECT v.track FROM context_values v JOIN contexts c ON c.id = v.context JOIN frames f "
        "ON f.id = c.frame WHERE f.name = 'moved'").fetchall()
    pid, = {process.pid for process in made.profile.processes}
    assert {tracks[track] for track, in database_tracks} == {pid}


def test_started_ranges_have_spans(program, tmp_path):
    made = run(program, "starts", tmp_path, options=["--trace"])
    spans = {" > ".join(made.steps(made.node(span.context))): span for span in made.profile.spans()}
    found = collections.Counter(" > ".join(made.steps(made.node(span.context)))
                                for span in made.profile.spans())
    assert found == counts(made)
    around, started, moved = (spans[path] for path in (
        '"around"', '"around" > "started"', '"around" > "moved"'))
    meanwhile, elsewhere = spans['"meanwhile"'], spans['"elsewhere"']
    assert around.start_ns <= started.start_ns <= around.end_ns <= meanwhile.start_ns <= started.end_ns
    assert started.end_ns <= meanwhile.end_ns <= elsewhere.start_ns <= moved.end_ns <= elsewhere.end_ns
    # On the track of the thread that started it, though it ended on another one.
    assert moved.track == around.track != elsewhere.track
    assert {span.correlation for span in spans.values()} == {None}
    total, number = made.profile._stats("op.duration")[0][moved.context][:2]
    assert number == 1 and abs(moved.end_ns - moved.start_ns - total) <= 1 + 1e-3 * total


def test_a_started_range_hides_no_iterations(program, tmp_path):
    made = run(program, "epoch", tmp_path, options=["--trace=5"])
    assert collections.Counter(made.node(span.context).name for span in made.profile.spans()) == {
        "step": 5, "epoch": 1}


def test_started_ranges_stand_beside_their_thread(program, tmp_path):
    made = run(program, "starts", tmp_path, options=["--trace"])
    trace = perfetto(export(made.path, tmp_path / "out.pftrace"))
    named = trace["named"]
    thread = next(track for track, own in named.items() if own["kind"] == "thread" and
                  any(s["track"] == track and s["name"] == "around" for s in trace["slices"]))
    where = collections.defaultdict(set)
    for s in trace["slices"]:
        where[s["name"]].add((named[s["track"]]["kind"], s["track"] == thread))
    assert where["around"] == where["meanwhile"] == {("thread", True)}
    assert where["elsewhere"] == {("thread", False)}
    # The longer ones overlap one another, too.
    for name in "started", "moved", "D/in a domain":
        assert where[name] == {("track", False)}
    assert len({s["track"] for s in trace["slices"] if s["name"] in ("started", "moved")}) >= 2
    assert len(trace["slices"]) == len(list(made.profile.spans()))


def test_marks(program, tmp_path):
    made = run(program, "marks", tmp_path)
    assert counts(made, "range.marks") == {
        '"alone"': 1, '"around" > "inside"': 5, '"around" > "wïde"': 1,
        '"around" > "D/of a domain"': 1}
    assert counts(made) == {'"around"': 1}


def test_many_names_share_one_context_in_the_end(program, tmp_path):
    made = run(program, "many", tmp_path)
    found = counts(made)
    assert len(found) == 4097
    assert found['"(further names)"'] == 10000 - 4096
    assert made.ledger("range") == {"received": 10000, "attributed": 10000,
                                    "overflowed": 10000 - 4096}


def test_deeper_than_is_kept(program, tmp_path):
    made = run(program, "deep", tmp_path)
    found = made.calls()
    after, = [context for context in found if made.node(context).name == "after"]
    assert (made.steps(made.node(after)), found[after]) == (['"after"'], 1), "what comes later is not hurt"
    assert sum(found.values()) == 4096 + 1
    ledger = made.ledger("range")
    assert ledger["too_deep"] == 5000 - 4096
    assert ledger["received"] == sum(ledger.values()) - ledger["received"]


def test_every_library_has_its_own(program, tmp_path):
    made = run(program, "libraries", tmp_path)
    assert counts(made) == {'"program"': 1, '"program" > "library/work"': 1,
                            '"program" > "library/work" > "of the library"': 1}


def test_a_range_that_the_program_leaves_open(program, tmp_path):
    made = run(program, "left-open", tmp_path)
    assert counts(made) == {'"left open" > "done"': 1}


# ---- a tool that was there before ----

@pytest.fixture(scope="module")
def other_tool(tmp_path_factory):
    return compile_c(tmp_path_factory.mktemp("tool") / "libother.so", SOURCES / "other_tool.c",
                     "-fPIC", "-shared", "-ldl", "-Wno-unused-function")


def told(program, scenario, folder, tool, plumb):
    """What the program printed and what the tool was told, with or without plumb."""
    log = folder / ("with.log" if plumb else "without.log")
    environment = {"NVTX_INJECTION64_PATH": str(tool), "OTHER_TOOL_LOG": str(log)}
    if plumb:
        made = run(program, scenario, folder, **environment)
        return made.done.stdout, log.read_text(), made
    done = run_command(program, scenario, env=environment)
    assert done.returncode == 0
    return done.stdout, log.read_text(), None


@pytest.mark.parametrize("scenario", ["names", "nesting", "domains", "payloads", "starts", "marks",
                                      "libraries"])
def test_the_other_tool_is_told_the_same(program, other_tool, tmp_path, scenario):
    output, alone, _ = told(program, scenario, tmp_path, other_tool, False)
    both_output, both, made = told(program, scenario, tmp_path, other_tool, True)
    # Where the tool lacks a function, plumb's own handles stand in: it learns the text of a string that
    # it did not register itself, and is not told to end what it did not start.
    alone = alone.replace("push - (unknown string)", "push - second").replace("end 0\n", "")
    assert both == alone and "(unknown" not in both
    if scenario not in ("domains", "starts"):  # it does not answer every call in these
        assert both_output == output
    plain = counts(run(program, scenario, tmp_path))
    assert counts(made) == plain, "and plumb sees what it sees alone"


def test_an_other_tool_that_is_not_there(program, tmp_path):
    made = run(program, "nesting", tmp_path, NVTX_INJECTION64_PATH="/nonexistent/tool.so")
    assert counts(made)['"outer" > "inner"'] == 2


def test_preloaded_by_hand(program, tmp_path):
    """Without `plumb run` the collector names itself in the environment."""
    library = PLUMB.parent / "libplumb.so"
    regions = tmp_path / "regions"
    regions.mkdir()
    done = run_command(program, "nesting", env={"LD_PRELOAD": str(library),
                                                "PLUMB_FOLDER": str(regions)})
    assert done.returncode == 0 and done.stdout.startswith("push 0\npush 1")
    settled = run_command(PLUMB, "settle", regions, "-o", tmp_path / "run.plumb")
    assert settled.returncode == 0, settled.stderr
    made = Made(done, PROGRAMS / "mock_driver.py", tmp_path, tmp_path / "run.plumb")
    assert counts(made) == {'"outer"': 1, '"outer" > "inner"': 2, '"after"': 1}


def test_no_plumb_no_change(program):
    """The collector preloaded with nothing to do: NVTX does what it does without a tool."""
    library = PLUMB.parent / "libplumb.so"
    done = run_command(program, "nesting", env={"LD_PRELOAD": str(library)})
    assert done.stdout.splitlines()[:2] == ["push -2", "push -2"]


# ---- Python's nvtx, in PyTorch ----

def nvtx_python():
    if sys.version_info[:2] != (3, 11) or platform.machine() != "x86_64":
        pytest.skip("the pinned nvtx package is for CPython 3.11 on x86-64")
    return fetched("python3.11")


def test_python_nvtx_inside_and_around_operators(torch_python, tmp_path):
    version = subprocess.run([torch_python, "-c", "import sys; print(sys.version_info[:2])"],
                             capture_output=True, text=True, env=clean_environment()).stdout
    if version.strip() != "(3, 11)":
        pytest.skip("the pinned nvtx package is for CPython 3.11")
    made = run_program(torch_python, "nvtx_ranges.py", folder=tmp_path,
                       environment={"PYTHONPATH": nvtx_python()})
    assert made.done.returncode == 0, made.done.stderr
    tree = made.tree("train")
    loop = 'train:@train > "step" > train:@call > '
    assert tree[made.expand(loop + "forward:@mul > aten::mul")] == 3
    assert tree[made.expand(loop + 'forward:@inside > "layers/inner" > forward:@add > aten::add')] == 3
    engine = "autograd::engine::evaluate_function: MulBackward0 (backward)"
    assert tree[made.expand(loop + f"forward:@mul > aten::mul > {engine} > "
                            "MulBackward0 (backward)")] == 3
    assert tree[made.expand('train:@train > "step"')] == 3
    assert tree[made.expand('train:@push > "pushed" > train:@neg > aten::neg')] == 1
    assert values(made, "range.payload")[
        made.expand('<module>:@main > train:@train > "step"')] == (3, 3, 0, 2)
    ledger = made.ledger("range")
    assert ledger["received"] == ledger["attributed"] == 3 * 2 + 1


def test_report_by_range(program, tmp_path):
    made = run(program, "nesting", tmp_path)
    report = Recording(made.done, made.path).report("--metric", "op.calls")
    assert {row["name"]: row["exclusive"]["op.calls"]["sum"] for row in report["rows"]} == {
        "outer": 1, "inner": 2, "after": 1}
    assert {row["kind"] for row in report["rows"]} == {"range"}
