#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_arrows.py [SRC]: includes between the folders of src/ point down only, and a name has one meaning.

A folder may include itself, base, and what the table lists. Every other include is an error, printed with
FILE:LINE. A new folder needs a row here.

A tag, enumerator, typedef or macro of a header, or one that begins with plumb_, is defined in one file of src/ and
include/. The compiler does not check this: it sees the names of one source at a time. Two headers with the same tag
compile until somebody includes both, and a pointer to such a struct may mean either. Other names of a .c file
are its own, because nothing includes it.
"""
import collections
import pathlib
import re
import sys

MAY_USE = {
    "base": set(),
    "region": set(),
    "model": set(),
    "isa": set(),
    "code": {"model", "isa"},
    "collect": {"region"},
    "count": {"collect", "region"},
    "store": {"model"},
    "settle": {"model", "region", "isa", "code"},
    "import": {"model", "isa", "code"},
    "analyze": {"model", "isa"},
    "export": {"model", "store"},
    "watch": {"region"},
    "view": {"analyze", "model", "isa"},
    "serve": {"view", "analyze", "model"},
    "cli": {"region", "model", "isa", "collect", "store", "settle", "import", "analyze", "export",
            "watch", "view", "serve"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
NO_CODE = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)
TAG = re.compile(r"\b(?:struct|union|enum)\s+(\w+)\s*\{")
ENUM = re.compile(r"\benum(?:\s+\w+)?\s*\{([^{}]*)\}")
ENUMERATOR = re.compile(r"(?:^|,)\s*([A-Za-z_]\w*)\s*(?==|,|$)")
TYPEDEF = re.compile(r"\btypedef\b[^;{}]*(?:\{[^{}]*\}[^;{}]*)?;", re.S)
TYPE_NAME = re.compile(r"\(\s*\*\s*(\w+)\s*\)|(\w+)\s*(?:\[[^\]]*\]\s*)*;$")
DIRECTIVE = re.compile(r"^[ \t]*#(?:.*\\\n)*.*$", re.M)
MACRO = re.compile(r"^[ \t]*#[ \t]*(define|undef)[ \t]+(\w+)", re.M)


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


def names_defined(text):
    """The tags, enumerators, typedefs and macros that TEXT defines. A macro that it undefines again is not one."""
    text = NO_CODE.sub(" ", text)
    macros = collections.defaultdict(set)
    for what, name in MACRO.findall(text):
        macros[what].add(name)
    text = DIRECTIVE.sub("", text)
    names = set(TAG.findall(text)) | macros["define"] - macros["undef"]
    for body in ENUM.findall(text):
        names.update(ENUMERATOR.findall(body.rstrip().rstrip(",")))
    for typedef in TYPEDEF.findall(text):
        names.update(name for found in TYPE_NAME.findall(typedef)[:1] for name in found if name)
    return names


def shared_names(src):
    """Yields one line for every name with several definitions that can meet."""
    files = collections.defaultdict(list)
    for folder in (src, src.parent / "include"):
        for path in sorted(folder.rglob("*.[ch]")):
            for name in names_defined(path.read_text()):
                files[name].append(path)
    for name, paths in sorted(files.items()):
        shared = name.lower().startswith("plumb_") or any(path.suffix == ".h" for path in paths)
        if shared and len(paths) > 1:
            yield f"{paths[-1]}: {name} is defined in {paths[0]} too; rename one of them"


def main(arguments):
    here = pathlib.Path(__file__).resolve().parent.parent
    src = pathlib.Path(arguments[0]) if arguments else here / "src"
    found = [*problems(src), *shared_names(src)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
