# SPDX-License-Identifier: Apache-2.0
"""`plumb report` for programs: the fixed keys of its JSON, output that fails, input that is bad; and what
is generated from the verbs' descriptions: docs, man pages, completion."""
import csv
import io
import json
import os
import pty
import re
import shutil
import subprocess

import pytest

from test_golden import BUILD, ROOT, samples  # noqa: F401  (a fixture)

PLUMB = BUILD / "plumb"
VERBS = ("run", "report", "settle", "import", "doctor", "export", "iters", "tables", "levels", "why", "traffic", "diff", "view", "version", "help")
FLAT = ("phase", "shape", "thread", "process", "rank")  # no row lies in another
WAYS = ("context", "kernel", "operator", "module", "python", "line", "collective", *FLAT)


def plumb(*words, cwd=None, **options):
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    return subprocess.run([PLUMB, *map(str, words)], cwd=cwd, timeout=120, **options)


def report_json(folder, *words):
    done = plumb("report", *words, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout.decode("utf-8", errors="strict"))


# ---- the fixed keys and their types ----

INT = (int,)
INT_OR_NULL = (int, type(None))
TEXT_OR_NULL = (str, type(None))
NUMBER = (int, float)
NUMBER_OR_NULL = (int, float, type(None))
RUN = {"command": TEXT_OR_NULL, "wall_ns": INT_OR_NULL, "recorded_ns": INT_OR_NULL, "overhead_ns": INT_OR_NULL,
       "cost": (dict,), "exit_code": INT_OR_NULL, "environment": (dict,)}
COST = {"kind": TEXT_OR_NULL, "scope": TEXT_OR_NULL, "recorded_ns": INT_OR_NULL, "plain_ns": INT_OR_NULL,
        "ratio": NUMBER_OR_NULL, "low": NUMBER_OR_NULL, "high": NUMBER_OR_NULL, "pairs": INT_OR_NULL, "steps": INT_OR_NULL,
        "process": INT_OR_NULL, "hidden": (bool, type(None)), "why": TEXT_OR_NULL, "parts": (dict, type(None))}
PROCESS = {"pid": INT_OR_NULL, "ppid": INT_OR_NULL, "rank": INT_OR_NULL, "local_rank": INT_OR_NULL,
           "host": TEXT_OR_NULL, "command": TEXT_OR_NULL, "wall_ns": INT_OR_NULL,
           "exit_code": INT_OR_NULL}
DEVICE = {"id": INT, "name": TEXT_OR_NULL, "uuid": TEXT_OR_NULL, "rank": INT_OR_NULL,
          "kernels": (dict,), "copies": (dict,), "sets": (dict,), "busy_ns": INT_OR_NULL,
          "idle_ns": INT_OR_NULL, "span_ns": INT_OR_NULL, "processes": (list,),
          "contended_ns": INT_OR_NULL}
ROW = {"name": (str,), "kind": (str,), "file": TEXT_OR_NULL, "line": INT_OR_NULL,
       "user_file": TEXT_OR_NULL, "user_line": INT_OR_NULL, "exclusive": (dict,),
       "inclusive": (dict,), "share": NUMBER_OR_NULL}
CONTEXT = {**ROW, "id": INT, "parent": INT_OR_NULL, "backward": (bool,)}
STAT = {"sum": INT_OR_NULL, "count": INT, "min": INT, "max": INT, "mean": NUMBER, "std": NUMBER}
LEDGER = {"source": (str,), "received": INT_OR_NULL, "attributed": INT_OR_NULL, "dropped": INT,
          "reason": TEXT_OR_NULL}
TOP = {"schema": INT, "verb": (str,), "run": (dict,), "metric": (str,), "processes": (list,),
       "devices": (list,), "ranks": (list,), "rows": (list,), "overlap": (list,), "findings": (list,),
       "ledger": (list,)}


def check(thing, shape):
    for key, types in shape.items():
        assert key in thing, key
        assert isinstance(thing[key], types), (key, thing[key])
        if int in types and bool not in types:
            assert not isinstance(thing[key], bool), key


def check_row(row, shape, metrics):
    check(row, shape)
    for part in ("exclusive", "inclusive"):
        for metric, stat in row[part].items():
            assert metric in metrics
            check(stat, STAT)
    for child in row.get("children", ()):
        check_row(child, shape, metrics)


def check_report(report):
    check(report, TOP)
    assert report["schema"] == 1 and report["verb"] == "report"
    metrics = re.findall(r"^  ([a-z_.]+) ", plumb("help", "metrics").stdout.decode(), re.M)
    assert report["metric"] in metrics
    check(report["run"], RUN)
    check(report["run"]["cost"], COST)
    for process in report["processes"]:
        check(process, PROCESS)
    for device in report["devices"]:
        check(device, DEVICE)
        for work, keys in (("kernels", {"count", "ns"}), ("copies", {"count", "ns", "bytes"}),
                           ("sets", {"count", "ns", "bytes"})):
            assert keys <= set(device[work])
    shape = CONTEXT if report["by"] == "context" and not report["inverted"] else ROW
    for row in report["rows"] + report.get("contexts", []):
        check_row(row, shape, metrics)
    for row in report["ledger"]:
        check(row, LEDGER)


@pytest.mark.parametrize("by", WAYS)
@pytest.mark.parametrize("name", ("gpu", "cpu", "rude"))
def test_schema(samples, name, by):  # noqa: F811
    done = plumb("report", f"{name}.plumb", "--by", by, "--json", "--top", "0", cwd=samples)
    report = json.loads(done.stdout)
    assert done.returncode == (0 if report["rows"] else 3)
    check_report(report)
    if by not in (*FLAT, "context") and done.returncode == 0:
        check_report(report_json(samples, f"{name}.plumb", "--by", by, "--inverted"))


def test_exclusive_parts_add_up(samples):  # noqa: F811
    for by in WAYS:
        done = plumb("report", "gpu.plumb", "--by", by, "--top", "0", "--metric", "gpu.time", "--json",
                     cwd=samples)
        report = json.loads(done.stdout)
        rows = report.get("contexts") or report["rows"]
        parts = [row["exclusive"].get("gpu.time", {}).get("sum", 0) for row in rows]
        outside = (report["outside"] or {}).get("sum", 0) if by != "context" else 0
        assert sum(parts) + outside == report["total"]["sum"] == 7400000, by


def test_contexts_form_a_tree(samples):  # noqa: F811
    report = report_json(samples, "gpu.plumb", "--by", "context", "--top", "0")
    known = {row["id"]: row for row in report["contexts"]}
    assert known[0]["parent"] is None and known[0]["kind"] == "root"
    assert all(row["parent"] in known for row in report["contexts"] if row["id"])
    backward = {row["name"] for row in report["contexts"] if row["backward"]}
    assert {"AddmmBackward0", "aten::mm"} <= backward and "aten::linear" not in backward
    assert known[0]["inclusive"]["gpu.time"]["sum"] == 7400000

    def flatten(rows):
        for row in rows:
            yield row["id"]
            yield from flatten(row["children"])
    assert sorted(flatten(report["rows"])) == sorted(known)[1:]


def test_nesting_ends_at_200(samples):  # noqa: F811
    report = report_json(samples, "deep.plumb", "--by", "context", "--top", "0")
    depth, rows = 0, report["rows"]
    while rows:
        depth, last, rows = depth + 1, rows[0], rows[0]["children"]
    assert depth == 200
    assert last["children_omitted"] == 10001 - 200
    assert len(report["contexts"]) == 10001 + 1


def test_equal_input_gives_equal_output(samples):  # noqa: F811
    first, second = (plumb("report", "gpu.plumb", "--by", "context", "--json", cwd=samples)
                     for _ in range(2))
    assert first.stdout == second.stdout


def test_csv_reads_back(samples):  # noqa: F811
    for by in WAYS:
        done = plumb("report", "rude.plumb", "--by", by, "--csv", "--top", "0", cwd=samples)
        rows = list(csv.reader(io.StringIO(done.stdout.decode(), newline="")))
        assert all(len(row) == len(rows[0]) for row in rows), by
    rows = list(csv.DictReader(io.StringIO(
        plumb("report", "rude.plumb", "--csv", cwd=samples).stdout.decode(), newline="")))
    assert rows[0]["name"] == "aten::\x1b]0;title\x07\r\nmul"
    assert rows[0]["user_file"] == '/home/ada/"quoted", and\ttabbed.py'


# ---- the world around it ----

def test_wrong_use(samples):  # noqa: F811
    for words in (["--json", "--csv"], *(["--by", by, "--inverted"] for by in FLAT), ["--metric", "gpu.tim"],
                  ["--filter", "("], ["--by", "day"], ["--user-code", "home"], ["--top", "-3"]):
        done = plumb("report", "gpu.plumb", *words, cwd=samples)
        assert done.returncode == 1, words
        assert done.stdout == b"" and done.stderr.count(b"\n") == 1, words


def test_bad_files(samples, tmp_path):  # noqa: F811
    whole = (samples / "gpu.plumb").read_bytes()
    bad = {"cut": whole[:len(whole) // 2], "foreign": b"\x7fELF" + bytes(5000), "empty": b"",
           "text": b"not a profile\n" * 100}
    for name, data in bad.items():
        (tmp_path / name).write_bytes(data)
        done = plumb("report", tmp_path / name)
        assert done.returncode == 2, (name, done.stderr)
        assert done.stderr.startswith(b"plumb: ") and done.stderr.count(b"\n") == 1
        assert name.encode() in done.stderr
    done = plumb("report", tmp_path / "missing")
    assert done.returncode == 5 and b"missing" in done.stderr


def test_nothing_to_show(samples):  # noqa: F811
    done = plumb("report", "cpu.plumb", "--by", "kernel", "--json", cwd=samples)
    assert done.returncode == 3
    check_report(json.loads(done.stdout))
    assert plumb("report", "gpu.plumb", "--filter", "nowhere", cwd=samples).returncode == 3


def test_reader_leaves(samples):  # noqa: F811
    read, write = os.pipe()
    os.close(read)
    done = plumb("report", "deep.plumb", "--by", "context", "--json", "--top", "0", cwd=samples,
                 stdout=write, restore_signals=True)
    os.close(write)
    assert done.returncode == 0 and done.stderr == b""


def test_full_disk(samples):  # noqa: F811
    with open("/dev/full", "wb") as full:
        for words in ([], ["--json"], ["--csv"]):
            done = plumb("report", "gpu.plumb", *words, cwd=samples, stdout=full)
            assert done.returncode == 5, words
            assert b"cannot write the output" in done.stderr


def on_terminal(words, folder, **environment):
    controller, terminal = pty.openpty()
    subprocess.run([PLUMB, *words], cwd=folder, stdout=terminal, timeout=60,
                   env={"PATH": os.environ["PATH"], **environment})
    os.close(terminal)
    text = b""
    try:
        while chunk := os.read(controller, 65536):
            text += chunk
    except OSError:
        pass
    os.close(controller)
    return text


def test_colour_is_for_terminals(samples):  # noqa: F811
    words = ["report", "gpu.plumb"]
    assert b"\x1b[1m" in on_terminal(words, samples, TERM="xterm")
    assert b"\x1b" not in on_terminal(words, samples, TERM="xterm", NO_COLOR="1")
    assert b"\x1b" not in on_terminal(words, samples, TERM="dumb")
    assert b"\x1b" not in plumb(*words, cwd=samples).stdout
    assert b"\x1b[31m" not in on_terminal(["report", "rude.plumb"], samples, TERM="xterm")


# ---- generated from the verbs' descriptions ----

def test_docs_are_not_stale(tmp_path):
    docs = ROOT / "docs"
    pages = [docs / f"{verb}.md" for verb in VERBS]
    for page in pages:
        assert page.exists(), f"{page} is missing: run plumb generate docs docs"
        shutil.copy(page, tmp_path)
    done = plumb("generate", "docs", tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    for page in pages:
        assert (tmp_path / page.name).read_text() == page.read_text(), \
            f"{page} is stale: run plumb generate docs docs"


def test_man_pages(tmp_path):
    assert plumb("generate", "man", tmp_path).returncode == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == \
        sorted(["plumb.1", *(f"plumb-{verb}.1" for verb in VERBS)])
    text = (tmp_path / "plumb-report.1").read_text()
    assert "\\-\\-inverted" in text
    if shutil.which("groff"):
        for page in tmp_path.iterdir():
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", page], timeout=60,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            assert done.returncode == 0 and done.stderr == b"", done.stderr.decode()


def complete(script, *words):
    line = " ".join(f"'{word}'" for word in words)
    text = (f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _plumb; "
            'printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "--norc", "-c", text], check=True, timeout=60,
                          stdout=subprocess.PIPE)
    return done.stdout.decode().split()


def test_bash_completion(tmp_path):
    script = tmp_path / "plumb.bash"
    script.write_bytes(plumb("generate", "completion-bash").stdout)
    assert set(complete(script, "plumb", "")) == set(VERBS)
    assert complete(script, "plumb", "rep") == ["report"]
    ways = {*WAYS, "native", "library", "memory", "range"}
    assert set(complete(script, "plumb", "report", "--by", "")) == ways
    assert complete(script, "plumb", "report", "x", "--inv") == ["--inverted"]
    assert "metrics" in complete(script, "plumb", "help", "")


@pytest.mark.parametrize("shell", ("zsh", "fish"))
def test_other_completions(shell, tmp_path):
    text = plumb("generate", f"completion-{shell}").stdout.decode()
    for verb in VERBS:
        assert verb in text
    assert "inverted" in text and "generate" not in text.split("\n", 2)[2]
    if shutil.which(shell):
        script = tmp_path / f"plumb.{shell}"
        script.write_text(text)
        subprocess.run([shell, "-n", script], check=True, timeout=60)


def test_every_verb_has_help():
    for verb in VERBS:
        by_option, by_verb = plumb(verb, "--help"), plumb("help", verb)
        assert by_option.returncode == 0 and by_option.stdout == by_verb.stdout
        options = re.findall(r"^  (?:-\w, )?(--[a-z-]+)", by_option.stdout.decode(), re.M)
        assert "--help" in options
    assert plumb("generate", "man", "/nowhere").returncode == 5
    assert b"plumb " in plumb("--version").stdout
    version = json.loads(plumb("version", "--json").stdout)
    assert version["schema"] == 1 and version["verb"] == "version"
