#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often a gate is right on real runs: `plumb diff --gate` on pairs of runs that are the same, and on pairs of
which the second does 5 % more work in each step.

    python3 tests/accuracy/gate.py [--python PYTHON] [--plumb PATH] [--pairs 100] [--out FILE] …

The program trains a network of equal blocks, on the GPU where there is one; with 21 blocks in place of 20 a step
does 5 % more, of the same kernels. Runs with and without are recorded in turn, one at a time, so that what drifts
meets both. Of N runs each, pairs of the same program are run i with run i + 1, i + 2, … (around the end), first and
second in turn, until there are enough; pairs of both programs are those of i with i, i + 1, …. So no pair comes twice,
and each run is in as many pairs as any other: 100 pairs of 20 runs hold each run ten times. That is less than
100 pairs of 200 runs would say: one odd run is in ten pairs. --runs 200 makes them disjoint.

Recordings are as `plumb run` makes them when nothing is asked for, where there is a GPU; else with --trace, because
iterations of a CPU are told from single spans. Prints for each gate how many pairs of the same program held and how
many slow ones were caught; exits with 1 unless both are at least --least of 100 for each gate.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BLOCKS = 20
PROGRAM = """\
import sys
import torch

blocks, steps, width, batch = map(int, sys.argv[1:])
gpu = torch.cuda.is_available()
device = "cuda" if gpu else "cpu"
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(*[
    torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.GELU(), torch.nn.LayerNorm(width))
    for _ in range(blocks)]).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=.9)
x = torch.randn(batch, width, device=device)
for _ in range(steps):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
if gpu:
    torch.cuda.synchronize()
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--plumb", default=os.path.join(ROOT, "build", "plumb"))
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--runs", type=int, default=20, help="of each program (default: 20)")
    parser.add_argument("--seconds", type=float, default=400,
                        help="stop recording after so long and use the runs there are (default: 400)")
    parser.add_argument("--steps", type=int, help="of a run (default: 60)")
    parser.add_argument("--gate", action="append", help="may come again (default: iteration.time<+2.5%% and "
                        "gpu.time<+2.5%%; without a GPU op.time in place of that)")
    parser.add_argument("--least", type=float, default=95, help="of 100 pairs (default: 95)")
    parser.add_argument("--out", help="write what was found to this file as JSON")
    return parser.parse_args()


def has_gpu(python):
    code = "import torch, sys; sys.exit(not torch.cuda.is_available())"
    return subprocess.run([python, "-c", code], stderr=subprocess.DEVNULL).returncode == 0


class Recorder:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.gpu = has_gpu(options.python)
        self.program = os.path.join(folder, "program.py")
        with open(self.program, "w") as file:
            file.write(PROGRAM)

    def run(self, name, blocks):
        path = os.path.join(self.folder, f"{name}.plumb")
        size = ("60", "1536", "4096") if self.gpu else ("60", "256", "64")
        steps = str(self.options.steps or size[0])
        command = [self.options.plumb, "run", "-o", path, *([] if self.gpu else ["--trace"]), "--",
                   self.options.python, self.program, str(blocks), steps, *size[1:]]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=300)
        if done.returncode:
            sys.exit(f"{' '.join(command)}:\n{done.stderr}")
        return path

    def runs(self):
        """([runs of 20 blocks], [of 21]), as many of either as there was time for."""
        same, slow = [], []
        self.run("warm", BLOCKS)
        start = time.monotonic()
        while len(same) < self.options.runs and time.monotonic() - start < self.options.seconds:
            same.append(self.run(f"same{len(same)}", BLOCKS))
            slow.append(self.run(f"slow{len(slow)}", BLOCKS + 1))
        return same, slow


def pairs_of_one(runs, count):
    found = []
    for step in range(1, (len(runs) + 1) // 2):
        for i, run in enumerate(runs):
            pair = run, runs[(i + step) % len(runs)]
            found.append(pair[::-1] if i % 2 else pair)
    return found[:count]


def pairs_of_two(first, second, count):
    return [(run, second[(i + step) % len(second)])
            for step in range(len(second)) for i, run in enumerate(first)][:count]


def judge(plumb, pair, gates):
    command = [plumb, "diff", "--json", *(word for gate in gates for word in ("--gate", gate)), *pair]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode not in (0, 4):
        sys.exit(f"{' '.join(command)}:\n{done.stderr}")
    data = json.loads(done.stdout)
    for gate in data["gates"]:
        if gate["why"]:
            sys.exit(f"{' '.join(command)}: {gate['expression']}: {gate['why']}")
    return data


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        recorder = Recorder(options, folder)
        gates = options.gate or ["iteration.time<+2.5%",
                                 "gpu.time<+2.5%" if recorder.gpu else "op.time<+2.5%"]
        same, slow = recorder.runs()
        kinds = {"same": pairs_of_one(same, options.pairs), "slow": pairs_of_two(same, slow, options.pairs)}
        judged = {kind: [judge(options.plumb, pair, gates) for pair in pairs] for kind, pairs in kinds.items()}
        took = time.monotonic() - start
    result = {"gpu": recorder.gpu, "runs": [len(same), len(slow)], "seconds": round(took, 1), "gates": []}
    good = True
    print(f"{len(same)} runs of either program on a {'GPU' if recorder.gpu else 'CPU'}, {took:.0f} s")
    for number, expression in enumerate(gates):
        row = {"expression": expression}
        for kind, outcomes in judged.items():
            found = [data["gates"][number] for data in outcomes]
            right = sum(gate["holds"] == (kind == "same") for gate in found)
            changes = sorted(gate["ratio"] - 1 for gate in found)
            row[kind] = {"pairs": len(found), "right": right, "low": changes[0], "high": changes[-1],
                         "median": statistics.median(changes),
                         "inside": sum((gate["low"] or 0) <= 0 <= (gate["high"] or 0) for gate in found)}
            good &= 100 * right >= options.least * len(found) and len(found) > 0
            word = "held" if kind == "same" else "were caught"
            print(f"{expression:24} {kind}: {right} of {len(found)} {word}; changes {changes[0]:+.2%} … "
                  f"{row[kind]['median']:+.2%} … {changes[-1]:+.2%}")
        result["gates"].append(row)
    if options.out:
        with open(options.out, "w") as file:
            json.dump(result, file, indent=1)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
