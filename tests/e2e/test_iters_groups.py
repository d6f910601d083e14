# SPDX-License-Identifier: Apache-2.0
"""Process groups at work at once: tensor-parallel pairs, pipeline pairs and data-parallel pairs of four ranks. Who
takes part in each collective is known, so how many there are and how long each rank waits are too, to the ns."""
import json
import random

import pytest
from conftest import PLUMB, run_command
from steps_traces import Rank, rank_files

STEPS = 10
NAME = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
PAIRS = {"tp": [(0, 1), (2, 3)], "pp": [(0, 2), (1, 3)], "dp": [(0, 2), (1, 3)]}
STREAMS = {"tp": 20, "pp": 24, "dp": 28}
OPERATIONS = {"tp": (NAME, "allreduce"), "pp": ("ncclDevKernel_SendRecv", "send"), "dp": (NAME, "allreduce")}


class Job:
    """SAYS: what kernels say: "sequence", "group", "operator" (record_param_comms says it for them) or nothing. LATE, a
    step and a rank: that comes 3 ms late to a collective of its first group."""

    def __init__(self, says, seed=1, late=None):
        self.says, self.late = says, late
        self.random = random.Random(seed)
        self.ranks = [Rank(rank=number) for number in range(4)]
        self.free = [{} for _ in self.ranks]
        self.sequence, self.external, self.collectives = {}, 0, 0
        self.waiting = [[0] * 4 for _ in range(STEPS)]
        for number in range(STEPS):
            self.step(number)

    def step(self, number):
        begins = [rank.now for rank in self.ranks]
        for layer in range(4):
            for rank in self.ranks:
                rank.operator("aten::mm", f"gemm{layer}", 40)
                rank.now += self.random.randrange(60)
                rank.now += 3000 if layer == 2 and (number, rank.rank) == self.late else 0
            self.collectives_of("tp", number)
        for rank in self.ranks:
            rank.operator("aten::mm", "head", 40 + self.random.randrange(50))
        self.collectives_of("pp", number)
        for rank in self.ranks:
            rank.operator("aten::mm", "backward", 40 + self.random.randrange(50))
        self.collectives_of("dp", number)
        for rank, begin in zip(self.ranks, begins):
            rank.operator("aten::add_", "update", 30)
            rank.wait()
            rank.host("user_annotation", f"ProfilerStep#{number}", begin, rank.now - begin - 1)
            rank.now += 3000

    def collectives_of(self, kind, number):
        for place, members in enumerate(PAIRS[kind]):
            self.collective(kind, place, members, number)

    def collective(self, kind, place, members, number):
        kernel, operation = OPERATIONS[kind]
        stream, group = STREAMS[kind], f"{kind}{place}"
        self.sequence[group] = self.sequence.get(group, 0) + 1
        facts = {"Collective name": operation, "Process Group Name": group, "Group size": len(members),
                 "Process Group Ranks": str(list(members))}
        starts = {}
        for member in members:
            rank = self.ranks[member]
            begin, launched = rank.now, rank.launch()
            starts[member] = round(max(launched + 1, rank.free, self.free[member].get(stream, 0)), 3)
            self.external += 1
            if self.says == "operator":
                rank.host("cpu_op", "record_param_comms", begin, 10,
                          **{**facts, "Seq": self.sequence[group], "External id": self.external})
            rank.now += 11
        end = max(starts.values()) + 100
        lengths = {}
        for member, start in starts.items():
            rank, over = self.ranks[member], round(end + self.random.randrange(900) / 1000, 3)
            said = {"sequence": {**facts, "Seq": self.sequence[group]}, "group": facts,
                    "operator": {"External id": self.external}}.get(self.says, {})
            if self.says == "operator":
                said = {"External id": self.external - len(members) + 1 + members.index(member)}
            rank.gpu("kernel", kernel, stream, start, over - start, **said)
            rank.free = self.free[member][stream] = over
            lengths[member] = round((over - start) * 1000)
        for member, length in lengths.items():
            self.waiting[number][member] += length - min(lengths.values())
        self.collectives += 1


def found(folder, job, apart=0):
    for rank in job.ranks:
        for event in rank.events:
            event["ts"] += rank.rank * apart
    path = folder / "job.plumb"
    done = run_command(PLUMB, "import", *rank_files(folder, job.ranks), "-o", path)
    assert done.returncode == 0, done.stderr
    done = run_command(PLUMB, "iters", path, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def waiting(data):
    return [[rank["waiting_ns"] for rank in one["ranks"]] for one in data["ranks"]["iterations"]]


def counts(data):
    edges = data["path"]["edges"]
    return [edges["collectives"], *(edges[f"collectives_by_{by}"] for by in ("sequence", "group", "stream", "name"))]


@pytest.mark.parametrize("says, by", [("sequence", 1), ("operator", 1), ("group", 2), (None, 3)])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_groups_at_once(tmp_path, says, by, seed):
    """Whatever of it the trace says: without a word about groups each has streams of its own."""
    job = Job(says, seed=seed)
    data = found(tmp_path, job)
    wanted = [job.collectives, 0, 0, 0, 0]
    wanted[by] = job.collectives
    assert counts(data) == wanted
    assert waiting(data) == job.waiting


def by_name(job):
    """How many collectives there are for who looks at names and ends alone: of one name those that end within 20 µs or a
    quarter of the shortest, one of each rank."""
    kernels = sorted((event["name"], event["ts"] + event["dur"], event["ts"], rank.rank) for rank in job.ranks
                     for event in rank.events if event["name"].startswith("nccl"))
    sets, at = 0, 0
    while at < len(kernels):
        name, end, start, rank = kernels[at]
        ranks, shortest, size = {rank}, end - start, 1
        for other, over, begin, rank in kernels[at + 1:]:
            apart = max(20, min(shortest, over - begin) / 4)
            if other != name or rank in ranks or begin >= end or over - end > apart:
                break
            ranks.add(rank)
            shortest, size = min(shortest, over - begin), size + 1
        sets += size > 1
        at += size
    return sets


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_names_alone_would_mix_groups(seed):
    """So the test above can fail."""
    job = Job(None, seed=seed)
    assert by_name(job) < job.collectives - 10


@pytest.mark.parametrize("says", ["sequence", "group"])
def test_groups_of_hosts_without_a_common_clock(tmp_path, says):
    """Waiting needs no clock; a path over ranks does."""
    job = Job(says)
    data = found(tmp_path, job, 1e9)
    assert data["ranks"]["matched_by"] == "step" and waiting(data) == job.waiting
    assert counts(data) == [0] * 5
    assert data["path"]["edges"]["impossible"] == (job.collectives if says == "sequence" else 0)


def test_why_a_rank_is_late(tmp_path):
    """Rank 3 computes 3 ms longer before a collective of its tensor-parallel pair: rank 2 waits for it."""
    job = Job(None, late=(6, 3))
    data = found(tmp_path, job)
    assert waiting(data) == job.waiting
    mains = {track["rank"]: track["track"] for track in data["tracks"] if track["role"] == "main"}
    done = run_command(PLUMB, "iters", tmp_path / "job.plumb", "--explain", "6", "--track", str(mains[2]), "--json")
    top = json.loads(done.stdout)["explain"]["rows"][0]
    assert (top["cause"], top["rank"]) == ("rank", 3)


def test_what_the_profile_keeps(tmp_path):
    import plumb
    job = Job("operator")
    found(tmp_path, job)
    rows = plumb.Profile(tmp_path / "job.plumb").collectives
    assert len(rows) == 2 * job.collectives
    assert {(row.group_name, row.ranks, row.size) for row in rows} == {
        (f"{kind}{place}", str(list(members)), 2) for kind, pairs in PAIRS.items() for place, members in enumerate(pairs)}
    for kind, pairs in PAIRS.items():
        for place in range(len(pairs)):
            numbers = sorted(row.sequence for row in rows if row.group_name == f"{kind}{place}")
            assert numbers == sorted(2 * list(range(1, STEPS * (4 if kind == "tp" else 1) + 1)))


@pytest.mark.parametrize("says", ["sequence", "group"])
def test_groups_survive_the_way_out_and_back(tmp_path, says):
    """Exported as Chrome trace events and read again a profile says the same of its collectives."""
    import plumb
    job = Job(says)
    found(tmp_path, job)
    path, out, again = tmp_path / "job.plumb", tmp_path / "out.json", tmp_path / "again.plumb"
    for command in ["export", path, "--format", "chrome", "-o", out], ["import", out, "-o", again]:
        done = run_command(PLUMB, *command)
        assert done.returncode == 0, done.stderr
    first, second = ([(row.group_name, row.ranks, row.size, row.sequence or 0) for row in plumb.Profile(file).collectives]
                     for file in (path, again))
    assert len(first) == 2 * job.collectives and sorted(first) == sorted(second)
    assert any(row[3] for row in first) == (says == "sequence")
