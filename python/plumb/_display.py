# SPDX-License-Identifier: Apache-2.0
"""How a notebook shows a profile: the page of `plumb view`, in a frame that can neither read nor change the notebook."""
from __future__ import annotations

import html
import os
import shlex
import sqlite3
import subprocess
import tempfile

from . import _command
from ._text import printable

HEIGHT = 640  # pixels
LIMIT = 16 << 20  # bytes of the page: the notebook file keeps all of them
SECONDS = 120  # to make the page

FRAME = ('<iframe sandbox="allow-scripts allow-downloads" title="{title}" width="100%" height="{height}" '
         'style="border: 1px solid #8888" srcdoc="{page}"></iframe>')
TOO_LARGE = ("<p>The page of this profile has {size} MiB. That is more than a notebook should hold ({limit} MiB). Run this in a "
             "terminal instead:</p><pre>{command}</pre>")


def summary(profile):
    """A few lines of text about PROFILE."""
    lines = [repr(profile)]
    try:
        run, findings = profile.run, profile.findings
    except (sqlite3.Error, ValueError, LookupError):  # it is closed, or damaged
        return lines[0]
    if run.command:
        lines.append(f"command: {run.command}")
    if run.wall_ns is not None:
        lines.append(f"time: {run.wall_ns / 1e9:.3g} s")
    lines += [f"finding: {found.title}" for found in findings[:3]]
    if len(findings) > 3:
        lines.append(f"and {len(findings) - 3} more findings: profile.findings")
    return "\n".join(printable(line.replace("\n", " ")) for line in lines)


def page(path):
    """The page of `plumb view --html` for the file PATH; None if plumb makes none."""
    with tempfile.TemporaryDirectory(prefix="plumb-") as folder:
        out = os.path.join(folder, "page.html")
        try:
            done = subprocess.run([_command.binary(), "view", "--html", out, os.path.abspath(path)],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=SECONDS)
        except (OSError, subprocess.TimeoutExpired):
            return None
        if done.returncode != 0 or not os.path.exists(out):
            return None
        with open(out, encoding="utf-8", errors="replace") as file:
            return file.read()


def frame(path):
    """HTML that shows the profile PATH; None if plumb makes no page, as without its viewer."""
    made = page(path)
    if made is None:
        return None
    size = len(made.encode())
    if size > LIMIT:
        command = f"plumb view {shlex.quote(os.path.abspath(path))}"
        return TOO_LARGE.format(size=-(-size >> 20), limit=LIMIT >> 20,
                                command=html.escape(printable(command)))
    name = os.path.basename(path)
    return FRAME.format(title=html.escape(printable(f"plumb view {name}")), height=HEIGHT, page=html.escape(made))
