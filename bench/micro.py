#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One operator callback pair and one unchanged Python stack, in ns, plumb beside torch.profiler.

    python3 bench/micro.py [--plumb PATH] [--processes N]

A pair is what `x.add_(1)` costs more when watched, over its five record functions: it holds what PyTorch
itself spends on calling anybody. Least of many rounds in several processes, the modes in turn.

A stack is what an operator's enter costs more at a Python depth of 33 than at a depth of 3, by plumb's
own clock, which times one callback in 64: from outside, where a stack happens to lie in memory moves
the same loop by 100 ns. torch.profiler's is what asking it for stacks adds to the call, by wall time.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FUNCTIONS = 5  # record functions of one add_
SHALLOW, DEEP = 3, 33


def rounds(tensor, calls, times):
    best = float("inf")
    for _ in range(times):
        before = time.perf_counter_ns()
        for _ in range(calls):
            tensor.add_(1)
        best = min(best, (time.perf_counter_ns() - before) / calls)
    return best


def deep(depth, function, *arguments):
    return deep(depth - 1, function, *arguments) if depth > 1 else function(*arguments)


def work(mode, depth):
    import torch
    torch.set_num_threads(1)
    tensor = torch.ones(4)
    with torch.no_grad():
        if mode in ("torch", "torchstack"):
            from torch.profiler import ProfilerActivity, profile
            with profile(activities=[ProfilerActivity.CPU], with_stack=mode == "torchstack"):
                # It keeps every event: more calls would measure swapping.
                least = deep(depth, rounds, tensor, 1000, 10)
        else:
            least = deep(depth, rounds, tensor, 10000, 20)
    print("RESULT", least)


def run(mode, plumb, depth=SHALLOW):
    """(ns a call, ns of plumb's own clock a Python walk or None) of one process."""
    command = [sys.executable, os.path.abspath(__file__), "--work", mode, str(depth)]
    with tempfile.TemporaryDirectory() as folder:
        profile = os.path.join(folder, "micro.plumb")
        if mode == "plumb":
            command = [plumb, "run", "--no-gpu", "-o", profile, "--"] + command
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
        lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT")]
        if not lines:
            raise SystemExit(f"{mode}: no result\n{done.stderr[-2000:]}")
        own = None
        if mode == "plumb":
            data = json.loads(subprocess.run([plumb, "report", profile, "--json"], check=True,
                                             capture_output=True, text=True).stdout)
            walks, = (row["received"] for row in data["ledger"] if row["source"] == "python")
            own = data["run"]["overhead_ns"] / walks
    return float(lines[0].split()[1]), own


def main():
    if sys.argv[1:2] == ["--work"]:
        return work(sys.argv[2], int(sys.argv[3]))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--plumb", default=os.path.join(HERE, "..", "build", "plumb"))
    parser.add_argument("--processes", type=int, default=5)
    options = parser.parse_args()
    plumb = os.path.abspath(options.plumb)
    least, stacks = {}, []
    for _ in range(options.processes):
        for mode in ("none", "plumb", "torch", "torchstack"):
            call, own = run(mode, plumb)
            least[mode] = min(call, least.get(mode, call))
            if own is not None:
                stacks.append(run(mode, plumb, DEEP)[1] - own)
    print("| mode | add_ | one callback pair | one stack of depth 33 |")
    print("|---|---|---|---|")
    for mode, call in least.items():
        pair = "–" if mode == "none" else f"{(call - least['none']) / FUNCTIONS:.0f} ns"
        stack = "–"
        if mode == "plumb":
            stack = f"{sorted(stacks)[len(stacks) // 2]:.0f} ns"
        elif mode == "torchstack":
            stack = f"{call - least['torch']:.0f} ns"
        print(f"| {mode} | {call:.0f} ns | {pair} | {stack} |")


if __name__ == "__main__":
    main()
