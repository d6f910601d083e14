#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What looking at threads from outside costs, on Linux: at those that wait (`plumb run --cpu`), and at the main thread.

    python3 bench/waiting.py [--python PYTHON] [--plumb PATH] [--seconds S] [--rounds N] [--main]

`looks`: programs of 1, 16 and 400 threads that sleep in short turns, a worst case because each look has
to read all their frames anew. What counts is the CPU time of the `plumb run` process beside them, as a
share of one processor; what it needs to start and to write the profile is measured by a program that
ends at once, and taken off. `loop`: a program that computes and waits in turns, 90 % to 10 %; CPU time
of the program for the same work, with --cpu against without plumb, alternating. `main`: a default
recording of a program whose main thread changes its stack all the time, STACK calls deep: CPU time of
`plumb run` for one look (host.time and the values for windows), and how many looks there were.
"""
import argparse
import os
import sqlite3
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


STACK = (5, 50, 500)
CHANGES = """
import ctypes, math, sys, time
sys.path.insert(0, sys.argv[3])
import plumb
with plumb.span("work"): pass
sys.setrecursionlimit(10000)
end = time.monotonic() + float(sys.argv[2])
def leaf(x): return math.sin(x)
def work():
    while time.monotonic() < end:
        for i in range(100): leaf(i)
def deep(n): deep(n - 1) if n else work()
deep(int(sys.argv[1]))
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


def main_thread(arguments, folder):
    path = os.path.join(folder, "run.plumb")
    plumb = [arguments.plumb, "run", "-q", "--no-gpu", "-o", path, "--", arguments.python, "-c", CHANGES]
    package = os.path.join(HERE, "..", "python")
    for depth in STACK:
        costs, counts = [], []
        for _ in range(arguments.rounds):
            looks, times = [], []
            for seconds in (str(arguments.seconds), "0.3"):
                times.append(run([*plumb, str(depth), seconds, package])[1])
                with sqlite3.connect(path) as profile:
                    looks.append(profile.execute("SELECT SUM(count) FROM ledger WHERE source = 'host.sample' AND "
                                                 "fate = 'received'").fetchone()[0])
            costs.append((times[0] - times[1]) / (looks[0] - looks[1]) * 1e6)
            counts.append(looks[0] / arguments.seconds)
        print(f"main   {depth:4} calls deep  {statistics.median(costs):6.0f} us a look  "
              f"({min(costs):.0f}-{max(costs):.0f}), {statistics.median(counts):.1f} looks a second")


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
    parser.add_argument("--main", action="store_true", help="only the main thread")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if not arguments.main:
            looks(arguments, folder)
            loop(arguments, folder)
        main_thread(arguments, folder)


if __name__ == "__main__":
    main()
