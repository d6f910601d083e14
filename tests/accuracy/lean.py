#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does `--mode lean` say the same as the light mode? Each program runs under both; GPU work by operator, module, line and phase
is compared, in numbers of kernels (times differ from run to run).

    python3 tests/accuracy/lean.py [--plumb PATH] [--python PYTHON] [--tiny] [NAME…]

NAME: of bench/models.py or bench/kinds.py; default: the ten models, trained and only run forward, and the kinds of programs.
A line for each program; where they differ, a line for each row. Ends with 1 if a row differs that NOTES does not explain.
"""
import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
try:
    import plumb
except ImportError:  # not installed: the one of this checkout
    sys.path.insert(0, os.path.join(HERE, "..", "..", "python"))
    import plumb
BENCH = os.path.join(HERE, "..", "..", "bench")
KEYS = ("operator", "module", "line", "phase")
# PyTorch records these by a callback, though they are no operators of its dispatcher; lean has no such callbacks.
# Python's autograd functions, PyTorch's own names for what Python runs inside a dispatch, and compiled regions.
NOTES = re.compile(r"Function$|^PythonSubclass|^Torch-Compiled Region|^Python(TLS|Dispatch)|^record_param_comms|^nccl:|^c10d::")

# It has no operators; how many kernels a compiler tries depends on the clock.
LEFT_OUT = ("jax", "autotune")

PROGRAM = """
import os, sys
sys.path.insert(0, sys.argv[1])
name, kind = sys.argv[2:4]
tiny = sys.argv[4] == "tiny"
if os.environ.get("MOCK_CUPTI"):
    import ctypes
    ctypes.CDLL(os.environ["MOCK_CUPTI"], ctypes.RTLD_GLOBAL)
import kinds
if name in kinds.KINDS:
    step = kinds.make(name, tiny)
else:
    import models
    step = models.make(name, tiny)
import torch
if kind == "infer":
    torch.Tensor.backward = lambda *arguments, **more: None
    step = torch.inference_mode()(step)
if tiny:
    torch.set_num_threads(1)
    step()
    import ctypes
    ctypes.CDLL(os.environ["MOCK_LAUNCHER"]).launcher_open()
for _ in range(3):
    step()
if torch.cuda.is_available():
    torch.cuda.synchronize()
"""


def frame_above(node, kinds):
    """The innermost frame of one of KINDS above NODE, or None."""
    return next((above for above in node.ancestors if above.kind in kinds), None)


def place_of(node, key):
    if key == "phase":
        return "backward" if node.is_backward else "forward"
    above = frame_above(node, ("python",) if key == "line" else (key,))
    return above and (f"{above.file}:{above.line}" if key == "line" else above.name)


def kernels(path, key):
    """{operator, module, line or phase: kernels directly in it}."""
    found, profile = collections.Counter(), plumb.Profile(path)
    for number, stat in profile._stats("gpu.time")[0].items():
        found[str(place_of(plumb.Node(profile, number), key))] += stat[1]
    return found


def record(options, mode, name, kind, folder):
    path = os.path.join(folder, f"{name}-{kind}-{mode}.plumb")
    done = subprocess.run([options.plumb, "run", "-q", "--mode", mode, "-o", path, "--", options.python, "-c", PROGRAM, BENCH,
                           name, kind, "tiny" if options.tiny else ""], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{name} {kind} --mode {mode}: " + done.stderr[-400:])
    return path


def compare(options, name, kind, folder):
    """(kernels, rows that differ, rows that differ without a reason)."""
    if kind == "run":  # what a compiler keeps from its first run is there for both
        record(options, "light", name, "warm", folder)
    light, lean = (record(options, mode, name, kind, folder) for mode in ("light", "lean"))
    differ, unexplained, total = [], 0, 0
    for key in KEYS:
        one, other = kernels(light, key), kernels(lean, key)
        total = max(total, sum(one.values()))
        for row in sorted(set(one) | set(other), key=str):
            if one[row] != other[row]:
                known = key == "operator" and NOTES.search(str(row))
                unexplained += not known
                differ.append(f"  {key} {row}: light {one[row]}, lean {other[row]}{' (known)' if known else ''}")
    return total, differ, unexplained


def main():
    sys.path.insert(0, BENCH)
    from overhead import TEN
    from kinds import KINDS
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--plumb", default=os.path.join(HERE, "..", "..", "build", "plumb"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--tiny", action="store_true", help="small models on the CPU; their allocations launch work (tests/mock)")
    options = parser.parse_args()
    options.plumb = os.path.abspath(options.plumb)
    wrong = 0
    for name in options.names or [*TEN, *(kind for kind in KINDS if kind not in LEFT_OUT)]:
        for kind in ("train", "infer") if name in TEN else ("run",):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    total, differ, unexplained = compare(options, name, kind, folder)
                except RuntimeError as error:
                    print(f"{name} {kind}: left out: {error}", flush=True)
                    continue
            wrong += unexplained
            print(f"{name} {kind}: {total} kernels, {len(differ)} rows differ, {unexplained} without a reason", flush=True)
            print("\n".join(differ), end="\n" if differ else "", flush=True)
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
