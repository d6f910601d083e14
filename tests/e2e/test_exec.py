# SPDX-License-Identifier: Apache-2.0
"""Programs that set LD_PRELOAD or a new environment on their way, or become another user: the collector
stays in what they execute, their own libraries stay, and what cannot get it is counted."""
import json
import os
import shutil
import subprocess
import sys

import pytest
from conftest import LIBPLUMB, PLUMB, ROOT, run_command
from plumbtest import environment_for_programs

SHOW = """
import json, os, sys
maps = open("/proc/self/maps").read()
print(json.dumps({"preload": os.environ.get("LD_PRELOAD"), "libplumb": "libplumb" in maps,
                  "extra": "/extra.so" in maps, "folder": os.environ.get("PLUMB_FOLDER"),
                  "asan": os.environ.get("ASAN_OPTIONS"), "words": sys.argv[1:],
                  "cuda": os.environ.get("CUDA_INJECTION64_PATH"),
                  "chain": os.environ.get("PLUMB_CHAIN_CUDA_INJECTION64_PATH")}), flush=True)
"""
PYTHON = sys.executable

# What a C program may call, each with an environment of its own or with an LD_PRELOAD of its own.
CALLS = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char *none[] = { NULL };

int main(int argc, char **argv)
{
	char *python = argv[2], *script = argv[3], *words[] = { "python", script, "word", NULL };
	const char *how = argv[1];
	pid_t child;
	int status = 0;
	(void)argc;
	setenv("LD_PRELOAD", argv[4], 1);
	if (!strcmp(how, "execve")) execve(python, words, none);
	else if (!strcmp(how, "execv")) execv(python, words);
	else if (!strcmp(how, "execvp")) execvp(python, words);
	else if (!strcmp(how, "execvpe")) execvpe(python, words, none);
	else if (!strcmp(how, "execl")) execl(python, "python", script, "word", NULL);
	else if (!strcmp(how, "execlp")) execlp(python, "python", script, "word", NULL);
	else if (!strcmp(how, "execle")) execle(python, "python", script, "word", NULL, none);
	else if (!strcmp(how, "fexecve")) fexecve(open(python, O_RDONLY), words, none);
	else if (!strcmp(how, "execveat")) execveat(AT_FDCWD, python, words, none, 0);
	else if (!strcmp(how, "null")) execve(python, words, NULL);
	else if (!strcmp(how, "posix_spawn")) errno = posix_spawn(&child, python, NULL, NULL, words, none);
	else if (!strcmp(how, "posix_spawnp")) errno = posix_spawnp(&child, python, NULL, NULL, words, none);
	else if (!strcmp(how, "vfork")) {
		if (!(child = vfork())) { execve(python, words, none); _exit(99); }
	} else if (!strcmp(how, "system")) {
		char line[4096];
		snprintf(line, sizeof line, "%s %s word", python, script);
		char *before = strdup(getenv("LD_PRELOAD"));
		unsetenv("PLUMB_FOLDER");
		status = system(line);
		return status || strcmp(getenv("LD_PRELOAD"), before) || getenv("PLUMB_FOLDER");
	} else if (!strcmp(how, "popen")) {
		char line[4096], out[4096];
		snprintf(line, sizeof line, "%s %s word", python, script);
		environ = none;
		FILE *from = popen(line, "r");
		size_t got = fread(out, 1, sizeof out, from);
		fwrite(out, 1, got, stdout);
		return pclose(from) || (environ && environ[0]);
	} else if (!strcmp(how, "missing")) {
		int first = execve("/nowhere/at/all", words, none), error = errno;
		int second = execvp("/etc/passwd", words);
		printf("%d %d %d %d", first, error == ENOENT, second, errno == EACCES);
		return 0;
	}
	while (wait(&status) > 0)
		;
	return WEXITSTATUS(status);
}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exec")
    (folder / "extra.c").write_text("int extra;\n")
    (folder / "calls.c").write_text(CALLS)
    (folder / "show.py").write_text(SHOW)
    (folder / "plain.c").write_text("int main(void) { return 0; }\n")
    for command in (["-shared", "-fPIC", "-o", "extra.so", "extra.c"], ["-o", "calls", "calls.c"],
                    ["-static", "-o", "static", "plain.c"]):
        subprocess.run(["gcc", *command], cwd=folder, check=True)
    return folder


@pytest.fixture
def shown(built, tmp_path):
    """What the program at the end of the way sees."""
    def call(*command, options=(), environment=None, code=0):
        done = run_command(PLUMB, "run", "-o", tmp_path / "run.plumb", *options, "--", *command,
                           cwd=tmp_path, env=environment)
        assert done.returncode == code, done.stderr
        call.stderr = done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]
    return call


def in_front(seen, built):
    return seen["preload"] == f"{LIBPLUMB}:{built}/extra.so" and seen["libplumb"] and seen["extra"]


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_a_launch_script_that_exports_ld_preload(shell, shown, built):
    if not shutil.which(shell):
        pytest.skip(f"there is no {shell}")
    script = built / f"launch-{shell}"
    script.write_text(f"#!/usr/bin/env {shell}\nexport LD_PRELOAD={built}/extra.so\n"
                      f"{PYTHON} {built}/show.py first\nexec {PYTHON} {built}/show.py second\n")
    script.chmod(0o755)
    first, second = shown(script)
    assert in_front(first, built) and in_front(second, built)
    assert first["folder"] == second["folder"]


@pytest.mark.parametrize("command", [
    "env LD_PRELOAD={extra} {python} {show}",
    "env -i LD_PRELOAD={extra} {python} {show}",
    "make -s -f - <<< $'all:\\n\\t@LD_PRELOAD={extra} {python} {show}'",
    "{python} -c 'import subprocess, sys; subprocess.run([sys.executable, \"{show}\"],"
    " env={{\"LD_PRELOAD\": \"{extra}\"}})'",
    "{python} -c 'import os, sys; os.posix_spawn(sys.executable, [\"python\", \"{show}\"],"
    " {{\"LD_PRELOAD\": \"{extra}\"}}); os.wait()'",
])
def test_what_sets_it_on_the_way(command, shown, built):
    seen, = shown("bash", "-c", command.format(extra=built / "extra.so", python=PYTHON,
                                               show=built / "show.py"))
    assert in_front(seen, built)
    assert seen["asan"] == "verify_asan_link_order=0" and seen["cuda"] == str(LIBPLUMB)


def test_multiprocessing_with_an_environment_of_its_own(shown, built):
    program = built / "spawning.py"
    program.write_text(
        "import multiprocessing, os, runpy\n"
        f"def child():\n    runpy.run_path({str(built / 'show.py')!r})\n"
        "if __name__ == '__main__':\n    os.environ['LD_PRELOAD'] = ''\n"
        "    process = multiprocessing.get_context('spawn').Process(target=child)\n"
        "    process.start()\n    process.join()\n")
    seen, = shown(PYTHON, program)
    assert seen["libplumb"] and seen["preload"] == str(LIBPLUMB)


@pytest.mark.parametrize("how", [
    "execve", "execv", "execvp", "execvpe", "execl", "execlp", "execle", "fexecve", "execveat", "null",
    "posix_spawn", "posix_spawnp", "vfork", "system", "popen"])
def test_every_way_to_start_a_program(how, shown, built):
    seen, = shown(built / "calls", how, PYTHON, built / "show.py", built / "extra.so")
    assert seen["libplumb"] and seen["folder"] and seen["words"] == ["word"]
    if how in ("execv", "execvp", "execl", "execlp", "system"):
        assert in_front(seen, built)
    else:
        assert seen["preload"] == str(LIBPLUMB)


def test_a_failing_call_fails_as_without_plumb(built, tmp_path):
    command = [built / "calls", "missing", "python", "show.py", ""]
    done = run_command(PLUMB, "run", "-o", tmp_path / "run.plumb", "--", *command)
    assert done.stdout == run_command(*command).stdout == "-1 1 -1 1"


def test_a_large_environment(shown, built):
    """More than goes onto the stack."""
    many = {f"VARIABLE_{i}": "x" * 50 for i in range(4000)}
    program = built / "large.py"
    program.write_text(f"import os, sys\nos.execve(sys.executable, ['python', {str(built / 'show.py')!r}],"
                       f" {many!r})\n")
    seen, = shown(PYTHON, program)
    assert seen["libplumb"]


def test_own_variables_of_other_tools_are_chained(shown, built):
    seen, = shown("env", "CUDA_INJECTION64_PATH=/opt/tool.so", "ASAN_OPTIONS=x=1", PYTHON,
                  built / "show.py")
    assert (seen["cuda"], seen["chain"]) == (str(LIBPLUMB), "/opt/tool.so")
    assert seen["asan"] == "x=1:verify_asan_link_order=0"


def test_processes_that_are_left_out_get_nothing(shown, built):
    child, program = shown("bash", "-c", f"env -i {PYTHON} {built}/show.py; "
                           f"exec env -i {PYTHON} {built}/show.py", options=["--follow", "none"])
    assert not child["libplumb"] and not child["folder"]
    assert program["libplumb"], "the program that was started stays itself"


def test_a_run_inside_keeps_its_own(shown, built, tmp_path):
    seen, = shown(PLUMB, "run", "-o", tmp_path / "inner.plumb", "--folder", built, "--",
                  "env", "LD_PRELOAD=", PYTHON, built / "show.py")
    assert seen["folder"].startswith(str(built))


def test_operators_of_such_a_child_are_recorded(any_torch_python, tmp_path, built):
    program = tmp_path / "ops.py"
    program.write_text("import torch\nx = torch.ones(3)\nfor _ in range(5):\n    x = torch.sin(x)\n")
    done = run_command(PLUMB, "run", "-o", "run.plumb", "--", "sh", "-c",
                       f"export LD_PRELOAD={built}/extra.so; {any_torch_python} {program}; "
                       f"env -i {any_torch_python} {program}", cwd=tmp_path,
                       env=environment_for_programs())
    assert done.returncode == 0 and "nothing was captured" not in done.stderr
    rows = json.loads(run_command(PLUMB, "report", tmp_path / "run.plumb", "--by", "operator",
                                  "--top", "0", "--json").stdout)["rows"]
    assert [row["exclusive"]["op.calls"]["sum"] for row in rows if row["name"] == "aten::sin"] == [10]


def test_programs_that_cannot_get_it_are_counted(built, tmp_path):
    done = run_command(PLUMB, "run", "-o", tmp_path / "run.plumb", "--", "sh", "-c",
                       f"{built}/static; {built}/static; true")
    assert done.returncode == 0
    assert "plumb cannot be loaded into 2 of the programs that were started" in done.stderr
    ledger = json.loads(run_command(PLUMB, "report", tmp_path / "run.plumb", "--json").stdout)["ledger"]
    fates = [fate for row in ledger if row["source"] == "process" for fate in row["fates"]]
    assert [fate["count"] for fate in fates if "static" in fate["reason"]] == [2], ledger


# ---- other users ----

needs_root = pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"),
                                reason="only root may become another user")
TORCH = """
import os, sys, torch
if len(sys.argv) > 1:
    os.setuid(int(sys.argv[1]))
x = torch.sin(torch.ones(3))
if not os.fork():
    x = torch.cos(x)
    os._exit(0)
os.wait()
"""


@needs_root
@pytest.mark.parametrize("command", [["setpriv", "--reuid=1234", "--clear-groups", "PYTHON", "PROGRAM"],
                                     ["PYTHON", "PROGRAM", "1234"]])
@pytest.mark.parametrize("open_", [True, False], ids=["reachable", "unreachable"])
def test_a_program_that_becomes_another_user(command, open_, any_torch_python, tmp_path_factory):
    folder = tmp_path_factory.mktemp("user")
    program = folder / "program.py"
    program.write_text(TORCH)
    place = folder / "place"
    place.mkdir()
    others = [any_torch_python, program] + ([LIBPLUMB] if open_ else [])
    for path in (folder, *folder.parents):
        if path.stat().st_uid == 0 and str(path).startswith("/tmp/"):
            path.chmod(0o755)
    if not open_:
        place.chmod(0o700)
    if any(not run_command("setpriv", "--reuid=1234", "--clear-groups", "test", "-r", path).returncode == 0
           for path in others):
        pytest.skip("another user cannot read what the test needs")
    names = {"PYTHON": any_torch_python, "PROGRAM": program}
    done = run_command(PLUMB, "run", "-o", place / "run.plumb", "--",
                       *(names.get(word, word) for word in command), env=environment_for_programs())
    assert done.returncode == 0, done.stderr
    report = json.loads(run_command(PLUMB, "report", place / "run.plumb", "--by", "operator", "--top",
                                    "0", "--json").stdout)
    operators = {row["name"] for row in report["rows"]}
    reasons = [fate["reason"] for row in report["ledger"] if row["source"] == "process"
               for fate in row["fates"] if fate["dropped"]]
    if open_:
        assert {"aten::sin", "aten::cos"} <= operators and not reasons
    elif command[0] == "setpriv":
        assert "changed to user 1234" in done.stderr and "neither PyTorch" not in done.stderr
    else:
        assert "aten::cos" not in operators, "the child could not record"
        assert reasons == ["its user cannot use the run folder or plumb's library"]


def test_no_other_user_gets_in(tmp_path):
    """The run folder is open to the one user that the program became, and to nobody else."""
    done = run_command(PLUMB, "run", "-o", tmp_path / "run.plumb", "--", "sh", "-c",
                       'stat -c %a "$PLUMB_FOLDER"')
    assert done.stdout.strip() == "700"
