# SPDX-License-Identifier: Apache-2.0
"""The patches for the Compute Sanitizer are committed as a generated file: it belongs to its sources."""
import hashlib
import os
import pathlib
import shutil
import struct
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "src/collect/gpu/sanitizer"
NVCC = os.environ.get("PLUMB_NVCC") or shutil.which("nvcc")


def test_the_patches_were_made_from_these_sources():
    lines = (FOLDER / "patches.sha256").read_text().splitlines()
    assert len(lines) == 3
    for line in lines:
        digest, name = line.split()
        assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == digest, f"{name}: run scripts/patches.sh"


def test_the_library_has_them():
    patches = (FOLDER / "patches.fatbin").read_bytes()
    assert struct.unpack_from("<I", patches)[0] == 0xba55ed50
    library = pathlib.Path(os.environ.get("BUILD", ROOT / "build")) / "libplumb.so"
    assert patches in library.read_bytes()


@pytest.mark.skipif(not NVCC, reason="nvcc is not installed")
def test_the_way_out_is_short(tmp_path):
    """What is done for an access to the device's own memory: it is paid for every access of every kernel."""
    made = tmp_path / "patches.fatbin"
    subprocess.run([ROOT / "scripts/patches.sh", made], check=True, env=os.environ | {"PLUMB_NVCC": NVCC})
    dump = pathlib.Path(NVCC).parent / "cuobjdump"
    text = subprocess.run([dump, "-sass", "-arch", "sm_90", made], capture_output=True, text=True, check=True).stdout
    function = text.split("plumb_patch_global", 1)[1].split("Function :", 1)[0]
    code = [line for line in function.splitlines() if line.strip().startswith("/*0") and "NOP" not in line]
    before_call = code[:next(i for i, line in enumerate(code) if "CALL" in line)]
    assert len(before_call) <= 32
    assert sum("STL" in line for line in before_call) <= 3  # what is saved for the call
