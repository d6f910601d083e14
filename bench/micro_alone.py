#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What native frames cost in a program without Python: python3 bench/micro_alone.py [ROUNDS]

A program of C launches kernels on the stand-in driver (make mock). Prints a Markdown table: the thread's
time for one launch, the median of all rounds. In a round all modes take turns.
"""
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MOCK = os.path.join(ROOT, "build/mock/13.0")
MODES = {
    "without plumb": None,
    "`--layers python,module,operator`": ["--layers", "python,module,operator"],
    "default": [],
    "default without the memo": [],
}


def build(folder):
    program = os.path.join(folder, "launches")
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-I" + os.path.join(ROOT, "tests/mock"), "-o", program,
                    os.path.join(ROOT, "bench/micro_alone.c"), "-L" + MOCK, "-l:libcuda.so.1", "-Wl,-rpath," + MOCK],
                   check=True)
    return program


def measure(folder, program, mode, depth):
    options = MODES[mode]
    command = [program, "40000", str(depth)]
    if options is not None:
        command = [os.path.join(ROOT, "build/plumb"), "run", "--quiet", "--force", "-o",
                   os.path.join(folder, "run.plumb"), *options, "--", *command]
    environment = {**os.environ, "LD_LIBRARY_PATH": MOCK}
    if "memo" in mode:
        environment["PLUMB_NATIVE_MEMO"] = "0"
    return float(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 11
    depths = 3, 30
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        program = build(folder)
        for _ in range(rounds):
            for depth in depths:
                for mode in MODES:
                    found.setdefault((mode, depth), []).append(measure(folder, program, mode, depth))
    print("| mode |" + "".join(f" {depth} calls deep |" for depth in depths))
    print("|---|" + "---|" * len(depths))
    for mode in MODES:
        print(f"| {mode} |" + "".join(" %.0f ns |" % statistics.median(found[mode, depth]) for depth in depths))


if __name__ == "__main__":
    main()
