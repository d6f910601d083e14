# SPDX-License-Identifier: Apache-2.0
"""A loop on the stand-in driver whose GPU waits for the host: host_bound.py STEPS MS SLEEPS EXTRA.

Between two steps `prepare` computes for MS of CPU time and `rest` sleeps for a third of that. In the step SLEEPS it
sleeps for twice as long instead, so that this is not the median step on a busy machine either; in the step EXTRA
`augment` computes besides, for three times as long. Prints what the others took, as JSON."""
import json
import sys
import time

from launcher import launch

steps, milliseconds, sleeps, extra = map(int, sys.argv[1:])
seconds = milliseconds / 1000
took = {"prepare": 0, "rest": 0}


def prepare(number=0):
    end = time.thread_time() + seconds
    while time.thread_time() < end:  # @first
        for i in range(2000):  # @second
            number += i * i  # @prepare
    return number


def augment(number=0):
    end = time.thread_time() + 3 * seconds
    while time.thread_time() < end:
        number += sum(range(2000))  # @augment
    return number


def rest(seconds):
    time.sleep(seconds)  # @rest


def step(number):
    begin = time.monotonic_ns()
    if number == sleeps:
        rest(2 * seconds)
    else:
        prepare()
    between = time.monotonic_ns()
    rest(seconds / 3)
    took["prepare"] += between - begin
    took["rest"] += time.monotonic_ns() - between
    if number == extra:
        augment()
    for name in (b"forward", b"loss", b"backward", b"update"):
        launch(name, 50_000, 0, 0)  # @launch


for number in range(steps):
    step(number)
print(json.dumps(took))
