# SPDX-License-Identifier: Apache-2.0
"""The cost of a look at the Python stack: python3 bench/micro_python.py [INTERPRETER...]

Prints a Markdown table: ns for the innermost frame's mark, for a walk of a stack 33 deep, for the
walk and then the comparison of every frame's code with the one before, and for the same stack by the
GIL and the PyFrame interface. Best of nine rounds in turn, in one process.
"""
import ctypes
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEPTH, ROUNDS, COUNT = 33, 9, 20000


def build(output):
    source = os.path.join(ROOT, "src")
    subprocess.run([os.environ.get("CC", "cc"), "-std=gnu17", "-O2", "-D_GNU_SOURCE", "-I" + source, "-shared",
                    "-fPIC", "-fvisibility=hidden", "-o", output, os.path.join(ROOT, "bench/micro_python.c"),
                    os.path.join(source, "collect/monitor/python.c"),
                    os.path.join(source, "collect/monitor/python_layout.c"),
                    os.path.join(source, "base/error.c"), "-ldl"], check=True)


def measure(library):
    message = ctypes.create_string_buffer(1000)
    if library.bench_attach(message, ctypes.c_size_t(1000)):
        sys.exit("not measured: " + message.value.decode())
    for name in ("top", "walk", "unchanged", "interface"):
        getattr(library, "bench_" + name).restype = ctypes.c_double
    differences, depth = ctypes.c_int(), ctypes.c_int()
    best = [float("inf")] * 4
    for _ in range(ROUNDS):
        got = [library.bench_top(COUNT), library.bench_walk(COUNT),
               library.bench_unchanged(COUNT, ctypes.byref(differences)),
               library.bench_interface(COUNT // 10, ctypes.byref(depth))]
        best = list(map(min, best, got))
        assert differences.value == 0 and depth.value == DEPTH, (differences, depth)
    version = sys.version.split()[0]
    print("| %s | %.1f | %.0f | %.0f | %.0f |" % (version, *best), flush=True)


def stack(library, levels):
    """Calls measure under LEVELS functions, each its own code object, as in a program."""
    functions = [measure]
    for i in range(levels):
        scope = {"below": functions[-1]}
        exec(compile("def level%d(library):\n    return below(library)\n" % i, "level%d.py" % i, "exec"), scope)
        functions.append(scope["level%d" % i])
    functions[-1](library)


def main():
    if len(sys.argv) > 2 and sys.argv[1] == "--in":
        # The module, main, stack and measure itself are four.
        return stack(ctypes.CDLL(sys.argv[2]), DEPTH - 4)
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "micro_python.so")
        build(output)
        print("| CPython | mark, ns | walk of %d | walk, then compare | GIL and PyFrame |" % DEPTH)
        print("|---|---|---|---|---|", flush=True)
        for interpreter in sys.argv[1:] or [sys.executable]:
            subprocess.run([interpreter, os.path.abspath(__file__), "--in", output])


main()
