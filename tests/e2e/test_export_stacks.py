# SPDX-License-Identifier: Apache-2.0
"""Time lines have slices of Python frames, modules and CPU samples; stacks leave the import system out."""
import gzip
import json
import re

import pytest
from conftest import PLUMB, run_command
from plumbtest import export
from test_export import perfetto

import plumb as plumb_package

PROGRAM = """
import time, wave, torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(16, 16)

    def forward(self, x):
        return torch.relu(self.inner(x))

def busy():
    end = time.thread_time() + 0.3
    while time.thread_time() < end:
        pass

def step(net, x):
    net(x).sum().backward()

def main():
    net, x = Net(), torch.randn(4, 16)
    for _ in range(3):
        step(net, x)
    busy()

main()
"""


@pytest.fixture(scope="module")
def traced(torch_python, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stacks")
    (folder / "prog.py").write_text(PROGRAM)
    done = run_command(PLUMB, "run", "--trace", "--cpu", "-o", folder / "x.plumb", "--", torch_python, "prog.py",
                       cwd=folder, env={"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    return folder / "x.plumb"


def slices(path, category=None):
    events = json.loads(path.read_text())["traceEvents"]
    return [event for event in events if event["ph"] == "X" and category in (None, event.get("cat"))]


def edges(event):
    """In ns: µs with three digits."""
    start = round(event["ts"] * 1000)
    return start, start + round(event["dur"] * 1000)


def check_nesting(events):
    """On each thread, two slices lie one in the other or side by side."""
    threads = {}
    for event in sorted(events, key=lambda e: (edges(e)[0], -edges(e)[1])):
        open_ends = threads.setdefault((event["pid"], event["tid"]), [])
        start, end = edges(event)
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        assert not open_ends or end <= open_ends[-1], event
        open_ends.append(end)


def test_chrome_has_python_and_modules(traced, tmp_path):
    path = export(traced, tmp_path / "x.trace.json")
    drawn, operators = slices(path, "python_stack"), slices(path, "cpu_op")
    names = {event["name"].rpartition(": ")[2] for event in drawn}
    assert {"main", "step", "Net.forward", "inner", "Net"} <= names or {"main", "step", "forward"} <= names, names
    check_nesting(drawn + operators)
    forward = [event for event in drawn if event["name"].endswith("forward") and "prog.py" in event["name"]]
    relu = [event for event in operators if event["name"] == "aten::relu"]
    assert len(relu) == 3
    for event in relu:
        start, end = edges(event)
        assert any(edges(f)[0] <= start and end <= edges(f)[1] and f["tid"] == event["tid"] for f in forward)


def test_chrome_has_samples_beside(traced, tmp_path):
    path = export(traced, tmp_path / "x.trace.json")
    samples = slices(path, "cpu_sample")
    check_nesting(samples)
    assert not {event["tid"] for event in samples} & {event["tid"] for event in slices(path, "cpu_op")}
    busy = [edges(event) for event in samples if event["name"].endswith(": busy")]
    assert 0.2e9 < sum(end - start for start, end in busy) < 3e9
    names = [event["args"]["name"] for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "M"
             and event["name"] == "thread_name"]
    assert any(name.endswith(": CPU samples") for name in names), names
    assert not [event for event in samples if "<frozen importlib" in event["name"]]


def operators(path):
    with plumb_package.Profile(path) as profile:
        return sorted((node.name, node.exclusive["op.time"].sum, node.exclusive["op.time"].count)
                      for node in profile.operators if node.exclusive["op.time"].count)


def totals(path):
    found = {}
    for name, total, count in operators(path):
        before = found.get(name, (0, 0))
        found[name] = before[0] + total, before[1] + count
    return found


@pytest.mark.parametrize("name", ["x.trace.json", "x.pftrace"])
def test_what_is_drawn_is_not_read_back(traced, tmp_path, name):
    path = export(traced, tmp_path / name)
    back = tmp_path / "back.plumb"
    done = run_command(PLUMB, "import", path, "-o", back)
    assert done.returncode == 0, done.stderr
    mine, theirs = totals(traced), totals(back)
    assert {key: count for key, (_, count) in theirs.items()} == {key: count for key, (_, count) in mine.items()}
    assert all(abs(theirs[key][0] - mine[key][0]) < 1000 for key in mine)
    with plumb_package.Profile(traced) as first, plumb_package.Profile(back) as second:
        assert sum(1 for _ in first.spans()) == sum(1 for _ in second.spans())
        assert not second.environment.get("plumb.damaged")
        kinds = {row.fate for row in second.ledger} if hasattr(second, "ledger") else set()
        assert not kinds & {"damaged", "unused"}, [row for row in second.ledger]


def test_perfetto_has_them(traced, tmp_path):
    """In the file's texts; and as slices, where Perfetto's own definitions are there to read it."""
    path = export(traced, tmp_path / "x.pftrace")
    raw = path.read_bytes()
    assert b"CPU samples" in raw and b"forward" in raw
    trace = perfetto(path)
    assert not {"_find_and_load", "exec_module"} & {one["name"] for one in trace["drawn"]}
    assert {"busy", "main", "step"} <= {one["name"] for one in trace["drawn"]}
    assert any(track["name"] and track["name"].endswith(": CPU samples") for track in trace["named"].values())


def stacks(path):
    return {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in path.read_text().splitlines()}


def test_folded_stacks_have_no_import_system(traced, tmp_path):
    done = run_command(PLUMB, "export", traced, "-F", "folded", "-m", "cpu.time", "-o", tmp_path / "x.folded")
    assert done.returncode == 0, done.stderr
    found = (tmp_path / "x.folded").read_text()
    assert "importlib._bootstrap" not in found and "_find_and_load" not in found
    imports = [line for line in found.splitlines() if re.search(r"<module> \(prog.py:\d+\);<module> \(", line)]
    assert imports  # a module stands under the line that imports it
    with plumb_package.Profile(traced) as profile:
        whole = profile.root.inclusive["cpu.time"].sum
    assert sum(int(line.rpartition(" ")[2]) for line in found.splitlines()) == whole  # and nothing is lost


def test_speedscope_and_pprof_have_no_import_system(traced, tmp_path):
    path = tmp_path / "x.speedscope.json"
    assert run_command(PLUMB, "export", traced, "-m", "cpu.time", "-o", path).returncode == 0
    data = json.loads(path.read_text())
    frames = data["shared"]["frames"]
    used = {frames[number].get("file", "") for one in data["profiles"] for stack in one["samples"] for number in stack}
    assert used and not [file for file in used if file.startswith("<frozen importlib")]
    path = tmp_path / "x.pb.gz"
    assert run_command(PLUMB, "export", traced, "-m", "cpu.time", "-o", path).returncode == 0
    assert b"_find_and_load" not in gzip.decompress(path.read_bytes())
