# SPDX-License-Identifier: Apache-2.0
"""The page Ranks in a browser, on a recorded run on two GPUs in which rank 1 is late."""
import subprocess

import pytest

from web.browser import PLUMB, check_axe, check_narrow, recorded
from web.test_flame import values_of
from web.test_pages import TRAIN, loaded, until

DDP = "programs/ddp"


def rows_of(page, url):
    table = page.request.get(f"{url}api/1/ranks").json()["ranks"]
    names = [column["name"] for column in table["columns"]]
    return [dict(zip(names, row)) for row in table["rows"]]


def widths(page, row):
    return [float(style.split("width:")[1].split("%")[0]) for style in page.locator(".lanes-of-ranks .rows li").nth(row).locator(".stack span").evaluate_all(
        "(parts) => parts.map((part) => 'width:' + part.style.width)")]


@pytest.mark.parametrize("look", ["light", "dark"])
def test_ranks_are_accessible(open_page, viewers, picture, look):
    page = open_page(f"{viewers(DDP)}#1/ranks", look, bypass_csp=True)
    loaded(page)
    picture(page, f"ranks-{look}")
    check_axe(page)


def test_ranks_in_a_narrow_window(open_page, viewers, picture):
    page = open_page(f"{viewers(DDP)}#1/ranks", width=360, height=640)
    loaded(page)
    picture(page, "ranks-narrow")
    check_narrow(page)


def test_bars_have_one_scale_and_say_who_is_late(open_page, viewers):
    url = viewers(DDP)
    page = open_page(f"{url}#1/ranks")
    loaded(page)
    rows = rows_of(page, url)
    for index, row in enumerate(rows):
        parts = [row[name] / row["whole"] * 100 for name in ("computing", "hidden", "exposed", "waiting", "copies", "idle") if row[name]]
        assert widths(page, index) == pytest.approx(parts, abs=0.01)
    first, second = page.locator(".lanes-of-ranks .rows li").all()
    assert "late" not in first.locator(".who").inner_text() and "late 100 times" in second.inner_text()
    assert "waiting for other ranks 19.4 ms (7.2 %)" in first.locator(".unseen").text_content()
    assert "rank 0 waits 19.4 ms of each 270 ms step for rank 1" in page.inner_text("main")
    page.get_by_role("button", name="Of all steps").click()
    assert values_of(page)["per"] == "run"
    assert "waiting for other ranks 1.94 s (7.2 %)" in first.locator(".unseen").text_content()


def test_ranks_are_sorted_filtered_and_linked(open_page, viewers):
    page = open_page(f"{viewers(DDP)}#1/ranks")
    loaded(page)
    table = page.get_by_role("region", name="Ranks", exact=True)
    table.get_by_role("button", name="idle").click()
    assert table.locator("tbody th").all_inner_texts() == ["rank 1", "rank 0"]
    assert page.locator(".lanes-of-ranks .who strong").all_inner_texts() == ["rank 1", "rank 0"]
    page.keyboard.press("/")
    page.keyboard.type("rank 0")
    until(page, "document.querySelectorAll('.lanes-of-ranks .rows li').length === 1")
    page.reload()
    loaded(page)
    assert page.locator(".lanes-of-ranks .who strong").all_inner_texts() == ["rank 0"]
    page.get_by_role("link", name="rank 0 on the timeline").click()
    until(page, "document.querySelector('.lanes')?.dataset.spans > 0")
    assert values_of(page)["filter"] == "rank:0"
    assert set(page.locator(".pins li").all_inner_texts()) > {text for text in page.locator(".pins li").all_inner_texts() if "rank 0" in text}
    assert 0 < int(page.evaluate("document.querySelector('.lanes').dataset.tracks")) < page.locator(".pins li").count()
    page.go_back()
    loaded(page)
    page.get_by_role("link", name="Flame graph of rank 0").click()
    loaded(page)
    page.get_by_role("button", name="Only rank 0: show all").click()
    until(page, "!location.hash.includes('rank=')")


def test_waits_are_listed(open_page, viewers):
    page = open_page(f"{viewers(DDP)}#1/ranks")
    loaded(page)
    waits = page.get_by_role("region", name="Who waits for whom")
    assert waits.locator("tbody tr").first.inner_text().split() == ["rank", "0", "rank", "1", "AllReduce", "19.4", "ms", "99", "times", "22.8", "ms"]


def test_one_rank_says_what_brings_the_page(open_page, viewers):
    page = open_page(f"{viewers(TRAIN)}#1/ranks")
    assert page.inner_text("main .command code") == "plumb run -- torchrun --nproc-per-node 2 PROGRAM"


def test_ranks_in_one_file(open_page, folder, tmp_path):
    subprocess.run([PLUMB, "view", recorded(DDP, folder), "--html", tmp_path / "page.html"], check=True, capture_output=True, timeout=60)
    page = open_page(f"file://{tmp_path / 'page.html'}#1/ranks")
    loaded(page)
    assert page.locator(".lanes-of-ranks .rows li").count() == 2 and page.get_by_role("alert").count() == 0
    assert page.get_by_role("link", name="Flame graph of rank 0").count() == 0  # the page does not hold it
