# SPDX-License-Identifier: Apache-2.0
"""The page Memory, on a run whose allocations the test knows: nothing is sampled or rounded away."""
import csv
import io
import json
import os
import subprocess
import sys
import urllib.request

import pytest

from web.browser import BUILD, PLUMB, ROOT, check_axe
from web.test_pages import TRAIN, loaded, until

MIB = 1 << 20
PROGRAM = ROOT / "tests/e2e/programs/memory_over_time.py"


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """The profile, and what the program printed: the peak, what lives at the end, what is reserved."""
    folder = tmp_path_factory.mktemp("memory")
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", folder / "libstandin.so", ROOT / "tests/e2e/memory_standin.c"], check=True)
    done = subprocess.run([PLUMB, "run", "--memory", "--no-gpu", "-o", folder / "memory.plumb", "--", sys.executable, PROGRAM, folder / "libstandin.so"],
                          check=True, capture_output=True, text=True, timeout=60)
    return folder / "memory.plumb", [int(word) for word in done.stdout.split()[:3]]


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """A profile of a loop with iterations, whose only memory is the driver's."""
    if not (BUILD / "mock/launcher.so").exists():
        pytest.exit("the stand-in driver is not built: run make mock first", returncode=2)
    folder, mock = tmp_path_factory.mktemp("driver"), BUILD / "mock/13.0"
    environment = {**os.environ, "LD_LIBRARY_PATH": str(mock), "PLUMB_MOCK": "", "MOCK_LAUNCHER": str(BUILD / "mock/launcher.so"),
                   "MOCK_CUPTI": str(next(mock.glob("libcupti.so.*")))}
    subprocess.run([PLUMB, "run", "--memory", "--trace", "-o", folder / "driver.plumb", "--", sys.executable, ROOT / "tests/e2e/programs/driver_memory.py"],
                   check=True, capture_output=True, timeout=60, env=environment)
    return folder / "driver.plumb"


@pytest.fixture
def page(open_page, viewers, recording):
    page = open_page(f"{viewers(recording[0])}#1/memory")
    loaded(page)
    return page


def line_of(mark):
    return next(number for number, line in enumerate(PROGRAM.read_text().splitlines(), 1) if f"# @{mark}" in line)


def shown(page):
    """{name of a row: its cells}."""
    rows = page.locator("tbody tr:not([aria-hidden])").evaluate_all("all => all.map(row => [...row.children].map(cell => cell.innerText))")
    return {row[0]: row[1:] for row in rows}


def answer(url, name, *columns):
    """Rows of what plumb view answers, in the order of the first column."""
    table = json.load(urllib.request.urlopen(f"{url}api/1/{name}?format=json", timeout=20))
    names = [column["name"] for column in table["columns"]]
    return sorted([row[names.index(column)] for column in columns] for row in table["rows"])


def readout(page):
    return page.locator("figcaption").inner_text()


def saved(page, button):
    with page.expect_download() as download:
        button.click()
    with open(download.value.path(), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(io.StringIO(file.read())))


def test_it_says_what_the_program_did(page, recording):
    assert recording[1] == [125 * MIB, 30 * MIB, 128 * MIB]
    peak, live, reserved = "125 MiB", "30.0 MiB", "128 MiB"
    text = page.locator(".summary").first.inner_text()
    assert f"tensors took at most {peak}," in text and f"At the end, {live} still lived" in text and f"at most it reserved {reserved}" in text


def test_who_holds_the_peak_and_the_end(page, recording):
    weights, activation, history = (f"{PROGRAM.name}:{line_of(mark)} in <module>" for mark in ("weights", "activation", "history"))
    assert {name: cells[1] for name, cells in shown(page).items()} == {activation: "96.0 MiB", history: "19.0 MiB", weights: "10.0 MiB"}
    said = json.loads(subprocess.run([PLUMB, "report", "--by", "memory", "--json", recording[0]], check=True, capture_output=True).stdout)
    assert {row["user_line"]: row["held_bytes"] for row in said["rows"]} == {line_of("activation"): 96 * MIB, line_of("history"): 19 * MIB, line_of("weights"): 10 * MIB}
    assert f"{page.locator('.bar').count()} rows shown have 125 MiB (100.0 %)" in page.locator(".holders .summary").inner_text()
    page.get_by_role("button", name="At the end", exact=True).click()
    page.wait_for_selector("text=30.0 MiB lived")
    assert {name: cells[1] for name, cells in shown(page).items()} == {history: "20.0 MiB", weights: "10.0 MiB"}
    assert "at=end" in page.evaluate("location.hash")
    page.get_by_role("button", name="Modules").click()
    page.wait_for_selector("text=[outside any module]")
    rows = saved(page, page.locator(".holders").get_by_role("button", name="CSV"))
    assert [(row["name"], row["held"], row["live"]) for row in rows] == [("", str(125 * MIB), str(30 * MIB))]


def test_rows_are_filtered_and_lead_to_the_flame_graph(page):
    page.keyboard.press("/")
    page.keyboard.type(f":{line_of('history')} ")
    until(page, "document.querySelectorAll('tbody tr:not([aria-hidden])').length === 1")
    page.locator("tbody button").click()
    page.wait_for_selector("text=match (")
    assert "metric=mem.held" in page.evaluate("location.hash") and "19.0 MiB" in page.inner_text("main")


def test_the_chart_is_read_by_pointer_and_keys(page, recording):
    peak, live, reserved = recording[1]
    series = saved(page, page.locator("figure").get_by_role("button", name="CSV"))
    assert max(int(row["max"]) for row in series) == peak and int(series[-1]["last"]) == live
    assert max(int(row["max_reserved"]) for row in series) == reserved
    chart = page.get_by_role("application")
    chart.hover(position={"x": chart.bounding_box()["width"] - 12, "y": 100})
    assert "30.0 MiB" in readout(page) and readout(page).endswith("128 MiB reserved")
    chart.focus()
    page.keyboard.press("p")
    assert "125 MiB allocated" in readout(page)
    assert "125 MiB allocated" in page.locator("[aria-live]").first.inner_text()
    page.keyboard.press("Home")
    assert readout(page).startswith(f"{int(series[0]['start']) / 1e9:.3f} s: 0 B to ") and readout(page).endswith("64.0 MiB reserved")
    page.keyboard.press("ArrowRight")
    second = series[1]
    assert f"{int(second['max']) / MIB:.1f} MiB" in readout(page)
    page.keyboard.press("End")
    assert "30.0 MiB" in readout(page)


def test_times_are_told_apart_when_zoomed(open_page, viewers, recording):
    page = open_page(f"{viewers(recording[0])}#1/memory?t0=200000000&t1=240000000")
    loaded(page)
    page.get_by_role("application").focus()
    said = []
    for _ in range(5):
        page.keyboard.press("ArrowRight")
        said.append(float(readout(page).split(" ")[0]))
    assert all(0.003 < b - a < 0.005 for a, b in zip(said, said[1:]))


def test_drag_zooms_and_the_address_keeps_it(page):
    chart = page.get_by_role("application")
    box = chart.bounding_box()
    page.mouse.move(box["x"] + 300, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 500, box["y"] + 100, steps=4)
    page.mouse.up()
    until(page, "location.hash.includes('t0=') && location.hash.includes('t1=')")
    zoomed = page.evaluate("location.hash")
    page.reload()
    loaded(page)
    page.get_by_role("button", name="Whole run").click()
    until(page, "!location.hash.includes('t0=')")
    page.go_back()
    until(page, f"location.hash === {json.dumps(zoomed)}")
    page.get_by_role("application").dblclick()
    until(page, "!location.hash.includes('t0=')")


def test_the_chart_draws_the_peak(page):
    """Pixels: the column of the peak is as high as the chart, and what is left at the end is not."""
    tall = page.evaluate("""() => {
        const canvas = document.querySelector('figure canvas'), context = canvas.getContext('2d');
        const data = context.getImageData(0, 0, canvas.width, canvas.height).data;
        const height = (x) => {
            let count = 0;
            for (let y = 0, at = 4 * x; y < canvas.height; y++, at += 4 * canvas.width) if (data[at + 2] - data[at] > 60) count++;
            return count;
        };
        const heights = Array.from({length: canvas.width}, (_, x) => height(x));
        return [Math.max(...heights), heights[canvas.width - 12], canvas.height];
    }""")
    assert tall[0] > 0.7 * tall[2] and 0.1 * tall[0] < tall[1] < 0.4 * tall[0]


@pytest.mark.parametrize("look", ["light", "dark"])
def test_it_is_accessible(open_page, viewers, recording, picture, look):
    page = open_page(f"{viewers(recording[0])}#1/memory", look, bypass_csp=True)
    loaded(page)
    page.get_by_role("application").hover()
    picture(page, f"memory-{look}")
    check_axe(page)


def test_narrow_window(open_page, viewers, recording, picture):
    page = open_page(f"{viewers(recording[0])}#1/memory", width=360, height=640)
    loaded(page)
    picture(page, "memory-narrow")
    assert page.evaluate("document.querySelector('main').scrollWidth") <= 360
    chart, tools = page.locator("figure").bounding_box(), page.locator(".holders").bounding_box()
    assert chart["y"] + chart["height"] <= tools["y"], "they overlap"


def test_memory_of_the_driver_and_iterations(open_page, viewers, driver, picture):
    page = open_page(f"{viewers(driver)}#1/memory")
    loaded(page)
    page.wait_for_selector("text=iterations")
    starts, bands = answer(viewers(driver), "memory/series", "start"), answer(viewers(driver), "timeline/bands", "start", "number")
    picture(page, "memory-driver")
    text = page.inner_text("main")
    assert "the driver handed out at most 4.00 MiB" in text and "At the end, 3.00 MiB" in text
    assert "Who holds this memory at its peak is unknown" in text and page.locator("table").count() == 0
    page.get_by_role("application").focus()
    page.keyboard.press("Home")
    seen = set()
    for _ in range(60):
        page.keyboard.press("ArrowRight")
        seen.add(readout(page).split("iteration ")[1] if "iteration " in readout(page) else None)
    # The iteration in which an interval begins. On a busy machine none may begin in a short one.
    during = [max((band for band in bands if band[0] <= start), default=None) for start, in starts[1:61]]
    expected = {str(band[1]) for band in during if band and band is not bands[-1]}
    assert len(expected) > 3 and expected <= seen and seen - expected <= {None, str(bands[-1][1])}
    page.get_by_role("link", name="Show that in the flame graph").click()
    until(page, "location.hash.includes('metric=gpu.alloc_bytes') && document.querySelector('main').innerText.includes('33.0 MiB')")


def test_without_memory_it_says_how_to_record_it(open_page, viewers):
    page = open_page(f"{viewers(TRAIN)}#1/memory")
    page.wait_for_selector("text=This profile has no data for this page")
    assert page.locator(".command code").inner_text() == "plumb run --memory -- PROGRAM"


def test_one_file(open_page, recording, tmp_path):
    subprocess.run([PLUMB, "view", recording[0], "--html", tmp_path / "page.html"], check=True, capture_output=True, timeout=60)
    page = open_page(f"file://{tmp_path / 'page.html'}#1/memory?by=operator&at=end")
    loaded(page)
    assert page.get_by_role("alert").count() == 0
    assert {name: cells[1] for name, cells in shown(page).items()} == {"[outside any operator]": "30.0 MiB"}
    assert "In this page, it has at most the 1000 largest rows" in page.inner_text(".holders .summary")
    page.get_by_role("application").focus()
    page.keyboard.press("p")
    assert "125 MiB allocated" in readout(page)
    series = saved(page, page.locator("figure").get_by_role("button", name="CSV"))
    assert max(int(row["max"]) for row in series) == 125 * MIB


def test_an_imported_trace_says_what_it_lacks(open_page, viewers, tmp_path):
    """PyTorch's memory events say what the allocator had handed out, and not who holds it."""
    events = [{"ph": "X", "cat": "cpu_op", "name": "aten::empty", "ts": 1, "dur": 9000, "pid": 5, "tid": 5}] + [
        {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "ts": 2000 * at, "pid": 5, "tid": 5, "args": {
            "Total Allocated": number * MIB, "Total Reserved": 8 * MIB, "Bytes": MIB, "Addr": 64, "Device Id": 0, "Device Type": 1}} for at, number in enumerate((1, 5, 2), 1)]
    (tmp_path / "trace.json").write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA X"}], "traceEvents": events}))
    subprocess.run([PLUMB, "import", tmp_path / "trace.json", "-o", tmp_path / "trace.plumb"], check=True, capture_output=True, timeout=60)
    page = open_page(f"{viewers(tmp_path / 'trace.plumb')}#1/memory")
    loaded(page)
    text = page.inner_text("main")
    assert "the allocator handed out at most 5.00 MiB" in text and "2.00 MiB were still handed out" in text and "At most it reserved 8.00 MiB" in text
    assert "Who holds this memory at its peak is unknown" in text and page.locator("canvas").count() >= 1
