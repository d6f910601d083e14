#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a layer of the call path costs for each operator, in ns: modules, and shapes.

    python3 bench/micro_layers.py [--plumb PATH] [--rounds N]

The model is a GPT of modules in modules, so small that the host is all that counts: the worst case.
Each mode is a process that stays; they take turns, block by block, and a ratio is a block against the
block of the mode before it in the same round. Median of the rounds, with the middle half.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MODES = {
    "none": None,
    "python and operators": ["--layers", "python,operator"],
    "with modules": ["--layers", "python,module,operator"],
    "with modules and shapes": ["--layers", "python,module,operator", "--shapes"],
}


def model(width=32, blocks=6):
    import torch
    from torch import nn

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x):
            q, k, v = self.qkv(x).chunk(3, -1)
            return self.proj((q @ k.transpose(-1, -2)).softmax(-1) @ v)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attn = Attention()
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            x = x + self.attn(self.ln1(x))
            return x + self.mlp(self.ln2(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte = nn.Embedding(64, width)
            self.h = nn.ModuleList(Block() for _ in range(blocks))
            self.head = nn.Linear(width, 64)

        def forward(self, tokens):
            x = self.wte(tokens)
            for block in self.h:
                x = block(x)
            return self.head(x)

    torch.set_num_threads(1)
    return GPT(), torch.randint(0, 64, (1, 8))


def work():
    """Answers each line of standard input with the ns of a block of forward passes."""
    import torch
    gpt, tokens = model()
    with torch.no_grad():
        for _ in range(20):
            gpt(tokens)
        with torch.autograd.profiler.profile() as profile:
            gpt(tokens)
        print(len(profile.function_events), flush=True)
        for line in sys.stdin:
            before = time.perf_counter_ns()
            for _ in range(int(line)):
                gpt(tokens)
            print((time.perf_counter_ns() - before) / int(line), flush=True)


def start(options, plumb, folder, number):
    command = [sys.executable, os.path.abspath(__file__), "--work"]
    if options is not None:
        command = [plumb, "run", "--no-gpu", *options, "-o", f"{folder}/{number}.plumb", "--"] + command
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    return worker, int(worker.stdout.readline())


def block(worker, passes):
    worker.stdin.write(f"{passes}\n")
    worker.stdin.flush()
    return float(worker.stdout.readline())


def quartiles(numbers):
    low, middle, high = statistics.quantiles(numbers, n=4)
    return low, middle, high


def main():
    if sys.argv[1:2] == ["--work"]:
        return work()
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--plumb", default=os.path.join(HERE, "..", "build", "plumb"))
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--passes", type=int, default=100, help="forward passes of one block")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        workers = [start(what, os.path.abspath(options.plumb), folder, number)
                   for number, what in enumerate(MODES.values())]
        operators = workers[0][1]
        rounds = [[block(worker, options.passes) for worker, _ in workers]
                  for _ in range(options.rounds)]
        for worker, _ in workers:
            worker.stdin.close()
            worker.wait()
    print(f"{operators} operators a forward pass\n")
    print("| mode | an operator | more than the mode before | ratio to it |")
    print("|---|---|---|---|")
    for number, mode in enumerate(MODES):
        times = [row[number] / operators for row in rounds]
        line = f"| {mode} | {statistics.median(times):.0f} ns | "
        if number:
            more = quartiles([(row[number] - row[number - 1]) / operators for row in rounds])
            ratio = quartiles([row[number] / row[number - 1] for row in rounds])
            line += (f"{more[1]:.0f} ns ({more[0]:.0f}–{more[2]:.0f}) | "
                     f"{ratio[1]:.3f} ({ratio[0]:.3f}–{ratio[2]:.3f}) |")
        else:
            line += "– | – |"
        print(line)


if __name__ == "__main__":
    main()
