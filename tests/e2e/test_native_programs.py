# SPDX-License-Identifier: Apache-2.0
"""Programs without Python: of C++, Rust and Go, and one that embeds an interpreter. What leads to the driver's
calls is recorded without an option, and the line or the function of your code stands beside each kernel."""
import glob
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from conftest import BUILD, PLUMB, run_command, torch_pythons
from plumbtest import Made, run_program
from test_mock_gpu import NEWEST, mock_environment

HERE = pathlib.Path(__file__).resolve().parent / "native"
MOCK = pathlib.Path(BUILD) / "mock" / NEWEST
LINK = [f"-L{MOCK}", "-l:libcuda.so.1", f"-Wl,-rpath,{MOCK}"]
RELAX, RESIDUAL = "_ZN6solver6smoothEPKfi", "_ZN6solver8residualEPKfi"


def mark(program, name):
    """The number of the line with the comment `// NAME`."""
    lines = (HERE / program).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith("// " + name))


def build(*command, cwd=None, env=None):
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True,
                          env={**os.environ, **(env or {})})
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def made_runtime(tmp_path_factory):
    """The runtime as an archive, without debug information."""
    folder = tmp_path_factory.mktemp("runtime")
    build("gcc", "-O2", "-I", HERE.parent.parent / "mock", "-c", "-o", folder / "runtime.o",
          HERE / "alone_runtime.c")
    build("ar", "rcs", folder / "libcudart_static.a", folder / "runtime.o")
    return folder / "libcudart_static.a"


def record(folder, *command, options=()):
    path = folder / "run.plumb"
    done = run_command(PLUMB, "run", "--force", "-o", path, *options, "--", *command, cwd=folder,
                       env=mock_environment(NEWEST))
    assert done.returncode == 0, done.stderr
    return Made(done, HERE / "alone.cpp", folder, path)


def compile_cpp(folder, runtime, *flags):
    build("g++", *flags, "-o", folder / "solver", HERE / "alone.cpp", runtime, *LINK)
    return folder / "solver"


def paths(made, kernel):
    """The native functions on the way to KERNEL, outermost first, as a set of tuples."""
    found = set()
    for node in made.profile.kernels:
        names, at = [], node.parent
        if node.symbol != kernel:
            continue
        while at is not None and at.kind != "root":
            if at.kind in ("native", "inline"):
                names.append(at.name.partition("(")[0])
            at = at.parent
        found.add(tuple(reversed(names)))
    return found


def report(made, *options):
    done = run_command(PLUMB, "report", made.path, "--json", "--top", "0", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["rows"]


def own_places(made):
    """{kernel: where your code is, as (file name, line, function)}"""
    return {row["name"].partition("(")[0]: (os.path.basename(row["user_file"] or ""), row["user_line"],
                                            (row.get("user_function") or "").partition("(")[0])
            for row in report(made, "--by", "kernel")}


@pytest.mark.parametrize("flags", [("-O2", "-g"), ("-O0", "-g")])
def test_lines_of_cpp(made_runtime, tmp_path, flags):
    made = record(tmp_path, compile_cpp(tmp_path, made_runtime, *flags))
    (path,) = paths(made, RELAX)
    names = [name for name in path if name.startswith("solver::") or name == "main"]
    assert names == ["main", "solver::step", "solver::Field<float>::relax", "solver::smooth"]
    # The runtime's functions are there, and are not yours; nor are the stubs that launch.
    assert path[-2:] == ("cudaLaunchKernel", "__cudart_launch")
    relax, step = mark("alone.cpp", "RELAX"), mark("alone.cpp", "STEP")
    assert own_places(made) == {"solver::smooth": ("alone.cpp", relax, ""),
                                "solver::residual": ("alone.cpp", step, "")}
    assert f"alone.cpp:{relax}" in made.done.stderr and f"alone.cpp:{step}" in made.done.stderr
    lines = {(os.path.basename(row["file"]), row["line"]): row["exclusive"]["gpu.time"]["sum"]
             for row in report(made, "--by", "line") if row["exclusive"].get("gpu.time")}
    assert lines == {("alone.cpp", relax): 20 * 30000, ("alone.cpp", step): 10 * 10000}


def test_functions_of_cpp_without_debug_information(made_runtime, tmp_path):
    made = record(tmp_path, compile_cpp(tmp_path, made_runtime, "-O2"))
    assert own_places(made) == {"solver::smooth": ("solver", None, "solver::Field<float>::relax"),
                                "solver::residual": ("solver", None, "solver::step")}
    assert "solver::Field<float>::relax in solver" in made.done.stderr


def test_a_stripped_program_has_offsets_and_no_line(made_runtime, tmp_path):
    program = compile_cpp(tmp_path, made_runtime, "-O2")
    build("strip", program)
    made = record(tmp_path, program)
    (path,) = paths(made, RELAX)
    assert sum(bool(re.fullmatch(r"solver\+0x[0-9a-f]+", name)) for name in path) >= 4, path
    assert set(own_places(made).values()) == {("", None, "")}


def test_layers_given_by_you_win(made_runtime, tmp_path):
    program = compile_cpp(tmp_path, made_runtime, "-O2")
    made = record(tmp_path, program, options=["--layers", "python,operator"])
    assert paths(made, RELAX) == {()}
    assert not made.ledger("native")


def test_a_rule_changes_what_is_yours(made_runtime, tmp_path):
    program = compile_cpp(tmp_path, made_runtime, "-O2", "-g")
    made = record(tmp_path, program)
    found = report(made, "--by", "kernel", "--user-code", f"-{HERE}")
    assert {row["user_file"] for row in found} == {None}
    found = report(made, "--by", "kernel", "--user-code", f"+{HERE}")
    assert {os.path.basename(row["user_file"]) for row in found} == {"alone.cpp"}


def test_python_programs_have_no_native_frames(tmp_path):
    made = run_program(sys.executable, "mock_driver.py", "loop", folder=tmp_path, environment=mock_environment(NEWEST))
    assert made.done.returncode == 0, made.done.stderr
    assert made.profile.kernels
    assert not made.ledger("native")


def libraries():
    found = {}
    for path in glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/lib/libpython3.*.so")) + \
            glob.glob("/usr/lib/*/libpython3.*.so.1.0"):
        version = re.search(r"libpython3\.(\d+)\.so", path)
        if version and int(version[1]) >= 9:
            found[int(version[1])] = path
    return found


def test_an_interpreter_that_is_embedded_later_ends_them(made_runtime, tmp_path):
    known = libraries()
    if not known:
        pytest.skip("no libpython3.9 or later")
    build("gcc", "-O2", "-o", tmp_path / "embedding", HERE / "embedding.c", made_runtime, "-ldl", *LINK)
    library = known[max(known)]
    text = "import ctypes; ctypes.CDLL('libcuda.so.1').mock_launch(b'inside', ctypes.c_uint64(1000))"
    path = tmp_path / "run.plumb"
    home = os.path.dirname(os.path.dirname(library)) if ".pyenv" in library else ""
    done = run_command(PLUMB, "run", "-o", path, "--", tmp_path / "embedding", library, text, cwd=tmp_path,
                       env={**mock_environment(NEWEST), **({"PYTHONHOME": home} if home else {})})
    assert done.returncode == 0, done.stderr
    made = Made(done, HERE / "alone.cpp", tmp_path, path)
    (before,) = paths(made, "before")
    assert before[-3].startswith("launch") and before[-2:] == ("cudaLaunchKernel", "__cudart_launch")
    assert paths(made, "inside") == {()}
    assert paths(made, "after") == {()}
    (inside,) = [node for node in made.profile.kernels if node.symbol == "inside"]
    assert inside.parent.parent.kind == "python"


def test_rust(made_runtime, tmp_path):
    if not shutil.which("rustc"):
        pytest.skip("no rustc")
    link = [word for part in (made_runtime, *LINK) for word in ("-C", f"link-arg={part}")]
    made = {}
    for name, flags in {"lines": ["-g", "-O"], "newer": ["-O", "-C", "symbol-mangling-version=v0"]}.items():
        (tmp_path / name).mkdir()
        build("rustc", *flags, "-o", tmp_path / name / "solver", HERE / "alone.rs", *link)
        made[name] = record(tmp_path / name, tmp_path / name / "solver")
    assert own_places(made["lines"]) == {"smooth": ("alone.rs", mark("alone.rs", "RELAX"), "")}
    for run in made.values():
        ways = paths(run, "_Z6smoothPKfi")
        assert ways
        for way in ways:
            mine = [name for name in way if "alone::" in name]
            assert "alone::solver::step" in mine
            assert any(re.fullmatch(r"<alone::solver::Field<\w+> as alone::solver::Relax>::relax", name)
                       for name in mine), mine
            assert not any(re.search(r"17h[0-9a-f]{16}|::h[0-9a-f]{16}", name) for name in way), way


def test_go(made_runtime, tmp_path):
    if not shutil.which("go"):
        pytest.skip("no go")
    shutil.copytree(HERE / "alone_go", tmp_path / "source")
    build("go", "build", "-o", tmp_path / "solver", ".", cwd=tmp_path / "source",
          env={"CGO_LDFLAGS": " ".join([str(made_runtime), *LINK]), "GOFLAGS": "-buildvcs=false -mod=mod",
               "GOTOOLCHAIN": "local", "GOPROXY": "off"})
    made = record(tmp_path, tmp_path / "solver")
    (path,) = paths(made, "_Z6smoothPKfi")
    assert path[0] == "runtime.goexit", path
    assert "main.main" in path and "main.step" in path and "cudaLaunchKernel" in path, path
    assert own_places(made) == {"smooth": ("main.go", mark("alone_go/main.go", "RELAX"), "")}
    assert made.ledger("native") == {"received": 20, "attributed": 20}


def find_torch():
    """The folder of a PyTorch with its headers and libraries."""
    for python in torch_pythons():
        asked = subprocess.run([python, "-c", "import importlib.util as u; print(u.find_spec('torch').origin)"],
                               capture_output=True, text=True)
        folder = pathlib.Path(asked.stdout.strip() or "/none/none").parent
        if (folder / "include/ATen/ops/mm.h").exists() and (folder / "lib/libtorch_cpu.so").exists():
            return folder
    return pytest.skip("no PyTorch with its headers")


def test_operators_of_libtorch_hang_under_the_functions_that_call_them(tmp_path):
    torch = find_torch()
    needed = [str(path) for path in torch.parent.glob("nvidia/**/lib")]
    # The stand-in CUPTI comes first, or PyTorch would load the real one.
    build("g++", "-O1", "-g", "-std=c++20", "-I", torch / "include", "-I", HERE.parent.parent / "mock", "-o",
          tmp_path / "model", HERE / "operators.cpp", "-Wl,--no-as-needed", *LINK, "-l:libcupti.so.13",
          f"-L{torch / 'lib'}", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{torch / 'lib'}",
          "-Wl,--unresolved-symbols=ignore-in-shared-libs")
    path = tmp_path / "run.plumb"
    environment = mock_environment(NEWEST)
    environment["LD_LIBRARY_PATH"] = ":".join([environment["LD_LIBRARY_PATH"], *needed])
    done = run_command(PLUMB, "run", "-o", path, "--", tmp_path / "model", cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    operators = {row["name"]: row for row in report(Made(done, HERE / "operators.cpp", tmp_path, path), "--by",
                                                    "operator", "--metric", "op.time")}
    for name, line in ("aten::mm", "PRODUCT"), ("aten::relu", "RELU"):
        assert operators[name]["calls"] == 15
        assert (os.path.basename(operators[name]["user_file"]), operators[name]["user_line"]) == (
            "operators.cpp", mark("operators.cpp", line))
    contexts = json.loads(run_command(PLUMB, "report", path, "--by", "context", "--top", "0", "--json").stdout)["contexts"]
    of = {row["id"]: row for row in contexts}
    (product,) = [row for row in contexts if row["name"] == "aten::mm"]
    names, at = [], product
    while at["parent"] in of:
        at = of[at["parent"]]
        names.append(at["name"].partition("(")[0])
    # PyTorch's own functions between the call and the operator are left out.
    assert [name for name in names if not name.startswith("at::")][:3] == ["layer", "model", "main"], names
