# SPDX-License-Identifier: Apache-2.0
"""What a person types: slips get the command that was meant, files that are not plumb's stay as they are,
and secrets of the command line are not stored."""
import gzip
import json
import os
import pty
import shlex
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import time

import pytest
from conftest import BUILD, PLUMB, ROOT, clean_environment, run_command
from test_run import (PYTHON, WAIT, interrupt, operators, run, run_folders, script, slow_disk, start, stub,  # noqa: F401
                      until)

TRACE = {"traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 5,
     "args": {"device": 0, "stream": 7, "correlation": 1}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 0, "dur": 1,
     "args": {"correlation": 1}},
    {"ph": "M", "name": "process_name", "pid": 9,
     "args": {"name": "python train.py --api-key=topsecret1"}}], "schemaVersion": 1}


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "tr.json"
    path.write_text(json.dumps(TRACE))
    return path


@pytest.fixture
def profile(trace, tmp_path):
    path = tmp_path / "good.plumb"
    assert plumb("import", trace, "-o", path).returncode == 0
    return path


def plumb(*words, **more):
    return run_command(PLUMB, *words, **more)


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def suggested(done):
    """The command on the last line of a message that asks "did you mean"."""
    before, command = done.stderr.rstrip("\n").rsplit("\n", 1)
    assert "did you mean:" in before, done.stderr
    return shlex.split(command)


# ---- what must not be overwritten ----

def test_run_does_not_replace_the_program(run, tmp_path):  # noqa: F811
    program = tmp_path / "train.py"
    program.write_text("open('started', 'w')\n")
    done = run(PYTHON, "train.py", options=("-o", "train.py"))
    assert done.returncode == 125
    assert "train.py exists and is not a plumb profile" in done.stderr and "--force" in done.stderr
    assert program.read_text() == "open('started', 'w')\n" and not (tmp_path / "started").exists()


def test_file_that_the_program_wrote_meanwhile_is_kept(run, tmp_path):  # noqa: F811
    done = run("sh", "-c", "echo precious >run.plumb")
    assert done.returncode == 0
    assert (tmp_path / "run.plumb").read_text() == "precious\n"
    assert "finish with: plumb settle" in done.stderr and run_folders(tmp_path)


def test_import_does_not_replace_its_input(trace):
    before = trace.read_text()
    done = plumb("import", trace, "-o", trace)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert trace.read_text() == before
    assert plumb("import", trace, "-o", trace, "--force").returncode == 0
    assert operators(trace) is not None


def test_profiles_and_empty_files_are_replaced(trace, tmp_path):
    out = tmp_path / "out.plumb"
    out.touch()
    for _ in range(2):
        assert plumb("import", trace, "-o", out).returncode == 0
    assert plumb("settle", out, "-o", out).returncode == 0


@pytest.mark.parametrize("form", ["folded", "speedscope", "perfetto", "pprof", "chrome", "otlp", "csv", "json"])
def test_exports_replace_exports_alone(form, profile, tmp_path):
    metric = ["-m", "gpu.time"] if form == "folded" else []
    out, other = tmp_path / "out", tmp_path / "notes.txt"
    for _ in range(2):
        done = plumb("export", profile, "-F", form, "-o", out, *metric)
        assert done.returncode == 0, done.stderr
    for content in (b"my notes\n", b"\x00\x01binary", gzip.compress(b"mine"),
                    json.dumps(TRACE).encode(), profile.read_bytes()):
        other.write_bytes(content)
        done = plumb("export", profile, "-F", form, "-o", other, *metric)
        assert done.returncode == 1 and "notes.txt" in done.stderr
        assert other.read_bytes() == content
    assert plumb("export", profile, "-F", form, "-o", other, "--force", *metric).returncode == 0
    assert other.read_bytes() != content


def test_export_does_not_replace_what_it_reads(profile, tmp_path):
    out = tmp_path / "out.trace.json"
    assert plumb("export", profile, "-o", out).returncode == 0
    before = out.read_bytes()
    done = plumb("export", out, "-o", out)
    assert done.returncode == 1 and "is the profile to export" in done.stderr
    assert out.read_bytes() == before


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a link of another user")
@pytest.mark.parametrize("verb", ["run", "import", "settle", "export"])
def test_link_of_another_user_is_not_followed(verb, stub, trace, profile, tmp_path):  # noqa: F811
    target, link = tmp_path / "target", tmp_path / "out.folded"
    target.write_text("a 1\n")
    target.chmod(0o600)
    link.symlink_to(target)
    os.lchown(link, 12345, 12345)
    words = {"run": ["run", "--force", "-o", link, "--", "true"],
             "import": ["import", "--force", trace, "-o", link],
             "settle": ["settle", "--force", profile, "-o", link],
             "export": ["export", "--force", profile, "-m", "gpu.time", "-o", link]}[verb]
    done = plumb(*words, env={"PLUMB_LIBRARY": str(stub)}, cwd=tmp_path)
    assert done.returncode == (125 if verb == "run" else 1)
    assert "symbolic link of another user" in done.stderr
    assert target.read_text() == "a 1\n" and mode(target) == 0o600 and link.is_symlink()


def test_own_link_is_followed(trace, profile, tmp_path):
    link = tmp_path / "link.plumb"
    link.symlink_to("good.plumb")
    assert plumb("import", trace, "-o", link).returncode == 0
    assert link.is_symlink() and not profile.is_symlink()


def test_permissions(run, trace, profile, tmp_path):  # noqa: F811
    """A profile is its owner's; no file gets wider permissions than the one before had."""
    os.umask(0o022)
    assert run("true").returncode == 0
    assert mode(tmp_path / "run.plumb") == mode(profile) == 0o600
    assert plumb("import", trace, "-o", tmp_path / "open.plumb", "--readable").returncode == 0
    assert mode(tmp_path / "open.plumb") == 0o644
    assert plumb("import", trace, "-o", tmp_path / "open.plumb").returncode == 0
    assert mode(tmp_path / "open.plumb") == 0o600
    profile.chmod(0o400)
    assert plumb("import", trace, "-o", profile).returncode == 0
    assert mode(profile) == 0o400
    out = tmp_path / "out.json"
    assert plumb("export", profile, "-o", out).returncode == 0
    assert mode(out) == 0o644
    out.chmod(0o600)
    assert plumb("export", profile, "-o", out).returncode == 0
    assert mode(out) == 0o600


def test_run_that_recorded_nothing_keeps_the_old_profile(run, profile, tmp_path):  # noqa: F811
    before = profile.read_bytes()
    done = plumb("run", "-o", profile, "--", PYTHON, tmp_path / "typo.py", cwd=tmp_path)
    assert done.returncode == 2
    assert profile.read_bytes() == before
    (line,) = [line for line in done.stderr.splitlines() if "earlier profile" in line]
    assert "good.plumb is kept" in line
    assert run_folders(tmp_path) == []
    done = plumb("run", "--cpu=1000", "-o", profile, "--", PYTHON, tmp_path / "typo.py", cwd=tmp_path)
    assert done.returncode == 2 and "good.plumb is kept" in done.stderr
    assert profile.read_bytes() == before
    assert plumb("run", "-o", profile, "--", "no-such-program", cwd=tmp_path).returncode == 127
    assert profile.read_bytes() == before
    assert run("true", options=("-o", "good.plumb")).returncode == 0
    assert profile.read_bytes() != before


# ---- secrets ----

SECRETS = ["--api-key=topsecret1", "--token", "topsecret2", "DB_PASSWORD=topsecret3",
           "https://me:topsecret4@host/", "hf_topsecret5topsecret5topsecret5", "Authorization: Bearer topsecret6"]


@pytest.mark.parametrize("options", [[], ["--no-command"]])
def test_secrets_are_not_stored(options, any_torch_python, tmp_path):
    program = tmp_path / "x.py"
    program.write_text("import torch, subprocess, sys\ntorch.ones(3).neg()\n"
                       "if 'child' not in sys.argv: "
                       "subprocess.run([sys.executable, __file__, 'child', *sys.argv[1:]])\n")
    path = tmp_path / "run.plumb"
    done = plumb("run", *options, "-o", path, "--", any_torch_python, program, *SECRETS, "--lr", "0.125",
                 cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"topsecret" not in path.read_bytes()
    assert "topsecret" not in done.stderr
    database = sqlite3.connect(path)
    commands = [row[0] for row in database.execute(
        "SELECT command FROM processes")]
    database.close()
    assert len(commands) == 2
    if options:
        assert commands == [None, None] and b"0.125" not in path.read_bytes()
    else:
        assert all("--api-key=***" in text and "--lr 0.125" in text for text in commands)
    out = tmp_path / "out.json"
    assert plumb("export", path, "-o", out).returncode == 0
    assert "topsecret" not in out.read_text()


def test_secrets_of_imported_traces_are_masked(profile):
    assert b"topsecret" not in profile.read_bytes()
    assert b"--api-key=***" in profile.read_bytes()


# ---- without FILE, with several ----

@pytest.mark.parametrize("verb", [["report", "--by", "kernel"], ["iters"], ["tables"], ["tables", "A10"],
                                  ["export", "-F", "csv"]])
def test_newest_profile_stands_in(verb, profile, tmp_path):
    old = tmp_path / "older.plumb"
    shutil.copy(profile, old)
    os.utime(old, (1000, 1000))
    (tmp_path / "newer.txt").write_text("no profile")
    os.mkfifo(tmp_path / "pipe.plumb")
    done = plumb(*verb, cwd=tmp_path)
    named = plumb(*verb, "good.plumb", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (named.returncode, named.stdout)
    assert "reading good.plumb, the newest profile in this folder" in done.stderr.splitlines()[0]


def test_no_profile_here(tmp_path):
    for verb in ("report", "iters", "tables", "export"):
        done = plumb(verb, *(["-F", "csv"] if verb == "export" else []), cwd=tmp_path)
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
        assert "no profile in this folder" in done.stderr and "plumb run -- " in done.stderr


def test_several_files_are_a_choice(profile, tmp_path):
    for number, name in enumerate(("a b.plumb", "c.plumb")):
        shutil.copy(profile, tmp_path / name)
        os.utime(tmp_path / name, (1000 + number, 1000 + number))
    done = plumb("report", "c.plumb", "--by", "kernel", "a b.plumb", cwd=tmp_path)
    assert done.returncode == 1
    first, newest, both = done.stderr.splitlines()
    assert "report takes one FILE, but 2 were given" in first
    assert shlex.split(newest, comments=True) == ["plumb", "report", "--by", "kernel", "c.plumb"]
    assert shlex.split(both, comments=True) == ["plumb", "diff", "a b.plumb", "c.plumb"]
    done = plumb("report", "run.plumb.0", "run.plumb.1", cwd=tmp_path)
    assert "plumb settle run.plumb.0 run.plumb.1 -o joined.plumb" in done.stderr


# ---- slips ----

@pytest.mark.parametrize("words, meant", [
    ("train.py --lr 3", "run -- PYTHON train.py --lr 3"),
    ("sh -c true", "run -- sh -c true"),
    ("run train.py --lr 3", "run -- PYTHON train.py --lr 3"),
    ("run -o x.plumb train.py", "run -o x.plumb -- PYTHON train.py"),
    ("run --cpu 200 sh -c true", "run --cpu=200 -- sh -c true"),
    ("run --cpu 200 -- sh -c true", "run --cpu=200 -- sh -c true"),
    ("run -- --cpu -o x sh -c true", "run --cpu -o x -- sh -c true"),
    ("--cpu sh -c true", "run --cpu -- sh -c true"),
    ("--by kernel report x.plumb", "report --by kernel x.plumb"),
    ("--verson", "--version"),
    ("repotr x.plumb --by line", "report x.plumb --by line"),
    ("iter x.plumb", "iters x.plumb"),
    ("rnu -- sh", "run -- sh"),
    ("good.plumb --by line", "report good.plumb --by line"),
    ("./tool.sh 3", "run -- sh ./tool.sh 3"),
])
def test_suggestions(words, meant, profile, tmp_path):
    (tmp_path / "train.py").write_text("pass\n")
    (tmp_path / "tool.sh").write_text("#!/bin/sh\n")
    done = plumb(*words.split(), cwd=tmp_path)
    assert done.returncode in (1, 127, 126)
    if meant:
        found = suggested(done)
        assert [word if word not in ("python", "python3") else "PYTHON" for word in found] == \
            ["plumb", *meant.replace("./tool", "./tool").replace("-- sh ./", "-- /bin/sh ./").split()]
    assert not list(tmp_path.glob("*.run")) and not (tmp_path / "x.plumb").exists()


def test_options_that_do_not_exist(tmp_path):
    for words, text in ((["report", "--bye", "line"], "did you mean --by?"),
                        (["run", "--cpus", "true"], "did you mean --cpu?"),
                        (["run", "-cpu", "true"], "did you mean --cpu?"),
                        (["run", "--s", "true"], "did you mean --shapes, --stalls, --stalls-mode or --start-after?"),
                        (["report", "--cpu"], "plumb run has it"),
                        (["version", "x"], "version takes no arguments"),
                        (["nonsense"], 'no verb "nonsense"')):
        done = plumb(*words, cwd=tmp_path)
        assert done.returncode in (1, 125) and text in done.stderr, done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_option_after_the_command_is_named(run, tmp_path):  # noqa: F811
    done = plumb("run", "sh", "-c", "exit 0", "--cpu", cwd=tmp_path)
    assert "plumb run --cpu -- sh -c 'exit 0'" in done.stderr
    done = run("sh", "-c", "exit 0", "--cpu")  # after "--": meant so
    assert "after the command" not in done.stderr
    done = run("sh", "-c", "exit 2", "--memory")
    assert "plumb run -o run.plumb --memory -- sh -c 'exit 2'" in done.stderr


def test_module_runs_the_command(tmp_path):
    for folder in (ROOT / "python", tmp_path / "usr/lib/plumb/python"):
        if not folder.exists():  # as `make install` lays it out
            shutil.copytree(ROOT / "python/plumb", folder / "plumb")
            (folder.parent / "plumb").symlink_to(PLUMB)
        elif BUILD != ROOT / "build":
            continue
        done = run_command(sys.executable, "-m", "plumb", "version", cwd=tmp_path,
                           env={"PYTHONPATH": str(folder)})
        assert done.returncode == 0, done.stderr
        assert done.stdout == plumb("version").stdout


# ---- quiet, and lines to paste ----

def test_quiet(run, tmp_path):  # noqa: F811
    done = run("sh", "-c", "echo out; echo err >&2; exit 3", options=("-q", "-o", "run.plumb"))
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")
    assert operators(tmp_path / "run.plumb")
    done = plumb("run", "--quiet", "-o", "empty.plumb", "--", "true", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    done = run("no-such-program", options=("--quiet",))
    assert done.returncode == 127 and "cannot execute" in done.stderr


@pytest.mark.parametrize("name", ["a b.plumb", "it's $HOME `x`.plumb", "-x.plumb", "plain.plumb"])
def test_more_can_be_pasted(run, name, tmp_path):  # noqa: F811
    done = run("true", options=(f"--output={name}",))
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("more: ")]
    words = shlex.split(line[len("more: "):])
    assert words[0] == "plumb" and name in words
    assert subprocess.run([PLUMB, *words[1:]], cwd=tmp_path, capture_output=True).returncode in (0, 3)


# ---- signals ----

def test_ctrl_c_ends_a_shell_loop(stub, tmp_path):  # noqa: F811
    command = f"while :; do {shlex.quote(str(PLUMB))} run -o run.plumb -- sh -c 'echo x >>turns; exec sleep 30'; done"
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.environ.update(clean_environment(PLUMB_LIBRARY=str(stub)))
        os.execvp("bash", ["bash", "-c", command])
    until((tmp_path / "turns").exists, "the start")
    time.sleep(0.2)
    os.write(terminal, b"\x03")
    end = time.monotonic() + WAIT
    found = 0
    while not found and time.monotonic() < end:
        found, status = os.waitpid(pid, os.WNOHANG)
        time.sleep(0.05)
    if not found:
        os.kill(pid, signal.SIGKILL)
    os.close(terminal)
    assert found and os.waitstatus_to_exitcode(status) == -signal.SIGINT
    assert (tmp_path / "turns").read_text() == "x\n"
    assert operators(tmp_path / "run.plumb")["stub::loaded"] >= 1
    assert run_folders(tmp_path) == []


def test_program_that_catches_ctrl_c_gives_its_code(start, tmp_path):  # noqa: F811
    process = start("sh", "-c", "trap 'exit 0' INT; touch ready; while :; do sleep 0.05; done")
    until((tmp_path / "ready").exists, "the start")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=WAIT)
    assert process.returncode == 0


def test_no_core_of_plumb(run, tmp_path):  # noqa: F811
    done = run("sh", "-c", "ulimit -c 0; kill -SEGV $$", preexec_fn=lambda: __import__("resource").setrlimit(
        __import__("resource").RLIMIT_CORE, (1 << 20, 1 << 20)))
    assert done.returncode == -signal.SIGSEGV
    assert [path.name for path in tmp_path.iterdir()] == ["run.plumb"]


def test_ctrl_c_twice_while_settling_leaves_no_temporary_file(start, tmp_path, slow_disk):  # noqa: F811
    process = start("sh", "-c", "exit 6", env={"LD_PRELOAD": str(slow_disk)})
    until((tmp_path / "slow").exists, "settling")
    interrupt(process)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=WAIT)
    assert process.returncode == 6
    assert not list(tmp_path.glob("*.tmp-*")) and run_folders(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_while_importing_leaves_no_temporary_file(number, trace, tmp_path, slow_disk):  # noqa: F811
    process = subprocess.Popen([PLUMB, "import", trace, "-o", "out.plumb"], cwd=tmp_path,
                               env=clean_environment(LD_PRELOAD=str(slow_disk)))
    until((tmp_path / "slow").exists, "writing")
    process.send_signal(number)
    assert process.wait(timeout=WAIT) == -number
    assert not list(tmp_path.glob("out.plumb*"))
