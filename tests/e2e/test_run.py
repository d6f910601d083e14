# SPDX-License-Identifier: Apache-2.0
"""`plumb run` around programs of all kinds: what they see, what it returns, and what is left."""
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import stat
import struct
import subprocess
import sys
import time

import pytest
from conftest import LIBPLUMB, PLUMB, ROOT, clean_environment, run_command

PYTHON = sys.executable
WAIT = 120  # seconds that anything here may take


def compile_c(path, source, *flags, compiler="gcc"):
    file = path.with_suffix(".c")
    file.write_text(source)
    done = subprocess.run([compiler, "-o", path, file, *flags], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"{compiler} {' '.join(flags)} does not work here: {done.stderr[-200:]}")
    return path


@pytest.fixture(scope="session")
def stub(tmp_path_factory):
    """A collector that records one operator in every process it is loaded into."""
    path = tmp_path_factory.mktemp("stub") / "libplumb.so"
    sources = [ROOT / "tests/e2e/collector_stub.c", ROOT / "src/region/writer.c",
               ROOT / "src/base/words.c", ROOT / "src/base/error.c",
               ROOT / "src/base/procstat.c"]
    subprocess.run(["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-shared", "-fPIC",
                    f"-I{ROOT / 'src'}", "-o", path, *sources, "-lpthread"], check=True)
    return path


@pytest.fixture
def run(stub, tmp_path):
    """`plumb run -o run.plumb OPTIONS -- COMMAND` under the stub, in the test's own folder."""
    def call(*command, options=("-o", "run.plumb"), env=None, **more):
        more.setdefault("cwd", tmp_path)
        return run_command(PLUMB, "run", *options, "--", *command,
                           env={"PLUMB_LIBRARY": str(stub), **(env or {})}, **more)
    return call


@pytest.fixture
def start(stub, tmp_path):
    """Likewise, without waiting for its end."""
    running = []

    def call(*command, options=("-o", "run.plumb"), env=None, **more):
        more.setdefault("stdout", subprocess.PIPE)
        more.setdefault("stderr", subprocess.PIPE)
        process = subprocess.Popen(
            [PLUMB, "run", *options, "--", *map(str, command)], cwd=tmp_path, text=True,
            stdin=subprocess.DEVNULL,
            env=clean_environment(PLUMB_LIBRARY=str(stub), **(env or {})), **more)
        running.append(process)
        return process
    yield call
    for process in running:
        if process.poll() is None:
            process.kill()
            process.wait()


def operators(path):
    """{operator: calls} of a profile."""
    done = run_command(PLUMB, "report", path, "--by", "operator", "--top", "0", "--json")
    assert done.returncode in (0, 3), done.stderr
    if done.returncode == 3:
        return {}
    return {row["name"]: row["inclusive"]["op.calls"]["sum"]
            for row in json.loads(done.stdout)["rows"]}


def run_facts(path):
    done = run_command(PLUMB, "report", path, "--json")
    return json.loads(done.stdout)["run"]


def run_folders(path):
    return list(path.glob(".plumb-*.run"))


def until(condition, what):
    end = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < end, f"{what} did not happen"
        time.sleep(0.01)


def until_gone(pid_file):
    """Until the process whose number is in the file has ended: what it did last may be seen before."""
    pid = int(pid_file.read_text())
    until(lambda: not os.path.exists(f"/proc/{pid}/exe"), "its end")


# ---- exit codes ----

@pytest.mark.parametrize("code", [0, 1, 3, 125, 126, 127, 255])
def test_exit_code_and_output_are_the_programs(run, tmp_path, code):
    done = run("sh", "-c", f"echo out; exit {code}")
    assert done.returncode == code
    assert done.stdout == "out\n"
    assert operators(tmp_path / "run.plumb")["stub::loaded"] >= 1
    assert run_facts(tmp_path / "run.plumb")["exit_code"] == code
    assert run_folders(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGABRT])
def test_signal_that_ends_the_program(run, tmp_path, number):
    done = run("sh", "-c", f"ulimit -c 0; kill -{int(number)} $$")
    assert done.returncode == -number
    assert operators(tmp_path / "run.plumb")["stub::loaded"] == 1


def test_program_that_leaves_by_underscore_exit(run, tmp_path):
    assert run(PYTHON, "-c", "import os; os._exit(7)").returncode == 7
    assert operators(tmp_path / "run.plumb") == {"stub::loaded": 1}


def test_not_found_and_not_executable(run, tmp_path):
    (tmp_path / "plain").write_text("echo\n")
    (tmp_path / "folder").mkdir()
    for command, code in (("no-such-program-here", 127), ("./nowhere/x", 127), ("./plain", 126),
                          ("./folder", 126), ("", 127)):
        done = run(command)
        assert done.returncode == code, command
        assert "cannot execute" in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "plain"]


def test_missing_interpreter_is_not_found(run, tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/nowhere/interpreter\n")
    script.chmod(0o755)
    assert run("./script").returncode == 127
    assert run_folders(tmp_path) == []


def test_wrong_use_is_125_and_starts_nothing(run, tmp_path):
    for options in (["--no-such-option"], ["--limit", "12q"], ["--limit", "1"], ["--flush-ms", "0"],
                    ["--user-code", "no-sign"], ["-o", "nowhere/run.plumb"], ["-o", "."], ["-o", "/dev/null"],
                    ["--folder", "nowhere"]):
        done = run("touch", "started", options=options)
        assert done.returncode == 125, options
        assert done.stderr.startswith("plumb: ")
        assert not (tmp_path / "started").exists()
    assert run_command(PLUMB, "run").returncode == 125
    assert pathlib.Path("/dev/null").is_char_device()
    assert list(tmp_path.iterdir()) == []


def test_missing_collector_is_125(run, tmp_path):
    done = run("touch", "started", env={"PLUMB_LIBRARY": "/nowhere/libplumb.so"})
    assert done.returncode == 125
    assert "PLUMB_LIBRARY=/nowhere/libplumb.so" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_one_line_before_and_default_name(run, tmp_path):
    done = run("sh", "-c", "echo the program >&2", options=())
    before = done.stderr[:done.stderr.index("the program")].splitlines()
    assert len(before) == 1
    (profile,) = tmp_path.glob("plumb-sh-*.plumb")
    assert profile.name in before[0] and ".plumb-" in before[0]


def test_nothing_captured_is_one_line(run, tmp_path):
    """The real collector in a program without framework."""
    done = run("sh", "-c", "exit 4", env={"PLUMB_LIBRARY": str(LIBPLUMB)})
    assert done.returncode == 4
    (line,) = [line for line in done.stderr.splitlines() if "nothing was captured" in line]
    assert "PyTorch" in line
    assert run_folders(tmp_path) == []


# ---- finding programs ----

def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_lookup_in_path(run, tmp_path):
    script(tmp_path / "one/tool", "#!/bin/sh\necho one\n")
    script(tmp_path / "two/tool", "#!/bin/sh\necho two\n")
    script(tmp_path / "tool", "#!/bin/sh\necho here\n")
    (tmp_path / "zero").mkdir()
    (tmp_path / "zero/tool").write_text("not executable")
    system = os.environ["PATH"]
    for path, expected in ((f"{tmp_path}/one:{tmp_path}/two", "one"),
                           (f"{tmp_path}/zero:{tmp_path}/two", "two"),
                           ("", "here"), (f":{tmp_path}/two", "here"),
                           (f"{tmp_path}/zero:", "here")):
        done = run("tool", env={"PATH": path})
        assert done.stdout == expected + "\n", (path, done.stderr)
        plain = subprocess.run(["tool"], cwd=tmp_path, env={"PATH": path}, capture_output=True,
                               text=True)
        assert plain.stdout == done.stdout
    assert run("tool", env={"PATH": system}).returncode == 127


@pytest.mark.parametrize("text", ["echo plain $0\n", "#!/bin/sh\necho shell\n",
                                  "#! /usr/bin/env sh\necho env\n", "#!/usr/bin/env -S sh -e\necho s\n"])
def test_scripts(run, tmp_path, text):
    script(tmp_path / "script", text)
    direct = subprocess.run("./script", shell=True, cwd=tmp_path, capture_output=True, text=True)
    done = run("./script")
    assert (done.returncode, done.stdout) == (0, direct.stdout)
    assert operators(tmp_path / "run.plumb")["stub::loaded"] >= 1


# ---- programs that cannot be loaded into ----

HELLO = '#include <stdio.h>\nint main(void) { puts("hello"); return 5; }\n'


def refused(done, tmp_path, name):
    assert (done.returncode, done.stdout) == (5, "hello\n")
    lines = done.stderr.splitlines()
    assert name in lines[0] and "nothing will be captured" in lines[0]
    assert len(lines) == 2 and "nothing was captured" in lines[1]
    assert not (tmp_path / "run.plumb").exists()


@pytest.mark.parametrize("how", ["-static", "-static-pie"])
def test_static_program_runs_and_its_children_are_seen(run, tmp_path, how):
    source = ('#include <stdio.h>\n#include <unistd.h>\nint main(int argc, char **argv) '
              '{ if (argc > 1) execvp(argv[1], argv + 1); puts("hello"); return 5; }\n')
    compile_c(tmp_path / "static", source, how)
    done = run("./static")
    assert (done.returncode, done.stdout) == (5, "hello\n")
    assert "./static is statically linked" in done.stderr
    assert "nothing was captured" in done.stderr
    done = run("./static", "sh", "-c", "exit 6")
    assert done.returncode == 6
    assert operators(tmp_path / "run.plumb") == {"stub::loaded": 1}


def test_musl_program_is_refused_by_name(run, tmp_path):
    loader = tmp_path / "ld-musl-x86_64.so.1"
    own = re.search(rb"/lib\S*/ld-linux[-\w]*\.so\.\d", pathlib.Path("/bin/sh").read_bytes())
    loader.symlink_to(os.path.realpath(own.group().decode()))
    compile_c(tmp_path / "musl", HELLO, f"-Wl,--dynamic-linker={loader}")
    refused(run("./musl"), tmp_path, "./musl is linked with musl")
    # Found also at the end of a chain.
    script(tmp_path / "first", "#!./second\n")
    script(tmp_path / "second", "#!./musl\n")
    refused(run("./first"), tmp_path, "./musl is linked with musl")
    done = run("env", "A=1", "./musl")
    refused(done, tmp_path, "./musl is linked with musl")


def test_set_user_id_program_is_refused_by_name(run, tmp_path):
    if os.geteuid() != 0 or os.statvfs(tmp_path).f_flag & os.ST_NOSUID:
        pytest.skip("needs root and a file system that honours the bit")
    for folder in (tmp_path, *tmp_path.parents):
        if not folder.stat().st_mode & stat.S_IXOTH:
            folder.chmod(folder.stat().st_mode | stat.S_IXOTH)
    program = compile_c(tmp_path / "suid", HELLO)
    os.chown(program, 65534, 65534)
    program.chmod(0o4755)
    refused(run("./suid"), tmp_path, "./suid is set-user-ID")
    program.chmod(0o2755)
    refused(run("./suid"), tmp_path, "./suid is set-group-ID")
    program.chmod(0o755)
    done = run("./suid")
    assert done.returncode == 5 and operators(tmp_path / "run.plumb") == {"stub::loaded": 1}


def test_32_bit_program_is_refused_by_name(run, tmp_path):
    # write(1, "hello\n", 6); exit(5)
    base, head = 0x08048000, 52 + 32
    code = (b"\xb8\x04\0\0\0\xbb\x01\0\0\0\xb9" + struct.pack("<I", base + head + 34) +
            b"\xba\x06\0\0\0\xcd\x80\xb8\x01\0\0\0\xbb\x05\0\0\0\xcd\x80")
    assert len(code) == 34
    code += b"hello\n"
    size = head + len(code)
    elf = (b"\x7fELF\x01\x01\x01" + bytes(9) +
           struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, base + head, 52, 0, 0, 52, 32, 1, 0, 0, 0) +
           struct.pack("<IIIIIIII", 1, 0, base, base, size, size, 5, 4096) + code)
    program = tmp_path / "small"
    program.write_bytes(elf)
    program.chmod(0o755)
    try:
        direct = subprocess.run([program], capture_output=True)
    except OSError:
        pytest.skip("this kernel runs no 32-bit programs")
    if direct.returncode != 5:
        pytest.skip("this kernel runs no 32-bit programs")
    refused(run("./small"), tmp_path, "./small is a 32-bit program")


ASAN = """#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	volatile char *p = malloc(4);
	if (argc > 1) p[atoi(argv[1])] = 1;
	free((void *)p);
	puts("hello");
	return 5;
}
"""


@pytest.mark.parametrize("compiler, flags", [
    ("gcc", ["-fsanitize=address"]), ("gcc", ["-fsanitize=address", "-static-libasan"]),
    ("clang", ["-fsanitize=address"]), ("clang", ["-fsanitize=address", "-shared-libasan"])])
def test_address_sanitizer_program(run, tmp_path, compiler, flags):
    if compiler == "clang":
        names = [name for name in ("clang", "clang-19", "clang-14") if shutil.which(name)]
        if not names:
            pytest.skip("no clang")
        compiler = names[0]
    if "-shared-libasan" in flags:
        folder = subprocess.run([compiler, "-print-file-name=libclang_rt.asan-x86_64.so"],
                                capture_output=True, text=True).stdout.strip()
        flags = [*flags, f"-Wl,-rpath,{os.path.dirname(folder)}"]
    program = compile_c(tmp_path / "asan", ASAN, "-g", *flags, compiler=compiler)
    direct = subprocess.run([program], capture_output=True, text=True)
    if direct.returncode != 5:
        pytest.skip("the sanitizer does not work here")
    done = run("./asan")
    assert (done.returncode, done.stdout) == (5, "hello\n"), done.stderr
    assert operators(tmp_path / "run.plumb")["stub::loaded"] == 1
    assert "does not come first" not in done.stderr
    shared = "-static-libasan" not in flags and (compiler == "gcc" or "-shared-libasan" in flags)
    assert ("AddressSanitizer" in done.stderr) == shared
    # Also where another program starts it.
    done = run("sh", "-c", "./asan; exit $?")
    assert (done.returncode, done.stdout) == (5, "hello\n"), done.stderr
    # And it still finds what it is for.
    done = run("./asan", "4")
    assert done.returncode == subprocess.run([program, "4"], capture_output=True).returncode != 5
    assert "heap-buffer-overflow" in done.stderr


# ---- what the program sees ----

def test_descriptors_terminal_group_and_signals_are_the_programs_own(run, tmp_path):
    look = ("import os, re\n"
            "print(sorted(os.listdir('/proc/self/fd')))\n"
            "print(re.findall('Sig(?:Blk|Ign|Cgt):.*', open('/proc/self/status').read()))\n"
            "print(os.getsid(0), os.getcwd(), os.umask(0), os.nice(0))\n")
    plain = run_command(PYTHON, "-c", look, cwd=tmp_path)
    done = run(PYTHON, "-c", look)
    assert done.stdout == plain.stdout
    ignored = ("import os, signal\n"
               "for n in (signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE, signal.SIGINT):\n"
               "    signal.signal(n, signal.SIG_IGN)\n"
               "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGTERM])\n"
               "import sys; os.execvp(sys.argv[1], sys.argv[1:])\n")
    plain = run_command(PYTHON, "-c", ignored, PYTHON, "-c", look, cwd=tmp_path)
    done = run_command(PYTHON, "-c", ignored, PLUMB, "run", "-o", "run.plumb", "--", PYTHON, "-c",
                       look, cwd=tmp_path, env={"PLUMB_LIBRARY": str(LIBPLUMB)})
    assert (done.returncode, done.stdout) == (0, plain.stdout)


def test_process_group_is_ours(run):
    done = run(PYTHON, "-c", "import os; print(os.getpgrp() == os.getpgid(os.getppid()))")
    assert done.stdout == "True\n"


def test_closed_standard_descriptors(stub, tmp_path):
    program = compile_c(tmp_path / "closed", "#include <fcntl.h>\nint main(void) { int open = 0;"
                        " for (int i = 0; i < 64; i++) open += (fcntl(i, F_GETFD) >= 0) << (i < 3 ? i : 3);"
                        " return open; }\n")
    for close, code in (("0<&- 1>&- 2>&-", 0), ("0<&-", 6), ("1>&-", 5), ("2>&-", 3)):
        line = f"exec {PLUMB} run -o run.plumb -- {program} {close}"
        done = run_command("sh", "-c", line, cwd=tmp_path, env={"PLUMB_LIBRARY": str(stub)})
        assert done.returncode == code, close
        assert operators(tmp_path / "run.plumb") == {"stub::loaded": 1}


def test_stderr_whose_reader_left(stub, tmp_path):
    line = f"{{ {PLUMB} run -o run.plumb -- sh -c 'exit 9' 2>&1 1>&3; echo $? >code; }} 3>&1 | true"
    run_command("sh", "-c", line, cwd=tmp_path, env={"PLUMB_LIBRARY": str(stub)})
    assert (tmp_path / "code").read_text() == "9\n"
    assert (tmp_path / "run.plumb").exists()


def environment_of(done):
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


def test_variables_that_were_there_are_kept(run, stub, tmp_path):
    extra = compile_c(tmp_path / "extra.so", "int extra;\n", "-shared", "-fPIC")
    seen = environment_of(run("env", env={
        "LD_PRELOAD": str(extra), "CUDA_INJECTION64_PATH": "/opt/tool.so",
        "NVTX_INJECTION64_PATH": "/opt/nvtx.so"}))
    assert seen["LD_PRELOAD"] == f"{extra}:{stub}"
    assert seen["CUDA_INJECTION64_PATH"] == str(stub)
    assert seen["PLUMB_CHAIN_CUDA_INJECTION64_PATH"] == "/opt/tool.so"
    assert seen["NVTX_INJECTION64_PATH"] == str(stub)
    assert seen["PLUMB_CHAIN_NVTX_INJECTION64_PATH"] == "/opt/nvtx.so"
    assert (seen["PLUMB_LIMIT"], seen["PLUMB_FLUSH_MS"]) == (str(256 << 20), "100")
    assert seen["ASAN_OPTIONS"] == "verify_asan_link_order=0"
    assert "PLUMB_GPU" not in seen and "PLUMB_KEEP_CUPTI" not in seen

    seen = environment_of(run("env", options=["--no-gpu", "--limit", "8M", "--flush-ms", "20"],
                              env={"CUDA_INJECTION64_PATH": "/opt/tool.so",
                                   "ASAN_OPTIONS": "detect_leaks=0"}))
    assert seen["LD_PRELOAD"] == str(stub)
    assert seen["ASAN_OPTIONS"] == "detect_leaks=0:verify_asan_link_order=0"
    assert seen["CUDA_INJECTION64_PATH"] == "/opt/tool.so"
    assert seen["NVTX_INJECTION64_PATH"] == str(stub), "ranges are there without a GPU, too"
    assert "PLUMB_CHAIN_NVTX_INJECTION64_PATH" not in seen
    assert (seen["PLUMB_GPU"], seen["PLUMB_LIMIT"], seen["PLUMB_FLUSH_MS"]) == ("0", "8388608", "20")

    seen = environment_of(run("env", options=["--gpu=off"], env={"CUDA_INJECTION64_PATH": "/opt/tool.so"}))
    assert (seen["PLUMB_GPU"], seen["CUDA_INJECTION64_PATH"]) == ("0", "/opt/tool.so")
    seen = environment_of(run("env", options=["--gpu=activity"]))
    assert "PLUMB_GPU" not in seen and seen["CUDA_INJECTION64_PATH"] == str(stub)

    seen = environment_of(run("env", options=["--keep-cupti"]))
    assert seen["PLUMB_KEEP_CUPTI"] == "1" and "PLUMB_CHAIN_CUDA_INJECTION64_PATH" not in seen


def test_run_inside_a_run(run, stub, tmp_path):
    """The inner one has the program to itself, and the outer's tool is chained, not the collector."""
    done = run(PLUMB, "run", "-o", "inner.plumb", "--", "env", options=["-o", "outer.plumb"],
               env={"CUDA_INJECTION64_PATH": "/opt/tool.so",
                    "NVTX_INJECTION64_PATH": "/opt/nvtx.so"})
    seen = environment_of(done)
    assert seen["LD_PRELOAD"] == str(stub)
    assert seen["PLUMB_CHAIN_CUDA_INJECTION64_PATH"] == "/opt/tool.so"
    assert seen["PLUMB_CHAIN_NVTX_INJECTION64_PATH"] == "/opt/nvtx.so"
    assert operators(tmp_path / "inner.plumb") == {"stub::loaded": 1}


def test_collector_under_a_path_that_ld_preload_cannot_hold(stub, tmp_path):
    home = tmp_path / "a b:c $d"
    home.mkdir()
    shutil.copy2(PLUMB, home / "plumb")
    shutil.copy2(stub, home / "libplumb.so")
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    # First with a run folder whose own path is plain, then with none.
    for cwd in (tmp_path, home):
        done = run_command(home / "plumb", "run", "-o", "run.plumb", "--", "env", cwd=cwd,
                           env={"XDG_RUNTIME_DIR": str(runtime)})
        assert done.returncode == 0, done.stderr
        preload = environment_of(done)["LD_PRELOAD"]
        assert not set(" :$") & set(preload)
        assert preload.startswith(str(runtime if cwd == home else tmp_path / ".plumb-"))
        assert operators(cwd / "run.plumb") == {"stub::loaded": 1}
        assert list(runtime.iterdir()) == [] and run_folders(cwd) == []


# ---- ranks ----

@pytest.mark.parametrize("variable", ["RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK"])
def test_ranks_write_files_of_their_own_and_settle_joins_them(run, tmp_path, variable):
    for rank in (0, 1):
        done = run("sh", "-c", f"exit {rank}", env={variable: str(rank)})
        assert done.returncode == rank
        assert operators(tmp_path / f"run.plumb.{rank}") == {"stub::loaded": 1}
    assert not (tmp_path / "run.plumb").exists()
    done = run_command(PLUMB, "settle", "run.plumb.0", "run.plumb.1", "-o", "run.plumb", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert operators(tmp_path / "run.plumb") == {"stub::loaded": 2}
    report = json.loads(run_command(PLUMB, "report", tmp_path / "run.plumb", "--json").stdout)
    assert sorted(process["rank"] for process in report["processes"]) == [0, 1]
    assert report["run"]["exit_code"] == 1


# ---- signals ----

COUNT = """
import os, signal, sys, time
seen = []
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGQUIT):
    signal.signal(number, lambda n, frame: seen.append(n))
open("ready", "w").write(str(os.getpid()))
end = time.monotonic() + 20
while not seen and time.monotonic() < end:
    time.sleep(0.01)
time.sleep(0.3)
print(*map(int, seen), flush=True)
sys.exit(40)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1,
                                    signal.SIGQUIT])
def test_signal_to_plumb_reaches_the_program_once(start, tmp_path, number):
    process = start(PYTHON, "-c", COUNT)
    until((tmp_path / "ready").exists, "the start")
    time.sleep(0.05)
    process.send_signal(number)
    out, _ = process.communicate(timeout=WAIT)
    assert (process.returncode, out) == (40, f"{int(number)}\n")
    assert operators(tmp_path / "run.plumb")["stub::loaded"] == 1


def test_sigterm_ends_an_ordinary_program_with_a_whole_profile(start, tmp_path):
    process = start("sh", "-c", "touch ready; exec sleep 60")
    until((tmp_path / "ready").exists, "the start")
    process.terminate()
    process.communicate(timeout=WAIT)
    assert process.returncode == -signal.SIGTERM
    assert operators(tmp_path / "run.plumb")["stub::loaded"] >= 1
    assert run_facts(tmp_path / "run.plumb")["exit_code"] == 128 + signal.SIGTERM


def test_hangup_that_came_ignored_stays_ignored(start, tmp_path):
    process = start("sh", "-c", "touch ready; sleep 1; exit 3",
                    preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    until((tmp_path / "ready").exists, "the start")
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=WAIT)
    assert process.returncode == 3


def test_ctrl_c_on_a_terminal_reaches_the_program_once(stub, tmp_path):
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.environ.update(clean_environment(PLUMB_LIBRARY=str(stub)))
        os.execv(PLUMB, [str(PLUMB), "run", "-o", "run.plumb", "--", PYTHON, "-c", COUNT])
    until((tmp_path / "ready").exists, "the start")
    time.sleep(0.05)
    os.write(terminal, b"\x03")
    out = b""
    while True:
        try:
            block = os.read(terminal, 4096)
        except OSError:
            break
        if not block:
            break
        out += block
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 40
    assert b"^C2\r\n" in out, out  # the terminal's echo, then the program's "2" for SIGINT
    assert operators(tmp_path / "run.plumb")["stub::loaded"] == 1


def test_signal_flushes_gpu_records_before_it_is_sent_on(start, tmp_path):
    process = start(PYTHON, "-c", "import time; open('ready', 'w'); time.sleep(60)",
                    env={"STUB_GPU": "1"})
    until((tmp_path / "ready").exists, "the start")
    process.terminate()
    process.communicate(timeout=WAIT)
    assert process.returncode == -signal.SIGTERM
    assert operators(tmp_path / "run.plumb") == {"stub::loaded": 1, "stub::flushed": 1}


def test_killed_plumb_leaves_the_program_running_and_settle_finishes(start, tmp_path):
    process = start("sh", "-c", "echo $$ >ready; while [ ! -e go ]; do sleep 0.05; done; touch done",
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until((tmp_path / "ready").exists, "the start")
    process.kill()
    process.wait()
    (tmp_path / "go").touch()
    until((tmp_path / "done").exists, "the program's end")
    until_gone(tmp_path / "ready")
    (folder,) = run_folders(tmp_path)
    done = run_command(PLUMB, "settle", "--remove", folder, "-o", "late.plumb", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert operators(tmp_path / "late.plumb")["stub::loaded"] >= 1
    assert run_facts(tmp_path / "late.plumb")["exit_code"] is None


def test_process_that_outlives_the_program(run, tmp_path):
    done = run("sh", "-c", "sh -c 'echo $$ >began; while [ ! -e go ]; do sleep 0.05; done; touch done' "
               ">/dev/null 2>&1 & while [ ! -e began ]; do sleep 0.05; done; exit 2")
    assert done.returncode == 2
    assert "still runs" in done.stderr
    assert operators(tmp_path / "run.plumb")["stub::loaded"] >= 1
    (folder,) = run_folders(tmp_path)
    command = re.search(r"plumb settle --remove (.*)", done.stderr).group()
    (tmp_path / "go").touch()
    until((tmp_path / "done").exists, "its end")
    until_gone(tmp_path / "began")
    later = run_command("sh", "-c", command.replace("plumb", str(PLUMB), 1), cwd=tmp_path)
    assert later.returncode == 0, later.stderr
    assert run_folders(tmp_path) == []


@pytest.fixture
def slow_disk(tmp_path):
    """A library under which the last step of writing a profile waits for a file "go", half a minute at most."""
    return compile_c(tmp_path / "slow.so", """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>
int rename(const char *from, const char *to)
{
	const struct timespec pause = { 0, 20000000 };
	int (*real)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");
	close(open("slow", O_CREAT | O_WRONLY, 0600));
	for (int i = 0; i < 1500 && access("go", F_OK); i++)
		nanosleep(&pause, NULL);
	return real(from, to);
}
""", "-shared", "-fPIC", "-ldl")


def interrupt(process):
    """Ctrl-C while it settles, until it has warned of the next one."""
    process.send_signal(signal.SIGINT)
    while "Ctrl-C again" not in (line := process.stderr.readline()):
        assert line, "it has ended"


def test_ctrl_c_while_settling_once_is_a_warning(start, tmp_path, slow_disk):
    process = start("sh", "-c", "exit 6", env={"LD_PRELOAD": str(slow_disk)})
    until((tmp_path / "slow").exists, "settling")
    interrupt(process)
    (tmp_path / "go").touch()
    process.communicate(timeout=WAIT)
    assert process.returncode == 6
    assert operators(tmp_path / "run.plumb") == {"stub::loaded": 1}
    assert run_folders(tmp_path) == []


def test_ctrl_c_while_settling_twice_leaves_the_records(start, tmp_path, slow_disk):
    process = start("sh", "-c", "exit 6", env={"LD_PRELOAD": str(slow_disk)})
    until((tmp_path / "slow").exists, "settling")
    interrupt(process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=WAIT)
    assert process.returncode == 6
    assert not (tmp_path / "run.plumb").exists()
    (folder,) = run_folders(tmp_path)
    command = re.search(r"left the records in .*; finish with: (plumb settle .*)", err).group(1)
    later = run_command("sh", "-c", command.replace("plumb", str(PLUMB), 1), cwd=tmp_path)
    assert later.returncode == 0, later.stderr
    assert operators(tmp_path / "run.plumb") == {"stub::loaded": 1}


def test_sigterm_while_settling_changes_nothing(start, tmp_path, slow_disk):
    process = start("sh", "-c", "exit 6", env={"LD_PRELOAD": str(slow_disk)})
    until((tmp_path / "slow").exists, "settling")
    process.terminate()
    time.sleep(0.2)  # in which a fault would show
    (tmp_path / "go").touch()
    process.communicate(timeout=WAIT)
    assert process.returncode == 6
    assert operators(tmp_path / "run.plumb") == {"stub::loaded": 1}


# ---- bad times ----

def test_output_that_becomes_unwritable_keeps_the_records(run, tmp_path):
    (tmp_path / "out").mkdir()
    done = run("sh", "-c", "rmdir out; exit 8",
               options=["-o", "out/run.plumb", "--folder", str(tmp_path)])
    assert done.returncode == 8
    command = re.search(r"finish with: (plumb settle .*)", done.stderr).group(1)
    (folder,) = run_folders(tmp_path)
    assert str(folder) in command
    (tmp_path / "out").mkdir()
    later = run_command("sh", "-c", command.replace("plumb", str(PLUMB), 1), cwd=tmp_path)
    assert later.returncode == 0, later.stderr
    assert operators(tmp_path / "out/run.plumb")["stub::loaded"] == 2  # the shell and rmdir
    assert run_folders(tmp_path) == []


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 4 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk],
                          capture_output=True)
    if done.returncode:
        pytest.skip("may not mount a small file system")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def test_small_disk_reduces_the_limit_in_one_line(run, small_disk):
    done = run("env", cwd=small_disk)
    assert done.returncode == 0
    assert int(environment_of(done)["PLUMB_LIMIT"]) < 4 << 20
    (line,) = [line for line in done.stderr.splitlines() if "limited to" in line]
    assert "--folder" in line and str(small_disk) in line


def test_disk_that_fills_up_loses_nothing_recorded(run, small_disk, tmp_path):
    done = run("sh", "-c", "dd if=/dev/zero of=fill bs=64k 2>/dev/null; exit 6", cwd=small_disk)
    assert done.returncode == 6
    assert "finish with: plumb settle" in done.stderr
    (folder,) = run_folders(small_disk)
    assert not (small_disk / "run.plumb").exists()
    later = run_command(PLUMB, "settle", folder, "-o", tmp_path / "saved.plumb")
    assert later.returncode == 0, later.stderr
    assert operators(tmp_path / "saved.plumb")["stub::loaded"] >= 1


def test_full_disk_is_125_before_the_start(run, small_disk):
    subprocess.run("dd if=/dev/zero of=fill bs=64k", shell=True, cwd=small_disk, capture_output=True)
    done = run("touch", "/nowhere/started", cwd=small_disk)
    assert done.returncode == 125
    assert "space" in done.stderr.lower()
    assert run_folders(small_disk) == []


def test_file_size_limit(run, tmp_path):
    line = f"ulimit -f 8192; exec {PLUMB} run -o run.plumb -- sh -c 'ulimit -f; exit 3'"
    done = run("sh", "-c", line, options=["-o", "outer.plumb"])
    assert (done.returncode, done.stdout) == (3, "8192\n")
    assert "ulimit" in done.stderr
    assert operators(tmp_path / "run.plumb")["stub::loaded"] >= 1
