# SPDX-License-Identifier: Apache-2.0
"""`plumb settle` on folders and profiles, whole, damaged and foreign."""
import json
import subprocess

import pytest
from conftest import PLUMB, run_command
from test_run import operators, run, run_folders, stub, until  # noqa: F401 (fixtures)


@pytest.fixture
def left(run, tmp_path):  # noqa: F811
    """A run folder that could not be settled: its output's folder had gone."""
    def call(name="left", script="exit 0", env=None):
        home = tmp_path / name
        (home / "gone").mkdir(parents=True)
        done = run("sh", "-c", f"rmdir gone; {script}", cwd=home, env=env,
                   options=["-o", "gone/run.plumb", "--folder", "."])
        assert "finish with" in done.stderr
        (folder,) = run_folders(home)
        return folder
    return call


def settle(*arguments, cwd=None):
    return run_command(PLUMB, "settle", *arguments, cwd=cwd)


def processes(path):
    report = json.loads(run_command(PLUMB, "report", path, "--json").stdout)
    return report["processes"]


def test_a_folder_becomes_a_profile_and_stays(left, tmp_path):
    folder = left(script="exit 5")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    done = settle(folder, "-o", tmp_path / "a.plumb")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert operators(tmp_path / "a.plumb") == {"stub::loaded": 2}
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    # Again, the same.
    assert settle(folder, "-o", tmp_path / "b.plumb").returncode == 0
    assert operators(tmp_path / "b.plumb") == {"stub::loaded": 2}
    assert settle("--remove", folder, "-o", tmp_path / "b.plumb").returncode == 0
    assert not folder.exists()


def test_summary_when_asked(left, tmp_path):
    done = settle("--summary", left(), "-o", tmp_path / "a.plumb")
    assert done.returncode == 0 and "a.plumb" in done.stderr


def test_folders_and_profiles_join(left, tmp_path):
    folders = [left("one", env={"RANK": "0"}), left("two", env={"RANK": "1"}),
               left("three", env={"RANK": "2"})]
    done = settle(*folders[:2], "-o", tmp_path / "two.plumb")
    assert done.returncode == 0, done.stderr
    done = settle(tmp_path / "two.plumb", folders[2], "-o", tmp_path / "all.plumb")
    assert done.returncode == 0, done.stderr
    assert operators(tmp_path / "all.plumb") == {"stub::loaded": 6}
    assert sorted(process["rank"] for process in processes(tmp_path / "all.plumb")) \
        == [0, 0, 1, 1, 2, 2]
    # A profile may take the place of one that it was made of.
    done = settle(tmp_path / "two.plumb", folders[2], "-o", tmp_path / "two.plumb")
    assert done.returncode == 0, done.stderr
    assert operators(tmp_path / "two.plumb") == {"stub::loaded": 6}


def test_the_same_run_twice_is_an_error(left, tmp_path):
    folder = left()
    assert settle(folder, "-o", tmp_path / "a.plumb").returncode == 0
    done = settle(folder, tmp_path / "a.plumb", "-o", tmp_path / "b.plumb")
    assert done.returncode == 1
    assert "is given twice" in done.stderr
    assert not (tmp_path / "b.plumb").exists()


def test_wrong_use(left, tmp_path):
    folder = left()
    for arguments in ([], ["-o", "x"], [folder], [folder, "-o", "/dev/null"],
                      [folder, "-o", tmp_path]):
        done = settle(*arguments)
        assert done.returncode == 1, arguments
        assert len(done.stderr.splitlines()) == 1
    assert settle(folder, "-o", "/nowhere/x").returncode == 5


def test_bad_input_is_named(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("no profile")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd/x.region").write_text("no region")
    for name, code in (("empty", 2), ("text", 2), ("odd", 2), ("none", 5)):
        done = settle(tmp_path / name, "-o", tmp_path / "out.plumb")
        assert done.returncode == code, (name, done.stderr)
        assert name in done.stderr
        assert not (tmp_path / "out.plumb").exists()


def test_damaged_region_is_left_out_with_a_line(left, tmp_path):
    folder = left()
    region = next(path for path in folder.glob("*.region") if path.name != "run.region")
    # Of the last, a copy that was cut short, the beginning is used.
    for damage, calls in ((b"", 2), (b"PLUMBRG\n", 2), (region.read_bytes()[:20000], 3)):
        (folder / "0-damaged.region").write_bytes(damage)
        done = settle(folder, "-o", tmp_path / "a.plumb")
        assert done.returncode == 0, done.stderr
        assert "0-damaged.region" in done.stderr
        assert operators(tmp_path / "a.plumb") == {"stub::loaded": calls}


def test_folder_with_other_things_is_not_removed(left, tmp_path):
    folder = left()
    (folder / "mine.txt").write_text("mine")
    (folder / "libplumb.so").write_text("a file, not our link")
    done = settle("--remove", folder, "-o", tmp_path / "a.plumb")
    assert done.returncode == 0
    assert "so it was not removed" in done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["libplumb.so", "mine.txt"]


def test_nothing_captured_is_3_with_a_profile(left, tmp_path):
    folder = left()
    for path in folder.iterdir():
        if path.name != "run.region":
            path.unlink()
    done = settle(folder, "-o", tmp_path / "a.plumb")
    assert done.returncode == 3
    assert "nothing was captured" in done.stderr
    assert subprocess.run(["sqlite3", tmp_path / "a.plumb", "select count(*) from environment"],
                          capture_output=True, text=True).stdout.strip() not in ("", "0")
