# SPDX-License-Identifier: Apache-2.0
"""Reads profiles that plumb wrote, and annotates programs that it profiles, with nothing but Python's
standard library.

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

# Reading needs SQLite, which a program that only annotates does not.
_READING = ("Device", "Node", "Process", "Profile", "ProfileError", "Track", "Value", "Variant")

__all__ = [*_READING, "__version__", "mark", "metric", "span"]


def __getattr__(name):
    if name in _READING:
        from . import profile
        return getattr(profile, name)
    if name != "__version__":
        raise AttributeError(f"module 'plumb' has no attribute {name!r}")
    from importlib import metadata
    try:
        return metadata.version("plumb-profiler")
    except metadata.PackageNotFoundError:  # used from a checkout
        import pathlib
        return (pathlib.Path(__file__).parents[2] / "VERSION").read_text().strip()
