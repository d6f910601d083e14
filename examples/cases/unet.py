# SPDX-License-Identifier: Apache-2.0
"""A U-Net whose tensors are in channels_first, while the library computes in channels_last.

cuDNN's fast half-precision convolutions take NHWC, so it converts every input, weight and output. If the model
and its input are in channels_last, there is nothing to convert. As in the first U-Net there is no
normalisation, because batch normalisation in channels_first has slow kernels of its own.
"""
import torch
from torch import nn

import common

chosen = common.options(__doc__.splitlines()[0])
BATCH, SIZE, WIDTH = (8, 256, 64) if chosen.gpu else (1, 32, 8)


def block(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, width, depth=3):
        super().__init__()
        widths = [width << level for level in range(depth + 1)]
        self.first = block(3, widths[0])
        self.down = nn.ModuleList(block(a, b) for a, b in zip(widths, widths[1:]))
        self.up = nn.ModuleList(block(a + b, a) for a, b in zip(widths, widths[1:]))
        self.last = nn.Conv2d(widths[0], 2, 1)

    def forward(self, x):
        levels = [self.first(x)]
        for down in self.down:
            levels.append(down(nn.functional.max_pool2d(levels[-1], 2)))
        x = levels.pop()
        for up in reversed(self.up):
            x = nn.functional.interpolate(x, scale_factor=2, mode="nearest")
            x = up(torch.cat([levels.pop(), x], dim=1))
        return self.last(x)


model = UNet(WIDTH).to(chosen.device)
images = torch.randn(BATCH, 3, SIZE, SIZE, device=chosen.device)
masks = torch.randint(0, 2, (BATCH, SIZE, SIZE), device=chosen.device)
if chosen.fixed:
    model = model.to(memory_format=torch.channels_last)
    images = images.to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def step(number):
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast(chosen.device.split(":")[0], torch.bfloat16, enabled=chosen.gpu):
        scores = model(images)
    loss = nn.functional.cross_entropy(scores.float(), masks)
    loss.backward()
    optimizer.step()
    return loss


common.train(chosen, step)
