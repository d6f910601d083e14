#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hardware counters on a GPU: against formulas, against Nsight Compute, and what they do to the program.

    python3 tests/accuracy/counters.py [--plumb PATH] [--only NAME]… [--keep FOLDER]

  formulas    operations and bytes of matrix products, a copy, a reduction and an elementwise kernel, within 1 %
  unchanged   a program whose kernels read what they write prints the same with and without counters
  beside      20 kernels: operations and bytes within 1 % of Nsight Compute's (needs ncu on PATH)
  cost        counters of the hot list: at most three times the run, and times of kernels stay in their window
  many        400 counted launches, and no record of another one is lost, or 2 % at most if threads launch meanwhile
  refused     what cannot run again (a captured graph) is left alone, is counted, and gives the same result

Wants PyTorch with CUDA 12.8 or newer, and permission to read counters (plumb doctor). Prints PASS or FAIL per fact,
with the value that was seen; exits 0 or 1.
"""
import argparse
import csv
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "python"))

import plumb  # noqa: E402

failed = []
LIMIT = 0.01
ALL = "--counters", "--counters-cost=0"  # each launch that is to be counted, whatever it costs

# Arrays of almost 2 GiB: PyTorch splits a larger one into several launches.
FORMULAS = """
import torch
torch.manual_seed(0)
n = 512 * 1024 ** 2 - 1024
m = 4096
def gemm(kind):
    a = torch.randn(m, m, device="cuda").to(kind)
    b = torch.randn(m, m, device="cuda").to(kind)
    return a @ b
torch.backends.cuda.matmul.allow_tf32 = False
for name, kind in (("gemm_fp32", torch.float32), ("gemm_fp64", torch.float64), ("gemm_fp16", torch.float16),
                   ("gemm_bf16", torch.bfloat16)):
    with plumb.span(name):
        gemm(kind)
torch.backends.cuda.matmul.allow_tf32 = True
with plumb.span("gemm_tf32"):
    gemm(torch.float32)
x = torch.ones(n, device="cuda")
y = torch.empty_like(x)
torch.cuda.synchronize()
with plumb.span("elementwise"):
    torch.mul(x, 3.0, out=y)
with plumb.span("addition"):
    torch.add(x, y, out=y)
with plumb.span("copy"):
    torch.add(x[:n // 2], 0.0, out=y[:n // 2])
with plumb.span("reduction"):
    x.sum()
torch.cuda.synchronize()
"""
M, N = 4096, 512 * 1024 ** 2 - 1024
# {span: {counter: what a formula says}}; a kernel that a span has beside the main one is far smaller.
EXPECTED = {
    "gemm_fp32": {"flop_count_sp": 2 * M ** 3},
    "gemm_fp64": {"flop_count_dp+flop_count_tensor": 2 * M ** 3},
    "gemm_fp16": {"flop_count_tensor": 2 * M ** 3},
    "gemm_bf16": {"flop_count_tensor": 2 * M ** 3},
    "gemm_tf32": {"flop_count_tensor": 2 * M ** 3},
    "elementwise": {"dram_read_bytes": 4 * N, "dram_write_bytes": 4 * N, "flop_count_sp": N},
    "addition": {"dram_read_bytes": 8 * N, "dram_write_bytes": 4 * N},
    "copy": {"dram_read_bytes": 2 * N, "dram_write_bytes": 2 * N},
    "reduction": {"dram_read_bytes": 4 * N},
}

# Each kernel reads what it writes, or depends on what others left: replay has to put all of it back.
UNCHANGED = """
import hashlib, torch
torch.manual_seed(0)
torch.use_deterministic_algorithms(False)
x = torch.arange(1 << 22, device="cuda", dtype=torch.int64)
counts = torch.zeros(1 << 10, device="cuda", dtype=torch.int64)
for i in range(40):
    x.mul_(3).add_(i).remainder_(1000003)
    counts.index_add_(0, x.remainder(1 << 10), torch.ones_like(x))
    x[: 1 << 21] += x[1 << 21:]
    x.cumsum_(0).remainder_(1000003)
f = torch.randn(1 << 20, device="cuda")
for i in range(40):
    f.mul_(0.999).add_(torch.randn_like(f))
print(hashlib.sha256(x.cpu().numpy().tobytes() + counts.cpu().numpy().tobytes() + f.cpu().numpy().tobytes()).hexdigest())
"""

# 20 kernels, each once, whose arrays are much larger than L2.
BESIDE = """
import torch
torch.manual_seed(0)
a = torch.randn(16384, 16384, device="cuda"); h = a.half(); v = torch.randn(1 << 28, device="cuda")
i = torch.randint(0, 16384, (16384,), device="cuda"); c = torch.randn(64, 64, 224, 224, device="cuda")
work = [lambda: a @ a, lambda: h @ h, lambda: a[:4096, :4096].double() @ a[:4096, :4096].double(), lambda: v.add(1), lambda: v.mul(v), lambda: v.exp(),
        lambda: v.sum(), lambda: v.max(), lambda: a.softmax(1), lambda: torch.nn.functional.layer_norm(a, (16384,)),
        lambda: a.t().contiguous(), lambda: a.index_select(0, i), lambda: a.cumsum(1), lambda: v[: 1 << 26].sort(),
        lambda: torch.nn.functional.conv2d(c, c[:, :, :3, :3].contiguous()), lambda: torch.nn.functional.max_pool2d(c, 2),
        lambda: c.mean((2, 3)), lambda: torch.nn.functional.gelu(v), lambda: a.tril(), lambda: torch.where(v > 0, v, -v)]
for w in work:
    w()
torch.cuda.synchronize()
"""
COST = """
import time, torch, torchvision
torch.manual_seed(0)
model = torchvision.models.resnet50().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(32, 3, 224, 224, device="cuda"); y = torch.randint(0, 1000, (32,), device="cuda")
def step():
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
start = time.time()
for _ in range(100):
    step()
torch.cuda.synchronize()
print("seconds", time.time() - start)
"""

# 100 places with 8 launches each, of which 4 are counted; and three threads that launch meanwhile.
MANY = """
import threading, torch
x = torch.ones(1 << 10, device="cuda")
exec("".join(f"def work{i}(): x.mul_(1.0)\\n" for i in range(100)))
going = True
def launch():
    y = torch.ones(1 << 10, device="cuda")
    with torch.cuda.stream(torch.cuda.Stream()):
        while going:
            y.add_(1.0)
            torch.cuda.current_stream().synchronize()
THREADS = 0
threads = [threading.Thread(target=launch) for _ in range(THREADS)]
for thread in threads: thread.start()
torch.cuda.current_stream().synchronize()
for i in range(100):
    for _ in range(8):
        globals()[f"work{i}"]()
torch.cuda.current_stream().synchronize()
going = False
for thread in threads: thread.join()
"""

GRAPH = """
import torch
torch.manual_seed(0)
x = torch.ones(1 << 20, device="cuda")
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    for _ in range(3): x.mul_(1.0)
torch.cuda.current_stream().wait_stream(stream)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    for _ in range(5): x.add_(1)
for _ in range(10): graph.replay()
torch.cuda.synchronize()
print(x.sum().item())
"""


def fact(name, holds, seen):
    print("PASS" if holds else "FAIL", f"{name}: {seen}", flush=True)
    if not holds:
        failed.append(name)


class Bench:
    def __init__(self, tool, folder):
        self.tool, self.folder = tool, folder

    def write(self, name, source):
        os.makedirs(self.folder, exist_ok=True)
        path = os.path.join(self.folder, name + ".py")
        with open(path, "w") as file:
            file.write(source)
        return path

    def plain(self, name, source):
        return self.done([sys.executable, self.write(name, source)])

    def done(self, command):
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=1800)
        if done.returncode:
            sys.exit(f"{' '.join(command)} exited with {done.returncode}: {done.stderr[-2000:]}")
        return done

    def run(self, name, source, *options, file="run"):
        path = os.path.join(self.folder, f"{name}.{file}.plumb")
        done = self.done([self.tool, "run", "--quiet", "-o", path, *options, "--", sys.executable,
                          self.write(name, source)])
        return done, path


def notes(path):
    return {key: value for key, value in plumb.Profile(path).environment.items() if key.startswith("gpu.counters")}


def counts(path):
    """{kernel: {counter: (mean, how many)}} with the spans that the kernel is under."""
    profile, found = plumb.Profile(path), []
    for kernel in profile.kernels:
        own = {name: (stat.sum / stat.count, stat.count) for name, stat in kernel.exclusive.items()
               if stat.count and (name.startswith(("flop_count", "dram_")) or name in ("achieved_occupancy", "l2_hit_rate"))}
        if own:
            found.append((kernel, own))
    return found


def above(node):
    while node is not None:
        yield node.name
        node = node.parent


def formulas(bench):
    _, path = bench.run("formulas", "import plumb\n" + FORMULAS, *ALL)
    print("    ", notes(path))
    sums = {}
    for kernel, own in counts(path):
        for span in set(above(kernel)) & set(EXPECTED):
            for name, (mean, _) in own.items():
                sums.setdefault(span, {}).setdefault(name, 0)
                sums[span][name] += mean
    for span, expected in EXPECTED.items():
        for names, wanted in expected.items():
            seen = sum(sums.get(span, {}).get(name, 0) for name in names.split("+"))
            fact(f"formulas {span} {names}", abs(seen / wanted - 1) <= LIMIT, f"{seen:.6g}, {seen / wanted:.4f} of the formula")


def unchanged(bench):
    plain = bench.plain("unchanged", UNCHANGED).stdout
    done, path = bench.run("unchanged", UNCHANGED, *ALL)
    rows = [(row.source, row.fate, row.count) for row in plumb.Profile(path).ledger if row.source == "gpu.counter"]
    fact("unchanged results", done.stdout == plain, f"{plain.strip()[:16]}…, {done.stdout.strip()[:16]}…; {rows}")
    fact("unchanged counted some", any(fate == "attributed" and count > 20 for _, fate, count in rows), rows)


def beside(bench):
    if not shutil.which("ncu"):
        print("SKIP beside: ncu is not on PATH")
        return
    _, path = bench.run("beside", BESIDE, *ALL)
    threads = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
    metrics = [threads.format(op) for op in ("fadd", "fmul", "ffma")] + ["dram__bytes_read.sum", "dram__bytes_write.sum"]
    done = bench.done(["ncu", "--csv", "--cache-control", "none", "--clock-control", "none", "--print-units", "base",
                       "--print-kernel-base", "mangled", "--metrics", ",".join(metrics), sys.executable,
                       bench.write("beside", BESIDE)])
    text = done.stdout[done.stdout.index('"ID"'):]
    others = {}
    for row in csv.DictReader(io.StringIO(text)):
        values = others.setdefault(row["Kernel Name"], {}).setdefault(row["ID"], {})
        values[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    compared = 0
    for kernel, own in counts(path):
        launches = list(others.get(kernel.symbol or kernel.name, {}).values())
        if len(launches) != 1 or own["flop_count_sp"][1] != 1:
            continue  # launched several times, with other sizes perhaps
        seen, = launches
        wanted = {"flop_count_sp": seen[metrics[0]] + seen[metrics[1]] + 2 * seen[metrics[2]],
                  "dram_read_bytes": seen[metrics[3]], "dram_write_bytes": seen[metrics[4]]}
        compared += 1
        for name, other in wanted.items():
            value = own[name][0]
            # What L2 holds before and after a kernel differs, by 4 to 5 MB here.
            small = name != "flop_count_sp" and other < 512 << 20
            fact(f"beside {kernel.name[:40]} {name}", small or abs(value - other) <= LIMIT * max(other, 1),
                 f"{value:.6g}, ncu {other:.6g}{' (small)' if small else ''}")
    fact("beside kernels compared", compared >= 20, compared)


def cost(bench):
    plain = min(float(bench.plain("cost", COST).stdout.split()[-1]) for _ in range(3))
    _, first = bench.run("cost", COST, file="first")
    start = time.time()
    done, path = bench.run("cost", COST, "--counters", f"--counters-kernels={first}")
    seconds = float(done.stdout.split()[-1])
    rows = [(row.fate, row.count) for row in plumb.Profile(path).ledger if row.source == "gpu.counter"]
    fact("cost at most 3 times", seconds <= 3 * plain,
         f"{plain:.2f} s, with counters {seconds:.2f} s ({seconds / plain:.2f}×), all {time.time() - start:.1f} s; {rows}")
    # Records that come late count in the wrong window.
    total, loop = (json.loads(bench.done([bench.tool, "report", path, "--json", "--window", window]).stdout)["total"]["count"]
                   for window in ("all", "loop"))
    fact("cost records in the main loop", loop >= 0.95 * total, f"{loop} of {total}")


def many(bench):
    for threads in 0, 3:
        _, path = bench.run("many", MANY.replace("THREADS = 0", f"THREADS = {threads}"), *ALL, file=f"threads{threads}")
        rows = {(row.source, row.fate): row.count for row in plumb.Profile(path).ledger if row.source.startswith("gpu.")}
        lost = rows["gpu.kernel", "received"] - rows["gpu.kernel", "attributed"] - rows["gpu.kernel", "counted"]
        if not threads:
            fact("many launches counted", rows["gpu.counter", "attributed"] >= 400, rows)
        # A forced flush loses what another thread has launched in that moment.
        fact(f"many launches, {threads} more threads, records lost", lost <= (0.02 if threads else 0) * rows["gpu.kernel", "received"],
             f"{lost} of {rows['gpu.kernel', 'received']}")


def refused(bench):
    plain = bench.plain("refused", GRAPH).stdout
    done, path = bench.run("refused", GRAPH, "--counters")
    rows = {row.fate: row.count for row in plumb.Profile(path).ledger if row.source == "gpu.counter"}
    fact("refused graphs are left alone", rows.get("no_replay", 0) == 10 and done.stdout == plain, (rows, done.stdout, plain))


def main():
    parts = {part.__name__: part for part in (formulas, unchanged, beside, cost, many, refused)}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plumb", default=os.path.join(HERE, "..", "..", "build", "plumb"))
    parser.add_argument("--only", action="append", choices=parts)
    parser.add_argument("--keep", help="a folder for programs and profiles")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(os.path.abspath(arguments.plumb), arguments.keep or folder)
        for name in arguments.only or parts:
            parts[name](bench)
    print("failed:" if failed else "all hold", *failed)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
