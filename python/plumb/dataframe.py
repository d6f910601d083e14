# SPDX-License-Identifier: Apache-2.0
"""Tables of a profile as pandas data frames, for Profile.to_dataframe()."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable

if TYPE_CHECKING:
    import pandas

    from .reading import Profile

PARTS = ("exclusive", "inclusive")
FIELDS = ("sum", "count", "min", "max", "mean", "std")


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise ImportError("to_dataframe() needs pandas; install it with: pip install pandas") from None
    return pandas


def contexts(profile: Profile, metrics: Iterable[str] | None) -> pandas.DataFrame:
    pandas = _pandas()
    wanted = list(profile.metrics if metrics is None else metrics)
    unknown = [name for name in wanted if name not in profile.metrics]
    if unknown:
        raise KeyError(f"no metric {unknown[0]!r}; this profile has: {', '.join(profile.metrics)}")
    rows, parents, paths = [], [], [""]
    for node in profile.walk():
        parent = node.parent
        parents.append(None if parent is None else parent.id)
        if parent is not None:
            paths.append((paths[parent.id] + "/" if parent.id else "")
                         + node.name.replace("\\", "\\\\").replace("/", "\\/"))
        rows.append((node.kind, node.name, node.file, node.line, node.depth, profile._contexts[node.id][2] & 3 != 0))
    frame = pandas.DataFrame(rows, columns=["kind", "name", "file", "line", "depth", "begins_backward"])
    frame["line"] = frame["line"].astype("Int64")
    frame.insert(0, "parent", pandas.array(parents, dtype="Int64"))
    frame["path"] = paths
    frame.index.name = "context"
    for metric in wanted:
        adds = profile.metrics[metric].aggregation == "sum"
        for part, stats in zip(PARTS, profile._stats(metric)):
            if not stats:
                continue
            values = pandas.DataFrame.from_dict(
                stats, orient="index", columns=["sum", "count", "min", "max", "mean", "m2"]).reindex(frame.index)
            for field in FIELDS:
                if field == "sum" and not adds:
                    continue
                if field == "std":
                    column = (values["m2"] / (values["count"] - 1).where(values["count"] > 1)) ** 0.5
                    column = column.where(values["count"] != 1, 0.0)
                else:
                    column = values[field]
                if field in ("sum", "count", "min", "max"):
                    column = column.astype("Int64")
                frame[f"{metric}.{part}.{field}"] = column
    return frame.copy()


def spans(profile: Profile, newest: bool) -> pandas.DataFrame:
    pandas = _pandas()
    pieces = []
    for chunk in profile.span_columns(newest=newest):
        piece = pandas.DataFrame({"context": list(chunk.context), "start_ns": list(chunk.start_ns),
                                  "end_ns": list(chunk.end_ns)})
        piece.insert(0, "track", chunk.track)
        for name, column in (("correlation", chunk.correlation), ("bytes", chunk.bytes)):
            values = pandas.Series([pandas.NA] * len(piece) if column is None else list(column), dtype="UInt64")
            piece[name] = values.mask(values == 0)
        pieces.append(piece)
    if not pieces:
        return pandas.DataFrame(columns=["track", "context", "start_ns", "end_ns", "correlation", "bytes"])
    return pandas.concat(pieces, ignore_index=True)


def rows(listed: list[Any]) -> pandas.DataFrame:
    """One line for each row object. A node becomes its context's id."""
    pandas = _pandas()
    return pandas.DataFrame([{name: getattr(value, "id", value) if name == "context" else value
                              for name, value in vars(row).items()} for row in listed])
