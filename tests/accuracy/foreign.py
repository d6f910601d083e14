#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what the tests of `plumb import` read: one small training program under plumb and under other tools.

    python3 tests/accuracy/foreign.py --plumb PATH --keep FOLDER [--ranks 2]

Needs PyTorch with CUDA; JAX and nsys are used where they are. Each tool records the same number of steps of the
same program, one after the other: CUPTI serves one tool at a time. Files:

    own.plumb          plumb run --trace
    torch.json.gz      torch.profiler, with stacks, shapes and modules
    graph.json.gz      torch.profiler, the step as a CUDA graph
    compiled.json.gz   torch.profiler, torch.compile
    rank0.json.gz, …   torch.profiler, data-parallel over NCCL (--ranks)
    jax.xplane.pb.gz, jax.trace.json.gz
    nsys.sqlite.gz
"""
import argparse
import glob
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile

STEPS = 4
PROGRAM = '''\
import sys
import torch
from torch import nn

mode, path = sys.argv[1:3]
torch.manual_seed(0)
rank = 0
if mode == "ddp":
    import os
    import torch.distributed as dist
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(rank)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


model = nn.Sequential(*[Block(256) for _ in range(3)], nn.Linear(256, 10)).cuda()
run = model
if mode == "ddp":
    run = nn.parallel.DistributedDataParallel(model, device_ids=[rank], bucket_cap_mb=1)
if mode == "compiled":
    run = torch.compile(model)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=False)
data = torch.randn(512, 256).pin_memory()
target = torch.randint(0, 10, (512,), device="cuda")
static = torch.empty(512, 256, device="cuda")


def step():
    x = data.to("cuda", non_blocking=True)
    loss = nn.functional.cross_entropy(run(x), target)
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    optimizer.step()


for _ in range(4):
    step()
torch.cuda.synchronize()
if mode == "graph":
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        out = model(static)
    step = graph.replay


def steps(each=lambda: None):
    for _ in range(%d):
        step()
        each()
    torch.cuda.synchronize()


if mode in ("own", "nsys"):
    sys.stdin.readline() if mode == "own" else None
    steps()
else:
    from torch.profiler import ProfilerActivity, profile, schedule
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True,
                 with_stack=mode == "torch", with_modules=mode == "torch") as profiler:
        steps(profiler.step)
    profiler.export_chrome_trace(path.replace("RANK", str(rank)))
if mode == "ddp":
    dist.destroy_process_group()
''' % STEPS
JAX = '''\
import sys
import jax
import jax.numpy as jnp

@jax.jit
def step(w, x):
    return w - 0.01 * jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)

w, x = jnp.ones((256, 256)), jnp.ones((128, 256))
step(w, x).block_until_ready()
with jax.profiler.trace(sys.argv[1], create_perfetto_trace=False):
    for _ in range(4):
        w = step(w, x)
    w.block_until_ready()
'''


def pack(path, to):
    with open(path, "rb") as source, gzip.GzipFile(to, "wb", mtime=0) as target:
        shutil.copyfileobj(source, target)


def tried(what, command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, **options)
    print("PASS" if not done.returncode else "FAIL", what, done.stderr[-1500:] if done.returncode else "", flush=True)
    return not done.returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plumb", required=True)
    parser.add_argument("--keep", required=True, metavar="FOLDER")
    parser.add_argument("--ranks", type=int, default=0)
    options = parser.parse_args()
    os.makedirs(options.keep, exist_ok=True)
    keep = os.path.abspath(options.keep)
    with tempfile.TemporaryDirectory() as folder:
        program, jax = os.path.join(folder, "foreign.py"), os.path.join(folder, "with_jax.py")
        for path, text in ((program, PROGRAM), (jax, JAX)):
            with open(path, "w") as file:
                file.write(text)
        trace = os.path.join(folder, "RANK.json")
        real = os.path.join(folder, "0.json")
        own = os.path.join(folder, "own.plumb")
        # Everything from the first step on: the first steps are plumb's to leave out (--start-after counts seconds).
        if tried("own", [os.path.abspath(options.plumb), "run", "--trace", "-o", own, "--", sys.executable, program,
                         "own", trace], cwd=folder, input="\n"):
            pack(own, os.path.join(keep, "own.plumb.gz"))
        for mode in ("torch", "graph", "compiled"):
            if tried(mode, [sys.executable, program, mode, trace], cwd=folder):
                pack(real, os.path.join(keep, mode + ".json.gz"))
        if options.ranks:
            if tried("ddp", [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
                             str(options.ranks), program, "ddp", trace], cwd=folder):
                for rank in range(options.ranks):
                    pack(os.path.join(folder, f"{rank}.json"), os.path.join(keep, f"rank{rank}.json.gz"))
        if tried("jax", [sys.executable, jax, os.path.join(folder, "jax")], cwd=folder):
            for end, name in (("xplane.pb", "jax.xplane.pb.gz"), ("trace.json.gz", "jax.trace.json.gz")):
                for path in glob.glob(os.path.join(folder, "jax", "**", "*." + end), recursive=True):
                    (shutil.copy if end.endswith("gz") else pack)(path, os.path.join(keep, name))
        nsys = shutil.which("nsys")
        if nsys and tried("nsys", [nsys, "profile", "--export", "sqlite", "-o", os.path.join(folder, "nsys"),
                                   sys.executable, program, "nsys", trace], cwd=folder):
            pack(os.path.join(folder, "nsys.sqlite"), os.path.join(keep, "nsys.sqlite.gz"))
    print(json.dumps({name: os.path.getsize(os.path.join(keep, name)) for name in sorted(os.listdir(keep))}))


if __name__ == "__main__":
    main()
