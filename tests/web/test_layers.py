# SPDX-License-Identifier: Apache-2.0
"""The page Layers: each standard table has its own figure, and rooflines are of one profile or of several."""
import os
import subprocess
import sys

import pytest

from web.browser import PLUMB, ROOT, check_axe
from web.test_pages import loaded, until

# In a process of its own: the tests of the command line have helpers of the same names.
WRITE = """
import pathlib, sys
from xsp_model import Kernel, Layer, write
for batch in 1, 8, 64:
    write(pathlib.Path(sys.argv[1]) / f"b{batch}.json", [
        Layer("conv", "Conv2D", [Kernel("gemm", 10 * batch, batch * 5e7, 4e6 + batch * 1e6, 1e6, 0.5)]),
        Layer("relu", "Relu", [Kernel("relu", 2 * batch, batch * 4e5, batch * 8e5, batch * 8e5, 0.9)])], runs=3, batch=batch)
"""

MODEL = "resnet/b32"
# What is drawn for each table: pictures, bars of shares, or a line that says what nobody recorded.
FIGURES = {"A2": ("canvas", 1), "A3": ("canvas", 3), "A4": (".notice", 1), "A5": (".stacked", 1), "A6": (".stacked", 2), "A7": (".notice", 1), "A8": ("canvas", 1),
           "A9": ("canvas", 1), "A10": ("canvas", 1), "A11": ("canvas", 1), "A12": ("canvas", 1), "A13": ("canvas", 1), "A14": ("canvas", 1), "A15": (".stacked", 1),
           "stages": (".stacked", 3)}


@pytest.fixture(scope="module")
def batches(tmp_path_factory):
    """Traces of one model with counters, as XSP writes them, with three batch sizes."""
    folder = tmp_path_factory.mktemp("batches")
    subprocess.run([sys.executable, "-c", WRITE, folder], check=True, env={**os.environ, "PYTHONPATH": str(ROOT / "tests/e2e")}, timeout=60)
    return [folder / f"b{batch}.json" for batch in (1, 8, 64)]


@pytest.mark.parametrize("kind", FIGURES)
def test_each_table_has_its_figure(open_page, viewers, picture, kind):
    page = open_page(f"{viewers(MODEL)}#1/layers?kind={kind}")
    loaded(page)
    what, count = FIGURES[kind]
    assert page.locator(f"main {what}").count() == count
    picture(page, f"layers-{kind}")
    if what == "canvas":
        # Something is drawn, and pointing at it says what.
        canvas = page.locator("main canvas").first
        box = canvas.bounding_box()
        before = page.locator("main figcaption").first.inner_text()
        canvas.hover(position={"x": box["width"] * 0.6, "y": box["height"] * 0.5})
        until(page, f"document.querySelector('main figcaption').innerText !== {before!r}")
        assert page.evaluate("""() => { const one = document.querySelector('main canvas'), data = one.getContext('2d').getImageData(0, 0, one.width, one.height).data;
            return new Set(new Uint32Array(data.buffer)).size; }""") > 3


def test_what_a_figure_lacks(open_page, viewers):
    page = open_page(f"{viewers(MODEL)}#1/layers?kind=A4")
    page.wait_for_selector("text=record with plumb run --memory")
    page.goto(f"{viewers(MODEL)}#1/layers?kind=A9")
    page.wait_for_selector("text=record with plumb run --counters")
    page.wait_for_selector("text=Some are above this peak")
    page.get_by_role("combobox", name="Precision").select_option("tf32")
    until(page, "location.hash.includes('precision=tf32')")
    until(page, "!document.querySelector('main').innerText.includes('above this peak')")


@pytest.mark.parametrize("look", ["light", "dark"])
def test_roofline_of_one_profile(open_page, viewers, batches, picture, look):
    page = open_page(f"{viewers(batches[0])}#1/layers?kind=A14&peak=15700&bandwidth=900", look, bypass_csp=True)
    loaded(page)
    roofline = page.get_by_role("img", name="Roofline with 2 marks. The peak is 15700 Gflop/s, the bandwidth 900 GB/s")
    picture(page, f"roofline-{look}")
    box = roofline.bounding_box()
    # The marks: conv has 10 flop/byte and 5,000 Gflop/s, relu 0.25 and 200.
    said = set()
    for x in range(60, int(box["width"]), 12):
        for y in (30, 60, 90, 120, 150):
            page.mouse.move(box["x"] + x, box["y"] + y)
            said.add(page.locator("main figcaption").inner_text())
    assert "conv: 5,000 Gflop/s, 8.33 flop/byte; memory limits it" in said and "relu: 200 Gflop/s, 0.250 flop/byte; memory limits it" in said
    check_axe(page)


def test_roofline_without_a_known_gpu(open_page, viewers, batches):
    """plumb does not know the GPU: both limits can be typed."""
    page = open_page(f"{viewers(batches[0])}#1/layers?kind=A14")
    page.wait_for_selector("text=Set both above")
    for name, value in ("Peak", "15700"), ("Bandwidth", "900"):
        field = page.get_by_role("spinbutton", name=name)
        field.fill(value)
        field.press("Enter")
    page.wait_for_selector("canvas.roof")
    assert "bandwidth=900" in page.evaluate("location.hash")


def test_roofline_over_batch_sizes(open_page, viewers, batches, picture):
    page = open_page(f"{viewers(*batches)}#1/layers?kind=A15&peak=15700&bandwidth=900")
    loaded(page)
    page.wait_for_selector("canvas.roof")
    page.get_by_role("img", name="Roofline with 3 marks.").wait_for()
    assert [text.strip() for text in page.locator(".bars .legend li").all_inner_texts()] == ["batch 1 (b1.json)", "batch 8 (b8.json)", "batch 64 (b64.json)"]
    picture(page, "roofline-batches")
    page.get_by_role("combobox", name="Table").select_option("A14")
    page.get_by_role("img", name="Roofline with 9 marks.").wait_for()
    page.get_by_role("button", name="This file").click()
    page.get_by_role("img", name="Roofline with 2 marks.").wait_for()
    page.get_by_role("combobox", name="Table").select_option("A1")
    page.wait_for_selector("text=throughput of each profile")
    assert int(page.locator("table").get_attribute("aria-rowcount")) == 4


def test_recorded_batch_sizes(open_page, viewers, picture):
    """Recordings on a GPU that plumb knows: no counters of bytes, so the models' operations per second against its peak."""
    page = open_page(f"{viewers('resnet/b1', 'resnet/b8', 'resnet/b64')}#1/layers?kind=A15")
    loaded(page)
    page.wait_for_selector("text=Gflop/s of the model in each profile")
    page.wait_for_selector("text=record with plumb run --counters")
    canvas = page.locator("main canvas").first
    box = canvas.bounding_box()
    canvas.hover(position={"x": box["width"] - 20, "y": box["height"] - 30})
    assert page.locator("main figcaption").first.inner_text() == "batch 64: 57,470 Gflop/s, 85.8 % of the peak"
    picture(page, "layers-recorded-batches")


def test_one_file_of_several(open_page, batches, tmp_path):
    subprocess.run([PLUMB, "view", *batches, "--html", tmp_path / "page.html"], check=True, capture_output=True, timeout=60)
    page = open_page(f"file://{tmp_path / 'page.html'}#1/layers?kind=A1")
    loaded(page)
    page.wait_for_selector("text=throughput of each profile")
    page.get_by_role("combobox", name="Table").select_option("compare")
    page.wait_for_selector("text=latency of each profile")
    assert page.get_by_role("alert").count() == 0
