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
    until(page, "document.querySelector('.lanes')?.dataset.spans > 0")
    return page


def drag(page, start, end, y=300):
    box = page.locator(".lanes").bounding_box()
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
    sums = page.request.get(f"{viewers(trace)}api/1/timeline/sum?t0={values['m0']}&t1={values['m1']}&top=200&format=json").json()
    columns = [column["name"] for column in sums["columns"]]
    names = [row[columns.index("name")] for row in sums["rows"]]
    assert page.locator("aside tbody th").first.get_attribute("title") == names[0]
    assert int(page.locator("aside table").get_attribute("aria-rowcount")) == len(names) + 1
    page.reload()
    page.wait_for_selector("aside tbody tr")  # the link has the range
    page.locator(".lanes").focus()
    page.keyboard.press("Escape")
    until(page, "!location.hash.includes('m1=')")


def settles(page, name, expected):
    """Waits until the address has the value: on a busy machine it also has those on the way there."""
    until(page, f"Math.abs(new URLSearchParams(location.hash.split('?')[1]).get('{name}') - {expected}) <= {expected} * 0.02")


def test_the_strip_moves_and_cuts_the_visible_part(open_page, viewers, trace):
    page = timeline(open_page, viewers(trace))
    window = page.get_by_role("slider", name="The visible part of the run")
    strip = page.locator(".strip").bounding_box()
    end = page.evaluate("document.querySelector('.lanes').plumbRange[1]")
    page.mouse.move(strip["x"] + strip["width"] - 2, strip["y"] + 20)
    page.mouse.down()
    page.mouse.move(strip["x"] + strip["width"] / 2, strip["y"] + 20, steps=4)  # the right end goes to the middle
    page.mouse.up()
    settles(page, "t1", end / 2)
    values = values_of(page)
    assert (int(values["t0"]), int(values["t1"])) == (0, pytest.approx(end / 2, rel=0.02))
    box = window.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2 + strip["width"] / 4, box["y"] + 20, steps=4)
    page.mouse.up()
    settles(page, "t0", end / 4)
    moved = values_of(page)
    assert int(moved["t1"]) - int(moved["t0"]) == pytest.approx(end / 2, rel=0.02)
    assert int(moved["t0"]) == pytest.approx(end / 4, rel=0.05)
    window.focus()
    page.keyboard.press("Home")
    until(page, "location.hash.includes('t0=0&')")
    assert window.get_attribute("aria-valuetext").startswith("0 s to ")
    page.reload()
    until(page, "document.querySelector('.lanes')?.dataset.spans > 0")
    assert int(values_of(page)["t1"]) == pytest.approx(end / 2, rel=0.02)


def test_tracks_are_filtered_and_pinned_by_mouse_and_keys(open_page, viewers, trace, picture):
    page = timeline(open_page, viewers(trace))
    shown = "document.querySelector('.lanes').dataset.tracks"
    assert page.evaluate(shown) == "3"
    page.keyboard.press("/")
    page.keyboard.type("stream")
    until(page, f"{shown} === '1'")
    assert values_of(page)["filter"] == "stream" and "1 of 3 tracks" in page.inner_text(".pins")
    page.keyboard.press("Escape")
    until(page, f"{shown} === '3'")
    page.locator(".lanes").focus()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert "stream 7" in said(page)
    page.keyboard.press("p")
    until(page, "location.hash.includes('pins=')")
    assert "pinned to the top" in said(page)
    pinned = values_of(page)["pins"]
    picture(page, "timeline-pinned")
    box = page.locator(".lanes").bounding_box()
    page.mouse.click(box["x"] + 300, box["y"] + 200)  # it is the first track now
    page.mouse.click(box["x"] + 20, box["y"] + 30)  # its name: unpins it
    until(page, "!location.hash.includes('pins=')")
    page.locator(".pins summary").click()
    page.get_by_role("checkbox", name="stream 7 on device 0").check()
    until(page, f"location.hash.includes('pins={pinned}')")
    page.goto(page.url.split("#")[0] + "#1/timeline?filter=rank:9&pins=" + pinned)
    until(page, f"{shown} === '1'")  # a pin stays, whatever the filter


def test_sums_are_of_the_tracks_that_are_shown(open_page, viewers, trace):
    page = timeline(open_page, viewers(trace), "?filter=stream&m0=1000000&m1=20000000")
    page.wait_for_selector("aside tbody tr")
    tracks = page.request.get(f"{viewers(trace)}api/1/timeline/tracks?format=json").json()
    columns = [column["name"] for column in tracks["columns"]]
    stream = next(row[columns.index("track")] for row in tracks["rows"] if row[columns.index("kind")] == "stream")
    sums = page.request.get(f"{viewers(trace)}api/1/timeline/sum?t0=1000000&t1=20000000&tracks={stream}&format=json").json()
    assert int(page.locator("aside table").get_attribute("aria-rowcount")) == len(sums["rows"]) + 1
    assert page.locator("aside tbody th").first.get_attribute("title").startswith("sgemm_largek_lds64<") and "sgemm_largek_lds64<" in sums["rows"][0][0]
    assert "Of the tracks that are shown" in page.inner_text("aside")


def test_a_page_in_one_file_sums_what_it_holds(open_page, trace, folder):
    out = folder / "timeline.html"
    subprocess.run([PLUMB, "view", trace, "--html", out], check=True, timeout=60)
    page = timeline(open_page, out.as_uri(), "?m0=1000000&m1=2000000")
    page.wait_for_selector("aside tbody tr")
    assert "not in it" in page.inner_text("aside")
    top = page.locator("aside tbody tr").first
    assert top.locator("td").first.inner_text() == "1.00 ms"  # no more than the range, though the run is longer
    assert int(page.evaluate("document.querySelector('.lanes').dataset.bands")) > 0


def test_keys_select_zoom_and_move(open_page, viewers, trace):
    page = timeline(open_page, viewers(trace))
    page.locator(".lanes").focus()
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
    box = page.locator(".lanes").bounding_box()
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


def test_samples_have_tracks_of_their_own(open_page, viewers, picture):
    url = viewers("planted/augment")
    page = timeline(open_page, url, "?filter=samples+504&t0=4000000000&t1=5000000000")
    assert "CPU samples" in page.inner_text(".summary") and "1 of 22 tracks" in page.inner_text(".pins")
    page.locator(".lanes").focus()
    page.keyboard.press(".")
    assert "samples of thread 504" in said(page) and "Python" in said(page)
    picture(page, "timeline-samples")
    page.keyboard.press("m")
    page.wait_for_selector("aside tbody tr")
    page.goto(f"{url}#1/timeline?filter=504&t0=4000000000&t1=5000000000&m0=4200000000&m1=4400000000")
    page.wait_for_selector("text=aten::uniform_")
    names = page.locator("aside tbody th").all_inner_texts()
    assert "Linear.reset_parameters" not in names  # sums are of spans: sampled ones would count twice


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
