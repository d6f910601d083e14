# SPDX-License-Identifier: Apache-2.0
"""Kernels of the stand-in driver, launched in every place of a PyTorch program where one can be;
marked lines for the test. Every kernel has a name and a duration of its own. Prints nothing."""
import launcher  # before torch
from launcher import copy, launch, memset, native_thread, tensor_on_free, wait

import threading
import warnings

import torch

warnings.simplefilter("ignore")  # of operators that are overridden
torch.manual_seed(1)


def ones():
    return torch.ones(4, requires_grad=True)


# ---- outside operators ----

def launch_outside(times):
    for _ in range(times):
        launch(b"_Z7outsidePf", 100, 0, 0)  # @outside_loop
    launch(b"_Z7outsidePf", 7, 0, 0)  # @outside_last


def outside():
    launch_outside(3)  # @outside_first
    launch_outside(2)  # @outside_second


def on_thread():
    launch(b"thread", 11, 0, 0)  # @on_thread


def threads():
    workers = [threading.Thread(target=on_thread) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def native():
    native_thread(b"native", 13, 5)


# ---- inside operators ----

def scale_cpu(x):
    launch(b"scale_first", 1000, 0, 0)  # @scale_first
    y = torch.neg(x)  # @scale_neg
    launch(b"scale_last", 300, 0, 0)  # @scale_last
    return y


def erf_cpu(x):
    launch(b"erf", 500, 0, 0)  # @erf_kernel
    return torch.sin(x)


mine = torch.library.Library("mock", "DEF")
mine.define("scale(Tensor x) -> Tensor")
mine.impl("scale", scale_cpu, "CPU")
aten = torch.library.Library("aten", "IMPL")
aten.impl("erf", erf_cpu, "CPU")


def operators():
    x = torch.ones(4)
    for _ in range(3):
        torch.ops.mock.scale(x)  # @operators_scale
    for _ in range(2):
        torch.erf(x)  # @operators_erf


def from_c():
    """Launches by C++ in operators, with no Python between."""
    for _ in range(3):
        x = tensor_on_free(b"in_set", 40)
        x.set_(torch.empty(4))  # @from_c_set


# ---- backward ----

class Mine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        launch(b"mine_forward", 600, 0, 0)  # @mine_forward
        return torch.exp(x)

    @staticmethod
    def backward(ctx, grad):
        launch(b"mine_backward", 900, 0, 0)  # @mine_backward
        return torch.mul(grad, 2)


def function():
    w = ones()
    for _ in range(3):
        y = Mine.apply(w)  # @function_apply
        y.sum().backward()  # @function_backward


def saved(w):
    return torch.mul(w, tensor_on_free(b"released", 70))  # @saved_mul


def engine():
    """The engine itself lets go of what a node saved, after the node's own backward."""
    w = ones()
    for _ in range(2):
        y = saved(w)  # @engine_saved
        y.sum().backward()  # @engine_backward


def accumulation():
    """The old gradient goes away in AccumulateGrad."""
    w = ones()
    for _ in range(4):
        w.grad = tensor_on_free(b"old_grad", 20)
        torch.exp(w).sum().backward(create_graph=True)  # @accumulation_backward
        w.grad = None


def hook(grad):
    launch(b"hook", 30, 0, 0)  # @hook


def hooks():
    w = ones()
    w.register_hook(hook)
    y = torch.exp(w)  # @hooks_exp
    y.register_hook(hook)
    y.sum().backward()  # @hooks_backward


def call_backward(loss):
    loss.backward()  # @elsewhere_backward


def elsewhere():
    """The forward pass here, the backward pass on a thread of its own."""
    w = ones()
    for _ in range(2):
        loss = Mine.apply(w).sum()  # @elsewhere_apply
        worker = threading.Thread(target=call_backward, args=(loss,))
        worker.start()
        worker.join()


class Nested(torch.autograd.Function):
    """A backward pass within a backward pass, DEPTH deep: after 60 of them the engine goes on in a
    thread of its own."""
    @staticmethod
    def forward(ctx, x, depth):
        ctx.depth = depth
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        launch(b"nested", 10, 0, 0)  # @nested
        if ctx.depth:
            with torch.enable_grad():
                inner = ones()
                Nested.apply(inner, ctx.depth - 1).sum().backward()  # @nested_again
        return grad, None


def pool():
    Nested.apply(ones(), 69).sum().backward()  # @pool_backward


# ---- everything else inside an operator ----

def busy_cpu(x):
    copy(launcher.PAGEABLE, launcher.DEVICE, 4096, 800, 0, 0, 0)  # @busy_copy
    memset(512, 50, 0)  # @busy_set
    launcher.free(launcher.alloc(1000, -1), -1)  # @busy_memory
    wait(launcher.STREAM, 2000000)  # @busy_wait
    return torch.neg(x)


mine.define("busy(Tensor x) -> Tensor")
mine.impl("busy", busy_cpu, "CPU")


def busy():
    for _ in range(2):
        torch.ops.mock.busy(torch.ones(4))  # @busy


for section in (outside, threads, native, operators, from_c, function, engine, accumulation, hooks,
                elsewhere, pool, busy):
    section()
