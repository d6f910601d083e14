# SPDX-License-Identifier: Apache-2.0
"""plumb/monitor.h as another tool uses it: events of frameworks and of the driver with their arguments,
call paths by layers, alone and beside `plumb run`."""
import collections
import json
import re
import subprocess
import sys

import pytest
from conftest import BUILD, LIBPLUMB, PLUMB, ROOT, run_command, torch_version
from plumbtest import PROGRAMS, environment_for_programs, lines_of, run_program
from test_mock_gpu import NEWEST, mock_environment

(OPERATOR, RANGE, COMPILED, TENSOR_ALLOC, TENSOR_FREE, LAUNCH, COPY, SET, DEVICE_ALLOC, DEVICE_FREE,
 SYNC) = range(11)
BEGIN, END = 0, 1
BACKWARD = 1
LAYER_PYTHON, LAYER_OPERATOR, LAYER_RANGE, LAYER_GPU = 1, 4, 8, 32
LINES = lines_of(PROGRAMS / "monitored.py")


@pytest.fixture(scope="session")
def recorder(tmp_path_factory):
    """Compiled with the public header alone, and linked with nothing."""
    output = tmp_path_factory.mktemp("recorder") / "recorder.so"
    subprocess.run(["gcc", "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC",
                    "-shared", f"-I{ROOT}/include", "-o", str(output),
                    str(ROOT / "tests/e2e/monitor/recorder.c"), "-lpthread"], check=True)
    return output


def watch(recorder, folder, command, environment=None, plumb=False, layers=None, frames=None):
    """(process, events) of a command that the recorder watched, below `plumb run` when asked."""
    out = folder / "events.jsonl"
    preload = f"{recorder}" if plumb else f"{LIBPLUMB} {recorder}"
    if plumb:
        command = [PLUMB, "run", "-o", folder / "run.plumb", "--tool", recorder, "--", *command]
        preload = ""
    more = {"LD_PRELOAD": preload} if preload else {}
    if layers is not None:
        more["RECORDER_LAYERS"] = str(layers)
    if frames is not None:
        more["RECORDER_FRAMES"] = str(frames)
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=120, cwd=folder, stdin=subprocess.DEVNULL,
                          env=environment_for_programs(RECORDER_OUT=str(out), **more,
                                                       **(environment or {})))
    assert done.returncode == 0, done.stderr
    return done, [json.loads(line) for line in out.read_text().splitlines()]


def named(events, kind, phase=BEGIN):
    return collections.Counter(event["name"] for event in events
                               if event["kind"] == kind and event["phase"] == phase)


def steps(event):
    """The path, the program's own Python frames as function:line."""
    found = []
    for frame in event["path"]:
        if frame["kind"] != 1:
            found.append(frame["name"])
        elif (frame["file"] or "").endswith("monitored.py"):
            found.append(f"{frame['name'].rpartition('.')[2]}:{frame['line']}")
    return found


@pytest.fixture(scope="module")
def events(torch_python, recorder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("watched")
    _, events = watch(recorder, folder, [torch_python, PROGRAMS / "monitored.py"])
    assert not list(folder.glob("*.plumb")) and not list(folder.glob("**/*.region")), \
        "without plumb run nothing is written"
    return events


def test_every_operator_begins_and_ends(events):
    begins, ends = named(events, OPERATOR), named(events, OPERATOR, END)
    assert begins == ends
    assert begins["aten::mul"] == 2 + 2 and begins["aten::sin"] == 1
    assert {event["data"] for event in events} == {7}
    for thread in {event["thread"] for event in events}:
        open_ = []
        for event in (event for event in events if event["thread"] == thread):
            if event["kind"] > COMPILED:
                continue
            if event["phase"] == BEGIN:
                open_.append(event)
            else:
                begin = open_.pop()
                assert (begin["name"], begin["kind"]) == (event["name"], event["kind"])
                assert begin["time"] <= event["time"] and begin["path"] == event["path"] or \
                    begin["name"].startswith("autograd::engine::")
        assert not open_


def test_paths_of_operators(events):
    mul, *_ = [event for event in events if event["name"] == "aten::mul"]
    assert steps(mul)[-3:] == [f"train:{LINES['backward']}", f"scale:{LINES['mul']}", "aten::mul"]
    sin, = [event for event in events if event["name"] == "aten::sin" and event["phase"] == BEGIN]
    assert steps(sin) == [f"on_thread:{LINES['sin']}", "aten::sin"]
    assert sin["thread"] != mul["thread"]


def test_backward_finds_its_forward(events):
    forward = [event for event in events if event["name"] == "aten::mul"
               and event["phase"] == BEGIN and event["sequence"] >= 0]
    backward = [event for event in events if event["name"] == "MulBackward0"
                and event["phase"] == BEGIN]
    assert len(backward) == 2 and all(event["flags"] & BACKWARD for event in backward)
    assert [event["sequence"] for event in backward] == [event["sequence"] for event in forward]
    for event in backward:
        path = steps(event)
        assert path[-1] == "MulBackward0" and "aten::mul" in path
        assert event["path"][-1]["flags"] & BACKWARD


def test_tensors_and_shapes(torch_python, recorder, tmp_path):
    shapes, memory = 1, 2
    _, events = watch(recorder, tmp_path, [torch_python, PROGRAMS / "monitored.py"],
                      environment={"RECORDER_RECORD": str(shapes | memory)})
    sin, = [event for event in events if event["name"] == "aten::sin" and event["phase"] == BEGIN]
    assert "float32[2]" in sin["shapes"]
    at = events.index(sin)
    made = next(event for event in events[at:] if event["kind"] == TENSOR_ALLOC
                and event["thread"] == sin["thread"])
    assert made["name"] == "cpu" and made["device"] == -1 and made["bytes"] >= 2 * 4
    assert steps(made)[:2] == [f"on_thread:{LINES['sin']}", "aten::sin"]
    assert any(event["kind"] == TENSOR_FREE and event["address"] == made["address"]
               for event in events[events.index(made):])


def test_tensors_are_told_only_when_asked(events):
    assert not [event for event in events if event["kind"] in (TENSOR_ALLOC, TENSOR_FREE)]
    assert not [event for event in events if event["shapes"]]


def test_ranges_are_told(events):
    assert named(events, RANGE) == named(events, RANGE, END) == {"marked": 1}
    neg, = [event for event in events if event["name"] == "aten::neg" and event["phase"] == BEGIN]
    assert steps(neg)[-3:] == ["marked", f"train:{LINES['neg']}", "aten::neg"]


def test_compiled_regions(events, torch_python):
    if torch_version(torch_python) < (2, 0):
        pytest.skip("this PyTorch has no torch.compile")
    regions = named(events, COMPILED)
    assert sum(regions.values()) == 2 and regions == named(events, COMPILED, END)
    assert all(name.startswith("Torch-Compiled Region") for name in regions)
    cos = [event for event in events if event["name"] == "aten::cos" and event["phase"] == BEGIN]
    assert any(any(step.startswith("Torch-Compiled Region") for step in steps(event))
               for event in cos)


def test_layers_are_chosen(torch_python, recorder, tmp_path):
    command = [torch_python, PROGRAMS / "monitored.py"]
    _, events = watch(recorder, tmp_path, command, layers=LAYER_OPERATOR)
    assert {frame["kind"] for event in events for frame in event["path"]} == {3}
    mul = next(event for event in events if event["name"] == "aten::mul")
    assert steps(mul) == ["aten::mul"]
    _, events = watch(recorder, tmp_path, command, layers=LAYER_PYTHON | LAYER_RANGE)
    assert {frame["kind"] for event in events for frame in event["path"]} == {1, 4}


def test_the_innermost_frames_are_stored(torch_python, recorder, tmp_path):
    _, events = watch(recorder, tmp_path, [torch_python, PROGRAMS / "monitored.py"], frames=2)
    mul = next(event for event in events if event["name"] == "aten::mul")
    assert mul["frames"] == 4 and len(mul["path"]) == 2
    assert steps(mul) == [f"scale:{LINES['mul']}", "aten::mul"]


def test_beside_plumb_run(torch_python, recorder, tmp_path, events):
    """The profile is what it is without the tool, and the tool is told what it is told alone."""
    alone = run_program(torch_python, "monitored.py", folder=tmp_path, name="alone.plumb")
    _, both = watch(recorder, tmp_path, [torch_python, PROGRAMS / "monitored.py"], plumb=True)
    for kind in (OPERATOR, RANGE, COMPILED):
        assert named(both, kind) == named(events, kind)
    with_tool = type(alone)(alone.done, alone.program, tmp_path, tmp_path / "run.plumb")
    for function in ("train", "on_thread", "compiled"):
        assert with_tool.tree(function) == alone.tree(function)
    assert with_tool.tree("train")


# ---- the driver ----



def test_driver_calls(recorder, tmp_path):
    _, events = watch(recorder, tmp_path,
                      [sys.executable, PROGRAMS / "monitored_driver.py"],
                      environment=mock_environment(NEWEST))
    calls = collections.defaultdict(list)
    for event in events:
        calls[event["kind"]].append(event)
    for kind in (LAUNCH, COPY, SET, DEVICE_ALLOC, DEVICE_FREE, SYNC):
        begins = [event for event in calls[kind] if event["phase"] == BEGIN]
        ends = [event for event in calls[kind] if event["phase"] == END]
        assert [event["correlation"] for event in begins] == \
            [event["correlation"] for event in ends]
        assert all(event["parameters"] for event in begins + ends)
        assert all(event["path"][-1]["name"] == re.sub("_v[0-9]$", "", event["name"])
                   for event in begins + ends)
    launches = [event for event in calls[LAUNCH] if event["phase"] == END]
    assert [(event["kernel"], event["result"]) for event in launches] == \
        [("_Z4axpyPf", 0)] * 2 + [("failing", 701)] + [("_Z4axpyPf", 0)]
    assert [event["path"][-2]["name"] for event in launches] == ["work"] * 4
    assert len({event["correlation"] for event in launches}) == 4
    copy, = [event for event in calls[COPY] if event["phase"] == BEGIN]
    assert copy["bytes"] == 4096
    begin, end = calls[DEVICE_ALLOC]
    assert begin["bytes"] == end["bytes"] == 65536 and begin["address"] is None
    assert end["address"] == calls[DEVICE_FREE][0]["address"] != 0
    assert len(calls[SET]) == len(calls[SYNC]) == 2


@pytest.fixture(scope="module")
def example():
    """examples/monitor, built as docs/monitor.md says."""
    made = subprocess.run(["make", "--no-print-directory", f"BUILD={BUILD}", "examples"], cwd=ROOT,
                          capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return BUILD / "examples" / "monitor.so"


def test_the_example(torch_python, example, tmp_path):
    done = run_command(torch_python, PROGRAMS / "mock_gpu.py", cwd=tmp_path, env={
        **mock_environment(NEWEST), "OMP_NUM_THREADS": "1",
        "LD_PRELOAD": f"{LIBPLUMB} {example}"})
    assert done.returncode == 0, done.stderr
    said = re.search(r"tool: (\d+) operators, (\d+) of them backward; (\d+) launches, (\d+) copies",
                     done.stderr)
    operators, backward, launches, copies = map(int, said.groups())
    made = run_program(torch_python, "mock_gpu.py", folder=tmp_path,
                       environment=mock_environment(NEWEST))
    stats = made.profile._stats("gpu.launches")[0]
    kernels = sum(stat[0] for context, stat in stats.items()
                  if made.node(context).name.startswith(("cuLaunch", "cuGraph")))
    assert launches == kernels > 100
    assert operators == made.ledger("operator")["received"] - len(made.profile.match("**/range:*"))
    assert re.search(r"tool: +\d+ launches: .*NestedBackward \[backward\].* > cuLaunchKernel",
                     done.stderr)


def test_the_example_without_plumb(example):
    done = run_command("true", env={"LD_PRELOAD": str(example)})
    assert done.returncode == 0 and "libplumb.so is not loaded" in done.stderr


# ---- plumb run --tool ----

STRICT = r"""
#include <plumb/monitor.h>
#include <stdio.h>
static void __attribute__((constructor)) begin(void)
{
	struct plumb_monitor_options options = { .size = sizeof options };
	fprintf(stderr, "tool NAME: init %d, version %d\n", plumb_monitor_init(&options),
	        plumb_monitor_version());
}
"""


@pytest.fixture(scope="session")
def strict(tmp_path_factory):
    """Tools that need plumb's symbols when they are loaded: without libplumb.so the program would die."""
    folder = tmp_path_factory.mktemp("strict")
    tools = []
    for name in ("one", "two"):
        source, output = folder / f"{name}.c", folder / f"{name}.so"
        source.write_text(STRICT.replace("NAME", name))
        subprocess.run(["gcc", "-fPIC", "-shared", "-Wl,-z,now", f"-I{ROOT}/include", "-o", str(output),
                        str(source)], check=True)
        tools.append(output)
    return tools


def said_by(done, name):
    return done.stderr.count(f"tool {name}: init 0, version 1")


def test_tools_are_loaded_into_what_is_profiled(strict, tmp_path):
    one, two = strict
    done = run_command(PLUMB, "run", "-o", "run.plumb", "--tool", one, "--tool", two.name, "--", "sh", "-c",
                       "env -i /bin/true; env LD_PRELOAD= /bin/true", cwd=two.parent)
    assert done.returncode == 0, done.stderr
    # sh, twice env, twice true
    assert said_by(done, "one") == said_by(done, "two") == 5, done.stderr


def test_a_tool_that_the_program_preloads_itself(strict, tmp_path):
    """What killed the program by an undefined symbol."""
    done = run_command(PLUMB, "run", "-o", tmp_path / "run.plumb", "--", "env", f"LD_PRELOAD={strict[0]}",
                       "/bin/true")
    assert done.returncode == 0 and said_by(done, "one") == 1, done.stderr


@pytest.mark.parametrize("make, says", [
    (lambda path: None, "cannot read --tool {path}: No such file or directory"),
    (lambda path: path.mkdir(), "--tool {path} is not a shared library"),
    (lambda path: path.write_text("text"), "--tool {path} is not a shared library"),
    (lambda path: path.write_bytes(b""), "--tool {path} is not a shared library"),
    (lambda path: path.write_bytes(other_machine(64, 0xB7)), "--tool {path} is a 64-bit library for AArch64"),
    (lambda path: path.write_bytes(other_machine(32, 3)), "--tool {path} is a 32-bit library for "),
])
def test_a_tool_that_cannot_be_loaded(make, says, tmp_path):
    path = tmp_path / "tool.so"
    make(path)
    done = run_command(PLUMB, "run", "-o", tmp_path / "run.plumb", "--tool", path, "--", "echo", "ran",
                       cwd=tmp_path)
    assert done.returncode == 125 and done.stdout == ""
    line, = done.stderr.splitlines()
    assert says.format(path=path) in line and line.endswith("; the program was not started")
    assert not list(tmp_path.glob("*.plumb"))


def other_machine(bits, machine):
    """The head of a shared library for another machine."""
    head = bytearray(b"\x7fELF" + bytes([2 if bits == 64 else 1, 1, 1]) + bytes(9))
    head += (3).to_bytes(2, "little") + machine.to_bytes(2, "little") + (1).to_bytes(4, "little")
    return bytes(head + bytes(64 - len(head)))


def test_a_tool_under_a_path_that_ld_preload_cannot_hold(strict, tmp_path):
    path = tmp_path / "a tool.so"
    path.write_bytes(strict[0].read_bytes())
    done = run_command(PLUMB, "run", "-o", tmp_path / "run.plumb", "--tool", path, "--", "true")
    assert done.returncode == 125 and "Move the tool to another folder" in done.stderr
