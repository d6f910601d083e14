# SPDX-License-Identifier: Apache-2.0
"""A set-up of operators that are not called again, then training and evaluation twice, then a wait. What each did is
written to the file of the first argument. With "once" there is no loop."""
import json
import sys
import time

import torch

torch.set_num_threads(1)
done = {"train": 0, "evaluate": 0}


def prepare():
    """Each operator has other numbers of calls, and no two moments are alike."""
    x = torch.rand(64, 64)
    for i, name in enumerate(("sin", "cos", "tan", "exp", "atan", "sinh", "cosh", "tanh", "erf", "sqrt")):
        until = time.time() + 0.08
        while time.time() < until:
            getattr(torch, name)(x)
            time.sleep(0.002 * (i % 3 + 1))


def train(seconds):
    until = time.time() + seconds
    while time.time() < until:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
        done["train"] += 1


def evaluate(seconds):
    until = time.time() + seconds
    with torch.no_grad():
        while time.time() < until:
            torch.softmax(model(inputs), 1).argmax(1)
            done["evaluate"] += 1


model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs, labels = torch.rand(16, 32), torch.randint(0, 4, (16,))
if sys.argv[2:] == ["once"]:
    torch.linalg.svd(torch.rand(900, 900))
    model(inputs)
else:
    prepare()
    for _ in range(2):
        train(1.0)
        evaluate(1.0)
    time.sleep(0.5)
with open(sys.argv[1], "w", encoding="utf-8") as file:
    json.dump(done, file)
