# SPDX-License-Identifier: Apache-2.0
"""Operators for a trace: traced.py SECTION [NUMBER]; marked lines for the test."""
import sys
import threading
import time

import torch

number = int(sys.argv[2]) if len(sys.argv) > 2 else 20
x = torch.ones(4)


def once(w, data):
    loss = torch.nn.functional.linear(data, w).sum()  # @linear
    loss.backward()


def train():
    """An optimizer's steps, with a setup before them."""
    w = torch.randn(8, 4, requires_grad=True)  # @setup
    optimizer = torch.optim.SGD([w], lr=0.1)
    for _ in range(number):
        optimizer.zero_grad()
        once(w, x)  # @once
        optimizer.step()  # @step


def layers(value):
    for _ in range(3):
        value = torch.exp(value)  # @layer
    return value


def infer():
    """No optimizer: a loop with a loop inside, and a setup with a loop of its own."""
    for _ in range(5):
        torch.ones(2)  # @warm
    inference()


def inference():
    for _ in range(number):
        value = torch.neg(x)  # @head
        value = layers(value)  # @body
        torch.sin(value)  # @tail


def single():
    for _ in range(number):
        torch.neg(x)  # @single


def pause():
    for _ in range(3):
        torch.neg(x)  # @early
    time.sleep(1.5)
    for _ in range(4):
        torch.exp(x)  # @late


def many():
    for _ in range(number):
        torch.neg(x)  # @many
    torch.sin(x)  # @newest


def stay():
    for _ in range(number):
        torch.neg(x)  # @stay
    print("ready", flush=True)
    time.sleep(60)


def threads():
    """One after the other, so that each takes over what the one before left; and eight at once."""
    for _ in range(5):
        worker = threading.Thread(target=single)
        worker.start()
        worker.join()
    workers = [threading.Thread(target=single) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


globals()[sys.argv[1]]()
