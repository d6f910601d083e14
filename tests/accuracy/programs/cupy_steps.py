# SPDX-License-Identifier: Apache-2.0
"""Heat on a grid in CuPy. Fault: the host reads the difference after each of the ten sweeps of a step."""
import sys

import cupy as cp

fault, steps = sys.argv[1] == "fault", int(sys.argv[3])
grid = cp.random.random((1024, 1024), dtype=cp.float32)


def sweep(grid):
    new = grid.copy()
    new[1:-1, 1:-1] = (grid[2:, 1:-1] + grid[:-2, 1:-1] + grid[1:-1, 2:] + grid[1:-1, :-2]) / 4
    return new


for number in range(steps):
    for _ in range(10):
        new = sweep(grid)
        if fault and float(cp.abs(new - grid).max()) < 1e-9:  # @fault
            break
        grid = new
    cp.cuda.Device().synchronize()
