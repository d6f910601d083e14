# SPDX-License-Identifier: Apache-2.0
"""A child that initialises CUDA before its parent does, on the stand-in driver: forked after its
parent ran an operator, or ("import") only imported PyTorch. With "after" the parent initialises it
first, and the child cannot use it."""
import os
import sys

from launcher import launch, mock_get

import torch

if "import" not in sys.argv:
    torch.neg(torch.ones(2))
if "after" in sys.argv:
    launch(b"parent", 10, 0, 0)
child = os.fork()
if not child:
    launch(b"child", 20, 0, 0)
    if "after" in sys.argv:
        torch.neg(torch.ones(2))  # @child
    print("subscribed", mock_get(b"subscribed"), "threads", len(os.listdir("/proc/self/task")),
          flush=True)
    os._exit(0)
os.waitpid(child, 0)
launch(b"parent", 10, 0, 0)
