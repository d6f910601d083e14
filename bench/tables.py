#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the standard answers cost on a profile of a million spans, beside what it costs to load the trace at all.

    python3 bench/tables.py [--plumb PATH] [--spans N] [--hta PYTHON] [--trace FILE] [--rounds N]

Makes a trace by repeating a recorded one until it has N spans (1 000 000), imports it, and then in turn:
`plumb tables all`, `plumb iters` and `plumb report` of the profile, `plumb import` of the trace, and Python's json
and HolisticTraceAnalysis (--hta: a Python that has it), which only load it. Wall time on one core; the ratio is to the
import of the same round, so that a machine that drifts hurts all alike.
"""
import argparse
import math
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile

from imports import HERE, HTA, LOADERS, RECORDED, enlarge, once


def spans_of(profile):
    return sqlite3.connect(profile).execute("SELECT sum(count) FROM span_chunks WHERE source = 'trace'").fetchone()[0]


def make(options, folder):
    """A trace of so many spans and its profile: (spans, bytes of text)."""
    trace, out = os.path.join(folder, "trace.json"), os.path.join(folder, "out.plumb")
    size = enlarge(options.trace, 0, trace)
    subprocess.run([options.plumb, "import", trace, "-o", out], check=True)
    size = enlarge(options.trace, (math.ceil(options.spans / spans_of(out)) + 0.5) * size / 1e6, trace)
    subprocess.run([options.plumb, "import", trace, "-o", out], check=True)
    return trace, out, spans_of(out), size


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plumb", default=os.path.join(HERE, "..", "build", "plumb"))
    parser.add_argument("--spans", type=int, default=1000000)
    parser.add_argument("--hta", metavar="PYTHON", help="a Python with HolisticTraceAnalysis")
    parser.add_argument("--trace", default=RECORDED, help="of PyTorch's profiler, to be repeated")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trace, out, spans, size = make(options, folder)
        again = os.path.join(folder, "again.plumb")
        ways = {"plumb tables all": [options.plumb, "tables", out, "all", "--json"],
                "plumb iters": [options.plumb, "iters", out, "--json"],
                "plumb report": [options.plumb, "report", out, "--json"],
                "plumb import": [options.plumb, "import", trace, "-o", again],
                "Python's json (parses)": [sys.executable, "-c", LOADERS["json"], trace]}
        if options.hta:
            ways["HolisticTraceAnalysis (loads)"] = [options.hta, "-c", HTA, trace]
        took = {way: [] for way in ways}
        for number in range(options.rounds):
            for way, command in ways.items():
                if number and "plumb" not in way and sum(took[way]) > 20:
                    continue
                took[way].append(once(command, 1)[0])
    print(f"{spans} spans, {size / 1e6:.0f} MB of JSON, {options.rounds} rounds in turn, median (least–greatest)\n")
    print("| | seconds | ratio to the import |\n|---|---|---|")
    for way, seconds in took.items():
        ratio = statistics.median(own / base for own, base in zip(seconds, took["plumb import"]))
        print(f"| {way} | {statistics.median(seconds):.3f} ({min(seconds):.3f}–{max(seconds):.3f}) | {ratio:.2f}× |")


if __name__ == "__main__":
    main()
