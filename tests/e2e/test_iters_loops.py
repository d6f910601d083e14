# SPDX-License-Identifier: Apache-2.0
"""plumb iters on programs that are more than one loop: what comes before it, several of them, some that take turns. Each
program is made here, so it is known where loops begin and end, and what a round is."""
import random

import pytest
from conftest import PLUMB, run_command
from plumbtest import answer
from steps_traces import STREAM, Rank, trace


class Program:
    """Kernels one after the other; TRUTH has (period, rounds, start, end) of each loop, in ns since the first kernel."""

    def __init__(self, seed, stream=STREAM, rank=None):
        self.chance, self.rank, self.stream = random.Random(seed), rank or Rank(), stream
        self.now, self.first, self.truth, self.steps = 1000.0, None, [], 0

    def kernel(self, name, length=10.0, gap=1.0):
        self.rank.number += 1
        self.now += gap
        self.first = self.now if self.first is None else self.first
        self.rank.gpu("kernel", name, self.stream, self.now, length)
        self.now += length

    def copy(self):
        self.rank.number += 1
        self.rank.gpu("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", self.stream, self.now + 1, 5.0, bytes=1 << 20)
        self.now += 6

    def names(self, prefix, size, alphabet=40):
        """SIZE names with no loop within."""
        return [f"{prefix}{self.chance.randrange(alphabet)}" for _ in range(size)]

    def once(self, names, length=10.0):
        for name in names:
            self.kernel(name, length)

    def loop(self, rounds, length=10.0, interval=60.0, copies=False, marks=None, known=True):
        """ROUNDS is a list of lists of names. MARKS is the name of a range around each."""
        start = None
        for names in rounds:
            if copies:
                self.copy()
            if marks:
                self.steps += 1
                self.rank.host("user_annotation", f"{marks}{self.steps}", self.now + interval / 2,
                               len(names) * (length + 1) + interval / 2 - 2)
            for i, name in enumerate(names):
                self.kernel(name, length, gap=1.0 if i else interval)
                start = self.now - length if start is None else start
        if known:
            self.truth.append((len(rounds[0]), len(rounds), self.since(start), self.since(self.now)))

    def since(self, us):
        return round((us - self.first) * 1000)

    def track(self, folder):
        tracks = answer("iters", trace(folder, [self.rank]))["tracks"]
        return next(one for one in tracks if one["stream"] == self.stream)


def first_ns(track):
    return min(one["start_ns"] for one in track["outside"] + [s for loop in track["loops"] for s in loop["stretches"]])


def check(track, truth, slack=1):
    """The loops are those of TRUTH, up to SLACK rounds at either end."""
    found, base = track["loops"], first_ns(track)
    assert [loop["period_ops"] for loop in found] == [one[0] for one in truth]
    for loop, (period, rounds, start, end) in zip(found, truth):
        length = (end - start) / rounds
        assert abs(loop["occurrences"] - rounds) <= slack
        assert abs(loop["start_ns"] - base - start) <= slack * length * 1.02
        assert abs(loop["end_ns"] - base - end) <= slack * length * 1.02
    # Stretches and what is outside have each kernel once, and are in order.
    parts = sorted([s for loop in found for s in loop["stretches"]] + track["outside"], key=lambda one: one["start_ns"])
    assert sum(part["kernels"] for part in parts) == track["ops"]
    assert all(a["end_ns"] <= b["start_ns"] for a, b in zip(parts, parts[1:]))
    for loop in found:
        assert sum(s["iterations"] for s in loop["stretches"]) == loop["occurrences"]
        assert loop["time_ns"] == sum(s["end_ns"] - s["start_ns"] for s in loop["stretches"])
        assert (loop["levels"] == []) == loop["main"]
    main = [loop for loop in found if loop["main"]]
    assert len(main) == 1
    assert (track["levels"][0]["period_ops"], track["levels"][0]["occurrences"]) == (
        main[0]["period_ops"], main[0]["occurrences"])


def tune(program, configurations=60, repeats=100, length=10.0):
    """Each kernel is tried again and again, after a memory fill, as autotuners do."""
    for number in range(configurations):
        for _ in range(repeats):
            program.kernel("fill", length)
            program.kernel(f"candidate{number}", length)


def training_step(program, layers=8):
    """Forward and backward of some layers, then an optimizer."""
    forward, backward = program.names("f", 9), program.names("b", 14)
    return program.names("head", 6) + forward * layers + program.names("loss", 5) + backward * layers + ["adam"] * 7


@pytest.mark.parametrize("steps", [8, 20, 40, 400])
def test_tuning_then_steps(tmp_path, steps):
    program = Program(steps)
    program.once(program.names("init", 50))
    tune(program)
    program.loop([training_step(program)] * steps)
    track = program.track(tmp_path)
    check(track, program.truth)
    (before,) = [one for one in track["outside"] if one["where"] == "before"]
    assert (before["name"], before["period_ops"]) == ("fill", 2)
    assert before["kernels"] == pytest.approx(12050, abs=300)
    text = run_command(PLUMB, "iters", trace(tmp_path, [program.rank])).stdout
    assert "before the first loop: 12,0" in text


def test_long_tuning_of_one_kernel(tmp_path):
    """It takes more time than the loop, and is a loop itself, of two names."""
    program = Program(1)
    tune(program, configurations=1, repeats=6000)
    program.loop([training_step(program)] * 10)
    track = program.track(tmp_path)
    assert [(loop["period_ops"], loop["main"]) for loop in track["loops"]] == [(2, False), (program.truth[0][0], True)]
    assert track["loops"][1]["occurrences"] in (9, 10)


def test_a_loop_of_two_kernels_after_a_start_up(tmp_path):
    """What comes last is no tuning, however few its names."""
    program = Program(2)
    program.loop([program.names("init", 20)] * 6)
    program.loop([["stencil", "swap"]] * 3000)
    track = program.track(tmp_path)
    assert track["loops"][-1]["main"] and track["loops"][-1]["period_ops"] == 2
    assert track["levels"][0]["occurrences"] == 3000


@pytest.mark.parametrize("layers, rounds", [(12, 20), (28, 20), (40, 100), (80, 60), (28, 300)])
@pytest.mark.parametrize("shared", [False, True])
def test_prefill_then_decode(tmp_path, layers, rounds, shared):
    """The layers of the prefill are no iterations, although they take more time than all decoding."""
    program = Program(layers + rounds)
    layer = program.names("layer", 12, 30)
    other = layer[:4] + program.names("p", 4, 30) + layer[8:] if shared else program.names("p", 12, 30)
    head, tail = program.names("head", 9), program.names("tail", 7)
    program.once(program.names("init", 30))
    program.once(head + other * layers + tail, length=10.0 * rounds)
    program.loop([head + layer * layers + tail] * rounds, length=5.0, interval=400.0)
    track = program.track(tmp_path)
    period, count, start, end = program.truth[0]
    level = track["levels"][0]
    assert level["period_ops"] == period and abs(level["occurrences"] - count) <= 1
    assert abs(level["iterations"][0]["start_ns"] - first_ns(track) - start) <= (end - start) / count * 1.02
    assert track["levels"][1]["period_ops"] == 12
    assert abs(track["levels"][1]["occurrences"] - layers * count) <= 2 * layers


@pytest.mark.parametrize("evaluation", [15, 100])
def test_training_then_evaluation(tmp_path, evaluation):
    program = Program(evaluation)
    step = training_step(program)
    program.once(program.names("init", 30))
    program.loop([step] * 30)
    program.once(program.names("save", 11))
    program.loop([step[:78] + program.names("metric", 9)] * evaluation)
    track = program.track(tmp_path)
    check(track, program.truth)
    assert [loop["main"] for loop in track["loops"]] == [evaluation < 50, evaluation > 50]
    assert [one["where"] for one in track["outside"]][:2] == ["before", "between"]
    for levels in [track["levels"]] + [loop["levels"] for loop in track["loops"] if not loop["main"]]:
        assert (levels[0]["coverage"], levels[0]["match"]) == (1, 1)
        assert {odd["where"] for odd in levels[0]["odd"]} <= {"before", "between", "after"}


@pytest.mark.parametrize("epochs", [2, 3, 6])
@pytest.mark.parametrize("odd", [0, 3])
def test_epochs(tmp_path, epochs, odd):
    """Steps of training and of evaluation take turns: each is a loop, in as many parts as there are epochs."""
    program = Program(epochs)
    train = training_step(program)
    evaluate = train[:78] + program.names("metric", 9)
    between = program.names("log", odd)
    for epoch in range(epochs):
        program.loop([train] * 20, copies=True, known=False)
        program.loop([evaluate] * 10, copies=True, known=False)
        program.once(between)
    track = program.track(tmp_path)
    found = track["loops"]
    assert [loop["period_ops"] for loop in found] == [len(train), len(evaluate)]
    for loop, steps in zip(found, (20, 10)):
        assert abs(loop["occurrences"] - steps * epochs) <= epochs
        assert len(loop["stretches"]) == epochs
        assert all(abs(part["iterations"] - steps) <= 1 for part in loop["stretches"])
    assert track["cycles"] == epochs
    text = run_command(PLUMB, "iters", trace(tmp_path, [program.rank])).stdout
    assert f"the loops take turns: {epochs} times" in text


@pytest.mark.parametrize("marks", ["ProfilerStep#", "step ", None])
def test_epochs_without_evaluation(tmp_path, marks):
    """Nothing but marks tells an epoch, which ends with a long checkpoint, from a step, which ends with an optimizer."""
    program = Program(5)
    train, save = training_step(program), program.names("save", 700)
    for epoch in range(4):
        program.loop([train] * 15, marks=marks, known=False)
        program.once(save)
    track = program.track(tmp_path)
    (loop,) = track["loops"]
    if not marks:
        assert loop["period_ops"] == 15 * len(train) + len(save)
        assert track["levels"][1]["period_ops"] == len(train)
        return
    assert (loop["period_ops"], len(loop["stretches"])) == (len(train), 4)
    assert abs(loop["occurrences"] - 60) <= 4


@pytest.mark.parametrize("copies", [False, True])
def test_marks_of_epochs(tmp_path, copies):
    """Where the program marks rounds of the outer loop, it is the loop, although those within get data."""
    program = Program(6)
    train = training_step(program)
    for epoch in range(5):
        begin = program.now
        program.loop([train] * 12, copies=copies, known=False)
        program.loop([train[:78] + ["metric"] * 5] * 6, copies=copies, known=False)
        program.rank.host("user_annotation", f"epoch {epoch}", begin, program.now - begin - 1)
    track = program.track(tmp_path)
    assert [loop["period_ops"] for loop in track["loops"]] == [12 * len(train) + 6 * 83]
    assert track["levels"][1]["period_ops"] == len(train)


def test_warm_up_with_other_kernels(tmp_path):
    """The first two steps try algorithms, and have kernels that no later step has."""
    program = Program(7)
    step = training_step(program)
    for number in range(2):
        for name in step:
            if name.startswith("f"):
                program.once([f"try{number}_{algorithm}" for algorithm in range(6)])
            program.kernel(name)
    program.loop([step] * 25)
    track = program.track(tmp_path)
    check(track, program.truth, slack=2)
    assert track["outside"][0]["kernels"] > 2 * len(step)


@pytest.mark.parametrize("parts", [2, 4, 8])
def test_gradient_accumulation(tmp_path, parts):
    """An iteration is a step of the optimizer; what comes several times in it is a level."""
    program = Program(parts)
    small = program.names("f", 30) + program.names("b", 50)
    program.once(program.names("init", 40))
    program.loop([small * parts + ["adam"] * 5 + program.names("clip", 9)] * 12, copies=True)
    track = program.track(tmp_path)
    check(track, program.truth)
    assert 80 in [level["period_ops"] for level in track["levels"][1:]]


@pytest.mark.parametrize("seed", range(8))
def test_a_changing_sequence_length(tmp_path, seed):
    """A quarter of the kernels have another name for each of three lengths, in no order."""
    program = Program(seed)
    step = training_step(program, layers=4)
    places = program.chance.sample(range(len(step)), len(step) // 4)
    rounds = []
    for _ in range(40):
        names, length = list(step), program.chance.choices(range(3), [4, 1, 1])[0]
        for place in places if length else []:
            names[place] += f"_{length}"
        rounds.append(names)
    program.once(program.names("init", 100))
    program.loop(rounds)
    check(program.track(tmp_path), program.truth, slack=3)


@pytest.mark.parametrize("seed", range(4))
def test_noise_after_tuning(tmp_path, seed):
    program = Program(seed)
    tune(program, 30)
    step = training_step(program)
    rounds = [[f"x{program.chance.randrange(40)}" if program.chance.random() < 0.005 else name for name in step]
              for _ in range(30)]
    program.loop(rounds)
    check(program.track(tmp_path), program.truth)


@pytest.mark.parametrize("eager", [0, 1, 4])
def test_graph_replays(tmp_path, eager):
    """As a jitted step: kernels are compiled and tried, then one graph is replayed; a few eager kernels in between."""
    program = Program(eager)
    program.once(program.names("init", 60))
    for number in range(250):
        for _ in range(10):
            program.once([f"gemm{number}", "check_redzone"])
    graph = program.names("fusion", 84)
    rounds = [graph + [f"eager{program.chance.randrange(9)}" for _ in range(program.chance.randrange(eager + 1))]
              for _ in range(200)]
    program.loop([graph] + rounds, interval=20.0)
    track = program.track(tmp_path)
    period = track["levels"][0]["period_ops"]
    assert 84 <= period <= 84 + eager // 2, "as many as most rounds have"
    check(track, [(period, *one[1:]) for one in program.truth])


def test_several_streams(tmp_path):
    program = Program(3)
    beside = Program(4, stream=21, rank=program.rank)
    tune(program, 20)
    beside.now = program.now
    step, other = training_step(program), program.names("comm", 40)
    program.loop([step] * 20)
    beside.loop([other] * 20)
    check(program.track(tmp_path), program.truth)


@pytest.mark.parametrize("seed", range(6))
def test_short_programs_have_no_loop(tmp_path, seed):
    """Memory is set, a few things are done twice, a model runs once."""
    program = Program(seed)
    program.once(["fill"] * 30 + program.names("init", 60))
    twice = program.names("twice", 10)
    program.once(twice + program.names("a", 20) + twice)
    program.once(program.names("model", 90) + program.names("block", 9) * 3 + program.names("end", 40))
    track = program.track(tmp_path)
    assert (track["loops"], track["levels"], track["cycles"]) == ([], [], None)
    assert "no loop: the order of its kernels does not repeat" in run_command(
        PLUMB, "iters", trace(tmp_path, [program.rank])).stdout


def test_one_loop_at_a_time(tmp_path):
    """--loop shows another one in the place of the main loop; --csv has all loops, or one."""
    program = Program(9)
    step = training_step(program)
    program.loop([step] * 30)
    program.loop([program.names("e", 60)] * 20, interval=600.0)
    path = trace(tmp_path, [program.rank])
    (track,) = answer("iters", path)["tracks"]
    assert [loop["main"] for loop in track["loops"]] == [True, False]
    (second,) = answer("iters", path, "--loop", "2")["tracks"]
    assert second["levels"][0]["period_ops"] == 60
    assert [loop["main"] for loop in second["loops"]] == [False, True]
    first_level = track["levels"][0]["iterations"][0]
    assert [level["iterations"][0]["start_ns"] for level in second["loops"][0]["levels"]][0] == first_level["start_ns"]
    assert "marked" not in second["loops"][0]["levels"][0]
    rows = [line.split(",") for line in run_command(PLUMB, "iters", path, "--csv").stdout.splitlines()]
    column = rows[0].index("loop")
    assert {row[column] for row in rows[1:]} == {"1", "2"}
    rows = [line.split(",") for line in run_command(PLUMB, "iters", path, "--csv", "--loop", "2").stdout.splitlines()]
    assert {row[column] for row in rows[1:]} == {"2"} and len(rows) > 19
    text = run_command(PLUMB, "iters", path).stdout
    assert text.index("loop 1 of 2, shown in full") < text.index("loop 2 of 2: ")
    assert text.count("-bound:") >= 2, "each has its verdict"
    explained = answer("iters", path, "--explain", "3", "--loop", "2")["explain"]
    assert explained["median_ns"] < 2_000_000
    done = run_command(PLUMB, "iters", path, "--loop", "3")
    assert done.returncode == 3 and "there is no loop 3" in done.stderr
    assert run_command(PLUMB, "iters", path, "--loop", "0").returncode == 1
