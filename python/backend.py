# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel (PEP 517). It needs only Python's standard library.

`make STATIC=1 COLLECT_CC=scripts/zig-cc` builds the binary and the collector. The wheel's platform tag then says
the newest glibc that one of them needs, read from the files.
"""
import base64
import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAME = "plumb_profiler"
TOOLS = ["make", "readelf"]  # what the build starts; the Makefile itself looks for the rest
BINARIES = ["plumb", "libplumb.so", "plumb-counter.so"]
EPOCH = (1980, 1, 1, 0, 0, 0)  # every file's time, so that equal content gives an equal wheel


def version():
    return (ROOT / "VERSION").read_text().strip()


def build_folder():
    return pathlib.Path(os.environ.get("BUILD") or ROOT / "build").resolve() / "wheel"


def build():
    """Runs make. Names the tools that are missing."""
    # pip hides its own modules from the build; the scripts that make calls use pip themselves.
    environment = {key: value for key, value in os.environ.items()
                   if key not in ("PYTHONPATH", "PYTHONNOUSERSITE", "MAKEFLAGS", "MAKELEVEL")}

    def run(*command, output=sys.stderr):
        return subprocess.run(command, cwd=ROOT, env=environment, stdout=output).returncode

    missing = [tool for tool in TOOLS if not shutil.which(tool, path=environment.get("PATH"))]
    if missing:
        raise SystemExit(f"plumb: the build needs {' and '.join(missing)}, which "
                         f"{'is' if len(missing) == 1 else 'are'} not installed; install "
                         f"{'it' if len(missing) == 1 else 'them'} (on Debian and Ubuntu: apt install build-essential) "
                         "and run pip install again")

    command = ["make", "--no-print-directory", f"BUILD={build_folder()}", "STATIC=1"]
    if run("scripts/fetch-zig", output=subprocess.DEVNULL) == 0:
        command.append("COLLECT_CC=scripts/zig-cc")
    else:
        print("plumb: zig is not available, so the collector needs this machine's glibc or a newer one",
              file=sys.stderr)
    if run(*command):
        raise SystemExit("plumb: the build failed; see the lines above")


def glibc(path):
    """The newest glibc minor version that PATH needs."""
    text = subprocess.run(["readelf", "-W", "-V", str(path)], check=True, capture_output=True,
                          text=True).stdout
    return max(int(minor) for minor in re.findall(r"Name: GLIBC_2\.(\d+)", text))


def platform_tag():
    newest = max(glibc(build_folder() / name) for name in BINARIES)
    return f"manylinux_2_{newest}_{platform.machine()}"


def metadata():
    lines = ["Metadata-Version: 2.1", "Name: plumb-profiler", f"Version: {version()}",
             "Summary: From the line of Python to the GPU kernel: where a GPU program's time goes, "
             "and why",
             "License: Apache-2.0", "Requires-Python: >=3.8",
             "Classifier: License :: OSI Approved :: Apache Software License",
             "Classifier: Operating System :: POSIX :: Linux",
             "Classifier: Programming Language :: C",
             "Classifier: Programming Language :: Python :: 3",
             "Classifier: Topic :: Software Development :: Debuggers",
             "Description-Content-Type: text/markdown", ""]
    return "\n".join(lines) + "\n" + (ROOT / "README.md").read_text()


def wheel_file(tag):
    return f"Wheel-Version: 1.0\nGenerator: plumb\nRoot-Is-Purelib: false\nTag: py3-none-{tag}\n"


class Archive:
    """A wheel that is being written. It notes each file for RECORD."""

    def __init__(self, path):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.record = []

    def add(self, name, content, mode=0o644):
        content = content.encode() if isinstance(content, str) else content
        info = zipfile.ZipInfo(name, EPOCH)
        info.external_attr = (0o100000 | mode) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(info, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(content)}")

    def close(self, info):
        name = f"{info}/RECORD"
        self.record.append(f"{name},,\n")
        self.zip.writestr(zipfile.ZipInfo(name, EPOCH), "\n".join(self.record))
        self.zip.close()


def add_metadata(archive, info, tag):
    archive.add(f"{info}/METADATA", metadata())
    archive.add(f"{info}/WHEEL", wheel_file(tag))
    archive.add(f"{info}/entry_points.txt", "[console_scripts]\nplumb = plumb._command:main\n")
    archive.add(f"{info}/LICENSE", (ROOT / "LICENSE").read_text())


# ---- the hooks that pip calls ----

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    build()
    tag = platform_tag()
    info = f"{NAME}-{version()}.dist-info"
    name = f"{NAME}-{version()}-py3-none-{tag}.whl"
    archive = Archive(pathlib.Path(wheel_directory) / name)
    for path in sorted((ROOT / "python" / "plumb").rglob("*")):
        if path.suffix in (".py", ".pyi", ".typed"):
            archive.add(f"plumb/{path.relative_to(ROOT / 'python' / 'plumb')}", path.read_bytes())
    for binary in BINARIES:
        archive.add(f"plumb/_bin/{binary}", (build_folder() / binary).read_bytes(), 0o755)
    add_metadata(archive, info, tag)
    archive.close(info)
    return name


def build_sdist(sdist_directory, config_settings=None):
    """Packs the files that git tracks."""
    base = f"{NAME}-{version()}"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True,
                            text=True).stdout.split("\0")
    with tarfile.open(pathlib.Path(sdist_directory) / f"{base}.tar.gz", "w:gz",
                      format=tarfile.PAX_FORMAT) as archive:
        for name in filter(None, listed):
            archive.add(ROOT / name, f"{base}/{name}", recursive=False)
        info = pathlib.Path(sdist_directory) / "PKG-INFO"
        info.write_text(metadata())
        archive.add(info, f"{base}/PKG-INFO")
        info.unlink()
    return f"{base}.tar.gz"
