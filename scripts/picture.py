#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""picture.py OUTPUT.png COMMAND…: makes a picture of a terminal with the output of COMMAND, for the docs.

It draws with headless Chromium (Debian's chromium) and keeps colours.
"""
import html
import os
import re
import subprocess
import sys
import tempfile

COLOURS = {"1": "font-weight:600;color:#fff", "2": "color:#8b949e", "31": "color:#ff7b72",
           "32": "color:#7ee787", "33": "color:#e3b341", "36": "color:#79c0ff"}


def page(command, output):
    body = html.escape(output)
    body = re.sub("\x1b\\[([0-9;]*)m", lambda code: "</span><span style='" + ";".join(
        COLOURS.get(part, "") for part in code.group(1).split(";")) + "'>", body)
    return f"""<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; background: #0d1117; color: #c9d1d9; }}
pre {{ margin: 0; padding: 18px 22px; font: 13px/1.45 "DejaVu Sans Mono", monospace;
      display: inline-block; white-space: pre; }}
</style><pre><span style="color:#7ee787">$</span> <b>{html.escape(command)}</b>
<span>{body}</span></pre>"""


def main():
    output, command = sys.argv[1], sys.argv[2:]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    shown = " ".join(["plumb", *command[1:]])
    width = max(len(re.sub("\x1b\\[[0-9;]*m", "", line)) for line in [shown + "  ", *text.splitlines()])
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "page.html")
        with open(source, "w") as file:
            file.write(page(shown, text.rstrip()))
        size = f"{int(width * 7.83) + 48},{(text.rstrip().count(chr(10)) + 2) * 19 + 38}"
        subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                        "--force-device-scale-factor=1.5", f"--window-size={size}",
                        f"--screenshot={os.path.abspath(output)}", "file://" + source],
                       check=True, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
