# SPDX-License-Identifier: Apache-2.0
"""Reads profiles that plumb wrote, with nothing but Python's standard library; and turns recording on
and off in a program that runs under `plumb run`: plumb.start(), plumb.stop(), plumb.recording().

    import plumb

    profile = plumb.Profile("run.plumb")
    for node in profile.match("**/operator:aten::linear/**/kernel:*gemm*"):
        print(node.name, node.exclusive["gpu.time"].sum, "ns under", node.forward or node.parent)

Times are nanoseconds, sizes bytes, everything else counts. An unknown number is None, never 0.
"""
from .control import recording, start, stop
from ._spans import Columns as SpanColumns
from ._spans import Span
from .profile import (Device, Node, Process, Profile, ProfileError, Track, Value, Variant)
from .rules import flag, rule

__all__ = ["Device", "Node", "Process", "Profile", "ProfileError", "Span", "SpanColumns", "Track",
           "Value", "Variant", "__version__", "flag", "recording", "rule", "start", "stop"]


def __getattr__(name):
    if name != "__version__":
        raise AttributeError(f"module 'plumb' has no attribute {name!r}")
    from importlib import metadata
    try:
        return metadata.version("plumb-profiler")
    except metadata.PackageNotFoundError:  # used from a checkout
        import pathlib
        return (pathlib.Path(__file__).parents[2] / "VERSION").read_text().strip()
