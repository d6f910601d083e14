# SPDX-License-Identifier: Apache-2.0
"""A data loader with four workers per processor.

Every worker is a process that must start before the first batch, in each epoch. More workers than processors
take turns, and take time from the training process. One worker less than there are processors makes batches
just as fast.
"""
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import common


def add_options(parser):
    parser.add_argument("--workers", type=int, help="number of workers (default: that of the case)")
    parser.add_argument("--start", choices=("fork", "spawn", "forkserver"),
                        help="how workers start (default: Python's)")


chosen = common.options(__doc__.splitlines()[0], add_options, steps=200)
BATCH, SIZE = (32, 224) if chosen.gpu else (4, 32)
CORES = os.cpu_count() or 1
WORKERS = chosen.workers or (max(1, CORES - 1) if chosen.fixed else 4 * CORES)


class Images(Dataset):
    """Images that cost the CPU some work each."""

    def __len__(self):
        return chosen.steps * BATCH

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        image = torch.rand(3, SIZE, SIZE, generator=generator)
        for _ in range(4):
            image = nn.functional.avg_pool2d(image[None], 3, stride=1, padding=1)[0]
        return (image - image.mean()) / image.std(), index % 10


def main():
    model = nn.Sequential(nn.Conv2d(3, 32, 3, stride=2), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2),
                          nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    model.to(chosen.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Images(), BATCH, num_workers=WORKERS, pin_memory=chosen.gpu,
                        multiprocessing_context=chosen.start)

    def learn(images, kinds):
        images = images.to(chosen.device, non_blocking=True)
        kinds = kinds.to(chosen.device, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(images), kinds)
        loss.backward()
        optimizer.step()
        return loss

    def warm_up():
        for _ in range(chosen.warm_up):
            learn(torch.zeros(BATCH, 3, SIZE, SIZE), torch.zeros(BATCH, dtype=torch.long))

    def epoch():
        for images, kinds in loader:
            loss = learn(images, kinds)
        return loss

    common.measure(chosen, warm_up, epoch)


if __name__ == "__main__":
    main()
