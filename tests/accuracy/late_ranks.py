#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trainings on several GPUs, of which one rank comes late, and a loader without and with workers: does plumb say so?

    python3 tests/accuracy/late_ranks.py [--plumb COMMAND] [--out FOLDER] [--ranks N] [--scenario NAME]… [--device cpu]

Records each scenario without --trace and prints one line each, PASS or FAIL with what failed; exits 0 or 1. Needs
PyTorch with CUDA, and N GPUs (default 2). On fewer, ranks share a GPU, and their kernels take turns. --device cpu only
runs the programs, to see that they do.

    ddp, fsdp        rank 1 sleeps for 20 ms in each step: the first finding says so, and the summary within 40 lines
    ddp-cpu          the same with --cpu: it names the line that sleeps
    ddp-even,        the same without the sleep: no finding of this kind
    fsdp-even
    loader           a DataLoader with 0 workers, then with 4: plumb diff names it
"""
import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

STEPS, SLEEP_MS = 100, 20
PROGRAM = '''\
import os
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

scenario, device, steps, sleep_ms = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
small = device == "cpu"
width, batch = (64, 16) if small else (4096, 512)
rank = int(os.environ.get("RANK", 0))
torch.manual_seed(0)


class Samples(Dataset):
    def __len__(self):
        return steps * batch

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.rand(width, generator=generator).sort().values, index % 10  # @sample


def layers():
    return nn.Sequential(*[layer for _ in range(6) for layer in (nn.Linear(width, width), nn.ReLU())], nn.Linear(width, 10))


def train_ranks():
    import torch.distributed as dist
    global device
    gpus = 0 if small else torch.cuda.device_count()
    if 0 < gpus < int(os.environ["WORLD_SIZE"]):  # NCCL wants a GPU for each rank of a host: each is a host
        os.environ.update(NCCL_HOSTID=str(rank), NCCL_SOCKET_IFNAME="lo")
    if not small:
        device = f"cuda:{rank % gpus}"
        torch.cuda.set_device(rank % gpus)
    dist.init_process_group("gloo" if small else "nccl")
    model = layers().to(device)
    if scenario.startswith("fsdp") and not small:
        from torch.distributed.fsdp import FullyShardedDataParallel
        from torch.distributed.fsdp.wrap import ModuleWrapPolicy
        model = FullyShardedDataParallel(model, auto_wrap_policy=ModuleWrapPolicy({nn.Linear}), device_id=rank % gpus)
    else:
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    data, target = torch.randn(batch, width, device=device), torch.randint(0, 10, (batch,), device=device)
    for _ in range(steps):
        if rank == 1:
            time.sleep(sleep_ms / 1000)  # @sleep
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(data), target)  # @forward
        loss.backward()
        optimizer.step()
        if not small:
            torch.cuda.synchronize()
    dist.barrier()
    dist.destroy_process_group()


def train_loading(workers):
    model = layers().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for data, target in DataLoader(Samples(), batch_size=batch, num_workers=workers):
        loss = nn.functional.cross_entropy(model(data.to(device)), target.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not small:
            torch.cuda.synchronize()


if __name__ == "__main__":
    if scenario.startswith("loader"):
        train_loading(int(scenario.removeprefix("loader")))
    else:
        train_ranks()
'''


def line_of(mark):
    return next(number for number, line in enumerate(PROGRAM.splitlines(), 1) if f"# @{mark}" in line)


class Session:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.plumb = shlex.split(options.plumb)
        self.program = os.path.join(folder, "late_program.py")
        with open(self.program, "w", encoding="utf-8") as target:
            target.write(PROGRAM)

    def record(self, name, scenario, sleep_ms, *more):
        """The profile's path, and the summary's lines."""
        arguments = [self.program, scenario, self.options.device, str(STEPS), str(sleep_ms)]
        if not scenario.startswith("loader"):
            arguments = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(self.options.ranks), *arguments]
        path = os.path.join(self.folder, f"{name}.plumb")
        done = subprocess.run([*self.plumb, "run", *more, "-o", path, "--", sys.executable, *arguments],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        return path, done.stderr.splitlines()

    def json(self, *arguments):
        done = subprocess.run([*self.plumb, *arguments, "--json"], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def findings(self, path):
        return self.json("report", path, "--findings")["findings"]


def check_late(session, kind, *more):
    path, summary = session.record(kind + "".join(more), kind, SLEEP_MS, *more)
    if session.options.device == "cpu":
        return
    judge_late(session, path, bool(more))
    start = next(number for number, line in enumerate(summary) if "summary of the run" in line)
    said = [number - start for number, line in enumerate(summary) if "finding" in line and "for rank 1" in line]
    assert said and said[0] < 40, "\n".join(summary)


def judge_late(session, path, sampled=False):
    first = session.findings(path)[0]
    evidence = first["evidence"]
    assert (first["rule"], evidence["cause"], evidence["why"]) == ("ranks", "late", "host"), first
    assert re.search(r"\bwaits? [\d.]+ ms of each [\d.]+ ms step for rank 1\b", first["title"]), first["title"]
    each = first["saving_ns"] / STEPS / 1e6
    assert 0.7 * SLEEP_MS < each < 1.3 * SLEEP_MS, f"{each:.1f} ms a step"
    if sampled:
        assert (evidence["host_metric"], evidence["user_line"]) == ("wait.time", line_of("sleep")), first["title"]


def check_even(session, kind):
    path, _ = session.record(f"{kind}-even", kind, 0)
    judge_even(session, path)


def judge_even(session, path):
    assert not [one for one in session.findings(path) if one["rule"] == "ranks"]


def check_loader(session):
    before, _ = session.record("loader0", "loader0", 0)
    after, _ = session.record("loader4", "loader4", 0)
    if session.options.device != "cpu":
        judge_loader(session, before, after)


def judge_loader(session, before, after):
    host = session.json("diff", before, after)["host"]
    assert host and host["metric"] == "op.time", host
    assert any("DataLoader" in row["name"] for row in host["rows"]), host["rows"]


CHECKS = {
    "ddp": lambda session: check_late(session, "ddp"),
    "fsdp": lambda session: check_late(session, "fsdp"),
    "ddp-cpu": lambda session: check_late(session, "ddp", "--cpu"),
    "ddp-even": lambda session: check_even(session, "ddp"),
    "fsdp-even": lambda session: check_even(session, "fsdp"),
    "loader": check_loader,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plumb", default="plumb")
    parser.add_argument("--out")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--scenario", action="append", choices=sorted(CHECKS))
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    options = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.out or temporary
        os.makedirs(folder, exist_ok=True)
        session = Session(options, folder)
        for name in options.scenario or CHECKS:
            try:
                CHECKS[name](session)
                print(f"PASS {name}", flush=True)
            except (AssertionError, StopIteration) as error:
                failed = True
                print(f"FAIL {name}: {error}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
