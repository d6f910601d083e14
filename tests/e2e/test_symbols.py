# SPDX-License-Identifier: Apache-2.0
"""Names of native frames: regions written here name places in programs compiled here, and what settle
makes of each place must be what addr2line says of it: function, inlined calls, file and line."""
import ctypes.util
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import time

import pytest
from conftest import PLUMB, run_command
from regionwriter import SECOND, Region

import plumb as plumb_package

SOURCES = pathlib.Path(__file__).resolve().parent / "native"
COMPILER = os.environ.get("CXX", "g++")

pytestmark = pytest.mark.skipif(not all(map(shutil.which, [COMPILER, "addr2line", "objdump", "nm"])),
                                reason="needs g++ and binutils")


def do(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True,
                          **options).stdout


def compiled(folder, *options, name="program", source="inlines.cpp"):
    path = folder / name
    do(COMPILER, "-O2", *options, "-o", path, SOURCES / source)
    return path


def build_id(path):
    found = re.search(r"Build ID: ([0-9a-f]+)", do("readelf", "-n", path))
    return bytes.fromhex(found[1]) if found else b""


def text_addresses(path):
    """The address of every instruction of the program's own functions."""
    listing = do("objdump", "-d", "-j", ".text", "--no-show-raw-insn", path)
    return [int(found[1], 16) for found in re.finditer(r"^ +([0-9a-f]+):\t", listing, re.M)]


def functions(path):
    """{mangled name: (address, size)} of what nm knows."""
    found = re.findall(r"^([0-9a-f]+) ([0-9a-f]+) [tTwWi] (.+)$", do("nm", "-S", path), re.M)
    return {name: (int(address, 16), int(size, 16)) for address, size, name in found}


def addr2line(path, addresses):
    """{address: [(function, file, line), …]}, innermost first."""
    given = "\n".join(hex(address) for address in addresses)
    found, current = {}, None
    lines = iter(do("addr2line", "-a", "-f", "-i", "-C", "-e", path, input=given).splitlines())
    for line in lines:
        if re.fullmatch(r"0x[0-9a-f]+", line):
            current = found.setdefault(int(line, 16), [])
            continue
        file, _, number = re.sub(r" \(discriminator \d+\)", "", next(lines)).rpartition(":")
        current.append((line, None if file == "??" else os.path.normpath(file),
                        int(number) if number.isdigit() and number != "0" else None))
    return found


class Settled:
    """A region with one native node for each (code, address), each below a Python frame named after the
    address, settled."""

    def __init__(self, folder, places, environment=None, region=None):
        self.folder = folder
        runs = folder / "regions"
        runs.mkdir(exist_ok=True)
        region = region or Region()
        thread = region.thread(1)
        codes = {}
        for number, (path, identity, address) in enumerate(places):
            if (path, identity) not in codes:
                codes[path, identity] = region.code(path, identity)
            top = region.node(0, "python", f"site {number}", file="test.py", number=1)
            region.value(region.native(top, codes[path, identity], address), thread, 10)
        region.write(runs / "1.region")
        self.path = folder / "settled.plumb"
        self.done = run_command(PLUMB, "settle", runs, "-o", self.path, env=environment)
        assert self.done.returncode == 0, self.done.stderr
        self.profile = plumb_package.Profile(self.path)
        self.tops = {node.name: node for node in self.profile.children}

    def frames(self, number):
        """The nodes of place NUMBER, innermost first."""
        (node,) = self.tops[f"site {number}"].children
        found = [node]
        while node.children:
            (node,) = node.children
            found.insert(0, node)
        assert [n for n in found if "op.duration" in n.exclusive] == found[:1]
        return found

    def ledger(self):
        """{fate: {detail: count}} of native frames."""
        found = {}
        for row in self.profile.ledger:
            if row.source == "symbol":
                found.setdefault(row.fate, {})[row.detail] = row.count
        return found


def same(path, addresses, folder, lines=True, code=None):
    """Settles ADDRESSES and compares them with addr2line on PATH; the code object is CODE or PATH."""
    code = code or path
    settled = Settled(folder, [(code, build_id(code), address) for address in addresses])
    truth = addr2line(path, addresses)
    symbols = functions(path)
    wrong = []
    for number, address in enumerate(addresses):
        nodes = settled.frames(number)
        own = [(node.name, node.source_file and os.path.normpath(node.source_file),
                node.source_line) for node in nodes]
        if own != truth[address]:
            wrong.append((hex(address), own, truth[address]))
        assert [node.kind for node in nodes] == ["inline"] * (len(nodes) - 1) + ["native"]
        assert nodes[-1].file == build_id(code).hex()
        start, size = symbols[nodes[-1].symbol]
        assert start <= address < start + size and (nodes[-1].line or 0) == address - start
    assert not wrong, f"{len(wrong)} of {len(addresses)}: {wrong[:3]}"
    assert settled.ledger() == {"received": {None: len(addresses)},
                                "attributed": {None: len(addresses)}}
    return settled


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("program"), "-g")


def own_addresses(path):
    """Instructions of the functions that were compiled here, not of the C runtime's."""
    wanted = [(start, start + size) for name, (start, size) in functions(path).items()
              if re.search("shapes|lambda|plain_c|main", name) and size]
    return [address for address in text_addresses(path)
            if any(start <= address < end for start, end in wanted)]


def test_every_instruction_as_addr2line(program, tmp_path):
    addresses = own_addresses(program)
    assert len(addresses) > 100
    settled = same(program, addresses, tmp_path)
    names = {node.name for node in settled.profile.of_kind("inline")}
    assert {"shapes::Area::size() const", "shapes::Area::scaled(double)"} <= names
    (row,) = settled.profile.code_objects
    assert (row.kind, row.path, row.build_id, row.bytes) == (
        "elf", str(program), build_id(program).hex(), program.stat().st_size)
