# SPDX-License-Identifier: Apache-2.0
"""Coverage by GPA's count, from `plumb why --json`: of the instructions that wait for something, how many wait for at most
one thing of each kind (memory, the rest)."""
import json
import os
import re
import subprocess

import figures


def plain_name(mangled):
    """"_Z5chase" of "_Z5chaseILi3EEvPKj", whose slots have the same code."""
    return re.sub(r"ILi\d+EE?.*", "", mangled)


def of_profile(plumb, path):
    """{kernel: its coverage} of those of PATH that have one."""
    done = subprocess.run([plumb, "why", path, "--json", "--top", "1"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"plumb why {os.path.basename(path)}: {done.stderr.strip()}", flush=True)
        return {}
    return {one.get("mangled", one["name"]): one["coverage"] for one in json.loads(done.stdout)["kernels"]
            if one["coverage"] is not None}


def of_kit(plumb, folder):
    """The same of the programs of this folder: the first run of each, a kernel once."""
    found = {}
    for name in sorted(os.listdir(folder)):
        if re.fullmatch(r"(\w+\.)?(cases|hopper|pairs|calls)\.1\.plumb", name) and not name.startswith("serialised"):
            for kernel, value in of_profile(plumb, os.path.join(folder, name)).items():
                found.setdefault(plain_name(kernel), value)
    return found


def figures_of(values):
    """What the table says about {kernel: coverage}."""
    all_values = list(values.values())
    return {"kernels": len(all_values), "mean": figures.geometric_mean(all_values) if all_values and min(all_values) > 0 else None,
            "median": figures.median(all_values), "least": min(all_values, default=None)}
