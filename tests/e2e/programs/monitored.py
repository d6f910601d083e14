# SPDX-License-Identifier: Apache-2.0
"""What another tool watches: operators forward and backward, on two threads, a range, and where it can be
had a compiled region."""
import threading

import torch


def scale(x, w):
    return torch.mul(x, w)  # @mul


def train():
    w = torch.ones(3, requires_grad=True)
    for _ in range(2):
        scale(torch.ones(3), w).sum().backward()  # @backward
    with torch.no_grad(), torch.profiler.record_function("marked"):
        torch.neg(w)  # @neg


def on_thread():
    with torch.no_grad():
        torch.sin(torch.ones(2))  # @sin


def compiled():
    if hasattr(torch, "compile"):
        function = torch.compile(lambda x: torch.cos(x) + 1, backend="eager")
        with torch.no_grad():
            function(torch.ones(2))  # @compiled
            function(torch.ones(2))


torch.set_num_threads(1)
train()
thread = threading.Thread(target=on_thread)
thread.start()
thread.join()
compiled()
