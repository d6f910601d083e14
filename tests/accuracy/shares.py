# SPDX-License-Identifier: Apache-2.0
"""A program whose shares of CPU time are known: each part reads its thread's CPU clock before and after.

    python3 shares.py LIBRARY SECONDS

C functions of LIBRARY (shares.c), Python functions and single lines compute in turn, in pieces of
unequal length, on three threads: the main one, one that computes in C without the GIL, and one in
Python. Prints as JSON what each took in ns, by native function, Python function, line and thread.
"""
import collections
import ctypes
import json
import random
import sys
import threading
import time

clock = time.thread_time_ns
library = ctypes.CDLL(sys.argv[1])
for function in "c_heavy", "c_alternate", "c_worker", "c_helper":
    getattr(library, function).argtypes = [ctypes.c_int64]
    getattr(library, function).restype = None
BUDGET = float(sys.argv[2]) * 1e9
NUMBERS = list(range(300))
functions, lines, threads = collections.Counter(), collections.Counter(), {}


def py_loop(ns):
    until, total = clock() + ns, 0
    while clock() < until:
        for i in range(100):
            total += i * i


def negated(value):
    return -value


def py_through_c(ns):
    until = clock() + ns
    while clock() < until:
        sorted(NUMBERS, key=negated)


def generated(ns):
    while True:
        until = clock() + ns
        while clock() < until:
            for i in range(50):
                ns += i - i
        yield until


def py_generator(ns):
    pieces = generated(ns // 4)
    for _ in range(4):
        next(pieces)


def py_recursive(ns, depth=12):
    if depth:
        return py_recursive(ns, depth - 1)
    until = clock() + ns
    while clock() < until:
        NUMBERS.index(299)


def py_lines(ns):
    start, total = clock(), 0
    first, second, third = start + ns * 6 // 10, start + ns * 9 // 10, start + ns
    while clock() < first: total += sum(NUMBERS)  # @line_six
    after_first = clock()
    while clock() < second: total += len([i + i for i in NUMBERS])  # @line_three
    after_second = clock()
    while clock() < third: total += 1  # @line_one
    lines["line_six"] += after_first - start
    lines["line_three"] += after_second - after_first
    lines["line_one"] += clock() - after_second


def py_c_heavy(ns):
    library.c_heavy(ns)


def py_c_alternate(ns):
    library.c_alternate(ns)


def py_c_worker(ns):
    library.c_worker(ns)


def py_c_helper(ns):
    library.c_helper(ns)


def py_thread(ns):
    until, total = clock() + ns, 0
    while clock() < until:
        total += len([i for i in NUMBERS])


def run(shares):
    """Computes for these percent of the budget, in pieces of half a millisecond to twenty."""
    choose = random.Random(7)
    left = {function: BUDGET * share / 100 for function, share in shares.items()}
    while left:
        function = choose.choice(list(left))
        start = clock()
        function(int(min(left[function], choose.uniform(0.5e6, 20e6))))
        took = clock() - start
        functions[function.__name__] += took
        left[function] -= took
        if left[function] <= 0:
            del left[function]
    threads[threading.get_native_id()] = clock()


def main():
    others = [threading.Thread(target=run, args=(shares,)) for shares in (
        {py_c_worker: 18, py_c_helper: 12}, {py_thread: 14, py_through_c: 6})]
    for thread in others:
        thread.start()
    run({py_c_heavy: 12, py_c_alternate: 8, py_loop: 9, py_generator: 6, py_recursive: 5, py_lines: 10})
    for thread in others:
        thread.join()
    threads[threading.get_native_id()] = clock()
    native = {name: ctypes.c_int64.in_dll(library, "spent_" + name).value
              for name in ("c_heavy", "c_left", "c_right", "c_worker", "c_helper")}
    print(json.dumps({"native": native, "python": functions, "line": lines, "thread": threads}))


main()
