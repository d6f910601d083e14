# SPDX-License-Identifier: Apache-2.0
"""A model of three layers, called three times, whose work is known from its shapes."""
import torch

net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.Flatten(), torch.nn.Linear(128, 5))
batch = torch.randn(2, 3, 4, 4)
with torch.no_grad():
    for _ in range(3):
        net(batch)
    torch.bmm(torch.randn(4, 2, 3), torch.randn(4, 3, 5))
