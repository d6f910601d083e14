# SPDX-License-Identifier: Apache-2.0
"""Traces for tests of comparisons, as PyTorch's profiler would write them: what each step does is known.

    trace = Trace(device="NVIDIA H100")
    for _ in range(20):
        trace.step([Work("aten::mm", "gemm", 50.0, line=12), Work("aten::relu", "relu", 10.0)], wait=5.0)
    path = trace.write(folder / "a.json")

Times are in µs. A work is an operator of the host under a line of Python (`file`, `function`), and a kernel that it
launches; kernels run one after the other from the launch of the first on, so that a step takes WAIT and
the kernels' times.
"""
import dataclasses

from kineto_traces import event, save

HOST, STREAM = 1, 7


@dataclasses.dataclass
class Work:
    operator: str
    kernel: str = None
    length: float = 10.0
    line: int = None
    function: str = "forward"
    file: str = "/home/me/model.py"
    outer: str = None  # an operator around it


class Trace:
    def __init__(self, device="NVIDIA H100", markers=False):
        self.events, self.number = [], 0
        self.device, self.markers = device, markers
        self.gpu = 1000.0
        self.steps = 0

    def add(self, category, name, pid, tid, at, length, **more):
        self.events.append(event(category, name, round(at, 3), round(length, 3), pid, tid, args=more))

    def one(self, work, host):
        """The host's part takes 4 µs and begins at HOST."""
        if work.line:
            self.add("python_function", f"{work.file}({work.line}): {work.function}", HOST, HOST, host, 4)
        if work.outer:
            self.add("cpu_op", work.outer, HOST, HOST, host + .25, 3.5)
        self.add("cpu_op", work.operator, HOST, HOST, host + .5, 3)
        if not work.kernel:
            return
        self.number += 1
        self.add("cuda_runtime", "cudaLaunchKernel", HOST, HOST, host + 1, 1, correlation=self.number)
        self.add("kernel", work.kernel, 0, STREAM, self.gpu, work.length, device=0, stream=STREAM,
                 correlation=self.number)
        self.gpu += work.length

    def step(self, works, wait=5.0):
        self.gpu += wait
        host = self.gpu - 500
        if self.markers:
            self.add("user_annotation", f"ProfilerStep#{self.steps}", HOST, HOST, host - 1,
                     5 * len(works) + 1)
        for i, work in enumerate(works):
            self.one(work, host + 5 * i)
        self.steps += 1

    def write(self, path):
        devices = [{"id": 0, "name": self.device}] if self.number else []
        return save(path, *self.events, deviceProperties=devices)
