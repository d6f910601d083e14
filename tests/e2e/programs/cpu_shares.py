# SPDX-License-Identifier: Apache-2.0
"""Computes for known parts of CPU time in known functions, and prints what each took as JSON.

The parts: seconds × 0.4 and 0.1 in two plain functions, 0.2 in a function that the interpreter enters
by way of C (sorted's key), 0.1 in a generator, and 0.2 on a thread of its own.
"""
import json
import sys
import threading
import time

SECONDS = float(sys.argv[1])
spent = {}


def spin(until):
    total = 0
    while time.thread_time() < until:
        for i in range(100):
            total += i * i
    return total


def large(seconds):
    spin(time.thread_time() + seconds)


def small(seconds):
    spin(time.thread_time() + seconds)


def key(value):
    total = 0
    for i in range(50):
        total += i
    return -value + total


def through_c(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        sorted(range(20), key=key)


def numbers(count):
    total = 0
    for number in range(count):
        for i in range(20):
            total += i
        yield total + number


def generator(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        for _ in numbers(50):
            pass


def on_thread(seconds):
    spin(time.thread_time() + seconds)


def measured(function, share):
    start = time.thread_time_ns()
    function(SECONDS * share)
    spent[function.__name__] = time.thread_time_ns() - start


thread = threading.Thread(target=measured, args=(on_thread, 0.2))
thread.start()
measured(large, 0.4)
measured(small, 0.1)
measured(through_c, 0.2)
measured(generator, 0.1)
thread.join()
print(json.dumps(spent))
