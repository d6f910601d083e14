# SPDX-License-Identifier: Apache-2.0
"""Records a trace of torch.profiler with Python stacks: ranges that are opened in one Python call and closed in
another, in generators, over exceptions and in threads.

    python with_stack.py OUT.json [steps]
"""
import sys
import threading

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

torch.set_num_threads(1)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(8, 8)

    def forward(self, x):
        with record_function("within the block"):
            return torch.relu(self.inner(x))


class Manual:
    """A range that one method begins and another ends, each with work of its own."""

    def start(self):
        self.range = record_function("by hand")
        self.range.__enter__()
        torch.ones(3) + 1

    def stop(self):
        torch.ones(3) * 2
        self.range.__exit__(None, None, None)
        torch.ones(3) - 1


def numbers():
    with record_function("generator"):
        for number in range(3):
            yield torch.ones(2) + number


def fails(x):
    with record_function("fails"):
        with record_function("inside what fails"):
            x.sum()
            raise ValueError


def in_thread():
    for _ in range(3):
        with record_function("thread"):
            with record_function("deep"):
                torch.ones(4).exp()


def step(models, manual):
    x = torch.ones(4, 8, requires_grad=True)
    with record_function("forward"):
        for model in models:
            x = model(x)
    manual.start()
    x.sum().backward()
    manual.stop()
    for value in numbers():
        value.sin()
    try:
        fails(x)
    except ValueError:
        x.cos()
    first, second = record_function("first"), record_function("second")
    first.__enter__()
    torch.ones(2).add(1)
    second.__enter__()
    torch.ones(2).add(2)
    first.__exit__(None, None, None)
    torch.ones(2).add(3)
    second.__exit__(None, None, None)


def main():
    models = [Block(), torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())]
    manual = Manual()
    steps = len(sys.argv) > 2
    more = {"schedule": schedule(wait=1, warmup=1, active=3, repeat=1)} if steps else {}
    with profile(activities=[ProfilerActivity.CPU], with_stack=True, with_modules=True, record_shapes=True,
                 **more) as made:
        for _ in range(5 if steps else 2):
            step(models, manual)
            thread = threading.Thread(target=in_thread)
            thread.start()
            thread.join()
            if steps:
                made.step()
    made.export_chrome_trace(sys.argv[1])


main()
