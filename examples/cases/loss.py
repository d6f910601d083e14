# SPDX-License-Identifier: Apache-2.0
"""A transformer whose loss function is written out as a formula: many short kernels.

Each operator of the formula is a kernel that reads and writes the scores, forwards and backwards.
PyTorch's own cross_entropy with label smoothing computes the same in a few.
"""
import torch
from torch import nn

import common

chosen = common.options(__doc__.splitlines()[0])
BATCH, LENGTH, WORDS, WIDTH, LAYERS = (16, 128, 1024, 256, 2) if chosen.gpu else (2, 8, 64, 32, 1)
SMOOTHING = 0.1


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, LAYERS)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens):
        return self.head(self.layers(self.embed(tokens)))


def loss_fn(scores, targets):
    """Cross entropy with label smoothing, as in the formula."""
    highest = scores.max(dim=1, keepdim=True).values.detach()
    shifted = scores - highest
    total = torch.exp(shifted).sum(dim=1, keepdim=True)
    logarithm = shifted - torch.log(total)
    wanted = torch.full_like(scores, SMOOTHING / WORDS)
    right = torch.full_like(targets[:, None], 1 - SMOOTHING + SMOOTHING / WORDS, dtype=wanted.dtype)
    wanted = wanted.scatter(1, targets[:, None], right)
    return -(wanted * logarithm).sum(dim=1).mean()


def fused_loss_fn(scores, targets):
    return nn.functional.cross_entropy(scores, targets, label_smoothing=SMOOTHING)


model = Model().to(chosen.device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
tokens = torch.randint(0, WORDS, (BATCH, LENGTH), device=chosen.device)


def step(number):
    optimizer.zero_grad(set_to_none=True)
    scores = model(tokens).flatten(0, 1)
    loss = (fused_loss_fn if chosen.fixed else loss_fn)(scores, tokens.flatten())
    loss.backward()
    optimizer.step()
    return loss


common.train(chosen, step)
