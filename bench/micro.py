#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One operator callback pair and one unchanged Python stack, in ns, plumb beside torch.profiler.

    python3 bench/micro.py [--plumb PATH]

A pair is what `x.add_(1)` costs more when watched, over its five record functions, with the call made
from C's point of view at the same Python depth. A stack is what the same call costs more at a Python
depth of 33 than at a depth of 1. Least of many rounds; each mode in a process of its own.
"""
import argparse
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def rounds(torch, tensor, calls=20000, times=15):
    best = float("inf")
    for _ in range(times):
        before = time.perf_counter_ns()
        for _ in range(calls):
            tensor.add_(1)
        best = min(best, (time.perf_counter_ns() - before) / calls)
    return best


def deep(depth, function, *arguments):
    return deep(depth - 1, function, *arguments) if depth > 1 else function(*arguments)


def work(mode):
    import torch
    torch.set_num_threads(1)
    tensor = torch.ones(4)
    counted = []

    def both():
        with torch.no_grad():
            rounds(torch, tensor, times=1)
            return rounds(torch, tensor), deep(33, rounds, torch, tensor)

    def short():  # torch.profiler keeps every event: few calls, or it is swap that is measured
        with torch.no_grad():
            return rounds(torch, tensor, 2000, 5), deep(33, rounds, torch, tensor, 2000, 5)

    if mode in ("torch", "torchstack"):
        from torch.profiler import ProfilerActivity, profile
        with torch.no_grad():
            rounds(torch, tensor, times=1)
        with profile(activities=[ProfilerActivity.CPU], with_stack=mode == "torchstack"):
            counted = short()
    else:
        counted = both()
    print("RESULT", *counted)


def main():
    if sys.argv[1:2] == ["--work"]:
        return work(sys.argv[2])
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--plumb", default=os.path.join(HERE, "..", "build", "plumb"))
    options = parser.parse_args()
    results = {}
    for mode in ("none", "plumb", "torch", "torchstack"):
        command = [sys.executable, os.path.abspath(__file__), "--work", mode]
        if mode == "plumb":
            command = [options.plumb, "run", "--no-gpu", "-o", "/dev/shm/plumb-micro.plumb", "--"] + command
        output = subprocess.run(command, capture_output=True, text=True)
        lines = [line for line in output.stdout.splitlines() if line.startswith("RESULT")]
        if not lines:
            raise SystemExit(f"{mode}: no result\n{output.stderr[-2000:]}")
        results[mode] = [float(word) for word in lines[0].split()[1:]]
    if os.path.exists("/dev/shm/plumb-micro.plumb"):
        os.remove("/dev/shm/plumb-micro.plumb")
    base = results["none"]
    print("| mode | add_, depth 1 | one callback pair | depth 33 over depth 1 |")
    print("|---|---|---|---|")
    for mode, (flat, nested) in results.items():
        pair = "–" if mode == "none" else f"{(flat - base[0]) / 5:.0f} ns"
        stack = "–" if mode == "none" else f"{(nested - flat) - (base[1] - base[0]):.0f} ns"
        print(f"| {mode} | {flat:.0f} ns | {pair} | {stack} |")


if __name__ == "__main__":
    main()
