# SPDX-License-Identifier: Apache-2.0
"""Scores plumb why on the pairs: does the first cause name a line that the fix changes, and is the saving right?"""
import math
import os
import re

import figures
import recorded
from known import PAIRS, marked

NEAR = 1.5  # a predicted saving is right within this factor
LITTLE = 0.1  # without headroom, plumb may promise at most this part of the time


def measured(folder):
    """{pair: its times} as the programs wrote them."""
    found = {}
    for name in os.listdir(folder):
        if re.fullmatch(r"times\.\w+\.jsonl", name):
            for one in recorded.lines_of_json(os.path.join(folder, name)):
                found[one["pair"]] = one
    return found


def profiles(folder, program):
    return sorted(os.path.join(folder, name) for name in os.listdir(folder)
                  if re.fullmatch(rf"{program}\.\d+\.plumb", name))


def kernels_of(plumb, path, pair):
    """plumb's answers about the "before" kernels of PAIR, the one with the most time first."""
    names = [name for name in recorded.functions(path) if base_of(name) in pair.kernels]
    found = [one for one in (recorded.answer(plumb, path, name) for name in names) if one]
    return sorted(found, key=lambda one: -(one["gpu_ns"] or one["samples"]))


def base_of(mangled):
    """"gemm_before" of "_Z11gemm_beforePKdS0_Pd"."""
    match = re.match(r"_Z(\d+)", mangled)
    return mangled[match.end():match.end() + int(match[1])] if match else mangled


def is_fix(cause, lines):
    return any(place in lines for place in recorded.places_of(cause))


def judged(pair, kernels, lines):
    """What the answers about one profile of PAIR say: the first cause of the longest kernel, and the saving of the first
    causes of all of them, as a part of the time of all."""
    every = sum(one["gpu_ns"] or one["samples"] for one in kernels)
    first = next(iter(kernels[0]["causes"]), None)
    saving = 0.0
    for one in kernels:
        cause = next(iter(one["causes"]), None)
        if cause and cause.get("saving") is not None and (not pair.headroom or is_fix(cause, lines)):
            saving += cause["saving"] * (one["gpu_ns"] or one["samples"]) / every
    return {"names_fix": bool(first and is_fix(first, lines)), "kernel": base_of(kernels[0]["mangled"]), "saving": saving,
            "cause": first and f"{os.path.basename(first.get('file') or '?')}:{first.get('line')} {first.get('name') or first['kind']}",
            "id": (first or {}).get("id")}


def score(folder, plumb):
    """A dict for each pair that was measured."""
    times, scores = measured(folder), []
    for pair in PAIRS:
        time = times.get(pair.name)
        if not time:
            continue
        lines = {(source, line) for source in pair.sources for line in marked(source).get(f"{pair.name}: fix", ())}
        said = {**time, "headroom": pair.headroom, "fix": pair.fix, "speedup": time["before_ms"] / time["after_ms"],
                "measured_saving": 1 - time["after_ms"] / time["before_ms"]}
        answers = [judged(pair, kernels, lines) for kernels in
                   (kernels_of(plumb, path, pair) for path in profiles(folder, pair.program)) if kernels]
        if answers:
            said["answers"] = answers
            said["names_fix"] = figures.mean(one["names_fix"] for one in answers)
            said["predicted_saving"] = figures.mean(one["saving"] for one in answers)
            said["right_saving"] = right_saving(pair, said["predicted_saving"], said["measured_saving"])
        scores.append(said)
    return scores


def right_saving(pair, predicted, actual):
    if not pair.headroom:
        return predicted <= LITTLE
    return actual > 0 and predicted > 0 and abs(math.log(predicted / actual)) <= math.log(NEAR)


def table(scores):
    """Lines of Markdown."""
    lines = ["| pair | before | after | speed-up | plumb's first cause | on a line of the fix | saving predicted | measured |",
             "|" + " --- |" * 8]
    for one in scores:
        answers = one.get("answers")
        causes = "; ".join(sorted({str(answer["cause"]) for answer in answers})) if answers else "none"
        on_fix = "–" if not one["headroom"] else f"{100 * one['names_fix']:.0f} %" if answers else "0 %"
        predicted = f"{100 * one['predicted_saving']:.0f} %" if answers else "unknown"
        wrong = "" if one["equal"] else " (results differ)"
        lines.append(f"| {one['pair']}: {one['fix']}{wrong} | {one['before_ms']:.3f} ms | {one['after_ms']:.3f} ms | "
                     f"{one['speedup']:.2f} | {causes} | {on_fix} | {predicted} | {100 * one['measured_saving']:.0f} % |")
    real = [one for one in scores if one["headroom"]]
    if real:
        named = sum(1 for one in real if one.get("names_fix", 0) > 0.5)
        near = sum(1 for one in real if one.get("right_saving"))
        lines.append(f"\nThe first cause is on a line that the fix changes in {named} of {len(real)} pairs. The saving is "
                     f"within {NEAR} times the measured one in {near} of {len(real)}. Geometric mean of the speed-ups: "
                     f"{figures.geometric_mean(one['speedup'] for one in real):.2f}.")
    return lines
