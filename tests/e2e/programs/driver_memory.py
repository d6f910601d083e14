# SPDX-License-Identifier: Apache-2.0
"""A loop that takes memory of the stand-in driver in each of its steps and gives it back, and memory that it keeps."""
import time

from launcher import STREAM, alloc, free, gap, launch, wait

kept = alloc(3 << 20, -1)  # @kept
for _ in range(30):
    block = alloc(1 << 20, -1)  # @step
    launch(b"first", 200_000, 0, 0)
    launch(b"second", 100_000, 0, 0)
    wait(STREAM, 0)
    gap(0, 0, 6_000_000)
    time.sleep(0.006)
    free(block, -1)
