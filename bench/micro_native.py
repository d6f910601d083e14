#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cost of a walk of the native stack: python3 bench/micro_native.py [INTERPRETER_WITH_PYTORCH...]

Prints a Markdown table: ns for a warm walk by plumb's tables and by libgcc's _Unwind_Backtrace on the
same stack, and for the first walk of it. A stack 30 deep in this process, least of many; then every
stack on which PyTorch allocates a tensor in a small training loop, means over all of them.

Then a second table: on those stacks, what the context of the innermost 30 calls costs in a program that
uses its caches for other things (so many KiB written in between), by a walk and look-ups and by the memo.
"""
import ctypes
import glob
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FIELDS = ("plumb", "libgcc", "cold", "sites", "differences", "stacks")
BETWEEN = 0, 256, 1024, 4096
LOOP = """
import torch
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.LayerNorm(64), torch.nn.GELU(), torch.nn.Linear(64, 8))
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(60):
    optimizer.zero_grad()
    model(torch.randn(16, 64)).softmax(-1).var().backward()
    optimizer.step()
"""


class Result(ctypes.Structure):
    _fields_ = [("ns", ctypes.c_double * 2)] + [(name, ctypes.c_double) for name in FIELDS[2:]]


def build(output):
    source = os.path.join(ROOT, "src")
    subprocess.run([os.environ.get("CC", "cc"), "-std=gnu17", "-O2", "-D_GNU_SOURCE", "-I" + source, "-shared",
                    "-fPIC", "-fvisibility=hidden", "-o", output,
                    os.path.join(ROOT, "bench/micro_native.c"), os.path.join(source, "collect/table.c"),
                    os.path.join(source, "collect/native_memo.c"),
                    *glob.glob(os.path.join(source, "collect/stack/*.c")), "-ldl"], check=True)


def row(name, plumb, libgcc, cold, sites, differences, stacks):
    assert stacks and not differences, (stacks, differences)
    print("| %s | %.0f | %.1f | %.0f | %.0f | %.1f | %.0f |" % (
        name, stacks, sites / stacks, plumb / stacks, libgcc / stacks, libgcc / plumb, cold / stacks), flush=True)


def alone(library):
    library.bench_native.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.POINTER(Result)]
    best = None
    for _ in range(200):
        got = Result()
        library.bench_native(40, 30, ctypes.byref(got))
        if best is None or got.ns[0] < best.ns[0]:
            first = best.cold if best else got.cold
            best = got
            best.cold = first
    row("30 deep", best.ns[0], best.ns[1], best.cold, best.sites, best.differences, best.stacks)


def inside(interpreter, library, numbers, **environment):
    """What LOOP left in the file NUMBERS with LIBRARY preloaded."""
    subprocess.run([interpreter, "-c", LOOP], check=True,
                   env={**os.environ, "LD_PRELOAD": library, "NATIVE_OUT": numbers, **environment})
    return [float(number) for number in open(numbers).read().split()]


def version_of(interpreter):
    return subprocess.run([interpreter, "-c", "import torch; print(torch.__version__)"],
                          capture_output=True, text=True, check=True).stdout.strip()


def main():
    with tempfile.TemporaryDirectory() as folder:
        output, numbers = os.path.join(folder, "micro_native.so"), os.path.join(folder, "numbers")
        build(output)
        print("| stacks | number | sites | plumb, ns | libgcc, ns | ratio | plumb, first walk, ns |")
        print("|---|---|---|---|---|---|---|", flush=True)
        alone(ctypes.CDLL(output))
        for interpreter in sys.argv[1:]:
            row("PyTorch " + version_of(interpreter), *inside(interpreter, output, numbers))
        print("\n| 30 calls, PyTorch | KiB between | paths | known before | walk and look-ups, ns | memo, ns | ratio |")
        print("|---|---|---|---|---|---|---|", flush=True)
        for interpreter in sys.argv[1:]:
            for between in BETWEEN:
                walk, memo, walks, known, wrong = inside(interpreter, output, numbers, NATIVE_BETWEEN=str(between))
                assert known and not wrong, (known, wrong)
                print("| %s | %d | %.0f | %.1f %% | %.0f | %.0f | %.1f |" % (
                    version_of(interpreter), between, walks, 100 * known / walks, walk / known, memo / known,
                    walk / memo), flush=True)


main()
