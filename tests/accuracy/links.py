#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Links and physical bytes on real GPUs: are the links those of nvidia-smi, and do NCCL's kernels move what plumb computes?

    python3 tests/accuracy/links.py [--plumb COMMAND] [--python PYTHON] [--ranks N] [--out FOLDER]

Prints one line for each check, PASS or FAIL, and exits 0 or 1. Needs PyTorch with CUDA, N GPUs (default 2), NCCL 2.26, nvidia-smi and
the Compute Sanitizer.

    topology   the kind and number of links of each pair, as `nvidia-smi topo -m` has them
    SIMPLE, LL all-reduces and all-gathers of 4 MiB by a ring with this protocol: measured bytes are the computed ones, at most 3 % more
"""
import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

TIMES, BYTES = 5, 4 << 20
PROGRAM = '''\
import os
import sys

import torch
import torch.distributed as dist

times, size = map(int, sys.argv[1:])
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
data = torch.ones(size // 4, device="cuda")
parts = torch.empty(size // 4 * dist.get_world_size(), device="cuda")
torch.cuda.synchronize()
for _ in range(times):
    dist.all_reduce(data)
torch.cuda.synchronize()
for _ in range(times):
    dist.all_gather_into_tensor(parts, data)
torch.cuda.synchronize()
dist.destroy_process_group()
'''
PATHS = {"PIX": "one PCIe switch", "PXB": "several PCIe switches", "PHB": "the host bridge",
         "NODE": "host bridges of one NUMA node", "SYS": "the link between NUMA nodes"}


class Checks:
    failed = 0

    def check(self, name, is_right, found):
        self.failed += not is_right
        print(f"{'PASS' if is_right else 'FAIL'}  {name}: {found}", flush=True)


def record(options, protocol, folder):
    program, path = os.path.join(folder, "links_program.py"), os.path.join(folder, f"links-{protocol}.plumb")
    with open(program, "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    done = subprocess.run([*shlex.split(options.plumb), "run", "--traffic=full", "--force", "-q", "-o", path, "--", options.python,
                           "-m", "torch.distributed.run", "--nproc-per-node", str(options.ranks), "--master-port", "29523", program,
                           str(TIMES), str(BYTES)], capture_output=True, text=True,
                          env={**os.environ, "NCCL_ALGO": "Ring", "NCCL_PROTO": protocol})
    if done.returncode:
        sys.exit(f"{protocol}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    answer = subprocess.run([*shlex.split(options.plumb), "traffic", path, "--json"], capture_output=True, text=True, check=True)
    return json.loads(answer.stdout)


def said_by_nvidia(ranks):
    """{(i, k): "NV18", "PIX", …} of `nvidia-smi topo -m`."""
    said = re.sub("\x1b\\[[0-9;]*m", "", subprocess.run(["nvidia-smi", "topo", "-m"], capture_output=True, text=True, check=True).stdout)
    rows = [line.split() for line in said.splitlines() if re.match(r"GPU\d+\s", line) and len(line.split()) > ranks]
    rows = [row for row in rows if row[1] == "X" or "X" in row][:ranks]
    return {(i, k): rows[i][k + 1] for i in range(ranks) for k in range(i + 1, ranks)}


def check_topology(answer, options, checks):
    links = {(link["one"], link["other"]): link for link in answer["links"] if answer["parties"][link["other"]]["kind"] == "device"}
    for pair, word in said_by_nvidia(options.ranks).items():
        link = links.get(pair)
        found = "no link" if link is None else f"{link['kind']}, {link['links']} links, path {link['path']}, " \
            f"{link['bytes_per_second']} B/s, peer access {link['peer_access']}"
        right = link is not None and (link["kind"].startswith("NV") and f"NV{link['links']}" == word or link["path"] == PATHS.get(word))
        checks.check(f"topology: {pair} is {word}", right, found)


def check_bytes(answer, protocol, options, checks):
    ranks, factor = options.ranks, {"Simple": 1, "LL": 2}[protocol]
    wanted = {"AllReduce": 2 * (ranks - 1) / ranks * factor, "AllGather": (ranks - 1) * factor}
    for name, ratio in wanted.items():
        row = next((row for row in answer["collectives"] if row["name"] == name and row["bytes"] == BYTES), None)
        found = "not recorded" if row is None else f"{row['algorithm']} {row['protocol']}, computed {row['sent_ratio']}, " \
            f"measured {row['measured_ratio']}, between {[(p['from'], p['to'], p['bytes']) for p in row['measured_pairs']]}"
        right = row is not None and row["sent_ratio"] == ratio and row["measured_ratio"] is not None and \
            ratio <= row["measured_ratio"] <= 1.03 * ratio
        checks.check(f"{protocol}: {name} sends {ratio} times its bytes", right, found)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--plumb", default="plumb")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--out")
    options = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.out or temporary
        os.makedirs(folder, exist_ok=True)
        for protocol in ("Simple", "LL"):
            answer = record(options, protocol, folder)
            if protocol == "Simple":
                check_topology(answer, options, checks)
            check_bytes(answer, protocol, options, checks)
    sys.exit(checks.failed > 0)


if __name__ == "__main__":
    main()
