# SPDX-License-Identifier: Apache-2.0
"""Which candidates an answer blames, and whether that is right."""
from dataclasses import dataclass, field
import re

import recorded


@dataclass
class Blame:
    """Of one stall: {candidate, "placebo", "other" or "unknown": share}. The rest is about the first cause."""
    shares: dict = field(default_factory=dict)
    top: str = ""
    opcode: str = ""
    kind: str = ""
    stall_class: str = ""
    named: str = ""
    ambiguous: tuple = ()  # candidates that the answer cannot tell apart from the first cause
    in_chain: tuple = ()  # candidates that its chain passes


def candidate_at(question, places, kind=None, code=""):
    """The name of the candidate, or "placebo" or "other", of code at PLACES: its line, and those that it is inlined in.
    CODE: its opcode."""
    case = question.case
    here = {line for file, line in places if file == case.source}
    for name, candidate in case.candidates.items():
        if candidate.shared_line and not re.match(candidate.opcode, code):
            continue
        if here & question.lines.get(candidate.marker, set()) if candidate.has_place else kind in candidate.kinds:
            return name
    return "placebo" if here & question.lines.get(case.marker("placebo"), set()) else "other"


def of_plumb(question, kernel, offsets):
    """What the answer of `plumb why` blames for the stalls at OFFSETS. None: it does not have them."""
    reasons = question.case.reasons
    stalls = [stall for stall in kernel["stalls"] if stall["offset"] in offsets and stall["samples"]
              and stall["function"] == kernel["mangled"] and stall["causes"]
              and (not reasons or recorded.plain(stall["reason"]) in reasons)]
    if not stalls:
        return None
    blame, all_samples, weights = Blame(), sum(stall["samples"] for stall in stalls), {}
    for stall in stalls:
        for cause in stall["causes"]:
            name = "unknown" if cause["kind"] == "unknown" else candidate_at(
                question, recorded.places_of(cause), cause["kind"], opcode(cause.get("instruction")))
            blame.shares[name] = blame.shares.get(name, 0.0) + cause["samples"] / all_samples
            key = (cause["kind"], cause.get("function"), cause["offset"])
            weights[key] = weights.get(key, 0) + cause["samples"]
    first = max(weights, key=weights.get)
    stall, cause = max(((stall, cause) for stall in stalls for cause in stall["causes"]
                        if (cause["kind"], cause.get("function"), cause["offset"]) == first),
                       key=lambda both: both[1]["samples"])

    def named(one):
        return candidate_at(question, recorded.places_of(one), cause["kind"], opcode(one.get("instruction")))
    blame.top, blame.kind, blame.stall_class = named(cause), cause["kind"], stall["class"]
    blame.opcode, blame.named = opcode(cause.get("instruction")), f"{cause.get('id') or ''} {cause['name'] or ''}".strip()
    blame.ambiguous = tuple(named(stall["causes"][other]) for other in cause["ambiguous_with"])
    blame.in_chain = tuple(named(hop) for hop in cause["chain"])
    return blame


def of_baseline(question, function, shares):
    blame = Blame()
    for offset, share in shares.items():
        name = candidate_at(question, function.places_at(offset), code=function.opcode_at(offset))
        blame.shares[name] = blame.shares.get(name, 0.0) + share
    first = max(shares, key=shares.get)
    blame.opcode = function.opcode_at(first)
    blame.top = candidate_at(question, function.places_at(first), code=blame.opcode)
    return blame


def opcode(instruction):
    words = [word for word in (instruction or "").split() if not word.startswith("@")]
    return words[0].split(".")[0].rstrip(";") if words else ""


def right(question, blame, truth):
    """{"line", "instruction", "class", "name": is it right?} of the first cause."""
    candidate = question.case.candidates.get(blame.top)
    line = blame.top in truth
    return {
        "line": line,
        "instruction": line and bool(re.match(candidate.opcode or ".*", blame.opcode) or not candidate.has_place),
        "class": line and blame.kind in candidate.kinds and blame.stall_class in question.case.classes,
        "name": line and any(name in blame.named.lower() for name in candidate.names),
    }
