# SPDX-License-Identifier: Apache-2.0
"""A validation that needs more memory with every batch. It records what a backward pass would need, and keeps it, because
it adds up the losses as tensors. --fixed records nothing.
"""
import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--batches", type=int, default=20)
parser.add_argument("--fixed", action="store_true", help="run without the fault")
chosen = parser.parse_args()
device = "cuda" if torch.cuda.is_available() else "cpu"


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(128, 1024)
        self.second = nn.Linear(1024, 10)

    def forward(self, x):
        hidden = self.first(x)
        hidden = torch.tanh(hidden)
        return self.second(hidden)


def validate(network):
    total = torch.zeros((), device=device)
    for _ in range(chosen.batches):
        inputs = torch.randn(256, 128, device=device)
        targets = torch.randint(0, 10, (256,), device=device)
        total = total + nn.functional.cross_entropy(network(inputs), targets)
    return total.item() / chosen.batches


torch.manual_seed(0)
network = Network().to(device)
with torch.set_grad_enabled(not chosen.fixed):
    print(f"loss {validate(network):.3f}")
