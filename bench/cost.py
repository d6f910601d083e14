#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What plumb says that recording costs, compared with what it measures, for each workload of bench/overhead.py.

    python3 bench/cost.py [--workload W]… [--pairs N] [--seconds S] [--plumb PATH] [-o FILE.md]
    python3 bench/cost.py --blocks FILE.json

Each workload runs under `plumb run --measure-cost`: once for the profile, then --pairs times with plumb and without. The estimate
is that of the same profile without what was measured. "within" says whether the estimated cost is within a third of the
measured one. An estimate of a cost that is smaller than the noise of the runs says nothing: then "within" is "noise".

--blocks takes what `bench/overhead.py --mode light --json FILE` wrote: many workloads in a few minutes. The blocks of a workload
stand for its steps, and the estimate is the sum of its parts on the host, because between blocks the GPU has nothing to do. So
workloads that the GPU limits say nothing there.

The goal: of the workloads whose cost is larger than the noise, 80 % within, and the others unknown. The rates are in
src/analyze/cost_estimate.c.
"""
import argparse
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from overhead import TEN, cost_of, interval  # noqa: E402

USUAL = ["gptsmall", "gpt124", "llama", "graph", *TEN]
WITHIN = 1 / 3


def work(workload, iterations, tiny):
    """The program: the workload's step, so often. 0: says how long a step takes, in seconds."""
    import torch
    if workload in TEN:
        import models as workloads
    else:
        import workloads
    torch.manual_seed(0)
    step = workloads.make(workload, tiny) if workload in TEN else workloads.make(workload)
    synchronize = torch.cuda.synchronize if torch.cuda.is_available() else lambda: None
    for _ in range(5):
        step()
    synchronize()
    before = time.perf_counter()
    for _ in range(iterations or 10):
        step()
    synchronize()
    if not iterations:
        print((time.perf_counter() - before) / 10)


def measure(workload, folder, options):
    """(measured, estimated), as `report --json` has them; None: the workload cannot run here, and why is said."""
    command = [options.python, os.path.join(HERE, "cost.py"), "--tiny" if options.tiny else "--full", "--work", workload]
    path = os.path.join(folder, f"{workload}.plumb")
    alone = subprocess.run([*command, "0"], capture_output=True, text=True)
    if alone.returncode:
        print(f"{workload} was not measured: {alone.stderr.strip().splitlines()[-1]}", flush=True)
        return None
    iterations = max(50, round(options.seconds / float(alone.stdout.split()[-1])))
    subprocess.run([options.plumb, "run", "--quiet", f"--measure-cost={options.pairs}", "-o", path, "--", *command,
                    str(iterations)], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    measured = cost_of(options.plumb, path)
    shutil.copy(path, path + ".estimate")
    database = sqlite3.connect(path + ".estimate")
    database.execute("DELETE FROM costs")
    database.commit()
    database.close()
    return measured, cost_of(options.plumb, path + ".estimate")


def compare(measured, estimated):
    """The estimated cost by the measured one, and what is to be said of it."""
    if measured["kind"] is None:
        return None, f"not measured: {measured['why']}"
    if measured["scope"] != "step":
        return None, "the run as a whole was measured"
    if estimated["kind"] is None:
        return None, f"unknown: {estimated['why']}"
    if not measured["low"] or measured["low"] <= 1:
        return None, "noise"
    share = (estimated["ratio"] - 1) / (measured["ratio"] - 1)
    return share, "yes" if abs(share - 1) <= WITHIN else "**no**"


def text_of(cost):
    if cost["kind"] is None:
        return "unknown"
    text = f"{(cost['ratio'] - 1) * cost['plain_ns'] / 1e6:.3f} ms, {cost['ratio']:.3f}×"
    if cost["low"]:
        text += f" ({cost['low']:.3f}–{cost['high']:.3f})"
    return text + (", hidden" if cost["hidden"] else "")


def table(rows):
    out = ["| workload | ms/step without plumb | measured (95 % interval) | estimate | estimate / measured | within |",
           "|---|---|---|---|---|---|"]
    verdicts = []
    for workload, measured, estimated in rows:
        share, verdict = compare(measured, estimated)
        verdicts.append(verdict)
        plain = "–" if measured["plain_ns"] is None else f"{measured['plain_ns'] / 1e6:.3f}"
        out.append(f"| {workload} | {plain} | {text_of(measured)} | {text_of(estimated)} | "
                   f"{'–' if share is None else f'{share:.2f}'} | {verdict} |")
    known = sum(verdict in ("yes", "**no**") for verdict in verdicts)
    out += ["", f"{verdicts.count('yes')} of {known} estimates are within a third; workloads that tell nothing: {len(rows) - known}."]
    return "\n".join(out) + "\n"


def compare_blocks(raw):
    """One workload of bench/overhead.py as a row of Markdown: what an iteration costs, and the sum of the estimate's parts."""
    light, plain = raw["modes"]["light"], raw["modes"]["none"]
    parts = light["cost"]["parts"]
    pairs = [(b["seconds"] - a["seconds"]) * 1e3 for a, b in zip(plain["blocks"], light["blocks"])]
    middle, low, high = interval(pairs)
    cells = [raw["workload"], f"{middle:.3f} ms ({low:.3f}–{high:.3f})"]
    if not parts:
        return cells + ["unknown: " + light["cost"]["why"], "–", "–"]
    # An iteration may be several steps of the loop that plumb found.
    each = max(1, round(light["cost"]["steps"] / (raw["iterations"] * len(pairs))))
    estimate = each * sum(parts[name] for name in ("plumb_ns", "framework_ns", "driver_ns")) / 1e6
    verdict = "noise" if low <= 0 else "yes" if abs(estimate / middle - 1) <= WITHIN else "**no**"
    return cells + [f"{estimate:.3f} ms", f"{estimate / middle:.2f}" if low > 0 else "–", verdict]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--workload", action="append")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10, help="how long the loop of a run takes")
    parser.add_argument("--plumb", default=shutil.which("plumb") or "plumb")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--tiny", action="store_true", help="small models, for machines without a GPU")
    parser.add_argument("--full", action="store_false", dest="tiny", help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output")
    parser.add_argument("--blocks", metavar="FILE.json")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        return work(options.work[0], int(options.work[1]), options.tiny)
    if options.blocks:
        with open(options.blocks, encoding="utf-8") as file:
            rows = [compare_blocks(raw) for raw in json.load(file)]
        print("| workload | an iteration more (95 % interval) | estimate | estimate / measured | within |\n|---|---|---|---|---|")
        return print("\n".join("| " + " | ".join(row) + " |" for row in rows))
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        for workload in options.workload or USUAL:
            costs = measure(workload, folder, options)
            if costs:
                rows.append((workload, *costs))
                print(table(rows[-1:]).splitlines()[2], flush=True)
    text = table(rows)
    print("\n" + text)
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
