# SPDX-License-Identifier: Apache-2.0
"""bench/overhead.py: its statistics, and one run of small models; other programs of bench/. No time is asserted."""
import json
import math
import random
import re
import sys

import pytest
from conftest import PLUMB, ROOT, run_command

sys.path.insert(0, str(ROOT / "bench"))
import cost  # noqa: E402
import overhead  # noqa: E402


@pytest.mark.parametrize("count", [1, 2, 5, 6, 8, 9, 11, 12, 20, 30])
def test_the_interval_is_the_narrowest_that_holds(count):
    values = [float(value) for value in range(count)]
    random.Random(count).shuffle(values)
    middle, low, high = overhead.interval(values)
    assert middle == (count - 1) / 2 and low + high == count - 1

    def misses(rank):
        """P(the median lies outside the order statistics rank … count - 1 - rank)."""
        return 2 * sum(math.comb(count, k) for k in range(rank + 1)) / 2 ** count
    if count < 6:
        assert low == 0
    else:
        assert misses(int(low)) <= 0.05 < misses(int(low) + 1)


def figures(workload, plain, watched, peaks):
    def blocks(seconds, peak):
        return [{"seconds": s, "peak": peak, "finish": 0.5, "bytes": 2000000} for s in seconds]
    return {"workload": workload, "iterations": 7, "modes": {
        "none": {"blocks": blocks(plain, peaks[0]), "end": 1.0},
        "light": {"blocks": blocks(watched, peaks[1]), "end": 1.25, "profile": 300000}}}


def test_a_ratio_is_taken_round_by_round():
    """The machine halves its speed in the second round: the ratio does not move."""
    drifting = figures("drifting", [1.0, 2.0, 1.0], [1.1, 2.2, 1.1], (100, 105))
    assert overhead.against(drifting, "light", "none", "seconds") == pytest.approx((1.1, 1.1, 1.1))
    text = overhead.table(drifting, "none")
    assert "| light | 1100.000 | 1.100 (1.100–1.100) | 5 MB | 0.25 s | 0.3 MB |" in text
    slower = figures("slower", [1.0, 1.0, 1.0], [1.3, 1.5, 1.2], (100, 120))
    whole = overhead.summary([drifting, slower], "none")
    assert "| slower | 1000.000 | 1.300 (1.200–1.500) |" in whole
    assert "| **median** | | **1.200** |" in whole and "| **greatest** | | **1.300** |" in whole
    assert "| slower | 100 | 1.200 |" in whole and "| **least** | | **1.050** |" in whole


def test_models_are_measured_and_the_missing_said(any_torch_python, tmp_path):
    """Without libraries that may be missing, two models of the ten, and one that is none."""
    done = run_command(sys.executable, ROOT / "bench" / "overhead.py", "--python", any_torch_python, "--plumb", PLUMB,
                       "--tiny", "--rounds", "2", "--block", "0.02", "--together", "3", "--mode", "light",
                       "--workload", "dlrm", "--workload", "gnn", "--workload", "nothing",
                       "--json", tmp_path / "raw.json", "-o", tmp_path / "table.md")
    assert done.returncode == 1, done.stderr
    assert "nothing was not measured" in done.stdout and "no workload 'nothing'" in done.stdout
    raws = json.loads((tmp_path / "raw.json").read_text())
    assert [raw["workload"] for raw in raws] == ["dlrm", "gnn"]
    for raw in raws:
        assert set(raw["modes"]) == {"none", "light"}
        assert all(len(row["blocks"]) == 2 for row in raw["modes"].values())
        assert raw["modes"]["light"]["profile"] > 1000
    written = (tmp_path / "table.md").read_text()
    assert written.count("\n### ") == 4 and "**median**" in written


def test_every_model_of_the_ten_takes_a_step(torch_python, tmp_path):
    """Tiny, on the CPU. What is not installed is said to be missing, by its name."""
    program = tmp_path / "steps.py"
    program.write_text(
        "import json, sys\n"
        f"sys.path.insert(0, {str(ROOT / 'bench')!r})\n"
        "import torch, models, overhead\n"
        "assert list(models.MODELS) == overhead.TEN\n"
        "said = {}\n"
        "for name in models.MODELS:\n"
        "    try:\n"
        "        step = models.make(name, True); step(); step(); said[name] = 'ran'\n"
        "    except ModuleNotFoundError as error: said[name] = error.name\n"
        "    except AttributeError as error: said[name] = str(error)\n"
        "print(json.dumps([said, hasattr(torch.nn.functional, 'scaled_dot_product_attention')]))\n")
    done = run_command(torch_python, program, env={"CUDA_VISIBLE_DEVICES": ""})
    assert done.returncode == 0, done.stderr
    said, attention = json.loads(done.stdout)
    libraries = {"resnet": "torchvision", "vit": "torchvision", "llamatrain": "transformers",
                 "gemma": "transformers"}
    for name, outcome in said.items():
        if name == "nanogpt" and not attention:
            continue  # PyTorch 2.0 and later
        assert outcome in ("ran", libraries.get(name)), name


def test_standard_answers_are_measured():
    """Of a small trace; the repeated one has the spans that were asked for."""
    done = run_command(sys.executable, ROOT / "bench" / "tables.py", "--plumb", PLUMB, "--spans", "30000", "--rounds", "1")
    assert done.returncode == 0, done.stderr
    head, *table = [line for line in done.stdout.splitlines() if line]
    assert 30000 <= int(head.split()[0]) < 36000
    assert [line.split("|")[1].strip() for line in table[2:]] == [
        "plumb tables all", "plumb iters", "plumb report", "plumb import", "Python's json (parses)"]
    assert "| 1.00× |" in table[5]


def test_looks_are_measured():
    done = run_command(sys.executable, ROOT / "bench" / "looks.py", "--plumb", PLUMB, "--seconds", "0.5", "--rounds", "1",
                       "--values", "1000")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^\| 101\d \| [\d.]+ \| [\d.]+ ms \([\d.]+–[\d.]+\) \| [\d.]+ % \| [\d.]+ MiB \|$", done.stdout, re.M)


def a_cost(kind="measured", ratio=1.3, low=1.2, why=None, scope="step"):
    return {"kind": kind, "scope": scope, "plain_ns": 1e6, "ratio": ratio, "low": low, "high": 1.4, "hidden": False, "why": why}


@pytest.mark.parametrize("measured, estimated, verdict", [
    (a_cost(), a_cost("estimate", 1.39), "yes"), (a_cost(), a_cost("estimate", 1.21), "yes"),
    (a_cost(), a_cost("estimate", 1.41), "**no**"), (a_cost(), a_cost("estimate", 1.19), "**no**"),
    (a_cost(low=0.99), a_cost("estimate", 1.3), "noise"), (a_cost(low=None), a_cost("estimate", 1.3), "noise"),
    (a_cost(), a_cost(None, None, why="JAX"), "unknown: JAX"), (a_cost(None, None, why="x"), a_cost(), "not measured: x"),
    (a_cost(scope="run"), a_cost("estimate", 1.3), "the run as a whole was measured")])
def test_an_estimate_is_within_a_third_or_not(measured, estimated, verdict):
    share, said = cost.compare(measured, estimated)
    assert said == verdict and (share is None) == (verdict not in ("yes", "**no**"))


def test_the_estimate_is_compared_with_what_was_measured(any_torch_python):
    done = run_command(sys.executable, ROOT / "bench" / "cost.py", "--python", any_torch_python, "--plumb", PLUMB, "--tiny",
                       "--pairs", "1", "--seconds", "0.5", "--workload", "dlrm", "--workload", "nothing")
    assert done.returncode == 0, done.stderr
    assert "nothing was not measured" in done.stdout and "| dlrm | " in done.stdout
    assert "workloads that tell nothing: 1" in done.stdout  # without a GPU the run is compared as a whole
