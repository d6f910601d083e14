# SPDX-License-Identifier: Apache-2.0
"""What no importer may do, whatever the format: a small good file of each (the fuzzers' first inputs) with gigabytes
of nothing behind it, and with other bytes in the middle of it."""
import os
import pathlib
import random
import resource

import pytest
from conftest import PLUMB, ROOT, run_command

CORPUS = ROOT / "tests" / "fuzz" / "corpus"
MEMORY = 1 << 30


def first_good(folder):
    """The largest file of a format's corpus that can be imported as it is, or None."""
    for path in sorted((p for p in folder.iterdir() if p.is_file()), key=lambda p: -p.stat().st_size):
        if run_command(PLUMB, "report", path).returncode == 0:
            return path
    return None


FORMATS = sorted(folder.name for folder in CORPUS.glob("import_*"))


@pytest.fixture(scope="module", params=FORMATS)
def good(request):
    path = first_good(CORPUS / request.param)
    if path is None:
        pytest.skip("no file of its corpus is a whole one")
    return path


def survives(folder, path, codes=(0, 2, 3)):
    """One line at most on standard error, no profile left after a failure, and no more than a GB of memory."""
    out = folder / "out.plumb"
    done = run_command("prlimit", f"--as={4 * MEMORY}", PLUMB, "import", path, "-o", out)
    assert done.returncode in codes, (done.returncode, done.stderr)
    assert len(done.stderr.splitlines()) == (done.returncode != 0), done.stderr
    assert out.exists() == (done.returncode == 0)
    assert not [name for name in os.listdir(folder) if name.startswith("out.plumb") and name != "out.plumb"]
    out.unlink(missing_ok=True)


def test_gigabytes_of_nothing(tmp_path, good):
    """A sparse file: 4 GB of zeros behind a good beginning."""
    path = tmp_path / "sparse"
    path.write_bytes(good.read_bytes())
    os.truncate(path, 4 << 30)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    survives(tmp_path, path)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert peak <= max(before, MEMORY // 1024)


def test_other_bytes(tmp_path, good):
    """Bits turned over, pieces left out, repeated and swapped."""
    whole, chance = good.read_bytes(), random.Random(good.name)
    path = tmp_path / "odd"
    for number in range(60):
        data = bytearray(whole)
        for _ in range(1 + number % 4):
            at, length = chance.randrange(len(data)), chance.randrange(1, 40)
            kind = chance.randrange(4)
            if kind == 0:
                data[at] ^= 1 << chance.randrange(8)
            elif kind == 1 and len(data) > length + 1:
                del data[at: at + length]
            elif kind == 2:
                data[at:at] = data[at: at + length]
            else:
                data[at: at + length] = chance.randbytes(length)
            if not data:
                data = bytearray(b"x")
        path.write_bytes(bytes(data))
        survives(tmp_path, path)


@pytest.mark.parametrize("command", ["report", "export"])
def test_every_verb_takes_a_trace(tmp_path, good, command):
    options = ["--json"] if command == "report" else ["--format", "json"]
    done = run_command(PLUMB, command, good, *options)
    assert done.returncode == 0 and done.stdout.startswith("{"), done.stderr


def test_of_no_name(tmp_path, good):
    """Recognised by what is in it."""
    path = pathlib.Path(tmp_path / "x")
    path.write_bytes(good.read_bytes())
    assert run_command(PLUMB, "report", path).returncode == 0
