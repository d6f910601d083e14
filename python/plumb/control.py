# SPDX-License-Identifier: Apache-2.0
"""Turning recording on and off from inside a program that `plumb run` started."""
import functools


@functools.lru_cache(maxsize=None)
def _entry(name):
    """The collector's function in this process, or None without it."""
    import ctypes  # not where a program only annotates
    try:
        function = getattr(ctypes.PyDLL(None), name)
    except (AttributeError, OSError):
        return None
    function.restype = ctypes.c_int
    function.argtypes = ()
    return function


def _call(name):
    function = _entry(name)
    return bool(function and function())


def start():
    """Begins recording, or goes on after a pause, in every process of the run on this host. Returns
    whether plumb is attached: without `plumb run` it does nothing and returns False."""
    return _call("plumb_start")


def stop():
    """Pauses recording in every process of the run on this host; the program goes on. Operators that
    are open now, or in a pause, get no time. Returns as start()."""
    return _call("plumb_stop")


def recording():
    """Whether this process is recorded now."""
    return _call("plumb_is_recording")
