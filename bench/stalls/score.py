#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scores plumb why against what the kernels of this folder really wait for.

    python3 bench/stalls/score.py FOLDER [--plumb PATH] [--json FILE] [--markdown FILE] [--also PROFILE]

FOLDER is what run.py wrote. No GPU is needed: another version of plumb can be scored on the same recording. --markdown puts
the tables into FILE, between its lines "begin: stalls" and "end: stalls" if it has them.

For each question (a profile of a case) and each run: does the first cause of the known stall name the line that has the
effect, and the instruction, and is the kind right? How far are the shares of blame from the shares of the effect (total
variation)? Over all instructions with at least 100 samples: how much of the blame for candidates goes to those without
an effect (false blame)? effects.py says what an effect is, baselines.py what plumb is compared with. --also names a profile of
another program: only the coverage of its kernels is counted.
"""
import argparse
import json
import math
import os
import re
import sys

import baselines
import blame
import coverage
import effects
import figures
import pairs
import recorded
from known import CASES, case_named, marked

METHODS = ["plumb", *baselines.BASELINES]
WORDS = {"plumb": "plumb why", "raw": "the stalled instruction", "nearest": "nearest definition",
         "four": "LEO's four factors", "classes": "GPA's class split"}


def load(folder, prefix=""):
    """{case: its runs} of the profiles in FOLDER. A launch that no sample is of is there, without samples."""
    found = {}
    for name in sorted(os.listdir(folder)):
        match = re.fullmatch(r"(?:(?!serialised)\w+\.)?" + re.escape(prefix) + r"(?:cases|hopper)\.\d+\.plumb", name)
        launches = os.path.join(folder, name[:-len("plumb")] + "jsonl")
        if not match or not os.path.exists(launches):
            continue
        path, runs = os.path.join(folder, name), {}
        functions = recorded.functions(path)
        for launch in recorded.lines_of_json(launches):
            function = functions.get(launch["function"]) or recorded.Function(None, launch["function"], b"", [])
            runs.setdefault(launch["case"], {})[launch["arm"]] = effects.Arm(
                function, launch["executions"], launch["ms"], path, function.waiting(case_named(launch["case"]).reasons))
        for case, run in runs.items():
            found.setdefault(case, []).append(run)
    return found


def scored_method(question, blames, truth, shares):
    """The figures of one method: BLAMES are those of the runs."""
    judged = [blame.right(question, one, truth) for one in blames]
    return {
        **{key: figures.mean(one[key] for one in judged) for key in ("line", "instruction", "class", "name")},
        "chain": figures.mean(bool(truth & {one.top, *one.in_chain}) for one in blames),
        "runs": len(judged),
        "variation": figures.mean(figures.total_variation(one.shares, shares) for one in blames),
        "tops": sorted({f"{one.top} {one.opcode} {one.kind} {one.named}".strip() for one in blames}),
        "shares": {name: figures.mean(one.shares.get(name, 0.0) for one in blames)
                   for name in sorted({name for one in blames for name in one.shares})},
    }


def false_blame(question, offsets, effect_at, blames_at):
    """(samples blamed on candidates without an effect, on all candidates, on what was not tested) of one method."""
    false = tested = untested = 0.0
    waiting = question.median_waiting()
    for offset in offsets:
        work = effects.works(effect_at[offset])
        for one in blames_at.get(offset, ()):
            weight = waiting[offset] / len(blames_at[offset])
            for name, share in one.shares.items():
                if name in ("other", "unknown"):
                    untested += weight * share
                    continue
                tested += weight * share
                if name not in work:
                    false += weight * share
    return false, tested, untested


def answers(plumb, question):
    """A run each: plumb's answer with its listing, or None."""
    return [recorded.answer(plumb, run[question.arm].path, run[question.arm].function.name, listing=True)
            for run in question.runs]


def blames(question, kernels, offsets):
    """{method: a Blame for each run that has one} of the stalls at OFFSETS."""
    found = {method: [] for method in METHODS}
    for run, kernel in zip(question.runs, kernels):
        function, waiting = run[question.arm].function, run[question.arm].waiting
        every = sum(waiting.get(offset, 0) for offset in offsets)
        if kernel is None or not every:
            continue
        found["plumb"].append(blame.of_plumb(question, kernel, set(offsets)) or blame.Blame({"unknown": 1.0}, "none"))
        listing = {one["offset"]: one for one in kernel.get("listing", ()) if one["function"] == function.name}
        for method, rule in baselines.BASELINES.items():
            shares = {}
            for offset in offsets:
                part = waiting.get(offset, 0) / every
                for source, share in rule(at=offset, listing=listing, function=function).items() if part else ():
                    shares[source] = shares.get(source, 0.0) + share * part
            found[method].append(blame.of_baseline(question, function, shares))
    return found


def score_question(question, plumb, answered=None):
    """Everything about one question, for the JSON. ANSWERED: the question in the recording that plumb is asked about, if it is
    not the one that the effects are measured in."""
    answered = answered or question
    said = {"case": question.case.name, "arm": question.arm, "runs": len(question.runs),
            "same_code": question.case.same_code, "meaning": question.case.meaning}
    primary = question.primary()
    if not primary:
        return {**said, "problem": "too few runs or samples"}
    offset = primary[0]
    effect = question.effects(offset)
    truth = effects.true_causes(effect)
    arms = [run[question.arm] for run in question.runs]
    function = arms[0].function
    waiting = question.median_waiting()
    said.update(
        offset=offset, place=(function.places_at(offset) or [None])[0], samples=sum(waiting[at] for at in primary),
        hottest=max(waiting, key=waiting.get) in primary, reasons=function.reasons_at(offset), truth=sorted(truth),
        effects={name: {"effect": value, "low": low, "high": high, "part": value / max(1e-12, figures.median(
            run[question.arm] for run in question.values(offset)))} for name, (value, low, high) in effect.items()},
        again=question.control(offset, "again"), placebo=question.control(offset, "placebo"),
        ms={name: figures.median(run[name].ms for run in question.runs if name in run) for name in question.case.arms})
    said["time_and_samples"] = effects.time_and_samples(question)
    if not truth:
        return {**said, "problem": "no candidate has an effect here"}
    kernels = answers(plumb, answered)
    if not any(kernels):
        return {**said, "problem": "plumb why gave no answer"}
    said["answers"] = sum(1 for one in kernels if one)
    shares = figures.normalised({name: effect[name][0] for name in effects.works(effect)})
    found = blames(answered, kernels, primary)
    said["causal_shares"] = shares
    said["methods"] = {method: scored_method(question, found[method], truth, shares)
                       for method in METHODS if found[method]}
    said["ambiguous"] = [{"says": bool(one.ambiguous), "right": one.top in truth,
                          "holds": bool(truth & {one.top, *one.ambiguous})} for one in found["plumb"]]
    said["conserved"] = max(figures.conservation(kernel["stalls"]) for kernel in kernels if kernel)
    said["coverage"] = figures.mean(kernel["coverage"] for kernel in kernels if kernel and kernel["coverage"] is not None)
    if question.case.same_code and not question.case.spread:
        offsets = question.scored_offsets()
        effect_at = {at: question.effects(at) for at in offsets}
        at_each = {at: blames(answered, kernels, [at]) for at in offsets}
        said["false"] = {method: false_blame(question, offsets, effect_at,
                                             {at: at_each[at][method] for at in offsets}) for method in METHODS}
        said["controls"] = {arm: [0 <= one[1] or one[2] <= 0 for at in offsets
                                  for one in [question.control(at, arm)] if one] for arm in ("again", "placebo")}
    return said


def summary(questions):
    """The figures over all questions, for each method."""
    found = {}
    asked = [one for one in questions if "methods" in one]
    for method in METHODS:
        mine = [one["methods"][method] for one in asked if method in one["methods"]]
        false = [one["false"][method] for one in asked if "false" in one]
        tested, everything = sum(one[1] for one in false), sum(one[1] + one[2] for one in false)
        found[method] = {
            "questions": len(mine),
            **{key: figures.mean(one[key] for one in mine) for key in ("line", "instruction", "class", "name", "chain", "variation")},
            "interval": figures.bootstrap(mine, lambda some: figures.mean(one["line"] for one in some)) if mine else None,
            "false": sum(one[0] for one in false) / tested if tested else None,
            "untested": sum(one[2] for one in false) / everything if everything else None}
    told = [one["false"]["plumb"] for one in asked if "false" in one and not all(each["says"] for each in one["ambiguous"])]
    found["false_if_sure"] = sum(one[0] for one in told) / sum(one[1] for one in told) if any(one[1] for one in told) else None
    sure = [one for question in asked for one in question["ambiguous"]]
    found["calibration"] = {word: {
        "answers": sum(1 for one in sure if one["says"] == says),
        "right": figures.mean(one["right"] for one in sure if one["says"] == says),
        "holds": figures.mean(one["holds"] for one in sure if one["says"] == says)}
        for word, says in (("one cause", False), ("ambiguous", True))}
    found["conserved"] = max((one["conserved"] for one in asked), default=None)
    apart = sorted((abs(time - samples), one["case"]) for one in questions if one["same_code"]
                   for time, samples in one.get("time_and_samples", ()))
    found["time_without_samples"] = {"median": figures.median(part for part, _ in apart), "worst": apart[-1] if apart else None}
    for arm in ("again", "placebo"):
        changed = [change for one in asked for change in one.get("controls", {}).get(arm, ())]
        found[arm] = {"instructions": len(changed), "changed": figures.mean(changed)}
    return found


# ---- tables ----

def percent(value):
    return "unknown" if value is None or value != value else f"{100 * value:.0f} %"


def unknown_or(part):
    return "unknown" if part is None or part != part else f"{100 * part:.1f} %"


def change(value):
    return "unknown" if value is None else f"{100 * value[0]:+.1f} % ({100 * value[1]:+.1f}…{100 * value[2]:+.1f})"


def goals(scores):
    """[(goal, the number that it asks for, the number that was measured, is it met?)]"""
    own, found = scores["summary"]["plumb"], []

    def least(word, goal, value):
        found.append((word, f"≥ {percent(goal)}", unknown_or(value), value is not None and value >= goal))
    least("right line of the first cause", 0.9, own["line"])
    if own["false"] is not None:
        found.append(("false blame", "≤ 5 %", unknown_or(own["false"]), own["false"] <= 0.05))
    if scores["summary"]["conserved"] is not None:
        found.append(("blame that is missing or too much", "0", f"{scores['summary']['conserved']}",
                      scores["summary"]["conserved"] == 0))
    for word, one in scores["coverage"].items():
        if one["kernels"]:
            least(f"coverage by GPA's count, kernels of {word}", 0.9, one["mean"])
    real = [one for one in scores["pairs"] if one["headroom"]]
    if real:
        named, near = (sum(1 for one in real if test(one)) for test in
                       (lambda one: one.get("names_fix", 0) > 0.5, lambda one: one.get("right_saving")))
        found.append(("first cause on a line of the fix", "9 of 10", f"{named} of {len(real)}", named >= 0.9 * len(real)))
        intervals = sum(1 for one in real if pairs.is_interval(one))
        found.append(("saving within 1.5 times", "10 of 10", f"{near} of {len(real)}, {intervals} of them as intervals", near == len(real)))
    return found


def tables(scores):
    total, lines = scores["summary"], []

    def row(*cells):
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    about = scores["about"]
    lines.append(f"{about.get('gpu', 'unknown GPU')}, {about.get('date', 'unknown date')}, {scores['runs']} runs. "
                 f"{len(scores['lost'])} of {scores['launches']} launches lost more than two thirds of their samples, and are "
                 "left out.\n")
    row("what", "goal", "measured", "")
    row(*["---"] * 4)
    for word, goal, value, met in goals(scores):
        row(word, goal, value, "met" if met else "missed")
    lines.append("")
    row("method", "line", "95 % interval", "line, or one in its chain", "instruction", "kind and class", "total variation", "false blame", "blame on what was not tested")
    row(*["---"] * 9)
    shown = [(WORDS[method], total[method], method == "plumb") for method in METHODS]
    if scores["serialised"]:
        shown.insert(1, ("plumb why, one kernel at a time", scores["serialised"]["plumb"], True))
    for word, one, own in shown:
        if one["questions"]:
            low, high = one["interval"]
            row(word, percent(one["line"]), f"{percent(low)} to {percent(high)}",
                percent(one["chain"]) if own else "–", percent(one["instruction"]),
                percent(one["class"]) if own else "–", f"{one['variation']:.2f}", percent(one["false"]),
                percent(one["untested"]))
    calibration, apart = total["calibration"], total["time_without_samples"]
    worst = f", and {percent(apart['worst'][0])} at worst ({apart['worst'][1]})" if apart["worst"] else ""
    lines.append("")
    row("plumb says", "answers", "the first cause is right", "the right one is among those named")
    row(*["---"] * 4)
    for word, one in calibration.items():
        row(word, one["answers"], percent(one["right"]), percent(one["holds"]))
    lines.append(f"\nWithout the questions whose answers are all ambiguous, false blame is {unknown_or(total['false_if_sure'])}. "
                 f"Blame that is missing or too much: {'unknown' if total['conserved'] is None else total['conserved']} "
                 f"samples. The same arm again changes {percent(total['again']['changed'])} of "
                 f"{total['again']['instructions']} instructions by more than chance at 95 %; more work in other code "
                 f"changes {percent(total['placebo']['changed'])}. When a cause goes, the samples and the time of the kernel "
                 f"change alike: they are {percent(apart['median'])} of the kernel apart (median){worst}.\n")
    row("case", "arm", "what is known", "stall gone without the cause", "the same again", "more work elsewhere", "plumb's first cause", "right")
    row(*["---"] * 8)
    for one in scores["questions"]:
        if "problem" in one:
            row(one["case"], one["arm"], one["meaning"], one["problem"], change(one.get("again")), change(one.get("placebo")), "–", "–")
            continue
        gone = ", ".join(f"{name} {percent(effect['part'])}" for name, effect in sorted(one["effects"].items())
                         if name in one["truth"])
        own = one["methods"].get("plumb")
        other = "" if one["same_code"] else " (other machine code: order only)"
        row(one["case"], one["arm"], one["meaning"] + other, gone, change(one["again"]), change(one["placebo"]),
            "; ".join(own["tops"]) if own else "none", percent(own["line"]) if own else "0 %")
    lines.append("")
    row("kernels of", "kernels", "coverage, geometric mean", "median", "least")
    row(*["---"] * 5)
    for word, one in scores["coverage"].items():
        row(word, one["kernels"], *(unknown_or(one[key]) for key in ("mean", "median", "least")))
    if scores["pairs"]:
        lines.append("")
        lines += pairs.table(scores["pairs"])
    return "\n".join(lines) + "\n"


def write_between(path, text):
    """Into the page PATH between its markers, or as the whole of a file without them."""
    begin, end = "<!-- begin: stalls (bench/stalls/score.py) -->\n", "<!-- end: stalls -->"
    page = ""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            page = file.read()
    if begin in page and end in page:
        text = page[:page.index(begin) + len(begin)] + text + page[page.index(end):]
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def ask(recordings, options, answered=None):
    """All questions about RECORDINGS, scored. ANSWERED: the recordings that plumb is asked about, if they are others."""
    questions = []
    for case in CASES:
        if options.case and case.name not in options.case:
            continue
        lines = marked(case.source)
        for arm in case.questions:
            question = effects.Question(case, arm, recordings.get(case.name, []), lines)
            other = effects.Question(case, arm, answered.get(case.name, []), lines) if answered else None
            questions.append(score_question(question, options.plumb, other))
            print(f"{case.name} {arm}: {questions[-1].get('problem') or questions[-1]['methods']['plumb']['tops']}", flush=True)
    return questions


def plain(value):
    """VALUE for JSON, which has no number for what is unknown or endless."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--plumb", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build", "plumb"))
    parser.add_argument("--json")
    parser.add_argument("--markdown")
    parser.add_argument("--also", action="append", default=[], metavar="PROFILE", help="count the coverage of its kernels, too")
    parser.add_argument("--case", action="append", help="only this one (may be given several times)")
    options = parser.parse_args()
    recordings, serialised = load(options.folder), load(options.folder, "serialised.")
    launches = sum(len(run) for some in (recordings, serialised) for runs in some.values() for run in runs)
    lost = effects.drop_lost(recordings) + effects.drop_lost(serialised)
    questions = ask(recordings, options)
    about = {}
    if os.path.exists(os.path.join(options.folder, "about.json")):
        with open(os.path.join(options.folder, "about.json"), encoding="utf-8") as file:
            about = json.load(file)
    scores = {"about": about, "launches": launches, "lost": lost, "runs": max((len(runs) for runs in recordings.values()), default=0),
              "summary": summary(questions), "questions": questions,
              "serialised": summary(ask(recordings, options, serialised)) if serialised else None,
              "coverage": {"the kit": coverage.figures_of(coverage.of_kit(options.plumb, options.folder)),
                           **{os.path.basename(path): coverage.figures_of(coverage.of_profile(options.plumb, path))
                              for path in options.also}},
              "pairs": [] if options.case else pairs.score(options.folder, options.plumb)}
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(plain(scores), file, indent=1)
    text = tables(scores)
    if options.markdown:
        write_between(options.markdown, text)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
