# SPDX-License-Identifier: Apache-2.0
"""A program that uses the stand-in NCCL (tests/mock/nccl.c) on the stand-in driver: nccl_player.py KIND [VERSION]. VERSION is the
newest version of the profiler's interface that this NCCL speaks."""
import ctypes
import os
import sys
import threading
from ctypes import c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p

from launcher import alloc, capture_begin, capture_end, graph_launch, launch, stream_until

_library = ctypes.CDLL(os.path.join(os.path.dirname(os.environ["MOCK_LAUNCHER"]), "libnccl-standin.so"))


def _function(name, result, *arguments):
    function = getattr(_library, name)
    function.restype, function.argtypes = result, arguments
    return function


nccl_open = _function("standin_open", c_int, c_int)
nccl_mask = _function("standin_mask", c_int)
groups = _function("standin_groups", None, c_int)
# ID, NAME, NODES, RANKS, RANK
communicator = _function("standin_comm", c_void_p, c_uint64, c_char_p, c_int, c_int, c_int)
end = _function("standin_end", None, c_void_p)
choose = _function("standin_choose", None, c_void_p, c_char_p, c_char_p)
# COMM, FROM, TO
buffers = _function("standin_buffers", None, c_void_p, c_uint64, c_uint64)
capture = _function("standin_capture", None, c_void_p, c_int)
# COMM, FUNCTION, COUNT, DATATYPE, ROOT or PEER
collective = _function("standin_collective", None, c_void_p, c_char_p, c_size_t, c_char_p, c_int)
p2p = _function("standin_p2p", None, c_void_p, c_char_p, c_size_t, c_char_p, c_int)
# COMM, KERNEL, NS, STREAM, DEVICE
run = _function("standin_launch", c_int, c_void_p, c_char_p, c_uint64, c_uint32, c_uint32)
tell = _function("standin_tell", None, c_void_p)
strange = _function("standin_strange", None, c_void_p, c_uint64)

REDUCE = b"_Z40ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE"
GATHER = b"_Z33ncclDevKernel_AllGather_RING_LL24ncclDevKernelArgsStorageILm4096EE"
SEND = b"_Z22ncclDevKernel_SendRecv24ncclDevKernelArgsStorageILm4096EE"
F32, BF16 = b"ncclFloat32", b"ncclBfloat16"


def kinds(comm):
    """One operation of each kind, with its own kernel."""
    collective(comm, b"AllReduce", 1000, F32, 0)
    run(comm, REDUCE, 1000, 1, 0)  # @reduce
    collective(comm, b"AllGather", 500, BF16, 0)
    run(comm, GATHER, 2000, 1, 0)  # @gather
    collective(comm, b"Broadcast", 25, b"ncclInt64", 1)
    run(comm, b"ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 3000, 1, 0)
    collective(comm, b"AllReduce", 1000, F32, 0)
    choose(comm, b"TREE", b"LL128")
    collective(comm, b"AllReduce", 10, b"ncclFloat64", 0)
    run(comm, REDUCE, 4000, 2, 0)  # @two
    p2p(comm, b"Send", 64, F32, 1)
    p2p(comm, b"Recv", 32, F32, 1)
    p2p(comm, b"Send", 64, F32, 1)
    run(comm, SEND, 5000, 1, 0)


def objects(comm):
    weights = alloc(4096, -1)  # @weights
    gradients = alloc(8192, -1)  # @gradients
    for _ in range(2):
        buffers(comm, gradients, weights)
        collective(comm, b"AllReduce", 16, F32, 0)
        run(comm, REDUCE, 1000, 1, 0)
    buffers(comm, weights + 64, 0)
    p2p(comm, b"Send", 16, F32, 1)
    buffers(comm, 0, gradients + 8)
    p2p(comm, b"Recv", 16, F32, 1)
    buffers(comm, 0x10, 0)
    p2p(comm, b"Send", 16, F32, 1)
    run(comm, SEND, 1000, 1, 0)


def between(comm):
    """Other kernels come between, and operations that have none."""
    for step in range(3):
        launch(b"forward_kernel", 700, 0, 0)
        collective(comm, b"AllReduce", 100 + step, F32, 0)
        run(comm, REDUCE, 1000 * (1 + step), 1, 0)
        launch(b"ncclLike_but_not_told", 50, 3, 0)
        launch(b"update_kernel", 300, 0, 0)
    collective(comm, b"AllGather", 7, F32, 0)  # by copies
    tell(comm)


def calls(comm):
    """Called in one place, launched in another."""
    def first():
        collective(comm, b"AllReduce", 8, F32, 0)  # @first

    def second():
        collective(comm, b"AllReduce", 16, F32, 0)  # @second
    first()
    second()
    run(comm, REDUCE, 1000, 1, 0)  # @end


def elsewhere(comm):
    """A thread of NCCL's own launches."""
    collective(comm, b"AllReduce", 8, F32, 0)  # @called
    thread = threading.Thread(target=lambda: run(comm, REDUCE, 1000, 1, 0))
    thread.start()
    thread.join()


def graph(comm):
    capture_begin(1)
    capture(comm, 1)
    collective(comm, b"AllReduce", 8, F32, 0)
    run(comm, REDUCE, 1000, 1, 0)
    captured = capture_end(1)
    capture(comm, 0)
    for _ in range(3):
        graph_launch(captured, 1)
    collective(comm, b"AllReduce", 8, F32, 0)
    run(comm, REDUCE, 1000, 1, 0)


def many(comm):
    for _ in range(5000):
        collective(comm, b"AllReduce", 8, F32, 0)
        run(comm, REDUCE, 1000, 1, 0)


def one_group(comm):
    for peer in range(2000):
        p2p(comm, b"Send", 8, F32, peer)
    run(comm, SEND, 1000, 1, 0)


def no_groups(comm):
    groups(0)
    kinds(comm)


def hostile(comm):
    collective(comm, b"\xff\xfe\n\x01" + b"x" * 50, 8, b"no such type", 0)
    choose(comm, None, b"\x80")
    collective(comm, b"AllReduce", 2 ** 63 + 5, F32, -1)
    p2p(comm, b"Send", 8, F32, -7)
    p2p(comm, b"Recv", 2 ** 64 - 1, F32, 2 ** 31 - 1)
    p2p(comm, b"", 1, b"", 1)
    run(comm, REDUCE, 1000, 1, 0)
    for handle in (1, 0x504c << 48, (0x504c << 48) + 2, 2 ** 64 - 1):
        strange(comm, handle)
    end(comm)
    strange(comm, 3)
    collective(comm, b"AllReduce", 8, F32, 0)  # after its end
    run(comm, REDUCE, 1000, 1, 0)


def fork(comm):
    collective(comm, b"AllReduce", 1000, F32, 0)
    run(comm, REDUCE, 1000, 1, 0)
    child = os.fork()
    if not child:
        collective(comm, b"AllReduce", 77, F32, 0)
        tell(comm)
        end(comm)
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    collective(comm, b"AllReduce", 1000, F32, 0)
    run(comm, REDUCE, 1000, 1, 0)


def paused(comm):
    import plumb
    collective(comm, b"AllReduce", 10, F32, 0)
    run(comm, REDUCE, 1000, 1, 0)
    plumb.stop()
    collective(comm, b"AllReduce", 20, F32, 0)
    p2p(comm, b"Send", 1, F32, 1)
    run(comm, REDUCE, 1000, 1, 0)
    plumb.start()
    collective(comm, b"AllReduce", 30, F32, 0)
    p2p(comm, b"Send", 1, F32, 1)
    run(comm, REDUCE, 1000, 1, 0)


def after_stop(comm):
    """The library goes on when plumb has ended."""
    collective(comm, b"AllReduce", 10, F32, 0)
    run(comm, REDUCE, 1000, 1, 0)
    _library.standin_at_exit(c_void_p(comm))


def main(kind, version="5"):
    agreed = nccl_open(int(version))
    print("version", agreed)
    comm = communicator(0x1234abcd, b"pg", 1, 2, 0)
    print("mask", nccl_mask())
    globals()[kind](comm)


if __name__ == "__main__":
    main(*sys.argv[1:])
