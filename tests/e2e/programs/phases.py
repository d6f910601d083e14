# SPDX-License-Identifier: Apache-2.0
"""A training step whose parts say themselves, by a range, which phase they are. Prints nothing."""
import warnings

import torch
from torch import nn
from torch.autograd.profiler import record_function
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
torch.set_num_threads(1)
torch.manual_seed(1)

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
optimizer = torch.optim.Adam(model.parameters())
loader = DataLoader(TensorDataset(torch.ones(12, 4), torch.zeros(12, dtype=torch.int64)), batch_size=4)
criterion = nn.CrossEntropyLoss()


def my_loss(y, target):
    return ((y - F.one_hot(target, 3)) ** 2).mean()


def train():
    with record_function("phase:data"):
        batches = iter(loader)
    for _ in range(3):
        with record_function("phase:data"):
            x, target = next(batches)
        with record_function("phase:other"):
            x = x * 2 - 1
        with record_function("phase:optimizer"):
            optimizer.zero_grad()
        with record_function("phase:forward"):
            y = model(x)
        wanted = x[:, :3]
        with record_function("phase:loss"):
            loss = criterion(y, target)
        with record_function("phase:loss"):
            loss = F.mse_loss(y, wanted)
        with record_function("phase:loss"):
            loss = my_loss(y, target)
        with record_function("phase:backward"):
            loss.backward()
        with record_function("phase:optimizer"):
            nn.utils.clip_grad_norm_(model.parameters(), 1)
            optimizer.step()


train()
