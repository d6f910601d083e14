# SPDX-License-Identifier: Apache-2.0
"""Helpers for tests that run a program of tests/e2e/programs under plumb and read what it recorded.

    made = recorded(torch_python, "known_tree.py", folder)  # once for each interpreter
    assert made.tree("loops") == {"loops:21 > aten::neg": 3, …}

A program marks lines with a comment `# @name`; `made.expand("loops:@first > aten::neg")` puts the
line numbers in. Trees hold the program's own Python frames only: what lies in a library between two
of them is left out, because it differs from version to version. So are modules; test_modules.py has them.
"""
import collections
import functools
import json
import os
import pathlib
import re
import sqlite3
import subprocess

from conftest import PLUMB, clean_environment, run_command

import plumb as plumb_package
from plumb.reading import ACCUMULATION, BACKWARD

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
LIMIT_S = 300  # a program that takes longer hangs


def lines_of(path):
    """{name: line number} of the `# @name` marks in a source file."""
    found = {}
    for number, line in enumerate(pathlib.Path(path).read_text().splitlines(), 1):
        for name in re.findall(r"# @(\w+)", line):
            assert name not in found, f"{path}: two lines are marked @{name}"
            found[name] = number
    return found


class Made:
    """A finished run under plumb, and its profile."""

    def __init__(self, done, program, folder, path):
        self.done = done
        self.program = program
        self.folder = folder
        self.path = path
        self.lines = lines_of(program)

    @functools.cached_property
    def profile(self):
        assert self.path.exists(), f"no profile; plumb said:\n{self.done.stderr}"
        return plumb_package.Profile(self.path)

    def expand(self, expected):
        """`@name` → line number in every key of a tree, or in one text."""
        def text(key):
            return re.sub(r"@(\w+)", lambda match: str(self.lines[match[1]]), key)
        if isinstance(expected, str):
            return text(expected)
        return {text(key): count for key, count in expected.items()}

    def _mine(self, files):
        known = files or {self.program.name}
        return known if callable(known) else known.__contains__

    def steps(self, node, inside=None, files=None):
        """The steps from the outermost frame of the function INSIDE (default: from the root) down
        to NODE; empty when NODE is not inside. FILES: names of the program's own files (a set, or a
        function of a name), by default the program's."""
        mine, steps, start = self._mine(files), [], 0
        contexts, frames, number = self.profile._contexts, self.profile._frames, node.id
        while number:
            parent, frame, flags = contexts[number][:3]
            kind, name, file, line = frames[frame][:4]
            if kind not in ("python", "module"):
                steps.append(label(kind, name, flags))
            elif kind == "python" and mine(os.path.basename(file or "")):
                function = (name or "?").rpartition(".")[2]
                steps.append(f"{function}:{line}")
                if function == inside:
                    start = len(steps)
            number = parent
        return steps[start - 1::-1] if start else steps[::-1] if inside is None else []

    def tree(self, inside, files=None):
        """{path: calls} of what was observed in calls of the function INSIDE, from its frame on."""
        found = collections.Counter()
        for number, calls in self.calls().items():
            steps = self.steps(self.node(number), inside, files)
            if steps and calls:
                found[" > ".join(steps)] += calls
        return dict(found)

    def node(self, number):
        return plumb_package.Node(self.profile, number)

    def calls(self):
        """{context: observed operator calls}, exclusive."""
        return {context: stat[1] for context, stat in self.profile._stats("op.duration")[0].items()}

    def by_track(self, inside, files=None):
        """{path: sorted calls of each thread} as tree()."""
        database = sqlite3.connect(self.path)
        counts = collections.defaultdict(lambda: collections.defaultdict(int))
        for context, track, count in database.execute(
                "SELECT v.context, v.track, v.count FROM context_values v JOIN metrics m "
                "ON m.id = v.metric WHERE m.name = 'op.duration'"):
            counts[context][track] += count
        database.close()
        found = collections.defaultdict(collections.Counter)
        for number in counts:
            steps = self.steps(self.node(number), inside, files)
            if steps:
                found[" > ".join(steps)].update(counts[number])
        return {path: sorted(tracks.values()) for path, tracks in found.items()}

    def environment_of(self, process):
        """{key: value} of what one process says of itself alone."""
        database = sqlite3.connect(self.path)
        found = dict(database.execute("SELECT key, value FROM environment WHERE process = ?",
                                      (process.id,)))
        database.close()
        return found

    def ledger(self, source):
        """{fate: count} of a source over all processes."""
        found = collections.Counter()
        for row in self.profile.ledger:
            if row.source == source:
                found[row.fate] += row.count
        return dict(found)

    def processes(self):
        """The ledger of processes that plumb can be loaded into: PyTorch may start static programs (ldconfig)."""
        found = self.ledger("process")
        found["received"] -= found.pop("unloadable", 0)
        return found

    def reasons(self, source):
        """{reason: count} of what was not simply received and attributed."""
        found = collections.Counter()
        for row in self.profile.ledger:
            if row.source == source and row.fate not in ("received", "attributed"):
                found[row.reason] += row.count
        return dict(found)


def calls_of_processes(made, name="aten::sin"):
    """{pid: calls of the operator NAME}, only where there are any; an exec'd program adds to its
    process."""
    database = sqlite3.connect(made.path)
    found = collections.Counter()
    for pid, count in database.execute(
            "SELECT p.pid, SUM(v.count) FROM context_values v JOIN metrics m ON m.id = v.metric "
            "JOIN tracks t ON t.id = v.track JOIN processes p ON p.id = t.process "
            "JOIN contexts c ON c.id = v.context JOIN frames f ON f.id = c.frame "
            "WHERE m.name = 'op.duration' AND f.name = ? GROUP BY p.id", (name,)):
        found[pid] += count
    database.close()
    return dict(found)


def label(kind, name, flags):
    """An operator's name; a range's in quotes; work of the backward pass marked."""
    name = f'"{name}"' if kind == "range" else name
    if flags & ACCUMULATION:
        return name + " (accumulation)"
    return name + " (backward)" if flags & BACKWARD else name


def check_sums(made):
    """What the ledger says of operators adds up, and each attributed one is seen in the tree."""
    operators = made.ledger("operator")
    received = operators.pop("received")
    assert received == sum(operators.values()), operators
    if made.reasons("value"):
        return received
    assert sum(made.calls().values()) == operators.get("attributed", 0)
    return received


def run_program(python, program, *arguments, folder, plumb=True, options=(), name="run.plumb",
                environment=None, **more):
    """Runs a program of PROGRAMS (or a path) under plumb; without it when PLUMB is false. The text
    mode of the outputs is off when asked with text=False."""
    program = PROGRAMS / program
    folder = pathlib.Path(folder)
    path = folder / name
    command = [str(word) for word in (python, program, *arguments)]
    if plumb:
        command = [str(PLUMB), "run", "-o", str(path), *map(str, options), "--", *command]
    more.setdefault("timeout", LIMIT_S)
    more.setdefault("text", True)
    more.setdefault("stdin", subprocess.DEVNULL)
    done = subprocess.run(command, cwd=folder, capture_output=True,
                          env=environment_for_programs(**(environment or {})), **more)
    return Made(done, program, folder, path)


def environment_for_programs(**changes):
    """One thread in PyTorch's pools, no cache files, and no library that a test before us chose."""
    return clean_environment(**{"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", **changes})


_recorded = {}


def recorded(python, program, folder, *arguments, **more):
    """As run_program, but a program that ran for PYTHON with these ARGUMENTS is not run again; it
    has to have succeeded. FOLDER: a pytest tmp_path_factory."""
    key = (python, program, arguments)
    if key not in _recorded:
        made = run_program(python, program, *arguments,
                           folder=folder.mktemp(pathlib.Path(program).stem), **more)
        assert made.done.returncode == 0, made.done.stderr
        _recorded[key] = made
    return _recorded[key]


def answer(verb, path, *options):
    """What a verb says of a profile or trace with --json."""
    done = run_command(PLUMB, verb, path, "--json", *options)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return json.loads(done.stdout)


def findings(path, *options):
    """The findings of a profile, the most important first."""
    return answer("report", path, "--findings", *options)["findings"]


def query(path, sql):
    """The rows that SQL has in the file of a profile."""
    database = sqlite3.connect(path)
    rows = database.execute(sql).fetchall()
    database.close()
    return rows


def export(profile, output, *options):
    """Exports without a word, and returns OUTPUT."""
    done = run_command(PLUMB, "export", profile, "-o", output, *options)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return output


def own_lines(stderr):
    """The lines of a `plumb run`'s standard error that the program wrote."""
    lines = stderr.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("plumb: "))
