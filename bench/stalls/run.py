#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds and records the kernels of this folder, on a machine with a Hopper GPU: one command, with a time limit.

    python3 bench/stalls/run.py [--plumb PATH] [--nvcc PATH] [--seconds N] [--runs N] [--to FOLDER] [--pack FILE]

Writes to FOLDER what score.py reads: times of the pairs, profiles of the cases and pairs, what each launch was. Says what
it does as it goes. When the time is over it stops where it is, and score.py uses what is there. `--pack` also puts all of it
into tar files. `--build-only` only compiles, and needs no GPU.
"""
import argparse
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time

from known import CASES, FOLDER, PROGRAMS

BEGIN = time.monotonic()
PART, PARTS = 15 << 20, 5


def say(text):
    print(f"[{time.monotonic() - BEGIN:5.1f} s] {text}", flush=True)


def run(command, seconds, quiet=False):
    """(exit code, or None if it took longer than SECONDS; what it printed)."""
    try:
        done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=max(1, seconds), check=False)
        code, text = done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as error:
        code, text = None, (error.stdout or b"").decode(errors="replace") + f"\nstopped after {seconds:.0f} s"
    except OSError as error:
        code, text = 127, str(error)
    if code != 0 and not quiet:
        say(f"failed ({code}): {' '.join(map(str, command))}\n{text[-2000:]}")
    return code, text


def compiler(given):
    """The path of nvcc."""
    for path in (given, shutil.which("nvcc"), os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin", "nvcc")):
        if path and os.path.exists(path):
            return path
    sys.exit("nvcc was not found: put it in PATH, or give --nvcc")


def build(nvcc, to, extra=()):
    """Compiles all programs of known.py at once. Returns the names of those that failed."""
    os.makedirs(to, exist_ok=True)
    libraries = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(nvcc))), "lib")

    def one(item):
        name, (files, options) = item
        command = [nvcc, "-std=c++17", "-O3", "-lineinfo", *options, *extra, f"-L{libraries}", "-o",
                   os.path.join(to, name), *(os.path.join(FOLDER, file) for file in files)]
        return name, run(command, 200)[0]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        return [name for name, code in pool.map(one, PROGRAMS.items()) if code != 0]


def describe(to, plumb):
    """What the numbers are from."""
    about = {"date": time.strftime("%Y-%m-%d")}
    code, text = run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], 20, quiet=True)
    about["gpu"] = text.strip().splitlines()[0] if code == 0 and text.strip() else "unknown"
    code, text = run([plumb, "--version"], 20, quiet=True)
    about["plumb"] = text.strip().splitlines()[0] if code == 0 and text.strip() else "unknown"
    with open(os.path.join(to, "about.json"), "w", encoding="utf-8") as file:
        json.dump(about, file)
    say(f"{about['gpu']}, {about['plumb']}")


class Recorder:
    def __init__(self, options):
        self.options, self.to = options, options.to
        self.broken = set()
        self.only = {}  # {program: the cases that work}, where not all do

    def left(self):
        return self.options.seconds - (time.monotonic() - BEGIN)

    def program(self, name):
        return os.path.join(self.to, "bin", name)

    def bare(self):
        """Everything once without plumb: is it sound, and how long do the pairs take?"""
        for name in ("cases", "hopper"):
            to = os.path.join(self.to, f"bare.{name}.jsonl")
            if run([self.program(name), 0, to], 60)[0] != 0:
                self.only[name] = [case.name for case in CASES if case.source == f"{name}.cu" and self.left() > 60
                                   and run([self.program(name), 0, to, case.name], 20, quiet=True)[0] == 0]
                say(f"{name}: only these cases work: {', '.join(self.only[name]) or 'none'}")
                if not self.only[name]:
                    self.broken.add(name)
        for name in ("pairs", "calls"):
            if run([self.program(name), "time", os.path.join(self.to, f"times.{name}.jsonl")], 90)[0] is None:
                self.broken.add(name)
        say("ran without plumb" + (f"; broken: {', '.join(sorted(self.broken))}" if self.broken else ""))

    def profile(self, label, name, arguments, more=()):
        """One program under plumb. Returns False if there is no time left, or it failed twice."""
        if name in self.broken or self.left() < 20:
            return False
        path = os.path.join(self.to, f"{label}.plumb")
        code, text = run([self.options.plumb, "run", f"--stalls={self.options.period}", *more, "-o", path, "--",
                          self.program(name), *arguments], min(90, self.left()))
        if code == 0 and os.path.exists(path):
            say(f"{label}: {os.path.getsize(path) / 1e6:.1f} MB")
            return True
        if os.path.exists(path):
            os.remove(path)
        say(f"{label}: no profile\n{text[-1000:]}")
        return False

    def cases(self, label, name, number, more=()):
        """One run of each case of a program, in one profile; in one for each case where some do not work."""
        if name not in self.only:
            return self.profile(label, name, [number, os.path.join(self.to, f"{label}.jsonl")], more)
        done = [self.profile(f"{case}.{label}", name, [number, os.path.join(self.to, f"{case}.{label}.jsonl"), case], more)
                for case in self.only[name]]
        return all(done)

    def record(self):
        failed = {}
        for number in range(1, self.options.runs + 1):
            for name in ("cases", "hopper"):
                if failed.get(name, 0) >= 2:
                    continue
                failed[name] = 0 if self.cases(f"{name}.{number}", name, number) else failed.get(name, 0) + 1
            if number <= self.options.pair_runs:
                for name in ("pairs", "calls"):
                    self.profile(f"{name}.{number}", name, ["before", 5])
            if number <= self.options.serialised_runs:
                for name in ("cases", "hopper"):
                    self.cases(f"serialised.{name}.{number}", name, number, ["--stalls-mode=serialised"])

    def pack(self, path):
        """Into tar files PATH.0, PATH.1, … of at most PART bytes (`cat PATH.* | tar xz`), run after run."""
        names = [name for name in os.listdir(self.to) if not os.path.isdir(os.path.join(self.to, name))]
        number = {name: int(name.split(".")[-2]) if name.endswith(".plumb") else 0 for name in names}
        whole = path + ".tmp"
        with open(whole, "wb") as raw, tarfile.open(fileobj=raw, mode="w:gz", compresslevel=6) as tar:
            for name in sorted(names, key=lambda name: (number[name], name)):
                if raw.tell() > PART * (PARTS - 1):
                    say(f"left out of the tar files: {name} and what follows")
                    break
                tar.add(os.path.join(self.to, name), arcname=name)
        with open(whole, "rb") as raw:
            for part in range(PARTS):
                data = raw.read(PART)
                if data:
                    with open(f"{path}.{part}", "wb") as file:
                        file.write(data)
        say(f"packed {os.path.getsize(whole) / 1e6:.1f} MB")
        os.remove(whole)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plumb", default=os.path.join(FOLDER, "..", "..", "build", "plumb"))
    parser.add_argument("--nvcc")
    parser.add_argument("--seconds", type=float, default=280, help="stop after so many (default: 280)")
    parser.add_argument("--runs", type=int, default=12, help="of each case (default: 12)")
    parser.add_argument("--pair-runs", type=int, default=3)
    parser.add_argument("--serialised-runs", type=int, default=2)
    parser.add_argument("--period", type=int, default=12, help="sample every 2^N cycles (default: 12)")
    parser.add_argument("--to", default="stalls-recorded", help="folder (default: stalls-recorded)")
    parser.add_argument("--pack", help="also write all of it to tar files with this name and a number")
    parser.add_argument("--build-only", action="store_true")
    options = parser.parse_args()
    options.to, options.plumb = os.path.abspath(options.to), os.path.abspath(options.plumb)
    os.makedirs(options.to, exist_ok=True)
    failed = build(compiler(options.nvcc), os.path.join(options.to, "bin"))
    say("built" + (f", but not {', '.join(failed)}" if failed else ""))
    if options.build_only:
        return 1 if failed else 0
    describe(options.to, options.plumb)
    recorder = Recorder(options)
    recorder.broken.update(failed)
    recorder.bare()
    recorder.record()
    if options.pack:
        recorder.pack(os.path.abspath(options.pack))
    return 1 if recorder.broken else 0


if __name__ == "__main__":
    sys.exit(main())
