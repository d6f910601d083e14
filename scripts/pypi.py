# SPDX-License-Identifier: Apache-2.0
"""Gets wheels from PyPI, pinned by hash, and unpacks them into a cache outside the build folder.

The table PINS has all of them. `unpack` is quick if the wheel is there already. Several builds may call it at
once, because a folder appears whole or not at all.
"""
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile

PINS = {
    "cuda/13.0": [
        ("nvidia-cuda-cupti", "13.0.85",
         "4eb01c08e859bf924d222250d2e8f8b8ff6d3db4721288cf35d14252a4d933c8"),
        ("nvidia-cuda-runtime", "13.0.96",
         "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548"),
    ],
    "cuda/12.8": [
        ("nvidia-cuda-cupti-cu12", "12.8.90",
         "ea0cb07ebda26bb9b29ba82cda34849e73c166c18162d3913575b0c9db9a6182"),
        ("nvidia-cuda-runtime-cu12", "12.8.90",
         "adade8dcbd0edf427b7204d480d6066d33902cab2a4707dcfc48a2d0fd44ab90"),
    ],
    "cuda/12.1": [
        ("nvidia-cuda-cupti-cu12", "12.1.105",
         "e54fde3983165c624cb79254ae9818a456eb6e87a7fd4d56a2352c24ee542d7e"),
        ("nvidia-cuda-runtime-cu12", "12.1.105",
         "6e258468ddf5796e25f1dc591a31029fa317d97a0a94ed93468fc86301d61e40"),
    ],
    "cuda/11.8": [
        ("nvidia-cuda-cupti-cu11", "11.8.87",
         "4191a17913a706b5098681280cd089cd7d8d3df209a6f5cb79384974a96d24f2"),
        ("nvidia-cuda-runtime-cu11", "11.8.89",
         "92d04069a987e1fbc9213f8376d265df0f7bb42617d44f5eda1f496acea7f2d1"),
    ],
    "nvtx/include": [
        ("nvidia-nvtx", "13.5.25",
         "f72f21bd338c531afb3f802d03c569e9f7c324739ac332c672a431734d0b5c41"),
    ],
    "nvtx/python3.11": [
        ("nvtx", "0.2.17",
         "80fcb6fa62756ab012ddbe2d514757da060363ce6cd52fdfc840dcfe78b01d29"),
    ],
    "clang-format/x86_64": [
        ("clang-format", "19.1.7",
         "f4906fb463dd2033032978f56962caab268c9428a384126b9400543eb667f11c"),
    ],
    "clang-format/aarch64": [
        ("clang-format", "19.1.7",
         "dac394c83a9233ab6707f66e1cdbd950f8b014b58604142a5b6f7998bf0bcc8c"),
    ],
    "zig/x86_64": [
        ("ziglang", "0.17.0",
         "97079827064a7492cce5541ceb438ae8003ce1e54e399676da2d62fb7a5dc08b"),
    ],
    "zig/aarch64": [
        ("ziglang", "0.17.0",
         "d2804f94f54f7fcf8169f4b212a619ad688a4e2e6592e976f0cf2e58e2cd8af3"),
    ],
}

# CUDA's headers are the same for every processor, so its x86-64 wheels serve all of them.
TAGS = ["manylinux_2_25_{}", "manylinux_2_17_{}", "manylinux2014_{}", "manylinux_2_12_{}",
        "manylinux2010_{}", "manylinux1_{}"]


def cache():
    """The folder that the Makefile calls BUILD_CACHE."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(os.environ.get("BUILD_CACHE") or os.path.join(home, "plumb"))


def download(pin, folder, machine):
    """Downloads the wheels of PIN into FOLDER. Exits with one line if that fails."""
    wanted = folder / "wanted.txt"
    wanted.write_text("".join(f"{name}=={version} --hash=sha256:{digest}\n"
                              for name, version, digest in PINS[pin]))
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
               "--disable-pip-version-check", "--require-hashes", "--only-binary=:all:",
               "--python-version=3.11", "-d", str(folder), "-r", str(wanted)]
    for tag in TAGS:
        command += ["--platform", tag.format(machine)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["pip failed"]
        reason = next((line for line in said if "Could not fetch URL" in line), said[-1])
        names = ", ".join(f"{name} {version}" for name, version, _ in PINS[pin])
        sys.exit(f"plumb: cannot download {names} from PyPI: {reason}")


def unpack(pin, wanted, folder):
    """Unpacks members of PIN's wheels into FOLDER.

    WANTED maps a member's name to its place in FOLDER. None leaves the member out.
    """
    if folder.is_dir():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    machine = pin.split("/")[1] if pin.startswith(("zig/", "clang-format/")) else "x86_64"
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".new-") as scratch:
        scratch = pathlib.Path(scratch)
        download(pin, scratch, machine)
        whole = scratch / "whole"
        for wheel in sorted(scratch.glob("*.whl")):
            with zipfile.ZipFile(wheel) as archive:
                for member in archive.infolist():
                    place = None if member.is_dir() else wanted(member.filename)
                    if place is None:
                        continue
                    target = whole / place
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with archive.open(member) as source, open(target, "wb") as sink:
                        shutil.copyfileobj(source, sink)
                    target.chmod(0o755 if member.external_attr >> 16 & 0o111 else 0o644)
        try:
            whole.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another build was quicker
                raise


def machine():
    """This machine's processor, as in PyPI's tags."""
    return {"arm64": "aarch64", "amd64": "x86_64"}.get(platform.machine(), platform.machine())
