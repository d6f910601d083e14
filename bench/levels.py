#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The fifteen analyses of the XSP paper for ResNet-50 over batch sizes, by `plumb levels --sweep`, as a page with figures.

    python3 bench/levels.py --folder DIR [--sizes 1,2,4] [--runs N] [--seconds BUDGET] [--plumb PATH] [--python PYTHON]
    python3 bench/levels.py --from DIR -o docs/levels-resnet50.md      # the page of the profiles in DIR
    python3 bench/levels.py work --batch 4                             # what runs under plumb levels

The program runs at each level, and once more with counters, for each size. Profiles that DIR has are not made again, so a run that
was stopped goes on. Figures are written beside the page. --cpu tries it without a GPU: ResNet-18 and small images.
"""
import argparse
import glob
import json
import os
import re
import signal
import subprocess
import sys

from levels_svg import bars, lines

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
SIZES = "1,2,4,8,16,32,64,128,256"
COUNTERS = "flop_count_sp,dram_read_bytes,dram_write_bytes,achieved_occupancy"
UNKNOWN = "–"
TOP = 5


# ---- what runs ----

def work(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args(words)
    import torch
    from torchvision import models
    torch.manual_seed(0)
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    device, side = ("cpu", 32) if options.cpu else ("cuda", 224)
    with torch.device(device):
        model = (models.resnet18 if options.cpu else models.resnet50)().eval()
    images = torch.randn(options.batch, 3, side, side, device=device)
    steps = 40 if options.cpu else max(20, int(300 / options.batch ** 0.5))  # long enough for a loop to be found
    with torch.no_grad():
        for _ in range(steps):
            model(images)
            if device == "cuda":
                torch.cuda.synchronize()


# ---- measuring ----

def profile_of(folder, size):
    return os.path.join(folder, f"levels.batch-{size}.plumb")


def measure(options):
    sizes = [size for size in options.sizes.split(",") if not os.path.exists(profile_of(options.folder, size))]
    if not sizes:
        return
    os.makedirs(options.folder, exist_ok=True)
    command = [options.plumb, "levels", "--runs", str(options.runs), "--serialised=never", "--trace", "--limit", "512M",
               "-o", os.path.join(options.folder, "levels.plumb"), "--sweep", "batch=" + ",".join(sizes), "--json"]
    if not options.cpu:
        command += ["--counters=" + COUNTERS, "--counters-launches=1", "--counters-kernels=256"]
    command += ["--", options.python, os.path.join(HERE, "levels.py"), "work", "--batch", "{batch}", *(["--cpu"] if options.cpu else [])]
    path = os.pathsep.join([os.path.join(ROOT, "python"), *filter(None, [os.environ.get("PYTHONPATH")])])
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": path})
    try:
        started.wait(options.seconds)
    except subprocess.TimeoutExpired:
        started.send_signal(signal.SIGINT)  # the sizes that are done have their profiles
        started.wait()


# ---- reading ----

def answer(options, *words):
    done = subprocess.run([options.plumb, *words, "--json"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr.strip() or f"plumb {words[0]} failed")
    return json.loads(done.stdout)


def tables_of(options, files, *names):
    """{table: rows as dictionaries}."""
    found = answer(options, "tables", *files, *names)
    return {table["id"]: [dict(zip((column["name"] for column in table["columns"]), row)) for row in table["rows"]]
            for table in found["tables"]}


def read(options, folder):
    """What the profiles in FOLDER say, by batch size."""
    files = {int(re.search(r"batch-(\d+)\.plumb$", file).group(1)): file
             for file in glob.glob(os.path.join(glob.escape(folder), "levels.batch-*.plumb"))}
    if not files:
        raise SystemExit(f"{folder} has no profiles levels.batch-N.plumb")
    files = dict(sorted(files.items()))
    batches = ",".join(map(str, files))
    found = {"A1": tables_of(options, list(files.values()), "A1", "--batch", batches)["A1"], "sizes": {}}
    for size, file in files.items():
        tables = tables_of(options, [file], "all", "--batch", str(size))
        tables["levels"] = answer(options, "report", file, "--corrected", "--top", "1")["measured"]
        found["sizes"][size] = tables
    return found


# ---- the page ----

def number(value, form="{:,.2f}", scale=1.0):
    if value is None:
        return UNKNOWN
    return ("no", "yes")[value] if isinstance(value, bool) else form.format(value * scale) if not isinstance(value, str) else value


def table(head, rows):
    """Columns of which nothing is known are left out, and named below."""
    known = [i for i in range(len(head)) if any(row[i] != UNKNOWN for row in rows)]
    text = ["| " + " | ".join(head[i] for i in known) + " |", "|" + "---|" * len(known)]
    text += ["| " + " | ".join(row[i].replace("|", "\\|") for i in known) + " |" for row in rows]
    if not known:
        return "Nothing is known of them."
    unknown = [head[i] for i in range(len(head)) if i not in known]
    return "\n".join(text + (["", f"Unknown: {', '.join(unknown)}."] if unknown else []))


def share(part, whole):
    return None if part is None or not whole else 100 * part / whole


def sizes_table(found):
    head = ["batch", "latency (ms)", "inputs/s", "GPU (%)", "Gflop", "read (GB)", "written (GB)", "occupancy (%)", "flop/byte",
            "Tflop/s", "memory-bound", "optimal by doubling", "by throughput"]
    rows = []
    for one in found["A1"]:
        model, = found["sizes"][one["batch_size"]]["A15"]
        rows.append([str(one["batch_size"]), number(one["latency (ms)"]), number(one["throughput (input/s)"], "{:,.0f}"),
                     number(share(model["model_gpu_duration (us)"], one["duration (us)"]), "{:.1f}"),
                     number(model["model_flops"], "{:,.1f}", 1e-9), number(model["model_dram_read_bytes"], "{:.2f}", 1e-9),
                     number(model["model_dram_write_bytes"], "{:.2f}", 1e-9), number(model["model_achieved_occupancy (%)"], "{:.1f}"),
                     number(model["model_arithmetic_intensity (flops/byte)"]),
                     number(model["model_arithmetic_throughput (GFlops)"], "{:.2f}", 1e-3), number(model["model_memory_bound"]),
                     number(one["optimal_by_doubling"]), number(one["optimal_by_throughput"])])
    return table(head, rows)


def levels_table(found):
    head, rows = ["batch", "M (ms)", "M/L (ms)", "M/L/G (ms)", "looking adds to M (%)", "bounded by"], []
    for size, tables in found["sizes"].items():
        mean = {level["level"]: level["wall_ns"]["mean"] for level in tables["levels"]}
        first = tables["levels"][0]
        rows.append([str(size), *(number(mean.get(level), "{:.2f}", 1e-6) for level in ("M", "M/L", "M/L/G")),
                     number(share(mean["M/L/G"] - mean["M"], mean["M"]) if mean.get("M") and mean.get("M/L/G") else None, "{:.1f}"),
                     first["bounds"]])
    return table(head, rows)


def best_of(found):
    """The optimal size, by the rule that the paper's numbers follow."""
    marked = [one["batch_size"] for one in found["A1"] if one["optimal_by_throughput"]]
    return marked[0] if marked else found["A1"][-1]["batch_size"]


def types_table(tables):
    times = {row["type"]: row for row in tables["A6"]}
    memory = {row["type"]: row for row in tables["A7"]}
    rows = []
    for row in tables["A5"]:
        time, bytes_of = times.get(row["type"], {}), memory.get(row["type"], {})
        rows.append([row["type"], str(row["occurrences"]), number(row["occurrence percentage (%)"], "{:.1f}"),
                     number(time.get("duration percentage (%)"), "{:.1f}"), number(time.get("device_duration (us)"), "{:,.0f}"),
                     number(time.get("device_duration percentage (%)"), "{:.1f}"),
                     number(bytes_of.get("allocated memory percentage (%)"), "{:.1f}")])
    return table(["type", "layers (A5)", "of layers (%)", "of host time (A6, %)", "GPU time (µs)", "of GPU time (%)",
                  "of memory (A7, %)"], rows)


def most(rows, column):
    return sorted(rows, key=lambda row: -(row.get(column) or 0))[:TOP]


def layers_table(tables):
    by_index = {name: {row["layer_index"]: row for row in tables[name]} for name in ("A2", "A3", "A4", "A12", "A13", "A14")}
    rows = []
    for row in most(tables["A11"], "layer_gpu_duration (us)"):
        at = {name: rows_of[row["layer_index"]] for name, rows_of in by_index.items()}
        rows.append([str(row["layer_index"]), row["layer_name"], row["layer_type"], number(at["A2"]["layer_shape"]),
                     number(at["A3"]["layer_host_duration (us)"], "{:,.0f}"), number(row["layer_gpu_duration (us)"], "{:,.0f}"),
                     number(at["A13"]["layer_gpu_percentage"], "{:.0f}"),
                     number(at["A4"]["layer_allocated_bytes"], "{:,.0f}", 2 ** -20), number(at["A12"]["layer_flops"], "{:,.2f}", 1e-9),
                     number(row["layer_dram_read_bytes"], "{:,.0f}", 1e-6), number(row["layer_dram_write_bytes"], "{:,.0f}", 1e-6),
                     number(at["A12"]["layer_achieved_occupancy (%)"], "{:.0f}"),
                     number(at["A14"]["layer_arithmetic_intensity (flops/byte)"], "{:.1f}"),
                     number(at["A14"]["layer_arithmetic_throughput (GFlops)"], "{:.1f}", 1e-3),
                     number(at["A14"]["layer_memory_bound"])])
    return table(["layer", "name (A2)", "type", "shape", "host (A3, µs)", "GPU (A11, µs)", "GPU share (A13, %)", "memory (A4, MiB)",
                  "Gflop (A12)", "read (MB)", "written (MB)", "occupancy (%)", "flop/byte (A14)", "Tflop/s", "memory-bound"], rows)


def short(name, most_letters=60):
    name = re.sub(r"^void ", "", re.sub(r"\(anonymous namespace\)::", "", name))
    name = re.sub(r"[<(].*", "", name) or name
    return name if len(name) <= most_letters else name[:most_letters - 1] + "…"


def kernels_table(tables):
    roof = {(row["layer_index"], row["kernel_name"]): row for row in tables["A9"]}
    rows = []
    for row in most(tables["A8"], "kernel_duration (us)"):
        rows.append([f"`{short(row['kernel_name'])}`", number(row["layer_name"]), number(row["kernel_duration (us)"], "{:,.0f}"),
                     number(row["kernel_flops"], "{:,.2f}", 1e-9), number(row["kernel_dram_read_bytes"], "{:,.0f}", 1e-6),
                     number(row["kernel_dram_write_bytes"], "{:,.0f}", 1e-6), number(row["kernel_achieved_occupancy (%)"], "{:.0f}"),
                     number(roof[row["layer_index"], row["kernel_name"]]["kernel_arithmetic_intensity (flops/byte)"], "{:.1f}"),
                     number(row["kernel_arithmetic_throughput (GFlops)"], "{:.1f}", 1e-3), number(row["kernel_memory_bound"])])
    return table(["kernel (A8)", "layer", "µs", "Gflop", "read (MB)", "written (MB)", "occupancy (%)", "flop/byte (A9)", "Tflop/s",
                  "memory-bound"], rows)


def names_table(tables):
    rows = []
    for row in most(tables["A10"], "kernel_duration (us)"):
        rows.append([f"`{short(row['kernel_name'])}`", number(row["kernel_count"], "{:.0f}"), number(row["kernel_duration (us)"], "{:,.0f}"),
                     number(row["gpu_duration_percentage"], "{:.1f}"), number(row["kernel_flops"], "{:,.2f}", 1e-9),
                     number(row["kernel_achieved_occupancy (%)"], "{:.0f}"),
                     number(row["kernel_arithmetic_intensity (flops/byte)"], "{:.1f}"), number(row["kernel_memory_bound"])])
    return table(["kernel name (A10)", "executions", "µs", "of GPU time (%)", "Gflop", "occupancy (%)", "flop/byte", "memory-bound"], rows)


def figures(found):
    """{name: (SVG, what it shows)}."""
    one = found["A1"]
    xs = [row["batch_size"] for row in one]
    models = [found["sizes"][size]["A15"][0] for size in xs]
    best = found["sizes"][best_of(found)]
    levels = {name: [next((level["wall_ns"]["mean"] for level in found["sizes"][size]["levels"] if level["level"] == name), None)
                     for size in xs] for name in ("M", "M/L", "M/L/G")}
    gpu = [share(model["model_gpu_duration (us)"], row["duration (us)"]) for model, row in zip(models, one)]
    types = [{row["type"]: row["device_duration percentage (%)"] or 0 for row in found["sizes"][size]["A6"]} for size in xs]
    largest = sorted({name for by in types for name in by}, key=lambda name: -sum(by.get(name, 0) for by in types))[:7]
    ideal = next((row["GPU_ideal_arithmetic_intensity (flops/byte)"] for row in best["A9"]), None)
    layers = [row["layer_index"] for row in best["A11"]]
    every = {index for index in layers if index % 25 == 0}
    intensity = {"ResNet-50": [model["model_arithmetic_intensity (flops/byte)"] for model in models]}
    if ideal and any(intensity["ResNet-50"]):
        intensity["where the roof bends"] = [ideal] * len(xs)
    made = {
        "throughput": lines("Throughput (A1)", "batch size", "inputs per second", xs,
                            {"ResNet-50": [row["throughput (input/s)"] for row in one]}),
        "levels": lines("An iteration at each level", "batch size", "ms", xs, {
            name: [ns and ns / 1e6 for ns in values] for name, values in levels.items()}, logarithmic=True),
        "gpu": bars("GPU and other time (A13, A15)", "batch size", "% of the latency", xs, {
            "kernels": [min(part, 100) if part is not None else None for part in gpu],
            "the rest": [max(100 - part, 0) if part is not None else None for part in gpu]}),
        "types": bars("Types of layers (A6)", "batch size", "% of GPU time", xs, {
            name: [by.get(name, 0) for by in types] for name in largest}),
        "intensity": lines("Operations per byte (A15)", "batch size", "flop/byte", xs, intensity),
        "layers": bars(f"GPU time of layers at batch {best_of(found)} (A11)", "layer", "µs", layers,
                       {"GPU": [row["layer_gpu_duration (us)"] for row in best["A11"]]}, every),
        "memory": bars(f"Memory that layers allocate at batch {best_of(found)} (A4)", "layer", "MiB", layers, {
            "allocated": [(row["layer_allocated_bytes"] or 0) / 2 ** 20 for row in best["A4"]]}, every)}
    return {name: svg for name, svg in made.items() if svg}


def page(found, made, images):
    best = best_of(found)
    tables = found["sizes"][best]
    gpu = found["A1"][0]["GPU_name"]

    def figure(name):
        return [f"![{name}]({images}{name}.svg)", ""] if name in made else []
    why = sorted({f"- batch {size}, {level['level']}: {level['why']}" for size, one in found["sizes"].items()
                  for level in one["levels"] if level["why"]})
    return "\n".join([
        "# ResNet-50 level by level", "",
        f"The fifteen analyses of the XSP paper (Li et al., 2020) for inference with torchvision's {found['A1'][0]['model_name']} and "
        f"random weights, on {gpu or 'a machine without a GPU'}, in single precision without TF32. `python3 bench/levels.py` runs "
        "[`plumb levels --sweep --counters`](levels.md) and makes this page. The paper's figures are of a V100 with TensorFlow: compare "
        "shapes, not values.", "",
        "## Batch sizes (A1, A15)", "", sizes_table(found), "", *figure("throughput"), *figure("gpu"), *figure("intensity"),
        "| | XSP paper, V100 | here |", "|---|---|---|",
        f"| the largest size tried has the highest throughput | yes, 256 | {'yes' if best == max(found['sizes']) else 'no'}, {best} |",
        "| gain of the last two doublings | 3.6 %, 3.9 % | " + gains(found) + " |",
        "| sizes that are memory-bound | 16 and 32 | " + (", ".join(bound_sizes(found)) or "none") + " |",
        "| flop/byte of the largest size | 30.61 | " + number(found["sizes"][max(found["sizes"])]["A15"][0][
            "model_arithmetic_intensity (flops/byte)"]) + " |",
        "| flop/byte where the roof bends | 17.44 | " + number(next((row["GPU_ideal_arithmetic_intensity (flops/byte)"]
                                                                    for row in tables["A9"]), None)) + " |", "",
        "## What looking adds", "", levels_table(found), "", *figure("levels"),
        f"## Layers at batch {best} (A2 to A7, A11 to A14)", "", types_table(tables), "", *figure("types"),
        f"The {TOP} layers with most GPU time:", "", layers_table(tables), "", *figure("layers"), *figure("memory"),
        f"## Kernels at batch {best} (A8 to A10)", "", f"The {TOP} kernels of a layer with most time, and the {TOP} kernel names:", "",
        kernels_table(tables), "", names_table(tables), "",
        "Times of an iteration are of level M, host times of layers of M/L, times of kernels of M/L/G. Counters are of M/L/G/C, of the first "
        "launch of each kernel at each call path. The GPU share of a layer is of the first run, in which latencies of layers overlap. The GPU's share of the latency can pass 100 %, because its two times are of "
        "different runs, in which cuDNN may choose other kernels.", "",
        *(["## What was left out", "", *why, ""] if why else [])])


def gains(found):
    rates = [(row["batch_size"], row["throughput (input/s)"]) for row in found["A1"] if row["throughput (input/s)"]]
    text = [f"{100 * (after[1] / before[1] - 1):.1f} %" for before, after in zip(rates, rates[1:]) if after[0] == 2 * before[0]]
    return ", ".join(text[-2:]) or UNKNOWN


def bound_sizes(found):
    flags = {size: tables["A15"][0]["model_memory_bound"] for size, tables in found["sizes"].items()}
    return [UNKNOWN] if all(flag is None for flag in flags.values()) else [str(size) for size, flag in flags.items() if flag]


def write(options, found):
    made = figures(found)
    stem = os.path.splitext(os.path.basename(options.output))[0] + "-"
    folder = os.path.join(os.path.dirname(os.path.abspath(options.output)), "images")
    os.makedirs(folder, exist_ok=True)
    for name, svg in made.items():
        with open(os.path.join(folder, f"{stem}{name}.svg"), "w", encoding="utf-8") as file:
            file.write(svg)
    with open(options.output, "w", encoding="utf-8") as file:
        file.write(page(found, made, f"images/{stem}"))


def main():
    if sys.argv[1:2] == ["work"]:
        return work(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", default="levels-resnet50", help="where the profiles are")
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--runs", type=int, default=1, help="at each level")
    parser.add_argument("--seconds", type=float, default=560, help="after which the sweep is stopped")
    parser.add_argument("--plumb", default=os.path.join(ROOT, "build", "plumb"))
    parser.add_argument("--python", default=sys.executable, help="one with torch and torchvision")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--from", dest="old", metavar="DIR", help="measure nothing; make the page of the profiles in DIR")
    parser.add_argument("-o", dest="output", help="the page; without it, no page is made")
    options = parser.parse_args()
    if not options.old:
        measure(options)
    if options.output:
        write(options, read(options, options.old or options.folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
