# SPDX-License-Identifier: Apache-2.0
"""Reads plumb's profiles, records programs, and annotates them. It needs only Python's standard library.

Read a profile:

    import plumb

    profile = plumb.Profile("run.plumb")
    for node in profile.match("**/operator:aten::linear/**/kernel:*gemm*"):
        print(node.name, node.exclusive["gpu.time"].sum, "ns under", node.forward or node.parent)

Times are nanoseconds, sizes bytes, everything else counts. An unknown number is None, never 0.

Record a part of a program that is running:

    with plumb.profile("step.plumb"):
        train_step()

Annotate a program. Without plumb, this costs next to nothing:

    with plumb.span("load batch"):
        plumb.metric("tokens", batch.size)

Give an array on a GPU a name, for `plumb run --traffic`:

    weights = plumb.name(cupy.zeros(1000), "weights")

Under `plumb run`, plumb.start() and plumb.stop() turn recording on and off, and plumb.recording() says if it is on.
"""
from .annotate import mark, metric, name, span
from .control import recording, start, stop

TYPE_CHECKING = False  # as typing has it, which takes milliseconds to import
if TYPE_CHECKING:  # what __getattr__ below gives, for type checkers and editors
    from ._spans import Columns as SpanColumns, Span
    from .magic import load_ipython_extension
    from .reading import CpuSample, Device, Node, Process, Profile, ProfileError, Track, Value, Variant
    from .rules import flag, rule
    from .session import Recording, SessionError, profile

    __version__: str

# Reading needs SQLite, which a program that only annotates does not.
_PROFILE = ("CpuSample", "Device", "Node", "Process", "Profile", "ProfileError", "Track", "Value", "Variant")
_READING = {**{name: ("reading", name) for name in _PROFILE},
            "Span": ("_spans", "Span"), "SpanColumns": ("_spans", "Columns"),
            "flag": ("rules", "flag"), "rule": ("rules", "rule"),
            **{name: ("session", name) for name in ("Recording", "SessionError", "profile")},
            "load_ipython_extension": ("magic", "load_ipython_extension")}

__all__ = [*_READING, "__version__", "mark", "metric", "name", "recording", "span", "start", "stop"]


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
