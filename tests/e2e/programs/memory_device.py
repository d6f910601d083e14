# SPDX-License-Identifier: Apache-2.0
"""Allocations through stand-ins for PyTorch's libraries (memory_standin.c), given as arguments: blocks
of a GPU as a caching allocator tells them, and memory of the CPU from two copies of a library."""
import ctypes
import os
import sys

CUDA, XPU = 1, 12


class Seen(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in
                ("calls", "address", "bytes", "allocated", "reserved", "kind", "index")]


class Library:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.standin_report.argtypes = [ctypes.c_int] + 4 * [ctypes.c_int64] + \
            2 * [ctypes.c_int]
        self.library.standin_alloc.argtypes = [ctypes.c_size_t]
        self.library.standin_alloc.restype = ctypes.c_void_p
        self.library.standin_free.argtypes = [ctypes.c_void_p]

    @property
    def seen(self):
        seen = Seen.in_dll(self.library, "standin_seen")
        return tuple(getattr(seen, name) for name, _ in Seen._fields_)

    def report(self, address, size, allocated, reserved, kind=CUDA, index=0, signed=0):
        calls = self.seen[0]
        self.library.standin_report(signed, address, size, allocated, reserved, kind, index)
        assert self.seen == (calls + 1, address, size, allocated, reserved, kind, index), self.seen


def blocks(a, signed):
    for i in range(4):
        a.report(0x7000_0000_0000 + i * 512, 512, 512 * (i + 1), 2097152, signed=signed)  # @blocks
    for i in range(4):
        a.report(0x7000_0000_0000 + i * 512, -512, 512 * (3 - i), 2097152, signed=signed)


def second_device(a):
    a.report(0x7100_0000_0000, 1 << 33, 1 << 33, 1 << 34, index=1)  # @second
    a.report(0x7100_0000_0000, -(1 << 33), 0, 1 << 34, index=1)
    a.report(0x7200_0000_0000, 64, 64, 128, XPU, 2)  # @xpu


def two_copies(a, b):
    """Each library's calls reach its own functions."""
    before = a.seen[0], b.seen[0]
    one = a.library.standin_alloc(1000)  # @one
    assert (a.seen[0], b.seen[0]) == (before[0] + 1, before[1]) and a.seen[2] == 1000
    two = b.library.standin_alloc(50)  # @two
    assert (a.seen[0], b.seen[0]) == (before[0] + 1, before[1] + 1) and b.seen[2] == 50
    b.library.standin_free(two)
    assert b.seen[:2] == (before[1] + 2, two)
    a.library.standin_free(one)
    assert a.seen[:2] == (before[0] + 2, one)
    a.library.standin_free(None)
    assert a.seen[0] == before[0] + 3


def main():
    a, b = map(Library, sys.argv[1:])
    blocks(a, 0)
    blocks(a, 1)
    second_device(a)
    two_copies(a, b)
    print("all arguments arrived", os.environ.get("PLUMB_MEMORY"))


main()
