# SPDX-License-Identifier: Apache-2.0
"""The extension for VS Code: its parts by node, its page in Chromium with a stand-in for the editor, and its package."""
import base64
import json
import os
import re
import subprocess
import urllib.error
import urllib.request
import zipfile

import pytest

from web.browser import PLUMB, ROOT, WEB, recorded
from web.calm import calm
from web.planted import planted

VSCODE = ROOT / "vscode"
TRAIN = "programs/hf-train-fault"
ORIGIN = "https://webview.test"
EDITOR = """
window.said = [];
window.acquireVsCodeApi = () => ({
	postMessage: async (message) => {
		said.push(message);
		if (message.type !== "ask") return;
		const [status, body] = await plumbCalm.track(askHost(message.answer));
		const bytes = Uint8Array.from(atob(body), (letter) => letter.charCodeAt(0));
		window.postMessage({ type: "answer", id: message.id, status, body: bytes.buffer }, "*");
	},
	getState: () => JSON.parse(sessionStorage.getItem("state")),
	setState: (state) => sessionStorage.setItem("state", JSON.stringify(state)),
});
"""


@pytest.fixture(scope="module")
def modules(packages):
    """The packages of vscode/package-lock.json."""
    if subprocess.run([ROOT / "scripts/vsix.sh", "--packages"], capture_output=True, timeout=300).returncode:
        pytest.skip("cannot install the packages of vscode/package-lock.json")
    return VSCODE / "node_modules"


@pytest.fixture(scope="module")
def html(modules, tmp_path_factory):
    """The HTML of the extension's page."""
    out = tmp_path_factory.mktemp("page") / "page.cjs"
    subprocess.run([modules / ".bin/esbuild", "src/page.ts", "--format=cjs", f"--outfile={out}", "--log-level=error"], cwd=VSCODE, check=True, timeout=60)
    script = "const {pageHtml} = require(process.argv[1]); console.log(pageHtml('N0nce', process.argv[2], process.argv[2] + '/app.js', process.argv[2] + '/app.css'))"
    return subprocess.run(["node", "-e", script, out, ORIGIN], capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.fixture(scope="module")
def bundle(packages, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundle")
    subprocess.run(["node", "build.mjs", folder], cwd=WEB, check=True, timeout=60)
    return folder


@pytest.fixture
def webview(open_page, viewers, html, bundle):
    """The page as the editor shows it; what it asks goes to a real plumb."""
    address = viewers(TRAIN)

    def ask(answer):
        try:
            with urllib.request.urlopen(f"{address}api/1/{answer}", timeout=20) as reply:
                return [reply.status, base64.b64encode(reply.read()).decode()]
        except urllib.error.HTTPError as error:
            return [error.code, base64.b64encode(error.read()).decode()]

    def serve(route):
        name = route.request.url.removeprefix(ORIGIN).lstrip("/")
        if name in ("app.js", "app.css"):
            return route.fulfill(path=bundle / name)
        assert name == "", f"the page wants {name}"
        return route.fulfill(body=html.replace("<body>", '<body class="vscode-dark" data-vscode-theme-kind="vscode-dark">'), content_type="text/html")

    page = open_page(None)
    page.expose_function("askHost", ask)
    page.add_init_script(EDITOR)
    page.route("**/*", serve)
    page.goto(f"{ORIGIN}/")
    return page


def said(page, kind):
    return page.evaluate(f"said.filter((one) => one.type === '{kind}')")


def shows(page, name):
    page.wait_for_selector(f"nav a[aria-current=page]:has-text('{name}')")


def test_units(modules, folder, tmp_path, tmp_path_factory):
    """Also the whole extension, with a stand-in for the editor and a real plumb."""
    subprocess.run(["node", "build.mjs", "--units", tmp_path], cwd=VSCODE, check=True, timeout=60)
    done = subprocess.run(["node", "--test", *tmp_path.glob("*.cjs")], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PLUMB": str(PLUMB), "PROFILE": str(recorded(TRAIN, folder)), "NATIVE": str(recorded("programs/cuda-fault", folder)),
                               "STALLS": str(planted(tmp_path_factory.mktemp("planted")) / "run.plumb"), "STALLED": str(ROOT / "tests/data/why/stalls.cu"),
                               "CUDA": str(ROOT / "tests/accuracy/programs/stages.cu")})
    assert done.returncode == 0, done.stdout


def test_types(modules):
    done = subprocess.run([modules / ".bin/tsc", "--noEmit"], cwd=VSCODE, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout


def test_page_asks_the_editor_and_keeps_its_state(webview, picture):
    webview.wait_for_selector("main section")
    assert webview.evaluate("document.documentElement.dataset.look") == "dark"  # as the editor
    assert said(webview, "ask")[0] == {"type": "ask", "id": 1, "answer": "about"}
    webview.get_by_role("link", name="Kernels", exact=True).click()
    webview.wait_for_selector("text=line of your code")
    assert said(webview, "state")[-1] == {"type": "state", "fragment": "#1/kernels"}
    assert webview.url == f"{ORIGIN}/"
    assert webview.get_by_role("button", name="Copy a link to this view").count() == 0  # nobody could open it
    picture(webview, "vscode-kernels")
    webview.reload()  # what the editor does with a page that was hidden
    webview.wait_for_selector("text=line of your code")
    shows(webview, "Kernels")


def test_table_is_saved_by_the_editor(webview):
    webview.get_by_role("link", name="Kernels", exact=True).click()
    webview.wait_for_selector("text=line of your code")
    webview.get_by_role("button", name="CSV").first.click()
    webview.wait_for_selector("[role=status]:has-text('saved')", state="attached")
    [message] = said(webview, "save")
    assert message["name"].endswith(".csv") and message["text"].count("\n") > 5


def test_editor_shows_a_place_and_a_frame_opens_its_line(webview, picture):
    webview.wait_for_selector("main section")
    webview.evaluate("window.postMessage({type: 'show', fragment: '#1/flame?search=collate'}, '*')")
    calm(webview)
    shows(webview, "Flame")
    webview.wait_for_selector("main canvas")
    assert webview.locator("main input[type=search]").input_value() == "collate"
    webview.evaluate("window.postMessage({type: 'show', fragment: '#1/flame?metric=op.time'}, '*')")
    calm(webview)
    boxes = webview.locator("main canvas").first
    boxes.focus()
    webview.keyboard.press("ArrowDown")
    button = webview.get_by_role("button", name=re.compile(r"^Open .*\.py"))
    for _ in range(12):
        calm(webview)
        if button.count():
            break
        webview.keyboard.press("ArrowDown")
    picture(webview, "vscode-flame")
    button.first.click()
    [message] = said(webview, "open")
    assert message["file"].endswith(".py") and (message["line"] is None or message["line"] > 0)


def test_package(modules, tmp_path):
    """What is in it, and nothing else; its version is plumb's."""
    if not (WEB / "dist/app.js").exists():
        subprocess.run(["npm", "run", "-s", "build"], cwd=WEB, check=True, timeout=60)
    done = subprocess.run([ROOT / "scripts/vsix.sh"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    version = (ROOT / "VERSION").read_text().strip()
    assert done.stdout.strip().endswith(f"dist/plumb-{version}.vsix")
    with zipfile.ZipFile(done.stdout.strip()) as package:
        names = {name for name in package.namelist() if name.startswith("extension/")}
        assert names == {f"extension/{name}" for name in ("package.json", "readme.md", "LICENSE.txt", "media/app.js", "media/app.css", "dist/extension.js")}
        assert f'Version="{version}"' in package.read("extension.vsixmanifest").decode()
        code = package.read("extension/dist/extension.js").decode()
        described = json.loads(package.read("extension/package.json"))
    # What other editors and Open VSX ask for: a licence, and nothing that only Microsoft's has.
    assert described["license"] == "Apache-2.0" and described["engines"] == {"vscode": "^1.80.0"}
    assert not {"enabledApiProposals", "extensionDependencies", "extensionPack"} & set(described)
    assert "eval(" not in code and "https://" not in code
