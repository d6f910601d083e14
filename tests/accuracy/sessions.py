#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recordings inside a running process on a GPU (plumb.profile), held against torch.profiler and against what the
program knows of itself.

    python3 tests/accuracy/sessions.py [--early]      (with plumb's package installed, or in PYTHONPATH)

--early: CUDA is initialised before the first recording. Prints one line for each fact, PASS or FAIL; exits 0 or 1.
torch.profiler comes last, because it keeps CUPTI until the process ends.
"""
import argparse
import asyncio
import os
import sys
import tempfile
import threading
import time

import torch
from torch.profiler import ProfilerActivity

import plumb

failed = []


def fact(name, holds, seen):
    print("PASS" if holds else "FAIL", name, "" if holds else f": {seen}", flush=True)
    if not holds:
        failed.append(name)


def kernels(profile):
    return sum(kernel.exclusive["gpu.time"].count for kernel in profile.kernels)


def drops(profile):
    return [(row.source, row.fate, row.count) for row in profile.ledger if row.is_drop and row.count]


class Model:
    def __init__(self):
        torch.manual_seed(0)
        self.net = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.x = torch.randn(64, 512, device="cuda")

    def step(self):
        with plumb.span("step"):
            self.optimizer.zero_grad()
            self.net(self.x).square().mean().backward()
            self.optimizer.step()


def in_turn(model):
    """Recordings of 5, 10, 15 and 20 steps; returns how many kernels a step has."""
    counts = {}
    for steps in (5, 10, 15, 20):
        with plumb.profile(f"steps-{steps}.plumb", quiet=True) as recording:
            for _ in range(steps):
                model.step()
            torch.cuda.synchronize()
        profile = recording.result()
        counts[steps] = kernels(profile)
        spans = [(node.exclusive["op.calls"].sum, node.inclusive["gpu.time"].count)
                 for node in profile.of_kind("range") if node.name == "step"]
        fact(f"{steps} steps: all kernels are in the span", sum(row[0] for row in spans) == steps and
             sum(row[1] for row in spans) == counts[steps], spans)
        fact(f"{steps} steps: nothing is dropped", not drops(profile), drops(profile))
        work = [node for node in profile.kernels if node.is_backward]
        fact(f"{steps} steps: backward kernels hang under their forward operators",
             work and not any(node.is_accumulation for node in work), len(work))
    fact("kernels grow with steps", all(counts[5] * steps == counts[steps] * 5 for steps in counts), counts)
    return counts[5] // 5


def graphs(model):
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.no_grad():
        with torch.cuda.stream(stream):
            model.net(model.x)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            model.net(model.x)
        counts = []
        for number in range(2):
            with plumb.profile(f"graph-{number}.plumb", quiet=True) as recording:
                for _ in range(20):
                    graph.replay()
                torch.cuda.synchronize()
            counts.append(kernels(recording.result()))
    fact("replays of a graph that was captured before", counts[0] == counts[1] and counts[0] % 20 == 0 < counts[0], counts)


def threads(model):
    """Other threads launch all the time, while recordings come and go."""
    stop = []

    def compute():
        a = torch.ones(256, 256, device="cuda")
        while not stop:
            a @ a
            torch.cuda.synchronize()
    running = [threading.Thread(target=compute) for _ in range(3)]
    for thread in running:
        thread.start()
    seen = []
    for number in range(8):
        with plumb.profile(f"threads-{number}.plumb", quiet=True) as recording:
            model.step()
            time.sleep(0.1)
        profile = recording.result()
        seen.append((kernels(profile) > 0, drops(profile)))
    stop.append(True)
    for thread in running:
        thread.join()
    fact("eight recordings beside three busy threads", all(one == (True, []) for one in seen), seen)


def tasks():
    """Coroutines whose ranges interleave: each has the kernels that it launched."""
    a = torch.randn(256, 256, device="cuda")

    async def task(number):
        with torch.profiler.record_function(f"task {number}"):
            for _ in range(10 + number):
                a @ a
                await asyncio.sleep(0.001)

    async def gather():
        await asyncio.gather(*(task(number) for number in range(4)))
    with plumb.profile("tasks.plumb", quiet=True) as recording:
        asyncio.run(gather())
        torch.cuda.synchronize()
    seen = {node.name: node.inclusive["gpu.time"].count for node in recording.result().of_kind("range")}
    each = seen.get("task 0", 0) // 10  # a product may take several kernels
    fact("ranges of coroutines", each > 0 and seen == {f"task {number}": each * (10 + number) for number in range(4)},
         seen)


def beside_torch(model, each):
    with torch.profiler.profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as other:
        for _ in range(20):
            model.step()
        torch.cuda.synchronize()
    theirs = sum(1 for event in other.events() if event.device_type == torch.autograd.DeviceType.CUDA
                 and not event.name.startswith(("Mem", "step", "Optimizer", "ProfilerStep", "## ")))
    fact(f"torch.profiler counts as many kernels: {theirs}", theirs == 20 * each, (theirs, each))
    with plumb.profile("after.plumb", quiet=True) as recording:
        model.step()
    why = recording.result().environment.get("gpu.cuda.off", "")
    fact("after it, plumb says who keeps CUPTI", "torch.profiler" in why, why)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--early", action="store_true")
    if parser.parse_args().early:
        torch.ones(4, device="cuda").sum().item()
    os.chdir(tempfile.mkdtemp())
    with plumb.profile("first.plumb", quiet=True):  # without --early, CUDA comes during a recording
        model = Model()
        model.step()
        torch.cuda.synchronize()
    each = in_turn(model)
    graphs(model)
    threads(model)
    tasks()
    beside_torch(model, each)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
