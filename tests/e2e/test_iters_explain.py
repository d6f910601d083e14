# SPDX-License-Identifier: Apache-2.0
"""plumb iters: what filled the intervals, and --explain: one odd step of a known cause in a loop that is else the same."""
import pytest
from conftest import PLUMB, run_command
from importing import TRACES, shared
from plumbtest import answer
from steps_traces import Rank, all_reduce, rank_files, step, trace


def main_level(path):
    return [track for track in answer("iters", path)["tracks"] if track["role"] == "main"][0]["levels"][0]


def explain(path, number, *options):
    told = answer("iters", path, "--explain", str(number), *options)["explain"]
    text = run_command(PLUMB, "iters", path, "--explain", str(number), *options).stdout
    assert all(row["text"] in text for row in told["rows"][:12])
    return told


def loop(folder, odd=7, count=14, **different):
    """COUNT steps, of which ODD is different; the number that its iteration has."""
    rank = Rank()
    for number in range(count):
        step(rank, **(different if number == odd else {}))
    path = trace(folder, [rank])
    assert main_level(path)["occurrences"] == count
    return path


# ---- what filled the intervals ----


def test_data_loader_of_a_published_trace():
    trace_file = shared("kineto/k01_v100_resnet50_w0_6steps.json.gz")
    level = main_level(trace_file)
    filled = level["summary"]["filled"]
    assert level["summary"]["filled_what"] == "intervals"
    assert filled[0]["name"].startswith("enumerate(DataLoader)#") and filled[0]["share"] > 0.5
    assert sum(row["share"] for row in filled) == pytest.approx(1)
    assert sum(row["ns"] for row in filled) == sum(
        one["interval_ns"] for one in level["iterations"] if one["interval_ns"] is not None)
    for one in level["iterations"][1:]:
        assert one["filled"][0]["name"] == filled[0]["name"]
        assert sum(row["ns"] for row in one["filled"]) == one["interval_ns"]
        assert one["launch_thread"] == 0
    assert level["iterations"][0]["filled"] == []
    text = run_command(PLUMB, "iters", trace_file).stdout
    assert "what filled the intervals" in text
    assert "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__\n" in text


def test_a_gap_is_told_by_what_lies_around_it(tmp_path):
    rank = Rank()
    for _ in range(10):
        step(rank, python=True)
        rank.now += 3000
    level = main_level(trace(tmp_path, [rank]))
    assert level["verdict"] == "host-bound"
    top = level["summary"]["filled"][0]
    assert top["kind"] == "gap" and top["share"] > 0.8
    assert top["text"] == "nothing recorded, at train.py:30"


def test_waiting_within_iterations(tmp_path):
    """Every kernel waits for its launch: there are no intervals to speak of."""
    rank = Rank()
    for _ in range(10):
        step(rank, length=2.0, between=100.0, python=True)
    level = main_level(trace(tmp_path, [rank]))
    assert level["summary"]["filled_what"] in ("idle", "intervals")
    top = level["summary"]["filled"][0]
    assert (top["kind"], top["line"]) == ("python", 30) and top["share"] > 0.5


def test_nothing_is_known_without_host_spans(tmp_path):
    rank = Rank()
    for _ in range(10):
        step(rank)
        rank.now += 3000
    rank.events = [event for event in rank.events if event["cat"] in ("kernel", "gpu_memcpy")]
    path = trace(tmp_path, [rank])
    level = main_level(path)
    assert level["verdict"] == "host-bound"
    assert level["summary"]["filled_what"] is None and level["summary"]["filled"] == []
    assert "what the host did meanwhile is unknown" in run_command(PLUMB, "iters", path).stdout
    rank.now += 9000
    told = explain(path, 5)
    assert told["rows"] == [] or told["rows"][0]["cause"] != "host"


def test_gpu_bound_has_nothing_to_fill(tmp_path):
    rank = Rank()
    for _ in range(10):
        step(rank, length=200.0)
    level = main_level(trace(tmp_path, [rank]))
    assert level["verdict"] == "GPU-bound" and level["summary"]["filled"] == []


# ---- one odd step ----


def test_sleep(tmp_path):
    path = loop(tmp_path, sleep=30_000, python=True)
    level = main_level(path)
    assert [i for i, one in enumerate(level["iterations"]) if one["outlier"]] == [7]
    assert "outliers: 7 (see --explain N)" in run_command(PLUMB, "iters", path).stdout
    told = explain(path, 7)
    top = told["rows"][0]
    assert top["cause"] == "host" and not top["hidden"]
    assert top["difference_ns"] == pytest.approx(30_000_000, rel=0.1)
    assert "nothing recorded" in top["text"] or "train.py:30" in top["text"]
    assert told["ns"] - told["median_ns"] == pytest.approx(30_000_000, rel=0.1)
    assert told["median_iteration"] != 7


def test_sleep_between_lines_without_frames_around_it(tmp_path):
    rank = Rank()
    for number in range(14):
        for i in range(20):
            at = rank.now
            rank.operator(f"aten::op{i % 5}", f"kernel{i}", 50)
            rank.python(f"train.py({40 + i}): part{i}", at)
            rank.now += 8
            if number == 7 and i == 12:
                rank.now += 30_000
        rank.wait()
    top = explain(trace(tmp_path, [rank]), 7)["rows"][0]
    assert "29.6 ms more in nothing recorded, between train.py:52 and train.py:53" in top["text"]


def test_sleep_that_the_gpu_does_not_notice(tmp_path):
    """The host runs far ahead: its sleep is hidden."""
    rank = Rank()
    for number in range(14):
        for i in range(20):
            rank.operator(f"aten::op{i % 5}", f"kernel{i}", 400)
            rank.now += 900 if number == 7 and i == 12 else 8
    path = trace(tmp_path, [rank])
    told = explain(path, 7)
    assert abs(told["ns"] - told["median_ns"]) < 50_000
    assert told["rows"] and all(row["hidden"] for row in told["rows"])
    assert "behind GPU work" in run_command(PLUMB, "iters", path, "--explain", "7").stdout


def test_sizes_that_no_number_holds_are_not_known(tmp_path):
    rank = Rank()
    for number in range(14):
        for _ in range(2):
            rank.copy(1 << 62, rate=2.0**52 if number == 7 else 2.0**60)
        for i in range(10):
            rank.operator(f"aten::op{i}", f"kernel{i}", 50)
        rank.wait()
    (row,) = [row for row in explain(trace(tmp_path, [rank]), 7)["rows"] if row["cause"] == "copy"]
    assert row["ns"] - row["median_ns"] > 1_000_000
    assert (row["bytes"], row["median_bytes"]) == (None, None)


def test_what_is_not_known_of_the_host_is_not_less(tmp_path):
    """Nothing says when the host began with the first iteration: that it did less is not known."""
    rank = Rank()
    for _ in range(14):
        for i in range(20):
            if i == 10:
                rank.host("cpu_op", "aten::nonzero", rank.now, 300)
                rank.now += 301
            rank.operator(f"aten::op{i % 5}", f"kernel{i}", 100)
    path = trace(tmp_path, [rank])
    for number in (0, 1, 7):
        assert explain(path, number)["rows"] == []


@pytest.mark.parametrize("blocking", [False, True])
def test_slow_copy(tmp_path, blocking):
    rank = Rank()
    for number in range(14):
        step(rank, copy=(20 if number == 7 else 1) << 20, blocking=blocking)
    top = explain(trace(tmp_path, [rank]), 7)["rows"][0]
    assert top["cause"] == "copy", top["text"]
    assert top["difference_ns"] == pytest.approx(19 * (1 << 20) / 10_000 * 1000, rel=0.2)


def test_bigger_batch(tmp_path):
    path = loop(tmp_path, length=200.0, grid=256, copy=4 << 20)
    top = explain(path, 7)["rows"][0]
    assert top["cause"] == "kernels"
    assert "4.0x as long: a larger batch (grid 4.0x" in top["text"]
    assert (top["count"], top["median_count"]) == (20, 20)


def test_bigger_batch_with_other_kernels(tmp_path):
    """A library chooses another kernel for another size: a third of the names differ."""
    rank = Rank()
    for number in range(14):
        first = len(rank.events)
        step(rank, kernels=30, **({"length": 200.0, "grid": 256} if number == 7 else {}))
        for event in rank.events[first:] if number == 7 else []:
            if event["cat"] == "kernel" and int(event["name"][6:]) % 3 == 0:
                event["name"] += "_large"
    path = trace(tmp_path, [rank])
    level = main_level(path)
    assert level["occurrences"] == 14 and [one["edits"] for one in level["iterations"]] == [0] * 7 + [10] + [0] * 6
    top = explain(path, 7)["rows"][0]
    assert top["cause"] == "kernels" and "4.0x as long: a larger batch (grid 4.0x" in top["text"]


def test_as_much_less_as_more(tmp_path):
    """30 kernels of one name in place of 30 of another, as long together: what is there stands beside what is not, and
    all of it in JSON, so that rows add up to the iteration's difference."""
    rank = Rank()
    for number in range(14):
        rank.copy(1 << 20)
        for i in range(80):
            rank.operator("aten::mm", f"other{i}" if number == 7 and 5 <= i < 35 else f"gemm{i}", 50.0 + i)
        rank.wait()
    path = trace(tmp_path, [rank])
    assert main_level(path)["occurrences"] == 14
    told = explain(path, 7)
    kernels = [row for row in told["rows"] if row["cause"] == "kernels"]
    for word in "missing", "inserted":
        assert len([row for row in kernels if f"1 {word}" in row["text"]]) == 30
    assert sum(row["difference_ns"] for row in kernels) == 0
    assert {row["difference_ns"] > 0 for row in kernels[:12]} == {True, False}
    sizes = [abs(row["difference_ns"]) for row in told["rows"] if not row["hidden"]]
    assert sizes == sorted(sizes, reverse=True)


def test_inserted_kernels(tmp_path):
    rank = Rank()
    for number in range(14):
        step(rank, kernels=40, insert=4 if number == 7 else 0, length=100.0)
    top = explain(trace(tmp_path, [rank]), 7)["rows"][0]
    assert top["cause"] == "kernels" and "4 inserted: sort_kernel" in top["text"]


def ranks_of(late=None, count=12, odd=6, sleep=20_000):
    ranks = [Rank(rank=number) for number in range(2)]
    for number in range(count):
        for rank in ranks:
            for i in range(16):
                rank.operator(f"aten::op{i % 4}", f"kernel{i}", 30)
                if number == odd and rank.rank == late and i == 8:
                    rank.now += sleep
                rank.now += 6
        all_reduce(ranks)
        for rank in ranks:
            rank.operator("aten::add_", "update", 30)
            rank.wait()
    return ranks


def joined(folder, ranks):
    output = folder / "job.plumb"
    done = run_command(PLUMB, "import", *rank_files(folder, ranks), "-o", output)
    assert done.returncode == 0, done.stderr
    return output


def test_late_rank(tmp_path):
    path = joined(tmp_path, ranks_of(late=1))
    data = answer("iters", path)
    mains = [track for track in data["tracks"] if track["role"] == "main"]
    assert [track["rank"] for track in mains] == [0, 1]
    found = data["ranks"]
    assert (found["matched_by"], found["straggler_by"]) == ("time", "collectives")
    odd = max(found["iterations"], key=lambda one: one["ranks"][0]["waiting_ns"])
    number = odd["ranks"][0]["iteration"]
    assert odd["straggler_rank"] == 1 and odd["straggler"] == mains[1]["track"]
    assert odd["ranks"][0]["waiting_ns"] == pytest.approx(20_000_000, rel=0.05)
    assert odd["ranks"][1]["waiting_ns"] == 0
    assert [row["straggler_in"] for row in found["summary"]] == [0, 1]
    assert found["summary"][0]["waiting_ns"] == pytest.approx(
        sum(one["ranks"][0]["waiting_ns"] for one in found["iterations"]) / len(found["iterations"]), abs=1)
    top = explain(path, number)["rows"][0]
    assert (top["cause"], top["rank"]) == ("rank", 1)
    assert "rank 1 came" in top["text"] and "late to AllReduce" in top["text"]
    assert "there host: 19.9 ms more in nothing recorded" in top["text"]
    (slow,) = [i for i, one in enumerate(mains[1]["levels"][0]["iterations"]) if one["outlier"]]
    assert slow in (number, number - 1), "the update comes after the collective"
    own = explain(path, slow, "--track", str(mains[1]["track"]))["rows"][0]
    assert own["cause"] == "host" and own["difference_ns"] == pytest.approx(20_000_000, rel=0.05)
    text = run_command(PLUMB, "iters", path).stdout
    assert "rank 1 reaches the collectives last in 1 of" in text


def test_a_collective_without_peers(tmp_path):
    ranks = ranks_of(late=1)
    path = trace(tmp_path, ranks[:1])
    whole = [one["duration_ns"] + (one["interval_ns"] or 0) for one in main_level(path)["iterations"]]
    top = explain(path, whole.index(max(whole)))["rows"][0]
    assert (top["cause"], top["rank"]) == ("rank", None)
    assert "a rank that is not in the profile" in top["text"]
    assert answer("iters", tmp_path / "trace")["ranks"] is None


def test_even_ranks_have_no_straggler(tmp_path):
    found = answer("iters", joined(tmp_path, ranks_of()))["ranks"]
    assert {one["straggler"] for one in found["iterations"]} == {None}
    assert [row["straggler_in"] for row in found["summary"]] == [0, 0]


def test_ranks_that_begin_at_different_iterations(tmp_path):
    """Rank 1 was recorded two steps later: by time, step 2 of one is step 0 of the other."""
    ranks = ranks_of(late=1)
    waits = sorted(event["ts"] + event["dur"] for event in ranks[1].events
                   if event["name"] == "cudaStreamSynchronize")
    ranks[1].events = [event for event in ranks[1].events if event["ts"] > waits[1]]
    found = answer("iters", joined(tmp_path, ranks))["ranks"]
    assert found["matched_by"] == "time"
    for one in found["iterations"]:
        assert one["ranks"][0]["iteration"] - one["ranks"][1]["iteration"] == 2
    assert [one["straggler_rank"] for one in found["iterations"]].count(1) == 1


def test_ranks_whose_clocks_differ(tmp_path):
    ranks = ranks_of()
    for event in ranks[1].events:
        event["ts"] += 1e9
    found = answer("iters", joined(tmp_path, ranks))["ranks"]
    assert found["matched_by"] == "index"
    assert {one["start_skew_ns"] for one in found["iterations"]} == {None}


@pytest.mark.parametrize("mark, matched, idle", [("train_step", "mark", 1), ("ProfilerStep#{}", "step", 2)])
def test_ranks_with_marks_and_clocks_that_differ(tmp_path, mark, matched, idle):
    """Rank 1 marks the same steps, of which its first ones did no work on the device."""
    ranks = [Rank(rank=number) for number in range(2)]
    for number in range(12):
        begins = [rank.now for rank in ranks]
        for rank in ranks:
            for i in range(12):
                if number >= idle or rank.rank == 0:
                    rank.operator(f"aten::op{i}", f"kernel{i}", 30)
            rank.wait()
            rank.now += 40
        for rank, begin in zip(ranks, begins):
            rank.host("user_annotation", mark.format(number), begin, rank.now - begin - 1)
            rank.now += 20
    for event in ranks[1].events:
        event["ts"] += 1e9
    found = answer("iters", joined(tmp_path, ranks))["ranks"]
    assert found["matched_by"] == matched
    assert {one["ranks"][0]["iteration"] - one["ranks"][1]["iteration"] for one in found["iterations"]} == {idle}
    how = {"mark": "by the steps that the program marks", "step": "by the program's step numbers"}
    assert how[matched] in run_command(PLUMB, "iters", tmp_path / "job.plumb").stdout


@pytest.mark.skipif(not TRACES.exists(), reason="published traces are not there")
def test_recorded_ranks(tmp_path):
    from conftest import ROOT
    folder = ROOT / "tests" / "data" / "foreign"
    output = tmp_path / "ranks.plumb"
    assert run_command(PLUMB, "import", folder / "rank0.json.gz", folder / "rank1.json.gz", "-o",
                       output).returncode == 0
    found = answer("iters", output)["ranks"]
    assert len(found["iterations"]) == 4 and found["straggler_by"] == "collectives"
    for one in found["iterations"]:
        assert min(rank["waiting_ns"] for rank in one["ranks"]) < max(rank["waiting_ns"] for rank in one["ranks"])


def test_wrong_numbers(tmp_path):
    path = loop(tmp_path)
    done = run_command(PLUMB, "iters", path, "--explain", "99")
    assert done.returncode == 3 and "there is no iteration 99: level 0 has 0 to 13" in done.stderr
    done = run_command(PLUMB, "iters", path, "--explain", "0", "--level", "4")
    assert done.returncode == 3 and "there is no level 4" in done.stderr
    done = run_command(PLUMB, "iters", path, "--explain", "0", "--csv")
    assert done.returncode == 1 and "--explain has no --csv" in done.stderr
    assert explain(path, 3)["rows"] == []
    assert "no large difference" in run_command(PLUMB, "iters", path, "--explain", "3").stdout


# ---- loops that grow ----


def growing(base=200, more=5, count=50, spread=1, both=False):
    """A graph to which every step adds MORE kernels, as loss += this step's loss does; SPREAD names among them."""
    rank = Rank()
    for number in range(count):
        for i in range(base // 2):
            rank.operator("aten::forward", f"forward{i}", 5)
        for i in range(number * more):
            rank.operator("aten::add", f"added{i % spread}", 5)
        for i in range(base - base // 2):
            rank.operator("aten::backward", f"backward{i}", 5)
            if both and i == 20:
                for k in range(number * more):
                    rank.operator("aten::mul", f"undone{k % spread}", 5)
        rank.wait()
        rank.now += 30
    return rank


@pytest.mark.parametrize("options", [{}, {"spread": 5}, {"both": True}, {"more": 1}, {"base": 40, "more": 2},
                                     {"base": 30, "more": 5, "spread": 5}, {"count": 10}])
def test_a_loop_that_grows(tmp_path, options):
    path = trace(tmp_path, [growing(**options)])
    level = main_level(path)
    count, base, more = options.get("count", 50), options.get("base", 200), options.get("more", 5)
    more *= 2 if options.get("both") else 1
    assert level["growing"] and level["occurrences"] == count
    assert [one["ops"] for one in level["iterations"]] == [base + more * i for i in range(count)]
    assert level["summary"]["ops_slope"] == pytest.approx(more)
    assert level["first_op"] == "forward0"
    assert {odd["name"] for odd in level["odd"]} <= {"added0", "added1", "added2", "added3", "added4", "undone0"}
    assert "the loop grows: each iteration runs" in run_command(PLUMB, "iters", path).stdout


def test_a_loop_that_stays_is_not_said_to_grow(tmp_path):
    rank = Rank()
    for number in range(30):
        step(rank, kernels=30, insert=(number * 7919 >> 3) % 3)
    level = main_level(trace(tmp_path, [rank]))
    assert not level["growing"] and level["occurrences"] == 30
