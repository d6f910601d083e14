# SPDX-License-Identifier: Apache-2.0
"""Every way in which a program makes processes becomes one profile, with each process's own operators."""
import json
import os
import signal
import socket
import subprocess
import time

import pytest
from conftest import PLUMB, ROOT, run_command, torch_version
from plumbtest import (PROGRAMS, Made, calls_of_processes, check_sums, environment_for_programs,
                       recorded, run_program)

PROGRAM = "processes.py"


def calls(made, name="aten::sin"):
    return sorted(calls_of_processes(made, name).values())


def runner(python, folder):
    def call(*arguments, **more):
        made = recorded(python, PROGRAM, folder, *arguments, **more)
        check_sums(made)
        return made
    return call


@pytest.fixture
def run(torch_python, tmp_path_factory):
    return runner(torch_python, tmp_path_factory)


@pytest.fixture
def run_any(any_torch_python, tmp_path_factory):
    """Where only processes count: how they are made and end is the same with each PyTorch."""
    return runner(any_torch_python, tmp_path_factory)


def only_attributed(made, processes):
    assert made.processes() == {"received": processes, "attributed": processes}


# ---- forks ----

def test_forks_of_forks(run):
    made = run("fork_idle")
    # The program 5 after each child; each child 3 and 3, its child 4.
    assert calls(made) == [4, 4, 6, 6, 10]
    only_attributed(made, 5)
    parents = {process.pid: process.ppid for process in made.profile.processes}
    top, = [pid for pid, ppid in parents.items() if ppid not in parents]
    children = [pid for pid, ppid in parents.items() if ppid == top]
    assert len(children) == 2
    assert sorted(parents[pid] for pid in parents if pid not in (top, *children)) == sorted(children)


def test_operators_that_are_open_at_a_fork_end_in_both_processes(run):
    made = run("fork_in_operator")
    parent, child = sorted(made.profile.processes, key=lambda process: process.start_ns)
    assert child.ppid == parent.pid
    assert calls_of_processes(made) == {parent.pid: 5, child.pid: 3}
    assert calls_of_processes(made, "aten::neg") == {parent.pid: 1, child.pid: 1}
    # The range and the function itself were begun once, and ended in both.
    assert calls_of_processes(made, "Forks") == {parent.pid: 1}
    assert calls_of_processes(made, "range") == {parent.pid: 1}
    elsewhere = [row for row in made.profile.ledger
                 if row.source == "operator" and row.fate == "ended_elsewhere"]
    assert [row.process for row in elsewhere] == [child.id]
    assert sum(row.count for row in elsewhere) >= 2
    only_attributed(made, 2)


def test_forks_beside_threads_that_run_operators(run):
    made = run("fork_with_threads")
    assert calls(made) == [1] + [7] * 20
    only_attributed(made, 21)
    assert len(calls(made, "aten::cos")) == 1  # of the parent's threads alone


def test_forks_in_a_signals_handler(run):
    made = run("fork_in_handler")
    assert made.done.stdout == "statuses {0}\n"
    assert calls(made)[:10] == [2] * 10
    only_attributed(made, 11)


def test_a_child_that_is_killed_loses_nothing(run_any):
    made = run_any("killed")
    assert calls(made) == [1, 7]
    only_attributed(made, 2)
    end, = [process for process in made.profile.processes
            if "without its exit handlers" in made.environment_of(process).get("plumb.end", "")]
    assert calls_of_processes(made)[end.pid] == 7


def test_a_zombie_is_no_living_process(run_any):
    made = run_any("zombie")
    assert calls(made) == [1, 7]
    assert "still runs" not in made.done.stderr


def test_three_hundred_children(run_any):
    """Each has a region as large as --limit on paper; on the disk they are small and go away."""
    made = run_any("many", "300")
    assert calls(made) == [1] * 300
    only_attributed(made, len(made.profile.processes))
    assert os.listdir(made.folder) == ["run.plumb"]
    assert f"{len(made.profile.processes)} processes" in made.done.stderr


# ---- pools ----

@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_process_pools(run_any, method):
    made = run_any("pool", method)
    assert sum(calls(made)) == 41
    # Workers take what they get; each of the program's eight tasks is five operators of one of them.
    counts = calls(made)
    assert counts[0] == 1 and all(count % 5 == 0 for count in counts[1:])
    tree = made.tree("work")
    assert tree[made.expand("work:@work > aten::sin")] == 41
    received = made.processes()
    assert received["received"] == received["attributed"]


def test_multiprocessing_pool(run_any):
    made = run_any("fork_pool")
    assert sum(calls(made)) == 40 and all(count % 5 == 0 for count in calls(made))


def test_data_loader_workers(run):
    made = run("loader")
    main, = [process for process in made.profile.processes
             if process.ppid not in {other.pid for other in made.profile.processes}]
    assert calls_of_processes(made) == {main.pid: 1}
    items = calls_of_processes(made, "aten::exp")
    assert main.pid not in items and sorted(items.values()) == [6, 6]
    assert made.tree("__getitem__")[made.expand("__getitem__:@item > aten::exp")] == 12
    assert {process.ppid for process in made.profile.processes if process.pid in items} == {main.pid}


# ---- other programs ----

def test_vfork_and_spawn_leave_the_parent_alone(run_any):
    made = run_any("vfork")
    assert calls(made) == [5]
    only_attributed(made, 1)
    assert not made.reasons("operator")


def test_programs_that_become_others(run_any):
    made = run_any("exec_chain")
    assert calls(made) == [12]  # of one process
    assert len(made.profile.processes) == 3
    only_attributed(made, 3)
    last = max(made.profile.processes, key=lambda process: process.start_ns)
    assert last.command.endswith("exec_chain 0") and last.exit_code == 0


def test_nested_shells(any_torch_python, tmp_path):
    program = PROGRAMS / PROGRAM
    line = (f"{any_torch_python} {program} one 3; sh -c '({any_torch_python} {program} one 4; true)'; "
            f"{any_torch_python} {program} one 5 & wait; exit 7")
    path = tmp_path / "run.plumb"
    done = run_command(PLUMB, "run", "-o", path, "--", "sh", "-c", line, cwd=tmp_path,
                       env=environment_for_programs())
    assert done.returncode == 7
    made = Made(done, program, tmp_path, path)
    assert calls(made) == [3, 4, 5]
    assert made.processes() == {"received": 3, "attributed": 3}
    assert made.profile.run.exit_code == 7


def test_a_child_that_outlives_the_program(any_torch_python, tmp_path):
    made = run_program(any_torch_python, PROGRAM, "outlives", tmp_path, folder=tmp_path)
    assert made.done.returncode == 0
    assert "still runs" in made.done.stderr
    finish = made.done.stderr.split("when it has ended: ")[1].splitlines()[0].split()
    until(lambda: (tmp_path / "ready").exists())
    (tmp_path / "go").touch()
    folder, = tmp_path.glob(".plumb-*.run")
    until(lambda: not any(b"outlives\0" + bytes(tmp_path) in line for line in command_lines()))
    done = run_command(PLUMB, *finish[1:], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    again = Made(made.done, made.program, tmp_path, made.path)
    assert calls(again) == [1, 5]
    assert not folder.exists()


def command_lines():
    for process in os.listdir("/proc"):
        if process.isdigit():
            try:
                with open(f"/proc/{process}/cmdline", "rb") as file:
                    yield file.read()
            except OSError:
                pass


def until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)


# ---- ranks ----

def by_rank(made):
    """{rank: calls of aten::sin}."""
    calls_of = calls_of_processes(made)
    return {process.rank: calls_of[process.pid] for process in made.profile.processes
            if process.pid in calls_of}



@pytest.fixture
def two_ranks(torch_python, tmp_path_factory):
    """Two ranks that a shell starts, as a launcher would."""
    key = (torch_python, "ranks")
    if key not in _made:
        folder = tmp_path_factory.mktemp("ranks")
        program = PROGRAMS / "ranks.py"
        environment = f"WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT={free_port()}"
        line = "".join(f"{environment} RANK={rank} LOCAL_RANK={rank} {torch_python} {program} & "
                       for rank in range(2)) + "wait"
        path = folder / "run.plumb"
        done = run_command(PLUMB, "run", "-o", path, "--", "sh", "-c", line, cwd=folder,
                           env=environment_for_programs(GLOO_SOCKET_IFNAME="lo"))
        assert done.returncode == 0, done.stderr
        _made[key] = Made(done, program, folder, path)
    return _made[key]


_made = {}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def test_ranks_are_a_dimension_of_the_profile(two_ranks):
    made = two_ranks
    assert "total 3.0" in made.done.stdout
    assert by_rank(made) == {0: 10, 1: 20}
    assert sorted(process.local_rank for process in made.profile.processes) == [0, 1]


def test_report_by_rank_and_by_process(two_ranks):
    made = two_ranks
    report = run_command(PLUMB, "report", made.path, "--by", "rank", "--metric", "op.calls",
                         "--json")
    data = json.loads(report.stdout)
    rows = {row["rank"]: row for row in data["rows"]}
    assert {row["name"] for row in data["rows"]} == {"rank 0", "rank 1"}
    assert all(row["kind"] == "rank" and row["pid"] is None for row in data["rows"])
    assert rows[1]["exclusive"]["op.calls"]["sum"] > rows[0]["exclusive"]["op.calls"]["sum"]
    assert [(rank["rank"], rank["processes"], rank["gpu_busy_ns"]) for rank in data["ranks"]] == \
        [(0, 1, None), (1, 1, None)]
    for rank in data["ranks"]:
        assert rank["op_time_ns"] == rows[rank["rank"]]["exclusive"]["op.time"]["sum"]
    assert data["total"]["sum"] == sum(row["exclusive"]["op.calls"]["sum"] for row in data["rows"])

    data = json.loads(run_command(PLUMB, "report", made.path, "--by", "process", "--json").stdout)
    pids = {process["pid"]: process["rank"] for process in data["processes"]}
    assert {row["pid"]: row["rank"] for row in data["rows"]} == pids
    for row in data["rows"]:
        assert row["name"].startswith(f"process {row['pid']} (rank {row['rank']}) ")
        assert row["name"].endswith("ranks.py")
    threads = json.loads(run_command(PLUMB, "report", made.path, "--by", "thread", "--json").stdout)
    assert {(row["pid"], row["rank"]) for row in threads["rows"]} == set(pids.items())
    assert all(f"of process {row['pid']} (rank {row['rank']})" in row["name"]
               for row in threads["rows"])


def test_summary_names_processes_and_ranks(two_ranks):
    stderr = two_ranks.done.stderr
    assert "; 2 processes" in stderr
    line, = [line for line in stderr.splitlines() if line.startswith("  ranks ")]
    assert line.startswith("  ranks     2; in operators ") and "above the mean" in line


def test_without_ranks_there_is_no_row(run_any):
    done = run_command(PLUMB, "report", run_any("fork_idle").path, "--by", "rank")
    assert done.returncode == 3 and "no ranks were recorded" in done.stderr


def launcher_works(python):
    """Debian's PyTorch 1.13 has a launcher that Python 3.11 breaks."""
    return torch_version(python) != (1, 13)


def test_torchrun_gives_one_profile(torch_python, tmp_path):
    if not launcher_works(torch_python):
        pytest.skip("this PyTorch's launcher does not work with its Python")
    path = tmp_path / "run.plumb"
    program = PROGRAMS / "ranks.py"
    done = run_command(PLUMB, "run", "-o", path, "--", torch_python, "-m", "torch.distributed.run",
                       "--nproc-per-node", "2", "--standalone", program, cwd=tmp_path,
                       env=environment_for_programs(GLOO_SOCKET_IFNAME="lo"))
    assert done.returncode == 0, done.stderr
    made = Made(done, program, tmp_path, path)
    assert by_rank(made) == {0: 10, 1: 20}
    assert os.listdir(tmp_path) == ["run.plumb"]


def test_plumb_under_torchrun_gives_profiles_that_settle_joins(torch_python, tmp_path):
    if not launcher_works(torch_python):
        pytest.skip("this PyTorch's launcher does not work with its Python")
    program = PROGRAMS / "ranks.py"
    done = run_command(torch_python, "-m", "torch.distributed.run", "--nproc-per-node", "2",
                       "--standalone", "--no-python", PLUMB, "run", "-o", tmp_path / "run.plumb",
                       "--", torch_python, program, cwd=tmp_path,
                       env=environment_for_programs(GLOO_SOCKET_IFNAME="lo"))
    assert done.returncode == 0, done.stderr
    parts = [tmp_path / f"run.plumb.{rank}" for rank in range(2)]
    joined = tmp_path / "joined.plumb"
    settled = run_command(PLUMB, "settle", *parts, "-o", joined)
    assert settled.returncode == 0, settled.stderr
    assert by_rank(Made(done, program, tmp_path, joined)) == {0: 10, 1: 20}


# ---- which processes ----

@pytest.mark.parametrize("follow, expected, left_out", [
    ("all", [4, 4, 6, 6, 10], 0),
    ("none", [10], 4),
    ("fork_idle$", [4, 4, 6, 6, 10], 0),
    ("^nothing like it$", [10], 4),
])
def test_follow(any_torch_python, tmp_path, follow, expected, left_out):
    made = run_program(any_torch_python, PROGRAM, "fork_idle", folder=tmp_path,
                       options=["--follow", follow])
    assert made.done.returncode == 0, made.done.stderr
    assert calls(made) == expected
    ledger = made.processes()
    assert ledger["attributed"] == len(expected)
    assert ledger.get("not_followed", 0) == left_out
    assert ledger["received"] == len(expected) + left_out


def test_follow_by_command_line(any_torch_python, tmp_path):
    program = PROGRAMS / PROGRAM
    path = tmp_path / "run.plumb"
    line = f"{any_torch_python} {program} one 3; {any_torch_python} {program} one 4; true"
    done = run_command(PLUMB, "run", "-o", path, "--follow", " one 4$", "--", "sh", "-c", line,
                       cwd=tmp_path, env=environment_for_programs())
    made = Made(done, program, tmp_path, path)
    assert calls(made) == [4]
    assert made.processes() == {"received": 2, "attributed": 1, "not_followed": 1}


# ---- parts of a run ----

def recorded_ns(made):
    return int(made.profile.environment.get("plumb.recorded_ns", -1))


def with_plumb_package():
    return {"PYTHONPATH": str(ROOT / "python")}


def test_the_program_records_parts_of_itself(torch_python, tmp_path):
    made = run_program(torch_python, PROGRAM, "pieces", folder=tmp_path,
                       environment=with_plumb_package())
    assert made.done.returncode == 0, made.done.stderr
    assert made.done.stdout.splitlines() == ["recording True", "stop True False",
                                             "start True True", "recording True"]
    assert calls(made) == [12, 20]
    assert not made.reasons("operator")
    assert 0 < recorded_ns(made) < made.profile.run.wall_ns
    assert "recorded " in made.done.stderr


def test_without_plumb_the_calls_do_nothing(any_torch_python, tmp_path):
    made = run_program(any_torch_python, PROGRAM, "pieces", folder=tmp_path, plumb=False,
                       environment=with_plumb_package())
    assert made.done.returncode == 0, made.done.stderr
    assert made.done.stdout.splitlines() == ["recording False", "stop False False",
                                             "start False False", "recording False"]


def check_watched(made, periods):
    """The operators of the turns in which the program saw recording on; a turn of recording may come
    between its look and its operator."""
    recorded, turns = map(int, made.done.stdout.splitlines()[-1].split())
    assert 0 < recorded < turns
    assert abs(sum(calls(made)) - recorded) <= 2 * periods
    assert not set(made.ledger("operator")) - {"received", "attributed", "paused"}


def test_start_after_and_duration(any_torch_python, tmp_path):
    before = time.monotonic()
    whole = run_program(any_torch_python, PROGRAM, "one", "5", folder=tmp_path, name="whole.plumb")
    after = 2 * (time.monotonic() - before) + 1  # then it has certainly begun
    made = run_program(any_torch_python, PROGRAM, "watch", "1", folder=tmp_path,
                       environment=with_plumb_package(),
                       options=["--start-after", f"{after:.1f}", "--duration", "0.5"])
    assert made.done.returncode == 0, made.done.stderr
    check_watched(made, 1)
    assert 0.5e9 <= recorded_ns(made) < made.profile.run.wall_ns / 2
    assert recorded_ns(whole) == -1
    assert ", for 500 ms" in made.done.stderr
    line, = [line for line in made.done.stderr.splitlines() if line.startswith("  wall ")]
    assert line.startswith("  wall time recorded ") and " of " in line
    report = json.loads(run_command(PLUMB, "report", made.path, "--json").stdout)
    assert report["run"]["recorded_ns"] == recorded_ns(made)


def test_a_run_that_never_recorded(any_torch_python, tmp_path):
    made = run_program(any_torch_python, PROGRAM, "one", "5", folder=tmp_path,
                       options=["--start-after", "100"])
    assert made.done.returncode == 0
    assert "recording was never on" in made.done.stderr
    assert calls(made) == []


def test_a_signal_turns_recording_on_and_off(any_torch_python, tmp_path):
    path = tmp_path / "run.plumb"
    command = [PLUMB, "run", "-o", path, "--toggle", "USR2", "--", any_torch_python, PROGRAMS / PROGRAM,
               "watch", "2"]
    process = subprocess.Popen([str(word) for word in command], cwd=tmp_path, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=environment_for_programs(**with_plumb_package()))
    assert process.stdout.readline() == "ready\n"
    for state in ("on", "paused") * 2:
        time.sleep(0.3)
        process.send_signal(signal.SIGUSR2)
        while (line := process.stderr.readline()) and "plumb: recording is " not in line:
            pass
        assert line == f"plumb: recording is {state}\n"
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    made = Made(subprocess.CompletedProcess([], 0, stdout, stderr), PROGRAMS / PROGRAM, tmp_path,
                path)
    check_watched(made, 2)
    assert recorded_ns(made) >= 0.6e9
    # The program never saw the signal: unhandled, it would have ended it.
    assert made.profile.run.exit_code == 0


def test_killed_plumb_keeps_what_recording_was(any_torch_python, tmp_path):
    """plumb itself is killed while it records; settle tells what was recorded all the same."""
    path = tmp_path / "run.plumb"
    command = [PLUMB, "run", "-o", path, "--start-after", "0.2", "--", any_torch_python,
               PROGRAMS / PROGRAM, "slowly", "1.5"]
    process = subprocess.Popen([str(word) for word in command], cwd=tmp_path, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               env=environment_for_programs())
    assert process.stdout.readline() == "ready\n"
    process.kill()
    process.stdout.read()  # to the program's end
    process.wait()
    folder, = tmp_path.glob(".plumb-*.run")
    done = run_command(PLUMB, "settle", folder, "-o", path, "--remove")
    assert done.returncode == 0, done.stderr
    made = Made(done, PROGRAMS / PROGRAM, tmp_path, path)
    assert sum(calls(made)) > 0 and recorded_ns(made) > 1e9
    assert not folder.exists()
