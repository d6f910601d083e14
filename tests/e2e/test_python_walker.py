# SPDX-License-Identifier: Apache-2.0
"""The walk of Python frames without the GIL, against what each interpreter found here says itself.

PLUMB_TEST_PYTHONS names more interpreters (paths, with ':' between them). Those of pyenv, of PATH and
of the system are found alone.
"""
import glob
import os
import re
import shutil
import subprocess

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
WALKER = os.path.join(HERE, "walker")
SUPPORTED = ["3.9", "3.10", "3.11", "3.12", "3.13", "3.14"]
REFUSED = ["3.8", "3.15"]
CASES = re.findall(r"^@case\ndef (\w+)", open(os.path.join(WALKER, "cases.py")).read(), re.M)
FLAGS = ["-std=gnu17", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE"]
if os.environ.get("PLUMB_TEST_SANITIZE"):
    FLAGS += ["-fsanitize=undefined", "-fno-sanitize-recover"]


def candidates():
    yield from filter(None, os.environ.get("PLUMB_TEST_PYTHONS", "").split(":"))
    for folder in dict.fromkeys(["/usr/bin", "/usr/local/bin"] + os.environ["PATH"].split(":")):
        yield from glob.glob(os.path.join(folder, "python3*"))
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    yield from sorted(glob.glob(os.path.join(root, "versions", "*", "bin", "python3")))


def find():
    """(version, path) of every interpreter, one of each minor version and way of linking."""
    found = {}
    ask = ("import sys, sysconfig as s; print('%d.%d' % sys.version_info[:2], "
           "bool(s.get_config_var('Py_ENABLE_SHARED')), bool(s.get_config_var('Py_GIL_DISABLED')), "
           "sys.implementation.name)")
    for path in candidates():
        if "shims" in path or not re.fullmatch(r"python3(\.\d+t?)?", os.path.basename(path)):
            continue
        try:
            result = subprocess.run([path, "-c", ask], capture_output=True, text=True, timeout=60)
        except OSError:
            continue
        fields = result.stdout.split()
        if result.returncode == 0 and fields[3] == "cpython":
            # Debian's programs are static although their library is shared.
            linked = subprocess.run(["ldd", path], capture_output=True, text=True).stdout
            found.setdefault((fields[0], "libpython" in linked, fields[2]), path)
    return [(v, shared, ft == "True", path) for (v, shared, ft), path in found.items()]


PYTHONS = find()


def matrix(versions, free_threaded=False):
    """Parameters: every interpreter of VERSIONS, a skip with a word for a version that is missing."""
    result = []
    for version in versions:
        paths = [(s, p) for v, s, ft, p in PYTHONS if v == version and ft == free_threaded]
        for shared, path in paths:
            result.append(pytest.param(path, id=version + ("-shared" if shared else "-static")))
        if not paths:
            skip = pytest.mark.skip(reason="no CPython %s here" % version)
            result.append(pytest.param(None, id=version, marks=skip))
    return result


def compile_c(output, *arguments):
    subprocess.run([os.environ.get("CC", "gcc"), *FLAGS, "-I" + os.path.join(ROOT, "src"), "-o", output,
                    *arguments], check=True)
    return str(output)


@pytest.fixture(scope="session")
def shim(tmp_path_factory):
    source = os.path.join(ROOT, "src")
    return compile_c(tmp_path_factory.mktemp("walker") / "shim.so", "-shared", "-fPIC",
                     "-fvisibility=hidden", os.path.join(WALKER, "shim.c"),
                     os.path.join(source, "collect/monitor/python.c"),
                     os.path.join(source, "collect/monitor/python_layout.c"),
                     os.path.join(source, "collect/monitor/python_signal.c"),
                     os.path.join(source, "base/error.c"), "-ldl")


@pytest.fixture(scope="session")
def embed(tmp_path_factory):
    return compile_c(tmp_path_factory.mktemp("embed") / "embed", os.path.join(WALKER, "embed.c"),
                     "-rdynamic", "-ldl")


def run(path, *arguments, **options):
    return subprocess.run([path, *arguments], capture_output=True, text=True, timeout=120, **options)


def run_case(path, shim, name):
    return run(path, os.path.join(WALKER, "cases.py"), shim, name)


@pytest.mark.parametrize("name", [c for c in CASES if c not in ("exits", "finalising")])
@pytest.mark.parametrize("path", matrix(SUPPORTED))
def test_case(path, name, shim):
    result = run_case(path, shim, name)
    assert result.returncode == 0, result.stderr + result.stdout
    assert result.stdout.startswith("ok " + name) and not result.stderr


@pytest.mark.parametrize("path", matrix(SUPPORTED))
def test_nothing_is_read_of_an_interpreter_that_ends(path, shim):
    result = run_case(path, shim, "finalising")
    before, _, after = result.stdout.splitlines()
    assert re.fullmatch(r"ending 0 mark [1-9]\d* frames [1-9]", before), result
    assert after == "ending 1 mark 0 frames 0" and not result.stderr


@pytest.mark.parametrize("path", matrix(SUPPORTED))
def test_daemon_threads_walk_while_the_interpreter_ends(path, shim):
    result = run_case(path, shim, "exits")
    assert result.returncode == 0, (result.returncode, result.stderr)
    assert result.stdout.count("exits") == 51 and not result.stderr


@pytest.mark.parametrize("path", matrix(REFUSED))
def test_unknown_version_is_refused(path, shim):
    result = run_case(path, shim, "attach")
    rc, version, message = result.stdout.strip().split("|")
    assert result.returncode == 0 and int(rc) < 0
    assert message.startswith("CPython %s is not known" % version) and "3.9 to 3.14" in message


@pytest.mark.parametrize("path", matrix(["3.13", "3.14"], free_threaded=True))
def test_free_threaded_build_is_refused(path, shim):
    result = run_case(path, shim, "attach")
    assert int(result.stdout.split("|")[0]) < 0 and "free-threaded" in result.stdout


# What no interpreter at hand shows: a stand-in with one fault.
FAULTS = {
    "free_threaded": (["-DFREE_THREADED=1"], "free-threaded"),
    "cookie": (["-DCOOKIE=0x7a70677562656478"], "does not publish"),
    "other_version": (["-DHEX=0x030e00f0"], "another version"),
    "other_micro": (["-DHEX=0x030d03f0"], "another version"),
    "old": (['-DVERSION="3.8.18 (x)"'], "not known"),
    "future": (['-DVERSION="3.15.0 (x)"'], "not known"),
    "far": (['-DVERSION="4.13.0 (x)"'], "not known"),
    "alpha": (['-DVERSION="3.14.0a5 (x)"'], "not known"),
    "beta": (['-DVERSION="3.13.0b1+ (x)"'], "not known"),
    "no_version": (['-DVERSION="fish"'], "not known"),
    "huge_version": (['-DVERSION="3.99999999999999999999.1"'], "not known"),
    "no_symbol": (["-DNO_LINES"], "does not export PyCode_Addr2Line"),
    "offset_outside": (["-DFRAME_AT=304"], "impossible layout"),
    "offset_huge": (["-DFRAME_AT=0xffffffffffffffff"], "impossible layout"),
    "offset_odd": (["-DFILE_AT=113"], "impossible layout"),
    "file_is_lines": (["-DFILE_AT=136"], "file name is not a str"),
    "code_is_text": (["-DCODE_OF_FRAME=&text"], "not a code object"),
    "code_is_wild": (["-DCODE_OF_FRAME=(void *)0x123456789000"], "not a code object"),
    "code_is_odd": (["-DCODE_OF_FRAME=(char *)&code+4"], "not a code object"),
    "code_is_null": (["-DCODE_OF_FRAME=NULL"], "not a code object"),
    "previous_is_wild": (["-DPREVIOUS_OF_FRAME=(void *)0x123456789000"], "cannot be read"),
    "owner": (["-DOWNER=9"], "unknown owner"),
    "first_line": (["-DFIRST_LINE=8"], "first line"),
}


def attach_to_fake(embed, shim, folder, flags):
    library = compile_c(folder / "libpython3.13-fake.so", "-shared", "-fPIC", *flags,
                        os.path.join(WALKER, "fake.c"))
    result = run(embed, shim, library)
    assert result.returncode == 0, result
    lines = result.stdout.splitlines()
    assert lines[0] == "before|1|"
    return lines[1:]


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_refused(fault, embed, shim, tmp_path):
    flags, words = FAULTS[fault]
    (line,) = attach_to_fake(embed, shim, tmp_path, flags)
    when, rc, message = line.split("|")
    assert when == "loaded" and int(rc) < 0
    assert words in message and "see Python lines" in message and "\n" not in message


def test_without_a_fault_it_is_taken(embed, shim, tmp_path):
    assert attach_to_fake(embed, shim, tmp_path, []) == ["loaded|0|", "frame|9|name|name"]


def test_frames_that_go_in_a_ring_end(embed, shim, tmp_path):
    got = attach_to_fake(embed, shim, tmp_path, ["-DPREVIOUS_OF_FRAME=&frame"])
    assert got == ["loaded|0|", "frame|9|name|name"]


def test_only_internal_frames_is_no_python_yet(embed, shim, tmp_path):
    assert attach_to_fake(embed, shim, tmp_path, ["-DOWNER=3"]) == ["loaded|1|"]


@pytest.mark.parametrize("path", matrix(SUPPORTED))
def test_private_libpython(path, embed, shim):
    """A program that loads libpython with RTLD_LOCAL, before and after the interpreter starts."""
    ask = ("import sysconfig as s, os, sys; "
           "print(os.path.join(s.get_config_var('LIBDIR') or '', s.get_config_var('INSTSONAME') or '')); "
           "print(s.get_config_var('LIBDIR') + '/' + (s.get_config_var('MULTIARCH') or '') + '/' + "
           "s.get_config_var('INSTSONAME')); print(sys.prefix)")
    *libraries, prefix = run(path, "-c", ask).stdout.splitlines()
    library = next((l for l in libraries if ".so" in l and os.path.exists(l)), None)
    if not library:
        pytest.skip("no shared libpython for this interpreter")
    source = "def f():\n\n    show()\nf()\n"
    result = run(embed, shim, library, source, env=dict(os.environ, PYTHONHOME=prefix))
    if "GLIBC" in result.stderr:
        pytest.skip("its libpython needs another libc")
    lines = result.stdout.splitlines()
    assert result.returncode == 0, result.stderr
    assert lines == ["before|1|", "loaded|1|", "started|1|", "inside|0|", "frame|3|f|<string>", "ended|0"]


def test_asks_nothing_but_a_little_libc(tmp_path):
    """No lock, no heap, no Python symbol: the linker's view of the two files."""
    allowed = {"memcpy", "memcmp", "snprintf", "strcmp", "syscall", "__errno_location", "dlopen",
               "dlclose", "dladdr", "pthread_self",
               "_GLOBAL_OFFSET_TABLE_", "__stack_chk_fail"}
    for name in ("python", "python_layout"):
        output = str(tmp_path / (name + ".o"))
        subprocess.run([os.environ.get("CC", "gcc"), *FLAGS[:3], "-D_GNU_SOURCE", "-fPIC", "-c", "-o", output,
                        "-I" + os.path.join(ROOT, "src"),
                        os.path.join(ROOT, "src/collect/monitor", name + ".c")], check=True)
        symbols = subprocess.run(["nm", "--undefined-only", output], capture_output=True, text=True).stdout
        needed = {line.split()[-1] for line in symbols.splitlines()}
        assert {s for s in needed if not s.startswith("plumb_")} <= allowed


def test_pythons_found():
    """One at least: a machine with none would pass everything by skipping."""
    assert any(v in SUPPORTED for v, _, _, _ in PYTHONS), shutil.which("python3")
