# SPDX-License-Identifier: Apache-2.0
"""bench/levels.py: the page and figures of profiles that plumb levels made on the stand-in driver, where the counts are known."""
import shutil
import sys
import xml.etree.ElementTree

import pytest
from conftest import PLUMB, ROOT, run_command
from test_levels_counters import counted

sys.path.insert(0, str(ROOT / "bench"))
import levels_svg  # noqa: E402


def test_the_page_of_two_sizes(tmp_path, any_torch_python):
    made = tmp_path / "made"
    made.mkdir()
    counted(made, "model", python=any_torch_python)
    for size in 1, 4:
        shutil.copy(made / "l.plumb", tmp_path / f"levels.batch-{size}.plumb")
    done = run_command(sys.executable, ROOT / "bench/levels.py", "--plumb", PLUMB, "--from", tmp_path, "-o", tmp_path / "page.md")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "page.md").read_text()
    sizes = [line.split(" | ") for line in text.splitlines() if line.startswith(("| 1 |", "| 4 |"))]
    assert sizes[0][0] == "| 1" and "2.00" in sizes[0] and "2.00" in sizes[1]  # flop/byte
    assert "| `gemm` | 0 | 100 | 0.00 | 0 | 0 | 50 | 2.0 |" in text
    assert "| `gemm` | 1 | 100 | 99.0 | 0.00 | 50 | 2.0 |" in text
    assert "| gain of the last two doublings | 3.6 %, 3.9 % | – |" in text
    images = sorted(path.name for path in (tmp_path / "images").iterdir())
    assert {"page-throughput.svg", "page-levels.svg", "page-gpu.svg", "page-intensity.svg"} <= set(images)
    for name in images:
        assert f"(images/{name})" in text
        xml.etree.ElementTree.parse(tmp_path / "images" / name)


def test_a_folder_without_profiles(tmp_path):
    done = run_command(sys.executable, ROOT / "bench/levels.py", "--from", tmp_path, "-o", tmp_path / "page.md")
    assert done.returncode == 1 and "has no profiles levels.batch-N.plumb" in done.stderr and not (tmp_path / "page.md").exists()


def elements(svg, name):
    return [element for element in xml.etree.ElementTree.fromstring(svg) if element.tag.endswith(name)]


def test_lines_are_to_scale():
    svg = levels_svg.lines("T", "x", "y", [1, 2, 4], {"a": [0, 50, 100], "b & c": [100, None, 100]})
    circles = [(float(circle.get("cx")), float(circle.get("cy"))) for circle in elements(svg, "circle")]
    assert len(circles) == 5 and circles[1][1] == pytest.approx((circles[0][1] + circles[2][1]) / 2, abs=0.1)
    assert circles[2][1] == circles[4][1] == levels_svg.TOP and circles[0][1] == levels_svg.HEIGHT - levels_svg.BOTTOM
    steps = levels_svg.lines("T", "x", "y", [1, 2, 4], {"a": [1, 10, 100]}, logarithmic=True)
    ys = [float(circle.get("cy")) for circle in elements(steps, "circle")]
    assert ys[0] - ys[1] == pytest.approx(ys[1] - ys[2], abs=0.2)
    assert levels_svg.lines("T", "x", "y", [1], {"a": [None]}) is None


def test_bars_are_stacked():
    svg = levels_svg.bars("T", "x", "y", ["p", "q"], {"a": [25, None], "b": [75, 50]})
    rects = [(float(rect.get("y")), float(rect.get("height"))) for rect in elements(svg, "rect")[1:4]]
    assert rects[0][1] * 3 == pytest.approx(rects[1][1], abs=0.3) and rects[1][0] + rects[1][1] == pytest.approx(rects[0][0], abs=0.1)
    assert rects[2][1] * 2 == pytest.approx(rects[0][1] + rects[1][1], abs=0.3)
    assert levels_svg.bars("T", "x", "y", ["p"], {"a": [0]}) is None
