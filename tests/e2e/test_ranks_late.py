# SPDX-License-Identifier: Apache-2.0
"""Ranks that wait for a late one: jobs of two to eight processes on the stand-in driver, under plumb run without --trace.
What each rank does at which time is known (programs/mock_ranks.py), but each process reads the clocks itself: on a busy
machine, these readings can be apart by more than the ends of a collective may be."""
import json
import re
import sys

import pytest
from conftest import PLUMB, ROOT, run_command
from plumbtest import findings, run_program
from steps_traces import Rank, all_reduce, rank_files
from test_mock_gpu import mock_environment

STEPS = 30


def job(folder, kind, ranks, *options):
    made = run_program(sys.executable, "mock_ranks.py", kind, ranks, STEPS, folder=folder, options=options,
                       environment=mock_environment("13.0", f"devices={ranks}"))
    assert made.done.returncode == 0, made.done.stderr
    return made


def by_cause(path, *options):
    """The findings of the rule."""
    return {one["evidence"]["cause"]: one for one in findings(path, *options) if one["rule"] == "ranks"}


def joined(folder, ranks):
    """The profile of a job whose ranks each have a trace."""
    path = folder / "job.plumb"
    done = run_command(PLUMB, "import", *rank_files(folder, ranks), "-o", path)
    assert done.returncode == 0, done.stderr
    return path


def near(value, wanted, part=0.05):
    return abs(value - wanted) <= part * wanted


def line_of(evidence, made, name):
    return evidence["user_file"].endswith("mock_ranks.py") and evidence["user_line"] == made.lines[name]


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_a_late_rank(tmp_path, ranks):
    made = job(tmp_path, "late", ranks)
    found = findings(made.path)
    first, evidence = found[0], found[0]["evidence"]
    assert (first["rule"], evidence["cause"], first["severity"]) == ("ranks", "late", "serious")
    assert "for rank 1, whose host is late at mock_ranks.py:" in first["title"]
    assert first["title"].startswith({2: "rank 0 waits", 4: "ranks 0, 2, 3 wait", 8: "7 ranks wait"}[ranks])
    assert (evidence["operation"], evidence["why"], evidence["newest"]) == ("AllReduce", "host", True)
    assert evidence["late_times"] == evidence["of_times"] and STEPS - 1 <= evidence["of_times"] <= STEPS
    assert line_of(evidence, made, "compute") and evidence["gap_before"].startswith("mock_ranks.py:")
    # 20 ms late, but for what the other ranks are late themselves.
    assert near(first["saving_ns"], 19.6e6 * STEPS)
    by_rank = {one["rank"]: one for one in evidence["ranks"]}
    assert by_rank[1]["waiting_ns"] < 1e6 * STEPS and by_rank[1]["late_times"] == evidence["late_times"]
    assert all(near(by_rank[rank]["waiting_ns"], 19.6e6 * STEPS) for rank in by_rank if rank != 1)


def test_the_summary_names_the_cause(tmp_path):
    made = job(tmp_path, "late", 2)
    lines = [line for line in made.done.stderr.splitlines() if not line.startswith("plumb: recording")]
    finding = next(number for number, line in enumerate(lines) if line.startswith("  finding "))
    assert finding < 40
    assert "rank 0 waits " in lines[finding]
    assert f"for rank 1, whose host is late at mock_ranks.py:{made.lines['compute']}" in lines[finding]


@pytest.mark.parametrize("kind, ranks", [("healthy", 2), ("healthy", 4), ("healthy", 8), ("overlapped", 2), ("alone", 2)])
def test_healthy_twins(tmp_path, kind, ranks):
    assert by_cause(job(tmp_path, kind, ranks).path) == {}


def test_where_the_host_waits(tmp_path):
    made = job(tmp_path, "late_host", 2, "--cpu")
    found = by_cause(made.path)["late"]
    assert f"whose host waits at mock_ranks.py:{made.lines['sleep']}" in found["title"]
    assert found["evidence"]["host_metric"] == "wait.time"
    assert line_of(found["evidence"], made, "sleep")


def test_late_now_and_then(tmp_path):
    found = by_cause(job(tmp_path, "sometimes", 2).path)["late"]
    assert found["evidence"]["late_times"] < 12 and found["evidence"]["of_times"] >= STEPS - 1
    assert near(found["saving_ns"], 60e6 * 6)
    # 60 ms in each of these steps, but for what rank 0 is late itself.
    told = re.match(r"rank 0 waits in (\d+) of (\d+) steps, ([\d.]+) ms each, for rank 1", found["title"])
    assert told and int(told[1]) in (5, 6) and STEPS - 2 <= int(told[2]) <= STEPS and near(float(told[3]), 59.5), found["title"]
    assert found["evidence"]["late_steps"] == int(told[1])


def test_late_once(tmp_path):
    """In the one step in which rank 1 is late, it comes late to each of four collectives."""
    ranks = [Rank(rank=number) for number in range(2)]
    for step in range(20):
        for rank in ranks:
            rank.now += 500.0  # so it is clear where a step begins
        for part in range(4):
            for rank in ranks:
                rank.now += 5000.0 if rank.rank == 1 and step == 11 else 0
                rank.operator("aten::mm", f"gemm{part}", 300)
            all_reduce(ranks)
        for rank in ranks:
            rank.wait()
    found = by_cause(joined(tmp_path, ranks))["late"]
    assert re.match(r"rank 0 waits in 1 of (19|20) steps, (19|20)\.\d+ ms, for rank 1", found["title"]), found["title"]


def test_late_in_turn(tmp_path):
    found = by_cause(job(tmp_path, "turns", 4).path)
    assert list(found) == ["uneven"]
    assert "they come late in turn" in found["uneven"]["title"]
    times = [one["late_times"] for one in found["uneven"]["evidence"]["ranks"]]
    assert len(times) == 4 and min(times) >= 5


def test_a_slower_gpu(tmp_path):
    found = by_cause(job(tmp_path, "device", 2).path)["late"]
    assert found["evidence"]["why"] == "device"
    # Two kernels take twice as long, and one as long as elsewhere.
    assert near(found["evidence"]["kernels_slower"], 41 / 21, 0.01)
    assert "for rank 1, whose kernels take 1.95 times as long" in found["title"]


def test_what_computation_hides_is_no_waiting(tmp_path):
    """Rank 1 is 20 ms late, but rank 0 has 20 ms of computation left when it reduces the first bucket."""
    made = job(tmp_path, "overlapped_late", 2)
    found = by_cause(made.path)["late"]
    waiting = {one["rank"]: one["waiting_ns"] for one in found["evidence"]["ranks"]}
    assert near(waiting[0], 19e6 * STEPS) and waiting[1] == 0


def test_several_groups(tmp_path):
    """Only rank 1 is late, but ranks 0 and 3 come late to their second groups because they waited for it."""
    found = by_cause(job(tmp_path, "groups", 4).path)
    assert list(found) == ["late"]
    assert found["late"]["title"].startswith("ranks 0, 2, 3 wait ")
    assert "for rank 1, whose host is late" in found["late"]["title"]


def test_a_pipeline(tmp_path):
    found = by_cause(job(tmp_path, "pipeline", 2).path)
    assert list(found) == ["pipeline"]
    assert found["pipeline"]["saving_ns"] is None
    assert found["pipeline"]["title"].endswith("rank 1 sets the pace of the pipeline")


def test_thresholds(tmp_path):
    made = job(tmp_path, "late", 2)
    assert "late" in by_cause(made.path, "--threshold", "ranks.waiting=35%")
    assert by_cause(made.path, "--threshold", "ranks.waiting=55%,ranks.uneven=55%") == {}
    assert by_cause(made.path, "--threshold", "ranks.times=31") == {}


# ---- what devices do ----

def test_waiting_is_no_work(tmp_path):
    made = job(tmp_path, "late", 2)
    data = json.loads(run_command(PLUMB, "report", made.path, "--json").stdout)
    first, second = sorted(data["gpu_work"], key=lambda one: one["rank"])
    for one in (first, second):
        assert one["from"] == "newest"
        parts = ("computing_ns", "collectives_ns", "copies_ns", "idle_ns")
        assert sum(one[part] for part in parts) == one["whole_ns"]
        assert near(one["computing_ns"], 21e6 * STEPS, 0.001)
    assert near(first["waiting_ns"], 19.6e6 * STEPS) and first["idle_ns"] < second["idle_ns"]
    assert near(first["collectives_ns"] - first["waiting_ns"], 8e6 * STEPS, 0.1)
    text = run_command(PLUMB, "report", made.path).stdout
    assert "GPU busy" not in text
    ranks = next(line for line in text.splitlines() if line.startswith("  ranks "))
    assert "their GPUs are computing" in ranks and "waiting for other ranks 0." in ranks
    for rank in (0, 1):
        device = next(line for line in text.splitlines() if f"#{rank} (rank {rank})" in line)
        assert ": computing 4" in device and "(waiting for other ranks " in device and "busy" not in device


def test_without_communication_devices_are_busy(tmp_path):
    text = run_command(PLUMB, "report", job(tmp_path, "alone", 2).path).stdout
    assert "GPU busy" in text and "computing" not in text


def test_advice_for_communication(tmp_path):
    made = job(tmp_path, "overlapped_late", 2)
    hot = next(one for one in findings(made.path) if "nccl" in one["title"])
    assert "Computation hides 49." in hot["advice"] and "layout" not in hot["advice"]
    assert 0.49 < hot["evidence"]["hidden_share"] < 0.5
    assert near(hot["evidence"]["operation_ns"], 1e6, 0.01)


# ---- imports ----

def ranks_of_a_trace(folder, sleeps, count=2):
    """SLEEPS: how many µs rank 1 sleeps before each step, or each rank by its number."""
    ranks = [Rank(rank=number) for number in range(count)]
    sleeps = sleeps if isinstance(sleeps, dict) else {1: sleeps}
    for _ in range(20):
        for rank in ranks:
            rank.now += sleeps.get(rank.rank, 0)
            begin = rank.now
            for part in range(3):
                rank.operator("aten::mm", f"gemm{part}", 300)
            rank.python("train.py(41): forward", begin)
        all_reduce(ranks)
        for rank in ranks:
            rank.wait()
    return joined(folder, ranks)


@pytest.mark.parametrize("count", [2, 4])
def test_traces_of_ranks(tmp_path, count):
    found = by_cause(ranks_of_a_trace(tmp_path, 2000.0, count))["late"]
    assert "for rank 1, whose host" in found["title"]
    assert found["evidence"]["newest"] is False
    waiting = {one["rank"]: one["waiting_ns"] for one in found["evidence"]["ranks"]}
    assert near(waiting[0], 2e6 * 20) and waiting[1] < 1e6


def test_traces_of_even_ranks(tmp_path):
    assert by_cause(ranks_of_a_trace(tmp_path, 0.0)) == {}


def test_the_cause_comes_first(tmp_path):
    """GPU 1 idles because its host is late; if it were not, rank 2 would be. So the wait of rank 1's GPU for its host
    saves more than rank 1 could, but the late rank says why all wait."""
    found = findings(ranks_of_a_trace(tmp_path, {1: 5000.0, 2: 3600.0}, 4), "--threshold", "latency.idle=10%")
    first = found[0]
    assert (first["rule"], first["evidence"]["cause"]) == ("ranks", "late"), [one["title"] for one in found]
    idle = [one for one in found if one["rule"] == "latency"]
    assert idle and idle[0]["id"] in first["evidence"]["explains"]
    assert any(one["saving_ns"] > first["saving_ns"] for one in idle)


def test_the_program_for_real_gpus_can_run():
    sys.path.insert(0, str(ROOT / "tests" / "accuracy"))
    import late_ranks
    compile(late_ranks.PROGRAM, "late_program.py", "exec")
    assert "time.sleep" in late_ranks.PROGRAM.splitlines()[late_ranks.line_of("sleep") - 1]
