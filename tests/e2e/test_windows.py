# SPDX-License-Identifier: Apache-2.0
"""Windows of a run without --trace: start-up, loops and the rest, with all values."""

import textwrap

import pytest
from plumbtest import query

PROGRAM = """
    import time
    import torch

    torch.set_num_threads(1)
    a = torch.randn(192, 192)  # enough work to be a loop: 0.1 % of the time

    def begin():
        x = torch.fft.fft2(a).real
        time.sleep(1)
        return x

    def train():
        for i in range(200):
            time.sleep(0.01)
            torch.relu(a @ a)

    def evaluate():
        for i in range(100):
            time.sleep(0.01)
            torch.tanh(a + a)

    begin()
    for epoch in range(2):
        train()
        evaluate()
"""


def calls(path, kind, operator):
    return query(path, f"""
        SELECT COALESCE(SUM(v.sum), 0) FROM window_values v JOIN windows w ON w.id = v.window
        JOIN contexts c ON c.id = v.context JOIN frames f ON f.id = c.frame
        JOIN metrics m ON m.id = v.metric
        WHERE m.name = 'op.calls' AND f.name = '{operator}' AND w.kind || COALESCE(w.number, '') = '{kind}'
        """)[0][0]


def by_metric(path, table):
    return query(path, f"SELECT metric, SUM(sum), SUM(count) FROM {table} GROUP BY metric")


@pytest.fixture(scope="module")
def profile(tmp_path_factory, plumb, any_torch_python):
    folder = tmp_path_factory.mktemp("windows")
    (folder / "loops.py").write_text(textwrap.dedent(PROGRAM))
    plumb("run", "-o", folder / "p.plumb", "--", any_torch_python, folder / "loops.py")
    return folder / "p.plumb"


def test_loops(profile):
    kinds = query(profile, "SELECT kind, number FROM windows ORDER BY kind, number")
    assert ("startup", None) in kinds
    assert ("loop", 1) in kinds and ("loop", 2) in kinds
    assert not [kind for kind in kinds if kind == ("loop", 3)]


def test_sums_are_the_whole(profile):
    assert by_metric(profile, "window_values") == by_metric(profile, "context_values")


def test_each_loop_has_its_own_work(profile):
    # A look comes every 100 ms at most: the rest is at the borders.
    assert calls(profile, "loop1", "aten::relu") > 300
    assert calls(profile, "loop2", "aten::tanh") > 150
    assert calls(profile, "loop1", "aten::tanh") < 50
    assert calls(profile, "loop1", "aten::fft_fft2") == calls(profile, "loop2", "aten::fft_fft2") == 0
