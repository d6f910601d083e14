# SPDX-License-Identifier: Apache-2.0
"""The page Levels in a browser: a program with known times on the stand-in driver (tests/e2e/test_levels.py), and a trace with known
counters (tests/e2e/xsp_model.py)."""
import json
import os
import subprocess
import sys

import pytest

from web.browser import BUILD, PLUMB, ROOT, Viewer, check_axe, check_narrow
from web.test_flame import values_of
from web.test_pages import TRAIN, loaded, until
from web.test_traffic import column_of

SCRIPT = "<img src=x onerror=document.title='bad'>"
# counted.plumb: two kernels of a layer, as tests/e2e/programs/batched.py says. counted.json: two layers. With a peak of 1000 Gflop/s and 100 GB/s, conv1's kernel does 100 Gflop/s at 2 flop per byte, half of what
# the bandwidth allows; fc's does 500 at 50, half of the peak. The kernel of relu has no counters.
MAKE = """
import pathlib, sqlite3, sys
from conftest import ROOT, torch_pythons
from plumbtest import PROGRAMS
from test_levels import leveled, measure
from test_python_walker import compile_c
from xsp_model import Kernel, Layer, write
folder, script = pathlib.Path(sys.argv[1]), sys.argv[2]
clock = compile_c(folder / "clock.so", "-shared", "-fPIC", "-D_GNU_SOURCE", str(ROOT / "tests/e2e/virtual_clock.c"), "-ldl")
done = leveled(folder, clock, "300", runs=2)
assert done.returncode == 0, done.stderr
(folder / "said.json").write_text(done.stdout)
for python in list(torch_pythons())[:1]:
    for name, options, scenario in (("counted", ("--counters",), ""), ("plain", (), ""), ("refused", ("--counters",), ",count_refuse=35")):
        (folder / name).mkdir()
        done = measure(folder / name, python, PROGRAMS / "batched.py", "--batch", "16", clock=clock, options=options, scenario=scenario)
        assert done.returncode == 0, done.stderr
write(folder / "counted.json", [Layer("conv1", "Convolution", [Kernel("conv_kernel", 100, 10e6, 4e6, 1e6, 0.5)]), Layer("relu", "Activation", [Kernel("relu_kernel", 10)]),
                                Layer("fc", "Dense", [Kernel("gemm_kernel", 200, 100e6, 1e6, 1e6, 0.5)])])
(folder / "hostile.plumb").write_bytes((folder / "levels.plumb").read_bytes())
(folder / "one.plumb").write_bytes((folder / "levels.plumb").read_bytes())
(folder / "lost.plumb").write_bytes((folder / "levels.plumb").read_bytes())
with sqlite3.connect(folder / "lost.plumb") as database:
    database.execute("DELETE FROM level_values WHERE level = 'M/L'")
    for number, (old,) in enumerate(database.execute("SELECT id FROM level_values ORDER BY id").fetchall()):
        database.execute("UPDATE level_values SET id = ? WHERE id = ?", (number, old))
with sqlite3.connect(folder / "hostile.plumb") as database:
    database.execute("UPDATE frames SET name = ? WHERE name = 'backward'", (script + chr(0x202e),))
    database.execute("UPDATE levels SET why = ? WHERE level = 'M'", (script,))
with sqlite3.connect(folder / "one.plumb") as database:  # as of one run at each level: no intervals
    database.execute("UPDATE levels SET runs = 1, kept = 1, low_ns = NULL, high_ns = NULL, added_low_ns = NULL, added_high_ns = NULL")
    database.execute("UPDATE level_values SET low_ns = NULL, high_ns = NULL, passed = NULL")
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    if not (BUILD / "mock/launcher.so").exists():
        pytest.exit("the stand-in driver is not built: run make mock first", returncode=2)
    folder = tmp_path_factory.mktemp("levels")
    subprocess.run([sys.executable, "-c", MAKE, folder, SCRIPT], check=True, timeout=200,
                   env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "tests/e2e"), str(ROOT / "python")])})
    return folder


@pytest.fixture(scope="module")
def said(made):
    return json.loads((made / "said.json").read_text())


@pytest.fixture(scope="module")
def view(made):
    opened = {}

    def one(*names):
        if names not in opened:
            opened[names] = Viewer(*(made / name for name in names))
        return opened[names].url

    yield one
    for viewer in opened.values():
        viewer.close()


def csv_of(page, number):
    with page.expect_download() as waiting:
        page.get_by_role("button", name="CSV").nth(number).click()
    return waiting.value.path().read_bytes()


@pytest.mark.parametrize("look", ["light", "dark"])
@pytest.mark.parametrize("files, address", [(("levels.plumb",), "levels"), (("levels.plumb", "counted.json"), "levels?peak=1000&bandwidth=100")])
def test_levels_are_accessible(open_page, view, picture, look, files, address):
    page = open_page(f"{view(*files)}#1/{address}", look, bypass_csp=True)
    loaded(page)
    picture(page, f"levels-{len(files)}-{look}")
    check_axe(page)
    assert page.get_by_role("link", name="Levels", exact=True).get_attribute("aria-current") == "page"


def test_levels_in_a_narrow_window(open_page, view, picture):
    page = open_page(f"{view('levels.plumb', 'counted.json')}#1/levels?peak=1000&bandwidth=100", width=360, height=640)
    loaded(page)
    picture(page, "levels-narrow")
    check_narrow(page)


def test_sentences_are_those_of_the_verb(open_page, view, said):
    page = open_page(f"{view('levels.plumb')}#1/levels")
    loaded(page)
    facts = dict(zip(page.locator(".facts dt").all_inner_texts(), page.locator(".facts dd").all_inner_texts()))
    assert [facts[name] for name in ("The program", "Layers", "Kernels")] == [one["text"] for one in said["said"]]
    assert facts["Command"] == said["command"]
    assert page.locator(".order li").all_inner_texts() == [" ".join(row["passes"].split()) for row in said["order"]]


def test_levels_side_by_side(open_page, view, said):
    page = open_page(f"{view('levels.plumb')}#1/levels")
    loaded(page)
    table = "The levels side by side"
    assert column_of(page, table, "level") == ["M", "M/L", "M/L/G"] and column_of(page, table, "runs used") == ["2 of 2"] * 3
    assert column_of(page, table, "time of an iteration") == ["6.00 ms", "8.00 ms", "11.6 ms"]
    assert column_of(page, table, "added") == ["–", "+2.00 ms", "+3.60 ms"]
    assert column_of(page, table, "sees") == [level["sees"] for level in said["measured"]]
    # A dot is where its value is: from 0 to the highest end of an interval.
    most = max(level["wall_ns"]["high"] for level in said["measured"])
    places = page.evaluate("""() => [...document.querySelectorAll('.whiskers')[0].querySelectorAll('li:not(.scale)')].map((row) => {
        const track = row.querySelector('.track').getBoundingClientRect(), dot = row.querySelector('.dot').getBoundingClientRect();
        return ((dot.left + dot.right) / 2 - track.left) / track.width;
    })""")
    assert places == pytest.approx([level["wall_ns"]["mean"] / most for level in said["measured"]], abs=0.01)
    words = page.locator(".whiskers").nth(1).locator(".value").all_inner_texts()
    assert len(words) == 2 and words[0].startswith("+2.00 ms (+") and words[1].startswith("+3.60 ms (+")


def test_measured_against_corrected(open_page, view, said):
    page = open_page(f"{view('levels.plumb')}#1/levels")
    loaded(page)
    table = "Layers, measured and corrected"
    rows = {row["label"]: row for row in said["rows"] if row["metric"] == "op.time" and row["kind"] == "range"}
    assert column_of(page, table, "layer") == ["backward", "forward"]
    assert column_of(page, table, "order") == ["–", "changes: costs less than backward"]
    assert (column_of(page, table, "place as measured"), column_of(page, table, "place corrected")) == (["2", "1"], ["1", "2"])
    steps = said["measured"][0]["steps"]
    for column, key in (("measured", "measured_ns"), ("corrected", "corrected_ns"), ("95 % from", "low_ns"), ("95 % to", "high_ns")):
        assert column_of(page, table, column) == [f"{rows[name][key] / steps / 1e6:.2f} ms" for name in ("backward", "forward")], column
    assert column_of(page, table, "share") == [f"{rows[name]['share'] * 100:.1f} %" for name in ("backward", "forward")]
    # The picture has the same: lines that cross, drawn bold for the one whose order surely changes.
    assert page.locator(".slopes .before li").all_inner_texts() == ["1. forward", "2. backward"]
    assert page.locator(".slopes .after li").all_inner_texts() == ["1. backward", "2. forward"]
    assert page.locator(".slopes path").evaluate_all("all => all.map((one) => [one.getAttribute('d'), one.getAttribute('class')])") == [
        ["M0 1.5L100 0.5", "moved"], ["M0 0.5L100 1.5", "sure"]]
    assert "2 change their place, 1 of them by more than the runs differ" in page.get_by_role("img").first.get_attribute("aria-label")


def test_rows_are_sorted_filtered_and_lead_to_the_flame_graph(open_page, view):
    page = open_page(f"{view('levels.plumb')}#1/levels")
    loaded(page)
    region = page.get_by_role("region", name="Layers, measured and corrected", exact=True)
    region.get_by_role("button", name="measured", exact=True).click()
    until(page, "location.hash.includes('sort=-measured')")
    assert column_of(page, "Layers, measured and corrected", "layer") == ["forward", "backward"]
    page.keyboard.press("/")
    page.keyboard.type("forw")
    until(page, "location.hash.includes('filter=forw')")
    assert column_of(page, "Layers, measured and corrected", "layer") == ["forward"]
    page.keyboard.press("Escape")
    page.get_by_role("group", name="Rows").get_by_role("button", name="GPU work").click()
    work = column_of(page, "GPU work, measured and corrected", "GPU work")
    assert work[:2] == ["forward_kernel", "backward_kernel"] and values_of(page) == {"part": "gpu"}
    assert column_of(page, "GPU work, measured and corrected", "in")[:2] == ["forward", "backward"]
    assert column_of(page, "GPU work, measured and corrected", "corrected")[:2] == ["800 µs", "500 µs"]
    page.get_by_role("button", name="forward_kernel", exact=True).click()
    until(page, "location.hash.startsWith('#1/flame')")
    assert values_of(page) == {"metric": "gpu.time", "search": "^forward_kernel$"}
    page.wait_for_selector("text=/61[.,]5 %/")
    page.go_back()
    until(page, "location.hash.startsWith('#1/levels')")
    page.get_by_role("group", name="Rows").get_by_role("button", name="Layers").click()
    page.locator(".slopes .after").get_by_role("button", name="2. forward").click()
    until(page, "location.hash.startsWith('#1/flame')")
    assert values_of(page) == {"metric": "op.time", "search": "^forward$"}


def test_csv_has_the_facts_of_the_verb(open_page, view, made):
    page = open_page(f"{view('levels.plumb')}#1/levels")
    loaded(page)
    verb = subprocess.run([PLUMB, "report", made / "levels.plumb", "--corrected", "--csv"], capture_output=True, check=True, timeout=60).stdout.splitlines()
    levels = csv_of(page, 0).decode().splitlines()
    assert levels[0].startswith("level,runs,kept,") and [line.split(",")[0] for line in levels[1:]] == ["M", "M/L", "M/L/G"]
    layers = csv_of(page, 1).splitlines()
    assert layers[0] == verb[0] and len(layers) == 3 and set(layers) < set(verb)
    page.get_by_role("group", name="Rows").get_by_role("button", name="GPU work").click()
    work = csv_of(page, 1).splitlines()
    assert work[0] == verb[0] and len(work) > 2 and set(work) < set(verb) and not set(work[1:]) & set(layers)


@pytest.fixture
def with_torch(made):
    if not (made / "counted/levels.plumb").exists():
        pytest.skip("no Python here has PyTorch")


@pytest.mark.parametrize("name, words", [("plain", "No roofline: this profile has no hardware counters"),
                                         ("refused", "No roofline: counters were asked for, but kernels are not counted: NVIDIA's driver lets only administrators")])
def test_without_counters_there_is_a_remedy(open_page, view, with_torch, name, words):
    page = open_page(f"{view(f'{name}/levels.plumb')}#1/levels")
    loaded(page)
    page.wait_for_selector(f"text={words}")
    assert page.locator("canvas.roof").count() == 0
    assert page.locator(".notice .command code").all_inner_texts() == ["plumb levels --counters -- PROGRAM", "plumb run --counters=roofline -o counters.plumb -- PROGRAM", "plumb view levels.plumb counters.plumb"]


def test_without_layers_there_is_no_roofline(open_page, view):
    page = open_page(f"{view('levels.plumb')}#1/levels")
    loaded(page)
    page.wait_for_selector("text=No roofline: it is of layers and their kernels, and this profile has neither modules nor operators.")


def test_the_roofline_of_this_file(open_page, view, with_torch):
    page = open_page(f"{view('counted/levels.plumb')}#1/levels?peak=4000&bandwidth=1250")
    loaded(page)
    assert "those of" not in page.inner_text("main") and "2 of 2 kernels have counters." in page.inner_text("main")
    assert page.locator("canvas.roof").get_attribute("aria-label").startswith("Roofline with 2 marks. The peak is 4000 Gflop/s, the bandwidth 1250 GB/s")
    rows = sorted(zip(*(column_of(page, "Roofline", name) for name in ("kernel", "layer", "flop per byte", "Gflop/s", "of the roof", "limited by"))))
    assert rows == [("one", "part", "2", "2,000", "80.0 %", "memory"), ("two", "part", "50", "2,000", "50.0 %", "arithmetic")]


def test_the_roofline_of_another_open_file(open_page, view):
    page = open_page(f"{view('levels.plumb', 'counted.json')}#1/levels")
    loaded(page)
    assert "The counters and the times here are those of counted.json." in page.inner_text("main")
    # plumb does not know the GPU: with its peak and its bandwidth there is a roof.
    assert page.get_by_text("plumb does not know the peak and the bandwidth of this GPU").count() == 1 and page.locator("canvas.roof").count() == 0
    assert column_of(page, "Roofline", "of the roof") == ["unknown"] * 2
    for label, value in (("Peak, Gflop/s", "1000"), ("Bandwidth, GB/s", "100")):
        page.get_by_label(label).fill(value)
        page.get_by_label(label).press("Enter")
    until(page, "location.hash.includes('peak=1000') && location.hash.includes('bandwidth=100')")
    loaded(page)
    assert page.locator("canvas.roof").get_attribute("aria-label").startswith("Roofline with 2 marks. The peak is 1000 Gflop/s, the bandwidth 100 GB/s")
    rows = list(zip(*(column_of(page, "Roofline", name) for name in ("kernel", "layer", "flop per byte", "Gflop/s", "of the roof", "limited by"))))
    assert rows == [("conv_kernel", "conv1", "2", "100", "50.0 %", "memory"), ("gemm_kernel", "fc", "50", "500", "50.0 %", "arithmetic")]
    assert "2 of 3 kernels have counters." in page.inner_text("main")
    page.get_by_role("group", name="Roofline of").get_by_role("button", name="Layers").click()
    until(page, "location.hash.includes('roof=layer')")
    loaded(page)
    rows = list(zip(*(column_of(page, "Roofline", name) for name in ("layer", "flop per byte", "Gflop/s", "of the roof", "limited by"))))
    assert rows == [("conv1", "2", "100", "50.0 %", "memory"), ("fc", "50", "500", "50.0 %", "arithmetic")]
    page.get_by_role("region", name="Roofline", exact=True).get_by_role("button", name="fc", exact=True).click()
    until(page, "location.hash.startsWith('#1/flame')")
    assert values_of(page) == {"file": "1", "search": "fc"}


def test_one_run_at_each_level_has_no_intervals(open_page, view):
    page = open_page(f"{view('one.plumb')}#1/levels")
    loaded(page)
    assert page.locator(".whisker").count() == 0 and page.locator(".dot").count() == 5
    assert column_of(page, "The levels side by side", "95 % from") == ["unknown"] * 3
    assert "With fewer than two runs at a level there are no intervals" in page.inner_text("main")
    assert page.locator(".slopes .sure").count() == 0 and page.locator(".slopes .moved").count() == 2


def test_without_layers_gpu_work_is_shown(open_page, view):
    page = open_page(f"{view('lost.plumb')}#1/levels")
    loaded(page)
    assert column_of(page, "GPU work, measured and corrected", "GPU work")[:2] == ["forward_kernel", "backward_kernel"]
    page.get_by_role("group", name="Rows").get_by_role("button", name="Layers").click()
    page.wait_for_selector("text=No layer has a corrected time")
    assert values_of(page) == {"part": "layer"}


def test_names_stay_text(open_page, view):
    page = open_page(f"{view('hostile.plumb')}#1/levels")
    loaded(page)
    assert page.title().startswith("Levels") and page.locator("main img").count() == 0
    assert column_of(page, "Layers, measured and corrected", "layer")[0] == SCRIPT + "\\u{202e}"
    assert SCRIPT in page.locator(".facts").inner_text()


def test_a_profile_without_levels_has_no_tab(open_page, viewers):
    page = open_page(f"{viewers(TRAIN)}#1/overview")
    loaded(page)
    assert page.get_by_role("link", name="Levels", exact=True).count() == 0
    page.goto(page.url.replace("overview", "levels"))
    assert page.inner_text("main .command code") == "plumb levels -- PROGRAM"


def test_the_page_by_its_key(open_page, view):
    page = open_page(f"{view('levels.plumb')}#1/overview")
    loaded(page)
    page.keyboard.press("g")
    page.keyboard.press("v")
    until(page, "location.hash === '#1/levels'")


def test_levels_in_one_file(open_page, made, tmp_path):
    subprocess.run([PLUMB, "view", made / "levels.plumb", made / "counted.json", "--html", tmp_path / "page.html"], check=True, capture_output=True, timeout=120)
    page = open_page(f"file://{tmp_path / 'page.html'}#1/levels")
    loaded(page)
    assert page.get_by_role("alert").count() == 0 and column_of(page, "Layers, measured and corrected", "layer") == ["backward", "forward"]
    assert column_of(page, "Roofline", "kernel") == ["conv_kernel", "gemm_kernel"] and page.get_by_label("Peak, Gflop/s").count() == 0
    saved = csv_of(page, 1).decode().splitlines()
    assert saved[0].startswith("layer,share,measured (ns),corrected (ns),") and saved[1].startswith("backward,") and len(saved) == 3
