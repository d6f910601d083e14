# SPDX-License-Identifier: Apache-2.0
"""The page Compare in a browser: the flame graph of two profiles, and its rows."""
import csv
import io
import json
import re
import subprocess

import pytest

from web.browser import PLUMB, check_axe, check_narrow, recorded
from web.test_flame import click_row, said, values_of
from web.test_pages import TRAIN, loaded, until

PAIR = (TRAIN, "programs/hf-train-healthy")
COMPILED = ("programs/compiled-fault", "programs/compiled-healthy")


def opened(open_page, viewers, values="", files=PAIR, **options):
    page = open_page(f"{viewers(*files)}#1/compare{values}", **options)
    loaded(page)
    page.wait_for_selector(".summary:has-text('→')")
    return page


def diff(folder, *words, files=PAIR):
    return json.loads(subprocess.run([PLUMB, "diff", "--json", "--top", "0", *words, *(recorded(name, folder) for name in files)],
                                     capture_output=True, check=True).stdout)


def test_boxes_have_both_values_and_the_difference(open_page, viewers, folder):
    """Which are those of plumb diff by call path."""
    page = opened(open_page, viewers, "?metric=op.time")
    page.locator("canvas").focus()
    page.keyboard.press("ArrowDown")
    words = said(page)
    found = re.fullmatch(r"(.*); Python; ([\d.]+ \w+) after, ([\d.]+ \w+) before: [−+][\d.]+ \w+ \(([−+][\d.]+ %)\)", words)
    assert found, words
    rows = [row for row in diff(folder, "--metric", "op.time", "--by", "context")["rows"] if row["name"] in found[1].split(" ")[0]]
    assert rows and found[4].startswith("−")
    aside = page.locator("aside")
    assert aside.locator("caption").first.inner_text() == "op.time of an iteration"
    assert aside.locator("tbody").first.locator("td").all_inner_texts()[:2] == [found[3], found[2]]
    assert aside.locator("tr", has_text="gpu.launches").count() == 1  # other metrics of both, too


def test_width_and_what_only_one_profile_has(open_page, viewers, picture):
    page = opened(open_page, viewers, "?window=loop", COMPILED)
    assert "boxes that only before has hold" in page.inner_text(".summary >> nth=0")
    page.get_by_role("button", name="show them").click()
    until(page, "location.hash.includes('width=either')")
    page.wait_for_selector("button[aria-pressed=true]:text-is('The larger')")
    until(page, "!document.querySelector('.summary').innerText.includes('have no width')")
    picture(page, "compare-only-one")
    page.get_by_role("button", name="Table", exact=True).click()
    page.wait_for_selector("[aria-label='Boxes of the flame graph'] tbody tr")
    head = page.locator("[aria-label='Boxes of the flame graph'] thead button").all_inner_texts()
    assert head == ["name", "layer", "before", "after", "change"]


def test_a_row_leads_to_its_boxes_and_has_a_link(open_page, viewers, folder, picture):
    page = opened(open_page, viewers, "?by=operator")
    page.locator("[aria-label='What changed'] tbody button", has_text="aten::mm").first.click()
    page.wait_for_selector(".summary strong")
    row = next(row for row in diff(folder, "--by", "operator")["rows"] if row["name"] == "aten::mm")
    marked = page.locator(".summary strong").inner_text()
    picture(page, "compare-marked")
    page.locator("canvas").focus()
    page.keyboard.press("n")
    assert said(page).startswith("aten::mm")
    assert re.match(r"marked: 13\.\d ms → 13\.\d ms, 5\d\.\d % of all", marked) and 13 < row["before"] / 1e6 < 14
    page.reload()
    page.wait_for_selector(".summary strong")
    assert page.locator(".summary strong").inner_text() == marked
    assert page.locator("tr.picked th").inner_text() == "aten::mm"
    page.get_by_role("button", name="Mark no row").click()
    until(page, "!location.hash.includes('named')")
    page.wait_for_selector(".summary strong", state="detached")


def test_zoom_focus_and_the_way_back(open_page, viewers):
    page = opened(open_page, viewers)
    click_row(page, 12, 0.4)
    until(page, "location.hash.includes('x1=')")
    first = values_of(page)
    assert values_of(page)["node"]
    page.go_back()
    until(page, "!location.hash.includes('x1=')")
    click_row(page, 5, 0.4, button="right")
    names = page.get_by_role("menuitem").all_inner_texts()
    assert "Focus on this box" in names and not any("sandwich" in name for name in names)
    page.get_by_role("menuitem", name="Focus on this box").click()
    until(page, "location.hash.includes('root=')")
    page.wait_for_selector(".summary:has-text('→')")
    page.get_by_role("button", name="End the focus").click()
    until(page, "!location.hash.includes('root=')")
    assert first["x1"] != "1"


def test_rows_are_filtered_sorted_and_saved(open_page, viewers, folder):
    page = opened(open_page, viewers, "?by=kernel&sort=-ratio&filter=reduce")
    names = page.locator("[aria-label='What changed'] tbody th").evaluate_all("all => all.map(one => one.title)")
    assert names and all("reduce" in name.lower() for name in names)
    with page.expect_download() as saved:
        page.get_by_role("button", name="CSV").click()
    rows = list(csv.DictReader(io.StringIO(open(saved.value.path(), encoding="utf-8").read())))
    verb = subprocess.run([PLUMB, "diff", "--csv", "--by", "kernel", "--top", "0", *(recorded(name, folder) for name in PAIR)],
                          capture_output=True, check=True, text=True).stdout
    assert rows == list(csv.DictReader(io.StringIO(verb)))


def test_the_legend_says_what_colours_mean(open_page, viewers):
    page = opened(open_page, viewers)
    page.get_by_text("How to read this").click()
    text = page.inner_text(".changes")
    for words in ("less than before", "more than before", "only in one of the two", "The wider a box, the more it takes after", "Orange boxes take more than before"):
        assert words in text
    assert len(page.locator(".changes .scale .swatch").all()) == 9


@pytest.mark.parametrize("look", ["light", "dark"])
def test_compare_is_accessible(open_page, viewers, picture, look):
    page = opened(open_page, viewers, "?metric=op.time&width=either", look=look, bypass_csp=True)
    click_row(page, 1, 0.5)
    page.wait_for_selector("aside caption")
    page.get_by_text("How to read this").click()
    picture(page, f"compare-details-{look}")
    check_axe(page)


def test_compare_in_a_narrow_window(open_page, viewers, picture):
    page = opened(open_page, viewers, "?metric=op.time&width=either", width=360, height=1400)
    picture(page, "compare-narrow")
    check_narrow(page)
    assert page.locator("canvas").bounding_box()["height"] >= 140
