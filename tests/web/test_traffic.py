# SPDX-License-Identifier: Apache-2.0
"""The page Traffic in a browser, on profiles whose traffic formulas give (tests/e2e/traffictest.py)."""
import json
import os
import subprocess
import sys

import pytest

from web.browser import PLUMB, ROOT, Viewer, check_axe, check_narrow
from web.test_flame import values_of
from web.test_pages import TRAIN, loaded, until

MIB = 1 << 20
SCRIPT = "<img src=x onerror=document.title='bad'>"
# mixed: two lines, objects with parts on each device, an array of pointers that all read, copies, and calls.
MAKE = """
import pathlib, sys
from traffictest import Traffic, all_reduces, all_to_all, pointer_array
folder, script = pathlib.Path(sys.argv[1]), sys.argv[2]
made, _ = pointer_array(4)
for device in range(4):
    for part in range(64):
        made.bin(device + 1, (device - 1) % 4, "store", part * 16384, 16384, 16384 * (1 + (part == 5)))
made.copy(0, 1, 10, 1 << 20)
made.call("send", 0, 0, 1, 4, 1 << 20)
made.call("receive", 1, 0, 1, 4, 1 << 20)
made.write(folder / "mixed.plumb")
for n in (2, 4, 8, 72):
    all_to_all(n, side=72 * 64)[0].write(folder / f"all{n}.plumb")
wired = all_reduces(times=5)
wired.copy(0, 1, 10, 90_000_000, ns=400_000)
wired.copy(None, 2, 5, 6_300_000, ns=1_000_000, at=("train.py", 41))
wired.write(folder / "wired.plumb")
hostile = Traffic(2)
hostile.environment.append((None, "traffic.links", script))
line = hostile.line(script, 0x10, [(script + ".cu", 7)])
hostile.access("store", 0, 1, line, 64, 4, object=hostile.object(1, 256, at=(script + ".py", 3), name=script + chr(0x202e)))
hostile.bin(0, 0, "store", 0, 2**62, 5)
hostile.write(folder / "hostile.plumb")
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("traffic")
    subprocess.run([sys.executable, "-c", MAKE, folder, SCRIPT], check=True, timeout=120,
                   env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "tests/e2e"), str(ROOT / "python")])})
    return folder


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


def said(path):
    return json.loads(subprocess.run([PLUMB, "traffic", path, "--json"], capture_output=True, check=True, timeout=60).stdout)


def matrix(page, title):
    return page.locator(".matrix", has=page.get_by_role("heading", name=title, exact=True))


def at(page, title, row, column):
    """Points at a cell of a matrix, and returns what it says."""
    figure = matrix(page, title)
    canvas = figure.locator("canvas")
    canvas.focus()
    for key, times in (("ArrowDown", row), ("ArrowRight", column)):
        for _ in range(times):
            page.keyboard.press(key)
    return figure.locator("figcaption").inner_text()


def from_corner(page, title, row, column):
    matrix(page, title).locator("canvas").focus()
    page.keyboard.press("Home")
    return at(page, title, row, column)


def column_of(page, table, name):
    region = page.get_by_role("region", name=table, exact=True)
    heads = [text.rstrip(" ▲▼") for text in region.locator("thead th").all_inner_texts()]
    place = heads.index(name)
    return [row.locator("th, td").nth(place).inner_text().strip() for row in region.locator("tbody tr:not([aria-hidden])").all()]


@pytest.mark.parametrize("look", ["light", "dark"])
def test_traffic_is_accessible(open_page, view, picture, look):
    page = open_page(f"{view('mixed')}#1/traffic?object=1&line=bfs.cu:61", look, bypass_csp=True)
    loaded(page)
    picture(page, f"traffic-{look}")
    check_axe(page)
    assert page.get_by_role("link", name="Traffic", exact=True).get_attribute("aria-current") == "page"


def test_traffic_in_a_narrow_window(open_page, view, picture):
    page = open_page(f"{view('mixed')}#1/traffic?object=1&line=bfs.cu:61", width=360, height=640)
    loaded(page)
    picture(page, "traffic-narrow")
    check_narrow(page)


@pytest.mark.parametrize("n", [2, 4, 8])
def test_matrices_are_those_of_the_verb(open_page, view, made, n):
    page = open_page(f"{view(f'all{n}')}#1/traffic")
    loaded(page)
    each = (72 * 64) ** 2 // n**2 * 8
    answer = said(made / f"all{n}.plumb")
    assert answer["matrices"]["initiated"][0][1] == answer["matrices"]["flow"][0][1] == each
    for title, words in (("Who initiates", "GPU 0 reaches GPU 1"), ("Which way the data flows", "GPU 0 → GPU 1")):
        assert from_corner(page, title, 0, 1).startswith(f"{words}: {mib(each)}; from transpose.cu:31; part1")
        assert from_corner(page, title, 0, 0).endswith(": 0 B")
    assert page.get_by_role("group", name="GPU").get_by_role("button").all_inner_texts() == ["All", *(f"GPU {i}" for i in range(n))]
    assert len(column_of(page, "Objects", "object")) == n


def mib(size):
    value = size / MIB
    return f"{value:,.0f} MiB" if value >= 99.95 else f"{value:.{1 if value >= 9.995 else 2}f} MiB"


def test_a_pair_narrows_objects_and_lines(open_page, view):
    page = open_page(f"{view('mixed')}#1/traffic")
    loaded(page)
    assert {"bfs.cu:61", "bfs.cu:72", "bfs.cu:73"} < set(column_of(page, "Lines", "line"))
    # GPU 1 loads pointers from GPU 3, and stores to GPU 2 only.
    assert "GPU 1 reaches GPU 3: 781 KiB; from bfs.cu:72; flag_ptrs" in from_corner(page, "Who initiates", 1, 3)
    page.keyboard.press("Enter")
    until(page, "location.hash.includes('cell=')")
    assert values_of(page)["cell"] == "initiated:1:3"
    assert column_of(page, "Lines", "line") == ["bfs.cu:72"] and column_of(page, "Objects", "object") == ["flag_ptrs"]
    assert column_of(page, "Lines", "moved") == column_of(page, "Objects", "read from it") == ["781 KiB"]
    assert column_of(page, "Lines", "lanes") == ["1.0"]
    # The data of a load flows the other way.
    assert "GPU 3 → GPU 1: 781 KiB; from bfs.cu:72" in from_corner(page, "Which way the data flows", 3, 1)
    page.reload()
    loaded(page)
    assert column_of(page, "Lines", "line") == ["bfs.cu:72"]
    page.keyboard.press("Escape")
    until(page, "!location.hash.includes('cell=')")
    assert len(column_of(page, "Lines", "line")) == 5
    page.go_back()
    until(page, "location.hash.includes('cell=')")
    assert column_of(page, "Lines", "line") == ["bfs.cu:72"]


def test_a_line_narrows_matrices_and_objects(open_page, view, made):
    page = open_page(f"{view('mixed')}#1/traffic")
    loaded(page)
    page.get_by_role("region", name="Lines", exact=True).get_by_role("button", name="bfs.cu:73", exact=True).click()
    assert values_of(page)["line"] == "bfs.cu:73"
    assert sorted(column_of(page, "Objects", "object")) == ["flag0", "flag1", "flag2", "flag3"]
    assert from_corner(page, "Who initiates", 3, 0) == "GPU 3 reaches GPU 0: 391 KiB; from bfs.cu:73; flag0"
    assert from_corner(page, "Who initiates", 0, 3) == "GPU 0 reaches GPU 3: 0 B"
    line = next(one for one in said(made / "mixed.plumb")["lines"] if one["label"] == "bfs.cu:73")
    assert column_of(page, "Instructions of the line", "instruction") == [f"+0x{one['offset']:04x}" for one in line["instructions"]]
    moves = [(f"GPU {one['initiator']}", f"GPU {one['owner']}") for one in line["moves"]]
    assert sorted(zip(column_of(page, "Pairs of the line", "who initiates"), column_of(page, "Pairs of the line", "whose memory"))) == sorted(moves)
    page.get_by_role("group", name="Only").get_by_role("button", name="bfs.cu:73").click()
    assert "line" not in values_of(page)


def test_a_gpu_has_its_objects(open_page, view):
    page = open_page(f"{view('mixed')}#1/traffic")
    loaded(page)
    page.get_by_role("group", name="GPU").get_by_role("button", name="GPU 3").click()
    assert values_of(page)["gpu"] == "3"
    assert sorted(column_of(page, "Objects", "object")) == ["flag3", "flag_ptrs", "queue3"]
    reached = dict(zip(column_of(page, "Objects", "object"), column_of(page, "Objects", "reached by")))
    assert reached == {"queue3": "GPU 2", "flag_ptrs": "GPU 0, GPU 1, GPU 2", "flag3": "GPU 2"}


def test_addresses_as_a_strip_and_in_a_shape(open_page, view):
    page = open_page(f"{view('mixed')}#1/traffic")
    loaded(page)
    page.get_by_role("region", name="Objects", exact=True).get_by_role("button", name="queue2", exact=True).click()
    words, canvas = page.locator(".addresses figcaption"), page.locator(".addresses canvas")
    assert words.inner_text() == "64 parts were reached."
    canvas.focus()
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    # The sixth part has twice as many accesses as the others.
    assert page.locator(".spoken").inner_text() == words.inner_text() == "+0x14000 to +0x18000: accesses by GPU 1 32,768"
    page.keyboard.press("ArrowRight")
    assert words.inner_text() == "+0x18000 to +0x1c000: accesses by GPU 1 16,384"
    # It lies at 5.5 of 64 parts of the picture, and its colour is darker than that of its neighbours.
    dark = page.evaluate("""() => {
        const canvas = document.querySelector('.addresses canvas'), context = canvas.getContext('2d'), wide = canvas.width - 96;
        const row = context.getImageData(0, 8, canvas.width, 1).data;
        return [3.5, 5.3, 7.5].map((part) => row[4 * Math.floor(96 + part / 64 * wide)]);
    }""")
    assert dark[0] == dark[2] > dark[1]
    field = page.get_by_label("Shape, rows×columns")
    field.fill("64 x")
    field.press("Enter")
    assert page.get_by_role("alert").inner_text() == "A shape is two numbers, such as 64×128."
    field.fill("64x4096")
    field.press("Enter")
    until(page, "location.hash.includes('shape=64x4096')")
    assert "an element has 4.00 B; accesses are counted in parts of 16.0 KiB" in page.locator(".addresses").inner_text()
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 0.5, box["y"] + box["height"] * 5.5 / 64)
    assert words.inner_text() == "row 5, column 3: +0x1400c to +0x14010: accesses by GPU 1 8"
    assert "Lines that reach it: bfs.cu:61" in page.locator(".addresses").inner_text()


def test_findings_lead_to_their_object(open_page, view):
    page = open_page(f"{view('mixed')}#1/overview")
    loaded(page)
    page.get_by_role("link", name="Show the traffic").first.click()
    loaded(page)
    assert page.get_by_role("heading", name="Addresses of flag_ptrs").count() + page.locator(".chips button", has_text="flag_ptrs").count() >= 1
    assert page.get_by_role("region", name="Objects", exact=True).locator("tr.picked .found").count() == 1
    page.keyboard.press("Escape")
    lines = page.get_by_role("region", name="Lines", exact=True)
    assert lines.locator("tr", has=page.locator(".found")).locator("button.plain").all_inner_texts() == ["bfs.cu:72"]


def test_links_and_routes(open_page, view):
    page = open_page(f"{view('mixed')}#1/traffic")
    loaded(page)
    words = page.locator(".topology .link title").all_text_contents()
    assert "How the GPUs are linked is not known: the recording does not say." in page.locator(".topology").inner_text()
    assert page.locator(".topology .wire").count() == 0 and page.get_by_role("heading", name="Collectives").count() == 0
    assert len(words) == 5 and any(one.startswith("GPU 0 → GPU 1 ") and one.endswith("by peer access, copy engine") for one in words), words
    rows = list(zip(column_of(page, "Pairs and routes", "route"), column_of(page, "Pairs and routes", "moved")))
    assert ("copy engine", "10.0 MiB") in rows
    assert matrix(page, "What calls asked for").count() == 1
    assert from_corner(page, "What calls asked for", 0, 1).startswith("GPU 0 → GPU 1: 4.00 MiB")


def test_the_wiring(open_page, view, picture):
    """Four GPUs at switches, and the host by PCIe. Copies reach half of the NVLinks' 450 GB/s, all-reduces send 1.5 times what is asked."""
    page = open_page(f"{view('wired')}#1/traffic")
    loaded(page)
    page.locator(".topology").scroll_into_view_if_needed()
    picture(page, "traffic-wired")
    wires = page.locator(".topology .wire title").all_text_contents()
    assert sorted(wires) == sorted([
        *(f"GPU {i} and host: PCIe 5 x16, 63.0 GB/s in one direction" for i in range(4)),
        *(f"GPU {i}: 18 NVLinks through NVSwitch, 450 GB/s in one direction, shared by all its pairs" for i in range(4))]), wires
    assert page.locator(".topology .hub").text_content() == "NVSwitch"
    words = [one for one in page.locator(".topology .link title").all_text_contents() if "copy engine" in one]
    assert any(one.endswith("over 18 NVLinks through NVSwitch, 450 GB/s in one direction; copies reached 225 GB/s to GPU 1, 50.0 % of it")
               for one in words), words
    routes = list(zip(column_of(page, "Routes", "kind"), column_of(page, "Routes", "link"), column_of(page, "Routes", "of the link")))
    assert ("copy", "18 NVLinks through NVSwitch", "50.0 %") in routes and ("copy", "PCIe 5 x16", "10.0 %") in routes
    assert ("store", "18 NVLinks through NVSwitch", "unknown") in routes
    assert ("collective", "18 NVLinks through NVSwitch", "unknown") in routes
    shown = {name: column_of(page, "Collectives", name) for name in ("a call asks for", "a rank sends", "ratio, computed", "ratio, measured")}
    assert shown == {"a call asks for": ["1.00 MiB"], "a rank sends": ["1.50 MiB"], "ratio, computed": ["1.50"], "ratio, measured": ["1.50"]}
    assert "18 NVLinks through NVSwitch" in column_of(page, "Pairs and routes", "link")


def test_wiring_is_accessible(open_page, view):
    for look in ("light", "dark"):
        page = open_page(f"{view('wired')}#1/traffic", look, bypass_csp=True)
        loaded(page)
        check_axe(page)


def test_many_gpus(open_page, view, picture):
    url = view("all72")
    page = open_page(f"{url}#1/traffic")
    loaded(page)
    picture(page, "traffic-72")
    assert matrix(page, "Who initiates").locator("canvas").bounding_box()["width"] < 600
    assert page.get_by_role("combobox", name="GPU").locator("option").count() == 73
    assert from_corner(page, "Who initiates", 3, 2).startswith("GPU 3 reaches GPU 2: 32.0 KiB; from transpose.cu:31; part2")
    page.get_by_role("combobox", name="GPU").select_option("71")
    assert column_of(page, "Objects", "object") == ["part71"]
    answer = page.request.get(f"{url}api/1/traffic")
    assert len(answer.body()) < 4 * MIB
    assert answer.json()["pairs_left_out"] == answer.json()["lines"][0]["moves_left_out"] == 0


def test_names_stay_text(open_page, view):
    page = open_page(f"{view('hostile')}#1/traffic?object=0")
    loaded(page)
    assert page.title().startswith("Traffic") and page.locator("main img").count() == 0
    assert column_of(page, "Objects", "object") == [SCRIPT + "\\u{202e}"]
    from_corner(page, "Who initiates", 0, 1)
    assert page.locator("main img").count() == 0


def test_a_profile_without_traffic_has_no_tab(open_page, viewers):
    page = open_page(f"{viewers(TRAIN)}#1/overview")
    loaded(page)
    assert page.get_by_role("link", name="Traffic", exact=True).count() == 0
    page.goto(page.url.replace("overview", "traffic"))
    assert page.inner_text("main .command code") == "plumb run --traffic -- PROGRAM"


def test_traffic_in_one_file(open_page, made, tmp_path):
    subprocess.run([PLUMB, "view", made / "mixed.plumb", "--html", tmp_path / "page.html"], check=True, capture_output=True, timeout=60)
    page = open_page(f"file://{tmp_path / 'page.html'}#1/traffic?object=1")
    loaded(page)
    assert page.get_by_role("alert").count() == 0 and column_of(page, "Lines", "line") == ["bfs.cu:61"]
    with page.expect_download() as waiting:
        page.get_by_role("button", name="CSV").nth(1).click()
    saved = waiting.value.path().read_text().splitlines()
    assert saved[0].startswith("line,moved (B)") and saved[1].startswith("bfs.cu:61,") and len(saved) == 2


def test_csv_is_that_of_the_verb(open_page, view, made):
    page = open_page(f"{view('mixed')}#1/traffic")
    loaded(page)
    for number, by in enumerate(("object", "line", "route", "pair")):
        with page.expect_download() as waiting:
            page.get_by_role("button", name="CSV").nth(number).click()
        verb = subprocess.run([PLUMB, "traffic", made / "mixed.plumb", "--by", by, "--csv", "--top", "0"], capture_output=True, check=True, timeout=60).stdout
        assert waiting.value.path().read_bytes() == verb
