# SPDX-License-Identifier: Apache-2.0
"""plumb/annotate.h and plumb.span, mark and metric: what they put into a profile, and that they do nothing
where there is no plumb."""
import csv
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap

import pytest
from conftest import LIBPLUMB, PLUMB, ROOT, Recording, run_command
from plumbtest import PROGRAMS, Made, environment_for_programs, run_program

import plumb as plumb_package

PROGRAM = """
#include <plumb/annotate.h>
#include <stdio.h>
void library(void);

static void __attribute__((constructor)) before_main(void)
{
	plumb_range_push("before main");
	plumb_range_pop();
}

int main(void)
{
	char name[32];
	plumb_metric("root", 1);
	plumb_range_push("outer");
	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof name, "inner %d", i % 2);
		plumb_range_push(name);
		plumb_metric("tokens", 100 * i);
		plumb_range_pop();
	}
	plumb_mark("here");
	library();
	plumb_range_pop();
	plumb_range_pop(); /* nothing is open */
	plumb_range_push("");
	plumb_range_pop();
	return 0;
}
"""
LIBRARY = """
#include <plumb/annotate.h>
void library(void);
void library(void) { plumb_range_push("library"); plumb_metric("tokens", 7); plumb_range_pop(); }
"""
CPP = """
#include <plumb/annotate.h>
#include <thread>
extern "C" void library(void);
static void work(const char *name) { plumb::range range(name); library(); }
int main()
{
	plumb::range outer("outer");
	std::thread(work, "thread").join();
	work("main");
	try {
		plumb::range thrown("thrown");
		throw 1;
	} catch (int) {
	}
	work("after");
}
"""
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]


def build(folder, source, *flags, compiler="gcc", name="program", library=True):
    suffix = ".c" if "++" not in compiler else ".cc"
    (folder / f"{name}{suffix}").write_text(textwrap.dedent(source))
    command = [compiler, *STRICT, f"-I{ROOT}/include", "-o", str(folder / name),
               str(folder / f"{name}{suffix}"), *flags]
    if library:
        (folder / "library.c").write_text(LIBRARY)
        subprocess.run(["gcc", "-std=c99", *STRICT, f"-I{ROOT}/include", "-shared", "-fPIC", "-o",
                        str(folder / "liblibrary.so"), str(folder / "library.c")], check=True)
        command += [f"-L{folder}", "-llibrary", f"-Wl,-rpath,{folder}"]
    subprocess.run(command, check=True)
    return folder / name


def recorded(folder, program, *arguments):
    path = folder / "run.plumb"
    layers = "python,module,operator"  # a program of C has native frames, too, if nobody says
    done = run_command(PLUMB, "run", "-o", path, "--layers", layers, "--", program, *arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    return Made(done, PROGRAMS / "annotated.py", folder, path)


def found(made, metric, inside=None):
    """{path: (sum, count)} of METRIC, exclusive."""
    result = {}
    for context, stat in made.profile._stats(metric)[0].items():
        path = " > ".join(made.steps(made.node(context), inside))
        if inside is None or path:
            result[path] = (stat[0], stat[1])
    return result


def counts(made, metric="op.duration", inside=None):
    return {path: count for path, (_, count) in found(made, metric, inside).items()}


# ---- C and C++ ----

@pytest.mark.parametrize("compiler, flags", [
    ("gcc", ["-std=c99"]), ("gcc", ["-std=gnu17", "-O3", "-flto"]), ("gcc", ["-std=c99", "-no-pie", "-O2"]),
    ("clang", ["-std=c11"])])
def test_c(compiler, flags, tmp_path):
    compiler = compiler if compiler == "gcc" else clang()
    made = recorded(tmp_path, build(tmp_path, PROGRAM, *flags, compiler=compiler))
    assert counts(made) == {'"before main"': 1, '"outer"': 1, '"outer" > "inner 0"': 2,
                            '"outer" > "inner 1"': 1, '"outer" > "library"': 1, '"?"': 1}
    assert found(made, "tokens") == {'"outer" > "inner 0"': (200, 2), '"outer" > "inner 1"': (100, 1),
                                     '"outer" > "library"': (7, 1)}
    assert found(made, "root") == {"": (1, 1)}
    assert found(made, "range.marks") == {'"outer" > "here"': (1, 1)}
    assert made.ledger("range") == {"received": 9, "attributed": 8, "unbalanced": 1}
    assert made.ledger("metric") == {"received": 5, "attributed": 5}


def clang():
    for name in ("clang", "clang-19", "clang-14"):
        if shutil.which(name):
            return name
    pytest.skip("there is no clang")


@pytest.mark.parametrize("flags", [["-std=c++11"], ["-std=c++20", "-O2"]])
def test_cpp(flags, tmp_path):
    made = recorded(tmp_path, build(tmp_path, CPP, *flags, "-lpthread", compiler="g++"))
    assert counts(made) == {'"outer"': 1, '"thread"': 1, '"thread" > "library"': 1,
                            '"outer" > "main"': 1, '"outer" > "main" > "library"': 1,
                            '"outer" > "thrown"': 1,
                            '"outer" > "after"': 1, '"outer" > "after" > "library"': 1}


def test_without_plumb_nothing_happens(tmp_path):
    program = build(tmp_path, PROGRAM, "-std=c99")
    done = run_command(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = run_command(program, env={"LD_PRELOAD": str(LIBPLUMB)})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_in_a_static_program_nothing_happens(tmp_path):
    source = PROGRAM.replace("library();", "")
    done = run_command(build(tmp_path, source, "-std=c99", "-static", library=False))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_nothing_of_plumb_is_linked(tmp_path):
    source = PROGRAM.replace("library();", "")
    program = build(tmp_path, source, "-std=c99", library=False)
    needed = run_command("readelf", "-d", program).stdout
    assert needed.count("(NEEDED)") == 1 and "libc.so" in needed
    symbols = run_command("readelf", "--dyn-syms", "-W", program).stdout
    assert " dlsym" in symbols and "plumb" not in symbols
    off = build(tmp_path, source, "-std=c99", "-DPLUMB_ANNOTATE_OFF", library=False, name="off")
    assert "dlsym" not in run_command("readelf", "--dyn-syms", "-W", off).stdout
    made = run_command(PLUMB, "run", "-o", tmp_path / "off.plumb", "--", off, cwd=tmp_path)
    assert made.returncode == 0
    assert not list(plumb_package.Profile(tmp_path / "off.plumb").match("**/range:*"))


def test_in_a_library_that_is_loaded_late(tmp_path):
    build(tmp_path, PROGRAM, "-std=c99")
    source = """
        #include <dlfcn.h>
        int main(int argc, char **argv)
        {
            void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : 0;
            void (*work)(void) = 0;
            if (!library)
                return 1;
            *(void **)(&work) = dlsym(library, "library");
            work();
            return 0;
        }
        """
    late = build(tmp_path, source, "-std=c99", "-ldl", name="late", library=False)
    made = recorded(tmp_path, late, tmp_path / "liblibrary.so")
    assert counts(made) == {'"library"': 1}


# ---- Python ----

def pythons():
    """This Python, and of every other minor version that plumb's Python lines know one."""
    found = {sys.version_info[:2]: sys.executable}
    for path in sorted(pathlib.Path(os.path.expanduser("~/.pyenv/versions")).glob("3.*")):
        minor = path.name.split(".")[1]
        if minor.isdigit() and int(minor) >= 9 and (path / "bin/python").exists():
            found.setdefault((3, int(minor)), str(path / "bin/python"))
    return [found[version] for version in sorted(found)]


@pytest.fixture(params=pythons(), ids=lambda path: path.strip("/").replace("/", "."))
def python(request):
    return request.param


def annotated(python, folder, *sections, plumb=True):
    made = run_program(python, "annotated.py", *sections, folder=folder, plumb=plumb,
                       environment={"PYTHONPATH": str(ROOT / "python")})
    assert made.done.returncode == 0, made.done.stderr
    return made


def test_spans(python, tmp_path):
    made = annotated(python, tmp_path, "spans")
    outer = made.expand('spans:@outer > "outer"')
    inner = outer + made.expand(' > spans:@inner > "inner"')
    assert counts(made, inside="spans") == {
        outer: 1, inner: 3, made.expand('spans:@word > "wörd / \\"'): 1}
    assert found(made, "tokens", "spans") == {inner + made.expand(" > spans:@tokens"): (300, 3)}
    assert found(made, "range.marks", "spans") == {
        outer + made.expand(' > spans:@here > "here"'): (1, 1)}
    # The person's line is the line above the span: no frame of plumb's own is between.
    around = {above for node in made.profile.match("**/range:*") for above in node.ancestors}
    assert around and not [node for node in around if (node.file or "").endswith("annotate.py")]


def test_decorators(python, tmp_path):
    made = annotated(python, tmp_path, "decorators")
    node, = (node for node in made.profile.match("**/range:decorated"))
    assert node.exclusive["op.duration"].count == 3
    assert node.inclusive["calls"].sum == 0 + 1 + 2


def test_errors_and_odd_values(python, tmp_path):
    made = annotated(python, tmp_path, "errors")
    assert {node.name for node in made.profile.match("**/range:*")} == {"raises", "a?b"}
    assert made.profile.root.inclusive["huge"].min == -2 ** 63 + 1
    assert made.profile.root.inclusive["huge"].max == 2 ** 63 - 1
    assert made.profile.root.inclusive["true"].sum == 1
    assert "loss" not in made.profile.metrics


def test_threads(python, tmp_path):
    made = annotated(python, tmp_path, "threads")
    assert {node.name: node.inclusive["work"].sum for node in made.profile.match("**/range:thread *")} \
        == {f"thread {i}": 1 for i in range(4)}
    assert {node.parent.kind for node in made.profile.match("**/range:common")} == {"python"}


def test_async_code(python, tmp_path):
    made = annotated(python, tmp_path, "async_code")
    ranges = {node.name: node.exclusive["op.duration"].count
              for node in made.profile.match("**/range:*")}
    assert ranges == {"one": 1, "two": 1, "coroutine": 1, "after": 1}
    after, = made.profile.match("**/range:after")
    assert not [above for above in after.ancestors if above.kind == "range"]
    assert made.ledger("range") == {"received": 4, "attributed": 4}


def test_many_names(python, tmp_path):
    made = annotated(python, tmp_path, "many")
    assert sum(node.exclusive["op.duration"].count for node in made.profile.match("**/range:*")) == \
        5000 + 2
    node, = (node for node in made.profile.walk() if node.exclusive["twice"].count)
    assert [above.kind for above in [node, *node.ancestors]].count("range") == 2


def test_without_plumb_python_goes_on(python, tmp_path):
    annotated(python, tmp_path, "spans", "decorators", "errors", "threads", "async_code", "many",
              plumb=False)
    code = ("import sys, plumb\n"
            "assert not {'ctypes', 'sqlite3', 'inspect'} & set(sys.modules), 'imported for nothing'\n"
            "plumb.Profile, plumb.ProfileError, plumb.__version__\n"
            "assert plumb.span('x')(lambda one, two: one + two)(1, two=2) == 3\n"
            "assert plumb.metric('x', 1) is plumb.mark('x') is None\n")
    done = subprocess.run([python, "-S", "-c", code], capture_output=True, text=True,
                          env=environment_for_programs(PYTHONPATH=str(ROOT / "python")))
    assert done.returncode == 0, done.stderr


def test_operators_in_spans(torch_python, tmp_path):
    """A span around a module's call is above its operators and their backward work."""
    (tmp_path / "train.py").write_text(textwrap.dedent("""\
        import plumb
        import torch
        w = torch.ones(3, requires_grad=True)
        for _ in range(2):
            with plumb.span("forward"):
                loss = (w * 2).sum()
            with plumb.span("backward"):
                loss.backward()
            plumb.metric("loss", int(loss))
        """))
    made = run_program(torch_python, tmp_path / "train.py", folder=tmp_path,
                       environment={"PYTHONPATH": str(ROOT / "python")})
    assert made.done.returncode == 0, made.done.stderr
    mul, = made.profile.match('**/range:forward/*/aten::mul')
    assert mul.exclusive["op.calls"].sum == 2
    assert [node.name for node in made.profile.match("**/range:forward/**/MulBackward0")]
    assert made.profile.root.inclusive["loss"].sum == 12


# ---- what reads them ----

@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return annotated(sys.executable, tmp_path_factory.mktemp("annotated"), "spans", "threads")


def test_reports_take_the_metrics_name(made):
    recording = Recording(made.done, made.path)
    report = recording.report("--metric", "tokens", "--by", "range")
    assert report["metric"] == "tokens" and report["unit"] == "" and report["total"]["sum"] == 300
    inner, outer = report["rows"]
    assert (inner["name"], inner["exclusive"]["tokens"]["sum"]) == ("inner", 300)
    assert (outer["name"], outer["inclusive"]["tokens"]["sum"]) == ("outer", 300)
    assert "tokens" not in outer["exclusive"]
    text = run_command(PLUMB, "report", made.path, "--metric", "tokens", "--by", "range").stdout
    assert "tokens by range, 300 in total" in text
    tree = run_command(PLUMB, "report", made.path, "--metric", "tokens", "--by", "context").stdout
    assert "300" in tree and "inner" in tree
    rows = list(csv.DictReader(io.StringIO(run_command(
        PLUMB, "report", made.path, "--metric", "work", "--by", "range", "--csv").stdout)))
    assert {row["metric"] for row in rows} == {"work"}
    assert sum(int(row["exclusive_sum"] or 0) for row in rows) == 4
    inverted = run_command(PLUMB, "report", made.path, "--metric", "tokens", "--by", "range",
                           "--inverted").stdout
    assert "inner" in inverted


def test_json_of_contexts(made):
    report = Recording(made.done, made.path).report("--by", "context", "--metric", "tokens")
    assert sum(row["exclusive"].get("tokens", {"sum": 0})["sum"]
               for row in report["contexts"]) == 300
    root = report["contexts"][0]
    assert root["inclusive"]["tokens"]["sum"] == 300 and root["inclusive"]["work"]["sum"] == 4
    assert "tokens" not in root["exclusive"]
    # Also where another metric sorts.
    report = Recording(made.done, made.path).report("--by", "range")
    outer, = (row for row in report["rows"] if row["name"] == "outer")
    assert outer["inclusive"]["tokens"]["sum"] == 300


def test_an_unknown_metric_is_named(made):
    done = run_command(PLUMB, "report", made.path, "--metric", "token")
    assert done.returncode == 1 and 'no metric "token"' in done.stderr


def test_python_reads_them(made):
    profile = plumb_package.Profile(made.path)
    assert profile.metrics["tokens"].aggregation == "sum"
    assert profile.metrics["tokens"].source == "user"
    assert profile.root.inclusive["tokens"].sum == 300
    inner, = profile.match("**/range:inner")
    assert (inner.inclusive["tokens"].sum, inner.inclusive["tokens"].max) == (300, 200)


def test_joined_by_name(made, tmp_path):
    one = annotated(sys.executable, tmp_path, "threads", "spans")
    done = run_command(PLUMB, "settle", made.path, one.path, "-o", tmp_path / "both.plumb")
    assert done.returncode == 0, done.stderr
    both = plumb_package.Profile(tmp_path / "both.plumb")
    assert both.root.inclusive["tokens"].sum == 600 and both.root.inclusive["work"].sum == 8
    assert json.loads(run_command(PLUMB, "report", tmp_path / "both.plumb", "--json", "--metric",
                                  "tokens").stdout)["total"]["sum"] == 600
