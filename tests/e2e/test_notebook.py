# SPDX-License-Identifier: Apache-2.0
"""What a notebook shows of a plumb.Profile. tests/web/test_cell.py looks at it in a browser."""
import gzip
import html.parser
import sqlite3

import pytest
from viewing import ROOT, SCRIPT, link_plumb

import plumb
from plumb import _display

EVIL = "</iframe>\"'><script>parent.document.title = 'broken'</script>&lt;"


@pytest.fixture(scope="module")
def binary(tmp_path_factory):
    return link_plumb(tmp_path_factory.mktemp("notebook"))


@pytest.fixture
def profile(tmp_path, binary, monkeypatch):
    """A profile with hostile names, in a file with one."""
    monkeypatch.setenv("PLUMB_BINARY", str(binary))
    path = tmp_path / "a \"'><b>$(x).plumb"
    path.write_bytes(gzip.decompress((ROOT / "tests/data/waits.plumb.gz").read_bytes()))
    database = sqlite3.connect(path)
    database.execute("UPDATE frames SET name = name || ?1, display = coalesce(display, name) || ?1", (EVIL,))
    database.execute("UPDATE run SET command = command || ?1", (EVIL + "\u202e\n",))
    database.commit()
    database.close()
    with plumb.Profile(path) as opened:
        yield opened


class Elements(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found, self.text = [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data


def test_a_cell_shows_the_page_in_a_frame_that_is_apart(profile):
    shown = Elements(profile._repr_mimebundle_()["text/html"])
    [(tag, frame)] = shown.found
    assert tag == "iframe" and shown.text == ""
    assert set(frame["sandbox"].split()) == {"allow-scripts", "allow-downloads"}  # another origin, no way to the notebook
    assert frame["height"] == "640" and frame["title"] == "plumb view a \"'><b>$(x).plumb"
    assert set(frame) == {"sandbox", "title", "width", "height", "style", "srcdoc"}
    page = frame["srcdoc"]
    assert page.startswith("<!doctype html>") and SCRIPT in page and '"report?by=kernel' in page
    assert "connect-src" not in page and "default-src 'none'" in page  # it may ask nobody
    assert profile._repr_html_() == profile._repr_mimebundle_()["text/html"]


def test_the_text_of_a_cell_is_short(profile):
    lines = profile._repr_mimebundle_()["text/plain"].splitlines()
    assert lines[0] == repr(profile)
    assert lines[1].startswith("command: ") and EVIL + r"\u202e" in lines[1]
    assert lines[2].startswith("time: ") and lines[2].endswith(" s")
    assert lines[3:] == [f"finding: {found.title}" for found in profile.findings] and len(lines) == 5


def test_a_large_page_is_not_put_into_the_notebook(profile, monkeypatch):
    monkeypatch.setattr(_display, "LIMIT", 1000)
    text = profile._repr_html_()
    shown = Elements(text)
    assert [tag for tag, _ in shown.found] == ["p", "pre"] and len(text) < 500
    assert "more than a notebook should hold" in shown.text
    command = shown.text.partition("instead:")[2]
    assert command.startswith("plumb view '") and command.endswith("""a "'"'"'><b>$(x).plumb'""")


@pytest.mark.parametrize("script", [None, "exit 5", "exit 0"])
def test_without_the_viewer_there_is_text(profile, tmp_path, monkeypatch, script):
    other = tmp_path / "plumb"
    if script:
        other.write_text(f"#!/bin/sh\n{script}\n")
        other.chmod(0o755)
    monkeypatch.setenv("PLUMB_BINARY", str(other))
    assert profile._repr_html_() is None
    assert list(profile._repr_mimebundle_()) == ["text/plain"]


def test_a_closed_profile_has_its_text(profile):
    profile.close()
    assert profile._repr_mimebundle_()["text/plain"] == repr(profile)
