#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How quickly the page of plumb view draws, in Chromium without a GPU.

    scripts/install-browser.sh python3
    build/bench_view 1048576 2000000 big.plumb     # bench/view.c
    bench/view_page.py big.plumb [AFTER] [--page flame|timeline|compare] [--height PIXELS]
    build/bench_view 0 0 full.plumb                # 40 full rows of 1500 boxes

It zooms in, moves to the sides and zooms out, by the wheel and by keys. A frame is the time between two of the browser's
frames while something is drawn; "drawing" is the part of it that the page's own code takes. Memory is that of the page's
process as the system counts it (proportional set size).
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/web"))
sys.path.append(subprocess.run([ROOT / "scripts/install-browser.sh", sys.executable], capture_output=True, text=True, check=True).stdout.strip())

from playwright.sync_api import sync_playwright

from browser import PLUMB, Viewer

FRAMES = """() => { window.frames_ = []; let last = performance.now();
    const step = (now) => { window.frames_.push(now - last); last = now; requestAnimationFrame(step); }; requestAnimationFrame(step); }"""
FLAME = "document.querySelector('.chart canvas')?.plumbTimes?.length && !document.querySelector('[aria-busy=true]')"
DRAWN = {"flame": FLAME, "compare": FLAME, "timeline": "document.querySelector('.lanes')?.dataset.spans > 0"}


def row(what, times):
    times = sorted(times)
    print(f"{what:28} {len(times):6}  median {statistics.median(times):6.1f} ms  95 % {times[int(len(times) * 0.95)]:6.1f} ms  max {times[-1]:6.1f} ms")


def is_ours(entry):
    """Is a process one that this program started? Others may run browsers, too."""
    while entry.name not in ("0", "1"):
        if entry.name == str(os.getpid()):
            return True
        entry = entry.parent / (entry / "stat").read_text().rpartition(")")[2].split()[1]
    return False


def page_memory():
    """MiB of the largest process of a page."""
    most = 0
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if is_ours(entry) and b"--type=renderer" in (entry / "cmdline").read_bytes():
                sizes = [int(line.split()[1]) for line in (entry / "smaps_rollup").read_text().splitlines() if line.startswith("Pss:")]
                most = max(most, sizes[0] / 1024)
        except OSError:
            pass
    return most


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("profile", nargs="+")
    parser.add_argument("--page", choices=["flame", "timeline", "compare"], default="flame")
    parser.add_argument("--values", default="", help="values of the page's address")
    parser.add_argument("--height", type=int, default=900, help="of the window")
    parser.add_argument("--picture", help="a PNG file to write")
    asked = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1520, "height": asked.height}, reduced_motion="reduce")
        page.set_default_timeout(60000)
        begin = time.monotonic()
        viewer = Viewer(*asked.profile)
        address = time.monotonic() - begin
        page.goto(f"{viewer.url}#1/{asked.page}{asked.values}")
        while not page.evaluate(DRAWN[asked.page]):
            page.wait_for_timeout(5)
        print(f"from the command to the address {address:.2f} s, to the first drawing {time.monotonic() - begin:.2f} s")
        box = page.locator(".chart canvas").first.bounding_box()
        page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 200)
        page.locator(".chart canvas").first.focus()
        page.evaluate(FRAMES)
        page.evaluate("document.querySelector('.chart canvas').plumbTimes.length = 0")
        for key in "w" * 12 + "d" * 12 + "a" * 12 + "s" * 12:
            page.keyboard.press(key)
            page.wait_for_timeout(30)
        if asked.page == "timeline":
            page.keyboard.down("Control")
        for _ in range(25):
            page.mouse.wheel(0, -60)
            page.wait_for_timeout(20)
        for _ in range(25):
            page.mouse.wheel(0, 60)
            page.wait_for_timeout(20)
        row("drawing", page.evaluate("document.querySelector('.chart canvas').plumbTimes"))
        row("frames", page.evaluate("window.frames_")[1:])
        print(f"memory of the page {page_memory():.0f} MiB")
        if asked.picture:
            page.screenshot(path=asked.picture)
        browser.close()
        viewer.close()


if __name__ == "__main__":
    main()
