# SPDX-License-Identifier: Apache-2.0
"""Native frames in the finished profile: from the Python line or the operator to the driver's call, and
what each set of layers leaves out."""
import collections
import functools
import os
import re
import subprocess
import sys

import pytest
from plumbtest import label, run_program
from test_mock_gpu import NEWEST, mock_environment
from test_python_walker import PYTHONS

HERE = os.path.dirname(os.path.abspath(__file__))
EVALUATE = "_PyEval_EvalFrameDefault"


class Frame:
    """A native frame. Without symbols its name is the object's path and its line the offset there: then
    `function` is what the object's own table of symbols says."""

    def __init__(self, node):
        self.name, self.build_id, self.line = node.symbol, node.file, node.line
        named = not node.symbol.startswith("/")
        self.function = node.symbol if named else name_of(node.symbol, node.line)


@functools.lru_cache(maxsize=None)
def symbols(path):
    """Sorted (start, end, name) of the functions of PATH."""
    output = subprocess.run(["readelf", "-sW", path], capture_output=True, text=True).stdout
    found = re.findall(r"^ *\d+: ([0-9a-f]{16}) +(\d+) FUNC\S* +\S+ +\S+ +\d+ (\S+)", output, re.M)
    return sorted({(int(start, 16), int(start, 16) + int(size), name.split("@")[0]) for start, size, name in found})


def name_of(path, offset):
    """The function's name, or None; functions that share their code have one of their names."""
    return next((name for start, end, name in symbols(path) if start <= offset < end), None)


def path_to(node):
    """The nodes from the root's child down to NODE."""
    path = []
    while node is not None and node.kind != "root":
        path.append(node)
        node = node.parent
    return path[::-1]


def native(made, kernel):
    """The native frames of each context of the kernel NAME, outermost first, with the node they hang under."""
    found = []
    for node in made.profile.kernels:
        if node.symbol != kernel:
            continue
        path = path_to(node)
        assert [step.kind for step in path[-2:]] == ["gpu_api", "kernel"]
        # What the compiler inlined has frames of its own where an object has debug information.
        path = [step for step in path if step.kind != "inline"]
        kinds = [step.kind for step in path[:-2]]
        first = kinds.index("native")
        assert set(kinds[first:]) == {"native"}, kinds
        found.append((path[first - 1] if first else None, [Frame(step) for step in path[first:-2]]))
    return found


def run(python, program, *arguments, folder, options=("--mode", "full")):
    made = run_program(python, program, *arguments, folder=folder, options=options,
                       environment=mock_environment(NEWEST))
    assert made.done.returncode == 0, made.done.stderr
    return made


# ---- PyTorch ----

@pytest.fixture(scope="module")
def full(torch_python, tmp_path_factory):
    return run(torch_python, "mock_gpu.py", folder=tmp_path_factory.mktemp("full"))


@pytest.fixture(scope="module")
def light(torch_python, tmp_path_factory):
    return run(torch_python, "mock_gpu.py", folder=tmp_path_factory.mktemp("light"), options=())


def without_native(made, metric):
    """{path without native frames: (sum, count)} of METRIC."""
    found = collections.Counter(), collections.Counter()
    for number, stat in made.profile._stats(metric)[0].items():
        path = []
        while number:
            parent, frame, flags = made.profile._contexts[number][:3]
            kind, name, file, line = made.profile._frames[frame][:4]
            if kind != "native":
                path.append((label(kind, name, flags), file, line))
            number = parent
        if stat[1]:
            found[0][tuple(path)] += stat[0]
            found[1][tuple(path)] += stat[1]
    return found


@pytest.mark.parametrize("metric", ["gpu.time", "gpu.launches", "gpu.copy_time", "op.duration"])
def test_nothing_else_changes(full, light, metric):
    times, counts = without_native(full, metric)
    expected = without_native(light, metric)
    assert counts == expected[1]
    if metric != "op.duration":
        assert times == expected[0]
    assert full.ledger("gpu.kernel") == light.ledger("gpu.kernel")
    assert "native" not in {row.source for row in light.profile.ledger}


def test_from_python_to_the_kernel(full):
    """Kernels that Python launches: the interpreter's call, ctypes, libffi, the launcher."""
    found = native(full, "_Z7outsidePf")
    assert len(found) == 4
    for parent, frames in found:
        assert parent.kind == "python"
        functions = [frame.function for frame in frames]
        assert functions[-1] == "launcher_launch" and EVALUATE not in functions
        assert "ffi_call" in functions


def test_from_an_operator_to_the_kernel(full):
    """A tensor that launches when C++ lets go of its memory: no Python between."""
    met = 0
    for node in full.profile.kernels:
        path = path_to(node)
        kinds = [step.kind for step in path]
        if "native" not in kinds or path[kinds.index("native") - 1].kind != "operator":
            continue
        functions = [Frame(step).function for step in path if step.kind == "native"]
        if "ffi_call" in functions:
            continue
        met += 1
        assert functions[-3:] == ["launch_and_free", "launch_batch", "launcher_launch"], functions
        assert len(functions) > 3  # PyTorch's own
        assert EVALUATE not in functions
    assert met >= 3


def test_a_thread_of_its_own(full):
    (parent, frames), = native(full, "native")
    assert parent is None
    assert [frame.function for frame in frames][-2:] == ["launch_batch", "launcher_launch"]
    assert len(frames) == 4  # below what the C library starts a thread with


def test_the_ledger_adds_up(full):
    walks = full.ledger("native")
    received = walks.pop("received")
    assert received and received == sum(walks.values())
    assert walks["attributed"] >= 0.99 * received


# ---- every interpreter: the walk stops where it evaluates ----

@pytest.mark.parametrize("python", [pytest.param(path, id=version + ("-shared" if shared else "-static"))
                                    for version, shared, threaded, path in PYTHONS
                                    if not threaded and (3, 9) <= tuple(map(int, version.split("."))) <= (3, 14)])
def test_every_interpreter(python, tmp_path):
    made = run(python, "mock_driver.py", "loop", folder=tmp_path)
    (parent, frames), = native(made, "loop")
    assert parent.kind == "python" and parent.line == made.lines["loop"]
    functions = [frame.function for frame in frames]
    assert EVALUATE not in functions
    assert functions[-1] == "launcher_launch" and "ffi_call" in functions
    # What is between is ctypes's and libffi's, and how the interpreter calls them.
    assert 4 <= len(frames) <= 12


# ---- kinds of native code ----

@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    folder = tmp_path_factory.mktemp("calls")
    subprocess.run(["gcc", "-O1", "-fno-optimize-sibling-calls", "-shared", "-fPIC", "-Wl,--build-id=sha1",
                    "-o", folder / "deep.so", os.path.join(HERE, "native/deep.c")], check=True)
    made = run(sys.executable, "native_calls.py", folder / "deep.so", folder=folder)
    made.deep = str(folder / "deep.so")
    return made


def test_every_frame_of_a_library(calls):
    (parent, frames), = native(calls, "shallow")
    assert parent.line == calls.lines["shallow"]
    assert [frame.function for frame in frames[-7:]] == ["deep"] * 6 + ["launcher_launch"]
    notes = subprocess.run(["readelf", "-n", calls.deep], capture_output=True, text=True).stdout
    assert frames[-2].build_id == re.search(r"Build ID: ([0-9a-f]+)", notes)[1]


def test_too_deep_a_stack_keeps_its_innermost_frames(calls):
    (parent, frames), = native(calls, "deep")
    assert parent.line == calls.lines["deep"]
    assert 400 <= len(frames) < 2000
    assert {frame.function for frame in frames[:-1]} == {"deep"}
    assert calls.ledger("native")["too_deep"] == 1


def test_generated_code_ends_a_walk(calls):
    (parent, frames), = native(calls, "generated")
    assert parent.line == calls.lines["generated"]
    assert [(frame.name, frame.build_id) for frame in frames[:1]] == [("[generated code]", None)]
    assert [frame.function for frame in frames[1:]] == ["launcher_launch"]
    assert calls.ledger("native")["no_unwind"] == 4


def test_native_frames_belong_to_the_inner_python_frame(calls):
    (parent, frames), = native(calls, "called_back")
    assert parent.line == calls.lines["inner"]
    assert "deep" not in [frame.function for frame in frames]


def test_threads_share_contexts(calls):
    found = native(calls, "plain")
    assert {parent.line for parent, _ in found} == {calls.lines["plain"]}
    assert len(found) == 2  # called by the module, and by threading
    assert [frame.line for frame in found[0][1]] == [frame.line for frame in found[1][1]]


def test_each_call_is_in_the_ledger(calls):
    walks = calls.ledger("native")
    launches = calls.ledger("gpu.launch")["received"]
    assert walks["received"] == launches == sum(walks.values()) - walks["received"]


# ---- layers ----

@pytest.fixture(scope="module")
def with_layers(tmp_path_factory):
    """A run with these layers, once."""
    @functools.cache
    def call(layers):
        return run(sys.executable, "mock_gpu.py", folder=tmp_path_factory.mktemp("layers"), options=["--layers", layers])
    return call


@pytest.mark.parametrize("layers, kinds", [
    ("native", {"native"}),
    ("python", {"python"}),
    ("python,operator", {"python", "operator"}),
    ("operator", {"operator"}),
    ("operator,native", {"operator", "native"}),
    ("python,native", {"python", "native"}),
])
def test_layers(with_layers, layers, kinds):
    made = with_layers(layers)
    frames = {made.node(number).kind for number in range(len(made.profile._contexts))}
    assert frames & {"python", "operator", "native"} == kinds
    # Whatever the layers: every kernel is there, and no kernel's time is lost.
    assert made.ledger("gpu.kernel")["received"] == made.ledger("gpu.kernel")["attributed"] > 0
    assert ("native" in {row.source for row in made.profile.ledger}) == ("native" in kinds)
    if "operator" not in kinds:
        assert not [stat for context, stat in made.profile._stats("op.duration")[0].items()
                    if made.node(context).kind == "operator"]


def test_backward_work_finds_its_forward_line_without_operators(with_layers):
    made, whole = with_layers("python"), with_layers("python,operator")

    def lines(of):
        found = collections.Counter()
        for node in of.profile.kernels:
            python = [step for step in path_to(node) if step.kind == "python"]
            key = (node.symbol, python[-1].line if python else None)
            found[key] += node.exclusive["gpu.time"].count
        return found
    assert lines(made) == lines(whole)
