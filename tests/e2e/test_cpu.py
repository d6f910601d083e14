# SPDX-License-Identifier: Apache-2.0
"""CPU time by samples, waiting, and processor events: `plumb run --cpu` and `--events`."""
import json
import math
import subprocess
import sys

import pytest
from conftest import run_command
from plumbtest import PROGRAMS
from test_python_walker import SUPPORTED, matrix

METRIC = ("--metric", "cpu.time")


def inclusive(recording, names, by="python"):
    """{name: ns of CPU time under the function}; of `names` only."""
    rows = recording.report("--by", by, "--top", "0", *METRIC)["rows"]
    found = {}
    for row in rows:
        name = row["name"].rpartition(".")[2]
        if name in names:
            found[name] = row["inclusive"]["cpu.time"]["sum"]
    return found


def ledger(report, source):
    return {row["reason"] or "": row for row in report["ledger"] if row["source"] == source}


@pytest.mark.parametrize("python", matrix(SUPPORTED))
def test_shares_are_those_of_the_program(record, python):
    made = record(python, PROGRAMS / "cpu_shares.py", "1.5", options=("--cpu=250", "--no-gpu"))
    truth = json.loads(made.stdout)
    check_shares(made, truth, inclusive(made, truth))


def test_a_recording_that_begins_before_python_knows_its_version(record):
    """With samples a process records from its start on; Python is met when an extension module is loaded."""
    made = record(sys.executable, "-c", "import ctypes, platform; sum(range(3000000)); print(platform.python_version())",
                  options=("--cpu=250", "--no-gpu"))
    environment = made.report("--by", "thread", *METRIC)["run"]["environment"]
    assert environment["python.version"] == made.stdout.strip()


def check_shares(made, truth, found):
    whole = sum(truth.values())
    report = made.report("--by", "thread", *METRIC)
    samples, = [row["received"] for row in report["ledger"] if row["source"] == "cpu.sample"
                and row["received"]][:1]
    assert samples > 150
    for name, ns in truth.items():
        share, got = ns / whole, found.get(name, 0) / sum(found.values())
        # Four standard deviations of so many samples.
        assert abs(share - got) < 4 * math.sqrt(share * (1 - share) / samples) + 0.01, name
    # Nearly all that the process's clock shows is somewhere.
    assert sum(found.values()) > 0.9 * whole


# ---- native frames ----

@pytest.fixture(scope="module")
def burners(tmp_path_factory):
    """A program without frame pointers, and the library that it loads."""
    folder = tmp_path_factory.mktemp("burners")
    options = ["-O2", "-fomit-frame-pointer", PROGRAMS / "cpu_native.c", "-lpthread", "-ldl"]
    subprocess.run(["gcc", *options, "-o", folder / "program"], check=True)
    subprocess.run(["gcc", *options, "-g", "-DLIBRARY", "-shared", "-fPIC", "-o", folder / "library.so"],
                   check=True)
    return folder


def test_shares_by_native_function(record, burners):
    """In the mode without native frames they still tell the place where nothing else does."""
    made = record(burners / "program", burners / "library.so", "1.5", options=("--cpu=250", "--no-gpu"))
    truth = json.loads(made.stdout)
    assert set(truth) == {"burn_sixty", "burn_thirty", "burn_ten"}
    check_shares(made, truth, inclusive(made, truth, "native"))
    walks = ledger(made.report("--by", "thread", *METRIC), "native")
    received = sum(row["received"] for row in walks.values())
    attributed = sum(row["attributed"] for row in walks.values())
    assert received > 150 and attributed >= 0.98 * received
    # The library's lines are known, the program's are not; plumb stands nowhere but in its own row.
    rows = {row["name"]: row for row in made.report("--by", "native", "--top", "0", *METRIC)["rows"]}
    assert rows["burn_ten"]["source_file"].endswith("cpu_native.c")
    assert rows["burn_sixty"]["source_file"] is None
    assert rows["burn_sixty"]["library"] == str(burners / "program")
    libraries = {row["name"] for row in made.report("--by", "library", "--top", "0", *METRIC)["rows"]}
    assert {"program", "library.so"} <= libraries and "libplumb.so" not in libraries
    # One context for what a function itself did, however many of its instructions were met.
    contexts = [row for row in made.report("--by", "context", "--top", "0", *METRIC)["contexts"]
                if row["name"] == "spin" and "cpu.time" in row["exclusive"]]
    assert len(contexts) == 3


def test_python_and_native_frames_together(record, burners, tmp_path):
    program = tmp_path / "both.py"
    program.write_text(
        "import ctypes, sys, time\n"
        "burn = ctypes.CDLL(sys.argv[1]).burn_ten\n"
        "burn.argtypes, burn.restype = [ctypes.c_double], ctypes.c_double\n"
        "def calls(): return burn(6.0)\n"
        "def computes():\n"
        "    end = time.thread_time() + 0.6\n"
        "    while time.thread_time() < end: sum(i * i for i in range(1000))\n"
        "calls()\ncomputes()\n")
    made = record(sys.executable, program, burners / "library.so",
                  options=("--cpu=250", "--mode", "full", "--no-gpu"))
    tree = {row["id"]: row for row in
            made.report("--by", "context", "--top", "0", *METRIC)["contexts"]}

    def path(row):
        found = []
        while row["parent"] is not None and row["id"]:
            found.append((row["kind"], row["name"].rpartition(".")[2]))
            row = tree[row["parent"]]
        return found[::-1]
    burned = 0
    for row in tree.values():
        names = [name for _, name in path(row)]
        if "burn_ten" not in names or "cpu.time" not in row["exclusive"]:
            continue
        kinds = [kind for kind, _ in path(row)]
        first = kinds.index("native")
        assert ("python", "calls") == path(row)[first - 1] and set(kinds[:first]) == {"python"}
        assert set(kinds[first:]) <= {"native", "inline"}
        assert "_PyEval_EvalFrameDefault" not in names
        burned += row["exclusive"]["cpu.time"]["sum"]
    assert 0.8 * 0.6e9 < burned < 1.2 * 0.6e9
    # Below Python's own frames, too: what the interpreter called.
    computed = [row for row in tree.values() if ("python", "computes") in path(row)
                and "cpu.time" in row["exclusive"]]
    assert {row["kind"] for row in computed} >= {"python", "native"}
    python = inclusive(made, {"calls", "computes"})
    assert python["calls"] > 0.8 * 0.6e9 and python["computes"] > 0.8 * 0.6e9


def test_native_frames_of_a_forked_child(record, burners, tmp_path):
    """It writes its own code objects, also of a library that its parent had loaded and met."""
    program = tmp_path / "forks.py"
    program.write_text(
        "import ctypes, os, sys\n"
        "burn = ctypes.CDLL(sys.argv[1]).burn_ten\n"
        "burn.argtypes, burn.restype = [ctypes.c_double], ctypes.c_double\n"
        "burn(3.0)\n"
        "child = os.fork()\n"
        "burn(3.0)\n"
        "if child: os.waitpid(child, 0)\n")
    made = record(sys.executable, program, burners / "library.so",
                  options=("--cpu=250", "--mode", "full", "--no-gpu"))
    rows = made.report("--by", "native", "--top", "0", *METRIC)["rows"]
    burned, = [row["inclusive"]["cpu.time"]["sum"] for row in rows if row["name"] == "burn_ten"]
    assert 0.8 * 0.9e9 < burned < 1.2 * 0.9e9
    report = made.report("--by", "process", *METRIC)
    assert len([row for row in report["rows"] if row["inclusive"]["cpu.time"]["sum"] > 0.2e9]) == 2
    walks = [row for row in report["ledger"] if row["source"] == "native"]
    assert sum(row["attributed"] for row in walks) >= 0.95 * sum(row["received"] for row in walks)
    damaged = [fate for row in report["ledger"] for fate in row["fates"] if fate["detail"] == "code objects"]
    assert not damaged


def test_every_thread_is_sampled(record, tmp_path):
    program = tmp_path / "threads.py"
    program.write_text(
        "import threading, time\n"
        "def spin():\n"
        "    end = time.thread_time() + 0.15\n"
        "    while time.thread_time() < end: pass\n"
        "threads = [threading.Thread(target=spin) for _ in range(6)]\n"
        "[t.start() for t in threads]\n[t.join() for t in threads]\n")
    made = record(sys.executable, program, options=("--cpu=250", "--no-gpu"))
    rows = made.report("--by", "thread", "--top", "0", *METRIC)["rows"]
    busy = [row for row in rows if row["inclusive"].get("cpu.time", {}).get("sum", 0) > 50_000_000]
    assert len(busy) >= 6


def test_waiting_is_told_from_computing(record, any_torch_python):
    made = record(any_torch_python, PROGRAMS / "waits.py", options=("--cpu", "--no-gpu"))
    rows = {row["name"]: row for row in
            made.report("--by", "context", "--top", "0", "--metric", "wait.time")["contexts"]}

    def of(name, metric):
        return rows[name]["inclusive"].get(metric, {}).get("sum", 0)
    # Measured at the operator but for its first calls, whose length was not known before.
    took = json.loads(made.stdout)
    assert 300e6 < of("Sleepy", "wait.time") < took["Sleepy"]
    # Looked at from outside, as often as the machine lets it.
    assert 350e6 < of("a long wait", "wait.time") < took["a long wait"] + 150e6
    assert of("a long wait", "cpu.time") < 100e6
    assert of("busy", "cpu.time") > 250e6
    assert of("busy", "wait.time") < 150e6


@pytest.fixture(scope="module")
def interruptions(tmp_path_factory):
    path = tmp_path_factory.mktemp("interruptions") / "interruptions"
    subprocess.run(["gcc", "-O2", "-o", path, PROGRAMS / "interruptions.c", "-lpthread"], check=True)
    return path


def test_no_system_call_is_interrupted(record, interruptions):
    """The clock of a waiting thread stands still. One call in thousands may be about to begin when it
    strikes; without plumb there is none."""
    alone = run_command(interruptions)
    assert alone.returncode == 0
    made = record(interruptions, options=("--cpu=250", "--no-gpu"))
    assert made.returncode == 0

    def total(text):
        return sum(int(line.split()[1]) for line in text.splitlines())
    calls = 4 * 120 * 5
    assert total(alone.stdout) == 0
    assert total(made.stdout) <= calls // 500
    assert made.report(*METRIC, "--by", "thread")["rows"]


def test_events_go_with_the_samples(record, tmp_path):
    program = tmp_path / "faults.py"
    program.write_text(
        "import mmap, time\n"
        "def touch():\n"
        "    end = time.thread_time() + 0.8\n"
        "    while time.thread_time() < end:\n"
        "        area = mmap.mmap(-1, 4 << 20)\n"
        "        for i in range(0, 4 << 20, 4096): area[i] = 1\n"
        "        area.close()\n"
        "touch()\n")
    made = record(sys.executable, program,
                  options=("--cpu=250", "--events", "page-faults,context-switches", "--no-gpu"))
    rows = made.report("--by", "python", "--top", "0", "--metric", "cpu.page_faults")["rows"]
    touch, = [row for row in rows if row["name"] == "touch"]
    assert touch["inclusive"]["cpu.page_faults"]["sum"] > 1000


def test_an_event_that_is_not_there_is_said(record):
    made = record(sys.executable, "-c", "x = [i for i in range(3000000)]",
                  options=("--cpu=250", "--events", "unicorns", "--no-gpu"))
    assert "events.off" in json.dumps(made.report(*METRIC, "--by", "thread"))
