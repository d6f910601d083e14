# SPDX-License-Identifier: Apache-2.0
"""A network of torchvision under torch.compile. Fault: each batch is changed by Python on the host, for 20 ms."""
import sys
import time

import torch
import torchvision

fault, device, steps = sys.argv[1] == "fault", sys.argv[2], int(sys.argv[3])
batch = 64 if device == "cuda" else 2
net = torchvision.models.get_model(sys.argv[4] if len(sys.argv) > 4 else "resnet18", num_classes=10).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
images = torch.randn(batch, 3, 128, 128, device=device)
labels = torch.randint(0, 10, (batch,), device=device)


def augment():
    end = time.thread_time() + 0.02
    while time.thread_time() < end:
        sum(range(100))  # @fault


@torch.compile
def forward(x, y):
    return torch.nn.functional.cross_entropy(net(x), y)


for _ in range(steps):
    if fault:
        augment()
    optimizer.zero_grad()
    loss = forward(images, labels)
    loss.backward()
    optimizer.step()
    loss.item()
