# SPDX-License-Identifier: Apache-2.0
"""Never hurt the host: a program whose threads launch, copy and compute on the stand-in driver, under
the collector, while something goes wrong. It has to print and return what it does without the
collector, and what it recorded has to settle.

PLUMB_TORTURE=N runs N times as many of each kind.
"""
import concurrent.futures
import errno
import functools
import json
import os
import random
import signal
import subprocess

import pytest
from conftest import BUILD, LIBPLUMB, clean_environment, run_command, PLUMB

FOLDER = BUILD / "torture"
TIMES = int(os.environ.get("PLUMB_TORTURE", "1"))
# What a run may be asked to record on top of the rest.
EXTRAS = [{}, {"PLUMB_CPU_HZ": "250"}, {"PLUMB_LAYERS": "15"},
          {"PLUMB_CPU_HZ": "1000", "PLUMB_LAYERS": "15", "PLUMB_TRACE": "all", "PLUMB_MEMORY": "1",
           "PLUMB_SHAPES": "1"}]


def environment(folder, **more):
    preload = " ".join(filter(None, [more.pop("first", ""), str(LIBPLUMB)]))
    return clean_environment(LD_PRELOAD=preload, PLUMB_FOLDER=str(folder),
                             PLUMB_LIMIT=str(8 << 20), PLUMB_FLUSH_MS="5",
                             CUDA_INJECTION64_PATH=str(LIBPLUMB),
                             LD_LIBRARY_PATH=str(BUILD / "mock/13.0"),
                             # The collector is not built for it: its atomics would go unseen.
                             TSAN_OPTIONS="ignore_noninstrumented_modules=1", ASAN_OPTIONS="verify_asan_link_order=0",
                             **more)


def run(words, env, limit=60):
    done = subprocess.run([str(word) for word in words], env=env, capture_output=True, text=True,
                          timeout=limit, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


@functools.cache
def reference(seed, what, program="program"):
    return run([FOLDER / program, seed, what], clean_environment())


def settled(folder, path):
    """Settles what lies in a folder; the report, or None when nothing was captured."""
    done = run_command(PLUMB, "settle", folder, "-o", path)
    assert done.returncode in (0, 3), done.stderr
    if done.returncode == 3:
        return None
    report = run_command(PLUMB, "report", path, "--json", "--by", "kernel", "--top", "0")
    assert report.returncode in (0, 3), report.stderr
    return json.loads(report.stdout)


def in_parallel(cases, one):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for case, problem in zip(cases, pool.map(one, cases)):
            assert problem is None, (case, problem)


def same(got, wanted):
    return None if got[:2] == wanted[:2] else (got, wanted)


def cases(kind, count):
    chance = random.Random(kind)
    return [(number, chance.randrange(1, 1000), chance.choice(EXTRAS),
             chance.randrange(1 << 30)) for number in range(count * TIMES)]


@pytest.fixture
def regions(tmp_path):
    folder = tmp_path / "regions"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("what", ["plain", "signals", "forks", "forking", "library"])
def test_disturbed(regions, tmp_path, what):
    action = f"library:{FOLDER / 'library.so'}" if what == "library" else what

    def one(case):
        _, seed, extra, _ = case
        return same(run([FOLDER / "program", seed, action], environment(regions, **extra)),
                    reference(seed, action))
    in_parallel(cases(what, 60), one)
    report = settled(regions, tmp_path / "out.plumb")
    assert len(report["processes"]) >= 60 * TIMES
    assert {row["name"] for row in report["rows"]} == {"gemm", "relu", "softmax"}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGSEGV,
                                    signal.SIGABRT, 0])
def test_ended(regions, tmp_path, number):
    """By a signal at any moment, or by _exit (0)."""
    def one(case):
        _, seed, extra, after = case
        after %= 9000
        action = f"end:{int(number)}:{after}" if number else f"leave:{after}"
        code, out, _ = run([FOLDER / "program", seed, action], environment(regions, **extra))
        wanted = -int(number) if number else 7
        return None if code == wanted and not out else (code, out)
    in_parallel(cases(f"end {number}", 50), one)
    settled(regions, tmp_path / "out.plumb")


FAULTS = [("mmap", errno.ENOMEM), ("madvise", errno.ENOSPC), ("madvise", errno.EIO),
          ("madvise", errno.ENOMEM), ("ftruncate", errno.ENOSPC), ("open", errno.EMFILE),
          ("open", errno.EACCES), ("write", errno.EIO), ("read", errno.EIO),
          ("pthread_key_create", errno.EAGAIN), ("any", errno.ENOMEM)]


@pytest.mark.parametrize("function,error", FAULTS, ids=[f"{f}-{errno.errorcode[e]}" for f, e in FAULTS])
def test_failing_calls(regions, tmp_path, function, error):
    """The Nth call of a function fails, once, or from then on."""
    def one(case):
        number, seed, extra, chance = case
        fault = f"{function}:{1 + number // 2}:{error}" + (":always" if number % 2 else "")
        env = environment(regions, first=str(FOLDER / "faults.so"), FAULT=fault, **extra)
        return same(run([FOLDER / "program", seed, "plain"], env), reference(seed, "plain"))
    in_parallel(cases(f"{function} {error}", 44), one)
    # What was left without a region says so in a file of its own.
    if list(regions.iterdir()):
        done = run_command(PLUMB, "settle", regions, "-o", tmp_path / "out.plumb")
        assert done.returncode in (0, 2, 3), done.stderr


@pytest.mark.parametrize("what", ["stacks", "masks"])
def test_samples_keep_out_of_the_way(regions, tmp_path, what):
    """Of little stacks, and of what the program does with signals, while it is sampled as often as can be."""
    def one(case):
        _, seed, extra, _ = case
        return same(run([FOLDER / "program", seed, what], environment(regions, **{**extra, "PLUMB_CPU_HZ": "4000"})),
                    reference(seed, what))
    in_parallel(cases(what, 40), one)
    assert settled(regions, tmp_path / "out.plumb")


def test_ten_thousand_threads(regions, tmp_path):
    action = "storm:10000"
    for extra in EXTRAS[0], EXTRAS[3]:
        assert same(run([FOLDER / "program", 5, action], environment(regions, **extra)),
                    reference(5, action)) is None
    report = settled(regions, tmp_path / "out.plumb")
    small, = [row for row in report["rows"] if row["name"] == "small"]
    lost = sum(row["dropped"] for row in report["ledger"] if row["source"] in
               ("gpu.launch", "region", "thread", "value", "gpu.kernel"))
    counted = small["exclusive"]["gpu.time"]["count"]
    assert counted == 20000 or (lost and counted <= 20000)


@pytest.mark.parametrize("sanitizer", ["address", "undefined", "thread"])
def test_program_under_a_sanitizer(regions, tmp_path, sanitizer):
    """The program's own sanitizer finds nothing in it that was not there before."""
    runtime = {"address": "libasan.so", "thread": "libtsan.so"}.get(sanitizer)
    first = ""
    if runtime:
        first = subprocess.run(["gcc", f"-print-file-name={runtime}"], capture_output=True, text=True,
                               check=True).stdout.strip()
    program = f"program-{sanitizer}"
    wanted = reference(3, "plain", program)
    if wanted[0] != 7:
        pytest.skip(f"the sanitizer does not run here: {wanted[2].strip().splitlines()[:1]}")

    def one(case):
        _, seed, extra, _ = case
        got = run([FOLDER / program, seed, "plain"], environment(regions, first=first, **extra))
        return same(got, reference(seed, "plain", program)) or (got[2] or None)
    in_parallel(cases(sanitizer, 15), one)
    assert settled(regions, tmp_path / "out.plumb")
