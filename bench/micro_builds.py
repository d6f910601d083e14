#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What one watched operator costs under several builds of plumb, in ns: has a change made it slower?

    python3 bench/micro_builds.py build/plumb other/plumb … [--starts N] [--rounds N]

The operator is `torch.add(a, b, out=c)` on four numbers. In each start every build has a process of its
own, and one runs without plumb; they take turns, block by block, by the CPU time of their thread. Where
things happen to lie in memory moves a process by tens of ns, so that starts count, not blocks: a start
gives the median block of each process. Median of the starts, with the middle half.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def work():
    """Answers each line of standard input with the ns a call of a block of that many calls."""
    import torch
    torch.set_num_threads(1)
    a, b, c = torch.ones(4), torch.ones(4), torch.ones(4)
    add = torch.add
    with torch.no_grad():
        for line in sys.stdin:
            calls = int(line)
            before = time.thread_time_ns()
            for _ in range(calls):
                add(a, b, out=c)
            print((time.thread_time_ns() - before) / calls, flush=True)


def start(plumb, folder, number):
    command = [sys.executable, os.path.abspath(__file__), "--work"]
    if plumb:
        command = [os.path.abspath(plumb), "run", "--no-gpu", "-o", f"{folder}/{number}.plumb", "--"] + command
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True)


def block(worker, calls):
    worker.stdin.write(f"{calls}\n")
    worker.stdin.flush()
    return float(worker.stdout.readline())


def one_start(plumbs, options):
    """ns a call without plumb and with each build."""
    with tempfile.TemporaryDirectory() as folder:
        workers = [start(plumb, folder, number) for number, plumb in enumerate([None, *plumbs])]
        for worker in workers:
            block(worker, options.calls)
        rounds = [[block(worker, options.calls) for worker in workers] for _ in range(options.rounds)]
        for worker in workers:
            worker.stdin.close()
            worker.wait()
    return [statistics.median(column) for column in zip(*rounds)]


def spread(numbers, digits):
    low, middle, high = statistics.quantiles(numbers, n=4)
    return f"{middle:.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"


def main():
    if sys.argv[1:2] == ["--work"]:
        return work()
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("plumb", nargs="+")
    parser.add_argument("--starts", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=10000, help="calls of one block")
    options = parser.parse_args()
    starts = [one_start(options.plumb, options) for _ in range(options.starts)]
    print("| build | a call, ns | more than without plumb, ns | more than the first build, ns |")
    print("|---|---|---|---|")
    for number, name in enumerate(["none", *options.plumb]):
        print(f"| {name} | {spread([row[number] for row in starts], 0)} |"
              f" {spread([row[number] - row[0] for row in starts], 0) if number else '–'} |"
              f" {spread([row[number] - row[1] for row in starts], 0) if number > 1 else '–'} |")


if __name__ == "__main__":
    main()
