# SPDX-License-Identifier: Apache-2.0
"""A "GPU" whose memory rises and falls, through a stand-in for PyTorch's libraries (memory_standin.c): weights that
stay, activations of each step, and a history that grows. Prints the peak, what lives at the end, and what is reserved."""
import ctypes
import sys
import time

MIB = 1 << 20
report = ctypes.CDLL(sys.argv[1]).standin_report
report.argtypes = [ctypes.c_int] + 4 * [ctypes.c_int64] + 2 * [ctypes.c_int]
used = reserved = peak = number = 0


def plan(size):
    """What to report of a block of SIZE: its address first."""
    global used, reserved, peak, number
    number += 1
    used += size
    reserved, peak = max(reserved, -(-used // (64 * MIB)) * 64 * MIB), max(peak, used)
    return 0, number << 32, size, used, reserved, 1, 0


def free(block):
    global used
    used -= block[2]
    report(0, block[1], -block[2], used, reserved, 1, 0)


report(*plan(10 * MIB))  # @weights
for _ in range(20):
    blocks = []
    for _ in range(8):
        blocks.append(plan(12 * MIB))
        report(*blocks[-1])  # @activation
        time.sleep(0.002)
    for block in reversed(blocks):
        free(block)
        time.sleep(0.001)
    report(*plan(MIB))  # @history
time.sleep(0.05)  # The chart ends with what is left.
print(peak, used, reserved)
