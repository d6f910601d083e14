# SPDX-License-Identifier: Apache-2.0
"""Changes its stack all the time. Who calls whom is to be seen in this file: a line calls the functions that it names.

    call_graph.py SECONDS
"""
import ctypes  # an extension module: plumb meets Python
import sys
import time


def empty(): pass


def other(): pass


def add(a, b):
    return a + b


def tight(n):
    for i in range(n):
        empty()
        other()
        add(i, n)


def leaf(n):
    x = n * 3
    return x + 1


def left(n):
    if n:
        left(n - 1)
        right(n - 1)
    leaf(n)


def right(n):
    leaf(n)
    if n:
        right(n - 1)
        left(n - 1)
    return add(n, n)


def counts(n):
    for i in range(n):
        yield leaf(i)
        empty()


def nested(n):
    yield from counts(n)
    yield add(n, n)


def generators(n):
    for value in nested(n):
        leaf(value)
    for value in counts(n):
        add(value, value)
    sum(nested(n))


class Thing:
    def __init__(self, n):
        self.n = leaf(n)
        empty()


def things(n):
    for _ in range(n):
        Thing(n)
        other()


def raises(n):
    if not n:
        raise ValueError
    raises(n - 1)


def catches(n):
    try:
        raises(n)
    except ValueError:
        leaf(n)
    finally:
        empty()


def key(x):
    return leaf(-x)


def callbacks(n):
    sorted(range(n), key=key)
    list(map(leaf, range(n)))


def makes(n):
    """Code objects that come and go at the same addresses."""
    for i in range(n):
        space = {"leaf": leaf, "other": other}
        exec("def made():\n other()\n leaf(1)\nmade()\n", space)


def rests(n):
    return sum(range(n))


def inner(n):
    return rests(n)


def outer(n):
    return inner(n)


def deep(n):
    return deep(n - 1) if n else leaf(n)


def all_of_it(end):
    while time.monotonic() < end:
        tight(300)
        left(6)
        right(6)
        generators(40)
        things(60)
        catches(8)
        callbacks(80)
        makes(10)
        deep(300)
        outer(20000)


all_of_it(time.monotonic() + float(sys.argv[1]))
