# SPDX-License-Identifier: Apache-2.0
"""The answer of plumb view about traffic: that of the verb, within bounds."""
import json

import pytest
from traffictest import Traffic, pointer_array
from viewing import ROOT, Viewer, link_plumb, verb

EXAMPLE = ROOT / "tests/data/h200_example.plumb"


@pytest.fixture(scope="module")
def plumb(tmp_path_factory):
    return link_plumb(tmp_path_factory.mktemp("viewer"))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("traffic")
    small, _ = pointer_array(4)
    for part in range(8):
        small.bin(1, 3, "store", part * 4096, 4096, 9)
    large = Traffic(72)  # 8 lines of which each reaches every GPU from every other
    parts = [large.object(i, 4096, name=f"part{i}") for i in range(72)]
    for number in range(8):
        line = large.line("all", 0x10 * number, [("all.cu", 10 + number)])
        for i in range(72):
            for other in range(72):
                if i != other:
                    large.access("store", i, other, line, 32 * (8 - number), 4, object=parts[other])
    return small.write(folder / "small.plumb"), large.write(folder / "large.plumb")


@pytest.fixture(scope="module")
def viewer(plumb, made):
    with Viewer(plumb, *made, EXAMPLE) as running:
        yield running


def without_left(value):
    """An answer without the keys that say what parts of a row were left out, which the verb does not have."""
    if isinstance(value, list):
        return [without_left(one) for one in value]
    if isinstance(value, dict):
        return {key: without_left(one) for key, one in value.items()
                if key not in ("uses_left_out", "histogram_left_out", "moves_left_out", "instructions_left_out")}
    return value


def test_it_is_that_of_the_verb(viewer, plumb, made):
    answer, said = viewer.json("traffic"), json.loads(verb(plumb, "traffic", made[0], "--json"))
    assert answer != said and without_left(answer) == said
    assert len(said["objects"]) == 9 and sum(len(one["histogram"]) for one in said["objects"]) == 8
    few = viewer.json("traffic?top=2")
    assert (len(few["lines"]), few["lines_left_out"], len(few["pairs"])) == (2, len(said["lines"]) - 2, len(said["pairs"]))


@pytest.mark.parametrize("by", ["pair", "object", "line", "kernel", "route"])
def test_csv_is_that_of_the_verb(viewer, plumb, made, by):
    assert viewer.get(f"traffic?by={by}&format=csv&top=0") == verb(plumb, "traffic", made[0], "--by", by, "--csv", "--top", 0)


def test_it_is_bounded(viewer, plumb, made):
    text = viewer.get("traffic?file=1")
    answer, said = json.loads(text), json.loads(verb(plumb, "traffic", made[1], "--json"))
    assert len(text) < 6 << 20
    assert len(answer["pairs"]) == 72 * 71 and answer["pairs_left_out"] == 0
    assert answer["matrices"] == said["matrices"]
    counts = [len(line["moves"]) for line in answer["lines"]]
    # The lines with most bytes have all of theirs, and each has some.
    assert counts[:3] == [72 * 71] * 3 and 0 < counts[3] < 72 * 71 and counts[-1] == 16
    assert 20_000 <= sum(counts) + sum(len(line["instructions"]) for line in answer["lines"]) < 20_000 + 8 * 32
    for short, whole in zip(answer["lines"], said["lines"]):
        assert short["label"] == whole["label"] and short["bytes"] == whole["bytes"]
        assert short["moves"] == whole["moves"][:len(short["moves"])]
        assert len(short["moves"]) + short["moves_left_out"] == len(whole["moves"]) == 72 * 71


def test_a_profile_without_traffic_has_a_remedy(viewer):
    assert viewer.json("about?file=0")["has"]["traffic"] and not viewer.json("about?file=2")["has"]["traffic"]
    status, _, body = viewer.ask("api/1/traffic?file=2")
    assert status == 404
    assert json.loads(body) == {"why": "the profile has no traffic between devices; record it with plumb run --traffic",
                                "remedy": "plumb run --traffic -- PROGRAM"}
    status, _, body = viewer.ask("api/1/traffic?by=colour")
    assert status == 400 and "pair" in body.decode()
