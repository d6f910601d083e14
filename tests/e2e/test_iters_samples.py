# SPDX-License-Identifier: Apache-2.0
"""Samples of CPU time with their moments (`plumb run --trace --cpu`), and what `plumb iters` names by them."""
import collections
import json
import signal
import sqlite3
import statistics
import subprocess
import sys

import pytest
from conftest import PLUMB, ROOT, run_command
from plumbtest import PROGRAMS, answer, run_program
from test_mock_gpu import NEWEST, mock_environment

import plumb

BURN = """
import os, sys, time
def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(i * i for i in range(2000))
"""


def run(folder, text, *arguments, options=("--trace", "--cpu=1000"), code=0):
    program = folder / "program.py"
    program.write_text(BURN + text)
    made = run_program(sys.executable, program, *arguments, folder=folder, options=[*options, "--no-gpu"])
    assert made.done.returncode == code, made.done.stderr
    return made


def check(made):
    """Times of samples are the run's, in order, and what they stand for is what the tree has."""
    profile = made.profile
    last, sums, count = {}, collections.Counter(), 0
    passed, computed = collections.Counter(), collections.Counter()
    for sample in profile.cpu_samples():
        track = profile.tracks[sample.track]
        process = profile.processes[track.process]
        assert track.kind == "thread" and sample.cpu_ns >= 0
        assert process.start_ns <= sample.at_ns <= process.end_ns
        assert last.get(sample.track, 0) < sample.at_ns
        # No thread computes for longer than passes; it may be stopped between reading two clocks.
        passed[sample.track] += sample.at_ns - last.get(sample.track, sample.at_ns - sample.cpu_ns)
        computed[sample.track] += sample.cpu_ns
        assert computed[sample.track] <= passed[sample.track] + 20_000_000
        last[sample.track] = sample.at_ns
        sums[sample.context] += sample.cpu_ns
        count += 1
    assert list(last) == sorted(last)
    rows = made.ledger("cpu.sample.time")
    assert rows["received"] == sum(rows.values()) - rows["received"]
    assert count == rows["attributed"]
    return count, sums


def tree_sums(made):
    """{context: ns of cpu.time}, without plumb's own."""
    return {context: stat[0] for context, stat in made.profile._stats("cpu.time")[0].items()
            if made.profile.node(context).name != "[plumb]" and stat[0]}


# ---- what is kept ----

def test_every_sample_has_its_moment(tmp_path):
    made = run(tmp_path, "burn(0.4)\n"
               "import threading\n"
               "other = threading.Thread(target=burn, args=(0.3,))\nother.start()\nother.join()\n")
    count, sums = check(made)
    samples = made.ledger("cpu.sample")
    assert count == samples["attributed"] + samples.get("no_stack", 0) > 50
    assert {context: ns for context, ns in sums.items() if ns} == tree_sums(made)
    assert len({sample.track for sample in made.profile.cpu_samples()}) == 2
    for track in made.profile.tracks:
        own = list(made.profile.cpu_samples(track.id))
        assert own == [sample for sample in made.profile.cpu_samples() if sample.track == track.id]


@pytest.mark.parametrize("options", [("--cpu=1000",), ("--trace",)])
def test_only_with_both(tmp_path, options):
    made = run(tmp_path, "burn(0.1)\n", options=options)
    assert list(made.profile.cpu_samples()) == [] and made.ledger("cpu.sample.time") == {}


def test_samples_of_operators_lie_in_their_spans(torch_python, tmp_path):
    program = tmp_path / "operators.py"
    program.write_text("import time, torch\na, end = torch.ones(300, 300), time.thread_time() + 0.4\n"
                       "while time.thread_time() < end:\n    a @ a\n")
    made = run_program(torch_python, program, folder=tmp_path,
                       options=["--trace", "--cpu=1000", "--no-gpu"])
    assert made.done.returncode == 0, made.done.stderr
    check(made)
    profile, spans, inside = made.profile, collections.defaultdict(list), 0
    for span in profile.spans():
        spans[span.track, span.context].append(span)
    for sample in profile.cpu_samples():
        node = profile.node(sample.context)
        while node is not None and node.kind != "operator":
            node = node.parent
        if node is None:
            continue
        # The record of an operator begins a little before its span, and ends a little after it.
        assert any(span.start_ns - 50_000 <= sample.at_ns <= span.end_ns + 50_000
                   for span in spans[sample.track, node.id]), node.path
        inside += 1
    assert inside > 20


def test_forked_children_have_their_own(tmp_path):
    made = run(tmp_path, "burn(0.1)\nchild = os.fork()\nburn(0.2)\n"
               "if child: os.waitpid(child, 0)\n")
    check(made)
    tracks = made.profile.tracks
    assert len({tracks[sample.track].process for sample in made.profile.cpu_samples()}) == 2


def test_the_last_seconds(tmp_path):
    made = run(tmp_path, "burn(0.5)\ntime.sleep(1.5)\nburn(0.3)\n", options=("--trace=1s", "--cpu=1000"))
    check(made)
    samples = list(made.profile.cpu_samples())
    assert max(s.at_ns for s in samples) - min(s.at_ns for s in samples) <= 1e9
    assert made.ledger("cpu.sample.time")["overwritten"] > 10


def test_a_killed_program_keeps_them(tmp_path):
    made = run(tmp_path, "burn(0.3)\nos.kill(os.getpid(), 9)\n", code=-signal.SIGKILL)
    count, sums = check(made)
    assert count > 20 and {context: ns for context, ns in sums.items() if ns} == tree_sums(made)


def test_a_ring_that_is_full(tmp_path):
    """One piece goes over the other; samples are told from spans."""
    made = run(tmp_path, f"sys.path.insert(0, {str(ROOT / 'python')!r})\nimport plumb\n"
               "for _ in range(80):\n"
               "    burn(0.01)\n"
               "    for _ in range(1500):\n"
               "        with plumb.span('x'): pass\n", options=("--trace", "--cpu=1000", "--limit=4M"))
    count, _ = check(made)
    rows = made.ledger("cpu.sample.time")
    assert rows["overwritten"] > 0 and rows["received"] == count + rows["overwritten"]
    spans = made.ledger("span")
    assert spans["overwritten"] > 1000
    assert spans["received"] == spans["overwritten"] + spans["attributed"] == 80 * 1500


def test_joining_keeps_them(tmp_path):
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
    first, second = (run(folder, "burn(0.2)\n") for folder in folders)
    joined = tmp_path / "joined.plumb"
    done = run_command(PLUMB, "settle", first.path, second.path, "-o", joined)
    assert done.returncode == 0, done.stderr

    def rows(profile):
        return collections.Counter((profile.node(s.context).path, s.at_ns, s.cpu_ns)
                                   for s in profile.cpu_samples())
    with plumb.Profile(joined) as profile:
        assert rows(profile) == rows(first.profile) + rows(second.profile)
        assert len({s.track for s in profile.cpu_samples()}) == 2


def test_a_profile_from_before_has_none(tmp_path):
    made = run(tmp_path, "burn(0.05)\n")
    database = sqlite3.connect(made.path)
    database.execute("DROP TABLE cpu_samples")
    database.commit()
    database.close()
    with plumb.Profile(made.path) as profile:
        assert list(profile.cpu_samples()) == []
    assert run_command(PLUMB, "iters", made.path).returncode in (0, 3)
    assert run_command(PLUMB, "report", made.path).returncode == 0


# ---- what filled an interval ----

STEPS, MS, SLEEPS, EXTRA = 24, 30, 7, 15


def host_bound(folder, *options):
    made = run_program(sys.executable, "host_bound.py", STEPS, MS, SLEEPS, EXTRA, folder=folder,
                       options=["--trace", *options],
                       environment=mock_environment(NEWEST, "clock=1"))
    assert made.done.returncode == 0, made.done.stderr
    return made


def level_of(made):
    level = [track for track in answer("iters", made.path)["tracks"] if track["role"] == "main"][0]["levels"][0]
    assert level["occurrences"] == STEPS and level["verdict"] == "host-bound"
    return level


@pytest.fixture(scope="module")
def sampled(tmp_path_factory):
    return host_bound(tmp_path_factory.mktemp("sampled"), "--cpu=1000")


def lines(*marks):
    text = (PROGRAMS / "host_bound.py").read_text().splitlines()
    return {number for number, line in enumerate(text, 1)
            if any(line.endswith(f"# @{mark}") for mark in marks)}


def test_computing_is_named_and_sleep_is_not(sampled):
    level = level_of(sampled)
    filled = level["summary"]["filled"]
    assert sum(row["share"] for row in filled) == pytest.approx(1)
    told = [row for row in filled if row["kind"] == "sample"]
    top = told[0]
    assert top["name"] == "prepare" and top["file"].endswith("host_bound.py")
    assert top["line"] in lines("first", "second", "prepare")
    assert top["text"] == f"prepare at host_bound.py:{top['line']} (CPU samples)"
    # The CPU time that the program took there, and no time that it slept or waited for a processor.
    expected = (STEPS - 2) * MS * 1_000_000
    assert top["ns"] == pytest.approx(expected, rel=0.1)
    assert told[1]["name"] == "augment" and told[1]["ns"] == pytest.approx(3 * MS * 1_000_000, rel=0.35)
    assert sum(row["ns"] for row in told[2:]) < 0.1 * expected
    took = json.loads(sampled.done.stdout.splitlines()[0])
    gaps = sum(row["ns"] for row in filled if row["kind"] == "gap")
    assert gaps > 0.9 * took["rest"] * (STEPS - 1) / STEPS
    count = sum(1 for _ in sampled.profile.cpu_samples())
    assert 0.5 * count < top["samples"] <= count
    assert all(row["samples"] is None for row in filled if row["kind"] != "sample")
    text = run_command(PLUMB, "iters", sampled.path).stdout
    assert f"  {top['text']}\n" in text


def test_iterations_by_their_own_samples(sampled):
    """On a busy machine there are few; so only most of the steps must be right."""
    computed = {}
    for number, one in enumerate(level_of(sampled)["iterations"][1:], 1):
        assert sum(row["ns"] for row in one["filled"]) == one["interval_ns"]
        computed[number] = sum(row["ns"] for row in one["filled"] if row["kind"] == "sample")
    usual = statistics.median(computed.values())
    assert usual == pytest.approx(MS * 1e6, rel=0.2)
    assert computed[SLEEPS] < 0.5 * usual and max(computed, key=computed.get) == EXTRA
    assert computed[EXTRA] == pytest.approx(4 * MS * 1e6, rel=0.3)


def test_the_critical_path_between_two_spans(sampled):
    path = [track for track in answer("iters", sampled.path)["tracks"] if track["role"] == "main"][0]["path"]
    top = path["top"][0]
    assert (top["path_kind"], top["name"], top["sampled"]) == ("host", None, "prepare"), path
    assert top["sampled_line"] in lines("first", "second", "prepare")
    assert all(row["sampled"] is None for row in path["top"] if row["name"])
    assert "(between two spans, most sampled: prepare)" in run_command(PLUMB, "iters", sampled.path).stdout


def test_what_a_step_that_slept_did_less(sampled):
    told = answer("iters", sampled.path, "--explain", str(SLEEPS))["explain"]
    row = [row for row in told["rows"] if row["name"] == "prepare"][0]
    assert row["cause"] == "host" and "less in prepare at host_bound.py:" in row["text"]
    assert row["difference_ns"] == pytest.approx(-MS * 1e6, rel=0.5)
    assert row["median_count"] > row["count"]


def test_what_a_step_computed_more(sampled):
    told = answer("iters", sampled.path, "--explain", str(EXTRA))["explain"]
    row = [row for row in told["rows"] if row["name"]][0]
    assert (row["name"], row["cause"], row["median_ns"]) == ("augment", "host", 0)
    assert row["difference_ns"] == pytest.approx(3 * MS * 1e6, rel=0.35)
    assert f"more in augment at host_bound.py:{row['line']} (CPU samples)" in row["text"]


def test_without_samples_nothing_is_recorded(tmp_path):
    filled = level_of(host_bound(tmp_path))["summary"]["filled"]
    assert filled[0]["kind"] == "gap" and filled[0]["share"] > 0.9
    assert not [row for row in filled if row["kind"] == "sample"]


def test_native_functions(tmp_path):
    """In full mode the function that computes is named, at the line of Python that calls it."""
    library = tmp_path / "library.so"
    subprocess.run(["gcc", "-O2", "-g", "-DLIBRARY", "-shared", "-fPIC", PROGRAMS / "cpu_native.c", "-o",
                    library], check=True)
    program = tmp_path / "program.py"
    program.write_text(
        f"import ctypes, sys\nsys.path.insert(0, {str(PROGRAMS)!r})\n"
        "from launcher import launch\n"
        "burn = ctypes.CDLL(sys.argv[1]).burn_ten\n"
        "burn.argtypes, burn.restype = [ctypes.c_double], ctypes.c_double\n"
        "for _ in range(20):\n"
        "    burn(0.3)\n"
        "    for name in (b'a', b'b', b'c'):\n"
        "        launch(name, 50000, 0, 0)\n")
    made = run_program(sys.executable, program, library, folder=tmp_path,
                       options=["--trace", "--cpu=1000", "--mode=full"],
                       environment=mock_environment(NEWEST, "clock=1"))
    assert made.done.returncode == 0, made.done.stderr
    told = answer("iters", made.path)["tracks"]
    filled = [track for track in told if track["role"] == "main"][0]["levels"][0]["summary"]["filled"]
    top = [row for row in filled if row["kind"] == "sample"][0]
    assert top["name"] in ("spin", "burn_ten") and top["line"] == 7
    assert top["text"] == f"{top['name']} at program.py:7 (CPU samples)"
