#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What plumb iters takes for a profile of ten million kernels, with the critical path and without it.

    python3 bench/large.py --bench build/bench_path [--plumb PATH]... [--kernels N] [--rounds N]

build/bench_path writes the profile; bench/path.c says how to build it. Several --plumb are run in turn, so that two
builds can be compared. Prints processor time (the processor's, of the user's and the system's side) and peak memory.
"""
import argparse
import os
import statistics
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def once(command):
    """(processor time in s, of it the user's, peak memory in bytes) of one command."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{command} failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_utime, usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", required=True, help="build/bench_path")
    parser.add_argument("--plumb", action="append")
    parser.add_argument("--kernels", type=int, default=10000000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    programs = options.plumb or [os.path.join(HERE, "..", "build", "plumb")]
    with tempfile.TemporaryDirectory() as folder:
        profile = os.path.join(folder, "big.plumb")
        subprocess.run([options.bench, str(options.kernels), profile], check=True)
        ways = [(f"{program}, {name}", [program, "iters", "--json", *more, profile]) for program in programs
                for name, more in (("without the path", ["--path-spans=0"]), ("with the path", []))]
        runs = {name: [] for name, _ in ways}
        for _ in range(options.rounds):
            for name, command in ways:
                runs[name].append(once(command))
    print("| | processor time | the user's side | peak memory |\n|---|---|---|---|")
    for name, measured in runs.items():
        total, user, peak = zip(*measured)
        print(f"| {name} | {statistics.median(total):.2f} s ({min(total):.2f}–{max(total):.2f}) | "
              f"{statistics.median(user):.2f} s | {max(peak) / 1e9:.2f} GB |")


if __name__ == "__main__":
    main()
