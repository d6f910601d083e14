# SPDX-License-Identifier: Apache-2.0
"""Chromium by Playwright. Pages that write to the console, or break their own policy, fail their test.

PLUMB_SCREENSHOTS=FOLDER keeps pictures of the pages there.
"""
import os
import pathlib
import subprocess
import sys

import pytest

from web.browser import ROOT, WEB, Viewer, recorded
from web.calm import keep_calm, patch


@pytest.fixture(scope="session")
def packages():
    """The folder of Playwright; node_modules of web/ are there."""
    if not (WEB / "dist/app.js").exists():
        pytest.skip("the page is not built: run make web, then make")
    done = subprocess.run([ROOT / "scripts/install-browser.sh", sys.executable], capture_output=True, text=True, timeout=600)
    if done.returncode:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    return done.stdout.strip()


@pytest.fixture(scope="session")
def chromium(packages):
    sys.path.append(packages)
    from playwright import sync_api
    patch(sync_api)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("profiles")


@pytest.fixture(scope="session")
def viewers(folder):
    """viewers(NAME of tests/data…): the address of plumb view of these."""
    opened = {}

    def view(*names):
        if names not in opened:
            opened[names] = Viewer(*(name if isinstance(name, pathlib.Path) else recorded(name, folder) for name in names))
        return opened[names].url

    yield view
    for viewer in opened.values():
        viewer.close()


@pytest.fixture(scope="session")
def pages():
    """Pages that tests have left, by whether the policy of what they show is off. A fresh one takes a second of a processor."""
    return {False: [], True: []}


@pytest.fixture
def open_page(request, chromium, pages):
    """open_page(URL, look="light", width=1280): a page whose complaints fail the test. It may be one that another test has left, empty.
    Without a URL it is fresh: for what stays with a page, as routes do."""
    opened, complaints, failures = [], [], request.session.testsfailed

    def complain(page, text):
        page.complaints.append(text)

    def fresh(bypass_csp):
        page = keep_calm(chromium.new_context(bypass_csp=bypass_csp))
        page.set_default_timeout(30_000)
        page.on("console", lambda message: complain(page, message.text)
                if message.type in ("error", "warning") and "404 (Not Found)" not in message.text else None)
        page.on("pageerror", lambda error: complain(page, str(error)))
        return page

    def open_one(url, look="light", width=1280, height=800, bypass_csp=False):
        page = pages[bypass_csp].pop() if url and pages[bypass_csp] else fresh(bypass_csp)
        opened.append((page, bypass_csp, url))
        page.complaints = complaints
        page.emulate_media(color_scheme=look, reduced_motion="reduce")
        page.set_viewport_size({"width": width, "height": height})
        if url:
            page.goto(url)
        return page

    yield open_one
    for page, bypass_csp, url in opened:
        if url and request.session.testsfailed == failures:
            page.evaluate("localStorage.clear()")
            page.mouse.move(0, 0)
            page.goto("about:blank")
            pages[bypass_csp].append(page)
        else:
            page.context.close()
    assert complaints == []


@pytest.fixture
def picture():
    def take(page, name):
        if folder := os.environ.get("PLUMB_SCREENSHOTS"):
            pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=str(pathlib.Path(folder) / f"{name}.png"))
    return take
