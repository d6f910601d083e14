# SPDX-License-Identifier: Apache-2.0
"""What `make` makes again when its flags change, and where it finds libraries."""
import pathlib
import shutil
import subprocess

import pytest
from conftest import ROOT, clean_environment

KINDS = ["libplumb", "counter", "plumb", "collect", "tool", "bundle", "tests", "unit", "fuzz", "example",
         "mock"]
GOALS = ["all", "unit-programs", "fuzz-programs", "examples", "mock"]


def make(build, *arguments, **environment):
    done = subprocess.run(["make", "--no-print-directory", f"BUILD={build}", "LTO=", *arguments], cwd=ROOT,
                          capture_output=True, text=True, timeout=300, env=clean_environment(**environment))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A folder that looks as if all was built in it: the commands are real, all other files are empty."""
    build = tmp_path_factory.mktemp("build")
    make(build, *(f"{build}/commands/{kind}" for kind in KINDS))
    for line in make(build, "-n", *GOALS).splitlines():
        if line.startswith("mkdir -p "):
            pathlib.Path(line.split()[2]).mkdir(parents=True, exist_ok=True)
    make(build, "-t", *GOALS)
    return build


def made_again(build, *arguments, **environment):
    """The parts of BUILD for which `make ARGUMENTS` would run a compiler."""
    words = [word for line in make(build, "-n", *GOALS, *arguments, **environment).splitlines()
             if " -o " in line for word in line.split(" -o ")[1:]]
    made = {pathlib.Path(word.split()[0]).relative_to(build) for word in words}
    return {part.parts[0] for part in made}


def test_nothing_is_made_again_with_the_same_flags(tree):
    assert made_again(tree) == set()


@pytest.mark.parametrize("changed, made", [
    ("OPT=-O0 -g", {"collect", "tool", "tests", "unit", "fuzz", "plumb", "libplumb.so", "plumb-counter.so"}),
    ("CPPFLAGS=-DX -Isrc -Iinclude -D_GNU_SOURCE", {"collect", "tool", "tests", "unit", "fuzz", "plumb", "libplumb.so", "plumb-counter.so"}),
    ("LTO=-flto", {"collect", "unit", "fuzz", "libplumb.so", "plumb-counter.so"}),
    ("LDFLAGS=-Wl,-O1", {"unit", "fuzz", "plumb", "libplumb.so", "plumb-counter.so"}),
    ("WERROR=-Wpedantic", {"collect", "tool", "tests", "unit", "fuzz", "plumb", "libplumb.so", "plumb-counter.so", "examples", "mock", "torture"}),
    ("TOOL=src/cli/main.c", {"unit", "fuzz", "plumb"}),  # a source that is no more there
])
def test_changed_flags_make_again(changed, made, tree):
    assert made_again(tree, changed) == made


def test_a_changed_flag_compiles_once(tmp_path):
    target = f"{tmp_path}/tool/base/words.o"
    for flags in ("OPT=-O2 -g", "OPT=-O0 -g"):
        assert "words.o" in make(tmp_path, flags, target)
        assert "CC" not in make(tmp_path, flags, target)


def fake_pkg_config(folder, lines):
    path = folder / "pkg-config"
    path.write_text("#!/bin/sh\n" + lines)
    path.chmod(0o755)
    return path


def test_libraries_come_from_pkg_config(tree, tmp_path):
    fake = fake_pkg_config(tmp_path, 'case $* in *--cflags*) echo -I/there/include ;; *) echo -L/there/lib -lthere ;; esac\n')
    plan = make(tree, "-n", "all", f"PKG_CONFIG={fake}")
    assert "-I/there/include" in plan and "-L/there/lib -lthere" in plan and "-lsqlite3" not in plan


def test_without_pkg_config_the_usual_names_are_tried(tree):
    plan = make(tree, "-n", "all", "PKG_CONFIG=no-such-program", "OPT=-O0")
    assert "plumb: pkg-config is not installed" in plan and "-lsqlite3" in plan


def test_bootstrap_names_libraries_as_pkg_config_does(tmp_path):
    """Where there is no apt-get, as on Fedora and Arch."""
    fake_pkg_config(tmp_path, 'case $* in --exists*libdw | --exists*libzstd) exit 1 ;; esac\nexec /usr/bin/pkg-config "$@"\n')
    for tool in ("sh", "dirname", "cat", "id", "env", "python3"):
        (tmp_path / tool).symlink_to(shutil.which(tool))
    (tmp_path / "gcc").symlink_to("/usr/bin/gcc")  # not ccache's, which looks for it on PATH
    done = subprocess.run([ROOT / "scripts/bootstrap.sh", "--check", "build"], text=True, capture_output=True,
                          env=clean_environment(PATH=str(tmp_path)))
    assert done.returncode == 1
    what, how = done.stderr.splitlines()
    assert what.endswith("needs what is not installed: libzstd, libdw")
    assert "dnf install 'pkgconfig(NAME)'" in how
