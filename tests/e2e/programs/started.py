# SPDX-License-Identifier: Apache-2.0
"""A program on the stand-in driver with a start-up and a loop: started.py STEPS. It tries kernels for 1.5 s, and then runs
STEPS steps of three kernels (2 ms, 1 ms, 1 ms) at 10 ms each."""
import sys
import time

from launcher import launch


def warm_up():
    for i in range(30):
        launch(b"fill_%d" % (i % 7), 20_000_000 + i % 5 * 1_000_000, 0, 0)
        time.sleep(0.05)


def step():
    for name, ms in ((b"forward", 2), (b"backward", 1), (b"update", 1)):
        launch(name, ms * 1_000_000, 0, 0)  # @launch
    time.sleep(0.01)


warm_up()
for _ in range(int(sys.argv[1])):
    step()
