#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs to be watched: plumb against its peers, side by side in one run.

    python3 bench/overhead.py [--workload W]… [--mode M]… [--rounds N] [--plumb PATH] [-o FILE.md]

One process per mode is started and stays; then they take turns, a block of iterations each, so that
a drift of the machine meets all of them alike. A ratio is a mode's block against the plain block of
the same round; the table gives the median over the rounds and a 95 % interval of the median.

    none        the plain program
    plumb       under `plumb run`
    trace       under `plumb run --trace`
    cupti       CUPTI's kernel records alone, thrown away: the floor (bench/cupti_floor.c)
    torch       torch.profiler, CPU and CUDA activities, one profile per block
    torchstack  the same with stacks and shapes
    proton      Triton's Proton with Python contexts
    protonshadow  Proton with shadow contexts (no Python)

Memory is the peak resident set at the end over that of `none`; the profile is what the tool writes;
"end to profile" is the time from the program's last line to the finished file (plumb), or what
stopping and exporting took (torch, proton).
"""
import argparse
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PLUMB = {"plumb": [], "trace": ["--trace"]}  # mode: options
MODES = ["none", *PLUMB, "cupti", "torch", "torchstack", "proton", "protonshadow"]
ITERATIONS = {"gptsmall": 100, "gpt124": 20, "llama": 10, "tiny": 300}


def resident(kind):
    """VmHWM or VmRSS of this process in MB."""
    with open("/proc/self/status") as status:
        return int(re.search(kind + r":\s+(\d+)", status.read()).group(1)) / 1024


class Observer:
    """A peer profiler around one block. `stop` returns (seconds it took to finish, bytes written)."""

    def __init__(self, mode):
        self.mode = mode

    def start(self):
        if self.mode.startswith("torch"):
            from torch.profiler import ProfilerActivity, profile
            stacks = self.mode == "torchstack"
            self.profile = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
                                   with_stack=stacks, record_shapes=stacks)
            self.profile.__enter__()
        elif self.mode.startswith("proton"):
            import triton.profiler as proton
            proton.start("proton", context="python" if self.mode == "proton" else "shadow")

    def stop(self):
        before = time.perf_counter()
        if self.mode.startswith("torch"):
            self.profile.__exit__(None, None, None)
            self.profile.export_chrome_trace("trace.json")
            size = os.path.getsize("trace.json")
        elif self.mode.startswith("proton"):
            import triton.profiler as proton
            proton.finalize()
            size = os.path.getsize("proton.hatchet")
        else:
            return 0.0, 0
        return time.perf_counter() - before, size


def work(workload, mode):
    """The watched process: reads numbers of iterations, answers with measurements."""
    sys.path.insert(0, HERE)
    import torch
    import workloads
    step = workloads.make(workload)
    synchronize = torch.cuda.synchronize if torch.cuda.is_available() else lambda: None
    for _ in range(5):
        step()
    synchronize()
    reply = os.fdopen(3, "w", buffering=1)
    print(json.dumps({"ready": True}), file=reply)
    for line in sys.stdin:
        iterations = int(line)
        observer = Observer(mode)
        observer.start()
        before = time.perf_counter()
        for _ in range(iterations):
            step()
        synchronize()
        seconds = time.perf_counter() - before
        finish, size = observer.stop()
        print(json.dumps({"seconds": seconds / iterations, "peak": resident("VmHWM"),
                          "resident": resident("VmRSS"), "finish": finish, "bytes": size}),
              file=reply)


def build_floor(folder, python):
    """Compiles cupti_floor.c against the CUPTI that PyTorch has; returns the library's path."""
    library = subprocess.run([python, "-c", "import torch;print([l.split()[-1] for l in open("
                              "'/proc/self/maps') if 'libcupti.so' in l][0])"],
                             capture_output=True, text=True).stdout.strip()
    include = next(path for path in (os.environ.get("CUDA_HOME", "") + "/include",
                                     os.path.dirname(library) + "/../include",
                                     "/usr/local/cuda/include")
                   if os.path.exists(path + "/cupti.h"))
    output = os.path.join(folder, "floor.so")
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-I" + include, "-o", output,
                    os.path.join(HERE, "cupti_floor.c"), library,
                    "-Wl,-rpath," + os.path.dirname(library)], check=True)
    return output


class Worker:
    def __init__(self, workload, mode, plumb, folder, python):
        self.mode, self.folder = mode, os.path.join(folder, mode)
        os.makedirs(self.folder, exist_ok=True)
        command = [python, os.path.join(HERE, "overhead.py"), "--work", workload, mode]
        self.profile = os.path.join(self.folder, "bench.plumb")
        if mode in PLUMB:
            command = [plumb, "run", *PLUMB[mode], "-o", self.profile, "--"] + command
        environment = dict(os.environ)
        if mode == "cupti":
            environment["CUDA_INJECTION64_PATH"] = build_floor(self.folder, python)
        read, write = os.pipe()
        self.log = open(os.path.join(self.folder, "log"), "w+")
        # Descriptor 3 carries the answers, so that the tools may print what they like.
        shell = f"exec 3>&{write} {write}>&-; exec " + " ".join(map(shlex.quote, command))
        self.process = subprocess.Popen(["bash", "-c", shell], stdin=subprocess.PIPE, pass_fds=[write],
                                        stdout=self.log, stderr=self.log, cwd=self.folder, text=True,
                                        env=environment)
        os.close(write)
        self.replies = os.fdopen(read)
        self.answer()

    def answer(self):
        line = self.replies.readline()
        if not line:
            self.process.wait()
            self.log.seek(0)
            raise SystemExit(f"the {self.mode} process ended early:\n" + self.log.read()[-3000:])
        return json.loads(line)

    def block(self, iterations):
        self.process.stdin.write(f"{iterations}\n")
        self.process.stdin.flush()
        return self.answer()

    def end(self):
        before = time.perf_counter()
        self.process.stdin.close()
        self.process.wait()
        return time.perf_counter() - before


def interval(values):
    """Median and a distribution-free interval of it that holds with at least 95 %."""
    values = sorted(values)
    n = len(values)
    rank = max(0, int((n - 1.96 * n ** 0.5) / 2))
    return statistics.median(values), values[rank], values[n - 1 - rank]


def measure(workload, modes, rounds, plumb, python):
    iterations = ITERATIONS[workload]
    with tempfile.TemporaryDirectory() as folder:
        workers = {mode: Worker(workload, mode, plumb, folder, python) for mode in modes}
        blocks = {mode: [] for mode in modes}
        for number in range(rounds):
            order = modes if number % 2 == 0 else modes[::-1]
            for mode in order:
                blocks[mode].append(workers[mode].block(iterations))
        growth = None
        if "plumb" in modes and workload == "gptsmall":
            # From iteration 100 to 1000 of a fresh pair, against the plain program.
            growth = {}
            for mode in ("none", "plumb"):
                worker = Worker(workload, mode, plumb, os.path.join(folder, "growth"), python)
                start = worker.block(95)["resident"]
                growth[mode] = worker.block(900)["resident"] - start
                worker.end()
        rows, plain_end = [], None
        for mode in modes:
            end = workers[mode].end()
            if mode == "none":
                plain_end = end
            ratios = [b["seconds"] / a["seconds"] for a, b in zip(blocks["none"], blocks[mode])]
            last = blocks[mode][-1]
            row = {"mode": mode, "ms": 1e3 * statistics.median(b["seconds"] for b in blocks[mode]),
                   "ratio": interval(ratios),
                   "memory": max(b["peak"] for b in blocks[mode]) -
                   max(b["peak"] for b in blocks["none"]),
                   "finish": statistics.median(b["finish"] for b in blocks[mode]),
                   "bytes": last["bytes"]}
            if mode in PLUMB:
                row["finish"] = max(0.0, end - (plain_end or 0.0))
                row["bytes"] = os.path.getsize(workers[mode].profile)
            rows.append(row)
        return rows, growth


def markdown(workload, rows, rounds, growth):
    out = [f"### {workload}: {ITERATIONS[workload]} iterations a block, {rounds} rounds", "",
           "| mode | ms/iteration | ratio (95 % interval) | memory added | end to profile | profile |",
           "|---|---|---|---|---|---|"]
    for row in rows:
        middle, low, high = row["ratio"]
        plain = row["mode"] == "none"
        out.append(f"| {row['mode']} | {row['ms']:.3f} | "
                   + ("1" if plain else f"{middle:.3f} ({low:.3f}–{high:.3f})") + " | "
                   + ("–" if plain else f"{row['memory']:.0f} MB") + " | "
                   + ("–" if plain else f"{row['finish']:.2f} s") + " | "
                   + ("–" if plain else f"{row['bytes'] / 1e6:.1f} MB") + " |")
    if growth:
        out += ["", f"Resident memory from iteration 100 to 1000: none {growth['none']:+.1f} MB, "
                    f"plumb {growth['plumb']:+.1f} MB."]
    return "\n".join(out) + "\n"


def environment(python):
    code = ("import torch,platform,os;print('PyTorch',torch.__version__,'· Python',"
            "platform.python_version(),'·',torch.cuda.get_device_name() if torch.cuda.is_available()"
            " else 'no GPU','·',os.cpu_count(),'cores')")
    return subprocess.run([python, "-c", code], capture_output=True, text=True).stdout.strip()


def main():
    if sys.argv[1:2] == ["--work"]:
        return work(*sys.argv[2:4])
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--workload", action="append")
    parser.add_argument("--mode", action="append", choices=MODES)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--plumb", default=os.path.join(HERE, "..", "build", "plumb"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("-o", "--output")
    options = parser.parse_args()
    modes = options.mode or MODES
    if "none" not in modes:
        modes = ["none"] + modes
    parts = [environment(options.python) + "\n"]
    for workload in options.workload or ["gptsmall", "llama", "gpt124"]:
        rows, growth = measure(workload, modes, options.rounds, os.path.abspath(options.plumb),
                               options.python)
        parts.append(markdown(workload, rows, options.rounds, growth))
        print(parts[-1], flush=True)
    if options.output:
        with open(options.output, "w") as output:
            output.write("\n".join(parts))


if __name__ == "__main__":
    main()
