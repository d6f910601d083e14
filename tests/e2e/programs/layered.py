# SPDX-License-Identifier: Apache-2.0
"""A small model of PyTorch on the CPU: layered.py infer|train STEPS. A step of training has PyTorch's own ranges, one of inference
has none."""
import sys
import time

import torch

torch.set_num_threads(1)
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
data = torch.randn(4, 64)
steps = int(sys.argv[2])
if sys.argv[1] == "infer":
    with torch.no_grad():
        for _ in range(steps):
            net(data)
            time.sleep(0.004)
else:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        net(data).sum().backward()
        optimizer.step()
        time.sleep(0.004)
print("done")
