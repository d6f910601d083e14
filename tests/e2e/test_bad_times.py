# SPDX-License-Identifier: Apache-2.0
"""Bad times: no space, full regions, programs that crash, are killed or close what is open, damaged
profiles. Nothing that was recorded is lost, nothing crashes, and the exit code is the program's."""
import json
import os
import pty
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
from conftest import PLUMB, run_command, torch_pythons
from plumbtest import (LIMIT_S, PROGRAMS, Made, calls_of_processes, check_sums, environment_for_programs,
                       recorded, run_program)

WORK = "work:@work > aten::neg"


def check_work(made, count=10):
    """All operators that the program ran before its end are there."""
    assert made.tree("work") == {made.expand(WORK): count}
    check_sums(made)


# ---- how a program ends ----

ENDINGS = {  # how: exit code, what it printed
    "return": (0, "begun\nended\n"),
    "exit": (4, "begun\n"),
    "raise": (1, "begun\n"),
    "_exit": (5, "begun\n"),
    "abort": (-signal.SIGABRT, "begun\n"),
    "segfault": (-signal.SIGSEGV, "begun\n"),
    "kill": (-signal.SIGKILL, "begun\n"),
    "terminate": (-signal.SIGTERM, "begun\n"),
    "interrupt": (-signal.SIGINT, "begun\n"),
    "exec": (11, "begun\n"),
}


@pytest.mark.parametrize("how", ENDINGS)
def test_ending(any_torch_python, how, tmp_path):
    code, output = ENDINGS[how]
    made = run_program(any_torch_python, "endings.py", how, 300, folder=tmp_path)
    assert (made.done.returncode, made.done.stdout) == (code, output)
    check_work(made, 300)
    assert made.profile.run.exit_code == (code if code >= 0 else 128 - code)
    assert os.listdir(tmp_path) == ["run.plumb"]  # the run folder is gone
    if how == "raise":
        assert "ZeroDivisionError" in made.done.stderr


def test_ending_inside_an_operator(torch_python, tmp_path):
    made = run_program(torch_python, "endings.py", "inside", folder=tmp_path)
    assert made.done.returncode == 6
    names = [node.name for node in made.profile.operators]
    assert "Ends" in names and "aten::neg" in names
    operators = made.ledger("operator")
    assert operators["received"] == operators["attributed"] + 1  # the one it was in


def test_closing_every_descriptor(any_torch_python, tmp_path):
    mine = tmp_path / "mine"
    made = run_program(any_torch_python, "endings.py", "close", 500, mine, folder=tmp_path)
    assert made.done.returncode == len("mine\n")
    assert mine.read_text() == "mine\n"
    check_work(made, 500)


@pytest.mark.parametrize("how", ["daemons", "daemons_exit", "daemons_inside"])
def test_daemon_threads_at_exit(torch_python, how, tmp_path):
    """Threads run operators while the interpreter ends: in a program, and in children of it, which spare starts of PyTorch."""
    children = 5 if torch_python == torch_pythons()[0] else 2
    codes = {5 if how == "daemons_exit" else 0}
    if how == "daemons":
        # Up to Python 3.13 a daemon thread that wants to go on in Python is unwound through PyTorch's
        # C++, which ends many such programs with SIGABRT, plumb or not.
        plain = run_program(torch_python, "endings.py", how, folder=tmp_path, plumb=False)
        assert plain.done.returncode in (0, -signal.SIGABRT)
        codes.add(-signal.SIGABRT if plain.done.returncode < 0 else 0)
    made = run_program(torch_python, "endings.py", f"{how}*{children}", folder=tmp_path)
    printed, = [line for line in made.done.stdout.splitlines() if line.startswith("[")]
    ends = [made.done.returncode, *json.loads(printed)]
    assert len(ends) == children + 1 and set(ends) <= codes, made.done.stderr
    assert made.by_track("work") == {made.expand(WORK): [10] * len(ends)}
    assert len(calls_of_processes(made, "aten::exp")) == (0 if how == "daemons_inside" else len(ends))
    received, attributed = (count_by_process(made, fate) for fate in ("received", "attributed"))
    assert len(received) == len(ends)
    assert all(attributed[process] <= received[process] <= attributed[process] + 6 for process in received)


def count_by_process(made, fate):
    """{process: operators of that FATE} of the ledger."""
    return {row.process: row.count for row in made.profile.ledger if (row.source, row.fate) == ("operator", fate)}


# ---- signals ----

def start(python, *arguments, folder, **more):
    """Starts `plumb run` on endings.py; its standard output is a pipe."""
    command = [PLUMB, "run", "-o", folder / "run.plumb", "--", python, PROGRAMS / "endings.py",
               *arguments]
    more.setdefault("stdout", subprocess.PIPE)
    return subprocess.Popen([str(word) for word in command], cwd=folder, stdin=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True, env=environment_for_programs(),
                            **more)


def finish(process, folder):
    """Waits for it and gives what it made."""
    output, errors = process.communicate(timeout=LIMIT_S)
    done = subprocess.CompletedProcess(process.args, process.returncode, output, errors)
    return Made(done, PROGRAMS / "endings.py", folder, folder / "run.plumb")


def test_signal_to_plumb_reaches_the_program(any_torch_python, tmp_path):
    process = start(any_torch_python, "sleep", folder=tmp_path)
    for expected in ("begun\n", "ready\n"):
        assert process.stdout.readline() == expected
    process.send_signal(signal.SIGTERM)
    made = finish(process, tmp_path)
    assert made.done.returncode == -signal.SIGTERM
    check_work(made)


def test_interrupt_from_the_terminal(any_torch_python, tmp_path):
    """Ctrl-C reaches plumb and the program, once each; the program goes on in its handler."""
    command = [str(word) for word in (PLUMB, "run", "-o", tmp_path / "run.plumb", "--",
                                      any_torch_python, PROGRAMS / "endings.py", "wait")]
    pid, terminal = pty.fork()
    if not pid:
        try:
            os.chdir(tmp_path)
            os.execve(command[0], command, environment_for_programs(TERM="dumb"))
        finally:
            os._exit(127)
    output, deadline = b"", time.monotonic() + LIMIT_S
    try:
        while b"ready" not in output:
            assert time.monotonic() < deadline, output
            output += os.read(terminal, 4096)
        os.write(terminal, b"\x03")
        while True:
            try:
                some = os.read(terminal, 4096)
            except OSError:  # the other side is closed
                break
            if not some:
                break
            output += some
    finally:
        os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9, output
    assert output.count(b"interrupted") == 1
    made = Made(subprocess.CompletedProcess(command, 9, "", output.decode()),
                PROGRAMS / "endings.py", tmp_path, tmp_path / "run.plumb")
    check_work(made)
    assert made.profile.run.exit_code == 9


def test_plumb_is_killed(any_torch_python, tmp_path):
    """The program goes on, and settle makes the profile of all it did."""
    alive = tmp_path / "alive"
    process = start(any_torch_python, "keep_on", 700, alive, folder=tmp_path)
    deadline = time.monotonic() + LIMIT_S
    while not (alive.exists() and alive.read_text()):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    pid = int(alive.read_text())
    process.kill()
    process.wait()
    alive.unlink()
    output, _ = process.communicate(timeout=LIMIT_S)  # ends when the program has
    assert output == "begun\nended\n"
    while os.path.exists(f"/proc/{pid}/exe"):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    folder, = [path for path in tmp_path.iterdir() if path.is_dir()]
    done = run_command(PLUMB, "settle", folder, "-o", tmp_path / "run.plumb")
    assert done.returncode == 0, done.stderr
    made = Made(done, PROGRAMS / "endings.py", tmp_path, tmp_path / "run.plumb")
    check_work(made, 700)
    assert made.profile.run.exit_code is None  # nobody saw how it ended


# ---- space ----

def check_losses(made, reason):
    """What did not find room is counted, and counts together with what did."""
    operators, values = made.ledger("operator"), made.ledger("value")
    assert operators["received"] >= 20000
    assert values["received"] == 2 * operators["received"]  # op.time and op.duration
    for source in ("operator", "value", "python", "region"):
        ledger = made.ledger(source)
        assert ledger.pop("received") == sum(ledger.values())
        assert made.reasons(source) == {reason: ledger.popitem()[1]}
    kept = [sum(stat[1] for stat in made.profile._stats(metric)[0].values())
            for metric in ("op.time", "op.duration")]
    assert sum(kept) == values["attributed"] > 0
    # What was kept is right: each context once, under its own name.
    known = {node.file for node in made.profile.of_kind("python")
             if (node.file or "").startswith("context_")}
    assert 100 < len(known) < 20000
    for node in made.profile.operators:
        if (node.parent.file or "").startswith("context_"):
            assert node.exclusive["op.duration"].count <= 1


def test_region_full(any_torch_python, tmp_path):
    made = run_program(any_torch_python, "endings.py", "contexts", 20000, folder=tmp_path,
                       options=["--limit", "1M", "--no-windows"])
    assert (made.done.returncode, made.done.stdout) == (0, "begun\nended\n")
    check_losses(made, "the region is full (raise --limit)")
    assert re.search(r"dropped .*the region is full", made.done.stderr)
    report = run_command(PLUMB, "report", made.path)
    assert report.returncode == 0, report.stderr


def test_region_full_for_new_threads(any_torch_python, tmp_path):
    """Threads that find no room at all: each of their operators is counted."""
    made = run_program(any_torch_python, "endings.py", "threads", 50, folder=tmp_path,
                       options=["--limit", "1M"])
    assert (made.done.returncode, made.done.stdout) == (0, "begun\nended\n")
    operators = made.ledger("operator")
    assert operators["region_full"] > 0 and operators["received"] >= 40 * 50
    assert sum(made.tree("work").values()) % 50 == 0


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 4 MB, where the test may mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder],
                                      stderr=subprocess.DEVNULL).returncode:
        pytest.skip("this user may not mount a small file system")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_no_space_for_the_region(any_torch_python, small_disk, tmp_path):
    made = run_program(any_torch_python, "endings.py", "fill", 20000, small_disk / "filled",
                       folder=tmp_path, options=["--folder", small_disk, "--no-windows"])
    assert (made.done.returncode, made.done.stdout) == (0, "begun\nended\n"), made.done.stderr
    check_losses(made, "no space left for the region")
    assert os.listdir(small_disk) == ["filled"]


def test_no_space_at_all(any_torch_python, small_disk, tmp_path):
    """Nothing can be recorded: the program runs as ever, and plumb says why there is nothing."""
    with open(small_disk / "filled", "wb", buffering=0) as file:
        with pytest.raises(OSError):
            while file.write(bytes(65536)):
                pass
    made = run_program(any_torch_python, "endings.py", "exit", folder=tmp_path,
                       options=["--folder", small_disk])
    said = [line for line in made.done.stderr.splitlines() if line.startswith("plumb: ")]
    if made.done.returncode == 4:
        assert made.done.stdout == "begun\n"
        assert any("nothing was captured" in line for line in said)
    else:  # it was not started, which is said, too
        assert made.done.stdout == ""
        assert "no space left" in said[-1].lower() and "was not started" in said[-1]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python calls take the C stack before 3.11")
def test_deeper_than_plumb_keeps(tmp_path):
    """The innermost frames are kept, marked as cut, and the ledger says so."""
    kept, depth = 131072, 140000
    made = run_program(torch_pythons()[0], "endings.py", "deep", depth, folder=tmp_path)
    assert made.done.returncode == 0, made.done.stderr
    neg, = [node for node in made.profile.operators if node.name == "aten::neg"]
    assert neg.depth == kept + 1
    assert neg.ancestors[-2].is_truncated  # the outermost of what is left
    assert made.steps(neg, "down")[-2:] == [made.expand("down:@bottom"), "aten::neg"]
    assert made.reasons("python") == {
        "deeper than plumb keeps; the innermost frames are kept": 2}


# ---- damaged profiles ----

@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return recorded(torch_pythons()[0], "endings.py", tmp_path_factory, "return", "50").path


def check_report(path, codes=(2,)):
    done = run_command(PLUMB, "report", path)
    assert done.returncode in codes, (done.returncode, done.stderr)
    if done.returncode:
        assert done.stdout == ""
        assert re.fullmatch(r"plumb: .*\n", done.stderr), done.stderr
        assert path.name in done.stderr
    return done.returncode


def test_truncated_profiles(good, tmp_path):
    data = good.read_bytes()
    short = tmp_path / "short.plumb"
    for size in {0, 1, 15, 16, 99, 100, 512, 4095, 4096, 4097, len(data) // 2, len(data) - 4096,
                 len(data) - 1}:
        short.write_bytes(data[:size])
        check_report(short)


def test_flipped_bits(good, tmp_path):
    """No crash wherever a bit flips; most places are noticed."""
    data, chance, codes = good.read_bytes(), random.Random(3), []
    bad = tmp_path / "flipped.plumb"
    places = [0, 5, 18, 19, 28, 60, 70, 100, 105] + [chance.randrange(len(data)) for _ in range(60)]
    for place in places:
        damaged = bytearray(data)
        damaged[place] ^= 1 << chance.randrange(8)
        bad.write_bytes(damaged)
        codes.append(check_report(bad, (0, 2)))
    assert codes[0] == 2
    page = bytearray(data)
    page[4096:8192] = chance.randbytes(4096)
    bad.write_bytes(page)
    check_report(bad)


def test_foreign_files(tmp_path):
    foreign = tmp_path / "foreign.plumb"
    for content in (b"", b"PLUMBRG\n", b"hello\n", b"SQLite format 3\0", bytes(8192),
                    random.Random(1).randbytes(8192)):
        foreign.write_bytes(content)
        check_report(foreign)
    foreign.write_bytes(b"{\"traceEvents\": []}")
    check_report(foreign, (3,))  # a trace of nothing
    foreign.unlink()
    database = sqlite3.connect(foreign)
    database.execute("CREATE TABLE contexts(id INTEGER)")
    database.commit()
    database.close()
    check_report(foreign)
    foreign.unlink()
    check_report(foreign, (2, 5))  # there is none
    foreign.mkdir()
    check_report(foreign, (2, 5))


def test_damaged_regions(any_torch_python, tmp_path):
    """A run folder with a damaged region beside a good one: settle names it and keeps the rest."""
    alive = tmp_path / "alive"
    process = start(any_torch_python, "keep_on", 50, alive, folder=tmp_path)
    deadline = time.monotonic() + LIMIT_S
    while not (alive.exists() and alive.read_text()):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    process.kill()
    alive.unlink()
    process.communicate(timeout=LIMIT_S)
    folder, = [path for path in tmp_path.iterdir() if path.is_dir()]
    region, = [path for path in folder.glob("*.region") if path.name != "run.region"]
    data = bytearray(region.read_bytes())
    shutil.copy(region, folder / "2-2.region")
    (folder / "1-1.region").write_bytes(b"not a region")
    chance = random.Random(5)
    for _ in range(200):
        data[chance.randrange(4096, 200000)] ^= 1 << chance.randrange(8)
    (folder / "3-3.region").write_bytes(data)
    path = tmp_path / "run.plumb"
    done = run_command(PLUMB, "settle", folder, "-o", path)
    assert done.returncode == 0, done.stderr
    assert "1-1.region" in done.stderr
    made = Made(done, PROGRAMS / "endings.py", tmp_path, path)
    assert made.tree("work")[made.expand(WORK)] >= 50
    assert made.ledger("process")["damaged"] >= 1


def test_a_process_that_cannot_make_a_region_leaves_word(any_torch_python, tmp_path):
    """A limit on file sizes, say: the program goes on, and plumb says why nothing was seen."""
    program = tmp_path / "limited.py"
    program.write_text("import torch\n"
                       "torch.ones(3).add_(1)\n"
                       "print('fine')\n")
    limited = 'ulimit -f 1024; exec "$@"'  # blocks of 512 or 1024 bytes
    done = subprocess.run([PLUMB, "run", "-o", str(tmp_path / "run.plumb"), "--", "sh", "-c", limited, "sh",
                           any_torch_python, str(program)], capture_output=True, text=True,
                          cwd=tmp_path, timeout=LIMIT_S)
    assert done.returncode == 0 and done.stdout == "fine\n"
    assert "recorded nothing" in done.stderr and "File too large" in done.stderr, done.stderr
    assert "could not be removed" not in done.stderr and not list(tmp_path.glob(".plumb*"))
