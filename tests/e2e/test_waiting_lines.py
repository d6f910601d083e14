# SPDX-License-Identifier: Apache-2.0
"""At which line a thread waits (`plumb run --cpu`), compared with what the program itself finds."""
import json

import pytest
from plumbtest import PROGRAMS, lines_of
from test_python_walker import matrix
from test_waiting import AWAY, LATE, METRIC, OPTIONS, SUPPORTED, contexts, samples, waiting


@pytest.mark.parametrize("python", matrix(SUPPORTED))
def test_lines_and_shares(record, python):
    program = PROGRAMS / "waiting_lines.py"
    made = record(python, program, options=OPTIONS)
    assert made.returncode == 0, made.stderr
    truth, lines = json.loads(made.stdout), lines_of(program)
    found = waiting(made)
    whole = sum(truth.values())
    for name, ns in truth.items():
        assert abs(found.get(name, 0) - ns) < 0.08 * whole, (name, truth, found)
    assert found.get("computes", 0) < 0.08 * whole
    # At the very line, whatever called functions lie below it.
    at = dict.fromkeys(lines, 0)
    for path, ns in contexts(made):
        for kind, name, file, line in path:
            name = name.rpartition(".")[2]
            if kind == "python" and file == program.name and name in at:
                assert line == lines[name], path
                at[name] += ns
    assert at == {name: found[name] for name in at}
    # Two threads, and the report by line names them.
    threads = [row for row in made.report("--by", "thread", "--top", "0", *METRIC)["rows"]
               if row["inclusive"].get("wait.time", {}).get("sum", 0) > 0.3e9]
    assert len(threads) == 2
    by_line = {row["user_line"] for row in made.report("--by", "line", "--top", "0", *METRIC)["rows"]
               if row["exclusive"].get("wait.time", {}).get("sum", 0) > 0.02 * whole}
    assert by_line >= set(lines.values())
    got = samples(made)
    assert got["received"] > 20 and got["attributed"] > 0.9 * got["received"] and not got["dropped"]


def test_many_threads_take_turns(record, any_torch_python, tmp_path):
    """All their time is told; its place for those whose turn came."""
    program = tmp_path / "many.py"
    program.write_text(
        "import threading, time, torch\n"
        "x = torch.ones(2)\n"
        "def waits():\n"
        "    torch.neg(x)\n"
        "    stop.wait()\n"
        "stop = threading.Event()\n"
        "threads = [threading.Thread(target=waits) for _ in range(400)]\n"
        "[t.start() for t in threads]\n"
        "begin = time.monotonic_ns()\n"
        "time.sleep(3)\n"
        "print(time.monotonic_ns() - begin)\n"
        "stop.set()\n"
        "[t.join() for t in threads]\n")
    made = record(any_torch_python, program, options=(*OPTIONS, "--limit", "1G"))
    assert made.returncode == 0, made.stderr
    whole, found, unseen = 400 * int(made.stdout), waiting(made), waiting(made, "native")
    seen = found["waits"]
    assert seen > 0.2 * whole  # on a busy machine turns come late
    assert 0.9 * whole < seen + unseen.get("[waiting]", 0) < 1.25 * whole


def test_the_line_that_waits_for_a_batch(record, torch_python, tmp_path):
    """As long as the program itself finds: in the worker each item's sleep, and what the loop did not compute."""
    program = tmp_path / "loads.py"
    program.write_text(
        "import json, time, torch\n"
        "from torch.utils.data import DataLoader, Dataset\n"
        "class Slow(Dataset):\n"
        "    def __len__(self): return 30\n"
        "    def __getitem__(self, i):\n"
        "        begin = time.monotonic_ns()\n"
        "        time.sleep(0.05)  # @item\n"
        "        return time.monotonic_ns() - begin\n"
        "if __name__ == '__main__':\n"
        "    loader = DataLoader(Slow(), batch_size=2, num_workers=1, multiprocessing_context='fork')\n"
        "    item, batch = 0, time.monotonic_ns() - time.thread_time_ns()\n"
        "    for slept in loader:  # @batch\n"
        "        item += int(slept.sum())\n"
        "    print(json.dumps({'item': item, 'batch': time.monotonic_ns() - time.thread_time_ns() - batch}))\n")
    made = record(torch_python, program, options=OPTIONS,
                  env={"OMP_NUM_THREADS": "1"})
    assert made.returncode == 0, made.stderr
    truth = json.loads(made.stdout)
    lines, at = lines_of(program), {}
    for path, ns in contexts(made):
        mine = [line for kind, _, file, line in path if kind == "python" and file == program.name]
        names = [name.rpartition(".")[2] for kind, name, _, _ in path]
        if mine:
            # A forked worker's stack begins with its parent's.
            key = (mine[-1], "_worker_loop" in names)
            at[key] = at.get(key, 0) + ns
    assert 0.85 * truth["item"] < at[lines["item"], True] < 1.05 * truth["item"], truth
    assert 0.7 * truth["batch"] < at[lines["batch"], False] < 1.05 * truth["batch"], truth
    by_line = made.report("--by", "line", "--top", "0", *METRIC)["rows"]
    # The thread that feeds the worker waits as long, at no line of the program.
    assert {row["user_line"] for row in by_line[:3]} >= {lines["item"], lines["batch"]}


def test_lines_inside_ranges_and_operators(record, torch_python, tmp_path):
    program = tmp_path / "inside.py"
    program.write_text(
        AWAY + "import torch\n"
        "class Once(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(context, x):\n"
        "        time.sleep(0.3)  # @operator\n"
        "        return x * 1\n"
        "    @staticmethod\n"
        "    def backward(context, gradient): return gradient\n"
        "def helper():\n"
        "    time.sleep(0.3)  # @helper\n"
        "def main():\n"
        "    Once.apply(torch.ones(2))  # @call\n"
        "    with torch.autograd.profiler.record_function('outer'):\n"
        "        time.sleep(0.3)  # @outer\n"
        "        with torch.autograd.profiler.record_function('inner'):\n"
        "            time.sleep(0.3)  # @inner\n"
        "            helper()\n"
        "timed('main', main)\n"
        "print(took['main'])\n")
    made, lines, found = record(torch_python, program, options=OPTIONS), lines_of(program), {}
    for path, ns in contexts(made):
        steps = []
        for kind, name, file, line in path:
            if kind in ("operator", "range"):
                steps.append(name)
            elif file == program.name and line in lines.values():
                steps.append(next(mark for mark in lines if lines[mark] == line))
        if steps:
            key = " > ".join(steps)
            found[key] = found.get(key, 0) + ns
    whole = int(made.stdout)
    for path in ("call > Once > operator", "outer > outer", "outer > inner > inner",
                 "outer > inner > helper"):
        assert 0.18e9 < found.get(path, 0) < 0.3e9 + (whole - 1.2e9) + LATE, (path, found, whole)
    assert 1.0e9 < sum(found.values()) < whole + LATE, (found, whole)
