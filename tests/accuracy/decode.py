# SPDX-License-Identifier: Apache-2.0
"""Compares plumb's decoder of NVIDIA's machine code with nvdisasm, which NVIDIA has on PyPI.

    python3 tests/accuracy/decode.py [--seconds N] [--most BYTES] [--only sm_90] [--jobs N] [--json FILE] FILE...
    python3 tests/accuracy/decode.py --forms N [--jobs N] [--json FILE] FILE...

A FILE is a cubin, or a program or library with cubins in it. Of each instruction it compares the name of the
operation, the registers and predicates that are read and written (nvdisasm's life ranges), the guard, the target
of a branch, and the control word. Prints what is compared and each kind of disagreement with an example.

With --forms it looks at all instructions of all FILEs, and compares N examples of each form of an instruction (see
forms.c): the examples are put into cubins of their own, one after the other. Branches need their surroundings, so they
are compared without --forms only.
"""
import argparse
import collections
import concurrent.futures
import functools
import itertools
import json
import pathlib
import random
import re
import shutil
import struct
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*/\* 0x([0-9a-f]{16}) \*/")
SECOND = re.compile(r"\s*/\* 0x([0-9a-f]{16}) \*/\s*// \|(.*)$")
MARK = re.compile(r"[v^x]")
FUNCTION = re.compile(r"\.text\.(.+):")
LABEL = re.compile(r"(\.L_x_\d+):")
FILES = {"GPR": "R", "PRED": "P", "UGPR": "U", "UPRED": "Q"}
# nvdisasm's life ranges end there, because URZ had this number before Blackwell.
LAST_UNIFORM = 62
# The linker's names of an operation that are no other operations.
ALIASES = {("IMAD", "IMUL"), ("IADD3", "IADD"), ("UIADD3", "UIADD")}

TEXTURES = {"TEX", "TLD", "TLD4", "TXD"}


def build(folder):
    """The program decode.c, with the library of the tree."""
    program = folder / "decode"
    subprocess.run(["gcc", "-std=gnu17", "-O2", "-D_GNU_SOURCE", f"-I{ROOT}/src", "-o", program,
                    *(ROOT / f"tests/accuracy/{name}.c" for name in ("decode", "forms", "gaps")),
                    *sorted((ROOT / "src/isa").glob("*.c")),
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
        for found in MARK.finditer(part, start):
            if found[0] != "^":
                read.add((file, found.start() - start))
            if found[0] != "v":
                written.add((file, found.start() - start))
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


def first_registers(shown, complete):
    """What life ranges show of textures from Blackwell on: the first register of the second range only. All that is
    SHOWN and is right, with what is left out."""
    left_out = {(file, number) for file, number in complete - shown if (file, number - 1) in complete}
    return shown | left_out


def compare(ours, theirs, labels, architecture=""):
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
    if name in ("LDG", "LDGSTS"):
        written = {one for one in written if one[0] != "P" or one in our_written}
    if name in TEXTURES and int(re.sub(r"\D", "", architecture) or 0) >= 100:
        read, written = first_registers(read, our_read), first_registers(written, our_written)
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
    if not ours[6].replace(" w6", "").startswith(stall + waits):
        kinds.append("control")
    target = re.search(r"`\((\.L_x_\d+)\)", assembly)
    if target and ours[7] and target[1] in labels and int(ours[7], 16) != labels[target[1]]:
        kinds.append("target")
    return kinds


def cubin_of(header, words):
    """A cubin whose only function has the code WORDS. HEADER: the ELF header of any cubin of its architecture."""
    text = b"".join(struct.pack("<QQ", *word) for word in words)
    names = b"\0.shstrtab\0.strtab\0.symtab\0.text.k\0"
    symbols = bytes(24) + struct.pack("<IBBHQQIBBHQQ", 3, 3, 0, 4, 0, len(text), 1, 0x12, 0x10, 4, 0, len(text))
    # Name, type, flags, data, link, info (of code: it may use 255 registers), alignment, size of an entry
    parts = [(b".shstrtab", 3, 0, names, 0, 0, 1, 0), (b".strtab", 3, 0, b"\0k\0.text.k\0", 0, 0, 1, 0),
             (b".symtab", 2, 0, symbols, 2, 2, 8, 24), (b".text.k", 1, 6, text, 3, 255 << 24 | 2, 128, 0)]
    body, rows = bytearray(64), [bytes(64)]
    for name, kind, flags, data, link, info, alignment, size in parts:
        body += bytes(-len(body) % 128)
        rows.append(struct.pack("<IIQQQQIIQQ", names.index(name), kind, flags, 0, len(body), len(data), link, info,
                                alignment, size))
        body += data
    body += bytes(-len(body) % 8)
    start = len(body)
    body += b"".join(rows)
    body[:64] = header
    struct.pack_into("<QQ", body, 32, 0, start)
    struct.pack_into("<HHHHH", body, 54, 0, 0, 64, len(rows), 1)
    return bytes(body)


class Count:
    """What was compared, and how it came out."""

    def __init__(self):
        self.kernels, self.instructions, self.unknown = collections.Counter(), collections.Counter(), 0
        self.kinds, self.examples, self.failed, self.looked_at = collections.Counter(), {}, [], 0

    def add(self, other):
        self.kernels += other.kernels
        self.instructions += other.instructions
        self.unknown += other.unknown
        self.kinds += other.kinds
        self.examples = {**other.examples, **self.examples}
        self.failed += other.failed
        self.looked_at += other.looked_at

    def compare_row(self, architecture, fields, row, labels):
        self.instructions[architecture] += 1
        self.unknown += fields[2] == "unknown"
        for kind in compare(fields, row, labels, architecture):
            name = re.match(r"(?:@!?U?P\w+ +)?(\w*)", row[1])[1]
            self.kinds[f"{kind} of {name}"] += 1
            self.examples.setdefault(f"{kind} of {name}",
                                     f"{architecture} {row[1]} {row[2]:016x} {row[3]:016x}: {fields} {row[4:]}")


def compared(cubin, architecture, program, nvdisasm):
    """The Count of one CUBIN."""
    count = Count()
    count.looked_at = 1
    theirs = subprocess.run([nvdisasm, "-hex", "-c", "-lrm", "narrow", cubin], capture_output=True, text=True,
                            errors="replace", check=False)
    if theirs.returncode:
        count.failed.append(f"{cubin.name}: {theirs.stderr[:300]!r}")
        return count
    ours = decoded(subprocess.run([program, cubin], capture_output=True, text=True, check=True).stdout)
    functions, labels = disassembled(theirs.stdout)
    for name, rows in functions.items():
        if not rows:
            continue
        count.kernels[architecture] += 1
        if len(ours.get(name, [])) < len(rows):
            count.kinds["function"] += 1
            continue
        by_offset = {int(fields[0], 16): fields for fields in ours[name]}
        for row in rows:
            count.compare_row(architecture, by_offset[row[0]], row, labels[name])
    return count


# Instructions of one cubin of examples. nvdisasm takes more than twice as long for twice as many.
EXAMPLES = 2000
EXIT = 0x000000000000794D, 0x000FEA0003800000
SURROUNDED = {"branch", "call", "return", "exit", "reconverge"}


def compared_examples(part, folder, program, nvdisasm):
    """The Count of examples (architecture, header, number, words)."""
    architecture, header, number, words = part
    cubin = folder / f"{number}.cubin"
    cubin.write_bytes(cubin_of(header, [*words, EXIT]))
    count = compared(cubin, architecture, program, nvdisasm)
    cubin.unlink()
    if count.failed and len(words) > 1:  # one that nvdisasm refuses spoils the others
        count = Count()
        for half in words[:len(words) // 2], words[len(words) // 2:]:
            count.add(compared_examples((architecture, header, number, half), folder, program, nvdisasm))
    elif count.failed:
        count.failed = [f"{architecture} {words[0][0]:016x} {words[0][1]:016x} {count.failed[0]}"]
    else:
        count.instructions[architecture] -= 1  # EXIT
    return count


def examples(program, options):
    """Parts of examples, and what is printed of them."""
    headers, words, totals = {}, collections.defaultdict(list), None
    output = run(program, "--forms", str(options.forms), *options.files)
    left_out = 0
    for line in output.splitlines():
        kind, *fields = line.split("\t")
        if kind == "header":
            headers[fields[0]] = fields[1], bytes.fromhex(fields[2])
        elif kind == "form" and (not options.only or headers[fields[0]][0] == options.only):
            words[fields[0]].append((int(fields[1], 16), int(fields[2], 16)))
        elif kind == "total":
            totals = {"instructions of the files": int(fields[0]), "forms": int(fields[1])}
    parts, numbers = [], itertools.count()
    for number, own in words.items():
        architecture, header = headers[number]
        lines = subprocess.run([program, "--words"], capture_output=True, text=True, check=True, input="".join(
            f"{architecture} {low:x} {high:x}\n" for low, high in own)).stdout.splitlines()
        kept = [word for word, line in zip(own, lines) if line.split("\t")[2] not in SURROUNDED]
        left_out += len(own) - len(kept)
        parts += [(architecture, header, next(numbers), kept[i:i + EXAMPLES]) for i in range(0, len(kept), EXAMPLES)]
    random.Random(1).shuffle(parts)
    return parts, {**totals, "branches left out": left_out}


def cubins_of(program, folder, options):
    """(cubin, architecture) of all modules of the files that are not too large."""
    found, too_large = [], 0
    for number, file in enumerate(options.files):
        if file.suffix == ".cubin":
            line = run(program, file).partition("\n")[0].split("\t")
            found.append((file, line[1] if line[0] == "module" else "?"))
            continue
        own = folder / str(number)
        own.mkdir()
        subprocess.run([program, "--extract", file.resolve()], cwd=own, check=False)
        for cubin in sorted(own.glob("*.cubin")):
            architecture = cubin.name.split(".")[-2]
            if options.only and architecture != options.only:
                cubin.unlink()
            elif cubin.stat().st_size > options.most:
                too_large += 1
                cubin.unlink()
            else:
                found.append((cubin, architecture))
    random.Random(options.seed).shuffle(found)
    return found, {"of": len(found), "too large": too_large}


def all_of(jobs, seconds, function, parts):
    """The Count of FUNCTION of each of PARTS, as far as SECONDS are enough."""
    count, started = Count(), time.monotonic()
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        waiting = iter(parts)
        running = {pool.submit(function, part) for part in itertools.islice(waiting, 2 * jobs)}
        while running:
            done, running = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for one in done:
                count.add(one.result())
                if time.monotonic() - started < seconds:
                    running |= {pool.submit(function, part) for part in itertools.islice(waiting, 1)}
    return count


def compared_cubin(part, program, nvdisasm):
    return compared(*part, program, nvdisasm)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--most", type=int, default=2_000_000, help="bytes of a cubin; larger ones are left out")
    parser.add_argument("--only", metavar="ARCHITECTURE", help="compare code of this architecture only")
    parser.add_argument("--seed", type=int, default=1, help="which cubins are drawn, if the time is not enough for all")
    parser.add_argument("--forms", type=int, metavar="N", help="compare N examples of each form instead of cubins")
    parser.add_argument("--jobs", type=int, default=1, help="how many nvdisasm run at the same time")
    parser.add_argument("--nvdisasm", default=shutil.which("nvdisasm") or "nvdisasm")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--record", action="store_true", help="write what nvdisasm says of each cubin beside it")
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    if options.record:
        for file in options.files:
            record(file, options.nvdisasm)
        return
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        program = build(folder)
        if options.forms:
            parts, totals = examples(program, options)
            function = functools.partial(compared_examples, folder=folder, program=program, nvdisasm=options.nvdisasm)
        else:
            parts, totals = cubins_of(program, folder, options)
            function = functools.partial(compared_cubin, program=program, nvdisasm=options.nvdisasm)
        count = all_of(options.jobs, options.seconds, function, parts)
    result = {"cubins": count.looked_at, **totals, "kernels": dict(count.kernels),
              "instructions": dict(count.instructions), "unknown": count.unknown, "disagreements": dict(count.kinds),
              "failed": count.failed, "seconds": round(time.monotonic() - started)}
    print(json.dumps(result, indent=1))
    for kind, example in count.examples.items():
        print(f"{kind}: {example}")
    if options.json:
        options.json.write_text(json.dumps(result))


if __name__ == "__main__":
    main()
