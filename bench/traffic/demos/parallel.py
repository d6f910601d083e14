# SPDX-License-Identifier: Apache-2.0
"""parallel.py data|model [GPUS]: the same network, trained in two ways. `data` (under torchrun): each GPU has all layers and a
part of the batch, and gradients go round in all-reduces. `model`: each GPU has a part of the layers, and activations go from
GPU to GPU, their gradients back. Prints one line of JSON with what has to move."""
import json
import os
import sys

import torch
from torch import nn

WIDTH, BATCH, STEPS = 1024, 256, 8


def block():
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))


def data_parallel():
    import torch.distributed as dist
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    layers = nn.Sequential(block(), block()).cuda()
    parameters = sum(p.numel() for p in layers.parameters())
    network = nn.parallel.DistributedDataParallel(layers, device_ids=[rank])
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    for _ in range(STEPS):
        optimizer.zero_grad()
        network(torch.ones(BATCH, WIDTH, device="cuda")).square().mean().backward()
        optimizer.step()
    torch.cuda.synchronize()
    if rank == 0:
        print(json.dumps({"ok": True, "gpus": dist.get_world_size(), "reduced": STEPS * parameters * 4}), flush=True)
    dist.destroy_process_group()


class Split(nn.Module):
    def __init__(self, gpus):
        super().__init__()
        self.parts = nn.ModuleList(block().to(f"cuda:{i}") for i in range(gpus))

    def forward(self, x):
        for i, part in enumerate(self.parts):
            x = part(x.to(f"cuda:{i}"))  # activations move
        return x


def model_parallel(gpus):
    network = Split(gpus)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    for _ in range(STEPS):
        optimizer.zero_grad()
        network(torch.ones(BATCH, WIDTH, device="cuda:0")).square().mean().backward()
        optimizer.step()
    for i in range(gpus):
        torch.cuda.synchronize(i)
    print(json.dumps({"ok": True, "gpus": gpus, "activations": STEPS * BATCH * WIDTH * 4}), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "data":
        data_parallel()
    else:
        model_parallel(int(sys.argv[2]))
