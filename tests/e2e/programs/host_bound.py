# SPDX-License-Identifier: Apache-2.0
"""A loop on the stand-in driver whose GPU waits for the host: host_bound.py STEPS MS [SLEEPING_STEP…].

Between two steps `prepare` computes for MS of CPU time and `rest` sleeps for a third of that; in the steps named it
sleeps for the whole of it instead of computing. Prints what each took, as JSON."""
import json
import sys
import time

from launcher import launch

steps, seconds, sleeping = int(sys.argv[1]), float(sys.argv[2]) / 1000, set(map(int, sys.argv[3:]))
took = {"prepare": 0, "rest": 0}


def prepare():
    end, number = time.thread_time() + seconds, 0
    while time.thread_time() < end:  # @last
        for i in range(2000):  # @first
            number += i * i  # @prepare
    return number


def rest(seconds):
    time.sleep(seconds)  # @rest


def step(number):
    begin = time.monotonic_ns()
    if number in sleeping:
        rest(seconds)
    else:
        prepare()
    between = time.monotonic_ns()
    rest(seconds / 3)
    took["prepare"] += between - begin
    took["rest"] += time.monotonic_ns() - between
    for name in (b"forward", b"loss", b"backward", b"update"):
        launch(name, 50_000, 0, 0)  # @launch


for number in range(steps):
    step(number)
print(json.dumps(took))
