# SPDX-License-Identifier: Apache-2.0
"""The latencies that NVIDIA's compiler assumes, beside those of plumb's decoder.

    python3 tests/accuracy/latencies.py [--least N] FILE...

A FILE is a cubin, or a program or library with cubins in it. An instruction of a fixed latency has no signal for its
result, so the compiler puts enough cycles between it and what reads the result. For each architecture and unit it
prints the fewest cycles between two dependent instructions, if at least N pairs of instructions have so few: from a
unit to itself, to other units and to a guard. Prints each operation for which the decoder says something else, and each
whose instructions have no signal although the decoder says that its latency varies.
"""
import argparse
import collections
import pathlib
import subprocess
import tempfile

import decode


def measured(lines, least):
    """{(architecture, unit, file): {reader: (cycles, pairs, operation)}} and what the decoder says otherwise."""
    fewest, otherwise = collections.defaultdict(dict), []
    for line in lines:
        kind, architecture, operation, *fields = line.split("\t")
        if kind != "gap":
            continue
        unit, file, reader = fields[:3]
        cycles, pairs, at, said = map(int, fields[3:])
        if at < least:
            continue
        own = fewest[architecture, operation if unit == "tensor" else unit, file]
        if reader not in own or cycles < own[reader][0]:
            own[reader] = cycles, pairs, operation
        if reader == unit and file in ("R", "UR") and said and said != cycles:
            otherwise.append(f"{architecture} {operation}: {cycles} between {pairs} pairs ({at} have so few), decoder: "
                             f"{said}")
    return fewest, otherwise


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--least", type=int, default=20, help="pairs that have the fewest cycles")
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = decode.build(pathlib.Path(folder))
        output = subprocess.run([program, "--gaps", *options.files], capture_output=True, text=True, check=True).stdout
    fewest, otherwise = measured(output.splitlines(), options.least)
    print("| architecture | unit | to | cycles: to itself | to others |\n|---|---|---|---|---|")
    for (architecture, unit, file), own in sorted(fewest.items()):
        name = unit.partition(" ")[0] if file != "P" else unit
        itself = [cycles for reader, (cycles, *_) in own.items() if reader in (name, "tensor")]
        others = ", ".join(f"{reader} {cycles}" for reader, (cycles, *_) in sorted(own.items())
                           if reader not in (name, "tensor"))
        print(f"| {architecture} | {unit} | {file} | {min(itself, default='')} | {others} |")
    for line in otherwise:
        print(line)


if __name__ == "__main__":
    main()
