# SPDX-License-Identifier: Apache-2.0
"""Each page of plumb view in a browser: complete, readable, reached by link and by keys."""
import csv
import io
import json
import subprocess
import time

import pytest

from web.browser import PLUMB, ROOT, WEB, check_axe, check_narrow, recorded
from web.calm import calm

TRAIN = "programs/hf-train-fault"
PAGES = {"overview": "Overview", "flame": "Flame", "timeline": "Timeline", "iterations": "Iterations", "kernels": "Kernels", "layers": "Layers"}


def until(page, condition):
    """Once the condition holds and the page is calm. Playwright's own wait_for_function evaluates text in the page, which the page's
    policy forbids."""
    end = time.monotonic() + 30
    while not page.evaluate(condition):
        assert time.monotonic() < end, condition
        page.wait_for_timeout(20)
    calm(page)


def loaded(page):
    """Once the page shows the answers that belong to its address."""
    page.wait_for_selector("main :is(canvas, table, section)")
    until(page, "!document.querySelector('[aria-busy=true]')")


def test_units(packages, tmp_path):
    """What needs no browser, by node."""
    subprocess.run(["node", "build.mjs", "--units", tmp_path], cwd=WEB, check=True, timeout=60)
    done = subprocess.run(["node", "--test", *tmp_path.glob("*.mjs")], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout


def test_types(packages):
    done = subprocess.run(["npx", "--no-install", "tsc", "--noEmit"], cwd=WEB, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout


def test_bundle_is_small(packages, tmp_path):
    subprocess.run(["node", "build.mjs", tmp_path], cwd=WEB, check=True, timeout=60)
    packed = subprocess.run(["gzip", "-9c", tmp_path / "app.js", tmp_path / "app.css"], capture_output=True, check=True).stdout
    assert len(packed) <= 120 << 10
    code = (tmp_path / "app.js").read_text()
    assert "eval(" not in code and "new Function" not in code and "https://" not in code


@pytest.mark.parametrize("look", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_page_is_accessible(open_page, viewers, picture, name, look):
    """axe finds nothing, in both looks."""
    page = open_page(f"{viewers(TRAIN)}#1/{name}", look, bypass_csp=True)
    loaded(page)
    picture(page, f"{name}-{look}")
    check_axe(page)
    assert page.get_by_role("link", name=PAGES[name], exact=True).get_attribute("aria-current") == "page"


@pytest.mark.parametrize("name", PAGES)
def test_narrow_window(open_page, viewers, picture, name):
    """At 360 pixels nothing has to be scrolled to the side but tables."""
    page = open_page(f"{viewers(TRAIN)}#1/{name}", width=360, height=640)
    loaded(page)
    picture(page, f"{name}-narrow")
    check_narrow(page)


def test_pages_by_keys_and_back(open_page, viewers):
    page = open_page(viewers(TRAIN))
    loaded(page)
    page.keyboard.press("g")
    page.keyboard.press("k")
    page.wait_for_selector("text=line of your code")
    assert page.evaluate("location.hash") == "#1/kernels"
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Help").get_by_role("button", name="Close").click()
    page.keyboard.press("Control+Shift+P")
    page.keyboard.type("open layers")
    page.keyboard.press("Enter")
    until(page, "location.hash === '#1/layers'")
    page.go_back()
    until(page, "location.hash === '#1/kernels'")
    page.wait_for_selector("text=line of your code")


def test_look_is_switched(open_page, viewers):
    page = open_page(viewers(TRAIN), "dark")
    colour = "getComputedStyle(document.body).backgroundColor"
    page.wait_for_selector("header")
    dark = page.evaluate(colour)
    page.get_by_role("button", name="Switch to the light look").click()
    assert page.evaluate(colour) != dark
    page.reload()
    page.wait_for_selector("header")
    assert page.evaluate(colour) != dark


def test_overview_has_what_the_report_has(open_page, viewers, folder):
    page = open_page(f"{viewers(TRAIN)}#1/overview")
    loaded(page)
    said = json.loads(subprocess.run([PLUMB, "report", "--json", recorded(TRAIN, folder)], capture_output=True, check=True).stdout)
    text = page.inner_text("main")
    assert said["findings"]
    for finding in said["findings"]:
        assert finding["title"] in text
    assert "Start-up is 57.9 % of it, most of it: imports (8.42 s). The main loop is 36.8 % of it." in text and "NVIDIA H200" in text
    page.get_by_role("link", name="Show it in the flame graph").first.click()
    first = next(finding for finding in said["findings"] if finding["context"])
    page.wait_for_selector(f"aside .findings :text-is({json.dumps(first['title'], ensure_ascii=False)})")
    assert page.evaluate("location.hash").startswith("#1/flame?") and "finding=" not in page.evaluate("location.hash")


def test_every_finding_leads_to_its_box(open_page, viewers, folder):
    """By the link of the Overview: the box is visible and selected, its details have the finding."""
    said = json.loads(subprocess.run([PLUMB, "report", "--json", recorded(TRAIN, folder)], capture_output=True, check=True).stdout)
    page = open_page(viewers(TRAIN))
    for finding in said["findings"]:
        page.goto(f"{viewers(TRAIN)}#1/overview")
        loaded(page)
        item = page.locator("ol.findings > li", has=page.get_by_text(finding["title"], exact=True))
        item.get_by_role("link", name="Show it in the flame graph").click()
        page.wait_for_selector(f"aside .findings :text-is({json.dumps(finding['title'], ensure_ascii=False)})")
        assert finding["context"][-1] in page.locator("aside .path li").last.inner_text()
        assert page.get_by_role("alert").count() == 0


def test_kernels_are_sorted_filtered_and_saved(open_page, viewers, folder):
    page = open_page(f"{viewers(TRAIN)}#1/kernels?window=loop")
    loaded(page)
    names = lambda: page.locator("tbody th").all_inner_texts()
    first = names()
    page.get_by_role("button", name="kernel", exact=True).click()
    page.wait_for_selector("th[aria-sort=ascending]")
    assert names() == sorted(names(), key=str.lower) or names() != first
    page.keyboard.press("/")
    page.keyboard.type("reduce_kernel")
    until(page, "location.hash.includes('filter=reduce_kernel')")
    assert names() and all("reduce" in name.lower() for name in page.locator("tbody th").evaluate_all("all => all.map(one => one.title)"))
    with page.expect_download() as saved:
        page.get_by_role("button", name="CSV").click()
    rows = list(csv.DictReader(io.StringIO(open(saved.value.path(), encoding="utf-8").read())))
    verb = subprocess.run([PLUMB, "report", "--csv", "--by", "kernel", "--top", "0", "--window", "loop", recorded(TRAIN, folder)], capture_output=True, check=True, text=True).stdout
    assert rows == list(csv.DictReader(io.StringIO(verb)))


def test_each_table_is_shown(open_page, viewers, folder):
    page = open_page(f"{viewers(TRAIN)}#1/layers")
    loaded(page)
    said = json.loads(subprocess.run([PLUMB, "tables", "--json", recorded(TRAIN, folder)], capture_output=True, check=True).stdout)
    for table in said["tables"]:
        page.get_by_role("combobox", name="Table").select_option(table["id"])
        page.wait_for_selector(f".summary:has-text(\"{table['id']} {table['title']}\")" if table["rows"] else ".notice")
        if table["rows"]:
            assert int(page.locator("table").get_attribute("aria-rowcount")) == len(table["rows"]) + 1


def test_page_says_what_the_profile_lacks(open_page, viewers):
    page = open_page(None)
    page.route("**/api/1/about", lambda route: answer_without_layers(route))
    page.goto(f"{viewers(TRAIN)}#1/layers")
    page.wait_for_selector("text=This profile has no data for this page")
    assert page.locator(".command code").inner_text() == "plumb run -- PROGRAM"


def answer_without_layers(route):
    about = route.fetch().json()
    about["has"]["layers"] = False
    route.fulfill(json=about)


def test_a_page_of_its_own(open_page, viewers, packages, tmp_path):
    """Another page registers itself, and no file of the others changes."""
    (tmp_path / "mine.tsx").write_text("""
import { register } from "SHELL/registry";
register({ id: "mine", title: "Mine", key: "z", needs: {}, follows: [], make: () => <h1>My page</h1> });
register({ id: "lacking", title: "Lacking", key: "y", needs: { nothing: "plumb run --nothing -- PROGRAM" }, follows: [], make: () => null });
""".replace("SHELL", str(WEB / "src/shell")))
    subprocess.run(["node", "build.mjs", tmp_path, f"--with={tmp_path / 'mine.tsx'}"], cwd=WEB, check=True, timeout=60)
    page = open_page(None, bypass_csp=True)
    url = viewers(TRAIN)
    page.route(url, lambda route: route.fulfill(content_type="text/html", body=f"<!doctype html><html lang=en><title>t</title><body><script>{(tmp_path / 'app.js').read_text()}</script>"))
    page.goto(url)
    page.get_by_role("link", name="Mine").click()
    page.wait_for_selector("text=My page")
    page.get_by_role("link", name="Lacking").click()
    page.wait_for_selector("text=plumb run --nothing -- PROGRAM")
    page.get_by_role("link", name="Kernels").click()
    page.wait_for_selector("text=line of your code")


def test_plumb_has_ended(open_page, folder):
    from web.browser import Viewer
    viewer = Viewer(recorded(TRAIN, folder))
    page = open_page(viewer.url)
    loaded(page)
    viewer.close()
    page.get_by_role("link", name="Kernels").click()
    assert "Start plumb view again" in page.get_by_role("alert").inner_text()
    assert all("ERR_CONNECTION_REFUSED" in one for one in page.complaints)
    page.complaints.clear()


def test_one_file(open_page, folder, tmp_path, picture):
    """The page in one file needs no server."""
    subprocess.run([PLUMB, "view", recorded(TRAIN, folder), "--html", tmp_path / "page.html"], check=True, capture_output=True, timeout=60)
    page = open_page(f"file://{tmp_path / 'page.html'}")
    for name in PAGES:
        page.goto(f"file://{tmp_path / 'page.html'}#1/{name}")
        loaded(page)
        assert page.get_by_role("alert").count() == 0
    page.goto(f"file://{tmp_path / 'page.html'}#1/flame?view=heavy&search=aten::mm")
    page.wait_for_selector("text=match (")
    picture(page, "one-file")
    assert "are merged" in page.inner_text(".summary")


@pytest.fixture(scope="module")
def one_file(folder):
    """Two profiles in one page."""
    path = folder / "pair.html"
    subprocess.run([PLUMB, "view", recorded(TRAIN, folder), recorded("programs/hf-train-healthy", folder), "--html", path, "--force"],
                   check=True, capture_output=True, timeout=60)
    return f"file://{path}"


def saved_rows(page):
    with page.expect_download() as saved:
        page.get_by_role("button", name="CSV").click()
    return list(csv.reader(io.StringIO(open(saved.value.path(), encoding="utf-8", newline="").read())))


def test_one_file_opens_details(open_page, one_file, folder):
    """Of wide boxes and of findings; of other boxes it says so, and shows what it has."""
    page = open_page(f"{one_file}#1/flame")
    loaded(page)
    page.locator("canvas").focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_selector("aside [aria-label='Values of the box']")
    assert "hf_train.py:36" in page.inner_text("aside") and page.locator("aside .path li").count() == 1
    said = json.loads(subprocess.run([PLUMB, "report", "--json", recorded(TRAIN, folder)], capture_output=True, check=True).stdout)
    for finding in said["findings"]:
        page.goto(f"{one_file}#1/overview")
        loaded(page)
        page.locator("ol.findings > li", has=page.get_by_text(finding["title"], exact=True)).get_by_role("link", name="Show it in the flame graph").click()
        page.wait_for_selector(f"aside .findings :text-is({json.dumps(finding['title'], ensure_ascii=False)})")
    page.goto(f"{one_file}#1/flame?search=aten::native_dropout_backward")
    page.wait_for_selector("text=match (")
    loaded(page)
    page.locator("canvas").focus()
    page.keyboard.press("n")
    page.wait_for_selector("text=This page holds the details of the widest boxes")
    assert page.locator("aside .path li").last.inner_text() == "aten::native_dropout_backward" and page.locator("aside .path li").count() > 5


def test_one_file_explains_outliers(open_page, one_file):
    page = open_page(f"{one_file}#1/iterations")
    loaded(page)
    page.locator("tr", has_text="outlier").locator("tbody button, th button").last.click()
    page.wait_for_selector("aside ol li")
    page.goto(f"{one_file}#1/iterations?iteration=50")
    page.wait_for_selector("text=This page explains the outliers of the outermost loop only")


def test_one_file_compares(open_page, one_file, picture):
    page = open_page(f"{one_file}#1/compare?width=either")
    loaded(page)
    page.wait_for_selector(".summary:has-text('of an iteration (of 100 before, 100 after)')")
    assert "are merged" in page.inner_text(".summary >> nth=0")
    picture(page, "compare-one-file")
    page.get_by_role("button", name="Kernels", exact=True).click()
    page.wait_for_selector("[aria-label='What changed'] thead :text-is('kernel')")
    rows = saved_rows(page)
    assert rows[0][:3] == ["kernel", "before (ns)", "after (ns)"] and len(rows) > 20
    page.locator("[aria-label='What changed'] tbody button").first.click()
    page.wait_for_selector(".summary strong")


@pytest.mark.parametrize("name, head", [("kernels?by=kernel", ["kernel", "share", "self (ns)"]), ("layers", None), ("iterations", ["iteration", "start_ns"]),
                                        ("flame", ["view", "depth", "name"]), ("overview", ["severity", "title"])])
def test_one_file_saves_what_it_shows(open_page, one_file, name, head):
    """With one header, all rows, names in full."""
    page = open_page(f"{one_file}#1/{name}")
    loaded(page)
    rows = saved_rows(page)
    assert head is None or rows[0][:len(head)] == head
    assert len(rows) > 2 and len({len(row) for row in rows}) == 1
    if name.startswith("kernels"):
        assert len(rows) == int(page.locator("table").get_attribute("aria-rowcount"))
        assert any(row[0].startswith("void at::native::") and row[0].endswith(")") for row in rows)


def test_saved_boxes_are_those_that_are_visible(open_page, viewers):
    page = open_page(f"{viewers(TRAIN)}#1/flame?x0=0.1&x1=0.2")
    loaded(page)
    rows = saved_rows(page)
    assert rows[0][:6] == ["view", "depth", "name", "layer", "self (ns)", "total (ns)"] and rows[1][2] == "<module> (hf_train.py:36)"
    whole = open_page(f"{viewers(TRAIN)}#1/flame")
    loaded(whole)
    assert 10 < len(rows) < len(saved_rows(whole))
    deepest = max(rows[1:], key=lambda row: int(row[1]))
    assert deepest[-1].endswith(deepest[2]) and deepest[-1].startswith("<module> (hf_train.py:36);Trainer.train (trainer.py:1520);")


@pytest.mark.parametrize("look", ["light", "dark"])
def test_two_profiles_are_compared(open_page, viewers, folder, picture, look):
    page = open_page(f"{viewers(TRAIN, 'programs/hf-train-healthy')}#1/compare", look, bypass_csp=True)
    loaded(page)
    picture(page, f"compare-{look}")
    said = json.loads(subprocess.run([PLUMB, "diff", "--json", "--top", "0", recorded(TRAIN, folder), recorded("programs/hf-train-healthy", folder)], capture_output=True).stdout)
    assert int(page.locator("table").get_attribute("aria-rowcount")) == len(said["rows"]) + 1
    greatest = max(said["rows"], key=lambda row: abs(row["change"] or 0))
    assert page.locator("tbody th .plain, tbody th span").first.inner_text() == greatest["name"]
    assert said["host"]["rows"][0]["name"] in page.inner_text("main")
    assert "iteration.time 58.5 ms → 29.1 ms: −29.3 ms, −50.2 % (−52.3 to −47.9)" in page.inner_text("main")
    check_axe(page)


def test_one_profile_cannot_be_compared(open_page, viewers):
    page = open_page(f"{viewers(TRAIN)}#1/compare")
    page.wait_for_selector("text=plumb view BEFORE.plumb AFTER.plumb")
