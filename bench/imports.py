#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an import of a PyTorch trace costs, beside what people load such traces with, in one run.

    python3 bench/imports.py [--plumb PATH] [--megabytes N] [--hta PYTHON] [--trace FILE] [--rounds N]

Makes a trace of N MB (240) by repeating a recorded one, each time later and with other numbers, as it is, with
zstd and with gzip. Then in turn, MB of JSON text a second: plumb on one core and on two, to a finished profile;
Python's json and orjson, which only parse; and HolisticTraceAnalysis, which loads it (--hta: a Python that has it
and orjson). Peak memory is the largest of the whole process. If others use the machine, compare the processor time.
"""
import argparse
import gzip
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
RECORDED = os.path.join(HERE, "..", "tests", "data", "foreign", "torch.json.gz")
HTA = """
import sys, time, logging
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir=".")
"""
LOADERS = {"json": "import json, sys; json.load(open(sys.argv[1]))",
           "orjson": "import orjson, sys; orjson.loads(open(sys.argv[1], 'rb').read())", "HTA": HTA}


def enlarge(source, megabytes, path):
    """Repeats the events of SOURCE, each time 10 s later, with correlations of their own."""
    with (gzip.open if source.endswith("gz") else open)(source, "rt") as file:
        trace = json.load(file)
    events = trace.pop("traceEvents")
    first = min(e["ts"] for e in events if isinstance(e.get("ts"), (int, float)))
    parts = []
    for event in events:
        event = dict(event)
        if isinstance(event.get("ts"), (int, float)):
            event["ts"] = round(event["ts"] - first + 1e7, 3)
        parts.append(json.dumps(event))
    body = ",\n".join(parts)
    copies = max(1, int(megabytes * 1e6 / len(body)))
    with open(path, "w") as file:
        file.write(json.dumps(trace)[:-1] + ', "traceEvents": [\n')
        for copy in range(copies):
            part = re.sub(r'"ts": 1(\d{7})', lambda m, c=copy: f'"ts": {c + 1}{m[1]}', body)
            part = re.sub(r'"(correlation|External id|id)": (\d+)', rf'"\1": {copy + 1}\g<2>', part)
            file.write((",\n" if copy else "") + part)
        file.write("\n]}\n")
    return os.path.getsize(path)


def once(command, cores):
    """(seconds, peak memory in bytes, seconds of the processor) of one command, tied to so many cores."""
    before = time.perf_counter()
    child = subprocess.Popen(["taskset", "-c", ",".join(map(str, range(cores))), *command],
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    error = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{command}: {error.decode()[-2000:]}")
    return time.perf_counter() - before, usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plumb", default=os.path.join(HERE, "..", "build", "plumb"))
    parser.add_argument("--megabytes", type=float, default=240)
    parser.add_argument("--hta", metavar="PYTHON", help="a Python with HolisticTraceAnalysis and orjson")
    parser.add_argument("--trace", default=RECORDED)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trace, out = os.path.join(folder, "trace.json"), os.path.join(folder, "out.plumb")
        size = enlarge(options.trace, options.megabytes, trace)
        for tool, end in (("zstd", "zst"), ("gzip", "gz")):
            with open(f"{trace}.{end}", "wb") as file:
                subprocess.run([tool, "-c", trace], stdout=file, check=True)
        plumb = [options.plumb, "import", "-o", out]
        ways = {"plumb, plain, one core": ([*plumb, trace], 1), "plumb, zstd, one core": ([*plumb, trace + ".zst"], 1),
                "plumb, gzip, one core": ([*plumb, trace + ".gz"], 1),
                "plumb, gzip, two cores": ([*plumb, trace + ".gz"], 2),
                "Python's json (parses)": ([sys.executable, "-c", LOADERS["json"], trace], 1)}
        if options.hta:
            ways["orjson (parses)"] = ([options.hta, "-c", LOADERS["orjson"], trace], 1)
            ways["HolisticTraceAnalysis (loads)"] = ([options.hta, "-c", LOADERS["HTA"], trace], 2)
        seconds, memory = {way: [] for way in ways}, dict.fromkeys(ways, 0)
        processor = {way: [] for way in ways}
        for round_ in range(options.rounds):
            for way, (command, cores) in ways.items():
                if round_ and "plumb" not in way and sum(seconds[way]) > 20:
                    continue
                took, peak, worked = once(command, cores)
                seconds[way].append(took)
                processor[way].append(worked)
                memory[way] = max(memory[way], peak)
        reports = []
        once([options.plumb, "import", "-o", out, trace], 2)
        for _ in range(options.rounds):
            reports.append(once([options.plumb, "report", out], 1)[0])
        import sqlite3
        spans = sqlite3.connect(out).execute("SELECT sum(count) FROM span_chunks WHERE source = 'trace'").fetchone()[0]
        profile = os.path.getsize(out)
    base = statistics.median(seconds["plumb, plain, one core"])
    print(f"{size / 1e6:.0f} MB of JSON, {spans} spans, profile {profile / 1e6:.1f} MB, "
          f"{options.rounds} rounds in turn, median (least–greatest)\n")
    print("| | MB/s | MB in a second of the processor | time, ratio to plumb | peak memory, ratio to the text |")
    print("|---|---|---|---|---|")
    for way, took in seconds.items():
        middle = statistics.median(took)
        print(f"| {way} | {size / 1e6 / middle:.1f} ({size / 1e6 / max(took):.1f}–{size / 1e6 / min(took):.1f}) | "
              f"{size / 1e6 / statistics.median(processor[way]):.1f} | "
              f"{middle / base:.2f}× | {memory[way] / size:.2f}× |")
    print(f"\nplumb report of the profile: {statistics.median(reports):.3f} s")


if __name__ == "__main__":
    main()
