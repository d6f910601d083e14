# SPDX-License-Identifier: Apache-2.0
"""Names for parts of a program, and numbers of its own, in the profiles of `plumb run`.

Without plumb every function here does nothing. With it they are C functions that Python calls directly:
no Python frame of plumb's stands between the person's line and the span, and the GIL is not released.
"""
import functools
import operator
import os

_SPANS_MOST = 4096  # names whose span is kept; more are made anew each time
_COROUTINE = 0x80  # inspect.CO_COROUTINE; the module takes longer to import than all of this


def _table():
    """The collector's functions (struct plumb_annotate of include/plumb/annotate.h), or None."""
    # ctypes takes milliseconds to import, which a program without plumb need not pay.
    if not os.environ.get("PLUMB_FOLDER") and "libplumb" not in os.environ.get("LD_PRELOAD", ""):
        return None
    try:
        import ctypes
    except ImportError:
        return None

    class Table(ctypes.Structure):
        _fields_ = [("size", ctypes.c_uint32), ("version", ctypes.c_uint32)] + [
            (name, ctypes.c_void_p) for name in ("push", "pop", "mark", "metric", "pop_named")]

    try:
        entry = ctypes.CDLL(None).plumb_annotate_v1
    except (OSError, AttributeError):
        return None
    entry.restype = ctypes.POINTER(Table)
    table = entry()
    if not table or table.contents.size < ctypes.sizeof(Table):
        return None
    return table.contents


def _attach():
    """(push, pop_named, mark, metric), or None where there is no plumb."""
    table = _table()
    if table is None:
        return None
    import ctypes

    class Text:
        """A name as the C function takes it: what Python does for it is over before the call."""
        @staticmethod
        def from_param(name):
            return ctypes.c_char_p(_encode(name))

    class Number:
        @staticmethod
        def from_param(value):
            return ctypes.c_int64(_whole(value))

    # A name of a span comes as the same bytes object in push and pop: the pointer tells it.
    push = ctypes.PYFUNCTYPE(None, ctypes.c_char_p)(table.push)
    # __exit__ is called with three arguments more, which the C function does not look at.
    pop = ctypes.PYFUNCTYPE(None, ctypes.c_char_p, *[ctypes.py_object] * 3)(table.pop_named)
    mark_ = ctypes.PYFUNCTYPE(None, ctypes.c_char_p)(table.mark)
    mark_.argtypes = [Text]
    metric_ = ctypes.PYFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int64)(table.metric)
    metric_.argtypes = [Text, Number]
    return push, pop, mark_, metric_


def _encode(name):
    if not isinstance(name, str):
        raise TypeError(f"a name is a str, not {type(name).__name__}")
    return name.encode("utf-8", "surrogatepass").replace(b"\0", b"?") or b"?"


def _whole(value):
    """VALUE as an integer of 64 bits; the nearest where it has more."""
    return max(-2 ** 63, min(2 ** 63 - 1, operator.index(value)))


def _decorate(self, function):
    """The span around each call of FUNCTION."""
    if getattr(getattr(function, "__code__", None), "co_flags", 0) & _COROUTINE:
        @functools.wraps(function)
        async def wrapped(*arguments, **named):
            with self:
                return await function(*arguments, **named)
    else:
        @functools.wraps(function)
        def wrapped(*arguments, **named):
            with self:
                return function(*arguments, **named)
    return wrapped


class Span:
    """What plumb.span() returns. `with` takes __enter__ and __exit__ from the slots: C functions."""
    __slots__ = ("__enter__", "__exit__", "name")

    def __init__(self, name, push, pop):
        encoded = _encode(name)
        self.name = name
        setattr(self, "__enter__", functools.partial(push, encoded))
        setattr(self, "__exit__", functools.partial(pop, encoded))

    __call__ = _decorate

    def __repr__(self):
        return f"plumb.span({self.name!r})"


class NoSpan:
    """plumb.span() where there is no plumb."""
    __slots__ = ("name",)

    def __init__(self, name):
        _encode(name)
        self.name = name

    def __enter__(self):
        return None

    def __exit__(self, *_):
        return None

    def __call__(self, function):
        return function

    def __repr__(self):
        return f"plumb.span({self.name!r})"


class _Spans(dict):
    """Name → span, made when first asked for."""

    def __init__(self, make):
        super().__init__()
        self._make = make

    def __missing__(self, name):
        made = self._make(name)
        if len(self) < _SPANS_MOST:
            self[name] = made
        return made


_attached = _attach()
_spans = _Spans(functools.partial(Span, push=_attached[0], pop=_attached[1])
                if _attached else NoSpan)


def span(name):
    """A named part of the program, as a range on the call paths of what runs in it.

        with plumb.span("load batch"):
            ...

        @plumb.span("evaluate")
        def evaluate(model): ...

    A span belongs to the thread that runs it. Work of another thread, or of another asyncio task that
    runs while this one awaits inside the span, is not told apart by it: keep `await` out of spans.
    """
    return _spans[name]


if _attached:
    mark, metric = _attached[2:]
else:
    def mark(name, /):
        """Marks a point in time: counted at the line that calls it, as range.marks."""
        _encode(name)

    def metric(name, value, /):
        """Adds the integer VALUE to the metric NAME at the line that calls it. Reports take the name
        as --metric. At most 64 names a process; scale what is no integer."""
        _encode(name)
        _whole(value)
