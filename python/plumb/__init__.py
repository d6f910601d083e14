# SPDX-License-Identifier: Apache-2.0
"""Reads profiles that plumb wrote, with nothing but Python's standard library; annotates programs that it
profiles; and turns recording on and off in them: plumb.start(), plumb.stop(), plumb.recording().

    import plumb

    profile = plumb.Profile("run.plumb")
    for node in profile.match("**/operator:aten::linear/**/kernel:*gemm*"):
        print(node.name, node.exclusive["gpu.time"].sum, "ns under", node.forward or node.parent)

Times are nanoseconds, sizes bytes, everything else counts. An unknown number is None, never 0.

In a program under `plumb run`; without it these cost next to nothing:

    with plumb.span("load batch"):
        plumb.metric("tokens", batch.size)
"""
from .annotate import mark, metric, span
from .control import recording, start, stop

# Reading needs SQLite, which a program that only annotates does not.
_PROFILE = ("CpuSample", "Device", "Node", "Process", "Profile", "ProfileError", "Track", "Value", "Variant")
_READING = {**{name: ("profile", name) for name in _PROFILE},
            "Span": ("_spans", "Span"), "SpanColumns": ("_spans", "Columns"),
            "flag": ("rules", "flag"), "rule": ("rules", "rule")}

__all__ = [*_READING, "__version__", "mark", "metric", "recording", "span", "start", "stop"]


def __getattr__(name):
    if name in _READING:
        import importlib
        module, there = _READING[name]
        return getattr(importlib.import_module("." + module, __name__), there)
    if name != "__version__":
        raise AttributeError(f"module 'plumb' has no attribute {name!r}")
    from importlib import metadata
    try:
        return metadata.version("plumb-profiler")
    except metadata.PackageNotFoundError:  # used from a checkout
        import pathlib
        return (pathlib.Path(__file__).parents[2] / "VERSION").read_text().strip()
