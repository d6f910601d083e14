# SPDX-License-Identifier: Apache-2.0
"""Waits 0.6 s in a range, and 20 times 20 ms in an operator written in Python; computes meanwhile.

Prints the ns that those operators took: on a busy machine 20 ms are more.
"""
import time

import torch


class Sleepy(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        time.sleep(0.02)
        return x * 1

    @staticmethod
    def backward(context, gradient):
        return gradient


x = torch.randn(300, 300)
with torch.autograd.profiler.record_function("a long wait"):
    time.sleep(0.6)
took = 0
for _ in range(20):
    x @ x
    before = time.perf_counter_ns()
    Sleepy.apply(x)
    took += time.perf_counter_ns() - before
print(took)
with torch.autograd.profiler.record_function("busy"):
    end = time.thread_time() + 0.5
    while time.thread_time() < end:
        x @ x
