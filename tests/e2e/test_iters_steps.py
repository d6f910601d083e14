# SPDX-License-Identifier: Apache-2.0
"""The program's own numbers of steps: iterations have them, and those of several ranks are matched by them."""
import csv
import io
import json

import pytest
from conftest import PLUMB, ROOT, run_command
from steps_traces import Rank, all_reduce, rank_files, trace


def iters(path, *arguments):
    done = run_command(PLUMB, "iters", path, "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def steps_of(path):
    (main,) = [track for track in iters(path)["tracks"] if track["role"] == "main"]
    return [one["step"] for one in main["levels"][0]["iterations"]]


def job(numbers, name="ProfilerStep#{}", slow=None, gap=30, kernels=12):
    """Ranks that do the steps of a job together and mark each by NAME; each records its own NUMBERS only. SLOW, a
    step and a rank: that comes 5 ms late to the collective."""
    ranks = [Rank(rank=number) for number in range(len(numbers))]
    for number in range(min(map(min, numbers)), max(map(max, numbers)) + 1):
        before = [len(rank.events) for rank in ranks]
        begins = [rank.now for rank in ranks]
        for rank in ranks:
            for i in range(kernels):
                rank.operator(f"aten::op{i}", f"kernel{i}", 30)
            rank.now += 5000 if (number, rank.rank) == slow else 0
        all_reduce(ranks)
        for rank, begin in zip(ranks, begins):
            rank.operator("aten::add_", "update", 30)
            rank.wait()
            if name:
                rank.host("user_annotation", name.format(number), begin, rank.now - begin - 1)
            rank.now += gap
        for rank, count, own in zip(ranks, before, numbers):
            if number not in own:
                del rank.events[count:]
    return ranks


def joined(folder, ranks, apart=0):
    """APART: how many µs each rank's clock is ahead of the one before."""
    for rank in ranks:
        for event in rank.events:
            event["ts"] += rank.rank * apart
    output = folder / "job.plumb"
    done = run_command(PLUMB, "import", *rank_files(folder, ranks), "-o", output)
    assert done.returncode == 0, done.stderr
    return output


@pytest.mark.parametrize("name", ["ProfilerStep#{}", "step {}", "iteration {}", "train/step={}", "[{}]"])
@pytest.mark.parametrize("apart", [0, 1e9])
def test_a_rank_that_was_recorded_later(tmp_path, name, apart):
    """Rank 1's recording begins two steps later. Whatever the clocks are, step 9 is step 9; by their places it would
    be set against step 11."""
    path = joined(tmp_path, job([range(3, 15), range(5, 17)], name, slow=(9, 1)), apart)
    found = iters(path)["ranks"]
    assert found["matched_by"] == "step"
    assert [one["step"] for one in found["iterations"]] == list(range(5, 15))
    for one in found["iterations"]:
        assert [rank["iteration"] for rank in one["ranks"]] == [one["step"] - 3, one["step"] - 5]
        assert (one["start_skew_ns"] is None) == bool(apart)
        assert one["straggler_rank"] == (1 if one["step"] == 9 else None)
    assert [(out["rank"], out["iteration"], out["step"]) for out in found["left_out"]] == \
        [(0, 0, 3), (0, 1, 4), (1, 10, 15), (1, 11, 16)]
    text = run_command(PLUMB, "iters", path).stdout
    assert "10 iterations of 2 ranks, matched by the program's step numbers" in text
    assert "left out: 2 iterations of rank 0 that other ranks do not have (0, 1)" in text
    assert "left out: 2 iterations of rank 1 that other ranks do not have (10, 11)" in text
    told = iters(path, "--explain", "6")["explain"]
    assert (told["iteration"], told["step"]) == (6, 9)
    assert (told["rows"][0]["cause"], told["rows"][0]["rank"]) == ("rank", 1)
    assert "iteration 6 (the program's step 9) of level 0" in run_command(PLUMB, "iters", path, "--explain", "6").stdout


def test_a_rank_without_a_step(tmp_path):
    """Rank 1 did not record step 6: what comes after is not shifted."""
    own = [number for number in range(2, 14) if number != 6]
    found = iters(joined(tmp_path, job([range(2, 14), own, range(2, 14)]), 1e9))["ranks"]
    assert (found["matched_by"], [one["step"] for one in found["iterations"]]) == ("step", own)
    assert [(out["rank"], out["step"]) for out in found["left_out"]] == [(0, 6), (2, 6)]


def test_ranks_with_no_step_in_common(tmp_path):
    path = joined(tmp_path, job([range(0, 8), range(8, 16)]), 1e9)
    found = iters(path)["ranks"]
    assert (found["matched_by"], found["iterations"]) == ("step", [])
    assert [out["step"] for out in found["left_out"]] == list(range(16))
    text = run_command(PLUMB, "iters", path).stdout
    assert "ranks: 0 iterations of 2 ranks" in text
    assert text.index("ranks: ") < text.index("track ")  # before the long lists


@pytest.mark.parametrize("name, numbered", [("ProfilerStep#{}", True), ("step {}", True), ("step", False), (None, False)])
def test_numbers_of_one_rank(tmp_path, name, numbered):
    path = trace(tmp_path, job([range(7, 19)], name))
    assert steps_of(path) == (list(range(7, 19)) if numbered else [None] * 12)
    head = [line.split() for line in run_command(PLUMB, "iters", path).stdout.splitlines() if "iteration " in line]
    assert any(line[:2] == ["step", "iteration"] for line in head) == numbered
    rows = list(csv.DictReader(io.StringIO(run_command(PLUMB, "iters", path, "--csv").stdout)))
    assert list(rows[0])[-2:] == ["step", "loop"]
    assert [row["step"] for row in rows if row["level"] == "0"] == (list(map(str, range(7, 19))) if numbered else [""] * 12)
    assert not any(row["step"] for row in rows if row["level"] != "0")


def test_the_host_runs_ahead_on_another_stream(tmp_path):
    """While the stream does its first step, another one is done with all of them: what that launches is not the
    iteration's."""
    rank = Rank()
    for number in range(10, 20):
        begin = rank.now
        for i in range(12):
            rank.operator(f"aten::op{i}", f"kernel{i}", 400)
            if i % 2:
                rank.gpu("kernel", f"side{i}", 9, rank.launch() + 1, 2)
        rank.host("user_annotation", f"ProfilerStep#{number}", begin, rank.now - begin)
        rank.now += 5
    assert steps_of(trace(tmp_path, [rank])) == list(range(10, 20))


def test_numbers_that_say_no_more(tmp_path):
    """From 0 on they are the iterations' own: one column is enough."""
    path = trace(tmp_path, job([range(0, 12)]))
    assert steps_of(path) == list(range(12))
    assert not [line for line in run_command(PLUMB, "iters", path).stdout.splitlines() if line.split()[:1] == ["step"]]


def test_very_many_steps(tmp_path):
    """More numbers than the fact about the process has room for."""
    assert steps_of(trace(tmp_path, job([range(1000, 1200)], kernels=6))) == list(range(1000, 1200))


def test_numbers_that_are_of_something_else(tmp_path):
    """layer 0 to layer 3 come again in each step, and an epoch has many steps: neither numbers them."""
    ranks = job([range(0, 12)], None)
    (rank,) = ranks
    begins = sorted(event["ts"] for event in rank.events if event["name"] == "aten::op0")
    for begin in begins:
        for layer in range(4):
            rank.host("user_annotation", f"layer {layer}", begin + layer * 33, 30)
    for epoch, begin in enumerate(begins[::6]):
        rank.host("user_annotation", f"epoch {epoch}", begin - 1, begins[6] - begins[0] - 10)
    assert steps_of(trace(tmp_path, ranks)) == [None] * 12


def test_steps_survive_the_way_out_and_back(tmp_path):
    path = joined(tmp_path, job([range(3, 15), range(5, 17)]), 1e9)
    out = tmp_path / "out.json"
    done = run_command(PLUMB, "export", path, "--format", "chrome", "-o", out)
    assert done.returncode == 0, done.stderr
    names = [event["name"] for event in json.loads(out.read_text())["traceEvents"] if event.get("ph") == "X"]
    assert sorted(int(name.partition("#")[2]) for name in names if name.startswith("ProfilerStep#")) == \
        sorted([*range(3, 15), *range(5, 17)])


# ---- a job on two H200s (tests/accuracy/rank_steps.py) ----

RECORDED = [ROOT / "tests" / "data" / "steps" / f"rank{rank}.json.gz" for rank in (0, 1)]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("recorded") / "job.plumb"
    done = run_command(PLUMB, "import", *RECORDED, "-o", path)
    assert done.returncode == 0, done.stderr
    return iters(path)


def test_ranks_that_began_to_record_two_steps_apart(recorded):
    ranks = recorded["ranks"]
    assert ranks["matched_by"] == "step"
    assert [one["step"] for one in ranks["iterations"]] == [6, 7, 8, 9, 10, 11]
    assert [[rank["iteration"] for rank in one["ranks"]] for one in ranks["iterations"]] == [[k, k - 2] for k in
                                                                                             range(2, 8)]
    assert [(one["rank"], one["step"]) for one in ranks["left_out"]] == [(0, 4), (0, 5), (1, 12), (1, 13)]
    edges = recorded["path"]["edges"]
    assert edges["collectives"] == edges["collectives_by_group"] == 18  # three a step


def test_a_wait_in_two_groups_at_once_counts_once(recorded):
    """Rank 1 sleeps for 20 ms before step 9. Rank 0 waits for it in the gradients and, on another stream, in the other
    group, of which one lies in the iteration after."""
    waiting = {one["step"]: [rank["waiting_ns"] / 1e6 for rank in one["ranks"]] for one in recorded["ranks"]["iterations"]}
    late, = [one for one in recorded["ranks"]["iterations"] if one["step"] == 9]
    assert late["straggler_rank"] == 1 and 19 < waiting[9][0] < 23
    assert all(ms < 4 for step, both in waiting.items() for ms in both if step != 9)
