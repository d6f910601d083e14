# SPDX-License-Identifier: Apache-2.0
"""What the tests of importers of JSON share: a trace → its report, and what holds for every damaged file."""
import json
import sqlite3

import pytest
from conftest import PLUMB, ROOT, run_command

TRACES = ROOT / ".." / "shared" / "traces"
if not TRACES.exists():
    TRACES = ROOT.parent.parent / "shared" / "traces"


def shared(name):
    """A published trace, or a skip with a word."""
    if not (TRACES / name).exists():
        pytest.skip(f"{TRACES / name} is not there")
    return TRACES / name


def write(folder, content, name="trace"):
    """A file without an end to its name, so that only what is in it tells what it is."""
    path = folder / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


class Imported:
    def __init__(self, path, profile):
        done = run_command(PLUMB, "import", path, "-o", profile)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        self.path = profile

    def report(self, *options):
        done = run_command(PLUMB, "report", self.path, "--json", "--top", "0", *options)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def query(self, text):
        with sqlite3.connect(self.path) as database:
            return database.execute(text).fetchall()

    def format(self):
        return self.query("SELECT value FROM environment WHERE key = 'import.format'")[0][0]

    def environment(self):
        return dict(self.query("SELECT key, value FROM environment"))

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

    def paths(self):
        """Every context as "kind name > kind name", from the outermost on."""
        frames = dict((number, f"{kind} {name}") for number, kind, name in self.query(
            "SELECT id, kind, name FROM frames"))
        contexts = {number: (parent, frame) for number, parent, frame in self.query(
            "SELECT id, parent, frame FROM contexts")}
        found = set()
        for number in contexts:
            steps, at = [], number
            while at:
                steps.append(frames[contexts[at][1]])
                at = contexts[at][0]
            if steps:
                found.add(" > ".join(reversed(steps)))
        return found


def imported(path, folder, name="out.plumb"):
    return Imported(path, folder / name)


def check_damaged(text, folder, whole=()):
    """Cut off at every byte: a profile or one line of complaint, and never half a profile. WHOLE: lengths at
    which what there is is a file."""
    data = text.encode() if isinstance(text, str) else text
    path, output = folder / "cut", folder / "cut.plumb"
    for length in range(1, len(data)):
        path.write_bytes(data[:length])
        done = run_command(PLUMB, "import", path, "-o", output)
        assert done.returncode in (0, 2, 3), (length, done.returncode, done.stderr)
        assert output.exists() == (done.returncode == 0)
        if done.returncode:
            assert done.stderr.startswith(f"plumb: {path}: ") and done.stderr.count("\n") == 1
        else:
            assert length in whole or not data[length:].strip(), length
            output.unlink()


def check_hostile(events, folder):
    """EVENTS, which are right, with each value replaced by what does not belong there: a profile or one line."""
    strange = [None, True, -1, 2**63, -2**63, 1e300, "", "x", "\ud800", [], {}, [[[]]], {"a": {"b": []}}]

    def places(value, path=()):
        if isinstance(value, dict):
            for key, inner in value.items():
                yield from places(inner, (*path, key))
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                yield from places(inner, (*path, index))
        if path:
            yield path
    output = folder / "strange.plumb"
    for number, path in enumerate(places(events)):
        copy = json.loads(json.dumps(events))
        inner = copy
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = strange[number % len(strange)]
        done = run_command(PLUMB, "import", write(folder, copy, "strange"), "-o", output)
        assert done.returncode in (0, 2, 3), (path, done.stderr)
        assert done.stderr.count("\n") == (done.returncode != 0)
        assert output.exists() == (done.returncode == 0)
        output.unlink(missing_ok=True)
