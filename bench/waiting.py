#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What looking at waiting threads costs (`plumb run --cpu`), on Linux.

    python3 bench/waiting.py [--python PYTHON] [--plumb PATH] [--seconds S] [--rounds N]

`looks`: programs of 1, 16 and 400 threads that sleep in short turns, a worst case because each look has
to read all their frames anew. What counts is the CPU time of the `plumb run` process beside them, as a
share of one processor; what it needs to start and to write the profile is measured by a program that
ends at once, and taken off. `loop`: a program that computes and waits in turns, 90 % to 10 %; CPU time
of the program for the same work, with --cpu against without plumb, alternating.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
THREADS = (1, 16, 400)

SLEEPERS = """
import ctypes, sys, threading, time
threads, end = int(sys.argv[1]), time.monotonic() + float(sys.argv[2])
def deep(n):
    if n: return deep(n - 1)
    while time.monotonic() < end: time.sleep(0.02 * threads)
def work():
    stop = time.thread_time() + 0.02
    while time.thread_time() < stop: pass
    deep(20)
all = [threading.Thread(target=work) for _ in range(threads - 1)]
[t.start() for t in all]
work()
[t.join() for t in all]
"""
LOOP = """
import ctypes, sys, time
def turn(): return sum(i * i for i in range(20000))
begin = time.process_time()
for i in range(int(sys.argv[1])):
    turn()
    if i % 8 == 7: time.sleep(0.001)
print(time.process_time() - begin)
"""


def run(command):
    """(lines that it prints, CPU seconds of the process itself without its children)."""
    measure = (
        "import os, subprocess, sys\n"
        "done = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)\n"
        "out = done.stdout.read().decode()\n"
        "stat = open(f'/proc/{done.pid}/schedstat').read().split()[0]\n"
        "done.wait()\n"
        "print(stat); print(out, end='')\n")
    out = subprocess.run([sys.executable, "-c", measure, *command], capture_output=True, text=True,
                         check=True).stdout.splitlines()
    return out[1:], int(out[0]) / 1e9


def looks(arguments, folder):
    plumb = [arguments.plumb, "run", "--cpu", "--no-gpu", "--limit", "1G", "-o",
             os.path.join(folder, "run.plumb"), "--", arguments.python, "-c", SLEEPERS]
    for threads in THREADS:
        shares = []
        for _ in range(arguments.rounds):
            _, long = run([*plumb, str(threads), str(arguments.seconds)])
            _, short = run([*plumb, str(threads), "0"])
            shares.append((long - short) / arguments.seconds)
        print(f"looks  {threads:4} threads  {100 * statistics.median(shares):6.2f} % of a processor  "
              f"({100 * min(shares):.2f}-{100 * max(shares):.2f})")


def loop(arguments, folder):
    program = [arguments.python, "-c", LOOP, "1500"]
    plumb = [arguments.plumb, "run", "--cpu", "--no-gpu", "-o", os.path.join(folder, "run.plumb"), "--"]
    ratios = []
    for _ in range(arguments.rounds):
        alone, watched = (float(run([*prefix, *program])[0][0]) for prefix in ([], plumb))
        ratios.append(watched / alone)
    print(f"loop   ratio {statistics.median(ratios):.3f}  ({min(ratios):.3f}-{max(ratios):.3f})")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--plumb", default=os.path.join(HERE, "..", "build", "plumb"))
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        looks(arguments, folder)
        loop(arguments, folder)


if __name__ == "__main__":
    main()
