# SPDX-License-Identifier: Apache-2.0
"""What each candidate really does: a stall with it and without it, for each execution of the stalled line.

A run is {arm: Arm}. The stall of an instruction is the number of samples in which a warp waited at it and no warp of its
scheduler issued. The effect of a candidate is what the stall loses when the candidate is taken away; with several
candidates it is their Shapley value, over all combinations that were measured.

All estimates are medians over the runs of differences within a run, so that one bad run does not move them. Their
intervals are order statistics, which assume nothing about the distribution.
"""
from dataclasses import dataclass

import figures

LEAST = 100  # samples of an instruction, median of the runs, below which it is not scored
LOST = 1 / 3  # of the samples that a launch should have, below which it counts as lost


@dataclass
class Arm:
    function: object  # recorded.Function
    executions: float
    ms: float
    path: str  # of the profile
    waiting: dict  # {offset: samples}, of the stalls that are meant

    @property
    def all_samples(self):
        return sum(self.function.samples.values())


def drop_lost(recordings):
    """Takes the launches that lost their samples out of RECORDINGS, {case: runs}. [(case, arm, part that it has)] of them.

    CUPTI gives none, or few, for some launches. A launch should have as many as the median of its arm's, or less if its
    time is shorter. A longer time says nothing: that of a first launch contains the loading of its module."""
    lost = []
    for case, runs in recordings.items():
        arms = {arm for run in runs for arm in run}
        for arm in sorted(arms):
            mine = [run[arm] for run in runs if arm in run]
            samples, ms = figures.median(one.all_samples for one in mine), figures.median(one.ms for one in mine)
            for run in runs:
                if arm not in run:
                    continue
                expected = samples * (min(1, run[arm].ms / ms) if ms else 1)
                if run[arm].all_samples < LOST * expected:
                    lost.append((case, arm, run[arm].all_samples / expected))
                    del run[arm]
    return lost


class Question:
    """One profile of a case, and what the other arms say about it."""

    def __init__(self, case, arm, runs, lines):
        self.case, self.arm = case, arm
        self.lines = lines  # {marker: line numbers} of the case's source
        self.removed = frozenset(case.arms[arm])
        self.left = [name for name in case.candidates if name not in self.removed]
        self.by_removed = {frozenset(taken): name for name, taken in case.arms.items()
                           if name not in ("again", "placebo")}
        needed = {arm, *self.by_removed.values()}
        self.runs = [run for run in runs if needed <= set(run)]

    def stall_lines(self):
        return self.lines.get(self.case.marker("stalls"), set())

    def median_waiting(self):
        """{offset: samples, median of the runs}."""
        offsets = {offset for run in self.runs for offset in run[self.arm].waiting}
        return {offset: figures.median(run[self.arm].waiting.get(offset, 0) for run in self.runs)
                for offset in sorted(offsets)}

    def scored_offsets(self, most=40):
        found = self.median_waiting()
        return sorted((offset for offset, count in found.items() if count >= LEAST), key=lambda o: -found[o])[:most]

    def primary(self):
        """What is asked about: the hottest instruction of the lines that are known to stall, as a list of one; all of
        them if the case is spread. []: they have not enough samples."""
        if not self.runs:
            return []
        function, found = self.runs[0][self.arm].function, self.median_waiting()
        there = [offset for offset in found if self.is_stall_line(function, offset)]
        if self.case.spread:
            return sorted(there) if sum(found[offset] for offset in there) >= LEAST else []
        return [offset for offset in self.scored_offsets(10 ** 6) if offset in there][:1]

    def is_stall_line(self, function, offset):
        return any(file == self.case.source and line in self.stall_lines()
                   for file, line in function.places_at(offset))

    def values(self, offset):
        """A run each: {arm: samples for each execution}. Arms with other machine code have other offsets, so there it is
        the sum over the lines that are known to stall."""
        whole = self.case.spread or not self.case.same_code

        def one(arm):
            if not whole:
                return arm.waiting.get(offset, 0) / arm.executions
            return sum(count for at, count in arm.waiting.items()
                       if self.is_stall_line(arm.function, at)) / arm.executions
        return [{name: one(arm) for name, arm in run.items()} for run in self.runs]

    def shapley(self, values):
        """[{candidate: effect}] of VALUES, which are runs."""
        def of_run(run):
            return figures.shapley(self.left, lambda taken: run[self.arm] - run[self.by_removed[self.removed | taken]])
        return [of_run(run) for run in values]

    def effects(self, offset):
        """{candidate: (effect, low, high)}; those that the arm took away have no effect."""
        by_run, found = self.shapley(self.values(offset)), {}
        for name in self.left:
            mine = [run[name] for run in by_run]
            found[name] = (figures.median(mine), *figures.median_interval(mine))
        return {**found, **{name: (0.0, 0.0, 0.0) for name in self.removed}}

    def control(self, offset, arm):
        """(change, low, high) of the stall in the arm "again" or "placebo", as a part of it; None: not measured. These arms are
        the base again, so they say nothing about another question."""
        if self.removed:
            return None
        changes = [(run[arm] - run[self.arm]) / run[self.arm] for run in self.values(offset)
                   if arm in run and run[self.arm] > 0]
        if not changes:
            return None
        return (figures.median(changes), *figures.median_interval(changes))


def time_and_samples(question):
    """[(time, samples)] of the arms that take something away, both as a part of the question's arm: they should be alike,
    because the samples of a kernel are its time."""
    def both(name):
        arms = [run[name] for run in question.runs]
        return figures.median(arm.ms for arm in arms), figures.median(arm.all_samples for arm in arms)
    time, samples = both(question.arm)
    others = [both(name) for taken, name in question.by_removed.items() if taken > question.removed]
    return [(other_time / time, other_samples / samples) for other_time, other_samples in others if time and samples]


def works(effects):
    """The candidates whose interval is above 0."""
    return {name for name, (_, low, _) in effects.items() if low > 0}


def true_causes(effects):
    """Those that count as the right answer: the greatest effect, and what is within a tenth of it."""
    shares = figures.normalised({name: effects[name][0] for name in works(effects)})
    most = max(shares.values(), default=0)
    return {name for name, share in shares.items() if share >= most - 0.1}
