# SPDX-License-Identifier: Apache-2.0
"""Scores plumb why on the pairs: does the first cause name a line that the fix changes, and is the saving right?"""
import os
import re

import figures
import recorded
from known import PAIRS, marked

NEAR = 1.5  # a predicted saving is right within this factor
LITTLE = 0.1  # without headroom, plumb may promise at most this part of the time, or NEAR times what the "fix" saved


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
    saving = most = 0.0
    for one in kernels:
        cause = next(iter(one["causes"]), None)
        if cause and cause.get("saving_line") is not None and (not pair.headroom or is_fix(cause, lines)):
            part = (one["gpu_ns"] or one["samples"]) / every
            saving += cause["saving_line"] * part
            fewer = cause.get("saving_fewer_bytes")
            most += (cause["saving_line"] if fewer is None else fewer) * part
    return {"names_fix": bool(first and is_fix(first, lines)), "kernel": base_of(kernels[0]["mangled"]), "saving": saving,
            "saving_most": most,
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
            said["predicted_most"] = figures.mean(one["saving_most"] for one in answers)
            said["right_saving"] = right_saving(pair, said["predicted_saving"], said["predicted_most"], said["measured_saving"])
        scores.append(said)
    return scores


def right_saving(pair, least, most, actual):
    """LEAST is what plumb promises; MOST, if the kernel also moves fewer bytes."""
    if not pair.headroom:
        return least <= max(LITTLE, actual * NEAR)
    return least > 0 and least / NEAR <= actual <= most * NEAR


def is_interval(one):
    """Is the saving right, but only because plumb gives an interval?"""
    return bool(one.get("right_saving")) and one["predicted_most"] > one["predicted_saving"]


def promise(one):
    """"69 %", or "12 % to 77 %"."""
    least, most = (f"{100 * one[key]:.0f}" for key in ("predicted_saving", "predicted_most"))
    return f"{least} %" if least == most else f"{least} % to {most} %"


def table(scores):
    """Lines of Markdown."""
    lines = ["| pair | before | after | speed-up | plumb's first cause | on a line of the fix | saving predicted | measured |",
             "|" + " --- |" * 8]
    for one in scores:
        answers = one.get("answers")
        causes = "; ".join(sorted({str(answer["cause"]) for answer in answers})) if answers else "none"
        on_fix = "–" if not one["headroom"] else f"{100 * one['names_fix']:.0f} %" if answers else "0 %"
        predicted = promise(one) if answers else "unknown"
        wrong = "" if one["equal"] else " (results differ)"
        lines.append(f"| {one['pair']}: {one['fix']}{wrong} | {one['before_ms']:.3f} ms | {one['after_ms']:.3f} ms | "
                     f"{one['speedup']:.2f} | {causes} | {on_fix} | {predicted} | {100 * one['measured_saving']:.0f} % |")
    real = [one for one in scores if one["headroom"]]
    if real:
        named = sum(1 for one in real if one.get("names_fix", 0) > 0.5)
        near = sum(1 for one in real if one.get("right_saving"))
        interval = sum(1 for one in real if is_interval(one))
        lines.append(f"\nThe first cause is on a line that the fix changes in {named} of {len(real)} pairs. The saving is "
                     f"within {NEAR} times the measured one in {near} of {len(real)}, in {interval} of them as an interval. Geometric mean of the speed-ups: "
                     f"{figures.geometric_mean(one['speedup'] for one in real):.2f}.")
    return lines
