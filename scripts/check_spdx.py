#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_spdx.py [ROOT]: checks that every source file names its licence in its first three lines."""
import pathlib
import sys

TAG = "SPDX-License-Identifier: Apache-2.0"
SUFFIXES = {".c", ".h", ".S", ".py", ".sh", ".toml", ".ts", ".tsx", ".mjs"}
FOLDERS = ["src", "include", "python", "scripts", "tests", "bench", "examples", "web", "vscode", ".ci"]
DATA = {"corpus", "data", "__pycache__", "node_modules", "dist", "media"}


def sources(root):
    """The files that must have the tag: those with one of the suffixes, and scripts without a suffix (#!)."""
    yield root / "Makefile"
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if not path.is_file() or path.is_symlink() or DATA & set(path.parts):
                continue
            if path.suffix in SUFFIXES:
                yield path
            elif not path.suffix:
                with open(path, "rb") as file:
                    if file.read(2) == b"#!":
                        yield path


def main(arguments):
    root = pathlib.Path(arguments[0] if arguments else __file__).resolve()
    root = root if arguments else root.parent.parent
    bad = [path for path in sources(root)
           if not any(TAG in line for line in path.read_text(errors="replace").splitlines()[:3])]
    for path in bad:
        print(f"{path.relative_to(root)}: no '{TAG}' in its first three lines")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
