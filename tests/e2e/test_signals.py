# SPDX-License-Identifier: Apache-2.0
"""`plumb run --cpu` and a program that has its own business with signals, little stack, or a debugger: the program does
what it does without plumb, and CPU time that was not sampled is said."""
import json
import platform
import re
import shutil
import subprocess
import sys

import pytest
from conftest import run_command
from plumbtest import PROGRAMS

METRIC = ("--metric", "cpu.time")
HANDLER_FRAME = 512  # PLUMB_HANDLER_FRAME
OURS = 63            # the signal that is taken first


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    for name in "small_stacks", "signals_used", "signal_stacks":
        subprocess.run(["gcc", "-O2", "-o", folder / name, PROGRAMS / f"{name}.c", "-lpthread"], check=True)
    return folder


def run_alone(*command):
    """What the program does without plumb, for which it need not compute for long."""
    return run_command(*command, env={"COMPUTES": "0.05"})


def cpu_time(made):
    """{function: ns} of the program's own functions, and of what plumb puts in brackets."""
    rows = made.report("--by", "native", "--top", "0", *METRIC)["rows"]
    return {row["name"]: row["exclusive"].get("cpu.time", {}).get("sum", 0) for row in rows}


def dropped(made, source="cpu.sample"):
    """{fate: count} of a source's drops; the rows add up."""
    row, = [row for row in made.report(*METRIC)["ledger"] if row["source"] == source]
    fates = {fate["reason"]: fate["count"] for fate in row["fates"] if fate["dropped"]}
    assert row["dropped"] == sum(fates.values())
    assert row["received"] >= (row["attributed"] or 0) + row["dropped"]
    return fates


# ---- little stack ----

@pytest.mark.parametrize("what", ["alternate", "coroutines", "tiny", "crowded"])
def test_small_stacks(record, programs, what):
    alone = run_alone(programs / "small_stacks", what)
    assert alone.returncode == 0, alone.stdout
    made = record(programs / "small_stacks", what, options=("--cpu=1000",))
    assert made.returncode == 0, (made.stdout, made.stderr)
    times = cpu_time(made)
    whole = sum(times.values())
    if what in ("alternate", "coroutines"):
        assert times["compute"] > 0.8 * whole and not dropped(made)
    elif what == "tiny":
        # The kernel would end the program when our signal came.
        assert times["[not sampled]"] > 0.8 * whole
        assert set(dropped(made)) == {"its thread's signal stack is too small"}
    else:
        # The time that a handler spends on the alternate stack comes with the next sample, or is said.
        assert whole > 0.3e9


def test_the_handler_needs_no_more_stack_than_it_says(record, programs):
    """Beside what the kernel pushes for any signal; the first sample of a process makes its region."""
    made = record(programs / "small_stacks", "alternate", options=("--cpu=1000", "--mode", "full", "--trace"))
    used, _, kernel = map(int, re.search(r"used (\d+) of (\d+), kernel (\d+)", made.stdout).groups())
    assert 0 < used <= (kernel or 3584) + HANDLER_FRAME


# ---- code that needs its stack for itself ----

@pytest.mark.parametrize("what", ["below", "pointer"])
def test_signals_do_not_touch_a_threads_own_stack(record, programs, what):
    """Code that keeps data below its stack pointer, or that points it elsewhere, on two threads."""
    if platform.machine() not in ("x86_64", "aarch64"):
        pytest.skip("the program's assembly is for x86-64 and AArch64")
    made = record(programs / "signal_stacks", what, options=("--cpu=1000",))
    assert (made.returncode, made.stdout) == (0, "intact\n"), made.stderr
    times = cpu_time(made)
    assert times[f"compute_{what}"] > 0.8 * sum(times.values()) > 0.4e9
    assert not dropped(made)


@pytest.mark.parametrize("what", ["shown", "handlers", "threads"])
def test_the_program_sees_its_own_signal_stacks_only(record, programs, what):
    alone = run_command(programs / "signal_stacks", what)
    assert alone.returncode == 0, alone.stdout
    made = record(programs / "signal_stacks", what, options=("--cpu=1000",))
    assert (made.returncode, made.stdout) == (0, alone.stdout), made.stderr
    if what == "shown":
        assert "at first: none, flags 2, 0 bytes\n" in made.stdout and "another" not in made.stdout


def test_a_forked_child_with_a_tiny_signal_stack_is_not_sampled(record, programs):
    made = record(programs / "signal_stacks", "child", options=("--cpu=1000",))
    assert made.returncode == 0 and "child: 0\n" in made.stdout
    assert cpu_time(made)["[not sampled]"] > 0.2e9
    assert "its thread's signal stack is too small" in dropped(made)


@pytest.mark.parametrize("command", [["uv", "--version"], ["rustc", "--version"], ["cargo", "--version"]],
                         ids=["uv", "rustc", "cargo"])
def test_rust_programs(record, command):
    if not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is not installed")
    alone = run_command(*command)
    made = record(*command, options=("--cpu=4000",))
    assert (made.returncode, made.stdout) == (alone.returncode, alone.stdout)


def test_a_process_that_computes_nothing_leaves_no_region(record, tmp_path):
    made = record("sh", "-c", "true; true", options=("--cpu=10",))
    assert made.returncode == 0 and "nothing was captured" in made.stderr


# ---- the program's own signals ----

@pytest.mark.parametrize("what", [["masked"], ["handles", OURS], ["waits", OURS], ["waits-all"], ["descriptor"],
                                  ["defaults"], ["handles", 40], ["waits", 40]], ids=lambda w: "-".join(map(str, w)))
def test_programs_that_use_signals_are_sampled_all_the_same(record, programs, what):
    alone = run_alone(programs / "signals_used", *what)
    assert alone.returncode == 0
    made = record(programs / "signals_used", *what, options=("--cpu=250",))
    assert (made.returncode, made.stdout) == (0, alone.stdout)
    times = cpu_time(made)
    assert times["work"] > 0.8 * sum(times.values()) > 0.3e9
    assert not dropped(made)


def test_a_signal_that_nobody_handles_ends_the_program(record, programs):
    alone = run_alone(programs / "signals_used", "kill", OURS)
    made = record(programs / "signals_used", "kill", OURS, options=("--cpu=250",))
    assert alone.returncode == -OURS and made.returncode == -OURS


@pytest.mark.parametrize("what", ["blocked", "blocked-thread"])
def test_time_of_threads_that_block_the_signal_is_said(record, programs, what):
    made = record(programs / "signals_used", what, options=("--cpu",))
    assert "neither PyTorch nor a GPU" not in made.stderr and "nothing was dropped" not in made.stderr
    assert re.search(r"0\.[45]\d s of CPU time were not sampled: its thread blocked plumb's signal", made.stderr)
    assert 0.4e9 < cpu_time(made)["[not sampled]"] < 0.7e9
    lost, = dropped(made).items()
    assert lost[0] == "its thread blocked plumb's signal" and 40 <= lost[1] <= 70


def test_time_of_threads_that_the_c_library_did_not_make_is_said(record, programs):
    made = record(programs / "signals_used", "bare-thread", options=("--cpu",))
    assert made.returncode == 0 and "its thread was not made by pthread_create" in made.stderr
    assert cpu_time(made)["[not sampled]"] > 0.25e9
    assert set(dropped(made)) == {"its thread was not made by pthread_create"}


def test_a_program_that_takes_all_signals(record, programs):
    alone = run_alone(programs / "signals_used", "handles-all")
    made = record(programs / "signals_used", "handles-all", options=("--cpu=250",))
    assert (made.returncode, made.stdout) == (alone.returncode, alone.stdout)
    assert re.search(r"CPU time was sampled for the first \d+\.\d\d s only: the program uses all real-time signals",
                     made.stderr)
    times = cpu_time(made)
    assert times["work"] > 0.1e9 and 0.4e9 < times["[not sampled]"] < 0.7e9
    assert set(dropped(made)) == {"the program uses all real-time signals"}


def test_python_sees_no_handler_of_ours(record, torch_python):
    code = "import signal; print([n for n in signal.valid_signals() if signal.getsignal(n) is None])"
    alone = run_command(torch_python, "-c", code)
    assert record(torch_python, "-c", code, options=("--cpu=100",)).stdout == alone.stdout


def test_paused_time_is_not_plumbs_own(record, programs, tmp_path):
    program = tmp_path / "pauses.py"
    program.write_text(
        "import ctypes, time\n"
        "own = ctypes.CDLL(None)\n"
        "def computes(seconds):\n"
        "    end = time.thread_time() + seconds\n"
        "    while time.thread_time() < end: pass\n"
        "computes(0.2)\nown.plumb_stop()\ncomputes(0.6)\nown.plumb_start()\ncomputes(0.2)\n")
    made = record(sys.executable, program, options=("--cpu=250", "--no-gpu"))
    assert made.returncode == 0
    contexts = made.report("--by", "context", "--top", "0", *METRIC)["contexts"]
    assert sum(row["exclusive"].get("cpu.time", {}).get("sum", 0) for row in contexts
               if row["name"] in ("[plumb]", "[not sampled]")) < 0.1e9


# ---- debuggers ----

@pytest.mark.parametrize("command", [["gdb", "-q", "-batch", "-ex", "run", "--args"],
                                     ["strace", "-f", "-o", "/dev/null"]], ids=["gdb", "strace"])
@pytest.mark.parametrize("shell", [False, True], ids=["itself", "child"])
def test_a_traced_process_gets_no_signal(record, programs, command, shell):
    if not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is not installed")
    program = [programs / "signals_used", "masked"]
    if shell:
        program = ["sh", "-c", " ".join(map(str, program)) + "; true"]
    alone = run_alone(*command, *program)
    if alone.returncode or "ptrace" in alone.stderr:
        pytest.skip("tracing is not allowed here")
    made = record(*command, *program, options=("--cpu=250",))
    assert made.returncode == 0 and "SIG" not in made.stdout + made.stderr
    if command[0] == "strace" or not shell:  # gdb lets children go
        assert "were not sampled: a debugger traced the process" in made.stderr
        assert cpu_time(made)["[not sampled]"] > 0.4e9
        assert "a debugger traced the process" in dropped(made)


# ---- what grows ----

PATHS = """
import sys, time
def calls(depth):
    return sorted([3, 1, 2], key=lambda x: x) if not depth else [calls(depth - 1), str(depth), {depth: repr(depth)}]
end = time.thread_time() + float(sys.argv[1])
while time.thread_time() < end:
    calls(5)
"""


def test_native_contexts_of_samples_are_bounded(record, any_torch_python, tmp_path):
    """However long it runs. A sample whose path would be new stands where its path is known."""
    program = tmp_path / "paths.py"
    program.write_text(PATHS)
    most = 100
    made = record(any_torch_python, program, "1.5", options=("--cpu=1000", "--mode", "full", "--no-gpu"),
                  env={"PLUMB_NATIVE_CONTEXTS": str(most)})
    report = made.report("--by", "context", "--top", "0", *METRIC)
    native = [row for row in report["contexts"] if row["kind"] == "native" and not row["name"].startswith("[")]
    assert most / 4 < len(native) <= most
    samples, = [row for row in report["ledger"] if row["source"] == "cpu.sample"]
    walks, = [row for row in report["ledger"] if row["source"] == "native"]
    assert not samples["dropped"] and not walks["dropped"]
    assert "more different ones than plumb keeps; counted together" in json.dumps(walks)
    # Nothing of the time is lost.
    whole = [row for row in report["contexts"] if row["parent"] is None][0]["inclusive"]["cpu.time"]["sum"]
    assert whole > 1.3e9


GROWS = """
import glob, os, struct, time
def calls(depth):
    return sorted([3, 1, 2], key=lambda x: x) if not depth else [calls(depth - 1), str(depth), {depth: repr(depth)}]
sizes = []
for step in range(6):
    end = time.thread_time() + 0.4
    while time.thread_time() < end:
        calls(5)
    region, = glob.glob(os.environ["PLUMB_FOLDER"] + "/%d-*.region" % os.getpid())
    with open(region, "rb") as file:
        sizes.append(struct.unpack_from("<Q", file.read(64), 56)[0])
print(*sizes)
"""


def test_a_region_stops_growing(record, any_torch_python, tmp_path):
    """What it takes after each step of the same work, once samples have made what contexts they may."""
    program = tmp_path / "grows.py"
    program.write_text(GROWS)
    made = record(any_torch_python, program, options=("--cpu=1000", "--mode", "full", "--no-gpu"),
                  env={"PLUMB_NATIVE_CONTEXTS": "200"})
    sizes = [int(word) for word in made.stdout.split()]
    assert len(sizes) == 6 and sizes[-1] <= sizes[2] + 65536, sizes  # the rest of a chunk at most


# ---- what threads without a record lose ----

THREADS = """
import threading, torch
torch.set_num_threads(1)
x = torch.ones(4)
barrier = threading.Barrier(64)
def work():
    barrier.wait()
    for _ in range(50): torch.add(x, x)
    barrier.wait()
threads = [threading.Thread(target=work) for _ in range(64)]
[t.start() for t in threads]; [t.join() for t in threads]
"""


def test_operators_of_threads_without_a_record_are_counted(record, any_torch_python, tmp_path):
    program = tmp_path / "threads.py"
    program.write_text(THREADS)

    def operators(limit):
        made = record(any_torch_python, program, options=("--limit", limit, "--no-gpu"), name=f"{limit}.plumb")
        assert made.returncode == 0
        row, = [row for row in made.report("--by", "operator")["ledger"] if row["source"] == "operator"]
        return row["received"], row["dropped"], made.stderr
    received, lost, _ = operators("256M")
    assert received >= 64 * 50 and not lost
    short, lost, said = operators("1M")
    assert short == received and 0 < lost < received
    assert "operator calls" in said and "the region is full" in said
