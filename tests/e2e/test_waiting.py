# SPDX-License-Identifier: Apache-2.0
"""Where threads wait outside operators (`plumb run --cpu`): Python lines read from outside the process."""
import json
import os
import shutil
import subprocess
import sys

import pytest
from conftest import PLUMB, ROOT, clean_environment, run_command
from plumbtest import PROGRAMS
from test_mock_gpu import run_profiled
from test_python_walker import matrix

SUPPORTED = ["3.9", "3.10", "3.11", "3.12", "3.13", "3.14"]
# plumb meets Python when an extension module is loaded (ctypes, in the programs here), or by chance at a
# sample.
METRIC = ("--metric", "wait.time")
OPTIONS = ("--cpu", "--no-gpu")
# How long a sleep takes, and what else waits (a program that is read from disk), only the program knows: it measures itself,
# and no test expects less than its sleeps or more than it measured.
AWAY = """
import os, time
took = {}
def away():
    "ns that this thread, the main one, was not on a processor since its process began."
    ticks = int(open("/proc/self/stat").read().rpartition(")")[2].split()[19])
    return int((time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK") - time.thread_time()) * 1e9)
def timed(name, function, *arguments):
    before = away()
    function(*arguments)
    took[name] = took.get(name, 0) + away() - before
def computes(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: pass
"""
LATE = 0.1e9  # a look that a busy machine delays gives the time since the one before to the line that it finds


def waiting(recording, by="python"):
    """{name: ns of waiting under it, inclusive}."""
    found = {}
    for row in recording.report("--by", by, "--top", "0", *METRIC)["rows"]:
        ns = row["inclusive"].get("wait.time", {}).get("sum", 0)
        name = row["name"].rpartition(".")[2]
        found[name] = found.get(name, 0) + ns
    return found


def contexts(recording):
    """Every context with waiting of its own: (path of (kind, name, file, line), ns)."""
    rows = {row["id"]: row for row in
            recording.report("--by", "context", "--top", "0", *METRIC)["contexts"]}
    for row in rows.values():
        ns = row["exclusive"].get("wait.time", {}).get("sum", 0)
        path = []
        while ns and row["parent"] is not None and row["id"]:
            path.append((row["kind"], row["name"], os.path.basename(row["file"] or ""), row["line"]))
            row = rows[row["parent"]]
        if ns:
            yield path[::-1], ns


def samples(recording):
    rows = [row for row in recording.report(*METRIC, "--by", "thread")["ledger"]
            if row["source"] == "wait.sample"]
    return {key: sum(row[key] or 0 for row in rows) for key in ("received", "attributed", "dropped")}


def test_nothing_is_interrupted_by_looks(record, tmp_path):
    """A program that hardly computes is looked at and gets no signal: no call of it ever returns early."""
    source = tmp_path / "waits.c"
    source.write_text(r"""
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>
int main(void) {
	struct timespec now, wait = { 0, 2000000 };
	unsigned interrupted = 0;
	do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now); while (now.tv_nsec < 30000000);
	for (int i = 0; i < 300; i++) {
		interrupted += nanosleep(&wait, NULL) && errno == EINTR;
		interrupted += poll(NULL, 0, 1) < 0;
	}
	printf("%u\n", interrupted);
}""")
    subprocess.run(["gcc", "-O2", "-o", tmp_path / "waits", source], check=True)
    assert run_command(tmp_path / "waits").stdout == "0\n"
    made = record(tmp_path / "waits", options=OPTIONS)
    assert made.stdout == "0\n"
    # No Python there: the time is told, and that its place is not known.
    assert waiting(made, "native")["[waiting]"] > 0.6e9
    assert samples(made)["received"] > 20


def test_measured_waiting_is_not_counted_twice(record, any_torch_python, tmp_path):
    program = tmp_path / "both.py"
    program.write_text(
        "import time, torch\n"
        "def away():\n"  # asleep, and not on a processor, for any reason
        "    on, ready, _ = map(int, open('/proc/thread-self/schedstat').read().split())\n"
        "    now = time.monotonic_ns()\n"
        "    return now - on - ready, now - on\n"
        "took = {}\n"
        "def timed(name, function, *arguments):\n"
        "    before = away()\n"
        "    function(*arguments)\n"
        "    took[name] = [old + new - start for old, new, start in\n"
        "                  zip(took.get(name, (0, 0)), away(), before)]\n"
        "class Sleepy(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(context, x):\n"
        "        time.sleep(0.04)\n"
        "        return x * 1\n"
        "    @staticmethod\n"
        "    def backward(context, gradient): return gradient\n"
        "def outside(): time.sleep(0.03)\n"
        "def both():\n"
        "    for _ in range(15):\n"
        "        timed('Sleepy', Sleepy.apply, x)\n"
        "        timed('outside', outside)\n"
        "x = torch.ones(4)\n"
        "both()\n"
        "print(__import__('json').dumps(took))\n")
    made = record(any_torch_python, program, options=OPTIONS)
    truth, found = json.loads(made.stdout), waiting(made)
    found["Sleepy"] = waiting(made, "operator")["Sleepy"]
    # An operator's own account is wall less CPU time: what it was ready to run counts there.
    for name, (asleep, away) in truth.items():
        assert 0.9 * asleep < found[name] < 1.1 * away + 0.03e9, (name, found, truth)
    assert found["both"] < 1.02 * (found["Sleepy"] + found["outside"])


def test_pauses_are_left_out(record, tmp_path):
    program = tmp_path / "pauses.py"
    program.write_text(
        AWAY + "import ctypes, sys\n"
        f"sys.path.insert(0, {str(ROOT / 'python')!r})\n"
        "import plumb\n"
        "def seen(): time.sleep(0.4)\n"
        "def unseen(): time.sleep(0.6)\n"
        "computes(0.05)\n"
        "timed('seen', seen)\nplumb.stop()\nunseen()\nplumb.start()\ntimed('seen', seen)\n"
        "print(took['seen'])\n")
    made = record(sys.executable, program, options=OPTIONS)
    found = waiting(made)
    assert 0.72e9 < found["seen"] < int(made.stdout) + LATE
    assert found.get("unseen", 0) < 0.05e9


@pytest.mark.parametrize("python", matrix(["3.9", "3.12", "3.13"]))
def test_children(record, python, tmp_path):
    """Forked and spawned, each waits at a line of its own; the parent where it joins them."""
    program = tmp_path / "children.py"
    program.write_text(
        AWAY + "import ctypes, multiprocessing\n"
        "def forked():\n"
        "    computes(0.04)\n    timed('forked', time.sleep, 0.5)\n    print('forked', took['forked'], flush=True)\n"
        "def spawned():\n"
        "    computes(0.04)\n    timed('spawned', time.sleep, 0.5)\n    print('spawned', took['spawned'], flush=True)\n"
        "def joins(process):\n"
        "    process.start()\n    process.join()\n"
        "if __name__ == '__main__':\n"
        "    computes(0.04)\n"
        "    joins(multiprocessing.get_context('fork').Process(target=forked))\n"
        "    joins(multiprocessing.get_context('spawn').Process(target=spawned))\n")
    made = record(python, program, options=OPTIONS)
    assert made.returncode == 0, made.stderr
    found, truth = waiting(made), dict(map(str.split, made.stdout.splitlines()))
    for name in ("forked", "spawned"):
        assert 0.44e9 < found[name] < int(truth[name]) + LATE
    assert found["joins"] > 0.95e9


def test_a_program_that_becomes_another(record, tmp_path):
    """The region of the one before is not looked at any more."""
    program = tmp_path / "becomes.py"
    program.write_text(
        AWAY + "import ctypes, sys\n"
        "def first():\n    time.sleep(0.3)\n"
        "def second():\n    time.sleep(0.5)\n"
        "computes(0.04)\n"
        "if len(sys.argv) > 1: timed('second', second); print(sys.argv[1], took['second'], away())\n"
        "else: timed('first', first); os.execv(sys.executable, [sys.executable, __file__, str(took['first'])])\n")
    made = record(sys.executable, program, options=OPTIONS)
    found, (first, second, whole) = waiting(made), map(int, made.stdout.split())
    assert 0.21e9 < found["first"] < first + LATE and 0.41e9 < found["second"] < second + LATE
    assert sum(ns for _, ns in contexts(made)) < whole + LATE


@pytest.mark.parametrize("python", matrix(SUPPORTED))
def test_a_thread_state_that_is_gone_is_not_believed(record, python, tmp_path):
    """A C thread's thread state is freed when its callback returns, and other threads get the memory."""
    library = tmp_path / "stale.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, PROGRAMS / "stale_state.c", "-lpthread"],
                   check=True)
    program = tmp_path / "stale.py"
    program.write_text(
        "import ctypes, sys, threading, time\n"
        "library = ctypes.CDLL(sys.argv[1])\n"
        "def computes(seconds):\n"
        "    end = time.thread_time() + seconds\n"
        "    while time.thread_time() < end: pass\n"
        "def called_back():\n"
        "    computes(0.06)\n"
        "    done.set()\n"
        "def waits(): stop.wait()\n"
        "done, stop = threading.Event(), threading.Event()\n"
        "callback = ctypes.CFUNCTYPE(None)(called_back)\n"
        "library.start(callback)\n"
        "done.wait()\n"
        "threads = [threading.Thread(target=waits) for _ in range(20)]\n"
        "[t.start() for t in threads]\n"
        "library.finish()\n"
        "stop.set()\n"
        "[t.join() for t in threads]\n")
    made = record(python, program, library, options=OPTIONS)
    assert made.returncode == 0, made.stderr
    found = {}
    for path, ns in contexts(made):
        found[path[-1][1] if path[0][0] == "native" else path[0][0]] = ns
    assert found["[waiting]"] > 0.5e9
    # The others did not compute enough to be known; so nothing of theirs is there to be seen.
    assert "waits" not in waiting(made)


@pytest.mark.skipif(not shutil.which("setpriv"), reason="no setpriv here")
def test_memory_that_may_not_be_read_is_said(tmp_path):
    program = tmp_path / "private.py"
    program.write_text(
        "import ctypes, time\n"
        "ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n"
        "end = time.thread_time() + 0.05\n"
        "while time.thread_time() < end: pass\n"
        "time.sleep(0.5)\n")
    path = tmp_path / "run.plumb"
    command = [PLUMB, "run", "-o", path, *OPTIONS, "--", sys.executable, program]
    if os.geteuid() == 0:
        command = ["setpriv", "--inh-caps=-sys_ptrace", "--bounding-set=-sys_ptrace", *command]
    done = subprocess.run(list(map(str, command)), cwd=tmp_path, env=clean_environment(),
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    report = run_command(PLUMB, "report", path, "--json", "--by", "native", *METRIC)
    assert "waiting.off" in report.stdout
    rows = {row["name"]: row for row in json.loads(report.stdout)["rows"]}
    assert rows["[waiting]"]["exclusive"]["wait.time"]["sum"] > 0.4e9


@pytest.mark.parametrize("python", matrix(["3.9", "3.10", "3.11", "3.12", "3.13"]))
def test_an_interpreter_inside_another(record, python, tmp_path):
    """The thread state is the one that the interpreter itself names: the inner's or the outer's."""
    program = tmp_path / "inner.py"
    program.write_text(
        AWAY + "import ctypes\n"
        "try: import _interpreters as interpreters\n"
        "except ImportError: import _xxsubinterpreters as interpreters\n"
        "computes(0.04)\n"
        "def runs():\n"
        "    interpreters.run_string(interpreters.create(), 'import time; time.sleep(0.5)')\n"
        "runs()\n"
        "print(away())\n")
    made = record(python, program, options=OPTIONS)
    assert made.returncode == 0, made.stderr
    assert 0.4e9 < sum(ns for _, ns in contexts(made)) < int(made.stdout) + LATE
    assert not samples(made)["dropped"]
    found = waiting(made)
    assert max(ns for name, ns in found.items() if name in ("runs", "<module>")) > 0.4e9


def test_a_driver_call_is_counted_once(tmp_path):
    """Outside operators, too: the call measures itself, and looks leave it to that."""
    made = run_profiled(tmp_path, "sleep:100", "wait:context:500000000", "sleep:200",
                        options=("--cpu",))
    stats = made.profile._stats("wait.time")[0]
    calls = {made.node(number).name: stat[0] for number, stat in stats.items()}
    whole = made.profile.run.wall_ns  # 0.5 s in the call, 0.3 s asleep, and what the machine makes of it
    assert 0.4e9 < calls["cuCtxSynchronize"] < whole - 0.3e9
    assert 0.15e9 < calls.get("[waiting]", 0) < whole - 0.5e9
