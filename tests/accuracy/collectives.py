#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data-parallel and fully sharded training on several GPUs under plumb run --traffic: are the logical bytes of each kind of
collective what the sizes of the parameters say?

    python3 tests/accuracy/collectives.py [--plumb COMMAND] [--python PYTHON] [--ranks N] [--out FOLDER]

Prints one line for each check, PASS or FAIL, and exits 0 or 1. Needs PyTorch with CUDA, N GPUs (default 2) and NCCL 2.26.

    ddp      all-reduce: each step as many bytes as the parameters have
    fsdp     all-gather: each step the shards of all layers for the forward pass, and again for the backward pass those that were
             freed meanwhile (all but the root's); reduce-scatter: each step the shards of all gradients
    pipe     send and receive: each step one activation, one gradient, and both devices by name
"""
import argparse
import os
import shlex
import sqlite3
import subprocess
import sys
import tempfile

STEPS, WIDTH, LAYERS = 20, 1024, 6
PROGRAM = '''\
import os
import sys

import torch
import torch.distributed as dist
from torch import nn

kind, steps, width, count = sys.argv[1], *map(int, sys.argv[2:])
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
torch.manual_seed(0)
model = nn.Sequential(*[nn.Linear(width, width) for _ in range(count)]).cuda()
data = torch.rand(64, width, device="cuda")
if kind == "ddp":
    model = nn.parallel.DistributedDataParallel(model, device_ids=[rank], broadcast_buffers=False)
elif kind == "fsdp":
    from torch.distributed.fsdp import fully_shard
    for layer in list(model)[:-1]:
        fully_shard(layer)
    fully_shard(model)  # the last layer is the root's
if kind == "pipe":
    for _ in range(steps):
        if rank == 0:
            out = model(data)
            dist.send(out, 1)
            gradient = torch.empty_like(out)
            dist.recv(gradient, 1)
            out.backward(gradient)
        elif rank == 1:
            got = torch.empty_like(data).requires_grad_()
            with torch.no_grad():
                dist.recv(got, 0)
            model(got).square().mean().backward()
            dist.send(got.grad, 0)
else:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(steps):
        model(data).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
torch.cuda.synchronize()
dist.barrier()
dist.destroy_process_group()
'''


def record(options, kind, folder):
    program, path = os.path.join(folder, "collectives_program.py"), os.path.join(folder, f"{kind}.plumb")
    with open(program, "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    ranks = 2 if kind == "pipe" else options.ranks
    done = subprocess.run([*shlex.split(options.plumb), "run", "--traffic", "--force", "-q", "-o", path, "--", options.python, "-m",
                           "torch.distributed.run", "--nproc-per-node", str(ranks), "--master-port", "29519", program, kind,
                           *map(str, (STEPS, WIDTH, LAYERS))], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{kind}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    return sqlite3.connect(path), ranks


class Checks:
    failed = 0

    def check(self, name, found, wanted):
        right = found == wanted
        self.failed += not right
        print(f"{'PASS' if right else 'FAIL'}  {name}: {found}" + ("" if right else f", not {wanted}"), flush=True)


def by_rank(database, operation, at_least=0):
    """{rank: bytes of all its operations}; smaller ones are the framework's own."""
    return dict(database.execute("SELECT rank, sum(bytes) FROM collectives WHERE operation = ? AND bytes >= ? GROUP BY rank",
                                 (operation, at_least)))


def shared(database, ranks, checks, kind):
    """What holds for all of them."""
    checks.check(f"{kind}: operations with times and without", database.execute(
        "SELECT sum(end_ns IS NULL) FROM collectives").fetchone()[0], 0)
    checks.check(f"{kind}: same bytes under each number of a group", database.execute(
        "SELECT count(*) FROM (SELECT 1 FROM collectives WHERE peer IS NULL GROUP BY group_name, operation, sequence"
        f" HAVING count(DISTINCT bytes) > 1 OR count(*) <> {ranks})").fetchone()[0], 0)
    transfers = database.execute("SELECT sum(bytes) FROM transfers WHERE kind IN ('collective', 'send', 'receive')").fetchone()[0]
    kept = database.execute("SELECT sum(bytes) FROM collectives").fetchone()[0]
    checks.check(f"{kind}: bytes of transfers and of operations", transfers, kept)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--plumb", default="plumb")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--out")
    options = parser.parse_args()
    checks = Checks()
    layer = 4 * (WIDTH * WIDTH + WIDTH)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.out or temporary
        os.makedirs(folder, exist_ok=True)
        database, ranks = record(options, "ddp", folder)
        checks.check("ddp: all-reduce", by_rank(database, "AllReduce", 1024), {rank: STEPS * LAYERS * layer for rank in range(ranks)})
        shared(database, ranks, checks, "ddp")
        database, ranks = record(options, "fsdp", folder)
        shard = layer // ranks
        checks.check("fsdp: all-gather", by_rank(database, "AllGather", 1024),
                     {rank: STEPS * (2 * LAYERS - 1) * shard for rank in range(ranks)})
        checks.check("fsdp: reduce-scatter", by_rank(database, "ReduceScatter", 1024),
                     {rank: STEPS * LAYERS * shard for rank in range(ranks)})
        shared(database, ranks, checks, "fsdp")
        database, ranks = record(options, "pipe", folder)
        activation = STEPS * 64 * WIDTH * 4
        checks.check("pipe: sends", by_rank(database, "Send"), {0: activation, 1: activation})
        checks.check("pipe: receives", by_rank(database, "Recv"), {0: activation, 1: activation})
        checks.check("pipe: both devices", database.execute(
            "SELECT f.ordinal, t.ordinal, sum(x.bytes) FROM transfers x JOIN devices f ON f.id = x.from_device"
            " JOIN devices t ON t.id = x.to_device WHERE x.kind = 'send' GROUP BY 1, 2").fetchall(),
            [(0, 1, activation), (1, 0, activation)])
    sys.exit(1 if checks.failed else 0)


if __name__ == "__main__":
    main()
