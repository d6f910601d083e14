# SPDX-License-Identifier: Apache-2.0
"""Halos that kernels fill, and read only in part: the finding on tables, and from `plumb run --traffic-own` on the stand-in
Compute Sanitizer."""
import json
import sys

import pytest
from conftest import BUILD, PLUMB, ROOT, run_command
from traffictest import Traffic

sys.path.insert(0, str(ROOT / "bench/traffic"))
import demos  # noqa: E402

PROGRAM = BUILD / "mock/13.0/traffic"
SIZE = 1 << 20  # of a ghost
TIMES = 10


def halo(way="pull", filled=SIZE, read=1 << 12, times=TIMES, own=True, stores=None):
    """Two devices: each gets FILLED bytes of the other's field into its ghost, TIMES times, and reads READ bytes of it."""
    made = Traffic(2)
    load, store, step = (made.line(kernel, offset, [("halo.cu", line)]) for kernel, offset, line in
                         (("exchange", 0x40, 21), ("exchange", 0x50, 22), ("step", 0x60, 35)))
    fields = [made.object(i, 4 * SIZE, at=("halo.py", 8), name=f"field{i}", touched=4 * SIZE) for i in range(2)]
    ghosts = [made.object(i, SIZE, at=("halo.py", 9), name=f"ghost{i}", touched=filled) for i in range(2)]
    words = filled // 4 * times
    for i in range(2):
        if way == "pull":
            made.access("load", i, 1 - i, load, words, 4, object=fields[1 - i])
            made.access("store", i, i, store, words if stores is None else stores, 4, object=ghosts[i])
        else:
            made.access("store", i, 1 - i, store, words, 4, object=ghosts[1 - i])
        made.access("load", i, i, step, read // 4 * times, 4, object=ghosts[i])
        writer = i if way == "pull" else 1 - i
        for at in range(0, filled, 1024):
            made.bin(ghosts[i], writer, "store", at, 1024, 256 * times)
        if own:
            made.bin(fields[i], i, "load", 0, 4 * SIZE, 1000)
            for at in range(0, read, 1024):
                made.bin(ghosts[i], i, "load", at, 1024, 256 * times)
    return made


def answer_of(path):
    done = run_command(PLUMB, "traffic", path, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def halos(path):
    return [f for f in answer_of(path)["findings"] if f["evidence"]["cause"] == "halo"]


@pytest.mark.parametrize("way", ["pull", "push"])
def test_a_halo_that_is_too_wide(way, tmp_path):
    found = halos(halo(way).write(tmp_path / "t.plumb"))
    assert sorted(f["evidence"]["object"] for f in found) == ["ghost0", "ghost1"]
    one = next(f for f in found if f["evidence"]["object"] == "ghost0")
    evidence = one["evidence"]
    assert (evidence["from"], evidence["owner"], evidence["allocated_at"]) == ("GPU 1", "GPU 0", "halo.py:9")
    assert (evidence["bytes"], evidence["filled_bytes"], evidence["read_bytes"]) == (TIMES * SIZE, SIZE, 1 << 12)
    assert evidence["by"] == ("loads" if way == "pull" else "stores")
    assert evidence["saving_bytes"] == pytest.approx(TIMES * (SIZE - (1 << 12)), rel=1e-5)
    assert evidence["reached_at"][0]["line"] == ("halo.cu:21" if way == "pull" else "halo.cu:22")
    assert "ghost0" in one["title"] and "read only 4.00 KiB of the 1.00 MiB" in one["title"]


@pytest.mark.parametrize("made", [
    halo(read=SIZE), halo("push", read=SIZE),  # all of it is read
    halo("push", own=False),                   # own accesses were not looked at
    halo(times=2), halo("push", times=2),      # not again and again
    halo(stores=SIZE),                         # the kernel that loads does not copy: it computes
], ids=["pulled and read", "pushed and read", "not looked at", "twice pulled", "twice pushed", "no copy"])
def test_no_wide_halo(made, tmp_path):
    assert halos(made.write(tmp_path / "t.plumb")) == []


def test_what_is_copied_out_may_be_read(tmp_path):
    made = halo("push")
    for ghost in (2, 3):
        made.copy(ghost - 2, None, 1, SIZE, from_object=ghost)
    assert halos(made.write(tmp_path / "t.plumb")) == []


def test_a_sample_says_nothing(tmp_path):
    made = halo()
    made.mode = "sampled:0.5"
    assert halos(made.write(tmp_path / "t.plumb")) == []


def test_unseen_reads_lower_the_confidence(tmp_path):
    made = halo()
    made.environment.append((0, "traffic.tensor.gap", "3 instructions of loaded GPU code copy by tensor maps"))
    assert {f["confidence"] for f in halos(made.write(tmp_path / "t.plumb"))} == {0.35}


def test_own_accesses_are_no_traffic(tmp_path):
    """They are in no list: neither pairs, lines, kernels, routes nor what an object moved."""
    answer = answer_of(halo().write(tmp_path / "t.plumb"))
    moved = 2 * TIMES * SIZE
    assert answer["totals"]["kernels"]["bytes"] == moved
    assert answer["matrices"]["initiated"] == [[0, moved // 2], [moved // 2, 0]]
    assert {(p["initiator"], p["owner"]) for p in answer["pairs"]} == {(0, 1), (1, 0)}
    assert [line["label"] for line in answer["lines"]] == ["halo.cu:21"]
    assert [kernel["mangled"] for kernel in answer["kernels"]] == ["exchange"]
    assert sum(route["bytes"] for route in answer["routes"]) == moved
    assert {o["name"]: o["read_bytes"] + o["written_bytes"] for o in answer["objects"]} == {
        "field0": moved // 2, "field1": moved // 2, "ghost0": 0, "ghost1": 0}


@pytest.mark.parametrize("way", ["0", "1"], ids=["pull", "push"])
def test_from_the_option_to_the_finding(way, tmp_path):
    def record(read, *options):
        path = tmp_path / "run.plumb"
        done = run_command(PLUMB, "run", "--traffic=full", *options, "-o", path, "--", PROGRAM, "ghost", "2", "131072", read, way)
        assert done.returncode == 0, done.stderr
        return path
    found = halos(record("1024", "--traffic-own"))
    assert {f["evidence"]["from"] for f in found} == {"GPU 0", "GPU 1"}
    assert all((f["evidence"]["filled_bytes"], f["evidence"]["read_bytes"]) == (1 << 19, 1 << 12) for f in found)
    assert halos(record("131072", "--traffic-own")) == []
    assert halos(record("1024")) == []


def test_the_demos_read_such_answers(tmp_path):
    answer = answer_of(halo().write(tmp_path / "t.plumb"))
    assert demos.has_finding(answer, "halo", ["halo.py:9"], "halo.cu:21") == []
    assert "was allocated at halo.py:9" in demos.has_finding(answer, "halo", ["halo.py:7"], "halo.cu:21")[0]
    assert "it is reached at" in demos.has_finding(answer, "halo", ["halo.py:9"], "halo.cu:99")[0]
    assert "no finding pointers" in demos.has_finding(answer, "pointers", [], None)[0]
    assert demos.devices(answer, "flow") == [[0, TIMES * SIZE], [TIMES * SIZE, 0]]
    assert demos.partners([[0, 9, 0, 9], [9, 0, 9, 0], [0, 9, 0, 0.5], [0.5, 0, 9, 0]]) == [1, 1, 2, 2]
    assert all(demos.line_of(*mark) for mark in (("bfs.cu", "// the array of addresses"), ("halo.cu", "// the halo is moved")))


def test_the_option_needs_accesses():
    for options in (["--traffic-own"], ["--traffic", "--traffic-own"]):
        done = run_command(PLUMB, "run", *options, "--", "true")
        assert done.returncode == 125 and "--traffic-own" in done.stderr
