# SPDX-License-Identifier: Apache-2.0
"""Says everything about itself that must not change under plumb: results bit by bit, output,
warnings, threads, descriptors, signal handlers, errno, its own profiler's result. Exit code 3."""
import ctypes
import hashlib
import os
import random
import resource
import signal
import sys
import threading
import warnings

import torch
from torch import nn

errno = ctypes.CDLL(None).__errno_location
errno.restype = ctypes.POINTER(ctypes.c_int)


def errors_kept():
    """How often errno is still what it was after an operator."""
    x, kept = torch.ones(4), 0
    for _ in range(200):
        errno()[0] = 77
        torch.neg(x)
        kept += errno()[0] == 77
    return kept


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Dropout(0.2),
                                    nn.Linear(4 * 36, 10))

    def forward(self, x):
        return self.layers(x)


def digest(tensors):
    total = hashlib.sha256()
    for tensor in tensors:
        total.update(tensor.detach().contiguous().numpy().tobytes())
    return total.hexdigest()


def train():
    torch.manual_seed(7)
    random.seed(7)
    model = Net()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    loss = None
    for _ in range(20):
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(model(torch.randn(8, 1, 8, 8)), torch.arange(8))
        loss.backward()
        optimiser.step()
    print("loss", loss.item().hex(), "parameters", digest(model.parameters()))
    print("gradients", digest(p.grad for p in model.parameters()))
    print("random", torch.rand(3).tolist(), random.random())


def profile():
    """What the program's own profiler sees: how often each operator ran."""
    def work():
        x = torch.ones(4, requires_grad=True)
        for _ in range(3):
            torch.sin(torch.exp(x)).sum().backward()
    if torch.autograd.kineto_available():
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                    record_shapes=True, with_stack=True) as profiler:
            work()
    else:
        from torch.autograd.profiler_legacy import profile as legacy
        with legacy() as profiler:
            work()
    for event in sorted(profiler.key_averages(), key=lambda event: event.key):
        print("profiled", event.key, event.count)


def surroundings():
    print("threads", threading.active_count(), len(os.listdir("/proc/self/task")))
    print("descriptors", len(os.listdir("/proc/self/fd")))
    print("handlers", [str(signal.getsignal(number)) for number in sorted(signal.valid_signals())])
    print("mask", sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
    print("limits", [resource.getrlimit(limit) for limit in
                     (resource.RLIMIT_NOFILE, resource.RLIMIT_CORE, resource.RLIMIT_FSIZE,
                      resource.RLIMIT_STACK, resource.RLIMIT_AS)])
    print("preferred", torch.get_num_threads(), torch.is_grad_enabled(), sys.getrecursionlimit())
    print("group", os.getpgrp() == os.getppid() or os.getpgrp() != 0, os.getcwd() != "")


print("arguments", sys.argv[1:])
print("input", sys.stdin.read())
print("errno", errors_kept())
thread = threading.Thread(target=lambda: print("errno in a thread", errors_kept()))
thread.start()
thread.join()
train()
profile()
surroundings()
warnings.warn("a warning of the program's own")
torch.ones(3, requires_grad=True).grad_fn
torch.meshgrid(torch.ones(2), torch.ones(2))  # PyTorch warns of this once
print("something on standard error", file=sys.stderr)
print("no new line at the end", end="")
sys.exit(3)
