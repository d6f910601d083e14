# SPDX-License-Identifier: Apache-2.0
"""The stand-in driver's calls for programs: tests/mock/launcher.c and mock.h through ctypes.

They are C functions, not Python ones, so that a call stands under the very line that makes it.
$MOCK_LAUNCHER is the built launcher; the driver is the libcuda.so.1 that LD_LIBRARY_PATH finds. Import
it before torch: the stand-in CUPTI in $MOCK_CUPTI is then the one that PyTorch finds, too.
"""
import ctypes
import os
from ctypes import c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p

if os.environ.get("MOCK_CUPTI"):
    ctypes.CDLL(os.environ["MOCK_CUPTI"], ctypes.RTLD_GLOBAL)
_library = ctypes.CDLL(os.environ["MOCK_LAUNCHER"])
if _library.launcher_open():
    raise SystemExit(64)
_driver = ctypes.CDLL("libcuda.so.1")

PAGEABLE, PINNED, DEVICE, ARRAY, MANAGED = range(1, 6)
STREAM, CONTEXT, EVENT = range(3)


def _function(library, name, result, *arguments):
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments
    return function


# NAME, NS, STREAM, DEVICE
launch = _function(_library, "launcher_launch", c_int, c_char_p, c_uint64, c_uint32, c_uint32)
# NAME, NS, GRID, BLOCK, REGISTERS, STATIC, DYNAMIC
kernel = _function(_library, "launcher_kernel", c_int, c_char_p, c_uint64, *[c_uint32] * 5)
# FROM, TO, BYTES, NS, HOST_NS, BLOCKING, TO_PEER
copy = _function(_library, "launcher_copy", c_int, c_uint32, c_uint32, c_uint64, c_uint64, c_uint64,
                 c_int, c_int)
# NAME, NS, TIMES
native_thread = _function(_library, "launcher_native_thread", c_int, c_char_p, c_uint64, c_uint64)
# BYTES, NS, STREAM
memset = _function(_driver, "mock_memset", c_int, c_uint64, c_uint64, c_uint32)
# WHAT, HOST_NS
wait = _function(_driver, "mock_wait", c_int, c_int, c_uint64)
stream_wait_event = _function(_driver, "mock_stream_wait_event", c_int, c_uint32)
event_record = _function(_driver, "mock_event_record", c_int, c_uint32, c_uint32)  # EVENT, STREAM
stream_waits = _function(_driver, "mock_stream_waits", c_int, c_uint32, c_uint32)  # STREAM, EVENT
event_wait = _function(_driver, "mock_event_wait", c_int, c_uint32, c_uint64)  # EVENT, HOST_NS
stream_wait = _function(_driver, "mock_stream_wait", c_int, c_uint32, c_uint64)  # STREAM, HOST_NS
# BYTES, STREAM (-1: cuMemAlloc); POINTER, STREAM
alloc = _function(_driver, "mock_alloc", c_uint64, c_size_t, c_int)
free = _function(_driver, "mock_free", c_int, c_uint64, c_int)
# DEVICE, STREAM, NS
gap = _function(_driver, "mock_gap", None, c_uint32, c_uint32, c_uint64)
# DEVICE, STREAM, NS
stream_until = _function(_driver, "mock_stream_until", None, c_uint32, c_uint32, c_uint64)
# FUNCTION, METRIC, VALUE: what a launch counts. Texts have to stay.
counter = _function(_driver, "mock_counter", None, c_char_p, c_char_p, c_uint64)
mock_set = _function(_driver, "mock_set", c_int, c_char_p, ctypes.c_longlong)
mock_get = _function(_driver, "mock_get", ctypes.c_longlong, c_char_p)
capture_begin = _function(_driver, "mock_capture_begin", c_int, c_uint32)
capture_end = _function(_driver, "mock_capture_end", c_void_p, c_uint32)
graph_launch = _function(_driver, "mock_graph_launch", c_int, c_void_p, c_uint32)

_on_free = _function(_library, "launcher_on_free", c_void_p, c_char_p, c_uint64)
_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype, _capsule.argtypes = ctypes.py_object, (c_void_p, c_char_p, c_void_p)


def tensor_on_free(name, ns):
    """A tensor of four ones; whoever lets go of its memory last launches NAME."""
    from torch.utils.dlpack import from_dlpack
    return from_dlpack(_capsule(_on_free(name, ns), b"dltensor", None))
