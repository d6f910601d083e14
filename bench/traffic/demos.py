#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""demos.py --gpus N --plumb PATH [--only NAME,…] [--out FOLDER]: programs that move data they need not, and the same
without the mistake. Needs two GPUs, nvcc, the Compute Sanitizer, and for the last two NCCL and PyTorch.

    bfs        addresses of flags lie on the wrong GPU: a finding by object and line; none when each GPU has its own
    halo       a stencil gets its neighbour's whole part and reads a row: a finding; none with the row alone
    allreduce  NCCL's ring and its tree: with four GPUs or more their matrices differ, with two they are the same
    parallel   a network in PyTorch, by data (all-reduces, no copies) and by model (copies of activations, no all-reduces)

Records each, asks `plumb traffic --json`, prints PASS or FAIL and the first lines of `plumb traffic`.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

import run as bench

HERE = pathlib.Path(__file__).resolve().parent
LINES = 8
STRONG = 0.1  # of the strongest pair: less is acknowledgement


def line_of(file, mark):
    """Where the program FILE does what the comment MARK says."""
    for number, line in enumerate((HERE / "demos" / file).read_text().splitlines(), 1):
        if line.endswith(mark):
            return f"{file}:{number}"
    raise SystemExit(f"demos.py: {file} has no line with the mark {mark!r}")


# ---- programs and profiles ----

def build(args):
    nvcc = args.nvcc or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    for name in ("bfs", "halo"):
        subprocess.run([nvcc, "-std=c++17", "-O2", "-g", "-lineinfo", "-arch=" + args.arch, "-o", args.out / name,
                        HERE / f"demos/{name}.cu", "-lcuda"], check=True)


def record(args, name, options, command, **environment):
    """Runs COMMAND under plumb; what it printed, the answer of plumb traffic and the text's first lines."""
    profile = args.out / f"{name}.plumb"
    profile.unlink(missing_ok=True)
    told = bench.run([args.plumb, "run", "-q", *options, "-o", profile, "--", *command], **environment)
    if not profile.exists():
        return told, None, told.get("why", "no profile")
    done = subprocess.run([args.plumb, "traffic", profile, "--json"], capture_output=True, text=True)
    text = subprocess.run([args.plumb, "traffic", profile], capture_output=True, text=True)
    answer = json.loads(done.stdout) if done.returncode == 0 else None
    return told, answer, "\n".join((text.stdout or text.stderr).splitlines()[:LINES])


def findings(answer, cause):
    return [f for f in answer["findings"] if f["evidence"].get("cause") == cause]


def devices(answer, which):
    """The matrix of GPUs only."""
    places = [i for i, p in enumerate(answer["parties"]) if p["kind"] == "device"]
    return [[answer["matrices"][which][i][k] for k in places] for i in places]


class Checks:
    def __init__(self):
        self.failed = 0

    def say(self, name, wrong, text=""):
        self.failed += bool(wrong)
        print(f"{'FAIL' if wrong else 'PASS'}  {name}{': ' + '; '.join(wrong) if wrong else ''}", flush=True)
        for line in text.splitlines():
            print("      " + line)


def has_finding(answer, cause, object_at, reached):
    """What is missing of a finding that names where the object was allocated and the line that reaches it."""
    found = findings(answer, cause)
    if not found:
        return [f"no finding {cause}; there are {[f['evidence'].get('cause') for f in answer['findings']]}"]
    wrong = []
    for one in found:
        at, lines = one["evidence"]["allocated_at"], [r["line"] for r in one["evidence"]["reached_at"]]
        if at not in object_at:
            wrong.append(f"the object was allocated at {at}, not {' or '.join(object_at)}")
        if reached and not any(reached in line for line in lines):
            wrong.append(f"it is reached at {lines}, not {reached}")
    return wrong


# ---- demos ----

def bfs(args, checks):
    array, load = line_of("bfs.cu", "// the array of addresses"), line_of("bfs.cu", "// the load of an address")
    for version in ("wrong", "right"):
        told, answer, text = record(args, f"bfs-{version}", ["--traffic=full"], [args.out / "bfs", version, args.gpus])
        wrong = [] if told["ok"] else [f"the program: {told.get('why', 'wrong result')}"]
        if not answer:
            wrong.append("plumb traffic has no answer")
        elif version == "wrong":
            wrong += has_finding(answer, "pointers", [array], load)
        elif findings(answer, "pointers"):
            wrong.append("the fixed program has the finding, too")
        checks.say(f"bfs {version}", wrong, text)


def halo(args, checks):
    ghosts = [line_of("halo.cu", "// the halo above"), line_of("halo.cu", "// the halo below")]
    moved = line_of("halo.cu", "// the halo is moved")
    sums = {}
    for way in ("pull", "push", "copy"):
        for version in ("wrong", "right"):
            name = f"halo {version} {way}"
            told, answer, text = record(args, name.replace(" ", "-"), ["--traffic=full", "--traffic-own"],
                                        [args.out / "halo", version, way, args.gpus])
            wrong = [] if told["ok"] else [f"the program: {told.get('why')}"]
            sums[told.get("sum")] = name
            if not answer:
                wrong.append("plumb traffic has no answer")
            elif version == "right":
                if findings(answer, "halo"):
                    wrong.append("the fixed program has the finding, too")
            else:
                wrong += has_finding(answer, "halo", ghosts, None if way == "copy" else moved)
                if len(findings(answer, "halo")) != 2 * args.gpus:
                    wrong.append(f"{len(findings(answer, 'halo'))} findings, not one for each of {2 * args.gpus} halos")
            rows = 256 if version == "wrong" else 1
            total = sum(map(sum, devices(answer, "flow"))) - sum(row[i] for i, row in enumerate(devices(answer, "flow"))) \
                if answer else 0
            if answer and total != args.gpus * 2 * 20 * rows * 4096:
                wrong.append(f"{total} bytes between GPUs, not {args.gpus * 2 * 20 * rows * 4096}")
            checks.say(name, wrong, text)
    checks.say("halo: all versions have one result", [] if len(sums) == 1 else [str(sums)])


def partners(matrix):
    """To how many others each GPU sends much."""
    most = max(map(max, matrix), default=0)
    return sorted(sum(cell > STRONG * most for k, cell in enumerate(row) if k != i) for i, row in enumerate(matrix))


def allreduce(args, checks):
    program = args.out / "nccl"
    if not program.exists():
        print("SKIP  allreduce: no nccl.h was found (--nccl)")
        return
    n, sent_to = args.gpus, {}
    for algorithm in ("Ring", "Tree"):
        environment = {"NCCL_ALGO": algorithm, "NCCL_PROTO": "Simple", "NCCL_NVLS_ENABLE": "0"}
        command = [program, 16 << 20, 3, n]
        _, calls, _ = record(args, f"allreduce-{algorithm}-calls", ["--traffic"], command, **environment)
        told, answer, text = record(args, f"allreduce-{algorithm}", ["--traffic=full"], command, **environment)
        wrong = [] if told["ok"] else [f"the program: {told.get('why')}"]
        said = {c["algorithm"] for c in calls["collectives"]} if calls else set()
        if said != {algorithm.upper()}:
            wrong.append(f"NCCL says that the algorithm is {said}")
        if not answer:
            wrong.append("plumb traffic has no answer")
        else:
            sent_to[algorithm] = partners(devices(answer, "flow"))
            if algorithm == "Ring" and sent_to["Ring"] != [1] * n:
                wrong.append(f"in a ring, GPUs send to {sent_to['Ring']} others: {devices(answer, 'flow')}")
            if algorithm == "Tree" and n > 2 and sent_to["Tree"] == sent_to.get("Ring"):
                wrong.append(f"in a tree, GPUs send to as many others as in a ring: {devices(answer, 'flow')}")
        checks.say(f"allreduce {algorithm}: GPUs send to {sent_to.get(algorithm)} others", wrong, text)
    if n == 2:
        print("      (with two GPUs, ring and tree send over the same pair: it takes more to see the difference)")


def parallel(args, checks):
    script = HERE / "demos/parallel.py"
    told, answer, text = record(args, "parallel-data", ["--traffic"], [
        args.python, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={args.gpus}", script, "data"])
    wrong = [] if told["ok"] else [f"the program: {told.get('why')}"]
    if answer:
        flow = devices(answer, "flow")
        copied = sum(cell for i, row in enumerate(flow) for k, cell in enumerate(row) if i != k)
        reduced = sum(c["all_bytes"] for c in answer["collectives"] if c["name"] == "AllReduce" and c["bytes"] > 64)
        if copied:
            wrong.append(f"{copied} bytes were copied between GPUs")
        if reduced != told.get("reduced", 0) * args.gpus:
            wrong.append(f"all-reduces of {reduced} bytes, not {args.gpus} × {told.get('reduced')}")
    else:
        wrong.append("plumb traffic has no answer")
    checks.say("parallel by data", wrong, text)
    told, answer, text = record(args, "parallel-model", ["--traffic"], [args.python, script, "model", args.gpus])
    wrong = [] if told["ok"] else [f"the program: {told.get('why')}"]
    if answer:
        flow, each, n = devices(answer, "flow"), told.get("activations", 0), args.gpus
        expected = [[each if abs(i - k) == 1 else 0 for k in range(n)] for i in range(n)]
        if [[0 if i == k else flow[i][k] for k in range(n)] for i in range(n)] != expected:
            wrong.append(f"{flow} bytes flow, not {expected}")
        if answer["collectives"]:
            wrong.append("there are collectives")
        line = line_of("parallel.py", "# activations move")
        if not any(f"{pathlib.Path(row['user_file'] or '').name}:{row['user_line']}" == line for row in answer["lines"]):
            wrong.append(f"no line is {line}: {[row['label'] for row in answer['lines']]}")
    else:
        wrong.append("plumb traffic has no answer")
    checks.say("parallel by model", wrong, text)


DEMOS = {"bfs": bfs, "halo": halo, "allreduce": allreduce, "parallel": parallel}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--plumb", type=pathlib.Path, default=bench.ROOT / "build/plumb")
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=pathlib.Path, default=bench.ROOT / "build/demos")
    parser.add_argument("--nvcc")
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--nccl", help="a folder below which nccl.h is; else that of the package nvidia-nccl")
    parser.add_argument("--python", default=sys.executable, help="which has PyTorch")
    args = parser.parse_args()
    args.out = args.out.resolve()
    args.out.mkdir(parents=True, exist_ok=True)
    args.plumb = args.plumb.resolve()
    names = [name for name in args.only.split(",") if name] or list(DEMOS)
    unknown = [name for name in names if name not in DEMOS]
    if unknown:
        sys.exit(f"demos.py: no demo {', '.join(unknown)}; there are {', '.join(DEMOS)}")
    build(args)
    if "allreduce" in names:
        bench.build_nccl(args)
    checks = Checks()
    for name in names:
        DEMOS[name](args, checks)
    print(f"{checks.failed} failed" if checks.failed else "all passed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    os.environ.setdefault("NVSHMEM_DISABLE_NVLS", "1")
    sys.exit(main())
