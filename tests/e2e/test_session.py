# SPDX-License-Identifier: Apache-2.0
"""plumb.profile(): recordings of a process that `plumb run` did not start."""
import json
import os
import sys
import time

import pytest
from conftest import PLUMB, ROOT, run_command
from plumbtest import PROGRAMS, run_program
from test_mock_gpu import mock_environment

import plumb as plumb_package


def session(python, section, folder, environment=None, code=0, **more):
    """What a section of sessions.py prints, and the finished process."""
    paths = {"PYTHONPATH": str(ROOT / "python"), "PLUMB_BINARY": str(PLUMB), **(environment or {})}
    made = run_program(python, "sessions.py", section, folder=folder, plumb=False, environment=paths, **more)
    assert made.done.returncode == code, made.done.stderr
    return json.loads(made.done.stdout.splitlines()[-1]) if made.done.stdout else None, made.done


def left_over(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(".plumb-")]


def test_recordings_hold_what_happened_in_them_and_nothing_else(tmp_path):
    seen, _ = session(sys.executable, "spans", tmp_path)
    assert seen == [[10 * number, {"step": number, "decorated": number, "kept": number}]
                    for number in (1, 2, 3)]
    assert not left_over(tmp_path)


def test_a_span_hangs_under_your_own_line(tmp_path):
    session(sys.executable, "spans", tmp_path)
    profile = plumb_package.Profile(tmp_path / "spans-2.plumb")
    step, = (node for node in profile.of_kind("range") if node.name == "step")
    source = (PROGRAMS / "sessions.py").read_text().splitlines()
    assert (os.path.basename(step.parent.file), "@step" in source[step.parent.line - 1]) == ("sessions.py", True)


def test_pytorch_that_is_imported_during_a_recording_is_seen(tmp_path, torch_python):
    assert session(torch_python, "torch_late", tmp_path)[0] == [7, 9]


def test_threads_that_run_operators_all_the_time(tmp_path, torch_python):
    assert session(torch_python, "threads", tmp_path)[0] == [[50, True]] * 12


@pytest.mark.parametrize("section", ["gpu", "gpu_up"])
@pytest.mark.parametrize("release", ["11.8", "12.8", "13.0"])
def test_gpu_work_of_each_recording(tmp_path, section, release):
    seen, _ = session(sys.executable, section, tmp_path, mock_environment(release))
    assert seen == [[{"inside": [1000 * number * number, number]}, 1, 0] for number in (1, 2, 3)]


def test_the_gpu_is_left_alone_if_asked(tmp_path):
    seen, _ = session(sys.executable, "gpu_modes", tmp_path, mock_environment("13.0"))
    assert seen == [[False, 0], ["off", 0], ["activity", 1], [True, 1]]


def test_programs_that_are_started_meanwhile(tmp_path):
    assert session(sys.executable, "children", tmp_path)[0] == [["child", "parent"], 2, [], None]


def test_wrong_use_is_one_exception(tmp_path):
    (said, outer, raised), done = session(sys.executable, "errors", tmp_path)
    assert [text.split(":")[0] for text in said] == [
        "cannot write a profile in nowhere; choose another place with -o",
        "CPU samples, events, memory and --toggle need plumb from the program's start",
        "session", said[3].split(":")[0], "plumb.profile() records already; end that recording first, because they cannot be nested"]
    assert "--limit" in said[3] and "\n" not in "".join(said)
    assert (outer, raised) == ("outer.plumb", "raised.plumb")
    names = {node.name for node in plumb_package.Profile(tmp_path / "raised.plumb").of_kind("range")}
    assert names == {"raises"}
    assert not left_over(tmp_path)


def test_nothing_captured_is_said_and_leaves_no_file(tmp_path):
    (path, error, files), done = session(sys.executable, "nothing", tmp_path)
    assert (path, files) == (None, []) and "no profile was written" in error
    assert done.stderr.startswith("plumb: nothing was captured")


def test_a_process_that_is_killed_loses_nothing(tmp_path):
    session(sys.executable, "killed", tmp_path, code=-9)
    for _ in range(300):  # the other process makes the profile, and nobody waits for it
        if (tmp_path / "killed.plumb").exists() and not left_over(tmp_path):
            break
        time.sleep(0.1)
    names = [node.name for node in plumb_package.Profile(tmp_path / "killed.plumb").of_kind("range")]
    assert names == ["before the end"]


def test_under_plumb_run_the_run_has_it(tmp_path):
    made = run_program(sys.executable, "sessions.py", "under_run", folder=tmp_path,
                       environment={"PYTHONPATH": str(ROOT / "python"), "PLUMB_BINARY": str(PLUMB)})
    path, warned = json.loads(made.done.stdout)
    assert path is None and len(warned) == 1 and "plumb run records this process already" in warned[0]
    assert not (tmp_path / "own.plumb").exists()
    assert [node.name for node in made.profile.of_kind("range")] == ["inside"]


def test_the_magic_of_notebooks(tmp_path):
    pytest.importorskip("IPython")
    seen, done = session(sys.executable, "magic", tmp_path, {"IPYTHONDIR": str(tmp_path / "ipython")})
    assert seen == ["cell.plumb", ["cell"], True]
    assert "plumb: 'bogus' is not an option" in done.stdout


def test_a_summary_goes_to_stderr_unless_quiet(tmp_path):
    code = ("import plumb\n"
            "for quiet in (True, False):\n"
            "    with plumb.profile('x.plumb', quiet=quiet) as recording:\n"
            "        with plumb.span('s'): pass\n"
            "    assert 'summary of the run' in recording.summary\n")
    done = run_command(sys.executable, "-c", code, cwd=tmp_path,
                       env={"PYTHONPATH": str(ROOT / "python"), "PLUMB_BINARY": str(PLUMB)})
    assert done.returncode == 0, done.stderr
    assert done.stdout == "" and done.stderr.count("plumb: summary of the run") == 1


# ---- data frames ----

def test_contexts_as_a_data_frame_are_the_tree(tmp_path):
    pandas = pytest.importorskip("pandas")
    session(sys.executable, "spans", tmp_path)
    profile = plumb_package.Profile(tmp_path / "spans-3.plumb")
    frame = profile.to_dataframe()
    assert list(frame["name"]) == [node.name for node in profile.walk()]
    assert list(frame["path"]) == [node.path for node in profile.walk()]
    assert [None if pandas.isna(one) else one for one in frame["parent"]] == [
        node.parent and node.parent.id for node in profile.walk()]
    for metric in profile.metrics:
        for part in ("exclusive", "inclusive"):
            for node in profile.walk():
                value = getattr(node, part)[metric]
                column = f"{metric}.{part}.count"
                if column in frame:
                    assert (0 if pandas.isna(frame[column][node.id]) else frame[column][node.id]) == value.count
                    if value.count:
                        assert frame[f"{metric}.{part}.mean"][node.id] == pytest.approx(value.mean)
                        assert frame[f"{metric}.{part}.std"][node.id] == pytest.approx(value.std)
                else:
                    assert not value.count
    tokens = profile.to_dataframe(metrics=["tokens"])
    assert tokens["tokens.exclusive.sum"].sum() == 30
    with pytest.raises(KeyError, match="no metric 'bogus'; this profile has: "):
        profile.to_dataframe(metrics=["bogus"])
    with pytest.raises(ValueError, match="no table 'bogus'; use one of: contexts, spans"):
        profile.to_dataframe("bogus")


def test_other_tables_as_data_frames(tmp_path, any_torch_python):
    pandas = pytest.importorskip("pandas")
    session(any_torch_python, "threads", tmp_path)
    profile = plumb_package.Profile(tmp_path / "threads-0.plumb")  # with spans
    spans = profile.to_dataframe("spans")
    listed = list(profile.spans())
    assert len(spans) == len(listed) > 50
    assert list(spans["start_ns"]) == [span.start_ns for span in listed]
    assert [None if pandas.isna(one) else one for one in spans["correlation"]] == [span.correlation for span in listed]
    assert list(profile.to_dataframe("tracks")["id"]) == [track.id for track in profile.tracks]
    assert list(profile.to_dataframe("ledger")["count"]) == [row.count for row in profile.ledger]
    empty = plumb_package.Profile(tmp_path / "threads-1.plumb").to_dataframe("spans")
    assert len(empty) == 0 and list(empty.columns) == list(spans.columns)


def test_every_public_name_has_a_docstring_and_the_package_is_typed():
    package = ROOT / "python" / "plumb"
    assert (package / "py.typed").exists()
    for name in plumb_package.__all__:
        thing = getattr(plumb_package, name)
        if name != "__version__" and callable(thing):
            assert thing.__doc__, name
            for part, member in vars(thing).items() if isinstance(thing, type) else ():
                if not part.startswith("_") and (callable(member) or isinstance(member, property)):
                    assert member.__doc__, f"{name}.{part}"
