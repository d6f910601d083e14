# SPDX-License-Identifier: Apache-2.0
"""plumb run --traffic on the stand-in driver: what is allocated where, and the bytes of each copy by pair of
devices, object and call path, exactly. tests/e2e/programs/traffic_driver.py has the scenarios."""
import collections
import os
import sqlite3
import subprocess
import sys

import pytest
from conftest import BUILD, PLUMB, ROOT, run_command
from plumbtest import PROGRAMS
from test_mock_gpu import NEWEST, mock_environment

sys.path.insert(0, str(ROOT / "python"))
import plumb  # noqa: E402

COPY_ENGINE, MANAGED = "copy engine", "managed memory"
Seen = collections.namedtuple("Seen", "profile objects ranges transfers ledger path done")


def lines_of(profile, context):
    """The functions of the program on the call path of CONTEXT, outermost first."""
    names = []
    node = profile.node(context) if context is not None else None
    while node is not None:
        if node.kind == "python" and "traffic_driver" in (node.file or "") and node.name != "<module>":
            names.append(node.name.split(".")[-1])
        node = node.parent
    return " > ".join(reversed(names))


def run(folder, *arguments, options=("--traffic",), scenario="devices=3", release=NEWEST):
    path = folder / "run.plumb"
    environment = {**os.environ, **mock_environment(release, scenario), "PYTHONPATH": str(ROOT / "python")}
    done = run_command(PLUMB, "run", "-q", "-o", path, *options, "--", sys.executable, PROGRAMS / "traffic_driver.py",
                       *arguments, cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr
    profile = plumb.Profile(path)
    ordinals = [device.ordinal for device in profile.devices]

    def ordinal(device):
        return None if device is None else ordinals[device]
    objects = [(lines_of(profile, o.context), ordinal(o.device), o.kind, o.name, o.allocations, o.bytes, o.most_bytes)
               for o in profile.objects]

    def name(index):
        return None if index is None else objects[index][3] or objects[index][0] + ":" + objects[index][2]
    transfers = [(lines_of(profile, t.context), t.kind, t.route, ordinal(t.initiator), ordinal(t.from_device),
                  ordinal(t.to_device), name(t.from_object), name(t.to_object), t.accesses, t.bytes)
                 for t in profile.transfers]
    ledger = {row.fate: row.count for row in profile.ledger if row.source == "object"}
    return Seen(profile, objects, profile.object_ranges, transfers, ledger, path, done)


def test_every_kind_of_allocation(tmp_path):
    seen = run(tmp_path, "every_kind")
    path = "every_kind"
    assert sorted(seen.objects, key=lambda o: o[5]) == [
        (f"{path} > alloc > call", 1, "device memory", None, 1, 1000, 1000),
        (f"{path} > out > call", 1, "memory of a pool", None, 1, 2000, 2000),
        (f"{path} > out > call", 2, "memory of a pool", None, 1, 3000, 3000),  # the pool's device, not the current one
        (f"{path} > out > call", 1, "device memory", None, 1, 7 * 512, 7 * 512),
        (f"{path} > out > call", None, "managed memory", None, 1, 5000, 5000),
        (f"{path} > out > call", None, "pinned host memory", None, 1, 6000, 6000),
        (f"{path} > out > call", None, "pinned host memory", None, 1, 7000, 7000),
        (f"{path} > call", None, "pinned host memory", None, 1, 8000, 8000)]
    ended = {seen.objects[r.object][5] for r in seen.ranges if r.end_ns is not None}
    assert ended == {7000, 8000}  # cuMemFreeHost, cuMemHostUnregister
    assert seen.ledger == {"received": 8, "attributed": 8}


def test_objects_are_call_paths(tmp_path):
    seen = run(tmp_path, "several_sites")
    assert sorted(seen.objects) == [
        ("several_sites > one > alloc > call", 0, "device memory", None, 1, 100, 100),
        ("several_sites > one > alloc > call", 0, "device memory", None, 5, 500, 500),
        ("several_sites > two > alloc > call", 0, "device memory", None, 2, 200, 200)]
    assert sum(o[4] for o in seen.objects) == len(seen.ranges) == 8
    assert sum(r.end_ns is not None for r in seen.ranges) == 3
    assert all(r.end_ns is None or r.end_ns >= r.start_ns for r in seen.ranges)


def test_threads_share_an_object(tmp_path):
    seen = run(tmp_path, "threads")
    assert [o[4:] for o in seen.objects] == [(4, 4000, 2000)]  # the one thread's were freed before the other's came


def test_an_address_again_is_another_object(tmp_path):
    seen = run(tmp_path, "reuse")
    assert sorted((t[7], t[9]) for t in seen.transfers) == [
        ("reuse > first > alloc > call:device memory", 64), ("reuse > second > alloc > call:device memory", 16)]
    first, second = (r for r in seen.ranges if r.bytes == 64)
    assert first.address == second.address and first.end_ns <= second.start_ns and second.end_ns is None


def test_frees_of_unknown_memory(tmp_path):
    seen = run(tmp_path, "strange_frees")
    assert [o[4:] for o in seen.objects] == [(1, 512, 512)] and seen.ranges[0].end_ns is not None


def test_mapped_memory_belongs_to_its_handle(tmp_path):
    seen = run(tmp_path, "mapped")
    assert [o[1:3] + o[4:] for o in sorted(seen.objects, key=lambda o: o[5])] == [
        (1, "mapped handle", 1, 4096, 4096), (2, "mapped handle", 1, 8192, 8192)]
    assert [(t[4], t[5], t[7] is not None, t[9]) for t in sorted(seen.transfers, key=lambda t: t[9])] == [
        (None, 1, True, 10), (None, 2, True, 20)]  # the third copy goes to pageable memory, as nothing is mapped
    assert all(r.end_ns is not None for r in seen.ranges)


# ---- copies ----

SOURCE = TARGET = "{} > from_0_to_1 > alloc > call:device memory"


def test_every_form_of_copy(tmp_path):
    seen = run(tmp_path, "every_copy")
    source = SOURCE.format("every_copy")
    assert sorted(t[9] for t in seen.transfers) == [1 << i for i in range(9)]
    assert {t[1:9] for t in seen.transfers} == {("copy", COPY_ENGINE, 0, 0, 1, source, source, 1)}
    devices = [seen.profile.devices[seen.profile.objects[i].device].ordinal for t in seen.profile.transfers
               for i in (t.from_object, t.to_object)]
    assert devices == [0, 1] * 9
    uuids = {device.uuid for device in seen.profile.devices}
    assert len(uuids) == 2 and all(uuid.startswith("GPU-") for uuid in uuids)


@pytest.mark.parametrize("release", ["11.8", "12.1", "12.8"])
def test_other_releases(tmp_path, release):
    seen = run(tmp_path, "every_copy", release=release)
    assert sorted(t[9] for t in seen.transfers) == [1 << i for i in range(9)]


def test_batches(tmp_path):
    seen = run(tmp_path, "batch")
    other = "batch > alloc > call:device memory"
    pair = SOURCE.format("batch")
    assert sorted(t[3:10] for t in seen.transfers) == sorted([
        (0, 0, 1, pair, pair, 1, 100), (0, 0, 1, other, pair, 1, 200), (0, 1, 0, pair, other, 1, 400),
        (0, 0, 1, pair, pair, 1, 800)])


@pytest.mark.parametrize("program", ["every_copy", "batch"])
def test_a_copy_that_two_devices_tell_is_one(tmp_path, program):
    """CUPTI has a record of each device if they cannot reach each other."""
    one, two = (run(tmp_path, program, scenario=f"devices=3{more}") for more in ("", ",unreached=1"))
    assert sum(row.count for row in two.profile.ledger if (row.source, row.fate) == ("gpu.copy", "received")) == \
        2 * sum(row.count for row in one.profile.ledger if (row.source, row.fate) == ("gpu.copy", "received"))
    assert sorted(one.transfers, key=repr) == sorted(two.transfers, key=repr)


def test_copies_to_and_from_the_host(tmp_path):
    seen = run(tmp_path, "host_copies")
    device = "host_copies > alloc > call:device memory"
    pinned, managed = (f"host_copies > out > call:{kind}" for kind in ("pinned host memory", "managed memory"))
    assert sorted(((t[2], *t[4:8], t[9]) for t in seen.transfers), key=lambda t: t[-1]) == [
        (COPY_ENGINE, None, 1, None, device, 1), (COPY_ENGINE, None, 1, pinned, device, 2),
        (COPY_ENGINE, 1, None, device, None, 4), (COPY_ENGINE, 1, None, device, pinned, 8),
        (COPY_ENGINE, 1, None, device, pinned, 16), (MANAGED, 1, None, device, managed, 64)]


def test_nodes_of_graphs(tmp_path):
    seen = run(tmp_path, "graph")
    pair = SOURCE.format("graph")
    assert sorted(t[3:10] for t in seen.transfers) == [
        (0, 0, 1, pair, pair, 5, 500), (0, 1, 0, pair, pair, 5, 100)]


def test_bytes_are_those_of_the_copies(tmp_path):
    """The same as the metric that copies have with and without --traffic."""
    for scenario in ("every_copy", "batch", "graph"):
        folder = tmp_path / scenario
        folder.mkdir()
        seen = run(folder, scenario)
        database = sqlite3.connect(seen.path)
        moved, = database.execute("SELECT sum(v.sum) FROM context_values v JOIN metrics m ON m.id = v.metric "
                                  "WHERE m.name = 'gpu.copy_bytes'").fetchone()
        database.close()
        assert sum(t[9] for t in seen.transfers) == moved


# ---- several processes ----

@pytest.mark.parametrize("shared_by", ["8", "1"], ids=["fabric", "file"])
def test_memory_of_another_process(shared_by, tmp_path, monkeypatch):
    monkeypatch.setenv("SHARED_BY", shared_by)
    seen = run(tmp_path, "two_processes", tmp_path / "handles")
    exporter, importer = (p.id for p in sorted(seen.profile.processes, key=lambda p: p.start_ns))
    objects = seen.profile.objects
    assert not any(o.kind == "memory of another process" for o in objects)
    assert sorted((o.process, o.kind, o.bytes) for o in objects) == sorted([
        (exporter, "device memory", 10000), (exporter, "mapped handle", 4096), (importer, "device memory", 10000)])
    assert sorted((objects[t.from_object].process, objects[t.to_object].process, objects[t.to_object].kind, t.bytes)
                  for t in seen.profile.transfers) == sorted([
        (importer, exporter, "device memory", 1000), (importer, exporter, "device memory", 500),
        (importer, exporter, "mapped handle", 2000)])
    assert {t[4:6] for t in seen.transfers} == {(0, 1)}


def test_an_exporter_that_is_not_known(tmp_path):
    """Its handle came from a process that plumb did not see."""
    file = tmp_path / "handles"
    environment = {**os.environ, **mock_environment(NEWEST, "devices=3")}
    subprocess.run([sys.executable, PROGRAMS / "traffic_driver.py", "export", file], env=environment, check=True)
    seen = run(tmp_path, "use", file)
    foreign = [o for o in seen.objects if o[2] == "memory of another process"]
    assert [(o[1], o[4], o[5]) for o in sorted(foreign, key=lambda o: -o[5])] == [(1, 1, 10000), (1, 1, 4096)]
    assert sorted((t[4:6], t[9]) for t in seen.transfers) == [((0, 1), 500), ((0, 1), 1000), ((0, 1), 2000)]


def test_forked_children_begin_anew(tmp_path):
    seen = run(tmp_path, "forked")
    assert sorted(o[5] for o in seen.objects if o[5] != 77) == [1000, 1234]
    assert all(r.end_ns is None for r in seen.ranges if r.bytes == 1000)  # the child freed what was not its own


# ---- tensors, names, bounds ----

def test_tensors_in_segments(tmp_path):
    seen = run(tmp_path, "tensors")
    parts = [(lines_of(seen.profile, o.context), o.kind, seen.profile.objects[o.within].bytes, o.allocations, o.bytes,
              o.most_bytes) for o in seen.profile.objects if o.within is not None]
    assert sorted(parts) == [("tensors > steps > gradients > report", "tensor", 1 << 20, 3, 6000, 2000),
                             ("tensors > steps > weights > report", "tensor", 1 << 20, 3, 3000, 1000)]
    segment = SOURCE.format("tensors")
    assert sorted(t[4:10] for t in seen.transfers) == [
        (0, 1, segment, segment, 1, 7),
        (0, 1, "tensors > steps > weights > report:tensor", "tensors > steps > gradients > report:tensor", 3, 210)]
    assert seen.ledger == {"received": 8, "attributed": 8}


def test_names(tmp_path):
    seen = run(tmp_path, "named")
    assert sorted((o[3] or "", o[1], o[2], o[5]) for o in seen.objects) == [
        ("", 1, "device memory", 1 << 20), ("halo", 1, "tensor", 256), ("weights", 0, "device memory", 1 << 20)]
    target = SOURCE.format("named")
    assert sorted((t[6], t[7], t[9]) for t in seen.transfers) == [
        ("weights", "halo", 50), ("weights", target, 25), ("weights", target, 100)]
    assert seen.ledger["unknown_object"] == 1


def test_names_without_plumb(tmp_path):
    code = ("import plumb\nclass A: __cuda_array_interface__ = {'data': (512, False), 'shape': (3,), 'typestr': '<f4'}\n"
            "a = A()\nassert plumb.name(a, 'x') is a and plumb.name(7, 'y') == 7\n"
            "try: plumb.name(a, 3)\nexcept TypeError: print('refused')")
    done = run_command(sys.executable, "-c", code, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
    assert done.stdout == "refused\n", done.stderr


def test_extents_of_arrays():
    extent = plumb.annotate._extent
    assert extent({"data": (1000, False), "shape": (8, 4), "typestr": "<f8"}) == (1000, 256)
    assert extent({"data": (1000, False), "shape": (8, 4), "typestr": "<f8", "strides": (64, 8)}) == (1000, 7 * 64 + 32)
    assert extent({"data": (1000, False), "shape": (3,), "typestr": "<i4", "strides": (-8,)}) == (984, 20)
    assert extent({"data": (1000, False), "shape": (3, 0), "typestr": "<i4"}) == (1000, 0)
    assert extent({"data": (1000, False), "shape": (), "typestr": "|u1"}) == (1000, 1)


def test_a_pause(tmp_path):
    seen = run(tmp_path, "paused")
    assert sorted((r.bytes, r.end_ns is None) for r in seen.ranges) == [(1000, False), (2000, False), (4000, True)]


def test_more_allocations_than_ranges(tmp_path):
    seen = run(tmp_path, "many", "70000", options=("--traffic", "--limit", "64M"))
    assert [o[4:] for o in seen.objects] == [(70000, 70000 * 64, 64)]
    assert len(seen.ranges) == 65536
    assert seen.ledger == {"received": 70000, "attributed": 65536, "overflowed": 70000 - 65536}


def test_a_full_region(tmp_path):
    seen = run(tmp_path, "many", "40000", options=("--traffic", "--limit", "1M"))
    object_, = seen.objects
    assert object_[4] == 40000  # its sums are whole
    assert seen.ledger["received"] == 40000
    assert seen.ledger["attributed"] == len(seen.ranges) < 40000
    assert sum(seen.ledger.values()) == 80000


def test_nothing_without_the_option(tmp_path):
    seen = run(tmp_path, "every_copy", options=())
    assert not seen.objects and not seen.transfers and not seen.ranges and not seen.ledger


def test_killed(tmp_path):
    """What a killed process wrote is there: nothing waits for its end."""
    path = tmp_path / "run.plumb"
    environment = {**os.environ, **mock_environment(NEWEST, "devices=3"), "PYTHONPATH": str(ROOT / "python")}
    code = (f"import sys; sys.path.insert(0, {str(PROGRAMS)!r}); import traffic_driver as t, os, signal, time\n"
            "t.every_copy(); time.sleep(1); os.kill(os.getpid(), signal.SIGKILL)")
    run_command(PLUMB, "run", "-q", "-o", path, "--traffic", "--", sys.executable, "-c", code, cwd=tmp_path, env=environment)
    profile = plumb.Profile(path)
    assert sum(t.bytes for t in profile.transfers) == 511 and len(profile.objects) == 2


@pytest.mark.parametrize("options,message", [
    (["--traffic", "--no-gpu"], "--traffic needs records of GPU work"),
    (["--traffic", "--graphs=replays"], "leave out --graphs=replays"),
    (["--traffic=some"], "--traffic takes calls, full or sampled:RATE"),
    (["--traffic=sampled:0"], "--traffic takes calls, full or sampled:RATE"),
    (["--traffic=sampled:1.5"], "--traffic takes calls, full or sampled:RATE"),
    (["--traffic=sampled"], "--traffic takes calls, full or sampled:RATE"),
    (["--traffic-kernels=a"], "add --traffic=full"),
    (["--traffic", "--traffic-objects=a"], "--traffic-objects needs --traffic=full"),
])
def test_refusals(tmp_path, options, message):
    done = run_command(PLUMB, "run", *options, "--", "true", cwd=tmp_path)
    assert done.returncode == 125 and message in done.stderr and len(done.stderr.splitlines()) == 1


def test_ranks_that_are_joined(tmp_path):
    """Objects of two profiles stand side by side, with what they are within and what moved them."""
    parts = []
    for rank in ("0", "1"):
        folder = tmp_path / rank
        folder.mkdir()
        parts.append(run(folder, "tensors"))
    joined = tmp_path / "joined.plumb"
    done = run_command(PLUMB, "settle", "-o", joined, *(part.path for part in parts), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    profile = plumb.Profile(joined)
    assert len(profile.objects) == sum(len(part.objects) for part in parts) == 8
    assert len(profile.object_ranges) == sum(len(part.ranges) for part in parts)
    for o in profile.objects:
        if o.kind == "tensor":
            assert profile.objects[o.within].process == o.process and profile.objects[o.within].kind == "device memory"
    assert collections.Counter((t.process, t.bytes) for t in profile.transfers) == {
        (process.id, count): 1 for process in profile.processes for count in (7, 210)}
    assert all(profile.objects[t.from_object].process == t.process for t in profile.transfers)


NAMING = """
#include <plumb/annotate.h>
#include <stdlib.h>

int cuMemAlloc_v2(unsigned long long *, size_t);

int
main(void)
{
	unsigned long long pool, other;
	if (cuMemAlloc_v2(&pool, 65536) || cuMemAlloc_v2(&other, 4096))
		return 1;
	plumb_name_part((const void *)(pool + 4096), 512, "left");
	plumb_name_part((const void *)(pool + 8192), 1024, "right");
	plumb_name_part((const void *)(pool + 4096), 256, "smaller"); /* something else is there by now */
	plumb_name((const void *)(other + 100), "grid");
	plumb_name((const void *)12, "nothing");
	return 0;
}
"""


@pytest.mark.parametrize("language", ["c", "c++"])
def test_names_in_c(tmp_path, language):
    source, program = tmp_path / "naming", tmp_path / "program"
    text = NAMING if language == "c" else NAMING.replace("int cuMem", 'extern "C" int cuMem')
    source.write_text(text)
    library = BUILD / "mock" / NEWEST
    subprocess.run(["gcc" if language == "c" else "g++", "-x", language, source, "-x", "none", "-I", ROOT / "include", "-Wall",
                    "-Wextra", "-Werror", "-o", program, f"-L{library}", "-l:libcuda.so.1"], check=True)
    path = tmp_path / "run.plumb"
    environment = {**os.environ, **mock_environment(NEWEST)}
    assert run_command(program, env=environment).returncode == 0
    done = run_command(PLUMB, "run", "-q", "-o", path, "--traffic", "--", program, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    objects = plumb.Profile(path).objects
    assert sorted((o.name or "", o.kind, o.bytes, None if o.within is None else objects[o.within].bytes) for o in objects) == [
        ("", "device memory", 65536, None), ("grid", "device memory", 4096, None), ("left", "tensor", 512, 65536),
        ("right", "tensor", 1024, 65536), ("smaller", "tensor", 256, 65536)]


def test_pytorch_on_the_processor(tmp_path, any_torch_python):
    """Both listen to its allocator: --memory records what it did before, and tensors on the processor are no objects."""
    code = "import torch\na = torch.ones(1000)\nb = a + 1\ndel a\nprint(float(b.sum()))"
    totals = []
    for options in (["--memory"], ["--memory", "--traffic"]):
        path = tmp_path / f"{len(options)}.plumb"
        done = run_command(PLUMB, "run", "-q", "-o", path, *options, "--", any_torch_python, "-c", code, cwd=tmp_path)
        assert done.returncode == 0 and done.stdout == "2000.0\n", done.stderr
        profile = plumb.Profile(path)
        totals.append([(m.allocations, m.allocated_bytes, m.peak_bytes) for m in profile.memory])
        assert not profile.objects and not any(row.source == "object" for row in profile.ledger)
    assert totals[0] == totals[1] and totals[0]
