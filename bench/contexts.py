#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a run with very many contexts costs: the program, the profile, and reports of it.

    python3 bench/contexts.py [--plumb PATH] [--contexts N] [--rounds N] [--shape wide|deep] [--run OPTION]…

Two programs make N contexts of ranges (2^20): `wide` nests 32 names four deep. `deep` calls itself 1000
deep, and opens 32 ranges at each depth under 32 others. Each row is one command: its wall time, its
processor time, and the peak of its resident memory. `settle` is what `plumb run` does after the
program has ended. Its peak is that of the process of plumb; that of the program is in the row of the run.
The peak of a program includes what it wrote to the region, which is a mapped file.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = {
    "wide": """
def tree(depth):
    for name in names:
        if made >= wanted: return
        with plumb.span(name):
            made_one()
            if depth: tree(depth - 1)
tree(3)
""",
    "deep": """
def down(depth):
    for name in names:
        if made >= wanted: return
        with plumb.span(name): made_one()
    if depth: down(depth - 1)
for name in names:
    with plumb.span(name): down(1023)
""",
}
HEAD = """
import os, sys, time
sys.path.insert(0, sys.argv[2])
sys.setrecursionlimit(5000)
import plumb
made, wanted, names = 0, int(sys.argv[1]), [f"part {i}" for i in range(32)]
def made_one():
    global made
    made += 1
"""
TAIL = """
with open(sys.argv[3], "w") as file: print(time.monotonic(), file=file)
"""


def watch(pid, peak):
    """Keeps the peak of PID's own resident memory, in MB, until PID ends."""
    while True:
        try:
            with open(f"/proc/{pid}/status", encoding="ascii") as file:
                line = [line for line in file if line.startswith("VmHWM")]
        except OSError:
            return
        if not line:
            return
        peak[0] = int(line[0].split()[1]) / 1024
        time.sleep(0.01)


def run(command):
    """Wall and processor time of COMMAND in seconds, when it began, and its own peak memory in MB."""
    begin, peak = time.monotonic(), [0]
    with open(os.devnull, "w", encoding="ascii") as null:
        process = subprocess.Popen(command, stdout=null, stderr=subprocess.PIPE)
        thread = threading.Thread(target=watch, args=(process.pid, peak))
        thread.start()
        errors = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    thread.join()
    if process.returncode:
        sys.exit(f"{command} failed: {errors.decode()}")
    return {"wall": time.monotonic() - begin, "cpu": usage.ru_utime + usage.ru_stime, "begin": begin,
            "peak": peak[0], "tree_peak": usage.ru_maxrss / 1024}


def one_round(args, shape, folder):
    program, ended = os.path.join(folder, "program.py"), os.path.join(folder, "ended")
    profile = os.path.join(folder, "contexts.plumb")
    with open(program, "w", encoding="ascii") as file:
        file.write(HEAD + PROGRAMS[shape] + TAIL)
    command = [sys.executable, program, str(args.contexts), os.path.join(HERE, "..", "python"), ended]
    rows = {"program alone": run(command)}
    whole = run([args.plumb, "run", "--limit", "2G", *args.run, "-o", profile, "--", *command])
    with open(ended, encoding="ascii") as file:
        end = float(file.read()) - whole["begin"]
    rows["plumb run, all"] = dict(whole, peak=whole["tree_peak"])
    rows["… settle"] = dict(whole, wall=whole["wall"] - end, cpu=None)
    rows["plumb report"] = run([args.plumb, "report", profile])
    rows["plumb report --by context --json"] = run([args.plumb, "report", profile, "--by", "context", "--json"])
    rows["run and report"] = {"wall": whole["wall"] + rows["plumb report"]["wall"],
                              "cpu": whole["cpu"] + rows["plumb report"]["cpu"], "peak": 0}
    said = subprocess.run([args.plumb, "report", profile, "--by", "context", "--json", "--top", "1"],
                          check=True, stdout=subprocess.PIPE).stdout
    return rows, json.loads(said)["rows_available"], os.path.getsize(profile) / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plumb", default=os.path.join(HERE, "..", "build", "plumb"))
    parser.add_argument("--contexts", type=int, default=1 << 20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shape", choices=list(PROGRAMS), action="append")
    parser.add_argument("--run", action="append", default=[], help="an option of plumb run")
    args = parser.parse_args()
    for shape in args.shape or PROGRAMS:
        with tempfile.TemporaryDirectory() as folder:
            rounds = [one_round(args, shape, folder) for _ in range(args.rounds)]
        print(f"\n{shape}: {rounds[0][1]} rows of contexts, a profile of {rounds[0][2]:.0f} MB\n")
        print("| | wall, s | processor, s | peak, MB |\n|---|---|---|---|")
        for name in rounds[0][0]:
            cells = []
            for key, form in (("wall", "{:.2f}"), ("cpu", "{:.2f}"), ("peak", "{:.0f}")):
                values = [rows[name][key] for rows, _, _ in rounds]
                cells.append(form.format(statistics.median(values)) if values[0] else "–")
            print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
