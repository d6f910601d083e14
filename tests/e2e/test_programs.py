# SPDX-License-Identifier: Apache-2.0
"""What plumb says of programs as people write them: recordings from an NVIDIA H200 by tests/accuracy/programs.py and
late_ranks.py, each with a fault and healthy."""
import gzip
import json
import shutil
import subprocess
import sys

import pytest
from conftest import PLUMB, ROOT

sys.path.insert(0, str(ROOT / "tests" / "accuracy"))

import late_ranks  # noqa: E402
import programs  # noqa: E402

DATA = ROOT / "tests" / "data" / "programs"
RECORDED = sorted({path.name[:-len("-fault.plumb.gz")] for path in DATA.glob("*-fault.plumb.gz")})


@pytest.fixture(name="unpack")
def unpack_fixture(tmp_path):
    def unpack(name):
        path = tmp_path / f"{name}.plumb"
        with gzip.open(DATA / f"{name}.plumb.gz") as source, open(path, "wb") as target:
            shutil.copyfileobj(source, target)
        return path
    return unpack


class Told:
    """What late_ranks asks of a session."""

    def json(self, *arguments):
        done = subprocess.run([PLUMB, *map(str, arguments), "--json"], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def findings(self, path):
        return self.json("report", path, "--findings")["findings"]


@pytest.mark.parametrize("name", RECORDED)
def test_the_cause_comes_first(unpack, name):
    row = programs.judge([PLUMB], name, unpack(f"{name}-fault"), unpack(f"{name}-healthy"))
    assert not row["failed"], row


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_a_late_rank_is_named(unpack, kind):
    late_ranks.judge_late(Told(), unpack(kind))


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_even_ranks_are_not(unpack, kind):
    late_ranks.judge_even(Told(), unpack(f"{kind}-even"))


def test_the_loader_explains_the_difference(unpack):
    late_ranks.judge_loader(Told(), unpack("loader0"), unpack("loader4"))


def test_a_launcher_does_not_hide_the_iterations(unpack):
    """torchrun's process has the windows of its ranks, without iterations."""
    report = Told().json("report", unpack("ddp"))
    main = next(window for window in report["windows"] if window["main"])
    assert main["iterations"] == late_ranks.STEPS


def test_a_finding_of_another_loop_says_so(unpack):
    path = unpack("epochs-fault")
    text = subprocess.run([PLUMB, "report", path, "--findings"], capture_output=True, text=True, check=True).stdout
    assert "    warning  loop 2: evaluate" in text and " in loop 2, " in text
    assert "saving   unknown in the main loop" in text
    alone = subprocess.run([PLUMB, "report", path, "--findings", "--window", "loop:2"], capture_output=True, text=True,
                           check=True).stdout
    assert "    serious  evaluate" in alone and " in loop 2, " in alone and "in the main loop" not in alone
    shares = Told().json("report", path, "--findings", "--threshold", "loops.share=50%")["findings"]
    assert {one["window"] for one in shares} == {"loop:1", "startup"}


def test_busy_time_of_a_shared_gpu_is_unknown_in_a_window(unpack):
    """Both ranks ran on one GPU: what the two did at once is not known by window, and is not 0."""
    done = subprocess.run([PLUMB, "report", unpack("ddp")], capture_output=True, text=True, check=True)
    assert "busy for 0.0 %" not in done.stdout
