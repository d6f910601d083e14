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
    parser.add_argument("--fixed", action="store_true", help="run without the fault")
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--rounds", type=int, default=1, help="how often to time that many steps")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    chosen = parser.parse_args()
    chosen.gpu = chosen.device.startswith("cuda")
    chosen.warm_up = 5 if chosen.gpu else 0
    torch.manual_seed(0)
    return chosen


def wait(chosen):
    if chosen.gpu:
        torch.cuda.synchronize()


def measure(chosen, warm_up, work):
    """Calls WARM_UP(), then WORK() for each round, which trains for as many steps as were chosen and
    returns the last loss, and prints that loss and the time of a step."""
    warm_up()
    for _ in range(chosen.rounds):
        wait(chosen)
        start = time.perf_counter()
        loss = work()
        wait(chosen)
        each = (time.perf_counter() - start) / max(chosen.steps, 1)
        print(f"loss {loss.item():.5f}, {each * 1e3:.3f} ms a step, "
              f"{chosen.steps} steps after {chosen.warm_up}")


def train(chosen, step):
    """Measures calls of STEP(number), which returns the loss."""

    def steps(first, count):
        for number in range(first, first + count):
            loss = step(number)
        return loss if count else None

    measure(chosen, lambda: steps(0, chosen.warm_up), lambda: steps(chosen.warm_up, chosen.steps))
