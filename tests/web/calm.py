# SPDX-License-Identifier: Apache-2.0
"""Actions that end when the page has answered them: what a test reads after a click is there, however slow the machine is.

A page of plumb is calm when it waits for no answer, no frame and no timer. Then all is drawn, and the address has its values.
`keep_calm` makes the actions of Playwright on a page (click, press, goto…) return only then. Timers of a second and more, which
take back words such as "Copied", do not count. Keys and moves of the pointer that follow each other fast belong together, so
after one of them only what is drawn is waited for. `calm(page)` waits for the rest, too: `until` and `loaded` of test_pages.py do it.

PLUMB_SLOW_PAGES=4 makes the pages' processor 4 times slower: a test that reads too early then fails each time.
"""
import os

PATIENCE = 60  # seconds; a page that works for so long hangs

# What the page asks for is counted. It has to come before any code of the page.
SCRIPT = """(() => {
	const later = setTimeout.bind(window), forget = clearTimeout.bind(window), frame = requestAnimationFrame.bind(window),
		forgetFrame = cancelAnimationFrame.bind(window), ask = fetch.bind(window);
	const timers = new Map(), frames = new Set();
	let answers = 0;
	// An answer counts until its reader has run.
	const track = (promise) => {
		const end = () => later(() => answers--);
		answers++;
		promise.then(end, end);
		return promise;
	};
	window.fetch = (...words) => track(ask(...words).then((response) => {
		const read = response.arrayBuffer.bind(response);
		response.arrayBuffer = () => track(read());
		return response;
	}));
	window.setTimeout = (act, ms = 0, ...words) => {
		const timer = later(() => {
			timers.delete(timer);
			act(...words);
		}, ms);
		if (ms < 1000) timers.set(timer, ms);
		return timer;
	};
	window.clearTimeout = (timer) => {
		timers.delete(timer);
		forget(timer);
	};
	window.requestAnimationFrame = (act) => {
		const one = frame((time) => {
			frames.delete(one);
			act(time);
		});
		frames.add(one);
		return one;
	};
	window.cancelAnimationFrame = (one) => {
		frames.delete(one);
		forgetFrame(one);
	};
	/** "" when the page rests, otherwise what it waited for at last. `all`: also for pauses, and two frames long. */
	const rest = (all, ms) => new Promise((resolve) => {
		const end = performance.now() + ms;
		let calm = 0;
		const look = () => {
			const waits = [...timers.values()].filter((ms) => all || ms < 100);
			calm = answers || frames.size || waits.length ? 0 : calm + 1;
			if (calm > (all ? 2 : 0)) resolve("");
			else if (performance.now() > end) resolve(`${answers} answers, ${frames.size} frames, timers of [${waits}] ms`);
			else if (all) frame(look);
			else later(look, 4);
		};
		look();
	});
	Object.defineProperty(window, "plumbCalm", { value: { rest, track } });
})();"""

ACTIONS = {"Page": ["goto", "reload", "go_back", "go_forward", "set_viewport_size"], "Mouse": ["click", "dblclick"],
           "Locator": ["click", "dblclick", "check", "uncheck", "fill", "select_option"]}
MOVES = {"Keyboard": ["press", "type", "down", "up"], "Mouse": ["move", "down", "up", "wheel"], "Locator": ["press", "hover", "focus"]}


def calm(page, everything=True):
    for frame in page.frames:
        if not frame.is_detached():
            waits = frame.evaluate(f"window.plumbCalm && plumbCalm.rest({str(everything).lower()}, {PATIENCE * 1000})")
            assert not waits, f"the page is not calm after {PATIENCE} s: it waits for {waits}"


def keep_calm(context):
    """A page of the context, whose actions wait until it is calm."""
    context.add_init_script(SCRIPT)
    page = context.new_page()
    page.is_calm = True
    page.keyboard.page = page.mouse.page = page
    if slower := os.environ.get("PLUMB_SLOW_PAGES"):
        context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": float(slower)})
    return page


def patch(api):
    """Makes the actions of Playwright's classes (playwright.sync_api) wait on the pages of keep_calm."""
    for names, everything in (ACTIONS, True), (MOVES, False):
        for name, actions in names.items():
            for action in actions:
                setattr(getattr(api, name), action, waiting(getattr(getattr(api, name), action), everything))


def waiting(act, everything):
    def call(self, *words, **options):
        result = act(self, *words, **options)
        page = getattr(self, "page", self)  # editors have pages of their own, which are never calm
        if getattr(page, "is_calm", False):
            calm(page, everything)
        return result
    return call
