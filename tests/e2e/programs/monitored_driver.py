# SPDX-License-Identifier: Apache-2.0
"""Driver calls of every kind that another tool is told of, one of them failing."""
from launcher import DEVICE, PAGEABLE, STREAM, alloc, copy, free, launch, memset, mock_set, wait


def work():
    pointer = alloc(65536, -1)
    launch(b"_Z4axpyPf", 5000, 0, 0)
    launch(b"_Z4axpyPf", 5000, 0, 0)
    mock_set(b"fail", 1)
    launch(b"failing", 10, 0, 0)
    mock_set(b"fail", 0)
    launch(b"_Z4axpyPf", 5000, 0, 0)
    copy(PAGEABLE, DEVICE, 4096, 1000, 0, 1, 0)
    memset(256, 100, 0)
    wait(STREAM, 2000)
    free(pointer, -1)


work()
