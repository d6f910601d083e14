#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_arrows.py [SRC]: checks that includes between the folders of src/ point down only.

A folder may include itself, base, and what the table lists. Every other include is an error, printed with
FILE:LINE. A new folder needs a row here.
"""
import pathlib
import re
import sys

MAY_USE = {
    "base": set(),
    "region": set(),
    "model": set(),
    "isa": set(),
    "collect": {"region"},
    "store": {"model"},
    "settle": {"model", "region", "isa"},
    "import": {"model"},
    "analyze": {"model", "isa"},
    "export": {"model", "store"},
    "watch": {"region"},
    "view": {"analyze", "model"},
    "serve": {"view", "store", "model"},
    "cli": {"region", "model", "isa", "collect", "store", "settle", "import", "analyze", "export",
            "watch", "view", "serve"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def problems(src):
    """Yields one line for every include that is not allowed."""
    for path in sorted(src.rglob("*.[ch]")):
        folder = path.relative_to(src).parts[0]
        if folder not in MAY_USE:
            yield f"{path}: the folder {folder}/ has no row in scripts/check_arrows.py"
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = INCLUDE.match(line)
            if not found:
                continue
            name = found.group(1)
            used = name.split("/")[0]
            if "/" not in name or not (src / name).is_file():
                yield f'{path}:{number}: "{name}" is not a path from src/'
            elif used not in MAY_USE[folder] | {folder, "base"}:
                yield f"{path}:{number}: {folder}/ may not use {used}/"


def main(arguments):
    here = pathlib.Path(__file__).resolve().parent.parent
    found = list(problems(pathlib.Path(arguments[0]) if arguments else here / "src"))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
