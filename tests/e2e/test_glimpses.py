# SPDX-License-Identifier: Apache-2.0
"""Looks at the stack of a running Python from outside: right, or not at all. A thread that loses its processor in the
middle of a call shows a stack that is half made, for as long as it waits. So these tests have the machine to themselves.
Even then a virtual machine may lose its processor."""
import ast
import collections
import subprocess
import textwrap
import time

import pytest
from conftest import PLUMB, ROOT, clean_environment, run_command
from plumbtest import PROGRAMS
from test_python_walker import compile_c, matrix
from test_waiting import SUPPORTED

RARE = 5000  # one look of so many may have a wrong innermost frame

SOURCES = ["watch/place.c", "watch/foreign.c", "watch/foreign_python.c", "watch/python_lines.c", "watch/tree.c",
           "region/writer.c", "base/map.c", "base/words.c", "base/utf8.c", "base/error.c", "base/procstat.c"]


@pytest.fixture(name="glimpses", scope="module")
def glimpses_fixture(tmp_path_factory):
    return compile_c(tmp_path_factory.mktemp("glimpses") / "glimpses", str(ROOT / "tests/e2e/glimpses.c"),
                     *(str(ROOT / "src" / name) for name in SOURCES))


class Graph:
    """Who calls whom in call_graph.py."""

    def __init__(self, path):
        self.named, self.lines = collections.defaultdict(set), {}
        self.visit(ast.parse(path.read_text()), "<module>")

    def visit(self, node, function):
        for child in ast.iter_child_nodes(node):
            inside = function
            if isinstance(child, ast.FunctionDef):
                inside = child.name
                self.lines[inside] = range(child.lineno, child.end_lineno + 1)
            elif isinstance(child, ast.Name):
                self.named[function, child.lineno].add("__init__" if child.id == "Thing" else child.id)
            self.visit(child, inside)

    def may_call(self, caller, line, callee):
        if caller == "made":  # the text that makes() compiles
            return {2: "other", 3: "leaf"}.get(line) == callee
        if caller == "<string>":
            return (line, callee) == (4, "made")
        return (callee == "<string>" and "exec" in self.named[caller, line]) or callee in self.named[caller, line]

    def wrong(self, path):
        (last, line), pairs = path[-1], zip(path, path[1:])
        wrong = [(a, at, b) for (a, at), (b, _) in pairs if not self.may_call(a, at, b)]
        return wrong + ([path[-1]] if last in self.lines and line not in self.lines[last] else [])


def look_at(glimpses, tmp_path, *program):
    """What glimpses.c prints of a program, which it ends."""
    run = subprocess.Popen(list(map(str, (PLUMB, "run", "-q", "-o", tmp_path / "p.plumb", "--", *program))),
                           env=clean_environment(), cwd=tmp_path)
    try:
        regions, end = [], time.monotonic() + 30
        while not regions and time.monotonic() < end:
            time.sleep(0.1)
            regions = [path for path in tmp_path.glob(".plumb-*/*.region") if "-" in path.stem]
        time.sleep(0.3)
        looked = run_command(glimpses, regions[0], "0.8")
        assert looked.returncode == 0, looked.stderr
    finally:
        run.terminate()
        run.wait()
    return looked


@pytest.mark.parametrize("python", matrix(SUPPORTED))
def test_no_impossible_paths(python, glimpses, tmp_path):
    """Thousands of looks at a program whose stack never rests: each path that is kept is one of its calls. The innermost
    frame may be wrong, but hardly ever."""
    program = PROGRAMS / "call_graph.py"
    looked = look_at(glimpses, tmp_path, python, program, "60")
    graph, looks, deep, wrong = Graph(program), 0, 0, {}
    for line in looked.stdout.splitlines():
        count, *steps = line.split("\t")
        path = [(name.rpartition(".")[2], int(at)) for name, at in (step.rsplit(" ", 1) for step in steps)]
        path = [("<string>" if i and name == "<module>" else name, at) for i, (name, at) in enumerate(path)]
        if graph.wrong(path):
            assert not path[1:] or not graph.wrong(path[:-1]), path
            wrong[line] = int(count)
        looks += int(count)
        deep += int(count) * (len(path) > 3)
    assert looks > 200 and deep > looks / 20, looked.stderr
    assert sum(wrong.values()) <= max(1, looks / RARE), wrong


@pytest.mark.parametrize("python", matrix(SUPPORTED))
def test_generators_have_a_place(python, glimpses, tmp_path):
    """A generator that just gave a value has no caller: such a look sees no stack, and counts for nothing."""
    program = tmp_path / "gives.py"
    program.write_text(textwrap.dedent("""
        import contextlib, ctypes, time
        def values(n):
            for i in range(n): yield i
        @contextlib.contextmanager
        def around(): yield
        def takes():
            for value in values(1000):
                with around(): pass
        end = time.monotonic() + 60
        while time.monotonic() < end: takes()
        """))
    looked = look_at(glimpses, tmp_path, python, program)
    looks = [line.split("\t") for line in looked.stdout.splitlines()]
    outermost = {path[0].rsplit(" ", 1)[0] for _, *path in looks}
    unknown = int(looked.stderr.split(", ")[-1].split()[0])
    assert outermost == {"<module>"}
    # In 3.11 a call from C has a moment without the right frame, and this program makes little else.
    assert unknown < 9 * sum(int(count) for count, *_ in looks), looked.stderr
