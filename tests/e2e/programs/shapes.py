# SPDX-License-Identifier: Apache-2.0
"""Operators on tensors of known shapes, for `plumb run --shapes`. Prints nothing."""
import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")
torch.set_num_threads(1)
torch.manual_seed(1)


def plain():
    a, b = torch.ones(2, 3), torch.ones(4, 3)
    for _ in range(3):
        torch.mm(a, b.t())  # @mm
    torch.mm(torch.ones(5, 3), b.t())  # @mm_larger
    torch.neg(torch.tensor(1.0))  # @scalar
    torch.neg(torch.ones(0, 4))  # @empty
    torch.cat([a, b, a], 0)  # @cat
    torch.topk(torch.ones(6), 2)  # @topk
    torch.neg(torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last))  # @channels_last


def types():
    for kind in (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
                 torch.int16, torch.int8, torch.uint8, torch.bool, torch.complex64):
        torch.ones(7, dtype=kind).clone()  # @clone


def many():
    for i in range(40):
        torch.neg(torch.ones(i + 1))  # @many


def deep():
    torch.cat([torch.ones(1, 2)] * 40)  # @long_list
    torch.neg(torch.ones((1,) * 20))  # @dimensions


def modules():
    model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))
    for rows in (4, 4, 6):
        model(torch.ones(rows, 3, requires_grad=True)).sum().backward()


def strange():
    """What is no plain tensor."""
    i = torch.tensor([[0, 1], [1, 0]])
    sparse = torch.sparse_coo_tensor(i, torch.ones(2), (2, 2))
    torch.mul(sparse, 2)  # @sparse
    torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8).dequantize()
    if hasattr(torch, "vmap"):
        torch.vmap(torch.sin)(torch.ones(3, 2))
    if hasattr(torch, "nested") and hasattr(torch, "jagged"):
        nested = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged)
        torch.sin(nested)
        str(nested)
    try:
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch.fx.experimental.symbolic_shapes import ShapeEnv
    except ImportError:
        return
    try:
        mode = FakeTensorMode(shape_env=ShapeEnv())
        fake = mode.from_tensor(torch.ones(5, 3), static_shapes=False)
    except Exception:  # as it is in this release
        return
    torch.sin(fake)  # @fake
    with mode:
        torch.mm(fake, torch.ones(3, 2))
    torch.cat([fake, fake])
    if hasattr(torch, "compile"):
        for rows in (3, 4, 5):
            torch.compile(lambda x: torch.sin(x).sum(), backend="eager", dynamic=True)(torch.ones(rows, 2))


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, function, kinds, arguments=(), named=None):
        return function(*[a.inner if isinstance(a, Wrapper) else a for a in arguments], **(named or {}))


def wrapped():
    torch.neg(Wrapper(torch.ones(2, 2)))  # @wrapped


plain()
types()
many()
deep()
modules()
strange()
wrapped()
