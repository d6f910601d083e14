# SPDX-License-Identifier: Apache-2.0
"""What the cases share: their options, and a loop of training steps that says how long one takes."""
import argparse
import time

import torch


def options(description, add=None, steps=50):
    """The command line of a case; ADD(parser) adds to it. On a CPU cases are small, so that they run
    anywhere."""
    parser = argparse.ArgumentParser(description=description)
    if add:
        add(parser)
    parser.add_argument("--fixed", action="store_true", help="with the fault taken away")
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    chosen = parser.parse_args()
    chosen.gpu = chosen.device.startswith("cuda")
    torch.manual_seed(0)
    return chosen


def wait(chosen):
    if chosen.gpu:
        torch.cuda.synchronize()


def train(chosen, step, warm_up=5):
    """Calls STEP(number), which returns the loss, and prints the last loss and the time of a step."""
    if not chosen.gpu:
        warm_up = 0
    for number in range(warm_up):
        loss = step(number)
    wait(chosen)
    start = time.perf_counter()
    for number in range(warm_up, warm_up + chosen.steps):
        loss = step(number)
    wait(chosen)
    each = (time.perf_counter() - start) / max(chosen.steps, 1)
    print(f"loss {float(loss):.5f}, {each * 1e3:.3f} ms a step")
