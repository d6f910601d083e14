# SPDX-License-Identifier: Apache-2.0
"""A set-up and two loops on the stand-in driver: kernels, copies, sets, memory and waiting. mock_windows.py FILE writes how
often it went round each loop."""
import json
import sys
import time

from launcher import DEVICE, PAGEABLE, STREAM, alloc, copy, free, kernel, memset, wait

done = {"train": 0, "evaluate": 0}


def set_up(seconds):
    until = time.monotonic() + seconds
    number = 0
    while time.monotonic() < until:
        kernel(b"set_up_%d" % number, 1000000 * (1 + number % 5), 8 + number, 64, 32, 0, 0)
        copy(PAGEABLE, DEVICE, 1000 + number, 2000, 0, 0, 0)
        time.sleep(0.01 * (1 + number % 4))
        number += 1


def train(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        copy(PAGEABLE, DEVICE, 4096, 300000, 100000, 0, 0)
        for name in (b"forward", b"backward", b"update"):
            kernel(name, 2000000, 80, 128, 32, 0, 0)
        memset(512, 100000, 0)
        free(alloc(3000, -1), -1)
        wait(STREAM, 1000000)
        time.sleep(0.01)
        done["train"] += 1


def evaluate(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for name in (b"forward", b"forward", b"score"):
            kernel(name, 3000000, 20, 256, 64, 0, 0)
        copy(DEVICE, PAGEABLE, 128, 200000, 100000, 1, 0)
        time.sleep(0.01)
        done["evaluate"] += 1


set_up(1.0)
train(2.5)
evaluate(2.5)
with open(sys.argv[1], "w", encoding="utf-8") as file:
    json.dump(done, file)
