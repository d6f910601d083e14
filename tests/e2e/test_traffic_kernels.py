# SPDX-License-Identifier: Apache-2.0
"""`plumb run --traffic=full` and sampled on the stand-in Compute Sanitizer, from the option to the finished profile;
what is counted has its tests in tests/unit/test_traffic_kernels.c."""
import json
import sqlite3
import sys

import pytest
from conftest import BUILD, PLUMB, ROOT, run_command

sys.path.insert(0, str(ROOT / "bench/traffic"))
import run as bench  # noqa: E402

PROGRAM = BUILD / "mock/13.0/traffic"


def record(folder, *program, traffic="full", options=(), env=None):
    path = folder / "run.plumb"
    done = run_command(PLUMB, "run", f"--traffic={traffic}", "-o", path, *options, "--", PROGRAM, *program, env=env)
    assert done.returncode == 0, done.stderr
    return done.stderr, path


def test_transfers_of_kernels_are_in_the_profile(tmp_path):
    said, path = record(tmp_path, "ring", "2", "1000", "4", "2")
    assert "GPU launches without times" in said
    assert "times on the GPU are not recorded" in said
    with sqlite3.connect(path) as db:
        rows = db.execute(
            "SELECT t.kind, route, f.ordinal, d.ordinal, width, accesses, warps, t.bytes, error_bytes, offset "
            "FROM transfers t JOIN devices f ON from_device = f.id JOIN devices d ON to_device = d.id "
            "ORDER BY f.ordinal").fetchall()
        assert rows == [("store", "peer access", 0, 1, 4, 1000, 32, 4000, 0.0, 32),
                        ("store", "peer access", 1, 0, 4, 1000, 32, 4000, 0.0, 32)]
        assert {tuple(row) for row in db.execute(
            "SELECT kind, allocations, bytes, touched_bytes, touchable_bytes FROM objects")} == {
                ("device memory", 1, 1 << 20, 4000, 1 << 20)}
        assert db.execute("SELECT SUM(accesses), MAX(offset + width) FROM object_bins").fetchone() == (2000, 4096)
        assert db.execute("SELECT COUNT(*) FROM transfers WHERE context IS NULL").fetchone() == (0,)
        assert db.execute("SELECT value FROM environment WHERE key = 'traffic.mode'").fetchall() == [("full",)]
    # What the runner of bench/traffic reads of such a profile.
    assert {key: row[:2] for key, row in bench.transfers(path).items()} == {
        ("store", 0, 1): [4000, 1000], ("store", 1, 0): [4000, 1000]}
    assert any("Compute Sanitizer" in note for note in bench.notes(path))
    assert bench.objects(path) == [(1, 1 << 20)]


def test_copies_say_what_memory_is_at_both_ends(tmp_path):
    """Memory of the host that CUDA did not allocate is no object, but it is the host's."""
    _, path = record(tmp_path, "host", "2")
    found = json.loads(run_command(PLUMB, "traffic", path, "--json").stdout)
    assert {(pair["kind"], pair["from"], pair["to"]): pair["bytes"] for pair in found["pairs"]} == {
        ("copy", 0, 1): 12345 + 100 + 200 + 7000, ("copy", 2, 0): 4096, ("copy", 1, 2): 128, ("store", 0, 2): 512}
    assert [party["label"] for party in found["parties"]][:3] == ["GPU 0", "GPU 1", "host"]
    lines = run_command(PLUMB, "traffic", path, "--by", "line").stdout
    assert "copy device→device" in lines and "copy pinned→device" in lines and "copy device→host" in lines


def test_a_sample_has_its_error(tmp_path):
    _, path = record(tmp_path, "unequal", "2", "400", traffic="sampled:0.25", env={"PLUMB_TRAFFIC_SEED": "3"})
    (size, _, variance), = bench.transfers(path).values()
    truth = 400 // 8 * 255 * 32 * 4
    assert variance > 0
    assert abs(size - truth) < 4 * variance ** 0.5
    with sqlite3.connect(path) as db:
        ledger = dict(db.execute("SELECT fate, count FROM ledger WHERE source = 'traffic.launch'"))
        facts = db.execute("SELECT key, value FROM environment WHERE key LIKE 'traffic.%' AND key <> 'traffic.links' ORDER BY key")
        assert facts.fetchall() == [("traffic.mode", "sampled:0.25"), ("traffic.seed", "3")]
    assert ledger["not_drawn"] + ledger["attributed"] == ledger["received"] == 400


def test_without_the_sanitizer_one_line_says_what_to_do(tmp_path):
    said, _ = record(tmp_path, "ring", "2", "100", "4", "2", env={"PLUMB_SANITIZER": "/nothing/here.so"})
    assert "PLUMB_SANITIZER is /nothing/here.so" in said


@pytest.mark.parametrize(("options", "why"), [
    (["--traffic=full", "--gpu=activity"], "leave out --gpu"),
    (["--traffic=full", "--stalls"], "contradicts --stalls"),
    (["--gpu=traffic"], "--traffic=full or sampled:RATE"),
    (["--gpu=traffic", "--traffic=calls"], "leave out --gpu=traffic"),
    (["--traffic=full", "--no-gpu"], "leave out --no-gpu"),
])
def test_options_that_contradict_each_other(options, why):
    done = run_command(PLUMB, "run", *options, "--", "true")
    assert done.returncode == 125
    assert why in done.stderr
    assert done.stderr.count("\n") <= 2
