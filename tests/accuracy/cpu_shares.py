#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPU samples against a program whose shares of CPU time are known.

    python3 tests/accuracy/cpu_shares.py [--plumb PATH] [--python PYTHON] [--samples N] [--mode MODE]

Runs shares.py, whose parts read their threads' CPU clocks themselves, under `plumb run --cpu` until there
are so many samples, and compares the parts' shares of all CPU time by native function (full mode),
Python function, line and thread. Exits 1 when one is off by more than 2 points, when there are fewer
samples than asked for, or when more than 1 % of the CPU time is missing.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "shares.py")
LIMIT = 2.0  # points
# No kernel looks at threads' timers more often than at its ticks, 100 to 1000 a second.
HZ = 1000
TRIAL_S = 2


def run(*command, cwd=None):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return done.stdout


class Recording:
    def __init__(self, options, folder, seconds):
        library, self.path = os.path.join(folder, "shares.so"), os.path.join(folder, "shares.plumb")
        self.plumb = options.plumb
        run("gcc", "-O2", "-g", "-fPIC", "-shared", "-o", library, os.path.join(HERE, "shares.c"))
        out = run(options.plumb, "run", "--no-gpu", f"--cpu={HZ}", "--mode", options.mode, "-o", self.path,
                  "--", options.python, PROGRAM, library, str(seconds), cwd=folder)
        self.truth = json.loads(out)

    def report(self, by):
        return json.loads(run(self.plumb, "report", self.path, "--json", "--top", "0", "--metric", "cpu.time",
                              "--by", by))

    def samples(self):
        return sum(row["received"] for row in self.report("thread")["ledger"] if row["source"] == "cpu.sample")

    def found(self, by):
        """{name as in the truth: ns}"""
        numbers = {}
        if by == "line":
            for number, text in enumerate(open(PROGRAM), 1):
                for name in re.findall(r"# @(\w+)", text):
                    numbers[f"{PROGRAM}:{number}"] = name
        found = {}
        for row in self.report(by)["rows"]:
            name = row["name"]
            if by == "line":
                name = numbers.get(f"{row['file']}:{row['line']}")
            elif by == "thread":
                name = re.search(r"\d+", name).group()
            elif by == "python":
                name = name.rpartition(".")[2]
            found[name] = found.get(name, 0) + row["inclusive"].get("cpu.time", {}).get("sum", 0)
        return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--plumb", default=os.path.join(HERE, "..", "..", "build", "plumb"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--samples", type=int, default=10000)
    parser.add_argument("--mode", choices=["light", "full"], default="full")
    options = parser.parse_args()
    options.plumb = os.path.abspath(options.plumb)
    with tempfile.TemporaryDirectory() as folder:
        rate = Recording(options, folder, TRIAL_S).samples() / TRIAL_S
        made = Recording(options, folder, 1.25 * options.samples / rate)
        return compare(made, options, rate)


def compare(made, options, rate):
    version = run(options.python, "-c", "import platform; print(platform.python_version())").strip()
    whole = sum(made.truth["thread"].values())
    recorded = sum(made.found("thread").values())
    samples = made.samples()
    problems = []
    print(f"CPython {version}, --mode {options.mode}: {samples} samples, {rate:.0f} for each second that a "
          f"thread computes; {whole / 1e9:.1f} s by the threads' clocks, {recorded / 1e9:.1f} s by samples\n")
    print("| by | part | truth | samples | off |\n|---|---|---|---|---|")
    worst = 0
    for by in ("native", "python", "line", "thread"):
        found = made.found(by) if by != "native" or options.mode == "full" else {}
        for number, (name, ns) in enumerate(sorted(made.truth[by].items(), key=lambda part: -part[1])):
            if not found:
                continue
            share, got = 100 * ns / whole, 100 * found.get(name, 0) / recorded
            shown = f"thread {number + 1}" if by == "thread" else name
            print(f"| {by} | {shown} | {share:.2f} % | {got:.2f} % | {got - share:+.2f} |")
            worst = max(worst, abs(got - share))
            if abs(got - share) > LIMIT:
                problems.append(f"{shown} is off by {got - share:+.2f} points")
    if samples < options.samples:
        problems.append(f"{samples} samples, not {options.samples}")
    if abs(recorded / whole - 1) > 0.01:
        problems.append(f"{recorded / 1e9:.2f} s of CPU time were recorded, not {whole / 1e9:.2f} s")
    print(f"\n{'FAIL: ' + '; '.join(problems) if problems else 'PASS'}: the worst is off by {worst:.2f} points")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
