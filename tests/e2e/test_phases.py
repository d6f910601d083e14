# SPDX-License-Identifier: Apache-2.0
"""Phases of programs/phases.py, whose parts say themselves what they are. The rule itself is tested on
paths in tests/unit/test_phase.c, and on recorded profiles in test_recorded.py."""
import collections
import json

from plumbtest import recorded

import plumb as plumb_package

def said(node):
    """The phase that the program says of an operator or a range, or a backward flag above it."""
    above = node.parent
    if node.name.startswith("phase:"):
        return "other"
    above, by_python = node, False
    while above:
        by_python |= above.kind == "python"
        if above.is_backward:
            return "backward"
        if above.name and above.name.startswith("profiler::"):  # what ranges are made of
            return "other"
        if above.kind == "range" and above.name.startswith("phase:"):
            return above.name[len("phase:"):] if by_python else "other"
        above = above.parent
    return "other"


def test_phases(torch_python, tmp_path_factory, plumb):
    made = recorded(torch_python, "phases.py", tmp_path_factory)
    expected = collections.Counter()
    for node in made.profile.root.walk():
        if node.kind in ("operator", "range") and "op.duration" in node.exclusive:
            expected[said(node)] += node.exclusive["op.duration"].count
    done = plumb("report", made.path, "--by", "phase", "--metric", "op.calls", "--json", "--top", "0")
    found = {row["name"]: row["exclusive"].get("op.calls", {"sum": 0})["sum"]
             for row in json.loads(done.stdout)["rows"]}
    assert all(expected[name] for name in ("data", "forward", "loss", "backward", "optimizer"))
    assert sum(found.values()) == made.profile.root.inclusive["op.calls"].sum
    assert found == expected


def test_inverted_is_refused(plumb, torch_python, tmp_path_factory):
    made = recorded(torch_python, "phases.py", tmp_path_factory)
    for by in ("phase", "shape"):
        done = plumb("report", made.path, "--by", by, "--inverted")
        assert done.returncode == 1 and f"a {by} has no callers" in done.stderr
    assert isinstance(made.profile, plumb_package.Profile)
