#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is level M of `plumb levels` the program without a profiler? Wants PyTorch with CUDA.

    python3 tests/accuracy/levels.py [--plumb COMMAND] [--python PYTHON] [--runs N] [--batch N] [--folder DIR] [--json FILE]

A ResNet-50 writes the time of each of its iterations into a file. It runs alone N times, and then by plumb levels with N runs at each
level, and then alone N times again. Prints PASS or FAIL for each fact, and exits 0 or 1:

    same run    the iteration of M is within 1 % of what the program itself measured in the runs at M
    unprofiled  the iteration of M is within 1 % of the program alone, or the interval of their difference has 0 in it
                and is at most 1 % wide on each side
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

LIMIT = 0.01
PROGRAM = """
import os, sys, time
import torch, torchvision
batch, steps, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.manual_seed(0)
model = torchvision.models.resnet50().cuda().eval()
images = torch.randn(batch, 3, 224, 224, device="cuda")
times = []
with torch.no_grad():
    for _ in range(steps):
        start = time.perf_counter()
        model(images)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
maps = open("/proc/self/maps").read()  # level M counts launches, and no more
level = "deeper" if "libplumb" in maps else "M" if "plumb-counter" in maps else "alone"
with open(path, "a") as file:
    print(level, sum(times[10:]) / len(times[10:]), file=file)
"""


def interval(values):
    """Mean and half the width of its 95 % interval (normal)."""
    mean = statistics.mean(values)
    return mean, 1.96 * statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.inf


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plumb", default="build/plumb")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--folder", help="where program, times and profile are kept")
    parser.add_argument("--json", help="plumb's answer is kept here")
    options = parser.parse_args()
    folder = options.folder or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    program, times = os.path.join(folder, "program.py"), os.path.join(folder, "times.txt")
    with open(program, "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    if os.path.exists(times):
        os.unlink(times)
    command = [options.python, program, str(options.batch), str(options.steps), times]
    for _ in range(options.runs):
        subprocess.run(command, check=True)
    done = subprocess.run([options.plumb, "levels", "-q", "--force", "--json", "--runs", str(options.runs), "--serialised=never", "-o",
                           os.path.join(folder, "levels.plumb"), "--", *command], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            file.write(done.stdout)
    for _ in range(options.runs):
        subprocess.run(command, check=True)
    with open(times, encoding="utf-8") as file:
        lines = [line.split() for line in file]
    alone, inside = ([float(value) for level, value in lines if level == name] for name in ("alone", "M"))
    measured = {level["level"]: level for level in json.loads(done.stdout)["measured"]}
    for name, level in measured.items():
        wall = level["wall_ns"]
        print(f"      {name}: {wall['mean'] / 1e6:.3f} ms ({wall['low'] / 1e6:.3f} to {wall['high'] / 1e6:.3f}), {level['bounds']}, "
              f"{level['kept']} of {level['runs']} runs")
    (plain, wide), (own, _) = interval(alone), interval(inside)
    wall = measured["M"]["wall_ns"]
    mean, half = wall["mean"] / 1e9, (wall["high"] - wall["low"]) / 2e9
    same = abs(mean / own - 1)
    print("PASS" if same <= LIMIT else "FAIL", f"same run: {mean * 1e3:.3f} ms, the program says {own * 1e3:.3f} ms ({same:.2%} apart)")
    apart, doubt = mean / plain - 1, math.hypot(half, wide) / plain
    fine = abs(apart) <= LIMIT or abs(apart) <= doubt <= LIMIT
    print("PASS" if fine else "FAIL", f"unprofiled: {mean * 1e3:.3f} ms at M, {plain * 1e3:.3f} ms alone ({len(alone)} runs): "
          f"{apart:+.2%}, 95 % interval ±{doubt:.2%}")
    sys.exit(not (same <= LIMIT and fine))


if __name__ == "__main__":
    main()
