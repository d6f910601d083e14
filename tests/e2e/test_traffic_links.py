# SPDX-License-Identifier: Apache-2.0
"""How GPUs are linked: from a stand-in for NVML into the profile, and what plumb traffic makes of it."""
import csv
import io
import os
import sqlite3
import sys

import pytest
from conftest import BUILD, PLUMB, ROOT, run_command
from plumbtest import PROGRAMS
from test_mock_gpu import NEWEST, mock_environment
from test_traffic import json_of, text_of
from traffictest import Traffic, all_reduces, through_switches

sys.path.insert(0, str(ROOT / "python"))
import plumb  # noqa: E402

NVML = BUILD / "mock" / "nvml"
PCIE5 = 16 * (32 * 10**9 // 8 * 128 // 130)
NVLINK = 26562 * 10**6


def run(folder, nvml="", devices=3, with_nvml=True, options=("--traffic",), name="run.plumb"):
    path = folder / name
    environment = {**os.environ, **mock_environment(NEWEST, f"devices={devices}"), "PYTHONPATH": str(ROOT / "python"), "MOCK_NVML": nvml}
    if with_nvml:
        environment["LD_LIBRARY_PATH"] += f":{NVML}"
    done = run_command(PLUMB, "run", "-q", "-o", path, *options, "--", sys.executable, PROGRAMS / "traffic_driver.py", "every_copy",
                       cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr
    return plumb.Profile(path)


def links_of(profile):
    """{(GPU, GPU or None): (kind, path, links, generation, bytes_per_second, peer_access)}"""
    def number(uuid):
        return None if uuid is None else int(uuid[-2:], 16)
    return {(number(link.uuid), number(link.peer_uuid)): (link.kind, link.path, link.links, link.generation,
                                                          link.bytes_per_second, link.peer_access) for link in profile.device_links}


SWITCHED = ("NVSwitch", None, 18, None, 18 * NVLINK, 1)
HOST = ("PCIe", None, 16, 5, PCIE5, None)


def pcie(path, peer=1):
    return ("PCIe", path, 16, 5, PCIE5, peer)


def test_links_through_switches(tmp_path):
    """The program used GPUs 0 and 1: the others' links among each other are not its own."""
    assert links_of(run(tmp_path, "gpus=4")) == {
        (0, None): HOST, (1, None): HOST, (0, 1): SWITCHED, (0, 2): SWITCHED, (0, 3): SWITCHED, (1, 2): SWITCHED, (1, 3): SWITCHED}


@pytest.mark.parametrize("nvml, expected", [
    ("wires=hidden", {(0, 1): ("NVLink", None, 18, None, 18 * NVLINK, 1)}),
    ("wires=pairs", {(0, 1): ("NVLink", None, 4, None, 4 * NVLINK, 1)}),
    ("wires=pairs,gpus=3,peer=0", {(0, 1): ("NVLink", None, 4, None, 4 * NVLINK, 1), (0, 2): pcie("the host bridge", 0),
                                   (1, 2): pcie("the host bridge", 0)}),
    ("wires=none", {(0, 1): pcie("one PCIe switch")}),
    ("wires=none,gpus=5", {(0, 1): pcie("one PCIe switch"), (0, 2): pcie("the host bridge"), (0, 3): pcie("the host bridge"),
                           (0, 4): pcie("the link between NUMA nodes"), (1, 2): pcie("the host bridge"),
                           (1, 3): pcie("the host bridge"), (1, 4): pcie("the link between NUMA nodes")})])
def test_other_links(tmp_path, nvml, expected):
    assert links_of(run(tmp_path, nvml)) == {(0, None): HOST, (1, None): HOST, **expected}


def test_what_nvml_does_not_know_is_unknown(tmp_path):
    assert links_of(run(tmp_path, "wires=none,generation=0,width=0")) == {
        (0, None): ("PCIe", None, None, None, None, None), (1, None): ("PCIe", None, None, None, None, None),
        (0, 1): ("PCIe", "one PCIe switch", None, None, None, 1)}


def test_links_to_the_hosts_processor(tmp_path):
    assert links_of(run(tmp_path, "c2c=1"))[0, None] == ("C2C", None, 10, None, 10 * 45000 * 10**6, None)


@pytest.mark.parametrize("nvml, with_nvml, why", [
    ("", False, "libnvidia-ml.so.1: cannot open shared object file"), ("init=9", True, "NVML does not start (error 9)"),
    ("hang=2", True, "NVML crashed")])
def test_without_nvml_the_profile_says_why(tmp_path, nvml, with_nvml, why):
    profile = run(tmp_path, nvml, with_nvml=with_nvml)
    assert profile.device_links == [] and profile.transfers
    assert profile.environment["traffic.links"].startswith(why)


def test_only_traffic_asks_for_links(tmp_path):
    profile = run(tmp_path, options=())
    assert profile.device_links == [] and not {"traffic.links", "traffic.mode"} & set(profile.environment)
    assert run(tmp_path).environment["traffic.mode"] == "calls"


def test_joined_ranks_have_each_link_once(tmp_path):
    paths = []
    for rank in range(2):
        run(tmp_path, "gpus=3", name=f"{rank}.plumb")
        paths.append(tmp_path / f"{rank}.plumb")
    joined = tmp_path / "joined.plumb"
    done = run_command(PLUMB, "settle", "-o", joined, *paths, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    profile = plumb.Profile(joined)
    assert len(profile.device_links) == 5 and links_of(profile) == links_of(plumb.Profile(paths[0]))


# ---- what plumb traffic makes of them ----

def test_routes_name_links_and_their_use(tmp_path):
    """10 copies of 90 MB in 0.4 ms each are 225 GB/s: half of what the links carry. To the host, 6.3 GB/s are a tenth."""
    traffic = through_switches()
    traffic.copy(0, 1, 10, 90_000_000, ns=400_000)
    traffic.copy(None, 1, 5, 6_300_000, ns=1_000_000, at=("train.py", 41))
    path = traffic.write(tmp_path / "t.plumb")
    answer = json_of(path)
    assert [(r["kind"], r["link"], r["bytes"], r["speed"], r["link_bytes_per_second"], r["link_share"]) for r in answer["routes"]] == [
        ("copy", "18 NVLinks through NVSwitch", 900_000_000, 225e9, 450e9, 0.5),
        ("copy", "PCIe 5 x16", 31_500_000, 6.3e9, 63e9, pytest.approx(0.1))]
    assert answer["links_missing"] is None
    assert [(link["one"], link["other"], link["label"], link["kind"]) for link in answer["links"]] == [
        (0, 1, "18 NVLinks through NVSwitch", "NVSwitch"), (0, 2, "PCIe 5 x16", "PCIe"), (1, 2, "PCIe 5 x16", "PCIe")]
    assert answer["parties"][2]["kind"] == "host"
    there, back = answer["links"][0]["there"], answer["links"][0]["back"]
    assert there == {"copied_bytes": 900_000_000, "copy_ns": 4_000_000, "speed": 225e9, "link_share": 0.5}
    assert set(back.values()) == {None}
    assert answer["links"][1]["there"]["speed"] is None and answer["links"][2]["back"]["link_share"] == pytest.approx(0.1)
    text = text_of(path, "--by", "route")
    assert "225 GB/s" in text and "50.0 %" in text and "18 NVLinks through NVSwitch" in text and "is not known" not in text
    table = list(csv.DictReader(io.StringIO(text_of(path, "--by", "route", "--csv"))))
    assert [(row["link"], float(row["link_bytes_per_second"])) for row in table] == [
        ("18 NVLinks through NVSwitch", 450e9), ("PCIe 5 x16", 63e9)]


@pytest.mark.parametrize("link, label", [
    ({"kind": "NVLink", "links": 1}, "1 NVLink"), ({"kind": "NVLink", "links": None}, "NVLink"),
    ({"kind": "PCIe", "path": "the same board", "links": 8, "generation": 4}, "PCIe 4 x8 on the same board"),
    ({"kind": "PCIe", "path": "the link between NUMA nodes", "links": 16, "generation": None, "peer": 0},
     "PCIe x16 through the link between NUMA nodes, without peer access: by way of the host"),
    ({"kind": "PCIe", "path": None, "links": None, "generation": None, "speed": None, "peer": None}, "PCIe")])
def test_names_of_links(link, label, tmp_path):
    traffic = Traffic(2)
    traffic.link(0, 1, **link)
    traffic.copy(0, 1, 1, 100)
    answer = json_of(traffic.write(tmp_path / "t.plumb"))
    assert answer["links"][0]["label"] == answer["routes"][0]["link"] == label


def test_pairs_with_other_links_are_other_routes(tmp_path):
    traffic = Traffic(3)
    traffic.link(0, 1, "NVLink", links=4)
    traffic.link(1, 2, "NVLink", links=4)
    traffic.link(0, 2, "PCIe", "the host bridge", 16, 4, 31 * 10**9)
    for ends in ((0, 1), (2, 1), (0, 2)):
        traffic.copy(*ends, 1, 100)
    assert [(r["link"], r["bytes"]) for r in json_of(traffic.write(tmp_path / "t.plumb"))["routes"]] == [
        ("4 NVLinks", 200), ("PCIe 4 x16 through the host bridge", 100)]


@pytest.mark.parametrize("why", [None, "NVML crashed"])
def test_links_that_are_not_known(why, tmp_path):
    traffic = Traffic(2)
    traffic.copy(0, 1, 1, 100)
    if why:
        traffic.environment.append((None, "traffic.links", why))
    path = traffic.write(tmp_path / "t.plumb")
    answer = json_of(path)
    assert answer["links"] == [] and answer["links_missing"] == (why or "the recording does not say")
    assert answer["routes"][0]["link"] is None and answer["routes"][0]["link_share"] is None
    assert f"how the GPUs are linked is not known: {answer['links_missing']}" in text_of(path, "--by", "route")


def test_a_file_without_the_table(tmp_path):
    traffic = Traffic(2)
    traffic.copy(0, 1, 1, 100)
    path = traffic.write(tmp_path / "t.plumb")
    with sqlite3.connect(path) as database:
        database.execute("DROP TABLE device_links")
    database.close()
    assert json_of(path)["links"] == [] and plumb.Profile(path).device_links == []


# ---- collectives ----

@pytest.mark.parametrize("protocol, ratio", [("SIMPLE", 1.5), ("LL", 3.0)])
def test_what_collectives_take_on_the_links(protocol, ratio, tmp_path):
    path = all_reduces(protocol=protocol).write(tmp_path / "t.plumb")
    answer = json_of(path)
    row, = answer["collectives"]
    assert (row["sent_bytes"], row["sent_ratio"]) == (ratio * (1 << 20), ratio)
    assert (row["measured_bytes"], row["measured_ratio"], row["measured_error_bytes"]) == (4 * 5 * ratio * (1 << 20), ratio, 0)
    assert sorted((p["from"], p["to"], p["bytes"]) for p in row["measured_pairs"]) == [
        (i, (i + 1) % 4, 5 * ratio * (1 << 20)) for i in range(4)]
    assert (row["link"], row["link_bytes_per_second"]) == ("18 NVLinks through NVSwitch", 450e9)
    assert row["link_share"] == pytest.approx(row["busbw"] / 450e9)
    assert [(r["kind"], r["link"]) for r in answer["routes"] if r["kind"] == "collective"] == [
        ("collective", "18 NVLinks through NVSwitch")]
    text = text_of(path, "--by", "collective")
    assert f"{ratio:.2f}" in text.split("what goes over the links")[1]
    table = list(csv.DictReader(io.StringIO(text_of(path, "--by", "collective", "--csv"))))
    assert {float(r["sent_bytes"]) for r in table} == {ratio * (1 << 20)}


def test_collectives_that_were_not_measured(tmp_path):
    row, = json_of(all_reduces(measured=False).write(tmp_path / "t.plumb"))["collectives"]
    assert row["sent_ratio"] == 1.5 and row["measured_bytes"] is None and row["measured_ratio"] is None
    assert row["measured_pairs"] == []


def test_two_operations_at_one_call_path_cannot_be_told_apart(tmp_path):
    rows = json_of(all_reduces(others=[("Broadcast", True)]).write(tmp_path / "t.plumb"))["collectives"]
    assert len(rows) == 2 and all(row["measured_bytes"] is None for row in rows)


def test_an_operation_elsewhere_does_not_matter(tmp_path):
    rows = json_of(all_reduces(others=[("Broadcast", False)]).write(tmp_path / "t.plumb"))["collectives"]
    assert {row["name"]: row["measured_bytes"] for row in rows} == {"AllReduce": 4 * 5 * 3 << 19, "Broadcast": None}


def test_of_the_newest_operations_alone_nothing_is_measured(tmp_path):
    traffic = all_reduces()
    traffic.collectives = traffic.collectives[1:]
    assert all(row["measured_bytes"] is None for row in json_of(traffic.write(tmp_path / "t.plumb"))["collectives"])


def test_a_group_over_several_kinds_of_links(tmp_path):
    traffic = all_reduces()
    traffic.links = [(*link[:2], "PCIe", *link[3:]) if link[:2] == ("GPU-0", "GPU-3") else link for link in traffic.links]
    answer = json_of(traffic.write(tmp_path / "t.plumb"))
    assert answer["collectives"][0]["link"] is None
    assert [r["link"] for r in answer["routes"] if r["kind"] == "collective"] == [None]
