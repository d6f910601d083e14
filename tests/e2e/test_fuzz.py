# SPDX-License-Identifier: Apache-2.0
"""Each fuzz target looks for PLUMB_FUZZ_SECONDS seconds for an input that breaks it (CI: .ci/run). Without that variable
there is nothing here: tests/e2e/test_house.py runs the corpora alone."""
import os
import subprocess

import pytest
from conftest import BUILD, ROOT, clean_environment

SECONDS = os.environ.get("PLUMB_FUZZ_SECONDS", "")


def targets():
    return sorted(path.stem for path in (ROOT / "tests/fuzz").glob("fuzz_*.c"))


def run(*command, **variables):
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          timeout=3600, env=clean_environment(**variables))


@pytest.fixture(scope="module")
def built():
    """The folder of the targets, with libFuzzer and sanitizers. `make test` has built them."""
    if run("scripts/bootstrap.sh", "--check", "fuzz").returncode:
        pytest.skip("Clang's libFuzzer is not here: scripts/bootstrap.sh fuzz installs it")
    done = run("make", "--no-print-directory", f"BUILD={BUILD}", "libfuzzer")
    assert done.returncode == 0, done.stdout[-6000:]
    return BUILD / "libfuzzer" / "fuzz"


if SECONDS not in ("", "0"):
    @pytest.mark.parametrize("name", targets())
    def test_nothing_breaks_it(name, built):
        """What does is in the output in Base64, and belongs into the corpus."""
        done = run("scripts/fuzz.sh", built / name, FUZZ_SECONDS=SECONDS)
        assert done.returncode == 0, done.stdout[-8000:]
