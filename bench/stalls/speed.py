#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long plumb why takes for one kernel, on one processor.

    python3 bench/stalls/speed.py FILE… [--plumb PATH] [--most N] [--typical N] [--rounds N] [--json FILE]

FILE is a profile or a cubin. Of each, the --most kernels with the most machine code are measured, and --typical ones around
the median. To get cubins out of a library: `cuobjdump -xelf NAME LIBRARY` (`cuobjdump -lelf LIBRARY` lists the names).

`whole` is the time of the whole command, which starts, reads the file, analyses one kernel and writes JSON: the best of
the rounds, because everything else on the machine only adds to it. Times are the processor's (user and system), so that
waiting for others on a busy machine does not count. `analysis` is what is left without the time for the
file's smallest kernel, which needs the same start and the same reading. The goals for the analysis: 30 ms for a kernel,
300 ms for one with more than 8,000 edges.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys

import cubin
import recorded

GOAL, LARGE_GOAL, LARGE = 30, 300, 8000


def timed(command, rounds):
    """(best ms, median ms, what it printed): processor time, on one processor."""
    processor = {min(os.sched_getaffinity(0))}
    times, text = [], b""
    for _ in range(rounds):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              preexec_fn=lambda: os.sched_setaffinity(0, processor))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append((after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1e3)
        if done.returncode != 0:
            return None, None, done.stderr
        text = done.stdout
    return min(times), statistics.median(times), text


def kernels_of(path):
    """({mangled name: bytes of machine code}, options of plumb why for this file)."""
    with open(path, "rb") as file:
        start = file.read(16)
    if start[:4] == b"\x7fELF":
        with open(path, "rb") as file:
            return {name: len(code) for name, code in cubin.texts(file.read()).items()}, ["--static"]
    return {name: len(one.text) for name, one in recorded.functions(path).items() if one.samples}, []


def chosen(sizes, most, typical):
    """The names of the MOST largest and of TYPICAL around the median, largest first."""
    ordered = sorted(sizes, key=lambda name: -sizes[name])
    middle = max(0, len(ordered) // 2 - typical // 2)
    return list(dict.fromkeys(ordered[:most] + ordered[middle:middle + typical]))


def measure(options, path):
    sizes, more = kernels_of(path)
    if not sizes:
        return
    smallest = min(sizes, key=sizes.get)
    least = timed([options.plumb, "why", *more, path, smallest, "--json"], options.rounds)[0]
    for name in chosen(sizes, options.most, options.typical):
        best, median, text = timed([options.plumb, "why", *more, path, name, "--json"], options.rounds)
        if best is None:
            print(f"{name}: {text.decode(errors='replace').strip()}", file=sys.stderr)
            continue
        found = [one for one in json.loads(text)["kernels"] if one.get("mangled") == name]
        if found:
            yield {"file": os.path.basename(path), "kernel": name, "instructions": sizes[name] // recorded.SIZE,
                   "edges": found[0]["edges"], "edges_kept": found[0]["edges_kept"], "best_ms": best, "median_ms": median,
                   "analysis_ms": None if least is None else max(0.0, best - least)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--plumb", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build", "plumb"))
    parser.add_argument("--most", type=int, default=5)
    parser.add_argument("--typical", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json")
    options = parser.parse_args()
    start = timed([options.plumb, "--version"], options.rounds)[0]
    print(f"start of the program: {'unknown' if start is None else f'{start:.1f} ms'}\n")
    print("| kernel | instructions | edges | whole | analysis | goal |\n| --- | --- | --- | --- | --- | --- |")
    found, missed = [], 0
    for path in options.files:
        for one in measure(options, path):
            goal = LARGE_GOAL if (one["edges"] or 0) > LARGE else GOAL
            right = one["analysis_ms"] is not None and one["analysis_ms"] <= goal
            missed += not right
            analysis = "unknown" if one["analysis_ms"] is None else f"{one['analysis_ms']:.1f} ms"
            found.append({**one, "goal_ms": goal})
            edges = "unknown" if one["edges"] is None else f"{one['edges']:,}"
            print(f"| {one['kernel'][:60]} | {one['instructions']:,} | {edges} | {one['best_ms']:.1f} ms | "
                  f"{analysis} | {goal} ms{'' if right else ', missed'} |", flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"start_ms": start, "kernels": found}, file, indent=1)
    if not found:
        sys.exit("no kernel was measured: give profiles of plumb run --stalls, or cubins")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
