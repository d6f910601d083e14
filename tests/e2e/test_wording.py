# SPDX-License-Identifier: Apache-2.0
"""What people read of real recordings: names that fit, plurals, no unknown as 0, one error of wrong use."""
import gzip
import json
import re
import shutil

import pytest
from conftest import PLUMB, ROOT, run_command

DATA = ROOT / "tests" / "data"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Paths of profiles, by the names that they have under tests/data."""
    folder = tmp_path_factory.mktemp("recorded")

    def unpack(name):
        path = folder / name.replace("/", "-")
        if not path.exists():
            with gzip.open(DATA / f"{name}.gz") as source, open(path, "wb") as target:
                shutil.copyfileobj(source, target)
        return path
    return unpack


def text_of(*words, code=0):
    done = run_command(PLUMB, *words)
    assert done.returncode == code, done.stderr
    return done.stdout if not code else done.stderr


# ---- findings ----

def test_titles_of_findings_have_short_names_and_evidence_the_whole():
    found = json.loads(text_of("report", DATA / "foreign" / "torch.json.gz", "--findings", "--json"))["findings"]
    names = [row["evidence"]["name"] for row in found if row["id"].startswith("hotspot-kernel")]
    titles = [row["title"] for row in found]
    assert max(map(len, names)) > 100 and max(map(len, titles)) < 160
    assert any(re.search(r"kernel sm80_xmma_gemm\S+…\S+__5x_cublas takes", title) for title in titles)


def test_findings_without_a_line_name_none():
    text = text_of("report", DATA / "foreign" / "compiled.json.gz", "--findings")
    assert "takes 48.0 % of the GPU time\n" in text and "no line of your code" not in text


def test_evidence_for_people_is_rounded_and_lists_each_name_once():
    text = re.sub(r"\s+", " ", text_of("report", DATA / "h200_example.plumb", "--findings"))
    assert "registers 38," in text and "registers 37.995" not in text
    for names in re.findall(r"(?:names|kernels) ((?:[^;,]+; )+[^;,]+)", text):
        listed = names.split(" and ")[0].split("; ")
        assert len(set(listed)) == len(listed), names
