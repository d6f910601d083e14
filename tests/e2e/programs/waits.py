# SPDX-License-Identifier: Apache-2.0
"""Waits 0.6 s in a range, and 20 times 20 ms in an operator written in Python; computes meanwhile.

Prints the ns that the wait and those operators took: on a busy machine 20 ms are more.
"""
import json
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
took = {"a long wait": 0, "Sleepy": 0}
with torch.autograd.profiler.record_function("a long wait"):
    before = time.perf_counter_ns()
    time.sleep(0.6)
    took["a long wait"] += time.perf_counter_ns() - before
for _ in range(20):
    x @ x
    before = time.perf_counter_ns()
    Sleepy.apply(x)
    took["Sleepy"] += time.perf_counter_ns() - before
print(json.dumps(took))
with torch.autograd.profiler.record_function("busy"):
    end = time.thread_time() + 0.5
    while time.thread_time() < end:
        x @ x
