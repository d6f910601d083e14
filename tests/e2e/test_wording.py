# SPDX-License-Identifier: Apache-2.0
"""What people read: of real recordings (names that fit, plurals, no unknown as 0, one error of wrong use), and the words
themselves, by the rules in CONTRIBUTING.md, "Plain English". The README, every page of docs/, the help of every verb, and
the strings of the C sources and of the Python package are looked through."""
import ast
import gzip
import json
import math
import re
import subprocess
import shutil
import statistics

import pytest
from conftest import PLUMB, ROOT, run_command

DATA = ROOT / "tests" / "data"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Paths of profiles, by the names that they have under tests/data."""
    folder = tmp_path_factory.mktemp("recorded")

    def unpack(name):
        path = folder / name.replace("/", "-")
        if not path.exists():
            with gzip.open(DATA / f"{name}.gz") as source, open(path, "wb") as target:
                shutil.copyfileobj(source, target)
        return path
    return unpack


def text_of(*words, code=0):
    done = run_command(PLUMB, *words)
    assert done.returncode == code, done.stderr
    return done.stdout if not code else done.stderr


# ---- findings ----

def test_titles_of_findings_have_short_names_and_evidence_the_whole():
    found = json.loads(text_of("report", DATA / "foreign" / "torch.json.gz", "--findings", "--json"))["findings"]
    names = [row["evidence"]["name"] for row in found if row["id"].startswith("hotspot-kernel")]
    titles = [row["title"] for row in found]
    assert max(map(len, names)) > 100 and max(map(len, titles)) < 160
    assert any(re.search(r"kernel sm80_xmma_gemm\S+…\S+__5x_cublas takes", title) for title in titles)


def test_findings_without_a_line_name_none():
    text = text_of("report", DATA / "foreign" / "compiled.json.gz", "--findings")
    assert "takes 48.0 % of the GPU time\n" in text and "no line of your code" not in text


def test_evidence_for_people_is_rounded_and_lists_each_name_once():
    text = re.sub(r"\s+", " ", text_of("report", DATA / "h200_example.plumb", "--findings"))
    assert "registers 38," in text and "registers 37.995" not in text
    for names in re.findall(r"(?:names|kernels) ((?:[^;,]+; )+[^;,]+)", text):
        listed = names.split(" and ")[0].split("; ")
        assert len(set(listed)) == len(listed), names


# ---- iters ----

def test_summaries_are_of_the_iterations(recorded):
    """p50 is the median, p95 the least value that 95 % do not exceed; average and maximum are of all."""
    tracks = json.loads(text_of("iters", recorded("planted/biggerbatch.plumb"), "--json"))["tracks"]
    level = tracks[0]["levels"][0]
    for key in ("duration_ns", "interval_ns", "overlap_ns", "op_gap_ns", "op_time_ns", "copy_bytes"):
        values = [item[key] for item in level["iterations"] if item[key] is not None]
        told = level["summary"][key]
        assert told["p50"] == pytest.approx(statistics.median(values), abs=1), key
        assert told["p95"] == sorted(values)[math.ceil(0.95 * len(values)) - 1], key
        assert told["max"] == max(values) and told["avg"] == pytest.approx(sum(values) / len(values), abs=1), key


def test_explaining_in_words(recorded):
    text = text_of("iters", recorded("planted/slowcopy.plumb"), "--explain", "25")
    assert ", without the 8.00 MiB that the others copy: copy pageable→device at planted_program.py:35\n" in text
    assert "0x the bytes" not in text and text.count("behind GPU work") == 1
    assert not re.search(r" 1\.0x as long", text_of("iters", recorded("resnet/b8.plumb"), "--explain", "3"))


def test_one_wait_is_no_waits(recorded):
    assert "inferred, because not recorded: 1 wait of the host\n" in text_of("iters", recorded("waits.plumb"))


# ---- tables ----

def test_tables_say_once_what_is_the_same_in_all_rows(recorded):
    text = text_of("tables", recorded("planted/sleep.plumb"), "A2", "A4", "A9")
    assert "in all rows: layer_duration_kind complete, layer_host_duration_kind operators\n" in text
    assert text.count("layer_duration_kind") == 1
    assert "GPU_theoretical_flops (GFLOPS) 67000" in text


def test_tables_of_nothing_known_have_no_rows(recorded):
    text = text_of("tables", recorded("planted/sleep.plumb"), "A4")
    assert text.splitlines() == ["A4 layer memory allocation", "no value is known: "
                                 "record with plumb run --memory to see how much GPU memory tensors take",
                                 "unknown: layer_allocated_bytes, layer_peak_allocated_bytes"]


def test_a_table_without_rows_says_why(recorded):
    path = recorded("resnet/b1.plumb")
    done = run_command(PLUMB, "tables", path, path, "swapped")
    assert done.returncode == 3
    assert done.stdout.splitlines() == ["swapped kernels that changed between profiles",
                                        "no rows: all profiles have the same kernels"]
    done = run_command(PLUMB, "tables", path, "A16")
    assert done.returncode == 1 and "there is no table A16; use A1 to A15, stages" in done.stderr
    with open("/dev/full", "w") as full:
        done = run_command(PLUMB, "tables", path, "--json", stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr.count("plumb: ")) == (5, 1), done.stderr


# ---- findings ----

def test_a_frame_of_a_call_path_takes_a_line_at_most(recorded):
    """Kernels' names fill pages."""
    text = run_command(PLUMB, "report", recorded("planted/grows.plumb"), "--findings", "--width", "80").stdout
    paths = re.findall(r"^    where    (.*?)^    advice ", text, re.MULTILINE | re.DOTALL)
    assert any("MulFunctor<float> (" in path and "…" in path for path in paths)
    assert all(len(path.splitlines()) <= 4 for path in paths)
    assert max(len(line) for path in paths for line in path.splitlines()) <= 80


# ---- diff ----

def test_diff_tells_the_environment_in_units(recorded):
    text = text_of("diff", recorded("waits.plumb"), recorded("planted/sleep.plumb"))
    assert "  host.memory_bytes  126 GiB → 252 GiB\n" in text


def test_diff_of_plurals_and_of_how_long_was_recorded(recorded):
    text = text_of("diff", recorded("resnet/b1.plumb"), recorded("resnet/b256.plumb"))
    assert "(5 measured, 1 outlier left out) " in text and "recorded_ns" not in text


# ---- wrong use ----

@pytest.mark.parametrize(("words", "code", "message"), [
    (["tables", "F", "swapped"], 1, "swapped needs two or more profiles"),
    (["tables", "F", "--runs", "0"], 1, "--runs takes a number above 0"),
    (["tables", "F", "--bandwidth", "0"], 1, "--bandwidth takes a number above 0"),
    (["tables", "F", "--stat", "p101"], 1, 'no statistic "p101"; use trimmed, '),
    (["tables", "F", "--batch", "1,2"], 1, "--batch has 2 sizes for 1 FILE; give one for each"),
    (["iters", DATA], 2, "is a folder, but not an HPCToolkit database; name a profile or a trace in it"),
    (["iters", DATA / "planted" / "sleep.plumb.gz"], 2, "if it was made from a packed file, unpack it with gunzip"),
    (["diff", "F", "F", "--gate", "iteration.tim<+5%"], 1,
     'no measure or metric "iteration.tim"; use iteration.time, '),
    (["diff", "F", "F", "--gate", "iteration.time<5"], 1,
     "iteration.time is a time, but its limit is a plain number; write it as +5% or +2ms"),
    (["diff", "F", "F", "--gate", "op.calls<5ms"], 1, "op.calls is a plain number, but its limit is a time"),
])
def test_wrong_use_has_one_line_that_says_what_helps(recorded, words, code, message):
    path = recorded("planted/sleep.plumb")
    error = text_of(*[path if word == "F" else word for word in words], code=code)
    assert message in error and error.count("\n") == 1, error


def test_a_run_folder_is_for_settle(tmp_path):
    folder = tmp_path / ".plumb-4711.run"
    folder.mkdir()
    assert "is a run folder; make a profile of it with `plumb settle`\n" in text_of("iters", folder, code=2)


# ---- plain English ----

# (what is not written, what is written instead)
WORDS = [
    (r"parted by", "separated by; comma-separated"),
    (r"\bthe person(?:'s)?\b", "you; your"),
    (r"\bperson's own\b", "your"),
    (r"operands? too many", "VERB takes one FILE"),
    (r"\bof equals\b", "ties go to"),
    (r"\bstands? (?:in|at|under|beside|behind|for itself|there)\b", "is in, is at, is under"),
    (r"\bstanding (?:in|at|under|beside|behind)\b", "in, at, under"),
    (r"\btells? (?:what|how|which|whether|of|where|why)\b", "says; shows"),
    (r"\bis told (?:by|of)\b", "is known from; learns of"),
    (r", most [0-9]", ", max"),
    (r"\bfor it has\b", "because it has"),
    (r"\bof it it\b", "split the sentence"),
    (r"\bunder no operator\b", "outside any operator"),
    (r"device\s+none\b", "GPU: not used"),
    (r"(?<!there )\bis no (?:file|folder|profile|number|time|line|option|whole|name|metric|plain|known|kernel|operator)\b",
     "is not a …"),
    (r"(?<!there )\bare no (?:files|folders|profiles|numbers|times|lines|options|names|metrics|kernels|operators)\b", "are not …"),
    (r"\b(?:where|if|when) there (?:is|are) none\b", "if there is no … (name it)"),
    (r"\bis (?-i:none)\b", "there is no …; is not one"),
    (r"\blies? (?:in|at|under|within|before|after|outside|there|beside|below|on)\b", "is in, is at"),
    (r"\bin vain\b", "without success"),
    (r"\bmoreover\b|\bthereby\b|\bthereof\b|\bwhereby\b|\bhence\b|\bwhilst\b|\bamong them\b", "plain words"),
    (r"\bby far\b", "drop it"),
    (r"\bso many\b", "the number; N"),
    (r"\bsuch a one\b|\bof such\b", "name it"),
    (r"\bbesides?\b", "next to; also; in addition"),
    (r"\bmended\b|\bmends?\b", "fixed; fixes"),
    (r"\bone after the other\b", "in turn"),
    (r"\bas far as\b", "where"),
    (r"\bsave for\b", "except"),
    (r"\bof its own accord\b|\bby itself alone\b", "alone"),
    (r"\bmore than one of\b.*\bof them of\b", "split the sentence"),
    (r"—", "a full stop or a comma"),
]
PATTERN = [(re.compile(pattern, re.I), instead) for pattern, instead in WORDS]
LONGEST = 45  # words in a sentence


def found(text):
    """Yields (what, instead) for each of WORDS in TEXT."""
    text = re.sub(r"\s+", " ", text)
    for pattern, instead in PATTERN:
        for match in pattern.finditer(text):
            yield f'"{match[0]}" in "…{text[max(0, match.start() - 30):match.end() + 30]}…"; say: {instead}'


def prose(text):
    """A page of Markdown without its code."""
    text = re.sub(r"```.*?```", "", text, flags=re.S)
    text = re.sub(r"`[^`\n]*`", "x", text)
    return re.sub(r"^(?: {4}|\t).*$", "", text, flags=re.M)


PAGES = [path for path in subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True,
                                         check=False).stdout.splitlines()]


@pytest.mark.parametrize("page", PAGES)
def test_pages(page):
    wrong = list(found(prose((ROOT / page).read_text())))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", PAGES)
def test_sentences_of_pages_are_short(page):
    text = re.sub(r"^\|.*$|^#.*$|^[-*] ", "\n\n", prose((ROOT / page).read_text()), flags=re.M)
    long = [sentence for paragraph in re.split(r"\n\s*\n", text)
            for sentence in re.split(r"(?<=[.:;!?])\s", re.sub(r"\s+", " ", paragraph))
            if len(sentence.split()) > LONGEST]
    assert not long, "\n".join(long)



def test_help():
    texts = {"": run_command(PLUMB, "help").stdout}
    for verb in re.findall(r"^  ([a-z]+)  ", texts[""], re.M):
        texts[verb] = run_command(PLUMB, "help", verb).stdout
    assert len(texts) > 10
    wrong = [f"plumb help {verb}: {what}" for verb, text in texts.items() for what in found(text)]
    assert not wrong, "\n".join(wrong)


def strings_of_c(text):
    """The string literals of a C source, neighbours joined, comments left out."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    text = re.sub(r"^#.*$", " ", text, flags=re.M)
    for run in re.findall(r'"(?:[^"\\\n]|\\.)*"(?:\s*(?:PRI\w+\s*)?"(?:[^"\\\n]|\\.)*")*', text):
        yield re.sub(r'"\s*(?:PRI\w+\s*)?"', "", run)[1:-1]


@pytest.mark.parametrize("folder", sorted(path.name for path in (ROOT / "src").iterdir()))
def test_strings_of_c(folder):
    wrong = [f"{path.relative_to(ROOT)}: {what}" for path in sorted((ROOT / "src" / folder).rglob("*.[ch]"))
             for string in strings_of_c(path.read_text()) if " " in string for what in found(string)]
    assert not wrong, "\n".join(wrong)


def test_memory_runs_out_in_one_wording():
    """plumb_fail_memory has it. The ledger and readers of files ("FILE: … at byte N") have reasons of their own."""
    own = {f"src/base/{name}" for name in ("error.c", "words.h", "json_pull.c", "protobuf_read.c")}
    wrong = [f"{path.relative_to(ROOT)}: {string}" for path in sorted((ROOT / "src").rglob("*.[ch]"))
             for string in strings_of_c(path.read_text())
             if re.search(r"\b(?:no|out of|enough) memory|memory left", string)
             if str(path.relative_to(ROOT)) not in own and "collect" not in path.parts]
    assert not wrong, "\n".join(wrong)


def test_strings_of_python():
    wrong = []
    for path in sorted((ROOT / "python").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                wrong += [f"{path.name}: {what}" for what in found(node.value)]
    assert not wrong, "\n".join(wrong)
