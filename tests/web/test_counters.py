# SPDX-License-Identifier: Apache-2.0
"""Hardware counters over time on the pages Timeline and Iterations, of runs on the stand-in driver whose counters the test sets."""
import json
import os
import re
import sqlite3
import subprocess

import pytest

from web.browser import BUILD, PLUMB, check_axe, check_narrow
from web.test_flame import said, values_of
from web.test_pages import loaded, until

READ, ACTIVE = "dram__bytes_read.sum", "sm__cycles_active.avg.pct_of_peak_sustained_elapsed"
A_MS = 1000000  # ns
STEPS = [f"launch:fwd:{8 * A_MS}", f"launch:bwd:{16 * A_MS}", "sleep:60"] * 8
LEFT = 180  # pixels: where the names of the tracks end


def record(folder, name, options, *actions, scenario="clock=1"):
    mock = BUILD / "mock/13.0/mock-profiled"
    if not mock.exists():
        pytest.exit("the stand-in driver is not built: run make mock first", returncode=2)
    done = subprocess.run([PLUMB, "run", "-o", folder / name, *options, "--", mock, f"counter:bwd:{READ}:64000000", f"counter:fwd:{ACTIVE}:50",
                           f"counter:bwd:{ACTIVE}:100", *actions], cwd=folder, capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PLUMB_MOCK": scenario})
    assert done.returncode == 0, done.stderr
    return folder / name


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    return record(tmp_path_factory.mktemp("counters"), "traced.plumb", ["--counters-series=sm_active,dram_read_bytes", "--trace"], *STEPS, "sleep:100")


@pytest.fixture(scope="module")
def broken_off(tmp_path_factory):
    """The program's own profiler has the counters for a while: then nothing is known of them."""
    return record(tmp_path_factory.mktemp("counters"), "gap.plumb", ["--counters-series=sm_active"], f"launch:fwd:{80 * A_MS}", "sleep:200", "profile:begin",
                  "launch:v:1000", "profile:end", "profile:leave", "sleep:600", f"launch:fwd:{80 * A_MS}", "sleep:200")


def timeline(open_page, url, values="", **options):
    page = open_page(f"{url}#1/timeline{values}", **options)
    until(page, "document.querySelector('.lanes')?.dataset.bins > 0")
    return page


def hover(page, metric, time):
    """What the page says of the row of METRIC at TIME (ns since the start of the run): the row is looked for."""
    box = page.locator(".lanes").bounding_box()
    place = {**dict(zip(("t0", "t1"), page.evaluate("document.querySelector('.lanes').plumbRange"))), **values_of(page)}
    t0, t1 = float(place["t0"]), float(place["t1"])
    x = box["x"] + LEFT + (time - t0) / (t1 - t0) * (box["width"] - LEFT)
    for y in range(30, int(box["height"]), 12):
        page.mouse.move(x, box["y"] + y)
        tip = page.locator(".tip")
        if tip.count() and tip.inner_text().startswith(f"{metric}:"):
            return tip.inner_text()
    raise AssertionError(f"no row says {metric}")


def rows(page, address, name):
    found = page.request.get(f"{address}api/1/{name}{'&' if '?' in name else '?'}format=json").json()
    columns = [column["name"] for column in found["columns"]]
    return [dict(zip(columns, row)) for row in found["rows"]]


def middles(page, address, kernel):
    return [(span["start"] + span["end"]) / 2 for span in rows(page, address, "timeline/spans") if span["name"] == kernel]


def bins(path, metric):
    """[(start, end, mean)] as the profile has it, on the clock of the timeline."""
    with sqlite3.connect(path) as database:
        began, = database.execute("SELECT start_ns FROM run").fetchone()
        return [(start - began, start - began + width, mean) for start, width, mean in
                database.execute("SELECT start_ns, width_ns, mean FROM counter_series WHERE metric = ? ORDER BY start_ns", (metric,))]


def percent_of(text):
    return float(re.match(r"sm_active: ([\d.]+) %;", text).group(1))


def check_values(page, times, path):
    """Hovers at TIMES: the values are those of the profile there."""
    active = bins(path, "sm_active")
    for time in times:
        mean = next(mean for start, end, mean in active if start <= time < end)
        assert percent_of(hover(page, "sm_active", time)) == pytest.approx(mean / 1e4, abs=0.06)


def test_values_are_where_the_kernels_are(open_page, viewers, traced, picture):
    address = viewers(traced)
    page = timeline(open_page, address)
    assert "Hardware counters over time: 2 rows" in page.inner_text(".summary")
    picture(page, "timeline-counters")
    forward, backward = (middles(page, address, kernel) for kernel in ("fwd", "bwd"))
    assert len(forward) == len(backward) == 8
    assert {percent_of(hover(page, "sm_active", time)) for time in forward[1:4]} == {50}
    assert {percent_of(hover(page, "sm_active", time)) for time in backward[1:4]} == {100}
    idle = backward[2] + 30 * A_MS  # its end is 8 ms after its middle, and the next work much later
    assert percent_of(hover(page, "sm_active", idle)) == 0
    # 64 MB in 16 ms. One process on one GPU sampled it.
    text = hover(page, "dram_read_bytes", backward[3])
    assert text.startswith(f"dram_read_bytes: {64e6 / 16e-3 / 1e9:.2f} GB/s; mean of ") and "; GPU 0, sampled by process " in text
    check_values(page, [*forward[4:], *backward[4:], idle], traced)


def test_rows_follow_zooming(open_page, viewers, traced):
    address = viewers(traced)
    page = timeline(open_page, address)
    times = middles(page, address, "bwd")
    begin = round(times[3] - 20 * A_MS)
    page.goto(f"{address}#1/timeline?t0={begin}&t1={begin + 40 * A_MS}")
    page.reload()
    until(page, "document.querySelector('.lanes')?.dataset.bins > 0")
    # Each bin has its own width on the screen now.
    until(page, "document.querySelector('.lanes').dataset.bins < 400")
    assert "mean of 1.00 ms" in hover(page, "sm_active", times[3])
    check_values(page, [begin + part * A_MS + A_MS / 2 for part in range(4, 36, 5)], traced)


def test_counters_by_keys_and_folded_away(open_page, viewers, traced):
    page = timeline(open_page, viewers(traced))
    shown = "document.querySelector('.lanes').dataset.tracks"
    assert int(page.evaluate(shown)) == 4  # a thread, a stream, two counters
    page.locator(".lanes").focus()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert said(page).startswith("sm_active: ") and "GPU 0" in said(page)
    before = said(page)
    page.keyboard.press(".")
    assert said(page).startswith("sm_active: ") and said(page) != before
    page.keyboard.press(",")
    assert said(page) == before
    page.keyboard.press("j")
    assert said(page).startswith("dram_read_bytes: ")
    assert page.locator("aside a", has_text="flame graph").count() == 0
    page.get_by_role("checkbox", name="Counters", exact=True).uncheck()
    until(page, f"{shown} === '2'")
    assert values_of(page)["counters"] == "off"
    page.reload()
    until(page, f"document.querySelector('.lanes') && {shown} === '2'")
    page.get_by_role("checkbox", name="Counters", exact=True).check()
    until(page, f"{shown} === '4'")
    # Sums of a range are of spans, though counters are listed, too.
    page.locator(".lanes").focus()
    page.keyboard.press("Escape")
    page.keyboard.press("m")
    page.wait_for_selector("aside tbody tr")
    assert "Of the tracks that are shown" not in page.inner_text("aside")


def test_no_sample_is_no_zero(open_page, viewers, broken_off, picture):
    """Without a trace the rows are there, too; where nothing was sampled the value is unknown."""
    address = viewers(broken_off)
    page = timeline(open_page, address)
    picture(page, "timeline-counters-gap")
    known = bins(broken_off, "sm_active")
    start, end = max(((one[1], two[0]) for one, two in zip(known, known[1:])), key=lambda gap: gap[1] - gap[0])
    assert end - start > 100 * A_MS
    text = hover(page, "sm_active", (start + end) / 2)
    assert text.startswith("sm_active: unknown; no sample at ") and "GPU 0" in text
    check_values(page, [known[20][0] + A_MS / 2, known[-20][0] + A_MS / 2], broken_off)


def test_counters_without_spans(open_page, viewers, traced, tmp_path_factory):
    """A profile with neither spans nor GPU work still has its counters in the timeline."""
    path = tmp_path_factory.mktemp("counters") / "bare.plumb"
    path.write_bytes(traced.read_bytes())
    with sqlite3.connect(path) as database:
        database.execute("DELETE FROM span_chunks")
    page = timeline(open_page, viewers(path))
    assert [track["kind"] for track in rows(page, viewers(path), "timeline/tracks")] == ["counter", "counter"]
    known = bins(path, "sm_active")
    check_values(page, [known[at][0] + A_MS / 2 for at in (50, 200)], path)


def test_each_gpu_has_its_rows_below_its_streams(open_page, viewers, tmp_path_factory):
    path = record(tmp_path_factory.mktemp("counters"), "two.plumb", ["--counters-series=sm_active", "--trace"], "launch:v:1000:0:0", f"launch:bwd:{100 * A_MS}:0:1",
                  "sleep:300", scenario="clock=1,devices=2")
    address = viewers(path)
    page = timeline(open_page, address, "?filter=device")
    tracks = [(track["kind"], int(track["name"][-1]), track["device"]) for track in rows(page, address, "timeline/tracks") if track["kind"] != "thread"]
    assert tracks == [("stream", 0, None), ("counter", 0, 0), ("stream", 1, None), ("counter", 1, 1)]
    middle, = middles(page, address, "bwd")
    page.locator(".lanes").focus()
    said_of = []
    for _ in range(4):
        page.keyboard.press("j")
        said_of.append(said(page))
    assert "GPU 0" in said_of[1] and "GPU 1" in said_of[3]
    # Rows are looked for from the top: GPU 0 did nothing then. By its name, the other one is left.
    assert percent_of(hover(page, "sm_active", middle)) == 0
    page.goto(f"{address}#1/timeline?filter=sm_active+1")
    page.reload()
    until(page, "document.querySelector('.lanes')?.dataset.tracks === '1'")
    until(page, "document.querySelector('.lanes').dataset.bins > 0")
    assert percent_of(hover(page, "sm_active", middle)) == 100


def test_iterations_have_the_means_of_iters(open_page, viewers, traced):
    level = json.loads(subprocess.run([PLUMB, "iters", "--json", traced], check=True, capture_output=True, text=True, timeout=60).stdout)["tracks"][0]["levels"][0]
    page = open_page(f"{viewers(traced)}#1/iterations")
    loaded(page)
    head = page.locator("thead th").all_inner_texts()
    at = {name: head.index(name) for name in ("sm_active", "dram_read_bytes")}
    shown = page.locator("tbody tr:not([aria-hidden])").evaluate_all("all => all.map(row => [...row.children].map(cell => cell.innerText))")
    assert len(shown) == len(level["iterations"]) == 8
    for row, item in zip(shown, level["iterations"]):
        assert float(row[at["sm_active"]].removesuffix(" %")) == pytest.approx(item["counters"]["sm_active"] / 1e4, abs=0.06)
        amount, unit = row[at["dram_read_bytes"]].split(" ")
        scale = {"GB/s": 1e9, "MB/s": 1e6}[unit]
        assert float(amount.replace(",", "")) * scale == pytest.approx(item["counters"]["dram_read_bytes"], rel=0.01)


def test_iterations_that_are_shorter_than_a_bin_say_nothing(open_page, viewers, tmp_path_factory):
    path = record(tmp_path_factory.mktemp("counters"), "wide.plumb", ["--counters-series=sm_active", "--counters-every=200000", "--trace"], *STEPS, "sleep:300")
    page = open_page(f"{viewers(path)}#1/iterations")
    loaded(page)
    assert "duration" in page.locator("thead th").all_inner_texts() and "sm_active" not in page.locator("thead th").all_inner_texts()


def test_a_page_in_one_file_has_them(open_page, traced, tmp_path_factory):
    out = tmp_path_factory.mktemp("counters") / "counters.html"
    subprocess.run([PLUMB, "view", traced, "--html", out], check=True, capture_output=True, timeout=60)
    page = timeline(open_page, out.as_uri())
    known = bins(traced, "sm_active")
    high = [start for start, _, mean in known if mean == 1e6]
    check_values(page, [high[5] + A_MS / 2, high[40] + A_MS / 2, known[3][0] + A_MS / 2], traced)
    assert int(page.evaluate("document.querySelector('.lanes').dataset.bins")) == len(known) * 2
    assert "values of counters are means of at least 1/8000 of the time" in page.inner_text(".summary")
    page.goto(f"{out.as_uri()}#1/iterations")
    loaded(page)
    assert "sm_active" in page.locator("thead th").all_inner_texts()


@pytest.mark.parametrize("look", ["light", "dark"])
def test_counters_are_accessible(open_page, viewers, traced, picture, look):
    page = timeline(open_page, viewers(traced), look=look, bypass_csp=True)
    page.locator(".lanes").focus()
    for key in "jjj":
        page.keyboard.press(key)
    picture(page, f"timeline-counters-{look}")
    check_axe(page)
    check_narrow(timeline(open_page, viewers(traced), look=look, width=360, height=640))
