# SPDX-License-Identifier: Apache-2.0
"""Modules called in every way, each of which says itself what it is called: a Probe runs an operator in
a range of the name and class that PyTorch gives it. Prints, as JSON, what was called how often."""
import collections
import gc
import json
import os
import random
import sys
import tempfile
import threading
import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")
torch.set_num_threads(1)
random.seed(3)
calls = collections.Counter()
X = torch.ones(3)


def class_of(module):
    return f"{type(module).__module__}.{type(module).__name__}"


def say(module, x):
    """Runs an operator in a range that tells where it should stand."""
    label = module.__dict__.get("label") or type(module).__name__
    calls[f"{label}|{class_of(module)}"] += 1
    with torch.autograd.profiler.record_function(f"{label}|{class_of(module)}"):
        return torch.neg(x)


def labelled(root):
    """Gives each module the name that named_modules() has for it."""
    for name, module in root.named_modules():
        module.label = name or type(root).__name__
    return root


class Probe(nn.Module):
    def forward(self, x):
        return say(self, x)


class Group(nn.Module):
    """Calls what it holds, in order, and then itself says where it is."""

    def __init__(self, **modules):
        super().__init__()
        for name, module in modules.items():
            setattr(self, name, module)

    def forward(self, x):
        for child in self.children():
            if isinstance(child, nn.ModuleList):
                for one in child:
                    x = one(x)
            elif isinstance(child, nn.ModuleDict):
                for one in child.values():
                    x = one(x)
            else:
                x = child(x)
        return say(self, x)


def containers():
    root = labelled(Group(
        first=Probe(), list=nn.ModuleList(Probe() for _ in range(12)),
        sequence=nn.Sequential(Probe(), Group(inner=Probe(), other=Probe()), Probe()),
        names=nn.ModuleDict({"é": Probe(), "with space": Probe(), "函数": Probe()})))
    for _ in range(3):
        root(X)


def two_names():
    shared = Probe()
    root = Group(b=Group(one=shared), a=shared)
    labelled(root)
    root(X)


class Alone(Probe):
    """Overrides __call__."""

    def __call__(self, x):
        return super().__call__(x)


class Rebound(nn.Module):
    def __init__(self):
        super().__init__()
        self.child = Probe()

    def forward(self, x):
        me, child = self, self.child
        self = None
        del self
        return say(me, child(x))


class Captured(nn.Module):
    """Its self is a cell."""

    def __init__(self):
        super().__init__()
        self.child = Probe()

    def forward(self, x):
        def inner():
            return self.child(x)
        return say(self, inner())


class Generating(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(Probe() for _ in range(3))

    def run(self, x):
        for part in self.parts:
            yield part(x)
            say(self, x)

    def forward(self, x):
        return [y for y in self.run(x)][-1]


class ByKeyword(nn.Module):
    def __init__(self):
        super().__init__()
        self.child = Probe()

    def forward(self, *, x):
        return self.child(x=x)


def shapes_of_code():
    root = labelled(Group(alone=Alone(), rebound=Rebound(), captured=Captured(),
                          generating=Generating()))
    root(X)
    labelled(ByKeyword())(x=X)


def hooks():
    root = labelled(Group(plain=Probe(), hooked=Group(deep=Probe())))
    helper = labelled(Probe())  # a root of its own, held by nobody

    def before(module, args):
        say(module, args[0])
        return (torch.neg(args[0]),)

    def after(module, args, result):
        say(module, result)

    root.hooked.register_forward_pre_hook(before)
    root.hooked.register_forward_hook(after)
    root.hooked.deep.register_forward_hook(lambda module, args, result: helper(result))
    for _ in range(2):
        root(X)


def made_on_the_fly():
    class Making(nn.Module):
        def forward(self, x):
            for _ in range(4):
                x = Probe()(x)
            return say(self, x)

    labelled(Making())(X)
    for _ in range(4):
        Probe()(X)


def parameters_only():
    """A dict of its own for each object, and one with very many entries."""
    class Many(nn.Module):
        def __init__(self):
            super().__init__()
            self.before = Probe()
            for i in range(80):
                setattr(self, f"attribute_{i}", i)
            self.after = Probe()

        def forward(self, x):
            return say(self, self.after(self.before(x)))

    root = labelled(Group(many=Many(), plain=Probe()))
    root.many.extra = nn.Linear(3, 3)
    del root.many.attribute_7
    del root.many.extra
    root(X)


def changing():
    """Modules that move about under one root."""
    root = labelled(Group(a=Probe(), b=Probe(), c=Probe()))
    root(X)
    root.a, root.b = root.b, root.a
    labelled(root)(X)
    del root.c
    root.d = Group(e=Probe())
    labelled(root)(X)
    root.d.e = Probe()
    labelled(root)(X)
    root.a = None
    labelled(root)(X)
    for _ in range(300):  # at every call, more than plumb reads the tree again for
        name = random.choice("ab")
        setattr(root, name, Probe())
    labelled(root)(X)


def sweep():
    """Models that go, and others that come to their addresses."""
    for trial in range(40):
        names = random.sample("abcdefgh", random.randint(2, 8))
        root = labelled(Group(**{name: random.choice([Probe, lambda: Group(z=Probe())])()
                                 for name in names}))
        for _ in range(2):
            root(X)
        kind = type(f"Kind{trial}", (Probe,), {})
        labelled(Group(only=kind()))(X)
        kind()(X)
        del root, kind
        if trial % 3 == 0:
            gc.collect()


def wrapped():
    inner = Group(leaf=Probe())
    labelled(nn.DataParallel(inner))(X)
    if torch.distributed.is_available() and torch.distributed.is_gloo_available():
        with tempfile.TemporaryDirectory() as folder:
            torch.distributed.init_process_group(
                "gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
            inner = Group(leaf=Probe(), weight=nn.Linear(3, 3))
            root = nn.parallel.DistributedDataParallel(inner)
            labelled(root)(X)
            torch.distributed.destroy_process_group()


def threads():
    root = labelled(Group(a=Probe(), b=Group(c=Probe())))
    workers = [threading.Thread(target=lambda: [root(X) for _ in range(20)]) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


class Recursive(nn.Module):
    def __init__(self):
        super().__init__()
        self.leaf = Probe()

    def forward(self, x, depth=3):
        if depth:
            return say(self, self(x, depth - 1))
        return self.leaf(x)


def recursion():
    labelled(Recursive())(X)
    root = labelled(Group())
    node = root
    for _ in range(20):
        node.next = Group()
        node = node.next
    labelled(root)(X)


def backward():
    """A custom function that calls a module in its backward, on the engine's thread."""
    inner = labelled(Probe())

    class Calling(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            return x.clone()

        @staticmethod
        def backward(context, gradient):
            return inner(gradient)

    class Outer(nn.Module):
        def forward(self, x):
            return say(self, Calling.apply(x))

    x = torch.ones(3, requires_grad=True)
    labelled(Outer())(x).sum().backward()


sections = sys.argv[1:] or ["containers", "two_names", "shapes_of_code", "hooks", "made_on_the_fly",
                            "parameters_only", "changing", "sweep", "wrapped", "threads", "recursion",
                            "backward"]
if sections[0] == "apart":  # each in a child of its own; prints the children's numbers
    children = {}
    for section in sections[1:]:
        children[section] = os.fork()
        if not children[section]:
            globals()[section]()
            sys.exit()
        assert os.waitpid(children[section], 0)[1] == 0, section
    print(json.dumps(children), flush=True)
else:
    for section in sections:
        globals()[section]()
    print(json.dumps(calls), flush=True)
