#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `plumb run --memory` adds: the light mode with it against without it, side by side in one run.

    python3 bench/memory.py [--python PYTHON] [--plumb PATH] [--rounds N]

One process for each mode is started and stays; they take turns, so that a drift of the machine meets
them alike, and it is the thread's CPU time that counts, so that other programs matter less. `pair` is
one tensor of 64 bytes on the CPU, made and freed by one operator; `train` a step of eight small layers
with AdamW on one core, bound by operator calls as a GPU program is by launches. A ratio is a block
against the light mode's block of the same round: median and 95 % interval of the median.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

from overhead import interval

HERE = os.path.dirname(os.path.abspath(__file__))
MODES = {"none": None, "light": [], "memory": ["--memory"]}
BLOCKS = {"pair": 200000, "train": 40}


def trainer():
    import torch
    from torch import nn
    layers = [nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 32))
              for _ in range(8)]
    model = nn.Sequential(*layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
    x = torch.randn(16, 32)

    def step():
        optimizer.zero_grad(set_to_none=True)
        model(x).square().mean().backward()
        optimizer.step()

    return step


def pairs(count):
    from torch import empty
    for _ in range(count):
        empty(16)


def work():
    """The watched process: reads the name of a block, answers with ns of CPU time an iteration."""
    import torch
    torch.set_num_threads(1)
    step = trainer()

    def steps(count):
        for _ in range(count):
            step()

    blocks = {"pair": pairs, "train": steps}
    for name in blocks:
        blocks[name](BLOCKS[name] // 10)
    for line in sys.stdin:
        name = line.strip()
        before = time.thread_time_ns()
        blocks[name](BLOCKS[name])
        print((time.thread_time_ns() - before) / BLOCKS[name], flush=True)


class Worker:
    def __init__(self, python, plumb, mode, folder):
        command = [python, os.path.abspath(__file__), "--work"]
        if MODES[mode] is not None:
            profile = os.path.join(folder, f"{mode}.plumb")
            command = [plumb, "run", "--no-gpu", *MODES[mode], "-o", profile, "--", *command]
        self.errors = open(os.path.join(folder, f"{mode}.errors"), "w+")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True, cwd=folder,
                                        env={**os.environ, "OMP_NUM_THREADS": "1"})

    def measure(self, block):
        self.process.stdin.write(block + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            self.errors.seek(0)
            raise SystemExit(f"no answer (exit code {self.process.wait()})\n{self.errors.read()}")
        return float(answer)

    def stop(self):
        self.process.stdin.close()
        self.process.stdout.read()
        self.process.wait()


def main():
    if sys.argv[1:2] == ["--work"]:
        return work()
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--plumb", default=os.path.join(HERE, "..", "build", "plumb"))
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        workers = {mode: Worker(options.python, os.path.abspath(options.plumb), mode, folder)
                   for mode in MODES}
        taken = {(block, mode): [] for block in BLOCKS for mode in MODES}
        for number in range(options.rounds):
            for block in BLOCKS:
                order = list(MODES)[number % 3:] + list(MODES)[:number % 3]
                for mode in order:
                    taken[block, mode].append(workers[mode].measure(block))
        for worker in workers.values():
            worker.stop()
    print("| block | mode | ns | ratio to light (95 % interval) |")
    print("|---|---|---|---|")
    for block in BLOCKS:
        for mode in MODES:
            ratios = [a / b for a, b in zip(taken[block, mode], taken[block, "light"])]
            middle, low, high = interval(ratios)
            print(f"| {block} | {mode} | {statistics.median(taken[block, mode]):.0f} | "
                  f"{middle:.3f} ({low:.3f}–{high:.3f}) |")
    least = {mode: min(taken["pair", mode]) for mode in MODES}
    print(f"\none allocation and its free: {least['memory'] - least['light']:.0f} ns "
          "(least of all rounds, memory minus light)")


if __name__ == "__main__":
    main()
