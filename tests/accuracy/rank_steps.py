#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what test_iters_steps.py reads: a data-parallel training on two GPUs under PyTorch's profiler, whose ranks
begin to record two steps apart. Rank 1 sleeps before one step; beside the gradients a second process group works on
a stream of its own.

    torchrun --standalone --nproc-per-node 2 tests/accuracy/rank_steps.py FOLDER

writes FOLDER/rank0.json.gz and rank1.json.gz.
"""
import gzip
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

STEPS, SLOW, SLEEP_MS = 18, 9, 20
# Of each rank: how many steps pass before the one that warms the profiler up.
WAIT, RECORDED = (3, 5), 8


def main(folder):
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl")
    torch.manual_seed(0)
    gradients, other = dist.new_group([0, 1]), dist.new_group([0, 1])
    layers = [layer for _ in range(3) for layer in (nn.Linear(1024, 1024), nn.ReLU())]
    model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers).cuda(), process_group=gradients)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    side, extra = torch.cuda.Stream(), torch.ones(1 << 20, device="cuda")

    def step(number):
        x = torch.randn(256, 1024, device="cuda")
        if number == SLOW and rank == 1:
            time.sleep(SLEEP_MS / 1000)
        optimizer.zero_grad()
        model(x).square().mean().backward()
        with torch.cuda.stream(side):
            dist.all_reduce(extra, group=other)
        optimizer.step()
        torch.cuda.synchronize()

    path = os.path.join(folder, f"rank{rank}.json")
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
                 schedule=schedule(wait=WAIT[rank], warmup=1, active=RECORDED, repeat=1),
                 on_trace_ready=lambda p: p.export_chrome_trace(path)) as recording:
        for number in range(STEPS):
            step(number)
            recording.step()
    dist.barrier()
    dist.destroy_process_group()
    with open(path, "rb") as source, gzip.GzipFile(path + ".gz", "wb", mtime=0) as target:
        target.write(source.read())
    os.unlink(path)


if __name__ == "__main__":
    main(sys.argv[1])
