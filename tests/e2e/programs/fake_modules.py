# SPDX-License-Identifier: Apache-2.0
"""Modules without PyTorch (fake/torch), on any CPython: a Probe launches a kernel of the stand-in driver
that bears its name and class. Prints, as JSON, what was launched how often."""
import collections
import gc
import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake"))

from launcher import launch  # noqa: E402
from torch.nn.modules.module import Module  # noqa: E402

random.seed(5)
calls = collections.Counter()


def say(module):
    label = "%s|%s.%s" % (module.__dict__.get("label") or type(module).__name__,
                          type(module).__module__, type(module).__name__)
    calls[label] += 1
    launch(label.encode(), 10, 0, 0)


def labelled(root):
    for name, module in root.named_modules():
        module.label = name or type(root).__name__
    return root


class Probe(Module):
    def forward(self, x):
        say(self)


class Group(Module):
    def __init__(self, **modules):
        super().__init__()
        for name, module in modules.items():
            setattr(self, name, module)

    def forward(self, x):
        for module in list(self._modules.values()):
            if module is not None:
                module(x)
        say(self)


def nested():
    root = labelled(Group(a=Probe(), b=Group(c=Probe(), d=Group(e=Probe()))))
    for _ in range(3):
        root(1)


def names():
    root = Group(**{"é": Probe(), "函数": Probe(), "with space": Probe(), "a\U0001f40d": Probe(),
                    "long" * 100: Probe()})
    root._modules["".join(["dyn", "amic"])] = Probe()
    labelled(root)(1)


def dicts():
    class Many(Group):
        pass

    for count in (5, 25, 31, 60, 300):  # the dict that shares its keys, and one of its own
        root = labelled(Group(many=Many(a=Probe(), b=Probe()), c=Probe()))
        for i in range(count):
            setattr(root.many, "attribute_%d" % i, i)
        root(1)
        del root.many.attribute_3
        setattr(root.many, "later", 1)
        root(1)
        root.many.__dict__ = dict(root.many.__dict__)
        root(1)
    class Slots(Probe):
        __slots__ = ("one", "two")
    labelled(Group(slots=Slots()))(1)


def many():
    root = labelled(Group(**{"m%d" % i: Probe() for i in range(100)}))
    root(1)
    for i in range(0, 100, 3):
        delattr(root, "m%d" % i)
    labelled(root)(1)


def shared():
    one = Probe()
    labelled(Group(first=Group(x=one), second=one))(1)


def changing():
    root = labelled(Group(a=Probe(), b=Probe(), c=Group(d=Probe())))
    root(1)
    root.a, root.b = root.b, root.a
    labelled(root)(1)
    root.c.d = Probe()
    labelled(root)(1)
    root.c = None
    labelled(root)(1)
    root.__class__ = type("Other", (Group,), {})
    labelled(root)(1)


def sweep():
    for trial in range(20):
        names = random.sample("abcdefgh", random.randint(2, 8))
        root = labelled(Group(**{name: random.choice([Probe, lambda: Group(z=Probe())])()
                                 for name in names}))
        root(1)
        root(1)
        kind = type("Kind%d" % trial, (Probe,), {})
        labelled(Group(only=kind()))(1)
        kind()(1)
        del root, kind
        if trial % 5 == 0:
            gc.collect()


def stray():
    class Holding(Module):
        def forward(self, x):
            for probe in self.probes:
                probe(x)
            Probe()(x)
            say(self)

    root = Holding()
    root.probes = [Probe(), Probe()]
    labelled(root)(1)


def hooks():
    root = labelled(Group(a=Probe(), b=Probe()))
    root._before.append(lambda module, args: say(module))
    root.a._before.append(lambda module, args: (say(module), args)[1:])
    for _ in range(2):
        root(1)


def recursion():
    root = node = Group()
    for _ in range(30):
        node.next = Group()
        node = node.next
    labelled(root)(1)


def generators():
    class Yielding(Module):
        def run(self, x):
            for module in self._modules.values():
                yield module(x)

        def forward(self, x):
            list(self.run(x))
            say(self)

    labelled(Yielding())(1)
    root = Yielding()
    root.a, root.b = Probe(), Probe()
    labelled(root)(1)


for section in sys.argv[1].split(","):
    globals()[section]()
print(json.dumps(calls))
