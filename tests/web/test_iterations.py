# SPDX-License-Identifier: Apache-2.0
"""The page Iterations: loops, the graph of states and the critical path, by pointer, by keys, by link and for screen readers."""
import json
import subprocess

import pytest

from web.browser import PLUMB, ROOT, check_axe, check_narrow, recorded
from web.test_pages import loaded, until

TRAIN = "programs/hf-train-healthy"
TRACED = "resnet/b32"
PARTS = {"loops": TRAIN, "states": TRAIN, "path": TRACED, "": TRACED}


def said(words, folder, name):
    return json.loads(subprocess.run([PLUMB, *words, "--json", recorded(name, folder)], capture_output=True, check=True).stdout)


@pytest.mark.parametrize("look", ["light", "dark"])
@pytest.mark.parametrize("show", PARTS)
def test_accessible(open_page, viewers, picture, show, look):
    page = open_page(f"{viewers(PARTS[show])}#1/iterations?show={show}&state=4&iteration=3", look, bypass_csp=True)
    loaded(page)
    page.wait_for_selector("table")
    picture(page, f"iterations-{show or 'strip'}-{look}")
    check_axe(page)


@pytest.mark.parametrize("show", PARTS)
def test_narrow(open_page, viewers, picture, show):
    page = open_page(f"{viewers(PARTS[show])}#1/iterations?show={show}&state=4", width=360, height=640)
    loaded(page)
    picture(page, f"iterations-{show or 'strip'}-narrow")
    check_narrow(page)


def test_states_are_drawn_and_listed(open_page, viewers):
    """The picture and the table have the same states; keys follow the arrows; a click opens one, and the way back closes it."""
    page = open_page(f"{viewers(TRAIN)}#1/iterations?show=states")
    loaded(page)
    boxes = page.locator(".graph .state")
    count = boxes.count()
    assert count == int(page.get_by_role("region", name="States").locator("table").get_attribute("aria-rowcount")) - 1 == 20
    # The layers of the model: 6 visits an iteration, of which 5 lead to the next one.
    layer = page.get_by_role("button", name="6 times an iteration, 5.90 ms of it (22.2 %)")
    assert "10 kernels" in layer.get_attribute("aria-label")
    page.get_by_role("button", name="iteration begins", pressed=False).first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.state") == "3"
    page.keyboard.press("Enter")
    until(page, "location.hash.includes('state=3')")
    details = page.get_by_role("complementary", name="State 3")
    assert details.locator("ol li").count() == 10 and "5 times an iteration" in details.inner_text()
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.dataset.state") == "4"
    page.go_back()
    until(page, "!location.hash.includes('state=')")
    page.get_by_role("combobox", name="Kernels before").select_option("0")
    until(page, "location.hash.includes('history=0')")
    until(page, f"document.querySelectorAll('.graph .state').length > {count}")
    with page.expect_download() as saved:
        page.get_by_role("button", name="CSV").click()
    assert "states.transitions" in open(saved.value.path()).read()


def test_path_is_drawn_and_read(open_page, viewers, folder):
    """The rows are those of plumb iters; pointing at a segment says what it is; a bar opens the path of another iteration."""
    page = open_page(f"{viewers(TRACED)}#1/iterations?show=path")
    loaded(page)
    path = next(t for t in said(["iters"], folder, TRACED)["tracks"] if t["path"])["path"]
    assert f"Critical path of iteration {path['iteration']}, the median one" in page.inner_text("main")
    table = page.get_by_role("region", name="What is on the critical path")
    assert int(table.locator("table").get_attribute("aria-rowcount")) == len(path["top"]) + 1
    assert "layer3" in table.inner_text() and "586 µs" in table.inner_text()
    picture = page.get_by_role("application")
    box = picture.bounding_box()
    picture.hover(position={"x": box["width"] - 1.5, "y": box["height"] - 20})
    assert "kernel: " in page.locator("figcaption").last.inner_text()
    picture.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    caption = page.locator("figcaption").last.inner_text()
    assert "from " in caption and caption in page.get_by_role("status").inner_text()
    for _ in range(6):
        page.keyboard.press("+")
    bars = page.locator("figure.bars canvas").first
    bars.click(position={"x": 20, "y": 60})
    page.wait_for_selector("text=Critical path of iteration 0:")
    page.get_by_role("button", name="The median iteration").click()
    page.wait_for_selector("text=the median one")


def test_one_iteration_is_explained(open_page, viewers, folder):
    page = open_page(f"{viewers(TRACED)}#1/iterations")
    loaded(page)
    page.locator("figure.bars canvas").click(position={"x": 20, "y": 60})
    explained = said(["iters", "--explain", "0"], folder, TRACED)["explain"]
    page.wait_for_selector(".details li")
    text = page.locator(".details").inner_text()
    assert explained["rows"][0]["text"] in text
    page.get_by_role("link", name="Its critical path").click()
    page.wait_for_selector("text=Critical path of iteration 0:")


def test_hierarchy_of_loops(open_page, viewers, folder):
    name = "programs/decode-healthy"
    page = open_page(f"{viewers(name)}#1/iterations?show=loops")
    loaded(page)
    track = said(["iters"], folder, name)["tracks"][0]
    rows = page.get_by_role("region", name="Loops").locator("table")
    assert int(rows.get_attribute("aria-rowcount")) == 1 + len(track["outside"]) + sum(
        len(track["levels"]) if loop["main"] else len(loop["levels"]) for loop in track["loops"])
    other = next(loop for loop in track["loops"] if not loop["main"])
    page.get_by_role("button", name=f"loop {other['loop']}", exact=False).first.click()
    until(page, "location.hash.includes('loop=')")
    page.wait_for_selector(f"text={other['occurrences']:,} iterations of")


def test_steps_of_the_host(open_page, viewers, tmp_path):
    """A program without GPU work: its steps as bars and as states, and no critical path."""
    events, at = [], 1000.0
    for _ in range(40):
        for name, us in ("aten::load", 30), ("aten::mm", 50), ("aten::sum", 20):
            events.append({"ph": "X", "name": name, "cat": "cpu_op", "pid": 1, "tid": 1, "ts": at, "dur": us})
            at += us + 2
        at += 40
    (tmp_path / "host.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    page = open_page(f"{viewers(tmp_path / 'host.json')}#1/iterations?show=path")
    page.wait_for_selector("text=40 iterations on the host")
    assert page.get_by_role("button", name="Critical path").count() == 0
    assert int(page.locator("table").get_attribute("aria-rowcount")) == 41
    page.get_by_role("button", name="States").click()
    page.wait_for_selector(".graph .state")
    assert page.locator(".graph .state").count() == 3 and "operators and ranges" in page.inner_text("main")


def test_without_spans_there_is_no_path(open_page, viewers):
    page = open_page(f"{viewers(TRAIN)}#1/iterations?show=path")
    page.wait_for_selector("text=a critical path needs single spans")
    assert page.locator(".command code").inner_text() == "plumb run --trace -- PROGRAM"


def test_one_file(open_page, folder, tmp_path):
    """The page in one file has the states and the path of the median iteration."""
    subprocess.run([PLUMB, "view", recorded(TRACED, folder), "--html", tmp_path / "page.html"], check=True, capture_output=True, timeout=60)
    page = open_page(f"file://{tmp_path / 'page.html'}#1/iterations?show=states")
    loaded(page)
    assert page.locator(".graph .state").count() > 3
    page.get_by_role("combobox", name="Level").select_option("1")
    until(page, "location.hash.includes('level=1')")
    loaded(page)
    assert page.get_by_role("alert").count() == 0
    page.get_by_role("button", name="Critical path").click()
    page.wait_for_selector("text=the median one")
    with page.expect_download() as saved:
        page.get_by_role("button", name="CSV").click()
    assert "aten::cudnn_convolution" in open(saved.value.path()).read()


HOSTILE = ["<img src=x onerror=document.title='broken'>", "</text></svg><script>document.title='broken'</script>", "a\u202eb", "x" * 3000, "\" onload=\"document.title='broken'", "漢字 🎉"]


def test_hostile_names(open_page, viewers, tmp_path):
    """Names of kernels are text in the graph and on the path, whatever they hold."""
    events, at = [], 1000.0
    for turn in range(12):
        for number, name in enumerate(HOSTILE + HOSTILE[: 1 + turn % 2]):
            call = turn * 100 + number
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": at, "dur": 2, "args": {"correlation": call}})
            events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": at + 5, "dur": 20, "args": {"correlation": call, "device": 0, "stream": 7}})
            at += 30
        at += 100
    (tmp_path / "hostile.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    url = viewers(tmp_path / "hostile.json")
    for show in "states", "path", "loops", "":
        page = open_page(f"{url}#1/iterations?show={show}&state=2&iteration=2")
        loaded(page)
        page.wait_for_selector("table")
        assert "broken" not in page.title() and page.locator("main :is(img, script)").count() == 0
        if show == "states":
            assert "\\u{202e}" in page.inner_text("main") and page.locator(".graph .state").count() >= 3
        if show == "path":
            assert "<img src=x" in page.inner_text("main")
        assert "\u202e" not in page.inner_text("main")
