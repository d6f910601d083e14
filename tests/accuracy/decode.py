# SPDX-License-Identifier: Apache-2.0
"""Compares plumb's decoder of NVIDIA's machine code with nvdisasm, which NVIDIA has on PyPI.

    python3 tests/accuracy/decode.py [--seconds N] [--most BYTES] [--json FILE] FILE...

A FILE is a cubin, or a program or library with cubins in it. Of each instruction it compares the name of the
operation, the registers and predicates that are read and written (nvdisasm's life ranges), the guard, the target
of a branch, and the control word. Prints what is compared and each kind of disagreement with an example.
"""
import argparse
import collections
import json
import pathlib
import random
import re
import shutil
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*/\* 0x([0-9a-f]{16}) \*/")
SECOND = re.compile(r"\s*/\* 0x([0-9a-f]{16}) \*/\s*// \|(.*)$")
FUNCTION = re.compile(r"\.text\.(.+):")
LABEL = re.compile(r"(\.L_x_\d+):")
FILES = {"GPR": "R", "PRED": "P", "UGPR": "U", "UPRED": "Q"}
# nvdisasm's life ranges end there, because URZ had this number before Blackwell.
LAST_UNIFORM = 62
# The linker's names of an operation that are no other operations.
ALIASES = {("IMAD", "IMUL"), ("IADD3", "IADD"), ("UIADD3", "UIADD")}


def build(folder):
    """The program decode.c, with the library of the tree."""
    program = folder / "decode"
    subprocess.run(["gcc", "-std=gnu17", "-O2", "-D_GNU_SOURCE", f"-I{ROOT}/src", "-o", program,
                    ROOT / "tests/accuracy/decode.c", *sorted((ROOT / "src/isa").glob("*.c")),
                    *sorted((ROOT / "src/isa/sass").glob("*.c")), ROOT / "src/base/error.c", ROOT / "src/base/map.c",
                    "-ldw", "-lelf", "-lzstd"], check=True)
    return program


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=True).stdout


def record(cubin, nvdisasm):
    """Writes what nvdisasm says of CUBIN beside it, for tests/e2e/test_decode.py."""
    functions, labels = disassembled(run(nvdisasm, "-hex", "-c", "-lrm", "narrow", cubin))
    lines = []
    for name, rows in functions.items():
        lines.append(json.dumps({"function": name, "labels": labels[name]}))
        lines += [json.dumps({"row": [offset, assembly, f"{low:x}", f"{high:x}",
                                      *(sorted(f"{file}{number}" for file, number in part) for part in parts)]})
                  for offset, assembly, low, high, *parts in rows]
    cubin.with_suffix(".jsonl").write_text("\n".join(lines) + "\n")


def ranges(row, heads):
    """Registers that a row of life ranges says are (read, written)."""
    read, written = set(), set()
    for (file, start), part in zip(heads, row.split("|")):
        for number, mark in enumerate(part[start:]):
            if mark in "vx":
                read.add((file, number))
            if mark in "^x":
                written.add((file, number))
    return read, written


def disassembled(text):
    """Of the output of nvdisasm -hex -lrm narrow: {function: [(offset, assembly, low, high, read, written)]} and
    {function: {label: offset}}."""
    functions, labels = {}, {}
    titles, heads, pending, rows, waiting, own = [], [], None, [], [], {}
    for line in text.splitlines():
        found = INSTRUCTION.match(line)
        if found:
            pending = int(found[1], 16), found[2], int(found[3], 16)
            for label in waiting:
                own[label] = pending[0]
            waiting = []
            continue
        found = SECOND.match(line)
        if found and pending:
            rows.append((*pending, int(found[1], 16), *ranges(found[2], heads)))
            pending = None
            continue
        found = LABEL.match(line)
        if found:
            waiting.append(found[1])
        found = FUNCTION.match(line)
        if found:
            rows, own, waiting = [], {}, []
            functions[found[1]], labels[found[1]] = rows, own
        if "// |" in line:
            body = line[line.index("// |") + 4:]
            if "GPR" in body or "PRED" in body:
                titles = [FILES.get(title.strip(), "?") for title in body.split("|")]
            elif re.search(r"# \d", body):
                heads = [(title, part.index("#") + 2) for title, part in zip(titles, body.split("|")) if "#" in part]
    return functions, labels


def decoded(text):
    """{function: [fields of a line]} of decode's output."""
    functions, rows = {}, []
    for line in text.splitlines():
        fields = line.split("\t")
        if fields[0] == "function":
            rows = functions.setdefault(fields[1], [])
        elif len(fields) == 9:
            rows.append(fields)
    return functions


def registers(text):
    return {(part[0], number) for part in text.split() for first, count in [map(int, part[1:].split(":")[:2])]
            for number in range(first, first + count)}


def control(high):
    """The control word as decode prints it."""
    stall, result, sources, mask = high >> 41 & 15, high >> 46 & 7, high >> 49 & 7, high >> 52 & 63
    return (f"{stall}" + (f" w{result}" if result < 6 else "") + (f" r{sources}" if sources < 6 else ""),
            f" {mask:x}<=0" if mask else "")


def seen(numbers):
    """Without what nvdisasm's life ranges do not show."""
    return {(file, number) for file, number in numbers
            if file in "RPUQ" and not (file == "U" and number > LAST_UNIFORM) and not (file in "PQ" and number == 7)}


def compare(ours, theirs, labels):
    """The kinds of disagreement of an instruction."""
    offset, assembly, _, high, read, written = theirs
    assembly = re.sub(r"\s*\(\*.*", "", assembly.rstrip(" ;"))
    found = re.match(r"(?:@(!?)(U?P)(\w+)\s+)?([A-Z0-9_]+)", assembly)
    if int(ours[0], 16) != offset or not found:
        return ["not in step"]
    name = found[4]
    guard = "" if not found[2] else found[1] + {"P": "P", "UP": "Q"}[found[2]] + found[3].replace("T", "7")
    our_read, our_written = seen(registers(ours[5])), seen(registers(ours[4]))
    if guard and not guard.endswith("7"):
        our_read.add((guard.lstrip("!")[0], int(guard[-1])))
    read, written = seen(read), seen(written)
    # What nvdisasm adds or leaves out, on purpose: see docs/accuracy.md.
    if name == "CALL":
        read, written = our_read, our_written
    if name == "P2R":
        our_read = {one for one in our_read if one[0] != "P" or one in read}
    if name == "R2P":
        our_written = {one for one in our_written if one[0] != "P"}
    if name == "LDGSTS":
        written = set()
    stall, waits = control(high)
    kinds = []
    if ours[1] != name and (ours[1], name) not in ALIASES:
        kinds.append("operation " + ours[1] + " is " + name)
    if ours[3] != guard:
        kinds.append("guard")
    if our_read != read:
        kinds.append("reads")
    if our_written != written:
        kinds.append("writes")
    if not ours[6].startswith(stall + waits):
        kinds.append("control")
    target = re.search(r"`\((\.L_x_\d+)\)", assembly)
    if target and ours[7] and target[1] in labels and int(ours[7], 16) != labels[target[1]]:
        kinds.append("target")
    return kinds


class Count:
    def __init__(self):
        self.kernels, self.instructions, self.unknown = collections.Counter(), collections.Counter(), 0
        self.kinds, self.examples, self.failed = collections.Counter(), {}, []

    def add(self, cubin, program, nvdisasm):
        architecture = cubin.name.split(".")[-2] if cubin.name.count(".") > 1 else "?"
        theirs = subprocess.run([nvdisasm, "-hex", "-c", "-lrm", "narrow", cubin], capture_output=True, text=True,
                                errors="replace", check=False)
        if theirs.returncode:
            self.failed.append(f"{cubin.name}: {theirs.stderr[:80]!r}")
            return
        ours = decoded(subprocess.run([program, cubin], capture_output=True, text=True, check=True).stdout)
        functions, labels = disassembled(theirs.stdout)
        for name, rows in functions.items():
            if not rows:
                continue
            self.kernels[architecture] += 1
            if len(ours.get(name, [])) < len(rows):
                self.kinds["function"] += 1
                continue
            by_offset = {int(fields[0], 16): fields for fields in ours[name]}
            for row in rows:
                fields = by_offset[row[0]]
                self.instructions[architecture] += 1
                self.unknown += fields[2] == "unknown"
                for kind in compare(fields, row, labels[name]):
                    self.kinds[kind] += 1
                    self.examples.setdefault(
                        kind, f"{architecture} {row[1]} {row[2]:016x} {row[3]:016x}: {fields} {row[4:]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--most", type=int, default=2_000_000, help="bytes of a cubin")
    parser.add_argument("--nvdisasm", default=shutil.which("nvdisasm") or "nvdisasm")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--record", action="store_true", help="write what nvdisasm says of each cubin beside it")
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    if options.record:
        for file in options.files:
            record(file, options.nvdisasm)
        return
    count, started = Count(), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        program = build(folder)
        cubins = []
        for number, file in enumerate(options.files):
            if file.suffix == ".cubin":
                cubins.append(file)
                continue
            own = folder / str(number)
            own.mkdir()
            subprocess.run([program, "--extract", file.resolve()], cwd=own, check=False)
            cubins += own.glob("*.cubin")
        random.Random(1).shuffle(cubins)
        looked_at = 0
        for cubin in cubins:
            if time.monotonic() - started > options.seconds:
                break
            if cubin.stat().st_size <= options.most:
                count.add(cubin, program, options.nvdisasm)
                looked_at += 1
    result = {"cubins": looked_at, "of": len(cubins), "kernels": dict(count.kernels),
              "instructions": dict(count.instructions), "unknown": count.unknown, "disagreements": dict(count.kinds),
              "failed": count.failed, "seconds": round(time.monotonic() - started)}
    print(json.dumps(result, indent=1))
    for kind, example in count.examples.items():
        print(f"{kind}: {example}")
    if options.json:
        options.json.write_text(json.dumps(result))


if __name__ == "__main__":
    main()
