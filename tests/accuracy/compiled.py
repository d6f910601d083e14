#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiled models on a GPU: each kernel must know what it was made from.

    python3 tests/accuracy/compiled.py [--plumb PATH] [--keep FOLDER]

Needs PyTorch with CUDA and Triton. Prints a line for each fact, PASS or FAIL, and the seconds that compiling
took with plumb and without; exits 0 or 1. --keep puts the profiles, the generated files and the compiler's log there.
"""
import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "python"))

import plumb  # noqa: E402

PROGRAM = '''\
import sys, time
import torch
import triton
import triton.language as tl


@triton.jit
def scaled_add(x, y, out, n, BLOCK: tl.constexpr):  # @scaled_add
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = at < n
    tl.store(out + at, tl.load(x + at, mask=keep) * 2.0 + tl.load(y + at, mask=keep), mask=keep)


def by_hand(x, y):
    out = torch.empty_like(x)
    scaled_add[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), BLOCK=256)
    return out


def chain(x, y):
    a = x * y  # @mul
    b = torch.relu(a)  # @relu
    return b + 1.5  # @add


def chain_with_hand(x, y):
    a = torch.sin(x) * y
    return by_hand(a, y).cos() + 1


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = torch.nn.Linear(64, 128)
        self.l2 = torch.nn.Linear(128, 8)
        self.norm = torch.nn.LayerNorm(128)

    def forward(self, x):
        h = self.l1(x)  # @net
        h = self.norm(torch.nn.functional.gelu(h))
        h = self.l2(h)
        return torch.softmax(h, dim=-1)  # @net_end


mode = sys.argv[1] if len(sys.argv) > 1 else None
net = Net().cuda()
runs = [torch.compile(f, mode=mode) for f in (net, chain, chain_with_hand)]
x = torch.randn(32, 64, device="cuda")
begin = time.time()
for i in range(8):
    net.zero_grad()  # a gradient of the last step would be a graph's memory, and be written over
    torch.compiler.cudagraph_mark_step_begin()
    runs[0](x).sum().backward()
    runs[1](x, x)
    by_hand(x, x)
    runs[2](x, x)
torch.cuda.synchronize()
print("compiled in", round(time.time() - begin, 2))
'''
MARKS = {name: number for number, line in enumerate(PROGRAM.splitlines(), 1)
         for name in re.findall(r"# @(\w+)", line)}
failed = 0


def fact(holds, what, more=""):
    global failed
    failed += not holds
    print("PASS" if holds else "FAIL", what, "" if holds else more, flush=True)


def run(command, folder, cache, **environment):
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": cache, "TRITON_CACHE_DIR": cache + ".triton",
                   **environment}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, timeout=280)
    assert done.returncode == 0, f"{command}: exit code {done.returncode}\n{done.stderr[-3000:]}"
    return float(re.search(r"compiled in ([\d.]+)", done.stdout)[1])


def parts(node):
    """(operators, lines of the program) that a node was made from."""
    operators, lines = set(), set()
    for reason, origin in node.origins:
        if reason != "fused":
            continue
        if origin.kind == "operator":
            operators.add(origin.name)
            origin = origin.parent
        if origin.kind == "python" and os.path.basename(origin.file or "") == "program.py":
            lines.add(origin.line)
    return operators, lines


def is_call(node):
    """It ran for a call of compiled code, not for the tuning of its launch."""
    above = list(node.ancestors)
    return (any(a.kind == "graph" for a in above)
            or any(re.search(r"/c[a-z2-7]{51}\.py$", a.file or "") for a in above)
            and not any("bench" in a.name.lower() for a in above))


def check(path, what, lines_wanted=True):
    profile = plumb.Profile(path)
    seen = collections.defaultdict(lambda: [set(), set()])
    bare = set()
    for kernel in profile.kernels:
        if not kernel.name.startswith("triton_") or not is_call(kernel):
            continue
        operators, lines = parts(kernel)
        seen[kernel.name][0].update(operators)
        seen[kernel.name][1].update(lines)
        if not operators and not lines:
            bare.add(kernel.path)
    fact(len(seen) >= 6, f"{what}: the compiled kernels are there", sorted(seen))
    fact(not bare, f"{what}: each has origins", sorted(bare)[:3])
    if lines_wanted:
        fact(all(lines for _, lines in seen.values()), f"{what}: each has lines",
             [name for name, (_, lines) in seen.items() if not lines])
        found = seen.get("triton_poi_fused_add_mul_relu_0", [set(), set()])
        fact(found[0] == {"aten::mul", "aten::relu", "aten::add"}
             and found[1] == {MARKS["mul"], MARKS["relu"], MARKS["add"]},
             f"{what}: the chain's kernel has its three operators and lines", found)
        net = [lines for name, (_, lines) in seen.items() if "layer_norm" in name or "softmax" in name]
        fact(net and all(MARKS["net"] <= line <= MARKS["net_end"] for lines in net for line in lines),
             f"{what}: the model's kernels have lines of its forward", net)
    hand = [k for k in profile.kernels if k.name == "scaled_add"]
    places = {row for row in profile._database.execute(
        "SELECT source_file, source_line FROM frames WHERE kind = 'kernel' AND name = 'scaled_add'")}
    fact(hand and all(os.path.basename(file or "") == "program.py"
                      and line in (MARKS["scaled_add"], MARKS["scaled_add"] - 1) for file, line in places),
         f"{what}: the kernel that was written by hand says where", places)
    for row in profile._database.execute(
            "SELECT fate, detail, sum(count) FROM ledger WHERE source = 'provenance' GROUP BY 1, 2"):
        print("    ledger", *row)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plumb", default=os.path.join(HERE, "..", "..", "build", "plumb"))
    parser.add_argument("--keep", metavar="FOLDER")
    options = parser.parse_args()
    tool = os.path.abspath(options.plumb)
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "program.py")
        with open(program, "w") as file:
            file.write(PROGRAM)

        def profiled(name, cache, *arguments, **environment):
            path = os.path.join(folder, name + ".plumb")
            seconds = run([tool, "run", "-o", path, "--", sys.executable, program, *arguments], folder,
                          os.path.join(folder, cache), **environment)
            if options.keep:
                os.makedirs(options.keep, exist_ok=True)
                shutil.copy(path, options.keep)
            return path, seconds

        plain = run([sys.executable, program], folder, os.path.join(folder, "plain"))
        log = os.path.join(folder, "log")
        first, seconds = profiled("cold", "cold")
        print(f"    compiled in {seconds} s with plumb, {plain} s without")
        check(first, "cold")
        check(profiled("warm", "cold")[0], "from the compiler's cache", lines_wanted=False)
        check(profiled("provenance", "cold", INDUCTOR_PROVENANCE="1", TORCH_TRACE=log)[0],
              "INDUCTOR_PROVENANCE", lines_wanted=False)  # a backward pass from the cache has none
        check(profiled("provenance2", "cold", INDUCTOR_PROVENANCE="1")[0],
              "INDUCTOR_PROVENANCE from the cache", lines_wanted=False)
        check(profiled("anew", "cold", TORCHINDUCTOR_FORCE_DISABLE_CACHES="1")[0], "compiled anew")
        run([sys.executable, program, "reduce-overhead"], folder, os.path.join(folder, "graphs0"))
        check(profiled("graphs", "graphs", "reduce-overhead")[0], "CUDA graphs")
        if options.keep:
            shutil.copytree(log, os.path.join(options.keep, "log"), dirs_exist_ok=True)
            for base, _, files in os.walk(os.path.join(folder, "cold")):
                for name in files:
                    if re.fullmatch(r"c[a-z2-7]{51}\.py", name):
                        shutil.copy(os.path.join(base, name), options.keep)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
