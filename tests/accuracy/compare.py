#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""plumb against torch.profiler, operator by operator, on a GPU.

    python3 tests/accuracy/compare.py [--plumb PATH] [--keep FOLDER]

Runs training.py plain, twice under torch.profiler and twice under plumb, and checks:
- the results are bitwise the same in all runs;
- per operator name the number of kernels is torch.profiler's;
- for operators with at least 1 % of GPU time, that time is within 3 % of torch.profiler's, or within
  the spread of two equal runs (of torch.profiler or of plumb) where that is larger;
- every backward kernel lies under its forward operator or is counted as gradient accumulation or hook;
- at least 99.5 % of the kernels lie under a Python line.
Prints the table, then PASS or FAIL with what failed; exits 0 or 1.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "training.py")


def run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return done


def report(plumb, profile, *options):
    return json.loads(run([plumb, "report", profile, "--json", "--top", "0", *options], ".").stdout)


def plumb_operators(data):
    """Kernels by innermost operator or range, inside the range "accuracy"."""
    contexts = {context["id"]: context for context in data["contexts"]}
    inside, found, kernels, python = {}, {}, 0, 0

    def ancestors(context):
        while context is not None:
            yield context
            context = contexts.get(context["parent"])

    for context in data["contexts"]:
        if context["kind"] != "kernel":
            continue
        value = (context.get("exclusive") or {}).get("gpu.time")
        if not value:
            continue
        chain = list(ancestors(context))
        kernels += value["count"]
        if any(c["kind"] == "python" for c in chain):
            python += value["count"]
        owner = next((c for c in chain if c["kind"] in ("operator", "range")), None)
        # Backward work of the measured part hangs under its forward operators, inside the range too.
        if not any(c["kind"] == "range" and c["name"] == "accuracy" for c in chain):
            continue
        inside[context["id"]] = True
        row = found.setdefault(owner["name"] if owner else "(none)", {"count": 0, "ns": 0})
        row["count"] += value["count"]
        row["ns"] += value["sum"]
    return found, kernels, python


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--plumb", default=os.path.join(HERE, "..", "..", "build", "plumb"))
    parser.add_argument("--keep")
    options = parser.parse_args()
    plumb = os.path.abspath(options.plumb)
    folder = options.keep or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    folder = os.path.abspath(folder)
    python = sys.executable

    plain = run([python, PROGRAM], folder).stdout
    peers, outputs = [], [plain]
    for number in range(2):
        path = os.path.join(folder, f"torch{number}.json")
        outputs.append(run([python, PROGRAM, path], folder).stdout)
        with open(path) as data:
            peers.append(json.load(data))
    runs = []
    for number in range(2):
        profile = os.path.join(folder, f"accuracy{number}.plumb")
        if os.path.exists(profile):
            os.remove(profile)
        outputs.append(run([plumb, "run", "-o", profile, "--", python, PROGRAM], folder).stdout)
        runs.append(report(plumb, profile, "--by", "context"))
    data = runs[0]
    ours, kernels, with_python = plumb_operators(data)
    ours_again = plumb_operators(runs[1])[0]

    failures = []
    if len(set(outputs)) != 1:
        failures.append(f"results differ: {[o.strip()[:16] for o in outputs]}")
    total = sum(row["ns"] for row in peers[0].values())
    print("| operator | kernels torch | kernels plumb | µs torch | µs plumb | ratio |")
    print("|---|---|---|---|---|---|")
    for name in sorted({*peers[0], *ours}, key=lambda n: -(peers[0].get(n) or ours.get(n))["ns"]):
        a, b = peers[0].get(name, {"count": 0, "ns": 0}), ours.get(name, {"count": 0, "ns": 0})
        again = peers[1].get(name, {"count": 0, "ns": 0})
        ratio = b["ns"] / a["ns"] if a["ns"] else float("nan")
        print(f"| {name} | {a['count']} | {b['count']} | {a['ns'] / 1e3:.1f} | {b['ns'] / 1e3:.1f} | {ratio:.3f} |")
        if a["count"] != b["count"]:
            failures.append(f"{name}: {b['count']} kernels, torch.profiler has {a['count']}")
        if a["ns"] >= 0.01 * total:
            once_more = ours_again.get(name, {"ns": 0})
            spread = max(abs(again["ns"] - a["ns"]), abs(once_more["ns"] - b["ns"])) / a["ns"]
            if abs(ratio - 1) > max(0.03, spread):
                failures.append(f"{name}: time ratio {ratio:.3f}, spread of two equal runs {spread:.3f}")
    share = with_python / kernels if kernels else 0.0
    print(f"\nkernels {kernels}, under a Python line {100 * share:.3f} %")
    if share < 0.995:
        failures.append(f"only {100 * share:.2f} % of kernels under a Python line")
    for row in data["ledger"]:
        print("ledger:", row["source"], "received", row["received"], "attributed", row["attributed"],
              "dropped", row["dropped"], row["reason"] or "")
        if row["dropped"]:
            failures.append(f"ledger: {row['dropped']} of {row['source']} dropped: {row['reason']}")
    missed = [row for row in data["ledger"] if row["source"] == "backward" and row["reason"]
              and "was not seen" in row["reason"]]
    if missed:
        failures.append(f"backward records without a forward operator: {missed}")
    print("FAIL\n" + "\n".join(failures) if failures else "PASS")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
