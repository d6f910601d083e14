# SPDX-License-Identifier: Apache-2.0
"""A rank of a job over gloo: each runs ten times its number plus one operators, and they add up a tensor."""
import sys

import torch
import torch.distributed as dist


def work(times):
    x = torch.ones(4)
    for _ in range(times):
        torch.sin(x)  # @work


def main(steps):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    total = torch.ones(4) * (rank + 1)
    for _ in range(steps):
        work(10 * (rank + 1))
        dist.all_reduce(total)
    if rank == 0:
        print("total", total[0].item())
    dist.destroy_process_group()


main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
