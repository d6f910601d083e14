# SPDX-License-Identifier: Apache-2.0
"""What is known about the kernels of this folder: the table that score.py scores against.

A marker such as "chase: cause P" is a comment in the source, at the end of the line that it means. `marked` finds them.
"""
import os
import re
from dataclasses import dataclass

FOLDER = os.path.dirname(os.path.abspath(__file__))


@dataclass(frozen=True)
class Candidate:
    """What may make a stall, and can be taken away. `marker`: its lines. `opcode`: of its instruction (a pattern).

    `kinds`: what plumb may call it. `names`: the named causes that fit. A cause of the kind fetch has no place.
    `shared_line`: its lines have other code too, so that only its opcode is it."""
    marker: str
    kinds: tuple
    names: tuple = ()
    opcode: str = ""
    has_place: bool = True
    shared_line: bool = False


@dataclass(frozen=True)
class Case:
    """`kernel`: the template in SOURCE whose instances run the arms (`other`: of arms with other machine code).

    `arms`: which candidates each arm takes away; "again" is the base once more, and "placebo" the base with more work
    beside the slice. `questions`: the arms whose profile is asked for its cause. `classes`: of the stall.
    `reasons`: only stalls for these are meant. `spread`: over all instructions of the marked lines, of which the arms
    execute some more often than others, so that only their sum can be compared."""
    name: str
    source: str
    kernel: str
    candidates: dict
    arms: dict
    classes: tuple
    questions: tuple = ("base",)
    other: str = ""
    reasons: tuple = ()
    spread: bool = False
    meaning: str = ""

    @property
    def same_code(self):
        return not self.other

    def marker(self, what):
        return f"{self.name}: {what}"


def one(letter):
    return {"base": (), letter: (letter,), "again": (), "placebo": ()}


CASES = [
    Case("chase", "cases.cu", "chase", {
        "P": Candidate("chase: cause P", ("data",), ("pointer", "latency"), "LDG")},
        one("P"), ("memory",), meaning="each load needs the one before; the ring is in memory, or in L1"),
    Case("twoload", "cases.cu", "twoload", {
        "A": Candidate("twoload: cause A", ("data",), ("uncoalesced", "latency"), "LDG"),
        "B": Candidate("twoload: cause B", ("data",), ("uncoalesced", "latency"), "LDG")},
        {"base": (), "A": ("A",), "B": ("B",), "A+B": ("A", "B"), "again": (), "placebo": ()}, ("memory",),
        questions=("base", "A", "B"),
        meaning="two loads, one consumer, one scoreboard; each load misses or hits"),
    Case("strided", "cases.cu", "strided", {
        "G": Candidate("strided: cause G", ("data",), ("uncoalesced",), "LDG")},
        one("G"), ("memory",), meaning="32 sectors for each request, or 4"),
    Case("bank", "cases.cu", "bank", {
        "S": Candidate("bank: cause S", ("data", "throttle"), ("bank",), "LDS")},
        one("S"), ("shared", "throttle"), meaning="32 lanes in one bank of shared memory, or each in its own"),
    Case("imbalance", "cases.cu", "imbalance", {
        "W": Candidate("imbalance: cause W", ("barrier",), ("barrier", "imbalance"))},
        one("W"), ("barrier",), reasons=("barrier",), meaning="warp 0 has more work before the barrier, or none"),
    Case("atomic", "cases.cu", "atomic", {
        "X": Candidate("atomic: cause X", ("data",), ("contended", "atomic"), "ATOM")},
        one("X"), ("memory",), meaning="all threads exchange one word, or each its own"),
    Case("dfma", "cases.cu", "dfma_one", {
        "D": Candidate("dfma: cause D", ("data",), ("latency",), "DFMA")},
        one("D"), ("execution",), other="dfma_four", meaning="one chain of FP64 operations, or four"),
    Case("fetch", "cases.cu", "fetch", {
        "I": Candidate("fetch: cause I", ("fetch",), ("instruction", "fetch"), has_place=False)},
        one("I"), ("fetch",), reasons=("no_instructions",), spread=True,
        meaning="256 bodies of code in turn, or one again and again"),
    Case("constant", "cases.cu", "constant", {
        "C": Candidate("constant: cause C", ("data", "fetch"), ("constant",), "LDC")},
        one("C"), ("shared", "memory", "fetch"), meaning="each lane reads another constant, or all the same"),
    Case("spill", "cases.cu", "spill_few", {
        "L": Candidate("spill: cause L", ("data", "throttle"), ("spill",), "LDL|STL")},
        one("L"), ("memory", "throttle"), other="spill_many", meaning="96 values in 32 registers, or in 120"),
    Case("handover", "cases.cu", "handover", {
        "G": Candidate("handover: cause G", ("barrier",), ("barrier", "imbalance"), "LDG")},
        one("G"), ("barrier",), reasons=("barrier",),
        meaning="warp 0 brings data to shared memory for the others, from memory or from L1"),
    Case("tma", "hopper.cu", "tma", {
        "T": Candidate("tma: cause T", ("data", "sync"), ("async",), "UBLKCP")},
        one("T"), ("memory", "shared", "barrier"), meaning="bulk copies with an mbarrier, one or four under way"),
    Case("hgmma", "hopper.cu", "hgmma", {
        "H": Candidate("hgmma: cause H", ("data", "sync"), ("latency", "matrix"), "HGMMA", shared_line=True)},
        one("H"), ("execution", "shared", "barrier", "other"), meaning="a wait for 32 matrix products, or for one"),
]


@dataclass(frozen=True)
class Pair:
    """A kernel before and after a fix. The lines with the marker "NAME: fix" are what the fix changes."""
    name: str
    program: str
    sources: tuple
    kernels: tuple  # of the "before"
    fix: str
    headroom: bool = True


PAIRS = [
    Pair("ltimes", "pairs", ("pairs_loops.cu",), ("ltimes_before",), "tiles in shared memory"),
    Pair("noview", "pairs", ("pairs_loops.cu",), ("noview_before",), "tiles, and the sum in a register"),
    Pair("gemm", "pairs", ("pairs_loops.cu",), ("gemm_before",), "tiles in shared memory and registers"),
    Pair("mass3dea", "pairs", ("pairs_loops.cu",), ("mass_before",), "weights in shared memory, factors in registers"),
    Pair("pressure", "pairs", ("pairs_loops.cu",), ("pressure_before_1", "pressure_before_2"), "two loops in one"),
    Pair("energy", "pairs", ("pairs_loops.cu",), tuple(f"energy_before_{k}" for k in range(1, 7)), "six loops in one"),
    Pair("minibude", "pairs", ("pairs_apps.cu",), ("bude_before",), "atoms with their kind in shared memory"),
    Pair("kripke", "pairs", ("pairs_apps.cu",), ("sweep_before",), "faces in registers, a row of sources at once"),
    Pair("calls", "calls", ("calls_table.cu",), ("calls_before",), "an index instead of a binary search"),
    Pair("rmsnorm", "pairs", ("pairs_apps.cu",), ("norm_before",), "eight numbers for each load, conversion and store"),
    Pair("triad", "pairs", ("pairs_apps.cu",), ("triad_before",), "wider loads; memory is saturated", headroom=False),
    Pair("fma", "pairs", ("pairs_apps.cu",), ("fma_before",), "more chains; FP32 is saturated", headroom=False),
]

SM90, SM90A = "-gencode=arch=compute_90,code=sm_90", "-gencode=arch=compute_90a,code=sm_90a"
# What to build: program, sources, options.
PROGRAMS = {
    "cases": (("cases.cu",), (SM90,)),
    "hopper": (("hopper.cu",), (SM90A,)),
    "pairs": (("pairs_loops.cu", "pairs_apps.cu"), (SM90,)),
    "calls": (("calls.cu", "calls_table.cu"), (SM90, "-rdc=true")),
}


def marked(source, folder=FOLDER):
    """{marker: the lines of SOURCE that have it}."""
    found = {}
    with open(os.path.join(folder, source), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            comment = line.rpartition("// ")[2].strip() if "// " in line else ""
            for marker in comment.split(", "):
                if re.fullmatch(r"[a-z0-9]+: (cause [A-Z]|stalls|placebo|fix|hands on)", marker):
                    found.setdefault(marker, set()).add(number)
    return found


def case_named(name):
    return next(case for case in CASES if case.name == name)
