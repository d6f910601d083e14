# SPDX-License-Identifier: Apache-2.0
"""Training loops as traces of PyTorch's profiler, made here: a host thread that calls operators and launches work,
and a stream that does it in order. What is odd about a step is known, so that its cause can be looked for. Times
are µs."""

from importing import write
from kineto_traces import call, document, event, kernel

STREAM, COMM_STREAM = 7, 20


class Rank:
    """One process on one GPU. `now` is the host's clock, `free` when the stream has no more work."""

    def __init__(self, rank=0, device=None, pid=None, base=1000.0):
        self.rank, self.device = rank, rank if device is None else device
        self.pid = pid or 100 + rank
        self.events, self.now, self.free, self.number = [], base, base, 0
        self.comm_free = base

    def host(self, category, name, at, length, **args):
        self.events.append(event(category, name, round(at, 3), round(length, 3), self.pid, self.pid, args=args))

    def gpu(self, category, name, stream, at, length, **args):
        self.events.append(kernel(self.number, round(at, 3), round(length, 3), name, stream, self.device, category,
                                  **args))

    def launch(self, call="cudaLaunchKernel", length=4.0):
        self.number += 1
        self.host("cuda_runtime", call, self.now + 2, length, correlation=self.number)
        return self.now + 2 + length

    def operator(self, name, kernel, length=10.0, **args):
        """An operator of 10 µs that launches one kernel."""
        launched = self.launch()
        start = max(launched + 1, self.free)
        self.gpu("kernel", kernel, STREAM, start, length, **args)
        self.free = start + length
        self.host("cpu_op", name, self.now, 10)
        self.now += 11
        return start, self.free

    def copy(self, size, rate=10_000.0, blocking=False, name="aten::to"):
        """SIZE bytes at RATE bytes a µs."""
        begin, length = self.now, size / rate
        launched = self.launch("cudaMemcpyAsync", length + 4 if blocking else 4)
        start = max(launched + 1 - (length if blocking else 0), self.free)
        self.gpu("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", STREAM, start, length, bytes=size)
        self.free = start + length
        self.now = max(launched + 2, start + length + 1) if blocking else launched + 2
        self.host("cpu_op", name, begin, self.now - begin)
        self.now += 1

    def python(self, name, begin):
        """A frame around all since BEGIN: "train.py(41): step"."""
        self.host("python_function", name, begin - 0.2, self.now - begin + 0.4)

    def wait(self):
        """The host waits for the stream."""
        end = max(self.now + 5, self.free + 1)
        self.host("cuda_runtime", "cudaStreamSynchronize", self.now, end - self.now)
        self.now = end + 1


def step(rank, kernels=20, length=50.0, copy=1 << 20, blocking=False, sleep=0.0, between=8.0, insert=0, grid=64, python=False,
         load=0.0):
    """Copies a batch, loads it for a while, launches KERNELS operators, sleeps in the middle, waits at the end."""
    begin = rank.now
    if load:
        rank.host("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", rank.now, load)
        rank.now += load + 1
    rank.copy(copy, blocking=blocking)
    for i in range(kernels):
        if sleep and i == kernels // 2:
            rank.now += sleep
        if insert and i == kernels // 2:
            for _ in range(insert):
                rank.operator("aten::sort", "sort_kernel", length)
        at = rank.now
        rank.operator(f"aten::op{i % 5}", f"kernel{i}", length, grid=[grid, 1, 1], block=[128, 1, 1])
        if python:
            rank.python(f"train.py({40 + i % 5}): part{i % 5}", at)
        rank.now += between
    rank.wait()
    if python:
        rank.python("train.py(30): step", begin)
    rank.now += 20


def trace(folder, ranks, name="trace", one_device=False):
    """One file of all RANKS. ONE_DEVICE: they are processes that share a GPU, told by its UUID as in plumb's own
    exports."""
    events = [one for rank in ranks for one in rank.events]
    devices = [{"id": rank.device, "name": "Test GPU"} for rank in ranks]
    if one_device:
        devices = [{**device, "uuid": "GPU-00000000-0000-0000-0000-000000000001", "process": rank.pid}
                   for device, rank in zip(devices, ranks)]
        for rank in ranks:
            for one in rank.events:
                if "device" in one["args"]:
                    one["args"]["process"] = rank.pid
    return write(folder, document(*events, deviceProperties=devices, baseTimeNanoseconds=0), name)


def all_reduce(ranks, length=40.0):
    """Every rank launches it; it ends on all together, LENGTH after the last one came."""
    starts = []
    for rank in ranks:
        launched = rank.launch()
        starts.append(max(launched + 1, rank.free, rank.comm_free))
        rank.host("cpu_op", "c10d::allreduce_", rank.now, 10)
        rank.now += 11
    end = max(starts) + length
    for rank, start in zip(ranks, starts):
        rank.gpu("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", COMM_STREAM, start, end - start)
        rank.comm_free = rank.free = end


def rank_files(folder, ranks):
    """A file for each rank, which says which it is."""
    return [write(folder, document(*rank.events, deviceProperties=[{"id": rank.device, "name": "Test GPU"}],
                                   distributedInfo={"backend": "nccl", "rank": rank.rank, "world_size": len(ranks)},
                                   baseTimeNanoseconds=0), f"rank{rank.rank}.json")
            for rank in ranks]


PARSED = (5, 6)  # process and thread of parsing_loop


def parsing_loop():
    """A loop of 20 steps of 10 ms, each with three kernels at its beginning and nothing recorded of its thread behind
    them, and the moments (ns) of CPU samples of a ms each, in which it parses for 6 of the 10 ms."""
    events, moments = [], []
    for step in range(20):
        begin = step * 10_000.0 + 1000
        for part in range(3):
            number, at = 3 * step + part + 1, begin + part * 20
            events += [call(number, at, duration=10), kernel(number, at + 15, 15, ("a", "b", "a")[part])]
        moments += [round((begin + 100 + part * 1000) * 1000) for part in range(1, 7)]
    return document(*events), moments


def check_parsing(track):
    """What `plumb iters` says of that TRACK."""
    level = track["levels"][0]
    assert (level["occurrences"], level["verdict"]) == (20, "host-bound")
    rows = {row["kind"]: row for row in level["summary"]["filled"]}
    assert (rows["sample"]["name"], rows["sample"]["text"]) == ("parse_json", "parse_json (CPU samples)")
    assert rows["sample"]["samples"] == 19 * 6
    assert abs(rows["sample"]["ns"] - 19 * 6e6) < 0.02 * 19 * 6e6
    assert abs(rows["gap"]["ns"] - 19 * 4e6) < 0.05 * 19 * 4e6
