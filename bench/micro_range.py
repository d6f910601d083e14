#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a range costs: NVTX's and plumb's own, in ns, without a tool, with a trivial one, and with plumb.

    python3 bench/micro_range.py [--plumb PATH] [--processes N]

C calls have no Python above them. Python's spans are called from a depth of 3, with the walk of the Python
stack that they cause. Least of many rounds in several processes, the modes in turn.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CALLS, ROUNDS = 500, 500  # short rounds: some are not interrupted


def least(call):
    best = float("inf")
    for _ in range(ROUNDS):
        before = time.perf_counter_ns()
        for _ in range(CALLS):
            call()
        best = min(best, (time.perf_counter_ns() - before) / CALLS)
    return best


def work():
    import plumb

    def empty():
        pass

    def span():
        with plumb.span("range"):
            pass

    def metric():
        plumb.metric("metric", 1)

    loop = least(empty)
    print("RESULT python span", least(span) - loop)
    print("RESULT python metric", least(metric) - loop)


def build(folder):
    done = subprocess.run([ROOT / "scripts/fetch-nvtx", "include"], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr.strip())
    flags = ["-O2", f"-I{ROOT}/include", "-isystem", done.stdout.strip(), str(ROOT / "bench/micro_range.c"),
             "-ldl"]
    subprocess.run(["gcc", "-o", folder / "ranges", *flags], check=True)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", folder / "tool.so", *flags], check=True)


def run(mode, plumb, folder):
    """{name: ns} of one process of each program."""
    results = {}
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "python"))
    environment.pop("NVTX_INJECTION64_PATH", None)
    if mode == "trivial":
        environment["NVTX_INJECTION64_PATH"] = str(folder / "tool.so")
    for command in ([folder / "ranges"], [sys.executable, os.path.abspath(__file__), "--work"]):
        if mode == "plumb":
            command = [plumb, "run", "--no-gpu", "-o", folder / "x.plumb", "--", *command]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              cwd=folder, env=environment)
        for line in done.stdout.splitlines():
            if line.startswith("RESULT "):
                name, number = line[7:].rsplit(" ", 1)
                results[name] = float(number)
        if done.returncode:
            raise SystemExit(f"{mode}: {done.stderr[-2000:]}")
    return results


def main():
    if sys.argv[1:2] == ["--work"]:
        return work()
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--plumb", default=str(ROOT / "build/plumb"))
    parser.add_argument("--processes", type=int, default=5)
    options = parser.parse_args()
    modes = ("none", "trivial", "plumb")
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        build(folder)
        for _ in range(options.processes):
            for mode in modes:
                for name, number in run(mode, os.path.abspath(options.plumb), folder).items():
                    key = name, mode
                    found[key] = min(number, found.get(key, number))
    print("| call | no tool | trivial tool | plumb |")
    print("|---|---|---|---|")
    for name in dict.fromkeys(name for name, _ in found):
        print(f"| {name} | " + " | ".join(
            f"{found[name, mode]:.1f} ns" if mode != "trivial" or name.startswith("nvtx") else "–"
            for mode in modes) + " |")


if __name__ == "__main__":
    main()
