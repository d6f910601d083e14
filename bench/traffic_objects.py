# SPDX-License-Identifier: Apache-2.0
"""What `plumb run --traffic` adds to driver calls that allocate, free and copy: python3 bench/traffic_objects.py [--pairs N].

Without options it runs on the stand-in driver (make mock), where a call does nothing else, so that the difference is
plumb's own time. With --gpu it runs on the machine's GPUs (libcuda.so.1, no PyTorch): on two of them the copies go from one
to the other, by cuMemcpyPeerAsync and, in batches, by cuMemcpyBatchAsync. It then also checks what plumb said: bytes
of transfers, devices and objects. Times are of the processor, the min of several rounds, in ns for each call."""
import argparse
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("BUILD", ROOT / "build"))
ROUNDS, CALLS = 7, 20000
COPIES, BYTES = 300, 1 << 16  # with --gpu
U64, VOID = ctypes.c_uint64, ctypes.c_void_p


def best(call, count):
    """The min of several rounds of COUNT calls each, in ns for each."""
    times = []
    for _ in range(ROUNDS):
        begin = time.thread_time_ns()
        for _ in range(count):
            call()
        times.append((time.thread_time_ns() - begin) / count)
    return min(times)


def check(result, what):
    if result:
        sys.exit(f"{what}: CUDA error {result}")


class Driver:
    def __init__(self, on_gpu):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.contexts = []
        if not on_gpu:
            return
        check(self.cuda.cuInit(0), "cuInit")
        count = ctypes.c_int()
        check(self.cuda.cuDeviceGetCount(ctypes.byref(count)), "cuDeviceGetCount")
        for device in range(min(count.value, 2)):
            context = VOID()
            check(self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
            self.contexts.append(context)

    def on(self, device):
        if self.contexts:
            check(self.cuda.cuCtxSetCurrent(self.contexts[device % len(self.contexts)]), "cuCtxSetCurrent")
        else:
            self.cuda.mock_device(device)

    def alloc(self, count):
        pointer = U64()
        check(self.cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(count)), "cuMemAlloc")
        return pointer

    def pairs(self):
        """An allocation with its free."""
        pointer, place = U64(), None
        place, size = ctypes.byref(pointer), ctypes.c_size_t(4096)
        alloc, free = self.cuda.cuMemAlloc_v2, self.cuda.cuMemFree_v2

        def pair():
            alloc(place, size)
            free(pointer)
        return pair

    def copies(self):
        self.on(0)
        source = self.alloc(BYTES)
        self.on(1)
        target = self.alloc(BYTES)
        self.on(0)
        copy, size, stream = self.cuda.cuMemcpyPeerAsync, ctypes.c_size_t(BYTES), VOID()
        first, second = (self.contexts * 2)[:2] if self.contexts else (VOID(1), VOID(2))
        return lambda: copy(target, second, source, first, size, stream)

    def batch(self):
        """One call of three copies; None: the driver has none of that."""
        function = getattr(self.cuda, "cuMemcpyBatchAsync_v2", None)
        if function is None:
            return None
        self.on(0)
        source = [self.alloc(BYTES) for _ in range(3)]
        self.on(1)
        target = [self.alloc(BYTES) for _ in range(3)]
        self.on(0)
        stream = VOID()
        check(self.cuda.cuStreamCreate(ctypes.byref(stream), 1), "cuStreamCreate")
        places = U64 * 3
        to, frm = places(*[t.value for t in target]), places(*[s.value for s in source])
        sizes = (ctypes.c_size_t * 3)(1000, 2000, 4000)
        attributes = (ctypes.c_int * 16)(1)  # CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, no hints
        first = ctypes.c_size_t(0)
        return lambda: check(function(to, frm, sizes, ctypes.c_size_t(3), attributes, ctypes.byref(first),
                                      ctypes.c_size_t(1), stream), "cuMemcpyBatchAsync")


def program(on_gpu):
    """What is profiled."""
    driver = Driver(on_gpu)
    driver.on(0)
    print("pairs", best(driver.pairs(), 500 if on_gpu else CALLS))
    copy = driver.copies()
    print("copies", best(copy, COPIES))
    batch = driver.batch() if on_gpu else None
    if batch:
        for _ in range(10):
            batch()
    driver.cuda.cuCtxSynchronize()


def measure(options, on_gpu, folder):
    """{what: ns} of one run, and its profile."""
    environment = dict(os.environ)
    if not on_gpu:
        environment["LD_LIBRARY_PATH"] = str(BUILD / "mock/13.0")
        environment["PLUMB_MOCK"] = "devices=2"
    command = [sys.executable, __file__, "--program", *(["--gpu"] if on_gpu else [])]
    path = pathlib.Path(folder) / "run.plumb"
    if options is not None:
        command = [str(BUILD / "plumb"), "run", "-q", "-o", str(path), *options, "--", *command]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return {what: float(ns) for what, ns in map(str.split, done.stdout.splitlines())}, path


def say_transfers(path):
    """What plumb recorded, against what the program did."""
    sys.path.insert(0, str(ROOT / "python"))
    import plumb
    profile = plumb.Profile(path)
    ordinals = {device.id: device.ordinal for device in profile.devices}
    known = {None: "host", **ordinals}
    for t in profile.transfers:
        print(f"  {t.kind}, {t.route}: {known[t.from_device]} to {known[t.to_device]}, {t.accesses} copies, {t.bytes} bytes, "
              f"objects {'known' if None not in (t.from_object, t.to_object) else 'UNKNOWN'}")
    between = sum(t.bytes for t in profile.transfers if t.from_device != t.to_device)
    print(f"  expected between the GPUs: {ROUNDS * COPIES * BYTES} bytes of single copies and 70000 of batches; found {between}")
    for row in profile.ledger:
        if row.source == "object":
            print(f"  ledger: object {row.fate} {row.count}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--program", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--pairs", type=int, default=3, help="of runs")
    given = parser.parse_args()
    if given.program:
        program(given.gpu)
        return
    ways = {"without plumb": None, "plumb run": [], "plumb run --graphs=nodes": ["--graphs=nodes"],
            "plumb run --traffic": ["--traffic"]}
    found = {way: {} for way in ways}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(given.pairs):
            for way, options in ways.items():
                times, path = measure(options, given.gpu, folder)
                for what, ns in times.items():
                    found[way][what] = min(ns, found[way].get(what, ns))
        print(f"{'ns for each':30}{'allocation and free':>22}{'copy':>10}")
        for way, times in found.items():
            print(f"{way:30}{times['pairs']:22.0f}{times['copies']:10.0f}")
        if given.gpu:
            say_transfers(path)


if __name__ == "__main__":
    main()
