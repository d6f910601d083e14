# SPDX-License-Identifier: Apache-2.0
"""A browser, and `plumb view` for it."""
import gzip
import os
import pathlib
import re
import signal
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("BUILD") or ROOT / "build").resolve()
PLUMB = BUILD / "plumb"
WEB = ROOT / "web"


def recorded(name, folder):
    """A profile of tests/data in FOLDER."""
    source = ROOT / "tests/data" / f"{name}.plumb"
    if source.exists():
        return source
    path = folder / f"{pathlib.Path(name).name}.plumb"
    if not path.exists():
        path.write_bytes(gzip.decompress((ROOT / "tests/data" / f"{name}.plumb.gz").read_bytes()))
    return path


def check_axe(page):
    """axe finds nothing that keeps somebody out."""
    page.evaluate((WEB / "node_modules/axe-core/axe.min.js").read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []


def check_narrow(page):
    """At 360 pixels nothing has to be scrolled to the side but tables."""
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate("document.querySelector('main').scrollWidth") <= 360


class Viewer:
    """plumb view, until it is closed."""

    def __init__(self, *files):
        self.process = subprocess.Popen([PLUMB, "view", "--no-browser", *files], stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        self.said = ""
        for line in self.process.stdout:
            self.said += line
            if found := re.search(r"http://127\.0\.0\.1:\d+/\S+", line):
                self.url = found.group()
                return
        raise AssertionError(f"plumb view has no address:\n{self.said}")

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(20)
        self.process.stdout.close()
