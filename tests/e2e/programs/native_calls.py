# SPDX-License-Identifier: Apache-2.0
"""Launches on the stand-in driver from native code of several kinds: native_calls.py DEEP_LIBRARY."""
import ctypes
import mmap
import sys
import threading

import launcher
from launcher import _library, launch

deep_library = ctypes.CDLL(sys.argv[1])
deep = deep_library.deep
deep.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int]
target = ctypes.cast(_library.launcher_launch, ctypes.c_void_p)


def plain():
    launch(b"plain", 10, 0, 0)  # @plain


def shallow_and_deep():
    for _ in range(3):
        deep(target, b"shallow", 5)  # @shallow
    deep(target, b"deep", 2000)  # @deep


def generated():
    # sub $8,%rsp; movabs $launch,%rax; call *%rax; add $8,%rsp; ret
    code = b"\x48\x83\xec\x08\x48\xb8" + target.value.to_bytes(8, "little") + b"\xff\xd0\x48\x83\xc4\x08\xc3"
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    start = ctypes.addressof(ctypes.c_char.from_buffer(page))
    call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint32)
    for _ in range(4):
        call(start)(b"generated", 10, 0, 0)  # @generated


def callback():
    """Python that C calls: only what lies within the inner Python frame is under it."""
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_uint, ctypes.c_uint)

    def inner(name, *_):
        return launch(name, 10, 0, 0)  # @inner
    deep(ctypes.cast(kind(inner), ctypes.c_void_p), b"called_back", 3)  # @callback


def threads():
    workers = [threading.Thread(target=plain) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    launcher.native_thread(b"native", 10, 5)


plain()
shallow_and_deep()
generated()
callback()
threads()
