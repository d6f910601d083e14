# SPDX-License-Identifier: Apache-2.0
"""Heat on a grid in CuPy. Fault: the host reads the whole grid after each sweep."""
import sys

import cupy as cp

fault, steps = sys.argv[1] == "fault", int(sys.argv[3])
grid = cp.random.random((4096, 4096), dtype=cp.float32)


def sweep(grid):
    new = grid.copy()
    new[1:-1, 1:-1] = (grid[2:, 1:-1] + grid[:-2, 1:-1] + grid[1:-1, 2:] + grid[1:-1, :-2]) / 4
    return new


for number in range(steps):
    for _ in range(10):
        new = sweep(grid)
        if fault and not cp.asnumpy(new).any():  # @fault
            break
        grid = new
    cp.cuda.Device().synchronize()
