# SPDX-License-Identifier: Apache-2.0
"""`plumb run --memory`: who allocates and frees tensors, and who holds the bytes at the peak."""
import collections
import csv
import io
import json
import shutil
import subprocess
import sys

import pytest
from conftest import PLUMB, ROOT, run_command
from plumbtest import recorded, run_program
from viewing import Viewer, link_plumb, read_tables

import plumb

CUDA_STANDIN = ROOT / "tests" / "e2e" / "memory_standin.c"


def by_line(made, metric, pid=None):
    """{@name: (sum, count)} of METRIC under each marked line, over threads, in one process."""
    names = {number: name for name, number in made.lines.items()}
    query = ("SELECT v.context, v.sum, v.count FROM context_values v JOIN metrics m ON "
             "m.id = v.metric JOIN tracks t ON t.id = v.track JOIN processes p ON p.id = t.process "
             "WHERE m.name = ? AND t.kind = 'memory' AND p.pid = ifnull(?, p.pid)")
    found = collections.defaultdict(lambda: (0, 0))
    for context, total, count in made.profile._database.execute(query, (metric, pid)):
        lines = [int(step.split(":")[1]) for step in made.steps(made.node(context))
                 if step.split(":")[-1].isdigit() and "::" not in step]
        name = next((names[line] for line in reversed(lines) if line in names), None)
        found[name] = (found[name][0] + total, found[name][1] + count)
    return dict(found)


def report(made, *arguments):
    done = run_command(PLUMB, "report", made.path, "--by", "memory", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def made(torch_python, tmp_path_factory):
    return recorded(torch_python, "memory.py", tmp_path_factory, options=["--memory"])


@pytest.fixture(scope="session")
def pid(made):
    """Of the program itself: its child may be in the profile, too."""
    command = min(made.profile.processes, key=lambda process: process.start_ns)
    return command.pid


def test_what_each_line_allocates(made, pid):
    found = by_line(made, "mem.alloc", pid)
    assert {name: found[name] for name in found if name not in (None, "backward", "saved")} == {
        "keep": (400_000, 100),
        "temporary": (25_000, 50),
        "small": (100, 1),
        "resize": (9000, 1),
        "leaf": (10_000, 1),
        "handed": (6000, 20),
        "ended": (21_000, 30),
        "profiled": (6000, 10),
        "unshared": (800, 1),
        "share": (800, 1),
        "large": (6_000_000, 1),
        "half": (3_000_000, 1),
        "again": (2_000_000, 1),
    }
    # exp's result; the sum lies on a line of its own, backward work on the forward line.
    assert found["saved"][0] >= 10_000


def test_what_each_line_frees(made, pid):
    allocated, freed = by_line(made, "mem.alloc", pid), by_line(made, "mem.free", pid)
    live = {name: allocated[name][0] - freed.get(name, (0, 0))[0] for name in allocated}
    assert {name: bytes_ for name, bytes_ in live.items() if bytes_} == {
        "keep": 400_000, "half": 3_000_000, "again": 2_000_000}
    assert all(freed[name] == allocated[name] for name in freed)


def test_the_peak_is_held_by_its_lines(made, pid):
    held = by_line(made, "mem.held", pid)
    assert {name: total for name, (total, _) in held.items()} == {
        "keep": 400_000, "large": 6_000_000, "half": 3_000_000}
    data = json.loads(report(made, "--json", "--top", "0"))
    memory, = (row for row in data["memory"] if row["pid"] == pid)
    assert memory["name"] == "CPU" and memory["device"] is None
    assert memory["peak_bytes"] == 9_400_000
    assert memory["live_bytes"] == 5_400_000
    assert memory["allocated_bytes"] - memory["freed_bytes"] == 5_400_000
    assert 0 < memory["peak_ns"] < data["run"]["wall_ns"]
    assert memory["peak_reserved_bytes"] is None


def test_own_peaks(made, pid):
    peaks = by_line(made, "mem.peak", pid)
    assert peaks["keep"][0] == 400_000 and peaks["temporary"][0] == 500
    assert peaks["handed"][0] == 6000 and peaks["ended"][0] == 21_000


def series_of(profile, track):
    return [row for row in profile.memory_series if row.track == track]


def check_series(profile):
    """{name of the memory: its max}: each series is whole, is bounded, reaches the peak and ends with what lives."""
    found = {}
    for memory in profile.memory:
        bins = series_of(profile, memory.track)
        assert 1 <= len(bins) <= 1024
        assert max(bin.max_bytes for bin in bins) == memory.peak_bytes
        assert bins[-1].last_bytes == memory.live_bytes
        for before, after in zip(bins, bins[1:]):
            assert after.start_ns == before.start_ns + before.width_ns and after.width_ns == before.width_ns
            assert after.min_bytes <= before.last_bytes <= after.max_bytes
        # The peak is in the bin of its time, or in the one before: the clock of the bins ticks.
        at = (memory.peak_ns - bins[0].start_ns) // bins[0].width_ns
        assert memory.peak_bytes in [bins[i].max_bytes for i in range(max(0, at - 3), min(at + 1, len(bins)))]
        found[profile.tracks[memory.track].process, profile.tracks[memory.track].name] = memory.peak_bytes
    return found


def test_over_time(made):
    assert 9_400_000 in check_series(made.profile).values()
    assert {row.max_reserved_bytes for row in made.profile.memory_series} == {None}


def test_over_time_of_joined_profiles(made, device, tmp_path):
    joined = tmp_path / "joined.plumb"
    done = run_command(PLUMB, "settle", made.path, device.path, "-o", joined)
    assert done.returncode == 0, done.stderr
    with plumb.Profile(joined) as profile:
        together = sorted(check_series(profile).values())
        assert together == sorted([*check_series(made.profile).values(), *check_series(device.profile).values()])
        assert len(profile.memory_series) == len(made.profile.memory_series) + len(device.profile.memory_series)


def test_ledger_holds_every_event(made, pid):
    ledger = made.ledger("memory")
    assert ledger["received"] == ledger["attributed"] + ledger.get("unknown_object", 0)
    received, = made.profile._database.execute(
        "SELECT l.count FROM ledger l JOIN processes p ON p.id = l.process "
        "WHERE p.pid = ? AND l.source = 'memory' AND l.fate = 'received'", (pid,)).fetchone()
    allocations, frees = made.profile._database.execute(
        "SELECT m.allocations, m.frees FROM memory m JOIN tracks t ON t.id = m.track "
        "JOIN processes p ON p.id = t.process WHERE p.pid = ?", (pid,)).fetchone()
    assert received == allocations + frees


def test_the_program_is_what_it_was(made, torch_python, tmp_path):
    plain = run_program(torch_python, "memory.py", folder=tmp_path, plumb=False)
    assert plain.done.returncode == made.done.returncode == 0
    assert plain.done.stdout == made.done.stdout
    assert plain.done.stdout.splitlines() == ["refused True", "child 5", "done 100 2"]
    assert "memory.off" not in made.profile.environment


def test_without_the_option_nothing_is_recorded(torch_python, tmp_path):
    made = run_program(torch_python, "memory.py", folder=tmp_path)
    assert made.done.returncode == 0 and made.done.stdout.endswith("done 100 2\n")
    assert not made.ledger("memory")
    done = run_command(PLUMB, "report", made.path, "--by", "memory")
    assert done.returncode == 3 and "plumb run --memory" in done.stderr


def test_report_rows(made, pid):
    lines = {number: name for name, number in made.lines.items()}
    data = json.loads(report(made, "--json", "--top", "0"))
    mine = [row for row in data["rows"] if data["memory"][row["memory"]]["pid"] == pid]
    first = [(lines[row["user_line"]], row["name"], row["held_bytes"]) for row in mine[:3]]
    assert first == [("large", "aten::empty", 6_000_000), ("half", "aten::empty", 3_000_000),
                     ("keep", "aten::empty", 400_000)]
    assert [row["share"] for row in mine[:3]] == pytest.approx([6 / 9.4, 3 / 9.4, 0.4 / 9.4])
    assert mine[2]["exclusive"]["mem.alloc"]["count"] == 100
    assert mine[2]["live_bytes"] == 400_000
    # The gradient lies on the forward line that asked for it, as backward work.
    backward = [row for row in mine if row["backward"]]
    assert {lines.get(row["user_line"]) for row in backward} <= {"saved", "backward", None}
    assert any(row["name"] and "Backward" in row["name"] for row in backward)


def test_report_as_text_and_csv(made, pid):
    text = report(made, "--width", "0", "--top", "2")
    assert "CPU" in text and "peak 8.96 MiB" in text
    assert f"memory.py:{made.lines['large']}" in text and "63.8 %" in text
    assert f"memory.py:{made.lines['keep']}\n" not in text
    rows = list(csv.DictReader(io.StringIO(report(made, "--csv", "--top", "0"))))
    large, = (row for row in rows if row["user_line"] == str(made.lines["large"]))
    assert (large["device"], large["held_bytes"], large["allocations"], large["live_bytes"]) == \
        ("CPU", "6000000", "1", "0")
    ordered = list(csv.DictReader(io.StringIO(report(made, "--csv", "--metric", "mem.alloc"))))
    sizes = [int(row["allocated_bytes"]) for row in ordered if row["pid"] == str(pid)]
    assert sizes == sorted(sizes, reverse=True)
    text = report(made, "--filter", rf"memory\.py:{made.lines['half']}$", "--csv")
    assert text.count("\n") == 2


def test_other_reports_take_the_metrics(made):
    done = run_command(PLUMB, "report", made.path, "--by", "line", "--metric", "mem.held", "--json")
    rows = json.loads(done.stdout)["rows"]
    assert rows[0]["line"] == made.lines["large"]
    assert rows[0]["exclusive"]["mem.held"]["sum"] == 6_000_000


@pytest.mark.parametrize("arguments", [("--inverted",), ("--metric", "gpu.time")])
def test_what_has_no_sense_is_refused(made, arguments):
    done = run_command(PLUMB, "report", made.path, "--by", "memory", *arguments)
    assert done.returncode == 1 and "memory" in done.stderr


# ---- GPUs, by stand-ins ----

@pytest.fixture(scope="module")
def standins(tmp_path_factory):
    folder = tmp_path_factory.mktemp("standin")
    first, second = folder / "libstandin_a.so", folder / "libstandin_b.so"
    subprocess.run(["gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", first,
                    CUDA_STANDIN], check=True)
    shutil.copy(first, second)
    return first, second


@pytest.fixture(scope="module")
def device(standins, tmp_path_factory):
    made = run_program(sys.executable, "memory_device.py", *standins,
                       folder=tmp_path_factory.mktemp("device"), options=["--memory"])
    assert made.done.returncode == 0, made.done.stderr
    assert made.done.stdout == "all arguments arrived 1\n"
    return made


def test_blocks_of_a_gpu(device):
    rows = device.profile._database.execute(
        "SELECT t.name, m.peak_bytes, m.allocations, m.frees, m.live_bytes, m.peak_allocated_bytes,"
        " m.peak_reserved_bytes, m.most_reserved_bytes FROM memory m JOIN tracks t"
        " ON t.id = m.track ORDER BY m.id").fetchall()
    assert rows == [("cuda:0", 2048, 8, 8, 0, 2048, 2097152, 2097152),
                    ("cuda:1", 1 << 33, 1, 1, 0, 1 << 33, 1 << 34, 1 << 34),
                    ("xpu:2", 64, 1, 0, 64, 64, 128, 128),
                    ("CPU", 1050, 2, 2, 0, None, None, None)]
    check_series(device.profile)
    reserved = {device.profile.tracks[row.track].name: row.max_reserved_bytes for row in device.profile.memory_series}
    assert reserved == {"cuda:0": 2097152, "cuda:1": 1 << 34, "xpu:2": 128, "CPU": None}
    # What is reported lies one call deeper than the marked line, in Library.report.
    held = {tuple(device.steps(device.node(context))[2:3]): total for context, total in
            device.profile._database.execute(
                "SELECT v.context, v.sum FROM context_values v JOIN metrics m ON m.id = v.metric "
                "WHERE m.name = 'mem.held'")}
    assert held == {(device.expand("blocks:@blocks"),): 2048,
                    (device.expand("second_device:@second"),): 1 << 33,
                    (device.expand("second_device:@xpu"),): 64,
                    (device.expand("two_copies:@one"),): 1000,
                    (device.expand("two_copies:@two"),): 50}


def test_an_allocators_own_account_is_shown(device):
    text = run_command(PLUMB, "report", device.path, "--by", "memory").stdout
    assert "cuda:1: peak 8.00 GiB" in text
    assert "its allocator had reserved 16.0 GiB, of which 8.00 GiB (50.0 %) were unused" in text


def test_arguments_arrive_without_the_option_too(standins, tmp_path):
    made = run_program(sys.executable, "memory_device.py", *standins, folder=tmp_path)
    assert made.done.returncode == 0, made.done.stderr
    assert "all arguments arrived" in made.done.stdout


def test_who_stands_in_front_of_us_is_named(standins, torch_python, tmp_path):
    """Somebody else's c10::alloc_cpu is preloaded before ours: the program runs, and one line says why
    nothing is known."""
    program = tmp_path / "sum.py"
    program.write_text("import torch\nprint(torch.ones(3).sum().item())\n")
    made = run_program(torch_python, program, folder=tmp_path, options=["--memory"],
                       environment={"LD_PRELOAD": str(standins[0])})
    assert made.done.returncode == 0 and made.done.stdout == "3.0\n"
    assert "another library comes before the collector" in made.profile.environment["memory.off"]
    assert not made.profile.memory and not made.ledger("memory")


def test_a_program_without_pytorch_is_left_alone(record):
    made = record(sys.executable, "-c", "print(sum(range(10)))", options=["--memory"])
    assert made.returncode == 0 and made.stdout == "45\n"


# ---- plumb view ----

@pytest.fixture(scope="module")
def viewer(made, device, tmp_path_factory):
    with Viewer(link_plumb(tmp_path_factory.mktemp("viewer")), made.path, device.path) as running:
        yield running


def table(viewer, question):
    """The rows of an answer as dictionaries."""
    found = json.loads(viewer.get(question))
    names = [column["name"] for column in found["columns"]]
    return [dict(zip(names, row)) for row in found["rows"]]


def test_answers_have_what_the_report_has(viewer, made, pid):
    devices = table(viewer, "memory/devices")
    mine, = (row["memory"] for row in devices if row["pid"] == pid)
    said = json.loads(report(made, "--json", "--top", "0"))
    assert [(row["name"], row["peak"], row["live"], row["allocations"], row["freed"]) for row in devices] == \
        [(row["name"], row["peak_bytes"], row["live_bytes"], row["allocations"], row["freed_bytes"]) for row in said["memory"]]
    lines = collections.Counter()
    for row in said["rows"]:
        if row["memory"] == mine:
            lines[row["user_file"], row["user_line"], "held"] += row["held_bytes"]
            lines[row["user_file"], row["user_line"], "live"] += row["live_bytes"]
    rows = table(viewer, f"memory/holders?memory={mine}")
    assert {(row["file"], row["line"], what): row[what] for row in rows for what in ("held", "live") if row[what]} == \
        {key: bytes_ for key, bytes_ in lines.items() if bytes_}
    assert sum(row["share"] for row in rows) == pytest.approx(1) == sum(row["live_share"] for row in rows)


@pytest.mark.parametrize("by", ["operator", "module"])
def test_holders_by_operator_and_module(viewer, made, by):
    """Over all processes they are the rows of the report of that metric."""
    done = run_command(PLUMB, "report", made.path, "--by", by, "--metric", "mem.held", "--json", "--top", "0", "--unfold")
    said = {row["name"]: row["exclusive"]["mem.held"]["sum"] for row in json.loads(done.stdout)["rows"]
            if row["exclusive"].get("mem.held", {}).get("sum")}
    found = collections.Counter()
    for row in table(viewer, f"memory/holders?by={by}"):
        found[row["name"]] += row["held"]
    whole = sum(found.values())
    outside = found.pop(None, 0)
    assert {name: bytes_ for name, bytes_ in found.items() if bytes_} == said
    assert outside + sum(said.values()) == whole == sum(memory.peak_bytes for memory in made.profile.memory)


def test_series_in_each_format(viewer, device):
    series = read_tables(viewer.get("memory/series?file=1"))["memory.series"]
    assert list(series["memory"]) == sorted(series["memory"])
    for number, memory in enumerate(device.profile.memory):
        of = [i for i, one in enumerate(series["memory"]) if one == number]
        bins = series_of(device.profile, memory.track)
        assert [(series["start"][i] + device.profile.run.start_ns, series["min"][i], series["max"][i], series["last"][i],
                 series["max_reserved"][i]) for i in of] == \
            [(bin.start_ns, bin.min_bytes, bin.max_bytes, bin.last_bytes, bin.max_reserved_bytes) for bin in bins]
    rows = list(csv.DictReader(io.StringIO(viewer.get("memory/series?file=1&memory=1&format=csv").decode())))
    assert {row["memory"] for row in rows} == {"1"} and {row["max_reserved"] for row in rows} == {str(1 << 34)}
    assert rows[0]["end"] == str(int(rows[0]["start"]) + 4_000_000)


@pytest.mark.parametrize("question, says", [
    ("memory/series?memory=99", "memory 99 does not exist; use 0 to"),
    ("memory/holders?by=kernel", "line|operator|module"),
    ("memory/holders?at=peak", "at"),
])
def test_wrong_questions(viewer, question, says):
    status, _, body = viewer.ask("api/1/" + question)
    assert status == 400 and says in body.decode() and body.count(b"\n") == 1


def test_without_the_option_the_answer_has_a_remedy(viewer, tmp_path):
    (tmp_path / "none.py").write_text("import plumb\nwith plumb.range('step'):\n    pass\n")
    made = run_program(sys.executable, tmp_path / "none.py", folder=tmp_path)
    with Viewer(viewer.process.args[0], made.path) as other:
        assert json.loads(other.get("about"))["has"]["memory"] is False
        status, _, body = other.ask("api/1/memory/devices")
        assert status == 404 and json.loads(body)["remedy"] == "plumb run --memory -- PROGRAM"
