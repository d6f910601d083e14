#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ResNet-50 over batch sizes: what `plumb tables` says of it, against what the program itself knows.

    python3 resnet_batches.py --plumb PATH --keep FOLDER      on a GPU, in less than four minutes

Records the inference of torchvision's ResNet-50 (without torchvision: of one that is written here) at each batch size,
after its warm-up, with spans and shapes. FOLDER gets b1.plumb.gz, b2.plumb.gz, … (without the paths and names of this
machine) and truths.json: what the program measured and counted on its own. Then checks the tables against it; ends with 1
when something does not hold. tests/e2e/test_tables_recorded.py makes the same checks of the files in tests/data/resnet.
"""
import argparse
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve()
ROOT = HERE.parents[2]
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


def own_resnet50(nn):
    """As He et al. have it, with torchvision's names."""
    class Bottleneck(nn.Module):
        def __init__(self, width_in, width, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(width_in, width, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(width)
            self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(width)
            self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
            self.bn3 = nn.BatchNorm2d(4 * width)
            self.relu = nn.ReLU(inplace=True)
            self.downsample = None
            if stride != 1 or width_in != 4 * width:
                self.downsample = nn.Sequential(nn.Conv2d(width_in, 4 * width, 1, stride, bias=False),
                                                nn.BatchNorm2d(4 * width))

        def forward(self, x):
            out = self.relu(self.bn1(self.conv1(x)))
            out = self.relu(self.bn2(self.conv2(out)))
            out = self.bn3(self.conv3(out))
            out += x if self.downsample is None else self.downsample(x)
            return self.relu(out)

    class ResNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
            self.bn1 = nn.BatchNorm2d(64)
            self.relu = nn.ReLU(inplace=True)
            self.maxpool = nn.MaxPool2d(3, 2, 1)
            width_in = 64
            for stage, (blocks, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512)), 1):
                made = []
                for block in range(blocks):
                    made.append(Bottleneck(width_in, width, 2 if stage > 1 and not block else 1))
                    width_in = 4 * width
                setattr(self, f"layer{stage}", nn.Sequential(*made))
            self.avgpool = nn.AdaptiveAvgPool2d(1)
            self.fc = nn.Linear(width_in, 1000)

        def forward(self, x):
            x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
            x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
            return self.fc(self.avgpool(x).flatten(1))

    return ResNet()


def known_of(torch, model, image, device):
    """Leaf modules, how often they are called (each call in its parent is a layer), and the work of one image by the
    sizes that convolutions and matrices see."""
    flops, calls = [], []
    leaves = {name: module for name, module in model.named_modules() if not list(module.children())}

    def count(module, _, out):
        if isinstance(module, torch.nn.Conv2d):
            each = module.in_channels // module.groups * module.kernel_size[0] * module.kernel_size[1]
            flops.append(2 * out.numel() * each)
        else:
            flops.append(2 * out.numel() * module.in_features)
    hooks = [module.register_forward_hook(count) for module in model.modules()
             if isinstance(module, (torch.nn.Conv2d, torch.nn.Linear))]
    hooks += [module.register_forward_hook(lambda *_, name=name: calls.append(name)) for name, module in leaves.items()]
    model(torch.zeros(1, 3, image, image, device=device))
    for hook in hooks:
        hook.remove()
    return {"modules": len(leaves), "layers": calls, "flops_per_image": sum(flops)}


def inner(options):
    """Runs under plumb: recording begins after the warm-up."""
    sys.path.insert(0, str(ROOT / "python"))
    import plumb
    plumb.stop()
    import torch
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    try:
        import torchvision
        model, source = torchvision.models.resnet50(weights=None), f"torchvision {torchvision.__version__}"
    except ImportError:
        model, source = own_resnet50(torch.nn), "own"
    model = model.eval().to(device)
    images = torch.randn(options.inner, 3, options.image, options.image, device=device)

    def wait():
        if device == "cuda":
            torch.cuda.synchronize()

    def timed(count):
        took = []
        for _ in range(count):
            wait()
            start = time.perf_counter()
            model(images)
            wait()
            took.append((time.perf_counter() - start) * 1e3)
        return took

    with torch.no_grad():
        known = known_of(torch, model, options.image, device)
        timed(options.warm_up)
        known["unrecorded_ms"] = timed(options.iterations)
        plumb.start()
        time.sleep(0.5)  # until GPU records are on
        known["recorded_ms"] = timed(options.iterations)
        plumb.stop()
    known.update(model=source, torch=torch.__version__,
                 device=torch.cuda.get_device_name() if device == "cuda" else None)
    pathlib.Path(options.truth).write_text(json.dumps(known))


# ---- checking ----

def trimmed(values):
    """The mean that XSP takes."""
    values = sorted(values)
    if len(values) < 3:
        return sum(values) / len(values)
    if len(values) == 3:
        return values[1]
    cut = len(values) // 5
    values = values[cut:min(len(values) - 1, len(values) - cut)]
    return sum(values) / len(values)


def tables(plumb, *arguments):
    done = subprocess.run([str(plumb), "tables", *map(str, arguments), "--json"], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"plumb tables: {done.stderr}")
    found = {}
    for table in json.loads(done.stdout)["tables"]:
        names = [column["name"] for column in table["columns"]]
        found[table["id"]] = [dict(zip(names, row)) for row in table["rows"]]
    return found


def near(one, other, part):
    return one is not None and abs(one - other) <= part * abs(other)


def check_model(plumb, path, batch, truth):
    """What does not hold of one profile, in words. On a CPU there are neither kernels nor their counts."""
    found = tables(plumb, path, "all", "--layer", "module")
    model, total = found["A1"][0], found["A15"][0]
    latency = trimmed(truth["recorded_ms"])
    runs = len(truth["recorded_ms"])
    facts = {
        f"batch {model['batch_size']} from {model['batch_size_source']}":
            (model["batch_size"], model["batch_size_source"]) == (batch, "shapes"),
        f"{model['runs']} runs of {runs}": model["runs"] == runs,
        f"latency {model['latency (ms)']} ms, by the program {latency:.3f}":
            near(model["latency (ms)"], latency, 0.1),
        f"throughput {model['throughput (input/s)']}, by the program {batch / latency * 1e3:.1f}":
            near(model["throughput (input/s)"], batch / latency * 1e3, 0.1),
        f"{len(found['A2'])} layers of {len(truth['layers'])}": len(found["A2"]) == len(truth["layers"]),
        "layers in the order of execution": [row["layer_name"] for row in found["A2"]] == truth["layers"],
        "layers are the leaf modules": len({row["layer_name"] for row in found["A2"]}) == truth["modules"],
        f"flops {total['model_flops']} of {truth['flops_per_image'] * batch}":
            total["model_flops"] == truth["flops_per_image"] * batch,
        "A3 has every latency": all(row["layer_duration (us)"] is not None for row in found["A3"]),
        "stages hold all layers and flops":
            sum(row["layers"] for row in found["stages"]) == len(truth["layers"])
            and near(sum(row["flops"] for row in found["stages"]), total["model_flops"], 1e-9),
        "A5 counts convolutions": {row["type"]: row["occurrences"] for row in found["A5"]}.get("Conv2d") == 53,
    }
    parts = found["A13"]
    facts["A13's parts are of its latency and not negative"] = all(
        row["layer_duration (us)"] is not None and min(row["layer_gpu_duration (us)"], row["layer_cpu_duration (us)"]) >= 0
        and near(row["layer_gpu_duration (us)"] + row["layer_cpu_duration (us)"], row["layer_duration (us)"], 1e-6)
        for row in parts)
    if truth["device"]:
        gpu = sum(row["layer_gpu_duration (us)"] for row in parts)
        outside = sum(row["kernel_duration (us)"] * row["kernel_count"] for row in found["A8"] if row["layer_index"] is None)
        facts[f"A13's GPU time {gpu:.1f} us and {outside:.1f} us in no module are A15's "
              f"{total['model_gpu_duration (us)']}"] = near(gpu + outside, total["model_gpu_duration (us)"], 0.05)
        facts[f"GPU time is within the latency {model['duration (us)']} us"] = gpu <= model["duration (us)"] * 1.02
        facts[f"GPU {model['GPU_name']}"] = model["GPU_name"] == truth["device"]
        kernels = {}
        for row in found["A8"]:
            kernels[row["kernel_name"]] = kernels.get(row["kernel_name"], 0) + row["kernel_count"]
        named = {row["kernel_name"]: row["kernel_count"] for row in found["A10"]}
        facts["A10 adds up A8"] = named.keys() == kernels.keys() and all(
            near(named[name], count, 1e-9) for name, count in kernels.items())
        facts["every convolution has kernels"] = {
            row["layer_name"] for row in found["A8"] if row["layer_type"] == "Conv2d"} == {
            row["layer_name"] for row in found["A2"] if row["layer_type"] == "Conv2d"}
    return [f"batch {batch}: {fact}" for fact, holds in facts.items() if not holds]


def check(plumb, folder, truths):
    """What does not hold of the profiles bN.plumb in FOLDER."""
    wrong = []
    batches = sorted(map(int, truths))
    paths = [pathlib.Path(folder) / f"b{batch}.plumb" for batch in batches]
    for batch, path in zip(batches, paths):
        wrong += check_model(plumb, path, batch, truths[str(batch)])
    rows = tables(plumb, *paths, "A1")["A1"]
    if [row["batch_size"] for row in rows] != batches:
        wrong.append(f"A1 of all has batch sizes {[row['batch_size'] for row in rows]}")
    throughput = [batch / row["latency (ms)"] for batch, row in zip(batches, rows)]
    doubling = next((batches[i] for i in range(len(batches) - 1) if throughput[i + 1] <= 1.05 * throughput[i]), batches[-1])
    greatest = batches[throughput.index(max(throughput))]
    limit = sorted(row["latency (ms)"] for row in rows)[len(rows) // 2]
    constrained = tables(plumb, *paths, "A1", "--optimal", f"latency<={limit + 1e-6:.9f}ms")["A1"]
    fast = [batch for batch, row in zip(batches, rows) if row["latency (ms)"] <= limit]
    best = max(fast, key=lambda batch: throughput[batches.index(batch)])
    for name, expected, found in (("optimal_by_doubling", doubling, rows), ("optimal_by_throughput", greatest, rows),
                                  ("optimal_by_constraint", best, constrained)):
        marked = [row["batch_size"] for row in found if row[name]]
        if len(batches) > 1 and marked != [expected]:
            wrong.append(f"{name} marks {marked}, and it is {expected}")
    compared = tables(plumb, *paths, "--key", "batch")
    for row, batch in zip(compared["compare"], batches):
        if row["batch"] != batch or not near(row["normalised_flops"], batch / batches[0], 1e-9):
            wrong.append(f"compare has batch {row['batch']} with {row['normalised_flops']} of the flops")
    return wrong


# ---- recording ----

def record(options, batch, folder):
    profile, truth = folder / f"b{batch}.plumb", folder / f"b{batch}.json"
    done = subprocess.run([options.plumb, "run", "--trace", "--shapes", "-o", profile, "--", options.python, HERE,
                           "--inner", str(batch), "--truth", truth, "--image", str(options.image),
                           "--iterations", str(options.iterations), "--warm-up", str(options.warm_up)],
                          cwd=folder, capture_output=True, text=True, timeout=200)
    if done.returncode:
        raise SystemExit(f"batch {batch}: {done.stderr[-3000:]}")
    return json.loads(truth.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plumb", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--python", default=sys.executable, help="one that has PyTorch")
    parser.add_argument("--batches", default=",".join(map(str, BATCHES)))
    parser.add_argument("--image", type=int, default=224)
    parser.add_argument("--iterations", type=int, default=6)
    parser.add_argument("--warm-up", type=int, default=4)
    parser.add_argument("--inner", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--truth", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inner:
        inner(options)
        return
    if not options.plumb or not options.keep:
        parser.error("--plumb and --keep are needed")
    import cases
    options.keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder, truths = pathlib.Path(name), {}
        for batch in map(int, options.batches.split(",")):
            start = time.perf_counter()
            truths[str(batch)] = record(options, batch, folder)
            cases.scrub(folder / f"b{batch}.plumb", folder)
            found = truths[str(batch)]
            print(f"batch {batch}: {trimmed(found['recorded_ms']):.3f} ms, unrecorded "
                  f"{trimmed(found['unrecorded_ms']):.3f} ms, took {time.perf_counter() - start:.1f} s", flush=True)
        wrong = check(options.plumb, folder, truths)
        for batch in truths:
            packed = options.keep / f"b{batch}.plumb.gz"
            packed.write_bytes(gzip.compress((folder / f"b{batch}.plumb").read_bytes(), 9, mtime=0))
            print(f"{packed.name}: {packed.stat().st_size // 1024} KB")
    (options.keep / "truths.json").write_text(json.dumps(truths, indent=1) + "\n")
    print("\n".join(["FAIL " + fact for fact in wrong] or ["PASS: all of it holds"]))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
