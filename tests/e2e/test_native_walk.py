# SPDX-License-Identifier: Apache-2.0
"""The walk of the native stack against libgcc's and gdb's: on stacks of many shapes, after every single
instruction, within PyTorch's operators, on a stopped program, and wherever a sample of --cpu strikes. And
the memo of paths against the walk, wherever it knows one."""
import collections
import os
import re
import shutil
import subprocess

import pytest
from conftest import ROOT, clean_environment

import plumb as plumb_package

HERE = os.path.dirname(os.path.abspath(__file__))
NATIVE = os.path.join(HERE, "native")
WALK = [*sorted(str(path) for path in (ROOT / "src/collect/stack").glob("*.c")),
        str(ROOT / "src/collect/table.c"), str(ROOT / "src/collect/native_memo.c"), os.path.join(NATIVE, "memoed.c")]
COMMON = ["-g0", "-I" + str(ROOT / "src"), "-D_GNU_SOURCE"]
LEAST_STACKS = 1500
LIBGCC_CRASHES = 100  # at most at one in so many stacks, which then has nothing to be compared with

# How a program is built → cases it can run. Static programs cannot load libraries; those that are linked
# at fixed addresses register their tables in a way that takes a lock in libgcc, which traps would break.
CALLS = ["calls", "signals", "generated", "limits"]
LIBRARIES = ["library", "new_library"]
BUILDS = {
    "O2": (["-O2"], CALLS + LIBRARIES + ["steps"]),
    "O0": (["-O0"], CALLS + LIBRARIES + ["steps"]),
    "O3-cet": (["-O3", "-fomit-frame-pointer", "-fcf-protection=full"], CALLS + LIBRARIES + ["steps"]),
    "frame-pointers": (["-O2", "-fno-omit-frame-pointer", "-mavx2"], CALLS + LIBRARIES + ["steps"]),
    "lazy-no-pie": (["-O2", "-no-pie", "-fno-pie", "-Wl,-z,lazy"], CALLS + LIBRARIES + ["steps"]),
    "static": (["-O2", "-static", "-DSTATIC", "-Wl,--eh-frame-hdr"], CALLS),
    "static-pie": (["-O2", "-static-pie", "-fPIE", "-DSTATIC"], CALLS + ["steps"]),
}


def build(folder, *command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def compile_one(folder, compiler, source, *flags):
    """SOURCE as an object in FOLDER, where ccache is with its help."""
    ccache = shutil.which("ccache")
    return build(folder, *([ccache] if ccache else []), compiler, *COMMON, *flags, "-c", source)


def compile_walk(folder, compiler, *flags):
    folder.mkdir(exist_ok=True)
    for source in WALK:
        compile_one(folder, compiler, source, "-std=gnu17", "-O2", *flags)
    return folder


def compile_shapes(folder, compiler, flags):
    """shapes.cc and the walk, with FLAGS, as FOLDER/shapes; a stripped library.so beside it."""
    compile_walk(folder / "walk", {"g++": "gcc", "clang++": "clang"}.get(compiler, compiler), "-fPIE")
    compile_one(folder, compiler, os.path.join(NATIVE, "shapes.cc"), "-std=gnu++17", "-Wno-attributes", *flags)
    build(folder, compiler, *flags, "-o", "shapes", "shapes.o", *(folder / "walk").glob("*.o"), "-ldl", "-lpthread")
    build(folder, "gcc", "-O2", "-shared", "-fPIC", "-Wl,--build-id=sha1", "-o", "library.so",
          os.path.join(NATIVE, "library.c"))
    return build(folder, "strip", "library.so")


def run(*command, **environment):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300,
                          env=clean_environment(**environment), errors="replace")


@pytest.fixture(scope="module")
def shapes(tmp_path_factory):
    made = {}

    def get(name):
        if name not in made:
            made[name] = compile_shapes(tmp_path_factory.mktemp(name), "g++", BUILDS[name][0])
        return made[name]
    return get


@pytest.mark.parametrize("name, case", [(name, case) for name, (_, cases) in BUILDS.items() for case in cases])
def test_as_libgcc_sees_it(shapes, name, case):
    folder = shapes(name)
    done = subprocess.run(
        [folder / "shapes", case, "./library.so"], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.fullmatch(rf"{case}: (\d+) stacks, deepest (\d+), known (\d+), crashes (\d+)\n", done.stdout)
    assert found
    assert LIBGCC_CRASHES * int(found[4]) <= int(found[1])
    if case == "steps":
        assert int(found[1]) > 5000
    if case == "calls":
        assert int(found[1]) > 100 and int(found[2]) > 300
        assert 2 * int(found[3]) > int(found[1])  # several paths of each stack are looked for


@pytest.mark.parametrize("case", CALLS)
def test_as_libgcc_sees_it_with_clang(tmp_path, case):
    clang = next((name for name in ("clang++", "clang++-19", "clang++-14") if shutil.which(name)), None)
    if not clang:
        pytest.skip("no clang++ here")
    compile_walk(tmp_path / "walk", "gcc", "-fPIE")
    compile_one(tmp_path, clang, os.path.join(NATIVE, "shapes.cc"), "-std=gnu++17", "-w", "-O2")
    build(tmp_path, clang, "-o", "shapes", "shapes.o", *(tmp_path / "walk").glob("*.o"), "-ldl", "-lpthread")
    done = run(tmp_path / "shapes", case)
    assert done.returncode == 0, done.stdout + done.stderr


# ---- within PyTorch ----

def run_inside(folder, python, **environment):
    """inside.py with inside.so in it; the numbers that this left, and the process."""
    build(folder, "gcc", "-std=gnu17", "-O2", *COMMON, "-fPIC", "-shared", "-fvisibility=hidden",
          "-o", "inside.so", os.path.join(NATIVE, "inside.c"), *WALK, "-ldl")
    done = run(python, os.path.join(NATIVE, "inside.py"), LD_PRELOAD=str(folder / "inside.so"),
               INSIDE_OUT=str(folder / "out"), **environment)
    assert done.returncode == 0, done.stderr
    return list(map(int, (folder / "out").read_text().split())), done


def test_within_operators(tmp_path, torch_python):
    (stacks, differences, deepest, sites, known, wrong), done = run_inside(tmp_path, torch_python)
    assert differences == wrong == 0, done.stderr
    assert known > 2 * stacks  # of five paths a stack
    assert stacks >= LEAST_STACKS
    assert deepest > 40 and sites > 20 * stacks


def test_in_a_signal_handler_of_a_busy_process(tmp_path, torch_python):
    """Whatever a signal interrupts, the loader and the allocator too: the walk comes back, and nearly always
    from the outermost frame; what is left is hand-written code without tables."""
    (samples, whole, without_table), _ = run_inside(tmp_path, torch_python, INSIDE_SAMPLE="1")
    assert samples > 100
    assert whole + without_table >= 0.999 * samples
    assert whole >= 0.8 * samples


# ---- against gdb ----

GDB = """
set pagination off
set debuginfod enabled off
set confirm off
set backtrace past-main on
set backtrace past-entry on
set backtrace limit 500
handle SIGUSR1 nostop noprint pass
run
python
frame, inner = gdb.newest_frame(), None
while frame:
    # What is not called but interrupted stands at its instruction, what called stands before its next.
    # Inlined calls, and calls that gdb deduces to have been jumps, are not on the stack.
    exact = inner is None or inner.type() == gdb.SIGTRAMP_FRAME
    if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
        print("gdb %x" % (frame.pc() if exact else frame.pc() - 1))
        inner = frame
    frame = frame.older()
end
"""


@pytest.mark.parametrize("name", ["O2", "O0", "O3-cet", "lazy-no-pie"])
def test_as_gdb_sees_it(shapes, tmp_path, name):
    if not shutil.which("gdb"):
        pytest.skip("no gdb here")
    script = tmp_path / "script"
    script.write_text(GDB)
    done = run("gdb", "-nx", "-batch", "-x", script, "--args", shapes(name) / "shapes", "gdb")
    if "ptrace: Operation not permitted" in done.stderr:
        pytest.skip("gdb may not trace here")
    ours = re.findall(r"^site ([0-9a-f]+)$", done.stdout, re.M)
    theirs = re.findall(r"^gdb ([0-9a-f]+)$", done.stdout, re.M)
    assert len(ours) > 12, done.stdout + done.stderr
    assert theirs[-len(ours):] == ours, done.stdout


# ---- samples of a whole run against gdb, which stops where each one strikes ----

GDB_SAMPLES = """
set pagination off
set debuginfod enabled off
set confirm off
set backtrace past-main on
set backtrace past-entry on
set backtrace limit 500
handle all nostop noprint pass
handle SIG63 stop print pass
run
python
def place(pc):
    said = gdb.execute("info symbol %d" % pc, to_string=True).split(" in section ")
    name, plus, offset = said[0].partition(" + ") if len(said) > 1 else ("", "", "")
    file = said[1].partition(" of ")[2].strip() if len(said) > 1 else gdb.solib_name(pc)
    return "%s|%s|%s" % (file or "sampled", name, offset or (name and "0"))

while gdb.selected_thread():
    frame, inner, path = gdb.newest_frame(), None, []
    while frame:
        exact = inner is None or inner.type() == gdb.SIGTRAMP_FRAME
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            path.append(place(frame.pc() if exact else frame.pc() - 1))
            inner = frame
        frame = frame.older()
    print("sample " + "\\t".join(path))
    gdb.execute("continue", to_string=True)
end
"""


def path_of(node):
    """Native frames from the innermost outwards."""
    found = []
    while node.kind != "root":
        if node.kind != "inline":
            assert node.kind == "native"
            found.append(node)
        node = node.parent
    return found


def is_same(path, stack, libraries):
    """Whether a context and gdb's stack of a sample are the same calls. What gdb and plumb both name lies at
    the same offset in the function; of the program itself the names are the same, too."""
    if len(path) != len(stack):
        return False
    for number, (node, (library, name, offset)) in enumerate(zip(path, stack)):
        if node.symbol == "[vdso]" or "system-supplied" in library:
            if node.symbol != "[vdso]" or "system-supplied" not in library:
                return False
            continue
        if os.path.basename(libraries[node.file]) != os.path.basename(library):
            return False
        if os.path.basename(library) == "sampled" and node.symbol != name:
            return False
        # The innermost stands for its whole function.
        if number and name and "+0x" not in node.symbol and (node.line or 0) != int(offset):
            return False
    return True


def test_samples_as_gdb_sees_them(record, tmp_path):
    if not shutil.which("gdb"):
        pytest.skip("no gdb here")
    build(tmp_path, "gcc", "-O2", "-fomit-frame-pointer", "-Wl,--build-id=sha1", "-o", "sampled",
          os.path.join(NATIVE, "sampled.c"), "-lpthread")
    script = tmp_path / "script"
    script.write_text(GDB_SAMPLES)
    made = record("gdb", "-nx", "-batch", "-x", script, "--args", tmp_path / "sampled", "1",
                  options=("--cpu=1000", "--mode", "full", "--no-gpu"), env={"PLUMB_SAMPLE_TRACED": "1"})
    if "ptrace: Operation not permitted" in made.stderr:
        pytest.skip("gdb may not trace here")
    samples = [[tuple(frame.split("|")) for frame in line[7:].split("\t")]
               for line in made.stdout.splitlines() if line.startswith("sample ")]
    # Where plumb itself was at work, the sample stands in a row of its own. A thread's first C frame is plumb's.
    samples = [[frame for frame in stack if "libplumb" not in frame[0]] for stack in samples
               if "libplumb" not in stack[0][0] and any(name == "work" for _, name, _ in stack)]
    # The kernel's ticks and the machine's other work decide how many there are.
    assert len(samples) > 50, made.stdout + made.stderr
    profile = plumb_package.Profile(made.path)
    libraries = {code.build_id or code.path: code.path for code in profile.code_objects}
    contexts = {}
    for number, stat in profile._stats("cpu.time")[0].items():
        node = plumb_package.Node(profile, number)
        if stat[1] and any(above.symbol == "work" for above in [node] + node.ancestors):
            contexts[number] = path_of(node), stat[1]
    found = collections.Counter()
    for stack in samples:
        same = [number for number, (path, _) in contexts.items() if is_same(path, stack, libraries)]
        assert same, (stack, [[node.symbol for node in path] for path, _ in contexts.values()])
        # gdb and plumb may have a function of libc by two names: the path decides, then the name.
        found[max(same, key=lambda number: contexts[number][0][0].symbol == stack[0][1])] += 1
    # Contexts that are inlined in one function have one path.
    def by_path(counts):
        sums = collections.Counter()
        for number, count in counts.items():
            sums[tuple((node.symbol, node.line) for node in contexts[number][0])] += count
        return sums
    seen, kept = by_path(found), by_path({n: count for n, (_, count) in contexts.items()})
    # gdb tells one stop twice now and then, when both threads get their signal at once.
    assert sum(((seen - kept) + (kept - seen)).values()) <= 2, (seen - kept, kept - seen)
    # Of every shape: through libc, in the middle of a signal's handler, recursive, on both threads.
    names = {name for stack in samples for _, name, _ in stack}
    assert {"compare", "on_signal", "deep", "main"} <= names
    assert any("main" not in {name for _, name, _ in stack} for stack in samples)


def test_an_instruction_that_is_sampled_and_interrupted(record, tmp_path):
    """A sample's own instruction stands for its whole function; beneath a signal's handler it stands for itself."""
    build(tmp_path, "gcc", "-O2", "-o", "spinning", os.path.join(NATIVE, "spinning.c"))
    made = record(tmp_path / "spinning", options=("--cpu=1000", "--mode", "full", "--no-gpu"))
    profile = plumb_package.Profile(made.path)
    sampled, beneath = set(), set()
    for number, stat in profile._stats("cpu.time")[0].items():
        node = plumb_package.Node(profile, number)
        if stat[1] and node.symbol == "spin":
            sampled.add(node.line)
        beneath |= {above.line for above in node.ancestors if stat[1] and above.symbol == "spin"}
    assert sampled == {None}
    assert len(beneath) == 1 and None not in beneath, beneath
