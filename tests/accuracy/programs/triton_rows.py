# SPDX-License-Identifier: Apache-2.0
"""A softmax in Triton, tuned by its autotuner. Fault: one launch for each 64 rows instead of one for all."""
import sys

import torch
import triton
import triton.language as tl

fault, steps = sys.argv[1] == "fault", int(sys.argv[3])
ROWS, COLUMNS = 65536, 4096


@triton.autotune([triton.Config({}, num_warps=warps) for warps in (2, 4, 8, 16)], key=["columns"])
@triton.jit
def softmax_rows(source, target, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(source + row * columns + at, mask=at < columns, other=-float("inf"))
    x = tl.exp(x - tl.max(x, axis=0))
    tl.store(target + row * columns + at, x / tl.sum(x, axis=0), mask=at < columns)


def softmax(x):
    y = torch.empty_like(x)
    many = 64 if fault else ROWS
    for first in range(0, ROWS, many):
        softmax_rows[(many,)](x[first:], y[first:], COLUMNS, BLOCK=4096)  # @fault
    return y


x = torch.randn(ROWS, COLUMNS, device="cuda")
for _ in range(steps):
    x = softmax(x)
    torch.cuda.synchronize()
