# SPDX-License-Identifier: Apache-2.0
"""The house keeps its own rules: arrows, licences, entry points, warnings, sanitizers, corpora."""
import re
import shutil
import subprocess

import pytest
from conftest import BUILD, LIBPLUMB, PLUMB, ROOT, clean_environment, run_command

SCRIPTS = ROOT / "scripts"


def check(script, *arguments):
    done = run_command(SCRIPTS / script, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr


def make(*arguments, env=None):
    """Runs make in the checkout; fails the test with the end of its output."""
    done = subprocess.run(["make", "--no-print-directory", f"BUILD={BUILD}", *arguments], cwd=ROOT,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=1800, env=clean_environment(**(env or {})))
    assert done.returncode == 0, done.stdout[-6000:]
    return done.stdout


def test_arrows_point_down():
    check("check_arrows.py")


def check_small_tree(folder, file, line):
    """Runs check_arrows.py on a small tree in FOLDER, where FILE has LINE as its second line."""
    rooms = ("base", "region", "model", "store", "settle", "collect", "analyze", "watch", "view", "serve", "cli")
    for name in [*(f"{room}/{room}.h" for room in rooms), file]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    (folder / file).write_text(f"/* first */\n{line}\n")
    return run_command(SCRIPTS / "check_arrows.py", folder)


@pytest.mark.parametrize("file, line, problem", [
    ("base/a.c", '#include "model/model.h"', ":2: base/ may not use model/"),
    ("collect/gpu/a.c", '#include "settle/settle.h"', ":2: collect/ may not use settle/"),
    ("model/a.h", '# include  "store/store.h"', ":2: model/ may not use store/"),
    ("watch/a.c", '#include "cli/cli.h"', ":2: watch/ may not use cli/"),
    ("watch/a.c", '#include "collect/collect.h"', ":2: watch/ may not use collect/"),
    ("settle/a.c", '#include "watch/watch.h"', ":2: settle/ may not use watch/"),
    ("view/a.c", '#include "cli/cli.h"', ":2: view/ may not use cli/"),
    ("view/a.c", '#include "store/store.h"', ":2: view/ may not use store/"),
    ("view/a.c", '#include "serve/serve.h"', ":2: view/ may not use serve/"),
    ("serve/a.c", '#include "store/store.h"', ":2: serve/ may not use store/"),
    ("analyze/a.c", '#include "view/view.h"', ":2: analyze/ may not use view/"),
    ("cli/a.c", '#include "cli.h"', ':2: "cli.h" is not a path from src/'),
    ("attic/a.c", "", ": the folder attic/ has no row"),
])
def test_a_wrong_arrow_is_found(tmp_path, file, line, problem):
    done = check_small_tree(tmp_path, file, line)
    assert done.returncode == 1
    assert done.stdout.startswith(f"{tmp_path / file}{problem}"), done.stdout
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize("file, used", [
    ("watch/a.c", "region"), ("watch/a.c", "base"), ("view/a.c", "analyze"), ("view/a.c", "model"),
    ("cli/a.c", "watch"), ("cli/a.c", "view"),
])
def test_a_right_arrow_is_no_problem(tmp_path, file, used):
    done = check_small_tree(tmp_path, file, f'#include "{used}/{used}.h"')
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("first, second, name", [
    (("src/base/a.h", "struct gate {\n\tint x;\n};"), ("src/cli/b.c", "struct gate { int y; };"), "gate"),
    (("src/base/a.c", "union plumb_gate { int x; };"), ("src/cli/b.c", "enum plumb_gate { OPEN };"), "plumb_gate"),
    (("src/base/a.h", "enum { FIRST, GATE = 1 << 2, };"), ("src/cli/b.h", "#define GATE 5"), "GATE"),
    (("src/base/a.h", "typedef struct { int x; } gate;"), ("src/cli/b.c", "typedef int (*gate)(int);"), "gate"),
    (("include/plumb/a.h", "struct plumb_gate {};"), ("src/cli/b.h", "enum plumb_gate { OPEN };"), "plumb_gate"),
])
def test_a_name_with_two_meanings_is_found(tmp_path, first, second, name):
    for file, text in (first, second):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text(text)
    done = run_command(SCRIPTS / "check_arrows.py", tmp_path / "src")
    assert done.returncode == 1
    assert f": {name} is defined in {tmp_path}" in done.stdout and len(done.stdout.splitlines()) == 1, done.stdout


@pytest.mark.parametrize("header, source", [
    ("struct plumb_gate { int x; };", "struct plumb_gate;\nstruct plumb_gate *f(void);"),
    ("/* struct gate { int x; }; */ enum { A = F(b, c) };", 'struct gate { int b, c; }; char *g = "enum { A }";'),
    ("#define X(name) name,\nLIST(X)\n#undef X", "#define X(name) #name\n#undef X"),
])
def test_a_name_with_one_meaning_is_no_problem(tmp_path, header, source):
    for file, text in (("base/a.h", header), ("base/a.c", source), ("base/b.c", "struct own { int x; };"),
                       ("base/c.c", "struct own { int y; };")):
        (tmp_path / "src" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "src" / file).write_text(text)
    done = run_command(SCRIPTS / "check_arrows.py", tmp_path / "src")
    assert (done.returncode, done.stdout) == (0, "")


def test_every_source_names_its_licence():
    check("check_spdx.py")


def test_a_source_without_licence_is_found(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "Makefile").write_text("# SPDX-License-Identifier: Apache-2.0\n")
    (tmp_path / "src" / "bare.c").write_text("int x;\n")
    done = run_command(SCRIPTS / "check_spdx.py", tmp_path)
    assert done.returncode == 1
    assert "bare.c" in done.stdout


def test_collector_asks_little_of_its_host():
    check("check_collector.py", LIBPLUMB)
    check("check_collector.py", LIBPLUMB.parent / "plumb-counter.so")


@pytest.mark.parametrize("source, flags, problem", [
    ("int stray(void) { return 1; }", [], "exports stray"),
    ("double cos(double); double (*f)(double) = cos;", ["-lm"], "needs the library libm.so.6"),
    ("static __thread char big[600]; char *dlsym(void) { return big; }", ["-ftls-model=initial-exec"],
     "thread-local storage"),
    ("__thread int x; int *dlsym(void) { return &x; }", [], "needs __tls_get_addr"),
    ("int dlsym(void) { return 1; }", [], "can be unloaded"),
])
def test_a_demanding_collector_is_found(tmp_path, source, flags, problem):
    (tmp_path / "bad.c").write_text(source)
    subprocess.run(["gcc", "-w", "-fno-builtin", "-shared", "-fPIC", "-o", "bad.so", "bad.c",
                    "-Wl,--no-as-needed", *flags], cwd=tmp_path, check=True)
    done = run_command(SCRIPTS / "check_collector.py", tmp_path / "bad.so")
    assert done.returncode == 1
    assert problem in done.stdout


def test_clang_builds_everything_without_a_warning():
    make("clang")


def test_unit_tests_and_corpora_hold_under_sanitizers():
    make("sanitize")


def fuzz_targets():
    return sorted(path.stem for path in (ROOT / "tests/fuzz").glob("fuzz_*.c"))


@pytest.mark.parametrize("name", fuzz_targets())
def test_corpus_replays(name):
    corpus = ROOT / "tests/fuzz/corpus" / name[len("fuzz_"):]
    assert any(path.is_file() for path in corpus.rglob("*")), f"no corpus in {corpus}"
    done = run_command(BUILD / "fuzz" / name, corpus)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("status, seconds, code", [(0, "1", 0), (77, "1", 1), (0, "0", 1), (0, "", 1)])
def test_a_target_that_breaks_fails(status, seconds, code, tmp_path):
    """libFuzzer would take 0 seconds for ever."""
    target = tmp_path / "fuzz_store"
    target.write_text(f"#!/bin/sh\necho $1; echo 'stat::number_of_executed_units: 5'; exit {status}\n")
    target.chmod(0o755)
    done = run_command(SCRIPTS / "fuzz.sh", target, env=clean_environment(FUZZ_SECONDS=seconds))
    assert done.returncode == code, done.stdout
    if seconds == "1":
        assert ("FAILED  fuzz_store" if status else "ok      fuzz_store: 5 inputs in 1 s") in done.stdout


def test_version_is_one():
    version = (ROOT / "VERSION").read_text().strip()
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text()
    done = run_command(PLUMB, "version")
    assert done.returncode == 0
    assert version in done.stdout


def test_shell_scripts_parse():
    for path in sorted(SCRIPTS.iterdir()) + [ROOT / ".ci/run"]:
        if path.is_file() and path.read_bytes().startswith(b"#!/bin/sh"):
            subprocess.run(["sh", "-n", str(path)], check=True)


def test_every_folder_has_its_page():
    pages = {path.stem for path in (ROOT / "docs/folders").glob("*.md")}
    folders = {path.name for path in (ROOT / "src").iterdir() if path.is_dir()}
    folders |= {"python", "tests", "bench", "web", "vscode"}
    assert folders <= pages, f"no page in docs/folders for {sorted(folders - pages)}"


def rooms_of(table):
    """What the folders of src/ use, by the table in docs/index.md: folder → set of folders."""
    rows = re.findall(r"^\| \[(\w+)\]\(folders/\w+\.md\) \|[^|]*\| ([^|]*) \|$", table, re.M)
    return {folder: set(uses.split(", ")) - {"base", "libc"} for folder, uses in rows if (ROOT / "src" / folder).is_dir()}


def test_the_table_of_folders_is_that_of_the_check(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    from check_arrows import MAY_USE
    folders = {path.name for path in (ROOT / "src").iterdir() if path.is_dir()}
    rooms = rooms_of((ROOT / "docs/index.md").read_text())
    assert rooms.pop("cli") == {"all below"}
    assert rooms == {folder: MAY_USE[folder] & folders for folder in folders - {"cli"}}


def unknown_sources(page, text):
    """The C files that TEXT, the page of a folder, names and that are neither there nor at that path."""
    roots = [ROOT / "src" / page, ROOT / page]
    for name in re.findall(r"`([\w./*-]+\.[ch])`", text):
        if not any(any(root.rglob(name)) for root in roots) and not any((ROOT / "src").glob(name)) \
                and not any(ROOT.glob(name)):
            yield name


def test_sources_in_the_pages_of_folders_are_there():
    unknown = [f"{page.relative_to(ROOT)}: {name}" for page in (ROOT / "docs/folders").glob("*.md")
               for name in unknown_sources(page.stem, page.read_text())]
    assert not unknown, "\n".join(unknown)


def test_a_source_that_moved_is_found():
    text = "`run.c`, `run/run.c`, `cli/run/run.c`, `base/words.h`, `generate_*.c`; `asleep.c`, `cli/run.c`, `made_up_*.h`"
    assert list(unknown_sources("cli", text)) == ["asleep.c", "cli/run.c", "made_up_*.h"]


def links(page):
    """The local targets of PAGE's Markdown links."""
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if "://" not in target and not target.startswith("mailto:"):
            yield target


def test_links_in_the_docs_lead_somewhere():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    dead = [f"{page.relative_to(ROOT)}: {target}" for page in pages for target in links(page)
            if not (page.parent / target).exists()]
    assert not dead, "\n".join(dead)


def test_install(tmp_path):
    # -o: as it was built, with whatever flags that was.
    built = [f"-o{BUILD.relative_to(ROOT) if ROOT in BUILD.parents else BUILD}/{name}" for name in ("plumb", "libplumb.so", "plumb-counter.so")]
    make(*built, "install", f"DESTDIR={tmp_path}", "PREFIX=/opt/plumb")
    installed = tmp_path / "opt/plumb"
    assert (installed / "share/man/man1/plumb-run.1").stat().st_size
    assert (installed / "share/bash-completion/completions/plumb").stat().st_size
    done = run_command(installed / "bin/plumb", "run", "-o", tmp_path / "t.plumb", "--", "sh", "-c",
                       "exit 5", cwd=tmp_path)
    assert done.returncode == 5, done.stderr
    done = run_command(installed / "bin/plumb", "report", ROOT / "tests/data/h200_example.plumb",
                       "--findings", "--rule", ROOT / "examples/rules/fusion.py")
    assert done.returncode == 0 and "rule-fusion-" in done.stdout, done.stderr


def test_generated_docs_are_current(tmp_path):
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    done = run_command(PLUMB, "generate", "docs", tmp_path / "docs")
    assert done.returncode == 0, done.stderr
    stale = [path.name for path in sorted((tmp_path / "docs").glob("*.md"))
             if path.read_text() != (ROOT / "docs" / path.name).read_text()]
    assert not stale, f"run make docs: {stale}"


class TestBootstrap:
    """scripts/bootstrap.sh with a PATH that lacks things: it names them and stops."""

    def bootstrap(self, folder, *arguments, tools=()):
        bin_ = folder / "bin"
        bin_.mkdir()
        for tool in ("sh", "dirname", "cat", "id", "env", *tools):
            (bin_ / tool).symlink_to(shutil.which(tool))
        return subprocess.run([SCRIPTS / "bootstrap.sh", *arguments], text=True,
                              capture_output=True,
                              env={"PATH": str(bin_), "HOME": str(folder)})

    def test_is_content_here(self):
        done = run_command(SCRIPTS / "bootstrap.sh", "--check", "build")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    def test_names_what_is_missing_and_stops(self, tmp_path):
        done = self.bootstrap(tmp_path, "build")
        assert done.returncode == 1
        for word in ("the C compiler gcc", "sqlite3.h", "zstd.h", "libelf.h", "python3"):
            assert word in done.stderr
        assert len(done.stderr.splitlines()) == 2

    def test_refuses_an_unknown_stage(self, tmp_path):
        done = self.bootstrap(tmp_path, "everything")
        assert done.returncode == 1
        assert "usage" in done.stderr


def test_make_names_a_missing_header(tmp_path):
    """A compiler that finds no sqlite3.h gives one clear line and no wall of errors."""
    compiler = tmp_path / "cc"
    compiler.write_text('#!/bin/sh\nexec gcc -nostdinc "$@"\n')
    compiler.chmod(0o755)
    done = subprocess.run(["make", f"BUILD={tmp_path}/build", f"CC={compiler}"], cwd=ROOT, text=True,
                          capture_output=True, env=clean_environment())
    assert done.returncode != 0
    assert "sqlite3.h" in done.stderr
    assert "libsqlite3-dev" in done.stderr or "package manager" in done.stderr
