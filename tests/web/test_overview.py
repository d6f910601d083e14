# SPDX-License-Identifier: Apache-2.0
"""The page Overview for profiles of each kind: training, inference, several ranks, without a GPU, imported."""
import json
import subprocess

import pytest

from web.browser import PLUMB, ROOT, check_axe, check_narrow, recorded
from web.test_pages import loaded, until

PROFILES = {"training": "programs/hf-train-fault", "inference": "programs/hf-generate-fault", "ranks": "programs/ddp", "loops": "programs/epochs-fault", "traced": "resnet/b32",
            "no GPU": "cpu", "imported": "imported"}


@pytest.fixture(scope="module")
def profiles(folder):
    """profiles(NAME): a file, recorded or made."""
    def find(name):
        path = folder / f"{name}.plumb"
        if name == "cpu" and not path.exists():
            program = folder / "work.py"
            program.write_text("total = 0\nfor i in range(3_000_000):\n    total += i * i\n")
            subprocess.run([PLUMB, "run", "--cpu", "-o", path, "--", "python3", program], check=True, capture_output=True, timeout=120)
        if name == "imported" and not path.exists():
            subprocess.run([PLUMB, "import", ROOT / "tests/data/foreign/torch.json.gz", "-o", path], check=True, capture_output=True, timeout=120)
        return path if name in ("cpu", "imported") else recorded(name, folder)
    return find


@pytest.mark.parametrize("look", ["light", "dark"])
@pytest.mark.parametrize("kind", PROFILES)
def test_each_kind_of_profile(open_page, viewers, profiles, picture, kind, look):
    page = open_page(f"{viewers(profiles(PROFILES[kind]))}#1/overview", look, bypass_csp=True)
    loaded(page)
    page.wait_for_selector(".lanes .stack")
    picture(page, f"overview-{kind}-{look}")
    assert "The run took" in page.inner_text("main") and "undefined" not in page.inner_text("main") and "NaN" not in page.inner_text("main")
    check_axe(page)
    page.set_viewport_size({"width": 360, "height": 640})
    picture(page, f"overview-{kind}-{look}-narrow")
    check_narrow(page)


def test_picture_and_numbers_are_the_same(open_page, viewers):
    """Each part of the picture is a row of the table, and the parts of a line fill its phase."""
    page = open_page(f"{viewers('programs/ddp')}#1/overview")
    loaded(page)
    page.wait_for_selector(".lanes .stack")
    widths = page.locator(".lanes .stack").evaluate_all("all => all.map(one => [...one.querySelectorAll('a')].reduce((sum, part) => sum + parseFloat(part.style.width), 0))")
    assert len(widths) == 12 and all(width == pytest.approx(100, abs=0.01) for width in widths)
    titles = page.locator(".lanes .stack a").evaluate_all("all => all.map(one => one.title)")
    page.get_by_text("The numbers").click()
    table = page.get_by_role("region", name="Where the time went, as numbers")
    text = table.inner_text()
    for title in titles:
        phase, lane, value = title.split(", ", 1)[0], *title.split(", ", 1)[1].rsplit(": ", 1)
        assert lane in text and value.split(" (")[1][:-1] in text, title
    assert "communication" in text and "27.2 s" in text


def test_a_part_leads_to_its_place(open_page, viewers):
    page = open_page(f"{viewers('programs/hf-train-fault')}#1/overview")
    loaded(page)
    page.wait_for_selector(".lanes .stack")
    page.locator(".lanes a[title^='main loop, GPU 0: computes']").click()
    until(page, "location.hash === '#1/kernels?window=loop'")
    page.go_back()
    page.wait_for_selector(".lanes .stack")
    page.locator(".lanes a[title^='main loop, host: operators']").click()
    page.wait_for_selector("main canvas")
    assert "metric=op.time" in page.evaluate("location.hash")


def test_a_picture_that_cannot_be_made_says_why(open_page, viewers):
    """No part of it is drawn then, and the rest of the page stays."""
    page = open_page(None)
    page.route("**/api/1/shares*", lambda route: route.abort() if "window=startup" in route.request.url else route.continue_())
    page.goto(f"{viewers('programs/hf-train-fault')}#1/overview")
    page.get_by_role("alert").wait_for()
    assert page.locator(".lanes").count() == 0 and "Findings" in page.inner_text("main")
    page.complaints.clear()


def test_one_file(open_page, folder, tmp_path):
    subprocess.run([PLUMB, "view", recorded("programs/epochs-fault", folder), "--html", tmp_path / "page.html"], check=True, capture_output=True, timeout=60)
    page = open_page(f"file://{tmp_path / 'page.html'}#1/overview")
    loaded(page)
    page.wait_for_selector(".lanes .stack")
    assert page.get_by_role("alert").count() == 0
    assert [text.split(" ")[0] for text in page.locator(".lanes .phase").all_inner_texts()] == ["start-up", "loop", "loop", "the"]
    said = json.loads(subprocess.run([PLUMB, "report", "--json", recorded("programs/epochs-fault", folder)], capture_output=True, check=True).stdout)
    assert len(said["windows"]) == 4
