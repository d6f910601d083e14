# SPDX-License-Identifier: Apache-2.0
"""A stand-in for torch.nn.Module in three styles of calling, as PyTorch had them: `direct` (1.13),
`cells` (2.0: self and the arguments are variables of an inner function) and `wrapped` (since 2.1)."""
import collections
import os

STYLE = os.environ["FAKE_STYLE"]


class Module:
    def __init__(self):
        super().__setattr__("training", True)
        super().__setattr__("_parameters", {})
        super().__setattr__("_before", [])
        super().__setattr__("_modules", collections.OrderedDict() if STYLE == "direct" else {})

    def __setattr__(self, name, value):
        modules = self.__dict__.get("_modules")
        if isinstance(value, Module):
            modules[name] = value
        elif modules is not None and name in modules:
            modules[name] = value
        else:
            super().__setattr__(name, value)

    def __getattr__(self, name):
        modules = self.__dict__.get("_modules", {})
        if name in modules:
            return modules[name]
        raise AttributeError(name)

    def __delattr__(self, name):
        if name in self._modules:
            del self._modules[name]
        else:
            super().__delattr__(name)

    def named_modules(self, known=None, prefix=""):
        known = set() if known is None else known
        if self not in known:
            known.add(self)
            yield prefix, self
            for name, module in self._modules.items():
                if module is not None:
                    yield from module.named_modules(known, prefix + ("." if prefix else "") + name)

    if STYLE == "cells":
        def _call_impl(self, *args, **kwargs):
            def inner():
                nonlocal args, kwargs
                for hook in self._before:
                    args = hook(self, args) or args
                return self.forward(*args, **kwargs)
            return inner()
    else:
        def _call_impl(self, *input, **kwargs):
            for hook in self._before:
                input = hook(self, input) or input
            return self.forward(*input, **kwargs)

    if STYLE == "wrapped":
        def _wrapped_call_impl(self, *args, **kwargs):
            return self._call_impl(*args, **kwargs)
        __call__ = _wrapped_call_impl
    else:
        __call__ = _call_impl
