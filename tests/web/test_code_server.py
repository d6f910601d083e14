# SPDX-License-Identifier: Apache-2.0
"""The extension in a whole VS Code (code-server) in Chromium. Only full runs have it: PLUMB_CODE_SERVER=1, as it takes minutes to install."""
import json
import os
import re
import shutil
import signal
import subprocess
import time
import zipfile

import pytest

from web.browser import PLUMB, ROOT, WEB, recorded

pytestmark = pytest.mark.skipif(not os.environ.get("PLUMB_CODE_SERVER"), reason="set PLUMB_CODE_SERVER=1 to test the extension in code-server")


def extension(folder):
    """The package as the editor has it when it is installed."""
    if not (WEB / "dist/app.js").exists():
        subprocess.run(["npm", "run", "-s", "build"], cwd=WEB, check=True, timeout=60)
    made = subprocess.run([ROOT / "scripts/vsix.sh"], capture_output=True, text=True, check=True, timeout=300).stdout.strip()
    with zipfile.ZipFile(made) as package:
        package.extractall(folder, [name for name in package.namelist() if name.startswith("extension/")])
    (folder / "extension").rename(folder / "plumb.plumb-0.1.0")


@pytest.fixture
def workbench(packages, folder, tmp_path):
    done = subprocess.run([ROOT / "scripts/install-code-server.sh"], capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    work, user, extensions = tmp_path / "work", tmp_path / "user", tmp_path / "extensions"
    (work / "programs").mkdir(parents=True)
    shutil.copy(recorded("programs/hf-train-fault", folder), work / "train.plumb")
    shutil.copy(ROOT / "tests/accuracy/programs/hf_train.py", work / "programs")
    extensions.mkdir()
    extension(extensions)
    (user / "User").mkdir(parents=True)
    (user / "User/settings.json").write_text(json.dumps({"plumb.path": str(PLUMB), "security.workspace.trust.enabled": False, "workbench.startupEditor": "none"}))
    program = f"{done.stdout.strip()}/node_modules/code-server/out/node/entry.js"
    process = subprocess.Popen(["node", program, "--config", tmp_path / "config.yaml", "--auth", "none", "--bind-addr", "127.0.0.1:0", "--disable-telemetry",
                                "--disable-update-check", "--extensions-dir", extensions, "--user-data-dir", user, work],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in process.stdout:
        if found := re.search(r"HTTP server listening on (http://127\.0\.0\.1:\d+/)", line):
            break
    else:
        raise AssertionError("code-server has no address")
    yield f"{found.group(1)}?folder={work}"
    process.send_signal(signal.SIGTERM)
    process.wait(20)
    process.stdout.close()


def page_of_plumb(page):
    """The frame within frames that has plumb's page."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        for frame in page.frames:
            if not frame.is_detached() and frame.locator("nav[aria-label=Pages]").count():
                return frame
        page.wait_for_timeout(200)
    raise AssertionError("plumb's page never came")


def test_profile_lines_and_back(chromium, workbench, picture):
    page = chromium.new_page(viewport={"width": 1400, "height": 900})
    page.set_default_timeout(20000)
    page.goto(workbench)
    for _ in range(5):  # until the editor knows the extension, it opens the file as text
        page.locator(".explorer-folders-view [aria-label^='train.plumb']").dblclick()
        page.wait_for_timeout(2500)
        if page.locator("iframe.webview").count():
            break
        page.locator(".tab .codicon-close").first.click()
    inside = page_of_plumb(page)
    inside.get_by_role("link", name="Kernels", exact=True).click()
    inside.wait_for_selector("main table")
    picture(page, "code-server-page")
    page.locator("[aria-label^='programs']").first.click()
    page.locator("[aria-label^='hf_train.py']").first.dblclick()
    lens = page.locator(".codelens-decoration a", has_text=re.compile(r"^gpu\.time: 2\.63 s, 100\.0 % of the main loop"))
    lens.wait_for()
    picture(page, "code-server-lines")
    lens.click()
    inside = page_of_plumb(page)
    inside.wait_for_selector("nav a[aria-current=page]:has-text('Flame')")
    inside.wait_for_selector("main canvas")
    assert inside.locator("main input[type=search]").input_value() == "<module>"
    picture(page, "code-server-flame")
    page.close()
