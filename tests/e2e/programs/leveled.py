# SPDX-License-Identifier: Apache-2.0
"""Steps on the stand-in driver that take known times, and longer by known times when they are looked at.

leveled.py STEPS [FILE]: in each step, "forward" takes 2 ms and launches 8 kernels, "backward" takes 4 ms and launches 1. With plumb's
collector in it, each of the two takes 1 ms more. The driver makes launches slower while kernels are recorded ($PLUMB_MOCK, slow).
STEPS may be several, separated by ",": each run takes the next one, by the lines that FILE has. "exit" instead of one of them ends
with exit code 3 after the usual steps.
"""
import os
import sys
import time

from launcher import kernel
from plumb import span

LOOKED_AT = 0.001 if "libplumb.so" in os.environ.get("LD_PRELOAD", "") else 0


def number_of_steps():
    wanted = sys.argv[1].split(",")
    file = sys.argv[2] if len(sys.argv) > 2 else None
    if not file:
        return wanted[0]
    with open(file, "a+", encoding="utf-8") as lines:
        lines.seek(0)
        runs = len(lines.readlines())
        lines.write("run\n")
    return wanted[min(runs, len(wanted) - 1)]


def part(name, seconds, launches, ns):
    with span(name):
        time.sleep(seconds + LOOKED_AT)
        for _ in range(launches):
            kernel(name.encode() + b"_kernel", ns, 80, 128, 32, 0, 0)


def main():
    wanted = number_of_steps()
    for number in range(60):
        kernel(b"set_up_%d" % (number % 7), 1000, 8, 64, 32, 0, 0)
        time.sleep(0.002)
    steps = 300 if wanted == "exit" else int(wanted)
    for _ in range(steps):
        part("forward", 0.002, 8, 100000)
        part("backward", 0.004, 1, 500000)
    print(f"made {steps} steps", flush=True)
    sys.exit(3 if wanted == "exit" else 0)


main()
