# SPDX-License-Identifier: Apache-2.0
"""Where the time went: the lanes of plumb view's first page, against what the verbs say."""
import functools

import pytest
import viewing
from viewing import BUILD, Viewer, read_tables

PLUMB = BUILD / "plumb"
PROFILES = ["programs/hf-train-fault", "programs/ddp", "programs/decode-healthy", "resnet/b32", "planted/contention", "cases/loader"]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    return functools.partial(viewing.recorded, folder=tmp_path_factory.mktemp("recorded"))


def lanes(viewer, window):
    table = read_tables(viewer.get(f"shares?window={window}"))["shares"]
    made = {}
    for lane, pid, device, part, ns, whole in zip(*(table[name] for name in ("lane", "pid", "device", "part", "ns", "whole_ns"))):
        made.setdefault((lane, pid, device), ({}, whole))[0][part] = ns
    return made


@pytest.mark.parametrize("name", PROFILES)
def test_parts_add_up_and_are_those_of_the_report(recorded, name):
    with Viewer(PLUMB, recorded(name)) as viewer:
        windows = ["all", *(window["name"] for window in viewer.json("about")["windows"])]
        hosts = 0
        for window in windows:
            overview = viewer.json(f"overview?window={window}")
            made = lanes(viewer, window)
            for (lane, pid, device), (parts, whole) in made.items():
                assert sum(parts.values()) == whole == overview["run"]["recorded_ns"]
                assert all(ns >= 0 for ns in parts.values())
                if lane == "gpu" and "computes" in parts:
                    work = next(one for one in overview["gpu_work"] if (one["pid"], one["device"]) == (pid, device))
                    assert parts["computes"] == work["computing_ns"] and parts["copies"] == work["copies_ns"]
                    assert parts["communication"] + parts["waits for other ranks"] == pytest.approx(work["collectives_ns"] - work["hidden_ns"], abs=1)
                if lane == "gpu" and "busy" in parts:
                    busy = [one["busy_ns"] for one in overview["devices"][device]["processes"] if one["pid"] == pid] or [overview["devices"][device]["busy_ns"]]
                    assert parts["busy"] == min(busy[0], whole)
            hosts += sum(lane == "host" for lane, _, _ in made)
        assert hosts


def test_the_host_is_known_by_process(recorded):
    """One process: what its operators and its waits add up to is what the report says."""
    with Viewer(PLUMB, recorded("programs/hf-train-fault")) as viewer:
        total = lambda metric: viewer.json(f"report?window=loop&by=operator&metric={metric}")["total"]["sum"]
        (parts, whole), = (one for (lane, _, _), one in lanes(viewer, "loop").items() if lane == "host")
        assert parts["waits for the GPU"] == total("host.wait")
        assert parts["operators and ranges"] + parts["waits for the GPU"] == pytest.approx(total("op.time"), rel=0.001)
        assert parts["other code"] == whole - parts["operators and ranges"] - parts["waits for the GPU"]


def test_two_ranks_have_lanes_of_their_own(recorded):
    with Viewer(PLUMB, recorded("programs/ddp")) as viewer:
        for window in "startup", "loop", "rest":
            table = read_tables(viewer.get(f"shares?window={window}"))["shares"]
            assert {(lane, rank) for lane, rank in zip(table["lane"], table["rank"])} == {("host", 0), ("host", 1), ("gpu", 0), ("gpu", 1)}
