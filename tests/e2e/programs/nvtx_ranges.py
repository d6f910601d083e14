# SPDX-License-Identifier: Apache-2.0
"""Ranges of Python's nvtx package around and inside PyTorch's operators."""
import nvtx
import torch

layers = nvtx.get_domain("layers")


def forward(x, w):
    y = x * w  # @mul
    with nvtx.annotate("inner", domain="layers"):  # @inside
        return y + 1  # @add


def train():
    w = torch.ones(4, requires_grad=True)
    for i in range(3):
        with nvtx.annotate("step", payload=i):  # @train
            forward(torch.ones(4), w).sum().backward()  # @call
    nvtx.push_range("pushed")  # @push
    torch.neg(w)  # @neg
    nvtx.pop_range()


torch.set_num_threads(1)
train()  # @main
