#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py [--gpus N] [--only NAME,…] [--seeds K] [--no-speed] [--out FOLDER]: traffic that is known from formulas,
and what recording it costs. Needs two GPUs, nvcc and the Compute Sanitizer.

Builds the programs of this folder, runs each without plumb and with --traffic=full, and compares the bytes and accesses of
each kind from each GPU to each GPU with the formula. `unequal` also runs with sampled:0.1 and many seeds. Then each
program of speed.cu (and nccl.cu, where NCCL's header is found) is timed. Writes traffic.json and traffic.md into FOLDER.
"""
import argparse
import json
import math
import os
import pathlib
import shutil
import sqlite3
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
N = 10000
WIDTHS = 1 + 2 + 4 + 8 + 16
LIMIT_S = 240


# ---- what each program does: {(kind, from, to): bytes} of n GPUs ----

def ring(n):
    return {("store", i, (i + 1) % n): N * WIDTHS + 5 * 4 for i in range(n)}


def load(n):
    return {("load", (i + 1) % n, i): N * WIDTHS for i in range(n)}


def mixed(n):
    lanes = [sum(lane % n == k for lane in range(32)) for k in range(n)]
    return {("store", i, k): 4096 // 32 * lanes[k] * 4 for i in range(n) for k in range(n) if i != k}


def halo(n):
    found = {}
    for i in range(n):
        for k in ((i + 1) % n, (i - 1) % n):
            found["store", i, k] = found.get(("store", i, k), 0) + 10 * 1024 * 4
    return found


def transpose(n):
    return {("store", i, k): 8192 * 8 for i in range(n) for k in range(n) if i != k}


def pointers(n, fixed=False):
    found = {("store", i, (i + 1) % n): 4 * 1000 for i in range(n)}
    if not fixed:
        found |= {("load", n - 1, i): 8 * 1000 for i in range(n - 1)}
    return found


def atomics(n):
    return {("atomic", i, (i + 1) % n): 3 * 4096 * 4 for i in range(n)}


def reuse(n):
    return {("store", i, owner): 4 * 1000 * (owner + 1) for i in range(n) for owner in range(n) if i != owner}


def copies(_):
    return {("copy", 0, 1): 1111 + 2222 + 3333 + 2 * 1000 * 50 + 3 * 4444}


def bulk(n):
    found = {}
    for i in range(n):
        k = (i + 1) % n
        found |= {("async copy", k, i): 2048, ("bulk load", k, i): 2048, ("bulk store", i, k): 1024,
                  ("bulk reduction", i, k): 512}
    return found


def graph(n):
    return {("store", i, (i + 1) % n): 7 * N * 4 for i in range(n)}


def unequal(n):
    return {("store", i, (i + 1) % n): 4000 // 8 * 255 * 32 * 4 for i in range(n)}


ORACLES = {
    "ring": ring, "load": load, "mixed": mixed, "halo": halo, "transpose": transpose, "pointers": pointers,
    "pointers-fixed": lambda n: pointers(n, True), "atomics": atomics, "reuse": reuse,
    "objects": lambda n: {("store", 0, 1): 7 * 32}, "copies": copies, "bulk": bulk,
    "ipc": lambda n: {("store", 0, 1): N * 4}, "file": lambda n: {("store", 0, 1): N * 4}, "graph": graph, "unequal": unequal, "tensor": lambda n: {},
}


# ---- programs ----

def build(args):
    nvcc = args.nvcc or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    flags = ["-std=c++17", "-O2", "-lineinfo", "-arch=" + args.arch]
    for name in ("oracles", "speed", "tensor"):
        subprocess.run([nvcc, *flags, "-o", args.out / name, HERE / f"{name}.cu", "-lcuda"], check=True)
    build_nccl(args)
    build_nvshmem(args)


def package(header):
    """The folder of the first Python package with HEADER, below NVIDIA's, or None."""
    for folder in sys.path:
        for found in pathlib.Path(folder).glob(f"nvidia/*/include/{header}"):
            return found.parent.parent
    return None


def build_nccl(args):
    nvcc = args.nvcc or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    folder = package("nccl.h")
    if args.nccl:
        header = next(pathlib.Path(args.nccl).rglob("nccl.h"), None)
        folder = header and header.parent.parent
    library = folder and next(iter(sorted((folder / "lib").glob("libnccl.so*"))), None)
    if library:
        subprocess.run([nvcc, "-std=c++17", "-O2", "-lineinfo", "-arch=" + args.arch, "-o", args.out / "nccl", HERE / "nccl.cu",
                        f"-I{folder / 'include'}", "-lcuda", "-Xlinker", str(library), "-Xlinker",
                        f"-rpath={folder / 'lib'}"], check=True)


def build_nvshmem(args):
    """NVSHMEM's package has headers, the library for GPUs and that for the host."""
    nvcc = args.nvcc or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    folder = package("nvshmem.h")
    library = folder and next(iter(sorted((folder / "lib").glob("libnvshmem_host.so*"))), None)
    if library:
        subprocess.run([nvcc, "-std=c++17", "-O2", "-g", "-lineinfo", "-rdc=true", "-arch=" + args.arch, "-o",
                        args.out / "nvshmem", HERE / "nvshmem.cu", f"-I{folder / 'include'}", "-lcuda",
                        folder / "lib/libnvshmem_device.a", "-Xlinker", str(library), "-Xlinker", f"-rpath={folder / 'lib'}"],
                       check=True)


def answer(done):
    """The line of JSON that a program prints, or why there is none."""
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            return json.loads(line)
    return {"ok": False, "why": f"exit code {done.returncode}: {(done.stderr or done.stdout)[-600:]}"}


def run(command, **environment):
    start = time.monotonic()
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=LIMIT_S,
                              env=os.environ | environment)
    except subprocess.TimeoutExpired:
        return {"ok": False, "why": f"it hung for {LIMIT_S} s", "seconds_all": LIMIT_S}
    return answer(done) | {"seconds_all": time.monotonic() - start}


def record(args, traffic, program, *more, **environment):
    """Runs PROGRAM under plumb; its answer and the profile."""
    profile = args.out / "one.plumb"
    profile.unlink(missing_ok=True)
    told = run([args.plumb, "run", "-q", f"--traffic={traffic}", "-o", profile, "--", program, *more], **environment)
    return told, profile if profile.exists() else None


# ---- profiles ----

def transfers(profile):
    """{(kind, from, to): [bytes, accesses, variance]} of transfers between two devices."""
    with sqlite3.connect(profile) as db:
        ordinal = dict(db.execute("SELECT id, ordinal FROM devices"))
        found = {}
        for kind, source, target, size, accesses, error in db.execute(
                "SELECT kind, from_device, to_device, bytes, accesses, error_bytes FROM transfers"):
            if source is None or target is None or source == target:
                continue
            row = found.setdefault((kind, ordinal[source], ordinal[target]), [0, 0, 0.0])
            row[0] += size
            row[1] += accesses
            row[2] += (error or 0) ** 2
        return found


def moved_of_objects(profile, size):
    """{("to" or "from", initiator, owner): bytes} of kernels, of objects with SIZE bytes: what lies beside them is left out."""
    with sqlite3.connect(profile) as db:
        ordinal = dict(db.execute("SELECT id, ordinal FROM devices"))
        found = {}
        for writes, source, target, moved in db.execute(
                "SELECT o.id = to_object, from_device, to_device, SUM(t.bytes) FROM transfers t "
                "JOIN objects o ON o.id = coalesce(to_object, from_object) WHERE o.bytes = ? AND t.kind <> 'copy' "
                "GROUP BY 1, 2, 3", (size,)):
            if source is None or target is None or source == target:
                continue
            key = ("to", ordinal[source], ordinal[target]) if writes else ("from", ordinal[target], ordinal[source])
            found[key] = found.get(key, 0) + moved
        return found


def notes(profile):
    with sqlite3.connect(profile) as db:
        return sorted({f"{key}: {value}" for key, value in db.execute("SELECT key, value FROM environment")
                       if key.endswith((".off", ".gap"))})


def owners(profile):
    """Of accesses to objects: the kind, and whether the object is one of the same process."""
    with sqlite3.connect(profile) as db:
        return {(kind, bool(same)) for kind, same in db.execute(
            "SELECT t.kind, o.process = t.process FROM transfers t JOIN objects o ON o.id = coalesce(to_object, from_object) "
            "WHERE t.kind <> 'copy' AND from_device <> to_device")}


def objects(profile):
    """(allocations, bytes) of each object on GPU 1, sorted. The driver's own are small."""
    with sqlite3.connect(profile) as db:
        return sorted(db.execute("SELECT allocations, bytes FROM objects JOIN devices d ON objects.device = d.id "
                                 "WHERE d.ordinal = 1 AND kind = 'device memory' AND bytes >= 4096"))


# ---- checks ----

def check(args, name):
    program = args.out / ("tensor" if name == "tensor" else "oracles")
    plain = run([program, name, args.gpus])
    told, profile = record(args, "full", program, name, args.gpus)
    row = {"name": name, "plain_ok": plain["ok"], "recorded_ok": told["ok"], "why": told.get("why") or plain.get("why"),
           "seconds_plain": plain["seconds_all"], "seconds_full": told["seconds_all"]}
    if not profile or not plain["ok"]:
        return row | {"right": False}
    expected = ORACLES[name](args.gpus)
    found = {key: value[0] for key, value in transfers(profile).items()}
    wrong = [{"kind": key[0], "from": key[1], "to": key[2], "expected": expected.get(key, 0), "found": found.get(key, 0)}
             for key in sorted(set(expected) | set(found)) if expected.get(key, 0) != found.get(key, 0)]
    if name == "objects" and objects(profile) != sorted([(5, 20480), (1, 8192), (1, 12288)]):
        wrong.append({"objects": objects(profile)})
    if name in ("ipc", "file") and owners(profile) != {("store", False)}:
        wrong.append({"the object's process is that of the access": sorted(owners(profile))})
    if name == "tensor":  # two instructions in the module of each GPU
        said = f"{2 * args.gpus} instructions of loaded GPU code copy by tensor maps"
        text = subprocess.run([args.plumb, "traffic", profile], capture_output=True, text=True).stdout
        if said not in " ".join(text.split()):
            wrong.append({"not said": said, "but": text[-400:]})
    return row | {"right": not wrong and told["ok"], "wrong": wrong, "notes": notes(profile)}


def check_sampled(args, rate):
    truth = unequal(args.gpus)["store", 0, 1]
    errors, stated = [], []
    for seed in range(1, args.seeds + 1):
        _, profile = record(args, f"sampled:{rate}", args.out / "oracles", "unequal", args.gpus,
                            PLUMB_TRAFFIC_SEED=str(seed))
        row = profile and transfers(profile).get(("store", 0, 1), [0, 0, 0.0])
        if row:
            errors.append(row[0] - truth)
            stated.append(math.sqrt(row[2]))
    if len(errors) < 2:
        return {"rate": rate, "right": False, "why": "no profiles"}
    mean_error = math.sqrt(sum(s * s for s in stated)) / len(stated)
    far = sum(abs(e) > 3 * s for e, s in zip(errors, stated, strict=True))
    bias = statistics.mean(errors)
    return {"rate": rate, "seeds": len(errors), "truth": truth, "bias": bias, "standard_error_of_bias": mean_error,
            "spread": statistics.stdev(errors), "stated": math.sqrt(statistics.mean(s * s for s in stated)),
            "beyond_3": far, "right": abs(bias) < 3 * mean_error and far <= max(1, len(errors) // 50)}


def check_nccl(args):
    """A ring of n GPUs sends 2 (n - 1) / n of the bytes over each edge; tuning may choose another way, so bounds."""
    if not (args.out / "nccl").exists():
        return None
    size, times = 64 << 20, 3
    told, profile = record(args, "full", args.out / "nccl", size, times, args.gpus, NCCL_ALGO="Ring", NCCL_PROTO="Simple",
                           NCCL_NVLS_ENABLE="0")
    if not profile:
        return {"right": False, "why": told.get("why")}
    n = args.gpus
    least = (times + 1) * 2 * (n - 1) / n * size
    sent = {}
    for (kind, source, target), row in transfers(profile).items():
        if kind in ("store", "bulk store", "load", "bulk load"):
            sent[source] = sent.get(source, 0) + row[0]
    return {"expected_each": least, "sent": sent, "notes": notes(profile),
            "right": len(sent) == n and all(least <= b <= least * 1.02 for b in sent.values())}


def check_nvshmem(args):
    """A ring: two times COUNT numbers go to the next PE, and so many come from it."""
    if not (args.out / "nvshmem").exists():
        return None
    library = str(package("nvshmem.h") / "lib")
    environment = {"NVSHMEM_DISABLE_NVLS": "1", "NVSHMEM_REMOTE_TRANSPORT": "none",
                   "LD_LIBRARY_PATH": os.pathsep.join(filter(None, [library, os.environ.get("LD_LIBRARY_PATH")]))}
    plain = run([args.out / "nvshmem", args.gpus], **environment)
    told, profile = record(args, "full", args.out / "nvshmem", args.gpus, **environment)
    n, size = args.gpus, N * 4
    expected = {("to", i, (i + 1) % n): 2 * size for i in range(n)} | {("from", i, (i + 1) % n): size for i in range(n)}
    row = {"name": "nvshmem", "plain_ok": plain["ok"], "recorded_ok": told["ok"], "why": told.get("why") or plain.get("why")}
    if not profile:
        return row | {"right": False}
    found = moved_of_objects(profile, size)
    return row | {"right": told["ok"] and found == expected, "notes": notes(profile),
                  "wrong": [f"{key}: {found.get(key, 0)}, not {expected.get(key, 0)}" for key in sorted(set(found) | set(expected))
                            if found.get(key, 0) != expected.get(key, 0)],
                  "all": [f"{key}: {row[0]}" for key, row in sorted(transfers(profile).items())]}


LIBRARIES = {"nccl": check_nccl, "nvshmem": check_nvshmem}


def measure(args, name, command, traffics):
    rows = []
    plain = min((run(command) for _ in range(2)), key=lambda told: told.get("seconds", 1e9))
    for traffic in traffics:
        told, profile = record(args, traffic, *command)
        if "seconds" in told and "seconds" in plain:
            rows.append({"name": name, "traffic": traffic, "plain_s": plain["seconds"], "recorded_s": told["seconds"],
                         "factor": told["seconds"] / plain["seconds"],
                         "profile_bytes": profile.stat().st_size if profile else None})
        else:
            rows.append({"name": name, "traffic": traffic, "why": told.get("why") or plain.get("why")})
    return rows


def speed(args):
    program, n = args.out / "speed", args.gpus
    rows = measure(args, "stencil", [program, "stencil", n], ["full", "sampled:0.1", "sampled:0.01", "calls"])
    rows += measure(args, "bfs", [program, "bfs", n], ["full"])
    rows += measure(args, "spmv", [program, "spmv", n], ["full"])
    if (args.out / "nccl").exists():
        for size in (4 << 20, 64 << 20, 1 << 30):
            rows += measure(args, f"nccl {size >> 20} MB", [args.out / "nccl", size, 20, n], ["full", "calls"])
    return rows


def page(told):
    lines = ["| program | right | without plumb, s | full, s | |", "|---|---|---|---|---|"]
    for row in told["oracles"]:
        why = row.get("why") or "; ".join(map(str, row.get("wrong", [])[:3]))
        lines.append(f"| {row['name']} | {'yes' if row['right'] else 'NO'} | {row['seconds_plain']:.2f} | "
                     f"{row['seconds_full']:.2f} | {why} |")
    for row in told["sampled"]:
        lines.append(f"\nsampled:{row['rate']}: {json.dumps(row)}")
    for name in LIBRARIES:
        if told[name]:
            lines.append(f"\n{name}: {json.dumps(told[name])}")
    lines += ["", "| program | traffic | without plumb, s | with, s | factor |", "|---|---|---|---|---|"]
    for row in told["speed"]:
        if "factor" in row:
            lines.append(f"| {row['name']} | {row['traffic']} | {row['plain_s']:.3f} | {row['recorded_s']:.3f} | "
                         f"{row['factor']:.2f}× |")
        else:
            lines.append(f"| {row['name']} | {row['traffic']} | | | {row['why']} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--no-speed", action="store_true")
    parser.add_argument("--no-build", action="store_true")
    parser.add_argument("--nvcc")
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--nccl", help="a folder below which nccl.h is")
    parser.add_argument("--plumb", type=pathlib.Path, default=ROOT / "build/plumb")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/traffic")
    args = parser.parse_args()
    args.out = args.out.resolve()
    args.out.mkdir(parents=True, exist_ok=True)
    if not args.no_build:
        build(args)
    all_names = [*ORACLES, *LIBRARIES]
    names = [name for name in args.only.split(",") if name] or all_names
    unknown = [name for name in names if name not in all_names]
    if unknown:
        sys.exit(f"run.py: no program {', '.join(unknown)}; there are {', '.join(all_names)}")
    told = {"gpus": args.gpus, "oracles": [], "sampled": [], "nccl": None, "nvshmem": None, "speed": []}
    for name in filter(ORACLES.get, names):
        told["oracles"].append(check(args, name))
        print(json.dumps(told["oracles"][-1]), flush=True)
    if "unequal" in names and args.seeds:
        told["sampled"].append(check_sampled(args, 0.1))
        print(json.dumps(told["sampled"]), flush=True)
    for name in filter(LIBRARIES.get, names):
        told[name] = LIBRARIES[name](args)
        print(json.dumps({name: told[name]}), flush=True)
    if not args.no_speed and not args.only:
        told["speed"] = speed(args)
    (args.out / "traffic.json").write_text(json.dumps(told, indent=1) + "\n")
    (args.out / "traffic.md").write_text(page(told))
    print(page(told))
    rows = told["oracles"] + told["sampled"] + [told[name] for name in LIBRARIES if told[name]]
    return 0 if all(row["right"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
