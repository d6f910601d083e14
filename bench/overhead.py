#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs to be watched: plumb against its peers, side by side in one run.

    python3 bench/overhead.py [--workload W]… [--mode M]… [--rounds N] [--plumb PATH] [-o FILE.md]
    python3 bench/overhead.py --workload tenmodels -o ten.md --json ten.json

One process per mode is started and stays; then they take turns, a block of iterations each, so that
a drift of the machine meets all of them alike. A ratio is a mode's block against the plain block of
the same round; the tables give the median over the rounds and a 95 % interval of the median.

    none        the plain program
    plumb       under `plumb run`
    light       another name for that
    full        … --mode full: with native frames
    lean        … --mode lean: operators from native frames
    cpu         … --cpu=100
    memory      … --memory
    nomodule    … --layers python,operator: light without module frames
    nowindows   … --no-windows: light without looks from outside
    nogpu       … --no-gpu: light without CUPTI
    operators   … --layers operator: light without Python and module frames
    python      … --layers python: light without operators and module frames
    nonvtx      light without NVTX: libraries such as XLA name no ranges
    nolog       light with TORCH_TRACE= in the environment: PyTorch writes no log of what it compiles
    nocalls     light without CUPTI's callbacks: GPU work is recorded, but not where it comes from
    trace       … --trace
    nodes       … --graphs=nodes
    stalls      … --stalls
    pcsampling  CUPTI's PC sampling alone, thrown away: the floor of that (bench/stalls_floor.c)
    cupti       CUPTI's kernel records alone, thrown away: the floor (bench/cupti_floor.c)
    cupticalls  the same, with an empty callback for each launch
    nvtx        a tool for NVTX that does nothing (bench/micro_range.c): what libraries do because there is one
    torch       torch.profiler, CPU and CUDA activities, one profile per block
    torchstack  the same with stacks and shapes
    proton      Triton's Proton with Python contexts
    protonshadow  Proton with shadow contexts (no Python)

--against MODE gives the ratios against another mode than `none`: what an option adds to the light mode
is `--mode light --mode cpu --against light`, and what module frames or windows add is `--mode light --mode
nomodule --against nomodule`.

`tenmodels` stands for the ten of bench/models.py, by default with none, light, full and torch and in six
rounds, `kinds` for all of bench/kinds.py. The processes of three models are loaded together (--together), and nothing is measured while one
loads. Iterations are so many that a plain block takes --block seconds. A model whose library is not
installed is left out, and said.

On a busy host, short blocks and many rounds say more than long ones (--block 0.15 --rounds 40): what disturbs one block disturbs
its neighbours, too. The last column compares the shortest blocks, which nothing disturbed.

Memory is the peak resident set at the end beside that of `none`; the profile is what the tool writes;
"end to profile" is the time from the program's last line to the finished file (plumb), or what
stopping and exporting took (torch, proton; in the last round).
"""
import argparse
import json
import math
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from kinds import KINDS  # noqa: E402
PLUMB = {"plumb": [], "light": [], "full": ["--mode", "full"], "cpu": ["--cpu=100"],
         "memory": ["--memory"], "nomodule": ["--layers", "python,operator"],
         "nowindows": ["--no-windows"], "trace": ["--trace"], "nodes": ["--graphs=nodes"],
         "stalls": ["--stalls"],
         "lean": ["--mode", "lean"], "nogpu": ["--no-gpu"], "operators": ["--layers", "operator"], "python": ["--layers", "python"],
         "nonvtx": [], "nolog": [], "nocalls": []}  # mode: options
ENVIRONMENT = {"nolog": {"TORCH_TRACE": ""}, "nocalls": {"PLUMB_CUPTI_CALLBACKS": "0"}}
PEERS = ["pcsampling", "cupti", "cupticalls", "nvtx", "torch", "torchstack", "proton", "protonshadow"]
MODES = ["none", *PLUMB, *PEERS]
USUAL = ["none", "plumb", "trace", "cupti", "torch", "torchstack", "proton", "protonshadow"]
ITERATIONS = {"gptsmall": 100, "graph": 200, "gpt124": 20, "llama": 10, "tiny": 300}
TEN = ["conformer", "dlrm", "unet", "gnn", "resnet", "vit", "transformer", "llamatrain", "gemma",
       "nanogpt"]
BLOCK = 0.4  # seconds
WARM = 5  # iterations in the first block of each process, which does not count


class LeftOut(Exception):
    """A workload cannot run here: a library is missing."""


def resident(kind):
    """VmHWM or VmRSS of this process in MB."""
    with open("/proc/self/status") as status:
        return int(re.search(kind + r":\s+(\d+)", status.read()).group(1)) / 1024


class Observer:
    """A peer profiler around one block. `stop` returns (seconds it took to finish, bytes written)."""

    def __init__(self, mode, export):
        self.mode, self.export = mode, export

    def start(self):
        if self.mode.startswith("torch"):
            import torch
            from torch.profiler import ProfilerActivity, profile
            stacks = self.mode == "torchstack"
            activities = [ProfilerActivity.CPU]
            if torch.cuda.is_available():
                activities.append(ProfilerActivity.CUDA)
            self.profile = profile(activities=activities, with_stack=stacks, record_shapes=stacks)
            self.profile.__enter__()
        elif self.mode.startswith("proton"):
            import triton.profiler as proton
            proton.start("proton", context="python" if self.mode == "proton" else "shadow")

    def stop(self):
        before, size = time.perf_counter(), 0
        if self.mode.startswith("torch"):
            self.profile.__exit__(None, None, None)
            if self.export:
                self.profile.export_chrome_trace("trace.json")
                size = os.path.getsize("trace.json")
        elif self.mode.startswith("proton"):
            import triton.profiler as proton
            proton.finalize()
            size = os.path.getsize("proton.hatchet")
        return time.perf_counter() - before, size


def environment():
    import platform
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    if torch:
        what, gpu = f"PyTorch {torch.__version__}", torch.cuda.is_available() and torch.cuda.get_device_name()
    else:
        what, gpu = f"JAX {jax.__version__}", jax.devices()[0].device_kind
    return " · ".join([what, f"Python {platform.python_version()}", gpu or "no GPU", f"{os.cpu_count()} cores"])


def made(workload, tiny):
    """One step of the workload as a function, and one that waits for its work."""
    if workload in KINDS:
        import kinds as workloads
    elif workload in TEN:
        import models as workloads
    else:
        import workloads
    step = workloads.make(workload, tiny)
    torch = sys.modules.get("torch")
    return step, getattr(step, "synchronize", torch.cuda.synchronize if torch and torch.cuda.is_available() else lambda: None)


def work(workload, mode, tiny):
    """The watched process: reads numbers of iterations, answers with measurements."""
    reply = os.fdopen(3, "w", buffering=1)
    try:
        step, synchronize = made(workload, tiny)
    except ModuleNotFoundError as error:
        print(json.dumps({"left out": str(error)}), file=reply)
        return
    for _ in range(20 if workload in KINDS else 5):
        step()
    synchronize()
    print(json.dumps({"ready": environment()}), file=reply)
    for line in sys.stdin:
        iterations, last = map(int, line.split())
        observer = Observer(mode, last)
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


def build_floor(folder, python, calls=False, source="cupti_floor.c"):
    """Compiles a floor against the CUPTI that PyTorch has; returns the library's path. `calls`: with callbacks."""
    library = subprocess.run([python, "-c", "import torch;print([l.split()[-1] for l in open("
                              "'/proc/self/maps') if 'libcupti.so' in l][0])"],
                             capture_output=True, text=True).stdout.strip()
    include = next(path for path in (os.environ.get("CUDA_HOME", "") + "/include",
                                     os.path.dirname(library) + "/../include",
                                     "/usr/local/cuda/include")
                   if os.path.exists(path + "/cupti.h"))
    output = os.path.join(folder, "floor.so")
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", f"-DCALLS={int(calls)}", "-I" + include, "-o", output,
                    os.path.join(HERE, source), library, "-lpthread",
                    "-Wl,-rpath," + os.path.dirname(library)], check=True)
    return output


def build_nvtx(folder):
    """Compiles the tool of micro_range.c that does nothing; returns the library's path. NVTX comes with CUDA."""
    output = os.path.join(folder, "nvtx.so")
    includes = [os.path.join(HERE, "..", "include"), os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/include"]
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", *("-I" + path for path in includes), "-o", output,
                    os.path.join(HERE, "micro_range.c"), "-ldl"], check=True)
    return output


class Worker:
    """One process: a workload in a mode. It begins to load at once; `ready` waits for it."""

    def __init__(self, workload, mode, folder, options):
        self.mode, self.folder = mode, os.path.join(folder, workload, mode)
        os.makedirs(self.folder, exist_ok=True)
        command = [options.python, os.path.join(HERE, "overhead.py"), "--work", workload, mode,
                   "tiny" if options.tiny else ""]
        self.profile = os.path.join(self.folder, "bench.plumb")
        if mode == "nonvtx":
            command = ["env", "-u", "NVTX_INJECTION64_PATH", *command]
        if mode in PLUMB:
            command = [options.plumb, "run", *PLUMB[mode], "-o", self.profile, "--"] + command
        environment = {**os.environ, **ENVIRONMENT.get(mode, {})}
        if mode.startswith("cupti"):
            environment["CUDA_INJECTION64_PATH"] = build_floor(self.folder, options.python, mode == "cupticalls")
        if mode == "pcsampling":
            environment["CUDA_INJECTION64_PATH"] = build_floor(self.folder, options.python, source="stalls_floor.c")
        if mode == "nvtx":
            environment["NVTX_INJECTION64_PATH"] = build_nvtx(self.folder)
        read, write = os.pipe()
        self.log = open(os.path.join(self.folder, "log"), "w+")
        # Descriptor 3 carries the answers, so that the tools may print what they like.
        close = "" if write == 3 else f"exec 3>&{write} {write}>&-; "
        self.process = subprocess.Popen(["bash", "-c", close + "exec " + " ".join(map(shlex.quote, command))],
                                        stdin=subprocess.PIPE, pass_fds=[write], stdout=self.log,
                                        stderr=self.log, cwd=self.folder, text=True, env=environment)
        os.close(write)
        self.replies = os.fdopen(read)

    def answer(self):
        line = self.replies.readline()
        if not line:
            self.process.wait()
            self.log.seek(0)
            raise RuntimeError(f"the {self.mode} process ended early:\n" + self.log.read()[-3000:])
        return json.loads(line)

    def ready(self):
        """What it runs on, in words."""
        answer = self.answer()
        if "left out" in answer:
            raise LeftOut(answer["left out"])
        return answer["ready"]

    def block(self, iterations, last=False):
        self.process.stdin.write(f"{iterations} {int(last)}\n")
        self.process.stdin.flush()
        return self.answer()

    def end(self):
        before = time.perf_counter()
        if not self.process.stdin.closed:
            self.process.stdin.close()
        self.process.wait()
        return time.perf_counter() - before


def interval(values):
    """Median, and the narrowest order statistics that enclose it with at least 95 %, whatever the
    distribution: it takes six values. Of fewer: the least and the greatest."""
    values, n = sorted(values), len(values)
    rank, outside = 0, 1  # P(fewer than rank + 1 of n values are below the median), times 2^n
    while rank < (n - 1) // 2 and 2 * (outside + math.comb(n, rank + 1)) <= 0.05 * 2 ** n:
        rank += 1
        outside += math.comb(n, rank)
    return statistics.median(values), values[rank], values[n - 1 - rank]


def cost_of(plumb, path):
    """What the profile says that recording costs: the key `cost` of `plumb report --json`."""
    done = subprocess.run([plumb, "report", path, "--json", "--top", "1"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["run"]["cost"]


def growth_of(workload, folder, options):
    """Resident memory from iteration 100 to 1000 of a fresh pair."""
    growth = {}
    for mode in ("none", "plumb"):
        worker = Worker(workload, mode, os.path.join(folder, "growth"), options)
        worker.ready()
        start = worker.block(95)["resident"]
        growth[mode] = worker.block(900)["resident"] - start
        worker.end()
    return growth


def measure(workload, workers, folder, options):
    """The raw figures of one workload, whose workers are ready: {mode: [block…]} and the rest."""
    for worker in workers.values():
        worker.block(WARM)
    iterations = ITERATIONS.get(workload)
    if options.block or not iterations:
        iterations = max(1, round((options.block or BLOCK) / workers["none"].block(WARM)["seconds"]))
    modes = list(workers)
    blocks = {mode: [] for mode in modes}
    for number in range(options.rounds):
        order = modes if number % 2 == 0 else modes[::-1]
        for mode in order:
            blocks[mode].append(workers[mode].block(iterations, number == options.rounds - 1))
    raw = {"workload": workload, "iterations": iterations, "modes": {}}
    if "plumb" in modes and workload == "gptsmall":
        raw["growth"] = growth_of(workload, folder, options)
    for mode in modes:
        raw["modes"][mode] = {"blocks": blocks[mode], "end": workers[mode].end()}
        if mode in PLUMB:
            raw["modes"][mode]["profile"] = os.path.getsize(workers[mode].profile)
            raw["modes"][mode]["cost"] = cost_of(options.plumb, workers[mode].profile)
    return raw


def against(raw, mode, base, key):
    """What `mode` took of `base`: of seconds round by round, of peak memory at the end."""
    mine, theirs = raw["modes"][mode]["blocks"], raw["modes"][base]["blocks"]
    if key == "peak":
        return max(b["peak"] for b in mine) / max(b["peak"] for b in theirs)
    return interval([b["seconds"] / a["seconds"] for a, b in zip(theirs, mine)])


def span_name(rounds):
    return "95 % interval" if rounds >= 6 else "least–greatest"


def written(middle, low, high):
    return f"{middle:.3f} ({low:.3f}–{high:.3f})"


def table(raw, base):
    """One workload as Markdown."""
    modes = raw["modes"]
    rounds = len(modes[base]["blocks"])
    beside = "" if base == "none" else f" to {base}"
    out = [f"### {raw['workload']}: {raw['iterations']} iterations a block, {rounds} rounds", "",
           f"| mode | ms/iteration | ratio{beside} ({span_name(rounds)}) | memory added{beside} | "
           "end to profile | profile | min ms, ratio |", "|---|---|---|---|---|---|---|"]
    for mode, row in modes.items():
        blocks = row["blocks"]
        cells = [mode, f"{1e3 * statistics.median(b['seconds'] for b in blocks):.3f}"]
        if mode == base:
            cells += ["1", "–"]
        else:
            added = max(b["peak"] for b in blocks) - max(b["peak"] for b in modes[base]["blocks"])
            cells += [written(*against(raw, mode, base, "seconds")), f"{added:.0f} MB"]
        if mode == "none":
            cells += ["–", "–"]
        elif mode in PLUMB:
            finish = max(0.0, row["end"] - modes["none"]["end"])
            cells += [f"{finish:.2f} s", f"{row['profile'] / 1e6:.1f} MB"]
        else:
            cells += [f"{blocks[-1]['finish']:.2f} s", f"{blocks[-1]['bytes'] / 1e6:.1f} MB"]
        least, plain = (min(b["seconds"] for b in modes[name]["blocks"]) for name in (mode, base))
        cells.append(f"{1e3 * least:.3f}, {least / plain:.3f}")
        out.append("| " + " | ".join(cells) + " |")
    if "growth" in raw:
        out += ["", f"Resident memory from iteration 100 to 1000: none {raw['growth']['none']:+.1f} MB, "
                    f"plumb {raw['growth']['plumb']:+.1f} MB."]
    return "\n".join(out) + "\n"


def summary(raws, base):
    """All workloads side by side, and what is in their middle."""
    modes = [mode for mode in raws[0]["modes"] if mode != base]
    rounds = len(raws[0]["modes"][base]["blocks"])
    rule = "|---" * (len(modes) + 2) + "|"
    head = f" | {base}, %s | " + " | ".join(modes) + " |"

    def foot(columns):
        return [f"| **{name}** | | " + " | ".join(f"**{of(column):.3f}**" for column in columns) + " |"
                for name, of in (("median", statistics.median), ("least", min), ("greatest", max))]

    def rows(cell, first):
        return ["| " + " | ".join([raw["workload"], first(raw), *(cell(raw, mode) for mode in modes)]) + " |"
                for raw in raws]

    out = [f"### {len(raws)} workloads: time, ratio to {base} ({span_name(rounds)})", "",
           "| workload" + head % "ms/iteration", rule]
    out += rows(lambda raw, mode: written(*against(raw, mode, base, "seconds")),
                lambda raw: "%.3f" % (1e3 * statistics.median(
                    b["seconds"] for b in raw["modes"][base]["blocks"])))
    out += foot([[against(raw, mode, base, "seconds")[0] for raw in raws] for mode in modes])
    out += ["", f"### {len(raws)} workloads: peak resident memory, ratio to {base}", "",
            "| workload" + head % "MB", rule]
    out += rows(lambda raw, mode: f"{against(raw, mode, base, 'peak'):.3f}",
                lambda raw: f"{max(b['peak'] for b in raw['modes'][base]['blocks']):.0f}")
    out += foot([[against(raw, mode, base, "peak") for raw in raws] for mode in modes])
    return "\n".join(out) + "\n"


def group_of(workloads, modes, folder, options, done, problems):
    """Loads the processes of some workloads together, then measures one after the other; yields the
    raw figures of each. A workload that fails goes to `problems`, and the others go on."""
    workers = {workload: {mode: Worker(workload, mode, folder, options) for mode in modes}
               for workload in workloads}
    here = None
    for workload in workloads:
        try:
            for worker in workers[workload].values():
                here = worker.ready()
        except (LeftOut, RuntimeError) as error:
            problems.append((workload, error))
    failed = {workload for workload, _ in problems}
    for workload in workloads:
        try:
            if workload not in failed:
                done({**measure(workload, workers[workload], folder, options), "environment": here})
        except RuntimeError as error:
            problems.append((workload, error))
        finally:
            for worker in workers[workload].values():
                worker.end()


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--workload", action="append")
    parser.add_argument("--mode", action="append", choices=MODES)
    parser.add_argument("--against", choices=MODES, default="none")
    parser.add_argument("--rounds", type=int, help="(default: 12; of tenmodels 6)")
    parser.add_argument("--block", type=float, help=f"seconds (default: by the workload, else {BLOCK})")
    parser.add_argument("--together", type=int, default=3, help="workloads loaded at a time")
    parser.add_argument("--tiny", action="store_true", help="tenmodels so small that a CPU will do")
    parser.add_argument("--plumb", default=os.path.join(HERE, "..", "build", "plumb"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--json", metavar="FILE", help="every block's figures")
    parser.add_argument("-o", "--output")
    options = parser.parse_args()
    ten = options.workload == ["tenmodels"]
    options.rounds = options.rounds or (6 if ten else 12)
    modes = options.mode or (["none", "light", "full", "torch"] if ten else USUAL)
    options.modes = list(dict.fromkeys(["none", *modes, options.against]))
    options.workloads = [one for name in options.workload or ["gptsmall", "llama", "gpt124"]
                         for one in {"tenmodels": TEN, "kinds": KINDS}.get(name, [name])]
    options.plumb = os.path.abspath(options.plumb)
    return options


def main():
    if sys.argv[1:2] == ["--work"]:
        return work(*sys.argv[2:4], bool(sys.argv[4]))
    options = parse()
    raws, problems, parts = [], [], []

    def write():
        if options.output:
            with open(options.output, "w") as output:
                output.write("\n".join(parts))
        if options.json:
            with open(options.json, "w") as output:
                json.dump(raws, output)

    def say(part):
        parts.append(part)
        print(part, flush=True)
        write()

    def done(raw):
        if not raws:
            say(raw["environment"] + "\n")
        raws.append(raw)
        say(table(raw, options.against))

    for first in range(0, len(options.workloads), options.together):
        with tempfile.TemporaryDirectory() as folder:
            group_of(options.workloads[first:first + options.together], options.modes, folder, options,
                     done, problems)
    if len(raws) > 1:
        say(summary(raws, options.against))
    for workload, error in problems:
        say(f"{workload} was {'left out' if isinstance(error, LeftOut) else 'not measured'}: {error}\n")
    return not raws or any(not isinstance(error, LeftOut) for _, error in problems)


if __name__ == "__main__":
    sys.exit(main())
