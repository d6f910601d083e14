# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/cases: each runs on the CPU, and its two variants compute the same."""
import os
import re

import pytest
from conftest import ROOT, run_command

FOLDER = ROOT / "examples" / "cases"
CASES = ("embedding", "unet", "loss", "loader", "copies")
LIGHT = {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


# Runs programs one after the other, each in a process of its own that has imported PyTorch already, and what the first
# optimizer imports.
RUN_EACH = """
import gc, os, runpy, sys, torch.utils.data
torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1).zero_grad()
gc.freeze()
for number, command in enumerate(sys.argv[2:]):
    child = os.fork()
    if not child:
        for name, descriptor in (("out", 1), ("err", 2)):
            os.dup2(os.open(f"{sys.argv[1]}/{number}.{name}", os.O_WRONLY | os.O_CREAT, 0o600), descriptor)
        sys.argv = command.split()
        sys.path[0] = os.path.dirname(sys.argv[0])
        runpy.run_path(sys.argv[0], run_name="__main__")
        sys.stdout.flush()
        os._exit(0)  # without a second to take PyTorch down
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.fixture(scope="module")
def losses(torch_python, tmp_path_factory):
    """{(case, with what option): the loss after a step} of both variants of every program."""
    folder = tmp_path_factory.mktemp("losses")
    keys = [(case, word) for case in CASES for word in ("", "--fixed")]
    done = run_command(torch_python, "-c", RUN_EACH, folder,
                       *(f"{FOLDER / case}.py --device cpu --steps 1 {word}" for case, word in keys), env=LIGHT)
    assert done.returncode == 0 and done.stdout.split() == ["0"] * len(keys), \
        done.stderr + "".join(path.read_text() for path in sorted(folder.glob("*.err")))
    losses = {}
    for number, key in enumerate(keys):
        text = (folder / f"{number}.out").read_text()
        found = re.fullmatch(r"loss (\S+), (\S+) ms a step, 1 steps after 0\n", text)
        assert found and float(found[2]) > 0, text
        losses[key] = float(found[1])
    return losses


def test_every_program_is_a_case():
    assert {path.stem for path in FOLDER.glob("*.py")} - {"common"} == set(CASES)
    readme = (FOLDER / "README.md").read_text()
    page = (ROOT / "docs" / "cases.md").read_text()
    assert all(f"{case}.py" in readme and f"{case}.py" in page for case in CASES)


@pytest.mark.parametrize("case", CASES)
def test_both_variants_compute_the_same(losses, case):
    assert losses[case, "--fixed"] == pytest.approx(losses[case, ""], rel=1e-3)


@pytest.mark.parametrize("start", ["spawn", "fork"])
@pytest.mark.parametrize("many", [True, False], ids=["fault", "fixed"])
def test_too_many_workers_are_found_on_a_cpu(any_torch_python, record, many, start):
    cores = os.sysconf("SC_NPROCESSORS_ONLN")
    recording = record(any_torch_python, FOLDER / "loader.py", "--device", "cpu", "--steps", "3",
                       "--start", start, "--workers", cores + 1 if many else 1, env=LIGHT)
    assert recording.returncode == 0, recording.stderr
    if "a forked child records nothing" in recording.stderr:
        pytest.skip("this plumb does not record forked children")
    report = recording.report()
    found = [row for row in report["findings"] if row["id"].startswith("latency-workers")]
    assert bool(found) == many, report["findings"]
    if many:
        assert found[0]["severity"] == "warning" and found[0]["saving_ns"] is None  # no GPU
        assert found[0]["evidence"]["cores"] == cores
        assert found[0]["evidence"]["workers"] == cores + 1
        assert found[0]["evidence"]["user_file"].endswith("loader.py")
        assert f"{cores + 1} DataLoader workers share {cores} processors" in recording.stderr
