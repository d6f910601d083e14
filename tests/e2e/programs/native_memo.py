# SPDX-License-Identifier: Apache-2.0
"""Launches whose native paths come again, nearly: native_memo.py FIRST_LIBRARY SECOND_LIBRARY. On the
stand-in driver; prints where each library was loaded."""
import ctypes
import os
import sys
import threading
from _ctypes import dlclose

from launcher import _library

import plumb

target = ctypes.cast(_library.launcher_launch, ctypes.c_void_p)


def load(path):
    library = ctypes.CDLL(path)
    library.sites.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int]
    print(os.path.basename(path), ctypes.cast(library.sites, ctypes.c_void_p).value, flush=True)
    return library


def places(sites):
    """One line, one depth, 2 and 12 places."""
    for turn in range(40):
        sites(target, b"two", turn % 2)  # @two
    for turn in range(120):
        sites(target, b"twelve", turn % 12)  # @twelve


def reload(first, second):
    """Another library at the address of one that has gone."""
    for path in (first, second, first):
        library = load(path)
        for _ in range(10):
            library.sites(target, b"reloaded", 3)  # @reloaded
        handle = library._handle
        del library
        dlclose(handle)


def look(times):
    for _ in range(times):
        plumb.metric("looks", 1)  # @look


def fork():
    look(10)
    child = os.fork()
    if not child:
        look(7)
        os._exit(0)
    os.waitpid(child, 0)
    look(5)


def threads():
    """One after the other, so that each takes over what the last one left."""
    for _ in range(4):
        thread = threading.Thread(target=look, args=(3,))
        thread.start()
        thread.join()


reload(*sys.argv[1:])
kept = load(sys.argv[1])
places(kept.sites)
fork()
threads()
