# SPDX-License-Identifier: Apache-2.0
"""The spans of a profile, in chunks of compressed columns (format: docs/profile-format.md)."""
import array
import ctypes
import ctypes.util
import sys
from typing import NamedTuple, Optional


class Span(NamedTuple):
    """One call on a thread, or one piece of GPU work on a stream.

    `correlation`: the same for a driver call and the work that it started, within a process. None: it has no
    such link. `bytes`: the size of a copy or set. None: unknown."""
    track: int
    context: int
    start_ns: int
    end_ns: int
    correlation: Optional[int]
    bytes: Optional[int] = None


class Columns(NamedTuple):
    """The spans of one chunk as arrays of equal length (array.array, which numpy.frombuffer can read).

    In `correlation` and `bytes`, 0 means none. The whole column is None if no span has a value."""
    track: int
    context: array.array
    start_ns: array.array
    end_ns: array.array
    correlation: Optional[array.array]
    bytes: Optional[array.array] = None


def _library():
    """Decompresses with the system's libzstd."""
    zstd = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
    zstd.ZSTD_decompress.restype = ctypes.c_size_t

    def unpack(blob, size):
        room = ctypes.create_string_buffer(size)
        done = zstd.ZSTD_decompress(room, ctypes.c_size_t(size), bytes(blob),
                                    ctypes.c_size_t(len(blob)))
        if done != size:
            raise ValueError("a column cannot be decompressed")
        return room.raw
    return unpack


def _module(module):
    def unpack(blob, size):
        try:  # no more than one byte too many, whatever a damaged column would unfold to
            data = module.ZstdDecompressor().decompress(bytes(blob), size + 1)
        except module.ZstdError as error:
            raise ValueError("a column cannot be decompressed") from error
        if len(data) != size:
            raise ValueError("a column cannot be decompressed")
        return data
    return unpack


def _find():
    """A function (blob, size of the data) → data, from the first zstd reader that is installed."""
    for name in ("compression.zstd", "backports.zstd", "zstandard"):
        try:
            return _module(__import__(name, fromlist=["ZstdDecompressor"]))
        except (ImportError, AttributeError):
            continue
    try:
        return _library()
    except (OSError, AttributeError):
        raise RuntimeError("spans are compressed with zstd, which this Python cannot read; "
                           "install a reader: pip install zstandard") from None


_unpack = None
CHUNK_ROWS = 65536


def _column(blob, code, count):
    global _unpack
    if _unpack is None:
        _unpack = _find()
    column = array.array(code)
    column.frombytes(_unpack(blob, count * column.itemsize))
    if sys.byteorder == "big":
        column.byteswap()
    return column


def chunks(database, source, track, schema):
    """Yields Columns, chunk by chunk, ordered by track and start."""
    where, values = "source = ?", [source]
    if track is not None:
        where += " AND track = ?"
        values.append(track)
    correlation = "correlation" if schema >= 2 else "NULL"
    size = "bytes" if schema >= 3 else "NULL"
    for number, start_ns, count, context, start, duration, link, moved in database.execute(
            f"SELECT track, start_ns, count, context, start, duration, {correlation}, {size} "
            f"FROM span_chunks WHERE {where} ORDER BY track, id", values):
        if not 0 < count <= CHUNK_ROWS:
            raise ValueError("a chunk has an impossible length")
        contexts = _column(context, "I", count)
        starts, ends = _column(start, "q", count), _column(duration, "q", count)
        at = start_ns
        for i, later in enumerate(starts):
            at += later
            starts[i] = at
            ends[i] += at
        yield Columns(number, contexts, starts, ends,
                      None if link is None else _column(link, "Q", count),
                      None if moved is None else _column(moved, "Q", count))


def rows(columns):
    """Yields the Spans of Columns."""
    for chunk in columns:
        links = chunk.correlation or [0] * len(chunk.context)
        sizes = chunk.bytes or [0] * len(chunk.context)
        for context, start, end, link, size in zip(chunk.context, chunk.start_ns, chunk.end_ns, links,
                                                   sizes):
            yield Span(chunk.track, context, start, end, link or None, size or None)
