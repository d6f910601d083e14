# SPDX-License-Identifier: Apache-2.0
"""Chromium by Playwright. Pages that write to the console, or break their own policy, fail their test.

PLUMB_SCREENSHOTS=FOLDER keeps pictures of the pages there.
"""
import os
import pathlib
import subprocess
import sys

import pytest

from web.browser import BUILD, PLUMB, ROOT, WEB, Viewer, recorded


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
    from playwright.sync_api import sync_playwright
    with sync_playwright() as playwright:
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


@pytest.fixture
def open_page(chromium):
    """open_page(URL, look="light", width=1280): a page whose complaints fail the test."""
    contexts, complaints = [], []

    def open_one(url, look="light", width=1280, height=800, **options):
        context = chromium.new_context(color_scheme=look, viewport={"width": width, "height": height}, reduced_motion="reduce", **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(8000)
        page.on("console", lambda message: complaints.append(message.text)
                if message.type in ("error", "warning") and "404 (Not Found)" not in message.text else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.complaints = complaints
        if url:
            page.goto(url)
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def picture():
    def take(page, name):
        if folder := os.environ.get("PLUMB_SCREENSHOTS"):
            pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=str(pathlib.Path(folder) / f"{name}.png"))
    return take
