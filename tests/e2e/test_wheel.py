# SPDX-License-Identifier: Apache-2.0
"""The wheel: made by `pip install .`, complete in itself, and for old C libraries."""
import copy
import re
import shutil
import subprocess
import sys
import textwrap
import zipfile

import pytest
from conftest import BUILD, ROOT, run_command


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """What `pip wheel .` makes, without the network for itself."""
    folder = tmp_path_factory.mktemp("wheel")
    for made in ("tool", "commands"):  # its own program differs in how it is linked; make sees if there is more
        if (BUILD / made).is_dir():
            shutil.copytree(BUILD / made, folder / "build/wheel" / made)
    done = run_command(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-index", "-w", folder,
                       ROOT, timeout=900, env={"BUILD": str(folder / "build")})
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def venv(wheel, tmp_path_factory):
    """A fresh environment in which the wheel is installed; its folder's name has a space."""
    folder = tmp_path_factory.mktemp("with a space") / "venv"
    subprocess.run(["/usr/bin/python3", "-m", "venv", folder], check=True)
    done = run_command(folder / "bin/python", "-m", "pip", "install", "--no-index", wheel)
    assert done.returncode == 0, done.stderr
    return folder


def test_is_complete(wheel):
    done = run_command(ROOT / "scripts/check_wheel.py", wheel)
    assert done.returncode == 0, done.stdout


def test_readme_and_check_name_one_glibc():
    oldest = re.search(r"OLDEST = \(2, (\d+)\)", (ROOT / "scripts/check_wheel.py").read_text())[1]
    assert f"2.{oldest} for `plumb` itself" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("missing", ["make", "readelf"])
def test_missing_tools_are_named(missing, tmp_path):
    """What pip calls says what is missing, without a traceback."""
    (tmp_path / "bin").mkdir()
    for tool in ("make", "readelf", "sh", "gcc"):
        if tool != missing:
            (tmp_path / "bin" / tool).symlink_to("/bin/true")
    done = run_command(sys.executable, "-c", "import backend; backend.build_wheel('.')", cwd=tmp_path,
                       env={"PATH": str(tmp_path / "bin"), "PYTHONPATH": str(ROOT / "python"),
                            "BUILD": str(tmp_path / "build")})
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert missing in line and "not installed" in line


def test_says_what_is_wrong(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as whole:
        for missing in ("plumb/_bin/libplumb.so", "plumb/__init__.py"):
            poor = tmp_path / wheel.name
            with zipfile.ZipFile(poor, "w") as part:
                for item in whole.infolist():
                    if item.filename != missing:
                        part.writestr(copy.copy(item), whole.read(item))
            done = run_command(ROOT / "scripts/check_wheel.py", poor)
            assert done.returncode == 1
            assert f"lacks {missing}" in done.stdout
    odd = tmp_path / wheel.name.replace("manylinux_2_", "manylinux_2_1")
    shutil.copy(wheel, odd)
    assert run_command(ROOT / "scripts/check_wheel.py", odd).returncode == 1


def test_installs_the_command(venv):
    version = (ROOT / "VERSION").read_text().strip()
    done = run_command(venv / "bin/plumb", "version")
    assert done.returncode == 0, done.stderr
    assert version in done.stdout
    done = run_command(venv / "bin/python", "-c", "import plumb; print(plumb.__version__)")
    assert done.stdout.strip() == version


def test_runs_as_a_module(venv, tmp_path):
    done = run_command(venv / "bin/python", "-m", "plumb", "version", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (ROOT / "VERSION").read_text().strip() in done.stdout


def test_the_command_keeps_arguments_and_exit_code(venv, tmp_path):
    done = run_command(venv / "bin/plumb", "run", "-o", tmp_path / "a b.plumb", "--", "sh", "-c",
                       'printf "%s|" "$@"; exit 7', "sh", "a b", "", "*", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (7, "a b||*|")


def test_installed_plumb_profiles_torch(venv, tmp_path, torch_python):
    script = tmp_path / "tiny.py"
    script.write_text(textwrap.dedent("""\
        import torch
        x = torch.ones(4, 4)
        for _ in range(3):
            x = torch.mm(x, x)
        """))
    path = tmp_path / "tiny.plumb"
    done = run_command(venv / "bin/plumb", "run", "-o", path, "--", torch_python, script,
                       cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    code = ("import plumb, sys; p = plumb.Profile(sys.argv[1]); "
            "print(sum(n.exclusive['op.calls'].sum for n in "
            "p.match('**/@tiny.py:4/**/operator:aten::mm')))")
    done = run_command(venv / "bin/python", "-c", code, path)
    assert done.stdout.strip() == "3", done.stderr


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_collector_compiles_for_old_glibc(machine, tmp_path):
    done = run_command("make", f"BUILD={tmp_path}", "COLLECT_CC=scripts/zig-cc",
                       f"{tmp_path}/libplumb.so", cwd=ROOT, env={"TARGET": machine}, timeout=900)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    done = run_command(ROOT / "scripts/check_collector.py", "--glibc", "2.28",
                       tmp_path / "libplumb.so")
    assert done.returncode == 0, done.stdout
