#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Inference of forty models under plumb, for the columns of tables VIII and IX of the XSP paper (Li et al., 2020).

    python3 bench/zoo/run.py [--models a,b] [--seconds BUDGET] [--plumb PATH] [--python PYTHON] [--json FILE] [-o FILE.md]
    python3 bench/zoo/run.py --from FILE.json [-o FILE.md]     # the page of an earlier run
    python3 bench/zoo/run.py --cpu --models resnet18           # without a GPU: small inputs

Each model runs in three processes, in which work.py marks each iteration with a range that names its batch size:

    sweep   plumb run --no-gpu, ranges alone: the latency of each size, doubled until the throughput grows by 5 % or less
    look    plumb run --trace --shapes --memory, at batch 1 and at the optimal size: layers, kernels and their times
    count   plumb run --counters, one iteration: operations, memory traffic and occupancy of the kernels with most time. So many
            of them that no more than --launches run several times

All models are swept and looked at first, then counted. FILE is written after each process, and a run that finds it goes on from
there. With --jobs several processes load their libraries at once, each on its own processors, but only one of them works on the GPU.
"""
import argparse
import concurrent.futures
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

from zoo_models import NAMES, task_of
from zoo_page import optimal, page

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
COUNTERS = "flop_count_sp", "dram_read_bytes", "dram_write_bytes", "achieved_occupancy"
PROCESS_SECONDS = 120  # a process that takes longer has failed


class Failed(Exception):
    pass


class Zoo:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.end = time.monotonic() + options.seconds
        self.places = list(range(options.jobs))
        self.mutex = threading.Lock()
        self.found = {"models": {}}
        if os.path.exists(options.json):
            with open(options.json, encoding="utf-8") as file:
                self.found = json.load(file)

    # ---- processes ----

    def save(self, name, part, values):
        with self.mutex:
            self.found["models"].setdefault(name, {"task": task_of(name)})[part] = values
            with open(self.options.json + ".new", "w", encoding="utf-8") as file:
                json.dump(self.found, file, indent=1)
            os.replace(self.options.json + ".new", self.options.json)

    def environment(self, place):
        paths = [os.path.join(ROOT, "python"), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "ZOO_LOCK": os.path.join(self.folder, "lock"),
                "ZOO_PROCESSORS": self.processors(place), "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}

    def processors(self, place):
        """Those of one of --jobs places, so that loading libraries does not take a processor from what is timed."""
        every = sorted(os.sched_getaffinity(0))
        share = len(every) // self.options.jobs
        return ",".join(map(str, every[place * share:(place + 1) * share] if share else every))

    def record(self, profile, record, *work):
        """plumb run of work.py."""
        more = ["--cpu", "--tiny", "--most", "4", "--budget", "0.05", "--seconds", "5"] if self.options.cpu else []
        with self.mutex:
            place = self.places.pop()
        command = [self.options.plumb, "run", "-q", "-o", profile, *record, "--", self.options.python,
                   os.path.join(HERE, "work.py"), *work, *more]
        # A group of its own, so that all of it can be ended: the program would keep the lock.
        started = subprocess.Popen(command, env=self.environment(place), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True, cwd=self.folder, start_new_session=True)
        try:
            said = started.communicate(timeout=PROCESS_SECONDS)[1].strip().splitlines()
        except subprocess.TimeoutExpired as error:
            os.killpg(started.pid, signal.SIGKILL)
            started.communicate()
            raise Failed(f"{work[0]} took more than {PROCESS_SECONDS} s") from error
        finally:
            with self.mutex:
                self.places.append(place)
        if started.returncode:
            raise Failed(f"{work[0]}: {said[-1] if said else f'exit code {started.returncode}'}")

    def answer(self, *words):
        done = subprocess.run([self.options.plumb, *words, "--json"], capture_output=True, text=True, cwd=self.folder, check=False)
        if done.returncode:
            raise Failed(done.stderr.strip().splitlines()[-1])
        return json.loads(done.stdout)

    def tables(self, profile, size, *names):
        """{table: rows as dictionaries} of batch size SIZE."""
        answer = self.answer("tables", profile, *names, "--model", f"batch {size}", "--batch", str(size))
        return {table["id"]: [dict(zip((column["name"] for column in table["columns"]), row)) for row in table["rows"]]
                for table in answer["tables"]}

    # ---- the parts of a model ----

    def sweep(self, name):
        profile = os.path.join(self.folder, f"{name}.sweep.plumb")
        self.record(profile, ["--no-gpu", "--layers", "python"], "sweep", name)
        answer = self.answer("report", profile, "--metric", "op.duration", "--by", "range")
        if "about" not in self.found:
            environment = answer["run"]["environment"]
            self.found["about"] = {"plumb": answer["run"]["tool_version"], "torch": environment.get("torch.version"),
                                   "cpu": environment.get("host.cpu"), "tiny": self.options.cpu}
        sizes = []
        for row in answer["rows"]:
            if row["name"].startswith("batch "):
                sizes.append({"batch": int(row["name"].split()[1]), "calls": row["calls"], "latency_ns": row["mean_ns"]})
        if not sizes:
            raise Failed("sweep: the profile has no ranges")
        return {"sizes": sorted(sizes, key=lambda size: size["batch"])}

    def look(self, name):
        profile = os.path.join(self.folder, f"{name}.look.plumb")
        best = optimal(self.found["models"][name]["sweep"]["sizes"])
        sizes = sorted({1, best})
        self.record(profile, ["--trace", "--shapes", "--memory", "--limit", "512M"], "look", name, ",".join(map(str, sizes)))
        looked = {}
        for size in sizes:
            tables = self.tables(profile, size, "A1", "A2", "A6", "A10", "A15", "stages")
            one, = tables["A1"]
            self.found["about"].setdefault("gpu", one.get("GPU_name"))
            looked[str(size)] = {
                "latency_us": one["duration (us)"], "layers": len(tables["A2"]), "types": tables["A6"], "kernels": tables["A10"],
                "model": tables["A15"][0], "stages": tables["stages"]}
        return {"optimal": best, "sizes": looked}

    def count(self, name):
        look = self.found["models"][name]["look"]
        best = look["optimal"]
        kernels = look["sizes"][str(best)]["kernels"]
        if not kernels:
            raise Failed("count: no kernels were recorded")
        number = hot_kernels(kernels, self.options.launches)
        first, profile = (os.path.join(self.folder, f"{name}.{part}.plumb") for part in ("look", "count"))
        record = [f"--counters={','.join(COUNTERS)}", f"--counters-kernels={first}:{number}", "--counters-cost=0"]
        self.record(profile, record, "count", name, str(best))
        off = self.answer("report", profile, "--by", "kernel")["run"]["environment"].get("gpu.counters.off")
        if off:
            raise Failed(off)
        answer = self.answer("report", profile, "--metric", "dram_read_bytes", "--by", "kernel")
        return {"kernels": {row["name"]: {counter: row["exclusive"][counter]["mean"] for counter in COUNTERS
                                          if counter in row["exclusive"]} for row in answer["rows"]}}

    def part(self, name, part):
        try:
            values = getattr(self, part)(name)
        except Failed as error:
            values = {"failed": str(error)[:300]}
        except Exception as error:  # one model must not end the others
            values = {"failed": f"{part}: {type(error).__name__}: {error}"[:300]}
        self.save(name, part, values)
        print(f"{time.strftime('%H:%M:%S')} {name} {part}: {values.get('failed', 'done')}", file=sys.stderr, flush=True)

    def is_done(self, name, part):
        values = self.found["models"].get(name, {}).get(part)
        if values is None or "failed" in values:
            return False
        # The profile of the look says which kernels to count. One of an earlier run may be gone.
        return part != "look" or not self.options.launches or self.is_done(name, "count") or os.path.exists(
            os.path.join(self.folder, f"{name}.look.plumb"))

    def run(self, name, parts):
        for part in parts:
            if self.is_done(name, part):
                continue
            if time.monotonic() > self.end:
                return
            self.part(name, part)
            if not self.is_done(name, part):
                return

    def all(self, names):
        rounds = [("sweep", "look")] if self.options.cpu or not self.options.launches else [("sweep", "look"), ("count",)]
        for parts in rounds:
            ready = [name for name in names if parts != ("count",) or self.is_done(name, "look")]
            with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
                list(pool.map(lambda name: self.run(name, parts), ready))


def hot_kernels(kernels, launches):
    """How many kernels, of those with most time, launch at most so often; at least one."""
    number = 0
    for kernel in sorted(kernels, key=lambda kernel: -kernel["kernel_duration (us)"]):
        launches -= kernel["kernel_count"]
        if launches < 0 and number:
            break
        number += 1
    return min(number, 256)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(NAMES), help="some of them, by name, separated by commas")
    parser.add_argument("--seconds", type=float, default=540, help="after which no new process starts")
    parser.add_argument("--plumb", default=os.path.join(ROOT, "build", "plumb"))
    parser.add_argument("--python", default=sys.executable, help="one with torch, torchvision and transformers")
    parser.add_argument("--json", default="zoo.json", help="what was measured; a run goes on from there")
    parser.add_argument("--folder", help="where profiles are kept; without it they are deleted at the end")
    parser.add_argument("--jobs", type=int, help="processes that load libraries at once (a quarter of the processors, at most 3)")
    parser.add_argument("--launches", type=int, default=60, help="at most so many launches of a model are counted; 0: no counters")
    parser.add_argument("--cpu", action="store_true", help="without a GPU, small inputs and text models")
    parser.add_argument("--from", dest="old", metavar="FILE", help="only make the page of this file")
    parser.add_argument("-o", dest="output", help="the page, as Markdown; without it, to standard output")
    options = parser.parse_args()
    options.jobs = options.jobs or max(1, min(3, (os.cpu_count() or 1) // 4))
    options.plumb, options.json = os.path.abspath(options.plumb), os.path.abspath(options.json)
    if options.folder:
        options.folder = os.path.abspath(options.folder)
        os.makedirs(options.folder, exist_ok=True)
    names = options.models.split(",")
    unknown = set(names) - set(NAMES)
    if unknown:
        parser.error(f"no model {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    if options.old:
        with open(options.old, encoding="utf-8") as file:
            found = json.load(file)
    else:
        with tempfile.TemporaryDirectory() as folder:
            zoo = Zoo(options, options.folder or folder)
            zoo.all(names)
            found = zoo.found
    text = page(found)
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
