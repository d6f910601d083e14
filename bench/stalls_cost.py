#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What --stalls adds to the light mode, beside CUPTI's PC sampling alone, in one run on a GPU.

    python3 bench/stalls_cost.py [--workload W]… [--rounds N] [--block SECONDS] [--plumb PATH] [-o FILE.md] [--json FILE]
    python3 bench/stalls_cost.py --from FILE.json

Five processes take turns (bench/overhead.py): the plain program; light; light that times nodes of CUDA graphs, which --stalls
implies; --stalls; and bare PC sampling (bench/stalls_floor.c) with the same period and buffers. The goal: what --stalls
costs is at most the sum of what light (with nodes) and bare sampling cost, and 5 % of the plain program. The interval is that of the
rounds. Also printed: the size of both profiles, and how many samples were kept and lost.

The GPU's counters must be allowed (plumb doctor: gpu.stalls), and bare sampling needs the headers of CUPTI
(nvidia-cuda-cupti, or CUDA_HOME).
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from overhead import interval  # noqa: E402

MODES = ["light", "nodes", "stalls", "pcsampling"]
ALLOWED = 0.05  # of the plain program, above the sum


def seconds(raw, mode):
    return [block["seconds"] for block in raw["modes"][mode]["blocks"]]


def judge(raw):
    """Markdown for one workload, and whether it meets the goal."""
    plain = seconds(raw, "none")
    costs = {mode: [mine / none - 1 for mine, none in zip(seconds(raw, mode), plain)] for mode in MODES}
    above = [stalls - nodes - bare for stalls, nodes, bare in zip(costs["stalls"], costs["nodes"], costs["pcsampling"])]
    least = {mode: min(seconds(raw, mode)) / min(plain) - 1 for mode in MODES}
    least_above = least["stalls"] - least["nodes"] - least["pcsampling"]
    out = [f"### {raw['workload']}: {raw['iterations']} iterations of {1e3 * sorted(plain)[len(plain) // 2]:.1f} ms a block, "
           f"{len(plain)} rounds", "", "| | of the plain program (95 % interval) | shortest block of each |", "|---|---|---|"]
    for name, values, shortest in [*((mode, costs[mode], least[mode]) for mode in MODES),
                                   ("stalls - nodes - pcsampling", above, least_above)]:
        middle, low, high = interval(values)
        out.append(f"| {name} | {100 * middle:+.1f} % ({100 * low:+.1f} to {100 * high:+.1f}) | {100 * shortest:+.1f} % |")
    fine = interval(above)[0] <= ALLOWED
    sizes = {mode: raw["modes"][mode]["profile"] / 1e6 for mode in ("nodes", "stalls")}
    out += ["", f"{'Met' if fine else 'MISSED'}: at most {100 * ALLOWED:.0f} % above the sum. Profile: {sizes['nodes']:.1f} MB, "
                f"with stalls {sizes['stalls']:.1f} MB.", ""]
    return "\n".join(out), fine


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--workload", action="append")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--block", type=float, help="seconds of a plain block; on a busy host, short blocks and many rounds say more")
    parser.add_argument("--plumb", default=os.path.join(HERE, "..", "build", "plumb"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--from", dest="given", metavar="FILE.json", help="figures that were kept with --json")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("-o", "--output")
    options = parser.parse_args()
    path = options.given or options.json or tempfile.mkstemp(suffix=".json")[1]
    if not options.given:
        command = [sys.executable, os.path.join(HERE, "overhead.py"), "--plumb", options.plumb, "--python", options.python,
                   "--rounds", str(options.rounds), "--json", path]
        for workload in options.workload or ["gptsmall", "resnet"]:
            command += ["--workload", workload]
        for mode in MODES:
            command += ["--mode", mode]
        if options.block:
            command += ["--block", str(options.block)]
        if subprocess.run(command).returncode:
            return 1
    with open(path) as file:
        raws = json.load(file)
    parts, met = zip(*map(judge, raws))
    text = "\n".join([raws[0]["environment"], "", *parts])
    print(text)
    if options.output:
        with open(options.output, "w") as output:
            output.write(text)
    return not all(met)


if __name__ == "__main__":
    sys.exit(main())
