#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_wheel.py WHEEL: checks that a wheel of plumb has all it needs, for the glibc in its name.

The binary may need only glibc. The collector and the counter must pass check_collector.py for glibc 2.28. Both must be
executable. Nothing may need a newer glibc than the tag says. The script prints each rule that is broken, and
fails.
"""
import pathlib
import re
import sys
import tempfile
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_collector  # noqa: E402

GLIBC = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2",
         "ld-linux-aarch64.so.1"}
OLDEST = (2, 34)  # what the wheel must run on; README says it, too
WANTED = ["plumb/__init__.py", "plumb/_command.py", "plumb/_bin/plumb", "plumb/_bin/libplumb.so",
          "plumb/_bin/plumb-counter.so"]


def problems(wheel):
    """Yields one line for every rule that WHEEL breaks."""
    tag = re.search(r"-py3-none-manylinux_(\d+)_(\d+)_\w+\.whl$", wheel.name)
    if not tag:
        yield "its name is not that of a manylinux wheel for every Python 3"
        return
    named = tuple(map(int, tag.groups()))
    if named > OLDEST:
        yield "needs glibc {}.{}; build it on a system with an older glibc, so that it runs on {}.{}".format(
            *named, *OLDEST)
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        for name in WANTED:
            if name not in archive.namelist():
                yield f"lacks {name}"
                return
        for name in WANTED[2:]:
            if not archive.getinfo(name).external_attr >> 16 & 0o111:
                yield f"{name} is not executable"
            path = archive.extract(name, folder)
            if check_collector.newest_glibc(path) > named:
                yield f"{name} needs a newer glibc than the wheel's name says"
        binary, *preloaded = (pathlib.Path(folder, name) for name in WANTED[2:])
        for library in check_collector.needed(binary):
            if library not in GLIBC:
                yield f"{WANTED[2]} needs the library {library}"
        for library in preloaded:
            for line in check_collector.problems(library, (2, 28)):
                yield f"{library.relative_to(folder)} {line}"


def main(arguments):
    if len(arguments) != 1:
        sys.exit("usage: check_wheel.py WHEEL")
    found = list(problems(pathlib.Path(arguments[0])))
    for line in found:
        print(f"{arguments[0]}: {line}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
