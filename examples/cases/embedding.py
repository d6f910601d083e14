# SPDX-License-Identifier: Apache-2.0
"""A recommendation model that looks up its embeddings by indexing.

The backward pass of x[i] (aten::index) sorts the indices. It adds the gradients of a row that is read often
one by one. The backward pass of index_select adds them with atomics.
"""
import torch
from torch import nn

import common

chosen = common.options(__doc__.splitlines()[0], steps=200)
ROWS, WIDTH, LOOKUPS = (200_000, 64, 1 << 18) if chosen.gpu else (2000, 16, 1 << 10)


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(ROWS, WIDTH) * 0.1)
        self.top = nn.Sequential(nn.Linear(WIDTH, 256), nn.ReLU(), nn.Linear(256, 1))

    def embed(self, ids):
        if chosen.fixed:
            return torch.index_select(self.table, 0, ids)
        return self.table[ids]

    def forward(self, ids):
        return self.top(self.embed(ids)).squeeze(1)


model = Recommender().to(chosen.device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
# As with real items, a few are read often: the cube of a uniform number is often near 0.
ids = (torch.rand(LOOKUPS) ** 3 * ROWS).long().to(chosen.device)
clicks = torch.rand(LOOKUPS).round().to(chosen.device)


def step(number):
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.binary_cross_entropy_with_logits(model(ids), clicks)
    loss.backward()
    optimizer.step()
    return loss


common.train(chosen, step)
