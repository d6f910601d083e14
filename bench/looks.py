#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs `plumb run` to look at values, for windows: CPU time and memory against the number of values.

    python3 bench/looks.py [--python PYTHON] [--plumb PATH] [--seconds S] [--rounds N] [--values N …]

A program without a framework goes round N / 2 ranges of its own, in groups of 100. A range has two values. So every value grows
between two looks, a worst case. The program reads the CPU time of `plumb run`, its parent, when the loop begins and
when it ends: start, end and the profile are not in it. How often plumb looked, and how much memory that took, is in
the ledger. What one look takes is the CPU time of the loop, divided by the looks that fall into it.
"""
import argparse
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = """
import json, os, sys, time
import plumb
spans, seconds = int(sys.argv[1]), float(sys.argv[2])
names = [f"range {i}" for i in range(100)]
def spent():
    with open(f"/proc/{os.getppid()}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0]) / 1e9
begin = 0
while not begin or time.monotonic() < begin + seconds:
    for outer in range(spans // 100):
        with plumb.span(f"group {outer}"):
            for name in names:
                with plumb.span(name): pass
    if not begin:
        cpu, begin = spent(), time.monotonic()
with open(sys.argv[3], "w", encoding="utf-8") as file:
    json.dump({"cpu": spent() - cpu, "wall": time.monotonic() - begin}, file)
"""


def measure(arguments, values, folder):
    """The values that there are; how many looks a second; CPU ms of a look; share of a processor; bytes."""
    told, path = os.path.join(folder, "told.json"), os.path.join(folder, "run.plumb")
    subprocess.run([arguments.plumb, "run", "--quiet", "--no-gpu", "--limit", "1G", "-o", path, "--", arguments.python,
                    "-c", PROGRAM, str(values // 2), str(arguments.seconds), told], check=True,
                   env={**os.environ, "PYTHONPATH": os.path.join(HERE, "..", "python")})
    with open(told, encoding="utf-8") as file:
        found = json.load(file)
    database = sqlite3.connect(path)
    ledger = dict(((source, fate), count) for source, fate, count in database.execute(
        "SELECT source, fate, count FROM ledger WHERE source LIKE 'look%'"))
    # Calls are made of durations when the profile is written.
    there, = database.execute("SELECT COUNT(*) FROM context_values v JOIN metrics m ON m.id = v.metric "
                              "WHERE m.name != 'op.calls'").fetchone()
    wall, = database.execute("SELECT wall_ns / 1e9 FROM run").fetchone()
    database.close()
    assert ledger["look", "attributed"] == ledger["look", "received"], ledger
    rate = ledger["look", "received"] / wall
    return (there, rate, 1000 * found["cpu"] / (rate * found["wall"]), found["cpu"] / found["wall"],
            ledger["look.memory", "received"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--plumb", default=os.path.join(HERE, "..", "build", "plumb"))
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--values", type=int, nargs="+", default=[1000, 10000, 100000])
    arguments = parser.parse_args()
    print("| values | looks each second | CPU time of a look: median (min–max) | share of one processor | memory |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for values in arguments.values:
            rounds = [measure(arguments, values, folder) for _ in range(arguments.rounds)]
            there, rate, looks, share, memory = zip(*rounds)
            print(f"| {there[0]} | {statistics.median(rate):.1f} | {statistics.median(looks):.2f} ms "
                  f"({min(looks):.2f}–{max(looks):.2f}) | {100 * statistics.median(share):.2f} % | "
                  f"{statistics.median(memory) / 2 ** 20:.1f} MiB |", flush=True)


if __name__ == "__main__":
    main()
