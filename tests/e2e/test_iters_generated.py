# SPDX-License-Identifier: Apache-2.0
"""plumb iters on loops that a generator makes: what it put in is known, whatever the seed."""
import random

import pytest
from conftest import PLUMB, run_command
from plumbtest import answer
from steps_traces import STREAM, Rank, trace
from test_iters_explain import main_level

SEEDS = range(6)


class Stream:
    """Kernels one after the other on a stream; a name is one of ALPHABET."""

    def __init__(self, rank, stream=STREAM):
        self.rank, self.stream, self.now = rank, stream, 1000.0

    def kernel(self, name, length=10.0, gap=1.0):
        self.rank.number += 1
        self.rank.gpu("kernel", name, self.stream, self.now + gap, length)
        self.now += gap + length

    def round(self, names, interval=60.0):
        for i, name in enumerate(names):
            self.kernel(name, gap=1.0 if i else interval)


def pattern(chance, size=120, alphabet=60):
    """Names with no loop of their own within."""
    return [f"k{chance.randrange(alphabet)}" for _ in range(size)]


def disturbed(names, chance, share):
    """SHARE of the names replaced, doubled by another, or missing."""
    for name in names:
        odd = chance.random() < share
        kind = chance.randrange(3) if odd else 0
        if odd and kind == 1:
            yield f"k{chance.randrange(60)}"
        if not odd:
            yield name
        elif kind != 2:
            yield f"k{chance.randrange(60)}"


@pytest.mark.parametrize("seed", SEEDS)
def test_nested(tmp_path, seed):
    chance = random.Random(seed)
    layer, head, tail = pattern(chance, 9), pattern(chance, 7), pattern(chance, 11)
    layers, steps = chance.randrange(6, 14), chance.randrange(8, 20)
    stream = Stream(Rank())
    for _ in range(steps):
        stream.round([f"h{name}" for name in head] + layer * layers + [f"t{name}" for name in tail])
    (track,) = answer("iters", trace(tmp_path, [stream.rank]))["tracks"]
    outer, inner = track["levels"][:2]
    assert (outer["period_ops"], outer["occurrences"]) == (18 + 9 * layers, steps)
    assert outer["first_op"] == f"h{head[0]}"
    assert inner["period_ops"] == 9 and abs(inner["occurrences"] - steps * layers) <= steps


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("share", [0, 0.005, 0.01, 0.02])
def test_noise_and_insertions(tmp_path, seed, share):
    chance = random.Random(100 * seed + 1)
    names, stream = pattern(chance), Stream(Rank())
    for _ in range(30):
        stream.round(list(disturbed(names, chance, share)))
    level = main_level(trace(tmp_path, [stream.rank]))
    assert level["period_ops"] == len(names) and 29 <= level["occurrences"] <= 30
    assert level["coverage"] > 1 - 3 * share - 0.01
    assert not level["growing"]


@pytest.mark.parametrize("seed", SEEDS)
def test_drift(tmp_path, seed):
    """Every fifth round one kernel more is another one for good, and every round is slower."""
    chance = random.Random(seed)
    names, stream = pattern(chance), Stream(Rank())
    for number in range(50):
        if number % 5 == 4:
            names[chance.randrange(len(names))] = f"new{number}"
        stream.round(names, interval=60.0 + 5 * number)
    level = main_level(trace(tmp_path, [stream.rank]))
    assert (level["period_ops"], level["occurrences"]) == (120, 50)
    assert level["summary"]["slope_ns"] == pytest.approx(5000, rel=0.02)
    assert max(one["edits"] for one in level["iterations"]) <= 10


@pytest.mark.parametrize("seed", SEEDS)
def test_two_interleaved_streams(tmp_path, seed):
    """The main track's loop is found whatever runs beside it, and the roles are told."""
    chance = random.Random(seed)
    rank = Rank()
    main, beside = Stream(rank), Stream(rank, 21)
    names, others = pattern(chance, 100), [f"s{name}" for name in pattern(chance, 37)]
    for _ in range(25):
        main.round(names)
        beside.round(others, interval=300.0)
    tracks = answer("iters", trace(tmp_path, [rank]))["tracks"]
    assert [(track["stream"], track["role"]) for track in tracks] == [(STREAM, "main"), (21, "assist")]
    level = tracks[0]["levels"][0]
    assert (level["period_ops"], level["occurrences"], level["coverage"]) == (100, 25, 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_growing(tmp_path, seed):
    """Kernels are added in several places, of names that the rest has too."""
    chance = random.Random(seed)
    names, stream = pattern(chance, 150), Stream(Rank())
    more, where = chance.randrange(1, 4), sorted(chance.sample(range(20, 140), 2))
    for number in range(40):
        grown = []
        for i, name in enumerate(names):
            grown.append(name)
            if i in where:
                grown += [f"k{k}" for k in range(more)] * number
        stream.round(grown, interval=300.0)
    level = main_level(trace(tmp_path, [stream.rank]))
    assert level["growing"] and level["occurrences"] == 40 and level["first_op"] == names[0]
    assert level["summary"]["ops_slope"] == pytest.approx(2 * more)
    assert {odd["where"] for odd in level["odd"]} <= {"inserted"}
    assert sum(odd["count"] for odd in level["odd"]) == sum(2 * more * number for number in range(40))


@pytest.mark.parametrize("seed", SEEDS)
def test_no_loop_at_all(tmp_path, seed):
    chance = random.Random(seed)
    stream = Stream(Rank())
    stream.round(pattern(chance, 3000))
    path = trace(tmp_path, [stream.rank])
    (track,) = answer("iters", path)["tracks"]
    assert track["levels"] == []
    assert "no loop: the order of its kernels does not repeat" in run_command(PLUMB, "iters", path).stdout
    done = run_command(PLUMB, "iters", path, "--explain", "1")
    assert done.returncode == 3 and "there is no level 0 of iterations" in done.stderr
