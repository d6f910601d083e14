# SPDX-License-Identifier: Apache-2.0
"""A training loop that copies each batch to the GPU from pageable memory.

The driver copies pageable memory through a buffer of its own, while the host waits. The GPU reads pinned
memory directly, and with non_blocking=True the host does not wait.
"""
import torch
from torch import nn

import common

chosen = common.options(__doc__.splitlines()[0], steps=100)
BATCH, WIDTH = (4096, 4096) if chosen.gpu else (8, 64)

batches = [torch.randn(BATCH, WIDTH) for _ in range(4)]
if chosen.fixed and chosen.gpu:
    batches = [batch.pin_memory() for batch in batches]
model = nn.Sequential(nn.Linear(WIDTH, 1024), nn.ReLU(), nn.Linear(1024, 1)).to(chosen.device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def load(number):
    batch = batches[number % len(batches)]
    return batch.to(chosen.device, non_blocking=chosen.fixed)


def step(number):
    inputs = load(number)
    optimizer.zero_grad(set_to_none=True)
    loss = model(inputs).square().mean()
    loss.backward()
    optimizer.step()
    return loss


common.train(chosen, step)
