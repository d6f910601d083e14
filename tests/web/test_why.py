# SPDX-License-Identifier: Apache-2.0
"""The page Why in a browser, on samples that are planted at instructions of a real cubin (tests/e2e/whytest.py)."""
import csv
import io
import json
import pathlib
import subprocess

import pytest

from web.browser import PLUMB, Viewer, check_axe, check_narrow
from web.calm import calm
from web.planted import SCRIPT, planted
from web.test_flame import values_of
from web.test_pages import TRAIN, loaded, until

LOAD, USE = "0x110", "0x160"  # of row_sums: the load at rows.h:8, and the FFMA at stalls.cu:13 that needs it
CHASE = "_Z5chaseIjEvPKT_PS0_i"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("why"))


@pytest.fixture(scope="module")
def view(made):
    opened = {}

    def one(name):
        if name not in opened:
            opened[name] = Viewer(made / f"{name}.plumb")
        return opened[name].url

    yield one
    for viewer in opened.values():
        viewer.close()


def said(*words):
    return json.loads(subprocess.run([PLUMB, "why", *words, "--json"], capture_output=True, check=True, timeout=60).stdout)["kernels"]


def instruction(page):
    return page.locator(".rows.code tr.picked th").inner_text()


def opened(page):
    loaded(page)
    page.wait_for_selector(".rows.code tr.picked code, .rows.code tr.picked .words:not(:empty)")


@pytest.mark.parametrize("look", ["light", "dark"])
def test_why_is_accessible(open_page, view, picture, look):
    page = open_page(f"{view('run')}#1/why", look, bypass_csp=True)
    opened(page)
    picture(page, f"why-{look}")
    check_axe(page)
    assert page.get_by_role("link", name="Why", exact=True).get_attribute("aria-current") == "page"


def test_why_in_a_narrow_window(open_page, view, picture):
    page = open_page(f"{view('run')}#1/why", width=360, height=640)
    opened(page)
    picture(page, "why-narrow")
    check_narrow(page)


def test_the_greatest_stall_is_shown_first(open_page, view, made):
    page = open_page(f"{view('run')}#1/why")
    opened(page)
    kernel = said(made / "run.plumb")[0]
    stall, text = kernel["stalls"][0], page.inner_text("main")
    assert kernel["summary"] in text and instruction(page) == "0x0160"
    details = page.get_by_role("complementary", name="Selected instruction").inner_text()
    cause = stall["causes"][0]
    for part in ("long_scoreboard", "900 samples waiting", "100 hidden", "rows.h:8", cause["evidence"], cause["advice"], "inlined at stalls.cu:13",
                 f"confidence {cause['confidence'] * 100:.1f} %", "proved" if cause["proved"] else "possible"):
        assert part in details, part
    # The chain is that of the verb, step by step.
    steps = page.locator(".chain > li").all_inner_texts()
    assert len(steps) == len(cause["chain"]) and all(f"+0x{hop['offset']:04x}" in step for hop, step in zip(cause["chain"], steps))


def test_heat_by_instruction_and_line(open_page, view):
    page = open_page(f"{view('run')}#1/why")
    opened(page)
    row = page.locator(".rows.code tr.picked")
    assert row.locator(".many").inner_text() == "910"
    assert row.locator(".heat").get_attribute("title") == "1,010 samples: waiting 910 (memory 900, execution 10), hidden 100 (memory 100)"
    widths = row.locator(".heat-bar span").evaluate_all("(parts) => parts.map((part) => [part.className, parseFloat(part.style.width)])")
    assert [kind for kind, _ in widths] == ["exposed", "exposed", "covered"]
    assert [width for _, width in widths] == pytest.approx([900 / 10.1, 10 / 10.1, 100 / 10.1], abs=0.01)
    line = page.locator(".rows.source tr.picked")
    assert line.locator("th").inner_text() == "13" and "sum += element(in, row, c);" in line.inner_text()
    assert line.locator(".many").inner_text() == "910"


def test_arrows_lead_to_the_causes(open_page, view, made):
    page = open_page(f"{view('run')}#1/why")
    opened(page)
    stall = said(made / "run.plumb")[0]["stalls"][0]
    causes = [cause for cause in stall["causes"] if cause["number"] is not None]
    arrows = page.locator(".arrows :is(g, path.own)").count()
    assert arrows >= len(causes) > 0
    box = page.locator(".arrows g.picked .tip").bounding_box()
    cause = page.locator(".rows.code tr", has=page.get_by_role("button", name="0x0110", exact=True)).bounding_box()
    assert cause["y"] <= box["y"] + box["height"] / 2 <= cause["y"] + cause["height"]


def test_keys(open_page, view, made):
    page = open_page(f"{view('run')}#1/why")
    opened(page)
    kernel = said(made / "run.plumb")[0]
    order = list(dict.fromkeys(stall["offset"] for stall in kernel["stalls"] if stall["samples"]))
    assert len(order) > 1
    page.keyboard.press("Enter")
    until(page, f"location.hash.includes('at={LOAD}')")
    assert instruction(page) == "0x0110" and "What waits for it" in page.inner_text(".why-details")
    page.go_back()
    until(page, "!location.hash.includes('at=')")
    page.keyboard.press("j")
    until(page, f"location.hash.includes('at={hex(order[1])}')")
    page.keyboard.press("k")
    until(page, f"location.hash.includes('at={hex(order[0])}')")
    page.locator(".rows.code").focus()
    page.keyboard.press("ArrowDown")
    until(page, f"location.hash.includes('at={hex(order[1])}')")
    page.keyboard.press("n" if order[1] < order[0] else "N")
    until(page, f"location.hash.includes('at={hex(order[0])}')")
    page.keyboard.press("n")
    page.wait_for_selector(".spoken:text('There is no more')", state="attached")
    page.keyboard.press("?")
    assert "the next and the previous stall" in page.get_by_role("dialog", name="Help").inner_text()


def test_the_state_is_the_address(open_page, view):
    page = open_page(f"{view('run')}#1/why")
    opened(page)
    page.get_by_label("Kernel").select_option(label="chase<unsigned int> (16.7 %, 400 samples)")
    until(page, "location.hash.includes('kernel=_Z5chase')")
    opened(page)
    assert "pointer indirection" in page.inner_text(".why-details")
    page.locator(".rows.source").get_by_role("button", name="Line 26").click()
    until(page, "location.hash.includes('line=26')")
    values = values_of(page)
    assert values["kernel"] == CHASE and values["source"] == "0" and values["at"].startswith("0x")
    page.reload()
    opened(page)
    assert page.locator(".rows.source tr.picked th").inner_text() == "26"
    assert page.locator(".rows.code tr.akin, .rows.code tr.picked").count() > 0
    page = open_page(f"{view('run')}#1/why?kernel=no-such-kernel")
    page.wait_for_selector("text=No kernel with samples is named no-such-kernel")


def test_a_line_leads_to_its_instruction(open_page, view):
    page = open_page(f"{view('run')}#1/why?at={LOAD}")
    opened(page)
    page.get_by_role("combobox", name="Source").select_option(label="stalls.cu (915)")
    page.locator(".rows.source").get_by_role("button", name="Line 13", exact=True).click()
    until(page, f"location.hash.includes('at={USE}')")
    assert instruction(page) == "0x0160"


def test_the_table_of_causes(open_page, view, made):
    page = open_page(f"{view('run')}#1/why")
    opened(page)
    causes, table = said(made / "run.plumb")[0]["causes"], page.get_by_role("region", name="Causes", exact=True)
    assert table.locator("tbody tr").count() == len(causes)
    first = table.locator("tbody tr").first
    assert f"{causes[0]['share'] * 100:.1f} %" in first.inner_text() and "rows.h:8" in first.inner_text()
    first.get_by_role("button").click()
    until(page, f"location.hash.includes('at={USE}')")
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    rows = list(csv.DictReader(io.StringIO(pathlib.Path(download.value.path()).read_text())))
    theirs = subprocess.run([PLUMB, "why", made / "run.plumb", "row_sums", "--csv"], capture_output=True, text=True, check=True).stdout
    assert rows == list(csv.DictReader(io.StringIO(theirs)))


def test_other_pages_lead_to_it(open_page, view):
    page = open_page(f"{view('run')}#1/kernels")
    loaded(page)
    page.get_by_role("link", name="100.0 % waiting").click()
    until(page, f"location.hash === '#1/why?kernel={CHASE}'")
    opened(page)
    page.goto(f"{view('run')}#1/flame?search=row_sums")
    loaded(page)
    page.locator("main canvas").first.focus()
    page.keyboard.press("ArrowDown")
    link = page.get_by_role("link", name="Why it waits")
    for _ in range(4):
        calm(page)
        if link.count():
            break
        page.keyboard.press("ArrowDown")
    link.click()
    until(page, "location.hash.startsWith('#1/why?kernel=')")


def test_findings_lead_to_it(open_page, view, made):
    found = json.loads(subprocess.run([PLUMB, "report", "--json", made / "run.plumb"], capture_output=True, check=True).stdout)["findings"]
    stalls = [one for one in found if one["rule"] == "stalls"]
    assert stalls
    page = open_page(f"{view('run')}#1/overview")
    loaded(page)
    item = page.locator("ol.findings > li", has=page.get_by_text(stalls[0]["title"], exact=True))
    item.get_by_role("link", name="Show why it waits").click()
    until(page, f"location.hash === '#1/why?kernel={stalls[0]['evidence']['kernel']}'")
    opened(page)


def test_a_long_kernel_is_asked_for_in_parts(open_page, view):
    page = open_page(None)
    asked = []
    page.on("response", lambda response: asked.append((response.url, len(response.body()))) if "why/code" in response.url else None)
    page.goto(f"{view('long')}#1/why")
    opened(page)
    count = int(page.locator(".rows.code table").get_attribute("aria-rowcount"))
    assert count > 100_000 and page.locator(".rows.code tbody tr").count() < 100
    parts = [size for url, size in asked if "count=500" in url]
    assert parts and max(parts) < 200_000
    page.keyboard.press("n")
    at = int(values_of(page)["at"], 16) // 16
    assert at % 400 == 0 and instruction(page) == f"0x{at * 16:04x}"
    page.locator(".rows.code").evaluate("(box) => { box.scrollTop = box.scrollHeight; }")
    until(page, f"[...document.querySelectorAll('.rows.code tbody th')].some((one) => one.textContent === '0x{(count - 2) * 16:04x}')")


def test_hostile_profiles(open_page, view, picture):
    """Names with scripts, code that is missing, unknown or noise."""
    page = open_page(f"{view('hostile')}#1/why")
    loaded(page)
    assert "does not have its machine code" in page.inner_text("main")
    assert page.get_by_role("region", name="Causes").locator("tbody tr").count() == 3
    assert page.locator(".rows.code").count() == 0 and "cannot be read on this machine" in page.inner_text("main")
    assert page.locator(".rows.source tbody tr").count() > 0
    names = page.get_by_label("Kernel").locator("option").all_inner_texts()
    assert len(names) == 4 and any(SCRIPT[:20] in name for name in names) and any("\\u{202e}" in name for name in names)
    for index in range(4):
        page.get_by_label("Kernel").select_option(index=index)
        loaded(page)
        picture(page, f"why-hostile-{index}")
        assert page.locator("main img").count() == 0 and page.title().startswith("Why")
        for key in ("j", "Enter", "n", "N", "k"):
            page.keyboard.press(key)
    for state in ("at=0xffffffff", "at=9:0x10", "at=-1", "line=-5&source=77", "stall=99&cause=99", "kernel=3&at=0x0"):
        page.goto("about:blank")
        page.goto(f"{view('hostile')}#1/why?{state}")
        loaded(page)


def test_queries_that_are_wrong(open_page, view):
    page, url = open_page(view("run")), view("run")
    loaded(page)
    for query, says in (("why?kernel=99", "there is no kernel 99"), ("why/source?kernel=0&source=77", "no such source file"),
                        ("why/code?kernel=x", "takes an integer"), ("why/code?kernel=0&path=/etc/passwd", "path")):
        reply = page.request.get(f"{url}api/1/{query}")
        assert reply.status == 400 and says in reply.text() and len(reply.text().splitlines()) == 1


def test_without_samples(open_page, viewers):
    page = open_page(f"{viewers(TRAIN)}#1/why")
    assert page.inner_text("main .command code") == "plumb run --stalls -- PROGRAM"


def test_why_in_one_file(open_page, made, tmp_path):
    subprocess.run([PLUMB, "view", made / "run.plumb", "--html", tmp_path / "page.html"], check=True, capture_output=True, timeout=60)
    page = open_page(f"file://{tmp_path / 'page.html'}#1/why")
    opened(page)
    assert page.get_by_role("alert").count() == 0 and "sum += element(in, row, c);" in page.inner_text(".rows.source")
    page.keyboard.press("Enter")
    until(page, f"location.hash.includes('at={LOAD}')")
    assert instruction(page) == "0x0110"
    # Of source it holds what is near the code: the other kernels of the file are not there.
    assert "__launch_bounds__" not in page.content()


def test_one_file_says_what_it_leaves_out(open_page, made, tmp_path):
    subprocess.run([PLUMB, "view", made / "many.plumb", "--html", tmp_path / "page.html"], check=True, capture_output=True, timeout=60)
    page = open_page(f"file://{tmp_path / 'page.html'}#1/why")
    opened(page)
    assert "This page holds the causes of the 8 greatest kernels with samples, not of 4 others." in page.inner_text("main")
    page.get_by_label("Kernel").select_option(index=11)
    page.wait_for_selector("text=This page holds the greatest kernels with samples only.")
    subprocess.run([PLUMB, "view", made / "long.plumb", "--html", tmp_path / "long.html"], check=True, capture_output=True, timeout=60)
    page = open_page(f"file://{tmp_path / 'long.html'}#1/why")
    opened(page)
    assert "the page holds the 4000 instructions around the one with most waiting" in page.inner_text("main")
