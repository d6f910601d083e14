# SPDX-License-Identifier: Apache-2.0
"""The timeline and the iterations in a browser."""
import gzip
import json
import subprocess

import pytest

from web.browser import PLUMB, ROOT, recorded
from web.test_flame import said, values_of
from web.test_pages import TRAIN, loaded, until


@pytest.fixture(scope="module")
def trace(folder):
    path = folder / "torch.json"
    path.write_bytes(gzip.decompress((ROOT / "tests/data/foreign/torch.json.gz").read_bytes()))
    return path


def timeline(open_page, url, values=""):
    page = open_page(f"{url}#1/timeline{values}")
    until(page, "document.querySelector('canvas')?.dataset.spans > 0")
    return page


def drag(page, start, end, y=300):
    box = page.locator("canvas").bounding_box()
    left, width = 180, box["width"] - 180
    page.mouse.move(box["x"] + left + start * width, box["y"] + y)
    page.mouse.down()
    page.mouse.move(box["x"] + left + (start + end) / 2 * width, box["y"] + y, steps=3)
    page.mouse.move(box["x"] + left + end * width, box["y"] + y, steps=3)


def test_drag_measures_and_sums(open_page, viewers, trace, picture):
    page = timeline(open_page, viewers(trace))
    assert "All 4,211 spans of the trace" in page.inner_text(".summary")
    drag(page, 0.2, 0.5)
    page.wait_for_selector("aside tbody tr")  # the sums are there before the end of the drag
    page.mouse.up()
    until(page, "location.hash.includes('m1=')")
    picture(page, "timeline-measured")
    values = values_of(page)
    page.wait_for_timeout(200)
    sums = page.request.get(f"{viewers(trace)}api/1/timeline/sum?t0={values['m0']}&t1={values['m1']}&top=200&format=json").json()
    columns = [column["name"] for column in sums["columns"]]
    names = [row[columns.index("name")] for row in sums["rows"]]
    assert page.locator("aside tbody th").first.get_attribute("title") == names[0]
    assert int(page.locator("aside table").get_attribute("aria-rowcount")) == len(names) + 1
    page.reload()
    page.wait_for_selector("aside tbody tr")  # the link has the range
    page.locator("canvas").focus()
    page.keyboard.press("Escape")
    until(page, "!location.hash.includes('m1=')")


def test_keys_select_zoom_and_move(open_page, viewers, trace):
    page = timeline(open_page, viewers(trace))
    page.locator("canvas").focus()
    page.keyboard.press(".")
    first = said(page)
    assert "thread 742" in first
    page.keyboard.press(".")
    assert said(page) != first
    page.keyboard.press(",")
    assert said(page) == first
    page.keyboard.press("f")
    until(page, "location.hash.includes('t0=')")
    zoomed = values_of(page)
    page.keyboard.press("d")
    until(page, f"!location.hash.includes('t0={zoomed['t0']}&')")
    assert int(values_of(page)["t0"]) > int(zoomed["t0"])
    page.keyboard.press("0")
    until(page, "!location.hash.includes('t0=')")


def test_wheel_zooms_at_the_pointer(open_page, viewers, trace):
    page = timeline(open_page, viewers(trace))
    box = page.locator("canvas").bounding_box()
    page.mouse.move(box["x"] + 180 + (box["width"] - 180) / 2, box["y"] + 200)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -300)
    page.keyboard.up("Control")
    until(page, "location.hash.includes('t1=')")
    values = values_of(page)
    tracks = page.request.get(f"{viewers(trace)}api/1/timeline/tracks?format=json").json()
    columns = [column["name"] for column in tracks["columns"]]
    end = max(row[columns.index("end")] for row in tracks["rows"])
    assert (int(values["t0"]) + int(values["t1"])) / 2 == pytest.approx(end / 2, rel=0.02)


def test_newest_work_is_called_so(open_page, viewers):
    page = timeline(open_page, viewers(TRAIN))
    assert "The newest GPU work, 49,624 spans" in page.inner_text(".summary")


def test_the_clicked_iteration_is_explained(open_page, viewers, folder, picture):
    page = open_page(f"{viewers(TRAIN)}#1/iterations")
    loaded(page)
    box = page.locator(".bars canvas").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.605, box["y"] + box["height"] / 2)
    until(page, "location.hash.includes('iteration=60')")
    page.wait_for_selector("aside li")
    picture(page, "iterations-explained")
    explained = json.loads(subprocess.run([PLUMB, "iters", "--json", "--explain", "60", recorded(TRAIN, folder)], capture_output=True, check=True).stdout)["explain"]
    assert [line.removesuffix(" flame") for line in page.locator("aside li").all_inner_texts()] == [row["text"] for row in explained["rows"]]
    page.get_by_role("combobox", name="Level").select_option("1")
    until(page, "location.hash.includes('level=1')")
    assert "500 iterations of 39 operations" in page.inner_text(".summary")
