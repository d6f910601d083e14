# SPDX-License-Identifier: Apache-2.0
"""Learns which of two authors wrote a line of text, on the CPU. It counts the words of every line again in each epoch.
--fixed counts them once.
"""
import argparse
import random

import torch
from torch import nn

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--epochs", type=int, default=40)
parser.add_argument("--fixed", action="store_true", help="run without the fault")
chosen = parser.parse_args()
WORDS, LINES, LENGTH = 50, 1000, 60
NAMES = [f"w{number}" for number in range(WORDS)]


def count_words(line):
    return list(map(line.split().count, NAMES))


def batch_of(lines):
    return torch.tensor([count_words(line) for line in lines], dtype=torch.float)


def write(author):
    """A line: the two authors like different words."""
    return " ".join(NAMES[int(random.random() ** (1 + author) * WORDS)] for _ in range(LENGTH))


random.seed(0)
torch.manual_seed(0)
authors = [number % 2 for number in range(LINES)]
lines, kinds = [write(author) for author in authors], torch.tensor(authors)
network = nn.Sequential(nn.Linear(WORDS, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
counted = batch_of(lines)
for epoch in range(chosen.epochs):
    if not chosen.fixed:
        counted = batch_of(lines)
    for start in range(0, LINES, 100):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(network(counted[start:start + 100]), kinds[start:start + 100])
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.3f}")
