# SPDX-License-Identifier: Apache-2.0
"""Turns recording on and off from inside a recorded program."""
import functools
import os

_session = None  # the collector that plumb.profile() loaded, while it records


def use(library):
    """Makes these functions those of LIBRARY. None: those of the collector that `plumb run` preloaded, if any."""
    global _session
    _session = library
    _entry.cache_clear()


def under_run() -> bool:
    """True if `plumb run` records this process."""
    return bool(os.environ.get("PLUMB_FOLDER")) and _session is None and _entry("plumb_is_recording") is not None


@functools.lru_cache(maxsize=None)
def _entry(name):
    """The collector's function NAME in this process, or None without a collector."""
    import ctypes  # not where a program only annotates
    try:
        function = getattr(_session or ctypes.PyDLL(None), name)
    except (AttributeError, OSError):
        return None
    function.restype = ctypes.c_int
    function.argtypes = ()
    return function


def _call(name):
    function = _entry(name)
    return bool(function and function())


def start() -> bool:
    """Starts or resumes recording, in every process of the run on this host.

    Returns True if plumb is attached. Without `plumb run` it does nothing and returns False."""
    return _call("plumb_start")


def stop() -> bool:
    """Pauses recording in every process of the run on this host. The program goes on.

    Operators that are running at a pause get no time. Returns True if plumb is attached, like start()."""
    return _call("plumb_stop")


def recording() -> bool:
    """True if this process is recorded now."""
    return _call("plumb_is_recording")
