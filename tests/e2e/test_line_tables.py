# SPDX-License-Identifier: Apache-2.0
"""plumb's reader of Python's line tables, against each interpreter found here."""
import pytest
from conftest import ROOT, run_command
from test_python_walker import compile_c, matrix
from test_waiting import SUPPORTED


@pytest.fixture(scope="module")
def line_tables(tmp_path_factory):
    return compile_c(tmp_path_factory.mktemp("lines") / "lines.so", "-shared", "-fPIC",
                     str(ROOT / "tests/e2e/lines_shim.c"))


COMPARE = r"""
import ctypes, sys, types
ours = ctypes.CDLL(sys.argv[1]).plumb_python_line
ours.restype = ctypes.c_uint32
ours.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int32, ctypes.c_int32]
theirs = ctypes.pythonapi.PyCode_Addr2Line
theirs.argtypes = [ctypes.py_object, ctypes.c_int]
minor, compared = sys.version_info[1], 0
def check(code):
    global compared
    table = code.co_lnotab if minor < 10 else code.co_linetable
    for at in range(0, len(code.co_code), 2):
        want = max(theirs(code, at), 0)
        got = ours(minor, table, len(table), code.co_firstlineno, at)
        assert got == want, (code, at, got, want)
        compared += 1
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            check(part)
import argparse, asyncio.base_events, dataclasses, difflib, inspect, typing
for module in (argparse, asyncio.base_events, dataclasses, difflib, inspect, typing):
    check(compile(open(module.__file__).read(), module.__file__, "exec"))
check(compile("x = [\n" + "\n" * 400 + "f(a,\n\n b)\n for a in y]\n" + "\n" * 40000 + "g()", "long", "exec"))
print(compared)
"""


@pytest.mark.parametrize("python", matrix(SUPPORTED))
def test_line_tables_as_the_interpreter_reads_them(python, line_tables):
    done = run_command(python, "-c", COMPARE, line_tables)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20000
