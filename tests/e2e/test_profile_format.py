# SPDX-License-Identifier: Apache-2.0
"""docs/profile-format.md is what a profile file is: names both ways, examples that run, codec."""
import ctypes
import re
import sqlite3
import struct
import subprocess

import pytest
from conftest import BUILD, ROOT

PAGE = (ROOT / "docs" / "profile-format.md").read_text()


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    path = tmp_path_factory.mktemp("format") / "sample.plumb"
    subprocess.run([BUILD / "unit" / "test_store", path], check=True)
    return sqlite3.connect(f"file:{path}?immutable=1", uri=True)


def documented():
    """{table or view: its columns, in order} as the page has them."""
    found = {}
    for section in re.split(r"^### ", PAGE, flags=re.M)[1:]:
        name = section.split("\n", 1)[0].strip()
        body = re.split(r"^## ", section, flags=re.M)[0]
        rows = [line.split("|")[1] for line in body.splitlines() if line.startswith("| `")]
        found[name] = re.findall(r"`(\w+)`", " ".join(rows))
    views = re.split(r"^## ", PAGE, flags=re.M)
    views = next(part for part in views if part.startswith("Views"))
    for line in views.splitlines():
        cells = line.split("|")
        if line.startswith("| `"):
            found[cells[1].strip(" `")] = re.findall(r"`(\w+)`", cells[2])
    return found


def written(database):
    names = [name for name, in database.execute(
        "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'")]
    return {name: [row[1] for row in database.execute(f"PRAGMA table_info({name})")]
            for name in names}


def test_page_and_file_name_the_same(database):
    page, file = documented(), written(database)
    assert set(page) == set(file)
    for name in file:
        # A table's columns stand in its order, a row of the page may hold several.
        assert sorted(page[name]) == sorted(file[name]), name
        assert len(set(page[name])) == len(page[name]), name


def test_header(database):
    assert database.execute("PRAGMA application_id").fetchone() == (0x504C4D42,)
    schema, = database.execute("PRAGMA user_version").fetchone()
    assert re.search(rf"the schema: {schema}\.", PAGE)


def test_words_of_kinds(database):
    row = re.search(r"^\| `kind` \| (`root`.*) \|$", PAGE, flags=re.M).group(1)
    header = (ROOT / "src" / "base" / "words.h").read_text()
    kinds = re.search(r"#define PLUMB_FRAME_KINDS.*?\n\n", header, flags=re.S).group(0)
    assert re.findall(r"`(\w+)`", row) == re.findall(r'"(\w+)"', kinds)


@pytest.mark.parametrize("query", re.findall(r"```sql\n(.*?);\n```", PAGE, flags=re.S))
def test_example_queries_give_rows(database, query):
    assert database.execute(query).fetchall()


def test_examples_give_the_known_numbers(database):
    fib = "SELECT value FROM frame_inclusive WHERE label = 'fib' AND metric = 'gpu.time'"
    assert database.execute(fib).fetchone() == (3000,)
    deepest, = database.execute("SELECT max(depth) FROM contexts").fetchone()
    path = database.execute(
        "SELECT label FROM paths WHERE context = (SELECT id FROM contexts WHERE depth = ?)"
        " ORDER BY position", (deepest,)).fetchall()
    assert [label for label, in path] == [None, "main", "fib", "fib", "fib", "aten::mul",
                                          "gemm(float const*)"]


def test_codec(database):
    """Every chunk unfolds as the page says, here with libzstd alone."""
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_decompress.restype = ctypes.c_size_t

    def unfold(blob, letter, count):
        room = ctypes.create_string_buffer(16 * count)
        size = zstd.ZSTD_decompress(room, ctypes.c_size_t(len(room)), blob,
                                    ctypes.c_size_t(len(blob)))
        assert size == struct.calcsize(f"<{count}{letter}")
        return struct.unpack(f"<{count}{letter}", room[:size])

    spans, trace = [], []
    for track, source, start_ns, end_ns, count, total, codec, context, start, duration, \
            correlation in \
            database.execute("SELECT track, source, start_ns, end_ns, count, total_ns, codec,"
                             " context, start, duration, correlation FROM span_chunks ORDER BY id"):
        assert codec == "zstd"
        assert (correlation is None) == (source == "newest")
        contexts = unfold(context, "I", count)
        durations = unfold(duration, "q", count)
        at, ends = start_ns, []
        links = unfold(correlation, "Q", count) if correlation else [None] * count
        for which, later, long, link in zip(contexts, unfold(start, "q", count), durations, links):
            at += later
            ends.append(at + long)
            if correlation:
                trace.append((at, at + long, track, link))
            else:
                spans.append((at, at + long, track))
            assert database.execute("SELECT 1 FROM contexts WHERE id = ?", (which,)).fetchone()
        assert sum(durations) == total
        assert max(ends) == end_ns
    assert spans == [(2000, 3000, 1), (2500, 2800, 1), (3500, 4500, 1), (5000, 6000, 1),
                     (8300, 9000, 1)]
    assert trace == [(1850, 2000, 0, 0), (1850, 2000, 0, 41), (3350, 3500, 0, 0),
                     (3350, 3500, 0, 42), (4850, 5000, 0, 0), (4850, 5000, 0, 43),
                     (2000, 3000, 1, 41), (3500, 4500, 1, 42), (5000, 6000, 1, 43)]
