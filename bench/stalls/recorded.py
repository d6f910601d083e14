# SPDX-License-Identifier: Apache-2.0
"""Reads what run.py recorded: samples, code and lines of a profile, and plumb's answers about it."""
import bisect
import ctypes
import json
import os
import re
import sqlite3
import subprocess

# Opcodes that the scoring needs, by the low 12 bits. test_stalls_kit.py compares them with cuobjdump.
OPCODES = {0x981: "LDG", 0x983: "LDL", 0x984: "LDS", 0xb82: "LDC", 0x9a8: "ATOMG", 0x986: "STG", 0x387: "STL",
           0x388: "STS", 0xb1d: "BAR", 0x3ba: "UBLKCP", 0x9f0: "HGMMA", 0x9c5: "WARPGROUP", 0x22b: "DFMA",
           0x42b: "DFMA", 0x82b: "DFMA", 0xc2b: "DFMA", 0x992: "MEMBAR", 0x91a: "DEPBAR"}
SIZE = 16
NOT_WAITING = ("selected", "not_selected")


class Function:
    """One function of GPU code of a profile. `samples`: {(offset, reason, issued): count}."""

    def __init__(self, number, name, text, lines):
        self.number, self.name, self.text, self.samples = number, name, text, {}
        self.places = {}
        for offset, file, line in lines:  # innermost first
            self.places.setdefault(offset, []).append((file, line))
        self.starts = sorted(self.places)

    def places_at(self, offset):
        """[(base name of the file, line)]: the innermost code, then the calls that were inlined around it."""
        at = bisect.bisect_right(self.starts, offset) - 1
        return self.places[self.starts[at]] if at >= 0 else []

    def opcode_at(self, offset):
        word = self.text[offset:offset + 2]
        return OPCODES.get(int.from_bytes(word, "little") & 0xfff, "") if len(word) == 2 else ""

    def waiting(self, reasons=()):
        """{offset: samples in which a warp waited there and none was issued}, for REASONS only if there are any."""
        found = {}
        for (offset, reason, issued), count in self.samples.items():
            if not issued and plain(reason) not in NOT_WAITING and (not reasons or plain(reason) in reasons):
                found[offset] = found.get(offset, 0) + count
        return found

    def reasons_at(self, offset):
        found = {}
        for (at, reason, issued), count in self.samples.items():
            if at == offset and not issued and plain(reason) not in NOT_WAITING:
                found[plain(reason)] = found.get(plain(reason), 0) + count
        return found

    def issued_at(self, offset):
        return sum(count for (at, reason, _), count in self.samples.items()
                   if at == offset and plain(reason) == "selected")


def plain(reason):
    """The vendor's word without what it has before and after."""
    word = re.sub(r"^smsp__pcsamp_(warps_issue_stalled_)?", "", reason)
    return re.sub(r"_not_issued$", "", word)


def unpacked(text, size):
    """Machine code as docs/profile-format.md has it: one zstd frame if it is shorter than SIZE."""
    if text is None or len(text) == size:
        return text or b""
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    to = ctypes.create_string_buffer(size)
    got = zstd.ZSTD_decompress(to, ctypes.c_size_t(size), text, ctypes.c_size_t(len(text)))
    return to.raw if got == size else b""


def functions(path):
    """{mangled name: Function} of the profile at PATH."""
    found, by_number = {}, {}
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as base:
        base.text_factory = lambda data: data.decode(errors="replace")
        for number, name, text, size in base.execute("SELECT id, name, text, text_bytes FROM code_functions"):
            lines = [(offset, os.path.basename(file or ""), line) for offset, file, line in base.execute(
                "SELECT offset, file, line FROM code_lines WHERE code_function = ? ORDER BY offset, depth",
                (number,))]
            by_number[number] = found[name] = Function(number, name, unpacked(text, size), lines)
        for number, offset, reason, issued, count in base.execute(
                "SELECT code_function, offset, reason, issued, sum(count) FROM code_samples GROUP BY 1, 2, 3, 4"):
            by_number[number].samples[offset, reason, issued] = count
    return found


def places_of(place):
    """As places_at, of a place in the JSON of `plumb why`."""
    return [(os.path.basename(one.get("file") or ""), one.get("line")) for one in (place, *place.get("inlined", ()))]


def answer(plumb, path, kernel, listing=False):
    """What `plumb why` says about the kernel with the mangled name KERNEL: its object of the JSON; None: nothing."""
    command = [plumb, "why", path, kernel, "--json", "--top", "1000000"] + (["--annotate"] if listing else [])
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"plumb why {os.path.basename(path)} {kernel}: {done.stderr.strip()}", flush=True)
        return None
    kernels = json.loads(done.stdout)["kernels"]
    return next((one for one in kernels if one.get("mangled", one["name"]) == kernel), None)


def lines_of_json(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]
