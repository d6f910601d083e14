# SPDX-License-Identifier: Apache-2.0
"""A compiled model, forward and backward. argv: what to remove at the end (the compiler's cache)."""
import shutil
import sys

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(16, 24)
        self.second = torch.nn.Linear(24, 8)

    def forward(self, x):
        h = self.first(x)  # @first
        h = torch.relu(h) * 2.0  # @between
        h = self.second(h)  # @second
        return h.sum()  # @sum


net = Net()
step = torch.compile(net)
x = torch.randn(4, 16)
for i in range(3):
    step(x).backward()  # @step
for path in sys.argv[1:]:
    shutil.rmtree(path)
