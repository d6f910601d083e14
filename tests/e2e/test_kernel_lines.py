# SPDX-License-Identifier: Apache-2.0
"""Where kernels that were written by hand stand, from the line information of their module.
programs/scaled_add.cubin is Triton's (3.9, for compute capability 9.0) of the function scaled_add, whose
"def" stands on line 11 of /home/u/kernels.py; it calls another function of that file.
programs/inlined.cubin is nvcc's of inlined.cu beside it (its first line says how). For GPUs before Hopper, compilers
write another kind of relocations."""
import random
import sqlite3
import struct
import subprocess

import pytest
from conftest import PLUMB, run_command
from plumbtest import PROGRAMS
from regionwriter import Region
from test_mock_gpu import RELEASES, run_profiled

import plumb as plumb_package

CUBIN = PROGRAMS / "scaled_add.cubin"
INLINED = PROGRAMS / "inlined.cubin"
PLACE = ("/home/u/kernels.py", 11)
NAMES = (b".debug_line", b".rela.debug_line", b".symtab", b".strtab")


def places(path):
    """{kernel: (file, line) of its source}."""
    return {name: (file, line) for name, file, line in sqlite3.connect(path).execute(
        "SELECT name, source_file, source_line FROM frames WHERE kind = 'kernel'")}


def sections(image):
    """The four sections that plumb keeps."""
    start, = struct.unpack_from("<Q", image, 40)
    count, table = struct.unpack_from("<HH", image, 60)
    headers = [struct.unpack_from("<IIQQQQIIQQ", image, start + 64 * i) for i in range(count)]
    names = image[headers[table][4]:]
    found = {}
    for header in headers:
        name = names[header[0]:].split(b"\0", 1)[0]
        found[name] = image[header[4]: header[4] + header[5]]
    return [found[name] for name in NAMES]


def settled(folder, *modules, kernels=("scaled_add",)):
    """A settled region with those modules' sections."""
    region = Region(pid=7)
    track = region.thread(7)
    for parts in modules:
        region.add(26, struct.pack("<4I", *map(len, parts)) + b"".join(parts))
    for name in kernels:
        region.value(region.node(0, "kernel", name), track, 10)
    (folder / "a.run").mkdir()
    region.write(folder / "a.run" / "7.region")
    done = run_command(PLUMB, "settle", folder / "a.run", "-o", folder / "a.plumb")
    assert done.returncode == 0, done.stderr
    return folder / "a.plumb"


@pytest.fixture(params=["small libraries", "PyTorch"])
def beside(request, tmp_path):
    """Beside PyTorch, whose own modules are large, the calls that load code tell of it, and not CUPTI."""
    if request.param == "PyTorch":
        path = tmp_path / "libtorch_cpu.so"
        subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", path], check=True)
        return {"LD_PRELOAD": str(path)}
    return None


@pytest.mark.parametrize("release", RELEASES)
def test_module_that_was_loaded(tmp_path, release, beside):
    made = run_profiled(tmp_path, f"module:{CUBIN}", "launch:scaled_add:1000", "launch:other:1000",
                        release=release, env=beside)
    assert made.done.returncode == 0, made.done.stderr
    assert places(made.path) == {"scaled_add": PLACE, "other": (None, None)}
    (row,) = [row for row in plumb_package.Profile(made.path).kernels if row.name == "scaled_add"]
    assert row.exclusive["gpu.time"].sum == 1000


def test_module_for_an_older_gpu(tmp_path, beside):
    made = run_profiled(tmp_path, f"module:{INLINED}", "launch:plain:10", "launch:nested:10", "launch:twice:10",
                        env=beside)
    assert made.done.returncode == 0, made.done.stderr
    source = (PROGRAMS / "inlined.cu").read_text().splitlines()
    assert places(made.path) == {
        name: ("/home/u/inlined.cu", 1 + next(n for n, line in enumerate(source) if f" {name}(" in line))
        for name in ("plain", "nested", "twice")}


def test_images_that_are_none(tmp_path, beside):
    """Whatever the driver hands out, the program goes on; what has no lines leaves nothing."""
    image = CUBIN.read_bytes()
    random.seed(5)
    actions = []
    for number in range(60):
        bad = bytearray(image[: random.randrange(1, len(image))] if number % 2 else image)
        for _ in range(number // 2):
            at = random.randrange(64) if number % 3 else random.randrange(len(bad))
            bad[at % len(bad)] = random.randrange(256)
        path = tmp_path / f"{number}.cubin"
        path.write_bytes(bytes(bad))
        actions.append(f"module:{path}")
    made = run_profiled(tmp_path, *actions, "launch:scaled_add:1000", env=beside)
    assert made.done.returncode == 0, made.done.stderr
    assert set(places(made.path)) == {"scaled_add"}


def test_two_places(tmp_path):
    """Two kernels of one name: which one ran is not known."""
    parts = sections(CUBIN.read_bytes())
    other = [parts[0].replace(b"/home/u", b"/home/v"), *parts[1:]]
    assert places(settled(tmp_path, parts, other)) == {"scaled_add": (None, None)}


@pytest.mark.parametrize("seed", range(30))
def test_damaged_tables(tmp_path, seed):
    random.seed(seed)
    parts = [bytearray(part) for part in sections(CUBIN.read_bytes())]
    for _ in range(seed):
        part = random.choice(parts)
        part[random.randrange(len(part))] = random.randrange(256)
    if seed % 3 == 0:
        parts[seed // 3 % 4] = parts[seed // 3 % 4][: seed * 3]
    assert set(places(settled(tmp_path, parts))) == {"scaled_add"}
