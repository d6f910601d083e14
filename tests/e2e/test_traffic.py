# SPDX-License-Identifier: Apache-2.0
"""plumb traffic: numbers equal to formulas, findings that fire and that stay silent, the join with stalls, hostile files."""
import csv
import hashlib
import io
import json
import math
import pathlib
import sqlite3

import pytest

from conftest import PLUMB, run_command
from traffictest import ORACLES, Traffic, all_to_all, halo, mixed_warps, pointer_array, ring_load, ring_store
from whytest import CUBIN, Function, profile as stalls_profile

SUM = {"bytes": int, "accesses": int, "warps": (int, type(None)), "error_bytes": (int, float, type(None))}
TEXT, NUMBER = (str, type(None)), (int, float, type(None))
PLACE = {"user_file": TEXT, "user_line": (int, type(None)), "user_function": TEXT}
KEYS = {
    "parties": {"label": str, "kind": str, "device": (int, type(None)), "name": TEXT, "uuid": TEXT,
                "ordinal": (int, type(None)), "rank": (int, type(None))},
    "pairs": {"initiator": int, "owner": int, "from": int, "to": int, "direction": TEXT, "kind": str, "route": str, **SUM},
    "objects": {"id": int, "label": str, "name": TEXT, "kind": TEXT, "owner": (int, type(None)), "pid": (int, type(None)),
                "within": (int, type(None)), "allocated_at": TEXT, **PLACE, "context": (list, type(None)), "allocations": int,
                "bytes": int, "most_bytes": int, "touched_bytes": (int, type(None)), "touchable_bytes": (int, type(None)),
                "touched_share": (int, float, type(None)), "read_bytes": int, "written_bytes": int, "accesses": int,
                "error_bytes": (int, float, type(None)), "uses": list, "histogram": list},
    "lines": {"label": str, "file": TEXT, "line": (int, type(None)), "inlined": list, "function": TEXT, "frame": TEXT, **PLACE,
              "context": (list, type(None)), **SUM, "lanes_per_warp": (int, float, type(None)), "moves": list,
              "instructions": list},
    "kernels": {"name": str, "mangled": str, **PLACE, "context": (list, type(None)), "launches": (int, type(None)),
                "gpu_ns": (int, type(None)), **SUM, "moves": list},
    "routes": {"route": str, "kind": str, "link": TEXT, **SUM, "speed": NUMBER, "link_bytes_per_second": NUMBER,
               "link_share": NUMBER},
    "links": {"one": int, "other": int, "label": str, "kind": str, "path": TEXT, "links": (int, type(None)),
              "generation": (int, type(None)), "bytes_per_second": (int, type(None)), "peer_access": (bool, type(None)),
              "there": dict, "back": dict},
    "coverage": {"source": str, "fate": str, "reason": TEXT, "unit": str, "seen": bool, "count": int},
    "environment": {"pid": (int, type(None)), "key": str, "value": str},
}


def text_of(path, *words, code=0):
    done = run_command(PLUMB, "traffic", path, *words, env={"COLUMNS": "120", "PATH": "/usr/bin:/bin"})
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def json_of(path, *words):
    return json.loads(text_of(path, "--json", *words))


def example_of(key):
    """The first row of KEY in the example of docs/traffic.md."""
    text = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "traffic.md").read_text()
    rows = json.loads(text.split("```json")[1].split("```")[0])[key]
    return rows[0] if isinstance(rows, list) else rows


def causes(answer):
    return sorted(f["evidence"]["cause"] for f in answer["findings"])


def made(tmp_path, traffic, name="t.plumb"):
    return json_of(traffic.write(tmp_path / name))


# ---- numbers ----

@pytest.mark.parametrize("n", [2, 4, 8])
@pytest.mark.parametrize("name, program", ORACLES)
def test_oracles(name, program, n, tmp_path):
    traffic, expected = program(n)
    answer = made(tmp_path, traffic)
    assert [row[:n] for row in answer["matrices"]["initiated"][:n]] == expected
    between = sum(map(sum, expected))
    assert sum(p["bytes"] for p in answer["pairs"] if p["from"] != p["to"] and max(p["from"], p["to"]) < n) == between
    flow = [[0] * n for _ in range(n)]
    for p in answer["pairs"]:
        reads = p["kind"] in ("load", "async copy", "bulk load")
        if max(p["from"], p["to"]) < n:
            assert (p["from"], p["to"]) == ((p["owner"], p["initiator"]) if reads else (p["initiator"], p["owner"]))
            assert p["direction"] == ("from owner" if reads else "to owner")
            flow[p["from"]][p["to"]] += p["bytes"]
    assert [row[:n] for row in answer["matrices"]["flow"][:n]] == flow
    for total in ("objects", "lines", "routes", "kernels"):
        for row in answer[total]:
            assert row["accesses"] >= 0
    assert sum(line["bytes"] for line in answer["lines"]) == sum(p["bytes"] for p in answer["pairs"]) == \
        sum(r["bytes"] for r in answer["routes"])
    assert causes(answer) == (["pointers"] if name == "pointer_array" else [])


def test_ring_by_line_object_and_kernel(tmp_path):
    traffic, _ = ring_store(4, count=1024, size=8)
    traffic.time("ring_store", 0, 1_000_000, 10)
    answer = made(tmp_path, traffic)
    line, = answer["lines"]
    assert (line["file"], line["line"], line["bytes"], line["lanes_per_warp"]) == ("/home/ada/ring.cu", 12, 4 * 8192, 32)
    assert line["instructions"] == [{"function": "ring_store", "offset": 0x40, "kind": "store", "width": 8, "bytes": 4 * 8192,
                                     "accesses": 4096, "warps": 128, "error_bytes": 0}]
    assert [(m["initiator"], m["owner"], m["bytes"]) for m in sorted(line["moves"], key=lambda m: m["initiator"])] == \
        [(0, 1, 8192), (1, 2, 8192), (2, 3, 8192), (3, 0, 8192)]
    for o in answer["objects"]:
        assert (o["written_bytes"], o["read_bytes"], o["touched_share"], o["allocated_at"]) == (8192, 0, 1, "ring.cu.py:5")
        use, = o["uses"]
        assert use["initiator"] == (o["owner"] - 1) % 4 and use["writes"]
        bin, = o["histogram"]
        assert (bin["offset"], bin["width"], bin["accesses"], bin["kind"]) == (0, 8192, 1024, "store")
    kernel, = answer["kernels"]
    assert (kernel["name"], kernel["launches"], kernel["gpu_ns"], kernel["bytes"]) == ("ring_store", 10, 1_000_000, 4 * 8192)


def test_inlined_lines_are_apart(tmp_path):
    """One helper that two lines call is two rows, with the lines that called it."""
    traffic = Traffic(2)
    for i, line in enumerate((44, 47)):
        traffic.access("store", 0, 1, traffic.line("k", 0x10 + 0x20 * i, [("put.h", 9), ("halo.cu", line)]), 32 + i, 4)
    answer = made(tmp_path, traffic)
    assert [(r["label"], r["inlined"][0]["line"], r["inlined"][0]["function"]) for r in answer["lines"]] == \
        [("put.h:9, inlined at halo.cu:47", 47, "inner0"), ("put.h:9, inlined at halo.cu:44", 44, "inner0")]


def test_kernel_without_lines_has_its_launch(tmp_path):
    traffic = Traffic(2)
    context = traffic.context(traffic.python("train.py", 77), ("operator", "c10d::allreduce_"), ("kernel", "ncclDevKernel"))
    traffic.access("store", 0, 1, (context, None, None), 64, 16)
    answer = made(tmp_path, traffic)
    line, = answer["lines"]
    assert (line["label"], line["user_line"], line["frame"]) == ("ncclDevKernel at train.py:77", 77, "ncclDevKernel")
    assert line["context"] == ["main", "c10d::allreduce_", "ncclDevKernel"]
    assert answer["kernels"][0]["name"] == "ncclDevKernel"


def test_logical_bytes_are_apart(tmp_path):
    """A send and its receive are one movement, and no part of what kernels moved."""
    traffic = Traffic(2, mode="calls")
    traffic.call("send", 0, 0, 1, 10, 1000)
    traffic.call("receive", 1, 0, 1, 10, 1000)
    traffic.call("send", 1, 1, 0, 3, 7)
    traffic.call("collective", 0, 0, None, 5, 4096)
    answer = made(tmp_path, traffic)
    assert answer["matrices"]["logical"] == [[0, 10_000], [21, 0]]
    assert answer["matrices"]["initiated"] == [[0, 0], [0, 0]]
    assert answer["totals"]["kernels"]["bytes"] == answer["totals"]["copies"]["bytes"] == 0
    assert [p["label"] for p in answer["parties"]] == ["GPU 0", "GPU 1"]
    text = text_of(tmp_path / "t.plumb")
    assert "were asked to move" in text and "unknown" not in text


def test_the_host_is_a_party(tmp_path):
    traffic = Traffic(2)
    pinned = traffic.object(None, 4096, at=("a.py", 1), kind="pinned host memory")
    traffic.copy(None, 0, 2, 100)
    traffic.copy(1, None, 2, 50)
    traffic.access("load", 1, None, traffic.line("k", 0, [("k.cu", 1)]), 32, 4, object=pinned, route="host memory")
    answer = made(tmp_path, traffic)
    assert [p["kind"] for p in answer["parties"]] == ["device", "device", "host"]
    assert answer["matrices"]["flow"] == [[0, 0, 0], [0, 0, 100], [200, 128, 0]]
    assert answer["matrices"]["initiated"] == [[0, 0, 200], [0, 0, 228], [0, 0, 0]]


def test_an_unknown_end_is_not_the_host(tmp_path):
    traffic = Traffic(2)
    traffic.access("load", 0, None, traffic.line("k", 0, [("k.cu", 1)]), 32, 4, route="unknown")
    answer = made(tmp_path, traffic)
    assert [p["kind"] for p in answer["parties"]] == ["device", "device", "unknown"]
    assert answer["matrices"]["flow"][2][0] == 128


def test_sampled_errors_add_as_squares(tmp_path):
    traffic = Traffic(2, mode="sampled:0.1")
    line = traffic.line("k", 0, [("k.cu", 1)])
    traffic.access("store", 0, 1, line, 1 << 20, 4, error=30000.0)
    traffic.access("store", 1, 0, line, 1 << 20, 4, error=40000.0)
    answer = made(tmp_path, traffic)
    assert answer["totals"]["kernels"]["error_bytes"] == 50000
    assert answer["lines"][0]["error_bytes"] == 50000
    text = text_of(tmp_path / "t.plumb")
    assert "8.00 MiB ± 48.8 KiB" in text and "sampled:0.1" in text


@pytest.mark.parametrize("n", [1, 2, 8, 9, 72])
def test_any_number_of_gpus(n, tmp_path):
    traffic, expected = ring_store(n, count=1024) if n > 1 else (Traffic(1, mode="calls"), [[0]])
    if n == 1:
        traffic.copy(None, 0, 3, 1000)
    path = traffic.write(tmp_path / "t.plumb")
    answer = json_of(path)
    assert [row[:n] for row in answer["matrices"]["initiated"][:n]] == expected
    text = text_of(path)
    assert all(len(line) <= 120 for line in text.replace(str(path), path.name).splitlines())
    assert ("the greatest of 72 pairs" in text) == (n == 72)


def test_the_first_lines_name_the_cause(tmp_path):
    text = text_of(pointer_array(8)[0].write(tmp_path / "t.plumb"))
    lines = text.splitlines()
    assert "700,000 loads of 8 bytes by single lanes" in lines[2]
    head = " ".join(" ".join(lines[:4]).split())
    assert "flag_ptrs (64 B, GPU 7, allocated at bfs.py:17), at bfs.cu:72" in head
    assert len(lines) <= 60
    objects = text.split("\n objects\n")[1].split("\n\n")[0].splitlines()
    assert [line.split()[2] for line in objects[1:]] == ["queue*", "flag_ptrs", "flag*"]  # one row for eight alike
    assert text_of(tmp_path / "t.plumb", "--by", "object").count("queue") == 8


def late_ranks(times=10):
    """Rank 1 comes 3 ms late to each all-reduce of 64 MiB, which then takes 1 ms."""
    traffic = Traffic(2, mode="calls", ranks=True)
    for i in range(times):
        start = 10**9 + i * 10**7
        traffic.collective(0, i, start, start + 4 * 10**6, 1 << 26)
        traffic.collective(1, i, start + 3 * 10**6, start + 4 * 10**6, 1 << 26)
    return traffic


def test_collectives(tmp_path):
    """Who comes last, how late and how often; bandwidths as NCCL's tests define them."""
    answer = made(tmp_path, late_ranks())
    row, = answer["collectives"]
    assert (row["name"], row["group"], row["size"], row["datatype"]) == ("AllReduce", "group0", 2, "ncclFloat32")
    assert (row["algorithm"], row["protocol"], row["bytes"], row["count"], row["calls"]) == ("RING", "SIMPLE", 1 << 26, 10, 20)
    assert row["matched"] == row["timed"] == 10 and row["moving_ns"] == 10 * 10**6
    assert row["algbw"] == pytest.approx((1 << 26) / 1e-3) and row["busbw"] == pytest.approx((1 << 26) / 1e-3)
    assert row["wait_ns"] == [30 * 10**6, 0]
    assert [(r["rank"], r["last"], r["late_ns"]) for r in row["ranks"]] == [(0, 0, 0), (1, 10, 30 * 10**6)]
    text = text_of(tmp_path / "t.plumb")
    assert "rank 1, 10 times, 30.0 ms" in text and "67.1 GB/s" in text and "RING SIMPLE" in text
    table = list(csv.DictReader(io.StringIO(text_of(tmp_path / "t.plumb", "--by", "collective", "--csv"))))
    assert [(r["rank"], r["wait_ns"], r["last"]) for r in table] == [("0", "30000000", "0"), ("1", "0", "10")]
    assert set(row) == set(example_of("collectives")) and set(row["ranks"][0]) == set(example_of("collectives")["ranks"][0])


# ---- findings ----

def fires(tmp_path, traffic, cause):
    found = [f for f in made(tmp_path, traffic)["findings"] if f["evidence"]["cause"] == cause]
    assert len(found) == 1, found
    return found[0]


def test_pointers(tmp_path):
    found = fires(tmp_path, pointer_array(4, updates=5000)[0], "pointers")
    evidence = found["evidence"]
    assert (evidence["object"], evidence["owner"], evidence["accesses"], evidence["saving_bytes"]) == \
        ("flag_ptrs", "GPU 3", 15000, 120000)
    assert evidence["reached_at"] == [{"line": "bfs.cu:72", "bytes": 120000, "accesses": 15000}]
    assert (evidence["user_file"], evidence["user_line"], evidence["readers"]) == ("/home/ada/bfs.py", 17, "GPU 0, GPU 1, GPU 2")
    assert found["severity"] == "warning" and found["saving_ns"] is None


@pytest.mark.parametrize("change", ["few", "many lanes", "large", "local", "stores"])
def test_no_pointers(change, tmp_path):
    traffic, _ = pointer_array(4, updates=300 if change == "few" else 5000)
    if change == "many lanes":
        traffic.transfers = [(*t[:13], t[12] // 32, *t[14:]) for t in traffic.transfers]
    elif change == "large":
        traffic.objects[0][7] = 1 << 20
    elif change == "local":
        traffic.bin(0, 3, "load", 0, 32, 20000)
    elif change == "stores":
        traffic.transfers = [(*t[:2], "store", *t[3:7], None, t[8] if t[8] is not None else t[7], *t[9:])
                             if t[11] == 8 else t for t in traffic.transfers]
    assert "pointers" not in causes(made(tmp_path, traffic))


def ring_with_extra(n, pairs, lanes=200_000, size=4096, width=4):
    traffic, _ = ring_store(n, count=1 << 22)
    line = traffic.line("ring_store", 0xc0, [("ring.cu", 30)])
    board = traffic.object(0, size, at=("ring.py", 9), name="board", touched=size)
    for i in pairs:
        traffic.access("load", i, 0, line, lanes, width, object=board)
    return traffic


def test_unexpected_pair(tmp_path):
    found = fires(tmp_path, ring_with_extra(8, [3, 4]), "pair")
    assert (found["evidence"]["object"], found["evidence"]["bytes"], found["evidence"]["initiators"]) == \
        ("board", 2 * 200_000 * 4, "GPU 3, GPU 4")
    assert "ring.cu:30" in found["title"]


@pytest.mark.parametrize("traffic", [
    ring_with_extra(8, [1, 7]),                    # neighbours: acknowledgements
    ring_with_extra(8, [3, 4], size=1 << 20),      # each byte is read once: a gather of results
    ring_with_extra(8, [3, 4], lanes=500),         # a few accesses
    ring_with_extra(3, [1, 2]),                    # no pair is far in a ring of three
], ids=["neighbours", "once", "few", "three"])
def test_no_unexpected_pair(traffic, tmp_path):
    assert causes(made(tmp_path, traffic)) == []


def test_what_the_library_sends_is_expected(tmp_path):
    traffic = ring_with_extra(8, [3, 4])
    for i in (3, 4):
        traffic.call("send", i, i, 0, 1, 100)
    assert causes(made(tmp_path, traffic)) == []


@pytest.mark.parametrize("mode", ["sampled:0.1", "full", "calls"])
def test_how_it_was_recorded(mode, tmp_path):
    """What the collector writes says how; a sample gets no findings about what nobody touched."""
    traffic = halo_by_copies(1 << 16)
    traffic.mode = mode
    traffic.environment.append((0, "traffic.multicast.gap", "2 multicast objects were made: traffic through them is not seen"))
    answer = made(tmp_path, traffic)
    assert answer["mode"] == mode and ("halo" in causes(answer)) == (mode != "sampled:0.1")
    text = text_of(tmp_path / "t.plumb")
    assert "2 multicast objects were made" in text and ("of a part of the launches" in text) == (mode == "sampled:0.1")


def test_what_tensor_maps_move_is_said(tmp_path):
    """A program of which nothing else is seen: the text says that something was not."""
    traffic = Traffic(2)
    traffic.object(1, 4096, at=("t.py", 3))
    traffic.ledger.append((0, "object", "received", None, 1))
    traffic.environment.append((0, "traffic.tensor.gap", "4 instructions of loaded GPU code copy by tensor maps: these copies are "
                                "not counted"))
    text = " ".join(text_of(traffic.write(tmp_path / "t.plumb")).split())
    assert "no data went between devices" in text and "not seen, or only in part 4 instructions of loaded GPU code" in text


@pytest.mark.parametrize("columns", [2, 4])
def test_a_grid_of_neighbours_is_healthy(columns, tmp_path):
    """Halos in two directions of which one is far smaller, corners of one element, and a result that all send to one."""
    traffic = Traffic(8)
    line = traffic.line("grid", 0x10, [("grid.cu", 3)])
    parts = [traffic.object(i, 1 << 20, at=("grid.py", 4), name=f"part{i}", touched=1 << 20) for i in range(8)]
    for i in range(8):
        for j in range(8):
            x, y = abs(i % columns - j % columns), abs(i // columns - j // columns)
            if max(x, y) == 1:
                traffic.access("store", i, j, line, 5000 if x and y else 1 << 22 if x else 1 << 18, 4, object=parts[j])
        if i:
            traffic.access("store", i, 0, line, 1024, 4, object=parts[0])
    assert causes(made(tmp_path, traffic)) == []


def relayed(n, ring=False, count=10, each=1 << 20, second=None):
    traffic = Traffic(n)
    buffers = [traffic.object(i, each, at=("relay.py", 5), name=f"stage{i}", touched=each) for i in range(n)]
    for i in range(n if ring else n - 1):
        traffic.copy(i, (i + 1) % n, count, each if not i or second is None else second, at=("relay.py", 10 + i),
                     from_object=buffers[i], to_object=buffers[(i + 1) % n], ns=10_000)
    return traffic


def test_relay(tmp_path):
    found = fires(tmp_path, relayed(3), "relay")
    evidence = found["evidence"]
    assert (evidence["from"], evidence["by"], evidence["to"]) == ("GPU 0", "GPU 1", "GPU 2")
    assert (evidence["object"], evidence["saving_bytes"], evidence["unchanged"]) == ("stage1", 10 << 20, True)
    assert found["saving_ns"] == pytest.approx(100_000, rel=1e-6)  # by the bandwidth of these copies


def test_relay_by_the_host(tmp_path):
    traffic = Traffic(2, mode="calls")
    stage = traffic.object(None, 1 << 22, at=("relay.py", 5), kind="pinned host memory")
    traffic.copy(0, None, 6, 1 << 22, at=("relay.py", 8), to_object=stage)
    traffic.copy(None, 1, 6, 1 << 22, at=("relay.py", 9), from_object=stage)
    found = fires(tmp_path, traffic, "relay")
    assert found["evidence"]["by"] == "host" and found["evidence"]["saving_bytes"] == 6 << 22
    assert "enable peer access" in found["advice"] and found["saving_ns"] is None


@pytest.mark.parametrize("traffic", [relayed(4, ring=True), relayed(2, ring=True), relayed(3, second=1 << 19),
                                     relayed(3, each=1000)], ids=["ring", "to and fro", "a part", "little"])
def test_no_relay(traffic, tmp_path):
    assert causes(made(tmp_path, traffic)) == []


def test_no_relay_of_what_a_kernel_changes(tmp_path):
    traffic = relayed(3)
    traffic.bin(1, 1, "store", 0, 1 << 20, 100)
    assert causes(made(tmp_path, traffic)) == []


def halo_by_copies(touched, local=True, count=100, size=1 << 24):
    traffic = Traffic(2)
    ghost = traffic.object(1, size, at=("halo.py", 12), name="ghost", touched=touched)
    traffic.copy(0, 1, count, size, at=("halo.py", 30), to_object=ghost, ns=1_000_000)
    traffic.bin(ghost, 1 if local else 0, "load", 0, max(touched, 1), 1000)
    return traffic


def test_wrong_halo(tmp_path):
    found = fires(tmp_path, halo_by_copies(1 << 16), "halo")
    evidence = found["evidence"]
    assert (evidence["object"], evidence["touched_bytes"], evidence["copies"]) == ("ghost", 1 << 16, 100)
    assert evidence["saving_bytes"] == pytest.approx(100 * ((1 << 24) - (1 << 16)), rel=1e-5)
    assert found["saving_ns"] == pytest.approx(100 * 1_000_000 * (1 - 2**-8), rel=1e-5)


@pytest.mark.parametrize("traffic", [halo_by_copies(1 << 23), halo_by_copies(1 << 16, local=False),
                                     halo_by_copies(1 << 16, count=3), halo_by_copies(0)],
                         ids=["touched", "local accesses were not seen", "three copies", "used by others"])
def test_no_wrong_halo(traffic, tmp_path):
    assert "halo" not in causes(made(tmp_path, traffic))


def test_untouched(tmp_path):
    traffic = Traffic(2)
    for i in range(2):
        big = traffic.object(i, 1 << 28, at=("big.py", 3), name=f"big{i}", touched=1 << 20)
        traffic.bin(big, i, "load", 0, 1 << 20, 5)
        traffic.access("store", 1 - i, i, traffic.line("k", 0, [("k.cu", 1)]), 64, 4, object=big)
    found = fires(tmp_path, traffic, "untouched")
    assert found["evidence"]["objects"] == 2 and found["evidence"]["saving_bytes"] == 2 * ((1 << 28) - (1 << 20))
    traffic.mode = "sampled:0.5"
    assert causes(made(tmp_path, traffic)) == []


def shared_lines(step, kind="device memory", width=4, count=64):
    traffic = Traffic(2)
    counters = traffic.object(0, 1 << 16, at=("count.py", 3), name="counters", kind=kind, touched=4096)
    for i in range(count):
        traffic.bin(counters, i % 2, "store", i * step, width, 1000)
    traffic.access("store", 1, 0, traffic.line("k", 0, [("k.cu", 8)]), 32000, 4, object=counters)
    return traffic


def test_false_sharing(tmp_path):
    found = fires(tmp_path, shared_lines(4), "sharing")
    assert (found["evidence"]["share"], found["evidence"]["shared_lines"], found["evidence"]["accesses"]) == (1, 2, 64000)
    assert "128 bytes" in found["advice"]


@pytest.mark.parametrize("traffic", [shared_lines(128), shared_lines(0, count=2), shared_lines(256, width=128),
                                     shared_lines(4, count=1)], ids=["padded", "one counter", "coarse", "one device"])
def test_no_false_sharing(traffic, tmp_path):
    assert causes(made(tmp_path, traffic)) == []


def test_pages_are_shared_in_managed_memory(tmp_path):
    assert fires(tmp_path, shared_lines(512, kind="managed memory"), "sharing")["evidence"]["shared_lines"] == 8
    assert causes(made(tmp_path, shared_lines(512))) == []


def managed(kinds, times=10):
    traffic = Traffic(2)
    field = traffic.object(None, 1 << 20, at=("um.py", 3), name="field", kind="managed memory")
    line = traffic.line("k", 0, [("k.cu", 8)])
    for i, kind in enumerate(kinds):
        traffic.access(kind, i, None, line, times << 18, 4, object=field, route="managed memory")
    return traffic


def test_thrash(tmp_path):
    found = fires(tmp_path, managed(["store", "load"]), "thrash")
    assert found["evidence"]["devices"] == 2 and found["evidence"]["bytes"] == 2 * 10 << 20
    for healthy in (managed(["load", "load"]), managed(["store"]), managed(["store", "load"], times=1)):
        assert causes(made(tmp_path, healthy)) == []


def test_thresholds_and_report(tmp_path):
    path = pointer_array(4)[0].write(tmp_path / "t.plumb")
    done = run_command(PLUMB, "report", path, "--findings")
    assert "addresses on the wrong GPU" in done.stdout
    done = run_command(PLUMB, "report", path, "--findings", "--threshold", "traffic.accesses=400000")
    assert "addresses on the wrong GPU" not in done.stdout


# ---- other forms ----

def check(row, keys, where):
    assert set(row) == set(keys), (where, set(row) ^ set(keys))
    for key, kind in keys.items():
        assert isinstance(row[key], kind), (where, key, row[key])


def test_json_has_the_documented_keys(tmp_path):
    traffic, _ = pointer_array(4)
    traffic.copy(None, 0, 2, 100)
    traffic.ledger.append((0, "access", "received", None, 10))
    traffic.ledger.append((0, "access", "not_delivered", "multicast", 3))
    traffic.environment.append((0, "traffic.kernels", "bfs"))
    traffic.link(0, 3)
    answer = made(tmp_path, traffic)
    assert set(answer) == {"schema", "verb", "mode", "totals", "parties", "matrices", "findings", "pairs", "pairs_left_out",
                           "objects", "objects_left_out", "lines", "lines_left_out", "kernels", "kernels_left_out",
                           "collectives", "collectives_left_out", "routes", "links", "links_missing", "coverage", "environment",
                           "stalls"}
    assert (answer["schema"], answer["verb"], answer["mode"], answer["stalls"]) == (1, "traffic", "full", None)
    for key, keys in KEYS.items():
        assert answer[key], key
        for row in answer[key]:
            check(row, keys, key)
    for row in answer["totals"].values():
        check(row, SUM, "totals")
    assert [c["seen"] for c in answer["coverage"]] == [True, False]
    assert "3 accesses to memory of other devices: launched, but CUPTI delivered no record: multicast" in \
        text_of(tmp_path / "t.plumb")


def test_docs_have_the_keys():
    """The example of docs/traffic.md has the keys that JSON has."""
    for key, keys in KEYS.items():
        assert set(example_of(key)) == set(keys), key


def test_top(tmp_path):
    path = pointer_array(8)[0].write(tmp_path / "t.plumb")
    answer = json_of(path, "--top", "2")
    assert len(answer["objects"]) == len(answer["lines"]) == len(answer["pairs"]) == 2
    assert (answer["objects_left_out"], answer["lines_left_out"]) == (15, 1)
    assert answer["pairs_left_out"] == 8 + 7 - 2
    assert "and 13 more (--top 0 shows all)" in text_of(path, "--by", "pair", "--top", "2")
    assert "more (" not in text_of(path, "--by", "object", "--top", "0")


@pytest.mark.parametrize("by, first, rows", [("pair", "initiator", 3 + 4 * 2), ("object", "object", 9), ("line", "line", 11),
                                             ("kernel", "kernel", 7), ("route", "route", 2), ("collective", "collective", 0)])
def test_csv_and_text_of_each_list(by, first, rows, tmp_path):
    path = pointer_array(4)[0].write(tmp_path / "t.plumb")
    table = list(csv.DictReader(io.StringIO(text_of(path, "--by", by, "--csv"))))
    text = text_of(path, "--by", by, "--csv")
    assert text.startswith(first + ",")
    if by == "pair":
        assert len(table) == 4 + 3 + 0  # stores of data and flags are one pair and kind
        assert sum(int(r["bytes"]) for r in table) == json_of(path)["totals"]["kernels"]["bytes"]
    else:
        assert len(table) == rows
    assert text_of(path, "--by", by)


def test_wrong_use(tmp_path):
    path = ring_store(2)[0].write(tmp_path / "t.plumb")
    for words, message in ((("--json", "--csv"), "--json or --csv"), (("--window", "loop"), "transfers have no times"),
                           (("--by", "collective", "--window", "loop", "--json"), "as text or CSV"),
                           (("--by", "pair", "--stalls", path), "not both"), (("--by", "nothing"), "pair")):
        assert message in text_of(path, *words, code=1)


def test_nothing_to_show(tmp_path):
    path = tmp_path / "none.plumb"
    run_command(PLUMB, "run", "-o", path, "--", "true")
    assert "record it with plumb run --traffic" in text_of(path, code=3)
    path = Traffic(2, mode="calls").write(tmp_path / "t.plumb")
    assert "nothing was moved" in text_of(path, code=3)


# ---- stalls ----

STALL = (0x160, "long_scoreboard")


def join_profiles(tmp_path, hash=None, function="row_sums"):
    """A stall of the cubin's kernel, and traffic of the load that plumb why says it waits for."""
    stalls = stalls_profile(tmp_path / "s.plumb", [Function("row_sums", samples={STALL: (900, 100), (0x110, "selected"): (100, 0)},
                                                            gpu_ns=1_000_000)])
    why = json.loads(run_command(PLUMB, "why", stalls, "--json").stdout)
    stall, = [s for s in why["kernels"][0]["stalls"] if s["offset"] == STALL[0]]
    cause = stall["causes"][0]
    traffic = Traffic(2, hash=hash or hashlib.sha256(CUBIN.read_bytes()).hexdigest())
    field = traffic.object(1, 1 << 20, at=("rows.py", 12), name="field", touched=1 << 20)
    traffic.access("load", 0, 1, traffic.line(function, cause["offset"], [("rows.cu", 44)]), 1 << 18, 4, object=field)
    traffic.access("store", 0, 1, traffic.line(function, 0, [("rows.cu", 1)]), 32, 4, object=field)
    return traffic.write(tmp_path / "t.plumb"), stalls, cause, why["kernels"][0]


def test_a_stall_waits_for_traffic(tmp_path):
    traffic, stalls, cause, kernel = join_profiles(tmp_path)
    answer = json_of(traffic, "--stalls", stalls)["stalls"]
    wait, = answer["waits"]
    assert set(answer) == set(example_of("stalls")) and set(wait) == set(example_of("stalls")["waits"][0])
    assert (wait["kernel"], wait["access"]["offset"], wait["stall"]["offset"]) == ("row_sums", cause["offset"], STALL[0])
    assert (wait["samples"], wait["reason"], wait["object_label"]) == (cause["samples"], "long_scoreboard", "field")
    assert (wait["initiator"], wait["owner"], wait["kind"], wait["allocated_at"]) == (0, 1, "load", "rows.py:12")
    assert wait["share"] == pytest.approx(cause["samples"] / kernel["waiting"])
    assert wait["part_ns"] == int(1_000_000 * cause["samples"] / kernel["samples"])
    assert (wait["access"]["file"], wait["access"]["line"]) == ("/home/ada/rows.cu", 44)  # lines of the traffic
    assert wait["access"]["instruction"].startswith("LDG") and wait["bytes"] == 4 << 18
    assert (answer["functions"], answer["functions_missing"], answer["builds_missing"]) == (1, 0, 0)
    text = text_of(traffic, "--stalls", stalls)
    assert "field on GPU 1, allocated at rows.py:12" in " ".join(text.split())
    table = list(csv.DictReader(io.StringIO(text_of(traffic, "--stalls", stalls, "--csv"))))
    assert len(table) == 1 and table[0]["object"] == "field"


def test_other_builds_are_told(tmp_path):
    traffic, stalls, _, _ = join_profiles(tmp_path, hash="0" * 64)
    message = text_of(traffic, "--stalls", stalls, code=2)
    assert "no GPU code in common" in message and "same build" in message


def test_stalls_of_other_functions(tmp_path):
    traffic, stalls, _, _ = join_profiles(tmp_path, function="no_such_kernel")
    assert "none of the 1 functions with traffic has samples" in text_of(traffic, "--stalls", stalls, code=3)


def test_stalls_need_both_sides(tmp_path):
    ring = ring_store(2)[0].write(tmp_path / "r.plumb")
    assert "has no samples of GPU code" in text_of(ring, "--stalls", ring, code=3)
    copies = Traffic(2, mode="calls")
    copies.copy(0, 1, 1, 10)
    assert "--traffic=full" in text_of(copies.write(tmp_path / "c.plumb"), "--stalls", ring, code=3)


# ---- hostile files ----

def change(path, statement):
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA foreign_keys = OFF")
        database.execute(statement)
    database.close()


@pytest.mark.parametrize("statement", [
    "UPDATE objects SET within = 0 WHERE id > 0",
    "UPDATE objects SET bytes = 9223372036854775807, touched_bytes = 9223372036854775807, touchable_bytes = 1",
    "UPDATE objects SET bytes = -5, most_bytes = -7, touched_bytes = -1, touchable_bytes = -1",
    "UPDATE transfers SET bytes = 9223372036854775807, accesses = 9223372036854775807, warps = 9223372036854775807",
    "UPDATE transfers SET warps = -1, width = -1, offset = -1",
    "UPDATE transfers SET offset = 9223372036854775807, width = 9223372036854775807",
    "UPDATE transfers SET error_bytes = NULL",
    "UPDATE transfers SET error_bytes = -1e300",
    "UPDATE transfers SET initiator = NULL, from_device = NULL, to_device = NULL, context = NULL",
    "UPDATE transfers SET from_object = NULL, to_object = NULL, code_function = NULL, offset = NULL",
    "UPDATE code_lines SET line = NULL, file = NULL",
    "UPDATE object_bins SET offset = 9223372036854775807, width = 9223372036854775807",
    "UPDATE object_bins SET width = 0, accesses = 9223372036854775807",
    "DELETE FROM code_lines",
    "UPDATE devices SET ordinal = 0",
    "UPDATE objects SET name = 'a' || char(27) || '[31m' || char(10) || 'b'",
])
def test_odd_numbers(statement, tmp_path):
    """Whatever a file says, the answer is an answer, its JSON is valid and no sum turns negative."""
    traffic, _ = pointer_array(4)
    for i in range(4):
        traffic.bin(1 + i, i, "store", 4 * i, 4, 5000)
    path = traffic.write(tmp_path / "t.plumb")
    change(path, statement)
    answer = json_of(path)
    for row in answer["matrices"]["initiated"] + answer["matrices"]["flow"]:
        assert all(cell >= 0 for cell in row)
    for key in ("pairs", "lines", "routes"):
        assert all(row["bytes"] >= 0 and row["accesses"] >= 0 for row in answer[key])
    text = text_of(path)
    assert "\x1b" not in text and "nan" not in text.lower()
    for by in ("pair", "object", "line", "kernel", "collective", "route"):
        text_of(path, "--by", by)
        text_of(path, "--by", by, "--csv")


@pytest.mark.parametrize("statement", [
    "UPDATE transfers SET from_object = 99 WHERE id = 0", "UPDATE transfers SET initiator = 99 WHERE id = 0",
    "UPDATE transfers SET kind = 'teleport' WHERE id = 0", "UPDATE transfers SET code_function = 99 WHERE id = 0",
    "UPDATE transfers SET bytes = -1 WHERE id = 0", "UPDATE transfers SET accesses = 0 WHERE id = 0",
    "UPDATE transfers SET error_bytes = 9e999 WHERE id = 0", "UPDATE object_bins SET object = 99", "UPDATE objects SET within = 99"])
def test_damaged_rows_are_refused(statement, tmp_path):
    traffic, _ = pointer_array(2)
    traffic.bin(1, 0, "store", 0, 4, 5)
    path = traffic.write(tmp_path / "t.plumb")
    change(path, statement)
    message = text_of(path, code=2)
    assert "damaged" in message and len(message.splitlines()) == 1


def test_unknown_errors_are_shown_as_unknown(tmp_path):
    traffic, _ = ring_store(2)
    path = traffic.write(tmp_path / "t.plumb")
    change(path, "UPDATE transfers SET error_bytes = NULL")
    assert json_of(path)["lines"][0]["error_bytes"] is None
    assert "± ?" in text_of(path)


def test_many_objects_and_bins(tmp_path):
    """Ten thousand objects of one line, and bins of many devices, take seconds at most."""
    traffic = Traffic(8)
    line = traffic.line("k", 0, [("k.cu", 1)])
    for i in range(10_000):
        o = traffic.object(i % 8, 1 << 28, at=("many.py", 3), name=f"o{i}", touched=4)
        traffic.bin(o, i % 8, "store", 0, 4, 2000)
        traffic.access("store", (i + 1) % 8, i % 8, line, 64, 4, object=o)
    path = traffic.write(tmp_path / "t.plumb")
    answer = json_of(path)
    assert len(answer["objects"]) == 10_000 and answer["totals"]["kernels"]["bytes"] == 10_000 * 256
    assert len(text_of(path).splitlines()) < 80


def test_rings_and_transposes_are_not_mixed_up():
    """The generator's own formulas: what the note's table says."""
    assert ring_store(3, count=10, size=16)[1] == [[0, 160, 0], [0, 0, 160], [160, 0, 0]]
    assert halo(2, nx=12, iterations=5)[1] == [[0, 400], [400, 0]]
    assert all_to_all(4, side=64, size=8)[1][1] == [64 * 64 * 8 // 16, 0, 64 * 64 * 8 // 16, 64 * 64 * 8 // 16]
    assert mixed_warps(4, count=128, size=2)[1][3] == [64, 64, 64, 0]
    assert ring_load(2, count=4, size=4)[1] == [[0, 16], [16, 0]]
    assert math.isclose(sum(map(sum, pointer_array(4, updates=10, frontier=1)[1])), 4 * 440 + 3 * 80)
