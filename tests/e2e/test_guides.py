# SPDX-License-Identifier: Apache-2.0
"""The guides in docs/guides: every command of a page runs, and prints what the page says (scripts/guides.py)."""
import re
import sys

import pytest
from conftest import BUILD, ROOT

sys.path.insert(0, str(ROOT / "scripts"))

import guides  # noqa: E402


@pytest.mark.parametrize("name", [path.name for path in guides.PAGES])
def test_a_guide_says_what_happens(any_torch_python, name):
    path = ROOT / "docs" / "guides" / name
    if "```python cell" in path.read_text():
        pytest.importorskip("IPython")
    page = guides.Page(path, any_torch_python, BUILD)
    page.check()
    assert not page.wrong, "\n\n".join(page.wrong) + "\nscripts/guides.py --write writes the output of today"


def test_every_guide_is_in_the_index():
    index = (ROOT / "docs" / "guides" / "index.md").read_text()
    linked = set(re.findall(r"\((\w[\w-]*\.md)\)", index))
    assert linked == {path.name for path in guides.PAGES} - {"index.md"}


# ---- the comparison itself ----

OUTPUT = ["total 5.42 s", "", "61.2 %  5.1 ms  aten::mm  train.py:41", "10.0 %  1.0 ms  aten::add  train.py:42", "end"]


@pytest.mark.parametrize(("shown", "loose", "right"), [
    (OUTPUT, False, True),
    (["…", *OUTPUT[2:]], False, True),
    (["total 5.42 s", "…", "end"], False, True),
    (["total 5.43 s", "…", "end"], False, False),
    (["total 820 ms", "…", "end"], True, True),
    (["total 820 ms"], True, False),
    (["…", "60.0 % 7 ms aten::mm train.py:41", "…"], True, True),
    (["…", "60.0 % 7 ms aten::mm train.py:40", "…"], True, False),
    (["…", "60.0 % 7 ms aten::mm /other/place/train.py:41", "…"], True, True),
    (["…", OUTPUT[3], "…", OUTPUT[2], "…"], False, False),
    (["…", "end", "more"], False, False),
])
def test_what_agrees(shown, loose, right):
    assert guides.agrees(shown, OUTPUT, loose) == right


@pytest.mark.parametrize("shown", [["…", *OUTPUT[2:]], [OUTPUT[0], "…", OUTPUT[3], "…"], ["…"], OUTPUT])
def test_written_again_it_agrees_and_is_cut_as_before(shown):
    new = [line.replace("5.42", "6.11").replace("aten::mm", "aten::mm_out") for line in OUTPUT]
    written = guides.rewritten(shown, new)
    assert guides.agrees(written, new, False)
    assert [line == "…" for line in written] == [line == "…" for line in shown]


def test_a_command_that_fails_is_an_error(tmp_path, any_torch_python):
    page = tmp_path / "page.md"
    page.write_text("```console\n$ plumb report nothing.plumb\n…\n```\n")
    with pytest.raises(guides.Wrong, match="ended with 5|ended with 2"):
        guides.Page(page, any_torch_python, BUILD).check()
    page.write_text("```console\n$ plumb version --bogus\n…\n$ echo $?\n1\n```\nand `plumb report nothing.plumb`\n")
    with pytest.raises(guides.Wrong, match="plumb report nothing.plumb"):
        guides.Page(page, any_torch_python, BUILD).check()
