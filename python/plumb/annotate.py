# SPDX-License-Identifier: Apache-2.0
"""Spans, marks and metrics of your own, in the profiles of `plumb run` and plumb.profile().

Without plumb every function here does nothing. Under `plumb run` they are C functions that Python calls
directly: no Python frame of plumb comes between your line and the span, and the GIL is not released.
"""
import functools
import operator
import os

_SPANS_MOST = 4096  # names whose span is kept; more are made anew each time
_COROUTINE = 0x80  # inspect.CO_COROUTINE; the module takes longer to import than all of this


def _preloaded():
    """The library that a program under `plumb run` has, or None."""
    # ctypes takes milliseconds to import, which a program without plumb need not pay.
    if not os.environ.get("PLUMB_FOLDER") and "libplumb" not in os.environ.get("LD_PRELOAD", ""):
        return None
    try:
        import ctypes
        return ctypes.CDLL(None)
    except (ImportError, OSError):
        return None


def _table(library):
    """The collector's functions (struct plumb_annotate of include/plumb/annotate.h), or None."""
    import ctypes

    class Table(ctypes.Structure):
        _fields_ = [("size", ctypes.c_uint32), ("version", ctypes.c_uint32)] + [
            (name, ctypes.c_void_p) for name in ("push", "pop", "mark", "metric", "pop_named", "name")]

    try:
        entry = library.plumb_annotate_v1
    except AttributeError:
        return None
    entry.restype = ctypes.POINTER(Table)
    table = entry()
    if not table or table.contents.size < ctypes.sizeof(Table):
        return None
    return table.contents


def _attach(library):
    """(push, pop_named, mark, metric, name), or None if LIBRARY is not plumb's."""
    table = library and _table(library)
    if not table:
        return None
    import ctypes

    class Text:
        """Converts a name to what the C function takes, before the call."""
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
    name_ = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_char_p)(table.name)
    return push, pop, mark_, metric_, name_


def _encode(name):
    if not isinstance(name, str):
        raise TypeError(f"a name must be a str, not {type(name).__name__}")
    return name.encode("utf-8", "surrogatepass").replace(b"\0", b"?") or b"?"


def _whole(value):
    """VALUE as a 64-bit integer. A larger number becomes the nearest one that fits."""
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
    """What plumb.span() returns. `with` takes __enter__ and __exit__ from the slots, which are C functions."""
    __slots__ = ("__enter__", "__exit__", "name")

    def __init__(self, name, push, pop):
        encoded = _encode(name)
        self.name = name
        setattr(self, "__enter__", functools.partial(push, encoded))
        setattr(self, "__exit__", functools.partial(pop, encoded))

    def __call__(self, function):
        """Returns FUNCTION with this span around each call."""
        return _decorate(self, function)

    def __repr__(self):
        return f"plumb.span({self.name!r})"


def _nothing(*_):
    return None


class LateSpan:
    """What plumb.span() returns while nothing records. You may keep it: it is a span once plumb.profile() records."""
    __slots__ = ("name",)

    def __init__(self, name):
        _encode(name)
        self.name = name

    # Properties, so that `with` calls the C functions themselves: no frame of ours is on the path.
    __enter__ = property(lambda self: _nothing if _session is None else _session.spans[self.name].__enter__)
    __exit__ = property(lambda self: _nothing if _session is None else _session.spans[self.name].__exit__)

    def __call__(self, function):
        """Returns FUNCTION with this span around each call."""
        return _decorate(self, function)

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


class _Session:
    """The functions of a collector that came into the running process."""

    def __init__(self, functions):
        push, pop, self.mark, self.metric, self.name = functions
        self.spans = _Spans(functools.partial(Span, push=push, pop=pop))


_attached = _attach(_preloaded())
_spans = _Spans(functools.partial(Span, push=_attached[0], pop=_attached[1]) if _attached else LateSpan)
_session = None  # while plumb.profile() records


def use(library):
    """Sends spans, marks and metrics to LIBRARY, the collector that plumb.profile() loaded. None: to nobody."""
    global _session
    functions = _attach(library)
    _session = _Session(functions) if functions else None


def span(name):
    """Names a part of the program. What runs in it has this range on its call path.

        with plumb.span("load batch"):
            ...

        @plumb.span("evaluate")
        def evaluate(model): ...

    A span belongs to the thread that runs it, and to the asyncio task or greenlet that opened it. While
    this task awaits inside the span, the work of other tasks is not part of it.
    """
    return (_spans if _session is None else _session.spans)[name]


def _extent(array):
    """(address, bytes) of what has a __cuda_array_interface__."""
    shape, size = array["shape"], int(array["typestr"][2:])
    low, high = 0, size
    if 0 in shape:
        return array["data"][0], 0
    steps = array.get("strides")
    if steps is None:
        for count in shape:
            high *= count
        return array["data"][0], high
    for count, step in zip(shape, steps):
        if step < 0:
            low += (count - 1) * step
        else:
            high += (count - 1) * step
    return array["data"][0] + low, high - low


def _place(thing):
    """(address, bytes) of THING on the GPU; 0 bytes: they are not known."""
    if isinstance(thing, int):
        return thing, 0
    if hasattr(thing, "data_ptr"):  # a tensor of PyTorch, which has no array interface if it needs gradients
        return thing.data_ptr(), 0
    interface = getattr(thing, "__cuda_array_interface__", None)
    if interface is None:
        raise TypeError(f"plumb.name takes an array or a tensor on a GPU, or an address, not {type(thing).__name__}")
    return _extent(interface)


def name(thing, name, /):
    """Calls the array, tensor or address THING by NAME in profiles of `plumb run --traffic`. Returns THING.

        weights = plumb.name(cupy.zeros(n), "weights")

    THING has a __cuda_array_interface__ (CuPy, Numba, PyTorch, JAX) or a method data_ptr()."""
    function = _session.name if _session is not None else _attached[4] if _attached else None
    encoded = _encode(name)
    if function:
        address, size = _place(thing)
        if 0 < address < 2 ** 64:
            function(address, size, encoded)
    return thing


if _attached:
    mark, metric = _attached[2:4]
else:
    def mark(name, /):
        """Marks a point in time. It is counted as range.marks, at the line that calls it."""
        _encode(name)
        if _session is not None:
            _session.mark(name)

    def metric(name, value, /):
        """Adds the integer VALUE to the metric NAME, at the line that calls it.

        `plumb report --metric NAME` shows it. A process can have 64 names. Scale a value that is not an integer."""
        _encode(name)
        _whole(value)
        if _session is not None:
            _session.metric(name, value)
