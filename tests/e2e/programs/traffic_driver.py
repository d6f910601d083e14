# SPDX-License-Identifier: Apache-2.0
"""Calls the stand-in driver's functions for memory and copies with ctypes: python traffic_driver.py
SCENARIO [FILE]. Each scenario is a function, whose name and lines are in the call paths."""
import ctypes
import os
import sys

cuda = ctypes.CDLL("libcuda.so.1")
U64, VOID = ctypes.c_uint64, ctypes.c_void_p
HOST, DEVICE = 1, 2  # CUmemorytype
FABRIC = 8
SHARED_BY = int(os.environ.get("SHARED_BY", FABRIC))  # 1: a file, of which nothing is known here


def call(name, *arguments):
    result = getattr(cuda, name)(*arguments)
    if result:
        raise RuntimeError(f"{name}: {result}")


def size(count):
    return ctypes.c_size_t(count)


def on(device):
    cuda.mock_device(ctypes.c_uint32(device))


def alloc(count):
    pointer = U64()
    call("cuMemAlloc_v2", ctypes.byref(pointer), size(count))
    return pointer


def free(pointer):
    call("cuMemFree_v2", pointer)


def out(name, *arguments, kind=U64):
    """A function whose first parameter is the result."""
    value = kind()
    call(name, ctypes.byref(value), *arguments)
    return value


class Copy2D(ctypes.Structure):
    _fields_ = [("src_x", ctypes.c_size_t), ("src_y", ctypes.c_size_t), ("src_type", ctypes.c_uint), ("src_host", VOID),
                ("src", U64), ("src_array", VOID), ("src_pitch", ctypes.c_size_t),
                ("dst_x", ctypes.c_size_t), ("dst_y", ctypes.c_size_t), ("dst_type", ctypes.c_uint), ("dst_host", VOID),
                ("dst", U64), ("dst_array", VOID), ("dst_pitch", ctypes.c_size_t),
                ("width", ctypes.c_size_t), ("height", ctypes.c_size_t)]


class Copy3D(ctypes.Structure):  # also of peers: the reserved pointers are contexts there
    _fields_ = [("src_x", ctypes.c_size_t), ("src_y", ctypes.c_size_t), ("src_z", ctypes.c_size_t),
                ("src_lod", ctypes.c_size_t), ("src_type", ctypes.c_uint), ("src_host", VOID), ("src", U64),
                ("src_array", VOID), ("src_context", VOID), ("src_pitch", ctypes.c_size_t), ("src_height", ctypes.c_size_t),
                ("dst_x", ctypes.c_size_t), ("dst_y", ctypes.c_size_t), ("dst_z", ctypes.c_size_t),
                ("dst_lod", ctypes.c_size_t), ("dst_type", ctypes.c_uint), ("dst_host", VOID), ("dst", U64),
                ("dst_array", VOID), ("dst_context", VOID), ("dst_pitch", ctypes.c_size_t), ("dst_height", ctypes.c_size_t),
                ("width", ctypes.c_size_t), ("height", ctypes.c_size_t), ("depth", ctypes.c_size_t)]


class Operand(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("pointer", U64), ("row", ctypes.c_size_t), ("layer", ctypes.c_size_t),
                ("location", ctypes.c_int), ("id", ctypes.c_int)]


class BatchCopy3D(ctypes.Structure):
    _fields_ = [("src", Operand), ("dst", Operand), ("width", ctypes.c_size_t), ("height", ctypes.c_size_t),
                ("depth", ctypes.c_size_t), ("order", ctypes.c_int), ("flags", ctypes.c_uint)]


class Properties(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("handles", ctypes.c_int), ("location", ctypes.c_int), ("id", ctypes.c_int),
                ("win32", VOID), ("flags", ctypes.c_uint8 * 8)]


# ---- allocations ----

def every_kind():
    on(1)
    alloc(1000)
    out("cuMemAllocAsync", size(2000), VOID())
    out("cuMemAllocFromPoolAsync", size(3000), VOID(3), VOID())  # the pool of device 2
    pitch = ctypes.c_size_t()
    out("cuMemAllocPitch_v2", ctypes.byref(pitch), size(100), size(7), ctypes.c_uint(4))  # 512 * 7
    out("cuMemAllocManaged", size(5000), ctypes.c_uint(1))
    out("cuMemHostAlloc", size(6000), ctypes.c_uint(0), kind=VOID)
    call("cuMemFreeHost", out("cuMemAllocHost_v2", size(7000), kind=VOID))
    memory = ctypes.create_string_buffer(8000)
    call("cuMemHostRegister_v2", memory, size(8000), ctypes.c_uint(0))
    call("cuMemHostUnregister", memory)


def several_sites():
    def one():
        return alloc(100)

    def two():
        return alloc(100)
    kept = []
    for _ in range(5):
        kept.append(one())
    for _ in range(2):
        two()
    free(kept[0])
    free(kept[1])
    free(one())


def reuse():
    cuda.mock_set(b"reuse", ctypes.c_longlong(1))
    target = [alloc(4096)]
    on(0)

    def first():
        return alloc(64)

    def second():
        return alloc(64)
    host = ctypes.create_string_buffer(64)
    a = first()
    call("cuMemcpyHtoDAsync_v2", a, host, size(64), VOID())
    free(a)
    b = second()
    assert a.value == b.value
    call("cuMemcpyHtoDAsync_v2", b, host, size(16), VOID())
    free(target.pop())


def strange_frees():
    free(U64(0x1234000))
    free(U64(0))
    pointer = alloc(512)
    free(U64(pointer.value + 256))
    free(pointer)
    free(pointer)


def properties(device):
    return Properties(kind=1, location=1, id=device)


def mapped():
    on(0)
    one = out("cuMemCreate", size(4096), ctypes.byref(properties(1)), U64(0))  # not the current device's
    base = 0x600000000000
    call("cuMemMap", U64(base), size(4096), size(0), one, U64(0))
    two = out("cuMemCreate", size(8192), ctypes.byref(properties(2)), U64(0))
    call("cuMemMap", U64(base + 4096), size(8192), size(0), two, U64(0))
    call("cuMemRelease", one)  # what is mapped stays
    host = ctypes.create_string_buffer(64)
    call("cuMemcpyHtoDAsync_v2", U64(base + 100), host, size(10), VOID())
    call("cuMemcpyHtoDAsync_v2", U64(base + 4096 + 100), host, size(20), VOID())
    call("cuMemUnmap", U64(base), size(4096 + 8192))
    call("cuMemRelease", two)
    call("cuMemcpyHtoDAsync_v2", U64(base + 100), host, size(40), VOID())  # nothing is there


# ---- copies ----

def from_0_to_1():
    on(0)
    source = alloc(1 << 20)
    on(1)
    target = alloc(1 << 20)
    on(0)
    return source, target


def flat(source, target, width, height):
    return Copy2D(src_type=DEVICE, src=source.value, src_pitch=512, dst_type=DEVICE, dst=target.value, dst_x=8, dst_y=1,
                  dst_pitch=1024, width=width, height=height)


def deep(source, target, width, height, depth):
    return Copy3D(src_type=DEVICE, src=source.value, src_pitch=512, src_height=8, dst_type=DEVICE, dst=target.value,
                  dst_pitch=512, dst_height=8, width=width, height=height, depth=depth)


def every_copy():
    source, target = from_0_to_1()
    call("cuMemcpyDtoDAsync_v2", target, source, size(1 << 0), VOID())
    call("cuMemcpy", target, source, size(1 << 1))
    call("cuMemcpyAsync", target, source, size(1 << 2), VOID())
    call("cuMemcpyPeer", target, VOID(2), source, VOID(1), size(1 << 3))
    call("cuMemcpyPeerAsync", target, VOID(2), source, VOID(1), size(1 << 4), VOID())
    call("cuMemcpy2D_v2", ctypes.byref(flat(source, target, 16, 2)))
    call("cuMemcpy2DAsync_v2", ctypes.byref(flat(source, target, 16, 4)), VOID())
    call("cuMemcpy3D_v2", ctypes.byref(deep(source, target, 16, 4, 2)))
    call("cuMemcpy3DPeerAsync", ctypes.byref(deep(source, target, 16, 4, 4)), VOID())


def batch():
    source, target = from_0_to_1()
    other = alloc(1 << 20)  # on 0
    pointers = U64 * 3
    counts = (ctypes.c_size_t * 3)(100, 200, 400)
    call("cuMemcpyBatchAsync_v2", pointers(target.value, target.value, other.value),
         pointers(source.value, other.value, target.value), counts, size(3), VOID(), VOID(), size(0), VOID())

    def place(pointer):
        return Operand(kind=1, pointer=pointer.value)
    copies = (BatchCopy3D * 1)(BatchCopy3D(src=place(source), dst=place(target), width=10, height=10, depth=8))
    call("cuMemcpy3DBatchAsync_v2", size(1), copies, U64(0), VOID())


def host_copies():
    on(1)
    device = alloc(4096)
    pinned = out("cuMemHostAlloc", size(4096), ctypes.c_uint(0), kind=VOID)
    pageable = ctypes.create_string_buffer(4096)
    call("cuMemcpyHtoD_v2", device, pageable, size(1))
    call("cuMemcpyHtoDAsync_v2", device, pinned, size(2), VOID())
    call("cuMemcpyDtoH_v2", pageable, device, size(4))
    call("cuMemcpyDtoHAsync_v2", pinned, device, size(8), VOID())
    call("cuMemcpyAsync", U64(pinned.value), device, size(16), VOID())
    call("cuMemcpyDtoDAsync_v2", device, device, size(32), VOID())  # stays on the device
    managed = out("cuMemAllocManaged", size(4096), ctypes.c_uint(1))
    call("cuMemcpyAsync", managed, device, size(64), VOID())


def graph():
    source, target = from_0_to_1()
    cuda.mock_capture_begin(ctypes.c_uint32(0))
    call("cuMemcpyPeerAsync", target, VOID(2), source, VOID(1), size(100), VOID())
    node = VOID()
    call("cuGraphAddMemcpyNode", ctypes.byref(node), VOID(), VOID(), size(0), ctypes.byref(deep(target, source, 10, 2, 1)),
         VOID())
    cuda.mock_capture_end.restype = VOID
    made = VOID(cuda.mock_capture_end(ctypes.c_uint32(0)))
    for _ in range(5):
        cuda.mock_graph_launch(made, ctypes.c_uint32(0))


# ---- several processes ----

def export(path):
    on(1)
    pointer = alloc(10000)
    handle = (ctypes.c_char * 64)()
    call("cuIpcGetMemHandle", ctypes.byref(handle), pointer)
    memory = out("cuMemCreate", size(4096), ctypes.byref(properties(1)), U64(0))
    call("cuMemMap", U64(0x600000000000), size(4096), size(0), memory, U64(0))
    fabric = (ctypes.c_char * 64)()
    call("cuMemExportToShareableHandle", ctypes.byref(fabric), memory, ctypes.c_int(FABRIC), U64(0))
    if SHARED_BY != FABRIC:
        call("cuMemExportToShareableHandle", ctypes.byref(ctypes.c_int()), memory, ctypes.c_int(SHARED_BY), U64(0))
    with open(path, "wb") as file:
        file.write(bytes(handle) + bytes(fabric))


class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 64)]


def use(path):
    on(0)
    own = alloc(10000)
    with open(path, "rb") as file:
        handle, fabric = Handle.from_buffer_copy(file.read(64)), ctypes.create_string_buffer(file.read(64), 64)
    theirs = out("cuIpcOpenMemHandle_v2", handle, ctypes.c_uint(1))
    again = out("cuIpcOpenMemHandle_v2", handle, ctypes.c_uint(1))
    assert again.value == theirs.value
    call("cuMemcpyDtoDAsync_v2", theirs, own, size(1000), VOID())
    call("cuIpcCloseMemHandle", theirs)
    call("cuMemcpyDtoDAsync_v2", theirs, own, size(500), VOID())  # it is still open once
    memory = out("cuMemImportFromShareableHandle", fabric, ctypes.c_int(SHARED_BY))
    call("cuMemMap", U64(0x610000000000), size(4096), size(0), memory, U64(0))
    call("cuMemcpyDtoDAsync_v2", U64(0x610000000000), own, size(2000), VOID())


def two_processes(path):
    export(path)
    if not os.fork():
        os.execv(sys.executable, [sys.executable, __file__, "use", path])
    os.wait()


def forked():
    pointer = alloc(1000)
    child = os.fork()
    if not child:
        alloc(77)
        free(pointer)
        os._exit(0)
    os.waitpid(child, 0)
    alloc(1234)


# ---- tensors, names, bounds ----

def report(address, count, device):
    """As PyTorch's caching allocator reports a block."""
    told = ctypes.CDLL(None)["_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"]
    told(VOID(address), ctypes.c_int64(count), U64(0), U64(0), ctypes.c_uint32(1 | device << 8))


def tensors():
    source, target = from_0_to_1()

    def weights():
        report(source.value + 512, 1000, 0)

    def gradients():
        report(target.value + 1024, 2000, 1)

    def steps():
        for _ in range(3):
            weights()
            gradients()
            call("cuMemcpyPeerAsync", U64(target.value + 1024 + 500), VOID(2), U64(source.value + 512), VOID(1), size(70), VOID())
            report(source.value + 512, -1000, 0)
            report(target.value + 1024, -2000, 1)
    steps()
    call("cuMemcpyPeerAsync", U64(target.value + 1024), VOID(2), U64(source.value + 512), VOID(1), size(7), VOID())
    report(0x1000, -64, 0)  # nobody knows of it



def named():
    import plumb
    source, target = from_0_to_1()
    call("cuMemcpyDtoDAsync_v2", target, source, size(100), VOID())  # before it has its name
    plumb.name(source.value, "weights")

    class Array:
        __cuda_array_interface__ = {"data": (target.value + 4096, False), "shape": (8, 4), "typestr": "<f8",
                                    "strides": None, "version": 3}
    array = Array()
    assert plumb.name(array, "halo") is array
    call("cuMemcpyDtoDAsync_v2", U64(target.value + 4096 + 64), source, size(50), VOID())
    call("cuMemcpyDtoDAsync_v2", U64(target.value + 4096 + 256), source, size(25), VOID())  # just behind it
    plumb.name(0x4242, "nothing there")


def paused():
    import plumb
    kept, freed = alloc(1000), alloc(2000)
    plumb.stop()
    free(freed)
    alloc(3000)
    plumb.start()
    alloc(4000)
    free(kept)


def threads():
    import threading
    turns = [threading.Event() for _ in range(3)]

    def work(own, after):
        own.wait()
        pointers = [alloc(1000), alloc(1000)]
        free(pointers[0])
        if after is turns[1]:
            free(pointers[1])
        after.set()
        turns[2].wait()  # a thread that has ended would give its records to the next one
    both = [threading.Thread(target=work, args=pair) for pair in zip(turns, turns[1:])]
    for thread in both:
        thread.start()
    turns[0].set()
    for thread in both:
        thread.join()


def many(count=70000):
    # At one call path: the tables are full before the region is.
    for _ in range(int(count)):
        free(alloc(64))


def cost(count):
    import time
    pointer = U64()
    place, bytes_, function = ctypes.byref(pointer), size(4096), cuda.cuMemAlloc_v2
    best = []
    for _ in range(5):
        begin = time.perf_counter_ns()
        for _ in range(int(count)):
            function(place, bytes_)
            cuda.cuMemFree_v2(pointer)
        best.append((time.perf_counter_ns() - begin) / int(count))
    print(f"{min(best):.0f} ns for each allocation with its free")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
