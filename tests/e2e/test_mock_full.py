# SPDX-License-Identifier: Apache-2.0
"""More places in a program than the region has room for: launches and kernels without one are
counted as lost, and none twice."""
import sys

from plumbtest import run_program
from test_mock_gpu import NEWEST, mock_environment


def test_launches_without_a_place_are_not_attributed(tmp_path):
    made = run_program(sys.executable, "mock_full.py", folder=tmp_path, options=["--limit", "1M"],
                       environment=mock_environment(NEWEST))
    assert made.done.returncode == 0, made.done.stderr
    for source in ("gpu.launch", "gpu.kernel"):
        row = made.ledger(source)
        assert set(row) == {"received", "attributed", "region_full"}
        assert row["received"] == 3000 == row["attributed"] + row["region_full"]
        assert row["attributed"] and row["region_full"]
