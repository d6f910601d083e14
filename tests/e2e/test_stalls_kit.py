# SPDX-License-Identifier: Apache-2.0
"""bench/stalls: its table fits its sources, and its scores are right where the answer is known. No GPU is needed."""
import contextlib
import json
import math
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys

import pytest
from conftest import ROOT, run_command

KIT = ROOT / "bench" / "stalls"
sys.path.insert(0, str(KIT))
import baselines  # noqa: E402
import blame  # noqa: E402
import coverage  # noqa: E402
import cubin  # noqa: E402
import effects  # noqa: E402
import figures  # noqa: E402
import known  # noqa: E402
import pairs  # noqa: E402
import recorded  # noqa: E402
import score  # noqa: E402
import speed  # noqa: E402

NVCC = shutil.which("nvcc") or os.environ.get("PLUMB_NVCC")
CODE_TABLES = """
CREATE TABLE code_functions (id, name, text, text_bytes);
CREATE TABLE code_lines (code_function, offset, depth, file, line);
CREATE TABLE code_samples (code_function, offset, reason, issued, count);
"""


# ---- the table and the sources ----

def source(name):
    return (KIT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("case", known.CASES, ids=lambda case: case.name)
def test_a_case_and_its_source_agree(case):
    lines = known.marked(case.source)
    mine = {marker for marker in lines if marker.startswith(case.name + ":")} - {case.marker("hands on")}
    causes = {candidate.marker for candidate in case.candidates.values()}
    assert mine == causes | {case.marker("stalls"), case.marker("placebo")}
    assert re.search(rf"\b{case.kernel}\(", source(case.source))
    assert not case.other or re.search(rf"\b{case.other}\(", source(case.source))
    arms = set(re.findall(rf'kit\.arm\("{case.name}", "([^"]+)", (\w+)_slots', source(case.source)))
    assert {arm for arm, _ in arms} == set(case.arms)
    for arm, kernel in arms:
        assert kernel == (case.other if case.other and case.arms[arm] else case.kernel)
    assert set(case.questions) <= set(case.arms) and set(case.classes)
    assert len(case.arms) <= int(re.search(r"#define SLOT_COUNT (\d+)", source("kit.h"))[1])
    taken = {frozenset(names) for names in case.arms.values()}
    names = set(case.candidates)
    assert all(frozenset(some) in taken for some in ([], names, *([name] for name in names))), "Shapley needs all"


def test_each_case_of_the_sources_is_in_the_table():
    for name in ("cases.cu", "hopper.cu"):
        for case in re.findall(r'kit\.arm\("(\w+)"', source(name)):
            assert known.case_named(case).source == name
        for marker in known.marked(name):
            assert known.case_named(marker.partition(":")[0]).source == name


@pytest.mark.parametrize("pair", known.PAIRS, ids=lambda pair: pair.name)
def test_a_pair_and_its_sources_agree(pair):
    files = [file for file in known.PROGRAMS[pair.program][0]]
    text = "".join(source(file) for file in files)
    for kernel in pair.kernels:
        assert f"void {kernel}(" in text and f"{kernel}<<<" in text
    assert re.search(rf'\{{ "{pair.name}",', text)
    lines = [line for name in pair.sources for line in known.marked(name).get(f"{pair.name}: fix", ())]
    assert bool(lines) == pair.headroom
    assert set(pair.sources) <= set(files)


def test_there_are_ten_pairs_with_headroom_and_two_without():
    assert [sum(pair.headroom == which for pair in known.PAIRS) for which in (True, False)] == [10, 2]
    named = {name for file in ("pairs_loops.cu", "pairs_apps.cu", "calls.cu", "calls_table.cu")
             for name in re.findall(r"// (\w+): fix", source(file))}
    assert named == {pair.name for pair in known.PAIRS if pair.headroom}


# ---- statistics ----

def test_shapley_values_are_those_of_the_textbook():
    """Gloves: one left, two right; a pair is worth 1. And two loads of which either alone keeps most of the stall."""
    def gloves(some):
        return 1.0 if "left" in some and len(some) > 1 else 0.0
    values = figures.shapley(["left", "right", "other"], gloves)
    assert values == pytest.approx({"left": 2 / 3, "right": 1 / 6, "other": 1 / 6})
    gone = {frozenset(): 0, frozenset("A"): 110, frozenset("B"): 120, frozenset("AB"): 675}
    loads = figures.shapley(["A", "B"], gone.__getitem__)
    assert loads == pytest.approx({"A": 332.5, "B": 342.5})
    assert figures.normalised({"A": 3.0, "B": 1.0, "C": -2.0}) == {"A": 0.75, "B": 0.25, "C": 0}
    assert figures.normalised({"A": -1.0}) == {}


def test_total_variation_and_means():
    assert figures.total_variation({"A": 1.0}, {"A": 1.0}) == 0
    assert figures.total_variation({"A": 1.0}, {"B": 1.0}) == 1
    assert figures.total_variation({"A": 0.5, "B": 0.5}, {"A": 0.75, "B": 0.25}) == pytest.approx(0.25)
    assert figures.geometric_mean([1, 4]) == pytest.approx(2)
    assert figures.quantile([1, 2, 3, 4, 5], 0.5) == 3 and figures.quantile([0, 10], 0.25) == 2.5


def test_the_bootstrap_holds_the_mean_as_often_as_it_says():
    """Of 200 samples of 20 from a normal distribution, the 95 % interval misses the mean about 5 to 10 % of the time."""
    source_of = random.Random(7)
    missed = 0
    for turn in range(200):
        runs = [source_of.gauss(10, 2) for _ in range(20)]
        low, high = figures.bootstrap(runs, figures.mean, draws=200, seed=turn)
        assert low < high
        missed += not low <= 10 <= high
    assert 4 <= missed <= 30
    assert figures.bootstrap([1.0], figures.mean)[0] == float("-inf")


def test_the_interval_of_a_median_misses_it_rarely_and_one_bad_run_does_not_move_it():
    source_of, missed = random.Random(11), 0
    for _ in range(1000):
        low, high = figures.median_interval([source_of.expovariate(1) for _ in range(12)])
        missed += not low <= math.log(2) <= high
    assert 15 <= missed <= 62, "3.9 % by the binomial distribution"
    runs = [1.0, 1.1, 0.9, 1.05, 0.95, 1.02, 0.98, 1.01, 0.99, 1.03, 0.97, 1.04]
    low, high = figures.median_interval(runs)
    assert (low, high) == (0.97, 1.04), "the third and the tenth"
    bad = [*runs[:-1], -250.0]
    assert abs(figures.median(bad) - figures.median(runs)) < 0.02
    low, high = figures.median_interval(bad)
    assert 0.9 < low < 1 < high < 1.1
    assert figures.median_interval(runs[:6]) == (0.9, 1.1), "six are enough"
    assert figures.median_interval(runs[:5]) == (-math.inf, math.inf), "five are not"


def test_conservation_sees_a_missing_sample():
    stalls = [{"samples": 10, "causes": [{"samples": 7}, {"samples": 3}]}, {"samples": 5, "causes": [{"samples": 4}]}]
    assert figures.conservation(stalls[:1]) == 0
    assert figures.conservation(stalls) == 1


def test_what_reasons_and_instructions_are_called():
    assert recorded.plain("smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued") == "long_scoreboard"
    assert recorded.plain("long_scoreboard") == "long_scoreboard"
    assert blame.opcode("@!P0 LDG.E.64 R2, [R4.64] ;") == baselines.opcode("LDG.E R2") == "LDG"
    assert pairs.base_of("_Z11gemm_beforePKdS0_Pd") == "gemm_before"


# ---- a recording with known answers ----

def instruction(opcode):
    return opcode.to_bytes(2, "little") + bytes(14)


def write_profile(path, functions):
    """FUNCTIONS: {mangled name: (text, [(offset, depth, file, line)], {(offset, reason, issued): count})}."""
    base = sqlite3.connect(path)
    base.executescript(CODE_TABLES)
    for number, (name, (text, lines, samples)) in enumerate(functions.items()):
        base.execute("INSERT INTO code_functions VALUES (?, ?, ?, ?)", (number, name, text, len(text)))
        base.executemany("INSERT INTO code_lines VALUES (?, ?, ?, ?, ?)", [(number, *line) for line in lines])
        base.executemany("INSERT INTO code_samples VALUES (?, ?, ?, ?, ?)",
                         [(number, *key, count) for key, count in samples.items()])
    base.commit()
    base.close()


STALL, LOAD, EARLIER, CLEAN, SIDE = 0x40, 0x60, 0x20, 0x30, 0x70
REASON = "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued"


@pytest.fixture
def recording(tmp_path):
    """Eight runs of "chase": P removes 900 of 1000 samples at STALL and none of 500 at CLEAN. The answers name P for
    both, so that some of the blame is false. The load is inlined from a header."""
    noise = random.Random(3)
    folder = tmp_path / "recording"
    folder.mkdir()
    line, = known.marked("cases.cu")["chase: cause P"]
    side, = known.marked("cases.cu")["chase: placebo"]
    codes = {LOAD: 0x981, EARLIER: 0x919}
    text = b"".join(instruction(codes.get(at, 0x918)) for at in range(0, 0x80, 16))
    lines = [(0, 0, "/x/cases.cu", line - 1), (STALL, 0, "/x/cases.cu", line), (LOAD, 0, "/x/intrinsics.h", 5),
             (LOAD, 1, "/x/cases.cu", line), (SIDE, 0, "/x/cases.cu", side)]
    for run in range(1, 9):
        functions, launches = {}, []
        for slot, arm in enumerate(("base", "P", "again", "placebo")):
            name = f"_Z5chaseILi{slot}EEvPKjPjii"
            here = 100 if arm == "P" else 1000
            functions[name] = (text, lines, {
                (STALL, REASON, 0): here + noise.randrange(-9, 10), (STALL, REASON, 1): 77,
                (CLEAN, REASON, 0): 500 + noise.randrange(-9, 10), (EARLIER, "selected", 0): 5, (LOAD, "selected", 0): 20})
            launches.append({"case": "chase", "arm": arm, "slot": slot, "function": name, "executions": 2000, "ms": 1.0})
        write_profile(folder / f"cases.{run}.plumb", functions)
        (folder / f"cases.{run}.jsonl").write_text("\n".join(map(json.dumps, launches)))
    return folder


@pytest.fixture
def teller(tmp_path):
    """Writes a stand-in for plumb that gives the answer that a test makes of a name."""
    def make(answer):
        (tmp_path / "answer.json").write_text(json.dumps(answer))
        path = tmp_path / "teller"
        path.write_text(f"#!{sys.executable}\nimport sys\n"
                        f"print(open({str(tmp_path / 'answer.json')!r}).read().replace('KERNEL', sys.argv[3]))\n")
        path.chmod(0o755)
        return str(path)
    return make


def chase_answer(top=LOAD, samples=1000):
    line, = known.marked("cases.cu")["chase: cause P"]

    def cause(offset, count, **more):
        return {"kind": "data", "name": "pointer indirection", "id": "pointer", "offset": offset, "function": "KERNEL",
                **({"file": "/x/intrinsics.h", "line": 5, "inlined": [{"file": "/x/cases.cu", "line": line}]}
                   if offset == LOAD else {"file": "/x/cases.cu", "line": line - 1}), "samples": count, "chain": [],
                "instruction": "LDG.E R2, [R4]" if offset == LOAD else "S2R R0, SR_TID.X", "ambiguous_with": [], **more}
    first = EARLIER if top == LOAD else LOAD
    stalls = [{"offset": at, "function": "KERNEL", "reason": "long_scoreboard", "class": "memory", "samples": count,
               "causes": [cause(top, count - count // 10), cause(first, count // 10)]}
              for at, count in ((STALL, samples), (CLEAN, 500))]
    listing = [{"offset": at, "function": "KERNEL", "instruction": "LDG R2" if at == LOAD else "S2R R0" if at == EARLIER
                else "NOP", "waits_for": [{"offset": one, "function": "KERNEL"} for one in (LOAD, EARLIER)]
                if at in (STALL, CLEAN) else []} for at in range(0, 0x80, 16)]
    return {"kernels": [{"name": "KERNEL", "mangled": "KERNEL", "stalls": stalls, "listing": listing, "coverage": 0.5,
                         "causes": []}]}


def asked(recording, plumb):
    case = known.case_named("chase")
    question = effects.Question(case, "base", score.load(recording)["chase"], known.marked(case.source))
    return score.score_question(question, plumb)


def test_a_right_answer_is_right_and_an_effect_is_measured(recording, teller):
    found = asked(recording, teller(chase_answer()))
    assert found["runs"] == 8 and found["offset"] == STALL and found["hottest"] and found["truth"] == ["P"]
    assert found["effects"]["P"]["part"] == pytest.approx(0.9, abs=0.02)
    low, high = (found["effects"]["P"][key] * 2000 for key in ("low", "high"))
    assert 880 < low < high < 920
    assert abs(found["again"][0]) < 0.02 and abs(found["placebo"][0]) < 0.02
    (time, samples), = found["time_and_samples"]
    assert time == 1 and samples == pytest.approx((100 + 602) / (1000 + 602), abs=0.01)
    own = found["methods"]["plumb"]
    assert (own["line"], own["instruction"], own["class"], own["name"]) == (1, 1, 1, 1)
    assert own["variation"] == pytest.approx(0.1) and found["conserved"] == 0
    false, tested, untested = found["false"]["plumb"]
    assert false == pytest.approx(450, abs=20), "P is blamed at CLEAN too, where it has no effect"
    assert tested == pytest.approx(1350, abs=40) and untested == pytest.approx(150, abs=10)


def test_launches_that_lost_their_samples_are_left_out(recording, teller):
    """Run 2 has no function for "again", run 3 a tenth of the samples of the base, run 4 half the time and half the samples of
    P, and run 5 a time with the loading of the module in it: only the first two are lost."""
    def change(run, arm, part=None, ms=None):
        path = recording / f"cases.{run}.jsonl"
        launches = [json.loads(line) for line in path.read_text().splitlines()]
        one = next(one for one in launches if one["arm"] == arm)
        one["ms"] = ms or one["ms"]
        with contextlib.closing(sqlite3.connect(recording / f"cases.{run}.plumb")) as base, base:
            number, = base.execute("SELECT id FROM code_functions WHERE name = ?", (one["function"],)).fetchone()
            if part is None:
                base.execute("UPDATE code_functions SET name = 'gone' WHERE id = ?", (number,))
            else:
                base.execute("UPDATE code_samples SET count = count * ? WHERE code_function = ?", (part, number))
        path.write_text("\n".join(map(json.dumps, launches)))
    change(2, "again")
    change(3, "base", 0.1)
    change(4, "P", 0.5, 0.5)
    change(5, "P", 1, 200.0)
    recordings = score.load(recording)
    lost = effects.drop_lost(recordings)
    assert [(case, arm) for case, arm, _ in lost] == [("chase", "again"), ("chase", "base")]
    assert lost[0][2] == 0 and lost[1][2] == pytest.approx(0.1, abs=0.01)
    question = effects.Question(known.case_named("chase"), "base", recordings["chase"], known.marked("cases.cu"))
    assert len(question.runs) == 7, "the run without its base says nothing"
    change_again, low, high = question.control(STALL, "again")
    assert low <= 0 <= high and abs(change_again) < 0.02
    (time, _), = effects.time_and_samples(question)
    assert time == 1, "a median, which the 200 ms do not move"


def test_an_opcode_decides_on_a_line_that_has_other_code():
    case, lines = known.case_named("hgmma"), known.marked("hopper.cu")
    question = effects.Question(case, "base", [], lines)
    places = [("hopper.cu", min(lines["hgmma: cause H"]))]
    assert blame.candidate_at(question, places, "sync", "HGMMA") == "H"
    assert blame.candidate_at(question, places, "barrier", "BRA") == "other"


def test_coverage_is_the_geometric_mean_and_slots_count_once():
    assert coverage.plain_name("_Z5chaseILi3EEvPKjPjii") == coverage.plain_name("_Z5chaseILi0EEvPKjPjii") == "_Z5chase"
    assert coverage.figures_of({"a": 1.0, "b": 0.25})["mean"] == pytest.approx(0.5)
    assert coverage.figures_of({"a": 1.0, "b": 0.0})["mean"] is None and coverage.figures_of({})["kernels"] == 0


def test_a_wrong_answer_is_wrong(recording, teller):
    found = asked(recording, teller(chase_answer(top=EARLIER)))
    own = found["methods"]["plumb"]
    assert own["line"] == own["instruction"] == 0 and own["variation"] == pytest.approx(0.9)
    total = score.summary([found])["plumb"]
    assert total["line"] == 0 and total["questions"] == 1


def test_baselines_follow_their_rules(recording, teller):
    methods = asked(recording, teller(chase_answer()))["methods"]
    assert methods["raw"]["shares"] == {"P": 1.0} and methods["raw"]["instruction"] == 0, "its line, not its instruction"
    assert methods["nearest"]["shares"] == {"other": 1.0}, "the S2R is before, the load is after"
    # distance: 2 instructions before, 6 around the loop: 1 and 1/3. Issued: 5 and 20. Match: the load 1, the other 0.
    assert methods["four"]["shares"] == {"P": 1.0}
    assert methods["classes"]["shares"] == {"P": 1.0}


def test_shares_of_the_baselines():
    function = recorded.Function(0, "f", b"\0" * 0x80, [])
    function.samples = {(STALL, "long_scoreboard", 0): 60, (STALL, "wait", 0): 40, (LOAD, "selected", 0): 10,
                        (EARLIER, "selected", 0): 30}
    listing = {STALL: {"waits_for": [{"offset": LOAD, "function": "f"}, {"offset": EARLIER, "function": "f"}],
                       "instruction": "FADD"}, LOAD: {"instruction": "LDG"}, EARLIER: {"instruction": "IADD3"}}
    four = baselines.four(STALL, listing, function)
    load, other = 1 / 3 * 0.25 * 0.6, 1 * 0.75 * 0.4
    assert four == pytest.approx({LOAD: load / (load + other), EARLIER: other / (load + other)})
    assert baselines.classes(STALL, listing, function) == pytest.approx({LOAD: 0.6, EARLIER: 0.4})
    assert baselines.nearest(STALL, {}, function) == {STALL: 1.0}
    barrier = recorded.Function(0, "f", b"\0" * 0x80, [])
    barrier.samples = {(STALL, "barrier", 0): 9}
    assert baselines.classes(STALL, {STALL: {"instruction": "BAR.SYNC"}}, barrier) == {STALL: 1.0}
    assert baselines.classes(STALL, {STALL: {"instruction": "FADD"}}, barrier) == {STALL - 16: 1.0}


def test_loads_that_share_a_stall_get_their_shapley_values():
    case, lines = known.case_named("twoload"), known.marked("cases.cu")

    def arm(samples):
        return effects.Arm(recorded.Function(0, "f", b"", [(0, "cases.cu", max(lines["twoload: stalls"]))]), 1, 1.0, "", {STALL: samples})
    runs = [{"base": arm(700 + k), "A": arm(590 + k), "B": arm(580 + k), "A+B": arm(25 + k)} for k in range(8)]
    question = effects.Question(case, "base", runs, lines)
    effect = question.effects(STALL)
    assert effect["A"][0] == pytest.approx(332.5) and effect["B"][0] == pytest.approx(342.5)
    assert effects.true_causes(effect) == {"A", "B"}
    hit = effects.Question(case, "A", runs, lines)
    effect = hit.effects(STALL)
    assert effect["B"][0] == pytest.approx(565) and effect["A"] == (0, 0, 0)
    assert effects.true_causes(effect) == {"B"} and hit.primary() == [STALL]


def test_the_tables_are_written_between_their_markers(recording, teller, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- begin: stalls (bench/stalls/score.py) -->\nold\n<!-- end: stalls -->\nafter\n")
    (recording / "times.pairs.jsonl").write_text(json.dumps({
        "pair": "gemm", "difference": 0, "equal": True, "repeats": 25, "before_ms": 4.0, "after_ms": 1.0}) + "\n")
    done = run_command(sys.executable, KIT / "score.py", recording, "--plumb", teller(chase_answer()),
                       "--json", tmp_path / "scores.json", "--markdown", page)
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("<!-- end: stalls -->\nafter\n") and "old" not in text
    assert "| plumb why | 100 % |" in text and "| chase | base |" in text and "too few runs" in text
    assert "| 4.000 ms | 1.000 ms | 4.00 | none | 0 % | unknown | 75 % |" in text
    text = (tmp_path / "scores.json").read_text()
    assert "NaN" not in text and "Infinity" not in text
    scores = json.loads(text)
    assert scores["summary"]["plumb"]["line"] == 1 and scores["runs"] == 8


def test_a_pair_is_judged_by_the_first_cause_of_its_longest_kernel():
    pair = next(pair for pair in known.PAIRS if pair.name == "gemm")
    line, = known.marked("pairs_loops.cu")["gemm: fix"]

    def kernel(line, saving, time, fewer=None):
        return {"mangled": "_Z11gemm_beforePKdS0_Pd", "gpu_ns": time, "samples": 5,
                "causes": [{"file": "/x/pairs_loops.cu", "line": line, "name": "n", "kind": "data", "saving": saving / 2,
                            "saving_line": saving, "saving_fewer_bytes": fewer}]}
    lines = {("pairs_loops.cu", line)}
    right = pairs.judged(pair, [kernel(line, 0.5, 300), kernel(line + 1, 0.9, 100)], lines)
    assert right["names_fix"] and right["saving"] == pytest.approx(0.375), "only what the fix changes is promised"
    assert not pairs.judged(pair, [kernel(line + 1, 0.5, 300)], lines)["names_fix"]
    assert right["saving_most"] == right["saving"]
    saturated = pairs.judged(pair, [kernel(line, 0.1, 300, 0.8), kernel(line, 0.5, 100)], lines)
    assert (saturated["saving"], saturated["saving_most"]) == (pytest.approx(0.2), pytest.approx(0.725))
    assert pairs.right_saving(pair, 0.5, 0.5, 0.7) and not pairs.right_saving(pair, 0.4, 0.4, 0.7)
    assert pairs.right_saving(pair, 0.1, 0.5, 0.7) and not pairs.right_saving(pair, 0.8, 0.9, 0.4)
    assert not pairs.right_saving(pair, 0, 0.5, 0.3), "a promise of nothing is none"
    without = next(pair for pair in known.PAIRS if not pair.headroom)
    assert pairs.right_saving(without, 0.05, 0.9, 0) and not pairs.right_saving(without, 0.5, 0.5, 0)
    assert pairs.right_saving(without, 0.25, 0.9, 0.19) and not pairs.right_saving(without, 0.5, 0.5, 0.19)


def test_the_time_is_taken_of_large_and_typical_kernels():
    sizes = {"a": 10, "b": 50, "c": 20, "d": 40, "e": 30}
    assert speed.chosen(sizes, 1, 1) == ["b", "e"] and speed.chosen(sizes, 9, 3) == ["b", "d", "e", "c", "a"]
    functions, more = speed.kernels_of(ROOT / "tests" / "e2e" / "programs" / "inlined.cubin")
    assert functions and more == ["--static"] and all(size and size % 16 == 0 for size in functions.values())
    assert speed.timed([sys.executable, "-c", "raise SystemExit(3)"], 1)[0] is None
    best, median, text = speed.timed([sys.executable, "-c", "print(1)"], 3)
    assert 0 < best <= median and text == b"1\n"


# ---- with NVIDIA's compiler, where it is installed ----

@pytest.mark.skipif(not NVCC, reason="nvcc is not installed (set PLUMB_NVCC)")
@pytest.mark.parametrize("program", ["cases", "hopper"])
def test_arms_have_the_same_machine_code(program, tmp_path):
    (name,), options = known.PROGRAMS[program]
    to = tmp_path / "a.cubin"
    subprocess.run([NVCC, "-std=c++17", "-O3", "-lineinfo", *options, "-cubin", "-o", to, KIT / name], check=True)
    codes = {}
    for function, code in cubin.texts(to.read_bytes()).items():
        match = re.match(r"_Z\d+(\w+?)ILi\dE", function)
        if match:
            codes.setdefault(match[1], []).append(code)
    assert set(codes) == {kernel for case in known.CASES if case.source == name for kernel in (case.kernel, case.other) if kernel}
    for kernel, all_codes in codes.items():
        assert len(all_codes) == 6 and len(set(all_codes)) == 1, kernel
    dumper = os.path.join(os.path.dirname(NVCC), "cuobjdump")
    if os.path.exists(dumper):
        text = subprocess.run([dumper, "-sass", to], capture_output=True, text=True, check=True).stdout
        seen = re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?\s*(\w+)[^\n]*/\* 0x([0-9a-f]{16}) \*/", text)
        named = {int(word, 16) & 0xfff: opcode for opcode, word in seen}
        both = set(recorded.OPCODES) & set(named)
        assert both and all(recorded.OPCODES[code] == named[code] for code in both)


# ---- the run, with programs that only do as if ----

COMPILER = """#!{python}
import os, sys
to = sys.argv[sys.argv.index("-o") + 1]
name = os.path.basename(to)
body = "#!/bin/sh\\n"
if name == "hopper":  # as a whole it fails, and so does one case
    body += '[ "$3" = "" ] && exit 1; [ "$3" = hgmma ] && exit 1\\n'
body += '[ "$1" = before ] || echo "{{}}" > "$2"\\n'
open(to, "w").write(body)
os.chmod(to, 0o755)
"""
PROFILER = """#!/bin/sh
[ "$1" = --version ] && { echo "plumb 9"; exit; }
while [ "$1" != -- ]; do [ "$1" = -o ] && out=$2; shift; done
shift; "$@" && echo profile > "$out"
"""


def test_a_run_goes_on_without_what_is_broken(tmp_path):
    (tmp_path / "bin").mkdir()
    for name, text in (("bin/nvcc", COMPILER.format(python=sys.executable)), ("plumb", PROFILER)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    to = tmp_path / "recorded"
    done = run_command(sys.executable, KIT / "run.py", "--plumb", tmp_path / "plumb", "--nvcc", tmp_path / "bin" / "nvcc",
                       "--to", to, "--runs", "2", "--pair-runs", "1", "--serialised-runs", "1", "--pack", tmp_path / "packed")
    assert done.returncode == 0 and "hopper: only these cases work: tma" in done.stdout, done.stdout + done.stderr
    profiles = {path.name for path in to.glob("*.plumb")}
    assert profiles == {"cases.1.plumb", "cases.2.plumb", "tma.hopper.1.plumb", "tma.hopper.2.plumb", "pairs.1.plumb",
                        "calls.1.plumb", "serialised.cases.1.plumb", "tma.serialised.hopper.1.plumb"}
    packed = subprocess.run(["tar", "tzf", tmp_path / "packed.0"], capture_output=True, text=True, check=True).stdout.split()
    assert profiles | {"about.json", "times.pairs.jsonl", "times.calls.jsonl"} <= set(packed)
    assert json.loads((to / "about.json").read_text())["plumb"] == "plumb 9"
    gone = run_command(sys.executable, KIT / "run.py", "--plumb", tmp_path / "missing", "--nvcc", tmp_path / "bin" / "nvcc",
                       "--to", tmp_path / "none", "--runs", "3")
    assert "no profile" in gone.stdout and not list((tmp_path / "none").glob("*.plumb"))


def test_profiles_of_one_kernel_at_a_time_are_told_apart(recording):
    for name in ("serialised.cases.1", "chase.cases.9", "chase.serialised.cases.9"):
        for end in ("plumb", "jsonl"):
            shutil.copy(recording / f"cases.1.{end}", recording / f"{name}.{end}")
    assert len(score.load(recording)["chase"]) == 9
    assert len(score.load(recording, "serialised.")["chase"]) == 2
