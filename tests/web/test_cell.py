# SPDX-License-Identifier: Apache-2.0
"""A plumb.Profile in the cell of a notebook: its frame shows the page, and cannot reach the notebook."""
import os
import shutil
import sqlite3
import subprocess
import sys

from web.browser import PLUMB, ROOT, recorded

NOTEBOOK = "<!doctype html><html lang='en'><meta charset='utf-8'><title>notebook</title><body><p>In [1]:</p>{cell}<p id='next'>In [2]:</p></body></html>"
EVIL = "</iframe>\"'><img src=x onerror=\"parent.document.title='broken'\"><script>parent.document.title = 'broken'</script>"


def cell_of(path):
    script = "import sys, plumb; sys.stdout.write(plumb.Profile(sys.argv[1])._repr_html_())"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "PLUMB_BINARY": str(PLUMB), "PYTHONIOENCODING": "utf-8"}
    return subprocess.run([sys.executable, "-c", script, path], env=environment, capture_output=True, check=True, timeout=60).stdout.decode()


def test_a_cell_shows_the_page(open_page, folder, tmp_path, picture):
    path = tmp_path / "hostile.plumb"
    shutil.copy(recorded("programs/hf-train-fault", folder), path)
    database = sqlite3.connect(path)
    database.execute("UPDATE frames SET display = ?", (EVIL,))
    database.commit()
    database.close()
    notebook = tmp_path / "notebook.html"
    notebook.write_text(NOTEBOOK.format(cell=cell_of(path)))
    page = open_page(f"file://{notebook}")
    inside = page.frame_locator("iframe")
    inside.get_by_role("link", name="Flame", exact=True).wait_for()
    # The frame has no address of its own: links and the way back are its own, too.
    inside.get_by_role("link", name="Kernels", exact=True).click()
    inside.locator("table").first.wait_for()
    assert inside.get_by_role("link", name="Kernels", exact=True).get_attribute("aria-current") == "page"
    assert "iframe" in inside.locator("table").first.inner_text()
    inside.get_by_role("link", name="Flame", exact=True).click()
    inside.locator("canvas").first.wait_for()
    picture(page, "notebook")
    inside.locator("body").evaluate("() => history.back()")
    inside.locator("table").first.wait_for()
    assert inside.get_by_role("link", name="Kernels", exact=True).get_attribute("aria-current") == "page"
    # Nothing of it came into the notebook.
    assert page.title() == "notebook" and page.locator("img, script, table").count() == 0
    assert page.locator("#next").inner_text() == "In [2]:"
    assert page.url.endswith("notebook.html")
