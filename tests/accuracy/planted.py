#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trainings with one planted fault each, recorded with `plumb run --trace`: does plumb name it?

    python3 tests/accuracy/planted.py [--plumb COMMAND] [--out FOLDER] [--scenario NAME]… [--device cpu]

Prints one line a scenario, PASS or FAIL with what failed; exits 0 or 1. Needs PyTorch with CUDA; `laterank` needs
two GPUs. --out keeps the profiles and the truth (truth.json), for tests/e2e/test_planted.py. --device cpu only runs
the programs, to see that they do.

    grows        every step puts more operators into the graph (the first bug of the DeepProf paper)
    copies       every step copies the whole data set to the GPU (its second)
    sleep        one step sleeps for 50 ms on the host
    slowcopy     one step copies 20 times as much
    biggerbatch  one step has four times the batch
    laterank     two ranks; rank 1 sleeps before one step
    contention   a second process works on the GPU in the second half
    augment      before every step a function of Python computes for 20 ms, and one sleeps for 10 ms (with --cpu)
"""
import argparse
import gzip
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

STEPS, ODD, SLEEP_MS, AUGMENT_MS, REST_MS = 40, 25, 50, 20, 10
PROGRAM = '''\
import os
import subprocess
import sys
import time

import torch
from torch import nn

scenario, device, steps, odd = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
small = device == "cpu"
width, batch, rows = (64, 16, 400) if small else (4096, 512, 12288)
if scenario in ("contention", "other"):
    batch = rows // 2  # longer kernels than the GPU's time slices
rank, world, other = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1)), None
torch.manual_seed(0)
if scenario == "laterank":
    import torch.distributed as dist
    dist.init_process_group("gloo" if small else "nccl")
    if not small:
        device = f"cuda:{rank}"
        torch.cuda.set_device(rank)
model = nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(width, width), nn.ReLU())],
                      nn.Linear(width, 10)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=False)
data = torch.randn(rows, width)
target = torch.randint(0, 10, (rows,), device=device)
extras = []


def load(number):
    if scenario == "copies":
        return data.to(device)[:batch]  # @copies
    if scenario == "slowcopy" and number == odd:
        return data[:20 * batch].to(device)[:batch]  # @slowcopy
    return data[:4 * batch if scenario == "biggerbatch" and number == odd else batch].to(device)  # @load


def forward(x):
    y = model(x)
    for extra in extras:
        y = torch.tanh(y * extra)  # @grows
    return y


def train(number):
    x = load(number)
    optimizer.zero_grad()
    if scenario == "sleep" and number == odd:
        time.sleep(%(sleep)d / 1000)  # @sleep
    if scenario == "laterank" and number == odd and rank == 1:
        time.sleep(%(sleep)d / 1000)  # @laterank
    loss = nn.functional.cross_entropy(forward(x), target[:len(x)])  # @forward
    loss.backward()
    if world > 1:
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
    optimizer.step()
    if scenario == "grows":
        extras.append(torch.ones(10, device=device))
    return loss.item()


def augment():
    end, number = time.thread_time() + %(augment)d / 1000, 0
    while time.thread_time() < end:  # @last
        for i in range(1000):  # @first
            number += i * i  # @augment


if scenario == "other":
    train(0)
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(steps):
        train(number)
    sys.exit()
if scenario == "contention":
    other = subprocess.Popen([sys.executable, sys.argv[0], "other", *sys.argv[2:]], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
    other.stdout.readline()
if scenario == "biggerbatch":
    train(odd)  # loads the kernels that only it uses
for number in range(steps):
    if other and number == steps // 2:
        other.stdin.write("go\\n")
        other.stdin.flush()
    if scenario == "augment":
        augment()
        time.sleep(%(rest)d / 1000)
    train(number)
if other:
    other.wait()
if scenario == "laterank":
    dist.barrier()
    dist.destroy_process_group()
''' % {"sleep": SLEEP_MS, "augment": AUGMENT_MS, "rest": REST_MS}


def line_of(mark):
    return 1 + next(i for i, line in enumerate(PROGRAM.splitlines()) if line.endswith("# @" + mark))


# ---- what plumb says of a profile ----


class Told:
    def __init__(self, plumb, profile):
        self.plumb, self.profile = plumb, str(profile)

    def json(self, *command):
        done = subprocess.run([*self.plumb, command[0], self.profile, "--json", *command[1:]], capture_output=True,
                              text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def mains(self):
        return [track for track in self.json("iters")["tracks"] if track["role"] == "main" and track["levels"]]

    def findings(self):
        return self.json("report", "--findings")["findings"]

    def finding(self, prefix):
        found = [one for one in self.findings() if one["id"].startswith(prefix)]
        assert found, f"no finding {prefix}…: {[one['id'] for one in self.findings()]}"
        return found[0]


def whole(one):
    return one["duration_ns"] + (one["interval_ns"] or 0)


def slowest(level):
    """The number of the iteration that lasts longest; the first ones load code."""
    return max(range(3, len(level["iterations"])), key=lambda i: whole(level["iterations"][i]))


def level_of(told, track=0):
    level = told.mains()[track]["levels"][0]
    assert STEPS - 3 <= level["occurrences"] <= STEPS + 1, f"{level['occurrences']} iterations of {STEPS} steps"
    return level


def top_of(told, cause, track=0, number=None):
    """The first reason for the slowest iteration, which must be CAUSE."""
    main = told.mains()[track]
    number = slowest(level_of(told, track)) if number is None else number
    rows = told.json("iters", "--explain", str(number), "--track", str(main["track"]))["explain"]["rows"]
    assert rows, f"nothing is told of iteration {number}"
    assert rows[0]["cause"] == cause and not rows[0]["hidden"], [row["text"] for row in rows[:4]]
    return rows[0]


def lines_in(text):
    return [int(number) for number in re.findall(r"planted_program\.py:(\d+)", text)]


def check_grows(told):
    level = level_of(told)
    assert level["growing"] and level["summary"]["ops_slope"] > 2, level["summary"]["ops_slope"]
    title = told.finding("iterations-growth-")["title"]
    assert "more kernels than the one before" in title and line_of("grows") in lines_in(title), title


def check_copies(told):
    level = level_of(told)
    assert level["verdict"] == "copy-bound", (level["verdict"], level["overlap_share"])
    title = told.finding("iterations-copies-")["title"]
    assert line_of("copies") in lines_in(title), title


def check_sleep(told):
    row = top_of(told, "host")
    assert row["difference_ns"] > 0.8e6 * SLEEP_MS, row["text"]
    lines = lines_in(row["text"])
    assert lines and min(lines) <= line_of("sleep") <= max(lines), row["text"]


def check_slowcopy(told):
    row = top_of(told, "copy")
    assert line_of("slowcopy") in lines_in(row["text"]) or "the bytes" in row["text"], row["text"]


def check_biggerbatch(told):
    text = top_of(told, "kernels")["text"]
    assert "a larger batch" in text, text


def check_laterank(told):
    ranks = told.json("iters")["ranks"]
    assert ranks and ranks["straggler_by"] == "collectives", ranks
    late = max(ranks["iterations"][2:], key=lambda one: max(rank["waiting_ns"] for rank in one["ranks"]))
    assert late["straggler_rank"] == 1, late
    first = next(i for i, track in enumerate(told.mains()) if track["rank"] == 0)
    place = next(i for i, rank in enumerate(ranks["summary"]) if rank["rank"] == 0)
    row = top_of(told, "rank", first, late["ranks"][place]["iteration"])
    assert row["rank"] == 1 and "rank 1 came" in row["text"], row["text"]


def check_contention(told):
    told.finding("iterations-contention-")
    shared = [track for track in told.mains() if any(one["contended_ns"] for one in track["levels"][0]["iterations"])]
    assert len(told.mains()) == 2 and shared, [track["process"] for track in told.mains()]


def check_augment(told):
    level = level_of(told)
    filled, lines = level["summary"]["filled"], range(line_of("last"), line_of("augment") + 1)
    computing = [one for one in filled if one["kind"] == "sample" and one["line"] in lines]
    waiting = [one for one in filled if one["kind"] == "gap"]
    assert level["verdict"] == "host-bound" and computing and waiting, [one["text"] for one in filled]
    assert filled[0] in computing and "augment" in filled[0]["name"], filled[0]["text"]
    rounds = level["occurrences"] - 1
    for rows, ms in (computing, AUGMENT_MS), (waiting, REST_MS):
        each = sum(one["ns"] for one in rows) / rounds / 1e6
        assert 0.8 * ms < each < 1.2 * ms + 1, f"{each:.1f} ms for {ms} in {rows[0]['text']}"


CHECKS = {"grows": check_grows, "copies": check_copies, "sleep": check_sleep, "slowcopy": check_slowcopy,
          "biggerbatch": check_biggerbatch, "laterank": check_laterank, "contention": check_contention,
          "augment": check_augment}
TRUTH = {"grows": "the graph grows at @grows", "copies": "the data set is copied at @copies",
         "sleep": f"step {ODD} sleeps {SLEEP_MS} ms at @sleep", "slowcopy": f"step {ODD} copies 20 times as much",
         "biggerbatch": f"step {ODD} has 4 times the batch", "laterank": f"rank 1 sleeps {SLEEP_MS} ms in step {ODD}",
         "contention": "a second process works from the middle on",
         "augment": f"each step computes for {AUGMENT_MS} ms at @augment and sleeps for {REST_MS}"}
# What is recorded beside --trace.
OPTIONS = {"augment": ["--cpu=1000"]}


# ---- recording ----


def record(scenario, options, folder):
    """The profile of SCENARIO; the program's name and folder are the same on every machine."""
    program, profile = "planted_program.py", os.path.join(folder, scenario + ".plumb")
    with open(os.path.join(folder, program), "w") as file:
        file.write(PROGRAM)
    command = [sys.executable]
    if scenario == "laterank":
        command += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += [program, scenario, options.device, str(STEPS), str(ODD)]
    done = subprocess.run([*options.plumb, "run", "--trace", *OPTIONS.get(scenario, []), "-o", profile, "--", *command],
                          cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-1500:]}"
    return profile


def keep(profile, scenario, folder):
    os.makedirs(folder, exist_ok=True)
    with open(profile, "rb") as source, gzip.GzipFile(os.path.join(folder, scenario + ".plumb.gz"), "wb",
                                                      mtime=0) as target:
        shutil.copyfileobj(source, target)
    path = os.path.join(folder, "truth.json")
    truth = json.load(open(path)) if os.path.exists(path) else {}
    marks = {mark: line_of(mark) for mark in re.findall(r"@(\w+)", TRUTH[scenario])}
    truth[scenario] = {"truth": TRUTH[scenario], "lines": marks, "steps": STEPS}
    with open(path, "w") as file:
        json.dump(truth, file, indent=1, sort_keys=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plumb", help="the command (default: plumb, else this Python's plumb package)")
    parser.add_argument("--out", metavar="FOLDER")
    parser.add_argument("--scenario", action="append", choices=sorted(CHECKS))
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    options = parser.parse_args()
    found = options.plumb or shutil.which("plumb") or f"{sys.executable} -m plumb"
    options.plumb = [os.path.abspath(word) if os.path.exists(word) else word for word in shlex.split(found)]
    failed = False
    for scenario in options.scenario or CHECKS:
        with tempfile.TemporaryDirectory() as folder:
            try:
                profile = record(scenario, options, folder)
                if options.out:
                    keep(profile, scenario, options.out)
                if options.device == "cuda":
                    CHECKS[scenario](Told(options.plumb, profile))
                print("PASS" if options.device == "cuda" else "RAN", scenario, os.path.getsize(profile), "bytes",
                      flush=True)
            except (AssertionError, subprocess.TimeoutExpired, OSError, StopIteration) as error:
                failed = True
                print("FAIL", scenario, error, flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
