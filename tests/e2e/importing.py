# SPDX-License-Identifier: Apache-2.0
"""Helpers for tests of importers: published traces, protobuf in a few lines, `plumb import` and what it made, and files
cut at every byte.

    made = imported(tmp_path, {"traceEvents": […]})  # JSON, text, bytes, or a path; one or more
    made.report("--by", "kernel")["rows"]; made.total("gpu.time"); made.paths("gpu.time"); made.profile
    assert "line 3" in refused(tmp_path, "no trace")
"""
import functools
import json
import os
import pathlib
import sqlite3
import struct

import pytest
from conftest import PLUMB, ROOT, run_command

import plumb as plumb_package

TRACES = next((folder for up in ("", "..", "../..")
               if (folder := ROOT / up / "shared" / "traces").is_dir()), pathlib.Path("no such folder"))


def shared(name):
    """A published trace, or a skip with a word."""
    if not (TRACES / name).exists():
        pytest.skip(f"{TRACES / name} is not there")
    return TRACES / name


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


def write(folder, content, name="trace", pack=bytes):
    """A file without an end to its name, so that only what is in it tells what it is."""
    path = folder / name
    if not isinstance(content, bytes):
        content = (content if isinstance(content, str) else json.dumps(content)).encode()
    path.write_bytes(pack(content))
    return path


def report(path, *options):
    done = run_command(PLUMB, "report", path, "--json", "--top", "0", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def samples_of(made):
    """[(pid, tid, path, moment, CPU time)] of the samples of an imported profile."""
    profile = made.profile
    return [(profile.processes[profile.tracks[s.track].process].pid, profile.tracks[s.track].tid,
             profile.node(s.context).path, s.at_ns, s.cpu_ns) for s in profile.cpu_samples()]


class Imported(os.PathLike):
    """A file that plumb imported; stands for its path, too."""

    def __init__(self, path):
        self.path = path

    def __fspath__(self):
        return str(self.path)

    __str__ = __fspath__

    @functools.cached_property
    def profile(self):
        return plumb_package.Profile(self.path)

    def report(self, *options):
        return report(self.path, *options)

    def query(self, text):
        with sqlite3.connect(self.path) as database:
            return database.execute(text).fetchall()

    def environment(self):
        return dict(self.query("SELECT key, value FROM environment"))

    @property
    def format(self):
        return self.environment()["import.format"]

    def total(self, metric):
        return self.profile.root.inclusive[metric].sum

    def paths(self, metric):
        """{(names from the outermost frame on): the metric's own part}"""
        return {tuple(step.name for step in [*reversed(node.ancestors), node][1:]): value
                for node in self.profile.walk() if (value := node.exclusive[metric].sum)}

    def stacks(self):
        """Every context as "kind name > kind name", from the outermost on."""
        return {" > ".join(f"{step.kind} {step.name}" for step in [*reversed(node.ancestors), node][1:])
                for node in self.profile.walk()} - {""}

    def ledger(self, source="import"):
        """{(fate, detail): count} of SOURCE."""
        return {(row.fate, row.detail): row.count for row in self.profile.ledger
                if row.source == source}

    def fates(self):
        """{(source, reason's first words, detail): count} of what the ledger has beside what was attributed."""
        found = {}
        for row in self.report()["ledger"]:
            for fate in row["fates"]:
                key = row["source"], fate["reason"][:20], fate["detail"]
                found[key] = found.get(key, 0) + fate["count"]
        return found

    def devices(self):
        return {device["ordinal"]: device for device in self.report()["devices"]}

    def rows(self, by):
        return {row["name"]: row for row in self.report("--by", by)["rows"]}


def run_import(folder, *sources, name="out", options=()):
    """(the finished `plumb import` of SOURCES, their paths, where its profile would be)"""
    paths = [source if isinstance(source, os.PathLike) else write(folder, source, f"{name}-{number}")
             for number, source in enumerate(sources)]
    out = folder / f"{name}.plumb"
    out.unlink(missing_ok=True)
    return run_command(PLUMB, "import", *options, *paths, "-o", out), paths, out


def imported(folder, *sources, name="out", options=()):
    """SOURCES: paths, or what becomes a file."""
    done, _, out = run_import(folder, *sources, name=name, options=options)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done.stderr
    return Imported(out)


def check_refused(folder, done, path, out, codes):
    """One line that names the file, and nothing is left."""
    assert done.returncode in codes, (done.returncode, done.stderr)
    assert done.stderr.count("\n") == 1 and str(path) in done.stderr, done.stderr
    assert not done.stdout and not [file for file in folder.iterdir() if file.name.startswith(out.name)]


def refused(folder, source, code=2):
    """The one line that plumb says about SOURCE; no profile is left."""
    done, (path,), out = run_import(folder, source, name="refused")
    check_refused(folder, done, path, out, {code})
    return done.stderr.strip()


def cut_everywhere(folder, data, step=1):
    """DATA cut at every byte is taken without a word, or refused in one line. Returns the lengths that were taken."""
    data, taken = data.encode() if isinstance(data, str) else data, set()
    for size in range(0, len(data), step):
        done, (path,), out = run_import(folder, data[:size], name="cut")
        if done.returncode:
            check_refused(folder, done, path, out, {2, 3})
        else:
            assert out.exists() and not done.stderr, (size, done.stderr)
            taken.add(size)
    return taken
