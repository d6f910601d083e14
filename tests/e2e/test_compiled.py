# SPDX-License-Identifier: Apache-2.0
"""Kernels of compiled code know the operators and lines that they come from. On a CPU, where the compiler's
own kernels leave no frame of their own, the library's kernels that it calls do."""
import collections
import gzip
import os
import pathlib
import sqlite3
import subprocess

import pytest
from conftest import torch_version

from plumbtest import PROGRAMS, lines_of

import plumb as plumb_package

PROGRAM = PROGRAMS / "compiled.py"
# Inductor compiles no headers beforehand, and does not try which vector instructions the compiler knows: these tests are
# about the lines of generated code, not about its speed.
QUICK = {"TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0", "TORCHINDUCTOR_VEC_ISA_OK": "0"}
LINES = lines_of(PROGRAM)


@pytest.fixture(scope="session")
def compiler(torch_python):
    """The interpreter, if its PyTorch has torch.compile with Inductor and a compiler to go with it."""
    if torch_version(torch_python) < (2, 6):
        pytest.skip("its PyTorch is older than 2.6")
    if subprocess.run(["g++", "--version"], capture_output=True).returncode:
        pytest.skip("no g++ for Inductor")
    return torch_python


@pytest.fixture(scope="session")
def cache(compiler, tmp_path_factory):
    return tmp_path_factory.mktemp("inductor")


@pytest.fixture
def compiled(compiler, cache, record):
    def call(*arguments, **environment):
        made = record(compiler, PROGRAM, *arguments,
                      env={"TORCHINDUCTOR_CACHE_DIR": str(cache), **QUICK, **environment})
        assert made.returncode == 0, made.stderr
        return made
    return call


def calls(path):
    """{operator that ran: [(operators, lines), …]} of the places in generated code with fused origins."""
    found = collections.defaultdict(list)
    for node in plumb_package.Profile(path).walk():
        fused = [origin for reason, origin in node.origins if reason == "fused"]
        if not fused or node.kind != "python" or not node.children:  # without: only a look met it
            continue
        operators = {origin.name for origin in fused if origin.kind == "operator"}
        lines = set()
        for origin in fused:
            line = origin if origin.kind == "python" else origin.parent
            if line.kind == "python":
                assert os.path.basename(line.file) == PROGRAM.name
                lines.add(line.line)
        for child in node.children:
            found[child.name].append((operators, lines))
    return found


def ledger(made):
    rows = sqlite3.connect(made.path).execute(
        "SELECT fate, coalesce(detail, ''), count FROM ledger WHERE source = 'provenance'")
    return {(fate, detail): count for fate, detail, count in rows}


def test_compiled(compiled, cache):
    # Compiled in this very run: every line is known, of the backward pass too.
    made = compiled()
    found = calls(made.path)
    forward = found["aten::addmm"]
    assert {frozenset(lines) for _, lines in forward} == {
        frozenset({LINES["first"]}), frozenset({LINES["second"]})}
    assert all("aten::addmm" in operators for operators, _ in forward)
    backward = [lines for _, lines in found["aten::mm"]]
    assert backward and all(backward)
    assert set().union(*backward) <= {
        LINES[name] for name in ("first", "between", "second", "sum")}
    assert ledger(made)["attributed", ""] >= len(forward) + len(backward)

    # Reports: the lines that it was compiled from, not those of the generated file.
    rows = {row["line"]: row for row in made.rows("line")
            if row["file"] and os.path.basename(row["file"]) == PROGRAM.name}
    assert {"operator": "aten::addmm", "file": str(PROGRAM), "line": LINES["first"]} in \
        rows[LINES["first"]]["from"]
    generated = [row for row in made.rows("operator")
                 if row["user_file"] and str(cache) in row["user_file"]]
    assert not generated
    assert not list(pathlib.Path(made.path).parent.glob(".plumb-*.run"))

    # From the cache: operators always; lines of the forward pass, and the ledger says why no others.
    again = compiled()
    found = calls(again.path)
    assert {frozenset(lines) for _, lines in found["aten::addmm"]} <= {
        frozenset({LINES["first"]}), frozenset({LINES["second"]}), frozenset()}
    assert all("aten::mm" in operators for operators, _ in found["aten::mm"])
    unknown = {detail for fate, detail in ledger(again) if fate == "no_provenance"}
    assert any("cache" in detail for detail in unknown)


def test_users_trace(compiled, tmp_path):
    """TORCH_TRACE of the user's own is read and left, whatever else lies there; INDUCTOR_PROVENANCE
    gives every call its lines, also when the graphs come from the cache."""
    folder = tmp_path / "trace"
    folder.mkdir()
    compiled(TORCH_TRACE=str(folder), INDUCTOR_PROVENANCE="1")
    logs = list(folder.glob("*.log"))
    assert logs
    text = logs[0].read_bytes()
    for number, cut in enumerate((text[: len(text) // 3], text[: len(text) // 2] + b"\0{[\"",
                                  os.urandom(4096), gzip.compress(text), b"V 1 1 {\"artifact\": [")):
        (folder / f"dedicated_log_torch_trace_{number}.log").write_bytes(cut)
    os.mkfifo(folder / "dedicated_log_torch_trace_fifo.log")
    before = set(os.listdir(folder))
    made = compiled(TORCH_TRACE=str(folder), INDUCTOR_PROVENANCE="1")
    assert before < set(os.listdir(folder))
    assert made.report()["run"]["environment"]["run.torch_trace"] == str(folder)
    found = calls(made.path)
    assert {frozenset(lines) for _, lines in found["aten::addmm"]} == {
        frozenset({LINES["first"]}), frozenset({LINES["second"]})}
    assert all(lines for _, lines in found["aten::mm"])


def test_generated_file_gone(compiled, cache):
    made = compiled(str(cache))
    assert not calls(made.path)
    unknown = {detail for fate, detail in ledger(made) if fate == "no_provenance"}
    assert unknown == {"the file that the compiler generated is gone"}
