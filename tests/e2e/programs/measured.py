# SPDX-License-Identifier: Apache-2.0
"""A loop of launches on the stand-in driver, which knows how long its steps take.

measured.py STEPS [FILE]: appends a line to FILE: "recorded" or "plain", the rank, the ns of a step (the median of blocks of
30 steps). STEPS may be several, separated by ",": each run takes the next one, by the lines that FILE has. "-" reads the
number from standard input.
"exit" instead of STEPS, or as one of them, ends with exit code 3 after the usual steps.
"""
import os
import statistics
import sys
import time

from launcher import kernel

NAMES = (b"forward", b"backward", b"update", b"clip")


def number_of_steps(file):
    wanted = sys.argv[1].split(",")
    runs = len(open(file, encoding="utf-8").readlines()) if file and os.path.exists(file) else 0
    mine = wanted[min(runs, len(wanted) - 1)]
    return sys.stdin.readline().strip() if mine == "-" else mine


def main():
    file = sys.argv[2] if len(sys.argv) > 2 else None
    wanted = number_of_steps(file)
    steps = 250 if wanted == "exit" else int(wanted)
    for number in range(60):
        kernel(b"set_up_%d" % (number % 7), 1000, 8, 64, 32, 0, 0)
        time.sleep(0.002)
    times = []
    for _ in range(steps):
        before = time.perf_counter_ns()
        for name in NAMES:
            kernel(name, 1000, 80, 128, 32, 0, 0)
        time.sleep(0.006)
        times.append(time.perf_counter_ns() - before)
    print(f"made {steps} steps", flush=True)
    if file:
        kind = "recorded" if "libplumb.so" in os.environ.get("LD_PRELOAD", "") else "plain"
        with open(file, "a", encoding="utf-8") as lines:
            blocks = [statistics.fmean(times[at:at + 30]) for at in range(0, steps - 29, 30)]
            lines.write(f"{kind} {os.environ.get('RANK', '-')} {int(statistics.median(blocks))}\n")
    sys.exit(3 if wanted == "exit" else 0)


main()
