# SPDX-License-Identifier: Apache-2.0
"""Backward passes of every kind, one function for each; marked lines. Prints nothing."""
import threading

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(1)


def ones(*shape):
    return torch.ones(*shape, requires_grad=True)


def plain():
    w, x = ones(4), torch.ones(4)
    for _ in range(3):
        y = torch.mul(w, x)  # @plain_mul
        y = torch.sin(y)  # @plain_sin
        loss = y.sum()  # @plain_sum
        loss.backward()  # @plain_backward


def tied():
    """One weight, used twice: two backward operators, one accumulation."""
    w, x = ones(3, 3), torch.ones(3, 3)
    y = torch.mm(x, w)  # @tied_first
    y = torch.mm(y, w)  # @tied_second
    y.sum().backward()  # @tied_backward


def tied_modules():
    embedding, head = nn.Embedding(5, 4), nn.Linear(4, 5, bias=False)
    head.weight = embedding.weight
    for _ in range(2):
        h = embedding(torch.tensor([1, 2]))  # @tied_embedding
        y = head(h)  # @tied_head
        y.sum().backward()  # @tied_modules_backward


def block(x, w):
    h = torch.mul(x, w)  # @block_mul
    return torch.sin(h)  # @block_sin


def reentrant():
    w, x = ones(4), ones(4)
    y = checkpoint(block, x, w, use_reentrant=True)  # @reentrant_call
    y.sum().backward()  # @reentrant_backward


def non_reentrant():
    w, x = ones(4), ones(4)
    y = checkpoint(block, x, w, use_reentrant=False)  # @non_reentrant_call
    y.sum().backward()  # @non_reentrant_backward




def double():
    x = ones(4)
    y = torch.sin(x)  # @double_sin
    grad, = torch.autograd.grad(y.sum(), x, create_graph=True)  # @double_first
    grad.sum().backward()  # @double_second


def tensor_hooks():
    w = ones(4)
    w.register_hook(lambda grad: torch.neg(grad))  # @leaf_hook
    y = torch.mul(w, 2)  # @hooks_mul
    y.register_hook(lambda grad: torch.abs(grad))  # @inner_hook
    y = torch.sin(y)  # @hooks_sin
    y.sum().backward()  # @hooks_backward


def module_hooks():
    layer = nn.Linear(4, 4, bias=False)
    layer.register_forward_hook(lambda m, i, o: torch.neg(o))  # @forward_hook
    layer.register_full_backward_hook(lambda m, i, o: (torch.abs(i[0]),))  # @backward_hook
    y = layer(torch.ones(2, 4, requires_grad=True))  # @module_call
    y.sum().backward()  # @module_backward


def retained():
    w = ones(4)
    y = torch.exp(w).sum()  # @retained_exp
    y.backward(retain_graph=True)  # @retained_first
    y.backward(retain_graph=True)  # @retained_second
    y.backward()  # @retained_third


def grad_outputs():
    x = ones(4)
    y = torch.tanh(x)  # @outputs_tanh
    torch.autograd.grad(y, x, grad_outputs=torch.ones(4))  # @outputs_grad


def losses():
    """Two losses share a part and are accumulated into one weight."""
    w = ones(4)
    shared = torch.exp(w)  # @losses_shared
    first = torch.sin(shared).sum()  # @losses_first
    second = torch.cos(shared).sum()  # @losses_second
    first.backward(retain_graph=True)  # @losses_first_backward
    (second * 2).backward()  # @losses_second_backward
    torch.autograd.backward([torch.exp(w).sum(), torch.tanh(w).sum()])  # @losses_at_once


def call_backward(loss):
    loss.backward()  # @elsewhere_backward


def elsewhere():
    """The forward pass here, the backward pass on a thread of its own."""
    w = ones(4)
    for _ in range(2):
        loss = torch.exp(w).sum()  # @elsewhere_forward
        run_in_thread(call_backward, loss)


def forward_in_thread(results):
    results.append(torch.tanh(ones(4)).sum())  # @ended_forward


def ended():
    """The forward pass on threads that have ended; others took over what they left."""
    results = []
    for _ in range(3):
        run_in_thread(forward_in_thread, results)
    for loss in results:
        loss.backward()  # @ended_backward


def run_in_thread(function, *arguments):
    thread = threading.Thread(target=function, args=arguments)
    thread.start()
    thread.join()


def train_exp(times, barrier):
    w = ones(64)
    for _ in range(times):
        loss = torch.exp(w).sum()  # @train_exp_forward
        barrier.wait()
        loss.backward()  # @train_exp_backward


def train_tanh(times, barrier):
    w = ones(64)
    for _ in range(times):
        loss = torch.tanh(w).sum()  # @train_tanh_forward
        barrier.wait()
        loss.backward()  # @train_tanh_backward


def at_once():
    barrier = threading.Barrier(2)
    threads = [threading.Thread(target=train, args=(50, barrier))
               for train in (train_exp, train_tanh)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        ctx.save_for_backward(value)
        return torch.exp(value)  # @scale_forward

    @staticmethod
    def backward(ctx, grad):
        value, = ctx.saved_tensors
        return helper(grad, value)  # @scale_backward


def helper(grad, value):
    return torch.mul(grad, value)  # @scale_helper


def function():
    w = ones(4)
    for _ in range(2):
        y = Scale.apply(w)  # @function_apply
        y.sum().backward()  # @function_backward


class Inner(torch.autograd.Function):
    """Its backward runs a backward pass of its own."""
    @staticmethod
    def forward(ctx, value):
        ctx.save_for_backward(value)
        return value.clone()

    @staticmethod
    def backward(ctx, grad):
        value, = ctx.saved_tensors
        with torch.enable_grad():
            again = value.detach().requires_grad_()
            y = torch.cos(again)  # @inside_cos
        return torch.autograd.grad(y, again, grad)[0]  # @inside_grad


def inside():
    w = ones(4)
    Inner.apply(w).sum().backward()  # @inside_backward


class Raises(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return value.clone()

    @staticmethod
    def backward(ctx, grad):
        torch.neg(grad)  # @raises_neg
        raise ValueError("as asked")


def broken():
    """A backward pass that ends in an exception, and one after it."""
    w = ones(4)
    try:
        Raises.apply(torch.exp(w)).sum().backward()  # @broken_backward
    except ValueError:
        torch.tanh(w).sum().backward()  # @broken_handler


def in_place():
    """In place on a view: the node that stands for it is not the operator's own."""
    w = ones(3, 4)
    h = torch.mul(w, 2)  # @in_place_first
    h[:, 1] = 3.0  # @in_place_set
    h[0].mul_(2)  # @in_place_mul
    torch.sin(h).sum().backward()  # @in_place_backward


def two_roots():
    w = ones(4)
    first = torch.exp(w).sum()  # @roots_first
    second = torch.tanh(w).sum()  # @roots_second
    torch.neg(torch.ones(2))  # has a number that no node took
    torch.autograd.backward([first, second])  # @roots_backward


def forgotten():
    """More forward operators than plumb keeps between a forward operator and its backward."""
    w = ones(1)
    old = torch.exp(w)  # @forgotten_forward
    for _ in range(140000):
        torch.neg(w)
    old.backward()  # @forgotten_backward


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.norm = nn.LayerNorm(16)
        self.second = nn.Linear(16, 4)

    def forward(self, x):
        x = torch.relu(self.first(x))  # @model_first
        return self.second(self.norm(x))  # @model_second


def training():
    model = Model()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    data, target = torch.randn(16, 8), torch.randint(4, (16,))
    for _ in range(5):
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(model(data), target)  # @training_forward
        loss.backward()  # @training_backward
        optimiser.step()  # @training_step


for section in (plain, tied, tied_modules, reentrant, non_reentrant, double, tensor_hooks,
                module_hooks, retained, grad_outputs, losses, elsewhere, ended, at_once, function,
                inside, broken, in_place, two_roots, training, forgotten):
    section()
