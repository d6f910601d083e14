# SPDX-License-Identifier: Apache-2.0
"""Helpers for tests of formats that are SQLite databases: databases made by us, and hostile ones."""
import collections
import concurrent.futures
import gzip
import random
import shutil
import sqlite3

from conftest import PLUMB, run_command

import plumb


def fates(data, source="import"):
    """{detail, or reason, or "received", "attributed": count} of a source of the ledger."""
    found = collections.Counter()
    for row in data["ledger"]:
        if row["source"] == source:
            found["received"] += row["received"] or 0
            found["attributed"] += row["attributed"] or 0
            for fate in row["fates"]:
                found[fate["detail"] or fate["reason"]] += fate["count"]
    return {name: count for name, count in found.items() if count}


UNMATCHED = "the file has no launch for it; outside any call"


def contexts(path):
    """{"kind:name > kind:name": number of spans} of a profile."""
    with sqlite3.connect(path) as database:
        frames = {row[0]: f"{row[1]}:{row[2]}" for row in database.execute("SELECT id, kind, name FROM frames")}
        tree = {row[0]: row[1:] for row in database.execute("SELECT id, parent, frame FROM contexts")}
    found = collections.Counter()
    for span in plumb.Profile(path).spans():
        names, at = [], span.context
        while tree[at][0] is not None:
            names.append(frames[tree[at][1]])
            at = tree[at][0]
        found[" > ".join(reversed(names))] += 1
    return dict(found)


def make(path, tables, page_size=4096, extra=()):
    """A database of TABLES: {name: (columns as SQL, rows)}."""
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as database:
        database.execute(f"PRAGMA page_size = {page_size}")
        for name, (columns, rows) in tables.items():
            database.execute(f'CREATE TABLE "{name}" ({columns})')
            for row in rows:
                database.execute(f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(row))})', row)
        for statement in extra:
            database.execute(statement)
    database.close()
    return path


def changed(source, target, *statements):
    """A copy of SOURCE in which STATEMENTS were executed."""
    shutil.copy(source, target)
    with sqlite3.connect(target) as database:
        for statement in statements:
            database.execute(statement)
    database.close()
    return target


def packed(source, target):
    target.write_bytes(gzip.compress(source.read_bytes()))
    return target


def survives(folder, inputs):
    """Each of INPUTS (bytes) gives a profile, or one line; returns how many gave a profile."""
    def one(numbered):
        number, data = numbered
        own = folder / f"survives-{number}"
        own.mkdir()
        (own / "file").write_bytes(data)
        done = run_command(PLUMB, "import", own / "file", "-o", own / "out.plumb", timeout=60)
        lines = done.stderr.splitlines()
        good = (done.returncode == 0 and not lines and (own / "out.plumb").exists()) or \
               (done.returncode in (2, 3) and len(lines) == 1 and not list(own.glob("out*")))
        result = (good, done.returncode, done.stderr[:300], number)
        shutil.rmtree(own)
        return result
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(one, enumerate(inputs)))
    assert not [result for result in results if not result[0]]
    return sum(result[1] == 0 for result in results)


def truncations(path, step=1):
    data = path.read_bytes()
    return [data[:length] for length in range(0, len(data), step)]


def damages(path, count, seed=5):
    """COUNT copies of a database, each with a few bytes changed."""
    source, chance = path.read_bytes(), random.Random(seed)
    for _ in range(count):
        data = bytearray(source)
        for _ in range(chance.randint(1, 8)):
            data[chance.randrange(16, len(data))] = chance.choice((0, 1, 0x7f, 0x80, 0xff, chance.randrange(256)))
        yield bytes(data)


HOSTILE_SCHEMA = (
    # None of this may be run, and none of it may stop what is sound from being read.
    "CREATE VIEW endless AS WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT * FROM r",
    "CREATE VIEW a AS SELECT * FROM sqlite_master",
    "CREATE TABLE big (start INTEGER, data BLOB)",
    "INSERT INTO big VALUES (1, zeroblob(3000000))",
    "CREATE TABLE computed (start INTEGER, slow AS (hex(zeroblob(1000000))))",
    "CREATE TRIGGER t AFTER INSERT ON big BEGIN INSERT INTO big VALUES (2, NULL); END",
    'CREATE TABLE "quo""te" (start INTEGER)',
    'INSERT INTO "quo""te" VALUES (3)',
    "CREATE VIRTUAL TABLE found USING fts5(start)",
)
