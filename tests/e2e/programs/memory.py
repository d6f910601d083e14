# SPDX-License-Identifier: Apache-2.0
"""Allocations of known sizes, each function in one way that programs hold memory."""
import os
import threading

import torch


def keep():
    return [torch.empty(1000) for _ in range(100)]  # @keep


def temporary():
    for _ in range(50):
        torch.empty(500, dtype=torch.uint8)  # @temporary


def nothing_new(kept):
    """Views, work in place, and memory that is not PyTorch's."""
    kept[0].view(10, 100)  # @view
    kept[1].add_(kept[2])  # @in_place
    kept[3][10:20].zero_()  # @slice
    buffer = bytearray(4096)
    return torch.frombuffer(buffer, dtype=torch.uint8)  # @foreign


def resized():
    tensor = torch.empty(100, dtype=torch.uint8)  # @small
    tensor.resize_(9000)  # @resize
    return tensor.sum()


def saved():
    """exp keeps its result for the backward pass, which gives a gradient."""
    x = torch.ones(2500, requires_grad=True)  # @leaf
    y = x.exp()  # @saved
    z = y.sum()
    del y
    z.backward()  # @backward
    return x.grad


def freed_elsewhere():
    tensors = [torch.empty(300, dtype=torch.uint8) for _ in range(20)]  # @handed
    thread = threading.Thread(target=tensors.clear)
    thread.start()
    thread.join()
    assert not tensors


def allocated_elsewhere():
    """The thread ends before what it allocated is freed."""
    tensors = []

    def work():
        tensors.extend(torch.empty(700, dtype=torch.uint8) for _ in range(30))  # @ended

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    tensors.clear()


def profiled():
    """PyTorch's own profiler has allocations reported once more."""
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True):
        for _ in range(10):
            torch.empty(600, dtype=torch.uint8)  # @profiled


def too_much():
    try:
        torch.empty(1 << 52, dtype=torch.uint8)  # @too_much
    except RuntimeError as error:
        print("refused", "memory" in str(error))


def shared():
    tensor = torch.zeros(800, dtype=torch.uint8)  # @unshared
    tensor.share_memory_()  # @share


def forked(kept):
    pid = os.fork()
    if not pid:
        kept.clear()
        torch.empty(123, dtype=torch.uint8)  # @child
        os._exit(5)
    print("child", os.WEXITSTATUS(os.waitpid(pid, 0)[1]))


def peak():
    """Two lines hold the most that is ever live."""
    large = torch.empty(6_000_000, dtype=torch.uint8)  # @large
    half = torch.empty(3_000_000, dtype=torch.uint8)  # @half
    del large
    again = torch.empty(2_000_000, dtype=torch.uint8)  # @again
    return half, again


def main():
    torch.set_num_threads(1)
    kept = keep()
    temporary()
    nothing_new(kept)
    resized()
    saved()
    freed_elsewhere()
    allocated_elsewhere()
    profiled()
    too_much()
    shared()
    forked(kept)
    held = peak()
    print("done", len(kept), len(held), flush=True)
    os._exit(0)  # what is live now is live at the end


main()
