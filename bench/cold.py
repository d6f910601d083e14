#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a range or a launch costs when plumb's data is not in the caches, without a GPU.

    python3 bench/cold.py [--plumb PATH]… [--kib 0,64,4096] [--rounds N] [--processes N]
    python3 bench/cold.py --count [--plumb PATH]…
    python3 bench/cold.py --program 'step, lean' --python PYTHON

A program on the stand-in driver (make mock) uses the given KiB of its own memory, and as much code (at most
64 KiB), between two events. 86 places take turns. Prints ns more for an event than without plumb: medians.
A range is a push and a pop, each with cold caches. In Python the stack is 30 calls deep.

A step trains a small transformer of PyTorch on the CPU; each tensor that it makes launches a kernel with
cold caches. Prints ns of processor time more for a launch, with all that comes with it: backward, autograd
nodes, ranges.

--count: instructions and cache misses of libplumb.so for one event instead, by valgrind's callgrind with
caches of 32 KiB and 1 MiB. They are the same in each run.
"""
import argparse
import ctypes
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOCK = ROOT / "build/mock/13.0"
PLACES, DEPTH = 86, 30
PROGRAMS = {
    "range": ("c", "range"), "range, plain text": ("c", "text"), "launch": ("c", "launch"),
    "range, in Python": ("python", "range"), "launch, in Python": ("python", "launch"),
    "step, light": ("torch", "light"), "step, lean": ("torch", "lean"),
}
IN_PYTORCH = [name for name, (kind, _) in PROGRAMS.items() if kind == "torch"]


def work(library, kib, rounds, event):
    """In Python: each place is a line of its own."""
    lib = ctypes.PyDLL(library)
    lib.cold_median.restype = ctypes.c_double
    number = lib.cold_number(event.encode())
    lines = "".join(f"    event({number}, {place})\n" for place in range(PLACES))
    source = f"def go0():\n{lines}" + "".join(f"def go{i}():\n    go{i - 1}()\n" for i in range(1, DEPTH))
    space = {"event": lib.cold_event}
    exec(compile(source, "places.py", "exec"), space)
    lib.cold_prepare(kib)
    for i in range(rounds + 2):
        if i == 2:
            lib.cold_median()
        space[f"go{DEPTH - 1}"]()
    print("RESULT", event, lib.cold_median())


def train(library, kib, rounds):
    """In PyTorch: training steps."""
    import torch
    torch.set_num_threads(1)
    torch.manual_seed(1)
    lib = ctypes.PyDLL(library)
    lib.cold_launches.restype = ctypes.c_uint64
    lib.cold_prepare(kib)
    layer = torch.nn.TransformerEncoderLayer(32, 2, 64, dropout=0, batch_first=True, norm_first=True)
    model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, foreach=False)
    data, spent, took = torch.randn(2, 8, 32), ctypes.c_uint64(), []

    def step():
        optimizer.zero_grad()
        model(data).square().mean().backward()
        optimizer.step()

    for i in range(rounds + 2):
        lib.cold_in_torch(i > 0)
        before, done = lib.cold_launches(ctypes.byref(spent)), spent.value
        start = time.thread_time_ns()
        step()
        took.append(time.thread_time_ns() - start)
        launches = lib.cold_launches(ctypes.byref(spent)) - before
        took[-1] = (took[-1] - (spent.value - done)) / (launches or 1)
    lib.cold_in_torch(0)
    print("RESULT step", statistics.median(took[2:]))


def build(folder):
    done = subprocess.run([ROOT / "scripts/fetch-nvtx", "include"], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr.strip())
    for name, flags in {"cold": [], "cold.so": ["-shared", "-fPIC"]}.items():
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-g", *flags, "-o", folder / name,
                        f"-I{ROOT}/tests/mock", "-isystem", done.stdout.strip(), ROOT / "bench/cold.c",
                        f"-L{MOCK}", "-l:libcuda.so.1", f"-Wl,-rpath,{MOCK}", "-ldl"], check=True)


def command_of(options, folder, program, kib, rounds):
    kind, event = PROGRAMS[program]
    if kind == "torch":
        return [options.python, os.path.abspath(__file__), "--train", folder / "cold.so", kib, rounds]
    if kind == "c":
        return [folder / "cold", kib, rounds, event]
    return [sys.executable, os.path.abspath(__file__), "--work", folder / "cold.so", kib, rounds, event]


def run(plumb, program, command, folder, prefix=()):
    command = [*prefix, *command]
    if plumb:
        mode = ["--mode", PROGRAMS[program][1]] if program in IN_PYTORCH else []
        command = [os.path.abspath(plumb), "run", "--quiet", "--force", *mode, "-o", folder / "x.plumb", "--", *command]
    env = {**os.environ, "LD_LIBRARY_PATH": str(MOCK)}
    if program in IN_PYTORCH:
        env["LD_PRELOAD"] = f"{folder}/cold.so:{MOCK}/libcupti.so.13"
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=folder, env=env)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return float(re.search(r"RESULT \S+ (\S+)", done.stdout)[1])


def counts(options, plumb, program, folder, rounds):
    """Of libplumb.so, in ROUNDS rounds: instructions, and lines of code and of data that were not in level 1."""
    output = folder / "callgrind"
    prefix = ["valgrind", "--tool=callgrind", "--cache-sim=yes", "--D1=32768,8,64", "--I1=32768,8,64",
              "--LL=1048576,16,64", "--toggle-collect=event_*", f"--callgrind-out-file={output}"]
    run(plumb, program, command_of(options, folder, program, 1024, rounds), folder, prefix)
    sums, names, inside, of_call = [0] * 9, {}, False, False
    for line in output.read_text().splitlines():
        what, equal, text = line.partition("=")
        if equal and what in ("ob", "cob"):
            number, _, name = text.partition(" ")
            names[number] = name or names[number]
            if what == "ob":
                inside = "libplumb" in names[number]
        elif equal and what == "calls":
            of_call = True
        elif re.match(r"[+*\-\d]", line):
            if inside and not of_call:
                for i, value in enumerate(line.split()[1:]):
                    sums[i] += int(value)
            of_call = False
    output.unlink()
    instructions, _, _, i1, d1_read, d1_write = sums[:6]
    return [instructions, i1, d1_read + d1_write]


def print_counts(options, folder):
    print("| event | build | instructions | lines of code | lines of data |")
    print("|---|---|---|---|---|")
    for program in options.programs:
        for plumb in options.plumb:
            few, many = (counts(options, plumb, program, folder, rounds) for rounds in (4, 14))
            each = [(b - a) / (10 * PLACES) for a, b in zip(few, many)]
            print(f"| {program} | {plumb} |" + "".join(f" {value:.1f} |" for value in each), flush=True)


def print_times(options, folder):
    sizes = [int(word) for word in options.kib.split(",")]
    builds = [None, *options.plumb]
    found = {}
    for _ in range(options.processes):
        for program in options.programs:
            for kib in sizes:
                for plumb in builds:
                    took = run(plumb, program, command_of(options, folder, program, kib, options.rounds), folder)
                    found.setdefault((program, kib, plumb), []).append(took)
    print("| event | build |" + "".join(f" {kib} KiB between, ns |" for kib in sizes))
    print("|---|---|" + "---|" * len(sizes))
    for program in options.programs:
        for plumb in options.plumb:
            more = [statistics.median(found[program, kib, plumb]) - statistics.median(found[program, kib, None])
                    for kib in sizes]
            print(f"| {program} | {plumb} |" + "".join(f" {value:.0f} |" for value in more))


def main():
    if sys.argv[1:2] == ["--work"]:
        library, kib, rounds, event = sys.argv[2:]
        return work(library, int(kib), int(rounds), event)
    if sys.argv[1:2] == ["--train"]:
        return train(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--plumb", action="append")
    parser.add_argument("--kib", default="0,64,4096")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--count", action="store_true")
    parser.add_argument("--program", dest="programs", action="append", choices=PROGRAMS)
    parser.add_argument("--python", default=sys.executable, help="with PyTorch, for steps")
    options = parser.parse_args()
    if options.count and set(options.programs or []) & set(IN_PYTORCH):
        parser.error("--count is not for steps: valgrind would need minutes to import PyTorch")
    options.plumb = options.plumb or [str(ROOT / "build/plumb")]
    options.programs = options.programs or [name for name in PROGRAMS if name not in IN_PYTORCH]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        build(folder)
        (print_counts if options.count else print_times)(options, folder)


if __name__ == "__main__":
    main()
