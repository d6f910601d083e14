# SPDX-License-Identifier: Apache-2.0
"""Ranges of coroutines and greenlets belong to their task: each gets the time in which its task ran, and
what runs in it stands under it, however the tasks take turns."""
import glob
import json
import os
import subprocess
import sys

import pytest
from conftest import PLUMB, ROOT, Recording, run_command
from plumbtest import environment_for_programs

HEAD = """
import asyncio, atexit, collections, contextlib, ctypes, json, sys, threading, time
sys.path.insert(0, "PACKAGE")
from plumb import metric, span

taken = collections.Counter()
atexit.register(lambda: print(json.dumps(taken)))

def busy(name, ms):
    start = time.perf_counter_ns()
    while time.perf_counter_ns() < start + ms * 1_000_000:
        pass
    taken[name] += (time.perf_counter_ns() - start) / 1e6
""".replace("PACKAGE", str(ROOT / "python"))
TORCH = HEAD + """
import torch
from torch.profiler import record_function
x = torch.ones(4)
torch.sin(x)  # the first call of an operator can take long
"""


def interpreters():
    """This Python and one of each other version that is here."""
    found = {sys.version_info[:2]: sys.executable}
    for path in sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3"))):
        version = tuple(map(int, path.split("/versions/")[1].split("/")[0].split(".")[:2]))
        if version >= (3, 9):
            found.setdefault(version, path)
    return [pytest.param(path, id="{}.{}".format(*version)) for version, path in sorted(found.items())]


@pytest.fixture(params=interpreters())
def python(request):
    return request.param


def play(python, tmp_path, source, head=HEAD, options=()):
    program = tmp_path / "program.py"
    program.write_text(head + source)
    path = tmp_path / "run.plumb"
    done = run_command(PLUMB, "run", "-o", path, *options, "--", python, program, cwd=tmp_path,
                       env=environment_for_programs())
    assert done.returncode == 0, done.stderr
    return Recording(done, path)


def times(recording):
    """{range: ms of its own}."""
    return {row["name"]: row["exclusive"]["op.time"]["sum"] / 1e6 for row in recording.rows("range")}


def nothing_dropped(recording):
    return "nothing was dropped" in recording.stderr


def is_near(found, made, names):
    """Each range has the time that the program itself measured in it; the machine may be busy."""
    taken = json.loads(made.stdout.splitlines()[-1])
    return all(0.97 * taken[name] <= found[name] <= 1.3 * taken[name] + 40 for name in names)


FOUR = """
async def work(name):
    with span(name):
        for _ in range(8):
            busy(name, 10)
            metric("turns", 1)
            await asyncio.sleep(0)
async def main():
    await asyncio.gather(*(work(f"coro{i}") for i in range(4)))
asyncio.run(main())
"""


def metrics(recording, name, inside=""):
    """{innermost range: sum of the program's metric NAME}."""
    return {row["name"]: row["inclusive"][name]["sum"]
            for row in recording.report("--by", "range", "--metric", name, "--top", "0")["rows"]
            if row["inclusive"].get(name)}


def test_four_equal_coroutines(python, tmp_path):
    made = play(python, tmp_path, FOUR)
    found = times(made)
    assert sorted(found) == [f"coro{i}" for i in range(4)]
    assert is_near(found, made, list(found)), found
    assert metrics(made, "turns") == {f"coro{i}": 8 for i in range(4)}
    assert nothing_dropped(made)
    durations = {row["name"]: row["exclusive"]["op.duration"] for row in made.rows("range")}
    assert all(row["count"] == 1 and row["max"] > 3.5 * 80e6 for row in durations.values()), \
        "from beginning to end, with what others did meanwhile"


def test_four_equal_coroutines_of_pytorch(torch_python, tmp_path):
    source = FOUR.replace("with span(name):", "with record_function(name):").replace(
        'metric("turns", 1)', "torch.sin(x)")
    made = play(torch_python, tmp_path, source, TORCH)
    found = times(made)
    assert is_near(found, made, [f"coro{i}" for i in range(4)]), found
    calls = {row["name"]: row["inclusive"]["op.calls"]["sum"] for row in made.rows("range")}
    assert all(calls[f"coro{i}"] >= 8 for i in range(4)) and nothing_dropped(made), calls
    assert max(calls.values()) - min(calls.values()) <= 4, "what record_function calls itself"


ORDER = """
async def one(first):
    with span("A"):
        await asyncio.sleep(0)        # B opens its range
        metric("work", 1)             # under A
        await asyncio.sleep(0)
        with span("inside A"):
            await asyncio.sleep(0)
            metric("work", 10)
        metric("work", 100)
async def two():
    with span("B"):
        metric("work", 1000)
        await asyncio.sleep(0)
        metric("work", 10000)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        metric("work", 100000)        # A has ended
async def main():
    await asyncio.gather(one(1), two())
    metric("work", 1000000)
with span("whole"):
    asyncio.run(main())
"""


def test_work_after_a_turn_is_under_the_range_of_its_task(python, tmp_path):
    made = play(python, tmp_path, ORDER)
    assert metrics(made, "work") == {"whole": 1111111, "A": 111, "inside A": 10, "B": 111000}
    assert nothing_dropped(made)


AWAITED = """
async def deeper(name):
    with span("deeper " + name):
        await asyncio.sleep(0)
        metric("work", 1)
@contextlib.contextmanager
def manager(name):
    with span("manager " + name):
        yield
@contextlib.asynccontextmanager
async def async_manager(name):
    with span("async " + name):
        await asyncio.sleep(0)
        yield
        await asyncio.sleep(0)
class Entered:
    def __init__(self, name):
        self.span = span("entered " + name)
    async def __aenter__(self):
        await asyncio.sleep(0)
        self.span.__enter__()
    async def __aexit__(self, *_):
        self.span.__exit__(None, None, None)
async def work(name):
    for _ in range(3):
        await deeper(name)
        with manager(name):
            await asyncio.sleep(0)
            metric("work", 1)
        async with async_manager(name):
            await asyncio.sleep(0)
            metric("work", 1)
        async with Entered(name):
            await asyncio.sleep(0)
            metric("work", 1)
    metric("work", 1000)
async def main():
    await asyncio.gather(work("1"), work("2"), work("3"))
asyncio.run(main())
"""


def test_ranges_of_what_a_task_awaits(python, tmp_path):
    made = play(python, tmp_path, AWAITED)
    assert metrics(made, "work") == {f"{kind} {i}": 3 for i in (1, 2, 3)
                                     for kind in ("deeper", "manager", "async", "entered")}
    assert nothing_dropped(made)


CANCELLED = """
async def work(name):
    try:
        with span(name):
            try:
                await asyncio.sleep(60)
            finally:
                metric("work", 1)
    finally:
        metric("work", 100)
async def failing(name):
    with span(name):
        await asyncio.sleep(0)
        raise ValueError
async def main():
    tasks = [asyncio.ensure_future(work(f"cancelled {i}")) for i in range(3)]
    for _ in range(3):
        await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, *(failing(f"failing {i}") for i in range(3)), return_exceptions=True)
    thrown = work("thrown")
    thrown.send(None)
    metric("work", 100)
    thrown.close()
    lost = work("lost")
    lost.send(None)
    del lost
asyncio.run(main())
"""


def test_cancelled_and_failing_tasks(python, tmp_path):
    made = play(python, tmp_path, CANCELLED)
    found = metrics(made, "work")
    assert {name: found.get(name) for name in [f"cancelled {i}" for i in range(3)] + ["thrown"]} == {
        **{f"cancelled {i}": 1 for i in range(3)}, "thrown": 1}
    counts = {row["name"]: row["exclusive"]["op.duration"]["count"] for row in made.rows("range")}
    assert counts == {name: 1 for name in ("thrown", "lost", *(f"{kind} {i}" for i in range(3)
                                           for kind in ("cancelled", "failing")))}
    assert nothing_dropped(made)


def test_loops_on_several_threads(python, tmp_path):
    made = play(python, tmp_path, """
async def work(name):
    with span(name):
        for _ in range(4):
            metric("work", 1)
            await asyncio.sleep(0.001)
async def main(thread):
    await asyncio.gather(*(work(f"{thread}.{i}") for i in range(3)))
threads = [threading.Thread(target=lambda i=i: asyncio.run(main(i))) for i in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
""")
    assert metrics(made, "work") == {f"{t}.{i}": 4 for t in range(3) for i in range(3)}
    assert nothing_dropped(made)


def test_ranges_that_are_popped_without_a_name(python, tmp_path):
    """As NVTX does: a pop closes the newest range of the same task."""
    made = play(python, tmp_path, """
entry = ctypes.CDLL(None).plumb_annotate_v1
entry.restype = ctypes.POINTER(ctypes.c_void_p)
table = entry()
push = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(table[1])
pop = ctypes.CFUNCTYPE(None)(table[2])
async def work(name):
    for _ in range(3):
        push(name)
        await asyncio.sleep(0)
        metric("work", 1)
        push(b"inner " + name)
        await asyncio.sleep(0)
        metric("work", 10)
        pop()
        metric("work", 100)
        pop()
async def main():
    await asyncio.gather(work(b"a"), work(b"b"), work(b"c"))
asyncio.run(main())
""")
    assert metrics(made, "work") == {**{name: 333 for name in "abc"},
                                     **{f"inner {name}": 30 for name in "abc"}}
    assert nothing_dropped(made)


def test_a_range_that_another_task_closes(python, tmp_path):
    made = play(python, tmp_path, """
handed = span("handed")
async def opens():
    handed.__enter__()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
async def closes():
    with span("closer"):
        await asyncio.sleep(0)
        handed.__exit__(None, None, None)
        metric("work", 1)
async def main():
    await asyncio.gather(opens(), closes())
asyncio.run(main())
""")
    assert metrics(made, "work") == {"closer": 1}
    assert set(times(made)) == {"handed", "closer"} and nothing_dropped(made)


def test_what_cannot_be_told_is_in_the_default_ledger(tmp_path):
    """Plain generators that take turns, and more tasks than plumb keeps apart."""
    made = play(sys.executable, tmp_path, """
entry = ctypes.CDLL(None).plumb_annotate_v1
def work(name):
    with torch.profiler.record_function(name):
        yield
        yield
one, two = work("one"), work("two")
for generator in (one, two, one, two):
    next(generator)
for generator in (one, two):
    next(generator, None)
""", TORCH)
    assert "ended out of order" in made.stderr and "nothing was dropped" not in made.stderr
    many = play(sys.executable, tmp_path, """
async def work():
    with span("many"):
        await asyncio.sleep(0)
async def main():
    await asyncio.gather(*(work() for _ in range(8500)))
asyncio.run(main())
""")
    assert "tasks that plumb cannot tell apart" in many.stderr


def test_a_task_in_a_child_that_is_forked_while_it_runs(tmp_path):
    made = play(sys.executable, tmp_path, """
import os
async def work(name):
    with span(name):
        await asyncio.sleep(0)
        if name == "a":
            child = os.fork()
            metric("work", 1)
            with span("after"):
                await asyncio.sleep(0)
                metric("work", 10)
            if not child:
                os._exit(0)
            os.wait()
async def main():
    await asyncio.gather(work("a"), work("b"))
asyncio.run(main())
""")
    found = metrics(made, "work")
    assert found["a"] == 11 and found["after"] == 20, "the child has forgotten its parent's range"


def test_samples_stand_under_the_range_of_their_task(python, tmp_path):
    """Each task computes in a function of its own, which says whose a sample is. How often the kernel looks at a thread
    depends on what else runs, so they do not have the same."""
    made = play(python, tmp_path, """
def make(name):
    source = f"def of_{name}(end):\\n while time.thread_time_ns() < end: pass"
    exec(source, globals())
    return globals()[f"of_{name}"]
async def work(name):
    compute = make(name)
    with span(name):
        for _ in range(8):
            compute(time.thread_time_ns() + 20_000_000)
            await asyncio.sleep(0)
async def main():
    await asyncio.gather(*(work(f"coro{i}") for i in range(4)))
asyncio.run(main())
""", options=["--cpu"])
    rows = {row["id"]: row for row in
            made.report("--by", "context", "--metric", "cpu.time", "--top", "0")["contexts"]}

    def ranges_around(row):
        return {above["name"] for above in around(row) if above["kind"] == "range"}

    def around(row):
        while row["parent"]:
            row = rows[row["parent"]]
            yield row

    found = {row["name"]: ranges_around(row) for row in rows.values() if row["name"].startswith("of_coro")}
    assert found == {name: {name[3:]} for name in found}
    # With 3.11, a coroutine's own frames may be unknown in a signal's handler.
    assert len(found) == 4 or "3.11" in subprocess.run([python, "-V"], capture_output=True, text=True).stdout
    ns = sum(row["inclusive"]["cpu.time"]["sum"] for row in rows.values() if row["kind"] == "range")
    assert ns > 0.8 * 4 * 8 * 20e6, rows


# ---- greenlets ----

@pytest.fixture(scope="session")
def greenlet_python():
    """A Python that has greenlet: this one, or one that $PLUMB_GREENLET_PYTHON names."""
    for python in (sys.executable, os.environ.get("PLUMB_GREENLET_PYTHON")):
        if python and not subprocess.run([python, "-c", "import greenlet"], capture_output=True).returncode:
            return python
    pytest.skip("there is no greenlet here")


def test_greenlets(greenlet_python, tmp_path):
    made = play(greenlet_python, tmp_path, """
import greenlet
main = greenlet.getcurrent()
def step(name):
    with span("step " + name):
        main.switch()
        metric("work", 1)
def work(name):
    with span(name):
        for _ in range(8):
            busy(name, 10)
            step(name)
all_ = [greenlet.greenlet(work) for _ in range(4)]
with span("main"):
    for i, one in enumerate(all_):
        one.switch(f"green{i}")
    while any(not one.dead for one in all_):
        for one in all_:
            if not one.dead:
                one.switch()
    try:
        greenlet.greenlet(lambda: 1 / 0).switch()
    except ZeroDivisionError:
        metric("work", 1000)
""")
    found = times(made)
    assert is_near(found, made, [f"green{i}" for i in range(4)]), found
    assert metrics(made, "work") == {"main": 1000, **{f"green{i}": 8 for i in range(4)},
                                     **{f"step green{i}": 8 for i in range(4)}}
    assert nothing_dropped(made)
