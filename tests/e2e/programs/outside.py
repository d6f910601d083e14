# SPDX-License-Identifier: Apache-2.0
"""Trains without a GPU: outside.py VARIANT. "callback": a function of each step sleeps. "loader": each item of the data
takes long. "script": the loop stands in no function. "healthy": it computes."""
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

variant = sys.argv[1]
model = torch.nn.Linear(128, 128)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


class Items(Dataset):
    def __len__(self):
        return 80

    def __getitem__(self, index):
        if variant == "loader":
            time.sleep(0.02)  # @item
        return torch.randn(64, 128)


def after_step():
    if variant == "callback":
        time.sleep(0.02)  # @sleeps


def train():
    for batch in DataLoader(Items(), batch_size=1):  # @loads
        for _ in range(4):
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
        after_step()


if variant == "script":
    for _ in range(80):
        time.sleep(0.02)  # @script
        model(torch.randn(8, 128)).sum().backward()
        optimizer.step()
else:
    train()
