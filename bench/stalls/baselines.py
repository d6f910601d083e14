# SPDX-License-Identifier: Apache-2.0
"""Other ways to blame, to compare plumb with. Each gives {offset: share} of the stall at one instruction.

They are rules, not tools: none of the tools that use them ran. All of them choose among the edges that plumb found
(`waits_for` of `plumb why --annotate --json`), which are better than those of the published tools, so a baseline's
score is the most that its rule can reach, not what a user of that tool sees.

    raw         the stalled instruction itself, as a profiler without causes shows it
    nearest     the nearest edge before it in the text; if none is before it, the last one of its loop
    four        LEO's product of distance, efficiency, issue and match, as published. Efficiency is 1, as in the
                published tool, which has no counter for it
    classes     GPA's: stalls for memory are divided among loads, other stalls among the rest, by issued samples and
                distance; a stall at a synchronisation belongs to it
"""
LOADS = {"LDG", "LDL", "LD", "ATOMG", "ATOM", "TEX", "TLD", "SULD", "UBLKCP", "LDGSTS"}
SYNCS = {"BAR", "MEMBAR", "DEPBAR", "WARPSYNC", "SYNCS", "WARPGROUP", "ERRBAR"}
MEMORY = {"long_scoreboard", "lg_throttle", "tex_throttle", "drain"}
SYNC = {"barrier", "membar", "sleeping", "warpgroup_arrive", "gmma"}


def opcode(instruction):
    """"LDG" of "@!P0 LDG.E R2, [R4]"."""
    words = [word for word in (instruction or "").split() if not word.startswith("@")]
    return words[0].split(".")[0].rstrip(";") if words else ""


def sources(listing, function, at):
    """Offsets of FUNCTION that the instruction at AT may wait for, ascending. LISTING: {offset: its entry}."""
    return sorted({edge["offset"] for edge in listing.get(at, {}).get("waits_for", ()) if edge["function"] == function})


def opcodes(listing, offsets):
    return {at: opcode(listing.get(at, {}).get("instruction")) for at in offsets}


def distance(source, at, end):
    """In instructions, along the text; from after AT it goes around, as a loop does."""
    steps = (at - source) // 16
    return max(1, steps if steps > 0 else steps + end // 16)


def divided(weights, at):
    total = sum(weights.values())
    if not weights:
        return {at: 1.0}
    if total <= 0:
        return {source: 1 / len(weights) for source in weights}
    return {source: weight / total for source, weight in weights.items() if weight}


def raw(at, **_):
    return {at: 1.0}


def nearest(at, listing, function, **_):
    found = sources(listing, function.name, at)
    before = [source for source in found if source < at]
    return {before[-1] if before else found[-1]: 1.0} if found else {at: 1.0}


def stalls_by_class(reasons):
    found = {"memory": 0, "sync": 0, "execution": 0}
    for reason, count in reasons.items():
        found["memory" if reason in MEMORY else "sync" if reason in SYNC else "execution"] += count
    return found


def four(at, listing, function, **_):
    found = sources(listing, function.name, at)
    if not found:
        return {at: 1.0}
    by_offset = opcodes(listing, [*found, at])
    steps = {source: distance(source, at, len(function.text)) for source in found}
    issued = {source: max(1, function.issued_at(source)) for source in found}
    classes = stalls_by_class(function.reasons_at(at))
    every = sum(classes.values()) or 1

    def edge_class(source):
        if by_offset.get(source) in LOADS:
            return "memory"
        return "sync" if by_offset.get(source) in SYNCS or by_offset.get(at) in SYNCS else "execution"
    return divided({source: min(steps.values()) / steps[source] * issued[source] / sum(issued.values())
                    * classes[edge_class(source)] / every for source in found}, at)


def classes(at, listing, function, **_):
    found = sources(listing, function.name, at)
    by_offset = opcodes(listing, [*found, at])
    stalls = stalls_by_class(function.reasons_at(at))
    every, blame = sum(stalls.values()) or 1, {}

    def give(shares, part):
        for source, share in shares.items():
            blame[source] = blame.get(source, 0.0) + share * part
    for name, loads in (("memory", True), ("execution", False)):
        weights = {source: max(1, function.issued_at(source)) / distance(source, at, len(function.text))
                   for source in found if (by_offset.get(source) in LOADS) == loads}
        give(divided(weights, at), stalls[name] / every)
    previous = at if by_offset.get(at) in SYNCS or at < 16 else at - 16
    give({previous: 1.0}, stalls["sync"] / every)
    return {source: share for source, share in blame.items() if share > 0} or {at: 1.0}


BASELINES = {"raw": raw, "nearest": nearest, "four": four, "classes": classes}
