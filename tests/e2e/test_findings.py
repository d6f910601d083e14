# SPDX-License-Identifier: Apache-2.0
"""Findings as a user meets them: in reports, in the profile and summary, from rules in Python."""
import gzip
import json
import os
import pathlib
import re
import shutil
import sqlite3
import sys

import pytest
from conftest import PLUMB, ROOT, run_command
from test_golden import samples  # noqa: F401  (a fixture)

import plumb

RULES = ROOT / "examples" / "rules"
DATA = ROOT / "tests" / "data"
KEYS = {"id": str, "rule": str, "severity": str, "title": str, "advice": (str, type(None)),
        "saving_ns": (int, type(None)), "confidence": (float, int, type(None)),
        "evidence": (dict, type(None)), "context": (list, type(None))}


def report(*words, **options):
    return run_command(PLUMB, "report", *words, **options)


def findings(path, *words, **options):
    done = report(path, "--json", *words, **options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["findings"]


# ---- in reports ----

def change(path, *statements):
    with sqlite3.connect(path) as database:
        for statement in statements:
            database.execute(statement)
    database.close()


def test_findings_of_older_analyses_are_made_again(tmp_path):
    """A profile that was recorded before analyses had a number says what plumb iters says."""
    path = tmp_path / "sleep.plumb"
    path.write_bytes(gzip.decompress((DATA / "planted/sleep.plumb.gz").read_bytes()))
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT count(*) FROM findings WHERE evidence LIKE '%0.56%'").fetchone() > (0,)
    share = re.search(r"copies from the host take (\S+ %)", run_command(PLUMB, "iters", path).stdout).group(1)
    text = report(path, "--findings", "--top", "0", "--width", "0").stdout
    assert share in text and "56.1 %" not in text
    assert share in " ".join(row["title"] for row in findings(path))


def test_findings_are_kept_unless_they_are_old(samples, tmp_path):
    path = tmp_path / "copies.plumb"
    assert run_command(PLUMB, "settle", samples / "copies.plumb", "-o", path).returncode == 0
    made = findings(path)
    change(path, "UPDATE findings SET title = 'as it was stored'",
           "INSERT INTO findings(id, finding, rule, severity, title) SELECT count(*), 'mine-1', 'mine', 'note', "
           "'of a rule of mine' FROM findings")
    for number, kept in (("analyses", True), ("analyses + 1", True), ("0", False), ("NULL", False)):
        change(path, f"UPDATE run SET analyses = {number}")
        titles = [row["title"] for row in findings(path)]
        assert ("as it was stored" in titles) == kept, number
        assert "of a rule of mine" in titles
        done = run_command(PLUMB, "export", path, "-F", "json", "-o", "-")
        assert ("as it was stored" in done.stdout) == kept, done.stderr
        if not kept:
            assert {row["title"] for row in made} < set(titles)


def test_old_findings_stay_if_they_cannot_be_made_again(tmp_path):
    """The analyses read what threads did; the report itself does not."""
    path = tmp_path / "sleep.plumb"
    path.write_bytes(gzip.decompress((DATA / "planted/sleep.plumb.gz").read_bytes()))
    change(path, "UPDATE findings SET title = 'as it was stored'", "UPDATE span_chunks SET duration = zeroblob(3)"
           " WHERE track IN (SELECT id FROM tracks WHERE kind = 'thread')")
    for form in ((), ("--json",), ("--csv",)):
        done = report(path, "--findings", *form)
        assert "as it was stored" in done.stdout
        assert "the findings are those that an older plumb stored: " in done.stderr and "damaged" in done.stderr
    # What was asked for is not answered with something else.
    done = run_command(PLUMB, "report", path, "--findings", "--threshold", "hotspot.share=5%")
    assert done.returncode == 2 and "damaged" in done.stderr and not done.stdout


@pytest.mark.parametrize("kind", ["python", "module"])
def test_call_paths_of_any_depth(tmp_path, kind):
    """Nothing climbs from each context to the root: with 300,000 contexts this would take minutes."""
    path, deep = tmp_path / "deep.plumb", 300_000
    path.write_bytes(gzip.decompress((DATA / "planted/sleep.plumb.gz").read_bytes()))
    with sqlite3.connect(path) as database:
        context, frame, metric, track = (database.execute(text).fetchone()[0] for text in (
            "SELECT max(id) + 1 FROM contexts", "SELECT max(id) + 1 FROM frames",
            "SELECT id FROM metrics WHERE name = 'gpu.time'", "SELECT id FROM tracks WHERE kind = 'stream'"))
        values = [row for row in database.execute("SELECT * FROM context_values ORDER BY id") if row[2] != metric]
        values += [(0, context + i, metric, track, 1000, 1, 1000, 1000, 1000, 0) for i in range(deep)]
        database.execute("DELETE FROM context_values")
        database.executemany("INSERT INTO context_values VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                             ((i, *row[1:]) for i, row in enumerate(values)))
        database.execute("INSERT INTO frames(id, kind, name, file, line) VALUES (?, ?, 'recurse', '/home/me/a.py', 1)",
                         (frame, kind))
        database.execute("UPDATE contexts SET last = ? WHERE id = 0", (context + deep - 1,))
        database.executemany("INSERT INTO contexts(id, parent, frame, flags, last, depth) VALUES (?, ?, ?, 0, ?, ?)",
                             ((context + i, context + i - 1 if i else 0, frame, context + deep - 1, i + 1)
                              for i in range(deep)))
    database.close()
    done = run_command(PLUMB, "report", path, "--json", "--top", "3", timeout=30)
    assert json.loads(done.stdout)["findings"], done.stderr


def test_old_schema_has_old_findings(samples, tmp_path):
    path = tmp_path / "copies.plumb"
    assert run_command(PLUMB, "settle", samples / "copies.plumb", "-o", path).returncode == 0
    change(path, "UPDATE findings SET title = 'as it was stored'", "ALTER TABLE run DROP COLUMN analyses",
           "PRAGMA user_version = 3")
    assert findings(path) == findings(samples / "copies.plumb")


@pytest.mark.parametrize("name", ["index", "unet", "loss", "loader", "copies", "gpu", "cpu"])
def test_keys_of_the_json(samples, name):
    found = findings(samples / f"{name}.plumb")
    assert found and len({row["id"] for row in found}) == len(found)
    for row in found:
        assert {key for key in KEYS if not isinstance(row[key], KEYS[key])} == set(), row
        assert row["severity"] in ("note", "warning", "serious")
        assert row["id"].startswith(row["rule"])


def test_text_json_and_csv_say_the_same(samples):
    path = samples / "copies.plumb"
    rows = findings(path)
    text = report(path, "--findings", "--width", "0").stdout
    table = report(path, "--findings", "--csv").stdout.splitlines()
    assert re.findall(r"^    id +(\S+)$", text, re.M) == [row["id"] for row in rows]
    assert [line.split(",")[0] for line in table[1:]] == [row["id"] for row in rows]
    top = report(path, "--findings", "--top", "1").stdout
    assert rows[0]["id"] in top and rows[1]["id"] not in top and "more (--top 0" in top


def test_most_important_first(samples):
    worth = {"serious": 3, "warning": 2, "note": 1}
    for name in ("index", "loader", "copies"):
        ranks = [worth[row["severity"]] for row in findings(samples / f"{name}.plumb")]
        assert ranks == sorted(ranks, reverse=True)


def test_the_reader_decides_what_is_own_code(samples):
    path = samples / "index.plumb"
    ours = [row for row in findings(path) if row["rule"] == "balance"]
    theirs = [row for row in findings(path, "--user-code", "-/home/ada") if row["rule"] == "balance"]
    assert ours[0]["evidence"]["user_line"] == 12
    assert theirs[0]["evidence"]["user_line"] is None


@pytest.mark.parametrize("words, said", [
    (["--threshold", "nothing=1"], 'no threshold "nothing"'),
    (["--threshold", "hotspot.share"], "hotspot.share=NUMBER"),
    (["--threshold", "fusion.kernels=5%"], "fusion.kernels=NUMBER"),
])
def test_wrong_thresholds(samples, words, said):
    done = report(samples / "index.plumb", *words)
    assert done.returncode == 1 and said in done.stderr and done.stdout == ""


# ---- recorded on an H200 ----

def test_recorded_training():
    rows = {row["id"].rsplit("-", 1)[0]: row for row in findings(DATA / "h200_training.plumb")}
    # Convolutions in channels_first: cuDNN's conversions are there, and small.
    assert 0.03 < rows["hotspot-layout"]["evidence"]["share"] < 0.04
    assert rows["hotspot-layout"]["severity"] == "note"
    assert any("convolution" in name for name in rows["hotspot-layout"]["context"])
    # The program runs ten iterations once: the GPU idles, and that is said.
    assert rows["latency-idle"]["evidence"]["idle_share"] > 0.9
    # Checkpointing runs forward work again in the backward pass: no imbalance of relu.
    balance = [row for row in findings(DATA / "h200_training.plumb") if row["rule"] == "balance"]
    assert [row["evidence"]["operator"] for row in balance] == ["aten::embedding"]


def test_a_run_that_counts_launches_says_nothing_of_waits(tmp_path):
    """--counters runs each counted launch several times, so the GPU idles because of plumb."""
    path, again = tmp_path / "counted.plumb", ("--threshold", "hotspot.share=9%")
    shutil.copy(DATA / "h200_training.plumb", path)
    path.chmod(0o600)
    assert {"latency", "hotspot"} <= {row["rule"] for row in findings(path, *again)}
    with sqlite3.connect(path) as database:
        database.execute("INSERT INTO environment (key, value) VALUES ('gpu.counters', 'roofline')")
    rules = {row["rule"] for row in findings(path, *again)}
    assert "hotspot" in rules and not rules & {"latency", "iterations", "outside", "ranks"}
    head = report(path).stdout
    assert "note      counting launches (--counters) made the program slower." in head and "cost of recording" not in head



def test_recorded_example():
    rows = findings(DATA / "h200_example.plumb")
    units = [row["title"] for row in rows if row["rule"] == "fusion"]
    assert any(title.startswith("Block.forward (train.py:39)") for title in units)
    assert any("AdamW.step" in title for title in units)
    assert not [row for row in rows if row["rule"] in ("balance", "stalls")]
    saving = [row["saving_ns"] for row in rows if row["saving_ns"] is not None]
    assert max(saving) <= rows[0]["evidence"]["device_span_ns"]


# ---- in the profile and in the summary ----

# It computes for as long as its start took, on any machine: a tenth of the run is a finding.
PROGRAM = """
import time; began = time.monotonic()
import torch; x = torch.randn(300, 300); end = 2 * time.monotonic() - began
while time.monotonic() < end:
    x = torch.tanh(x @ x)
"""


@pytest.fixture(scope="module")
def settled(any_torch_python, tmp_path_factory):
    folder = tmp_path_factory.mktemp("settled")
    (folder / "program.py").write_text(PROGRAM)
    runs = []
    for name in ("a.plumb", "b.plumb"):
        done = run_command(PLUMB, "run", "-o", folder / name, "--", any_torch_python, "program.py",
                           cwd=folder)
        assert done.returncode == 0, done.stderr
        runs.append((folder / name, done))
    return runs


def test_a_run_stores_and_names_its_findings(settled):
    path, done = settled[0]
    rows = findings(path)
    assert any("aten::mm" in row["title"] and "program.py:5" in row["title"] for row in rows)
    database = plumb.Profile(path)._database
    stored = database.execute("SELECT finding, title FROM findings ORDER BY id").fetchall()
    assert stored == [(row["id"], row["title"]) for row in rows]
    summary = done.stderr.splitlines()
    assert any(re.match(r"  finding   note: ", line) for line in summary)
    assert any("--findings" in line for line in summary)


def test_two_runs_of_one_program_have_equal_ids(settled):
    first, second = ({row["id"]: row["title"] for row in findings(path)} for path, _ in settled)
    matrix = [key for key, title in first.items() if "aten::mm " in title]
    assert matrix and set(matrix) <= set(second)


def test_joining_profiles_makes_findings_anew(tmp_path):
    parts = [DATA / "h200_example.plumb", DATA / "h200_training.plumb"]
    both = tmp_path / "both.plumb"
    done = run_command(PLUMB, "settle", *parts, "-o", both)
    assert done.returncode == 0, done.stderr
    rows = findings(both)
    assert len({row["id"] for row in rows}) == len(rows)
    idle, = [row for row in rows if row["id"].startswith("latency-idle")]
    alone = [next(row for row in findings(part) if row["id"].startswith("latency-idle"))["evidence"]["device_busy_ns"]
             for part in parts]
    assert max(alone) < idle["evidence"]["device_busy_ns"] <= sum(alone)
    assert rows == findings(both, "--threshold", "hotspot.share=10%")  # stored, and made again


# ---- rules in Python ----

def rule(tmp_path, text, name="mine.py"):
    path = tmp_path / name
    path.write_text(text)
    return path


CASES = [("hotspot", "index", "hotspot-kernel"), ("fusion", "loss", "fusion"),
         ("balance", "index", "balance"), ("latency", "loader", "latency-host"),
         ("copies", "copies", "hotspot-pageable")]


@pytest.mark.parametrize("name, sample, prefix", CASES, ids=[case[0] for case in CASES])
def test_listings_find_what_the_analyses_find(samples, name, sample, prefix):
    path = RULES / f"{name}.py"
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    assert len(lines) <= 10
    rows = findings(samples / f"{sample}.plumb", "--rule", path)
    analysed = [row["context"] for row in rows if row["id"].rsplit("-", 1)[0] == prefix]
    flagged = [row["context"] for row in rows
               if row["id"].startswith(f"rule-{name}-")]
    assert analysed and sorted(flagged) == sorted(analysed)


def test_every_listing_is_tested():
    assert {path.stem for path in RULES.glob("*.py")} == {case[0] for case in CASES}


def test_listings_run_on_recorded_profiles():
    rules = ",".join(str(path) for path in sorted(RULES.glob("*.py")))
    for name in ("h200_example", "h200_training"):
        assert findings(DATA / f"{name}.plumb", "--rule", rules)


def test_what_a_rule_says_is_what_is_reported(samples, tmp_path):
    path = rule(tmp_path, """
import math
@rule
def first(profile):
    node = next(profile.match("**/aten::index").__iter__())
    flag(node, "one\\ttab, \\\\ and a\\nline", saving_ns=5.9, severity="serious", advice="do",
         confidence=0.25, evidence={"x": math.nan, "y": [1, "é"], "z": node})
    flag(node, "two")
@rule
def second(profile):
    print("a rule may print")
    flag(None, "the run", severity="note")
""")
    done = report(samples / "index.plumb", "--json", "--rule", path)
    assert done.returncode == 0 and "a rule may print" in done.stderr
    rows = json.loads(done.stdout)["findings"]
    one, = [row for row in rows if row["title"].startswith("one")]
    two, = [row for row in rows if row["title"] == "two"]
    whole, = [row for row in rows if row["title"] == "the run"]
    assert rows[0] == one and one["title"] == "one\ttab, \\ and a\nline"
    assert (one["rule"], one["saving_ns"], one["severity"], one["advice"], one["confidence"]) == \
        ("first", 5, "serious", "do", 0.25)
    assert one["evidence"] == {"x": None, "y": [1, "é"], "z": "<operator 'aten::index'>"}
    assert one["context"] == two["context"] and one["context"][-1] == "aten::index"
    assert one["id"] != two["id"] and two["severity"] == "warning" and two["saving_ns"] is None
    assert whole["rule"] == "second" and whole["context"] == []
    again = json.loads(report(samples / "index.plumb", "--json", "--rule", path).stdout)
    assert [row["id"] for row in again["findings"]] == [row["id"] for row in rows]
    text = report(samples / "index.plumb", "--findings", "--rule", path)
    assert text.returncode == 0 and "two" in text.stdout


@pytest.mark.parametrize("text, said", [
    ("x = 1\nprofile.nothing()\n", "mine.py:2: AttributeError"),
    ("for node in profile.walk()\n    pass\n", "mine.py:1: SyntaxError"),
    ("def f():\n    return profile.root.inclusive['gpu.tme']\nf()\n", "mine.py:2: KeyError"),
    ("flag(3, 'x')\n", "mine.py:1: TypeError"),
    ("flag(profile.root, 'x', severity='bad')\n", "mine.py:1: ValueError"),
    ("flag(profile.root, 'x', saving_ns=-1)\n", "mine.py:1: ValueError"),
    ("import sys\nsys.exit(0)\n", "mine.py:2: SystemExit"),
    ("import os\nos._exit(0)\n", "ended before it was done"),
    ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", "signal 9"),
    ("import nothing_like_this\n", "mine.py:1: ModuleNotFoundError"),
])
def test_a_rule_that_fails(samples, tmp_path, text, said):
    done = report(samples / "index.plumb", "--rule", rule(tmp_path, text))
    assert done.returncode == 2 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and said in done.stderr
    assert done.stderr.startswith("plumb: ")


def test_a_rule_that_is_not_there(samples, tmp_path):
    done = report(samples / "index.plumb", "--rule", tmp_path / "none.py")
    assert done.returncode == 2 and "none.py" in done.stderr
    done = report(samples / "index.plumb", "--rule", f"{RULES / 'fusion.py'},{tmp_path / 'none.py'}")
    assert done.returncode == 2


def test_without_python(samples):
    done = report(samples / "index.plumb", "--rule", RULES / "fusion.py",
                  env={"PLUMB_PYTHON": "/nonexistent/python"})
    assert done.returncode == 5 and "PLUMB_PYTHON" in done.stderr
    empty = report(samples / "index.plumb", "--rule", RULES / "fusion.py", env={"PATH": "/"})
    assert empty.returncode == 5 and "PLUMB_PYTHON" in empty.stderr


def test_the_python_that_is_named(samples, tmp_path):
    log = tmp_path / "log"
    script = tmp_path / "py"
    script.write_text(f'#!/bin/sh\necho "$0" >{log}\nexec {sys.executable} "$@"\n')
    script.chmod(0o755)
    assert findings(samples / "loss.plumb", "--rule", RULES / "fusion.py",
                    env={"PLUMB_PYTHON": str(script)})
    assert log.read_text().strip() == str(script)


def test_a_program_without_its_package(samples, tmp_path):
    shutil.copy(PLUMB, tmp_path / "plumb")
    words = [tmp_path / "plumb", "report", samples / "loss.plumb", "--findings", "--rule",
             RULES / "fusion.py"]
    done = run_command(*words, env={"PLUMB_PYTHON": sys.executable, "PYTHONNOUSERSITE": "1"})
    if done.returncode == 2:  # this Python has no plumb-profiler installed
        assert "install plumb-profiler" in done.stderr
    os.makedirs(tmp_path / "python")
    shutil.copytree(ROOT / "python" / "plumb", tmp_path / "python" / "plumb")
    done = run_command(*words, env={"PLUMB_PYTHON": sys.executable})
    assert done.returncode == 0, done.stderr


def test_flag_outside_a_rule():
    with pytest.raises(RuntimeError, match="--rule"):
        plumb.flag(None, "x")

    @plumb.rule
    def nothing(profile):
        return profile
    assert nothing(3) == 3


def test_a_rule_runs_on_old_pythons(samples):
    """Rules are for Python 3.8 and newer, like the package."""
    folders = pathlib.Path.home().glob(".pyenv/versions/3.8*/bin/python3.8")
    pythons = sorted(folders)
    if not pythons:
        pytest.skip("no Python 3.8 here")
    assert findings(samples / "loss.plumb", "--rule", RULES / "fusion.py",
                    env={"PLUMB_PYTHON": str(pythons[-1])})


def test_help_lists_every_threshold_that_is_used():
    listed = set(re.findall(r"^  (\w+\.\w+) ", run_command(PLUMB, "help", "findings").stdout, re.M))
    used = set()
    for path in (ROOT / "src/analyze").rglob("*.c"):
        used |= set(re.findall(r'threshold(?:s_get)?\(\s*\w+(?:->\w+)*,\s*"([\w.]+)"', path.read_text()))
    assert listed == used and len(listed) >= 10


def test_the_package_reads_stored_findings(tmp_path):
    done = run_command(PLUMB, "settle", DATA / "h200_training.plumb", "-o", tmp_path / "x.plumb")
    assert done.returncode == 0, done.stderr
    stored = plumb.Profile(tmp_path / "x.plumb").findings
    rows = findings(tmp_path / "x.plumb")
    assert [row.finding for row in stored] == [row["id"] for row in rows]
    for ours, theirs in zip(stored, rows):
        assert ours.evidence == theirs["evidence"] and ours.saving_ns == theirs["saving_ns"]
        assert ours.context.depth == len(theirs["context"])
