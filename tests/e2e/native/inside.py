# SPDX-License-Identifier: Apache-2.0
"""Operators of many kinds, forward and backward, on several threads, for test_native_walk.py."""
import threading

import torch

model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
    torch.nn.Flatten(), torch.nn.Linear(8 * 15 * 15, 32), torch.nn.LayerNorm(32), torch.nn.GELU(),
    torch.nn.Linear(32, 10))
optimizer = torch.optim.Adam(model.parameters())


class Double(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x * 2

    @staticmethod
    def backward(context, gradient):
        return gradient * 2


def train(steps):
    for _ in range(steps):
        x, y = torch.randn(4, 3, 32, 32), torch.randint(10, (4,))
        loss = torch.nn.functional.cross_entropy(Double.apply(model(x)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def look(steps):
    with torch.no_grad():
        for _ in range(steps):
            a = torch.randn(32, 32)
            (a @ a + a.t().contiguous()).softmax(-1).sort()[0].sum()
            torch.fft.rfft(a).abs().mean()
            torch.linalg.svd(a)


scripted = torch.jit.script(torch.nn.Linear(8, 8))
train(8)
thread = threading.Thread(target=look, args=(30,))
thread.start()
look(30)
thread.join()
for _ in range(10):
    scripted(torch.randn(2, 8)).sum().backward()
