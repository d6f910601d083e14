# SPDX-License-Identifier: Apache-2.0
"""Helpers for tests of importers: protobuf in a few lines, plumb import, and files cut at every byte."""
import json
import pathlib
import struct

from conftest import ROOT

import plumb as plumb_package

TRACES = next((folder for up in ("", "..", "../..")
               if (folder := ROOT / up / "shared" / "traces").is_dir()), pathlib.Path("no such folder"))


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7f:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def message(*fields):
    """(number, value) in order: int, float, str, bytes (a message), or a list of ints (packed)."""
    out = bytearray()
    for number, value in fields:
        if isinstance(value, bool) or isinstance(value, int):
            out += varint(number << 3) + varint(int(value))
        elif isinstance(value, float):
            out += varint(number << 3 | 1) + struct.pack("<d", value)
        else:
            if isinstance(value, list):
                value = b"".join(varint(one) for one in value)
            value = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(value)) + value
    return bytes(out)


class Imported:
    """A file that plumb imported: `report()` as JSON, and its profile."""

    def __init__(self, plumb, path):
        self.plumb, self.path = plumb, path
        self.profile = plumb_package.Profile(path)

    def report(self, *arguments):
        done = self.plumb("report", self.path, "--json", *arguments)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def total(self, metric):
        return self.profile.root.inclusive[metric].sum

    def paths(self, metric):
        """{(names from the outermost frame on): the metric's own part}"""
        return {tuple(step.name for step in [*reversed(node.ancestors), node][1:]): value
                for node in self.profile.walk() if (value := node.exclusive[metric].sum)}

    def ledger(self, source="import"):
        """{(fate, detail): count} of SOURCE."""
        return {(row.fate, row.detail): row.count for row in self.profile.ledger
                if row.source == source}


def imported(plumb, folder, *sources, name="imported"):
    """SOURCES: paths, or bytes that become a file without an extension."""
    paths = []
    for number, source in enumerate(sources):
        if isinstance(source, bytes):
            path = folder / f"{name}_{number}"
            path.write_bytes(source)
            source = path
        paths.append(source)
    out = folder / f"{name}.plumb"
    done = plumb("import", *paths, "-o", out)
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return Imported(plumb, out)


def refused(plumb, folder, source, code=2):
    """The one line that plumb says about SOURCE (bytes, or a path); no profile is left."""
    path = source
    if isinstance(source, bytes):
        path = folder / "refused"
        path.write_bytes(source)
    out = folder / "refused.plumb"
    done = plumb("import", path, "-o", out)
    assert done.returncode == code, (done.returncode, done.stderr)
    assert done.stderr.count("\n") == 1, done.stderr
    assert str(path) in done.stderr, done.stderr
    assert not out.exists()
    return done.stderr.strip()


def cut_everywhere(plumb, folder, data):
    """DATA cut at every byte is taken or refused in one line, and nothing is left of what was refused.
    Returns how many were refused."""
    path, out, count = folder / "cut", folder / "cut.plumb", 0
    for size in range(len(data)):
        path.write_bytes(data[:size])
        done = plumb("import", path, "-o", out)
        assert done.returncode in (0, 2, 3), (size, done.returncode, done.stderr)
        if done.returncode:
            assert done.stderr.count("\n") == 1, (size, done.stderr)
            assert not out.exists(), size
            count += 1
        else:
            out.unlink()
    return count
