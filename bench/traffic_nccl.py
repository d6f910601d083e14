# SPDX-License-Identifier: Apache-2.0
"""What `plumb run --traffic` costs NCCL's all-reduce, from 4 MB to 1 GB: the same job without plumb, under plumb run, and under
plumb run --traffic, in turn.

    python3 bench/traffic_nccl.py [--plumb build/plumb] [--python PYTHON] [--ranks 2] [--rounds 5] [--sizes 4,16,64,256,1024]

PYTHON has PyTorch with CUDA. Each round starts the job once in each way; a size is timed in batches, of which the fastest counts. A ratio
compares with the job without plumb in the same round; the table has the median of the ratios, with the least and the greatest. It
also checks that the profile has each all-reduce with its bytes and times.
"""
import argparse
import json
import os
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile

GOAL = 1.02
WORKER = """
import json, os, sys, time, torch, torch.distributed as dist
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
times = {}
for size in json.loads(sys.argv[1]):
    data = torch.zeros(size // 4, device="cuda")
    count = max(5, min(200, (1 << 30) // size))
    for _ in range(5):
        dist.all_reduce(data)
    best = float("inf")
    for _ in range(5):
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            dist.all_reduce(data)
        torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - start) / count)
    times[size] = best
    del data
if rank == 0:
    print("TIMES", json.dumps({"times": times, "nccl": ".".join(map(str, torch.cuda.nccl.version())),
                               "device": torch.cuda.get_device_name()}), flush=True)
dist.destroy_process_group()
"""
WAYS = {"nothing": None, "plumb": [], "traffic": ["--traffic"]}


def run(options, way, folder, sizes):
    path = folder / f"{way}.plumb"
    command = [options.python, "-m", "torch.distributed.run", "--nproc-per-node", str(options.ranks), "--master-port",
               str(options.port), str(folder / "worker.py"), json.dumps(sizes)]
    if WAYS[way] is not None:
        command = [options.plumb, "run", *WAYS[way], "--force", "-q", "-o", str(path), "--", *command]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    lines = [line for line in done.stdout.splitlines() if line.startswith("TIMES ")]
    if done.returncode or not lines:
        sys.exit(f"{way}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    return json.loads(lines[0][len("TIMES "):]), path


def check(path, sizes, ranks):
    """Says what the profile knows of the all-reduces."""
    database = sqlite3.connect(path)
    for size in sizes:
        calls = 5 + 5 * max(5, min(200, (1 << 30) // size))
        count, timed, groups, numbers = database.execute(
            "SELECT count(*), count(end_ns), count(DISTINCT group_name || ranks), count(DISTINCT sequence) FROM collectives"
            " WHERE operation = 'AllReduce' AND bytes = ?", (size,)).fetchone()
        right = count == calls * ranks and timed == count and groups == 1 and numbers == calls
        print(f"  {size >> 20:5d} MB: {count} of {calls * ranks} all-reduces, {timed} with times, {groups} group: "
              f"{'PASS' if right else 'FAIL'}")
    print("  ledger:", database.execute("SELECT fate, sum(count) FROM ledger WHERE source = 'collective' GROUP BY 1").fetchall())
    database.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--plumb", default="build/plumb")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--port", type=int, default=29517)
    parser.add_argument("--sizes", default="4,16,64,256,1024", help="in MB")
    options = parser.parse_args()
    options.plumb = str(pathlib.Path(options.plumb).resolve())
    sizes = [int(size) << 20 for size in options.sizes.split(",")]
    rounds = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "worker.py").write_text(WORKER)
        for _ in range(options.rounds):
            one, paths = {}, {}
            for way in WAYS:
                one[way], paths[way] = run(options, way, folder, sizes)
            rounds.append(one)
            print(json.dumps({way: result["times"] for way, result in one.items()}), flush=True)
        first = rounds[0]["nothing"]
        print(f"{first['device']} × {options.ranks}, NCCL {first['nccl']}, {options.rounds} rounds")
        check(paths["traffic"], sizes, options.ranks)
    print(f"{'size':>8}  {'all-reduce':>11}  {'plumb':>22}  {'plumb --traffic':>22}")
    for size in sizes:
        cells = []
        for way in ("plumb", "traffic"):
            ratios = sorted(one[way]["times"][str(size)] / one["nothing"]["times"][str(size)] for one in rounds)
            cells.append(f"{statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})")
        base = statistics.median(one["nothing"]["times"][str(size)] for one in rounds)
        print(f"{size >> 20:5d} MB  {base * 1e6:8.1f} µs  {cells[0]:>22}  {cells[1]:>22}")
    print(f"goal: plumb --traffic ≤ {GOAL}")


if __name__ == "__main__":
    main()
