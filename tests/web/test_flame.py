# SPDX-License-Identifier: Apache-2.0
"""The flame graph in a browser: pointer, keys, search, links, hostile names."""
import json
import re
import subprocess
import urllib.parse
import urllib.request

import pytest

from web.browser import PLUMB, recorded
from web.calm import calm
from web.test_pages import TRAIN, loaded, until


def opened(open_page, viewers, values="", **options):
    page = open_page(f"{viewers(TRAIN)}#1/flame{values}", **options)
    loaded(page)
    return page


def values_of(page):
    """Of the address, once it has those of all actions before."""
    calm(page)
    return dict(urllib.parse.parse_qsl(page.evaluate("location.hash").partition("?")[2]))


def click_row(page, row, part, **options):
    box = page.locator("canvas").bounding_box()
    page.mouse.click(box["x"] + box["width"] * part, box["y"] + row * 20 + 10, **options)


def said(page):
    return page.get_by_role("status").inner_text()


def test_click_zooms_and_the_way_back(open_page, viewers, picture):
    page = opened(open_page, viewers)
    click_row(page, 16, 0.1)
    until(page, "location.hash.includes('x1=')")
    assert "bert.encoder.layer.0" in said(page)
    picture(page, "flame-zoomed")
    first = values_of(page)
    assert float(first["x1"]) - float(first["x0"]) < 0.3
    page.reload()  # the link opens the same part, with the same box
    loaded(page)
    assert values_of(page) == first
    assert "bert.encoder.layer.0" in page.locator("aside .name").inner_text()
    page.locator("canvas").focus()
    page.keyboard.press("f")
    until(page, "!location.hash.includes('x1=')")
    page.go_back()
    until(page, "location.hash.includes('x1=')")
    assert values_of(page)["x0"] == first["x0"]
    box = page.locator("canvas").bounding_box()
    page.mouse.dblclick(box["x"] + box["width"] / 2, box["y"] + box["height"] - 4)
    until(page, "!location.hash.includes('x1=')")


def test_keys_go_from_box_to_box(open_page, viewers):
    page = opened(open_page, viewers)
    page.locator("canvas").focus()
    page.keyboard.press("ArrowDown")
    assert said(page).startswith("<module> (hf_train.py:36); Python; ")
    page.keyboard.press("ArrowDown")
    assert said(page).startswith("Trainer.train (trainer.py:1520); Python; ")
    page.keyboard.press("ArrowUp")
    assert said(page).startswith("<module>")
    for _ in range(16):
        page.keyboard.press("ArrowDown")
    deep = said(page)
    assert re.match(r"bert\.encoder\.layer\.\d; module; ", deep)
    page.keyboard.press("ArrowRight")
    assert said(page) != deep
    page.keyboard.press("Enter")
    until(page, "location.hash.includes('x0=')")
    zoomed = values_of(page)
    page.keyboard.press("Escape")
    until(page, f"!location.hash.includes('x0={zoomed['x0']}&x1={zoomed['x1']}')")
    page.keyboard.press("2")
    until(page, "location.hash.includes('view=heavy')")


def test_wheel_and_drag(open_page, viewers):
    page = opened(open_page, viewers)
    box = page.locator("canvas").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 100)
    page.mouse.wheel(0, -600)
    until(page, "location.hash.includes('x1=')")
    first = values_of(page)
    x0, x1 = float(first["x0"]), float(first["x1"])
    assert x1 - x0 < 0.5 and abs(x0 + (x1 - x0) * 0.25 - 0.25) < 0.01  # what is at the pointer stays there
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.15, box["y"] + 100, steps=4)
    page.mouse.up()
    until(page, f"!location.hash.includes('x0={first['x0']}')")
    assert float(values_of(page)["x0"]) > x0


def test_search_says_the_matched_share(open_page, viewers, folder, picture):
    page = opened(open_page, viewers, "?window=loop")
    page.keyboard.press("/")
    page.keyboard.type("aten::addmm")
    page.wait_for_selector("text=match (")
    picture(page, "flame-search")
    matched = re.compile(r"([\d.]+) % match")
    shown = float(matched.search(page.get_by_text(matched).first.inner_text()).group(1))
    report = json.loads(subprocess.run([PLUMB, "report", "--json", "--by", "operator", "--top", "0", "--window", "loop", recorded(TRAIN, folder)], capture_output=True, check=True).stdout)
    addmm = next(row for row in report["rows"] if row["name"] == "aten::addmm")["inclusive"]["gpu.time"]["sum"]
    assert shown == pytest.approx(100 * addmm / report["total"]["sum"], abs=0.1)
    page.get_by_role("searchbox").fill("(")
    assert page.get_by_role("alert").inner_text()
    page.get_by_role("searchbox").fill("")
    page.get_by_role("alert").wait_for(state="detached")
    loaded(page)
    assert page.complaints and all("400" in complaint for complaint in page.complaints)
    page.complaints.clear()


def test_layers_views_and_recursion_are_chosen(open_page, viewers):
    page = opened(open_page, viewers)
    page.get_by_role("button", name="Python").click()
    page.get_by_role("button", name="module", exact=True).click()
    until(page, "location.hash.includes('layers=operator')")
    loaded(page)
    page.get_by_role("button", name="Table").click()
    page.wait_for_selector("tbody th")
    layers = set(page.locator("tbody td:nth-child(2)").all_inner_texts())
    assert layers and not layers & {"Python", "module"}
    page.get_by_role("button", name="Graph").click()
    for name, view in (("Left-heavy", "heavy"), ("Bottom-up", "up")):
        page.get_by_role("button", name=name).click()
        until(page, f"location.hash.includes('view={view}')")
        loaded(page)
    page.get_by_role("button", name="Collapse recursion").click()
    until(page, "location.hash.includes('recursion=collapse')")
    loaded(page)
    assert page.get_by_role("alert").count() == 0


def test_menu_focus_and_sandwich(open_page, viewers, picture):
    page = opened(open_page, viewers)
    click_row(page, 16, 0.1, button="right")
    picture(page, "flame-menu")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    until(page, "location.hash.includes('root=')")
    loaded(page)
    page.get_by_role("button", name="End the focus").click()
    until(page, "!location.hash.includes('root=')")
    loaded(page)
    click_row(page, 16, 0.1, button="right")
    page.get_by_role("menuitem", name="Callers and callees (sandwich)").click()
    page.wait_for_selector("text=Callees")
    loaded(page)
    picture(page, "flame-sandwich")
    assert page.locator("canvas").count() == 2 and page.get_by_role("alert").count() == 0


def test_forward_and_backward_apart(open_page, viewers):
    page = opened(open_page, viewers)
    page.get_by_role("button", name="Backward apart").click()
    until(page, "location.hash.includes('phase=apart')")
    loaded(page)
    page.locator("canvas").focus()
    page.keyboard.press("ArrowDown")
    first = said(page).partition(";")[0]
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowRight" if first == "forward" else "ArrowLeft")
    assert {first, said(page).partition(";")[0]} == {"forward", "backward"}


def test_a_fused_kernel_shows_its_stacks(open_page, viewers, picture):
    """Each operator that it was made from, with the frames around it."""
    url = viewers("programs/compiled-healthy")
    ask = lambda question: json.load(urllib.request.urlopen(f"{url}api/1/{question}", timeout=20))
    boxes, _ = ask("flame?window=all&format=json")["tables"]
    names = [column["name"] for column in boxes["columns"]]
    fused = [row[names.index("node")] for row in boxes["rows"] if row[names.index("flags")] & 4]
    frame = max((ask(f"frame?window=all&node={node}") for node in fused), key=lambda frame: len(frame["from"]))
    page = open_page(f"{url}#1/flame?window=all&node={frame['node']}&x0={frame['x0']:.9f}&x1={frame['x1']:.9f}")
    page.wait_for_selector("aside h2:has-text('Made from')")
    count = len(frame["from"])
    assert count > 3 and page.locator("aside h2", has_text="Made from").inner_text() == f"Made from {count} operators"
    assert page.locator("aside details summary").all_inner_texts() == [part["operator"] or part["stack"][-1]["name"] for part in frame["from"]]
    page.locator("aside details summary").first.click()
    picture(page, "flame-fused")
    steps = page.locator("aside details").first.locator("li").all_inner_texts()
    assert len(steps) == len(frame["from"][0]["stack"]) and "compiled.py:" in " ".join(steps)


def test_table_begins_with_the_first_box(open_page, viewers):
    page = opened(open_page, viewers, "?as=table")
    names = page.locator("tbody th").all_inner_texts()
    assert names[:3] == ["<module> (hf_train.py:36)", "Trainer.train (trainer.py:1520)", "Trainer._inner_training_loop (trainer.py:1602)"]


HOSTILE = ["<img src=x onerror=document.title='broken'>", "</script><script>document.title='broken'</script>", "a\u202eb", "=1+1", "x" * 5000, "\u0000\u0007", "漢字 🎉"]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A profile with such names, by way of a trace."""
    folder = tmp_path_factory.mktemp("hostile")
    events = [{"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 100 * at, "dur": 90} for at, name in enumerate(HOSTILE)]
    (folder / "trace.json").write_text(json.dumps({"traceEvents": events}))
    subprocess.run([PLUMB, "import", folder / "trace.json", "-o", folder / "hostile.plumb"], check=True, capture_output=True)
    return folder / "hostile.plumb"


@pytest.mark.parametrize("name", ["overview", "flame?as=table", "flame", "kernels?by=operator", "layers"])
def test_hostile_names_are_text(open_page, viewers, hostile, picture, name):
    page = open_page(f"{viewers(hostile)}#1/{name}")
    loaded(page)
    picture(page, f"hostile-{name.partition('?')[0]}")
    assert "broken" not in page.title()
    assert page.locator("main img, main script").count() == 0
    if "?" in name:
        text = page.inner_text("main")
        assert "<img src=x" in text and "a\\u{202e}b" in text
