# SPDX-License-Identifier: Apache-2.0
"""Trains a small network to separate three spirals. It takes a few seconds, on a GPU if there is one.

    plumb run -- python3 examples/train.py
    plumb report --by line

Each part of a training step is a function of its own, so a report by line shows them separately.
"""
import argparse
import math

import torch
from torch import nn

CLASSES = 3


def spirals(count, noise, device):
    """COUNT points on each of three spiral arms, with the number of each point's arm."""
    t = torch.linspace(0.05, 1.0, count)
    points, labels = [], []
    for arm in range(CLASSES):
        angle = t * 4.5 + arm * 2 * math.pi / CLASSES + torch.randn(count) * noise
        points.append(torch.stack([t * torch.cos(angle), t * torch.sin(angle)], dim=1))
        labels.append(torch.full((count,), arm, dtype=torch.long))
    return torch.cat(points).to(device), torch.cat(labels).to(device)


class Block(nn.Module):
    """Two layers with a residual connection."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        hidden = self.up(self.norm(x))
        hidden = torch.nn.functional.gelu(hidden)
        return x + self.down(hidden)


class Network(nn.Module):
    """Random Fourier features of a point, then blocks, then one score per arm."""

    def __init__(self, width, depth):
        super().__init__()
        self.register_buffer("frequencies", torch.randn(2, width // 2) * 3)
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])
        self.head = nn.Linear(width, CLASSES)

    def features(self, points):
        phase = points @ self.frequencies
        return torch.cat([torch.sin(phase), torch.cos(phase)], dim=1)

    def forward(self, points):
        x = self.features(points)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def batches(points, labels, size):
    """One pass over the data in random order."""
    order = torch.randperm(len(points), device=points.device)
    for start in range(0, len(points), size):
        chosen = order[start:start + size]
        yield points[chosen], labels[chosen]


def train_step(network, optimizer, points, labels):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(network(points), labels)
    loss.backward()
    optimizer.step()
    return loss.detach()


def accuracy(network, points, labels):
    with torch.no_grad():
        guess = network(points).argmax(dim=1)
        return (guess == labels).float().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()

    torch.manual_seed(0)
    points, labels = spirals(1000, 0.4, options.device)
    network = Network(width=96, depth=3).to(options.device)
    optimizer = torch.optim.AdamW(network.parameters(), lr=2e-3)
    for epoch in range(1, options.epochs + 1):
        total = torch.zeros((), device=options.device)
        count = 0
        for batch in batches(points, labels, 128):
            total += train_step(network, optimizer, *batch)
            count += 1
        print(f"epoch {epoch}: loss {total.item() / count:.3f}, "
              f"accuracy {accuracy(network, points, labels):.3f}")


if __name__ == "__main__":
    main()
