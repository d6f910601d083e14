# SPDX-License-Identifier: Apache-2.0
"""How long after a job's end its one profile is there: ranks that train over gloo on CPUs (or over NCCL with
--backend nccl), under one plumb run; and how long 300 short-lived children take to settle.

    python3 bench/ranks.py --plumb build/plumb --python PYTHON [--ranks 8] [--rounds 3]

PYTHON has PyTorch. Each round runs the job without plumb and with it; "end to profile" is the time from the
launcher's end to plumb's, in which all regions become one file.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

TRAIN = """
import os, sys, torch, torch.distributed as dist
from torch import nn
backend = sys.argv[1]
device = f"cuda:{os.environ['LOCAL_RANK']}" if backend == "nccl" else "cpu"
dist.init_process_group(backend)
model = nn.Sequential(*[layer for _ in range(8) for layer in (nn.Linear(64, 64), nn.GELU())]).to(device)
model = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.Adam(model.parameters())
for step in range(int(sys.argv[2])):
    loss = model(torch.ones(32, 64, device=device)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
"""

CHILDREN = """
import os, sys, torch
x = torch.ones(4)
for _ in range(300):
    child = os.fork()
    if not child:
        torch.sin(x)
        os._exit(0)
    os.waitpid(child, 0)
"""


def run(command, folder, plumb):
    """Runs COMMAND; returns its own seconds, and those from its end to plumb's."""
    end = folder / "end"
    shell = ["sh", "-c", '"$@"; status=$?; date +%s.%N >"$0"; exit $status', str(end), *command]
    if plumb:
        shell = [plumb, "run", "-o", str(folder / "run.plumb"), "--", *shell]
    start = time.time()
    done = subprocess.run(shell, cwd=folder, capture_output=True, text=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})
    finished = time.time()
    if done.returncode:
        sys.exit(done.stderr)
    ended = float(end.read_text())
    return ended - start, finished - ended


def measure(name, command, folder, options):
    plain, under, ends = [], [], []
    for _ in range(options.rounds):
        plain.append(run(command, folder, None)[0])
        seconds, end = run(command, folder, options.plumb)
        under.append(seconds)
        ends.append(end)
    report = json.loads(subprocess.run([options.plumb, "report", str(folder / "run.plumb"), "--json"],
                                       capture_output=True, text=True, check=True).stdout)
    print(f"| {name} | {len(report['processes'])} | {statistics.median(plain):.2f} s | "
          f"{statistics.median(under):.2f} s | {statistics.median(ends):.2f} s | {max(ends):.2f} s | "
          f"{(folder / 'run.plumb').stat().st_size / 1e6:.1f} MB |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--plumb", default="build/plumb")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--backend", default="gloo", choices=["gloo", "nccl"])
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    options.plumb = os.path.abspath(options.plumb)
    print("| job | processes | alone | with plumb | end to profile, median | longest | profile |")
    print("|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "train.py").write_text(TRAIN)
        (folder / "children.py").write_text(CHILDREN)
        measure(f"{options.ranks} ranks, {options.backend}",
                [options.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
                 str(options.ranks), str(folder / "train.py"), options.backend, str(options.steps)],
                folder, options)
        measure("300 children", [options.python, str(folder / "children.py")], folder, options)


main()
