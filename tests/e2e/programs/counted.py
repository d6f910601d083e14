# SPDX-License-Identifier: Apache-2.0
"""Kernels on the stand-in driver whose counts are known: 8 times a "gemm" of 2000 flop and 1000 bytes in "forward", and a "small"
one that counts nothing in "backward".

counted.py [WHAT FILE]: run 5, by the lines that FILE has, does other work. WHAT: "fewer" launches in "forward", an "other" kernel
there, or "exit": it fails. counted.py model: PyTorch's modules launch them. counted.py zoo: the same at batch sizes 1 and 4, in
ranges that name them, as bench/zoo/work.py has them.
"""
import ctypes
import sys

from launcher import _driver, kernel, mock_get

COUNTS = {b"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": 1000, b"dram__bytes_read.sum": 700,
          b"dram__bytes_write.sum": 300, b"sm__warps_active.avg.pct_of_peak_sustained_active": 50}


def number_of_this_run():
    if len(sys.argv) < 3:
        return 1
    with open(sys.argv[2], "a+", encoding="utf-8") as lines:
        lines.seek(0)
        number = len(lines.readlines()) + 1
        lines.write("run\n")
    return number


def gemm(name=b"gemm"):
    kernel(name, 100000, 80, 128, 32, 0, 0)


def small():
    kernel(b"small", 1000, 8, 64, 32, 0, 0)


def steps(what):
    from plumb import span
    for number in range(8):
        with span("forward"):
            if what != "fewer" or number:
                gemm(b"gemm_of_another" if what == "other" else b"gemm")
        with span("backward"):
            small()


def model(sizes=()):
    import torch
    from plumb import span

    class Part(torch.nn.Module):
        def __init__(self, launch):
            super().__init__()
            self.launch = launch

        def forward(self, data):
            self.launch()
            return data + 1

    whole = torch.nn.Sequential(Part(gemm), Part(small))
    with torch.no_grad():
        for _ in range(0 if sizes else 8):
            whole(torch.zeros(4, 4))
        for size in sizes:
            for _ in range(8):
                with span(f"batch {size}"):
                    whole(torch.zeros(size, 4))


mock_get(b"launched")  # the driver is there
_driver.mock_counter.argtypes = ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint64
for metric, value in COUNTS.items():
    _driver.mock_counter(b"gemm", metric, value)
if sys.argv[1:] in (["model"], ["zoo"]):
    model((1, 4) if sys.argv[1] == "zoo" else ())
else:
    differs = sys.argv[1] if number_of_this_run() == 5 else ""
    steps(differs)
    sys.exit(3 if differs == "exit" else 0)
