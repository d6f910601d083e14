#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hardware counters over time (plumb run --counters-series) on a GPU: against formulas, and what sampling costs.

    python3 tests/accuracy/series.py [--plumb PATH] [--only NAME]… [--keep FOLDER]

  phases   copies, matrix products and sleep take turns: bytes of GPU memory within 5 % of the formula, tensor cores at work
           in the products alone, nothing in the sleep, edges where the records of work have them
  whole    a program that only copies, with a sample every 100 microseconds: the bytes of the whole run within 5 % of the
           formula, and no sample is lost
  cost     the same work with and without sampling, under plumb run
  sets     which counters fit together, and what switching on takes (prints, states no fact)

Wants PyTorch with CUDA 12.8 or newer, and permission to read counters (plumb doctor). Prints PASS or FAIL per fact,
with the value that was seen, and what CUPTI refused; exits 0 or 1.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# After what is installed: the package has to be that of the plumb that records.
sys.path.append(os.path.join(HERE, "..", "..", "python"))

import plumb  # noqa: E402

failed = []
LIMIT = 0.05
EDGE_MS = 3

COMMON = """
import json, time, torch
now = lambda: time.clock_gettime_ns(time.CLOCK_MONOTONIC)
n = 512 * 1024 ** 2 - 1024
x = torch.zeros(n, device="cuda")
y = torch.empty_like(x)
phases = []
def copies(seconds):
    torch.cuda.synchronize()
    start, count = now(), 0
    while now() - start < seconds * 1e9:
        for _ in range(8):
            y.copy_(x)
        count += 8
        torch.cuda.synchronize()
    phases.append(("copy", start, now(), 8 * n * count))
def pause(seconds):
    torch.cuda.synchronize()
    start = now()
    time.sleep(seconds)
    phases.append(("sleep", start, now(), 0))
"""

PHASES = COMMON + """
a = torch.randn(8192, 8192, device="cuda").half()
b = torch.randn(8192, 8192, device="cuda").half()
c = a @ b
def products(seconds):
    torch.cuda.synchronize()
    start = now()
    while now() - start < seconds * 1e9:
        for _ in range(8):
            torch.matmul(a, b, out=c)
        torch.cuda.synchronize()
    phases.append(("product", start, now(), 0))
y.copy_(x)
pause(0.3)
for _ in range(3):
    copies(0.3)
    products(0.3)
    pause(0.3)
print(json.dumps(phases))
"""

WHOLE = COMMON + """
pause(0.3)
for _ in range(2):
    copies(0.5)
    pause(0.2)
torch.cuda.synchronize()
print(json.dumps(phases))
"""

# A context and nothing else.
CONTEXT = """
import ctypes, json, time
start = time.perf_counter()
driver, context, device = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_int()
print(driver.cuInit(0), driver.cuDeviceGet(ctypes.byref(device), 0), driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
      driver.cuCtxSetCurrent(context))
memory = ctypes.c_uint64()
driver.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4096))
driver.cuMemsetD8_v2(memory, ctypes.c_ubyte(1), ctypes.c_size_t(4096))
took = time.perf_counter() - start
time.sleep(0.5)
print(json.dumps([took]))
"""

# Small kernels, launched as fast as Python can, and large ones: the host's side and the GPU's side of the cost.
COST = """
import json, time, torch
small = torch.zeros(1024, device="cuda")
a = torch.randn(4096, 4096, device="cuda").half()
def small_work():
    for _ in range(10000):
        small.add_(1)
def large_work():
    for _ in range(1000):
        a @ a
def clock(work):
    best = 1e9
    for _ in range(3):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return best
small_work(); large_work()
print(json.dumps([clock(small_work), clock(large_work)]))
"""


def fact(name, holds, seen):
    print("PASS" if holds else "FAIL", f"{name}: {seen}", flush=True)
    if not holds:
        failed.append(name)


class Bench:
    def __init__(self, tool, folder):
        self.tool, self.folder = tool, folder

    def run(self, name, source, *options):
        program, path = (os.path.join(self.folder, name + suffix) for suffix in (".py", ".plumb"))
        with open(program, "w") as file:
            file.write(source)
        done = subprocess.run([self.tool, "run", "--quiet", "-o", path, *options, "--", sys.executable, program],
                              cwd=self.folder, capture_output=True, text=True, timeout=300)
        if done.returncode:
            fact(f"{name} runs", False, f"exit {done.returncode}: {done.stderr[-1500:]}")
            return None, path
        return json.loads(done.stdout.splitlines()[-1]), path


def tell(name, path):
    """What is sampled, and what became of the samples. True: something came."""
    profile = plumb.Profile(path)
    notes = {key.removeprefix("gpu.counters.series"): value for key, value in profile.environment.items()
             if key.startswith("gpu.counters.series")}
    ledger = {(row.fate, row.reason): row.count for row in profile.ledger if row.source == "gpu.counter.sample"}
    rows = profile.counter_series
    by = {fate: count for (fate, _), count in ledger.items()}
    print(f"  {name}: sampled {notes.get('', 'nothing')}; left out {notes.get('.without', 'nothing')}; "
          f"off: {notes.get('.off', 'no')}; clocks apart by {notes.get('.clock_ns', '?')} ns; "
          f"{len(rows)} bins; ledger {by}", flush=True)
    fact(f"{name}: samples came", bool(rows), f"{by.get('attributed', 0)} samples")
    fact(f"{name}: none is lost", set(by) <= {"received", "attributed"}, by)
    work = {row.source: row.count for row in profile.ledger if row.fate == "attributed" and row.source.startswith("gpu.")}
    fact(f"{name}: records of kernels and copies are there", work.get("gpu.kernel", 0) + work.get("gpu.copy", 0) > 0, work)
    return rows


def of(rows, metric):
    return [row for row in rows if row.metric == metric]


def total(rows, start=None, end=None, metric="dram_read_bytes"):
    """What METRIC counted from START to END: by the middle of bins."""
    return sum(row.mean * row.sampled_ns / 1e9 for row in of(rows, metric)
               if start is None or start <= row.start_ns + row.width_ns / 2 < end)


def mean(rows, metric, start, end):
    """The mean of the bins that are within, or None if no bin is."""
    inner = [row for row in of(rows, metric) if row.start_ns >= start and row.start_ns + row.width_ns <= end]
    ns = sum(row.sampled_ns for row in inner)
    return sum(row.mean * row.sampled_ns for row in inner) / ns if ns else None


def near(value, expected):
    return value is not None and abs(value / expected - 1) <= LIMIT


def edges(path, rows, phases):
    """ms from the first work of each phase of copies to the first sample with half of what is copied there."""
    profile, late = plumb.Profile(path), []
    work = sorted((span.start_ns, span.end_ns) for span in profile.spans(newest=True))
    for kind, start, end, amount in phases:
        first = next((s for s, _ in work if start <= s < end), None)
        half = amount / 2 / (end - start) * 1e9 / 2
        high = next((row.start_ns for row in of(rows, "dram_read_bytes")
                     if start - 50e6 <= row.start_ns < end and row.mean > half), None)
        if kind == "copy" and first and high:
            late.append((high - first) / 1e6)
    return late


def phases(bench):
    found, path = bench.run("phases", PHASES, "--counters-series")
    rows = found and tell("phases", path)
    if not rows:
        return
    margin = 20e6
    for metric in ("dram_read_bytes", "dram_write_bytes"):
        ratios = [mean(rows, metric, start + margin, end - margin) / (amount / 2 / (end - start) * 1e9)
                  for kind, start, end, amount in found
                  if kind == "copy" and mean(rows, metric, start + margin, end - margin) is not None]
        # Its ends wait for the GPU without copies, which the inner part of a phase does not have: a little more is expected.
        fact(f"copies: {metric} by time, to the formula", bool(ratios) and all(abs(r - 1) <= LIMIT for r in ratios),
             ", ".join(f"{r:.4f}" for r in ratios))
        ratios = [total(rows, start - margin, end + margin, metric) / (amount / 2) for kind, start, end, amount in found
                  if kind == "copy"]
        print(f"  copies: {metric} of whole phases, to the formula: {', '.join(f'{r:.4f}' for r in ratios)}")
    for metric, low, high, kinds in (("tensor_active", 30, None, ("product",)), ("tensor_active", None, 1, ("copy", "sleep")),
                                     ("sm_active", 80, None, ("product",)), ("sm_active", None, 1, ("sleep",))):
        if not of(rows, metric):
            print(f"  {metric} is not sampled")
            continue
        shares = [mean(rows, metric, start + margin, end - margin) for kind, start, end, _ in found if kind in kinds]
        shares = [share / 10000 for share in shares if share is not None]
        fact(f"{'/'.join(kinds)}: {metric}, %",
             bool(shares) and all((low is None or share >= low) and (high is None or share <= high) for share in shares),
             f"{min(shares, default=-1):.2f} to {max(shares, default=-1):.2f}")
    quiet = [mean(rows, "dram_read_bytes", start + margin, end - margin) or 0 for kind, start, end, _ in found if kind == "sleep"]
    fact("sleep: bytes read per second", max(quiet) < 5e9, f"{max(quiet):.3g}")
    for metric in sorted({row.metric for row in rows}):
        means = [(kind, mean(rows, metric, start + margin, end - margin)) for kind, start, end, _ in found[-3:]]
        print(f"  {metric} ({of(rows, metric)[0].unit}): " + ", ".join(
            f"{kind} {value:.4g}" if value is not None else f"{kind} unknown" for kind, value in means))
    late = edges(path, rows, found)
    fact("copies begin where records have them, ms", bool(late) and max(map(abs, late)) <= EDGE_MS,
         ", ".join(f"{ms:.2f}" for ms in late))


def whole(bench):
    found, path = bench.run("whole", WHOLE, "--counters-series=dram_read_bytes,dram_write_bytes,sm_active", "--counters-every=100")
    rows = found and tell("whole", path)
    if not rows:
        return
    n = 512 * 1024 ** 2 - 1024
    copied = sum(amount for _, _, _, amount in found) / 2
    fact("whole run: bytes read, to the formula", near(total(rows), copied), f"{total(rows) / copied:.4f}")
    made = copied + 4 * n  # and what made the array of zeros
    written = total(rows, metric="dram_write_bytes")
    fact("whole run: bytes written, to the formula", near(written, made), f"{written / made:.4f}")
    active = of(rows, "sm_active")
    print(f"  bins of {active[0].width_ns / 1e6} ms; {sum(row.samples for row in active)} samples in "
          f"{(active[-1].start_ns - active[0].start_ns) / 1e9:.3f} s")


def cost(bench):
    without, _ = bench.run("without", COST)
    sampled, path = bench.run("sampled", COST, "--counters-series")
    if without and sampled:
        tell("cost", path)
        for what, a, b in zip(("small kernels", "large kernels"), sampled, without):
            fact(f"cost: {what}, time with sampling over that without", a / b < 1.1, f"{a / b:.4f} ({a:.4f} s, {b:.4f} s)")


def sets(bench):
    def seconds(took):
        return f"{took[0]:.3f} s" if took else "unknown"

    print(f"  a context without sampling takes {seconds(bench.run('context', CONTEXT)[0])}")
    for i, wanted in enumerate(("default", "l2_hit_rate", "issue_utilization", "dram_read_bytes,lts__t_sectors.sum",
                                "sm_active,tensor_active,issue_utilization")):
        took, path = bench.run(f"set{i}", CONTEXT, f"--counters-series={wanted}")
        notes = plumb.Profile(path).environment if os.path.exists(path) else {}
        told = "; ".join(f"{key.removeprefix('gpu.counters.')} {value}" for key, value in notes.items()
                         if key.startswith("gpu.counters."))
        print(f"  {wanted} ({seconds(took)}): {told}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plumb", default=os.path.join(HERE, "..", "..", "build", "plumb"))
    parser.add_argument("--only", action="append")
    parser.add_argument("--keep")
    given = parser.parse_args()
    folder = given.keep or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    bench = Bench(os.path.abspath(given.plumb), os.path.abspath(folder))
    for part in (phases, whole, cost, sets):
        if not given.only or part.__name__ in given.only:
            try:
                part(bench)
            except (OSError, ValueError, KeyError, ZeroDivisionError, TypeError, subprocess.SubprocessError) as error:
                fact(part.__name__, False, f"{type(error).__name__}: {error}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
