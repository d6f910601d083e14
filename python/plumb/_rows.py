# SPDX-License-Identifier: Apache-2.0
"""What a profile's tables give: values, variants, samples, and rows with the columns as attributes."""
from __future__ import annotations

from typing import NamedTuple, Optional


class Metric(NamedTuple):
    """What a metric means. `aggregation` is "sum", "max" or "call" (a property of one call)."""
    name: str
    unit: str
    aggregation: str
    source: str
    meaning: str


class Value(NamedTuple):
    """All observations of one metric at one node, in the metric's unit (ns, byte, count, ppm).

    `sum` is None for a metric that does not add up, such as a kernel's registers. Without an observation
    `count` is 0, `sum` is 0 or None, and the rest is None.
    """
    sum: Optional[int]
    count: int  # type: ignore[assignment]  # a tuple has a method of this name
    min: Optional[int]
    max: Optional[int]
    mean: Optional[float]
    std: Optional[float]  # of a sample: with n - 1; 0 for a single observation; None: not known


class Variant(NamedTuple):
    """One launch configuration of a kernel, or one set of input shapes of an operator, with its count and time.

    Sizes are bytes, times ns. Occupancy is in parts per million."""
    track: Optional[int]
    shapes: Optional[str]
    grid: tuple
    block: tuple
    registers: Optional[int]
    static_shared_bytes: Optional[int]
    dynamic_shared_bytes: Optional[int]
    occupancy_ppm: Optional[int]
    count: int  # type: ignore[assignment]
    time_ns: int
    min_ns: int
    max_ns: int


class CpuSample(NamedTuple):
    """A sample of CPU time. `track` and `context` are ids.

    At `at_ns` the thread `track` ran at `context`. `cpu_ns` is its CPU time since its previous sample."""
    track: int
    context: int
    at_ns: int
    cpu_ns: int


class Row:
    """A row of a table. Its columns are attributes. A name's ending is the unit, such as _ns or _bytes."""

    def __init__(self, columns):
        self.__dict__.update(columns)

    def __repr__(self):
        return "{}({})".format(type(self).__name__,
                               ", ".join(f"{key}={value!r}" for key, value in vars(self).items()))


class Process(Row):
    """id, pid, ppid, rank, local_rank, host, command, start_ns, end_ns, exit_code, overhead_ns."""


class Device(Row):
    """A GPU: id, name, uuid, ordinal, rank, its properties, and its exact totals (kernels, kernel_ns, copies,
    copy_ns, copy_bytes, sets, set_ns, set_bytes, busy_ns, contended_ns, …)."""


class Track(Row):
    """Where work happens: id, kind ("thread", "stream" or "memory", which is a device's), process, device, name,
    tid, stream, …"""


class Memory(Row):
    """A device's memory in one process: id, track, peak_bytes, peak_ns, allocations, allocated_bytes,
    frees, freed_bytes, live_bytes (at the end), and the allocator's own numbers: peak_allocated_bytes,
    peak_reserved_bytes, most_reserved_bytes (None if it does not count them)."""


class CodeObject(Row):
    """A program or library: id, process, kind ("elf"), path, build_id, hash, bytes. The `file` of a
    native node is the build id, or the path if the file has no build id."""


class Run(Row):
    """command, start_ns, wall_ns, exit_code, overhead_ns, tool_version, analyses (since schema 4)."""


def merge(a, b):
    """Two (sum, count, min, max, mean, m2) put together."""
    count = a[1] + b[1]
    delta = b[4] - a[4]
    least = None if a[2] is None or b[2] is None else min(a[2], b[2])
    most = None if a[3] is None or b[3] is None else max(a[3], b[3])
    return (a[0] + b[0], count, least, most, a[4] + delta * b[1] / count,
            None if a[5] is None or b[5] is None else
            a[5] + b[5] + delta * delta * a[1] * b[1] / count)


def value_of(stat, aggregation):
    """(sum, count, min, max, mean, m2), or None, of a metric with this aggregation as a Value."""
    adds = aggregation == "sum"
    if stat is None:
        return Value(0 if adds else None, 0, None, None, None, None)
    total, count, least, most, mean, m2 = stat
    deviation = 0.0 if count < 2 else None if m2 is None else (m2 / (count - 1)) ** 0.5
    return Value(total if adds else None, count, least, most, mean, deviation)
