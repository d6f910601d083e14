# SPDX-License-Identifier: Apache-2.0
"""Training and evaluation take turns. Fault: evaluation computes its score on the host, row by row."""
import sys

import torch
from torch import nn

fault, device, steps = sys.argv[1] == "fault", sys.argv[2], int(sys.argv[3])
width, batch = (64, 32) if device == "cpu" else (2048, 1024)
net = nn.Sequential(*[one for _ in range(6) for one in (nn.Linear(width, width), nn.GELU())], nn.Linear(width, 10)).to(device)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)


def batches(number):
    for _ in range(number):
        yield torch.randn(batch, width, device=device), torch.randint(0, 10, (batch,), device=device)


def train():
    for x, y in batches(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()


def evaluate():
    right = 0
    with torch.no_grad():
        for x, y in batches(steps // 3):
            found = net(x).argmax(dim=1)
            if fault:
                right += sum(int(found[i]) == int(y[i]) for i in range(min(batch, 100)))  # @fault
            else:
                right += (found == y).sum().item()
    return right


for _ in range(3):
    train()
    evaluate()
