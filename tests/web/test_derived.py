# SPDX-License-Identifier: Apache-2.0
"""A page in one file makes flame graphs that it does not hold of one that it does. They are what plumb answers."""
import csv
import io
import itertools
import json
import os
import subprocess
import urllib.parse
import urllib.request

from web.browser import PLUMB, WEB, recorded
from web.test_pages import TRAIN, loaded, until

PROFILES = [TRAIN, "programs/hf-train-healthy", "programs/compiled-healthy", "programs/cuda-healthy", "waits"]
QUERIES = [{"view": "down"}, {"view": "heavy"}, {"view": "up"}, {"view": "callers"}, {"view": "callees"}]
HIDDEN = [{}, {"layers": "operator,gpu"}, {"layers": "python,native,other"}, {"hide": "torch"}, {"hide": r"\.py$", "layers": "python,module,operator,gpu,other"}]


def test_derived_graphs_are_those_of_plumb(viewers, packages, tmp_path):
    listed = []

    def save(address, name, **query):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.bin"
        with urllib.request.urlopen(f"{address}api/1/{name}?{urllib.parse.urlencode({**query, 'format': 'columns'})}") as answer:
            path.write_bytes(answer.read())
        return str(path)

    for profile, metric in itertools.product(PROFILES, [None, "op.time"]):
        address, window = viewers(profile), {"window": "all"}
        kept = {**window, **({"metric": metric} if metric else {})}
        if metric and metric not in {one["name"] for one in json.load(urllib.request.urlopen(f"{address}api/1/about"))["metrics"]}:
            continue
        base, frames = save(address, "flame", **kept), save(address, "flame/frames")
        with urllib.request.urlopen(f"{address}api/1/flame?format=csv&{urllib.parse.urlencode(kept)}") as answer:
            of = [row["frame"] for row in csv.DictReader(io.TextIOWrapper(answer, "utf-8", newline=""))]
        for view, hidden in itertools.product(QUERIES, HIDDEN):
            if not hidden and view["view"] in ("down", "heavy", "up"):
                continue
            query = {**kept, **view, **hidden, **({"of": of[len(of) // 2]} if view["view"].startswith("call") else {})}
            listed.append({"what": f"{profile} {query}", "query": query, "base": base, "frames": frames, "want": save(address, "flame", **query)})
    (tmp_path / "list.json").write_text(json.dumps(listed))
    subprocess.run(["node", "build.mjs", "--units", tmp_path / "units"], cwd=WEB, check=True, timeout=60)
    done = subprocess.run(["node", "--test", tmp_path / "units/derived.test.mjs"], env={**os.environ, "PLUMB_DERIVED": str(tmp_path / "list.json")},
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-6000:]
    assert "skipped 0" in done.stdout and len(listed) > 150


def test_one_file_has_layers_sandwich_and_hiding(open_page, folder, tmp_path, viewers, picture):
    """What is seen in the page in one file is what the server's page shows."""
    subprocess.run([PLUMB, "view", recorded(TRAIN, folder), "--html", tmp_path / "page.html"], check=True, capture_output=True, timeout=60)
    pages = [open_page(f"file://{tmp_path / 'page.html'}#1/flame"), open_page(f"{viewers(TRAIN)}#1/flame")]

    def summaries():
        for page in pages:
            loaded(page)
        return [page.inner_text(".summary") for page in pages]

    before = summaries()
    assert before[0] == before[1]
    for page in pages:
        page.get_by_role("button", name="Python").click()
        until(page, "location.hash.includes('layers=')")
        until(page, f"document.querySelector('.summary').innerText !== {json.dumps(before[0])}")
    without = summaries()
    assert without[0] == without[1]
    picture(pages[0], "one-file-layers")
    for page in pages:
        page.get_by_role("button", name="Python").click()
        until(page, "!location.hash.includes('layers=')")
        until(page, f"document.querySelector('.summary').innerText === {json.dumps(before[0])}")
        loaded(page)
        page.locator("canvas").focus()
        for _ in range(2):
            page.keyboard.press("ArrowDown")
        page.keyboard.press("m")
        page.get_by_role("menuitem", name="Hide its library or file").click()
        until(page, "location.hash.includes('hide=')")
        until(page, f"document.querySelector('.summary').innerText !== {json.dumps(before[0])}")
    hidden = summaries()
    assert hidden[0] == hidden[1] and "trainer" in pages[0].get_by_role("button", name="again").inner_text()
    for page in pages:
        page.get_by_role("button", name="again").click()
        until(page, "!location.hash.includes('hide=')")
        until(page, f"document.querySelector('.summary').innerText === {json.dumps(before[0])}")
        loaded(page)
        page.locator("canvas").focus()
        for _ in range(12):
            page.keyboard.press("ArrowDown")
        page.keyboard.press("m")
        page.get_by_role("menuitem", name="Callers and callees (sandwich)").click()
        page.wait_for_selector("text=Callees")
        loaded(page)
    sandwich = summaries()
    assert sandwich[0] == sandwich[1]
    picture(pages[0], "one-file-sandwich")
    pages[0].goto(f"file://{tmp_path / 'page.html'}#1/flame?recursion=collapse")
    pages[0].wait_for_selector("text=This page does not hold this answer")

