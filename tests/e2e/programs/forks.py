# SPDX-License-Identifier: Apache-2.0
"""Forks in every way a PyTorch program does, and starts a program anew."""
import multiprocessing
import os
import subprocess
import sys

import torch
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        return torch.exp(torch.full((2,), float(index))).log()  # @dataset


def child(queue):
    x = torch.ones(4, requires_grad=True)
    torch.sin(x).sum().backward()  # @sin
    queue.put(x.grad.tolist())


def main():
    before = torch.neg(torch.ones(4))  # @before
    for _ in range(2):
        loader = DataLoader(Numbers(), batch_size=8, num_workers=2, multiprocessing_context="fork")
        print("loaded", sum(batch.sum().item() for batch in loader))
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    print("queue", queue.get())
    process.join()
    print("child ended", process.exitcode)
    pid = os.fork()
    if not pid:
        torch.neg(before)  # @forked
        os._exit(7)
    print("forked ended", os.WEXITSTATUS(os.waitpid(pid, 0)[1]))
    pid = os.fork()
    if not pid:
        os._exit(8)  # ran no operator
    print("idle ended", os.WEXITSTATUS(os.waitpid(pid, 0)[1]))
    sys.stdout.flush()
    subprocess.run([sys.executable, "-c", "import torch; print('anew', torch.cos(torch.zeros(2)))"],
                   check=True)
    torch.abs(before)  # @after


main()
