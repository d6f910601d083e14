# SPDX-License-Identifier: Apache-2.0
"""Spans, marks and metrics of plumb's own package, with no framework around: annotated.py [SECTION]."""
import asyncio
import functools
import sys
import threading

import plumb


def spans():
    with plumb.span("outer"):  # @outer
        for i in range(3):
            with plumb.span("inner"):  # @inner
                plumb.metric("tokens", 100 * i)  # @tokens
        plumb.mark("here")  # @here
    with plumb.span("wörd / \\"):  # @word
        pass


@plumb.span("decorated")
def decorated(n):
    """Its own text."""
    plumb.metric("calls", n)
    return n + 1


def decorators():
    assert [decorated(i) for i in range(3)] == [1, 2, 3]
    assert decorated.__name__ == "decorated" and decorated.__doc__ == "Its own text."


def errors():
    try:
        with plumb.span("raises"):
            raise KeyError("mine")
    except KeyError as error:
        assert error.args == ("mine",)
    for wrong in (lambda: plumb.span(7), lambda: plumb.mark(None), lambda: plumb.metric(b"x", 1),
                  lambda: plumb.metric("loss", 0.5), lambda: plumb.metric("x", "1")):
        try:
            wrong()
        except Exception as error:  # noqa: BLE001
            assert "TypeError" in str(error) or isinstance(error, TypeError), error
        else:
            raise AssertionError("accepted")
    plumb.metric("huge", 10 ** 30)
    plumb.metric("huge", -10 ** 30)
    plumb.metric("true", True)
    with plumb.span("a\0b"):
        pass


def on_thread(name):
    with plumb.span(name):
        with plumb.span("common"):
            plumb.metric("work", 1)


def threads():
    workers = [threading.Thread(target=on_thread, args=(f"thread {i}",)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


async def task(name, first, second):
    with plumb.span(name):
        await first.wait()
    second.set()


async def tasks():
    """Spans that overlap, which a person should not write: each ends its own all the same."""
    a, b, c = asyncio.Event(), asyncio.Event(), asyncio.Event()
    a.set()
    await asyncio.gather(task("one", b, c), task("two", a, b))


@plumb.span("coroutine")
async def coroutine():
    await asyncio.sleep(0)
    return 5


def async_code():
    asyncio.run(tasks())
    assert asyncio.run(coroutine()) == 5
    with plumb.span("after"):
        plumb.metric("balanced", 1)


def many():
    """More names than spans are kept for; each is still itself."""
    for i in range(5000):
        with plumb.span(f"name {i}"):
            pass
    with plumb.span("name 4999"), plumb.span("name 4999"):
        plumb.metric("twice", 1)


for name in sys.argv[1:]:
    globals()[name]()
