#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_format.py [--write] [ROOT]: checks the C files: clang-format agrees, and no line is longer than 100 columns.

--write formats them first. clang-format comes from PyPI, pinned, and goes into $BUILD_CACHE. The status is 1 if a file
has problems, 2 if clang-format cannot be had.
"""
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import pypi  # noqa: E402

FOLDERS = ["src", "include", "tests", "bench", "examples"]
COLUMNS = 100
TAB = 8
# What may be longer: a string that has no space to break it at, and a URL.
UNBREAKABLE = re.compile(r'^\s*"[^" ]*"[,;)]*$|\w://')
BINARY = "clang_format/data/bin/clang-format"


def sources(root):
    return [path for folder in FOLDERS for path in sorted((root / folder).rglob("*.[ch]")) if path.is_file()]


def clang_format():
    pin = f"clang-format/{pypi.machine()}"
    if pin not in pypi.PINS:
        sys.exit(f"plumb: scripts/pypi.py has no clang-format for {pypi.machine()}; add its wheel there")
    folder = pypi.cache() / f"clang-format-{pypi.PINS[pin][0][1]}"
    pypi.unpack(pin, lambda name: "clang-format" if name == BINARY else None, folder)
    return folder / "clang-format"


def unformatted(program, files):
    """A line for each file that clang-format would change."""
    done = subprocess.run([program, "--dry-run", "-Werror", *files], capture_output=True, text=True)
    found = re.findall(r"^(.+?:\d+):\d+: error: .*$", done.stderr, re.M)
    first = {line.rpartition(":")[0]: line for line in reversed(found)}
    if done.returncode and not first:
        sys.exit(f"plumb: clang-format failed: {done.stderr.strip()}")
    return [f"{line}: not formatted; run make format" for line in sorted(first.values())]


def too_long(path):
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        if len(line.expandtabs(TAB)) > COLUMNS and not UNBREAKABLE.search(line):
            yield f"{path}:{number}: longer than {COLUMNS} columns"


def main(arguments):
    write = "--write" in arguments
    root = next((pathlib.Path(word) for word in arguments if word != "--write"), None)
    files = sources((root or pathlib.Path(__file__).parent.parent).resolve())
    problems = [line for path in files for line in too_long(path)]
    try:
        program = clang_format()
    except SystemExit as reason:
        print("\n".join([*problems, str(reason)]))
        return 1 if problems else 2
    if write:
        subprocess.run([program, "-i", *files], check=True)
        problems = [line for path in files for line in too_long(path)]
    problems += unformatted(program, files)
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
