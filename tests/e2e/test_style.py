# SPDX-License-Identifier: Apache-2.0
"""The C files are formatted by the pinned clang-format, and no line is too long (scripts/check_format.py)."""
import os

import pytest
from conftest import ROOT, run_command

GOOD = "int\nmain(void)\n{\n\treturn 0;\n}\n"


def check(*arguments, **environment):
    """The finished check; skips where clang-format can neither be found nor downloaded, except in CI."""
    done = run_command(ROOT / "scripts/check_format.py", *arguments, env=environment)
    if done.returncode == 2:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(done.stdout)
    return done


def test_every_c_file_is_formatted():
    done = check()
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("source, problem", [
    (GOOD.replace("\treturn", "  return"), "src/bad.c:3: not formatted; run make format"),
    (GOOD + f"/* {'word ' * 20}*/\n", "src/bad.c:6: longer than 100 columns"),
    (GOOD + f'const char *text =\n\t"{"x" * 100}";\n', None),  # there is no place to break it
])
def test_what_is_wrong_is_found(source, problem, tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / ".clang-format").write_text((ROOT / ".clang-format").read_text())
    (tmp_path / "src/bad.c").write_text(source)
    done = check(tmp_path)
    assert (done.returncode, done.stdout.strip().removeprefix(f"{tmp_path.resolve()}/")) == (1 if problem else 0, problem or "")
    if problem and "run make format" in problem:
        assert check("--write", tmp_path).returncode == 0
        assert (tmp_path / "src/bad.c").read_text() == GOOD


def test_without_clang_format_it_says_why(tmp_path):
    done = run_command(ROOT / "scripts/check_format.py", env={"BUILD_CACHE": str(tmp_path), "PIP_NO_INDEX": "1"})
    assert done.returncode == 2
    assert "cannot download clang-format" in done.stdout
