# SPDX-License-Identifier: Apache-2.0
"""`plumb doctor`: what it says about environments that are made here."""
import json
import os
import subprocess
import sys

import pytest
from conftest import LIBPLUMB, PLUMB, run_command

EXPECTED = {"python", "gpu.driver", "gpu.cupti", "gpu.slot", "gpu.counters", "gpu.mode.activity", "gpu.sanitizer",
            "gpu.mode.traffic", "collector", "asan",
            "libc", "kernel", "kernel.populate", "perf_events", "ptrace", "disk.here", "disk.tmp",
            "disk.shm", "libc.programs", "native.unwind", "native.symbols", "native.debuginfod"}


def doctor(*program, env=None, **options):
    done = run_command(PLUMB, "doctor", "--json", *program, env=env, **options)
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    assert (answer["schema"], answer["verb"]) == (1, "doctor")
    for check in answer["checks"]:
        assert set(check) == {"id", "state", "what", "why", "remedy"}
        assert check["state"] in ("yes", "no", "partly")
        assert check["what"]
        assert (check["why"] is None) == (check["state"] == "yes"), check
    return answer["checks"]


def one(checks, name):
    return next(check for check in checks if check["id"] == name)


def test_every_check_is_there_and_text_says_the_same():
    checks = doctor()
    assert EXPECTED <= {check["id"] for check in checks}
    done = run_command(PLUMB, "doctor")
    assert done.returncode == 0
    for check in checks:
        if not check["id"].startswith("disk"):
            assert check["what"] in done.stdout
            assert not check["remedy"] or check["remedy"] in done.stdout


def test_torch_is_found_without_being_imported(torch_python, tmp_path):
    # Not by a link: a virtual environment's Python knows itself by where it is called.
    (tmp_path / "python3").write_text(f'#!/bin/sh\nexec "{torch_python}" "$@"\n')
    (tmp_path / "python3").chmod(0o755)
    version = subprocess.run([torch_python, "-c", "from importlib import metadata as m; "
                              "print(m.version('torch'))"], capture_output=True, text=True)
    # A folder of the user's that would break the imports of a careless script.
    (tmp_path / "here").mkdir()
    (tmp_path / "here/glob.py").write_text("raise SystemExit('imported')")
    checks = doctor(env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}, cwd=tmp_path / "here")
    torch = one(checks, "framework.torch")
    assert torch["state"] == "yes"
    assert version.stdout.strip() in torch["what"]


def fake_python(folder, **facts):
    facts = {"executable": "/opt/python", "identity": "/opt/python in /opt", "version": "3.11.2", "major": "3", "minor": "11",
             "kind": "cpython", "free": "0", **facts}
    path = folder / "python3"
    path.write_text("#!/bin/sh\n" + "".join(f"echo {k}={v}\n" for k, v in facts.items()))
    path.chmod(0o755)
    return {"PATH": str(folder)}


@pytest.mark.parametrize("facts, state, word", [
    ({}, "yes", None),
    ({"version": "3.14.0", "minor": "14", "free": "1"}, "no", "free-threaded"),
    ({"version": "3.8.1", "minor": "8"}, "no", "3.9 to 3.14"),
    ({"version": "3.15.0", "minor": "15"}, "no", "3.9 to 3.14"),
    ({"kind": "pypy"}, "no", "CPython"),
])
def test_pythons_that_are_supported_and_not(tmp_path, facts, state, word):
    check = one(doctor(env=fake_python(tmp_path, **facts)), "python")
    assert check["state"] == state
    assert word is None or word in check["why"]


@pytest.mark.parametrize("torch, state", [("1.12.1", "no"), ("1.13.1", "yes"),
                                          ("2.15.0+cu130", "yes")])
def test_torch_versions(tmp_path, torch, state):
    check = one(doctor(env=fake_python(tmp_path, torch=torch)), "framework.torch")
    assert check["state"] == state and torch in check["what"]


def test_no_python_and_a_broken_one(tmp_path):
    assert one(doctor(env={"PATH": str(tmp_path)}), "python")["state"] == "no"
    path = tmp_path / "python3"
    path.write_text("#!/bin/sh\nkill -9 $$\n")
    path.chmod(0o755)
    assert one(doctor(env={"PATH": str(tmp_path)}), "python")["state"] == "no"


def test_other_tools_in_the_cupti_slot():
    check = one(doctor(env={"CUDA_INJECTION64_PATH": "/opt/tool/libInjection64.so"}), "gpu.slot")
    assert check["state"] == "partly" and "/opt/tool/libInjection64.so" in check["why"]
    check = one(doctor(env={"KINETO_USE_DAEMON": "1"}), "gpu.slot")
    assert check["state"] == "partly" and "KINETO_USE_DAEMON" in check["why"]


def test_a_running_profiler_is_named(tmp_path):
    (tmp_path / "nv-hostengine").symlink_to("/bin/sleep")
    other = subprocess.Popen([tmp_path / "nv-hostengine", "60"])
    try:
        check = one(doctor(), "gpu.slot")
        assert check["state"] == "partly" and "nv-hostengine" in check["why"]
    finally:
        other.kill()
        other.wait()


DRIVER = """
#include <stdlib.h>
#include <string.h>
int cuDriverGetVersion(int *v) { *v = 13000; return 0; }
int cuInit(unsigned f) { if (getenv("CRASH")) abort(); return getenv("NONE") ? 100 : 0; }
int cuDeviceGetCount(int *n) { *n = 2; return 0; }
int cuDeviceGet(int *d, int i) { *d = i; return 0; }
int cuDeviceGetName(char *name, int n, int d) { strncpy(name, "Mock GPU", n); return 0; }
"""


def test_driver_and_cupti(tmp_path):
    """A stand-in driver, and CUPTIs in a Python's package."""
    (tmp_path / "c.c").write_text(DRIVER)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / "libcuda.so.1", tmp_path / "c.c"],
                   check=True)
    (tmp_path / "u.c").write_text("int cuptiGetVersion(unsigned *v) { *v = 28; return 0; }\n")
    for major in (12, 14):
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / f"libcupti.so.{major}",
                        tmp_path / "u.c"], check=True)
    library = {"LD_LIBRARY_PATH": str(tmp_path)}

    checks = doctor(env={**library, **fake_python(tmp_path, cupti=tmp_path / "libcupti.so.12")})
    assert "CUDA 13.0" in one(checks, "gpu.driver")["what"]
    assert one(checks, "gpu.devices")["what"] == "2 GPUs (Mock GPU first)"
    cupti = one(checks, "gpu.cupti")
    assert cupti["state"] == "yes" and "libcupti.so.12 (API 28)" in cupti["what"]
    slot, mode = one(checks, "gpu.slot"), one(checks, "gpu.mode.activity")
    assert mode["what"] == "plumb run --gpu=activity: kernels, copies, sets and graphs, with their times"
    assert mode["state"] == slot["state"]  # the machine may run another profiler

    checks = doctor(env={**library, **fake_python(tmp_path, cupti=tmp_path / "libcupti.so.14")})
    cupti = one(checks, "gpu.cupti")
    assert cupti["state"] == "partly" and "for CUDA 14, but the driver is for CUDA 13" in cupti["why"]
    mode = one(checks, "gpu.mode.activity")
    assert mode["state"] == "partly" and mode["why"].startswith("see gpu.cupti")

    checks = doctor(env={**library, **fake_python(tmp_path, cupti=tmp_path / "libcupti.so.12"), "NONE": "1"})
    devices, mode = one(checks, "gpu.devices"), one(checks, "gpu.mode.activity")
    assert devices["state"] == "no" and "error 100" in devices["why"]
    assert mode["state"] == "no" and mode["why"].startswith("see gpu.devices")
    devices = one(doctor(env={**library, "CRASH": "1"}), "gpu.devices")
    assert devices["state"] == "no" and "crashed" in devices["why"]


def test_collector_that_cannot_be_loaded(tmp_path):
    bad = tmp_path / "libplumb.so"
    bad.write_text("no library")
    check = one(doctor(env={"PLUMB_LIBRARY": str(bad)}), "collector")
    assert check["state"] == "no" and str(bad) in check["why"]
    check = one(doctor(env={"PLUMB_LIBRARY": "/nowhere/libplumb.so"}), "collector")
    assert check["state"] == "no" and "/nowhere" in check["why"]
    check = one(doctor(env={"PLUMB_LIBRARY": str(LIBPLUMB)}), "collector")
    assert check["state"] == "yes"


def test_disk_that_is_small(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk],
                          capture_output=True)
    if done.returncode:
        pytest.skip("may not mount a small file system")
    try:
        check = one(doctor(cwd=disk), "disk.here")
        assert check["state"] == "no" and "--folder" in check["remedy"]
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_python_of_this_test_is_named():
    checks = doctor(env={"PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"})
    assert sys.executable in one(checks, "python")["what"]


# ---- native code, and a program ----

HELLO = "int main(void) { return 0; }\n"


def compiled(folder, *options, name="program"):
    (folder / "main.c").write_text(HELLO)
    subprocess.run(["gcc", "-o", name, *options, "main.c"], cwd=folder, check=True)
    return folder / name


@pytest.mark.parametrize("options, loaded, lines", [
    (["-g"], "yes", "yes"),
    ([], "yes", "partly"),
    (["-static", "-g"], "partly", "yes"),
    (["-static-pie", "-g"], "partly", "yes"),
    (["-g", "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"], "no", "yes"),
], ids=" ".join)
def test_a_program_is_looked_at(tmp_path, options, loaded, lines):
    path = compiled(tmp_path, *options)
    checks = doctor(path)
    program, native = one(checks, "program"), one(checks, "native.program")
    assert (program["state"], native["state"]) == (loaded, lines)
    assert str(path) in program["what"] and str(path) in native["what"]
    if loaded == "no":
        assert "musl" in program["why"] and "glibc" in program["remedy"]
    if loaded == "partly":
        assert "statically linked" in program["why"]
    if lines == "partly":
        assert "no debug information" in native["why"] and "DEBUGINFOD_URLS" in native["remedy"]


def test_a_program_that_is_not_there(tmp_path):
    program = one(doctor(tmp_path / "none"), "program")
    assert program["state"] == "no" and "No such file" in program["why"]


def test_a_python_of_musl_is_named(tmp_path):
    compiled(tmp_path, "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1", name="python3")
    programs = one(doctor(env={"PATH": f"{tmp_path}:/usr/bin:/bin"}), "libc.programs")
    assert programs["state"] == "no"
    assert f"{tmp_path}/python3 is linked with musl" in programs["why"]
    assert "Alpine" in programs["remedy"]


def test_debuginfod_is_the_environments_matter():
    check = one(doctor(env={"DEBUGINFOD_URLS": ""}), "native.debuginfod")
    assert check["state"] == "no" and "not set" in check["why"]
    check = one(doctor(env={"DEBUGINFOD_URLS": "file:///nowhere"}), "native.debuginfod")
    assert check["state"] in ("yes", "partly")
    assert "file:///nowhere" in check["what"] or "libdebuginfod" in check["why"]


def test_the_code_of_python_and_torch_is_found(torch_python, tmp_path):
    (tmp_path / "python3").write_text(f'#!/bin/sh\nexec "{torch_python}" "$@"\n')
    (tmp_path / "python3").chmod(0o755)
    checks = doctor(env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert "libtorch_cpu" in one(checks, "native.torch")["what"]
    assert "python" in one(checks, "native.python")["what"]
    for name in ("native.torch", "native.python"):
        found = int(one(checks, name)["what"].split()[0])
        assert found > 500


@pytest.mark.parametrize("number, version, state", [(23007, "2.30.7", "yes"), (22602, "2.26.2", "yes"), (22105, "2.21.5", "no")])
def test_nccl(tmp_path, number, version, state):
    (tmp_path / "n.c").write_text(f"int ncclGetVersion(int *v) {{ *v = {number}; return 0; }}\n")
    library, plugin = tmp_path / "libnccl.so.2", tmp_path / "plugin.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, tmp_path / "n.c"], check=True)
    python = fake_python(tmp_path, nccl=library)
    nccl = one(doctor(env=python), "nccl")
    assert nccl["state"] == state and nccl["what"] == f"NCCL {version} in {library}: plumb run --traffic"
    assert (nccl["remedy"] or "").startswith("" if state == "yes" else "use NCCL 2.26")
    plugin.write_text("ncclProfiler_v6 alone")
    nccl = one(doctor(env={**python, "NCCL_PROFILER_PLUGIN": str(plugin)}), "nccl")
    assert nccl["state"] == ("partly" if state == "yes" else "no")
    assert (nccl["remedy"] == "unset NCCL_PROFILER_PLUGIN") == (state == "yes")
