# SPDX-License-Identifier: Apache-2.0
"""The statistics of score.py, on plain numbers."""
import itertools
import math
import random
import statistics


def shapley(names, value):
    """How much each of NAMES contributes to VALUE(all of them), where VALUE takes a frozenset and VALUE of none is 0.

    The mean of what a name adds, over all orders in which the names may come."""
    count, shares = len(names), {}
    for name in names:
        others = [other for other in names if other != name]
        total = 0.0
        for size in range(count):
            weight = math.factorial(size) * math.factorial(count - size - 1) / math.factorial(count)
            for some in itertools.combinations(others, size):
                total += weight * (value(frozenset(some) | {name}) - value(frozenset(some)))
        shares[name] = total
    return shares


def normalised(effects):
    """Effects as shares of 1: what is negative is 0. {} if none is positive."""
    total = sum(max(0.0, effect) for effect in effects.values())
    return {name: max(0.0, effect) / total for name, effect in effects.items()} if total > 0 else {}


def total_variation(a, b):
    """Half the sum of the differences of two {name: share}: 0 if they are equal, 1 if they have nothing in common."""
    return sum(abs(a.get(name, 0.0) - b.get(name, 0.0)) for name in {*a, *b}) / 2


def quantile(values, part):
    ordered = sorted(values)
    at = part * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def bootstrap(runs, estimate, draws=1000, part=0.95, seed=1):
    """(low, high): the interval that has PART of ESTIMATE(drawn runs), when RUNS are drawn with replacement."""
    if len(runs) < 2:
        return -math.inf, math.inf
    source = random.Random(seed)
    results = [estimate([runs[source.randrange(len(runs))] for _ in runs]) for _ in range(draws)]
    return quantile(results, (1 - part) / 2), quantile(results, (1 + part) / 2)


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else math.nan


def median(values):
    values = list(values)
    return statistics.median(values) if values else math.nan


def median_interval(values, part=0.95):
    """(low, high): the order statistics that have the median between them with a probability of PART or more, whatever the
    distribution. It takes six values at least for 0.95."""
    ordered, outside, cut = sorted(values), 0.0, 0
    while True:
        outside += 2 * math.comb(len(ordered), cut) / 2 ** len(ordered)
        if outside > 1 - part:
            break
        cut += 1
    return (ordered[cut - 1], ordered[-cut]) if cut else (-math.inf, math.inf)


def geometric_mean(values):
    return math.exp(mean(math.log(value) for value in values))


def conservation(stalls):
    """The greatest difference between a stall's samples and those of its causes, in samples. STALLS as why --json has
    them."""
    return max((abs(stall["samples"] - sum(cause["samples"] for cause in stall["causes"])) for stall in stalls), default=0)
