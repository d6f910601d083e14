# SPDX-License-Identifier: Apache-2.0
"""What every end-to-end test uses: where things are built, how to run plumb, which Pythons have PyTorch.

- `plumb(*arguments, **options)` runs the built plumb and returns the finished process (text mode).
- `record(*command, **options)` runs `plumb run` on a command in the test's own folder and returns a
  `Recording`: the process, the profile's path, `report()` as JSON, and `rows(by)`.
- `torch_python` is each Python with PyTorch: this one, and those in $PLUMB_TORCH_PYTHONS (a list
  separated by ":"); .ci/run puts the newest wheel's there. `any_torch_python` is the first of them,
  for a test to which the version of PyTorch makes no difference: it only needs operators.
"""
import functools
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("BUILD") or ROOT / "build").resolve()
PLUMB = BUILD / "plumb"
LIBPLUMB = BUILD / "libplumb.so"
TIMEOUT = 300

sys.path.insert(0, str(ROOT / "python"))
# What a shell's job in the background, or nohup, ignores would be inherited by programs. Only the main thread may change
# that, and now and then pytest-xdist runs a worker in another one.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def clean_environment(**changes):
    """This process's environment without what make and plumb themselves put there."""
    drop = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "LD_PRELOAD")
    kept = {key: value for key, value in os.environ.items()
            if key not in drop and not key.startswith("PLUMB_")}
    return {**kept, **changes}


def run_command(*command, env=None, **options):
    """subprocess.run in text mode with output captured, a clean environment and a time limit."""
    options.setdefault("timeout", TIMEOUT)
    options.setdefault("stdin", subprocess.DEVNULL)
    if not {"stdout", "stderr"} & set(options):
        options["capture_output"] = True
    return subprocess.run([str(word) for word in command], text=True, errors="replace",
                          env=clean_environment(**(env or {})), **options)


class Recording:
    """A finished `plumb run`."""

    def __init__(self, done, path):
        self.done = done
        self.path = path
        self.returncode = done.returncode
        self.stdout = done.stdout
        self.stderr = done.stderr

    def report(self, *arguments):
        """`plumb report --json` on the profile, parsed."""
        done = run_command(PLUMB, "report", self.path, "--json", *arguments)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def rows(self, by):
        """Every row of the report BY something, in the report's order."""
        return self.report("--by", by, "--top", "0")["rows"]

    def ledger(self):
        """{(source, reason): row} of the report's ledger."""
        return {(row["source"], row["reason"]): row for row in self.report()["ledger"]}


@pytest.fixture(scope="session", autouse=True)
def built():
    """Every test here needs what `make` builds."""
    for path in (PLUMB, LIBPLUMB):
        if not path.exists():
            pytest.exit(f"{path} is not built: run make first", returncode=2)


@pytest.fixture(scope="session")
def plumb():
    def call(*arguments, **options):
        return run_command(PLUMB, *arguments, **options)
    return call


@pytest.fixture
def record(tmp_path):
    def call(*command, options=(), name="run.plumb", **more):
        path = tmp_path / name
        more.setdefault("cwd", tmp_path)
        done = run_command(PLUMB, "run", "-o", path, *options, "--", *command, **more)
        return Recording(done, path)
    return call


def has_torch(python):
    code = "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"
    try:
        return subprocess.run([python, "-c", code], stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


@functools.cache
def torch_pythons():
    """This Python and those the environment names, as far as they have PyTorch. They are the same objects at each call:
    pytest keeps a fixture only while its parameter is the same object."""
    named = os.environ.get("PLUMB_TORCH_PYTHONS", "").split(":")
    wanted = [sys.executable] + [python for python in named if python]
    return [python for python in dict.fromkeys(wanted) if has_torch(python)]


@functools.cache
def torch_version(python):
    """(major, minor) of the Python's PyTorch, which is not imported: that takes seconds of a processor."""
    code = "from importlib import metadata; print(metadata.version('torch'))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return tuple(map(int, done.stdout.split(".")[:2]))


@pytest.fixture(scope="session")
def any_torch_python():
    return next(iter(torch_pythons()), None) or pytest.skip("no Python here has PyTorch")


def pytest_generate_tests(metafunc):
    if "torch_python" in metafunc.fixturenames:
        pythons = torch_pythons()
        ids = [python.strip("/").replace("/", ".") for python in pythons]
        metafunc.parametrize("torch_python", pythons, ids=ids, scope="session")
