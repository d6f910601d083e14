# SPDX-License-Identifier: Apache-2.0
"""Attacks by files and folders of somebody else: modules in the current folder, links and pipes in folders that are
read, databases that compute without end, names that steer a terminal."""
import gzip
import json
import os
import pty
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
import termios
import threading

import pytest
from conftest import PLUMB, ROOT, clean_environment, run_command
from regionwriter import Region

import plumb

DATA = ROOT / "tests" / "data"
RULE = ROOT / "examples" / "rules" / "fusion.py"
MEMORY = 1 << 30


# ---- programs that plumb starts ----

def poison(folder, *names):
    """Modules that tell on whoever imports them."""
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / f"{name}.py").write_text(f"open({str(folder / 'poisoned')!r}, 'a').write(__name__)\n")
    return folder


MODULES = ("json", "os", "math", "traceback", "importlib", "sqlite3", "re", "typing", "glob", "sysconfig", "torch",
           "sitecustomize", "usercustomize", "plumb")


def run_rule(where, rule=RULE, env=None):
    return run_command(PLUMB, "report", DATA / "h200_training.plumb", "--findings", "--rule", rule, cwd=where,
                       env={"PLUMB_PYTHON": sys.executable, **(env or {})})


def test_a_rule_imports_nothing_from_the_current_folder(tmp_path):
    folder = poison(tmp_path / "here", *MODULES)
    done = run_rule(folder)
    assert done.returncode == 0, done.stderr
    assert not (folder / "poisoned").exists()


@pytest.mark.parametrize("name", ["PYTHONPATH", "PYTHONSTARTUP", "PYTHONUSERBASE", "HOME"])
def test_a_rule_imports_nothing_that_the_environment_names(tmp_path, name):
    folder = poison(tmp_path / "there", *MODULES)
    site = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    for place in (site, folder / ".local" / site.relative_to(folder)):
        place.mkdir(parents=True)
        shutil.copy(folder / "usercustomize.py", place)
    value = folder / "json.py" if name == "PYTHONSTARTUP" else folder
    done = run_rule(tmp_path, env={name: str(value)})
    assert done.returncode == 0, done.stderr
    assert not (folder / "poisoned").exists()


def test_a_rule_imports_from_its_folder_only_when_it_says_so(tmp_path):
    folder = poison(tmp_path / "rules", "colorsys", "beside")
    rule = folder / "mine.py"
    rule.write_text("import colorsys\nflag(None, 'x')\n")
    assert run_rule(tmp_path, rule).returncode == 0
    assert not (folder / "poisoned").exists()
    rule.write_text("import beside\n")
    assert "ModuleNotFoundError" in run_rule(tmp_path, rule).stderr
    rule.write_text("import os, sys\nsys.path.append(os.path.dirname(os.path.abspath(__file__)))\nimport beside\n")
    assert run_rule(tmp_path, rule).returncode == 0
    assert (folder / "poisoned").read_text() == "beside"


@pytest.mark.parametrize("path", [":/usr/bin:/bin", ".:/usr/bin:/bin", "/usr/bin:/bin:", "here:/usr/bin:/bin"])
@pytest.mark.parametrize("words", [("report", DATA / "h200_training.plumb", "--rule", RULE), ("doctor",)])
def test_no_program_of_the_current_folder_is_started(tmp_path, words, path):
    (tmp_path / "here").mkdir()
    for folder in (tmp_path, tmp_path / "here"):
        for name in ("python3", "python", "true", "nvidia-smi"):
            (folder / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/poisoned\nexit 1\n")
            (folder / name).chmod(0o755)
    run_command(PLUMB, *words, cwd=tmp_path, env={"PATH": path})
    assert not (tmp_path / "poisoned").exists()


@pytest.mark.parametrize("value", ["", ".", ":", ":/nonexistent", "/nonexistent:"])
def test_doctor_imports_nothing_from_the_current_folder(tmp_path, value):
    folder = poison(tmp_path / "here", *MODULES)
    done = run_command(PLUMB, "doctor", cwd=folder, env={"PYTHONPATH": value})
    assert done.returncode in (0, 3), done.stderr
    assert not (folder / "poisoned").exists()


# ---- links and pipes ----

@pytest.fixture
def run_folder(tmp_path):
    """A folder as `plumb run` leaves it for `plumb settle`."""
    folder = tmp_path / "run"
    folder.mkdir()
    region = Region(pid=7)
    region.value(region.node(0, "python", "main", file="main.py", number=3), region.thread(7), nanoseconds=10)
    region.write(folder / "7.region")
    return folder


def settle(folder, **more):
    return run_command(PLUMB, "settle", folder, "-o", folder.parent / "out.plumb", timeout=20, **more)


def test_settle_follows_no_link_to_a_secret(run_folder, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("root:hunter2:19000\n")
    (run_folder / "9.off").symlink_to(secret)
    (run_folder / "9.region").symlink_to(secret)
    (run_folder / "control").symlink_to(secret)
    done = settle(run_folder)
    assert done.returncode == 0, done.stderr
    assert "hunter2" not in done.stderr and "9.off" in done.stderr
    assert b"hunter2" not in (tmp_path / "out.plumb").read_bytes()


@pytest.mark.parametrize("name", ["1.off", "9.region", "control", "compile", "libplumb.so"])
def test_settle_waits_for_no_pipe(run_folder, name):
    os.mkfifo(run_folder / name)
    done = settle(run_folder)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["meta.db", "profile.db"])
def test_import_waits_for_no_pipe_in_a_folder(tmp_path, name):
    folder = tmp_path / "db"
    folder.mkdir()
    (folder / "meta.db").write_bytes(b"HPCTOOLKITmeta\4\0" + bytes(200))
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    done = run_command(PLUMB, "import", folder, "-o", tmp_path / "out.plumb", timeout=20)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1


def test_no_verb_waits_for_a_pipe_instead_of_a_profile(tmp_path):
    pipe = tmp_path / "pipe.plumb"
    os.mkfifo(pipe)
    for words in (["report", pipe], ["iters", pipe], ["diff", pipe, DATA / "h200_training.plumb"],
                  ["export", pipe, "-F", "csv"]):
        assert run_command(PLUMB, *words, timeout=20).returncode == 2
    with pytest.raises(plumb.ProfileError):
        plumb.Profile(pipe)


@pytest.mark.parametrize("end", ["-wal", "-journal", "-shm"])
def test_nothing_beside_a_profile_is_waited_for(tmp_path, end):
    path = tmp_path / "run.plumb"
    shutil.copy(DATA / "h200_training.plumb", path)
    os.mkfifo(f"{path}{end}")
    assert run_command(PLUMB, "report", path, timeout=20).returncode == 0
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'python')!r}); import plumb; print(len(plumb.Profile({str(path)!r})))"
    done = run_command(sys.executable, "-c", code, timeout=20)
    assert int(done.stdout) > 100, done.stderr


# ---- hostile databases ----

COUNT = "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM c) "
# Each takes the place of the table frames, which every reader asks for.
DATABASES = {
    "a view that never ends": [
        "ALTER TABLE frames RENAME TO other",
        f"CREATE VIEW frames AS {COUNT} SELECT x AS id, 'python' AS kind, 'a' AS name, NULL AS file, NULL AS line, "
        "NULL AS display, NULL AS source_file, NULL AS source_line FROM c"],
    "a view of large texts": [
        "ALTER TABLE frames RENAME TO other",
        f"CREATE VIEW frames AS {COUNT} SELECT x - 1 AS id, 'python' AS kind, hex(zeroblob(30000000)) AS name, "
        "NULL AS file, NULL AS line, NULL AS display, NULL AS source_file, NULL AS source_line FROM c LIMIT 100000"],
    "a view in other letters": [
        "ALTER TABLE frames RENAME TO other",
        f"CREATE VIEW FRAMES AS {COUNT} SELECT x AS id, 'python' AS kind, 'a' AS name, NULL AS file, NULL AS line, "
        "NULL AS display, NULL AS source_file, NULL AS source_line FROM c"],
    "computed columns": [
        "ALTER TABLE frames RENAME TO other",
        "CREATE TABLE frames(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, "
        "file TEXT, line INTEGER, display TEXT, source_file TEXT, source_line INTEGER)",
        "INSERT INTO frames(id, kind) SELECT id, kind FROM other",
        "ALTER TABLE frames ADD COLUMN name TEXT AS (hex(zeroblob(30000000 + id)))"],
    "stored computed columns": [
        "ALTER TABLE frames RENAME TO other",
        "CREATE TABLE frames(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT, file TEXT, line INTEGER, "
        "display TEXT AS (name) STORED, source_file TEXT, source_line INTEGER)",
        "INSERT INTO frames(id, kind) SELECT id, kind FROM other"],
    "a virtual table": [
        "ALTER TABLE frames RENAME TO other",
        "CREATE VIRTUAL TABLE frames USING fts5(id, kind, name, file, line, display, source_file, source_line)"],
    "an unordered table of large texts": [
        "ALTER TABLE frames RENAME TO other",
        "CREATE TABLE frames(id, kind, name, file, line, display, source_file, source_line)",
        "INSERT INTO frames SELECT 5000 - id, kind, name, file, line, display, NULL, NULL FROM other"],
}


@pytest.mark.parametrize("kind", DATABASES)
def test_a_profile_that_computes(tmp_path, kind):
    path = tmp_path / "hostile.plumb"
    shutil.copy(DATA / "h200_training.plumb", path)
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA legacy_alter_table = ON")
        for statement in DATABASES[kind]:
            database.execute(statement)
    database.close()
    limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)), "timeout": 60}
    done = run_command(PLUMB, "report", path, **limit)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
    code = (f"import sys; sys.path.insert(0, {str(ROOT / 'python')!r})\nimport plumb\n"
            f"try:\n    plumb.Profile({str(path)!r})\nexcept plumb.ProfileError as error:\n    print('refused', error)\n")
    done = run_command(sys.executable, "-c", code, **limit)
    ordered = kind.startswith("an unordered")  # whose ids Python sorts
    assert done.returncode == 0 and (ordered or done.stdout.startswith("refused")), (done.stdout, done.stderr)


def test_rows_that_share_one_long_text(tmp_path):
    """Pages of a damaged file may be those of many rows: Python must not take all of them."""
    path = tmp_path / "hostile.plumb"
    shutil.copy(DATA / "h200_training.plumb", path)
    with sqlite3.connect(path) as database:
        size = database.execute("PRAGMA page_size").fetchone()[0]
        database.execute("UPDATE frames SET name = ?", ("",))
        database.execute("UPDATE frames SET name = ? WHERE id = 1", ("y" * 3000000,))
        database.execute("UPDATE frames SET name = ? WHERE id > 1", ("y" * (2 * size),))
    database.close()
    # Every row's text says that it is as long as the first one's, and goes on where that one does.
    profile = plumb.Profile(path)
    profile._bytes = 1000
    profile._text = 0
    with pytest.raises(plumb.ProfileError, match="more text"):
        profile._take(profile._select("SELECT a.name FROM frames a, frames b"))


@pytest.mark.parametrize("table, statements", [
    ("view", ["ALTER TABLE StringIds RENAME TO other",
              f"CREATE VIEW StringIds AS {COUNT} SELECT x AS id, 'a' AS value FROM c"]),
    ("computed", ["ALTER TABLE StringIds RENAME TO other",
                  "CREATE TABLE StringIds(id INTEGER PRIMARY KEY)", "INSERT INTO StringIds(id) SELECT id FROM other",
                  "ALTER TABLE StringIds ADD COLUMN value TEXT AS (hex(zeroblob(30000000 + id)))"]),
])
def test_a_trace_that_computes(tmp_path, table, statements):
    from sqlitetest import make
    path = make(tmp_path / "trace.sqlite", {
        "StringIds": ("id INTEGER PRIMARY KEY, value TEXT", [(i, f"k{i}") for i in range(1, 2000)]),
        "CUPTI_ACTIVITY_KIND_KERNEL": (
            "start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, "
            "globalPid INTEGER, demangledName INTEGER, shortName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, "
            "blockX INTEGER, blockY INTEGER, blockZ INTEGER",
            [(i * 10, i * 10 + 5, 0, 1, 7, i, 1 << 24, i, i, 1, 1, 1, 1, 1, 1) for i in range(1, 1000)])},
        extra=statements)
    done = run_command(PLUMB, "import", path, "-o", tmp_path / "out.plumb", timeout=60,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)))
    assert done.returncode in (0, 2) and len(done.stderr.splitlines()) <= 1, done.stderr


# ---- what a terminal gets ----

# A title, a cleared screen, colours by C1, text from right to left, no width, other ends of lines.
HOSTILE = ("\x1b]0;pwn\x07\x1b[2J\x9b31m\u202eevil\u2066\u2069\u200e\u200f\u061c\u200b\u2028\u2029\ufeff\r\x7f\x08"
           "\x85\xad\u2060\U000e0041\nplumb: all is well")
# What plumb itself tells a terminal: bold, plain, the progress bar.
OWN = re.compile("\x1b\\[[01]m|\r\x1b\\[K|\r(?=[a-z ]+\\[[# ]{30}\\])")
FORBIDDEN = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
                       "\U000e0000-\U000e007f]")


def on_terminal(*words, **more):
    """(code, what the terminal got)."""
    outer, inner = pty.openpty()
    settings = termios.tcgetattr(inner)
    settings[1] &= ~termios.OPOST  # as it is written
    termios.tcsetattr(inner, termios.TCSANOW, settings)
    got = []

    def read():
        try:
            while block := os.read(outer, 65536):
                got.append(block)
        except OSError:
            pass
    reader = threading.Thread(target=read)
    reader.start()
    environment = clean_environment(TERM="xterm", **more.pop("env", {}))
    done = subprocess.run([os.fsencode(str(word)) if not isinstance(word, bytes) else word for word in words],
                          stdin=subprocess.DEVNULL, stdout=inner, stderr=inner, env=environment, timeout=120, **more)
    os.close(inner)
    reader.join()
    os.close(outer)
    return done.returncode, b"".join(got)


def check(code, raw, codes=(0, 3)):
    text = raw.decode()  # valid UTF-8
    found = FORBIDDEN.search(OWN.sub("", text))
    assert not found, text[max(0, found.start() - 60): found.end() + 20]
    assert code in codes, text
    assert code not in (1, 2, 5) or len(text.splitlines()) == 1, text
    return text


WORDS = {"kind", "source", "fate", "severity", "reason", "aggregation", "unit", "meaning", "codec", "build_id", "hash"}


def make_hostile(source, path, suffix=HOSTILE):
    """A profile all of whose free texts steer terminals."""
    shutil.copy(source, path)
    with sqlite3.connect(path) as database:
        tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            if table in ("sources", "fates", "metrics"):
                continue
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})") if row[2] == "TEXT"]
            for column in columns:
                if column not in WORDS and not (table == "findings" and column == "evidence"):
                    database.execute(f"UPDATE {table} SET {column} = substr({column}, 1, 12) || ? || {column} "
                                     f"WHERE {column} IS NOT NULL", (suffix,))
    database.close()
    return path


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    one = make_hostile(DATA / "h200_training.plumb", folder / "one.plumb")
    two = make_hostile(DATA / "h200_example.plumb", folder / "two.plumb", HOSTILE + "2")
    three = folder / "plain.plumb"
    with gzip.open(DATA / "waits.plumb.gz") as source:
        three.write_bytes(source.read())
    return one, two, make_hostile(three, folder / "three.plumb")


BY = ("context", "kernel", "operator", "range", "module", "python", "line", "phase", "shape", "native", "library",
      "thread", "process", "rank", "collective", "memory")
VERBS = [("report", "--by", by) for by in BY] + [
    ("report", "--by", "kernel", "--inverted"), ("report", "--findings"), ("report", "--ledger"), ("report", "--json"),
    ("report", "--csv"), ("report", "--findings", "--csv"), ("iters",), ("iters", "--json"), ("iters", "--csv"),
    ("iters", "--explain", "1"), ("tables",), ("tables", "--csv"), ("tables", "--json"), ("export", "-F", "folded"),
    ("export", "-F", "csv"), ("export", "-F", "json"), ("export", "-F", "speedscope"), ("export", "-F", "chrome"),
    ("export", "-F", "otlp"), ("report", "--width", "40", "--by", "context")]


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_no_verb_steers_the_terminal(hostile, words):
    for path in hostile:
        check(*on_terminal(PLUMB, words[0], path, *words[1:]), codes=(0, 1, 2, 3))


@pytest.mark.parametrize("words", [(), ("--json",), ("--csv",)], ids=" ".join)
def test_diff_does_not_steer_the_terminal(hostile, words):
    check(*on_terminal(PLUMB, "diff", hostile[0], hostile[1], *words))


def test_json_on_a_terminal_is_the_same_json(hostile):
    words = [PLUMB, "report", hostile[0], "--json", "--by", "kernel"]
    code, raw = on_terminal(*words)
    piped = run_command(*words).stdout
    assert code == 0 and json.loads(raw) == json.loads(piped)
    assert "\u202e" in piped  # what a program reads is not changed


def test_csv_in_a_file_keeps_names(hostile, tmp_path):
    done = run_command(PLUMB, "report", hostile[0], "--csv", "--by", "kernel")
    assert done.returncode == 0 and "\u202eevil" in done.stdout
    assert "\u202eevil" not in run_command(PLUMB, "report", hostile[0], "--by", "kernel").stdout


def test_settle_does_not_steer_the_terminal(run_folder, tmp_path):
    (run_folder / "9.off").write_text(HOSTILE)
    (run_folder / "8.off").write_bytes(b"\x9b31m\xff\xfe\x1b[2J")
    (run_folder / f"x\x1b[2J{'é' * 20}\u202e.region").write_bytes(b"nothing")
    os.mkfifo(run_folder / "\x1b[31m.off")
    check(*on_terminal(PLUMB, "settle", run_folder, "-o", tmp_path / "out.plumb"))


@pytest.mark.parametrize("name", [b"\x1b[2J\x9b31m", "\u202eevil\u200b".encode(), b"a\nplumb: all is well", b"\xc3",
                                  b"\xe2\x80", b"\xff"])
@pytest.mark.parametrize("verb", ["report", "import", "iters", "settle", "export", "diff", "tables"])
def test_errors_do_not_steer_the_terminal(tmp_path, verb, name):
    words = {"export": ["-F", "csv"], "diff": [name], "settle": ["-o", "x"], "import": ["-o", "x"]}.get(verb, [])
    check(*on_terminal(PLUMB, verb, name, *words, cwd=tmp_path), codes=(1, 2, 5))
    (tmp_path / os.fsdecode(name.replace(b"/", b""))).write_bytes(b"{" + HOSTILE.encode())
    check(*on_terminal(PLUMB, verb, name, *words, cwd=tmp_path), codes=(1, 2, 5))


def test_summaries_and_programs(tmp_path):
    """A program's own output is its own; what plumb says of it is filtered."""
    program = tmp_path / "\x1b[2J\u202e.sh"
    program.write_text("#!/bin/sh\nprintf '\\033[32mmine\\033[0m'\n")
    program.chmod(0o755)
    code, raw = on_terminal(PLUMB, "run", "-o", tmp_path / "x.plumb", "--", program, cwd=tmp_path)
    text = raw.decode()
    assert "\x1b[32mmine\x1b[0m" in text
    check(code, text.replace("\x1b[32mmine\x1b[0m", "").encode())


def test_a_rule_that_prints_names(hostile, tmp_path):
    rule = tmp_path / "mine.py"
    rule.write_text("for node in profile.walk():\n    print(node.name)\n    flag(node, node.name)\n")
    check(*on_terminal(PLUMB, "report", hostile[0], "--findings", "--rule", rule, env={"PLUMB_PYTHON": sys.executable}))
    rule.write_text("raise ValueError(profile.kernels[0].name)\n")
    check(*on_terminal(PLUMB, "report", hostile[0], "--rule", rule, env={"PLUMB_PYTHON": sys.executable}), codes=(2,))


def test_the_python_package_prints_no_raw_names(hostile):
    profile = plumb.Profile(hostile[0])
    for thing in (profile.kernels[0], profile.run, profile.processes[0], profile.devices[0], profile.kernels[0].exclusive):
        assert not FORBIDDEN.search(repr(thing)), repr(thing)
    with pytest.raises(plumb.ProfileError) as caught:
        raise plumb.ProfileError(f"{HOSTILE}: damaged")
    assert not FORBIDDEN.search(str(caught.value))
