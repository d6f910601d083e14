# SPDX-License-Identifier: Apache-2.0
"""Ranges and modules that are entered a known number of times, with many operators in each; steps of an
optimizer; and most of the time asleep or in plain Python."""
import sys
import time

import torch


class Block(torch.nn.Module):
    def forward(self, x):
        for _ in range(5):
            x = x + 1
        return x


def spin(seconds):
    end, count = time.process_time() + seconds, 0
    while time.process_time() < end:
        count += 1
    return count


net = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
block = torch.nn.Sequential(Block(), torch.nn.ReLU())
x = torch.ones(3)
for _ in range(20):
    with torch.profiler.record_function("outer"):
        with torch.profiler.record_function("inner"):
            block(x)
        x * 2
for _ in range(8):
    optimizer.zero_grad()
    net(torch.ones(2, 4)).sum().backward()
    optimizer.step()
if len(sys.argv) > 1:
    # Three times the start at least: importing PyTorch takes seconds on a busy machine.
    {"spin": spin, "sleep": time.sleep}[sys.argv[1]](max(float(sys.argv[2]), 3 * time.process_time()))
