# SPDX-License-Identifier: Apache-2.0
"""Samples of GPU program counters on the stand-in driver: known samples of known code, from CUPTI to the profile.
data/stalls/kernels.sm_90.cubin is nvcc's of kernels.cu beside it, whose first lines say how."""
import hashlib
import json
import sqlite3
import struct
import sys

import pytest
from conftest import PLUMB, ROOT, run_command
from regionwriter import Region
from test_mock_gpu import RELEASES, mock_environment, run_profiled
from test_session import session

CUBIN = ROOT / "tests/data/stalls/kernels.sm_90.cubin"
CODE = f"module:{CUBIN}"
LOAD = "stall:gather:192:long_scoreboard:100:80"  # line 21: at LDG in[index[i]]'s consumer
INLINED = "stall:gather:240:long_scoreboard:30:30"  # line 13, inlined at line 22
CALLED = "stall:gather:640:wait:7:0"  # line 8, of the function that is called
ISSUED = "stall:scale:112:selected:5:0"
STALLS = (CODE, LOAD, INLINED, CALLED, ISSUED)
WORK = ("launch:gather:5000", "launch:gather:7000", "launch:scale:1000")
# (function, offset, reason, issued): samples of WORK
SAMPLES = {("gather", 192, "long_scoreboard", 0): 160, ("gather", 192, "long_scoreboard", 1): 40,
           ("gather", 240, "long_scoreboard", 0): 60, ("gather", 640, "wait", 1): 14, ("scale", 112, "selected", 1): 5}


def rows(path, sql):
    with sqlite3.connect(path) as database:
        return database.execute(sql).fetchall()


def samples(path):
    found = {}
    for function, offset, reason, issued, count in rows(
            path, "SELECT f.name, s.offset, s.reason, s.issued, s.count FROM code_samples s "
                  "JOIN code_functions f ON f.id = s.code_function"):
        key = function, offset, reason, issued
        found[key] = found.get(key, 0) + count
    return found


def values(path):
    """{(metric, kind and name of the frame): sum}, exclusive, of stalls."""
    found = {}
    for metric, kind, name, total in rows(
            path, "SELECT m.name, f.kind, f.name, v.sum FROM context_values v JOIN metrics m ON m.id = v.metric "
                  "JOIN contexts c ON c.id = v.context JOIN frames f ON f.id = c.frame WHERE m.name LIKE 'stall.%'"):
        found[metric, kind, name] = found.get((metric, kind, name), 0) + total
    return found


def times(path):
    return sorted(rows(path, "SELECT f.name, v.sum, v.count, v.min, v.max FROM context_values v JOIN metrics m "
                             "ON m.id = v.metric JOIN contexts c ON c.id = v.context JOIN frames f ON f.id = c.frame "
                             "WHERE m.name = 'gpu.time'"))


def facts(path):
    return dict(rows(path, "SELECT key, value FROM environment WHERE key LIKE 'gpu.%'"))


def stalled(folder, *actions, options=(), scenario="", **more):
    """A run with --stalls that succeeded, and whose run folder is gone."""
    made = run_profiled(folder, *actions, options=("--stalls", *options),
                        env={"PLUMB_MOCK": scenario} if scenario else None, **more)
    assert made.done.returncode == 0, made.done.stderr
    assert not list(folder.glob(".plumb-*.run")), "the run folder stayed"
    return made


@pytest.mark.parametrize("release", RELEASES)
def test_samples_belong_to_the_code(tmp_path, release):
    made = stalled(tmp_path, *STALLS, *WORK, release=release)
    assert samples(made.path) == SAMPLES
    assert rows(made.path, "SELECT count(*) FROM code_samples WHERE context IS NOT NULL OR launch_ns IS NOT NULL") == [(0,)]
    assert made.ledger("gpu.stall") == {"received": 279, "attributed": 279}
    assert made.ledger("gpu.code") == {"received": 1, "attributed": 1}
    assert facts(made.path)["gpu.stalls.mode"] == "continuous"
    assert facts(made.path)["gpu.stalls.period_cycles"] == "16384"


def test_code_of_sampled_functions(tmp_path):
    made = stalled(tmp_path, *STALLS, *WORK)
    image = CUBIN.read_bytes()
    assert rows(made.path, "SELECT kind, hash, bytes FROM code_objects WHERE kind = 'cubin'") == \
        [("cubin", hashlib.sha256(image).hexdigest(), len(image))]
    assert rows(made.path, "SELECT name, architecture, is_kernel, bytes, registers, text_bytes FROM code_functions "
                           "ORDER BY name") == [("gather", "sm_90", 1, 768, 12, 768), ("scale", "sm_90", 1, 384, 8, 384)]
    lines = rows(made.path, "SELECT l.offset, l.depth, l.file, l.line, l.inlined FROM code_lines l JOIN code_functions f "
                            "ON f.id = l.code_function WHERE f.name = 'gather' AND l.offset IN (128, 240, 368)")
    source = "/project/kernels.cu"
    assert lines == [(128, 0, source, 21, None), (240, 0, source, 13, "_Z6nearbyf"), (240, 1, source, 22, None),
                     (368, 0, source, 8, None)]


def test_metrics_and_frames_below_kernels(tmp_path):
    made = stalled(tmp_path, *STALLS, *WORK)
    assert values(made.path) == {("stall.memory", "line", "kernels.cu:21"): 200,
                                 ("stall.memory", "line", "kernels.cu:13"): 60,
                                 ("stall.execution", "line", "kernels.cu:8"): 14}
    above = rows(made.path, "SELECT kind, name FROM frames WHERE id IN (SELECT frame FROM contexts WHERE id IN (SELECT "
                            "c.parent FROM contexts c JOIN frames f ON f.id = c.frame WHERE f.name = 'kernels.cu:13'))")
    assert above == [("inline", "_Z6nearbyf")]
    (tmp_path / "plain").mkdir()
    plain = run_profiled(tmp_path / "plain", *STALLS, *WORK)
    assert times(made.path) == times(plain.path)
    assert rows(plain.path, "SELECT count(*) FROM code_samples") == [(0,)]
    report = run_command(PLUMB, "report", made.path, "--metric", "stall.memory", "--by", "line").stdout
    assert "estimated by its time" in report
    first, second = [line.split() for line in report.splitlines() if "kernels.cu:" in line][:2]
    assert (first[0], first[2], second[2]) == ("76.9", "200", "60")
    answer = json.loads(run_command(PLUMB, "report", made.path, "--by", "kernel", "--json").stdout)
    gather, = [row for row in answer["rows"] if row["name"] == "gather"]
    assert gather["inclusive"]["stall.memory"]["sum"] == 260
    answer = json.loads(run_command(PLUMB, "report", made.path, "--metric", "stall.memory", "--json").stdout)
    assert "estimated" in answer["estimate"]
    refused = run_command(PLUMB, "report", made.path, "--metric", "stall.memory", "--window", "loop")
    assert refused.returncode == 1 and "samples of stalls have no times" in refused.stderr


def test_contexts_share_by_time(tmp_path):
    """Two threads' streams are two tracks of one context; the parts add up to all samples."""
    made = stalled(tmp_path, CODE, "stall:gather:192:long_scoreboard:10:10", "launch:gather:3000:1", "launch:gather:1000:2",
                   "launch:gather:1000:3")
    parts = [count for (count,) in rows(made.path, "SELECT v.sum FROM context_values v JOIN metrics m ON m.id = v.metric "
                                                   "WHERE m.name = 'stall.memory'")]
    assert sorted(parts) == [6, 6, 18]


@pytest.mark.parametrize("release", RELEASES)
def test_serialised_samples_belong_to_launches(tmp_path, release):
    made = stalled(tmp_path, *STALLS, *WORK, options=("--stalls-mode=serialised",), release=release)
    assert samples(made.path) == SAMPLES
    launches = rows(made.path, "SELECT f.name, sum(s.count), count(DISTINCT s.context) FROM code_samples s "
                               "JOIN contexts c ON c.id = s.context JOIN frames f ON f.id = c.frame "
                               "WHERE f.kind = 'kernel' GROUP BY s.launch_ns ORDER BY s.launch_ns")
    assert launches == [("gather", 137, 1), ("gather", 137, 1), ("scale", 5, 1)]
    assert facts(made.path)["gpu.stalls.mode"] == "serialised"
    report = run_command(PLUMB, "report", made.path, "--metric", "stall.memory").stdout
    assert "stall.memory" in report and "estimated" not in report


def test_words_that_exclude_each_other(tmp_path):
    """CUPTI's sum says whether the word without suffix counts the samples of the word with it."""
    made = stalled(tmp_path, *STALLS, *WORK, scenario="pc_disjoint=1")
    assert samples(made.path) == SAMPLES


def test_what_is_lost_is_counted(tmp_path):
    made = stalled(tmp_path, *STALLS, *WORK, scenario="pc_dropped=5,pc_system=3")
    assert made.ledger("gpu.stall") == {"received": 279 + 15 + 9, "attributed": 279, "cupti_dropped": 15,
                                        "system_kernel": 9}
    assert samples(made.path) == SAMPLES


def test_full_buffer_of_the_gpu(tmp_path):
    made = stalled(tmp_path, *STALLS, *WORK, "sleep:400", scenario="pc_full=2")
    assert samples(made.path) == SAMPLES
    assert made.ledger("gpu.stall.fetch")["hardware_full"] >= 1


@pytest.mark.parametrize("scenario", ["pc_batch=1", "pc_names=1", "pc_batch=2,pc_names=1"])
def test_many_fetches(tmp_path, scenario):
    """What does not fit into one buffer comes with the next; names may be shared."""
    made = stalled(tmp_path, *STALLS, "repeat:50", WORK[0], WORK[2], scenario=scenario)
    assert samples(made.path)["gather", 192, "long_scoreboard", 0] == 50 * 80


def test_without_permission(tmp_path):
    made = stalled(tmp_path, *STALLS, *WORK, scenario="pc_refuse=35")
    why = facts(made.path)["gpu.stalls.off"]
    assert "administrators" in why and "NVreg_RestrictProfilingToAdminUsers=0" in why and "SYS_ADMIN" in why
    assert why in " ".join(run_command(PLUMB, "report", made.path).stdout.split())
    assert samples(made.path) == {} and [row[0] for row in times(made.path)] == ["gather", "scale"]


def test_other_refusals(tmp_path):
    made = stalled(tmp_path, *STALLS, *WORK, scenario="pc_refuse=27")
    assert "Volta" in facts(made.path)["gpu.stalls.off"]
    assert len(times(made.path)) == 2


def test_programs_own_profiler(tmp_path):
    """The slot is given up, and so is sampling, until the program is done."""
    made = stalled(tmp_path, *STALLS, WORK[0], "profile:begin", "launch:gather:9000", "profile:end", "profile:leave",
                   "sleep:600", WORK[1])
    assert samples(made.path)["gather", 192, "long_scoreboard", 0] == 160
    assert "gpu.cuda.gap" in facts(made.path)
    assert "profiled 1 kernels" in made.done.stdout


def test_pause(tmp_path):
    made = stalled(tmp_path, *STALLS, WORK[0], "sleep:1500", WORK[1], options=("--start-after", "0.7"))
    assert samples(made.path)["gather", 192, "long_scoreboard", 0] == 80


def test_samples_of_a_pause_are_counted(tmp_path):
    """Sampling is not switched off: CUPTI can block the program then."""
    made = stalled(tmp_path, *STALLS, WORK[0], "sleep:1500", WORK[1], "sleep:300", options=("--duration", "0.7"))
    assert samples(made.path)["gather", 192, "long_scoreboard", 0] == 80
    assert rows(made.path, "SELECT count > 0 FROM ledger WHERE source = 'gpu.stall' AND fate = 'paused'") == [(1,)]


def test_modules_and_contexts_that_go(tmp_path):
    made = stalled(tmp_path, *STALLS, WORK[0], "unmodule", CODE, WORK[1], "destroy:0", WORK[2])
    assert samples(made.path) == SAMPLES
    assert rows(made.path, "SELECT count(*) FROM code_objects WHERE kind = 'cubin'") == [(1,)]


def test_graphs_are_timed_by_node(tmp_path):
    made = stalled(tmp_path, CODE, LOAD, "capture:3:gather:2000", "replay:2")
    assert samples(made.path)["gather", 192, "long_scoreboard", 0] == 6 * 80
    assert values(made.path) == {("stall.memory", "line", "kernels.cu:21"): 600}
    assert [row[:3] for row in times(made.path)] == [("gather", 12000, 6)]


def test_fork(tmp_path):
    made = stalled(tmp_path, *STALLS, WORK[0], "fork:gather:100", WORK[1])
    assert "child 0" in made.done.stdout
    assert samples(made.path)["gather", 192, "long_scoreboard", 0] == 160


def test_recordings_inside_a_program(tmp_path):
    """plumb.profile(stalls=10): each has its own samples. A module of an earlier recording is not known."""
    environment = {**mock_environment("13.0"), "CUBIN": str(CUBIN)}
    seen, _ = session(sys.executable, "stalls", tmp_path, environment)
    assert seen == [[10, 10, None], [20, 20, 20], [30, 30, 30], 0, 10]


def test_several_devices(tmp_path):
    made = stalled(tmp_path, CODE, LOAD, "launch:gather:1000:0:0", "launch:gather:1000:0:1", scenario="devices=2")
    assert sorted(rows(made.path, "SELECT device, sum(count) FROM code_samples GROUP BY device")) == [(0, 100), (1, 100)]


def test_code_that_is_not_known(tmp_path):
    """Such samples are kept, and the ledger says what is missing."""
    made = stalled(tmp_path, "stall:gather:16:wait:3:3", CODE, "stall:nowhere:16:wait:5:5", "stall:gather:4096:wait:7:7",
                   "launch:gather:1000", "launch:nowhere:1000")
    assert samples(made.path) == {("gather", 16, "wait", 0): 3, ("nowhere", 16, "wait", 0): 5,
                                  ("gather", 4096, "wait", 0): 7}
    assert made.ledger("gpu.stall") == {"received": 15, "attributed": 15, "unknown_module": 3, "unknown_function": 5,
                                        "outside_code": 7}
    assert values(made.path)["stall.execution", "kernel", "nowhere"] == 5


def test_code_that_finds_no_room(tmp_path):
    """A module that is larger than what --limit leaves is not kept, and its samples are."""
    image = bytearray(CUBIN.read_bytes()) + bytes(1 << 20)
    large = tmp_path / "large.cubin"
    large.write_bytes(image[:1 << 20])
    made = stalled(tmp_path, f"module:{large}", LOAD, WORK[0], options=("--limit", "1M"))
    assert made.ledger("gpu.code") == {"received": 1, "region_full": 1}
    assert made.ledger("gpu.stall") == {"received": 100, "attributed": 100, "unreadable_code": 100}


def test_joined(tmp_path):
    paths = []
    for name in "ab":
        (tmp_path / name).mkdir()
        paths.append(stalled(tmp_path / name, *STALLS, *WORK).path)
    joined = tmp_path / "both.plumb"
    done = run_command(PLUMB, "settle", *paths, "-o", joined)
    assert done.returncode == 0, done.stderr
    assert samples(joined) == {key: 2 * count for key, count in SAMPLES.items()}
    for table in ("code_functions", "code_lines", "code_references"):
        assert rows(joined, f"SELECT count(*) FROM {table}") == rows(paths[0], f"SELECT count(*) FROM {table}"), table
    assert rows(joined, "SELECT count(DISTINCT process) FROM code_samples") == [(2,)]


@pytest.mark.parametrize("options, expected", [
    (("--stalls=4",), "--stalls takes the period as a power of two, 5 to 31"),
    (("--stalls=32",), "--stalls takes the period as a power of two, 5 to 31"),
    (("--stalls", "--no-gpu"), "--stalls needs records of GPU work"),
    (("--stalls", "--graphs=replays"), "leave out --graphs=replays"),
    (("--stalls-mode=serialised",), "add --stalls"),
])
def test_options(tmp_path, options, expected):
    done = run_command(PLUMB, "run", *options, "-o", tmp_path / "a.plumb", "--", "true")
    assert done.returncode == 125 and expected in done.stderr
    assert done.stderr.count("\n") == 1


def test_records_that_are_damaged(tmp_path):
    """Nothing in a region is trusted: not a string that is none, a number that cannot be, a file that is no module."""
    folder = tmp_path / "a.run"
    folder.mkdir()
    region = Region(pid=7)
    track = region.thread(7)
    node = region.node(0, "kernel", "gather")
    region.value(node, track, 10)
    region.add(28, struct.pack("<QQQII", 1, 0x0123456789ABCDEF, 5, 1, 0))
    region.add(29, struct.pack("<II5Q", 16, 1, 10, 10, 10, 0, 0))
    name, reason = region.text("gather"), region.text("smsp__pcsamp_warps_issue_stalled_wait")
    for module, offset, function, word, call, launch, count in (
            (1, 16, name, reason, 0, 0, 3), (1, 1 << 63, name, reason, 0, 0, 3), (1, 16, 3, reason, 0, 0, 3),
            (1, 16, name, 12345678, 0, 0, 3), (1, 16, name, reason, 7654321, 1 << 63, 3), (1, 16, name, reason, 0, 0, 1 << 63)):
        region.add(6, struct.pack("<QQ6IQQ", module, offset, function, word, 0, 0, 9999, call, launch, count))
    region.add(6, b"short")
    region.write(folder / "7.region")
    (folder / "0123456789abcdef.cubin").write_bytes(b"\x7fELF and nothing")
    done = run_command(PLUMB, "settle", folder, "-o", tmp_path / "a.plumb")
    assert done.returncode == 0, done.stderr
    assert samples(tmp_path / "a.plumb") == {("gather", 16, "wait", 1): 6}


@pytest.mark.parametrize("mode", ["continuous", "serialised"])
def test_many_threads(tmp_path, mode):
    """Threads that launch, load modules and fetch at once lose no sample."""
    made = stalled(tmp_path, CODE, LOAD, CALLED, "threads:12:200:gather:10", "unmodule", CODE, "threads:12:200:gather:10",
                   options=("--stalls-mode", mode, "--flush-ms", "1"))
    assert samples(made.path) == {("gather", 192, "long_scoreboard", 0): 4800 * 80,
                                  ("gather", 192, "long_scoreboard", 1): 4800 * 20, ("gather", 640, "wait", 1): 4800 * 7}
    total = 4800 * 107
    assert made.ledger("gpu.stall") == {"received": total, "attributed": total}
    if mode == "serialised":
        assert rows(made.path, "SELECT count(*) FROM code_samples WHERE context IS NULL") == [(0,)]


def test_very_many_launches(tmp_path):
    """Launches are told apart until their records take a part of --limit; then those of a call are put together."""
    made = stalled(tmp_path, CODE, LOAD, "repeat:3000", "launch:gather:10", options=("--stalls-mode=serialised", "--limit=4M"))
    assert samples(made.path) == {("gather", 192, "long_scoreboard", 0): 240000, ("gather", 192, "long_scoreboard", 1): 60000}
    (launches, contexts, total), = rows(made.path, "SELECT count(DISTINCT launch_ns), count(DISTINCT context), count(*) "
                                                   "FROM code_samples WHERE context IS NOT NULL")
    assert 1500 < launches < 2500 and contexts == 1 and 2 * launches < total <= 2 * launches + 2
    assert made.ledger("gpu.stall") == {"received": 300000, "attributed": 300000}


def module(functions):
    """An ELF image of GPU code with functions of those sizes, all zeros."""
    names, sections, data = b"\0.shstrtab\0", [], b""
    for name, size in functions.items():
        sections.append((len(names), 64 + len(data), size))
        names += f".text.{name}\0".encode()
        data += bytes(size)
    table = 64 + len(data)
    headers = bytes(64) + struct.pack("<IIQQQQIIQQ", 1, 3, 0, 0, table, len(names), 0, 0, 1, 0)
    for name, offset, size in sections:
        headers += struct.pack("<IIQQQQIIQQ", name, 1, 6, 0, offset, size, 0, 0, 128, 0)
    start = table + len(names) + -(table + len(names)) % 8
    head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, start, 0x5a055a, 64, 0, 0,
                                                                 64, len(headers) // 64, 1)
    return (head + data + names).ljust(start, b"\0") + headers


def test_least_sampled_functions_lose_their_code(tmp_path):
    """A profile keeps 20 MB of machine code: of three functions of 8 MB, the two with the most samples."""
    folder = tmp_path / "a.run"
    folder.mkdir()
    counts = {"few": 5, "most": 100, "some": 50}
    image = module(dict.fromkeys(counts, 8 << 20))
    region = Region(pid=7)
    region.value(region.node(0, "kernel", "most"), region.thread(7), 10)
    region.add(28, struct.pack("<QQQII", 1, 0x0123456789ABCDEF, len(image), 1, 0))
    reason = region.text("smsp__pcsamp_warps_issue_stalled_wait")
    for number, (name, count) in enumerate(counts.items()):
        region.add(6, struct.pack("<QQ6IQQ", 1, 16, region.text(name), reason, number, 0, 0, 0, 0, count))
    region.write(folder / "7.region")
    (folder / "0123456789abcdef.cubin").write_bytes(image)
    path = tmp_path / "a.plumb"
    done = run_command(PLUMB, "settle", folder, "-o", path)
    assert done.returncode == 0, done.stderr
    assert rows(path, "SELECT name, bytes, text_bytes FROM code_functions ORDER BY name") == [
        ("few", 8 << 20, None), ("most", 8 << 20, 8 << 20), ("some", 8 << 20, 8 << 20)]
    assert {key[0]: count for key, count in samples(path).items()} == counts
    assert rows(path, "SELECT fate, count FROM ledger WHERE source = 'gpu.function' ORDER BY fate") == [
        ("attributed", 3), ("code_bound", 1), ("received", 3)]
