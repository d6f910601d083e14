# SPDX-License-Identifier: Apache-2.0
"""What `plumb report` prints for the sample profiles, compared with tests/golden/*.txt.

A case's first line is `$ plumb ARGUMENTS`, its last `exit CODE`; between them stands what goes to
standard output. `python3 tests/e2e/test_golden.py --update-golden` rewrites them all, to be read in the
diff before they are committed. The profiles are written by the unit test program test_report.
"""
import os
import pathlib
import shlex
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("BUILD") or ROOT / "build").resolve()
GOLDEN = ROOT / "tests" / "golden"
SAMPLES = ("gpu", "cpu", "deep", "memory", "trace", "rude", "empty", "windows", "index", "unet", "loss", "loader", "copies",
           "stalled", "traffic")
CASES = sorted(GOLDEN.glob("*.txt"))


def write_samples(folder):
    for name in SAMPLES:
        subprocess.run([BUILD / "unit" / "test_report", name, folder / f"{name}.plumb"],
                       check=True, timeout=60)


def run_case(path, folder):
    """The case's whole text as it should be now."""
    command = path.read_text(encoding="utf-8").splitlines()[0]
    words = shlex.split(command.removeprefix("$ plumb "))
    environment = {"PATH": os.environ["PATH"], "COLUMNS": "120"}
    done = subprocess.run([BUILD / "plumb", *words], cwd=folder, env=environment, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return f"{command}\n{done.stdout.decode()}exit {done.returncode}\n"


@pytest.fixture(scope="session")
def samples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("golden")
    write_samples(folder)
    return folder


def test_there_are_cases():
    assert len(CASES) >= 10


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_golden(path, samples):
    assert run_case(path, samples) == path.read_text(encoding="utf-8")


def update():
    import tempfile
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_samples(folder)
        for path in CASES:
            path.write_text(run_case(path, folder), encoding="utf-8")
    print(f"{len(CASES)} cases rewritten; read the diff")


if __name__ == "__main__":
    if sys.argv[1:] != ["--update-golden"]:
        sys.exit("usage: test_golden.py --update-golden")
    update()
