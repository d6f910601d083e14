# SPDX-License-Identifier: Apache-2.0
"""A transformer whose loss function is written as a formula, which runs many short kernels.

It predicts the next words, and each prediction has a loss. Each operator of the formula is a kernel that reads
and writes the scores, forward and backward. cross_entropy computes the same with a few kernels.
"""
import torch
from torch import nn

import common

chosen = common.options(__doc__.splitlines()[0], steps=300)
BATCH, LENGTH, WORDS, WIDTH = (16, 128, 1024, 512) if chosen.gpu else (2, 8, 64, 32)
AHEAD = 4
PADDING = 0


class Model(nn.Module):
    """One layer of a transformer, and a head for each of the next AHEAD words."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.layer = nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, dropout=0.0, batch_first=True)
        self.heads = nn.ModuleList(nn.Linear(WIDTH, WORDS) for _ in range(AHEAD))

    def forward(self, words):
        hidden = self.layer(self.embed(words)).flatten(0, 1)
        return [head(hidden) for head in self.heads]


def loss_fn(scores, words):
    """Cross entropy of the words that are not padding, as a formula."""
    highest = scores.max(dim=1, keepdim=True).values.detach()
    shifted = scores - highest
    total = torch.exp(shifted).sum(dim=1, keepdim=True)
    logarithm = shifted - torch.log(total)
    wanted = (torch.arange(WORDS, device=words.device) == words[:, None]).float()
    each = -(wanted * logarithm).sum(dim=1)
    kept = (words != PADDING).float()
    return (each * kept).sum() / kept.sum()


def fused_loss_fn(scores, words):
    return nn.functional.cross_entropy(scores, words, ignore_index=PADDING)


model = Model().to(chosen.device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
words = torch.randint(0, WORDS, (BATCH, LENGTH + AHEAD), device=chosen.device)
wanted = [words[:, ahead:ahead + LENGTH].flatten() for ahead in range(1, AHEAD + 1)]
compute = fused_loss_fn if chosen.fixed else loss_fn


def step(number):
    optimizer.zero_grad(set_to_none=True)
    loss = 0
    for scores, nexts in zip(model(words[:, :LENGTH]), wanted):
        loss = loss + compute(scores, nexts)
    loss.backward()
    optimizer.step()
    return loss


common.train(chosen, step)
