# SPDX-License-Identifier: Apache-2.0
"""The mark of a finding: the rows, spans and states that findings are about carry it, and no others. It leads to the finding."""
import json
import re
import shutil
import sqlite3
import subprocess
import urllib.parse
import urllib.request

import pytest

from web.browser import PLUMB, WEB, check_axe, check_narrow, recorded
from web.calm import calm
from web.test_memory import line_of, recording  # noqa: F401, a fixture
from web.test_pages import TRAIN, loaded, until

TRACED, RANKS, LOADER, COPIES = "resnet/b32", "programs/ddp", "cases/loader", "cases/copies"
PAIR = ("programs/hf-train-healthy", TRAIN)
NN, TN, NT = "Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>", "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas", \
    "Kernel2<cutlass_80_simt_sgemm_128x256_8x4_nt_align1>"
HOT = {name: ["hotspot-kernel"] for name in (NN, TN, NT)}


def findings_of(path):
    return json.loads(subprocess.run([PLUMB, "report", "--json", "--findings", path], capture_output=True, check=True).stdout)["findings"]


def with_finding(source, path, frame, **evidence):
    """A copy of a profile with a finding of another rule, about the first context whose frame has this name (or name and line)."""
    shutil.copy(source, path)
    with sqlite3.connect(path) as file:
        where = "f.line = ?" if isinstance(frame, int) else "ifnull(f.display, f.name) = ?"
        context = file.execute(f"SELECT c.id FROM contexts c JOIN frames f ON f.id = c.frame WHERE {where} ORDER BY c.id LIMIT 1", [frame]).fetchone()[0]
        number = file.execute("SELECT ifnull(max(id), -1) + 1 FROM findings").fetchone()[0]
        file.execute("INSERT INTO findings (id, finding, rule, severity, title, evidence, context) VALUES (?, 'own-0123456789ab', 'own', 'warning', 'a finding of the test', ?, ?)",
                     [number, json.dumps(evidence), context])
    return path


def marked(page):
    """{a row's first cell with words, as it is shown: the kinds of the findings that its marks lead to and name}."""
    rows = page.locator("tbody tr:has(a.found)").evaluate_all("""rows => rows.map(row => [[...row.children].find(cell => cell.classList.contains('words')).title,
        row.querySelector('a.found').title, row.querySelector('a.found').href, row.querySelector('a.found').getAttribute('aria-label')])""")
    assert all(title == label for _, title, _, label in rows)
    return [(name, title, urllib.parse.parse_qs(href.partition("?")[2]).get("finding", [""])[0]) for name, title, href, _ in rows]


def kinds(page):
    """{row: [the rule and cause of its first finding]}."""
    return {name: [finding.rpartition("-")[0]] for name, _, finding in marked(page)}


def opened(open_page, url, where, height=4000, **options):
    page = open_page(f"{url}#1/{where}", height=height, **options)
    loaded(page)
    page.wait_for_selector("tbody tr")
    return page


@pytest.mark.parametrize("where, profile, expected", [
    ("kernels", TRAIN, HOT),
    ("kernels?by=operator", TRAIN, {"aten::mm": ["hotspot-operator"], "aten::embedding": ["balance"]}),
    ("kernels?by=module", LOADER, {"2": ["hotspot-line"]}),
    ("kernels?by=python", "h200_training", {"main": ["fusion"], "images": ["hotspot-line"]}),
    ("layers?kind=A2", LOADER, {"2": ["hotspot-line"]}),
    ("layers?kind=A11", LOADER, {"2": ["hotspot-line"]}),
    ("layers?kind=A5", LOADER, {}),
])
def test_rows_of_a_profile(open_page, viewers, folder, where, profile, expected):
    """Exactly these rows are marked: what a finding is about, and neither its callers nor what is below it."""
    page = opened(open_page, viewers(profile), where)
    if expected:
        page.wait_for_selector("a.found")
    assert kinds(page) == expected
    titles = {finding["id"]: finding["title"] for finding in findings_of(recorded(profile, folder))}
    for _, title, finding in marked(page):
        assert titles[finding] in title


def test_lines_are_those_of_the_findings(open_page, viewers, folder):
    """By line, with their number of findings; findings of start-up mark its lines and not those of the main loop."""
    page = opened(open_page, viewers(TRAIN), "kernels?by=line")
    page.wait_for_selector("a.found")
    [(name, title, _)] = marked(page)
    said = findings_of(recorded(TRAIN, folder))
    assert name == "<module>" and title.startswith(f"{sum(one['window'] == 'loop' for one in said)} findings: ") and title.endswith("and 6 more")
    page.goto(f"{viewers(TRAIN)}#1/kernels?by=line&window=startup&metric=cpu.time")
    page.wait_for_selector("tr:has(a.found[title^='finding: start-up']):has(td[title$='hf_train.py:8'])")
    rows = json.loads(subprocess.run([PLUMB, "report", "--json", "--by", "line", "--top", "0", "--window", "startup", "--metric", "cpu.time", recorded(TRAIN, folder)],
                                     capture_output=True, check=True).stdout)["rows"]
    until(page, f"document.querySelector('.table table').getAttribute('aria-rowcount') === '{len(rows) + 1}'")
    # The line that imports, and the innermost one, which the finding's path ends in.
    assert kinds(page) == {"<module>": ["startup-imports"], "_handle_fromlist": ["startup-imports"]} and len(marked(page)) == 2


def test_kernels_that_the_evidence_lists(open_page, viewers, folder):
    """A finding about many short kernels marks each kernel that it names."""
    page = opened(open_page, viewers("h200_training"), "kernels")
    page.wait_for_selector("a.found")
    said = next(one for one in findings_of(recorded("h200_training", folder)) if one["rule"] == "fusion")
    rows = json.loads(subprocess.run([PLUMB, "report", "--json", "--by", "kernel", "--top", "0", recorded("h200_training", folder)], capture_output=True, check=True).stdout)["rows"]
    names = {one["name"] for one in said["evidence"]["names"]}
    assert sum(finding == said["id"] for _, _, finding in marked(page)) == sum(row["name"] in names for row in rows) == len(names)


@pytest.mark.parametrize("by, expected", [("kernel", HOT), ("operator", {"aten::mm": ["hotspot-operator"]})])
def test_rows_of_a_comparison(open_page, viewers, by, expected):
    """They are marked with the findings of the profile after, and lead to its flame graph."""
    page = opened(open_page, viewers(*PAIR), f"compare?by={by}")
    page.wait_for_selector("a.found")
    assert kinds(page) == expected
    assert all("file=1&" in link.get_attribute("href") for link in page.locator("a.found").all())
    page.locator("a.found").first.click()
    page.wait_for_selector("aside .findings li")


def test_holders_of_memory(open_page, viewers, recording, tmp_path):  # noqa: F811
    """A finding about the line that allocates the activations marks the row of this line."""
    path = with_finding(recording[0], tmp_path / "memory.plumb", line_of("activation"))
    page = opened(open_page, viewers(path), "memory", bypass_csp=True)
    page.wait_for_selector("a.found")
    assert [(name.partition(" ")[0], title) for name, title, _ in marked(page)] == [(f"memory_over_time.py:{line_of('activation')}", "finding: a finding of the test")]
    assert page.locator("tbody tr:not([aria-hidden])").count() > 1
    check_axe(page)


def test_waits_of_ranks(open_page, viewers):
    page = opened(open_page, viewers(RANKS), "ranks")
    page.wait_for_selector("a.found")
    waits = page.get_by_role("region", name="Who waits for whom")
    [row] = waits.locator("tr:has(a.found)").all()
    assert page.locator("a.found").count() == 1 and waits.locator("tbody tr").count() > 1
    assert re.match(r"rank 0\s+rank 1\s+AllReduce", row.inner_text())
    assert page.get_by_role("list", name="Findings about late ranks").get_by_role("link", name="Show it in the flame graph").count() == 1


def test_boxes_of_the_flame_graph(open_page, viewers, folder):
    """Their words and the table of boxes name the finding."""
    page = opened(open_page, viewers(TRAIN), "flame?as=table")
    page.wait_for_selector("a.found")
    said = {one["id"]: one for one in findings_of(recorded(TRAIN, folder)) if one["window"] == "loop"}
    rows = set()
    while True:  # only rows that are seen are there
        rows |= set(marked(page))
        if not page.locator(".table").evaluate("one => { const before = one.scrollTop; one.scrollTop += 3000; return one.scrollTop > before; }"):
            break
        calm(page)
    assert all(name.split(" (")[0] == said[finding]["frame"]["name"] for name, _, finding in rows)
    boxes = answer(viewers(TRAIN), "flame", "px=1280")["tables"][0]
    flags = [column["name"] for column in boxes["columns"]].index("flags")
    assert len(rows) == sum(row[flags] & 1 for row in boxes["rows"]) == 7
    page.goto(f"{viewers(TRAIN)}#1/kernels")
    page.wait_for_selector("a.found")
    title = page.locator("a.found").first.get_attribute("title")
    page.locator("a.found").first.click()
    page.wait_for_selector("aside .findings")
    page.locator("canvas").focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowDown")
    until(page, f"document.querySelector('[role=status]').innerText.includes({json.dumps(title)})")


# ---- iterations ----

def answer(url, name, query=""):
    return json.load(urllib.request.urlopen(f"{url}api/1/{name}?format=json&{query}"))


def rows_of(tables, name):
    table = tables if "columns" in tables else next(one for one in tables["tables"] if one["id"] == name)
    names = [column["name"] for column in table["columns"]]
    return [dict(zip(names, row)) for row in table["rows"]]


def test_states(open_page, viewers, folder):
    """The states that have a kernel with a finding: in the picture, for screen readers and in the table; keys lead to the finding."""
    hot = {one["context"][-1] for one in findings_of(recorded(TRAIN, folder)) if one["id"].startswith("hotspot-kernel")}
    expected = sorted({row["state"] for row in rows_of(answer(viewers(TRAIN), "states"), "states.kernels") if row["name"] in hot})
    page = opened(open_page, viewers(TRAIN), "iterations?show=states", height=800)
    page.wait_for_selector("path.found")
    drawn = page.locator(".graph .state:has(path.found)").evaluate_all("all => all.map(one => Number(one.dataset.state))")
    said = page.locator(".graph .state").evaluate_all("all => all.filter(one => /finding/.test(one.getAttribute('aria-label'))).map(one => Number(one.dataset.state))")
    assert sorted(drawn) == sorted(said) == expected and 0 < len(expected) < page.locator(".graph .state").count() - 2
    page.locator(".graph .state:has(path.found)").first.focus()
    page.keyboard.press("Enter")
    link = page.locator("aside a.found").first
    link.focus()
    title = link.get_attribute("title").removeprefix("finding: ")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"aside .findings :text-is({json.dumps(title, ensure_ascii=False)})")


def test_rows_of_the_critical_path(open_page, viewers):
    page = opened(open_page, viewers(TRACED), "iterations?show=path")
    page.wait_for_selector("a.found")
    names = page.locator("tbody tr:not([aria-hidden]) th").evaluate_all("all => all.map(one => one.title)")
    assert {name for name, _, _ in marked(page)} == {"aten::cudnn_convolution"} and len(marked(page)) == names.count("aten::cudnn_convolution") < len(names)
    canvas = page.locator("canvas.path-picture")
    canvas.focus()
    for _ in range(200):
        page.keyboard.press("ArrowRight")
        if "finding" in (said := page.locator("figcaption").last.inner_text()):
            break
    assert said.startswith("host: aten::cudnn_convolution; 3 findings: ")


def test_loops_that_begin_with_it(open_page, viewers, folder, tmp_path):
    first = json.loads(subprocess.run([PLUMB, "iters", "--json", recorded(TRAIN, folder)], capture_output=True, check=True).stdout)["tracks"][0]["levels"][0]["first_op"]
    path = with_finding(recorded(TRAIN, folder), tmp_path / "train.plumb", first)
    page = opened(open_page, viewers(path), "iterations?show=loops")
    page.wait_for_selector("a.found")
    assert [(name, title) for name, title, _ in marked(page)] == [("loop 1, the main one", "finding: a finding of the test")]


# ---- the timeline ----

def expected_spans(url, asked, findings):
    """How many spans of an answer findings are about: of that context, or of that kernel or operator wherever it is."""
    spans = rows_of(answer(url, "timeline/spans", asked), "spans")
    contexts = {one["frame"]["context"] for one in findings if one["frame"]}
    every = {one["frame"]["name"] for one in findings if one["frame"] and one["frame"]["kind"] in ("kernel", "operator") and one["evidence"].get("name") == one["frame"]["name"]}
    return sum(span["context"] in contexts or span["name"] in every for span in spans), len(spans)


@pytest.mark.parametrize("look", ["light", "dark"])
@pytest.mark.parametrize("profile", [TRACED, COPIES])
def test_spans(open_page, viewers, folder, profile, look):
    asked = []
    page = open_page(None, look, bypass_csp=True)
    page.on("request", lambda request: "timeline/spans" in request.url and asked.append(request.url.partition("?")[2].replace("format=columns", "")))
    findings = findings_of(recorded(profile, folder))
    page.goto(f"{viewers(profile)}#1/timeline")
    page.wait_for_selector("canvas.lanes")
    until(page, "Number(document.querySelector('canvas.lanes').dataset.found) > 0")
    expected, all_spans = expected_spans(viewers(profile), asked[0], findings)
    assert page.locator("canvas.lanes").get_attribute("data-found") == str(expected) and 0 < expected < all_spans
    page.locator("canvas.lanes").focus()
    page.keyboard.press("n")
    first = page.get_by_role("status").inner_text()
    assert "finding" in first and any(one["title"] in first for one in findings)
    page.keyboard.press("n")
    until(page, f"document.querySelector('[role=status]').innerText !== {json.dumps(first)}")
    page.keyboard.press("Shift+N")
    until(page, f"document.querySelector('[role=status]').innerText === {json.dumps(first)}")
    check_axe(page)
    item = page.get_by_role("list", name="Findings").locator("li").first
    title = next(one["title"] for one in findings if one["title"] in item.inner_text())
    item.get_by_role("link").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(f"aside .findings :text-is({json.dumps(title, ensure_ascii=False)})")


def test_the_mark_is_drawn(open_page, viewers):
    """With findings the timeline has more pixels of the colour of marks than without."""
    count = """() => { const one = document.querySelector('canvas.lanes'), data = new Uint32Array(one.getContext('2d').getImageData(0, 0, one.width, one.height).data.buffer);
        return data.reduce((sum, pixel) => sum + (pixel === 0xff1b00a3), 0); }"""
    pixels = []
    for keeps in (True, False):
        page = open_page(None)
        if not keeps:
            page.route("**/api/1/findings*", lambda route: route.fulfill(json={"findings": []}))
        page.goto(f"{viewers(COPIES)}#1/timeline")
        page.wait_for_selector("canvas.lanes")
        until(page, "document.querySelector('canvas.lanes').dataset.found !== undefined && document.querySelector('canvas.lanes').dataset.bands !== undefined")
        if keeps:
            until(page, "document.querySelector('canvas.lanes').dataset.found !== '0'")
        pixels.append(page.evaluate(count))
    assert pixels[0] > pixels[1] + 50


# ---- everywhere ----

def test_keys_open_the_finding(open_page, viewers):
    page = opened(open_page, viewers(TRAIN), "kernels", height=800)
    page.wait_for_selector("a.found")
    page.get_by_role("button", name=NN, exact=True).focus()
    page.keyboard.press("Shift+Tab")  # the mark stands before the name
    assert page.evaluate("document.activeElement.className") == "found"
    title = page.evaluate("document.activeElement.title").removeprefix("finding: ")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"aside .findings :text-is({json.dumps(title, ensure_ascii=False)})")
    page.go_back()
    page.wait_for_selector("text=line of your code")


@pytest.mark.parametrize("look", ["light", "dark"])
@pytest.mark.parametrize("where, profile", [("kernels", TRAIN), ("layers?kind=A8", TRACED), ("iterations?show=states&state=3", TRAIN), ("iterations?show=path", TRACED), ("ranks", RANKS)])
def test_accessible_and_narrow(open_page, viewers, picture, where, profile, look):
    page = opened(open_page, viewers(profile), where, look=look, bypass_csp=True, height=800)
    page.wait_for_selector("a.found")
    picture(page, f"marks-{where.partition('?')[0]}-{look}")
    check_axe(page)
    narrow = opened(open_page, viewers(profile), where, look=look, width=360, height=640)
    narrow.wait_for_selector("a.found")
    picture(narrow, f"marks-{where.partition('?')[0]}-{look}-narrow")
    check_narrow(narrow)
    # The name beside the mark is cut at its end, and does not vanish.
    names = page.locator("tbody tr:has(a.found) th .plain").evaluate_all("all => all.map(one => one.getBoundingClientRect().right <= one.closest('th').getBoundingClientRect().right)")
    assert all(names)


def test_one_file(open_page, folder, tmp_path):
    subprocess.run([PLUMB, "view", recorded(TRAIN, folder), "--html", tmp_path / "page.html"], check=True, capture_output=True, timeout=60)
    page = opened(open_page, f"file://{tmp_path / 'page.html'}", "kernels")
    page.wait_for_selector("a.found")
    assert kinds(page) == HOT
    title = page.locator("a.found").first.get_attribute("title").removeprefix("finding: ")
    page.locator("a.found").first.click()
    page.wait_for_selector(f"aside .findings :text-is({json.dumps(title, ensure_ascii=False)})")
    page.goto(f"file://{tmp_path / 'page.html'}#1/timeline")
    loaded(page)
    page.locator("canvas.lanes").focus()
    until(page, "Number(document.querySelector('canvas.lanes').dataset.found) > 0")
    page.keyboard.press("n")
    assert "finding: kernel " in page.get_by_role("status").inner_text()


def test_a_page_of_its_own(open_page, viewers, packages, tmp_path):
    """Another page has the same mark with two lines."""
    (tmp_path / "mine.tsx").write_text("""
import { FindingMark, useMarks } from "SHELL/marks";
import { register } from "SHELL/registry";
function Mine() {
    const marks = useMarks(undefined);
    return <p>{["aten::mm", "aten::add"].map((name) => <span key={name}>{name} <FindingMark found={marks.row("operator", { name })} /></span>)}</p>;
}
register({ id: "mine", title: "Mine", key: "z", needs: {}, follows: [], make: Mine });
""".replace("SHELL", str(WEB / "src/shell")))
    subprocess.run(["node", "build.mjs", tmp_path, f"--with={tmp_path / 'mine.tsx'}"], cwd=WEB, check=True, timeout=60)
    page = open_page(None, bypass_csp=True)
    url = viewers(TRAIN)
    page.route(url, lambda route: route.fulfill(content_type="text/html", body=f"<!doctype html><html lang=en><title>t</title><body><script>{(tmp_path / 'app.js').read_text()}</script>"))
    page.goto(f"{url}#1/mine")
    link = page.get_by_role("link", name="finding: operator aten::mm takes 51.7 %")
    link.wait_for()
    assert page.locator("a.found").count() == 1
