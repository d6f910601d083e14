# SPDX-License-Identifier: Apache-2.0
"""The page of what bench/zoo/run.py measured: tables VIII and IX of the XSP paper for these models, with its shares beside ours."""
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GAIN = 1.05
LEAST_COUNTED = 0.5  # of the kernels' time, for a model to be called memory-bound or compute-bound
# Of the paper's 37 models for image classification, at their optimal batch sizes on a V100.
PAPER_GPU, PAPER_CONVOLUTION, PAPER_MEMORY_BOUND, PAPER_MODELS = (53.7, 95.6), (36, 80), 20, 37
UNKNOWN = "–"
CONVOLUTION = r"Conv(Transpose)?[123]d$|^aten::.*conv"  # not transformers' Conv1D, which is a matrix product


def optimal(sizes):
    """The first size whose doubling gains at most 5 % throughput."""
    for size, double in zip(sizes, sizes[1:]):
        if double["batch"] / double["latency_ns"] <= GAIN * size["batch"] / size["latency_ns"]:
            return size["batch"]
    return sizes[-1]["batch"]


def peaks_of(gpu):
    """(flop/s in single precision, byte/s) of a GPU, from the table in docs/tables.md; the first row that its name has counts."""
    with open(os.path.join(ROOT, "docs", "tables.md"), encoding="utf-8") as file:
        text = file.read()
    for words, line in re.findall(r"^\| ([A-Z][\w ]+?) \|(.*)$", text[text.index("### Peaks of GPUs"):], re.M):
        cells = [cell.strip() for cell in line.split("|")]
        if all(word in (gpu or "") for word in words.split()) and cells[0] != "fp32":
            try:
                return float(cells[0]) * 1e12, float(cells[5]) * 1e12
            except ValueError:
                return None
    return None


def known_sum(values):
    values = list(values)
    return None if not values or None in values else sum(values)


def share(part, whole):
    return None if part is None or not whole else 100 * part / whole


def of_types(types):
    """The times of the types of layers, the longest first: on the GPU, else on the host."""
    for column in ("device_duration (us)", "duration (us)"):
        times = {row["type"]: row.get(column) for row in types if row.get(column) is not None}
        if any(times.values()):
            return dict(sorted(times.items(), key=lambda item: -item[1]))
    return {}


def counted(looked, count):
    """Operations, bytes and occupancy of the counted kernels in one run of the model."""
    kernels = looked["kernels"]
    all_us = sum(kernel["kernel_duration (us)"] for kernel in kernels)
    found = {"us": 0, "flops": 0, "read": 0, "written": 0, "occupancy": 0}
    for kernel in kernels:
        values = count.get(kernel["kernel_name"], {})
        if not {"flop_count_sp", "dram_read_bytes", "dram_write_bytes", "achieved_occupancy"} <= set(values):
            continue
        times, us = kernel["kernel_count"], kernel["kernel_duration (us)"]
        found["us"] += us
        found["flops"] += times * values["flop_count_sp"]
        found["read"] += times * values["dram_read_bytes"]
        found["written"] += times * values["dram_write_bytes"]
        found["occupancy"] += us * values["achieved_occupancy"] / 1e4
    if not found["us"]:
        return None
    found["occupancy"] /= found["us"]
    found["share"] = found["us"] / all_us
    return found


def stage_with_most(stages, column):
    values = [stage.get(column) for stage in stages]
    if None in values or not any(values):
        return None
    return stages[max(range(len(values)), key=values.__getitem__)]["stage"]


def numbers_of(model, peaks):
    """Everything that a row says of MODEL. None: it was not swept."""
    sizes = model.get("sweep", {}).get("sizes")
    if not sizes:
        return None
    best = optimal(sizes)
    latency = {size["batch"]: size["latency_ns"] for size in sizes}
    row = {"task": model["task"], "online_ms": latency[1] / 1e6, "optimal": best, "latency_ms": latency[best] / 1e6,
           "throughput": max(size["batch"] * 1e9 / size["latency_ns"] for size in sizes), "largest": sizes[-1]["batch"]}
    look = model.get("look", {})
    looked = look.get("sizes", {}).get(str(best))
    if not looked:
        return row
    types = of_types(looked["types"])
    gpu_us = looked["model"].get("model_gpu_duration (us)")
    online_us = look["sizes"]["1"]["model"].get("model_gpu_duration (us)")
    row.update(
        layers=looked["layers"], kernels=known_sum(kernel["kernel_count"] for kernel in looked["kernels"]),
        names=len(looked["kernels"]) or None, gpu=share(gpu_us, latency[best] / 1e3), online_gpu=share(online_us, latency[1] / 1e3),
        convolution=share(sum(us for name, us in types.items() if re.search(CONVOLUTION, name)), sum(types.values())),
        bottleneck=next(iter(types), None), bottleneck_share=share(next(iter(types.values()), None), sum(types.values())),
        gflop=(looked["model"].get("model_flops") or 0) / 1e9 or None,
        stages=[stage_with_most(looked["stages"], column) for column in (
            "gpu_duration (us)", "allocated memory (bytes)", "flops")])
    count = counted(looked, model.get("count", {}).get("kernels", {}))
    if count:
        moved = count["read"] + count["written"]
        row.update(counted=100 * count["share"], read=count["read"] / 1e9, written=count["written"] / 1e9,
                   occupancy=count["occupancy"], intensity=count["flops"] / moved if moved else None,
                   tflops=count["flops"] / count["us"] / 1e6)
        if peaks and row["intensity"] is not None and count["share"] >= LEAST_COUNTED:
            row["memory_bound"] = row["intensity"] < peaks[0] / peaks[1]
    return row


# ---- the text ----

def shown(value, form="{:.1f}"):
    if value is None:
        return UNKNOWN
    return ("no", "yes")[value] if isinstance(value, bool) else form.format(value)


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(row) + " |" for row in rows)])


def table_8(rows):
    head = ["model", "task", "online latency (ms)", "max throughput (inputs/s)", "optimal batch", "GPU share online (%)",
            "GPU share (%)", "convolution (%)", "layers", "kernels", "bottleneck"]
    body = []
    for name, row in rows.items():
        largest = row["optimal"] == row["largest"]
        body.append([name, row["task"], shown(row["online_ms"], "{:.2f}"), shown(row["throughput"], "{:,.0f}"),
                     f"{row['optimal']}{' ¹' if largest else ''}", shown(row.get("online_gpu")), shown(row.get("gpu")),
                     shown(row.get("convolution")), shown(row.get("layers"), "{}"), shown(row.get("kernels"), "{:.0f}"),
                     f"{row['bottleneck']} ({row['bottleneck_share']:.0f} %)" if row.get("bottleneck") else UNKNOWN])
    return table(head, body)


def table_9(rows):
    head = ["model", "batch", "latency (ms)", "GPU share (%)", "Gflop", "read (GB)", "written (GB)", "occupancy (%)",
            "flop/byte", "Tflop/s", "memory-bound", "counted (%)", "most time", "most memory", "most operations"]
    body = []
    for name, row in rows.items():
        body.append([name, str(row["optimal"]), shown(row["latency_ms"], "{:.2f}"), shown(row.get("gpu")),
                     shown(row.get("gflop"), "{:,.1f}"), shown(row.get("read"), "{:.2f}"), shown(row.get("written"), "{:.2f}"),
                     shown(row.get("occupancy")), shown(row.get("intensity")), shown(row.get("tflops"), "{:.2f}"),
                     shown(row.get("memory_bound")), shown(row.get("counted"), "{:.0f}"),
                     *(stage or UNKNOWN for stage in row.get("stages", [None] * 3))])
    return table(head, body)


def spread(values, form="{:.1f}"):
    values = sorted(value for value in values if value is not None)
    return f"{form.format(values[0])} to {form.format(values[-1])} % ({len(values)} models)" if values else UNKNOWN


def beside_the_paper(rows):
    images = [row for row in rows.values() if row["task"] == "classification"]
    flags = [row["memory_bound"] for row in images if row.get("memory_bound") is not None]
    return table(["at the optimal batch size, models for image classification", "XSP paper, V100, TensorFlow", "here"], [
        ["GPU share of the latency", "{:.1f} to {:.1f} %".format(*PAPER_GPU), spread(row.get("gpu") for row in images)],
        ["share of convolution layers", "{} to {} %".format(*PAPER_CONVOLUTION), spread(row.get("convolution") for row in images)],
        ["memory-bound models", f"{PAPER_MEMORY_BOUND} of {PAPER_MODELS}", f"{sum(flags)} of {len(flags)}" if flags else UNKNOWN]])


def whether_known(rows, ideal):
    images = [row for row in rows.values() if row["task"] == "classification"]
    known = sum(row.get("memory_bound") is not None for row in images)
    if not known:
        return ""
    return (f" Whether a model is memory-bound is known for {known} of {len(images)}: of the others, less than half of the kernels' time "
            f"is counted. The roof bends at {ideal} here, and at 17.4 on a V100. Counted are the kernels with most time, which are mostly "
            "convolutions. A whole model has fewer operations per byte.")


def page(found):
    about = found.get("about", {})
    peaks = peaks_of(about.get("gpu"))
    rows = {name: row for name, model in found["models"].items() if (row := numbers_of(model, peaks))}
    failed = [f"- {name}: {model[part]['failed']}" for name, model in found["models"].items()
              for part in ("sweep", "look", "count") if "failed" in model.get(part, {})]
    ideal = f"{peaks[0] / peaks[1]:.1f} flop/byte" if peaks else "unknown"
    lines = [
        "# Models", "",
        f"Inference of {len(rows)} models of torchvision and transformers with random weights, on {about.get('gpu') or about.get('cpu')}, "
        f"with PyTorch {about.get('torch')} in single precision without TF32. `python3 bench/zoo/run.py` made this page"
        f"{'. Inputs were small, to try the program without a GPU' if about.get('tiny') else ''}.", "",
        "## Next to the paper", "", beside_the_paper(rows), "",
        "The paper's models are TensorFlow's, of 2019. Compare shapes, not values."
        f"{whether_known(rows, ideal)}", "",
        "## Throughput and layers (table VIII)", "", table_8(rows), "",
        "¹ The largest size that was tried, or that fitted: the throughput still grew.", "",
        "## Operations and memory (table IX)", "", table_9(rows), "",
        "## What the columns are", "",
        "- Latencies are from a run in which plumb recorded ranges alone. An iteration ends when the GPU has done its work. The size is "
        "doubled until the throughput grows by 5 % or less. That size's half is optimal.",
        "- The GPU's share is the time of the kernels in an iteration, of a second run that recorded kernels, over that latency. It can "
        "pass 100 % if kernels run side by side.",
        "- The share of convolutions and the bottleneck are of the layers' time on the GPU. Layers are leaf modules, and operators "
        "outside of them.",
        "- Gflop are from the shapes of matrix products and convolutions. Bytes, occupancy, flop/byte and Tflop/s are counted by the "
        "GPU, of one iteration, for the kernels with most time. `counted` is their share of the kernels' time.",
        f"- A model is memory-bound if its counted kernels have fewer operations per byte than this GPU at its best: {ideal}. Below "
        f"{100 * LEAST_COUNTED:.0f} % counted it is unknown.",
        "- The last columns say in which third of the layers most of it is.", ""]
    if failed:
        lines += ["## What failed", "", *failed, ""]
    return "\n".join(lines)
