# SPDX-License-Identifier: Apache-2.0
"""The extension in whole editors, in Chromium: code-server (VS Code) and Theia. PLUMB_EDITORS="code-server theia" names those to test.

An editor that is not in plumb's cache is installed, which takes a minute or two. Full runs (.ci/run) test code-server.
"""
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import time

import pytest

from web.browser import PLUMB, ROOT, WEB, recorded

WANTED = os.environ.get("PLUMB_EDITORS", "").split()
PATIENCE = 60  # seconds until something that was asked for must be there


class CodeServer:
    name = "code-server"
    listens = r"HTTP server listening on (http://127\.0\.0\.1:\d+/)"
    explorer = None  # it is open
    item = ".explorer-folders-view [aria-label^='{}']"
    close = ".tab.active .codicon-close"
    # what an opened file is: a page, or text that is there or that the editor refuses to show
    page, text = "iframe.webview", ".editor-instance .view-lines, .monaco-editor-pane-placeholder"

    def command(self, folder, tmp, package, settings):
        program = ["node", f"{folder}/node_modules/code-server/out/node/entry.js", "--config", tmp / "config.yaml",
                   "--extensions-dir", tmp / "extensions", "--user-data-dir", tmp / "user"]
        subprocess.run([*program, "--install-extension", package], check=True, stdout=subprocess.DEVNULL, timeout=120)
        (tmp / "user/User").mkdir(parents=True, exist_ok=True)
        (tmp / "user/User/settings.json").write_text(json.dumps(settings))
        return [*program, "--auth", "none", "--bind-addr", "127.0.0.1:0", "--disable-telemetry", "--disable-update-check"], {}

    def address(self, found, work):
        return f"{found}?folder={work}"


class Theia:
    name = "theia"
    listens = r"Theia app listening on (http://[\w.]+:\d+)"
    explorer = "#shell-tab-explorer-view-container"
    item = ".theia-FileStatNode:has-text('{}')"
    close = "#theia-main-content-panel .lm-mod-current .lm-TabBar-tabCloseIcon"
    page, text = "iframe.webview", "#theia-main-content-panel .monaco-editor .view-lines"

    def command(self, folder, tmp, package, settings):
        (tmp / "plugins").mkdir()
        shutil.copy(package, tmp / "plugins")
        (tmp / "settings.json").write_text(json.dumps(settings))
        # Otherwise pages of extensions come from another site, and a private window of Chromium refuses them what they need.
        return ["node", f"{folder}/lib/backend/main.js", "--hostname", "127.0.0.1", "--port", "0"], {
            "THEIA_CONFIG_DIR": str(tmp), "THEIA_WEBVIEW_EXTERNAL_ENDPOINT": "{{hostname}}"}

    def address(self, found, work):
        return found


def recorded_elsewhere(profile, to):
    """A copy in which the program lies where this machine has nothing."""
    shutil.copy(profile, to)
    with sqlite3.connect(to) as file:
        assert file.execute("UPDATE frames SET file = '/recorded/elsewhere/programs/hf_train.py' WHERE file LIKE '%/programs/hf_train.py'").rowcount
    file.close()


def installed(name):
    """The folder of the editor. Only CI insists on it."""
    try:
        done = subprocess.run([ROOT / "scripts/install-editor.sh", name], capture_output=True, text=True, timeout=1200)
    except subprocess.TimeoutExpired:
        pytest.fail(f"{name} was not installed within 20 minutes")
    if done.returncode:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(done.stderr.strip().splitlines()[-1])
    return done.stdout.strip()


@pytest.fixture(scope="module")
def package(packages):
    """The VSIX."""
    if not (WEB / "dist/app.js").exists():
        subprocess.run(["npm", "run", "-s", "build"], cwd=WEB, check=True, timeout=60)
    return subprocess.run([ROOT / "scripts/vsix.sh"], capture_output=True, text=True, check=True, timeout=300).stdout.strip()


@pytest.fixture(params=[CodeServer(), Theia()], ids=lambda editor: editor.name)
def workbench(request, package, folder, tmp_path):
    """An editor, and the address where it shows a folder with a profile that was recorded elsewhere, and its source."""
    editor = request.param
    if editor.name not in WANTED:
        pytest.skip(f"set PLUMB_EDITORS={editor.name} to test the extension in it")
    place, work = installed(editor.name), tmp_path / "work"
    (work / "programs").mkdir(parents=True)
    recorded_elsewhere(recorded("programs/hf-train-fault", folder), work / "train.plumb")
    shutil.copy(ROOT / "tests/accuracy/programs/hf_train.py", work / "programs")
    settings = {"plumb.path": str(PLUMB), "security.workspace.trust.enabled": False, "workbench.startupEditor": "none"}
    command, environment = editor.command(place, tmp_path, package, settings)
    log = tmp_path / "log"  # a file: nobody reads a pipe later
    with open(log, "w", encoding="utf-8") as out:
        process = subprocess.Popen([*command, work], env={**os.environ, **environment}, stdout=out, stderr=out)
    try:
        yield editor, editor.address(listening(process, log, editor.listens), work)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def listening(process, log, pattern):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        if found := re.search(pattern, log.read_text(encoding="utf-8")):
            return found.group(1)
        time.sleep(0.05)
    raise AssertionError(f"the editor has no address:\n{log.read_text(encoding='utf-8')}")


def until(page, get, what):
    """What GET gives as soon as it gives something."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := get():
            return found
        page.wait_for_timeout(50)  # which also lets the page's events through
    raise AssertionError(f"it never came: {what}")


def page_of_plumb(page):
    """The frame within frames that has plumb's page."""
    def look():
        for frame in page.frames:
            if not frame.is_detached() and frame.locator("nav[aria-label=Pages]").count():
                return frame
        return None
    return until(page, look, "plumb's page")


def open_profile(editor, page):
    """Until the editor knows the extension, it opens the file as text: then once more."""
    def tried():
        page.locator(editor.item.format("train.plumb")).first.dblclick()
        until(page, lambda: page.locator(f"{editor.page}, {editor.text}").count(), "an open file")
        if page.locator(editor.page).count():
            return True
        page.locator(editor.close).first.click()
        until(page, lambda: not page.locator(editor.text).count(), "a closed file")
        return False
    until(page, tried, "a profile that opens as a page")
    return page_of_plumb(page)


def test_profile_lines_and_back(chromium, workbench, picture):
    editor, address = workbench
    page = chromium.new_page(viewport={"width": 1400, "height": 900})
    page.set_default_timeout(PATIENCE * 1000)
    page.goto(address)
    if editor.explorer:
        page.locator(editor.explorer).click()
    inside = open_profile(editor, page)
    inside.get_by_role("link", name="Kernels", exact=True).click()
    inside.wait_for_selector("main table")
    picture(page, f"{editor.name}-page")

    # from a source line to the flame graph
    page.locator(editor.item.format("programs")).first.click()
    page.locator(editor.item.format("hf_train.py")).first.dblclick()
    lens = page.locator(".codelens-decoration a", has_text=re.compile(r"^gpu\.time: 2\.63\ss, 100\.0\s% of the main loop"))
    lens.wait_for()
    picture(page, f"{editor.name}-lines")
    lens.click()
    inside = page_of_plumb(page)
    inside.wait_for_selector("nav a[aria-current=page]:has-text('Flame')")
    inside.wait_for_selector("main canvas")
    until(page, lambda: inside.locator("main input[type=search]").input_value() == "<module>", "the function in the flame graph")
    picture(page, f"{editor.name}-flame")

    # and from a box to its line
    boxes = inside.locator("main canvas").first
    boxes.focus()
    button = inside.get_by_role("button", name=re.compile(r"^Open .*hf_train\.py"))

    def step():
        """Whether the next box is of the program's own code: once its details are there, which the page asks for after it has drawn."""
        boxes.press("ArrowDown")
        inside.evaluate("new Promise((end) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(end))))")
        until(page, lambda: inside.locator("aside").count() and not inside.locator("[aria-busy=true]").count(), "the details of a box")
        return button.count()

    until(page, step, "a box of the program's own code")
    name = button.first.get_attribute("aria-label") or button.first.inner_text()
    button.first.click()
    line = re.search(r"hf_train\.py:(\d+)", name).group(1)
    page.locator(f".line-numbers.active-line-number:text-is('{line}')").first.wait_for()
    picture(page, f"{editor.name}-line")
    page.close()
