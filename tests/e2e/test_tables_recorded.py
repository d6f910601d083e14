# SPDX-License-Identifier: Apache-2.0
"""`plumb tables` of ResNet-50 over batch sizes, as tests/accuracy/resnet_batches.py recorded it on a GPU: against what
the program itself measured and counted. The script runs here, too, on the CPU."""
import gzip
import json
import sys

import pytest
from conftest import PLUMB, ROOT, run_command

DATA = ROOT / "tests" / "data" / "resnet"
SCRIPT = ROOT / "tests" / "accuracy" / "resnet_batches.py"
sys.path.insert(0, str(SCRIPT.parent))

import resnet_batches  # noqa: E402


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    if not (DATA / "truths.json").exists():
        pytest.skip("no recording in tests/data/resnet: tests/accuracy/resnet_batches.py makes one on a GPU")
    folder = tmp_path_factory.mktemp("resnet")
    for path in DATA.glob("b*.plumb.gz"):
        (folder / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
    return folder, json.loads((DATA / "truths.json").read_text())


def test_the_tables_are_what_the_program_knows(unpacked):
    folder, truths = unpacked
    assert sorted(map(int, truths)) == list(resnet_batches.BATCHES)
    assert resnet_batches.check(PLUMB, folder, truths) == []


def test_the_truths_are_of_resnet50(unpacked):
    """53 convolutions and a matrix, 4.089 · 10^9 multiplications and additions for an image of 224 x 224."""
    for truth in unpacked[1].values():
        assert len(truth["layers"]) == 158 and truth["modules"] == 126
        assert truth["flops_per_image"] == pytest.approx(2 * 4.089e9, rel=1e-3)


@pytest.mark.parametrize("wrong", ["flops_per_image", "layers", "recorded_ms"])
def test_the_check_can_fail(unpacked, wrong):
    folder, truths = unpacked
    truth = dict(truths["1"])
    truth[wrong] = truth[wrong] + 1 if wrong == "flops_per_image" else (
        truth[wrong][1:] if wrong == "layers" else [2 * value for value in truth[wrong]])
    assert resnet_batches.check_model(PLUMB, folder / "b1.plumb", 1, truth)


def test_the_script_holds_on_a_cpu(tmp_path, torch_python):
    done = run_command(torch_python, SCRIPT, "--plumb", PLUMB, "--keep", tmp_path / "kept", "--batches", "1,2", "--image", "32",
                       "--iterations", "4", "--warm-up", "1", timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASS: all of it holds" in done.stdout
    truths = json.loads((tmp_path / "kept" / "truths.json").read_text())
    assert sorted(truths) == ["1", "2"] and len(truths["1"]["layers"]) == 158
